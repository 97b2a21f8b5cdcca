/* job_bulk.c — one action for many jobs: those that are named, or those that a filter finds.
 *
 * Each job is asked for as by a request of its own: it has its own rights, its own answer and its
 * own audit record. So many are under way at once that the core thread has a full round, and not
 * so many that they fill its mailbox.
 */
#include "api/audit.h"
#include "api/byte_budget.h"
#include "api/handlers.h"
#include "api/throttle.h"
#include "base/memory.h"
#include "sys/log.h"
#include <assert.h>
#include <stdatomic.h>

enum { JOBS_MAX = 1000, UNDER_WAY_MAX = 64, ANSWER_BYTES = 512 /* about, of one job */ };

#define BIT(state) (1u << PUBLIC_##state)

enum bulk_kind { BULK_ACT, BULK_TAG };

static const struct bulk_action {
    const char *name;
    enum bulk_kind kind;
    enum service_action act;
    enum store_change_kind change;
    uint32_t states; /* that a filter finds when it names none; 0: all */
} ACTIONS[] = {
    {"stop", BULK_ACT, SERVICE_STOP, 0, BIT(WAITING) | BIT(RUNNING)},
    {"start", BULK_ACT, SERVICE_START, 0, BIT(STOPPED)},
    {"delete", BULK_ACT, SERVICE_DELETE, 0, BIT(SUCCEEDED) | BIT(STOPPED) | BIT(FAILED)},
    {"release", BULK_ACT, SERVICE_RELEASE, 0, BIT(FAILED)},
    {"addTag", BULK_TAG, 0, CHANGE_TAG_ADD, 0},
    {"removeTag", BULK_TAG, 0, CHANGE_TAG_REMOVE, 0},
};

struct bulk_item {
    struct bulk *bulk;
    const char *name; /* "alice~train" */
    struct store_job job;
    int code;
    struct err err;
};

struct bulk {
    struct call *call;
    const struct bulk_action *action;
    const char *tag;
    const char *after; /* for the audit records: what is asked for */
    struct bulk_item *items;
    size_t count, next;
    uint64_t matched; /* by the filter, beyond the limit, too */
    atomic_size_t under_way;
};

/* ---- which jobs ---- */

static void item_add(struct bulk *bulk, const char *name)
{
    struct bulk_item *item = &bulk->items[bulk->count++];
    *item = (struct bulk_item){.bulk = bulk, .name = name};
}

static int jobs_named(struct bulk *bulk, const struct doc *list)
{
    struct call *call = bulk->call;
    if (list->kind != DOC_LIST || list->as.list.count == 0 || list->as.list.count > JOBS_MAX)
        return call_fail(call, ERR_INVALID, NULL, "jobs", "jobs must be a list of 1 to %d names",
                         JOBS_MAX);
    bulk->items = ARENA_ARRAY(call->arena, struct bulk_item, list->as.list.count);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *name = list->as.list.items[i];
        if (name->kind != DOC_STRING)
            return call_fail(call, ERR_INVALID, NULL, "jobs",
                             "body:%u:%u: the name of a job must be a string, got %s",
                             name->place.line, name->place.column, doc_kind_name(name->kind));
        item_add(bulk, arena_copy(call->arena, name->as.string));
        struct bulk_item *item = &bulk->items[i];
        item->code = call_job_exactly(call, name->as.string, &item->job);
        if (item->code)
            item->err = call->err;
        else
            item->name =
                arena_format(call->arena, "%s~%s", item->job.record.user, item->job.record.name);
    }
    call->error_code = NULL; /* of a job that is not there */
    bulk->matched = bulk->count;
    return 0;
}

static const char *const FILTERS[] = {"username",    "vc",          "state",
                                      "keyword",     "tagsContain", "tagsNotContain",
                                      "jobPriority", "since",       "until"};

static bool has_filter(const struct call *call)
{
    for (size_t i = 0; i < COUNT_OF(FILTERS); i++)
        if (exchange_query(call->exchange, FILTERS[i]).at)
            return true;
    return false;
}

/* A word that says nothing would be one filter less, and more jobs than are meant. */
static int filters_check(struct call *call)
{
    for (size_t i = 0; i < COUNT_OF(FILTERS); i++) {
        const struct text text = exchange_query(call->exchange, FILTERS[i]);
        size_t commas = 0;
        while (commas < text.length && text.at[commas] == ',')
            commas++;
        if (text.at && commas == text.length)
            return call_fail(call, ERR_INVALID, NULL, FILTERS[i],
                             "%s is empty: leave it out, or say what it is to find", FILTERS[i]);
    }
    return 0;
}

/* Without a user's name the caller's own: nobody is to stop the jobs of all by leaving it out. */
static int jobs_found(struct bulk *bulk)
{
    struct call *call = bulk->call;
    struct job_filter filter = {0};
    const struct text own = text_of(call->caller.auth.user);
    struct job_page page;
    int64_t limit;
    int code = filters_check(call);
    if (!code)
        code = job_filter_parse(call, &filter);
    if (!code)
        code = call_number(call, "limit", 1, JOBS_MAX, JOBS_MAX, &limit);
    if (code)
        return code;
    if (!has_filter(call) && !call_flag(call, "all"))
        return call_fail(call, ERR_INVALID, NULL, "jobs",
                         "name the jobs, or filter them as GET /api/v2/jobs does, or ask for all "
                         "of yours with all=true");
    filter.limit = (uint64_t)limit;
    if (filter.user_count == 0) {
        filter.users = &own;
        filter.user_count = 1;
    }
    if (filter.states == 0)
        filter.states = bulk->action->states;
    store_job_list(call->api->service->store, &filter, call->arena, &page);
    bulk->items = ARENA_ARRAY(call->arena, struct bulk_item, page.count + 1);
    for (size_t i = 0; i < page.count; i++) {
        const struct store_job *job = &page.items[i];
        item_add(bulk, arena_format(call->arena, "%s~%s", job->record.user, job->record.name));
        bulk->items[i].job = *job;
    }
    bulk->matched = page.total;
    return 0;
}

/* ---- one job ---- */

/* The last of those under way lets the request go on. */
static void one_ended(struct bulk *bulk)
{
    if (atomic_fetch_sub(&bulk->under_way, 1) == 1)
        exchange_resume(bulk->call->exchange);
}

/* On the core thread. */
static void item_answered(void *context, const struct service_answer *answer)
{
    struct bulk_item *item = context;
    item->code = answer->code;
    if (answer->code)
        err_fail(&item->err, answer->code, "", "%s", answer->text ? answer->text : "");
    one_ended(item->bulk);
}

static void item_refuse(struct bulk_item *item, int code, const struct err *err)
{
    item->code = code;
    item->err = *err;
    if (code != ERR_BUSY && code != ERR_UNAVAILABLE)
        audit_refusal(item->bulk->call, code, err->text);
}

static int item_give(struct bulk_item *item, struct service_reply reply, struct err *err)
{
    const struct bulk *bulk = item->bulk;
    struct service *service = bulk->call->api->service;
    const struct job_id job = item->job.record.id;
    if (bulk->action->kind == BULK_ACT)
        return service->act(service->context, bulk->action->act, bulk->call->caller.auth.user, job,
                            reply, err);
    const struct store_change change = {.kind = bulk->action->change,
                                        .tag = {.job = job, .name = bulk->tag}};
    return service->change(service->context, &change, reply, err);
}

/* The audit record of the call is this job's until the next one. */
static void item_ask(struct bulk_item *item)
{
    struct bulk *bulk = item->bulk;
    struct call *call = bulk->call;
    call->audit.subject_kind = "job";
    call->audit.subject = item->name;
    call->audit.after = bulk->after;
    int code = item->code ? item->code : call_may(call, AUTH_CHANGE_JOB, &item->job);
    if (code) {
        const struct err err = item->code ? item->err : call->err;
        item_refuse(item, code, &err);
        return;
    }
    struct err err = {0};
    const struct service_reply reply = {
        .done = item_answered, .context = item, .audit = audit_of(call)};
    atomic_fetch_add(&bulk->under_way, 1);
    code = item_give(item, reply, &err);
    if (code) {
        item_refuse(item, code, &err);
        one_ended(bulk);
    }
}

/* ---- all of them ---- */

static void item_json(struct json_writer *json, const struct bulk_item *item, const char *done)
{
    json_object(json);
    json_key_string(json, "name", item->name);
    json_key_string(json, "outcome", item->code ? err_name(item->code) : done);
    if (item->code)
        json_key_string(json, "message", item->err.text);
    json_object_end(json);
}

static int bulk_reply(struct bulk *bulk)
{
    struct call *call = bulk->call;
    struct json_writer json;
    size_t failed = 0;
    for (size_t i = 0; i < bulk->count; i++)
        failed += bulk->items[i].code != 0;
    call->missing_right = NULL; /* of one of the jobs */
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "action", bulk->action->name);
    json_key_bool(&json, "dryRun", call->is_trial);
    json_key_int(&json, "matched", (int64_t)bulk->matched);
    json_key_int(&json, "done", call->is_trial ? 0 : (int64_t)(bulk->count - failed));
    json_key_int(&json, "failed", (int64_t)failed);
    json_key(&json, "results");
    json_array(&json);
    for (size_t i = 0; i < bulk->count; i++)
        item_json(&json, &bulk->items[i], call->is_trial ? "selected" : "done");
    json_array_end(&json);
    json_object_end(&json);
    return 0;
}

static int bulk_step(struct call *call)
{
    struct bulk *bulk = call->task;
    const size_t left = bulk->count - bulk->next;
    if (left == 0)
        return bulk_reply(bulk);
    call->resume = bulk_step;
    call->is_audited = true; /* each job has its own record */
    atomic_store(&bulk->under_way, 1);
    exchange_suspend(call->exchange);
    const size_t end = bulk->next + (left < UNDER_WAY_MAX ? left : UNDER_WAY_MAX);
    while (bulk->next < end)
        item_ask(&bulk->items[bulk->next++]);
    one_ended(bulk);
    return 0;
}

static int bulk_try(struct bulk *bulk)
{
    for (size_t i = 0; i < bulk->count; i++) {
        struct bulk_item *item = &bulk->items[i];
        if (!item->code)
            item->code = call_may(bulk->call, AUTH_CHANGE_JOB, &item->job);
        if (item->code && !item->err.code)
            item->err = bulk->call->err;
    }
    return bulk_reply(bulk);
}

/* ---- the request ---- */

static int action_parse(struct bulk *bulk, const struct doc *doc)
{
    struct call *call = bulk->call;
    struct text name, tag;
    int code = call_body_string(call, doc, "action", true, &name);
    for (size_t i = 0; !code && i < COUNT_OF(ACTIONS); i++)
        if (text_is(name, ACTIONS[i].name))
            bulk->action = &ACTIONS[i];
    if (!code && !bulk->action)
        return call_fail(call, ERR_INVALID, NULL, "action",
                         "action must be stop, start, delete, release, addTag or removeTag");
    if (!code)
        code = call_body_string(call, doc, "tag", !code && bulk->action->kind == BULK_TAG, &tag);
    if (!code && bulk->action->kind != BULK_TAG && tag.at)
        return call_fail(call, ERR_INVALID, NULL, "tag", "only addTag and removeTag have a tag");
    if (!code && bulk->action->kind == BULK_TAG)
        code = job_tag_check(call, bulk->action->change, "tag", tag);
    if (code)
        return code;
    bulk->tag = tag.at ? arena_copy(call->arena, tag) : NULL;
    audit_word(call, true, bulk->tag ? bulk->action->name : "action",
               bulk->tag ? bulk->tag : bulk->action->name);
    bulk->after = call->audit.after;
    return 0;
}

/* What says nothing is refused: a filter in the body would find all jobs. */
static int keys_check(struct call *call, const struct doc *doc)
{
    static const char *const KEYS[] = {"action", "tag", "jobs"};
    return call_body_keys(call, doc, KEYS, COUNT_OF(KEYS),
                          "action, tag and jobs; a filter stands in the query");
}

/* Beside names there is nothing to choose. */
static int named_check(struct call *call)
{
    static const char *const WORDS[] = {"all", "limit", "offset", "order"};
    if (has_filter(call))
        return call_fail(call, ERR_INVALID, NULL, "jobs", "either jobs, or a filter");
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        if (exchange_query(call->exchange, WORDS[i]).at)
            return call_fail(call, ERR_INVALID, NULL, WORDS[i],
                             "%s goes with a filter, not with jobs", WORDS[i]);
    return 0;
}

/* POST /api/v2/bulk/jobs */
int handle_job_bulk(struct call *call)
{
    struct bulk *bulk = ARENA_NEW(call->arena, struct bulk);
    const struct doc *doc;
    bulk->call = call;
    call->is_trial = call_flag(call, "dryRun");
    int code = call_body(call, &doc);
    if (!code)
        code = keys_check(call, doc);
    if (!code)
        code = action_parse(bulk, doc);
    if (code)
        return code;
    const struct doc *jobs = doc_get(doc, "jobs");
    code = jobs ? named_check(call) : 0;
    if (!code)
        code = jobs ? jobs_named(bulk, jobs) : jobs_found(bulk);
    if (!code && !call->is_trial) /* afterwards the reply cannot be refused any more */
        code = byte_budget_take(call->api->held, call_client(call), "reply",
                                bulk->count * ANSWER_BYTES, false, &call->exchange->reply.hold,
                                &call->err);
    if (!code && !call->is_trial)
        code = throttle_request_of(call, bulk->count);
    if (code)
        return code;
    call->task = bulk;
    return call->is_trial ? bulk_try(bulk) : bulk_step(call);
}
