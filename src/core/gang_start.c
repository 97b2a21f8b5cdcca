/* gang_start.c — see gang_start.h. First the ports of all tasks are taken, which may turn out to be
 * in conflict; then each task takes its place, with its row. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/gang_ports.h"
#include "core/gang_start.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"

enum {                    /* in units of core->pass.work */
       WORK_OF_PORT = 1,  /* and of a task that needs some */
       WORK_OF_PLACE = 5, /* of a task: its place, its row */
};

bool gang_is_large(const struct core *core, size_t task_count)
{
    return task_count * WORK_OF_PLACE > core->slice;
}

/* --- the task whose turn it is --- */

/* One step of a start. */
struct start_step {
    struct core *core;
    struct core_job *job;
    struct placing *placing;
    uint32_t *places; /* by the first role of a part: its place among the holds */
};

static uint32_t role_tasks(const struct start_step *step, uint16_t role)
{
    return job_role_instances(&step->job->life, policy_of(step->core, step->job), role);
}

static struct start_step step_of(struct core *core, struct core_job *job)
{
    const struct plan *plan = job->plan;
    struct start_step step = {core, job, &core->placing, NULL};
    uint32_t count = 0;
    assert(placing_of(core, job));
    step.places = ARENA_ARRAY(&core->scratch, uint32_t, plan->role_count);
    for (uint16_t role = 0; role < plan->role_count; role++) {
        step.places[role] = count;
        count += plan->roles[role].part == role && part_task_count(core, job, role) > 0;
    }
    assert(count == job->hold_count);
    return step;
}

/* The first task at or behind the one that was reached, in the order of the roles: as a gang gets
 * its attempts that starts at once. False: none is left. */
static bool task_settle(const struct start_step *step)
{
    const struct plan *plan = step->job->plan;
    struct task_ref *task = &step->placing->task;
    while (task->role < plan->role_count && task->index >= role_tasks(step, task->role))
        *task = (struct task_ref){task->role + 1, 0};
    return task->role < plan->role_count;
}

static struct hold *hold_now(const struct start_step *step)
{
    const struct plan *plan = step->job->plan;
    const uint32_t place = step->places[plan->roles[step->placing->task.role].part];
    assert(place < step->job->hold_count && step->job->holds[place].slots);
    return &step->job->holds[place];
}

static void stage_begin(struct core *core, enum placing_stage stage)
{
    core->placing.stage = stage;
    core->placing.next = 0;
    core->placing.task = (struct task_ref){0};
}

/* --- nodes that have failed since --- */

/* A node of what is held, and has not become a task, that cannot be used; NONE: all can. */
static uint32_t node_failed(const struct core *core, const struct core_job *job)
{
    for (uint32_t i = 0; i < job->hold_count; i++)
        for (uint32_t slot = job->holds[i].started; slot < job->holds[i].slot_count; slot++)
            if (!slots_are_usable(core, &job->holds[i].slots[slot], 1))
                return job->holds[i].slots[slot].node.v;
    return NONE;
}

static bool has_changed(const struct core *core, struct placing *placing)
{
    const bool is_new = placing->nodes != core->node_changes;
    placing->nodes = core->node_changes;
    return is_new;
}

/* --- ports --- */

/* A port is taken on its node: all is given back, and the search begins anew without that node. */
static struct start_outcome ports_conflict(struct core *core, struct core_job *job, const char *why,
                                           uint32_t node)
{
    struct start_outcome outcome = start_waits(core, why);
    struct placing again = core->placing;
    outcome.is_port_conflict = true;
    gang_undo(core, job);
    bool is_avoided = false; /* then there is no other */
    for (uint32_t i = 0; i < again.avoid_count; i++)
        is_avoided = is_avoided || again.avoid[i].v == node;
    if (is_avoided || again.avoid_count == PORT_TRIES_MAX)
        return outcome;
    again.avoid[again.avoid_count++].v = node;
    again.is_fresh = true;
    again.stage = PLACING_SEARCH;
    again.next = again.rounds = 0;
    core->placing = again;
    outcome.is_cut = true;
    return outcome;
}

/* NULL, or why there are not all, and where. */
static const char *task_ports_hold(const struct start_step *step, uint32_t *node)
{
    struct core *core = step->core;
    const struct plan_role *role = &step->job->plan->roles[step->placing->task.role];
    struct hold *hold = hold_now(step);
    struct port_range *ranges = ARENA_ARRAY(&core->scratch, struct port_range, role->port_count);
    core->pass.work += WORK_OF_PORT * (1 + (uint32_t)role->port_count);
    *node = hold->slots[hold->ported++].node.v;
    const char *why = task_ports_take(core, role, *node, ranges);
    for (size_t i = 0; i < role->port_count; i++)
        if (ranges[i].first)
            *ARRAY_ADD(&hold->ports) = (struct held_port){*node, ranges[i].first, ranges[i].count};
    return why;
}

static struct start_outcome ports_take_some(const struct start_step *step)
{
    struct core *core = step->core;
    struct task_ref *task = &step->placing->task;
    const uint32_t end = core->pass.work + core->slice;
    uint32_t node;
    if (has_changed(core, step->placing) && node_failed(core, step->job) != NONE) {
        hold_ports_give(core, step->job);
        stage_begin(core, PLACING_SEARCH);
        return outcome_cut;
    }
    while (task_settle(step)) {
        if (core->pass.work >= end)
            return outcome_cut;
        if (!step->job->plan->roles[task->role].port_count) {
            const uint32_t tasks = role_tasks(step, task->role);
            hold_now(step)->ported += tasks;
            task->index = (uint16_t)tasks;
            continue;
        }
        const char *why = task_ports_hold(step, &node);
        if (why)
            return ports_conflict(core, step->job, why, node);
        task->index++;
    }
    return outcome_bind;
}

/* --- places --- */

static uint32_t group_now(const struct start_step *step)
{
    const struct hold *hold = hold_now(step);
    const struct core_group *group = core_group_find(step->core, hold->group);
    if (group)
        return core_group_index(step->core, group);
    assert(hold->started == 0);
    return core_group_add(step->core, step->job, hold->group, step->placing->task.role, false,
                          hold->slot_count);
}

/* The hold's part becomes a group, and its slots tasks, one after the other. */
static void place_take(const struct start_step *step)
{
    struct core *core = step->core;
    const struct task_ref ref = step->placing->task;
    const struct plan_role *role = &step->job->plan->roles[ref.role];
    const uint32_t at = group_now(step);
    struct hold *hold = hold_now(step);
    const struct placement_slot *slot = &hold->slots[hold->started];
    struct port_range *ranges =
        ARENA_ARRAY(&core->scratch, struct port_range, role->port_count + 1u);
    for (size_t i = 0; i < role->port_count; i++) { /* core_task_take takes them */
        const struct held_port *port = &hold->ports.items[hold->ports_next++];
        ranges[i] = (struct port_range){role->ports[i].label, port->first, port->count};
        ports_give(&core_node_at(core, slot->node.v)->ports, port->first, port->count);
    }
    struct core_task *task = core_task_get(core, core_job_slot(core, step->job), ref);
    core_task_set(core, task, slot, ranges, role->port_count);
    task->group = at;
    task->group_slot = hold->started;
    core_task_take(core, task);
    core_group_at(core, at)->tasks[hold->started++] = core_task_index(core, task);
}

/* Nothing of it has been created: it is placed anew. */
static struct start_outcome start_refuse(struct core *core, struct core_job *job, uint32_t node)
{
    const struct completion completion =
        completion_of(CODE_REFUSED, "node %s failed before the gang had started",
                      core_node_at(core, node)->facts.name);
    core_job_step(core, job,
                  &(struct job_event){.kind = JOB_EVENT_PREEMPT, .completion = &completion});
    assert(!placing_of(core, job));
    return queue_has(core->queue, core_job_slot(core, job)) ? outcome_cut : outcome_bind;
}

/* Those that have no place yet, but not more than a step's work. */
static uint32_t places_most(const struct start_step *step)
{
    const uint32_t most = 1 + step->core->slice / WORK_OF_PLACE;
    uint32_t left = 0;
    for (uint32_t i = 0; i < step->job->hold_count; i++)
        left += step->job->holds[i].slot_count - step->job->holds[i].started;
    assert(left > 0);
    return left < most ? left : most;
}

static struct start_outcome places_take_some(const struct start_step *step)
{
    struct core *core = step->core;
    const uint32_t most = places_most(step);
    struct task_ref *tasks = ARENA_ARRAY(&core->scratch, struct task_ref, most);
    uint32_t count = 0;
    bool is_whole = false;
    while (count < most && !is_whole) {
        place_take(step);
        tasks[count++] = step->placing->task;
        step->placing->task.index++;
        is_whole = !task_settle(step);
    }
    core->pass.work += WORK_OF_PLACE * count;
    core_trace(core, "job %s: %u tasks have their places -> %s", step->job->full_name, count,
               is_whole ? "bind" : "goes on");
    if (is_whole) {
        holds_forget(core, step->job);
        core->creating = step->job->id.v;
    }
    core_job_step(
        core, step->job,
        &(struct job_event){
            .kind = JOB_EVENT_PLACED, .tasks = tasks, .task_count = count, .is_in_steps = true});
    return is_whole ? outcome_bind : outcome_cut;
}

static struct start_outcome start_go_on(struct core *core, struct core_job *job)
{
    const uint32_t node = node_failed(core, job);
    const struct start_step step = step_of(core, job);
    return node == NONE ? places_take_some(&step) : start_refuse(core, job, node);
}

struct start_outcome gang_start_begin(struct core *core, struct core_job *job, bool is_fresh)
{
    assert(job->plan->is_gang && job->hold_count);
    struct placing *placing = &core->placing;
    const bool has_searched = placing->job != 0; /* in steps; this one has had its share */
    if (!has_searched)
        *placing =
            (struct placing){.job = job->id.v, .is_fresh = is_fresh, .nodes = core->node_changes};
    stage_begin(core, PLACING_PORTS);
    return has_searched ? outcome_cut : gang_start_go_on(core, job);
}

struct start_outcome gang_start_go_on(struct core *core, struct core_job *job)
{
    const struct start_step step = step_of(core, job);
    if (step.placing->stage == PLACING_START)
        return has_changed(core, step.placing) ? start_go_on(core, job) : places_take_some(&step);
    struct start_outcome outcome = ports_take_some(&step);
    if (outcome.kind != PLACEMENT_BIND)
        return outcome;
    stage_begin(core, PLACING_START);
    task_settle(&step);
    victims_clear(core, job);
    reserve_drop(core, core_job_slot(core, job));
    return places_take_some(&step);
}

bool gang_is_creating(const struct core *core)
{
    if (!core->creating)
        return false;
    const struct core_job *job =
        core_job_find((struct core *)(uintptr_t)core, (struct job_id){core->creating});
    return job && job->life.is_starting;
}
