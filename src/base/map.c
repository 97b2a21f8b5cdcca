#include "base/map.h"

#include <assert.h>

#include "base/memory.h"
#include "base/random.h"

/* The slots lie close together, so that a search for an absent key touches one or two cache lines;
 * the keys follow them in the same block. */
struct text_map_slot {
    uint32_t hash;
    uint32_t value; /* MAP_NONE: empty */
};

struct id_map_slot {
    uint64_t key;
    uint32_t value; /* MAP_NONE: empty */
};

enum { ROOM_MIN = 16 };

static struct text *text_map_keys(const struct text_map *map)
{
    return (struct text *)(void *)(map->slots + map->room);
}

static uint32_t text_map_hash(const struct text_map *map, struct text key)
{
    return (uint32_t)text_hash(key, map->seed);
}

/* Where the key is, or the empty slot where it belongs. */
static size_t text_map_find(const struct text_map *map, struct text key, uint32_t hash)
{
    const struct text *keys = text_map_keys(map);
    size_t mask = map->room - 1, i = hash & mask;
    while (map->slots[i].value != MAP_NONE &&
           !(map->slots[i].hash == hash && text_equal(keys[i], key)))
        i = (i + 1) & mask;
    return i;
}

uint32_t text_map_get(const struct text_map *map, struct text key)
{
    if (!map->room)
        return MAP_NONE;
    return map->slots[text_map_find(map, key, text_map_hash(map, key))].value;
}

static void text_map_put(struct text_map *map, size_t at, struct text key,
                         struct text_map_slot slot)
{
    map->slots[at] = slot;
    text_map_keys(map)[at] = key;
}

static void text_map_grow(struct text_map *map)
{
    struct text_map old = *map;
    map->room = old.room ? old.room * 2 : ROOM_MIN;
    map->slots = mem_alloc(mem_size(map->room, sizeof *map->slots + sizeof(struct text)));
    for (size_t i = 0; i < map->room; i++)
        map->slots[i].value = MAP_NONE;
    for (size_t i = 0; i < old.room; i++) {
        struct text key = text_map_keys(&old)[i];
        if (old.slots[i].value != MAP_NONE)
            text_map_put(map, text_map_find(map, key, old.slots[i].hash), key, old.slots[i]);
    }
    mem_free(old.slots);
}

void text_map_set(struct text_map *map, struct text key, uint32_t value)
{
    assert(key.at && value != MAP_NONE);
    if ((map->count + 1) * 2 > map->room)
        text_map_grow(map);
    uint32_t hash = text_map_hash(map, key);
    size_t at = text_map_find(map, key, hash);
    map->count += map->slots[at].value == MAP_NONE;
    text_map_put(map, at, key, (struct text_map_slot){hash, value});
}

void text_map_remove(struct text_map *map, struct text key)
{
    if (!map->room)
        return;
    size_t mask = map->room - 1, hole = text_map_find(map, key, text_map_hash(map, key));
    if (map->slots[hole].value == MAP_NONE)
        return;
    map->count--;
    for (size_t i = (hole + 1) & mask; map->slots[i].value != MAP_NONE; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its home lies behind the hole */
        text_map_put(map, hole, text_map_keys(map)[i], map->slots[i]);
        hole = i;
    }
    map->slots[hole].value = MAP_NONE;
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
