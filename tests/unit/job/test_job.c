/* The life of one job, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "job_world.h"

#define ROLES(...) ((const int[]){__VA_ARGS__, -1})

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

static void transient_is_retried_uncounted(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(1));
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, -1001, EXIT_TRANSIENT);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.attempt, 1);
    assert_int_equal(world.job.retries_platform, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    assert_null(world.job.completion);
    assert_false(world.job.has_tasks);
    world_run_all(&world);
    world_exit(&world, 0, 0, 1, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    world_release(&world);
}

static void conflict_backs_off(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(1));
    world.random = 40;
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, 251, EXIT_TRANSIENT | EXIT_CONFLICT);
    assert_int_equal(world.job.state, LIFE_ATTEMPT_COMPLETED);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), world.now_ms + 100000);
    world_simple(&world, JOB_EVENT_TIMER); /* too early */
    assert_int_equal(world.out.count, 0);
    world_timer(&world);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.retries_resource, 1);
    world_release(&world);
}

static void stop_at_every_moment(void **state)
{
    (void)state;
    for (int moment = 0; moment < 6; moment++) {
        struct job_world world;
        world_init(&world, ROLES(2));
        world_begin(&world);
        if (moment >= 1)
            world_place(&world);
        if (moment >= 2)
            world_run(&world, 0, 0);
        if (moment >= 3)
            world_exit(&world, 0, 0, 201, EXIT_TRANSIENT | EXIT_CONFLICT);
        if (moment == 4)
            world_exit(&world, 0, 1, 0, 0);
        if (moment == 5)
            world_simple(&world, JOB_EVENT_STOP);
        world_simple(&world, JOB_EVENT_STOP);
        assert_int_equal(job_can_start(&world.job, NULL),
                         job_is_final(&world.job) ? 0 : ERR_CONFLICT);
        for (uint16_t i = 0; i < 2; i++)
            if (!job_is_final(&world.job))
                world_exit(&world, 0, i, 143, EXIT_TRANSIENT);
        assert_int_equal(world.job.state, LIFE_COMPLETED);
        assert_int_equal(world.job.completion->code, CODE_STOP_REQUESTED);
        assert_int_equal(world.job.attempt, moment >= 3 ? 1 : 0);
        assert_int_equal(job_can_start(&world.job, NULL), 0);
        world_simple(&world, JOB_EVENT_START);
        assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
        assert_int_equal(world.job.retries_resource, 0);
        world_run_all(&world);
        world_exit(&world, 0, 0, 0, 0);
        world_exit(&world, 0, 1, 0, 0);
        assert_int_equal(public_state_name(life_public(world.job.state, 0))[0], 'S');
        assert_int_equal(job_can_stop(&world.job, NULL), ERR_CONFLICT);
        world_release(&world);
    }
}

static void saved_and_restored(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(2, 2));
    world.policy.is_gang = false;
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 1, 1, 0, 0);
    struct buf saved = BUF_INIT;
    job_save(&world.job, &saved);
    struct job copy;
    struct err err = {0};
    assert_int_equal(job_restore(&copy, &world.policy, buf_as_text(&saved), &err), 0);
    for (uint16_t r = 0; r < 2; r++)
        for (uint16_t i = 0; i < 2; i++)
            assert_int_equal(
                job_restore_task(&copy, (struct task_ref){r, i}, world_task(&world, r, i), &err),
                0);
    world.out.count = 0;
    assert_int_equal(job_restore_finish(&copy, &world.policy, &world.out, &err), 0);
    assert_int_equal(job_hash(&copy), job_hash(&world.job));
    struct job clone;
    job_clone(&clone, &copy);
    assert_int_equal(job_hash(&clone), job_hash(&world.job));
    job_release(&clone);
    job_release(&copy);
    buf_release(&saved);
    world_release(&world);
}

static void queued_jobs_are_small(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(500));
    world_begin(&world);
    assert_true(job_memory(&world.job) < 256);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gang_succeeds),
        cmocka_unit_test(failure_ends_the_others),
        cmocka_unit_test(transient_is_retried_uncounted),
        cmocka_unit_test(conflict_backs_off),
        cmocka_unit_test(stop_at_every_moment),
        cmocka_unit_test(saved_and_restored),
        cmocka_unit_test(queued_jobs_are_small),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
