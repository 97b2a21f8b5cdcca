/* jobs.h — makes, steps, queues and forgets the jobs in memory. Inside src/core only.
 *
 * Owns core->jobs, and the tables by which a job is found: by its id, and by its user and name.
 * What job_step decides about one job is carried out here in the tables of the others.
 */
#ifndef CORE_JOBS_H
#define CORE_JOBS_H
#include <assert.h>

#include "core/state.h"

struct core_job *core_job_find(struct core *core, struct job_id id); /* NULL: not in memory */
/* Slots of the table, free ones included: those have no id. */
static inline uint32_t core_job_slots(const struct core *core)
{
    return (uint32_t)core->jobs.count;
}
static inline struct core_job *core_job_at(const struct core *core, uint32_t slot)
{
    assert(slot < core->jobs.count);
    return &core->jobs.items[slot];
}
static inline uint32_t core_job_slot(const struct core *core, const struct core_job *job)
{
    assert(job >= core->jobs.items && job < core->jobs.items + core->jobs.count);
    return (uint32_t)(job - core->jobs.items);
}
/* NULL and ERR_CONFLICT when the name is taken; the plan stays the caller's then. */
struct core_job *core_job_add(struct core *core, struct job_id id, struct plan *plan,
                              struct err *err);
/* Its name stays taken until `name_until_ms`. */
void core_job_forget(struct core *core, struct core_job *job, int64_t name_until_ms);
const struct job_policy *policy_of(struct core *core, const struct core_job *job);
void core_job_step(struct core *core, struct core_job *job, const struct job_event *event);
void core_job_apply(struct core *core, struct core_job *job); /* core->actions */
/* What the lives of jobs have left over of steps before, as much of it as one step may do. */
void core_jobs_go_on(struct core *core);
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
size_t names_expiring(const struct core *core); /* whose jobs have ended */
/* One that is final, with its row, at the end of the step; its containers that are kept for
 * debugging go in this step and the next ones. */
void core_job_delete(struct core *core, struct core_job *job);
/* Those that have become final in this step, and whose containers nobody holds. */
void core_jobs_forget_finished(struct core *core);
void core_jobs_copy(struct core *to, const struct core *from); /* `to` has none yet */
void core_jobs_release(struct core *core);

#endif
