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
#include "core/renew.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"
#include "model/reason.h"

/* How a reservation works: the shadow is a copy of the placer in which every group of others that
 * ran when the reservation was made has ended. What starts later, behind the starving job, is
 * committed to the shadow too, but only if the starving job still fits there. So once the old
 * groups have ended nothing stands in its way, whatever the policy's idea of "fits" may be. A job
 * whose time limit ends before the starving job could start at all needs no room in the shadow
 * (backfill).
 *
 * Tasks of the starving job itself run on in the shadow: what waits of it does not wait for their
 * end. Those that start later are committed to the shadow as well, without a question. */

enum {
    PIECES_MAX = 256,    /* in which one part takes its places in a shadow */
    WORK_OF_COMMIT = 16, /* in units of core->pass.work */
};

static bool is_behind(struct core *core, const struct core_job *a, const struct core_job *b)
{
    const struct queue_item own = core_job_item(core, a), other = core_job_item(core, b);
    return queue_is_before(core->queue, &other, &own);
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

static struct reservation *reservation_of(const struct core *core, uint32_t slot)
{
    assert(slot < core_job_slots(core));
    for (size_t i = 0; i < core->reservations.count; i++)
        if (core->reservations.items[i].job == slot)
            return &core->reservations.items[i];
    return NULL;
}

bool reserve_has(const struct core *core, uint32_t slot)
{
    return reservation_of(core, slot) != NULL;
}

static void joining_release(struct reservation *reservation)
{
    mem_free(reservation->joining.slots);
    reservation->joining = (struct joining){0};
}

static void reservation_remove(struct core *core, struct reservation *reservation)
{
    joining_release(reservation);
    room_shadow_leave(core, reservation);
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

/* When what has waited longest of it begins to starve. All of its tasks are looked at only when
 * that may have been: those that come to wait later do so from then on. */
static int64_t job_starves_ms(struct core *core, struct core_job *job)
{
    enum { TASKS_LOOKED_AT_PER_WORK = 32 };
    const int64_t after_ms = (int64_t)core->config.starvation_after_s * 1000;
    if (core->now_ms >= job->waits_ms + after_ms) {
        job->waits_ms = job_waits_ms(&job->life, policy_of(core, job));
        if (job->life.has_tasks)
            core->pass.work += core_job_size(core, job).tasks / TASKS_LOOKED_AT_PER_WORK;
    }
    return job->waits_ms + after_ms;
}

void reserve_update(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    uint32_t slot = core_job_slot(core, job);
    struct reservation *own = reservation_of(core, slot);
    const int64_t starves_ms = job_starves_ms(core, job);
    if (core->now_ms < starves_ms) {
        starving_watch(core, starves_ms);
        if (own) /* those of its tasks that starved have started */
            reservation_lose(core, own);
        return;
    }
    if (own || core->now_ms < job->reserve_ms)
        return;
    struct reservation *old = reservation_of_cluster(core, job);
    if (old && (!is_behind(core, core_job_at(core, old->job), job)))
        return;
    if (!old && core->reservations.count >= RESERVATIONS_MAX)
        return;
    if (shadow_is_made(core)) /* for another one: its turn comes again */
        return;
    /* a copy of the placer is not made with every event for a job that fits nowhere */
    job->reserve_ms = core->now_ms + (int64_t)core->config.starvation_after_s * 250 + 1000;
    shadow_begin(core, slot, SHADOW_FOR_NEW);
    shadow_go_on(core, core->slice);
}

/* Its shadow is made: it has the room, unless a job ahead of it in its virtual cluster has. */
static void reservation_begin(struct core *core, const struct reservation *reservation)
{
    struct core_job *job = core_job_at(core, reservation->job);
    struct reservation *old = reservation_of_cluster(core, job);
    if (old)
        reservation_lose(core, old);
    *ARRAY_ADD(&core->reservations) = *reservation;
    waiting_changed(core, job, WAITING_BY_STARVATION);
    record_story(core, job, NULL, false, "Reserved",
                 "has waited %lld s: room is held back for it; smaller jobs start only where they "
                 "do not delay it",
                 (long long)((core->now_ms - job->waits_ms) / 1000));
}

void reserve_made(struct core *core, const struct shadow_making *made)
{
    assert(made->shadow && made->job != NONE);
    const struct reservation reservation = {.job = made->job,
                                            .shadow = made->shadow,
                                            .starts_ms =
                                                made->starts_ms ? made->starts_ms : INT64_MAX,
                                            .starts_asked_ms = core->now_ms,
                                            .is_aged = made->is_aged};
    struct reservation *known = reservation_of(core, made->job);
    assert(known || made->purpose == SHADOW_FOR_NEW);
    if (made->purpose == SHADOW_FOR_NEW && made->fitting.fits) {
        reservation_begin(core, &reservation);
        return;
    }
    if (made->purpose == SHADOW_FOR_OLD) {
        assert(!known->joining.job);
        room_shadow_leave(core, known);
        *known = reservation;
        if (!made->fitting.fits)
            reservation_lose(core, known); /* no longer possible at all */
        return;
    }
    past_placer_add(core, made->shadow);
    if (!known)
        return;
    known->starts_ms = reservation.starts_ms;
    known->starts_asked_ms = reservation.starts_asked_ms;
    known->is_aged = reservation.is_aged;
}

void reserve_drop_cluster(struct core *core, const char *name)
{
    const uint32_t making = shadow_job(core);
    if (making != NONE && !strcmp(core_job_at(core, making)->plan->virtual_cluster, name))
        shadow_leave(core, making);
    for (size_t i = core->reservations.count; i-- > 0;) {
        struct core_job *job = core_job_at(core, core->reservations.items[i].job);
        if (strcmp(job->plan->virtual_cluster, name) != 0)
            continue;
        reservation_remove(core, &core->reservations.items[i]);
        waiting_changed(core, job, WAITING_BY_CLOSING);
    }
}

void reserve_drop(struct core *core, uint32_t slot)
{
    struct reservation *reservation = reservation_of(core, slot);
    shadow_leave(core, slot);
    if (reservation)
        reservation_remove(core, reservation);
}

static void reservations_free(struct core *core)
{
    shadow_drop(core);
    room_drop(core);
    for (size_t i = 0; i < core->reservations.count; i++) {
        joining_release(&core->reservations.items[i]);
        core->reservations.items[i].shadow->ops->free(core->reservations.items[i].shadow);
    }
    core->reservations.count = 0;
}

/* Another placer begins: it may hold room back at once. */
void reserve_drop_all(struct core *core)
{
    const uint32_t job = shadow_job(core);
    if (job != NONE)
        core_job_at(core, job)->reserve_ms = 0;
    for (size_t i = 0; i < core->reservations.count; i++)
        core_job_at(core, core->reservations.items[i].job)->reserve_ms = 0;
    reservations_free(core);
}

void reserve_copy(struct core *to, const struct core *from)
{
    assert(!to->reservations.count);
    ARRAY_COPY(&to->reservations, &from->reservations);
    for (size_t i = 0; i < to->reservations.count; i++) {
        struct placer *shadow = from->reservations.items[i].shadow;
        to->reservations.items[i].shadow = shadow->ops->copy(shadow);
        struct joining *joining = &to->reservations.items[i].joining;
        if (joining->job)
            joining->slots = placement_slots_copy(joining->slots, joining->task_count);
    }
}

void reserve_release(struct core *core)
{
    reservations_free(core);
    ARRAY_FREE(&core->reservations);
}

/* May the placer be copied again for it, as `job` asks? */
static bool may_copy_again(struct core *core, const struct reservation *reservation,
                           const struct core_job *job)
{
    enum {
        AGAIN_MS = 1000,      /* a copy of the placer is not made for each job that ends … */
        AGAIN_SLOW_MS = 30000 /* … nor again and again for one job, on a slow machine */
    };
    const int64_t again_ms = placing_of(core, job) ? AGAIN_SLOW_MS : AGAIN_MS;
    return core->now_ms >= reservation->starts_asked_ms + again_ms;
}

/* What has ended since may have told when it starts, or let it start earlier. */
static bool starts_are_old(struct core *core, const struct reservation *reservation,
                           const struct core_job *job)
{
    return reservation->is_aged && may_copy_again(core, reservation, job);
}

/* When the job would end, if it started now: it must end in time although it has to be prepared
 * first. */
static int64_t would_end_ms(const struct core *core, const struct core_job *job)
{
    return core_job_ends_ms(job, core->now_ms + core->prepare_ms);
}

enum readiness { READY, READY_LATER, READY_LOST };

/* Is what the reservation knows good enough to ask it about the job? If not, that is made anew,
 * which may take several steps; or the reservation is no longer possible at all. */
static enum readiness reservation_ready(struct core *core, size_t at, const struct core_job *job,
                                        uint32_t work_end)
{
    assert(at < core->reservations.count);
    for (;;) {
        const struct reservation *reservation = &core->reservations.items[at];
        const uint32_t slot = reservation->job;
        const bool is_old =
            would_end_ms(core, job) != INT64_MAX && starts_are_old(core, reservation, job);
        if (!reservation->is_stale && !is_old)
            return READY;
        if (shadow_is_made(core))
            return READY_LATER;
        shadow_begin(core, slot, reservation->is_stale ? SHADOW_FOR_OLD : SHADOW_FOR_TIME);
        if (!shadow_go_on(core, work_end))
            return READY_LATER;
        if (!reserve_has(core, slot))
            return READY_LOST;
    }
}

static bool ends_before(const struct core *core, const struct core_job *job,
                        const struct reservation *reservation)
{
    assert(reservation->shadow && job->id.v);
    const int64_t ends_ms = would_end_ms(core, job);
    return ends_ms != INT64_MAX && reservation->starts_ms != INT64_MAX &&
           ends_ms <= reservation->starts_ms;
}

/* The first job ahead that starves, and has no room beside who asks. *is_later: it is known in a
 * later step. */
static const struct core_job *starving_find(struct core *core, const struct room_question *question,
                                            bool *is_later)
{
    const struct core_job *job = question->job;
    const uint32_t work_begin = core->pass.work;
    *is_later = false;
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        const struct core_job *starving = core_job_at(core, reservation->job);
        if (starving == job || !is_behind(core, job, starving))
            continue;
        const enum readiness readiness = reservation_ready(core, i, job, core->slice);
        *is_later = readiness == READY_LATER;
        if (*is_later) {
            room_forget(core);
            return NULL;
        }
        if (readiness == READY_LOST) {
            i--;
            continue;
        }
        if (ends_before(core, job, reservation))
            continue;
        const enum room_answer answer = room_ask(core, reservation, question, work_begin);
        *is_later = answer == ROOM_ASKED;
        if (*is_later)
            return NULL;
        if (answer == ROOM_FOR_ONE) {
            room_forget(core);
            if (!reservation->has_started || !may_copy_again(core, reservation, job))
                return starving;
            reservation->is_stale = true; /* is there room beside what has started of it at all? */
            i--;
        }
    }
    room_forget(core);
    return NULL;
}

const char *reserve_check(struct core *core, const struct core_job *job,
                          const struct request *request, const struct placement_slot *slots,
                          size_t slot_count, struct arena *arena)
{
    assert(job->id.v && slots);
    bool is_later;
    const struct core_job *starving =
        starving_find(core, &(struct room_question){job, request, slots, slot_count}, &is_later);
    if (is_later)
        return NULL;
    if (!starving)
        return "";
    return arena_format(arena, REASON_HELD_BACK, starving->full_name,
                        (long long)((core->now_ms - starving->waits_ms) / 1000));
}

const struct core_job *reserve_holder(struct core *core, const struct core_job *job,
                                      const struct request *request, bool *is_later)
{
    assert(job->id.v);
    return starving_find(core, &(struct room_question){.job = job, .request = request}, is_later);
}

/* --- who starts behind it takes his places in the shadow --- */

bool reserve_is_joining(const struct core *core)
{
    for (size_t i = 0; i < core->reservations.count; i++)
        if (core->reservations.items[i].joining.job)
            return true;
    return false;
}

static void joining_end(struct reservation *reservation, const struct placement_request *request,
                        bool is_there)
{
    struct placer *shadow = reservation->shadow;
    if (!is_there)
        shadow->ops->release_group(shadow, request->group);
    reservation->is_stale |= !is_there;
    joining_release(reservation);
}

static uint32_t joining_next(struct core *core, struct reservation *reservation)
{
    struct joining *joining = &reservation->joining;
    struct placer *shadow = reservation->shadow;
    struct core_job *job = core_job_find(core, (struct job_id){joining->job});
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct request request;
    assert(job && job->plan->is_gang);
    request_of_part(core, job, joining->role, &arena, &request);
    if (request.task_count != joining->task_count) {
        shadow->ops->forget(shadow);
        joining_end(reservation, &request.placement, false);
        return 1;
    }
    const bool is_cut = joining->pieces++ < PIECES_MAX;
    if (!joining->has_begun && is_cut && shadow->ops->tidy &&
        !shadow->ops->tidy(shadow, core->slice))
        return core->slice;
    joining->has_begun = true;
    request.placement.slice = is_cut ? core->slice : 0;
    const int code = shadow->ops->commit(shadow, &request.placement, joining->slots,
                                         joining->task_count, false, NULL);
    if (code == PLACEMENT_CUT)
        return core->slice;
    joining_end(reservation, &request.placement, code == 0);
    return WORK_OF_COMMIT + (uint32_t)request.task_count;
}

static struct reservation *joining_first(const struct core *core)
{
    size_t at = 0;
    assert(reserve_is_joining(core));
    while (!core->reservations.items[at].joining.job)
        at++;
    return &core->reservations.items[at];
}

void reserve_join(struct core *core, uint32_t work_end)
{
    do
        core->pass.work += joining_next(core, joining_first(core));
    while (reserve_is_joining(core) && core->pass.work < work_end);
}

void reserve_settle(struct core *core)
{
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        struct placer *shadow = reservation->shadow;
        if (!reservation->joining.job || reservation->joining.job == core->placing.job)
            continue;
        shadow->ops->forget(shadow);
        joining_release(reservation);
    }
}

/* A large part does so in pieces, from the next step on. */
static void joining_begin(struct reservation *reservation, const struct core_job *job,
                          const struct request *request, const struct placement_slot *slots)
{
    assert(!reservation->joining.job && job->plan->is_gang);
    reservation->joining =
        (struct joining){.job = job->id.v,
                         .role = job->plan->roles[request->tasks[0].role].part,
                         .task_count = request->task_count,
                         .slots = placement_slots_copy(slots, request->task_count)};
}

static void join_at_once(struct reservation *reservation, const struct request *request,
                         const struct placement_slot *slots)
{
    struct placer *shadow = reservation->shadow;
    struct placement_request placement = request->placement;
    placement.slice = 0;
    const int code =
        shadow->ops->commit(shadow, &placement, slots, request->task_count, false, NULL);
    joining_end(reservation, &placement, code == 0);
}

static void reservation_join(struct core *core, struct reservation *reservation,
                             const struct core_job *job, const struct request *request,
                             const struct placement_slot *slots)
{
    struct placer *shadow = reservation->shadow;
    /* it may have waited for victims there */
    shadow->ops->cancel(shadow, request->placement.group);
    if (ends_before(core, job, reservation))
        return;
    if (request->task_count > core->slice)
        joining_begin(reservation, job, request, slots);
    else
        join_at_once(reservation, request, slots);
}

/* A task of the starving job itself. A gang starts as a whole, and its reservation ends. */
static void own_join(struct core *core, struct reservation *reservation, const struct core_job *job,
                     const struct request *request, const struct placement_slot *slots)
{
    if (job->plan->is_gang || reservation->is_stale)
        return;
    assert(request->task_count == 1);
    if (shadow_is_untidy(reservation->shadow)) { /* no question has made it tidy first */
        reservation->is_stale = true;
        return;
    }
    core->pass.work += WORK_OF_COMMIT;
    join_at_once(reservation, request, slots);
    reservation->has_started = true;
}

void reserve_commit(struct core *core, const struct core_job *job, const struct request *request,
                    const struct placement_slot *slots)
{
    assert(job->id.v);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        const struct core_job *starving = core_job_at(core, reservation->job);
        if (starving == job) {
            own_join(core, reservation, job, request, slots);
            continue;
        }
        if (!is_behind(core, job, starving)) {
            reservation->is_stale = true;
            continue;
        }
        /* at once: what it waited for has ended, so it cannot wait any more */
        if (reservation->is_stale || reservation_ready(core, i, job, UINT32_MAX) != READY)
            continue;
        reservation_join(core, reservation, job, request, slots);
    }
}

void reserve_started(struct core *core)
{
    for (size_t i = 0; i < core->reservations.count; i++)
        core->reservations.items[i].is_aged = true;
}

static void shadows_tell(struct core *core, const struct shadow_told *told, bool is_end)
{
    assert(core->reservations.count <= RESERVATIONS_MAX);
    for (size_t i = 0; i < core->reservations.count; i++) {
        struct reservation *reservation = &core->reservations.items[i];
        room_tell(core, reservation->shadow, told);
        reservation->is_aged |= is_end;
    }
}

void reserve_release_slot(struct core *core, const char *group, size_t slot)
{
    const struct shadow_told told = {TOLD_SLOT, (char *)(uintptr_t)group, slot};
    shadows_tell(core, &told, true);
}

void reserve_release_group(struct core *core, const char *group)
{
    const struct shadow_told told = {TOLD_GROUP, (char *)(uintptr_t)group, 0};
    shadows_tell(core, &told, true);
}

void reserve_cancel(struct core *core, const char *group)
{
    const struct shadow_told told = {TOLD_CANCEL, (char *)(uintptr_t)group, 0};
    shadows_tell(core, &told, false);
}

void reserve_node(struct core *core, uint32_t node)
{
    const struct shadow_told told = {.kind = TOLD_NODE, .at = node};
    shadows_tell(core, &told, false);
    if (core_node_at(core, node)->is_counted)
        return;
    for (size_t i = 0; i < core->reservations.count; i++)
        core->reservations.items[i].is_stale = true; /* it may be possible no longer */
}
