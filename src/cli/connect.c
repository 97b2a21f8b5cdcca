/* which server is meant, and what is presented to it */
#include "base/err.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/settings.h"
#include <stdlib.h>
#include <string.h>

struct client *cli_client(struct cli *cli)
{
    if (cli->client)
        return cli->client;
    cleanup_settings struct settings settings;
    struct err err;
    if (settings_load(&settings, &err)) {
        cli_fail(EXIT_REFUSED, "%s", err.text);
        return NULL;
    }
    const char *server = cli_value(cli, "server");
    if (!server || !server[0])
        server = getenv("SKEP_SERVER");
    if (!server || !server[0])
        server = settings.server ? settings.server : SETTINGS_SERVER;
    const char *token = getenv("SKEP_TOKEN");
    /* a token is shown to nobody but the server that gave it */
    if (!token || !token[0])
        token = settings.token && settings.server && strcmp(settings.server, server) == 0
                    ? settings.token
                    : NULL;
    cli->client = client_new(server, token);
    return cli->client;
}
