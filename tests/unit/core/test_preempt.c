/* Preemption: as few as needed, never the job's own, nothing left behind. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "hived/hived.h"
#include "placement/hived.h"

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

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

/* A node of four GPUs, and so many jobs that run on one each, and that anybody may preempt. */
static void begin_with_low(struct world *world, const char *policy, unsigned jobs)
{
    world_init(world, policy);
    world_node(world, "n1", 16, 4);
    for (unsigned k = 1; k <= jobs; k++) {
        char name[16];
        snprintf(name, sizeof name, "low%u", k);
        submit(world, name, -1, true, 1, 1);
        world_run(world, k);
    }
}

/* One task of a job ends others at a time: what it ends may be enough for the next. */
static void tasks_preempt_one_after_another(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct world world;
        begin_with_low(&world, policies[i], 4);
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

/* The task that preempts is no longer wanted: its place is the other one's. */
static void a_task_is_scaled_away_while_it_preempts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct world world;
        begin_with_low(&world, policies[i], 3);
        struct plan_role roles[] = {world_role("runs", 1, 1, 1), world_role("one", 1, 1, 1),
                                    world_role("two", 1, 1, 1)};
        struct plan plan = world_plan_of("high", roles);
        plan.role_count = 3;
        plan.priority = 100;
        plan.is_gang = false;
        const uint32_t job = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        const uint64_t victim = world_command(&world, COMMAND_KILL, 0)->attempt.v;
        struct event event = {
            .kind = EVENT_SCALE, .request = ++world.request, .scale = {{job}, 1, 0}};
        world_step(&world, &event);
        assert_int_equal(world_answer(&world)->code, 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_exit(&world, victim, 143, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->task.role, 2);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_release(&world);
    }
}

/* A gang that waits for its victims is not tried at each end, but when the last of them has ended
 * or a node has changed. Every ten seconds it is told which are left. */
static void a_gang_waits_for_its_last_victim(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct world world;
        begin_with_low(&world, policies[i], 4);
        world_timer(&world, 1); /* the node is of before */
        uint32_t high = submit(&world, "high", 100, true, 1, 4);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 4);
        world_exit(&world, 2, 143, 0);
        assert_false(world_has_trace(&world, "job alice~high"));
        world_timer(&world, 10000);
        assert_true(world_has_trace(&world, "not ended yet: alice~low1/0, alice~low3/0"));
        assert_null(strstr(world_job(&world, high)->reason, "low2"));
        world_node(&world, "n2", 16, 0);
        assert_true(world_has_trace(&world, "job alice~high"));
        struct core *copy = core_copy(world.core);
        core_check(copy);
        core_free(copy);
        world_exit(&world, 1, 143, 0);
        world_exit(&world, 4, 143, 0);
        assert_false(world_has_trace(&world, "job alice~high"));
        world_exit(&world, 3, 143, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, high);
        world_release(&world);
    }
}

/* A gang of which one part could end others, but another part has no place at all, ends nobody and
 * keeps no place: another job ends them for itself. */
static void a_gang_without_a_place_keeps_none(void **state)
{
    (void)state;
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

/* The node is lost on which others are being ended: they have ended with it, and whoever preempted
 * them, a gang or one task, does not start there. */
static void nobody_starts_on_the_lost_node_of_its_victims(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i / 2]);
        world_node(&world, "n1", 16, 4);
        submit(&world, "low", -1, true, 1, 4);
        world_run(&world, 1);
        world_node(&world, "n2", 16, 4);
        submit(&world, "top", 500, true, 1, 4);
        world_run(&world, 2);
        uint32_t high = submit(&world, "high", 100, i % 2, 1, 4);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->attempt.v, 1);
        world_node_event(&world, EVENT_NODE_LOST, "n1");
        assert_int_equal(world_job(&world, 1)->state, LIFE_CREATION_PENDING);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_timer(&world, 60000); /* it may have to wait before it preempts again */
        world_exit(&world, 2, 0, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, high);
        assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n2");
        world_release(&world);
    }
}

static void test_preemption(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 4);
        uint32_t cheap = world_submit_for(&world, "cheap", -1, 4, 0);
        world_run(&world, 1);
        uint32_t dear = world_submit_for(&world, "dear", 100, 4, 0);
        const struct command *kill = world_command(&world, COMMAND_KILL, 0);
        assert_non_null(kill);
        assert_string_equal(kill->reason, "preempted");
        assert_int_equal(kill->grace_ms, 30000);
        assert_non_null(strstr(world_job(&world, dear)->reason, "alice~cheap"));
        assert_true(world_has_story(&world, "Preempted", "alice~dear"));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_submit_for(&world, "other", 10, 4, 0); /* nobody slips in between */
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_exit(&world, 1, 143, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, dear);
        const struct job_record *record = world_job(&world, cheap);
        assert_int_equal(record->state, LIFE_CREATION_PENDING);
        assert_int_equal(record->retries_platform, 1);
        assert_int_equal(record->retries_user, 0);
        /* it had waited longer, but priority comes first */
        world_exit(&world, 2, 0, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
        world_release(&world);
    }
}

static void test_preemptor_is_stopped(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_submit_for(&world, "cheap", -1, 4, 0);
    uint32_t dear = world_submit_for(&world, "dear", 100, 4, 0);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_ask(&world, EVENT_STOP, dear);
    uint32_t third = world_submit_for(&world, "third", 10, 4, 0);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, third);
    world_release(&world);
}

/* Within one virtual cluster a job behind the starving one ends nobody for room that it needs; it
 * says so. */
static void who_preempts_must_leave_room(void **state)
{
    (void)state;
    struct world world;
    world_two_clusters_init(&world);
    world_submit_to(&world, "holder", "red", 100, 2);
    world_run(&world, 1);
    world_submit_to(&world, "low", "red", 10, 2);
    world_run(&world, 2);
    world_submit_to(&world, "wide", "red", 50, 4); /* may end low, not holder */
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    uint32_t late = world_submit_to(&world, "late", "red", 50, 2);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    assert_string_equal(world_job(&world, late)->reason,
                        "others of lower priority would have to be preempted, but room is held "
                        "back for alice~wide; held by alice~low/0");
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_preempt_one_after_another),
    cmocka_unit_test(a_task_is_scaled_away_while_it_preempts),
    cmocka_unit_test(a_gang_waits_for_its_last_victim),
    cmocka_unit_test(a_gang_without_a_place_keeps_none),
    cmocka_unit_test(a_stopped_gang_gives_up_cells_of_all_kinds),
    cmocka_unit_test(nobody_preempts_its_own),
    cmocka_unit_test(holds_end_with_the_policy),
    cmocka_unit_test(nobody_starts_on_the_lost_node_of_its_victims),
    cmocka_unit_test(test_preemption),
    cmocka_unit_test(test_preemptor_is_stopped),
    cmocka_unit_test(who_preempts_must_leave_room),
};
UNIT_FILE(tests, NULL, NULL);
