/* What holds for every path: a user without the right sees nothing of another's, the paths of
 * format 1 are the same jobs, and a name that is nearly right is offered.
 *
 * Covers: src/api/app.c, src/api/call.c, src/api/routes.c */
#include "unit.h"
#include "world.h"

#include "api/route.h"
#include "base/memory.h"

/* A user without the right never sees another's secret, configuration or log. */
static void test_privacy(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    struct job_id job = world_submit(world, alice, "private", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "alice's log\n");
    static const char *const OWN[] = {
        "/api/v2/jobs/alice~private/config",
        "/api/v1/user/alice/jobs/private/config",
        "/api/v1/jobs/alice~private/config",
        "/api/v2/jobs/alice~private/logs",
        "/api/v2/jobs/alice~private/logs?follow=true",
        "/api/v2/jobs/alice~private/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs",
        "/api/v2/jobs/alice~private/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs/all",
    };
    for (size_t i = 0; i < COUNT_OF(OWN); i++) {
        assert_int_equal(world_get(world, OWN[i], bob), 403);
        assert_body(world, "ForbiddenUserError");
        assert_no_body(world, "alice's log");
        assert_int_equal(world_get(world, OWN[i], NULL), 401);
        assert_int_equal(world_get(world, OWN[i], alice), 200);
        assert_no_body(world, "hush-hush"); /* not even to the owner */
        assert_int_equal(world_get(world, OWN[i], admin), 200);
        assert_no_body(world, "hush-hush");
    }
    static const char *const ALL[] = {"/api/v2/jobs", "/api/v2/jobs/alice~private",
                                      "/api/v2/jobs/alice~private/events",
                                      "/api/v2/jobs/alice~private/job-attempts"};
    for (size_t i = 0; i < COUNT_OF(ALL); i++) {
        assert_int_equal(world_get(world, ALL[i], bob), 200);
        assert_no_body(world, "hush-hush");
    }
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/alice~private/executionType", bob,
                                "{\"value\":\"STOP\"}"),
                     403);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/alice~private", bob, ""), 403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/alice~private/release", bob, "{}"),
                     403);
    assert_int_equal(world_send(world, HTTP_PUT,
                                "/api/v2/jobs/alice~private/taskRoles/worker/instances", bob,
                                "{\"instances\":2}"),
                     403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/nodes/n1/pardon", bob, "{}"), 403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/nodes/n1/pardon", admin, "{}"), 202);
    static const char *const closing[] = {"/api/v2/nodes/n1/cordon", "/api/v2/nodes/n1/drain",
                                          "/api/v2/nodes/n1/uncordon"};
    for (size_t i = 0; i < COUNT_OF(closing); i++)
        assert_int_equal(world_send(world, HTTP_PUT, closing[i], bob, "{}"), 403);
    assert_int_equal(
        world_send(world, HTTP_PUT, closing[0], admin, "{\"reason\": \"a disk is replaced\"}"),
        202);
    assert_int_equal(world_get(world, "/api/v2/nodes", bob), 200);
    assert_body(world, "\"state\":\"CORDONED\"");
    assert_body(world, "\"cordonReason\":\"a disk is replaced\"");
    assert_int_equal(world_send(world, HTTP_PUT, closing[2], admin, ""), 202);
    assert_int_equal(world_get(world, "/api/v2/nodes", bob), 200);
    assert_body(world, "\"cordonedBy\":null");
    assert_int_equal(world_send(world, HTTP_PUT, closing[0], admin, "{\"reason\": 7}"), 400);
    assert_int_equal(world_send(world, HTTP_PUT, closing[0], admin, "{\"why\": \"a\"}"), 400);
    assert_body(world, "body:1:2: there is no 'why' here: the body has reason alone");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/nodes/n9/drain", admin, ""), 404);
    world->api.config.is_config_shared = world->api.config.is_log_shared = true;
    for (size_t i = 0; i < COUNT_OF(OWN); i++)
        assert_int_equal(world_get(world, OWN[i], bob), 200);
}

static void test_v1(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    const char *job =
        "{ // a comment\n\"jobName\": \"old\", \"image\": \"debian\",\n\"taskRoles\": "
        "[{\"name\": \"w\", \"taskNumber\": 1, \"cpuNumber\": 1, \"memoryMB\": 100, "
        "\"gpuNumber\": 0, \"command\": \"true\"}]}";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/jobs", alice, job), 202);
    assert_body(world, "update job old successfully");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/jobs/other", alice, job), 400);
    assert_body(world, "body:2:");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/user/alice/jobs/old", bob, job), 403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/user/alice/jobs/old", alice, job), 409);
    assert_body(world, "\"error\":\"DuplicateJobSubmission\"");
    assert_int_equal(world_get(world, "/api/v1/jobs", bob), 200);
    assert_body(world, "\"name\":\"old\"");
    assert_no_body(world, "debugId");
    assert_int_equal(world_get(world, "/api/v1/user/bob/jobs", alice), 200);
    assert_body(world, "[]");
    assert_int_equal(world_get(world, "/api/v1/user/alice/jobs/old", bob), 200);
    assert_int_equal(world_get(world, "/api/v1/jobs/old/config", alice), 200);
    assert_body(world, "// a comment");
    assert_string_equal(world->content_type, "application/json; charset=utf-8");
    assert_int_equal(world_get(world, "/api/v1/jobs/none", alice), 404);
    assert_body(world, "\"error\":\"JobNotFound\"");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/jobs/old/executionType", alice,
                                "{\"value\":\"STOP\"}"),
                     202);
    assert_body(world, "execute job old successfully");
}

static void test_near_names(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_submit(world, alice, "train-digits", 1);
    world_submit(world, alice, "evaluate", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/train-digist", alice), 404);
    assert_body(world, "there is no job alice~train-digist, did you mean alice~train-digits?");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~trian-digits/config", alice), 404);
    assert_body(world, "did you mean alice~train-digits?");
    assert_int_equal(world_get(world, "/api/v2/jobs/something", alice), 404);
    assert_no_body(world, "did you mean");
    assert_int_equal(world_get(world, "/api/v2/jobs/bob~train-digist", alice), 404);
    assert_no_body(world, "did you mean");
}

/* Programs of the old API read `error`; it stands beside `code` there, and nowhere else. */
static void test_old_errors(void **state)
{
    struct world *world = *state;
    const char *nonsense = "nonsense";
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route *route = &ROUTES[i];
        bool is_old = text_starts(text_of(route->path), TEXT("/api/v1/"));
        int status = world_send(world, route->method, route->path, NULL, nonsense);
        if (route->access == ACCESS_ANYONE && status < 400)
            continue;
        if (status < 400 || world_body_has(world, "\"error\":\"") != is_old)
            fail_msg("%s: %d %s", route->path, status, buf_cstr(&world->body));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_privacy, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_v1, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_old_errors, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_near_names, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
