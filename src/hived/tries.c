/* tries.c — places for a group that is new: a try in each chain, in turn. See search.h. */
#include "base/err.h"
#include "hived/search.h"
#include "model/reason.h"
#include <assert.h>

enum { LEAVES_IN_A_ROW = 4 };

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

/* May this one lose all of its cells in this call? If not, nobody loses any. */
static bool may_displace(struct scheduling *plan, uint32_t index)
{
    const uint32_t leaves = plan->h->groups[index]->leaf_count;
    if (is_on_course(plan))
        return true;
    if (leaves <= plan->displaced) {
        plan->displaced -= leaves;
        return true;
    }
    group_pending_settle(plan->h, false);
    plan->is_cut = plan->result->is_too_much = true;
    return false;
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
            if (lazy != NONE && !may_displace(plan, lazy))
                return false;
            done += lazy == NONE ? 1 : lazy_displace(plan, lazy, room - done);
            found->at += lazy == NONE;
        }
        if (piece_ends(plan, done))
            return false;
    }
    found->stage = TRY_MAP;
    return true;
}

/* Those who were displaced have their cells again. False: cut. */
bool displaced_return(struct scheduling *plan)
{
    struct hived_found *found = plan->found;
    while (found->has_displaced) {
        const uint32_t work = piece_room(plan), room = (work - 1) / LEAVES_LOOKED_AT + 1;
        uint32_t left = room;
        found->has_displaced = !group_pending_return(plan->h, &left);
        if (piece_ends(plan, (room - left) * LEAVES_LOOKED_AT))
            return false;
    }
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
    if (plan->found->stage == TRY_MAP) {
        const enum mapping_outcome outcome = try_map(plan, chain);
        if (outcome == MAPPING_CUT)
            return true;
        plan->found->wait.is_mapping |= outcome == MAPPING_FAILS;
        plan->found->stage = outcome == MAPPING_FAILS ? TRY_LEAVE : TRY_FOUND;
    }
    if (plan->found->stage == TRY_LEAVE)
        return !displaced_return(plan) || try_fails(plan);
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

int place_try(struct scheduling *plan, int32_t priority, bool *is_found, struct err *err)
{
    if (plan->pin == NONE)
        return types_try(plan, priority, is_found, err);
    const struct pin *pin = &plan->h->pins[plan->pin];
    if (plan->phase == HIVED_CHECKING)
        return 0;
    *is_found = guaranteed_place(plan, plan->h->cells[pin->cell].chain, pin->view, priority);
    return 0;
}
