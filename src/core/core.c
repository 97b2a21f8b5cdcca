#include "core/core.h"
#include "core/waiting.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/utc.h"
#include "core/clusters.h"
#include "core/config.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/renew.h"
#include "core/reserve.h"
#include "core/restore.h"
#include "core/schedule.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/tasks.h"
#include "spec/spec.h"

enum {
    SLICE_WORK = 1000, /* a quarter of a millisecond */
    WORK_OF_END = 4,   /* of a task: it is told, its row, its command; or it is created */
    WORK_OF_DROP = 2,  /* of a task, when its job's attempt is over */
};

/* --- life --- */

struct core *core_new(const struct core_config *config, struct err *err)
{
    struct core *core = mem_zero(1, sizeof *core);
    if (core_config_copy(&core->config, config, err)) {
        mem_free(core);
        return NULL;
    }
    core->placer = placer_new(core->config.policy, core->config.placement_document, err);
    if (!core->placer) {
        core_config_release(&core->config);
        mem_free(core);
        return NULL;
    }
    core->queue = queue_new(queue_order_named(core->config.order));
    core->wake_ms = INT64_MAX;
    core->slice = SLICE_WORK;
    arena_init(&core->scratch);
    core->actions.arena = &core->scratch;
    return core;
}

void core_slice_set(struct core *core, uint32_t work)
{
    assert(work > 0 && !core->output);
    core->slice = work;
}

void core_free(struct core *core)
{
    if (!core)
        return;
    reserve_release(core);
    renewal_release(core);
    core->placer->ops->free(core->placer);
    queue_free(core->queue);
    core_jobs_release(core);
    preempt_release(core);
    core_tasks_release(core);
    core_nodes_release(core);
    core_clusters_release(core);
    timers_release(&core->timers);
    records_release(core);
    schedule_release(core);
    job_output_release(&core->actions);
    arena_release(&core->scratch);
    core_config_release(&core->config);
    mem_free(core);
}

/* --- what people ask for --- */

static int plan_check(const struct core *core, const struct plan *plan, struct err *err)
{
    if (!*plan->name || strlen(plan->name) > SPEC_NAME_MAX || !*plan->user)
        return err_fail(err, ERR_INVALID, "name", "a job needs a user and a name of 1…%d bytes",
                        SPEC_NAME_MAX);
    if (plan->role_count < 1 || plan->role_count > JOB_ROLES_MAX)
        return err_fail(err, ERR_INVALID, "taskRoles", "must be 1…%d roles, got %u", JOB_ROLES_MAX,
                        plan->role_count);
    if (plan->priority < PLACEMENT_PRIORITY_OPPO || plan->priority > PLACEMENT_PRIORITY_MAX)
        return err_fail(err, ERR_INVALID, "priority", "must be %d…%d, got %d",
                        PLACEMENT_PRIORITY_OPPO, PLACEMENT_PRIORITY_MAX, plan->priority);
    for (uint16_t i = 0; i < plan->role_count; i++)
        if (plan->roles[i].instances > JOB_INSTANCES_MAX)
            return err_fail(err, ERR_TOO_BIG, "taskRoles", "%s has more than %d instances",
                            plan->roles[i].name, JOB_INSTANCES_MAX);
    if (plan_task_count(plan) > SPEC_TASKS_MAX)
        return err_fail(err, ERR_TOO_BIG, "taskRoles", "more than %d tasks", SPEC_TASKS_MAX);
    if (core->jobs_live >= CORE_JOBS_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%d jobs wait or run already", CORE_JOBS_MAX);
    return 0;
}

static void submit_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_SUBMIT);
    struct err err = {0};
    struct plan *plan = event->submit.plan;
    if (plan_check(core, plan, &err)) {
        core_answer(core, event, (struct job_id){0}, &err);
        plan_free(plan);
        return;
    }
    struct job_id id = {core->last_job + 1};
    struct core_job *job = core_job_add(core, id, plan, &err);
    if (!job) {
        core_answer(core, event, (struct job_id){0}, &err);
        plan_free(plan);
        return;
    }
    job_init(&job->life, policy_of(core, job), core->now_ms, &core->actions);
    if (core_check_request(core, job, &err)) {
        core->actions.count = 0;
        core_answer(core, event, (struct job_id){0}, &err);
        core_job_forget(core, job, core->now_ms);
        return;
    }
    core->last_job = id.v;
    job->submission = &event->submit;
    record_job_changed(core, job);
    core_trace(core, "job %s: submitted as %u to %s, priority %d", job->full_name, id.v,
               plan->virtual_cluster, plan->priority);
    core_job_apply(core, job);
    core_answer(core, event, id, NULL);
}

/* The job, or NULL after an answer. */
static struct core_job *asked_for(struct core *core, const struct event *event, struct job_id id)
{
    struct core_job *job = core_job_find(core, id);
    if (job)
        return job;
    struct err err = {0};
    if (id.v == 0 || id.v > core->last_job)
        err_fail(&err, ERR_NOT_FOUND, "", "there is no job %u", id.v);
    else
        err_fail(&err, ERR_CONFLICT, "", "the job has already ended");
    core_answer(core, event, id, &err);
    return NULL;
}

static void job_event_asked(struct core *core, const struct event *event, struct job_id id,
                            int code, const struct err *err, const struct job_event *what)
{
    core_answer(core, event, id, code ? err : NULL);
    if (!code)
        core_job_step(core, core_job_find(core, id), what);
}

static void stop_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_STOP);
    struct err err = {0};
    struct core_job *job = asked_for(core, event, event->job);
    if (job)
        job_event_asked(core, event, job->id, job_can_stop(&job->life, &err), &err,
                        &(struct job_event){.kind = JOB_EVENT_STOP});
}

/* A stopped job that was forgotten comes back from its row. */
static void recall_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_START);
    struct err err = {0};
    struct core_job *job = core_job_recall(core, event->start.record, event->start.plan, &err);
    if (job && job_can_start(&job->life, &err)) {
        core_job_forget(core, job, core->now_ms);
        job = NULL;
    }
    core_answer(core, event, event->start.job, job ? NULL : &err);
    if (!job)
        return;
    pause_watch(core, job);
    core_job_step(core, job, &(struct job_event){.kind = JOB_EVENT_START});
}

static void start_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_START);
    struct err err = {0};
    struct core_job *job = core_job_find(core, event->start.job);
    if (!job && event->start.record) {
        recall_event(core, event);
        return;
    }
    plan_free(event->start.plan);
    if (!job) {
        bool was_there = event->start.job.v && event->start.job.v <= core->last_job;
        err_fail(&err, ERR_NOT_FOUND, "",
                 was_there ? "the job is no longer in memory" : "there is no such job");
        core_answer(core, event, event->start.job, &err);
        return;
    }
    job_event_asked(core, event, job->id, job_can_start(&job->life, &err), &err,
                    &(struct job_event){.kind = JOB_EVENT_START});
}

static void delete_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_DELETE);
    struct err err = {0};
    struct core_job *job = core_job_find(core, event->job);
    int code = 0;
    if (!job && (event->job.v == 0 || event->job.v > core->last_job))
        code = err_fail(&err, ERR_NOT_FOUND, "", "there is no job %u", event->job.v);
    else if (job)
        code = job_can_delete(&job->life, &err);
    core_answer(core, event, event->job, code ? &err : NULL);
    if (code)
        return;
    if (job) /* its containers are held for debugging */
        core_job_delete(core, job);
    else
        record_job_deleted(core, event->job);
}

static void scale_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_SCALE);
    struct err err = {0};
    struct core_job *job = asked_for(core, event, event->scale.job);
    if (!job)
        return;
    int code = job_can_scale(&job->life, policy_of(core, job), event->scale.role,
                             event->scale.instances, &err);
    struct job_event what = {.kind = JOB_EVENT_SCALE};
    what.scale.role = event->scale.role;
    what.scale.instances = event->scale.instances;
    job_event_asked(core, event, job->id, code, &err, &what);
}

static void release_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_RELEASE);
    struct core_job *job = asked_for(core, event, event->job);
    if (job)
        job_event_asked(core, event, job->id, 0, NULL,
                        &(struct job_event){.kind = JOB_EVENT_RELEASE});
}

/* --- what the engine says --- */

/* Told to the job whose failure brought the node over the threshold: people look for the reason
 * there first. */
static void blame_told(struct core *core, struct core_job *job, const struct core_task *task)
{
    assert(job->id.v);
    assert(task->job != NONE);
    const struct core_node *node = core_node_at(core, task->node);
    const bool is_cordoned = node->blame.level == BLAME_CORDON;
    record_story(core, job, task, true, is_cordoned ? "NodeCordoned" : "NodeAvoided",
                 "node %s is taken %s; %s", node->facts.name,
                 is_cordoned ? "no more until it is pardoned or they are forgotten" : "last now",
                 node->cordon);
}

static void task_blame(struct core *core, struct core_job *job, const struct core_task *task,
                       const struct event *event)
{
    assert(job->id.v);
    assert(task->job != NONE);
    const struct completion *completion = &event->task.completion;
    if (event->task.blame <= 0)
        return;
    const char *what =
        arena_format(&core->scratch, "%d %s of %s %s", completion->code, completion->phrase,
                     job->full_name, task_name(core, job, task->ref));
    if (node_blame(core, task->node, event->task.blame, what))
        blame_told(core, job, task);
}

static void task_event(struct core *core, const struct event *event, enum job_event_kind kind)
{
    assert(kind == JOB_EVENT_TASK_PREPARING || kind == JOB_EVENT_TASK_RUNNING ||
           kind == JOB_EVENT_TASK_EXITED);
    struct core_task *task = core_task_of_attempt(core, event->task.attempt);
    if (!task)
        return; /* of an attempt that has ended: told twice, or after its node was lost */
    struct core_job *job = core_job_at(core, task->job);
    if (kind == JOB_EVENT_TASK_EXITED && task->is_taken)
        task_blame(core, job, task, event);
    core_job_step(core, job,
                  &(struct job_event){.kind = kind,
                                      .task = task->ref,
                                      .attempt = event->task.attempt,
                                      .completion = &event->task.completion});
}

static void refusal_told(struct core *core, struct core_job *job, const struct core_task *task)
{
    const struct core_node *node = core_node_at(core, task->node);
    char until[UTC_SIZE];
    record_story(core, job, task, false, "NodeAvoided",
                 "node %s is taken last until %s: it refused %u task%s in a row", node->facts.name,
                 utc_text(node->avoid_ms, until), node->refusals, node->refusals == 1 ? "" : "s");
}

/* Its node, or the cluster behind it, does not take it: it has no container and never had one. */
static void refused_event(struct core *core, const struct event *event)
{
    const struct core_task *task = core_task_of_attempt(core, event->task.attempt);
    if (!task || !task->is_taken)
        return;
    struct core_job *job = core_job_at(core, task->job);
    const char *reason = event->task.reason ? event->task.reason : "";
    const char *message = event->task.message ? event->task.message : "";
    struct completion completion = completion_of(
        CODE_REFUSED, "node %s refused it%s%s%s%s", core_node_at(core, task->node)->facts.name,
        *reason ? ": " : "", reason, *message ? ": " : "", message);
    node_refused(core, task->node);
    refusal_told(core, job, task);
    core_job_step(core, job,
                  &(struct job_event){.kind = JOB_EVENT_TASK_EXITED,
                                      .task = task->ref,
                                      .attempt = event->task.attempt,
                                      .completion = &completion});
}

/* Its ports, its GPUs and what its peers were told are of the place that was chosen: it cannot run
 * anywhere else. */
static void task_moved(struct core *core, struct core_job *job, const struct core_task *task,
                       const struct event *event)
{
    struct completion completion =
        completion_of(CODE_REFUSED, "it was started on node %s instead of %s: it is ended there",
                      event->task.node, core_node_at(core, task->node)->facts.name);
    node_refused(core, task->node);
    refusal_told(core, job, task);
    core_job_step(core, job,
                  &(struct job_event){
                      .kind = job->plan->is_gang ? JOB_EVENT_PREEMPT : JOB_EVENT_TASK_KILL,
                      .task = task->ref,
                      .completion = &completion,
                  });
}

static void started_event(struct core *core, const struct event *event)
{
    struct core_task *task = core_task_of_attempt(core, event->task.attempt);
    if (!task || !task->is_taken)
        return;
    const char *name = core_node_at(core, task->node)->facts.name;
    if (event->task.node && *event->task.node && strcmp(event->task.node, name) != 0) {
        task_moved(core, core_job_at(core, task->job), task, event);
        return;
    }
    node_accepted(core, task->node);
    if (event->task.address && *event->task.address) {
        core_task_address(task, event->task.address);
        record_task_changed(core, task); /* told again, too: its peers may not have heard it */
    }
    task_event(core, event, JOB_EVENT_TASK_RUNNING);
}

static void note_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_TASK_NOTE);
    struct core_task *task = core_task_of_attempt(core, event->task.attempt);
    if (task)
        record_story(core, core_job_at(core, task->job), task, false,
                     event->task.reason ? event->task.reason : "Note", "%s",
                     event->task.message ? event->task.message : "");
}

static void idle_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_TASK_IDLE);
    struct core_task *task = core_task_of_attempt(core, event->task.attempt);
    if (!task || !task->is_taken)
        return;
    struct core_job *job = core_job_at(core, task->job);
    struct task_ref ref = task->ref;
    const char *message = event->task.message ? event->task.message : "no progress";
    record_story(core, job, task, true, event->task.reason ? event->task.reason : "Idle", "%s: %s",
                 task_name(core, job, ref), message);
    if (!job->plan->is_hang_retry)
        return;
    struct completion completion = completion_of(CODE_HUNG, "%s", message);
    core_job_step(
        core, job,
        &(struct job_event){.kind = JOB_EVENT_TASK_KILL, .task = ref, .completion = &completion});
}

/* --- the step --- */

static void job_wake(struct core *core, struct core_job *job, int64_t at_ms)
{
    assert(job && job->wake_ms == at_ms);
    job->wake_ms = 0;
    core_job_step(core, job, &(struct job_event){.kind = JOB_EVENT_TIMER});
}

/* A job may preempt again; gone or started, it has no pause that could end. */
static void pause_end(struct core *core, struct core_job *job)
{
    core->is_unblocked = core->pass.is_due = true;
    if (job)
        waiting_changed(core, job, WAITING_BY_TIME);
}

static void timers_fire(struct core *core)
{
    struct timer timer;
    while (timers_take(&core->timers, core->now_ms, &timer)) {
        const uint32_t of = (uint32_t)timer.key;
        switch ((enum timer_kind)(timer.key >> 32)) {
        case TIMER_NODE:
            node_blame_refresh(core, of);
            break;
        case TIMER_AGAIN:
        case TIMER_STARVES:
            core->is_unblocked = core->pass.is_due = true;
            break;
        case TIMER_PREEMPT:
            pause_end(core, core_job_find(core, (struct job_id){of}));
            break;
        case TIMER_QUEUE:
        case TIMER_GO_ON:
            break;
        case TIMER_JOB:
            job_wake(core, core_job_find(core, (struct job_id){of}), timer.at_ms);
            break;
        }
    }
    names_expire(core);
}

static void event_apply(struct core *core, const struct event *event)
{
    assert(core->output);
    switch (event->kind) {
    case EVENT_SUBMIT:
        submit_event(core, event);
        break;
    case EVENT_STOP:
        stop_event(core, event);
        break;
    case EVENT_START:
        start_event(core, event);
        break;
    case EVENT_DELETE:
        delete_event(core, event);
        break;
    case EVENT_SCALE:
        scale_event(core, event);
        break;
    case EVENT_RELEASE:
        release_event(core, event);
        break;
    case EVENT_NODE:
        node_event(core, event);
        break;
    case EVENT_NODE_LOST:
        node_lost_event(core, event);
        break;
    case EVENT_NODE_PARDON:
        node_pardon_event(core, event);
        break;
    case EVENT_NODE_CORDON:
    case EVENT_NODE_DRAIN:
        node_cordon_event(core, event);
        break;
    case EVENT_NODE_UNCORDON:
        node_uncordon_event(core, event);
        break;
    case EVENT_CLUSTER_CLOSE:
        cluster_close_event(core, event);
        break;
    case EVENT_CLUSTER_OPEN:
        cluster_open_event(core, event);
        break;
    case EVENT_TASK_PREPARING:
        task_event(core, event, JOB_EVENT_TASK_PREPARING);
        break;
    case EVENT_TASK_STARTED:
        started_event(core, event);
        break;
    case EVENT_TASK_EXITED:
        task_event(core, event, JOB_EVENT_TASK_EXITED);
        break;
    case EVENT_TASK_NOTE:
        note_event(core, event);
        break;
    case EVENT_TASK_IDLE:
        idle_event(core, event);
        break;
    case EVENT_TIMER:
        break; /* what is due is done with every event */
    case EVENT_CONFIG:
        config_event(core, event);
        break;
    case EVENT_TASK_REFUSED:
        refused_event(core, event);
        break;
    case EVENT_RESTORE: /* whoever makes a core of rows has done it */
        break;
    }
}

static void wake_ask(struct core *core)
{
    assert(core->output);
    int64_t next_ms = timers_next_ms(&core->timers);
    /* when the last timer was removed its wake-up still comes, and finds nothing to do */
    if (next_ms == INT64_MAX)
        return;
    if (next_ms < core->now_ms) /* it passed while the server was down: at once */
        next_ms = core->now_ms;
    if (next_ms == core->wake_ms)
        return;
    core->wake_ms = next_ms;
    struct command *command = ARRAY_ADD(&core->output->commands);
    command->kind = COMMAND_WAKE;
    command->node = command->reason = "";
    command->at_ms = next_ms;
}

void core_step_end(struct core *core)
{
    assert(core->output && core->actions.count == 0);
    core_jobs_go_on(core);
    core_schedule(core);
    queued_tell(core);
    records_flush(core);
    core_jobs_forget_finished(core);
    /* the rest with the next steps, whenever they come: but for containers nobody waits for it */
    if (core_old_tables_drop(core))
        job_output_free_dropped(&core->actions, &core->drops_left);
    if (core->going_jobs.count || core->old_kept || core_order_changes(core))
        timers_set(&core->timers, timer_key(TIMER_GO_ON, 0), core->now_ms);
    wake_ask(core);
    arena_clear(&core->scratch);
    core->output = NULL;
    mem_settle(); /* of one step it is little; nobody has to sort what thousands have freed */
}

static void placer_tidy(struct core *core)
{
    past_placer_drop(core);
    if (placer_is_renewing(core)) {
        renewal_go_on(core);
        return;
    }
    placer_renew(core); /* what was placed since may make it outdated, at any piece */
    if (placer_is_renewing(core) || renewal_waits(core))
        return;
    if (placer_is_copied(core))
        return;
    const struct placer_ops *ops = core->placer->ops;
    const bool was_making = ops->is_making && ops->is_making(core->placer);
    if (ops->tidy)
        ops->tidy(core->placer, core->slice);
    if (was_making) /* there are cells that nobody asked for */
        core->is_unblocked |= !ops->is_making(core->placer);
}

void core_step(struct core *core, const struct event *event, struct output *output)
{
    assert(!core->output && core->actions.count == 0);
    core->output = output;
    core->pass.work = 0;
    core->ends_left = 1 + core->slice / WORK_OF_END;
    core->drops_left = 1 + core->slice / WORK_OF_DROP;
    core->step++;
    core->events++;
    if (event->now_ms > core->now_ms)
        core->now_ms = event->now_ms;
    core->random = event->random;
    if (core->wake_ms <= core->now_ms)
        core->wake_ms = INT64_MAX; /* it has come: ask again for the next */
    placer_tidy(core);
    config_go_on(core);
    timers_fire(core);
    event_apply(core, event);
    core_step_end(core);
}

void core_count(const struct core *core, struct core_counts *counts)
{
    *counts = (struct core_counts){
        .events = core->events,
        .jobs_live = core->jobs_live,
        .jobs_queued = queue_count(core->queue),
        .tasks_live = core->tasks_live,
        .nodes = core_node_count(core),
        .gpus_total = core->gpus_total,
        .gpus_used = core->gpus_used,
        .timers = core->timers.count + names_expiring(core),
    };
}
