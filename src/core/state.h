/* state.h — what the parts of the core share. Inside src/core only.
 *
 * Tables own their entries; entries name each other by index. `live` are the jobs in memory: those
 * not final, and final ones with containers held for debugging. Of other final jobs the name alone
 * is kept, for finished_keep_s: at 5,000 jobs a second that is 300,000 of them.
 */
#ifndef CORE_STATE_H
#define CORE_STATE_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "core/core.h"
#include "core/plan.h"
#include "core/ports.h"
#include "core/queue.h"
#include "core/timers.h"
#include "job/blame.h"
#include "job/job.h"

#define NONE UINT32_MAX

/* What a timer is for, and of which node or job: its key. Equal times come in this order. */
enum timer_kind {
    TIMER_NODE,    /* the blame of a node has decayed */
    TIMER_AGAIN,   /* everything may be tried again: for reasons that were not told, … */
    TIMER_STARVES, /* … because a job begins to starve, … */
    TIMER_PREEMPT, /* … because a job may preempt again */
    TIMER_QUEUE,   /* the pass goes on */
    TIMER_JOB,     /* job_wake_ms */
};

static inline uint64_t timer_key(enum timer_kind kind, uint32_t of)
{
    return (uint64_t)kind << 32 | of;
}

/* The core's side of one task of a job that has a table of tasks. Kept after the task has ended, so
 * that its row still says where it ran; dropped with the job's attempt. */
struct seat {
    uint32_t job; /* NONE: free entry */
    struct task_ref task;
    struct attempt_id attempt;
    uint32_t job_attempt;
    uint32_t node, group, group_slot;  /* NONE: nowhere yet */
    uint32_t node_next, node_previous; /* the places taken on one node */
    bool is_taken;                     /* GPUs and ports are its own */
    bool is_changed;                   /* in core->changed_seats */
    uint16_t gpu_count, port_count;
    uint8_t cell_level; /* as in a placement_slot */
    uint16_t *gpus;
    struct port_range *ports; /* labels point into the plan */
    uint64_t record_step;     /* the step that made the record at record_at … */
    size_t record_at;
    struct attempt_id record_attempt; /* … of this attempt */
};

/* What the placer knows as one group: (a part of) a gang, or one task. */
struct group {
    char *name; /* NULL: free entry */
    uint32_t job;
    uint16_t first_role; /* of the part; or the task's */
    bool is_task;
    bool is_preempted; /* its end has been asked for */
    bool is_refused;   /* the placer could not take it: the group is known here alone */
    uint32_t live;     /* slots taken */
    uint32_t *seats;   /* by slot */
    uint32_t slot_count;
    uint64_t sequence; /* order in which groups were placed */
    int64_t placed_ms; /* a restart counts anew */
};

/* What the scheduler has for a job that waits; see docs/rfc/0011-waiting-jobs.md. */
enum waiting_state {
    WAITING_NOT,                 /* nothing of it is in the queue */
    WAITING_QUEUED,              /* it holds nothing */
    WAITING_STARVING,            /* … but room is held back for it */
    WAITING_PREEMPTING,          /* others have been told to end for it; it has holds */
    WAITING_PREEMPTING_STARVING, /* … and room is held back for it */
    WAITING_PAUSED,              /* others ended for it in vain: it may not end any for a while */
    WAITING_PAUSED_STARVING,     /* … but room is held back for it */
    WAITING_STATES,
};
enum waiting_cause {
    WAITING_BY_QUEUE,            /* the job's life asks for a place */
    WAITING_BY_UNQUEUE,          /* nothing of it waits any more: placed, stopped, ended */
    WAITING_BY_TRY,              /* the pass over the queue has tried to start it */
    WAITING_BY_TAKEN,            /* a job of higher priority takes what it holds */
    WAITING_BY_TIME,             /* its pause is over */
    WAITING_BY_STARVATION,       /* it has waited so long that it gets a reservation */
    WAITING_BY_RESERVATION_LOST, /* to a job ahead of it, for lack of a port, or of any hope */
    WAITING_BY_PLACER,           /* another placer has begun: it knows neither holds nor shadows */
    WAITING_CAUSES,
};

struct live {
    struct job_id id; /* 0: free entry */
    struct plan *plan;
    const char *full_name; /* "user~name", of the name's entry */
    uint32_t name;
    struct job job;
    int64_t wake_ms;
    int64_t reserve_ms;                  /* not before this is a reservation tried again */
    int64_t reason_ms;                   /* when the reason for waiting was last told */
    uint64_t reason_topic;               /* and what it was about (0: nothing told yet) … */
    uint64_t reason_text_hash;           /* … and word for word */
    const struct submission *submission; /* of the step that creates it */
    size_t record_at;                    /* while is_changed */
    struct hold *holds;                  /* while others are being ended for it */
    uint32_t hold_count;
    uint32_t preempt_rounds;    /* others were told to end so often since it waits */
    uint32_t preempt_failures;  /* others were ended for nothing so often */
    int64_t preempt_after_ms;   /* not before this again */
    enum waiting_state waiting; /* as of the last waiting_changed */
    bool is_alone;              /* a class of its own: what hinders it does not hinder its like */
    bool is_changed;
    bool is_finished; /* in finished_jobs: forgotten at the end of the step */
    bool is_deleted;  /* and its row with it */
};

struct node {
    struct node_facts facts; /* owned; why it is lost stands in its reason */
    char *cordon;            /* why avoided or cordoned, by whom and since when; "" */
    char *refusal;           /* why the placer does not take it, though it is healthy; "" */
    bool is_lost;
    struct blame blame;
    struct ports ports;
    uint32_t first_seat, seat_count, gpus_used, cpus_used;
    uint64_t memory_used_mib;
    bool is_counted; /* in core->capacity, with … */
    uint32_t counted_gpus, counted_cpus;
};

/* What a preempting job has until its victims have ended: a group that the placer lets wait for its
 * places, or a part of its gang that could be bound already. It ends with the victims, so that no
 * two jobs can wait for each other with what they hold. */
struct hold {
    char *group;
    struct placement_slot *slots; /* NULL: it waits */
    uint32_t slot_count;
};

/* A name that is taken: by a live job, or for a while by one that has ended. */
struct name {
    char *text; /* NULL: free entry */
    uint32_t job;
    int64_t expires_ms; /* INT64_MAX while the job lives */
};

enum { CAPACITY_GPUS_MAX = 255, CAPACITY_PRIORITIES = PLACEMENT_PRIORITY_MAX + 2 };

/* How far the passes over the queue have come; see core_schedule.c. Items by value: the job may be
 * gone. */
struct pass {
    uint32_t work;          /* of this step, in units of about a quarter of a microsecond */
    struct queue_item turn; /* the last whose turn came; id 0: none */
    struct queue_item look; /* the last looked at, … */
    uint32_t looks;         /* … and how many still are */
    int64_t looked_ms;      /* all were looked at, last time */
    bool is_due;            /* a timer asks for a look */
    uint32_t cuts;          /* steps that this pass has taken so far, without its end */
    int64_t next_ms;        /* when it goes on; 0: it has come to its end */
};

/* What is free on nodes that can be used; see core_capacity.c. */
struct capacity {
    uint32_t nodes_by_gpus[CAPACITY_GPUS_MAX + 1]; /* by the number of free GPUs */
    uint32_t large_nodes;                          /* with more */
    uint64_t cpus;
    uint32_t groups_by_priority[CAPACITY_PRIORITIES]; /* from -1 */
    uint32_t lowest;                                  /* none below it */
};

struct reservation;

struct core {
    struct core_config config; /* owns its strings */
    int64_t now_ms;
    uint64_t random;
    uint32_t last_job;
    uint64_t last_attempt, step;
    int64_t wake_ms;    /* last asked for */
    int64_t nodes_ms;   /* last time that a node changed: reasons told before may not hold */
    bool is_unblocked;  /* something was freed: the queue may move */
    int64_t again_ms;   /* the queue is looked at again then, for reasons that were not told … */
    int64_t starves_ms; /* … and then, because a job begins to starve */
    int64_t prepare_ms; /* about the longest time lately from a place to the start there */
    uint64_t events, gpus_total, gpus_used;
    size_t jobs_live, tasks_live;

    struct capacity capacity;
    struct pass pass;
    struct placer *placer;
    struct queue *queue;
    struct timers timers;
    struct {
        struct live *items;
        size_t count, room;
    } jobs;
    struct {
        struct node *items;
        size_t count, room;
    } nodes;
    struct {
        struct seat *items;
        size_t count, room;
    } seats;
    struct {
        struct group *items;
        size_t count, room;
    } groups;
    struct {
        uint32_t *items;
        size_t count, room;
    } free_jobs, free_seats, free_groups, free_names, changed_jobs, changed_seats, finished_jobs,
        queued_jobs, /* in this step */
        blamed;      /* nodes with a blame that still counts */
    struct {
        struct name *items;
        size_t count, room;
    } names;
    struct timers name_timers; /* key: the name */
    struct id_map job_ids, seat_keys, attempts;
    struct text_map job_names, node_names, group_names, hold_names;
    struct id_map known_shapes; /* hashes of requests that the placer did not refuse */

    struct {
        struct reservation *items;
        size_t count, room;
    } reservations;

    struct output *output; /* of the step */
    struct arena scratch;  /* for the step */
    struct job_output actions;
    struct job_policy policy; /* scratch of policy_of, … */
    uint32_t policy_job;      /* … of this job; 0: none */
    struct job_role_policy role_policies[JOB_ROLES_MAX];
};

/* core_jobs.c: the table of jobs, and what a step of one job's life means for the rest */
struct live *live_find(struct core *core, struct job_id id); /* NULL: not in memory */
uint32_t live_slot(const struct core *core, const struct live *live);
/* NULL and ERR_CONFLICT when the name is taken; the plan stays the caller's then. */
struct live *live_add(struct core *core, struct job_id id, struct plan *plan, struct err *err);
/* Its name stays taken until `name_until_ms`. */
void live_forget(struct core *core, struct live *live, int64_t name_until_ms);
/* A job of the store comes back into memory; the plan becomes ours in any case. */
struct live *live_recall(struct core *core, const struct job_record *record, struct plan *plan,
                         struct err *err);
const struct job_policy *policy_of(struct core *core, const struct live *live);
void live_step(struct core *core, struct live *live, const struct job_event *event);
void live_apply(struct core *core, struct live *live); /* core->actions */
/* In all, as it was scaled. */
struct live_size {
    uint32_t tasks;
    uint64_t gpus;
};
struct live_size live_size(struct core *core, const struct live *live);
/* What the queue knows of a job. */
struct queue_item live_item(struct core *core, const struct live *live);
void live_queue(struct core *core, struct live *live);
void names_expire(struct core *core);

/* core_seats.c: places, groups, ports */
struct seat *seat_find(struct core *core, uint32_t job, struct task_ref task);
struct seat *seat_of_attempt(struct core *core, struct attempt_id attempt);
struct seat *seat_get(struct core *core, uint32_t job, struct task_ref task); /* made if need be */
void seat_index(struct core *core, uint32_t at);
void seat_attempt(struct core *core, struct seat *seat, struct attempt_id attempt);
void seat_set(struct core *core, struct seat *seat, const struct placement_slot *slot,
              const struct port_range *ports, size_t port_count);
bool seat_has_gpu(const struct seat *seat, uint16_t gpu);
void seat_take(struct core *core, struct seat *seat);
void seat_release(struct core *core, struct seat *seat);
void seat_drop(struct core *core, struct seat *seat);
void seats_drop(struct core *core, struct live *live); /* all of the job */
uint32_t core_group_add(struct core *core, struct live *live, const char *name, uint16_t first_role,
                        bool is_task, uint32_t slot_count);
struct group *core_group_find(struct core *core, const char *name);

/* core_nodes.c */
void node_event(struct core *core, const struct event *event);
void node_lost_event(struct core *core, const struct event *event);
void node_pardon_event(struct core *core, const struct event *event);
/* Has its level changed? `what`: the failure, for people. */
bool node_blame(struct core *core, uint32_t node, double weight, const char *what);
/* Nodes that nothing can be placed on, with the reasons: "; not used: n1 (cordoned by …), …"; ""
 * when there are none. In `arena`. */
const char *nodes_not_used(const struct core *core, struct arena *arena);
void node_blame_look(struct core *core, uint32_t node); /* its time has come to be forgiven */
double node_blame_now(const struct core *core, const struct node *node);
bool node_is_cordoned(const struct node *node);
uint32_t node_find(const struct core *core, const char *name); /* NONE */
void node_tell_placer(struct core *core, struct placer *placer, uint32_t node);
int node_restore(struct core *core, const struct node_record *record, struct err *err);
void node_release(struct node *node);

/* core_records.c: rows, stories, answers, traces */
void record_job_changed(struct core *core, struct live *live);
void record_job_then(struct core *core, struct live *live, const struct job *job);
void record_task_changed(struct core *core, struct seat *seat);
void record_task_then(struct core *core, struct seat *seat, const struct job_task *task);
void record_task_removed(struct core *core, const struct live *live, struct task_ref task);
void record_job_deleted(struct core *core, struct job_id id);
void record_node(struct core *core, uint32_t node);
void record_story(struct core *core, const struct live *live, const struct seat *seat,
                  bool is_warning, const char *reason, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void records_flush(struct core *core);
struct command *command_add(struct core *core, enum command_kind kind, const struct live *live,
                            struct task_ref task, struct attempt_id attempt);
void core_answer(struct core *core, const struct event *event, struct job_id job,
                 const struct err *err); /* err NULL: done */
void core_trace(struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *task_name(struct core *core, const struct live *live, struct task_ref task);

/* core_request.c: what a job asks of the placer */
struct request {
    struct placement_request placement;
    struct task_ref *tasks; /* by slot */
    size_t task_count;
};
/* Tasks of the part of a gang that begins with `first_role`. */
uint32_t part_task_count(struct core *core, const struct live *live, uint16_t first_role);
/* The part of a gang that begins with `first_role`; everything in `arena`. */
void request_of_part(struct core *core, const struct live *live, uint16_t first_role,
                     struct arena *arena, struct request *request);
void request_of_task(struct core *core, const struct live *live, struct task_ref task,
                     uint32_t task_attempt, struct arena *arena, struct request *request);
bool role_is_waiting(const struct live *live, const struct job_policy *policy, uint16_t role);
struct text shape_of(struct core *core, const struct live *live, struct arena *arena);

/* What became of a try to start a job. */
struct outcome {
    enum placement_kind kind;
    const char *reason;    /* not BIND */
    uint64_t topic;        /* of the reason, as in a placement_result */
    bool is_never;         /* WAIT that no end of jobs can cure */
    bool is_port_conflict; /* there is room, but not the ports */
    bool is_of_job;        /* jobs of the same shape may start all the same */
    bool is_held_back;     /* jobs of the same shape with shorter time limits may start */
};

/* core_schedule.c */
void core_schedule(struct core *core);
/* 0, or why the placer will never serve this job. */
int core_check_request(struct core *core, struct live *live, struct err *err);
/* Numbers and holders come and go with every task that ends: a reason of the topic that the job was
 * told last is told again only now and then, and makes no line of the job's story. */
void wait_reason_tell(struct core *core, struct live *live, const char *reason, uint64_t topic);
/* All that follows an event: start what can start, write the rows. */
void core_step_end(struct core *core);

/* core_capacity.c */
void capacity_update(struct core *core, uint32_t node); /* something of it has changed */
void capacity_group(struct core *core, const struct group *group, bool is_added);
struct queue_room capacity_room(struct core *core);
struct queue_need capacity_need(struct core *core, const struct live *live);
/* Too little is free for this job, whatever the placer may think. */
bool capacity_is_short(struct core *core, const struct live *live);

/* core_ports.c */
struct gang_ports {
    struct port_range **ranges; /* by slot */
    uint32_t conflict;          /* the node where it failed */
};
/* Find ports for all slots and leave them free: seat_take takes them. NULL, or why not. */
const char *gang_ports_find(struct core *core, const struct live *live,
                            const struct task_ref *tasks, const struct placement_slot *const *slots,
                            size_t count, struct gang_ports *ports);

/* core_start.c: places for what a job waits for */
struct outcome live_start(struct core *core, struct live *live);

/* core_preempt.c */
struct hold *hold_find(struct live *live, const char *group);
/* `slots` NULL: the placer keeps what it waits for. */
void hold_add(struct core *core, struct live *live, const char *group,
              const struct placement_slot *slots, size_t slot_count);
void hold_forget(struct core *core, struct live *live, const char *group); /* it is seated */
void holds_forget(struct core *core, struct live *live); /* the placer knows nothing of them */
void holds_release(struct core *core, struct live *live);
/* It could not start although others have ended for it: not again soon, and ever more rarely. */
void preemption_failed(struct core *core, struct live *live);
/* A job waits that would have to end others; `why_not`: what keeps it from that, or "". */
struct outcome preempt_outcome(struct core *core, const struct placement_result *result,
                               const char *why_not);
/* End them, announced, and wait for that. */
struct outcome victims_end(struct core *core, const struct live *live, const char *const *victims,
                           size_t count);

/* core_waiting.c */
const char *waiting_state_name(enum waiting_state state);
const char *waiting_cause_name(enum waiting_cause cause);
/* As the table says; staying where it is is always allowed. */
bool waiting_can_change(enum waiting_cause cause, enum waiting_state from, enum waiting_state to);
/* Found from what the core has for the job. */
enum waiting_state waiting_state(const struct core *core, const struct live *live);
/* Said by whoever changed what the state is found from: asserts that the table allows it. */
void waiting_changed(struct core *core, struct live *live, enum waiting_cause cause);

/* core_reserve.c: capacity held back for gangs that have waited too long */
struct reservation {
    uint32_t job;            /* slot of the job that it is for */
    struct placer *shadow;   /* the placer as if all groups placed before had ended */
    int64_t starts_ms;       /* by time limits; INT64_MAX unknown; … */
    int64_t starts_asked_ms; /* … as of then */
    bool is_stale;           /* somebody ahead of it has started since */
    bool is_aged;            /* something has ended or started since starts_ms was found */
};
void reserve_update(struct core *core, struct live *live); /* it waits; does it starve? */
void reserve_drop(struct core *core, uint32_t job);
void reserve_drop_all(struct core *core);
bool reserve_has(const struct core *core, uint32_t job);
/* May `live`, behind a starving job, take these slots? "" or why not, in `arena`. */
const char *reserve_check(struct core *core, const struct live *live,
                          const struct placement_request *request,
                          const struct placement_slot *slots, size_t slot_count,
                          struct arena *arena);
/* May it end others to start itself? Only if the starving jobs ahead of it have room beside it:
 * NULL, or the one that has not. Once they have ended for it, its start is not questioned again.
 * Costs a copy of the placer. */
const struct live *reserve_holder(struct core *core, const struct live *live,
                                  const struct placement_request *request, struct arena *arena);
void reserve_commit(struct core *core, const struct live *live,
                    const struct placement_request *request, const struct placement_slot *slots,
                    size_t slot_count);
void reserve_release_slot(struct core *core, const char *group, size_t slot);
void reserve_release_group(struct core *core, const char *group);
void reserve_cancel(struct core *core, const char *group);
void reserve_node(struct core *core, uint32_t node);
void reserve_started(struct core *core); /* a time limit has begun to count */

/* core_config.c */
int config_copy(struct core_config *to, const struct core_config *from, struct err *err);
void config_release(struct core_config *config);
void config_event(struct core *core, const struct event *event);
/* By the order in which they were placed. */
void groups_sort(const struct core *core, uint32_t *groups, size_t count);
/* Tell a new placer what runs. */
void placer_fill(struct core *core, struct placer *placer);
/* Another placer of the same configuration, when the nodes have outdated the one there is. */
void placer_renew(struct core *core);

#endif
