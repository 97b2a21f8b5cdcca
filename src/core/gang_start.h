/* gang_start.h — a large gang whose places are found starts over several steps:
 * docs/rfc/0016-gangs-in-steps.md. Inside src/core only.
 *
 * Owns nothing: what is held for the gang stands in its holds, how far it has come in
 * core->placing.
 */
#ifndef CORE_GANG_START_H
#define CORE_GANG_START_H
#include "core/start.h"

/* Too large to start in one step. */
bool gang_is_large(const struct core *core, size_t task_count);
/* Every part is held, bound: the ports of its tasks come next. `is_fresh`: nobody has been told to
 * end for it, should its search have taken one step. */
struct start_outcome gang_start_begin(struct core *core, struct core_job *job, bool is_fresh);
/* The next step of it. */
struct start_outcome gang_start_go_on(struct core *core, struct core_job *job);
/* It has its places, and CREATE is still to come for some of its tasks. */
bool gang_is_creating(const struct core *core);

#endif
