#include "api/call.h"
#include "api/audit.h"
#include "api/form.h"
#include "api/throttle.h"
#include "base/address.h"
#include "base/memory.h"
#include <assert.h>
#include <stdio.h>

int call_fail(struct call *call, int code, const char *name, const char *path, const char *format,
              ...)
{
    va_list args;
    va_start(args, format);
    err_vfail(&call->err, code, path, format, args);
    va_end(args);
    call->error_code = name;
    return code;
}

void call_json(struct call *call, int status, struct json_writer *json)
{
    struct http_reply *reply = &call->exchange->reply;
    assert(reply->status == 0);
    reply->status = status;
    reply->content_type = "application/json; charset=utf-8";
    json_init(json, &reply->body);
}

void call_message(struct call *call, int status, const char *format, ...)
{
    cleanup_buf struct buf text = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    struct json_writer json;
    call_json(call, status, &json);
    json_object(&json);
    json_key_text(&json, "message", buf_as_text(&text));
    json_object_end(&json);
}

void call_text(struct call *call, int status, const char *content_type, struct text text)
{
    struct http_reply *reply = &call->exchange->reply;
    assert(reply->status == 0);
    reply->status = status;
    reply->content_type = content_type;
    buf_text(&reply->body, text);
}

struct store_reader *call_reader(struct call *call)
{
    struct service *service = call->api->service;
    if (!call->reader)
        call->reader = service->reader_get(service->context, &call->err);
    return call->reader;
}

const struct exit_rules *call_rules(struct call *call)
{
    struct service *service = call->api->service;
    if (!call->rules)
        call->rules = service->rules_get(service->context);
    return call->rules;
}

const char *call_network(struct call *call)
{
    struct address_range range;
    struct err err;
    const char *address = arena_copy(call->arena, call->exchange->address);
    if (!strchr(address, ':') || address_range_parse(address, &range, &err))
        return address;
    uint64_t prefix = 0;
    for (int i = 0; i < 8; i++)
        prefix = prefix << 8 | range.address[i];
    return prefix ? arena_format(call->arena, "%016llx", (unsigned long long)prefix)
                  : address; /* one of IPv4, or this machine's own */
}

const char *call_client(struct call *call)
{
    const char *user = call->caller.auth.user;
    return user[0] ? arena_format(call->arena, "user %s", user)
                   : arena_format(call->arena, "network %s", call_network(call));
}

/* ---- changes ---- */

/* On the core thread: keep what is needed and let an HTTP thread go on. */
static void call_answered(void *context, const struct service_answer *answer)
{
    struct call *call = context;
    call->answer_code = answer->code;
    call->answer_job = answer->job;
    if (answer->name)
        snprintf(call->answer_name, sizeof call->answer_name, "%s", answer->name);
    if (answer->retry_s)
        call->retry_s = answer->retry_s;
    call->is_audited |= answer->is_noted;
    if (answer->code)
        err_fail(&call->answer_err, answer->code, answer->path ? answer->path : "", "%s",
                 answer->text ? answer->text : "");
    exchange_resume(call->exchange);
}

struct service_reply call_suspend(struct call *call, int (*resume)(struct call *call))
{
    call->resume = resume;
    call->answer_code = 0;
    call->answer_err = (struct err){0};
    exchange_suspend(call->exchange);
    return (struct service_reply){.done = call_answered, .context = call, .audit = audit_of(call)};
}

void call_refused(struct call *call, int code, const struct err *err)
{
    assert(code < 0);
    call->answer_code = code;
    call->answer_err = *err;
    exchange_resume(call->exchange);
}

/* ---- jobs ---- */

enum { NEAR_JOBS = 500, NEAR_DISTANCE = 2 };

/* Among the user's newest jobs the one whose name is nearest; NULL when none is near. */
static const char *near_job(struct call *call, struct text user, struct text name)
{
    struct job_filter filter = {.users = &user,
                                .user_count = 1,
                                .is_descending = true,
                                .limit = NEAR_JOBS,
                                .skips_total = true};
    struct job_page page;
    const char *best = NULL;
    unsigned best_distance = NEAR_DISTANCE + 1;
    if (name.length < 3 || name.length > 255)
        return NULL;
    store_job_list(call->api->service->store, &filter, call->arena, &page);
    for (size_t i = 0; i < page.count; i++) {
        const char *other = page.items[i].record.name;
        unsigned distance = text_distance(name, text_of(other), best_distance);
        if (distance < best_distance) {
            best = other;
            best_distance = distance;
        }
    }
    return best;
}

static int no_job(struct call *call, struct text user, struct text name)
{
    const char *near = near_job(call, user, name);
    if (!near)
        return call_fail(call, ERR_NOT_FOUND, "NoJobError", "", "there is no job %.*s~%.*s",
                         TEXT_ARG(user), TEXT_ARG(name));
    return call_fail(call, ERR_NOT_FOUND, "NoJobError", "",
                     "there is no job %.*s~%.*s, did you mean %.*s~%s?", TEXT_ARG(user),
                     TEXT_ARG(name), TEXT_ARG(user), near);
}

static int job_read(struct call *call, struct text user, struct text name, struct store_job *job)
{
    struct store *store = call->api->service->store;
    struct job_id id;
    int code = store_job_find(store, user, name, &id, &call->err);
    return code ? code : store_job_summary(store, id, call->arena, job, &call->err);
}

int call_job_of(struct call *call, struct text user, struct text name, struct store_job *job)
{
    int code = job_read(call, user, name, job);
    return code == ERR_NOT_FOUND ? no_job(call, user, name) : code;
}

/* "user~name", or the name alone of one of the caller's. */
static struct text name_split(const struct call *call, struct text name, struct text *user)
{
    struct text rest = name;
    *user = text_cut(&rest, '~');
    if (rest.at)
        return rest;
    *user = text_of(call->caller.auth.user);
    return name;
}

int call_job(struct call *call, struct text name, struct store_job *job)
{
    struct text user;
    name = name_split(call, name, &user);
    return call_job_of(call, user, name, job);
}

int call_job_exactly(struct call *call, struct text name, struct store_job *job)
{
    struct text user;
    name = name_split(call, name, &user);
    int code = job_read(call, user, name, job);
    if (code != ERR_NOT_FOUND)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoJobError", "", "there is no job %.*s~%.*s",
                     TEXT_ARG(user), TEXT_ARG(name));
}

static struct auth_subject subject_of(const struct call *call, const struct store_job *job)
{
    return (struct auth_subject){
        .owner = job ? job->record.user : NULL,
        .name = job ? job->record.name : NULL,
        .is_output_open = call->api->config.is_log_shared,
        .is_config_open = call->api->config.is_config_shared,
    };
}

int call_may_about(struct call *call, enum auth_right right, const struct auth_subject *subject)
{
    struct auth_caller plain = call->caller.auth;
    int code = auth_check(&call->caller.auth, right, subject, &call->err);
    plain.is_admin = false;
    if (!code && auth_check(&plain, right, subject, NULL))
        call->is_by_admin = true;
    call->audit.right = auth_right_name(right);
    if (code == ERR_FORBIDDEN)
        call->missing_right = auth_right_name(right);
    return code;
}

int call_may(struct call *call, enum auth_right right, const struct store_job *job)
{
    const struct auth_subject subject = subject_of(call, job);
    return call_may_about(call, right, &subject);
}

bool call_can(const struct call *call, enum auth_right right, const struct store_job *job)
{
    const struct auth_subject subject = subject_of(call, job);
    return auth_check(&call->caller.auth, right, &subject, NULL) == 0;
}

/* ---- bodies and queries ---- */

/* A form is made into the tree that JSON would give. */
static int form_body(struct call *call, const struct doc **out)
{
    struct err err;
    if (form_parse(buf_as_text(&call->exchange->body), call->arena, out, &err) == 0)
        return 0;
    return call_fail(call, ERR_INVALID, NULL, "body", "%s", err.text);
}

static int body_problem(struct call *call, const struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        if (!problem->is_warning)
            return call_fail(call, ERR_INVALID, NULL, problem->path, "body:%u:%u: %s",
                             problem->place.line, problem->place.column, problem->text);
    }
    return call_fail(call, ERR_INVALID, NULL, "", "the body is not JSON");
}

int call_body(struct call *call, const struct doc **out)
{
    if (form_is_type(call->exchange->content_type))
        return form_body(call, out);
    cleanup_problems struct problems problems;
    problems_init(&problems, call->arena);
    struct text body = text_trim(buf_as_text(&call->exchange->body));
    const struct doc *doc =
        doc_parse(body.length ? body : TEXT("{}"), DOC_JSON, call->arena, &problems);
    *out = doc;
    if (!doc || problems.error_count)
        return body_problem(call, &problems);
    if (doc->kind != DOC_MAP)
        return call_fail(call, ERR_INVALID, NULL, "", "body:%u:%u: must be an object, got %s",
                         doc->place.line, doc->place.column, doc_kind_name(doc->kind));
    return 0;
}

int call_body_keys(struct call *call, const struct doc *doc, const char *const *keys, size_t count,
                   const char *what)
{
    for (size_t i = 0; i < doc->as.map.count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        bool is_known = false;
        for (size_t k = 0; k < count; k++)
            is_known |= text_is(entry->key, keys[k]);
        if (!is_known)
            return call_fail(
                call, ERR_INVALID, NULL, "", "body:%u:%u: there is no '%.*s' here: the body has %s",
                entry->place.line, entry->place.column,
                (int)(entry->key.length > 60 ? 60 : entry->key.length), entry->key.at, what);
    }
    return 0;
}

int call_body_of(struct call *call, const char *const *keys, size_t count, const char *what,
                 const struct doc **doc)
{
    int code = call_body(call, doc);
    if (code)
        return code;
    assert(*doc);
    return call_body_keys(call, *doc, keys, count, what);
}

int call_body_of_v2(struct call *call, const char *const *keys, size_t count, const char *what,
                    const struct doc **doc)
{
    return call->route->is_v1 ? call_body(call, doc) : call_body_of(call, keys, count, what, doc);
}

int call_body_string(struct call *call, const struct doc *doc, const char *key, bool is_required,
                     struct text *value)
{
    const struct doc *found = doc_get(doc, key);
    *value = (struct text){NULL, 0};
    if (!found || found->kind == DOC_NULL) {
        if (is_required)
            return call_fail(call, ERR_INVALID, NULL, key, "%s is missing", key);
        return 0;
    }
    if (found->kind != DOC_STRING)
        return call_fail(call, ERR_INVALID, NULL, key, "body:%u:%u: %s must be a string, got %s",
                         found->place.line, found->place.column, key, doc_kind_name(found->kind));
    *value = found->as.string;
    return 0;
}

int call_number(struct call *call, const char *name, int64_t min, int64_t max, int64_t fallback,
                int64_t *value)
{
    struct text text = exchange_query(call->exchange, name);
    *value = fallback;
    if (!text.at)
        return 0;
    if (!text_to_int64(text, value) || *value < min || *value > max)
        return call_fail(call, ERR_INVALID, NULL, name, "%s must be a number in %lld..%lld", name,
                         (long long)min, (long long)max);
    return 0;
}

bool call_flag(const struct call *call, const char *name)
{
    struct text text = exchange_query(call->exchange, name);
    return text.at && (!text.length || text_is(text, "true") || text_is(text, "1"));
}

int call_words(struct call *call, const char *name, struct call_words *words)
{
    struct text text = exchange_query(call->exchange, name);
    *words = (struct call_words){0};
    if (!text.at || !text.length)
        return 0;
    words->items = ARENA_ARRAY(call->arena, struct text, CALL_WORDS_MAX);
    while (text.at) {
        struct text word = text_cut(&text, ',');
        if (!word.length)
            continue;
        if (words->count == CALL_WORDS_MAX)
            return call_fail(call, ERR_INVALID, NULL, name, "%s has more than %d parts", name,
                             CALL_WORDS_MAX);
        words->items[words->count++] = word;
    }
    return 0;
}

int call_index(struct call *call, struct text part, const char *what, int64_t max, int64_t *value)
{
    if (!text_to_int64(part, value) || *value < 0 || *value > max)
        return call_fail(call, ERR_INVALID, NULL, what, "%s must be a number in 0..%lld", what,
                         (long long)max);
    return 0;
}

static_assert(API_CHANGES_MAX + API_FOLLOWERS_MAX + API_STORIES_MAX + API_DOWNLOADS_RESERVE ==
                  HTTP_STREAMS_MAX,
              "each kind of stream has its places");

/* After throttle_stream_add. */
static bool place_take(struct call *call, atomic_uint_fast32_t *taken, uint32_t most)
{
    if (atomic_fetch_add(taken, 1) < most)
        return true;
    atomic_fetch_sub(taken, 1);
    throttle_stream_remove(call->api, call->caller.auth.user);
    return false;
}

int call_follower_add(struct call *call)
{
    struct api *api = call->api;
    const uint32_t most = api->config.followers_max ? api->config.followers_max : API_FOLLOWERS_MAX;
    int code = throttle_stream_add(call);
    if (code || place_take(call, &api->followers, most))
        return code;
    return call_fail(call, ERR_BUSY, NULL, "follow",
                     "%u readers follow logs already: ask again later, or read without follow",
                     most);
}

void call_follower_remove(struct api *api, const char *user)
{
    atomic_fetch_sub(&api->followers, 1);
    throttle_stream_remove(api, user);
}

int call_changes_add(struct call *call)
{
    struct api *api = call->api;
    const uint32_t most = api->config.changes_max ? api->config.changes_max : API_CHANGES_MAX;
    int code = throttle_stream_add(call);
    if (code || place_take(call, &api->changes, most))
        return code;
    return call_fail(call, ERR_BUSY, NULL, "",
                     "%u streams of changes are open already: ask again later, or read the lists",
                     most);
}

void call_changes_remove(struct api *api, const char *user)
{
    atomic_fetch_sub(&api->changes, 1);
    throttle_stream_remove(api, user);
}

int call_story_add(struct call *call)
{
    struct api *api = call->api;
    const uint32_t most = api->config.stories_max ? api->config.stories_max : API_STORIES_MAX;
    int code = throttle_stream_add(call);
    if (code || place_take(call, &api->stories, most))
        return code;
    return call_fail(call, ERR_BUSY, NULL, "follow",
                     "%u readers follow events already: ask again later, or read without follow",
                     most);
}

void call_story_remove(struct api *api, const char *user)
{
    atomic_fetch_sub(&api->stories, 1);
    throttle_stream_remove(api, user);
}
