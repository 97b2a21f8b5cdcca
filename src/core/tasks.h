/* tasks.h — where tasks run, and the groups that the placer knows. Inside src/core only.
 *
 * Owns core->tasks and core->groups, and what is counted as taken on a node.
 */
#ifndef CORE_TASKS_H
#define CORE_TASKS_H
#include "core/ports.h"
#include "core/state.h"

struct core_task *core_task_find(struct core *core, uint32_t slot, struct task_ref ref);
struct core_task *core_task_of_attempt(struct core *core, struct attempt_id attempt);
struct core_task *core_task_get(struct core *core, uint32_t slot,
                                struct task_ref ref); /* made if need be */
void core_task_index(struct core *core, uint32_t at);
void core_task_attempt(struct core *core, struct core_task *task, struct attempt_id attempt);
void core_task_set(struct core *core, struct core_task *task, const struct placement_slot *slot,
                   const struct port_range *ports, size_t port_count);
bool core_task_has_gpu(const struct core_task *task, uint16_t gpu);
void core_task_take(struct core *core, struct core_task *task);
void core_task_release(struct core *core, struct core_task *task);
void core_task_drop(struct core *core, struct core_task *task);
void core_tasks_drop(struct core *core, struct core_job *job); /* all of the job */
uint32_t core_group_add(struct core *core, struct core_job *job, const char *name,
                        uint16_t first_role, bool is_task, uint32_t slot_count);
struct core_group *core_group_find(struct core *core, const char *name);
/* By the order in which they were placed. */
void groups_sort(const struct core *core, uint32_t *groups, size_t count);

#endif
