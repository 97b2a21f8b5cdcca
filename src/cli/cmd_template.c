/* template: job files to begin others from */
#include "base/printable.h"
#include "cli/account.h"
#include "cli/job.h"
#include "cli/print.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS "/marketplace/api/items"

static int own_name(struct client *client, struct buf *name)
{
    json_t *json = NULL;
    int code = client_get(client, "/api/v2/tokens/check", &json);
    if (!code)
        buf_string(name, field_text(json, "username") ? field_text(json, "username") : "");
    json_decref(json);
    return code;
}

/* An id stays; a name without its author is one's own. */
static bool is_id(const char *name)
{
    return strlen(name) == 32 && strspn(name, "0123456789abcdef") == 32;
}

static int template_path(struct client *client, const char *name, const char *rest,
                         struct buf *path)
{
    cleanup_buf struct buf whole = BUF_INIT;
    int code = strchr(name, '~') || is_id(name) ? 0 : own_name(client, &whole);
    if (code)
        return code;
    if (whole.length)
        buf_char(&whole, '~');
    buf_string(&whole, name);
    buf_string(path, ITEMS "/");
    client_encode(path, buf_cstr(&whole));
    buf_string(path, rest);
    return 0;
}

static const char *words_of(const json_t *template, const char *key, struct buf *out)
{
    json_t *names = json_array();
    const json_t *words = json_object_get(template, key);
    for (size_t i = 0; i < json_array_size(words); i++)
        json_array_append(names, json_object_get(json_array_get(words, i), "name"));
    const char *joined = account_joined(names, out);
    json_decref(names);
    return joined;
}

static const char *state_of(const json_t *template)
{
    if (json_is_true(json_object_get(template, "official")))
        return "official";
    if (field_has(template, "status"))
        return field_text(template, "status");
    return json_is_true(json_object_get(template, "isPrivate")) ? "private" : "groups";
}

/* ---- list, show, get ---- */

static void templates_print(const struct cli *cli, const json_t *templates)
{
    static const char *const HEADS[] = {"TEMPLATE", "STATE",   "USES", "STARS",
                                        "TAGS",     "SUMMARY", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, HEADS);
    for (size_t i = 0; i < json_array_size(templates); i++) {
        const json_t *template = json_array_get(templates, i);
        cleanup_buf struct buf tags = BUF_INIT;
        table_format(&table, "%s~%s", field_text(template, "author"), field_text(template, "name"));
        table_cell(&table, state_of(template));
        table_format(&table, "%lld", (long long)field_int(template, "useNumber"));
        table_format(&table, "%lld", (long long)field_int(template, "starNumber"));
        table_cell(&table, words_of(template, "tags", &tags));
        table_cell(&table, field_text(template, "summary"));
    }
    table_print(&table, &out);
    print_flush(&out);
}

static void query_put(const struct cli *cli, const char *key, struct buf *path)
{
    const char *value = cli_value(cli, key);
    if (!value)
        return;
    buf_format(path, "&%s=", key);
    client_encode(path, value);
}

/* What a list shows, and -o prints: not job files and descriptions, which are long. */
#define LIST_FIELDS                                                                                \
    "id,name,author,type,source,summary,categories,tags,isPublic,isPrivate,groupList,status,"      \
    "reason,reviewer,useNumber,starNumber,starred,official,usedAt,createdAt,updatedAt"

/* All pages into one list. */
static int list_read(const struct cli *cli, struct client *client, json_t *all)
{
    static const char *const keys[] = {"keyword", "author", "tag", "category", "status", "order"};
    cleanup_buf struct buf query = BUF_INIT, cursor = BUF_INIT;
    bool has_more = true;
    int code = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        query_put(cli, keys[i], &query);
    if (cli_flag(cli, "official"))
        buf_string(&query, "&official=true");
    if (cli_flag(cli, "shared"))
        buf_string(&query, "&shared=true");
    while (!code && has_more) {
        cleanup_buf struct buf path = BUF_INIT;
        json_t *page = NULL;
        buf_format(&path, ITEMS "?limit=200&fields=" LIST_FIELDS "&cursor=%s%s", buf_cstr(&cursor),
                   buf_cstr(&query));
        code = client_get(client, buf_cstr(&path), &page);
        json_array_extend(all, json_object_get(page, "data"));
        has_more = field_has(page, "cursor");
        buf_clear(&cursor);
        if (has_more)
            buf_string(&cursor, field_text(page, "cursor"));
        json_decref(page);
    }
    return code;
}

static int template_list(struct cli *cli, struct client *client)
{
    json_t *all = json_array();
    int code = list_read(cli, client, all);
    if (!code && !print_raw(cli, all))
        templates_print(cli, all);
    json_decref(all);
    return code;
}

static int template_read(struct cli *cli, struct client *client, json_t **template)
{
    cleanup_buf struct buf path = BUF_INIT;
    int code = template_path(client, cli->arguments[1], "", &path);
    return code ? code : client_get(client, buf_cstr(&path), template);
}

static void field_print(struct buf *out, const char *title, const char *value)
{
    if (value && *value)
        buf_format(out, "%-13s%s\n", title, value);
}

static int template_show(struct cli *cli, struct client *client)
{
    json_t *json = NULL;
    int code = template_read(cli, client, &json);
    if (!code && !print_raw(cli, json)) {
        cleanup_buf struct buf out = BUF_INIT, tags = BUF_INIT, categories = BUF_INIT,
                               groups = BUF_INIT;
        field_print(&out, "Name:", field_text(json, "name"));
        field_print(&out, "Author:", field_text(json, "author"));
        field_print(&out, "Id:", field_text(json, "id"));
        field_print(&out, "State:", state_of(json));
        field_print(&out, "Reason:", field_text(json, "reason"));
        field_print(&out, "Groups:", account_joined(json_object_get(json, "groupList"), &groups));
        field_print(&out, "Categories:", words_of(json, "categories", &categories));
        field_print(&out, "Tags:", words_of(json, "tags", &tags));
        buf_format(&out, "%-13s%lld\n%-13s%lld\n", "Uses:", (long long)field_int(json, "useNumber"),
                   "Stars:", (long long)field_int(json, "starNumber"));
        field_print(&out, "Summary:", field_text(json, "summary"));
        const char *description = field_text(json, "description");
        if (description && *description) { /* of somebody else: nothing that moves the cursor */
            buf_char(&out, '\n');
            printable_put(&out, text_of(description));
            buf_char(&out, '\n');
        }
        print_flush(&out);
    }
    json_decref(json);
    return code;
}

/* The path of one version of the template that the first argument names. */
static int version_path(const struct cli *cli, struct client *client, long version,
                        const char *rest, struct buf *path)
{
    cleanup_buf struct buf end = BUF_INIT;
    buf_format(&end, "/versions/%ld%s", version, rest);
    return template_path(client, cli->arguments[1], buf_cstr(&end), path);
}

static int template_get(struct cli *cli, struct client *client)
{
    json_t *json = NULL;
    long version;
    int code = cli_number(cli, "version", 1, LONG_MAX, 0, &version);
    if (!code && version) {
        cleanup_buf struct buf path = BUF_INIT;
        code = version_path(cli, client, version, "", &path);
        if (!code)
            code = client_get(client, buf_cstr(&path), &json);
    } else if (!code)
        code = template_read(cli, client, &json);
    if (!code) {
        cleanup_buf struct buf out = BUF_INIT;
        const char *protocol = field_text(json, "protocol");
        buf_string(&out, protocol ? protocol : "");
        print_flush(&out);
    }
    json_decref(json);
    return code;
}

static void versions_print(const struct cli *cli, const json_t *versions)
{
    static const char *const HEADS[] = {"VERSION", "SAVED", "BY", "SUMMARY", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, HEADS);
    for (size_t i = 0; i < json_array_size(versions); i++) {
        const json_t *version = json_array_get(versions, i);
        cleanup_buf struct buf saved = BUF_INIT;
        table_format(&table, "%lld%s", (long long)field_int(version, "version"),
                     json_is_true(json_object_get(version, "current")) ? ", current" : "");
        print_time(&saved, field_instant(version, "savedAt"));
        table_cell(&table, buf_cstr(&saved));
        table_cell(&table, field_text(version, "editor"));
        table_cell(&table, field_text(version, "summary"));
    }
    table_print(&table, &out);
    print_flush(&out);
}

static int template_versions(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_t *json = NULL;
    int code = template_path(client, cli->arguments[1], "/versions", &path);
    if (!code)
        code = client_get(client, buf_cstr(&path), &json);
    if (!code && !print_raw(cli, json))
        versions_print(cli, json);
    json_decref(json);
    return code;
}

/* ---- changes ---- */

static void share_put(const char *share, json_t *body)
{
    const bool is_private = strcmp(share, "private") == 0, is_public = strcmp(share, "public") == 0;
    json_object_set_new(body, "isPrivate", json_boolean(is_private));
    json_object_set_new(body, "isPublic", json_boolean(is_public));
    if (!is_private && !is_public)
        json_object_set_new(body, "groupList", names_split(share));
}

static json_t *body_of(const struct cli *cli, struct text protocol)
{
    const char *summary = cli_value(cli, "summary"), *description = cli_value(cli, "description");
    const char *tags = cli_value(cli, "tag"), *categories = cli_value(cli, "category");
    json_t *text = json_stringn(protocol.at, protocol.length);
    if (!text)
        return NULL;
    json_t *body = json_pack("{s:o}", "protocol", text);
    if (summary)
        json_object_set_new(body, "summary", json_string(summary));
    if (description)
        json_object_set_new(body, "description", json_string(description));
    if (tags)
        json_object_set_new(body, "tags", names_split(tags));
    if (categories)
        json_object_set_new(body, "categories", names_split(categories));
    if (cli_value(cli, "share"))
        share_put(cli_value(cli, "share"), body);
    return body;
}

static int body_send(struct client *client, const char *method, const char *path,
                     const json_t *body, struct client_reply *reply)
{
    char *text = json_dumps(body, JSON_COMPACT);
    if (!text)
        return cli_fail(EXIT_USAGE, "names and texts must be UTF-8");
    client_ask(client,
               &(struct client_request){.method = method,
                                        .path = path,
                                        .content_type = "application/json",
                                        .body = text_of(text)},
               reply);
    free(text);
    return 0;
}

/* Change the one of this name; when there is none, make it. */
static int template_save(struct cli *cli, struct client *client)
{
    const char *name = cli->arguments[1], *file = cli->arguments[2];
    cleanup_buf struct buf content = BUF_INIT, path = BUF_INIT;
    cleanup_client_reply struct client_reply reply = {0};
    int code = strchr(name, '~') ? cli_fail(EXIT_USAGE, "template save: name it without an author")
                                 : file_content(file, &content);
    if (!code)
        code = template_path(client, name, "", &path);
    if (code)
        return code;
    json_t *body = body_of(cli, buf_as_text(&content));
    if (!body)
        return cli_fail(EXIT_USAGE, "%s is not UTF-8", file);
    code = body_send(client, "PUT", buf_cstr(&path), body, &reply);
    if (!code && reply.status == 404) {
        client_reply_release(&reply);
        reply = (struct client_reply){0};
        json_object_set_new(body, "name", json_string(name));
        code = body_send(client, "POST", ITEMS, body, &reply);
    }
    json_decref(body);
    if (code)
        return code;
    if (reply.status / 100 != 2)
        return client_explain(client, &reply, file);
    json_t *json = NULL;
    code = client_result(client, &reply, &json);
    if (!code)
        printf("saved template %s%s\n", name,
               field_has(json, "status") && strcmp(field_text(json, "status"), "pending") == 0
                   ? ": others see it once an administrator has approved it"
                   : "");
    json_decref(json);
    return code;
}

/* The same for each name; goes on after a refusal. */
static int each(struct cli *cli, struct client *client, const char *method, const char *rest,
                const json_t *body, const char *done)
{
    int first = 0;
    for (int i = 1; i < cli->argument_count; i++) {
        cleanup_buf struct buf path = BUF_INIT;
        int code = template_path(client, cli->arguments[i], rest, &path);
        if (!code)
            code = account_send(client, method, buf_cstr(&path), body ? json_deep_copy(body) : NULL,
                                done, cli->arguments[i]);
        if (code && !first)
            first = code;
        if (code == EXIT_UNREACHABLE)
            break;
    }
    return first;
}

static int template_remove(struct cli *cli, struct client *client)
{
    return each(cli, client, "DELETE", "", NULL, "removed template");
}

static int review(struct cli *cli, struct client *client, const char *status)
{
    const char *reason = cli_value(cli, "reason");
    json_t *body = json_pack("{s:s,s:s}", "status", status, "reason", reason ? reason : "");
    if (!body)
        return cli_fail(EXIT_USAGE, "a reason must be UTF-8");
    int code = each(cli, client, "PUT", "/status", body, status);
    json_decref(body);
    return code;
}

static int template_approve(struct cli *cli, struct client *client)
{
    return review(cli, client, "approved");
}

static int template_reject(struct cli *cli, struct client *client)
{
    if (!cli_flag(cli, "reason"))
        return cli_fail(EXIT_USAGE, "template reject: say why, with --reason");
    return review(cli, client, "rejected");
}

static int template_star(struct cli *cli, struct client *client)
{
    return each(cli, client, "PUT", "/star", NULL, "starred");
}

static int template_unstar(struct cli *cli, struct client *client)
{
    return each(cli, client, "DELETE", "/star", NULL, "took the star of");
}

static int template_restore(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf path = BUF_INIT, done = BUF_INIT;
    long version;
    int code = cli_number(cli, "version", 1, LONG_MAX, 0, &version);
    if (!code && !version)
        code = cli_fail(EXIT_USAGE, "template restore: say which one, with --version");
    if (!code)
        code = version_path(cli, client, version, "/restore", &path);
    if (code)
        return code;
    buf_format(&done, "restored version %ld of template", version);
    return account_send(client, "POST", buf_cstr(&path), json_object(), buf_cstr(&done),
                        cli->arguments[1]);
}

static int official(struct cli *cli, struct client *client, bool is_official, const char *done)
{
    json_t *body = json_pack("{s:b}", "official", is_official);
    int code = each(cli, client, "PUT", "/official", body, done);
    json_decref(body);
    return code;
}

static int template_official(struct cli *cli, struct client *client)
{
    return official(cli, client, true, "now official:");
}

static int template_unofficial(struct cli *cli, struct client *client)
{
    return official(cli, client, false, "no more official:");
}

int run_template(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"list", 0, 0, template_list},
        {"show", 1, 1, template_show},
        {"get", 1, 1, template_get},
        {"save", 2, 2, template_save},
        {"remove", 1, -1, template_remove},
        {"approve", 1, -1, template_approve},
        {"reject", 1, -1, template_reject},
        {"star", 1, -1, template_star},
        {"unstar", 1, -1, template_unstar},
        {"versions", 1, 1, template_versions},
        {"restore", 1, 1, template_restore},
        {"official", 1, -1, template_official},
        {"unofficial", 1, -1, template_unofficial},
        {NULL, 0, 0, NULL},
    };
    return account_run(cli, ACTIONS);
}
