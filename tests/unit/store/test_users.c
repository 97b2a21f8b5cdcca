/* Users, their tokens, and settings.
 *
 * Covers: src/store/tokens.c, src/store/settings.c */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static void users_and_tokens(void **state)
{
    struct world *world = *state;
    struct store_user alice = {.name = "alice",
                               .password_hash = "hash",
                               .email = "a@b",
                               .is_admin = true,
                               .virtual_clusters = {0},
                               .extension_json = "{}",
                               .created_ms = 5};
    struct store_user read;
    struct store_users users;
    struct store_token token = {"t1", "alice", false, 10, 20, 0}, got;
    struct store_tokens tokens;
    struct text value;

    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, ERR_CONFLICT);
    alice.email = "new";
    change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = alice}, 0);
    assert_int_equal(store_user(world->reader, TEXT("alice"), &world->arena, &read, &world->err),
                     0);
    assert_string_equal(read.email, "new");
    assert_true(read.is_admin);
    assert_int_equal(store_user(world->reader, TEXT("carol"), &world->arena, &read, &world->err),
                     ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_CONFLICT);
    token = (struct store_token){"t2", "alice", true, 11, 0, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    token = (struct store_token){"t3", "alice", false, 12, 0, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    token.user = "carol";
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_REMOVE, .token = token},
           ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TOKENS_EXPIRE, .before_ms = 21}, 0);
    assert_int_equal(
        store_tokens(world->reader, TEXT("alice"), &world->arena, &tokens, &world->err), 0);
    assert_int_equal(tokens.count, 2);
    assert_string_equal(tokens.items[0].id, "t3");
    token = (struct store_token){"", "alice", false, 0, 0, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKENS_REMOVE, .token = token}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t3"), &world->arena, &got, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err), 0);
    assert_true(got.is_application);
    token.is_application = true;
    token.id = "t2";
    change(world, (struct store_change){.kind = CHANGE_TOKENS_REMOVE, .token = token}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err), 0);
    token.id = "";
    change(world, (struct store_change){.kind = CHANGE_TOKENS_REMOVE, .token = token}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err),
                     ERR_NOT_FOUND);
    token = (struct store_token){"t2", "alice", true, 11, 0, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "alice"}},
           ERR_FORBIDDEN); /* the only admin */
    alice.name = "root";
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "alice"}}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_users(world->reader, &world->arena, &users, &world->err), 0);
    assert_int_equal(users.count, 1);
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("a\0b")}}, 0);
    assert_int_equal(store_setting(world->reader, "k", &world->arena, &value, &world->err), 0);
    assert_true(text_equal(value, TEXT("a\0b")));
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("")}}, 0);
    assert_int_equal(store_setting(world->reader, "k", &world->arena, &value, &world->err),
                     ERR_NOT_FOUND);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(users_and_tokens),
};
UNIT_FILE(tests, NULL, NULL);
