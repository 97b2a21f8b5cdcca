/* waiting.h — where a waiting job stands with the scheduler: the states of
 * docs/rfc/0011-waiting-jobs.md.
 *
 * Pure. Owns nothing: the state is found from what the core has for the job, and each change is
 * checked against the table. Inside src/core only.
 */
#ifndef CORE_WAITING_H
#define CORE_WAITING_H
#include "core/state.h"

/* As the table says; staying where it is is always allowed. */
bool waiting_can_change(enum waiting_cause cause, enum waiting_state from, enum waiting_state to);
/* Found from what the core has for the job. */
enum waiting_state waiting_state(const struct core *core, const struct core_job *job);
/* Said by whoever changed what the state is found from: asserts that the table allows it. */
void waiting_changed(struct core *core, struct core_job *job, enum waiting_cause cause);

#endif
