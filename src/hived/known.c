/* known.c — a decision for a group that is known: one that runs, preempts, or is preempted. See
 * search.h. */
#include "base/arena.h"
#include "base/err.h"
#include "hived/search.h"
#include "model/reason.h"
#include <assert.h>

static bool slot_has_leaves(const struct group *group, uint32_t slot, uint32_t leaves)
{
    return leaves == 0 || group->slot_leaf[slot + 1] - group->slot_leaf[slot] == leaves;
}

int allocated_schedule(struct scheduling *plan, struct group *group, struct err *err)
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
bool preempting_schedule(struct scheduling *plan, uint32_t index)
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

void being_preempted_schedule(struct scheduling *plan, const struct group *group)
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
