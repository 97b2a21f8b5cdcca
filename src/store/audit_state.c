/* audit_state.c — what users, groups, tokens, templates and requests are before and after a change
 * of them.
 *
 * Of passwords, and of extensions (keys and tokens stand there), only that they differ is told; of
 * a group's extension the access list, which gives rights, is told in full. Of a template's
 * description and job file, too, only that they differ is told: they are long. */
#include "base/err.h"
#include "base/json_writer.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "store/noun.h"
#include <assert.h>

static const char select_user[] =
    "SELECT email, identity, is_admin, is_inactive, password_hash, extension_json FROM users "
    "WHERE name = ?";
static const char select_group[] =
    "SELECT description, external_name, is_admin, extension_json FROM groups WHERE name = ?";
static const char select_memberships[] =
    "SELECT group_name, is_admin FROM members WHERE user_name = ? ORDER BY group_name";
static const char select_clusters[] = "SELECT subject FROM grants WHERE is_group = ? AND "
                                      "holder = ? AND kind = ? ORDER BY subject";
static const char select_token[] =
    "SELECT owner, is_application, scope, expires_ms FROM tokens WHERE id = ?";

void audit_state_release(struct audit_state *state)
{
    ARRAY_FREE(state);
}

static void field_add(struct audit_state *state, const char *key, const char *json, bool is_secret)
{
    assert(key && *key && json);
    *ARRAY_ADD(state) = (struct audit_field){key, json, is_secret};
}

static void add_string(struct audit_state *state, const char *key, const char *value,
                       struct arena *arena)
{
    assert(value);
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_string(&json, value);
    field_add(state, key, arena_copy(arena, buf_as_text(&text)), false);
}

static void add_bool(struct audit_state *state, const char *key, bool value)
{
    field_add(state, key, value ? "true" : "false", false);
}

/* Each key of the extension by itself. */
static void add_extension(struct audit_state *state, const char *extension, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text_of(extension), DOC_JSON, arena, &problems);
    for (size_t i = 0; doc && doc->kind == DOC_MAP && i < doc->as.map.count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        cleanup_buf struct buf text = BUF_INIT;
        if (doc_to_json(entry->value, STORE_EXTENSION_MAX, &text) < 0)
            continue;
        field_add(state, arena_format(arena, "extension.%.*s", TEXT_ARG(entry->key)),
                  arena_copy(arena, buf_as_text(&text)), !text_is(entry->key, "acls"));
    }
}

static int add_memberships(struct store *store, const char *user, struct arena *arena,
                           struct audit_state *state, struct err *err)
{
    assert(user);
    struct sql sql = sql_of(&store->session, select_memberships);
    cleanup_buf struct buf groups = BUF_INIT, managed = BUF_INIT;
    struct json_writer all;
    json_init(&all, &groups);
    struct json_writer as_admin;
    json_init(&as_admin, &managed);
    json_array(&all);
    json_array(&as_admin);
    sql_put_string(&sql, user);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        const char *name = sql_string(&sql, arena);
        json_string(&all, name);
        if (sql_bool(&sql))
            json_string(&as_admin, name);
    }
    json_array_end(&all);
    json_array_end(&as_admin);
    field_add(state, "groups", arena_copy(arena, buf_as_text(&groups)), false);
    field_add(state, "groupAdminOf", arena_copy(arena, buf_as_text(&managed)), false);
    return code;
}

static int add_clusters(struct store *store, bool is_group, const char *holder, struct arena *arena,
                        struct audit_state *state, struct err *err)
{
    assert(holder);
    struct sql sql = sql_of(&store->session, select_clusters);
    cleanup_buf struct buf names = BUF_INIT;
    struct json_writer json;
    json_init(&json, &names);
    json_array(&json);
    sql_put_int(&sql, is_group);
    sql_put_string(&sql, holder);
    sql_put_int(&sql, GRANT_CLUSTER);
    int code;
    while ((code = sql_next(&sql, err)) > 0)
        json_string(&json, sql_string(&sql, arena));
    json_array_end(&json);
    field_add(state, "virtualClusters", arena_copy(arena, buf_as_text(&names)), false);
    return code;
}

static int add_quotas(struct store *store, bool is_group, const char *holder, struct arena *arena,
                      struct audit_state *state, struct err *err)
{
    assert(holder);
    struct quotas quotas;
    int code = quotas_read(&store->session, is_group, text_of(holder), &quotas, err);
    for (int i = 0; code == 0 && i < QUOTA_KIND_COUNT; i++)
        if (quotas.values[i] != QUOTA_NONE)
            field_add(state, arena_format(arena, "quota.%s", quota_name((enum quota_kind)i)),
                      arena_format(arena, "%lld", (long long)quotas.values[i]), false);
    return code;
}

static int user_state(struct store *store, const char *name, struct arena *arena,
                      struct audit_state *state, struct err *err)
{
    assert(name);
    struct sql sql = sql_of(&store->session, select_user);
    sql_put_string(&sql, name);
    int code = sql_next(&sql, err);
    if (code <= 0)
        return code;
    add_string(state, "email", sql_string(&sql, arena), arena);
    add_string(state, "identity", sql_string(&sql, arena), arena);
    add_bool(state, "admin", sql_bool(&sql));
    add_bool(state, "active", !sql_bool(&sql));
    field_add(state, "password", sql_string(&sql, arena), true);
    add_extension(state, sql_string(&sql, arena), arena);
    sql_done(&sql);
    code = add_memberships(store, name, arena, state, err);
    if (code == 0)
        code = add_clusters(store, false, name, arena, state, err);
    return code < 0 ? code : add_quotas(store, false, name, arena, state, err);
}

static int group_state(struct store *store, const char *name, struct arena *arena,
                       struct audit_state *state, struct err *err)
{
    assert(name);
    struct sql sql = sql_of(&store->session, select_group);
    sql_put_string(&sql, name);
    int code = sql_next(&sql, err);
    if (code <= 0)
        return code;
    add_string(state, "description", sql_string(&sql, arena), arena);
    add_string(state, "externalName", sql_string(&sql, arena), arena);
    add_bool(state, "admin", sql_bool(&sql));
    add_extension(state, sql_string(&sql, arena), arena);
    sql_done(&sql);
    code = add_clusters(store, true, name, arena, state, err);
    return code < 0 ? code : add_quotas(store, true, name, arena, state, err);
}

static int token_state(struct store *store, const char *id, struct arena *arena,
                       struct audit_state *state, struct err *err)
{
    assert(id);
    struct sql sql = sql_of(&store->session, select_token);
    sql_put_string(&sql, id);
    int code = sql_next(&sql, err);
    if (code <= 0)
        return code;
    add_string(state, "user", sql_string(&sql, arena), arena);
    add_bool(state, "application", sql_bool(&sql));
    field_add(state, "scope", arena_format(arena, "%lld", (long long)sql_int(&sql)), false);
    field_add(state, "expiresTime", arena_format(arena, "%lld", (long long)sql_int(&sql)), false);
    sql_done(&sql);
    return 0;
}

static void add_names(struct audit_state *state, const char *key, const struct store_names *names,
                      struct arena *arena)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_array(&json);
    for (size_t i = 0; i < names->count; i++)
        json_string(&json, names->items[i]);
    json_array_end(&json);
    field_add(state, key, arena_copy(arena, buf_as_text(&text)), false);
}

static int template_state(struct store *store, const char *id, struct arena *arena,
                          struct audit_state *state, struct err *err)
{
    struct store_template row;
    int code = template_read(&store->session, id, arena, &row, err);
    if (code <= 0)
        return code;
    add_string(state, "author", row.author, arena);
    add_string(state, "name", row.name, arena);
    add_string(state, "summary", row.summary, arena);
    field_add(state, "description", row.description, true);
    field_add(state, "protocol", row.protocol, true);
    add_names(state, "categories", &row.categories, arena);
    add_names(state, "tags", &row.tags, arena);
    add_names(state, "groupList", &row.groups, arena);
    add_bool(state, "isPublic", row.is_public);
    field_add(state, "status", arena_format(arena, "%d", (int)row.status), false);
    add_string(state, "reason", row.reason, arena);
    add_bool(state, "official", row.is_official);
    return 0;
}

/* With what the user may use: an acceptance changes that. */
static int request_state(struct store *store, const char *id, struct arena *arena,
                         struct audit_state *state, struct err *err)
{
    struct store_request row;
    int code = request_read(&store->session, text_of(id), arena, &row, err);
    if (code <= 0)
        return code;
    add_string(state, "kind", request_kind_name(row.kind), arena);
    add_string(state, "user", row.user, arena);
    add_string(state, "virtualCluster", row.virtual_cluster, arena);
    add_string(state, "email", row.email, arena);
    add_string(state, "why", row.why, arena);
    add_string(state, "status", request_state_name(row.state), arena);
    add_string(state, "answer", row.answer, arena);
    add_string(state, "group", row.group, arena);
    code = add_memberships(store, row.user, arena, state, err);
    return code < 0 ? code : add_clusters(store, false, row.user, arena, state, err);
}

void audit_subject_of(const struct store_change *change, const char **kind, const char **name)
{
    switch (change->kind) {
    case CHANGE_USER_ADD:
    case CHANGE_USER_SET:
    case CHANGE_USER_REMOVE:
        *kind = "user", *name = change->user.name;
        return;
    case CHANGE_MEMBER_ADD:
    case CHANGE_MEMBER_REMOVE:
        *kind = "user", *name = change->member.user;
        return;
    case CHANGE_GROUP_ADD:
    case CHANGE_GROUP_SET:
    case CHANGE_GROUP_REMOVE:
        *kind = "group", *name = change->group.name;
        return;
    case CHANGE_TOKEN_ADD:
    case CHANGE_TOKEN_REMOVE:
        *kind = "token", *name = change->token.id;
        return;
    case CHANGE_TOKENS_REMOVE:
        *kind = "user", *name = change->token.user;
        return;
    case CHANGE_QUOTAS:
        *kind = change->quotas.is_group ? "group" : "user", *name = change->quotas.holder;
        return;
    case CHANGE_TEMPLATE_ADD:
    case CHANGE_TEMPLATE_SET:
    case CHANGE_TEMPLATE_REMOVE:
    case CHANGE_TEMPLATE_REVIEW:
    case CHANGE_TEMPLATE_OFFICIAL:
    case CHANGE_TEMPLATE_USE:
    case CHANGE_TEMPLATE_STAR:
        *kind = "template", *name = change->template.row.id;
        return;
    case CHANGE_REQUEST_ADD:
    case CHANGE_REQUEST_ACT:
        *kind = "request", *name = change->request.row.id;
        return;
    case CHANGE_TAG_ADD:
    case CHANGE_TAG_REMOVE:
    case CHANGE_SETTING:
    case CHANGE_ACCOUNTS:
    case CHANGE_ATTEMPT_END:
    case CHANGE_BARRIER:
    case CHANGE_LOG_TRIM:
    case CHANGE_TOKENS_EXPIRE:
    case CHANGE_AUDIT:
    case CHANGE_AUDIT_TRIM:
    case CHANGE_SUBMIT_KEY:
    case CHANGE_SUBMIT_KEYS_TRIM:
    case CHANGE_GPU_USE_TRIM:
    case CHANGE_NOTICE_ADD:
    case CHANGE_NOTICES_REMOVE:
    case CHANGE_DELETIONS:
    case CHANGE_REQUESTS_TRIM:
    case CHANGE_RESEAL:
        return;
    }
    assert(false && "a kind of change");
}

int audit_state_read(struct store *store, const struct store_change *change, struct arena *arena,
                     struct audit_state *state, struct err *err)
{
    const char *kind = "", *name = "";
    assert(state->count == 0);
    audit_subject_of(change, &kind, &name);
    if (strcmp(kind, "user") == 0)
        return user_state(store, name, arena, state, err);
    if (strcmp(kind, "group") == 0)
        return group_state(store, name, arena, state, err);
    if (strcmp(kind, "request") == 0)
        return request_state(store, name, arena, state, err);
    if (strcmp(kind, "template") == 0)
        return template_state(store, name, arena, state, err);
    return strcmp(kind, "token") == 0 ? token_state(store, name, arena, state, err) : 0;
}

static bool has_field(const struct audit_state *state, const struct audit_field *field)
{
    assert(field->key && field->value);
    for (size_t i = 0; i < state->count; i++)
        if (strcmp(state->items[i].key, field->key) == 0)
            return strcmp(state->items[i].value, field->value) == 0;
    return false;
}

void audit_state_write(const struct audit_state *state, const struct audit_state *other,
                       struct buf *out)
{
    assert(state != other && out->length == 0);
    struct json_writer json;
    json_init(&json, out);
    for (size_t i = 0; i < state->count; i++) {
        const struct audit_field *field = &state->items[i];
        if (has_field(other, field))
            continue;
        if (out->length == 0)
            json_object(&json);
        json_key(&json, field->key);
        if (field->is_secret)
            json_string(&json, field->value[0] ? "(secret)" : "");
        else
            json_raw(&json, text_of(field->value));
    }
    if (out->length > 0)
        json_object_end(&json);
}
