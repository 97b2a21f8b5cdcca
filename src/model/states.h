/* states.h — the nine states of a job's and of a task's life (FrameworkController 6.2), and the
 * state that people see.
 *
 * Pure. The numbers are stored: never change one.
 */
#ifndef MODEL_STATES_H
#define MODEL_STATES_H
#include <stdbool.h>
#include <stdint.h>

enum life_state {
    LIFE_CREATION_PENDING = 0,   /* job: waits in the queue; task: waits for its place */
    LIFE_CREATION_REQUESTED = 1, /* place found, command given */
    LIFE_PREPARING = 2,          /* job: no task has run yet; task: image, container */
    LIFE_RUNNING = 3,            /* job: at least one task has run */
    LIFE_DELETION_PENDING = 4,   /* end decided and stored, not yet acted on */
    LIFE_DELETION_REQUESTED = 5, /* kill commands given */
    LIFE_DELETING = 6,
    LIFE_ATTEMPT_COMPLETED = 7, /* this attempt is final; a retry may follow after a delay */
    LIFE_COMPLETED = 8,
};

/* "AttemptCreationPending", … as OpenPAI shows them (subState). */
const char *life_state_name(enum life_state state);

/* May `to` follow `from` directly? The table of docs/rfc/0004. */
bool life_can_follow(enum life_state from, enum life_state to);
bool life_is_completing(enum life_state state); /* between the decision to end and the end */

/* What people see: OpenPAI's job, attempt and task states. The numbers are stored: never change
 * one. */
enum public_state {
    PUBLIC_WAITING = 0,
    PUBLIC_RUNNING = 1,
    PUBLIC_STOPPING = 2,
    PUBLIC_SUCCEEDED = 3,
    PUBLIC_STOPPED = 4,
    PUBLIC_FAILED = 5,
    PUBLIC_UNKNOWN = 6, /* of a life state that does not exist, from outside */
};
enum { PUBLIC_STATE_COUNT = PUBLIC_UNKNOWN }; /* of those that a job can have */
const char *public_state_name(enum public_state state);

/* The only way from inner to public state; for jobs and tasks. `code` is the completion's and is
 * looked at only in states that have one; `is_backing_off`: a retry waits for its time. Source:
 * OpenPAI's REST server, except that a task that was scaled down (-230) is stopped, not failed. */
enum public_state life_public(enum life_state state, int32_t code, bool is_backing_off);
/* The same for one attempt, of which ATTEMPT_COMPLETED is the end. */
enum public_state life_public_attempt(enum life_state state, int32_t code);

/* executionType: Start and Stop as in OpenPAI; Create is a job that is not to begin yet. */
enum execution { EXECUTION_CREATE, EXECUTION_START, EXECUTION_STOP };
/* May a job that is not final go from one to the other? (A final stopped job may start again as a
 * new life: see job.h.) */
bool execution_can_change(enum execution from, enum execution to);

/* Why the platform ends a task: told to it with the KILL. Stored by number. */
enum kill_reason {
    KILL_NONE,
    KILL_STOPPED,
    KILL_ATTEMPT_COMPLETED,
    KILL_PREEMPTED,
    KILL_TIME_LIMIT,
    KILL_SCALED_DOWN,
    KILL_HUNG,
    KILL_OTHER,
};
const char *kill_reason_name(enum kill_reason reason); /* "stopped", "preempted", … */

#endif
