/* arena.h — short-lived memory, freed all at once.
 *
 * Pure. Blocks grow as needed; a failure of malloc aborts (safe: the event log is on disk).
 * Allocations are zeroed and aligned for any type. Not thread-safe.
 *
 * Under AddressSanitizer a border lies between two allocations, and what is not given out or was
 * forgotten may not be touched: an array that is too short is reported as one of malloc would be.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include "base/memory.h"
#include "base/text.h"
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_HAS_BORDERS
#endif
#elif defined __SANITIZE_ADDRESS__
#define ARENA_HAS_BORDERS
#endif

#ifdef ARENA_HAS_BORDERS
#include <sanitizer/asan_interface.h>
#define ARENA_OPEN(memory, size) ASAN_UNPOISON_MEMORY_REGION((memory), (size))
#define ARENA_SHUT(memory, size) ASAN_POISON_MEMORY_REGION((memory), (size))
enum { ARENA_BORDER = 16 };
#else
#define ARENA_OPEN(memory, size) ((void)(memory), (void)(size))
#define ARENA_SHUT(memory, size) ((void)(memory), (void)(size))
enum { ARENA_BORDER = 0 };
#endif

struct arena_block;

struct arena {
    struct arena_block *block;  /* newest first */
    unsigned char *next, *last; /* free bytes of the newest block; `next` is aligned for any type */
};

void arena_init(struct arena *arena);
void arena_release(struct arena *arena);
/* In a declaration: released at the end of its block. The arena is initialised before any return.
 */
#define cleanup_arena __attribute__((cleanup(arena_release)))

/* Forget everything, keep the largest block for reuse. */
void arena_clear(struct arena *arena);

/* Overwrite all that was allocated, then as arena_clear: for memory that held secrets. */
void arena_wipe(struct arena *arena);

/* When the newest block is full. */
void *arena_alloc_more(struct arena *arena, size_t size);

/* Not zeroed: the caller fills it at once. */
static inline void *arena_take(struct arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    size_t step = ((size ? size : 1) + ARENA_BORDER + align - 1) & ~(align - 1);
    if (step < size || (size_t)(arena->last - arena->next) < step)
        return arena_alloc_more(arena, size);
    void *memory = arena->next;
    arena->next += step;
    ARENA_OPEN(memory, size);
    return memory;
}

static inline void *arena_alloc(struct arena *arena, size_t size)
{
    return memset(arena_take(arena, size), 0, size);
}

/* `count` zeroed items; aborts when count * size overflows. */
static inline void *arena_array(struct arena *arena, size_t count, size_t size)
{
    return arena_alloc(arena, mem_size(count, size));
}

#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array((arena), (count), sizeof(type)))

/* NUL-terminated copies. */
char *arena_copy(struct arena *arena, struct text text);
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vformat(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Bytes taken from malloc, for reports. */
size_t arena_size(const struct arena *arena);

#endif
