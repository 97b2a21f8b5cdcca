#include "base/arena.h"
#include "job/step.h"
#include <assert.h>
#include <stdlib.h>

static uint64_t wanted_count(const struct job *job, const struct job_policy *policy)
{
    uint64_t count = 0;
    for (uint16_t r = 0; r < job->role_count; r++)
        count += job_role_instances(job, policy, r);
    return count;
}

void step_queue(struct step *step)
{
    struct job *job = step->job;
    assert(job->state == LIFE_CREATION_PENDING && !job->has_tasks);
    if (wanted_count(job, step->policy) > 0) {
        step_action(step, JOB_ACTION_QUEUE);
        return;
    }
    /* nothing to place: it stays in PREPARING until it is scaled up or stopped */
    step_tasks_make(step);
    step_job_state(step, LIFE_PREPARING);
}

/* ---- completion policies ---- */

struct trigger {
    bool is_found, is_success;
    struct task_ref task;
    int64_t at_ms;
};

struct final_task {
    int64_t at_ms;
    struct task_ref task;
};

static int final_task_order(const void *a_pointer, const void *b_pointer)
{
    const struct final_task *a = a_pointer, *b = b_pointer;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    if (a->task.role != b->task.role)
        return a->task.role < b->task.role ? -1 : 1;
    return (a->task.index > b->task.index) - (a->task.index < b->task.index);
}

/* Roles first … last: the `nth` (from 1) of their final tasks of one outcome by time; the earliest
 * such trigger wins. */
static void trigger_consider(struct step *step, uint16_t first, uint16_t last, bool is_success,
                             uint32_t nth, struct trigger *best)
{
    size_t count = 0, room = 0;
    for (uint16_t r = first; r <= last; r++)
        room += step->job->roles[r].count;
    struct final_task *tasks = ARENA_ARRAY(step->output->arena, struct final_task, room);
    for (uint16_t r = first; r <= last; r++) {
        const struct job_role *role = &step->job->roles[r];
        for (uint16_t i = 0; i < role->count; i++) {
            const struct job_task *task = &role->items[i];
            if (task->state == LIFE_COMPLETED && task_is_wanted(role, i) &&
                task->completion->is_success == is_success)
                tasks[count++] = (struct final_task){task->completed_ms, {r, i}};
        }
    }
    assert(count >= nth && nth > 0);
    qsort(tasks, count, sizeof *tasks, final_task_order);
    const struct final_task *task = &tasks[nth - 1];
    if (!best->is_found || task->at_ms < best->at_ms)
        *best = (struct trigger){true, is_success, task->task, task->at_ms};
}

static struct trigger trigger_find(struct step *step)
{
    assert(step->job->has_tasks);
    const struct job *job = step->job;
    struct trigger best = {0};
    uint32_t succeeded = 0;
    for (uint16_t r = 0; r < job->role_count; r++) {
        const struct job_role *role = &job->roles[r];
        succeeded += role->succeeded;
        if (role->min_failed > 0 && role->failed >= (uint32_t)role->min_failed)
            trigger_consider(step, r, r, false, (uint32_t)role->min_failed, &best);
        if (role->min_succeeded > 0 && role->succeeded >= (uint32_t)role->min_succeeded)
            trigger_consider(step, r, r, true, (uint32_t)role->min_succeeded, &best);
    }
    const uint32_t all = step->policy->kill_all_on_completed;
    if (all > 0 && succeeded >= all)
        trigger_consider(step, 0, (uint16_t)(job->role_count - 1), true, all, &best);
    return best;
}

/* All tasks of the spec final: the last of them, for the story. */
static bool all_completed(struct step *step, struct task_ref *last)
{
    assert(step->job->has_tasks);
    const struct job *job = step->job;
    uint64_t final = 0;
    for (uint16_t r = 0; r < job->role_count; r++)
        final += job->roles[r].succeeded + job->roles[r].failed;
    if (final == 0 || final < wanted_count(job, step->policy))
        return false;
    int64_t at_ms = INT64_MIN;
    for (uint16_t r = 0; r < job->role_count; r++)
        for (uint16_t i = 0; i < job->roles[r].count; i++) {
            const struct job_task *task = &job->roles[r].items[i];
            if (task->state == LIFE_COMPLETED && task_is_wanted(&job->roles[r], i) &&
                task->completed_ms >= at_ms) {
                at_ms = task->completed_ms;
                *last = (struct task_ref){r, i};
            }
        }
    return true;
}

void step_judge(struct step *step)
{
    struct job *job = step->job;
    assert(job_is_active(job) && job->has_tasks);
    struct attempt_end end = {
        .reason = KILL_ATTEMPT_COMPLETED,
    };
    const struct trigger trigger = trigger_find(step);
    struct task_ref last = {0};
    if (trigger.is_found) {
        const char *name = step_task_name(step, trigger.task);
        end.trigger = &trigger.task;
        end.is_inherited = true;
        end.completion = *step_task(step, trigger.task)->completion;
        if (trigger.is_success)
            step_story(step, NULL, false, "AttemptSucceeded",
                       "enough tasks have succeeded; the last one needed was %s", name);
        else
            step_story(step, NULL, true, "AttemptFailed",
                       "too many tasks have failed; the one that decided was %s", name);
    } else if (all_completed(step, &last)) {
        end.trigger = &last;
        end.completion = completion_of(CODE_SUCCEEDED, "all tasks have completed");
        step_story(step, NULL, false, "AttemptSucceeded", "all tasks have completed");
    } else {
        return;
    }
    step_attempt_end(step, &end);
}

/* ---- containers that are held for debugging ---- */

void job_task_unhold(struct job *job, struct job_task *task)
{
    assert(!task->is_held || !task->is_let_go);
    job->held -= task->is_held;
    job->let_go -= task->is_let_go;
    task->is_held = task->is_let_go = false;
}

/* One that was killed and has not ended yet is let go by its end. */
static void let_go_one(struct step *step, struct task_ref ref)
{
    struct job_task *task = step_task(step, ref);
    job_task_unhold(step->job, task);
    if (!task_is_live(task)) {
        struct job_action *forget = step_task_action(step, JOB_ACTION_FORGET, ref);
        if (job_is_completing(step->job)) /* its table may go in this step */
            forget->task_then = step_task_then(step, task);
        return;
    }
    struct job_action *action = step_task_action(step, JOB_ACTION_TASK_CHANGED, ref);
    action->from = action->to = task->state;
}

static void let_go_next(struct step *step)
{
    const uint32_t most = step->event->slice ? step->event->slice : UINT32_MAX;
    const uint32_t left = step->job->let_go > most ? step->job->let_go - most : 0;
    for (uint16_t r = 0; step->job->let_go > left; r++) {
        assert(r < step->job->role_count);
        struct job_role *role = &step->job->roles[r];
        for (; step->job->let_go > left && role->let_go < role->count; role->let_go++)
            if (role->items[role->let_go].is_let_go)
                let_go_one(step, (struct task_ref){r, (uint16_t)role->let_go});
    }
}

/* Which ones is decided here: what is held from now on stays. */
void step_forget_held(struct step *step)
{
    struct job *job = step->job;
    job->hold_until_ms = 0;
    if (job->held == 0)
        return;
    for (uint16_t r = 0; r < job->role_count; r++) {
        job->roles[r].let_go = 0;
        for (size_t i = 0; i < job->roles[r].count; i++) {
            struct job_task *task = &job->roles[r].items[i];
            task->is_let_go |= task->is_held;
            task->is_held = false;
        }
    }
    job->let_go += job->held;
    job->held = 0;
    step_job_changed(step); /* its row names what is held */
    let_go_next(step);
}

/* ---- the end of an attempt ---- */

static struct retry_decision job_retry(const struct step *step)
{
    return retry_decide(step->policy->retry, step->job->retries_user, step->job->completion);
}

/* What tasks get that end with their attempt: those that were preempted count as that. */
static int32_t ending_code(const struct job *job)
{
    switch (job->ending) {
    case KILL_PREEMPTED:
        return job->completion->code;
    case KILL_TIME_LIMIT:
        return CODE_DEADLINE_EXCEEDED;
    case KILL_NONE:
    case KILL_STOPPED:
    case KILL_ATTEMPT_COMPLETED:
    case KILL_SCALED_DOWN:
    case KILL_HUNG:
    case KILL_OTHER:
        break;
    }
    return CODE_ATTEMPT_COMPLETION;
}

static bool task_is_unfinished(const struct job_task *task)
{
    return task->state <= LIFE_RUNNING;
}

static bool task_is_uncreated(const struct job_task *task)
{
    return task->is_uncreated;
}

/* The next of the tasks that something is still to be done with. */
static bool next_find(struct job *job, bool (*is_meant)(const struct job_task *task))
{
    for (; job->next.role < job->role_count; job->next = (struct task_ref){job->next.role + 1, 0})
        for (; job->next.index < job->roles[job->next.role].count; job->next.index++)
            if (is_meant(&job->roles[job->next.role].items[job->next.index]))
                return true;
    return false;
}

/* Tell as many as one step may. */
static void ending_tell(struct step *step)
{
    struct job *job = step->job;
    assert(job->ending != KILL_NONE && job->completion && job->has_tasks);
    const struct completion completion =
        completion_of(ending_code(job), "%s", job->completion->diagnostics);
    const bool is_held = step->policy->debug_hold_s > 0 && !job->completion->is_success &&
                         job->execution != EXECUTION_STOP && !job_retry(step).is_retried;
    const uint32_t grace_ms = job->ending == KILL_PREEMPTED ? step->policy->preemption_grace_ms
                                                            : step->policy->kill_grace_ms;
    for (uint32_t told = 0; next_find(job, task_is_unfinished); told++) {
        if (step->event->slice && told == step->event->slice)
            return;
        step_task_kill(step, job->next, &completion, job->ending, grace_ms, is_held);
    }
    job->ending = KILL_NONE;
}

/* All rows of a large gang are stored: each of its tasks can know where its peers are. */
static void creation_go_on(struct step *step)
{
    struct job *job = step->job;
    assert(job->is_starting && job->waiting == 0);
    for (uint32_t created = 0; next_find(job, task_is_uncreated); created++) {
        if (step->event->slice && created == step->event->slice)
            return;
        step_task(step, job->next)->is_uncreated = false;
        step_task_action(step, JOB_ACTION_CREATE, job->next);
    }
    job->is_starting = false;
}

bool job_goes_on(const struct job *job)
{
    return job->ending != KILL_NONE || (job->is_starting && job->waiting == 0) || job->is_growing ||
           job->is_shrinking || job->let_go > 0;
}

void step_go_on(struct step *step)
{
    assert(step->event->kind == JOB_EVENT_GO_ON);
    struct job *job = step->job;
    if (!job_goes_on(job))
        return;
    if (job->is_growing) {
        step_tasks_go_on(step);
        return;
    }
    if (job->is_shrinking) {
        step_shrink_on(step);
        return;
    }
    if (job->is_starting && job->waiting == 0) {
        creation_go_on(step);
        return;
    }
    if (job->ending == KILL_NONE) {
        let_go_next(step);
    } else {
        ending_tell(step);
        if (job->ending == KILL_NONE)
            step_job_changed(step);
    }
    if (job_is_completing(job) && !job_goes_on(job))
        step_attempt_settle(step);
}

void step_attempt_end(struct step *step, const struct attempt_end *end)
{
    struct job *job = step->job;
    assert(job->state <= LIFE_RUNNING);
    completion_set(&job->completion, &end->completion);
    job->is_inherited = end->is_inherited;
    job->trigger_role = end->trigger ? end->trigger->role : -1;
    job->trigger_index = end->trigger ? end->trigger->index : -1;
    const bool was_waiting = !job->has_tasks || job->waiting > 0;
    if (job->is_starting) /* those without a place are in no table: nothing is left of them */
        job->waiting = 0;
    if (job->is_growing)
        job->waiting -= job_missing_count(job); /* nor of these */
    job->is_starting = job->is_growing = job->is_shrinking = false;
    if (job->has_tasks) {
        if (end->is_external) {
            step_job_state(step, LIFE_DELETING);
        } else {
            if (job->state == LIFE_CREATION_REQUESTED)
                step_job_state(step, LIFE_PREPARING);
            step_job_state(step, LIFE_DELETION_PENDING);
            step_job_state(step, LIFE_DELETION_REQUESTED);
        }
        job->ending = end->reason;
        job->next = (struct task_ref){0};
        ending_tell(step);
    }
    if (was_waiting)
        step_action(step, JOB_ACTION_UNQUEUE);
    step_attempt_settle(step);
}

void step_start_undo(struct step *step)
{
    const struct job_event event = {.now_ms = step->now_ms};
    const struct attempt_end end = {
        .completion =
            completion_of(CODE_REFUSED, "the server ended before all of its tasks had a place"),
        .reason = KILL_PREEMPTED,
    };
    assert(!step->event && step->policy->is_gang);
    step->event = &event;
    step_story(step, NULL, true, "StartInterrupted", "%s", end.completion.diagnostics);
    step_attempt_end(step, &end);
    step->event = NULL;
}

/* How long the job's next attempt has to wait, other than by the back-off; counts the end. */
static uint64_t pause_after(struct step *step, struct retry_decision decision)
{
    struct job *job = step->job;
    const struct retry_pause pause = step->policy->pause;
    if (!retry_is_quick(pause, job->attempt_launched_ms, step->now_ms))
        job->quick_ends = 0;
    const uint32_t before = job->quick_ends++;
    if (!retry_is_paused(step->policy->retry, decision, job->completion))
        return 0;
    return retry_pause_ms(pause, before, step->event->random);
}

static uint64_t backoff_ms(const struct step *step)
{
    const struct retry_window window = retry_window(
        step->policy->backoff, step->job->retries_resource, step->policy->is_backoff_growing);
    return (uint64_t)retry_delay_s(window, step->event->random) * 1000;
}

static void step_complete(struct step *step)
{
    assert(step->job->completion);
    struct job *job = step->job;
    job->retry_at_ms = 0;
    step_job_state(step, LIFE_COMPLETED);
    step_action(step, JOB_ACTION_COMPLETED);
    const struct completion *completion = job->completion;
    if (completion->is_success || job->execution == EXECUTION_STOP)
        step_forget_held(step);
    if (job->held > 0) {
        job->hold_until_ms = step->now_ms + (int64_t)step->policy->debug_hold_s * 1000;
        step_story(step, NULL, false, "Held",
                   "the container%s of %u task%s kept for debugging, until released or for %llu s",
                   job->held == 1 ? "" : "s", job->held, job->held == 1 ? " is" : "s are",
                   (unsigned long long)step->policy->debug_hold_s);
    }
    step_story(step, NULL, !completion->is_success,
               completion->is_success                    ? "Succeeded"
               : completion->code == CODE_STOP_REQUESTED ? "Stopped"
                                                         : "Failed",
               "ended with %d (%s)%s%s", completion->code, completion->phrase,
               completion->diagnostics[0] ? ": " : "", completion->diagnostics);
}

void step_attempt_settle(struct step *step)
{
    struct job *job = step->job;
    if (job->live > 0)
        return;
    if (job->ending != KILL_NONE && !next_find(job, task_is_unfinished))
        job->ending = KILL_NONE; /* those who had not been told have ended by themselves */
    const struct retry_decision decision = job_retry(step);
    if (job->ending == KILL_NONE && decision.is_retried)
        step_forget_held(step); /* before its table goes */
    if (job_goes_on(job))
        return;
    if (job->has_tasks && job->state != LIFE_DELETING)
        step_job_state(step, LIFE_DELETING);
    step_job_state(step, LIFE_ATTEMPT_COMPLETED);
    step_action(step, JOB_ACTION_ATTEMPT_COMPLETED);
    if (!decision.is_retried) {
        step_complete(step);
        return;
    }
    const uint64_t pause_ms = pause_after(step, decision);
    /* its next attempt ends at once: at the time limit, too, when that passed during the end */
    const bool is_over =
        job->execution == EXECUTION_STOP || job_deadline_ms(job, step->policy) <= step->now_ms;
    if (is_over || (!decision.is_backoff && pause_ms == 0)) {
        step_retry_begin(step);
        return;
    }
    const uint64_t delay_ms = decision.is_backoff ? backoff_ms(step) : pause_ms;
    job->retry_at_ms = step->now_ms + (int64_t)delay_ms;
    step_job_changed(step);
    step_story(step, NULL, false, "BackingOff", "attempt %u ended with %d (%s); %s%s", job->attempt,
               job->completion->code, job->completion->phrase, retry_words(step, delay_ms),
               decision.is_counted ? "" : ", not counted");
}

void step_retry_begin(struct step *step)
{
    struct job *job = step->job;
    const struct retry_decision decision = job_retry(step);
    assert(job->state == LIFE_ATTEMPT_COMPLETED && decision.is_retried);
    if (decision.is_counted)
        job->retries_user++;
    else if (decision.is_backoff)
        job->retries_resource++;
    else
        job->retries_platform++;
    step_story(step, NULL, false, "Retrying", "attempt %u ended with %d (%s); retried%s",
               job->attempt, job->completion->code, job->completion->phrase,
               decision.is_counted ? "" : ", not counted");
    job_tasks_drop(job, step->output);
    free(job->completion);
    job->completion = NULL;
    job->attempt++;
    job->retry_at_ms = 0;
    job->is_inherited = false;
    job->trigger_role = job->trigger_index = -1;
    job->attempt_created_ms = step->now_ms;
    job->attempt_launched_ms = job->attempt_completed_ms = 0;
    step_job_state(step, LIFE_CREATION_PENDING);
    if (job->execution == EXECUTION_STOP) {
        const struct attempt_end end = {
            .completion = completion_of(CODE_STOP_REQUESTED, "stopped before it was retried"),
        };
        step_attempt_end(step, &end);
    } else if (job_deadline_ms(job, step->policy) <= step->now_ms) {
        step_deadline(step);
    } else {
        step_queue(step);
    }
}

int64_t job_deadline_ms(const struct job *job, const struct job_policy *policy)
{
    if (job->launched_ms == 0 || policy->time_limit_s == 0 ||
        policy->time_limit_s > (uint64_t)(INT64_MAX - job->launched_ms) / 1000)
        return INT64_MAX;
    return job->launched_ms + (int64_t)policy->time_limit_s * 1000;
}

void step_deadline(struct step *step)
{
    const unsigned long long limit_s = step->policy->time_limit_s;
    step_story(step, NULL, true, "TimeLimit", "the job's time limit of %llu s has passed", limit_s);
    const struct attempt_end end = {
        .completion =
            completion_of(CODE_DEADLINE_EXCEEDED, "the time limit of %llu s has passed", limit_s),
        .reason = KILL_TIME_LIMIT,
    };
    step_attempt_end(step, &end);
}
