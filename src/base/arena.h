/* arena.h — short-lived memory, freed all at once.
 *
 * Pure. Blocks grow as needed; a failure of malloc aborts (safe: the event log is on disk).
 * Allocations are zeroed and aligned for any type. Not thread-safe.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include "base/text.h"
#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *block; /* newest first */
    size_t used;               /* of the newest block */
};

void arena_init(struct arena *arena);
void arena_release(struct arena *arena);

/* Forget everything, keep the largest block for reuse. */
void arena_clear(struct arena *arena);

/* Overwrite all that was allocated, then as arena_clear: for memory that held secrets. */
void arena_wipe(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t size);

/* `count` zeroed items; aborts when count * size overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);
#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array((arena), (count), sizeof(type)))

/* NUL-terminated copies. */
char *arena_copy(struct arena *arena, struct text text);
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Bytes taken from malloc, for reports. */
size_t arena_size(const struct arena *arena);

#endif
