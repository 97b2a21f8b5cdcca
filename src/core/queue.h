/* queue.h — waiting jobs of all virtual clusters, in scheduling order.
 *
 * Pure. Knows jobs by a slot number of the caller; the jobs belong to the caller. The order is a
 * struct of functions; there are three.
 *
 * Jobs that ask for the same (virtual cluster, priority, demand, time limit: the caller's `shape`,
 * opaque bytes) form a class: when its first cannot be placed none of it can, until something is
 * freed. So a pass costs one search a class, not one a job: 100,000 waiting jobs of ten shapes cost
 * ten searches. queue_block says "nothing fits"; queue_unblock forgets all of that.
 */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

struct queue_item {
    uint32_t slot; /* the caller's; at most one place in the queue */
    uint32_t id;
    int32_t priority;
    int64_t submitted_ms;
    uint64_t gpus; /* that it asks for in all, when it is queued */
    uint32_t tasks;
};

/* Which job goes first. */
struct queue_order {
    const char *name;
    /* A strict total order that depends on the items alone. */
    bool (*is_before)(const struct queue_item *a, const struct queue_item *b);
};

/* "priority": higher priority first, then earlier submission, then smaller id. "smallest": as that,
 * but within a priority fewer GPUs first, then fewer tasks. "fifo": earlier submission, whatever
 * the priority. NULL: none of these. */
const struct queue_order *queue_order_named(const char *name);

struct queue *queue_new(const struct queue_order *order); /* empty; the caller's */
/* From now on in this order. */
void queue_order_set(struct queue *queue, const struct queue_order *order);
bool queue_is_before(const struct queue *queue, const struct queue_item *a,
                     const struct queue_item *b);
struct queue *queue_copy(const struct queue *queue); /* deep, the reasons included */
void queue_free(struct queue *queue);

size_t queue_count(const struct queue *queue); /* jobs */
bool queue_has(const struct queue *queue, uint32_t slot);

/* Into the class of `shape`; a slot already queued is moved. Returns the class. */
uint32_t queue_push(struct queue *queue, const struct queue_item *item, struct text shape);
/* Out of the queue; nothing when it is not there. */
void queue_remove(struct queue *queue, uint32_t slot);

/* A pass: the first job, in order, of all classes that are not blocked; false: none is left.
 * The job stays queued: remove it when it is placed, else block or skip its class. */
bool queue_first(struct queue *queue, struct queue_item *item, uint32_t *class);
/* Not again before queue_unblock. `reason` is copied: why nothing of this class can start. */
void queue_block(struct queue *queue, uint32_t class, const char *reason);
void queue_unblock(struct queue *queue);
bool queue_is_blocked(const struct queue *queue, uint32_t class);

uint32_t queue_class_of(const struct queue *queue, uint32_t slot);   /* it must be queued */
const char *queue_reason(const struct queue *queue, uint32_t class); /* "" unknown */

/* All queued, in no order; the order depends on history alone. Null `items`: counts. */
size_t queue_list(const struct queue *queue, uint32_t *slots);

size_t queue_memory(const struct queue *queue); /* bytes */

#endif
