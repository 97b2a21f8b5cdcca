#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/capacity.h"
#include "core/clusters.h"
#include "core/gang_start.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/part.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/renew.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/schedule.h"
#include "core/shadow.h"
#include "core/start.h"
#include "core/state.h"
#include "core/waiting.h"

enum {
    REASON_AGAIN_MS = 10000, /* a reason that differs in numbers alone is told so often */
    REVIEW_MAX = 1000,       /* classes reviewed when a timer asks for it, or all, … */
    REVIEW_ALL_MS = 60000,   /* … so often at most */
    REST_STEPS_MAX = 64,     /* of a pass, in which others come first */
    AT_ONCE_MAX = 32,        /* steps of one pass without a pause, … */
    PAUSE_MS = 10, /* … then one before each: the thread and the log have other things to do … */
    PLACING_PAUSE_MS = 1, /* … but all wait for a gang that is searched for */
    /* units of work in one step (struct pass); the rest follows */
    WORK_REVIEW = 500,
    WORK_IN_ORDER = 1000,
    WORK_TURNS = 1000,
    WORK_OF_TRY = 2, /* without a search */
    VISITS_PER_WORK = 4,
};

/* --- the pass --- */

/* A reason is new, too, when other nodes are not used, or when there is no hope any more. */
static uint64_t topic_of(const struct start_outcome *outcome, const char *nodes)
{
    assert(outcome->kind != PLACEMENT_BIND);
    uint64_t topic = *nodes ? text_words_hash(text_of(nodes), outcome->topic) : outcome->topic;
    if (outcome->is_never)
        topic = ~topic;
    return topic | 1;
}

/* The reason must not name jobs that have ended: it is shown until the next pass, so one is asked
 * for. */
static void reason_put_off(struct core *core)
{
    assert(core->output);
    if (core->again_ms > core->now_ms)
        return;
    core->again_ms = core->now_ms + REASON_AGAIN_MS;
    timers_set(&core->timers, timer_key(TIMER_AGAIN, 0), core->again_ms);
}

void wait_reason_tell(struct core *core, struct core_job *job, const char *reason, uint64_t topic)
{
    assert(job->id.v);
    if (topic == job->reason_topic && core->now_ms - job->reason_ms < REASON_AGAIN_MS) {
        reason_put_off(core);
        return;
    }
    if (topic != job->reason_topic)
        record_story(core, job, NULL, false, "Waiting", "waiting: %s", reason);
    const uint64_t text = text_hash(text_of(reason), 0);
    if (topic != job->reason_topic || text != job->reason_text_hash)
        record_job_changed(core, job);
    job->reason_topic = topic;
    job->reason_text_hash = text;
    job->reason_ms = core->now_ms;
}

/* Does the reason that was told still hold? In a review the placer is asked again after a while, so
 * that the reason names the jobs of now. */
static bool job_is_hopeless(struct core *core, const struct core_job *job, uint32_t class,
                            bool is_review)
{
    assert(job->id.v);
    return job->reason_topic && (!is_review || core->now_ms - job->reason_ms < REASON_AGAIN_MS) &&
           core->nodes_ms < job->reason_ms && *queue_reason(core->queue, class) &&
           capacity_is_short(core, job);
}

static void outcome_explain(struct core *core, const struct core_job *job,
                            struct start_outcome *outcome)
{
    const char *nodes = nodes_not_used(core, &core->scratch);
    outcome->topic = topic_of(outcome, nodes);
    outcome->reason = arena_format(&core->scratch, "%s%s", outcome->reason, nodes);
    core_trace(core, "job %s: %s -> %s", job->full_name, outcome->reason,
               outcome->kind == PLACEMENT_PREEMPT ? "preempt" : "wait");
}

/* Try to start one job. When it cannot start, the outcome has the reason, and *class its class. */
static struct start_outcome job_try(struct core *core, uint32_t slot, uint32_t *class)
{
    struct core_job *job = core_job_at(core, slot);
    const bool was_holding = job->hold_count, was_alone = job->is_alone;
    const uint32_t was_waiting = job_waiting_count(&job->life, policy_of(core, job));
    struct start_outcome outcome = core_job_start(core, job);
    assert(core_job_at(core, slot) == job);
    assert(queue_has(core->queue, slot) == (outcome.kind != PLACEMENT_BIND));
    waiting_changed(core, job, WAITING_BY_TRY);
    if (outcome.kind == PLACEMENT_BIND) {
        job_preemption_settle(&job->life);
        return outcome;
    }
    /* some of its tasks may have been placed, or it has begun to preempt, or what hinders it does
     * not hinder others of its shape: another class then */
    job->is_alone = was_alone || outcome.is_of_job;
    const bool is_other = job_waiting_count(&job->life, policy_of(core, job)) != was_waiting ||
                          (job->hold_count > 0) != was_holding || job->is_alone != was_alone;
    if (is_other && job->waiting != WAITING_STARTING) /* that one will not be tried again */
        core_job_queue(core, job);
    *class = queue_class_of(core->queue, slot);
    if (!outcome.is_cut)
        outcome_explain(core, job, &outcome);
    return outcome;
}

/* A job that would end before the starving job starts may start first: the one with the shortest
 * time limit is tried. */
static bool shortest_starts(struct core *core, uint32_t class, const struct queue_item *first)
{
    assert(first->id != 0);
    holdovers_release(core, UINT32_MAX); /* of the first: they are the room for this one */
    struct queue_item shortest = queue_shortest(core->queue, class);
    uint32_t own = class;
    if (shortest.slot == first->slot || shortest.limit_s == first->limit_s)
        return false;
    return job_try(core, shortest.slot, &own).kind == PLACEMENT_BIND;
}

/* Nobody is asked while its victims end; now and then it is told which are left. */
static void victims_wait(struct core *core, struct core_job *job, uint32_t class)
{
    if (core->now_ms - job->reason_ms < REASON_AGAIN_MS) {
        reason_put_off(core);
        queue_block(core->queue, class, queue_reason(core->queue, class),
                    queue_topic(core->queue, class), false);
        return;
    }
    struct start_outcome outcome = victims_outcome(core, job);
    outcome_explain(core, job, &outcome);
    queue_block(core->queue, class, outcome.reason, outcome.topic, false);
    wait_reason_tell(core, job, outcome.reason, outcome.topic);
}

/* A gang whose search takes many steps must not be tried again and again, because something was
 * freed meanwhile, before those behind it have had a turn. */
static void rest_begin(struct core *core, const struct core_job *job)
{
    struct pass *pass = &core->pass;
    if (pass->rested_count == RESTED_MAX)
        pass->rested_count = 0;
    if (!pass->rested_count)
        pass->rested_steps = 0;
    pass->rested[pass->rested_count++] = job->id.v;
}

static bool is_resting(const struct core *core, uint32_t id)
{
    for (uint32_t i = 0; i < core->pass.rested_count; i++)
        if (core->pass.rested[i] == id)
            return true;
    return false;
}

/* Nothing of a virtual cluster that is closed starts: what the job holds is given back, and its
 * class is passed over until one is opened. But a gang whose tasks take their places is decided. */
static bool class_is_closed(struct core *core, struct core_job *job, uint32_t slot)
{
    const struct cluster_record *closed = cluster_closed(core, job->plan->virtual_cluster);
    const struct placing *placing = placing_of(core, job);
    if (!closed || (placing && placing->stage == PLACING_START))
        return false;
    const bool was_holding = job->hold_count;
    if (was_holding || placing) {
        holds_close(core, job);
        waiting_changed(core, job, WAITING_BY_CLOSING);
    }
    if (was_holding)
        core_job_queue(core, job); /* of another class now */
    const char *reason = cluster_closed_text(closed, &core->scratch);
    core_trace(core, "job %s: %s -> wait", job->full_name, reason);
    queue_close(core->queue, queue_class_of(core->queue, slot), reason, CLUSTER_CLOSED_TOPIC);
    wait_reason_tell(core, job, reason, CLUSTER_CLOSED_TOPIC);
    return true;
}

/* The first job of its class: it starts, or another of the class does, or the class is blocked. */
static void class_try(struct core *core, const struct queue_item *item, uint32_t class,
                      bool is_review)
{
    assert(item->id != 0);
    struct core_job *job = core_job_at(core, item->slot);
    core->pass.work += WORK_OF_TRY;
    if (class_is_closed(core, job, item->slot))
        return;
    const bool goes_on = placing_of(core, job) != NULL;
    if (!goes_on && victims_are_left(core, job)) {
        victims_wait(core, job, class);
        return;
    }
    if (!goes_on && job_is_hopeless(core, job, class, is_review)) {
        reason_put_off(core);
        if (!job->hold_count)
            reserve_update(core, job);
        queue_block(core->queue, class, queue_reason(core->queue, class),
                    queue_topic(core->queue, class), false);
        return;
    }
    struct start_outcome outcome = job_try(core, item->slot, &class);
    if (goes_on && !outcome.is_cut && outcome.kind == PLACEMENT_WAIT)
        rest_begin(core, job);
    if (outcome.kind == PLACEMENT_BIND || outcome.is_cut ||
        (outcome.is_held_back && shortest_starts(core, class, item)))
        return;
    class = queue_class_of(core->queue, item->slot);
    queue_block(core->queue, class, outcome.reason, outcome.topic, outcome.is_held_back);
    wait_reason_tell(core, job, outcome.reason, outcome.topic);
    /* room that is held back cannot help whom a port hinders: others may use it meanwhile */
    if (outcome.is_port_conflict) {
        reserve_drop(core, item->slot);
        waiting_changed(core, job, WAITING_BY_RESERVATION_LOST);
    } else if (!job->hold_count && (!core->placing.job || placing_of(core, job))) {
        reserve_update(core, job); /* it would make an end of the search for another one's places */
    }
}

static bool next_behind(struct core *core, const struct queue_item *after, bool is_review,
                        struct queue_item *item, uint32_t *class)
{
    if (!queue_count(core->queue))
        return false;
    struct queue_room room = capacity_room(core);
    uint32_t visits = 0;
    bool is_there = queue_next(core->queue, after->id ? after : NULL, is_review ? NULL : &room,
                               item, class, &visits);
    core->pass.work += visits / VISITS_PER_WORK;
    return is_there;
}

/* The same, but none that rests. */
static bool next_ready(struct core *core, const struct queue_item *after, struct queue_item *item,
                       uint32_t *class)
{
    bool is_there = next_behind(core, after, false, item, class);
    while (is_there && is_resting(core, item->id)) {
        const struct queue_item resting = *item;
        is_there = next_behind(core, &resting, false, item, class);
    }
    return is_there;
}

/* How many classes are reviewed, that is tried although too little seems to be free: all when a
 * node has changed, and once a minute when a timer is due. A review begins when the last one has
 * ended. */
static void review_begin(struct core *core)
{
    assert(core->is_unblocked);
    struct pass *pass = &core->pass;
    bool is_all = core->nodes_ms > pass->reviewed_ms || core->nodes_ms == core->now_ms ||
                  (pass->is_due && core->now_ms - pass->reviewed_ms >= REVIEW_ALL_MS);
    uint32_t count = queue_class_count(core->queue);
    if (!pass->review_left)
        pass->review_at.id = 0;
    if (is_all) {
        pass->reviewed_ms = core->now_ms;
        pass->review_left = count;
    } else if (pass->is_due && pass->review_left < REVIEW_MAX) {
        pass->review_left = count < REVIEW_MAX ? count : REVIEW_MAX;
    }
    pass->is_due = false;
}

bool placer_is_untidy(const struct core *core)
{
    const struct placer_ops *ops = core->placer->ops;
    return placer_is_renewing(core) || core->policy_change.placer ||
           (ops->tidy && !ops->tidy(core->placer, 0));
}

/* Nobody is tried while a gang is placed or places are given back: docs/rfc/0016-gangs-in-steps.md.
 */
static bool pass_is_held(const struct core *core)
{
    return core->placing.job || holdovers_are_left(core) || core->groups_given_up ||
           gang_is_creating(core) || shadow_is_made(core) || room_is_asked(core) ||
           reserve_is_joining(core) || placer_is_untidy(core);
}

static void review_continue(struct core *core)
{
    struct pass *pass = &core->pass;
    struct queue_item item;
    uint32_t class;
    while (pass->review_left && pass->work < WORK_REVIEW && !pass_is_held(core)) {
        if (!next_behind(core, &pass->review_at, true, &item, &class)) {
            pass->review_left = pass->review_at.id ? pass->review_left : 0;
            pass->review_at.id = 0;
            continue;
        }
        pass->review_left--;
        pass->review_at = item;
        class_try(core, &item, class, true);
    }
}

/* Try classes in order from the first one on. False: none is left. */
static bool order_take(struct core *core)
{
    const struct queue_item first = {0};
    const uint32_t end = core->pass.work + WORK_IN_ORDER;
    struct queue_item item;
    uint32_t class;
    while (next_ready(core, &first, &item, &class)) {
        if (core->pass.work >= end || pass_is_held(core))
            return true;
        class_try(core, &item, class, false);
    }
    return false;
}

/* Try classes from where the last turn ended, so that no job waits for ever behind jobs that fail.
 */
static void turns_take(struct core *core)
{
    const struct queue_item first = {0};
    const uint32_t end = core->pass.work + WORK_TURNS;
    struct queue_item item;
    uint32_t class;
    while (core->pass.work < end && !pass_is_held(core) &&
           (next_ready(core, &core->pass.turn, &item, &class) ||
            next_ready(core, &first, &item, &class))) {
        core->pass.turn = item;
        class_try(core, &item, class, false);
    }
}

/* What is left is done by a timer: at once, or after a pause when there is much of it. */
static void pass_go_on(struct core *core)
{
    assert(core->output);
    struct pass *pass = &core->pass;
    pass->cuts++;
    const struct placer_ops *ops = core->placer->ops;
    const enum placing_stage stage = core->placing.stage;
    const bool is_starting =
        gang_is_creating(core) || core->groups_given_up ||
        (core->placing.job &&
         (stage == PLACING_START || (stage == PLACING_TASKS && !core->is_searching)));
    const bool is_at_once =
        is_starting || placer_is_renewing(core) || core->policy_change.placer ||
        shadow_is_made(core) || room_is_asked(core) || reserve_is_joining(core) ||
        (ops->is_making && ops->is_making(core->placer)) || pass->cuts < AT_ONCE_MAX;
    const int64_t pause_ms = core->placing.job ? PLACING_PAUSE_MS : PAUSE_MS;
    pass->next_ms = core->now_ms + (is_at_once ? 0 : pause_ms);
    timers_set(&core->timers, timer_key(TIMER_QUEUE, 0), pass->next_ms);
}

/* What keeps the others waiting goes on first. False: there is nothing of the kind. */
static bool gang_goes_on(struct core *core)
{
    if (!pass_is_held(core))
        return false;
    if (shadow_is_made(core) && !placer_is_renewing(core)) {
        shadow_go_on(core, core->slice);
        return true;
    }
    if (room_is_asked(core) && !placer_is_renewing(core)) {
        room_go_on(core, 0);
        return true;
    }
    if (reserve_is_joining(core) && !placer_is_renewing(core)) {
        reserve_join(core, core->slice);
        return true;
    }
    const bool must_start = renewal_waits(core); /* then the placer's other work is another's */
    if (!must_start && (placer_is_untidy(core) || !holdovers_release(core, core->slice) ||
                        placer_is_untidy(core) || !core->placing.job))
        return true;
    const struct core_job *job = core_job_find(core, (struct job_id){core->placing.job});
    const struct queue_item item = core_job_item(core, job);
    class_try(core, &item, queue_class_of(core->queue, item.slot), false);
    return true;
}

static void classes_take(struct core *core)
{
    if (core->is_unblocked) {
        queue_unblock(core->queue);
        review_begin(core);
    }
    core->is_unblocked = false;
    review_continue(core);
    bool is_cut = order_take(core);
    if (core->pass.rested_count && (!is_cut || ++core->pass.rested_steps > REST_STEPS_MAX)) {
        core->pass.rested_count = 0;
        is_cut = is_cut || order_take(core);
    }
    if (is_cut)
        turns_take(core);
}

/* The job of a search that was cut has been stopped, or does without it. */
static void search_end_unwanted(struct core *core)
{
    const struct placing *placing = &core->placing;
    const bool is_wanted = placing->stage == PLACING_SEARCH || placing->stage == PLACING_TASKS;
    if (!placing->job || !is_wanted)
        search_give_up(core);
}

void core_schedule(struct core *core)
{
    assert(core->output);
    search_end_unwanted(core);
    room_settle(core);
    reserve_settle(core);
    const struct queue_item first = {0};
    struct queue_item item;
    uint32_t class;
    if (!core->is_unblocked && !core->queued_jobs.count && core->now_ms < core->pass.next_ms)
        return;
    if (!gang_goes_on(core))
        classes_take(core);
    if (core->is_unblocked || core->pass.review_left || pass_is_held(core) ||
        next_behind(core, &first, false, &item, &class)) {
        if (core->now_ms >= core->pass.next_ms)
            pass_go_on(core);
        return;
    }
    core->pass.cuts = core->pass.rested_count = 0;
    core->pass.next_ms = 0;
    if (queue_first(core->queue, &item, &class))
        reason_put_off(core);
}

bool schedule_is_cut(const struct core *core)
{
    return core->pass.next_ms != 0;
}

void schedule_hurry(struct core *core)
{
    core->pass.cuts = 0;
    if (core->pass.next_ms)
        core->pass.next_ms = core->now_ms;
}

int core_check_request(struct core *core, struct core_job *job, struct err *err)
{
    assert(job->id.v);
    struct text shape = shape_of(core, job, &core->scratch);
    uint64_t hash = text_hash(shape, 0);
    bool is_known = true;
    if (id_map_get(&core->known_shapes, hash) != MAP_NONE)
        return 0;
    for (uint16_t i = 0; i < job->plan->role_count; i++) {
        struct request request;
        struct placement_result result;
        if (job->plan->is_gang && job->plan->roles[i].part != i)
            continue;
        if (job->plan->is_gang)
            request_of_part(core, job, i, &core->scratch, &request);
        else
            request_of_task(core, job, (struct task_ref){i, 0}, 0, &core->scratch, &request);
        request.placement.may_preempt = false;
        request.placement.is_check = true;
        if (!request.task_count)
            continue;
        int code = core->placer->ops->place(core->placer, &request.placement, &core->scratch,
                                            &result, err);
        if (code)
            return code;
        is_known = is_known && result.kind == PLACEMENT_BIND;
    }
    if (!is_known)
        return 0; /* there are no cells yet: it is asked again next time */
    enum { SHAPES_MAX = 4096 };
    if (core->known_shapes.count >= SHAPES_MAX)
        id_map_release(&core->known_shapes);
    id_map_set(&core->known_shapes, hash, 1);
    return 0;
}

void schedule_forget_shapes(struct core *core)
{
    id_map_release(&core->known_shapes);
}

void queued_note(struct core *core, uint32_t slot)
{
    assert(queue_has(core->queue, slot));
    *ARRAY_ADD(&core->queued_jobs) = slot;
}

void queued_tell(struct core *core)
{
    for (size_t i = 0; i < core->queued_jobs.count; i++) {
        uint32_t slot = core->queued_jobs.items[i];
        struct core_job *job = core_job_at(core, slot);
        assert(job->id.v);
        if (job->reason_topic || !queue_has(core->queue, slot))
            continue;
        const uint32_t class = queue_class_of(core->queue, slot);
        const char *reason = queue_reason(core->queue, class);
        if (*reason)
            wait_reason_tell(core, job, arena_copy(&core->scratch, text_of(reason)),
                             queue_topic(core->queue, class));
    }
    core->queued_jobs.count = 0;
}

void schedule_release(struct core *core)
{
    ARRAY_FREE(&core->queued_jobs);
    id_map_release(&core->known_shapes);
}
