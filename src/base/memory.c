#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static void *checked(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

void *mem_alloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *mem_zero(size_t count, size_t size)
{
    size_t total = mem_size(count, size);
    return checked(calloc(1, total ? total : 1));
}

enum { LINE = 64, LARGE_PAGE = 2 << 20 };

/* In whole steps, large pages or lines. */
static size_t table_bytes(size_t count, size_t size, size_t *step)
{
    size_t total = mem_size(count, size);
    *step = total >= LARGE_PAGE ? LARGE_PAGE : LINE;
    if (total > SIZE_MAX - *step)
        abort();
    return total ? (total + *step - 1) / *step * *step : *step;
}

void *mem_table_begin(size_t count, size_t size)
{
    size_t step, total = table_bytes(count, size, &step);
    return checked(aligned_alloc(step, total));
}

void mem_table_full(void *table, size_t count, size_t size)
{
    size_t step, total = table_bytes(count, size, &step);
    if (step == LARGE_PAGE)
        madvise(table, total, MADV_HUGEPAGE); /* a wish; nothing depends on it */
}

void *mem_table(size_t count, size_t size)
{
    void *table = mem_table_begin(count, size);
    mem_table_full(table, count, size);
    return table;
}

void *mem_realloc(void *memory, size_t size)
{
    return checked(realloc(memory, size ? size : 1));
}

void mem_settle(void)
{
    enum { LARGER = 1 << 15 };
    void *volatile sorts = mem_alloc(LARGER);
    mem_free(sorts);
}

char *mem_copy(const char *string)
{
    size_t size = strlen(string) + 1;
    return memcpy(mem_alloc(size), string, size);
}

void *mem_copy_array(const void *items, size_t count, size_t size)
{
    if (!items || !count)
        return NULL;
    size_t bytes = mem_size(count, size);
    return memcpy(mem_alloc(bytes), items, bytes);
}

enum { ARRAY_LARGE = 256 << 10, ARRAY_AHEAD = 64 << 20 }; /* bytes */

size_t array_room_next(size_t room, size_t item_size)
{
    size_t next = room < 4 ? 4 : room + room / 2, size = mem_size(next, item_size);
    return size < ARRAY_LARGE || size >= ARRAY_AHEAD ? next : ARRAY_AHEAD / item_size;
}

void *array_reserve(void *items, size_t *room, size_t need, size_t item_size)
{
    if (need <= *room)
        return items;
    size_t wanted = *room < 4 ? 4 : *room + *room / 2;
    if (wanted < need)
        wanted = need;
    items = mem_realloc(items, mem_size(wanted, item_size));
    *room = wanted;
    return items;
}

void *array_enlarge(void *items, size_t *room, size_t item_size)
{
    return array_reserve(items, room, array_room_next(*room, item_size), item_size);
}
