#include <assert.h>
#include <string.h>

#include "core/gang_ports.h"
#include "core/nodes.h"
#include "core/state.h"

static bool ports_fixed_take(struct core_node *node, const struct plan_role *role,
                             struct port_range *ranges)
{
    for (size_t i = 0; i < role->port_count; i++) {
        const struct plan_port *port = &role->ports[i];
        if (!port->begin_at)
            continue;
        if (!ports_are_free(&node->ports, port->begin_at, port->count))
            return false;
        ports_take(&node->ports, port->begin_at, port->count);
        ranges[i] =
            (struct port_range){port->label, (uint16_t)port->begin_at, (uint16_t)port->count};
    }
    return true;
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

/* Fixed ones first, so that no free choice takes them away. */
const char *task_ports_take(struct core *core, const struct plan_role *role, uint32_t at,
                            struct port_range *ranges)
{
    struct core_node *node = core_node_at(core, at);
    for (size_t i = 0; i < role->port_count; i++)
        ranges[i] = (struct port_range){role->ports[i].label, 0, 0};
    if (!ports_fixed_take(node, role, ranges))
        return arena_format(&core->scratch, "a fixed port of role %s is taken on node %s",
                            role->name, node->facts.name);
    if (!ports_any_take(core, node, role, ranges))
        return arena_format(&core->scratch, "too few free ports for role %s on node %s", role->name,
                            node->facts.name);
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
