/* output.h — what a step gives: records to make durable, commands to carry out afterwards, answers
 * to those who asked, trace lines that say why.
 *
 * Pure. Owned and cleared by the caller; every string lives in `arena` until output_clear. Rows are
 * whole: a record replaces the row of its key. Several steps may gather in one output; of several
 * records with one key the last one counts (the store may skip the others). Keys: of a job (id,
 * attempt), of a task (job, task, attempt): when a try ends and the next begins in one step, both
 * rows of the history are given, the current one last.
 */
#ifndef CORE_OUTPUT_H
#define CORE_OUTPUT_H
#include "base/arena.h"
#include "model/cluster.h"
#include "model/completion.h"
#include "model/ids.h"
#include "model/node.h"
#include "model/states.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct submission;

enum record_kind {
    RECORD_JOB,
    RECORD_TASK,
    RECORD_STORY,
    RECORD_NODE,
    RECORD_CLUSTER,
    RECORD_JOB_DELETED
};

/* Row of `jobs`, and of `job_attempts` under (id, attempt). Times: Unix ms, 0 = not yet. */
struct job_record {
    struct job_id id;
    const struct submission *submission; /* only in the record that creates the job, else NULL */
    const char *name, *user, *virtual_cluster;
    int32_t priority;
    enum life_state state;
    bool is_stop_requested;
    uint32_t attempt; /* index of the job's attempt, from 0 */
    uint32_t retries_user, retries_platform, retries_resource;
    int64_t retry_at_ms; /* while a back-off runs */
    int64_t submitted_ms, attempt_created_ms, attempt_launched_ms, attempt_completed_ms;
    int64_t launched_ms, completed_ms;
    struct completion completion;        /* of the latest attempt, from LIFE_DELETION_PENDING on */
    int32_t trigger_role, trigger_index; /* -1 = none */
    const char *trigger;                 /* why the attempt ended, for people */
    const char *reason;                  /* why it waits, "" when it does not */
    uint64_t reason_topic; /* a hash of what the reason is about; 0: none, or not known */
    uint32_t task_count, role_count;
    uint64_t gpu_count;
    struct text extra; /* opaque counters of src/job (job_save), read back by core_restore_job */
};

struct port_range {
    const char *label;
    uint16_t first, count; /* consecutive */
};

/* Row of `tasks` under (job, role, index), and of `task_attempts` under attempt. */
struct task_record {
    struct job_id job;
    struct task_ref task;
    const char *role_name;
    enum life_state state;
    bool is_deletion_pending;           /* scaled down */
    bool is_held;                       /* its ended container is kept for debugging */
    bool is_removed;                    /* scaled down and gone: delete the row of `tasks` */
    struct attempt_id attempt;          /* 0: waits for a place; the tries before have rows */
    uint32_t job_attempt, task_attempt; /* indices from 0 */
    uint32_t retries, accountable_retries;
    const char *node, *address; /* "" before placement */
    const uint16_t *gpus;
    size_t gpu_count;
    uint8_t cell_level; /* of its preassigned cell, as in a placement_slot */
    const struct port_range *ports;
    size_t port_count;
    int64_t created_ms, launched_ms, completed_ms; /* of the task */
    int64_t attempt_created_ms, attempt_launched_ms, attempt_completed_ms;
    struct completion completion;
    enum kill_reason killed; /* while it is being ended; its grace ends at kill_by_ms */
    int64_t kill_by_ms;
};

/* One line of a job's story: what happened to the job, for its users (`skep events`). */
struct story_record {
    struct job_id job;
    int32_t role, index;       /* -1: of the job */
    struct attempt_id attempt; /* 0: none */
    bool is_warning;
    int64_t at_ms;
    const char *reason; /* CamelCase word: "Waiting", "Started", "Failed" */
    const char *message;
};

struct node_record {
    struct node_id id;
    struct node_facts facts;     /* its reason: why not healthy, or lost; … */
    bool is_reason_blame;        /* … or rather why avoided or cordoned */
    bool is_cordoned;            /* nothing is started there: somebody asked for that, or … */
    bool is_cordoned_for_blame;  /* … for its failures */
    struct node_closing closing; /* who asked for it */
    bool is_lost;
    double blame;      /* decayed count of platform failures … */
    int64_t blame_ms;  /* … as of this time */
    uint32_t refusals; /* tasks that it refused in a row … */
    int64_t avoid_ms;  /* … so it is taken last until then; 0: it is not */
};

struct record {
    enum record_kind kind;
    union {
        struct job_record job;
        struct task_record task;
        struct story_record story;
        struct node_record node;
        struct cluster_record cluster;
        struct job_id deleted;
    };
};

enum command_kind {
    COMMAND_CREATE, /* create and start the attempt's container; idempotent by attempt id */
    COMMAND_KILL,   /* end it: SIGTERM, after grace_ms SIGKILL; EVENT_TASK_EXITED follows */
    COMMAND_FORGET, /* its end is in the records and nobody holds it: remove what is left of it. One
                     * for each attempt that has ended, at once or when it is no longer held */
    COMMAND_WAKE,   /* EVENT_TIMER at at_ms; the latest call replaces earlier ones */
};

struct command {
    enum command_kind kind;
    struct job_id job;
    struct task_ref task;
    struct attempt_id attempt;
    const char *node;
    int64_t at_ms;
    uint32_t grace_ms;
    bool is_held;       /* KILL: keep the container's files until FORGET */
    const char *reason; /* KILL: told to the task by file and variable: "preempted", "stopped", … */
};

struct answer {
    uint64_t request;
    int code; /* 0 or ERR_* */
    struct job_id job;
    const char *path, *text;
};

struct output {
    struct arena arena;
    struct {
        struct record *items;
        size_t count, room;
    } records;
    struct {
        struct command *items;
        size_t count, room;
    } commands;
    struct {
        struct answer *items;
        size_t count, room;
    } answers;
    struct {
        const char **items; /* "job alice~train: needs …", without time */
        size_t count, room;
    } trace;
};

void output_init(struct output *output);
void output_clear(struct output *output); /* keeps the memory */
void output_release(struct output *output);
#define cleanup_output __attribute__((cleanup(output_release)))

#endif
