#include "model/states.h"
#include "model/completion.h"
#include <assert.h>
#include <stddef.h>

enum { LIFE_COUNT = LIFE_COMPLETED + 1 };
#define BIT(state) (1u << (state))

static const char *const names[LIFE_COUNT] = {
    [LIFE_CREATION_PENDING] = "AttemptCreationPending",
    [LIFE_CREATION_REQUESTED] = "AttemptCreationRequested",
    [LIFE_PREPARING] = "AttemptPreparing",
    [LIFE_RUNNING] = "AttemptRunning",
    [LIFE_DELETION_PENDING] = "AttemptDeletionPending",
    [LIFE_DELETION_REQUESTED] = "AttemptDeletionRequested",
    [LIFE_DELETING] = "AttemptDeleting",
    [LIFE_ATTEMPT_COMPLETED] = "AttemptCompleted",
    [LIFE_COMPLETED] = "Completed",
};

static const unsigned followers[LIFE_COUNT] = {
    [LIFE_CREATION_PENDING] = BIT(LIFE_CREATION_REQUESTED) | BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_CREATION_REQUESTED] =
        BIT(LIFE_PREPARING) | BIT(LIFE_DELETING) | BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_PREPARING] = BIT(LIFE_RUNNING) | BIT(LIFE_DELETION_PENDING) | BIT(LIFE_DELETING) |
                       BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_RUNNING] = BIT(LIFE_DELETION_PENDING) | BIT(LIFE_DELETING) | BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_DELETION_PENDING] =
        BIT(LIFE_DELETION_REQUESTED) | BIT(LIFE_DELETING) | BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_DELETION_REQUESTED] = BIT(LIFE_DELETING) | BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_DELETING] = BIT(LIFE_ATTEMPT_COMPLETED),
    [LIFE_ATTEMPT_COMPLETED] = BIT(LIFE_CREATION_PENDING) | BIT(LIFE_COMPLETED),
    [LIFE_COMPLETED] = 0,
};

const char *life_state_name(enum life_state state)
{
    assert((unsigned)state < LIFE_COUNT);
    return names[state];
}

bool life_can_follow(enum life_state from, enum life_state to)
{
    assert((unsigned)from < LIFE_COUNT && (unsigned)to < LIFE_COUNT);
    return (followers[from] & BIT(to)) != 0;
}

bool life_is_completing(enum life_state state)
{
    return state >= LIFE_DELETION_PENDING && state <= LIFE_DELETING;
}

const char *public_state_name(enum public_state state)
{
    static const char *const public_names[] = {
        [PUBLIC_WAITING] = "WAITING",   [PUBLIC_RUNNING] = "RUNNING",
        [PUBLIC_STOPPING] = "STOPPING", [PUBLIC_SUCCEEDED] = "SUCCEEDED",
        [PUBLIC_STOPPED] = "STOPPED",   [PUBLIC_FAILED] = "FAILED",
        [PUBLIC_UNKNOWN] = "UNKNOWN",
    };
    assert((unsigned)state <= PUBLIC_UNKNOWN);
    return public_names[state];
}

/* ended by the user, or together with the attempt */
static bool is_stop_code(int32_t code)
{
    return code == CODE_STOP_REQUESTED || code == CODE_ATTEMPT_COMPLETION ||
           code == CODE_SCALED_DOWN;
}

static enum public_state final_public(int32_t code)
{
    if (code == CODE_SUCCEEDED)
        return PUBLIC_SUCCEEDED;
    return is_stop_code(code) ? PUBLIC_STOPPED : PUBLIC_FAILED;
}

enum public_state life_public(enum life_state state, int32_t code, bool is_backing_off)
{
    switch (state) {
    case LIFE_CREATION_PENDING:
    case LIFE_CREATION_REQUESTED:
    case LIFE_PREPARING:
        return PUBLIC_WAITING;
    case LIFE_RUNNING:
        return PUBLIC_RUNNING;
    case LIFE_DELETION_PENDING:
    case LIFE_DELETION_REQUESTED:
    case LIFE_DELETING:
        return is_stop_code(code) ? PUBLIC_STOPPING : PUBLIC_RUNNING;
    case LIFE_ATTEMPT_COMPLETED:
        if (is_stop_code(code))
            return PUBLIC_STOPPING;
        return is_backing_off ? PUBLIC_WAITING : PUBLIC_RUNNING;
    case LIFE_COMPLETED:
        return final_public(code);
    }
    return PUBLIC_UNKNOWN; /* a number from outside */
}

enum public_state life_public_attempt(enum life_state state, int32_t code)
{
    return state == LIFE_ATTEMPT_COMPLETED ? final_public(code) : life_public(state, code, false);
}

bool execution_can_change(enum execution from, enum execution to)
{
    switch (from) {
    case EXECUTION_CREATE:
        return to == EXECUTION_START || to == EXECUTION_STOP;
    case EXECUTION_START:
        return to == EXECUTION_STOP;
    case EXECUTION_STOP:
        return false;
    }
    return false;
}

const char *kill_reason_name(enum kill_reason reason)
{
    static const char *const kill_names[] = {
        [KILL_NONE] = "",
        [KILL_STOPPED] = "stopped",
        [KILL_ATTEMPT_COMPLETED] = "attempt completed",
        [KILL_PREEMPTED] = "preempted",
        [KILL_TIME_LIMIT] = "time limit",
        [KILL_SCALED_DOWN] = "scaled down",
        [KILL_HUNG] = "hung",
        [KILL_OTHER] = "ended by the platform",
    };
    assert((unsigned)reason <= KILL_OTHER);
    return kill_names[reason];
}
