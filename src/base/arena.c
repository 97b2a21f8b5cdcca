#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "base/memory.h"

enum { BLOCK_MIN = 512 - 32, BLOCK_GROWTH_MAX = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

static void blocks_free(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;
        ARENA_OPEN(block->bytes, block->size);
        mem_free(block);
        block = next;
    }
}

void arena_release(struct arena *arena)
{
    blocks_free(arena->block);
    arena_init(arena);
}

static void block_open(struct arena *arena)
{
    arena->next = arena->block->bytes;
    arena->last = arena->next + arena->block->size;
    ARENA_SHUT(arena->next, arena->block->size);
}

void arena_clear(struct arena *arena)
{
    if (!arena->block)
        return;
    blocks_free(arena->block->next); /* blocks only grow: the newest is the largest */
    arena->block->next = NULL;
    block_open(arena);
}

void arena_wipe(struct arena *arena)
{
    for (struct arena_block *block = arena->block; block; block = block->next) {
        volatile unsigned char *bytes = block->bytes; /* or the compiler leaves the writes out */
        ARENA_OPEN(block->bytes, block->size);
        for (size_t i = 0; i < block->size; i++)
            bytes[i] = 0;
    }
    arena_clear(arena);
}

static void block_add(struct arena *arena, size_t need)
{
    size_t size = arena->block ? arena->block->size * 2 : BLOCK_MIN;
    if (size > BLOCK_GROWTH_MAX)
        size = arena->block->size > BLOCK_GROWTH_MAX ? arena->block->size : BLOCK_GROWTH_MAX;
    if (size < need)
        size = need;
    struct arena_block *block = mem_alloc(sizeof *block + size);
    block->size = size;
    block->next = arena->block;
    arena->block = block;
    block_open(arena);
}

void *arena_alloc_more(struct arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    assert(size < SIZE_MAX / 2);
    block_add(arena, (size + ARENA_BORDER + align) & ~(align - 1));
    return arena_take(arena, size);
}

char *arena_copy(struct arena *arena, struct text text)
{
    char *copy = arena_take(arena, text.length + 1);
    if (text.length)
        memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    return copy;
}

/* A line of usual length is written where it will stand: it is formatted once. */
char *arena_vformat(struct arena *arena, const char *format, va_list args)
{
    enum { LINE_USUAL = 256 };
    char *line = (char *)arena->next;
    size_t room = (size_t)(arena->last - arena->next);
    if (room > LINE_USUAL)
        room = LINE_USUAL;
    va_list again;
    va_copy(again, args);
    ARENA_OPEN(line, room);
    const int length = vsnprintf(line, room, format, args);
    ARENA_SHUT(line, room);
    assert(length >= 0);
    char *string = arena_take(arena, (size_t)length + 1);
    if (string != line || (size_t)length >= room)
        vsnprintf(string, (size_t)length + 1, format, again);
    va_end(again);
    return string;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *string = arena_vformat(arena, format, args);
    va_end(args);
    return string;
}

size_t arena_size(const struct arena *arena)
{
    size_t sum = 0;
    for (const struct arena_block *block = arena->block; block; block = block->next)
        sum += sizeof *block + block->size;
    return sum;
}
