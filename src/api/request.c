/* What users ask administrators for: docs/rfc/0022-requests.md. */
#include "api/request.h"
#include "api/account.h"
#include "api/audit.h"
#include "api/handlers.h"
#include "api/page.h"
#include "api/snapshot.h"
#include "api/view.h"
#include "base/memory.h"
#include "base/printable.h"
#include "sys/clock.h"
#include <assert.h>

enum { LIMIT = 100, LIMIT_MAX = 1000 };
static const struct page_limits limits = {1, LIMIT_MAX, LIMIT};

const char *request_id_make(struct call *call)
{
    char *id = ARENA_ARRAY(call->arena, char, TOKEN_ID_SIZE);
    token_id_make(id);
    id[REQUEST_ID_LENGTH] = '\0'; /* people type it */
    return id;
}

int request_line_read(struct call *call, const struct doc *doc, const char *key, const char **line)
{
    struct text text;
    *line = "";
    int code = call_body_string(call, doc, key, false, &text);
    if (code || !text.at)
        return code;
    text = text_trim(text);
    if (text.length > REQUEST_WHY_MAX || !printable_is_line(text))
        return call_fail(call, ERR_INVALID, NULL, key, "%s must be one line of at most %d bytes",
                         key, REQUEST_WHY_MAX);
    *line = arena_copy(call->arena, text);
    return 0;
}

/* ERR_*: why nothing can be read now. */
static int reader_need(struct call *call)
{
    if (call_reader(call))
        return 0;
    assert(call->err.code < 0);
    return call->err.code;
}

/* ---- as JSON ---- */

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

/* From where a visitor came, and whether the name is or was another one's, is for administrators,
 * who alone see requests for accounts. */
static void request_json(struct json_writer *json, const struct store_request *row)
{
    json_object(json);
    json_key_string(json, "id", row->id);
    json_key_string(json, "kind", request_kind_name(row->kind));
    json_key_string(json, "status", request_state_name(row->state));
    json_key_string(json, "username", row->user);
    if (row->kind == REQUEST_CLUSTER)
        json_key_string(json, "virtualCluster", row->virtual_cluster);
    json_key_string(json, "reason", or_null(row->why));
    json_key_int(json, "askedTime", row->asked_ms);
    if (row->kind == REQUEST_ACCOUNT) {
        json_key_string(json, "email", row->email);
        json_key_string(json, "address", or_null(row->address));
        json_key_bool(json, "nameTaken", row->is_name_taken);
        json_key_bool(json, "nameUsedBefore", row->is_name_used);
    }
    view_time(json, "decidedTime", row->decided_ms);
    json_key_string(json, "decidedBy", or_null(row->decider));
    json_key_string(json, "answer", or_null(row->answer));
    json_key_string(json, "group", or_null(row->group));
    json_object_end(json);
}

/* The row as it is now. */
static int request_reply(struct call *call, int status, const char *id)
{
    struct store_request row;
    int code = reader_need(call);
    if (!code)
        code = store_request(call->reader, text_of(id), call->arena, &row, &call->err);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, status, &json);
    request_json(&json, &row);
    return 0;
}

/* ---- reading ---- */

/* Nobody owns that of a visitor. */
static struct auth_subject subject_of(const struct store_request *row)
{
    return (struct auth_subject){.owner = row->kind == REQUEST_CLUSTER ? row->user : ""};
}

static int request_of_path(struct call *call, struct store_request *row)
{
    int code = reader_need(call);
    if (!code)
        code = store_request(call->reader, call->parameters[0], call->arena, row, &call->err);
    if (code == ERR_NOT_FOUND)
        call->error_code = "NoRequestError";
    if (code)
        return code;
    const struct auth_subject subject = subject_of(row);
    return call_may_about(call, AUTH_READ_REQUEST, &subject);
}

int handle_request(struct call *call)
{
    struct store_request row;
    int code = request_of_path(call, &row);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    request_json(&json, &row);
    return 0;
}

/* `status` of the query as bits 1 << enum request_state; all when it is absent. */
static int states_read(struct call *call, unsigned *states)
{
    struct call_words words;
    int code = call_words(call, "status", &words);
    *states = words.count ? 0 : ~0u;
    for (size_t i = 0; !code && i < words.count; i++) {
        enum request_state state;
        if (!request_state_find(words.items[i], &state))
            return call_fail(call, ERR_INVALID, NULL, "status",
                             "status is open, accepted, refused or withdrawn");
        *states |= 1u << state;
    }
    return code;
}

/* Whose requests: one's own, unless an administrator asks for others' or for all. */
static int filter_read(struct call *call, struct request_filter *filter, unsigned *states)
{
    *filter = (struct request_filter){.user = exchange_query(call->exchange, "username")};
    if (!filter->user.length && !call_can(call, AUTH_ADMINISTER, NULL))
        filter->user = text_of(call->caller.auth.user);
    int code = states_read(call, states);
    filter->is_open = *states == 1u << REQUEST_OPEN;
    if (code || !filter->user.length)
        return code;
    const struct auth_subject subject = {.owner = arena_copy(call->arena, filter->user)};
    return call_may_about(call, AUTH_READ_REQUEST, &subject);
}

int handle_request_list(struct call *call)
{
    struct request_filter filter;
    struct store_requests requests = {0};
    struct list_page page = {0};
    unsigned states;
    int code = page_parse(call, &page, "requests", &limits);
    if (!code)
        code = filter_read(call, &filter, &states);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = store_requests(call->reader, &filter, call->arena, &requests, &call->err);
    if (code)
        return code;
    struct text *keys = ARENA_ARRAY(call->arena, struct text, requests.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < requests.count; i++) {
        const struct store_request row = requests.items[i];
        if (!(states & 1u << row.state))
            continue;
        requests.items[count] = row;
        keys[count++] = text_of(
            arena_format(call->arena, "%016llx%s", (unsigned long long)row.asked_ms, row.id));
    }
    const size_t *rows;
    page.is_cut = true;
    page.total = (int64_t)count;
    count = page_pick(&page, keys, count, true, &rows);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++)
        request_json(&json, &requests.items[rows[i]]);
    page_end(&page, &json);
    return 0;
}

/* ---- changes ---- */

static const char *error_name(int code)
{
    return code == ERR_NOT_FOUND  ? "NoRequestError"
           : code == ERR_CONFLICT ? "ConflictRequestError"
                                  : NULL;
}

static int change_send(struct call *call, const struct store_change *change,
                       int (*answered)(struct call *call))
{
    struct service *service = call->api->service;
    struct err err = {0};
    struct service_reply reply = call_suspend(call, answered);
    int code = service->change(service->context, change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* ---- asking ---- */

/* The caller's open request for this virtual cluster; `id` NULL: there is none. */
static int open_find(struct call *call, const char *cluster, const char **id)
{
    const struct request_filter filter = {text_of(call->caller.auth.user), true};
    struct store_requests requests = {0};
    *id = NULL;
    if (!call_reader(call))
        return call->err.code;
    int code = store_requests(call->reader, &filter, call->arena, &requests, &call->err);
    for (size_t i = 0; !code && i < requests.count; i++)
        if (strcmp(requests.items[i].virtual_cluster, cluster) == 0)
            *id = requests.items[i].id;
    return code;
}

static int ask_answered(struct call *call)
{
    const struct store_request *row = call->task;
    const char *open = NULL;
    if (!call->answer_code)
        return request_reply(call, 201, row->id);
    /* it was asked for at the same time */
    if (call->answer_code == ERR_CONFLICT && open_find(call, row->virtual_cluster, &open) == 0 &&
        open)
        return request_reply(call, 200, open);
    call->err = call->answer_err;
    call->error_code = error_name(call->answer_code);
    return call->answer_code;
}

static int may_use(struct call *call, const char *cluster, bool *may)
{
    struct store_names granted;
    *may = strcmp(cluster, "default") == 0 || call->caller.auth.is_admin;
    if (*may)
        return 0;
    int code = store_user_clusters(call->reader, call->caller.auth.user, call->arena, &granted,
                                   &call->err);
    for (size_t i = 0; !code && i < granted.count; i++)
        *may = *may || strcmp(granted.items[i], cluster) == 0;
    return code;
}

static int ask_checked(struct call *call, const struct service_snapshot *snapshot)
{
    const struct store_request *row = call->task;
    const char *open = NULL;
    bool may = false;
    if (!vc_exists(snapshot, text_of(row->virtual_cluster)))
        return call_fail(call, ERR_NOT_FOUND, "NoVirtualClusterError", "virtualCluster",
                         "there is no virtual cluster %.100s", row->virtual_cluster);
    int code = open_find(call, row->virtual_cluster, &open);
    if (!code && !open)
        code = may_use(call, row->virtual_cluster, &may);
    if (code)
        return code;
    if (open)
        return request_reply(call, 200, open);
    if (may)
        return call_fail(call, ERR_CONFLICT, "ConflictRequestError", "virtualCluster",
                         "%s may use %.100s already", row->user, row->virtual_cluster);
    const struct store_change change = {.kind = CHANGE_REQUEST_ADD, .request.row = *row};
    return change_send(call, &change, ask_answered);
}

int handle_request_create(struct call *call)
{
    static const char *const KEYS[] = {"virtualCluster", "reason"};
    const struct doc *doc;
    struct text cluster;
    struct store_request *row = ARENA_NEW(call->arena, struct store_request);
    int code = call_body_of(call, KEYS, COUNT_OF(KEYS), "virtualCluster and reason", &doc);
    if (!code)
        code = call_body_string(call, doc, "virtualCluster", true, &cluster);
    if (!code)
        code = request_line_read(call, doc, "reason", &row->why);
    if (code)
        return code;
    row->id = request_id_make(call);
    row->kind = REQUEST_CLUSTER;
    row->user = call->caller.auth.user;
    row->virtual_cluster = arena_copy(call->arena, cluster);
    row->asked_ms = clock_unix_ms();
    audit_subject(call, "request", text_of(row->id));
    call->task = row;
    return snapshot_read(call, ask_checked);
}

/* ---- deciding ---- */

struct request_decision {
    struct store_change change;
    const char *cluster; /* that must exist; NULL: none */
};

static int decided(struct call *call)
{
    const struct request_decision *decision = call->task;
    if (call->answer_code) {
        call->err = call->answer_err;
        call->error_code = error_name(call->answer_code);
        if (call->answer_code == ERR_CONFLICT)
            call->error_code = account_conflict_name(&call->err, call->error_code);
        return call->answer_code;
    }
    return request_reply(call, 200, decision->change.request.row.id);
}

static int decide_checked(struct call *call, const struct service_snapshot *snapshot)
{
    const struct request_decision *decision = call->task;
    if (!vc_exists(snapshot, text_of(decision->cluster)))
        return call_fail(call, ERR_NOT_FOUND, "NoVirtualClusterError", "",
                         "there is no virtual cluster %.100s any more: refuse the request",
                         decision->cluster);
    return change_send(call, &decision->change, decided);
}

static int act_read(struct call *call, const struct doc *doc, enum request_act *act)
{
    static const struct {
        const char *status;
        enum request_act act;
    } ACTS[] = {
        {"accepted", REQUEST_ACCEPT}, {"refused", REQUEST_REFUSE}, {"withdrawn", REQUEST_WITHDRAW}};
    struct text status;
    int code = call_body_string(call, doc, "status", true, &status);
    for (size_t i = 0; !code && i < COUNT_OF(ACTS); i++) {
        *act = ACTS[i].act;
        if (text_is(status, ACTS[i].status))
            return 0;
    }
    return code ? code
                : call_fail(call, ERR_INVALID, NULL, "status",
                            "status is accepted, refused or withdrawn");
}

/* Who may do it, and what goes with it. */
static int act_check(struct call *call, const struct store_request *row,
                     const struct store_change *change)
{
    const enum request_act act = change->request.act;
    const struct store_request *given = &change->request.row;
    const struct auth_subject subject = subject_of(row);
    int code = act == REQUEST_WITHDRAW ? call_may_about(call, AUTH_WITHDRAW, &subject)
                                       : call_may(call, AUTH_MANAGE, NULL);
    if (code)
        return code;
    if (act != REQUEST_ACCEPT && given->group[0])
        return call_fail(call, ERR_INVALID, NULL, "group", "a group goes with accepted");
    if (change->reuses_name && (act != REQUEST_ACCEPT || row->kind != REQUEST_ACCOUNT))
        return call_fail(call, ERR_INVALID, NULL, STORE_REUSES_NAME,
                         STORE_REUSES_NAME " goes with accepted, of an account");
    if (act == REQUEST_WITHDRAW && given->answer[0])
        return call_fail(call, ERR_INVALID, NULL, "reason",
                         "a reason goes with accepted and refused");
    if (act == REQUEST_REFUSE && !given->answer[0])
        return call_fail(call, ERR_INVALID, NULL, "reason",
                         "reason is missing: say why, for who has asked");
    return 0;
}

int handle_request_status(struct call *call)
{
    static const char *const KEYS[] = {"status", "reason", "group", STORE_REUSES_NAME};
    const struct doc *doc;
    struct store_request row;
    struct text group;
    bool is_given;
    struct request_decision *decision = ARENA_NEW(call->arena, struct request_decision);
    struct store_request *given = &decision->change.request.row;
    int code = request_of_path(call, &row);
    if (!code)
        code = call_body_of(call, KEYS, COUNT_OF(KEYS),
                            "status, reason, group and " STORE_REUSES_NAME, &doc);
    if (!code)
        code = act_read(call, doc, &decision->change.request.act);
    if (!code)
        code = request_line_read(call, doc, "reason", &given->answer);
    if (!code)
        code = call_body_string(call, doc, "group", false, &group);
    if (!code)
        code = account_bool(call, doc, STORE_REUSES_NAME, &decision->change.reuses_name, &is_given);
    if (code)
        return code;
    const enum request_act act = decision->change.request.act;
    given->group = arena_copy(call->arena, group.at ? group : TEXT(""));
    code = act_check(call, &row, &decision->change);
    if (code)
        return code;
    decision->change.kind = CHANGE_REQUEST_ACT;
    given->id = row.id;
    given->decider = call->caller.auth.user;
    given->decided_ms = clock_unix_ms();
    call->task = decision;
    if (act != REQUEST_ACCEPT || row.kind != REQUEST_CLUSTER || row.state != REQUEST_OPEN)
        return change_send(call, &decision->change, decided);
    decision->cluster = row.virtual_cluster;
    return snapshot_read(call, decide_checked);
}
