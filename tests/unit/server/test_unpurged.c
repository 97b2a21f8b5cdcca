/* An old job that cannot be removed costs nobody anything, again and again. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/err.h"
#include "server/state.h"

static void make_old(struct world *world, int count)
{
    for (int i = 0; i < count; i++)
        stopped_job(world, arena_format(&world->arena, "old%d", i));
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE jobs SET completed_ms = completed_ms - 864000000"), 0);
    world_start(world);
}

/* A round of upkeep, which finds that they may be tried again. */
static void retain(struct world *world)
{
    struct wait first;

    round_begin(world, &first);
    world->server->core.unpurged.retry_ms = 0;
    round_end(&first);
    server_reload(world->server, config_of(world, "retention: {jobDays: 7}\n"));
}

static bool has_one_job(struct world *world, const void *what)
{
    (void)what;
    return number(world, "SELECT count(*) FROM jobs") == 1;
}

/* Retention asks for it once, and then in vain where it costs nobody anything. */
static void passed_over(struct world *world, int code)
{
    make_old(world, 4);
    deletion_fails((struct job_id){2}, code);
    retain(world);
    commit_await(world, has_one_job, NULL);
    assert_int_equal(number(world, "SELECT id FROM jobs"), 2);
    metric_await(world, "skep_jobs_unpurged", 1);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    while (!is_writable(world))
        sched_yield();
    const uint64_t restores = atomic_load(&world->server->metrics.restores);
    for (int i = 0; i < 3; i++) {
        retain(world);
        settle(world);
    }
    assert_int_equal(atomic_load(&world->server->metrics.restores), restores);
    assert_in_range(metric(world, "skep_events_set_aside_total"), 0, 1);
    assert_true(is_writable(world));
    deletion_fails((struct job_id){0}, 0);
    retain(world);
    settle(world);
    assert_int_equal(number(world, "SELECT count(*) FROM jobs"), 0);
    assert_int_equal(metric(world, "skep_jobs_unpurged"), 0);
}

static void a_row_that_is_refused_is_passed_over(void **state)
{
    passed_over(*state, ERR_INTERNAL);
}

static void a_row_that_is_damaged_is_passed_over(void **state)
{
    passed_over(*state, ERR_CORRUPT);
}

static void jobs_stay(struct world *world, const char *which)
{
    const char *text = arena_format(&world->arena,
                                    "CREATE TRIGGER bad BEFORE DELETE ON jobs WHEN %s "
                                    "BEGIN SELECT RAISE(ABORT, 'stays'); END",
                                    which);
    assert_int_equal(sql(world, text), 0);
}

/* One a minute, the one that was tried longest ago. */
static void they_are_tried_in_turns(void **state)
{
    struct world *world = *state;

    make_old(world, 4);
    jobs_stay(world, "OLD.id IN (1, 3)");
    retain(world);
    settle(world);
    assert_int_equal(metric(world, "skep_jobs_unpurged"), 2);
    assert_int_equal(number(world, "SELECT count(*) FROM jobs"), 2);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 2);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    jobs_stay(world, "OLD.id = 1");
    for (int i = 0; i < 3; i++) {
        retain(world);
        settle(world);
        assert_int_equal(metric(world, "skep_jobs_unpurged"), i == 0 ? 2 : 1);
    }
    assert_int_equal(number(world, "SELECT id FROM jobs"), 1);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 2);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    retain(world);
    settle(world);
    assert_int_equal(number(world, "SELECT count(*) FROM jobs"), 0);
}

/* Whatever is passed over, as many as may be removed at once are found. */
static void what_is_passed_over_takes_no_room(void **state)
{
    struct world *world = *state;
    struct unpurged *unpurged = &world->server->core.unpurged;
    struct unpurged some = {0};
    struct job_id jobs[] = {{1}, {2}, {3}, {4}, {5}};
    assert_int_equal(unpurged_room(unpurged, 3), 3);
    id_map_set(&some.numbers, 1, 1);
    id_map_set(&some.numbers, 4, 1);
    *ARRAY_ADD(&some) = jobs[0];
    *ARRAY_ADD(&some) = jobs[3];
    assert_int_equal(unpurged_room(&some, 3), COUNT_OF(jobs));
    assert_int_equal(unpurged_drop(&some, jobs, COUNT_OF(jobs), 3), 3);
    assert_int_equal(jobs[0].v, 2);
    assert_int_equal(jobs[2].v, 5);
    unpurged_release(&some);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_row_that_is_refused_is_passed_over),
    ROUNDS(a_row_that_is_damaged_is_passed_over),
    ROUNDS(they_are_tried_in_turns),
    ROUNDS(what_is_passed_over_takes_no_room),
};
UNIT_FILE(tests, world_begin, NULL);
