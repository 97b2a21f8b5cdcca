/* room.c — see room.h. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "core/engines.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/renew.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/shadow.h"

enum {
    PIECES_MAX = 256, /* of one search, when nodes change at each step */
    ROUNDS_MAX = 16,  /* in each of which others end in the copy */
    /* Questions of one part, as other places were found meanwhile: so many with the slice of every
     * step, then with twice as much in a step each time, and after so many there is no answer */
    AGAIN_SAME = 4,
    AGAIN_MAX = 20,
    WORK_MAX = 4096, /* of a step, when its slice has grown: about a millisecond */
    /* in units of core->pass.work */
    WORK_OF_SEARCH = 16,
    WORK_OF_COMMIT = 16, /* and of its undoing */
    WORK_OF_END = 8,     /* of one that is in the way */
};

/* --- the question --- */

static bool slots_equal(const struct placement_slot *a, const struct placement_slot *b,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].node.v != b[i].node.v || a[i].gpu_count != b[i].gpu_count ||
            (a[i].gpu_count && memcmp(a[i].gpus, b[i].gpus, a[i].gpu_count * sizeof *a[i].gpus)))
            return false;
    return true;
}

static bool is_of(const struct room *room, const struct room_question *question)
{
    const struct task_ref first = question->request->tasks[0];
    return room->stage != ROOM_NONE && room->job == question->job->id.v &&
           room->first.role == first.role && room->first.index == first.index &&
           room->task_count == question->request->task_count &&
           room->ends_others == !question->slots;
}

/* Answers that were given before are worth something when nothing is different now. */
static bool is_same(const struct core *core, const struct room_question *question)
{
    const struct room *room = &core->room;
    return is_of(room, question) && room->node_changes == core->node_changes &&
           (!room->slots || slots_equal(room->slots, question->slots, question->slot_count));
}

static void victims_drop(struct room *room)
{
    for (size_t i = 0; i < room->victims.count; i++)
        mem_free(room->victims.items[i]);
    ARRAY_FREE(&room->victims);
}

/* No shadow is asked any more. */
static void asking_release(struct room *room)
{
    assert(!room->copy);
    for (size_t i = room->told_next; i < room->told.count; i++)
        mem_free(room->told.items[i].group);
    ARRAY_FREE(&room->told);
    victims_drop(room);
    fitting_release(&room->fitting);
    room->told_next = 0;
    room->pieces = room->rounds = room->copy_pieces = 0;
    room->has_group = false;
    room->shadow = NULL;
}

static void room_release(struct core *core)
{
    struct room *room = &core->room;
    asking_release(room);
    mem_free(room->group);
    mem_free(room->engine);
    mem_free(room->avoid);
    mem_free(room->slots);
    *room = (struct room){0};
}

void room_forget(struct core *core)
{
    assert(!room_is_asked(core));
    room_release(core);
}

static void room_begin(struct core *core, const struct room_question *question)
{
    struct room *room = &core->room;
    const struct placement_request *request = &question->request->placement;
    const uint32_t again = is_of(room, question) ? room->again + 1 : 0;
    room_release(core);
    *room = (struct room){
        .stage = ROOM_KNOWN,
        .job = question->job->id.v,
        .first = question->request->tasks[0],
        .task_count = question->request->task_count,
        .ends_others = !question->slots,
        .node_changes = core->node_changes,
        .again = again,
        .group = mem_copy(request->group),
        .engine = request->engine ? mem_copy(request->engine) : NULL,
        .avoid = mem_copy_array(request->avoid, request->avoid_count, sizeof *request->avoid),
        .avoid_count = request->avoid_count,
        .starving = NONE};
}

/* What a step may do of the question. It grows when the question has begun anew often: the fewer
 * steps it takes, the less happens between them. */
static uint32_t step_work(const struct core *core)
{
    const uint32_t again = core->room.again;
    if (again < AGAIN_SAME || core->slice >= WORK_MAX)
        return core->slice;
    const uint64_t work = (uint64_t)core->slice << (again - AGAIN_SAME + 1);
    return work < WORK_MAX ? (uint32_t)work : WORK_MAX;
}

/* The same request as ever. False: the job has been scaled since. */
static bool request_make(struct core *core, struct arena *arena, struct request *request)
{
    const struct room *room = &core->room;
    const struct core_job *job = core_job_find(core, (struct job_id){room->job});
    assert(job);
    if (job->plan->is_gang) {
        request_of_part(core, job, job->plan->roles[room->first.role].part, arena, request);
    } else {
        const struct job_task *known = job_task_find(&job->life, room->first);
        request_of_task(core, job, room->first, known ? known->task_attempt : 0, arena, request);
    }
    request->placement.engine = room->engine;
    request->placement.avoid = room->avoid;
    request->placement.avoid_count = room->avoid_count;
    return request->task_count == room->task_count;
}

/* --- the stages --- */

static struct placer *asked_placer(const struct room *room)
{
    return room->copy ? room->copy : room->shadow;
}

static void room_undo(struct room *room, bool has_room)
{
    room->has_room = has_room;
    room->stage = ROOM_UNDO;
}

/* Until here the shadow, or its copy, is as it was. */
static uint32_t part_commit(struct core *core, const struct placement_request *request,
                            const struct placement_slot *slots, size_t slot_count)
{
    struct room *room = &core->room;
    struct placer *placer = asked_placer(room);
    room->has_group = true;
    const int code = placer->ops->commit(placer, request, slots, slot_count, false, NULL);
    if (code == PLACEMENT_CUT)
        return core->slice;
    room->pieces = 0;
    if (code) {
        room_undo(room, false);
        return WORK_OF_COMMIT;
    }
    fitting_begin(core, core_job_at(core, room->starving), &room->fitting);
    room->stage = ROOM_FIT;
    return WORK_OF_COMMIT + (uint32_t)slot_count;
}

/* The shadow may know the group as one that waits for its victims: that is cancelled first. */
static void part_forget(const struct room *room)
{
    struct placer *placer = asked_placer(room);
    placer->ops->cancel(placer, room->group);
}

/* Some of the places of a large part. */
static uint32_t commit_next(struct core *core)
{
    struct room *room = &core->room;
    struct placer *placer = asked_placer(room);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct request request;
    assert(room->slots);
    if (!request_make(core, &arena, &request)) {
        placer->ops->forget(placer);
        room_undo(room, false);
        return 1;
    }
    request.placement.slice = room->pieces++ < PIECES_MAX ? core->slice : 0;
    return part_commit(core, &request.placement, room->slots, room->task_count);
}

/* Names that are known already come first in the answer: only those behind them are new. */
static void victims_keep(struct room *room, const struct placement_result *result)
{
    if (!result->victim_first)
        victims_drop(room);
    for (size_t i = result->victim_first; i < result->victim_count; i++)
        *ARRAY_ADD(&room->victims) = mem_copy(result->victims[i]);
}

/* Is there a place beside what the shadow has, and once whoever is in its way has ended? These have
 * started after the reservation was made, as those from before have ended there. */
static uint32_t search_next(struct core *core)
{
    struct room *room = &core->room;
    struct placer *placer = asked_placer(room);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct request request;
    struct placement_result result;
    if (!request_make(core, &arena, &request)) {
        room_undo(room, false);
        return 1;
    }
    if (request.task_count <= core->slice && shadow_tidies(placer, core->slice))
        return core->slice;
    request.placement.may_preempt = false;
    request.placement.slice = room->pieces < PIECES_MAX ? core->slice : 0;
    const bool was_cut = placer->ops->cuts_small || room->pieces > 0;
    const uint32_t work = WORK_OF_SEARCH + (uint32_t)request.task_count +
                          core_node_count(core) / placer->ops->nodes_per_work;
    if (placer->ops->place(placer, &request.placement, &arena, &result, NULL)) {
        room_undo(room, false);
        return work;
    }
    if (room->copy)
        victims_keep(room, &result);
    if (result.is_cut) {
        room->pieces++;
        return work;
    }
    room->pieces = 0;
    if (result.kind == PLACEMENT_BIND) {
        if (!was_cut || !request.placement.slice) /* else it has taken them already, in pieces */
            part_forget(room);
        request.placement.slice = 0;
        return work + part_commit(core, &request.placement, result.slots, result.slot_count);
    }
    if (result.kind == PLACEMENT_WAIT || !result.victim_count || ++room->rounds > ROUNDS_MAX)
        room_undo(room, false);
    else
        room->stage = room->copy ? ROOM_END : ROOM_COPY;
    return work;
}

static uint32_t copy_next(struct core *core)
{
    struct room *room = &core->room;
    uint32_t work;
    room->copy_pieces++;
    if (!shadow_copy_piece(core, room->shadow, &room->copy, &work))
        return work;
    room->stage = ROOM_TELL;
    return work;
}

static uint32_t tell_next(struct core *core)
{
    struct room *room = &core->room;
    if (room->told_next == room->told.count) {
        ARRAY_FREE(&room->told);
        room->told_next = 0;
        room->stage = ROOM_SEARCH;
        return 0;
    }
    const struct shadow_told told = room->told.items[room->told_next++];
    shadow_told_apply(core, room->shadow, &told);
    shadow_told_apply(core, room->copy, &told);
    mem_free(told.group);
    return WORK_OF_END;
}

static uint32_t end_next(struct core *core)
{
    struct room *room = &core->room;
    if (!room->victims.count) {
        room->stage = ROOM_SEARCH;
        return 0;
    }
    assert(room->copy);
    char *victim = room->victims.items[--room->victims.count];
    room->copy->ops->cancel(room->copy, victim);
    room->copy->ops->release_group(room->copy, victim);
    mem_free(victim);
    return WORK_OF_END;
}

static uint32_t fit_next(struct core *core)
{
    struct room *room = &core->room;
    if (room->fitting.stage == FITTING_OVER) {
        room_undo(room, room->fitting.fits);
        return 0;
    }
    return fitting_next(core, asked_placer(room), core_job_at(core, room->starving), &room->fitting,
                        core->slice);
}

/* The copy is thrown away. In the shadow itself what the question has left is given back. */
static uint32_t undo_next(struct core *core)
{
    struct room *room = &core->room;
    struct placer *shadow = room->shadow;
    if (room->copy) {
        past_placer_add(core, room->copy);
        room->copy = NULL;
        room->has_group = false;
    }
    if (room->has_group) {
        room->has_group = false;
        room->pieces = 0;
        shadow->ops->release_group(shadow, room->group);
        return WORK_OF_COMMIT + (uint32_t)room->task_count / 2;
    }
    if (shadow->ops->tidy && room->pieces++ < PIECES_MAX && !shadow->ops->tidy(shadow, core->slice))
        return core->slice;
    asking_release(room);
    room->stage = ROOM_KNOWN;
    if (room->has_room)
        room->roomy[room->roomy_count++] = room->starving;
    return 1;
}

/* --- the whole --- */

/* Nobody wants to know any more: what was begun is undone, but a copy is finished first. */
static void room_end(struct room *room)
{
    const bool is_fitting = room->stage == ROOM_FIT && !room->copy;
    struct placer *placer = asked_placer(room);
    if (room->stage != ROOM_SEARCH && room->stage != ROOM_END && room->stage != ROOM_COMMIT &&
        room->stage != ROOM_FIT)
        return;
    if (is_fitting && room->fitting.stage == FITTING_UNDO)
        return;
    placer->ops->forget(placer);
    if (is_fitting && room->fitting.stage == FITTING_SEARCH)
        fitting_stop(&room->fitting);
    else
        room_undo(room, false);
}

/* The shadow is the question's own, and nobody needs it. */
static void shadow_is_gone(struct core *core)
{
    struct room *room = &core->room;
    if (room->copy)
        past_placer_add(core, room->copy);
    past_placer_add(core, room->shadow);
    room->copy = NULL;
    asking_release(room);
    room->stage = ROOM_KNOWN;
}

void room_go_on(struct core *core, uint32_t work_begin)
{
    struct room *room = &core->room;
    assert(room_is_asked(core) && room->again <= AGAIN_MAX);
    const uint32_t work_end = work_begin + step_work(core);
    do {
        if (!room->job)
            room_end(room);
        switch (room->stage) {
        case ROOM_NONE:
        case ROOM_KNOWN:
            break;
        case ROOM_SEARCH:
            core->pass.work += search_next(core);
            break;
        case ROOM_COPY:
            core->pass.work += copy_next(core);
            if (room->stage == ROOM_TELL && room->starving == NONE)
                shadow_is_gone(core);
            break;
        case ROOM_TELL:
            core->pass.work += tell_next(core);
            break;
        case ROOM_END:
            core->pass.work += end_next(core);
            break;
        case ROOM_COMMIT:
            core->pass.work += commit_next(core);
            break;
        case ROOM_FIT:
            core->pass.work += fit_next(core);
            break;
        case ROOM_UNDO:
            core->pass.work += undo_next(core);
            break;
        }
    } while (room_is_asked(core) && core->pass.work < work_end);
    if (room->stage == ROOM_KNOWN && !room->job)
        room_release(core);
}

void room_settle(struct core *core)
{
    struct room *room = &core->room;
    if (!room->job || room->job == core->placing.job)
        return;
    room->job = 0;
    if (room->stage == ROOM_KNOWN)
        room_release(core);
}

static bool is_known_to_have_room(const struct room *room, uint32_t starving)
{
    for (uint32_t i = 0; i < room->roomy_count; i++)
        if (room->roomy[i] == starving)
            return true;
    return false;
}

static enum room_answer answer_of(struct room *room, const struct reservation *reservation)
{
    if (is_known_to_have_room(room, reservation->job))
        return ROOM_FOR_BOTH;
    return room->starving == reservation->job ? ROOM_FOR_ONE : ROOM_ASKED;
}

enum room_answer room_ask(struct core *core, const struct reservation *reservation,
                          const struct room_question *question, uint32_t work_begin)
{
    struct room *room = &core->room;
    assert(!room_is_asked(core) && question->request->task_count > 0);
    if (!is_same(core, question))
        room_begin(core, question);
    if (room->again > AGAIN_MAX)
        return ROOM_FOR_ONE; /* as far as one can say: it is asked anew when something is freed */
    const enum room_answer known = answer_of(room, reservation);
    if (known != ROOM_ASKED)
        return known;
    assert(room->roomy_count < RESERVATIONS_MAX);
    room->starving = reservation->job;
    room->shadow = reservation->shadow;
    part_forget(room);
    if (question->slots && (room->task_count > core->slice || shadow_is_untidy(room->shadow))) {
        /* to find them was this step's work */
        room->stage = ROOM_COMMIT;
        if (!room->slots)
            room->slots = placement_slots_copy(question->slots, question->slot_count);
        return ROOM_ASKED;
    }
    if (!question->slots) {
        room->stage = ROOM_SEARCH;
    } else {
        struct placement_request request = question->request->placement;
        request.slice = 0;
        core->pass.work += part_commit(core, &request, question->slots, question->slot_count);
    }
    room_go_on(core, work_begin);
    if (!room_is_asked(core) || room->slots || !question->slots)
        return room_is_asked(core) ? ROOM_ASKED : answer_of(room, reservation);
    room->slots = placement_slots_copy(question->slots, question->slot_count);
    return ROOM_ASKED;
}

/* --- what ends and changes meanwhile --- */

bool room_is_in(const struct core *core, const struct placer *shadow)
{
    return core->room.shadow == shadow;
}

void room_tell(struct core *core, struct placer *shadow, const struct shadow_told *told)
{
    struct room *room = &core->room;
    if (room->shadow == shadow && (room->stage == ROOM_COPY || room->stage == ROOM_TELL)) {
        struct shadow_told *kept = ARRAY_ADD(&room->told);
        *kept = *told;
        kept->group = told->group ? mem_copy(told->group) : NULL;
        return;
    }
    shadow_told_apply(core, shadow, told);
    if (room->shadow == shadow && room->copy)
        shadow_told_apply(core, room->copy, told);
}

void room_shadow_leave(struct core *core, const struct reservation *reservation)
{
    struct room *room = &core->room;
    for (uint32_t i = room->roomy_count; i-- > 0;)
        if (room->roomy[i] == reservation->job)
            room->roomy[i] = room->roomy[--room->roomy_count];
    if (room->starving == reservation->job)
        room->starving = NONE;
    if (room->shadow != reservation->shadow)
        past_placer_add(core, reservation->shadow);
    else if (room->stage != ROOM_COPY || !room->copy) /* else that is finished first */
        shadow_is_gone(core);
}

void room_drop(struct core *core)
{
    struct room *room = &core->room;
    while (room->stage == ROOM_COPY && room->copy &&
           !room->shadow->ops->copy_some(room->shadow, &room->copy, UINT32_MAX))
        ;
    if (room->copy)
        room->copy->ops->free(room->copy);
    if (room->shadow && room->starving == NONE)
        room->shadow->ops->free(room->shadow);
    room->copy = NULL;
    room_release(core);
}

static struct placer *shadow_of(const struct core *core, uint32_t starving)
{
    for (size_t i = 0; i < reserve_count(core); i++)
        if (reserve_at(core, i)->job == starving)
            return reserve_at(core, i)->shadow;
    return NULL;
}

void room_copy(struct core *to, const struct core *from)
{
    const struct room *old = &from->room;
    struct room *room = &to->room;
    if (old->stage == ROOM_NONE || (old->shadow && old->starving == NONE))
        return; /* a copy has no placers that nobody needs */
    *room = *old;
    room->group = mem_copy(old->group);
    room->engine = old->engine ? mem_copy(old->engine) : NULL;
    room->avoid = mem_copy_array(old->avoid, old->avoid_count, sizeof *old->avoid);
    if (old->slots)
        room->slots = placement_slots_copy(old->slots, old->task_count);
    ARRAY_COPY(&room->told, &old->told);
    for (size_t i = 0; i < old->told.count; i++)
        room->told.items[i].group = i >= old->told_next && old->told.items[i].group
                                        ? mem_copy(old->told.items[i].group)
                                        : NULL;
    ARRAY_COPY(&room->victims, &old->victims);
    for (size_t i = 0; i < old->victims.count; i++)
        room->victims.items[i] = mem_copy(old->victims.items[i]);
    fitting_copy(&room->fitting, &old->fitting);
    room->shadow = old->shadow ? shadow_of(to, old->starving) : NULL;
    room->copy = NULL;
    if (old->copy && old->stage != ROOM_COPY)
        room->copy = old->copy->ops->copy(old->copy);
    uint32_t work; /* the shadow stands still: the copy of it is copied again so far */
    for (uint32_t i = 0; old->stage == ROOM_COPY && i < old->copy_pieces; i++)
        shadow_copy_piece(to, room->shadow, &room->copy, &work);
}
