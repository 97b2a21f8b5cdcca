/* The header Range: which bytes it asks for, and what is no range. */
#include "unit.h"

#include "api/range.h"
#include "base/memory.h"

static const struct byte_range whole = {100, 1000};

static void test_ranges(void **state)
{
    static const struct {
        const char *header;
        uint64_t begin, end;
    } GOOD[] = {
        {"bytes=100-199", 100, 200},
        {"bytes=999-999", 999, 1000},
        {"bytes=200-", 200, 1000},
        {"bytes=900-5000", 900, 1000},
        {"bytes=-10", 990, 1000},
        {"bytes=-5000", 100, 1000},
        {"bytes=0-100", 100, 101}, /* the first bytes are gone */
        {"bytes=0-", 100, 1000},
        {"bytes=0-18446744073709551615", 100, 1000},
        {"bytes=0-99999999999999999999999", 100, 1000},
        {"bytes=-18446744073709551615", 100, 1000},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(GOOD); i++) {
        struct byte_range part = {0};
        if (range_parse(text_of(GOOD[i].header), &whole, &part) != RANGE_BYTES ||
            part.begin != GOOD[i].begin || part.end != GOOD[i].end)
            fail_msg("%s: %llu to %llu", GOOD[i].header, (unsigned long long)part.begin,
                     (unsigned long long)part.end);
    }
}

static void test_others(void **state)
{
    static const char *const NONE[] = {"",         "bytes",      "bytes=",     "bytes=-",
                                       "bytes=1",  "lines=1-2",  "bytes=2-1",  "bytes=1-2,5-",
                                       "bytes=a-", "bytes=-b",   "bytes= 1-2", "bytes=+1-2",
                                       "Bytes",    "bytes=1--2", "bytes=1-2-", "bytes=0x1-"};
    static const char *const OUTSIDE[] = {"bytes=1000-", "bytes=1000-2000", "bytes=-0",
                                          "bytes=0-99", "bytes=99999999999999999999-"};
    const struct byte_range nothing = {0, 0};
    struct byte_range part;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(NONE); i++)
        if (range_parse(text_of(NONE[i]), &whole, &part) != RANGE_NONE)
            fail_msg("%s is no range", NONE[i]);
    for (size_t i = 0; i < COUNT_OF(OUTSIDE); i++)
        if (range_parse(text_of(OUTSIDE[i]), &whole, &part) != RANGE_OUTSIDE)
            fail_msg("%s is outside", OUTSIDE[i]);
    assert_int_equal(range_parse(TEXT("bytes=0-"), &nothing, &part), RANGE_OUTSIDE);
    assert_int_equal(range_parse((struct text){NULL, 0}, &whole, &part), RANGE_NONE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ranges),
    cmocka_unit_test(test_others),
};
UNIT_FILE(tests, NULL, NULL);
