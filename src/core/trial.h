/* trial.h — what would become of a job, were it submitted now: a core that nobody else needs takes
 * it, a copy or one of the rows.
 *
 * Pure.
 */
#ifndef CORE_TRIAL_H
#define CORE_TRIAL_H
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct core;
struct err;
struct event;

struct core_trial {
    bool is_placed; /* all that could start at once has places; else `reason` says why not */
    const char *reason;
    struct core_trial_task {
        const char *role, *node;
        uint32_t index;
        const uint16_t *gpus;
        size_t gpu_count;
    } * tasks; /* those that have places */
    size_t task_count;
    struct job_id *victims; /* jobs that would be preempted for it */
    size_t victim_count;
};

/* Before a trial: one step of what the core has left to later ones, so that a gang that is being
 * placed gets its places first, and whom it ends is not the job's doing. True: nothing is left.
 * From here on it leaves a gang's work to no later step. */
bool core_trial_prepare(struct core *core, int64_t now_ms);

/* The core is good for nothing else afterwards. `submit` is an EVENT_SUBMIT, whose plan is taken.
 * What is told lives in the arena. The code and `err`: why the core refuses the job. */
int core_trial(struct core *core, struct event *submit, struct arena *arena,
               struct core_trial *trial, struct err *err);

#endif
