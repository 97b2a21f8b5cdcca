/* pack.c — the packer: places for the pods of a gang on the nodes of a view.
 *
 * As in HiveD one greedy pass: pods ascending, nodes in the view's order, never back. Where that
 * fails for a gang of mixed sizes, an exact search decides (bins.c). Inside a node the leaves of a
 * pod lie in the smallest cell that has enough of them.
 */
#include "base/arena.h"
#include "hived/state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t cell_leaves(const struct hived *h, uint32_t cell)
{
    const struct cell *c = &h->cells[cell];
    return h->chains[c->chain].levels[c->level].leaf_count;
}

static bool leaf_is_open(const struct pack *pack, uint32_t leaf)
{
    int32_t priority = pack->h->priority[leaf];
    return priority == HIVED_PRIORITY_FREE || priority < pack->priority;
}

/* Leaves that the gang may take here, ignoring what it took itself. */
uint32_t pack_open_count(const struct pack *pack, uint32_t cell)
{
    assert(cell < pack->h->cell_count);
    const struct hived *h = pack->h;
    uint32_t total = cell_leaves(h, cell);
    if (pack->priority < HIVED_PRIORITY_MIN)
        return total - h->cells[cell].used;
    uint32_t first = first_leaf(h, cell), count = 0;
    for (uint32_t i = first; i < first + total; i++)
        count += h->priority[i] < pack->priority;
    return count;
}

static uint32_t cell_node(const struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    const struct cell *c = &h->cells[cell];
    if (!c->is_virtual)
        return rest_of(h, c)->node;
    return c->bound != NONE ? h->rests[c->bound].node : NONE;
}

/* Must the node be left alone? Notes it, for the reason of a wait. */
static bool node_is_shunned(struct pack *pack, uint32_t cell, bool is_bad)
{
    uint32_t node = cell_node(pack->h, cell);
    bool is_excluded = node != NONE && pack->is_excluded && pack->is_excluded[node];
    return is_bad || is_excluded;
}

void pack_shun_note(struct pack *pack, uint32_t cell, bool is_bad)
{
    assert(cell < pack->h->cell_count);
    if (pack->bad_node != NONE)
        return;
    pack->bad_node = cell_node(pack->h, cell);
    pack->is_bad_excluded = !is_bad;
}

/* --- leaves inside a node --- */

struct block { /* candidates below one cell of the level under search */
    uint32_t free, open, first_free;
};

static bool leaf_is_taken(const struct pack *pack, uint32_t leaf)
{
    return pack->has_taken && pack->h->taken[leaf] == pack->epoch;
}

/* Where the leaves will be mapped. */
static void bound_fetch(const struct hived *h, uint32_t cell)
{
    const uint32_t bound = h->cells[cell].is_virtual ? h->cells[cell].bound : NONE;
    if (bound == NONE)
        return;
    subtree_fetch(h, bound);
    __builtin_prefetch(&h->nodes[h->rests[bound].node]);
}

static struct block block_count(const struct pack *pack, uint32_t first, uint32_t count)
{
    assert(count > 0);
    const struct hived *h = pack->h;
    struct block block = {.first_free = NONE};
    for (uint32_t i = first; i < first + count; i++) {
        if (!leaf_is_open(pack, i) || leaf_is_taken(pack, i))
            continue;
        bool is_free = h->priority[i] == HIVED_PRIORITY_FREE;
        block.free += is_free;
        block.open++;
        if (is_free && block.first_free == NONE)
            block.first_free = i;
    }
    return block;
}

static void block_take(struct pack *pack, uint32_t first, uint32_t count, uint32_t want,
                       uint32_t *leaves)
{
    struct hived *h = pack->h;
    uint32_t got = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = first; i < first + count && got < want; i++) {
            bool is_free = h->priority[i] == HIVED_PRIORITY_FREE;
            if (!leaf_is_open(pack, i) || is_free != (pass == 0) || leaf_is_taken(pack, i))
                continue;
            if (pack->item_count > 1)
                h->taken[i] = pack->epoch;
            leaves[got++] = i;
        }
    }
    assert(got == want);
    leaves_fetch(h, leaves, got);
    pack->has_taken = pack->item_count > 1;
}

static void leaf_take(struct pack *pack, const struct pack_item *item, uint32_t leaf)
{
    struct hived *h = pack->h;
    pack->leaves[item->first] = leaf;
    if (pack->item_count > 1)
        h->taken[leaf] = pack->epoch;
    leaves_fetch(h, &leaf, 1);
    pack->has_taken = pack->item_count > 1;
}

/* A single leaf: the first free one, else the first one. Items on one cell follow each other. */
static bool leaf_choose(struct pack *pack, const struct pack_item *item)
{
    const struct hived *h = pack->h;
    const uint32_t end = item->leaf + cell_leaves(h, item->cell);
    if (pack->one.cell != item->cell) {
        pack->one.cell = item->cell;
        pack->one.free = pack->one.open = item->leaf;
        bound_fetch(h, item->cell);
    }
    uint32_t *at = &pack->one.free;
    while (*at < end && (h->priority[*at] != HIVED_PRIORITY_FREE || leaf_is_taken(pack, *at)))
        (*at)++;
    if (*at == end)
        at = &pack->one.open;
    while (*at < end && (!leaf_is_open(pack, *at) || leaf_is_taken(pack, *at)))
        (*at)++;
    if (*at == end)
        return false;
    leaf_take(pack, item, (*at)++);
    return true;
}

/* The best is the lowest level at which one cell has enough candidates; of several such cells the
 * one with the first candidate, where free leaves come before those in use. */
static bool leaves_choose(struct pack *pack, const struct pack_item *item)
{
    assert(item->leaves > 0);
    if (item->leaves == 1)
        return leaf_choose(pack, item);
    const struct hived *h = pack->h;
    const struct level *levels = h->chains[pack->chain].levels;
    uint32_t cell = item->cell, first = item->leaf, want = item->leaves;
    uint32_t *leaves = &pack->leaves[item->first];
    uint32_t total = cell_leaves(h, cell);
    pack->one.cell = NONE; /* leaves are taken between */
    bound_fetch(h, cell);
    for (uint8_t level = 1; level <= h->cells[cell].level; level++) {
        uint32_t size = levels[level].leaf_count, best = NONE;
        uint64_t best_rank = UINT64_MAX;
        if (size < want)
            continue;
        for (uint32_t at = first; at < first + total; at += size) {
            struct block block = block_count(pack, at, size);
            uint64_t rank = block.first_free; /* NONE, the largest, where all are in use */
            if (block.open < want || rank >= best_rank)
                continue;
            best = at;
            best_rank = rank;
            if (block.free)
                break; /* those behind it begin later */
        }
        if (best != NONE) {
            block_take(pack, best, size, want, leaves);
            return true;
        }
    }
    return false;
}

static void item_put(const struct hived *h, struct pack_item *item, uint32_t cell)
{
    item->cell = cell;
    item->leaf = first_leaf(h, cell);
}

uint32_t pack_take(struct pack *pack, uint32_t leaves)
{
    uint32_t done = 0;
    while (pack->next < pack->item_count && done < leaves) {
        const struct pack_item *item = &pack->items[pack->next++];
        bool is_found = leaves_choose(pack, item);
        assert(is_found);
        (void)is_found;
        done += item->leaves;
    }
    return done;
}

/* --- the whole view --- */

/* One greedy pass. */
static bool view_greedy(struct pack *pack)
{
    assert(pack->item_count > 0);
    const struct hived *h = pack->h;
    const struct view *view = pack->view;
    uint32_t item = 0;
    for (uint32_t b = 0; b < view->bucket_count; b++) {
        const struct bucket *bucket = &view->buckets[b];
        bool is_free_only = pack->priority < HIVED_PRIORITY_MIN;
        uint32_t used = key_used(bucket->key);
        if (is_free_only && view->leaf_max < used + pack->items[item].leaves)
            continue;
        for (uint32_t n = bucket->first; n != NONE; n = h->view_nodes[n].next) {
            uint32_t cell = h->view_nodes[n].cell, open = view->leaf_max - used;
            if (!is_free_only || view->is_mixed)
                open = pack_open_count(pack, cell);
            if (open < pack->items[item].leaves)
                continue;
            if (node_is_shunned(pack, cell, key_is_bad(bucket->key))) {
                pack_shun_note(pack, cell, key_is_bad(bucket->key));
                continue;
            }
            while (open >= pack->items[item].leaves) {
                pack->items[item].cell = cell;
                pack->items[item].leaf = h->view_nodes[n].leaf;
                open -= pack->items[item].leaves;
                if (++item == pack->item_count)
                    return true;
            }
        }
    }
    return false;
}

struct bins {
    uint32_t *cells, *free;
    uint32_t count;
};

/* Items of several sizes: descending into the bins, exactly. */
static bool bins_pack(struct pack *pack, const struct bins *bins, struct pack_item **items,
                      uint32_t count)
{
    assert(count <= pack->item_count);
    uint32_t *sizes = ARENA_ARRAY(pack->arena, uint32_t, count);
    uint32_t *chosen = ARENA_ARRAY(pack->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        sizes[i] = items[count - 1 - i]->leaves;
    struct bins_fit fit = {bins->free, bins->count, sizes, count, chosen, false};
    bool is_found = bins_fill(&fit, pack->arena);
    pack->is_search_cut |= fit.is_cut;
    if (!is_found)
        return false;
    for (uint32_t i = 0; i < count; i++)
        item_put(pack->h, items[count - 1 - i], bins->cells[chosen[i]]);
    return true;
}

static void bins_init(struct bins *bins, struct arena *arena, uint32_t room)
{
    bins->cells = ARENA_ARRAY(arena, uint32_t, room + 1);
    bins->free = ARENA_ARRAY(arena, uint32_t, room + 1);
    bins->count = 0;
}

static void bins_add(struct bins *bins, uint32_t cell, uint32_t free)
{
    bins->cells[bins->count] = cell;
    bins->free[bins->count++] = free;
}

/* The greedy pass is exact when all pods are of one size. */
static bool view_search(struct pack *pack)
{
    assert(pack->item_count > 0);
    const struct hived *h = pack->h;
    const struct view *view = pack->view;
    if (pack->items[0].leaves == pack->items[pack->item_count - 1].leaves)
        return false;
    struct bins bins;
    bins_init(&bins, pack->arena, view->count);
    for (uint32_t b = 0; b < view->bucket_count; b++) {
        for (uint32_t n = view->buckets[b].first; n != NONE; n = h->view_nodes[n].next) {
            uint32_t cell = h->view_nodes[n].cell, open = pack_open_count(pack, cell);
            if (open > 0 && !node_is_shunned(pack, cell, key_is_bad(view->buckets[b].key)))
                bins_add(&bins, cell, open);
        }
    }
    struct pack_item **items = ARENA_ARRAY(pack->arena, struct pack_item *, pack->item_count);
    for (uint32_t i = 0; i < pack->item_count; i++)
        items[i] = &pack->items[i];
    return bins_pack(pack, &bins, items, pack->item_count);
}

/* --- within one cell --- */

enum { WITHIN_STEPS_MAX = 10000 }; /* cells tried for one gang */

struct within_set { /* items that must share a cell */
    uint8_t level;
    struct pack_item **items; /* ascending */
    uint32_t count;
};

struct within {
    struct pack *pack;
    struct within_set *sets; /* last: the rest, level 0 */
    uint32_t set_count;
    uint32_t steps;
};

static uint8_t level_named(const struct hived *h, uint32_t chain, const char *type)
{
    assert(chain < h->chain_count);
    const struct chain *c = &h->chains[chain];
    for (uint8_t level = 1; level <= c->top; level++)
        if (!strcmp(h->config->types[c->levels[level].type].name, type))
            return level;
    return 0;
}

/* Leaves still open in a cell, what the gang took itself not among them. */
static uint32_t open_left(const struct pack *pack, uint32_t cell)
{
    uint32_t first = first_leaf(pack->h, cell), count = cell_leaves(pack->h, cell);
    return block_count(pack, first, count).open;
}

static void bins_add_node(struct pack *pack, struct bins *bins, uint32_t cell)
{
    const struct hived *h = pack->h;
    uint32_t node = cell;
    while (node != NONE && !h->cells[node].is_viewed)
        node = h->cells[node].parent;
    assert(node != NONE);
    bool is_bad = key_is_bad(h->view_nodes[h->rests[node].view_node].key);
    uint32_t open = open_left(pack, cell);
    if (open && !node_is_shunned(pack, node, is_bad))
        bins_add(bins, cell, open);
    else if (open)
        pack_shun_note(pack, node, is_bad);
}

/* Nodes below `cell` (or the cell itself when it is smaller), in the view's order when `cell` is
 * NONE: the whole view. */
static void bins_below(struct pack *pack, struct bins *bins, uint32_t cell)
{
    const struct hived *h = pack->h;
    const struct view *view = pack->view;
    if (cell == NONE) {
        bins_init(bins, pack->arena, view->count);
        for (uint32_t b = 0; b < view->bucket_count; b++)
            for (uint32_t n = view->buckets[b].first; n != NONE; n = h->view_nodes[n].next)
                bins_add_node(pack, bins, h->view_nodes[n].cell);
        return;
    }
    uint32_t count = 1, first = cell;
    while (h->cells[first].level > h->chains[pack->chain].node_level) {
        count *= child_number(h, &h->cells[first]);
        first = h->cells[first].child;
    }
    bins_init(bins, pack->arena, count);
    for (uint32_t i = 0; i < count; i++)
        bins_add_node(pack, bins, first + i);
}

static bool set_greedy(const struct hived *h, struct pack_item **items, uint32_t count,
                       const struct bins *bins)
{
    uint32_t item = 0;
    for (uint32_t b = 0; b < bins->count; b++) {
        for (uint32_t free = bins->free[b]; free >= items[item]->leaves;) {
            item_put(h, items[item], bins->cells[b]);
            free -= items[item]->leaves;
            if (++item == count)
                return true;
        }
    }
    return false;
}

static bool set_place(struct pack *pack, const struct within_set *set, uint32_t cell)
{
    struct bins bins;
    bins_below(pack, &bins, cell);
    bool is_mixed = set->items[0]->leaves != set->items[set->count - 1]->leaves;
    if (!set_greedy(pack->h, set->items, set->count, &bins) &&
        (!is_mixed || !bins_pack(pack, &bins, set->items, set->count)))
        return false;
    for (uint32_t i = 0; i < set->count; i++)
        leaves_choose(pack, set->items[i]);
    return true;
}

static void set_undo(struct pack *pack, const struct within_set *set)
{
    pack->one.cell = NONE;
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t k = 0; k < set->items[i]->leaves; k++)
            pack->h->taken[pack->leaves[set->items[i]->first + k]] = pack->epoch - 1;
}

/* Cells of `level` below `under` (NONE: in the view), nearest to full first. */
static uint32_t *cells_at(struct pack *pack, uint8_t level, uint32_t under, uint32_t *count)
{
    const struct hived *h = pack->h;
    struct cell_list list = {0};
    uint32_t room = 16, last = NONE;
    list.items = ARENA_ARRAY(pack->arena, uint32_t, room);
    cleanup_id_map struct id_map seen = {0};
    for (uint32_t b = 0; b < pack->view->bucket_count; b++) {
        for (uint32_t n = pack->view->buckets[b].first; n != NONE; n = h->view_nodes[n].next) {
            uint32_t cell = h->view_nodes[n].cell, number = 1;
            while (cell != NONE && h->cells[cell].level < level)
                cell = h->cells[cell].parent;
            while (cell != NONE && h->cells[cell].level > level) {
                number *= child_number(h, &h->cells[cell]);
                cell = h->cells[cell].child;
            }
            if (cell == NONE || cell == last || id_map_get(&seen, cell) != MAP_NONE ||
                (under != NONE && !cell_is_below(h, cell, under)))
                continue;
            id_map_set(&seen, cell, 1);
            last = cell;
            while (list.count + number > room) {
                uint32_t *grown = ARENA_ARRAY(pack->arena, uint32_t, 2 * (size_t)room);
                memcpy(grown, list.items, list.count * sizeof *grown);
                list.items = grown;
                room *= 2;
            }
            for (uint32_t i = 0; i < number; i++)
                list.items[list.count++] = cell + i;
        }
    }
    *count = (uint32_t)list.count;
    return list.items;
}

static bool sets_place(struct within *within, uint32_t at, uint32_t under)
{
    struct pack *pack = within->pack;
    if (at == within->set_count)
        return true;
    const struct within_set *set = &within->sets[at];
    if (!set->level) { /* those without a condition are the last */
        assert(at + 1 == within->set_count);
        return set_place(pack, set, under);
    }
    uint32_t count, *cells = cells_at(pack, set->level, under, &count), need = 0;
    for (uint32_t i = 0; i < set->count; i++)
        need += set->items[i]->leaves;
    for (uint32_t i = 0; i < count; i++) {
        if (open_left(pack, cells[i]) < need)
            continue;
        if (++within->steps > WITHIN_STEPS_MAX) {
            pack->is_search_cut = true;
            return false;
        }
        if (!set_place(pack, set, cells[i]))
            continue;
        if (sets_place(within, at + 1, under))
            return true;
        set_undo(pack, set);
    }
    return false;
}

/* Sets by member, those with a condition first, the largest demand before others. False: a type
 * that this chain does not have. */
static bool sets_make(struct within *within)
{
    struct pack *pack = within->pack;
    within->sets = ARENA_ARRAY(pack->arena, struct within_set, pack->item_count + 1);
    struct within_set rest = {.items =
                                  ARENA_ARRAY(pack->arena, struct pack_item *, pack->item_count)};
    for (uint32_t i = pack->item_count; i-- > 0;) { /* larger pods before */
        struct pack_item *item = &pack->items[i];
        if (!item->within)
            continue;
        bool is_new = i + 1 == pack->item_count || pack->items[i + 1].member != item->member;
        if (is_new) {
            struct within_set *set = &within->sets[within->set_count++];
            set->level = level_named(pack->h, pack->chain, item->within);
            set->items = ARENA_ARRAY(pack->arena, struct pack_item *, i + 1);
            if (!set->level)
                return false;
        }
        struct within_set *set = &within->sets[within->set_count - 1];
        set->items[set->count++] = item;
    }
    for (uint32_t i = 0; i < pack->item_count; i++)
        if (!pack->items[i].within)
            rest.items[rest.count++] = &pack->items[i];
    if (rest.count)
        within->sets[within->set_count++] = rest;
    return true;
}

static bool within_run(struct pack *pack, const char *type)
{
    struct within within = {.pack = pack};
    if (!sets_make(&within))
        return false;
    if (!type)
        return sets_place(&within, 0, NONE);
    uint8_t level = level_named(pack->h, pack->chain, type);
    if (!level)
        return false;
    uint32_t count, *cells = cells_at(pack, level, NONE, &count);
    for (uint32_t i = 0; i < count; i++)
        if (open_left(pack, cells[i]) >= pack->leaf_count && sets_place(&within, 0, cells[i]))
            return true;
    return false;
}

/* --- */

static bool pack_once(struct pack *pack, const char *within)
{
    assert(pack->item_count > 0);
    bool has_within = within != NULL;
    pack->one.cell = NONE;
    pack->next = 0;
    pack->epoch = pack->h->epoch += 2; /* set_undo writes the one before */
    for (uint32_t i = 0; i < pack->item_count; i++)
        has_within |= pack->items[i].within != NULL;
    if (has_within) {
        pack->next = pack->item_count; /* they have taken theirs where it is true */
        return within_run(pack, within);
    }
    const struct habits *habits = pack->h->habits;
    return habits->pack ? habits->pack(pack) : view_greedy(pack) || view_search(pack);
}

bool pack_run(struct pack *pack, const char *within)
{
    assert(pack->item_count > 0);
    const struct view *view = pack->view;
    pack->bad_node = NONE;
    view_settle(pack->h, pack->view);
    if (pack->priority >= HIVED_PRIORITY_MIN && view->lowest >= pack->priority)
        return false; /* there is nobody to displace */
    return pack_once(pack, within);
}
