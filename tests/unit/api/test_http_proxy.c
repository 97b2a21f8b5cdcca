/* Whom a reverse proxy speaks for: only what trusted proxies wrote counts. */
#include "unit.h"

#include "api/http_proxy.h"
#include "base/address.h"
#include "base/memory.h"

static const char *const PROXIES[] = {"10.0.0.0/8", "192.168.1.1", "2001:db8::/32"};

static void assert_client(const char *peer, const char *forwarded, const char *expected)
{
    struct address_range networks[COUNT_OF(PROXIES)];
    struct text header = text_of(forwarded ? forwarded : "");
    for (size_t i = 0; i < COUNT_OF(PROXIES); i++)
        assert_int_equal(address_range_parse(PROXIES[i], &networks[i], NULL), 0);
    struct text client = http_proxy_client(networks, COUNT_OF(PROXIES), text_of(peer), header);
    if (!text_is(client, expected))
        fail_msg("%s, %s: %.*s", peer, forwarded ? forwarded : "nothing", TEXT_ARG(client));
}

static void test_clients(void **state)
{
    (void)state;
    static const struct {
        const char *peer, *forwarded, *client;
    } rows[] = {
        {"203.0.113.5", NULL, "203.0.113.5"},
        {"203.0.113.5", "198.51.100.1", "203.0.113.5"}, /* a lie: it is no proxy */
        {"10.1.2.3", NULL, "10.1.2.3"},
        {"10.1.2.3", "", "10.1.2.3"},
        {"10.1.2.3", "198.51.100.1", "198.51.100.1"},
        {"192.168.1.1", "198.51.100.1", "198.51.100.1"},
        {"192.168.1.2", "198.51.100.1", "192.168.1.2"},
        {"2001:db8::7", "2001:dead::1", "2001:dead::1"},
        {"2001:db9::7", "2001:dead::1", "2001:db9::7"},
        {"::ffff:10.1.2.3", "198.51.100.1", "198.51.100.1"},
        /* the client's own lies stand at the beginning */
        {"10.1.2.3", "1.1.1.1, 2.2.2.2 ,198.51.100.1", "198.51.100.1"},
        {"10.1.2.3", "1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"},
        {"10.1.2.3", "10.9.9.9, 10.8.8.8", "10.9.9.9"}, /* nobody but proxies */
        {"10.1.2.3", "198.51.100.1, rubbish", "10.1.2.3"},
        {"10.1.2.3", "198.51.100.1,", "10.1.2.3"},
        {"10.1.2.3", "[2001:dead::1]", "[2001:dead::1]"},
        {"10.1.2.3", "198.51.100.1:8080", "10.1.2.3"}, /* a port is no part of an address */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_client(rows[i].peer, rows[i].forwarded, rows[i].client);
}

/* IPv4's whole range is not all of IPv6. */
static void test_families(void **state)
{
    (void)state;
    struct address_range all_v4;
    assert_int_equal(address_range_parse("0.0.0.0/0", &all_v4, NULL), 0);
    assert_true(
        text_is(http_proxy_client(&all_v4, 1, TEXT("1.2.3.4"), TEXT("5.6.7.8")), "5.6.7.8"));
    assert_true(text_is(http_proxy_client(&all_v4, 1, TEXT("::1"), TEXT("5.6.7.8")), "::1"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_clients),
    cmocka_unit_test(test_families),
};
UNIT_FILE(tests, NULL, NULL);
