/* test_placer.c — HiveD behind the core's seam. */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/placer_hived.h"
#include "doc/doc.h"
#include "hived/hived.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct bench {
    struct placer *placer;
    struct arena arena;
};

static void bench_init(struct bench *bench, const char *yaml)
{
    struct err err = {0};
    arena_init(&bench->arena);
    const struct doc *doc = NULL;
    if (yaml) {
        struct problems problems;
        problems_init(&problems, &bench->arena);
        doc = doc_parse(text_of(yaml), DOC_YAML, &bench->arena, &problems);
        problems_release(&problems);
    }
    bench->placer = placer_hived_new(doc, &err);
    if (!bench->placer)
        fail_msg("%s: %s", err.path, err.text);
}

static void bench_check(struct bench *bench)
{
    struct err err = {0};
    struct hived *hived = placer_hived_state(bench->placer);
    if (hived && hived_check(hived, &err))
        fail_msg("%s", err.text);
}

static void bench_release(struct bench *bench)
{
    bench_check(bench);
    bench->placer->ops->free(bench->placer);
    arena_release(&bench->arena);
}

static int node_set(struct bench *bench, uint32_t id, uint32_t cpu, uint32_t gpu, bool is_healthy)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    struct placement_node node = {.id = {id},
                                  .name = name,
                                  .cpu = cpu,
                                  .memory_mib = 1024 * cpu,
                                  .gpu_count = gpu,
                                  .gpu_type = gpu ? "V100" : "",
                                  .is_healthy = is_healthy};
    return bench->placer->ops->node_set(bench->placer, &node, NULL);
}

static struct placement_result place(struct bench *bench, const struct placement_request *request,
                                     bool is_taken)
{
    struct placement_result result;
    struct err err = {0};
    int code = bench->placer->ops->place(bench->placer, request, &bench->arena, &result, &err);
    if (code)
        fail_msg("%s: %s", err.path, err.text);
    if (result.kind == PLACEMENT_BIND && is_taken &&
        bench->placer->ops->commit(bench->placer, request, result.slots, result.slot_count, false,
                                   &err))
        fail_msg("%s: %s", err.path, err.text);
    bench_check(bench);
    return result;
}

static struct placement_request ask(struct bench *bench, const char *group, uint32_t count,
                                    uint32_t gpu, uint32_t cpu)
{
    struct placement_member *member = ARENA_NEW(&bench->arena, struct placement_member);
    *member = (struct placement_member){.count = count,
                                        .gpu = gpu,
                                        .cpu = cpu,
                                        .memory_mib = 64,
                                        .sku_type = "",
                                        .within_one_cell = ""};
    return (struct placement_request){.group = group,
                                      .virtual_cluster = "default",
                                      .priority = 10,
                                      .pinned_cell_id = "",
                                      .members = member,
                                      .member_count = 1,
                                      .may_preempt = true};
}

static void nodes_make_their_own_cells(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    struct placement_request request = ask(&bench, "first", 1, 1, 1);
    assert_int_equal(place(&bench, &request, true).kind, PLACEMENT_WAIT);
    node_set(&bench, 0, 16, 4, true);
    struct placement_result result = place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slots[0].gpu_count, 1);
    node_set(&bench, 1, 8, 0, true); /* what runs keeps running */
    node_set(&bench, 2, 16, 4, true);
    request = ask(&bench, "all", 7, 1, 1);
    result = place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    request = ask(&bench, "more", 1, 1, 1);
    result = place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_non_null(strstr(result.reason, "first (1)"));
    request = ask(&bench, "huge", 1, 9, 1);
    assert_true(place(&bench, &request, true).is_never);
    bench.placer->ops->release_group(bench.placer, "all");
    request = ask(&bench, "more", 4, 1, 1);
    assert_int_equal(place(&bench, &request, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* Workers on GPUs, a parameter server on the CPUs that are left over: one gang. */
static void gangs_span_leaf_types(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    node_set(&bench, 0, 16, 4, true);
    struct placement_member members[] = {
        {.count = 1, .cpu = 2, .memory_mib = 100, .sku_type = "", .within_one_cell = ""},
        {.count = 4, .gpu = 1, .cpu = 1, .sku_type = "V100", .within_one_cell = ""},
    };
    struct placement_request request = ask(&bench, "mix", 0, 0, 0);
    request.members = members;
    request.member_count = 2;
    struct placement_result result = place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slot_count, 5);
    assert_int_equal(result.slots[0].gpu_count, 0);
    for (int i = 1; i < 5; i++)
        assert_int_equal(result.slots[i].gpu_count, 1);
    struct placement_request other = ask(&bench, "other", 1, 1, 1);
    assert_int_equal(place(&bench, &other, true).kind, PLACEMENT_WAIT);
    for (size_t i = 0; i < 5; i++)
        bench.placer->ops->release_slot(bench.placer, "mix", i);
    assert_int_equal(place(&bench, &other, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

static void what_runs_is_recovered(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    node_set(&bench, 0, 16, 4, true);
    node_set(&bench, 1, 16, 4, true);
    struct placement_slot slots[] = {{.node = {1}, .gpu_count = 2, .gpus = {1, 3}},
                                     {.node = NODE_NONE},
                                     {.node = {0}, .gpu_count = 2, .gpus = {2, 0}}};
    struct placement_request request = ask(&bench, "gang", 3, 2, 1);
    assert_int_equal(bench.placer->ops->commit(bench.placer, &request, slots, 3, true, NULL), 0);
    bench_check(&bench);
    struct placement_request other = ask(&bench, "other", 2, 2, 1);
    struct placement_result result = place(&bench, &other, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    struct placement_request taken = ask(&bench, "taken", 1, 2, 1);
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

static void copies_are_independent(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    node_set(&bench, 0, 16, 4, true);
    struct placement_request request = ask(&bench, "one", 1, 2, 1),
                             more = ask(&bench, "two", 1, 3, 1);
    place(&bench, &request, true);
    struct bench other = {.placer = bench.placer->ops->copy(bench.placer)};
    arena_init(&other.arena);
    other.placer->ops->release_group(other.placer, "one");
    assert_int_equal(place(&other, &more, true).kind, PLACEMENT_BIND);
    assert_int_equal(place(&bench, &more, true).kind, PLACEMENT_WAIT);
    bench_release(&other);
    bench_release(&bench);
}

static void victims_are_named(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    node_set(&bench, 0, 16, 4, true);
    struct placement_request low = ask(&bench, "low", 2, 2, 1), high = ask(&bench, "high", 1, 1, 1);
    place(&bench, &low, true);
    high.priority = 100;
    struct placement_result result = place(&bench, &high, true);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    assert_int_equal(result.victim_count, 1);
    assert_string_equal(result.victims[0], "low");
    bench.placer->ops->cancel(bench.placer, "high");
    bench_check(&bench);
    result = place(&bench, &high, true);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    bench.placer->ops->release_group(bench.placer, "low");
    assert_int_equal(place(&bench, &high, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

static void avoided_nodes_come_last(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    node_set(&bench, 0, 16, 4, true);
    node_set(&bench, 1, 16, 4, true);
    struct node_id avoid[] = {{0}};
    struct placement_request request = ask(&bench, "one", 1, 4, 1),
                             next = ask(&bench, "two", 1, 4, 1);
    request.avoid = next.avoid = avoid;
    request.avoid_count = next.avoid_count = 1;
    assert_int_equal(place(&bench, &request, true).slots[0].node.v, 1);
    assert_int_equal(place(&bench, &next, true).slots[0].node.v, 0);
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
        node_set(&bench, i, 16, 4, i % 10 != 9);
        snprintf(names[i], sizeof names[i], "g%u", i);
        struct placement_request request = ask(&bench, names[i], 1, 4, 1);
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
        node_set(&other, i, 16, 4, true);
    struct placement_request request = ask(&other, "rest", NODES / 10, 4, 1);
    assert_int_equal(place(&other, &request, true).kind, PLACEMENT_BIND);
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
    assert_int_equal(node_set(&bench, 1, 16, 4, true), ERR_NOT_FOUND);
    assert_int_equal(node_set(&bench, 0, 16, 2, true), ERR_CONFLICT);
    struct placement_request request = ask(&bench, "one", 1, 1, 6);
    assert_int_equal(place(&bench, &request, true).kind, PLACEMENT_WAIT);
    assert_int_equal(node_set(&bench, 0, 16, 4, true), 0);
    struct placement_result result = place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slots[0].gpu_count, 2); /* six CPUs are two leaves */
    assert_int_equal(placer_hived_leaves(bench.placer, "V100", 1, 1, 5000), 5);
    bench_release(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_make_their_own_cells),
        cmocka_unit_test(gangs_span_leaf_types),
        cmocka_unit_test(what_runs_is_recovered),
        cmocka_unit_test(copies_are_independent),
        cmocka_unit_test(victims_are_named),
        cmocka_unit_test(avoided_nodes_come_last),
        cmocka_unit_test(many_nodes_join),
        cmocka_unit_test(configured_nodes_are_checked),
    };
    return cmocka_run_group_tests_name("hived placer", tests, NULL, NULL);
}
