/* What is shown of one job: its state, its attempts and its tasks.
 *
 * Covers: src/api/view.c, src/api/view_task.c */
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include <stdio.h>

/* Which GPUs a task has: their numbers, and the mask of them in the older API. */
static void test_gpus_of_a_task(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    static const char file[] =
        "protocolVersion: 2\nname: four\ntype: job\nprerequisites:\n"
        "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 2}\n    commands: [x]\n";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, file), 202);
    assert_int_equal(world_get(world, "/api/v2/jobs/four", alice), 200);
    assert_body(world, "\"containerGpus\":\"0,1\",\"gpus\":[0,1]");
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~four", alice), 200);
    assert_body(world, "\"containerGpus\":3,");
    world_submit(world, alice, "none", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/none", alice), 200);
    assert_body(world, "\"containerGpus\":null,\"gpus\":[]");
}

/* What is kept of a failed job for debugging: whose it is, until when, and that it is gone. */
static void test_held_containers(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    static const char file[] =
        "protocolVersion: 2\nname: kept\ntype: job\nprerequisites:\n"
        "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n    commands: [x]\n"
        "extras: {debug: true}\n";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, file), 202);
    struct job_id job;
    struct err err;
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("kept"), &job, &err), 0);
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/jobs/kept", alice), 200);
    assert_body(world, "\"held\":null");
    world_exit(world, job, 0, 3);
    char held[200];
    snprintf(held, sizeof held,
             "\"held\":{\"containers\":1,\"until\":%lld,"
             "\"tasks\":[{\"taskRoleName\":\"w\",\"taskIndex\":0}]}",
             (long long)world->now_ms + 604800000);
    static const char *const WAYS[] = {"", "?tasks=none", "?tasks=count", "?tasks=states"};
    for (size_t i = 0; i < COUNT_OF(WAYS); i++) {
        char path[64];
        snprintf(path, sizeof path, "/api/v2/jobs/kept%s", WAYS[i]);
        assert_int_equal(world_get(world, path, alice), 200);
        assert_body(world, held);
    }
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~kept", alice), 200);
    assert_null(strstr(buf_cstr(&world->body), "\"held\""));
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/kept/release", alice, "{}"), 202);
    assert_int_equal(world_get(world, "/api/v2/jobs/kept", alice), 200);
    assert_body(world, "\"held\":null");
}

static void test_job_life(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "train", 2);
    assert_body(world, "\"name\":\"alice~train\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~train", alice), 200);
    assert_body(world, "\"subState\":\"AttemptCreationRequested\"");
    assert_body(world, "\"containerNodeName\":\"n1\"");
    assert_body(world, "\"taskRoles\":{\"worker\":{\"taskRoleStatus\":{\"name\":\"worker\"}");
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    assert_body(world, "\"state\":\"RUNNING\"");
    /* a job that waits for room: its tasks have no attempt yet, and that is no error */
    world_submit(world, alice, "large", 60);
    assert_int_equal(
        world_get(world, "/api/v2/jobs/large/attempts/0/taskRoles/worker/taskIndex/7/attempts",
                  alice),
        200);
    assert_body(world, "\"taskState\":\"WAITING\"");
    assert_body(world, "\"attempts\":[]");
    world_exit(world, job, 0, 0);
    world_exit(world, job, 1, 0);
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    assert_body(world, "\"state\":\"SUCCEEDED\"");
    assert_body(world, "\"appExitCode\":0,\"appOriginalExitCode\":0");
    assert_body(world, "\"appExitMessages\":{\"container\":null,\"runtime\":null,\"launcher\":");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/0", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/1", alice), 404);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/x", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/job-attempts", alice), 200);
    assert_body(world, "\"isLatest\":true");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/job-attempts/0", alice), 200);
    assert_body(world, "\"totalGpuNumber\":");
    assert_body(world, "\"totalTaskNumber\":");
    assert_body(world, "\"totalTaskRoleNumber\":");
    assert_body(world, "\"uid\":\"1.0\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/job-attempts/healthz", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs/a~none/job-attempts/healthz", alice), 200);
    assert_int_equal(
        world_get(world, "/api/v2/jobs/train/attempts/0/taskRoles/worker/taskIndex/1/attempts",
                  alice),
        200);
    assert_body(world, "\"attempts\":[{\"attemptId\":0");
    assert_int_equal(
        world_get(world, "/api/v2/jobs/train/attempts/0/taskRoles/worker/taskIndex/2/attempts",
                  alice),
        404);
    assert_body(world, "NoTaskError");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/ssh", alice), 404);
    assert_body(world, "NoJobSshInfoError");
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/train", alice, ""), 202);
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 404);
    assert_body(world, "\"code\":\"NoJobError\"");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_held_containers, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_job_life, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_gpus_of_a_task, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
