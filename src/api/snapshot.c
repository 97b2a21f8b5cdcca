#include "api/snapshot.h"
#include "api/call.h"
#include "api/http_watch.h"
#include "base/memory.h"
#include "hived/hived.h"
#include "sys/clock.h"
#include <assert.h>
#include <pthread.h>

/* A call that waits for the copy under way; in the call's arena. */
struct snapshot_call {
    struct snapshot_call *next;
    int (*read)(struct call *call, const struct service_snapshot *copy);
    struct service_reply reply; /* of the call: ends its suspension */
};

struct snapshot {
    pthread_mutex_t use; /* of who reads `current`; the core thread never takes it */
    struct service_snapshot current;
    struct service_snapshot spare; /* the one before, to be brought up to date */
    bool is_there;

    pthread_mutex_t lock; /* held for moments; taken after `use` */
    bool is_asked;
    struct service_snapshot asked; /* the server's while is_asked */
    bool has_arrived;
    struct service_snapshot arrived; /* to become `current` when the next request comes */
    int64_t fresh_until_us;          /* of the newest copy */
    struct snapshot_call *waiting;
};

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = mem_zero(1, sizeof *snapshot);
    pthread_mutex_init(&snapshot->use, NULL);
    pthread_mutex_init(&snapshot->lock, NULL);
    return snapshot;
}

static void copy_release(struct service_snapshot *copy)
{
    hived_free(copy->hived);
    hived_free(copy->old);
    mem_free(copy->nodes);
    core_node_jobs_release(&copy->jobs);
    *copy = (struct service_snapshot){0};
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    assert(!snapshot->is_asked && !snapshot->waiting);
    copy_release(&snapshot->current);
    copy_release(&snapshot->arrived);
    copy_release(&snapshot->spare);
    pthread_mutex_destroy(&snapshot->lock);
    pthread_mutex_destroy(&snapshot->use);
    mem_free(snapshot);
}

/* Under both locks: the newest copy takes the place of `current`, which is kept for the next one;
 * the caller frees the cells that are returned, without `lock`. */
static struct hived *snapshot_renew(struct snapshot *snapshot)
{
    struct hived *old = NULL;
    if (snapshot->has_arrived) {
        assert(!snapshot->spare.nodes && !snapshot->current.old);
        snapshot->spare = snapshot->current;
        old = snapshot->arrived.old;
        snapshot->arrived.old = NULL;
        snapshot->current = snapshot->arrived;
        snapshot->arrived = (struct service_snapshot){0};
        snapshot->has_arrived = false;
        snapshot->is_there = true;
    }
    return old;
}

/* The copy is there or will not come: everybody who waits for it goes on. */
static void snapshot_answer(struct snapshot *snapshot, const struct service_answer *answer)
{
    pthread_mutex_lock(&snapshot->lock);
    assert(snapshot->is_asked && !snapshot->has_arrived && !snapshot->spare.nodes);
    snapshot->is_asked = false;
    if (answer->code) {
        snapshot->spare = snapshot->asked; /* as far as it has come */
    } else {
        snapshot->arrived = snapshot->asked;
        snapshot->has_arrived = true;
        snapshot->fresh_until_us = clock_monotonic_us() + SNAPSHOT_REST * snapshot->arrived.cost_us;
    }
    struct snapshot_call *waiting = snapshot->waiting;
    snapshot->waiting = NULL;
    pthread_mutex_unlock(&snapshot->lock);
    while (waiting) {
        struct snapshot_call *next = waiting->next; /* the call ends as soon as it goes on */
        waiting->reply.done(waiting->reply.context, answer);
        waiting = next;
    }
}

/* On the core thread. */
static void snapshot_arrived(void *context, const struct service_answer *answer)
{
    snapshot_answer(context, answer);
}

static int waiter_go_on(struct call *call)
{
    struct snapshot_call *waiter = call->resume_state;
    struct snapshot *snapshot = call->api->snapshot;
    if (call->answer_code) {
        call->err = call->answer_err;
        return call->answer_code;
    }
    pthread_mutex_lock(&snapshot->use);
    pthread_mutex_lock(&snapshot->lock);
    struct hived *old = snapshot_renew(snapshot);
    pthread_mutex_unlock(&snapshot->lock);
    hived_free(old);
    assert(snapshot->is_there);
    int code = waiter->read(call, &snapshot->current);
    pthread_mutex_unlock(&snapshot->use);
    return code;
}

static void snapshot_ask(struct snapshot *snapshot, struct service *service)
{
    struct service_reply reply = {.done = snapshot_arrived, .context = snapshot};
    struct err err = {0};
    int code = service->snapshot(service->context, &snapshot->asked, reply, &err);
    if (code)
        snapshot_answer(snapshot,
                        &(struct service_answer){.code = code, .path = err.path, .text = err.text});
}

int snapshot_read(struct call *call,
                  int (*read)(struct call *call, const struct service_snapshot *copy))
{
    struct snapshot *snapshot = call->api->snapshot;
    struct service *service = call->api->service;
    const uint64_t version = service->snapshot_version(service->context);
    bool must_ask = false;
    int code = 0;
    pthread_mutex_lock(&snapshot->use);
    pthread_mutex_lock(&snapshot->lock);
    struct hived *old = snapshot_renew(snapshot);
    /* what has not changed needs no other copy, however old it is */
    bool is_fresh = snapshot->is_there && (clock_monotonic_us() < snapshot->fresh_until_us ||
                                           snapshot->current.version == version);
    if (!is_fresh) {
        struct snapshot_call *waiter = ARENA_NEW(call->arena, struct snapshot_call);
        *waiter = (struct snapshot_call){.next = snapshot->waiting, .read = read};
        call->resume_state = waiter;
        waiter->reply = call_suspend(call, waiter_go_on);
        snapshot->waiting = waiter;
        must_ask = !snapshot->is_asked;
        snapshot->is_asked = true;
        if (must_ask) {
            snapshot->asked = snapshot->spare;
            snapshot->spare = (struct service_snapshot){0};
        }
    }
    pthread_mutex_unlock(&snapshot->lock);
    hived_free(old);
    if (is_fresh)
        code = read(call, &snapshot->current);
    pthread_mutex_unlock(&snapshot->use);
    if (must_ask)
        snapshot_ask(snapshot, service);
    return code;
}
