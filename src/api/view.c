#include "api/view.h"
#include "base/utc.h"
#include "core/plan.h"
#include "job/job.h"
#include "spec/spec.h"
#include <sodium.h>
#include <stdio.h>

void view_debug_id(const char *user, const char *name, char id[DEBUG_ID_SIZE])
{
    unsigned char hash[(DEBUG_ID_SIZE - 1) / 2];
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof hash);
    crypto_generichash_update(&state, (const unsigned char *)user, strlen(user));
    crypto_generichash_update(&state, (const unsigned char *)"~", 1);
    crypto_generichash_update(&state, (const unsigned char *)name, strlen(name));
    crypto_generichash_final(&state, hash, sizeof hash);
    sodium_bin2hex(id, DEBUG_ID_SIZE, hash, sizeof hash);
}

void view_time(struct json_writer *json, const char *key, int64_t at_ms)
{
    if (at_ms)
        json_key_int(json, key, at_ms);
    else
        json_key_null(json, key);
}

void view_instant(struct json_writer *json, const char *key, int64_t at_ms)
{
    char text[UTC_SIZE];
    json_key_string(json, key, at_ms ? utc_instant(at_ms, text) : NULL);
}

/* "oppo", "test", "prod", or null: as the job file named it. */
static void view_priority(struct json_writer *json, const struct store_job *job)
{
    const char *name = NULL;
    switch (job->has_priority ? job->record.priority : INT32_MIN) {
    case SPEC_OPPO:
        name = "oppo";
        break;
    case SPEC_TEST:
        name = "test";
        break;
    case SPEC_PROD:
        name = "prod";
        break;
    case SPEC_CRIT:
        name = "crit";
        break;
    default:
        break;
    }
    json_key_string(json, "jobPriority", name);
}

static const char *execution_type(const struct job_record *job)
{
    return job->is_stop_requested ? "STOP" : "START";
}

/* The code is there from the moment when the attempt's end is decided. */
static bool has_exit(enum life_state state)
{
    return state >= LIFE_DELETION_PENDING;
}

static void view_retries(struct json_writer *json, const struct job_record *job)
{
    json_key_int(json, "retries",
                 (int64_t)job->retries_user + job->retries_platform + job->retries_resource);
    json_key(json, "retryDetails");
    json_object(json);
    json_key_int(json, "user", job->retries_user);
    json_key_int(json, "platform", job->retries_platform);
    json_key_int(json, "resource", job->retries_resource);
    json_object_end(json);
}

/* Seconds until the retry, as OpenPAI names it. */
static void view_retry_delay(struct json_writer *json, const struct job_record *job)
{
    if (job->retry_at_ms && job->attempt_completed_ms)
        json_key_int(json, "retryDelayTime",
                     (job->retry_at_ms - job->attempt_completed_ms + 999) / 1000);
    else
        json_key_null(json, "retryDelayTime");
}

static void view_exit_code(struct json_writer *json, const char *key, enum life_state state,
                           const struct completion *completion)
{
    if (has_exit(state))
        json_key_int(json, key, completion->code);
    else
        json_key_null(json, key);
}

static void view_tags(struct json_writer *json, const struct store_job *job)
{
    json_key(json, "tags");
    json_array(json);
    for (size_t i = 0; i < job->tag_count; i++)
        json_string(json, job->tags[i]);
    json_array_end(json);
}

/* What lists and details begin with. */
static void view_job_head(struct json_writer *json, const struct store_job *job)
{
    const struct job_record *record = &job->record;
    json_key_string(json, "name", record->name);
    json_key_string(json, "username", record->user);
    json_key_string(json, "state", public_state_name(job->shown));
    json_key_string(json, "subState", life_state_name(record->state));
    json_key_string(json, "executionType", execution_type(record));
    view_retries(json, record);
    view_retry_delay(json, record);
    view_time(json, "submissionTime", record->submitted_ms);
    view_time(json, "createdTime", record->submitted_ms);
}

void view_job_summary(struct json_writer *json, const struct store_job *job, bool is_v1)
{
    const struct job_record *record = &job->record;
    json_object(json);
    if (!is_v1) {
        char id[DEBUG_ID_SIZE];
        view_debug_id(record->user, record->name, id);
        json_key_string(json, "debugId", id);
        view_tags(json, job);
        view_priority(json, job);
    }
    view_job_head(json, job);
    view_time(json, "launchedTime", record->launched_ms);
    view_time(json, "completedTime", record->completed_ms);
    view_exit_code(json, "appExitCode", record->state, &record->completion);
    json_key_string(json, "virtualCluster", record->virtual_cluster);
    json_key_int(json, "totalGpuNumber", (int64_t)record->gpu_count);
    json_key_int(json, "totalTaskNumber", record->task_count);
    json_key_int(json, "totalTaskRoleNumber", record->role_count);
    json_object_end(json);
}

/* The state of one attempt: an attempt that ended is final, whatever its job does next. */
static const char *attempt_state(enum life_state state, int32_t code)
{
    return public_state_name(life_public_attempt(state, code));
}

static const char *exit_type(enum life_state state, const struct completion *completion)
{
    if (!has_exit(state))
        return NULL;
    if (completion->is_success)
        return "SUCCEEDED";
    if (completion->attributes & EXIT_PERMANENT)
        return "PERMANENT_FAILED";
    if (completion->attributes & EXIT_CONFLICT)
        return "RESOURCE_CONFLICT_FAILED";
    if (completion->attributes & EXIT_TRANSIENT)
        return "PLATFORM_FAILURE";
    return "USER_FAILURE";
}

static void view_trigger(struct json_writer *json, const struct view_detail *detail)
{
    const struct job_record *attempt = detail->attempt;
    const char *trigger = attempt->trigger && attempt->trigger[0] ? attempt->trigger : NULL;
    json_key_string(json, "appExitTriggerMessage", trigger);
    int32_t role = attempt->trigger_role;
    json_key_string(json, "appExitTriggerTaskRoleName",
                    role >= 0 && (size_t)role < detail->role_count ? detail->role_names[role]
                                                                   : NULL);
    if (attempt->trigger_index >= 0)
        json_key_int(json, "appExitTriggerTaskIndex", attempt->trigger_index);
    else
        json_key_null(json, "appExitTriggerTaskIndex");
}

/* The `app*` fields: what is told of the attempt that was asked for. */
static void view_app(struct json_writer *json, const struct view_detail *detail)
{
    const struct job_record *attempt = detail->attempt;
    bool is_ended = has_exit(attempt->state);
    char id[64];
    snprintf(id, sizeof id, "%u.%u", attempt->id.v, attempt->attempt);
    json_key_int(json, "attemptId", attempt->attempt);
    json_key_string(json, "attemptState", attempt_state(attempt->state, attempt->completion.code));
    json_key_string(json, "appId", id);
    json_key_int(json, "appProgress", attempt->attempt_completed_ms ? 1 : 0);
    json_key_string(json, "appTrackingUrl", "");
    view_time(json, "appCreatedTime", attempt->attempt_created_ms);
    view_time(json, "appLaunchedTime", attempt->attempt_launched_ms);
    view_time(json, "appCompletedTime", attempt->attempt_completed_ms);
    view_exit_code(json, "appExitCode", attempt->state, &attempt->completion);
    view_own_code(json, "appOriginalExitCode", attempt->state, &attempt->completion);
    view_exit_spec(json, "appExitSpec", &attempt->completion, is_ended, detail->rules);
    json_key_string(json, "appExitDiagnostics", is_ended ? attempt->completion.diagnostics : NULL);
    json_key(json, "appExitMessages");
    json_object(json);
    json_key_null(json, "container");
    json_key_null(json, "runtime");
    json_key_string(json, "launcher", is_ended ? attempt->completion.diagnostics : NULL);
    json_object_end(json);
    view_trigger(json, detail);
    json_key_string(json, "appExitType", exit_type(attempt->state, &attempt->completion));
}

/* What is left of failed tasks: for how long one may look into it, and that it can be let go. */
static void view_held(struct json_writer *json, const struct view_detail *detail)
{
    const struct job_record *record = &detail->job->record;
    struct job_held held;
    json_key(json, "held");
    if (!job_saved_held(record->extra, (uint16_t)record->role_count, &held) || held.count == 0) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key_int(json, "containers", held.count);
    view_time(json, "until", held.until_ms);
    json_key(json, "tasks");
    json_array(json);
    for (uint32_t i = 0; i < held.count && i < JOB_HELD_NAMED; i++) {
        const struct task_ref task = held.tasks[i];
        if (task.role >= detail->role_count)
            continue;
        json_object(json);
        json_key_string(json, "taskRoleName", detail->role_names[task.role]);
        json_key_int(json, "taskIndex", task.index);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void view_reason_part(struct json_writer *json, const struct reason_part *part,
                             const struct reason_value *values)
{
    json_object(json);
    json_key_string(json, "code", part->code);
    json_key(json, "values");
    json_object(json);
    for (unsigned i = 0; i < part->value_count; i++) {
        const struct reason_value *value = &values[i];
        json_key(json, value->name);
        if (value->is_number)
            json_raw(json, value->text);
        else
            json_text(json, value->text);
    }
    json_object_end(json);
    json_object_end(json);
}

void view_reason_parts(struct json_writer *json, const char *key, const char *reason)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct reason_parts *parts = reason_read(text_of(reason), &arena);
    json_key(json, key);
    if (!parts) {
        json_null(json);
        return;
    }
    json_array(json);
    for (unsigned i = 0; i < parts->count; i++)
        view_reason_part(json, &parts->items[i], &parts->values[parts->items[i].first]);
    json_array_end(json);
}

static void view_job_status(struct json_writer *json, const struct view_detail *detail)
{
    const struct store_job *job = detail->job;
    const struct job_record *record = &job->record;
    json_key(json, "jobStatus");
    json_object(json);
    view_job_head(json, job);
    /* a job that never ran has its end as its start, as in OpenPAI */
    view_time(json, "launchedTime",
              record->launched_ms ? record->launched_ms : record->completed_ms);
    view_time(json, "completedTime", record->completed_ms);
    json_key_string(json, "waitingReason",
                    record->reason && record->reason[0] ? record->reason : NULL);
    if (!detail->is_v1)
        view_reason_parts(json, "waitingReasonParts", record->reason);
    view_app(json, detail);
    if (!detail->is_v1)
        view_held(json, detail);
    json_key_string(json, "virtualCluster", record->virtual_cluster);
    json_key_int(json, "totalGpuNumber", (int64_t)record->gpu_count);
    json_key_int(json, "totalTaskNumber", record->task_count);
    json_object_end(json);
}

static void view_counts(struct json_writer *json, const struct store_role_count *counts)
{
    json_key(json, "taskCounts");
    json_object(json);
    for (size_t state = 0; state < PUBLIC_STATE_COUNT; state++)
        if (counts->states[state])
            json_key_int(json, public_state_name((enum public_state)state),
                         (int64_t)counts->states[state]);
    json_object_end(json);
}

/* A letter for each task, by index. */
static void view_states(struct json_writer *json, struct text each)
{
    static const char LETTERS[] = {
        [PUBLIC_WAITING] = 'W',   [PUBLIC_RUNNING] = 'R', [PUBLIC_STOPPING] = 'E',
        [PUBLIC_SUCCEEDED] = 'S', [PUBLIC_STOPPED] = 'X', [PUBLIC_FAILED] = 'F',
        [PUBLIC_UNKNOWN] = '?',
    };
    json_key(json, "taskStates");
    json_raw(json, TEXT("\""));
    for (size_t i = 0; i < each.length; i++)
        buf_char(json->out, LETTERS[(size_t)each.at[i]]);
    buf_char(json->out, '"');
}

static void view_role(struct json_writer *json, const struct view_detail *detail, size_t role)
{
    json_key(json, detail->role_names[role]);
    json_object(json);
    json_key(json, "taskRoleStatus");
    json_object(json);
    json_key_string(json, "name", detail->role_names[role]);
    if (detail->counts)
        view_counts(json, &detail->counts->roles[role]);
    if (detail->counts && detail->has_states)
        view_states(json, detail->counts->roles[role].each);
    json_object_end(json);
    json_key(json, "taskStatuses");
    json_array(json);
    for (size_t i = 0; i < detail->tasks->count; i++)
        if (detail->tasks->items[i].task.role == role)
            view_task(json,
                      &(struct view_task){.job = detail->attempt,
                                          .task = &detail->tasks->items[i],
                                          .rules = detail->rules,
                                          .is_v1 = detail->is_v1},
                      NULL);
    json_array_end(json);
    json_object_end(json);
}

void view_job_detail(struct json_writer *json, const struct view_detail *detail)
{
    const struct job_record *record = &detail->job->record;
    char id[DEBUG_ID_SIZE];
    view_debug_id(record->user, record->name, id);
    json_object(json);
    json_key_string(json, "debugId", id);
    json_key_string(json, "name", record->name);
    view_tags(json, detail->job);
    view_priority(json, detail->job);
    view_job_status(json, detail);
    json_key(json, "taskRoles");
    json_object(json);
    for (size_t role = 0; role < detail->role_count; role++)
        view_role(json, detail, role);
    json_object_end(json);
    json_object_end(json);
}

void view_job_attempt(struct json_writer *json, const struct store_job *job,
                      const struct job_record *attempt, bool is_latest,
                      const struct exit_rules *rules)
{
    const struct job_record *record = &job->record;
    char id[DEBUG_ID_SIZE];
    view_debug_id(record->user, record->name, id);
    json_object(json);
    json_key_string(json, "jobName", record->name);
    json_key_string(json, "frameworkName", id);
    snprintf(id, sizeof id, "%u.%u", record->id.v, attempt->attempt); /* appId of the detail */
    json_key_string(json, "uid", id);
    json_key_string(json, "userName", record->user);
    json_key_string(json, "state", attempt_state(attempt->state, attempt->completion.code));
    json_key_string(json, "originState", life_state_name(attempt->state));
    json_key_int(json, "attemptIndex", attempt->attempt);
    view_time(json, "jobStartedTime", record->submitted_ms);
    view_time(json, "attemptStartedTime", attempt->attempt_created_ms);
    view_time(json, "attemptLaunchedTime", attempt->attempt_launched_ms);
    view_time(json, "attemptCompletedTime", attempt->attempt_completed_ms);
    view_exit_code(json, "exitCode", attempt->state, &attempt->completion);
    view_own_code(json, "originalExitCode", attempt->state, &attempt->completion);
    bool is_ended = has_exit(attempt->state);
    json_key_string(json, "exitPhrase", is_ended ? attempt->completion.phrase : NULL);
    json_key_string(json, "exitType", exit_type(attempt->state, &attempt->completion));
    json_key_string(json, "exitDiagnostics", is_ended ? attempt->completion.diagnostics : NULL);
    view_exit_spec(json, "appExitSpec", &attempt->completion, is_ended, rules);
    json_key_int(json, "totalGpuNumber", (int64_t)record->gpu_count);
    json_key_int(json, "totalTaskNumber", record->task_count);
    json_key_int(json, "totalTaskRoleNumber", record->role_count);
    view_priority(json, job);
    json_key_bool(json, "isLatest", is_latest);
    json_object_end(json);
}
