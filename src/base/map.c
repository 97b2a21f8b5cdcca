#include "base/map.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

struct text_map_slot {
    struct text key;
    uint32_t hash;
    uint32_t value;
};

struct id_map_slot {
    uint64_t key;
    uint32_t value; /* MAP_NONE: empty */
};

enum { ROOM_MIN = 16 };

/* One byte a slot, behind the slots: 0 for an empty one, else some bits of the hash. A search runs
 * over these, so that an absent key of a large map costs one cache line, a present one two. */
static unsigned char *text_map_tags(const struct text_map *map)
{
    return (unsigned char *)(map->slots + map->room);
}

static unsigned char tag_of(uint32_t hash)
{
    return (unsigned char)(hash >> 24 | 1); /* the slot comes from the lower bits */
}

static uint64_t mixed(uint64_t hash, uint64_t bytes)
{
    hash = (hash ^ bytes) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t bytes_load(const char *at, size_t count)
{
    uint64_t bytes = 0;
    memcpy(&bytes, at, count);
    return bytes;
}

/* Eight bytes at a time, the last ones overlapping: most keys are names of a few bytes. */
static uint32_t text_map_hash(const struct text_map *map, struct text key)
{
    uint64_t hash = mixed(map->seed, key.length);
    size_t left = key.length;
    const char *at = key.at;
    for (; left > 8; left -= 8, at += 8)
        hash = mixed(hash, bytes_load(at, 8));
    uint64_t last = 0;
    if (key.length >= 8)
        last = bytes_load(key.at + key.length - 8, 8);
    else if (left >= 4)
        last = bytes_load(at, 4) << 32 | bytes_load(at + left - 4, 4);
    else if (left > 0)
        last = (uint64_t)(unsigned char)at[0] << 16 | (uint64_t)(unsigned char)at[left / 2] << 8 |
               (unsigned char)at[left - 1];
    return (uint32_t)mixed(hash, last);
}

/* Where the key is, or the empty slot where it belongs. */
static size_t text_map_find(const struct text_map *map, struct text key, uint32_t hash)
{
    const unsigned char *tags = text_map_tags(map);
    size_t mask = map->room - 1, i = hash & mask;
    for (; tags[i]; i = (i + 1) & mask)
        if (tags[i] == tag_of(hash) && map->slots[i].hash == hash &&
            text_equal(map->slots[i].key, key))
            break;
    return i;
}

uint32_t text_map_get(const struct text_map *map, struct text key)
{
    if (!map->room)
        return MAP_NONE;
    size_t at = text_map_find(map, key, text_map_hash(map, key));
    return text_map_tags(map)[at] ? map->slots[at].value : MAP_NONE;
}

static void text_map_put(struct text_map *map, size_t at, struct text_map_slot slot)
{
    map->slots[at] = slot;
    text_map_tags(map)[at] = tag_of(slot.hash);
}

static void text_map_grow(struct text_map *map)
{
    struct text_map old = *map;
    map->room = old.room ? old.room * 2 : ROOM_MIN;
    map->slots = mem_zero(map->room, sizeof *map->slots + 1);
    for (size_t i = 0; i < old.room; i++)
        if (text_map_tags(&old)[i])
            text_map_put(map, text_map_find(map, old.slots[i].key, old.slots[i].hash),
                         old.slots[i]);
    mem_free(old.slots);
}

void text_map_set(struct text_map *map, struct text key, uint32_t value)
{
    assert(key.at && value != MAP_NONE);
    if ((map->count + 1) * 2 > map->room)
        text_map_grow(map);
    uint32_t hash = text_map_hash(map, key);
    size_t at = text_map_find(map, key, hash);
    map->count += !text_map_tags(map)[at];
    text_map_put(map, at, (struct text_map_slot){key, hash, value});
}

void text_map_remove(struct text_map *map, struct text key)
{
    if (!map->room)
        return;
    unsigned char *tags = text_map_tags(map);
    size_t mask = map->room - 1, hole = text_map_find(map, key, text_map_hash(map, key));
    if (!tags[hole])
        return;
    map->count--;
    for (size_t i = (hole + 1) & mask; tags[i]; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its home lies behind the hole */
        text_map_put(map, hole, map->slots[i]);
        hole = i;
    }
    tags[hole] = 0;
}

void text_map_release(struct text_map *map)
{
    mem_free(map->slots);
    *map = (struct text_map){.seed = map->seed};
}

static bool is_full(size_t count, size_t room)
{
    return (count + 1) * 4 > room * 3;
}

static size_t id_map_find(const struct id_map *map, uint64_t key)
{
    size_t mask = map->room - 1, i = (size_t)random_mix(key) & mask;
    while (map->slots[i].value != MAP_NONE && map->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

uint32_t id_map_get(const struct id_map *map, uint64_t key)
{
    return map->room ? map->slots[id_map_find(map, key)].value : MAP_NONE;
}

static void id_map_grow(struct id_map *map)
{
    struct id_map old = *map;
    map->room = old.room ? old.room * 2 : ROOM_MIN;
    map->slots = mem_alloc(mem_size(map->room, sizeof *map->slots));
    for (size_t i = 0; i < map->room; i++)
        map->slots[i] = (struct id_map_slot){0, MAP_NONE};
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i].value != MAP_NONE)
            map->slots[id_map_find(map, old.slots[i].key)] = old.slots[i];
    mem_free(old.slots);
}

void id_map_set(struct id_map *map, uint64_t key, uint32_t value)
{
    assert(value != MAP_NONE);
    if (is_full(map->count, map->room))
        id_map_grow(map);
    struct id_map_slot *slot = &map->slots[id_map_find(map, key)];
    if (slot->value == MAP_NONE)
        map->count++;
    *slot = (struct id_map_slot){key, value};
}

void id_map_remove(struct id_map *map, uint64_t key)
{
    if (!map->room)
        return;
    size_t mask = map->room - 1, hole = id_map_find(map, key);
    if (map->slots[hole].value == MAP_NONE)
        return;
    map->count--;
    for (size_t i = (hole + 1) & mask; map->slots[i].value != MAP_NONE; i = (i + 1) & mask) {
        size_t home = (size_t)random_mix(map->slots[i].key) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole].value = MAP_NONE;
}

void id_map_release(struct id_map *map)
{
    mem_free(map->slots);
    *map = (struct id_map){0};
}
