/* Quotas by the API: shown, set, and those of requests and streams.
 *
 * Covers: src/api/quota.c, src/api/throttle.c */
#include "unit.h"
#include "world.h"

#include <stdlib.h>

#include "api/throttle.h"
#include "base/memory.h"

static void quota_set(struct world *world, const char *admin, const char *body)
{
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/users/alice/quota", admin, body), 201);
}

static void test_shown_and_set(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    static const char *const bad[] = {"{}",
                                      "{\"gpu\":1}",
                                      "{\"gpus\":-1}",
                                      "{\"gpus\":1.5}",
                                      "{\"gpus\":\"1\"}",
                                      "{\"gpus\":1000000001}",
                                      "{\"requestsPerSecond\":0}"};
    assert_int_equal(world_get(world, "/api/v2/users/alice/quota", alice), 200);
    assert_body(world, "\"liveJobs\":{\"value\":null,\"group\":null,\"used\":0}");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/users/alice/quota", admin, bad[i]),
                         400);
        assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/groups/nobody/quota", admin, bad[i]),
                         400);
    }
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/users/nobody/quota", admin, "{\"gpus\":1}"), 404);
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/groups/nobody/quota", admin, "{\"gpus\":1}"), 404);
    quota_set(world, admin, "{\"gpus\":8,\"liveJobs\":2}");
    world_submit(world, alice, "one", 1);
    assert_int_equal(world_get(world, "/api/v2/users/alice/quota", alice), 200);
    assert_body(world, "\"liveJobs\":{\"value\":2,\"group\":null,\"used\":1}");
    assert_body(world, "\"gpus\":{\"value\":8,\"group\":null,\"used\":0}");
    assert_body(world, "\"storedJobs\":{\"value\":null,\"group\":null,\"used\":1}");
    assert_body(world, "\"gpuHoursPerMonth\":{\"value\":null,\"group\":null,\"used\":0}");
    assert_body(world, "\"keptJobs\":{\"value\":null,\"group\":null,\"used\":0}");
    quota_set(world, admin, "{\"gpus\":null}");
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}"), 201);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/groups/lab/quota", admin, "{\"gpus\":5}"),
                     201);
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/users/alice/group", admin, "{\"groupname\":\"lab\"}"),
        201);
    assert_int_equal(world_get(world, "/api/v2/users/alice/quota", admin), 200);
    assert_body(world, "\"gpus\":{\"value\":5,\"group\":\"lab\",\"used\":0}");
    assert_int_equal(world_get(world, "/api/v2/groups/lab/quota", admin), 200);
    assert_body(world, "\"gpus\":{\"value\":5}");
    assert_int_equal(world_get(world, "/api/v2/users/alice/quota", world_login(world, "bob")), 403);
}

static void test_requests(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    bool is_refused = false;
    assert_int_equal(world_get(world, "/api/v2/jobs", alice), 200);
    quota_set(world, admin, "{\"requestsPerSecond\":1}");
    /* one a second: of two within one the second is too many */
    for (int i = 0; i < 1000 && !is_refused; i++) {
        if (world_get(world, "/api/v2/jobs", alice) != 429)
            continue;
        is_refused = true;
        assert_body(world, "\"code\":\"QuotaExceededError\"");
        assert_body(world, "the quota requestsPerSecond is 1, and 1 is used");
        assert_body(world, "\"path\":\"requestsPerSecond\"");
        assert_string_equal(world->retry_after, "1");
    }
    assert_true(is_refused);
    assert_int_equal(world_get(world, "/api/v2/jobs", admin), 200); /* others go on */
    quota_set(world, admin, "{\"requestsPerSecond\":1000000}");
    for (int i = 0; i < 20; i++)
        assert_int_equal(world_get(world, "/api/v2/jobs", alice), 200);
    quota_set(world, admin, "{\"requestsPerSecond\":null}");
    for (int i = 0; i < 20; i++)
        assert_int_equal(world_get(world, "/api/v2/jobs", alice), 200);
}

/* A request for many jobs counts as that many. */
static void test_bulk(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    for (char name[] = "a"; name[0] <= 'z'; name[0]++)
        world_submit(world, alice, name, 1);
    quota_set(world, admin, "{\"requestsPerSecond\":2}");
    const char *target = "/api/v2/bulk/jobs?all=true&dryRun=true";
    assert_int_equal(world_send(world, HTTP_POST, target, alice, "{\"action\":\"stop\"}"), 200);
    assert_in_range(throttle_use_of(&world->api, "alice").requests, 0, 1);
    target = "/api/v2/bulk/jobs?all=true";
    assert_int_equal(world_send(world, HTTP_POST, target, alice, "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"done\":26,");
    assert_int_equal(world_get(world, "/api/v2/jobs", alice), 429);
    /* 26 at two a second, of which a burst of two is free; some time has passed */
    assert_in_range(atoi(world->retry_after), 1, 13);
    assert_in_range(throttle_use_of(&world->api, "alice").requests, 3, 27);
}

static void test_streams(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    static const char *const streams[] = {"/api/v2/changes", "/api/v2/jobs/alice~one/logs?follow",
                                          "/api/v2/jobs/alice~one/events?follow"};
    struct job_id job = world_submit(world, alice, "one", 1);
    world_run(world, job);
    quota_set(world, admin, "{\"streams\":0}");
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(world_get(world, streams[i], alice), 429);
        assert_body(world, "the quota streams is 0, and 0 are used");
        assert_string_equal(world->retry_after, "60");
    }
    quota_set(world, admin, "{\"streams\":1}");
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(world_get(world, streams[i], alice), 200);
        assert_non_null(world->streaming);
        assert_int_equal(throttle_use_of(&world->api, "alice").streams, 1);
        world_stream_close(world);
        assert_int_equal(throttle_use_of(&world->api, "alice").streams, 0);
    }
    assert_int_equal(atomic_load(&world->api.followers), 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(test_shown_and_set),
    WORLD(test_bulk),
    WORLD(test_requests),
    WORLD(test_streams),
};
UNIT_FILE(tests, NULL, NULL);
