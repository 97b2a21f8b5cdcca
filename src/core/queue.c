#include "core/queue.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

#define NOWHERE UINT32_MAX

struct class
{
    char *shape; /* NULL: free entry */
    size_t shape_length;
    char *reason;
    struct queue_item *items; /* binary heap */
    size_t count, room;
    uint32_t ready_at; /* place in the heap of ready classes, or NOWHERE: blocked */
};

/* Where a slot stands. */
struct position {
    uint32_t class, at;
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
    /* classes that may have something to start, a heap by their first jobs */
    struct {
        uint32_t *items;
        size_t count, room;
    } ready;
    size_t total;
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

/* --- the heap of ready classes --- */

static bool class_is_before(const struct queue *queue, uint32_t a, uint32_t b)
{
    return queue_is_before(queue, &queue->classes.items[a].items[0],
                           &queue->classes.items[b].items[0]);
}

static void ready_put(struct queue *queue, size_t at, uint32_t class)
{
    queue->ready.items[at] = class;
    queue->classes.items[class].ready_at = (uint32_t)at;
}

static void ready_up(struct queue *queue, size_t at)
{
    uint32_t class = queue->ready.items[at];
    while (at > 0 && class_is_before(queue, class, queue->ready.items[(at - 1) / 2])) {
        ready_put(queue, at, queue->ready.items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    ready_put(queue, at, class);
}

static void ready_down(struct queue *queue, size_t at)
{
    uint32_t class = queue->ready.items[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= queue->ready.count)
            break;
        if (child + 1 < queue->ready.count &&
            class_is_before(queue, queue->ready.items[child + 1], queue->ready.items[child]))
            child++;
        if (!class_is_before(queue, queue->ready.items[child], class))
            break;
        ready_put(queue, at, queue->ready.items[child]);
        at = child;
    }
    ready_put(queue, at, class);
}

static void ready_add(struct queue *queue, uint32_t class)
{
    assert(queue->classes.items[class].ready_at == NOWHERE);
    ARRAY_ADD(&queue->ready);
    ready_put(queue, queue->ready.count - 1, class);
    ready_up(queue, queue->ready.count - 1);
}

static void ready_remove(struct queue *queue, uint32_t class)
{
    uint32_t at = queue->classes.items[class].ready_at;
    if (at == NOWHERE)
        return;
    queue->classes.items[class].ready_at = NOWHERE;
    uint32_t last = queue->ready.items[--queue->ready.count];
    if (last == class)
        return;
    ready_put(queue, at, last);
    ready_up(queue, at);
    ready_down(queue, queue->classes.items[last].ready_at);
}

/* The first job of the class has changed. */
static void ready_fix(struct queue *queue, uint32_t class)
{
    if (queue->classes.items[class].ready_at == NOWHERE)
        return;
    ready_up(queue, queue->classes.items[class].ready_at);
    ready_down(queue, queue->classes.items[class].ready_at);
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
    struct queue_item item = class->items[at];
    while (at > 0 && queue_is_before(queue, &item, &class->items[(at - 1) / 2])) {
        item_put(queue, class, at, &class->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    item_put(queue, class, at, &item);
}

static void item_down(struct queue *queue, struct class *class, size_t at)
{
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
    *class = (struct class){.shape_length = shape.length, .ready_at = NOWHERE};
    class->shape = mem_alloc(shape.length + 1);
    memcpy(class->shape, shape.at, shape.length);
    text_map_set(&queue->shapes, (struct text){class->shape, shape.length}, at);
    return at;
}

static void class_drop(struct queue *queue, uint32_t at)
{
    struct class *class = &queue->classes.items[at];
    assert(class->count == 0 && class->ready_at == NOWHERE);
    text_map_remove(&queue->shapes, (struct text){class->shape, class->shape_length});
    mem_free(class->shape);
    mem_free(class->reason);
    mem_free(class->items);
    *class = (struct class){.ready_at = NOWHERE};
    if (at < queue->free_class)
        queue->free_class = at;
}

struct queue *queue_new(const struct queue_order *order)
{
    struct queue *queue = mem_zero(1, sizeof *queue);
    queue->order = order;
    return queue;
}

void queue_order_set(struct queue *queue, const struct queue_order *order)
{
    if (queue->order == order)
        return;
    queue->order = order;
    for (size_t i = 0; i < queue->classes.count; i++)
        for (size_t at = 1; at < queue->classes.items[i].count; at++)
            item_up(queue, &queue->classes.items[i], at);
    for (size_t at = 1; at < queue->ready.count; at++)
        ready_up(queue, at);
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->classes.count; i++) {
        mem_free(queue->classes.items[i].shape);
        mem_free(queue->classes.items[i].reason);
        mem_free(queue->classes.items[i].items);
    }
    ARRAY_FREE(&queue->classes);
    ARRAY_FREE(&queue->positions);
    ARRAY_FREE(&queue->ready);
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
    to->ready.items = bytes_copy(from->ready.items, from->ready.count * sizeof *from->ready.items);
    to->ready.count = to->ready.room = from->ready.count;
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

uint32_t queue_push(struct queue *queue, const struct queue_item *item, struct text shape)
{
    queue_remove(queue, item->slot);
    while (queue->positions.count <= item->slot)
        *ARRAY_ADD(&queue->positions) = (struct position){NOWHERE, NOWHERE};
    uint32_t at = class_find(queue, shape);
    struct class *class = &queue->classes.items[at];
    queue->positions.items[item->slot].class = at;
    ARRAY_ADD(class);
    class->items[class->count - 1] = *item;
    item_up(queue, class, class->count - 1);
    queue->total++;
    if (class->count == 1)
        ready_add(queue, at);
    else
        ready_fix(queue, at);
    return at;
}

void queue_remove(struct queue *queue, uint32_t slot)
{
    if (!queue_has(queue, slot))
        return;
    struct position position = queue->positions.items[slot];
    queue->positions.items[slot] = (struct position){NOWHERE, NOWHERE};
    queue->total--;
    struct class *class = &queue->classes.items[position.class];
    if (class->count == 1) {
        ready_remove(queue, position.class);
        class->count = 0;
        class_drop(queue, position.class);
        return;
    }
    struct queue_item last = class->items[--class->count];
    if (position.at < class->count) {
        item_put(queue, class, position.at, &last);
        item_up(queue, class, position.at);
        item_down(queue, class, queue->positions.items[last.slot].at);
    }
    ready_fix(queue, position.class);
}

bool queue_first(struct queue *queue, struct queue_item *item, uint32_t *class)
{
    if (!queue->ready.count)
        return false;
    *class = queue->ready.items[0];
    *item = queue->classes.items[*class].items[0];
    return true;
}

void queue_block(struct queue *queue, uint32_t at, const char *reason)
{
    struct class *class = &queue->classes.items[at];
    assert(class->shape);
    ready_remove(queue, at);
    if (class->reason && (class->reason == reason || strcmp(class->reason, reason) == 0))
        return;
    mem_free(class->reason);
    class->reason = mem_copy(reason);
}

void queue_unblock(struct queue *queue)
{
    for (size_t i = 0; i < queue->classes.count; i++)
        if (queue->classes.items[i].shape && queue->classes.items[i].ready_at == NOWHERE)
            ready_add(queue, (uint32_t)i);
}

bool queue_is_blocked(const struct queue *queue, uint32_t class)
{
    return queue->classes.items[class].ready_at == NOWHERE;
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
                  queue->positions.room * sizeof *queue->positions.items +
                  queue->ready.room * sizeof *queue->ready.items;
    for (size_t i = 0; i < queue->classes.count; i++)
        size += queue->classes.items[i].room * sizeof(struct queue_item) +
                queue->classes.items[i].shape_length;
    return size;
}
