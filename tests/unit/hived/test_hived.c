/* test_hived.c — behaviour, case by case. */
#include "base/buf.h"
#include "world.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CLUSTER                                                                                    \
    "physicalCluster:\n"                                                                           \
    "  cellTypes:\n"                                                                               \
    "    PAIR: {childCellType: G, childCellNumber: 2}\n"                                           \
    "    QUAD: {childCellType: PAIR, childCellNumber: 2}\n"                                        \
    "    BOX: {childCellType: QUAD, childCellNumber: 2, isNodeLevel: true}\n"                      \
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"                                          \
    "    ROW: {childCellType: DUO, childCellNumber: 2}\n"                                          \
    "  physicalCells:\n"                                                                           \
    "  - cellType: ROW\n"                                                                          \
    "    cellChildren:\n"                                                                          \
    "    - {cellChildren: [{cellAddress: a0}, {cellAddress: a1}], pinnedCellId: pin}\n"            \
    "    - {cellChildren: [{cellAddress: a2}, {cellAddress: a3}]}\n"                               \
    "  - cellType: ROW\n"                                                                          \
    "    cellChildren:\n"                                                                          \
    "    - {cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}\n"                               \
    "    - {cellChildren: [{cellAddress: b2}, {cellAddress: b3}]}\n"

#define TWO_VCS                                                                                    \
    CLUSTER "virtualClusters:\n"                                                                   \
            "  red: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 3}]}\n"                    \
            "  blue: {virtualCells: [{cellType: ROW.DUO, cellNumber: 1}, {cellType: "              \
            "ROW.DUO.BOX, cellNumber: 2}]}\n"

/* With 5 and 6 leaves free, 3 + 3 + 5 fits, though the greedy pass misses it. */
static void mixed_gang_is_found(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    world_ask(&world, (struct ask){.group = "full", .vc = "red", .pods = 1, .leaves = 8});
    world_ask(&world, (struct ask){.group = "three", .vc = "red", .pods = 1, .leaves = 3});
    /* two leaves of another node: only a gang that cannot share the node gets there */
    struct hived_result result =
        world_ask(&world, (struct ask){.group = "six", .vc = "red", .pods = 1, .leaves = 6});
    assert_int_equal(result.kind, HIVED_BIND);
    hived_group_end(world.hived, "six");
    result = world_ask(&world, (struct ask){.group = "two", .vc = "red", .pods = 1, .leaves = 6});
    world_ask(&world, (struct ask){.group = "fill", .vc = "red", .pods = 1, .leaves = 2});
    hived_group_end(world.hived, "two");
    /* free now: 5 or 3 beside `three` and the rest of the third node */
    result = world_ask(
        &world,
        (struct ask){
            .group = "mix", .vc = "red", .pods = 2, .leaves = 3, .more_pods = 1, .more_leaves = 5});
    assert_int_equal(result.kind, HIVED_BIND);
    world_release(&world);
}

static void waits_say_why(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    world_ask(&world, (struct ask){.group = "big", .vc = "red", .pods = 2, .leaves = 8});
    struct hived_result result =
        world_ask(&world, (struct ask){.group = "late", .vc = "red", .pods = 2, .leaves = 8});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_false(result.is_never);
    assert_non_null(strstr(result.reason, "it needs 2 x 8 G"));
    assert_non_null(strstr(result.reason, "8 of 24 leaves are free"));
    assert_non_null(strstr(result.reason, "held by big (16)"));
    assert_null(strstr(result.reason, "was cut")); /* nothing is said that is not so */
    assert_null(strstr(result.reason, "it would have to use node"));
    result = world_ask(&world, (struct ask){.group = "huge", .vc = "red", .pods = 1, .leaves = 16});
    assert_true(result.is_never);
    world_release(&world);
}

static void gang_stays_within_one_cell(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, CLUSTER "virtualClusters:\n"
                               "  red: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 2}, "
                               "{cellType: ROW.DUO, cellNumber: 1}]}\n");
    world_ask(&world, (struct ask){.group = "one", .vc = "red", .pods = 1, .leaves = 8});
    struct hived_result result = world_ask(
        &world,
        (struct ask){.group = "pair", .vc = "red", .pods = 2, .leaves = 8, .within = "DUO"});
    assert_int_equal(result.kind, HIVED_BIND);
    const char *first = result.placement.slots[0].node, *second = result.placement.slots[1].node;
    assert_int_equal(first[0], second[0]);
    assert_int_equal((first[1] - '0') / 2, (second[1] - '0') / 2);
    result = world_ask(
        &world,
        (struct ask){.group = "again", .vc = "red", .pods = 2, .leaves = 8, .within = "DUO"});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, "2 x 8 G, all within one DUO, for red"));
    assert_false(result.is_never);
    result = world_ask(
        &world, (struct ask){.group = "row", .vc = "red", .pods = 2, .leaves = 2, .within = "ROW"});
    assert_int_equal(result.kind, HIVED_WAIT); /* it owns none */
    assert_true(result.is_never);
    result = world_ask(
        &world,
        (struct ask){.group = "quad", .vc = "red", .pods = 2, .leaves = 2, .within = "QUAD"});
    assert_int_equal(result.kind, HIVED_BIND);
    assert_string_equal(result.placement.slots[0].node, result.placement.slots[1].node);
    assert_int_equal(result.placement.slots[0].indices[0] / 4,
                     result.placement.slots[1].indices[1] / 4);
    world_release(&world);
}

/* A look in the filtering phase must not cost a lazy group its guarantee. */
static void looking_downgrades_nobody(void **state)
{
    (void)state;
    struct world world;
    struct hived_group_view view;
    world_init(&world, CLUSTER "virtualClusters:\n"
                               "  red: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 1}]}\n");
    world_ask(&world,
              (struct ask){.group = "lazy", .vc = "red", .pods = 1, .leaves = 8, .is_lazy = true});
    world_ask(&world,
              (struct ask){.group = "oppo", .vc = "red", .priority = -1, .pods = 7, .leaves = 8});
    struct ask high = {
        .group = "high", .vc = "red", .priority = 5, .pods = 1, .leaves = 8, .is_filtering = true};
    assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
    assert_true(hived_group_find(world.hived, "lazy", &view));
    assert_true(view.has_virtual);
    high.is_filtering = false;
    assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
    assert_true(hived_group_find(world.hived, "lazy", &view));
    assert_false(view.has_virtual);
    assert_string_equal(view.preemptor, "high");
    world_release(&world);
}

/* A decision that is not taken changes nothing. */
static void decision_is_forgotten(void **state)
{
    (void)state;
    struct world world;
    struct hived_group_view view;
    world_init(&world, TWO_VCS);
    world_ask(&world,
              (struct ask){.group = "lazy", .vc = "red", .pods = 3, .leaves = 8, .is_lazy = true});
    struct ask high = {.group = "high",
                       .vc = "red",
                       .priority = 5,
                       .pods = 1,
                       .leaves = 8,
                       .is_not_committed = true};
    assert_int_equal(world_ask(&world, high).kind, HIVED_BIND);
    assert_true(hived_group_find(world.hived, "lazy", &view));
    assert_true(view.has_virtual);
    high.is_not_committed = false;
    assert_int_equal(world_ask(&world, high).kind, HIVED_BIND);
    assert_true(hived_group_find(world.hived, "lazy", &view));
    assert_false(view.has_virtual);
    world_release(&world);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    const struct ask asks[] = {
        {.group = "g", .vc = "green", .pods = 1, .leaves = 1},
        {.group = "g", .vc = "", .pods = 1, .leaves = 1},
        {.group = "", .vc = "red", .pods = 1, .leaves = 1},
        {.group = "g", .vc = "red", .pods = 0, .leaves = 1},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 0},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .priority = 1001},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .priority = -2},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .type = "X"},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .pin = "pin"},
        {.group = "g", .vc = "red", .pods = 200000, .leaves = 1},
    };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        assert_int_equal(world_refuse(&world, asks[i]), ERR_INVALID);
    world_release(&world);
}

static const char *inspect(struct world *world, const char *path, enum hived_answer wanted)
{
    struct buf out = BUF_INIT;
    assert_int_equal(hived_inspect(world->hived, text_of(path), &out), wanted);
    const char *text = arena_copy(&world->arena, buf_as_text(&out));
    buf_release(&out);
    return text;
}

#define SMALL                                                                                      \
    "physicalCluster:\n"                                                                           \
    "  cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}}\n"                \
    "  physicalCells: [{cellType: N, cellAddress: b}, {cellType: N, cellAddress: a}]\n"            \
    "virtualClusters: {x: {virtualCells: [{cellType: N, cellNumber: 1}]}, y: {}}\n"

static void inspect_has_the_original_shape(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, SMALL);
    world_ask(&world, (struct ask){.group = "g", .vc = "x", .pods = 1, .leaves = 1, .priority = 3});
    world_ask(&world,
              (struct ask){.group = "o", .vc = "y", .pods = 1, .leaves = 1, .priority = -1});
    assert_string_equal(
        inspect(&world, "/v1/inspect/affinitygroups/g", HIVED_ANSWER_OK),
        "{\"metadata\":{\"name\":\"g\"},\"status\":{\"vc\":\"x\",\"priority\":3,\"state\":"
        "\"Allocated\",\"physicalPlacement\":{\"a\":[0]},\"virtualPlacement\":{\"x/0\":[\"x/0/0\"]}"
        ",\"allocatedPods\":[\"g/0\"]}}");
    const char *groups = inspect(&world, "/v1/inspect/affinitygroups/", HIVED_ANSWER_OK);
    assert_non_null(strstr(groups, "{\"items\":[{\"metadata\":{\"name\":\"g\"}"));
    assert_string_equal(
        inspect(&world, "/v1/inspect/clusterstatus/virtualclusters/x", HIVED_ANSWER_OK),
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
        inspect(&world, "/v1/inspect/clusterstatus/virtualclusters/y", HIVED_ANSWER_OK),
        "[{\"leafCellType\":\"G\",\"cellType\":\"G\",\"cellAddress\":\"b/0-opp\",\"cellState\":"
        "\"Used\",\"cellHealthiness\":\"Healthy\",\"cellPriority\":-1,\"physicalCell\":{"
        "\"cellType\":\"G\",\"cellAddress\":\"b/0\",\"cellState\":\"Used\",\"cellHealthiness\":"
        "\"Healthy\",\"cellPriority\":-1}}]");
    const char *all = inspect(&world, "/v1/inspect/clusterstatus", HIVED_ANSWER_OK);
    assert_non_null(strstr(all, "{\"physicalCluster\":[{\"leafCellType\":\"G\""));
    assert_non_null(strstr(all, "\"virtualClusters\":{\"x\":["));
    assert_non_null(strstr(all,
                           "\"cellAddress\":\"b/0\",\"cellState\":\"Used\",\"cellHealthiness\":"
                           "\"Healthy\",\"cellPriority\":-1,\"vc\":\"y\",\"virtualCell\":{"));
    inspect(&world, "/v1/inspect/clusterstatus/physicalcluster", HIVED_ANSWER_OK);
    inspect(&world, "/v1/inspect/clusterstatus/virtualclusters/", HIVED_ANSWER_OK);
    assert_string_equal(inspect(&world, "/v1/inspect/affinitygroups/ghost", HIVED_ANSWER_UNKNOWN),
                        "\"hivedscheduler: User Error: affinity group ghost does not exist\"");
    inspect(&world, "/v1/inspect/clusterstatus/virtualclusters/z", HIVED_ANSWER_UNKNOWN);
    inspect(&world, "/v1/other", HIVED_ANSWER_NO_PATH);
    hived_group_end(world.hived, "g");
    world_ask(&world, (struct ask){.group = "g", .vc = "x", .pods = 1, .leaves = 2, .priority = 3});
    const char *pair = inspect(&world, "/v1/inspect/affinitygroups/g", HIVED_ANSWER_OK);
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
    const char *text = inspect(&world, "/v1/inspect/affinitygroups/lazy", HIVED_ANSWER_OK);
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
    const char *text = inspect(&world, "/v1/inspect/affinitygroups/high", HIVED_ANSWER_OK);
    assert_non_null(strstr(text, "\"state\":\"Preempting\""));
    assert_non_null(strstr(text, "\"preemptingPods\":[\"high\"]"));
    text = inspect(&world, "/v1/inspect/affinitygroups/low", HIVED_ANSWER_OK);
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
    hived_pod_cancel(world.hived, "high", "nobody");
    hived_pod_cancel(world.hived, "ghost", "nobody");
    world_release(&world);
}

/* A node that this request may not use is no bad node: the reason says which of both it is, also of
 * opportunistic use. */
static void a_node_that_may_not_be_used_is_not_called_bad(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, SMALL);
    world_ask(&world,
              (struct ask){.group = "o", .vc = "y", .pods = 1, .leaves = 2, .priority = -1});
    const char *node;
    uint16_t some;
    hived_group_slot(world.hived, "o", 0, &node, &some, 1);
    const char *rest[] = {node};
    struct hived_scope used = {rest, 1, false};
    struct hived_result result = world_ask(
        &world,
        (struct ask){
            .group = "p", .vc = "y", .pods = 1, .leaves = 2, .priority = -1, .scope = &used});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, "which may not be used"));
    assert_null(strstr(result.reason, "is bad"));
    hived_node_set(world.hived, strcmp(node, "a") == 0 ? "b" : "a", false);
    result = world_ask(
        &world, (struct ask){.group = "p", .vc = "y", .pods = 1, .leaves = 2, .priority = -1});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, ", which is bad"));
    world_release(&world);
}

/* A gang is to be preempted of which one pod's devices have left the configuration: that pod is on
 * no node, and the other one on its own. */
static void a_victim_without_devices_is_on_no_node(void **state)
{
    (void)state;
    static const uint16_t first[] = {0};
    struct world world;
    world_init(&world, SMALL);
    struct hived_member members[] = {{.pods = 2, .leaves = 1}};
    struct hived_request request = {
        .group = "low", .virtual_cluster = "x", .members = members, .member_count = 1, .leaves = 1};
    struct hived_slot slots[] = {{.node = "gone", .leaf_count = 1, .indices = first},
                                 {.node = "a", .leaf_count = 1, .indices = first}};
    struct hived_placement placement = {.slots = slots, .slot_count = 2, .chain = "N"};
    struct err err = {0};
    if (hived_commit_gang(world.hived, &request, &placement, 0, &err))
        fail_msg("%s: %s", err.path, err.text);
    struct hived_result result = world_ask(
        &world, (struct ask){.group = "high", .vc = "x", .pods = 1, .leaves = 2, .priority = 1});
    assert_int_equal(result.kind, HIVED_PREEMPT);
    assert_int_equal(result.victim_count, 2);
    assert_string_equal(result.victims[0].node, "");
    assert_string_equal(result.victims[1].node, "a");
    world_release(&world);
}

static void quotas_are_counted(void **state)
{
    (void)state;
    struct world world;
    uint32_t count;
    world_init(&world, TWO_VCS);
    world_ask(&world, (struct ask){.group = "g", .vc = "red", .pods = 2, .leaves = 5});
    world_ask(&world,
              (struct ask){.group = "o", .vc = "red", .pods = 1, .leaves = 3, .priority = -1});
    struct hived_quota *quota = hived_vc_quota(world.hived, 0, &world.arena, &count);
    assert_int_equal(count, 1);
    assert_string_equal(hived_vc_name(world.hived, 0), "red");
    assert_int_equal(hived_vc_count(world.hived), 2);
    assert_int_equal(quota->total, 24);
    assert_int_equal(quota->used, 10);
    assert_int_equal(quota->oppo, 3);
    assert_int_equal(quota->bad, 0);
    const char *node;
    uint16_t some;
    hived_group_slot(world.hived, "g", 0, &node, &some, 1);
    hived_node_set(world.hived, node, false);
    quota = hived_vc_quota(world.hived, 0, &world.arena, &count);
    assert_int_equal(quota->bad, 8);
    world_release(&world);
}

static void reconfigure(struct world *world, const char *yaml)
{
    struct err err;
    hived_reconfigure(world->hived, world_config_good(&world->arena, yaml, ""));
    for (uint32_t i = 0; i < hived_node_count(world->hived); i++)
        hived_node_set(world->hived, hived_node_name(world->hived, i), true);
    if (hived_check(world->hived, &err))
        fail_msg("%s", err.text);
}

static bool is_guaranteed(struct world *world, const char *group)
{
    struct hived_group_view view;
    assert_true(hived_group_find(world->hived, group, &view));
    return view.has_virtual;
}

static void quotas_change_under_running_gangs(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    world_ask(&world, (struct ask){.group = "one", .vc = "red", .pods = 1, .leaves = 8});
    world_ask(&world, (struct ask){.group = "two", .vc = "red", .pods = 1, .leaves = 8});
    world_ask(&world, (struct ask){.group = "blue", .vc = "blue", .pods = 1, .leaves = 8});
    world_ask(&world,
              (struct ask){.group = "oppo", .vc = "blue", .pods = 1, .leaves = 8, .priority = -1});
    reconfigure(&world, TWO_VCS);
    assert_true(is_guaranteed(&world, "one") && is_guaranteed(&world, "two"));
    assert_true(is_guaranteed(&world, "blue"));
    assert_false(is_guaranteed(&world, "oppo"));
    /* red has one node left: the one who came first keeps its guarantee */
    reconfigure(&world, CLUSTER "virtualClusters:\n"
                                "  red: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 1}]}\n"
                                "  blue: {virtualCells: [{cellType: ROW.DUO, cellNumber: 1}]}\n");
    assert_true(is_guaranteed(&world, "one"));
    assert_false(is_guaranteed(&world, "two"));
    /* blue is gone, and so is half of the cluster */
    reconfigure(&world,
                "physicalCluster:\n"
                "  cellTypes: {BOX: {childCellType: G, childCellNumber: 8, isNodeLevel: "
                "true}}\n"
                "  physicalCells: [{cellType: BOX, cellAddress: a0}]\n"
                "virtualClusters: {red: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n");
    assert_false(is_guaranteed(&world, "blue"));
    reconfigure(&world, TWO_VCS); /* and all is as before */
    assert_true(is_guaranteed(&world, "one") && is_guaranteed(&world, "two"));
    assert_true(is_guaranteed(&world, "blue"));
    struct hived_result result =
        world_ask(&world, (struct ask){.group = "more", .vc = "red", .pods = 2, .leaves = 8});
    assert_int_equal(result.kind, HIVED_WAIT);
    world_release(&world);
}

static void pinned_cells_are_kept(void **state)
{
    (void)state;
    const char *pinned =
        CLUSTER "virtualClusters:\n"
                "  red: {pinnedCells: [{pinnedCellId: pin}]}\n"
                "  blue: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 2}]}\n";
    struct world world;
    world_init(&world, pinned);
    struct ask ask = {.group = "g", .vc = "red", .pods = 2, .leaves = 8, .pin = "pin"};
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    reconfigure(&world, pinned);
    assert_true(is_guaranteed(&world, "g"));
    ask.group = "h";
    assert_int_equal(world_ask(&world, ask).kind, HIVED_WAIT);
    assert_int_equal(
        world_refuse(&world,
                     (struct ask){.group = "x", .vc = "red", .pods = 1, .leaves = 1, .type = "G"}),
        ERR_INVALID);
    struct hived_result result =
        world_ask(&world, (struct ask){.group = "x", .vc = "red", .pods = 1, .leaves = 1});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, "owns none outside its pinned cells"));
    assert_int_equal(
        world_refuse(
            &world,
            (struct ask){
                .group = "x", .vc = "red", .pods = 1, .leaves = 1, .pin = "pin", .priority = -1}),
        ERR_INVALID);
    reconfigure(&world, TWO_VCS); /* the pin is gone: opportunistic in place */
    assert_false(is_guaranteed(&world, "g"));
    world_release(&world);
}

/* Pods bound one by one: each gets a slot of its size, one too many is an error. */
static void pods_are_bound_one_by_one(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    struct hived_member members[] = {{.pods = 2, .leaves = 2}, {.pods = 1, .leaves = 4}};
    struct hived_request request = {
        .group = "g", .virtual_cluster = "red", .members = members, .member_count = 2, .leaves = 4};
    struct hived_result result;
    struct err err;
    const char *const pods[] = {"p0", "p1", "p2"};
    struct hived_ask ask = {.request = &request};
    for (int i = 0; i < 3; i++) {
        ask.pod = pods[i];
        request.leaves = i == 0 ? 4 : 2;
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_BIND);
        assert_int_equal(result.placement.slots[result.slot].leaf_count, request.leaves);
        assert_int_equal(hived_commit(world.hived, &ask, &result.placement, result.slot, &err), 0);
    }
    ask.pod = "p3";
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), ERR_INVALID);
    assert_int_equal(hived_commit(world.hived, &ask, &result.placement, 99, &err), ERR_INVALID);
    assert_false(hived_pod_end_named(world.hived, "g", "p9"));
    assert_true(hived_pod_end_named(world.hived, "g", "p1"));
    ask.pod = "p4";
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.kind, HIVED_BIND);
    assert_true(hived_pod_end(world.hived, "g", 0) || hived_pod_end(world.hived, "g", 1));
    assert_false(hived_pod_end(world.hived, "g", 7));
    assert_true(hived_pod_end_named(world.hived, "g", "p0"));
    struct hived_group_view view;
    assert_false(hived_group_find(world.hived, "g", &view));
    world_release(&world);
}

/* Without the recorded types (the core's rows have none) a gang still gets its guarantee back. */
static void placements_without_types_are_recovered(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    const uint16_t indices[] = {0, 1, 2, 3};
    struct hived_slot slots[] = {{.node = "b2", .leaf_count = 4, .indices = indices},
                                 {.node = "ghost", .leaf_count = 4, .indices = indices}};
    struct hived_placement placement = {.chain = "", .slots = slots, .slot_count = 2};
    struct hived_member member = {.pods = 2, .leaves = 4};
    struct hived_request request = {
        .group = "g", .virtual_cluster = "blue", .members = &member, .member_count = 1};
    struct err err = {0};
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    assert_true(is_guaranteed(&world, "g"));
    const char *node;
    uint16_t some[4];
    assert_int_equal(hived_group_slot(world.hived, "g", 0, &node, some, 4), 4);
    assert_int_equal(hived_group_slot(world.hived, "g", 1, &node, some, 4), 0);
    assert_null(node);
    /* two gangs said to be on one device: the first keeps it, the second has the rest */
    request.group = "h";
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    assert_false(is_guaranteed(&world, "h"));
    hived_group_end(world.hived, "h");
    world_release(&world);
}

static void suggested_nodes_bound_the_search(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    const char *nodes[] = {"b3", "a1"};
    struct hived_scope only = {.nodes = nodes, .count = 2},
                       avoid = {.nodes = nodes, .count = 1, .is_avoid = true};
    struct hived_result result = world_ask(
        &world, (struct ask){.group = "g", .vc = "red", .pods = 2, .leaves = 8, .scope = &only});
    assert_int_equal(result.kind, HIVED_BIND);
    for (int i = 0; i < 2; i++)
        assert_true(!strcmp(result.placement.slots[i].node, "b3") ||
                    !strcmp(result.placement.slots[i].node, "a1"));
    result = world_ask(
        &world, (struct ask){.group = "h", .vc = "red", .pods = 1, .leaves = 8, .scope = &only});
    assert_int_equal(result.kind, HIVED_WAIT);
    result = world_ask(
        &world,
        (struct ask){
            .group = "o", .vc = "red", .pods = 6, .leaves = 8, .scope = &avoid, .priority = -1});
    assert_int_equal(result.kind, HIVED_BIND);
    world_release(&world);
}

static void sockets_and_racks_hold_members(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, CLUSTER "virtualClusters:\n"
                               "  red: {virtualCells: [{cellType: ROW, cellNumber: 1}]}\n");
    struct hived_member members[] = {{.pods = 2, .leaves = 2, .within_one_cell = "QUAD"},
                                     {.pods = 2, .leaves = 8, .within_one_cell = "DUO"},
                                     {.pods = 1, .leaves = 3}};
    struct hived_request request = {.group = "g",
                                    .virtual_cluster = "red",
                                    .members = members,
                                    .member_count = 3,
                                    .within_one_cell = "ROW"};
    struct hived_ask ask = {.request = &request};
    struct hived_result result;
    struct err err;
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.kind, HIVED_BIND);
    const struct hived_slot *slots = result.placement.slots; /* 2, 2, 3, 8, 8 */
    assert_string_equal(slots[0].node, slots[1].node);
    assert_int_equal(slots[0].indices[0] / 4, slots[1].indices[0] / 4);
    assert_int_equal(slots[3].node[1] / 2, slots[4].node[1] / 2);
    members[1].within_one_cell = "LITE"; /* the cluster has no such cells */
    request.group = "h";
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), ERR_INVALID);
    assert_string_equal(err.text, "the cluster has no cell type LITE");
    members[1].within_one_cell = "BOX"; /* too small */
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_true(result.is_never);
    assert_non_null(
        strstr(result.reason, "2 x 2 (within one QUAD) + 1 x 3 + 2 x 8 (within one BOX)"));
    assert_non_null(strstr(result.reason, "is a whole BOX that is large enough"));
    world_release(&world);
}

struct tally {
    unsigned cells, bad, used, oppo;
};

static void tally_add(void *context, const char *type, bool is_healthy, enum hived_cell_state state,
                      bool is_oppo)
{
    struct tally *tally = context;
    assert_non_null(type);
    tally->cells += !is_oppo;
    tally->oppo += is_oppo;
    tally->bad += !is_healthy;
    tally->used += state == HIVED_CELL_USED;
}

static void cells_are_found_by_address(void **state)
{
    (void)state;
    struct world world;
    struct hived_cell_view view;
    world_init(&world, TWO_VCS);
    world_ask(&world, (struct ask){.group = "g", .vc = "red", .pods = 1, .leaves = 8});
    world_ask(&world,
              (struct ask){.group = "o", .vc = "blue", .pods = 1, .leaves = 2, .priority = -1});
    struct tally tally = {0};
    assert_true(hived_vc_walk(world.hived, "blue", tally_add, &tally));
    assert_int_equal(tally.cells, 3);
    assert_int_equal(tally.oppo, 2);
    assert_int_equal(tally.used, 2);
    assert_int_equal(tally.bad, 0);
    assert_false(hived_vc_walk(world.hived, "green", tally_add, &tally));
    assert_true(hived_cell_find(world.hived, "0", &view));
    assert_string_equal(view.type, "ROW");
    assert_true(hived_cell_find(world.hived, "1/3/b3/1/3/7", &view));
    assert_string_equal(view.type, "G");
    assert_int_equal(view.priority, HIVED_PRIORITY_FREE);
    assert_true(view.is_healthy);
    assert_false(hived_cell_find(world.hived, "1/3/b3/1/3/9", &view));
    assert_false(hived_cell_find(world.hived, "7", &view));
    assert_false(hived_cell_find(world.hived, "1/3/b", &view));
    uint32_t used = 0;
    static const char *const tops[] = {"0/0/a0", "0/0/a1", "0/1/a2", "0/1/a3",
                                       "1/2/b0", "1/2/b1", "1/3/b2", "1/3/b3"};
    for (size_t i = 0; i < 8; i++) {
        assert_true(hived_cell_find(world.hived, tops[i], &view));
        used += view.state == HIVED_CELL_USED && !strcmp(view.vc, "red");
    }
    assert_int_equal(used, 1);
    assert_false(hived_node_set(world.hived, "ghost", true));
    assert_true(hived_node_is_healthy(world.hived, 0));
    assert_string_equal(hived_node_name(world.hived, 0), "a0");
    assert_string_equal(hived_leaf_type_name(world.hived, 0), "G");
    assert_int_equal(hived_leaf_type_count(world.hived), 1);
    assert_int_equal(hived_node_highest(world.hived, "a0", "G"), 7);
    assert_int_equal(hived_node_highest(world.hived, "a0", "L"), HIVED_NONE);
    assert_int_equal(hived_node_highest(world.hived, "ghost", "G"), HIVED_NONE);
    world_release(&world);
}

/* A type list: the first that has room; a list with an unknown type is wrong. */
static void types_are_tried_in_order(void **state)
{
    (void)state;
    struct world world;
    world_init(&world,
               "physicalCluster:\n"
               "  cellTypes:\n"
               "    N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"
               "    M: {childCellType: H, childCellNumber: 4, isNodeLevel: true}\n"
               "  physicalCells: [{cellType: N, cellAddress: n}, {cellType: M, cellAddress: m}]\n"
               "virtualClusters: {x: {virtualCells: [{cellType: N, cellNumber: 1}, {cellType: M, "
               "cellNumber: 1}]}, y: {}}\n");
    struct hived_result result = world_ask(
        &world, (struct ask){.group = "a", .vc = "x", .type = "H, G", .pods = 1, .leaves = 2});
    assert_string_equal(result.placement.chain, "M");
    result = world_ask(
        &world, (struct ask){.group = "b", .vc = "x", .type = "G,H", .pods = 1, .leaves = 2});
    assert_string_equal(result.placement.chain, "N");
    result = world_ask(
        &world, (struct ask){.group = "c", .vc = "x", .type = "G,H", .pods = 1, .leaves = 2});
    assert_string_equal(result.placement.chain, "M");
    result = world_ask(&world,
                       (struct ask){.group = "d", .vc = "x", .type = "G", .pods = 1, .leaves = 4});
    assert_true(result.is_never); /* not on this type */
    assert_int_equal(
        world_refuse(&world,
                     (struct ask){.group = "d", .vc = "x", .type = "G,V", .pods = 2, .leaves = 2}),
        ERR_INVALID);
    assert_int_equal(
        world_refuse(&world,
                     (struct ask){.group = "d", .vc = "y", .type = "G", .pods = 1, .leaves = 1}),
        ERR_INVALID);
    result = world_ask(&world, (struct ask){.group = "d", .vc = "y", .pods = 1, .leaves = 1});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_true(result.is_never);
    world_release(&world);
}

/* Bad nodes: doomed cells appear and go; running gangs stay; siblings are matched around them. */
static void bad_nodes_are_worked_around(void **state)
{
    (void)state;
    struct world world;
    struct hived_result result;
    world_init(&world,
               CLUSTER "virtualClusters:\n"
                       "  red: {virtualCells: [{cellType: ROW, cellNumber: 1}]}\n"
                       "  blue: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 3}]}\n");
    hived_node_set(world.hived, "a1", false);
    hived_node_set(world.hived, "b2", false);
    result = world_ask(&world, (struct ask){.group = "big", .vc = "red", .pods = 4, .leaves = 8});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_true(strstr(result.reason, "bad") != NULL);
    result = world_ask(&world, (struct ask){.group = "three", .vc = "red", .pods = 3, .leaves = 8});
    assert_int_equal(result.kind, HIVED_BIND);
    result = world_ask(&world, (struct ask){.group = "blue", .vc = "blue", .pods = 3, .leaves = 8});
    assert_int_equal(result.kind, HIVED_BIND);
    hived_node_set(world.hived, result.placement.slots[0].node, false);
    hived_node_set(world.hived, "b2", true);
    hived_node_set(world.hived, "a1", true);
    hived_group_end(world.hived, "blue");
    result =
        world_ask(&world, (struct ask){.group = "again", .vc = "blue", .pods = 3, .leaves = 8});
    assert_int_equal(result.kind, HIVED_BIND);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_gang_is_found),
        cmocka_unit_test(waits_say_why),
        cmocka_unit_test(gang_stays_within_one_cell),
        cmocka_unit_test(looking_downgrades_nobody),
        cmocka_unit_test(decision_is_forgotten),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(cells_are_found_by_address),
        cmocka_unit_test(types_are_tried_in_order),
        cmocka_unit_test(bad_nodes_are_worked_around),
        cmocka_unit_test(inspect_has_the_original_shape),
        cmocka_unit_test(downgrade_is_told_with_its_time),
        cmocka_unit_test(preempting_pods_are_told),
        cmocka_unit_test(quotas_are_counted),
        cmocka_unit_test(a_node_that_may_not_be_used_is_not_called_bad),
        cmocka_unit_test(a_victim_without_devices_is_on_no_node),
        cmocka_unit_test(quotas_change_under_running_gangs),
        cmocka_unit_test(pinned_cells_are_kept),
        cmocka_unit_test(pods_are_bound_one_by_one),
        cmocka_unit_test(placements_without_types_are_recovered),
        cmocka_unit_test(suggested_nodes_bound_the_search),
        cmocka_unit_test(sockets_and_racks_hold_members),
    };
    return cmocka_run_group_tests_name("hived", tests, NULL, NULL);
}
