/* What HiveD's clients see: the original's shape, downgrades, pods that preempt. */
#include "gangs.h"
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/buf.h"

static void inspect_has_the_original_shape(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, SMALL);
    world_ask(&world, (struct ask){.group = "g", .vc = "x", .pods = 1, .leaves = 1, .priority = 3});
    world_ask(&world,
              (struct ask){.group = "o", .vc = "y", .pods = 1, .leaves = 1, .priority = -1});
    assert_string_equal(
        world_inspect_named(&world, hived_inspect_group, "g"),
        "{\"metadata\":{\"name\":\"g\"},\"status\":{\"vc\":\"x\",\"priority\":3,\"state\":"
        "\"Allocated\",\"physicalPlacement\":{\"a\":[0]},\"virtualPlacement\":{\"x/0\":[\"x/0/0\"]}"
        ",\"allocatedPods\":[\"g/0\"]}}");
    const char *groups = world_inspect(&world, hived_inspect_groups);
    assert_non_null(strstr(groups, "{\"items\":[{\"metadata\":{\"name\":\"g\"}"));
    assert_string_equal(
        world_inspect_named(&world, hived_inspect_vc, "x"),
        "[{\"leafCellType\":\"G\",\"cellType\":\"N\",\"isNodeLevel\":true,\"cellAddress\":\"x/0\","
        "\"cellState\":\"Used\",\"cellHealthiness\":\"Healthy\",\"cellPriority\":3,"
        "\"cellChildren\":[{\"cellType\":\"G\",\"cellAddress\":\"x/0/0\",\"cellState\":\"Used\","
        "\"cellHealthiness\":\"Healthy\",\"cellPriority\":3,\"physicalCell\":{\"cellType\":\"G\","
        "\"cellAddress\":\"a/0\",\"cellState\":\"Used\",\"cellHealthiness\":\"Healthy\","
        "\"cellPriority\":3}},{\"cellType\":\"G\",\"cellAddress\":\"x/0/1\",\"cellState\":\"Free\","
        "\"cellHealthiness\":\"Healthy\",\"cellPriority\":-2}],\"physicalCell\":{\"cellType\":"
        "\"N\",\"isNodeLevel\":true,\"cellAddress\":\"a\",\"cellState\":\"Used\","
        "\"cellHealthiness\":\"Healthy\",\"cellPriority\":3}}]");
    assert_string_equal(
        world_inspect_named(&world, hived_inspect_vc, "y"),
        "[{\"leafCellType\":\"G\",\"cellType\":\"G\",\"cellAddress\":\"b/0-opp\",\"cellState\":"
        "\"Used\",\"cellHealthiness\":\"Healthy\",\"cellPriority\":-1,\"physicalCell\":{"
        "\"cellType\":\"G\",\"cellAddress\":\"b/0\",\"cellState\":\"Used\",\"cellHealthiness\":"
        "\"Healthy\",\"cellPriority\":-1}}]");
    const char *all = world_inspect(&world, hived_inspect_cluster);
    assert_non_null(strstr(all, "{\"physicalCluster\":[{\"leafCellType\":\"G\""));
    assert_non_null(strstr(all, "\"virtualClusters\":{\"x\":["));
    assert_non_null(strstr(all,
                           "\"cellAddress\":\"b/0\",\"cellState\":\"Used\",\"cellHealthiness\":"
                           "\"Healthy\",\"cellPriority\":-1,\"vc\":\"y\",\"virtualCell\":{"));
    assert_non_null(world_inspect(&world, hived_inspect_physical));
    assert_non_null(world_inspect(&world, hived_inspect_vcs));
    assert_null(world_inspect_named(&world, hived_inspect_group, "ghost"));
    assert_null(world_inspect_named(&world, hived_inspect_vc, "z"));
    hived_group_end(world.hived, "g");
    world_ask(&world, (struct ask){.group = "g", .vc = "x", .pods = 1, .leaves = 2, .priority = 3});
    const char *pair = world_inspect_named(&world, hived_inspect_group, "g");
    assert_non_null(strstr(pair, "\"physicalPlacement\":{\"a\":[0,1]},"
                                 "\"virtualPlacement\":{\"x/0\":[\"x/0/0\",\"x/0/1\"]}"));
    world_release(&world);
}

static void downgrade_is_told_with_its_time(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    world_ask(&world,
              (struct ask){.group = "lazy", .vc = "red", .pods = 3, .leaves = 8, .is_lazy = true});
    world_ask(&world, (struct ask){.group = "high",
                                   .vc = "red",
                                   .pods = 1,
                                   .leaves = 8,
                                   .priority = 5,
                                   .now_ms = 951782400000});
    const char *text = world_inspect_named(&world, hived_inspect_group, "lazy");
    assert_non_null(strstr(text, "\"lazyPreemptionStatus\":{\"preemptor\":\"high\","
                                 "\"preemptionTime\":\"2000-02-29T00:00:00Z\"}"));
    world_release(&world);
}

static void preempting_pods_are_told(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, SMALL);
    world_ask(&world, (struct ask){.group = "low", .vc = "x", .pods = 1, .leaves = 2});
    assert_int_equal(
        world_ask(&world,
                  (struct ask){.group = "high", .vc = "x", .pods = 1, .leaves = 1, .priority = 1})
            .kind,
        HIVED_PREEMPT);
    const char *text = world_inspect_named(&world, hived_inspect_group, "high");
    assert_non_null(strstr(text, "\"state\":\"Preempting\""));
    assert_non_null(strstr(text, "\"preemptingPods\":[\"high\"]"));
    text = world_inspect_named(&world, hived_inspect_group, "low");
    assert_non_null(strstr(text, "\"state\":\"BeingPreempted\""));
    /* a pod of the victim that comes again has to wait, and is told for whom */
    struct hived_result result =
        world_ask(&world, (struct ask){.group = "low", .vc = "x", .pods = 1, .leaves = 2});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, "is being preempted by high"));
    /* the placement turned bad: another is looked for */
    hived_node_set(world.hived, "a", false);
    result = world_ask(
        &world, (struct ask){.group = "high", .vc = "x", .pods = 1, .leaves = 1, .priority = 1});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, "node a, which is bad"));
    hived_pod_cancel(world.hived, "high", "nobody", UINT32_MAX);
    hived_pod_cancel(world.hived, "ghost", "nobody", UINT32_MAX);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(inspect_has_the_original_shape),
    cmocka_unit_test(downgrade_is_told_with_its_time),
    cmocka_unit_test(preempting_pods_are_told),
};
UNIT_FILE(tests, NULL, NULL);
