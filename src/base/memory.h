/* memory.h — malloc that cannot fail, and arrays that grow.
 *
 * Pure. A real failure of malloc aborts the process: the event log makes that safe, and no caller
 * could do better. Limits on what others may ask for are checked before anything is allocated.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H
#include <stddef.h>
#include <stdlib.h>

/* Never NULL, for a size of 0 neither. */
#define MEM_NEVER_NULL __attribute__((returns_nonnull))
MEM_NEVER_NULL void *mem_alloc(size_t size);              /* not zeroed */
MEM_NEVER_NULL void *mem_zero(size_t count, size_t size); /* zeroed */
MEM_NEVER_NULL void *mem_realloc(void *memory, size_t size);
MEM_NEVER_NULL char *mem_copy(const char *string); /* NUL-terminated copy */
/* A copy of `count` items of `size` bytes; NULL when there are none, or when `items` is NULL. */
void *mem_copy_array(const void *items, size_t count, size_t size);

/* Not zeroed, from the start of a cache line on; large tables on large pages where the system has
 * them, so that reading them at random does not miss in the page tables, too. Freed by mem_free. */
MEM_NEVER_NULL void *mem_table(size_t count, size_t size);
/* The same for a table that is filled little by little, where no step may take long: the kernel may
 * look for a large page for 10 ms. So it gets small ones first, and large ones in the background
 * once it is full. */
MEM_NEVER_NULL void *mem_table_begin(size_t count, size_t size);
void mem_table_full(void *table, size_t count, size_t size);

static inline void mem_free(void *memory)
{
    free(memory);
}

/* After many small blocks have been freed. The allocator keeps them for the next larger one that is
 * asked for to sort: this does it now, as for whoever asks next it may be the work of many steps.
 */
void mem_settle(void);

/* count * size; aborts on overflow. */
static inline size_t mem_size(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        abort();
    return total;
}

/* A growing array is three fields: `type *items; size_t count, room;`. ARRAY_ADD returns a pointer
 * to a new zeroed item at the end; it is valid until the next ARRAY_ADD. */
void *array_reserve(void *items, size_t *room, size_t need, size_t item_size);
/* How many items an array that holds `room` should have room for when it grows. A large one takes
 * address space far ahead, of which only what is used costs memory: to move it to a larger place,
 * with all that is in it, would be the dearest step of all. */
size_t array_room_next(size_t room, size_t item_size);
#define ARRAY_RESERVE(array, need)                                                                 \
    ((array)->items = array_reserve((array)->items, &(array)->room, (need), sizeof *(array)->items))
/* When there is no room. */
MEM_NEVER_NULL void *array_enlarge(void *items, size_t *room, size_t item_size);
/* Room for one more than `count`. */
MEM_NEVER_NULL static inline void *array_grow(void *items, size_t *room, size_t count,
                                              size_t item_size)
{
    return count < *room ? items : array_enlarge(items, room, item_size);
}
#define ARRAY_ADD(array)                                                                           \
    ((array)->items =                                                                              \
         array_grow((array)->items, &(array)->room, (array)->count, sizeof *(array)->items),       \
     (array)->items[(array)->count] = (__typeof__(*(array)->items)){0},                            \
     &(array)->items[(array)->count++])
/* `to` is empty and gets the items of `from`, byte by byte. */
#define ARRAY_COPY(to, from)                                                                       \
    ((to)->items = mem_copy_array((from)->items, (from)->count, sizeof *(from)->items),            \
     (to)->count = (to)->room = (from)->count)
#define ARRAY_FREE(array)                                                                          \
    (mem_free((array)->items), (array)->items = NULL, (array)->count = (array)->room = 0)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
