/* The event log gives the same rows again, or the audit says what differs. */
#include "audits.h"
#include "unit.h"
#include "world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static void the_event_log_gives_the_same_again(void **state)
{
    enum { JOBS = 40 };
    struct world *world = *state;
    struct job_id job = {0}, first = {0};
    bool is_stopped[JOBS] = {false};

    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(
            submit(world, job_text(world, arena_format(&world->arena, "r%d", i), ""), &job), 0);
        if (i == 0)
            first = job;
        if (i % 5 == 0) {
            const int code = act(world, SERVICE_STOP, job);
            is_stopped[i] = code == 0;
            assert_true(code == 0 || code == ERR_CONFLICT); /* it has ended by itself */
        }
        if (i % 10 == 9) { /* in mid-flight */
            world_stop(world);
            world_start(world);
        }
    }
    for (uint32_t i = 1; i <= JOBS; i++)
        wait_until(world, (struct job_id){i},
                   is_stopped[i - 1] ? PUBLIC_STOPPED : PUBLIC_SUCCEEDED);
    if (is_stopped[0])
        assert_int_equal(act(world, SERVICE_START, first), 0); /* the core has forgotten it */
    wait_until(world, first, PUBLIC_SUCCEEDED);
    assert_int_equal(act(world, SERVICE_DELETE, (struct job_id){7}), 0);
    world_stop(world);
    expect_audit(world, 1 + JOBS / 10, JOBS - 1);
    world_start(world);
}

static void an_audit_finds_what_differs(void **state)
{
    struct world *world = *state;
    struct job_id job, waits;

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(submit(world,
                            "protocolVersion: 2\nname: big\ntype: job\n"
                            "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
                            "taskRoles:\n  w:\n    dockerImage: i\n    commands: [x]\n"
                            "    resourcePerInstance: {cpu: 60, memoryMB: 1, gpu: 0}\n",
                            &waits),
                     0);
    world_stop(world);
    assert_int_equal(audit(world), 0);
    assert_int_equal(sql(world, "UPDATE jobs SET code = 1 WHERE id = 1"), 0);
    assert_int_equal(audit(world), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "job 1: by the event log it is in state 8"));
    assert_int_equal(sql(world, "UPDATE jobs SET code = 0 WHERE id = 1;"
                                "UPDATE nodes SET blame = 2, blame_ms = 5"),
                     0);
    assert_int_equal(audit(world), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "another state"));
    assert_int_equal(sql(world, "UPDATE nodes SET blame = 0, blame_ms = 0"), 0);
    assert_int_equal(audit(world), 0);
    /* a row that is lost, of a job that has ended and of one that waits; and one too many */
    for (int id = 1; id <= 2; id++) {
        assert_int_equal(sql(world, arena_format(&world->arena,
                                                 "CREATE TABLE kept AS SELECT * FROM jobs WHERE "
                                                 "id = %d; DELETE FROM jobs WHERE id = %d",
                                                 id, id)),
                         0);
        assert_int_equal(audit(world), ERR_CORRUPT);
        assert_non_null(strstr(world->err.text, arena_format(&world->arena, "job %d: by", id)));
        assert_int_equal(sql(world, "INSERT INTO jobs SELECT * FROM kept; DROP TABLE kept"), 0);
        assert_int_equal(audit(world), 0);
    }
    /* retention has taken the beginning */
    assert_int_equal(sql(world, "DELETE FROM event_log WHERE sequence = 1"), 0);
    assert_int_equal(audit(world), ERR_UNSUPPORTED);
    world_start(world);
}

/* A copy without its mark: numbers go on where none was given, and the log still gives the rows. */
static void a_copy_is_audited_like_any_other(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char path[100];

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(job.v, 1);
    world_stop(world);
    snprintf(path, sizeof path, "%s/mark", world->directory);
    assert_int_equal(unlink(path), 0);
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(job.v, 1000001);
    assert_int_equal(tasks_of(world, job).items[0].attempt.v, 1000000001);
    world_stop(world);
    expect_audit(world, 2, 2);
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "c", ""), &job), 0);
    assert_int_equal(job.v, 1000002);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    world_stop(world);
    expect_audit(world, 3, 3);
    world_start(world);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(the_event_log_gives_the_same_again),
    WORLD(an_audit_finds_what_differs),
    WORLD(a_copy_is_audited_like_any_other),
};
UNIT_FILE(tests, world_begin, NULL);
