/* A time in words. */
#include "unit.h"

#include "base/memory.h"
#include "base/utc.h"

static void test_utc(void **state)
{
    (void)state;
    static const struct {
        int64_t at_ms;
        const char *text;
    } CASES[] = {
        {0, "1970-01-01 00:00:00 UTC"},
        {-1, "1970-01-01 00:00:00 UTC"},
        {951782399999, "2000-02-28 23:59:59 UTC"},
        {951782400000, "2000-02-29 00:00:00 UTC"},
        {951868800000, "2000-03-01 00:00:00 UTC"},
        {4107542400000, "2100-03-01 00:00:00 UTC"}, /* no leap year */
        {1798761599000, "2026-12-31 23:59:59 UTC"},
        {INT64_MAX, "9999-12-31 23:59:59 UTC"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char text[UTC_SIZE];
        assert_string_equal(utc_text(CASES[i].at_ms, text), CASES[i].text);
    }
}

static void test_instant(void **state)
{
    (void)state;
    char text[UTC_SIZE];
    assert_string_equal(utc_instant(951782400007, text), "2000-02-29T00:00:00.007Z");
    assert_string_equal(utc_instant(-5, text), "1970-01-01T00:00:00.000Z");
}

static void test_month(void **state)
{
    (void)state;
    static const struct {
        int64_t at_ms;
        int number;
        int64_t begin_ms, end_ms;
    } CASES[] = {
        {0, 197001, 0, 2678400000},
        {-1, 197001, 0, 2678400000},
        {951782400000, 200002, 949363200000, 951868800000}, /* a leap year */
        {951868799999, 200002, 949363200000, 951868800000},
        {951868800000, 200003, 951868800000, 954547200000},
        {1798761599999, 202612, 1796083200000, 1798761600000},
        {1798761600000, 202701, 1798761600000, 1801440000000},
        {INT64_MAX, 999912, 253399622400000, 253402300800000},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const struct utc_month month = utc_month_of(CASES[i].at_ms);
        assert_int_equal(month.number, CASES[i].number);
        assert_int_equal(month.begin_ms, CASES[i].begin_ms);
        assert_int_equal(month.end_ms, CASES[i].end_ms);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_month),
    cmocka_unit_test(test_utc),
    cmocka_unit_test(test_instant),
};
UNIT_FILE(tests, NULL, NULL);
