/* Which ends are tried again, what counts, and the pauses between retries. */
#include "job_world.h"
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"

static const int ONE[] = {1, -1}, TWO[] = {2, -1};
static const struct retry_pause PAUSE = {.first_s = 1, .max_s = 10, .calm_s = 60};

static void the_length(void **state)
{
    (void)state;
    static const uint64_t whole_s[] = {0, 1, 2, 4, 8, 10, 10, 10};
    for (uint32_t before = 0; before < COUNT_OF(whole_s); before++)
        for (uint64_t random = 0; random < 3000; random += 7) {
            const uint64_t pause_ms = retry_pause_ms(PAUSE, before, random);
            assert_in_range(pause_ms, whole_s[before] * 750, whole_s[before] * 1000);
        }
    assert_int_equal(retry_pause_ms(PAUSE, 3, 0), 4000);
    assert_int_equal(retry_pause_ms(PAUSE, 3, 1000), 3000); /* a quarter less */
    assert_int_equal(retry_pause_ms(PAUSE, UINT32_MAX, 0), 10000);
    assert_int_equal(retry_pause_ms((struct retry_pause){0}, 9, 0), 0);
    assert_int_equal(retry_pause_ms((struct retry_pause){UINT32_MAX, UINT32_MAX, 0}, 90, 0),
                     UINT32_MAX * 1000ull);
}

static void which_retries(void **state)
{
    (void)state;
    const struct retry_policy fancy = {3, true}, always = {-2, false}, failed = {-1, false};
    struct completion lost = completion_of(CODE_CONTAINER_DELETED, "gone");
    struct completion preempted = completion_of(CODE_PREEMPTED, "away");
    struct completion own = completion_of(7, "own"), success = completion_of(0, "done");
    const struct {
        struct retry_policy policy;
        const struct completion *completion;
        bool is_paused;
    } CASES[] = {
        {fancy, &lost, true},  {fancy, &preempted, false}, {fancy, &own, false},
        {always, &own, true},  {always, &success, true},   {failed, &own, true},
        {always, &lost, true}, {failed, &success, false},  {fancy, &success, false},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        assert_int_equal(retry_is_paused(CASES[i].policy,
                                         retry_decide(CASES[i].policy, 0, CASES[i].completion),
                                         CASES[i].completion),
                         CASES[i].is_paused);
    assert_true(retry_is_quick(PAUSE, 0, 1000000));
    assert_true(retry_is_quick(PAUSE, 1, 60000));
    assert_false(retry_is_quick(PAUSE, 1, 60001));
}

/* A job of one task whose attempts are lost one after the other. */
static void lose(struct job_world *world)
{
    world_run_all(world);
    world_exit(world, 0, 0, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
}

static void a_job_is_spaced(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ONE);
    world.policy.pause = PAUSE;
    world_begin(&world);
    lose(&world);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING); /* the first is at once */
    assert_null(world_story(&world, "BackingOff"));
    world.random = 0;
    lose(&world);
    assert_int_equal(world.job.state, LIFE_ATTEMPT_COMPLETED);
    assert_int_equal(job_wake_ms(&world.job, &world.policy), world.now_ms + 1000);
    assert_string_equal(
        world_story(&world, "BackingOff"),
        "attempt 1 ended with -101 (PodExternalDeleted); retried in 1 s, not counted");
    assert_int_equal(world.job.retries_platform, 1); /* counted when it begins */
    world_timer(&world);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.retries_platform, 2);
    for (int i = 0; i < 5; i++) {
        lose(&world);
        world_timer(&world);
    }
    lose(&world);
    assert_int_equal(world.job.retry_at_ms, world.now_ms + 10000); /* the longest */
    /* a stop does not wait */
    world_simple(&world, JOB_EVENT_STOP);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_int_equal(world.job.completion->code, CODE_STOP_REQUESTED);
    /* and a new life begins without a row */
    world_simple(&world, JOB_EVENT_START);
    assert_int_equal(world.job.quick_ends, 0);
    world_release(&world);
}

/* Nobody has to wait for a pause: START ends it, of a job and of tasks. */
static void a_start_ends_a_pause(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ONE);
    world.policy.pause = PAUSE;
    world_begin(&world);
    assert_int_equal(job_can_start(&world.job, NULL), ERR_CONFLICT);
    lose(&world);
    world.random = 0;
    for (int i = 0; i < 4; i++) {
        lose(&world);
        if (i < 3)
            world_timer(&world);
    }
    assert_int_equal(world.job.state, LIFE_ATTEMPT_COMPLETED);
    assert_non_null(strstr(world_story(&world, "BackingOff"),
                           "retried in 8 s (`skep start` retries it now), not counted"));
    assert_int_equal(job_can_start(&world.job, NULL), 0);
    const uint32_t attempt = world.job.attempt;
    world_simple(&world, JOB_EVENT_START);
    assert_string_equal(world_story(&world, "Started"), "retried now, as was asked for");
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.attempt, attempt + 1);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    assert_int_equal(job_can_start(&world.job, NULL), ERR_CONFLICT); /* it does not wait any more */
    world_simple(&world, JOB_EVENT_START);
    assert_int_equal(world.job.attempt, attempt + 1);
    world_release(&world);
}

static void who_runs_long_begins_anew(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ONE);
    world.policy.pause = PAUSE;
    world_begin(&world);
    lose(&world);
    lose(&world);
    world_timer(&world);
    world_run_all(&world);
    world.now_ms += 60000;
    world_exit(&world, 0, 0, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.quick_ends, 1);
    world_release(&world);
}

static void a_budget_is_never_spaced(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ONE);
    world.policy.pause = PAUSE;
    world.policy.retry.max = 9;
    world_begin(&world);
    for (int i = 0; i < 9; i++) {
        world_run_all(&world);
        world_exit(&world, 0, 0, 7, 0);
        assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    }
    world_run_all(&world);
    world_exit(&world, 0, 0, 7, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    world_release(&world);
}

static void the_row_is_stored(void **state)
{
    (void)state;
    struct job_world world;
    struct buf saved = BUF_INIT;
    struct job again;
    world_init(&world, ONE);
    world.policy.pause = PAUSE;
    world_begin(&world);
    lose(&world);
    lose(&world);
    job_preemption_failed(&world.job, world.now_ms + 30000);
    job_save(&world.job, &saved);
    assert_int_equal(job_restore(&again, &world.policy, buf_as_text(&saved), NULL), 0);
    assert_int_equal(again.quick_ends, 2);
    assert_int_equal(again.preempt_failures, 1);
    assert_int_equal(again.preempt_after_ms, world.now_ms + 30000);
    assert_int_equal(again.retry_at_ms, world.job.retry_at_ms);
    job_release(&again);
    /* as version 3 had it: without the pause of preemptions, behind seven numbers */
    saved.at[0] = 3;
    memmove(saved.at + 28, saved.at + 40, saved.length - 40);
    saved.length -= 12;
    assert_int_equal(job_restore(&again, &world.policy, buf_as_text(&saved), NULL), 0);
    assert_int_equal(again.quick_ends, 2);
    assert_int_equal(again.preempt_failures, 0);
    assert_int_equal(again.preempt_after_ms, 0);
    assert_int_equal(again.retry_at_ms, world.job.retry_at_ms);
    job_release(&again);
    /* as version 1 had it: without the row, too */
    saved.at[0] = 1;
    memmove(saved.at + 24, saved.at + 28, saved.length - 28);
    saved.length -= 4;
    assert_int_equal(job_restore(&again, &world.policy, buf_as_text(&saved), NULL), 0);
    assert_int_equal(again.quick_ends, 0);
    assert_int_equal(again.retry_at_ms, world.job.retry_at_ms);
    job_release(&again);
    saved.at[0] = 3;
    assert_true(job_restore(&again, &world.policy, buf_as_text(&saved), NULL) < 0);
    buf_release(&saved);
    world_release(&world);
}

/* Two tasks without gang that are tried again by themselves; the first is lost twice. */
static void tasks_begin(struct job_world *world)
{
    world_init(world, TWO);
    world->policy.pause = PAUSE;
    world->policy.is_gang = false;
    world->roles[0].task_retry = (struct retry_policy){2, true};
    world_begin(world);
    world_run_all(world);
    world_exit(world, 0, 0, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    assert_int_equal(job_waiting_count(&world->job, &world->policy), 1); /* at once */
    world_place(world);
    world_run(world, 0, 0);
    world->random = 0;
    world_exit(world, 0, 0, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
}

static void a_task_is_spaced(void **state)
{
    (void)state;
    const struct task_ref ref = {0, 0};
    struct job_world world;
    tasks_begin(&world);
    assert_int_equal(world_task(&world, 0, 0)->state, LIFE_CREATION_PENDING);
    assert_non_null(strstr(world_story(&world, "TaskFailed"), ", retried in 1 s, not counted"));
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 0);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 0);
    assert_false(job_task_is_waiting(&world.job, &world.policy, ref));
    assert_int_equal(job_wake_ms(&world.job, &world.policy), world.now_ms + 1000);
    world_timer(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    assert_true(job_task_is_waiting(&world.job, &world.policy, ref));
    assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
    world_place(&world);
    world_run(&world, 0, 0);
    world_exit(&world, 0, 0, 0, 0);
    world_exit(&world, 0, 1, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_true(world.job.completion->is_success);
    world_release(&world);
}

static void a_start_ends_the_pause_of_a_task(void **state)
{
    (void)state;
    const struct task_ref ref = {0, 0};
    struct job_world world;
    tasks_begin(&world);
    assert_false(job_task_is_waiting(&world.job, &world.policy, ref));
    assert_int_equal(job_can_start(&world.job, NULL), 0);
    world_simple(&world, JOB_EVENT_START);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    assert_true(job_task_is_waiting(&world.job, &world.policy, ref));
    assert_int_equal(job_wake_ms(&world.job, &world.policy), 0);
    assert_int_equal(job_can_start(&world.job, NULL), ERR_CONFLICT);
    world_release(&world);
}

static void a_paused_task_can_be_ended(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct job_world world;
        tasks_begin(&world);
        if (how == 0) {
            world_scale(&world, 0, 0, 1);
            assert_int_equal(world.job.paused, 0);
            assert_int_equal(world.job.waiting, 0);
        } else if (how == 1) {
            world_simple(&world, JOB_EVENT_STOP);
            assert_int_equal(world.job.paused, 0);
            assert_int_equal(world_task(&world, 0, 0)->state, LIFE_COMPLETED);
        } else { /* the job's own end */
            world_exit(&world, 0, 1, 210, EXIT_PERMANENT);
            assert_int_equal(world.job.state, LIFE_COMPLETED);
        }
        world_release(&world);
    }
}

static void a_restart_forgets_the_pause_of_a_task(void **state)
{
    (void)state;
    struct job_world world;
    struct job again;
    struct buf saved = BUF_INIT;
    tasks_begin(&world);
    job_save(&world.job, &saved);
    assert_int_equal(job_restore(&again, &world.policy, buf_as_text(&saved), NULL), 0);
    for (uint16_t i = 0; i < 2; i++) {
        struct job_task row = *world_task(&world, 0, i);
        assert_int_equal(job_restore_task(&again, (struct task_ref){0, i}, &row, NULL), 0);
    }
    assert_int_equal(job_hash(&again), job_hash(&world.job));
    world.out.count = 0;
    assert_int_equal(job_restore_finish(&again, &world.policy, world.now_ms, &world.out, NULL), 0);
    assert_int_equal(job_waiting_count(&again, &world.policy), 1);
    assert_int_equal(job_wake_ms(&again, &world.policy), 0);
    job_release(&again);
    buf_release(&saved);
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

static void retry_order(void **state)
{
    (void)state;
    const struct retry_policy always = {.max = -2};
    static const int32_t never[] = {CODE_STOP_REQUESTED, CODE_ATTEMPT_COMPLETION, CODE_SCALED_DOWN};
    for (size_t i = 0; i < 3; i++) {
        const struct completion completion = completion_of(never[i], "%s", "");
        assert_false(retry_decide(always, 0, &completion).is_retried);
    }
    struct completion syntax = completion_of(231, "%s", "");
    assert_true(retry_decide(always, 0, &syntax).is_counted);
    syntax.attributes = EXIT_PERMANENT | EXIT_NEVER_RETRIED;
    assert_false(retry_decide(always, 0, &syntax).is_retried);
    /* refused: whatever the policy is, and no budget pays */
    const struct completion refused = completion_of(CODE_REFUSED, "full");
    const struct retry_policy none = {.max = 0};
    assert_true(retry_decide(none, 0, &refused).is_retried);
    assert_false(retry_decide(none, 0, &refused).is_counted);
    assert_false(retry_decide(none, 0, &refused).is_backoff);
    assert_false(retry_decide(always, 0, &refused).is_counted);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_length),
    cmocka_unit_test(which_retries),
    cmocka_unit_test(a_job_is_spaced),
    cmocka_unit_test(a_start_ends_a_pause),
    cmocka_unit_test(a_start_ends_the_pause_of_a_task),
    cmocka_unit_test(who_runs_long_begins_anew),
    cmocka_unit_test(a_budget_is_never_spaced),
    cmocka_unit_test(the_row_is_stored),
    cmocka_unit_test(a_task_is_spaced),
    cmocka_unit_test(a_paused_task_can_be_ended),
    cmocka_unit_test(a_restart_forgets_the_pause_of_a_task),
    cmocka_unit_test(transient_is_retried_uncounted),
    cmocka_unit_test(conflict_backs_off),
    cmocka_unit_test(retry_order),
};
UNIT_FILE(tests, NULL, NULL);
