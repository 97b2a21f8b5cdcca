/* A large group that runs is recovered in pieces: after any of them it comes to what it comes to at
 * once, and what is given up leaves nothing.
 * Covers: src/placement/hived_given.c, src/placement/hived_giving.c, src/placement/hived_search.c
 */
#include "bench.h"
#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 4, GPUS = 4, TASKS_MAX = NODES * GPUS, PIECES_MAX = 100, PIECES_LEAST = 6 };

/* The nodes are of two types. */
static const char mixed[] =
    "physicalCluster:\n"
    "  skuTypes: {V100: {gpu: 1, cpu: 4, memory: 1024Mi}, A100: {gpu: 1, cpu: 4, memory: 1024Mi}}\n"
    "  cellTypes: {NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true},\n"
    "              OTHER: {childCellType: A100, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: OTHER, cellAddress: n1},\n"
    "                  {cellType: NODE, cellAddress: n2}, {cellType: OTHER, cellAddress: n3}]\n"
    "virtualClusters:\n"
    "  default: {virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: OTHER, cellNumber: "
    "1}]}\n"
    "  other: {virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: OTHER, cellNumber: "
    "1}]}\n";

enum what {
    ALL_FITS,
    A_DEVICE_IS_LOST,
    A_DEVICE_IS_TAKEN,
    A_TASK_HAS_ENDED,
    GUARANTEE_IS_LOST,
    OPPORTUNISTIC,
    TAKES_FROM_OTHERS, /* which have the virtual cells that there are */
    SKU_IS_GONE,
    ON_TWO_TYPES, /* as they were asked for: each role is on one */
    SCATTERED,    /* tasks of one kind are on several, */
    SCATTERED_AND_GONE,
    SCATTERED_AND_ENDED,
    WHATS,
};

struct scene {
    struct bench bench;
    struct placement_request request;
    struct placement_slot slots[TASKS_MAX];
    size_t count;
};

/* Of two roles, the second one with GPUs; those of the first lie on nodes of both types by turns.
 */
static void scene_mix(struct scene *scene, enum what what)
{
    enum { FIRST = GPUS };
    struct placement_member *members = ARENA_ARRAY(&scene->bench.arena, struct placement_member, 2);
    members[0] = members[1] = scene->request.members[0];
    members[0].count = FIRST;
    members[1].count = (uint32_t)scene->count - FIRST;
    scene->request.members = members;
    scene->request.member_count = 2;
    if (what == ON_TWO_TYPES) {
        members[0].sku_type = "V100";
        members[1].sku_type = "A100";
        return;
    }
    members[0].gpu = 0;
    for (uint32_t i = 0; i < FIRST; i++) {
        scene->slots[i].node.v = i % NODES;
        scene->slots[i].gpu_count = 0;
    }
    if (what == SCATTERED_AND_ENDED)
        scene->slots[1].node = scene->slots[FIRST + 1].node = (struct node_id){UINT32_MAX};
}

static void scene_init(struct scene *scene, enum what what)
{
    static const uint16_t devices[] = {0, 1, 2, 3, 7};
    struct bench *bench = &scene->bench;
    bench_init(bench, what >= ON_TWO_TYPES ? mixed : bench_four_nodes);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
    scene->count = what == GUARANTEE_IS_LOST ? 3 * GPUS : 2 * GPUS - 1;
    for (size_t i = 0; i < scene->count; i++)
        scene->slots[i] = (struct placement_slot){
            .node = {(uint32_t)i / GPUS}, .gpu_count = 1, .gpus = &devices[i % GPUS]};
    if (what == A_DEVICE_IS_LOST)
        scene->slots[2].gpus = &devices[GPUS];
    if (what == A_TASK_HAS_ENDED)
        scene->slots[2] = (struct placement_slot){.node = {UINT32_MAX}, .gpus = devices};
    scene->request = bench_ask(bench, "large", (uint32_t)scene->count, 1, 1);
    if (what >= ON_TWO_TYPES)
        scene_mix(scene, what);
    if (what == OPPORTUNISTIC)
        scene->request.priority = PLACEMENT_PRIORITY_OPPO;
    if (what == SKU_IS_GONE || what == SCATTERED_AND_GONE)
        ((struct placement_member *)(uintptr_t)scene->request.members)->sku_type = "H100";
    struct err err = {0};
    struct placement_request small =
        bench_ask(bench, "small", what == TAKES_FROM_OTHERS ? 2 * GPUS : 1, 1, 1);
    struct placement_slot others[2 * GPUS];
    for (size_t i = 0; i < COUNT_OF(others); i++)
        others[i] = (struct placement_slot){
            .node = {3 - (uint32_t)i / GPUS}, .gpu_count = 1, .gpus = &devices[i % GPUS]};
    if (what == A_DEVICE_IS_TAKEN)
        others[0] = scene->slots[2];
    small.virtual_cluster = what == TAKES_FROM_OTHERS ? "default" : "other";
    small.priority -= what == TAKES_FROM_OTHERS;
    for (size_t i = 0; what == TAKES_FROM_OTHERS && i < COUNT_OF(others); i++)
        others[i].cell_level = 2;
    for (size_t i = 0; what == TAKES_FROM_OTHERS && i < scene->count; i++)
        scene->slots[i].cell_level = 2;
    assert_int_equal(bench->placer->ops->commit(bench->placer, &small, others,
                                                small.members[0].count, true, &err),
                     0);
}

static int recover(struct scene *scene, struct placer *placer, uint32_t slice)
{
    struct err err = {0};
    scene->request.slice = slice;
    const int code =
        placer->ops->commit(placer, &scene->request, scene->slots, scene->count, true, &err);
    bench_check(&scene->bench);
    return code;
}

/* Returns how many pieces there were. */
static uint32_t recover_some(struct scene *scene, struct placer *placer)
{
    uint32_t pieces = 1;
    int code = recover(scene, placer, 1);
    for (; code == PLACEMENT_CUT; pieces++) {
        assert_true(pieces < PIECES_MAX);
        code = recover(scene, placer, 1);
    }
    assert_int_equal(code, 0);
    return pieces;
}

/* All at once; a small one that ends meanwhile counts after it. */
static const char *cells_at_once(enum what what, struct arena *arena, bool small_ends)
{
    struct scene scene;
    scene_init(&scene, what);
    assert_int_equal(recover(&scene, scene.bench.placer, 0), 0);
    if (small_ends)
        scene.bench.placer->ops->release_slot(scene.bench.placer, "small", 0);
    const char *cells = arena_copy(arena, text_of(bench_cells(&scene.bench, scene.bench.placer)));
    bench_release(&scene.bench);
    return cells;
}

static bool is_held(struct scene *scene)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(scene->bench.placer), "large", &view);
}

static bool is_guaranteed(struct scene *scene, const char *group)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(scene->bench.placer), group, &view) &&
           view.has_virtual;
}

static void a_large_group_is_recovered_in_pieces(void **state)
{
    (void)state;
    for (int what = 0; what < WHATS; what++) {
        uint32_t pieces = 2;
        for (uint32_t cut = 1; cut < pieces; cut++) {
            struct scene scene;
            scene_init(&scene, (enum what)what);
            struct placer *placer = scene.bench.placer;
            const char *cells = cells_at_once((enum what)what, &scene.bench.arena, true);
            int code = PLACEMENT_CUT;
            for (uint32_t i = 0; i < cut && code; i++)
                code = recover(&scene, placer, 1);
            placer->ops->release_slot(placer, "small", 0);
            struct placer *copy = placer->ops->copy(placer);
            if (code) {
                const uint32_t left = recover_some(&scene, placer);
                assert_int_equal(recover_some(&scene, copy), left);
                pieces = cut + left;
            }
            assert_string_equal(bench_cells(&scene.bench, placer), cells);
            assert_string_equal(bench_cells(&scene.bench, copy), cells);
            if (what == ALL_FITS || what == GUARANTEE_IS_LOST)
                assert_int_equal(is_guaranteed(&scene, "large"), what == ALL_FITS);
            if (what == TAKES_FROM_OTHERS)
                assert_true(is_guaranteed(&scene, "large") && !is_guaranteed(&scene, "small"));
            copy->ops->free(copy);
            bench_release(&scene.bench);
        }
        assert_true(pieces > PIECES_LEAST);
    }
}

static void a_recovery_that_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    enum { CUTS = 30, WAYS = 4 };
    for (int what = 0; what < WHATS; what++)
        for (uint32_t cut = 1; cut < CUTS; cut++) {
            struct scene scene;
            scene_init(&scene, (enum what)what);
            struct placer *placer = scene.bench.placer;
            const char *before =
                what == TAKES_FROM_OTHERS ? NULL : bench_cells(&scene.bench, placer);
            int code = PLACEMENT_CUT;
            for (uint32_t i = 0; i < cut && code; i++)
                code = recover(&scene, placer, 1);
            if (code && cut % WAYS == 0)
                placer->ops->forget(placer);
            else if (code && cut % WAYS == 1)
                assert_int_equal(bench_node(&scene.bench, 0, 16, GPUS, true), 0);
            else if (code && cut % WAYS == 2)
                placer->ops->release_slot(placer, "large", 0);
            else /* it may be whole */
                placer->ops->release_group(placer, "large");
            bench_check(&scene.bench);
            if (code) {
                assert_false(is_held(&scene));
                while (!placer->ops->tidy(placer, 1))
                    bench_check(&scene.bench);
                if (before) /* what others have lost does not come back */
                    assert_string_equal(bench_cells(&scene.bench, placer), before);
                recover_some(&scene, placer);
                assert_string_equal(bench_cells(&scene.bench, placer),
                                    cells_at_once((enum what)what, &scene.bench.arena, false));
            }
            bench_release(&scene.bench);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_large_group_is_recovered_in_pieces),
    cmocka_unit_test(a_recovery_that_is_given_up_leaves_nothing),
};
UNIT_FILE(tests, NULL, NULL);
