/* part.c — see part.h. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "core/engines.h"
#include "core/nodes.h"
#include "core/part.h"
#include "core/preempt.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/tasks.h"
#include "model/reason.h"

enum {
    PIECES_MAX = 256, /* of the search for one part, beside one for each slice of groups that may be
                         in its way: when nodes change at each step */
    /* in units of core->pass.work */
    WORK_OF_SEARCH = 16,
    WORK_OF_SLICE = 2,   /* what a placer may do for each task of a slice */
    WORK_OF_COMMIT = 16, /* and of its undoing */
};

static void part_avoid(struct core *core, const struct parts *parts, struct gang_part *part)
{
    assert(part->is_made && parts->avoid_count <= PORT_TRIES_MAX);
    struct placement_request *request = &part->request.placement;
    if (!parts->avoid_count)
        return;
    size_t count = request->avoid_count + parts->avoid_count;
    struct node_id *avoid = ARENA_ARRAY(&core->scratch, struct node_id, count);
    if (request->avoid_count)
        memcpy(avoid, request->avoid, request->avoid_count * sizeof *avoid);
    memcpy(avoid + request->avoid_count, parts->avoid, parts->avoid_count * sizeof *avoid);
    request->avoid = avoid;
    request->avoid_count = count;
}

/* The work of a search: the placer goes through the nodes, and marks those to avoid one by one. */
static void search_count(struct core *core, const struct gang_part *part)
{
    assert(part->is_made);
    enum {
        NODES_MARKED_PER_WORK = 64,
        NODES_OF_ENGINE_PER_WORK = 8, /* HiveD is told each by its name; the others need less */
    };
    const uint32_t nodes = core_node_count(core);
    core->pass.work += WORK_OF_SEARCH + (uint32_t)part->request.task_count +
                       nodes / core->placer->ops->nodes_per_work;
    if (part->request.placement.avoid_count)
        core->pass.work += nodes / NODES_MARKED_PER_WORK;
    if (part->request.placement.engine)
        core->pass.work += nodes / NODES_OF_ENGINE_PER_WORK;
}

struct part_search part_search_new(const struct core *core)
{
    return (struct part_search){.nodes = core->node_changes};
}

struct part_search part_search_next(const struct core *core, const struct parts *parts, size_t at)
{
    struct part_search next = part_search_new(core);
    const struct gang_part *part = at < parts->count ? &parts->items[at] : NULL;
    if (at == parts->searched) {
        next.pieces = parts->search.pieces + 1;
        next.disturbed = parts->search.disturbed + (parts->search.nodes != core->node_changes);
    }
    next.may_preempt = part && part->may_preempt;
    next.asks_preempt = part && core->is_searching && part->request.placement.may_preempt;
    return next;
}

void search_give_up(struct core *core)
{
    if (core->is_searching)
        core->placer->ops->forget(core->placer);
    core->is_searching = false;
}

/* A search in pieces tells what it has done: that may be more than to pass over the nodes once. */
static void piece_count(struct core *core, const struct gang_part *part)
{
    const uint32_t passing = core_node_count(core) / core->placer->ops->nodes_per_work;
    const uint64_t done = (uint64_t)part->result.work * WORK_OF_SLICE;
    assert(part->is_made);
    if (done > passing)
        core->pass.work += done < UINT32_MAX / 2 ? (uint32_t)done - passing : UINT32_MAX / 2;
}

/* Whoever may preempt is searched for twice: with those who are in the way, and to keep the place.
 */
static int placer_ask(struct core *core, struct gang_part *part, struct err *err)
{
    struct placer *placer = core->placer;
    search_count(core, part);
    const int code =
        placer->ops->place(placer, &part->request.placement, &core->scratch, &part->result, err);
    piece_count(core, part);
    if (!code && part->result.kind == PLACEMENT_PREEMPT && part->request.placement.may_preempt)
        core->pass.work += WORK_OF_SEARCH + (uint32_t)part->request.task_count +
                           (uint32_t)(part->result.victim_count - part->result.victim_first);
    return code;
}

/* Shadows have been asked in a step before, and its search went on. */
static bool may_still_preempt(const struct core *core, const struct parts *parts,
                              const struct gang_part *part)
{
    return parts->search.may_preempt && part == &parts->items[parts->searched] &&
           parts->search.nodes == core->node_changes;
}

/* A search that goes on was for another question when its job might preempt then, and may not now,
 * or the other way round. */
static void search_settle_for(struct core *core, const struct parts *parts,
                              const struct placement_request *request)
{
    if (parts->search.asks_preempt != request->may_preempt)
        search_give_up(core);
}

/* Ask the placer. Whether the job may preempt is checked only when it would have to. *why_not: why
 * it may not do what the PREEMPT in the result says. */
static int part_ask(struct core *core, struct core_job *job, const struct parts *parts,
                    struct gang_part *part, bool is_holding, const char **why_not, struct err *err)
{
    assert(part->is_made && !part->is_bound);
    struct placement_request *request = &part->request.placement;
    struct placement_result *result = &part->result;
    bool is_paused = core->now_ms < job->life.preempt_after_ms;
    /* one task of a job at a time: what it ends may be enough for the others */
    bool is_after = parts->is_task && job->hold_count;
    const bool spares = !parts->is_task && job->engine_try.spares_others;
    /* what was found and has failed meanwhile is a hold as well, that has ended nobody yet */
    bool may_preempt = !is_paused && !spares && (is_holding || !is_after);
    part->may_preempt = may_preempt && !is_holding && may_still_preempt(core, parts, part);
    request->may_preempt = may_preempt && (is_holding || part->may_preempt || !reserve_count(core));
    request->may_be_refused = reserve_count(core) > 0;
    search_settle_for(core, parts, request);
    int code = placer_ask(core, part, err);
    if (code || result->kind != PLACEMENT_PREEMPT || request->may_preempt)
        return code;
    const struct core_job *starving =
        may_preempt ? reserve_holder(core, job, &part->request, &part->is_for_later) : NULL;
    if (part->is_for_later)
        return 0;
    if (may_preempt && !starving) {
        request->may_preempt = part->may_preempt = true;
        return placer_ask(core, part, err);
    }
    part->is_held_back = starving != NULL;
    if (starving)
        *why_not = arena_format(&core->scratch, REASON_BUT_HELD_BACK, starving->full_name);
    else if (is_paused)
        *why_not =
            arena_format(&core->scratch, REASON_BUT_PAUSED,
                         (long long)((job->life.preempt_after_ms - core->now_ms + 999) / 1000));
    else
        *why_not = REASON_BUT_ANOTHER;
    return 0;
}

struct hold *part_hold(struct core_job *job, const struct parts *parts,
                       const struct gang_part *part)
{
    const size_t place = (size_t)(part - parts->items);
    if (parts->is_task)
        return hold_find(job, part->request.placement.group);
    struct hold *hold = place < job->hold_count ? &job->holds[place] : NULL;
    assert(!hold || !part->is_made || !strcmp(hold->group, part->request.placement.group));
    return hold;
}

void part_make(struct core *core, const struct core_job *job, struct gang_part *part)
{
    if (!part->is_made)
        request_of_part(core, job, part->first_role, &core->scratch, &part->request);
    if (!part->is_made)
        part->request.placement.engine = engine_try_name(core, job);
    part->is_made = true;
}

/* A part that is held need not be searched for, unless one of its nodes has failed. Nobody has
 * ended for the gang whose search goes on: it is searched for anew. */
static struct start_outcome part_take_hold(struct core *core, struct core_job *job,
                                           struct gang_part *part, struct hold *hold)
{
    enum { SLOTS_LOOKED_AT_PER_WORK = 8 };
    const struct placing *placing = placing_of(core, job);
    core->pass.work += 1 + hold->slot_count / SLOTS_LOOKED_AT_PER_WORK;
    part->is_held = slots_are_usable(core, hold->slots, hold->slot_count);
    if (!part->is_held && placing && placing->is_fresh)
        hold_reopen(core, hold);
    else if (!part->is_held)
        return start_waits_alone(core, REASON_NODE_FAILED);
    part->result.slots = hold->slots;
    part->result.slot_count = hold->slot_count;
    return outcome_bind;
}

/* The search may be cut. Each change of a node, after which it begins anew, makes the pieces twice
 * as large where the placer cuts that for few tasks as any other: so it ends. A task may have had
 * others before it in the step: it gets what they have left. */
static uint32_t part_slice(const struct core *core, const struct parts *parts)
{
    enum { DOUBLED_MAX = 24 };
    const struct part_search *search = &parts->search;
    if (core->placer->ops->cuts_small) {
        const uint32_t doubled = search->disturbed < DOUBLED_MAX ? search->disturbed : DOUBLED_MAX;
        const uint32_t left =
            parts->work_end > core->pass.work ? parts->work_end - core->pass.work : 0;
        const bool is_rest = parts->is_task && left / WORK_OF_SLICE < core->slice;
        const uint64_t most = is_rest ? 1 + left / WORK_OF_SLICE : core->slice;
        const uint64_t slice = most << doubled;
        return slice < UINT32_MAX ? (uint32_t)slice : 0;
    }
    const uint32_t most = PIECES_MAX + core_group_slots(core) / core->slice;
    return search->pieces < most ? core->slice : 0;
}

struct start_outcome part_place(struct core *core, struct core_job *job, const struct parts *parts,
                                struct gang_part *part)
{
    struct placement_request *request = &part->request.placement;
    struct placement_result *result = &part->result;
    struct hold *hold = part_hold(job, parts, part);
    struct err err = {0};
    if (hold && hold->slots) {
        struct start_outcome outcome = part_take_hold(core, job, part, hold);
        if (part->is_held || outcome.kind == PLACEMENT_WAIT)
            return outcome;
        hold = NULL;
    }
    part_make(core, job, part);
    part_avoid(core, parts, part);
    request->slice = part_slice(core, parts);
    const char *why_not = "";
    if (part_ask(core, job, parts, part, hold != NULL, &why_not, &err))
        return start_waits(core, err.text);
    core->is_searching = result->is_cut && !part->is_for_later;
    if (part->is_for_later)
        return outcome_cut;
    if (result->kind == PLACEMENT_PREEMPT || result->victim_count > result->victim_first)
        victims_name(core, job, result);
    if (result->is_cut)
        return outcome_cut;
    if (result->kind == PLACEMENT_WAIT)
        return (struct start_outcome){.kind = PLACEMENT_WAIT,
                                      .reason = result->reason,
                                      .topic = result->topic,
                                      .is_never = result->is_never};
    if (result->kind == PLACEMENT_PREEMPT) {
        /* a task of the job that was downgraded to opportunistic use: ending it for another task
         * of the same job would go on for ever */
        bool is_own = request->may_preempt && core->naming.has_own;
        part->is_preempting = request->may_preempt && !is_own;
        if (part->is_preempting)
            victims_add(core, job);
        struct start_outcome outcome =
            preempt_outcome(core, result, is_own ? REASON_BUT_OWN : why_not);
        if (is_own)
            core->placer->ops->cancel(core->placer, request->group);
        outcome.is_of_job = is_own || core->now_ms < job->life.preempt_after_ms;
        outcome.is_held_back = part->is_held_back;
        return outcome;
    }
    const char *held = hold ? ""
                            : reserve_check(core, job, &part->request, result->slots,
                                            result->slot_count, &core->scratch);
    /* asked in steps, a search in pieces keeps what it has taken until the answer */
    core->is_searching = !held && request->slice && room_is_asked(core);
    if ((!held || *held) && !core->is_searching)
        core->placer->ops->forget(core->placer); /* some of it may be taken */
    if (!held)
        return outcome_cut;
    if (*held) {
        struct start_outcome outcome = start_waits(core, held);
        outcome.is_held_back = true;
        return outcome;
    }
    core->pass.work += WORK_OF_COMMIT + (uint32_t)result->slot_count;
    request->slice = 0; /* what was found is only to be kept */
    if (core->placer->ops->commit(core->placer, request, result->slots, result->slot_count, false,
                                  &err))
        return start_waits(core, err.text);
    assert(result->slot_count == part->request.task_count);
    reserve_commit(core, job, &part->request, result->slots);
    part->is_bound = true;
    return outcome_bind;
}
