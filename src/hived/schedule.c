/* schedule.c — the decision: where, whom it displaces, or why not. */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

/* What an earlier piece of the search has found. What failed before it is tried again: that costs
 * little, and is told as the reason if the rest fails as well. */
struct hived_found {
    uint32_t attempt; /* number of the try that found it */
    bool is_mapped;
    uint32_t *virtual, *physical;
    struct wait wait;
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
    uint32_t chain; /* where it was found */
    struct wait wait;
    struct hived_course *course; /* or NULL */
    uint32_t attempts;           /* to find places, each in one chain */
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

/* --- results --- */

/* The preassigned cells' types of a virtual placement; "" where there is none. */
static void preassigned_write(const struct hived *h, const uint32_t *virtual, uint32_t count,
                              const char **types)
{
    uint32_t root = NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t own = virtual && virtual[i] != NONE ? h->cells[virtual[i]].root : NONE;
        if (i > 0 && own == root)
            types[i] = types[i - 1];
        else
            types[i] = own == NONE ? "" : cell_type_name(h, &h->cells[own]);
        root = own;
    }
}

static void slot_write(const struct scheduling *plan, struct hived_slot *slot,
                       const uint32_t *physical, uint16_t *indices)
{
    assert(plan->chain < plan->h->chain_count);
    const struct hived *h = plan->h;
    slot->node = "";
    slot->indices = indices;
    for (uint32_t i = 0; i < slot->leaf_count; i++) {
        if (physical[i] == NONE)
            continue;
        const struct cell *leaf = &h->cells[physical[i]];
        slot->node = h->nodes[rest_of(h, leaf)->node].name;
        indices[i] = (uint16_t)rest_of(h, leaf)->index;
    }
}

static void placement_write(struct scheduling *plan, uint32_t slots, const uint32_t *slot_leaf,
                            const uint32_t *physical, const uint32_t *virtual)
{
    assert(slots > 0);
    struct hived_placement *placement = &plan->result->placement;
    uint32_t leaves = slot_leaf[slots];
    uint16_t *indices = ARENA_ARRAY(plan->arena, uint16_t, leaves);
    const char **types = ARENA_ARRAY(plan->arena, const char *, leaves);
    preassigned_write(plan->h, virtual, leaves, types);
    placement->slots = ARENA_ARRAY(plan->arena, struct hived_slot, slots);
    placement->slot_count = slots;
    for (uint32_t i = 0; i < slots; i++) {
        uint32_t first = slot_leaf[i];
        struct hived_slot *slot = &placement->slots[i];
        slot->leaf_count = slot_leaf[i + 1] - first;
        slot->preassigned = &types[first];
        slot_write(plan, slot, &physical[first], &indices[first]);
    }
}

/* The cells live as long as the result does. */
static void hints_write(const struct scheduling *plan)
{
    assert(plan->chain < plan->h->chain_count);
    struct hived_placement *placement = &plan->result->placement;
    const uint32_t *physical = plan->physical;
    for (uint32_t i = 0; i < placement->slot_count; i++) {
        placement->slots[i].hints = physical;
        physical += placement->slots[i].leaf_count;
    }
}

static void group_placement_write(struct scheduling *plan, const struct group *group)
{
    placement_write(plan, group->slot_count, group->slot_leaf, group->physical,
                    group->has_virtual ? group->virtual : NULL);
    plan->result->placement.chain = group->chain_name;
}

struct conflict { /* what stands in the way of a placement */
    uint32_t *victims, *preemptors;
    uint32_t victim_count, preemptor_count;
};

static void group_list(struct hived *h, uint32_t group, uint32_t *list, uint32_t *count)
{
    assert(group < h->group_count);
    if (h->groups[group]->listing == h->listing)
        return;
    h->groups[group]->listing = h->listing;
    list[(*count)++] = group;
}

static struct conflict conflict_find(struct scheduling *plan, const uint32_t *physical,
                                     uint32_t count, uint32_t own)
{
    assert(count > 0);
    struct hived *h = plan->h;
    uint32_t free = 0;
    while (free < count &&
           (physical[free] == NONE || h->cells[physical[free]].state == HIVED_CELL_FREE))
        free++;
    if (free == count)
        return (struct conflict){0};
    uint32_t *lists = ARENA_ARRAY(plan->arena, uint32_t, 2 * (size_t)count);
    struct conflict conflict = {.victims = lists, .preemptors = lists + count};
    h->listing++;
    for (uint32_t i = 0; i < count; i++)
        if (physical[i] != NONE && h->cells[physical[i]].using != NONE)
            group_list(h, h->cells[physical[i]].using, conflict.victims, &conflict.victim_count);
    h->listing++;
    for (uint32_t i = 0; i < count; i++) {
        if (physical[i] == NONE || h->cells[physical[i]].state < HIVED_CELL_RESERVING)
            continue;
        uint32_t other = h->rests[physical[i]].reserving;
        if (other != own)
            group_list(h, other, conflict.preemptors, &conflict.preemptor_count);
    }
    return conflict;
}

static void victims_write(struct scheduling *plan, const struct conflict *conflict)
{
    const struct hived *h = plan->h;
    uint32_t pods = 0;
    for (uint32_t i = 0; i < conflict->victim_count; i++)
        pods += h->groups[conflict->victims[i]]->bound_count;
    struct hived_victim *victims = ARENA_ARRAY(plan->arena, struct hived_victim, pods + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < conflict->victim_count; i++) {
        const struct group *group = h->groups[conflict->victims[i]];
        for (uint32_t k = 0; k < group->slot_count; k++) {
            if (!group->pods[k].is_bound)
                continue;
            uint32_t leaf = group->slot_leaf[k];
            while (leaf + 1 < group->slot_leaf[k + 1] && group->physical[leaf] == NONE)
                leaf++;
            uint32_t cell = group->physical[leaf];
            victims[count++] = (struct hived_victim){
                .group = group->name,
                .pod = group->pods[k].name ? group->pods[k].name : "",
                .node = cell != NONE ? h->nodes[h->rests[cell].node].name : ""};
        }
    }
    plan->result->kind = HIVED_PREEMPT;
    plan->result->victims = victims;
    plan->result->victim_count = count;
}

static void preempting_add(struct group *group, const char *pod)
{
    assert(group->state == HIVED_GROUP_PREEMPTING);
    if (!pod)
        return;
    for (uint32_t i = 0; i < group->preempting_count; i++)
        if (!strcmp(group->preempting[i], pod))
            return;
    if (group->preempting_count == group->preempting_room) {
        group->preempting_room = group->preempting_room ? 2 * group->preempting_room : 4;
        group->preempting = mem_realloc(
            group->preempting, mem_size(group->preempting_room, sizeof *group->preempting));
    }
    group->preempting[group->preempting_count++] = mem_copy(pod);
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

static bool placement_is_usable(struct scheduling *plan, const struct group *group)
{
    const struct hived *h = plan->h;
    const bool *is_excluded = plan->is_excluded;
    if (h->habits->minds_suggestions)
        is_excluded = scope_nodes(plan, plan->scope);
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        const struct cell *leaf = &h->cells[group->physical[i]];
        if (leaf->is_bad || (is_excluded && is_excluded[rest_of(h, leaf)->node]))
            return false;
    }
    return true;
}

/* True: answered. False: its preemption was cancelled, it must be placed anew. */
static bool preempting_schedule(struct scheduling *plan, uint32_t index)
{
    assert(index < plan->h->group_count && plan->h->groups[index]);
    struct group *group = plan->h->groups[index];
    if (plan->phase == HIVED_PREEMPTING && group->reserved < group->leaf_count) {
        preemption_go_on(plan->h, index, plan->course ? plan->course->leaves : group->leaf_count);
        if (plan->course) {
            plan->is_cut = plan->course->is_cut = true;
            return true;
        }
    }
    struct conflict conflict = conflict_find(plan, group->physical, group->leaf_count, index);
    /* the original minds it only when it goes on to preempt, and binds to what is bad */
    const bool is_binding = !conflict.victim_count && !plan->h->habits->minds_suggestions;
    if ((plan->phase == HIVED_PREEMPTING || is_binding) && !placement_is_usable(plan, group)) {
        preemption_undo(plan->h, index);
        return false;
    }
    plan->result->slot = 0;
    while (plan->result->slot + 1 < group->slot_count &&
           !slot_has_leaves(group, plan->result->slot, plan->request->leaves))
        plan->result->slot++;
    if (!plan->course || !conflict.victim_count)
        group_placement_write(plan, group);
    plan->result->placement.slot_count = group->slot_count;
    preempting_add(group, plan->pod);
    group_changed(plan->h, index);
    plan->result->kind = HIVED_BIND;
    if (conflict.victim_count)
        victims_write(plan, &conflict);
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

/* --- a search in pieces --- */

/* The search has come to the end of a piece. True: it goes on with the next call. */
static bool piece_end(struct scheduling *plan)
{
    struct hived_course *course = plan->course;
    assert(!plan->is_cut);
    /* what PREEMPTING finds was found by FILTERING */
    if (!course || plan->phase == HIVED_PREEMPTING || hived_is_pending(plan->h))
        return false;
    plan->is_cut = course->is_cut = ++course->passed == course->pieces;
    return plan->is_cut;
}

static void found_keep(struct scheduling *plan, bool is_mapped)
{
    if (!plan->course || hived_is_pending(plan->h))
        return;
    if (!plan->course->found)
        plan->course->found = ARENA_NEW(plan->arena, struct hived_found);
    *plan->course->found =
        (struct hived_found){plan->attempts, is_mapped, plan->virtual, plan->physical, plan->wait};
}

/* What this try has found in an earlier piece; NULL: nothing yet. The arrays are its own from then
 * on: others begin with new ones. */
static const struct hived_found *found_again(struct scheduling *plan)
{
    const struct hived_found *found = plan->course ? plan->course->found : NULL;
    if (!found || found->attempt != plan->attempts)
        return NULL;
    plan->virtual = found->virtual;
    plan->physical = found->physical;
    plan->wait = found->wait;
    return found;
}

/* --- a new group --- */

static bool guaranteed_pack(struct scheduling *plan, uint32_t chain, uint32_t view,
                            int32_t priority)
{
    assert(plan->item_count > 0 && view < plan->h->view_count);
    struct hived *h = plan->h;
    struct pack pack = {.h = h,
                        .view = &h->views[view],
                        .chain = chain,
                        .priority = priority,
                        .is_excluded = plan->is_excluded,
                        .items = plan->items,
                        .item_count = plan->item_count,
                        .leaf_count = plan->leaf_count,
                        .leaves = plan->virtual,
                        .arena = plan->arena};
    const char *within = plan->request->within_one_cell;
    bool is_packed = pack_run(&pack, is_given(within) ? within : NULL);
    plan->wait.chain = chain;
    plan->wait.bad_node = pack.bad_node;
    plan->wait.is_bad_excluded = pack.is_bad_excluded;
    plan->wait.is_search_cut = pack.is_search_cut;
    plan->wait.is_mapping = false;
    return is_packed;
}

/* The lazy groups in the way lose their cells. */
static void lazy_displace(struct scheduling *plan)
{
    struct hived *h = plan->h;
    for (uint32_t i = 0; i < plan->leaf_count; i++) {
        uint32_t physical = h->cells[plan->virtual[i]].bound;
        if (physical == NONE || h->cells[physical].state != HIVED_CELL_USED ||
            h->cells[physical].using == NONE)
            continue;
        uint32_t group = h->cells[physical].using;
        if (h->groups[group]->is_lazy && h->groups[group]->has_virtual)
            group_pending_downgrade(h, group, plan->request->group);
    }
}

static bool guaranteed_map(struct scheduling *plan, uint32_t chain)
{
    struct hived *h = plan->h;
    struct mapping mapping = {.h = h,
                              .chain = chain,
                              .virtual = plan->virtual,
                              .leaf_count = plan->leaf_count,
                              .physical = plan->physical,
                              .is_excluded = plan->is_excluded,
                              .arena = plan->arena};
    return mapping_run(&mapping);
}

/* True: found, or cut. */
static bool guaranteed_try(struct scheduling *plan, uint32_t chain, uint32_t view, int32_t priority)
{
    plan->attempts++;
    const struct hived_found *found = found_again(plan);
    if (!found && !guaranteed_pack(plan, chain, view, priority))
        return false;
    plan->chain = plan->wait.chain = chain;
    if (!found)
        found_keep(plan, false);
    if (piece_end(plan))
        return true;
    if (!found || !found->is_mapped) {
        lazy_displace(plan);
        if (!guaranteed_map(plan, chain)) {
            plan->wait.is_mapping = true;
            group_pending_settle(plan->h, false);
            return false;
        }
        found_keep(plan, true);
    }
    piece_end(plan);
    return true;
}

/* The original displaces in a chain before it tries the next one, but not where there was room on
 * bad or excluded nodes only. */
static bool guaranteed_place(struct scheduling *plan, uint32_t chain, uint32_t view,
                             int32_t priority)
{
    return guaranteed_try(plan, chain, view, priority) ||
           (plan->h->habits->displaces_by_chain && !plan->wait.is_mapping &&
            guaranteed_try(plan, chain, view, plan->request->priority));
}

static bool oppo_pack(struct scheduling *plan, uint32_t chain)
{
    assert(plan->item_count > 0);
    struct hived *h = plan->h;
    struct pack pack = {.h = h,
                        .view = &h->views[h->chains[chain].view],
                        .chain = chain,
                        .priority = HIVED_PRIORITY_OPPO,
                        .is_excluded = plan->is_excluded,
                        .items = plan->items,
                        .item_count = plan->item_count,
                        .leaf_count = plan->leaf_count,
                        .leaves = plan->physical,
                        .arena = plan->arena};
    const char *within = plan->request->within_one_cell;
    bool is_packed = pack_run(&pack, is_given(within) ? within : NULL);
    plan->wait.bad_node = pack.bad_node;
    plan->wait.is_bad_excluded = pack.is_bad_excluded;
    plan->wait.is_search_cut = pack.is_search_cut;
    return is_packed;
}

/* True: found, or cut. */
static bool oppo_try(struct scheduling *plan, uint32_t chain)
{
    plan->attempts++;
    const struct hived_found *found = found_again(plan);
    plan->virtual = NULL;
    plan->chain = chain;
    plan->wait.chain = chain;
    if (!found && !oppo_pack(plan, chain))
        return false;
    if (!found)
        found_keep(plan, true);
    piece_end(plan);
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

static int type_check(const struct hived *h, struct text name, uint32_t *type, struct err *err)
{
    *type = NONE;
    for (uint32_t i = 0; i < h->chain_count && *type == NONE; i++)
        if (text_is(name, h->config->types[h->chains[i].leaf_type].name))
            *type = h->chains[i].leaf_type;
    if (*type == NONE)
        return err_fail(err, ERR_INVALID, "leafCellType", "the cluster has no %.*s",
                        (int)(name.length > 100 ? 100 : name.length), name.at);
    return 0;
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
        int code = type_check(h, name, &type, err);
        if (code)
            return code;
        *is_found = chains_try(plan, type, priority, &is_offered);
    }
    if (!is_offered)
        return err_fail(err, ERR_INVALID, "leafCellType",
                        "the virtual cluster %s has no %s outside its pinned cells",
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

static uint32_t pin_find(const struct hived *h, const char *id)
{
    for (uint32_t i = 0; i < h->pin_count; i++)
        if (!strcmp(h->pins[i].id, id))
            return i;
    return NONE;
}

static int within_check(const struct hived *h, const char *type, struct err *err)
{
    if (!is_given(type) || hived_config_type(h->config, type) != HIVED_NONE)
        return 0;
    return err_fail(err, ERR_INVALID, "withinOneCell", "the cluster has no cell type %.100s", type);
}

static int new_check(struct scheduling *plan, struct err *err)
{
    struct hived *h = plan->h;
    const struct hived_request *request = plan->request;
    plan->vc = text_map_get(&h->vc_index, text_of(request->virtual_cluster));
    plan->pin = NONE;
    if (plan->vc == MAP_NONE)
        return err_fail(err, ERR_INVALID, "virtualCluster", "there is no virtual cluster %s",
                        request->virtual_cluster);
    int code = within_check(h, request->within_one_cell, err);
    for (uint32_t i = 0; !code && i < request->member_count; i++)
        code = within_check(h, request->members[i].within_one_cell, err);
    if (code || !is_given(request->pinned_cell))
        return code;
    plan->pin = pin_find(h, request->pinned_cell);
    if (plan->pin == NONE || h->pins[plan->pin].vc != plan->vc)
        return err_fail(err, ERR_INVALID, "pinnedCellId", "%s has no pinned cell %s",
                        request->virtual_cluster, request->pinned_cell);
    if (request->priority < HIVED_PRIORITY_MIN)
        return err_fail(err, ERR_INVALID, "pinnedCellId",
                        "an opportunistic gang cannot use a pinned cell");
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

static uint32_t *slot_starts(const struct scheduling *plan)
{
    assert(plan->item_count > 0);
    uint32_t *starts = ARENA_ARRAY(plan->arena, uint32_t, plan->item_count + 1);
    for (uint32_t i = 0; i < plan->item_count; i++)
        starts[i + 1] = starts[i] + plan->items[i].leaves;
    return starts;
}

/* A gang that takes the places of others that preempt takes them all at once. */
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
                         .slot_count = plan->item_count,
                         .chain_name = (char *)(uintptr_t)h->chains[plan->chain].name};
    if (is_given(request->pinned_cell))
        like.pin = (char *)(uintptr_t)request->pinned_cell;
    uint32_t *sizes = ARENA_ARRAY(plan->arena, uint32_t, plan->item_count);
    for (uint32_t i = 0; i < plan->item_count; i++)
        sizes[i] = plan->items[i].leaves;
    uint32_t index = gang_add(h, &like, sizes);
    struct group *group = h->groups[index];
    memcpy(group->physical, plan->physical, plan->leaf_count * sizeof *group->physical);
    if (plan->virtual)
        memcpy(group->virtual, plan->virtual, plan->leaf_count * sizeof *group->virtual);
    for (uint32_t i = 0; plan->virtual && i < plan->leaf_count; i++)
        group->types[i] = level_of(h, &h->cells[h->cells[plan->virtual[i]].root])->type;
    preempting_add(group, plan->pod);
    if (plan->course && !takes_others) { /* the rest with the next calls */
        plan->is_cut = plan->course->is_cut = true;
        return;
    }
    preemption_go_on(h, index, group->leaf_count);
}

/* Of a search in pieces nobody reads where a gang would be that preempts. */
static void found_write(struct scheduling *plan, const struct conflict *conflict)
{
    struct hived_result *result = plan->result;
    if (!plan->course || !conflict->victim_count) {
        placement_write(plan, plan->item_count, slot_starts(plan), plan->physical, plan->virtual);
        hints_write(plan);
        result->placement.chain = plan->h->chains[plan->chain].name;
    }
    result->placement.slot_count = plan->item_count;
    result->slot = 0;
    while (plan->request->leaves && plan->items[result->slot].leaves != plan->request->leaves)
        result->slot++;
    if (conflict->victim_count)
        victims_write(plan, conflict);
}

static void found_conclude(struct scheduling *plan)
{
    assert(plan->chain < plan->h->chain_count);
    struct hived *h = plan->h;
    struct hived_result *result = plan->result;
    struct conflict conflict = conflict_find(plan, plan->physical, plan->leaf_count, NONE);
    if (!conflict.victim_count) /* it will be committed */
        leaves_fetch(h, plan->physical, plan->leaf_count);
    result->kind = conflict.victim_count ? HIVED_PREEMPT : HIVED_BIND;
    if (plan->phase == HIVED_PREEMPTING) {
        /* what the cancelled ones give back must not become anybody's doomed cell meanwhile */
        dooms_hold(h);
        for (uint32_t i = 0; i < conflict.preemptor_count; i++)
            preemption_undo(h, conflict.preemptors[i]);
        if (conflict.victim_count) {
            preempting_create(plan, conflict.preemptor_count > 0);
            group_pending_settle(h, true);
            dooms_let(h);
        } else {
            h->holds_for_commit = true;
        }
    } else if (conflict.victim_count) {
        group_pending_settle(h, h->habits->downgrades_at_once);
    }
    if (result->kind == HIVED_BIND && h->pending_count)
        h->pending_group = mem_copy(plan->request->group);
    if (!plan->is_cut)
        found_write(plan, &conflict);
}

static int new_schedule(struct scheduling *plan, struct err *err)
{
    struct hived *h = plan->h;
    int code = new_check(plan, err);
    if (code)
        return code;
    plan->items = request_items(plan->request, plan->arena, &plan->item_count, &plan->leaf_count);
    plan->virtual = ARENA_ARRAY(plan->arena, uint32_t, 2 * (size_t)plan->leaf_count);
    plan->physical = plan->virtual + plan->leaf_count;
    plan->wait = (struct wait){.request = plan->request,
                               .items = plan->items,
                               .item_count = plan->item_count,
                               .leaf_count = plan->leaf_count,
                               .chain = NONE,
                               .vc = plan->vc,
                               .pin = plan->pin,
                               .bad_node = NONE};
    bool is_found = false;
    /* displace nobody while any chain has room */
    code = place_try(plan, HIVED_PRIORITY_OPPO, &is_found, err);
    if (!code && !is_found && plan->request->priority > HIVED_PRIORITY_MIN &&
        !h->habits->displaces_by_chain) {
        struct wait first = plan->wait;
        code = place_try(plan, plan->request->priority, &is_found, err);
        if (plan->wait.bad_node == NONE && !plan->wait.is_mapping)
            plan->wait = first;
    }
    if (code || plan->is_cut)
        return code;
    if (is_found) {
        found_conclude(plan);
        return 0;
    }
    reason_write(h, &plan->wait, plan->arena, plan->result);
    return 0;
}

int hived_schedule(struct hived *h, const struct hived_ask *ask, struct arena *arena,
                   struct hived_result *result, struct err *err)
{
    assert(!h->origin);
    group_pending_settle(h, false);
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
    if (plan.course)
        plan.course->is_cut = false;
    if (ask->phase == HIVED_CHECKING)
        return request_can_serve(&plan, err);
    if (request->uses_suggested)
        plan.is_excluded = scope_nodes(&plan, ask->scope);
    uint32_t index;
    struct group *group = gang_find(h, request->group, &index);
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
