/* The tasks of a job in pages, and the job's detail without them. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

static void test_filters(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "train", 3);
    world_run(world, job);
    world_exit(world, job, 1, 0);
#define TASKS "/api/v2/jobs/train/tasks?fields=taskIndex"
    assert_int_equal(world_get(world, TASKS, alice), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "[{\"taskIndex\":0},{\"taskIndex\":1},{\"taskIndex\":2}]");
    static const struct {
        const char *query, *expected;
    } CASES[] = {
        {"&state=RUNNING", "[{\"taskIndex\":0},{\"taskIndex\":2}]"},
        {"&state=SUCCEEDED,FAILED", "[{\"taskIndex\":1}]"},
        {"&state=WAITING", "[]"},
        {"&role=worker,other&limit=1", "[{\"taskIndex\":0}]"},
        {"&role=other", "[]"},
        {"&node=n1&state=RUNNING&limit=2", "[{\"taskIndex\":0},{\"taskIndex\":2}]"},
        {"&node=n2", "[]"},
        {"&attempt=0&state=RUNNING", "[{\"taskIndex\":0},{\"taskIndex\":2}]"},
        {"&role=worker&from=0&limit=1", "[{\"taskIndex\":0}]"},
        {"&role=worker&from=1&limit=1", "[{\"taskIndex\":1}]"},
        {"&role=worker&from=1&state=RUNNING", "[{\"taskIndex\":2}]"},
        {"&role=worker&from=3", "[]"},
        {"&role=worker&from=1&attempt=0", "[{\"taskIndex\":1},{\"taskIndex\":2}]"},
        {"&role=other&from=1", "[]"},
        {"&keyword=worker[1]", "[{\"taskIndex\":1}]"},
        {"&keyword=n1&state=RUNNING", "[{\"taskIndex\":0},{\"taskIndex\":2}]"},
        {"&keyword=nowhere", "[]"},
        {"&limit=1&state=RUNNING&cursor=", "{\"data\":[{\"taskIndex\":0}],\"cursor\":\""},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char target[200];
        snprintf(target, sizeof target, TASKS "%s", CASES[i].query);
        assert_int_equal(world_get(world, target, alice), 200);
        assert_body(world, CASES[i].expected);
    }
    static const char *const BAD[] = {"state=BAD",
                                      "attempt=x",
                                      "attempt=-1",
                                      "limit=50001",
                                      "from=1",
                                      "role=worker,other&from=1",
                                      "from=-1",
                                      "role=worker&from=65536",
                                      "role=worker&from=x"};
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        char target[200];
        snprintf(target, sizeof target, TASKS "&%s", BAD[i]);
        assert_int_equal(world_get(world, target, alice), 400);
    }
    assert_int_equal(world_get(world, TASKS "&attempt=1", alice), 404);
    assert_body(world, "NoJobError");
    assert_int_equal(world_get(world, "/api/v2/jobs/none/tasks", alice), 404);
}

/* Tasks that have never been placed have no rows, and are there nevertheless. */
static void test_waiting(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_submit(world, alice, "large", 60);
    assert_int_equal(
        world_get(world, "/api/v2/jobs/large/tasks?fields=taskIndex&limit=2&state=WAITING", alice),
        200);
    assert_string_equal(buf_cstr(&world->body), "[{\"taskIndex\":0},{\"taskIndex\":1}]");
    assert_non_null(strstr(world->link, "rel=\"next\""));
    assert_int_equal(world_get(world, "/api/v2/jobs/large?tasks=count", alice), 200);
    assert_body(world, "{\"worker\":{\"taskRoleStatus\":{\"name\":\"worker\",\"taskCounts\":"
                       "{\"WAITING\":60}},\"taskStatuses\":[]}}");
    assert_int_equal(world_get(world, "/api/v2/jobs/large?tasks=states", alice), 200);
    assert_body(world,
                "\"taskStates\":\"WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
                "\"},\"taskStatuses\":[]}}");
}

static void test_detail(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "train", 3);
    world_run(world, job);
    world_exit(world, job, 1, 0);
    assert_int_equal(world_get(world, "/api/v2/jobs/train?tasks=none", alice), 200);
    assert_body(world, "\"taskRoles\":{\"worker\":{\"taskRoleStatus\":{\"name\":\"worker\"},"
                       "\"taskStatuses\":[]}}}");
    assert_body(world, "\"totalTaskNumber\":3");
    assert_int_equal(world_get(world, "/api/v2/jobs/train?tasks=count", alice), 200);
    assert_body(world, "\"taskCounts\":{\"RUNNING\":2,\"SUCCEEDED\":1}},\"taskStatuses\":[]");
    assert_int_equal(world_get(world, "/api/v2/jobs/train?tasks=states", alice), 200);
    assert_body(world, "\"taskCounts\":{\"RUNNING\":2,\"SUCCEEDED\":1},\"taskStates\":\"RSR\"},"
                       "\"taskStatuses\":[]");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/0?tasks=states", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/0?tasks=none", alice), 200);
    assert_body(world, "\"taskStatuses\":[]");
    cleanup_buf struct buf whole = BUF_INIT;
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    buf_text(&whole, buf_as_text(&world->body));
    assert_int_equal(world_get(world, "/api/v2/jobs/train?tasks=all", alice), 200);
    assert_string_equal(buf_cstr(&world->body), buf_cstr(&whole));
    assert_int_equal(world_get(world, "/api/v2/jobs/train?tasks=some", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/0?tasks=count", alice), 400);
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~train?tasks=none", alice), 200);
    assert_body(world, "\"taskIndex\":2");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_filters, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_waiting, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_detail, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
