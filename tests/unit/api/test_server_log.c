/* The server's own log, for administrators. */
#include "unit.h"
#include "world.h"

#include "sys/log_ring.h"

static int setup(void **state)
{
    int failed = world_setup(state);
    log_ring_start(1);
    log_ring_add(LOG_ERROR, 10, "store", "the disk is \"full\"");
    log_ring_add(LOG_INFO, 20, "core", "began");
    log_ring_add(LOG_DEBUG, 30, "core", "a detail");
    return failed;
}

static int teardown(void **state)
{
    log_ring_stop();
    return world_teardown(state);
}

static void test_lines(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/log", alice), 403);
    assert_no_body(world, "disk");
    assert_int_equal(world_get(world, "/api/v2/log?limit=3", admin), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "{\"lines\":["
                        "{\"number\":1000,\"time\":10,\"level\":\"error\",\"part\":\"store\","
                        "\"text\":\"the disk is \\\"full\\\"\"},"
                        "{\"number\":1001,\"time\":20,\"level\":\"info\",\"part\":\"core\","
                        "\"text\":\"began\"},"
                        "{\"number\":1002,\"time\":30,\"level\":\"debug\",\"part\":\"core\","
                        "\"text\":\"a detail\"}],"
                        "\"next\":1002,\"missed\":false,\"complete\":true}");
    assert_int_equal(world_get(world, "/api/v2/log?level=info&after=1000", admin), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "{\"lines\":[{\"number\":1001,\"time\":20,\"level\":\"info\","
                        "\"part\":\"core\",\"text\":\"began\"}],"
                        "\"next\":1002,\"missed\":false,\"complete\":true}");
    assert_int_equal(world_get(world, "/api/v2/log?after=5&limit=1", admin), 200);
    assert_body(world, "\"next\":1000,\"missed\":true,\"complete\":false");
    assert_int_equal(world_get(world, "/api/v2/log?level=loud", admin), 400);
    assert_body(world, "must be error, warning, info or debug");
    assert_int_equal(world_get(world, "/api/v2/log?limit=2001", admin), 400);
    assert_int_equal(world_get(world, "/api/v2/log?after=-1", admin), 400);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
