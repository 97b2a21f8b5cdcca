/* Probes, metrics, what the server says of itself, and its nodes.
 *
 * Covers: src/api/cluster.c, src/api/routes.c */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

static void test_health(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/healthz", NULL), 200);
    assert_int_equal(world_get(world, "/livez", NULL), 200);
    assert_int_equal(world_get(world, "/readyz?verbose", NULL), 200);
    assert_body(world, "[+] store ok");
    world->refuse = ERR_UNAVAILABLE;
    assert_int_equal(world_get(world, "/readyz", NULL), 503);
    world->refuse = 0;
    assert_int_equal(world_get(world, "/metrics", NULL), 200);
    assert_body(world, "skep_jobs{state=\"WAITING\"} 0");
    assert_body(world, "skep_test 1");
    assert_int_equal(world_get(world, "/api/v1", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/info", NULL), 200);
    assert_body(world, "\"authnMethod\":\"basic\"");
    assert_int_equal(world_get(world, "/api/v2/authn/info", NULL), 200);
    assert_int_equal(world_get(world, "/api/v3/jobs", NULL), 404);
    assert_body(world, "NoApiError");
    assert_int_equal(world_ask(world, HTTP_OPTIONS, "/api/v2/jobs", NULL, NULL, TEXT("")), 204);
    assert_int_equal(world_get(world, "/api/v2/nodes", world_login(world, "bob")), 200);
    assert_body(world, "\"name\":\"n1\"");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_health, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
