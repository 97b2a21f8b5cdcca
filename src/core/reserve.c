/* reserve.c — room that is held back for starving jobs: docs/rfc/0011-waiting-jobs.md. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/engines.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"

/* How a reservation works: the shadow is a copy of the placer in which every group that ran when
 * the reservation was made has ended. What starts later, behind the starving job, is committed to
 * the shadow too, but only if the starving job still fits there. So once the old groups have ended
 * nothing stands in its way, whatever the policy's idea of "fits" may be. A job whose time limit
 * ends before the starving job could start at all needs no room in the shadow (backfill). */

enum { RESERVATIONS_MAX = 16 };

static bool is_behind(struct core *core, const struct core_job *a, const struct core_job *b)
{
    const struct queue_item own = core_job_item(core, a), other = core_job_item(core, b);
    return queue_is_before(core->queue, &other, &own);
}

static void reservation_release(struct reservation *reservation)
{
    if (reservation->shadow)
        reservation->shadow->ops->free(reservation->shadow);
}

static bool request_fits(struct placer *shadow, struct request *request, struct arena *arena,
                         bool *is_committed)
{
    assert(request->task_count > 0);
    struct placement_result result;
    request->placement.may_preempt = false;
    *is_committed = false;
    if (shadow->ops->place(shadow, &request->placement, arena, &result, NULL))
        return false;
    if (result.kind == PLACEMENT_PREEMPT)
        return true; /* what it may end does not delay it */
    if (result.kind == PLACEMENT_WAIT)
        return false;
    *is_committed = shadow->ops->commit(shadow, &request->placement, result.slots,
                                        result.slot_count, false, NULL) == 0;
    if (!*is_committed)
        shadow->ops->release_group(shadow, request->placement.group);
    return *is_committed;
}

/* On the nodes of this engine; 0: on any. */
static bool shadow_fits_on(struct core *core, struct placer *shadow, struct core_job *job,
                           uint16_t engine)
{
    assert(shadow != core->placer && job->id.v);
    const struct plan *plan = job->plan;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *committed[JOB_ROLES_MAX];
    size_t count = 0;
    bool fits = true;
    for (uint16_t i = 0; i < plan->role_count && fits; i++) {
        struct request request;
        bool is_committed;
        if (plan->is_gang) {
            if (plan->roles[i].part != i)
                continue;
            request_of_part(core, job, i, &arena, &request);
            if (!request.task_count)
                continue;
        } else {
            uint32_t tasks = job_role_count(&job->life, policy_of(core, job), i), j = 0;
            while (j < tasks && !job_task_is_waiting(&job->life, policy_of(core, job),
                                                     (struct task_ref){i, (uint16_t)j}))
                j++;
            if (j == tasks)
                continue;
            const struct job_task *task =
                job_task_find(&job->life, (struct task_ref){i, (uint16_t)j});
            request_of_task(core, job, (struct task_ref){i, (uint16_t)j},
                            task ? task->task_attempt : 0, &arena, &request);
        }
        request.placement.engine = core_engine_name(core, engine);
        fits = request_fits(shadow, &request, &arena, &is_committed);
        if (is_committed)
            committed[count++] = request.placement.group;
    }
    while (count > 0)
        shadow->ops->release_group(shadow, committed[--count]);
    return fits;
}

/* Does all that waits of the job fit into the shadow? Leaves the shadow as it was. */
static bool shadow_fits(struct core *core, struct placer *shadow, struct core_job *job)
{
    assert(job->id.v);
    if (!core_engine_matters(core, job))
        return shadow_fits_on(core, shadow, job, 0);
    bool fits = false;
    for (uint16_t engine = 0; !fits && (engine = core_engine_next(core, engine));)
        fits = shadow_fits_on(core, shadow, job, engine);
    return fits;
}

/* A limit may be as large as its file says: longer than time itself is none. */
static int64_t time_limit_ends_ms(const struct plan *plan, int64_t launched_ms)
{
    uint64_t limit_s = plan->time_limit_s;
    if (!limit_s || limit_s > (uint64_t)(INT64_MAX - launched_ms) / 1000)
        return INT64_MAX;
    return launched_ms + (int64_t)limit_s * 1000;
}

/* When its time limit ends it. The limit counts from the job's first start: before that the end is
 * not known, but it cannot come before the limit from now on, plus `prepare_ms`. */
static int64_t core_job_ends_ms(const struct core *core, const struct core_job *job,
                                int64_t prepare_ms)
{
    const int64_t launched_ms = job->life.launched_ms;
    return time_limit_ends_ms(job->plan, launched_ms ? launched_ms : core->now_ms + prepare_ms);
}

struct ending {
    int64_t ends_ms;
    uint32_t group;
};

static int ending_compare(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;
    if (x->ends_ms != y->ends_ms)
        return x->ends_ms < y->ends_ms ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

/* End what runs in the shadow, by time limits, until the job fits: the time of that is the latest
 * at which it can start; while a job that it waits for has not started, the earliest. Doubling
 * steps keep the searches few; the bound errs on the safe side only by naming a later time, which
 * other jobs then use. */
static bool shadow_run_forward(struct core *core, struct placer *shadow, struct core_job *job,
                               int64_t *starts_ms)
{
    assert(shadow != core->placer && job->id.v);
    struct ending *endings = mem_zero(core_group_slots(core) + 1, sizeof *endings);
    size_t count = 0;
    for (uint32_t i = 0; i < core_group_slots(core); i++)
        if (core_group_at(core, i)->name)
            endings[count++] = (struct ending){
                core_job_ends_ms(core, core_job_at(core, core_group_at(core, i)->job), 0),
                (uint32_t)i};
    qsort(endings, count, sizeof *endings, ending_compare);
    *starts_ms = 0;
    size_t next = 0, step = 1;
    while (next < count) {
        size_t end = next + step < count ? next + step : count;
        for (; next < end; next++)
            shadow->ops->release_group(shadow, core_group_at(core, endings[next].group)->name);
        step *= 2;
        if (!*starts_ms && shadow_fits(core, shadow, job))
            *starts_ms = endings[next - 1].ends_ms;
    }
    mem_free(endings);
    if (!*starts_ms)
        *starts_ms = INT64_MAX;
    return shadow_fits(core, shadow, job);
}

/* A copy of the placer in which the job holds nothing, and nothing is left to be given back. */
static struct placer *placer_without_holds(struct core *core, const struct reservation *reservation)
{
    assert(reservation->job < core_job_slots(core));
    const struct core_job *job = core_job_at(core, reservation->job);
    struct placer *copy = core->placer->ops->copy(core->placer);
    for (uint32_t i = 0; i < job->hold_count; i++) {
        copy->ops->cancel(copy, job->holds[i].group);
        copy->ops->release_group(copy, job->holds[i].group);
    }
    holdovers_release_in(core, copy);
    return copy;
}

/* The shadow anew, with all that runs now taken for ended. */
static bool reservation_fill(struct core *core, struct reservation *reservation)
{
    assert(reservation->job < core_job_slots(core));
    struct core_job *job = core_job_at(core, reservation->job);
    reservation_release(reservation);
    reservation->shadow = placer_without_holds(core, reservation);
    reservation->is_stale = reservation->is_aged = false;
    reservation->starts_asked_ms = core->now_ms;
    return shadow_run_forward(core, reservation->shadow, job, &reservation->starts_ms);
}

static struct reservation *reservation_of_cluster(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    for (size_t i = 0; i < core->reservations.count; i++) {
        const struct core_job *other = core_job_at(core, core->reservations.items[i].job);
        if (strcmp(other->plan->virtual_cluster, job->plan->virtual_cluster) == 0)
            return &core->reservations.items[i];
    }
    return NULL;
}

bool reserve_has(const struct core *core, uint32_t slot)
{
    assert(slot < core_job_slots(core));
    for (size_t i = 0; i < core->reservations.count; i++)
        if (core->reservations.items[i].job == slot)
            return true;
    return false;
}

static void reservation_remove(struct core *core, struct reservation *reservation)
{
    reservation_release(reservation);
    *reservation = core->reservations.items[--core->reservations.count];
    core->is_unblocked = true;
}

static void reservation_lose(struct core *core, struct reservation *reservation)
{
    struct core_job *job = core_job_at(core, reservation->job);
    reservation_remove(core, reservation);
    waiting_changed(core, job, WAITING_BY_RESERVATION_LOST);
}

/* The queue is tried again when the next job begins to starve, even if no job ends until then: jobs
 * behind it must not go on taking its room. */
static void starving_watch(struct core *core, int64_t starves_ms)
{
    assert(starves_ms > core->now_ms);
    if (core->starves_ms > core->now_ms && core->starves_ms <= starves_ms)
        return;
    core->starves_ms = starves_ms;
    timers_set(&core->timers, timer_key(TIMER_STARVES, 0), starves_ms);
}

void reserve_update(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    uint32_t slot = core_job_slot(core, job);
    int64_t starves_ms =
        job->life.attempt_created_ms + (int64_t)core->config.starvation_after_s * 1000;
    if (core->now_ms < starves_ms)
        starving_watch(core, starves_ms);
    if (core->now_ms < starves_ms || core->now_ms < job->reserve_ms)
        return;
    if (reserve_has(core, slot))
        return;
    struct reservation *old = reservation_of_cluster(core, job);
    if (old && (!is_behind(core, core_job_at(core, old->job), job)))
        return;
    if (!old && core->reservations.count >= RESERVATIONS_MAX)
        return;
    /* a copy of the placer is not made with every event for a job that fits nowhere */
    job->reserve_ms = core->now_ms + (int64_t)core->config.starvation_after_s * 250 + 1000;
    struct reservation reservation = {.job = slot};
    if (!reservation_fill(core, &reservation)) {
        reservation_release(&reservation);
        return;
    }
    if (old)
        reservation_lose(core, old);
    *ARRAY_ADD(&core->reservations) = reservation;
    waiting_changed(core, job, WAITING_BY_STARVATION);
    record_story(core, job, NULL, false, "Reserved",
                 "has waited %lld s: room is held back for it; smaller jobs start only where they "
                 "do not delay it",
                 (long long)((core->now_ms - job->life.attempt_created_ms) / 1000));
}

void reserve_drop(struct core *core, uint32_t slot)
{
    assert(slot < core_job_slots(core));
    for (size_t i = 0; i < core->reservations.count; i++)
        if (core->reservations.items[i].job == slot) {
            reservation_remove(core, &core->reservations.items[i]);
            return;
        }
}

void reserve_drop_all(struct core *core)
{
    for (size_t i = 0; i < core->reservations.count; i++)
        reservation_release(&core->reservations.items[i]);
    core->reservations.count = 0;
}

void reserve_copy(struct core *to, const struct core *from)
{
    assert(!to->reservations.count);
    ARRAY_COPY(&to->reservations, &from->reservations);
    for (size_t i = 0; i < to->reservations.count; i++) {
        struct placer *shadow = from->reservations.items[i].shadow;
        to->reservations.items[i].shadow = shadow->ops->copy(shadow);
    }
}

void reserve_release(struct core *core)
{
    reserve_drop_all(core);
    ARRAY_FREE(&core->reservations);
}

/* What has ended since may have told when it starts, or let it start earlier. */
static void starts_update(struct core *core, struct reservation *reservation)
{
    assert(reservation->shadow);
    enum { AGAIN_MS = 1000 }; /* a copy of the placer is not made for each job that ends */
    if (!reservation->is_aged || core->now_ms < reservation->starts_asked_ms + AGAIN_MS)
        return;
    struct placer *copy = placer_without_holds(core, reservation);
    shadow_run_forward(core, copy, core_job_at(core, reservation->job), &reservation->starts_ms);
    copy->ops->free(copy);
    reservation->is_aged = false;
    reservation->starts_asked_ms = core->now_ms;
}

static bool ends_before(struct core *core, const struct core_job *job,
                        struct reservation *reservation)
{
    assert(reservation->shadow && job->id.v);
    /* it must end in time although it has to be prepared first */
    int64_t ends_ms = core_job_ends_ms(core, job, core->prepare_ms);
    if (ends_ms == INT64_MAX)
        return false;
    starts_update(core, reservation);
    return reservation->starts_ms != INT64_MAX && ends_ms <= reservation->starts_ms;
}

/* The shadow may know the group as one that waits for its victims: that is cancelled first. */
static bool shadow_commit(struct placer *shadow, const struct placement_request *request,
                          const struct placement_slot *slots, size_t slot_count)
{
    shadow->ops->cancel(shadow, request->group);
    return shadow->ops->commit(shadow, request, slots, slot_count, false, NULL) == 0;
}

const char *reserve_check(struct core *core, const struct core_job *job,
                          const struct placement_request *request,
                          const struct placement_slot *slots, size_t slot_count,
                          struct arena *arena)
{
    assert(job->id.v);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        struct core_job *starving = core_job_at(core, reservation->job);
        if (starving == job || !is_behind(core, job, starving))
            continue;
        if (reservation->is_stale && !reservation_fill(core, reservation)) {
            reservation_lose(core, reservation); /* no longer possible at all */
            i--;
            continue;
        }
        if (ends_before(core, job, reservation))
            continue;
        struct placer *shadow = reservation->shadow;
        bool fits = shadow_commit(shadow, request, slots, slot_count) &&
                    shadow_fits(core, shadow, starving);
        shadow->ops->release_group(shadow, request->group);
        if (!fits)
            return arena_format(
                arena, "room is held back for %s, which has waited %lld s", starving->full_name,
                (long long)((core->now_ms - starving->life.attempt_created_ms) / 1000));
    }
    return "";
}

/* Is there room for both once all that the job preempts in the shadow has ended? Such groups began
 * after the reservation was made, as those from before have ended there. */
static bool shadow_takes_both(struct core *core, struct placer *shadow, struct core_job *starving,
                              const struct placement_request *request, struct arena *arena)
{
    assert(shadow != core->placer);
    enum { ROUNDS_MAX = 16 };
    struct placement_result result;
    struct placement_request probe = *request;
    probe.may_preempt = false;
    shadow->ops->cancel(shadow, probe.group);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        if (shadow->ops->place(shadow, &probe, arena, &result, NULL) ||
            result.kind == PLACEMENT_WAIT || !(result.slot_count + result.victim_count))
            return false;
        if (result.kind == PLACEMENT_BIND)
            return shadow_commit(shadow, &probe, result.slots, result.slot_count) &&
                   shadow_fits(core, shadow, starving);
        for (size_t i = 0; i < result.victim_count; i++) {
            shadow->ops->cancel(shadow, result.victims[i]);
            shadow->ops->release_group(shadow, result.victims[i]);
        }
    }
    return false;
}

static bool shadow_has_room(struct core *core, const struct reservation *reservation,
                            const struct placement_request *request, struct arena *arena)
{
    assert(reservation->shadow);
    struct core_job *starving = core_job_at(core, reservation->job);
    struct placer *copy = reservation->shadow->ops->copy(reservation->shadow);
    bool has_room = shadow_takes_both(core, copy, starving, request, arena);
    copy->ops->free(copy);
    return has_room;
}

const struct core_job *reserve_holder(struct core *core, const struct core_job *job,
                                      const struct placement_request *request, struct arena *arena)
{
    assert(job->id.v);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        const struct core_job *starving = core_job_at(core, reservation->job);
        if (starving == job || !is_behind(core, job, starving))
            continue;
        if (reservation->is_stale && !reservation_fill(core, reservation)) {
            reservation_lose(core, reservation); /* no longer possible at all */
            i--;
            continue;
        }
        if (!ends_before(core, job, reservation) &&
            !shadow_has_room(core, reservation, request, arena))
            return starving;
    }
    return NULL;
}

void reserve_commit(struct core *core, const struct core_job *job,
                    const struct placement_request *request, const struct placement_slot *slots,
                    size_t slot_count)
{
    assert(job->id.v);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        const struct core_job *starving = core_job_at(core, reservation->job);
        if (starving == job)
            continue;
        if (!is_behind(core, job, starving)) {
            reservation->is_stale = true;
            continue;
        }
        if (reservation->is_stale)
            continue;
        struct placer *shadow = reservation->shadow;
        if (ends_before(core, job, reservation))
            shadow->ops->cancel(shadow, request->group); /* it may have waited for victims there */
        else if (!shadow_commit(shadow, request, slots, slot_count)) {
            shadow->ops->release_group(shadow, request->group);
            reservation->is_stale = true;
        }
    }
}

void reserve_started(struct core *core)
{
    for (size_t i = 0; i < core->reservations.count; i++)
        core->reservations.items[i].is_aged = true;
}

void reserve_release_slot(struct core *core, const char *group, size_t slot)
{
    assert(group && core->reservations.count <= RESERVATIONS_MAX);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct placer *shadow = core->reservations.items[i].shadow;
        shadow->ops->release_slot(shadow, group, slot);
        core->reservations.items[i].is_aged = true;
    }
}

void reserve_release_group(struct core *core, const char *group)
{
    assert(group && core->reservations.count <= RESERVATIONS_MAX);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct placer *shadow = core->reservations.items[i].shadow;
        shadow->ops->release_group(shadow, group);
        core->reservations.items[i].is_aged = true;
    }
}

void reserve_cancel(struct core *core, const char *group)
{
    assert(group && core->reservations.count <= RESERVATIONS_MAX);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct placer *shadow = core->reservations.items[i].shadow;
        shadow->ops->cancel(shadow, group);
    }
}

void reserve_node(struct core *core, uint32_t node)
{
    for (size_t i = 0; i < core->reservations.count; i++)
        node_tell_placer(core, core->reservations.items[i].shadow, node);
}
