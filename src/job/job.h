/* job.h — the life of one job: its attempts, its tasks and their attempts.
 *
 * Pure. `job_step` is the only thing that changes a job; what is to be done and what has changed
 * comes out as actions, in order. The job knows nothing of nodes, ports or queues: the core finds
 * places, makes records and gives commands. Tables of states, events and side effects:
 * docs/rfc/0004-job-life-cycle.md. Source of the rules: FrameworkController 6.2 – 6.6; early PAI.
 *
 * A waiting job holds no table of tasks: that is made when the first place is found and dropped
 * when a retry begins, so that a queued job costs no more than a
 * `struct job` (JOB_BYTES_MAX).
 *
 * The policy is borrowed for each call and must say the same each time; only rescaling changes the
 * number of instances, and that is kept here.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H
#include "base/text.h"
#include "job/retry.h"
#include "model/completion.h"
#include "model/ids.h"
#include "model/states.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

enum {
    JOB_ROLES_MAX = 256,
    JOB_INSTANCES_MAX = 10000, /* of one role */
    JOB_TASKS_MAX = 20000,     /* of all roles, those that are still ending included */
    JOB_BYTES_MAX = 160,       /* of a struct job: what a job in the queue costs */
};

struct job_role_policy {
    const char *name;                  /* for stories */
    uint32_t instances;                /* at submission */
    int32_t min_failed, min_succeeded; /* below 1: off */
    struct retry_policy task_retry;    /* {0, false} for gang jobs */
};

struct job_policy {
    struct retry_policy retry;
    bool is_gang;                   /* all tasks are placed together or none is */
    bool is_created_only;           /* executionType Create: waits for START */
    uint32_t kill_all_on_completed; /* so many succeeded tasks end the job; 0 = off */
    struct retry_window backoff;    /* 60 … 900 s */
    bool is_backoff_growing;        /* early launcher's window */
    struct retry_pause pause;       /* before other retries that no budget ends */
    uint64_t gang_timeout_s;        /* waiting longer fails the attempt with 251; 0 = never */
    uint64_t time_limit_s;          /* of running, from the job's first start; 0 = none */
    uint64_t debug_hold_s;          /* failed containers are kept so long; 0 = not */
    uint32_t kill_grace_ms, preemption_grace_ms;
    const struct job_role_policy *roles;
    uint16_t role_count;
};

/* One task; read only outside this module. Times: Unix ms, 0 = not yet. */
struct job_task {
    enum life_state state;
    bool is_deletion_pending;  /* scaled down; never counts, never used again */
    bool is_held;              /* its ended container is kept for debugging */
    bool is_let_go;            /* it was kept until now, but FORGET is still to come */
    bool is_uncreated;         /* it has its place, but CREATE is still to come */
    bool is_killed;            /* a KILL was given for this attempt … */
    enum kill_reason killed;   /* … for this reason … */
    int64_t kill_by_ms;        /* … and its grace ends then */
    struct attempt_id attempt; /* of this try; 0: it has no place yet */
    uint32_t task_attempt;     /* index of the try within this task, from 0 */
    uint32_t retries;          /* all */
    uint32_t retries_counted;  /* those against the budget */
    uint32_t quick_ends;       /* tries in a row that ended quickly; not stored */
    int64_t retry_at_ms;       /* CREATION_PENDING: no place is asked for before; not stored */
    int64_t waits_ms; /* CREATION_PENDING: it has waited for a place since then; not stored:
                         after a restart since attempt_created_ms */
    int64_t created_ms, launched_ms, completed_ms;
    int64_t attempt_created_ms, attempt_launched_ms, attempt_completed_ms;
    struct completion *completion; /* owned; of this try, from DELETION_PENDING on; else NULL */
};

struct job_role {
    uint32_t instances; /* wanted now */
    int32_t min_failed, min_succeeded;
    uint32_t succeeded, failed; /* final tasks that are not deletion pending */
    struct job_task *items;
    size_t count, room; /* count > instances while surplus tasks are being ended */
    uint32_t marked;    /* surplus tasks from this index on are deletion pending; not stored */
    uint32_t let_go;    /* none before this index is still to be let go; not stored */
    int64_t waits_ms;   /* tasks that have no entries yet have waited since then; not stored */
};

/* Read only outside this module. */
struct job {
    enum life_state state;
    enum execution execution;
    uint32_t attempt; /* index, never reused: START after a stop goes on counting */
    uint32_t retries_user, retries_platform, retries_resource; /* counted, transient, conflict */
    uint32_t live;       /* tasks with a container, or one asked for */
    uint32_t waiting;    /* tasks that want a place, once there is a table */
    uint32_t paused;     /* tasks that will, when their pause is over */
    uint32_t quick_ends; /* attempts in a row that ended quickly */
    uint32_t held;       /* tasks whose container is kept */
    uint16_t role_count;
    bool has_tasks;    /* the table of the current attempt exists */
    bool is_inherited; /* the completion is the trigger's own, not "all have completed" */
    /* The attempt ends for this reason, and tasks from `next` on have not been told yet; KILL_NONE:
     * all that had not ended have been. */
    enum kill_reason ending : 8;
    /* The attempt of a large gang begins: its tasks get their places over several steps, those that
     * have none yet are not in the table; then, from `next` on, CREATE. Not stored. */
    bool is_starting;
    /* A large job without gang: tasks at the end of some roles have no entries yet; they wait like
     * the others. Not stored: the counts of the roles are. */
    bool is_growing;
    /* A large role was scaled down: some tasks at its end have not been marked and told to end, or
     * have ended and still have entries. Not stored: it follows from the tasks. */
    bool is_shrinking;
    struct task_ref next; /* not stored: after a restart those that were told are passed over */
    int64_t submitted_ms, launched_ms, completed_ms;
    int64_t attempt_created_ms, attempt_launched_ms, attempt_completed_ms;
    int64_t retry_at_ms, hold_until_ms;  /* 0: no such delay runs */
    struct completion *completion;       /* of the attempt; owned; NULL until decided */
    int32_t trigger_role, trigger_index; /* the task that ended the attempt; -1 none */
    uint32_t let_go; /* tasks whose container may go and has not been let go; not stored */
    /* The scheduler's, kept here because they are stored with the job: others were ended for it in
     * vain so often since it started last, and none may be before then. */
    uint32_t preempt_failures;
    int64_t preempt_after_ms;
    struct job_role *roles; /* role_count of them; NULL before the first placement */
};

enum job_event_kind {
    JOB_EVENT_PLACED,         /* places found: for all (gang) or for `tasks`; of a large gang for
                                 the next `tasks`, others follow (`is_in_steps`) */
    JOB_EVENT_REFUSED,        /* no place can ever be found for the job; completion says why */
    JOB_EVENT_TASK_REFUSED,   /* the same for one waiting task; of a gang: for the job */
    JOB_EVENT_TASK_PREPARING, /* the engine has begun */
    JOB_EVENT_TASK_RUNNING,
    JOB_EVENT_TASK_EXITED, /* completion */
    JOB_EVENT_TASK_KILL,   /* the platform ends one task for `completion`: preempted, hung, … */
    JOB_EVENT_PREEMPT,     /* the platform ends the attempt for `completion`: preempted, or a place
                              of it was refused */
    JOB_EVENT_LOST,        /* the attempt's own object went away behind our back (-100) */
    JOB_EVENT_STOP,
    JOB_EVENT_START, /* of a job created only, or again of one that was stopped */
    JOB_EVENT_SCALE,
    JOB_EVENT_RELEASE, /* containers held for debugging may go */
    JOB_EVENT_TIMER,   /* job_wake_ms has come */
    JOB_EVENT_JUDGE,   /* see again whether the tasks that have ended end the attempt: after a
                          restart, should it have come between */
    JOB_EVENT_GO_ON,   /* what an event before has left over: see job_goes_on */
};

struct job_event {
    enum job_event_kind kind;
    int64_t now_ms;
    uint64_t random;           /* for the back-off */
    uint64_t *attempt_last;    /* PLACED: the last attempt id given; counted up for each CREATE */
    uint32_t slice;            /* so many tasks are told of an end, created, let go, entered in the
                                  table or removed from it; 0: all */
    struct task_ref task;      /* TASK_* */
    struct attempt_id attempt; /* TASK_*: events of another attempt are ignored; 0 = the latest */
    const struct task_ref *tasks; /* PLACED; NULL: all */
    size_t task_count;
    bool is_in_steps;                    /* PLACED: CREATE comes when all have their places */
    const struct completion *completion; /* EXITED, KILL, PREEMPT, REFUSED */
    struct {
        uint16_t role;
        uint32_t instances;
        const int32_t *min_failed, *min_succeeded; /* NULL: as before */
    } scale;
};

enum job_action_kind {
    JOB_ACTION_JOB_CHANGED,  /* something of the job; `from` ≠ `to` when its state has */
    JOB_ACTION_TASK_CHANGED, /* likewise of `task` */
    JOB_ACTION_TASK_REMOVED, /* scaled down and gone: no such task any more */
    JOB_ACTION_QUEUE,        /* tasks want places: ask job_waiting_count, job_task_is_waiting */
    JOB_ACTION_UNQUEUE,      /* nothing of the job waits any more */
    JOB_ACTION_CREATE,       /* make `attempt` of `task`, on its place */
    JOB_ACTION_KILL,         /* end it: grace_ms, reason; is_held: keep the container */
    JOB_ACTION_HOLD,         /* it has ended by itself: keep the container until FORGET */
    JOB_ACTION_FORGET,       /* a container held until now may go; not given for those that a new
                                life (JOB_CHANGED from COMPLETED) finds, nor when the job is freed:
                                these are the caller's to forget */
    JOB_ACTION_RELEASE,      /* `task`'s place (node, GPUs, ports) is free */
    JOB_ACTION_ATTEMPT_COMPLETED, /* all places of the attempt are free; job->completion is final */
    JOB_ACTION_COMPLETED,         /* the job is final */
    JOB_ACTION_STORY,             /* reason, message: why */
};

struct job_action {
    enum job_action_kind kind;
    bool is_of_task; /* `task` is set */
    struct task_ref task;
    struct attempt_id attempt; /* CREATE, KILL, HOLD, FORGET, RELEASE, STORY of a task */
    enum life_state from, to;  /* *_CHANGED */
    /* TASK_CHANGED to ATTEMPT_COMPLETED or COMPLETED, JOB_CHANGED to ATTEMPT_COMPLETED, FORGET
     * while the attempt ends: as it was at that moment, in the output's arena, for the history; a
     * retry in the same step changes it. */
    const struct job_task *task_then;
    const struct job *job_then; /* without its roles */
    uint32_t grace_ms;
    bool is_held, is_warning;
    const char *reason;  /* KILL: "stopped", "preempted", …; STORY: CamelCase word */
    const char *message; /* STORY; in the output's arena */
};

/* The caller's; it clears `count` when it has read the actions. */
struct job_output {
    struct arena *arena; /* where messages are made */
    struct job_action *items;
    size_t count, room;
    struct { /* large tables that jobs have dropped: to free them takes its time */
        struct job_role *items;
        size_t count, room;
    } dropped;
};
void job_output_release(struct job_output *output); /* frees all; the arena is the caller's */
/* Free so many tasks of the tables that were dropped, or all; *left: how many more it could. */
void job_output_free_dropped(struct job_output *output, uint32_t *left);

/* A new job, waiting (or created only). QUEUE is among the actions unless it has nothing to place.
 */
void job_init(struct job *job, const struct job_policy *policy, int64_t now_ms,
              struct job_output *output);
void job_release(struct job *job);
/* Its tasks alone; a large table goes to `output`, or is freed at once where that is NULL. */
void job_tasks_drop(struct job *job, struct job_output *output);

/* An event that does not apply (a stale attempt, a job that is final) changes nothing and gives no
 * action. One task or job may change several times in a step: the last counts. */
void job_step(struct job *job, const struct job_policy *policy, const struct job_event *event,
              struct job_output *output);

/* May this be asked for now? 0 or ERR_CONFLICT, ERR_INVALID, ERR_TOO_BIG with the reason. */
int job_can_stop(const struct job *job, struct err *err); /* again is harmless: 0 */
int job_can_start(const struct job *job, struct err *err);
int job_can_delete(const struct job *job, struct err *err); /* only when final */
int job_can_scale(const struct job *job, const struct job_policy *policy, uint16_t role,
                  uint32_t instances, struct err *err);

/* Earliest time at which JOB_EVENT_TIMER has something to do; 0 = never. */
int64_t job_wake_ms(const struct job *job, const struct job_policy *policy);

/* Tasks that want a place now: all of the job before its attempt's first placement. */
uint32_t job_waiting_count(const struct job *job, const struct job_policy *policy);
bool job_task_is_waiting(const struct job *job, const struct job_policy *policy,
                         struct task_ref task);
/* Unix ms: the one that has waited longest has since then; a pause before a retry does not count.
 * Looks at each task in the table. Something of the job must wait. */
int64_t job_waits_ms(const struct job *job, const struct job_policy *policy);
uint32_t job_role_instances(const struct job *job, const struct job_policy *policy, uint16_t role);
/* Tasks in the table, surplus ones included, and those that are still to be entered in it; what the
 * policy wants while there is no table. */
uint32_t job_role_count(const struct job *job, const struct job_policy *policy, uint16_t role);
/* NULL: no such task, or it is not in the table (yet). */
const struct job_task *job_task_find(const struct job *job, struct task_ref task);
/* It has ended, and its container is held, or FORGET is still to come. */
bool job_task_is_kept(const struct job_task *task);
bool job_is_final(const struct job *job); /* COMPLETED; containers may still be held */
/* An attempt ends, and not all of its tasks have been told; or a large gang has all its places, and
 * not all of its tasks have been created; or a job grows or shrinks; or containers that were held
 * for debugging are let go: JOB_EVENT_GO_ON does it for the next ones. */
bool job_goes_on(const struct job *job);
/* Stop has been asked for and the job does not run for a new start. */
bool job_is_stop_requested(const struct job *job);
/* Others were ended for it in vain: none may be before `until_ms`. It has started after all. */
void job_preemption_failed(struct job *job, int64_t until_ms);
void job_preemption_settle(struct job *job);

/* Everything of the job itself, for the store, versioned; tasks are rows of their own. */
void job_save(const struct job *job, struct buf *out);
/* Back from job_save. ERR_CORRUPT: not what we wrote. Then every task of the current attempt with
 * job_restore_task, in any order, then job_restore_finish, which checks that none is missing and
 * counts. */
int job_restore(struct job *job, const struct job_policy *policy, struct text saved,
                struct err *err);
/* The same of a job that has ended, which is to be started again and has no table of tasks: START
 * would drop that of its last attempt. ERR_CORRUPT also when it has not ended. */
int job_recall(struct job *job, const struct job_policy *policy, struct text saved,
               struct err *err);
/* Tasks that each role has by now, from job_save: those wanted, also without a row, and the surplus
 * that is being ended. False, and nothing written: it was never scaled nor placed, the plan says
 * how many. */
bool job_saved_counts(struct text saved, uint16_t role_count, uint32_t *counts);
/* The tasks whose containers are kept for debugging, from job_save, the first ones by name. False:
 * it is not what we wrote. */
enum { JOB_HELD_NAMED = 100 };
struct job_held {
    uint32_t count;
    int64_t until_ms; /* 0: the job has not ended, and the time begins with its end */
    struct task_ref tasks[JOB_HELD_NAMED];
};
bool job_saved_held(struct text saved, uint16_t role_count, struct job_held *held);
int job_restore_task(struct job *job, struct task_ref ref, const struct job_task *task,
                     struct err *err); /* copies; *task->completion too */
/* Actions: CREATE for attempts asked for and not seen, KILL for those being ended, with what is
 * left of their grace, QUEUE. */
int job_restore_finish(struct job *job, const struct job_policy *policy, int64_t now_ms,
                       struct job_output *output, struct err *err);

void job_clone(struct job *to, const struct job *from); /* for forecasts */
uint64_t job_hash(const struct job *job);
size_t job_memory(const struct job *job); /* bytes, this struct included */

#endif
