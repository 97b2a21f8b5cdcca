/* What was used over time: of one task, of all, of a machine. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include <stdio.h>
#include <time.h>

/* Each task used two cores and, of GPUs, a half; of node n1 the processor alone is known. Attempt 1
 * is not known. */
static int use_known(void *context, struct job_id job, struct attempt_id attempt, const char *node,
                     enum use_resolution resolution, struct use_points *points, struct err *err)
{
    (void)context;
    if (!node && attempt.v == 1)
        return err_fail(err, ERR_NOT_FOUND, "", "nothing is known");
    assert_true(node || job.v);
    use_points_grid(points, 1795000000000, 1795000000000);
    points->begin_ms = (int64_t)time(NULL) / 10 * 10000;
    points->count = resolution == USE_RECENT ? 2 : 1;
    for (size_t i = 0; i < points->count; i++) {
        for (size_t k = 0; k < USE_FIELDS; k++)
            points->values[i][k] = USE_UNKNOWN;
        points->values[i][USE_CPU] = 2000;
        if (!node)
            points->values[i][USE_GPU] = 500;
    }
    return 0;
}

static int use_broken(void *context, struct job_id job, struct attempt_id attempt, const char *node,
                      enum use_resolution resolution, struct use_points *points, struct err *err)
{
    (void)context;
    (void)job;
    (void)attempt;
    (void)node;
    (void)resolution;
    (void)points;
    return err_fail(err, ERR_IO, "", "the disk is gone");
}

static void test_job(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    struct job_id job = world_submit(world, alice, "use", 3);
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/jobs/use/use", alice), 200);
    assert_body(world, "\"pointCount\":0,\"taskCount\":3,\"sampledTaskCount\":0");
    assert_body(world, "\"given\":{\"cpu\":3,");
    assert_body(world, "\"use\":{}");
    world->service.use = use_known;
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~use/use", bob), 200);
    assert_body(world, "\"taskCount\":3,\"sampledTaskCount\":2");
    assert_body(world, "\"cpu\":{\"mean\":4,\"most\":4,\"points\":["); /* of two tasks */
    assert_body(world, "\"gpu\":{\"mean\":1,");
    assert_no_body(world, "\"memory\":{\"mean\"");
    assert_int_equal(
        world_get(world, "/api/v2/jobs/use/use?role=worker&index=1&resolution=recent", alice), 200);
    assert_body(world, "\"resolution\":\"recent\"");
    assert_body(world, "\"pointCount\":2,\"taskCount\":1,\"sampledTaskCount\":1");
    assert_body(world, "\"cpu\":{\"mean\":2,\"most\":2,\"points\":[2,2]}");
    assert_int_equal(
        world_get(world, "/api/v2/jobs/use/use?role=worker&index=1&taskAttempt=0", alice), 200);
    assert_body(world, "\"sampledTaskCount\":1");
    assert_int_equal(
        world_get(world, "/api/v2/jobs/use/use?role=worker&index=1&taskAttempt=7", alice), 200);
    assert_body(world, "\"sampledTaskCount\":0");
}

/* Of many tasks the first 1,000 are looked at; all of them are counted. */
static void test_many(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_submit(world, alice, "many", 10000);
    assert_int_equal(world_get(world, "/api/v2/jobs/many/use", alice), 200);
    assert_body(world, "\"taskCount\":10000,\"sampledTaskCount\":0");
    assert_body(world, "\"given\":{\"cpu\":10000,");
    assert_int_equal(world_get(world, "/api/v2/jobs/many/use?role=worker", alice), 200);
    assert_body(world, "\"taskCount\":10000,");
    assert_int_equal(world_get(world, "/api/v2/jobs/many/use?role=worker&index=9999", alice), 200);
    assert_body(world, "\"taskCount\":1,");
    assert_body(world, "\"given\":{\"cpu\":1,");
    assert_int_equal(world_get(world, "/api/v2/jobs/many/use?role=worker&index=10000", alice), 404);
    assert_int_equal(world_get(world, "/api/v2/jobs/many/use?jobAttempt=0", alice), 200);
    assert_body(world, "\"taskCount\":10000,");
    assert_int_equal(world_get(world, "/api/v2/jobs/many/use?jobAttempt=1", alice), 404);
}

static void test_refusals(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_run(world, world_submit(world, alice, "use", 2));
    static const struct {
        const char *query;
        int status;
    } rows[] = {
        {"?resolution=fine", 400},           {"?index=0", 400},       {"?taskAttempt=0", 400},
        {"?role=worker&taskAttempt=0", 400}, {"?role=nobody", 404},   {"?role=worker&index=2", 404},
        {"?role=worker&index=many", 400},    {"?jobAttempt=-2", 400},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char path[128];
        snprintf(path, sizeof path, "/api/v2/jobs/use/use%s", rows[i].query);
        if (world_get(world, path, alice) != rows[i].status)
            fail_msg("%s: %d", path, world->status);
    }
    assert_int_equal(world_get(world, "/api/v2/jobs/none/use", alice), 404);
    world->service.use = use_broken;
    assert_int_equal(world_get(world, "/api/v2/jobs/use/use", alice), 500);
    assert_int_equal(world_get(world, "/api/v2/nodes/n1/use", alice), 500);
}

static void test_node(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/nodes/n1/use", alice), 200);
    assert_body(world, "\"pointCount\":0");
    world->service.use = use_known;
    assert_int_equal(world_get(world, "/api/v2/nodes/n1/use", alice), 200);
    assert_body(world, "\"given\":{\"cpu\":8,");
    assert_body(world, "\"use\":{\"cpu\":{\"mean\":2,\"most\":2,\"points\":[2]}}");
    assert_no_body(world, "taskCount");
    assert_int_equal(world_get(world, "/api/v2/nodes/n9/use", alice), 404);
    assert_int_equal(world_get(world, "/api/v2/nodes/n1/use?resolution=x", alice), 400);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_job, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_many, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_refusals, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_node, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
