/* Tokens of users: limits, and which of them count. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static bool token_is_there(struct world *world, const char *id)
{
    struct store_token got;
    return store_token(world->reader, text_of(id), &world->arena, &got, &world->err) == 0;
}

/* Whoever has a password can log in: however many tokens there are, the new one counts, and so do
 * all newer logins; each kind has at most its number; another user's are left alone. */
static void tokens_at_the_limit(void **state)
{
    struct world *world = *state;
    struct store_user alice = {.name = "alice",
                               .password_hash = "hash",
                               .email = "a@b",
                               .is_admin = true,
                               .virtual_clusters = {0},
                               .extension_json = "{}",
                               .created_ms = 5},
                      bob = {.name = "bob",
                             .password_hash = "hash",
                             .email = "b@b",
                             .is_admin = true,
                             .virtual_clusters = {0},
                             .extension_json = "{}",
                             .created_ms = 5};
    struct store_token token = {"bob-1", "bob", false, 1, 2, 0};
    struct store_tokens tokens;
    char id[32];

    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}, 0);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    for (int i = 0; i < 2 * STORE_TOKENS_MAX; i++) {
        bool is_application = i % 2 == 1;
        snprintf(id, sizeof id, "%s-%d", is_application ? "app" : "login", i / 2);
        /* the logins 500 and 600 have expired when the first too many comes */
        int64_t expires_ms = is_application ? 0 : i == 1000 || i == 1200 ? 5000 : 1000000;
        token = (struct store_token){id, "alice", is_application, 1000 + i, expires_ms, 0};
        change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    }
    token = (struct store_token){"app-more", "alice", true, 5000, 0, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_TOO_BIG);
    token = (struct store_token){"login-3", "alice", false, 5000, 1000000, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_CONFLICT);
    const char *const ended[] = {"login-500", "login-600", "login-0", "login-1"};
    for (int i = 0; i < 4; i++) {
        assert_true(token_is_there(world, ended[i]));
        snprintf(id, sizeof id, "more-%d", i);
        /* a clock that went back: the new one is not the one to end */
        token = (struct store_token){id, "alice", false, i < 3 ? 5000 : 10, 1000000, 0};
        change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
        assert_true(token_is_there(world, id));
        assert_false(token_is_there(world, ended[i]));
    }
    assert_int_equal(
        store_tokens(world->reader, TEXT("alice"), &world->arena, &tokens, &world->err), 0);
    assert_int_equal(tokens.count, 2 * STORE_TOKENS_MAX);
    assert_true(token_is_there(world, "app-0") && token_is_there(world, "login-2") &&
                token_is_there(world, "bob-1") && !token_is_there(world, "app-more"));
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(tokens_at_the_limit),
};
UNIT_FILE(tests, NULL, NULL);
