#include "api/audit.h"
#include "api/handlers.h"
#include "api/page.h"
#include "base/memory.h"
#include "sys/log.h"

enum { LIMIT = 100, LIMIT_MAX = 1000 };
static const struct page_limits limits = {1, LIMIT_MAX, LIMIT};

/* ---- what is written down ---- */

static bool is_login(const struct call *call)
{
    int (*handle)(struct call *) = call->route->handle;
    return handle == handle_login || handle == handle_oidc_return || handle == handle_oidc_token;
}

static bool is_wanted(const struct call *call)
{
    if (!call->route || call->is_trial || call->route->handle == handle_barrier ||
        call->route->handle == handle_upload_part)
        return false;
    if (is_login(call))
        return true;
    return call->route->method != HTTP_GET && call->caller.auth.user[0];
}

void audit_subject(struct call *call, const char *kind, struct text name)
{
    call->audit.subject_kind = kind;
    call->audit.subject = arena_copy(call->arena, name);
}

/* The last part of the route's path that names something. */
static void subject_of_path(struct call *call)
{
    static const char *const kinds[] = {"job",  "user", "group",   "token",
                                        "node", "vc",   "storage", "request"};
    struct text rest = text_of(call->route->path), user = {NULL, 0};
    for (size_t parameter = 0; rest.at && parameter < ROUTE_PARAMETERS_MAX;) {
        struct text part = text_cut(&rest, '/');
        if (!part.length || part.at[0] != ':')
            continue;
        struct text value = call->parameters[parameter++];
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            if (text_is((struct text){part.at + 1, part.length - 1}, kinds[i]))
                audit_subject(call, kinds[i], value);
        if (text_is(part, ":user"))
            user = value;
        bool is_whole = memchr(value.at, '~', value.length) != NULL;
        if (!text_is(part, ":job") || is_whole)
            continue;
        if (!user.at)
            user = text_of(call->caller.auth.user);
        call->audit.subject =
            arena_format(call->arena, "%.*s~%.*s", TEXT_ARG(user), TEXT_ARG(value));
    }
}

static const char *address_of(struct call *call)
{
    const struct exchange *exchange = call->exchange;
    if (exchange->address.length)
        return arena_copy(call->arena, exchange->address);
    if (exchange->peer_uid < 0)
        return "";
    return arena_format(call->arena, "uid %lld", (long long)exchange->peer_uid);
}

const struct store_audit *audit_of(struct call *call)
{
    struct store_audit *audit = &call->audit;
    if (!is_wanted(call))
        return NULL;
    if (audit->route)
        return audit;
    if (!audit->user)
        audit->user = call->caller.auth.user;
    audit->token = call->caller.token_id;
    audit->address = address_of(call);
    audit->route = arena_format(call->arena, "%s %s", http_method_name(call->route->method),
                                call->route->path);
    /* in the place of a token's number the token itself may stand */
    if (!audit->subject && call->route->handle != handle_token_remove)
        subject_of_path(call);
    return audit;
}

static void json_keep(struct call *call, bool is_after, struct buf *text)
{
    const char *kept = arena_copy(call->arena, buf_as_text(text));
    if (is_after)
        call->audit.after = kept;
    else
        call->audit.before = kept;
}

void audit_after(struct call *call, struct text name, const char *key, int64_t value)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key(&json, arena_copy(call->arena, name));
    json_object(&json);
    json_key_int(&json, key, value);
    json_object_end(&json);
    json_object_end(&json);
    json_keep(call, true, &text);
}

void audit_word(struct call *call, bool is_after, const char *key, const char *word)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key_string(&json, key, word);
    json_object_end(&json);
    json_keep(call, is_after, &text);
}

static void audit_alone(struct call *call, int code, const char *reason)
{
    struct service *service = call->api->service;
    const struct store_audit *common = audit_of(call);
    struct err err;
    if (!common)
        return;
    struct store_audit audit = *common;
    audit.code = code;
    audit.reason = reason;
    if (code) /* what would have been */
        audit.before = audit.after = NULL;
    const struct store_change change = {.kind = CHANGE_AUDIT};
    const struct service_reply reply = {.audit = &audit};
    call->is_audited = true;
    if (service->change(service->context, &change, reply, &err))
        log_warning("api", "no audit record of %s of %s by %s from %s, %s: %s", audit.route,
                    audit.subject ? audit.subject : "", audit.user[0] ? audit.user : "nobody",
                    audit.address, code ? err_name(code) : "done", err.text);
}

void audit_refusal(struct call *call, int code, const char *reason)
{
    audit_alone(call, code, reason);
}

void audit_end(struct call *call, int code)
{
    /* strangers could fill the records: of logins those are kept that cost them a try */
    const bool is_stranger = !call->caller.auth.user[0];
    if (call->is_audited || is_stranger || code == ERR_BUSY || code == ERR_UNAVAILABLE)
        return;
    audit_alone(call, code, code ? call->err.text : "");
}

/* ---- reading them ---- */

static void state_json(struct json_writer *json, const char *key, const char *state)
{
    json_key(json, key);
    if (state[0])
        json_raw(json, text_of(state));
    else
        json_null(json);
}

static void record_json(struct json_writer *json, const struct store_audit *audit)
{
    json_object(json);
    json_key_int(json, "number", (int64_t)audit->number);
    json_key_int(json, "time", audit->at_ms);
    json_key_string(json, "username", audit->user);
    json_key_string(json, "token", audit->token);
    json_key_string(json, "address", audit->address);
    json_key_string(json, "right", audit->right);
    json_key_string(json, "route", audit->route);
    json_key_string(json, "subjectKind", audit->subject_kind);
    json_key_string(json, "subject", audit->subject);
    json_key_string(json, "outcome", audit->code ? err_name(audit->code) : "done");
    json_key_string(json, "reason", audit->reason);
    state_json(json, "before", audit->before);
    state_json(json, "after", audit->after);
    json_object_end(json);
}

int handle_audit_list(struct call *call)
{
    struct audit_filter filter = {.wants_refused = call_flag(call, "refused")};
    struct store_audits audits;
    struct list_page page;
    int code = page_parse(call, &page, "audit", &limits);
    if (!code && page.after.at && !page_number_parse(page.after, &filter.before))
        code = page_fail(&page);
    if (!code)
        code = call_number(call, "since", 0, INT64_MAX, 0, &filter.since_ms);
    if (!code)
        code = call_number(call, "until", 0, INT64_MAX, 0, &filter.until_ms);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (code)
        return code;
    filter.user = exchange_query(call->exchange, "user");
    filter.subject = exchange_query(call->exchange, "subject");
    filter.limit = page.limit + 1; /* is there another page? */
    code = store_audits(call->reader, &filter, call->arena, &audits, &call->err);
    if (code)
        return code;
    const size_t count = page_keep(&page, audits.count);
    if (count > 0 && count < audits.count)
        page.last = page_number(call, audits.items[count - 1].number);
    page.has_cursor = true; /* always */
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++) {
        if (i && page_is_full(&page, page_number(call, audits.items[i - 1].number)))
            break;
        record_json(&json, &audits.items[i]);
    }
    page_end(&page, &json);
    return 0;
}
