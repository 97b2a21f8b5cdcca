/* which server is meant, and what is presented to it */
#include "base/err.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/context.h"
#include "cli/settings.h"
#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

const char *cli_given_server(const struct cli *cli)
{
    const char *server = cli_value(cli, "server");
    if (server && server[0])
        return server;
    return cli_flag(cli, "context") ? NULL : variable("SKEP_SERVER");
}

const char *cli_given_context(const struct cli *cli)
{
    const char *name = cli_value(cli, "context");
    return name || cli_given_server(cli) ? name : variable("SKEP_CONTEXT");
}

int cli_context(const struct cli *cli, struct settings *settings, struct context **context)
{
    const char *name = cli_given_context(cli);
    const char *server = cli_given_server(cli);
    struct err err;
    *context = NULL;
    if (settings_load(settings, &err))
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    if (name && server)
        return cli_fail(EXIT_USAGE, "--server and --context both name a server: give one of them");
    if (server)
        return 0;
    *context = name ? settings_find(settings, name) : settings_current(settings);
    if (name && !*context)
        return cli_fail(EXIT_USAGE, "there is no context '%s'; see: skep context list", name);
    if (*context && !(*context)->server)
        return cli_fail(EXIT_USAGE, "context '%s' has no server: log in with --context %s URL",
                        (*context)->name, (*context)->name);
    return 0;
}

void cli_identify(const struct cli *cli, struct client *client, const struct context *context)
{
    const char *certificate = cli_value(cli, "client-certificate");
    if (certificate)
        client_identify(client, certificate, cli_value(cli, "client-key"));
    else if (context)
        client_identify(client, context->certificate, context->key);
}

/* NULL: none is set. EXIT_USAGE, after a message: it is not this server's. */
static int token_given(struct settings *settings, const char *server, const struct context *named,
                       const char **token)
{
    const char *whose = settings_token_server(settings, variable("SKEP_SERVER"));
    *token = variable("SKEP_TOKEN");
    if (!*token || settings_token_fits(whose, server, named))
        return 0;
    return cli_fail(EXIT_USAGE,
                    "SKEP_TOKEN is not sent to %s: %s%s. Unset it, or set SKEP_SERVER to the "
                    "server whose token it is",
                    server, whose ? "it is that of " : "nothing says that it is that of a context",
                    whose ? whose : "");
}

struct client *cli_client(struct cli *cli)
{
    if (cli->client)
        return cli->client;
    cleanup_settings struct settings settings;
    struct context *context;
    if (cli_context(cli, &settings, &context))
        return NULL;
    const char *server = context ? context->server : cli_given_server(cli);
    if (!server)
        server = settings_server();
    const char *token;
    if (token_given(&settings, server, context, &token))
        return NULL;
    /* a token is shown to nobody but the server that gave it */
    if (!context)
        context = settings_of_server(&settings, server);
    if (!token && context)
        token = context->token;
    cli->client = client_new(server, token, context ? context->fingerprint : NULL);
    cli_identify(cli, cli->client, context);
    return cli->client;
}
