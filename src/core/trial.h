/* trial.h — what would become of a job, were it submitted now: a copy of the core takes it.
 *
 * Pure. Costs as much as copying the core and one step of it.
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

/* `submit` is an EVENT_SUBMIT, whose plan is taken. What is told lives in the arena. The code and
 * `err`: why the core refuses the job. */
int core_trial(const struct core *core, struct event *submit, struct arena *arena,
               struct core_trial *trial, struct err *err);

#endif
