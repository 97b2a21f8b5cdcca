/* The mark beside the database is read as it was written, or not at all. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/sqlite/marker.h"
#include "sys/file.h"

/* What the marker asks of the disk passes through here: --wrap. */
static struct {
    int fd, count, fails_with;
} syncs;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    syncs.fd = fd;
    syncs.count++;
    errno = syncs.fails_with;
    return syncs.fails_with ? -1 : __real_fdatasync(fd);
}

struct fixture {
    char directory[64], path[100];
    struct marker marker;
    struct err err;
};

static const struct mark written = {.epoch = 0xfedcba9876543210,
                                    .commits = UINT64_MAX,
                                    .events = 23,
                                    .last_job = UINT32_MAX,
                                    .last_attempt = 42};

static int begin(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.directory = "/tmp/test-marker-XXXXXX"};
    assert_non_null(mkdtemp(fixture.directory));
    snprintf(fixture.path, sizeof fixture.path, "%s/mark", fixture.directory);
    assert_int_equal(marker_open(&fixture.marker, fixture.directory, &fixture.err), 0);
    memset(&syncs, 0, sizeof syncs);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    char remove[100];

    marker_close(&fixture->marker);
    snprintf(remove, sizeof remove, "rm -rf %s", fixture->directory);
    return system(remove);
}

/* Without the mark a loss would not be noticed: a start must not go on as if there were none. */
static void a_mark_that_cannot_be_opened_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct marker other = {.fd = -1};
    char text[200];

    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_int_equal(marker_open(&other, fixture->directory, &fixture->err), ERR_IO);
    snprintf(text, sizeof text, "open %s: Is a directory", fixture->path);
    assert_string_equal(fixture->err.text, text);
    assert_int_equal(marker_open(&other, "/nonexistent", &fixture->err), ERR_IO);
    assert_string_equal(fixture->err.text, "open /nonexistent/mark: No such file or directory");
}

static void a_mark_is_read_as_it_was_written(void **state)
{
    struct fixture *fixture = *state;
    struct mark mark = {0};

    assert_int_equal(marker_read(&fixture->marker, &mark, &fixture->err), 0); /* nothing yet */
    assert_int_equal(marker_write(&fixture->marker, &(struct mark){0}, &fixture->err), 0);
    assert_int_equal(marker_write(&fixture->marker, &written, &fixture->err), 0);
    assert_int_equal(marker_read(&fixture->marker, &mark, &fixture->err), 1);
    assert_true(mark.epoch == written.epoch && mark.commits == written.commits &&
                mark.events == written.events && mark.last_job == written.last_job &&
                mark.last_attempt == written.last_attempt);
}

/* Whatever single byte of the record has changed, nothing is believed of it; nor of one that is
 * too short. The blank and the newline at its end say nothing. */
static void a_damaged_mark_is_not_believed(void **state)
{
    struct fixture *fixture = *state;
    struct buf bytes = BUF_INIT;
    struct mark mark;

    assert_int_equal(marker_write(&fixture->marker, &written, &fixture->err), 0);
    assert_int_equal(file_read(fixture->path, 1000, &bytes, &fixture->err), 0);
    for (size_t i = 0; i + 2 < bytes.length; i++) {
        char changed = bytes.at[i] == '1' ? '2' : '1';
        assert_int_equal(pwrite(fixture->marker.fd, &changed, 1, (off_t)i), 1);
        assert_int_equal(marker_read(&fixture->marker, &mark, &fixture->err), ERR_CORRUPT);
        assert_int_equal(pwrite(fixture->marker.fd, &bytes.at[i], 1, (off_t)i), 1);
    }
    assert_int_equal(marker_read(&fixture->marker, &mark, &fixture->err), 1);
    assert_int_equal(ftruncate(fixture->marker.fd, (off_t)bytes.length - 1), 0);
    assert_int_equal(marker_read(&fixture->marker, &mark, &fixture->err), ERR_CORRUPT);
    buf_release(&bytes);
}

/* What was written is synced once, by whoever comes first: the thread, or the end. */
static void a_mark_is_synced_once(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(marker_sync(&fixture->marker, &fixture->err), 0);
    assert_int_equal(syncs.count, 0);
    assert_int_equal(marker_write(&fixture->marker, &written, &fixture->err), 0);
    assert_true(marker_is_dirty(&fixture->marker));
    assert_int_equal(marker_sync(&fixture->marker, &fixture->err), 0);
    assert_int_equal(syncs.count, 1);
    assert_int_equal(syncs.fd, fixture->marker.fd);
    assert_false(marker_is_dirty(&fixture->marker));
    assert_int_equal(marker_sync(&fixture->marker, &fixture->err), 0);
    assert_int_equal(syncs.count, 1);
    assert_int_equal(marker_write(&fixture->marker, &written, &fixture->err), 0);
    marker_close(&fixture->marker);
    assert_int_equal(syncs.count, 2);
    marker_close(&fixture->marker); /* nothing is open any more */
    assert_int_equal(syncs.count, 2);
}

static void a_sync_that_fails_is_told(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(marker_write(&fixture->marker, &written, &fixture->err), 0);
    syncs.fails_with = EIO;
    assert_int_equal(marker_sync(&fixture->marker, &fixture->err), ERR_IO);
    assert_string_equal(fixture->err.text, "fsync mark: Input/output error");
}

#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, begin, end)
static const struct CMUnitTest tests[] = {
    FIXTURE(a_mark_that_cannot_be_opened_is_an_error),
    FIXTURE(a_mark_is_read_as_it_was_written),
    FIXTURE(a_damaged_mark_is_not_believed),
    FIXTURE(a_mark_is_synced_once),
    FIXTURE(a_sync_that_fails_is_told),
};
UNIT_FILE(tests, NULL, NULL);
