/* quota: how much users may have and do */
#include "cli/account.h"
#include "cli/job.h"
#include "cli/print.h"
#include <stdlib.h>
#include <string.h>

static void quota_path(const struct cli *cli, const char *name, struct buf *path)
{
    account_path(path, cli_flag(cli, "group") ? "groups" : "users", name, "/quota");
}

static void quotas_print(const struct cli *cli, const json_t *quotas)
{
    static const char *const USER[] = {"QUOTA", "VALUE", "USED", "FROM", NULL};
    static const char *const GROUP[] = {"QUOTA", "VALUE", NULL};
    const bool is_group = cli_flag(cli, "group");
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    const char *name;
    json_t *quota;
    table_init(&table, cli->has_colours, is_group ? GROUP : USER);
    json_object_foreach ((json_t *)(uintptr_t)quotas, name, quota) {
        const bool has_value = field_has(quota, "value");
        const char *group = field_text(quota, "group");
        table_cell(&table, name);
        if (has_value)
            table_format(&table, "%lld", (long long)field_int(quota, "value"));
        else
            table_cell(&table, "none");
        if (is_group)
            continue;
        table_format(&table, "%lld", (long long)field_int(quota, "used"));
        if (group)
            table_format(&table, "group %s", group);
        else
            table_cell(&table, has_value ? "user" : NULL);
    }
    table_print(&table, &out);
    print_flush(&out);
}

static int own_name(struct client *client, struct buf *name)
{
    json_auto_t *json = NULL;
    int code = client_get(client, "/api/v2/tokens/check", &json);
    if (!code)
        buf_string(name, field_text(json, "username") ? field_text(json, "username") : "");
    return code;
}

static int quota_show(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf path = BUF_INIT, me = BUF_INIT;
    json_auto_t *json = NULL;
    int code = 0;
    if (cli->argument_count > 1)
        buf_string(&me, cli->arguments[1]);
    else if (cli_flag(cli, "group"))
        code = cli_fail(EXIT_USAGE, "quota show: name the group");
    else
        code = own_name(client, &me);
    if (code)
        return code;
    quota_path(cli, buf_cstr(&me), &path);
    code = client_get(client, buf_cstr(&path), &json);
    if (!code && !print_raw(cli, json))
        quotas_print(cli, json);
    return code;
}

static int quotas_send(const struct cli *cli, struct client *client, json_t *body)
{
    cleanup_buf struct buf path = BUF_INIT;
    quota_path(cli, cli->arguments[1], &path);
    return account_send(client, "PUT", buf_cstr(&path), body, "changed the quotas of",
                        cli->arguments[1]);
}

static int quota_set(struct cli *cli, struct client *client)
{
    json_t *body = json_object();
    for (int i = 2; i < cli->argument_count; i++) {
        struct text value = text_of(cli->arguments[i]), name = text_cut(&value, '=');
        int64_t number;
        if (!value.at || !text_to_int64(value, &number)) {
            json_decref(body);
            return cli_fail(EXIT_USAGE, "quota set: '%s' is not QUOTA=NUMBER", cli->arguments[i]);
        }
        cleanup_buf struct buf key = BUF_INIT;
        buf_text(&key, name);
        json_object_set_new(body, buf_cstr(&key), json_integer(number));
    }
    return quotas_send(cli, client, body);
}

static int quota_unset(struct cli *cli, struct client *client)
{
    json_t *body = json_object();
    for (int i = 2; i < cli->argument_count; i++)
        json_object_set_new(body, cli->arguments[i], json_null());
    return quotas_send(cli, client, body);
}

int run_quota(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"show", 0, 1, quota_show},
        {"set", 2, -1, quota_set},
        {"unset", 2, -1, quota_unset},
        {NULL, 0, 0, NULL},
    };
    if (cli->argument_count == 0) {
        struct client *client = cli_client(cli);
        return client ? quota_show(cli, client) : EXIT_REFUSED;
    }
    return account_run(cli, ACTIONS);
}
