/* start.h — starts waiting jobs: finds places for their tasks, and takes these. Inside src/core
 * only.
 *
 * Owns nothing. A gang starts whole or not at all.
 */
#ifndef CORE_START_H
#define CORE_START_H
#include "core/state.h"

/* What became of a try to start a job. */
struct start_outcome {
    enum placement_kind kind;
    const char *reason;    /* not BIND */
    uint64_t topic;        /* of the reason, as in a placement_result */
    bool is_never;         /* WAIT that no end of jobs can cure */
    bool is_cut;           /* WAIT for the next step, in which the try goes on */
    bool is_port_conflict; /* there is room, but not the ports */
    bool is_of_job;        /* jobs of the same shape may start all the same */
    bool is_held_back;     /* jobs of the same shape with shorter time limits may start */
};

struct start_outcome core_job_start(struct core *core, struct core_job *job);

/* The outcome of a try, … */
extern const struct start_outcome outcome_bind, outcome_cut;
struct start_outcome start_waits(struct core *core, const char *reason);
/* the reason is of this job alone: others of its shape may start, … */
struct start_outcome start_waits_alone(struct core *core, const char *reason);
/* … and what stands behind all that is taken for it. */
bool slots_are_usable(const struct core *core, const struct placement_slot *slots, size_t count);

#endif
