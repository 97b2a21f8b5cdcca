/* job_world.h — one job, its policy and what came out of the last step, for tests. */
#ifndef JOB_WORLD_H
#define JOB_WORLD_H
#include "base/arena.h"
#include "job/job.h"

enum { WORLD_ROLES_MAX = 4 };

struct job_world {
    struct arena arena;
    struct job_role_policy roles[WORLD_ROLES_MAX];
    struct job_policy policy;
    struct job job;
    struct job_output out;
    uint64_t attempt_last;
    int64_t now_ms;
    uint64_t random;
};

#define ROLES(...) ((const int[]){__VA_ARGS__, -1})

/* Roles named a, b, …; `instances` ends with -1. Fancy retry 0, gang, any failure fails. */
void world_init(struct job_world *world, const int *instances);
void world_begin(struct job_world *world); /* job_init with the policy as it is now */
void world_release(struct job_world *world);

/* Each clears the actions of the step before. */
void world_step(struct job_world *world, struct job_event event);
void world_place(struct job_world *world); /* all that waits */
void world_run(struct job_world *world, uint16_t role, uint16_t index);
void world_run_all(struct job_world *world); /* place, then every task runs */
void world_exit(struct job_world *world, uint16_t role, uint16_t index, int32_t code,
                uint8_t attributes);
void world_simple(struct job_world *world, enum job_event_kind kind);
void world_timer(struct job_world *world); /* to the time asked for */
void world_scale(struct job_world *world, uint16_t role, uint32_t instances, int32_t min_failed);

const struct job_task *world_task(const struct job_world *world, uint16_t role, uint16_t index);
size_t world_count(const struct job_world *world, enum job_action_kind kind);
const struct job_action *world_find(const struct job_world *world, enum job_action_kind kind);
const char *world_story(const struct job_world *world, const char *reason); /* NULL: none */

#endif
