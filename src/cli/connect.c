/* which server is meant, and what is presented to it */
#include "base/err.h"
#include "cli/client.h"
#include "cli/command.h"
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
    /* a token is shown to nobody but the server that gave it */
    if (!context)
        context = settings_of_server(&settings, server);
    const char *token = variable("SKEP_TOKEN");
    if (!token && context)
        token = context->token;
    cli->client = client_new(server, token, context ? context->fingerprint : NULL);
    return cli->client;
}
