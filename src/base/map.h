/* map.h — hash tables: text → index, number → index.
 *
 * Pure. Open addressing, linear probing, deterministic: iteration is not offered, so that no
 * result can depend on hash order; the owner keeps its items in an array and the map finds them.
 * Values are indices into the owner's table. The text map keeps pointers: keys must outlive it.
 *
 * No call costs much more than others: a large map is a directory of MAP_PARTS small ones, each of
 * which grows by itself. With a million keys the dearest growth moves some thousand of them.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H
#include "base/text.h"
#include <stdint.h>

#define MAP_NONE UINT32_MAX

enum { MAP_PARTS = 256, MAP_SPLIT_AT = 1024 /* keys */ };

struct text_map_slot;
struct text_map {
    struct text_map_slot *slots;
    struct text_map *parts; /* NULL: the slots are here */
    size_t count, room;
    uint64_t seed; /* set it before the first insert when keys come from outside */
};

/* A zeroed map is an empty one. get: MAP_NONE when absent. set: takes the place of an older value;
 * never MAP_NONE. remove: nothing when absent. release: frees, and is empty and usable again. A get
 * of an empty map allocates nothing. */
uint32_t text_map_get(const struct text_map *map, struct text key);
void text_map_set(struct text_map *map, struct text key, uint32_t value);
void text_map_remove(struct text_map *map, struct text key);
void text_map_release(struct text_map *map);
#define cleanup_text_map __attribute__((cleanup(text_map_release)))

/* As many keys and values again, at the price of the memory; `to` is a zeroed map. The keys are
 * others with the same bytes: `key_at` gives the one of each value. */
void text_map_copy(struct text_map *to, const struct text_map *from,
                   const char *(*key_at)(const void *owner, uint32_t value), const void *owner);

struct id_map_slot;
struct id_map {
    struct id_map_slot *slots;
    struct id_map *parts;
    size_t count, room;
};

/* Likewise, by number; any number is a key. */
uint32_t id_map_get(const struct id_map *map, uint64_t key);
void id_map_set(struct id_map *map, uint64_t key, uint32_t value);
void id_map_remove(struct id_map *map, uint64_t key);
void id_map_release(struct id_map *map);
void id_map_copy(struct id_map *to, const struct id_map *from); /* `to` is a zeroed map */
#define cleanup_id_map __attribute__((cleanup(id_map_release)))

#endif
