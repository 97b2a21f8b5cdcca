#include "api/stream_guard.h"
#include "api/call.h"
#include "api/http_watch.h"
#include "api/opener.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct guard {
    struct stream_guards *guards;
    struct service *service;
    struct http_stream *stream; /* of the exchange: what is here passes on to … */
    ssize_t (*read)(void *state, char *bytes, size_t size);
    void (*free)(void *state);
    void *state;
    struct opener opener;
    atomic_bool is_doubtful;
    struct guard *next, **link; /* under the lock of the guards */
};

struct stream_guards {
    pthread_mutex_t lock;
    struct guard *first;
};

struct stream_guards *stream_guards_new(void)
{
    struct stream_guards *guards = mem_zero(1, sizeof *guards);
    pthread_mutex_init(&guards->lock, NULL);
    return guards;
}

void stream_guards_free(struct stream_guards *guards)
{
    if (!guards)
        return;
    assert(!guards->first);
    pthread_mutex_destroy(&guards->lock);
    mem_free(guards);
}

bool stream_guards_doubt(struct stream_guards *guards, const char *user)
{
    bool has_any = false;
    pthread_mutex_lock(&guards->lock);
    for (struct guard *guard = guards->first; guard; guard = guard->next) {
        if (user[0] && strcmp(guard->opener.user, user) != 0)
            continue;
        atomic_store(&guard->is_doubtful, true);
        has_any = true;
    }
    pthread_mutex_unlock(&guards->lock);
    return has_any;
}

/* ---- one stream ---- */

static bool is_over(const struct guard *guard)
{
    return guard->opener.end_ms && guard->opener.end_ms <= clock_unix_ms();
}

/* When it is to be read again, whatever happens. */
static int64_t guard_due(const struct guard *guard)
{
    int64_t left_ms = STREAM_GUARD_CHECK_MS;
    if (guard->opener.end_ms) {
        int64_t life_ms = guard->opener.end_ms - clock_unix_ms();
        left_ms = life_ms < left_ms ? life_ms : left_ms;
    }
    return clock_monotonic_ms() + (left_ms > 0 ? left_ms : 1);
}

static ssize_t guard_read(void *state, char *bytes, size_t size)
{
    struct guard *guard = state;
    if (atomic_exchange(&guard->is_doubtful, false) || is_over(guard)) {
        int code = opener_check(guard->service, &guard->opener);
        if (code == ERR_FORBIDDEN)
            return HTTP_STREAM_BROKEN;
        if (code) {
            atomic_store(&guard->is_doubtful, true);
            guard->stream->until_ms = clock_monotonic_ms() + STREAM_GUARD_AGAIN_MS;
            return HTTP_STREAM_WAIT;
        }
    }
    guard->stream->until_ms = guard_due(guard);
    return guard->read(guard->state, bytes, size);
}

static void guard_free(void *state)
{
    struct guard *guard = state;
    pthread_mutex_lock(&guard->guards->lock);
    *guard->link = guard->next;
    if (guard->next)
        guard->next->link = guard->link;
    pthread_mutex_unlock(&guard->guards->lock);
    guard->free(guard->state);
    mem_free(guard);
}

void stream_guard(struct call *call)
{
    struct http_stream *stream = &call->exchange->reply.stream;
    struct stream_guards *guards = call->api->guards;
    if (!stream->read || !call->caller.auth.user[0] || stream->read == guard_read)
        return;
    struct guard *guard = mem_zero(1, sizeof *guard);
    *guard = (struct guard){
        .guards = guards,
        .service = call->api->service,
        .stream = stream,
        .read = stream->read,
        .free = stream->free,
        .state = stream->state,
        .opener = opener_of(call),
    };
    /* it may have gone since it was looked up, before the guard was known */
    atomic_init(&guard->is_doubtful, true);
    stream->read = guard_read;
    stream->free = guard_free;
    stream->state = guard;
    pthread_mutex_lock(&guards->lock);
    guard->next = guards->first;
    guard->link = &guards->first;
    if (guard->next)
        guard->next->link = &guard->next;
    guards->first = guard;
    pthread_mutex_unlock(&guards->lock);
}
