/* task.h — the task that a request names. */
#ifndef API_TASK_H
#define API_TASK_H
#include "api/call.h"

/* The task with this role (at NULL: any) and index, as its newest try is. NoTaskError. */
int call_task(struct call *call, const struct store_job *job, struct text role, int64_t index,
              struct task_record *task);

/* The one that the body names (`role`, `index`; without them the first), which must run: else
 * ConflictJobError. */
int call_running_task(struct call *call, const struct doc *body, const struct store_job *job,
                      struct task_record *task);

#endif
