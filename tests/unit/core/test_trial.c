/* What would become of a job: told by a copy, the core stays as it is. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/trial.h"
#include "placement/placement.h"

static struct arena arena;

static int try_job(struct world *world, const char *name, uint32_t instances, uint32_t gpu,
                   int32_t priority, struct core_trial *trial, struct err *err)
{
    struct plan_role role = world_role("worker", instances, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    plan.priority = priority;
    struct event event = {.kind = EVENT_SUBMIT,
                          .now_ms = world->now_ms,
                          .user = plan.user,
                          .submit = {.plan = plan_copy(&plan)}};
    return world_trial(world, &event, &arena, trial, err);
}

static void a_job_that_fits(void **state)
{
    (void)state;
    struct world world;
    struct core_trial trial;
    struct err err;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    assert_int_equal(try_job(&world, "two", 2, 2, 10, &trial, &err), 0);
    assert_true(trial.is_placed);
    assert_int_equal(trial.task_count, 2);
    assert_string_equal(trial.tasks[0].node, "n1");
    assert_string_equal(trial.tasks[0].role, "worker");
    assert_int_equal(trial.tasks[1].index, 1);
    assert_int_equal(trial.tasks[1].gpu_count, 2);
    assert_int_equal(trial.victim_count, 0);
    /* nothing has happened: it fits once more */
    assert_int_equal(try_job(&world, "two", 2, 2, 10, &trial, &err), 0);
    assert_true(trial.is_placed);
    assert_int_equal(world_submit_simple(&world, "real", 1, 1, 4), 1);
    assert_int_equal(try_job(&world, "two", 2, 2, 10, &trial, &err), 0);
    assert_false(trial.is_placed);
    assert_true(strlen(trial.reason) > 0);
    world_release(&world);
}

static void a_job_that_is_refused(void **state)
{
    (void)state;
    struct world world;
    struct core_trial trial;
    struct err err;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    world_submit_simple(&world, "real", 1, 1, 4);
    assert_int_equal(try_job(&world, "real", 1, 1, 10, &trial, &err), ERR_CONFLICT);
    assert_int_equal(trial.task_count, 0);
    world_release(&world);
}

/* Jobs of less priority would go for it; each is named once. */
static void a_job_that_preempts(void **state)
{
    (void)state;
    struct world world;
    struct core_trial trial;
    struct err err;
    world_init(&world, "hived");
    world_node(&world, "n1", 16, 4);
    struct plan_role role = world_role("worker", 2, 1, 2);
    struct plan plan = world_plan_of("low", &role);
    plan.priority = -1;
    uint32_t low = world_submit(&world, &plan);
    assert_int_equal(try_job(&world, "high", 1, 4, 100, &trial, &err), 0);
    assert_false(trial.is_placed);
    assert_int_equal(trial.victim_count, 1);
    assert_int_equal(trial.victims[0].v, low);
    world_release(&world);
}

/* Each of its tasks is told to end, and the job is named once. */
static void a_victim_of_several_tasks(void **state)
{
    (void)state;
    struct world world;
    struct core_trial trial;
    struct err err;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    struct plan_role role = world_role("worker", 2, 1, 2);
    struct plan plan = world_plan_of("low", &role);
    plan.priority = -1;
    plan.is_gang = false;
    uint32_t low = world_submit(&world, &plan);
    assert_int_equal(try_job(&world, "high", 1, 4, 100, &trial, &err), 0);
    assert_false(trial.is_placed);
    assert_int_equal(trial.victim_count, 1);
    assert_int_equal(trial.victims[0].v, low);
    world_release(&world);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

/* A gang that would be placed in several steps is told whole, also while another one is placed. */
static void a_gang_in_steps(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    for (int i = 0; i < 4; i++)
        world_node(&world, (const char *[]){"n1", "n2", "n3", "n4"}[i], 16, 4);
    core_slice_set(world.core, 1);
    struct plan_role roles[] = {world_role("a", 1, 1, 4), world_role("b", 1, 1, 4)};
    roles[0].affinity_group = "a";
    roles[1].affinity_group = "b";
    struct plan plan = world_plan_of("gang", roles);
    plan.role_count = 2;
    for (int i = 0; i < 2; i++) {
        struct core_trial trial;
        struct err err;
        plan.name = "trial";
        struct event event = {.kind = EVENT_SUBMIT,
                              .now_ms = world.now_ms,
                              .user = plan.user,
                              .submit = {.plan = plan_copy(&plan)}};
        assert_int_equal(world_trial(&world, &event, &arena, &trial, &err), 0);
        assert_true(trial.is_placed);
        assert_int_equal(trial.task_count, 2);
        plan.name = "gang";
        if (i == 0)
            world_submit(&world, &plan);
    }
    world_release(&world);
}

/* Their cells are given back in several steps: the job is tried when all are free. */
static void behind_large_groups_that_have_ended(void **state)
{
    (void)state;
    struct world world;
    struct core_trial trial;
    struct err err;
    world_init(&world, "hived");
    world_node(&world, "n1", 16, 8);
    world_node(&world, "n2", 16, 8);
    world_submit_simple(&world, "a", 1, 1, 8);
    world_submit_simple(&world, "b", 1, 1, 8);
    core_slice_set(world.core, 1);
    for (uint64_t attempt = 1; attempt <= 2; attempt++)
        world_run(&world, attempt);
    for (uint64_t attempt = 1; attempt <= 2; attempt++)
        world_exit(&world, attempt, 0, 0);
    struct placer *placer = core_placer(world.core);
    assert_false(placer->ops->tidy(placer, 0));
    assert_int_equal(try_job(&world, "both", 2, 1, 8, &trial, &err), 0);
    assert_true(trial.is_placed);
    assert_int_equal(trial.task_count, 2);
    world_release(&world);
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_that_fits),     cmocka_unit_test(a_job_that_is_refused),
    cmocka_unit_test(a_job_that_preempts), cmocka_unit_test(a_victim_of_several_tasks),
    cmocka_unit_test(a_gang_in_steps),     cmocka_unit_test(behind_large_groups_that_have_ended),
};
UNIT_FILE(tests, setup, teardown);
