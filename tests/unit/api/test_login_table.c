/* The brakes: who guesses has to wait, and nobody else has. */
#include "unit.h"

#include <semaphore.h>
#include <stdio.h>

#include "api/login.h"
#include "base/err.h"
#include "base/memory.h"

/* ---- brakes ---- */

static struct login_table *table;

static int table_setup(void **state)
{
    (void)state;
    table = login_table_new();
    return 0;
}

static int table_teardown(void **state)
{
    (void)state;
    login_table_free(table);
    return 0;
}

/* One try: 0, or the seconds to wait. */
static int64_t guess_by(const char *user, const char *address, const char *device, int64_t now_ms,
                        bool is_right)
{
    struct login_who who = {text_of(user), text_of(address), device};
    struct login_try attempt;
    int64_t wait_s;
    struct err err;
    if (login_begin(table, &who, now_ms, &attempt, &wait_s, &err) == 0) {
        login_end(table, &attempt, now_ms, true, is_right);
        return 0;
    }
    assert_true(wait_s > 0 && wait_s <= LOGIN_DELAY_MAX_MS / 1000);
    return wait_s;
}

static int64_t guess(const char *user, const char *address, int64_t now_ms, bool is_right)
{
    return guess_by(user, address, NULL, now_ms, is_right);
}

static void test_delay_doubles(void **state)
{
    (void)state;
    static const int64_t WAITS[] = {1, 2, 4, 8, 16, 32, 32, 32};
    int64_t now_ms = 1000;
    for (int i = 0; i < LOGIN_FREE; i++)
        assert_int_equal(guess("alice", "10.0.0.1", now_ms, false), 0);
    for (size_t i = 0; i < COUNT_OF(WAITS); i++) {
        /* tries that are refused make nobody wait longer */
        for (int k = 0; k < 100; k++)
            assert_int_equal(guess("alice", "10.0.0.2", now_ms, false), WAITS[i]);
        now_ms += WAITS[i] * 1000;
        assert_int_equal(guess("alice", "10.0.0.1", now_ms, false), 0);
    }
    assert_int_equal(guess("alice", "10.0.0.1", now_ms, true), 32);
    assert_int_equal(guess("bob", "10.0.0.1", now_ms, true), 0);
    /* forgiven one by one; the right password counts nothing */
    now_ms += (int64_t)LOGIN_FORGET_MS * 100;
    for (int i = 0; i < LOGIN_FREE - 1; i++)
        assert_int_equal(guess("alice", "10.0.0.3", now_ms, false), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(guess("alice", "10.0.0.4", now_ms, true), 0);
    assert_int_equal(guess("alice", "10.0.0.5", now_ms, false), 0);
    assert_int_equal(guess("alice", "10.0.0.6", now_ms, false), 1);
}

/* What is recalled is older than what has happened since, and never takes its place. */
static void test_recalled_addresses(void **state)
{
    (void)state;
    enum { NOW = 1000000 };
    char user[24];
    assert_int_equal(guess("alice", "10.0.0.1", NOW, true), 0);
    for (int i = 0; i < 16 * LOGIN_KNOWN_MAX; i++) {
        snprintf(user, sizeof user, "user%d", i);
        login_known_add(table, text_of(user), TEXT("10.0.0.2"), -i);
    }
    login_known_add(table, TEXT("bob"), TEXT("2001:db8:1:2::3"), NOW - 1);
    for (int i = 0; i < 4 * LOGIN_FREE; i++) {
        guess("alice", "10.0.0.9", NOW, false);
        guess("bob", "10.0.0.9", NOW, false);
    }
    assert_true(guess("alice", "10.0.0.9", NOW, true) > 0);
    assert_int_equal(guess("alice", "10.0.0.1", NOW, true), 0);
    assert_int_equal(guess("bob", "2001:db8:1:2::4", NOW, true), 0); /* the same network */
    assert_true(guess("bob", "2001:db8:1:3::4", NOW, true) > 0);
}

/* 120 guesses within 11 s, each from another address. */
/* A directory's user is known here by one name, and types another one. */
static void test_names_of_a_directory(void **state)
{
    (void)state;
    struct login_try attempt;
    int64_t wait_s;
    struct err err;
    static const char *const typed[] = {"JSmith", "jsmith", "jsmith@lab.example"};
    login_known_add(table, TEXT("JSmith"), TEXT("10.0.0.9"), 500);
    for (size_t i = 0; i < COUNT_OF(typed); i++) {
        struct login_who who = {text_of(typed[i]), TEXT("10.0.0.9"), NULL};
        assert_int_equal(login_begin(table, &who, 1000, &attempt, &wait_s, &err), 0);
        assert_true(attempt.own != 0);
        login_end(table, &attempt, 1000, false, false);
        assert_true(login_is_same_user(text_of(typed[i]), TEXT("JSMITH")));
    }
    assert_false(login_is_same_user(TEXT("jsmith"), TEXT("jsmit")));
    assert_false(login_is_same_user(TEXT("jsmith"), TEXT("jsmithy")));
    assert_false(login_is_same_user(TEXT("jsmith"), TEXT("jsmitH2")));
}

static void test_changing_addresses(void **state)
{
    (void)state;
    int passed = 0;
    for (int i = 0; i < 120; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.%d.%d", i / 200, i % 200 + 1);
        passed += guess("admin", address, 1000 + i * 92, false) == 0;
    }
    assert_true(passed <= LOGIN_FREE + 4);
}

static void test_strangers_lock_nobody_out(void **state)
{
    (void)state;
    assert_int_equal(guess("admin", "10.0.0.1", 1000, true), 0);
    for (int i = 0; i < 100; i++)
        guess("admin", "10.9.9.9", 1000 + i, false);
    assert_true(guess("admin", "10.0.0.2", 1100, true) > 0);
    assert_int_equal(guess("admin", "10.0.0.1", 1100, true), 0); /* has logged in there */
    /* a stranger at the same address: whoever shows a token of before is not that stranger */
    for (int i = 0; i < 100; i++)
        guess("admin", "10.0.0.1", 1200 + i, false);
    assert_true(guess("admin", "10.0.0.1", 1300, true) > 0);
    assert_int_equal(guess_by("admin", "10.0.0.1", "token-1", 1300, true), 0);
    /* who has stolen such a token guesses no faster */
    int passed = 0;
    for (int i = 0; i < 100; i++)
        passed += guess_by("admin", "10.0.0.3", "token-2", 1300 + i, false) == 0;
    assert_int_equal(passed, LOGIN_FREE);
}

/* However many tokens a thief has, all together are one guesser; and strangers cannot touch them.
 */
static void test_tokens_share_a_brake(void **state)
{
    (void)state;
    int passed = 0;
    for (int i = 0; i < 100; i++) {
        char token[32];
        snprintf(token, sizeof token, "token-%d", i);
        for (int k = 0; k < LOGIN_FREE; k++)
            passed += guess_by("admin", "10.0.0.3", token, 1000, false) == 0;
    }
    assert_int_equal(passed, LOGIN_FREE_DEVICES);
    assert_int_equal(guess_by("bob", "10.0.0.3", "token-1", 1000, true), 0); /* another user's */
    /* later about two a minute, as of strangers */
    passed = 0;
    for (int i = 0; i < 600; i++) {
        char token[32];
        snprintf(token, sizeof token, "token-%d", i);
        passed += guess_by("admin", "10.0.0.3", token, 60000 + i * 1000, false) == 0;
    }
    assert_in_range(passed, 15, 25);
    /* the owner waits with them by a token, but not where they are known without */
    assert_true(guess_by("admin", "10.0.0.1", "own", 660000, true) > 0);
    login_known_add(table, TEXT("admin"), TEXT("10.0.0.1"), -1);
    assert_int_equal(guess_by("admin", "10.0.0.1", "own", 660000, true), 0);
    /* what is right counts nothing for the others, and frees nobody else */
    assert_true(guess_by("admin", "10.0.0.3", "token-700", 660000, false) > 0);
    assert_int_equal(guess("admin", "10.0.0.4", 660000, true), 0); /* nor are strangers held up */
    for (int i = 0; i < 4 * LOGIN_FREE_DEVICES; i++)
        assert_int_equal(guess_by("carol", "10.0.0.3", "token", 1000, true), 0);
    for (int i = 0; i < 4 * LOGIN_FREE; i++)
        guess("carol", "10.0.0.9", 1000, false);
    for (int i = 0; i < LOGIN_FREE; i++)
        assert_int_equal(guess_by("carol", "10.0.0.5", "token", 1000, false), 0);
    assert_int_equal(guess_by("carol", "10.0.0.5", "token", 1000, false), 1);
    assert_int_equal(guess_by("carol", "10.0.0.5", "another", 1000, true), 0);
}

static void test_one_address_many_users(void **state)
{
    (void)state;
    int passed = 0;
    for (int i = 0; i < 500; i++) {
        char user[32], address[64];
        snprintf(user, sizeof user, "user-%d", i);
        snprintf(address, sizeof address, "2001:db8:1:2:%x::%x", i + 1, i);
        passed += guess(user, address, 1000, false) == 0;
    }
    assert_int_equal(passed, LOGIN_FREE_ADDRESS);
    assert_int_equal(guess("user-1", "2001:db8:1:3::1", 1000, true), 0);
    /* IPv4 on a socket of IPv6 has a brake for each address */
    for (int i = 0; i < 2 * LOGIN_FREE_ADDRESS; i++) {
        char user[32];
        snprintf(user, sizeof user, "other-%d", i);
        guess(user, "::ffff:10.0.0.1", 1000, false);
    }
    assert_true(guess("other", "::ffff:10.0.0.1", 1000, true) > 0);
    assert_int_equal(guess("other", "::ffff:10.0.0.2", 1000, true), 0);
    assert_int_equal(guess("other", "::1", 1000, true), 0);
}

/* Whoever is on this machine has 16 million addresses, and is one. */
static void test_this_machine_is_one_address(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {
        "::1", "127.0.0.1", "127.255.255.254", "::ffff:127.3.2.1", "[::1]", "0:0:0:0:0:0:0:1"};
    int passed = 0;
    for (int i = 0; i < 500; i++) {
        char user[32], address[32];
        snprintf(user, sizeof user, "user-%d", i);
        snprintf(address, sizeof address, "127.%d.%d.1", i % 7, i / 2);
        passed += guess(user, address, 1000, false) == 0;
    }
    assert_int_equal(passed, LOGIN_FREE_ADDRESS);
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++)
        assert_true(guess("other", OTHERS[i], 1000, true) > 0);
    /* whom a proxy on this machine speaks for is somebody else */
    static const char *const AWAY[] = {"126.0.0.1",   "128.0.0.1",   "10.127.0.1", "::2",
                                       "::127.0.0.1", "2001:db8::1", "1270::1",    "",
                                       "127.one"};
    for (size_t i = 0; i < COUNT_OF(AWAY); i++)
        assert_int_equal(guess("other", AWAY[i], 1000, true), 0);
    assert_true(text_is(login_network(TEXT("127.8.8.8")), "127.0.0.1"));
    assert_true(text_is(login_network(TEXT("2001:db8:1:2:3::4")), "2001:db8:1:2"));
    assert_true(text_is(login_network(TEXT("10.0.0.1")), "10.0.0.1"));
}

/* Names that are tried once do not push out one that is being guessed. */
static void test_flood_of_names(void **state)
{
    (void)state;
    for (int i = 0; i < LOGIN_FREE + 1; i++)
        guess("admin", "10.0.0.1", 1000 + i * 1000, false);
    for (int i = 0; i < 20 * LOGIN_BRAKES_MAX; i++) {
        char user[32], address[32];
        snprintf(user, sizeof user, "name-%d", i);
        snprintf(address, sizeof address, "10.%d.%d.1", i / 250, i % 250);
        guess(user, address, 7000, false);
    }
    assert_true(guess("admin", "10.0.0.2", 7000, true) > 0);
}

#define TABLE(test) cmocka_unit_test_setup_teardown(test, table_setup, table_teardown)
static const struct CMUnitTest tests[] = {
    TABLE(test_names_of_a_directory),
    TABLE(test_delay_doubles),
    TABLE(test_changing_addresses),
    TABLE(test_recalled_addresses),
    TABLE(test_strangers_lock_nobody_out),
    TABLE(test_one_address_many_users),
    TABLE(test_flood_of_names),
    TABLE(test_tokens_share_a_brake),
    TABLE(test_this_machine_is_one_address),
};
UNIT_FILE(tests, NULL, NULL);
