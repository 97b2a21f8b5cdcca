/* test_checkpoint.c — the log is emptied when it can be, and told of when it cannot. */
#include "base/err.h"
#include "store/checkpoint.h"
#include "store/marker.h"
#include "sys/log.h"
#include "waits.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIMIT_MS = 60000 };

struct fixture {
    char directory[64], path[100], log[100];
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
    snprintf(fixture.path, sizeof fixture.path, "%s/db", fixture.directory);
    snprintf(fixture.log, sizeof fixture.log, "%s/log", fixture.directory);
    assert_int_equal(marker_open(&fixture.marker, fixture.directory, NULL), 0);
    fd = open(fixture.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    log_to(fd);
    assert_int_equal(sqlite3_open(fixture.path, &fixture.writer), SQLITE_OK);
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

    start(fixture, (struct checkpoint_limits){10, 100, 500});
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

static void nothing_is_done_below_the_limit(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, (struct checkpoint_limits){1000, 2000, 3000});
    write_some(fixture, 1024);
    checkpoint_stop(&fixture->checkpoint); /* all that was due is done */
    run(fixture->writer, "INSERT INTO t VALUES (1)");
    assert_true(fixture->pages > 256);
}

static void a_missing_database_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct err err;

    assert_int_equal(checkpoint_start(&fixture->checkpoint, "/nonexistent/skep.db",
                                      &(struct checkpoint_limits){1, 2, 3}, &fixture->marker, &err),
                     ERR_IO);
    assert_string_equal(err.text, "open /nonexistent/skep.db: No such file or directory");
}

int main(void)
{
#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        FIXTURE(a_kept_snapshot_is_told_with_its_size),
        FIXTURE(nothing_is_done_below_the_limit),
        FIXTURE(a_missing_database_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
