/* GPU time of users: what runs, what has ended, months, and both after the store was closed. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/utc.h"

/* 2026-11-22 00:00:00 UTC, and the begin of December. */
#define NOW_MS        1795305600000
#define NEXT_MONTH_MS 1796083200000

static struct task_record running(uint64_t attempt, int64_t begin_ms)
{
    struct task_record task = task_of(1, 1, (uint16_t)attempt, attempt); /* three GPUs */
    task.attempt_launched_ms = begin_ms;
    return task;
}

static struct task_record ended(uint64_t attempt, int64_t begin_ms, int64_t end_ms)
{
    struct task_record task = running(attempt, begin_ms);
    task.state = LIFE_ATTEMPT_COMPLETED;
    task.attempt_completed_ms = end_ms;
    return task;
}

static void used_at(struct world *world, int64_t now_ms, uint64_t gpu_ms)
{
    uint64_t used = 1;
    assert_int_equal(store_gpu_use(world->reader, TEXT("alice"), now_ms, &used, &world->err), 0);
    assert_int_equal(used, gpu_ms);
    assert_int_equal(store_gpu_use(world->reader, TEXT("bob"), now_ms, &used, &world->err), 0);
    assert_int_equal(used, 0);
}

/* And the same when the store has been opened anew. */
static void used(struct world *world, int64_t now_ms, uint64_t gpu_ms)
{
    used_at(world, now_ms, gpu_ms);
    world_close(world);
    world_open(world);
    used_at(world, now_ms, gpu_ms);
}

static void put(struct world *world, struct task_record task)
{
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
}

static void begin(struct world *world)
{
    submit(world, 1, "alice", "a");
    submit(world, 2, "bob", "b");
}

/* It was stored, its answer was lost, and so it is stored again. */
static void a_batch_that_comes_twice_counts_once(void **state)
{
    struct world *world = *state;
    begin(world);
    for (int i = 0; i < 2; i++) {
        add_task(world, running(7, NOW_MS));
        add_task(world, ended(7, NOW_MS, NOW_MS + 2000));
        assert_int_equal(commit(world, NULL, 0), 0);
        used(world, NOW_MS + 9000, 6000);
    }
}

static void what_runs_and_what_has_ended(void **state)
{
    struct world *world = *state;
    begin(world);
    used(world, NOW_MS, 0);
    struct task_record pulls = running(4, 0); /* its image comes */
    pulls.state = LIFE_PREPARING;
    put(world, pulls);
    used(world, NOW_MS, 0);
    put(world, running(1, NOW_MS));
    put(world, running(1, NOW_MS)); /* something else of it has changed */
    used(world, NOW_MS + 1000, 3000);
    put(world, running(2, NOW_MS + 500));
    used(world, NOW_MS + 1000, 4500);
    used(world, NOW_MS - 5000, 0); /* the clock is behind them */
    put(world, ended(1, NOW_MS, NOW_MS + 2000));
    used(world, NOW_MS + 3000, 6000 + 7500);
    /* an end is told again: a retry, a container that was held */
    put(world, ended(1, NOW_MS, NOW_MS + 2000));
    used(world, NOW_MS + 3000, 6000 + 7500);
    put(world, ended(2, NOW_MS + 500, NOW_MS + 3500));
    used(world, NOW_MS + 9000, 6000 + 9000);
    put(world, ended(4, 0, NOW_MS + 9000)); /* it never ran */
    used(world, NOW_MS + 9000, 6000 + 9000);
}

static void without_gpus_nothing_is_counted(void **state)
{
    struct world *world = *state;
    struct task_record task = running(1, NOW_MS);
    begin(world);
    task.gpu_count = 0;
    put(world, task);
    used(world, NOW_MS + 1000, 0);
}

/* What is refused is the job's, as any other of its rows. */
static void a_job_is_named_whose_time_is_refused(void **state)
{
    struct world *world = *state;
    struct job_id job;
    SQLITE_ONLY(world);
    begin(world);
    put(world, running(1, NOW_MS));
    assert_int_equal(world_sql(world, "CREATE TRIGGER bad BEFORE INSERT ON gpu_use "
                                      "BEGIN SELECT RAISE(ABORT, 'no time'); END"),
                     0);
    add_task(world, ended(1, NOW_MS, NOW_MS + 2000));
    assert_int_equal(store_refused_job(world->store, &world->output, &job, &world->err), 0);
    assert_int_equal(job.v, 1);
    assert_non_null(strstr(world->err.text, "no time"));
    assert_int_equal(commit(world, NULL, 0), ERR_INTERNAL);
    assert_int_equal(world_sql(world, "DROP TRIGGER bad"), 0);
    used_at(world, NOW_MS + 1000, 3000); /* it runs on */
    put(world, ended(1, NOW_MS, NOW_MS + 2000));
    used(world, NOW_MS + 9000, 6000);
}

/* The machine that it ran on may be gone: the end knows no GPUs then. */
static void an_end_without_a_place(void **state)
{
    struct world *world = *state;
    struct task_record task = ended(1, NOW_MS, NOW_MS + 2000);
    begin(world);
    put(world, running(1, NOW_MS));
    task.gpus = NULL;
    task.gpu_count = 0;
    put(world, task);
    used(world, NOW_MS + 9000, 6000);
}

static void begin_and_end_in_one_batch(void **state)
{
    struct world *world = *state;
    begin(world);
    add_task(world, running(1, NOW_MS));
    add_task(world, ended(1, NOW_MS, NOW_MS + 2000));
    add_task(world, ended(1, NOW_MS, NOW_MS + 2000));
    add_task(world, running(2, NOW_MS));
    assert_int_equal(commit(world, NULL, 0), 0);
    used(world, NOW_MS + 3000, 6000 + 9000);
}

/* The job itself is new in the batch. */
static void a_job_of_the_same_batch(void **state)
{
    struct world *world = *state;
    add_submitted(world, 1, "alice", "a");
    put(world, running(1, NOW_MS));
    used(world, NOW_MS + 1000, 3000);
}

static void each_month_gets_its_part(void **state)
{
    struct world *world = *state;
    const int64_t long_before_ms = 1790000000000; /* in September */
    begin(world);
    put(world, running(1, NEXT_MONTH_MS - 1000));
    used(world, NEXT_MONTH_MS - 1, 3 * 999);
    used(world, NEXT_MONTH_MS, 0);
    used_at(world, NEXT_MONTH_MS - 1, 3 * 999); /* the clock is set back */
    used_at(world, NEXT_MONTH_MS, 0);
    put(world, running(2, NEXT_MONTH_MS + 1000));
    used(world, NEXT_MONTH_MS + 3000, 9000 + 6000);
    put(world, ended(1, NEXT_MONTH_MS - 1000, NEXT_MONTH_MS + 4000));
    used(world, NEXT_MONTH_MS + 4000, 12000 + 9000);
    put(world, ended(2, NEXT_MONTH_MS + 1000, NEXT_MONTH_MS + 4000));
    used(world, NEXT_MONTH_MS + 9000, 12000 + 9000);
    used(world, NEXT_MONTH_MS - 1, 3000);
    put(world, running(3, long_before_ms));
    put(world, ended(3, long_before_ms, NOW_MS));
    const int64_t month_ms = utc_month_of(NOW_MS).begin_ms;
    used(world, NEXT_MONTH_MS - 1, 3000 + 3 * (uint64_t)(NOW_MS - month_ms));
    used(world, month_ms - 1, 3 * (uint64_t)(month_ms - utc_month_of(month_ms - 1).begin_ms));
}

static void it_stays_when_the_jobs_are_deleted(void **state)
{
    struct world *world = *state;
    begin(world);
    put(world, running(1, NOW_MS));
    put(world, ended(1, NOW_MS, NOW_MS + 2000));
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    used(world, NOW_MS + 9000, 6000);
    change(world,
           (struct store_change){.kind = CHANGE_GPU_USE_TRIM, .before_ms = NEXT_MONTH_MS - 1}, 0);
    used(world, NOW_MS + 9000, 6000);
    change(world, (struct store_change){.kind = CHANGE_GPU_USE_TRIM, .before_ms = NEXT_MONTH_MS},
           0);
    used(world, NOW_MS + 9000, 0);
}

/* What a batch that is not stored has begun or ended is as it was. */
static void a_batch_that_fails(void **state)
{
    struct world *world = *state;
    begin(world);
    put(world, running(1, NOW_MS));
    add_task(world, ended(1, NOW_MS, NOW_MS + 2000));
    add_task(world, running(2, NOW_MS));
    add_job(world, job_of(9, "alice", "unknown")); /* there is no such row */
    assert_int_equal(commit(world, NULL, 0), ERR_INTERNAL);
    used(world, NOW_MS + 3000, 9000);
    put(world, ended(1, NOW_MS, NOW_MS + 2000));
    used(world, NOW_MS + 3000, 6000);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_batch_that_comes_twice_counts_once),
    WORLD(what_runs_and_what_has_ended),
    WORLD(without_gpus_nothing_is_counted),
    WORLD(a_job_is_named_whose_time_is_refused),
    WORLD(an_end_without_a_place),
    WORLD(begin_and_end_in_one_batch),
    WORLD(a_job_of_the_same_batch),
    WORLD(each_month_gets_its_part),
    WORLD(a_batch_that_fails),
    WORLD(it_stays_when_the_jobs_are_deleted),
};
UNIT_FILE(tests, NULL, NULL);
