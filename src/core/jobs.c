#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/capacity.h"
#include "core/engines.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/schedule.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"

/* --- the table --- */

struct core_job *core_job_find(struct core *core, struct job_id id)
{
    uint32_t slot = id_map_get(&core->job_ids, id.v);
    return slot == MAP_NONE ? NULL : &core->jobs.items[slot];
}

/* The entry of "user~name", made if need be; NONE and ERR_CONFLICT when another job has it. */
static uint32_t name_take(struct core *core, struct job_id id, const struct plan *plan,
                          struct err *err)
{
    assert(id.v != 0);
    struct buf text = BUF_INIT;
    buf_format(&text, "%s~%s", plan->user, plan->name);
    uint32_t at = text_map_get(&core->job_names, buf_as_text(&text));
    if (at != MAP_NONE) {
        struct name *name = &core->names.items[at];
        bool is_other = name->job != id.v; /* it has not expired: names_expire */
        if (is_other)
            err_fail(err, ERR_CONFLICT, "name", "the job %s exists already", name->text);
        buf_release(&text);
        if (is_other)
            return NONE;
    } else {
        if (core->free_names.count) {
            at = core->free_names.items[--core->free_names.count];
        } else {
            at = (uint32_t)core->names.count;
            ARRAY_ADD(&core->names);
        }
        core->names.items[at].text = buf_steal(&text);
        text_map_set(&core->job_names, text_of(core->names.items[at].text), at);
    }
    timers_remove(&core->name_timers, at);
    core->names.items[at].job = id.v;
    core->names.items[at].expires_ms = INT64_MAX;
    return at;
}

static void name_free(struct core *core, uint32_t at)
{
    assert(at < core->names.count && core->names.items[at].text);
    struct name *name = &core->names.items[at];
    text_map_remove(&core->job_names, text_of(name->text));
    mem_free(name->text);
    *name = (struct name){0};
    *ARRAY_ADD(&core->free_names) = at;
}

void names_expire(struct core *core)
{
    struct timer timer;
    while (timers_take(&core->name_timers, core->now_ms, &timer)) {
        const uint32_t at = (uint32_t)timer.key;
        assert(core->names.items[at].text && core->names.items[at].expires_ms == timer.at_ms);
        name_free(core, at);
    }
}

size_t names_expiring(const struct core *core)
{
    return core->name_timers.count;
}

struct core_job *core_job_add(struct core *core, struct job_id id, struct plan *plan,
                              struct err *err)
{
    assert(id.v != 0 && !core_job_find(core, id));
    uint32_t name = name_take(core, id, plan, err);
    if (name == NONE)
        return NULL;
    uint32_t slot;
    if (core->free_jobs.count) {
        slot = core->free_jobs.items[--core->free_jobs.count];
    } else {
        slot = (uint32_t)core->jobs.count;
        ARRAY_ADD(&core->jobs);
    }
    struct core_job *job = &core->jobs.items[slot];
    *job = (struct core_job){
        .id = id,
        .plan = plan,
        .name = name,
        .full_name = core->names.items[name].text,
    };
    id_map_set(&core->job_ids, id.v, slot);
    core->jobs_live++;
    return job;
}

void core_job_forget(struct core *core, struct core_job *job, int64_t name_until_ms)
{
    uint32_t slot = core_job_slot(core, job);
    assert(!queue_has(core->queue, slot));
    core->policy_job = 0; /* a number that was refused is given again, to another plan */
    core_tasks_drop(core, job);
    struct name *name = &core->names.items[job->name];
    name->expires_ms = name_until_ms;
    timers_set(&core->name_timers, job->name, name_until_ms);
    timers_remove(&core->timers, timer_key(TIMER_JOB, job->id.v));
    timers_remove(&core->timers, timer_key(TIMER_PREEMPT, job->id.v));
    id_map_remove(&core->job_ids, job->id.v);
    job_tasks_drop(&job->life, &core->actions);
    job_release(&job->life);
    plan_free(job->plan);
    assert(!job->hold_count);
    holds_forget(core, job); /* victims of a search that held nothing yet */
    engine_try_end(job);
    *job = (struct core_job){0};
    *ARRAY_ADD(&core->free_jobs) = slot;
    core->jobs_live--;
}

void core_job_delete(struct core *core, struct core_job *job)
{
    assert(job_is_final(&job->life));
    job->is_deleted = true;
    if (job->is_finished)
        return;
    job->is_finished = true;
    *ARRAY_ADD(&core->finished_jobs) = core_job_slot(core, job);
}

void core_jobs_forget_finished(struct core *core)
{
    for (size_t i = 0; i < core->finished_jobs.count; i++) {
        struct core_job *job = core_job_at(core, core->finished_jobs.items[i]);
        assert(job->id.v && job->is_finished);
        if (!job_is_final(&job->life)) { /* started again in the same step */
            job->is_finished = false;
            continue;
        }
        if (job->is_deleted)
            record_job_deleted(core, job->id);
        core_job_forget(core, job, core->now_ms + (int64_t)core->config.finished_keep_s * 1000);
    }
    core->finished_jobs.count = 0;
}

static const char *name_text(const void *core, uint32_t at)
{
    return ((const struct core *)core)->names.items[at].text;
}

static void names_copy(struct core *to, const struct core *from)
{
    ARRAY_COPY(&to->names, &from->names);
    ARRAY_COPY(&to->free_names, &from->free_names);
    timers_copy(&to->name_timers, &from->name_timers);
    for (size_t i = 0; i < to->names.count; i++)
        if (to->names.items[i].text)
            to->names.items[i].text = mem_copy(from->names.items[i].text);
    text_map_copy(&to->job_names, &from->job_names, name_text, to);
}

void core_jobs_copy(struct core *to, const struct core *from)
{
    assert(!to->jobs.count && !from->finished_jobs.count);
    names_copy(to, from);
    ARRAY_COPY(&to->jobs, &from->jobs);
    ARRAY_COPY(&to->free_jobs, &from->free_jobs);
    ARRAY_COPY(&to->going_jobs, &from->going_jobs);
    id_map_copy(&to->job_ids, &from->job_ids);
    for (uint32_t i = 0; i < core_job_slots(to); i++) {
        const struct core_job *old = core_job_at(from, i);
        struct core_job *new = core_job_at(to, i);
        if (!old->id.v)
            continue;
        new->plan = plan_copy(old->plan);
        new->full_name = to->names.items[old->name].text;
        job_clone(&new->life, &old->life);
        holds_copy(to, new, old);
        engine_try_copy(&new->engine_try, &old->engine_try);
    }
}

void core_jobs_release(struct core *core)
{
    for (uint32_t i = 0; i < core_job_slots(core); i++) {
        struct core_job *job = core_job_at(core, i);
        if (!job->id.v)
            continue;
        job_release(&job->life);
        plan_free(job->plan);
        holds_forget(core, job);
        engine_try_end(job);
    }
    for (size_t i = 0; i < core->names.count; i++)
        mem_free(core->names.items[i].text);
    ARRAY_FREE(&core->jobs);
    ARRAY_FREE(&core->names);
    ARRAY_FREE(&core->free_jobs);
    ARRAY_FREE(&core->free_names);
    ARRAY_FREE(&core->finished_jobs);
    ARRAY_FREE(&core->going_jobs);
    id_map_release(&core->job_ids);
    text_map_release(&core->job_names);
    timers_release(&core->name_timers);
}

/* --- the rules of one job --- */

const struct job_policy *policy_of(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    const struct core_config *config = &core->config;
    if (core->policy_job == job->id.v)
        return &core->policy;
    core->policy_job = job->id.v;
    for (uint16_t i = 0; i < plan->role_count; i++) {
        const struct plan_role *role = &plan->roles[i];
        core->role_policies[i] = (struct job_role_policy){
            .name = role->name,
            .instances = role->instances,
            .min_failed = role->min_failed,
            .min_succeeded = role->min_succeeded,
            /* tasks that are tried again by themselves follow the job's idea of what a failure of
             * the platform costs: a preempted task must not use up its budget */
            .task_retry = {plan->is_gang ? 0 : role->task_retry_max,
                           plan->is_gang ? false : plan->is_retry_fancy},
        };
    }
    core->policy = (struct job_policy){
        .retry = {plan->retry_max, plan->is_retry_fancy},
        .is_gang = plan->is_gang,
        .kill_all_on_completed = plan->kill_all_on_completed,
        .backoff = {config->backoff_min_s, config->backoff_max_s},
        .pause = {config->retry_pause_first_s, config->retry_pause_max_s, config->retry_calm_s},
        .is_backoff_growing = config->is_backoff_growing,
        .gang_timeout_s = config->gang_timeout_s,
        .time_limit_s = plan->time_limit_s,
        .debug_hold_s = plan->is_debug ? config->debug_hold_s : 0,
        .kill_grace_ms = config->kill_grace_ms,
        .preemption_grace_ms = config->preemption_grace_ms,
        .roles = core->role_policies,
        .role_count = plan->role_count,
    };
    return &core->policy;
}

void core_job_step(struct core *core, struct core_job *job, const struct job_event *event)
{
    struct job_event timed = *event;
    timed.now_ms = core->now_ms;
    timed.random = core->random;
    timed.attempt_last = &core->last_attempt;
    timed.slice = core->ends_left ? core->ends_left : 1;
    assert(core->actions.count == 0);
    job_step(&job->life, policy_of(core, job), &timed, &core->actions);
    core_job_apply(core, job);
}

void core_jobs_go_on(struct core *core)
{
    size_t kept = 0;
    for (size_t i = 0; i < core->going_jobs.count; i++) {
        const uint32_t id = core->going_jobs.items[i];
        struct core_job *job = core_job_find(core, (struct job_id){id});
        if (!job)
            continue; /* it ended at once, in the pass of the step before */
        assert(job->is_going_on);
        if (core->ends_left)
            core_job_step(core, job, &(struct job_event){.kind = JOB_EVENT_GO_ON});
        job->is_going_on = job_goes_on(&job->life);
        if (job->is_going_on)
            core->going_jobs.items[kept++] = id;
    }
    core->going_jobs.count = kept;
}

struct core_job_size core_job_size(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    struct core_job_size size = {0};
    const struct job_policy *policy = policy_of(core, job);
    for (uint16_t i = 0; i < policy->role_count; i++) {
        const uint32_t instances = job_role_instances(&job->life, policy, i);
        size.tasks += instances;
        size.gpus += (uint64_t)instances * job->plan->roles[i].gpu;
    }
    return size;
}

bool core_ends_anything(struct core *core, enum event_kind kind, struct job_id id)
{
    assert(kind == EVENT_STOP || kind == EVENT_DELETE || kind == EVENT_RELEASE);
    const struct core_job *job = core_job_find(core, id);
    if (!job)
        return kind == EVENT_DELETE;
    if (kind == EVENT_DELETE)
        return job_can_delete(&job->life, NULL) == 0;
    if (kind == EVENT_RELEASE)
        return job->life.held > 0;
    return !job_is_final(&job->life) && job->life.execution != EXECUTION_STOP;
}

uint64_t core_scale_gpus(struct core *core, struct job_id id, uint16_t role, uint32_t instances)
{
    const struct core_job *job = core_job_find(core, id);
    if (!job || role >= job->plan->role_count)
        return 0;
    const uint32_t now = job_role_instances(&job->life, policy_of(core, job), role);
    return instances > now ? (uint64_t)(instances - now) * job->plan->roles[role].gpu : 0;
}

struct queue_item core_job_item(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    const struct core_job_size size = core_job_size(core, job);
    return (struct queue_item){
        .slot = core_job_slot(core, job),
        .id = job->id.v,
        .priority = job->plan->priority,
        .submitted_ms = job->life.submitted_ms,
        .gpus = size.gpus,
        .tasks = size.tasks,
        .limit_s = job->plan->time_limit_s,
    };
}

void core_job_queue(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    struct queue_item item = core_job_item(core, job);
    struct queue_need need = capacity_need(core, job);
    queue_push(core->queue, &item, &need, shape_of(core, job, &core->scratch));
    queued_note(core, item.slot);
    record_job_changed(core, job);
}

static void core_job_unqueue(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    queue_remove(core->queue, core_job_slot(core, job));
    reserve_drop(core, core_job_slot(core, job));
    holds_release(core, job);
    placing_forget(core, job);
    engine_try_end(job);
    job->preempt_rounds = 0;
    job->is_alone = false;
    job->reason_topic = 0;
    waiting_changed(core, job, WAITING_BY_UNQUEUE);
    record_job_changed(core, job);
}

static void core_job_wake(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    int64_t wake_ms = job_wake_ms(&job->life, policy_of(core, job));
    if (wake_ms == job->wake_ms)
        return;
    job->wake_ms = wake_ms;
    if (wake_ms)
        timers_set(&core->timers, timer_key(TIMER_JOB, job->id.v), wake_ms);
    else
        timers_remove(&core->timers, timer_key(TIMER_JOB, job->id.v));
}

/* --- actions --- */

static void gpus_write(const struct core_task *task, struct buf *out)
{
    assert(task->job != NONE);
    if (task->gpu_count)
        buf_string(out, task->gpu_count == 1 ? " with GPU " : " with GPUs ");
    for (size_t i = 0; i < task->gpu_count; i++)
        buf_format(out, "%s%u", i ? "," : "", task->gpus[i]);
}

/* A task has started. A preparation that took longer than others counts at once, shorter ones by
 * and by. */
static void preparation_note(struct core *core, const struct core_job *job,
                             const struct core_task *task)
{
    assert(task->group != NONE && job->id.v);
    enum { FADES = 16 };
    const int64_t took_ms = core->now_ms - core_group_at(core, task->group)->placed_ms;
    core->prepare_ms = took_ms > core->prepare_ms
                           ? took_ms
                           : core->prepare_ms - (core->prepare_ms - took_ms) / FADES;
    if (job->plan->time_limit_s)
        reserve_started(core);
}

static void task_changed(struct core *core, struct core_job *job, const struct job_action *action)
{
    struct core_task *task = core_task_get(core, core_job_slot(core, job), action->task);
    if (action->to == LIFE_CREATION_PENDING)
        core_task_attempt(core, task, (struct attempt_id){0});
    if (action->from == action->to) /* it is new in the table, or something else of it is */
        core->ends_left -= core->ends_left > 0;
    if (action->to == LIFE_CREATION_REQUESTED)
        core_task_attempt(core, task, action->attempt);
    if (action->to == LIFE_RUNNING && action->from != action->to) {
        assert(task->node != NONE && task->group != NONE);
        preparation_note(core, job, task);
        cleanup_buf struct buf gpus = BUF_INIT;
        gpus_write(task, &gpus);
        record_story(core, job, task, false, "Started", "%s started on node %s%s",
                     task_name(core, job, action->task), core_node_at(core, task->node)->facts.name,
                     buf_cstr(&gpus));
    }
    if (action->task_then)
        record_task_then(core, task, action->task_then);
    else
        record_task_changed(core, task);
}

static void task_created(struct core *core, struct core_job *job, const struct job_action *action)
{
    struct core_task *task = core_task_find(core, core_job_slot(core, job), action->task);
    assert(task && task->is_taken && task->attempt.v == action->attempt.v);
    core->ends_left -= core->ends_left > 0;
    command_add(core, COMMAND_CREATE, job, action->task, action->attempt);
}

static void task_touched(struct core *core, struct core_job *job, const struct job_action *action)
{
    assert(job->id.v);
    struct core_task *task = core_task_find(core, core_job_slot(core, job), action->task);
    if (task && job_task_find(&job->life, action->task))
        record_task_changed(core, task);
    record_job_changed(core, job); /* its row names what is held */
}

static void task_killed(struct core *core, struct core_job *job, const struct job_action *action)
{
    assert(job->id.v);
    struct command *command = command_add(core, COMMAND_KILL, job, action->task, action->attempt);
    core->ends_left -= core->ends_left > 0;
    command->grace_ms = action->grace_ms;
    command->is_held = action->is_held;
    command->reason = action->reason;
    task_touched(core, job, action);
}

/* The action comes after all of the step is done: a task that is held by now is not forgotten, and
 * one that was is forgotten in its turn. */
static void task_released(struct core *core, struct core_job *job, const struct job_action *action)
{
    struct core_task *task = core_task_find(core, core_job_slot(core, job), action->task);
    assert(task);
    const struct job_task *life = job_task_find(&job->life, action->task);
    core_task_release(core, task);
    if (!life || life->attempt.v != action->attempt.v || !(life->is_held || life->is_let_go))
        command_add(core, COMMAND_FORGET, job, action->task, action->attempt);
    else
        core_task_keep(core, task, true);
}

static void job_changed(struct core *core, struct core_job *job, const struct job_action *action)
{
    assert(job->id.v);
    record_job_changed(core, job);
    if (action->job_then)
        record_job_then(core, job, action->job_then);
    bool is_anew = action->from != action->to && action->to == LIFE_CREATION_PENDING;
    if (is_anew)
        core_tasks_drop(core, job);
    if (action->from != action->to)
        core_trace(core, "job %s: %s -> %s", job->full_name, life_state_name(action->from),
                   life_state_name(action->to));
}

static void action_apply(struct core *core, struct core_job *job, const struct job_action *action)
{
    uint32_t slot = core_job_slot(core, job);
    struct core_task *task;
    switch (action->kind) {
    case JOB_ACTION_JOB_CHANGED:
        job_changed(core, job, action);
        break;
    case JOB_ACTION_TASK_CHANGED:
        task_changed(core, job, action);
        break;
    case JOB_ACTION_TASK_REMOVED:
        task = core_task_find(core, slot, action->task);
        assert(task);
        core_task_drop(core, task);
        core->ends_left -= core->ends_left > 0;
        record_task_removed(core, job, action->task);
        record_job_changed(core, job); /* its row counts the tasks */
        break;
    case JOB_ACTION_QUEUE:
        core_job_queue(core, job);
        waiting_changed(core, job, WAITING_BY_QUEUE);
        break;
    case JOB_ACTION_UNQUEUE:
        core_job_unqueue(core, job);
        break;
    case JOB_ACTION_CREATE:
        task_created(core, job, action);
        break;
    case JOB_ACTION_KILL:
        task_killed(core, job, action);
        break;
    case JOB_ACTION_HOLD: /* its files stay as long as there is no FORGET */
        task_touched(core, job, action);
        break;
    case JOB_ACTION_FORGET:
        core->ends_left -= core->ends_left > 0;
        command_add(core, COMMAND_FORGET, job, action->task, action->attempt);
        task = core_task_find(core, slot, action->task);
        assert(task);
        core_task_keep(core, task, false);
        if (action->task_then)
            record_task_then(core, task, action->task_then);
        task_touched(core, job, action);
        break;
    case JOB_ACTION_RELEASE:
        task_released(core, job, action);
        break;
    case JOB_ACTION_ATTEMPT_COMPLETED: /* each task has given back its place */
    case JOB_ACTION_COMPLETED:
        break;
    case JOB_ACTION_STORY:
        task = action->is_of_task ? core_task_find(core, slot, action->task) : NULL;
        record_story(core, job, task, action->is_warning, action->reason, "%s", action->message);
        break;
    }
}

void core_job_apply(struct core *core, struct core_job *job)
{
    assert(core->output && job->id.v);
    for (size_t i = 0; i < core->actions.count; i++)
        action_apply(core, job, &core->actions.items[i]);
    core->actions.count = 0;
    holds_settle(core, job);
    core_job_wake(core, job);
    if (job_goes_on(&job->life) && !job->is_going_on) {
        job->is_going_on = true;
        *ARRAY_ADD(&core->going_jobs) = job->id.v;
    }
    if (job_is_final(&job->life) && job->life.held == 0 && !job_goes_on(&job->life) &&
        !job->is_finished) {
        job->is_finished = true;
        *ARRAY_ADD(&core->finished_jobs) = core_job_slot(core, job);
    }
}
