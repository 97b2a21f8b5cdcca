/* No virtual cluster loses a cell that its quota needs: not when what runs is
 * recovered at random places, not when larger cells are split to get round bad nodes, not when
 * preemptions are given up.
 *
 * Covers: src/hived/bind.c, src/hived/free_list.c, src/hived/group.c */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

static void check(struct world *world)
{
    struct err err;
    if (hived_check(world->hived, &err))
        fail_msg("%s", err.text);
}

static bool is_guaranteed(struct world *world, const char *group)
{
    struct hived_group_view view;
    assert_true(hived_group_find(world->hived, group, &view));
    return view.has_virtual;
}

struct found { /* one pod of `count` leaves from `first` on */
    const char *group, *vc, *chain, *node;
    uint16_t first;
    uint32_t count;
    int32_t priority;
    const char *type; /* of its preassigned cell; NULL: not recorded */
};

/* As it is found running at a recovery. */
static void recover(struct world *world, struct found found)
{
    enum { LEAVES_MAX = 8 };
    uint16_t indices[LEAVES_MAX];
    const char *types[LEAVES_MAX];
    assert_in_range(found.count, 1, LEAVES_MAX);
    for (uint16_t i = 0; i < found.count; i++) {
        indices[i] = (uint16_t)(found.first + i);
        types[i] = found.type;
    }
    struct hived_member member = {.pods = 1, .leaves = found.count};
    struct hived_request request = {.group = found.group,
                                    .virtual_cluster = found.vc,
                                    .priority = found.priority,
                                    .members = &member,
                                    .member_count = 1};
    struct hived_slot slot = {.node = found.node,
                              .indices = indices,
                              .leaf_count = found.count,
                              .preassigned = found.type ? types : NULL};
    struct hived_placement placement = {.chain = found.chain, .slots = &slot, .slot_count = 1};
    struct err err = {0};
    assert_int_equal(hived_commit_gang(world->hived, &request, &placement, 0, &err), 0);
    check(world);
}

/* What is recovered on leaves of ever more nodes splits nodes that others own whole: the one that
 * takes the last is guaranteed no longer, and the owner has its node back by preemption. */
static void a_recovery_splits_no_node_that_is_owed(void **state)
{
    (void)state;
    static const char yaml[] =
        "physicalCluster:\n"
        "  cellTypes: {NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}}\n"
        "  physicalCells: [{cellType: NODE, cellAddress: a}, {cellType: NODE, cellAddress: b},\n"
        "    {cellType: NODE, cellAddress: c}]\n"
        "virtualClusters:\n"
        "  red: {virtualCells: [{cellType: NODE.G, cellNumber: 2}]}\n"
        "  blue: {virtualCells: [{cellType: NODE, cellNumber: 2}]}\n";
    struct world world;
    world_init(&world, yaml);
    recover(&world, (struct found){"r1", "red", "NODE", "a", 0, 1, 0, NULL});
    recover(&world, (struct found){"r2", "red", "NODE", "b", 0, 1, 0, NULL});
    assert_true(is_guaranteed(&world, "r1"));
    assert_false(is_guaranteed(&world, "r2"));
    struct ask ask = {.group = "b1", .vc = "blue", .priority = 5, .pods = 2, .leaves = 4};
    assert_int_equal(world_ask(&world, ask).kind, HIVED_PREEMPT);
    hived_group_end(world.hived, "r2");
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    check(&world);
    world_release(&world);
}

static const char racks[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"
    "    RACK: {childCellType: NODE, childCellNumber: 2}\n"
    "  physicalCells:\n"
    "  - {cellType: RACK, cellChildren: [{cellAddress: a}, {cellAddress: b}]}\n"
    "  - {cellType: RACK, cellChildren: [{cellAddress: c}, {cellAddress: d}]}\n";

/* A rack is given back to its owner, though the nodes that others own are now only in it: then the
 * owner of the rack is guaranteed no longer, not the one who owns a node. */
static void a_recovery_takes_no_rack_with_a_node_that_is_owed(void **state)
{
    (void)state;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", racks,
             "virtualClusters:\n"
             "  red: {virtualCells: [{cellType: RACK, cellNumber: 1}]}\n"
             "  blue: {virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]}\n"
             "  green: {virtualCells: [{cellType: RACK.NODE.G, cellNumber: 2}]}\n");
    struct world world;
    world_init(&world, yaml);
    recover(&world, (struct found){"g1", "green", "RACK", "c", 0, 1, 0, NULL});
    recover(&world, (struct found){"g2", "green", "RACK", "d", 0, 1, 0, NULL});
    recover(&world, (struct found){"r", "red", "RACK", "a", 0, 2, 0, NULL});
    assert_true(is_guaranteed(&world, "g1"));
    assert_true(is_guaranteed(&world, "g2"));
    assert_false(is_guaranteed(&world, "r"));
    struct ask ask = {.group = "b", .vc = "blue", .priority = 5, .pods = 1, .leaves = 2};
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    world_release(&world);
}

/* A pinned cell is for those who ask for it, even for others of its own virtual cluster. */
static void a_recovery_takes_nothing_of_a_pinned_cell(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TYPES CELLS "virtualClusters:\n"
                                   "  red:\n"
                                   "    virtualCells: [{cellType: BOX, cellNumber: 1}]\n"
                                   "    pinnedCells: [{pinnedCellId: pin}]\n");
    recover(&world, (struct found){"inside", "red", "DUO", "a", 0, 2, 0, "BOX"});
    assert_false(is_guaranteed(&world, "inside"));
    recover(&world, (struct found){"outside", "red", "BOX", "c", 0, 2, 0, NULL});
    assert_true(is_guaranteed(&world, "outside"));
    world_release(&world);
}

/* Of two that are recovered on one device the second is guaranteed nothing, not even the rest. */
static void a_device_has_one_owner(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TYPES CELLS "virtualClusters:\n"
                                   "  red: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n");
    recover(&world, (struct found){"first", "red", "BOX", "c", 0, 2, 0, NULL});
    recover(&world, (struct found){"second", "red", "BOX", "c", 1, 2, 0, NULL});
    assert_true(is_guaranteed(&world, "first"));
    assert_false(is_guaranteed(&world, "second"));
    hived_group_end(world.hived, "second");
    check(&world);
    hived_group_end(world.hived, "first");
    check(&world);
    uint16_t free[4];
    assert_int_equal(hived_node_free(world.hived, "c", "G", free, 4), 4);
    world_release(&world);
}

/* Round bad nodes only what nobody else needs is split: the row that is whole is owed as two racks,
 * so that a node of it would leave its owner with one. */
static void a_row_of_racks_that_are_owed_is_not_split(void **state)
{
    (void)state;
    static const char yaml[] =
        "physicalCluster:\n"
        "  cellTypes:\n"
        "    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"
        "    RACK: {childCellType: NODE, childCellNumber: 2}\n"
        "    ROW: {childCellType: RACK, childCellNumber: 2}\n"
        "  physicalCells:\n"
        "  - cellType: ROW\n"
        "    cellChildren: [{cellChildren: [{cellAddress: a}, {cellAddress: b}]},\n"
        "      {cellChildren: [{cellAddress: c}, {cellAddress: d}]}]\n"
        "  - cellType: ROW\n"
        "    cellChildren: [{cellChildren: [{cellAddress: e}, {cellAddress: f}]},\n"
        "      {cellChildren: [{cellAddress: g}, {cellAddress: h}]}]\n"
        "virtualClusters:\n"
        "  red: {virtualCells: [{cellType: ROW.RACK.NODE, cellNumber: 2}]}\n"
        "  blue: {virtualCells: [{cellType: ROW.RACK, cellNumber: 2}]}\n"
        "  green: {virtualCells: [{cellType: ROW.RACK, cellNumber: 1}]}\n";
    for (int is_owed = 0; is_owed < 2; is_owed++) {
        struct world world;
        world_init(&world, yaml);
        recover(&world, (struct found){"g", "green", "ROW", "e", 0, 2, 0, NULL});
        recover(&world, (struct found){"r1", "red", "ROW", "g", 0, 2, 0, NULL});
        hived_node_set(world.hived, "h", !is_owed);
        struct ask ask = {.group = "r2", .vc = "red", .pods = 1, .leaves = 2};
        assert_int_equal(world_ask(&world, ask).kind, is_owed ? HIVED_WAIT : HIVED_BIND);
        check(&world);
        ask = (struct ask){.group = "b", .vc = "blue", .priority = 5, .pods = 4, .leaves = 2};
        assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
        check(&world);
        world_release(&world);
    }
}

/* A gang that takes a rack and a node of its own quota at once: the rack that it takes is no longer
 * owed to it when another is split for the node. */
static void what_a_gang_takes_is_not_owed_to_it_any_more(void **state)
{
    (void)state;
    static const char *const quotas[] = {
        "  red: {virtualCells: [{cellType: RACK, cellNumber: 1}, {cellType: RACK.NODE, cellNumber: "
        "1}]}\n",
        "  red: {virtualCells: [{cellType: RACK.NODE, cellNumber: 1}, {cellType: RACK, cellNumber: "
        "1}]}\n",
    };
    for (size_t i = 0; i < COUNT_OF(quotas); i++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml, "%s%s%s%s", racks,
                 "  - {cellType: RACK, cellChildren: [{cellAddress: e}, {cellAddress: f}]}\n"
                 "virtualClusters:\n",
                 quotas[i], "  green: {virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]}\n");
        struct world world;
        world_init(&world, yaml);
        recover(&world, (struct found){"g", "green", "RACK", "e", 0, 2, 0, NULL});
        hived_node_set(world.hived, "f", false);
        struct ask ask = {.group = "r", .vc = "red", .priority = 5, .pods = 3, .leaves = 2};
        assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
        check(&world);
        world_release(&world);
    }
}

static const char two_nodes[] =
    "physicalCluster:\n"
    "  cellTypes: {NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: NODE, cellAddress: a}, {cellType: NODE, cellAddress: b}]\n"
    "virtualClusters:\n";

/* The quota has become smaller: the one of higher priority keeps it, whoever was recovered first,
 * and a preemption for the one of lower priority is given up. */
static void the_higher_priority_keeps_the_quota(void **state)
{
    (void)state;
    for (int is_preempting = 0; is_preempting < 2; is_preempting++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml, "%s%s", two_nodes,
                 "  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n");
        struct world world;
        world_init(&world, yaml);
        recover(&world, (struct found){"low", "red", "NODE", "a", 0, 2, 0, NULL});
        struct ask ask = {.group = "p", .vc = "red", .priority = 1, .pods = 1, .leaves = 2};
        hived_node_set(world.hived, "b", false);
        if (is_preempting)
            assert_int_equal(world_ask(&world, ask).kind, HIVED_PREEMPT);
        hived_node_set(world.hived, "b", true);
        recover(&world, (struct found){"high", "red", "NODE", "b", 0, 2, 5, "NODE"});
        struct hived_group_view view;
        assert_false(hived_group_find(world.hived, "p", &view));
        assert_false(is_guaranteed(&world, "low"));
        assert_true(is_guaranteed(&world, "high"));
        world_release(&world);
    }
}

/* Nobody recorded in which cell of the quota it was: a free one is taken before one in use, so that
 * both keep their guarantee. */
static void a_free_cell_is_guessed_before_one_in_use(void **state)
{
    (void)state;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", two_nodes,
             "  red: {virtualCells: [{cellType: NODE.G, cellNumber: 1}, {cellType: NODE, "
             "cellNumber: 1}]}\n");
    struct world world;
    world_init(&world, yaml);
    recover(&world, (struct found){"r1", "red", "NODE", "a", 0, 1, 0, NULL});
    recover(&world, (struct found){"r2", "red", "NODE", "b", 0, 1, 5, NULL});
    assert_true(is_guaranteed(&world, "r1"));
    assert_true(is_guaranteed(&world, "r2"));
    world_release(&world);
}

/* A decision that is not taken costs a lazy gang nothing: whoever is committed instead. */
static void a_decision_not_taken_downgrades_nobody(void **state)
{
    (void)state;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", two_nodes,
             "  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n");
    struct world world;
    world_init(&world, yaml);
    struct ask lazy = {.group = "lazy", .vc = "red", .pods = 1, .leaves = 2, .is_lazy = true};
    assert_int_equal(world_ask(&world, lazy).kind, HIVED_BIND);
    struct ask ask = {
        .group = "x", .vc = "red", .priority = 5, .pods = 1, .leaves = 2, .is_not_committed = true};
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    recover(&world, (struct found){"other", "red", "NODE", "b", 0, 1, -1, NULL});
    assert_true(is_guaranteed(&world, "lazy"));
    world_release(&world);
}

/* Two preempt one victim, and one of them gives up: the victim must still go. */
static void a_victim_of_two_is_not_pardoned_by_one(void **state)
{
    (void)state;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", racks,
             "virtualClusters:\n"
             "  red: {virtualCells: [{cellType: RACK.NODE, cellNumber: 4}]}\n");
    struct world world;
    world_init(&world, yaml);
    struct ask low = {.group = "low", .vc = "red", .pods = 4, .leaves = 2};
    assert_int_equal(world_ask(&world, low).kind, HIVED_BIND);
    struct ask first = {.group = "p1", .vc = "red", .priority = 5, .pods = 2, .leaves = 2};
    assert_int_equal(world_ask(&world, first).kind, HIVED_PREEMPT);
    struct ask second = {.group = "p2", .vc = "red", .priority = 5, .pods = 2, .leaves = 2};
    assert_int_equal(world_ask(&world, second).kind, HIVED_PREEMPT);
    static const char *const preemptors[] = {"p1", "p2"};
    for (size_t i = 0; i < COUNT_OF(preemptors); i++) {
        struct hived_group_view view;
        hived_group_end(world.hived, preemptors[i]);
        check(&world);
        assert_true(hived_group_find(world.hived, "low", &view));
        assert_int_equal(view.state, i ? HIVED_GROUP_ALLOCATED : HIVED_GROUP_BEING_PREEMPTED);
    }
    world_release(&world);
}

/* Both nodes that a gang had reserved have failed meanwhile: when it gives up, its virtual cluster
 * is shown both as bad at once. */
static void a_preemption_given_up_dooms_all_its_cells(void **state)
{
    (void)state;
    struct world world;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", racks,
             "virtualClusters:\n"
             "  red: {virtualCells: [{cellType: RACK.NODE, cellNumber: 4}]}\n");
    world_init(&world, yaml);
    struct ask low = {.group = "low", .vc = "red", .priority = -1, .pods = 4, .leaves = 2};
    assert_int_equal(world_ask(&world, low).kind, HIVED_BIND);
    struct ask high = {.group = "high", .vc = "red", .priority = 5, .pods = 4, .leaves = 2};
    assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
    static const char *const nodes[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        hived_node_set(world.hived, nodes[i], false);
    check(&world);
    hived_group_end(world.hived, "high");
    check(&world);
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        hived_node_set(world.hived, nodes[i], true);
        check(&world);
    }
    world_release(&world);
}

/* A group that is told to end for another goes on as if nothing had been when that gives up: in its
 * state, in its cells, and in the quota of its virtual cluster. */
static void a_pardon_gives_everything_back(void **state)
{
    (void)state;
    struct world world;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", racks,
             "virtualClusters:\n"
             "  red: {virtualCells: [{cellType: RACK.NODE, cellNumber: 4}]}\n");
    for (int priority = -1; priority < 2; priority++) {
        world_init(&world, yaml);
        struct ask low = {
            .group = "low", .vc = "red", .priority = priority, .pods = 4, .leaves = 2};
        assert_int_equal(world_ask(&world, low).kind, HIVED_BIND);
        uint32_t count;
        struct hived_quota before = *hived_vc_quota(world.hived, 0, &world.arena, &count);
        struct ask high = {.group = "high", .vc = "red", .priority = 5, .pods = 2, .leaves = 2};
        assert_int_equal(world_ask(&world, high).kind, HIVED_PREEMPT);
        struct hived_group_view view;
        assert_true(hived_group_find(world.hived, "low", &view));
        assert_int_equal(view.state, HIVED_GROUP_BEING_PREEMPTED);
        check(&world);
        hived_group_end(world.hived, "high");
        check(&world);
        assert_true(hived_group_find(world.hived, "low", &view));
        assert_int_equal(view.state, HIVED_GROUP_ALLOCATED);
        assert_int_equal(view.has_virtual, priority >= 0);
        assert_int_equal(view.priority, priority);
        struct hived_quota after = *hived_vc_quota(world.hived, 0, &world.arena, &count);
        assert_int_equal(after.used, before.used);
        assert_int_equal(after.oppo, before.oppo);
        world_release(&world);
    }
}

/* Who waits for his victims loses what he reserved to a higher priority. */
static void a_preemptor_is_preempted(void **state)
{
    (void)state;
    struct world world;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%s%s", racks,
             "virtualClusters:\n"
             "  red: {virtualCells: [{cellType: RACK.NODE, cellNumber: 4}]}\n");
    world_init(&world, yaml);
    struct ask ask = {.group = "low", .vc = "red", .pods = 4, .leaves = 2};
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    static const char *const names[] = {"mid", "top"};
    struct hived_group_view view;
    for (int i = 0; i < 2; i++) {
        ask.group = names[i], ask.priority = 5 + i;
        assert_int_equal(world_ask(&world, ask).kind, HIVED_PREEMPT);
        check(&world);
        assert_true(hived_group_find(world.hived, names[i], &view));
        assert_int_equal(view.state, HIVED_GROUP_PREEMPTING);
    }
    assert_false(hived_group_find(world.hived, "mid", &view));
    hived_group_end(world.hived, "low");
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    check(&world);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_recovery_splits_no_node_that_is_owed),
    cmocka_unit_test(a_recovery_takes_no_rack_with_a_node_that_is_owed),
    cmocka_unit_test(a_recovery_takes_nothing_of_a_pinned_cell),
    cmocka_unit_test(a_device_has_one_owner),
    cmocka_unit_test(a_row_of_racks_that_are_owed_is_not_split),
    cmocka_unit_test(what_a_gang_takes_is_not_owed_to_it_any_more),
    cmocka_unit_test(the_higher_priority_keeps_the_quota),
    cmocka_unit_test(a_free_cell_is_guessed_before_one_in_use),
    cmocka_unit_test(a_decision_not_taken_downgrades_nobody),
    cmocka_unit_test(a_victim_of_two_is_not_pardoned_by_one),
    cmocka_unit_test(a_preemption_given_up_dooms_all_its_cells),
    cmocka_unit_test(a_pardon_gives_everything_back),
    cmocka_unit_test(a_preemptor_is_preempted),
};
UNIT_FILE(tests, NULL, NULL);
