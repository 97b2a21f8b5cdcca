/* Habits of the original that only hived_new_imitating has.
 *
 * Covers: src/hived/pack.c, src/hived/bind.c */
#include "unit.h"
#include "world.h"

#include "originals/imitate.h"

#define BOXES                                                                                      \
    TYPES "  physicalCells:\n"                                                                     \
          "  - {cellType: BOX, cellAddress: a}\n"                                                  \
          "  - {cellType: BOX, cellAddress: b}\n"                                                  \
          "  - {cellType: BOX, cellAddress: c}\n"                                                  \
          "virtualClusters:\n"                                                                     \
          "  red: {virtualCells: [{cellType: BOX, cellNumber: 2}]}\n"                              \
          "  blue: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n"

static void init(struct world *world, bool is_imitating, const char *configuration)
{
    world_init_of(world, configuration, is_imitating ? hived_new_imitating : hived_new);
}

static const char *node_of(struct world *world, const char *group)
{
    const char *node = NULL;
    hived_group_slot(world->hived, group, 0, &node, NULL, 0);
    return node ? node : "";
}

/* With 3 and 4 leaves free, 1 + 3 + 3 fits only when the smallest is not placed first. */
static void mixed_gang_waits(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating, BOXES);
        world_ask(&world, (struct ask){.group = "one", .vc = "red", .pods = 1, .leaves = 1});
        struct ask ask = {
            .group = "mix", .vc = "red", .pods = 1, .leaves = 1, .more_pods = 2, .more_leaves = 3};
        struct hived_result result = world_ask(&world, ask);
        assert_int_equal(result.kind, is_imitating ? HIVED_WAIT : HIVED_BIND);
        world_release(&world);
    }
}

/* A node that was not suggested once stays behind its equals for later calls. */
static void suggestion_is_remembered(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating, BOXES);
        const char *avoided[] = {"a"};
        struct hived_scope scope = {.nodes = avoided, .count = 1, .is_avoid = true};
        struct ask ask = {
            .group = "look", .vc = "red", .priority = -1, .pods = 1, .leaves = 4, .scope = &scope};
        world_ask(&world, ask);
        assert_string_equal(node_of(&world, "look"), "b");
        hived_group_end(world.hived, "look");
        ask.group = "next";
        ask.scope = NULL;
        world_ask(&world, ask);
        assert_string_equal(node_of(&world, "next"), is_imitating ? "b" : "a");
        struct hived *copy = hived_copy(world.hived);
        hived_free(world.hived);
        world.hived = copy;
        ask.group = "third";
        world_ask(&world, ask);
        assert_string_equal(node_of(&world, "third"), is_imitating ? "c" : "b");
        world_release(&world);
    }
}

/* A preemption whose nodes are not suggested any more moves, though its group ignores suggestions.
 */
static void preemption_follows_suggestions(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating, BOXES);
        for (int i = 0; i < 3; i++)
            world_ask(&world, (struct ask){.group = (const char *[]){"x", "y", "z"}[i],
                                           .vc = "red",
                                           .priority = -1,
                                           .pods = 1,
                                           .leaves = 4});
        struct hived_member member = {.pods = 1, .leaves = 4};
        struct hived_request request = {
            .group = "high", .virtual_cluster = "red", .members = &member, .member_count = 1};
        struct hived_ask ask = {.request = &request, .pod = "first", .phase = HIVED_PREEMPTING};
        struct hived_result result;
        struct err err = {0};
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_PREEMPT);
        struct hived_scope none = {.is_avoid = false};
        ask.pod = "second";
        ask.scope = &none;
        assert_int_equal(hived_schedule(world.hived, &ask, &world.arena, &result, &err), 0);
        assert_int_equal(result.kind, HIVED_PREEMPT);
        /* anew: the first pod does not wait for it any more */
        hived_pod_cancel(world.hived, "high", "second", UINT32_MAX);
        struct hived_group_view view;
        assert_int_equal(hived_group_find(world.hived, "high", &view), !is_imitating);
        world_release(&world);
    }
}

/* Downgrading the last user of a cell with bad nodes dooms the cell at once, and what was free in
 * it may then stand for bad nodes; we look for doomed cells when the decision is whole. */
static void doom_comes_in_between(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating,
             TYPES "  physicalCells:\n"
                   "  - {cellType: DUO, cellChildren: [{cellAddress: a}, {cellAddress: b}]}\n"
                   "virtualClusters:\n"
                   "  red: {virtualCells: [{cellType: DUO, cellNumber: 1}]}\n");
        world_ask(
            &world,
            (struct ask){.group = "lazy", .vc = "red", .pods = 1, .leaves = 3, .is_lazy = true});
        const char *busy = node_of(&world, "lazy");
        const char *other = *busy == 'a' ? "b" : "a";
        hived_node_set(world.hived, other, false);
        struct ask ask = {.group = "high", .vc = "red", .priority = 1, .pods = 1, .leaves = 2};
        struct hived_result result = world_ask(&world, ask);
        assert_int_equal(result.kind, is_imitating ? HIVED_BIND : HIVED_PREEMPT);
        if (is_imitating)
            assert_string_equal(node_of(&world, "high"), other);
        world_release(&world);
    }
}

/* In the first chain somebody could be displaced; the second one has room. */
static void first_chain_displaces(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating,
             TYPES CELLS "virtualClusters:\n"
                         "  red: {virtualCells: [{cellType: DUO.BOX, cellNumber: 1}, "
                         "{cellType: BOX, cellNumber: 1}]}\n");
        world_ask(&world, (struct ask){.group = "low", .vc = "red", .pods = 1, .leaves = 4});
        struct ask ask = {.group = "high", .vc = "red", .priority = 1, .pods = 1, .leaves = 4};
        struct hived_result result = world_ask(&world, ask);
        assert_int_equal(result.kind, is_imitating ? HIVED_PREEMPT : HIVED_BIND);
        world_release(&world);
    }
}

/* The pieces of a cell that was split in vain stand behind those of the next larger one. */
static void pieces_stay(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating,
             TYPES "  physicalCells:\n"
                   "  - {cellType: DUO, cellChildren: [{cellAddress: a}, {cellAddress: b}]}\n"
                   "  - {cellType: DUO, cellChildren: [{cellAddress: c}, {cellAddress: d}]}\n"
                   "virtualClusters:\n"
                   "  red: {virtualCells: [{cellType: DUO.BOX, cellNumber: 1}, "
                   "{cellType: DUO.BOX.PAIR, cellNumber: 3}]}\n");
        world_ask(&world, (struct ask){.group = "node", .vc = "red", .pods = 1, .leaves = 4});
        const char *used = node_of(&world, "node");
        const char *buddy = (const char *[]){"b", "a", "d", "c"}[*used - 'a'];
        hived_node_set(world.hived, buddy, false);
        struct ask ask = {.group = "pairs", .vc = "red", .pods = 3, .leaves = 2};
        assert_int_equal(world_ask(&world, ask).kind, HIVED_BIND);
        const char *node;
        uint16_t indices[2];
        hived_group_slot(world.hived, "pairs", 1, &node, indices, 2);
        assert_string_equal(node, *used < 'c' ? "c" : "a");
        assert_int_equal(indices[0], 2);
        world_release(&world);
    }
}

static void oppo_count(void *context, const char *type, bool is_healthy,
                       enum hived_cell_state state, bool is_oppo)
{
    (void)type;
    (void)is_healthy;
    (void)state;
    *(int *)context += is_oppo;
}

/* A leaf of a doomed node stands for a virtual one, so the end of an opportunistic pod is missed:
 * the leaf stays listed, and the virtual node counts as less used than an empty one. */
static void end_on_doomed_node_is_missed(void **state)
{
    (void)state;
    for (int is_imitating = 0; is_imitating <= 1; is_imitating++) {
        struct world world;
        init(&world, is_imitating,
             TYPES "  physicalCells:\n"
                   "  - {cellType: BOX, cellAddress: a}\n"
                   "  - {cellType: BOX, cellAddress: b}\n"
                   "virtualClusters:\n"
                   "  red: {virtualCells: [{cellType: BOX, cellNumber: 2}]}\n");
        world_ask(
            &world,
            (struct ask){.group = "oppo", .vc = "red", .priority = -1, .pods = 1, .leaves = 2});
        const char *node = node_of(&world, "oppo");
        hived_node_set(world.hived, node, false);
        hived_group_end(world.hived, "oppo");
        int count = 0;
        (is_imitating ? hived_vc_walk_imitating : hived_vc_walk)(world.hived, "red", oppo_count,
                                                                 &count);
        assert_int_equal(count, is_imitating ? 2 : 0);
        hived_node_set(world.hived, node, true);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mixed_gang_waits),
    cmocka_unit_test(suggestion_is_remembered),
    cmocka_unit_test(preemption_follows_suggestions),
    cmocka_unit_test(doom_comes_in_between),
    cmocka_unit_test(first_chain_displaces),
    cmocka_unit_test(pieces_stay),
    cmocka_unit_test(end_on_doomed_node_is_missed),
};
UNIT_FILE(tests, NULL, NULL);
