/* free_list.c — free cells of each level, splitting and merging, and trials that are taken back. */
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

void cell_list_add(struct cell_list *list, uint32_t item)
{
    *ARRAY_ADD(list) = item;
}

void cell_list_release(struct cell_list *list)
{
    ARRAY_FREE(list);
}

bool cell_is_single_node(const struct hived *h, const struct cell *cell)
{
    return cell->level <= h->chains[cell->chain].node_level;
}

uint32_t cell_weight(const struct hived *h, const struct cell *cell)
{
    if (cell->is_bad && cell_is_single_node(h, cell))
        return UINT32_MAX;
    return cell->used_oppo;
}

/* Winner of the pair below tree place `place`: smaller weight, then smaller position. */
static void tree_play(struct free_list *list, uint32_t place)
{
    assert(place >= 1 && place < list->tree_size);
    uint32_t left = 2 * place, right = left + 1;
    uint32_t a = left >= list->tree_size ? left - list->tree_size : list->tree[left];
    uint32_t b = right >= list->tree_size ? right - list->tree_size : list->tree[right];
    list->tree[place] = list->weights[b] < list->weights[a] ? b : a;
}

static void tree_update(struct free_list *list, uint32_t at, uint32_t weight)
{
    assert(at < list->tree_size);
    list->weights[at] = weight;
    for (uint32_t place = (list->tree_size + at) / 2; place > 0; place /= 2) {
        uint32_t before = list->tree[place];
        tree_play(list, place);
        if (before != at && list->tree[place] == before)
            return; /* nor did its winner's weight change */
    }
}

static void tree_grow(struct free_list *list)
{
    assert(list->count <= list->room);
    uint32_t size = list->tree_size ? 2 * list->tree_size : 4;
    list->weights = mem_realloc(list->weights, mem_size(size, sizeof *list->weights));
    list->tree = mem_realloc(list->tree, mem_size(size, sizeof *list->tree));
    list->items = mem_realloc(list->items, mem_size(size, sizeof *list->items));
    for (uint32_t i = list->tree_size; i < size; i++)
        list->weights[i] = UINT32_MAX;
    list->tree_size = list->room = size;
    for (uint32_t place = size - 1; place > 0; place--)
        tree_play(list, place);
}

static void list_put(struct hived *h, struct free_list *list, uint32_t at, uint32_t cell)
{
    assert(at < list->count && cell < h->cell_count);
    list->items[at] = cell;
    h->rests[cell].free_at = at;
    h->cells[cell].is_free = true;
    tree_update(list, at, cell_weight(h, &h->cells[cell]));
}

static void list_push(struct hived *h, struct free_list *list, uint32_t cell)
{
    assert(cell < h->cell_count);
    if (list->count == list->tree_size)
        tree_grow(list);
    list_put(h, list, list->count++, cell);
}

/* Returns the position from which it was taken; the last one moves there. */
static uint32_t list_take(struct hived *h, struct free_list *list, uint32_t cell)
{
    uint32_t at = h->rests[cell].free_at;
    assert(at < list->count && list->items[at] == cell);
    h->cells[cell].is_free = false;
    list->count--;
    if (at != list->count)
        list_put(h, list, at, list->items[list->count]);
    tree_update(list, list->count, UINT32_MAX);
    return at;
}

static void journal_add(struct hived *h, bool is_split, uint32_t cell, uint32_t at)
{
    assert(cell < h->cell_count);
    if (!h->is_trial)
        return;
    if (h->journal_count == h->journal_room) {
        h->journal_room = h->journal_room ? 2 * h->journal_room : 64;
        h->journal = mem_realloc(h->journal, mem_size(h->journal_room, sizeof *h->journal));
    }
    h->journal[h->journal_count++] = (struct journal_entry){is_split, cell, at};
}

void free_list_push(struct hived *h, struct free_list *list, uint32_t cell)
{
    list_push(h, list, cell);
    assert(list == &level_of(h, &h->cells[cell])->free);
    journal_add(h, false, cell, NONE);
}

void free_list_remove(struct hived *h, struct free_list *list, uint32_t cell)
{
    uint32_t at = list_take(h, list, cell);
    assert(list == &level_of(h, &h->cells[cell])->free);
    journal_add(h, false, cell, at);
}

void free_list_weigh(struct hived *h, uint32_t cell)
{
    const struct cell *c = &h->cells[cell];
    tree_update(&level_of(h, c)->free, rest_of(h, c)->free_at, cell_weight(h, c));
}

uint32_t free_list_first(const struct free_list *list)
{
    assert(list->count <= list->room);
    if (!list->count)
        return NONE;
    uint32_t at = list->tree[1];
    return list->weights[at] == UINT32_MAX ? NONE : list->items[at];
}

void free_list_release(struct free_list *list)
{
    mem_free(list->items);
    mem_free(list->tree);
    mem_free(list->weights);
    *list = (struct free_list){0};
}

/* Take a cell that is free, or lies below a free one, out of the free lists; cells above it are
 * split, their other children become free. */
void free_take(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    for (uint32_t at = cell;;) {
        struct cell *c = &h->cells[at];
        struct free_list *list = &level_of(h, c)->free;
        bool is_last = c->parent == NONE || h->cells[c->parent].is_split;
        if (!is_last) {
            struct cell *parent = &h->cells[c->parent];
            for (uint32_t i = 0; i < child_number(h, parent); i++)
                free_list_push(h, list, parent->child + i);
            parent->is_split = true;
            journal_add(h, true, c->parent, NONE);
        }
        free_list_remove(h, list, at);
        if (is_last)
            return;
        at = c->parent;
    }
}

static bool buddies_are_free(const struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    const struct cell *parent = &h->cells[h->cells[cell].parent];
    for (uint32_t i = 0; i < child_number(h, parent); i++)
        if (parent->child + i != cell && !h->cells[parent->child + i].is_free)
            return false;
    return true;
}

/* The inverse: buddies that are all free merge at once. */
void free_give(struct hived *h, uint32_t cell)
{
    assert(!h->is_trial);
    while (h->cells[cell].parent != NONE && buddies_are_free(h, cell)) {
        uint32_t above = h->cells[cell].parent;
        struct cell *parent = &h->cells[above];
        struct free_list *list = &level_of(h, &h->cells[cell])->free;
        for (uint32_t i = 0; i < child_number(h, parent); i++)
            if (parent->child + i != cell)
                list_take(h, list, parent->child + i);
        parent->is_split = false;
        cell = above;
    }
    list_push(h, &level_of(h, &h->cells[cell])->free, cell);
}

void free_trial_begin(struct hived *h)
{
    assert(!h->is_trial && h->journal_count == 0);
    h->is_trial = true;
}

static void entry_undo(struct hived *h, const struct journal_entry *entry)
{
    struct free_list *list = &level_of(h, &h->cells[entry->cell])->free;
    if (entry->is_split) {
        h->cells[entry->cell].is_split = false;
    } else if (entry->at == NONE) {
        assert(list->items[list->count - 1] == entry->cell);
        list_take(h, list, entry->cell);
    } else if (entry->at != list->count) {
        uint32_t moved = list->items[entry->at];
        list_push(h, list, moved);
        list_put(h, list, entry->at, entry->cell);
    } else {
        list_push(h, list, entry->cell);
    }
}

uint32_t free_trial_undo_some(struct hived *h, uint32_t count)
{
    uint32_t done = 0;
    assert(h->is_trial);
    for (; done < count && h->journal_count > 0; done++)
        entry_undo(h, &h->journal[--h->journal_count]);
    h->is_trial = h->journal_count > 0;
    return done;
}

void free_trial_undo(struct hived *h)
{
    free_trial_undo_some(h, UINT32_MAX);
}

bool cell_is_free(const struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    for (; cell != NONE; cell = h->cells[cell].parent)
        if (h->cells[cell].is_free)
            return true;
    return false;
}
