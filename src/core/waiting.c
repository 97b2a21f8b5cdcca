/* waiting.c — the states of a waiting job and the changes between them that are allowed.
 *
 * The state is never set: it follows from what the scheduler has for the job (its place in the
 * queue, its holds, its reservation, its pause). Whoever has changed one of these says so here,
 * with the cause; a change that docs/rfc/0011-waiting-jobs.md does not know is an error of the
 * program.
 */
#include <assert.h>

#include "core/jobs.h"
#include "core/reserve.h"
#include "core/state.h"
#include "core/waiting.h"

enum { NOWHERE = 0 };

#define TO(state) (1u << (state))

/* Where each cause may lead from each state, beside leaving the job where it is. Kept equal to the
 * table in docs/rfc/0011-waiting-jobs.md by tests/unit/core/test_waiting.c. */
static const uint16_t changes[WAITING_CAUSES][WAITING_STATES] = {
    [WAITING_BY_QUEUE] =
        {
            [WAITING_NOT] = TO(WAITING_QUEUED) | TO(WAITING_PAUSED),
        },
    [WAITING_BY_UNQUEUE] =
        {
            [WAITING_QUEUED] = TO(WAITING_NOT),
            [WAITING_STARVING] = TO(WAITING_NOT),
            [WAITING_PLACING] = TO(WAITING_NOT),
            [WAITING_PLACING_STARVING] = TO(WAITING_NOT),
            [WAITING_PREEMPTING] = TO(WAITING_NOT),
            [WAITING_PREEMPTING_STARVING] = TO(WAITING_NOT),
            [WAITING_PAUSED] = TO(WAITING_NOT),
            [WAITING_PAUSED_STARVING] = TO(WAITING_NOT),
            [WAITING_STARTING] = TO(WAITING_NOT),
        },
    [WAITING_BY_TRY] =
        {
            [WAITING_QUEUED] = TO(WAITING_PLACING) | TO(WAITING_PREEMPTING) | TO(WAITING_PAUSED) |
                               TO(WAITING_STARTING),
            [WAITING_STARVING] = TO(WAITING_PLACING_STARVING) | TO(WAITING_PREEMPTING_STARVING) |
                                 TO(WAITING_PAUSED_STARVING) | TO(WAITING_STARTING),
            [WAITING_PLACING] = TO(WAITING_QUEUED) | TO(WAITING_PREEMPTING) | TO(WAITING_PAUSED) |
                                TO(WAITING_STARTING),
            [WAITING_PLACING_STARVING] = TO(WAITING_STARVING) | TO(WAITING_PREEMPTING_STARVING) |
                                         TO(WAITING_PAUSED_STARVING) | TO(WAITING_STARTING),
            [WAITING_PREEMPTING] = TO(WAITING_QUEUED) | TO(WAITING_PLACING) | TO(WAITING_PAUSED) |
                                   TO(WAITING_STARTING),
            [WAITING_PREEMPTING_STARVING] = TO(WAITING_STARVING) | TO(WAITING_PLACING_STARVING) |
                                            TO(WAITING_PAUSED_STARVING) | TO(WAITING_STARTING),
            [WAITING_PAUSED] = TO(WAITING_PLACING) | TO(WAITING_STARTING),
            [WAITING_PAUSED_STARVING] = TO(WAITING_PLACING_STARVING) | TO(WAITING_STARTING),
        },
    [WAITING_BY_TAKEN] =
        {
            [WAITING_PREEMPTING] = TO(WAITING_QUEUED),
            [WAITING_PREEMPTING_STARVING] = TO(WAITING_STARVING),
        },
    [WAITING_BY_TIME] =
        {
            [WAITING_PAUSED] = TO(WAITING_QUEUED),
            [WAITING_PAUSED_STARVING] = TO(WAITING_STARVING),
        },
    [WAITING_BY_STARVATION] =
        {
            [WAITING_QUEUED] = TO(WAITING_STARVING),
            [WAITING_PAUSED] = TO(WAITING_PAUSED_STARVING),
        },
    [WAITING_BY_RESERVATION_LOST] =
        {
            [WAITING_STARVING] = TO(WAITING_QUEUED),
            [WAITING_PREEMPTING_STARVING] = TO(WAITING_PREEMPTING),
            [WAITING_PAUSED_STARVING] = TO(WAITING_PAUSED),
        },
    [WAITING_BY_CLOSING] =
        {
            [WAITING_STARVING] = TO(WAITING_QUEUED),
            [WAITING_PLACING] = TO(WAITING_QUEUED) | TO(WAITING_PAUSED),
            [WAITING_PLACING_STARVING] = TO(WAITING_PLACING),
            [WAITING_PREEMPTING] = TO(WAITING_QUEUED),
            [WAITING_PREEMPTING_STARVING] = TO(WAITING_PREEMPTING),
            [WAITING_PAUSED_STARVING] = TO(WAITING_PAUSED),
        },
    [WAITING_BY_PLACER] =
        {
            [WAITING_STARVING] = TO(WAITING_QUEUED),
            [WAITING_PLACING] = TO(WAITING_QUEUED) | TO(WAITING_PAUSED),
            [WAITING_PLACING_STARVING] = TO(WAITING_QUEUED) | TO(WAITING_PAUSED),
            [WAITING_PREEMPTING] = TO(WAITING_QUEUED),
            [WAITING_PREEMPTING_STARVING] = TO(WAITING_QUEUED),
            [WAITING_PAUSED_STARVING] = TO(WAITING_PAUSED),
        },
};

bool waiting_can_change(enum waiting_cause cause, enum waiting_state from, enum waiting_state to)
{
    assert((unsigned)cause < WAITING_CAUSES && (unsigned)from < WAITING_STATES);
    return from == to || (changes[cause][from] & TO(to)) != NOWHERE;
}

enum waiting_state waiting_state(const struct core *core, const struct core_job *job)
{
    const uint32_t slot = core_job_slot(core, job);
    const bool is_starving = reserve_has(core, slot);
    if (!queue_has(core->queue, slot)) {
        assert(!is_starving && !job->hold_count && core->placing.job != job->id.v);
        return WAITING_NOT;
    }
    if (core->placing.job == job->id.v && core->placing.stage == PLACING_START) {
        assert(!is_starving);
        return WAITING_STARTING;
    }
    if (core->placing.job == job->id.v && core->placing.is_fresh)
        return is_starving ? WAITING_PLACING_STARVING : WAITING_PLACING;
    if (job->hold_count) {
        assert(core->now_ms >= job->life.preempt_after_ms);
        return is_starving ? WAITING_PREEMPTING_STARVING : WAITING_PREEMPTING;
    }
    if (core->now_ms < job->life.preempt_after_ms)
        return is_starving ? WAITING_PAUSED_STARVING : WAITING_PAUSED;
    return is_starving ? WAITING_STARVING : WAITING_QUEUED;
}

/* A pause may be over whose timer comes later in this step: what its state is by then. */
static const enum waiting_state unpaused[WAITING_STATES] = {
    [WAITING_NOT] = WAITING_NOT,
    [WAITING_QUEUED] = WAITING_QUEUED,
    [WAITING_STARVING] = WAITING_STARVING,
    [WAITING_PLACING] = WAITING_PLACING,
    [WAITING_PLACING_STARVING] = WAITING_PLACING_STARVING,
    [WAITING_PREEMPTING] = WAITING_PREEMPTING,
    [WAITING_PREEMPTING_STARVING] = WAITING_PREEMPTING_STARVING,
    [WAITING_PAUSED] = WAITING_QUEUED,
    [WAITING_PAUSED_STARVING] = WAITING_STARVING,
    [WAITING_STARTING] = WAITING_STARTING,
};

void waiting_changed(struct core *core, struct core_job *job, enum waiting_cause cause)
{
    const enum waiting_state to = waiting_state(core, job);
    assert((unsigned)job->waiting < WAITING_STATES);
    assert(waiting_can_change(
        cause, core->now_ms < job->life.preempt_after_ms ? job->waiting : unpaused[job->waiting],
        to));
    (void)cause;
    (void)unpaused;
    job->waiting = to;
}
