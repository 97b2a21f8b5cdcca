/* A job and its tasks as rows: read back as they were, or refused. */
#include "job_world.h"
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"

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
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 9}, .slice = 2});
    assert_int_equal(world.job.roles[0].count, 5);
    assert_int_equal(saved_count(&world), 9); /* four have no entries yet */
    uint32_t count;
    assert_false(job_saved_counts(TEXT("nothing that we wrote"), 1, &count));
    world_release(&world);
}

static void saved_held(const struct job_world *world, struct job_held *held)
{
    struct buf saved = BUF_INIT;
    job_save(&world->job, &saved);
    assert_true(job_saved_held(buf_as_text(&saved), world->job.role_count, held));
    buf_release(&saved);
}

/* Which containers are kept for debugging is shown from the job's row. */
static void held_containers_are_in_the_row(void **state)
{
    (void)state;
    struct job_world world;
    struct job_held held;
    world_init(&world, ROLES(1, 2));
    world.policy.debug_hold_s = 10;
    world_begin(&world);
    saved_held(&world, &held);
    assert_int_equal(held.count, 0);
    world_run_all(&world);
    world_exit(&world, 1, 1, 3, 0);
    world_exit(&world, 0, 0, 143, 0);
    saved_held(&world, &held);
    assert_int_equal(held.count, 3);
    assert_int_equal(held.until_ms, 0);
    world_exit(&world, 1, 0, 143, 0);
    saved_held(&world, &held);
    assert_int_equal(held.count, 3);
    assert_int_equal(held.until_ms, world.now_ms + 10000);
    assert_int_equal(held.tasks[0].role, 0);
    assert_int_equal(held.tasks[2].role, 1);
    assert_int_equal(held.tasks[2].index, 1);
    world_simple(&world, JOB_EVENT_RELEASE);
    saved_held(&world, &held);
    assert_int_equal(held.count, 0);
    assert_int_equal(held.until_ms, 0);
    assert_false(job_saved_held(TEXT("nothing that we wrote"), 2, &held));
    assert_int_equal(held.count, 0);
    world_release(&world);
}

/* Of a damaged row nothing beyond the job's roles is named. */
static void held_containers_of_damaged_rows(void **state)
{
    (void)state;
    struct job_world world;
    struct job_held held;
    world_init(&world, ROLES(2));
    world.policy.debug_hold_s = 10;
    world_begin(&world);
    world_run_all(&world);
    world_exit(&world, 0, 0, 3, 0);
    struct buf saved = BUF_INIT;
    job_save(&world.job, &saved);
    for (size_t length = 0; length < saved.length; length++) {
        assert_false(job_saved_held((struct text){saved.at, length}, 1, &held));
        assert_int_equal(held.count, 0);
    }
    for (size_t i = 0; i < saved.length; i++) {
        saved.at[i] = (char)~saved.at[i];
        if (job_saved_held(buf_as_text(&saved), 1, &held))
            for (uint32_t k = 0; k < held.count && k < JOB_HELD_NAMED; k++)
                assert_int_equal(held.tasks[k].role, 0);
        saved.at[i] = (char)~saved.at[i];
    }
    buf_release(&saved);
    world_release(&world);
}

/* Whoever had not been told before the restart is told after it. */
static void an_end_goes_on_after_a_restart(void **state)
{
    (void)state;
    struct job_world world;
    struct job copy;
    struct err err;
    world_init(&world, ROLES(3));
    world_begin(&world);
    world_run_all(&world);
    const struct completion preempted = completion_of(CODE_PREEMPTED, "by another");
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_PREEMPT, .completion = &preempted, .slice = 1});
    struct buf saved = BUF_INIT;
    job_save(&world.job, &saved);
    assert_int_equal(job_restore(&copy, &world.policy, buf_as_text(&saved), &err), 0);
    for (uint16_t i = 0; i < 3; i++)
        assert_int_equal(
            job_restore_task(&copy, (struct task_ref){0, i}, world_task(&world, 0, i), &err), 0);
    world.out.count = 0;
    assert_int_equal(job_restore_finish(&copy, &world.policy, world.now_ms, &world.out, &err), 0);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 1);
    assert_true(job_goes_on(&copy));
    assert_int_equal(job_hash(&copy), job_hash(&world.job));
    job_release(&world.job);
    world.job = copy;
    world_simple(&world, JOB_EVENT_GO_ON);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 2);
    assert_int_equal(world_find(&world, JOB_ACTION_KILL)->task.index, 1);
    assert_int_equal(world_find(&world, JOB_ACTION_KILL)->grace_ms,
                     world.policy.preemption_grace_ms);
    assert_int_equal(world_task(&world, 0, 2)->completion->code, CODE_PREEMPTED);
    assert_false(job_goes_on(&world.job));
    buf_release(&saved);
    world_release(&world);
}

enum { MANY = 100 }; /* more than are freed where they are dropped */

/* A job with many tasks, of which some were scaled away, that was stopped: its row. */
static void stop_many(struct job_world *world, struct buf *saved)
{
    world_init(world, ROLES(MANY, 2));
    world->policy.is_gang = false;
    world_begin(world);
    world_run_all(world);
    world_scale(world, 0, MANY - 10, 1);
    for (uint16_t i = MANY - 10; i < MANY; i++)
        world_exit(world, 0, i, 143, 0);
    world_simple(world, JOB_EVENT_STOP);
    for (uint16_t r = 0; r < 2; r++)
        for (uint16_t i = 0; i < (r ? 2 : MANY - 10); i++)
            world_exit(world, r, i, 143, 0);
    assert_true(job_is_final(&world->job));
    job_save(&world->job, saved);
}

/* One that is started again has no table of its last attempt, which START would only drop; what
 * follows is what follows of one that had it. */
static void recalled_without_tasks(void **state)
{
    (void)state;
    struct job_world world;
    struct job recalled, restored;
    struct err err = {0};
    struct buf saved = BUF_INIT;
    stop_many(&world, &saved);
    assert_int_equal(job_recall(&recalled, &world.policy, buf_as_text(&saved), &err), 0);
    assert_int_equal(job_restore(&restored, &world.policy, buf_as_text(&saved), &err), 0);
    assert_null(recalled.roles[0].items);
    assert_true(job_memory(&recalled) + MANY * sizeof(struct job_task) / 2 < job_memory(&restored));
    const struct job_event start = {.kind = JOB_EVENT_START, .now_ms = world.now_ms};
    job_step(&restored, &world.policy, &start, &world.out);
    const size_t dropped = world.out.dropped.count;
    assert_int_not_equal(dropped, 0);
    world.out.count = 0;
    job_step(&recalled, &world.policy, &start, &world.out);
    assert_int_equal(world.out.dropped.count, dropped);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    assert_int_equal(job_hash(&recalled), job_hash(&restored));
    assert_int_equal(job_role_instances(&recalled, &world.policy, 0), MANY - 10);
    assert_int_equal(recalled.attempt, 1);
    job_release(&recalled);
    job_release(&restored);
    buf_release(&saved);
    world_release(&world);
}

/* A row says what is kept for debugging: it is read, and one that cannot be is refused. */
static void recalls_of_damaged_rows(void **state)
{
    (void)state;
    struct job_world world;
    struct job copy;
    struct err err = {0};
    struct buf saved = BUF_INIT;
    world_init(&world, ROLES(2));
    world.policy.debug_hold_s = 100;
    world_begin(&world);
    world_run_all(&world);
    job_save(&world.job, &saved);
    assert_int_equal(job_recall(&copy, &world.policy, buf_as_text(&saved), &err), ERR_CORRUPT);
    world_exit(&world, 0, 1, 3, 0);
    world_exit(&world, 0, 0, 143, 0);
    assert_true(job_is_final(&world.job) && world.job.held > 0);
    buf_clear(&saved);
    job_save(&world.job, &saved);
    assert_int_equal(job_recall(&copy, &world.policy, buf_as_text(&saved), &err), 0);
    assert_int_equal(copy.held, 0);
    job_release(&copy);
    for (size_t length = 0; length < saved.length; length++)
        assert_int_equal(job_recall(&copy, &world.policy, (struct text){saved.at, length}, &err),
                         ERR_CORRUPT);
    saved.at[saved.length - 1] = 2; /* of the last one that is held: there is no such role */
    saved.at[saved.length - 3] = 2;
    assert_int_equal(job_recall(&copy, &world.policy, buf_as_text(&saved), &err), ERR_CORRUPT);
    buf_release(&saved);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(saved_and_restored),
    cmocka_unit_test(restored_in_preparation),
    cmocka_unit_test(damaged_rows_are_refused),
    cmocka_unit_test(counts_are_in_the_row),
    cmocka_unit_test(held_containers_are_in_the_row),
    cmocka_unit_test(held_containers_of_damaged_rows),
    cmocka_unit_test(an_end_goes_on_after_a_restart),
    cmocka_unit_test(recalled_without_tasks),
    cmocka_unit_test(recalls_of_damaged_rows),
};
UNIT_FILE(tests, NULL, NULL);
