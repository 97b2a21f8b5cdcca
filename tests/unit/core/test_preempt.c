/* Preemption: as few as needed, never the job's own, nothing left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "hived/hived.h"
#include "placement/hived.h"
#include "world.h"

static uint32_t submit(struct world *world, const char *name, int32_t priority, bool is_gang,
                       uint32_t instances, uint32_t gpu)
{
    struct plan_role role = world_role("worker", instances, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    role.task_retry_max = 3;
    plan.priority = priority;
    plan.is_gang = is_gang;
    return world_submit(world, &plan);
}

/* One task of a job ends others at a time: what it ends may be enough for the next. */
static void tasks_preempt_one_after_another(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 16, 4);
        for (uint64_t k = 1; k <= 4; k++) {
            char name[16];
            snprintf(name, sizeof name, "low%u", (unsigned)k);
            submit(&world, name, -1, true, 1, 1);
            world_run(&world, k);
        }
        struct plan_role roles[] = {world_role("one", 1, 1, 1), world_role("two", 1, 1, 1)};
        struct plan plan = world_plan_of("high", roles);
        plan.role_count = 2;
        plan.priority = 100;
        plan.is_gang = false;
        uint32_t job = world_submit(&world, &plan);
        for (int task = 0; task < 2; task++) {
            assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
            world_exit(&world, world_command(&world, COMMAND_KILL, 0)->attempt.v, 143, 0);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
            assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
        }
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_release(&world);
    }
}

/* A gang of which one part could end others, but another part has no place at all, ends nobody and
 * keeps no place: another job ends them for itself. */
static void a_gang_without_a_place_keeps_none(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 16, 4);
        world_node(&world, "n2", 16, 4);
        submit(&world, "low", -1, true, 1, 4);
        submit(&world, "top", 500, true, 1, 4);
        world_run(&world, 1);
        world_run(&world, 2);
        struct plan_role roles[] = {world_role("one", 1, 1, 4), world_role("two", 1, 1, 4)};
        struct plan plan = world_plan_of("gang", roles);
        plan.role_count = 2;
        plan.priority = 100;
        roles[0].affinity_group = "one";
        roles[1].affinity_group = "two";
        world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        uint32_t other = submit(&world, "other", 50, true, 1, 4);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        world_exit(&world, 1, 143, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, other);
        world_release(&world);
    }
}

/* A gang on cells of two kinds that waits for its victims is stopped: no cell of either kind waits
 * any longer, and its victim starts again on both at once. */
static void a_stopped_gang_gives_up_cells_of_all_kinds(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 16, 4);
    struct plan_role roles[] = {world_role("worker", 4, 1, 1), world_role("ps", 4, 1, 0)};
    struct plan plan = world_plan_of("low", roles);
    plan.role_count = 2;
    plan.priority = -1;
    world_submit(&world, &plan);
    for (uint64_t attempt = 1; attempt <= 8; attempt++)
        world_run(&world, attempt);
    plan.name = "high";
    plan.priority = 100;
    uint32_t high = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 8);
    assert_int_equal(world_ask(&world, EVENT_STOP, high), 0);
    for (uint64_t attempt = 1; attempt <= 8; attempt++)
        world_exit(&world, attempt, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 8);
    world_release(&world);
}

/* A task that HiveD has downgraded to opportunistic use is in the way of a retry of another task of
 * the same job: ending it would only make it the next that retries. */
static void nobody_preempts_its_own(void **state)
{
    (void)state;
    static const char one_node[] =
        "physicalCluster:\n"
        "  cellTypes: {NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}}\n"
        "  physicalCells: [{cellType: NODE, cellAddress: n1}, {cellType: NODE, cellAddress: n2}]\n"
        "virtualClusters:\n"
        "  default: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n";
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    world_node(&world, "n2", 16, 4);
    submit(&world, "a", 10, false, 2, 4);
    world_run(&world, 1);
    world_run(&world, 2);
    world.config.policy = "hived";
    world.config.placement_document = text_of(one_node);
    world_configure(&world);
    struct hived_group_view view;
    assert_true(hived_group_find(placer_hived_state(core_placer(world.core)),
                                 "alice~a/0/worker-1.0", &view));
    assert_false(view.has_virtual);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    assert_true(world_has_trace(&world, "they are of the same job"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_timer(&world, 60000);
    }
    world_release(&world);
}

/* Whatever the policy was and becomes: a gang that waits for what it preempts begins anew with the
 * new policy, which then knows what is kept for it; else others would get the same GPUs. */
static void holds_end_with_the_policy(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < 16; i++) {
        struct world world;
        world_init(&world, policies[i / 4]);
        world_node(&world, "n1", 16, 4);
        world_node(&world, "n2", 16, 4);
        submit(&world, "low", -1, true, 1, 4);
        world_run(&world, 1);
        struct plan_role roles[] = {world_role("one", 1, 1, 4), world_role("two", 1, 1, 4)};
        struct plan plan = world_plan_of("high", roles);
        plan.role_count = 2;
        plan.priority = 100;
        roles[0].affinity_group = "one"; /* two parts: one is bound, one preempts */
        roles[1].affinity_group = "two";
        uint32_t job = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        world.config.policy = policies[i % 4];
        world_configure(&world);
        submit(&world, "small", 50, true, 1, 4);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_exit(&world, 1, 143, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
        struct core_counts counts;
        core_count(world.core, &counts);
        assert_int_equal(counts.gpus_used, 8);
        world_release(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_preempt_one_after_another),
        cmocka_unit_test(a_gang_without_a_place_keeps_none),
        cmocka_unit_test(a_stopped_gang_gives_up_cells_of_all_kinds),
        cmocka_unit_test(nobody_preempts_its_own),
        cmocka_unit_test(holds_end_with_the_policy),
    };
    return cmocka_run_group_tests_name("core preempt", tests, NULL, NULL);
}
