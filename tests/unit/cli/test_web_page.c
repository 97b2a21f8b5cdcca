/* Which addresses a browser may be given. */
#include "unit.h"

#include "base/memory.h"
#include "cli/web_page.h"

static void test_addresses(void **state)
{
    static const char *const bad[] = {
        "",        "javascript:alert(1)", "file:///etc/passwd", "ftp://a",         "--help",
        "http:/a", "https://a b",         "https://a\nb",       "https://\xc3\xa9"};
    (void)state;
    assert_true(web_page_is_good("https://a.example.org/x?y=z"));
    assert_true(web_page_is_good("http://a.localhost:9187/"));
    assert_false(web_page_is_good(NULL));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (web_page_is_good(bad[i]))
            fail_msg("%s", bad[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_addresses),
};
UNIT_FILE(tests, NULL, NULL);
