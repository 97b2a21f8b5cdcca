/* seats.h — where tasks are: seats, and the groups that the placer knows. Inside src/core only.
 *
 * Owns core->seats and core->groups, and what is counted as taken on a node.
 */
#ifndef CORE_SEATS_H
#define CORE_SEATS_H
#include "core/ports.h"
#include "core/state.h"

struct seat *seat_find(struct core *core, uint32_t job, struct task_ref task);
struct seat *seat_of_attempt(struct core *core, struct attempt_id attempt);
struct seat *seat_get(struct core *core, uint32_t job, struct task_ref task); /* made if need be */
void seat_index(struct core *core, uint32_t at);
void seat_attempt(struct core *core, struct seat *seat, struct attempt_id attempt);
void seat_set(struct core *core, struct seat *seat, const struct placement_slot *slot,
              const struct port_range *ports, size_t port_count);
bool seat_has_gpu(const struct seat *seat, uint16_t gpu);
void seat_take(struct core *core, struct seat *seat);
void seat_release(struct core *core, struct seat *seat);
void seat_drop(struct core *core, struct seat *seat);
void seats_drop(struct core *core, struct live *live); /* all of the job */
uint32_t core_group_add(struct core *core, struct live *live, const char *name, uint16_t first_role,
                        bool is_task, uint32_t slot_count);
struct group *core_group_find(struct core *core, const char *name);
/* By the order in which they were placed. */
void groups_sort(const struct core *core, uint32_t *groups, size_t count);

#endif
