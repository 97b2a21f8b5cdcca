/* task.h — the task that a request names. */
#ifndef API_TASK_H
#define API_TASK_H
#include "api/call.h"

/* The number of a role of the job; -1: it has none of this name. */
int call_role(struct call *call, struct job_id job, struct text name, int32_t *role);

/* The task of the current attempt with this role (at NULL: any) and index. One row is read, however
 * many tasks the job has. */
int call_task_find(struct call *call, struct job_id job, struct text role, int64_t index,
                   struct task_record *task, bool *is_there);
/* The task with this role (at NULL: any) and index, as its newest try is. NoTaskError. */
int call_task(struct call *call, const struct store_job *job, struct text role, int64_t index,
              struct task_record *task);

/* The one that the body names (`role`, `index`; without them the first), which must run: else
 * ConflictJobError. */
int call_running_task(struct call *call, const struct doc *body, const struct store_job *job,
                      struct task_record *task);

#endif
