/* Virtual clusters, SKUs and what HiveD's clients inspect.
 *
 * Covers: src/api/inspect.c, src/api/cluster.c */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

static void test_virtual_clusters(void **state)
{
    struct world *plain = *state, *world = world_new_policy("hived");
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    struct job_id job = world_submit(world, alice, "gang", 2);
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters", alice), 200);
    assert_body(world, "\"default\":{\"dedicated\":false");
    assert_body(world, "\"resourcesTotal\":{\"cpu\":8,");
    assert_body(world, "\"skus\":{");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/default", alice), 200);
    assert_int_equal(world_get(world, "/api/v1/virtual-clusters/none", alice), 404);
    assert_body(world, "\"code\":\"NoVirtualClusterError\",\"error\":\"VirtualClusterNotFound\"");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/a%2Fb", alice), 400);
    /* no name, but what is configured is found whatever it is called */
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/no-name", alice), 400);
    assert_body(world, "InvalidParametersError");
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/virtual-clusters/no-name", admin, ""),
                     400);
    assert_body(world, "InvalidParametersError");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters?nodes", alice), 200);
    assert_body(world, "{\"n1\":{\"gpuUsed\":0,\"gpuAvailable\":4,\"gpuTotal\":4,"
                       "\"virtualCluster\":\"default\",\"jobs\":[{\"name\":\"alice~gang\","
                       "\"virtualCluster\":\"default\",\"taskCount\":2}]}}");
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types", alice), 200);
    assert_body(world, "\"gpu\":1");
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types?vc=default", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types?vc=", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types?vc=none", alice), 404);
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/default/sku-types", alice), 200);
    assert_body(world, "\"gpu\":1");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/none/sku-types", alice), 404);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/virtual-clusters/default", admin,
                                "{\"vcCapacity\":1}"),
                     400);
    assert_body(world, "NotImplementedError");
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/virtual-clusters/default", alice, ""),
                     403);

    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/", alice), 200);
    assert_body(world, "{\"items\":[");
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/none", alice), 400);
    assert_body(world, "\"hivedscheduler: User Error: there is no affinity group none\"");
    /* gangs' names have a slash */
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/alice~gang%2F0/", alice), 200);
    assert_body(world, "{\"metadata\":{\"name\":\"alice~gang/0\"}");
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/alice~gang/0", alice), 200);
    assert_body(world, "{\"metadata\":{\"name\":\"alice~gang/0\"}");
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/alice~gang/9", alice), 400);
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus", alice), 200);
    assert_body(world, "\"physicalCluster\"");
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/physicalcluster", alice), 200);
    assert_body(world, "\"cellState\":\"Used\"");
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/virtualclusters/", alice), 200);
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/virtualclusters/default", alice),
                     200);
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/virtualclusters/none", alice),
                     400);
    assert_int_equal(world_get(world, "/v1/inspect", alice), 200);
    /* errors of all kinds as its clients know them */
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus", NULL), 401);
    assert_body(world, "\"hivedscheduler: User Error: log in first");
    assert_int_equal(world_get(world, "/v1/inspect/nothing", alice), 404);
    assert_body(world, "\"hivedscheduler: User Error: no such path: /v1/inspect/nothing\"");
    assert_int_equal(world_send(world, HTTP_POST, "/v1/inspect/clusterstatus", alice, ""), 400);
    assert_body(world, "\"hivedscheduler: User Error: NotImplemented\"");
    world_free(world);

    /* another policy: all nodes are one virtual cluster */
    alice = world_login(plain, "alice");
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters/default", alice), 200);
    assert_body(plain, "\"resourcesTotal\":{\"cpu\":8,\"memory\":16384,\"gpu\":4");
    assert_body(plain, "\"resourcesGuaranteed\":{\"cpu\":8,\"memory\":16384,\"gpu\":4");
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters/none", alice), 404);
    assert_int_equal(world_get(plain, "/api/v2/cluster/sku-types", alice), 200);
    assert_string_equal(buf_cstr(&plain->body), "{}");
    assert_int_equal(world_get(plain, "/v1/inspect/clusterstatus", alice), 400);
    world_run(plain, world_submit(plain, alice, "pair", 2));
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters", alice), 200);
    assert_body(plain, "\"resourcesUsed\":{\"cpu\":2,\"memory\":200,\"gpu\":0");
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters?nodes", alice), 200);
    assert_body(plain, "{\"n1\":{\"gpuUsed\":0,\"gpuAvailable\":4,\"gpuTotal\":4,"
                       "\"jobs\":[{\"name\":\"alice~pair\",\"virtualCluster\":\"default\","
                       "\"taskCount\":2}]}}");
    world_run(plain, world_submit(plain, alice, "solo", 1));
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters?nodes&cursor=", alice), 200);
    assert_body(plain, "\"jobs\":[{\"name\":\"alice~pair\",\"virtualCluster\":\"default\","
                       "\"taskCount\":2},{\"name\":\"alice~solo\","
                       "\"virtualCluster\":\"default\",\"taskCount\":1}]");
}

/* What nothing is known of is left out; thousandths are cores. */
static void test_use_of_nodes(void **state)
{
    struct world *plain = *state;
    assert_int_equal(world_get(plain, "/api/v2/nodes", world_login(plain, "alice")), 200);
    assert_body(plain, "\"use\":{\"cpu\":0.5,\"memory\":501,\"read\":502,\"written\":503}}");
}

/* A copy of the cluster is a little older than the jobs that the store knows. */
static void test_job_deleted_since(void **state)
{
    struct world *plain = *state;
    const char *alice = world_login(plain, "alice");
    struct job_id pair = world_submit(plain, alice, "pair", 2);
    world_run(plain, pair);
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters?nodes", alice), 200);
    assert_body(plain, "\"jobs\":[{\"name\":\"alice~pair\"");
    struct record gone = {.kind = RECORD_JOB_DELETED, .deleted = pair};
    struct output output = {.records = {&gone, 1, 1}};
    struct store_batch batch = {.output = &output};
    struct err err;
    assert_int_equal(store_commit(plain->store, &batch, &err), 0);
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters?nodes", alice), 200);
    assert_body(plain, "\"jobs\":[]");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_virtual_clusters, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_use_of_nodes, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_job_deleted_since, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
