/* Gangs and their pods: bound one by one, and recovered without the recorded types. */
#include "gangs.h"
#include "hived_view.h"
#include "unit.h"
#include "world.h"

/* Pods bound one by one: each gets a slot of its size, one too many is an error. */
static void pods_are_bound_one_by_one(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    struct hived_member members[] = {{.pods = 2, .leaves = 2}, {.pods = 1, .leaves = 4}};
    struct hived_request request = {
        .group = "g", .virtual_cluster = "red", .members = members, .member_count = 2, .leaves = 4};
    struct hived_result result;
    struct err err;
    const char *const pods[] = {"p0", "p1", "p2"};
    struct hived_ask ask = {.request = &request};
    for (int i = 0; i < 3; i++) {
        ask.pod = pods[i];
        request.leaves = i == 0 ? 4 : 2;
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_BIND);
        assert_int_equal(result.placement.slots[result.slot].leaf_count, request.leaves);
        assert_int_equal(hived_commit(world.hived, &ask, &result.placement, result.slot, &err), 0);
    }
    ask.pod = "p3";
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), ERR_INVALID);
    assert_int_equal(hived_commit(world.hived, &ask, &result.placement, 99, &err), ERR_INVALID);
    assert_false(hived_pod_end_named(world.hived, "g", "p9"));
    assert_true(hived_pod_end_named(world.hived, "g", "p1"));
    ask.pod = "p4";
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.kind, HIVED_BIND);
    assert_true(hived_pod_end(world.hived, "g", 0) || hived_pod_end(world.hived, "g", 1));
    assert_false(hived_pod_end(world.hived, "g", 7));
    assert_true(hived_pod_end_named(world.hived, "g", "p0"));
    struct hived_group_view view;
    assert_false(hived_group_find(world.hived, "g", &view));
    world_release(&world);
}

/* Without the recorded types (the core's rows have none) a gang still gets its guarantee back. */
static void placements_without_types_are_recovered(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    const uint16_t indices[] = {0, 1, 2, 3};
    struct hived_slot slots[] = {{.node = "b2", .leaf_count = 4, .indices = indices},
                                 {.node = "ghost", .leaf_count = 4, .indices = indices}};
    struct hived_placement placement = {.chain = "", .slots = slots, .slot_count = 2};
    struct hived_member member = {.pods = 2, .leaves = 4};
    struct hived_request request = {
        .group = "g", .virtual_cluster = "blue", .members = &member, .member_count = 1};
    struct err err = {0};
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    assert_true(is_guaranteed(&world, "g"));
    const char *node;
    uint16_t some[4];
    assert_int_equal(hived_group_slot(world.hived, "g", 0, &node, some, 4), 4);
    assert_int_equal(hived_group_slot(world.hived, "g", 1, &node, some, 4), 0);
    assert_null(node);
    /* two gangs said to be on one device: the first keeps it, the second has the rest */
    request.group = "h";
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    assert_false(is_guaranteed(&world, "h"));
    hived_group_end(world.hived, "h");
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pods_are_bound_one_by_one),
    cmocka_unit_test(placements_without_types_are_recovered),
};
UNIT_FILE(tests, NULL, NULL);
