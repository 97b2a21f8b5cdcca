/* queue_ranking.c — see queue_ranking.h. */
#include "core/queue_ranking.h"

#include <assert.h>

#include "base/memory.h"

enum { VISITS_MAX = 256 }; /* then anything that is not blocked will do */

static bool is_before(const struct queue_ranking *ranking, const struct queue_item *a,
                      const struct queue_item *b)
{
    return ranking->order->is_before(a, b);
}

/* --- the tree of classes: a treap, its second keys made of the classes' numbers --- */

static uint64_t tree_rank(uint32_t class)
{
    uint64_t rank = (class + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    rank = (rank ^ rank >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return rank ^ rank >> 29;
}

static bool class_is_before(const struct queue_ranking *ranking, uint32_t a, uint32_t b)
{
    return is_before(ranking, &ranking->ranks.items[a].items[0], &ranking->ranks.items[b].items[0]);
}

static void reach_add(struct queue_reach *sum, const struct queue_reach *other)
{
    if (other->tried < sum->tried)
        sum->tried = other->tried;
    if (other->closed < sum->closed)
        sum->closed = other->closed;
    if (other->need.task_gpus < sum->need.task_gpus)
        sum->need.task_gpus = other->need.task_gpus;
    if (other->need.gpus < sum->need.gpus)
        sum->need.gpus = other->need.gpus;
    if (other->need.cpus < sum->need.cpus)
        sum->need.cpus = other->need.cpus;
    if (other->priority > sum->priority)
        sum->priority = other->priority;
}

/* The children of the class have changed, or it has. */
static void tree_sum(struct queue_ranking *ranking, uint32_t at)
{
    assert(at < ranking->ranks.count && ranking->ranks.items[at].count > 0);
    struct queue_rank *rank = &ranking->ranks.items[at];
    rank->least = rank->own;
    if (rank->left != RANKING_NOWHERE)
        reach_add(&rank->least, &ranking->ranks.items[rank->left].least);
    if (rank->right != RANKING_NOWHERE)
        reach_add(&rank->least, &ranking->ranks.items[rank->right].least);
}

/* All of `a` stands before all of `b`. */
static uint32_t tree_join(struct queue_ranking *ranking, uint32_t a, uint32_t b)
{
    assert((a == RANKING_NOWHERE || a < ranking->ranks.count) &&
           (b == RANKING_NOWHERE || b < ranking->ranks.count));
    if (a == RANKING_NOWHERE || b == RANKING_NOWHERE)
        return a == RANKING_NOWHERE ? b : a;
    struct queue_rank *ranks = ranking->ranks.items;
    uint32_t top = tree_rank(a) > tree_rank(b) ? a : b;
    if (top == a)
        ranks[a].right = tree_join(ranking, ranks[a].right, b);
    else
        ranks[b].left = tree_join(ranking, a, ranks[b].left);
    tree_sum(ranking, top);
    return top;
}

/* What stands before `class`, and what behind it. */
static void tree_split(struct queue_ranking *ranking, uint32_t at, uint32_t class, uint32_t *before,
                       uint32_t *behind)
{
    assert(at == RANKING_NOWHERE || at < ranking->ranks.count);
    if (at == RANKING_NOWHERE) {
        *before = *behind = RANKING_NOWHERE;
        return;
    }
    struct queue_rank *top = &ranking->ranks.items[at];
    if (class_is_before(ranking, at, class)) {
        tree_split(ranking, top->right, class, &top->right, behind);
        *before = at;
    } else {
        tree_split(ranking, top->left, class, before, &top->left);
        *behind = at;
    }
    tree_sum(ranking, at);
}

static void tree_add(struct queue_ranking *ranking, uint32_t class)
{
    assert(class < ranking->ranks.count);
    uint32_t before, behind;
    struct queue_rank *rank = &ranking->ranks.items[class];
    rank->left = rank->right = RANKING_NOWHERE;
    tree_sum(ranking, class);
    tree_split(ranking, ranking->root, class, &before, &behind);
    ranking->root = tree_join(ranking, tree_join(ranking, before, class), behind);
}

/* The subtree without `class`, or, when it is not to be removed, with sums that know its changes.
 */
static uint32_t tree_update(struct queue_ranking *ranking, uint32_t at, uint32_t class,
                            bool is_removed)
{
    assert(at != RANKING_NOWHERE);
    struct queue_rank *top = &ranking->ranks.items[at];
    if (at == class && is_removed)
        return tree_join(ranking, top->left, top->right);
    if (at != class && class_is_before(ranking, class, at))
        top->left = tree_update(ranking, top->left, class, is_removed);
    else if (at != class)
        top->right = tree_update(ranking, top->right, class, is_removed);
    tree_sum(ranking, at);
    return at;
}

static void tree_remove(struct queue_ranking *ranking, uint32_t class)
{
    ranking->root = tree_update(ranking, ranking->root, class, true);
}

static bool reach_is_in(const struct ranking_search *search, const struct queue_reach *reach)
{
    const struct queue_room *room = search->visits < VISITS_MAX ? search->room : NULL;
    if (reach->tried >= search->change && reach->closed >= search->opening)
        return false;
    return !room || reach->priority > room->lowest ||
           (reach->need.task_gpus <= room->free.task_gpus && reach->need.gpus <= room->free.gpus &&
            reach->need.cpus <= room->free.cpus);
}

/* The first behind `after` in this subtree that is not blocked and fits. */
static uint32_t tree_find(struct ranking_search *search, uint32_t at,
                          const struct queue_item *after)
{
    const struct queue_ranking *ranking = search->ranking;
    assert(at == RANKING_NOWHERE || at < ranking->ranks.count);
    if (at == RANKING_NOWHERE || !reach_is_in(search, &ranking->ranks.items[at].least))
        return RANKING_NOWHERE;
    const struct queue_rank *rank = &ranking->ranks.items[at];
    bool is_behind = !after || is_before(ranking, after, &rank->items[0]);
    search->visits++;
    if (is_behind) {
        uint32_t found = tree_find(search, rank->left, after);
        if (found != RANKING_NOWHERE || reach_is_in(search, &rank->own))
            return found != RANKING_NOWHERE ? found : at;
    }
    return tree_find(search, rank->right, is_behind ? NULL : after);
}

uint32_t ranking_find(struct ranking_search *search, const struct queue_item *after)
{
    return tree_find(search, search->ranking->root, after);
}

/* --- the heap of one class --- */

static void item_put(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t at,
                     const struct queue_item *item)
{
    rank->items[at] = *item;
    ranking->positions.items[item->slot].at = at;
}

static void item_up(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t at)
{
    assert(at < rank->count && ranking->order);
    struct queue_item item = rank->items[at];
    while (at > 0 && is_before(ranking, &item, &rank->items[(at - 1) / 2])) {
        item_put(ranking, rank, at, &rank->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    item_put(ranking, rank, at, &item);
}

static void item_down(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t at)
{
    assert(at < rank->count && ranking->order);
    struct queue_item item = rank->items[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= rank->count)
            break;
        if (child + 1 < rank->count &&
            is_before(ranking, &rank->items[child + 1], &rank->items[child]))
            child++;
        if (!is_before(ranking, &rank->items[child], &item))
            break;
        item_put(ranking, rank, at, &rank->items[child]);
        at = child;
    }
    item_put(ranking, rank, at, &item);
}

/* --- the heap of one class by time limits --- */

static bool limit_is_before(const struct queue_ranking *ranking, const struct queue_rank *rank,
                            uint32_t a, uint32_t b)
{
    assert(a != b && rank->count > 0);
    const struct queue_item *x = &rank->items[ranking->positions.items[a].at];
    const struct queue_item *y = &rank->items[ranking->positions.items[b].at];
    if (x->limit_s != y->limit_s)
        return x->limit_s - 1 < y->limit_s - 1; /* none, 0, is the longest */
    return is_before(ranking, x, y);
}

static void limit_put(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t at,
                      uint32_t slot)
{
    rank->by_limit[at] = slot;
    ranking->positions.items[slot].limit_at = at;
}

static void limit_up(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t at)
{
    assert(at < rank->count && ranking->order);
    uint32_t slot = rank->by_limit[at];
    while (at > 0 && limit_is_before(ranking, rank, slot, rank->by_limit[(at - 1) / 2])) {
        limit_put(ranking, rank, at, rank->by_limit[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    limit_put(ranking, rank, at, slot);
}

static void limit_down(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t at,
                       uint32_t count)
{
    assert(at < count && count <= rank->count && ranking->order);
    uint32_t slot = rank->by_limit[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            limit_is_before(ranking, rank, rank->by_limit[child + 1], rank->by_limit[child]))
            child++;
        if (!limit_is_before(ranking, rank, rank->by_limit[child], slot))
            break;
        limit_put(ranking, rank, at, rank->by_limit[child]);
    }
    limit_put(ranking, rank, at, slot);
}

/* While the slot's item still has its place. */
static void limit_remove(struct queue_ranking *ranking, struct queue_rank *rank, uint32_t slot)
{
    uint32_t at = ranking->positions.items[slot].limit_at, count = rank->count - 1;
    uint32_t last = rank->by_limit[count];
    if (at == count)
        return;
    limit_put(ranking, rank, at, last);
    limit_up(ranking, rank, at);
    limit_down(ranking, rank, ranking->positions.items[last].limit_at, count);
}

/* --- jobs come and go --- */

void ranking_cover(struct queue_ranking *ranking, uint32_t class)
{
    while (ranking->ranks.count <= class) {
        struct queue_rank *rank = ARRAY_ADD(&ranking->ranks);
        rank->left = rank->right = RANKING_NOWHERE;
    }
}

static void rank_room_set(struct queue_rank *rank, size_t room)
{
    assert(room >= rank->count && room < RANKING_NOWHERE);
    rank->room = (uint32_t)room;
    rank->items = mem_realloc(rank->items, mem_size(room, sizeof *rank->items));
    rank->by_limit = mem_realloc(rank->by_limit, mem_size(room, sizeof *rank->by_limit));
}

void ranking_reserve(struct queue_ranking *ranking, uint32_t class, uint32_t jobs)
{
    ranking_cover(ranking, class);
    struct queue_rank *rank = &ranking->ranks.items[class];
    if (jobs > rank->room)
        rank_room_set(rank, jobs > 1 ? array_room_next(jobs, sizeof *rank->items) : 1);
}

/* The last item and the last place by limits, for `item`. */
static void rank_grow(struct queue_ranking *ranking, struct queue_rank *rank,
                      const struct queue_item *item)
{
    if (rank->count == rank->room)
        rank_room_set(rank, rank->room ? array_room_next(rank->room, sizeof *rank->items) : 1);
    uint32_t at = rank->count++;
    item_put(ranking, rank, at, item);
    limit_put(ranking, rank, at, item->slot);
    item_up(ranking, rank, at);
    limit_up(ranking, rank, at);
}

bool ranking_push(struct queue_ranking *ranking, uint32_t class, const struct queue_item *item,
                  const struct queue_reach *reach)
{
    while (ranking->positions.count <= item->slot)
        ARRAY_ADD(&ranking->positions);
    ranking_cover(ranking, class);
    struct queue_rank *rank = &ranking->ranks.items[class];
    const bool is_first = !rank->count || is_before(ranking, item, &rank->items[0]);
    if (rank->count && is_first)
        tree_remove(ranking, class);
    rank->own = *reach;
    rank_grow(ranking, rank, item);
    if (is_first)
        tree_add(ranking, class);
    return is_first;
}

void ranking_remove(struct queue_ranking *ranking, uint32_t class, uint32_t slot)
{
    assert(class < ranking->ranks.count && slot < ranking->positions.count);
    struct queue_rank *rank = &ranking->ranks.items[class];
    const uint32_t at = ranking->positions.items[slot].at;
    assert(at < rank->count && rank->items[at].slot == slot);
    if (at == 0)
        tree_remove(ranking, class);
    limit_remove(ranking, rank, slot);
    struct queue_item last = rank->items[--rank->count];
    if (at < rank->count) {
        item_put(ranking, rank, at, &last);
        item_up(ranking, rank, at);
        item_down(ranking, rank, ranking->positions.items[last.slot].at);
    }
    if (at == 0 && rank->count)
        tree_add(ranking, class);
}

void ranking_reach_set(struct queue_ranking *ranking, uint32_t class,
                       const struct queue_reach *reach)
{
    if (!ranking_count(ranking, class))
        return;
    ranking->ranks.items[class].own = *reach;
    tree_update(ranking, ranking->root, class, false);
}

void ranking_drop(struct queue_ranking *ranking, uint32_t class)
{
    if (class >= ranking->ranks.count)
        return;
    struct queue_rank *rank = &ranking->ranks.items[class];
    assert(rank->count == 0);
    mem_free(rank->items);
    mem_free(rank->by_limit);
    *rank = (struct queue_rank){.left = RANKING_NOWHERE, .right = RANKING_NOWHERE};
}

/* --- what there is --- */

uint32_t ranking_count(const struct queue_ranking *ranking, uint32_t class)
{
    return class < ranking->ranks.count ? ranking->ranks.items[class].count : 0;
}

const struct queue_item *ranking_items(const struct queue_ranking *ranking, uint32_t class)
{
    assert(class < ranking->ranks.count);
    return ranking->ranks.items[class].items;
}

const struct queue_item *ranking_item(const struct queue_ranking *ranking, uint32_t class,
                                      uint32_t slot)
{
    assert(slot < ranking->positions.count);
    return &ranking_items(ranking, class)[ranking->positions.items[slot].at];
}

const struct queue_item *ranking_shortest(const struct queue_ranking *ranking, uint32_t class)
{
    assert(ranking_count(ranking, class) > 0);
    return ranking_item(ranking, class, ranking->ranks.items[class].by_limit[0]);
}

size_t ranking_memory(const struct queue_ranking *ranking)
{
    size_t size = ranking->ranks.room * sizeof *ranking->ranks.items +
                  ranking->positions.room * sizeof *ranking->positions.items;
    for (size_t i = 0; i < ranking->ranks.count; i++)
        size += ranking->ranks.items[i].room * (sizeof(struct queue_item) + sizeof(uint32_t));
    return size;
}

/* --- life --- */

void ranking_init(struct queue_ranking *ranking, const struct queue_order *order)
{
    assert(order);
    *ranking = (struct queue_ranking){.order = order, .root = RANKING_NOWHERE};
}

void ranking_copy(struct queue_ranking *to, const struct queue_ranking *from)
{
    ranking_init(to, from->order);
    ARRAY_COPY(&to->positions, &from->positions);
    ARRAY_COPY(&to->ranks, &from->ranks);
    to->root = from->root;
    for (size_t i = 0; i < to->ranks.count; i++) {
        struct queue_rank *rank = &to->ranks.items[i];
        rank->items = mem_copy_array(rank->items, rank->count, sizeof *rank->items);
        rank->by_limit = mem_copy_array(rank->by_limit, rank->count, sizeof *rank->by_limit);
        rank->room = rank->count;
    }
}

/* Large tables shrink from their ends: to give all of their pages back at once takes a millisecond.
 */
bool ranking_release_some(struct queue_ranking *ranking, size_t jobs)
{
    while (ranking->ranks.count > 0 && jobs > 0) {
        struct queue_rank *last = &ranking->ranks.items[ranking->ranks.count - 1];
        if (last->count > jobs) {
            last->count -= (uint32_t)jobs;
            rank_room_set(last, last->count);
            return false;
        }
        jobs -= last->count ? last->count : 1;
        mem_free(last->items);
        mem_free(last->by_limit);
        ranking->ranks.count--;
    }
    if (ranking->ranks.count > 0) {
        ranking->ranks.room = ranking->ranks.count;
        ranking->ranks.items = mem_realloc(
            ranking->ranks.items, mem_size(ranking->ranks.room, sizeof *ranking->ranks.items));
        return false;
    }
    ARRAY_FREE(&ranking->ranks);
    ARRAY_FREE(&ranking->positions);
    ranking->root = RANKING_NOWHERE;
    return true;
}

void ranking_release(struct queue_ranking *ranking)
{
    const bool is_over = ranking_release_some(ranking, SIZE_MAX);
    assert(is_over);
    (void)is_over;
}
