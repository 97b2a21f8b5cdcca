/* test_topology.c — which places are found when the first choice is wrong: matching of cells under
 * nodes that may not be used, members that must share a cell. */
#include "base/memory.h"
#include "world.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One rack of four duos of two boxes of two pairs of GPUs. */
#define RACK                                                                                       \
    "physicalCluster:\n"                                                                           \
    "  cellTypes:\n"                                                                               \
    "    PAIR: {childCellType: G, childCellNumber: 2}\n"                                           \
    "    BOX: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}\n"                      \
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"                                          \
    "    RACK: {childCellType: DUO, childCellNumber: 4}\n"                                         \
    "  physicalCells:\n"                                                                           \
    "  - cellType: RACK\n"                                                                         \
    "    cellChildren:\n"                                                                          \
    "    - cellChildren: [{cellAddress: n0}, {cellAddress: n1}]\n"                                 \
    "    - cellChildren: [{cellAddress: n2}, {cellAddress: n3}]\n"                                 \
    "    - cellChildren: [{cellAddress: n4}, {cellAddress: n5}]\n"                                 \
    "    - cellChildren: [{cellAddress: n6}, {cellAddress: n7}]\n"

enum { NODES = 8, NODE_LEAVES = 4 };

static const char *const node_names[NODES] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};

/* The virtual rack is packed duo by duo; its duos are matched with physical ones that have as many
 * nodes that may be used. */
static bool can_be_matched(uint32_t pods, uint32_t avoided)
{
    uint32_t whole = 0, half = 0;
    for (uint32_t duo = 0; duo < NODES / 2; duo++) {
        uint32_t bad = avoided >> (2 * duo) & 3;
        whole += bad == 0;
        half += bad == 1 || bad == 2;
    }
    return pods / 2 <= whole && (pods % 2 == 0 || half > 0 || pods / 2 < whole);
}

/* Every set of nodes to avoid, every number of whole nodes. */
static void duos_are_matched_with_usable_nodes(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, RACK "virtualClusters: {red: {virtualCells: [{cellType: RACK, cellNumber: "
                            "1}]}}\n");
    for (uint32_t avoided = 0; avoided < 1u << NODES; avoided++) {
        const char *names[NODES];
        struct hived_scope scope = {.nodes = names, .is_avoid = true};
        for (uint32_t i = 0; i < NODES; i++)
            if (avoided >> i & 1)
                names[scope.count++] = node_names[i];
        for (uint32_t pods = 1; pods <= NODES; pods++) {
            struct hived_result result = world_ask(&world, (struct ask){.group = "g",
                                                                        .vc = "red",
                                                                        .pods = pods,
                                                                        .leaves = NODE_LEAVES,
                                                                        .is_filtering = true,
                                                                        .is_not_committed = true,
                                                                        .scope = &scope});
            if ((result.kind == HIVED_BIND) != can_be_matched(pods, avoided))
                fail_msg("%u pods without nodes %#x: kind %d", pods, avoided, result.kind);
            uint32_t used = avoided;
            for (uint32_t i = 0; result.kind == HIVED_BIND && i < pods; i++) {
                uint32_t bit = 1u << (result.placement.slots[i].node[1] - '0');
                assert_int_equal(used & bit, 0); /* neither avoided nor given twice */
                used |= bit;
            }
        }
        arena_clear(&world.arena);
    }
    world_release(&world);
}

/* --- members that must share a cell --- */

static const char one_duo[] =
    RACK "virtualClusters: {red: {virtualCells: [{cellType: RACK.DUO, cellNumber: 1}]}}\n";

/* A gang on these devices of a node. */
static void occupy(struct world *world, const char *group, const char *node, uint32_t leaves,
                   const uint16_t *indices)
{
    struct hived_slot slot = {.node = node, .leaf_count = leaves, .indices = indices};
    struct hived_placement placement = {.chain = "RACK", .slots = &slot, .slot_count = 1};
    struct hived_member member = {.pods = 1, .leaves = leaves};
    struct hived_request request = {
        .group = group, .virtual_cluster = "red", .members = &member, .member_count = 1};
    struct err err = {0};
    assert_int_equal(hived_commit_gang(world->hived, &request, &placement, 0, &err), 0);
    assert_int_equal(hived_check(world->hived, &err), 0);
}

static struct hived_result ask_members(struct world *world, const struct hived_member *members,
                                       uint32_t count)
{
    struct hived_request request = {
        .group = "g", .virtual_cluster = "red", .members = members, .member_count = count};
    struct hived_result result;
    struct err err = {0};
    assert_int_equal(hived_schedule(world->hived, &(struct hived_ask){.request = &request},
                                    &world->arena, &result, &err),
                     0);
    return result;
}

/* One box has a whole pair free, the other one GPU of each pair. A pod of two that must be in one
 * box may take either; two pods that must share a pair can use the first one only. Whichever box
 * comes first, both are placed. */
static void a_first_choice_is_taken_back(void **state)
{
    (void)state;
    static const uint16_t pair[] = {0, 1}, across[] = {0, 2};
    static const struct hived_member members[] = {
        {.pods = 1, .leaves = 2, .within_one_cell = "BOX"},
        {.pods = 2, .leaves = 1, .within_one_cell = "PAIR"},
    };
    for (int i = 0; i < 2; i++) {
        struct world world;
        world_init(&world, one_duo);
        occupy(&world, "a", "n0", 2, i ? pair : across);
        occupy(&world, "b", "n1", 2, i ? across : pair);
        struct hived_result result = ask_members(&world, members, 2);
        assert_int_equal(result.kind, HIVED_BIND);
        const char *with_pair = i ? "n0" : "n1", *other = i ? "n1" : "n0";
        assert_string_equal(result.placement.slots[0].node, with_pair);
        assert_string_equal(result.placement.slots[1].node, with_pair);
        assert_string_equal(result.placement.slots[2].node, other);
        world_release(&world);
    }
}

/* What must share a cell is placed first, the rest anywhere in the virtual cluster. */
static void members_without_condition_come_last(void **state)
{
    (void)state;
    static const uint16_t one[] = {0};
    static const struct hived_member members[] = {
        {.pods = 3, .leaves = 1},
        {.pods = 2, .leaves = 1, .within_one_cell = "PAIR"},
    };
    struct world world;
    world_init(&world, one_duo);
    occupy(&world, "a", "n0", 1, one);
    struct hived_result result = ask_members(&world, members, 2);
    assert_int_equal(result.kind, HIVED_BIND);
    const struct hived_slot *slots = result.placement.slots;
    assert_string_equal(slots[3].node, slots[4].node);
    assert_int_equal(slots[3].indices[0] / 2, slots[4].indices[0] / 2); /* one pair */
    static const struct hived_member large[] = {
        {.pods = 2, .leaves = 3},
        {.pods = 2, .leaves = 1, .within_one_cell = "PAIR"},
    };
    assert_int_equal(ask_members(&world, large, 2).kind, HIVED_WAIT); /* seven are free, not so */
    world_release(&world);
}

/* More cells than are listed at once. */
static void many_cells_are_searched(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, RACK "virtualClusters: {red: {virtualCells: [{cellType: RACK, cellNumber: "
                            "1}]}}\n");
    static const struct hived_member members[] = {
        {.pods = 2, .leaves = 1, .within_one_cell = "PAIR"}, {.pods = 1, .leaves = 1}};
    char name[16];
    for (uint32_t i = 0; i < NODES; i++) { /* one GPU of each pair: no pair is left at last */
        static const uint16_t across[] = {0, 2};
        struct hived_result result = ask_members(&world, members, 2);
        assert_int_equal(result.kind, HIVED_BIND);
        snprintf(name, sizeof name, "x%u", i);
        occupy(&world, name, node_names[i], 2, across);
    }
    assert_int_equal(ask_members(&world, members, 2).kind, HIVED_WAIT);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(duos_are_matched_with_usable_nodes),
        cmocka_unit_test(a_first_choice_is_taken_back),
        cmocka_unit_test(members_without_condition_come_last),
        cmocka_unit_test(many_cells_are_searched),
    };
    return cmocka_run_group_tests_name("hived topology", tests, NULL, NULL);
}
