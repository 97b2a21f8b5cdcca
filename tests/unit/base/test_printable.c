/* Text from outside as a terminal may show it. */
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/text.h"

/* Of what a program writes stays what a terminal would show. */
static void test_printable(void **state)
{
    (void)state;
    const struct {
        struct text in;
        const char *out;
    } CASES[] = {
        {TEXT(""), ""},
        {TEXT("plain\n\tline\n"), "plain\n\tline\n"},
        {TEXT("caf\xc3\xa9 \xe6\x9c\xac \xf0\x9f\x90\x9d"),
         "caf\xc3\xa9 \xe6\x9c\xac \xf0\x9f\x90\x9d"},
        {TEXT("\x1b[1;31mred\x1b[0m!"), "red!"},
        {TEXT("\x1b]0;title\x07shell"), "shell"},
        {TEXT("\x1b]0;title\x1b\\shell"), "shell"},
        {TEXT("\x1b]never ended\nnext"), "\nnext"},
        {TEXT("\x1b(Bcharset \x1b=keypad \x1b"), "charset keypad "},
        {TEXT("\x1b[12"), ""},
        {TEXT("a\0b\ac\x7f"), "abc"},
        {TEXT("c1 \xc2\x9b gone"), "c1  gone"},
        {TEXT("dos\r\nlines\r\n"), "dos\nlines\n"},
        {TEXT(" 10%\r 50%\r100%\ndone"), "100%\ndone"},
        {TEXT("one\nold\r\x1b[Knew"), "one\nnew"},
        {TEXT("kept\r"), "kept"},
        {TEXT("half \xe6\x9c"), "half \xef\xbf\xbd\xef\xbf\xbd"},
        {TEXT("\xff\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {TEXT("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct buf out = BUF_INIT;
        buf_string(&out, "before ");
        printable_put(&out, CASES[i].in);
        assert_memory_equal(buf_cstr(&out), "before ", 7);
        assert_string_equal(buf_cstr(&out) + 7, CASES[i].out);
        buf_release(&out);
    }
}

static void test_printable_line(void **state)
{
    (void)state;
    assert_true(printable_is_line(TEXT("")));
    assert_true(printable_is_line(TEXT("gr\xc3\xb6\xc3\x9f\x65 2 \xe2\x82\xac")));
    static const struct text BAD[] = {{"a\nb", 3}, {"\t", 1},       {"\x1b[0m", 4}, {"\x7f", 1},
                                      {"\0", 1},   {"\xc2\x9b", 2}, {"\xff", 1}};
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        assert_false(printable_is_line(BAD[i]));
}

static void test_printable_strip(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    printable_strip(&out, TEXT("\x1b[31mSyntax\x1b[1mError\x1b[0m\r\n\xff\a\x1b"));
    assert_string_equal(buf_cstr(&out), "SyntaxError\r\n\xff\a");
    buf_clear(&out);
    printable_strip(&out, (struct text){NULL, 0});
    assert_int_equal(out.length, 0);
    buf_release(&out);
}

static bool is_printable(struct text text)
{
    for (size_t i = 0; i < text.length;) {
        const size_t length = text_utf8_length(text, i);
        const unsigned char c = (unsigned char)text.at[i];
        if (!length || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return false;
        i += length;
    }
    return true;
}

/* Whatever comes, and wherever it is cut. */
static void test_printable_is_always_valid(void **state)
{
    (void)state;
    static const char ALPHABET[] = "\x1b[]\\;1m\r\n\t\a\x7f\xc2\x9b\xe6\x9c\xac\xf0\x9f\xff a";
    struct random random = {7};
    for (int round = 0; round < 20000; round++) {
        char bytes[40];
        struct buf out = BUF_INIT;
        const size_t length = random_below(&random, sizeof bytes + 1);
        for (size_t i = 0; i < length; i++)
            bytes[i] = ALPHABET[random_below(&random, sizeof ALPHABET)];
        printable_put(&out, (struct text){bytes, length});
        assert_true(out.length <= 3 * length);
        assert_true(is_printable(buf_as_text(&out)));
        const size_t most = random_below(&random, sizeof bytes);
        const struct text tail = printable_tail(buf_as_text(&out), most);
        const struct text head = printable_head(buf_as_text(&out), most);
        assert_true(tail.length <= most && head.length <= most);
        assert_true(is_printable(tail) && is_printable(head));
        buf_release(&out);
    }
}

static void test_printable_cut(void **state)
{
    (void)state;
    struct text text = TEXT("one\ntwo\nthree\n");
    assert_true(text_is(printable_tail(text, 100), "one\ntwo\nthree\n"));
    assert_true(text_is(printable_tail(text, 10), "two\nthree\n"));
    assert_true(text_is(printable_tail(text, 9), "three\n"));
    assert_true(text_is(printable_tail(text, 6), "three\n"));
    assert_true(text_is(printable_tail(text, 4), "ree\n")); /* no whole line fits */
    assert_true(text_is(printable_tail(text, 0), ""));
    assert_true(text_is(printable_tail(TEXT("a\xe6\x9c\xac"), 2), ""));
    assert_true(text_is(printable_tail(TEXT("a\xe6\x9c\xac"), 3), "\xe6\x9c\xac"));
    assert_true(text_is(printable_head(TEXT("a\xe6\x9c\xac"), 3), "a"));
    assert_true(text_is(printable_head(TEXT("a\xe6\x9c\xac"), 4), "a\xe6\x9c\xac"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_printable),       cmocka_unit_test(test_printable_line),
    cmocka_unit_test(test_printable_strip), cmocka_unit_test(test_printable_is_always_valid),
    cmocka_unit_test(test_printable_cut),
};
UNIT_FILE(tests, NULL, NULL);
