/* translate.h — what an engine reports, as an event of the core.
 *
 * Pure: a library of its own, checked like the pure modules. It stands beside the port and not in
 * the core, because the core knows no engines; the server and the simulator use it alike, so that
 * simulated worlds hear of nodes and tasks what real ones hear.
 *
 * What an exit means is not decided here: the server asks exits/judge.h with its rules, the
 * simulator has a judge of its own.
 */
#ifndef ENGINE_TRANSLATE_H
#define ENGINE_TRANSLATE_H
#include "core/event.h"
#include "engine/engine.h"

struct arena;

struct exit_meaning {
    struct completion completion;
    double blame; /* its weight against the node */
};

/* All of `to` is set but its time, chance and request; what it points to lives in `arena` and does
 * not depend on `from`. `meaning`: of ENGINE_EXITED; NULL for the others. */
void engine_event_translate(const struct engine_event *from, const struct exit_meaning *meaning,
                            struct arena *arena, struct event *to);

#endif
