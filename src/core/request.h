/* request.h — what a job asks of the placer, and the shape by which the queue compares jobs. Inside
 * src/core only.
 *
 * Owns nothing.
 */
#ifndef CORE_REQUEST_H
#define CORE_REQUEST_H
#include "core/state.h"

struct request {
    struct placement_request placement;
    struct task_ref *tasks; /* by slot */
    size_t task_count;
};
/* Tasks of the part of a gang that begins with `first_role`. */
uint32_t part_task_count(struct core *core, const struct core_job *job, uint16_t first_role);
/* The part of a gang that begins with `first_role`; everything in `arena`. */
void request_of_part(struct core *core, const struct core_job *job, uint16_t first_role,
                     struct arena *arena, struct request *request);
void request_of_task(struct core *core, const struct core_job *job, struct task_ref task,
                     uint32_t task_attempt, struct arena *arena, struct request *request);
bool role_is_waiting(const struct core_job *job, const struct job_policy *policy, uint16_t role);
struct text shape_of(struct core *core, const struct core_job *job, struct arena *arena);

#endif
