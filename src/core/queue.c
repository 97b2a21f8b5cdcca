#include "core/queue.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "core/queue_ranking.h"

#define NOWHERE UINT32_MAX

struct class
{
    char *shape; /* NULL: free entry */
    size_t shape_length;
    char *reason;
    uint64_t topic;
    bool is_for_limit; /* blocked, but not for jobs with shorter time limits */
    struct queue_need need;
    int32_t priority;
    uint64_t tried;  /* the change before which it was found to be hopeless; 0: never */
    uint64_t closed; /* the opening before which it was closed; 0: it is not */
};

struct queue {
    struct {
        struct class *items;
        size_t count, room;
    } classes;
    struct text_map shapes;
    uint32_t free_class; /* an entry that may be free, to begin the search with */
    struct {
        uint32_t *items; /* by slot; NOWHERE: it is not queued */
        size_t count, room;
    } class_of;
    struct queue_ranking now;
    struct queue_ranking next; /* in the order that was asked for; its order is NULL: in none … */
    uint32_t next_slot;        /* … it has the jobs of the slots before this one */
    struct {
        struct queue_ranking *items; /* of no use any more: some is freed now and then */
        size_t count, room;
    } past;
    uint64_t change;  /* classes tried before it may have something to start */
    uint64_t opening; /* classes closed before it may have been opened */
    size_t total;
    uint32_t class_count;
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
    return queue->now.order->is_before(a, b);
}

/* --- classes --- */

/* A class that has never been tried needs nothing: it is tried once, for its reason. No room is
 * enough for one that is closed, so that it does not lead a search for others astray. */
static struct queue_reach class_reach(const struct class *class)
{
    static const struct queue_reach closed = {
        UINT64_MAX, UINT64_MAX, {UINT32_MAX, UINT64_MAX, UINT64_MAX}, INT32_MIN};
    assert(class->shape);
    struct queue_reach reach = {class->tried, UINT64_MAX, {0}, class->priority};
    if (class->closed) {
        reach = closed;
        reach.closed = class->closed;
        return reach;
    }
    if (class->tried)
        reach.need = class->need;
    return reach;
}

static void class_changed(struct queue *queue, uint32_t at)
{
    const struct queue_reach reach = class_reach(&queue->classes.items[at]);
    ranking_reach_set(&queue->now, at, &reach);
    ranking_reach_set(&queue->next, at, &reach);
}

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
    *class = (struct class){.shape_length = shape.length};
    class->shape = mem_alloc(shape.length + 1);
    memcpy(class->shape, shape.at, shape.length);
    class->shape[shape.length] = '\0';
    text_map_set(&queue->shapes, (struct text){class->shape, shape.length}, at);
    queue->class_count++;
    return at;
}

static void class_drop(struct queue *queue, uint32_t at)
{
    struct class *class = &queue->classes.items[at];
    ranking_drop(&queue->now, at);
    ranking_drop(&queue->next, at);
    text_map_remove(&queue->shapes, (struct text){class->shape, class->shape_length});
    mem_free(class->shape);
    mem_free(class->reason);
    *class = (struct class){0};
    queue->class_count--;
    if (at < queue->free_class)
        queue->free_class = at;
}

struct queue *queue_new(const struct queue_order *order)
{
    struct queue *queue = mem_zero(1, sizeof *queue);
    ranking_init(&queue->now, order);
    queue->change = queue->opening = 1;
    return queue;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->classes.count; i++) {
        mem_free(queue->classes.items[i].shape);
        mem_free(queue->classes.items[i].reason);
    }
    ranking_release(&queue->now);
    ranking_release(&queue->next);
    for (size_t i = 0; i < queue->past.count; i++)
        ranking_release(&queue->past.items[i]);
    ARRAY_FREE(&queue->past);
    ARRAY_FREE(&queue->classes);
    ARRAY_FREE(&queue->class_of);
    text_map_release(&queue->shapes);
    mem_free(queue);
}

struct queue *queue_copy(const struct queue *from)
{
    struct queue *to = queue_new(from->now.order);
    to->free_class = from->free_class;
    to->total = from->total;
    ARRAY_COPY(&to->class_of, &from->class_of);
    ranking_copy(&to->now, &from->now);
    if (queue_order_changes(from))
        ranking_copy(&to->next, &from->next);
    to->next_slot = from->next_slot;
    to->change = from->change;
    to->opening = from->opening;
    to->class_count = from->class_count;
    ARRAY_COPY(&to->classes, &from->classes);
    for (size_t i = 0; i < to->classes.count; i++) {
        struct class *class = &to->classes.items[i];
        if (!class->shape)
            continue;
        class->shape = mem_copy_array(class->shape, class->shape_length + 1, 1);
        class->reason = class->reason ? mem_copy(class->reason) : NULL;
        text_map_set(&to->shapes, (struct text){class->shape, class->shape_length}, (uint32_t)i);
    }
    return to;
}

/* --- another order --- */

enum { /* in units of the caller's work, of about a quarter of a microsecond */
       WORK_OF_JOB = 1,
       WORK_OF_FIRST = 8, /* its class moves in the tree */
       WORK_OF_PAST = 2,  /* it is freed, with its class */
       LISTED_PER_WORK = 2,
};

bool queue_order_changes(const struct queue *queue)
{
    return queue->next.order != NULL;
}

static bool is_in_next(const struct queue *queue, uint32_t slot)
{
    return queue_order_changes(queue) && slot < queue->next_slot;
}

void queue_order_set(struct queue *queue, const struct queue_order *order)
{
    assert(order);
    if (order == (queue_order_changes(queue) ? queue->next.order : queue->now.order))
        return;
    if (queue_order_changes(queue))
        *ARRAY_ADD(&queue->past) = queue->next;
    queue->next = (struct queue_ranking){0};
    queue->next_slot = 0;
    if (order != queue->now.order)
        ranking_init(&queue->next, order);
}

/* The next slot has its turn. */
static uint32_t next_take(struct queue *queue)
{
    const uint32_t slot = queue->next_slot++, class = queue->class_of.items[slot];
    if (class == NOWHERE)
        return slot % LISTED_PER_WORK == 0;
    const struct queue_reach reach = class_reach(&queue->classes.items[class]);
    /* several large heaps would grow in one step: to move them is what takes long */
    ranking_reserve(&queue->next, class, ranking_count(&queue->now, class));
    const bool is_first =
        ranking_push(&queue->next, class, ranking_item(&queue->now, class, slot), &reach);
    return is_first ? WORK_OF_FIRST : WORK_OF_JOB;
}

static void next_decides(struct queue *queue)
{
    assert(queue->next_slot == queue->class_of.count);
    *ARRAY_ADD(&queue->past) = queue->now;
    queue->now = queue->next;
    queue->next = (struct queue_ranking){0};
    queue->next_slot = 0;
}

/* The table of classes is made first, so that no job has to make much of it. */
bool queue_order_go_on(struct queue *queue, uint32_t work)
{
    if (!queue_order_changes(queue))
        return false;
    for (uint32_t done = 0; done < work;) {
        const size_t covered = queue->next.ranks.count;
        if (covered < queue->classes.count) {
            ranking_cover(&queue->next, (uint32_t)covered);
            done++;
        } else if (queue->next_slot < queue->class_of.count) {
            done += next_take(queue);
        } else {
            next_decides(queue);
            return true;
        }
    }
    return false;
}

void queue_tidy(struct queue *queue, uint32_t work)
{
    if (!queue->past.count)
        return;
    struct queue_ranking *last = &queue->past.items[queue->past.count - 1];
    queue->past.count -= ranking_release_some(last, work / WORK_OF_PAST + 1);
}

/* --- jobs --- */

size_t queue_count(const struct queue *queue)
{
    return queue->total;
}

bool queue_has(const struct queue *queue, uint32_t slot)
{
    return slot < queue->class_of.count && queue->class_of.items[slot] != NOWHERE;
}

uint32_t queue_push(struct queue *queue, const struct queue_item *item,
                    const struct queue_need *need, struct text shape)
{
    queue_remove(queue, item->slot);
    while (queue->class_of.count <= item->slot)
        *ARRAY_ADD(&queue->class_of) = NOWHERE;
    const uint32_t at = class_find(queue, shape);
    struct class *class = &queue->classes.items[at];
    if (!ranking_count(&queue->now, at)) {
        class->need = *need;
        class->priority = item->priority;
    }
    queue->class_of.items[item->slot] = at;
    queue->total++;
    const struct queue_reach reach = class_reach(class);
    ranking_push(&queue->now, at, item, &reach);
    if (is_in_next(queue, item->slot))
        ranking_push(&queue->next, at, item, &reach);
    if (class->is_for_limit && ranking_shortest(&queue->now, at)->slot == item->slot) {
        class->tried = 0;
        class_changed(queue, at);
    }
    return at;
}

void queue_remove(struct queue *queue, uint32_t slot)
{
    if (!queue_has(queue, slot))
        return;
    const uint32_t class = queue->class_of.items[slot];
    queue->total--;
    ranking_remove(&queue->now, class, slot);
    if (is_in_next(queue, slot))
        ranking_remove(&queue->next, class, slot);
    queue->class_of.items[slot] = NOWHERE;
    if (!ranking_count(&queue->now, class))
        class_drop(queue, class);
}

bool queue_next(const struct queue *queue, const struct queue_item *after,
                const struct queue_room *room, struct queue_item *item, uint32_t *class,
                uint32_t *work)
{
    struct ranking_search search = {&queue->now, room, queue->change, queue->opening, 0};
    uint32_t found = ranking_find(&search, after);
    *work += search.visits;
    if (found == RANKING_NOWHERE)
        return false;
    *class = found;
    *item = ranking_items(&queue->now, found)[0];
    return true;
}

bool queue_first(const struct queue *queue, struct queue_item *item, uint32_t *class)
{
    uint32_t work = 0;
    return queue_next(queue, NULL, NULL, item, class, &work);
}

struct queue_item queue_shortest(const struct queue *queue, uint32_t class)
{
    return *ranking_shortest(&queue->now, class);
}

static void class_stop(struct queue *queue, uint32_t at, const char *reason, uint64_t topic)
{
    struct class *class = &queue->classes.items[at];
    assert(class->shape);
    class->tried = queue->change;
    class->topic = topic;
    class_changed(queue, at);
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
    return queue->class_of.items[slot];
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
        for (uint32_t j = 0; j < ranking_count(&queue->now, (uint32_t)i); j++)
            slots[count++] = ranking_items(&queue->now, (uint32_t)i)[j].slot;
    return queue->total;
}

size_t queue_memory(const struct queue *queue)
{
    size_t size = sizeof *queue + queue->classes.room * sizeof *queue->classes.items +
                  queue->class_of.room * sizeof *queue->class_of.items +
                  ranking_memory(&queue->now) + ranking_memory(&queue->next);
    for (size_t i = 0; i < queue->classes.count; i++)
        size += queue->classes.items[i].shape_length;
    for (size_t i = 0; i < queue->past.count; i++)
        size += ranking_memory(&queue->past.items[i]);
    return size;
}
