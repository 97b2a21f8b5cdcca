/* sim.h — a core, a fake engine and a store in memory, run by virtual time.
 *
 * Everything is chosen by the seed: what is submitted, how it ends, which nodes fail, when the core
 * is restarted. After every step the invariants are checked; sim_run aborts when one does not hold.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct sim_config {
    uint64_t seed;
    const char *policy;
    const char *placement_document; /* NULL: none */
    const char *const *clusters;    /* virtual clusters to choose from */
    size_t cluster_count;
    const char *const *pins; /* pinned cells, of the cluster of the same index; may be NULL */
    uint32_t node_count, cpu, gpu_count;
    uint64_t memory_mib;
    const char *gpu_type, *node_prefix;      /* NULL: the fake engine's */
    uint32_t gpus_per_numa, gpus_per_switch; /* 0: not known */
    uint32_t engines;  /* the nodes are of so many, in turn; 0 and 1: of one */
    uint32_t jobs;     /* submissions */
    uint32_t restarts; /* in a thousand events; 0 = never */
    uint32_t starvation_s;
    bool has_faults;     /* nodes fail, containers vanish, messages are lost */
    bool has_gpu_faults; /* with faults: single GPUs are lost and come back */
    bool has_requests;   /* stops, starts again, deletes, scales, configuration changes */
    bool is_calm;        /* jobs end by their kind alone, whichever starts first; no time limits */
    bool has_policies;   /* with requests: the policy changes, too, to any other */
    bool has_priorities; /* so jobs are preempted */
    /* core_slice_set, and gangs of more parts; 0: the core's own, which small worlds never use up
     */
    uint32_t slice;
    bool has_interruptions; /* with slices: something happens between two of them */
    uint32_t events_max;    /* more is no progress; 0: the usual */
    bool is_settled;        /* passes that were cut go on before anything else happens … */
    bool has_gangs_only; /* … gangs without fixed ports: what is said of a step is so of many */
    bool is_replayed;    /* afterwards, from the event log: same hashes, same output */
    void (*print)(void *context, const char *text); /* every step; NULL: silent */
    void *context;
};

struct sim_result {
    uint32_t submitted, refused, succeeded, failed, stopped, deleted;
    uint64_t events, attempts, preempted, restarts, retries;
    uint64_t cuts;                   /* steps after which the core asked to go on at once … */
    uint64_t interruptions, longest; /* … and something else came first; most in a row */
    uint64_t pass_longest;           /* most steps of a pass that was not interrupted any more */
    uint64_t hash;                   /* of the core at the end */
    uint64_t output;                 /* of all that it ever said */
    uint64_t outcome;                /* of how each job ended: state, code */
    int64_t end_ms;
};

/* ERR_INTERNAL: some job has not ended, the replay differs, … */
int sim_run(const struct sim_config *config, struct sim_result *result, struct err *err);

#endif
