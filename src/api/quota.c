/* Quotas of users and groups: shown to those whose they are, set by admins. */
#include "api/account.h"
#include "api/audit.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/throttle.h"
#include "base/memory.h"
#include "sys/clock.h"

static void value_json(struct json_writer *json, const char *key, int64_t value)
{
    if (value == QUOTA_NONE)
        json_key_null(json, key);
    else
        json_key_int(json, key, value);
}

/* Whole hours, as a submission is refused when they are reached. < 0: call->err. */
static int64_t hours_of(struct call *call, const char *user)
{
    uint64_t gpu_ms;
    int code = store_gpu_use(call->reader, text_of(user), clock_unix_ms(), &gpu_ms, &call->err);
    return code < 0 ? code : (int64_t)(gpu_ms / 3600000);
}

/* < 0: call->err. */
static int64_t used_of(struct call *call, const char *user, enum quota_kind kind)
{
    struct service *service = call->api->service;
    struct store_use use;
    switch (kind) {
    case QUOTA_LIVE_JOBS:
    case QUOTA_GPUS:
    case QUOTA_STORED_JOBS:
        store_use_of(service->store, text_of(user), &use);
        return (int64_t)(kind == QUOTA_LIVE_JOBS ? use.live_jobs
                         : kind == QUOTA_GPUS    ? use.gpus
                                                 : use.stored_jobs);
    case QUOTA_SUBMITS_MINUTE:
        return service->submits_used(service->context, user);
    case QUOTA_REQUESTS_SECOND:
        return throttle_use_of(call->api, user).requests;
    case QUOTA_STREAMS:
        return throttle_use_of(call->api, user).streams;
    case QUOTA_KEPT_JOBS:
        store_use_of(service->store, text_of(user), &use);
        return (int64_t)(use.stored_jobs - use.live_jobs);
    case QUOTA_GPU_HOURS:
        return hours_of(call, user);
    }
    return 0;
}

int handle_user_quota(struct call *call)
{
    const char *name = arena_copy(call->arena, call->parameters[0]);
    const struct auth_subject subject = {.owner = name};
    struct store_user user;
    struct store_user_quotas quotas;
    int code = call_may_about(call, AUTH_READ_PROFILE, &subject);
    if (!code)
        code = account_user(call, text_of(name), &user);
    if (!code)
        code = store_user_quotas(call->reader, text_of(name), call->arena, &quotas, &call->err);
    int64_t used[QUOTA_KIND_COUNT];
    for (int i = 0; !code && i < QUOTA_KIND_COUNT; i++) {
        used[i] = used_of(call, name, (enum quota_kind)i);
        code = used[i] < 0 ? (int)used[i] : 0;
    }
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    for (int i = 0; i < QUOTA_KIND_COUNT; i++) {
        const enum quota_kind kind = (enum quota_kind)i;
        json_key(&json, quota_name(kind));
        json_object(&json);
        value_json(&json, "value", quotas.values.values[i]);
        json_key_string(&json, "group", quotas.groups[i]);
        json_key_int(&json, "used", used[i]);
        json_object_end(&json);
    }
    json_object_end(&json);
    return 0;
}

int handle_group_quota(struct call *call)
{
    const struct auth_subject subject = {.group = arena_copy(call->arena, call->parameters[0])};
    struct quotas quotas;
    int code = call_may_about(call, AUTH_READ_MEMBERS, &subject);
    if (!code)
        code = account_group_exists(call, call->parameters[0]);
    if (!code)
        code = store_quotas(call->reader, true, call->parameters[0], &quotas, &call->err);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    for (int i = 0; i < QUOTA_KIND_COUNT; i++) {
        json_key(&json, quota_name((enum quota_kind)i));
        json_object(&json);
        value_json(&json, "value", quotas.values[i]);
        json_object_end(&json);
    }
    json_object_end(&json);
    return 0;
}

/* Of requests there must be one, or nobody could set the quota of an admin again. */
static int value_read(struct call *call, const struct doc_entry *entry, enum quota_kind kind,
                      struct store_change *change)
{
    const struct doc *value = entry->value;
    const int64_t least = kind == QUOTA_REQUESTS_SECOND ? 1 : 0;
    int64_t number = QUOTA_NONE;
    if (value->kind == DOC_INT)
        number = value->as.integer;
    if (value->kind != DOC_NULL && (value->kind != DOC_INT || number < least || number > QUOTA_MAX))
        return call_fail(call, ERR_INVALID, NULL, quota_name(kind),
                         "body:%u:%u: %s must be a number in %lld..%d, or null", value->place.line,
                         value->place.column, quota_name(kind), (long long)least, QUOTA_MAX);
    change->quotas.values.values[kind] = number;
    change->quotas.kinds |= 1u << kind;
    return 0;
}

static int quotas_change(struct call *call, bool is_group, const char *message)
{
    struct account_edit *edit = account_edit_new(call, CHANGE_QUOTAS, 201, "%s", message);
    const struct doc *doc;
    int code = call_body(call, &doc);
    edit->change.quotas.holder = arena_copy(call->arena, call->parameters[0]);
    edit->change.quotas.is_group = is_group;
    for (size_t i = 0; !code && i < doc->as.map.count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        enum quota_kind kind;
        if (!quota_find(entry->key, &kind))
            return call_fail(call, ERR_INVALID, NULL, "", "body:%u:%u: there is no quota '%.*s'",
                             entry->place.line, entry->place.column,
                             (int)(entry->key.length > 60 ? 60 : entry->key.length), entry->key.at);
        code = value_read(call, entry, kind, &edit->change);
    }
    if (!code && !edit->change.quotas.kinds)
        code = call_fail(call, ERR_INVALID, NULL, "", "no quota is named");
    return code ? code : account_change(call, edit);
}

int handle_user_quota_set(struct call *call)
{
    return quotas_change(call, false, "Update quotas of user successfully.");
}

int handle_group_quota_set(struct call *call)
{
    return quotas_change(call, true, "Update quotas of group successfully.");
}
