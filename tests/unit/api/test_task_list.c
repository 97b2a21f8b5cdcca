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

/* Tasks 0 and 1 run, 2 succeeded, and 3 to 5 failed: the job goes on nevertheless. */
static void job_of_ends(struct world *world, const char *token)
{
    static const char FILE_TEXT[] =
        "protocolVersion: 2\nname: train\ntype: job\nprerequisites:\n"
        "- {protocolVersion: 2, name: image, type: dockerimage, uri: 'debian:12'}\n"
        "taskRoles:\n  worker:\n    instances: 6\n    dockerImage: image\n"
        "    completion: {minFailedInstances: -1, minSucceededInstances: -1}\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n    commands: ['true']\n";
    assert_int_equal(
        world_ask(world, HTTP_POST, "/api/v2/jobs", token, "text/plain", TEXT(FILE_TEXT)), 202);
    struct job_id job = {1};
    world_run(world, job);
    world_exit(world, job, 2, 0);
    world_exit(world, job, 3, 1);
    world_exit(world, job, 4, 137);
    world_exit(world, job, 5, 1);
}

struct asked {
    const char *query, *expected;
};

static void tasks_ask(struct world *world, const char *alice, const struct asked *asked, int status)
{
    char target[200];
    snprintf(target, sizeof target, TASKS "%s", asked->query);
    assert_int_equal(world_get(world, target, alice), status);
    assert_body(world, asked->expected);
}

static void test_exits(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    job_of_ends(world, alice);
    static const struct asked CASES[] = {
        {"&exitType=USER_SUCCESS", "[{\"taskIndex\":2}]"},
        {"&exitType=USER_SUCCESS,PLATFORM_FAILURE", "[{\"taskIndex\":2},{\"taskIndex\":4}]"},
        {"&exitType=NO_SUCH_TYPE", "[]"},
        {"&exitCode=0", "[{\"taskIndex\":2}]"}, /* and not those that have not ended */
        {"&exitCode=1", "[{\"taskIndex\":3},{\"taskIndex\":5}]"},
        {"&exitCode=137,0&state=FAILED", "[{\"taskIndex\":4}]"},
        {"&exitCode=-8000", "[]"},
        {"&exitType=UNKNOWN_FAILURE&exitCode=1&node=n1&role=worker&from=4", "[{\"taskIndex\":5}]"},
        {"&exitCode=1&exitType=PLATFORM_FAILURE", "[]"},
        {"&exitCode=1&attempt=0", "[{\"taskIndex\":3},{\"taskIndex\":5}]"},
        {"&exitCode=1&limit=1&cursor=", "{\"data\":[{\"taskIndex\":3}],\"cursor\":\""},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        tasks_ask(world, alice, &CASES[i], 200);
    static const struct asked BAD[] = {
        {"&exitCode=x", "exitCode 'x' is no whole number in -2147483648..2147483647"},
        {"&exitCode=1,2147483648", "exitCode '2147483648' is no whole number"},
        {"&exitCode=-2147483649", "exitCode '-2147483649' is no whole number"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        tasks_ask(world, alice, &BAD[i], 400);
}

static void test_order(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    job_of_ends(world, alice);
#define T(i)                   "{\"taskIndex\":" #i "}"
#define ROWS(a, b, c, d, e, f) "[" T(a) "," T(b) "," T(c) "," T(d) "," T(e) "," T(f) "]"
    static const struct asked CASES[] = {
        {"&order=state,ASC", ROWS(0, 1, 2, 3, 4, 5)},
        {"&order=state,DESC", ROWS(3, 4, 5, 2, 0, 1)},
        {"&order=exitType,ASC", ROWS(4, 3, 5, 2, 0, 1)},
        {"&order=exitType,DESC", ROWS(2, 3, 5, 4, 0, 1)},
        {"&order=state,DESC&limit=2", "[" T(3) "," T(4) "]"},
        {"&order=state,DESC&limit=2&offset=3", "[" T(2) "," T(0) "]"},
        {"&order=state,DESC&offset=6", "[]"},
        {"&order=state,DESC&offset=9223372036854775807", "[]"},
        {"&offset=4", "[" T(4) "," T(5) "]"},
        {"&order=exitType,DESC&exitCode=1,137&limit=2&withTotalCount=true",
         "{\"totalCount\":3,\"data\":[" T(3) "," T(5) "]}"},
        {"&order=state,DESC&keyword=worker[3]", "[" T(3) "]"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        tasks_ask(world, alice, &CASES[i], 200);
    assert_int_equal(world_get(world, TASKS "&order=state,DESC&limit=1", alice), 200);
    assert_string_equal(world->link, "");
    assert_int_equal(world_get(world, TASKS "&offset=1&limit=1", alice), 200);
    assert_non_null(strstr(world->link, "rel=\"next\""));
    static const struct asked BAD[] = {
        {"&order=state",
         "order 'state' is none of state,ASC state,DESC exitType,ASC exitType,DESC"},
        {"&order=exitType,UP", "order 'exitType,UP' is none of"},
        {"&order=", "order '' is none of"},
        {"&order=state,ASC&cursor=", "tasks in this order have no cursor"},
        {"&withTotalCount=true&cursor=", "pages with a cursor have no total"},
        {"&offset=1&cursor=", "a page begins at its cursor"},
        {"&order=state,ASC&role=worker&from=1", "give neither order nor offset with it"},
        {"&offset=1&role=worker&from=1", "give neither order nor offset with it"},
        {"&offset=-1", "offset"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        tasks_ask(world, alice, &BAD[i], 400);
}

static void test_values(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    job_of_ends(world, alice);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/task-values", alice), 200);
    assert_string_equal(
        buf_cstr(&world->body),
        "{\"exitTypes\":[\"PLATFORM_FAILURE\",\"UNKNOWN_FAILURE\",\"USER_SUCCESS\"],"
        "\"exitCodes\":[0,1,137],\"nodes\":[\"n1\"],\"isCut\":false}");
    world_submit(world, alice, "large", 60);
    assert_int_equal(world_get(world, "/api/v2/jobs/large/task-values", alice), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "{\"exitTypes\":[],\"exitCodes\":[],\"nodes\":[],\"isCut\":false}");
    assert_int_equal(world_get(world, "/api/v2/jobs/none/task-values", alice), 404);
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
    cmocka_unit_test_setup_teardown(test_exits, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_order, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_values, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_waiting, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_detail, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
