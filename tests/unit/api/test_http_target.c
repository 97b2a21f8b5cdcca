/* What a request line asks for: the parts of its path and its query. */
#include "unit.h"

#include <semaphore.h>
#include <sys/eventfd.h>

#include "api/http.h"
#include "base/err.h"
#include "base/memory.h"

/* ---- targets and routes, without a socket ---- */

static void test_target(void **state)
{
    (void)state;
    struct exchange exchange;
    struct err err;
    exchange_init(&exchange);
    assert_int_equal(
        exchange_target(&exchange, TEXT("http://h:1/a%2Fb/c/?x=1+2&y&z=%26&x=3"), &err), 0);
    assert_int_equal(exchange.segment_count, 2);
    assert_true(text_is(exchange.segments[0], "a/b"));
    assert_true(text_is(exchange.segments[1], "c"));
    assert_true(text_is(exchange_query(&exchange, "x"), "1 2"));
    assert_true(text_is(exchange_query(&exchange, "z"), "&"));
    assert_non_null(exchange_query(&exchange, "y").at);
    assert_null(exchange_query(&exchange, "w").at);
    exchange_release(&exchange);

    exchange_init(&exchange); /* of the server, not of its root */
    assert_int_equal(exchange_target(&exchange, TEXT("*"), &err), 0);
    assert_int_equal(exchange.segment_count, 1);
    assert_true(text_is(exchange.segments[0], "*"));
    exchange_release(&exchange);

    struct buf many = BUF_INIT;
    buf_string(&many, "/?a");
    for (int i = 0; i < HTTP_QUERY_MAX; i++)
        buf_string(&many, "&a");
    exchange_init(&exchange);
    assert_int_equal(exchange_target(&exchange, buf_as_text(&many), &err), ERR_TOO_BIG);
    exchange_release(&exchange);
    buf_release(&many);
}

/* Where it stands is said, from 1: in the part of the path, or in the query. */
static void bad_codes_are_named(void **state)
{
    static const struct {
        const char *target, *text;
    } BAD[] = {
        {"/ab%zz", "bad percent code at byte 3"},
        {"/a/%4", "bad percent code at byte 1"},
        {"/ab%00", "a NUL byte at byte 3"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct exchange exchange;
        struct err err;
        exchange_init(&exchange);
        assert_int_equal(exchange_target(&exchange, text_of(BAD[i].target), &err), ERR_INVALID);
        assert_string_equal(err.text, BAD[i].text);
        exchange_release(&exchange);
    }
}

static void test_cookie(void **state)
{
    (void)state;
    struct exchange exchange;
    exchange_init(&exchange);
    assert_null(exchange_cookie(&exchange, "a").at);
    exchange.cookie = TEXT("a; ab=1;b=2=3;  c=; a=4");
    assert_true(text_is(exchange_cookie(&exchange, "a"), "4"));
    assert_true(text_is(exchange_cookie(&exchange, "b"), "2=3"));
    assert_true(text_is(exchange_cookie(&exchange, "c"), ""));
    assert_null(exchange_cookie(&exchange, "d").at);
    exchange_release(&exchange);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_target),
    cmocka_unit_test(bad_codes_are_named),
    cmocka_unit_test(test_cookie),
};
UNIT_FILE(tests, NULL, NULL);
