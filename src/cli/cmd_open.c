/* open: what a running task serves on one of its ports, in a browser. */
#include "base/text.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "cli/web_page.h"
#include <stdlib.h>

enum { OFFSET_MAX = 999 };

static int request_fill(const struct cli *cli, json_t *request)
{
    const char *label = cli_value(cli, "port"), *path = cli_value(cli, "path");
    long offset;
    int code = cli_number(cli, "offset", 0, OFFSET_MAX, 0, &offset);
    if (code)
        return code;
    if (json_object_set_new(request, "label", json_string(label ? label : "http")) < 0 ||
        (path && json_object_set_new(request, "path", json_string(path)) < 0))
        return cli_fail(EXIT_USAGE, "the port or the path is not UTF-8");
    json_object_set_new(request, "offset", json_integer(offset));
    return cli->argument_count > 1 ? job_task_put(cli->arguments[1], request) : 0;
}

static int way_in(struct cli *cli, struct client *client, const json_t *request)
{
    cleanup_buf struct buf path = BUF_INIT;
    char *body = json_dumps(request, JSON_COMPACT);
    json_auto_t *reply = NULL;
    job_path(&path, cli->arguments[0], "/webPorts");
    const struct client_request post = {.method = "POST",
                                        .path = buf_cstr(&path),
                                        .content_type = "application/json",
                                        .body = text_of(body)};
    int code = client_call(client, &post, &reply);
    const char *uri = field_text(reply, "uri");
    if (!code && !web_page_is_good(uri))
        code = cli_fail(EXIT_REFUSED, "the server named no address");
    if (!code && !print_raw(cli, reply)) {
        cleanup_buf struct buf line = BUF_INIT;
        buf_format(&line, "%s\n", uri);
        print_flush(&line);
        if (!cli_flag(cli, "print"))
            web_page_open(uri);
    }
    free(body);
    return code;
}

int run_open(struct cli *cli)
{
    struct client *client = cli_client(cli);
    json_auto_t *request = json_object();
    int code = request_fill(cli, request);
    if (!code)
        code = client ? way_in(cli, client, request) : EXIT_REFUSED;
    return code;
}
