/* Probes, metrics, what the server says of itself, and its nodes.
 *
 * Covers: src/api/cluster.c, src/api/routes.c */
#include "unit.h"
#include "world.h"

#include <time.h>

#include "base/memory.h"

static void test_health(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/healthz", NULL), 200);
    assert_int_equal(world_get(world, "/livez", NULL), 200);
    assert_int_equal(world_get(world, "/readyz?verbose", NULL), 200);
    assert_body(world, "[+] store ok");
    world->is_degraded = true; /* requests are welcome all the same */
    assert_int_equal(world_get(world, "/readyz?verbose", NULL), 200);
    assert_body(world, "[!] store degraded: of the test\nready\n");
    assert_int_equal(world_get(world, "/readyz", NULL), 200);
    assert_body(world, "[!] store degraded: of the test\nready\n");
    world->is_degraded = false;
    world->refuse = ERR_UNAVAILABLE;
    assert_int_equal(world_get(world, "/readyz", NULL), 503);
    world->refuse = 0;
    assert_int_equal(world_get(world, "/metrics", NULL), 200);
    assert_body(world, "skep_jobs{state=\"WAITING\"} 0");
    assert_body(world, "skep_test 1");
    assert_body(world, "skep_storage_threads 3\n");
    assert_int_equal(world_get(world, "/api/v1", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/info", NULL), 200);
    assert_body(world, "\"authnMethod\":\"basic\"");
    assert_body(world, "\"images\":[]");
    static const struct offered_image torch = {"PyTorch", "lab/torch:2", "of CUDA 12"};
    world->api.config.images = (struct offered_images){&torch, 1};
    assert_int_equal(world_get(world, "/api/v2/info", NULL), 200);
    assert_body(world, "\"images\":[{\"name\":\"PyTorch\",\"uri\":\"lab/torch:2\","
                       "\"about\":\"of CUDA 12\"}]");
    assert_body(world, "\"manualUrl\":null,\"feedbackUrl\":null}");
    world->api.config.manual_url = "https://wiki.test/";
    assert_int_equal(world_get(world, "/api/v2/info", NULL), 200);
    assert_body(world, "\"manualUrl\":\"https://wiki.test/\",\"feedbackUrl\":null}");
    assert_int_equal(world_get(world, "/api/v2/authn/info", NULL), 200);
    assert_int_equal(world_get(world, "/api/v3/jobs", NULL), 404);
    assert_body(world, "NoApiError");
    assert_int_equal(world_ask(world, HTTP_OPTIONS, "/api/v2/jobs", NULL, NULL, TEXT("")), 204);
    assert_int_equal(world_get(world, "/api/v2/nodes", world_login(world, "bob")), 200);
    assert_body(world, "\"name\":\"n1\"");
}

/* A node that refuses tasks is avoided for a while; afterwards nothing says so any more. */
static void test_avoided_node(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "refused", 1);
    assert_int_equal(world_get(world, "/api/v2/nodes", alice), 200);
    assert_body(world, "\"refusals\":0,\"avoidedUntil\":null");
    world_refuse(world, job, 0); /* in the world's own time, long ago */
    assert_int_equal(world_get(world, "/api/v2/nodes", alice), 200);
    assert_body(world, "\"refusals\":1,\"avoidedUntil\":null");
    world->now_ms = ((int64_t)time(NULL) + 3600) * 1000;
    job = world_submit(world, alice, "refused-now", 1);
    world_refuse(world, job, 0);
    assert_int_equal(world_get(world, "/api/v2/nodes", alice), 200);
    assert_body(world, "\"refusals\":2,\"avoidedUntil\":1");
}

static void test_gpus_of_a_node(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/api/v2/nodes", world_login(world, "alice")), 200);
    assert_body(world, "\"gpus\":[{\"index\":0,\"uuid\":\"GPU-0\",\"isLost\":false,"
                       "\"utilizationPercent\":70,\"memoryMB\":16384,\"memoryUsedMB\":3072,"
                       "\"eccErrors\":2,\"retiredPages\":1},{\"index\":1,\"uuid\":\"GPU-1\","
                       "\"isLost\":true,\"utilizationPercent\":null,\"memoryMB\":null,"
                       "\"memoryUsedMB\":null,\"eccErrors\":null,\"retiredPages\":null}]");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_health, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_gpus_of_a_node, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_avoided_node, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
