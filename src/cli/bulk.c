#include "cli/bulk.h"
#include "base/memory.h"
#include "cli/ask.h"
#include "cli/print.h"
#include "sys/cleanup.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 1000 };

static const struct {
    const char *option, *key;
} FILTERS[] = {
    {"user", "username"},        {"state", "state"},     {"vc", "vc"},
    {"keyword", "keyword"},      {"tag", "tagsContain"}, {"no-tag", "tagsNotContain"},
    {"priority", "jobPriority"},
};

static const char *const TIMES[] = {"since", "until"};

/* Who is logged in, for "@me". */
static int own_name(struct client *client, struct buf *name)
{
    json_t *json;
    int code = client_get(client, "/api/v2/tokens/check", &json);
    if (!code)
        buf_string(name, field_text(json, "username") ? field_text(json, "username") : "");
    json_decref(json);
    return code;
}

int filter_query(struct cli *cli, struct client *client, struct buf *query)
{
    for (size_t i = 0; i < COUNT_OF(FILTERS); i++) {
        const char *value = cli_value(cli, FILTERS[i].option);
        cleanup_buf struct buf me = BUF_INIT;
        if (!value)
            continue;
        if (i == 0 && strcmp(value, "@me") == 0) {
            int code = own_name(client, &me);
            if (code)
                return code;
            value = buf_cstr(&me);
        }
        buf_format(query, "&%s=", FILTERS[i].key);
        client_encode(query, value);
    }
    for (size_t i = 0; i < COUNT_OF(TIMES); i++) {
        int64_t at_ms;
        int code = cli_time(cli, TIMES[i], &at_ms);
        if (code)
            return code;
        if (at_ms >= 0)
            buf_format(query, "&%s=%lld", TIMES[i], (long long)(at_ms ? at_ms : 1));
    }
    return 0;
}

bool filter_is_given(const struct cli *cli)
{
    bool is_given = cli_flag(cli, "all");
    for (size_t i = 0; i < COUNT_OF(FILTERS); i++)
        is_given |= cli_value(cli, FILTERS[i].option) != NULL;
    for (size_t i = 0; i < COUNT_OF(TIMES); i++)
        is_given |= cli_value(cli, TIMES[i]) != NULL;
    return is_given;
}

int bulk_choice_check(const struct cli *cli, int names)
{
    const char *command = cli->command->name;
    if (filter_is_given(cli) && names)
        return cli_fail(EXIT_USAGE, "%s: either names of jobs, or --all or a filter", command);
    if (!filter_is_given(cli) && !names)
        return cli_fail(EXIT_USAGE, "%s: name a job, or choose with --all or a filter", command);
    if (cli_flag(cli, "dry-run") && names)
        return cli_fail(EXIT_USAGE, "%s: --dry-run goes with --all or a filter", command);
    return 0;
}

/* A request for many jobs counts as many: the next one is let in when the server says. */
static int request_send(struct client *client, const struct client_request *request, json_t **json)
{
    for (;;) {
        cleanup_client_reply struct client_reply reply;
        client_ask(client, request, &reply);
        if (reply.status != 429 || !reply.retry_s)
            return client_result(client, &reply, json);
        print_error("skep: the server takes no more requests of yours now: going on in %d s\n",
                    reply.retry_s);
        for (int left_s = reply.retry_s; left_s > 0; left_s--)
            poll(NULL, 0, 1000);
    }
}

/* One request; `jobs` NULL: those of the query. */
static int bulk_ask(struct client *client, const struct bulk_call *call, const char *query,
                    json_t *jobs, json_t **reply)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_t *ask =
        json_pack("{s:s, s:s*, s:O*}", "action", call->action, "tag", call->tag, "jobs", jobs);
    cleanup_free char *body = json_dumps(ask, JSON_COMPACT);
    json_decref(ask);
    if (!body)
        return cli_fail(EXIT_USAGE, "a tag must be UTF-8");
    buf_format(&path, "/api/v2/bulk/jobs%s", query);
    const struct client_request request = {.method = "POST",
                                           .path = buf_cstr(&path),
                                           .content_type = "application/json",
                                           .body = text_of(body)};
    return request_send(client, &request, reply);
}

/* The names of all jobs that match. They are gathered before anything is done: by what is done the
 * filter finds others. */
static int names_gather(struct cli *cli, const struct bulk_call *call, json_t *names)
{
    cleanup_buf struct buf filter = BUF_INIT;
    int code = filter_query(cli, cli->client, &filter);
    buf_string(&filter, cli_flag(cli, "all") ? "&all=true&dryRun=true" : "&dryRun=true");
    for (size_t count = PAGE; !code && count == PAGE;) {
        cleanup_buf struct buf query = BUF_INIT;
        json_t *reply;
        buf_format(&query, "?limit=%d%s&offset=%zu", PAGE, buf_cstr(&filter),
                   json_array_size(names));
        code = bulk_ask(cli->client, call, buf_cstr(&query), NULL, &reply);
        const json_t *results = json_object_get(reply, "results"), *result;
        size_t i;
        json_array_foreach (results, i, result)
            json_array_append(names, json_object_get(result, "name"));
        count = json_array_size(results);
        json_decref(reply);
    }
    return code;
}

static int results_print(const struct bulk_call *call, const json_t *reply)
{
    const json_t *results = json_object_get(reply, "results"), *result;
    int code = 0;
    size_t i;
    json_array_foreach (results, i, result) {
        const char *name = field_text(result, "name"), *message = field_text(result, "message");
        if (message)
            code = cli_fail(EXIT_REFUSED, "%s: %s", name, message);
        else
            printf("%s %s\n", call->done, name);
    }
    return code;
}

static int names_print(const json_t *names)
{
    size_t i;
    const json_t *name;
    json_array_foreach (names, i, name)
        printf("%s\n", json_string_value(name));
    print_error("skep: %zu jobs match; nothing was done\n", json_array_size(names));
    return 0;
}

/* The first failure counts, and the rest is done nevertheless, unless the server has gone. */
static int names_run(struct client *client, const struct bulk_call *call, const json_t *names)
{
    int first = 0;
    for (size_t begin = 0; begin < json_array_size(names) && first != EXIT_UNREACHABLE;
         begin += PAGE) {
        json_t *part = json_array(), *reply = NULL;
        for (size_t i = begin; i < begin + PAGE && i < json_array_size(names); i++)
            json_array_append(part, json_array_get(names, i));
        int code = bulk_ask(client, call, "", part, &reply);
        if (!code)
            code = results_print(call, reply);
        if (!first)
            first = code;
        json_decref(part);
        json_decref(reply);
    }
    return first;
}

/* Who says --all, and nothing else, may mean less. A script is not asked. */
static bool is_meant(const struct cli *cli, size_t count)
{
    if (!cli_flag(cli, "all") || cli_flag(cli, "yes") || !isatty(STDIN_FILENO))
        return true;
    cleanup_buf struct buf question = BUF_INIT;
    buf_format(&question, "%s: %zu job%s. Go on?", cli->command->name, count,
               count == 1 ? "" : "s");
    return ask_yes(buf_cstr(&question));
}

int bulk_names(struct cli *cli, const struct bulk_call *call, json_t **names)
{
    *names = json_array();
    if (!cli_client(cli))
        return EXIT_REFUSED;
    int code = names_gather(cli, call, *names);
    const size_t count = json_array_size(*names);
    if (code)
        return code;
    if (cli_flag(cli, "dry-run"))
        code = names_print(*names);
    else if (count == 0)
        print_error("skep: no job matches\n");
    else if (is_meant(cli, count))
        return 0;
    else
        code = cli_fail(EXIT_REFUSED, "nothing was done");
    json_array_clear(*names);
    return code;
}

int bulk_run(struct cli *cli, const struct bulk_call *call)
{
    json_t *names;
    int code = bulk_names(cli, call, &names);
    if (!code && json_array_size(names))
        code = names_run(cli->client, call, names);
    json_decref(names);
    return code;
}
