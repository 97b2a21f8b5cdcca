/* tasks.h — where tasks run, and the groups that the placer knows. Inside src/core only.
 *
 * Owns core->tasks and core->groups, and what is counted as taken on a node.
 */
#ifndef CORE_TASKS_H
#define CORE_TASKS_H
#include <assert.h>

#include "core/ports.h"
#include "core/state.h"

static inline struct core_task *core_task_at(const struct core *core, uint32_t at)
{
    assert(at < core->tasks.count);
    return &core->tasks.items[at];
}
static inline uint32_t core_task_index(const struct core *core, const struct core_task *task)
{
    assert(task >= core->tasks.items && task < core->tasks.items + core->tasks.count);
    return (uint32_t)(task - core->tasks.items);
}
/* Slots of the table, free ones included: those have no name. */
static inline uint32_t core_group_slots(const struct core *core)
{
    return (uint32_t)core->groups.count;
}
static inline struct core_group *core_group_at(const struct core *core, uint32_t at)
{
    assert(at < core->groups.count);
    return &core->groups.items[at];
}
static inline uint32_t core_group_index(const struct core *core, const struct core_group *group)
{
    assert(group >= core->groups.items && group < core->groups.items + core->groups.count);
    return (uint32_t)(group - core->groups.items);
}
struct core_task *core_task_find(struct core *core, uint32_t slot, struct task_ref ref);
struct core_task *core_task_of_attempt(struct core *core, struct attempt_id attempt);
struct core_task *core_task_get(struct core *core, uint32_t slot,
                                struct task_ref ref); /* made if need be */
void core_task_attempt(struct core *core, struct core_task *task, struct attempt_id attempt);
/* Where it is reached; NULL: at its node's address. */
void core_task_address(struct core_task *task, const char *address);
void core_task_set(struct core *core, struct core_task *task, const struct placement_slot *slot,
                   const struct port_range *ports, size_t port_count);
bool core_task_has_gpu(const struct core_task *task, uint16_t gpu);
void core_task_take(struct core *core, struct core_task *task);
void core_task_release(struct core *core, struct core_task *task);
void core_task_drop(struct core *core, struct core_task *task);
/* Its container stays after its end, until FORGET is given; or that is given now. */
void core_task_keep(struct core *core, struct core_task *task, bool is_kept);
/* All of the job: nobody finds them any more. What is too much for one step follows later, with
 * FORGET for those that are kept. */
void core_tasks_drop(struct core *core, struct core_job *job);
/* It is to be dropped: an attempt of before. */
bool core_task_is_old(const struct core *core, const struct core_task *task);
/* What is left of them, one at least; false: some are left for the next step. */
bool core_old_tables_drop(struct core *core);
/* Each task that is kept counts for its job or its old table; for core_check. */
bool core_kept_is_counted(const struct core *core);
uint32_t core_group_add(struct core *core, struct core_job *job, const char *name,
                        uint16_t first_role, bool is_task, uint32_t slot_count);
struct core_group *core_group_find(struct core *core, const char *name);
/* Its slots from this one on will have no tasks: their places are given back with the group, when
 * the last of its tasks has ended. */
void core_group_give_up(struct core *core, const char *name, uint32_t first_slot);
void core_tasks_copy(struct core *to, const struct core *from); /* and groups; `to` has none */
void core_tasks_release(struct core *core);

#endif
