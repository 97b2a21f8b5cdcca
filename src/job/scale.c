#include "base/err.h"
#include "base/memory.h"
#include "job/step.h"
#include <assert.h>
#include <limits.h>

/* Of all roles, if one of them had so many instances. What is no longer wanted counts until its
 * entry has gone. */
static uint64_t tasks_with(const struct job *job, uint16_t role, uint32_t instances)
{
    uint64_t tasks = 0;
    for (uint16_t i = 0; i < job->role_count; i++) {
        const struct job_role *one = &job->roles[i];
        const uint64_t wanted = i == role ? instances : one->instances;
        tasks += wanted > one->count ? wanted : one->count;
    }
    return tasks;
}

int job_can_scale(const struct job *job, const struct job_policy *policy, uint16_t role,
                  uint32_t instances, struct err *err)
{
    if (role >= job->role_count)
        return err_fail(err, ERR_INVALID, "role", "there is no such role");
    if (instances > JOB_INSTANCES_MAX)
        return err_fail(err, ERR_TOO_BIG, "instances", "must be in 0..%d, got %u",
                        JOB_INSTANCES_MAX, instances);
    if (policy->is_gang)
        return err_fail(err, ERR_CONFLICT, "instances",
                        "the tasks of this job start together; only a job without gang "
                        "scheduling can change its instances");
    if (!job_is_active(job))
        return err_fail(err, ERR_CONFLICT, "instances",
                        "the job is %s; only a running job can "
                        "change its instances",
                        job->state == LIFE_CREATION_PENDING ? "waiting" : "ending");
    const uint64_t tasks = tasks_with(job, role, instances);
    if (tasks > JOB_TASKS_MAX)
        return err_fail(err, ERR_TOO_BIG, "instances",
                        "the job would have %llu tasks, and may have at most %d; those of roles "
                        "that were made smaller count until they have ended",
                        (unsigned long long)tasks, JOB_TASKS_MAX);
    return 0;
}

/* ---- tasks that are no longer wanted: docs/rfc/0016-gangs-in-steps.md, "A role that shrinks" ----
 */

static uint32_t slice_of(const struct step *step)
{
    return step->event->slice ? step->event->slice : UINT32_MAX;
}

/* Of entries that may still be removed or renewed in this step. */
static bool settled_all(const struct step *step)
{
    return step->settled >= slice_of(step);
}

static bool is_replaced(const struct job_role *role, size_t index)
{
    assert(index < role->count);
    const struct job_task *task = &role->items[index];
    return index < role->instances && task->is_deletion_pending && task->state == LIFE_COMPLETED;
}

static bool role_has_surplus(const struct job_role *role)
{
    const bool is_more = role->count > role->instances;
    if (is_more &&
        (role->marked > role->instances || role->items[role->count - 1].state == LIFE_COMPLETED))
        return true;
    for (size_t i = 0; i < role->count; i++)
        if (is_replaced(role, i))
            return true;
    return false;
}

static bool job_has_surplus(const struct job *job)
{
    assert(job->has_tasks);
    for (uint16_t r = 0; r < job->role_count; r++)
        if (role_has_surplus(&job->roles[r]))
            return true;
    return false;
}

void job_surplus_restore(struct job *job)
{
    for (uint16_t r = 0; r < job->role_count; r++) {
        struct job_role *role = &job->roles[r];
        role->marked = (uint32_t)role->count;
        while (role->marked > role->instances && role->items[role->marked - 1].is_deletion_pending)
            role->marked--;
    }
    job->is_shrinking = job_has_surplus(job);
}

/* Those at the end of the table that have ended. */
static void tail_remove(struct step *step, uint16_t role_index)
{
    struct job_role *role = &step->job->roles[role_index];
    while (!settled_all(step) && role->count > role->instances &&
           role->items[role->count - 1].state == LIFE_COMPLETED) {
        const struct task_ref ref = {role_index, (uint16_t)(role->count - 1)};
        step_surplus_mark(step, ref);
        step_task_action(step, JOB_ACTION_TASK_REMOVED, ref);
        mem_free(role->items[ref.index].completion);
        role->count--;
        step->settled++;
    }
    role->marked = role->marked < role->count ? role->marked : (uint32_t)role->count;
}

void step_role_settle(struct step *step, uint16_t role_index)
{
    struct job_role *role = &step->job->roles[role_index];
    bool is_renewed = false;
    tail_remove(step, role_index);
    for (uint16_t i = 0; i < role->count && i < role->instances && !settled_all(step); i++) {
        if (!is_replaced(role, i))
            continue;
        step_task_renew(step, (struct task_ref){role_index, i});
        is_renewed = true;
        step->settled++;
    }
    if (is_renewed)
        step_action(step, JOB_ACTION_QUEUE);
    if (settled_all(step))
        step->job->is_shrinking = job_has_surplus(step->job);
}

void step_surplus_mark(struct step *step, struct task_ref ref)
{
    assert(job_task_find(step->job, ref) && job_is_active(step->job));
    struct job *job = step->job;
    struct job_task *task = step_task(step, ref);
    assert(ref.index >= job->roles[ref.role].instances);
    if (task->is_deletion_pending)
        return;
    task->is_deletion_pending = true;
    if (task->is_held || task->is_let_go) {
        job_task_unhold(job, task);
        step_task_action(step, JOB_ACTION_FORGET, ref);
    }
    struct job_action *action = step_task_action(step, JOB_ACTION_TASK_CHANGED, ref);
    action->from = action->to = task->state;
}

/* From the end of the role on; returns how many more may be told. */
static uint32_t role_shrink(struct step *step, uint16_t role_index, uint32_t most)
{
    struct job_role *role = &step->job->roles[role_index];
    const struct completion completion =
        completion_of(CODE_SCALED_DOWN, "no longer among the %u instances wanted", role->instances);
    while (most > 0 && role->marked > role->instances) {
        const struct task_ref ref = {role_index, (uint16_t)--role->marked};
        if (step_task(step, ref)->is_deletion_pending)
            continue;
        step_surplus_mark(step, ref);
        step_task_kill(step, ref, &completion, KILL_SCALED_DOWN, step->policy->kill_grace_ms,
                       false);
        most--;
    }
    return most;
}

void step_shrink_on(struct step *step)
{
    struct job *job = step->job;
    uint32_t most = slice_of(step);
    assert(job_is_active(job) && job->has_tasks);
    for (uint16_t r = 0; r < job->role_count && most > 0; r++) {
        most = role_shrink(step, r, most);
        step_role_settle(step, r);
    }
    job->is_shrinking = job_has_surplus(job);
}

/* The tasks of the table between the two numbers of instances count no longer, or count again:
 * those that have not been marked, as no others ever counted. */
static void surplus_count(struct step *step, const struct job_role *before, struct job_role *role)
{
    struct job *job = step->job;
    const bool is_less = role->instances < before->instances;
    const struct job_role *larger = is_less ? before : role;
    const uint32_t from = is_less ? role->instances : before->instances;
    const uint32_t by = is_less ? UINT32_MAX : 1; /* minus one, modulo 2^32 */
    for (size_t i = from; i < role->count && i < larger->instances; i++) {
        const struct job_task *task = &role->items[i];
        if (task->is_deletion_pending)
            continue;
        if (task->state == LIFE_COMPLETED && task->completion->is_success)
            role->succeeded += by;
        else if (task->state == LIFE_COMPLETED)
            role->failed += by;
        else if (task->state == LIFE_CREATION_PENDING && task->retry_at_ms > 0)
            job->paused += by;
        else if (task->state == LIFE_CREATION_PENDING)
            job->waiting += by;
    }
}

void step_scale(struct step *step, uint16_t role_index, uint32_t instances)
{
    struct job_role *role = &step->job->roles[role_index];
    const struct job_role before = *role;
    const uint32_t missing_before = job_missing_count(step->job),
                   waiting_before = step->job->waiting;
    assert(instances <= JOB_INSTANCES_MAX);
    if (step->event->scale.min_failed)
        role->min_failed = *step->event->scale.min_failed;
    if (step->event->scale.min_succeeded)
        role->min_succeeded = *step->event->scale.min_succeeded;
    if (role->count >= role->instances) /* else some of those without entries have waited longer */
        role->waits_ms = step->now_ms;
    role->instances = instances;
    role->marked = (uint32_t)role->count;
    surplus_count(step, &before, role);
    step->job->waiting += job_missing_count(step->job) - missing_before;
    const bool is_more = step->job->waiting > waiting_before;
    step_job_changed(step);
    step_story(step, NULL, false, "Scaled", "%s: instances %u -> %u",
               step->policy->roles[role_index].name, before.instances, instances);
    step_shrink_on(step);
    step_tasks_grow(step);
    if (is_more || role->count < instances)
        step_action(step, JOB_ACTION_QUEUE);
    if (step->job->waiting == 0)
        step_action(step, JOB_ACTION_UNQUEUE);
    step_judge(step);
}
