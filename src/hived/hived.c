/* hived.c — the whole: made, freed, reconfigured; small questions answered. */
#include "hived/hived.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct hived *begin_with(struct hived_config *config, const struct habits *habits,
                                bool is_in_pieces)
{
    struct hived *h = mem_zero(1, sizeof *h);
    h->config = config;
    h->habits = habits;
    hived_build_begin(h, is_in_pieces);
    return h;
}

struct hived *hived_new_with(struct hived_config *config, const struct habits *habits)
{
    struct hived *h = begin_with(config, habits, false);
    hived_build_some(h, UINT32_MAX);
    return h;
}

static const struct habits no_habits = {0};

struct hived *hived_begin(struct hived_config *config)
{
    return begin_with(config, &no_habits, true);
}

struct hived *hived_new(struct hived_config *config)
{
    return hived_new_with(config, &no_habits);
}

static void scratch_free(struct hived *h)
{
    for (uint32_t i = 0; i < h->pending_count; i++)
        mem_free(h->pending[i].virtual);
    mem_free(h->pending);
    mem_free(h->pending_group);
    mem_free(h->demotion.preemptor);
    mem_free(h->journal);
    cell_list_release(&h->group_gaps);
    text_map_release(&h->group_index);
}

void hived_free(struct hived *h)
{
    if (!h)
        return;
    group_copy_drop(h);
    groups_free(h);
    scratch_free(h);
    hived_unbuild(h);
    hived_config_free(h->config);
    mem_free(h);
}

enum { CELLS_FREED = 1 << 14 };

#define SHRINK(table, count) ((table) = mem_realloc((table), mem_size((count), sizeof *(table))))

/* The last ones in the tables of cells: to take back the pages of all would be a long step, of the
 * kernel's. Then the configuration. False: little is left. */
static bool cells_free_some(struct hived *h)
{
    if (h->cell_count <= CELLS_FREED) {
        const bool was_there = h->config != NULL;
        hived_config_free(h->config);
        h->config = NULL;
        return was_there;
    }
    h->cell_count -= CELLS_FREED;
    SHRINK(h->cells, h->cell_count);
    SHRINK(h->rests, h->cell_count);
    SHRINK(h->addresses, h->cell_count);
    SHRINK(h->priority, h->cell_count);
    SHRINK(h->taken, h->cell_count);
    SHRINK(h->scratch, h->cell_count);
    return true;
}

bool hived_free_some(struct hived *h, uint32_t *count)
{
    assert(h->build.stage == BUILD_WHOLE);
    const uint32_t groups = groups_free_some(h, *count);
    *count -= groups;
    for (; *count > 0 && h->node_count > 0; --*count)
        cell_list_release(&h->nodes[--h->node_count].leaves);
    if (h->group_count > 0 || h->node_count > 0 || cells_free_some(h))
        return false;
    hived_free(h);
    return true;
}

const struct hived_config *hived_config_of(const struct hived *h)
{
    return h->config;
}

/* --- reconfiguration --- */

struct rebind { /* a live pod, in the order of binding */
    uint64_t sequence;
    uint32_t group, slot;
};

static int rebind_compare(const void *a, const void *b)
{
    const struct rebind *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static struct rebind *rebinds_list(const struct hived *h, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < h->group_count; i++)
        if (h->groups[i] && h->groups[i]->state != HIVED_GROUP_PREEMPTING)
            *count += h->groups[i]->bound_count;
    struct rebind *list = mem_alloc(mem_size(*count + 1u, sizeof *list));
    uint32_t at = 0;
    for (uint32_t i = 0; i < h->group_count; i++) {
        const struct group *group = h->groups[i];
        if (!group || group->state == HIVED_GROUP_PREEMPTING)
            continue;
        for (uint32_t k = 0; k < group->slot_count; k++)
            if (group->pods[k].is_bound)
                list[at++] = (struct rebind){group->pods[k].sequence, i, k};
    }
    qsort(list, *count, sizeof *list, rebind_compare);
    return list;
}

/* What a pod's annotation would have said: the whole gang's placement when the pod was bound. */
static void placement_remember(const struct hived *old, const struct group *group, uint32_t slot,
                               struct arena *arena, struct hived_placement *placement)
{
    assert(slot < group->slot_count);
    placement->chain = group->chain_name;
    placement->slot_count = group->slot_count;
    placement->slots = ARENA_ARRAY(arena, struct hived_slot, group->slot_count);
    for (uint32_t s = 0; s < group->slot_count; s++) {
        uint32_t first = group->slot_leaf[s], count = group->slot_leaf[s + 1] - first;
        uint16_t *indices = ARENA_ARRAY(arena, uint16_t, count);
        const char **types = ARENA_ARRAY(arena, const char *, count);
        struct hived_slot *place = &placement->slots[s];
        *place = (struct hived_slot){
            .node = "", .leaf_count = count, .indices = indices, .preassigned = types};
        for (uint32_t k = 0; k < count; k++) {
            uint32_t physical = group->physical[first + k], type = group->types[first + k];
            bool is_given = group->pods[slot].had_virtual && type != NONE;
            types[k] = is_given ? old->config->types[type].name : "";
            if (physical == NONE)
                continue;
            place->node = old->nodes[old->rests[physical].node].name;
            indices[k] = (uint16_t)old->rests[physical].index;
        }
    }
    for (uint32_t i = 0; i < group->lost_count; i++) {
        uint32_t s = 0;
        while (group->slot_leaf[s + 1] <= group->lost[i].leaf)
            s++;
        placement->slots[s].node = group->lost[i].node;
        if (group->pods[slot].had_virtual && group->lost[i].type)
            ((const char **)(uintptr_t)placement->slots[s]
                 .preassigned)[group->lost[i].leaf - group->slot_leaf[s]] = group->lost[i].type;
        ((uint16_t *)(uintptr_t)placement->slots[s]
             .indices)[group->lost[i].leaf - group->slot_leaf[s]] = group->lost[i].index;
    }
}

static void group_recover(struct hived *h, const struct hived *old, const struct rebind *rebind,
                          struct arena *arena)
{
    const struct group *group = old->groups[rebind->group];
    struct hived_member *members = ARENA_ARRAY(arena, struct hived_member, 1);
    *members = (struct hived_member){.pods = 1, .leaves = 1};
    struct hived_request request = {.group = group->name,
                                    .virtual_cluster = group->vc_name,
                                    .priority = group->priority,
                                    .pinned_cell = group->pin,
                                    .is_lazy = group->is_lazy,
                                    .uses_suggested = group->uses_suggested,
                                    .members = members,
                                    .member_count = 1};
    struct hived_placement placement;
    placement_remember(old, group, rebind->slot, arena, &placement);
    struct hived_ask ask = {
        .request = &request, .pod = group->pods[rebind->slot].name, .now_ms = h->now_ms};
    int code = hived_commit(h, &ask, &placement, rebind->slot, NULL);
    assert(code == 0);
    (void)code;
}

static void groups_recover(struct hived *h, const struct hived *old)
{
    uint32_t count;
    struct rebind *list = rebinds_list(old, &count);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        struct group *known = gang_find(h, old->groups[list[i].group]->name, &index);
        if (known) { /* its first pod brought the whole placement */
            struct pod *pod = &known->pods[list[i].slot];
            const struct pod *was = &old->groups[list[i].group]->pods[list[i].slot];
            *pod = (struct pod){
                .sequence = ++h->sequence, .is_bound = true, .had_virtual = was->had_virtual};
            pod_name_set(pod, was->name);
            known->bound_count++;
            continue;
        }
        arena_clear(&arena);
        group_recover(h, old, &list[i], &arena);
        h->groups[text_map_get(&h->group_index, text_of(old->groups[list[i].group]->name))]
            ->pods[list[i].slot]
            .had_virtual = old->groups[list[i].group]->pods[list[i].slot].had_virtual;
    }
    mem_free(list);
}

void hived_adopt(struct hived *h, struct hived *built)
{
    assert(built->build.stage == BUILD_WHOLE && !built->group_count);
    assert(!h->committing.is_on);
    hived_search_end(h);
    group_pending_settle(h, false);
    struct hived old = *h;
    *h = *built;
    mem_free(built);
    h->sequence = old.sequence;
    h->now_ms = old.now_ms;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    bool *is_bad = ARENA_ARRAY(&arena, bool, h->node_count + 1u);
    for (uint32_t i = 0; i < h->node_count; i++) { /* what runs there finds its cells */
        is_bad[i] = h->nodes[i].is_bad;
        node_bad_set(h, i, false);
    }
    groups_recover(h, &old);
    for (uint32_t i = 0; i < h->node_count; i++)
        node_bad_set(h, i, is_bad[i]);
    groups_free(&old);
    scratch_free(&old);
    hived_unbuild(&old);
    hived_config_free(old.config);
}

void hived_reconfigure(struct hived *h, struct hived_config *config)
{
    struct hived *built = hived_new_with(config, h->habits);
    for (uint32_t i = 0; i < built->node_count; i++) {
        uint32_t was = text_map_get(&h->node_index, text_of(built->nodes[i].name));
        node_bad_set(built, i, was == MAP_NONE || h->nodes[was].is_bad);
    }
    hived_adopt(h, built);
}

bool hived_has_room(const struct hived *h, uint32_t leaves)
{
    return h->cell_count + 4 * (uint64_t)leaves + 4 * HIVED_LEVELS_MAX < h->cell_room;
}

/* --- questions --- */

static bool leaf_is_type(const struct hived *h, const struct cell *leaf, const char *type)
{
    return !strcmp(h->config->types[h->chains[leaf->chain].leaf_type].name, type);
}

uint32_t hived_leaf_type_count(const struct hived *h)
{
    return h->leaf_type_count;
}

const char *hived_leaf_type_name(const struct hived *h, uint32_t index)
{
    return h->config->types[h->leaf_types[index]].name;
}

uint32_t hived_node_highest(const struct hived *h, const char *name, const char *leaf_type)
{
    uint32_t index = text_map_get(&h->node_index, text_of(name)), highest = NONE;
    for (size_t i = 0; index != MAP_NONE && i < h->nodes[index].leaves.count; i++) {
        const struct cell *leaf = &h->cells[h->nodes[index].leaves.items[i]];
        if (leaf_is_type(h, leaf, leaf_type) &&
            (highest == NONE || rest_of(h, leaf)->index > highest))
            highest = rest_of(h, leaf)->index;
    }
    return highest;
}

uint32_t hived_node_free(const struct hived *h, const char *name, const char *leaf_type,
                         uint16_t *indices, uint32_t room)
{
    uint32_t index = text_map_get(&h->node_index, text_of(name)), count = 0;
    for (size_t i = 0; index != MAP_NONE && i < h->nodes[index].leaves.count; i++) {
        const struct cell *leaf = &h->cells[h->nodes[index].leaves.items[i]];
        if (leaf->state != HIVED_CELL_FREE || !leaf_is_type(h, leaf, leaf_type))
            continue;
        if (count < room)
            indices[count] = (uint16_t)rest_of(h, leaf)->index;
        count++;
    }
    return count;
}

/* NONE: nobody's alone. */
static uint32_t leaf_owner(const struct hived *h, uint32_t leaf)
{
    uint32_t cell = leaf;
    while (cell != NONE && !h->cells[cell].is_pinned)
        cell = h->cells[cell].parent;
    for (uint32_t i = 0; cell != NONE && i < h->pin_count; i++)
        if (h->pins[i].cell == cell)
            return h->pins[i].vc;
    const struct cell_list *vcs = &h->chains[h->cells[leaf].chain].vcs;
    return cell == NONE && vcs->count == 1 ? vcs->items[0] : NONE;
}

const char *hived_node_owner(const struct hived *h, const char *name)
{
    const uint32_t index = text_map_get(&h->node_index, text_of(name));
    uint32_t owner = NONE;
    for (size_t i = 0; index != MAP_NONE && i < h->nodes[index].leaves.count; i++) {
        const uint32_t vc = leaf_owner(h, h->nodes[index].leaves.items[i]);
        if (vc == NONE || (owner != NONE && vc != owner))
            return NULL;
        owner = vc;
    }
    return owner == NONE ? NULL : h->vcs[owner].name;
}

const char *hived_node_chain(const struct hived *h, const char *name, const char *leaf_type,
                             uint32_t device, bool *is_free)
{
    uint32_t index = text_map_get(&h->node_index, text_of(name));
    *is_free = false;
    for (size_t i = 0; index != MAP_NONE && i < h->nodes[index].leaves.count; i++) {
        const struct cell *leaf = &h->cells[h->nodes[index].leaves.items[i]];
        if (rest_of(h, leaf)->index != device || !leaf_is_type(h, leaf, leaf_type))
            continue;
        *is_free = leaf->state == HIVED_CELL_FREE;
        return h->chains[leaf->chain].name;
    }
    return NULL;
}

bool hived_group_find(struct hived *h, const char *name, struct hived_group_view *view)
{
    if (!h->is_displacing)
        group_pending_settle(h, false);
    uint32_t index;
    const struct group *group = gang_find(h, name, &index);
    if (!group)
        return false;
    *view = (struct hived_group_view){.state = (enum hived_group_state)group->state,
                                      .vc = group->vc_name,
                                      .priority = group->priority,
                                      .is_lazy_preempted = group->is_downgraded,
                                      .has_virtual = group->has_virtual,
                                      .preemptor = group->preemptor,
                                      .slot_count = group->slot_count,
                                      .leaf_type = ""};
    for (uint32_t i = 0; i < h->chain_count; i++)
        if (!strcmp(h->chains[i].name, group->chain_name))
            view->leaf_type = h->config->types[h->chains[i].leaf_type].name;
    return true;
}

uint64_t hived_work_beside(const struct hived *h)
{
    return h->work_beside;
}

bool hived_is_pending(const struct hived *h)
{
    return h->pending_count > 0 || h->holds_for_commit;
}

bool hived_is_displacing(const struct hived *h)
{
    return h->is_displacing;
}

void hived_search_forget(struct hived *h)
{
    hived_search_end(h);
    if (!h->is_displacing)
        group_pending_settle(h, false);
}

bool hived_return_some(struct hived *h, uint32_t leaves)
{
    assert(leaves > 0 && !h->committing.is_on);
    hived_search_end(h);
    return group_pending_return(h, &leaves);
}

uint32_t hived_group_slot(struct hived *h, const char *name, uint32_t slot, const char **node,
                          uint16_t *indices, uint32_t room)
{
    uint32_t index, count = 0;
    const struct group *group = gang_find(h, name, &index);
    *node = NULL;
    if (!group || slot >= group->slot_count)
        return 0;
    for (uint32_t i = group->slot_leaf[slot]; i < group->slot_leaf[slot + 1]; i++) {
        if (group->physical[i] == NONE)
            continue;
        const struct cell *leaf = &h->cells[group->physical[i]];
        *node = h->nodes[rest_of(h, leaf)->node].name;
        if (count < room)
            indices[count] = (uint16_t)rest_of(h, leaf)->index;
        count++;
    }
    return count;
}

struct cell_list oppo_leaves(const struct hived *h, uint32_t vc)
{
    assert(vc < h->vc_count);
    struct cell_list list = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->chain_count; i++)
        count += h->quotas[(size_t)vc * h->chain_count + i].oppo;
    for (uint32_t i = 0; i < h->node_count && list.count < count; i++) {
        const struct cell_list *leaves = &h->nodes[i].leaves;
        for (size_t k = 0; k < leaves->count; k++)
            if (h->rests[leaves->items[k]].oppo_vc == vc)
                cell_list_add(&list, leaves->items[k]);
    }
    return list;
}

uint32_t hived_vc_count(const struct hived *h)
{
    return h->vc_count;
}

const char *hived_vc_name(const struct hived *h, uint32_t vc)
{
    return h->vcs[vc].name;
}

static uint32_t quota_bad(const struct hived *h, const struct cell *root)
{
    assert(root->is_virtual);
    if (root->bound == NONE || !h->cells[root->bound].is_bad)
        return 0;
    uint32_t first = first_leaf(h, root->bound), bad = 0;
    uint32_t count = h->chains[root->chain].levels[root->level].leaf_count;
    for (uint32_t i = first; i < first + count; i++)
        bad += h->cells[i].is_bad;
    return bad;
}

struct hived_quota *hived_vc_quota(const struct hived *h, uint32_t vc, struct arena *arena,
                                   uint32_t *count)
{
    assert(vc < h->vc_count);
    const struct hived_config *config = h->config;
    struct hived_quota *all = ARENA_ARRAY(arena, struct hived_quota, config->type_count + 1u);
    uint32_t *places = ARENA_ARRAY(arena, uint32_t, config->type_count + 1u);
    *count = 0;
    memset(places, 0xff, config->type_count * sizeof *places);
    for (uint32_t i = 0; i < h->chain_count; i++) {
        if (places[h->chains[i].leaf_type] != NONE)
            continue;
        places[h->chains[i].leaf_type] = *count;
        all[(*count)++].leaf_type = config->types[h->chains[i].leaf_type].name;
    }
    for (size_t i = 0; i < h->vcs[vc].roots.count; i++) {
        const struct cell *root = &h->cells[h->vcs[vc].roots.items[i]];
        struct hived_quota *quota = &all[places[h->chains[root->chain].leaf_type]];
        quota->total += h->chains[root->chain].levels[root->level].leaf_count;
        quota->used += root->used;
        quota->bad += quota_bad(h, root);
    }
    for (uint32_t i = 0; i < h->chain_count; i++)
        all[places[h->chains[i].leaf_type]].oppo += h->quotas[(size_t)vc * h->chain_count + i].oppo;
    return all;
}
