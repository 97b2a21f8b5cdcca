/* tree.c — numbers and states that run from a leaf up its tree. */
#include "base/buf.h"
#include "hived/state.h"
#include <assert.h>

static void viewed_count(struct hived *h, uint32_t cell, int32_t priority, bool is_added)
{
    assert(cell < h->cell_count);
    view_touch(h, cell);
    if (h->cells[cell].is_virtual)
        view_count_leaf(&h->views[h->rests[cell].view], priority, is_added);
}

void leaf_use(struct hived *h, uint32_t leaf, int32_t priority)
{
    assert(h->cells[leaf].level == 1 && h->cells[leaf].priority == HIVED_PRIORITY_FREE);
    bool is_oppo = priority == HIVED_PRIORITY_OPPO;
    h->priority[leaf] = (int16_t)priority;
    for (uint32_t at = leaf; at != NONE; at = h->cells[at].parent) {
        struct cell *cell = &h->cells[at];
        cell->used++;
        if (cell->priority < priority)
            cell->priority = (int16_t)priority;
        cell_changed(h, at);
        if (is_oppo) {
            cell->used_oppo++;
            if (cell->is_free)
                free_list_weigh(h, at);
        }
        if (cell->is_viewed)
            viewed_count(h, at, priority, true);
    }
}

/* The highest; none is above `most`. From the last one on, as a gang's leaves are given back from
 * the first one on: as long as some are left, the last of them is. */
static int16_t children_priority(const struct hived *h, const struct cell *cell, int16_t most)
{
    assert(cell->level > 1);
    int16_t priority = HIVED_PRIORITY_FREE;
    for (uint32_t i = child_number(h, cell); i-- > 0 && priority < most;)
        if (h->cells[cell->child + i].priority > priority)
            priority = h->cells[cell->child + i].priority;
    return priority;
}

void leaf_unuse(struct hived *h, uint32_t leaf)
{
    int16_t priority = h->cells[leaf].priority;
    assert(h->cells[leaf].level == 1 && priority != HIVED_PRIORITY_FREE);
    bool is_oppo = priority == HIVED_PRIORITY_OPPO, is_changed = true;
    h->priority[leaf] = h->cells[leaf].priority = HIVED_PRIORITY_FREE;
    for (uint32_t at = leaf; at != NONE; at = h->cells[at].parent) {
        struct cell *cell = &h->cells[at];
        assert(cell->used > 0);
        cell->used--;
        cell_changed(h, at);
        if (at != leaf && is_changed) {
            int16_t now = HIVED_PRIORITY_FREE;
            if (cell->used)
                now = cell->priority;
            if (cell->used && now == priority)
                now = children_priority(h, cell, priority);
            is_changed = now != cell->priority;
            cell->priority = now;
        }
        if (is_oppo) {
            cell->used_oppo--;
            if (cell->is_free)
                free_list_weigh(h, at);
        }
        if (cell->is_viewed)
            viewed_count(h, at, priority, false);
    }
}

static bool all_children_are(const struct hived *h, const struct cell *cell, uint8_t state)
{
    assert(cell->level > 1);
    for (uint32_t i = child_number(h, cell); i-- > 0;)
        if (h->cells[cell->child + i].state != state)
            return false;
    return true;
}

/* An inner cell is used as soon as a child is; it takes the other states when all children have
 * them. Nothing above a cell that has the state already can differ for Used. */
static void state_set(struct hived *h, uint32_t cell, enum hived_cell_state state)
{
    assert(cell < h->cell_count);
    h->cells[cell].state = (uint8_t)state;
    cell_changed(h, cell);
    for (uint32_t at = h->cells[cell].parent; at != NONE; at = h->cells[at].parent) {
        struct cell *above = &h->cells[at];
        if (state == HIVED_CELL_USED) {
            if (above->state == HIVED_CELL_USED)
                return;
        } else if (!all_children_are(h, above, (uint8_t)state)) {
            return;
        }
        above->state = (uint8_t)state;
        cell_changed(h, at);
    }
}

void cell_state_set(struct hived *h, uint32_t cell, enum hived_cell_state state)
{
    assert(cell < h->cell_count);
    state_set(h, cell, state);
    if (h->habits->state_set)
        h->habits->state_set(h, cell, state);
}

bool cell_is_below(const struct hived *h, uint32_t cell, uint32_t above)
{
    assert(cell < h->cell_count);
    while (cell != NONE && h->cells[cell].level < h->cells[above].level)
        cell = h->cells[cell].parent;
    return cell == above;
}

const char *cell_type_name(const struct hived *h, const struct cell *cell)
{
    return h->config->types[h->chains[cell->chain].levels[cell->level].type].name;
}

void cell_address(const struct hived *h, uint32_t cell, struct buf *out)
{
    assert(cell < h->cell_count);
    const struct cell *at = &h->cells[cell];
    if (at->parent != NONE) {
        cell_address(h, at->parent, out);
        buf_char(out, '/');
    }
    if (!at->is_virtual) {
        if (h->addresses[cell])
            buf_string(out, h->addresses[cell]);
        else
            buf_format(out, "%u", rest_of(h, at)->index);
        return;
    }
    if (at->parent == NONE)
        buf_format(out, "%s/", h->vcs[rest_of(h, at)->vc].name);
    buf_format(out, "%u", rest_of(h, at)->number);
}
