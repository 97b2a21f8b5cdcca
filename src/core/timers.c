#include "core/timers.h"

#include <assert.h>

#include "base/memory.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->key < b->key;
}

static void place_put(struct timers *timers, size_t at, struct timer_place place)
{
    timers->items[at] = place;
    timers->entries.items[place.entry] = (uint32_t)at;
}

static void place_up(struct timers *timers, size_t at)
{
    assert(at < timers->count);
    const struct timer_place place = timers->items[at];
    while (at > 0 && is_before(&place.timer, &timers->items[(at - 1) / 2].timer)) {
        place_put(timers, at, timers->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place_put(timers, at, place);
}

static void place_down(struct timers *timers, size_t at)
{
    assert(at < timers->count);
    const struct timer_place place = timers->items[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            is_before(&timers->items[child + 1].timer, &timers->items[child].timer))
            child++;
        if (!is_before(&timers->items[child].timer, &place.timer))
            break;
        place_put(timers, at, timers->items[child]);
        at = child;
    }
    place_put(timers, at, place);
}

static void place_fix(struct timers *timers, size_t at)
{
    const uint32_t entry = timers->items[at].entry;
    place_up(timers, at);
    place_down(timers, timers->entries.items[entry]);
}

static uint32_t entry_add(struct timers *timers, uint64_t key)
{
    uint32_t entry;
    if (timers->unused.count > 0) {
        entry = timers->unused.items[--timers->unused.count];
    } else {
        entry = (uint32_t)timers->entries.count;
        ARRAY_ADD(&timers->entries);
    }
    id_map_set(&timers->keys, key, entry);
    return entry;
}

void timers_set(struct timers *timers, uint64_t key, int64_t at_ms)
{
    const struct timer timer = {at_ms, key};
    const uint32_t entry = id_map_get(&timers->keys, key);
    if (entry != MAP_NONE) {
        const uint32_t at = timers->entries.items[entry];
        timers->items[at].timer = timer;
        place_fix(timers, at);
        return;
    }
    ARRAY_ADD(timers);
    timers->items[timers->count - 1] = (struct timer_place){timer, entry_add(timers, key)};
    place_up(timers, timers->count - 1);
}

void timers_set_earlier(struct timers *timers, uint64_t key, int64_t at_ms)
{
    const uint32_t entry = id_map_get(&timers->keys, key);
    if (entry == MAP_NONE || timers->items[timers->entries.items[entry]].timer.at_ms > at_ms)
        timers_set(timers, key, at_ms);
}

void timers_remove(struct timers *timers, uint64_t key)
{
    const uint32_t entry = id_map_get(&timers->keys, key);
    if (entry == MAP_NONE)
        return;
    const uint32_t at = timers->entries.items[entry];
    assert(timers->items[at].timer.key == key && timers->items[at].entry == entry);
    id_map_remove(&timers->keys, key);
    *ARRAY_ADD(&timers->unused) = entry;
    const struct timer_place last = timers->items[--timers->count];
    if (at == timers->count)
        return;
    place_put(timers, at, last);
    place_fix(timers, at);
}

bool timers_take(struct timers *timers, int64_t now_ms, struct timer *timer)
{
    if (timers_next_ms(timers) > now_ms || timers->count == 0)
        return false;
    *timer = timers->items[0].timer;
    timers_remove(timers, timer->key);
    return true;
}

int64_t timers_next_ms(const struct timers *timers)
{
    return timers->count ? timers->items[0].timer.at_ms : INT64_MAX;
}

void timers_copy(struct timers *to, const struct timers *from)
{
    assert(to->count == 0);
    ARRAY_COPY(to, from);
    ARRAY_COPY(&to->entries, &from->entries);
    ARRAY_COPY(&to->unused, &from->unused);
    id_map_copy(&to->keys, &from->keys);
}

void timers_release(struct timers *timers)
{
    ARRAY_FREE(timers);
    ARRAY_FREE(&timers->entries);
    ARRAY_FREE(&timers->unused);
    id_map_release(&timers->keys);
}
