/* timers.h — times at which something is due, earliest first.
 *
 * Pure. A timer is known by its key: there is one for each key, so that their number is bounded by
 * what they stand for. Equal times come in the order of their keys.
 */
#ifndef CORE_TIMERS_H
#define CORE_TIMERS_H
#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t key; /* the owner's */
};

struct timer_place {
    struct timer timer;
    uint32_t entry;
};

struct timers {
    struct timer_place *items; /* binary heap */
    size_t count, room;
    struct {
        uint32_t *items; /* of each entry, its place in the heap */
        size_t count, room;
    } entries, unused;  /* unused: numbers of entries */
    struct id_map keys; /* to entries */
};

/* Zeroed timers are empty ones. The timer of this key is due then, whatever it was before. */
void timers_set(struct timers *timers, uint64_t key, int64_t at_ms);
/* As timers_set, but one that is due earlier stays. */
void timers_set_earlier(struct timers *timers, uint64_t key, int64_t at_ms);
/* Nothing when there is none. */
void timers_remove(struct timers *timers, uint64_t key);
/* The earliest that is due at `now_ms`, taken out; false: none. */
bool timers_take(struct timers *timers, int64_t now_ms, struct timer *timer);
/* When the earliest is due; INT64_MAX: none. */
int64_t timers_next_ms(const struct timers *timers);
/* `to` is empty. */
void timers_copy(struct timers *to, const struct timers *from);
void timers_release(struct timers *timers);

#endif
