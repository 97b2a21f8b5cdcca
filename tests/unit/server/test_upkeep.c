/* What is removed by age and by size, and what stays; a lost password is replaced. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "server/server.h"
#include "store/read.h"
#include "sys/secret.h"

/* Rows of the job, in all tables that have some. */
static void expect_rows(struct world *world, unsigned job, bool has_some)
{
    static const char *const tables[] = {"jobs WHERE id",         "job_plans WHERE job",
                                         "job_sources WHERE job", "job_attempts WHERE job",
                                         "tasks WHERE job",       "task_attempts WHERE job",
                                         "stories WHERE job",     "tags WHERE job"};

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        int64_t count = number(
            world, arena_format(&world->arena, "SELECT count(*) FROM %s = %u", tables[i], job));
        if ((count > 0) != has_some)
            fail_msg("%lld rows in %s = %u", (long long)count, tables[i], job);
    }
}

/* Reload with this retention; when its round is over, the query gives 0. */
static void retain_and_expect_none(struct world *world, const char *retention, const char *query)
{
    server_reload(world->server, config_of(world, retention));
    /* The old goes at the end of the round that takes the reload. The first answer may come within
     * that round, the second only after it. */
    for (int i = 0; i < 2; i++)
        assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                             .setting = {"test", TEXT("x")}}),
                         0);
    assert_int_equal(number(world, query), 0);
}

#define AGO(days) "(CAST(strftime('%s', 'now') AS INTEGER) - " #days " * 86400) * 1000"

static void what_has_become_old_goes(void **state)
{
    struct world *world = *state;
    struct job_id job;
    static const char *const names[] = {"old", "young"};
    int64_t ends;

    world_stop(world);
    world->engine = "runMilliseconds: 1, exitCode: 3, log: \"last words\\n\"";
    world_start(world);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(submit(world, job_text(world, names[i], "jobRetryCount: 1\n"), &job), 0);
        assert_int_equal(job.v, i + 1);
        wait_until(world, job, PUBLIC_FAILED);
        assert_int_equal(
            change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {job, "red"}}), 0);
    }
    assert_int_equal(
        submit(world,
               "protocolVersion: 2\nname: waits\ntype: job\n"
               "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
               "taskRoles:\n  w:\n    instances: 100\n    dockerImage: i\n    commands: [x]\n"
               "    resourcePerInstance: {cpu: 60, memoryMB: 1, gpu: 0}\n",
               &job),
        0);
    world_stop(world);
    assert_int_equal(
        sql(world, "UPDATE jobs SET submitted_ms = " AGO(
                       400) ", completed_ms = "
                            "CASE id WHEN 1 THEN " AGO(10) " WHEN 2 THEN " AGO(
                                5) " ELSE 0 END;"
                                   "UPDATE event_log SET at_ms = " AGO(3) " WHERE sequence <= 4"),
        0);
    ends = number(world, "SELECT count(*) FROM attempt_ends");
    assert_true(ends >= 4); /* two attempts of two jobs */
    world_start(world);
    /* by the retention that is built in none of them is old */
    expect_rows(world, 1, true);
    assert_int_equal(number(world, "SELECT min(sequence) FROM event_log"), 1);

    retain_and_expect_none(world, "retention: {jobDays: 7, eventLogDays: 0}\n",
                           "SELECT count(*) FROM jobs WHERE id = 1");
    expect_rows(world, 1, false);
    expect_rows(world, 2, true);
    assert_int_equal(shown(world, (struct job_id){2}), PUBLIC_FAILED);
    assert_int_equal(shown(world, (struct job_id){3}), PUBLIC_WAITING);
    assert_true(number(world, "SELECT count(*) FROM attempt_ends") < ends);
    assert_int_equal(number(world, "SELECT count(*) FROM attempt_ends WHERE attempt NOT IN (SELECT "
                                   "attempt FROM tasks UNION SELECT attempt FROM task_attempts)"),
                     0);
    assert_int_equal(number(world, "SELECT min(sequence) FROM event_log"), 1); /* 0: for ever */

    retain_and_expect_none(world, "retention: {jobDays: 0, eventLogDays: 2}\n",
                           "SELECT count(*) FROM event_log WHERE sequence <= 4");
    assert_int_equal(number(world, "SELECT min(sequence) FROM event_log"), 5);
    expect_rows(world, 2, true);

    /* so it is after a restart, and the name is free */
    world_stop(world);
    world_start(world);
    assert_int_equal(shown(world, (struct job_id){3}), PUBLIC_WAITING);
    assert_int_equal(submit(world, job_text(world, "young", ""), &job), ERR_CONFLICT);
    assert_int_equal(submit(world, job_text(world, "old", ""), &job), 0);
    assert_int_equal(job.v, 4);
}

static bool is_gone(struct world *world, const void *name)
{
    struct job_id job;

    return store_job_find(world->service->store, TEXT("admin"), text_of(name), &job, NULL) < 0;
}

static void old_jobs_go_when_the_database_is_too_large(void **state)
{
    struct world *world = *state;
    struct job_id last = {0};
    const char *filler;
    char *bytes = arena_alloc(&world->arena, 20001);

    memset(bytes, 'x', 20000);
    filler = arena_format(&world->arena, "description: %s\n", bytes);
    world_stop(world);
    world->extra = "scheduling: {finishedKeepSeconds: 0}\n";
    world_start(world);
    for (int i = 0; i < 60; i++)
        assert_int_equal(
            submit(world, job_text(world, arena_format(&world->arena, "j%d", i), filler), &last),
            0);
    wait_until(world, last, PUBLIC_SUCCEEDED);
    server_reload(world->server, config_of(world, "retention: {databaseMB: 1}\n"
                                                  "scheduling: {finishedKeepSeconds: 0}\n"));
    commit_await(world, is_gone, "j0");
    assert_true(number(world, "SELECT min(sequence) FROM event_log") > 1);
    assert_int_equal(submit(world, job_text(world, "j0", ""), &last), 0); /* its name is free */
    assert_int_equal(last.v, 61);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static void a_lost_password_is_replaced(void **state)
{
    struct world *world = *state;
    struct server_teller teller = {world, told};
    struct store *store;
    struct store_reader *reader;
    struct store_user user;
    struct store_tokens tokens;
    struct store_change changes[] = {
        {.kind = CHANGE_TOKEN_ADD, .token = {"browser", "admin", false, 1, 0, 0}},
        {.kind = CHANGE_TOKEN_ADD, .token = {"application", "admin", true, 1, 0, 0}},
    };
    struct store_batch batch = {.changes = changes, .change_count = COUNT_OF(changes)};
    char before[64];

    snprintf(before, sizeof before, "%s", world->password);
    world_stop(world);
    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    assert_int_equal(store_commit(store, &batch, &world->err), 0);
    assert_int_equal(server_password_reset(store, "nobody", &teller, &world->err), ERR_NOT_FOUND);
    assert_int_equal(server_password_reset(store, "admin", &teller, &world->err), 0);
    assert_string_not_equal(world->password, before);
    assert_int_equal(store_reader_open(store, &reader, &world->err), 0);
    assert_int_equal(store_user(reader, TEXT("admin"), &world->arena, &user, &world->err), 0);
    assert_true(password_matches(text_of(world->password), user.password_hash));
    assert_false(password_matches(text_of(before), user.password_hash));
    assert_true(user.is_admin);
    assert_int_equal(store_tokens(reader, TEXT("admin"), &world->arena, &tokens, &world->err), 0);
    assert_int_equal(tokens.count, 0);
    store_reader_close(reader);
    store_close(store);
    world_start(world);
    /* of the first start, and of this */
    assert_int_equal(number(world, "SELECT count(*) FROM audit WHERE subject = 'admin' AND code = "
                                   "0 AND address = 'this machine' AND before_json <> ''"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM audit WHERE subject = 'admin'"), 2);
}

static void audit_records_are_kept_as_configured(void **state)
{
    struct world *world = *state;
    const int64_t before = number(world, "SELECT count(*) FROM audit");

    assert_int_equal(sql(world, "UPDATE audit SET at_ms = " AGO(10)), 0);
    /* each reload is written down, too */
    retain_and_expect_none(world, "retention: {auditDays: 11, auditRecords: 0}\n",
                           "SELECT count(*) = 0 FROM audit");
    assert_int_equal(number(world, "SELECT count(*) FROM audit WHERE route LIKE '%configuration%'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM audit"), before + 1);
    retain_and_expect_none(world, "retention: {auditDays: 9}\n",
                           "SELECT count(*) FROM audit WHERE at_ms <= " AGO(10));
    assert_int_equal(number(world, "SELECT count(*) FROM audit"), 2);
    retain_and_expect_none(world, "retention: {auditRecords: 1}\n",
                           "SELECT count(*) - 1 FROM audit");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    WORLD(what_has_become_old_goes),
    WORLD(old_jobs_go_when_the_database_is_too_large),
    WORLD(a_lost_password_is_replaced),
    WORLD(audit_records_are_kept_as_configured),
};
UNIT_FILE(tests, world_begin, NULL);
