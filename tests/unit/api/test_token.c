/* Who you are: tokens of people and of applications, by Bearer and by Basic. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/token.h"
#include "base/memory.h"

static void test_tokens(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/api/v2/jobs", NULL), 401);
    assert_body(world, "\"code\":\"UnauthorizedUserError\"");
    assert_int_equal(world_get(world, "/api/v2/jobs", "rubbish"), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", "Digest x"), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", "Basic !!!"), 401);
    const char *token = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/jobs", token), 200);
    assert_int_equal(world_get(world, "/rest-server/api/v2/jobs", token), 200);
    assert_int_equal(world_get(world, "/api/v2/tokens/check", token), 200);
    assert_body(world, "\"username\":\"alice\"");
    assert_body(world, "\"admin\":false");

    /* an application's token, also by Basic; not for what only people do */
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens/application", token, ""), 200);
    char application[2048];
    sscanf(strstr(buf_cstr(&world->body), "\"token\":\"") + 9, "%2047[^\"]", application);
    assert_int_equal(world_get(world, "/api/v2/jobs", application), 200);
    assert_int_equal(world_get(world, "/api/v2/tokens", application), 403);
    assert_int_equal(world_get(world, "/api/v2/tokens", token), 200);
    assert_body(world, application);
    assert_body(world, token);

    /* revoked is revoked */
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/authn/basic/logout", token, ""), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs", token), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", application), 200);
}

static void test_basic(void **state)
{
    struct world *world = *state;
    const char *token = world_login(world, "alice");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens/application", token, ""), 200);
    char application[2048], pair[2100], encoded[4096], header[4200];
    sscanf(strstr(buf_cstr(&world->body), "\"token\":\"") + 9, "%2047[^\"]", application);
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char *const USERS[] = {"alice", "bob"};
    for (size_t k = 0; k < COUNT_OF(USERS); k++) {
        size_t length = (size_t)snprintf(pair, sizeof pair, "%s:%s", USERS[k], application);
        size_t at = 0;
        for (size_t i = 0; i < length; i += 3) {
            uint32_t bits = (uint32_t)(unsigned char)pair[i] << 16;
            bits |= i + 1 < length ? (uint32_t)(unsigned char)pair[i + 1] << 8 : 0;
            bits |= i + 2 < length ? (uint32_t)(unsigned char)pair[i + 2] : 0;
            encoded[at++] = LETTERS[bits >> 18];
            encoded[at++] = LETTERS[bits >> 12 & 63];
            encoded[at++] = i + 1 < length ? LETTERS[bits >> 6 & 63] : '=';
            encoded[at++] = i + 2 < length ? LETTERS[bits & 63] : '=';
        }
        encoded[at] = '\0';
        snprintf(header, sizeof header, "Basic %s", encoded);
        assert_int_equal(world_get(world, "/api/v2/jobs", header), k == 0 ? 200 : 401);
    }
}

/* The kernel says who comes by this machine's socket. */
static void test_peers(void **state)
{
    struct world *world = *state;
    const char *token = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/users", NULL), 401);
    const uid_t trusted[] = {0, geteuid()};
    for (size_t i = 0; i < COUNT_OF(trusted); i++) {
        world->peer_uid = trusted[i];
        assert_int_equal(world_get(world, "/api/v2/users", NULL), 200);
        assert_int_equal(world_get(world, "/api/v2/tokens/check", NULL), 200);
        assert_body(world, "\"username\":\"admin\"");
    }
    /* a token says more than the process that shows it, even when it is no good */
    assert_int_equal(world_get(world, "/api/v2/tokens/check", token), 200);
    assert_body(world, "\"username\":\"alice\"");
    assert_int_equal(world_get(world, "/api/v2/users", "Bearer rubbish"), 401);
    world->peer_uid = (int64_t)geteuid() + 1;
    assert_int_equal(world_get(world, "/api/v2/users", NULL), 401);
    assert_int_equal(world_get(world, "/api/v2/tokens/check", token), 200);
    /* whose name root has must be an admin, who is there */
    world->peer_uid = 0;
    world->api.config.socket_user = "alice";
    assert_int_equal(world_get(world, "/api/v2/users", NULL), 401);
    world->api.config.socket_user = "nobody-at-all";
    assert_int_equal(world_get(world, "/api/v2/users", NULL), 401);
}

static void test_token_forms(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    struct text token;
    uint8_t key[TOKEN_KEY_SIZE] = {1}, other[TOKEN_KEY_SIZE] = {2};
    struct token_claims read, claims = {.id = "i", .user = "alice", .issued_s = 5, .expires_s = 9};
    arena_init(&arena);
    assert_int_equal(token_sign(key, &claims, &arena, &token, &err), 0);
    assert_int_equal(token_verify(key, token, 8, &arena, &read, &err), 0);
    assert_string_equal(read.user, "alice");
    assert_string_equal(read.id, "i");
    assert_int_equal(read.expires_s, 9);
    assert_int_equal(token_verify(key, token, 9, &arena, &read, &err), ERR_UNAUTHORIZED);
    assert_int_equal(token_verify(other, token, 8, &arena, &read, &err), ERR_UNAUTHORIZED);
    /* {"alg":"none"}, the signature left out */
    assert_int_equal(
        token_verify(key, TEXT("eyJhbGciOiJub25lIn0.eyJ1c2VybmFtZSI6ImFsaWNlIiwianRpIjoiaSJ9."), 8,
                     &arena, &read, &err),
        ERR_UNAUTHORIZED);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_tokens, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_basic, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_peers, world_setup, world_teardown),
    cmocka_unit_test(test_token_forms),
};
UNIT_FILE(tests, NULL, NULL);
