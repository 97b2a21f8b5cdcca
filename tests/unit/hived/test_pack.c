/* Leaves for a gang within a cell: with 5 and 6 free, 3 + 3 + 5 is found. */
#include "gangs.h"
#include "unit.h"
#include "world.h"

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

/* Two nodes of 8 within one cell: 3 + 5 fits on each, though the greedy pass begins with 3 + 3. */
static void mixed_gang_within_a_cell_is_found(void **state)
{
    (void)state;
    struct world world;
    uint32_t leaves[2] = {0, 0};
    world_init(&world, TWO_VCS);
    const struct hived_result result = world_ask(&world, (struct ask){.group = "mix",
                                                                      .vc = "blue",
                                                                      .pods = 2,
                                                                      .leaves = 3,
                                                                      .more_pods = 2,
                                                                      .more_leaves = 5,
                                                                      .within = "DUO"});
    assert_int_equal(result.kind, HIVED_BIND);
    assert_int_equal(result.placement.slot_count, 4);
    const char *first = result.placement.slots[0].node;
    for (uint32_t i = 0; i < 4; i++) {
        const struct hived_slot *slot = &result.placement.slots[i];
        assert_int_equal(slot->node[0], first[0]);
        assert_int_equal((slot->node[1] - '0') / 2, (first[1] - '0') / 2);
        leaves[slot->node[1] % 2] += slot->leaf_count;
    }
    assert_int_equal(leaves[0], 8);
    assert_int_equal(leaves[1], 8);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mixed_gang_is_found),
    cmocka_unit_test(mixed_gang_within_a_cell_is_found),
};
UNIT_FILE(tests, NULL, NULL);
