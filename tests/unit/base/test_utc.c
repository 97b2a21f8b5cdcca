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

static void test_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t at_ms;
    } CASES[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2000-02-29T00:00:00.007Z", 951782400007},
        {"2000-02-29T00:00:00.0079Z", 951782400007},
        {"2000-02-29T00:00:00.5Z", 951782400500},
        {"2000-02-29T01:30:00+01:30", 951782400000},
        {"2000-02-28T22:30:00-01:30", 951782400000},
        {"2026-12-31T23:59:60Z", 1798761600000},
        {"9999-12-31T23:59:59Z", 253402300799000},
    };
    static const char *const NONE[] = {
        "",
        "2000",
        "2000-02-29",
        "2000-02-29 00:00:00Z",
        "2000-02-29T00:00:00",
        "2000-02-29T00:00Z",
        "2000-02-29T00:00:0aZ",
        "2000-02-29T00:00:00.Z",
        "2000-02-29T00:00:00Zz",
        "2000-02-29T00:00:00x01:00",
        "2000-02-29T00:00:00+0100",
        "2000-02-29T00:00:00+24:00",
        "2000-02-29T24:00:00Z",
        "2000-02-29T00:60:00Z",
        "2000-02-29T00:00:61Z",
        "2001-02-29T00:00:00Z",
        "2000-00-29T00:00:00Z",
        "2000-13-29T00:00:00Z",
        "2000-02-00T00:00:00Z",
        "2000-2-29T00:00:00Z",
        "2000/02-29T00:00:00Z",
        "2000-02/29T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
    };
    int64_t at_ms = 0;
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        if (!utc_read(text_of(CASES[i].text), &at_ms) || at_ms != CASES[i].at_ms)
            fail_msg("%s: %lld", CASES[i].text, (long long)at_ms);
    }
    for (size_t i = 0; i < COUNT_OF(NONE); i++)
        if (utc_read(text_of(NONE[i]), &at_ms))
            fail_msg("%s: %lld", NONE[i], (long long)at_ms);
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
    cmocka_unit_test(test_read),
    cmocka_unit_test(test_month),
    cmocka_unit_test(test_utc),
    cmocka_unit_test(test_instant),
};
UNIT_FILE(tests, NULL, NULL);
