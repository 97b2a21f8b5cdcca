/* preempt.h — preemption: what a job holds while others are ended for it. Inside src/core only.
 *
 * Owns the holds of a job, its victims, its rounds and its pauses; core->holdovers.
 */
#ifndef CORE_PREEMPT_H
#define CORE_PREEMPT_H
#include "core/start.h"
#include "core/state.h"

struct hold *hold_find(struct core_job *job, const char *group);
/* `slots` NULL: the placer keeps what it waits for, for so many tasks. */
void hold_add(struct core *core, struct core_job *job, const char *group,
              const struct placement_slot *slots, size_t slot_count);
void holds_copy(struct core *core, struct core_job *to, const struct core_job *from);
/* The job that has a hold of this name, or NULL. */
struct core_job *hold_holder(const struct core *core, const char *group);
void hold_forget(struct core *core, struct core_job *job, const char *group); /* it is placed */
void holds_forget(struct core *core, struct core_job *job); /* the placer knows nothing of them */
/* It holds nothing any more: its holds become holdovers. */
void holds_leave(struct core *core, struct core_job *job);
/* The same, and the placer is told of those that fit into this step. */
void holds_release(struct core *core, struct core_job *job);
/* The job has changed: what a task holds that waits no longer is given back. */
void holds_settle(struct core *core, struct core_job *job);
/* The placer gives back the places of a bound hold, which remains, as one that waits for none. */
void hold_reopen(struct core *core, struct hold *hold);
/* The ports that are taken for its tasks and not yet theirs are free again. */
void hold_ports_give(struct core *core, struct core_job *job);
uint32_t held_ports_of(const struct core *core, uint32_t node); /* so many, of any job */
void preempt_release(struct core *core);                        /* after all holds */

/* Nobody is tried before the placer has been told of all. */
bool holdovers_are_left(const struct core *core);
/* Tell it of as many as fit into the work of the step until `end`; false: some are left. */
bool holdovers_release(struct core *core, uint32_t end);
/* A copy of the placer is to know none of them. */
/* The group of the nth that is left; NULL: there are fewer. */
const char *holdovers_at(const struct core *core, size_t nth);
bool holdovers_has(const struct core *core, const char *group);
/* Another placer begins, which knows none of them: it is not told when they go. */
void holdovers_forget(struct core *core);
void holdovers_copy(struct core *to, const struct core *from);

/* The search for a gang's places that goes on over several steps; NULL: none of this job does. */
struct placing *placing_of(struct core *core, const struct core_job *job);
void placing_forget(struct core *core, const struct core_job *job);
/* A gang gets no place: whatever was found for it is given back. */
void gang_undo(struct core *core, struct core_job *job);
/* Its virtual cluster is closed: the same, and that is no failure of the job. */
void holds_close(struct core *core, struct core_job *job);
/* It could not start although others have ended for it: not again soon, and ever more rarely. */
void preemption_failed(struct core *core, struct core_job *job);
/* It is tried again when its pause is over; also after a restart. */
void pause_watch(struct core *core, const struct core_job *job);
/* A job waits that would have to end others; `why_not`: what keeps it from that, as a REASON_BUT_…
 * says it, or "". */
struct start_outcome preempt_outcome(struct core *core, const struct placement_result *result,
                                     const char *why_not);
/* A job waits for the end of these, which it has told. */
struct start_outcome victims_wait_for(struct core *core, const char *const *victims, size_t count);
/* A search begins: nobody has been named in it. */
void victims_clear(struct core *core, struct core_job *job);
/* Those that are new in a result of the placer, for a part of the job; then all of the part become
 * the job's. */
void victims_name(struct core *core, const struct core_job *job,
                  const struct placement_result *result);
void victims_add(struct core *core, struct core_job *job);
void naming_copy(struct core *to, const struct core *from);
/* Has nobody of this name, that an earlier piece of a search has told, ended since? */
bool victim_is_known(struct core *core, const char *name);
/* Is there one that has not been told to end? */
bool victims_are_new(const struct core *core, const struct core_job *job);
/* End them, announced, from *told on: at least one, and as many as the step's work until `end`
 * allows. False: some are left. */
bool victims_tell(struct core *core, struct core_job *job, uint32_t *told, uint32_t end);
/* Does a gang wait for some of them still, and for nothing else? Then to try it again is in vain.
 */
bool victims_are_left(const struct core *core, struct core_job *job);
/* As victims_wait_for, of those that are left. */
struct start_outcome victims_outcome(struct core *core, struct core_job *job);

#endif
