/* Barriers are reported by the try itself. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

static void test_barrier(void **state)
{
    struct world *world = *state;
    static const char PATH[] = "/api/internal/attempts/7/barriers/start";
    assert_int_equal(world_send(world, HTTP_POST, PATH, "of-the-try", ""), 200);
    assert_body(world, "\"state\":\"passed\"");
    assert_int_equal(world->barrier.attempt.v, 7);
    assert_int_equal(world->barrier.kind, BARRIER_START);
    assert_true(world->barrier.is_up && world->barrier.is_waiting);
    assert_int_equal(world_send(world, HTTP_POST,
                                "/api/internal/attempts/8/barriers/ssh?missing=1&report=1",
                                "of-the-try", ""),
                     200);
    assert_body(world, "\"state\":\"noted\"");
    assert_int_equal(world->barrier.kind, BARRIER_SSH);
    assert_false(world->barrier.is_up || world->barrier.is_waiting);
    world->barrier_code = ERR_CONFLICT;
    assert_int_equal(world_send(world, HTTP_POST, PATH, "of-the-try", ""), 409);
    assert_body(world, "\"code\":\"BarrierBrokenError\",\"message\":\"w-1 has ended\"");
    world->barrier_code = ERR_NOT_FOUND;
    assert_int_equal(world_send(world, HTTP_POST, PATH, "of-the-try", ""), 404);
    world->barrier_code = 0;
    /* a user's token is of no use here, nor the try's anywhere else */
    assert_int_equal(world_send(world, HTTP_POST, PATH, world_login(world, "admin"), ""), 401);
    assert_int_equal(world_send(world, HTTP_POST, PATH, NULL, ""), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", "of-the-try"), 401);
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/internal/attempts/7/barriers/other", "of-the-try", ""),
        404);
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/internal/attempts/x/barriers/start", "of-the-try", ""),
        400);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_barrier, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
