/* Which function serves which path. */
#include "unit.h"

#include <semaphore.h>
#include <sys/eventfd.h>

#include "api/http.h"
#include "api/route.h"
#include "base/err.h"
#include "base/memory.h"

static const struct route TEST_ROUTES[] = {
    {HTTP_GET, "/x/fixed", ACCESS_ANYONE, NULL, false},
    {HTTP_GET, "/x/:a", ACCESS_ANYONE, NULL, false},
    {HTTP_PUT, "/x/:a/y/:b", ACCESS_ANYONE, NULL, false},
};

static const struct route *find(enum http_method method, const char *target,
                                struct route_match *match)
{
    struct exchange exchange;
    struct err err;
    exchange_init(&exchange);
    exchange.method = method;
    assert_int_equal(exchange_target(&exchange, text_of(target), &err), 0);
    route_find(TEST_ROUTES, COUNT_OF(TEST_ROUTES), &exchange, match);
    exchange_release(&exchange);
    return match->route;
}

static void test_routes(void **state)
{
    (void)state;
    struct route_match match;
    assert_ptr_equal(find(HTTP_GET, "/x/fixed", &match), &TEST_ROUTES[0]);
    assert_ptr_equal(find(HTTP_HEAD, "/x/other", &match), &TEST_ROUTES[1]);
    assert_ptr_equal(find(HTTP_PUT, "/rest-server/x/1/y/2", &match), &TEST_ROUTES[2]);
    assert_null(find(HTTP_GET, "/x/1/y/2", &match));
    assert_true(match.is_path_known);
    assert_null(find(HTTP_GET, "/x", &match));
    assert_false(match.is_path_known);
    assert_null(find(HTTP_GET, "/x//", &match));
    assert_null(find(HTTP_GET, "/", &match));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_routes),
};
UNIT_FILE(tests, NULL, NULL);
