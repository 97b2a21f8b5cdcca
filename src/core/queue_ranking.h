/* queue_ranking.h — the waiting jobs of all classes in one order. Inside src/core/queue*.c only.
 *
 * Pure. Classes and jobs are numbers of the caller. Each class is two binary heaps: of its jobs in
 * the order, and of their time limits. The classes that have jobs stand in a balanced tree in the
 * order of their first jobs; each subtree knows the least that any of its classes needs.
 */
#ifndef CORE_QUEUE_RANKING_H
#define CORE_QUEUE_RANKING_H
#include "core/queue.h"

#define RANKING_NOWHERE UINT32_MAX /* enumerators of ISO C are ints */

/* Of a class, or the least of a subtree: the smallest of each, and the highest priority. */
struct queue_reach {
    uint64_t tried;  /* the change before which it was found to be hopeless */
    uint64_t closed; /* the opening before which it was closed; UINT64_MAX: none of them is */
    struct queue_need need;
    int32_t priority;
};

struct queue_rank {
    struct queue_item *items; /* binary heap */
    uint32_t *by_limit;       /* their slots, a binary heap by time limits */
    uint32_t count, room;
    uint32_t left, right;
    struct queue_reach own, least; /* least: of the subtree */
};

/* Where a slot stands in the heaps of its class. */
struct queue_position {
    uint32_t at, limit_at;
};

struct queue_ranking {
    const struct queue_order *order;
    struct {
        struct queue_rank *items; /* by class */
        size_t count, room;
    } ranks;
    struct {
        struct queue_position *items; /* by slot */
        size_t count, room;
    } positions;
    uint32_t root;
};

void ranking_init(struct queue_ranking *ranking, const struct queue_order *order); /* empty */
void ranking_copy(struct queue_ranking *to, const struct queue_ranking *from);
/* As much of it as is needed for so many jobs. True: nothing is left of it. */
bool ranking_release_some(struct queue_ranking *ranking, size_t jobs);
void ranking_release(struct queue_ranking *ranking);

/* There is an entry for this class; else the next push into it makes all up to it. */
void ranking_cover(struct queue_ranking *ranking, uint32_t class);
/* Room for so many jobs of this class, at the price of the address space. */
void ranking_reserve(struct queue_ranking *ranking, uint32_t class, uint32_t jobs);
/* Of a class of this reach. Returns whether it is its first. */
bool ranking_push(struct queue_ranking *ranking, uint32_t class, const struct queue_item *item,
                  const struct queue_reach *reach);
void ranking_remove(struct queue_ranking *ranking, uint32_t class, uint32_t slot);
/* The class has jobs, or nothing happens. */
void ranking_reach_set(struct queue_ranking *ranking, uint32_t class,
                       const struct queue_reach *reach);
/* The class has no jobs and will go: so do its heaps. */
void ranking_drop(struct queue_ranking *ranking, uint32_t class);

uint32_t ranking_count(const struct queue_ranking *ranking, uint32_t class); /* its jobs */
/* All of the class, the first one first, the others in no order. */
const struct queue_item *ranking_items(const struct queue_ranking *ranking, uint32_t class);
/* A slot of this class. */
const struct queue_item *ranking_item(const struct queue_ranking *ranking, uint32_t class,
                                      uint32_t slot);
/* The one with the shortest time limit, the first of these. */
const struct queue_item *ranking_shortest(const struct queue_ranking *ranking, uint32_t class);

struct ranking_search {
    const struct queue_ranking *ranking;
    const struct queue_room *room; /* NULL: whatever it needs */
    uint64_t change, opening;      /* tried and closed before */
    uint32_t visits;               /* classes looked at so far */
};
/* The class of the first job behind `after` (NULL: of all) as queue_next tells it. */
uint32_t ranking_find(struct ranking_search *search, const struct queue_item *after);

size_t ranking_memory(const struct queue_ranking *ranking); /* bytes */

#endif
