/* user, whoami */
#include "base/memory.h"
#include "cli/account.h"
#include "cli/ask.h"
#include "cli/csv.h"
#include "cli/job.h"
#include "cli/print.h"
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static void user_row(struct table *table, const json_t *user)
{
    cleanup_buf struct buf names = BUF_INIT;
    table_cell(table, field_text(user, "username"));
    table_cell(table, json_is_true(json_object_get(user, "admin")) ? "yes" : "no");
    table_cell(table, json_is_true(json_object_get(user, "active")) ? "yes" : "no");
    table_cell(table, account_joined(json_object_get(user, "grouplist"), &names));
    table_cell(table, account_joined(json_object_get(user, "virtualCluster"), &names));
    table_cell(table, field_text(user, "email"));
}

static const char *const USER_HEADS[] = {"USER",  "ADMIN", "ACTIVE", "GROUPS", "VIRTUAL CLUSTERS",
                                         "EMAIL", NULL};

static void users_print(struct cli *cli, const json_t *users)
{
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, USER_HEADS);
    for (size_t i = 0; i < json_array_size(users); i++)
        user_row(&table, json_array_get(users, i));
    table_print(&table, &out);
    print_flush(&out);
}

static int user_list(struct cli *cli, struct client *client)
{
    json_auto_t *json = NULL;
    int code = client_get(client, "/api/v2/users", &json);
    if (!code && !print_raw(cli, json))
        users_print(cli, json);
    return code;
}

static int show(struct cli *cli, struct client *client, const char *name)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *json = NULL;
    account_path(&path, "users", name, "");
    int code = client_get(client, buf_cstr(&path), &json);
    if (!code && !print_raw(cli, json)) {
        json_t *one = json_pack("[O]", json);
        users_print(cli, one);
        json_decref(one);
    }
    return code;
}

static int user_show(struct cli *cli, struct client *client)
{
    return show(cli, client, cli->arguments[1]);
}

int run_whoami(struct cli *cli)
{
    struct client *client = cli_client(cli);
    json_auto_t *json = NULL;
    if (!client)
        return EXIT_REFUSED;
    int code = client_get(client, "/api/v2/tokens/check", &json);
    if (!code && !print_raw(cli, json)) {
        const char *scope = field_text(json, "scope");
        printf("%s%s at %s%s%s\n", field_text(json, "username"),
               json_is_true(json_object_get(json, "admin")) ? " (admin)" : "",
               client_server(client), scope ? ", by an application token of scope " : "",
               scope ? scope : "");
    }
    return code;
}

/* ---- writing ---- */

/* What the options of add and set say. */
static int fields_of(struct cli *cli, json_t *body)
{
    const char *email = cli_value(cli, "email"), *clusters = cli_value(cli, "vc");
    if (email)
        json_object_set_new(body, "email", json_string(email));
    if (clusters)
        json_object_set_new(body, "virtualCluster", names_split(clusters));
    return account_choice(cli, "admin", body, "admin");
}

/* Does the next job that is submitted get a network of its own, by the number of accounts? What the
 * server says of it (server/job_network.c) is for people: unknown words mean that it does not. */
static bool jobs_have_networks(struct client *client)
{
    cleanup_client_reply struct client_reply reply;
    client_ask(client, &(struct client_request){.method = "GET", .path = "/readyz?verbose"},
               &reply);
    return text_find(buf_as_text(&reply.body), TEXT("] network ok: each new job's own")) !=
           SIZE_MAX;
}

static int user_add(struct cli *cli, struct client *client)
{
    const char *name = cli->arguments[1], *groups = cli_value(cli, "groups");
    char *password = NULL;
    bool had_networks = false;
    json_t *body = json_pack("{s:s}", "username", name);
    const bool has_password = !cli_flag(cli, "no-password");
    int code = body ? fields_of(cli, body) : cli_fail(EXIT_USAGE, "a name must be UTF-8");
    if (!code && has_password)
        code = ask_password(cli, &password);
    if (!code) {
        json_object_set_new(body, has_password ? "password" : "passwordHash",
                            json_string(has_password ? password : ""));
        if (cli_flag(cli, "reuse-name"))
            json_object_set_new(body, "reuseName", json_true());
        if (groups)
            json_object_set_new(body, "grouplist", names_split(groups));
        had_networks = jobs_have_networks(client);
        code = account_send(client, "POST", "/api/v2/users", json_incref(body), "added user", name);
    }
    if (!code && !had_networks && jobs_have_networks(client))
        puts(
            "from now on each job that is submitted has a network of its own, as there are several "
            "accounts: one that needs the machine's network must have the right hostNetwork");
    json_decref(body);
    ask_forget(password);
    return code;
}

static int user_set(struct cli *cli, struct client *client)
{
    const char *name = cli->arguments[1], *groups = cli_value(cli, "groups");
    char *password = NULL;
    json_t *data = json_pack("{s:s}", "username", name);
    int code = data ? fields_of(cli, data) : cli_fail(EXIT_USAGE, "a name must be UTF-8");
    if (!code && (cli_flag(cli, "password") || cli_flag(cli, "password-stdin"))) {
        code = ask_password(cli, &password);
        if (!code)
            json_object_set_new(data, "password", json_string(password));
    }
    if (!code && json_object_size(data) < 2 && !groups)
        code = cli_fail(EXIT_USAGE, "user set: name what to change; see: skep help user");
    if (!code && json_object_size(data) > 1)
        code =
            account_send(client, "PUT", "/api/v2/users",
                         json_pack("{s:b,s:O}", "patch", true, "data", data), "changed user", name);
    json_decref(data);
    ask_forget(password);
    if (!code && groups) {
        cleanup_buf struct buf path = BUF_INIT;
        account_path(&path, "users", name, "/grouplist");
        code = account_send(client, "PUT", buf_cstr(&path),
                            json_pack("{s:o}", "grouplist", names_split(groups)),
                            "changed the groups of user", name);
    }
    return code;
}

/* One call for each name; goes on after a refusal. The first failure's code. */
static int each_name(struct cli *cli, int (*run)(struct client *client, const char *name),
                     struct client *client)
{
    int first = 0;
    for (int i = 1; i < cli->argument_count; i++) {
        int code = run(client, cli->arguments[i]);
        if (code && !first)
            first = code;
        if (code == EXIT_UNREACHABLE)
            break;
    }
    return first;
}

static int remove_one(struct client *client, const char *name)
{
    cleanup_buf struct buf path = BUF_INIT;
    account_path(&path, "users", name, "");
    return account_send(client, "DELETE", buf_cstr(&path), NULL, "removed user", name);
}

static int user_remove(struct cli *cli, struct client *client)
{
    return each_name(cli, remove_one, client);
}

static int active_set(struct client *client, const char *name, bool is_active)
{
    return account_send(client, "PUT", "/api/v2/users",
                        json_pack("{s:b,s:{s:s,s:b}}", "patch", true, "data", "username", name,
                                  "active", is_active),
                        is_active ? "activated user" : "deactivated user", name);
}

static int activate_one(struct client *client, const char *name)
{
    return active_set(client, name, true);
}

static int deactivate_one(struct client *client, const char *name)
{
    return active_set(client, name, false);
}

static int user_activate(struct cli *cli, struct client *client)
{
    return each_name(cli, activate_one, client);
}

static int user_deactivate(struct cli *cli, struct client *client)
{
    return each_name(cli, deactivate_one, client);
}

/* ---- many users from a file ---- */

enum column { NAME, PASSWORD, HASH, EMAIL, ADMIN, CLUSTERS, GROUPS, EXTENSION, COLUMN_COUNT };

/* Heads of columns; "virtual cluster" is that of OpenPAI's template. */
static const struct {
    const char *head;
    enum column column;
} COLUMNS[] = {
    {"username", NAME},
    {"password", PASSWORD},
    {"passwordHash", HASH},
    {"email", EMAIL},
    {"admin", ADMIN},
    {"virtualCluster", CLUSTERS},
    {"virtual cluster", CLUSTERS},
    {"groups", GROUPS},
    {"grouplist", GROUPS},
    {"extension", EXTENSION},
};

/* The rest of the head is the quota's name, which the server knows. */
#define QUOTA_HEAD "quota."

struct import {
    const char *file;
    int at[COLUMN_COUNT]; /* field of a column; -1: there is none */
    struct csv_row heads;
    bool reuses_names;
    json_t *there; /* names of the users of before, as keys */
    unsigned added, kept, failed;
    bool is_added; /* the user of the row that is being read */
};

static bool head_is_quota(struct text head)
{
    return text_starts(head, TEXT(QUOTA_HEAD)) && head.length > sizeof QUOTA_HEAD - 1;
}

static int heads_read(struct import *import, const struct csv_row *row)
{
    import->heads = *row;
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        import->at[c] = -1;
    for (size_t i = 0; i < row->count; i++) {
        size_t c = 0;
        if (head_is_quota(row->fields[i]))
            continue;
        while (c < COUNT_OF(COLUMNS) && !text_is(row->fields[i], COLUMNS[c].head))
            c++;
        if (c == COUNT_OF(COLUMNS))
            return cli_fail(EXIT_USAGE, "%s:%u: unknown column '%.*s'", import->file, row->line,
                            TEXT_ARG(row->fields[i]));
        if (import->at[COLUMNS[c].column] >= 0)
            return cli_fail(EXIT_USAGE, "%s:%u: column '%.*s' stands there twice", import->file,
                            row->line, TEXT_ARG(row->fields[i]));
        import->at[COLUMNS[c].column] = (int)i;
    }
    if (import->at[NAME] < 0 || (import->at[PASSWORD] < 0 && import->at[HASH] < 0))
        return cli_fail(EXIT_USAGE,
                        "%s:%u: columns username and password (or passwordHash) are "
                        "needed",
                        import->file, row->line);
    return 0;
}

/* NULL: the file has no such column, or nothing stands in it. */
static const char *field(const struct import *import, const struct csv_row *row, enum column column)
{
    int at = import->at[column];
    if (at < 0 || (size_t)at >= row->count || !row->fields[at].length)
        return NULL;
    return row->fields[at].at;
}

static int admin_read(const struct import *import, const struct csv_row *row, json_t *body)
{
    const char *word = field(import, row, ADMIN);
    bool is_yes = word && (strcasecmp(word, "true") == 0 || strcasecmp(word, "yes") == 0);
    if (word && !is_yes && strcasecmp(word, "false") != 0 && strcasecmp(word, "no") != 0)
        return cli_fail(EXIT_USAGE, "%s:%u: admin must be true or false, got '%s'", import->file,
                        row->line, word);
    json_object_set_new(body, "admin", json_boolean(is_yes));
    return 0;
}

/* What OpenPAI's pages keep of a user, such as {"sshKeys": […]}. */
static int extension_read(const struct import *import, const struct csv_row *row, json_t *body)
{
    const char *text = field(import, row, EXTENSION);
    json_t *extension = text ? json_loads(text, 0, NULL) : NULL;
    if (text && !json_is_object(extension)) {
        json_decref(extension);
        return cli_fail(EXIT_USAGE, "%s:%u: extension must be an object of JSON", import->file,
                        row->line);
    }
    if (extension)
        json_object_set_new(body, "extension", extension);
    return 0;
}

/* NULL: none is given. */
static json_t *row_quotas(const struct import *import, const struct csv_row *row, int *code)
{
    json_t *quotas = json_object();
    for (size_t i = 0; !*code && i < import->heads.count && i < row->count; i++) {
        const struct text head = import->heads.fields[i], value = row->fields[i];
        int64_t number;
        if (!head_is_quota(head) || !value.length)
            continue;
        if (!text_to_int64(value, &number))
            *code = cli_fail(EXIT_USAGE, "%s:%u: %.*s must be a number, got '%.*s'", import->file,
                             row->line, TEXT_ARG(head), TEXT_ARG(value));
        else if (json_object_set_new(quotas, head.at + sizeof QUOTA_HEAD - 1,
                                     json_integer(number)) < 0)
            *code = cli_fail(EXIT_USAGE, "%s:1: the name of a quota must be UTF-8", import->file);
    }
    if (!*code && json_object_size(quotas) > 0)
        return quotas;
    json_decref(quotas);
    return NULL;
}

/* After the user was added: one that has no quotas can be given them again. */
static int quotas_give(struct client *client, const char *name, json_t *quotas)
{
    cleanup_buf struct buf path = BUF_INIT;
    account_path(&path, "users", name, "/quota");
    return account_send(client, "PUT", buf_cstr(&path), quotas, "changed the quotas of", name);
}

static int row_add(struct import *import, const struct csv_row *row, struct client *client)
{
    import->is_added = false;
    static const struct {
        enum column column;
        const char *key;
    } TEXTS[] = {
        {NAME, "username"}, {PASSWORD, "password"}, {HASH, "passwordHash"}, {EMAIL, "email"}};
    json_t *body = json_object();
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        const char *text = field(import, row, TEXTS[i].column);
        if (text)
            json_object_set_new(body, TEXTS[i].key, json_string(text));
    }
    if (import->reuses_names)
        json_object_set_new(body, "reuseName", json_true());
    const char *clusters = field(import, row, CLUSTERS), *groups = field(import, row, GROUPS);
    if (clusters)
        json_object_set_new(body, "virtualCluster", names_split(clusters));
    if (groups)
        json_object_set_new(body, "grouplist", names_split(groups));
    int code = admin_read(import, row, body);
    if (!code)
        code = extension_read(import, row, body);
    json_t *quotas = code ? NULL : row_quotas(import, row, &code);
    if (code) {
        json_decref(body);
        return code;
    }
    const char *name = field(import, row, NAME) ? field(import, row, NAME) : "";
    code = account_send(client, "POST", "/api/v2/users", body, "added user", name);
    import->is_added = code == 0;
    if (code || !quotas) {
        json_decref(quotas);
        return code;
    }
    return quotas_give(client, name, quotas);
}

/* Who was there before stays as they are: a password, or rights, that somebody has given since must
 * not be taken back by a file of another system. */
static bool row_is_there(struct import *import, const struct csv_row *row)
{
    const char *name = field(import, row, NAME);
    if (!name || !json_object_get(import->there, name))
        return false;
    print_error("skep: %s:%u: user %s was there already, and stays as they are: password, groups "
                "and rights\n",
                import->file, row->line, name);
    import->kept++;
    return true;
}

static int users_there(struct import *import, struct client *client)
{
    json_t *users = NULL, *user;
    size_t i;
    int code = client_get(client, "/api/v2/users", &users);
    import->there = json_object();
    json_array_foreach (users, i, user) {
        const char *name = json_string_value(json_object_get(user, "username"));
        if (name)
            json_object_set_new(import->there, name, json_true());
    }
    json_decref(users);
    return code;
}

static int import_rows(struct import *import, struct text rest, struct client *client)
{
    cleanup_arena struct arena arena;
    struct csv_row row;
    const char *problem;
    unsigned line = 1;
    int first = 0;
    arena_init(&arena);
    if (!csv_next(&rest, &line, &arena, &row, &problem))
        return cli_fail(EXIT_USAGE, "%s:%u: %s", import->file, line,
                        problem ? problem : "the file is empty");
    int code = heads_read(import, &row);
    while (!code && csv_next(&rest, &line, &arena, &row, &problem)) {
        if (row_is_there(import, &row))
            continue;
        int row_code = row_add(import, &row, client);
        if (row_code) {
            print_error("skep: %s:%u: %s\n", import->file, row.line,
                        import->is_added ? "added without its quotas" : "not added");
            import->failed++;
            first = first ? first : row_code;
        } else {
            import->added++;
        }
        if (row_code == EXIT_UNREACHABLE)
            break;
    }
    if (!code && problem)
        code = cli_fail(EXIT_USAGE, "%s:%u: %s", import->file, row.line, problem);
    return code ? code : first;
}

static int user_import(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf content = BUF_INIT;
    struct import import = {.file = cli->arguments[1], .reuses_names = cli_flag(cli, "reuse-name")};
    int code = file_content(import.file, &content);
    if (code)
        return code;
    code = users_there(&import, client);
    if (!code) {
        code = import_rows(&import, buf_as_text(&content), client);
        printf("%u added, %u there already, %u not\n", import.added, import.kept, import.failed);
    }
    explicit_bzero(content.at, content.length);
    json_decref(import.there);
    return code;
}

int run_user(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"list", 0, 0, user_list},
        {"show", 1, 1, user_show},
        {"add", 1, 1, user_add},
        {"set", 1, 1, user_set},
        {"remove", 1, -1, user_remove},
        {"activate", 1, -1, user_activate},
        {"deactivate", 1, -1, user_deactivate},
        {"import", 1, 1, user_import},
        {NULL, 0, 0, NULL},
    };
    return account_run(cli, ACTIONS);
}
