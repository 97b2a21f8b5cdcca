/* gang_ports.h — ports for all tasks that start together. Inside src/core only.
 *
 * Owns nothing: the ports of a node belong to the node, and core_task_take takes them.
 */
#ifndef CORE_GANG_PORTS_H
#define CORE_GANG_PORTS_H
#include "core/state.h"

struct gang_ports {
    struct port_range **ranges; /* by slot */
    uint32_t conflict;          /* the node where it failed */
};
/* Find ports for all slots and leave them free: core_task_take takes them. NULL, or why not. */
const char *gang_ports_find(struct core *core, const struct core_job *job,
                            const struct task_ref *tasks, const struct placement_slot *const *slots,
                            size_t count, struct gang_ports *ports);

/* Take those of one task on its node, one range for each port of its role. NULL, or why there are
 * not all: ranges that were taken even so begin with a port, the others with 0. */
const char *task_ports_take(struct core *core, const struct plan_role *role, uint32_t at,
                            struct port_range *ranges);

/* Why no end of others can give the job its fixed ports, or "": each task of a gang that needs one
 * must have a node of its own, where nobody has the port whom the job may not preempt. The roles
 * from look->role to the one before `role_end` are asked for, from *look on until core->pass.work
 * is so much; at least one node. NULL: there is more. */
const char *fixed_ports_hopeless(struct core *core, const struct core_job *job, uint16_t role_end,
                                 struct port_look *look, uint32_t work_end);

#endif
