/* What PostgreSQL does differently: the lease, lost connections, copies, texts.
 *
 * Run by tests/common/postgres.py, which starts a real server.
 *
 * Covers: src/store/postgres/connection.c, src/store/postgres/database.c,
 * src/store/postgres/statement.c, src/store/postgres/absent.c */
#include "relay.h"
#include "unit.h"
#include "world.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "store/noun.h"
#include "store/read.h"
#include "store/store.h"

/* A second server: a store in a directory of its own, on the database of the world. */
struct second {
    char directory[64];
    struct store *store;
    struct err err;
};

static int second_open(struct world *world, struct second *second)
{
    strcpy(second->directory, "/tmp/test-store-XXXXXX");
    assert_non_null(mkdtemp(second->directory));
    return store_open_with(second->directory, &(struct store_opening){.address = world->address},
                           &second->store, &second->err);
}

static void second_remove(struct second *second)
{
    char remove[100];

    store_close(second->store);
    second->store = NULL;
    snprintf(remove, sizeof remove, "rm -rf %s", second->directory);
    assert_int_equal(system(remove), 0);
}

static const char cut_all[] =
    "SELECT pg_terminate_backend(pid, 180000) FROM pg_stat_activity WHERE pid <> "
    "pg_backend_pid() AND datname = current_database()";

static bool has_job(struct world *world, const char *name)
{
    struct store_job row;
    struct job_id job;

    if (store_job_find(world->store, TEXT("alice"), text_of(name), &job, &world->err) < 0)
        return false;
    assert_int_equal(store_job_read(world->reader, job, &world->arena, &row, &world->err), 0);
    assert_string_equal(row.record.name, name);
    return true;
}

static int try_submit(struct world *world, uint32_t id, const char *name)
{
    add_submitted(world, id, "alice", name);
    return commit(world, NULL, 0);
}

static void a_second_server_is_refused(void **state)
{
    struct world *world = *state;
    struct second second = {0};
    char number[40];

    assert_int_equal(second_open(world, &second), ERR_CONFLICT);
    snprintf(number, sizeof number, "process %ld", (long)getpid());
    if (!strstr(second.err.text, number) || strstr(second.err.text, "reads"))
        fail_msg("%s", second.err.text);
    second_remove(&second);
    submit(world, 1, "alice", "train");
    /* and is let in when the first has ended */
    world_close(world);
    assert_int_equal(second_open(world, &second), 0);
    second_remove(&second);
    world_open(world);
    assert_true(has_job(world, "train"));
}

static void sessions_that_were_cut_are_made_again(void **state)
{
    struct world *world = *state;

    submit(world, 1, "alice", "one");
    assert_int_equal(world_sql(world, cut_all), 0);
    submit(world, 2, "alice", "two");
    assert_int_equal(world_sql(world, cut_all), 0);
    assert_true(has_job(world, "one"));
    assert_true(has_job(world, "two"));
    assert_int_equal(try_submit(world, 2, "again"), ERR_INTERNAL); /* prepared anew, all of them */
    submit(world, 3, "alice", "three");
    assert_true(has_job(world, "three"));
}

static void a_server_that_was_taken_over_writes_no_more(void **state)
{
    struct world *world = *state;
    struct second second = {0};

    submit(world, 1, "alice", "one");
    /* its session is cut, and another server comes before it is back */
    assert_int_equal(world_sql(world, cut_all), 0);
    assert_int_equal(second_open(world, &second), 0);
    assert_int_equal(try_submit(world, 2, "two"), ERR_CONFLICT);
    if (!strstr(world->err.text, "has taken"))
        fail_msg("%s", world->err.text);
    second_remove(&second);
    /* the other has ended, but may have written what this one does not know */
    assert_int_equal(try_submit(world, 2, "two"), ERR_CONFLICT);
    if (!strstr(world->err.text, "has taken"))
        fail_msg("%s", world->err.text);
    assert_false(has_job(world, "two"));
    assert_true(has_job(world, "one")); /* reading goes on */
}

/* Even when the lock is lost and the session is not: each transaction looks. */
static void each_transaction_is_fenced(void **state)
{
    struct world *world = *state;

    submit(world, 1, "alice", "one");
    assert_int_equal(world_sql(world, "UPDATE skep SET fence = fence + 1"), 0);
    assert_int_equal(try_submit(world, 2, "two"), ERR_CONFLICT);
    if (!strstr(world->err.text, "has taken"))
        fail_msg("%s", world->err.text);
    assert_false(has_job(world, "two"));
    assert_int_equal(world_sql(world, "UPDATE skep SET fence = fence - 1"), 0);
    submit(world, 2, "alice", "two");
}

/* A standby that did not have the last commits takes over: the session is another one, and the
 * database counts fewer. Nothing is stored on top of that, and the next start gives no number that
 * was given before, also of what was lost. */
static void lost_commits_are_noticed(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct attempt_id attempt;

    submit(world, 999990, "alice", "one");
    submit(world, 999999, "alice", "two");
    add_submitted(world, 1000000, "alice", "three");
    add_task(world, task_of(1000000, 0, 0, 77));
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(world_sql(world,
                               "UPDATE counters SET value = value - 2 WHERE name = 'commit'; "
                               "UPDATE counters SET value = 999990 WHERE name = 'job'; "
                               "UPDATE counters SET value = 0 WHERE name = 'attempt'; "
                               "DELETE FROM jobs WHERE id > 999990; DELETE FROM tasks"),
                     0);
    assert_false(store_is_behind(world->store));
    assert_int_equal(world_sql(world, cut_all), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(try_submit(world, 1000001, "four"), ERR_CONFLICT);
        if (!strstr(world->err.text, "lost its last 2 commits (0 events)"))
            fail_msg("%s", world->err.text);
        assert_true(store_is_behind(world->store));
    }
    world_close(world);
    world_open(world);
    assert_false(store_is_behind(world->store));
    assert_int_equal(store_epoch_last(world->store).number, 1);
    store_numbers(world->store, &job, &attempt);
    assert_int_equal(job.v, 2000000);
    assert_int_equal(attempt.v, 1000000000);
    assert_true(has_job(world, "one") && !has_job(world, "two") && !has_job(world, "three"));
    submit(world, 2000001, "alice", "two");
    assert_int_equal(world_sql(world, cut_all), 0);
    submit(world, 2000002, "alice", "three"); /* a new session by itself is no loss */
}

/* The state is one of before this server's own start: the fence that it raised is lost, which is
 * not another server's doing. */
static void a_fence_that_is_lost_is_a_loss(void **state)
{
    struct world *world = *state;

    submit(world, 1, "alice", "one");
    assert_int_equal(world_sql(world, "UPDATE skep SET fence = fence - 1"), 0);
    assert_int_equal(world_sql(world, cut_all), 0);
    assert_int_equal(try_submit(world, 2, "two"), ERR_CONFLICT);
    if (!strstr(world->err.text, "lost its last"))
        fail_msg("%s", world->err.text);
    assert_true(store_is_behind(world->store));
    world_close(world);
    world_open(world);
    assert_int_equal(store_epoch_last(world->store).number, 1);
    submit(world, 1000001, "alice", "two");
}

/* A trigger of the operator's, or a view's check, is a row's error as any constraint is: it does
 * not count as a disk that is full. */
static void a_row_that_a_trigger_refuses_is_a_rows_error(void **state)
{
    static const char *const states[] = {"P0001", "44000", "27000", "09000"};
    struct world *world = *state;
    char text[400];

    for (size_t i = 0; i < COUNT_OF(states); i++) {
        snprintf(text, sizeof text,
                 "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION "
                 "'not this one' USING ERRCODE = '%s'; END $$ LANGUAGE plpgsql; "
                 "CREATE OR REPLACE TRIGGER refuses BEFORE INSERT ON jobs FOR EACH ROW "
                 "EXECUTE FUNCTION refuse()",
                 states[i]);
        assert_int_equal(world_sql(world, text), 0);
        assert_int_equal(try_submit(world, 1, "one"), ERR_INTERNAL);
        if (!strstr(world->err.text, "takes no such row: not this one"))
            fail_msg("%s", world->err.text);
    }
    /* what was prepared for them is not kept, however many they are */
    for (int i = 0; i < 20; i++)
        assert_int_equal(try_submit(world, 1, "one"), ERR_INTERNAL);
    struct sql sql = sql_of(&world->store->session, "SELECT count(*) FROM pg_prepared_statements");
    int64_t prepared = -1;
    assert_int_equal(sql_number(&sql, &prepared, &world->err), 0);
    assert_in_range(prepared, 1, 3);
    assert_int_equal(world_sql(world, "DROP TRIGGER refuses ON jobs; DROP FUNCTION refuse"), 0);
    submit(world, 1, "alice", "one");
}

/* Whoever changes a table by hand holds up the server for as long as SQLite would. */
static void a_lock_of_somebody_elses_is_not_waited_for_without_end(void **state)
{
    struct world *world = *state;
    PGconn *other = PQconnectdb(world->address);

    submit(world, 1, "alice", "one");
    PQclear(PQexec(other, "BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE"));
    assert_int_equal(try_submit(world, 2, "two"), ERR_BUSY);
    if (!strstr(world->err.text, "is in use: "))
        fail_msg("%s", world->err.text);
    PQfinish(other);
    submit(world, 2, "alice", "two");
    assert_true(has_job(world, "two"));
}

/* Through a relay that cuts the connection at the commit. */
static void relay_world(struct world *world, struct relay *relay)
{
    const char *host = strstr(world->address, "host=") + 5;
    char *target = arena_format(&world->arena, "%.*s/.s.PGSQL.5432", (int)strcspn(host, "&"), host);

    world_close(world);
    relay_start(relay, target);
    snprintf(world->relayed, sizeof world->relayed, "%.*s%s%s", (int)(host - world->address),
             world->address, relay->directory, strchr(host, '&'));
    world_open(world);
}

static void relay_end(struct world *world, struct relay *relay)
{
    world_close(world);
    relay_stop(relay);
    world->relayed[0] = '\0';
    world_open(world);
}

static void a_commit_whose_answer_was_lost_is_found(void **state)
{
    struct world *world = *state;
    struct store_change tag = {.kind = CHANGE_TAG_ADD, .tag = {{1}, "red"}};
    struct relay relay;
    struct job_id job;
    struct attempt_id attempt;
    struct store_job row;

    relay_world(world, &relay);
    submit(world, 1, "alice", "one");
    relay_arm(&relay, RELAY_CUT_AFTER);
    add_submitted(world, 2, "alice", "two");
    add_task(world, task_of(2, 0, 0, 77));
    assert_int_equal(commit(world, &tag, 1), ERR_UNAVAILABLE);
    assert_false(has_job(world, "two"));
    store_numbers(world->store, &job, &attempt);
    assert_int_equal(job.v, 1);
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("v")}}, 0);
    assert_true(has_job(world, "two"));
    store_numbers(world->store, &job, &attempt);
    assert_int_equal(job.v, 2);
    assert_int_equal(attempt.v, 77);
    assert_int_equal(
        store_job_summary(world->store, (struct job_id){1}, &world->arena, &row, &world->err), 0);
    assert_int_equal(row.tag_count, 1);
    submit(world, 3, "alice", "three");
    relay_end(world, &relay);
    assert_true(has_job(world, "one") && has_job(world, "two") && has_job(world, "three"));
}

static void a_commit_that_was_lost_is_not_there(void **state)
{
    struct world *world = *state;
    struct relay relay;

    relay_world(world, &relay);
    submit(world, 1, "alice", "one");
    relay_arm(&relay, RELAY_CUT_BEFORE);
    assert_int_equal(try_submit(world, 2, "two"), ERR_UNAVAILABLE);
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("v")}}, 0);
    assert_false(has_job(world, "two"));
    submit(world, 2, "alice", "two");
    relay_end(world, &relay);
    assert_true(has_job(world, "two"));
}

/* What a dump that was loaded, or a copy, looks like: the rows of another database. */
static void a_copy_begins_an_epoch(void **state)
{
    struct world *world = *state;
    char original[sizeof world->address];
    struct job_id job;
    struct attempt_id attempt;

    submit(world, 1, "alice", "one");
    world_close(world);
    world_open(world);
    assert_int_equal(store_epoch_last(world->store).number, 0);
    world_close(world);
    strcpy(original, world->address);
    world_copy(world);
    world_open(world);
    assert_int_equal(store_epoch_last(world->store).number, 1);
    store_numbers(world->store, &job, &attempt);
    assert_int_equal(job.v, 1000000);
    submit(world, 1000001, "alice", "new");
    world_close(world);
    world_open(world);
    assert_int_equal(store_epoch_last(world->store).number, 1);
    assert_true(has_job(world, "one") && has_job(world, "new"));
}

static void strange_databases_are_refused(void **state)
{
    struct world *world = *state;
    struct store *store;
    struct store_opening opening = {.address = world->address};
    bool is_there;

    assert_int_equal(store_find(world->directory, &opening, &is_there, &world->err), 0);
    assert_true(is_there);
    world_close(world);
    assert_int_equal(world_sql(world, "UPDATE skep SET version = 999"), 0);
    assert_int_equal(store_open_with(world->directory, &opening, &store, &world->err),
                     ERR_UNSUPPORTED);
    assert_non_null(strstr(world->err.text, "newer"));
    assert_int_equal(world_sql(world, "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
                                      "CREATE TABLE t (a BIGINT)"),
                     0);
    assert_int_equal(store_open_with(world->directory, &opening, &store, &world->err), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "another program"));
    assert_int_equal(store_find(world->directory, &opening, &is_there, &world->err), 0);
    assert_false(is_there);
    opening.address = "postgres:///none?host=/nonexistent&password=topsecret";
    assert_int_equal(store_open_with(world->directory, &opening, &store, &world->err),
                     ERR_UNAVAILABLE);
    assert_null(strstr(world->err.text, "topsecret"));
    opening.address = "postgres://a:topsecret@h:p:q/x?%";
    assert_int_equal(store_open_with(world->directory, &opening, &store, &world->err), ERR_INVALID);
    assert_null(strstr(world->err.text, "topsecret"));
    assert_int_equal(world_sql(world, "DROP TABLE t"), 0);
    world_open(world);
}

static void texts_that_are_none_hinder_nobody(void **state)
{
    struct world *world = *state;
    struct job_record job = job_of(1, "alice", "one");
    struct store_job row;
    struct store_user user;

    submit(world, 1, "alice", "one");
    job.reason = "half \xe2\x82";
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err), 0);
    assert_string_equal(row.record.reason, "half \xef\xbf\xbd\xef\xbf\xbd");
    assert_int_equal(store_user(world->reader, TEXT("a\0b"), &world->arena, &user, &world->err),
                     ERR_NOT_FOUND);
}

static void sizes_and_checks(void **state)
{
    struct world *world = *state;
    struct store_counts counts;
    uint64_t used;
    int64_t oldest;

    for (uint32_t i = 1; i <= 300; i++) {
        add_submitted(world, i, "alice", arena_format(&world->output.arena, "j%u", i));
        for (uint16_t task = 0; task < 5; task++)
            add_task(world, task_of(i, 0, task, 10 * (uint64_t)i + task));
    }
    assert_int_equal(commit(world, NULL, 0), 0);
    /* the statistics of a session are told when it ends, at the latest */
    world_close(world);
    world_open(world);
    assert_int_equal(store_measure(world->store, &used, &oldest, &world->err), 0);
    assert_int_equal(oldest, 5);
    store_count(world->store, &counts);
    assert_in_range(counts.database_bytes, 1 << 20, 1 << 30);
    assert_in_range(used, 300 * 5 * 200, counts.database_bytes);
    assert_int_equal(store_check(world->store, &world->err), 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_second_server_is_refused),
    WORLD(sessions_that_were_cut_are_made_again),
    WORLD(a_server_that_was_taken_over_writes_no_more),
    WORLD(each_transaction_is_fenced),
    WORLD(lost_commits_are_noticed),
    WORLD(a_fence_that_is_lost_is_a_loss),
    WORLD(a_row_that_a_trigger_refuses_is_a_rows_error),
    WORLD(a_lock_of_somebody_elses_is_not_waited_for_without_end),
    WORLD(a_commit_whose_answer_was_lost_is_found),
    WORLD(a_commit_that_was_lost_is_not_there),
    WORLD(a_copy_begins_an_epoch),
    WORLD(strange_databases_are_refused),
    WORLD(texts_that_are_none_hinder_nobody),
    WORLD(sizes_and_checks),
};
UNIT_FILE(tests, NULL, NULL);
