#include "server/notify_pauses.h"
#include "base/memory.h"
#include <assert.h>
#include <string.h>

int64_t notify_pause_next(int64_t length_ms)
{
    assert(length_ms >= 0 && length_ms <= NOTIFY_PAUSE_MAX_MS);
    if (length_ms == 0)
        return NOTIFY_PAUSE_FIRST_MS;
    return length_ms <= NOTIFY_PAUSE_MAX_MS / 2 ? length_ms * 2 : NOTIFY_PAUSE_MAX_MS;
}

void notify_pauses_release(struct notify_pauses *pauses)
{
    for (size_t i = 0; i < pauses->count; i++)
        mem_free(pauses->items[i].name);
    ARRAY_FREE(pauses);
    text_map_release(&pauses->places);
    pauses->target_count = 0;
}

static void pause_remove(struct notify_pauses *pauses, size_t place)
{
    struct notify_pause *pause = &pauses->items[place];
    text_map_remove(&pauses->places, text_of(pause->name));
    mem_free(pause->name);
    pauses->target_count -= pause->is_target;
    *pause = pauses->items[--pauses->count];
    if (place < pauses->count)
        text_map_set(&pauses->places, text_of(pause->name), (uint32_t)place);
}

bool notify_pause_begin(struct notify_pauses *pauses, const char *name, bool is_target,
                        int64_t now_ms)
{
    const uint32_t place = text_map_get(&pauses->places, text_of(name));
    const bool is_first = place == MAP_NONE;
    struct notify_pause *pause = is_first ? ARRAY_ADD(pauses) : &pauses->items[place];
    if (is_first) {
        *pause = (struct notify_pause){.name = mem_copy(name), .is_target = is_target};
        text_map_set(&pauses->places, text_of(pause->name), (uint32_t)(pauses->count - 1));
        pauses->target_count += is_target;
    }
    pause->length_ms = notify_pause_next(pause->length_ms);
    pause->until_ms = now_ms + pause->length_ms;
    return is_first;
}

bool notify_pause_end(struct notify_pauses *pauses, const char *name)
{
    const uint32_t place = text_map_get(&pauses->places, text_of(name));
    if (place == MAP_NONE)
        return false;
    pause_remove(pauses, place);
    return true;
}

bool notify_pause_is_on(const struct notify_pauses *pauses, const char *name, int64_t now_ms,
                        int64_t *until_ms)
{
    const uint32_t place = text_map_get(&pauses->places, text_of(name));
    if (place == MAP_NONE || now_ms >= pauses->items[place].until_ms)
        return false;
    *until_ms = pauses->items[place].until_ms;
    return true;
}

void notify_pauses_tidy(struct notify_pauses *pauses, int64_t now_ms)
{
    for (size_t i = pauses->count; i > 0; i--)
        if (now_ms >= pauses->items[i - 1].until_ms + NOTIFY_PAUSE_MAX_MS)
            pause_remove(pauses, i - 1);
}
