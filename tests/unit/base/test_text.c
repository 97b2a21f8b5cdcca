/* Pieces of text: numbers, parts, distances. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"

static void test_text_numbers(void **state)
{
    (void)state;
    int64_t value = 7;
    assert_true(text_to_int64(TEXT("-9223372036854775808"), &value));
    assert_true(value == INT64_MIN);
    assert_true(text_to_int64(TEXT("9223372036854775807"), &value));
    assert_true(value == INT64_MAX);
    const char *wrong[] = {"", "-", "1x", " 1", "9223372036854775808", "-9223372036854775809"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        value = 42;
        assert_false(text_to_int64(text_of(wrong[i]), &value));
        assert_int_equal(value, 42);
    }
}

static void test_text_parts(void **state)
{
    (void)state;
    struct text rest = TEXT("a,,b");
    assert_true(text_is(text_cut(&rest, ','), "a"));
    assert_true(text_is(text_cut(&rest, ','), ""));
    assert_non_null(rest.at);
    assert_true(text_is(text_cut(&rest, ','), "b"));
    assert_null(rest.at);
    assert_true(text_is(text_trim(TEXT(" \t a b\r\n")), "a b"));
    assert_int_equal(text_find(TEXT("abcabd"), TEXT("abd")), 3);
    assert_true(text_find(TEXT("abc"), TEXT("x")) == SIZE_MAX);
    assert_true(text_starts(TEXT("abc"), TEXT("ab")));
    assert_false(text_starts(TEXT("ab"), TEXT("abc")));
    assert_true(text_starts(rest, rest)); /* nothing, at no address */
}

static void test_text_distance(void **state)
{
    (void)state;
    assert_int_equal(text_distance(TEXT("taskNumbr"), TEXT("taskNumber"), 3), 1);
    assert_int_equal(text_distance(TEXT("taksNumber"), TEXT("taskNumber"), 3), 1);
    assert_int_equal(text_distance(TEXT("abc"), TEXT("abc"), 3), 0);
    assert_int_equal(text_distance(TEXT("abc"), TEXT("xyz"), 2), 3);
    assert_int_equal(text_distance(TEXT(""), TEXT("ab"), 3), 2);
}

static void test_text_edges(void **state)
{
    (void)state;
    assert_int_equal(text_of(NULL).length, 0);
    assert_true(text_equal((struct text){NULL, 0}, TEXT("")));
    assert_false(text_equal(TEXT("a"), TEXT("b")));
    assert_false(text_is(TEXT("a"), "ab"));
    assert_int_equal(text_find(TEXT("abc"), TEXT("")), 0);
    assert_true(text_find((struct text){NULL, 0}, TEXT("a")) == SIZE_MAX);
    struct text none = {NULL, 0};
    assert_int_equal(text_cut(&none, ',').length, 0);
    assert_int_equal(text_trim(TEXT(" \t\r\n")).length, 0);
    int64_t value;
    assert_false(text_to_int64(TEXT("99999999999999999999"), &value));
    assert_false(text_to_int64(TEXT("/"), &value));
    char longer[70] = {0};
    memset(longer, 'a', 69);
    assert_int_equal(text_distance(text_of(longer), TEXT("a"), 2), 3);
    assert_int_equal(text_distance(TEXT("a"), text_of(longer), 2), 3);
    assert_int_equal(text_distance(TEXT("ab"), TEXT("ba"), 2), 1);
    assert_int_equal(text_distance(TEXT("abcd"), TEXT("acxd"), 3), 2);
    assert_true(text_hash(TEXT("a"), 0) != text_hash(TEXT("a"), 1));
    assert_true(text_words_hash(TEXT("1 of 20"), 0) == text_words_hash(TEXT("12 of 3"), 0));
    assert_true(text_words_hash(TEXT("1 of 20"), 0) != text_words_hash(TEXT("1 or 20"), 0));
    assert_true(text_words_hash(TEXT("a"), 0) != text_words_hash(TEXT("a"), 1));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_text_numbers),
    cmocka_unit_test(test_text_parts),
    cmocka_unit_test(test_text_distance),
    cmocka_unit_test(test_text_edges),
};
UNIT_FILE(tests, NULL, NULL);
