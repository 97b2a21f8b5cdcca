/* Which user the name of a certificate stands for. */
#include "unit.h"

#include "base/memory.h"
#include "base/name_pattern.h"

static void test_patterns(void **state)
{
    static const char *const good[] = {"CN:{user}", "email:{user}@example.org", "uri:a:{user}/b"};
    static const char *const bad[] = {
        "", "{user}", "CN:", "CN:user", "CN:{user}{user}", "DNS:{user}", "cn:{user}", ":{user}"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(name_pattern_is_good(good[i]));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(name_pattern_is_good(bad[i]));
}

static void test_names(void **state)
{
    static const struct {
        const char *pattern, *kind, *name, *user; /* NULL: it is none */
    } CASES[] = {
        {"CN:{user}", "CN", "alice", "alice"},
        {"CN:{user}", "email", "alice", NULL},
        {"CN:{user}", "CN", "", NULL},
        {"email:{user}@example.org", "email", "alice@example.org", "alice"},
        {"email:{user}@example.org", "email", "alice@example.org.evil.net", NULL},
        {"email:{user}@example.org", "email", "alice@example.com", NULL},
        {"email:{user}@example.org", "email", "@example.org", NULL},
        {"email:{user}@example.org", "email", "e", NULL},
        {"uri:spiffe://a/{user}", "uri", "spiffe://a/alice", "alice"},
        {"uri:spiffe://a/{user}", "uri", "spiffe://b/alice", NULL},
        {"uri:spiffe://a/{user}", "uri", "spiffe://a/b/alice", "b/alice"}, /* no account's name */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct text user;
        const bool is_one =
            name_pattern_match(CASES[i].pattern, CASES[i].kind, text_of(CASES[i].name), &user);
        assert_int_equal(is_one, CASES[i].user != NULL);
        if (is_one)
            assert_true(text_is(user, CASES[i].user));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_patterns),
    cmocka_unit_test(test_names),
};
UNIT_FILE(tests, NULL, NULL);
