/* A node refuses a task, or starts it elsewhere: it is placed anew, and nobody's budget pays.
 *
 * Covers: src/core/tasks.c, src/core/jobs.c */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

static void refuse(struct world *world, uint64_t attempt)
{
    struct event event = {.kind = EVENT_TASK_REFUSED,
                          .random = 1,
                          .task = {.attempt = {attempt}, .reason = "OutOfcpu", .message = "4 < 8"}};
    world_step(world, &event);
}

static void start_on(struct world *world, uint64_t attempt, const char *node)
{
    struct event event = {.kind = EVENT_TASK_STARTED, .task = {.attempt = {attempt}, .node = node}};
    world_step(world, &event);
}

/* Retries cost nothing even where the job's policy knows no failure of the platform. */
static struct plan plan_without_budget(const char *name, const struct plan_role *role)
{
    struct plan plan = world_plan_of(name, role);
    plan.is_retry_fancy = false;
    plan.retry_max = 0;
    return plan;
}

static void a_gang_is_placed_anew_as_a_whole(void **state)
{
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        struct plan_role role = world_role("worker", 2, 1, 0);
        struct plan plan = plan_without_budget("gang", &role);
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 0);
        world_node(&world, "n2", 8, 0);
        uint32_t job = world_submit(&world, &plan);
        char first[8];
        snprintf(first, sizeof first, "%s", world_command(&world, COMMAND_CREATE, 0)->node);
        world_run(&world, 2); /* its peer runs by now */
        refuse(&world, 1);
        assert_true(world_has_story(&world, "TaskRefused", "refused it: OutOfcpu: 4 < 8"));
        assert_true(world_has_story(&world, "NodeAvoided", "it refused 1 task in a row"));
        assert_string_equal(world_command(&world, COMMAND_KILL, 0)->reason, "preempted");
        world_exit(&world, 2, 143, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
        for (size_t j = 0; j < 2; j++)
            assert_string_not_equal(world_command(&world, COMMAND_CREATE, j)->node, first);
        assert_int_equal(world_job(&world, job)->attempt, 1);
        assert_int_equal(world_job(&world, job)->retries_user, 0);
        assert_int_equal(world_job(&world, job)->retries_platform, 1);
        world_release(&world);
    }
}

static void a_task_of_its_own_is_placed_elsewhere(void **state)
{
    (void)state;
    struct world world;
    struct plan_role role = world_role("worker", 2, 1, 0);
    struct plan plan = plan_without_budget("loose", &role);
    plan.is_gang = false;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    uint32_t job = world_submit(&world, &plan);
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n1");
    assert_string_equal(core_attempt_node(world.core, (struct attempt_id){1}), "n1");
    assert_null(core_attempt_node(world.core, (struct attempt_id){99}));
    refuse(&world, 1);
    assert_true(
        world_has_story(&world, "TaskRefused",
                        "worker-0: node n1 refused it: OutOfcpu: 4 < 8, retried, not counted"));
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 1);
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n2");
    assert_int_equal(world_task(&world, job, 0, 0)->retries, 1);
    assert_int_equal(world_task(&world, job, 0, 0)->accountable_retries, 0);
    refuse(&world, 1); /* told again */
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_null(world_node_row(&world));
    world_release(&world);
}

static int64_t avoided_ms(const struct world *world)
{
    return world_node_row(world)->avoid_ms - world->now_ms;
}

/* The only node there is: it is asked again, after pauses that grow to a limit, never not at all.
 */
static void the_last_node_is_asked_again(void **state)
{
    (void)state;
    struct world world;
    int64_t longest_ms = 0;
    world_init(&world, "first-fit");
    world_keep(&world);
    world_node(&world, "n1", 8, 0);
    uint32_t job = world_submit_simple(&world, "alone", 1, 1, 0);
    for (uint64_t attempt = 1; attempt <= 20; attempt++) {
        refuse(&world, attempt);
        assert_int_equal(world_node_row(&world)->refusals, attempt);
        assert_in_range(avoided_ms(&world), 7500, 600000);
        if (avoided_ms(&world) > longest_ms)
            longest_ms = avoided_ms(&world);
        if (attempt == 5)
            world_restart(&world);
        for (int i = 0; i < 301 && !world_command_count(&world, COMMAND_CREATE); i++)
            world_timer(&world, 1000);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    }
    assert_in_range(longest_ms, 450000, 600000);
    world_run(&world, 21); /* it takes tasks again */
    assert_int_equal(world_node_row(&world)->refusals, 0);
    assert_int_equal(world_node_row(&world)->avoid_ms, 0);
    world_exit(&world, 21, 0, 0);
    assert_int_equal(world_job(&world, job)->state, LIFE_COMPLETED);
    assert_int_equal(world_job(&world, job)->retries_user, 0);
    world_release(&world);
}

/* For as long as it is avoided only, and by all jobs: then the order is as it was. */
static void others_avoid_the_node_for_a_while(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    world_submit_simple(&world, "a", 1, 1, 0);
    refuse(&world, 1);
    const int64_t while_ms = 10000;
    world_submit_simple(&world, "b", 1, 1, 0);
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n2");
    world_timer(&world, while_ms);
    world_submit_simple(&world, "c", 1, 1, 0);
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n1");
    world_release(&world);
}

static void what_a_node_refused_outlives_a_restart(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_keep(&world);
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    world_submit_simple(&world, "a", 1, 1, 0);
    refuse(&world, 1);
    const uint64_t before = core_hash(world.core);
    world_restart(&world);
    assert_true(core_hash(world.core) == before);
    struct core *copy = core_copy(world.core);
    assert_true(core_hash(copy) == before);
    core_free(copy);
    world_submit_simple(&world, "b", 1, 1, 0);
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n2");
    world_release(&world);
}

static void a_task_that_was_moved_is_ended_there(void **state)
{
    (void)state;
    for (int is_gang = 0; is_gang < 2; is_gang++) {
        struct world world;
        struct plan_role role = world_role("worker", 1, 1, 0);
        struct plan plan = plan_without_budget("moved", &role);
        plan.is_gang = is_gang;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 0);
        world_node(&world, "n2", 8, 0);
        uint32_t job = world_submit(&world, &plan);
        start_on(&world, 1, "n9");
        assert_true(world_has_story(&world, "NodeAvoided", "node n1 is taken last until"));
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        assert_int_equal(world_task(&world, job, 0, 0)->completion.code, CODE_REFUSED);
        world_exit(&world, 1, 137, 0);
        assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n2");
        assert_int_equal(world_job(&world, job)->retries_user, 0);
        start_on(&world, 2, "n2"); /* as was asked for */
        assert_int_equal(world_task(&world, job, 0, 0)->state, LIFE_RUNNING);
        start_on(&world, 1, "n9"); /* of an attempt that has ended */
        assert_int_equal(world.output.records.count, 0);
        world_release(&world);
    }
}

/* One that ends for another reason keeps that reason. */
/* Not every engine says why. */
static void a_refusal_may_give_no_reason(void **state)
{
    (void)state;
    struct world world;
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = plan_without_budget("gang", &role);
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    world_submit(&world, &plan);
    world_step(&world, &(struct event){.kind = EVENT_TASK_REFUSED, .task = {.attempt = {1}}});
    assert_true(world_has_story(&world, "TaskRefused", "refused it"));
    assert_false(world_has_story(&world, "TaskRefused", "refused it:"));
    /* it has ended by that: told again, nothing happens */
    world_step(&world, &(struct event){.kind = EVENT_TASK_REFUSED, .task = {.attempt = {1}}});
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_int_equal(world_story_count(&world, "TaskRefused"), 0);
    world_release(&world);
}

static void a_job_that_stops_stays_stopped(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    uint32_t job = world_submit_simple(&world, "a", 2, 1, 0);
    assert_int_equal(world_ask(&world, EVENT_STOP, job), 0);
    refuse(&world, 1);
    refuse(&world, 2);
    assert_int_equal(world_job(&world, job)->state, LIFE_COMPLETED);
    assert_int_equal(world_job(&world, job)->completion.code, CODE_STOP_REQUESTED);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gang_is_placed_anew_as_a_whole),
    cmocka_unit_test(a_task_of_its_own_is_placed_elsewhere),
    cmocka_unit_test(the_last_node_is_asked_again),
    cmocka_unit_test(others_avoid_the_node_for_a_while),
    cmocka_unit_test(what_a_node_refused_outlives_a_restart),
    cmocka_unit_test(a_task_that_was_moved_is_ended_there),
    cmocka_unit_test(a_refusal_may_give_no_reason),
    cmocka_unit_test(a_job_that_stops_stays_stopped),
};
UNIT_FILE(tests, NULL, NULL);
