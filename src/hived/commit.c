/* commit.c — decisions taken, and what runs already recovered; ends of pods and groups. */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

struct commit {
    struct hived *h;
    const struct hived_request *request;
    const struct hived_placement *placement;
    uint32_t index; /* group */
    struct group *group;
    uint32_t vc, chain, pin_root;
    bool must_downgrade, has_oppo;
    uint32_t leaf;            /* of the next slot, whose turn it is */
    uint32_t *left;           /* of a piece, in leaves; NULL: it is not cut */
    struct clearing clearing; /* for that leaf */
    const char *type; /* of a preassigned cell, the last one looked up, and its level in a chain */
    uint16_t type_chain;
    uint8_t type_level;
};

static uint32_t chain_named(const struct hived *h, const char *name)
{
    for (uint32_t i = 0; name && i < h->chain_count; i++)
        if (!strcmp(h->chains[i].name, name))
            return i;
    return NONE;
}

/* The device in the chain named, else (moved by a reconfiguration) in any. */
static uint32_t device_find(const struct hived *h, uint32_t node_index, uint32_t device,
                            uint32_t chain)
{
    if (node_index == MAP_NONE)
        return NONE;
    const struct node *node = &h->nodes[node_index];
    uint32_t other = NONE;
    for (size_t i = 0; i < node->leaves.count; i++) {
        uint32_t leaf = node->leaves.items[i];
        if (h->rests[leaf].index != device)
            continue;
        if (h->cells[leaf].chain == chain)
            return leaf;
        if (other == NONE)
            other = leaf;
    }
    return other;
}

/* Is this cell the device that slot->indices[i] names? */
static bool leaf_is(const struct hived *h, uint32_t cell, const struct hived_slot *slot, uint32_t i,
                    uint32_t chain)
{
    return cell < h->cell_count && h->cells[cell].level == 1 && !h->cells[cell].is_virtual &&
           h->cells[cell].chain == chain && h->rests[cell].index == slot->indices[i] &&
           h->nodes[h->rests[cell].node].name == slot->node;
}

/* *node: index of the slot's node once it had to be looked up; NONE before. */
static uint32_t leaf_find(const struct hived *h, const struct hived_slot *slot, uint32_t i,
                          uint32_t chain, uint32_t *node)
{
    if (slot->hints && leaf_is(h, slot->hints[i], slot, i, chain))
        return slot->hints[i];
    if (*node == NONE)
        *node = text_map_get(&h->node_index, text_of(slot->node));
    return device_find(h, *node, slot->indices[i], chain);
}

static uint8_t level_of_type(const struct hived *h, uint32_t chain, const char *type)
{
    assert(chain < h->chain_count);
    const struct chain *c = &h->chains[chain];
    for (uint8_t level = 1; level <= c->top; level++)
        if (!strcmp(h->config->types[c->levels[level].type].name, type))
            return level;
    return 0;
}

/* Nobody recorded which preassigned cell it was: the smallest one of the virtual cluster that can
 * hold the leaf now. */
static uint32_t virtual_guess(const struct commit *commit, uint32_t physical, uint32_t vc)
{
    assert(physical < commit->h->cell_count);
    struct hived *h = commit->h;
    const struct quota *quota = quota_of(h, vc, h->cells[physical].chain);
    if (commit->pin_root != NONE)
        return physical_to_virtual(h, physical, vc, commit->pin_root, HIVED_LEVELS_MAX,
                                   commit->group->priority);
    for (uint8_t level = 1; quota->is_present && level <= quota->top; level++) {
        if (!quota->levels[level].roots.count)
            continue;
        uint32_t virtual = physical_to_virtual(h, physical, vc, NONE, level,
                                               commit->group->priority);
        if (virtual != NONE && h->cells[virtual].priority == HIVED_PRIORITY_FREE)
            return virtual;
    }
    return NONE;
}

/* The virtual leaf for a physical one. *is_oppo: there shall be none. */
static uint32_t virtual_find(struct commit *commit, uint32_t physical, const char *type,
                             bool *is_oppo)
{
    assert(physical < commit->h->cell_count);
    struct hived *h = commit->h;
    const struct group *group = commit->group;
    *is_oppo = group->priority < HIVED_PRIORITY_MIN || (type && !*type);
    if (*is_oppo || group->vc == NONE || commit->must_downgrade)
        return NONE;
    if (!type)
        return virtual_guess(commit, physical, group->vc);
    if (commit->type != type || commit->type_chain != h->cells[physical].chain) {
        commit->type = type;
        commit->type_chain = h->cells[physical].chain;
        commit->type_level = level_of_type(h, commit->type_chain, type);
    }
    if (!commit->type_level)
        return NONE;
    return physical_to_virtual(h, physical, group->vc, commit->pin_root, commit->type_level,
                               group->priority);
}

static void leaf_lose(struct hived *h, struct group *group, uint32_t i,
                      const struct hived_slot *slot, uint32_t k)
{
    assert(i < group->leaf_count);
    h->lost_count++;
    group->lost = mem_realloc(group->lost, mem_size(group->lost_count + 1u, sizeof *group->lost));
    group->lost[group->lost_count++] =
        (struct lost_leaf){.leaf = i,
                           .node = mem_copy(slot->node),
                           .index = slot->indices[k],
                           .type = slot->preassigned ? mem_copy(slot->preassigned[k]) : NULL};
}

/* As virtual_find, but whoever has that leaf's root elsewhere has lost it: the quota shrank. False:
 * there are more of them. */
static bool virtual_clear(struct commit *commit, uint32_t physical, const char *type,
                          uint32_t *virtual, bool *is_oppo)
{
    struct hived *h = commit->h;
    struct clearing *clearing = &commit->clearing;
    uint32_t all = UINT32_MAX;
    *is_oppo = false;
    if (!clearing->is_on) {
        *virtual = virtual_find(commit, physical, type, is_oppo);
        if (*virtual == NONE || h->cells[*virtual].bound == physical ||
            h->cells[h->cells[*virtual].root].bound == NONE || !cell_is_free(h, physical))
            return true;
        clearing_begin(h, *virtual, clearing);
    }
    *virtual = clearing->virtual;
    return clearing_some(h, clearing, commit->group->name, commit->left ? commit->left : &all);
}

/* False: cut. */
static bool leaf_commit(struct commit *commit, uint32_t i, uint32_t physical, const char *type)
{
    assert(i < commit->group->leaf_count && physical < commit->h->cell_count);
    struct hived *h = commit->h;
    struct group *group = commit->group;
    bool is_oppo;
    uint32_t virtual;
    if (!virtual_clear(commit, physical, type, &virtual, &is_oppo))
        return false;
    group->physical[i] = physical;
    if (virtual != NONE)
        virtual = leaf_virtual(h, physical, virtual, group->priority);
    commit->has_oppo |= is_oppo;
    if (virtual == NONE && !is_oppo)
        commit->must_downgrade = true;
    group->virtual[i] = virtual;
    if (virtual != NONE)
        group->types[i] = level_of(h, &h->cells[h->cells[virtual].root])->type;
    else if (type && *type)
        group->types[i] = hived_config_type(h->config, type);
    if (!leaf_allocate(h, physical, virtual, group->priority, group->vc)) {
        h->is_safety_broken = true;
        commit->must_downgrade = true;
    }
    h->cells[physical].using = commit->index;
    cell_state_set(h, physical, HIVED_CELL_USED);
    return true;
}

enum { SLOTS_AHEAD = 2 }; /* whose cells are fetched: no cache holds those of a large gang */

/* Whoever has reserved the leaf preempts no more. False: he has more to give back. */
static bool leaf_overtake(struct commit *commit, uint32_t physical)
{
    struct hived *h = commit->h;
    const uint32_t reserver = h->rests[physical].reserving;
    uint32_t *weaker = &h->committing.weaker;
    if (!commit->left) {
        if (reserver != NONE)
            preemption_undo(h, reserver);
        return true;
    }
    if (!*weaker && reserver != NONE)
        *weaker = reserver + 1;
    while (*weaker && *commit->left)
        preemption_overtake(h, weaker, commit->left);
    return !*weaker;
}

/* From commit->leaf on. False: cut. */
static bool slot_commit(struct commit *commit, uint32_t s)
{
    struct hived *h = commit->h;
    struct group *group = commit->group;
    const struct hived_slot *slot = &commit->placement->slots[s];
    uint32_t node = NONE;
    if (s + SLOTS_AHEAD < group->slot_count && slot[SLOTS_AHEAD].hints)
        leaves_fetch(h, slot[SLOTS_AHEAD].hints, slot[SLOTS_AHEAD].leaf_count);
    for (uint32_t k = commit->leaf; k < slot->leaf_count; k++) {
        uint32_t i = group->slot_leaf[s] + k;
        uint32_t physical = leaf_find(h, slot, k, commit->chain, &node);
        commit->leaf = k;
        if (physical != NONE && !leaf_overtake(commit, physical))
            return false;
        /* of two groups recovered on one device the first one keeps it until its end */
        bool is_taken = physical != NONE && h->cells[physical].using != NONE;
        commit->must_downgrade |= is_taken;
        if (physical == NONE || is_taken)
            leaf_lose(h, group, i, slot, k);
        else if (!leaf_commit(commit, i, physical, slot->preassigned ? slot->preassigned[k] : NULL))
            return false;
    }
    commit->leaf = 0;
    return true;
}

/* From slot `at` on, of about so many leaves; returns the slot whose turn is next. */
static uint32_t slots_commit(struct commit *commit, uint32_t at, uint32_t *leaves)
{
    const struct group *group = commit->group;
    assert(at < group->slot_count);
    while (at < group->slot_count && *leaves && slot_commit(commit, at)) {
        const uint32_t count = group->slot_leaf[at + 1] - group->slot_leaf[at];
        *leaves -= count < *leaves ? count : *leaves;
        at++;
    }
    return at;
}

/* Its pods run on the leaf: opportunistically from now on, or until the reserver has ended them. */
static void leaf_regain(struct hived *h, uint32_t index, uint32_t lost, uint32_t physical)
{
    struct group *group = h->groups[index];
    if (group->has_virtual)
        group_downgrade(h, index, group->name);
    group->physical[group->lost[lost].leaf] = physical;
    mem_free(group->lost[lost].node);
    mem_free(group->lost[lost].type);
    group->lost[lost] = group->lost[--group->lost_count];
    h->lost_count--;
    h->cells[physical].using = index;
    group_changed(h, index);
    if (h->rests[physical].reserving != NONE) {
        group->state = HIVED_GROUP_BEING_PREEMPTED;
        cell_state_set(h, physical, HIVED_CELL_RESERVING);
    } else {
        leaf_allocate(h, physical, NONE, HIVED_PRIORITY_OPPO, group->vc);
        cell_state_set(h, physical, HIVED_CELL_USED);
    }
}

void leaf_pass_on(struct hived *h, uint32_t physical)
{
    const struct cell_rest *rest = &h->rests[physical];
    assert(h->cells[physical].using == NONE);
    for (uint32_t i = 0; i < h->group_count; i++)
        for (uint32_t k = 0; h->groups[i] && k < h->groups[i]->lost_count; k++) {
            const struct lost_leaf *lost = &h->groups[i]->lost[k];
            if (lost->index == rest->index && !strcmp(lost->node, h->nodes[rest->node].name) &&
                device_find(h, rest->node, lost->index, chain_named(h, h->groups[i]->chain_name)) ==
                    physical) {
                leaf_regain(h, i, k, physical);
                return;
            }
        }
}

static int commit_check(struct hived *h, const struct hived_request *request,
                        const struct hived_placement *placement, struct err *err)
{
    int code = request_check(request, err);
    if (code)
        return code;
    if (placement->slot_count < 1 || placement->slot_count > HIVED_GANG_PODS_MAX)
        return err_fail(err, ERR_INVALID, "", "a placement has 1 to %d pods", HIVED_GANG_PODS_MAX);
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < placement->slot_count; i++) {
        if (placement->slots[i].leaf_count < 1)
            return err_fail(err, ERR_INVALID, "", "a pod has at least one leaf");
        leaves += placement->slots[i].leaf_count;
    }
    if (leaves > HIVED_LEAVES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "a gang has at most %d leaves", HIVED_LEAVES_MAX);
    (void)h;
    return 0;
}

static struct commit commit_of(struct hived *h, const struct hived_request *request,
                               const struct hived_placement *placement)
{
    const uint32_t vc = text_map_get(&h->vc_index, text_of(request->virtual_cluster));
    struct commit commit = {.h = h,
                            .request = request,
                            .placement = placement,
                            .vc = vc == MAP_NONE ? NONE : vc,
                            .pin_root = NONE,
                            .chain = chain_named(h, placement->chain)};
    if (!request->pinned_cell || !*request->pinned_cell)
        return commit;
    commit.must_downgrade = true; /* unless the pin is still there */
    for (uint32_t i = 0; i < h->pin_count; i++) {
        if (h->pins[i].vc == commit.vc && !strcmp(h->pins[i].id, request->pinned_cell)) {
            commit.pin_root = h->pins[i].root;
            commit.must_downgrade = false;
        }
    }
    return commit;
}

/* It has no leaves yet. */
static void group_begin(struct commit *commit)
{
    struct hived *h = commit->h;
    const struct hived_request *request = commit->request;
    const struct hived_placement *placement = commit->placement;
    struct group like = {.name = (char *)(uintptr_t)request->group,
                         .vc = commit->vc,
                         .vc_name = (char *)(uintptr_t)request->virtual_cluster,
                         .priority = request->priority,
                         .state = HIVED_GROUP_ALLOCATED,
                         .is_lazy = request->is_lazy,
                         .uses_suggested = request->uses_suggested,
                         .slot_count = placement->slot_count,
                         .chain_name =
                             (char *)(uintptr_t)(placement->chain ? placement->chain : "")};
    if (request->pinned_cell && *request->pinned_cell)
        like.pin = (char *)(uintptr_t)request->pinned_cell;
    uint32_t few[16] = {0}, *sizes = few;
    if (placement->slot_count > 16)
        sizes = mem_alloc(mem_size(placement->slot_count, sizeof *sizes));
    for (uint32_t i = 0; i < placement->slot_count; i++)
        sizes[i] = placement->slots[i].leaf_count;
    commit->index = gang_add(h, &like, sizes);
    if (sizes != few)
        mem_free(sizes);
    commit->group = h->groups[commit->index];
}

/* It has all of its leaves. True: it must be downgraded. */
static bool group_conclude(struct commit *commit)
{
    struct group *group = commit->group;
    for (uint32_t i = 0; i < group->leaf_count && !group->has_virtual; i++)
        group->has_virtual = group->virtual[i] != NONE;
    commit->must_downgrade |= commit->has_oppo && group->has_virtual;
    return commit->must_downgrade && group->priority >= HIVED_PRIORITY_MIN;
}

static void group_create(struct hived *h, const struct hived_request *request,
                         const struct hived_placement *placement)
{
    struct commit commit = commit_of(h, request, placement);
    group_begin(&commit);
    uint32_t all = UINT32_MAX;
    slots_commit(&commit, 0, &all);
    if (group_conclude(&commit))
        group_downgrade(h, commit.index, commit.group->name);
}

/* Leaves that were reserved for it become its own. */
static void preempting_take(struct hived *h, uint32_t index, uint32_t first, uint32_t end)
{
    struct group *group = h->groups[index];
    assert(group->reserved == group->leaf_count && end <= group->leaf_count);
    for (uint32_t i = first; i < end; i++) {
        struct cell *leaf = &h->cells[group->physical[i]];
        assert(rest_of(h, leaf)->reserving == index && leaf->using == NONE);
        rest_of(h, leaf)->reserving = NONE;
        leaf->using = index;
        cell_state_set(h, group->physical[i], HIVED_CELL_USED);
    }
}

/* All of them have. */
static void preempting_end(struct hived *h, uint32_t index)
{
    struct group *group = h->groups[index];
    for (uint32_t i = 0; i < group->preempting_count; i++)
        mem_free(group->preempting[i]);
    group->preempting_count = 0;
    group->state = HIVED_GROUP_ALLOCATED;
    group_changed(h, index);
}

static bool preempting_has_victims(const struct hived *h, const struct group *group)
{
    assert(group->bound_count <= group->slot_count);
    for (uint32_t i = 0; i < group->leaf_count; i++)
        if (h->cells[group->physical[i]].using != NONE)
            return true;
    return false;
}

static bool slot_is_at(const struct hived *h, const struct group *group, uint32_t slot,
                       const struct hived_slot *place)
{
    assert(group->bound_count <= group->slot_count);
    uint32_t leaf = group->slot_leaf[slot], physical = group->physical[leaf];
    if (group->slot_leaf[slot + 1] - leaf != place->leaf_count)
        return false;
    if (physical != NONE) {
        const char *name = h->nodes[h->rests[physical].node].name;
        return h->rests[physical].index == place->indices[0] &&
               (name == place->node || !strcmp(name, place->node));
    }
    for (uint32_t i = 0; i < group->lost_count; i++)
        if (group->lost[i].leaf == leaf)
            return group->lost[i].index == place->indices[0] &&
                   !strcmp(group->lost[i].node, place->node);
    return false;
}

static int pod_bind(struct hived *h, struct group *group, const char *pod, uint32_t slot,
                    const struct hived_slot *place, struct err *err)
{
    assert(slot < group->slot_count || slot == NONE);
    if (slot >= group->slot_count || !slot_is_at(h, group, slot, place)) {
        for (slot = 0; slot < group->slot_count; slot++)
            if (slot_is_at(h, group, slot, place))
                break;
        if (slot == group->slot_count)
            return err_fail(err, ERR_INVALID, "", "the gang %s has no pod on node %s device %u",
                            group->name, place->node, place->indices[0]);
    }
    struct pod *bound = &group->pods[slot];
    pod_name_free(bound);
    pod_name_set(bound, pod);
    group->bound_count += !bound->is_bound;
    bound->is_bound = true;
    bound->had_virtual = group->has_virtual;
    bound->sequence = ++h->sequence;
    return 0;
}

/* The group is there, with its whole placement. */
static int group_ready(struct hived *h, const struct hived_request *request,
                       const struct hived_placement *placement, struct err *err)
{
    uint32_t index;
    struct group *group = gang_find(h, request->group, &index);
    if (!group) {
        group_create(h, request, placement);
        return 0;
    }
    if (group->state != HIVED_GROUP_PREEMPTING)
        return 0;
    if (preempting_has_victims(h, group))
        return err_fail(err, ERR_CONFLICT, "", "the victims of %s are still there", group->name);
    preempting_take(h, index, 0, group->leaf_count); /* the victims are gone */
    preempting_end(h, index);
    return 0;
}

static int commit_begin(struct hived *h, const struct hived_request *request,
                        const struct hived_placement *placement, int64_t now_ms, struct err *err)
{
    assert(!h->origin && !h->committing.is_on);
    int code = commit_check(h, request, placement, err);
    if (code)
        return code;
    h->now_ms = now_ms;
    dooms_hold(h); /* what the decision set free is the group's */
    hived_search_end(h);
    group_pending_settle(h, h->pending_group && !strcmp(h->pending_group, request->group));
    code = group_ready(h, request, placement, err);
    dooms_let(h);
    return code;
}

int hived_commit(struct hived *h, const struct hived_ask *ask,
                 const struct hived_placement *placement, uint32_t slot, struct err *err)
{
    if (slot >= placement->slot_count)
        return err_fail(err, ERR_INVALID, "", "the placement has no pod %u", slot);
    uint32_t index;
    int code = commit_begin(h, ask->request, placement, ask->now_ms, err);
    if (code)
        return code;
    struct group *group = gang_find(h, ask->request->group, &index);
    group_changed(h, index);
    return pod_bind(h, group, ask->pod, slot, &placement->slots[slot], err);
}

int hived_commit_gang(struct hived *h, const struct hived_request *request,
                      const struct hived_placement *placement, int64_t now_ms, struct err *err)
{
    int code = commit_begin(h, request, placement, now_ms, err);
    if (code)
        return code;
    uint32_t index;
    struct group *group = gang_find(h, request->group, &index);
    group_changed(h, index);
    for (uint32_t i = 0; i < placement->slot_count && !code; i++)
        code = pod_bind(h, group, NULL, i, &placement->slots[i], err);
    return code;
}

/* --- in pieces: docs/rfc/0016-gangs-in-steps.md, "One large part" --- */

/* As in commit_begin, nothing becomes a doomed cell until the group is whole. */
static void committing_begin(struct commit *commit)
{
    struct hived *h = commit->h;
    group_begin(commit);
    dooms_hold(h);
    h->committing = (struct committing){
        .is_on = true, .group = commit->index, .must_downgrade = commit->must_downgrade};
}

/* Until its last leaf is its own it still preempts. */
static int committing_join(struct commit *commit, struct err *err)
{
    struct hived *h = commit->h;
    if (preempting_has_victims(h, commit->group))
        return err_fail(err, ERR_CONFLICT, "", "the victims of %s are still there",
                        commit->group->name);
    dooms_hold(h);
    h->committing =
        (struct committing){.is_on = true, .group = commit->index, .was_preempting = true};
    return 0;
}

static void committing_reserved(struct commit *commit, uint32_t *leaves)
{
    struct committing *committing = &commit->h->committing;
    const struct group *group = commit->group;
    const uint32_t first = group->slot_leaf[committing->slots];
    while (committing->slots < group->slot_count &&
           group->slot_leaf[committing->slots] - first < *leaves)
        committing->slots++;
    const uint32_t end = group->slot_leaf[committing->slots];
    preempting_take(commit->h, commit->index, first, end);
    *leaves -= end - first < *leaves ? end - first : *leaves;
    if (committing->slots < group->slot_count)
        return;
    preempting_end(commit->h, commit->index);
    dooms_let(commit->h);
}

/* Some leaves of a group that has all of them, but more than it is guaranteed. */
static void committing_downgrade(struct commit *commit, uint32_t *leaves)
{
    struct committing *committing = &commit->h->committing;
    struct group *group = commit->group;
    const uint32_t first = committing->downgraded, left = group->leaf_count - first,
                   count = left < *leaves ? left : *leaves;
    group_leaves_downgrade(commit->h, group, first, first + count);
    committing->downgraded += count;
    commit->h->work_beside += count;
    *leaves -= count;
    if (committing->downgraded < group->leaf_count)
        return;
    group_downgrade_end(commit->h, commit->index, group->name);
    committing->is_downgrading = false;
    dooms_let(commit->h);
}

/* Of the slots that have no leaves yet; then the group is allocated, but for its pods. */
static void committing_slots(struct commit *commit, uint32_t *leaves)
{
    struct committing *committing = &commit->h->committing;
    const struct group *group = commit->group;
    commit->must_downgrade = committing->must_downgrade;
    commit->has_oppo = committing->has_oppo;
    commit->leaf = committing->leaf;
    commit->clearing = committing->clearing;
    commit->left = leaves;
    committing->slots = slots_commit(commit, committing->slots, leaves);
    committing->leaf = commit->leaf;
    committing->clearing = commit->clearing;
    committing->must_downgrade = commit->must_downgrade;
    committing->has_oppo = commit->has_oppo;
    if (committing->slots < group->slot_count)
        return;
    committing->is_downgrading = group_conclude(commit);
    if (!committing->is_downgrading)
        dooms_let(commit->h);
}

static int committing_pods(struct commit *commit, uint32_t pods, struct err *err)
{
    struct committing *committing = &commit->h->committing;
    struct group *group = commit->group;
    int code = 0;
    for (; pods > 0 && committing->pods < group->slot_count && !code; pods--) {
        const uint32_t slot = committing->pods++;
        code = pod_bind(commit->h, group, NULL, slot, &commit->placement->slots[slot], err);
    }
    return code;
}

int hived_commit_some(struct hived *h, const struct hived_request *request,
                      const struct hived_placement *placement, int64_t now_ms, uint32_t leaves,
                      bool *is_whole, struct err *err)
{
    struct committing *committing = &h->committing;
    uint32_t index;
    assert(!h->origin && leaves > 0);
    *is_whole = false;
    const bool is_first = !committing->is_on;
    struct group *group = gang_find(h, request->group, &index);
    const bool preempts = group && group->state == HIVED_GROUP_PREEMPTING;
    if (!committing->is_on && ((group && !preempts) || h->holds_for_commit)) {
        *is_whole = true;
        return hived_commit_gang(h, request, placement, now_ms, err);
    }
    int code = committing->is_on ? 0 : commit_check(h, request, placement, err);
    if (code)
        return code;
    hived_search_end(h);
    dooms_hold(h); /* what the decision set free is the group's */
    group_pending_settle(h, h->pending_group && !strcmp(h->pending_group, request->group));
    h->now_ms = now_ms;
    struct commit commit = commit_of(h, request, placement);
    if (!committing->is_on) {
        commit.index = index;
        commit.group = group;
        if (!group)
            committing_begin(&commit);
        else
            code = committing_join(&commit, err);
    }
    dooms_let(h);
    if (code)
        return code;
    if (is_first) {
        if (commit.group->leaf_count > leaves) /* to make it large is a piece by itself */
            return 0;
    }
    commit.index = committing->group;
    commit.group = h->groups[commit.index];
    assert(!strcmp(commit.group->name, request->group));
    group_changed(h, commit.index);
    if (committing->slots < commit.group->slot_count && committing->was_preempting)
        committing_reserved(&commit, &leaves);
    else if (committing->slots < commit.group->slot_count)
        committing_slots(&commit, &leaves);
    const bool has_leaves = committing->slots == commit.group->slot_count;
    if (has_leaves && committing->is_downgrading)
        committing_downgrade(&commit, &leaves);
    if (has_leaves && !committing->is_downgrading)
        code = committing_pods(&commit, leaves, err);
    *is_whole = committing->pods == commit.group->slot_count;
    committing->is_on = !*is_whole;
    return code;
}

/* So many leaves of its own are reserved for it again, the last ones first. True: all are. */
static bool preempting_reserve(struct hived *h, uint32_t index, uint32_t leaves)
{
    struct group *group = h->groups[index];
    const uint32_t end = leaves < group->taken ? group->taken - leaves : 0;
    assert(group->state == HIVED_GROUP_PREEMPTING && !group->ended);
    while (group->taken > end) {
        const uint32_t physical = group->physical[--group->taken];
        struct cell *leaf = &h->cells[physical];
        assert(leaf->using == index);
        leaf->using = NONE;
        rest_of(h, leaf)->reserving = index;
        cell_state_set(h, physical, HIVED_CELL_RESERVED);
    }
    group_changed(h, index);
    return !group->taken;
}

/* It preempts again; all of its leaves are still its own. */
static void preempting_return(struct group *group)
{
    assert(group->state == HIVED_GROUP_ALLOCATED);
    for (uint32_t i = 0; i < group->slot_count; i++) {
        pod_name_free(&group->pods[i]);
        group->pods[i].is_bound = false;
    }
    group->bound_count = group->spare_hint = 0;
    group->state = HIVED_GROUP_PREEMPTING;
    group->taken = group->leaf_count;
}

/* The group ends, or is given up: what it has so far can be given back. */
static void committing_forget(struct hived *h, uint32_t index)
{
    struct committing *committing = &h->committing;
    if (!committing->is_on || committing->group != index)
        return;
    committing->is_on = false;
    struct group *group = h->groups[index];
    if (committing->slots == group->slot_count && !committing->is_downgrading)
        return;
    if (committing->was_preempting)
        group->taken = group->slot_leaf[committing->slots];
    dooms_let(h);
}

bool hived_commit_undo(struct hived *h, const char *name, const char *pod, uint32_t leaves)
{
    uint32_t index;
    hived_search_end(h);
    group_pending_settle(h, false);
    struct group *group = gang_find(h, name, &index);
    assert(group && group->reserved == group->leaf_count && !group->lost_count);
    committing_forget(h, index);
    if (group->state == HIVED_GROUP_ALLOCATED)
        preempting_return(group);
    preempting_add(group, pod);
    return preempting_reserve(h, index, leaves);
}

/* --- ends --- */

static void pod_unbind(struct hived *h, uint32_t index, uint32_t slot)
{
    assert(index < h->group_count && h->groups[index]);
    struct group *group = h->groups[index];
    struct pod *pod = &group->pods[slot];
    pod_name_free(pod);
    pod->is_bound = false;
    group_changed(h, index);
    if (slot < group->spare_hint)
        group->spare_hint = slot;
    if (--group->bound_count == 0)
        group_release(h, index, UINT32_MAX);
}

bool hived_pod_end(struct hived *h, const char *name, uint32_t slot)
{
    assert(!h->committing.is_on);
    hived_search_end(h);
    group_pending_settle(h, false);
    uint32_t index;
    struct group *group = gang_find(h, name, &index);
    if (!group || slot >= group->slot_count || !group->pods[slot].is_bound)
        return false;
    pod_unbind(h, index, slot);
    return true;
}

bool hived_group_end_some(struct hived *h, const char *name, uint32_t leaves)
{
    hived_search_end(h);
    group_pending_settle(h, false);
    uint32_t index;
    struct group *group = gang_find(h, name, &index);
    if (!group)
        return true;
    committing_forget(h, index);
    if (group->state == HIVED_GROUP_PREEMPTING)
        return preemption_undo_some(h, index, leaves);
    return group_release(h, index, leaves);
}

void hived_group_end(struct hived *h, const char *name)
{
    hived_group_end_some(h, name, UINT32_MAX);
}

bool hived_pod_cancel(struct hived *h, const char *name, const char *pod, uint32_t leaves)
{
    uint32_t index;
    struct group *group = gang_find(h, name, &index);
    if (!group || group->state != HIVED_GROUP_PREEMPTING)
        return true;
    hived_search_end(h);
    group_pending_settle(h, false);
    committing_forget(h, index);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group->preempting_count; i++) {
        if (!strcmp(group->preempting[i], pod))
            mem_free(group->preempting[i]);
        else
            group->preempting[kept++] = group->preempting[i];
    }
    bool is_changed = kept != group->preempting_count;
    group->preempting_count = kept;
    group_changed(h, index);
    return !is_changed || kept || preemption_undo_some(h, index, leaves);
}

bool hived_node_set(struct hived *h, const char *name, bool is_healthy)
{
    assert(!h->committing.is_on);
    hived_search_end(h);
    group_pending_settle(h, false);
    uint32_t node = text_map_get(&h->node_index, text_of(name));
    if (node == MAP_NONE)
        return false;
    node_bad_set(h, node, !is_healthy);
    return true;
}
