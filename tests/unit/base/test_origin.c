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

static void test_origin_of(void **state)
{
    static const struct {
        const char *uri, *origin;
    } good[] = {
        {"https://plugins.example.org/market.js?nfs=a:/b#c", "https://plugins.example.org"},
        {"http://127.0.0.1:8080/x_y/p.js", "http://127.0.0.1:8080"},
        {"http://A-b_c", "http://A-b_c"},
        {"http://a:65535", "http://a:65535"},
        {"https://[2001:DB8::1]:8443/p", "https://[2001:DB8::1]:8443"},
        {"http://[::1]", "http://[::1]"},
        {"http://a?b", "http://a"},
        {"http://a#b", "http://a"},
    };
    static const char *const bad[] = {"",
                                      "plugin.js",
                                      "/scripts/plugin.js",
                                      "ftp://a/b",
                                      "javascript:alert(1)",
                                      "http://",
                                      "http:///a",
                                      "http://a b/",
                                      "http://a/b c",
                                      "http://a/b;script-src",
                                      "http://a/b,c",
                                      "http://a/\"b",
                                      "http://a/'b",
                                      "http://a/<b",
                                      "http://a/b>",
                                      "http://a/\\b",
                                      "http://a/\x7f",
                                      "http://a/\xc3\xa4",
                                      "http://a:/b",
                                      "http://a:0/",
                                      "http://a:65536/",
                                      "http://a:80x/",
                                      "http://user@a/",
                                      "http://user:word@a/",
                                      "http://*.a/",
                                      "http://[]/",
                                      "http://[::1",
                                      "http://[g::1]/",
                                      "http://[::1]x/",
                                      "http://a\nb"};
    struct text origin;
    struct err err;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_int_equal(web_origin_of(text_of(good[i].uri), &origin, &err), 0);
        assert_true(text_is(origin, good[i].origin));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (web_origin_of(text_of(bad[i]), &origin, &err) != ERR_INVALID)
            fail_msg("%s", bad[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_origins),
    cmocka_unit_test(test_origin_of),
};
UNIT_FILE(tests, NULL, NULL);
