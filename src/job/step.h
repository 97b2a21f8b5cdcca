/* step.h — what the parts of job_step share. Inside src/job only. */
#ifndef JOB_STEP_H
#define JOB_STEP_H
#include "job/job.h"
#include <stdarg.h>

struct step {
    struct job *job;
    const struct job_policy *policy;
    const struct job_event *event;
    struct job_output *output;
    int64_t now_ms;
    uint32_t settled; /* surplus tasks that were removed or renewed in it */
};

/* step.c: the table and its transitions */
struct job_action *step_action(struct step *step, enum job_action_kind kind);
struct job_action *step_task_action(struct step *step, enum job_action_kind kind,
                                    struct task_ref ref);
/* `ref` NULL: of the job */
void step_story(struct step *step, const struct task_ref *ref, bool is_warning, const char *reason,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
/* "retried", "retried in 8 s"; in the arena */
const char *retry_words(struct step *step, uint64_t pause_ms);
const char *step_task_name(struct step *step, struct task_ref ref); /* "worker-3", in the arena */
struct job_task *step_task(struct step *step, struct task_ref ref);

void step_job_state(struct step *step, enum life_state to);
void step_job_changed(struct step *step);
void step_task_state(struct step *step, struct task_ref ref, enum life_state to);
/* As it is now, in the output's arena. */
const struct job_task *step_task_then(struct step *step, const struct job_task *task);

void completion_set(struct completion **slot, const struct completion *completion);
void step_tasks_make(struct step *step); /* the table of a new attempt */
/* At the end of its role. It waits, and is counted already. */
void step_task_add(struct step *step, uint16_t role);
/* The same for one of a large gang that gets its places in several steps. */
void step_task_append(struct step *step, struct task_ref ref);
/* The instances of its roles have changed: up to a slice of new tasks are entered now, more than
 * that grow with JOB_EVENT_GO_ON. */
void step_tasks_grow(struct step *step);
void step_tasks_grow_to(struct step *step, struct task_ref ref); /* this one has an entry now */
void step_tasks_go_on(struct step *step);
uint32_t job_missing_count(const struct job *job); /* tasks wanted, and not in the table */
/* Make the slot a new instance that waits for a place. */
void step_task_renew(struct step *step, struct task_ref ref);

static inline bool task_is_live(const struct job_task *task)
{
    return task->state >= LIFE_CREATION_REQUESTED && task->state <= LIFE_DELETING;
}

/* Is it among the instances wanted, and was all the time? Only such tasks count. */
static inline bool task_is_wanted(const struct job_role *role, size_t index)
{
    return index < role->instances && !role->items[index].is_deletion_pending;
}

static inline bool job_is_completing(const struct job *job)
{
    return life_is_completing(job->state);
}

/* The attempt has places and its end is not yet decided. */
static inline bool job_is_active(const struct job *job)
{
    return job->state >= LIFE_CREATION_REQUESTED && job->state <= LIFE_RUNNING;
}

/* task.c: one task */
/* Those whose pause ends by then want a place again. */
void step_tasks_resume(struct step *step, int64_t until_ms);
int64_t job_tasks_wake_ms(const struct job *job); /* when the first is; INT64_MAX: none is paused */
void step_task_placed(struct step *step, struct task_ref ref);
void step_task_preparing(struct step *step, struct task_ref ref);
void step_task_running(struct step *step, struct task_ref ref);
void step_task_exited(struct step *step, struct task_ref ref, const struct completion *completion);
void step_task_refused(struct step *step, struct task_ref ref, const struct completion *completion);
/* End it for `completion`; a task that waits ends at once. */
void step_task_kill(struct step *step, struct task_ref ref, const struct completion *completion,
                    enum kill_reason reason, uint32_t grace_ms, bool is_held);

/* attempt.c: the job's attempt */
void step_queue(struct step *step); /* a new attempt begins to wait, or to exist without tasks */
void step_judge(struct step *step); /* do the completion policies end the attempt now? */
struct attempt_end {
    struct completion completion;
    const struct task_ref *trigger; /* NULL: none */
    enum kill_reason reason;        /* told to the unfinished tasks; decides their code and grace */
    bool is_external;               /* its object is gone already */
    bool is_inherited;              /* the completion is the trigger's */
};
void step_attempt_end(struct step *step, const struct attempt_end *end);
void step_go_on(struct step *step);
/* After a restart: some tasks of a gang have no place. None has been created, so all is undone. */
void step_start_undo(struct step *step);
void step_attempt_settle(struct step *step); /* complete it when its last container has ended */
void step_retry_begin(struct step *step);
/* Containers held until now are let go: a slice of them, JOB_EVENT_GO_ON does the others. */
void step_forget_held(struct step *step);
void job_task_unhold(struct job *job, struct job_task *task); /* its container is not kept */
int64_t job_deadline_ms(const struct job *job,
                        const struct job_policy *policy); /* INT64_MAX: none */
void step_deadline(struct step *step);

/* scale.c */
void step_scale(struct step *step, uint16_t role, uint32_t instances);
/* Remove or replace ended surplus tasks, a slice of them: what is left follows. */
void step_role_settle(struct step *step, uint16_t role);
void step_surplus_mark(struct step *step, struct task_ref ref); /* unless it is marked already */
void step_shrink_on(struct step *step);                         /* the next slice of them */
void job_surplus_restore(struct job *job); /* what is left to be done with them */

#endif
