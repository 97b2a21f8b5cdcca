/* start.c — one try to start what a job waits for: docs/rfc/0011-waiting-jobs.md, "try". */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/gang_ports.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/start.h"
#include "core/state.h"
#include "core/tasks.h"

enum {
    TRIES_MAX = 4,  /* other nodes, when ports are in conflict */
    ROUNDS_MAX = 4, /* others are ended for one job, before it has to pause */
    /* in units of core->pass.work */
    WORK_OF_SEARCH = 16,
    WORK_OF_COMMIT = 16, /* and of its undoing */
    WORK_OF_START = 32,  /* of a task: its rows, its command */
};

/* Groups that start together: the parts of a gang, or one task. */
struct gang_part {
    struct request request; /* made when it is the part's turn: most searches fail before */
    struct placement_result result;
    uint16_t first_role;
    bool is_made, is_held, is_bound, is_preempting, is_held_back;
};

struct parts {
    struct gang_part *items;
    size_t count, task_count;
    bool is_task;
    struct node_id avoid[TRIES_MAX]; /* where ports were in conflict */
    size_t avoid_count;
};

static const struct start_outcome outcome_bind = {.kind = PLACEMENT_BIND, .reason = ""};

static struct start_outcome wait_for(struct core *core, const char *reason)
{
    return (struct start_outcome){.kind = PLACEMENT_WAIT,
                                  .reason = arena_copy(&core->scratch, text_of(reason)),
                                  .topic = text_words_hash(text_of(reason), 0)};
}

/* The reason is of this job alone: others of its shape may start. */
static struct start_outcome wait_alone(struct core *core, const char *reason)
{
    struct start_outcome outcome = wait_for(core, reason);
    outcome.is_of_job = true;
    return outcome;
}

static bool slots_are_usable(const struct core *core, const struct placement_slot *slots,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct core_node *node = core_node_at(core, slots[i].node.v);
        if (!node->facts.is_healthy || node->is_lost || node_is_cordoned(node))
            return false;
    }
    return true;
}

static void part_avoid(struct core *core, const struct parts *parts, struct gang_part *part)
{
    assert(part->is_made && parts->avoid_count <= TRIES_MAX);
    struct placement_request *request = &part->request.placement;
    if (!parts->avoid_count)
        return;
    size_t count = request->avoid_count + parts->avoid_count;
    struct node_id *avoid = ARENA_ARRAY(&core->scratch, struct node_id, count);
    if (request->avoid_count)
        memcpy(avoid, request->avoid, request->avoid_count * sizeof *avoid);
    memcpy(avoid + request->avoid_count, parts->avoid, parts->avoid_count * sizeof *avoid);
    request->avoid = avoid;
    request->avoid_count = count;
}

/* A task of the job that was downgraded to opportunistic use: ending it for another task of the
 * same job would go on for ever. */
static bool victims_are_own(struct core *core, const struct core_job *job,
                            const struct placement_result *result)
{
    assert(job->id.v);
    for (size_t i = 0; i < result->victim_count; i++) {
        const struct core_group *group = core_group_find(core, result->victims[i]);
        if (group && core_job_at(core, group->job) == job)
            return true;
    }
    return false;
}

/* Ask the placer. Whether the job may preempt is checked only when it would have to. *why_not: why
 * it may not do what the PREEMPT in the result says. */
static int part_ask(struct core *core, struct core_job *job, const struct parts *parts,
                    struct gang_part *part, bool is_holding, const char **why_not, struct err *err)
{
    assert(part->is_made && !part->is_bound);
    struct placement_request *request = &part->request.placement;
    struct placement_result *result = &part->result;
    struct placer *placer = core->placer;
    bool is_paused = core->now_ms < job->preempt_after_ms;
    /* one task of a job at a time: what it ends may be enough for the others */
    bool is_after = parts->is_task && job->hold_count;
    bool may_preempt = is_holding || (!is_paused && !is_after);
    request->may_preempt = is_holding || (may_preempt && !reserve_count(core));
    int code = placer->ops->place(placer, request, &core->scratch, result, err);
    if (code || result->kind != PLACEMENT_PREEMPT || request->may_preempt)
        return code;
    const struct core_job *starving =
        may_preempt ? reserve_holder(core, job, request, &core->scratch) : NULL;
    if (may_preempt && !starving) {
        request->may_preempt = true;
        return placer->ops->place(placer, request, &core->scratch, result, err);
    }
    part->is_held_back = starving != NULL;
    if (starving)
        *why_not = arena_format(&core->scratch, "room is held back for %s", starving->full_name);
    else if (is_paused)
        *why_not = arena_format(
            &core->scratch,
            "others have been ended for it before and it could not start; it tries again in %lld s",
            (long long)((job->preempt_after_ms - core->now_ms + 999) / 1000));
    else
        *why_not = "another task of the job does so first";
    return 0;
}

/* The work of a search: the placer goes through the nodes, and marks those to avoid one by one. */
static void search_count(struct core *core, const struct gang_part *part)
{
    assert(part->is_made);
    enum { NODES_MARKED_PER_WORK = 64 };
    const uint32_t nodes = core_node_count(core);
    core->pass.work += WORK_OF_SEARCH + (uint32_t)part->request.task_count +
                       nodes / core->placer->ops->nodes_per_work;
    if (part->request.placement.avoid_count)
        core->pass.work += nodes / NODES_MARKED_PER_WORK;
}

/* Ask the placer, and commit what can be bound: the next part must see it taken. */
static struct start_outcome part_place(struct core *core, struct core_job *job,
                                       const struct parts *parts, struct gang_part *part)
{
    if (!part->is_made)
        request_of_part(core, job, part->first_role, &core->scratch, &part->request);
    part->is_made = true;
    struct placement_request *request = &part->request.placement;
    struct placement_result *result = &part->result;
    struct hold *hold = hold_find(job, request->group);
    struct err err = {0};
    if (hold && hold->slots) {
        part->is_held = true;
        result->slots = hold->slots;
        result->slot_count = hold->slot_count;
        return slots_are_usable(core, hold->slots, hold->slot_count)
                   ? outcome_bind
                   : wait_alone(core, "a node that was held back for it has failed");
    }
    part_avoid(core, parts, part);
    search_count(core, part);
    const char *why_not = "";
    if (part_ask(core, job, parts, part, hold != NULL, &why_not, &err))
        return wait_for(core, err.text);
    if (result->kind == PLACEMENT_WAIT)
        return (struct start_outcome){.kind = PLACEMENT_WAIT,
                                      .reason = result->reason,
                                      .topic = result->topic,
                                      .is_never = result->is_never};
    if (result->kind == PLACEMENT_PREEMPT) {
        bool is_own = request->may_preempt && victims_are_own(core, job, result);
        if (is_own) {
            core->placer->ops->cancel(core->placer, request->group);
            why_not = "they are of the same job";
        } else {
            part->is_preempting = request->may_preempt;
        }
        struct start_outcome outcome = preempt_outcome(core, result, why_not);
        outcome.is_of_job = is_own || core->now_ms < job->preempt_after_ms;
        outcome.is_held_back = part->is_held_back;
        return outcome;
    }
    const char *held =
        hold ? ""
             : reserve_check(core, job, request, result->slots, result->slot_count, &core->scratch);
    if (*held) {
        struct start_outcome outcome = wait_for(core, held);
        outcome.is_held_back = true;
        return outcome;
    }
    core->pass.work += WORK_OF_COMMIT + (uint32_t)result->slot_count;
    if (core->placer->ops->commit(core->placer, request, result->slots, result->slot_count, false,
                                  &err))
        return wait_for(core, err.text);
    assert(result->slot_count == part->request.task_count);
    reserve_commit(core, job, request, result->slots, result->slot_count);
    part->is_bound = true;
    return outcome_bind;
}

/* All or nothing: what was taken in this attempt and what was held before is given back. */
static void parts_undo(struct core *core, struct core_job *job, struct parts *parts)
{
    assert(parts->count > 0);
    bool was_unblocked = core->is_unblocked; /* what this attempt took was free before it */
    for (size_t i = 0; i < parts->count; i++) {
        struct gang_part *part = &parts->items[i];
        const char *group = part->request.placement.group;
        if (part->is_bound) {
            core->placer->ops->release_group(core->placer, group);
            reserve_release_group(core, group);
        } else if (part->is_preempting && !hold_find(job, group)) {
            core->placer->ops->cancel(core->placer, group);
            reserve_cancel(core, group);
        }
    }
    core->is_unblocked = was_unblocked;
    if (!parts->is_task || hold_find(job, parts->items[0].request.placement.group))
        preemption_failed(core, job);
}

/* Is there a victim that has not been told to end? */
static bool parts_are_new_round(struct core *core, const struct parts *parts)
{
    assert(parts->count > 0);
    for (size_t i = 0; i < parts->count; i++)
        for (size_t j = 0; parts->items[i].is_preempting && j < parts->items[i].result.victim_count;
             j++) {
            const struct core_group *group =
                core_group_find(core, parts->items[i].result.victims[j]);
            if (group && !group->is_preempted)
                return true;
        }
    return false;
}

/* Some parts wait for others to end: what is bound is kept as a hold, and the victims are told. */
static struct start_outcome parts_hold(struct core *core, struct core_job *job, struct parts *parts)
{
    assert(parts->count > 0 && job->id.v);
    const char **victims = NULL;
    size_t count = 0, room = 0;
    if (parts_are_new_round(core, parts) && ++job->preempt_rounds > ROUNDS_MAX) {
        job->preempt_rounds = 0;
        for (size_t i = 0; i < parts->count; i++)
            if (parts->items[i].is_preempting)
                hold_add(core, job, parts->items[i].request.placement.group, NULL, 0);
        parts_undo(core, job, parts);
        return wait_alone(core, "others were ended for it several times, but it could not start");
    }
    for (size_t i = 0; i < parts->count; i++)
        room += parts->items[i].is_preempting ? parts->items[i].result.victim_count : 0;
    victims = ARENA_ARRAY(&core->scratch, const char *, room + 1);
    for (size_t i = 0; i < parts->count; i++) {
        const struct gang_part *part = &parts->items[i];
        const char *group = part->request.placement.group;
        if (part->is_bound)
            hold_add(core, job, group, part->result.slots, part->result.slot_count);
        if (!part->is_preempting)
            continue;
        hold_add(core, job, group, NULL, 0);
        for (size_t j = 0; j < part->result.victim_count; j++)
            victims[count++] = part->result.victims[j];
    }
    return victims_end(core, job, victims, count);
}

/* Everything is bound: each task takes its place. */
static void parts_take(struct core *core, struct core_job *job, const struct parts *parts,
                       const struct gang_ports *ports)
{
    size_t next = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct gang_part *part = &parts->items[i];
        assert(part->is_made && (part->is_bound || part->is_held));
        const struct request *request = &part->request;
        uint32_t at = core_group_add(core, job, request->placement.group, request->tasks[0].role,
                                     parts->is_task, (uint32_t)request->task_count);
        for (uint32_t j = 0; j < request->task_count; j++) {
            struct core_task *task =
                core_task_get(core, core_job_slot(core, job), request->tasks[j]);
            core_task_set(core, task, &part->result.slots[j], ports->ranges[next++],
                          job->plan->roles[request->tasks[j].role].port_count);
            task->group = at;
            task->group_slot = j;
            core_task_take(core, task);
            core_group_at(core, at)->tasks[j] = core_task_index(core, task);
        }
        hold_forget(core, job, request->placement.group);
    }
}

/* NULL, or why there are no ports. */
static const char *parts_ports(struct core *core, const struct core_job *job,
                               const struct parts *parts, struct gang_ports *ports)
{
    assert(parts->task_count > 0);
    struct task_ref *tasks = ARENA_ARRAY(&core->scratch, struct task_ref, parts->task_count + 1);
    const struct placement_slot **slots =
        ARENA_ARRAY(&core->scratch, const struct placement_slot *, parts->task_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++)
        for (size_t j = 0; j < parts->items[i].request.task_count; j++) {
            tasks[count] = parts->items[i].request.tasks[j];
            slots[count++] = &parts->items[i].result.slots[j];
        }
    return gang_ports_find(core, job, tasks, slots, count, ports);
}

static struct start_outcome parts_try(struct core *core, struct core_job *job, struct parts *parts,
                                      struct gang_ports *ports)
{
    assert(parts->count > 0);
    bool is_preempting = false;
    ports->conflict = NONE;
    for (size_t i = 0; i < parts->count; i++) {
        struct gang_part *part = &parts->items[i];
        struct start_outcome outcome = part_place(core, job, parts, part);
        if (outcome.kind == PLACEMENT_WAIT ||
            (outcome.kind == PLACEMENT_PREEMPT && !part->is_preempting)) {
            parts_undo(core, job, parts);
            return outcome;
        }
        is_preempting = is_preempting || part->is_preempting;
    }
    if (is_preempting)
        return parts_hold(core, job, parts);
    const char *why = parts_ports(core, job, parts, ports);
    if (why) {
        parts_undo(core, job, parts);
        struct start_outcome outcome = wait_for(core, why);
        outcome.is_port_conflict = true;
        return outcome;
    }
    core->pass.work += WORK_OF_START * (uint32_t)parts->task_count;
    parts_take(core, job, parts, ports);
    return outcome_bind;
}

static struct start_outcome parts_start(struct core *core, struct core_job *job,
                                        struct parts *parts)
{
    assert(parts->count > 0 && parts->avoid_count == 0);
    for (;;) {
        struct gang_ports ports;
        struct start_outcome outcome = parts_try(core, job, parts, &ports);
        if (outcome.kind != PLACEMENT_WAIT || ports.conflict == NONE ||
            parts->avoid_count == TRIES_MAX)
            return outcome;
        parts->avoid[parts->avoid_count++].v = ports.conflict;
        for (size_t i = 0; i < parts->count; i++)
            parts->items[i].is_bound = parts->items[i].is_held = parts->items[i].is_preempting =
                false;
    }
}

static struct start_outcome gang_start(struct core *core, struct core_job *job)
{
    assert(job->plan->is_gang && queue_has(core->queue, core_job_slot(core, job)));
    const struct plan *plan = job->plan;
    struct parts parts = {.items =
                              ARENA_ARRAY(&core->scratch, struct gang_part, plan->role_count + 1u)};
    for (uint16_t i = 0; i < plan->role_count; i++) {
        if (plan->roles[i].part != i)
            continue;
        parts.items[parts.count] = (struct gang_part){.first_role = i};
        uint32_t tasks = part_task_count(core, job, i);
        parts.count += tasks > 0;
        parts.task_count += tasks;
    }
    struct start_outcome outcome = parts_start(core, job, &parts);
    if (outcome.kind != PLACEMENT_BIND)
        return outcome;
    core_trace(core, "job %s: placed %zu tasks -> bind", job->full_name, parts.task_count);
    core_job_step(core, job, &(struct job_event){.kind = JOB_EVENT_PLACED});
    return outcome;
}

/* Each waiting task by itself; one failure of a role is enough to know about its others. */
static struct start_outcome tasks_start(struct core *core, struct core_job *job)
{
    assert(!job->plan->is_gang && queue_has(core->queue, core_job_slot(core, job)));
    const struct plan *plan = job->plan;
    struct start_outcome failure = {.kind = PLACEMENT_WAIT, .reason = ""};
    uint32_t waiting = job_waiting_count(&job->life, policy_of(core, job)), placed = 0;
    struct task_ref *tasks = ARENA_ARRAY(&core->scratch, struct task_ref, waiting + 1);
    for (uint16_t i = 0; i < plan->role_count; i++) {
        uint32_t count = job_role_count(&job->life, policy_of(core, job), i);
        for (uint32_t j = 0; j < count; j++) {
            struct task_ref task = {i, (uint16_t)j};
            if (!job_task_is_waiting(&job->life, policy_of(core, job), task))
                continue;
            const struct job_task *known = job_task_find(&job->life, task);
            struct gang_part part = {.is_made = true};
            struct parts parts = {.items = &part, .count = 1, .task_count = 1, .is_task = true};
            request_of_task(core, job, task, known ? known->task_attempt : 0, &core->scratch,
                            &part.request);
            struct start_outcome outcome = parts_start(core, job, &parts);
            if (outcome.kind != PLACEMENT_BIND) {
                failure = outcome;
                break;
            }
            tasks[placed++] = task;
        }
    }
    if (placed) {
        core_trace(core, "job %s: placed %u of %u waiting tasks", job->full_name, placed, waiting);
        core_job_step(
            core, job,
            &(struct job_event){.kind = JOB_EVENT_PLACED, .tasks = tasks, .task_count = placed});
    }
    return placed == waiting ? outcome_bind : failure;
}

struct start_outcome core_job_start(struct core *core, struct core_job *job)
{
    return job->plan->is_gang ? gang_start(core, job) : tasks_start(core, job);
}
