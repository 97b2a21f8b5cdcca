/* What may be asked of a job, and when: start, stop, delete, time limits, refusals. */
#include "job_world.h"
#include "unit.h"

#include "base/err.h"

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
        assert_int_equal(public_state_name(life_public(world.job.state, 0, false))[0], 'S');
        assert_int_equal(job_can_stop(&world.job, NULL), ERR_CONFLICT);
        world_release(&world);
    }
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

static void asked_at_the_wrong_time(void **state)
{
    (void)state;
    struct job_world world;
    struct err err;
    world_init(&world, ROLES(2));
    world.policy.is_created_only = true;
    world_begin(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 0);
    assert_int_equal(job_can_start(&world.job, &err), 0);
    assert_int_equal(job_can_delete(&world.job, &err), ERR_CONFLICT);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 0, 1, &err), ERR_CONFLICT);
    world_place(&world); /* nobody asked for it */
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
    world_simple(&world, JOB_EVENT_START);
    assert_int_equal(job_can_start(&world.job, &err), ERR_CONFLICT);
    assert_string_equal(err.text, "the job is started already");
    world_run_all(&world);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 1, 1, &err), ERR_INVALID);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 0, 10001, &err), ERR_TOO_BIG);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 0, 1, &err), ERR_CONFLICT);
    world_simple(&world, JOB_EVENT_STOP);
    assert_true(job_is_stop_requested(&world.job));
    assert_int_equal(job_can_stop(&world.job, &err), 0);
    assert_int_equal(job_can_start(&world.job, &err), ERR_CONFLICT);
    world_place(&world);
    assert_int_equal(world.out.count, 0);
    world_exit(&world, 0, 0, 143, 0);
    world_exit(&world, 0, 1, 143, 0);
    assert_int_equal(job_can_stop(&world.job, &err), 0);
    assert_int_equal(job_can_delete(&world.job, &err), 0);
    assert_string_equal(world_story(&world, "Stopped"),
                        "ended with -210 (StopFrameworkRequested): stopped on request");
    world_simple(&world, JOB_EVENT_PREEMPT); /* nothing to preempt, lose, refuse */
    world_simple(&world, JOB_EVENT_LOST);
    world_simple(&world, JOB_EVENT_REFUSED);
    world_simple(&world, JOB_EVENT_JUDGE);
    assert_int_equal(world.out.count, 0);
    world_release(&world);
    world_init(&world, ROLES(1));
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, 0, 0);
    assert_int_equal(job_can_start(&world.job, &err), ERR_CONFLICT);
    assert_string_equal(err.text, "the job has ended by itself; submit it anew");
    world_simple(&world, JOB_EVENT_START);
    assert_int_equal(world.out.count, 0);
    world_release(&world);
}

static void time_limit(void **state)
{
    (void)state;
    for (int moment = 0; moment < 3; moment++) {
        struct job_world world;
        world_init(&world, ROLES(1));
        world.policy.time_limit_s = 100;
        world.policy.retry = (struct retry_policy){.max = -2};
        world_begin(&world);
        assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
        world_run_all(&world);
        const int64_t deadline_ms = world.job.launched_ms + 100000;
        assert_int_equal(job_wake_ms(&world.job, &world.policy), deadline_ms);
        if (moment == 1) /* while it waits for its second attempt */
            world_exit(&world, 0, 0, 1, 0);
        if (moment == 2) { /* while a back-off runs that is longer */
            world.policy.retry = (struct retry_policy){.is_fancy = true};
            world.random = 840;
            world_exit(&world, 0, 0, 201, EXIT_TRANSIENT | EXIT_CONFLICT);
            assert_int_equal(world.job.state, LIFE_ATTEMPT_COMPLETED);
        }
        assert_int_equal(job_wake_ms(&world.job, &world.policy), deadline_ms);
        world.now_ms = deadline_ms - 11;
        world_simple(&world, JOB_EVENT_TIMER);
        assert_int_equal(world.out.count, 0);
        world_timer(&world);
        assert_non_null(world_story(&world, "TimeLimit"));
        if (moment == 0) {
            assert_string_equal(world_find(&world, JOB_ACTION_KILL)->reason, "time limit");
            world_exit(&world, 0, 0, 143, 0);
        }
        assert_int_equal(world.job.state, LIFE_COMPLETED);
        assert_int_equal(world.job.completion->code, CODE_DEADLINE_EXCEEDED);
        world_release(&world);
    }
    struct job_world world; /* a limit beyond all time is none */
    world_init(&world, ROLES(1));
    world.policy.time_limit_s = UINT64_MAX;
    world.policy.gang_timeout_s = UINT64_MAX;
    world_begin(&world);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
    world_run_all(&world);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
    world_release(&world);
}

/* It passes while the tasks of an attempt are ended that is to be retried after a back-off or a
 * pause: the job ends with them, for a timer could only be asked for in the past. */
static void time_limit_passes_while_an_attempt_ends(void **state)
{
    (void)state;
    static const struct {
        int32_t code;
        uint8_t attributes;
    } ends[] = {
        {201, EXIT_TRANSIENT | EXIT_CONFLICT},
        {CODE_REFUSED, EXIT_TRANSIENT | EXIT_ALWAYS_RETRIED},
    };
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct job_world world;
        world_init(&world, ROLES(2));
        world.policy.time_limit_s = 100;
        world.policy.pause = (struct retry_pause){10, 60, 600};
        world_begin(&world);
        world.job.quick_ends = 1; /* the next has a pause */
        world_run_all(&world);
        world_exit(&world, 0, 0, ends[i].code, ends[i].attributes);
        assert_int_equal(world.job.state, LIFE_DELETION_REQUESTED);
        world.now_ms = world.job.launched_ms + 101000;
        world_exit(&world, 0, 1, 143, 0);
        assert_null(world_story(&world, "BackingOff"));
        assert_non_null(world_story(&world, "TimeLimit"));
        assert_int_equal(world.job.state, LIFE_COMPLETED);
        assert_int_equal(world.job.completion->code, CODE_DEADLINE_EXCEEDED);
        assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stop_at_every_moment),
    cmocka_unit_test(queued_jobs_are_small),
    cmocka_unit_test(asked_at_the_wrong_time),
    cmocka_unit_test(time_limit),
    cmocka_unit_test(time_limit_passes_while_an_attempt_ends),
};
UNIT_FILE(tests, NULL, NULL);
