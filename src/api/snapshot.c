#include "api/snapshot.h"
#include "api/call.h"
#include "api/http_watch.h"
#include "base/memory.h"
#include "hived/hived.h"
#include <pthread.h>

struct snapshot {
    pthread_mutex_t lock;
    struct service_look look;
    bool is_there;
    int64_t fresh_until_us;
};

/* Of one call that waits for a copy. */
struct looking {
    int (*look)(struct call *call, const struct service_look *look);
    struct service_look copy;
};

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = mem_zero(1, sizeof *snapshot);
    pthread_mutex_init(&snapshot->lock, NULL);
    return snapshot;
}

static void look_release(struct service_look *look)
{
    hived_free(look->hived);
    mem_free(look->nodes);
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    look_release(&snapshot->look);
    pthread_mutex_destroy(&snapshot->lock);
    mem_free(snapshot);
}

static int look_arrived(struct call *call)
{
    struct looking *looking = call->resume_state;
    struct snapshot *snapshot = call->api->snapshot;
    if (call->answer_code) {
        look_release(&looking->copy);
        call->err = call->answer_err;
        return call->answer_code;
    }
    pthread_mutex_lock(&snapshot->lock);
    look_release(&snapshot->look);
    snapshot->look = looking->copy;
    snapshot->is_there = true;
    snapshot->fresh_until_us = http_clock_us() + SNAPSHOT_REST * looking->copy.cost_us;
    int result = looking->look(call, &snapshot->look);
    pthread_mutex_unlock(&snapshot->lock);
    return result;
}

int snapshot_look(struct call *call,
                  int (*look)(struct call *call, const struct service_look *look))
{
    struct service *service = call->api->service;
    struct snapshot *snapshot = call->api->snapshot;
    pthread_mutex_lock(&snapshot->lock);
    bool is_fresh = snapshot->is_there && http_clock_us() < snapshot->fresh_until_us;
    int result = is_fresh ? look(call, &snapshot->look) : 0;
    pthread_mutex_unlock(&snapshot->lock);
    if (is_fresh)
        return result;
    struct looking *looking = ARENA_NEW(call->arena, struct looking);
    looking->look = look;
    call->resume_state = looking;
    struct service_reply reply = call_suspend(call, look_arrived);
    struct err err = {0};
    int failed = service->look(service->context, &looking->copy, reply, &err);
    if (failed)
        call_refused(call, failed, &err);
    return 0;
}
