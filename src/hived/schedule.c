/* schedule.c — the decision: where, whom it displaces, or why not. */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "hived/search.h"
#include "model/reason.h"
#include <assert.h>

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
        plan->found->displaces_again = plan->found->has_displaced = false;
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
 * again. False: cut. */
static bool found_return(struct scheduling *plan)
{
    struct hived_found *found = plan->found;
    found->displaces_again |= found->has_displaced;
    if (!plan->h->habits->downgrades_at_once)
        return displaced_return(plan);
    found->has_displaced = false;
    group_pending_settle(plan->h, true);
    return true;
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
    else if (has_victims && !found_return(plan))
        return;
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

/* Have they got back what they lost, so that it must be done once more? */
static bool course_is_lost(const struct scheduling *plan)
{
    const struct hived_found *found = plan->found;
    if (is_displacing_again(plan) && !found->is_again)
        return true;
    return (is_displacing_again(plan) || plan->phase == HIVED_FILTERING) && found->has_displaced &&
           !plan->h->pending_count;
}

/* What it has displaced stays so; whatever else is pending is taken back. */
static void pending_leave(struct hived *h, const struct hived_ask *ask)
{
    const struct hived_found *found = ask->course ? ask->course->found : NULL;
    if (ask->phase == HIVED_CHECKING && h->is_displacing)
        return;
    if (h->is_displacing && found && found->has_displaced)
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
    course->passed += plan->phase == HIVED_FILTERING ? plan->found->passed
                      : is_displacing_again(plan)    ? plan->found->passed_again
                                                     : 0;
    if (course_is_lost(plan))
        course_rewind(plan->found);
    plan->found->is_again |= is_displacing_again(plan);
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
                              .course = ask->course,
                              .displaced = ask->displaced_max ? ask->displaced_max : UINT32_MAX};
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
