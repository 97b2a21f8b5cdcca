/* Marks of times beside a log: how many, how far apart, and what is found by them. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "init/log_times.h"
#include "run.h"

static struct {
    char path[64];
    int fd;
} folder;

static int folder_begin(void **state)
{
    (void)state;
    strcpy(folder.path, "/tmp/skep-times-XXXXXX");
    assert_non_null(mkdtemp(folder.path));
    folder.fd = open(folder.path, O_RDONLY | O_DIRECTORY);
    return folder.fd < 0;
}

static int folder_end(void **state)
{
    (void)state;
    close(folder.fd);
    folder_remove(folder.path);
    return 0;
}

static size_t marks_read(struct log_mark marks[LOG_TIMES_MAX])
{
    int fd = openat(folder.fd, LOG_TIMES_NAME, O_RDONLY);
    ssize_t got = fd >= 0 ? read(fd, marks, LOG_TIMES_MAX * sizeof *marks) : 0;
    struct stat stat;
    if (fd >= 0)
        assert_int_equal(fstat(fd, &stat), 0);
    if (fd >= 0)
        assert_int_equal(stat.st_size, got);
    close(fd);
    return (size_t)got / sizeof *marks;
}

static void note_at(struct log_times *times, int64_t now_ms, uint64_t end)
{
    const uint64_t ends[LOG_TIMES_STREAMS] = {end, end + 1, end + 2, end + 3};
    log_times_note(times, folder.fd, now_ms, ends);
}

static void at_most_once_a_second(void **state)
{
    static struct log_mark marks[LOG_TIMES_MAX];
    struct log_times times;
    (void)state;
    log_times_open(&times, folder.fd);
    note_at(&times, 5000, 0);
    note_at(&times, 5999, 10);
    note_at(&times, 6000, 20);
    note_at(&times, 100, 30); /* the clock was set back */
    note_at(&times, 9000, 40);
    assert_int_equal(marks_read(marks), 3);
    assert_int_equal(marks[1].at_ms, 6000);
    assert_int_equal(marks[1].ends[2], 22);
    static const struct {
        int64_t at_ms;
        size_t stream;
        uint64_t offset;
    } CASES[] = {{0, 0, 0},     {4999, 1, 0},  {5000, 1, 1},  {5500, 3, 3},          {6000, 0, 20},
                 {6999, 0, 20}, {7000, 0, 40}, {9999, 2, 42}, {10000, 2, UINT64_MAX}};
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        assert_int_equal(log_times_find(marks, 3, CASES[i].stream, CASES[i].at_ms),
                         CASES[i].offset);
    assert_int_equal(log_times_find(marks, 0, 0, 6000), 0);
    /* another writer goes on */
    log_times_open(&times, folder.fd);
    note_at(&times, 9500, 50);
    note_at(&times, 10000, 60);
    assert_int_equal(marks_read(marks), 4);
    assert_int_equal(marks[3].at_ms, 10000);
}

/* What was written between the last mark and the writer's end is not skipped, whoever goes on. */
static void a_mark_that_was_lost_with_its_writer(void **state)
{
    static struct log_mark marks[LOG_TIMES_MAX];
    struct log_times times;
    (void)state;
    log_times_open(&times, folder.fd);
    note_at(&times, 5000, 10);
    log_times_note(&times, -1, 7000, (const uint64_t[LOG_TIMES_STREAMS]){20}); /* cannot be kept */
    assert_true(times.is_missed);
    log_times_open(&times, folder.fd); /* another writer knows nothing of it */
    note_at(&times, 9000, 30);
    assert_int_equal(marks_read(marks), 2);
    assert_int_equal(log_times_find(marks, 2, 0, 7500), 10);
    assert_int_equal(log_times_find(marks, 2, 0, 9000), 30);
}

/* A day of output: the file stays as small, and no gap is longer than a thousandth of it. */
static void never_too_many(void **state)
{
    enum { DAY_S = 86400 };
    static struct log_mark marks[LOG_TIMES_MAX];
    struct log_times times;
    (void)state;
    log_times_open(&times, folder.fd);
    for (int64_t s = 1; s <= DAY_S; s++)
        note_at(&times, s * 1000, (uint64_t)s * 100);
    size_t count = marks_read(marks);
    assert_in_range(count, LOG_TIMES_MAX / 2, LOG_TIMES_MAX);
    assert_int_equal(marks[0].at_ms, 1000);
    for (size_t i = 1; i < count; i++) {
        assert_in_range(marks[i].at_ms - marks[i - 1].at_ms, 1000, DAY_S * 1000 / 1000);
        assert_true(marks[i - 1].until_ms >= marks[i].at_ms);
    }
    assert_int_equal(faccessat(folder.fd, LOG_TIMES_NAME ".new", F_OK, 0), -1);
}

/* What cannot be written is left out, and what is written then is whole. */
static void a_folder_that_takes_nothing(void **state)
{
    struct log_times times;
    (void)state;
    log_times_open(&times, -1);
    log_times_note(&times, -1, 5000, (const uint64_t[LOG_TIMES_STREAMS]){0});
    assert_int_equal(times.count, 0);
    assert_int_equal(mkdirat(folder.fd, LOG_TIMES_NAME, 0755), 0);
    log_times_open(&times, folder.fd);
    note_at(&times, 6000, 10);
    assert_int_equal(times.count, 0);
    assert_int_equal(unlinkat(folder.fd, LOG_TIMES_NAME, AT_REMOVEDIR), 0);
    note_at(&times, 6500, 15); /* not tried again for each line */
    assert_int_equal(times.count, 0);
    note_at(&times, 7000, 20);
    assert_int_equal(times.count, 1);
    /* what could not be noted counts to the mark before */
    static struct log_mark marks[LOG_TIMES_MAX];
    log_times_note(&times, -1, 9000, (const uint64_t[LOG_TIMES_STREAMS]){30, 30, 30, 30});
    note_at(&times, 12000, 40);
    assert_int_equal(marks_read(marks), 2);
    assert_int_equal(log_times_find(marks, 2, 0, 11000), 20);
    assert_int_equal(log_times_find(marks, 2, 0, 12000), 40);
}

#define FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_begin, folder_end)
static const struct CMUnitTest tests[] = {
    FOLDER(at_most_once_a_second),
    FOLDER(a_mark_that_was_lost_with_its_writer),
    FOLDER(never_too_many),
    FOLDER(a_folder_that_takes_nothing),
};
UNIT_FILE(tests, NULL, NULL);
