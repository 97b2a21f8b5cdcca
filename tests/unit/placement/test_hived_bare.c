/* HiveD behind the core's seam: tasks without GPUs, and CPU cells that change
 * their meaning.
 *
 * Covers: src/placement/hived_place.c, src/placement/hived_split.c */
#include "bench.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "hived_view.h"
#include "placement/hived.h"

/* n0: a leaf of two GPUs and four CPUs, twice; two CPU cells. `poor` owns GPUs alone. */
static const char mixed[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    BOX: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}\n"
    "    CPUS: {childCellType: CPU, childCellNumber: 2, isNodeLevel: true}\n"
    "  physicalCells:\n"
    "  - {cellType: BOX, cellAddress: n0}\n"
    "  - {cellType: CPUS, cellAddress: n0}\n"
    "  skuTypes:\n"
    "    V100: {gpu: 2, cpu: 4, memory: 4Gi}\n"
    "    CPU: {gpu: 0, cpu: 1, memory: 1Gi}\n"
    "virtualClusters:\n"
    "  default: {virtualCells: [{cellType: CPUS, cellNumber: 1}]}\n"
    "  poor: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n";

static struct placement_member *member_of(struct placement_request *request)
{
    return (struct placement_member *)(uintptr_t)request->members;
}

static struct placement_result start(struct bench *bench, const char *group, uint32_t count,
                                     uint32_t gpu, uint32_t cpu)
{
    struct placement_request request = bench_ask(bench, group, count, gpu, cpu);
    return bench_place(bench, &request, true);
}

static void no_gpus(const struct placement_result *result, size_t count)
{
    assert_int_equal(result->kind, PLACEMENT_BIND);
    assert_int_equal(result->slot_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(result->slots[i].gpu_count, 0);
}

static uint32_t free_leaves(struct bench *bench, const char *node, const char *type)
{
    uint16_t some;
    return hived_node_free(placer_hived_state(bench->placer), node, type, &some, 1);
}

/* Four CPUs are beside the GPUs: the fifth task waits, and is told how not to. */
static void gpus_are_left_to_those_who_need_them(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    struct placement_result result = start(&bench, "four", 4, 0, 1);
    no_gpus(&result, 4);
    assert_int_equal(free_leaves(&bench, "n0", "V100"), 4);
    result = start(&bench, "fifth", 1, 0, 1);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_false(result.is_never);
    assert_non_null(strstr(result.reason, "held by four (4)"));
    assert_non_null(strstr(result.reason, "the CPUs of GPU cells only if its skuType named them"));
    struct placement_request high = bench_ask(&bench, "high", 1, 0, 1);
    high.priority = 100;
    assert_int_equal(bench_place(&bench, &high, false).kind, PLACEMENT_PREEMPT); /* not a GPU */
    bench.placer->ops->cancel(bench.placer, "high");
    struct placement_request named = bench_ask(&bench, "named", 1, 0, 1);
    member_of(&named)->sku_type = "CPU1-1024M,V100";
    result = bench_place(&bench, &named, true);
    no_gpus(&result, 1);
    assert_int_equal(free_leaves(&bench, "n0", "V100"), 3); /* nobody else gets the GPU */
    result = start(&bench, "gpus", 1, 4, 1);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_null(strstr(result.reason, "skuType")); /* of no use here */
    bench.placer->ops->release_group(bench.placer, "four");
    result = start(&bench, "fifth", 1, 0, 1);
    no_gpus(&result, 1);
    assert_int_equal(free_leaves(&bench, "n0", "V100"), 3);
    bench_release(&bench);
}

/* What CPU cells can never hold lies on GPU cells, without their devices. */
static void what_cpu_cells_cannot_hold(void **state)
{
    (void)state;
    static const struct {
        uint32_t count, cpu, memory_mib, gpu_leaves;
    } cases[] = {
        {1, 6, 64, 2},   /* more CPUs than the CPU cells of a node: two leaves of three */
        {1, 1, 5500, 2}, /* more memory: leaves of 3 GiB */
        {6, 2, 64, 6},   /* more tasks than they hold */
        {3, 3, 64, 3},   /* more than fit whole on the nodes */
        {10, 1, 64, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        bench_init(&bench, NULL);
        for (uint32_t node = 0; node < 2; node++)
            bench_node(&bench, node, 20, 5, true); /* five CPU cells each */
        struct placement_request request = bench_ask(&bench, "a", cases[i].count, 0, cases[i].cpu);
        member_of(&request)->memory_mib = cases[i].memory_mib;
        struct placement_result result = bench_place(&bench, &request, true);
        no_gpus(&result, cases[i].count);
        uint32_t left = free_leaves(&bench, "n0", "V100") + free_leaves(&bench, "n1", "V100");
        assert_int_equal(10 - left, cases[i].gpu_leaves);
        bench_release(&bench);
    }
}

/* A gang of workers and servers: each kind where it belongs. */
static void servers_of_a_gang(void **state)
{
    (void)state;
    for (uint32_t cpu = 1; cpu <= 5; cpu += 4) {
        struct bench bench;
        bench_init(&bench, NULL);
        bench_node(&bench, 0, 16, 4, true);
        struct placement_request request = bench_ask(&bench, "mix", 0, 0, 0);
        struct placement_member members[] = {
            {.count = 1, .cpu = cpu, .memory_mib = 64, .sku_type = "", .within_one_cell = ""},
            {.count = 2, .gpu = 1, .cpu = 1, .sku_type = "", .within_one_cell = ""},
        };
        request.members = members;
        request.member_count = 2;
        struct placement_result result = bench_place(&bench, &request, true);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(result.slots[0].gpu_count, 0);
        assert_int_equal(result.slots[1].gpu_count, 1);
        assert_int_equal(result.slots[2].gpu_count, 1);
        assert_int_equal(free_leaves(&bench, "n0", "V100"), cpu == 1 ? 2 : 0);
        bench_release(&bench);
    }
}

static void a_virtual_cluster_of_gpus_alone(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, mixed);
    bench_node(&bench, 0, 10, 4, true);
    struct placement_request request = bench_ask(&bench, "a", 1, 0, 1);
    request.virtual_cluster = "poor";
    struct placement_result result = bench_place(&bench, &request, true);
    no_gpus(&result, 1);
    assert_int_equal(free_leaves(&bench, "n0", "V100"), 1);
    assert_int_equal(free_leaves(&bench, "n0", "CPU"), 2);
    /* after a restart it does not take what is not its virtual cluster's */
    struct bench after;
    bench_init(&after, mixed);
    bench_node(&after, 0, 10, 4, true);
    assert_int_equal(after.placer->ops->commit(after.placer, &request, result.slots, 1, true, NULL),
                     0);
    bench_check(&after);
    assert_int_equal(free_leaves(&after, "n0", "V100"), 1);
    assert_int_equal(free_leaves(&after, "n0", "CPU"), 2);
    request.virtual_cluster = "nobody";
    request.group = "b";
    struct placement_result none;
    assert_int_equal(after.placer->ops->place(after.placer, &request, &after.arena, &none, NULL),
                     ERR_NOT_FOUND);
    bench_release(&bench);
    bench_release(&after);
}

/* CPU leaves while there are enough of them, else those of a GPU. */
static void bare_tasks_come_back(void **state)
{
    (void)state;
    static const uint32_t cpus[] = {3, 5, 2, 1, 1}; /* of four CPU leaves */
    static const uint32_t left[][2] = {{1, 4}, {1, 2}, {1, 1}, {0, 1}, {0, 0}}; /* CPU, GPU */
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    char name[8];
    for (uint32_t i = 0; i < COUNT_OF(cpus); i++) {
        snprintf(name, sizeof name, "g%u", i);
        struct placement_request request = bench_ask(&bench, name, 1, 0, cpus[i]);
        struct placement_slot slot = {.node = {0}};
        assert_int_equal(bench.placer->ops->commit(bench.placer, &request, &slot, 1, true, NULL),
                         0);
        assert_int_equal(free_leaves(&bench, "n0", "CPU1-1024M"), left[i][0]);
        assert_int_equal(free_leaves(&bench, "n0", "V100"), left[i][1]);
        bench_check(&bench);
    }
    bench_release(&bench);
}

static bool node_set(struct bench *bench, uint32_t id, uint32_t cpu, uint64_t memory_mib)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    struct node_facts node = {
        .name = name, .cpu = cpu, .memory_mib = memory_mib, .gpu_type = "", .is_healthy = true};
    assert_int_equal(bench->placer->ops->node_set(bench->placer, (struct node_id){id}, &node, NULL),
                     0);
    return bench->placer->ops->is_outdated(bench->placer);
}

static void other_cpus_outdate_what_runs(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    assert_false(node_set(&bench, 0, 8, 8192));
    assert_false(node_set(&bench, 0, 8, 16384)); /* nothing runs */
    struct placement_result result = start(&bench, "a", 8, 0, 1);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_true(node_set(&bench, 1, 8, 4096)); /* another kind: all cells are made anew */
    placer_hived_state(bench.placer);          /* here, since nobody comes with another placer */
    assert_false(node_set(&bench, 0, 8, 16384));
    assert_true(node_set(&bench, 0, 8, 16385)); /* the same leaves */
    placer_hived_state(bench.placer);
    bench_check(&bench);
    assert_true(node_set(&bench, 0, 8, 8192));
    struct placer *copy = bench.placer->ops->copy(bench.placer);
    assert_true(copy->ops->is_outdated(copy));
    copy->ops->free(copy);
    bench.placer->ops->release_group(bench.placer, "a");
    assert_false(bench.placer->ops->is_outdated(bench.placer));
    bench_release(&bench);
}

/* The first machine that makes the cells coarser: until then each joins. */
static void growth_outdates_what_runs(void **state)
{
    (void)state;
    enum { CPUS = 4096, FIT = (1 << 20) / CPUS };
    struct bench bench;
    bench_init(&bench, NULL);
    assert_false(node_set(&bench, 0, CPUS, CPUS * 1024));
    struct placement_result result = start(&bench, "a", 1, 0, 1);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    for (uint32_t i = 1; i < FIT; i++)
        assert_false(node_set(&bench, i, CPUS, CPUS * 1024));
    assert_true(node_set(&bench, FIT, 1, 1024));
    bench.placer->ops->free(bench.placer); /* a large one: not derived anew for this test */
    arena_release(&bench.arena);
}

/* Tables and all: whoever counts the memory sees what is left. */
static void it_is_freed_in_pieces(void **state)
{
    (void)state;
    enum { CPUS = 4096, MACHINES = 6, PIECES_MAX = 100 };
    struct bench bench;
    bench_init(&bench, NULL);
    for (uint32_t i = 0; i < MACHINES; i++)
        node_set(&bench, i, CPUS, CPUS * 1024);
    struct placement_result result = start(&bench, "a", 8, 0, 1);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    result = start(&bench, "b", 1, 0, 1);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    uint32_t pieces = 1;
    while (!placer_free_some(bench.placer, 2))
        pieces++;
    assert_in_range(pieces, 2 + MACHINES, PIECES_MAX);
    bench.placer = placer_new("best-fit", TEXT(""), NULL);
    assert_true(placer_free_some(bench.placer, 1)); /* at once */
    arena_release(&bench.arena);
    bench_init(&bench, NULL);
    assert_false(node_set(&bench, 0, 8, 8192)); /* nobody has asked for a place yet */
    assert_true(placer_free_some(bench.placer, 2));
    arena_release(&bench.arena);
}

/* Who reads the cells between two nodes changes nothing for those who ask for places. */
static void reading_changes_nothing(void **state)
{
    (void)state;
    enum { READ, QUIET, BOTH };
    struct bench benches[BOTH];
    struct buf texts[BOTH] = {BUF_INIT, BUF_INIT};
    for (int i = 0; i < BOTH; i++) {
        bench_init(&benches[i], NULL);
        for (uint32_t node = 0; node < 6; node++) {
            node_set(&benches[i], node, 8, node % 2 ? 8192 : 16384);
            if (i == QUIET)
                continue;
            struct hived *mirror = NULL, *old = NULL;
            while (!placer_hived_mirror(benches[i].placer, &mirror, &old, 1))
                continue;
            assert_int_equal(hived_node_count(mirror), node + 1); /* and it sees all of them */
            hived_free(mirror);
            assert_null(old);
        }
        hived_inspect_cluster(placer_hived_state(benches[i].placer), &texts[i]);
        bench_release(&benches[i]);
    }
    assert_string_equal(buf_cstr(&texts[READ]), buf_cstr(&texts[QUIET]));
    buf_release(&texts[READ]);
    buf_release(&texts[QUIET]);
}

/* A machine of a known kind does not join when it makes the cells coarser. */
static void a_coarser_cluster_is_derived_anew(void **state)
{
    (void)state;
    enum { CPUS = 4096, FIT = (1 << 20) / CPUS };
    struct bench bench;
    bench_init(&bench, NULL);
    for (uint32_t i = 0; i <= FIT; i++)
        node_set(&bench, i, CPUS, CPUS * 1024);
    struct hived *hived = placer_hived_state(bench.placer);
    assert_int_equal(hived_node_count(hived), FIT + 1);
    assert_string_equal(hived_leaf_type_name(hived, 0), "CPU2-2048M");
    assert_int_equal(hived_node_highest(hived, "n256", "CPU2-2048M"), CPUS / 2 - 1);
    node_set(&bench, FIT + 1, CPUS, CPUS * 1024); /* this one does */
    assert_int_equal(hived_node_count(hived), FIT + 2);
    bench.placer->ops->free(bench.placer);
    arena_release(&bench.arena);
}

/* Leaf types that a request may take one by one: A or B, and six times X or another. */
static const char choices[] = "physicalCluster:\n"
                              "  cellTypes:\n"
                              "    NA: {childCellType: A, childCellNumber: 1, isNodeLevel: true}\n"
                              "    NB: {childCellType: B, childCellNumber: 1, isNodeLevel: true}\n"
                              "    NX: {childCellType: X, childCellNumber: 6, isNodeLevel: true}\n"
                              "    N1: {childCellType: Y1, childCellNumber: 1, isNodeLevel: true}\n"
                              "    N2: {childCellType: Y2, childCellNumber: 1, isNodeLevel: true}\n"
                              "    N3: {childCellType: Y3, childCellNumber: 1, isNodeLevel: true}\n"
                              "    N4: {childCellType: Y4, childCellNumber: 1, isNodeLevel: true}\n"
                              "    N5: {childCellType: Y5, childCellNumber: 1, isNodeLevel: true}\n"
                              "    N6: {childCellType: Y6, childCellNumber: 1, isNodeLevel: true}\n"
                              "  physicalCells:\n"
                              "  - {cellType: NA, cellAddress: n0}\n"
                              "  - {cellType: NB, cellAddress: n1}\n"
                              "  - {cellType: NX, cellAddress: n2}\n"
                              "  - {cellType: N1, cellAddress: n3}\n"
                              "  - {cellType: N2, cellAddress: n4}\n"
                              "  - {cellType: N3, cellAddress: n5}\n"
                              "  - {cellType: N4, cellAddress: n6}\n"
                              "  - {cellType: N5, cellAddress: n7}\n"
                              "  - {cellType: N6, cellAddress: n8}\n"
                              "virtualClusters:\n"
                              "  default:\n"
                              "    virtualCells:\n"
                              "    - {cellType: NA, cellNumber: 1}\n"
                              "    - {cellType: NB, cellNumber: 1}\n"
                              "    - {cellType: NX, cellNumber: 1}\n"
                              "    - {cellType: N1, cellNumber: 1}\n"
                              "    - {cellType: N2, cellNumber: 1}\n"
                              "    - {cellType: N3, cellNumber: 1}\n"
                              "    - {cellType: N4, cellNumber: 1}\n"
                              "    - {cellType: N5, cellNumber: 1}\n"
                              "    - {cellType: N6, cellNumber: 1}\n";

static struct placement_request ask_of_choices(struct bench *bench)
{
    static struct placement_member members[] = {
        {.sku_type = "A,B"},  {.sku_type = "X,Y1"}, {.sku_type = "X,Y2"}, {.sku_type = "X,Y3"},
        {.sku_type = "X,Y4"}, {.sku_type = "X,Y5"}, {.sku_type = "X,Y6"},
    };
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        members[i].count = members[i].gpu = 1;
        members[i].within_one_cell = "";
    }
    struct placement_request request = bench_ask(bench, "choosy", 0, 0, 0);
    request.members = members;
    request.member_count = COUNT_OF(members);
    request.may_preempt = false;
    return request;
}

/* 128 combinations: whichever has room is found. A search that may use the nodes to avoid begins
 * with the first combination again. */
static void every_combination_is_tried(void **state)
{
    (void)state;
    static const struct {
        bool has_a, is_a_avoided, has_b, has_x;
        enum placement_kind kind;
    } cases[] = {
        {true, false, false, true, PLACEMENT_BIND},  /* the first */
        {true, true, false, true, PLACEMENT_BIND},   /* the first, when none does without n0 */
        {true, false, false, false, PLACEMENT_BIND}, /* the 64th */
        {false, false, true, true, PLACEMENT_BIND},  /* the 65th, … */
        {false, false, true, false, PLACEMENT_BIND}, /* … and the last */
        {false, false, false, true, PLACEMENT_WAIT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const bool is_there[9] = {cases[i].has_a, cases[i].has_b, cases[i].has_x, true, true,
                                  true,           true,           true,           true};
        struct bench bench;
        bench_init(&bench, choices);
        for (uint32_t node = 0; node < COUNT_OF(is_there); node++)
            bench_node(&bench, node, 8, node == 2 ? 6 : 1, is_there[node]);
        struct placement_request request = ask_of_choices(&bench);
        const struct node_id avoided[] = {{0}};
        request.avoid = avoided;
        request.avoid_count = cases[i].is_a_avoided;
        assert_int_equal(bench_place(&bench, &request, true).kind, cases[i].kind);
        bench_release(&bench);
    }
}

/* Nodes "n<id>" of a type each, of which `gpus` have one GPU and the rest CPUs alone. */
static void kinds_init(struct bench *bench, uint32_t kinds, uint32_t gpus)
{
    cleanup_buf struct buf yaml = BUF_INIT;
    buf_string(&yaml, "physicalCluster:\n  skuTypes:\n");
    for (uint32_t i = 0; i < kinds; i++)
        buf_format(&yaml, "    T%u: {gpu: %u, cpu: 4, memory: 4096Mi}\n", i, i < gpus);
    buf_string(&yaml, "  cellTypes:\n");
    for (uint32_t i = 0; i < kinds; i++)
        buf_format(&yaml, "    N%u: {childCellType: T%u, childCellNumber: 1, isNodeLevel: true}\n",
                   i, i);
    buf_string(&yaml, "  physicalCells:\n");
    for (uint32_t i = 0; i < kinds; i++)
        buf_format(&yaml, "  - {cellType: N%u, cellAddress: n%u}\n", i, i);
    buf_string(&yaml, "virtualClusters:\n  default:\n    virtualCells:\n");
    for (uint32_t i = 0; i < kinds; i++)
        buf_format(&yaml, "    - {cellType: N%u, cellNumber: 1}\n", i);
    bench_init(bench, buf_cstr(&yaml));
}

/* The answer, in pieces of `slice` tasks (0: at once); how many these were. */
static struct placement_result place_in_pieces(struct bench *bench,
                                               const struct placement_request *request,
                                               uint32_t slice, uint32_t *pieces)
{
    struct placement_request asked = *request;
    struct placement_result result;
    asked.slice = slice;
    *pieces = 0;
    do {
        assert_int_equal(
            bench->placer->ops->place(bench->placer, &asked, &bench->arena, &result, NULL), 0);
        bench_check(bench);
        ++*pieces;
    } while (result.is_cut);
    bench->placer->ops->forget(bench->placer);
    return result;
}

/* A role without GPUs and one with, on a cluster of many kinds of nodes: each of them may be on any
 * of its own kind, and only the last ones have room, or one has none. */
static void many_kinds_of_nodes_are_tried(void **state)
{
    (void)state;
    enum { KINDS = 240, GPUS = KINDS / 2 };
    static struct placement_member members[] = {
        {.count = 1, .gpu = 1, .sku_type = "", .within_one_cell = ""},
        {.count = 1, .cpu = 1, .sku_type = "", .within_one_cell = ""},
    };
    for (int has_room = 0; has_room < 2; has_room++) {
        struct bench bench;
        uint32_t pieces;
        kinds_init(&bench, KINDS, GPUS);
        for (uint32_t i = 0; i < KINDS; i++) {
            const bool is_last = i == GPUS - 1 || (has_room && i == KINDS - 1);
            bench_node(&bench, i, 4, i < GPUS, is_last);
        }
        struct placement_request request = bench_ask(&bench, "both", 0, 0, 0);
        request.members = members;
        request.member_count = COUNT_OF(members);
        for (uint32_t slice = 0; slice < 2; slice++) {
            const struct placement_result result =
                place_in_pieces(&bench, &request, slice * 100, &pieces);
            assert_int_equal(result.kind, has_room ? PLACEMENT_BIND : PLACEMENT_WAIT);
            assert_in_range(pieces, slice ? KINDS / 64 : 1, slice ? KINDS / 8 : 1);
            if (has_room) {
                assert_int_equal(result.slots[0].node.v, GPUS - 1);
                assert_int_equal(result.slots[1].node.v, KINDS - 1);
            }
        }
        bench_release(&bench);
    }
}

/* `roles` roles, each of which may be on all types T0 to T<types - 1>, in lists that differ in
 * their order. */
static struct placement_request ask_of_orders(struct bench *bench, uint32_t roles, uint32_t types)
{
    struct placement_member *members = ARENA_ARRAY(&bench->arena, struct placement_member, roles);
    for (uint32_t i = 0; i < roles; i++) {
        cleanup_buf struct buf list = BUF_INIT;
        for (uint32_t k = 0; k < types; k++)
            buf_format(&list, "%sT%u", k ? "," : "",
                       (i < types ? i + k : 2 * types - 1 - k) % types);
        members[i] =
            (struct placement_member){.count = 1,
                                      .gpu = 1,
                                      .sku_type = arena_copy(&bench->arena, buf_as_text(&list)),
                                      .within_one_cell = ""};
    }
    struct placement_request request = bench_ask(bench, "many", 0, 0, 0);
    request.members = members;
    request.member_count = roles;
    return request;
}

/* Nine roles and eight types, each with room for one of them: that this cannot be is not found out,
 * and the reason says so. Each piece tries so many of the ways, though others have found the places
 * of most roles before. */
static void a_search_without_an_end_says_so(void **state)
{
    (void)state;
    enum { TYPES = 8, ROLES = TYPES + 1, WAYS = 4096, WAYS_IN_PIECE = 32 };
    struct bench bench;
    uint32_t pieces;
    kinds_init(&bench, TYPES, TYPES);
    for (uint32_t i = 0; i < TYPES; i++)
        bench_node(&bench, i, 4, 1, true);
    struct placement_request request = ask_of_orders(&bench, ROLES, TYPES);
    const struct placement_result result = place_in_pieces(&bench, &request, 100, &pieces);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_non_null(strstr(result.reason, "in more ways than the 4096 that were tried"));
    assert_in_range(pieces, WAYS / WAYS_IN_PIECE, WAYS / WAYS_IN_PIECE + 2 * ROLES);
    request.member_count = TYPES;
    assert_int_equal(place_in_pieces(&bench, &request, 100, &pieces).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* Each way of many roles on many types is more work: fewer of them are tried. */
static void fewer_ways_of_many_roles_are_tried(void **state)
{
    (void)state;
    enum { TYPES = 16, ROLES = 64 };
    struct bench bench;
    uint32_t pieces;
    kinds_init(&bench, TYPES, TYPES);
    for (uint32_t i = 0; i < TYPES; i++)
        bench_node(&bench, i, 4, 1, true);
    struct placement_request request = ask_of_orders(&bench, ROLES, TYPES);
    const struct placement_result result = place_in_pieces(&bench, &request, 100, &pieces);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_non_null(strstr(result.reason, "in more ways than the 533 that were tried"));
    bench_release(&bench);
}

/* A copy of the placer begins with the first way again, and is cut where the placer is. */
static void a_copy_goes_on_with_the_same_way(void **state)
{
    (void)state;
    enum { TYPES = 8, ROLES = TYPES + 1, EVERY = 16 };
    struct bench bench;
    struct placement_result result = {.is_cut = true}, other;
    kinds_init(&bench, TYPES, TYPES);
    for (uint32_t i = 0; i < TYPES; i++)
        bench_node(&bench, i, 4, 1, true);
    struct placement_request request = ask_of_orders(&bench, ROLES, TYPES);
    request.slice = 100;
    struct placer *placer = bench.placer, *copy = placer->ops->copy(placer);
    for (uint32_t piece = 0; result.is_cut; piece++) {
        if (piece % EVERY == 0) {
            copy->ops->free(copy);
            copy = placer->ops->copy(placer);
        }
        assert_int_equal(placer->ops->place(placer, &request, &bench.arena, &result, NULL), 0);
        assert_int_equal(copy->ops->place(copy, &request, &bench.arena, &other, NULL), 0);
        assert_int_equal(other.is_cut, result.is_cut);
    }
    assert_string_equal(other.reason, result.reason);
    copy->ops->free(copy);
    bench_release(&bench);
}

/* A check for another job between two pieces changes neither what the next ones try nor how many
 * there are. */
static void a_check_amid_a_search_changes_nothing(void **state)
{
    (void)state;
    enum { TYPES = 16, ROLES = TYPES + 1 };
    struct bench bench;
    uint32_t pieces, checked = 0;
    struct placement_result result = {.is_cut = true}, check;
    kinds_init(&bench, TYPES, TYPES);
    for (uint32_t i = 0; i < TYPES; i++)
        bench_node(&bench, i, 4, 1, true);
    struct placement_request request = ask_of_orders(&bench, ROLES, TYPES);
    const struct placement_result whole = place_in_pieces(&bench, &request, 100, &pieces);
    struct placement_request other = ask_of_orders(&bench, 2, 3);
    struct placer *placer = bench.placer;
    other.group = "other";
    other.is_check = true;
    request.slice = 100;
    for (; result.is_cut; checked++) {
        assert_int_equal(placer->ops->place(placer, &request, &bench.arena, &result, NULL), 0);
        assert_int_equal(placer->ops->place(placer, &other, &bench.arena, &check, NULL), 0);
        assert_int_equal(check.kind, PLACEMENT_BIND);
    }
    assert_int_equal(checked, pieces);
    assert_string_equal(result.reason, whole.reason);
    bench_release(&bench);
}

/* Of few types and of many; one is named more often than there are types. */
static void types_that_are_not_there_are_passed_over(void **state)
{
    (void)state;
    for (uint32_t types = 3; types <= 12; types += 9) {
        static struct placement_member member = {.count = 1, .gpu = 1, .within_one_cell = ""};
        struct bench bench;
        struct placement_result result;
        struct err err = {0};
        kinds_init(&bench, types, types);
        for (uint32_t i = 0; i < types; i++)
            bench_node(&bench, i, 4, 1, i == 1);
        struct placement_request request = bench_ask(&bench, "one", 0, 0, 0);
        request.members = &member;
        request.member_count = 1;
        member.sku_type = "T2, T99,T2 ,T2,T2,,T,T10x, T2,T1";
        result = bench_place(&bench, &request, true);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(result.slots[0].node.v, 1);
        member.sku_type = "T99,T";
        assert_int_equal(
            bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, &err),
            ERR_NOT_FOUND);
        bench_release(&bench);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_check_amid_a_search_changes_nothing),
    cmocka_unit_test(types_that_are_not_there_are_passed_over),
    cmocka_unit_test(many_kinds_of_nodes_are_tried),
    cmocka_unit_test(a_search_without_an_end_says_so),
    cmocka_unit_test(fewer_ways_of_many_roles_are_tried),
    cmocka_unit_test(a_copy_goes_on_with_the_same_way),
    cmocka_unit_test(gpus_are_left_to_those_who_need_them),
    cmocka_unit_test(what_cpu_cells_cannot_hold),
    cmocka_unit_test(servers_of_a_gang),
    cmocka_unit_test(a_virtual_cluster_of_gpus_alone),
    cmocka_unit_test(bare_tasks_come_back),
    cmocka_unit_test(other_cpus_outdate_what_runs),
    cmocka_unit_test(growth_outdates_what_runs),
    cmocka_unit_test(it_is_freed_in_pieces),
    cmocka_unit_test(reading_changes_nothing),
    cmocka_unit_test(a_coarser_cluster_is_derived_anew),
    cmocka_unit_test(every_combination_is_tried),
};
UNIT_FILE(tests, NULL, NULL);
