/* Which places are found when the first choice is wrong: matching of cells under
 * nodes that may not be used, members that must share a cell.
 *
 * Covers: src/hived/map.c, src/hived/span.c, src/hived/bins.c */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/memory.h"

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

/* The same of three trios. */
#define ROW                                                                                        \
    "physicalCluster:\n"                                                                           \
    "  cellTypes:\n"                                                                               \
    "    BOX: {childCellType: G, childCellNumber: 4, isNodeLevel: true}\n"                         \
    "    TRIO: {childCellType: BOX, childCellNumber: 3}\n"                                         \
    "    ROW: {childCellType: TRIO, childCellNumber: 3}\n"                                         \
    "  physicalCells:\n"                                                                           \
    "  - cellType: ROW\n"                                                                          \
    "    cellChildren:\n"                                                                          \
    "    - cellChildren: [{cellAddress: n0}, {cellAddress: n1}, {cellAddress: n2}]\n"              \
    "    - cellChildren: [{cellAddress: n3}, {cellAddress: n4}, {cellAddress: n5}]\n"              \
    "    - cellChildren: [{cellAddress: n6}, {cellAddress: n7}, {cellAddress: n8}]\n"

enum { NODES = 8, NODES_MAX = 9, NODE_LEAVES = 4 };

static const char *const node_names[NODES_MAX] = {"n0", "n1", "n2", "n3", "n4",
                                                  "n5", "n6", "n7", "n8"};

/* The virtual cell is packed family by family, and each of its families is matched with a physical
 * one that has as many nodes that may be used: the fullest with the largest. */
static bool can_be_matched(uint32_t families, uint32_t size, uint32_t pods, uint32_t avoided)
{
    uint32_t at_least[NODES_MAX + 1] = {0}; /* families with so many usable nodes */
    for (uint32_t family = 0; family < families; family++) {
        uint32_t usable =
            size - (uint32_t)__builtin_popcount(avoided >> (size * family) & ((1u << size) - 1));
        for (uint32_t n = 1; n <= usable; n++)
            at_least[n]++;
    }
    uint32_t whole = pods / size, rest = pods % size;
    return whole <= at_least[size] && (!rest || at_least[rest] > whole);
}

/* Every set of nodes to avoid, every number of whole nodes. */
static void families_match(const char *yaml, uint32_t families, uint32_t size)
{
    struct world world;
    uint32_t nodes = families * size;
    world_init(&world, yaml);
    for (uint32_t avoided = 0; avoided < 1u << nodes; avoided++) {
        const char *names[NODES_MAX];
        struct hived_scope scope = {.nodes = names, .is_avoid = true};
        for (uint32_t i = 0; i < nodes; i++)
            if (avoided >> i & 1)
                names[scope.count++] = node_names[i];
        for (uint32_t pods = 1; pods <= nodes; pods++) {
            struct hived_result result = world_ask(&world, (struct ask){.group = "g",
                                                                        .vc = "red",
                                                                        .pods = pods,
                                                                        .leaves = NODE_LEAVES,
                                                                        .is_filtering = true,
                                                                        .is_not_committed = true,
                                                                        .scope = &scope});
            if ((result.kind == HIVED_BIND) != can_be_matched(families, size, pods, avoided))
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

static void families_are_matched_with_usable_nodes(void **state)
{
    (void)state;
    families_match(
        RACK "virtualClusters: {red: {virtualCells: [{cellType: RACK, cellNumber: 1}]}}\n", 4, 2);
    families_match(ROW "virtualClusters: {red: {virtualCells: [{cellType: ROW, cellNumber: 1}]}}\n",
                   3, 3);
}

static const char one_duo[] =
    RACK "virtualClusters: {red: {virtualCells: [{cellType: RACK.DUO, cellNumber: 1}]}}\n";

/* A gang on these devices of a node. */
static void occupy_chain(struct world *world, const char *group, const char *chain,
                         const char *node, uint32_t leaves, const uint16_t *indices)
{
    struct hived_slot slot = {.node = node, .leaf_count = leaves, .indices = indices};
    struct hived_placement placement = {.chain = chain, .slots = &slot, .slot_count = 1};
    struct hived_member member = {.pods = 1, .leaves = leaves};
    struct hived_request request = {
        .group = group, .virtual_cluster = "red", .members = &member, .member_count = 1};
    struct err err = {0};
    assert_int_equal(hived_commit_gang(world->hived, &request, &placement, 0, &err), 0);
    assert_int_equal(hived_check(world->hived, &err), 0);
}

static void occupy(struct world *world, const char *group, const char *node, uint32_t leaves,
                   const uint16_t *indices)
{
    occupy_chain(world, group, "RACK", node, leaves, indices);
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

/* Nodes of every fullness: a pod goes to the fullest that has room for it. */
static void the_fullest_node_with_room_is_taken(void **state)
{
    (void)state;
    enum { BOXES = 32, LEAVES = 32 };
    struct buf yaml = BUF_INIT;
    static uint16_t indices[LEAVES];
    struct world world;
    buf_format(&yaml,
               "physicalCluster:\n"
               "  cellTypes: {BOX: {childCellType: G, childCellNumber: %d, isNodeLevel: true}}\n"
               "  physicalCells:\n",
               LEAVES);
    for (uint16_t i = 0; i < BOXES; i++)
        buf_format(&yaml, "  - {cellType: BOX, cellAddress: n%u}\n", i);
    buf_format(&yaml, "virtualClusters: {red: {virtualCells: [{cellType: BOX, cellNumber: %d}]}}\n",
               BOXES);
    world_init(&world, buf_cstr(&yaml));
    for (uint16_t i = 0; i < LEAVES; i++)
        indices[i] = i;
    for (uint32_t used = 1; used < BOXES; used++) {
        char group[16], node[16];
        snprintf(group, sizeof group, "x%u", used);
        snprintf(node, sizeof node, "n%u", used * 7 % BOXES); /* in no order */
        occupy_chain(&world, group, "BOX", node, used, indices);
    }
    for (uint32_t leaves = 1; leaves < LEAVES; leaves++) {
        struct hived_result result = world_ask(
            &world,
            (struct ask){
                .group = "g", .vc = "red", .pods = 1, .leaves = leaves, .is_not_committed = true});
        char node[16];
        snprintf(node, sizeof node, "n%u", (LEAVES - leaves) * 7 % BOXES);
        assert_string_equal(result.placement.slots[0].node, node);
    }
    struct ask all = {.group = "all", .vc = "red", .pods = 16, .leaves = 16};
    assert_int_equal(world_ask(&world, all).kind, HIVED_BIND); /* many nodes change at once */
    hived_group_end(world.hived, "all");
    all.pods = 18; /* one node holds two, sixteen one */
    assert_int_equal(world_ask(&world, all).kind, HIVED_BIND);
    hived_group_end(world.hived, "all");
    all.pods = 19;
    assert_int_equal(world_ask(&world, all).kind, HIVED_WAIT);
    buf_release(&yaml);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(families_are_matched_with_usable_nodes),
    cmocka_unit_test(the_fullest_node_with_room_is_taken),
    cmocka_unit_test(a_first_choice_is_taken_back),
    cmocka_unit_test(members_without_condition_come_last),
    cmocka_unit_test(many_cells_are_searched),
};
UNIT_FILE(tests, NULL, NULL);
