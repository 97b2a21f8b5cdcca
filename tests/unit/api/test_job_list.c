/* The list of jobs: filters, order, pages. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

static void test_list(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    world_submit(world, alice, "one", 1);
    world_submit(world, bob, "two", 1);
    /* every user sees all jobs in lists, and details */
    assert_int_equal(world_get(world, "/api/v2/jobs", bob), 200);
    assert_body(world, "\"name\":\"one\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~one", bob), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs?username=bob&withTotalCount=true", alice), 200);
    assert_body(world, "\"totalCount\":1");
    assert_no_body(world, "\"name\":\"one\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?order=jobName,DESC&limit=1", alice), 200);
    assert_body(world, "\"name\":\"two\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?order=nothing&keyword=one", alice), 200);
    assert_body(world, "\"name\":\"one\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?state=FAILED,SUCCEEDED", alice), 200);
    assert_body(world, "[]");
    assert_int_equal(world_get(world, "/api/v2/jobs?jobPriority=default,prod", alice), 200);
    assert_body(world, "\"name\":\"two\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?since=1", alice), 200);
    assert_body(world, "\"name\":\"two\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?until=1", alice), 200);
    assert_body(world, "[]");
    assert_int_equal(world_get(world, "/api/v2/jobs?since=9000000000000000", alice), 200);
    assert_body(world, "[]");
    static const char *const BAD[] = {"since=x",     "since=0",         "until=0", "until=-1",
                                      "limit=50001", "limit=-1",        "limit=x", "offset=-1",
                                      "state=BAD",   "jobPriority=none"};
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        char target[100];
        snprintf(target, sizeof target, "/api/v2/jobs?%s", BAD[i]);
        assert_int_equal(world_get(world, target, alice), 400);
        assert_body(world, "InvalidParametersError");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_list, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
