/* Virtual cells onto physical ones: sockets and racks hold the members of a gang. */
#include "gangs.h"
#include "unit.h"
#include "world.h"

#include <string.h>

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sockets_and_racks_hold_members),
};
UNIT_FILE(tests, NULL, NULL);
