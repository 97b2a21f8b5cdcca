/* states.h — the nine states of a job's and of a task's life (FrameworkController 6.2).
 *
 * Pure. The numbers are stored: never change one.
 */
#ifndef JOB_STATES_H
#define JOB_STATES_H

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

#endif
