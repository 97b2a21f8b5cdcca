/* OpenPAI's /groups: what their members may use, and changes of one group */
#include "api/account.h"
#include "api/handlers.h"
#include "api/page.h"
#include "base/memory.h"
#include <time.h>

/* ---- as JSON ---- */

static bool is_acl_of_ours(struct text key)
{
    return text_is(key, "admin") || text_is(key, "virtualClusters");
}

static void raw_json(struct json_writer *json, const struct doc_entry *entry)
{
    cleanup_buf struct buf value = BUF_INIT;
    if (doc_to_json(entry->value, STORE_EXTENSION_MAX, &value))
        buf_string(&value, "null"); /* it was stored as JSON of at most that size */
    json_key(json, entry->key.at);
    json_raw(json, buf_as_text(&value));
}

/* The extension; of its ACLs those that count here are the group's own. */
static void extension_json(struct call *call, struct json_writer *json,
                           const struct store_group *group)
{
    const struct doc *extension = account_extension(call, group->extension_json);
    const struct doc *acls = doc_get_map(extension, "acls");
    json_object(json);
    for (size_t i = 0; i < extension->as.map.count; i++)
        if (!text_is(extension->as.map.entries[i].key, "acls"))
            raw_json(json, &extension->as.map.entries[i]);
    json_key(json, "acls");
    json_object(json);
    json_key_bool(json, "admin", group->is_admin);
    json_key_strings(json, "virtualClusters", group->virtual_clusters.items,
                     group->virtual_clusters.count);
    if (!doc_get(acls, "storageConfigs"))
        json_key_strings(json, "storageConfigs", NULL, 0);
    for (size_t i = 0; i < acls->as.map.count; i++)
        if (!is_acl_of_ours(acls->as.map.entries[i].key))
            raw_json(json, &acls->as.map.entries[i]);
    json_object_end(json);
    json_object_end(json);
}

static void group_json(struct call *call, struct json_writer *json, const struct store_group *group)
{
    json_object(json);
    json_key_string(json, "groupname", group->name);
    json_key_string(json, "description", group->description);
    json_key_string(json, "externalName", group->external_name);
    json_key(json, "extension");
    extension_json(call, json, group);
    json_object_end(json);
}

int handle_group_list(struct call *call)
{
    struct store_groups groups;
    struct list_page page;
    int code = page_parse(call, &page, "groups", NULL);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = store_groups_page(call->reader, page.after, page_most(&page), call->arena, &groups,
                                 &call->err);
    if (code)
        return code;
    const size_t count = page_keep(&page, groups.count);
    if (count > 0 && count < groups.count)
        page.last = text_of(groups.items[count - 1].name);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++) {
        if (i && page_is_full(&page, text_of(groups.items[i - 1].name)))
            break;
        group_json(call, &json, &groups.items[i]);
    }
    page_end(&page, &json);
    return 0;
}

int handle_group(struct call *call)
{
    struct store_group group;
    int code = account_group(call, call->parameters[0], &group);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    group_json(call, &json, &group);
    return 0;
}

/* Nobody is in a group that is not there, as in OpenPAI. */
int handle_group_members(struct call *call)
{
    struct store_members members;
    struct list_page page;
    const struct auth_subject subject = {.group = arena_copy(call->arena, call->parameters[0])};
    int code = call_may_about(call, AUTH_READ_MEMBERS, &subject);
    if (!code)
        code = page_parse(call, &page, arena_format(call->arena, "members of %s", subject.group),
                          NULL);
    if (!code)
        code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = store_members_page(call->reader, subject.group, page.after, page_most(&page),
                                  call->arena, &members, &call->err);
    if (code)
        return code;
    const size_t count = page_keep(&page, members.count);
    if (count > 0 && count < members.count)
        page.last = text_of(members.items[count - 1].name);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++) {
        json_object(&json);
        json_key_string(&json, "username", members.items[i].name);
        json_key_bool(&json, "clusterAdmin", members.items[i].is_cluster_admin);
        json_key_bool(&json, "groupAdmin", members.items[i].is_admin);
        json_object_end(&json);
    }
    page_end(&page, &json);
    return 0;
}

/* ---- changes ---- */

/* The whole extension as clients see it: what a change begins with. */
static const struct doc *extension_now(struct call *call, const struct store_group *group)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    extension_json(call, &json, group);
    return account_extension(call, arena_copy(call->arena, buf_as_text(&text)));
}

/* The extension's text, and of its ACLs what counts here. */
static int set_extension(struct call *call, const struct doc *extension, struct account_edit *edit)
{
    struct store_group *group = &edit->change.group;
    const struct doc *acls = NULL;
    bool is_given;
    int code = account_map(call, extension, "acls", &acls);
    if (!code)
        code = account_bool(call, acls, "admin", &group->is_admin, &is_given);
    if (!code)
        code = account_names(call, acls, "virtualClusters", &group->virtual_clusters);
    if (!code)
        code = account_json(call, extension, &group->extension_json);
    edit->change.fields |= GROUP_EXTENSION | GROUP_ADMIN | GROUP_CLUSTERS;
    return code;
}

static int set_text(struct call *call, const struct doc *doc, const char *key, unsigned field,
                    const char **value, struct account_edit *edit)
{
    struct text text;
    int code = call_body_string(call, doc, key, false, &text);
    if (code || !text.at)
        return code;
    *value = arena_copy(call->arena, text);
    edit->change.fields |= field;
    return 0;
}

static int set_texts(struct call *call, const struct doc *doc, struct account_edit *edit)
{
    struct store_group *group = &edit->change.group;
    int code = set_text(call, doc, "description", GROUP_DESCRIPTION, &group->description, edit);
    if (!code)
        code =
            set_text(call, doc, "externalName", GROUP_EXTERNAL_NAME, &group->external_name, edit);
    return code;
}

static struct account_edit *edit_new(struct call *call, enum store_change_kind kind,
                                     struct text name, int status, const char *message)
{
    struct account_edit *edit = account_edit_new(call, kind, status, "%s", message);
    edit->change.group = (struct store_group){.name = arena_copy(call->arena, name),
                                              .description = "",
                                              .external_name = "",
                                              .extension_json = "{}"};
    return edit;
}

static const char *const GROUP_KEYS[] = {"groupname", "description", "externalName", "extension"};
#define GROUP_WORDS "groupname, description, externalName and extension"

int handle_group_create(struct call *call)
{
    const struct doc *doc, *extension = NULL;
    struct text name;
    int code = call_body_of(call, GROUP_KEYS, COUNT_OF(GROUP_KEYS), GROUP_WORDS, &doc);
    if (!code)
        code = call_body_string(call, doc, "groupname", true, &name);
    if (!code)
        code = account_group_name(call, name);
    if (!code)
        code = account_map(call, doc, "extension", &extension);
    if (code)
        return code;
    struct account_edit *edit =
        edit_new(call, CHANGE_GROUP_ADD, name, 201, "group is created successfully");
    edit->change.group.created_ms = (int64_t)time(NULL) * 1000;
    code = set_texts(call, doc, edit);
    if (!code && extension)
        code = set_extension(call, extension, edit);
    return code ? code : account_change(call, edit);
}

int handle_group_remove(struct call *call)
{
    return account_change(call, edit_new(call, CHANGE_GROUP_REMOVE, call->parameters[0], 200,
                                         "group is removed successfully"));
}

static int edit_end(struct call *call, struct account_edit *edit)
{
    if (edit->change.fields)
        return account_change(call, edit);
    call_message(call, edit->status, "%s", edit->message);
    return 0;
}

/* PUT /groups; without `patch` what is not given becomes empty. */
int handle_group_update(struct call *call)
{
    static const char *const KEYS[] = {"data", "patch"};
    const struct doc *doc, *data = NULL, *extension = NULL;
    struct text name;
    struct store_group group;
    bool is_patch = false, is_given;
    int code = call_body_of(call, KEYS, COUNT_OF(KEYS), "data and patch", &doc);
    if (!code)
        code = account_data(call, doc, &data);
    if (!code)
        code = call_body_keys(call, data, GROUP_KEYS, COUNT_OF(GROUP_KEYS), "in data " GROUP_WORDS);
    if (!code)
        code = account_bool(call, doc, "patch", &is_patch, &is_given);
    if (!code)
        code = call_body_string(call, data, "groupname", true, &name);
    if (!code)
        code = account_map(call, data, "extension", &extension);
    if (!code)
        code = account_group(call, name, &group);
    if (code)
        return code;
    struct account_edit *edit =
        edit_new(call, CHANGE_GROUP_SET, name, 201, "update group data successfully.");
    code = set_texts(call, data, edit);
    if (!code && !is_patch)
        edit->change.fields |= GROUP_DESCRIPTION | GROUP_EXTERNAL_NAME;
    if (!code && !is_patch && !extension)
        extension = account_extension(call, "{}");
    if (!code && is_patch && extension) {
        edit->change.extension_was = group.extension_json;
        extension = account_merge(call->arena, extension_now(call, &group), extension);
    }
    if (!code && extension)
        code = set_extension(call, extension, edit);
    return code ? code : edit_end(call, edit);
}

/* The body, which has `key` alone, and the group whose path it is. */
static int field_begin(struct call *call, const char *key, const char *message,
                       const struct doc **doc, struct account_edit **edit,
                       struct store_group *group)
{
    int code = call_body_of(call, &key, 1, arena_format(call->arena, "%s alone", key), doc);
    if (!code)
        code = account_group(call, call->parameters[0], group);
    if (code)
        return code;
    *edit = edit_new(call, CHANGE_GROUP_SET, call->parameters[0], 201, message);
    (*edit)->change.extension_was = NULL;
    return 0;
}

static int missing(struct call *call, const char *key)
{
    return call_fail(call, ERR_INVALID, NULL, key, "%s is missing", key);
}

int handle_group_description(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_group group;
    int code = field_begin(call, "description", "update group description data successfully.", &doc,
                           &edit, &group);
    if (!code)
        code = set_text(call, doc, "description", GROUP_DESCRIPTION,
                        &edit->change.group.description, edit);
    if (!code && !edit->change.fields)
        code = missing(call, "description");
    return code ? code : account_change(call, edit);
}

int handle_group_external_name(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_group group;
    int code = field_begin(call, "externalName", "update group externalNameData data successfully.",
                           &doc, &edit, &group);
    if (!code)
        code = set_text(call, doc, "externalName", GROUP_EXTERNAL_NAME,
                        &edit->change.group.external_name, edit);
    if (!code && !edit->change.fields)
        code = missing(call, "externalName");
    return code ? code : account_change(call, edit);
}

static int extension_change(struct call *call, const struct store_group *group,
                            const struct doc *over, struct account_edit *edit)
{
    edit->change.extension_was = group->extension_json;
    int code =
        set_extension(call, account_merge(call->arena, extension_now(call, group), over), edit);
    return code ? code : account_change(call, edit);
}

int handle_group_extension(struct call *call)
{
    const struct doc *doc, *over;
    struct account_edit *edit;
    struct store_group group;
    int code = field_begin(call, "extension", "update group extension data successfully.", &doc,
                           &edit, &group);
    if (!code)
        code = account_map(call, doc, "extension", &over);
    if (!code && !over)
        code = missing(call, "extension");
    return code ? code : extension_change(call, &group, over, edit);
}

static struct doc *map_of_one(struct arena *arena, struct text key, const struct doc *value)
{
    struct doc *map = ARENA_NEW(arena, struct doc);
    map->kind = DOC_MAP;
    map->as.map.entries = ARENA_ARRAY(arena, struct doc_entry, 1);
    map->as.map.entries[0].key = text_of(arena_copy(arena, key));
    map->as.map.entries[0].value = value;
    map->as.map.count = 1;
    return map;
}

/* {key: … {key: value}}, with what stands beside each key in `now` kept. */
static const struct doc *nested(struct arena *arena, const struct doc *now, const struct text *keys,
                                size_t count, const struct doc *value)
{
    static const struct doc nothing = {.kind = DOC_MAP};
    const struct doc *beside = now && now->kind == DOC_MAP ? now : &nothing;
    if (count == 0)
        return value;
    const struct doc *inner = nested(arena, doc_find(beside, keys[0]), keys + 1, count - 1, value);
    return account_merge(arena, beside, map_of_one(arena, keys[0], inner));
}

/* PUT /groups/:group/extension/KEY/KEY… with {data: VALUE} */
int handle_group_extension_key(struct call *call)
{
    const struct exchange *exchange = call->exchange;
    const struct doc *doc;
    struct account_edit *edit;
    struct store_group group;
    size_t first = text_is(exchange->segments[0], "rest-server") ? 6 : 5;
    int code =
        field_begin(call, "data", "update group extension data successfully.", &doc, &edit, &group);
    if (code)
        return code;
    const struct doc *data = doc_get(doc, "data");
    if (!data)
        return missing(call, "data");
    return extension_change(call, &group,
                            nested(call->arena, extension_now(call, &group),
                                   exchange->segments + first, exchange->segment_count - first,
                                   data),
                            edit);
}
