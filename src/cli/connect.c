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
        server = settings.server ? settings.server : settings_server();
    const char *token = getenv("SKEP_TOKEN");
    bool is_kept = settings.server && strcmp(settings.server, server) == 0;
    /* a token is shown to nobody but the server that gave it */
    if (!token || !token[0])
        token = is_kept ? settings.token : NULL;
    cli->client = client_new(server, token, is_kept ? settings.fingerprint : NULL);
    return cli->client;
}
