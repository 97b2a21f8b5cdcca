/* Ways into ports of tasks: each is good once, for one host, and for its time. */
#include "unit.h"

#include "api/web_ports.h"
#include "base/err.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

static const int64_t NOW_MS = 1700000000000;

static struct web_port_grant grant_of(const char *user, uint16_t port)
{
    static const uint8_t key[32] = {1};
    struct web_port_grant grant = {.path = "/", .attempt = {7}, .port = port};
    snprintf(grant.opener.user, sizeof grant.opener.user, "%s", user);
    web_port_host(key, grant.attempt, port, grant.host);
    return grant;
}

static void test_a_ticket_is_good_once(void **state)
{
    struct web_ports *ports = web_ports_new();
    struct web_port_grant grant = grant_of("ann", 80), other = grant_of("ann", 81), found;
    char ticket[WEB_PORT_WORD_SIZE], session[WEB_PORT_WORD_SIZE], more[WEB_PORT_WORD_SIZE];
    struct text host = text_of(grant.host);
    bool is_first;
    (void)state;
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, ticket, NULL), 0);
    assert_false(web_ports_find(ports, host, text_of(ticket), NOW_MS, &found));
    assert_false(web_ports_enter(ports, text_of(other.host), text_of(ticket), NOW_MS, session,
                                 &found, &is_first));
    assert_true(
        web_ports_enter(ports, host, text_of(ticket), NOW_MS + 59999, session, &found, &is_first));
    assert_true(is_first);
    assert_string_equal(found.opener.user, "ann");
    assert_string_not_equal(session, ticket);
    assert_false(web_ports_enter(ports, host, text_of(ticket), NOW_MS, more, &found, &is_first));
    assert_false(web_ports_enter(ports, host, text_of(session), NOW_MS, more, &found, &is_first));
    assert_true(web_ports_find(ports, host, text_of(session), NOW_MS, &found));
    assert_false(web_ports_find(ports, text_of(other.host), text_of(session), NOW_MS, &found));
    assert_false(web_ports_find(ports, host, TEXT(""), NOW_MS, &found));
    assert_false(web_ports_find(ports, host, (struct text){NULL, 0}, NOW_MS, &found));
    /* another browser of the same user */
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, ticket, NULL), 0);
    assert_true(web_ports_enter(ports, host, text_of(ticket), NOW_MS, more, &found, &is_first));
    assert_false(is_first);
    web_ports_end(ports, host, text_of(session));
    assert_false(web_ports_find(ports, host, text_of(session), NOW_MS, &found));
    assert_true(web_ports_find(ports, host, text_of(more), NOW_MS, &found));
    web_ports_end(ports, host, text_of(session));
    web_ports_free(ports);
    web_ports_free(NULL);
}

static void test_times(void **state)
{
    struct web_ports *ports = web_ports_new();
    struct web_port_grant grant = grant_of("ann", 80), found;
    char word[WEB_PORT_WORD_SIZE];
    struct text host = text_of(grant.host);
    bool is_first;
    (void)state;
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, word, NULL), 0);
    assert_false(
        web_ports_enter(ports, host, text_of(word), NOW_MS + 60000, word, &found, &is_first));
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, word, NULL), 0);
    assert_true(web_ports_enter(ports, host, text_of(word), NOW_MS, word, &found, &is_first));
    const int64_t end_ms = NOW_MS + 1000 * (int64_t)WEB_PORT_SESSION_S;
    assert_true(web_ports_find(ports, host, text_of(word), end_ms - 1, &found));
    assert_false(web_ports_find(ports, host, text_of(word), end_ms, &found));
    /* no longer than the token by which it came */
    grant.opener.end_ms = NOW_MS + 5000;
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, word, NULL), 0);
    assert_true(
        web_ports_enter(ports, host, text_of(word), NOW_MS + 4999, word, &found, &is_first));
    assert_true(web_ports_find(ports, host, text_of(word), NOW_MS + 4999, &found));
    assert_false(web_ports_find(ports, host, text_of(word), NOW_MS + 5000, &found));
    web_ports_free(ports);
}

static void test_limits(void **state)
{
    struct web_ports *ports = web_ports_new();
    struct web_port_grant grant = grant_of("ann", 80), found;
    char first[WEB_PORT_WORD_SIZE], second[WEB_PORT_WORD_SIZE], word[WEB_PORT_WORD_SIZE];
    struct text host = text_of(grant.host);
    struct err err;
    bool is_first;
    (void)state;
    for (int i = 0; i < WEB_PORT_USER_GRANTS_MAX + 1; i++)
        assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS,
                                          i == 0   ? first
                                          : i == 1 ? second
                                                   : word,
                                          &err),
                         0);
    assert_false(web_ports_enter(ports, host, text_of(first), NOW_MS, word, &found, &is_first));
    assert_true(web_ports_enter(ports, host, text_of(second), NOW_MS, word, &found, &is_first));
    for (int i = WEB_PORT_USER_GRANTS_MAX; i < WEB_PORT_GRANTS_MAX; i++) {
        snprintf(grant.opener.user, sizeof grant.opener.user, "user%d", i);
        assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, word, &err), 0);
    }
    snprintf(grant.opener.user, sizeof grant.opener.user, "late");
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS, word, &err), ERR_BUSY);
    assert_int_equal(web_ports_ticket(ports, &grant, NOW_MS + 60000, word, &err), 0);
    web_ports_free(ports);
}

static void test_hosts(void **state)
{
    const uint8_t key[32] = {1}, other[32] = {2};
    char a[WEB_PORT_ID_SIZE], b[WEB_PORT_ID_SIZE];
    (void)state;
    web_port_host(key, (struct attempt_id){7}, 80, a);
    web_port_host(key, (struct attempt_id){7}, 80, b);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), WEB_PORT_ID_SIZE - 1);
    web_port_host(key, (struct attempt_id){7}, 81, b);
    assert_string_not_equal(a, b);
    web_port_host(key, (struct attempt_id){78}, 0, b);
    assert_string_not_equal(a, b);
    web_port_host(other, (struct attempt_id){7}, 80, b);
    assert_string_not_equal(a, b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_ticket_is_good_once),
    cmocka_unit_test(test_times),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_hosts),
};
UNIT_FILE(tests, NULL, NULL);
