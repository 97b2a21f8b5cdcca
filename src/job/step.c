#include "job/step.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include <assert.h>
#include <stdio.h>

struct job_action *step_action(struct step *step, enum job_action_kind kind)
{
    struct job_action *action = ARRAY_ADD(step->output);
    action->kind = kind;
    return action;
}

struct job_action *step_task_action(struct step *step, enum job_action_kind kind,
                                    struct task_ref ref)
{
    assert(ref.role < step->policy->role_count);
    struct job_action *action = step_action(step, kind);
    action->is_of_task = true;
    action->task = ref;
    action->attempt = step_task(step, ref)->attempt;
    return action;
}

void step_story(struct step *step, const struct task_ref *ref, bool is_warning, const char *reason,
                const char *format, ...)
{
    assert((!ref || ref->role < step->policy->role_count) && reason);
    cleanup_buf struct buf text = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    const char *message = arena_copy(step->output->arena, buf_as_text(&text));
    struct job_action *action =
        ref ? step_task_action(step, JOB_ACTION_STORY, *ref) : step_action(step, JOB_ACTION_STORY);
    action->is_warning = is_warning;
    action->reason = reason;
    action->message = message;
}

const char *step_task_name(struct step *step, struct task_ref ref)
{
    return arena_format(step->output->arena, "%s-%u", step->policy->roles[ref.role].name,
                        ref.index);
}

enum { HINT_FROM_MS = 5000 }; /* nobody is faster */

const char *retry_words(struct step *step, uint64_t pause_ms)
{
    if (pause_ms == 0)
        return "retried";
    return arena_format(step->output->arena, "retried in %llu s%s",
                        (unsigned long long)(pause_ms + 999) / 1000,
                        pause_ms < HINT_FROM_MS ? "" : " (`skep start` retries it now)");
}

struct job_task *step_task(struct step *step, struct task_ref ref)
{
    assert(ref.role < step->job->role_count);
    assert(ref.index < step->job->roles[ref.role].count);
    return &step->job->roles[ref.role].items[ref.index];
}

void step_job_changed(struct step *step)
{
    struct job_action *action = step_action(step, JOB_ACTION_JOB_CHANGED);
    action->from = action->to = step->job->state;
}

static struct completion *completion_then(struct arena *arena, const struct completion *completion)
{
    assert(completion);
    struct completion *copy = ARENA_NEW(arena, struct completion);
    *copy = *completion;
    return copy;
}

static const struct job *job_then(struct arena *arena, const struct job *job)
{
    struct job *copy = ARENA_NEW(arena, struct job);
    *copy = *job;
    copy->completion = completion_then(arena, job->completion);
    copy->roles = NULL;
    return copy;
}

const struct job_task *step_task_then(struct step *step, const struct job_task *task)
{
    struct arena *arena = step->output->arena;
    struct job_task *copy = ARENA_NEW(arena, struct job_task);
    *copy = *task;
    copy->completion = completion_then(arena, task->completion);
    return copy;
}

void step_job_state(struct step *step, enum life_state to)
{
    struct job *job = step->job;
    assert(life_can_follow(job->state, to));
    struct job_action *action = step_action(step, JOB_ACTION_JOB_CHANGED);
    action->from = job->state;
    action->to = to;
    job->state = to;
    if (to == LIFE_RUNNING) {
        job->attempt_launched_ms = step->now_ms;
        if (job->launched_ms == 0)
            job->launched_ms = step->now_ms;
    } else if (to == LIFE_ATTEMPT_COMPLETED) {
        job->attempt_completed_ms = step->now_ms;
        action->job_then = job_then(step->output->arena, job);
    } else if (to == LIFE_COMPLETED) {
        job->completed_ms = step->now_ms;
    }
}

void step_task_state(struct step *step, struct task_ref ref, enum life_state to)
{
    struct job_task *task = step_task(step, ref);
    assert(life_can_follow(task->state, to));
    const bool was_live = task_is_live(task);
    struct job_action *action = step_task_action(step, JOB_ACTION_TASK_CHANGED, ref);
    action->from = task->state;
    action->to = to;
    const bool is_wanted = task_is_wanted(&step->job->roles[ref.role], ref.index);
    if (task->state == LIFE_CREATION_PENDING && is_wanted && task->retry_at_ms > 0)
        step->job->paused--;
    else if (task->state == LIFE_CREATION_PENDING && is_wanted)
        step->job->waiting--;
    task->retry_at_ms = 0;
    if (to != LIFE_CREATION_REQUESTED)
        task->is_uncreated = false;
    task->state = to;
    step->job->live = step->job->live - was_live + task_is_live(task);
    if (to == LIFE_CREATION_PENDING) {
        task->waits_ms = step->now_ms;
        step->job->waiting++;
    }
    if (to == LIFE_RUNNING) {
        task->attempt_launched_ms = step->now_ms;
        if (task->launched_ms == 0)
            task->launched_ms = step->now_ms;
    } else if (to == LIFE_ATTEMPT_COMPLETED) {
        task->attempt_completed_ms = step->now_ms;
    } else if (to == LIFE_COMPLETED) {
        task->completed_ms = step->now_ms;
    }
    if (to >= LIFE_ATTEMPT_COMPLETED)
        action->task_then = step_task_then(step, task);
}

void completion_set(struct completion **slot, const struct completion *completion)
{
    if (!*slot)
        *slot = mem_alloc(sizeof **slot);
    **slot = *completion;
}

static void job_roles_make(struct job *job, const struct job_policy *policy)
{
    assert(!job->roles && policy->role_count == job->role_count);
    job->roles = mem_zero(policy->role_count, sizeof *job->roles);
    for (uint16_t r = 0; r < policy->role_count; r++) {
        job->roles[r].instances = policy->roles[r].instances;
        job->roles[r].min_failed = policy->roles[r].min_failed;
        job->roles[r].min_succeeded = policy->roles[r].min_succeeded;
    }
}

static bool role_free(struct job_role *role, uint32_t *left)
{
    while (role->count > 0 && *left > 0) {
        mem_free(role->items[--role->count].completion);
        --*left;
    }
    if (role->count > 0)
        return false;
    ARRAY_FREE(role);
    return true;
}

void job_output_free_dropped(struct job_output *output, uint32_t *left)
{
    while (output->dropped.count > 0 &&
           role_free(&output->dropped.items[output->dropped.count - 1], left))
        output->dropped.count--;
}

void job_tasks_drop(struct job *job, struct job_output *output)
{
    enum { AT_ONCE_MAX = 64 };
    assert(job->role_count <= JOB_ROLES_MAX);
    uint32_t all = UINT32_MAX;
    size_t tasks = 0;
    for (uint16_t r = 0; job->roles && r < job->role_count; r++)
        tasks += job->roles[r].count;
    for (uint16_t r = 0; job->roles && r < job->role_count; r++) {
        struct job_role *role = &job->roles[r];
        if (output && tasks > AT_ONCE_MAX && role->count > 0) {
            *ARRAY_ADD(&output->dropped) = *role;
            role->items = NULL;
            role->count = role->room = 0;
        }
        role_free(role, &all);
        role->succeeded = role->failed = 0;
    }
    job->has_tasks = false;
    job->live = job->waiting = job->paused = job->held = job->let_go = 0;
}

void step_task_add(struct step *step, uint16_t role)
{
    struct job_role *table = &step->job->roles[role];
    assert(table->count < JOB_INSTANCES_MAX);
    struct job_task *task = ARRAY_ADD(table);
    task->created_ms = task->attempt_created_ms = step->now_ms;
    task->waits_ms = table->waits_ms;
    const struct task_ref ref = {role, (uint16_t)(table->count - 1)};
    struct job_action *action = step_task_action(step, JOB_ACTION_TASK_CHANGED, ref);
    action->from = action->to = LIFE_CREATION_PENDING;
}

void step_task_append(struct step *step, struct task_ref ref)
{
    struct job_role *table = &step->job->roles[ref.role];
    assert(step->job->is_starting && ref.index == table->count);
    struct job_task *task = ARRAY_ADD(table);
    task->created_ms = task->attempt_created_ms = step->now_ms;
}

void step_task_renew(struct step *step, struct task_ref ref)
{
    struct job_task *task = step_task(step, ref);
    assert(task->state == LIFE_COMPLETED && task->is_deletion_pending);
    mem_free(task->completion);
    *task = (struct job_task){
        .created_ms = step->now_ms, .attempt_created_ms = step->now_ms, .waits_ms = step->now_ms};
    step->job->waiting++;
    struct job_action *action = step_task_action(step, JOB_ACTION_TASK_CHANGED, ref);
    action->from = action->to = LIFE_CREATION_PENDING;
}

void step_tasks_make(struct step *step)
{
    struct job *job = step->job;
    assert(!job->has_tasks && job->state == LIFE_CREATION_PENDING);
    if (!job->roles)
        job_roles_make(job, step->policy);
    job->has_tasks = true;
    job->is_starting = step->event && step->event->is_in_steps;
    for (uint16_t r = 0; r < job->role_count; r++) {
        assert(job->roles[r].count == 0);
        ARRAY_RESERVE(&job->roles[r], job->roles[r].instances);
        job->roles[r].waits_ms = job->attempt_created_ms;
        job->waiting += job->roles[r].instances;
    }
    if (!job->is_starting)
        step_tasks_grow(step);
    job->next = (struct task_ref){0};
    step_job_state(step, LIFE_CREATION_REQUESTED);
}

/* ---- a table that grows ---- */

uint32_t job_missing_count(const struct job *job)
{
    uint32_t count = 0;
    assert(job->roles);
    for (uint16_t r = 0; r < job->role_count; r++)
        if (job->roles[r].count < job->roles[r].instances)
            count += job->roles[r].instances - (uint32_t)job->roles[r].count;
    return count;
}

static void missing_add(struct step *step, uint32_t most)
{
    struct job *job = step->job;
    for (uint16_t r = 0; r < job->role_count; r++)
        for (; most > 0 && job->roles[r].count < job->roles[r].instances; most--)
            step_task_add(step, r);
    job->is_growing = job_missing_count(job) > 0;
}

/* A gang that does not start in steps has its whole table at once. */
void step_tasks_grow(struct step *step)
{
    const uint32_t missing = job_missing_count(step->job);
    const uint32_t slice = step->event ? step->event->slice : 0;
    assert(!step->job->is_starting);
    step->job->is_growing = missing > 0;
    if (!slice || missing <= slice || step->policy->is_gang)
        missing_add(step, missing);
}

void step_tasks_grow_to(struct step *step, struct task_ref ref)
{
    struct job *job = step->job;
    const struct job_role *role = &job->roles[ref.role];
    assert(ref.index < role->count || (job->is_growing && ref.index < role->instances));
    while (role->count <= ref.index)
        step_task_add(step, ref.role);
    job->is_growing = job->is_growing && job_missing_count(job) > 0;
}

void step_tasks_go_on(struct step *step)
{
    assert(step->job->is_growing && job_is_active(step->job));
    missing_add(step, step->event->slice ? step->event->slice : UINT32_MAX);
    step_job_changed(step); /* its row counts them */
}
