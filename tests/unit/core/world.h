/* world.h — a core with its last output, for tests. */
#ifndef TESTS_CORE_WORLD_H
#define TESTS_CORE_WORLD_H
#include "base/buf.h"
#include "core/core.h"
#include "core/output.h"
#include "core/plan.h"

struct rows;

enum { WORLD_START_MS = 1000000000 };

struct world {
    struct core *core;
    struct core_config config;
    struct output output;
    int64_t now_ms;
    uint64_t request;
    struct rows *rows; /* NULL unless world_keep was called first: what a store would hold */
};

void world_init(struct world *world, const char *policy);
void world_release(struct world *world);

/* Keep rows from now on, so that world_restart can begin another core from them, with world->config
 * as it is then; what that says is the last output. */
void world_keep(struct world *world);
void world_restart(struct world *world);

/* Clears the output first, checks the invariants afterwards. */
void world_step(struct world *world, struct event *event);
void world_node(struct world *world, const char *name, uint32_t cpu, uint32_t gpu);
void world_node_event(struct world *world, enum event_kind kind, const char *name);

/* A gang of alice in "default", priority 10, without roles; may be changed before it is submitted.
 */
struct plan world_plan(const char *name);
/* The same with one role, which must live until the plan is submitted. */
struct plan world_plan_of(const char *name, const struct plan_role *role);
/* `cpu` and `gpu` of each task; two ports. */
struct plan_role world_role(const char *name, uint32_t instances, uint32_t cpu, uint32_t gpu);
/* The id, or 0 when refused. */
uint32_t world_submit(struct world *world, const struct plan *plan);
uint32_t world_submit_simple(struct world *world, const char *name, uint32_t instances,
                             uint32_t cpu, uint32_t gpu);
int world_ask(struct world *world, enum event_kind kind, uint32_t job); /* the answer's code */
void world_run(struct world *world, uint64_t attempt);                  /* preparing, started */
void world_exit(struct world *world, uint64_t attempt, int code, uint8_t attributes);
void world_configure(struct world *world); /* world->config was changed */
void world_timer(struct world *world, int64_t after_ms);
/* What was cut, a pass over the queue, a start or an end, goes on once, or to its end (how often?).
 */
bool world_pass_step(struct world *world); /* false: it has come to its end */
uint32_t world_pass_end(struct world *world);

/* With more than the simple ones: of this priority, and what else its plan says. */
uint32_t world_submit_for(struct world *world, const char *name, int32_t priority, uint32_t gpu,
                          uint64_t limit_s);
/* What would become of it: a copy of the core is asked. */
struct core_trial;
struct arena;
struct err;
int world_trial(struct world *world, struct event *submit, struct arena *arena,
                struct core_trial *trial, struct err *err);
int world_recall(struct world *world, uint32_t job, struct text extra, const struct plan *plan);
uint32_t world_submit_role(struct world *world, const char *name, int32_t priority,
                           struct plan_role role);
void world_reconfigure(struct world *world, const char *document);
uint32_t world_submit_to(struct world *world, const char *name, const char *cluster,
                         int32_t priority, uint32_t gpu);
void world_two_clusters_init(struct world *world);
/* Two virtual clusters of a node each, red and blue; one GPU a leaf. */
extern const char *const world_two_clusters;

/* Of the last output. */
const struct command *world_command(const struct world *world, enum command_kind kind, size_t nth);
size_t world_command_count(const struct world *world, enum command_kind kind);
const struct job_record *world_job(const struct world *world, uint32_t job); /* the last */
const struct task_record *world_task(const struct world *world, uint32_t job, uint16_t role,
                                     uint16_t index);
size_t world_story_count(const struct world *world, const char *reason);
bool world_has_trace(const struct world *world, const char *part);
bool world_has_story(const struct world *world, const char *reason, const char *part);
const struct node_record *world_node_row(const struct world *world); /* the last, or NULL */
const struct answer *world_answer(const struct world *world);

#endif
