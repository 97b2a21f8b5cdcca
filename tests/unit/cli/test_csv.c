/* Rows of comma-separated values. */
#include "unit.h"

#include "base/buf.h"
#include "base/memory.h"
#include "cli/csv.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

/* Rows as "LINE:a|b", with a newline behind each; then the problem, if there is one. */
static const char *rows_of(const char *source)
{
    cleanup_buf struct buf out = BUF_INIT;
    struct text rest = text_of(source);
    struct csv_row row = {0};
    const char *problem;
    unsigned line = 1;
    while (csv_next(&rest, &line, &arena, &row, &problem)) {
        buf_format(&out, "%u:", row.line);
        for (size_t i = 0; i < row.count; i++)
            buf_format(&out, "%s%.*s", i ? "|" : "", TEXT_ARG(row.fields[i]));
        buf_char(&out, '\n');
    }
    if (problem)
        buf_format(&out, "%u:! %s", row.line, problem);
    return arena_copy(&arena, buf_as_text(&out));
}

static void rows_are_cut(void **state)
{
    (void)state;
    assert_string_equal(rows_of(""), "");
    assert_string_equal(rows_of("\n\r\n  \n"), "");
    assert_string_equal(rows_of("a,b\nc,d"), "1:a|b\n2:c|d\n");
    assert_string_equal(rows_of(" a , b \r\n\r\n,\n"), "1:a|b\n3:|\n");
    assert_string_equal(rows_of("a,\nb"), "1:a|\n2:b\n");
    assert_string_equal(rows_of("\xEF\xBB\xBFname\n"), "1:name\n");
}

static void quotes_hold_commas_and_lines(void **state)
{
    (void)state;
    assert_string_equal(rows_of("\"a,b\",\"c\"\"d\"\n\"e\nf\",g\nh\n"),
                        "1:a,b|c\"d\n2:e\nf|g\n4:h\n");
    assert_string_equal(rows_of("\"\", \" a \" ,b\n"), "1:| a |b\n");
    assert_string_equal(rows_of("a\"b\n"), "1:a\"b\n");
}

static void wrong_rows_are_told(void **state)
{
    (void)state;
    assert_string_equal(rows_of("a\n\"b\n"), "1:a\n2:! a quote is not closed");
    assert_string_equal(rows_of("\"a\"b,c\n"),
                        "1:! something stands between a closing quote and the comma");
    char many[2 * CSV_FIELDS_MAX + 2];
    memset(many, ',', sizeof many - 1);
    many[CSV_FIELDS_MAX - 1] = '\0';
    assert_null(strstr(rows_of(many), "!"));
    many[CSV_FIELDS_MAX - 1] = ',';
    many[CSV_FIELDS_MAX] = '\0';
    assert_string_equal(rows_of(many), "1:! a line has more than 64 fields");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_cut),
    cmocka_unit_test(quotes_hold_commas_and_lines),
    cmocka_unit_test(wrong_rows_are_told),
};
UNIT_FILE(tests, setup, teardown);
