/* A scheduler by itself: quotas that are counted and change, pinned cells, cells by their address.
 */
#include "gangs.h"
#include "hived_view.h"
#include "unit.h"
#include "world.h"

#include <string.h>

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

/* A cell that an opportunistic gang has left is as light as one that none was on. */
static void the_lightest_free_cell_is_taken(void **state)
{
    (void)state;
    struct world world;
    struct err err;
    world_init(&world, SMALL);
    struct ask ask = {.group = "two", .vc = "x", .pods = 1, .leaves = 2, .priority = -1};
    const char *left = world_ask(&world, ask).placement.slots[0].node;
    ask.group = "one", ask.leaves = 1;
    assert_string_not_equal(world_ask(&world, ask).placement.slots[0].node, left);
    hived_group_end(world.hived, "two");
    if (hived_check(world.hived, &err))
        fail_msg("%s", err.text);
    ask.group = "high", ask.leaves = 2, ask.priority = 0;
    const struct hived_result result = world_ask(&world, ask);
    assert_int_equal(result.kind, HIVED_BIND);
    assert_string_equal(result.placement.slots[0].node, left);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cells_are_found_by_address),
    cmocka_unit_test(quotas_are_counted),
    cmocka_unit_test(the_lightest_free_cell_is_taken),
    cmocka_unit_test(quotas_change_under_running_gangs),
    cmocka_unit_test(pinned_cells_are_kept),
};
UNIT_FILE(tests, NULL, NULL);
