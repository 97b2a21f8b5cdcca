/* An arena gives memory that lives until its release. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"

/* Reads what an arena has given out no more. */
__attribute__((no_sanitize("address"))) static unsigned char byte_forgotten(const void *at)
{
    return *(const volatile unsigned char *)at;
}

static void test_arena(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 1; i < 3000; i += 7) {
        unsigned char *bytes = arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)bytes % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(bytes[j], 0);
            bytes[j] = 0xff;
        }
    }
    arena_clear(&arena);
    assert_string_equal(arena_format(&arena, "%s-%d", "worker", 3), "worker-3");
    assert_string_equal(arena_copy(&arena, TEXT("abc")), "abc");
    arena_release(&arena);
    arena_wipe(&arena); /* nothing to wipe */
    const char *secret = arena_copy(&arena, TEXT("secret"));
    arena_wipe(&arena); /* its memory is kept for the next, but not what was in it */
    for (size_t i = 0; i < sizeof "secret"; i++)
        assert_int_equal(byte_forgotten(&secret[i]), 0);
    arena_release(&arena);
}

static void test_arena_large(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    arena_clear(&arena); /* nothing to forget */
    assert_int_equal(arena_size(&arena), 0);
    memset(arena_alloc(&arena, 3 << 20), 1, 3 << 20); /* larger than a block */
    for (int i = 0; i < 5; i++)
        assert_non_null(arena_alloc(&arena, 1 << 20));
    assert_true(arena_size(&arena) >= 8 << 20);
    int *numbers = ARENA_ARRAY(&arena, int, 10);
    assert_int_equal(numbers[9], 0);
    assert_non_null(ARENA_NEW(&arena, struct err));
    assert_string_equal(arena_copy(&arena, (struct text){NULL, 0}), "");
    arena_release(&arena);
}

/* Lines of every length, wherever the block ends. */
static void test_arena_format_lengths(void **state)
{
    (void)state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    for (int length = 1; length < 1200; length += length == 300 ? 500 : 1) {
        const char *line = arena_format(&arena, "%0*d", length, 0);
        const char *next = arena_format(&arena, "%s", "next");
        assert_int_equal(strspn(line, "0"), length);
        assert_int_equal(line[length], '\0');
        assert_string_equal(next, "next");
        const unsigned char *zeroed = arena_alloc(&arena, 300);
        for (size_t i = 0; i < 300; i++)
            assert_int_equal(zeroed[i], 0);
    }
}

/* Is touching this byte reported? */
static bool is_shut(const void *at)
{
#ifdef ARENA_HAS_BORDERS
    return __asan_address_is_poisoned(at);
#else
    (void)at;
    return false;
#endif
}

static void test_arena_border(void **state)
{
    (void)state;
    const bool is_watched = ARENA_BORDER > 0;
    cleanup_arena struct arena arena;
    const unsigned char *bytes[600]; /* more than one block of them */
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(bytes); i++)
        bytes[i] = arena_alloc(&arena, i);
    for (size_t i = 0; i < COUNT_OF(bytes); i++) {
        for (size_t k = 0; k < i; k++)
            assert_false(is_shut(bytes[i] + k));
        assert_int_equal(is_shut(bytes[i] + i), is_watched);
    }
    arena_clear(&arena);
    const unsigned char *last = bytes[COUNT_OF(bytes) - 1];
    assert_int_equal(is_shut(last), is_watched);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_arena),
    cmocka_unit_test(test_arena_border),
    cmocka_unit_test(test_arena_format_lengths),
    cmocka_unit_test(test_arena_large),
};
UNIT_FILE(tests, NULL, NULL);
