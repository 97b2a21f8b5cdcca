/* search.c — see search.h. */
#include "hived/search.h"
#include "base/arena.h"
#include <assert.h>
#include <string.h>

const bool *scope_nodes(struct scheduling *plan, const struct hived_scope *scope)
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
    PART_OF_LEAVES = 8, /* a piece is not smaller than that: there is an end to them */
};

bool is_on_course(const struct scheduling *plan)
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
 * all that is left, unless lazy groups are displaced for it. */
uint32_t piece_room(const struct scheduling *plan)
{
    if (!is_on_course(plan) || (plan->phase == HIVED_PREEMPTING && !is_displacing_again(plan)))
        return UINT32_MAX;
    const uint64_t all = piece_work(plan);
    const uint64_t left = all > plan->found->work ? all - plan->found->work : 1;
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

/* So much was done. True: it is the end of a piece, the search goes on with the next call. */
bool piece_ends(struct scheduling *plan, uint32_t leaves)
{
    struct hived_found *found = plan->found;
    assert(!plan->is_cut);
    if (piece_room(plan) == UINT32_MAX)
        return false;
    found->work += leaves;
    if (found->work < piece_work(plan))
        return false;
    found->work = 0;
    if (plan->phase == HIVED_PREEMPTING)
        found->passed_again++;
    else
        found->passed++;
    plan->is_cut = plan->course->is_cut = ++plan->course->passed == plan->course->pieces;
    return plan->is_cut;
}

/* --- results --- */

/* Who is in the way of these leaves, for the group `own`, or NONE. False: cut. */
bool conflict_find(struct scheduling *plan, const uint32_t *physical, uint32_t count, uint32_t own)
{
    const struct conflict_of of = {physical, count, own, plan->arena};
    assert(count > 0);
    while (plan->found->conflict.at < count)
        if (piece_ends(plan, conflict_some(plan->h, &plan->found->conflict, &of, piece_room(plan))))
            return false;
    return true;
}

bool victims_write(struct scheduling *plan)
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

bool placement_write(struct scheduling *plan, const struct writing_of *of)
{
    struct writing *writing = &plan->found->writing;
    while (writing->slots < of->slots)
        if (piece_ends(plan, writing_some(plan->h, writing, of, piece_room(plan))))
            return false;
    plan->result->placement.slots = writing->items;
    plan->result->placement.slot_count = of->slots;
    return true;
}

bool group_placement_write(struct scheduling *plan, const struct group *group)
{
    const struct writing_of of = {.starts = group->slot_leaf,
                                  .slots = group->slot_count,
                                  .physical = group->physical,
                                  .virtual = group->has_virtual ? group->virtual : NULL,
                                  .arena = plan->arena};
    plan->result->placement.chain = arena_copy(plan->arena, text_of(group->chain_name));
    return placement_write(plan, &of);
}
