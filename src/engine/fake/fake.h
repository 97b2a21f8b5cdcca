/* fake.h — nodes and containers in memory, with scripted faults: for tests, benches and
 * simulations.
 *
 * Edge. By real time one thread posts what is due; by virtual time nothing happens but in
 * engine_fake_advance, on the caller's thread. Containers do not outlive the engine: a new one
 * knows none, as after a machine's crash.
 *
 * A container's life: create → (create_ms) PREPARING → (start_ms) STARTED → (run_ms) EXITED, or
 * what the first matching rule says instead. A kill ends it with SIGTERM at once, or after the
 * grace period with SIGKILL when the rule says that it does not listen.
 */
#ifndef ENGINE_FAKE_FAKE_H
#define ENGINE_FAKE_FAKE_H
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum {
    ENGINE_FAKE_CONTAINERS_MAX = 2000000,
    ENGINE_FAKE_RULES_MAX = 1000,
    ENGINE_FAKE_GPUS_MAX = 64
};

/* What happens to the containers that it matches. Zero fields: as the engine's configuration. */
struct engine_fake_rule {
    const char *job;  /* a part of "user~job"; NULL or "": any */
    const char *role; /* NULL or "": any */
    int64_t index;    /* -1: any */
    uint32_t times;   /* so often at most, then the rule is used up; 0: always */
    uint32_t create_ms, start_ms, run_ms;
    const char *create_failure; /* "ImageNotFound", …: never starts */
    const char *refusal;        /* "OutOfcpu", …: its node does not take it */
    bool is_moved;              /* it is started on the next node instead */
    int32_t exit_code, signal;
    bool is_oom_killed;
    bool is_deaf;      /* does not end by SIGTERM */
    bool is_exit_lost; /* the end is not told until list is called (as after a lost message) */
    bool runs_for_ever;
    const char *log; /* what it writes before it ends */
};

struct engine_fake_config {
    const char *node_prefix; /* nodes PREFIX0, PREFIX1, …; NULL: "fake" */
    uint32_t node_count, cpu, gpu_count;
    uint64_t memory_mib;
    const char *gpu_type;                    /* NULL: "FAKE" */
    uint32_t gpus_per_numa, gpus_per_switch; /* 0: not known */
    uint32_t create_ms, start_ms, run_ms;
    uint32_t
        lose_every_ms; /* the first node goes so often, and is back after half of that; 0: never */
    bool is_time_virtual;
    const struct engine_fake_rule *rules; /* copied */
    size_t rule_count;
};

/* The configuration is copied; ended by its own ops->free. ERR_INVALID: no nodes, CPUs or memory;
 * ERR_TOO_BIG: the rules, the
 * GPUs of a node; ERR_IO: no thread. */
int engine_fake_new(const struct engine_fake_config *config, const struct engine_sink *sink,
                    struct engine **engine, struct err *err);

/* Virtual time: post all that is due until `now_ms` (from 0), in order. Returns the number. */
size_t engine_fake_advance(struct engine *engine, int64_t now_ms);
/* When the next is due; INT64_MAX: nothing will happen by itself. */
int64_t engine_fake_next_ms(struct engine *engine);

/* A node goes away with its containers (they are not reported one by one), or comes back empty. */
int engine_fake_node_lose(struct engine *engine, const char *name, struct err *err);
int engine_fake_node_return(struct engine *engine, const char *name, struct err *err);

/* A GPU of a node stops working, or works again; its containers go on. ERR_NOT_FOUND: there is no
 * such node or GPU. */
int engine_fake_gpu_set(struct engine *engine, const char *node, uint32_t gpu, bool is_lost,
                        struct err *err);

/* The node does not take the next `times` containers (0: none of them), for this reason; NULL: it
 * takes all again. ERR_NOT_FOUND. */
int engine_fake_node_refuse(struct engine *engine, const char *node, const char *reason,
                            uint32_t times, struct err *err);

/* A running container's command ends now, as its rule says, whatever its time was; nothing happens
 * to one that does not run. */
int engine_fake_finish(struct engine *engine, struct attempt_id attempt, struct err *err);

/* A container vanishes behind everybody's back: EXITED with is_missing. */
int engine_fake_remove(struct engine *engine, struct attempt_id attempt, struct err *err);

/* Containers that exist: running, or ended and not yet forgotten. */
size_t engine_fake_container_count(struct engine *engine);

#endif
