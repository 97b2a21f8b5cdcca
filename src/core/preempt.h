/* preempt.h — preemption: what a job holds while others are ended for it. Inside src/core only.
 *
 * Owns the holds of a job, its rounds and its pauses.
 */
#ifndef CORE_PREEMPT_H
#define CORE_PREEMPT_H
#include "core/start.h"
#include "core/state.h"

struct hold *hold_find(struct core_job *job, const char *group);
/* `slots` NULL: the placer keeps what it waits for. */
void hold_add(struct core *core, struct core_job *job, const char *group,
              const struct placement_slot *slots, size_t slot_count);
void holds_copy(struct core *core, struct core_job *to, const struct core_job *from);
/* The job that has a hold of this name, or NULL. */
struct core_job *hold_holder(const struct core *core, const char *group);
void hold_forget(struct core *core, struct core_job *job, const char *group); /* it is placed */
void holds_forget(struct core *core, struct core_job *job); /* the placer knows nothing of them */
void holds_release(struct core *core, struct core_job *job);
void preempt_release(struct core *core); /* after all holds */
/* It could not start although others have ended for it: not again soon, and ever more rarely. */
void preemption_failed(struct core *core, struct core_job *job);
/* A job waits that would have to end others; `why_not`: what keeps it from that, or "". */
struct start_outcome preempt_outcome(struct core *core, const struct placement_result *result,
                                     const char *why_not);
/* End them, announced, and wait for that. */
struct start_outcome victims_end(struct core *core, struct core_job *job,
                                 const char *const *victims, size_t count);
/* Does a gang wait for some of them still, and for nothing else? Then to try it again is in vain.
 */
bool victims_are_left(const struct core *core, struct core_job *job);
/* As victims_end said, of those that are left; there must be some. */
struct start_outcome victims_outcome(struct core *core, struct core_job *job);

#endif
