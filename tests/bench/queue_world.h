/* queue_world.h — a core in a cluster where jobs run and wait, and what each event costs it.
 *
 * Single-threaded; costs are CPU time of the thread, in microseconds. What fails ends the program
 * with a message.
 */
#ifndef BENCH_QUEUE_WORLD_H
#define BENCH_QUEUE_WORLD_H
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "core/plan.h"

struct buf;

enum {
    NODE_GPUS = 8,
    NODE_CPU = 64,
    NODE_MIB = 65536,
    ENDS = 300,
    FREES = 200,
    COPIES = 5,
    SNAPSHOT_ENDS = 10,
    TIMERS_MAX = 4000, /* of one end; the rest is cut */
    PAUSE_MS = 10,     /* of the core, between two steps of a long pass */
    CLUSTERS = 100,
    GROUPS = 256,
    GROUP_TASKS = 78, /* 19,968 tasks in all */
    OVER_US = 1000,   /* what no event should take */
};

struct cost {
    uint64_t count;
    double sum_us, worst_us;
    uint64_t worst_at; /* which of the events, from 1 */
    uint64_t over;     /* so many took longer than OVER_US */
};

struct bench {
    struct core *core;
    struct output output;
    const char *policy;
    uint32_t nodes, jobs, clusters;
    bool has_two_types;  /* every other node has GPUs of another type */
    uint32_t many_types; /* unless 0: the nodes' GPUs are of so many, T0 and so on, in turn */
    int64_t now_ms;
    uint64_t submitted;
    struct cost submit, end, timer;
    struct cost node, cells; /* a node appears; what follows from that */
    uint64_t starts;
};

/* CPU time of this thread. */
double now_us(void);
/* One more event that took `us`. */
void cost_add(struct cost *cost, double us);
/* A line of the table: how many, mean, worst, which of them, how many over 1 ms. Nothing where
 * there were none. */
void cost_print(const char *what, const struct cost *cost);

/* The core takes this event, now; what that takes is added to `cost`, unless it is NULL. */
void step(struct bench *bench, struct event *event, struct cost *cost);
/* The same, unless tasks have started: then that is what it cost. */
void step_next(struct bench *bench, struct event *event, struct cost *cost, struct cost *start);
/* Whether the core has more to do at once, or after a pause that it makes when there is much to do:
 * then that time has come. */
bool goes_on(struct bench *bench);
/* All steps that follow, at most TIMERS_MAX of them. */
void settle(struct bench *bench, struct cost *cost);
/* A job like this, with a name of its own. */
void submit(struct bench *bench, const struct plan *like, struct cost *cost);
/* The task of this attempt has succeeded. */
void end(struct bench *bench, uint64_t attempt, struct cost *cost);

/* A role of one task. */
struct plan_role role_of(uint32_t gpu);
/* A gang of these roles, which stay the caller's. */
struct plan plan_of(const struct plan_role *roles, uint16_t count);
/* A healthy node. */
struct node_facts node_of(const char *name);
/* Virtual clusters of equal size, bench->clusters of them if it is set, for HiveD. */
void document_write(const struct bench *bench, struct buf *out);
/* A new core with empty nodes, and with 100 virtual clusters if HiveD is to have them. The caller
 * frees the core. */
void bench_begin(struct bench *bench, bool has_clusters);
/* All GPUs of all nodes are in use, by jobs of one node each. */
void fill(struct bench *bench, bool has_clusters);

/* A job whose tasks are all in groups of one size. */
struct shape {
    uint16_t groups;
    uint32_t tasks; /* of each group */
    uint32_t gpu;   /* of each task */
    bool is_gang;
    const char *name;
};

extern const struct shape many_groups, one_group, all_gpus, no_gang;

/* How many tasks it has in all. */
uint64_t shape_tasks(const struct shape *shape);
/* Such a job, of a higher priority than others, with `gpu` for each task. It is valid until the
 * next call. */
struct plan shape_plan(const struct shape *shape, uint32_t gpu);

/* The heap is set as in skepd; before all else. */
void heap_set(void);
/* Memory that the bench has freed before must not make the first steps cheaper. */
void heap_cool(void);

#endif
