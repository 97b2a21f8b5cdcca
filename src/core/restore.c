#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/clusters.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/renew.h"
#include "core/request.h"
#include "core/restore.h"
#include "core/state.h"
#include "core/tasks.h"

int core_restore_counters(struct core *core, struct job_id last_job, struct attempt_id last_attempt)
{
    core->last_job = last_job.v;
    core->last_attempt = last_attempt.v;
    return 0;
}

int core_restore_node(struct core *core, const struct node_record *record, struct err *err)
{
    return node_restore(core, record, err);
}

int core_restore_cluster(struct core *core, const struct cluster_record *record, struct err *err)
{
    return cluster_restore(core, record, err);
}

/* Its state is read from the row by `read`. */
typedef int job_reader(struct job *job, const struct job_policy *policy, struct text saved,
                       struct err *err);

static struct core_job *job_of_row(struct core *core, const struct job_record *record,
                                   struct plan *plan, job_reader *read, struct err *err)
{
    if (!record->id.v || record->id.v > core->last_job || core_job_find(core, record->id)) {
        err_fail(err, ERR_CORRUPT, "jobs", "job %u is stored twice or after the last, %u",
                 record->id.v, core->last_job);
        plan_free(plan);
        return NULL;
    }
    struct core_job *job = core_job_add(core, record->id, plan, err);
    if (!job) {
        plan_free(plan);
        return NULL;
    }
    if (read(&job->life, policy_of(core, job), record->extra, err)) {
        job->life = (struct job){0};
        core_job_forget(core, job, core->now_ms);
        return NULL;
    }
    job->reason_topic = record->reason_topic;
    return job;
}

struct core_job *core_job_recall(struct core *core, const struct job_record *record,
                                 struct plan *plan, struct err *err)
{
    return job_of_row(core, record, plan, job_recall, err);
}

int core_restore_job(struct core *core, const struct job_record *record, struct plan *plan,
                     struct err *err)
{
    struct err why = {0};
    if (job_of_row(core, record, plan, job_restore, &why))
        return 0;
    return err_fail(err, ERR_CORRUPT, why.path, "job %u: %s", record->id.v, why.text);
}

/* --- tasks --- */

static const char *label_in_plan(const struct plan_role *role, const char *label)
{
    for (size_t i = 0; i < role->port_count; i++)
        if (strcmp(role->ports[i].label, label) == 0)
            return role->ports[i].label;
    return NULL;
}

static int task_restore_place(struct core *core, const struct core_job *job,
                              const struct task_record *record, struct err *err)
{
    assert(job->id.v);
    const struct plan_role *role = &job->plan->roles[record->task.role];
    uint32_t node = node_find(core, record->node);
    if (node == NONE)
        return err_fail(err, ERR_CORRUPT, "tasks", "job %u: no node %s", job->id.v, record->node);
    if (record->gpu_count > PLACEMENT_GPUS_MAX || record->port_count > role->port_count)
        return err_fail(err, ERR_CORRUPT, "tasks", "job %u: too many GPUs or ports", job->id.v);
    const struct placement_slot slot = {.node = {node},
                                        .gpu_count = (uint16_t)record->gpu_count,
                                        .cell_level = record->cell_level,
                                        .gpus = record->gpus};
    struct port_range *ports =
        ARENA_ARRAY(&core->scratch, struct port_range, record->port_count + 1);
    for (size_t i = 0; i < record->port_count; i++) {
        ports[i] = record->ports[i];
        ports[i].label = label_in_plan(role, record->ports[i].label);
        if (!ports[i].label || !ports[i].count || !ports[i].first ||
            ports[i].first + ports[i].count - 1u > UINT16_MAX)
            return err_fail(err, ERR_CORRUPT, "tasks", "job %u: port %s", job->id.v,
                            record->ports[i].label);
    }
    struct core_task *task = core_task_get(core, core_job_slot(core, job), record->task);
    core_task_set(core, task, &slot, ports, record->port_count);
    if (strcmp(record->address, core_node_at(core, node)->facts.address) != 0)
        core_task_address(task, record->address);
    return 0;
}

int core_restore_task(struct core *core, const struct task_record *record, struct err *err)
{
    struct core_job *job = core_job_find(core, record->job);
    if (!job || record->task.role >= job->plan->role_count)
        return err_fail(err, ERR_CORRUPT, "tasks", "a task of an unknown job or role, job %u",
                        record->job.v);
    if (record->is_removed || record->job_attempt != job->life.attempt || !job->life.has_tasks)
        return 0; /* of an attempt before: history */
    struct completion completion = record->completion;
    struct job_task task = {
        .state = record->state,
        .is_deletion_pending = record->is_deletion_pending,
        .is_held = record->is_held,
        .attempt = record->attempt,
        .task_attempt = record->task_attempt,
        .retries = record->retries,
        .retries_counted = record->accountable_retries,
        .created_ms = record->created_ms,
        .launched_ms = record->launched_ms,
        .completed_ms = record->completed_ms,
        .attempt_created_ms = record->attempt_created_ms,
        .attempt_launched_ms = record->attempt_launched_ms,
        .attempt_completed_ms = record->attempt_completed_ms,
        .completion = record->state >= LIFE_DELETION_PENDING ? &completion : NULL,
        .killed = record->killed,
        .kill_by_ms = record->kill_by_ms,
    };
    int code = job_restore_task(&job->life, record->task, &task, err);
    if (code)
        return code;
    if (record->attempt.v > core->last_attempt || core_task_of_attempt(core, record->attempt))
        return err_fail(err, ERR_CORRUPT, "tasks", "attempt %llu is stored twice or after the last",
                        (unsigned long long)record->attempt.v);
    struct core_task *own = core_task_get(core, core_job_slot(core, job), record->task);
    core_task_attempt(core, own, record->attempt);
    core_task_keep(core, own, job_task_is_kept(job_task_find(&job->life, record->task)));
    return record->attempt.v ? task_restore_place(core, job, record, err) : 0;
}

/* --- what runs, as groups --- */

static bool is_running(const struct job_task *task)
{
    return task->state >= LIFE_CREATION_REQUESTED && task->state <= LIFE_DELETING;
}

static bool ports_fit(const struct core *core, const struct core_task *task)
{
    assert(task->job != NONE);
    const struct ports *ports = &core_node_at(core, task->node)->ports;
    for (size_t i = 0; i < task->port_count; i++)
        if (!ports_are_free(ports, task->ports[i].first, task->ports[i].count))
            return false;
    return true;
}

/* Is any of its GPUs one of a task that is taken already? */
static bool gpus_fit(const struct core *core, const struct core_task *task)
{
    assert(task->job != NONE && !task->is_taken);
    uint32_t other = task->gpu_count ? core_node_at(core, task->node)->first_task : NONE;
    for (; other != NONE; other = core_task_at(core, other)->node_next)
        for (size_t i = 0; i < task->gpu_count; i++)
            if (core_task_has_gpu(core_task_at(core, other), task->gpus[i]))
                return false;
    return true;
}

/* The slots of one group, `tasks` in its order; those that run are taken. */
static int group_restore(struct core *core, struct core_job *job, const struct request *request,
                         uint16_t first_role, struct err *err)
{
    assert(job->id.v);
    uint32_t slot = core_job_slot(core, job), running = 0;
    uint64_t first_attempt = UINT64_MAX;
    for (size_t i = 0; i < request->task_count; i++) {
        const struct job_task *life = job_task_find(&job->life, request->tasks[i]);
        if (!life || !is_running(life))
            continue;
        running++;
        if (life->attempt.v < first_attempt)
            first_attempt = life->attempt.v;
    }
    if (!running)
        return 0;
    uint32_t at = core_group_add(core, job, request->placement.group, first_role,
                                 !job->plan->is_gang, (uint32_t)request->task_count);
    struct core_group *group = core_group_at(core, at);
    group->taken_count = running;
    group->sequence = first_attempt;
    for (uint32_t i = 0; i < request->task_count; i++) {
        const struct job_task *life = job_task_find(&job->life, request->tasks[i]);
        struct core_task *task = core_task_find(core, slot, request->tasks[i]);
        if (!life || !is_running(life))
            continue;
        if (!task || task->node == NONE || !ports_fit(core, task) || !gpus_fit(core, task))
            return err_fail(err, ERR_CORRUPT, "tasks",
                            "%s: two tasks have one port or GPU, or none has", job->full_name);
        group->tasks[i] = core_task_index(core, task);
        task->group = at;
        task->group_slot = i;
        core_task_take(core, task);
        group->is_preempted = group->is_preempted || life->is_killed;
    }
    return 0;
}

static int job_groups_restore(struct core *core, struct core_job *job, struct err *err)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    int code = 0;
    for (uint16_t i = 0; i < plan->role_count && !code; i++) {
        struct request request;
        if (plan->is_gang) {
            if (plan->roles[i].part != i)
                continue;
            request_of_part(core, job, i, &core->scratch, &request);
            code = group_restore(core, job, &request, i, err);
            continue;
        }
        uint32_t count = job_role_count(&job->life, policy_of(core, job), i);
        for (uint32_t j = 0; j < count && !code; j++) {
            struct task_ref ref = {i, (uint16_t)j};
            const struct job_task *task = job_task_find(&job->life, ref);
            if (!task)
                break;
            request_of_task(core, job, ref, task->task_attempt, &core->scratch, &request);
            code = group_restore(core, job, &request, i, err);
        }
    }
    return code;
}

int core_restore_finish(struct core *core, int64_t now_ms, struct output *output, struct err *err)
{
    assert(!core->output && core->tasks_live == 0);
    core->output = output;
    core->now_ms = now_ms;
    core->step++;
    for (uint32_t i = 0; i < core_job_slots(core); i++) {
        int code = job_groups_restore(core, core_job_at(core, i), err);
        if (code)
            return code;
    }
    placer_fill(core, core->placer);
    for (uint32_t i = 0; i < core_job_slots(core); i++) {
        struct core_job *job = core_job_at(core, i);
        struct err why = {0};
        if (job_restore_finish(&job->life, policy_of(core, job), now_ms, &core->actions, &why))
            return err_fail(err, ERR_CORRUPT, "jobs", "%s: %s", job->full_name, why.text);
        pause_watch(core, job);
        core_job_apply(core, job);
    }
    core->is_unblocked = true;
    core_step_end(core);
    return 0;
}
