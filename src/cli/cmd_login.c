/* login, logout, version, help, completion, man */
#include "base/err.h"
#include "base/memory.h"
#include "cli/ask.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/context.h"
#include "cli/fingerprint.h"
#include "cli/login_oidc.h"
#include "cli/print.h"
#include "cli/settings.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int name_ask(char **name)
{
    if (!isatty(STDIN_FILENO))
        return cli_fail(EXIT_USAGE, "give --username, as standard input is not a terminal");
    fprintf(stderr, "User name: ");
    return ask_line("user name", name);
}

/* Ask the server for a token. */
static int token_get(struct client *client, const char *name, const char *password, char **token)
{
    json_t *body = json_pack("{s:s,s:s}", "username", name, "password", password);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!text)
        return cli_fail(EXIT_USAGE, "user name and password must be UTF-8");
    json_auto_t *json = NULL;
    int code = client_call(client,
                           &(struct client_request){.method = "POST",
                                                    .path = "/api/v2/authn/basic/login",
                                                    .content_type = "application/json",
                                                    .body = text_of(text)},
                           &json);
    const char *given = field_text(json, "token");
    if (!code && !given)
        code =
            cli_fail(EXIT_REFUSED, "%s gave no token: is it a Skep server?", client_server(client));
    if (!code)
        *token = mem_copy(given);
    free(text);
    return code;
}

/* The name of the context that a login is for; an address stands for a server that is given. */
static const char *login_context(const struct cli *cli)
{
    return cli->argument_count ? cli_value(cli, "context") : cli_given_context(cli);
}

/* The context that a login is kept in: the named one, that of the server, or a new one. */
static int context_get(struct settings *settings, const char *name, const char *server,
                       struct context **context, struct err *err)
{
    char made[CONTEXT_NAME_MAX + 1];
    *context = name ? settings_find(settings, name) : settings_of_server(settings, server);
    if (*context)
        return 0;
    if (!name) {
        context_name_of(server, made);
        name = made;
        if (settings_find(settings, name))
            return err_fail(err, ERR_CONFLICT, "",
                            "the context '%s' is of another server: name another with --context",
                            name);
    }
    return settings_add(settings, name, context, err);
}

/* The path as it is from anywhere. */
static int path_keep(const struct cli *cli, const char *option, char **field)
{
    const char *given = cli_value(cli, option);
    char *whole = given ? realpath(given, NULL) : NULL;
    if (given && !whole)
        return cli_fail(EXIT_USAGE, "%s: %s", given, strerror(errno));
    context_set(field, whole);
    free(whole);
    return 0;
}

static int login_keep(const struct cli *cli, const char *server, const char *name,
                      const char *token, const char *fingerprint)
{
    cleanup_settings struct settings settings;
    struct context *context;
    struct err err;
    int code = settings_load(&settings, &err);
    if (!code)
        code = context_get(&settings, login_context(cli), server, &context, &err);
    if (code)
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    context_set(&context->server, server);
    context_set(&context->user, name);
    context_set(&context->token, token);
    context_set(&context->fingerprint, fingerprint);
    if (cli_value(cli, "client-certificate"))
        code = path_keep(cli, "client-certificate", &context->certificate);
    if (!code && cli_value(cli, "client-certificate"))
        code = path_keep(cli, "client-key", &context->key);
    if (code)
        return code;
    settings_choose(&settings, context);
    if (settings_save(&settings, &err))
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    printf("logged in to %s as %s", server, name);
    if (settings.count > 1)
        printf(" (context %s)", context->name);
    printf("\n");
    return 0;
}

/* With the certificate that is shown to this server, if there is one. */
static struct client *client_make(const struct cli *cli, const char *server, const char *token,
                                  const char *fingerprint)
{
    cleanup_settings struct settings settings;
    struct err err;
    struct client *client = client_new(server, token, fingerprint);
    const bool is_read = settings_load(&settings, &err) == 0;
    cli_identify(cli, client, is_read ? settings_of_server(&settings, server) : NULL);
    return client;
}

/* What was given instead of a password, a token or (NULL) a certificate, must be good there. */
static int token_check(const struct cli *cli, const char *server, const char *token,
                       const char *fingerprint, char **name)
{
    json_auto_t *json = NULL;
    struct client *client = client_make(cli, server, token, fingerprint);
    int code = client_get(client, "/api/v2/tokens/check", &json);
    if (!code)
        *name = mem_copy(field_text(json, "username") ? field_text(json, "username") : "");
    client_free(client);
    return code;
}

/* The token of the login before: it tells the server that this is no stranger who guesses. */
static struct client *login_client(const struct cli *cli, const char *server, const char *name,
                                   const char *fingerprint)
{
    cleanup_settings struct settings settings;
    struct err err;
    struct context *before =
        settings_load(&settings, &err) ? NULL : settings_of_server(&settings, server);
    bool is_same = before && before->user && name && strcmp(before->user, name) == 0;
    return client_make(cli, server, is_same ? before->token : NULL, fingerprint);
}

/* The server that is named, or that of the context, or the one that was logged in to before. */
static int login_server(const struct cli *cli, char **server)
{
    cleanup_settings struct settings settings;
    struct err err;
    const char *name = login_context(cli);
    const char *given = cli->argument_count ? cli->arguments[0] : cli_given_server(cli);
    if (settings_load(&settings, &err))
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    if (name && !context_is_name(name))
        return cli_fail(EXIT_USAGE, "a context's name is 1 to %d of A-Z a-z 0-9 . _ -, got '%s'",
                        CONTEXT_NAME_MAX, name);
    struct context *context = name ? settings_find(&settings, name) : settings_current(&settings);
    if (!given || !given[0])
        given = context && context->server ? context->server : settings_server();
    *server = mem_copy(given);
    return 0;
}

/* Whom the user trusts whatever others say of the certificate: by --fingerprint, from the login
 * before, or asked now. *fingerprint is NULL when others vouch for the server. */
static int fingerprint_get(const struct cli *cli, const char *server, char **fingerprint)
{
    const char *given = cli_value(cli, "fingerprint");
    if (given && !fingerprint_is_whole(given))
        return cli_fail(EXIT_USAGE, "a fingerprint is sha256//… of 44 letters, got '%s'", given);
    if (given || strncmp(server, "https://", 8) != 0) {
        *fingerprint = given ? mem_copy(given) : NULL;
        return 0;
    }
    cleanup_settings struct settings settings;
    struct err err;
    struct context *before =
        settings_load(&settings, &err) ? NULL : settings_of_server(&settings, server);
    if (before && before->fingerprint) {
        *fingerprint = mem_copy(before->fingerprint);
        return 0;
    }
    struct client *client = client_new(server, NULL, NULL);
    char *shown = client_stranger(client), *answer = NULL;
    client_free(client);
    *fingerprint = shown;
    if (!shown)
        return 0;
    if (!isatty(STDIN_FILENO))
        return cli_fail(EXIT_NOT_ALLOWED,
                        "nobody vouches for the certificate of %s that this machine knows; if "
                        "skepd's log names the same, log in with --fingerprint %s",
                        server, shown);
    fprintf(stderr,
            "Nobody vouches for the certificate of %s that this machine knows.\n"
            "Its fingerprint is %s, which skepd's log must name as well.\n"
            "Is it the same? Type yes or no: ",
            server, shown);
    int code = ask_line("answer", &answer);
    if (!code && strcmp(answer, "yes") != 0)
        code = cli_fail(EXIT_NOT_ALLOWED, "not logged in");
    free(answer);
    return code;
}

static bool is_server(const char *server)
{
    return strncmp(server, "http://", 7) == 0 || strncmp(server, "https://", 8) == 0 ||
           strncmp(server, "unix:/", 6) == 0;
}

/* By the organisation's account, by a token that was given, by a certificate, or by user and
 * password. */
static int log_in(struct cli *cli, const char *server, const char *fingerprint, char **name,
                  char **token)
{
    if (cli_flag(cli, "oidc") || cli_flag(cli, "device")) {
        struct client *stranger = client_make(cli, server, NULL, fingerprint);
        int code = login_oidc(cli, stranger, name, token);
        client_free(stranger);
        return code;
    }
    if (cli_flag(cli, "with-token")) {
        int code = ask_line("token", token);
        return code ? code : token_check(cli, server, *token, fingerprint, name);
    }
    if (cli_value(cli, "client-certificate") && !cli_value(cli, "username"))
        return token_check(cli, server, NULL, fingerprint, name);
    char *password = NULL;
    const char *given = cli_value(cli, "username");
    int code = given ? (*name = mem_copy(given), 0) : name_ask(name);
    if (!code)
        code = ask_password(cli, &password);
    struct client *client = code ? NULL : login_client(cli, server, *name, fingerprint);
    if (!code)
        code = token_get(client, *name, password, token);
    client_free(client);
    ask_forget(password);
    return code;
}

int run_login(struct cli *cli)
{
    char *server = NULL, *name = NULL, *token = NULL, *fingerprint = NULL;
    int code = login_server(cli, &server);
    if (!server)
        return code;
    size_t length = strlen(server);
    while (length && server[length - 1] == '/')
        server[--length] = '\0';
    if (!is_server(server))
        code = cli_fail(EXIT_USAGE,
                        "a server is http://HOST:PORT, https://HOST:PORT or unix:/PATH, got '%s'",
                        server);
    if (!code)
        code = fingerprint_get(cli, server, &fingerprint);
    if (!code)
        code = log_in(cli, server, fingerprint, &name, &token);
    if (!code)
        code = login_keep(cli, server, name, token, fingerprint);
    free(name);
    free(token);
    mem_free(fingerprint);
    mem_free(server);
    return code;
}

int context_log_out(const struct context *context)
{
    struct client *client = client_new(context->server, context->token, context->fingerprint);
    client_identify(client, context->certificate, context->key);
    int code = client_call(
        client, &(struct client_request){.method = "DELETE", .path = "/api/v2/authn/basic/logout"},
        NULL);
    client_free(client);
    return code;
}

int run_logout(struct cli *cli)
{
    cleanup_settings struct settings settings;
    struct context *context;
    struct err err;
    const char *server = cli_given_server(cli);
    int code = cli_context(cli, &settings, &context);
    if (code)
        return code;
    if (!context && server)
        context = settings_of_server(&settings, server);
    if (!context || !context->token)
        return cli_fail(EXIT_REFUSED, "not logged in");
    code = context_log_out(context);
    context_set(&context->token, NULL);
    if (settings_save(&settings, &err))
        code = cli_fail(EXIT_REFUSED, "%s", err.text);
    if (!code)
        printf("logged out of %s\n", context->server);
    return code;
}

/* ---- what is made of the table ---- */

static int flush(struct buf *text)
{
    print_flush(text);
    buf_release(text);
    return 0;
}

int run_version(struct cli *cli)
{
    (void)cli;
    printf("skep %s\n", SKEP_VERSION);
    return 0;
}

/* The command named, or NULL with a message. */
static const struct cli_command *named(const struct cli *cli)
{
    const struct cli_command *command = command_find(cli->arguments[0]);
    if (!command)
        cli_fail(EXIT_USAGE, "unknown command '%s'; see: skep help", cli->arguments[0]);
    return command;
}

int run_help(struct cli *cli)
{
    struct buf text = BUF_INIT;
    if (!cli->argument_count) {
        help_overview(&text);
        return flush(&text);
    }
    const struct cli_command *command = named(cli);
    if (!command)
        return EXIT_USAGE;
    help_command(command, &text);
    return flush(&text);
}

int run_man(struct cli *cli)
{
    struct buf text = BUF_INIT;
    if (!cli->argument_count || strcmp(cli->arguments[0], "skep") == 0) {
        man_overview(&text);
        return flush(&text);
    }
    const struct cli_command *command = named(cli);
    if (!command)
        return EXIT_USAGE;
    man_command(command, &text);
    return flush(&text);
}

int run_completion(struct cli *cli)
{
    struct buf text = BUF_INIT;
    if (strcmp(cli->arguments[0], "bash") == 0)
        completion_bash(&text);
    else if (strcmp(cli->arguments[0], "zsh") == 0)
        completion_zsh(&text);
    else if (strcmp(cli->arguments[0], "fish") == 0)
        completion_fish(&text);
    else
        return cli_fail(EXIT_USAGE, "completion: bash, zsh or fish, not '%s'", cli->arguments[0]);
    return flush(&text);
}
