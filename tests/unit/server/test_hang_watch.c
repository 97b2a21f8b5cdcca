/* The watch for tasks that stand still: what it is told before its thread begins, and what it
 * cannot read. */
#include "faults.h"
#include "liar.h"
#include "unit.h"
#include "world.h"

#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/fake/fake.h"
#include "server/hang_watch.h"
#include "server/state.h"
#include "sys/log.h"

static int setup_still(void **state)
{
    log_to(-1);
    return setup_with(state, "runMilliseconds: 600000", "");
}

static int teardown_still(void **state)
{
    const int code = teardown_faults(state);

    liar_clear();
    return code;
}

/* Until the watch says so of the only job; `is_so` NULL: until it knows of none. */
static void job_await(struct hang_watch *watch, bool (*is_so)(const struct hang_job *job))
{
    const time_t limit = time(NULL) + WAIT_S;
    bool has_come = false;

    while (!has_come) {
        cleanup_arena struct arena arena;
        size_t count;
        arena_init(&arena);
        const struct hang_job *jobs = hang_watch_jobs(watch, &arena, &count);
        has_come = is_so ? count == 1 && is_so(jobs) : count == 0;
        assert_true(time(NULL) < limit);
        usleep(1000); /* nothing tells of it */
    }
}

static bool is_not_known(const struct hang_job *job)
{
    return job->is_undecided && job->idle == 0;
}

static bool is_in_doubt(const struct hang_job *job)
{
    return job->is_undecided && job->idle == 2;
}

static bool is_still(const struct hang_job *job)
{
    return job->idle == 2 && !job->is_undecided;
}

/* A default that changes is that of all jobs that are watched; there are none. */
static void a_new_default_needs_no_job(void **state)
{
    struct world *world = *state;
    struct hang_watch *watch = hang_watch_new(world->server);

    hang_watch_configure(watch, 5);
    assert_int_equal(hang_watch_start(watch, &world->err), 0);
    hang_watch_stop(watch); /* it has looked at least once */
    hang_watch_stop(watch); /* again: nothing */
    assert_int_equal(hang_watch_idle_count(watch), 0);
    hang_watch_free(watch);
    hang_watch_free(NULL);
}

/* Jobs that began and ended before the first look are not watched; one that is not in the store
 * any more is no error. */
static void what_has_ended_is_not_watched(void **state)
{
    struct world *world = *state;
    struct hang_watch *watch = hang_watch_new(world->server);
    struct record records[4] = {0};

    for (uint32_t i = 0; i < COUNT_OF(records); i++) {
        records[i].kind = RECORD_TASK;
        records[i].task = (struct task_record){.job = {100 + i % 2},
                                               .attempt = {200 + i % 2},
                                               .node = "",
                                               .state = i < 2 ? LIFE_RUNNING : LIFE_COMPLETED};
    }
    hang_watch_take(watch, records, COUNT_OF(records));
    hang_watch_configure(watch, 1);
    assert_int_equal(hang_watch_start(watch, &world->err), 0);
    hang_watch_stop(watch);
    assert_int_equal(hang_watch_idle_count(watch), 0);
    hang_watch_free(watch);
}

/* The store is away for a moment: that a job is to be watched is read again, and nothing is said to
 * be over meanwhile. */
static void a_plan_that_cannot_be_read_is_read_again(void **state)
{
    struct world *world = *state;
    struct hang_watch *watch = hang_watch_new(world->server);
    struct job_id job;

    liar_still();
    hang_watch_stop(world->server->hang_watch); /* it reads the same */
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until_tasks_run(world, job);
    const struct store_tasks tasks = tasks_of(world, job);
    assert_int_equal(tasks.count, 2);
    const struct record records[] = {{.kind = RECORD_TASK, .task = tasks.items[0]},
                                     {.kind = RECORD_TASK, .task = tasks.items[1]}};

    plans_unreadable(ERR_IO);
    hang_watch_take(watch, records, COUNT_OF(records));
    hang_watch_configure(watch, 1);
    assert_int_equal(hang_watch_start(watch, &world->err), 0);
    job_await(watch, is_not_known);
    plans_unreadable(0);
    job_await(watch, is_still);
    plans_unreadable(ERR_UNAVAILABLE);
    hang_watch_configure(watch, 2);
    job_await(watch, is_in_doubt);
    plans_unreadable(0);
    job_await(watch, is_still);
    hang_watch_free(watch);
}

static bool is_half_known(const struct hang_job *job)
{
    return job->idle == 1 && job->tasks == 2 && job->is_undecided;
}

/* Its row says that it runs, and it does nothing: no more is made of that. */
static void what_has_ended_without_its_row_is_not_still(void **state)
{
    struct world *world = *state;
    struct hang_watch *watch = world->server->hang_watch;
    struct job_id job;

    liar_still();
    hang_watch_configure(watch, 1);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until_tasks_run(world, job);
    job_await(watch, is_still);
    const struct attempt_id bad = tasks_of(world, job).items[0].attempt;
    assert_int_equal(sql(world, arena_format(&world->arena,
                                             "CREATE TRIGGER bad BEFORE INSERT ON task_attempts "
                                             "WHEN NEW.attempt = %llu "
                                             "BEGIN SELECT RAISE(ABORT, 'no'); END",
                                             (unsigned long long)bad.v)),
                     0);
    assert_int_equal(engine_fake_finish(world_engine(world), bad, &world->err), 0);
    metric_await(world, "skep_events_set_aside_total", 1);
    job_await(watch, is_half_known);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    job_await(watch, NULL); /* the server has left it out */
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_new_default_needs_no_job),
    WORLD(what_has_ended_is_not_watched),
    cmocka_unit_test_setup_teardown(a_plan_that_cannot_be_read_is_read_again, setup_still,
                                    teardown_still),
    cmocka_unit_test_setup_teardown(what_has_ended_without_its_row_is_not_still, setup_still,
                                    teardown_still),
};
UNIT_FILE(tests, world_begin, NULL);
