/* mirror.c — a copy of what readers see, brought up to date by what has changed.
 *
 * HiveD notes the number of the last change for each chunk of cells and for each group; a mirror
 * has the numbers of what it shows. Where they differ, it copies. So the pieces need no memory of
 * how far they have come: each goes through the numbers, and the last one finds nothing more. What
 * only decisions read (free lists, views, quotas of levels) is not in a mirror.
 */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

enum { /* as much work as to copy so many cells */
       NODE_COST = 8,
       GROUP_COST = 32,
       NUMBERS_PER_COST = 16, /* of a group */
};

static void chains_begin(struct hived *m, const struct hived *h)
{
    m->chain_count = h->chain_count;
    m->chains = mem_zero(h->chain_count + 1u, sizeof *m->chains);
    m->leaf_type_count = h->leaf_type_count;
    m->leaf_types = mem_zero(h->chain_count + 1u, sizeof *m->leaf_types);
    memcpy(m->leaf_types, h->leaf_types, h->leaf_type_count * sizeof *m->leaf_types);
    for (uint32_t i = 0; i < h->chain_count; i++) {
        const struct chain *from = &h->chains[i];
        m->chains[i] = (struct chain){.type = from->type,
                                      .name = from->name,
                                      .leaf_type = from->leaf_type,
                                      .top = from->top,
                                      .node_level = from->node_level,
                                      .levels = mem_zero(from->top + 1u, sizeof *from->levels)};
        for (uint8_t at = 1; at <= from->top; at++)
            m->chains[i].levels[at] = (struct level){.type = from->levels[at].type,
                                                     .child_number = from->levels[at].child_number,
                                                     .leaf_count = from->levels[at].leaf_count};
    }
}

/* Nothing is in the tables yet: memory that is not touched costs nothing. */
struct hived *hived_mirror_new(const struct hived *h)
{
    assert(!h->origin && h->build.stage == BUILD_WHOLE);
    struct hived *m = mem_zero(1, sizeof *m);
    m->origin = h;
    m->config = h->config;
    hived_config_share(m->config);
    m->build = h->build;
    m->habits = h->habits;
    m->cell_room = h->cell_room;
    m->cells = mem_table_begin(h->cell_room, sizeof *m->cells);
    m->rests = mem_table_begin(h->cell_room, sizeof *m->rests);
    m->addresses = mem_alloc(mem_size(h->cell_room, sizeof *m->addresses));
    m->cell_changes = mem_zero(cell_chunks(h->cell_room), sizeof *m->cell_changes);
    m->built_nodes = h->built_nodes;
    m->built_cells = h->built_cells;
    arena_init(&m->names);
    chains_begin(m, h);
    m->vc_count = h->vc_count;
    m->vcs = mem_zero(h->vc_count + 1u, sizeof *m->vcs);
    for (uint32_t i = 0; i < h->vc_count; i++) {
        m->vcs[i].name = h->vcs[i].name;
        text_map_set(&m->vc_index, text_of(m->vcs[i].name), i);
    }
    m->quotas = mem_zero((size_t)h->vc_count * h->chain_count + 1, sizeof *m->quotas);
    return m;
}

bool hived_mirror_is_of(const struct hived *m, const struct hived *h)
{
    /* the mirror shares its configuration, so that no other one can have come to that place */
    return m->origin == h && m->config == h->config && m->cell_room == h->cell_room;
}

struct mirroring {
    struct hived *m;
    const struct hived *h;
    uint32_t left; /* of the work */
};

static bool is_used_up(struct mirroring *update, uint32_t cost)
{
    update->left -= cost < update->left ? cost : update->left;
    return update->left == 0;
}

/* --- nodes: there are more when one has joined, or has cells of another chain since --- */

static uint32_t node_mirror(struct hived *m, const struct hived *h, uint32_t i)
{
    const struct node *from = &h->nodes[i];
    const bool is_new = i == m->node_count;
    if (is_new) {
        if (m->node_count == m->node_room) {
            m->node_room = h->node_room;
            m->nodes = mem_realloc(m->nodes, mem_size(m->node_room, sizeof *m->nodes));
        }
        m->nodes[m->node_count++] = (struct node){
            .name = i < h->built_nodes ? from->name : arena_copy(&m->names, text_of(from->name))};
        text_map_set(&m->node_index, text_of(m->nodes[i].name), i);
    }
    struct cell_list *leaves = &m->nodes[i].leaves;
    for (size_t k = leaves->count; k < from->leaves.count; k++)
        cell_list_add(leaves, from->leaves.items[k]);
    return is_new ? NODE_COST : 1;
}

static bool nodes_update(struct mirroring *update)
{
    struct hived *m = update->m;
    if (m->joins != update->h->joins)
        m->nodes_seen = 0;
    m->joins = update->h->joins;
    while (m->nodes_seen < update->h->node_count) {
        const uint32_t cost = node_mirror(m, update->h, m->nodes_seen++);
        if (is_used_up(update, cost))
            return false;
    }
    return true;
}

/* --- cells --- */

static void chunk_mirror(struct hived *m, const struct hived *h, uint32_t first, uint32_t count)
{
    memcpy(&m->cells[first], &h->cells[first], count * sizeof *m->cells);
    memcpy(&m->rests[first], &h->rests[first], count * sizeof *m->rests);
    memcpy(&m->addresses[first], &h->addresses[first], count * sizeof *m->addresses);
    for (uint32_t i = first; i < first + count; i++) /* names that are not the configuration's */
        if (i >= h->built_cells && m->cells[i].parent == NONE && m->addresses[i])
            m->addresses[i] = m->nodes[m->rests[i].node].name;
}

static bool cells_update(struct mirroring *update)
{
    struct hived *m = update->m;
    const struct hived *h = update->h;
    assert(h->cell_count <= m->cell_room);
    m->cell_count = h->cell_count;
    for (uint32_t first = 0, at = 0; first < h->cell_count; first += CELLS_CHUNK, at++) {
        const uint32_t left = h->cell_count - first;
        if (m->cell_changes[at] == h->cell_changes[at])
            continue;
        chunk_mirror(m, h, first, left < CELLS_CHUNK ? left : CELLS_CHUNK);
        m->cell_changes[at] = h->cell_changes[at];
        if (is_used_up(update, CELLS_CHUNK))
            return false;
    }
    return true;
}

/* --- groups --- */

/* A name may have come to another place; a map keeps pointers to its keys. `group` may be NULL. */
static void group_put(struct hived *m, uint32_t i, struct group *group)
{
    struct group *old = m->groups[i];
    if (old && text_map_get(&m->group_index, text_of(old->name)) == i)
        text_map_remove(&m->group_index, text_of(old->name));
    if (old)
        group_free(m, old);
    m->groups[i] = group;
    if (!group)
        return;
    m->lost_count += group->lost_count;
    text_map_remove(&m->group_index, text_of(group->name));
    text_map_set(&m->group_index, text_of(group->name), i);
}

/* False: there is more of it, and no work left. One that has changed since is begun anew. */
static bool group_mirror(struct mirroring *update, uint32_t i)
{
    struct hived *m = update->m;
    struct group_copying *copying = &m->copying;
    const struct group *from = update->h->groups[i];
    const uint64_t change = update->h->group_changes[i];
    if (copying->group && (copying->index != i || copying->change != change))
        group_copy_drop(m);
    if (from && !copying->group) {
        group_copy_begin(m, from);
        copying->index = i;
        copying->change = change;
    }
    const uint32_t before = copying->numbers;
    const uint64_t numbers = (uint64_t)update->left * NUMBERS_PER_COST;
    if (from && !group_copy_some(m, from, numbers < UINT32_MAX ? (uint32_t)numbers : UINT32_MAX))
        return false;
    if (from)
        is_used_up(update, (copying->numbers - before) / NUMBERS_PER_COST);
    group_put(m, i, copying->group);
    copying->group = NULL;
    m->group_changes[i] = change;
    return true;
}

static void groups_reserve(struct hived *m, const struct hived *h)
{
    if (m->group_room != h->group_room) {
        m->group_room = h->group_room;
        m->groups = mem_realloc(m->groups, mem_size(m->group_room, sizeof *m->groups));
        m->group_changes =
            mem_realloc(m->group_changes, mem_size(m->group_room, sizeof *m->group_changes));
    }
    for (; m->group_count < h->group_count; m->group_count++) {
        m->groups[m->group_count] = NULL;
        m->group_changes[m->group_count] = 0;
    }
}

static bool groups_update(struct mirroring *update)
{
    struct hived *m = update->m;
    const struct hived *h = update->h;
    groups_reserve(m, h);
    for (uint32_t i = 0; i < h->group_count; i++) {
        if (m->group_changes[i] == h->group_changes[i])
            continue;
        if (!group_mirror(update, i) || is_used_up(update, GROUP_COST))
            return false;
    }
    return true;
}

/* --- what is left then is little --- */

static void roots_mirror(struct cell_list *list, const struct cell_list *from)
{
    for (size_t i = list->count; i < from->count; i++)
        cell_list_add(list, from->items[i]);
}

static void rest_mirror(struct hived *m, const struct hived *h)
{
    for (uint32_t i = 0; i < h->chain_count; i++)
        roots_mirror(&m->chains[i].tops, &h->chains[i].tops);
    for (uint32_t vc = 0; vc < h->vc_count; vc++) {
        roots_mirror(&m->vcs[vc].roots, &h->vcs[vc].roots);
        for (uint32_t i = 0; i < h->chain_count; i++)
            quota_of(m, vc, i)->oppo = h->quotas[(size_t)vc * h->chain_count + i].oppo;
    }
    m->sequence = h->sequence;
    m->now_ms = h->now_ms;
    m->changes = h->changes;
}

bool hived_mirror_update(struct hived *m, const struct hived *h, uint32_t cells)
{
    assert(hived_mirror_is_of(m, h) && cells > 0);
    if (m->changes == h->changes)
        return true;
    struct mirroring update = {m, h, cells};
    if (!nodes_update(&update) || !cells_update(&update) || !groups_update(&update))
        return false;
    rest_mirror(m, h);
    return true;
}
