/* The logs of pods on disk: what comes twice, late, in pieces or not at all. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/log_store.h"
#include "engine/local/logs.h"
#include "folder.h"
#include "init/log_line.h"
#include "sys/clock.h"

static char folder[256], path[LOG_STORE_PATH_MAX];
static struct log_store_task task;

static int setup(void **state)
{
    assert_int_equal(folder_setup(state), 0);
    snprintf(folder, sizeof folder, "%s", in_folder(""));
    task = (struct log_store_task){0};
    log_store_path(folder, (struct attempt_id){7}, path);
    assert_int_equal(log_store_begin(folder, (struct attempt_id){7}, "alice~j", NULL), 0);
    assert_int_equal(log_store_begin(folder, (struct attempt_id){7}, "alice~j", NULL), 0);
    log_store_again(&task, true);
    return 0;
}

static int teardown(void **state)
{
    log_store_task_release(&task);
    return folder_teardown(state);
}

/* Lines of skep-init have a sum, which is put into those that look like one. */
static void lines_sum(const char *bytes, struct buf *out)
{
    const char *const kinds = "oerOER.ut";
    struct text left = text_of(bytes);
    while (left.length > 0) {
        struct text line = text_cut(&left, '\n'), rest = line;
        const bool is_whole = left.at != NULL;
        const struct text kind = text_cut(&rest, ' '), offset = text_cut(&rest, ' '),
                          all = text_cut(&rest, ' ');
        int64_t number, all_number;
        if (kind.length == 1 && strchr(kinds, kind.at[0]) && text_to_int64(offset, &number) &&
            text_to_int64(all, &all_number) && rest.at)
            buf_format(out, "%c %lld %lld %06x %.*s", kind.at[0], (long long)number,
                       (long long)all_number,
                       log_line_sum(kind.at[0], (uint64_t)number, (uint64_t)all_number, rest),
                       TEXT_ARG(rest));
        else
            buf_text(out, line);
        if (is_whole)
            buf_char(out, '\n');
    }
}

static void take_as(const char *bytes, uint64_t segment_bytes)
{
    cleanup_buf struct buf lines = BUF_INIT;
    lines_sum(bytes, &lines);
    assert_int_equal(log_store_take(&task, path, segment_bytes, buf_as_text(&lines), NULL), 0);
}

static void take(const char *bytes)
{
    take_as(bytes, 1 << 20);
}

static void stream_is(enum log_stream stream, uint64_t offset, const char *wanted)
{
    char bytes[256];
    struct log_part part;
    ssize_t got = logs_read(path, stream, &offset, bytes, sizeof bytes - 1, &part, NULL);
    assert_true(got >= 0);
    bytes[got] = '\0';
    assert_string_equal(bytes, wanted);
}

static void streams_are_kept_apart(void **state)
{
    (void)state;
    take("o 0 0 a\ne 0 2 b\nr 0 0 note\nO 2 4 c\n. 0 0 \n");
    stream_is(LOG_STDOUT, 0, "a\nc");
    stream_is(LOG_STDERR, 0, "b\n");
    stream_is(LOG_ALL, 0, "a\nb\nc");
    stream_is(LOG_RUNTIME, 0, "note\n");
    assert_true(task.is_whole);
}

static void what_it_uses_is_told_beside_its_logs(void **state)
{
    (void)state;
    take("u 0 0 1 2 3 4 5\no 0 0 a\n");
    assert_int_equal(task.use.memory_bytes, 2);
    take("u 10000 0 10 20 30 40 50\nu 5000 0 7 7 7 7 7\nu 20000 0 many\n"); /* one comes again */
    assert_int_equal(task.use.memory_bytes, 20);
    stream_is(LOG_ALL, 0, "a\n");
}

static void what_comes_in_pieces(void **state)
{
    (void)state;
    cleanup_buf struct buf lines = BUF_INIT;
    lines_sum("o 0 0 a\no 2 2 b\n", &lines);
    const size_t cuts[] = {4, lines.length - 6, lines.length};
    for (size_t i = 0, from = 0; i < COUNT_OF(cuts); from = cuts[i++]) {
        const struct text part = {lines.at + from, cuts[i] - from};
        assert_int_equal(log_store_take(&task, path, 1 << 20, part, NULL), 0);
        stream_is(LOG_STDOUT, 0, i == 0 ? "" : i == 1 ? "a\n" : "a\nb\n");
    }
    stream_is(LOG_STDOUT, 0, "a\nb\n");
    assert_false(task.is_whole);
}

/* A stream that broke begins again, perhaps in another place. */
static void what_comes_twice(void **state)
{
    (void)state;
    take("o 0 0 one\no 4 4");
    log_store_again(&task, true);
    take("o 0 0 one\no 4 4 two\n");
    stream_is(LOG_STDOUT, 0, "one\ntwo\n");
    take("O 6 6 o\nthis is no line of skep-init\n");
    stream_is(LOG_ALL, 0, "one\ntwo\n");
}

static void another_skepd_goes_on(void **state)
{
    (void)state;
    take("o 0 0 one\n");
    log_store_task_release(&task);
    task = (struct log_store_task){0};
    assert_false(task.takes_holes);
    take("o 0 0 one\no 4 4 two\n");
    char first[16];
    struct log_part part;
    uint64_t offset = 0;
    /* in the same segment: many restarts make no more files */
    assert_int_equal(logs_read(path, LOG_STDOUT, &offset, first, sizeof first, &part, NULL), 8);
    assert_int_equal(part.end, 8);
    stream_is(LOG_STDOUT, 4, "two\n");
}

/* Also where nothing more comes: skep-init tells how long each stream is. */
static void what_is_missing_at_the_end(void **state)
{
    (void)state;
    log_store_again(&task, false);
    take("o 0 0 one\nr 0 0 note\nt 4 4 0 5\n");
    assert_false(task.is_torn);
    take("t 4 4 0 6\no 4 4 two\n");
    assert_true(task.is_torn);
    stream_is(LOG_ALL, 0, "one\n");
}

/* A runtime cuts a line where its kubelet rotates the file, and a reader may miss its end. */
static void halves_are_no_line(void **state)
{
    (void)state;
    cleanup_buf struct buf lines = BUF_INIT, halves = BUF_INIT;
    log_store_again(&task, false);
    lines_sum("o 0 0 one\no 4 4 two\n", &lines);
    buf_add(&halves, lines.at, lines.length / 2 - 2);
    buf_add(&halves, lines.at + lines.length - 3, 3);
    assert_int_equal(log_store_take(&task, path, 1 << 20, buf_as_text(&halves), NULL), 0);
    stream_is(LOG_STDOUT, 0, "");
    take("o 4 4 two\n");
    assert_true(task.is_torn);
}

/* What is missing can be fetched: nothing behind it is taken before. */
static void what_is_missing(void **state)
{
    (void)state;
    uint64_t ends[LOG_STORE_STREAMS];
    log_store_again(&task, false);
    take("o 0 0 one\nr 0 0 note\n");
    assert_false(task.is_torn);
    take("e 0 8 bad\no 8 12 three\n"); /* of `all` alone something is missing */
    assert_true(task.is_torn);
    stream_is(LOG_ALL, 0, "one\n");
    stream_is(LOG_STDERR, 0, "");
    struct log_store_task other = {0}; /* who fetches it */
    log_store_ends(&other, path, ends);
    assert_int_equal(ends[LOG_STDOUT], 4);
    assert_int_equal(ends[LOG_ALL], 4);
    assert_int_equal(ends[LOG_RUNTIME], 5);
    assert_int_equal(log_store_put(&other, path, 1 << 20, LOG_STDOUT, 4, TEXT("two\n"), NULL), 0);
    assert_int_equal(log_store_put(&other, path, 1 << 20, LOG_ALL, 4, TEXT("two\nb"), NULL), 0);
    assert_int_equal(log_store_put(&other, path, 1 << 20, LOG_ALL, 2, TEXT("e\nt"), NULL), 0);
    log_store_task_release(&other);
    log_store_changed(&task);
    log_store_again(&task, false);
    take("o 0 0 one\no 4 4 two\ne 0 8 bad\no 8 12 three\n. 0 0 wait\n");
    assert_false(task.is_torn);
    assert_true(task.is_whole && task.is_awaited);
    stream_is(LOG_ALL, 0, "one\ntwo\nbad\nthree\n");
    stream_is(LOG_STDERR, 0, "bad\n");
    stream_is(LOG_STDOUT, 0, "one\ntwo\nthree\n");
}

/* What was rotated away before it was read is a hole, in which readers go on behind it. */
static void what_was_missed(void **state)
{
    (void)state;
    take("o 0 0 one\no 100 100 two\n");
    stream_is(LOG_STDOUT, 0, "one\n");
    stream_is(LOG_STDOUT, 4, "two\n");
    uint64_t offset = 50;
    char bytes[8];
    struct log_part part;
    assert_int_equal(logs_read(path, LOG_STDOUT, &offset, bytes, sizeof bytes, &part, NULL), 4);
    assert_int_equal(offset, 100);
    assert_int_equal(part.end, 104);
}

static void only_the_newest_stays(void **state)
{
    (void)state;
    char line[64];
    for (int i = 0; i < 10; i++) {
        snprintf(line, sizeof line, "o %d %d 1234567\n", i * 8, i * 8);
        take_as(line, 16);
    }
    struct log_part part;
    uint64_t offset = 0;
    char bytes[8];
    assert_int_equal(logs_read(path, LOG_STDOUT, &offset, bytes, sizeof bytes, &part, NULL), 8);
    assert_int_equal(part.end, 80);
    assert_in_range(part.end - part.begin, 32, 48);
}

/* Lines are found by when they came, also by a server that was started in between. */
static void times_are_noted(void **state)
{
    (void)state;
    uint64_t offset = 99;
    const int64_t before_ms = time(NULL) * 1000LL - 1;
    take("o 0 0 first\n");
    assert_int_equal(logs_time(path, LOG_ALL, before_ms, &offset, NULL), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(task.times.count, 1);
    assert_int_equal(task.times.last_ms > before_ms, 1);
    task.times.last_ms = 0; /* long ago */
    take("o 6 6 second\n");
    assert_int_equal(task.times.count, 2);
    assert_int_equal(logs_time(path, LOG_STDOUT, task.times.last_ms, &offset, NULL), 0);
    assert_int_equal(offset, 6);
    assert_int_equal(logs_time(path, LOG_STDERR, task.times.last_ms, &offset, NULL), 0);
    assert_int_equal(offset, 0);
    task.is_known = false;
    take("o 13 13 third\n");
    assert_in_range(task.times.count, 2, 3);
    take("not a line of skep-init\n");
    assert_in_range(task.times.count, 2, 3);
}

/* A task that writes such lines itself fills no disk with files. */
static void holes_without_end(void **state)
{
    (void)state;
    char line[64];
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof line, "r %d 0 x\n", i * 10);
        take(line);
    }
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strncmp(entry->d_name, "runtime.", 8) == 0;
    closedir(dir);
    assert_int_equal(count, 32);
    stream_is(LOG_RUNTIME, 1990, "x\n");
}

/* Nor does it keep the thread that takes the logs of all tasks: each hole costs a file. */
static void holes_in_one_piece(void **state)
{
    (void)state;
    char lines[4096];
    size_t length = 0;
    struct log_part part;
    uint64_t offset = UINT64_MAX;
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(lines + length, sizeof lines - length, "r %d 0 x\n", i * 10);
    take(lines);
    assert_int_equal(logs_read(path, LOG_RUNTIME, &offset, NULL, 0, &part, NULL), 0);
    assert_int_equal(part.end, LOG_STORE_HOLES_MAX * 10 + 2);
    take("r 9223372036854775807 0 far\nr 2000 0 near\n");
    stream_is(LOG_RUNTIME, INT64_MAX, "far\n");
}

static void a_folder_that_is_not_there(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(rmdir(path), 0);
    cleanup_buf struct buf lines = BUF_INIT;
    lines_sum("o 0 0 a\n", &lines);
    assert_int_equal(log_store_take(&task, path, 1 << 20, buf_as_text(&lines), &err), ERR_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(log_store_begin("/nowhere", (struct attempt_id){7}, "alice~j", &err), ERR_IO);
}

static bool is_eight(void *context, struct attempt_id attempt)
{
    (void)context;
    return attempt.v == 8;
}

static void old_logs_go(void **state)
{
    (void)state;
    struct stat stat_of;
    char live[LOG_STORE_PATH_MAX], other[LOG_STORE_PATH_MAX];
    take("o 0 0 a\n");
    assert_int_equal(log_store_begin(folder, (struct attempt_id){8}, "alice~j", NULL), 0);
    log_store_path(folder, (struct attempt_id){8}, live);
    snprintf(other, sizeof other, "%.300s/other", folder);
    assert_int_equal(mkdir(other, 0700), 0);
    struct log_retention retention = {
        .room_bytes = 1 << 30, .keep_s = 3600, .now_s = clock_unix_ms() / 1000};
    log_store_collect(folder, &retention, is_eight, NULL);
    assert_int_equal(stat(path, &stat_of), 0);
    retention.keep_s = 10; /* whatever the wall clock says, these are not old by the trusted time */
    retention.now_s -= 400 * 86400;
    log_store_collect(folder, &retention, is_eight, NULL);
    assert_int_equal(stat(path, &stat_of), 0);
    retention.now_s += 400 * 86400 + 20;
    log_store_collect(folder, &retention, is_eight, NULL);
    assert_int_equal(stat(path, &stat_of), -1);
    assert_int_equal(stat(live, &stat_of), 0);
    assert_int_equal(stat(other, &stat_of), 0);
}

/* A clock that was ahead wrote it: it would not be old before that time has come. */
static void a_log_of_the_future_counts_from_now_on(void **state)
{
    (void)state;
    const int64_t now_s = clock_unix_ms() / 1000;
    const struct timespec ahead[2] = {{.tv_sec = now_s + 400 * 86400},
                                      {.tv_sec = now_s + 400 * 86400}};
    struct log_retention retention = {.room_bytes = 1 << 30, .keep_s = 3600, .now_s = now_s};
    struct stat stat_of;
    take("o 0 0 a\n");
    assert_int_equal(utimensat(AT_FDCWD, path, ahead, 0), 0);
    log_store_collect(folder, &retention, is_eight, NULL);
    assert_int_equal(stat(path, &stat_of), 0);
    /* files have the time of the last tick, which may be of the second before */
    assert_in_range(stat_of.st_mtim.tv_sec, now_s - 1, now_s + 3600);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(streams_are_kept_apart, setup, teardown),
    cmocka_unit_test_setup_teardown(what_it_uses_is_told_beside_its_logs, setup, teardown),
    cmocka_unit_test_setup_teardown(what_comes_in_pieces, setup, teardown),
    cmocka_unit_test_setup_teardown(what_comes_twice, setup, teardown),
    cmocka_unit_test_setup_teardown(another_skepd_goes_on, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_missing, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_missing_at_the_end, setup, teardown),
    cmocka_unit_test_setup_teardown(halves_are_no_line, setup, teardown),
    cmocka_unit_test_setup_teardown(what_was_missed, setup, teardown),
    cmocka_unit_test_setup_teardown(times_are_noted, setup, teardown),
    cmocka_unit_test_setup_teardown(only_the_newest_stays, setup, teardown),
    cmocka_unit_test_setup_teardown(holes_without_end, setup, teardown),
    cmocka_unit_test_setup_teardown(holes_in_one_piece, setup, teardown),
    cmocka_unit_test_setup_teardown(a_folder_that_is_not_there, setup, teardown),
    cmocka_unit_test_setup_teardown(old_logs_go, setup, teardown),
    cmocka_unit_test_setup_teardown(a_log_of_the_future_counts_from_now_on, setup, teardown),
};

UNIT_FILE(tests, NULL, NULL);
