#include "api/view.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "model/use_series.h"
#include <stdio.h>

static bool has_exit(enum life_state state)
{
    return state >= LIFE_DELETION_PENDING;
}

static const char *task_state(enum life_state state, int32_t code)
{
    return public_state_name(life_public(state, code, false));
}

static const char *attempt_state(enum life_state state, int32_t code)
{
    return public_state_name(life_public_attempt(state, code));
}

/* {"http": "15001,15002"} */
static void view_ports(struct json_writer *json, const struct task_record *task)
{
    json_key(json, "containerPorts");
    json_object(json);
    for (size_t i = 0; i < task->port_count; i++) {
        const struct port_range *range = &task->ports[i];
        json_key(json, range->label);
        json_raw(json, TEXT("\""));
        for (unsigned k = 0; k < range->count; k++) {
            if (k > 0)
                buf_char(json->out, ',');
            buf_int(json->out, range->first + k);
        }
        buf_char(json->out, '"');
    }
    json_object_end(json);
}

/* Early PAI's number: bit N for GPU N. None beyond what a number of JavaScript holds. */
static void view_gpu_mask(struct json_writer *json, const struct task_record *task)
{
    enum { BITS_MAX = 53 };
    int64_t mask = 0;
    bool is_shown = true;
    for (size_t i = 0; i < task->gpu_count; i++) {
        if (task->gpus[i] < BITS_MAX)
            mask |= (int64_t)1 << task->gpus[i];
        else
            is_shown = false;
    }
    if (is_shown)
        json_key_int(json, "containerGpus", mask);
    else
        json_key_null(json, "containerGpus");
}

/* "0,1", which OpenPAI's description of its API declares a text. */
static void view_gpu_text(struct json_writer *json, const struct task_record *task)
{
    cleanup_buf struct buf text = BUF_INIT;
    for (size_t i = 0; i < task->gpu_count; i++) {
        if (i > 0)
            buf_char(&text, ',');
        buf_int(&text, task->gpus[i]);
    }
    json_key_text(json, "containerGpus", buf_as_text(&text));
}

static void view_gpus(struct json_writer *json, const struct task_record *task, bool is_v1)
{
    if (!task->gpu_count)
        json_key_null(json, "containerGpus");
    else if (is_v1)
        view_gpu_mask(json, task);
    else
        view_gpu_text(json, task);
    json_key(json, "gpus");
    json_array(json);
    for (size_t i = 0; i < task->gpu_count; i++)
        json_int(json, task->gpus[i]);
    json_array_end(json);
}

/* Where the logs of this attempt are listed. */
static void view_log_path(struct json_writer *json, const struct job_record *job,
                          const struct task_record *task)
{
    if (!task->attempt.v) {
        json_key_null(json, "containerLog");
        return;
    }
    cleanup_buf struct buf path = BUF_INIT;
    /* a job may have thousands of tasks: pieces are many times faster than a format */
    buf_string(&path, "/api/v2/jobs/");
    buf_string(&path, job->user);
    buf_char(&path, '~');
    buf_string(&path, job->name);
    buf_string(&path, "/attempts/");
    buf_int(&path, task->job_attempt);
    buf_string(&path, "/taskRoles/");
    buf_string(&path, task->role_name);
    buf_string(&path, "/taskIndex/");
    buf_int(&path, task->task.index);
    buf_string(&path, "/attempts/");
    buf_int(&path, task->task_attempt);
    buf_string(&path, "/logs");
    json_key_text(json, "containerLog", buf_as_text(&path));
}

static void view_id(struct json_writer *json, const char *key, struct attempt_id attempt)
{
    char id[32];
    snprintf(id, sizeof id, "skep-%llu", (unsigned long long)attempt.v);
    json_key_string(json, key, attempt.v ? id : NULL);
}

/* What is told of one try of the task. */
static void view_attempt(struct json_writer *json, const struct view_task *view)
{
    const struct task_record *task = view->task;
    bool is_ended = has_exit(task->state);
    json_key_int(json, "attemptId", task->task_attempt);
    json_key_string(json, "attemptState", attempt_state(task->state, task->completion.code));
    view_id(json, "containerId", task->attempt);
    json_key_string(json, "containerIp", task->address && task->address[0] ? task->address : NULL);
    json_key_string(json, "containerNodeName", task->node && task->node[0] ? task->node : NULL);
    view_ports(json, task);
    view_gpus(json, task, view->is_v1);
    view_log_path(json, view->job, task);
    if (is_ended)
        json_key_int(json, "containerExitCode", task->completion.code);
    else
        json_key_null(json, "containerExitCode");
    view_own_code(json, "containerOriginalExitCode", task->state, &task->completion);
    view_exit_spec(json, "containerExitSpec", &task->completion, is_ended, view->rules);
    json_key_string(json, "containerExitDiagnostics",
                    is_ended ? task->completion.diagnostics : NULL);
    view_time(json, "currentAttemptCreatedTime", task->attempt_created_ms);
    view_time(json, "currentAttemptLaunchedTime", task->attempt_launched_ms);
    view_time(json, "currentAttemptCompletedTime", task->attempt_completed_ms);
}

/* The rule by which the end was recognised, as it stood in its file at that time. */
static void view_rule(struct json_writer *json, const struct store_attempt_end *end, bool may_read)
{
    json_key(json, "matchedRule");
    if (!end || !end->rule.number) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key_int(json, "code", end->rule.code);
    json_key_string(json, "name", end->rule.phrase);
    json_key_string(json, "file", end->rule.file[0] ? end->rule.file : "built-in");
    json_key_int(json, "number", end->rule.number);
    json_key_int(json, "pattern", end->rule.pattern);
    json_key_int(json, "line", end->rule.line);
    json_key_string(json, "log", end->rule.log[0] ? end->rule.log : NULL);
    if (may_read && end->rule.text.length)
        json_key_text(json, "text", end->rule.text);
    else
        json_key_null(json, "text");
    json_object_end(json);
}

void view_task_attempt(struct json_writer *json, const struct view_task *view,
                       const struct view_attempts *attempts, size_t i)
{
    struct view_task one = *view;
    one.task = &attempts->attempts.items[i];
    json_object(json);
    view_attempt(json, &one);
    const struct store_attempt_end *end = attempts->attempt_ends[i];
    view_rule(json, end, attempts->may_read);
    if (end && end->tail.length && attempts->may_read)
        json_key_text(json, "containerLogTail", end->tail);
    else
        json_key_null(json, "containerLogTail");
    json_object_end(json);
}

void view_task(struct json_writer *json, const struct view_task *view,
               const struct view_attempts *attempts)
{
    const struct task_record *task = view->task;
    char id[64];
    snprintf(id, sizeof id, "%u.%u.%u.%u", view->job->id.v, task->job_attempt, task->task.role,
             task->task.index);
    json_object(json);
    json_key_int(json, "taskIndex", task->task.index);
    json_key_string(json, "taskRoleName", task->role_name);
    json_key_string(json, "taskUid", id);
    json_key_string(json, "taskState", task_state(task->state, task->completion.code));
    json_key_int(json, "retries", task->retries);
    json_key_int(json, "accountableRetries", task->accountable_retries);
    view_time(json, "createdTime", task->created_ms);
    view_time(json, "launchedTime", task->launched_ms);
    view_time(json, "completedTime", task->completed_ms);
    view_attempt(json, view);
    if (attempts) {
        json_key(json, "attempts");
        json_array(json);
        for (size_t i = 0; i < attempts->attempts.count; i++)
            view_task_attempt(json, view, attempts, i);
        json_array_end(json);
    }
    json_object_end(json);
}

void view_story(struct json_writer *json, const char *user, const char *name,
                const struct store_story *story)
{
    const struct story_record *record = &story->record;
    bool is_task = record->role >= 0;
    char id[DEBUG_ID_SIZE], uid[32], task_name[400];
    view_debug_id(user, name, id);
    snprintf(uid, sizeof uid, "%llu", (unsigned long long)story->sequence);
    snprintf(task_name, sizeof task_name, "%s-%d", story->role_name, record->index);
    json_object(json);
    json_key_string(json, "uid", uid);
    json_key_int(json, "sequence", (int64_t)story->sequence);
    json_key_string(json, "frameworkName", id);
    view_id(json, "podUid", record->attempt);
    json_key_string(json, "taskroleName", is_task ? story->role_name : NULL);
    json_key_string(json, "taskName", is_task ? task_name : NULL);
    if (is_task)
        json_key_int(json, "taskIndex", record->index);
    else
        json_key_null(json, "taskIndex");
    json_key_string(json, "type", record->is_warning ? "Warning" : "Normal");
    json_key_string(json, "reason", record->reason);
    json_key_string(json, "message", record->message);
    view_instant(json, "firstTimestamp", record->at_ms);
    view_instant(json, "lastTimestamp", record->at_ms);
    json_key_int(json, "count", 1);
    json_key_string(json, "sourceComponent", "skepd");
    json_key_null(json, "sourceHost");
    json_object_end(json);
}

static void key_if(struct json_writer *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        json_key_int(json, key, (int64_t)value);
    else
        json_key_null(json, key);
}

static void view_gpu(struct json_writer *json, const struct engine_gpu *gpu)
{
    json_object(json);
    json_key_int(json, "index", gpu->index);
    json_key_string(json, "uuid", gpu->uuid[0] ? gpu->uuid : NULL);
    json_key_bool(json, "isLost", gpu->is_lost);
    key_if(json, "utilizationPercent", gpu->has_use, gpu->busy_percent);
    key_if(json, "memoryMB", gpu->memory_bytes > 0, gpu->memory_bytes >> 20);
    key_if(json, "memoryUsedMB", gpu->has_use, gpu->memory_used_bytes >> 20);
    key_if(json, "eccErrors", gpu->has_errors, gpu->ecc_errors);
    key_if(json, "retiredPages", gpu->has_errors, gpu->retired_pages);
    json_object_end(json);
}

/* Where those of a node begin: a cluster has tens of thousands of them, and thousands of nodes. */
static size_t gpus_begin(const struct engine_gpu *gpus, size_t count, const char *node)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(gpus[middle].node, node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of what nothing is known there is no field. */
static void view_use(struct json_writer *json, const uint64_t *use)
{
    json_key(json, "use");
    json_object(json);
    for (size_t i = 0; i < USE_FIELDS; i++) {
        if (use[i] == USE_UNKNOWN)
            continue;
        json_key(json, USE_FIELD_NAMES[i]);
        view_use_value(json, i, use[i]);
    }
    json_object_end(json);
}

void view_node(struct json_writer *json, const struct node_record *node, int64_t now_ms,
               const struct engine_gpu *gpus, size_t gpu_count, const uint64_t *use)
{
    json_object(json);
    json_key_string(json, "name", node->facts.name);
    json_key_string(json, "address", node->facts.address);
    json_key_int(json, "cpu", node->facts.cpu);
    json_key_int(json, "memoryMB", (int64_t)node->facts.memory_mib);
    json_key_int(json, "gpu", node->facts.gpu_count);
    json_key_string(json, "gpuType",
                    node->facts.gpu_type && node->facts.gpu_type[0] ? node->facts.gpu_type : NULL);
    json_key_string(json, "state",
                    node->is_lost             ? "LOST"
                    : !node->facts.is_healthy ? "UNHEALTHY"
                    : node->is_cordoned       ? "CORDONED"
                                              : "READY");
    json_key_bool(json, "isHealthy", node->facts.is_healthy);
    json_key_bool(json, "isCordoned", node->is_cordoned);
    json_key_string(json, "cordonedBy", node->closing.is_closed ? node->closing.by : NULL);
    view_time(json, "cordonedTime", node->closing.is_closed ? node->closing.at_ms : 0);
    json_key_string(json, "cordonReason",
                    node->closing.is_closed && *node->closing.why ? node->closing.why : NULL);
    json_key(json, "blame");
    json_real(json, node->blame);
    json_key_string(json, "reason",
                    node->facts.reason && node->facts.reason[0] ? node->facts.reason : NULL);
    json_key_string(json, "engine",
                    node->facts.engine && node->facts.engine[0] ? node->facts.engine : NULL);
    json_key_int(json, "refusals", node->refusals);
    view_time(json, "avoidedUntil", node->avoid_ms > now_ms ? node->avoid_ms : 0);
    json_key(json, "gpus");
    json_array(json);
    for (size_t i = gpus_begin(gpus, gpu_count, node->facts.name);
         i < gpu_count && strcmp(gpus[i].node, node->facts.name) == 0; i++)
        view_gpu(json, &gpus[i]);
    json_array_end(json);
    if (use)
        view_use(json, use);
    json_object_end(json);
}

void view_own_code(struct json_writer *json, const char *key, enum life_state state,
                   const struct completion *completion)
{
    if (has_exit(state) && (completion->is_success || completion->exit_code))
        json_key_int(json, key, completion->exit_code);
    else
        json_key_null(json, key);
}

void view_exit_spec(struct json_writer *json, const char *key, const struct completion *completion,
                    bool is_known, const struct exit_rules *rules)
{
    json_key(json, key);
    if (!is_known) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key_int(json, "code", completion->code);
    view_exit_fields(json, exit_rules_find(rules, completion->code));
    json_object_end(json);
}

void view_exit_fields(struct json_writer *json, const struct exit_spec *spec)
{
    json_key_string(json, "phrase", spec->phrase);
    json_key_string(json, "issuer", spec->issuer);
    json_key_string(json, "causer", spec->causer);
    json_key_string(json, "type", spec->type);
    json_key_string(json, "stage", spec->stage);
    json_key_string(json, "behavior", spec->behavior);
    json_key_string(json, "reaction", spec->reaction);
    json_key_string(json, "reason", spec->reason);
    json_key_strings(json, "repro", spec->repro, spec->repro_count);
    json_key_strings(json, "solution", spec->solution, spec->solution_count);
}
