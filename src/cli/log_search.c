#include "cli/log_search.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/job.h"
#include "cli/print.h"
#include <string.h>

static void option_add(struct buf *query, const char *name, const char *value)
{
    if (!value)
        return;
    buf_format(query, "&%s=", name);
    client_encode(query, value);
}

/* Only what differs from the usual is named: the attempts, when there was more than one. */
static void place_print(struct buf *out, const json_t *match, int64_t line, char mark)
{
    long long attempt = field_int(match, "attempt"), own = field_int(match, "taskAttempt");
    buf_format(out, "%s-%lld", field_text(match, "role"), (long long)field_int(match, "index"));
    if (attempt || own)
        buf_format(out, " %lld.%lld", attempt, own);
    buf_format(out, "%c%lld%c ", mark, (long long)line, mark);
}

static void lines_print(struct buf *out, const json_t *match, const char *key, int64_t first)
{
    size_t i;
    const json_t *line;
    json_array_foreach (json_object_get(match, key), i, line) {
        place_print(out, match, first + (int64_t)i, '-');
        buf_format(out, "%s\n", json_string_value(line));
    }
}

static void match_print(const json_t *match)
{
    cleanup_buf struct buf out = BUF_INIT;
    int64_t line = field_int(match, "line");
    size_t before = json_array_size(json_object_get(match, "before"));
    bool has_context = json_object_get(match, "before") != NULL;
    lines_print(&out, match, "before", line - (int64_t)before);
    place_print(&out, match, line, ':');
    buf_format(&out, "%s\n", field_text(match, "text"));
    lines_print(&out, match, "after", line + 1);
    if (has_context)
        buf_string(&out, "--\n");
    fwrite(buf_cstr(&out), 1, out.length, stdout);
}

static void unread_print(const json_t *log)
{
    const char *message = field_text(log, "message");
    print_error("skep: the log of %s-%lld, attempt %lld.%lld, could not be read: %s\n",
                field_text(log, "role"), (long long)field_int(log, "index"),
                (long long)field_int(log, "attempt"), (long long)field_int(log, "taskAttempt"),
                message ? message : "");
}

/* Lines that matched, and logs that could not be read. */
struct found {
    size_t lines, unread;
};

/* One page of the reply; the cursor of the next into `cursor`, "" at the end. */
static int page_print(struct text body, struct buf *cursor, struct found *found)
{
    buf_clear(cursor);
    while (body.at && body.length) {
        struct text line = text_cut(&body, '\n');
        json_t *json = json_loadb(line.at, line.length, 0, NULL);
        const char *type = field_text(json, "type"), *next = field_text(json, "cursor");
        if (!type) {
            json_decref(json);
            return cli_fail(EXIT_REFUSED, "the server's reply breaks off");
        }
        if (strcmp(type, "match") == 0) {
            match_print(json);
            found->lines++;
        } else if (strcmp(type, "unread") == 0) {
            unread_print(json);
            found->unread++;
        } else if (next) {
            buf_string(cursor, next);
        }
        json_decref(json);
    }
    return 0;
}

int logs_search(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf query = BUF_INIT, cursor = BUF_INIT;
    struct found found = {0};
    buf_string(&query, "/logs/search?limit=1000");
    option_add(&query, "q", cli_value(cli, "search"));
    option_add(&query, "re", cli_value(cli, "expression"));
    option_add(&query, "role", cli_value(cli, "role"));
    option_add(&query, "index", cli_value(cli, "index"));
    option_add(&query, "attempt", cli_value(cli, "attempt"));
    option_add(&query, "stream", cli_value(cli, "stream"));
    option_add(&query, "context", cli_value(cli, "around"));
    option_add(&query, "ignoreCase", cli_flag(cli, "ignore-case") ? "true" : NULL);
    do {
        cleanup_buf struct buf path = BUF_INIT;
        cleanup_client_reply struct client_reply reply;
        job_path(&path, cli->arguments[0], buf_cstr(&query));
        if (cursor.length)
            option_add(&path, "cursor", buf_cstr(&cursor));
        client_ask(client, &(struct client_request){.method = "GET", .path = buf_cstr(&path)},
                   &reply);
        int code = reply.status == 200 ? page_print(buf_as_text(&reply.body), &cursor, &found)
                                       : client_explain(client, &reply, NULL);
        if (code)
            return code;
    } while (cursor.length);
    return found.lines && !found.unread ? EXIT_OK : EXIT_REFUSED;
}
