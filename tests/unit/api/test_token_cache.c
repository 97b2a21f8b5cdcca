/* What is known of a token counts until the store's version moves, and no longer than the token. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/token_cache.h"
#include "base/arena.h"

static bool get(struct token_cache *cache, const char *token, uint64_t version, int64_t now_s,
                struct arena *arena, struct caller *caller)
{
    return token_cache_get(cache, text_of(token), version, now_s, arena, caller);
}

static void put(struct token_cache *cache, const char *token, uint64_t version, int64_t expires_s)
{
    const char *groups[] = {"a-group", "b-group"};
    char user[] = "alice", id[] = "0123";
    const struct caller caller = {
        .auth = {.user = user, .is_admin = true, .groups = groups, .group_count = 2},
        .token_id = id,
        .expires_ms = 5};
    token_cache_put(cache, text_of(token), version, expires_s, &caller);
    memset(user, 'x', sizeof user - 1); /* the cache has its own */
    memset(id, 'x', sizeof id - 1);
}

static void a_caller_is_known_while_nothing_changes(void **state)
{
    (void)state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct token_cache *cache = token_cache_new();
    struct caller caller;
    assert_false(get(cache, "token", 7, 100, &arena, &caller));
    put(cache, "token", 7, 200);
    assert_true(get(cache, "token", 7, 100, &arena, &caller));
    assert_string_equal(caller.auth.user, "alice");
    assert_string_equal(caller.auth.groups[1], "b-group");
    assert_string_equal(caller.token_id, "0123");
    assert_true(caller.auth.is_admin);
    assert_int_equal(caller.expires_ms, 5);
    assert_false(get(cache, "tokem", 7, 100, &arena, &caller));
    assert_false(get(cache, "token", 7, 200, &arena, &caller)); /* it has expired */
    assert_false(get(cache, "token", 8, 100, &arena, &caller)); /* something was taken away */
    put(cache, "token", 9, 0);
    put(cache, "token", 8, 0); /* was read before, and comes late */
    assert_true(get(cache, "token", 9, INT64_MAX, &arena, &caller));
    token_cache_free(cache);
}

/* More tokens than there are places: none is taken for another. */
static void tokens_of_one_place_are_told_apart(void **state)
{
    (void)state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct token_cache *cache = token_cache_new();
    struct caller caller;
    char token[32];
    unsigned known = 0;
    for (unsigned i = 0; i < 2 * TOKEN_CACHE_SLOTS; i++) {
        snprintf(token, sizeof token, "token-%u", i);
        assert_false(get(cache, token, 1, 0, &arena, &caller));
        put(cache, token, 1, 0);
        assert_true(get(cache, token, 1, 0, &arena, &caller));
    }
    for (unsigned i = 0; i < 2 * TOKEN_CACHE_SLOTS; i++) {
        snprintf(token, sizeof token, "token-%u", i);
        known += get(cache, token, 1, 0, &arena, &caller);
    }
    assert_true(known > TOKEN_CACHE_SLOTS / 2 && known <= TOKEN_CACHE_SLOTS);
    token_cache_free(cache);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_caller_is_known_while_nothing_changes),
    cmocka_unit_test(tokens_of_one_place_are_told_apart),
};
UNIT_FILE(tests, NULL, NULL);
