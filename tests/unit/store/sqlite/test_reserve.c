/* What is kept of the disk, by how much of it is free. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/err.h"
#include "store/sqlite/reserve.h"
#include "store/store.h"
#include "sys/log.h"

/* The file system as the reserve sees it, in blocks of a KiB: --wrap. */
static struct {
    uint64_t all_kib, left_kib;
    bool fails;
} room;

int __wrap_statvfs64(const char *path, struct statvfs *status);
int __wrap_statvfs64(const char *path, struct statvfs *status)
{
    (void)path;
    *status = (struct statvfs){.f_bsize = 4096,
                               .f_frsize = 1024,
                               .f_blocks = room.all_kib,
                               .f_bfree = room.left_kib + 100000, /* some of it root's alone */
                               .f_bavail = room.left_kib};
    errno = EIO;
    return room.fails ? -1 : 0;
}

enum { ALL_KIB = 16 * 1024, OWN_KIB = 1024 }; /* a sixteenth of it */

struct fixture {
    char directory[64], path[100];
    struct reserve reserve;
    struct err err;
};

static int begin(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.directory = "/tmp/test-reserve-XXXXXX"};
    assert_non_null(mkdtemp(fixture.directory));
    snprintf(fixture.path, sizeof fixture.path, "%s/reserve", fixture.directory);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    char remove[100];

    reserve_close(&fixture->reserve);
    snprintf(remove, sizeof remove, "rm -rf %s", fixture->directory);
    return system(remove);
}

/* As at a start of the server, with this room left. */
static bool opens_held(struct fixture *fixture, uint64_t left_kib)
{
    room.all_kib = ALL_KIB;
    room.left_kib = left_kib;
    reserve_close(&fixture->reserve);
    assert_int_equal(reserve_open(&fixture->reserve, fixture->directory, &fixture->err), 0);
    return fixture->reserve.is_held;
}

/* -1: it is not there. */
static int64_t file_kib(const struct fixture *fixture)
{
    struct stat status;
    return stat(fixture->path, &status) == 0 ? status.st_size / 1024 : -1;
}

/* A reserve that took the last room would only fill the disk itself. */
static void it_is_made_where_twice_its_size_is_free(void **state)
{
    struct fixture *fixture = *state;

    assert_false(opens_held(fixture, 2 * OWN_KIB - 1));
    assert_int_equal(file_kib(fixture), -1);
    assert_false(reserve_make(&fixture->reserve));
    assert_false(reserve_give_up(&fixture->reserve)); /* there is none */
    room.left_kib = 2 * OWN_KIB;
    assert_true(reserve_make(&fixture->reserve));
    assert_true(fixture->reserve.is_held);
    assert_int_equal(file_kib(fixture), OWN_KIB);
    room.left_kib = 0;
    assert_true(reserve_make(&fixture->reserve)); /* it is there already */
    assert_int_equal(file_kib(fixture), OWN_KIB);
}

/* The start itself needs room: from less than its size on, the reserve is given to it. */
static void a_start_on_a_full_disk_gives_it_up(void **state)
{
    struct fixture *fixture = *state;

    assert_true(opens_held(fixture, 10 * OWN_KIB));
    assert_true(opens_held(fixture, OWN_KIB));
    assert_int_equal(file_kib(fixture), OWN_KIB);
    assert_false(opens_held(fixture, OWN_KIB - 1));
    assert_int_equal(file_kib(fixture), -1);
}

static void it_is_a_sixteenth_of_the_disk_within_limits(void **state)
{
    static const struct {
        uint64_t all_kib, bytes;
    } cases[] = {
        {0, 256 << 10},
        {16 * 256 - 16, 256 << 10},
        {16 * 256 + 16, 257 << 10},
        {16 * 8192 - 16, 8191 << 10},
        {16 * 8192 + 16, 8 << 20},
        {(uint64_t)1 << 40, 8 << 20},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        room.all_kib = cases[i].all_kib;
        room.left_kib = 0;
        assert_int_equal(reserve_open(&fixture->reserve, fixture->directory, &fixture->err), 0);
        assert_int_equal(fixture->reserve.bytes, cases[i].bytes);
        reserve_close(&fixture->reserve);
    }
}

/* The file of a start that broke off, or of a smaller disk, does not hold the room. */
static void one_that_is_too_small_is_made_anew(void **state)
{
    struct fixture *fixture = *state;

    assert_true(opens_held(fixture, 10 * OWN_KIB));
    assert_int_equal(truncate(fixture->path, OWN_KIB * 1024 - 1), 0);
    assert_true(opens_held(fixture, 10 * OWN_KIB));
    assert_int_equal(file_kib(fixture), OWN_KIB);
    assert_int_equal(truncate(fixture->path, 1024), 0);
    assert_false(opens_held(fixture, 0));
    assert_int_equal(file_kib(fixture), -1);
}

static void it_is_given_up_once(void **state)
{
    struct fixture *fixture = *state;

    assert_true(opens_held(fixture, 10 * OWN_KIB));
    assert_true(reserve_give_up(&fixture->reserve));
    assert_int_equal(file_kib(fixture), -1);
    assert_false(reserve_give_up(&fixture->reserve));
    assert_true(reserve_make(&fixture->reserve));
    assert_int_equal(unlink(fixture->path), 0); /* by somebody else: nothing can be given */
    assert_false(reserve_give_up(&fixture->reserve));
    assert_false(fixture->reserve.is_held);
}

static void a_disk_that_cannot_be_asked_is_an_error(void **state)
{
    struct fixture *fixture = *state;

    room.fails = true;
    assert_int_equal(reserve_open(&fixture->reserve, fixture->directory, &fixture->err), ERR_IO);
    room.fails = false;
    assert_false(opens_held(fixture, 0));
    room.fails = true;
    room.left_kib = 10 * OWN_KIB;
    assert_false(reserve_make(&fixture->reserve));
    room.fails = false;
    assert_true(reserve_make(&fixture->reserve));
}

/* Until there is a reserve, only what frees room is taken: from the start on. */
static void a_store_without_it_is_short_from_the_start(void **state)
{
    struct fixture *fixture = *state;
    struct store *store;

    room.all_kib = ALL_KIB;
    for (int i = 0; i < 2; i++) {
        room.left_kib = i ? 2 * OWN_KIB : 2 * OWN_KIB - 1;
        assert_int_equal(store_open(fixture->directory, &store, &fixture->err), 0);
        assert_true(store_is_short(store) == (i == 0));
        store_close(store);
    }
}

static int quiet(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT);
    return 0;
}

#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, begin, end)
static const struct CMUnitTest tests[] = {
    FIXTURE(it_is_made_where_twice_its_size_is_free),
    FIXTURE(a_start_on_a_full_disk_gives_it_up),
    FIXTURE(it_is_a_sixteenth_of_the_disk_within_limits),
    FIXTURE(one_that_is_too_small_is_made_anew),
    FIXTURE(it_is_given_up_once),
    FIXTURE(a_disk_that_cannot_be_asked_is_an_error),
    FIXTURE(a_store_without_it_is_short_from_the_start),
};
UNIT_FILE(tests, quiet, NULL);
