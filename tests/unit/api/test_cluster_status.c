/* Virtual clusters are closed and opened, and jobs say that they wait for that. */
#include "unit.h"
#include "world.h"

#include <string.h>

#define STATUS "/api/v2/virtual-clusters/default/status"
#define CLOSE  "{\"vcStatus\":\"stopped\",\"reason\":\"a course\"}"
#define OPEN   "{\"vcStatus\":\"running\"}"

static void what_waits_says_why(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/default", alice), 200);
    assert_body(world, "\"status\":\"RUNNING\",\"closedBy\":null,\"closedTime\":null,"
                       "\"closedReason\":null");
    world_submit(world, alice, "full", 8);
    world_submit(world, alice, "first", 4);
    world_submit(world, alice, "second", 4);
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, CLOSE), 201);
    assert_body(world, "virtual cluster default is stopped");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters", alice), 200);
    assert_body(world, "\"status\":\"STOPPED\",\"closedBy\":\"admin\",\"closedTime\":");
    assert_body(world, "\"closedReason\":\"a course\"");
    const struct job_id last = world_submit(world, alice, "last", 1);
    assert_true(last.v != 0); /* it is accepted, and waits */
    static const char *const jobs[] = {"/api/v2/jobs/alice~first", "/api/v2/jobs/alice~second",
                                       "/api/v1/jobs/alice~last"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_get(world, jobs[i], alice), 200);
        assert_body(world, "\"waitingReason\":\"virtual cluster default is closed by admin since ");
        assert_body(world, "UTC: a course\"");
        if (i < 2)
            assert_body(world, "\"waitingReasonParts\":[{\"code\":\"closedWhy\",\"values\":{"
                               "\"cluster\":\"default\",\"user\":\"admin\",\"since\":");
        else
            assert_no_body(world, "waitingReasonParts"); /* early PAI had none */
    }
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~full", alice), 200);
    assert_body(world, "\"waitingReason\":null,\"waitingReasonParts\":null");
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, OPEN), 201);
    assert_body(world, "virtual cluster default is running");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_get(world, jobs[i], alice), 200);
        assert_no_body(world, "is closed by");
    }
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, OPEN), 201); /* it is open */
}

static void what_is_asked_for_is_checked(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    static const char none[] = "/api/v2/virtual-clusters/none/status";
    char body[700];
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, alice, CLOSE), 403);
    assert_int_equal(world_send(world, HTTP_PUT, none, admin, CLOSE), 404);
    assert_body(world, "NoVirtualClusterError");
    assert_int_equal(world_send(world, HTTP_PUT, none, admin, OPEN), 404);
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, "{}"), 400);
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, "{\"vcStatus\":\"off\"}"), 400);
    assert_body(world, "vcStatus is stopped or running");
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, "{\"vcStatus\":7}"), 400);
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin,
                                "{\"vcStatus\":\"running\",\"reason\":\"done\"}"),
                     400);
    assert_body(world, "stopped only");
    assert_int_equal(
        world_send(world, HTTP_PUT, STATUS, admin, "{\"vcStatus\":\"running\",\"why\":\"done\"}"),
        400);
    strcpy(body, "{\"vcStatus\":\"stopped\",\"reason\":\"");
    const size_t begin = strlen(body);
    memset(body + begin, 'x', CLUSTER_CLOSED_WHY_MAX + 1);
    strcpy(body + begin + CLUSTER_CLOSED_WHY_MAX + 1, "\"}");
    assert_int_equal(world_send(world, HTTP_PUT, STATUS, admin, body), 400);
    assert_body(world, "at most 500 bytes");
}

static void answered(void *context, const struct service_answer *answer)
{
    (void)context;
    assert_int_equal(answer->code, 0);
}

/* The configuration has changed since: it can be opened still, not closed again. */
static void one_that_is_gone_can_be_opened(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    struct service *service = &world->service;
    service->cluster_act(service->context, SERVICE_CLUSTER_CLOSE, "admin", "gone", TEXT(""),
                         (struct service_reply){.done = answered}, &(struct err){0});
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/virtual-clusters/gone/status", admin, CLOSE), 404);
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/virtual-clusters/gone/status", admin, OPEN), 201);
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/virtual-clusters/gone/status", admin, OPEN), 404);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(what_waits_says_why),
    WORLD(what_is_asked_for_is_checked),
    WORLD(one_that_is_gone_can_be_opened),
};
UNIT_FILE(tests, NULL, NULL);
