#include "core/queue.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

#define NOWHERE UINT32_MAX

/* Of a class, or the least of a subtree: the smallest of each, and the highest priority. */
struct reach {
    uint64_t tried;
    uint64_t closed; /* UINT64_MAX: none of them is */
    struct queue_need need;
    int32_t priority;
};

struct class
{
    char *shape; /* NULL: free entry */
    size_t shape_length;
    char *reason;
    uint64_t topic;
    struct queue_item *items; /* binary heap */
    uint32_t *by_limit;       /* their slots, a binary heap by time limits */
    size_t count, room;
    bool is_for_limit; /* blocked, but not for jobs with shorter time limits */
    struct queue_need need;
    uint64_t tried;  /* the change before which it was found to be hopeless; 0: never */
    uint64_t closed; /* the opening before which it was closed; 0: it is not */
    uint32_t left, right;
    struct reach least; /* of the subtree */
};

/* Where a slot stands. */
struct position {
    uint32_t class, at, limit_at;
};

struct queue {
    struct {
        struct class *items;
        size_t count, room;
    } classes;
    struct text_map shapes;
    uint32_t free_class; /* an entry that may be free, to begin the search with */
    struct {
        struct position *items;
        size_t count, room;
    } positions;
    uint32_t root;
    uint64_t change;  /* classes tried before it may have something to start */
    uint64_t opening; /* classes closed before it may have been opened */
    size_t total;
    uint32_t class_count;
    const struct queue_order *order;
};

/* --- orders --- */

static bool fifo_is_before(const struct queue_item *a, const struct queue_item *b)
{
    if (a->submitted_ms != b->submitted_ms)
        return a->submitted_ms < b->submitted_ms;
    return a->id < b->id;
}

static bool priority_is_before(const struct queue_item *a, const struct queue_item *b)
{
    return a->priority != b->priority ? a->priority > b->priority : fifo_is_before(a, b);
}

static bool smallest_is_before(const struct queue_item *a, const struct queue_item *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->gpus != b->gpus)
        return a->gpus < b->gpus;
    return a->tasks != b->tasks ? a->tasks < b->tasks : fifo_is_before(a, b);
}

const struct queue_order *queue_order_named(const char *name)
{
    static const struct queue_order orders[] = {{"priority", priority_is_before},
                                                {"smallest", smallest_is_before},
                                                {"fifo", fifo_is_before}};
    for (size_t i = 0; i < COUNT_OF(orders); i++)
        if (!strcmp(orders[i].name, name))
            return &orders[i];
    return NULL;
}

bool queue_is_before(const struct queue *queue, const struct queue_item *a,
                     const struct queue_item *b)
{
    return queue->order->is_before(a, b);
}

/* --- the tree of classes: a treap, its second keys made of the classes' numbers --- */

static uint64_t tree_rank(uint32_t class)
{
    uint64_t rank = (class + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    rank = (rank ^ rank >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return rank ^ rank >> 29;
}

static const struct queue_item *head(const struct queue *queue, uint32_t class)
{
    return &queue->classes.items[class].items[0];
}

static bool class_is_before(const struct queue *queue, uint32_t a, uint32_t b)
{
    return queue_is_before(queue, head(queue, a), head(queue, b));
}

static void reach_add(struct reach *sum, const struct reach *other)
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

/* A class that has never been tried needs nothing: it is tried once, for its reason. No room is
 * enough for one that is closed, so that it does not lead a search for others astray. */
static struct reach class_reach(const struct class *class)
{
    static const struct reach closed = {
        UINT64_MAX, UINT64_MAX, {UINT32_MAX, UINT64_MAX, UINT64_MAX}, INT32_MIN};
    assert(class->count > 0);
    struct reach reach = {class->tried, UINT64_MAX, {0}, class->items[0].priority};
    if (class->closed) {
        reach = closed;
        reach.closed = class->closed;
        return reach;
    }
    if (class->tried)
        reach.need = class->need;
    return reach;
}

/* The children of the class have changed, or it has. */
static void tree_sum(struct queue *queue, uint32_t at)
{
    assert(at < queue->classes.count);
    struct class *class = &queue->classes.items[at];
    class->least = class_reach(class);
    if (class->left != NOWHERE)
        reach_add(&class->least, &queue->classes.items[class->left].least);
    if (class->right != NOWHERE)
        reach_add(&class->least, &queue->classes.items[class->right].least);
}

/* All of `a` stands before all of `b`. */
static uint32_t tree_join(struct queue *queue, uint32_t a, uint32_t b)
{
    assert((a == NOWHERE || a < queue->classes.count) &&
           (b == NOWHERE || b < queue->classes.count));
    if (a == NOWHERE || b == NOWHERE)
        return a == NOWHERE ? b : a;
    struct class *classes = queue->classes.items;
    uint32_t top = tree_rank(a) > tree_rank(b) ? a : b;
    if (top == a)
        classes[a].right = tree_join(queue, classes[a].right, b);
    else
        classes[b].left = tree_join(queue, a, classes[b].left);
    tree_sum(queue, top);
    return top;
}

/* What stands before `class`, and what behind it. */
static void tree_split(struct queue *queue, uint32_t at, uint32_t class, uint32_t *before,
                       uint32_t *behind)
{
    assert(at == NOWHERE || at < queue->classes.count);
    if (at == NOWHERE) {
        *before = *behind = NOWHERE;
        return;
    }
    struct class *top = &queue->classes.items[at];
    if (class_is_before(queue, at, class)) {
        tree_split(queue, top->right, class, &top->right, behind);
        *before = at;
    } else {
        tree_split(queue, top->left, class, before, &top->left);
        *behind = at;
    }
    tree_sum(queue, at);
}

static void tree_add(struct queue *queue, uint32_t class)
{
    assert(class < queue->classes.count);
    uint32_t before, behind;
    queue->classes.items[class].left = queue->classes.items[class].right = NOWHERE;
    tree_sum(queue, class);
    tree_split(queue, queue->root, class, &before, &behind);
    queue->root = tree_join(queue, tree_join(queue, before, class), behind);
}

/* The subtree without `class`, or, when it is not to be removed, with sums that know its changes.
 */
static uint32_t tree_update(struct queue *queue, uint32_t at, uint32_t class, bool is_removed)
{
    assert(at != NOWHERE);
    struct class *top = &queue->classes.items[at];
    if (at == class && is_removed)
        return tree_join(queue, top->left, top->right);
    if (at != class && class_is_before(queue, class, at))
        top->left = tree_update(queue, top->left, class, is_removed);
    else if (at != class)
        top->right = tree_update(queue, top->right, class, is_removed);
    tree_sum(queue, at);
    return at;
}

static void tree_remove(struct queue *queue, uint32_t class)
{
    queue->root = tree_update(queue, queue->root, class, true);
}

struct queue_search {
    const struct queue *queue;
    const struct queue_room *room; /* NULL: whatever it needs */
    uint32_t visits;
};

enum { VISITS_MAX = 256 }; /* then anything that is not blocked will do */

static bool reach_is_in(const struct queue_search *search, const struct reach *reach)
{
    const struct queue_room *room = search->visits < VISITS_MAX ? search->room : NULL;
    if (reach->tried >= search->queue->change && reach->closed >= search->queue->opening)
        return false;
    return !room || reach->priority > room->lowest ||
           (reach->need.task_gpus <= room->free.task_gpus && reach->need.gpus <= room->free.gpus &&
            reach->need.cpus <= room->free.cpus);
}

/* The first behind `after` in this subtree that is not blocked and fits. */
static uint32_t tree_find(struct queue_search *search, uint32_t at, const struct queue_item *after)
{
    assert(at == NOWHERE || at < search->queue->classes.count);
    const struct queue *queue = search->queue;
    if (at == NOWHERE || !reach_is_in(search, &queue->classes.items[at].least))
        return NOWHERE;
    const struct class *class = &queue->classes.items[at];
    bool is_behind = !after || queue_is_before(queue, after, &class->items[0]);
    search->visits++;
    if (is_behind) {
        uint32_t found = tree_find(search, class->left, after);
        struct reach own = class_reach(class);
        if (found != NOWHERE || reach_is_in(search, &own))
            return found != NOWHERE ? found : at;
    }
    return tree_find(search, class->right, is_behind ? NULL : after);
}

/* --- the heap of one class --- */

static void item_put(struct queue *queue, struct class *class, size_t at,
                     const struct queue_item *item)
{
    class->items[at] = *item;
    queue->positions.items[item->slot].at = (uint32_t)at;
}

static void item_up(struct queue *queue, struct class *class, size_t at)
{
    assert(at < class->count && queue->order);
    struct queue_item item = class->items[at];
    while (at > 0 && queue_is_before(queue, &item, &class->items[(at - 1) / 2])) {
        item_put(queue, class, at, &class->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    item_put(queue, class, at, &item);
}

static void item_down(struct queue *queue, struct class *class, size_t at)
{
    assert(at < class->count && queue->order);
    struct queue_item item = class->items[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= class->count)
            break;
        if (child + 1 < class->count &&
            queue_is_before(queue, &class->items[child + 1], &class->items[child]))
            child++;
        if (!queue_is_before(queue, &class->items[child], &item))
            break;
        item_put(queue, class, at, &class->items[child]);
        at = child;
    }
    item_put(queue, class, at, &item);
}

/* --- the heap of one class by time limits --- */

static bool limit_is_before(const struct queue *queue, const struct class *class, uint32_t a,
                            uint32_t b)
{
    assert(a != b && class->count > 0);
    const struct queue_item *x = &class->items[queue->positions.items[a].at];
    const struct queue_item *y = &class->items[queue->positions.items[b].at];
    if (x->limit_s != y->limit_s)
        return x->limit_s - 1 < y->limit_s - 1; /* none, 0, is the longest */
    return queue_is_before(queue, x, y);
}

static void limit_put(struct queue *queue, struct class *class, size_t at, uint32_t slot)
{
    class->by_limit[at] = slot;
    queue->positions.items[slot].limit_at = (uint32_t)at;
}

static void limit_up(struct queue *queue, struct class *class, size_t at)
{
    assert(at < class->count && queue->order);
    uint32_t slot = class->by_limit[at];
    while (at > 0 && limit_is_before(queue, class, slot, class->by_limit[(at - 1) / 2])) {
        limit_put(queue, class, at, class->by_limit[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    limit_put(queue, class, at, slot);
}

static void limit_down(struct queue *queue, struct class *class, size_t at, size_t count)
{
    assert(at < count && count <= class->count && queue->order);
    uint32_t slot = class->by_limit[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            limit_is_before(queue, class, class->by_limit[child + 1], class->by_limit[child]))
            child++;
        if (!limit_is_before(queue, class, class->by_limit[child], slot))
            break;
        limit_put(queue, class, at, class->by_limit[child]);
    }
    limit_put(queue, class, at, slot);
}

/* While the slot's item still has its place. */
static void limit_remove(struct queue *queue, struct class *class, uint32_t slot)
{
    size_t at = queue->positions.items[slot].limit_at, count = class->count - 1;
    uint32_t last = class->by_limit[count];
    if (at == count)
        return;
    limit_put(queue, class, at, last);
    limit_up(queue, class, at);
    limit_down(queue, class, queue->positions.items[last].limit_at, count);
}

/* --- classes --- */

static uint32_t class_find(struct queue *queue, struct text shape)
{
    uint32_t at = text_map_get(&queue->shapes, shape);
    if (at != MAP_NONE)
        return at;
    at = queue->free_class;
    while (at < queue->classes.count && queue->classes.items[at].shape)
        at++;
    if (at == queue->classes.count)
        ARRAY_ADD(&queue->classes);
    queue->free_class = at + 1;
    struct class *class = &queue->classes.items[at];
    *class = (struct class){.shape_length = shape.length, .left = NOWHERE, .right = NOWHERE};
    class->shape = mem_alloc(shape.length + 1);
    memcpy(class->shape, shape.at, shape.length);
    text_map_set(&queue->shapes, (struct text){class->shape, shape.length}, at);
    queue->class_count++;
    return at;
}

static void class_drop(struct queue *queue, uint32_t at)
{
    struct class *class = &queue->classes.items[at];
    assert(class->count == 0);
    text_map_remove(&queue->shapes, (struct text){class->shape, class->shape_length});
    mem_free(class->shape);
    mem_free(class->reason);
    mem_free(class->items);
    mem_free(class->by_limit);
    *class = (struct class){0};
    queue->class_count--;
    if (at < queue->free_class)
        queue->free_class = at;
}

struct queue *queue_new(const struct queue_order *order)
{
    assert(order);
    struct queue *queue = mem_zero(1, sizeof *queue);
    queue->order = order;
    queue->root = NOWHERE;
    queue->change = queue->opening = 1;
    return queue;
}

void queue_order_set(struct queue *queue, const struct queue_order *order)
{
    assert(order);
    if (queue->order == order)
        return;
    queue->order = order;
    queue->root = NOWHERE;
    for (size_t i = 0; i < queue->classes.count; i++) {
        struct class *class = &queue->classes.items[i];
        for (size_t at = 1; at < class->count; at++)
            item_up(queue, class, at);
        for (size_t at = 1; at < class->count; at++)
            limit_up(queue, class, at);
        if (class->shape)
            tree_add(queue, (uint32_t)i);
    }
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->classes.count; i++) {
        mem_free(queue->classes.items[i].shape);
        mem_free(queue->classes.items[i].reason);
        mem_free(queue->classes.items[i].items);
        mem_free(queue->classes.items[i].by_limit);
    }
    ARRAY_FREE(&queue->classes);
    ARRAY_FREE(&queue->positions);
    text_map_release(&queue->shapes);
    mem_free(queue);
}

static void *bytes_copy(const void *bytes, size_t size)
{
    if (!bytes)
        return NULL;
    void *copy = mem_alloc(size);
    memcpy(copy, bytes, size);
    return copy;
}

struct queue *queue_copy(const struct queue *from)
{
    struct queue *to = queue_new(from->order);
    to->free_class = from->free_class;
    to->total = from->total;
    to->positions.items =
        bytes_copy(from->positions.items, from->positions.count * sizeof *from->positions.items);
    to->positions.count = to->positions.room = from->positions.count;
    to->root = from->root;
    to->change = from->change;
    to->opening = from->opening;
    to->class_count = from->class_count;
    ARRAY_RESERVE(&to->classes, from->classes.count);
    to->classes.count = from->classes.count;
    for (size_t i = 0; i < from->classes.count; i++) {
        const struct class *old = &from->classes.items[i];
        struct class *new = &to->classes.items[i];
        *new = *old;
        if (!old->shape)
            continue;
        new->shape = bytes_copy(old->shape, old->shape_length);
        new->reason = old->reason ? mem_copy(old->reason) : NULL;
        new->items = bytes_copy(old->items, old->count * sizeof *old->items);
        new->by_limit = bytes_copy(old->by_limit, old->count * sizeof *old->by_limit);
        new->room = old->count;
        text_map_set(&to->shapes, (struct text){new->shape, new->shape_length}, (uint32_t)i);
    }
    return to;
}

size_t queue_count(const struct queue *queue)
{
    return queue->total;
}

bool queue_has(const struct queue *queue, uint32_t slot)
{
    return slot < queue->positions.count && queue->positions.items[slot].class != NOWHERE;
}

/* The last item and the last place by limits, for `item`. */
static void class_grow(struct queue *queue, struct class *class, const struct queue_item *item)
{
    if (class->count == class->room) {
        class->room = class->room ? array_room_next(class->room, sizeof *class->items) : 1;
        class->items = mem_realloc(class->items, mem_size(class->room, sizeof *class->items));
        class->by_limit =
            mem_realloc(class->by_limit, mem_size(class->room, sizeof *class->by_limit));
    }
    size_t at = class->count++;
    item_put(queue, class, at, item);
    limit_put(queue, class, at, item->slot);
    item_up(queue, class, at);
    limit_up(queue, class, at);
}

uint32_t queue_push(struct queue *queue, const struct queue_item *item,
                    const struct queue_need *need, struct text shape)
{
    queue_remove(queue, item->slot);
    while (queue->positions.count <= item->slot)
        *ARRAY_ADD(&queue->positions) = (struct position){NOWHERE, NOWHERE, NOWHERE};
    uint32_t at = class_find(queue, shape);
    struct class *class = &queue->classes.items[at];
    bool is_head = !class->count || queue_is_before(queue, item, &class->items[0]);
    if (class->count && is_head)
        tree_remove(queue, at);
    if (!class->count)
        class->need = *need;
    queue->positions.items[item->slot].class = at;
    queue->total++;
    class_grow(queue, class, item);
    if (class->is_for_limit && class->by_limit[0] == item->slot)
        class->tried = 0;
    if (is_head)
        tree_add(queue, at);
    else if (!class->tried)
        tree_update(queue, queue->root, at, false);
    return at;
}

void queue_remove(struct queue *queue, uint32_t slot)
{
    if (!queue_has(queue, slot))
        return;
    struct position position = queue->positions.items[slot];
    struct class *class = &queue->classes.items[position.class];
    queue->total--;
    if (position.at == 0)
        tree_remove(queue, position.class);
    limit_remove(queue, class, slot);
    queue->positions.items[slot] = (struct position){NOWHERE, NOWHERE, NOWHERE};
    struct queue_item last = class->items[--class->count];
    if (position.at < class->count) {
        item_put(queue, class, position.at, &last);
        item_up(queue, class, position.at);
        item_down(queue, class, queue->positions.items[last.slot].at);
    }
    if (!class->count)
        class_drop(queue, position.class);
    else if (position.at == 0)
        tree_add(queue, position.class);
}

bool queue_next(const struct queue *queue, const struct queue_item *after,
                const struct queue_room *room, struct queue_item *item, uint32_t *class,
                uint32_t *work)
{
    struct queue_search search = {queue, room, 0};
    uint32_t found = tree_find(&search, queue->root, after);
    *work += search.visits;
    if (found == NOWHERE)
        return false;
    *class = found;
    *item = *head(queue, found);
    return true;
}

bool queue_first(const struct queue *queue, struct queue_item *item, uint32_t *class)
{
    uint32_t work = 0;
    return queue_next(queue, NULL, NULL, item, class, &work);
}

struct queue_item queue_shortest(const struct queue *queue, uint32_t at)
{
    const struct class *class = &queue->classes.items[at];
    assert(class->count > 0);
    return class->items[queue->positions.items[class->by_limit[0]].at];
}

static void class_stop(struct queue *queue, uint32_t at, const char *reason, uint64_t topic)
{
    struct class *class = &queue->classes.items[at];
    assert(class->shape);
    class->tried = queue->change;
    class->topic = topic;
    tree_update(queue, queue->root, at, false);
    if (class->reason && (class->reason == reason || strcmp(class->reason, reason) == 0))
        return;
    mem_free(class->reason);
    class->reason = mem_copy(reason);
}

void queue_block(struct queue *queue, uint32_t at, const char *reason, uint64_t topic,
                 bool is_for_limit)
{
    assert(at < queue->classes.count);
    queue->classes.items[at].is_for_limit = is_for_limit;
    queue->classes.items[at].closed = 0;
    class_stop(queue, at, reason, topic);
}

void queue_close(struct queue *queue, uint32_t at, const char *reason, uint64_t topic)
{
    assert(at < queue->classes.count);
    queue->classes.items[at].is_for_limit = false;
    queue->classes.items[at].closed = queue->opening;
    class_stop(queue, at, reason, topic);
}

void queue_reopen(struct queue *queue)
{
    queue->opening++;
}

void queue_unblock(struct queue *queue)
{
    queue->change++;
}

bool queue_is_blocked(const struct queue *queue, uint32_t class)
{
    const struct class *of = &queue->classes.items[class];
    return of->closed ? of->closed >= queue->opening : of->tried >= queue->change;
}

uint32_t queue_class_count(const struct queue *queue)
{
    return queue->class_count;
}

uint32_t queue_class_of(const struct queue *queue, uint32_t slot)
{
    assert(queue_has(queue, slot));
    return queue->positions.items[slot].class;
}

const char *queue_reason(const struct queue *queue, uint32_t class)
{
    const char *reason = queue->classes.items[class].reason;
    return reason ? reason : "";
}

uint64_t queue_topic(const struct queue *queue, uint32_t class)
{
    return queue->classes.items[class].topic;
}

size_t queue_list(const struct queue *queue, uint32_t *slots)
{
    size_t count = 0;
    for (size_t i = 0; slots && i < queue->classes.count; i++)
        for (size_t j = 0; j < queue->classes.items[i].count; j++)
            slots[count++] = queue->classes.items[i].items[j].slot;
    return queue->total;
}

size_t queue_memory(const struct queue *queue)
{
    size_t size = sizeof *queue + queue->classes.room * sizeof *queue->classes.items +
                  queue->positions.room * sizeof *queue->positions.items;
    for (size_t i = 0; i < queue->classes.count; i++)
        size += queue->classes.items[i].room * (sizeof(struct queue_item) + sizeof(uint32_t)) +
                queue->classes.items[i].shape_length;
    return size;
}
