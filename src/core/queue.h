/* queue.h — waiting jobs of all virtual clusters, in scheduling order.
 *
 * Pure. Knows jobs by a slot number of the caller; the jobs belong to the caller. The order is a
 * struct of functions; there are three.
 *
 * Jobs that ask for the same (virtual cluster, priority, demand: the caller's `shape`, opaque
 * bytes) form a class: when its first cannot be placed none of it can, until something is freed. So
 * a pass costs one search a class, not one a job: 100,000 waiting jobs of ten shapes cost ten
 * searches. queue_block says "nothing fits"; queue_unblock forgets all of that, at no cost.
 *
 * queue_close says "nothing of this class may start": it is passed over, at no cost, until
 * queue_reopen, which lets all closed classes be tried once more.
 *
 * Classes for which there is certainly no room cost nothing, however many they are: the balanced
 * tree in which they stand (queue_ranking.h) knows the least that any of a subtree needs.
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
    uint64_t limit_s; /* its time limit; 0: none */
};

/* What a class needs at least, in the caller's units. */
struct queue_need {
    uint32_t task_gpus; /* on one node */
    uint64_t gpus, cpus;
};

/* What there is at most. Jobs of a priority above `lowest` may take more than that from others. */
struct queue_room {
    struct queue_need free;
    int32_t lowest;
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
/* Another order is asked for. All jobs are put in it aside, by queue_order_go_on, while the one of
 * before decides: whatever comes, goes or is blocked meanwhile counts in both. */
void queue_order_set(struct queue *queue, const struct queue_order *order);
bool queue_order_changes(const struct queue *queue);
/* So much more work, in units of about a quarter of a microsecond. True: from now on the order that
 * was asked for decides. */
bool queue_order_go_on(struct queue *queue, uint32_t work);
/* So much of what an order of before needed is freed. Nothing depends on it; a copy has none. */
void queue_tidy(struct queue *queue, uint32_t work);
/* In the order that decides. */
bool queue_is_before(const struct queue *queue, const struct queue_item *a,
                     const struct queue_item *b);
struct queue *queue_copy(const struct queue *queue); /* deep, the reasons included */
void queue_free(struct queue *queue);

size_t queue_count(const struct queue *queue); /* jobs */
bool queue_has(const struct queue *queue, uint32_t slot);

/* Into the class of `shape`, which determines `need` and the priority; a slot already queued is
 * moved. Returns the class. */
uint32_t queue_push(struct queue *queue, const struct queue_item *item,
                    const struct queue_need *need, struct text shape);
/* Out of the queue; nothing when it is not there. */
void queue_remove(struct queue *queue, uint32_t slot);

/* The first jobs of classes that are not blocked, in order: the first one behind `after` (NULL: of
 * all) whose need is in `room` (NULL: any); false: there is none. A search that has looked at many
 * classes in vain may give one that is not blocked but does not fit. Adds to *work how many classes
 * were looked at. The job stays queued: remove it when it is placed, else block its class. */
bool queue_next(const struct queue *queue, const struct queue_item *after,
                const struct queue_room *room, struct queue_item *item, uint32_t *class,
                uint32_t *work);
/* The first of all, whatever it needs. */
bool queue_first(const struct queue *queue, struct queue_item *item, uint32_t *class);
/* The job of the class with the shortest time limit, the first of these. */
struct queue_item queue_shortest(const struct queue *queue, uint32_t class);
/* Not again before queue_unblock. `reason` is copied: why nothing of this class can start; `topic`
 * is the caller's number for what it is about.
 * `is_for_limit`: a job with a shorter time limit than any of them might; when one joins the class,
 * it is blocked no more. */
void queue_block(struct queue *queue, uint32_t class, const char *reason, uint64_t topic,
                 bool is_for_limit);
void queue_unblock(struct queue *queue);
/* Not again before queue_reopen, whatever is freed. As queue_block otherwise. */
void queue_close(struct queue *queue, uint32_t class, const char *reason, uint64_t topic);
/* All that are closed may be tried again: queue_next gives them where it is asked without a room.
 * Costs nothing, however many they are. */
void queue_reopen(struct queue *queue);
bool queue_is_blocked(const struct queue *queue, uint32_t class);

uint32_t queue_class_count(const struct queue *queue);
uint32_t queue_class_of(const struct queue *queue, uint32_t slot);   /* it must be queued */
const char *queue_reason(const struct queue *queue, uint32_t class); /* "" unknown */
uint64_t queue_topic(const struct queue *queue, uint32_t class);     /* of the reason; 0 unknown */

/* All queued, in no order; the order depends on history alone. Null `items`: counts. */
size_t queue_list(const struct queue *queue, uint32_t *slots);

size_t queue_memory(const struct queue *queue); /* bytes */

#endif
