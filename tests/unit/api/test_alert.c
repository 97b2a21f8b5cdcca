/* What needs somebody's attention now. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

static void test_alerts(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/alerts", alice), 200);
    assert_string_equal(buf_cstr(&world->body), "[]"); /* none is about a job of alice's */
    assert_int_equal(world_get(world, "/api/v2/alerts", admin), 200);
    assert_body(world,
                "{\"labels\":{\"alertname\":\"NvidiaSmiDoubleEccError\",\"severity\":\"error\","
                "\"node_name\":\"n1\",\"minor_number\":\"0\"}");
    assert_body(world, "\"alertname\":\"NvidiaGpuLost\"");
    assert_body(world, "\"status\":{\"state\":\"active\",");
    assert_no_body(world, "NodeNotReady");
    assert_no_body(world, "PaiServicePodNotReady");
    world->is_degraded = true;
    assert_int_equal(world_get(world, "/api/v2/alerts", admin), 200);
    assert_body(world,
                "\"alertname\":\"PaiServicePodNotReady\",\"severity\":\"warn\",\"name\":\"store\"");
    world->refuse = ERR_UNAVAILABLE; /* one of the server's checks fails */
    assert_int_equal(world_get(world, "/api/v2/alerts", admin), 200);
    assert_body(
        world, "\"alertname\":\"PaiServicePodNotReady\",\"severity\":\"error\",\"name\":\"store\"");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_alerts, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
