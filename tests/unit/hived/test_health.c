/* Bad nodes are worked around: doomed cells appear and go. */
#include "gangs.h"
#include "unit.h"
#include "world.h"

#include <string.h>

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_nodes_are_worked_around),
};
UNIT_FILE(tests, NULL, NULL);
