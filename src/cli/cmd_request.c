/* request: what users and visitors ask administrators for */
#include "cli/account.h"
#include "cli/ask.h"
#include "cli/job.h"
#include "cli/print.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REQUESTS "/api/v2/requests"

/* "virtual cluster vc1", "account" */
static void wish_cell(struct table *table, const json_t *request)
{
    const char *cluster = field_text(request, "virtualCluster");
    if (cluster)
        table_format(table, "virtual cluster %s", cluster);
    else
        table_cell(table, json_is_true(json_object_get(request, "nameTaken"))
                              ? "account (the name is taken)"
                          : json_is_true(json_object_get(request, "nameUsedBefore"))
                              ? "account (the name was used before)"
                              : "account");
}

/* "accepted by root (lab)", "open" */
static void state_cell(struct table *table, const json_t *request)
{
    const char *state = field_text(request, "status"), *by = field_text(request, "decidedBy"),
               *group = field_text(request, "group");
    if (!by)
        table_cell(table, state);
    else
        table_format(table, "%s by %s%s%s%s", state, by, group ? " (" : "", group ? group : "",
                     group ? ")" : "");
}

static void requests_print(const struct cli *cli, const json_t *requests)
{
    static const char *const HEADS[] = {"REQUEST", "USER",   "FOR",    "STATE",
                                        "ASKED",   "REASON", "ANSWER", NULL};
    static const char *const WIDE[] = {"REQUEST", "USER",   "FOR",  "STATE",   "ASKED",
                                       "REASON",  "ANSWER", "MAIL", "ADDRESS", NULL};
    const bool is_wide = cli->output == OUTPUT_WIDE;
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    const json_t *request;
    size_t i;
    table_init(&table, cli->has_colours, is_wide ? WIDE : HEADS);
    json_array_foreach (requests, i, request) {
        cleanup_buf struct buf asked = BUF_INIT;
        print_time(&asked, field_int(request, "askedTime"));
        table_cell(&table, field_text(request, "id"));
        table_cell(&table, field_text(request, "username"));
        wish_cell(&table, request);
        state_cell(&table, request);
        table_cell(&table, buf_cstr(&asked));
        table_cell(&table, field_text(request, "reason"));
        table_cell(&table, field_text(request, "answer"));
        if (is_wide) {
            table_cell(&table, field_text(request, "email"));
            table_cell(&table, field_text(request, "address"));
        }
    }
    table_print(&table, &out);
    print_flush(&out);
}

static void query_put(const struct cli *cli, const char *option, const char *key, struct buf *path)
{
    const char *value = cli_value(cli, option);
    if (!value)
        return;
    buf_format(path, "&%s=", key);
    client_encode(path, value);
}

/* All pages into one list. */
static int list_read(const struct cli *cli, struct client *client, json_t *all)
{
    cleanup_buf struct buf cursor = BUF_INIT;
    bool has_more = true;
    int code = 0;
    while (!code && has_more) {
        cleanup_buf struct buf path = BUF_INIT;
        json_auto_t *page = NULL;
        buf_format(&path, REQUESTS "?limit=1000&cursor=%s", buf_cstr(&cursor));
        query_put(cli, "status", "status", &path);
        query_put(cli, "user", "username", &path);
        code = client_get(client, buf_cstr(&path), &page);
        json_array_extend(all, json_object_get(page, "data"));
        has_more = field_has(page, "cursor");
        buf_clear(&cursor);
        if (has_more)
            buf_string(&cursor, field_text(page, "cursor"));
    }
    return code;
}

static int request_list(struct cli *cli, struct client *client)
{
    json_auto_t *all = json_array();
    int code = list_read(cli, client, all);
    if (!code && !print_raw(cli, all))
        requests_print(cli, all);
    return code;
}

/* The reply of a request that is made is printed with its id. */
static int request_ask(struct cli *cli, struct client *client)
{
    const char *cluster = cli->arguments[1], *reason = cli_value(cli, "reason");
    json_auto_t *body = json_pack("{s:s}", "virtualCluster", cluster), *json = NULL;
    if (body && reason)
        json_object_set_new(body, "reason", json_string(reason));
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    if (!text)
        return cli_fail(EXIT_USAGE, "names and texts must be UTF-8");
    int code = client_call(client,
                           &(struct client_request){.method = "POST",
                                                    .path = REQUESTS,
                                                    .content_type = "application/json",
                                                    .body = text_of(text)},
                           &json);
    free(text);
    if (!code && !print_raw(cli, json))
        printf("asked for the virtual cluster %s: request %s\n", cluster, field_text(json, "id"));
    return code;
}

static int request_account(struct cli *cli, struct client *client)
{
    const char *name = cli->arguments[1], *email = cli_value(cli, "email"),
               *reason = cli_value(cli, "reason");
    char *password = NULL;
    if (!email)
        return cli_fail(EXIT_USAGE, "request account: give your mail address with --email");
    int code = ask_password(cli, &password);
    json_t *body =
        code ? NULL
             : json_pack("{s:s,s:s,s:s}", "username", name, "email", email, "password", password);
    ask_forget(password);
    if (code)
        return code;
    if (!body)
        return cli_fail(EXIT_USAGE, "names and texts must be UTF-8");
    if (reason)
        json_object_set_new(body, "reason", json_string(reason));
    return account_send(client, "POST", REQUESTS "/account", body, "asked for the account", name);
}

/* Of each request that is named; one failure does not keep the others out. */
static int decide(struct cli *cli, struct client *client, const char *status, const char *done)
{
    const char *reason = cli_value(cli, "reason"), *group = cli_value(cli, "group");
    int worst = 0;
    for (int i = 1; i < cli->argument_count; i++) {
        cleanup_buf struct buf path = BUF_INIT;
        json_t *body = json_pack("{s:s}", "status", status);
        if (reason)
            json_object_set_new(body, "reason", json_string(reason));
        if (group)
            json_object_set_new(body, "group", json_string(group));
        if (cli_flag(cli, "reuse-name"))
            json_object_set_new(body, "reuseName", json_true());
        account_path(&path, "requests", cli->arguments[i], "/status");
        int code = account_send(client, "PUT", buf_cstr(&path), body, done, cli->arguments[i]);
        worst = worst ? worst : code;
    }
    return worst;
}

static int request_withdraw(struct cli *cli, struct client *client)
{
    return decide(cli, client, "withdrawn", "withdrew");
}

static int request_accept(struct cli *cli, struct client *client)
{
    return decide(cli, client, "accepted", "accepted");
}

static int request_refuse(struct cli *cli, struct client *client)
{
    if (!cli_value(cli, "reason"))
        return cli_fail(EXIT_USAGE, "request refuse: say why with --reason");
    return decide(cli, client, "refused", "refused");
}

/* Which options go with which action: what one would leave aside is refused. */
static int options_check(const struct cli *cli)
{
    static const struct {
        const char *option, *actions;
    } GOES[] = {
        {"reason", " ask account accept refuse "},
        {"group", " accept "},
        {"reuse-name", " accept "},
        {"status", " list "},
        {"user", " list "},
        {"email", " account "},
        {"password-stdin", " account "},
    };
    cleanup_buf struct buf action = BUF_INIT;
    buf_format(&action, " %s ", cli->arguments[0]);
    for (size_t i = 0; i < sizeof GOES / sizeof *GOES; i++)
        if (cli_flag(cli, GOES[i].option) && !strstr(GOES[i].actions, buf_cstr(&action)))
            return cli_fail(EXIT_USAGE,
                            "request %s: --%s does not go with it; see: skep help request",
                            cli->arguments[0], GOES[i].option);
    return 0;
}

int run_request(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"list", 0, 0, request_list},
        {"ask", 1, 1, request_ask},
        {"withdraw", 1, -1, request_withdraw},
        {"account", 1, 1, request_account},
        {"accept", 1, -1, request_accept},
        {"refuse", 1, -1, request_refuse},
        {NULL, 0, 0, NULL},
    };
    const int code = options_check(cli);
    return code ? code : account_run(cli, ACTIONS);
}
