/* replay.h — replays an event log, over restarts, and compares what it gives.
 *
 * Pure. Each life of a server begins its events with EVENT_RESTORE; there the replay makes a new
 * core of the rows that the events before have given, as the server did of those in its store.
 */
#ifndef CORE_REPLAY_H
#define CORE_REPLAY_H
#include "core/core.h"
#include "core/rows.h"

struct replay {
    struct core *core; /* as it was behind the last event; NULL before the first */
    struct rows *rows;
    uint64_t events, restores;
    uint32_t slice; /* core_slice_set of each core, as it was; 0: not */
};
void replay_init(struct replay *replay); /* before the first event */
void replay_release(struct replay *replay);

/* The next event of the log; `output` is cleared and gets what it gives. The event's plan becomes
 * the core's, or is freed with the error. ERR_UNSUPPORTED: the log does not begin with
 * EVENT_RESTORE (its beginning has been removed, or it was written by a program that did not log
 * restarts). ERR_CORRUPT, ERR_INVALID: what came before does not give the rows or the configuration
 * of a core. */
int replay_step(struct replay *replay, const struct event *event, struct output *output,
                struct err *err);

#endif
