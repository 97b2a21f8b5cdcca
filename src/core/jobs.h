/* jobs.h — the jobs in memory, and what a step of the life of one means for the rest. Inside
 * src/core only.
 *
 * Owns core->jobs, their names, and the numbers that lead to them. A job is made, stepped, queued
 * and forgotten here.
 */
#ifndef CORE_JOBS_H
#define CORE_JOBS_H
#include "core/state.h"

struct live *live_find(struct core *core, struct job_id id); /* NULL: not in memory */
uint32_t live_slot(const struct core *core, const struct live *live);
/* NULL and ERR_CONFLICT when the name is taken; the plan stays the caller's then. */
struct live *live_add(struct core *core, struct job_id id, struct plan *plan, struct err *err);
/* Its name stays taken until `name_until_ms`. */
void live_forget(struct core *core, struct live *live, int64_t name_until_ms);
const struct job_policy *policy_of(struct core *core, const struct live *live);
void live_step(struct core *core, struct live *live, const struct job_event *event);
void live_apply(struct core *core, struct live *live); /* core->actions */
/* In all, as it was scaled. */
struct live_size {
    uint32_t tasks;
    uint64_t gpus;
};
struct live_size live_size(struct core *core, const struct live *live);
/* What the queue knows of a job. */
struct queue_item live_item(struct core *core, const struct live *live);
void live_queue(struct core *core, struct live *live);
void names_expire(struct core *core);

#endif
