/* Which URLs are asked, and how they are written. Replies: tests/system/signon. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "signon/fetch.h"

static void urls(void **state)
{
    static const char *const good[] = {
        "https://idp.example.org", "https://idp.example.org:8443/realms/a?b=c",
        "http://127.0.0.1:8080/x", "http://localhost/x",
        "http://[::1]:80/",
    };
    static const char *const bad[] = {
        "",
        "idp.example.org",
        "http://idp.example.org/",
        "http://127.0.0.1.example.org/", /* not a loopback address */
        "http://localhost.example.org/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "https://user:word@idp.example.org/",
        "https://idp.example.org/a b",
        "https://idp.example.org/a\r\nb",
        "https://idp.example.org/\xc3\xa9",
        "javascript:alert(1)",
    };
    char long_one[FETCH_URL_MAX + 2] = "https://idp.example.org/";
    struct fetch fetch = {.url = "http://idp.example.org/"};
    struct buf body = BUF_INIT;
    struct err err;
    long status;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!fetch_url_is_good(good[i]))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (fetch_url_is_good(bad[i]))
            fail_msg("taken: %s", bad[i]);
    memset(long_one + strlen(long_one), 'a', sizeof long_one - 1 - strlen(long_one));
    assert_false(fetch_url_is_good(long_one));
    assert_int_equal(fetch_run(&fetch, &body, &status, &err), ERR_INVALID);
}

static void parameters(void **state)
{
    struct buf url = BUF_INIT;
    (void)state;
    buf_string(&url, "https://a/b");
    fetch_parameter(&url, "c", TEXT("d e&f\n"));
    fetch_parameter(&url, "g", TEXT("-._~"));
    assert_string_equal(buf_cstr(&url), "https://a/b?c=d%20e%26f%0A&g=-._~");
    buf_release(&url);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(urls),
    cmocka_unit_test(parameters),
};
UNIT_FILE(tests, NULL, NULL);
