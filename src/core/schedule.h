/* schedule.h — the pass over the queue, and what waiting jobs are told. Inside src/core only.
 *
 * Owns core->pass. The queue is blocked and unblocked here alone.
 */
#ifndef CORE_SCHEDULE_H
#define CORE_SCHEDULE_H
#include "core/state.h"

void core_schedule(struct core *core);
/* Some of a pass is left to the next steps; the next one goes on with it without a pause. */
bool schedule_is_cut(const struct core *core);
void schedule_hurry(struct core *core);
/* The placer makes cells, still has those of groups that have ended, or is being renewed: nobody is
 * tried meanwhile. */
bool placer_is_untidy(const struct core *core);
/* The job in `slot` has been put into the queue in this step. */
void queued_note(struct core *core, uint32_t slot);
/* Jobs that came to wait behind others of their class hear the reason of the class. */
void queued_tell(struct core *core);
void schedule_forget_shapes(struct core *core); /* another placer has begun */
void schedule_release(struct core *core);
/* 0, or why the placer will never serve this job. */
int core_check_request(struct core *core, struct core_job *job, struct err *err);
/* Numbers and holders come and go with every task that ends: a reason of the topic that the job was
 * told last is told again only now and then, and makes no line of the job's story. */
void wait_reason_tell(struct core *core, struct core_job *job, const char *reason, uint64_t topic);

#endif
