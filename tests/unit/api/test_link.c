/* Links that open one path without a token. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <time.h>

#include "api/link.h"
#include "base/memory.h"

enum { URI_SIZE = 512 };

#define LOGS "/api/v2/jobs/alice~linked/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"

/* The first address in the reply. */
static void uri_of(const struct world *world, char uri[URI_SIZE])
{
    const char *at = strstr(world->body.at, "\"uri\":\"");
    assert_non_null(at);
    at += 7;
    snprintf(uri, URI_SIZE, "%.*s", (int)(strchr(at, '"') - at), at);
}

static void job_make(struct world *world, const char *alice)
{
    struct job_id job = world_submit(world, alice, "linked", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "a line\n");
}

static void test_log_locations(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char uri[URI_SIZE], other[URI_SIZE];
    struct buf out = BUF_INIT;
    job_make(world, alice);
    assert_int_equal(world_get(world, LOGS, alice), 200);
    uri_of(world, uri);
    assert_int_equal(strncmp(uri, LOGS "/stdout?link=", sizeof LOGS "/stdout?link=" - 1), 0);
    assert_int_equal(world_get(world, uri, NULL), 200);
    world_read_all(world, &out);
    assert_true(text_equal(buf_as_text(&out), TEXT("a line\n")));
    buf_release(&out);
    /* for this path alone, and to read */
    snprintf(other, sizeof other, LOGS "/stderr%s", strchr(uri, '?'));
    assert_int_equal(world_get(world, other, NULL), 401);
    assert_int_equal(world_send(world, HTTP_DELETE, uri, NULL, ""), 404);
    snprintf(other, sizeof other, "/api/v2/jobs/alice~linked%s", strchr(uri, '?'));
    assert_int_equal(world_send(world, HTTP_DELETE, other, NULL, ""), 401);
    /* the prefix by which the client came */
    assert_int_equal(world_get(world, "/rest-server" LOGS "?tail-mode=true", alice), 200);
    uri_of(world, uri);
    assert_int_equal(strncmp(uri, "/rest-server/api/internal/tail-logs/", 36), 0);
    assert_int_equal(world_get(world, uri, NULL), 206);
    world_stream_close(world);
    assert_int_equal(world_get(world, uri + sizeof "/rest-server" - 1, NULL), 206);
    world_stream_close(world);
}

static void test_forged(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char uri[URI_SIZE];
    job_make(world, alice);
    assert_int_equal(world_get(world, LOGS, alice), 200);
    uri_of(world, uri);
    char *end = strstr(uri, "link=") + 5, *signature = strchr(end, '.') + 1;
    char *token = strchr(signature, '.') + 1, *user = strchr(token, '.') + 1;
    end[0]++; /* lives longer */
    assert_int_equal(world_get(world, uri, NULL), 401);
    assert_body(world, "the link is not for this path, or it has expired");
    end[0]--;
    signature[0] = signature[0] == '0' ? '1' : '0';
    assert_int_equal(world_get(world, uri, NULL), 401);
    assert_int_equal(world_get(world, uri, alice), 200); /* a token counts alone */
    world_stream_close(world);
    token[0] = token[0] == '0' ? '1' : '0';
    assert_int_equal(world_get(world, uri, NULL), 401);
    token[0] = token[0] == '0' ? '1' : '0';
    memcpy(user, "admin", 5);
    assert_int_equal(world_get(world, uri, NULL), 401);
    static const char *const BAD[] = {"", "1", "1.2", "x.y.z.a", "9999999999...alice"};
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        snprintf(uri, sizeof uri, LOGS "/all?link=%s", BAD[i]);
        assert_int_equal(world_get(world, uri, NULL), 401);
    }
}

static void test_ends(void **state)
{
    struct world *world = *state;
    const int64_t now_s = (int64_t)time(NULL);
    struct exchange exchange;
    struct err err;
    exchange_init(&exchange);
    struct call call = {.api = &world->api, .exchange = &exchange, .arena = &exchange.arena};
    call.caller.auth.user = "alice";
    call.caller.token_id = "of-the-test";
    call.caller.expires_ms = (now_s + LINK_LIFE_S / 2) * 1000;
    const char *uri = link_make(&call, "/a/b", "");
    assert_int_equal(exchange_target(&exchange, text_of(uri), &err), 0);
    struct text link = exchange_query(&exchange, "link");
    struct link from;
    assert_true(link_open(&call, link, now_s, &from));
    assert_string_equal(from.user, "alice");
    assert_string_equal(from.token_id, "of-the-test");
    assert_false(link_open(&call, link, now_s + LINK_LIFE_S / 2 + 1, &from)); /* as the token */
    exchange.segments[0] = TEXT("a/b");                                       /* "/a%2Fb" */
    exchange.segment_count = 1;
    assert_false(link_open(&call, link, now_s, &from));
    exchange_release(&exchange);
}

/* Whoever came without a token is told apart, as what they open ends by other things. */
static void test_without_a_token(void **state)
{
    struct world *world = *state;
    const int64_t now_s = (int64_t)time(NULL);
    struct exchange exchange;
    struct err err;
    struct link from;
    exchange_init(&exchange);
    struct call call = {.api = &world->api, .exchange = &exchange, .arena = &exchange.arena};
    call.caller = (struct caller){
        .auth.user = "alice", .token_id = "", .expires_ms = (now_s + LINK_LIFE_S / 2) * 1000};
    assert_int_equal(exchange_target(&exchange, text_of(link_make(&call, "/a/b", "")), &err), 0);
    assert_true(link_open(&call, exchange_query(&exchange, "link"), now_s, &from));
    assert_string_equal(from.token_id, "");
    assert_int_equal(from.expires_s, now_s + LINK_LIFE_S / 2);
    assert_false(from.is_by_socket);
    exchange_release(&exchange);
    exchange_init(&exchange);
    call.caller = (struct caller){.auth.user = "admin", .token_id = "", .is_by_socket = true};
    assert_int_equal(exchange_target(&exchange, text_of(link_make(&call, "/a/b", "")), &err), 0);
    assert_true(link_open(&call, exchange_query(&exchange, "link"), now_s, &from));
    assert_string_equal(from.token_id, "");
    assert_int_equal(from.expires_s, 0);
    assert_true(from.is_by_socket);
    exchange_release(&exchange);
}

/* A link is worth no more than its user. */
static void test_user_goes(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char uri[URI_SIZE];
    struct err err;
    job_make(world, alice);
    assert_int_equal(world_get(world, LOGS, alice), 200);
    uri_of(world, uri);
    struct store_change change = {.kind = CHANGE_USER_REMOVE, .user = {.name = "alice"}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
    assert_int_equal(world_get(world, uri, NULL), 401);
}

static void admin_set(struct world *world, const char *name, bool is_admin)
{
    struct err err;
    struct store_change change = {.kind = CHANGE_USER_SET,
                                  .user = {.name = name,
                                           .password_hash = "none",
                                           .email = "",
                                           .is_admin = is_admin,
                                           .extension_json = "{}"}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
}

/* A link to a log is given to who may read it, and opens it for as long as that is so. */
static void test_log_rights(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    char uri[URI_SIZE];
    struct buf out = BUF_INIT;
    job_make(world, alice);
    assert_int_equal(world_get(world, LOGS, bob), 403);
    assert_int_equal(world_get(world, LOGS, NULL), 401);
    admin_set(world, "bob", true);
    assert_int_equal(world_get(world, LOGS, bob), 200);
    uri_of(world, uri);
    assert_int_equal(world_get(world, uri, NULL), 200);
    world_read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "a line\n");
    buf_release(&out);
    admin_set(world, "bob", false);
    assert_int_equal(world_get(world, uri, NULL), 403);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_log_locations, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_forged, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_without_a_token, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_ends, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_user_goes, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_rights, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
