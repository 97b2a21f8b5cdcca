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

/* Of a large map: the one that has the keys of this hash. Its bits are none of those that choose a
 * slot or make a tag. */
static struct text_map *text_map_part(const struct text_map *map, uint32_t hash)
{
    return map->parts ? &map->parts[hash >> 16 & (MAP_PARTS - 1)]
                      : (struct text_map *)(uintptr_t)map;
}

uint32_t text_map_get(const struct text_map *map, struct text key)
{
    if (!map->count)
        return MAP_NONE;
    const uint32_t hash = text_map_hash(map, key);
    const struct text_map *part = text_map_part(map, hash);
    if (!part->room)
        return MAP_NONE;
    size_t at = text_map_find(part, key, hash);
    return text_map_tags(part)[at] ? part->slots[at].value : MAP_NONE;
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

/* True: the key is new. */
static bool text_part_set(struct text_map *part, struct text_map_slot slot)
{
    if ((part->count + 1) * 2 > part->room)
        text_map_grow(part);
    size_t at = text_map_find(part, slot.key, slot.hash);
    bool is_new = !text_map_tags(part)[at];
    part->count += is_new;
    text_map_put(part, at, slot);
    return is_new;
}

static void text_map_split(struct text_map *map)
{
    struct text_map old = *map;
    *map = (struct text_map){.count = old.count, .seed = old.seed};
    map->parts = mem_zero(MAP_PARTS, sizeof *map->parts);
    for (size_t i = 0; i < old.room; i++)
        if (text_map_tags(&old)[i])
            text_part_set(text_map_part(map, old.slots[i].hash), old.slots[i]);
    mem_free(old.slots);
}

void text_map_set(struct text_map *map, struct text key, uint32_t value)
{
    assert(key.at && value != MAP_NONE);
    if (!map->parts && map->count >= MAP_SPLIT_AT)
        text_map_split(map);
    const struct text_map_slot slot = {key, text_map_hash(map, key), value};
    if (text_part_set(text_map_part(map, slot.hash), slot) && map->parts)
        map->count++;
}

/* False: it is not there. */
static bool text_part_remove(struct text_map *part, struct text key, uint32_t hash)
{
    if (!part->room)
        return false;
    unsigned char *tags = text_map_tags(part);
    size_t mask = part->room - 1, hole = text_map_find(part, key, hash);
    if (!tags[hole])
        return false;
    part->count--;
    for (size_t i = (hole + 1) & mask; tags[i]; i = (i + 1) & mask) {
        size_t home = part->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its home lies behind the hole */
        text_map_put(part, hole, part->slots[i]);
        hole = i;
    }
    tags[hole] = 0;
    return true;
}

void text_map_remove(struct text_map *map, struct text key)
{
    const uint32_t hash = text_map_hash(map, key);
    if (text_part_remove(text_map_part(map, hash), key, hash) && map->parts)
        map->count--;
}

void text_map_release(struct text_map *map)
{
    for (size_t i = 0; map->parts && i < MAP_PARTS; i++)
        mem_free(map->parts[i].slots);
    mem_free(map->parts);
    mem_free(map->slots);
    *map = (struct text_map){.seed = map->seed};
}

static void text_part_copy(struct text_map *to, const struct text_map *from,
                           const char *(*key_at)(const void *owner, uint32_t value),
                           const void *owner)
{
    assert(!from->parts);
    *to = *from;
    to->slots = mem_copy_array(from->slots, from->room, sizeof *from->slots + 1);
    for (size_t i = 0; i < to->room; i++)
        if (text_map_tags(to)[i])
            to->slots[i].key.at = key_at(owner, to->slots[i].value);
}

void text_map_copy(struct text_map *to, const struct text_map *from,
                   const char *(*key_at)(const void *owner, uint32_t value), const void *owner)
{
    assert(!to->parts && !to->slots && to->count == 0);
    if (!from->parts) {
        text_part_copy(to, from, key_at, owner);
        return;
    }
    *to = *from;
    to->parts = mem_zero(MAP_PARTS, sizeof *to->parts);
    for (size_t i = 0; i < MAP_PARTS; i++)
        text_part_copy(&to->parts[i], &from->parts[i], key_at, owner);
}

static bool is_full(size_t count, size_t room)
{
    return (count + 1) * 4 > room * 3;
}

/* The slot is chosen by the low bits of the key's hash, the part by the high ones. */
static struct id_map *id_map_part(const struct id_map *map, uint64_t key)
{
    return map->parts ? &map->parts[random_mix(key) >> 56] : (struct id_map *)(uintptr_t)map;
}

_Static_assert(MAP_PARTS == 256, "eight bits choose one");

static size_t id_map_find(const struct id_map *map, uint64_t key)
{
    size_t mask = map->room - 1, i = (size_t)random_mix(key) & mask;
    while (map->slots[i].value != MAP_NONE && map->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

uint32_t id_map_get(const struct id_map *map, uint64_t key)
{
    const struct id_map *part = id_map_part(map, key);
    return part->room ? part->slots[id_map_find(part, key)].value : MAP_NONE;
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

/* True: the key is new. */
static bool id_part_set(struct id_map *part, uint64_t key, uint32_t value)
{
    if (is_full(part->count, part->room))
        id_map_grow(part);
    struct id_map_slot *slot = &part->slots[id_map_find(part, key)];
    bool is_new = slot->value == MAP_NONE;
    part->count += is_new;
    *slot = (struct id_map_slot){key, value};
    return is_new;
}

static void id_map_split(struct id_map *map)
{
    struct id_map old = *map;
    *map = (struct id_map){.count = old.count};
    map->parts = mem_zero(MAP_PARTS, sizeof *map->parts);
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i].value != MAP_NONE)
            id_part_set(id_map_part(map, old.slots[i].key), old.slots[i].key, old.slots[i].value);
    mem_free(old.slots);
}

void id_map_set(struct id_map *map, uint64_t key, uint32_t value)
{
    assert(value != MAP_NONE);
    if (!map->parts && map->count >= MAP_SPLIT_AT)
        id_map_split(map);
    if (id_part_set(id_map_part(map, key), key, value) && map->parts)
        map->count++;
}

/* False: it is not there. */
static bool id_part_remove(struct id_map *part, uint64_t key)
{
    if (!part->room)
        return false;
    size_t mask = part->room - 1, hole = id_map_find(part, key);
    if (part->slots[hole].value == MAP_NONE)
        return false;
    part->count--;
    for (size_t i = (hole + 1) & mask; part->slots[i].value != MAP_NONE; i = (i + 1) & mask) {
        size_t home = (size_t)random_mix(part->slots[i].key) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        part->slots[hole] = part->slots[i];
        hole = i;
    }
    part->slots[hole].value = MAP_NONE;
    return true;
}

void id_map_remove(struct id_map *map, uint64_t key)
{
    if (id_part_remove(id_map_part(map, key), key) && map->parts)
        map->count--;
}

void id_map_release(struct id_map *map)
{
    for (size_t i = 0; map->parts && i < MAP_PARTS; i++)
        mem_free(map->parts[i].slots);
    mem_free(map->parts);
    mem_free(map->slots);
    *map = (struct id_map){0};
}

static void id_part_copy(struct id_map *to, const struct id_map *from)
{
    assert(!from->parts);
    *to = *from;
    to->slots = mem_copy_array(from->slots, from->room, sizeof *from->slots);
}

void id_map_copy(struct id_map *to, const struct id_map *from)
{
    assert(!to->parts && !to->slots && to->count == 0);
    if (!from->parts) {
        id_part_copy(to, from);
        return;
    }
    *to = *from;
    to->parts = mem_zero(MAP_PARTS, sizeof *to->parts);
    for (size_t i = 0; i < MAP_PARTS; i++)
        id_part_copy(&to->parts[i], &from->parts[i]);
}
