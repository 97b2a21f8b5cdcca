/* One row that the store refuses costs who asked for it, and nobody else. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <string.h>

#include "base/err.h"
#include "engine/fake/fake.h"
#include "store/read.h"

static void what_one_request_cannot_have_stored_costs_nobody_else(void **state)
{
    struct world *world = *state;
    struct job_id running = running_job(world, "runs");
    struct wait first, before, bad, after, stop;

    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON jobs WHEN NEW.name = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such name'); END"),
                     0);
    round_begin(world, &first);
    ask_submit(world, &before, "before");
    ask_submit(world, &bad, "bad");
    containers_finish(world, running);
    ask_submit(world, &after, "after");
    ask_act(world, &stop, SERVICE_STOP, (struct job_id){99});
    round_end(&first);
    assert_int_equal(wait_for(&before), 0);
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_non_null(strstr(bad.text, "no such name"));
    assert_int_equal(wait_for(&after), 0);
    assert_int_equal(wait_for(&stop), ERR_NOT_FOUND);
    assert_true(is_writable(world));
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 1);
    wait_until(world, running, PUBLIC_SUCCEEDED);
    wait_until_tasks_run(world, before.answer.job);
    wait_until_tasks_run(world, after.answer.job);
    assert_int_equal(after.answer.job.v, before.answer.job.v + 1); /* `bad` had no number */
    /* also when it comes alone */
    ask_submit(world, &bad, "bad");
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    ask_submit(world, &bad, "bad");
    assert_int_equal(wait_for(&bad), 0);
}

static void ask_setting(struct world *world, struct wait *wait, const char *name)
{
    const struct store_change change = {.kind = CHANGE_SETTING, .setting = {name, TEXT("x")}};
    assert_int_equal(
        world->service->change(world->service->context, &change, wait_init(wait), &world->err), 0);
}

static int setting_read(struct world *world, const char *name)
{
    struct text value;
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    const int code = store_setting(reader, name, &world->arena, &value, &world->err);
    world->service->reader_put(world->service->context, reader);
    return code;
}

/* Changes pass by the core; their rows are refused like others. */
static void a_change_that_cannot_be_stored_costs_who_asked_for_it(void **state)
{
    struct world *world = *state;
    struct job_id running = running_job(world, "runs");
    struct wait first, before, bad, good, after;

    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON settings WHEN NEW.key = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such setting'); END"),
                     0);
    round_begin(world, &first);
    ask_submit(world, &before, "before");
    ask_setting(world, &bad, "bad");
    containers_finish(world, running);
    ask_setting(world, &good, "good");
    ask_submit(world, &after, "after");
    round_end(&first);
    assert_int_equal(wait_for(&before), 0);
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_non_null(strstr(bad.text, "no such setting"));
    assert_int_equal(wait_for(&good), 0);
    assert_int_equal(wait_for(&after), 0);
    assert_true(is_writable(world));
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 1);
    assert_int_equal(setting_read(world, "good"), 0);
    assert_int_equal(setting_read(world, "bad"), ERR_NOT_FOUND);
    wait_until(world, running, PUBLIC_SUCCEEDED);
    wait_until_tasks_run(world, before.answer.job);
    wait_until_tasks_run(world, after.answer.job);
    /* also when it comes alone */
    ask_setting(world, &bad, "bad");
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_true(is_writable(world));
}

/* The store takes no row of its end. */
static void end_refuse(struct world *world, struct attempt_id attempt)
{
    assert_int_equal(sql(world, arena_format(&world->arena,
                                             "CREATE TRIGGER bad BEFORE INSERT ON task_attempts "
                                             "WHEN NEW.attempt = %llu "
                                             "BEGIN SELECT RAISE(ABORT, 'no'); END",
                                             (unsigned long long)attempt.v)),
                     0);
}

static void a_fact_that_cannot_be_stored_is_set_aside(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "runs");

    end_refuse(world, tasks_of(world, job).items[0].attempt);
    containers_finish(world, job);
    metric_await(world, "skep_events_set_aside_total", 1);
    assert_true(is_writable(world));
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    /* nothing of it is left behind: a stop finds no container and says so */
    containers_await_none(world);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
}

/* What came of it has come, however often the server is asked. */
static void nothing_more_is_set_aside(struct world *world, uint64_t count)
{
    for (int i = 0; i < 10; i++) {
        settle(world);
        assert_int_equal(metric(world, "skep_events_set_aside_total"), count);
    }
}

/* The job is stopped while the store still refuses that end: it is not asked for again and again,
 * and whoever asks is told why. */
static void a_stop_leaves_out_a_job_whose_end_is_refused(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "runs"), other = running_job(world, "other");
    const struct attempt_id bad = tasks_of(world, job).items[0].attempt;
    struct wait again;

    end_refuse(world, bad);
    assert_int_equal(engine_fake_finish(world_engine(world), bad, &world->err), 0);
    metric_await(world, "skep_events_set_aside_total", 1);
    nothing_more_is_set_aside(world, 1);
    assert_int_equal(warnings(world, job, "EndNotStored"), 1);
    assert_int_equal(tasks_of(world, job).items[1].state, LIFE_RUNNING); /* nobody has ended it */
    while (engine_fake_container_count(world_engine(world)) > 3)         /* those that run */
        sched_yield();
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 0);

    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    metric_await(world, "skep_jobs_quarantined", 1);
    nothing_more_is_set_aside(world, 2);
    assert_true(is_writable(world));
    assert_int_equal(warnings(world, job, "EndNotStored"), 2);
    ask_act(world, &again, SERVICE_STOP, job);
    assert_int_equal(wait_for(&again), ERR_CONFLICT);
    assert_non_null(strstr(again.text, "no"));
    while (engine_fake_container_count(world_engine(world)) > 2) /* those of the other */
        sched_yield();
    containers_finish(world, other);
    wait_until(world, other, PUBLIC_SUCCEEDED);

    world_stop(world);
    world_start(world);
    nothing_more_is_set_aside(world, 0);
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 1);
    alert_await(world, "JobsQuarantined", true);
    quarantine_leave(world, job, PUBLIC_STOPPED);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
}

/* The end of one makes room for another, of which the store takes no row: that one pays. */
static void an_end_is_not_lost_for_the_job_that_comes_next(void **state)
{
    struct world *world = *state;
    struct job_id next;

    world_stop(world);
    world->engine = "nodes: 1, cpu: 2, runMilliseconds: 600000";
    world_start(world);
    struct job_id job = running_job(world, "runs");
    assert_int_equal(submit(world, job_text(world, "next", ""), &next), 0);
    assert_int_equal(sql(world, arena_format(&world->arena,
                                             "CREATE TRIGGER bad BEFORE INSERT ON tasks "
                                             "WHEN NEW.job = %u "
                                             "BEGIN SELECT RAISE(ABORT, 'no'); END",
                                             next.v)),
                     0);
    containers_finish(world, job);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    wait_until(world, next, PUBLIC_STOPPED);
    assert_int_equal(warnings(world, next, "Quarantined"), 1);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
}

static bool has_left_its_node(struct world *world, const void *what)
{
    const struct store_tasks tasks = tasks_of(world, *(const struct job_id *)what);

    return tasks.items[0].state != LIFE_RUNNING && tasks.items[1].state != LIFE_RUNNING;
}

/* A node goes, and the end of one of its tasks is refused: the others are known to have ended. */
static void a_lost_node_is_not_kept_for_one_of_its_jobs(void **state)
{
    struct world *world = *state;
    struct job_id bad = running_job(world, "bad"), good = running_job(world, "good");

    end_refuse(world, tasks_of(world, bad).items[0].attempt);
    assert_int_equal(engine_fake_node_lose(world_engine(world), "fake0", &world->err), 0);
    commit_await(world, has_left_its_node, &good);
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_int_equal(warnings(world, good, "Quarantined"), 0);
    nothing_more_is_set_aside(world, 0);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

static void an_exit_is_stored_without_what_is_kept_beside_it(void **state)
{
    struct world *world = *state;
    struct job_id job;

    world_stop(world);
    world->engine = "runMilliseconds: 1, log: \"last words\\n\"";
    world_start(world);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON attempt_ends "
                                "BEGIN SELECT RAISE(ABORT, 'no'); END"),
                     0);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
}

/* Each mail of the round is stepped again: what it takes of a minute has been taken. */
static void a_round_that_is_stored_one_by_one_is_counted_once(void **state)
{
    struct world *world = *state;
    struct store_change set = {.kind = CHANGE_QUOTAS,
                               .quotas = {.holder = "admin", .kinds = 1u << QUOTA_SUBMITS_MINUTE}};
    struct wait first, bad, good, more;

    set.quotas.values.values[QUOTA_SUBMITS_MINUTE] = 1;
    assert_int_equal(change(world, set), 0);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON settings WHEN NEW.key = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such setting'); END"),
                     0);
    round_begin(world, &first);
    ask_setting(world, &bad, "bad");
    ask_submit(world, &good, "good");
    ask_submit(world, &more, "more");
    round_end(&first);
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_int_equal(wait_for(&good), 0);
    assert_int_equal(wait_for(&more), ERR_QUOTA);
    ask_submit(world, &more, "more");
    assert_int_equal(wait_for(&more), ERR_QUOTA);
}

/* Which nobody else needs: the rest of the store can be written. */
static void a_damaged_page_costs_who_asked_for_it(void **state)
{
    struct world *world = *state;
    struct job_id old = stopped_job(world, "old"), running = running_job(world, "runs");
    struct wait first, before, bad, after;

    deletion_fails(old, ERR_CORRUPT);
    round_begin(world, &first);
    ask_submit(world, &before, "before");
    ask_act(world, &bad, SERVICE_DELETE, old);
    containers_finish(world, running);
    ask_submit(world, &after, "after");
    round_end(&first);
    assert_int_equal(wait_for(&before), 0);
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_non_null(strstr(bad.text, "refused by the test"));
    assert_int_equal(wait_for(&after), 0);
    assert_true(is_writable(world));
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 1);
    wait_until(world, running, PUBLIC_SUCCEEDED);
    assert_int_equal(shown(world, old), PUBLIC_STOPPED);
    /* also when it comes alone */
    assert_int_equal(act(world, SERVICE_DELETE, old), ERR_INTERNAL);
    assert_true(is_writable(world));
    deletion_fails((struct job_id){0}, 0);
    assert_int_equal(act(world, SERVICE_DELETE, old), 0);
}

/* Nobody would tell it again: it waits as for a disk, and is not forgotten. */
static void a_fact_waits_for_a_damaged_page(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "runs");

    COMMITS(ERR_CORRUPT, ERR_CORRUPT); /* in its round, and alone */
    containers_finish(world, job);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
}

static void a_database_that_is_damaged_refuses_all(void **state)
{
    struct world *world = *state;
    struct wait submission;

    COMMITS(ERR_CORRUPT, ERR_CORRUPT, ERR_CORRUPT); /* in its round, alone, and a row of no use */
    ask_submit(world, &submission, "asked");
    assert_int_equal(wait_for(&submission), ERR_UNAVAILABLE);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_one_request_cannot_have_stored_costs_nobody_else),
    ROUNDS(a_change_that_cannot_be_stored_costs_who_asked_for_it),
    ROUNDS(a_fact_that_cannot_be_stored_is_set_aside),
    ROUNDS(a_stop_leaves_out_a_job_whose_end_is_refused),
    ROUNDS(an_end_is_not_lost_for_the_job_that_comes_next),
    ROUNDS(a_lost_node_is_not_kept_for_one_of_its_jobs),
    ROUNDS(an_exit_is_stored_without_what_is_kept_beside_it),
    ROUNDS(a_round_that_is_stored_one_by_one_is_counted_once),
    ROUNDS(a_damaged_page_costs_who_asked_for_it),
    ROUNDS(a_fact_waits_for_a_damaged_page),
    ROUNDS(a_database_that_is_damaged_refuses_all),
};
UNIT_FILE(tests, world_begin, NULL);
