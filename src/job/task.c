#include "base/arena.h"
#include "base/memory.h"
#include "job/step.h"
#include <assert.h>
#include <stdio.h>

void step_task_placed(struct step *step, struct task_ref ref)
{
    struct job_task *task = step_task(step, ref);
    assert(task->state == LIFE_CREATION_PENDING && step->event->attempt_last);
    task->attempt.v = ++*step->event->attempt_last;
    task->is_uncreated = step->event->is_in_steps;
    step_task_state(step, ref, LIFE_CREATION_REQUESTED);
    if (!task->is_uncreated)
        step_task_action(step, JOB_ACTION_CREATE, ref);
}

void step_task_preparing(struct step *step, struct task_ref ref)
{
    assert(ref.role < step->policy->role_count);
    if (step_task(step, ref)->state != LIFE_CREATION_REQUESTED)
        return;
    step_task_state(step, ref, LIFE_PREPARING);
    if (step->job->state == LIFE_CREATION_REQUESTED)
        step_job_state(step, LIFE_PREPARING);
}

void step_task_running(struct step *step, struct task_ref ref)
{
    assert(step->event->kind == JOB_EVENT_TASK_RUNNING);
    step_task_preparing(step, ref);
    if (step_task(step, ref)->state != LIFE_PREPARING)
        return;
    step_task_state(step, ref, LIFE_RUNNING);
    if (step->job->state == LIFE_PREPARING)
        step_job_state(step, LIFE_RUNNING);
}

/* From any state with a container to DELETION_REQUESTED, by legal edges. */
static void walk_to_deletion(struct step *step, struct task_ref ref)
{
    assert(job_task_find(step->job, ref));
    const struct job_task *task = step_task(step, ref);
    if (task->state == LIFE_CREATION_REQUESTED)
        step_task_state(step, ref, LIFE_PREPARING);
    if (task->state == LIFE_PREPARING || task->state == LIFE_RUNNING)
        step_task_state(step, ref, LIFE_DELETION_PENDING);
    if (task->state == LIFE_DELETION_PENDING)
        step_task_state(step, ref, LIFE_DELETION_REQUESTED);
}

int64_t job_tasks_wake_ms(const struct job *job)
{
    int64_t at = INT64_MAX;
    for (uint16_t r = 0; job->paused > 0 && r < job->role_count; r++)
        for (size_t i = 0; i < job->roles[r].count && i < job->roles[r].instances; i++) {
            const int64_t retry_at_ms = job->roles[r].items[i].retry_at_ms;
            if (retry_at_ms > 0 && retry_at_ms < at)
                at = retry_at_ms;
        }
    return at;
}

void step_tasks_resume(struct step *step, int64_t until_ms)
{
    struct job *job = step->job;
    for (uint16_t r = 0; job->paused > 0 && r < job->role_count; r++)
        for (uint16_t i = 0; i < job->roles[r].count && i < job->roles[r].instances; i++) {
            struct job_task *task = &job->roles[r].items[i];
            if (task->retry_at_ms == 0 || task->retry_at_ms > until_ms)
                continue;
            task->retry_at_ms = 0;
            task->waits_ms = step->now_ms;
            job->paused--;
            job->waiting++;
        }
    step_action(step, JOB_ACTION_QUEUE);
}

/* How long the task's next try has to wait; counts the end. */
static uint64_t pause_after(struct step *step, struct task_ref ref, struct retry_decision decision)
{
    assert(job_task_find(step->job, ref));
    struct job_task *task = step_task(step, ref);
    const struct retry_pause pause = step->policy->pause;
    if (!retry_is_quick(pause, task->attempt_launched_ms, step->now_ms))
        task->quick_ends = 0;
    const uint32_t before = task->quick_ends++;
    if (!retry_is_paused(step->policy->roles[ref.role].task_retry, decision, task->completion))
        return 0;
    return retry_pause_ms(pause, before, step->event->random);
}

static bool is_final_code(int32_t code)
{
    return code == CODE_ATTEMPT_COMPLETION || code == CODE_SCALED_DOWN;
}

/* Of a task without retries of its own: would the job be retried for it? Then its story says so. */
static bool is_job_retried(const struct step *step, struct task_ref ref)
{
    assert(job_task_find(step->job, ref));
    const struct retry_policy own = step->policy->roles[ref.role].task_retry;
    const struct job_task *task = &step->job->roles[ref.role].items[ref.index];
    return own.max == 0 && !own.is_fancy &&
           retry_decide(step->policy->retry, step->job->retries_user, task->completion).is_retried;
}

static void story_of_exit(struct step *step, struct task_ref ref, struct retry_decision decision,
                          uint64_t pause_ms)
{
    assert(job_task_find(step->job, ref)->completion);
    const struct job_task *task = step_task(step, ref);
    const struct completion *completion = task->completion;
    if (is_final_code(completion->code) || job_is_completing(step->job))
        return; /* the story of what ended it has been told */
    char what[96] = "";
    if (decision.is_retried)
        snprintf(what, sizeof what, ", %s%s", retry_words(step, pause_ms),
                 decision.is_counted ? "" : ", not counted");
    else if (!completion->is_success && !is_job_retried(step, ref))
        snprintf(what, sizeof what, ", not retried");
    /* the exit code is what people know from their shell; the rule's code stands beside it */
    const bool is_told = completion->exit_code != 0 && completion->exit_code != completion->code;
    char code[16] = "";
    if (is_told)
        snprintf(code, sizeof code, "%d ", completion->code);
    if (completion->code == CODE_REFUSED) {
        step_story(step, &ref, true, "TaskRefused", "%s: %s%s", step_task_name(step, ref),
                   completion->diagnostics, what);
        return;
    }
    step_story(step, &ref, !completion->is_success,
               completion->is_success ? "TaskSucceeded" : "TaskFailed", "%s %s %d (%s%s)%s%s%s",
               step_task_name(step, ref),
               task->attempt_launched_ms == 0 && !completion->is_success ? "could not start:"
                                                                         : "exited",
               is_told ? completion->exit_code : completion->code, code, completion->phrase,
               completion->diagnostics[0] ? ": " : "", completion->diagnostics, what);
}

/* What was placed together is placed anew together. */
static bool ends_gang(const struct step *step, const struct completion *completion)
{
    return step->policy->is_gang && (completion->attributes & EXIT_ALWAYS_RETRIED);
}

/* As by a preemption: the peers have the time for a checkpoint. */
static void gang_end(struct step *step, struct task_ref ref, const struct completion *completion)
{
    const struct attempt_end end = {
        .completion = *completion,
        .trigger = &ref,
        .reason = KILL_PREEMPTED,
        .is_inherited = true,
    };
    step_attempt_end(step, &end);
}

/* ATTEMPT_COMPLETED: again, or final. */
static void settle(struct step *step, struct task_ref ref)
{
    struct job *job = step->job;
    struct job_task *task = step_task(step, ref);
    struct job_role *role = &job->roles[ref.role];
    assert(task->state == LIFE_ATTEMPT_COMPLETED && task->completion);
    struct retry_decision decision = {0};
    if (ref.index >= role->instances && job_is_active(job))
        step_surplus_mark(step, ref); /* its turn had not come: it must not decide anything */
    if (!task->is_deletion_pending && job_is_active(job) && !ends_gang(step, task->completion))
        decision = retry_decide(step->policy->roles[ref.role].task_retry, task->retries_counted,
                                task->completion);
    const uint64_t pause_ms = pause_after(step, ref, decision);
    story_of_exit(step, ref, decision, pause_ms);
    if (decision.is_retried) {
        task->retries++;
        task->retries_counted += decision.is_counted;
        task->task_attempt++;
        task->attempt = (struct attempt_id){0};
        task->is_killed = false;
        task->killed = KILL_NONE;
        task->kill_by_ms = 0;
        mem_free(task->completion);
        task->completion = NULL;
        task->attempt_created_ms = step->now_ms;
        task->attempt_launched_ms = task->attempt_completed_ms = 0;
        step_task_state(step, ref, LIFE_CREATION_PENDING);
        if (pause_ms == 0) {
            step_action(step, JOB_ACTION_QUEUE);
            return;
        }
        task->retry_at_ms = step->now_ms + (int64_t)pause_ms;
        job->waiting--;
        job->paused++;
        return;
    }
    step_task_state(step, ref, LIFE_COMPLETED);
    if (!task_is_wanted(role, ref.index)) {
        if (job_is_active(job))
            step_role_settle(step, ref.role);
    } else if (task->completion->is_success) {
        role->succeeded++;
    } else {
        role->failed++;
    }
}

static void hold(struct step *step, struct task_ref ref)
{
    assert(ref.role < step->policy->role_count);
    struct job_task *task = step_task(step, ref);
    task->is_held = true;
    step->job->held++;
}

/* After an exit or a refusal: what it means for the job. */
static void conclude(struct step *step)
{
    if (job_is_active(step->job))
        step_judge(step);
    if (job_is_completing(step->job))
        step_attempt_settle(step);
}

void step_task_exited(struct step *step, struct task_ref ref, const struct completion *completion)
{
    assert(completion);
    struct job_task *task = step_task(step, ref);
    if (!task_is_live(task))
        return;
    const bool is_platform_end = life_is_completing(task->state);
    if (is_platform_end) {
        step_task_state(step, ref, LIFE_DELETING);
    } else {
        completion_set(&task->completion, completion);
        if (task->attempt_launched_ms == 0) /* whatever the engine says: nothing of it ran */
            task->completion->exit_code = 0;
        if (completion->code == CODE_CONTAINER_DELETED)
            step_task_state(step, ref, LIFE_DELETING);
        else if (task->state != LIFE_CREATION_REQUESTED) {
            walk_to_deletion(step, ref);
            step_task_state(step, ref, LIFE_DELETING);
        }
    }
    step_task_state(step, ref, LIFE_ATTEMPT_COMPLETED);
    step_task_action(step, JOB_ACTION_RELEASE, ref);
    const struct attempt_id attempt = task->attempt;
    settle(step, ref);
    const bool is_kept = ref.index < step->job->roles[ref.role].count;
    task = is_kept ? step_task(step, ref) : NULL;
    if (step->policy->debug_hold_s && task && task->attempt.v == attempt.v &&
        task->state == LIFE_COMPLETED && !task->is_deletion_pending && !is_platform_end &&
        !completion->is_success) {
        hold(step, ref);
        step_task_action(step, JOB_ACTION_HOLD, ref);
    }
    if (task && task->completion && job_is_active(step->job) && ends_gang(step, task->completion))
        gang_end(step, ref, task->completion);
    else
        conclude(step);
}

void step_task_refused(struct step *step, struct task_ref ref, const struct completion *completion)
{
    assert(step->event->kind == JOB_EVENT_TASK_REFUSED);
    struct job_task *task = step_task(step, ref);
    if (task->state != LIFE_CREATION_PENDING)
        return;
    completion_set(&task->completion, completion);
    step_task_state(step, ref, LIFE_ATTEMPT_COMPLETED);
    settle(step, ref);
    conclude(step);
}

void step_task_kill(struct step *step, struct task_ref ref, const struct completion *completion,
                    enum kill_reason reason, uint32_t grace_ms, bool is_held)
{
    assert(completion && reason != KILL_NONE);
    struct job_task *task = step_task(step, ref);
    const bool has_place = task->is_uncreated;
    if (task->state == LIFE_CREATION_PENDING || has_place) { /* there is no container */
        completion_set(&task->completion, completion);
        step_task_state(step, ref, LIFE_ATTEMPT_COMPLETED);
        if (has_place)
            step_task_action(step, JOB_ACTION_RELEASE, ref);
        settle(step, ref);
        return;
    }
    if (!task_is_live(task) || life_is_completing(task->state))
        return;
    completion_set(&task->completion, completion);
    walk_to_deletion(step, ref);
    task->is_killed = true;
    task->killed = reason;
    task->kill_by_ms = step->now_ms + grace_ms;
    if (is_held)
        hold(step, ref);
    struct job_action *action = step_task_action(step, JOB_ACTION_KILL, ref);
    action->reason = kill_reason_name(reason);
    action->grace_ms = grace_ms;
    action->is_held = is_held;
}
