/* A visitor asks for an account. Covers: src/api/throttle.c. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "api/throttle.h"
#include "base/rate.h"

#define ACCOUNT "/api/v2/requests/account"

static void ask(struct world *world, const char *body, int expected)
{
    const int status = world_send(world, HTTP_POST, ACCOUNT, NULL, body);
    if (status != expected)
        fail_msg("%s: %d: %s", body, status, buf_cstr(&world->body));
}

#define REST ",\"password\":\"carol-password\",\"email\":\"carol@example.org\""

static void test_asked_decided_and_signed_in(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    char target[80];
    assert_int_equal(world_get(world, "/api/v2/authn/info", NULL), 200);
    assert_body(world, "\"signUp\":\"off\"");
    ask(world, "{\"username\":\"carol\"" REST "}", 403);
    world->api.config.has_sign_up = true;
    assert_int_equal(world_get(world, "/api/v2/authn/info", NULL), 200);
    assert_body(world, "\"signUp\":\"request\"");
    static const char *const wrong[] = {
        "{}",
        "{\"username\":\"ca rol\"" REST "}",
        "{\"username\":\".\"" REST "}",
        "{\"username\":\"..\"" REST "}",
        "{\"username\":\"carol\",\"password\":\"carol-password\"}",
        "{\"username\":\"carol\",\"password\":\"carol-password\",\"email\":\"\"}",
        "{\"username\":\"carol\",\"password\":\"carol-password\",\"email\":\"carol\"}",
        "{\"username\":\"carol\",\"password\":\"carol-password\",\"email\":\"<carol@example.org>"
        "\"}",
        "{\"username\":\"carol\",\"password\":\"short\",\"email\":\"c@d\"}",
        "{\"username\":\"carol\",\"admin\":true" REST "}",
        "{\"username\":\"carol\",\"reason\":7" REST "}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ask(world, wrong[i], 400);
    ask(world, "{\"username\":\"carol\",\"reason\":\"a course\"" REST "}", 202);
    char taken[200];
    snprintf(taken, sizeof taken, "%s", buf_cstr(&world->body));
    ask(world, "{\"username\":\"bob\"" REST "}", 202); /* is taken: the same reply */
    assert_string_equal(buf_cstr(&world->body), taken);
    /* there is no such account yet */
    assert_int_equal(world_get(world, "/api/v2/users/carol", admin), 404);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/authn/basic/login", NULL,
                                "{\"username\":\"carol\",\"password\":\"carol-password\"}"),
                     400);
    assert_int_equal(world_get(world, "/api/v2/requests", world_login(world, "alice")), 200);
    assert_body(world, "\"totalCount\":0");
    assert_int_equal(world_get(world, "/api/v2/requests?status=open", admin), 200);
    assert_body(world, "\"totalCount\":2");
    assert_body(world, "\"address\":\"127.0.0.1\"");
    assert_no_body(world, "argon2");
    const char *of_carol = strstr(buf_cstr(&world->body), "\"username\":\"carol\"");
    assert_non_null(of_carol);
    assert_non_null(strstr(of_carol, "\"email\":\"carol@example.org\""));
    assert_non_null(strstr(buf_cstr(&world->body), "\"nameTaken\":true"));
    /* `carol` is the first or the second of the two */
    const char *at = buf_cstr(&world->body), *id = NULL;
    while ((at = strstr(at, "\"id\":\"")) && at < of_carol)
        id = at += 6;
    assert_non_null(id);
    snprintf(target, sizeof target, "/api/v2/requests/%.*s/status", (int)strcspn(id, "\""), id);
    assert_int_equal(world_send(world, HTTP_PUT, target, world_login(world, "alice"),
                                "{\"status\":\"withdrawn\"}"),
                     403);
    assert_int_equal(world_send(world, HTTP_PUT, target, admin, "{\"status\":\"accepted\"}"), 200);
    assert_int_equal(world_get(world, "/api/v2/users/carol", world_login(world, "carol")), 200);
    assert_body(world, "\"email\":\"carol@example.org\"");
    assert_body(world, "\"admin\":false");
    assert_int_equal(world_get(world, "/api/v2/audit?limit=50", admin), 200);
    assert_no_body(world, "argon2");
    world->refuse = ERR_UNAVAILABLE;
    ask(world, "{\"username\":\"dave\"" REST "}", 503);
    world->refuse = 0;
}

/* The visitor learns nothing of an earlier user; who administers does, and must say it. */
static void test_a_used_name(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    char target[80];
    world->api.config.has_sign_up = true;
    ask(world, "{\"username\":\"carol\"" REST "}", 202);
    char taken[200];
    snprintf(taken, sizeof taken, "%s", buf_cstr(&world->body));
    assert_int_equal(world_ask(world, HTTP_DELETE, "/api/v2/users/bob", admin, NULL, TEXT("")),
                     200);
    ask(world, "{\"username\":\"bob\"" REST "}", 202);
    assert_string_equal(buf_cstr(&world->body), taken);
    assert_int_equal(world_get(world, "/api/v2/requests?status=open", admin), 200);
    assert_body(world, "\"nameTaken\":false,\"nameUsedBefore\":true");
    assert_body(world, "\"nameTaken\":false,\"nameUsedBefore\":false");
    const char *of_bob = strstr(buf_cstr(&world->body), "\"username\":\"bob\""), *id = NULL;
    for (const char *at = buf_cstr(&world->body); (at = strstr(at, "\"id\":\"")) && at < of_bob;)
        id = at += 6;
    assert_non_null(id);
    snprintf(target, sizeof target, "/api/v2/requests/%.*s/status", (int)strcspn(id, "\""), id);
    assert_int_equal(world_send(world, HTTP_PUT, target, admin, "{\"status\":\"accepted\"}"), 409);
    assert_body(world, "\"UsedNameError\"");
    assert_int_equal(world_send(world, HTTP_PUT, target, admin,
                                "{\"status\":\"refused\",\"reason\":\"no\",\"reuseName\":true}"),
                     400);
    assert_int_equal(
        world_send(world, HTTP_PUT, target, admin, "{\"status\":\"accepted\",\"reuseName\":true}"),
        200);
    assert_body(world, "\"nameUsedBefore\":false");
    /* as for a user whom an administrator makes */
    assert_int_equal(world_ask(world, HTTP_DELETE, "/api/v2/users/alice", admin, NULL, TEXT("")),
                     200);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/users", admin,
                                "{\"username\":\"alice\",\"password\":\"alice-password\"}"),
                     409);
    assert_body(world, "\"UsedNameError\"");
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/users", admin,
                   "{\"username\":\"alice\",\"passwordHash\":\"\",\"reuseName\":true}"),
        201);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/authn/basic/login", NULL,
                                "{\"username\":\"alice\",\"password\":\"\"}"),
                     400);
}

static void ask_from(struct world *world, const char *address, int expected)
{
    struct call call = {.api = &world->api};
    struct exchange exchange;
    exchange_init(&exchange);
    exchange.address = text_of(address);
    call.exchange = &exchange;
    call.arena = &exchange.arena;
    const int code = throttle_sign_up(&call);
    if (code != expected)
        fail_msg("%s: %d instead of %d", address, code, expected);
    assert_true(code == 0 || call.retry_s > 0);
    exchange_release(&exchange);
}

/* Whoever has several addresses of one network does not fill the list, nor the rate of all. */
static void test_one_network_does_not_keep_others_out(void **state)
{
    struct world *world = *state;
    char body[200], address[40];
    world->api.config.has_sign_up = true;
    for (int i = 0; i < REQUESTS_OF_SITE_MAX; i++) {
        snprintf(address, sizeof address, "10.0.0.%d", i % 3);
        snprintf(body, sizeof body, "{\"username\":\"carol%d\"" REST "}", i);
        world->address = address;
        ask(world, body, 202);
    }
    world->address = "10.0.0.200";
    for (int i = 0; i < SIGN_UPS; i++)
        ask(world, "{\"username\":\"carol\"" REST "}", 429);
    assert_body(world, "from your network");
    world->address = "10.0.1.200";
    ask(world, "{\"username\":\"carol\"" REST "}", 202);
    world->address = "2001:db8::1";
    ask(world, "{\"username\":\"carol\"" REST "}", 202);
}

/* However many networks ask, each one anew: the rate of all together stays. */
static void test_many_networks_do_not_reset_the_rate(void **state)
{
    struct world *world = *state;
    char address[40];
    for (int i = 0; i < SIGN_UPS; i++) {
        snprintf(address, sizeof address, "10.1.%d.1", i);
        ask_from(world, address, 0);
    }
    for (int i = 0; i < RATE_NAMES_MAX + 1; i++) {
        snprintf(address, sizeof address, "2001:db8:%x:%x::1", i / 65536, i % 65536);
        ask_from(world, address, ERR_BUSY);
    }
    ask_from(world, "10.2.0.1", ERR_BUSY);
}

static void test_strangers_are_slowed_down(void **state)
{
    struct world *world = *state;
    char address[40];
    for (int i = 0; i < SIGN_UPS_OF_ADDRESS; i++)
        ask_from(world, "10.0.0.1", 0);
    ask_from(world, "10.0.0.1", ERR_BUSY);
    ask_from(world, "10.0.0.2", 0);
    for (int i = 0; i < SIGN_UPS_OF_ADDRESS; i++) { /* one network of IPv6 */
        snprintf(address, sizeof address, "2001:db8:0:1::%x", i + 1);
        ask_from(world, address, 0);
    }
    ask_from(world, "2001:db8:0:1:ffff::1", ERR_BUSY);
    ask_from(world, "2001:db8:0:2::1", 0);
    ask_from(world, "::1", 0);
    for (int i = 0; i < SIGN_UPS - 2 * SIGN_UPS_OF_ADDRESS - 3; i++) {
        snprintf(address, sizeof address, "10.0.1.%d", i);
        ask_from(world, address, 0);
    }
    ask_from(world, "10.0.2.1", ERR_BUSY); /* all together */
    world->api.config.has_sign_up = true;
    ask(world, "{\"username\":\"carol\"" REST "}", 429);
    assert_true(world->retry_after[0]);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(test_asked_decided_and_signed_in),
    WORLD(test_a_used_name),
    WORLD(test_strangers_are_slowed_down),
    WORLD(test_one_network_does_not_keep_others_out),
    WORLD(test_many_networks_do_not_reset_the_rate),
};
UNIT_FILE(tests, NULL, NULL);
