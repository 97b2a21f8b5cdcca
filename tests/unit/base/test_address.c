/* Addresses and networks, as they are written and as they hold one another. */
#include "unit.h"

#include <string.h>

#include "base/address.h"
#include "base/err.h"
#include "base/memory.h"

static void test_networks(void **state)
{
    (void)state;
    static const char *const good[] = {"0.0.0.0/0", "::/0",    "10.0.0.1/32",
                                       "::1",       "::1/128", "127.0.0.1"};
    static const char *const bad[] = {
        "",       "/8",           "10.0.0.0/",   "10.0.0.0/33", "10.0.0.1/8",  "::1/129",
        "::1/64", "host.example", "10.0.0.0/-1", "10.0.0/8",    "10.0.0.0/8/8"};
    struct address_range range;
    struct err err;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_int_equal(address_range_parse(good[i], &range, &err), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(address_range_parse(bad[i], &range, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, bad[i]));
    }
}

static bool has(const char *text, const char *address)
{
    struct address_range range;
    assert_int_equal(address_range_parse(text, &range, NULL), 0);
    return address_range_has(&range, text_of(address));
}

static void test_what_they_hold(void **state)
{
    (void)state;
    assert_true(has("10.0.0.0/8", "10.255.255.255"));
    assert_false(has("10.0.0.0/8", "11.0.0.0"));
    assert_true(has("10.0.0.0/31", "10.0.0.1"));
    assert_false(has("10.0.0.0/31", "10.0.0.2"));
    assert_true(has("10.0.0.7", "10.0.0.7"));
    assert_false(has("10.0.0.7", "10.0.0.6"));
    assert_true(has("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(has("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(has("::/0", "1.2.3.4"));
    assert_false(has("0.0.0.0/0", "::1"));
    assert_false(has("::/0", "rubbish"));
    assert_true(address_is_numeric(TEXT("[::1]")));
    assert_false(address_is_numeric(TEXT("[::1")));
    assert_false(address_is_numeric(TEXT("")));
}

static bool same_site(const char *a, const char *b)
{
    struct address_range site;
    assert_true(address_site(text_of(a), &site));
    assert_true(address_range_has(&site, text_of(a)));
    return address_range_has(&site, text_of(b));
}

static void test_sites(void **state)
{
    struct address_range site;
    (void)state;
    assert_true(same_site("10.0.0.7", "10.0.0.255"));
    assert_false(same_site("10.0.0.7", "10.0.1.7"));
    assert_true(same_site("::ffff:10.0.0.7", "10.0.0.8"));
    assert_true(same_site("2001:db8:1:2::1", "2001:db8:1:ffff::1"));
    assert_false(same_site("2001:db8:1:2::1", "2001:db8:2:2::1"));
    assert_false(same_site("10.0.0.7", "::1"));
    assert_false(address_site(TEXT(""), &site));
    assert_false(address_site(TEXT("uid 7"), &site));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_networks),
    cmocka_unit_test(test_what_they_hold),
    cmocka_unit_test(test_sites),
};
UNIT_FILE(tests, NULL, NULL);
