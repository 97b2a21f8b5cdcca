/* Pieces of logs as lines: what was written comes out again, and nothing else is taken for it. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "init/log_line.h"

/* "KIND OFFSET ALL TEXT" with its sum put in. */
static struct text summed(const char *line, struct buf *out)
{
    struct text rest = text_of(line);
    int64_t offset, all;
    const struct text kind = text_cut(&rest, ' ');
    assert_int_equal(kind.length, 1);
    assert_true(text_to_int64(text_cut(&rest, ' '), &offset));
    assert_true(text_to_int64(text_cut(&rest, ' '), &all));
    const unsigned sum = log_line_sum(kind.at[0], (uint64_t)offset, (uint64_t)all, rest);
    const size_t begin = out->length;
    buf_format(out, "%c %lld %lld %06x %.*s", kind.at[0], (long long)offset, (long long)all, sum,
               TEXT_ARG(rest));
    return (struct text){out->at + begin, out->length - begin};
}

static bool is_read(const char *line, struct log_line *out)
{
    static struct buf summed_line; /* what is read points there */
    buf_release(&summed_line);
    return log_line_read(summed(line, &summed_line), out);
}

static void lines_are_written(void **state)
{
    (void)state;
    uint64_t offset = 10, all = 100, runtime = 7;
    cleanup_buf struct buf out = BUF_INIT;
    log_lines_write(LOG_LINE_STDOUT, TEXT("one\n\ntwo"), &offset, &all, &out);
    log_lines_write(LOG_LINE_STDERR, TEXT("\n"), &offset, &all, &out);
    log_lines_write(LOG_LINE_RUNTIME, TEXT("r\n"), &runtime, &all, &out);
    log_lines_write(LOG_LINE_STDOUT, TEXT(""), &offset, &all, &out);
    log_line_write_end(false, &out);
    static const char *const wanted[] = {"o 10 100 one", "o 14 104 ", "O 15 105 two",
                                         "e 18 108 ",    "r 7 0 r",   ". 0 0 "};
    cleanup_buf struct buf lines = BUF_INIT;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        summed(wanted[i], &lines);
        buf_char(&lines, '\n');
    }
    assert_string_equal(buf_cstr(&out), buf_cstr(&lines));
    assert_int_equal(offset, 19);
    assert_int_equal(all, 109);
    assert_int_equal(runtime, 9);
}

/* No line is so long that a container runtime would cut it. */
static void long_lines_are_cut(void **state)
{
    (void)state;
    static char bytes[3 * LOG_LINE_TEXT_MAX];
    uint64_t offset = 0, all = 0, wanted = 0;
    cleanup_buf struct buf out = BUF_INIT;
    memset(bytes, 'x', sizeof bytes);
    log_lines_write(LOG_LINE_STDERR, (struct text){bytes, sizeof bytes}, &offset, &all, &out);
    assert_int_equal(offset, sizeof bytes);
    struct text left = buf_as_text(&out);
    while (left.length > 0) {
        struct log_line line;
        assert_true(log_line_read(text_cut(&left, '\n'), &line));
        assert_int_equal(line.kind, LOG_LINE_STDERR);
        assert_false(line.has_newline);
        assert_int_equal(line.offset, wanted);
        assert_int_equal(line.text.length, LOG_LINE_TEXT_MAX);
        wanted += LOG_LINE_TEXT_MAX;
    }
    assert_int_equal(wanted, sizeof bytes);
}

static void lines_are_read(void **state)
{
    (void)state;
    struct log_line line;
    assert_true(is_read("e 5 17  a b ", &line));
    assert_int_equal(line.kind, LOG_LINE_STDERR);
    assert_int_equal(line.offset, 5);
    assert_int_equal(line.all_offset, 17);
    assert_true(line.has_newline);
    assert_true(text_is(line.text, " a b "));
    assert_true(is_read("R 0 0 x", &line));
    assert_int_equal(line.kind, LOG_LINE_RUNTIME);
    assert_false(line.has_newline);
    assert_true(is_read("o 0 0 ", &line));
    assert_int_equal(line.text.length, 0);
    assert_true(is_read(". 0 0 ", &line));
    assert_int_equal(line.kind, LOG_LINE_END);
}

static void nothing_else_is_read(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "o",
        "x 0 0 ",
        "o 0 0",
        "o  0 0 a",
        "o -1 0 a",
        "o 0 -1 a",
        "o 1x 0 ",
        "ordinary ",
        "oo 0 0 ",
        "o 99999999999999999999 0 a",
        "o 0",
    };
    static char bytes[LOG_LINE_TEXT_MAX + 10] = "o 0 0 ";
    cleanup_buf struct buf good = BUF_INIT;
    struct log_line line;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(log_line_read(text_of(others[i]), &line));
    assert_false(log_line_read((struct text){"\0 0 0 a", 7}, &line));
    memset(bytes + 6, 'x', LOG_LINE_TEXT_MAX + 1);
    assert_false(is_read(bytes, &line));
    bytes[LOG_LINE_TEXT_MAX + 6] = '\0';
    assert_true(is_read(bytes, &line));
    /* another text, another place, a part of it: it is none */
    struct text whole = summed("o 12 34 hello", &good);
    assert_true(log_line_read(whole, &line));
    assert_false(log_line_read((struct text){whole.at, whole.length - 1}, &line));
    for (size_t i = 0; i < whole.length; i++) {
        good.at[i] ^= 1;
        assert_false(log_line_read(whole, &line));
        good.at[i] ^= 1;
    }
}

static void what_a_container_uses_is_a_line(void **state)
{
    (void)state;
    const struct log_line_use use = {1, 2, 3, 4, 5};
    struct log_line_use back;
    struct log_line line;
    cleanup_buf struct buf out = BUF_INIT;
    log_line_use_write(10000, &use, &out);
    cleanup_buf struct buf wanted = BUF_INIT;
    summed("u 10000 0 1 2 3 4 5", &wanted);
    buf_char(&wanted, '\n');
    assert_string_equal(buf_cstr(&out), buf_cstr(&wanted));
    struct text left = buf_as_text(&out);
    assert_true(log_line_read(text_cut(&left, '\n'), &line));
    assert_int_equal(line.kind, LOG_LINE_USE);
    assert_false(line.has_newline);
    assert_int_equal(line.offset, 10000);
    assert_true(log_line_use_read(line.text, &back));
    assert_memory_equal(&back, &use, sizeof use);
    static const char *const wrong[] = {"", "1 2 3 4", "1 2 3 4 5 6", "1 2 x 4 5", "1 -2 3 4 5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(log_line_use_read(text_of(wrong[i]), &back));
}

static void how_long_the_streams_are(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT;
    struct log_line line;
    uint64_t err_offset, runtime_offset;
    log_line_write_told(1, 3, 2, 9, &out);
    assert_true(log_line_read((struct text){out.at, out.length - 1}, &line));
    assert_int_equal(line.kind, LOG_LINE_TOLD);
    assert_int_equal(line.offset, 1);
    assert_int_equal(line.all_offset, 3);
    assert_true(log_line_told_read(line.text, &err_offset, &runtime_offset));
    assert_int_equal(err_offset, 2);
    assert_int_equal(runtime_offset, 9);
    assert_false(log_line_told_read(TEXT("1"), &err_offset, &runtime_offset));
    assert_false(log_line_told_read(TEXT("1 2 3"), &err_offset, &runtime_offset));
}

static void an_end_that_waits(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT;
    struct log_line line;
    log_line_write_end(true, &out);
    assert_true(log_line_read((struct text){out.at, out.length - 1}, &line));
    assert_int_equal(line.kind, LOG_LINE_END);
    assert_true(log_line_waits(&line));
    assert_true(is_read(". 0 0 ", &line));
    assert_false(log_line_waits(&line));
}

static void pieces(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT;
    struct log_piece piece;
    log_piece_write(2, 77, LOG_PIECE_MAX, &out);
    assert_string_equal(buf_cstr(&out), "a 77 65536\n");
    assert_true(log_piece_read(TEXT("a 77 65536"), &piece));
    assert_true(!piece.is_end && piece.stream == 2 && piece.offset == 77);
    assert_int_equal(piece.length, LOG_PIECE_MAX);
    buf_clear(&out);
    log_piece_write_end(LOG_FETCH_WHOLE, &out);
    assert_string_equal(buf_cstr(&out), ". 1 0\n");
    assert_true(log_piece_read(TEXT(". 1 0"), &piece));
    assert_true(piece.is_end && piece.end == LOG_FETCH_WHOLE);
    static const char *const others[] = {"",          "a",      "a 1",   "a 1 0",
                                         "a 1 65537", "x 1 1",  ". 3 0", ". 1 1",
                                         "a 1 1 1",   "a -1 1", "a 1 -1"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (log_piece_read(text_of(others[i]), &piece))
            fail_msg("\"%s\" is no head of a piece", others[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_container_uses_is_a_line),
    cmocka_unit_test(lines_are_written),
    cmocka_unit_test(long_lines_are_cut),
    cmocka_unit_test(lines_are_read),
    cmocka_unit_test(nothing_else_is_read),
    cmocka_unit_test(how_long_the_streams_are),
    cmocka_unit_test(an_end_that_waits),
    cmocka_unit_test(pieces),
};

UNIT_FILE(tests, NULL, NULL);
