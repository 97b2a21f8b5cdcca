/* A pool gives objects of one size, and keeps no block in which nothing is left. */
#include "unit.h"

#include "base/memory.h"
#include "base/pool.h"
#include <string.h>

enum { SIZE = 280, MANY = 2000 };

static void objects_are_zeroed_and_apart(void **state)
{
    static unsigned char *all[MANY];
    struct pool pool = {.size = SIZE};
    (void)state;
    for (int round = 0; round < 2; round++) { /* the second one has places that had others */
        for (size_t i = 0; i < MANY; i++) {
            all[i] = pool_take(&pool);
            assert_int_equal((uintptr_t)all[i] % 8, 0);
            for (size_t at = 0; at < SIZE; at++)
                assert_int_equal(all[i][at], 0);
            memset(all[i], (int)(i % 255) + 1, SIZE);
        }
        for (size_t i = 0; i < MANY; i++) {
            for (size_t at = 0; at < SIZE; at++)
                assert_int_equal(all[i][at], i % 255 + 1);
            pool_give(&pool, all[i]);
        }
        assert_int_equal(pool.blocks, 1);
    }
    pool_give(&pool, NULL);
    pool_release(&pool);
    assert_int_equal(pool.blocks, 0);
    pool_give(&pool, pool_take(&pool)); /* it is usable again */
    pool_release(&pool);
    pool_release(&pool);
}

/* Whatever stands around it: what is left keeps its own block alone. */
static void what_is_left_keeps_its_block_alone(void **state)
{
    static void *all[MANY];
    struct pool pool = {.size = SIZE};
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        all[i] = pool_take(&pool);
    const size_t most = pool.blocks;
    assert_true(most > 4);
    assert_true(most < (size_t)MANY * SIZE / 20000);
    for (size_t i = 0; i < MANY; i++)
        if (i != MANY / 2)
            pool_give(&pool, all[i]);
    assert_true(pool.blocks <= 2); /* its own, and one for the next */
    for (size_t i = 0; i < MANY; i++)
        if (i != MANY / 2)
            all[i] = pool_take(&pool);
    assert_int_equal(pool.blocks, most); /* the free places of its block are used again */
    for (size_t i = 0; i < MANY; i++)
        pool_give(&pool, all[i]);
    pool_release(&pool);
}

static void an_object_may_be_tiny_or_larger_than_a_block(void **state)
{
    struct pool tiny = {.size = 1}, large = {.size = 100000};
    (void)state;
    char *first = pool_take(&tiny), *second = pool_take(&tiny);
    assert_ptr_not_equal(first, second);
    pool_give(&tiny, first);
    assert_ptr_equal(pool_take(&tiny), first);
    pool_give(&tiny, first);
    pool_give(&tiny, second);
    pool_release(&tiny);
    void *one = pool_take(&large), *other = pool_take(&large);
    assert_int_equal(large.blocks, 2);
    pool_give(&large, one);
    pool_give(&large, other);
    assert_int_equal(large.blocks, 1);
    pool_release(&large);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_are_zeroed_and_apart),
    cmocka_unit_test(what_is_left_keeps_its_block_alone),
    cmocka_unit_test(an_object_may_be_tiny_or_larger_than_a_block),
};
UNIT_FILE(tests, NULL, NULL);
