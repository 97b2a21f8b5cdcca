/* Arrays that grow, and copies. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"

static void test_arrays(void **state)
{
    (void)state;
    struct {
        int *items;
        size_t count, room;
    } numbers = {0};
    for (int i = 0; i < 100; i++)
        *ARRAY_ADD(&numbers) = i;
    ARRAY_RESERVE(&numbers, 1000);
    assert_true(numbers.room >= 1000);
    assert_int_equal(numbers.items[99], 99);
    ARRAY_FREE(&numbers);
    assert_null(numbers.items);
    char *copy = mem_copy("abc");
    assert_string_equal(copy, "abc");
    mem_free(copy);
    void *nothing = mem_realloc(mem_alloc(0), 0), *zero = mem_zero(0, 8);
    assert_true(nothing && zero);
    mem_free(nothing);
    mem_free(zero);
    int *zeros = mem_zero(4, sizeof *zeros);
    assert_int_equal(zeros[3], 0);
    mem_free(zeros);
}

/* A large array takes its place far ahead, once. */
static void test_large_arrays(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20, ITEM = 100 };
    assert_int_equal(array_room_next(0, ITEM), 4);
    assert_int_equal(array_room_next(100, ITEM), 150);
    assert_int_equal(array_room_next(1700, ITEM), 2550);
    assert_int_equal(array_room_next(1800, ITEM), BYTES / ITEM);
    assert_int_equal(array_room_next(BYTES / ITEM, ITEM), BYTES / ITEM / 2 * 3);
    struct {
        uint64_t *items;
        size_t count, room;
    } numbers = {0};
    for (uint64_t i = 0; i < 200000; i++)
        *ARRAY_ADD(&numbers) = i;
    for (uint64_t i = 0; i < numbers.count; i++)
        assert_int_equal(numbers.items[i], i);
    assert_int_equal(numbers.room, BYTES / sizeof *numbers.items);
    ARRAY_FREE(&numbers);
}

static void test_copies(void **state)
{
    (void)state;
    const uint16_t numbers[] = {3, 1, 2};
    uint16_t *copy = mem_copy_array(numbers, 3, sizeof *numbers);
    assert_ptr_not_equal(copy, numbers);
    assert_memory_equal(copy, numbers, sizeof numbers);
    mem_free(copy);
    assert_null(mem_copy_array(numbers, 0, sizeof *numbers));
    assert_null(mem_copy_array(NULL, 3, sizeof *numbers));
    char *text = mem_copy("skep");
    assert_string_equal(text, "skep");
    mem_free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_arrays),
    cmocka_unit_test(test_large_arrays),
    cmocka_unit_test(test_copies),
};
UNIT_FILE(tests, NULL, NULL);
