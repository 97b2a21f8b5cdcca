/* HiveD behind the core's seam: slots that it did not choose itself, demands
 * that it cannot serve, nodes that change.
 *
 * Covers: src/placement/hived_hold.c, src/placement/hived_split.c, src/placement/hived_check.c */
#include "bench.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include "placement/simple.h"

/* n0: two leaves of two GPUs each and four of CPUs; n1: GPUs alone. */
static const char mixed[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    BOX: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}\n"
    "    CPUS: {childCellType: CPU, childCellNumber: 4, isNodeLevel: true}\n"
    "  physicalCells:\n"
    "  - {cellType: BOX, cellAddress: n0}\n"
    "  - {cellType: BOX, cellAddress: n1}\n"
    "  - {cellType: CPUS, cellAddress: n0}\n"
    "  skuTypes:\n"
    "    V100: {gpu: 2, cpu: 4, memory: 4Gi}\n"
    "    CPU: {gpu: 0, cpu: 1, memory: 1Gi}\n"
    "virtualClusters:\n"
    "  default: {virtualCells: [{cellType: BOX, cellNumber: 2}, {cellType: CPUS, cellNumber: "
    "1}]}\n";

/* Without SKUs a leaf is one GPU. */
static const char plain[] =
    "physicalCluster:\n"
    "  cellTypes: {BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: BOX, cellAddress: n0}]\n"
    "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n";

static void mixed_init(struct bench *bench)
{
    bench_init(bench, mixed);
    assert_int_equal(bench_node(bench, 0, 16, 4, true), 0);
    assert_int_equal(bench_node(bench, 1, 16, 4, true), 0);
}

/* Workers of one GPU leaf (2 GPUs), then CPU tasks. */
static struct placement_request ask_mixed(struct bench *bench, const char *group, uint32_t workers,
                                          uint32_t servers)
{
    struct placement_request request = bench_ask(bench, group, workers, 2, 1);
    struct placement_member *members = ARENA_ARRAY(&bench->arena, struct placement_member, 2);
    members[0] = members[1] = request.members[0];
    members[0].sku_type = "V100";
    members[1].count = servers;
    members[1].gpu = 0;
    members[1].sku_type = "CPU";
    request.members = members;
    request.member_count = 2;
    return request;
}

static int commit(struct bench *bench, const struct placement_request *request,
                  const struct placement_slot *slots, size_t count, bool is_recovery)
{
    struct err err = {0};
    int code = bench->placer->ops->commit(bench->placer, request, slots, count, is_recovery, &err);
    assert_int_equal(code != 0, *err.text != '\0');
    bench_check(bench);
    return code;
}

/* What is left of the GPUs, by filling it with tasks of one leaf. */
static uint32_t leaves_left(struct bench *bench, uint32_t gpu_per_leaf)
{
    static uint32_t number;
    char name[16];
    uint32_t count = 0;
    for (;; count++) {
        snprintf(name, sizeof name, "fill%u", number++);
        struct placement_request request = bench_ask(bench, name, 1, gpu_per_leaf, 1);
        if (bench_place(bench, &request, true).kind != PLACEMENT_BIND)
            return count;
    }
}

static void other_slots_than_decided_are_taken_as_given(void **state)
{
    (void)state;
    const struct placement_slot others[] = {
        {.node = {1}, .gpu_count = 2, .gpus = (const uint16_t[]){0, 1}}, /* another node */
        {.node = {0}, .gpu_count = 2, .gpus = (const uint16_t[]){2, 3}}, /* other devices */
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct bench bench;
        mixed_init(&bench);
        struct placement_request request = bench_ask(&bench, "a", 1, 2, 1);
        struct placement_result result = bench_place(&bench, &request, false);
        assert_int_equal(result.slots[0].node.v, 0);
        assert_int_equal(result.slots[0].gpus[0], 0);
        assert_int_equal(commit(&bench, &request, &others[i], 1, false), 0);
        assert_int_equal(commit(&bench, &request, &others[i], 1, false), ERR_CONFLICT); /* twice */
        struct placement_request taken = bench_ask(&bench, "b", 1, 2, 1);
        assert_int_equal(commit(&bench, &taken, &others[i], 1, false), ERR_CONFLICT);
        assert_int_equal(commit(&bench, &taken, result.slots, 1, false), 0);
        assert_int_equal(leaves_left(&bench, 2), 2);
        bench_release(&bench);
    }
}

static void commits_that_cannot_be_are_refused_whole(void **state)
{
    (void)state;
    const struct placement_slot worker = {.node = {0},
                                          .gpu_count = 2,
                                          .gpus = (const uint16_t[]){0, 1}},
                                server = {.node = {0}}, away = {.node = {1}}, /* has no CPU cells */
        unknown = {.node = {7}, .gpu_count = 2, .gpus = (const uint16_t[]){0, 1}};
    const struct {
        uint32_t workers, servers;
        struct placement_slot slots[6];
        size_t count;
        int code;
    } cases[] = {
        {1, 1, {worker, server}, 2, 0},
        {1, 1, {worker}, 1, ERR_INVALID}, /* a slot is missing */
        {1, 1, {unknown, server}, 2, ERR_NOT_FOUND},
        {1, 1, {worker, away}, 2, ERR_CONFLICT},
        {1, 5, {worker, server, server, server, server, server}, 6, ERR_CONFLICT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        mixed_init(&bench);
        struct placement_request request =
            ask_mixed(&bench, "a", cases[i].workers, cases[i].servers);
        assert_int_equal(commit(&bench, &request, cases[i].slots, cases[i].count, false),
                         cases[i].code);
        if (cases[i].code) /* nothing of it is held */
            assert_int_equal(leaves_left(&bench, 2), 4);
        bench_release(&bench);
    }
    struct bench bench;
    mixed_init(&bench);
    struct placement_request request = ask_mixed(&bench, "a", 1, 0);
    ((struct placement_member *)(uintptr_t)request.members)->sku_type = "H100";
    assert_int_equal(commit(&bench, &request, &worker, 1, false), ERR_NOT_FOUND);
    bench_release(&bench);
}

/* What runs is recovered even where nothing is left for it; it holds nothing then. */
static void recovery_refuses_nothing(void **state)
{
    (void)state;
    struct bench bench;
    mixed_init(&bench);
    struct placement_slot slots[6] = {
        {.node = {0}, .gpu_count = 2, .gpus = (const uint16_t[]){2, 3}}};
    struct placement_request request = ask_mixed(&bench, "a", 1, 5);
    assert_int_equal(commit(&bench, &request, slots, 6, true), 0);
    assert_int_equal(leaves_left(&bench, 2), 3);
    struct placement_request more = ask_mixed(&bench, "b", 0, 1);
    assert_int_equal(bench_place(&bench, &more, false).kind, PLACEMENT_WAIT);
    bench.placer->ops->release_slot(bench.placer, "a", 99); /* no such slot */
    for (size_t i = 0; i < 6; i++)
        bench.placer->ops->release_slot(bench.placer, "a", i);
    assert_int_equal(bench_place(&bench, &more, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* Devices that lie in one leaf count once, whichever leaf it is. */
static void a_leaf_of_several_devices_is_taken_once(void **state)
{
    (void)state;
    static const char pairs[] =
        "physicalCluster:\n"
        "  cellTypes: {BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}}\n"
        "  physicalCells: [{cellType: BOX, cellAddress: n0}]\n"
        "  skuTypes: {V100: {gpu: 2, cpu: 4, memory: 4Gi}}\n"
        "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n";
    struct bench bench;
    bench_init(&bench, pairs);
    assert_int_equal(bench_node(&bench, 0, 16, 8, true), 0);
    struct placement_request request = bench_ask(&bench, "a", 1, 6, 1);
    const struct placement_slot slot = {
        .node = {0}, .gpu_count = 6, .gpus = (const uint16_t[]){0, 1, 2, 3, 4, 5}};
    assert_int_equal(commit(&bench, &request, &slot, 1, false), 0);
    assert_int_equal(leaves_left(&bench, 2), 1);
    bench_release(&bench);
}

/* On each of two nodes, a task without devices comes before one that names the first ones. */
static void a_task_without_devices_leaves_those_of_others(void **state)
{
    (void)state;
    static const uint16_t devices[] = {0, 1};
    const struct placement_slot slots[] = {{.node = {0}},
                                           {.node = {1}},
                                           {.node = {0}, .gpu_count = 2, .gpus = devices},
                                           {.node = {1}, .gpu_count = 2, .gpus = devices}};
    struct bench bench;
    mixed_init(&bench);
    struct placement_request request = ask_mixed(&bench, "a", 2, 2);
    struct placement_member *members = (struct placement_member *)(uintptr_t)request.members;
    members[0].gpu = 0; /* a leaf with GPUs all the same */
    members[1].gpu = 2;
    members[1].sku_type = "V100";
    assert_int_equal(commit(&bench, &request, slots, COUNT_OF(slots), false), 0);
    assert_int_equal(leaves_left(&bench, 2), 0);
    bench_release(&bench);
}

/* Workers of one GPU each with devices from `first` on, and servers without, all on n0. */
static size_t recovered(struct bench *bench, const char *group, uint16_t first, uint32_t servers,
                        struct placement_slot *slots, struct placement_request *request)
{
    enum { WORKERS = 2 };
    static const uint16_t devices[] = {0, 1, 2, 3};
    *request = ask_mixed(bench, group, WORKERS, servers);
    struct placement_member *members = (struct placement_member *)(uintptr_t)request->members;
    members[0].sku_type = members[1].sku_type = "";
    members[0].gpu = 1;
    memset(slots, 0, (WORKERS + servers) * sizeof *slots);
    for (uint16_t i = 0; i < WORKERS; i++) {
        slots[i].gpu_count = 1;
        slots[i].gpus = &devices[first + i];
    }
    return WORKERS + servers;
}

static bool is_guaranteed(struct bench *bench, const char *group)
{
    struct hived_group_view view;
    assert_true(hived_group_find(placer_hived_state(bench->placer), group, &view));
    return view.has_virtual;
}

/* Two gangs with servers, told one after the other: the servers of the first are not put on devices
 * of the second. Nobody is told of what is no more expected. */
static void devices_that_are_expected(void **state)
{
    (void)state;
    static const uint16_t gpus[] = {0, 1, 2, 3};
    for (int way = 0; way < 2; way++) {
        struct bench bench;
        struct placement_slot slots[4];
        struct placement_request request;
        bench_init(&bench, plain);
        bench_node(&bench, 0, 16, 4, true);
        bench.placer->ops->expect(bench.placer, (struct node_id){0}, gpus, 4);
        if (way) {
            struct placement_request any = bench_ask(&bench, "any", 1, 4, 1);
            assert_int_equal(bench_place(&bench, &any, false).kind, PLACEMENT_BIND);
        }
        size_t count = recovered(&bench, "a", 2, 2, slots, &request);
        assert_int_equal(commit(&bench, &request, slots, count, true), 0);
        count = recovered(&bench, "b", 0, 1, slots, &request);
        assert_int_equal(commit(&bench, &request, slots, count, true), 0);
        assert_int_equal(is_guaranteed(&bench, "b"), !way);
        assert_int_equal(leaves_left(&bench, 1), 0);
        bench.placer->ops->release_group(bench.placer, "a");
        assert_int_equal(leaves_left(&bench, 1), 2);
        bench_release(&bench);
    }
}

/* Of a type that the cells no longer have, or with more CPUs than a task of 64 GPUs could get: it
 * runs, so its devices are its own. */
static void devices_of_demands_that_nothing_serves(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct bench bench;
        mixed_init(&bench);
        struct placement_request request = bench_ask(&bench, "a", 1, 2, way ? 1000 : 1);
        struct placement_member *member = (struct placement_member *)(uintptr_t)request.members;
        const struct placement_slot slot = {
            .node = {0}, .gpu_count = 2, .gpus = (const uint16_t[]){2, 3}};
        if (!way)
            member->sku_type = "K80";
        assert_int_not_equal(commit(&bench, &request, &slot, 1, false), 0);
        assert_int_equal(commit(&bench, &request, &slot, 1, true), 0);
        assert_int_equal(leaves_left(&bench, 2), 3);
        bench.placer->ops->release_group(bench.placer, "a");
        assert_int_equal(leaves_left(&bench, 2), 1);
        bench_release(&bench);
    }
}

/* Where there are no cells with GPUs, nobody else can get them. */
static void devices_that_no_cell_has(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 0, true);
    struct placement_request request = bench_ask(&bench, "a", 1, 2, 1);
    const struct placement_slot slot = {
        .node = {0}, .gpu_count = 2, .gpus = (const uint16_t[]){2, 3}};
    struct placement_result result;
    struct err err = {0};
    assert_int_equal(bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, &err),
                     ERR_NOT_FOUND);
    assert_string_equal(err.path, "gpu");
    assert_int_equal(commit(&bench, &request, &slot, 1, true), ERR_NOT_FOUND);
    bench_release(&bench);
}

/* A CPU task on a GPU leaf has no devices: it gets a leaf that no other task of its gang names. */
static void leaves_of_tasks_without_devices(void **state)
{
    (void)state;
    for (uint32_t with = 0; with < 2; with++) { /* which member has the GPU */
        struct bench bench;
        bench_init(&bench, plain);
        bench_node(&bench, 0, 16, 4, true);
        struct placement_request request = ask_mixed(&bench, "a", 1, 1);
        struct placement_member *members = (struct placement_member *)(uintptr_t)request.members;
        members[0].sku_type = members[1].sku_type = "V100";
        members[with].gpu = 1;
        members[!with].gpu = 0;
        members[!with].count = 2;
        struct placement_slot slots[3] = {{.node = {0}}, {.node = {0}}, {.node = {0}}};
        struct placement_slot *slot = &slots[with ? 2 : 0];
        slot->gpu_count = 1;
        slot->gpus = (const uint16_t[]){1};
        assert_int_equal(commit(&bench, &request, slots, 3, false), 0);
        assert_int_equal(leaves_left(&bench, 1), 1);
        bench_release(&bench);
    }
}

static void devices_of_one_leaf_are_one_leaf(void **state)
{
    (void)state;
    struct bench bench;
    mixed_init(&bench);
    struct placement_slot slots[2] = {
        {.node = {0}, .gpu_count = 2, .gpus = (const uint16_t[]){3, 2}},
        {.node = {1}, .gpu_count = 2, .gpus = (const uint16_t[]){0, 1}}};
    struct placement_request request = bench_ask(&bench, "a", 2, 2, 1);
    assert_int_equal(commit(&bench, &request, slots, 2, false), 0);
    struct placement_request next = bench_ask(&bench, "b", 2, 2, 1);
    struct placement_result result = bench_place(&bench, &next, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slots[0].gpus[0] + result.slots[1].gpus[0], 0 + 2);
    bench_release(&bench);
}

static void nodes_come_in_any_order(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 5, 16, 4, true);
    bench_node(&bench, 1, 16, 4, true);
    struct placement_slot slot = {
        .node = {1}, .gpu_count = 4, .gpus = (const uint16_t[]){0, 1, 2, 3}};
    struct placement_request request = bench_ask(&bench, "a", 1, 4, 1);
    assert_int_equal(commit(&bench, &request, &slot, 1, false), 0);
    struct placement_request next = bench_ask(&bench, "b", 1, 4, 1);
    assert_int_equal(bench_place(&bench, &next, true).slots[0].node.v, 5);
    slot.node.v = 0; /* of the two places, not of the two names */
    struct placement_request ghost = bench_ask(&bench, "c", 1, 4, 1);
    assert_int_equal(commit(&bench, &ghost, &slot, 1, false), ERR_NOT_FOUND);
    bench_release(&bench);
}

static int ask_code(struct bench *bench, const struct placement_request *request)
{
    struct placement_result result;
    struct err err = {0};
    return bench->placer->ops->place(bench->placer, request, &bench->arena, &result, &err);
}

static void demands_that_nothing_serves(void **state)
{
    (void)state;
    struct bench bench;
    mixed_init(&bench);
    struct placement_request request = bench_ask(&bench, "a", 1, 2, 1);
    struct placement_member *member = (struct placement_member *)(uintptr_t)request.members;
    member->sku_type = "H100";
    assert_int_equal(ask_code(&bench, &request), ERR_NOT_FOUND);
    member->sku_type = "CPU"; /* GPUs of a leaf that has none */
    assert_int_equal(ask_code(&bench, &request), ERR_INVALID);
    member->sku_type = "CPU, V100"; /* the second can */
    assert_int_equal(bench_place(&bench, &request, false).slots[0].gpu_count, 2);
    member->gpu = PLACEMENT_GPUS_MAX;
    assert_int_equal(bench_place(&bench, &request, false).kind, PLACEMENT_WAIT);
    member->gpu = PLACEMENT_GPUS_MAX + 1;
    assert_int_equal(ask_code(&bench, &request), ERR_INVALID);
    member->gpu = 0; /* so many CPUs that their leaves would bring as many GPUs */
    member->sku_type = "V100";
    member->cpu = (PLACEMENT_GPUS_MAX / 2 + 1) * 4;
    assert_int_equal(ask_code(&bench, &request), ERR_INVALID);
    request = bench_ask(&bench, "b", 1, 2, 1);
    request.virtual_cluster = "nobody";
    struct node_id avoid = {0};
    for (request.avoid_count = 0; request.avoid_count < 2; request.avoid_count++) {
        request.avoid = &avoid;
        assert_int_equal(ask_code(&bench, &request), ERR_INVALID);
    }
    bench_release(&bench);
}

static void leaves_by_the_scarcest_resource(void **state)
{
    (void)state;
    struct bench bench;
    mixed_init(&bench);
    static const struct {
        const char *type;
        uint32_t gpu, cpu;
        uint64_t memory_mib;
        uint32_t leaves;
    } cases[] = {
        {"V100", 0, 0, 0, 1},
        {"V100", 3, 1, 1, 2},
        {"V100", 1, 9, 1, 3},
        {"V100", 1, 1, 12289, 4},
        {"CPU", 0, 3, 1, 3},
        {"CPU", 1, 1, 1, 0},
        {"CPU", 0, UINT32_MAX, 1, HIVED_LEAVES_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(placer_hived_leaves(bench.placer, cases[i].type, cases[i].gpu,
                                             cases[i].cpu, cases[i].memory_mib),
                         cases[i].leaves);
    bench_release(&bench);
    bench_init(&bench, plain); /* CPUs and memory are not counted */
    assert_int_equal(placer_hived_leaves(bench.placer, "V100", 3, 1000, 1 << 30), 3);
    bench_release(&bench);
    struct placer *other = placer_simple_new("first-fit");
    assert_int_equal(placer_hived_leaves(other, "V100", 1, 1, 1), 0);
    other->ops->free(other);
}

static void members_without_tasks_take_nothing(void **state)
{
    (void)state;
    struct bench bench;
    mixed_init(&bench);
    struct placement_request request = ask_mixed(&bench, "a", 0, 2);
    struct placement_result result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slot_count, 2);
    assert_int_equal(leaves_left(&bench, 2), 4);
    bench_release(&bench);
}

/* A victim of two leaf types is one victim; and looking alone prepares nothing. */
static void victims_of_several_leaf_types(void **state)
{
    (void)state;
    struct bench bench;
    mixed_init(&bench);
    struct placement_request low = ask_mixed(&bench, "low", 4, 4),
                             high = ask_mixed(&bench, "high", 1, 1);
    assert_int_equal(bench_place(&bench, &low, true).kind, PLACEMENT_BIND);
    high.priority = 100;
    for (int may = 0; may < 2; may++) {
        high.may_preempt = may;
        struct placement_result result = bench_place(&bench, &high, false);
        assert_int_equal(result.kind, PLACEMENT_PREEMPT);
        assert_int_equal(result.victim_count, 1);
        assert_string_equal(result.victims[0], "low");
        struct hived_group_view view;
        assert_int_equal(hived_group_find(placer_hived_state(bench.placer), "high", &view), may);
    }
    bench.placer->ops->release_group(bench.placer, "low");
    assert_int_equal(bench_place(&bench, &high, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

static void a_copy_before_any_question(void **state)
{
    (void)state;
    struct bench bench;
    struct arena arena;
    bench_init(&bench, NULL);
    bench.placer->ops->cancel(bench.placer, "nobody");
    struct bench other = {.placer = bench.placer->ops->copy(bench.placer)};
    arena_init(&arena);
    other.arena = arena;
    bench_release(&bench);
    bench_node(&other, 0, 16, 4, true);
    struct placement_request request = bench_ask(&other, "a", 1, 4, 1);
    assert_int_equal(bench_place(&other, &request, true).kind, PLACEMENT_BIND);
    bench_release(&other);
}

static void node_tell(struct bench *bench, uint32_t id, struct node_facts node)
{
    node.is_healthy = true;
    node.gpu_type = node.gpu_type ? node.gpu_type : "V100";
    assert_int_equal(bench->placer->ops->node_set(bench->placer, (struct node_id){id}, &node, NULL),
                     0);
}

/* Each thing that makes a node another one changes its cells at the next question. */
static void cells_follow_the_shape_of_a_node(void **state)
{
    (void)state;
    static const uint16_t numa[] = {0, 0, 1, 1}, other_numa[] = {0, 1, 0, 1};
    const struct node_facts first = {.name = "n0",
                                     .cpu = 16,
                                     .memory_mib = 4096,
                                     .gpu_count = 4,
                                     .gpu_numa = numa,
                                     .gpu_switch = numa};
    struct node_facts changes[7];
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        changes[i] = first;
    changes[0].cpu = 8;
    changes[1].memory_mib = 2048;
    changes[2].gpu_count = 2;
    changes[3].gpu_type = "A100";
    changes[4].gpu_numa = NULL;
    changes[5].gpu_numa = other_numa;
    changes[6].gpu_switch = other_numa;
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct bench bench;
        bench_init(&bench, NULL);
        node_tell(&bench, 0, first);
        const struct hived_config *old = hived_config_of(placer_hived_state(bench.placer));
        node_tell(&bench, 0, first); /* nothing new */
        assert_ptr_equal(hived_config_of(placer_hived_state(bench.placer)), old);
        hived_config_share((struct hived_config *)(uintptr_t)old); /* or its memory is used again */
        node_tell(&bench, 0, changes[i]);
        assert_ptr_not_equal(hived_config_of(placer_hived_state(bench.placer)), old);
        hived_config_free((struct hived_config *)(uintptr_t)old);
        bench_release(&bench);
    }
}

/* A node that has less beside its GPUs than others of its type makes all leaves of the type as
 * small as its own; one that has nothing makes no cells. */
static void the_poorest_node_sizes_the_leaves(void **state)
{
    (void)state;
    static const struct node_facts poorer[] = {
        {.name = "n1", .cpu = 8, .memory_mib = 16384, .gpu_count = 4},
        {.name = "n1", .cpu = 16, .memory_mib = 8192, .gpu_count = 4},
    };
    for (size_t i = 0; i < COUNT_OF(poorer); i++) {
        struct bench bench;
        bench_init(&bench, NULL);
        bench_node(&bench, 0, 16, 4, true);
        uint32_t before = placer_hived_leaves(bench.placer, "V100", 1, 3, 3000);
        node_tell(&bench, 2, (struct node_facts){.name = "n2", .gpu_type = ""});
        assert_int_equal(placer_hived_leaves(bench.placer, "V100", 1, 3, 3000), before);
        node_tell(&bench, 1, poorer[i]);
        assert_true(placer_hived_leaves(bench.placer, "V100", 1, 3, 3000) > before);
        struct placement_request request = bench_ask(&bench, "all", 8, 1, 1);
        assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
        bench_release(&bench);
    }
}

static void a_node_beyond_the_limits_stays_out(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    bench_node(&bench, 0, 16, 4, true);
    node_tell(&bench, 1, (struct node_facts){.name = "n1", .gpu_count = UINT16_MAX});
    assert_int_equal(leaves_left(&bench, 1), 4);
    bench_release(&bench);
}

/* The first error is told, not the warnings before it. */
static void errors_are_told_before_warnings(void **state)
{
    (void)state;
    static const char document[] = /* 300 warnings */
        "physicalCluster:\n"
        "  cellTypes: {BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}, HALL: "
        "{childCellType: BOX, childCellNumber: 300}}\n"
        "  physicalCells: [{cellType: HALL}]\n"
        "virtualClusters: {default: {virtualCells: [{cellType: NONE, cellNumber: 1}]}}\n";
    struct arena arena;
    struct problems problems;
    struct err err = {0};
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(text_of(document), DOC_YAML, &arena, &problems);
    assert_null(placer_hived_new(doc, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, "line 4"));
    problems_release(&problems);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(other_slots_than_decided_are_taken_as_given),
    cmocka_unit_test(commits_that_cannot_be_are_refused_whole),
    cmocka_unit_test(recovery_refuses_nothing),
    cmocka_unit_test(a_leaf_of_several_devices_is_taken_once),
    cmocka_unit_test(a_task_without_devices_leaves_those_of_others),
    cmocka_unit_test(devices_that_are_expected),
    cmocka_unit_test(devices_of_demands_that_nothing_serves),
    cmocka_unit_test(devices_that_no_cell_has),
    cmocka_unit_test(leaves_of_tasks_without_devices),
    cmocka_unit_test(devices_of_one_leaf_are_one_leaf),
    cmocka_unit_test(nodes_come_in_any_order),
    cmocka_unit_test(demands_that_nothing_serves),
    cmocka_unit_test(leaves_by_the_scarcest_resource),
    cmocka_unit_test(members_without_tasks_take_nothing),
    cmocka_unit_test(victims_of_several_leaf_types),
    cmocka_unit_test(a_copy_before_any_question),
    cmocka_unit_test(cells_follow_the_shape_of_a_node),
    cmocka_unit_test(the_poorest_node_sizes_the_leaves),
    cmocka_unit_test(a_node_beyond_the_limits_stays_out),
    cmocka_unit_test(errors_are_told_before_warnings),
};
UNIT_FILE(tests, NULL, NULL);
