/* Placements given to HiveD: by recoveries, by pods out of order, by nobody.
 *
 * Covers: src/hived/copy.c, src/hived/demote.c */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"
#include "hived_view.h"

static const char two_boxes[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    PAIR: {childCellType: G, childCellNumber: 2}\n"
    "    BOX: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}\n"
    "  physicalCells: [{cellType: BOX, cellAddress: a}, {cellType: BOX, cellAddress: b}]\n"
    "virtualClusters:\n"
    "  red: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n"
    "  blue: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n"
    "  none: {}\n";

static const uint16_t all[] = {0, 1, 2, 3}, back[] = {3, 2, 1, 0};

/* In pieces, which is the same as at once. */
static struct hived *copy_of(const struct hived *hived)
{
    struct hived *copy = NULL;
    uint32_t pieces = 0;
    bool is_whole = false;
    for (; !is_whole; pieces++) {
        uint32_t cells = 1;
        is_whole = hived_copy_some(hived, &copy, &cells);
    }
    assert_true(pieces > 1 || hived_is_pending(hived)); /* then no question may come between */
    return copy;
}

/* A gang of two pods of two leaves, on one node. */
struct gang {
    struct hived_member member;
    struct hived_request request;
    struct hived_slot slots[2];
    struct hived_placement placement;
};

static void gang_init(struct gang *gang, const char *name, const char *vc, const char *node)
{
    *gang = (struct gang){.member = {.pods = 2, .leaves = 2}};
    gang->request = (struct hived_request){
        .group = name, .virtual_cluster = vc, .members = &gang->member, .member_count = 1};
    gang->slots[0] = (struct hived_slot){.node = node, .leaf_count = 2, .indices = all};
    gang->slots[1] = (struct hived_slot){.node = node, .leaf_count = 2, .indices = all + 2};
    gang->placement =
        (struct hived_placement){.chain = "BOX", .slots = gang->slots, .slot_count = 2};
}

static int gang_commit(struct world *world, const struct gang *gang)
{
    struct err err = {0};
    int code = hived_commit_gang(world->hived, &gang->request, &gang->placement, 0, &err);
    assert_int_equal(err.code, code);
    assert_int_equal(hived_check(world->hived, &err), 0);
    return code;
}

static int pod_commit(struct world *world, const struct gang *gang, const char *pod, uint32_t slot,
                      const struct hived_placement *placement)
{
    struct err err = {0};
    struct hived_ask ask = {.request = &gang->request, .pod = pod};
    int code = hived_commit(world->hived, &ask, placement, slot, &err);
    assert_int_equal(hived_check(world->hived, &err), 0);
    return code;
}

static bool is_guaranteed(struct world *world, const char *group)
{
    struct hived_group_view view;
    assert_true(hived_group_find(world->hived, group, &view));
    return view.has_virtual;
}

static void wrong_commits_change_nothing(void **state)
{
    (void)state;
    struct gang gangs[8];
    for (size_t i = 0; i < COUNT_OF(gangs); i++)
        gang_init(&gangs[i], "g", "red", "a");
    gangs[0].request.virtual_cluster = "";
    gangs[1].request.virtual_cluster = NULL;
    gangs[2].request.group = NULL;
    gangs[3].request.priority = HIVED_PRIORITY_MAX + 1;
    gangs[4].placement.slot_count = 0;
    gangs[5].placement.slot_count = HIVED_GANG_PODS_MAX + 1;
    gangs[6].slots[1].leaf_count = 0;
    gangs[7].slots[1].leaf_count = HIVED_LEAVES_MAX;
    struct world world;
    world_init(&world, two_boxes);
    for (size_t i = 0; i < COUNT_OF(gangs); i++) {
        struct hived_group_view view;
        assert_int_equal(gang_commit(&world, &gangs[i]), i == 7 ? ERR_TOO_BIG : ERR_INVALID);
        if (i != 4)
            assert_true(pod_commit(&world, &gangs[i], "p", 0, &gangs[i].placement) < 0);
        assert_false(hived_group_find(world.hived, "g", &view));
    }
    world_release(&world);
}

/* Members as they cannot be in an annotation. */
static void wrong_members_are_refused(void **state)
{
    (void)state;
    static const struct hived_member wrong[] = {
        {.pods = 0, .leaves = 1},
        {.pods = 1, .leaves = 0},
        {.pods = HIVED_GANG_PODS_MAX + 1, .leaves = 1},
        {.pods = 2, .leaves = HIVED_LEAVES_MAX},
    };
    struct world world;
    world_init(&world, two_boxes);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(world_refuse(&world, (struct ask){.group = "g",
                                                           .vc = "red",
                                                           .pods = wrong[i].pods,
                                                           .leaves = wrong[i].leaves}),
                         ERR_INVALID);
    struct gang gang;
    gang_init(&gang, "g", "red", "a");
    const uint32_t counts[] = {0, HIVED_MEMBERS_MAX + 1};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        gang.request.member_count = counts[i];
        assert_int_equal(gang_commit(&world, &gang), ERR_INVALID);
    }
    world_release(&world);
}

/* Pods tell where they run, whatever slot they are thought to be of. */
static void pods_are_known_by_their_devices(void **state)
{
    (void)state;
    struct world world;
    struct gang gang;
    world_init(&world, two_boxes);
    gang_init(&gang, "g", "red", "a");
    struct hived_slot swapped[] = {gang.slots[1], gang.slots[0]}, unknown = gang.slots[0],
                      larger = gang.slots[0];
    const struct hived_placement other = {.chain = "BOX", .slots = swapped, .slot_count = 2};
    assert_int_equal(pod_commit(&world, &gang, "p0", 0, &gang.placement), 0);
    assert_int_equal(pod_commit(&world, &gang, "p1", 0, &other), 0); /* slot 1 in truth */
    assert_true(hived_pod_end_named(world.hived, "g", "p0"));
    assert_false(hived_pod_end(world.hived, "g", 0)); /* that was p0's */
    assert_int_equal(pod_commit(&world, &gang, "p2", 0, &gang.placement), 0);
    unknown.node = "b";
    larger.leaf_count = 4;
    const struct hived_placement nowhere = {.chain = "BOX", .slots = &unknown, .slot_count = 1},
                                 four = {.chain = "BOX", .slots = &larger, .slot_count = 1};
    assert_int_equal(pod_commit(&world, &gang, "p3", 0, &nowhere), ERR_INVALID);
    assert_int_equal(pod_commit(&world, &gang, "p3", 0, &four), ERR_INVALID);
    unknown.node = "a";
    unknown.indices = back; /* 3 is the second device of a slot, not its first */
    assert_int_equal(pod_commit(&world, &gang, "p3", 0, &nowhere), ERR_INVALID);
    assert_false(hived_pod_end(world.hived, "nobody", 0));
    assert_false(hived_pod_end_named(world.hived, "nobody", "p"));
    hived_group_end(world.hived, "nobody");
    hived_pod_cancel(world.hived, "nobody", "p", UINT32_MAX);
    hived_pod_cancel(world.hived, "g", "p1", UINT32_MAX); /* it runs: nothing to cancel */
    assert_true(hived_pod_end_named(world.hived, "g", "p1"));
    assert_true(hived_pod_end_named(world.hived, "g", "p2"));
    world_release(&world);
}

/* Devices that are no longer there are remembered: the pods on them are still the gang's. */
static void lost_devices_keep_their_pods(void **state)
{
    (void)state;
    struct world world;
    struct gang gang;
    world_init(&world, two_boxes);
    gang_init(&gang, "g", "red", "gone");
    static const char *const types[] = {"BOX", "BOX"};
    gang.slots[0].preassigned = types;
    gang.slots[1].node = "a";
    gang.placement.chain = NULL; /* it was not recorded */
    assert_int_equal(pod_commit(&world, &gang, "p0", 0, &gang.placement), 0);
    assert_int_equal(pod_commit(&world, &gang, "p1", 1, &gang.placement), 0);
    struct hived_slot other = gang.slots[0];
    const struct hived_placement nowhere = {.chain = "", .slots = &other, .slot_count = 1};
    other.node = "lost";
    assert_int_equal(pod_commit(&world, &gang, "p2", 0, &nowhere), ERR_INVALID);
    other.node = "gone";
    other.indices = all + 1;
    assert_int_equal(pod_commit(&world, &gang, "p2", 0, &nowhere), ERR_INVALID);
    const char *node;
    uint16_t indices[2];
    assert_int_equal(hived_group_slot(world.hived, "g", 0, &node, indices, 2), 0);
    assert_int_equal(hived_group_slot(world.hived, "g", 1, &node, indices, 1), 2);
    assert_string_equal(node, "a");
    assert_int_equal(indices[0], 2);
    assert_int_equal(hived_group_slot(world.hived, "g", 2, &node, indices, 2), 0);
    assert_int_equal(hived_group_slot(world.hived, "nobody", 0, &node, indices, 2), 0);
    struct hived *copy = copy_of(world.hived); /* with what was lost */
    struct err err = {0};
    assert_int_equal(hived_check(copy, &err), 0);
    assert_true(hived_pod_end(copy, "g", 0) && hived_pod_end(copy, "g", 1));
    hived_free(copy);
    assert_true(hived_pod_end_named(world.hived, "g", "p0"));
    assert_true(hived_pod_end_named(world.hived, "g", "p1"));
    world_release(&world);
}

/* What was recorded of the virtual cells, and whether it can still be so. */
static void recorded_types_decide_about_the_guarantee(void **state)
{
    (void)state;
    static const struct {
        const char *vc, *types[2];
        bool is_guaranteed;
    } cases[] = {
        {"red", {"BOX", "BOX"}, true},    {"red", {"", ""}, false}, /* it was opportunistic */
        {"red", {"HALL", "HALL"}, false},                           /* no such cells in the chain */
        {"red", {"PAIR", "PAIR"}, false}, /* none of these in the virtual cluster */
        {"red", {"BOX", ""}, false},      /* one half is none */
        {"none", {"BOX", "BOX"}, false},  {"ghost", {"BOX", "BOX"}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        struct gang gang;
        world_init(&world, two_boxes);
        gang_init(&gang, "g", cases[i].vc, "a");
        const char *const first[] = {cases[i].types[0], cases[i].types[0]}, *const second[] = {
                                                                                cases[i].types[1],
                                                                                cases[i].types[1]};
        gang.slots[0].preassigned = first;
        gang.slots[1].preassigned = second;
        assert_int_equal(gang_commit(&world, &gang), 0);
        assert_int_equal(is_guaranteed(&world, "g"), cases[i].is_guaranteed);
        hived_group_end(world.hived, "g");
        gang_init(&gang, "h", cases[i].vc, "a"); /* nothing recorded: what fits best */
        assert_int_equal(gang_commit(&world, &gang), 0);
        assert_int_equal(is_guaranteed(&world, "h"), strcmp(cases[i].vc, "red") == 0);
        world_release(&world);
    }
}

/* Two gangs recovered for one virtual cell: of equal priority the first keeps it; and of two on one
 * device the first keeps the device. */
static void the_first_recovered_keeps_its_place(void **state)
{
    (void)state;
    struct world world;
    struct gang first, second, third;
    world_init(&world, two_boxes);
    gang_init(&first, "first", "red", "a");
    gang_init(&second, "second", "red", "b");
    gang_init(&third, "third", "blue", "b");
    assert_int_equal(gang_commit(&world, &first), 0);
    assert_int_equal(gang_commit(&world, &second), 0);
    assert_true(is_guaranteed(&world, "first"));
    assert_false(is_guaranteed(&world, "second"));
    assert_int_equal(gang_commit(&world, &third), 0);
    assert_false(is_guaranteed(&world, "third"));
    const char *node;
    uint16_t indices[2];
    assert_int_equal(hived_group_slot(world.hived, "third", 0, &node, indices, 2), 0);
    world_release(&world);
}

static uint32_t leaf_count(struct world *world, const char *group)
{
    const char *node;
    uint16_t indices[4];
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < 2; slot++)
        count += hived_group_slot(world->hived, group, slot, &node, indices, COUNT_OF(indices));
    return count;
}

/* … until it ends: the second runs there as well, and nobody else may be put on top of it. */
static void the_second_recovered_comes_next(void **state)
{
    (void)state;
    struct world world;
    struct gang first, second, third;
    struct err err = {0};
    world_init(&world, two_boxes);
    gang_init(&first, "first", "red", "a");
    gang_init(&second, "second", "blue", "a");
    gang_init(&third, "third", "blue", "a");
    assert_int_equal(gang_commit(&world, &first), 0);
    assert_int_equal(gang_commit(&world, &second), 0);
    assert_int_equal(gang_commit(&world, &third), 0);
    assert_int_equal(leaf_count(&world, "second"), 0);
    struct hived *copy = copy_of(world.hived);
    hived_group_end(copy, "second"); /* it has nothing to give */
    hived_group_end(copy, "first");
    assert_int_equal(hived_check(copy, &err), 0);
    assert_int_equal(hived_node_free(copy, "a", "G", NULL, 0), 0);
    hived_free(copy);
    hived_pod_end(world.hived, "first", 0);
    assert_int_equal(leaf_count(&world, "second"), 0);
    hived_pod_end(world.hived, "first", 1);
    assert_int_equal(hived_check(world.hived, &err), 0);
    assert_int_equal(leaf_count(&world, "second"), 4);
    assert_false(is_guaranteed(&world, "second"));
    hived_group_end(world.hived, "second");
    assert_int_equal(leaf_count(&world, "third"), 4);
    hived_group_end(world.hived, "third");
    assert_int_equal(hived_check(world.hived, &err), 0);
    assert_int_equal(hived_node_free(world.hived, "a", "G", NULL, 0), 4);
    world_release(&world);
}

/* A preemptor of the first that was found on a device preempts the second as well. */
static void the_second_recovered_is_preempted_next(void **state)
{
    (void)state;
    struct world world;
    struct gang first, second, high, other;
    struct err err = {0};
    world_init(&world, two_boxes);
    gang_init(&first, "first", "red", "a");
    gang_init(&second, "second", "blue", "a");
    gang_init(&high, "high", "red", "a");
    gang_init(&other, "other", "blue", "b");
    other.request.priority = 9;
    assert_int_equal(gang_commit(&world, &first), 0);
    assert_int_equal(gang_commit(&world, &second), 0);
    assert_int_equal(gang_commit(&world, &other), 0);
    high.request.priority = 5;
    struct hived_ask ask = {.request = &high.request, .pod = "p", .phase = HIVED_PREEMPTING};
    struct hived_result result;
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.kind, HIVED_PREEMPT);
    assert_string_equal(result.victims[0].group, "first");
    for (int way = 0; way < 2; way++) {
        struct hived *copy = copy_of(world.hived);
        hived_group_end(copy, "first");
        assert_int_equal(hived_check(copy, &err), 0);
        assert_int_equal(hived_schedule(copy, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_PREEMPT);
        assert_string_equal(result.victims[0].group, "second");
        hived_group_end(copy, way ? "high" : "second");
        assert_int_equal(hived_check(copy, &err), 0);
        assert_int_equal(hived_node_free(copy, "a", "G", NULL, 0), 0);
        if (!way)
            assert_int_equal(hived_commit_gang(copy, &high.request, &high.placement, 0, &err), 0);
        assert_int_equal(hived_check(copy, &err), 0);
        hived_free(copy);
    }
    world_release(&world);
}

/* A gang that preempts cannot start before its victims have ended. */
static void victims_must_end_first(void **state)
{
    (void)state;
    struct world world;
    struct gang low, high;
    world_init(&world, two_boxes);
    gang_init(&low, "low", "red", "a");
    assert_int_equal(gang_commit(&world, &low), 0);
    gang_init(&high, "high", "red", "a");
    high.request.priority = 5;
    struct hived_ask ask = {.request = &high.request, .pod = "p0", .phase = HIVED_PREEMPTING};
    struct hived_result result;
    struct err err = {0};
    const char *const pods[] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    for (size_t i = 0; i < 2 * COUNT_OF(pods); i++) { /* they ask again and again */
        ask.pod = i == 3 ? NULL : pods[i % COUNT_OF(pods)];
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_PREEMPT);
    }
    assert_int_equal(gang_commit(&world, &high), ERR_CONFLICT);
    struct hived *copy = copy_of(world.hived);
    hived_group_end(copy, "low");
    assert_int_equal(hived_commit_gang(copy, &high.request, &high.placement, 0, &err), 0);
    assert_int_equal(hived_check(copy, &err), 0);
    hived_free(copy);
    hived_pod_cancel(world.hived, "high", "unknown", UINT32_MAX);
    for (size_t i = 0; i + 1 < COUNT_OF(pods); i++)
        hived_pod_cancel(world.hived, "high", pods[i], UINT32_MAX);
    struct hived_group_view view;
    assert_true(hived_group_find(world.hived, "high", &view)); /* one pod still waits */
    hived_pod_cancel(world.hived, "high", pods[COUNT_OF(pods) - 1], UINT32_MAX);
    assert_false(hived_group_find(world.hived, "high", &view));
    assert_true(is_guaranteed(&world, "low"));
    world_release(&world);
}

/* The node turns bad whose users have ended for a gang: it is placed elsewhere, whether it asks to
 * preempt or merely where to go. */
static void places_that_turned_bad_are_given_up(void **state)
{
    (void)state;
    static const enum hived_phase phases[] = {HIVED_FILTERING, HIVED_PREEMPTING};
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        struct world world;
        struct gang low, high;
        struct err err = {0};
        world_init(&world, two_boxes);
        gang_init(&low, "low", "red", "a");
        assert_int_equal(gang_commit(&world, &low), 0);
        gang_init(&high, "high", "red", "a");
        high.request.priority = 5;
        struct hived_ask ask = {.request = &high.request, .pod = "p", .phase = HIVED_PREEMPTING};
        struct hived_result result;
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_PREEMPT);
        hived_group_end(world.hived, "low");
        hived_node_set(world.hived, "a", false);
        ask.phase = phases[i];
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_BIND);
        assert_string_equal(result.placement.slots[0].node, "b");
        assert_int_equal(hived_commit_gang(world.hived, &high.request, &result.placement, 0, &err),
                         0);
        assert_int_equal(hived_check(world.hived, &err), 0);
        world_release(&world);
    }
}

/* A decision that would displace lazy gangs is forgotten with the object that made it; its copy may
 * still commit it. */
static void copies_have_the_decision(void **state)
{
    (void)state;
    struct world world;
    struct gang lazy, high;
    struct err err = {0};
    world_init(&world, two_boxes);
    gang_init(&lazy, "lazy", "red", "a");
    lazy.request.is_lazy = true;
    assert_int_equal(gang_commit(&world, &lazy), 0);
    gang_init(&high, "high", "red", "b");
    high.request.priority = 5;
    const struct hived_ask ask = {.request = &high.request, .phase = HIVED_PREEMPTING};
    struct hived_result result;
    assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
    assert_int_equal(result.kind, HIVED_BIND); /* on b: lazy goes on as opportunistic */
    struct hived *copy = copy_of(world.hived), *idle = copy_of(copy);
    assert_int_equal(hived_commit_gang(copy, &high.request, &result.placement, 0, &err), 0);
    struct hived_group_view view;
    assert_true(hived_group_find(copy, "lazy", &view) && !view.has_virtual);
    assert_int_equal(hived_check(copy, &err), 0);
    hived_free(copy);
    hived_free(idle);
    assert_true(is_guaranteed(&world, "lazy")); /* asked for anything else, it is forgotten */
    world_release(&world);
}

static const char two_pins[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    BOX: {childCellType: G, childCellNumber: 4, isNodeLevel: true}\n"
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"
    "  physicalCells:\n"
    "  - {cellType: DUO, cellChildren: [{cellAddress: a}, {cellAddress: b, pinnedCellId: p}]}\n"
    "  - {cellType: BOX, cellAddress: c, pinnedCellId: q}\n"
    "  - {cellType: BOX, cellAddress: d, pinnedCellId: r}\n"
    "virtualClusters:\n"
    "  red: {pinnedCells: [{pinnedCellId: p}, {pinnedCellId: r}]}\n"
    "  blue: {pinnedCells: [{pinnedCellId: q}]}\n";

/* Each pinned cell by its own name, in its own virtual cluster. */
static void pins_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *vc, *pin, *node;
    } cases[] = {{"red", "p", "b"},  {"red", "r", "d"},   {"blue", "q", "c"},
                 {"red", "q", NULL}, {"blue", "p", NULL}, {"red", "x", NULL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        struct gang gang;
        world_init(&world, two_pins);
        struct ask ask = {
            .group = "g", .vc = cases[i].vc, .pin = cases[i].pin, .pods = 2, .leaves = 2};
        gang_init(&gang, "g", cases[i].vc, cases[i].node ? cases[i].node : "a");
        gang.request.pinned_cell = cases[i].pin;
        if (cases[i].node) {
            assert_string_equal(world_ask(&world, ask).placement.slots[1].node, cases[i].node);
            hived_reconfigure(world.hived, world_config_good(&world.arena, two_pins, ""));
            assert_true(is_guaranteed(&world, "g"));
            hived_group_end(world.hived, "g");
        } else {
            assert_int_equal(world_refuse(&world, ask), ERR_INVALID);
        }
        assert_int_equal(gang_commit(&world, &gang), 0); /* recovered: in the pin, or without */
        assert_int_equal(is_guaranteed(&world, "g"), cases[i].node != NULL);
        world_release(&world);
    }
}

static void levels_of_slots(void **state)
{
    (void)state;
    static const uint16_t beyond[] = {0, 9};
    const struct {
        struct hived_slot slot;
        uint8_t level;
    } cases[] = {
        {{.node = "a", .leaf_count = 1, .indices = all}, 1},
        {{.node = "a", .leaf_count = 2, .indices = all}, 2},
        {{.node = "a", .leaf_count = 2, .indices = all + 1}, 3}, /* of two pairs */
        {{.node = "a", .leaf_count = 4, .indices = back}, 3},
        {{.node = "ghost", .leaf_count = 1, .indices = all}, 0},
        {{.node = "a", .leaf_count = 2, .indices = beyond}, 0},
        {{.node = "a", .leaf_count = 0, .indices = all}, 0},
    };
    struct world world;
    world_init(&world, two_boxes);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hived_slot slot = cases[i].slot;
        struct hived_placement placement = {.chain = "BOX", .slots = &slot, .slot_count = 1};
        assert_int_equal(hived_slot_level(world.hived, &placement, 0), cases[i].level);
    }
    world_release(&world);
}

/* Pinned to one, shared by two, of a chain that one has for itself, cut in two, nobody's. */
static void a_node_may_be_of_one_virtual_cluster(void **state)
{
    static const char text[] =
        "physicalCluster:\n"
        "  cellTypes:\n"
        "    HALF: {childCellType: G, childCellNumber: 2}\n"
        "    BOX: {childCellType: HALF, childCellNumber: 2, isNodeLevel: true}\n"
        "    DUO: {childCellType: BOX, childCellNumber: 2}\n"
        "    OWN: {childCellType: H, childCellNumber: 2, isNodeLevel: true}\n"
        "    NOT: {childCellType: I, childCellNumber: 2, isNodeLevel: true}\n"
        "  physicalCells:\n"
        "  - {cellType: DUO, pinnedCellId: p, cellChildren: [{cellAddress: a}, {cellAddress: b}]}\n"
        "  - {cellType: DUO, cellChildren: [{cellAddress: c}, {cellAddress: d, cellChildren: ["
        "{pinnedCellId: q}, {}]}]}\n"
        "  - {cellType: DUO, cellChildren: [{cellAddress: g, cellChildren: [{pinnedCellId: r}, "
        "{pinnedCellId: s}]}, {cellAddress: h, cellChildren: [{pinnedCellId: t}, "
        "{pinnedCellId: u}]}]}\n"
        "  - {cellType: OWN, cellAddress: e}\n"
        "  - {cellType: NOT, cellAddress: f}\n"
        "virtualClusters:\n"
        "  red: {pinnedCells: [{pinnedCellId: p}, {pinnedCellId: r}, {pinnedCellId: t}], "
        "virtualCells: [{cellType: DUO.BOX.HALF, cellNumber: 1}]}\n"
        "  blue: {pinnedCells: [{pinnedCellId: q}, {pinnedCellId: s}], virtualCells: [{cellType: "
        "DUO.BOX, cellNumber: 1}, {cellType: OWN, cellNumber: 1}]}\n"
        "  green: {pinnedCells: [{pinnedCellId: u}]}\n";
    static const struct {
        const char *node, *owner;
    } cases[] = {{"a", "red"}, {"b", "red"}, {"c", NULL}, {"d", NULL},    {"e", "blue"},
                 {"f", NULL},  {"g", NULL},  {"h", NULL}, {"ghost", NULL}};
    struct world world;
    (void)state;
    world_init(&world, text);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *owner = hived_node_owner(world.hived, cases[i].node);
        if (cases[i].owner)
            assert_string_equal(owner, cases[i].owner);
        else
            assert_null(owner);
    }
    world_release(&world);
}

static void unknown_names_are_nothing(void **state)
{
    (void)state;
    struct world world;
    uint16_t indices[4];
    bool is_free = true;
    world_init(&world, two_boxes);
    assert_false(hived_node_set(world.hived, "ghost", true));
    assert_int_equal(hived_node_free(world.hived, "ghost", "G", indices, 4), 0);
    assert_int_equal(hived_node_free(world.hived, "a", "H", indices, 4), 0);
    assert_int_equal(hived_node_free(world.hived, "a", "G", indices, 2), 4); /* of four, two told */
    assert_null(hived_node_chain(world.hived, "ghost", "G", 0, &is_free));
    assert_false(is_free);
    assert_null(hived_node_chain(world.hived, "a", "G", 4, &is_free));
    assert_string_equal(hived_node_chain(world.hived, "a", "G", 3, &is_free), "BOX");
    assert_true(is_free);
    assert_true(hived_node_highest(world.hived, "ghost", "G") == HIVED_NONE);
    assert_int_equal(hived_node_highest(world.hived, "a", "G"), 3);
    const char *const nobody[] = {"ghost"}; /* in a scope, too */
    struct hived_scope scope = {.nodes = nobody, .count = 1, .is_avoid = true};
    struct ask ask = {.group = "g", .vc = "red", .pods = 1, .leaves = 4, .scope = &scope};
    ask.is_not_committed = true;
    assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
    scope.is_avoid = false;
    assert_int_equal(world_ask(&world, ask).kind, HIVED_WAIT);
    world_release(&world);
}

/* A hint saves a search, and decides nothing. */
static void hints_may_be_wrong(void **state)
{
    (void)state;
    static const uint32_t hints[] = {0, 1, UINT32_MAX, 1u << 30};
    struct hived_slot slots[4];
    const struct hived_placement placement = {.chain = "BOX", .slots = slots, .slot_count = 4};
    struct world world;
    struct gang gang;
    world_init(&world, two_boxes);
    gang_init(&gang, "g", "red", "a");
    gang.member = (struct hived_member){.pods = 4, .leaves = 1};
    gang.placement = placement;
    for (uint32_t i = 0; i < 4; i++)
        slots[i] = (struct hived_slot){
            .node = "a", .leaf_count = 1, .indices = &back[i], .hints = &hints[i]};
    assert_int_equal(gang_commit(&world, &gang), 0);
    for (uint32_t i = 0; i < 4; i++) {
        const char *node;
        uint16_t index;
        assert_int_equal(hived_group_slot(world.hived, "g", i, &node, &index, 1), 1);
        assert_int_equal(index, back[i]);
        assert_string_equal(node, "a");
    }
    world_release(&world);
}

/* It runs on two boxes, and its virtual cluster owns one: what it has is taken and then downgraded
 * in pieces. `cut`: after so many it ends. Returns how many pieces there were. */
static uint32_t excess_commit(struct world *world, const struct gang *gang, uint32_t cut)
{
    bool is_whole = false;
    uint32_t pieces = 0;
    struct err err = {0};
    for (; !is_whole && pieces < cut; pieces++) {
        assert_int_equal(hived_commit_some(world->hived, &gang->request, &gang->placement, 0, 1,
                                           &is_whole, &err),
                         0);
        assert_int_equal(hived_check(world->hived, &err), 0);
    }
    if (!is_whole)
        while (!hived_group_end_some(world->hived, gang->request.group, 1))
            assert_int_equal(hived_check(world->hived, &err), 0);
    assert_int_equal(hived_check(world->hived, &err), 0);
    return pieces;
}

static void more_than_is_guaranteed_is_downgraded_in_pieces(void **state)
{
    (void)state;
    enum { LEAVES = 4, PIECES = 2 * LEAVES };
    struct gang gang;
    gang_init(&gang, "g", "red", "a");
    gang.slots[1].node = "b";
    struct world whole;
    world_init(&whole, two_boxes);
    assert_int_equal(gang_commit(&whole, &gang), 0);
    for (uint32_t cut = 1; cut < PIECES; cut++) {
        struct world world;
        world_init(&world, two_boxes);
        const char *before = world_inspect(&world, hived_inspect_cluster);
        excess_commit(&world, &gang, cut);
        assert_string_equal(world_inspect(&world, hived_inspect_cluster), before);
        assert_true(excess_commit(&world, &gang, UINT32_MAX) >= PIECES);
        assert_string_equal(world_inspect(&world, hived_inspect_cluster),
                            world_inspect(&whole, hived_inspect_cluster));
        assert_false(is_guaranteed(&world, "g"));
        world_release(&world);
    }
    world_release(&whole);
}

/* The quota shrank: two gangs of one virtual cluster run on two boxes, of which it owns one. The
 * stronger one is told last, and takes its cells. */
static void shrunk_init(struct world *world, struct gang *weak, struct gang *strong)
{
    static const char *boxes[] = {"BOX", "BOX"};
    world_init(world, two_boxes);
    gang_init(weak, "weak", "red", "a");
    gang_init(strong, "strong", "red", "b");
    for (size_t i = 0; i < COUNT_OF(weak->slots); i++) /* as they were told */
        weak->slots[i].preassigned = strong->slots[i].preassigned = boxes;
    weak->request.priority = 1;
    strong->request.priority = 2;
    assert_int_equal(gang_commit(world, weak), 0);
    assert_true(is_guaranteed(world, "weak"));
}

static bool strong_commit_some(struct hived *hived, const struct gang *strong, uint32_t leaves)
{
    struct err err = {0};
    bool is_whole;
    assert_int_equal(
        hived_commit_some(hived, &strong->request, &strong->placement, 0, leaves, &is_whole, &err),
        0);
    if (hived_check(hived, &err))
        fail_msg("%s", err.text);
    return is_whole;
}

/* Leaves that are in use by a virtual cell. */
static uint32_t guaranteed_count(struct world *world)
{
    uint32_t count = 0;
    const char *cells = world_inspect(world, hived_inspect_cluster);
    const char *end = strstr(cells, "\"virtualClusters\"");
    for (const char *at = cells; (at = strstr(at, "\"virtualCell\"")) && at < end; at++)
        count += strncmp(strchr(at, '{'), "{\"cellType\":\"G\"", 16) == 0;
    return count;
}

static void others_are_downgraded_in_pieces(void **state)
{
    (void)state;
    enum { LEAVES = 4, PIECES_LEAST = 2 * LEAVES };
    struct gang weak, strong;
    struct world whole;
    shrunk_init(&whole, &weak, &strong);
    assert_int_equal(gang_commit(&whole, &strong), 0);
    assert_false(is_guaranteed(&whole, "weak"));
    assert_true(is_guaranteed(&whole, "strong"));
    struct world world;
    shrunk_init(&world, &weak, &strong);
    uint32_t pieces = 1;
    for (uint32_t before = guaranteed_count(&world), now;
         !strong_commit_some(world.hived, &strong, 1); before = now, pieces++) {
        now = guaranteed_count(&world);
        assert_in_range(now + 1 - before, 0, 2); /* a piece changes one */
        struct hived *copy = hived_copy(world.hived);
        assert_true(strong_commit_some(copy, &strong, UINT32_MAX));
        assert_int_equal(hived_work_beside(copy), hived_work_beside(whole.hived));
        hived_free(copy);
    }
    assert_true(pieces > PIECES_LEAST);
    assert_int_equal(hived_work_beside(world.hived), hived_work_beside(whole.hived));
    assert_string_equal(world_inspect(&world, hived_inspect_cluster),
                        world_inspect(&whole, hived_inspect_cluster));
    world_release(&world);
    world_release(&whole);
}

enum meanwhile { NOTHING, IT_ENDS, A_NODE_FAILS, A_COPY_GOES_ON, IT_IS_TOLD_AGAIN, MEANWHILES };

static void happens_after_a_downgrade(struct world *world, const struct gang *strong,
                                      enum meanwhile what)
{
    struct hived *copy;
    switch (what) {
    case NOTHING:
        break;
    case IT_ENDS:
        hived_group_end_some(world->hived, "weak", 1);
        break;
    case A_NODE_FAILS:
        assert_true(hived_node_set(world->hived, "a", false));
        break;
    case A_COPY_GOES_ON:
        copy = hived_copy(world->hived);
        hived_free(world->hived);
        world->hived = copy;
        break;
    case IT_IS_TOLD_AGAIN:
        assert_int_equal(gang_commit(world, strong), 0);
        break;
    case MEANWHILES:
        break;
    }
}

/* The commit is given up at any piece: whoever has lost some of its virtual cells loses the rest.
 */
static void a_downgrade_outlives_its_commit(void **state)
{
    (void)state;
    for (int what = 0; what < MEANWHILES; what++) {
        bool is_whole = false;
        uint32_t left_behind = 0;
        for (uint32_t cut = 1; !is_whole; cut++) {
            struct gang weak, strong;
            struct world world;
            struct err err = {0};
            struct hived_group_view view;
            shrunk_init(&world, &weak, &strong);
            for (uint32_t i = 0; i < cut && !is_whole; i++)
                is_whole = strong_commit_some(world.hived, &strong, 1);
            hived_group_end(world.hived, "strong");
            const bool is_demoting = hived_is_demoting(world.hived);
            left_behind += is_demoting;
            assert_int_equal(hived_check(world.hived, &err), 0);
            happens_after_a_downgrade(&world, &strong, (enum meanwhile)what);
            do
                assert_int_equal(hived_check(world.hived, &err), 0);
            while (!hived_demote_some(world.hived, 1));
            assert_false(hived_is_demoting(world.hived));
            assert_int_equal(hived_check(world.hived, &err), 0);
            const bool is_known = hived_group_find(world.hived, "weak", &view);
            assert_true(is_known || what == IT_ENDS);
            if (what != IT_ENDS && is_demoting)
                assert_false(view.has_virtual);
            world_release(&world);
        }
        assert_true(left_behind > 2);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(others_are_downgraded_in_pieces),
    cmocka_unit_test(a_downgrade_outlives_its_commit),
    cmocka_unit_test(more_than_is_guaranteed_is_downgraded_in_pieces),
    cmocka_unit_test(hints_may_be_wrong),
    cmocka_unit_test(wrong_commits_change_nothing),
    cmocka_unit_test(wrong_members_are_refused),
    cmocka_unit_test(pods_are_known_by_their_devices),
    cmocka_unit_test(lost_devices_keep_their_pods),
    cmocka_unit_test(recorded_types_decide_about_the_guarantee),
    cmocka_unit_test(the_first_recovered_keeps_its_place),
    cmocka_unit_test(the_second_recovered_comes_next),
    cmocka_unit_test(the_second_recovered_is_preempted_next),
    cmocka_unit_test(victims_must_end_first),
    cmocka_unit_test(places_that_turned_bad_are_given_up),
    cmocka_unit_test(copies_have_the_decision),
    cmocka_unit_test(pins_are_told_apart),
    cmocka_unit_test(levels_of_slots),
    cmocka_unit_test(a_node_may_be_of_one_virtual_cluster),
    cmocka_unit_test(unknown_names_are_nothing),
};
UNIT_FILE(tests, NULL, NULL);
