#include "job/job.h"
#include "base/err.h"
#include "base/memory.h"
#include "job/step.h"
#include <assert.h>
#include <stdlib.h>

_Static_assert(sizeof(struct job) <= JOB_BYTES_MAX, "a queued job costs no more");

void job_output_release(struct job_output *output)
{
    uint32_t all = UINT32_MAX;
    job_output_free_dropped(output, &all);
    ARRAY_FREE(&output->dropped);
    ARRAY_FREE(output);
}

void job_init(struct job *job, const struct job_policy *policy, int64_t now_ms,
              struct job_output *output)
{
    assert(policy->role_count > 0 && policy->role_count <= JOB_ROLES_MAX);
    *job = (struct job){
        .execution = policy->is_created_only ? EXECUTION_CREATE : EXECUTION_START,
        .role_count = policy->role_count,
        .submitted_ms = now_ms,
        .attempt_created_ms = now_ms,
        .trigger_role = -1,
        .trigger_index = -1,
    };
    struct step step = {.job = job, .policy = policy, .output = output, .now_ms = now_ms};
    step_job_changed(&step);
    if (job->execution == EXECUTION_START)
        step_queue(&step);
}

void job_release(struct job *job)
{
    assert(job->role_count <= JOB_ROLES_MAX);
    job_tasks_drop(job, NULL);
    mem_free(job->roles);
    mem_free(job->completion);
    *job = (struct job){0};
}

/* ---- what may be asked for ---- */

bool job_is_final(const struct job *job)
{
    return job->state == LIFE_COMPLETED;
}

bool job_is_stop_requested(const struct job *job)
{
    return job->execution == EXECUTION_STOP;
}

void job_preemption_failed(struct job *job, int64_t until_ms)
{
    assert(until_ms > 0 && !job_is_final(job));
    job->preempt_failures++;
    job->preempt_after_ms = until_ms;
}

void job_preemption_settle(struct job *job)
{
    job->preempt_failures = 0;
}

int job_can_stop(const struct job *job, struct err *err)
{
    if (job_is_final(job) && job->execution != EXECUTION_STOP)
        return err_fail(err, ERR_CONFLICT, "", "the job has already ended");
    return 0;
}

/* It, or a task of it, waits for the time of its next try. */
static bool is_pausing(const struct job *job)
{
    return (job->state == LIFE_ATTEMPT_COMPLETED && job->retry_at_ms > 0) ||
           (job_is_active(job) && job->paused > 0);
}

int job_can_start(const struct job *job, struct err *err)
{
    if (job->execution == EXECUTION_CREATE ||
        (job->execution == EXECUTION_START && is_pausing(job)))
        return 0;
    if (job->execution == EXECUTION_START)
        return err_fail(err, ERR_CONFLICT, "",
                        job_is_final(job) ? "the job has ended by itself; submit it anew"
                                          : "the job is started already");
    if (!job_is_final(job))
        return err_fail(err, ERR_CONFLICT, "", "the job is still stopping");
    return 0;
}

int job_can_delete(const struct job *job, struct err *err)
{
    if (!job_is_final(job))
        return err_fail(err, ERR_CONFLICT, "", "the job has not ended; stop it first");
    return 0;
}

/* ---- times ---- */

static int64_t gang_timeout_at(const struct job *job, const struct job_policy *policy)
{
    if (!policy->is_gang || policy->gang_timeout_s == 0 ||
        policy->gang_timeout_s > (uint64_t)(INT64_MAX - job->attempt_created_ms) / 1000)
        return INT64_MAX;
    return job->attempt_created_ms + (int64_t)policy->gang_timeout_s * 1000;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t job_wake_ms(const struct job *job, const struct job_policy *policy)
{
    assert(policy->role_count <= JOB_ROLES_MAX);
    int64_t at = INT64_MAX;
    switch (job->state) {
    case LIFE_CREATION_PENDING:
        if (job->execution == EXECUTION_START)
            at = earlier(gang_timeout_at(job, policy), job_deadline_ms(job, policy));
        break;
    case LIFE_CREATION_REQUESTED:
    case LIFE_PREPARING:
    case LIFE_RUNNING:
        at = earlier(job_tasks_wake_ms(job), job_deadline_ms(job, policy));
        break;
    case LIFE_DELETION_PENDING:
    case LIFE_DELETION_REQUESTED:
    case LIFE_DELETING:
        break;
    case LIFE_ATTEMPT_COMPLETED:
        at = earlier(job->retry_at_ms, job_deadline_ms(job, policy));
        break;
    case LIFE_COMPLETED:
        at = job->hold_until_ms > 0 ? job->hold_until_ms : INT64_MAX;
        break;
    }
    return at == INT64_MAX ? 0 : at;
}

static void step_gang_timeout(struct step *step)
{
    const struct attempt_end end = {
        .completion = completion_of(CODE_GANG_TIMEOUT, "no place for all tasks within %llu s",
                                    (unsigned long long)step->policy->gang_timeout_s),
    };
    step_story(step, NULL, true, "GangTimeout", "%s", end.completion.diagnostics);
    step_attempt_end(step, &end);
}

static void step_timer(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_TIMER);
    struct job *job = step->job;
    const int64_t due = job_wake_ms(job, step->policy);
    if (due == 0 || due > step->now_ms)
        return;
    if (job_is_final(job)) {
        step_story(step, NULL, false, "Released", "the time for debugging has passed");
        step_forget_held(step);
    } else if (job->state == LIFE_ATTEMPT_COMPLETED) {
        step_retry_begin(step);
    } else if (job_deadline_ms(job, step->policy) <= step->now_ms) {
        step_deadline(step);
    } else if (job_is_active(job)) {
        step_tasks_resume(step, step->now_ms);
    } else {
        step_gang_timeout(step);
    }
}

/* ---- what people ask for ---- */

static void step_stop(struct step *step)
{
    struct job *job = step->job;
    if (job_is_final(job) || job->execution == EXECUTION_STOP)
        return;
    assert(execution_can_change(job->execution, EXECUTION_STOP));
    job->execution = EXECUTION_STOP;
    step_job_changed(step);
    step_story(step, NULL, false, "StopRequested", "the job is to be stopped");
    if (job->state == LIFE_ATTEMPT_COMPLETED) {
        step_retry_begin(step); /* its next attempt is stopped */
        return;
    }
    if (job_is_completing(job))
        return;
    const struct attempt_end end = {
        .completion = completion_of(CODE_STOP_REQUESTED, "stopped on request"),
        .reason = KILL_STOPPED,
    };
    step_attempt_end(step, &end);
}

/* A stopped job begins a new life under its old name: budget and times anew, attempts count on.
 * What its last attempt has not let go yet is the caller's to forget. */
static void step_restart(struct step *step)
{
    struct job *job = step->job;
    job_tasks_drop(job, step->output);
    job->hold_until_ms = 0;
    mem_free(job->completion);
    job->completion = NULL;
    job->attempt++;
    job->retries_user = job->retries_platform = job->retries_resource = 0;
    job->quick_ends = 0;
    job->launched_ms = job->completed_ms = 0;
    job->attempt_created_ms = step->now_ms;
    job->attempt_launched_ms = job->attempt_completed_ms = 0;
    job->is_inherited = false;
    job->trigger_role = job->trigger_index = -1;
    job->state = LIFE_CREATION_PENDING;
    struct job_action *action = step_action(step, JOB_ACTION_JOB_CHANGED);
    action->from = LIFE_COMPLETED;
    action->to = LIFE_CREATION_PENDING;
}

/* The pause before the next try ends here. */
static void step_retry_now(struct step *step)
{
    step_story(step, NULL, false, "Started", "retried now, as was asked for");
    if (step->job->state == LIFE_ATTEMPT_COMPLETED)
        step_retry_begin(step);
    else
        step_tasks_resume(step, INT64_MAX);
}

static void step_start(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_START);
    struct job *job = step->job;
    if (job_can_start(job, NULL) != 0)
        return;
    if (job->execution == EXECUTION_START) {
        step_retry_now(step);
        return;
    }
    const bool is_again = job->execution == EXECUTION_STOP;
    job->execution = EXECUTION_START;
    if (is_again)
        step_restart(step);
    else
        step_job_changed(step);
    job->attempt_created_ms = step->now_ms;
    step_story(step, NULL, false, "Started", is_again ? "started again" : "started");
    step_queue(step);
}

static void step_release(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_RELEASE);
    if (step->job->held == 0)
        return;
    step_story(step, NULL, false, "Released", "the containers kept for debugging may go");
    step_forget_held(step);
}

/* ---- what the platform says ---- */

static void task_placed(struct step *step, struct task_ref ref)
{
    if (step->job->is_starting)
        step_task_append(step, ref);
    else
        step_tasks_grow_to(step, ref);
    step_task_placed(step, ref);
}

static void step_placed(struct step *step)
{
    struct job *job = step->job;
    const struct job_event *event = step->event;
    if (job->execution != EXECUTION_START)
        return;
    if (job->state == LIFE_CREATION_PENDING)
        step_tasks_make(step);
    if (!job_is_active(job))
        return;
    assert(!step->policy->is_gang || !event->tasks || event->task_count == job->waiting ||
           job->is_starting);
    const bool is_more = job->is_starting || job->is_growing;
    for (size_t i = 0; event->tasks && i < event->task_count; i++)
        task_placed(step, event->tasks[i]);
    for (uint16_t r = 0; !event->tasks && r < job->role_count; r++)
        for (uint16_t i = 0; i < job_role_count(job, step->policy, r); i++)
            if (job_task_is_waiting(job, step->policy, (struct task_ref){r, i}))
                task_placed(step, (struct task_ref){r, i});
    if (is_more)
        step_job_changed(step); /* its row counts them */
    if (job->waiting == 0)
        step_action(step, JOB_ACTION_UNQUEUE);
}

static void step_refused(struct step *step)
{
    if (step->job->execution != EXECUTION_START || step->job->state > LIFE_RUNNING)
        return;
    const struct attempt_end end = {
        .completion = *step->event->completion,
        .reason = KILL_ATTEMPT_COMPLETED,
    };
    step_story(step, NULL, true, "Refused", "%s", end.completion.diagnostics);
    step_attempt_end(step, &end);
}

static void step_preempt(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_PREEMPT);
    if (!job_is_active(step->job))
        return;
    const struct attempt_end end = {
        .completion = *step->event->completion,
        .reason = KILL_PREEMPTED,
    };
    step_story(step, NULL, true, end.completion.code == CODE_REFUSED ? "TaskRefused" : "Preempted",
               "%s", end.completion.diagnostics);
    step_attempt_end(step, &end);
}

static void step_lost(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_LOST);
    if (!job_is_active(step->job))
        return;
    const struct attempt_end end = {
        .completion = completion_of(CODE_OBJECT_DELETED, "the attempt was removed from outside"),
        .reason = KILL_ATTEMPT_COMPLETED,
        .is_external = true,
    };
    step_story(step, NULL, true, "AttemptLost", "%s", end.completion.diagnostics);
    step_attempt_end(step, &end);
}

static void step_kill(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_TASK_KILL);
    const struct completion *completion = step->event->completion;
    const bool is_preemption =
        completion->code == CODE_PREEMPTED || completion->code == CODE_REFUSED;
    const enum kill_reason reason = is_preemption                   ? KILL_PREEMPTED
                                    : completion->code == CODE_HUNG ? KILL_HUNG
                                                                    : KILL_OTHER;
    step_task_kill(step, step->event->task, completion, reason,
                   is_preemption ? step->policy->preemption_grace_ms : step->policy->kill_grace_ms,
                   false);
}

static void step_task_event(struct step *step)
{
    const struct job_event *event = step->event;
    const struct task_ref ref = event->task;
    if (event->kind == JOB_EVENT_TASK_REFUSED && step->policy->is_gang) {
        if (step->job->state == LIFE_CREATION_PENDING)
            step_refused(step); /* it starts whole or not at all */
        return;
    }
    if (event->kind == JOB_EVENT_TASK_REFUSED && step->job->state == LIFE_CREATION_PENDING &&
        step->job->execution == EXECUTION_START)
        step_tasks_make(step);
    const bool is_end = event->kind == JOB_EVENT_TASK_REFUSED || event->kind == JOB_EVENT_TASK_KILL;
    if (is_end && step->job->is_growing && job_task_is_waiting(step->job, step->policy, ref))
        step_tasks_grow_to(step, ref);
    const struct job_task *task = job_task_find(step->job, ref);
    if (!task || (event->attempt.v != 0 && event->attempt.v != task->attempt.v))
        return;
    switch (event->kind) {
    case JOB_EVENT_TASK_PREPARING:
        step_task_preparing(step, ref);
        break;
    case JOB_EVENT_TASK_RUNNING:
        step_task_running(step, ref);
        break;
    case JOB_EVENT_TASK_EXITED:
        step_task_exited(step, ref, event->completion);
        break;
    case JOB_EVENT_TASK_REFUSED:
        step_task_refused(step, ref, event->completion);
        break;
    case JOB_EVENT_TASK_KILL:
        step_kill(step);
        break;
    case JOB_EVENT_PLACED:
    case JOB_EVENT_REFUSED:
    case JOB_EVENT_PREEMPT:
    case JOB_EVENT_LOST:
    case JOB_EVENT_STOP:
    case JOB_EVENT_START:
    case JOB_EVENT_SCALE:
    case JOB_EVENT_RELEASE:
    case JOB_EVENT_TIMER:
    case JOB_EVENT_JUDGE:
    case JOB_EVENT_GO_ON:
        assert(false && "not an event of a task");
    }
}

void job_step(struct job *job, const struct job_policy *policy, const struct job_event *event,
              struct job_output *output)
{
    assert(policy->role_count == job->role_count);
    struct step step = {job, policy, event, output, event->now_ms, 0};
    switch (event->kind) {
    case JOB_EVENT_PLACED:
        step_placed(&step);
        break;
    case JOB_EVENT_REFUSED:
        step_refused(&step);
        break;
    case JOB_EVENT_TASK_REFUSED:
    case JOB_EVENT_TASK_PREPARING:
    case JOB_EVENT_TASK_RUNNING:
    case JOB_EVENT_TASK_EXITED:
    case JOB_EVENT_TASK_KILL:
        step_task_event(&step);
        break;
    case JOB_EVENT_PREEMPT:
        step_preempt(&step);
        break;
    case JOB_EVENT_LOST:
        step_lost(&step);
        break;
    case JOB_EVENT_STOP:
        step_stop(&step);
        break;
    case JOB_EVENT_START:
        step_start(&step);
        break;
    case JOB_EVENT_SCALE:
        if (job_can_scale(job, policy, event->scale.role, event->scale.instances, NULL) == 0)
            step_scale(&step, event->scale.role, event->scale.instances);
        break;
    case JOB_EVENT_RELEASE:
        step_release(&step);
        break;
    case JOB_EVENT_TIMER:
        step_timer(&step);
        break;
    case JOB_EVENT_JUDGE:
        if (job_is_active(job))
            step_judge(&step);
        break;
    case JOB_EVENT_GO_ON:
        step_go_on(&step);
        break;
    }
}

/* ---- questions ---- */

uint32_t job_role_instances(const struct job *job, const struct job_policy *policy, uint16_t role)
{
    assert(role < job->role_count);
    return job->roles ? job->roles[role].instances : policy->roles[role].instances;
}

uint32_t job_role_count(const struct job *job, const struct job_policy *policy, uint16_t role)
{
    const uint32_t wanted = job_role_instances(job, policy, role);
    if (!job->has_tasks)
        return wanted;
    const uint32_t count = (uint32_t)job->roles[role].count;
    return job->is_growing && count < wanted ? wanted : count;
}

uint32_t job_waiting_count(const struct job *job, const struct job_policy *policy)
{
    assert(policy->role_count <= JOB_ROLES_MAX);
    if (job->has_tasks)
        return job_is_active(job) ? job->waiting : 0;
    if (job->state != LIFE_CREATION_PENDING || job->execution != EXECUTION_START)
        return 0;
    uint32_t count = 0;
    for (uint16_t r = 0; r < job->role_count; r++)
        count += job_role_instances(job, policy, r);
    return count;
}

bool job_task_is_waiting(const struct job *job, const struct job_policy *policy,
                         struct task_ref task)
{
    assert(task.role < job->role_count);
    if (job->has_tasks) {
        const struct job_task *found = job_task_find(job, task);
        if (!found)
            return job->is_growing && task.index < job->roles[task.role].instances;
        return found->state == LIFE_CREATION_PENDING && found->retry_at_ms == 0 &&
               task.index < job->roles[task.role].instances && job_is_active(job);
    }
    return task.index < job_role_instances(job, policy, task.role) &&
           job_waiting_count(job, policy) > 0;
}

static int64_t role_waits_ms(const struct job_role *role)
{
    int64_t since_ms = role->count < role->instances ? role->waits_ms : INT64_MAX;
    for (size_t i = 0; i < role->count && i < role->instances; i++) {
        const struct job_task *task = &role->items[i];
        if (task->state == LIFE_CREATION_PENDING && task->retry_at_ms == 0)
            since_ms = earlier(since_ms, task->waits_ms);
    }
    return since_ms;
}

int64_t job_waits_ms(const struct job *job, const struct job_policy *policy)
{
    assert(job_waiting_count(job, policy) > 0);
    (void)policy;
    if (!job->has_tasks)
        return job->attempt_created_ms;
    int64_t since_ms = INT64_MAX;
    for (uint16_t r = 0; r < job->role_count; r++)
        since_ms = earlier(since_ms, role_waits_ms(&job->roles[r]));
    return since_ms;
}

const struct job_task *job_task_find(const struct job *job, struct task_ref task)
{
    if (!job->has_tasks || task.role >= job->role_count ||
        task.index >= job->roles[task.role].count)
        return NULL;
    return &job->roles[task.role].items[task.index];
}

bool job_task_is_kept(const struct job_task *task)
{
    return task->state >= LIFE_ATTEMPT_COMPLETED && (task->is_held || task->is_let_go);
}
