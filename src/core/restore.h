/* restore.h — makes a core again from the rows of its store. Inside src/core only.
 *
 * Owns nothing. The functions that are given the rows one by one stand in core.h.
 */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H
#include "core/state.h"

/* A job of the store comes back into memory; the plan becomes ours in any case. */
struct core_job *core_job_recall(struct core *core, const struct job_record *record,
                                 struct plan *plan, struct err *err);

#endif
