/* Nodes and tasks as Kubernetes would show them. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

#define API "/api/v1/kubernetes/api/v1"

static void test_nodes(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/kubernetes/nodes", admin), 200);
    assert_body(world, "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{"
                       "\"metadata\":{\"name\":\"n1\"");
    assert_body(world,
                "\"capacity\":{\"cpu\":\"8\",\"memory\":\"16384Mi\",\"nvidia.com/gpu\":\"4\"}");
    assert_body(world, "\"type\":\"Ready\",\"status\":\"True\"");
    assert_int_equal(world_get(world, API "/nodes/n1", admin), 200);
    assert_body(world, "\"spec\":{\"unschedulable\":false}");
    assert_int_equal(world_get(world, API "/nodes/n2", admin), 404);
}

static void test_pods(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    struct job_id first = world_submit(world, alice, "first", 2);
    world_run(world, first);
    struct job_id second = world_submit(world, alice, "second", 1);
    world_submit(world, alice, "waits", 60); /* without a place: no pod */
    assert_int_equal(world_get(world, "/api/v2/kubernetes/pods", admin), 200);
    assert_body(world, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{"
                       "\"metadata\":{\"name\":\"skep-1\",\"namespace\":\"default\"");
    assert_body(world, "\"jobName\":\"first\"");
    assert_body(world, "\"phase\":\"Running\",\"hostIP\":\"10.0.0.1\"");
    assert_body(world, "\"name\":\"skep-3\"");
    assert_body(world, "\"limits\":{\"cpu\":\"1\",");
    assert_no_body(world, "skep-4");
    assert_no_body(world, "waits");
    /* pages end with a whole job */
    assert_int_equal(world_get(world, "/api/v2/kubernetes/pods?limit=1", admin), 200);
    assert_body(world, "\"metadata\":{\"continue\":\"1\"}");
    assert_body(world, "skep-2");
    assert_no_body(world, "skep-3");
    assert_int_equal(world_get(world, "/api/v2/kubernetes/pods?limit=1&continue=1", admin), 200);
    assert_no_body(world, "skep-2");
    assert_body(world, "skep-3");
    assert_int_equal(world_get(world, "/api/v2/kubernetes/pods?namespace=kube-system", admin), 200);
    assert_body(world, "\"items\":[]");
    assert_int_equal(
        world_get(world, "/api/v2/kubernetes/pods?fieldSelector=spec.nodeName%3Dn1", admin), 200);
    assert_body(world, "skep-1");
    assert_int_equal(
        world_get(world, "/api/v2/kubernetes/pods?fieldSelector=spec.nodeName%3Dn", admin), 200);
    assert_body(world, "\"items\":[]");
    assert_int_equal(
        world_get(world, "/api/v2/kubernetes/pods?fieldSelector=status.phase%3DRunning", admin),
        400);
    assert_body(world, "fieldSelector must be spec.nodeName=NODE");
    assert_int_equal(world_get(world, API "/namespaces/default/pods", admin), 200);
    assert_body(world, "skep-1");
    assert_int_equal(world_get(world, API "/namespaces/default/pods/skep-2", admin), 200);
    assert_body(world, "{\"metadata\":{\"name\":\"skep-2\"");
    assert_no_body(world, "skep-1");
    assert_int_equal(world_get(world, API "/namespaces/default/pods/skep-9", admin), 404);
    assert_int_equal(world_get(world, API "/namespaces/other/pods/skep-2", admin), 404);
    world_exit(world, second, 0, 0);
    assert_int_equal(world_get(world, API "/pods", admin), 200);
    assert_no_body(world, "skep-3");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_nodes, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_pods, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
