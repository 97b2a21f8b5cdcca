/* The logs of a task: segments, nothing lost, and both streams merged in order. */
#include "run.h"
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/exit_file.h"
#include "init/log_times.h"

/* 3 segments' worth: the newest two stay, named by their offsets; no byte of them is lost. */
static void rotation(void **state)
{
    (void)state;
    struct world w;
    struct buf bytes = BUF_INIT;
    world_init(&w, "i=0; while [ $i -lt 1000 ]; do echo line $((10000 + i)); i=$((i+1)); done");
    w.task.segment_bytes = 4096;
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    assert_int_equal(access(path_in(&w, "log/stdout.000000000000000"), F_OK), -1);
    assert_int_equal(access(path_in(&w, "log/stdout.000000000004096"), F_OK), 0);
    read_whole(path_in(&w, "log/stdout.000000000008192"), &bytes);
    assert_int_equal(bytes.length, 11000 - 8192);
    assert_string_equal(bytes.at + bytes.length - 11, "line 10999\n");
    read_whole(path_in(&w, "log/all.000000000004096"), &bytes);
    assert_int_equal(bytes.length, 4096);
    buf_release(&bytes);
    folder_remove(w.root);
}

/* What a process that is not awaited wrote just before the end is in the log. */
static void nothing_lost(void **state)
{
    (void)state;
    struct world w;
    struct stat what;
    world_init(&w, "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2");
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    assert_int_equal(stat(path_in(&w, "log/all.000000000000000"), &what), 0);
    assert_int_equal(what.st_size, 5000000);
    assert_int_equal(stat(path_in(&w, "log/stderr.000000000000000"), &what), 0);
    assert_int_equal(what.st_size, 2000000);
    folder_remove(w.root);
}

/* What was written at a time is found by it: the marks name where it began. */
static void times_noted(void **state)
{
    (void)state;
    struct world w;
    struct buf bytes = BUF_INIT;
    static struct log_mark marks[LOG_TIMES_MAX];
    world_init(&w, "echo first; echo second >&2");
    const int64_t before_ms = time(NULL) * 1000LL;
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    read_whole(path_in(&w, "log/times"), &bytes);
    const size_t count = bytes.length / sizeof *marks;
    assert_in_range(count, 1, LOG_TIMES_MAX);
    assert_int_equal(bytes.length, count * sizeof *marks);
    memcpy(marks, bytes.at, bytes.length);
    assert_true(marks[0].at_ms >= before_ms && marks[0].at_ms <= (time(NULL) + 1) * 1000LL);
    assert_int_equal(log_times_find(marks, count, 2, before_ms - 1), 0);
    assert_true(log_times_find(marks, count, 2, marks[count - 1].at_ms) <
                strlen("first\nsecond\n"));
    assert_true(log_times_find(marks, count, 2, INT64_MAX) == UINT64_MAX);
    buf_release(&bytes);
    folder_remove(w.root);
}

/* Alternating streams, each line waited for by the writer until it is in the merged log: there they
 * stand in order. */
static void merged_order(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "seen() { until grep -q $1 log/all.*; do sleep 0.01; done; }\n"
                   "for i in 1 2 3 4 5; do echo o$i; seen o$i; echo e$i >&2; seen e$i; done");
    world_run(&w);
    log_is(&w, "all", "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
    folder_remove(w.root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rotation),
    cmocka_unit_test(nothing_lost),
    cmocka_unit_test(times_noted),
    cmocka_unit_test(merged_order),
};
UNIT_FILE(tests, run_setup, NULL);
