/* HiveD behind the core's seam.
 *
 * Covers: src/placement/placement.c */
#include "bench.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include "placement/simple.h"

static void nodes_make_their_own_cells(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    struct placement_request request = bench_ask(&bench, "first", 1, 1, 1);
    assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_WAIT);
    bench_node(&bench, 0, 16, 4, true);
    struct placement_result result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slots[0].gpu_count, 1);
    bench_node(&bench, 1, 8, 0, true); /* what runs keeps running */
    bench_node(&bench, 2, 16, 4, true);
    request = bench_ask(&bench, "all", 7, 1, 1);
    result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    request = bench_ask(&bench, "more", 1, 1, 1);
    result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_non_null(strstr(result.reason, "first (1)"));
    request = bench_ask(&bench, "huge", 1, 9, 1);
    assert_true(bench_place(&bench, &request, true).is_never);
    bench.placer->ops->release_group(bench.placer, "all");
    request = bench_ask(&bench, "more", 4, 1, 1);
    assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* Workers on GPUs, a parameter server on the CPUs that are left over: one gang. */
static void gangs_span_leaf_types(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    struct placement_member members[] = {
        {.count = 1, .cpu = 2, .memory_mib = 100, .sku_type = "", .within_one_cell = ""},
        {.count = 4, .gpu = 1, .cpu = 1, .sku_type = "V100", .within_one_cell = ""},
    };
    struct placement_request request = bench_ask(&bench, "mix", 0, 0, 0);
    request.members = members;
    request.member_count = 2;
    struct placement_result result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slot_count, 5);
    assert_int_equal(result.slots[0].gpu_count, 0);
    for (int i = 1; i < 5; i++)
        assert_int_equal(result.slots[i].gpu_count, 1);
    struct placement_request other = bench_ask(&bench, "other", 1, 1, 1);
    assert_int_equal(bench_place(&bench, &other, true).kind, PLACEMENT_WAIT);
    for (size_t i = 0; i < 5; i++)
        bench.placer->ops->release_slot(bench.placer, "mix", i);
    assert_int_equal(bench_place(&bench, &other, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

static void what_runs_is_recovered(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    bench_node(&bench, 1, 16, 4, true);
    struct placement_slot slots[] = {
        {.node = {1}, .gpu_count = 2, .gpus = (const uint16_t[]){1, 3}},
        {.node = NODE_NONE},
        {.node = {0}, .gpu_count = 2, .gpus = (const uint16_t[]){2, 0}}};
    struct placement_request request = bench_ask(&bench, "gang", 3, 2, 1);
    assert_int_equal(bench.placer->ops->commit(bench.placer, &request, slots, 3, true, NULL), 0);
    bench_check(&bench);
    struct placement_request other = bench_ask(&bench, "other", 2, 2, 1);
    struct placement_result result = bench_place(&bench, &other, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    struct placement_request taken = bench_ask(&bench, "taken", 1, 2, 1);
    assert_int_equal(bench.placer->ops->commit(bench.placer, &taken, slots, 1, false, NULL),
                     ERR_CONFLICT);
    bench_check(&bench);
    bench.placer->ops->release_slot(bench.placer, "gang",
                                    0); /* a gang keeps its cells to the end */
    assert_int_equal(bench.placer->ops->commit(bench.placer, &taken, slots, 1, false, NULL),
                     ERR_CONFLICT);
    bench.placer->ops->release_slot(bench.placer, "gang", 2);
    assert_int_equal(bench.placer->ops->commit(bench.placer, &taken, slots, 1, false, NULL), 0);
    bench_release(&bench);
}

/* So are those in pieces, of whatever size; checks may be asked between two of them. */
static void copies_are_independent(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 5, 20, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct bench bench;
        bench_init(&bench, NULL);
        bench_node(&bench, 0, 16, 4, true);
        struct placement_request request = bench_ask(&bench, "one", 1, 2, 1),
                                 more = bench_ask(&bench, "two", 1, 3, 1),
                                 check = bench_ask(&bench, "three", 1, 3, 1);
        bench_place(&bench, &request, true);
        struct bench other = {0};
        uint32_t pieces = 1;
        check.is_check = true;
        for (; !bench.placer->ops->copy_some(bench.placer, &other.placer, sizes[i]); pieces++)
            assert_int_equal(bench_place(&bench, &check, false).kind, PLACEMENT_BIND);
        assert_true(pieces > 1 || sizes[i] > 5);
        arena_init(&other.arena);
        bench_check(&other);
        other.placer->ops->release_group(other.placer, "one");
        assert_int_equal(bench_place(&other, &more, true).kind, PLACEMENT_BIND);
        assert_int_equal(bench_place(&bench, &more, true).kind, PLACEMENT_WAIT);
        bench_release(&other);
        bench_release(&bench);
    }
}

static void victims_are_named(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    struct placement_request low = bench_ask(&bench, "low", 2, 2, 1),
                             high = bench_ask(&bench, "high", 1, 1, 1);
    bench_place(&bench, &low, true);
    high.priority = 100;
    struct placement_result result = bench_place(&bench, &high, true);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    assert_int_equal(result.victim_count, 1);
    assert_string_equal(result.victims[0], "low");
    bench.placer->ops->cancel(bench.placer, "high");
    bench_check(&bench);
    result = bench_place(&bench, &high, true);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    bench.placer->ops->release_group(bench.placer, "low");
    assert_int_equal(bench_place(&bench, &high, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

static void avoided_nodes_come_last(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    bench_node(&bench, 1, 16, 4, true);
    struct node_id avoid[] = {{0}};
    struct placement_request request = bench_ask(&bench, "one", 1, 4, 1),
                             next = bench_ask(&bench, "two", 1, 4, 1);
    request.avoid = next.avoid = avoid;
    request.avoid_count = next.avoid_count = 1;
    assert_int_equal(bench_place(&bench, &request, true).slots[0].node.v, 1);
    assert_int_equal(bench_place(&bench, &next, true).slots[0].node.v, 0);
    bench_release(&bench);
}

/* Nodes of known kinds join one by one, between decisions; copies keep them. */
static void many_nodes_join(void **state)
{
    (void)state;
    struct bench bench;
    enum { NODES = 300 };
    static char names[NODES][16];
    bench_init(&bench, NULL);
    for (uint32_t i = 0; i < NODES; i++) {
        bench_node(&bench, i, 16, 4, i % 10 != 9);
        snprintf(names[i], sizeof names[i], "g%u", i);
        struct placement_request request = bench_ask(&bench, names[i], 1, 4, 1);
        struct placement_result result;
        assert_int_equal(
            bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, NULL), 0);
        assert_int_equal(result.kind, i % 10 == 9 ? PLACEMENT_WAIT : PLACEMENT_BIND);
        if (result.kind == PLACEMENT_BIND)
            assert_int_equal(
                bench.placer->ops->commit(bench.placer, &request, result.slots, 1, false, NULL), 0);
        if (i % 50 == 0)
            bench_check(&bench);
    }
    struct bench other = {.placer = bench.placer->ops->copy(bench.placer)};
    arena_init(&other.arena);
    bench_release(&bench);
    for (uint32_t i = 9; i < NODES; i += 10)
        bench_node(&other, i, 16, 4, true);
    struct placement_request request = bench_ask(&other, "rest", NODES / 10, 4, 1);
    assert_int_equal(bench_place(&other, &request, true).kind, PLACEMENT_BIND);
    bench_release(&other);
}

static void configured_nodes_are_checked(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, "physicalCluster:\n"
                       "  cellTypes: {BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: "
                       "true}}\n"
                       "  physicalCells: [{cellType: BOX, cellAddress: n0}]\n"
                       "  skuTypes: {V100: {gpu: 1, cpu: 4, memory: 1Gi}}\n"
                       "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: "
                       "1}]}}\n");
    assert_int_equal(bench_node(&bench, 1, 16, 4, true), ERR_NOT_FOUND);
    assert_int_equal(bench_node(&bench, 0, 16, 2, true), ERR_CONFLICT);
    struct placement_request request = bench_ask(&bench, "one", 1, 1, 6);
    assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_WAIT);
    assert_int_equal(bench_node(&bench, 0, 16, 4, true), 0);
    struct placement_result result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slots[0].gpu_count, 2); /* six CPUs are two leaves */
    assert_int_equal(placer_hived_leaves(bench.placer, "V100", 1, 1, 5000), 5);
    bench_release(&bench);
}

/* A virtual cluster owns a pair of nodes and a single one. Had the first of the pair come back as
 * the single one, there would be no pair left for the second. */
static void a_restart_keeps_every_guarantee(void **state)
{
    (void)state;
    static const char yaml[] =
        "physicalCluster:\n"
        "  cellTypes:\n"
        "    BOX: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}\n"
        "    DUO: {childCellType: BOX, childCellNumber: 2}\n"
        "  physicalCells:\n"
        "  - {cellType: DUO, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}\n"
        "  - {cellType: DUO, cellChildren: [{cellAddress: n2}, {cellAddress: n3}]}\n"
        "virtualClusters:\n"
        "  default: {virtualCells: [{cellType: DUO, cellNumber: 1},\n"
        "                           {cellType: DUO.BOX, cellNumber: 1}]}\n";
    static const char *const names[] = {"one", "two", "three"};
    static const uint8_t levels[] = {3, 3, 2};
    struct placement_slot slots[3];
    struct bench before, after;
    bench_init(&before, yaml);
    bench_init(&after, yaml);
    for (uint32_t i = 0; i < 4; i++) {
        bench_node(&before, i, 16, 2, true);
        bench_node(&after, i, 16, 2, true);
    }
    for (int i = 0; i < 3; i++) {
        struct placement_request request = bench_ask(&before, names[i], 1, 2, 1);
        struct placement_result result = bench_place(&before, &request, true);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        slots[i] = result.slots[0];
        assert_int_equal(slots[i].cell_level, levels[i]);
    }
    for (int i = 0; i < 3; i++) {
        struct placement_request request = bench_ask(&after, names[i], 1, 2, 1);
        struct hived_group_view view;
        assert_int_equal(
            after.placer->ops->commit(after.placer, &request, &slots[i], 1, true, NULL), 0);
        assert_true(hived_group_find(placer_hived_state(after.placer), names[i], &view));
        assert_true(view.has_virtual);
    }
    after.placer->ops->release_group(after.placer, "one");
    slots[0].cell_level = 1; /* of a configuration in which it owned single leaves: as if unknown */
    struct placement_request request = bench_ask(&after, "one", 1, 2, 1);
    struct hived_group_view view;
    assert_int_equal(after.placer->ops->commit(after.placer, &request, slots, 1, true, NULL), 0);
    assert_true(hived_group_find(placer_hived_state(after.placer), "one", &view));
    assert_true(view.has_virtual);
    bench_release(&before);
    bench_release(&after);
}

/* A gang lies in one rack as far as its devices lie in racks: tasks on CPU cells do not. */
static void a_gang_is_kept_in_one_cell(void **state)
{
    (void)state;
    static const char yaml[] =
        "physicalCluster:\n"
        "  skuTypes: {V100: {gpu: 1, cpu: 1, memory: 1Gi}, CPU: {cpu: 1, memory: 1Gi}}\n"
        "  cellTypes:\n"
        "    NODE: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}\n"
        "    RACK: {childCellType: NODE, childCellNumber: 2}\n"
        "    SPARE: {childCellType: CPU, childCellNumber: 2, isNodeLevel: true}\n"
        "  physicalCells:\n"
        "  - {cellType: RACK, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}\n"
        "  - {cellType: RACK, cellChildren: [{cellAddress: n2}, {cellAddress: n3}]}\n"
        "  - {cellType: SPARE, cellAddress: n4}\n"
        "virtualClusters: {default: {virtualCells: [{cellType: RACK, cellNumber: 2}, "
        "{cellType: SPARE, cellNumber: 1}]}}\n";
    struct bench bench;
    bench_init(&bench, yaml);
    for (uint32_t i = 0; i < 4; i++)
        bench_node(&bench, i, 4, 2, true);
    bench_node(&bench, 4, 4, 0, true);
    struct placement_request one = bench_ask(&bench, "one", 1, 1, 1);
    assert_int_equal(bench_place(&bench, &one, true).kind, PLACEMENT_BIND);
    /* three leaves are left in the first rack: of its own it would take the fullest nodes */
    struct placement_member members[] = {
        {.count = 2, .gpu = 1, .cpu = 1, .sku_type = "V100", .within_one_cell = ""},
        {.count = 1, .gpu = 2, .cpu = 1, .sku_type = "V100", .within_one_cell = ""},
        {.count = 2, .cpu = 1, .sku_type = "", .within_one_cell = ""},
    };
    struct placement_request gang = bench_ask(&bench, "gang", 0, 0, 0);
    gang.members = members;
    gang.member_count = 3;
    gang.within_one_cell = "RACK";
    struct placement_result result = bench_place(&bench, &gang, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(result.slots[i].node.v, 2, 3);
    assert_int_equal(result.slots[3].node.v, 4);
    struct placement_request next = bench_ask(&bench, "next", 4, 1, 1);
    next.within_one_cell = "RACK";
    result = bench_place(&bench, &next, true);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_non_null(strstr(result.reason, "4 x 1 V100, all within one RACK,"));
    assert_false(result.is_never);
    next.within_one_cell = "NODE";
    result = bench_place(&bench, &next, true);
    assert_true(result.is_never);
    assert_non_null(strstr(result.reason, "none of these cells is a whole NODE"));
    struct placement_request wrong = bench_ask(&bench, "wrong", 1, 1, 1);
    struct err err;
    wrong.within_one_cell = "ROW";
    assert_int_equal(bench.placer->ops->place(bench.placer, &wrong, &bench.arena, &result, &err),
                     ERR_INVALID);
    assert_string_equal(err.text, "the cluster has no cell type ROW");
    bench_release(&bench);
}

/* The commit with this number fails, as if HiveD had a defect: --wrap. 0: none does. */
static int commit_fails_at;

struct hived_request;
struct hived_placement;
int __real_hived_commit_gang(struct hived *hived, const struct hived_request *request,
                             const struct hived_placement *placement, int64_t now_ms,
                             struct err *err);
int __wrap_hived_commit_gang(struct hived *hived, const struct hived_request *request,
                             const struct hived_placement *placement, int64_t now_ms,
                             struct err *err);
int __wrap_hived_commit_gang(struct hived *hived, const struct hived_request *request,
                             const struct hived_placement *placement, int64_t now_ms,
                             struct err *err)
{
    if (commit_fails_at > 0 && --commit_fails_at == 0)
        return err_fail(err, ERR_INTERNAL, "", "on purpose");
    return __real_hived_commit_gang(hived, request, placement, now_ms, err);
}

#define TWO_TYPES                                                                                  \
    "physicalCluster:\n"                                                                           \
    "  skuTypes: {V100: {gpu: 1, cpu: 1, memory: 1Gi}, CPU: {cpu: 1, memory: 1Gi}}\n"              \
    "  cellTypes:\n"                                                                               \
    "    NODE: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}\n"                     \
    "    SPARE: {childCellType: CPU, childCellNumber: 2, isNodeLevel: true}\n"                     \
    "  physicalCells:\n"                                                                           \
    "  - {cellType: NODE, cellAddress: n0}\n"                                                      \
    "  - {cellType: NODE, cellAddress: n1}\n"                                                      \
    "  - {cellType: NODE, cellAddress: n3}\n"                                                      \
    "  - {cellType: SPARE, cellAddress: n2}\n"                                                     \
    "virtualClusters:\n"                                                                           \
    "  default: {virtualCells: [{cellType: NODE, cellNumber: 2}, {cellType: SPARE, "               \
    "cellNumber: 1}]}\n"                                                                           \
    "  other: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n"

static const struct placement_member both_types[] = {
    {.count = 1, .gpu = 2, .cpu = 1, .sku_type = "V100", .within_one_cell = ""},
    {.count = 1, .gpu = 0, .cpu = 2, .sku_type = "CPU", .within_one_cell = ""},
};

static void two_types_init(struct bench *bench, struct placement_request *both)
{
    bench_init(bench, TWO_TYPES);
    bench_node(bench, 0, 2, 2, true);
    bench_node(bench, 1, 2, 2, true);
    bench_node(bench, 2, 2, 0, true);
    bench_node(bench, 3, 2, 2, true);
    *both = bench_ask(bench, "both", 0, 0, 0);
    both->members = both_types;
    both->member_count = 2;
}

/* Parts of a gang that have their virtual cluster's guarantee. */
static int guaranteed_count(struct bench *bench, const char *group)
{
    struct hived *hived = placer_hived_state(bench->placer);
    uint32_t at = 0;
    int count = 0;
    for (const char *name; (name = hived_group_next(hived, &at));) {
        struct hived_group_view view;
        assert_true(hived_group_find(hived, name, &view));
        count += strncmp(name, group, strlen(group)) == 0 && view.has_virtual;
    }
    return count;
}

/* A gang of two parts is placed whole or not at all: when HiveD refuses the second part, the first
 * one holds nothing either. */
static void a_part_that_fails_takes_the_others_along(void **state)
{
    (void)state;
    for (int at = 1; at <= 2; at++) {
        for (int is_given = 0; is_given < 2; is_given++) {
            struct bench bench;
            struct placement_request both;
            struct err err;
            two_types_init(&bench, &both);
            struct placement_result result = bench_place(&bench, &both, false);
            assert_int_equal(result.kind, PLACEMENT_BIND);
            if (is_given) /* something else was asked, the decision is forgotten */
                bench.placer->ops->cancel(bench.placer, "nobody");
            commit_fails_at = at;
            assert_int_equal(bench.placer->ops->commit(bench.placer, &both, result.slots,
                                                       result.slot_count, false, &err),
                             ERR_INTERNAL);
            assert_int_equal(commit_fails_at, 0);
            bench_check(&bench);
            struct placement_request again = bench_ask(&bench, "again", 0, 0, 0);
            again.members = both_types;
            again.member_count = 2;
            assert_int_equal(bench_place(&bench, &again, true).kind, PLACEMENT_BIND);
            bench_release(&bench);
        }
    }
}

/* One part of a gang takes the guarantee from a group that lets itself be preempted without ending.
 * HiveD forgets that while the other part is looked at, and is asked again at the commit: the gang
 * has its guarantee, and the group goes on without. */
static void parts_keep_the_guarantees_that_they_take(void **state)
{
    (void)state;
    struct bench bench;
    struct placement_request both;
    two_types_init(&bench, &both);
    struct placement_request lazy = bench_ask(&bench, "lazy", 2, 2, 1);
    lazy.priority = 1;
    lazy.is_lazy_preemptible = true;
    assert_int_equal(bench_place(&bench, &lazy, true).kind, PLACEMENT_BIND);
    assert_int_equal(guaranteed_count(&bench, "lazy"), 1);
    assert_int_equal(bench_place(&bench, &both, true).kind, PLACEMENT_BIND);
    assert_int_equal(guaranteed_count(&bench, "both"), 2);
    assert_int_equal(guaranteed_count(&bench, "lazy"), 0);
    bench_release(&bench);
}

/* Whatever runs, a gang of two parts takes no guarantee from a group that does not let itself be
 * preempted so: what is committed is what was decided. */
static void parts_take_guarantees_from_the_lazy_only(void **state)
{
    (void)state;
    static const char *const names[] = {"g0", "g1", "g2", "g3", "g4"};
    struct random random = {20261122};
    unsigned taken = 0;
    for (int round = 0; round < 3000; round++) {
        struct bench bench;
        struct placement_request both;
        bool is_lazy[COUNT_OF(names)], was_guaranteed[COUNT_OF(names)];
        two_types_init(&bench, &both);
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            uint32_t gpus = 1 + (uint32_t)random_below(&random, 2);
            struct placement_request one = bench_ask(&bench, names[i], 1, gpus, 1);
            one.priority = (int32_t)random_below(&random, 5);
            one.virtual_cluster = random_below(&random, 4) ? "default" : "other";
            one.is_lazy_preemptible = is_lazy[i] = random_below(&random, 2);
            one.may_preempt = false;
            bench_place(&bench, &one, true);
            if (random_below(&random, 4) == 0)
                bench.placer->ops->release_group(bench.placer, names[random_below(&random, i + 1)]);
        }
        for (size_t i = 0; i < COUNT_OF(names); i++)
            was_guaranteed[i] = guaranteed_count(&bench, names[i]);
        if (bench_place(&bench, &both, true).kind == PLACEMENT_BIND) {
            assert_int_equal(guaranteed_count(&bench, "both"), 2);
            for (size_t i = 0; i < COUNT_OF(names); i++) {
                bool is_guaranteed = guaranteed_count(&bench, names[i]);
                assert_true(is_guaranteed == was_guaranteed[i] || is_lazy[i]);
                taken += is_guaranteed != was_guaranteed[i];
            }
        }
        bench_release(&bench);
    }
    assert_true(taken > 100); /* it is not about nothing */
}

/* In pieces; what has become of cells that cannot be brought up to date is freed. */
static struct hived *mirror_update(const struct placer *placer, struct hived *mirror)
{
    struct hived *old = NULL;
    unsigned pieces = 0;
    while (!placer_hived_mirror(placer, &mirror, &old, 8))
        assert_true(++pieces < 1000);
    hived_free(old);
    return mirror;
}

static bool has_guarantee(struct hived *hived, const char *group)
{
    struct hived_group_view view;
    assert_true(hived_group_find(hived, group, &view));
    return view.has_virtual;
}

/* A decision that nobody has taken is not shown, and is still there after somebody has looked. */
static void readers_see_what_was_taken(void **state)
{
    (void)state;
    struct bench bench;
    struct placement_request both;
    struct hived_group_view view;
    two_types_init(&bench, &both);
    struct placement_request lazy = bench_ask(&bench, "lazy", 2, 2, 1);
    lazy.priority = 1;
    lazy.is_lazy_preemptible = true;
    assert_int_equal(bench_place(&bench, &lazy, true).kind, PLACEMENT_BIND);
    struct hived *mirror = mirror_update(bench.placer, NULL);
    assert_true(has_guarantee(mirror, "lazy"));
    struct placement_request one = bench_ask(&bench, "one", 1, 2, 1);
    assert_int_equal(bench_place(&bench, &one, false).kind, PLACEMENT_BIND);
    assert_true(hived_is_pending(placer_hived_state(bench.placer)));
    mirror = mirror_update(bench.placer, mirror);
    assert_true(has_guarantee(mirror, "lazy"));
    assert_false(hived_group_find(mirror, "one", &view));
    assert_true(hived_is_pending(placer_hived_state(bench.placer)));
    assert_int_equal(bench_place(&bench, &one, true).kind, PLACEMENT_BIND);
    mirror = mirror_update(bench.placer, mirror); /* a copy is brought up to date by another one */
    assert_false(has_guarantee(mirror, "lazy"));
    assert_true(has_guarantee(mirror, "one"));
    const struct hived *first = mirror;
    bench.placer->ops->release_group(bench.placer, "one");
    mirror = mirror_update(bench.placer, mirror);
    assert_ptr_equal(mirror, first);
    assert_false(hived_group_find(mirror, "one", &view));
    hived_free(mirror);
    bench_release(&bench);
}

/* What was shown comes back when the policy has no cells. */
static void other_policies_have_no_mirror(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    struct hived *mirror = mirror_update(bench.placer, NULL), *old = NULL;
    assert_int_equal(hived_node_free(mirror, "n0", "V100", NULL, 0), 4);
    const struct hived *first = mirror;
    struct placer *plain = placer_simple_new("first-fit");
    assert_true(placer_hived_mirror(plain, &mirror, &old, 8));
    assert_null(mirror);
    assert_ptr_equal(old, first);
    plain->ops->free(plain);
    hived_free(old);
    bench_release(&bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_make_their_own_cells),
    cmocka_unit_test(gangs_span_leaf_types),
    cmocka_unit_test(a_gang_is_kept_in_one_cell),
    cmocka_unit_test(a_part_that_fails_takes_the_others_along),
    cmocka_unit_test(parts_keep_the_guarantees_that_they_take),
    cmocka_unit_test(parts_take_guarantees_from_the_lazy_only),
    cmocka_unit_test(what_runs_is_recovered),
    cmocka_unit_test(copies_are_independent),
    cmocka_unit_test(victims_are_named),
    cmocka_unit_test(avoided_nodes_come_last),
    cmocka_unit_test(many_nodes_join),
    cmocka_unit_test(a_restart_keeps_every_guarantee),
    cmocka_unit_test(configured_nodes_are_checked),
    cmocka_unit_test(readers_see_what_was_taken),
    cmocka_unit_test(other_policies_have_no_mirror),
};
UNIT_FILE(tests, NULL, NULL);
