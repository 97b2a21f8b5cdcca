/* jobs.h — the jobs in memory, and what a step of the life of one means for the rest. Inside
 * src/core only.
 *
 * Owns core->jobs, their names, and the numbers that lead to them. A job is made, stepped, queued
 * and forgotten here.
 */
#ifndef CORE_JOBS_H
#define CORE_JOBS_H
#include "core/state.h"

struct core_job *core_job_find(struct core *core, struct job_id id); /* NULL: not in memory */
uint32_t core_job_slot(const struct core *core, const struct core_job *job);
/* NULL and ERR_CONFLICT when the name is taken; the plan stays the caller's then. */
struct core_job *core_job_add(struct core *core, struct job_id id, struct plan *plan,
                              struct err *err);
/* Its name stays taken until `name_until_ms`. */
void core_job_forget(struct core *core, struct core_job *job, int64_t name_until_ms);
const struct job_policy *policy_of(struct core *core, const struct core_job *job);
void core_job_step(struct core *core, struct core_job *job, const struct job_event *event);
void core_job_apply(struct core *core, struct core_job *job); /* core->actions */
/* In all, as it was scaled. */
struct core_job_size {
    uint32_t tasks;
    uint64_t gpus;
};
struct core_job_size core_job_size(struct core *core, const struct core_job *job);
/* What the queue knows of a job. */
struct queue_item core_job_item(struct core *core, const struct core_job *job);
void core_job_queue(struct core *core, struct core_job *job);
void names_expire(struct core *core);

#endif
