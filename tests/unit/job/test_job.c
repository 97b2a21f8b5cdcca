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
        assert_int_equal(public_state_name(life_public(world.job.state, 0, false))[0], 'S');
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
    assert_int_equal(job_restore_finish(&copy, &world.policy, world.now_ms, &world.out, &err), 0);
    assert_int_equal(job_hash(&copy), job_hash(&world.job));
    struct job clone;
    job_clone(&clone, &copy);
    assert_int_equal(job_hash(&clone), job_hash(&world.job));
    job_release(&clone);
    job_release(&copy);
    buf_release(&saved);
    world_release(&world);
}

/* What runs is left alone; what was asked for or whose image was being fetched is asked for again.
 */
static void restored_in_preparation(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world_begin(&world);
    world_place(&world);
    for (uint16_t i = 1; i < 3; i++)
        world_step(&world, (struct job_event){.kind = JOB_EVENT_TASK_PREPARING, .task = {0, i}});
    world_step(&world, (struct job_event){.kind = JOB_EVENT_TASK_RUNNING, .task = {0, 2}});
    struct buf saved = BUF_INIT;
    job_save(&world.job, &saved);
    struct job copy;
    struct err err = {0};
    assert_int_equal(job_restore(&copy, &world.policy, buf_as_text(&saved), &err), 0);
    for (uint16_t i = 0; i < 3; i++)
        assert_int_equal(
            job_restore_task(&copy, (struct task_ref){0, i}, world_task(&world, 0, i), &err), 0);
    world.out.count = 0;
    assert_int_equal(job_restore_finish(&copy, &world.policy, world.now_ms, &world.out, &err), 0);
    assert_int_equal(world.out.count, 2);
    for (uint16_t i = 0; i < 2; i++) {
        assert_int_equal(world.out.items[i].kind, JOB_ACTION_CREATE);
        assert_int_equal(world.out.items[i].task.index, i);
    }
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

static void platform_ends_tasks(void **state)
{
    (void)state;
    static const struct {
        int32_t code;
        const char *reason;
        uint32_t grace_ms;
    } cases[] = {{CODE_PREEMPTED, "preempted", 30000},
                 {CODE_HUNG, "hung", 10000},
                 {CODE_EVICTED, "ended by the platform", 10000}};
    for (size_t i = 0; i < 3; i++) {
        struct job_world world;
        world_init(&world, ROLES(2));
        world.policy.is_gang = false;
        world.roles[0].task_retry = (struct retry_policy){.max = 1, .is_fancy = true};
        world_begin(&world);
        world_run_all(&world);
        const struct completion completion = completion_of(cases[i].code, "why");
        const struct job_event kill = {
            .kind = JOB_EVENT_TASK_KILL, .task = {0, 1}, .completion = &completion};
        world_step(&world, kill);
        assert_string_equal(world_find(&world, JOB_ACTION_KILL)->reason, cases[i].reason);
        assert_int_equal(world_find(&world, JOB_ACTION_KILL)->grace_ms, cases[i].grace_ms);
        world_step(&world, kill); /* again */
        assert_int_equal(world.out.count, 0);
        world_run(&world, 0, 1); /* too late */
        assert_int_equal(world.out.count, 0);
        world_exit(&world, 0, 1, 137, 0);
        const struct job_task *task = world_task(&world, 0, 1);
        assert_int_equal(task->state, LIFE_CREATION_PENDING);
        assert_int_equal(task->retries_counted, cases[i].code == CODE_HUNG);
        assert_int_equal(world.job.state, LIFE_RUNNING);
        assert_int_equal(job_waiting_count(&world.job, &world.policy), 1);
        assert_true(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 1}));
        assert_false(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 0}));
        assert_false(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 9}));
        world_release(&world);
    }
    struct job_world world;
    world_init(&world, ROLES(2));
    world_begin(&world);
    world_run_all(&world);
    const struct completion preempted = completion_of(CODE_PREEMPTED, "for b~big");
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PREEMPT, .completion = &preempted});
    assert_int_equal(world_find(&world, JOB_ACTION_KILL)->grace_ms, 30000);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 0);
    world_exit(&world, 0, 0, 143, 0);
    world_exit(&world, 0, 1, 143, 0);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.retries_platform, 1);
    world_release(&world);
}

static void refused(void **state)
{
    (void)state;
    struct job_world world;
    const struct completion never = completion_of(CODE_CREATION_PERMANENT, "no such cluster");
    world_init(&world, ROLES(2));
    world_begin(&world);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_REFUSED, .completion = &never});
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_int_equal(world.job.completion->code, CODE_CREATION_PERMANENT);
    world_release(&world);
    world_init(&world, ROLES(2));
    world_begin(&world); /* one of a gang is the gang */
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_TASK_REFUSED, .task = {0, 1}, .completion = &never});
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    world_release(&world);
    world_init(&world, ROLES(2));
    world.policy.is_gang = false;
    world.roles[0].min_failed = -1;
    world_begin(&world);
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_TASK_REFUSED, .task = {0, 1}, .completion = &never});
    assert_int_equal(world.job.state, LIFE_CREATION_REQUESTED);
    world_run_all(&world);
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_TASK_REFUSED, .task = {0, 0}, .completion = &never});
    assert_int_equal(world.out.count, 0); /* it has a place */
    world_exit(&world, 0, 0, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_true(world.job.completion->is_success);
    assert_false(world.job.is_inherited);
    world_release(&world);
}

static void stories_say_why(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(1));
    world.policy.retry = (struct retry_policy){.max = -2};
    world_begin(&world);
    world_run_all(&world);
    struct completion completion = completion_of(231, "the source code has an error");
    strcpy(completion.phrase, "ContainerSyntaxError");
    completion.exit_code = 1;
    completion.attributes = EXIT_PERMANENT | EXIT_NEVER_RETRIED;
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_TASK_EXITED, .completion = &completion});
    assert_string_equal(world_story(&world, "TaskFailed"),
                        "a-0 exited 1 (231 ContainerSyntaxError): the source code has an error, "
                        "not retried");
    assert_string_equal(world_story(&world, "Failed"),
                        "ended with 231 (ContainerSyntaxError): the source code has an error");
    assert_true(world.job.is_inherited);
    world_release(&world);
}

/* Every byte of a stored job, changed: it is read back or refused, never anything else. */
static void damaged_rows_are_refused(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(2, 1));
    world.policy.debug_hold_s = 100;
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 1, 3, 0);
    struct buf saved = BUF_INIT;
    job_save(&world.job, &saved);
    struct job copy;
    struct err err;
    size_t refused_count = 0;
    for (size_t i = 0; i < saved.length; i++)
        for (int bit = 0; bit < 8; bit++) {
            saved.at[i] = (char)(saved.at[i] ^ 1 << bit);
            if (job_restore(&copy, &world.policy, buf_as_text(&saved), &err) == 0)
                job_release(&copy);
            else
                refused_count++;
            saved.at[i] = (char)(saved.at[i] ^ 1 << bit);
        }
    assert_true(refused_count > saved.length);
    for (size_t length = 0; length < saved.length; length++)
        assert_int_equal(job_restore(&copy, &world.policy, (struct text){saved.at, length}, &err),
                         ERR_CORRUPT);
    assert_int_equal(job_restore(&copy, &world.policy, buf_as_text(&saved), &err), 0);
    /* a task is missing, is there twice, is not one of the job's, cannot be */
    world.out.count = 0;
    assert_int_equal(job_restore_finish(&copy, &world.policy, world.now_ms, &world.out, &err),
                     ERR_CORRUPT);
    struct job_task task = *world_task(&world, 0, 0);
    const struct task_ref first = {0, 0};
    assert_int_equal(job_restore_task(&copy, (struct task_ref){0, 2}, &task, &err), ERR_CORRUPT);
    task.created_ms = 0;
    assert_int_equal(job_restore_task(&copy, first, &task, &err), ERR_CORRUPT);
    task = *world_task(&world, 0, 0);
    task.completion = NULL;
    assert_int_equal(job_restore_task(&copy, first, &task, &err), ERR_CORRUPT);
    task = *world_task(&world, 0, 0);
    task.attempt.v = 0;
    assert_int_equal(job_restore_task(&copy, first, &task, &err), ERR_CORRUPT);
    task = *world_task(&world, 0, 0);
    assert_int_equal(job_restore_task(&copy, first, &task, &err), 0);
    assert_int_equal(job_restore_task(&copy, first, &task, &err), ERR_CORRUPT);
    /* the job is ending, but all of its tasks have ended */
    struct job other;
    assert_int_equal(job_restore(&other, &world.policy, buf_as_text(&saved), &err), 0);
    task.state = LIFE_COMPLETED;
    for (uint16_t r = 0; r < 2; r++)
        for (uint16_t i = 0; i < (r == 0 ? 2 : 1); i++)
            assert_int_equal(job_restore_task(&other, (struct task_ref){r, i}, &task, &err), 0);
    assert_int_equal(job_restore_finish(&other, &world.policy, world.now_ms, &world.out, &err),
                     ERR_CORRUPT);
    job_release(&other);
    job_release(&copy);
    buf_release(&saved);
    assert_true(job_memory(&world.job) > sizeof world.job);
    world_release(&world);
}

static void surplus_tasks(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world.policy.is_gang = false;
    world_begin(&world);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = &(struct task_ref){0, 0},
                                          .task_count = 1});
    world_run(&world, 0, 0);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 2);
    world_scale(&world, 0, 1, 1); /* the waiting ones go at once */
    assert_int_equal(world_count(&world, JOB_ACTION_TASK_REMOVED), 2);
    assert_int_equal(world_count(&world, JOB_ACTION_UNQUEUE), 1);
    assert_int_equal(job_role_count(&world.job, &world.policy, 0), 1);
    world_scale(&world, 0, 4, 1);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 3);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    world_run_all(&world);
    world_scale(&world, 0, 0, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 4);
    world_scale(&world, 0, 0, 1); /* again: nothing more to do */
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 0);
    for (uint16_t i = 0; i < 4; i++)
        world_exit(&world, 0, i, 143, 0);
    assert_int_equal(world.job.state, LIFE_RUNNING); /* paused */
    assert_int_equal(job_role_count(&world.job, &world.policy, 0), 0);
    const int32_t any = 1;
    world_step(&world, (struct job_event){.kind = JOB_EVENT_SCALE,
                                          .scale = {.instances = 1, .min_succeeded = &any}});
    world_run_all(&world);
    world_exit(&world, 0, 0, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_true(world.job.is_inherited);
    world_release(&world);
}

/* What is shown of a job's tasks is counted from its row. */
static uint32_t saved_count(const struct job_world *world)
{
    struct buf saved = BUF_INIT;
    uint32_t counts[2] = {77, 77};
    job_save(&world->job, &saved);
    const bool is_known = job_saved_counts(buf_as_text(&saved), world->job.role_count, counts);
    assert_int_equal(counts[1], 77);
    assert_true(is_known || counts[0] == 77);
    buf_release(&saved);
    return counts[0];
}

static void counts_are_in_the_row(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world.policy.is_gang = false;
    world_begin(&world);
    assert_int_equal(saved_count(&world), 77); /* as the plan says */
    world_run_all(&world);
    assert_int_equal(saved_count(&world), 3);
    world_scale(&world, 0, 1, 1);
    assert_int_equal(saved_count(&world), 3); /* the surplus is being ended */
    world_exit(&world, 0, 2, 143, 0);
    world_exit(&world, 0, 1, 143, 0);
    assert_int_equal(saved_count(&world), 1);
    world_scale(&world, 0, 5, 1);
    assert_int_equal(saved_count(&world), 5);
    uint32_t count;
    assert_false(job_saved_counts(TEXT("nothing that we wrote"), 1, &count));
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
        cmocka_unit_test(restored_in_preparation),
        cmocka_unit_test(queued_jobs_are_small),
        cmocka_unit_test(retry_order),
        cmocka_unit_test(asked_at_the_wrong_time),
        cmocka_unit_test(time_limit),
        cmocka_unit_test(gang_timeout_backs_off),
        cmocka_unit_test(held_after_failure),
        cmocka_unit_test(platform_ends_tasks),
        cmocka_unit_test(refused),
        cmocka_unit_test(stories_say_why),
        cmocka_unit_test(damaged_rows_are_refused),
        cmocka_unit_test(surplus_tasks),
        cmocka_unit_test(counts_are_in_the_row),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
