#include "base/rate.h"
#include "base/memory.h"
#include <assert.h>

void rate_release(struct rate_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        mem_free(table->items[i].name);
    ARRAY_FREE(table);
    text_map_release(&table->map);
}

static struct rate_item *item_of(struct rate_table *table, struct text name)
{
    const uint32_t index = text_map_get(&table->map, name);
    if (index != MAP_NONE)
        return &table->items[index];
    if (table->count == RATE_NAMES_MAX) {
        const uint64_t seed = table->map.seed;
        rate_release(table);
        table->map.seed = seed;
    }
    struct rate_item *item = ARRAY_ADD(table);
    item->name = mem_alloc(name.length + 1);
    memcpy(item->name, name.at, name.length);
    item->name[name.length] = '\0';
    text_map_set(&table->map, (struct text){item->name, name.length}, (uint32_t)table->count - 1);
    return item;
}

/* A token comes every period / count: with each one taken the bucket is full so much later. */
static int64_t token_of(int64_t count, int64_t period_us)
{
    assert(count >= 1 && period_us >= 1);
    return period_us > count ? period_us / count : 1;
}

void rate_owe(struct rate_table *table, struct text name, int64_t count, int64_t period_us,
              int64_t tokens, int64_t now_us)
{
    struct rate_item *item = item_of(table, name);
    assert(tokens >= 0);
    if (item->full_us < now_us)
        item->full_us = now_us;
    item->full_us += tokens * token_of(count, period_us);
}

int64_t rate_wait(const struct rate_table *table, struct text name, int64_t count,
                  int64_t period_us, int64_t now_us)
{
    const uint32_t index = text_map_get(&table->map, name);
    if (index == MAP_NONE || table->items[index].full_us <= now_us)
        return 0;
    const int64_t wait_us =
        table->items[index].full_us - now_us - (count - 1) * token_of(count, period_us);
    return wait_us > 0 ? wait_us : 0;
}

int64_t rate_take(struct rate_table *table, struct text name, int64_t count, int64_t period_us,
                  int64_t now_us)
{
    const int64_t wait_us = rate_wait(table, name, count, period_us, now_us);
    if (wait_us > 0)
        return wait_us;
    struct rate_item *item = item_of(table, name);
    if (item->full_us < now_us)
        item->full_us = now_us;
    item->full_us += token_of(count, period_us);
    return 0;
}

int64_t rate_used(const struct rate_table *table, struct text name, int64_t count,
                  int64_t period_us, int64_t now_us)
{
    const uint32_t index = text_map_get(&table->map, name);
    const int64_t token_us = token_of(count, period_us);
    if (index == MAP_NONE || table->items[index].full_us <= now_us)
        return 0;
    return (table->items[index].full_us - now_us + token_us - 1) / token_us;
}
