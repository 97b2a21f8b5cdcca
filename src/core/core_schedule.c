#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"

enum {
    FAILURES_MAX = 1000,     /* searches without a result in one step; the rest follows at once */
    REASON_AGAIN_MS = 10000, /* a reason that differs in numbers alone is told so often */
};

/* --- the pass --- */

static uint64_t words_hash(uint64_t hash, const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)at[i]))
            hash = (hash ^ (unsigned char)at[i]) * 1099511628211u;
    return hash;
}

/* Numbers and holders (after the first semicolon) come and go with every task that ends: they do
 * not make a reason new. Which nodes are not used, and why, does, and that there is no hope. */
uint64_t wait_reason_hash(const char *reason)
{
    const char *nodes = strstr(reason, "; not used: ");
    uint64_t hash = words_hash(14695981039346656037u, reason, strcspn(reason, ";"));
    if (nodes)
        hash = words_hash(hash, nodes, strlen(nodes));
    if (strstr(reason, "it can never start"))
        hash = ~hash;
    return hash | 1;
}

/* What is told then must not name holders of long ago for as long as nothing else happens. */
static void reason_put_off(struct core *core)
{
    if (core->again_ms > core->now_ms)
        return;
    core->again_ms = core->now_ms + REASON_AGAIN_MS;
    timers_set(&core->timers, timer_key(TIMER_AGAIN, 0), core->again_ms);
}

void wait_reason_tell(struct core *core, struct live *live, const char *reason)
{
    uint64_t hash = wait_reason_hash(reason);
    if (hash == live->reason_hash && core->now_ms - live->reason_ms < REASON_AGAIN_MS) {
        reason_put_off(core);
        return;
    }
    if (hash != live->reason_hash)
        record_story(core, live, NULL, false, "Waiting", "waiting: %s", reason);
    const uint64_t text = text_hash(text_of(reason), 0);
    if (hash != live->reason_hash || text != live->reason_text_hash)
        record_job_changed(core, live);
    live->reason_hash = hash;
    live->reason_text_hash = text;
    live->reason_ms = core->now_ms;
}

/* The reason that is known still holds; now and then the placer is asked all the same, so that it
 * does not grow old. */
static bool job_is_hopeless(struct core *core, const struct live *live, uint32_t class)
{
    return live->reason_hash && core->now_ms - live->reason_ms < REASON_AGAIN_MS &&
           core->nodes_ms < live->reason_ms && *queue_reason(core->queue, class) &&
           capacity_is_short(core, live);
}

static bool job_start(struct core *core, uint32_t slot, uint32_t class)
{
    struct live *live = &core->jobs.items[slot];
    if (job_is_hopeless(core, live, class)) {
        reason_put_off(core);
        if (!live->hold_count)
            reserve_update(core, live);
        queue_block(core->queue, class, queue_reason(core->queue, class));
        return false;
    }
    const bool was_holding = live->hold_count;
    const uint32_t was_waiting = job_waiting_count(&live->job, policy_of(core, live));
    struct outcome outcome = live_start(core, live);
    assert(&core->jobs.items[slot] == live);
    if (outcome.kind == PLACEMENT_BIND) {
        assert(!queue_has(core->queue, slot));
        return true;
    }
    /* some of its tasks may have been placed, or it has begun to preempt, or what hinders it does
     * not hinder others of its shape: another class then */
    bool was_alone = live->is_alone;
    live->is_alone = was_alone || outcome.is_of_job;
    if (job_waiting_count(&live->job, policy_of(core, live)) != was_waiting ||
        (live->hold_count > 0) != was_holding || live->is_alone != was_alone) {
        live_queue(core, live);
        class = queue_class_of(core->queue, slot);
    }
    outcome.reason =
        arena_format(&core->scratch, "%s%s", outcome.reason, nodes_not_used(core, &core->scratch));
    queue_block(core->queue, class, outcome.reason);
    core_trace(core, "job %s: %s -> %s", live->full_name, outcome.reason,
               outcome.kind == PLACEMENT_PREEMPT ? "preempt" : "wait");
    wait_reason_tell(core, live, outcome.reason);
    /* room that is held back cannot help whom a port hinders: others may use it meanwhile */
    if (outcome.is_port_conflict)
        reserve_drop(core, slot);
    else if (!live->hold_count)
        reserve_update(core, live);
    return false;
}

void core_schedule(struct core *core)
{
    if (core->is_unblocked)
        queue_unblock(core->queue);
    core->is_unblocked = false;
    struct queue_item item;
    uint32_t class, failures = 0;
    while (failures < FAILURES_MAX && queue_first(core->queue, &item, &class))
        failures += !job_start(core, item.slot, class);
    if (core->is_unblocked || queue_first(core->queue, &item, &class))
        timers_set(&core->timers, timer_key(TIMER_QUEUE, 0), core->now_ms);
}

int core_check_request(struct core *core, struct live *live, struct err *err)
{
    struct text shape = shape_of(core, live, &core->scratch);
    uint64_t hash = text_hash(shape, 0);
    if (id_map_get(&core->known_shapes, hash) != MAP_NONE)
        return 0;
    for (uint16_t i = 0; i < live->plan->role_count; i++) {
        struct request request;
        struct placement_result result;
        if (live->plan->is_gang && live->plan->roles[i].part != i)
            continue;
        if (live->plan->is_gang)
            request_of_part(core, live, i, &core->scratch, &request);
        else
            request_of_task(core, live, (struct task_ref){i, 0}, 0, &core->scratch, &request);
        request.placement.may_preempt = false;
        if (!request.task_count)
            continue;
        int code = core->placer->ops->place(core->placer, &request.placement, &core->scratch,
                                            &result, err);
        if (code)
            return code;
    }
    enum { SHAPES_MAX = 4096 };
    if (core->known_shapes.count >= SHAPES_MAX)
        id_map_release(&core->known_shapes);
    id_map_set(&core->known_shapes, hash, 1);
    return 0;
}
