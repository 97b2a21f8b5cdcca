/* group, token */
#include "cli/account.h"
#include "cli/print.h"
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

static void group_row(struct table *table, const json_t *group)
{
    cleanup_buf struct buf names = BUF_INIT;
    const json_t *acls = json_object_get(json_object_get(group, "extension"), "acls");
    table_cell(table, field_text(group, "groupname"));
    table_cell(table, json_is_true(json_object_get(acls, "admin")) ? "yes" : "no");
    table_cell(table, account_joined(json_object_get(acls, "virtualClusters"), &names));
    table_cell(table, field_text(group, "description"));
}

static void groups_print(struct cli *cli, const json_t *groups)
{
    static const char *const HEADS[] = {"GROUP", "ADMINS", "VIRTUAL CLUSTERS", "DESCRIPTION", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, HEADS);
    for (size_t i = 0; i < json_array_size(groups); i++)
        group_row(&table, json_array_get(groups, i));
    table_print(&table, &out);
    print_flush(&out);
}

static int group_list(struct cli *cli, struct client *client)
{
    json_auto_t *json = NULL;
    int code = client_get(client, "/api/v2/groups", &json);
    if (!code && !print_raw(cli, json))
        groups_print(cli, json);
    return code;
}

static int group_show(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *json = NULL;
    account_path(&path, "groups", cli->arguments[1], "");
    int code = client_get(client, buf_cstr(&path), &json);
    if (!code && !print_raw(cli, json)) {
        json_t *one = json_pack("[O]", json);
        groups_print(cli, one);
        json_decref(one);
    }
    return code;
}

static int group_members(struct cli *cli, struct client *client)
{
    static const char *const HEADS[] = {"USER", "ADMIN", "GROUP ADMIN", NULL};
    cleanup_buf struct buf path = BUF_INIT, out = BUF_INIT;
    json_auto_t *json = NULL;
    account_path(&path, "groups", cli->arguments[1], "/userlist");
    int code = client_get(client, buf_cstr(&path), &json);
    if (!code && !print_raw(cli, json)) {
        cleanup_table struct table table;
        table_init(&table, cli->has_colours, HEADS);
        for (size_t i = 0; i < json_array_size(json); i++) {
            const json_t *user = json_array_get(json, i);
            table_cell(&table, field_text(user, "username"));
            table_cell(&table, json_is_true(json_object_get(user, "clusterAdmin")) ? "yes" : "no");
            table_cell(&table, json_is_true(json_object_get(user, "groupAdmin")) ? "yes" : "no");
        }
        table_print(&table, &out);
        print_flush(&out);
    }
    return code;
}

/* Whom the options of add and set give what. */
static int fields_of(struct cli *cli, json_t *body)
{
    const char *description = cli_value(cli, "description"), *clusters = cli_value(cli, "vc");
    const char *external = cli_value(cli, "external-name"), *storages = cli_value(cli, "storages");
    if (description)
        json_object_set_new(body, "description", json_string(description));
    if (external)
        json_object_set_new(body, "externalName", json_string(external));
    json_auto_t *acls = json_object();
    if (clusters)
        json_object_set_new(acls, "virtualClusters", names_split(clusters));
    if (storages)
        json_object_set_new(acls, "storageConfigs", names_split(storages));
    int code = account_choice(cli, "admin", acls, "admin");
    if (!code && json_object_size(acls))
        json_object_set_new(body, "extension", json_pack("{s:O}", "acls", acls));
    return code;
}

static int group_add(struct cli *cli, struct client *client)
{
    const char *name = cli->arguments[1];
    json_t *body = json_pack("{s:s}", "groupname", name);
    int code = body ? fields_of(cli, body) : cli_fail(EXIT_USAGE, "a name must be UTF-8");
    if (!code)
        code =
            account_send(client, "POST", "/api/v2/groups", json_incref(body), "added group", name);
    json_decref(body);
    return code;
}

/* The rights that are not named stay: they are sent along as they are. */
static int rights_complete(struct client *client, const char *name, json_t *data)
{
    json_t *acls = json_object_get(json_object_get(data, "extension"), "acls"), *json = NULL;
    cleanup_buf struct buf path = BUF_INIT;
    if (!acls)
        return 0;
    account_path(&path, "groups", name, "");
    int code = client_get(client, buf_cstr(&path), &json);
    if (!code)
        json_object_update_missing(acls,
                                   json_object_get(json_object_get(json, "extension"), "acls"));
    json_decref(json);
    return code;
}

static int group_set(struct cli *cli, struct client *client)
{
    const char *name = cli->arguments[1];
    json_t *data = json_pack("{s:s}", "groupname", name);
    int code = data ? fields_of(cli, data) : cli_fail(EXIT_USAGE, "a name must be UTF-8");
    if (!code && json_object_size(data) < 2)
        code = cli_fail(EXIT_USAGE, "group set: name what to change; see: skep help group");
    if (!code)
        code = rights_complete(client, name, data);
    if (!code)
        code = account_send(client, "PUT", "/api/v2/groups",
                            json_pack("{s:b,s:O}", "patch", true, "data", data), "changed group",
                            name);
    json_decref(data);
    return code;
}

static int group_remove(struct cli *cli, struct client *client)
{
    int first = 0;
    for (int i = 1; i < cli->argument_count; i++) {
        cleanup_buf struct buf path = BUF_INIT;
        account_path(&path, "groups", cli->arguments[i], "");
        int code = account_send(client, "DELETE", buf_cstr(&path), NULL, "removed group",
                                cli->arguments[i]);
        if (code && !first)
            first = code;
    }
    return first;
}

/* GROUP USER… */
static int members_change(struct cli *cli, struct client *client, const char *method,
                          const char *done)
{
    int first = 0;
    for (int i = 2; i < cli->argument_count; i++) {
        cleanup_buf struct buf path = BUF_INIT;
        json_t *body = json_pack("{s:s}", "groupname", cli->arguments[1]);
        int code = body ? account_choice(cli, "admin", body, "admin")
                        : cli_fail(EXIT_USAGE, "a name must be UTF-8");
        account_path(&path, "users", cli->arguments[i], "/group");
        if (code)
            json_decref(body);
        else
            code = account_send(client, method, buf_cstr(&path), body, done, cli->arguments[i]);
        if (code && !first)
            first = code;
    }
    return first;
}

static int group_join(struct cli *cli, struct client *client)
{
    return members_change(cli, client, "PUT", "put in");
}

static int group_leave(struct cli *cli, struct client *client)
{
    return members_change(cli, client, "DELETE", "took out");
}

int run_group(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"list", 0, 0, group_list},
        {"show", 1, 1, group_show},
        {"members", 1, 1, group_members},
        {"add", 1, 1, group_add},
        {"set", 1, 1, group_set},
        {"remove", 1, -1, group_remove},
        {"join", 2, -1, group_join},
        {"leave", 2, -1, group_leave},
        {NULL, 0, 0, NULL},
    };
    return account_run(cli, ACTIONS);
}

/* ---- tokens ---- */

static int token_list(struct cli *cli, struct client *client)
{
    static const char *const HEADS[] = {"TOKEN", "KIND", "SCOPE", "MADE", "EXPIRES", NULL};
    json_auto_t *json = NULL;
    int code = client_get(client, "/api/v2/tokens", &json);
    const json_t *details = json_object_get(json, "details");
    if (!code && !print_raw(cli, details)) {
        cleanup_table struct table table;
        cleanup_buf struct buf out = BUF_INIT, time = BUF_INIT;
        table_init(&table, cli->has_colours, HEADS);
        for (size_t i = 0; i < json_array_size(details); i++) {
            const json_t *token = json_array_get(details, i);
            table_cell(&table, field_text(token, "id"));
            table_cell(&table, json_is_true(json_object_get(token, "application")) ? "application"
                                                                                   : "browser");
            table_cell(&table, field_text(token, "scope"));
            buf_clear(&time);
            print_time(&time, field_int(token, "createdTime"));
            table_cell(&table, buf_cstr(&time));
            buf_clear(&time);
            print_time(&time, field_int(token, "expiresTime"));
            table_cell(&table, buf_cstr(&time));
        }
        table_print(&table, &out);
        print_flush(&out);
    }
    return code;
}

static int token_create(struct cli *cli, struct client *client)
{
    const char *scope = cli_value(cli, "scope");
    long life_s;
    json_t *body = json_object(), *json = NULL;
    int code = cli_number(cli, "expires", 60, 315360000, 0, &life_s);
    if (scope)
        json_object_set_new(body, "scope", json_string(scope));
    if (!code && life_s)
        json_object_set_new(body, "expiration", json_integer(life_s));
    char *text = code ? NULL : json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!code && !text)
        code = cli_fail(EXIT_USAGE, "a scope must be UTF-8");
    if (!code)
        code = client_call(client,
                           &(struct client_request){.method = "POST",
                                                    .path = "/api/v2/tokens/application",
                                                    .content_type = "application/json",
                                                    .body = text_of(text)},
                           &json);
    free(text);
    if (!code && !print_raw(cli, json))
        printf("%s\n", json_string_value(json_object_get(json, "token")));
    json_decref(json);
    return code;
}

static int token_revoke(struct cli *cli, struct client *client)
{
    int first = 0;
    for (int i = 1; i < cli->argument_count; i++) {
        cleanup_buf struct buf path = BUF_INIT;
        account_path(&path, "tokens", cli->arguments[i], "");
        int code = account_send(client, "DELETE", buf_cstr(&path), NULL, "revoked token",
                                cli->arguments[i]);
        if (code && !first)
            first = code;
    }
    return first;
}

int run_token(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"list", 0, 0, token_list},
        {"create", 0, 0, token_create},
        {"revoke", 1, -1, token_revoke},
        {NULL, 0, 0, NULL},
    };
    return account_run(cli, ACTIONS);
}
