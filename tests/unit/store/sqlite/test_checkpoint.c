/* The log is emptied when it can be, and told of when it cannot. */
#include "../disk.h"
#include "unit.h"
#include "waits.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/marker.h"
#include "sys/log.h"

enum { LIMIT_MS = 60000 };

/* Something that happens on the checkpoint's thread. */
struct tally {
    pthread_mutex_t lock;
    pthread_cond_t has_come;
    int count;
};
static struct tally syncs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0},
                    besides = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void tally_add(struct tally *tally)
{
    pthread_mutex_lock(&tally->lock);
    tally->count++;
    pthread_cond_broadcast(&tally->has_come);
    pthread_mutex_unlock(&tally->lock);
}

/* False: not within a minute. */
static bool tally_await(struct tally *tally, int count)
{
    struct timespec limit;
    int code = 0;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += LIMIT_MS / 1000;
    pthread_mutex_lock(&tally->lock);
    while (code == 0 && tally->count < count)
        code = pthread_cond_timedwait(&tally->has_come, &tally->lock, &limit);
    pthread_mutex_unlock(&tally->lock);
    return code == 0;
}

/* The mark's, by --wrap. */
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    (void)fd;
    tally_add(&syncs);
    return 0;
}

struct fixture {
    char directory[64], path[100], log[100];
    int beside_code; /* of a commit beside the copying */
    sqlite3 *beside; /* one that goes on */
    bool was_writer_held;
    struct checkpoint checkpoint;
    struct marker marker;
    sqlite3 *writer;
    int pages; /* in the log after the last commit */
};

static void run(sqlite3 *db, const char *text)
{
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
}

static int on_wal(void *context, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct fixture *)context)->pages = pages;
    return SQLITE_OK;
}

static int begin(void **state)
{
    static struct fixture fixture;
    int fd;

    fixture = (struct fixture){.directory = "/tmp/test-checkpoint-XXXXXX"};
    assert_non_null(mkdtemp(fixture.directory));
    disk_begin();
    snprintf(fixture.path, sizeof fixture.path, "%s/t.db", fixture.directory);
    snprintf(fixture.log, sizeof fixture.log, "%s/log", fixture.directory);
    assert_int_equal(marker_open(&fixture.marker, fixture.directory, NULL), 0);
    fd = open(fixture.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    log_to(fd);
    syncs.count = besides.count = 0;
    assert_int_equal(sqlite3_open(fixture.path, &fixture.writer), SQLITE_OK);
    /* as the store's writer: a checkpoint that begins the log anew holds it up for a moment */
    sqlite3_busy_timeout(fixture.writer, LIMIT_MS);
    run(fixture.writer, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                        "CREATE TABLE t (b BLOB)");
    sqlite3_wal_hook(fixture.writer, on_wal, &fixture);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    char remove[100];

    checkpoint_stop(&fixture->checkpoint);
    sqlite3_close(fixture->writer);
    marker_close(&fixture->marker);
    log_to(2);
    snprintf(remove, sizeof remove, "rm -rf %s", fixture->directory);
    return system(remove);
}

static void start(struct fixture *fixture, struct checkpoint_limits limits)
{
    struct err err;
    assert_int_equal(
        checkpoint_start(&fixture->checkpoint, fixture->path, &limits, &fixture->marker, &err), 0);
}

/* A page, or as many as the kibibytes need. */
static void write_some(struct fixture *fixture, int kib)
{
    char text[80];

    snprintf(text, sizeof text, "INSERT INTO t VALUES (zeroblob(%d))", kib * 1024);
    run(fixture->writer, text);
    checkpoint_note(&fixture->checkpoint, fixture->pages);
}

static void a_kept_snapshot_is_told_with_its_size(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *reader;

    start(fixture, (struct checkpoint_limits){.due = 10, .restart = 100, .large = 500});
    assert_int_equal(sqlite3_open(fixture->path, &reader), SQLITE_OK);
    run(reader, "BEGIN; SELECT * FROM t");
    for (int i = 0; i < 3; i++)
        write_some(fixture, 1024);
    assert_true(file_says_await(fixture->log, "has grown to", LIMIT_MS));
    assert_true(file_says_await(fixture->log, "keeps a snapshot", LIMIT_MS));
    assert_true(atomic_load(&fixture->checkpoint.large_since_ms) > 0);
    run(reader, "COMMIT");
    write_some(fixture, 4);
    assert_true(file_says_await(fixture->log, "has been emptied", LIMIT_MS));
    assert_int_equal(atomic_load(&fixture->checkpoint.large_since_ms), 0);
    /* the next commit begins the log anew */
    write_some(fixture, 4);
    assert_true(fixture->pages < 10);
    sqlite3_close(reader);
}

/* It waits for nobody. */
static void commit_beside(void *context)
{
    struct fixture *fixture = context;
    sqlite3 *db;

    fixture->beside_code = sqlite3_open_v2(fixture->path, &db, SQLITE_OPEN_READWRITE, "unix");
    if (fixture->beside_code == SQLITE_OK)
        fixture->beside_code =
            sqlite3_exec(db, "INSERT INTO t VALUES ('beside')", NULL, NULL, NULL);
    sqlite3_close(db);
    tally_add(&besides);
}

/* A round of the thread, with a commit by somebody else while it copies. */
static void copy_beside_commit(struct fixture *fixture, struct checkpoint_limits limits)
{
    disk_on_write(DISK_DATABASE, commit_beside, fixture);
    start(fixture, limits);
    write_some(fixture, 1024);
    assert_true(tally_await(&besides, 1));
    checkpoint_stop(&fixture->checkpoint); /* the round is over */
    /* a commit that had to wait would be SQLITE_BUSY */
    assert_int_equal(fixture->beside_code, SQLITE_OK);
    run(fixture->writer, "INSERT INTO t VALUES (1)");
}

/* While the thread copies pages into the database anybody can commit, at once. Below the limit the
 * log goes on after it. */
static void a_commit_does_not_wait_for_the_copying(void **state)
{
    struct fixture *fixture = *state;

    copy_beside_commit(fixture,
                       (struct checkpoint_limits){.due = 10, .restart = 1000, .large = 200000});
    assert_true(fixture->pages > 256);
}

/* Where something is committed during each copying, the log is never copied whole; still it does
 * not grow for ever: from the limit on, the next commit begins it anew. */
static void a_large_log_begins_anew_beside_commits(void **state)
{
    struct fixture *fixture = *state;

    copy_beside_commit(fixture,
                       (struct checkpoint_limits){.due = 10, .restart = 100, .large = 200000});
    assert_true(fixture->pages < 10);
}

/* On the checkpoint's thread, too: somebody commits, and takes long. */
static void commit_begin_beside(void *context)
{
    struct fixture *fixture = context;

    assert_int_equal(
        sqlite3_open_v2(fixture->path, &fixture->beside, SQLITE_OPEN_READWRITE, "unix"), SQLITE_OK);
    run(fixture->beside, "BEGIN IMMEDIATE");
}

static void is_writer_held_note(void *context)
{
    struct fixture *fixture = context;

    pthread_mutex_lock(&fixture->checkpoint.lock);
    fixture->was_writer_held = fixture->checkpoint.is_writer_held;
    pthread_mutex_unlock(&fixture->checkpoint.lock);
    tally_add(&besides);
}

/* Nobody can begin the log anew while somebody commits. Where commits leave no moment between them,
 * the one after that is held for it, and only that one. */
static void a_large_log_begins_anew_between_commits(void **state)
{
    struct fixture *fixture = *state;

    disk_on_write(DISK_DATABASE, commit_begin_beside, fixture);
    start(fixture, (struct checkpoint_limits){.due = 10, .restart = 100, .large = 200000});
    write_some(fixture, 1024);
    checkpoint_await(&fixture->checkpoint); /* a round is over */
    run(fixture->beside, "INSERT INTO t VALUES ('beside'); COMMIT");
    sqlite3_close(fixture->beside);
    disk_on_write(DISK_DATABASE, is_writer_held_note, fixture);
    write_some(fixture, 4);
    assert_true(tally_await(&besides, 1));
    assert_true(fixture->was_writer_held);
    assert_true(fixture->pages > 256);
    disk_on_write(DISK_DATABASE, is_writer_held_note, fixture);
    write_some(fixture, 1024);
    assert_true(fixture->pages < 300); /* the log has begun anew, for this one */
    assert_true(tally_await(&besides, 2));
    assert_false(fixture->was_writer_held);
}

/* A commit, and the round of the thread that it begins. */
static void round_run(struct fixture *fixture)
{
    run(fixture->writer, "INSERT INTO t VALUES (1)");
    checkpoint_note(&fixture->checkpoint, fixture->pages);
    checkpoint_await(&fixture->checkpoint);
}

/* It reads nothing old, so all is copied beside it; but the log cannot begin anew while it reads.
 * Whoever waited for it would hold the lock that each commit needs. */
static void a_reader_of_the_newest_snapshot_holds_up_no_commit(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *reader;

    start(fixture, (struct checkpoint_limits){.due = 10, .restart = 100, .large = 200000});
    run(fixture->writer, "INSERT INTO t VALUES (zeroblob(1048576))");
    assert_int_equal(sqlite3_open(fixture->path, &reader), SQLITE_OK);
    run(reader, "BEGIN; SELECT count(*) FROM t");
    const uint64_t before = disk_waits();
    round_run(fixture);
    round_run(fixture); /* the writer is held for this one */
    assert_int_equal(disk_waits(), before);
    assert_true(fixture->pages > 256);
    run(reader, "COMMIT");
    sqlite3_close(reader);
    round_run(fixture);
    write_some(fixture, 4);
    assert_true(fixture->pages < 10);
}

static bool is_told_to_have_grown(const struct fixture *fixture)
{
    char words[60];

    snprintf(words, sizeof words, "has grown to %d MiB", fixture->pages / 256);
    return file_says_await(fixture->log, words, LIMIT_MS);
}

/* A log that goes on growing is told of once a doubling, not with each commit. */
static void a_growing_log_is_told_once_a_doubling(void **state)
{
    struct fixture *fixture = *state;
    char line[300];
    int told = 0;
    sqlite3 *reader;
    FILE *log;

    start(fixture, (struct checkpoint_limits){.due = 10, .restart = 100, .large = 300});
    assert_int_equal(sqlite3_open(fixture->path, &reader), SQLITE_OK);
    run(reader, "BEGIN; SELECT * FROM t");
    write_some(fixture, 2048);
    assert_true(is_told_to_have_grown(fixture));
    for (int i = 0; i < 50; i++)
        write_some(fixture, 4); /* each is a round, as far as the thread keeps up */
    assert_true(fixture->pages < 1000);
    write_some(fixture, 8192);
    assert_true(is_told_to_have_grown(fixture));
    log = fopen(fixture->log, "r");
    while (fgets(line, sizeof line, log))
        told += strstr(line, "has grown to") != NULL;
    fclose(log);
    assert_int_equal(told, 2);
    sqlite3_close(reader);
}

/* The mark reaches the disk soon after it was written: after the copying, or when nothing is to be
 * copied, after MARK_SYNC_MS; and once, however many commits there were. */
static void the_mark_is_synced_by_the_thread(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, (struct checkpoint_limits){.due = 100, .restart = 1000, .large = 200000});
    assert_int_equal(marker_write(&fixture->marker, &(struct mark){.commits = 1}, NULL), 0);
    for (int i = 0; i < 3; i++)
        checkpoint_note(&fixture->checkpoint, 1);
    assert_true(tally_await(&syncs, 1));
    assert_false(marker_is_dirty(&fixture->marker));
    assert_int_equal(marker_write(&fixture->marker, &(struct mark){.commits = 2}, NULL), 0);
    write_some(fixture, 1024);
    assert_true(tally_await(&syncs, 2));
    checkpoint_stop(&fixture->checkpoint);
    assert_int_equal(syncs.count, 2);
}

static void nothing_is_done_below_the_limit(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, (struct checkpoint_limits){.due = 1000, .restart = 2000, .large = 3000});
    write_some(fixture, 1024);
    checkpoint_stop(&fixture->checkpoint); /* all that was due is done */
    run(fixture->writer, "INSERT INTO t VALUES (1)");
    assert_true(fixture->pages > 256);
}

static void a_missing_database_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct err err;

    assert_int_equal(
        checkpoint_start(&fixture->checkpoint, "/nonexistent/skep.db",
                         &(struct checkpoint_limits){.due = 1, .restart = 2, .large = 3},
                         &fixture->marker, &err),
        ERR_IO);
    assert_string_equal(err.text, "open /nonexistent/skep.db: No such file or directory");
}

#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, begin, end)
static const struct CMUnitTest tests[] = {
    FIXTURE(a_kept_snapshot_is_told_with_its_size),
    FIXTURE(a_commit_does_not_wait_for_the_copying),
    FIXTURE(a_large_log_begins_anew_beside_commits),
    FIXTURE(a_large_log_begins_anew_between_commits),
    FIXTURE(a_reader_of_the_newest_snapshot_holds_up_no_commit),
    FIXTURE(a_growing_log_is_told_once_a_doubling),
    FIXTURE(the_mark_is_synced_by_the_thread),
    FIXTURE(nothing_is_done_below_the_limit),
    FIXTURE(a_missing_database_is_an_error),
};
UNIT_FILE(tests, NULL, NULL);
