#include "core/timers.h"

#include "base/memory.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms;
    return a->key != b->key ? a->key < b->key : a->value < b->value;
}

void timers_add(struct timers *timers, struct timer timer)
{
    ARRAY_ADD(timers);
    size_t i = timers->count - 1;
    while (i > 0 && is_before(&timer, &timers->items[(i - 1) / 2])) {
        timers->items[i] = timers->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    timers->items[i] = timer;
}

bool timers_take(struct timers *timers, int64_t now_ms, struct timer *timer)
{
    if (!timers->count || timers->items[0].at_ms > now_ms)
        return false;
    *timer = timers->items[0];
    struct timer last = timers->items[--timers->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            is_before(&timers->items[child + 1], &timers->items[child]))
            child++;
        if (!is_before(&timers->items[child], &last))
            break;
        timers->items[i] = timers->items[child];
        i = child;
    }
    if (timers->count)
        timers->items[i] = last;
    return true;
}

int64_t timers_next_ms(const struct timers *timers)
{
    return timers->count ? timers->items[0].at_ms : INT64_MAX;
}

void timers_release(struct timers *timers)
{
    ARRAY_FREE(timers);
}
