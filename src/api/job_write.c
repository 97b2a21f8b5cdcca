#include "api/audit.h"
#include "api/form.h"
#include "api/handlers.h"
#include "api/view.h"
#include "base/memory.h"
#include "base/printable.h"
#include "spec/spec.h"

/* ---- submission ---- */

/* The place in the job file that the refusal is about. */
static bool is_about_storage(const struct call *call)
{
    return strcmp(call->answer_err.path, "extras.storages") == 0;
}

static const char key_header[] = "Idempotency-Key";

static bool is_about_secrets(const struct call *call)
{
    return strcmp(call->answer_err.path, "secretsOf") == 0;
}

static bool is_about_key(const struct call *call)
{
    return strcmp(call->answer_err.path, key_header) == 0;
}

static const char *submit_error_name(const struct call *call, int code)
{
    if (code == ERR_INVALID)
        return call->route->is_v1 ? "InvalidParametersError" : "InvalidProtocolError";
    if (code == ERR_CONFLICT)
        return is_about_key(call) ? "IdempotencyKeyError" : "ConflictJobError";
    if (code == ERR_NOT_FOUND)
        return is_about_storage(call)   ? "NoStorageError"
               : is_about_secrets(call) ? "NoJobError"
                                        : "NoVirtualClusterError";
    return NULL;
}

/* OpenPAI knows one answer for a virtual cluster that is not there or not the user's. */
static int submit_error_code(const struct call *call, int code)
{
    if (code != ERR_NOT_FOUND || call->route->is_v1 || is_about_storage(call) ||
        is_about_secrets(call))
        return code;
    return ERR_FORBIDDEN;
}

/* What the core answered, under the names that a submission's errors have. */
static int submit_refused(struct call *call)
{
    const int code = submit_error_code(call, call->answer_code);
    call->err = call->answer_err;
    call->error_code = submit_error_name(call, code);
    return code;
}

static int submit_answered(struct call *call)
{
    if (call->answer_code)
        return submit_refused(call);
    const char *name = call->answer_name, *user = call->caller.auth.user;
    struct store_job job;
    if (!name[0]) {
        int code = store_job_summary(call->api->service->store, call->answer_job, call->arena, &job,
                                     &call->err);
        if (code)
            return code;
        name = job.record.name;
    }
    cleanup_buf struct buf warnings = BUF_INIT;
    problems_print(call->problems, "job", &warnings);
    struct json_writer json;
    call_json(call, 202, &json);
    json_object(&json);
    json_key_int(&json, "status", 202);
    json_key(&json, "message");
    json_string(&json, arena_format(call->arena, "update job %s successfully", name));
    json_key_string(&json, "name", arena_format(call->arena, "%s~%s", user, name));
    if (warnings.length)
        json_key_text(&json, "warnings", text_trim(buf_as_text(&warnings)));
    json_object_end(&json);
    exchange_header(call->exchange, "Location",
                    arena_format(call->arena, "/api/v2/jobs/%s~%s", user, name));
    return 0;
}

/* What the client has named its submission by; visible characters, so that logs can show it. */
static int submit_key(struct call *call, struct text *key)
{
    *key = call->exchange->idempotency_key;
    if (!key->at)
        return 0;
    bool is_good = key->length > 0 && key->length <= STORE_SUBMIT_KEY_MAX;
    for (size_t i = 0; is_good && i < key->length; i++)
        is_good = key->at[i] > ' ' && key->at[i] <= '~';
    if (is_good)
        return 0;
    return call_fail(call, ERR_INVALID, NULL, key_header,
                     "%s must have 1 to %d visible ASCII characters", key_header,
                     STORE_SUBMIT_KEY_MAX);
}

/* The job file: the body, or what JSON would give of a form, as OpenPAI's client of API v1 sends.
 */
static int submit_source(struct call *call, struct text *source)
{
    const struct doc *doc;
    *source = buf_as_text(&call->exchange->body);
    if (!form_is_type(call->exchange->content_type) || !form_is_text(*source))
        return 0;
    int code = call_body(call, &doc);
    if (code)
        return code;
    cleanup_buf struct buf json = BUF_INIT;
    code = doc_to_json(doc, SPEC_BYTES_MAX, &json);
    if (code)
        return call_fail(call, code, NULL, "", "the job file has more than %d bytes",
                         SPEC_BYTES_MAX);
    *source = (struct text){arena_copy(call->arena, buf_as_text(&json)), json.length};
    return 0;
}

/* ---- a dry run ---- */

static void trial_tasks(struct json_writer *json, const struct core_trial *trial)
{
    json_key(json, "tasks");
    json_array(json);
    for (size_t i = 0; i < trial->task_count; i++) {
        const struct core_trial_task *task = &trial->tasks[i];
        json_object(json);
        json_key_string(json, "taskRoleName", task->role);
        json_key_int(json, "taskIndex", task->index);
        json_key_string(json, "containerNodeName", task->node);
        json_key(json, "gpus");
        json_array(json);
        for (size_t g = 0; g < task->gpu_count; g++)
            json_int(json, task->gpus[g]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static void trial_victims(struct call *call, struct json_writer *json,
                          const struct core_trial *trial)
{
    json_key(json, "preempts");
    json_array(json);
    for (size_t i = 0; i < trial->victim_count; i++) {
        struct store_job job;
        if (store_job_summary(call->api->service->store, trial->victims[i], call->arena, &job,
                              NULL) == 0)
            json_string(json, arena_format(call->arena, "%s~%s", job.record.user, job.record.name));
    }
    json_array_end(json);
}

static int trial_answered(struct call *call)
{
    const struct core_trial *trial = call->resume_state;
    if (call->answer_code)
        return submit_refused(call);
    cleanup_buf struct buf warnings = BUF_INIT;
    problems_print(call->problems, "job", &warnings);
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_bool(&json, "placed", trial->is_placed);
    const char *reason = trial->is_placed ? NULL : trial->reason;
    json_key_string(&json, "reason", reason);
    view_reason_parts(&json, "reasonParts", reason);
    trial_tasks(&json, trial);
    trial_victims(call, &json, trial);
    if (warnings.length)
        json_key_text(&json, "warnings", text_trim(buf_as_text(&warnings)));
    json_object_end(&json);
    return 0;
}

/* Only the file, which may be asked as often as somebody stops typing: nothing is placed. */
static int submit_check(struct call *call, const struct service_submission *submission)
{
    struct service *service = call->api->service;
    call->answer_code =
        service->check(service->context, submission, call->problems, &call->answer_err);
    if (call->answer_code)
        return submit_refused(call);
    cleanup_buf struct buf warnings = BUF_INIT;
    problems_print(call->problems, "job", &warnings);
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    if (warnings.length)
        json_key_text(&json, "warnings", text_trim(buf_as_text(&warnings)));
    json_object_end(&json);
    return 0;
}

/* Does a dry run say where the job would be placed? */
static int wants_placement(struct call *call, bool is_trial, bool *is_wanted)
{
    const struct text given = exchange_query(call->exchange, "placement");
    *is_wanted = !text_is(given, "false");
    if (!given.at || (is_trial && (!*is_wanted || text_is(given, "true"))))
        return 0;
    return call_fail(call, ERR_INVALID, NULL, "placement",
                     is_trial ? "placement must be true or false"
                              : "placement goes with dryRun=true");
}

/* The job whose secrets stand for those that are masked in the file. */
static int submit_secrets(struct call *call, struct service_submission *submission)
{
    struct store_job job;
    const struct text given = exchange_query(call->exchange, "secretsOf");
    struct text name = given, user = text_cut(&name, '~');
    if (!given.at)
        return 0;
    if (!name.at) {
        name = user;
        user = text_of(call->caller.auth.user);
    }
    if (!user.length || !name.length)
        return call_fail(call, ERR_INVALID, NULL, "secretsOf",
                         "secretsOf must name a job, as user~name");
    /* whether the job is there is nothing that others are told */
    const struct auth_subject subject = {.owner = arena_copy(call->arena, user),
                                         .name = arena_copy(call->arena, name)};
    int code = call_may_about(call, AUTH_REUSE_SECRETS, &subject);
    if (!code)
        code = call_job_of(call, user, name, &job);
    if (code)
        return code;
    submission->secrets_of = arena_format(call->arena, "%s~%s", subject.owner, subject.name);
    submission->secrets_job = job.record.id;
    audit_word(call, true, "secretsOf", submission->secrets_of);
    return 0;
}

static int submit(struct call *call)
{
    struct service *service = call->api->service;
    bool is_trial = call->is_trial = call_flag(call, "dryRun");
    struct service_submission submission = {.user = call->caller.auth.user};
    bool is_placed = true;
    int code = wants_placement(call, is_trial, &is_placed);
    if (!code)
        code = submit_source(call, &submission.source);
    if (!code)
        code = submit_key(call, &submission.key);
    if (!code)
        code = submit_secrets(call, &submission);
    if (code)
        return code;
    call->problems = ARENA_NEW(call->arena, struct problems);
    problems_init(call->problems, call->arena);
    if (!is_placed)
        return submit_check(call, &submission);
    struct core_trial *trial = is_trial ? ARENA_NEW(call->arena, struct core_trial) : NULL;
    call->resume_state = trial;
    struct service_reply reply = call_suspend(call, is_trial ? trial_answered : submit_answered);
    struct err err = {0};
    code = is_trial ? service->trial(service->context, &submission, call->problems, call->arena,
                                     trial, reply, &err)
                    : service->submit(service->context, &submission, call->problems, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

int handle_job_submit(struct call *call)
{
    return submit(call);
}

static int submit_as(struct call *call, struct text user)
{
    const struct auth_subject subject = {.owner = arena_copy(call->arena, user)};
    return call_may_about(call, AUTH_SUBMIT_AS, &subject);
}

/* /user/:user/jobs: only the user themself, as jobs belong to who submits them. */
int handle_job_submit_v1(struct call *call)
{
    const int code = call->parameters[0].at ? submit_as(call, call->parameters[0]) : 0;
    return code ? code : submit(call);
}

/* The file's own name counts; the path must not contradict it. */
static int name_check(struct call *call, const struct doc *doc, const char *key, struct text name)
{
    const struct doc *given = doc_get(doc, key);
    if (!given || given->kind != DOC_STRING || text_equal(given->as.string, name))
        return 0;
    return call_fail(call, ERR_INVALID, NULL, key, "body:%u:%u: %s is %.*s, but the path says %.*s",
                     given->place.line, given->place.column, key, TEXT_ARG(given->as.string),
                     TEXT_ARG(name));
}

static int put_named(struct call *call, struct text name, enum doc_format format, const char *key)
{
    cleanup_problems struct problems problems;
    struct text source;
    int code = submit_source(call, &source);
    problems_init(&problems, call->arena);
    if (!code)
        code = name_check(call, doc_parse(source, format, call->arena, &problems), key, name);
    return code ? code : submit(call);
}

int handle_job_put_v1(struct call *call)
{
    const bool has_user = call->parameters[1].at;
    const int code = has_user ? submit_as(call, call->parameters[0]) : 0;
    return code ? code : put_named(call, call->parameters[has_user], DOC_JSON_COMMENTS, "jobName");
}

/* The first YAML format was submitted so; "user~name" or the name alone. */
int handle_job_put(struct call *call)
{
    struct text name = call->parameters[0], user = text_cut(&name, '~');
    const int code = name.at ? submit_as(call, user) : 0;
    if (!name.at)
        name = user;
    return code ? code : put_named(call, name, DOC_YAML, "name");
}

/* ---- changes of one job ---- */

static int act_answered(struct call *call)
{
    if (call->answer_code) {
        call->err = call->answer_err;
        if (call->answer_code == ERR_NOT_FOUND)
            call->error_code = "NoJobError";
        if (call->answer_code == ERR_CONFLICT)
            call->error_code = "ConflictJobError";
        return call->answer_code;
    }
    call_message(call, 202, "%s", (const char *)call->resume_state);
    return 0;
}

static int act(struct call *call, const struct store_job *job, enum service_action action,
               const char *verb)
{
    int code = call_may(call, AUTH_CHANGE_JOB, job);
    if (code)
        return code;
    struct service *service = call->api->service;
    call->resume_state =
        arena_format(call->arena, "%s job %s successfully", verb, job->record.name);
    struct service_reply reply = call_suspend(call, act_answered);
    struct err err = {0};
    code =
        service->act(service->context, action, call->caller.auth.user, job->record.id, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* A body that has a value and nothing beside it. */
static const char *const VALUE_KEYS[] = {"value"};

static int execution(struct call *call, const struct store_job *job)
{
    const struct doc *doc;
    struct text value;
    int code = call_body_of_v2(call, VALUE_KEYS, COUNT_OF(VALUE_KEYS), "value alone", &doc);
    if (!code)
        code = call_body_string(call, doc, "value", true, &value);
    if (code)
        return code;
    bool is_stop = text_is(value, "STOP");
    if (!is_stop && !text_is(value, "START"))
        return call_fail(call, ERR_INVALID, NULL, "value", "value must be START or STOP");
    call->audit.after = is_stop ? "{\"value\":\"STOP\"}" : "{\"value\":\"START\"}";
    return act(call, job, is_stop ? SERVICE_STOP : SERVICE_START, "execute");
}

int handle_job_execution(struct call *call)
{
    struct store_job job;
    int code = call_job(call, call->parameters[0], &job);
    return code ? code : execution(call, &job);
}

int handle_job_execution_v1(struct call *call)
{
    struct store_job job;
    int code = call_job_v1(call, &job);
    return code ? code : execution(call, &job);
}

int handle_job_delete(struct call *call)
{
    struct store_job job;
    int code = call_job(call, call->parameters[0], &job);
    return code ? code : act(call, &job, SERVICE_DELETE, "deleted");
}

int handle_job_delete_v1(struct call *call)
{
    struct store_job job;
    int code = call_job_v1(call, &job);
    return code ? code : act(call, &job, SERVICE_DELETE, "deleted");
}

int handle_job_release(struct call *call)
{
    struct store_job job;
    int code = call_job(call, call->parameters[0], &job);
    return code ? code : act(call, &job, SERVICE_RELEASE, "released");
}

/* Index of a role by its name: the tasks know it. */
static int role_index(struct call *call, const struct store_job *job, struct text name,
                      uint16_t *role)
{
    struct store_tasks tasks;
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    int code = store_tasks(reader, job->record.id, -1, call->arena, &tasks, &call->err);
    for (size_t i = 0; !code && i < tasks.count; i++) {
        if (text_is(name, tasks.items[i].role_name)) {
            *role = tasks.items[i].task.role;
            return 0;
        }
    }
    if (code)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoTaskError", "", "job %s has no task role %.*s",
                     job->record.name, TEXT_ARG(name));
}

int handle_job_scale(struct call *call)
{
    struct store_job job;
    static const char *const KEYS[] = {"instances"};
    const struct doc *doc;
    uint16_t role = 0;
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_CHANGE_JOB, &job);
    if (!code)
        code = call_body_of(call, KEYS, COUNT_OF(KEYS), "instances alone", &doc);
    if (!code)
        code = role_index(call, &job, call->parameters[1], &role);
    if (code)
        return code;
    const struct doc *value = doc_get(doc, "instances");
    if (!value || value->kind != DOC_INT || value->as.integer < 0 ||
        value->as.integer > SPEC_INSTANCES_MAX)
        return call_fail(call, ERR_INVALID, NULL, "instances",
                         "instances must be a number in 0..%d", SPEC_INSTANCES_MAX);
    struct service *service = call->api->service;
    call->resume_state = arena_format(call->arena, "scaled job %s successfully", job.record.name);
    audit_after(call, call->parameters[1], "instances", value->as.integer);
    struct service_reply reply = call_suspend(call, act_answered);
    struct err err = {0};
    code = service->scale(service->context, call->caller.auth.user, job.record.id, role,
                          (uint32_t)value->as.integer, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* ---- tags ---- */

static int tag_answered(struct call *call)
{
    if (call->answer_code) {
        call->err = call->answer_err;
        if (call->answer_code == ERR_NOT_FOUND)
            call->error_code = "NoTagError";
        return call->answer_code;
    }
    call_message(call, 200, "%s", (const char *)call->resume_state);
    return 0;
}

int job_tag_check(struct call *call, enum store_change_kind kind, const char *field,
                  struct text tag)
{
    if (!tag.length || tag.length > STORE_TAG_MAX || memchr(tag.at, ',', tag.length))
        return call_fail(call, ERR_INVALID, NULL, field, "a tag has 1..%d bytes and no comma",
                         STORE_TAG_MAX);
    /* what is stored already can be removed, whatever it is */
    if (kind == CHANGE_TAG_ADD && !printable_is_line(tag))
        return call_fail(call, ERR_INVALID, NULL, field,
                         "a tag has no control characters and is UTF-8");
    if (memchr(tag.at, '\0', tag.length))
        return call_fail(call, ERR_NOT_FOUND, "NoTagError", field, "the job has no such tag");
    return 0;
}

static int tag_change(struct call *call, enum store_change_kind kind, const char *verb)
{
    struct store_job job;
    const struct doc *doc;
    struct text value;
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_CHANGE_JOB, &job);
    if (!code)
        code = call_body_of(call, VALUE_KEYS, COUNT_OF(VALUE_KEYS), "value alone", &doc);
    if (!code)
        code = call_body_string(call, doc, "value", true, &value);
    if (code)
        return code;
    code = job_tag_check(call, kind, "value", value);
    if (code)
        return code;
    struct service *service = call->api->service;
    struct store_change change = {
        .kind = kind, .tag = {.job = job.record.id, .name = arena_copy(call->arena, value)}};
    call->resume_state =
        arena_format(call->arena, "%s tag for job %s successfully", verb, job.record.name);
    audit_word(call, kind == CHANGE_TAG_ADD, "tag", change.tag.name);
    struct service_reply reply = call_suspend(call, tag_answered);
    struct err err = {0};
    code = service->change(service->context, &change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

int handle_tag_add(struct call *call)
{
    return tag_change(call, CHANGE_TAG_ADD, "added");
}

int handle_tag_remove(struct call *call)
{
    return tag_change(call, CHANGE_TAG_REMOVE, "removed");
}
