/* Families of web origins: what is one, and what is not. */
#include "unit.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/origin.h"

static void test_origins(void **state)
{
    static const char *const bad[] = {"",
                                      "*.jobs.example.org",
                                      "https://jobs.example.org",
                                      "ftp://*.a",
                                      "https://*.",
                                      "https://*.a/",
                                      "https://*.a:",
                                      "https://*.a:0",
                                      "https://*.a:65536",
                                      "https://*.a:80:81",
                                      "https://*.A",
                                      "https://*..a",
                                      "https://*.a..b",
                                      "https://*.a.",
                                      "https://*.a b",
                                      "https://*.a\r\nX: y"};
    struct origin_pattern origin;
    struct err err;
    (void)state;
    assert_int_equal(origin_pattern_parse("https://*.jobs.example.org", &origin, &err), 0);
    assert_true(origin.is_secure);
    assert_true(text_is(origin.suffix, ".jobs.example.org"));
    assert_int_equal(origin_pattern_parse("http://*.localhost:9187", &origin, &err), 0);
    assert_false(origin.is_secure);
    assert_true(text_is(origin.suffix, ".localhost:9187"));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (origin_pattern_parse(bad[i], &origin, &err) != ERR_INVALID)
            fail_msg("%s", bad[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_origins),
};
UNIT_FILE(tests, NULL, NULL);
