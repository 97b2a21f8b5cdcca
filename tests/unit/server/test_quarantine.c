/* What becomes due by itself and cannot be stored ends one job. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "core/trial.h"
#include "engine/fake/fake.h"
#include "model/alert.h"
#include "server/hang_watch.h"
#include "server/state.h"
#include "store/read.h"

/* A job whose time limit has passed, and of which the store takes no row any more. */
static struct job_id bad_job(struct world *world)
{
    struct job_id job;

    assert_int_equal(
        submit(world, job_text(world, "bad", "extras: {timeLimitSeconds: 60}\n"), &job), 0);
    wait_until_tasks_run(world, job);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE UPDATE ON jobs WHEN NEW.name = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such row'); END"),
                     0);
    return job;
}

static size_t stories_of_quarantine(struct world *world, struct job_id job)
{
    struct store_reader *reader;
    struct stories stories;

    assert_int_equal(store_reader_open(world->server->store, &reader, &world->err), 0);
    assert_int_equal(store_stories(reader, &(struct story_filter){.job = job, .is_warning = 1},
                                   false, &world->arena, &stories, &world->err),
                     0);
    size_t count = 0;
    for (size_t i = 0; i < stories.count; i++)
        count += strcmp(stories.items[i].record.reason, "Quarantined") == 0 &&
                 strstr(stories.items[i].record.message, "could not be stored") != NULL;
    store_reader_close(reader);
    return count;
}

/* Until the watch for tasks that stand still has it, or has it no more. */
static void watched_await(struct world *world, struct job_id job, bool is_wanted)
{
    const time_t limit = time(NULL) + WAIT_S;
    for (bool is_watched = !is_wanted; is_watched != is_wanted;) {
        cleanup_arena struct arena arena;
        size_t count;
        arena_init(&arena);
        const struct hang_job *jobs = hang_watch_jobs(world->server->hang_watch, &arena, &count);
        is_watched = false;
        for (size_t i = 0; i < count; i++)
            is_watched |= jobs[i].id.v == job.v;
        assert_true(time(NULL) < limit);
        usleep(1000); /* nothing tells of it */
    }
}

/* Would a job of the whole only node have its place? */
static bool has_place(struct world *world)
{
    struct wait wait;
    struct core_trial trial;
    const struct service_reply reply = wait_init(&wait);
    const struct service_submission submission = {
        .source = TEXT("protocolVersion: 2\nname: whole\ntype: job\n"
                       "prerequisites: [{protocolVersion: 2, name: i, type: dockerimage, uri: x}]\n"
                       "taskRoles: {w: {dockerImage: i, commands: [run],\n"
                       "  resourcePerInstance: {cpu: 2, memoryMB: 1, gpu: 0}}}\n"),
        .user = world->user};
    assert_int_equal(world->service->trial(world->service->context, &submission, &world->problems,
                                           &world->arena, &trial, reply, &world->err),
                     0);
    assert_int_equal(wait_for(&wait), 0);
    return trial.is_placed;
}

/* It holds nothing any more, though its rows say that it runs; what would become of others is said
 * without it. */
static void a_dry_run_knows_which_job_is_left_out(void **state)
{
    struct world *world = *state;
    world_stop(world);
    world->engine = "nodes: 1, cpu: 2, runMilliseconds: 600000";
    world_start(world);
    assert_true(has_place(world));
    bad_job(world);
    assert_false(has_place(world));
    clock_pass(100000);
    settle(world); /* wakes the core thread, which sleeps by the real clock */
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_true(has_place(world));
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

/* Nobody has asked for anything: time alone makes the row that is refused. */
static void what_becomes_due_and_cannot_be_stored_ends_one_job(void **state)
{
    struct world *world = *state;
    struct job_id good = running_job(world, "good"), bad = bad_job(world), next;

    watched_await(world, bad, true);
    clock_pass(100000);
    assert_int_equal(submit(world, job_text(world, "next", ""), &next), 0);
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_true(is_writable(world));
    watched_await(world, bad, false);
    wait_until_tasks_run(world, next);
    while (engine_fake_container_count(world_engine(world)) > 4) /* those of the others */
        sched_yield();
    assert_int_equal(stories_of_quarantine(world, bad), 0); /* its rows are as they were */
    assert_int_equal(act(world, SERVICE_STOP, bad), ERR_CONFLICT);
    assert_int_equal(act(world, SERVICE_STOP, good), 0);
    wait_until(world, good, PUBLIC_STOPPED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    world_stop(world);
    world_start(world); /* what has taken its place is no contradiction */
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 1);
    alert_await(world, "JobsQuarantined", true);
    quarantine_leave(world, bad, PUBLIC_FAILED); /* its limit had passed */
    alert_await(world, "JobsQuarantined", false);
    assert_int_equal(stories_of_quarantine(world, bad), 1);
    assert_int_equal(act(world, SERVICE_DELETE, bad), 0); /* as any other */
}

/* The store takes the end of the job, though not what had become due. */
static void its_rows_say_the_end_when_they_can(void **state)
{
    struct world *world = *state;
    struct job_id bad = bad_job(world);

    assert_int_equal(
        sql(world, arena_format(&world->arena,
                                "DROP TRIGGER bad; CREATE TRIGGER bad BEFORE UPDATE ON jobs WHEN "
                                "NEW.name = 'bad' AND NEW.state <> %d "
                                "BEGIN SELECT RAISE(ABORT, 'no such row'); END",
                                LIFE_COMPLETED)),
        0);
    clock_pass(100000);
    settle(world); /* wakes the core thread, which sleeps by the real clock */
    wait_until(world, bad, PUBLIC_FAILED);
    assert_int_equal(stories_of_quarantine(world, bad), 1);
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 0);
    containers_await_none(world);
    assert_true(is_writable(world));
    assert_int_equal(act(world, SERVICE_DELETE, bad), 0);
}

/* The same comes with whatever is asked for next: who asks does not pay for it. */
static void who_comes_with_it_has_an_answer(void **state)
{
    struct world *world = *state;
    struct job_id bad = bad_job(world);
    struct wait first, request;

    round_begin(world, &first);
    clock_pass(100000);
    ask_submit(world, &request, "train");
    round_end(&first);
    assert_int_equal(wait_for(&request), 0);
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    wait_until_tasks_run(world, request.answer.job);
    assert_int_equal(act(world, SERVICE_DELETE, bad), ERR_CONFLICT);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_becomes_due_and_cannot_be_stored_ends_one_job),
    ROUNDS(a_dry_run_knows_which_job_is_left_out),
    ROUNDS(its_rows_say_the_end_when_they_can),
    ROUNDS(who_comes_with_it_has_an_answer),
};
UNIT_FILE(tests, world_begin, NULL);
