/* state.h — the tables of the core. Inside src/core only.
 *
 * Each part has a header of its own with what the others may call: jobs, tasks, nodes, clusters,
 * records, request, schedule, waiting, capacity, gang_ports, start, preempt, reserve, config,
 * restore. What it owns stands there, and only its two files reach for that: tools/check-deps
 * checks it.
 *
 * Tables own their entries; entries name each other by index. core->jobs has the jobs in memory:
 * those not final, and final ones with containers held for debugging. Of other final jobs the name
 * alone is kept, for finished_keep_s: at 5,000 jobs a second that is 300,000 of them.
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
    TIMER_GO_ON,   /* more tasks are told that their attempts end, or created; or more jobs are put
                      in another order */
    TIMER_JOB,     /* job_wake_ms */
};

static inline uint64_t timer_key(enum timer_kind kind, uint32_t of)
{
    return (uint64_t)kind << 32 | of;
}

/* The core's side of one task of a job that has a table of tasks. Kept after the task has ended, so
 * that its row still says where it ran; dropped with the job's attempt. */
struct core_task {
    uint32_t job;   /* NONE: free entry */
    uint64_t table; /* of the job, when it was made: with another one it is to be dropped */
    struct task_ref ref;
    struct attempt_id attempt;
    uint32_t job_attempt;
    uint32_t node, group, group_slot;  /* NONE: nowhere yet */
    uint32_t node_next, node_previous; /* the places taken on one node */
    bool is_taken;                     /* GPUs and ports are its own */
    bool is_changed;                   /* in core->changed_tasks */
    bool is_kept; /* it has ended, and its container stays for debugging: FORGET is to come */
    uint16_t gpu_count, port_count;
    uint8_t cell_level; /* as in a placement_slot */
    uint16_t *gpus;
    struct port_range *ports; /* labels point into the plan */
    char *address;            /* where it is reached, once it runs; NULL: at its node's */
    uint64_t record_step;     /* the step that made the record at record_at … */
    size_t record_at;
    struct attempt_id record_attempt; /* … of this attempt */
};

/* A table of tasks of an attempt that is over. The job may be gone. */
struct old_table {
    uint64_t number;
    struct job_id job;
    uint16_t role_count;
    struct task_ref next; /* whose turn it is to be dropped */
    uint32_t kept;        /* of those that are left; each gets FORGET before it is dropped */
};

/* What the placer knows as one group: (a part of) a gang, or one task. */
struct core_group {
    char *name; /* NULL: free entry */
    uint32_t job;
    uint16_t first_role; /* of the part; or the task's */
    bool is_task;
    bool is_preempted;    /* its end has been asked for */
    bool is_refused;      /* the placer could not take it: the group is known here alone */
    uint32_t taken_count; /* slots taken */
    uint32_t *tasks;      /* by slot */
    uint32_t slot_count;
    uint32_t given_up; /* slots from here on will have no tasks: they are given back with the group;
                          0: none are */
    uint64_t sequence; /* order in which groups were placed */
    uint64_t number;   /* never given twice, as places in the table and names are */
    int64_t placed_ms; /* a restart counts anew */
};

/* What the scheduler has for a job that waits; see docs/rfc/0011-waiting-jobs.md. */
enum waiting_state {
    WAITING_NOT,                 /* nothing of it is in the queue */
    WAITING_QUEUED,              /* it holds nothing */
    WAITING_STARVING,            /* … but room is held back for it */
    WAITING_PLACING,             /* a search for its places goes on; it holds what was found */
    WAITING_PLACING_STARVING,    /* … and room is held back for it */
    WAITING_PREEMPTING,          /* others have been told to end for it; it has holds */
    WAITING_PREEMPTING_STARVING, /* … and room is held back for it */
    WAITING_PAUSED,              /* others ended for it in vain: it may not end any for a while */
    WAITING_PAUSED_STARVING,     /* … but room is held back for it */
    WAITING_STARTING,            /* a large gang: its tasks take their places over several steps */
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
    WAITING_BY_CLOSING,          /* its virtual cluster is closed */
    WAITING_BY_PLACER,           /* another placer has begun: it knows neither holds nor shadows */
    WAITING_CAUSES,
};

/* A group that a job tells to end and waits for: gone when its place has another number. Or
 * (`group` is NONE) what the job of this number holds, which is given back at once. */
struct victim {
    uint32_t group;
    uint64_t number;
};

/* An engine that nodes have told of; see engines.h. */
struct node_engine {
    char *name;
    uint32_t nodes; /* that are not lost */
};

/* The search for a gang that must lie on one engine: which one's turn it is. */
struct engine_try {
    uint16_t engine;          /* 0: any will do */
    bool spares_others;       /* first an engine is looked for on which nobody has to be ended */
    bool could_preempt;       /* there is one on which others could be */
    bool is_never;            /* of all so far, no end of jobs can make room on any */
    bool is_held_back;        /* on one of them */
    struct engine_said *said; /* why not those that were asked; NULL: none was */
    uint16_t said_count, unsaid_count;
};

struct core_job {
    struct job_id id; /* 0: free entry */
    struct plan *plan;
    const char *full_name; /* "user~name", of the name's entry */
    uint32_t name;
    uint64_t table; /* number of the table of its tasks, never given twice; 0: there is none */
    uint32_t kept;  /* tasks in it that are kept */
    struct job life;
    int64_t wake_ms;
    int64_t reserve_ms;                  /* not before this is a reservation tried again */
    int64_t waits_ms;                    /* as job_waits_ms found it last: nothing of it has waited
                                            for longer */
    int64_t reason_ms;                   /* when the reason for waiting was last told */
    uint64_t reason_topic;               /* and what it was about (0: nothing told yet) … */
    uint64_t reason_text_hash;           /* … and word for word */
    const struct submission *submission; /* of the step that creates it */
    size_t record_at;                    /* while is_changed */
    struct hold *holds;                  /* while others are being ended for it */
    uint32_t hold_count;
    struct victim *victims; /* of a gang that has holds: some have ended, but not the last … */
    uint32_t victim_count, victim_room;
    int64_t victims_ms;           /* … and they were named then */
    uint32_t preempt_rounds;      /* others were told to end so often since it waits */
    struct engine_try engine_try; /* while it is searched for, and has holds */
    enum waiting_state waiting;   /* as of the last waiting_changed */
    bool is_alone;                /* a class of its own: what hinders it does not hinder its like */
    bool is_changed;
    bool is_going_on; /* in going_jobs */
    bool is_finished; /* in finished_jobs: forgotten at the end of the step */
    bool is_deleted;  /* and its row with it */
};

struct core_node {
    struct node_facts facts; /* owned; why it is lost stands in its reason */
    char *cordon;            /* why avoided or cordoned, by whom and since when; "" */
    char *refusal;           /* why the placer does not take it, though it is healthy; "" */
    bool is_lost;
    struct node_closing closing; /* its texts are owned */
    struct blame blame;
    uint32_t refusals; /* of tasks, in a row: none has started since … */
    int64_t avoid_ms;  /* … so it is taken last until then */
    uint16_t engine;   /* as in engines.h, where it is counted; 0: lost */
    struct ports ports;
    uint32_t first_task, task_count, gpus_used, cpus_used;
    uint64_t memory_used_mib;
    uint64_t tasks_change; /* number of the last change of its tasks; 0: there was none */
    bool is_counted;       /* in core->capacity, with … */
    uint32_t counted_gpus, counted_cpus;
};

/* Ports of a node that are taken for a task that is about to start. */
struct held_port {
    uint32_t node;
    uint16_t first, count;
};

/* What a preempting job has until its victims have ended: a group that the placer lets wait for its
 * places, or a part of its gang that could be bound already. It ends with the victims, so that no
 * two jobs can wait for each other with what they hold. A gang that is placed in several steps has
 * what was found so far. The holds of a gang are in the order of its parts. */
struct hold {
    char *group;
    struct task_ref task;         /* of a job without gang: whose it is */
    struct placement_slot *slots; /* NULL: it waits */
    uint32_t slot_count;          /* also while it waits */
    uint32_t started;             /* slots that have become tasks of a core_group of this name */
    uint32_t ported;              /* slots whose ports are taken, … */
    struct {                      /* … in this order */
        struct held_port *items;
        size_t count, room;
    } ports;
    size_t ports_next; /* those before it are of tasks by now */
};

enum { PORT_TRIES_MAX = 4 }; /* on other nodes, when ports are in conflict */

/* The job that is placed in several steps: how far it has come. There is one at a time, and no
 * other job is tried meanwhile; see docs/rfc/0016-gangs-in-steps.md. */
enum placing_stage {
    PLACING_SEARCH, /* for places of its parts */
    PLACING_FIXED,  /* they are found: can the end of others give it its fixed ports? … */
    PLACING_TELL,   /* … then its victims are told */
    PLACING_PORTS,  /* all are bound: ports are taken for its tasks */
    PLACING_START,  /* its tasks take their places, with their rows: it is decided */
    PLACING_TASKS,  /* of a job without gang: each task starts by itself, in its turn */
};
/* The search for one part of a gang, or for one task, when it is cut: what is known when it goes
 * on. */
struct part_search {
    uint32_t pieces;    /* so far */
    uint32_t disturbed; /* so many of these found that nodes had changed */
    uint32_t nodes;     /* core->node_changes at the last one */
    bool may_preempt;   /* those who starve had room beside it then */
    bool asks_preempt;  /* it is for what is kept */
};
/* How far it is known whether the end of others can give a job its fixed ports; see gang_ports.h.
 */
struct port_look {
    uint16_t role, port;
    uint32_t node; /* those before it have been looked at for this port, … */
    uint32_t able; /* … and so many of them can give it */
};
struct placing {
    uint32_t job;  /* its id; 0: there is none */
    bool is_fresh; /* nobody has been told to end for it */
    enum placing_stage stage;
    uint32_t next;             /* the first part whose turn has not come in this round */
    struct task_ref task;      /* PORTS, START, TASKS: the task whose turn it is */
    struct part_search search; /* for that part, or for that task */
    struct port_look look;     /* FIXED, TASKS */
    uint32_t told;             /* victims that have been told */
    uint32_t nodes;            /* core->node_changes when this round began */
    uint32_t rounds;
    struct node_id avoid[PORT_TRIES_MAX]; /* where ports were in conflict */
    uint32_t avoid_count;
};

/* Whom the placer has named so far who must go for a part that is searched for: they become the
 * job's victims with its answer. */
struct naming {
    struct {
        struct victim *items;
        size_t count, room;
    } victims;
    bool has_own; /* one of them is of the same job */
};

/* What nobody holds any more, but the placer has not been told yet. */
struct holdover {
    char *group;
    uint32_t task_count;
    bool is_bound;
    bool is_forgotten; /* the placer that knew it is gone */
    struct {           /* to be given back with it */
        struct held_port *items;
        size_t count, room;
    } ports;
};

/* A name that is taken: by a live job, or for a while by one that has ended. */
struct name {
    char *text; /* NULL: free entry */
    uint32_t job;
    int64_t expires_ms; /* INT64_MAX while the job lives */
};

enum { RESTED_MAX = 16 };

enum {
    CAPACITY_GPUS_MAX = 255,
    CAPACITY_PRIORITIES = PLACEMENT_PRIORITY_MAX + 2,
    CAPACITY_PRIORITY_WORDS = (CAPACITY_PRIORITIES + 63) / 64,
};

/* How far the passes over the queue have come; see schedule.h. Items are held by value, because the
 * job may have ended. */
struct pass {
    uint32_t work;               /* of this step, in units of about a quarter of a microsecond */
    struct queue_item turn;      /* the last whose turn came; id 0: none */
    struct queue_item review_at; /* the last class that was reviewed, … */
    uint32_t review_left;        /* … and how many are still to be reviewed */
    int64_t reviewed_ms;         /* when a review of all classes began last */
    bool is_due;                 /* a timer asks for a review */
    uint32_t cuts;               /* steps that this pass has taken so far, without its end */
    int64_t next_ms;             /* when it goes on; 0: it has come to its end */
    uint32_t
        rested[RESTED_MAX]; /* jobs whose search in steps has failed: the others come first … */
    uint32_t rested_count, rested_steps; /* … until all of them have had their turn, or so long */
};

/* What is free on nodes that can be used; see capacity.h. */
struct capacity {
    uint32_t nodes_by_gpus[CAPACITY_GPUS_MAX + 1];    /* by the number of free GPUs */
    uint32_t large_nodes;                             /* with more */
    uint32_t most_gpus;                               /* no node of these has more … */
    uint64_t gpus, cpus;                              /* … nor all of them together */
    uint32_t groups_by_priority[CAPACITY_PRIORITIES]; /* from -1 */
    uint64_t priorities[CAPACITY_PRIORITY_WORDS];     /* a bit for each that has a group */
};

/* Capacity held back for a gang that has waited too long; see reserve.h. */
/* A part of a large gang takes its places in a shadow, in pieces; see reserve.h. */
struct joining {
    uint32_t job; /* id; 0: nobody does */
    uint16_t role;
    bool has_begun;
    uint32_t pieces;
    size_t task_count;
    struct placement_slot *slots;
};

struct reservation {
    uint32_t job;            /* slot of the job that it is for */
    struct placer *shadow;   /* the placer as if all groups of others placed before had ended */
    int64_t starts_ms;       /* by time limits; INT64_MAX unknown; … */
    int64_t starts_asked_ms; /* … as of then */
    bool is_stale;           /* somebody ahead of it has started since, or a node has gone */
    bool is_aged;            /* something has ended or started since starts_ms was found */
    bool has_started; /* some of its tasks have since the shadow was made, and take room there
                         as well: there may be none beside them */
    struct joining joining;
};

/* The shadow of a reservation is being made; see shadow.h. */
enum shadow_stage {
    SHADOW_NONE,
    SHADOW_COPY, /* of the placer, which must not change: what ends and changes is kept */
    SHADOW_TELL, /* that is told to both, and what the job holds is given back in the shadow */
    SHADOW_LIST, /* what runs of others is put in the order in which it ends */
    SHADOW_END,  /* it ends in the shadow */
    SHADOW_FIT,  /* does the job fit by now? */
    SHADOW_MADE, /* all of that has ended there, or nobody needs it any more */
};
enum shadow_purpose {
    SHADOW_FOR_NEW,  /* a job begins to starve */
    SHADOW_FOR_OLD,  /* somebody ahead has started: the shadow of before is worth nothing */
    SHADOW_FOR_TIME, /* only when the job can start is asked */
};
enum shadow_told_kind { TOLD_SLOT, TOLD_GROUP, TOLD_CANCEL, TOLD_NODE, TOLD_OWN };
struct shadow_told {
    enum shadow_told_kind kind;
    char *group; /* NULL: of a node */
    size_t at;   /* the slot, or the node */
};
/* Whether all that waits of a job fits into a shadow: a search for each of its parts. */
enum fitting_stage { FITTING_OVER, FITTING_SEARCH, FITTING_UNDO };
struct fitting {
    enum fitting_stage stage;
    uint16_t engine;             /* where it must lie; 0: anywhere */
    uint16_t role;               /* the next one */
    uint32_t task_count, pieces; /* of the search that goes on */
    bool fits;
    struct {
        char **items; /* groups that the shadow has for this; they are given back */
        size_t count, room;
    } committed;
};
enum { RESERVATIONS_MAX = 16 };

/* A shadow is asked whether there is room beside the job that starves; see room.h. */
enum room_stage {
    ROOM_NONE,
    ROOM_SEARCH, /* for places of whoever asks */
    ROOM_COPY,   /* of the shadow, which must not change: others are to end, but not there */
    ROOM_TELL,   /* what ended and changed meanwhile is told to both */
    ROOM_END,    /* those in the way end in the copy */
    ROOM_COMMIT, /* whoever asks takes its places there */
    ROOM_FIT,    /* does the job that starves fit beside it? */
    ROOM_UNDO,   /* the shadow becomes what it was */
    ROOM_KNOWN,
};
struct room {
    enum room_stage stage;
    uint32_t job; /* id of whoever asks; 0: nobody needs it any more */
    struct task_ref first;
    size_t task_count;
    bool ends_others;
    uint32_t node_changes; /* of the core, when it was asked first, … */
    uint32_t again;        /* … and so often for the same part before */
    char *group, *engine;
    struct node_id *avoid;
    size_t avoid_count;
    struct placement_slot *slots;     /* that it would take; NULL: known in the step that asked */
    uint32_t roomy[RESERVATIONS_MAX]; /* slots of jobs that starve, and have room beside it */
    uint32_t roomy_count;
    uint32_t starving; /* slot of the one whose shadow is asked, or was last; NONE: it is gone, and
                          the shadow is the question's own */
    struct placer *shadow, *copy;
    bool has_group; /* one of them has what asks */
    bool has_room;
    uint32_t pieces, rounds, copy_pieces;
    struct {
        struct shadow_told *items;
        size_t count, room;
    } told;
    size_t told_next;
    struct {
        char **items;
        size_t count, room;
    } victims;
    struct fitting fitting;
};
struct shadow_making {
    enum shadow_stage stage;
    enum shadow_purpose purpose;
    uint32_t job;          /* slot; NONE: nobody needs it any more */
    struct placer *shadow; /* as far as it has come */
    uint32_t pieces;       /* of the copy, so far */
    uint32_t next;         /* group whose turn it is */
    struct {
        struct shadow_told *items;
        size_t count, room;
    } told;
    size_t told_next;
    struct timers endings; /* key: the group */
    uint32_t step, left;   /* groups that end before the next search, and how many are left */
    uint32_t ended;        /* since the last search */
    int64_t ends_ms;       /* of the last of them that has ended */
    int64_t starts_ms;     /* 0: not known yet */
    int64_t asked_ms;
    bool is_aged; /* something has ended meanwhile */
    struct fitting fitting;
};

/* Another placer is being told of the nodes and of what runs; see renew.h. */
enum renewal_stage {
    RENEWAL_NODES,   /* it is told the nodes */
    RENEWAL_CELLS,   /* it makes its cells */
    RENEWAL_GROUPS,  /* the groups that run are listed, and their devices announced */
    RENEWAL_JOBS,    /* the jobs that have something of the old placer are listed */
    RENEWAL_TELL,    /* it is told the groups */
    RENEWAL_WAITING, /* what these jobs have of the old placer is left to it, and they are queued */
};
struct renewal_group {
    uint8_t rank; /* the lowest is told first, … */
    uint16_t first_role;
    uint32_t group;
    uint64_t sequence; /* … of these the one that was placed first */
};
/* The group that is being told. */
struct renewal_telling {
    struct placement_slot *slots; /* NULL: none is */
    uint32_t group;
    uint32_t filled;   /* slots before this one are known */
    uint64_t weight;   /* of these, in devices and tasks */
    uint32_t restarts; /* so often nodes have changed while the placer took it */
    bool is_refused;   /* in pieces */
    bool has_begun; /* it must not hear of slots that end meanwhile, as it would begin anew: … */
    struct {
        uint32_t *items; /* … these are told after it has taken the group */
        size_t count, room;
    } ended;
};
struct renewal {
    struct placer *placer; /* NULL: there is none */
    enum renewal_stage stage;
    bool is_at_once;    /* nothing is told in pieces */
    uint32_t next;      /* the node, group or job whose turn it is */
    uint32_t task;      /* GROUPS: those of the group before this one have had theirs, … */
    bool has_devices;   /* … of which some have devices, … */
    bool lacks_devices; /* … and some have none */
    struct renewal_telling telling;
    uint32_t starving; /* so many of the first jobs of the list have had theirs, and starve */
    struct {
        struct renewal_group *items; /* a heap: the first one is told next */
        size_t count, room;
    } groups;
    struct {
        uint32_t *items; /* slots */
        size_t count, room;
    } jobs;
};

/* Another policy or document was asked for: that of before decides until what runs has been told to
 * the new placer. */
struct policy_change {
    struct core_config config; /* core->config with the new ones; its policy is NULL: none */
    struct placer *placer;     /* NULL: there is none, or core->renewal has it */
};

struct core {
    struct core_config config; /* owns its strings */
    int64_t now_ms;
    uint64_t random;
    uint32_t last_job;
    uint64_t last_attempt, last_group, last_table, last_tasks_change, step;
    int64_t wake_ms;       /* last asked for */
    int64_t nodes_ms;      /* last time that a node changed: reasons told before may not hold */
    uint32_t node_changes; /* so often */
    uint32_t slice;        /* units of work after which a gang goes on in the next step */
    uint32_t ends_left;    /* tasks that may still be told of an end in this step, or created, or
                              whose containers may go */
    uint32_t drops_left;   /* tasks that may still be dropped in this step */
    bool is_unblocked;     /* something was freed: the queue may move */
    int64_t again_ms;      /* the queue is tried again then, for reasons that were not told … */
    int64_t starves_ms;    /* … and then, because a job begins to starve */
    int64_t prepare_ms;    /* about the longest time lately from a place to the start there */
    uint64_t events, gpus_total, gpus_used;
    size_t jobs_live, tasks_live;

    struct {
        struct node_engine *items;
        size_t count, room;
    } engines;
    struct capacity capacity;
    struct pass pass;
    struct placing placing;
    struct naming naming;
    bool is_searching; /* the placer has been asked for a part, and goes on with that search */
    uint32_t creating; /* id of the large gang that got its places last: others wait until all of
                          its tasks are created */
    uint32_t groups_given_up; /* so many have slots that nobody wants: others wait for their end */
    struct placer *placer;
    struct renewal renewal;
    struct policy_change policy_change;
    struct shadow_making shadow_making;
    struct room room;
    struct {
        struct placer **items; /* nobody needs them: some is freed with each step */
        size_t count, room;
    } past_placers;
    struct queue *queue;
    struct timers timers;
    struct {
        struct core_job *items;
        size_t count, room;
    } jobs;
    struct {
        struct core_node *items;
        size_t count, room;
    } nodes;
    struct {
        struct cluster_record *items; /* virtual clusters of which nothing starts, by name; owned */
        size_t count, room;
    } closed;
    struct {
        struct core_task *items;
        size_t count, room;
    } tasks;
    struct {
        struct old_table *items; /* of tasks that are to be dropped, some in each step; in order */
        size_t count, room;
    } old_tables;
    uint32_t old_kept; /* tasks in all of them that are kept */
    struct {
        struct core_group *items;
        size_t count, room;
    } groups;
    struct {
        uint32_t *items;
        size_t count, room;
    } free_jobs, free_tasks, free_groups, free_names, changed_jobs, changed_tasks, finished_jobs,
        queued_jobs, /* in this step */
        going_jobs, /* ids of those whose life goes on with the next step (job_goes_on), in order */
        blamed,     /* nodes with a blame that still counts */
        refusing;   /* nodes that are taken last because they refused tasks */
    struct {
        struct name *items;
        size_t count, room;
    } names;
    struct timers name_timers; /* key: the name */
    struct id_map job_ids, task_keys, attempts;
    struct text_map job_names, node_names, group_names, hold_names;
    struct {
        struct holdover *items; /* in the order in which they are given back, from `next` on */
        size_t count, room;
    } holdovers;
    size_t holdover_next;
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

/* All that follows an event: start what can start, write the rows. */
void core_step_end(struct core *core);

#endif
