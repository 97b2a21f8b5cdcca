/* Nodes that join later, and what is told of cells, pods and times.
 *
 * Covers: src/hived/build.c, src/hived/health.c, src/hived/tree.c */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "hived/state.h"
#include "hived_view.h"

/* Chains with and without a level above the node; red owns of the first, blue of the second. */
static const char cluster[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    BOX: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"
    "    NODE: {childCellType: H, childCellNumber: 2, isNodeLevel: true}\n"
    "    DUO: {childCellType: NODE, childCellNumber: 2}\n"
    "  physicalCells:\n"
    "  - {cellType: BOX, cellAddress: a}\n"
    "  - {cellType: DUO, cellChildren: [{cellAddress: b}, {cellAddress: c}]}\n"
    "virtualClusters:\n"
    "  red: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n"
    "  blue: {virtualCells: [{cellType: DUO, cellNumber: 1}]}\n";

static void nodes_join_where_they_may(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, cluster);
    const struct hived_cell_spec good = {.address = "d"}, nameless = {0},
                                 pinned = {.address = "d", .pin = "p"}, known = {.address = "a"},
                                 other = {.address = "b"};
    const struct {
        const char *chain, *vc;
        const struct hived_cell_spec *spec;
        bool is_added;
    } cases[] = {
        {"NONE", "red", &good, false},    {"BOX", "green", &good, false},
        {"BOX", "blue", &good, false}, /* owns none of this chain */
        {"DUO", "blue", &good, false}, /* a whole duo, not a node */
        {"BOX", "red", &nameless, false}, {"BOX", "red", &pinned, false},
        {"BOX", "red", &known, false}, /* has one of this chain */
        {"BOX", "red", &good, true},      {"BOX", "red", &good, false},
        {"BOX", "red", &other, true}, /* has leaves of another chain alone */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        assert_int_equal(hived_node_add(world.hived, cases[i].chain, cases[i].spec, cases[i].vc),
                         cases[i].is_added);
        assert_int_equal(hived_check(world.hived, &err), 0);
    }
    hived_node_set(world.hived, "d", true);
    struct ask ask = {.group = "g", .vc = "red", .pods = 3, .leaves = 2, .type = "G"};
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    world_release(&world);
}

/* Room for nodes is made as they come: enough, and no more than twice as much. */
static void many_nodes_join(void **state)
{
    enum { MANY = 100 };
    struct world world;
    char name[16];
    (void)state;
    world_init(&world, cluster);
    const uint32_t before = world.hived->node_count;
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%u", i);
        assert_true(
            hived_node_add(world.hived, "BOX", &(struct hived_cell_spec){.address = name}, "red"));
        assert_int_equal(world.hived->node_count, before + i + 1);
        assert_in_range(world.hived->node_room, before + i + 1, 2 * (before + i + 1));
    }
    world_release(&world);
}

/* The tables of nodes may be full: a copy reads no more of them, and grows as well. */
static void copies_have_no_more_than_there_is(void **state)
{
    enum { SOME = 20 };
    struct world world;
    char name[16];
    (void)state;
    world_init(&world, cluster);
    for (uint32_t i = 0; i < SOME; i++) {
        snprintf(name, sizeof name, "n%u", i);
        const struct hived_cell_spec spec = {.address = name};
        assert_true(hived_node_add(world.hived, "BOX", &spec, "red"));
        struct hived *copy = hived_copy(world.hived);
        assert_int_equal(copy->node_room, world.hived->node_count);
        assert_int_equal(copy->view_node_room, world.hived->view_node_count);
        assert_true(hived_node_add(copy, "BOX", &(struct hived_cell_spec){.address = "x"}, "red"));
        assert_int_equal(copy->node_count, world.hived->node_count + 1);
        hived_free(copy);
    }
    world_release(&world);
}

/* A gang recovered on more than its quota breaks the guarantees of others: no quota grows then. */
static void no_node_joins_a_broken_cluster(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, cluster);
    world.hived->is_safety_broken = true;
    assert_false(
        hived_node_add(world.hived, "BOX", &(struct hived_cell_spec){.address = "d"}, "red"));
    world_release(&world);
}

/* What is tried and undone, by a look or by a preemption that is given up, leaves the guarantees of
 * all as they were: the cluster can still grow. */
static void what_is_undone_breaks_nothing(void **state)
{
    (void)state;
    struct world world;
    struct hived_group_view view;
    struct err err = {0};
    world_init(&world, cluster);
    struct ask low = {.group = "low", .vc = "red", .pods = 1, .leaves = 2, .is_lazy = true};
    assert_int_equal(world_ask(&world, low).kind, HIVED_BIND);
    struct ask high = {
        .group = "high", .vc = "red", .priority = 5, .pods = 1, .leaves = 2, .is_filtering = true};
    for (int i = 0; i < 2; i++, high.is_filtering = false) {
        assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
        hived_group_end(world.hived, "high");
        assert_false(world.hived->is_safety_broken);
        assert_true(hived_group_find(world.hived, "low", &view));
        assert_int_equal(view.state, HIVED_GROUP_ALLOCATED);
        assert_int_equal(hived_check(world.hived, &err), 0);
    }
    assert_true(
        hived_node_add(world.hived, "BOX", &(struct hived_cell_spec){.address = "d"}, "red"));
    world_release(&world);
}

/* Pods with names are told by them, others by their slots. */
static void pods_are_named(void **state)
{
    (void)state;
    static const uint16_t indices[] = {0, 1};
    struct hived_slot slots[] = {{.node = "a", .leaf_count = 1, .indices = indices},
                                 {.node = "a", .leaf_count = 1, .indices = indices + 1}};
    const struct hived_placement placement = {.chain = "BOX", .slots = slots, .slot_count = 2};
    const struct hived_member member = {.pods = 2, .leaves = 1};
    const struct hived_request request = {
        .group = "g", .virtual_cluster = "red", .members = &member, .member_count = 1};
    struct world world;
    struct err err = {0};
    world_init(&world, cluster);
    struct hived_ask ask = {.request = &request, .pod = "team/first"};
    assert_int_equal(hived_commit(world.hived, &ask, &placement, 0, &err), 0);
    ask.pod = NULL;
    assert_int_equal(hived_commit(world.hived, &ask, &placement, 1, &err), 0);
    const char *text = world_inspect_named(&world, hived_inspect_group, "g");
    assert_non_null(strstr(text, "\"allocatedPods\":[\"team/first\",\"g/1\"]"));
    struct hived *copy = hived_copy(world.hived);
    assert_true(hived_pod_end_named(copy, "g", "team/first"));
    assert_false(hived_pod_end_named(copy, "g", "team/first"));
    hived_free(copy);
    hived_group_end(world.hived, "g");
    text = world_inspect(&world, hived_inspect_groups);
    assert_string_equal(text, "{\"items\":[]}");
    world_release(&world);
}

/* The pods of a victim stand where their devices are; of those that left the cluster, nowhere. */
static void victims_on_lost_devices(void **state)
{
    (void)state;
    static const uint16_t indices[] = {7, 0};
    static const char *const oppo[] = {"", ""};
    struct hived_slot slots[] = {
        {.node = "a", .leaf_count = 2, .indices = indices, .preassigned = oppo},
        {.node = "gone", .leaf_count = 2, .indices = indices, .preassigned = oppo}};
    const struct hived_placement placement = {.chain = "BOX", .slots = slots, .slot_count = 2};
    const struct hived_member member = {.pods = 2, .leaves = 2};
    const struct hived_request request = {.group = "low",
                                          .virtual_cluster = "red",
                                          .priority = HIVED_PRIORITY_OPPO,
                                          .members = &member,
                                          .member_count = 1};
    struct world world;
    struct err err = {0};
    world_init(&world, cluster);
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    const struct hived_result result =
        world_ask(&world, (struct ask){.group = "high", .vc = "red", .pods = 1, .leaves = 2});
    assert_int_equal(result.kind, HIVED_PREEMPT);
    assert_int_equal(result.victim_count, 2);
    assert_string_equal(result.victims[0].node, "a"); /* its second device is there */
    assert_string_equal(result.victims[1].node, "");
    /* it is asked again meanwhile: its cells are reserved */
    struct ask again = {.group = "low", .vc = "red", .pods = 2, .leaves = 2, .priority = -1};
    const struct hived_result wait = world_ask(&world, again);
    assert_int_equal(wait.kind, HIVED_WAIT);
    assert_non_null(strstr(wait.reason, "low is being preempted by high"));
    hived_group_end(world.hived, "low");
    assert_int_equal(
        world_ask(&world, (struct ask){.group = "high", .vc = "red", .pods = 1, .leaves = 2}).kind,
        HIVED_BIND);
    world_release(&world);
}

/* Who asks for pods of a size of which all run gets an error, not somebody else's place. */
static void every_size_has_its_own_pods(void **state)
{
    (void)state;
    const struct hived_member members[] = {{.pods = 1, .leaves = 1}, {.pods = 1, .leaves = 2}};
    struct hived_request request = {.group = "g",
                                    .virtual_cluster = "blue",
                                    .members = members,
                                    .member_count = 2,
                                    .leaves = 1};
    struct hived_ask ask = {.request = &request, .pod = "one"};
    struct hived_result result;
    struct world world;
    struct err err = {0};
    world_init(&world, cluster);
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(hived_commit(world.hived, &ask, &result.placement, result.slot, &err), 0);
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), ERR_INVALID);
    request.leaves = 2;
    ask.pod = "two";
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.placement.slots[result.slot].leaf_count, 2);
    assert_int_equal(hived_commit(world.hived, &ask, &result.placement, result.slot, &err), 0);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_join_where_they_may),
    cmocka_unit_test(many_nodes_join),
    cmocka_unit_test(copies_have_no_more_than_there_is),
    cmocka_unit_test(no_node_joins_a_broken_cluster),
    cmocka_unit_test(what_is_undone_breaks_nothing),
    cmocka_unit_test(pods_are_named),
    cmocka_unit_test(victims_on_lost_devices),
    cmocka_unit_test(every_size_has_its_own_pods),
};
UNIT_FILE(tests, NULL, NULL);
