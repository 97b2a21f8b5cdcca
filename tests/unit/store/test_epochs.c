/* A loss is told and never silent; a copy uses no number that was given.
 *
 * Covers: src/store/sqlite/past.c */
#include "unit.h"
#include "world.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"
#include "sys/file.h"
#include "sys/log.h"

static char *in(struct world *world, const char *name)
{
    return arena_format(&world->arena, "%s/%s", world->directory, name);
}

static void shell(struct world *world, const char *command)
{
    char *line = arena_format(&world->arena, "cd %s && %s", world->directory, command);
    assert_int_equal(system(line), 0);
}

/* Jobs of these numbers, each with a try of 100 times the number, each in a commit. */
static void jobs_store(struct world *world, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++) {
        add_submitted(world, i, "alice", arena_format(&world->output.arena, "j%u", i));
        add_task(world, task_of(i, 1, 1, 100 * (uint64_t)i));
        assert_int_equal(commit(world, NULL, 0), 0);
    }
}

/* The database as a process leaves it that is killed: with its log beside it. */
static void die(struct world *world)
{
    shell(world, "mkdir left && cp skep.db skep.db-wal mark left/");
    world_close(world);
    shell(world, "rm -f skep.db*; mv left/* . && rmdir left");
}

static void check_refused(struct world *world, const char *words)
{
    struct store *store;

    assert_int_equal(store_open(world->directory, &store, &world->err), ERR_CORRUPT);
    if (!strstr(world->err.text, words))
        fail_msg("%s", world->err.text);
    assert_non_null(strstr(world->err.text, "--accept-loss"));
}

static void accept_loss(struct world *world)
{
    assert_int_equal(store_open_with(world->directory,
                                     &(struct store_opening){.accepts_loss = true}, &world->store,
                                     &world->err),
                     0);
    assert_int_equal(store_reader_open(world->store, &world->reader, &world->err), 0);
}

/* Numbers go on beyond all that were given, and again after a restart; `number` is the epoch's,
 * whose numbers begin with so many millions of jobs and milliards of tries. */
static void check_epoch(struct world *world, uint32_t number, uint32_t from)
{
    struct job_id job, stored_job;
    struct attempt_id attempt, stored_attempt;
    struct store_epoch epoch;

    for (int i = 0; i < 2; i++) {
        store_numbers(world->store, &job, &attempt);
        epoch = store_epoch_of(world->store, (struct job_id){job.v + 1});
        assert_int_equal(job.v, from * 1000000);
        assert_int_equal(attempt.v, (uint64_t)from * 1000000000);
        assert_int_equal(epoch.number, number);
        assert_int_equal(epoch.first_job.v, from * 1000000 + 1);
        assert_int_equal(epoch.first_attempt.v, attempt.v + 1);
        assert_int_equal(
            store_restore_counters(world->reader, &stored_job, &stored_attempt, &world->err), 0);
        assert_int_equal(stored_job.v, job.v);
        assert_int_equal(stored_attempt.v, attempt.v);
        world_close(world);
        world_open(world);
    }
    assert_int_equal(store_epoch_of(world->store, (struct job_id){1}).number, 0);
    assert_true(store_epoch_of(world->store, (struct job_id){1}).id != epoch.id);
    assert_true(epoch.id != 0);
}

static void a_killed_process_loses_nothing(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 5);
    die(world);
    world_open(world);
    assert_int_equal(store_epoch_of(world->store, (struct job_id){6}).number, 0);
    jobs_store(world, 6, 6);
}

static void a_missing_log_is_a_loss_that_is_told(void **state)
{
    struct world *world = *state;
    struct job_id job;

    jobs_store(world, 1, 5);
    world_close(world);
    world_open(world);
    jobs_store(world, 6, 8);
    die(world);
    shell(world, "rm skep.db-wal");
    check_refused(world, "lacks its last 3 commits (3 events)");
    check_refused(world, "lacks its last 3 commits (3 events)");
    accept_loss(world);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("j5"), &job, &world->err), 0);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("j6"), &job, &world->err),
                     ERR_NOT_FOUND);
    check_epoch(world, 1, 1);
}

static void a_damaged_log_is_kept_until_the_loss_is_accepted(void **state)
{
    struct world *world = *state;
    struct stat status;
    struct buf whole = BUF_INIT;
    char *path, *at;

    jobs_store(world, 1, 20);
    die(world);
    path = in(world, "skep.db-wal");
    assert_int_equal(file_read(path, 64 << 20, &whole, &world->err), 0);
    at = whole.at + whole.length / 2;
    for (int i = 0; i < 64; i++)
        at[i] ^= 0x5a;
    assert_int_equal(file_write(path, buf_as_text(&whole), 0600, &world->err), 0);
    check_refused(world, "its log is damaged");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, whole.length);
    /* whoever has a better copy of the log loses nothing */
    for (int i = 0; i < 64; i++)
        at[i] ^= 0x5a;
    assert_int_equal(file_write(path, buf_as_text(&whole), 0600, &world->err), 0);
    world_open(world);
    jobs_store(world, 21, 21);
    buf_release(&whole);
}

static void an_older_copy_uses_no_number_again(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 3);
    world_close(world);
    shell(world, "cp skep.db old");
    world_open(world);
    jobs_store(world, 4, 9);
    world_close(world);
    shell(world, "cp old skep.db");
    check_refused(world, "lacks its last 6 commits (6 events)");
    accept_loss(world);
    check_epoch(world, 1, 1);
    jobs_store(world, 1000001, 1000002);
    world_close(world);
    /* and once more: not even the numbers of the lost epoch are given again */
    shell(world, "cp old skep.db");
    check_refused(world, "not the one that was there");
    accept_loss(world);
    check_epoch(world, 1, 2 /* the old copy knows of no epoch 1 */);
}

static void a_copy_without_its_mark_begins_an_epoch(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 3);
    world_close(world);
    shell(world, "rm mark");
    world_open(world);
    check_epoch(world, 1, 1);
}

static void a_database_that_is_gone_is_told(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 3);
    world_close(world);
    shell(world, "rm skep.db");
    check_refused(world, "the database is gone");
    assert_int_not_equal(access(in(world, "skep.db-wal"), F_OK), 0);
    accept_loss(world);
    check_epoch(world, 1, 1);
}

static void another_database_is_told(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 3);
    world_close(world);
    shell(world, "mkdir keep && mv mark keep && rm skep.db");
    world_open(world);
    jobs_store(world, 1, 9); /* of more commits than the other */
    world_close(world);
    shell(world, "mv keep/mark . && rmdir keep");
    check_refused(world, "not the one that was there");
    accept_loss(world);
    check_epoch(world, 1, 1);
}

static void a_damaged_mark_is_told(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 3);
    world_close(world);
    shell(world, "printf X | dd of=mark bs=1 seek=40 conv=notrunc 2>/dev/null");
    assert_int_equal(store_open(world->directory, &world->store, &world->err), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "mark"));
    accept_loss(world);
    check_epoch(world, 1, 1);
}

static void a_database_of_an_older_program_is_no_copy(void **state)
{
    struct world *world = *state;

    jobs_store(world, 1, 3);
    world_close(world);
    assert_int_equal(world_sql(world, "DROP TABLE epochs; PRAGMA user_version = 6;"
                                      "ALTER TABLE tasks DROP COLUMN killed;"
                                      "ALTER TABLE tasks DROP COLUMN kill_by_ms;"
                                      "ALTER TABLE task_attempts DROP COLUMN killed;"
                                      "ALTER TABLE task_attempts DROP COLUMN kill_by_ms;"
                                      "ALTER TABLE jobs DROP COLUMN reason_topic;"
                                      "ALTER TABLE jobs DROP COLUMN notices;"
                                      "ALTER TABLE nodes DROP COLUMN is_reason_blame;"
                                      "ALTER TABLE jobs RENAME COLUMN owner TO user;"
                                      "ALTER TABLE tokens RENAME COLUMN owner TO user;"
                                      "DROP INDEX users_admin;"
                                      "ALTER TABLE users DROP COLUMN is_inactive;"
                                      "DROP INDEX users_identity;"
                                      "ALTER TABLE users DROP COLUMN identity;"
                                      "ALTER TABLE users DROP COLUMN is_requested;"
                                      "ALTER TABLE tokens DROP COLUMN scope;"
                                      "DROP TABLE groups; DROP TABLE members; DROP TABLE grants;"
                                      "DROP TABLE audit; DROP TABLE quotas; DROP TABLE submit_keys;"
                                      "DROP TABLE template_stars; DROP TABLE templates;"
                                      "DROP TABLE notices; DROP TABLE template_versions;"
                                      "DROP TABLE cluster_closings; DROP TABLE requests;"
                                      "DROP TABLE removed_users; DROP TABLE deleted_jobs;"
                                      "DROP TABLE gpu_use; DROP INDEX nodes_by_name;"
                                      "ALTER TABLE users ADD COLUMN groups_json TEXT DEFAULT '[]';"
                                      "ALTER TABLE users ADD COLUMN virtual_clusters_json TEXT "
                                      "DEFAULT '[]';"
                                      "ALTER TABLE nodes DROP COLUMN engine;"
                                      "ALTER TABLE nodes DROP COLUMN refusals;"
                                      "ALTER TABLE nodes DROP COLUMN avoid_ms;"
                                      "ALTER TABLE nodes DROP COLUMN is_closed;"
                                      "ALTER TABLE nodes DROP COLUMN closed_by;"
                                      "ALTER TABLE nodes DROP COLUMN closed_why;"
                                      "ALTER TABLE nodes DROP COLUMN closed_ms;"
                                      "DELETE FROM counters WHERE name IN ('commit', 'event')"),
                     0);
    shell(world, "rm mark");
    world_open(world);
    assert_int_equal(store_epoch_of(world->store, (struct job_id){4}).number, 0);
    jobs_store(world, 4, 4);
}

static void somebody_who_knows_a_higher_number_begins_an_epoch(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct attempt_id attempt;

    jobs_store(world, 1, 3);
    assert_int_equal(
        store_epoch_begin(world->store, (struct attempt_id){5000000001}, "a test", &world->err), 0);
    store_numbers(world->store, &job, &attempt);
    assert_int_equal(job.v, 1000000);
    assert_int_equal(attempt.v, 6000000000);
    jobs_store(world, 1000001, 1000001);
    die(world);
    world_open(world);
    assert_int_equal(store_epoch_of(world->store, (struct job_id){1000001}).number, 1);
}

static void numbers_end_some_day(void **state)
{
    struct world *world = *state;

    jobs_store(world, 4293000000, 4293000000);
    assert_int_equal(store_epoch_begin(world->store, (struct attempt_id){1}, "a test", &world->err),
                     ERR_TOO_BIG);
    jobs_store(world, 4293000001, 4293000001);
}

static int quiet(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT);
    return 0;
}

struct look {
    struct store *store;
    atomic_bool is_over;
};

static void *look(void *context)
{
    struct look *look = context;
    while (!atomic_load(&look->is_over))
        if (store_epoch_of(look->store, (struct job_id){1}).number != 0 ||
            store_epoch_last(look->store).first_job.v == 0)
            return look; /* which is wrong */
    return NULL;
}

/* An engine that opens late has the core thread begin an epoch while the launcher asks for others.
 */
static void epochs_are_looked_at_while_one_begins(void **state)
{
    enum { EPOCHS = 40 };
    struct world *world = *state;
    struct look looking = {.store = world->store};
    pthread_t thread;
    void *wrong = world;
    assert_int_equal(pthread_create(&thread, NULL, look, &looking), 0);
    for (int i = 0; i < EPOCHS; i++)
        assert_int_equal(
            store_epoch_begin(world->store, (struct attempt_id){0}, "a test", &world->err), 0);
    atomic_store(&looking.is_over, true);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(store_epoch_last(world->store).number, EPOCHS);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(epochs_are_looked_at_while_one_begins),
    WORLD(a_killed_process_loses_nothing),
    WORLD(a_missing_log_is_a_loss_that_is_told),
    WORLD(a_damaged_log_is_kept_until_the_loss_is_accepted),
    WORLD(an_older_copy_uses_no_number_again),
    WORLD(a_copy_without_its_mark_begins_an_epoch),
    WORLD(a_database_that_is_gone_is_told),
    WORLD(another_database_is_told),
    WORLD(a_damaged_mark_is_told),
    WORLD(a_database_of_an_older_program_is_no_copy),
    WORLD(somebody_who_knows_a_higher_number_begins_an_epoch),
    WORLD(numbers_end_some_day),
};
UNIT_FILE(tests, quiet, NULL);
