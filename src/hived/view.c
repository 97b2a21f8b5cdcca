/* view.c — the packer's list of nodes, kept sorted as nodes change. */
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

int64_t view_node_key(const struct hived *h, const struct view *view, const struct view_node *node)
{
    assert(node->cell < h->cell_count);
    const struct cell *cell = &h->cells[node->cell];
    if (view->is_cluster)
        return view_key(cell->is_bad, cell->used_oppo, cell->used - cell->used_oppo);
    bool is_bad = cell->bound != NONE && h->cells[cell->bound].is_bad;
    return view_key(is_bad, cell->used, 0);
}

/* Position of the first bucket whose key is not below `key`. */
static uint32_t bucket_find(const struct view *view, int64_t key)
{
    assert(view->bucket_count <= view->bucket_room);
    uint32_t low = 0, high = view->bucket_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (view->buckets[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct bucket *bucket_get(struct view *view, int64_t key)
{
    assert(view->bucket_count <= view->bucket_room);
    uint32_t at = bucket_find(view, key);
    if (at < view->bucket_count && view->buckets[at].key == key)
        return &view->buckets[at];
    if (view->bucket_count == view->bucket_room) {
        view->bucket_room = view->bucket_room ? 2 * view->bucket_room : 16;
        view->buckets =
            mem_realloc(view->buckets, mem_size(view->bucket_room, sizeof *view->buckets));
    }
    memmove(&view->buckets[at + 1], &view->buckets[at],
            (view->bucket_count - at) * sizeof *view->buckets);
    view->bucket_count++;
    view->buckets[at] = (struct bucket){.key = key, .first = NONE, .last = NONE};
    return &view->buckets[at];
}

static void bucket_drop(struct view *view, struct bucket *bucket)
{
    size_t at = (size_t)(bucket - view->buckets);
    memmove(bucket, bucket + 1, (view->bucket_count - at - 1) * sizeof *bucket);
    view->bucket_count--;
}

static uint32_t node_leaves(const struct hived *h, const struct view_node *node)
{
    const struct cell *cell = &h->cells[node->cell];
    return h->chains[cell->chain].levels[cell->level].leaf_count;
}

static void node_unlink(struct hived *h, struct view *view, uint32_t index)
{
    struct view_node *node = &h->view_nodes[index];
    uint32_t at = bucket_find(view, node->key);
    struct bucket *bucket = &view->buckets[at];
    assert(at < view->bucket_count && bucket->key == node->key);
    if (node->previous != NONE)
        h->view_nodes[node->previous].next = node->next;
    else
        bucket->first = node->next;
    if (node->next != NONE)
        h->view_nodes[node->next].previous = node->previous;
    else
        bucket->last = node->previous;
    bucket->count--;
    bucket->leaves -= node_leaves(h, node);
    if (bucket->first == NONE)
        bucket_drop(view, bucket);
}

static void node_link(struct hived *h, struct view *view, uint32_t index, int64_t key,
                      bool is_front)
{
    assert(index < h->view_node_count);
    struct view_node *node = &h->view_nodes[index];
    struct bucket *bucket = bucket_get(view, key);
    node->key = node->next_key = key;
    node->previous = is_front ? NONE : bucket->last;
    node->next = is_front ? bucket->first : NONE;
    node->label = is_front ? --bucket->low : ++bucket->high;
    bucket->count++;
    bucket->leaves += node_leaves(h, node);
    if (node->previous != NONE)
        h->view_nodes[node->previous].next = index;
    else
        bucket->first = index;
    if (node->next != NONE)
        h->view_nodes[node->next].previous = index;
    else
        bucket->last = index;
}

static void node_count(const struct hived *h, struct view *view, const struct view_node *node)
{
    assert(node->cell < h->cell_count);
    uint32_t leaves = node_leaves(h, node);
    view->is_mixed |= view->leaf_max && leaves != view->leaf_max;
    if (leaves > view->leaf_max)
        view->leaf_max = leaves;
    view->leaves += leaves;
}

/* A cell more, at the end of its bucket. */
void view_join(struct hived *h, struct view *view, uint32_t cell)
{
    assert(cell < h->cell_count);
    if (h->view_node_count == h->view_node_room) {
        h->view_node_room = 2 * h->view_node_room + 2;
        h->view_nodes =
            mem_realloc(h->view_nodes, mem_size(h->view_node_room, sizeof *h->view_nodes));
    }
    uint32_t index = h->view_node_count++;
    struct view_node *node = &h->view_nodes[index];
    *node = (struct view_node){.cell = cell, .leaf = first_leaf(h, cell)};
    h->cells[cell].is_viewed = true;
    h->rests[cell].view_node = index;
    h->rests[cell].view = (uint32_t)(view - h->views);
    view->count++;
    node_count(h, view, node);
    node_link(h, view, index, view_node_key(h, view, node), false);
}

/* Its key is found while the cell is at hand: when the view is settled, so many are far away. */
void view_touch(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count && h->cells[cell].is_viewed);
    const uint32_t index = h->rests[cell].view_node;
    struct view_node *node = &h->view_nodes[index];
    struct view *view = &h->views[h->rests[cell].view];
    node->next_key = view_node_key(h, view, node);
    if (node->is_dirty)
        return;
    node->is_dirty = true;
    if (view->dirty_count == view->dirty_room) {
        view->dirty_room = view->dirty_room ? 2 * view->dirty_room : 16;
        view->dirty = mem_realloc(view->dirty, mem_size(view->dirty_room, sizeof *view->dirty));
    }
    view->dirty[view->dirty_count++] = index;
}

struct mover {
    int64_t old_key, label, new_key;
    uint32_t index;
};

static int mover_compare(const void *a, const void *b)
{
    const struct mover *x = a, *y = b;
    if (x->old_key != y->old_key)
        return x->old_key < y->old_key ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

enum {
    MOVERS_ON_STACK = 32,
    NODES_PER_MOVER = 4 /* to go through so many costs less than to sort one among many */
};

static void movers_sort(struct mover *movers, uint32_t count)
{
    if (count > MOVERS_ON_STACK) {
        qsort(movers, count, sizeof *movers, mover_compare);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct mover moved = movers[i];
        uint32_t at = i;
        for (; at > 0 && mover_compare(&movers[at - 1], &moved) > 0; at--)
            movers[at] = movers[at - 1];
        movers[at] = moved;
    }
}

static struct mover mover_of(const struct view_node *node, uint32_t index)
{
    return (struct mover){node->key, node->label, node->next_key, index};
}

/* Those whose key has changed, in the order in which they were touched. */
static uint32_t movers_find(struct hived *h, struct view *view, struct mover *movers)
{
    assert(view->dirty_count > 0);
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->dirty_count; i++) {
        struct view_node *node = &h->view_nodes[view->dirty[i]];
        node->is_dirty = false;
        if (node->next_key != node->key)
            movers[count++] = mover_of(node, view->dirty[i]);
    }
    view->dirty_count = 0;
    return count;
}

/* Those of one bucket leave it, in its order. */
static uint32_t bucket_leave(struct hived *h, struct bucket *bucket, struct mover *movers)
{
    uint32_t count = 0, last = NONE;
    for (uint32_t n = bucket->first, next; n != NONE; n = next) {
        struct view_node *node = &h->view_nodes[n];
        next = node->next;
        if (node->next_key != node->key) {
            movers[count++] = mover_of(node, n);
            bucket->leaves -= node_leaves(h, node);
            continue;
        }
        node->previous = last;
        if (last == NONE)
            bucket->first = n;
        else
            h->view_nodes[last].next = n;
        last = n;
    }
    bucket->count -= count;
    bucket->last = last;
    if (last == NONE)
        bucket->first = NONE;
    else
        h->view_nodes[last].next = NONE;
    return count;
}

/* They leave their buckets, in the order of the list: where many move, it is gone through, as that
 * needs no sorting. */
static void movers_leave(struct hived *h, struct view *view, struct mover *movers, uint32_t count)
{
    if (count <= MOVERS_ON_STACK || count < view->count / NODES_PER_MOVER) {
        movers_sort(movers, count);
        for (uint32_t i = 0; i < count; i++)
            node_unlink(h, view, movers[i].index);
        return;
    }
    uint32_t at = 0, kept = 0;
    for (uint32_t b = 0; b < view->bucket_count; b++) {
        at += bucket_leave(h, &view->buckets[b], movers + at);
        if (view->buckets[b].count)
            view->buckets[kept++] = view->buckets[b];
    }
    view->bucket_count = kept;
    assert(at == count);
}

/* Do what a stable sort by the new keys would do to the list. */
void view_settle(struct hived *h, struct view *view)
{
    assert(view->dirty_count <= view->dirty_room);
    if (!view->dirty_count)
        return;
    struct mover some[MOVERS_ON_STACK], *movers = some;
    if (view->dirty_count > MOVERS_ON_STACK)
        movers = mem_alloc(mem_size(view->dirty_count, sizeof *movers));
    const uint32_t count = movers_find(h, view, movers);
    movers_leave(h, view, movers, count);
    for (uint32_t i = count; i-- > 0;)
        if (movers[i].old_key < movers[i].new_key)
            node_link(h, view, movers[i].index, movers[i].new_key, true);
    for (uint32_t i = 0; i < count; i++)
        if (movers[i].old_key > movers[i].new_key)
            node_link(h, view, movers[i].index, movers[i].new_key, false);
    if (movers != some)
        mem_free(movers);
}

void view_count_leaf(struct view *view, int32_t priority, bool is_added)
{
    uint32_t *count = &view->by_priority[priority];
    if (is_added) {
        ++*count;
        if (priority < view->lowest)
            view->lowest = priority;
        return;
    }
    assert(*count > 0);
    --*count;
    while (view->lowest <= HIVED_PRIORITY_MAX && !view->by_priority[view->lowest])
        view->lowest++;
}
