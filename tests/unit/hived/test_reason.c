/* Why a gang waits, and whom it preempts, in words. */
#include "gangs.h"
#include "unit.h"
#include "world.h"

#include <string.h>

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
    assert_non_null(strstr(result.reason, "it needs 2 x 8 G"));
    assert_non_null(strstr(result.reason, "8 of 24 leaves are free"));
    assert_non_null(strstr(result.reason, "held by big (16)"));
    assert_null(strstr(result.reason, "was cut")); /* nothing is said that is not so */
    assert_null(strstr(result.reason, "it would have to use node"));
    result = world_ask(&world, (struct ask){.group = "huge", .vc = "red", .pods = 1, .leaves = 16});
    assert_true(result.is_never);
    world_release(&world);
}

/* A node that this request may not use is no bad node: the reason says which of both it is, also of
 * opportunistic use. */
static void a_node_that_may_not_be_used_is_not_called_bad(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, SMALL);
    world_ask(&world,
              (struct ask){.group = "o", .vc = "y", .pods = 1, .leaves = 2, .priority = -1});
    const char *node;
    uint16_t some;
    hived_group_slot(world.hived, "o", 0, &node, &some, 1);
    const char *rest[] = {node};
    struct hived_scope used = {rest, 1, false};
    struct hived_result result = world_ask(
        &world,
        (struct ask){
            .group = "p", .vc = "y", .pods = 1, .leaves = 2, .priority = -1, .scope = &used});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, "which may not be used"));
    assert_null(strstr(result.reason, "is bad"));
    hived_node_set(world.hived, strcmp(node, "a") == 0 ? "b" : "a", false);
    result = world_ask(
        &world, (struct ask){.group = "p", .vc = "y", .pods = 1, .leaves = 2, .priority = -1});
    assert_int_equal(result.kind, HIVED_WAIT);
    assert_non_null(strstr(result.reason, ", which is bad"));
    world_release(&world);
}

/* A gang is to be preempted of which one pod's devices have left the configuration: that pod is on
 * no node, and the other one on its own. */
static void a_victim_without_devices_is_on_no_node(void **state)
{
    (void)state;
    static const uint16_t first[] = {0};
    struct world world;
    world_init(&world, SMALL);
    struct hived_member members[] = {{.pods = 2, .leaves = 1}};
    struct hived_request request = {
        .group = "low", .virtual_cluster = "x", .members = members, .member_count = 1, .leaves = 1};
    struct hived_slot slots[] = {{.node = "gone", .leaf_count = 1, .indices = first},
                                 {.node = "a", .leaf_count = 1, .indices = first}};
    struct hived_placement placement = {.slots = slots, .slot_count = 2, .chain = "N"};
    struct err err = {0};
    if (hived_commit_gang(world.hived, &request, &placement, 0, &err))
        fail_msg("%s: %s", err.path, err.text);
    struct hived_result result = world_ask(
        &world, (struct ask){.group = "high", .vc = "x", .pods = 1, .leaves = 2, .priority = 1});
    assert_int_equal(result.kind, HIVED_PREEMPT);
    assert_int_equal(result.victim_count, 2);
    assert_string_equal(result.victims[0].node, "");
    assert_string_equal(result.victims[1].node, "a");
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(waits_say_why),
    cmocka_unit_test(a_node_that_may_not_be_used_is_not_called_bad),
    cmocka_unit_test(a_victim_without_devices_is_on_no_node),
};
UNIT_FILE(tests, NULL, NULL);
