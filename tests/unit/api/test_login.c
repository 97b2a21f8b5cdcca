/* Logging in through the API: who is refused and how; guessing passwords is slow, and makes nobody
 * else wait. */
#include "unit.h"
#include "world.h"

#include <semaphore.h>
#include <stdio.h>

#include "api/login.h"
#include "base/memory.h"

static const char *const PATH = "/api/v2/authn/basic/login";

static int login_as(struct world *world, const char *user, const char *password, const char *token)
{
    char body[200];
    snprintf(body, sizeof body, "{\"username\":\"%s\",\"password\":\"%s\"}", user, password);
    return world_send(world, HTTP_POST, PATH, token, body);
}

/* Who does not exist is answered like a wrong password, also by the brake. */
static void test_users_are_not_told(void **state)
{
    struct world *world = *state;
    static const char *const USERS[] = {"alice", "nobody"};
    struct buf answers[COUNT_OF(USERS)] = {BUF_INIT, BUF_INIT};
    for (size_t i = 0; i < COUNT_OF(USERS); i++) {
        world->address = i ? "10.0.0.2" : "10.0.0.1";
        assert_int_equal(login_as(world, USERS[i], "wrong", NULL), 400);
        buf_text(&answers[i], buf_as_text(&world->body));
        int status = 400;
        for (int k = 0; k < 4 * LOGIN_FREE && status == 400; k++)
            status = login_as(world, USERS[i], "wrong", NULL);
        assert_int_equal(status, 429);
        assert_true(strtol(world->retry_after, NULL, 10) >= 1);
    }
    assert_string_equal(buf_cstr(&answers[0]), buf_cstr(&answers[1]));
    for (size_t i = 0; i < COUNT_OF(USERS); i++)
        buf_release(&answers[i]);
}

static void test_guessed_user_logs_in(void **state)
{
    struct world *world = *state;
    const char *token = world_login(world, "alice");
    int status = 400;
    world->address = "10.0.0.2";
    for (int k = 0; k < 4 * LOGIN_FREE && status == 400; k++)
        status = login_as(world, "alice", "wrong", NULL);
    assert_int_equal(status, 429);
    assert_int_equal(login_as(world, "alice", "alice-password", token), 200); /* also revoked: */
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/authn/basic/logout", token, ""), 200);
    assert_int_equal(login_as(world, "alice", "alice-password", token), 200);
    world->address = "127.0.0.1";
    assert_int_equal(login_as(world, "alice", "alice-password", NULL), 200);
    /* another's token proves nothing */
    const char *bob = world_login(world, "bob");
    world->address = "10.0.0.2";
    for (int k = 0; k < 4 * LOGIN_FREE && (status = login_as(world, "alice", "x", NULL)) == 400;)
        k++;
    assert_int_equal(status, 429);
    assert_int_equal(login_as(world, "alice", "alice-password", bob), 429);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static void test_login(void **state)
{
    struct world *world = *state;
    const char *path = "/api/v2/authn/basic/login";
    static const struct {
        const char *body, *code;
    } BAD[] = {
        {"", "InvalidParametersError"},
        {"{", "InvalidParametersError"},
        {"[]", "InvalidParametersError"},
        {"{\"username\":1,\"password\":\"x\"}", "InvalidParametersError"},
        {"{\"username\":\"alice\"}", "InvalidParametersError"},
        {"{\"username\":\"alice\",\"password\":\"alice-password\",\"expiration\":59}",
         "InvalidParametersError"},
        {"{\"username\":\"alice\",\"password\":\"alice-password\",\"wrong\":1}",
         "there is no 'wrong' here: the body has username, password and expiration"},
        {"{\"username\":\"nobody\",\"password\":\"secret\"}", "IncorrectPasswordError"},
        {"{\"username\":\"alice\",\"password\":\"wrong\"}", "IncorrectPasswordError"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        assert_int_equal(world_send(world, HTTP_POST, path, NULL, BAD[i].body), 400);
        assert_body(world, BAD[i].code);
    }
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v1/token", NULL,
                               "application/x-www-form-urlencoded",
                               TEXT("username=alice&password=alice%2Dpassword&expiration=60")),
                     200);
    assert_body(world, "\"user\":\"alice\"");
    assert_int_equal(world_ask(world, HTTP_POST, path, NULL, "application/x-www-form-urlencoded",
                               TEXT("username=alice&password=alice%2Dpassword&wrong=1")),
                     400);
    assert_body(world, "there is no 'wrong' here");
    /* clients of the older API say what they like */
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v1/token", NULL,
                   "{\"username\":\"alice\",\"password\":\"alice-password\",\"wrong\":1}"),
        200);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/token", NULL,
                                "{\"username\":\"alice\",\"password\":\"wrong\"}"),
                     400);
    assert_body(world, "\"error\":\"AuthenticationFailed\"");
}

static const struct CMUnitTest tests[] = {
    WORLD(test_users_are_not_told),
    WORLD(test_guessed_user_logs_in),
    cmocka_unit_test_setup_teardown(test_login, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
