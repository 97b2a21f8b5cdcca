/* tells.c — events that are gathered under the lock and told after it; see state.h. */
#include "base/memory.h"
#include "engine/kubernetes/state.h"

void tells_init(struct tells *tells)
{
    *tells = (struct tells){0};
    arena_init(&tells->arena);
}

static const char *kept(struct tells *tells, const char *string)
{
    return string ? arena_copy(&tells->arena, text_of(string)) : NULL;
}

static struct text text_kept(struct tells *tells, struct text text)
{
    return (struct text){arena_copy(&tells->arena, text), text.length};
}

void tells_add(struct tells *tells, const struct engine_event *event)
{
    struct engine_event *own = ARRAY_ADD(&tells->events);
    *own = *event;
    own->reason = kept(tells, event->reason);
    own->message = kept(tells, event->message);
    own->runs_on = kept(tells, event->runs_on);
    if (event->node) {
        struct node_facts *node = ARENA_NEW(&tells->arena, struct node_facts);
        *node = node_facts_keep(&tells->arena, event->node);
        own->node = node;
    }
    if (event->exit) {
        struct exit_report *exit = ARENA_NEW(&tells->arena, struct exit_report);
        *exit = *event->exit;
        exit->name = kept(tells, exit->name);
        exit->reason = kept(tells, exit->reason);
        exit->message = kept(tells, exit->message);
        exit->log_tail = text_kept(tells, exit->log_tail);
        exit->platform_tail = text_kept(tells, exit->platform_tail);
        own->exit = exit;
    }
}

void tells_post(struct kube *kube, struct tells *tells)
{
    for (size_t i = 0; i < tells->events.count; i++)
        kube->sink.post(kube->sink.context, &tells->events.items[i]);
    ARRAY_FREE(&tells->events);
    arena_release(&tells->arena);
}
