#include "engine/translate.h"

#include <assert.h>

#include "base/arena.h"

static enum event_kind kind_of(enum engine_event_kind kind)
{
    switch (kind) {
    case ENGINE_NODE:
        return EVENT_NODE;
    case ENGINE_NODE_LOST:
        return EVENT_NODE_LOST;
    case ENGINE_PREPARING:
        return EVENT_TASK_PREPARING;
    case ENGINE_NOTE:
        return EVENT_TASK_NOTE;
    case ENGINE_STARTED:
        return EVENT_TASK_STARTED;
    case ENGINE_EXITED:
        return EVENT_TASK_EXITED;
    case ENGINE_REFUSED:
        return EVENT_TASK_REFUSED;
    }
    assert(false && "a kind of event");
    return EVENT_TASK_NOTE;
}

static const char *string_keep(struct arena *arena, const char *string)
{
    return string ? arena_copy(arena, text_of(string)) : "";
}

void engine_event_translate(const struct engine_event *from, const struct exit_meaning *meaning,
                            struct arena *arena, struct event *to)
{
    assert((from->kind == ENGINE_EXITED) == (meaning != NULL));
    *to = (struct event){.kind = kind_of(from->kind), .user = ""};
    if (from->node) {
        assert(to->kind == EVENT_NODE || to->kind == EVENT_NODE_LOST);
        to->node = node_facts_keep(arena, from->node);
        return;
    }
    to->task.attempt = from->attempt;
    to->task.reason = string_keep(arena, from->reason);
    to->task.message = string_keep(arena, from->message);
    to->task.node = string_keep(arena, from->runs_on);
    to->task.address = string_keep(arena, from->address);
    if (!meaning)
        return;
    to->task.completion = meaning->completion;
    to->task.blame = meaning->blame;
}
