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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mixed_gang_is_found),
};
UNIT_FILE(tests, NULL, NULL);
