/* The tasks of a large gang are on two leaf types: it takes its cells in pieces, whatever comes
 * between.
 * Covers: src/placement/hived_hold.c, src/placement/hived_search.c */
#include "bench.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 8, GPUS = 4, OF_TYPE = NODES / 2 * GPUS, STEPS_MAX = 400, PIECES_LEAST = 12 };

/* What is in its way, on the nodes of which types. */
enum scene { IN_AN_EMPTY_CLUSTER, BEHIND_VICTIMS_ON_ONE, BEHIND_VICTIMS_ON_BOTH, SCENES };

static const char yaml[] =
    "physicalCluster:\n"
    "  skuTypes: {V100: {gpu: 1, cpu: 4, memory: 1024Mi}, A100: {gpu: 1, cpu: 4, memory: 1024Mi}}\n"
    "  cellTypes: {NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true},\n"
    "              OTHER: {childCellType: A100, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: OTHER, cellAddress: n1},\n"
    "                  {cellType: NODE, cellAddress: n2}, {cellType: OTHER, cellAddress: n3},\n"
    "                  {cellType: NODE, cellAddress: n4}, {cellType: OTHER, cellAddress: n5},\n"
    "                  {cellType: NODE, cellAddress: n6}, {cellType: OTHER, cellAddress: n7}]\n"
    "virtualClusters:\n"
    "  default: {virtualCells: [{cellType: NODE, cellNumber: 4}, {cellType: OTHER, cellNumber: "
    "4}]}\n";

static struct placement_request ask(struct bench *bench, uint32_t slice)
{
    struct placement_request request = bench_ask(bench, "large", OF_TYPE, 1, 1);
    struct placement_member *members = ARENA_ARRAY(&bench->arena, struct placement_member, 2);
    members[0] = members[1] = request.members[0];
    members[0].sku_type = "V100";
    members[1].sku_type = "A100";
    request.members = members;
    request.member_count = 2;
    request.priority = 100;
    request.slice = slice;
    return request;
}

static void tidy(struct placer *placer)
{
    while (!placer->ops->tidy(placer, 1))
        ;
}

/* One more piece, or all of it. True: answered, and committed if it is bound. */
static bool piece(struct bench *bench, struct placer *placer, uint32_t slice,
                  enum placement_kind *kind)
{
    struct placement_result result;
    const struct placement_request request = ask(bench, slice);
    assert_int_equal(placer->ops->place(placer, &request, &bench->arena, &result, NULL), 0);
    *kind = result.kind;
    if (result.is_cut)
        return false;
    if (result.kind == PLACEMENT_BIND)
        assert_int_equal(
            placer->ops->commit(placer, &request, result.slots, result.slot_count, false, NULL), 0);
    return true;
}

/* Returns how many pieces it took. */
static uint32_t place(struct bench *bench, struct placer *placer, uint32_t slice,
                      enum placement_kind expected)
{
    enum placement_kind kind = PLACEMENT_WAIT;
    uint32_t pieces = 1;
    for (; !piece(bench, placer, slice, &kind); pieces++) {
        assert_true(pieces < STEPS_MAX);
        bench_check(bench);
    }
    assert_int_equal(kind, expected);
    return pieces;
}

/* Who is in its way has been told to end for it, and has. */
static void scene_init(struct bench *bench, enum scene scene)
{
    char name[NODES][8];
    uint32_t victims = 0;
    bench_init(bench, yaml);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
    tidy(bench->placer);
    for (uint32_t i = 0; scene != IN_AN_EMPTY_CLUSTER && i < NODES; i++) {
        struct placement_request small = bench_ask(bench, name[victims], 1, GPUS, 1);
        if (i % 2 && scene == BEHIND_VICTIMS_ON_ONE)
            continue;
        snprintf(name[victims], sizeof name[victims], "s%u", i);
        ((struct placement_member *)(uintptr_t)small.members)->sku_type = i % 2 ? "A100" : "V100";
        assert_int_equal(bench_place(bench, &small, true).kind, PLACEMENT_BIND);
        victims++;
    }
    if (victims > 0)
        place(bench, bench->placer, 1, PLACEMENT_PREEMPT);
    for (uint32_t i = 0; i < victims; i++)
        bench->placer->ops->release_group(bench->placer, name[i]);
    tidy(bench->placer);
}

static const char *cells_at_once(struct arena *arena, enum scene scene)
{
    struct bench bench;
    scene_init(&bench, scene);
    place(&bench, bench.placer, 0, PLACEMENT_BIND);
    const char *cells = arena_copy(arena, text_of(bench_cells(&bench, bench.placer)));
    bench_release(&bench);
    return cells;
}

static void it_takes_what_it_takes_at_once(void **state)
{
    (void)state;
    for (int scene = 0; scene < SCENES; scene++) {
        uint32_t pieces = 2;
        for (uint32_t cut = 1; cut < pieces; cut++) {
            struct bench bench;
            enum placement_kind kind;
            scene_init(&bench, (enum scene)scene);
            const char *cells = cells_at_once(&bench.arena, (enum scene)scene);
            for (uint32_t i = 0; i < cut; i++)
                assert_false(piece(&bench, bench.placer, 1, &kind));
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            const char *taken = bench_cells(&bench, bench.placer);
            assert_string_equal(bench_cells(&bench, copy), taken);
            const uint32_t left = place(&bench, bench.placer, 1, PLACEMENT_BIND);
            assert_int_equal(place(&bench, copy, 1, PLACEMENT_BIND), left);
            pieces = cut + left;
            assert_string_equal(bench_cells(&bench, bench.placer), cells);
            assert_string_equal(bench_cells(&bench, copy), cells);
            copy->ops->free(copy);
            bench_release(&bench);
        }
        assert_true(pieces > PIECES_LEAST);
    }
}

static uint32_t leaves_free(struct bench *bench)
{
    const struct hived *hived = placer_hived_state(bench->placer);
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%u", i);
        count += hived_node_free(hived, name, i % 2 ? "A100" : "V100", NULL, 0);
    }
    return count;
}

static void a_piece_takes_few_leaves(void **state)
{
    (void)state;
    enum { LEAVES_OF_PIECE = 4 };
    struct bench bench;
    enum placement_kind kind;
    bool is_over = false;
    scene_init(&bench, IN_AN_EMPTY_CLUSTER);
    for (uint32_t before = 2 * OF_TYPE; !is_over;) {
        is_over = piece(&bench, bench.placer, 1, &kind);
        const uint32_t left = leaves_free(&bench);
        assert_in_range(before - left, 0, LEAVES_OF_PIECE);
        before = left;
    }
    assert_int_equal(leaves_free(&bench), 0);
    bench_release(&bench);
}

enum happening { FORGOTTEN, A_NODE_CHANGES, IT_IS_STOPPED, ANOTHER_ASKS, IN_A_COPY, HAPPENINGS };

static void happen(struct bench *bench, enum happening what)
{
    struct placer *placer = bench->placer;
    struct placement_request small = bench_ask(bench, "other", 1, GPUS, 1);
    small.may_preempt = false;
    switch (what) {
    case FORGOTTEN:
    case IN_A_COPY:
        placer->ops->forget(placer);
        break;
    case A_NODE_CHANGES:
        assert_int_equal(bench_node(bench, 0, 16, GPUS, false), 0);
        assert_int_equal(bench_node(bench, 0, 16, GPUS, true), 0);
        break;
    case IT_IS_STOPPED:
        placer->ops->cancel(placer, "large");
        break;
    case ANOTHER_ASKS:
        bench_place(bench, &small, false);
        placer->ops->forget(placer);
        break;
    case HAPPENINGS:
        break;
    }
    bench_check(bench);
    tidy(placer);
    bench_check(bench);
}

/* A copy has taken as much as the original, and gives it up likewise. */
static void happens_in(struct bench *bench, enum happening what)
{
    struct placer *original = bench->placer;
    if (what != IN_A_COPY) {
        happen(bench, what);
        return;
    }
    bench->placer = original->ops->copy(original);
    original->ops->free(original);
    happen(bench, what);
}

/* A gang that has preempted keeps what was reserved for it, unless it is stopped. */
static void what_is_given_up_leaves_what_was(void **state)
{
    (void)state;
    for (int scene = 0; scene < SCENES; scene++)
        for (int what = 0; what < HAPPENINGS; what++) {
            bool is_over = false;
            for (uint32_t cut = 1; !is_over; cut++) {
                struct bench bench;
                enum placement_kind kind;
                scene_init(&bench, (enum scene)scene);
                const char *before = bench_cells(&bench, bench.placer);
                for (uint32_t i = 0; i < cut && !is_over; i++)
                    is_over = piece(&bench, bench.placer, 1, &kind);
                if (!is_over) {
                    happens_in(&bench, (enum happening)what);
                    if (what != IT_IS_STOPPED)
                        assert_string_equal(bench_cells(&bench, bench.placer), before);
                    place(&bench, bench.placer, 1, PLACEMENT_BIND);
                    bench_check(&bench);
                }
                bench_release(&bench);
            }
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_takes_what_it_takes_at_once),
    cmocka_unit_test(a_piece_takes_few_leaves),
    cmocka_unit_test(what_is_given_up_leaves_what_was),
};
UNIT_FILE(tests, NULL, NULL);
