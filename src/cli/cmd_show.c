/* list, config, logs, events */
#include "base/memory.h"
#include "base/printable.h"
#include "cli/bulk.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/log_search.h"
#include "cli/print.h"
#include "cli/settings.h"
#include "sys/clock.h"
#include <string.h>
#include <unistd.h>

/* ---- list ---- */

static void query_add(struct buf *path, const char *key, const char *value)
{
    if (!value)
        return;
    buf_format(path, "%c%s=", strchr(buf_cstr(path), '?') ? '&' : '?', key);
    client_encode(path, value);
}

static int list_path(struct cli *cli, struct client *client, struct buf *path)
{
    long limit, offset;
    int code = cli_number(cli, "limit", 1, 50000, 20, &limit);
    if (!code)
        code = cli_number(cli, "offset", 0, 1L << 40, 0, &offset);
    if (code)
        return code;
    buf_format(path, "/api/v2/jobs?withTotalCount=true&limit=%ld&offset=%ld", limit, offset);
    query_add(path, "order", cli_value(cli, "order"));
    return filter_query(cli, client, path);
}

/* From its start to its end, or to now. */
static int64_t run_time(const json_t *job)
{
    int64_t from = field_int(job, "launchedTime"), to = field_int(job, "completedTime");
    return from ? (to ? to : clock_unix_ms()) - from : -1;
}

static void list_row(const json_t *job, struct table *table, bool is_wide)
{
    cleanup_buf struct buf text = BUF_INIT;
    table_format(table, "%s~%s", field_text(job, "username"), field_text(job, "name"));
    table_cell(table, field_text(job, "state"));
    table_cell(table, field_text(job, "virtualCluster"));
    table_format(table, "%lld", (long long)field_int(job, "totalTaskNumber"));
    table_format(table, "%lld", (long long)field_int(job, "totalGpuNumber"));
    table_format(table, "%lld", (long long)field_int(job, "retries"));
    print_time(&text, field_int(job, "submissionTime"));
    table_cell(table, buf_cstr(&text));
    buf_clear(&text);
    print_duration(&text, run_time(job));
    table_cell(table, buf_cstr(&text));
    if (is_wide) {
        table_cell(table, field_text(job, "jobPriority"));
        if (field_has(job, "appExitCode"))
            table_format(table, "%lld", (long long)field_int(job, "appExitCode"));
        else
            table_cell(table, NULL);
        table_cell(table, field_text(job, "subState"));
        buf_clear(&text);
        const json_t *tags = json_object_get(job, "tags");
        for (size_t i = 0; i < json_array_size(tags); i++)
            buf_format(&text, "%s%s", i ? "," : "", item_text(tags, i));
        table_cell(table, buf_cstr(&text));
    }
}

static void list_print(struct cli *cli, const json_t *json)
{
    static const char *const HEADS[] = {"JOB",     "STATE",     "VC",   "TASKS", "GPUS",
                                        "RETRIES", "SUBMITTED", "TIME", NULL};
    static const char *const WIDE[] = {"JOB",      "STATE",     "VC",   "TASKS",    "GPUS",
                                       "RETRIES",  "SUBMITTED", "TIME", "PRIORITY", "EXIT",
                                       "SUBSTATE", "TAGS",      NULL};
    const json_t *data = json_object_get(json, "data");
    bool is_wide = cli->output == OUTPUT_WIDE;
    cleanup_table struct table table;
    table_init(&table, cli->has_colours, is_wide ? WIDE : HEADS);
    for (size_t i = 0; i < json_array_size(data); i++)
        list_row(json_array_get(data, i), &table, is_wide);
    cleanup_buf struct buf out = BUF_INIT;
    table_print(&table, &out);
    print_flush(&out);
    int64_t total = field_int(json, "totalCount");
    if (total > (int64_t)json_array_size(data))
        fprintf(stderr, "%zu of %lld jobs; more with --limit and --offset\n", json_array_size(data),
                (long long)total);
}

static void list_names(const json_t *data)
{
    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *job = json_array_get(data, i);
        printf("%s~%s\n", field_text(job, "username"), field_text(job, "name"));
    }
}

int run_list(struct cli *cli)
{
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *json = NULL;
    int code = list_path(cli, client, &path);
    if (!code)
        code = client_get(client, buf_cstr(&path), &json);
    if (!code && cli_flag(cli, "quiet"))
        list_names(json_object_get(json, "data"));
    else if (!code && !print_raw(cli, json_object_get(json, "data")))
        list_print(cli, json);
    return code;
}

/* ---- config, logs ---- */

/* As it is, to be submitted again; to a terminal without what that would obey. */
static void config_print(struct buf *config)
{
    cleanup_buf struct buf shown = BUF_INIT;
    if (isatty(STDOUT_FILENO)) {
        printable_put(&shown, buf_as_text(config));
        print_flush(&shown);
    } else {
        print_flush(config);
    }
}

int run_config(struct cli *cli)
{
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    cleanup_buf struct buf path = BUF_INIT;
    cleanup_client_reply struct client_reply reply;
    job_path(&path, cli->arguments[0], "/config");
    client_ask(client, &(struct client_request){.method = "GET", .path = buf_cstr(&path)}, &reply);
    int code = 0;
    if (reply.status == 200)
        config_print(&reply.body);
    else
        code = client_explain(client, &reply, NULL);
    return code;
}

static bool write_out(void *context, const char *bytes, size_t length)
{
    (void)context;
    return fwrite(bytes, 1, length, stdout) == length && fflush(stdout) == 0;
}

/* "worker-0, worker-1 … worker-7, ps-0": what --role and --index may name. */
static void tasks_name(const json_t *roles, struct buf *out)
{
    const char *role;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)roles, role, value) {
        size_t count = json_array_size(json_object_get(value, "taskStatuses"));
        buf_format(out, "%s%s", out->length ? ", " : "", role);
        if (count > 1)
            buf_format(out, " (index 0 to %zu)", count - 1);
    }
}

/* Which task is meant, when nobody said: the only one. `role` is the caller's to free. */
static int only_task(struct client *client, const char *job, long attempt, char **role)
{
    cleanup_buf struct buf rest = BUF_INIT, path = BUF_INIT, names = BUF_INIT;
    json_auto_t *detail = NULL;
    buf_format(&rest, "/attempts/%ld", attempt);
    job_path(&path, job, buf_cstr(&rest));
    int code = client_get(client, buf_cstr(&path), &detail);
    const json_t *roles = json_object_get(detail, "taskRoles");
    void *first = json_object_iter((json_t *)(uintptr_t)roles);
    *role = NULL;
    if (!code && first && json_object_size(roles) == 1 &&
        json_array_size(json_object_get(json_object_iter_value(first), "taskStatuses")) == 1) {
        *role = mem_copy(json_object_iter_key(first));
    } else if (!code) {
        tasks_name(roles, &names);
        code = cli_fail(EXIT_USAGE,
                        "the job has several tasks: name one with --role and --index; there are %s",
                        buf_cstr(&names));
    }
    return code;
}

static int attempt_log(struct client *client, const char *job, const struct log_options *options,
                       long attempt, long task_attempt)
{
    cleanup_buf struct buf rest = BUF_INIT, path = BUF_INIT;
    buf_format(&rest, "/attempts/%ld/taskRoles/", attempt);
    client_encode(&rest, options->role);
    buf_string(&rest, "/taskIndex/");
    client_encode(&rest, options->index ? options->index : "0");
    buf_format(&rest, "/attempts/%ld/logs/%s", task_attempt,
               options->stream ? options->stream : "all");
    if (options->tail_lines >= 0)
        buf_format(&rest, "?tail-lines=%ld", options->tail_lines);
    else if (options->since_ms >= 0)
        buf_format(&rest, "?since=%lld", (long long)options->since_ms);
    job_path(&path, job, buf_cstr(&rest));
    struct client_stream stream = {.take = write_out};
    int code = client_follow(client, buf_cstr(&path), &stream);
    job_log_removed(&stream);
    if (stream.is_broken)
        code = client_unreachable(client, "the connection broke");
    return code;
}

/* The log of an attempt that is named by its numbers. */
static int old_log(struct cli *cli, struct client *client, struct log_options *options,
                   long attempt)
{
    char *only = NULL;
    long task_attempt;
    int code = cli_number(cli, "task-attempt", 0, UINT32_MAX, 0, &task_attempt);
    if (!code && !options->role) {
        code = only_task(client, cli->arguments[0], attempt, &only);
        options->role = only;
    }
    if (!code)
        code = attempt_log(client, cli->arguments[0], options, attempt, task_attempt);
    mem_free(only);
    return code;
}

int run_logs(struct cli *cli)
{
    struct client *client = cli_client(cli);
    struct log_options options = {.role = cli_value(cli, "role"),
                                  .index = cli_value(cli, "index"),
                                  .stream = cli_value(cli, "stream"),
                                  .is_follow = cli_flag(cli, "follow")};
    long attempt;
    if (!client)
        return EXIT_REFUSED;
    int code = cli_number(cli, "tail", 0, 100000, -1, &options.tail_lines);
    if (!code)
        code = cli_number(cli, "attempt", 0, UINT32_MAX, -1, &attempt);
    if (!code)
        code = cli_time(cli, "since", &options.since_ms);
    if (!code && options.since_ms >= 0 && options.tail_lines >= 0)
        code = cli_fail(EXIT_USAGE, "a log begins at --since or with its --tail: give one of them");
    if (code)
        return code;
    if (cli_value(cli, "search") || cli_value(cli, "expression"))
        return logs_search(cli, client);
    if (attempt >= 0)
        return old_log(cli, client, &options, attempt);
    return job_log(client, cli->arguments[0], &options);
}

/* ---- events ---- */

/* What happened; without the word that says of which kind it is where the message opens with it. */
static const char *event_message(const json_t *event, const char *reason)
{
    const char *message = field_text(event, "message");
    size_t length = reason ? strlen(reason) : 0;
    if (message && length && !strncasecmp(message, reason, length) && message[length] == ':')
        message += length + 1 + strspn(message + length + 1, " ");
    return message;
}

static void event_line(struct cli *cli, const json_t *event, struct buf *out)
{
    if (cli->output == OUTPUT_JSON) {
        print_json_line(out, event);
        return;
    }
    if (cli->output == OUTPUT_YAML) {
        buf_string(out, "---\n");
        print_yaml(out, event);
        return;
    }
    const char *type = field_text(event, "type");
    print_time(out, field_instant(event, "firstTimestamp"));
    buf_string(out, "  ");
    print_state(out, type ? type : "-", cli->has_colours);
    const char *reason = field_text(event, "reason");
    buf_format(out, "%*s%s: %s\n", type && type[0] == 'N' ? 3 : 2, "", reason,
               event_message(event, reason));
}

struct event_lines {
    struct cli *cli;
    struct buf line, out;
};

static bool event_take(void *context, const char *bytes, size_t length)
{
    struct event_lines *lines = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n') {
            buf_char(&lines->line, bytes[i]);
            continue;
        }
        json_t *event = json_loads(buf_cstr(&lines->line), 0, NULL);
        buf_clear(&lines->line);
        if (event)
            event_line(lines->cli, event, &lines->out);
        json_decref(event);
    }
    print_flush(&lines->out);
    return true;
}

static int events_follow(struct cli *cli, struct client *client, const char *path)
{
    struct event_lines lines = {.cli = cli};
    struct client_stream stream = {.take = event_take, .context = &lines};
    int code = client_follow(client, path, &stream);
    if (stream.is_broken)
        code = client_unreachable(client, code == EXIT_UNREACHABLE ? "connection refused"
                                                                   : "the connection broke");
    buf_release(&lines.line);
    buf_release(&lines.out);
    return code;
}

int run_events(struct cli *cli)
{
    struct client *client = cli_client(cli);
    long limit;
    if (!client)
        return EXIT_REFUSED;
    int code = cli_number(cli, "limit", 1, 100000, 1000, &limit);
    if (code)
        return code;
    cleanup_buf struct buf path = BUF_INIT, out = BUF_INIT, number = BUF_INIT;
    buf_format(&number, "%ld", limit);
    job_path(&path, cli->arguments[0], "/events");
    query_add(&path, "type", cli_value(cli, "type"));
    if (cli_flag(cli, "follow")) {
        query_add(&path, "follow", "true");
        code = events_follow(cli, client, buf_cstr(&path));
    } else {
        json_t *json = NULL;
        query_add(&path, "limit", buf_cstr(&number));
        code = client_get(client, buf_cstr(&path), &json);
        const json_t *data = json_object_get(json, "data");
        if (!code && !print_raw(cli, data))
            for (size_t i = json_array_size(data); i-- > 0;)
                event_line(cli, json_array_get(data, i), &out);
        print_flush(&out);
        json_decref(json);
    }
    return code;
}
