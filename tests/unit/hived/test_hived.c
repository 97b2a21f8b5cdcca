/* test_hived.c — behaviour, case by case. */
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
    for (uint32_t i = 0; i < 2; i++) {
        struct ask big = {.group = i ? "f2" : "f1", .vc = "red", .pods = 1, .leaves = 8};
        (void)big;
    }
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
    assert_non_null(strstr(result.reason, "late needs 2 x 8 G"));
    assert_non_null(strstr(result.reason, "8 of 24 leaves are free"));
    assert_non_null(strstr(result.reason, "held by big (16)"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_gang_is_found),        cmocka_unit_test(waits_say_why),
        cmocka_unit_test(gang_stays_within_one_cell), cmocka_unit_test(looking_downgrades_nobody),
        cmocka_unit_test(decision_is_forgotten),      cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests_name("hived", tests, NULL, NULL);
}
