/* What a template says now and said before its latest changes, for its author and administrators:
 * what one shares today may have been private before. And which templates are official. */
#include "api/account.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/template.h"
#include "base/memory.h"
#include <assert.h>

static void version_json(struct json_writer *json, const struct store_template_version *version,
                         bool is_current, bool is_whole)
{
    assert(version->number > 0);
    json_object(json);
    json_key_int(json, "version", version->number);
    json_key_bool(json, "current", is_current);
    json_key_string(json, "editor", version->editor);
    template_time_json(json, "savedAt", version->saved_ms);
    json_key_string(json, "summary", version->summary);
    json_key(json, "categories");
    template_words_json(json, &version->categories);
    json_key(json, "tags");
    template_words_json(json, &version->tags);
    if (is_whole) {
        json_key_string(json, "description", version->description);
        json_key_string(json, "protocol", version->protocol);
    }
    json_object_end(json);
}

/* Of the template that the path names: those that are kept, the newest first. */
static int versions_of_path(struct call *call, struct store_template *row,
                            struct store_template_versions *versions)
{
    int code = template_of_path(call, AUTH_EDIT_TEMPLATE, row);
    return code ? code
                : store_template_versions(call->reader, row->id, call->arena, versions, &call->err);
}

/* The one that the path names. */
static int version_of_path(struct call *call, struct store_template *row,
                           struct store_template_version *version, bool *is_current)
{
    struct store_template_versions versions = {0};
    int64_t number;
    int code = versions_of_path(call, row, &versions);
    if (!code)
        code = call_index(call, call->parameters[1], "version", INT64_MAX, &number);
    if (!code)
        code =
            store_template_version(call->reader, row->id, number, call->arena, version, &call->err);
    if (code == ERR_NOT_FOUND && !call->error_code)
        call->error_code = "NoTemplateVersionError";
    if (!code)
        *is_current = versions.count && versions.items[0].number == number;
    return code;
}

int handle_template_versions(struct call *call)
{
    struct store_template row;
    struct store_template_versions versions = {0};
    int code = versions_of_path(call, &row, &versions);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    json_array(&json);
    for (size_t i = 0; i < versions.count; i++)
        version_json(&json, &versions.items[i], i == 0, false);
    json_array_end(&json);
    return 0;
}

int handle_template_version(struct call *call)
{
    struct store_template row;
    struct store_template_version version = {0};
    bool is_current = false;
    int code = version_of_path(call, &row, &version, &is_current);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    version_json(&json, &version, is_current, true);
    return 0;
}

/* An earlier version becomes the newest one: nothing is lost, and the name and whom it is shared
 * with stay. */
int handle_template_restore(struct call *call)
{
    static const char *const keys[] = {"updatedAt"};
    const struct doc *doc;
    struct store_change change = {.kind = CHANGE_TEMPLATE_SET};
    struct store_template *row = &change.template.row;
    struct store_template_version version = {0};
    bool is_current = false;
    int64_t seen_ms;
    int code = version_of_path(call, row, &version, &is_current);
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "updatedAt", &doc);
    if (!code)
        code = template_seen_check(call, doc, row, &seen_ms);
    if (code)
        return code;
    if (is_current)
        return call_fail(call, ERR_CONFLICT, "ConflictTemplateError", "version",
                         "version %lld is what the template says now", (long long)version.number);
    row->summary = version.summary;
    row->description = version.description;
    row->protocol = version.protocol;
    row->categories = version.categories;
    row->tags = version.tags;
    return template_set_send(call, &change, "restored");
}

int handle_template_official(struct call *call)
{
    static const char *const keys[] = {"official", "updatedAt"};
    const struct doc *doc;
    bool is_official, is_named;
    struct store_change change = {.kind = CHANGE_TEMPLATE_OFFICIAL};
    struct store_template *row = &change.template.row;
    int64_t seen_ms;
    int code = template_of_path(call, AUTH_READ_TEMPLATE, row);
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "official and updatedAt", &doc);
    if (!code)
        code = account_bool(call, doc, "official", &is_official, &is_named);
    if (!code)
        code = template_seen_check(call, doc, row, &seen_ms);
    if (code)
        return code;
    if (!is_named)
        return call_fail(call, ERR_INVALID, NULL, "official", "official is missing");
    row->is_official = is_official;
    row->updated_ms = seen_ms;
    return template_change_send(
        call, &change,
        &(struct template_reply){.status = 200,
                                 .message = is_official ? "official" : "not official"});
}
