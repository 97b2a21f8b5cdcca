/* What a search answers is the same in pieces of any size. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "hived/state.h"

static const char boxes[] = TYPES "  physicalCells:\n"
                                  "  - {cellType: BOX, cellAddress: a}\n"
                                  "  - {cellType: BOX, cellAddress: b}\n"
                                  "virtualClusters: {red: {virtualCells: [{cellType: BOX, "
                                  "cellNumber: 2}]}}\n";

enum { BOX_LEAVES = 4, LEAVES = 2 * BOX_LEAVES, PIECES_MAX = 1000 };

/* One pod on two leaves, two on one leaf each, and a box that is free. */
static void begin(struct world *world)
{
    world_init(world, boxes);
    world_ask(world, (struct ask){.group = "one", .vc = "red", .pods = 1, .leaves = 2});
    world_ask(world, (struct ask){.group = "two", .vc = "red", .pods = 2, .leaves = 1});
}

/* All leaves of the cluster, and one that is none. */
static uint32_t leaves_of(const struct hived *h, uint32_t *leaves)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->cell_count; i++)
        if (!h->cells[i].is_virtual && h->cells[i].level == 1)
            leaves[count++] = i;
    assert_int_equal(count, LEAVES);
    leaves[count] = NONE;
    return count + 1;
}

static struct conflict conflict_of(struct world *world, const uint32_t *leaves, uint32_t count,
                                   uint32_t own, uint32_t piece)
{
    struct conflict conflict = {0};
    const struct conflict_of of = {leaves, count, own, &world->arena};
    for (uint32_t pieces = 0; conflict.at < count; pieces++) {
        assert_true(pieces < PIECES_MAX);
        assert_in_range(conflict_some(world->hived, &conflict, &of, piece), 1,
                        piece + LEAVES_OF_VICTIM);
    }
    return conflict;
}

static void those_in_the_way_are_listed_once(void **state)
{
    (void)state;
    struct world world;
    uint32_t leaves[LEAVES + 1], index;
    begin(&world);
    const uint32_t count = leaves_of(world.hived, leaves);
    for (uint32_t piece = 1; piece <= count; piece++) {
        const struct conflict conflict = conflict_of(&world, leaves, count, NONE, piece);
        assert_int_equal(conflict.victim_count, 2);
        assert_int_equal(conflict.pods, 3);
        assert_int_equal(conflict.preemptor_count, 0);
        assert_string_equal(world.hived->groups[conflict.victims[0]]->name, "one");
    }
    /* it preempts both: it is in the way of others, and not in its own */
    world_ask(&world,
              (struct ask){.group = "more", .vc = "red", .priority = 9, .pods = 2, .leaves = 4});
    assert_non_null(gang_find(world.hived, "more", &index));
    assert_int_equal(conflict_of(&world, leaves, count, NONE, 3).preemptor_count, 1);
    assert_int_equal(conflict_of(&world, leaves, count, index, 3).preemptor_count, 0);
    assert_int_equal(conflict_of(&world, leaves, count, index, 3).victim_count, 2);
    world_release(&world);
}

static void nothing_is_in_the_way(void **state)
{
    (void)state;
    struct world world;
    uint32_t leaves[LEAVES + 1];
    world_init(&world, boxes);
    const struct conflict conflict =
        conflict_of(&world, leaves, leaves_of(world.hived, leaves), NONE, 2);
    assert_null(conflict.victims);
    assert_int_equal(conflict.victim_count + conflict.preemptor_count, 0);
    world_release(&world);
}

static void their_pods_are_listed(void **state)
{
    (void)state;
    struct world world;
    uint32_t leaves[LEAVES + 1];
    begin(&world);
    hived_pod_end(world.hived, "two", 0);
    const struct conflict conflict =
        conflict_of(&world, leaves, leaves_of(world.hived, leaves), NONE, LEAVES);
    assert_int_equal(conflict.pods, 2);
    for (uint32_t piece = 1; piece < 3 * LEAVES_OF_VICTIM; piece++) {
        struct victims victims = {0};
        uint32_t pieces = 0;
        for (; !victims_are_whole(&victims, &conflict); pieces++) {
            assert_true(pieces < PIECES_MAX);
            victims_some(world.hived, &victims, &conflict, &world.arena, piece);
        }
        assert_int_equal(victims.count, 2);
        assert_string_equal(victims.items[0].group, "one");
        assert_string_equal(victims.items[1].group, "two");
        assert_string_equal(victims.items[0].node, victims.items[1].node);
        assert_true(piece > 1 || pieces > 2);
    }
    world_release(&world);
}

static void a_placement_is_written(void **state)
{
    (void)state;
    struct world world;
    uint32_t leaves[LEAVES + 1];
    const uint32_t starts[] = {0, 1, 3, LEAVES, LEAVES + 1};
    begin(&world);
    leaves_of(world.hived, leaves);
    for (uint32_t piece = 1; piece <= LEAVES; piece++) {
        struct writing writing = {0};
        const struct writing_of of = {.starts = starts,
                                      .slots = COUNT_OF(starts) - 1,
                                      .physical = leaves,
                                      .has_hints = piece % 2,
                                      .arena = &world.arena};
        for (uint32_t pieces = 0; writing.slots < of.slots; pieces++) {
            assert_true(pieces < PIECES_MAX);
            assert_true(writing_some(world.hived, &writing, &of, piece) > 0);
        }
        assert_int_equal(writing.items[1].leaf_count, 2);
        assert_int_equal(writing.items[1].indices[1], 2);
        assert_string_equal(writing.items[1].preassigned[0], "");
        assert_string_equal(writing.items[2].node, "b");
        assert_string_equal(writing.items[3].node, ""); /* it is no cell */
        assert_ptr_equal(writing.items[1].hints, piece % 2 ? &leaves[1] : NULL);
    }
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(those_in_the_way_are_listed_once),
    cmocka_unit_test(nothing_is_in_the_way),
    cmocka_unit_test(their_pods_are_listed),
    cmocka_unit_test(a_placement_is_written),
};
UNIT_FILE(tests, NULL, NULL);
