/* tells.c — events that are gathered under the lock and told after it; see state.h. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/given_up.h"
#include "engine/kubernetes/state.h"
#include "sys/log.h"

void kube_enter(struct kube *kube, struct tells *tells)
{
    *tells = (struct tells){0};
    arena_init(&tells->arena);
    pthread_mutex_lock(&kube->lock);
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
    own->address = kept(tells, event->address);
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

void tells_give_up(struct tells *tells, struct attempt_id attempt, const char *reason,
                   const char *message)
{
    *ARRAY_ADD(&tells->given_up) =
        (struct kube_given_up){attempt, kept(tells, reason), kept(tells, message)};
}

/* The pods of a whole node at once: their folder is on a disk that may be slow. */
static void given_up_write(const struct kube *kube, const struct tells *tells)
{
    for (size_t i = 0; kube->given_up && i < tells->given_up.count; i++) {
        const struct kube_given_up *each = &tells->given_up.items[i];
        struct err err = {0};
        if (given_up_put(kube->given_up, each->attempt, each->reason, each->message, &err) < 0)
            log_error("engine", "kubernetes: why attempt %llu is given up is lost at a restart: %s",
                      (unsigned long long)each->attempt.v, err.text);
    }
}

static void event_post(const struct kube *kube, const struct engine_event *event)
{
    cleanup_buf struct buf user = BUF_INIT, platform = BUF_INIT;
    if (event->kind != ENGINE_EXITED) {
        kube->sink.post(kube->sink.context, event);
        return;
    }
    struct engine_event ended = *event;
    struct exit_report exit = *event->exit;
    task_log_tails(kube, event->attempt, &user, &platform);
    exit.log_tail = buf_as_text(&user);
    exit.platform_tail = buf_as_text(&platform);
    ended.exit = &exit;
    kube->sink.post(kube->sink.context, &ended);
}

void kube_leave(struct kube *kube, struct tells *tells)
{
    pthread_mutex_unlock(&kube->lock);
    given_up_write(kube, tells);
    for (size_t i = 0; i < tells->events.count; i++)
        event_post(kube, &tells->events.items[i]);
    ARRAY_FREE(&tells->events);
    ARRAY_FREE(&tells->given_up);
    arena_release(&tells->arena);
}
