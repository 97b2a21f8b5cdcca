#include "base/err.h"
#include "base/memory.h"
#include "job/step.h"
#include <assert.h>
#include <limits.h>

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
    return 0;
}

void step_role_settle(struct step *step, uint16_t role_index)
{
    struct job_role *role = &step->job->roles[role_index];
    while (role->count > role->instances) {
        struct job_task *task = &role->items[role->count - 1];
        assert(task->is_deletion_pending);
        if (task->state != LIFE_COMPLETED)
            break;
        const struct task_ref ref = {role_index, (uint16_t)(role->count - 1)};
        step_task_action(step, JOB_ACTION_TASK_REMOVED, ref);
        mem_free(task->completion);
        role->count--;
    }
    bool is_renewed = false;
    for (uint16_t i = 0; i < role->count && i < role->instances; i++) {
        const struct job_task *task = &role->items[i];
        if (!task->is_deletion_pending || task->state != LIFE_COMPLETED)
            continue;
        step_task_renew(step, (struct task_ref){role_index, i});
        is_renewed = true;
    }
    if (is_renewed)
        step_action(step, JOB_ACTION_QUEUE);
}

static void surplus_set(struct step *step, struct task_ref ref)
{
    assert(job_task_find(step->job, ref));
    struct job *job = step->job;
    struct job_role *role = &job->roles[ref.role];
    struct job_task *task = &role->items[ref.index];
    if (task->is_deletion_pending)
        return;
    if (task->state == LIFE_COMPLETED) {
        if (task->completion->is_success)
            role->succeeded--;
        else
            role->failed--;
    }
    task->is_deletion_pending = true;
    if (task->is_held) {
        task->is_held = false;
        job->held--;
        step_task_action(step, JOB_ACTION_FORGET, ref);
    }
    struct job_action *action = step_task_action(step, JOB_ACTION_TASK_CHANGED, ref);
    action->from = action->to = task->state;
}

void step_scale(struct step *step, uint16_t role_index, uint32_t instances)
{
    struct job_role *role = &step->job->roles[role_index];
    const uint32_t before = role->instances, missing_before = job_missing_count(step->job);
    assert(instances <= JOB_INSTANCES_MAX);
    if (step->event->scale.min_failed)
        role->min_failed = *step->event->scale.min_failed;
    if (step->event->scale.min_succeeded)
        role->min_succeeded = *step->event->scale.min_succeeded;
    role->instances = instances;
    step->job->waiting += job_missing_count(step->job) - missing_before;
    step_job_changed(step);
    step_story(step, NULL, false, "Scaled", "%s: instances %u -> %u",
               step->policy->roles[role_index].name, before, instances);
    /* all first, so that a task that ends at once is not taken for a wanted one */
    for (size_t i = role->count; i-- > instances;)
        surplus_set(step, (struct task_ref){role_index, (uint16_t)i});
    const struct completion completion =
        completion_of(CODE_SCALED_DOWN, "no longer among the %u instances wanted", instances);
    for (size_t i = role->count; i-- > instances;)
        if (i < role->count) /* ended ones go from the tail as we come by */
            step_task_kill(step, (struct task_ref){role_index, (uint16_t)i}, &completion,
                           KILL_SCALED_DOWN, step->policy->kill_grace_ms, false);
    step_role_settle(step, role_index);
    const bool is_more = role->count < instances;
    step_tasks_grow(step);
    if (is_more)
        step_action(step, JOB_ACTION_QUEUE);
    if (step->job->waiting == 0)
        step_action(step, JOB_ACTION_UNQUEUE);
    step_judge(step);
}
