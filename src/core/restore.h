/* restore.h — makes a core again from the rows of its store. Inside src/core only.
 *
 * Owns nothing. The functions that are given the rows one by one stand in core.h.
 */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H
#include "core/state.h"

/* A job that has ended comes back into memory to be started again, without the tasks of its last
 * attempt; the plan becomes ours in any case. */
struct core_job *core_job_recall(struct core *core, const struct job_record *record,
                                 struct plan *plan, struct err *err);

#endif
