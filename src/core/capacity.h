/* capacity.h — totals of what is free, which tell without a search that a job cannot start. Inside
 * src/core only.
 *
 * Owns core->capacity.
 */
#ifndef CORE_CAPACITY_H
#define CORE_CAPACITY_H
#include "core/state.h"

void capacity_update(struct core *core, uint32_t node); /* something of it has changed */
void capacity_group(struct core *core, const struct core_group *group, bool is_added);
struct queue_room capacity_room(struct core *core);
struct queue_need capacity_need(struct core *core, const struct core_job *job);
/* Too little is free for this job, whatever the placer may think. */
bool capacity_is_short(struct core *core, const struct core_job *job);

#endif
