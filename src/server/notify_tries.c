#include "server/notify_tries.h"
#include "base/memory.h"
#include "server/notify_pauses.h"
#include <assert.h>

void notify_tries_release(struct notify_tries *tries)
{
    ARRAY_FREE(tries);
    id_map_release(&tries->places);
}

void notify_try_failed(struct notify_tries *tries, uint64_t row, int64_t now_ms)
{
    uint32_t place = id_map_get(&tries->places, row);
    if (place == MAP_NONE) {
        place = (uint32_t)tries->count;
        *ARRAY_ADD(tries) = (struct notify_try){.row = row};
        id_map_set(&tries->places, row, place);
    }
    struct notify_try *one = &tries->items[place];
    assert(one->row == row);
    one->count++;
    one->length_ms = notify_pause_next(one->length_ms);
    one->until_ms = now_ms + one->length_ms;
}

uint32_t notify_try_count(const struct notify_tries *tries, uint64_t row, int64_t *until_ms)
{
    const uint32_t place = id_map_get(&tries->places, row);
    *until_ms = place == MAP_NONE ? 0 : tries->items[place].until_ms;
    return place == MAP_NONE ? 0 : tries->items[place].count;
}

size_t notify_try_together(uint32_t count, size_t most)
{
    const size_t together = count < 64 ? most >> count : 0;
    return together > 0 ? together : 1;
}

void notify_try_end(struct notify_tries *tries, uint64_t row)
{
    const uint32_t place = id_map_get(&tries->places, row);
    if (place == MAP_NONE)
        return;
    id_map_remove(&tries->places, row);
    tries->items[place] = tries->items[--tries->count];
    if (place < tries->count)
        id_map_set(&tries->places, tries->items[place].row, place);
}
