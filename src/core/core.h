/* core.h — the step function over queue, placement and job life cycle.
 *
 * Pure and deterministic: the same events give the same output, to the byte. It never blocks,
 * never logs, and fails for no lack of resource but a stated limit (the answer then says
 * ERR_TOO_BIG and nothing has changed). One thread at a time.
 *
 * Invariants (asserted after each step in tests by core_check): no GPU and no port has two live
 * attempts; a gang is placed whole or not at all; every job not final is queued, waits for a timer,
 * or has a live attempt.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H
#include "core/event.h"
#include "core/output.h"
#include "placement/placement.h"
#include <stdbool.h>
#include <stdint.h>

struct core;
struct err;

enum {
    CORE_JOBS_MAX = 1000000, /* live */
    CORE_NODES_MAX = 100000,
    CORE_ENGINES_MAX =
        1000, /* names in the nodes' facts, since the start; gangs are not placed on others */
    CORE_TASKS_MAX = 2000000, /* of live jobs that have been placed */
};

struct core_config {
    uint16_t port_first, port_last;        /* 15000, 40000 */
    uint32_t backoff_min_s, backoff_max_s; /* transient-conflict: 60, 900 */
    uint32_t retry_pause_first_s;          /* before retries that no budget ends: 1, … */
    uint32_t retry_pause_max_s;            /* … doubling to 300 … */
    uint32_t retry_calm_s;                 /* … until an attempt has run for 600 */
    bool gangs_span_engines;               /* tasks of one gang on several engines: false */
    bool is_backoff_growing;               /* the early launcher's window (job/retry.h): false */
    uint32_t gang_timeout_s;               /* a gang waiting longer ends with 251: 0, never */
    uint32_t kill_grace_ms;                /* 10,000 */
    uint32_t preemption_grace_ms;          /* 30,000: time for a checkpoint */
    uint32_t starvation_after_s;           /* a gang waiting longer gets a reservation: 600 */
    uint32_t finished_keep_s;              /* final jobs stay in memory, names stay taken: 60 */
    uint32_t debug_hold_s;                 /* containers held after failure: 604,800 */
    uint32_t blame_half_life_s;            /* decay of failures counted against a node: 3,600 */
    double blame_avoid, blame_cordon;      /* thresholds: 3, 10 */
    struct text placement_document;        /* the policy's own section: bytes for placer_new */
    const char *policy;                    /* "hived", "best-fit", "spread", "first-fit" */
    const char *order;                     /* of waiting jobs: "priority", "smallest", "fifo" */
};
void core_config_default(struct core_config *config); /* the values above */
/* A copy with strings of its own. ERR_INVALID, with the place in it; then nothing is kept. */
int core_config_copy(struct core_config *to, const struct core_config *from, struct err *err);
void core_config_release(struct core_config *config);
/* The same policy, with the same document? */
bool core_config_same_policy(const struct core_config *a, const struct core_config *b);

/* An empty core; the configuration is copied. NULL, with the place in the configuration:
 * ERR_INVALID (no such policy, the placement document has errors). */
struct core *core_new(const struct core_config *config, struct err *err);
void core_free(struct core *core);

static inline void cleanup_free_core(struct core **core)
{
    core_free(*core);
}
#define cleanup_core __attribute__((cleanup(cleanup_free_core)))

/* An independent deep copy: what is done to one is not seen by the other. For forecasts. */
struct core *core_copy(const struct core *core);

/* For tests and simulations: after so many units of work a step leaves what is still to be done for
 * a gang to the next one (docs/rfc/0016-gangs-in-steps.md). Kept by copies, told anew to each core.
 */
void core_slice_set(struct core *core, uint32_t work);

/* Take one event. What it gives is added to `output`, which the caller makes durable and then
 * carries out. Never fails: a request that cannot be granted is an answer with ERR_*. */
void core_step(struct core *core, const struct event *event, struct output *output);

/* Restart: feed what the store holds, in this order, then finish once. Nodes by their numbers; the
 * virtual clusters that are closed; live jobs only (not final, or with held containers); all their
 * tasks, where rows of earlier attempts of the job are passed over. The plan becomes the core's in
 * any case. ERR_CORRUPT: the rows contradict each other; the core is good for core_free alone then.
 * core_restore_finish gives commands again for all that had been decided and may not have been done
 * (create, kill), and the next wake-up. */
int core_restore_counters(struct core *core, struct job_id last_job,
                          struct attempt_id last_attempt);
int core_restore_node(struct core *core, const struct node_record *record, struct err *err);
int core_restore_cluster(struct core *core, const struct cluster_record *record, struct err *err);
int core_restore_job(struct core *core, const struct job_record *record, struct plan *plan,
                     struct err *err);
int core_restore_task(struct core *core, const struct task_record *record, struct err *err);
int core_restore_finish(struct core *core, int64_t now_ms, struct output *output, struct err *err);

/* For reconciliation: is this attempt one that should have a container? */
bool core_attempt_is_live(const struct core *core, struct attempt_id attempt);
/* Where; NULL: it is none. Valid until the next step. */
const char *core_attempt_node(const struct core *core, struct attempt_id attempt);

/* The roles of a job whose attempt of this number has begun and does not end; 0: it is none. */
uint16_t core_attempt_roles(struct core *core, struct job_id job, uint32_t attempt);
/* Its tasks of the current attempt that have rows, as these are or will be: who they are (job,
 * role, index), attempts, state, code, and whether they are being deleted. A row lives for the
 * call. */
void core_tasks_show(struct core *core, struct job_id job,
                     void (*see)(void *context, const struct task_record *row), void *context);

/* The node as it is, as a record of its row. Not within a step. */
void core_node_row(struct core *core, struct node_id node, struct output *output);

/* Would a STOP, a DELETE or a RELEASE of this job change anything now? DELETE: a job that the core
 * does not have may be in the store. */
bool core_ends_anything(struct core *core, enum event_kind kind, struct job_id job);

/* How many GPUs more a job would ask for with so many instances of the role; 0: not more, or there
 * is none of them. */
uint64_t core_scale_gpus(struct core *core, struct job_id job, uint16_t role, uint32_t instances);

/* Has it been told of another policy or document that is not in force yet? That of before decides
 * until what runs has been told to the new placer, in the steps that follow. */
bool core_policy_changes(const struct core *core);
/* Likewise of another order of the queue: that of before decides until all that wait are in it. */
bool core_order_changes(const struct core *core);

/* The placer, for reading: placer_hived_mirror (placement/hived.h) knows whether it
 * is HiveD. The core's; valid until the next step. */
struct placer *core_placer(const struct core *core);

/* What live tasks hold of a node, and what it has; nodes are numbered from 0, without gaps. */
struct core_node_use {
    uint32_t gpus, cpus;
    uint64_t memory_mib;
    uint32_t gpu_total, cpu_total;
    uint64_t memory_mib_total;
    bool is_lost, is_healthy;
};
uint32_t core_node_count(const struct core *core);
struct core_node_use core_node_use(const struct core *core, struct node_id node);

/* Which jobs have live tasks on each node, and how many; copied in pieces, and brought up to date
 * later. Begins as zeros. */
struct core_node_job {
    struct job_id job;
    uint32_t task_count;
};
struct core_node_span {
    uint64_t change; /* the node's last change, as far as it is copied */
    uint32_t first, count;
};
struct core_node_jobs {
    struct core_node_job *items; /* some are no node's any more */
    size_t count, room;
    size_t used; /* by nodes */
    struct {
        struct core_node_span *items; /* by the node's id */
        size_t count, room;
    } nodes;
};
/* Copy what has changed on nodes, about `work` tasks of it. True: all is as it is now. All calls
 * are of one core, or of copies of it. */
bool core_node_jobs_update(const struct core *core, struct core_node_jobs *jobs, uint32_t work);
/* Those of a node, by the numbers of the jobs; NULL and 0: none. */
const struct core_node_job *core_node_jobs_of(const struct core_node_jobs *jobs,
                                              struct node_id node, size_t *count);
/* Nothing is copied yet; keeps the memory. */
void core_node_jobs_clear(struct core_node_jobs *jobs);
void core_node_jobs_release(struct core_node_jobs *jobs);

/* Hash of the whole state: equal after a replay of the same events. */
uint64_t core_hash(const struct core *core);

/* Abort with a message when an invariant does not hold. For tests and simulations: O(state). */
void core_check(const struct core *core);

/* ERR_INTERNAL: what the placer holds is not what live tasks have and preempting jobs keep. For
 * tests and simulations: costs the whole state of the placer. */
int core_check_places(const struct core *core, struct err *err);

/* Counts for /metrics. */
struct core_counts {
    uint64_t events, jobs_live, jobs_queued, tasks_live, nodes, gpus_total, gpus_used;
    uint64_t timers; /* each for a live job, a node, a name that is still taken, or the queue */
};
void core_count(const struct core *core, struct core_counts *counts);

#endif
