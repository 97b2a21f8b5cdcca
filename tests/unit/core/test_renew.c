/* The automatic cells change their meaning while tasks run: a new placer is told of them.
 *
 * Covers: src/core/config.c */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "core/core.h"

enum { CPUS = 8 };

/* Of so much memory a CPU. Were what runs told anew? */
static bool node_set(struct world *world, uint32_t cpu, uint32_t memory_mib)
{
    struct event event = {
        .kind = EVENT_NODE,
        .node = {.name = "n1",
                 .cpu = cpu,
                 .memory_mib = (uint64_t)cpu * memory_mib,
                 .gpu_type = "",
                 .is_healthy = true,
                 .address = "10.0.0.1"},
    };
    world_step(world, &event);
    return world_has_trace(world, "what runs was told to a new placer");
}

static bool starts(struct world *world, const char *name, uint32_t instances, uint32_t cpu)
{
    world_submit_simple(world, name, instances, cpu, 0);
    return world_command_count(world, COMMAND_CREATE) == instances;
}

/* A machine comes back with other memory: its CPU leaves have other names, the tasks there keep
 * their CPUs. */
static void tasks_keep_their_cpus(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    assert_false(node_set(&world, CPUS, 1024));
    assert_true(starts(&world, "a", 2, 3));
    assert_true(node_set(&world, CPUS, 2048));
    assert_false(node_set(&world, CPUS, 2048));
    assert_false(starts(&world, "wide", 1, 3)); /* two are left */
    assert_true(starts(&world, "b", 2, 1));
    assert_false(starts(&world, "none", 1, 1));
    assert_true(node_set(&world, CPUS / 2, 2048)); /* fewer than are in use */
    assert_false(starts(&world, "more", 1, 1));
    assert_true(node_set(&world, 3 * CPUS, 2048)); /* who waits is served: 3 + 1 + 1 */
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 3);
    assert_true(starts(&world, "rest", 3 * CPUS - 8 - 5, 1));
    assert_false(starts(&world, "last", 1, 1));
    world_release(&world);
}

/* Cells are made in pieces, of which those in use know nothing: what begins to run on these while
 * others are still to be made is told to a new placer, too, and nobody waits for ever. */
static void what_began_on_old_cells_is_told(void **state)
{
    (void)state;
    enum { OTHERS = 8, AT = 3 /* n1 has had its turn */, STEPS_MAX = 1000 };
    struct world world;
    world_init(&world, "hived");
    core_slice_set(world.core, 1);
    node_set(&world, CPUS, 1024);
    for (uint32_t i = 0; i < OTHERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "other%u", i);
        world_node(&world, name, CPUS, 0);
    }
    world_pass_end(&world);
    assert_false(node_set(&world, CPUS, 2048)); /* nothing runs */
    for (uint32_t i = 0; i < AT; i++)
        assert_true(world_pass_step(&world));
    assert_false(node_set(&world, CPUS, 4096));
    world_pass_end(&world);
    bool has_begun = starts(&world, "a", 1, 1), is_told = false;
    uint32_t steps = 0;
    for (; steps < STEPS_MAX && world_pass_step(&world); steps++) {
        has_begun |= world_command_count(&world, COMMAND_CREATE) > 0;
        is_told |= world_has_trace(&world, "what runs was told to a new placer");
    }
    assert_true(has_begun);
    assert_true(is_told);
    assert_in_range(steps, 1, STEPS_MAX - 1);
    world_release(&world);
}

/* A preemption is begun anew with the new placer. */
static void a_preemption_under_way(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    node_set(&world, CPUS, 1024);
    assert_true(starts(&world, "low", 1, CPUS));
    uint64_t attempt = world_command(&world, COMMAND_CREATE, 0)->attempt.v;
    world_run(&world, attempt);
    struct plan_role role = world_role("worker", 1, CPUS, 0);
    struct plan plan = world_plan_of("high", &role);
    plan.priority = 100;
    assert_true(world_submit(&world, &plan) != 0);
    assert_int_equal(world_story_count(&world, "Preempted"), 1);
    assert_true(node_set(&world, CPUS, 2048));
    world_exit(&world, attempt, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_release(&world);
}

/* The first machine beyond a million CPUs makes a leaf two CPUs. */
static void growth_keeps_what_runs(void **state)
{
    (void)state;
    enum { LARGE = 4096, FIT = (1 << 20) / LARGE };
    struct world world;
    world_init(&world, "hived");
    node_set(&world, CPUS, 1024);
    assert_true(starts(&world, "a", 2, 3));
    for (uint32_t i = 0; i < FIT; i++) {
        char name[16];
        snprintf(name, sizeof name, "large%u", i);
        world_node(&world, name, LARGE, 0);
        assert_int_equal(world_has_trace(&world, "what runs was told to a new placer"),
                         i + 1 == FIT);
    }
    world_release(&world);
}

/* --- another policy begins while tasks run --- */

static const char two_boxes[] =
    "physicalCluster:\n"
    "  skuTypes: {V100: {gpu: 1, cpu: 4, memory: 1Gi}}\n"
    "  cellTypes: {BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: BOX, cellAddress: n0}, {cellType: BOX, cellAddress: n1}]\n"
    "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 2}]}}\n";

/* A worker with all GPUs of a node, and a server with many CPUs. */
static void with_server(struct world *world, const char *name, uint32_t cpu)
{
    struct plan_role roles[] = {world_role("worker", 1, cpu, 4), world_role("server", 1, cpu, 0)};
    struct plan plan = world_plan(name);
    plan.roles = roles;
    plan.role_count = 2;
    assert_true(world_submit(world, &plan) != 0);
    assert_int_equal(world_command_count(world, COMMAND_CREATE), 2);
}

static void hived_begin(struct world *world)
{
    world->config.policy = "hived";
    world->config.placement_document = TEXT(two_boxes);
    world_configure(world);
}

static bool waits(struct world *world, const char *name, uint32_t gpu)
{
    world_submit_simple(world, name, 1, 1, gpu);
    return world_command_count(world, COMMAND_CREATE) == 0;
}

/* The first gang's server lies on a node whose GPUs are all of the second: it must not be counted
 * in one of their cells, which would be free when the first has ended. */
static void a_server_takes_no_device(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n0", 16, 4);
    world_node(&world, "n1", 16, 4);
    with_server(&world, "a", 10); /* its server is on n1 */
    with_server(&world, "b", 3);  /* its worker is on n1 */
    assert_string_equal(world_task(&world, 2, 0, 0)->node, "n1");
    hived_begin(&world);
    for (uint64_t attempt = 1; attempt <= 2; attempt++) {
        world_run(&world, attempt);
        world_exit(&world, attempt, 0, 0);
    }
    assert_false(waits(&world, "c", 4));
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n0");
    assert_true(waits(&world, "d", 1));
    world_release(&world);
}

/* It runs on a GPU of which the new cells know nothing but the device. */
static void an_unknown_type_keeps_its_devices(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n0", 16, 4);
    struct plan_role role = world_role("worker", 1, 1, 4);
    struct plan plan = world_plan_of("a", &role);
    role.sku_type = "V100";
    assert_true(world_submit(&world, &plan) != 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world.config.policy = "hived";
    world.config.placement_document =
        TEXT("physicalCluster:\n"
             "  skuTypes: {A100: {gpu: 1, cpu: 4, memory: 1Gi}}\n"
             "  cellTypes: {BOX: {childCellType: A100, childCellNumber: 4, isNodeLevel: true}}\n"
             "  physicalCells: [{cellType: BOX, cellAddress: n0}]\n"
             "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n");
    world_configure(&world);
    assert_true(waits(&world, "b", 1));
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1); /* b */
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_keep_their_cpus),    cmocka_unit_test(what_began_on_old_cells_is_told),
    cmocka_unit_test(a_preemption_under_way),   cmocka_unit_test(growth_keeps_what_runs),
    cmocka_unit_test(a_server_takes_no_device), cmocka_unit_test(an_unknown_type_keeps_its_devices),
};
UNIT_FILE(tests, NULL, NULL);
