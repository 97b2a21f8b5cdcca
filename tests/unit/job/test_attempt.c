/* One attempt of a job: from its places to its end, and what is held after it. */
#include "job_world.h"
#include "unit.h"

static void gang_succeeds(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(2, 1));
    world_begin(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 3);
    assert_true(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){1, 0}));
    assert_false(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){1, 1}));
    world_place(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_CREATE), 3);
    assert_int_equal(world_count(&world, JOB_ACTION_UNQUEUE), 1);
    assert_int_equal(world.job.state, LIFE_CREATION_REQUESTED);
    assert_int_equal(world_task(&world, 1, 0)->attempt.v, 3);
    world_run(&world, 0, 0);
    assert_int_equal(world.job.state, LIFE_RUNNING);
    assert_int_equal(world.job.launched_ms, world.now_ms);
    world_run(&world, 0, 1);
    world_run(&world, 1, 0);
    world_exit(&world, 0, 0, 0, 0);
    world_exit(&world, 0, 1, 0, 0);
    assert_int_equal(world.job.state, LIFE_RUNNING);
    world_exit(&world, 1, 0, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_true(world.job.completion->is_success);
    assert_int_equal(world.job.trigger_role, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_RELEASE), 1);
    assert_int_equal(world_count(&world, JOB_ACTION_ATTEMPT_COMPLETED), 1);
    assert_int_equal(world_count(&world, JOB_ACTION_COMPLETED), 1);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
    world_release(&world);
}

/* It is stopped while it ends because of a task: nobody has ended its next life. */
static void a_new_life_has_no_end_yet(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(2));
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, 1, EXIT_PERMANENT);
    assert_int_equal(world.job.trigger_role, 0);
    world_simple(&world, JOB_EVENT_STOP);
    world_exit(&world, 0, 1, 143, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    world_simple(&world, JOB_EVENT_START);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.trigger_role, -1);
    assert_int_equal(world.job.trigger_index, -1);
    world_release(&world);
}

static void failure_ends_the_others(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 1, 7, 0);
    assert_int_equal(world.job.state, LIFE_DELETION_REQUESTED);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 2);
    assert_string_equal(world_find(&world, JOB_ACTION_KILL)->reason, "attempt completed");
    assert_int_equal(world_find(&world, JOB_ACTION_KILL)->grace_ms, 10000);
    assert_string_equal(world_story(&world, "TaskFailed"),
                        "a-1 exited 7 (ContainerUnrecognizedFailed), not retried");
    world_exit(&world, 0, 0, 143, EXIT_TRANSIENT);
    world_exit(&world, 0, 0, 143, EXIT_TRANSIENT); /* told twice: nothing */
    assert_int_equal(world.out.count, 0);
    world_exit(&world, 0, 2, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_int_equal(world.job.completion->code, 7);
    assert_int_equal(world_task(&world, 0, 0)->completion->code, CODE_ATTEMPT_COMPLETION);
    world_release(&world);
}

static void gang_timeout_backs_off(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world.policy.gang_timeout_s = 500;
    world_begin(&world);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), world.now_ms + 500000);
    world_timer(&world);
    assert_int_equal(world.job.state, LIFE_ATTEMPT_COMPLETED);
    assert_int_equal(world.job.completion->code, CODE_GANG_TIMEOUT);
    assert_int_equal(world_count(&world, JOB_ACTION_UNQUEUE), 1);
    assert_non_null(world_story(&world, "BackingOff"));
    world_timer(&world);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.retries_resource, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    world_release(&world);
}

static void held_after_failure(void **state)
{
    (void)state;
    for (int end = 0; end < 2; end++) {
        struct job_world world;
        world_init(&world, ROLES(2));
        world.policy.debug_hold_s = 604800;
        world_begin(&world);
        world_run_all(&world);
        world_exit(&world, 0, 0, 3, 0);
        assert_int_equal(world_count(&world, JOB_ACTION_HOLD), 1);
        assert_true(world_find(&world, JOB_ACTION_KILL)->is_held);
        world_exit(&world, 0, 1, 143, 0);
        assert_int_equal(world.job.state, LIFE_COMPLETED);
        assert_int_equal(world.job.held, 2);
        assert_non_null(world_story(&world, "Held"));
        assert_int_equal(job_wake_ms(&world.job, &world.policy), world.now_ms + 604800000);
        if (end == 0)
            world_simple(&world, JOB_EVENT_RELEASE);
        else
            world_timer(&world);
        assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 2);
        assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
        world_simple(&world, JOB_EVENT_RELEASE);
        assert_int_equal(world.out.count, 0);
        world_release(&world);
    }
    struct job_world world; /* tried again: nothing is kept */
    world_init(&world, ROLES(1));
    world.policy.debug_hold_s = 10;
    world.policy.retry.max = 1;
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, 3, 0);
    assert_int_equal(world_count(&world, JOB_ACTION_HOLD), 1);
    assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 1);
    assert_int_equal(world.job.held, 0);
    world_release(&world);
}

static void told(struct job_world *world, enum job_event_kind kind, uint32_t slice)
{
    world_step(world, (struct job_event){.kind = kind, .slice = slice});
}

/* Of a large attempt: each step tells so many tasks. What ends before its turn keeps its own end.
 */
static void an_end_is_told_in_steps(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3, 2));
    world_begin(&world);
    world_run_all(&world);
    told(&world, JOB_EVENT_STOP, 2);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 2);
    assert_true(job_goes_on(&world.job));
    assert_int_equal(world.job.state, LIFE_DELETION_REQUESTED);
    world_exit(&world, 0, 2, 7, 0);
    assert_int_equal(world_task(&world, 0, 2)->completion->code, 7);
    world_exit(&world, 0, 0, 143, 0);
    world_exit(&world, 0, 1, 143, 0);
    assert_int_equal(world_task(&world, 0, 0)->completion->code, CODE_ATTEMPT_COMPLETION);
    told(&world, JOB_EVENT_GO_ON, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 1);
    assert_int_equal(world_find(&world, JOB_ACTION_KILL)->task.role, 1);
    assert_string_equal(world_find(&world, JOB_ACTION_KILL)->reason, "stopped");
    assert_true(job_goes_on(&world.job));
    world_exit(&world, 1, 0, 143, 0);
    world_exit(&world, 1, 1, 0, 0); /* the last, by itself: nobody is left to tell */
    assert_false(job_goes_on(&world.job));
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_int_equal(world.job.completion->code, CODE_STOP_REQUESTED);
    told(&world, JOB_EVENT_GO_ON, 1);
    assert_int_equal(world.out.count, 0);
    world_release(&world);
}

/* A job of three tasks that has failed, and whose containers are kept. */
static void failed_begin(struct job_world *world)
{
    world_init(world, ROLES(3));
    world->policy.debug_hold_s = 10;
    world_begin(world);
    world_run_all(world);
    for (uint16_t i = 0; i < 3; i++)
        world_exit(world, 0, i, 3, 0);
    assert_int_equal(world->job.held, 3);
}

/* Which containers is decided at once, and the row names them no more; FORGET follows for so many
 * in each step. */
static void held_containers_go_in_steps(void **state)
{
    (void)state;
    for (int end = 0; end < 2; end++) {
        struct job_world world;
        failed_begin(&world);
        world.now_ms += end == 1 ? 10000 : 0;
        told(&world, end == 0 ? JOB_EVENT_RELEASE : JOB_EVENT_TIMER, 2);
        assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 2);
        assert_int_equal(world.job.held, 0);
        assert_int_equal(world.job.let_go, 1);
        assert_true(job_goes_on(&world.job));
        assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
        told(&world, JOB_EVENT_RELEASE, 1);
        assert_int_equal(world.out.count, 0);
        told(&world, JOB_EVENT_GO_ON, 1);
        assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 1);
        assert_int_equal(world_find(&world, JOB_ACTION_FORGET)->task.index, 2);
        assert_false(job_goes_on(&world.job));
        world_release(&world);
    }
}

/* While some are let go, what a task leaves that fails then is kept. */
static void a_later_failure_is_held(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(4));
    world.policy.debug_hold_s = 10;
    world.policy.is_gang = false;
    world.roles[0].min_failed = -1;
    world_begin(&world);
    world_run_all(&world);
    for (uint16_t i = 0; i < 2; i++)
        world_exit(&world, 0, i, 3, 0);
    told(&world, JOB_EVENT_RELEASE, 1);
    assert_int_equal(world_find(&world, JOB_ACTION_FORGET)->task.index, 0);
    world_exit(&world, 0, 2, 3, 0);
    assert_int_equal(world.job.held, 1);
    told(&world, JOB_EVENT_GO_ON, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 1);
    assert_int_equal(world_find(&world, JOB_ACTION_FORGET)->task.index, 1);
    assert_false(job_goes_on(&world.job));
    assert_true(world_task(&world, 0, 2)->is_held);
    told(&world, JOB_EVENT_RELEASE, 1);
    assert_int_equal(world_find(&world, JOB_ACTION_FORGET)->task.index, 2);
    world_release(&world);
}

/* The table of an attempt that is retried goes when all of them have been let go. */
static void a_retry_waits_until_all_are_let_go(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(2));
    world.policy.debug_hold_s = 10;
    world.policy.retry.max = 1;
    world.roles[0].min_failed = 2;
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, 3, 0);
    const struct completion failed = completion_of(3, "%s", "");
    world_step(&world, (struct job_event){.kind = JOB_EVENT_TASK_EXITED,
                                          .task = {0, 1},
                                          .completion = &failed,
                                          .slice = 1});
    assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 1);
    assert_int_equal(world_count(&world, JOB_ACTION_ATTEMPT_COMPLETED), 0);
    assert_int_equal(world.job.state, LIFE_DELETION_REQUESTED);
    world_simple(&world, JOB_EVENT_STOP); /* the next attempt is stopped */
    assert_int_equal(world.job.attempt, 0);
    told(&world, JOB_EVENT_GO_ON, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 1);
    assert_int_equal(world_count(&world, JOB_ACTION_ATTEMPT_COMPLETED), 2);
    assert_int_equal(world.job.attempt, 1);
    assert_int_equal(world.job.completion->code, CODE_STOP_REQUESTED);
    world_release(&world);
}

/* A stopped job that begins anew has a table of its own: what is left is the caller's to forget. */
static void a_new_start_leaves_the_rest_to_the_caller(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world.policy.debug_hold_s = 10;
    world.policy.is_gang = false;
    world.roles[0].min_failed = -1;
    world_begin(&world);
    world_run_all(&world);
    for (uint16_t i = 0; i < 2; i++)
        world_exit(&world, 0, i, 3, 0);
    world_simple(&world, JOB_EVENT_STOP);
    const struct completion killed = completion_of(143, "%s", "");
    world_step(&world, (struct job_event){.kind = JOB_EVENT_TASK_EXITED,
                                          .task = {0, 2},
                                          .completion = &killed,
                                          .slice = 1});
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 1);
    assert_int_equal(world.job.let_go, 1);
    told(&world, JOB_EVENT_START, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_FORGET), 0);
    assert_int_equal(world.job.let_go, 0);
    assert_false(job_goes_on(&world.job));
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    world_release(&world);
}

/* A large table is not freed in the step that drops it. */
static void a_large_table_is_left_to_the_caller(void **state)
{
    (void)state;
    enum { TASKS = 100 };
    struct job_world world;
    world_init(&world, ROLES(TASKS));
    world.policy.retry.max = 1;
    world_begin(&world);
    world_place(&world);
    for (uint16_t i = 0; i < TASKS; i++)
        world_exit(&world, 0, i, 1, 0);
    assert_int_equal(world.job.attempt, 1);
    assert_int_equal(world.out.dropped.count, 1);
    uint32_t left = TASKS - 1;
    job_output_free_dropped(&world.out, &left);
    assert_int_equal(world.out.dropped.items[0].count, 1);
    left = 2;
    job_output_free_dropped(&world.out, &left);
    assert_int_equal(world.out.dropped.count, 0);
    assert_int_equal(left, 1);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gang_succeeds),
    cmocka_unit_test(a_new_life_has_no_end_yet),
    cmocka_unit_test(failure_ends_the_others),
    cmocka_unit_test(gang_timeout_backs_off),
    cmocka_unit_test(held_after_failure),
    cmocka_unit_test(an_end_is_told_in_steps),
    cmocka_unit_test(held_containers_go_in_steps),
    cmocka_unit_test(a_later_failure_is_held),
    cmocka_unit_test(a_retry_waits_until_all_are_let_go),
    cmocka_unit_test(a_new_start_leaves_the_rest_to_the_caller),
    cmocka_unit_test(a_large_table_is_left_to_the_caller),
};
UNIT_FILE(tests, NULL, NULL);
