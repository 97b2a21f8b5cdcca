/* Whether who has opened what lasts still may. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "api/opener.h"
#include "sys/clock.h"

static void bob_set(struct world *world, bool is_admin, bool is_inactive)
{
    const struct store_user bob = {.name = "bob",
                                   .password_hash = "",
                                   .email = "",
                                   .is_admin = is_admin,
                                   .is_inactive = is_inactive,
                                   .extension_json = "{}",
                                   .identity = ""};
    world_change(world, &(struct store_change){.kind = CHANGE_USER_SET,
                                               .user = bob,
                                               .fields = USER_ADMIN | USER_INACTIVE});
}

static void token_add(struct world *world, const char *id, const char *user)
{
    world_change(world, &(struct store_change){
                            .kind = CHANGE_TOKEN_ADD,
                            .token = {.id = id, .user = user, .created_ms = clock_unix_ms()}});
}

static void test_tokens(void **state)
{
    struct world *world = *state;
    struct opener opener = {.user = "bob", .token_id = "one"};
    token_add(world, "one", "bob");
    token_add(world, "two", "bob");
    token_add(world, "hers", "alice");
    assert_int_equal(opener_check(&world->service, &opener), 0);
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_REMOVE,
                                               .token = {.id = "two", .user = "bob"}});
    assert_int_equal(opener_check(&world->service, &opener), 0);
    opener.end_ms = clock_unix_ms() + 600000;
    assert_int_equal(opener_check(&world->service, &opener), 0);
    opener.end_ms = clock_unix_ms(); /* its row is still there */
    assert_int_equal(opener_check(&world->service, &opener), ERR_FORBIDDEN);
    opener.end_ms = 0;
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_REMOVE,
                                               .token = {.id = "one", .user = "bob"}});
    assert_int_equal(opener_check(&world->service, &opener), ERR_FORBIDDEN);
    snprintf(opener.token_id, sizeof opener.token_id, "hers");
    assert_int_equal(opener_check(&world->service, &opener), ERR_FORBIDDEN);
}

/* Who came by a client certificate has no token. */
static void test_users(void **state)
{
    struct world *world = *state;
    struct opener opener = {.user = "bob"};
    assert_int_equal(opener_check(&world->service, &opener), 0);
    bob_set(world, true, true);
    assert_int_equal(opener_check(&world->service, &opener), ERR_FORBIDDEN);
    bob_set(world, true, false);
    assert_int_equal(opener_check(&world->service, &opener), 0);
    world_change(world,
                 &(struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "bob"}});
    assert_int_equal(opener_check(&world->service, &opener), ERR_FORBIDDEN);
}

static void test_admins(void **state)
{
    struct world *world = *state;
    struct opener opener = {.user = "bob", .needs_admin = true};
    assert_int_equal(opener_check(&world->service, &opener), ERR_FORBIDDEN);
    bob_set(world, true, false);
    assert_int_equal(opener_check(&world->service, &opener), 0);
    world->has_no_reader = true; /* nobody is refused for that */
    assert_int_equal(opener_check(&world->service, &opener), ERR_UNAVAILABLE);
}

/* What a call remembers of the rights that it was asked for. */
static void test_what_a_call_needs(void **state)
{
    struct world *world = *state;
    struct call call = {.api = &world->api};
    const struct auth_subject own = {.owner = "bob", .name = "box"},
                              other = {.owner = "alice", .name = "box"};
    call.caller = (struct caller){
        .auth = {.user = "bob", .is_admin = true}, .token_id = "one", .expires_ms = 7};
    assert_int_equal(call_may_about(&call, AUTH_ENTER_JOB, &own), 0);
    struct opener opener = opener_of(&call);
    assert_string_equal(opener.user, "bob");
    assert_string_equal(opener.token_id, "one");
    assert_int_equal(opener.end_ms, 7);
    assert_false(opener.needs_admin);
    assert_int_equal(call_may_about(&call, AUTH_ENTER_JOB, &other), 0);
    assert_int_equal(call_may_about(&call, AUTH_ENTER_JOB, &own), 0);
    assert_true(opener_of(&call).needs_admin);
    call = (struct call){.api = &world->api,
                         .caller = {.auth.user = "bob", .token_id = "", .is_by_socket = true}};
    assert_true(opener_of(&call).needs_admin);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_tokens, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_users, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_admins, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_what_a_call_needs, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
