/* schedule.c — the decision: where, whom it displaces, or why not. */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "hived/state.h"
#include "model/reason.h"
#include <assert.h>
#include <string.h>

/* How far one try to find places, in one chain, has come. */
enum try_stage {
    TRY_PACK,  /* cells of the view are chosen, … */
    TRY_TAKE,  /* … leaves in them: virtual ones, of an opportunistic gang physical ones */
    TRY_LAZY,  /* lazy groups in the way are displaced: at a leaf */
    TRY_MAP,   /* the virtual leaves are mapped to physical ones */
    TRY_FOUND, /* who is in the way, and the answer, follow */
};

/* What a search has found so far. One in pieces goes on from here; then what an earlier try has
 * looked for in vain is not looked for again. */
struct hived_found {
    uint32_t attempt, failed; /* number of the try, and of the last one that has failed */
    enum try_stage stage;
    uint32_t at;
    uint32_t passed; /* pieces of this call, … */
    uint64_t work;   /* … and what is done of the next one, in leaves looked at */
    struct pack_item *items;
    uint32_t item_count, leaf_count;
    uint32_t *virtual, *physical;
    struct wait wait, first; /* why the last try has failed; and the last one without displacing */
    bool is_displacing;
    bool has_displaced; /* lazy groups have lost their cells: they must not have got them back, … */
    bool displaces_again; /* … but for PREEMPTING, which displaces them once more */
    struct pack pack;
    struct mapping mapping;
    struct conflict conflict;
    uint32_t usable; /* leaves of a group that preempts: those before this one are */
    struct victims victims;
    struct writing writing;
    const uint32_t *starts; /* of the slots */
};

struct scheduling { /* one call of hived_schedule */
    struct hived *h;
    const struct hived_request *request;
    struct arena *arena;
    struct hived_result *result;
    const char *pod;
    enum hived_phase phase;
    const struct hived_scope *scope;
    const bool *is_excluded; /* by node, or NULL */
    uint32_t vc, pin;
    struct pack_item *items;
    uint32_t item_count, leaf_count;
    uint32_t *virtual, *physical;
    uint32_t chain;              /* where it was found */
    struct hived_course *course; /* or NULL */
    struct hived_found *found;   /* the course's, or `own` */
    struct hived_found own;
    uint32_t attempts; /* to find places, each in one chain */
    bool is_cut;
};

static bool is_given(const char *text)
{
    return text && *text;
}

static const bool *scope_nodes(struct scheduling *plan, const struct hived_scope *scope)
{
    struct hived *h = plan->h;
    if (!scope)
        return NULL;
    bool *is_excluded = ARENA_ARRAY(plan->arena, bool, h->node_count + 1u);
    memset(is_excluded, !scope->is_avoid, h->node_count * sizeof *is_excluded);
    for (size_t i = 0; i < scope->count; i++) {
        uint32_t node = text_map_get(&h->node_index, text_of(scope->nodes[i]));
        if (node != MAP_NONE)
            is_excluded[node] = scope->is_avoid;
    }
    return is_excluded;
}

/* --- pieces --- */

enum {
    LEAVES_IN_A_ROW = 4,
    LEAVES_LOOKED_AT = 6, /* as long as it takes to reserve one, so many are looked at */
    PART_OF_LEAVES = 8,   /* a piece is not smaller than that: there is an end to them */
};

static bool is_on_course(const struct scheduling *plan)
{
    return plan->course && plan->found == plan->course->found;
}

static uint64_t piece_work(const struct scheduling *plan)
{
    const uint64_t work = (uint64_t)plan->course->leaves * LEAVES_LOOKED_AT,
                   least = plan->found->leaf_count / PART_OF_LEAVES;
    return work > least ? work : least;
}

/* So much more may be done in this piece. What PREEMPTING finds was found by FILTERING: then it is
 * all that is left. */
static uint32_t piece_room(const struct scheduling *plan)
{
    if (!is_on_course(plan) || plan->phase == HIVED_PREEMPTING)
        return UINT32_MAX;
    const uint64_t all = piece_work(plan);
    const uint64_t left = all > plan->found->work ? all - plan->found->work : 1;
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

/* So much was done. True: it is the end of a piece, the search goes on with the next call. */
static bool piece_ends(struct scheduling *plan, uint32_t leaves)
{
    struct hived_found *found = plan->found;
    assert(!plan->is_cut);
    if (piece_room(plan) == UINT32_MAX)
        return false;
    found->work += leaves;
    if (found->work < piece_work(plan))
        return false;
    found->work = 0;
    found->passed++;
    plan->is_cut = plan->course->is_cut = ++plan->course->passed == plan->course->pieces;
    return plan->is_cut;
}

/* The next try. False: it has failed before. */
static bool try_begin(struct scheduling *plan)
{
    struct hived_found *found = plan->found;
    if (++plan->attempts <= found->failed)
        return false;
    if (found->attempt != plan->attempts) {
        found->attempt = plan->attempts;
        found->stage = TRY_PACK;
        found->at = 0;
        found->mapping.course = NULL;
    }
    return true;
}

static bool try_fails(struct scheduling *plan)
{
    plan->found->failed = plan->attempts;
    return plan->is_cut;
}

/* --- results --- */

/* Who is in the way of these leaves, for the group `own`, or NONE. False: cut. */
static bool conflict_find(struct scheduling *plan, const uint32_t *physical, uint32_t count,
                          uint32_t own)
{
    const struct conflict_of of = {physical, count, own, plan->arena};
    assert(count > 0);
    while (plan->found->conflict.at < count)
        if (piece_ends(plan, conflict_some(plan->h, &plan->found->conflict, &of, piece_room(plan))))
            return false;
    return true;
}

static bool victims_write(struct scheduling *plan)
{
    const struct conflict *conflict = &plan->found->conflict;
    struct victims *victims = &plan->found->victims;
    while (!victims_are_whole(victims, conflict))
        if (piece_ends(plan,
                       victims_some(plan->h, victims, conflict, plan->arena, piece_room(plan))))
            return false;
    plan->result->kind = HIVED_PREEMPT;
    plan->result->victims = victims->items;
    plan->result->victim_count = victims->count;
    return true;
}

static bool placement_write(struct scheduling *plan, const struct writing_of *of)
{
    struct writing *writing = &plan->found->writing;
    while (writing->slots < of->slots)
        if (piece_ends(plan, writing_some(plan->h, writing, of, piece_room(plan))))
            return false;
    plan->result->placement.slots = writing->items;
    plan->result->placement.slot_count = of->slots;
    return true;
}

static bool group_placement_write(struct scheduling *plan, const struct group *group)
{
    const struct writing_of of = {.starts = group->slot_leaf,
                                  .slots = group->slot_count,
                                  .physical = group->physical,
                                  .virtual = group->has_virtual ? group->virtual : NULL,
                                  .arena = plan->arena};
    plan->result->placement.chain = arena_copy(plan->arena, text_of(group->chain_name));
    return placement_write(plan, &of);
}

/* --- a group that is known --- */

static bool slot_has_leaves(const struct group *group, uint32_t slot, uint32_t leaves)
{
    return leaves == 0 || group->slot_leaf[slot + 1] - group->slot_leaf[slot] == leaves;
}

static int allocated_schedule(struct scheduling *plan, struct group *group, struct err *err)
{
    while (group->spare_hint < group->slot_count && group->pods[group->spare_hint].is_bound)
        group->spare_hint++;
    for (uint32_t i = group->spare_hint; i < group->slot_count; i++) {
        if (group->pods[i].is_bound || !slot_has_leaves(group, i, plan->request->leaves))
            continue;
        plan->result->kind = HIVED_BIND;
        plan->result->slot = i;
        group_placement_write(plan, group);
        return 0;
    }
    return err_fail(err, ERR_INVALID, "affinityGroup",
                    "the gang %s has no more pods of %u leaves than those that run", group->name,
                    plan->request->leaves);
}

enum placement_use { PLACEMENT_USABLE, PLACEMENT_UNUSABLE, PLACEMENT_CUT };

static enum placement_use placement_check(struct scheduling *plan, const struct group *group)
{
    const struct hived *h = plan->h;
    const bool *is_excluded = plan->is_excluded;
    if (h->habits->minds_suggestions)
        is_excluded = scope_nodes(plan, plan->scope);
    while (plan->found->usable < group->leaf_count) {
        const uint32_t first = plan->found->usable, left = group->leaf_count - first,
                       room = piece_room(plan), end = first + (left < room ? left : room);
        for (uint32_t i = first; i < end; i++) {
            const struct cell *leaf = &h->cells[group->physical[i]];
            if (leaf->is_bad || (is_excluded && is_excluded[rest_of(h, leaf)->node]))
                return PLACEMENT_UNUSABLE;
        }
        plan->found->usable = end;
        if (piece_ends(plan, end - first))
            return PLACEMENT_CUT;
    }
    return PLACEMENT_USABLE;
}

static bool preempting_answer(struct scheduling *plan, uint32_t index)
{
    struct group *group = plan->h->groups[index];
    const bool has_victims = plan->found->conflict.victim_count > 0;
    if ((!plan->course || !has_victims) && !group_placement_write(plan, group))
        return false;
    if (has_victims && !victims_write(plan))
        return false;
    plan->result->slot = 0;
    while (plan->result->slot + 1 < group->slot_count &&
           !slot_has_leaves(group, plan->result->slot, plan->request->leaves))
        plan->result->slot++;
    plan->result->placement.slot_count = group->slot_count;
    preempting_add(group, plan->pod);
    group_changed(plan->h, index);
    plan->result->kind = has_victims ? HIVED_PREEMPT : HIVED_BIND;
    return true;
}

/* What was reserved cannot be used any more. True: cut. False: all of it has gone back. */
static bool preempting_leave(struct scheduling *plan, uint32_t index)
{
    struct hived_course *course = plan->course;
    const bool is_gone = preemption_undo_some(plan->h, index, course ? course->leaves : UINT32_MAX);
    assert(is_gone || course);
    (void)is_gone;
    *plan->found = (struct hived_found){0};
    if (course)
        plan->is_cut = course->is_cut = course->is_leaving = true;
    return course != NULL;
}

/* Others who preempt for its cells are cancelled first. */
static void preempting_reserve_some(struct scheduling *plan, uint32_t index)
{
    struct hived *h = plan->h;
    const struct group *group = h->groups[index];
    const bool was_overtaken = group->overtaken == group->leaf_count;
    const uint32_t leaves = plan->course ? plan->course->leaves : UINT32_MAX;
    if (!was_overtaken && (!preemption_overtake_some(h, index, leaves) || plan->course))
        return;
    preemption_go_on(h, index, leaves);
    if (group->reserved == group->leaf_count)
        hived_overtaking_end(h);
}

/* True: answered, or cut. False: its preemption was cancelled, it must be placed anew. */
static bool preempting_schedule(struct scheduling *plan, uint32_t index)
{
    assert(index < plan->h->group_count && plan->h->groups[index]);
    struct group *group = plan->h->groups[index];
    assert(!group->taken);
    if (group->ended > 0)
        return preempting_leave(plan, index);
    if (plan->phase == HIVED_PREEMPTING && group->reserved < group->leaf_count) {
        preempting_reserve_some(plan, index);
        if (plan->course) {
            plan->is_cut = plan->course->is_cut = true;
            return true;
        }
    }
    plan->found->leaf_count = group->leaf_count;
    if (!conflict_find(plan, group->physical, group->leaf_count, index))
        return true;
    /* the original minds it only when it goes on to preempt, and binds to what is bad */
    const bool is_binding =
        !plan->found->conflict.victim_count && !plan->h->habits->minds_suggestions;
    const bool is_minded = plan->phase == HIVED_PREEMPTING || is_binding;
    /* in pieces it is looked at here already, so that PREEMPTING need not be cut for it */
    const enum placement_use use =
        is_minded || plan->course ? placement_check(plan, group) : PLACEMENT_USABLE;
    if (is_minded && use == PLACEMENT_UNUSABLE)
        return preempting_leave(plan, index);
    if (use != PLACEMENT_CUT)
        preempting_answer(plan, index);
    return true;
}

static void being_preempted_schedule(struct scheduling *plan, const struct group *group)
{
    const struct hived *h = plan->h;
    const char *by = "another";
    for (uint32_t i = 0; i < group->leaf_count; i++)
        if (group->physical[i] != NONE && h->rests[group->physical[i]].reserving != NONE)
            by = h->groups[h->rests[group->physical[i]].reserving]->name;
    plan->result->kind = HIVED_WAIT;
    const char *what = arena_format(plan->arena, "%s is being preempted by %s", group->name, by);
    plan->result->topic = text_words_hash(text_of(what), 0);
    plan->result->reason = arena_format(plan->arena, "%s; its cells are reserved", what);
}

/* --- a new group --- */

/* So many nodes of the view have been used, or are free again, that to put them in their new order
 * is enough for one call. That is not counted, and a copy, which does all pieces again, is not cut
 * for it before it has come to its own. */
static bool view_is_ordered(struct scheduling *plan, struct view *view)
{
    if (piece_room(plan) == UINT32_MAX || view->dirty_count <= plan->course->leaves ||
        plan->course->passed + 1 < plan->course->pieces)
        return false;
    view_settle(plan->h, view);
    assert(!view->dirty_count);
    plan->is_cut = plan->course->is_cut = plan->course->is_ordering = true;
    return true;
}

/* True: packed, or cut. It may be the end of a piece. */
static bool try_pack(struct scheduling *plan, uint32_t chain, uint32_t view, int32_t priority,
                     uint32_t *leaves)
{
    assert(plan->item_count > 0 && view < plan->h->view_count);
    struct hived *h = plan->h;
    struct pack *pack = &plan->found->pack;
    if (view_is_ordered(plan, &h->views[view]))
        return true;
    *pack = (struct pack){.h = h,
                          .view = &h->views[view],
                          .chain = chain,
                          .priority = priority,
                          .is_excluded = plan->is_excluded,
                          .items = plan->items,
                          .item_count = plan->item_count,
                          .leaf_count = plan->leaf_count,
                          .leaves = leaves,
                          .arena = plan->arena};
    const char *within = plan->request->within_one_cell;
    bool is_packed = pack_run(pack, is_given(within) ? within : NULL);
    struct wait *wait = &plan->found->wait;
    wait->chain = chain;
    wait->bad_node = pack->bad_node;
    wait->is_bad_excluded = pack->is_bad_excluded;
    wait->is_search_cut = pack->is_search_cut;
    wait->is_mapping = false;
    plan->found->stage = TRY_TAKE;
    /* a node costs about as much as a leaf; to displace, its leaves are looked at, in their order
     */
    piece_ends(plan, priority < HIVED_PRIORITY_MIN
                         ? plan->item_count
                         : (uint32_t)(h->views[view].leaves / LEAVES_IN_A_ROW));
    return is_packed;
}

/* False: cut. */
static bool try_take(struct scheduling *plan, enum try_stage next)
{
    struct pack *pack = &plan->found->pack;
    while (pack->next < pack->item_count)
        if (piece_ends(plan, pack_take(pack, piece_room(plan))))
            return false;
    plan->found->stage = next;
    plan->found->at = 0;
    return true;
}

/* The lazy group that is in the way of this leaf, or NONE. */
static uint32_t lazy_user(const struct scheduling *plan, uint32_t at)
{
    const struct hived *h = plan->h;
    const uint32_t physical = h->cells[plan->virtual[at]].bound;
    if (physical == NONE || h->cells[physical].state != HIVED_CELL_USED ||
        h->cells[physical].using == NONE)
        return NONE;
    const uint32_t index = h->cells[physical].using;
    return h->groups[index]->is_lazy && h->groups[index]->has_virtual ? index : NONE;
}

/* Whose turn it is: one that has lost some of its cells loses all of them. */
static uint32_t lazy_next(const struct scheduling *plan)
{
    const struct hived *h = plan->h;
    const struct downgrade *last = h->pending_count ? &h->pending[h->pending_count - 1] : NULL;
    if (last && last->next < h->groups[last->group]->leaf_count)
        return last->group;
    return plan->found->at < plan->leaf_count ? lazy_user(plan, plan->found->at) : NONE;
}

/* It loses its cells, or some of them: so much work at most, in leaves looked at. */
static uint32_t lazy_displace(struct scheduling *plan, uint32_t index, uint32_t work)
{
    const uint32_t room = (work - 1) / LEAVES_LOOKED_AT + 1;
    uint32_t left = room;
    plan->found->has_displaced = true;
    plan->h->is_displacing = is_on_course(plan);
    group_pending_downgrade(plan->h, index, plan->request->group, &left);
    return (room - left) * LEAVES_LOOKED_AT;
}

/* False: cut. */
static bool try_displace(struct scheduling *plan)
{
    struct hived_found *found = plan->found;
    while (found->at < plan->leaf_count) {
        const uint32_t room = piece_room(plan);
        uint32_t done = 0;
        while (found->at < plan->leaf_count && done < room) {
            const uint32_t lazy = lazy_next(plan);
            done += lazy == NONE ? 1 : lazy_displace(plan, lazy, room - done);
            found->at += lazy == NONE;
        }
        if (piece_ends(plan, done))
            return false;
    }
    found->stage = TRY_MAP;
    return true;
}

static enum mapping_outcome try_map(struct scheduling *plan, uint32_t chain)
{
    struct mapping *mapping = &plan->found->mapping;
    enum mapping_outcome outcome = MAPPING_CUT;
    *mapping = (struct mapping){.h = plan->h,
                                .chain = chain,
                                .virtual = plan->virtual,
                                .leaf_count = plan->leaf_count,
                                .physical = plan->physical,
                                .is_excluded = plan->is_excluded,
                                .arena = plan->arena,
                                .course = mapping->course};
    if (!is_on_course(plan))
        return mapping_run(mapping) ? MAPPING_DONE : MAPPING_FAILS;
    while (outcome == MAPPING_CUT) {
        const uint32_t room = piece_room(plan);
        uint32_t left = room;
        outcome = mapping_some(mapping, &left);
        if (piece_ends(plan, room - left))
            break;
    }
    return outcome;
}

/* True: found, or cut. */
static bool guaranteed_try(struct scheduling *plan, uint32_t chain, uint32_t view, int32_t priority)
{
    if (!try_begin(plan))
        return false;
    plan->chain = chain;
    if (plan->found->stage == TRY_PACK && !try_pack(plan, chain, view, priority, plan->virtual))
        return try_fails(plan);
    if (plan->is_cut)
        return true;
    if (plan->found->stage == TRY_TAKE && !try_take(plan, TRY_LAZY))
        return true;
    if (plan->found->stage == TRY_LAZY && !try_displace(plan))
        return true;
    if (plan->found->stage < TRY_FOUND) {
        const enum mapping_outcome outcome = try_map(plan, chain);
        if (outcome == MAPPING_CUT)
            return true;
        if (outcome == MAPPING_FAILS) {
            plan->found->wait.is_mapping = true;
            plan->found->has_displaced = false;
            group_pending_settle(plan->h, false);
            return try_fails(plan);
        }
        plan->found->stage = TRY_FOUND;
    }
    return true;
}

/* The original displaces in a chain before it tries the next one, but not where there was room on
 * bad or excluded nodes only. */
static bool guaranteed_place(struct scheduling *plan, uint32_t chain, uint32_t view,
                             int32_t priority)
{
    return guaranteed_try(plan, chain, view, priority) ||
           (plan->h->habits->displaces_by_chain && !plan->found->wait.is_mapping &&
            guaranteed_try(plan, chain, view, plan->request->priority));
}

/* True: found, or cut. */
static bool oppo_try(struct scheduling *plan, uint32_t chain)
{
    plan->virtual = NULL;
    if (!try_begin(plan))
        return false;
    plan->chain = chain;
    if (plan->found->stage == TRY_PACK &&
        !try_pack(plan, chain, plan->h->chains[chain].view, HIVED_PRIORITY_OPPO, plan->physical))
        return try_fails(plan);
    if (plan->found->stage == TRY_TAKE && !plan->is_cut)
        try_take(plan, TRY_FOUND);
    return true;
}

/* Each chain with this leaf type (NONE: any) in turn, displacing nobody of the virtual cluster when
 * `priority` is HIVED_PRIORITY_OPPO. *is_offered: there was one to try. */
static bool chains_try(struct scheduling *plan, uint32_t leaf_type, int32_t priority,
                       bool *is_offered)
{
    struct hived *h = plan->h;
    const bool is_checking = plan->phase == HIVED_CHECKING;
    for (uint32_t i = 0; i < h->chain_count; i++) {
        if (leaf_type != NONE && h->chains[i].leaf_type != leaf_type)
            continue;
        if (plan->request->priority < HIVED_PRIORITY_MIN) {
            *is_offered = true;
            if (is_checking || oppo_try(plan, i))
                return true;
        } else if (quota_of(h, plan->vc, i)->is_present) {
            *is_offered = true;
            if (is_checking || guaranteed_place(plan, i, quota_of(h, plan->vc, i)->view, priority))
                return true;
        }
    }
    return false;
}

/* 0 with *is_found, or a user error. */
static int types_try(struct scheduling *plan, int32_t priority, bool *is_found, struct err *err)
{
    struct hived *h = plan->h;
    bool is_offered = false;
    struct text rest = text_of(plan->request->leaf_type);
    *is_found = false;
    if (!rest.length) {
        *is_found = chains_try(plan, NONE, priority, &is_offered);
        return 0;
    }
    while (rest.at && !*is_found) {
        struct text name = text_trim(text_cut(&rest, ','));
        uint32_t type = NONE;
        int code = request_type(h, name, &type, err);
        if (code)
            return code;
        *is_found = chains_try(plan, type, priority, &is_offered);
    }
    if (!is_offered)
        return err_fail(err, ERR_INVALID, "leafCellType", REASON_NO_LEAF_TYPE_OF,
                        plan->request->virtual_cluster, plan->request->leaf_type);
    return 0;
}

static int place_try(struct scheduling *plan, int32_t priority, bool *is_found, struct err *err)
{
    if (plan->pin == NONE)
        return types_try(plan, priority, is_found, err);
    const struct pin *pin = &plan->h->pins[plan->pin];
    if (plan->phase == HIVED_CHECKING)
        return 0;
    *is_found = guaranteed_place(plan, plan->h->cells[pin->cell].chain, pin->view, priority);
    return 0;
}

static int new_check(struct scheduling *plan, struct err *err)
{
    struct hived *h = plan->h;
    const struct hived_request *request = plan->request;
    plan->vc = text_map_get(&h->vc_index, text_of(request->virtual_cluster));
    plan->pin = NONE;
    if (plan->vc == MAP_NONE)
        return err_fail(err, ERR_INVALID, "virtualCluster", REASON_NO_CLUSTER,
                        request->virtual_cluster);
    int code = request_within(h, request->within_one_cell, err);
    for (uint32_t i = 0; !code && i < request->member_count; i++)
        code = request_within(h, request->members[i].within_one_cell, err);
    if (code || !is_given(request->pinned_cell))
        return code;
    plan->pin = request_pin(h, request->pinned_cell);
    if (plan->pin == NONE || h->pins[plan->pin].vc != plan->vc)
        return err_fail(err, ERR_INVALID, "pinnedCellId", REASON_NO_PIN_OF,
                        request->virtual_cluster, request->pinned_cell);
    if (request->priority < HIVED_PRIORITY_MIN)
        return err_fail(err, ERR_INVALID, "pinnedCellId", REASON_PIN_BORROWED);
    return 0;
}

static int request_can_serve(struct scheduling *plan, struct err *err)
{
    bool is_found = false;
    int code = new_check(plan, err);
    if (!code)
        code = place_try(plan, HIVED_PRIORITY_OPPO, &is_found, err);
    plan->result->kind = HIVED_BIND;
    return code;
}

static const uint32_t *slot_starts(const struct scheduling *plan)
{
    assert(plan->item_count > 0);
    if (plan->found->starts)
        return plan->found->starts;
    uint32_t *starts = ARENA_ARRAY(plan->arena, uint32_t, plan->item_count + 1);
    for (uint32_t i = 0; i < plan->item_count; i++)
        starts[i + 1] = starts[i] + plan->items[i].leaves;
    return plan->found->starts = starts;
}

/* `takes_others`: in pieces they are cancelled before its cells are reserved; else they have been.
 */
static void preempting_create(struct scheduling *plan, bool takes_others)
{
    assert(plan->chain < plan->h->chain_count);
    struct hived *h = plan->h;
    const struct hived_request *request = plan->request;
    struct group like = {.name = (char *)(uintptr_t)request->group,
                         .vc = plan->vc,
                         .vc_name = (char *)(uintptr_t)request->virtual_cluster,
                         .priority = request->priority,
                         .state = HIVED_GROUP_PREEMPTING,
                         .is_lazy = request->is_lazy,
                         .uses_suggested = request->uses_suggested,
                         .has_virtual = plan->virtual != NULL,
                         .physical = plan->physical,
                         .virtual = plan->virtual,
                         .slot_count = plan->item_count,
                         .overtaken = plan->course && takes_others ? 0 : plan->leaf_count,
                         .chain_name = (char *)(uintptr_t)h->chains[plan->chain].name};
    if (is_given(request->pinned_cell))
        like.pin = (char *)(uintptr_t)request->pinned_cell;
    uint32_t *sizes = ARENA_ARRAY(plan->arena, uint32_t, plan->item_count);
    for (uint32_t i = 0; i < plan->item_count; i++)
        sizes[i] = plan->items[i].leaves;
    uint32_t index = gang_add(h, &like, sizes);
    struct group *group = h->groups[index];
    preempting_add(group, plan->pod);
    plan->found->usable = plan->leaf_count; /* as it has just been found */
    if (plan->course) {                     /* the rest with the next calls */
        plan->is_cut = plan->course->is_cut = true;
        return;
    }
    preemption_go_on(h, index, group->leaf_count);
}

/* Of a search in pieces nobody reads where a gang would be that preempts. False: cut. */
static bool found_write(struct scheduling *plan)
{
    struct hived_result *result = plan->result;
    const bool has_victims = plan->found->conflict.victim_count > 0;
    if (!plan->course || !has_victims) {
        const struct writing_of of = {.starts = slot_starts(plan),
                                      .slots = plan->item_count,
                                      .physical = plan->physical,
                                      .virtual = plan->virtual,
                                      .has_hints = true,
                                      .arena = plan->arena};
        if (!placement_write(plan, &of))
            return false;
        result->placement.chain = plan->h->chains[plan->chain].name;
    }
    result->placement.slot_count = plan->item_count;
    result->slot = 0;
    while (plan->request->leaves && plan->items[result->slot].leaves != plan->request->leaves)
        result->slot++;
    return !has_victims || victims_write(plan);
}

static void found_preempt(struct scheduling *plan)
{
    struct hived *h = plan->h;
    const struct conflict *conflict = &plan->found->conflict;
    const bool takes_others = conflict->preemptor_count > 0,
               is_in_pieces = plan->course && conflict->victim_count;
    /* what the cancelled ones give back must not become anybody's doomed cell meanwhile */
    dooms_hold(h);
    for (uint32_t i = 0; i < conflict->preemptor_count && !is_in_pieces; i++)
        preemption_undo(h, conflict->preemptors[i]);
    if (conflict->victim_count) {
        preempting_create(plan, takes_others);
        group_pending_settle(h, true);
        if (takes_others && is_in_pieces)
            h->is_overtaking = true;
        else
            dooms_let(h);
    } else {
        h->holds_for_commit = true;
    }
}

/* Those who have been displaced for a gang that only asks whom it would preempt have their cells
 * again. */
static void found_return(struct scheduling *plan)
{
    struct hived_found *found = plan->found;
    found->displaces_again |= found->has_displaced;
    found->has_displaced = false;
    group_pending_settle(plan->h, plan->h->habits->downgrades_at_once);
}

static void found_conclude(struct scheduling *plan)
{
    assert(plan->chain < plan->h->chain_count);
    struct hived *h = plan->h;
    struct hived_result *result = plan->result;
    if (!conflict_find(plan, plan->physical, plan->leaf_count, NONE))
        return;
    const bool has_victims = plan->found->conflict.victim_count > 0;
    if (!has_victims) /* it will be committed */
        leaves_fetch(h, plan->physical, plan->leaf_count);
    for (uint32_t i = 0; i < plan->found->conflict.preemptor_count; i++)
        result->overtaken += preemption_work(h->groups[plan->found->conflict.preemptors[i]]);
    if (plan->phase == HIVED_PREEMPTING)
        found_preempt(plan);
    else if (has_victims)
        found_return(plan);
    if (!has_victims && h->pending_count && !h->pending_group)
        h->pending_group = mem_copy(plan->request->group);
    result->is_urgent = !has_victims && hived_is_pending(h);
    if (!plan->is_cut && found_write(plan))
        result->kind = has_victims ? HIVED_PREEMPT : HIVED_BIND;
}

/* False: cut, as to make room for what is found is a piece by itself. */
static bool new_begin(struct scheduling *plan)
{
    struct hived_found *found = plan->found;
    bool goes_on = true;
    if (!found->items) {
        found->items =
            request_items(plan->request, plan->arena, &found->item_count, &found->leaf_count);
        found->virtual = ARENA_ARRAY(plan->arena, uint32_t, 2 * (size_t)found->leaf_count);
        found->physical = found->virtual + found->leaf_count;
        found->wait = (struct wait){.request = plan->request,
                                    .items = found->items,
                                    .item_count = found->item_count,
                                    .leaf_count = found->leaf_count,
                                    .chain = NONE,
                                    .vc = plan->vc,
                                    .pin = plan->pin,
                                    .bad_node = NONE};
        goes_on = !piece_ends(plan, found->leaf_count);
    }
    found->wait.request = found->first.request = plan->request;
    plan->items = found->items;
    plan->item_count = found->item_count;
    plan->leaf_count = found->leaf_count;
    plan->virtual = found->virtual;
    plan->physical = found->physical;
    return goes_on;
}

/* Displace nobody while any chain has room. */
static int new_place(struct scheduling *plan, bool *is_found, struct err *err)
{
    const struct hived *h = plan->h;
    int code = place_try(plan, HIVED_PRIORITY_OPPO, is_found, err);
    if (code || *is_found || plan->request->priority <= HIVED_PRIORITY_MIN ||
        h->habits->displaces_by_chain)
        return code;
    if (!plan->found->is_displacing)
        plan->found->first = plan->found->wait;
    plan->found->is_displacing = true;
    code = place_try(plan, plan->request->priority, is_found, err);
    if (plan->found->wait.bad_node == NONE && !plan->found->wait.is_mapping)
        plan->found->wait = plan->found->first;
    return code;
}

static int new_schedule(struct scheduling *plan, struct err *err)
{
    bool is_found = false;
    int code = new_check(plan, err);
    if (code || !new_begin(plan))
        return code;
    code = new_place(plan, &is_found, err);
    if (code || plan->is_cut)
        return code;
    if (is_found)
        found_conclude(plan);
    else
        reason_write(plan->h, &plan->found->wait, plan->arena, plan->result);
    return 0;
}

/* Those who were displaced have got back what they lost: it displaces them again. */
static void course_rewind(struct hived_found *found)
{
    found->stage = TRY_LAZY;
    found->at = 0;
    found->mapping.course = NULL;
    found->has_displaced = false;
}

/* What it has displaced stays so; whatever else is pending is taken back. */
static void pending_leave(struct hived *h, const struct hived_ask *ask)
{
    const struct hived_found *found = ask->course ? ask->course->found : NULL;
    if (ask->phase == HIVED_CHECKING && h->is_displacing)
        return;
    if (ask->phase == HIVED_FILTERING && h->is_displacing && found && found->has_displaced)
        return;
    if (h->pending_count > 0)
        hived_trial_end(h);
    group_pending_settle(h, false);
}

/* It goes on where it was cut, or begins. */
static void course_join(struct scheduling *plan)
{
    struct hived_course *course = plan->course;
    plan->found = &plan->own;
    if (!course || !course->found)
        hived_trial_end(plan->h); /* of another search */
    if (!course)
        return;
    course->is_cut = course->is_leaving = course->is_ordering = false;
    if (!course->found)
        course->found = ARENA_NEW(plan->arena, struct hived_found);
    plan->found = course->found;
    if (plan->phase == HIVED_FILTERING)
        course->passed += plan->found->passed;
    if (plan->phase == HIVED_FILTERING ? plan->found->has_displaced && !plan->h->pending_count
                                       : plan->found->displaces_again)
        course_rewind(plan->found);
}

int hived_schedule(struct hived *h, const struct hived_ask *ask, struct arena *arena,
                   struct hived_result *result, struct err *err)
{
    assert(!h->origin && (!h->committing.is_on || ask->phase == HIVED_CHECKING));
    pending_leave(h, ask);
    const struct hived_request *request = ask->request;
    int code = request_check(request, err);
    if (code)
        return code;
    if (ask->phase != HIVED_CHECKING)
        h->now_ms = ask->now_ms;
    *result = (struct hived_result){0};
    struct scheduling plan = {.h = h,
                              .request = request,
                              .arena = arena,
                              .result = result,
                              .pod = ask->pod,
                              .phase = ask->phase,
                              .scope = ask->scope,
                              .course = ask->course};
    if (ask->phase == HIVED_CHECKING)
        return request_can_serve(&plan, err);
    course_join(&plan);
    if (request->uses_suggested)
        plan.is_excluded = scope_nodes(&plan, ask->scope);
    uint32_t index;
    struct group *group = gang_find(h, request->group, &index);
    if (!group || group->state != HIVED_GROUP_PREEMPTING || group->reserved == group->leaf_count)
        hived_overtaking_end(h); /* of another search */
    if (!group)
        return new_schedule(&plan, err);
    switch ((enum hived_group_state)group->state) {
    case HIVED_GROUP_ALLOCATED:
        return allocated_schedule(&plan, group, err);
    case HIVED_GROUP_PREEMPTING:
        return preempting_schedule(&plan, index) ? 0 : new_schedule(&plan, err);
    case HIVED_GROUP_BEING_PREEMPTED:
        being_preempted_schedule(&plan, group);
        return 0;
    }
    return err_fail(err, ERR_INTERNAL, "", "a group's state is not one of its states");
}
