/* Maps beside a plain list, at random. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"

/* Small maps, and some that have split. */
static const size_t key_counts[] = {512, 3 * MAP_SPLIT_AT};
enum { KEYS_MAX = 3 * MAP_SPLIT_AT, STEPS_PER_KEY = 40 };

/* Against a plain array, through inserts and removals that move slots about. */
static void id_map_walk(size_t keys)
{
    static uint32_t want[KEYS_MAX];
    for (size_t i = 0; i < keys; i++)
        want[i] = MAP_NONE;
    struct id_map map = {0};
    struct random random = {1};
    for (size_t i = 0; i < STEPS_PER_KEY * keys; i++) {
        uint64_t key = random_below(&random, keys);
        if (random_below(&random, 3)) {
            want[key] = (uint32_t)random_below(&random, 1000);
            id_map_set(&map, key, want[key]);
        } else {
            want[key] = MAP_NONE;
            id_map_remove(&map, key);
        }
        uint64_t wanted = random_below(&random, keys);
        assert_int_equal(id_map_get(&map, wanted), want[wanted]);
    }
    size_t count = 0;
    for (uint64_t key = 0; key < keys; key++) {
        assert_int_equal(id_map_get(&map, key), want[key]);
        count += want[key] != MAP_NONE;
    }
    assert_int_equal(map.count, count);
    assert_int_equal(map.parts != NULL, keys > MAP_SPLIT_AT);
    id_map_remove(&map, KEYS_MAX);
    for (uint64_t key = 0; key < keys; key++)
        id_map_remove(&map, key);
    assert_int_equal(map.count, 0);
    assert_int_equal(id_map_get(&map, 1), MAP_NONE);
    id_map_release(&map);
    assert_int_equal(id_map_get(&map, 1), MAP_NONE);
}

static void test_id_map_random(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(key_counts); i++)
        id_map_walk(key_counts[i]);
}

static void text_map_walk(size_t keys)
{
    static char names[KEYS_MAX][16];
    static uint32_t want[KEYS_MAX];
    for (size_t i = 0; i < keys; i++) {
        snprintf(names[i], sizeof names[i], "job-%zu", i);
        want[i] = MAP_NONE;
    }
    struct text_map map = {.seed = 99};
    struct random random = {2};
    for (size_t i = 0; i < STEPS_PER_KEY * keys; i++) {
        size_t key = (size_t)random_below(&random, keys);
        if (random_below(&random, 3))
            text_map_set(&map, text_of(names[key]), want[key] = (uint32_t)i);
        else {
            text_map_remove(&map, text_of(names[key]));
            want[key] = MAP_NONE;
        }
        size_t wanted = (size_t)random_below(&random, keys);
        assert_int_equal(text_map_get(&map, text_of(names[wanted])), want[wanted]);
    }
    size_t count = 0;
    for (size_t i = 0; i < keys; i++)
        count += want[i] != MAP_NONE;
    assert_int_equal(map.count, count);
    assert_int_equal(map.parts != NULL, keys > MAP_SPLIT_AT);
    text_map_remove(&map, TEXT("another"));
    for (size_t i = 0; i < keys; i++)
        text_map_remove(&map, text_of(names[i]));
    assert_int_equal(map.count, 0);
    assert_int_equal(text_map_get(&map, text_of(names[0])), MAP_NONE);
    text_map_release(&map);
    text_map_set(&map, text_of(names[0]), 7);
    assert_int_equal(text_map_get(&map, text_of(names[0])), 7);
    text_map_release(&map);
}

static void test_text_map_random(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(key_counts); i++)
        text_map_walk(key_counts[i]);
}

static const char *name_at(const void *owner, uint32_t value)
{
    return ((const char(*)[32])owner)[value];
}

/* A copy stands when the map and its keys are gone; each third key is removed before. */
static void maps_copy(size_t keys)
{
    static char names[KEYS_MAX][32], others[KEYS_MAX][32];
    struct text_map texts = {.seed = 5}, text_copy = {0};
    struct id_map ids = {0}, id_copy = {0};
    for (size_t i = 0; i < keys; i++) {
        snprintf(names[i], sizeof names[i], "job-%zu", i);
        memcpy(others[i], names[i], sizeof names[i]);
        text_map_set(&texts, text_of(names[i]), (uint32_t)i);
        id_map_set(&ids, i, (uint32_t)i);
    }
    for (size_t i = 0; i < keys; i += 3) {
        text_map_remove(&texts, text_of(names[i]));
        id_map_remove(&ids, i);
    }
    text_map_copy(&text_copy, &texts, name_at, others);
    id_map_copy(&id_copy, &ids);
    assert_int_equal(text_copy.count, texts.count);
    assert_int_equal(id_copy.count, ids.count);
    text_map_release(&texts);
    id_map_release(&ids);
    memset(names, 'x', sizeof names);
    for (size_t i = 0; i < keys; i++) {
        const uint32_t want = i % 3 ? (uint32_t)i : MAP_NONE;
        assert_int_equal(text_map_get(&text_copy, text_of(others[i])), want);
        assert_int_equal(id_map_get(&id_copy, i), want);
        text_map_set(&text_copy, text_of(others[i]), 1);
        id_map_set(&id_copy, i, 1);
    }
    assert_int_equal(text_copy.count, keys);
    assert_int_equal(id_copy.count, keys);
    text_map_release(&text_copy);
    id_map_release(&id_copy);
}

static void test_copies(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(key_counts); i++)
        maps_copy(key_counts[i]);
    maps_copy(0);
}

static void test_empty_maps(void **state)
{
    (void)state;
    struct text_map texts = {0};
    assert_int_equal(text_map_get(&texts, TEXT("a")), MAP_NONE);
    text_map_remove(&texts, TEXT("a"));
    struct id_map ids = {0};
    assert_int_equal(id_map_get(&ids, 1), MAP_NONE);
    id_map_remove(&ids, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_id_map_random),
    cmocka_unit_test(test_text_map_random),
    cmocka_unit_test(test_copies),
    cmocka_unit_test(test_empty_maps),
};
UNIT_FILE(tests, NULL, NULL);
