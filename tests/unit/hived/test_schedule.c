/* A request becomes a decision: types in their order, suggested nodes, and nothing that a decision
 * not taken would change.
 *
 * Covers: src/hived/known.c, src/hived/search.c, src/hived/tries.c */
#include "gangs.h"
#include "unit.h"
#include "world.h"

#include <string.h>

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gang_stays_within_one_cell),
    cmocka_unit_test(looking_downgrades_nobody),
    cmocka_unit_test(decision_is_forgotten),
    cmocka_unit_test(types_are_tried_in_order),
    cmocka_unit_test(suggested_nodes_bound_the_search),
};
UNIT_FILE(tests, NULL, NULL);
