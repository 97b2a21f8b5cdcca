/* The server starts again: what it knew, what had happened meanwhile, and numbers of a past epoch.
 */
#include "audits.h"
#include "unit.h"
#include "world.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/read.h"

static void a_stopped_job_starts_again_after_a_restart(void **state)
{
    struct world *world = *state;
    struct job_id job;

    world_stop(world);
    world->engine = "runMilliseconds: 600000"; /* it does not end before it is stopped */
    world_start(world);
    assert_int_equal(submit(world,
                            "protocolVersion: 2\nname: big\ntype: job\n"
                            "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
                            "taskRoles:\n  w:\n    dockerImage: i\n    commands: [x]\n"
                            "    resourcePerInstance: {cpu: 60, memoryMB: 1, gpu: 0}\n",
                            &job),
                     0);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    world_stop(world);
    world->engine = "runMilliseconds: 30";
    world_start(world);
    assert_int_equal(act(world, SERVICE_START, job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
}

/* A server that takes job after job, and tells of each by one byte; two have ended by the third. */
static void submit_until_killed(struct world *world, int round, int tell)
{
    struct job_id job;

    world_start(world);
    for (int i = 0;
         submit(world, job_text(world, arena_format(&world->arena, "r%dj%d", round, i), ""),
                &job) == 0 &&
         write(tell, "a", 1) == 1;
         i++)
        if (i < 2)
            wait_until(world, job, PUBLIC_FAILED);
    _exit(1);
}

/* Killed at any instant, a server leaves either both or none of an exit and what is kept of it. */
static void a_crash_does_not_part_an_exit_and_its_end(void **state)
{
    struct world *world = *state;
    enum { ROUNDS = 6 };
    size_t ended = 0, jobs = 0;
    struct store *store;

    world_stop(world);
    world->engine = "runMilliseconds: 1, " SYNTAX_ERROR;
    for (int round = 0; round < ROUNDS; round++) {
        int told[2], status;
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0)
            submit_until_killed(world, round, told[1]);
        close(told[1]);
        /* each time later, while exits and answers go on */
        for (int answers = 0; answers < 6 + 9 * round; answers++)
            assert_int_equal(read(told[0], &(char){0}, 1), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        close(told[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    for (uint32_t id = 1;; id++) {
        struct store_job row;
        if (store_job_summary(store, (struct job_id){id}, &world->arena, &row, &world->err) < 0)
            break;
        expect_ends(world, store, (struct job_id){id}, &ended);
        jobs++;
    }
    store_close(store);
    assert_true(ended > 10);
    expect_audit(world, 1 + ROUNDS, jobs);
    world_start(world);
}

/* What a copy knows only as given may have run already: it gets another number. */
static void an_attempt_of_a_past_epoch_is_not_created(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char path[100];

    world_stop(world);
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until_tasks_run(world, job);
    assert_true(tasks_of(world, job).items[0].attempt.v <= 2);
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE tasks SET state = 1, launched_ms = 0, "
                                "attempt_launched_ms = 0"),
                     0);
    world_start(world); /* the same epoch: nobody else can have created it */
    wait_until_tasks_run(world, job);
    assert_true(tasks_of(world, job).items[0].attempt.v <= 2);
    assert_int_equal(metric(world, "skep_lost_total"), 0);
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE tasks SET state = 1, launched_ms = 0, "
                                "attempt_launched_ms = 0"),
                     0);
    snprintf(path, sizeof path, "%s/mark", world->directory);
    assert_int_equal(unlink(path), 0);
    world_start(world);
    metric_await(world, "skep_lost_total", 2);
    wait_until_tasks_run(world, job);
    assert_true(tasks_of(world, job).items[0].attempt.v > 1000000000);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_stopped_job_starts_again_after_a_restart),
    WORLD(an_attempt_of_a_past_epoch_is_not_created),
    WORLD(a_crash_does_not_part_an_exit_and_its_end),
};
UNIT_FILE(tests, world_begin, NULL);
