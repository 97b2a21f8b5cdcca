/* A stream ends with the token by which it was opened. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <time.h>

#include "api/http_watch.h"
#include "api/stream_guard.h"
#include "api/token.h"
#include "base/memory.h"
#include "sys/clock.h"

enum { URI_SIZE = 512 };

static const char *id_of(struct world *world, struct arena *arena, const char *token)
{
    struct token_claims claims;
    assert_int_equal(token_verify(world->key, text_of(token), 0, arena, &claims, NULL), 0);
    return claims.id;
}

/* A stream of bob's that has told all there is. */
static const char *follow(struct world *world)
{
    struct buf out = BUF_INIT;
    const char *bob = world_login(world, "bob");
    assert_int_equal(world_get(world, "/api/v2/changes", bob), 200);
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_WAIT);
    assert_true(out.length > 0);
    buf_release(&out);
    return bob;
}

static void test_a_token_is_revoked(void **state)
{
    struct world *world = *state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *other = id_of(world, &arena, world_login(world, "bob"));
    const char *alice = id_of(world, &arena, world_login(world, "alice"));
    const char *own = id_of(world, &arena, follow(world));
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_REMOVE,
                                               .token = {.id = alice, .user = "alice"}});
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_REMOVE,
                                               .token = {.id = other, .user = "bob"}});
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_REMOVE,
                                               .token = {.id = own, .user = "bob"}});
    /* not one byte more, though there is something to tell */
    world->watch->notify(world->watch->context);
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
}

static void test_a_user_ends(void **state)
{
    struct world *world = *state;
    struct store_user bob = {.name = "bob",
                             .password_hash = "",
                             .email = "",
                             .extension_json = "{}",
                             .is_inactive = true,
                             .identity = ""};
    follow(world);
    world_change(
        world, &(struct store_change){.kind = CHANGE_USER_SET, .user = bob, .fields = USER_EMAIL});
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_change(world, &(struct store_change){
                            .kind = CHANGE_USER_SET, .user = bob, .fields = USER_INACTIVE});
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
    bob.is_inactive = false;
    world_change(world, &(struct store_change){
                            .kind = CHANGE_USER_SET, .user = bob, .fields = USER_INACTIVE});
    follow(world);
    world_change(world, &(struct store_change){
                            .kind = CHANGE_USER_SET, .user = bob, .fields = USER_PASSWORD});
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
}

static void test_a_user_is_removed(void **state)
{
    struct world *world = *state;
    follow(world);
    world_change(world,
                 &(struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "bob"}});
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
}

static void test_a_token_expires(void **state)
{
    struct world *world = *state;
    cleanup_arena struct arena arena;
    struct err err = {0};
    struct text token;
    const int64_t now_s = (int64_t)time(NULL);
    arena_init(&arena);
    const struct token_claims claims = {
        .id = "of-the-test", .user = "bob", .issued_s = now_s, .expires_s = now_s + 600};
    const struct store_token row = {.id = claims.id,
                                    .user = claims.user,
                                    .created_ms = now_s * 1000,
                                    .expires_ms = claims.expires_s * 1000};
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_ADD, .token = row});
    assert_int_equal(token_sign(world->key, &claims, &arena, &token, &err), 0);
    assert_int_equal(world_get(world, "/api/v2/changes", token.at), 200);
    assert_true(world_stream(world) > 0);
    /* it is read again then, whatever happens */
    int64_t left_ms = world->streaming->reply.stream.until_ms - clock_monotonic_ms();
    assert_true(left_ms > 500000 && left_ms <= 600000);
    world_stream_close(world);
    /* one whose time is over already when it is read */
    struct store_token late = row;
    late.id = "of-the-past";
    late.expires_ms = 1000;
    world_change(world, &(struct store_change){.kind = CHANGE_TOKEN_ADD, .token = late});
    struct token_claims other = claims;
    other.id = late.id;
    assert_int_equal(token_sign(world->key, &other, &arena, &token, &err), 0);
    assert_int_equal(world_get(world, "/api/v2/changes", token.at), 200);
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
}

/* A link lasts no longer than the token by which it was made. */
static void test_a_link(void **state)
{
    static const char logs[] =
        "/api/v2/jobs/alice~linked/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs";
    struct world *world = *state;
    cleanup_arena struct arena arena;
    char uri[URI_SIZE];
    arena_init(&arena);
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "linked", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "a line\n");
    assert_int_equal(world_get(world, logs, alice), 200);
    const char *at = strstr(world->body.at, "\"uri\":\"") + 7;
    snprintf(uri, sizeof uri, "%.*s&follow=true", (int)(strchr(at, '"') - at), at);
    assert_int_equal(world_get(world, uri, NULL), 200);
    assert_int_equal(world_stream(world), 7);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_change(world, &(struct store_change){
                            .kind = CHANGE_TOKEN_REMOVE,
                            .token = {.id = id_of(world, &arena, alice), .user = "alice"}});
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
    assert_int_equal(world_get(world, uri, NULL), 401);
    assert_body(world, "revoked");
}

/* Follows a log of alice's or of bob's job, to its end as it is now. */
static void log_follow(struct world *world, const char *job, const char *token)
{
    char path[URI_SIZE];
    snprintf(path, sizeof path, "/api/v2/jobs/%s/logs?follow=true", job);
    assert_int_equal(world_get(world, path, token), 200);
    assert_int_equal(world_stream(world), 7);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
}

static void job_make(struct world *world, const char *name, const char *token)
{
    struct job_id job = world_submit(world, token, name, 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "a line\n");
}

/* What administrators' rights alone have opened ends with them; what they were not needed for goes
 * on. */
static void test_an_admin_is_none_any_more(void **state)
{
    struct world *world = *state;
    world_admin_set(world, "bob", true);
    const char *bob = world_login(world, "bob");
    job_make(world, "others", world_login(world, "alice"));
    job_make(world, "own", bob);
    log_follow(world, "alice~others", bob);
    world_admin_set(world, "bob", false);
    assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
    world_admin_set(world, "bob", true);
    log_follow(world, "bob~own", bob);
    world_admin_set(world, "bob", false);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_admin_set(world, "bob", true);
    world->api.config.is_log_shared = true;
    log_follow(world, "alice~others", bob);
    world_admin_set(world, "bob", false);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
}

/* The same of whoever is an administrator as a member of a group. */
static void test_a_group_makes_no_admins_any_more(void **state)
{
    struct world *world = *state;
    struct store_group staff = {.name = "staff",
                                .description = "",
                                .external_name = "",
                                .extension_json = "{}",
                                .is_admin = true};
    const struct store_change add = {.kind = CHANGE_GROUP_ADD, .group = staff};
    const struct store_change join = {.kind = CHANGE_MEMBER_ADD,
                                      .member = {.user = "bob", .group = "staff"}};
    staff.is_admin = false;
    const struct store_change ends[] = {
        {.kind = CHANGE_MEMBER_REMOVE, .member = {.user = "bob", .group = "staff"}},
        {.kind = CHANGE_GROUP_SET, .group = staff, .fields = GROUP_ADMIN},
        {.kind = CHANGE_GROUP_REMOVE, .group = {.name = "staff"}}};
    const char *bob = world_login(world, "bob");
    job_make(world, "others", world_login(world, "alice"));
    world_change(world, &add);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct store_change set = add;
        set.kind = CHANGE_GROUP_SET;
        set.fields = GROUP_ADMIN;
        world_change(world, &set);
        world_change(world, &join);
        log_follow(world, "alice~others", bob);
        world_change(world, &ends[i]);
        assert_int_equal(world_stream(world), HTTP_STREAM_BROKEN);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_an_admin_is_none_any_more, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_a_group_makes_no_admins_any_more, world_setup,
                                    world_teardown),
    cmocka_unit_test_setup_teardown(test_a_token_is_revoked, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_a_user_ends, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_a_user_is_removed, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_a_token_expires, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_a_link, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
