#include "api/stream_guard.h"
#include "api/call.h"
#include "api/http_watch.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct guard {
    struct stream_guards *guards;
    struct api *api;
    struct http_stream *stream; /* of the exchange: what is here passes on to … */
    ssize_t (*read)(void *state, char *bytes, size_t size);
    void (*free)(void *state);
    void *state;
    char *user, *token_id; /* token_id "": by the socket of this machine */
    int64_t expires_ms;    /* of the token, Unix time; 0: never */
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
        if (strcmp(guard->user, user) != 0)
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
    return guard->expires_ms && guard->expires_ms <= clock_unix_ms();
}

/* 0: it is good; ERR_UNAUTHORIZED: it is not; others: nobody knows just now. */
static int token_still_good(const struct guard *guard, struct store_reader *reader,
                            struct arena *arena)
{
    struct store_user user;
    struct store_token token;
    int code = store_user(reader, text_of(guard->user), arena, &user, NULL);
    if (code == 0 && guard->token_id[0])
        code = store_token(reader, text_of(guard->token_id), arena, &token, NULL);
    else if (code == 0 && !user.is_admin && !user.is_admin_by_group)
        code = ERR_UNAUTHORIZED; /* root of this machine counts as an admin alone */
    if (code == ERR_NOT_FOUND || (code == 0 && user.is_inactive))
        return ERR_UNAUTHORIZED;
    if (code == 0 && guard->token_id[0] && strcmp(token.user, guard->user) != 0)
        return ERR_UNAUTHORIZED;
    return code;
}

static int guard_check(const struct guard *guard)
{
    struct service *service = guard->api->service;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (is_over(guard))
        return ERR_UNAUTHORIZED;
    struct store_reader *reader = service->reader_get(service->context, NULL);
    if (!reader)
        return ERR_BUSY;
    int code = token_still_good(guard, reader, &arena);
    service->reader_put(service->context, reader);
    return code;
}

/* When it is to be read again, whatever happens. */
static int64_t guard_due(const struct guard *guard)
{
    int64_t left_ms = STREAM_GUARD_CHECK_MS;
    if (guard->expires_ms) {
        int64_t life_ms = guard->expires_ms - clock_unix_ms();
        left_ms = life_ms < left_ms ? life_ms : left_ms;
    }
    return clock_monotonic_ms() + (left_ms > 0 ? left_ms : 1);
}

static ssize_t guard_read(void *state, char *bytes, size_t size)
{
    struct guard *guard = state;
    if (atomic_exchange(&guard->is_doubtful, false) || is_over(guard)) {
        int code = guard_check(guard);
        if (code == ERR_UNAUTHORIZED)
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
    mem_free(guard->user);
    mem_free(guard->token_id);
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
        .api = call->api,
        .stream = stream,
        .read = stream->read,
        .free = stream->free,
        .state = stream->state,
        .user = mem_copy(call->caller.auth.user),
        .token_id = mem_copy(call->caller.token_id),
        .expires_ms = call->caller.expires_ms,
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
