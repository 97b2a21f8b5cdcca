/* health.c — nodes that turn bad and come back. */
#include "hived/state.h"
#include <assert.h>

static void touch(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    const struct cell *c = &h->cells[cell];
    if (c->is_viewed)
        view_touch(h, cell);
    if (c->bound != NONE && h->cells[c->bound].is_viewed)
        view_touch(h, c->bound);
    if (c->is_free)
        free_list_weigh(h, cell);
}

/* A cell is bad when one of its children is; the cells above are told first, so that they are
 * bound before what is inside them. */
static void cell_bad_set(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    struct cell *c = &h->cells[cell];
    if (c->is_bad)
        return;
    c->is_bad = true;
    cell_changed(h, cell);
    if (c->parent != NONE) {
        h->cells[c->parent].bad_children++;
        cell_bad_set(h, c->parent);
    }
    touch(h, cell);
    if (cell_is_free(h, cell)) {
        bad_free_add(h, cell);
        doom_try(h, c->chain, c->level);
    } else if (c->bound == NONE && c->parent != NONE && h->cells[c->parent].bound != NONE) {
        cell_bind_spare(h, cell);
    }
}

static void cell_healthy_set(struct hived *h, uint32_t cell)
{
    struct cell *c = &h->cells[cell];
    assert(c->is_bad && (c->level == 1 || c->bad_children == 0));
    c->is_bad = false;
    cell_changed(h, cell);
    touch(h, cell);
    if (c->parent != NONE)
        h->cells[c->parent].bad_children--;
    if (cell_is_free(h, cell)) {
        bad_free_remove(h, cell);
        doom_undo_try(h, c->chain, c->level);
    } else if (c->is_doomed) {
        doom_release(h, cell);
    } else if (c->level == 1) {
        leaf_unbind_unused(h, cell);
    }
    if (c->parent != NONE && h->cells[c->parent].bad_children == 0 && h->cells[c->parent].is_bad)
        cell_healthy_set(h, c->parent);
}

void node_bad_set(struct hived *h, uint32_t index, bool is_bad)
{
    assert(index < h->node_count);
    struct node *node = &h->nodes[index];
    if (node->is_bad == is_bad)
        return;
    node->is_bad = is_bad;
    for (size_t i = 0; i < node->leaves.count; i++) {
        if (is_bad)
            cell_bad_set(h, node->leaves.items[i]);
        else if (h->cells[node->leaves.items[i]].is_bad)
            cell_healthy_set(h, node->leaves.items[i]);
    }
}

/* New devices of a node, healthy so far; a node that has just appeared is bad. */
void leaves_bad_set_new(struct hived *h, uint32_t node, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; h->nodes[node].is_bad && i < first + count; i++)
        cell_bad_set(h, i);
}
