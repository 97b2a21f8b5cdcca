/* span.c — where cells lie: what will soon be read is fetched before it is asked for.
 *
 * In a large cluster no cache holds the cells of a node taken at random, and to go from a leaf to
 * its parent and on is to wait for far memory once a level. Trees of one shape lie one behind the
 * other, so the way up follows from the index of the leaf, and all of it is waited for at once.
 */
#include "hived/state.h"
#include <assert.h>

/* The newest tree. */
void span_add(struct hived *h, uint32_t root)
{
    assert(h->cells[root].parent == NONE && h->span_count <= SPANS_MAX);
    const struct cell *cell = &h->cells[root];
    const struct chain *chain = &h->chains[cell->chain];
    uint32_t size = h->cell_count - root;
    struct span *last = h->span_count ? &h->spans[h->span_count - 1] : NULL;
    if (last && last->end == root && last->top == cell->level &&
        h->cells[last->first].chain == cell->chain) {
        last->end = h->cell_count;
        return;
    }
    if (h->span_count == SPANS_MAX)
        return;
    struct span *span = &h->spans[h->span_count++];
    *span = (struct span){.first = root, .end = h->cell_count, .size = size, .top = cell->level};
    span->view_level = cell->level < chain->node_level ? cell->level : chain->node_level;
    uint32_t at = 0, width = 1;
    for (uint8_t level = cell->level; level >= 1; level--) {
        span->at[level] = at;
        span->leaves[level] = chain->levels[level].leaf_count;
        at += width;
        width *= chain->levels[level].child_number;
    }
}

struct span_seat { /* of a cell in its tree */
    const struct span *span;
    uint32_t tree; /* its root */
    uint32_t leaf; /* the first one below the cell, counted from the tree's first leaf */
    uint8_t level;
};

static bool seat_find(const struct hived *h, uint32_t cell, struct span_seat *seat)
{
    assert(cell < h->cell_count);
    uint32_t low = 0, high = h->span_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (h->spans[middle].end <= cell)
            low = middle + 1;
        else
            high = middle;
    }
    const struct span *span = &h->spans[low];
    if (low == h->span_count || cell < span->first)
        return false;
    uint32_t in_tree = (cell - span->first) % span->size;
    uint8_t level = 1;
    while (in_tree < span->at[level])
        level++;
    *seat = (struct span_seat){.span = span,
                               .tree = cell - in_tree,
                               .leaf = (in_tree - span->at[level]) * span->leaves[level],
                               .level = level};
    return true;
}

/* The cell at a level, of the tree's leaf number `leaf`. */
static uint32_t seat_cell(const struct span_seat *seat, uint8_t level)
{
    const struct span *span = seat->span;
    return seat->tree + span->at[level] + seat->leaf / span->leaves[level];
}

enum {
    FETCH_LEVELS = 4,      /* those above are few enough to be in a cache */
    FETCH_LEAVES_MAX = 32, /* more would drive out what was fetched first */
    LINE_CELLS = 64 / sizeof(struct cell)
};

/* A cell, all cells below it, and the rest of its leaves. */
void subtree_fetch(const struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    struct span_seat seat;
    if (!seat_find(h, cell, &seat) || seat.span->leaves[seat.level] > FETCH_LEAVES_MAX)
        return;
    for (uint8_t level = seat.level; level >= 1; level--) {
        uint32_t first = seat_cell(&seat, level);
        uint32_t width = seat.span->leaves[seat.level] / seat.span->leaves[level];
        for (uint32_t i = 0; i <= width; i += LINE_CELLS) {
            __builtin_prefetch(&h->cells[first + i], 1);
            if (level == 1)
                __builtin_prefetch(&h->rests[first + i]);
        }
    }
}

/* Leaves, and the cells above them; what is no cell (NONE, a stale hint) is passed over. */
void leaves_fetch(const struct hived *h, const uint32_t *leaves, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < FETCH_LEAVES_MAX; i++) {
        struct span_seat seat;
        if (leaves[i] >= h->cell_count)
            continue;
        __builtin_prefetch(&h->cells[leaves[i]], 1);
        __builtin_prefetch(&h->rests[leaves[i]], 1);
        if ((i > 0 && leaves[i] == leaves[i - 1] + 1) || !seat_find(h, leaves[i], &seat))
            continue; /* a neighbour's way up is nearly the same */
        __builtin_prefetch(&h->priority[leaves[i]], 1);
        __builtin_prefetch(&h->scratch[leaves[i]], 1);
        for (uint8_t level = 2; level <= FETCH_LEVELS && level <= seat.span->top; level++) {
            uint32_t cell = seat_cell(&seat, level);
            __builtin_prefetch(&h->cells[cell], 1);
            if (level == seat.span->view_level)
                __builtin_prefetch(&h->rests[cell], 1);
        }
    }
}
