#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/utc.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/records.h"
#include "core/state.h"
#include "core/tasks.h"
#include "model/reason.h"

static const char *keep(struct core *core, const char *string)
{
    return string && *string ? arena_copy(&core->output->arena, text_of(string)) : "";
}

const char *task_name(struct core *core, const struct core_job *job, struct task_ref task)
{
    return arena_format(&core->output->arena, "%s-%u", job->plan->roles[task.role].name,
                        task.index);
}

/* --- jobs --- */

static const char *trigger_of(struct core *core, const struct core_job *job, const struct job *life)
{
    assert(job->id.v);
    if (!life->completion)
        return "";
    const struct completion *completion = life->completion;
    const char *what = *completion->diagnostics ? completion->diagnostics : completion->phrase;
    if (life->trigger_role < 0)
        return keep(core, what);
    struct task_ref task = {(uint16_t)life->trigger_role, (uint16_t)life->trigger_index};
    return arena_format(&core->output->arena, "%s ended with %d: %s", task_name(core, job, task),
                        completion->code, what);
}

static void reason_fill(struct core *core, const struct core_job *job, const struct job *life,
                        struct job_record *record)
{
    assert(job->id.v);
    uint32_t slot = core_job_slot(core, job);
    record->reason = "";
    if (queue_has(core->queue, slot)) {
        const uint32_t class = queue_class_of(core->queue, slot);
        record->reason = keep(core, queue_reason(core->queue, class));
        record->reason_topic = queue_topic(core->queue, class);
    } else if (life->retry_at_ms && life->completion) {
        char at[UTC_SIZE];
        record->reason =
            arena_format(&core->output->arena, REASON_RETRIED, utc_text(life->retry_at_ms, at),
                         life->attempt, life->completion->code, life->completion->phrase);
    }
}

static void sizes_fill(struct core *core, const struct core_job *job, struct job_record *record)
{
    assert(job->id.v);
    const struct core_job_size size = core_job_size(core, job);
    record->task_count = size.tasks;
    record->gpu_count = size.gpus;
}

static void job_fill(struct core *core, const struct core_job *job, const struct job *life,
                     struct job_record *record)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    cleanup_buf struct buf extra = BUF_INIT;
    job_save(&job->life, &extra);
    char *saved = arena_alloc(&core->output->arena, extra.length + 1);
    memcpy(saved, buf_cstr(&extra), extra.length);
    *record = (struct job_record){
        .id = job->id,
        .submission = job->submission,
        .name = keep(core, plan->name),
        .user = keep(core, plan->user),
        .virtual_cluster = keep(core, plan->virtual_cluster),
        .priority = plan->priority,
        .state = life->state,
        .is_stop_requested = job_is_stop_requested(life),
        .attempt = life->attempt,
        .retries_user = life->retries_user,
        .retries_platform = life->retries_platform,
        .retries_resource = life->retries_resource,
        .retry_at_ms = life->retry_at_ms,
        .submitted_ms = life->submitted_ms,
        .attempt_created_ms = life->attempt_created_ms,
        .attempt_launched_ms = life->attempt_launched_ms,
        .attempt_completed_ms = life->attempt_completed_ms,
        .launched_ms = life->launched_ms,
        .completed_ms = life->completed_ms,
        .trigger_role = life->trigger_role,
        .trigger_index = life->trigger_index,
        .trigger = trigger_of(core, job, life),
        .role_count = plan->role_count,
        .extra = {saved, extra.length},
    };
    sizes_fill(core, job, record);
    reason_fill(core, job, life, record);
    if (life->completion)
        record->completion = *life->completion;
}

static struct record *record_add(struct core *core, enum record_kind kind)
{
    struct record *record = ARRAY_ADD(&core->output->records);
    record->kind = kind;
    return record;
}

/* The row is filled at the end of the step, but has its place now: before its tasks and stories. */
void record_job_changed(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    if (job->is_changed)
        return;
    job->is_changed = true;
    *ARRAY_ADD(&core->changed_jobs) = core_job_slot(core, job);
    job->record_at = core->output->records.count;
    record_add(core, RECORD_JOB);
}

/* The row of the attempt: the one that the step has begun, or a new one for the next attempt. */
static struct job_record *job_row(struct core *core, struct core_job *job, uint32_t attempt)
{
    assert(job->is_changed && job->record_at < core->output->records.count);
    const struct job_record *row = &core->output->records.items[job->record_at].job;
    if (row->id.v && row->attempt != attempt) {
        job->submission = NULL; /* the first row has told it */
        job->record_at = core->output->records.count;
        record_add(core, RECORD_JOB);
    }
    return &core->output->records.items[job->record_at].job;
}

void record_job_then(struct core *core, struct core_job *job, const struct job *life)
{
    assert(job->id.v);
    record_job_changed(core, job);
    struct job_record *row = job_row(core, job, life->attempt);
    job_fill(core, job, life, row);
    row->reason = "";
}

static void job_flush(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    job_fill(core, job, &job->life, job_row(core, job, job->life.attempt));
    job->is_changed = false;
    job->submission = NULL;
}

/* --- tasks --- */

static void task_fill(struct core *core, const struct core_task *task, const struct job_task *life,
                      struct task_record *record)
{
    assert(task->job != NONE);
    const struct core_job *job = core_job_at(core, task->job);
    struct arena *arena = &core->output->arena;
    const struct core_node *node = task->node == NONE ? NULL : core_node_at(core, task->node);
    bool has_place = node && task->attempt.v;
    uint16_t *gpus = NULL;
    struct port_range *ports = NULL;
    if (has_place && task->gpu_count) {
        gpus = ARENA_ARRAY(arena, uint16_t, task->gpu_count);
        memcpy(gpus, task->gpus, task->gpu_count * sizeof *gpus);
    }
    if (has_place && task->port_count) {
        ports = ARENA_ARRAY(arena, struct port_range, task->port_count);
        for (size_t i = 0; i < task->port_count; i++) {
            ports[i] = task->ports[i];
            ports[i].label = keep(core, ports[i].label);
        }
    }
    *record = (struct task_record){
        .job = job->id,
        .task = task->ref,
        .role_name = keep(core, job->plan->roles[task->ref.role].name),
        .state = life->state,
        .is_deletion_pending = life->is_deletion_pending,
        .is_held = life->is_held || life->is_let_go,
        .attempt = task->attempt,
        .job_attempt = task->job_attempt,
        .task_attempt = life->task_attempt,
        .retries = life->retries,
        .accountable_retries = life->retries_counted,
        .node = has_place ? keep(core, node->facts.name) : "",
        .address = !has_place      ? ""
                   : task->address ? keep(core, task->address)
                                   : keep(core, node->facts.address),
        .gpus = gpus,
        .gpu_count = has_place ? task->gpu_count : 0,
        .cell_level = has_place ? task->cell_level : 0,
        .ports = ports,
        .port_count = has_place ? task->port_count : 0,
        .created_ms = life->created_ms,
        .launched_ms = life->launched_ms,
        .completed_ms = life->completed_ms,
        .attempt_created_ms = life->attempt_created_ms,
        .attempt_launched_ms = life->attempt_launched_ms,
        .attempt_completed_ms = life->attempt_completed_ms,
        .killed = life->killed,
        .kill_by_ms = life->kill_by_ms,
    };
    if (life->completion && life->state >= LIFE_DELETION_PENDING)
        record->completion = *life->completion;
}

static void task_write(struct core *core, struct core_task *task, const struct job_task *life)
{
    assert(core->output && task->job != NONE);
    bool is_again = task->record_step == core->step && task->record_attempt.v == task->attempt.v;
    if (!is_again) {
        task->record_step = core->step;
        task->record_attempt = task->attempt;
        task->record_at = core->output->records.count;
        record_add(core, RECORD_TASK);
    }
    task_fill(core, task, life, &core->output->records.items[task->record_at].task);
}

void record_task_changed(struct core *core, struct core_task *task)
{
    assert(task->job != NONE);
    if (task->is_changed)
        return;
    task->is_changed = true;
    *ARRAY_ADD(&core->changed_tasks) = core_task_index(core, task);
}

void record_task_then(struct core *core, struct core_task *task, const struct job_task *life)
{
    task_write(core, task, life);
}

void record_task_removed(struct core *core, const struct core_job *job, struct task_ref task)
{
    assert(job->id.v);
    struct task_record *record = &record_add(core, RECORD_TASK)->task;
    *record = (struct task_record){
        .job = job->id,
        .task = task,
        .role_name = keep(core, job->plan->roles[task.role].name),
        .is_removed = true,
        .job_attempt = job->life.attempt,
        .node = "",
        .address = "",
    };
}

void records_flush(struct core *core)
{
    for (size_t i = 0; i < core->changed_tasks.count; i++) {
        struct core_task *task = core_task_at(core, core->changed_tasks.items[i]);
        if (task->job == NONE || !task->is_changed)
            continue;
        task->is_changed = false;
        if (core_task_is_old(core, task))
            continue;
        const struct job_task *life = job_task_find(&core_job_at(core, task->job)->life, task->ref);
        assert(life);
        task_write(core, task, life);
    }
    core->changed_tasks.count = 0;
    for (size_t i = 0; i < core->changed_jobs.count; i++) {
        struct core_job *job = core_job_at(core, core->changed_jobs.items[i]);
        assert(job->id.v && job->is_changed);
        job_flush(core, job);
    }
    core->changed_jobs.count = 0;
}

void records_release(struct core *core)
{
    ARRAY_FREE(&core->changed_jobs);
    ARRAY_FREE(&core->changed_tasks);
}

void record_job_deleted(struct core *core, struct job_id id)
{
    record_add(core, RECORD_JOB_DELETED)->deleted = id;
}

/* --- nodes, stories, commands, answers --- */

void record_node(struct core *core, uint32_t at)
{
    assert(core->output && at < core_node_count(core));
    const struct core_node *node = core_node_at(core, at);
    const bool is_reason_blame = node_is_told_blame(node);
    struct node_record *record = &record_add(core, RECORD_NODE)->node;
    *record = (struct node_record){
        .id = {at},
        .facts = node_facts_keep(&core->output->arena, &node->facts),
        .is_cordoned = node_is_cordoned(node),
        .is_cordoned_for_blame = node->blame.level == BLAME_CORDON,
        .closing = {node->closing.is_closed, keep(core, node->closing.by),
                    keep(core, node->closing.why), node->closing.at_ms},
        .is_lost = node->is_lost,
        .blame = node->blame.value,
        .blame_ms = node->blame.at_ms,
        .refusals = node->refusals,
        .avoid_ms = node->avoid_ms,
        .is_reason_blame = is_reason_blame,
    };
    if (is_reason_blame)
        record->facts.reason = keep(core, node->cordon);
}

void core_node_row(struct core *core, struct node_id node, struct output *output)
{
    assert(!core->output && node.v < core_node_count(core));
    core->output = output;
    record_node(core, node.v);
    core->output = NULL;
}

void record_cluster(struct core *core, const struct cluster_record *cluster)
{
    assert(core->output && *cluster->name);
    const struct node_closing *closing = &cluster->closing;
    record_add(core, RECORD_CLUSTER)->cluster = (struct cluster_record){
        .name = keep(core, cluster->name),
        .closing = {closing->is_closed, keep(core, closing->by), keep(core, closing->why),
                    closing->at_ms},
    };
}

void record_story(struct core *core, const struct core_job *job, const struct core_task *task,
                  bool is_warning, const char *reason, const char *format, ...)
{
    assert(core->output && job->id.v);
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(&core->output->arena, format, args);
    va_end(args);
    struct story_record *story = &record_add(core, RECORD_STORY)->story;
    *story = (struct story_record){
        .job = job->id,
        .role = task ? task->ref.role : -1,
        .index = task ? task->ref.index : -1,
        .is_warning = is_warning,
        .at_ms = core->now_ms,
        .reason = keep(core, reason),
        .message = message,
    };
    if (task)
        story->attempt = task->attempt;
    core_trace(core, "job %s: %s", job->full_name, story->message);
}

static struct command *command_at(struct core *core, enum command_kind kind, struct job_id job,
                                  struct task_ref ref, struct attempt_id attempt, uint32_t node)
{
    struct command *command = ARRAY_ADD(&core->output->commands);
    command->kind = kind;
    command->job = job;
    command->task = ref;
    command->attempt = attempt;
    command->node = node == NONE ? "" : keep(core, core_node_at(core, node)->facts.name);
    command->reason = "";
    return command;
}

struct command *command_add(struct core *core, enum command_kind kind, const struct core_job *job,
                            struct task_ref ref, struct attempt_id attempt)
{
    assert(job->id.v);
    const struct core_task *task = core_task_find(core, core_job_slot(core, job), ref);
    return command_at(core, kind, job->id, ref, attempt, task ? task->node : NONE);
}

void command_of_task(struct core *core, enum command_kind kind, struct job_id job,
                     const struct core_task *task)
{
    assert(job.v && task->attempt.v);
    command_at(core, kind, job, task->ref, task->attempt, task->node);
}

void core_answer(struct core *core, const struct event *event, struct job_id job,
                 const struct err *err)
{
    assert(core->output && (!err || err->code < 0));
    if (!event->request)
        return;
    *ARRAY_ADD(&core->output->answers) = (struct answer){
        .request = event->request,
        .code = err ? err->code : 0,
        .job = job,
        .path = err ? keep(core, err->path) : "",
        .text = err ? keep(core, err->text) : "",
    };
}

void core_trace(struct core *core, const char *format, ...)
{
    assert(core->output);
    va_list args;
    va_start(args, format);
    *ARRAY_ADD(&core->output->trace) = arena_vformat(&core->output->arena, format, args);
    va_end(args);
}
