/* Maps beside a plain list, at random. */
#include "unit.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"

/* Against a plain array, through inserts and removals that move slots about. */
static void test_id_map_random(void **state)
{
    (void)state;
    enum { KEYS = 512, STEPS = 20000 };
    uint32_t want[KEYS];
    for (size_t i = 0; i < KEYS; i++)
        want[i] = MAP_NONE;
    struct id_map map = {0};
    struct random random = {1};
    for (int i = 0; i < STEPS; i++) {
        uint64_t key = random_below(&random, KEYS);
        if (random_below(&random, 2)) {
            want[key] = (uint32_t)random_below(&random, 1000);
            id_map_set(&map, key, want[key]);
        } else {
            want[key] = MAP_NONE;
            id_map_remove(&map, key);
        }
        uint64_t look = random_below(&random, KEYS);
        assert_int_equal(id_map_get(&map, look), want[look]);
    }
    size_t count = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        assert_int_equal(id_map_get(&map, key), want[key]);
        count += want[key] != MAP_NONE;
    }
    assert_int_equal(map.count, count);
    id_map_release(&map);
}

static void test_text_map_random(void **state)
{
    (void)state;
    enum { KEYS = 300, STEPS = 20000 };
    char names[KEYS][16];
    uint32_t want[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "job-%zu", i);
        want[i] = MAP_NONE;
    }
    struct text_map map = {.seed = 99};
    struct random random = {2};
    for (int i = 0; i < STEPS; i++) {
        size_t key = (size_t)random_below(&random, KEYS);
        if (random_below(&random, 2))
            text_map_set(&map, text_of(names[key]), want[key] = (uint32_t)i);
        else {
            text_map_remove(&map, text_of(names[key]));
            want[key] = MAP_NONE;
        }
        size_t look = (size_t)random_below(&random, KEYS);
        assert_int_equal(text_map_get(&map, text_of(names[look])), want[look]);
    }
    text_map_release(&map);
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
    cmocka_unit_test(test_empty_maps),
};
UNIT_FILE(tests, NULL, NULL);
