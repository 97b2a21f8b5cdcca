/* records.h — writes the output of a step: rows, lines of stories, commands, answers and trace
 * lines. Inside src/core only.
 *
 * Owns core->output during a step, and which jobs and tasks have changed in it. A row is written
 * once a step, when all of it is known.
 */
#ifndef CORE_RECORDS_H
#define CORE_RECORDS_H
#include "core/state.h"

void record_job_changed(struct core *core, struct core_job *job);
void record_job_then(struct core *core, struct core_job *job, const struct job *life);
void record_task_changed(struct core *core, struct core_task *task);
void record_task_then(struct core *core, struct core_task *task, const struct job_task *life);
void record_task_removed(struct core *core, const struct core_job *job, struct task_ref task);
void record_job_deleted(struct core *core, struct job_id id);
void record_node(struct core *core, uint32_t node);
void record_cluster(struct core *core, const struct cluster_record *cluster); /* closed or opened */
void record_story(struct core *core, const struct core_job *job, const struct core_task *task,
                  bool is_warning, const char *reason, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void records_flush(struct core *core);
void records_release(struct core *core);
struct command *command_add(struct core *core, enum command_kind kind, const struct core_job *job,
                            struct task_ref task, struct attempt_id attempt);
/* Of a job that may be gone, or of an attempt of before: nothing but its number is needed. */
void command_of_task(struct core *core, enum command_kind kind, struct job_id job,
                     const struct core_task *task);
void core_answer(struct core *core, const struct event *event, struct job_id slot,
                 const struct err *err); /* err NULL: done */
void core_trace(struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *task_name(struct core *core, const struct core_job *job, struct task_ref task);

#endif
