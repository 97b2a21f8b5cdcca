#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"

enum {
    FAILURES_MAX = 1000, /* searches without a result in one step; the rest follows at once */
    PORT_TRIES_MAX = 4,
    REASON_AGAIN_MS = 10000, /* a reason that differs in numbers alone is told so often */
};

/* What came of the attempt to start something. */
struct outcome {
    enum placement_kind kind;
    const char *reason; /* not BIND */
};

/* --- ports --- */

static bool ports_fixed_take(struct node *node, const struct plan_role *role,
                             struct port_range *ranges)
{
    for (size_t i = 0; i < role->port_count; i++) {
        const struct plan_port *port = &role->ports[i];
        if (!port->begin_at || !port->count)
            continue;
        if (!ports_are_free(&node->ports, port->begin_at, port->count))
            return false;
        ports_take(&node->ports, port->begin_at, port->count);
        ranges[i] =
            (struct port_range){port->label, (uint16_t)port->begin_at, (uint16_t)port->count};
    }
    return true;
}

static bool ports_any_take(const struct core *core, struct node *node, const struct plan_role *role,
                           struct port_range *ranges)
{
    for (size_t i = 0; i < role->port_count; i++) {
        const struct plan_port *port = &role->ports[i];
        if (port->begin_at || !port->count)
            continue;
        uint32_t first =
            ports_find(&node->ports, core->config.port_first, core->config.port_last, port->count);
        if (!first)
            return false;
        ports_take(&node->ports, first, port->count);
        ranges[i] = (struct port_range){port->label, (uint16_t)first, (uint16_t)port->count};
    }
    return true;
}

/* The ports of one task on its node, or why not. Fixed ones first, so that no free choice takes
 * them away. Everything is given back by the caller, who knows what was taken by `first`. */
static const char *task_ports_take(struct core *core, const struct plan_role *role, uint32_t at,
                                   struct port_range *ranges)
{
    struct node *node = &core->nodes.items[at];
    for (size_t i = 0; i < role->port_count; i++)
        ranges[i] = (struct port_range){role->ports[i].label, 0, 0};
    if (!ports_fixed_take(node, role, ranges))
        return arena_format(&core->scratch, "a fixed port of role %s is taken on node %s",
                            role->name, node->name);
    if (!ports_any_take(core, node, role, ranges))
        return arena_format(&core->scratch, "too few free ports for role %s on node %s", role->name,
                            node->name);
    return NULL;
}

static void task_ports_give(struct core *core, uint32_t at, const struct port_range *ranges,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].first)
            ports_give(&core->nodes.items[at].ports, ranges[i].first, ranges[i].count);
}

struct gang_ports {
    struct port_range **ranges; /* by slot */
    uint32_t conflict;          /* the node where it failed */
};

/* Find ports for all slots and leave them free again: place_take takes them. NULL or why not. */
static const char *gang_ports_find(struct core *core, const struct live *live,
                                   const struct request *request,
                                   const struct placement_slot *slots, struct gang_ports *ports)
{
    const char *why = NULL;
    size_t done = 0;
    ports->ranges = ARENA_ARRAY(&core->scratch, struct port_range *, request->task_count + 1);
    for (size_t i = 0; i < request->task_count && !why; i++) {
        const struct plan_role *role = &live->plan->roles[request->tasks[i].role];
        ports->ranges[i] = ARENA_ARRAY(&core->scratch, struct port_range, role->port_count + 1u);
        why = task_ports_take(core, role, slots[i].node.v, ports->ranges[i]);
        if (why)
            ports->conflict = slots[i].node.v;
        done++;
    }
    for (size_t i = 0; i < done; i++)
        task_ports_give(core, slots[i].node.v, ports->ranges[i],
                        live->plan->roles[request->tasks[i].role].port_count);
    return why;
}

/* --- preemption --- */

void preemption_cancel(struct core *core, struct live *live)
{
    if (!live->preempting)
        return;
    core->placer->ops->cancel(core->placer, live->preempting);
    mem_free(live->preempting);
    live->preempting = NULL;
    core->is_unblocked = true;
}

static void group_preempt(struct core *core, struct group *group, const struct live *by)
{
    if (group->is_preempted)
        return;
    group->is_preempted = true;
    struct live *victim = &core->jobs.items[group->job];
    core_trace(core, "job %s: preempts %s", by->full_name, group->name);
    struct completion completion = completion_of(CODE_PREEMPTED, "preempted by %s (priority %d)",
                                                 by->full_name, by->plan->priority);
    struct job_event event = {.kind = JOB_EVENT_PREEMPT, .completion = &completion};
    if (group->is_task) {
        event.kind = JOB_EVENT_TASK_KILL;
        event.task = core->seats.items[group->seats[0]].task;
    }
    live_step(core, victim, &event);
}

static struct outcome victims_preempt(struct core *core, struct live *live, const char *name,
                                      const struct placement_result *result)
{
    struct buf reason = BUF_INIT;
    buf_format(&reason, "preempting %zu group%s of lower priority: ", result->victim_count,
               result->victim_count == 1 ? "" : "s");
    for (size_t i = 0; i < result->victim_count; i++)
        buf_format(&reason, "%s%s", i ? ", " : "", result->victims[i]);
    struct outcome outcome = {PLACEMENT_PREEMPT, arena_copy(&core->scratch, buf_as_text(&reason))};
    buf_release(&reason);
    if (!live->preempting)
        live->preempting = mem_copy(name);
    for (size_t i = 0; i < result->victim_count; i++) {
        struct group *group = group_find(core, result->victims[i]);
        if (group)
            group_preempt(core, group, live);
    }
    return outcome;
}

/* --- one group --- */

/* Look for a place with ports; nothing is taken yet. */
static struct outcome group_find_place(struct core *core, struct live *live,
                                       struct request *request, struct placement_result *result,
                                       struct gang_ports *ports)
{
    struct placement_request *placement = &request->placement;
    if (live->preempting && strcmp(live->preempting, placement->group) != 0)
        placement->may_preempt = false;
    const char *why = NULL;
    for (int i = 0; i < PORT_TRIES_MAX; i++) {
        struct err err = {0};
        int code = core->placer->ops->place(core->placer, placement, &core->scratch, result, &err);
        if (code)
            return (struct outcome){PLACEMENT_WAIT, arena_copy(&core->scratch, text_of(err.text))};
        if (result->kind == PLACEMENT_WAIT)
            return (struct outcome){PLACEMENT_WAIT, why ? why : result->reason};
        if (result->kind == PLACEMENT_PREEMPT)
            return placement->may_preempt
                       ? victims_preempt(core, live, placement->group, result)
                       : (struct outcome){PLACEMENT_WAIT, "others would have to be preempted"};
        why = gang_ports_find(core, live, request, result->slots, ports);
        if (!why)
            return (struct outcome){PLACEMENT_BIND, NULL};
        struct node_id *avoid =
            ARENA_ARRAY(&core->scratch, struct node_id, placement->avoid_count + 1);
        if (placement->avoid_count)
            memcpy(avoid, placement->avoid, placement->avoid_count * sizeof *avoid);
        avoid[placement->avoid_count++].v = ports->conflict;
        placement->avoid = avoid;
    }
    return (struct outcome){PLACEMENT_WAIT, why};
}

static struct outcome group_start(struct core *core, struct live *live, struct request *request,
                                  uint16_t first_role, uint32_t *group_out)
{
    struct placement_result result;
    struct gang_ports ports;
    struct outcome outcome = group_find_place(core, live, request, &result, &ports);
    if (outcome.kind != PLACEMENT_BIND)
        return outcome;
    assert(result.slot_count == request->task_count);
    const char *held = reserve_check(core, live, &request->placement, result.slots,
                                     result.slot_count, &core->scratch);
    if (*held)
        return (struct outcome){PLACEMENT_WAIT, held};
    struct err err = {0};
    if (core->placer->ops->commit(core->placer, &request->placement, result.slots,
                                  result.slot_count, false, &err))
        return (struct outcome){PLACEMENT_WAIT, arena_copy(&core->scratch, text_of(err.text))};
    if (live->preempting && strcmp(live->preempting, request->placement.group) == 0) {
        mem_free(live->preempting);
        live->preempting = NULL;
    }
    reserve_commit(core, live, &request->placement, result.slots, result.slot_count);

    uint32_t at = group_add(core, live, request->placement.group, first_role, !live->plan->is_gang,
                            (uint32_t)request->task_count);
    for (uint32_t i = 0; i < request->task_count; i++) {
        struct seat *seat = seat_get(core, live_slot(core, live), request->tasks[i]);
        seat_set(core, seat, &result.slots[i], ports.ranges[i],
                 live->plan->roles[request->tasks[i].role].port_count);
        seat->group = at;
        seat->group_slot = i;
        seat_take(core, seat);
        core->groups.items[at].seats[i] = (uint32_t)(seat - core->seats.items);
    }
    *group_out = at;
    return outcome;
}

/* A part of a gang was placed, a later part was not: all or nothing. */
static void group_undo(struct core *core, uint32_t at)
{
    uint32_t count = core->groups.items[at].slot_count;
    uint32_t *seats = core->groups.items[at].seats;
    uint32_t *copy = ARENA_ARRAY(&core->scratch, uint32_t, count);
    memcpy(copy, seats, count * sizeof *copy);
    bool was_unblocked = core->is_unblocked; /* what is given back was free before */
    for (uint32_t i = 0; i < count; i++) {
        seat_release(core, &core->seats.items[copy[i]]);
        seat_drop(core, &core->seats.items[copy[i]]);
    }
    core->is_unblocked = was_unblocked;
}

static struct outcome gang_start(struct core *core, struct live *live)
{
    const struct plan *plan = live->plan;
    uint32_t groups[JOB_ROLES_MAX];
    size_t count = 0;
    for (uint16_t i = 0; i < plan->role_count; i++) {
        if (part_of(plan, i) != i)
            continue;
        struct request request;
        request_of_part(core, live, i, &core->scratch, &request);
        if (!request.task_count)
            continue;
        struct outcome outcome = group_start(core, live, &request, i, &groups[count]);
        if (outcome.kind == PLACEMENT_BIND) {
            count++;
            continue;
        }
        while (count > 0)
            group_undo(core, groups[--count]);
        return outcome;
    }
    core_trace(core, "job %s: placed %u tasks -> bind", live->full_name, plan_task_count(plan));
    live_step(core, live, &(struct job_event){.kind = JOB_EVENT_PLACED});
    return (struct outcome){PLACEMENT_BIND, NULL};
}

/* Each waiting task by itself; one failure a role is enough to know about the others. */
static struct outcome tasks_start(struct core *core, struct live *live)
{
    const struct plan *plan = live->plan;
    struct outcome failure = {PLACEMENT_WAIT, ""};
    uint32_t waiting = job_waiting_count(&live->job, policy_of(core, live)), placed = 0;
    struct task_ref *tasks = ARENA_ARRAY(&core->scratch, struct task_ref, waiting + 1);
    for (uint16_t i = 0; i < plan->role_count; i++) {
        uint32_t count = job_role_count(&live->job, policy_of(core, live), i);
        for (uint32_t j = 0; j < count; j++) {
            struct task_ref task = {i, (uint16_t)j};
            if (!job_task_is_waiting(&live->job, policy_of(core, live), task))
                continue;
            const struct job_task *known = job_task_find(&live->job, task);
            struct request request;
            uint32_t group;
            request_of_task(core, live, task, known ? known->task_attempt : 0, &core->scratch,
                            &request);
            struct outcome outcome = group_start(core, live, &request, i, &group);
            if (outcome.kind != PLACEMENT_BIND) {
                failure = outcome;
                break;
            }
            tasks[placed++] = task;
        }
    }
    if (placed) {
        core_trace(core, "job %s: placed %u of %u waiting tasks", live->full_name, placed, waiting);
        live_step(
            core, live,
            &(struct job_event){.kind = JOB_EVENT_PLACED, .tasks = tasks, .task_count = placed});
    }
    if (placed == waiting)
        return (struct outcome){PLACEMENT_BIND, NULL};
    return failure;
}

/* --- the pass --- */

/* Numbers come and go with every task that ends: they do not make a reason new. */
uint64_t wait_reason_hash(const char *reason)
{
    uint64_t hash = 14695981039346656037u;
    for (; *reason; reason++)
        if (!isdigit((unsigned char)*reason))
            hash = (hash ^ (unsigned char)*reason) * 1099511628211u;
    return hash | 1;
}

void wait_reason_tell(struct core *core, struct live *live, const char *reason)
{
    uint64_t hash = wait_reason_hash(reason);
    if (hash == live->reason_hash && core->now_ms - live->reason_ms < REASON_AGAIN_MS)
        return;
    if (hash != live->reason_hash)
        record_story(core, live, NULL, false, "Waiting", "waiting: %s", reason);
    live->reason_hash = hash;
    live->reason_ms = core->now_ms;
    record_job_changed(core, live);
}

static bool job_start(struct core *core, uint32_t slot, uint32_t class)
{
    struct live *live = &core->jobs.items[slot];
    bool was_preempting = live->preempting;
    struct outcome outcome = live->plan->is_gang ? gang_start(core, live) : tasks_start(core, live);
    assert(&core->jobs.items[slot] == live);
    if (outcome.kind == PLACEMENT_BIND) {
        assert(!queue_has(core->queue, slot));
        return true;
    }
    /* some of its tasks may have been placed, or it has begun to preempt: another class then */
    if (!live->plan->is_gang || (bool)live->preempting != was_preempting) {
        live_queue(core, live);
        class = queue_class_of(core->queue, slot);
    }
    queue_block(core->queue, class, outcome.reason);
    core_trace(core, "job %s: %s -> %s", live->full_name, outcome.reason,
               outcome.kind == PLACEMENT_PREEMPT ? "preempt" : "wait");
    wait_reason_tell(core, live, outcome.reason);
    reserve_update(core, live);
    return false;
}

void core_schedule(struct core *core)
{
    if (core->is_unblocked)
        queue_unblock(core->queue);
    core->is_unblocked = false;
    struct queue_item item;
    uint32_t class, failures = 0;
    while (failures < FAILURES_MAX && queue_first(core->queue, &item, &class))
        failures += !job_start(core, item.slot, class);
    if (core->is_unblocked || queue_first(core->queue, &item, &class))
        timers_add(&core->timers, (struct timer){core->now_ms, 0, NONE});
}

int core_check_request(struct core *core, struct live *live, struct err *err)
{
    struct text shape = shape_of(core, live, &core->scratch);
    uint64_t hash = text_hash(shape, 0);
    if (id_map_get(&core->known_shapes, hash) != MAP_NONE)
        return 0;
    for (uint16_t i = 0; i < live->plan->role_count; i++) {
        struct request request;
        struct placement_result result;
        if (live->plan->is_gang && part_of(live->plan, i) != i)
            continue;
        if (live->plan->is_gang)
            request_of_part(core, live, i, &core->scratch, &request);
        else
            request_of_task(core, live, (struct task_ref){i, 0}, 0, &core->scratch, &request);
        request.placement.may_preempt = false;
        if (!request.task_count)
            continue;
        int code = core->placer->ops->place(core->placer, &request.placement, &core->scratch,
                                            &result, err);
        if (code)
            return code;
    }
    enum { SHAPES_MAX = 4096 };
    if (core->known_shapes.count >= SHAPES_MAX)
        id_map_release(&core->known_shapes);
    id_map_set(&core->known_shapes, hash, 1);
    return 0;
}
