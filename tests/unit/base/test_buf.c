/* A buffer grows, and what is encoded in it is read back, or refused. */
#include "unit.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"

static void test_buf_encoding(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_put_u8(&buf, 200);
    buf_put_u32(&buf, 0xdeadbeef);
    buf_put_u64(&buf, UINT64_MAX - 1);
    buf_put_text(&buf, TEXT("skep"));
    struct cursor cursor = cursor_of(buf_as_text(&buf));
    assert_int_equal(cursor_u8(&cursor), 200);
    assert_int_equal(cursor_u32(&cursor), 0xdeadbeef);
    assert_true(cursor_u64(&cursor) == UINT64_MAX - 1);
    assert_true(text_is(cursor_text(&cursor), "skep"));
    assert_false(cursor.is_bad);
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_true(cursor.is_bad);
    assert_int_equal(cursor_text(&cursor).length, 0);
    buf_release(&buf);
}

/* A length that points past the end must not be believed. */
static void test_cursor_lying_length(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_put_u32(&buf, UINT32_MAX);
    buf_string(&buf, "short");
    struct cursor cursor = cursor_of(buf_as_text(&buf));
    assert_int_equal(cursor_text(&cursor).length, 0);
    assert_true(cursor.is_bad);
    buf_release(&buf);
}

static void test_buf_grows(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    assert_string_equal(buf_cstr(&buf), "");
    buf_clear(&buf);
    for (int i = 0; i < 1000; i++)
        buf_format(&buf, "%d,", i);
    assert_int_equal(buf.length, 3890);
    assert_true(text_starts(buf_as_text(&buf), TEXT("0,1,2,")));
    assert_false(text_starts(TEXT("ab"), TEXT("abc")));
    buf_clear(&buf);
    assert_string_equal(buf_cstr(&buf), "");
    buf_char(&buf, 'x');
    char *bytes = buf_steal(&buf);
    assert_string_equal(bytes, "x");
    mem_free(bytes);
    bytes = buf_steal(&buf); /* of an empty buffer: an empty string */
    assert_string_equal(bytes, "");
    mem_free(bytes);
    struct cursor none = cursor_of((struct text){NULL, 0});
    assert_int_equal(cursor_u64(&none), 0);
    assert_true(none.is_bad);
}

/* Texts of every length around the room that a buffer gets first. */
static void test_buf_format_lengths(void **state)
{
    (void)state;
    for (int before = 0; before < 130; before++)
        for (int length = 0; length < 200; length++) {
            cleanup_buf struct buf buf = BUF_INIT;
            buf_format(&buf, "%*s", before, "");
            buf_format(&buf, "%0*d", length, 0);
            const size_t added = length ? (size_t)length : 1;
            assert_int_equal(buf.length, (size_t)before + added);
            assert_int_equal(strlen(buf_cstr(&buf)), buf.length);
            assert_int_equal(strspn(buf_cstr(&buf) + before, "0"), added);
        }
}

static void test_buf_shell_word(void **state)
{
    (void)state;
    static const char *const WORDS[][2] = {
        {"", "''"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"$(x)\n", "'$(x)\n'"}};
    for (size_t i = 0; i < COUNT_OF(WORDS); i++) {
        cleanup_buf struct buf buf = BUF_INIT;
        buf_shell_word(&buf, text_of(WORDS[i][0]));
        assert_string_equal(buf_cstr(&buf), WORDS[i][1]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_buf_shell_word), cmocka_unit_test(test_buf_format_lengths),
    cmocka_unit_test(test_buf_encoding),   cmocka_unit_test(test_cursor_lying_length),
    cmocka_unit_test(test_buf_grows),
};
UNIT_FILE(tests, NULL, NULL);
