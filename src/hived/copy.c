/* copy.c — an independent copy of everything that changes, at once or in pieces. Cells name each
 * other by index, so most of it is plain memory. What has not been copied yet still points to the
 * original. */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

static void *copy_of(const void *memory, size_t count, size_t size)
{
    if (!memory)
        return NULL;
    void *copy = mem_alloc(mem_size(count ? count : 1, size));
    memcpy(copy, memory, count * size);
    return copy;
}
#define COPY(field, count) ((field) = copy_of((field), (count), sizeof *(field)))

static char *text_copy(const char *text)
{
    return text ? mem_copy(text) : NULL;
}

static void list_copy(struct cell_list *list)
{
    COPY(list->items, list->count);
    list->room = list->items ? (list->count ? list->count : 1) : 0;
}

static void free_list_copy(struct free_list *list)
{
    COPY(list->items, list->tree_size);
    COPY(list->weights, list->tree_size);
    COPY(list->tree, list->tree_size);
}

static void chains_copy(struct hived *h)
{
    COPY(h->chains, h->chain_count + 1u);
    COPY(h->leaf_types, h->chain_count + 1u);
    for (uint32_t i = 0; i < h->chain_count; i++) {
        struct chain *chain = &h->chains[i];
        COPY(chain->levels, chain->top + 1u);
        list_copy(&chain->tops);
        list_copy(&chain->vcs);
    }
}

/* The n-th level of all chains. NULL: there are fewer. */
static struct level *level_at(struct hived *h, uint32_t nth)
{
    for (uint32_t i = 0; i < h->chain_count; i++) {
        struct chain *chain = &h->chains[i];
        if (nth < chain->top)
            return &chain->levels[nth + 1];
        nth -= chain->top;
    }
    return NULL;
}

static void vcs_copy(struct hived *h)
{
    COPY(h->vcs, h->vc_count + 1u);
    COPY(h->quotas, (size_t)h->vc_count * h->chain_count + 1);
    COPY(h->pins, h->pin_count + 1u);
    h->vc_index = (struct text_map){0};
    for (uint32_t vc = 0; vc < h->vc_count; vc++) {
        text_map_set(&h->vc_index, text_of(h->vcs[vc].name), vc);
        list_copy(&h->vcs[vc].roots);
        for (uint32_t i = 0; i < h->chain_count; i++) {
            struct quota *quota = quota_of(h, vc, i);
            if (!quota->is_present)
                continue;
            COPY(quota->levels, h->chains[i].top + 1u);
            for (uint8_t at = 1; at <= h->chains[i].top; at++) {
                list_copy(&quota->levels[at].roots);
                list_copy(&quota->levels[at].doomed);
                COPY(quota->levels[at].unbound, quota->levels[at].roots.count / 64 + 1);
            }
        }
    }
}

static void views_copy(struct hived *h)
{
    COPY(h->views, h->view_count + 1u);
    h->view_nodes = mem_alloc(mem_size(h->view_node_count + 1u, sizeof *h->view_nodes));
    h->view_node_room = h->view_node_count; /* there may be room for no more */
    for (uint32_t i = 0; i < h->view_count; i++) {
        struct view *view = &h->views[i];
        COPY(view->buckets, view->bucket_room);
        COPY(view->dirty, view->dirty_room);
        COPY(view->by_priority, HIVED_PRIORITY_MAX + 1);
        COPY(view->order, view->order_count);
    }
}

static void nodes_begin(struct hived *h)
{
    h->nodes = mem_alloc(mem_size(h->node_count + 1u, sizeof *h->nodes));
    h->node_room = h->node_count;
    h->node_index = (struct text_map){0};
    arena_init(&h->names);
}

static void node_copy(struct hived *h, const struct hived *from, uint32_t i)
{
    h->nodes[i] = from->nodes[i];
    list_copy(&h->nodes[i].leaves);
    if (i >= h->built_nodes) /* the name is not the configuration's */
        h->nodes[i].name = arena_copy(&h->names, text_of(h->nodes[i].name));
    text_map_set(&h->node_index, text_of(h->nodes[i].name), i);
}

static void addresses_copy(struct hived *h)
{
    for (uint32_t i = 0; i < h->chain_count; i++) {
        const struct cell_list *tops = &h->chains[i].tops;
        for (size_t k = 0; k < tops->count; k++)
            if (tops->items[k] >= h->built_cells)
                h->addresses[tops->items[k]] = h->nodes[h->rests[tops->items[k]].node].name;
    }
}

static void groups_begin(struct hived *h)
{
    COPY(h->groups, h->group_room);
    COPY(h->group_changes, h->group_room);
    memset(&h->group_chunks, 0, sizeof h->group_chunks);
    h->spare = h->fresh = h->fresh_end = NULL;
    list_copy(&h->group_gaps);
    h->group_index = (struct text_map){0};
}

static void pending_copy(struct hived *h)
{
    COPY(h->pending, h->pending_room);
    for (uint32_t i = 0; i < h->pending_count; i++)
        COPY(h->pending[i].virtual, h->groups[h->pending[i].group]->leaf_count);
    h->pending_group = text_copy(h->pending_group);
    h->demotion.preemptor = text_copy(h->demotion.preemptor);
    COPY(h->journal, h->journal_count);
    h->journal_room = h->journal ? (h->journal_count ? h->journal_count : 1) : 0;
}

/* One that is being built is built again so far. */
static struct hived *building_copy(const struct hived *from)
{
    const struct build *end = &from->build;
    hived_config_share(from->config);
    struct hived *h = hived_begin(from->config);
    while (h->build.stage != end->stage || h->build.at != end->at || h->build.part != end->part ||
           h->build.number != end->number)
        hived_build_some(h, 1);
    return h;
}

/* --- the whole, in the order of its stages --- */

enum copy_stage {
    COPY_CELLS,
    COPY_CHAINS,
    COPY_LEVELS,
    COPY_QUOTAS,
    COPY_VIEWS,
    COPY_VIEW_NODES,
    COPY_NODES,
    COPY_GROUPS
};

enum { /* as much work as to copy so many cells */
       CELLS_PER_TABLE_COST = 16,
       NODE_COST = 8,
       GROUP_COST = 32,
       NUMBERS_PER_COST = 16, /* of a group */
       VIEW_NODES_PER_CELL = 2,
       NUMBERS_PER_CELL = 8, /* each of the three that a place of a free list has */
};

static struct hived *copy_begin(const struct hived *from, bool is_in_pieces)
{
    struct hived *h = mem_alloc(sizeof *h);
    *h = *from;
    hived_config_share(h->config);
    const uint32_t room = h->cell_count + 1u;
    if (is_in_pieces) { /* a table of large pages may be a long step, of the kernel's */
        h->cells = mem_table_begin(room, sizeof *h->cells);
        h->rests = mem_table_begin(room, sizeof *h->rests);
        h->cell_room = room;
    } else {
        cells_alloc(h, room);
    }
    h->addresses = mem_alloc(mem_size(h->cell_count + 1u, sizeof *h->addresses));
    h->priority = mem_alloc(mem_size(h->cell_count + 1u, sizeof *h->priority));
    COPY(h->cell_changes, cell_chunks(h->cell_count + 1u));
    h->taken = mem_alloc(mem_size(h->cell_count + 1u, sizeof *h->taken));
    h->scratch = mem_alloc(mem_size(h->cell_count + 1u, sizeof *h->scratch));
    h->taken[h->cell_count] = h->scratch[h->cell_count] = 0; /* the others with their cells */
    h->epoch = 0;
    h->copied = (struct copied){.stage = COPY_CELLS};
    return h;
}

static void stage_begin(struct hived *h, enum copy_stage stage)
{
    h->copied = (struct copied){.stage = (uint8_t)stage};
}

static uint32_t cells_copy(struct hived *h, const struct hived *from, uint32_t most)
{
    const uint32_t at = h->copied.next;
    const uint32_t count = h->cell_count - at < most ? h->cell_count - at : most;
    memcpy(h->cells + at, from->cells + at, count * sizeof *h->cells);
    memcpy(h->rests + at, from->rests + at, count * sizeof *h->rests);
    memcpy(h->addresses + at, from->addresses + at, count * sizeof *h->addresses);
    memcpy(h->priority + at, from->priority + at, count * sizeof *h->priority);
    memset(h->taken + at, 0, count * sizeof *h->taken);
    memset(h->scratch + at, 0, count * sizeof *h->scratch);
    h->copied.next += count;
    if (h->copied.next == h->cell_count)
        stage_begin(h, COPY_CHAINS);
    return count;
}

/* The lists of one. */
static uint32_t level_copy(struct hived *h)
{
    struct level *level = level_at(h, h->copied.next);
    if (!level) {
        stage_begin(h, COPY_QUOTAS);
        return 1;
    }
    free_list_copy(&level->free);
    list_copy(&level->bad_free);
    h->copied.next++;
    return 1 + (level->free.tree_size + (uint32_t)level->bad_free.count) / NUMBERS_PER_CELL;
}

static uint32_t view_nodes_copy(struct hived *h, const struct hived *from, uint32_t most)
{
    const uint32_t at = h->copied.next, left = h->view_node_count - at;
    const uint32_t room =
        most < UINT32_MAX / VIEW_NODES_PER_CELL ? most * VIEW_NODES_PER_CELL : UINT32_MAX;
    const uint32_t count = left < room ? left : room;
    if (count)
        memcpy(h->view_nodes + at, from->view_nodes + at, count * sizeof *h->view_nodes);
    h->copied.next += count;
    if (h->copied.next == h->view_node_count) {
        nodes_begin(h);
        stage_begin(h, COPY_NODES);
    }
    return count / VIEW_NODES_PER_CELL;
}

static uint32_t nodes_copy(struct hived *h, const struct hived *from, uint32_t most)
{
    const uint32_t begin = h->copied.next;
    for (; h->copied.next < h->node_count && (h->copied.next - begin) * NODE_COST < most;
         h->copied.next++)
        node_copy(h, from, h->copied.next);
    const uint32_t cost = (h->copied.next - begin) * NODE_COST;
    if (h->copied.next == h->node_count) {
        addresses_copy(h);
        groups_begin(h);
        stage_begin(h, COPY_GROUPS);
    }
    return cost;
}

/* One, or some of it. */
static uint32_t groups_copy(struct hived *h, const struct hived *from, uint32_t most)
{
    const uint32_t i = h->copied.next;
    const struct group *old = from->groups[i];
    if (!old) {
        h->copied.next++;
        return 1;
    }
    if (!h->copying.group)
        group_copy_begin(h, old);
    const uint32_t before = h->copying.numbers;
    const uint64_t numbers = ((uint64_t)most + 1) * NUMBERS_PER_COST;
    const bool is_whole =
        group_copy_some(h, old, numbers < UINT32_MAX ? (uint32_t)numbers : UINT32_MAX);
    const uint32_t cost = (h->copying.numbers - before) / NUMBERS_PER_COST;
    if (!is_whole)
        return cost + 1;
    h->groups[i] = h->copying.group;
    h->copying = (struct group_copying){0};
    text_map_set(&h->group_index, text_of(h->groups[i]->name), i);
    h->copied.next++;
    return cost + GROUP_COST;
}

static uint32_t tables_cost(const struct hived *h)
{
    return 64 + h->cell_count / CELLS_PER_TABLE_COST;
}

/* The next of its stage; how much work it was, 0: it is whole. */
static uint32_t copy_next(struct hived *h, const struct hived *from, uint32_t most)
{
    switch ((enum copy_stage)h->copied.stage) {
    case COPY_CELLS:
        return 1 + cells_copy(h, from, most);
    case COPY_CHAINS:
        chains_copy(h);
        stage_begin(h, COPY_LEVELS);
        return tables_cost(h);
    case COPY_LEVELS:
        return level_copy(h);
    case COPY_QUOTAS:
        vcs_copy(h);
        stage_begin(h, COPY_VIEWS);
        return tables_cost(h);
    case COPY_VIEWS:
        views_copy(h);
        stage_begin(h, COPY_VIEW_NODES);
        return tables_cost(h);
    case COPY_VIEW_NODES:
        return 1 + view_nodes_copy(h, from, most);
    case COPY_NODES:
        return 1 + nodes_copy(h, from, most);
    case COPY_GROUPS:
        return h->copied.next < h->group_count ? groups_copy(h, from, most) : 0;
    }
    return 0;
}

bool hived_copy_some(const struct hived *from, struct hived **copy, uint32_t *cells)
{
    assert(!from->origin && *cells > 0);
    if (!*copy && from->build.stage != BUILD_WHOLE) {
        *copy = building_copy(from);
        return true;
    }
    struct hived *h = *copy = *copy ? *copy : copy_begin(from, *cells < UINT32_MAX);
    assert(h->config == from->config);
    /* a question may end them: then all is copied before there is one */
    const bool is_at_once = from->is_trial || hived_is_pending(from) || from->committing.is_on ||
                            hived_is_demoting(from);
    while (*cells > 0) {
        const uint32_t cost = copy_next(h, from, is_at_once ? UINT32_MAX : *cells);
        if (!cost) {
            pending_copy(h);
            hived_trial_end(h); /* a copy knows nothing of a search in pieces */
            return true;
        }
        if (!is_at_once)
            *cells -= cost < *cells ? cost : *cells;
    }
    return false;
}

struct hived *hived_copy(const struct hived *hived)
{
    struct hived *h = NULL;
    bool is_whole;
    do {
        uint32_t all = UINT32_MAX;
        is_whole = hived_copy_some(hived, &h, &all);
    } while (!is_whole);
    return h;
}
