/* use */
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "cli/use.h"
#include <stdlib.h>
#include <string.h>

static bool has_unicode(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return strstr(value, "UTF-8") || strstr(value, "utf8");
    }
    return false;
}

static int use_path(struct cli *cli, struct buf *path)
{
    const char *node = cli_value(cli, "node");
    const char *role = cli_value(cli, "role");
    long index, attempt;
    int code = cli_number(cli, "index", 0, 1L << 20, -1, &index);
    if (!code)
        code = cli_number(cli, "attempt", 0, 1L << 31, -1, &attempt);
    if (code)
        return code;
    if ((node != NULL) == (cli->argument_count == 1))
        return cli_fail(EXIT_USAGE, "use: name a job, or a node with --node");
    if (node && (role || index >= 0 || attempt >= 0))
        return cli_fail(EXIT_USAGE, "use: --role, --index and --attempt are those of a job");
    if (index >= 0 && !role)
        return cli_fail(EXIT_USAGE, "use: --index is that of a task role: name it with --role");
    if (node)
        node_path(path, node, "/use");
    else
        job_path(path, cli->arguments[0], "/use");
    buf_format(path, "?resolution=%s", cli_flag(cli, "recent") ? "recent" : "whole");
    if (role) {
        buf_string(path, "&role=");
        client_encode(path, role);
    }
    if (index >= 0)
        buf_format(path, "&index=%ld", index);
    if (attempt >= 0)
        buf_format(path, "&jobAttempt=%ld", attempt);
    return 0;
}

int run_use(struct cli *cli)
{
    cleanup_buf struct buf path = BUF_INIT, out = BUF_INIT;
    json_auto_t *json = NULL;
    int code = use_path(cli, &path);
    struct client *client = code ? NULL : cli_client(cli);
    if (!code && !client)
        return EXIT_REFUSED;
    if (!code)
        code = client_get(client, buf_cstr(&path), &json);
    if (!code && !print_raw(cli, json)) {
        use_print(&out, json, has_unicode(), cli->has_colours);
        print_flush(&out);
    }
    return code;
}
