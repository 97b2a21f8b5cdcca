/* timers.h — times at which something is due, earliest first.
 *
 * Pure. A timer is never removed: its owner checks when it comes due that it still means something
 * (the key carries a generation). Equal times come in the order of their keys.
 */
#ifndef CORE_TIMERS_H
#define CORE_TIMERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t key;   /* the owner's */
    uint32_t value; /* the owner's */
};

struct timers {
    struct timer *items; /* binary heap */
    size_t count, room;
};

/* Zeroed timers are empty ones. The same key may be added any number of times. */
void timers_add(struct timers *timers, struct timer timer);
/* The earliest that is due at `now_ms`, taken out; false: none. */
bool timers_take(struct timers *timers, int64_t now_ms, struct timer *timer);
/* When the earliest is due; INT64_MAX: none. */
int64_t timers_next_ms(const struct timers *timers);
void timers_release(struct timers *timers);

#endif
