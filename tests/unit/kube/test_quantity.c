#include "unit.h"

#include "base/memory.h"
#include "kube/quantity.h"

static void amounts_are_read_in_thousandths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t milli;
    } cases[] = {
        {"0", 0},
        {"4", 4000},
        {"100m", 100},
        {"1.5", 1500},
        {".5", 500},
        {"2.", 2000},
        {"0.0005", 0},
        {"1.23456", 1234},
        {"250000u", 250},
        {"1500000000n", 1500},
        {"1k", 1000000},
        {"1M", INT64_C(1000000000)},
        {"3G", INT64_C(3000000000000)},
        {"1T", INT64_C(1000000000000000)},
        {"1P", INT64_C(1000000000000000000)},
        {"1Ki", 1024000},
        {"16Gi", (INT64_C(16) << 30) * 1000},
        {"1.5Mi", (INT64_C(3) << 19) * 1000},
        {"2Ti", (INT64_C(2) << 40) * 1000},
        {"16393244Ki", INT64_C(16393244) * 1024 * 1000},
        {"1e3", 1000000},
        {"12E2", 1200000},
        {"5e-1", 500},
        {"1e+2", 100000},
        {"1Pi", (INT64_C(1) << 50) * 1000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t milli = -1;
        assert_true(quantity_read(text_of(cases[i].text), &milli));
        assert_int_equal(milli, cases[i].milli);
    }
}

static void what_is_no_amount_changes_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "m",
                                      "-1",
                                      "+1",
                                      "1 ",
                                      " 1",
                                      "1.2.3",
                                      "1mi",
                                      "1KiB",
                                      "x1",
                                      "1e",
                                      "1e99",
                                      "1e-99",
                                      "0x10",
                                      "9e18",
                                      "1ee1",
                                      "1e+",
                                      "1E",
                                      "9Ei",
                                      "9223372036854775807",
                                      "99999999999999999999",
                                      "9223372036854775.9",
                                      "."};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t milli = -7;
        assert_false(quantity_read(text_of(bad[i]), &milli));
        assert_int_equal(milli, -7);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(amounts_are_read_in_thousandths),
    cmocka_unit_test(what_is_no_amount_changes_nothing),
};

UNIT_FILE(tests, NULL, NULL);
