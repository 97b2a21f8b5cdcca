/* Mirrors: what readers see, brought up to date in pieces. Random sequences of operations are
 * mirrored by test_model.c. */
#include "hived_view.h"
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "hived/state.h"

static const char cluster[] = TYPES CELLS "virtualClusters:\n"
                                          "  red:\n"
                                          "    virtualCells:\n"
                                          "    - {cellType: DUO.BOX, cellNumber: 1}\n"
                                          "    - {cellType: BOX, cellNumber: 1}\n"
                                          "  blue:\n"
                                          "    pinnedCells: [{pinnedCellId: pin}]\n";

static const char boxes[] = TYPES "  physicalCells:\n"
                                  "  - {cellType: BOX, cellAddress: a}\n"
                                  "  - {cellType: BOX, cellAddress: b}\n"
                                  "virtualClusters: {red: {virtualCells: [{cellType: BOX, "
                                  "cellNumber: 2}]}}\n";

enum { PIECES_MAX = 1000 };

/* In the smallest pieces; says how many. */
static unsigned update(struct hived *mirror, const struct hived *hived)
{
    unsigned pieces = 1;
    while (!hived_mirror_update(mirror, hived, 1))
        assert_true(++pieces < PIECES_MAX);
    const char *wrong = world_mirror_differs(mirror, hived);
    if (wrong)
        fail_msg("after %u pieces: %s", pieces, wrong);
    return pieces;
}

/* What changes while it is made is in it as well. */
static void it_is_made_in_pieces(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, cluster);
    struct hived *mirror = hived_mirror_new(world.hived);
    world_ask(&world, (struct ask){.group = "a", .vc = "red", .pods = 2, .leaves = 2});
    assert_false(hived_mirror_update(mirror, world.hived, 1));
    world_ask(&world, (struct ask){.group = "b", .vc = "blue", .pods = 1, .leaves = 1});
    assert_true(update(mirror, world.hived) > 3);
    assert_int_equal(update(mirror, world.hived), 1); /* nothing has changed */
    hived_group_end(world.hived, "a");
    hived_node_set(world.hived, "c", false);
    assert_true(hived_mirror_update(mirror, world.hived, 10000));
    update(mirror, world.hived);
    hived_free(mirror);
    world_release(&world);
}

/* A name comes to another place in the table, and its place gets another name. */
static void names_move(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, cluster);
    struct hived *mirror = hived_mirror_new(world.hived);
    for (int i = 0; i < 2; i++) {
        world_ask(&world, (struct ask){.group = "a", .vc = "red", .pods = 1, .leaves = 1});
        world_ask(&world, (struct ask){.group = "b", .vc = "red", .pods = 1, .leaves = 1});
        update(mirror, world.hived);
        hived_group_end(world.hived, i ? "b" : "a");
        hived_group_end(world.hived, i ? "a" : "b");
        /* the place that was freed last is taken first */
        world_ask(&world, (struct ask){.group = "a", .vc = "red", .pods = 2, .leaves = 1});
        world_ask(&world, (struct ask){.group = "b", .vc = "red", .pods = 1, .leaves = 2});
        update(mirror, world.hived);
        hived_group_end(world.hived, "a");
        hived_group_end(world.hived, "b");
        update(mirror, world.hived);
    }
    struct hived_group_view view;
    assert_false(hived_group_find(mirror, "a", &view));
    assert_false(hived_group_find(mirror, "b", &view));
    hived_free(mirror);
    world_release(&world);
}

/* Preemptors, their victims, lazy gangs that are displaced, and gangs that use what is left. */
static void groups_change(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, boxes);
    struct hived *mirror = hived_mirror_new(world.hived);
    struct hived_group_view view;
    struct ask lazy = {.group = "lazy", .vc = "red", .pods = 1, .leaves = 4, .is_lazy = true};
    world_ask(&world, lazy);
    world_ask(&world, (struct ask){.group = "low", .vc = "red", .pods = 1, .leaves = 4});
    world_ask(&world,
              (struct ask){.group = "left", .vc = "red", .pods = 1, .leaves = 2, .priority = -1});
    update(mirror, world.hived);
    struct ask high = {.group = "high", .vc = "red", .pods = 2, .leaves = 4, .priority = 5};
    assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
    update(mirror, world.hived);
    assert_true(hived_group_find(mirror, "low", &view));
    assert_int_equal(view.state, HIVED_GROUP_BEING_PREEMPTED);
    assert_true(hived_pod_cancel(world.hived, "high", "high", UINT32_MAX));
    update(mirror, world.hived);
    assert_true(hived_group_find(mirror, "low", &view));
    assert_int_equal(view.state, HIVED_GROUP_ALLOCATED);
    assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
    update(mirror, world.hived);
    hived_group_end(world.hived, "low");
    hived_group_end(world.hived, "lazy");
    hived_group_end(world.hived, "left");
    update(mirror, world.hived);
    assert_int_equal(world_ask(&world, high).kind, HIVED_BIND);
    update(mirror, world.hived);
    assert_true(hived_pod_end(world.hived, "high", 1));
    update(mirror, world.hived);
    hived_free(mirror);
    world_release(&world);
}

/* Of two gangs that are found on one device the second one has it when the first has ended. */
static void devices_are_passed_on(void **state)
{
    (void)state;
    static const uint16_t indices[] = {0, 1};
    static const char *const oppo[] = {"", ""};
    struct hived_slot slot = {
        .node = "a", .leaf_count = 2, .indices = indices, .preassigned = oppo};
    const struct hived_placement placement = {.chain = "BOX", .slots = &slot, .slot_count = 1};
    const struct hived_member member = {.pods = 1, .leaves = 2};
    struct hived_request request = {.group = "first",
                                    .virtual_cluster = "red",
                                    .priority = HIVED_PRIORITY_OPPO,
                                    .members = &member,
                                    .member_count = 1};
    struct world world;
    struct err err = {0};
    world_init(&world, boxes);
    struct hived *mirror = hived_mirror_new(world.hived);
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    request.group = "second";
    assert_int_equal(hived_commit_gang(world.hived, &request, &placement, 0, &err), 0);
    update(mirror, world.hived);
    const char *node;
    assert_int_equal(hived_group_slot(mirror, "second", 0, &node, NULL, 0), 0);
    hived_group_end(world.hived, "first");
    update(mirror, world.hived);
    assert_int_equal(hived_group_slot(mirror, "second", 0, &node, NULL, 0), 2);
    assert_string_equal(node, "a");
    hived_group_end(world.hived, "second");
    update(mirror, world.hived);
    hived_free(mirror);
    world_release(&world);
}

/* Pods that are bound, and that ask for places, one by one. */
static void pods_come_one_by_one(void **state)
{
    (void)state;
    static const char *const pods[] = {"p0", "p1", "p2"};
    const struct hived_member small = {.pods = 3, .leaves = 1}, large = {.pods = 2, .leaves = 4};
    struct hived_request request = {
        .group = "g", .virtual_cluster = "red", .members = &small, .member_count = 1, .leaves = 1};
    struct world world;
    struct hived_result result;
    struct err err = {0};
    world_init(&world, boxes);
    struct hived *mirror = hived_mirror_new(world.hived);
    struct hived_ask ask = {.request = &request};
    for (int i = 0; i < 3; i++) {
        ask.pod = pods[i];
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(hived_commit(world.hived, &ask, &result.placement, result.slot, &err), 0);
        update(mirror, world.hived);
    }
    world_ask(&world, (struct ask){.group = "other", .vc = "red", .pods = 1, .leaves = 4});
    request.group = "high";
    request.priority = 5;
    request.leaves = 0;
    request.members = &large;
    ask.phase = HIVED_PREEMPTING;
    for (int i = 0; i < 3; i++) {
        ask.pod = pods[i];
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_PREEMPT);
        update(mirror, world.hived);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(hived_pod_cancel(world.hived, "high", pods[i], UINT32_MAX));
        update(mirror, world.hived);
    }
    hived_free(mirror);
    world_release(&world);
}

/* A large group is copied in pieces: when it changes or ends meanwhile, that is begun anew, and
 * nothing of it stays when nobody goes on. */
static void large_groups_are_cut(void **state)
{
    enum { CUT, CHANGED, ENDED, REPLACED, WAYS };
    (void)state;
    static const char *const pod = "a pod of a name that has no room inside";
    struct world world;
    struct hived_group_view view;
    for (int way = CUT; way < WAYS; way++) {
        world_init(&world, boxes);
        struct hived *mirror = hived_mirror_new(world.hived);
        update(mirror, world.hived);
        const struct ask ask = {.group = "g", .vc = "red", .pods = 8, .leaves = 1};
        assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
        assert_true(hived_pod_end(world.hived, "g", 7));
        world.hived->groups[0]->pods[0].name = mem_copy(pod);
        for (int i = 0; i < 4 && !mirror->copying.pods; i++)
            assert_false(hived_mirror_update(mirror, world.hived, 2));
        assert_in_range(mirror->copying.pods, 1, 7);
        if (way == CHANGED)
            assert_true(hived_pod_end(world.hived, "g", 6));
        if (way == ENDED || way == REPLACED)
            hived_group_end(world.hived, "g");
        if (way == REPLACED)
            world_ask(&world, (struct ask){.group = "h", .vc = "red", .pods = 2, .leaves = 2});
        if (way != CUT)
            update(mirror, world.hived);
        const bool is_there = hived_group_find(mirror, "g", &view);
        assert_true(is_there == (way == CHANGED));
        hived_free(mirror);
        world_release(&world);
    }
}

/* Nodes join while it is made and afterwards; a node that is known gets cells of another chain. */
static void nodes_join(void **state)
{
    (void)state;
    enum { MANY = 40 };
    struct world world;
    char name[16];
    world_init(&world, cluster);
    struct hived *mirror = NULL;
    unsigned news = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%u", i);
        const struct hived_cell_spec spec = {.address = name};
        assert_true(hived_node_add(world.hived, "BOX", &spec, "red"));
        if (!mirror || !hived_mirror_is_of(mirror, world.hived)) { /* its tables are full */
            hived_free(mirror);
            mirror = hived_mirror_new(world.hived);
            news++;
        }
        hived_mirror_update(mirror, world.hived, 1 + i * 20);
        if (i % 3 == 0)
            update(mirror, world.hived);
        hived_node_set(world.hived, name, true);
    }
    update(mirror, world.hived);
    assert_in_range(news, 1, 8);
    assert_int_equal(hived_node_count(mirror), hived_node_count(world.hived));
    const uint32_t free = hived_node_free(mirror, "n0", "G", NULL, 0);
    assert_int_equal(free, 4);
    hived_free(mirror);
    world_release(&world);
}

/* It is of these cells, not of those before or of a copy. */
static void other_cells_need_another_one(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, cluster);
    world_ask(&world, (struct ask){.group = "a", .vc = "red", .pods = 1, .leaves = 1});
    struct hived *mirror = hived_mirror_new(world.hived), *copy = hived_copy(world.hived);
    update(mirror, world.hived);
    assert_true(hived_mirror_is_of(mirror, world.hived));
    assert_false(hived_mirror_is_of(mirror, copy));
    assert_false(hived_mirror_is_of(copy, world.hived));
    hived_reconfigure(world.hived, world_config_good(&world.arena, cluster, NULL));
    assert_false(hived_mirror_is_of(mirror, world.hived));
    hived_free(copy);
    struct hived_group_view view;
    assert_true(hived_group_find(mirror, "a", &view)); /* what it shows stays */
    hived_free(mirror);
    mirror = hived_mirror_new(world.hived);
    update(mirror, world.hived);
    hived_free(mirror);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_is_made_in_pieces), cmocka_unit_test(names_move),
    cmocka_unit_test(groups_change),        cmocka_unit_test(devices_are_passed_on),
    cmocka_unit_test(pods_come_one_by_one), cmocka_unit_test(large_groups_are_cut),
    cmocka_unit_test(nodes_join),           cmocka_unit_test(other_cells_need_another_one),
};
UNIT_FILE(tests, NULL, NULL);
