#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/utc.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/records.h"
#include "core/seats.h"
#include "core/state.h"

static const char *keep(struct core *core, const char *string)
{
    return string && *string ? arena_copy(&core->output->arena, text_of(string)) : "";
}

const char *task_name(struct core *core, const struct live *live, struct task_ref task)
{
    return arena_format(&core->output->arena, "%s-%u", live->plan->roles[task.role].name,
                        task.index);
}

/* --- jobs --- */

static const char *trigger_of(struct core *core, const struct live *live, const struct job *job)
{
    if (!job->completion)
        return "";
    const struct completion *completion = job->completion;
    const char *what = *completion->diagnostics ? completion->diagnostics : completion->phrase;
    if (job->trigger_role < 0)
        return keep(core, what);
    struct task_ref task = {(uint16_t)job->trigger_role, (uint16_t)job->trigger_index};
    return arena_format(&core->output->arena, "%s ended with %d: %s", task_name(core, live, task),
                        completion->code, what);
}

static void reason_fill(struct core *core, const struct live *live, const struct job *job,
                        struct job_record *record)
{
    uint32_t slot = live_slot(core, live);
    record->reason = "";
    if (queue_has(core->queue, slot)) {
        const uint32_t class = queue_class_of(core->queue, slot);
        record->reason = keep(core, queue_reason(core->queue, class));
        record->reason_topic = queue_topic(core->queue, class);
    } else if (job->retry_at_ms && job->completion) {
        char at[UTC_SIZE];
        record->reason =
            arena_format(&core->output->arena, "it is retried at %s: attempt %u ended with %d (%s)",
                         utc_text(job->retry_at_ms, at), job->attempt, job->completion->code,
                         job->completion->phrase);
    }
}

static void sizes_fill(struct core *core, const struct live *live, struct job_record *record)
{
    const struct live_size size = live_size(core, live);
    record->task_count = size.tasks;
    record->gpu_count = size.gpus;
}

static void job_fill(struct core *core, const struct live *live, const struct job *job,
                     struct job_record *record)
{
    const struct plan *plan = live->plan;
    cleanup_buf struct buf extra = BUF_INIT;
    job_save(&live->job, &extra);
    char *saved = arena_alloc(&core->output->arena, extra.length + 1);
    memcpy(saved, buf_cstr(&extra), extra.length);
    *record = (struct job_record){
        .id = live->id,
        .submission = live->submission,
        .name = keep(core, plan->name),
        .user = keep(core, plan->user),
        .virtual_cluster = keep(core, plan->virtual_cluster),
        .priority = plan->priority,
        .state = job->state,
        .is_stop_requested = job_is_stop_requested(job),
        .attempt = job->attempt,
        .retries_user = job->retries_user,
        .retries_platform = job->retries_platform,
        .retries_resource = job->retries_resource,
        .retry_at_ms = job->retry_at_ms,
        .submitted_ms = job->submitted_ms,
        .attempt_created_ms = job->attempt_created_ms,
        .attempt_launched_ms = job->attempt_launched_ms,
        .attempt_completed_ms = job->attempt_completed_ms,
        .launched_ms = job->launched_ms,
        .completed_ms = job->completed_ms,
        .trigger_role = job->trigger_role,
        .trigger_index = job->trigger_index,
        .trigger = trigger_of(core, live, job),
        .role_count = plan->role_count,
        .extra = {saved, extra.length},
    };
    sizes_fill(core, live, record);
    reason_fill(core, live, job, record);
    if (job->completion)
        record->completion = *job->completion;
}

static struct record *record_add(struct core *core, enum record_kind kind)
{
    struct record *record = ARRAY_ADD(&core->output->records);
    record->kind = kind;
    return record;
}

/* The row is filled at the end of the step, but has its place now: before its tasks and stories. */
void record_job_changed(struct core *core, struct live *live)
{
    if (live->is_changed)
        return;
    live->is_changed = true;
    *ARRAY_ADD(&core->changed_jobs) = live_slot(core, live);
    live->record_at = core->output->records.count;
    record_add(core, RECORD_JOB);
}

/* The row of the attempt: the one that the step has begun, or a new one for the next attempt. */
static struct job_record *job_row(struct core *core, struct live *live, uint32_t attempt)
{
    const struct job_record *row = &core->output->records.items[live->record_at].job;
    if (row->id.v && row->attempt != attempt) {
        live->submission = NULL; /* the first row has told it */
        live->record_at = core->output->records.count;
        record_add(core, RECORD_JOB);
    }
    return &core->output->records.items[live->record_at].job;
}

void record_job_then(struct core *core, struct live *live, const struct job *job)
{
    record_job_changed(core, live);
    struct job_record *row = job_row(core, live, job->attempt);
    job_fill(core, live, job, row);
    row->reason = "";
}

static void job_flush(struct core *core, struct live *live)
{
    job_fill(core, live, &live->job, job_row(core, live, live->job.attempt));
    live->is_changed = false;
    live->submission = NULL;
}

/* --- tasks --- */

static void task_fill(struct core *core, const struct seat *seat, const struct job_task *task,
                      struct task_record *record)
{
    const struct live *live = &core->jobs.items[seat->job];
    struct arena *arena = &core->output->arena;
    const struct node *node = seat->node == NONE ? NULL : &core->nodes.items[seat->node];
    bool has_place = node && seat->attempt.v;
    uint16_t *gpus = NULL;
    struct port_range *ports = NULL;
    if (has_place && seat->gpu_count) {
        gpus = ARENA_ARRAY(arena, uint16_t, seat->gpu_count);
        memcpy(gpus, seat->gpus, seat->gpu_count * sizeof *gpus);
    }
    if (has_place && seat->port_count) {
        ports = ARENA_ARRAY(arena, struct port_range, seat->port_count);
        for (size_t i = 0; i < seat->port_count; i++) {
            ports[i] = seat->ports[i];
            ports[i].label = keep(core, ports[i].label);
        }
    }
    *record = (struct task_record){
        .job = live->id,
        .task = seat->task,
        .role_name = keep(core, live->plan->roles[seat->task.role].name),
        .state = task->state,
        .is_deletion_pending = task->is_deletion_pending,
        .is_held = task->is_held,
        .attempt = seat->attempt,
        .job_attempt = seat->job_attempt,
        .task_attempt = task->task_attempt,
        .retries = task->retries,
        .accountable_retries = task->retries_counted,
        .node = has_place ? keep(core, node->facts.name) : "",
        .address = has_place ? keep(core, node->facts.address) : "",
        .gpus = gpus,
        .gpu_count = has_place ? seat->gpu_count : 0,
        .cell_level = has_place ? seat->cell_level : 0,
        .ports = ports,
        .port_count = has_place ? seat->port_count : 0,
        .created_ms = task->created_ms,
        .launched_ms = task->launched_ms,
        .completed_ms = task->completed_ms,
        .attempt_created_ms = task->attempt_created_ms,
        .attempt_launched_ms = task->attempt_launched_ms,
        .attempt_completed_ms = task->attempt_completed_ms,
        .killed = task->killed,
        .kill_by_ms = task->kill_by_ms,
    };
    if (task->completion && task->state >= LIFE_DELETION_PENDING)
        record->completion = *task->completion;
}

static void task_write(struct core *core, struct seat *seat, const struct job_task *task)
{
    bool is_again = seat->record_step == core->step && seat->record_attempt.v == seat->attempt.v;
    if (!is_again) {
        seat->record_step = core->step;
        seat->record_attempt = seat->attempt;
        seat->record_at = core->output->records.count;
        record_add(core, RECORD_TASK);
    }
    task_fill(core, seat, task, &core->output->records.items[seat->record_at].task);
}

void record_task_changed(struct core *core, struct seat *seat)
{
    if (seat->is_changed)
        return;
    seat->is_changed = true;
    *ARRAY_ADD(&core->changed_seats) = (uint32_t)(seat - core->seats.items);
}

void record_task_then(struct core *core, struct seat *seat, const struct job_task *task)
{
    task_write(core, seat, task);
}

void record_task_removed(struct core *core, const struct live *live, struct task_ref task)
{
    struct task_record *record = &record_add(core, RECORD_TASK)->task;
    *record = (struct task_record){
        .job = live->id,
        .task = task,
        .role_name = keep(core, live->plan->roles[task.role].name),
        .is_removed = true,
        .job_attempt = live->job.attempt,
        .node = "",
        .address = "",
    };
}

void records_flush(struct core *core)
{
    for (size_t i = 0; i < core->changed_seats.count; i++) {
        struct seat *seat = &core->seats.items[core->changed_seats.items[i]];
        if (seat->job == NONE || !seat->is_changed)
            continue;
        seat->is_changed = false;
        const struct job_task *task = job_task_find(&core->jobs.items[seat->job].job, seat->task);
        assert(task);
        task_write(core, seat, task);
    }
    core->changed_seats.count = 0;
    for (size_t i = 0; i < core->changed_jobs.count; i++) {
        struct live *live = &core->jobs.items[core->changed_jobs.items[i]];
        assert(live->id.v && live->is_changed);
        job_flush(core, live);
    }
    core->changed_jobs.count = 0;
}

void record_job_deleted(struct core *core, struct job_id id)
{
    record_add(core, RECORD_JOB_DELETED)->deleted = id;
}

/* --- nodes, stories, commands, answers --- */

void record_node(struct core *core, uint32_t at)
{
    const struct node *node = &core->nodes.items[at];
    const bool is_reason_blame = node_is_cordoned(node) || !*node->facts.reason;
    struct node_record *record = &record_add(core, RECORD_NODE)->node;
    *record = (struct node_record){
        .id = {at},
        .facts = node_facts_keep(&core->output->arena, &node->facts),
        .is_cordoned = node_is_cordoned(node),
        .is_lost = node->is_lost,
        .blame = node->blame.value,
        .blame_ms = node->blame.at_ms,
        .is_reason_blame = is_reason_blame,
    };
    if (is_reason_blame)
        record->facts.reason = keep(core, node->cordon);
}

void record_story(struct core *core, const struct live *live, const struct seat *seat,
                  bool is_warning, const char *reason, const char *format, ...)
{
    cleanup_buf struct buf message = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&message, format, args);
    va_end(args);
    struct story_record *story = &record_add(core, RECORD_STORY)->story;
    *story = (struct story_record){
        .job = live->id,
        .role = seat ? seat->task.role : -1,
        .index = seat ? seat->task.index : -1,
        .is_warning = is_warning,
        .at_ms = core->now_ms,
        .reason = keep(core, reason),
        .message = keep(core, buf_cstr(&message)),
    };
    if (seat)
        story->attempt = seat->attempt;
    core_trace(core, "job %s: %s", live->full_name, story->message);
}

struct command *command_add(struct core *core, enum command_kind kind, const struct live *live,
                            struct task_ref task, struct attempt_id attempt)
{
    struct command *command = ARRAY_ADD(&core->output->commands);
    command->kind = kind;
    command->job = live->id;
    command->task = task;
    command->attempt = attempt;
    const struct seat *seat = seat_find(core, live_slot(core, live), task);
    command->node =
        seat && seat->node != NONE ? keep(core, core->nodes.items[seat->node].facts.name) : "";
    command->reason = "";
    return command;
}

void core_answer(struct core *core, const struct event *event, struct job_id job,
                 const struct err *err)
{
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
    cleanup_buf struct buf line = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&line, format, args);
    va_end(args);
    *ARRAY_ADD(&core->output->trace) = keep(core, buf_cstr(&line));
}
