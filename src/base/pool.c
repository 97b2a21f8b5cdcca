#include "base/pool.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h" /* ARENA_OPEN, ARENA_SHUT: what is free must not be touched */
#include "base/memory.h"

enum { BLOCK_BYTES = 32 << 10, ALIGNMENT = 8 };

struct pool_place {
    union {
        struct pool_block *block; /* it is taken */
        struct pool_place *next;  /* it is free */
    };
    char bytes[];
};

struct pool_block {
    struct pool_block *next, *previous; /* while it has room */
    struct pool_place *free;            /* those that were taken before */
    uint32_t count, used, touched;      /* places: all; taken; taken now or before */
    _Alignas(ALIGNMENT) char places[];
};

static size_t place_bytes(const struct pool *pool)
{
    return sizeof(struct pool_place) + (pool->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void roomy_add(struct pool *pool, struct pool_block *block)
{
    block->next = pool->roomy;
    block->previous = NULL;
    if (block->next)
        block->next->previous = block;
    pool->roomy = block;
}

static void roomy_remove(struct pool *pool, const struct pool_block *block)
{
    if (block->previous)
        block->previous->next = block->next;
    else
        pool->roomy = block->next;
    if (block->next)
        block->next->previous = block->previous;
}

static void block_add(struct pool *pool)
{
    const size_t each = place_bytes(pool);
    const size_t fitting = (BLOCK_BYTES - sizeof(struct pool_block)) / each;
    const size_t count = fitting > 0 ? fitting : 1;
    struct pool_block *block = mem_alloc(sizeof *block + count * each);
    *block = (struct pool_block){.count = (uint32_t)count};
    roomy_add(pool, block);
    pool->blocks++;
}

static void block_remove(struct pool *pool, struct pool_block *block)
{
    roomy_remove(pool, block);
    pool->blocks--;
    mem_free(block);
}

static struct pool_place *place_take(const struct pool *pool, struct pool_block *block)
{
    struct pool_place *place = block->free;
    if (place)
        block->free = place->next;
    else
        place = (struct pool_place *)(void *)(block->places + block->touched++ * place_bytes(pool));
    ARENA_OPEN(place->bytes, pool->size);
    return place;
}

void *pool_take(struct pool *pool)
{
    assert(pool->size > 0);
    if (!pool->roomy)
        block_add(pool);
    struct pool_block *block = pool->roomy;
    struct pool_place *place = place_take(pool, block);
    place->block = block;
    if (++block->used == block->count)
        roomy_remove(pool, block);
    return memset(place->bytes, 0, pool->size);
}

void pool_give(struct pool *pool, void *object)
{
    if (!object)
        return;
    struct pool_place *place =
        (struct pool_place *)(void *)((char *)object - offsetof(struct pool_place, bytes));
    struct pool_block *block = place->block;
    assert(block->used > 0);
    if (block->used-- == block->count)
        roomy_add(pool, block);
    place->next = block->free;
    block->free = place;
    ARENA_SHUT(place->bytes, pool->size);
    const bool is_only = pool->roomy == block && !block->next;
    if (block->used == 0 && !is_only)
        block_remove(pool, block);
}

void pool_release(struct pool *pool)
{
    if (pool->roomy)
        block_remove(pool, pool->roomy);
    assert(pool->blocks == 0);
}
