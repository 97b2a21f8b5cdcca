#include <assert.h>
#include <string.h>

#include "core/gang_ports.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/request.h"
#include "core/state.h"
#include "core/tasks.h"
#include "model/reason.h"

enum { PORTS_PER_WORK = 16 }; /* compared in a unit of core->pass.work */

/* The first of a range that is not free whole. */
static uint32_t port_taken(const struct ports *ports, const struct plan_port *range)
{
    const uint32_t last = range->begin_at + range->count - 1u;
    uint32_t port = range->begin_at;
    assert(!ports_are_free(ports, range->begin_at, range->count));
    while (port < last && ports_are_free(ports, port, 1))
        port++;
    return port;
}

/* 0, or the port that is taken. */
static uint32_t ports_fixed_take(struct core_node *node, const struct plan_role *role,
                                 struct port_range *ranges)
{
    for (size_t i = 0; i < role->port_count; i++) {
        const struct plan_port *port = &role->ports[i];
        if (!port->begin_at)
            continue;
        if (!ports_are_free(&node->ports, port->begin_at, port->count))
            return port_taken(&node->ports, port);
        ports_take(&node->ports, port->begin_at, port->count);
        ranges[i] =
            (struct port_range){port->label, (uint16_t)port->begin_at, (uint16_t)port->count};
    }
    return 0;
}

static bool ports_any_take(const struct core *core, struct core_node *node,
                           const struct plan_role *role, struct port_range *ranges)
{
    assert(core->config.port_first <= core->config.port_last);
    for (size_t i = 0; i < role->port_count; i++) {
        const struct plan_port *port = &role->ports[i];
        if (port->begin_at)
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

/* Fixed ones first, so that no free choice takes them away. All jobs of the class are told the
 * reason: it names neither the role nor a label, which are this job's own. */
const char *task_ports_take(struct core *core, const struct plan_role *role, uint32_t at,
                            struct port_range *ranges)
{
    struct core_node *node = core_node_at(core, at);
    for (size_t i = 0; i < role->port_count; i++)
        ranges[i] = (struct port_range){role->ports[i].label, 0, 0};
    const uint32_t taken = ports_fixed_take(node, role, ranges);
    if (taken)
        return arena_format(&core->scratch, REASON_PORT_TAKEN, taken, node->facts.name);
    if (!ports_any_take(core, node, role, ranges))
        return arena_format(&core->scratch, REASON_PORTS_FEW, node->facts.name);
    return NULL;
}

static void task_ports_give(struct core *core, uint32_t at, const struct port_range *ranges,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].first)
            ports_give(&core_node_at(core, at)->ports, ranges[i].first, ranges[i].count);
}

/* Find ports for all slots and leave them free again: place_take takes them. NULL or why not. */
const char *gang_ports_find(struct core *core, const struct core_job *job,
                            const struct task_ref *tasks, const struct placement_slot *const *slots,
                            size_t count, struct gang_ports *ports)
{
    assert(count == 0 || (tasks && slots));
    const char *why = NULL;
    size_t done = 0;
    ports->ranges = ARENA_ARRAY(&core->scratch, struct port_range *, count + 1);
    for (size_t i = 0; i < count && !why; i++) {
        const struct plan_role *role = &job->plan->roles[tasks[i].role];
        ports->ranges[i] = ARENA_ARRAY(&core->scratch, struct port_range, role->port_count + 1u);
        why = task_ports_take(core, role, slots[i]->node.v, ports->ranges[i]);
        if (why)
            ports->conflict = slots[i]->node.v;
        done++;
    }
    for (size_t i = 0; i < done; i++)
        task_ports_give(core, slots[i]->node.v, ports->ranges[i],
                        job->plan->roles[tasks[i].role].port_count);
    return why;
}

/* --- fixed ports --- */

static bool ranges_meet(uint32_t first, uint32_t count, uint32_t other, uint32_t other_count)
{
    return first < other + other_count && other < first + count;
}

static bool role_needs(const struct plan_role *role, const struct plan_port *port)
{
    for (size_t i = 0; i < role->port_count; i++)
        if (role->ports[i].begin_at &&
            ranges_meet(role->ports[i].begin_at, role->ports[i].count, port->begin_at, port->count))
            return true;
    return false;
}

/* Those that start together. */
static uint32_t tasks_that_need(struct core *core, const struct core_job *job,
                                const struct plan_port *port)
{
    uint32_t count = 0;
    if (!job->plan->is_gang)
        return 1;
    for (uint16_t i = 0; i < job->plan->role_count; i++) {
        core->pass.work += 1 + (uint32_t)job->plan->roles[i].port_count / PORTS_PER_WORK;
        if (role_needs(&job->plan->roles[i], port))
            count += job_role_instances(&job->life, policy_of(core, job), i);
    }
    return count;
}

static bool task_stays(const struct core *core, const struct core_job *job,
                       const struct core_task *task, const struct plan_port *port)
{
    const struct plan *plan = core_job_at(core, task->job)->plan;
    if (plan->is_lazy_preemptible || plan->priority < job->plan->priority)
        return false;
    for (size_t i = 0; i < task->port_count; i++)
        if (ranges_meet(task->ports[i].first, task->ports[i].count, port->begin_at, port->count))
            return true;
    return false;
}

static bool node_can_give(struct core *core, const struct core_job *job, uint32_t at,
                          const struct plan_port *port)
{
    const struct core_node *node = core_node_at(core, at);
    core->pass.work++;
    if (!node->is_counted)
        return false;
    if (ports_are_free(&node->ports, port->begin_at, port->count))
        return true;
    for (uint32_t i = node->first_task; i != NONE; i = core_task_at(core, i)->node_next) {
        core->pass.work += 1 + core_task_at(core, i)->port_count / PORTS_PER_WORK;
        if (task_stays(core, job, core_task_at(core, i), port))
            return false;
    }
    return true;
}

/* NULL: there are more nodes. */
static const char *port_hopeless(struct core *core, const struct core_job *job,
                                 const struct plan_port *port, struct port_look *look,
                                 uint32_t work_end)
{
    const uint32_t needed = tasks_that_need(core, job, port);
    while (look->node < core_node_count(core) && look->able < needed) {
        look->able += node_can_give(core, job, look->node++, port);
        if (core->pass.work >= work_end)
            return NULL;
    }
    if (look->able >= needed)
        return "";
    return arena_format(&core->scratch, REASON_PORT_NODES, needed, port->begin_at, look->able);
}

const char *fixed_ports_hopeless(struct core *core, const struct core_job *job, uint16_t role_end,
                                 struct port_look *look, uint32_t work_end)
{
    assert(job->id.v && role_end <= job->plan->role_count);
    for (; look->role < role_end; *look = (struct port_look){.role = look->role + 1u}) {
        const struct plan_role *role = &job->plan->roles[look->role];
        if (!role_is_waiting(job, policy_of(core, job), look->role))
            continue;
        for (; look->port < role->port_count;
             *look = (struct port_look){.role = look->role, .port = look->port + 1u}) {
            const struct plan_port *port = &role->ports[look->port];
            const char *why = port->begin_at ? port_hopeless(core, job, port, look, work_end) : "";
            if (!why || *why)
                return why;
        }
    }
    return "";
}
