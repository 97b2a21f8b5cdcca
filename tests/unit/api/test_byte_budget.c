/* Bytes of requests and replies under way: who is refused, and what is given back. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "api/byte_budget.h"
#include "base/memory.h"

enum { MIB = 1 << 20 };

static int take(struct byte_budget *budget, const char *client, size_t bytes,
                struct http_hold *hold)
{
    struct err err;
    return byte_budget_take(budget, client, "reply", bytes, false, hold, &err);
}

static void give(struct http_hold *hold)
{
    hold->free(hold->state);
}

static void one_reader_has_a_part(void **state)
{
    (void)state;
    struct byte_budget *budget = byte_budget_new();
    struct http_hold first, second, other, none = {NULL, NULL};
    assert_int_equal(take(budget, "a", BYTES_OF_ONE_MAX - MIB, &first), 0);
    assert_int_equal(take(budget, "a", MIB + 1, &none), ERR_BUSY);
    assert_int_equal(take(budget, "a", MIB, &second), 0);
    assert_int_equal(take(budget, "b", MIB + 1, &other), 0);
    assert_int_equal(take(budget, "a", BYTES_SMALL, &none), 0); /* and does not count */
    assert_null(none.free);
    assert_int_equal(byte_budget_bytes(budget), BYTES_OF_ONE_MAX + MIB + 1);
    give(&first);
    assert_int_equal(take(budget, "a", 2 * MIB, &first), 0);
    give(&first);
    give(&other);
    give(&second);
    assert_int_equal(byte_budget_bytes(budget), 0);
    byte_budget_free(budget);
}

/* Four readers who take all leave the reserve to those who have nothing yet. */
static void all_have_a_bound_too(void **state)
{
    (void)state;
    enum { READERS = BYTES_MAX / BYTES_OF_ONE_MAX };
    struct byte_budget *budget = byte_budget_new();
    struct http_hold holds[READERS], extra, last, none = {NULL, NULL};
    char name[16];
    for (int i = 0; i < READERS; i++) {
        snprintf(name, sizeof name, "reader %d", i);
        assert_int_equal(take(budget, name, BYTES_OF_ONE_MAX - MIB, &holds[i]), 0);
    }
    assert_int_equal(take(budget, "new", (READERS + 1) * MIB, &extra), 0);
    assert_int_equal(take(budget, "reader 0", MIB, &none), ERR_BUSY); /* within its own part */
    assert_int_equal(take(budget, "new", MIB, &none), ERR_BUSY);
    assert_int_equal(take(budget, "another", BYTES_RESERVE, &none), ERR_BUSY);
    assert_int_equal(take(budget, "another", BYTES_RESERVE - MIB, &last), 0);
    give(&last);
    give(&extra);
    for (int i = 0; i < READERS; i++)
        give(&holds[i]);
    byte_budget_free(budget);
}

/* Whatever its size, a reply must be possible. What must go out is counted. */
static void what_is_never_refused(void **state)
{
    (void)state;
    struct byte_budget *budget = byte_budget_new();
    struct http_hold alone, must;
    struct err err;
    const size_t huge = (size_t)2 * BYTES_MAX;
    assert_int_equal(take(budget, "a", huge, &alone), 0);
    assert_int_equal(byte_budget_take(budget, "a", "reply", MIB, true, &must, &err), 0);
    assert_int_equal(byte_budget_bytes(budget), huge + MIB);
    give(&alone);
    give(&must);
    byte_budget_free(budget);
}

static void expect_busy(const struct world *world, int status)
{
    assert_int_equal(status, 429);
    assert_body(world, "\"code\":\"BusyError\"");
    assert_body(world, "end those, or ask for less at a time");
    assert_string_equal(world->retry_after, "1");
    assert_string_equal(world->etag, "");
}

/* Of a hundred jobs: the others are not there. */
static void stop_write(const char *job, struct buf *body)
{
    buf_format(body, "{\"action\":\"stop\",\"jobs\":[\"%s\"", job);
    for (int i = 1; i < 100; i++)
        buf_format(body, ",\"other-%d\"", i);
    buf_string(body, "]}");
}

static void a_refusal_says_what_to_do(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    cleanup_buf struct buf body = BUF_INIT, filling = BUF_INIT;
    struct http_hold hold;
    while (filling.length < 2 * BYTES_SMALL)
        buf_string(&filling, "filling ");
    buf_format(&body, "{\"groupname\":\"large\",\"extension\":{\"a\":\"%s\"}}", buf_cstr(&filling));
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/groups", admin, buf_cstr(&body)), 201);
    const struct job_id job = world_submit(world, alice, "train", 1);
    world_run(world, job);

    assert_int_equal(take(world->api.held, "user alice", BYTES_OF_ONE_MAX, &hold), 0);
    expect_busy(world, world_get(world, "/api/v2/groups", alice));
    /* a small reply, and another one's */
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    assert_int_equal(world_get(world, "/healthz", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/groups", admin), 200);
    assert_true(world->body.length > BYTES_SMALL);
    /* an error is small unless it lists a hundred */
    buf_clear(&body);
    buf_string(&body, "protocolVersion: 2\nname: many\ntype: job\n");
    for (int i = 0; i < 100; i++)
        buf_format(&body, "no-such-key-%.*s-%d: 1\n", 100, buf_cstr(&filling), i);
    expect_busy(world, world_send(world, HTTP_POST, "/api/v2/jobs", alice, buf_cstr(&body)));
    /* what cannot be taken back is refused before it begins, where its reply is large */
    const char *one = "{\"action\":\"addTag\",\"tag\":\"urgent\",\"jobs\":[\"train\"]}";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/bulk/jobs", alice, one), 200);
    buf_clear(&body);
    stop_write("train", &body);
    expect_busy(world, world_send(world, HTTP_POST, "/api/v2/bulk/jobs", alice, buf_cstr(&body)));
    give(&hold);

    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    assert_body(world, "\"state\":\"RUNNING\"");
    assert_int_equal(world_get(world, "/api/v2/groups", alice), 200);
    assert_int_equal(byte_budget_bytes(world->api.held), 0); /* it has gone out */
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/bulk/jobs", alice, buf_cstr(&body)),
                     200);
}

static struct world *acting;
static const char *acting_token;

/* Another one comes while this one is under way. */
static int act_beside_another(void *context, enum service_action action, const char *user,
                              struct job_id job, struct service_reply reply, struct err *err)
{
    (void)context, (void)action, (void)user, (void)job, (void)reply;
    cleanup_buf struct buf body = BUF_INIT;
    stop_write("another", &body);
    expect_busy(acting,
                world_send(acting, HTTP_POST, "/api/v2/bulk/jobs", acting_token, buf_cstr(&body)));
    return err_fail(err, ERR_CONFLICT, "", "it is as it is");
}

/* Its reply must go out, and many may be asked for before the first one is made. */
static void an_action_on_many_jobs_counts_from_its_begin(void **state)
{
    struct world *world = acting = *state;
    const char *alice = acting_token = world_login(world, "alice");
    cleanup_buf struct buf body = BUF_INIT;
    struct http_hold hold;
    world_submit(world, alice, "train", 1);
    stop_write("train", &body);
    world->service.act = act_beside_another;
    assert_int_equal(take(world->api.held, "user alice", BYTES_OF_ONE_MAX - (64 << 10), &hold), 0);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/bulk/jobs", alice, buf_cstr(&body)),
                     200);
    assert_body(world, "it is as it is");
    give(&hold);
    assert_int_equal(byte_budget_bytes(world->api.held), 0);
}

/* Who has not signed in is a network. */
static void a_stranger_counts_by_network(void **state)
{
    struct world *world = *state;
    struct http_hold hold;
    world->api.config.is_v1_read_open = true;
    const char *alice = world_login(world, "alice");
    for (int i = 0; i < 64; i++) {
        char name[16];
        snprintf(name, sizeof name, "job%d", i);
        world_submit(world, alice, name, 1);
    }
    assert_int_equal(take(world->api.held, "network 20010db800010002", BYTES_OF_ONE_MAX, &hold), 0);
    world->address = "2001:db8:1:2::3";
    expect_busy(world, world_get(world, "/api/v1/jobs", NULL));
    assert_int_equal(world_get(world, "/api/v1/jobs", alice), 200);
    world->address = "2001:db8:1:3::3";
    assert_int_equal(world_get(world, "/api/v1/jobs", NULL), 200);
    assert_true(world->body.length > BYTES_SMALL);
    give(&hold);
}

/* Of whom has not signed in no more than a token or a form is expected. */
static void a_body_counts_until_its_reply_is_made(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    cleanup_buf struct buf body = BUF_INIT;
    struct http_hold hold;
    while (body.length < HTTP_BODY_STRANGER_MAX)
        buf_string(&body, "filling ");

    assert_int_equal(take(world->api.held, "user alice", BYTES_OF_ONE_MAX - body.length + 1, &hold),
                     0);
    expect_busy(world, world_send(world, HTTP_POST, "/api/v2/jobs", alice, buf_cstr(&body)));
    assert_body(world, "this body has 65536 bytes");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", bob, buf_cstr(&body)), 400);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, "small"), 400);
    world->is_length_unknown = true; /* it may be as large as any */
    expect_busy(world, world_send(world, HTTP_POST, "/api/v2/jobs", alice, "small"));
    assert_body(world, "this body has 1048576 bytes");
    world->is_length_unknown = false;
    give(&hold);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, buf_cstr(&body)), 400);
    assert_int_equal(byte_budget_bytes(world->api.held), 0);

    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens", NULL, buf_cstr(&body)), 400);
    buf_char(&body, 'x');
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens", NULL, buf_cstr(&body)), 413);
    assert_body(world, "the body has more than 65536 bytes");
    assert_int_equal(byte_budget_bytes(world->api.held), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_reader_has_a_part),
    cmocka_unit_test(all_have_a_bound_too),
    cmocka_unit_test(what_is_never_refused),
    cmocka_unit_test_setup_teardown(a_refusal_says_what_to_do, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(a_body_counts_until_its_reply_is_made, world_setup,
                                    world_teardown),
    cmocka_unit_test_setup_teardown(an_action_on_many_jobs_counts_from_its_begin, world_setup,
                                    world_teardown),
    cmocka_unit_test_setup_teardown(a_stranger_counts_by_network, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
