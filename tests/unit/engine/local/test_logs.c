/* Logs are read from their segments, by position and from their end. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/logs.h"
#include "init/log_times.h"
#include "sys/file.h"

static void test_log_segments(void **state)
{
    (void)state;
    struct log_part part;
    char text[32];
    uint64_t offset = 0;
    folder_put("log/all.000000000000010", "0123456789");
    folder_put("log/all.000000000000020", "abcdef");
    folder_put("log/all.20", "not a segment");
    folder_put("log/stdout.000000000000000", "x");
    const char *log = in_folder("log");
    /* what came before 10 is gone */
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, 4, &part, NULL), 4);
    assert_int_equal(offset, 10);
    assert_int_equal(part.begin, 10);
    assert_int_equal(part.end, 26);
    assert_memory_equal(text, "0123", 4);
    offset = 18;
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, sizeof text, &part, NULL), 2);
    offset = 20;
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, sizeof text, &part, NULL), 6);
    offset = 26;
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, sizeof text, &part, NULL), 0);
    offset = 5;
    assert_int_equal(logs_read(log, LOG_STDERR, &offset, text, sizeof text, &part, NULL), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(logs_read(in_folder("nolog"), LOG_ALL, &offset, text, 1, &part, NULL),
                     ERR_NOT_FOUND);
}

static void test_log_tail(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    folder_put("tail/all.000000000000000", "one\ntwo\nthree\n");
    logs_tail(in_folder("tail"), LOG_ALL, 1000, &out);
    assert_string_equal(buf_cstr(&out), "one\ntwo\nthree\n");
    buf_clear(&out);
    logs_tail(in_folder("tail"), LOG_ALL, 8, &out); /* from the begin of a line */
    assert_string_equal(buf_cstr(&out), "three\n");
    buf_clear(&out);
    logs_tail(in_folder("tail"), LOG_RUNTIME, 8, &out);
    assert_int_equal(out.length, 0);
    buf_release(&out);
}

static void test_log_links(void **state)
{
    (void)state;
    struct log_part part;
    char text[32];
    uint64_t offset = 0;
    folder_put("links/stderr.000000000000000", "x");
    assert_int_equal(symlink("/etc/passwd", in_folder("links/all.000000000000000")), 0);
    assert_int_equal(mkfifo(in_folder("links/stdout.000000000000000"), 0600), 0);
    assert_int_equal(logs_read(in_folder("links"), LOG_ALL, &offset, text, 9, &part, NULL), 0);
    assert_int_equal(logs_read(in_folder("links"), LOG_STDOUT, &offset, text, 9, &part, NULL), 0);
    assert_int_equal(part.end, 0);
}

/* From a folder that a task writes to: the newest segments, nothing else, and not too much. */
static void test_log_copy(void **state)
{
    (void)state;
    char from[300], to[300];
    struct err err = {0};
    cleanup_buf struct buf out = BUF_INIT;
    snprintf(from, sizeof from, "%s", in_folder("copied"));
    snprintf(to, sizeof to, "%s", in_folder("kept"));
    folder_put("copied/all.000000000000000", "0123456789");
    folder_put("copied/all.000000000000010", "abcde");
    folder_put("copied/stderr.000000000000000", "e");
    folder_put("copied/other", "of the task's own");
    assert_int_equal(symlink("/etc/passwd", in_folder("copied/stdout.000000000000000")), 0);
    folder_put("kept/all.000000000000010", "of an earlier try");
    assert_int_equal(logs_copy(from, to, 100, &err), 0);
    logs_tail(to, LOG_ALL, 100, &out);
    assert_string_equal(buf_cstr(&out), "0123456789abcde");
    buf_clear(&out);
    logs_tail(to, LOG_STDERR, 100, &out);
    assert_string_equal(buf_cstr(&out), "e");
    assert_int_equal(access(in_folder("kept/other"), F_OK), -1);
    assert_int_equal(access(in_folder("kept/stdout.000000000000000"), F_OK), -1);
    folder_put("less/x", "");
    snprintf(to, sizeof to, "%s", in_folder("less"));
    assert_int_equal(logs_copy(from, to, 6, &err), 0);
    assert_int_equal(access(in_folder("less/all.000000000000000"), F_OK), -1);
    buf_clear(&out);
    logs_tail(to, LOG_ALL, 100, &out);
    assert_string_equal(buf_cstr(&out), "abcde");
    assert_int_equal(access(in_folder("less/stderr.000000000000000"), F_OK), 0);
    assert_true(logs_copy("/no/such/folder", to, 6, &err) < 0);
    assert_non_null(strstr(err.text, "/no/such/folder"));
}

static void test_log_time(void **state)
{
    char path[200];
    uint64_t offset = 99;
    struct err err;
    const struct log_mark marks[] = {{1000, 5000, {0, 0, 0, 0}}, {5000, INT64_MAX, {10, 1, 11, 3}}};
    (void)state;
    folder_put("timed/all.000000000000000", "0123456789abcde");
    snprintf(path, sizeof path, "%s", in_folder("timed"));
    assert_int_equal(logs_time(path, LOG_ALL, 5000, &offset, &err), 0);
    assert_int_equal(offset, 0);
    FILE *file = fopen(in_folder("timed/times"), "we");
    assert_non_null(file);
    assert_int_equal(fwrite(marks, sizeof *marks, 2, file), 2);
    fputs("half of one", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(logs_time(path, LOG_ALL, 4999, &offset, &err), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(logs_time(path, LOG_ALL, 5000, &offset, &err), 0);
    assert_int_equal(offset, 11);
    assert_int_equal(logs_time(path, LOG_STDERR, 9000, &offset, &err), 0);
    assert_int_equal(offset, 1);
    folder_put("moved/x", "");
    char moved[200];
    snprintf(moved, sizeof moved, "%s", in_folder("moved"));
    assert_int_equal(logs_copy(path, moved, 100, &err), 0);
    assert_int_equal(logs_time(moved, LOG_ALL, 5000, &offset, &err), 0);
    assert_int_equal(offset, 11);
    assert_int_equal(unlink(in_folder("timed/times")), 0);
    assert_int_equal(symlink(in_folder("moved/times"), in_folder("timed/times")), 0);
    assert_int_equal(logs_time(path, LOG_ALL, 5000, &offset, &err), 0);
    assert_int_equal(offset, 0); /* a link is not followed */
    assert_int_equal(logs_time("/no/such/folder", LOG_ALL, 1, &offset, &err), ERR_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_log_segments), cmocka_unit_test(test_log_tail),
    cmocka_unit_test(test_log_links),    cmocka_unit_test(test_log_copy),
    cmocka_unit_test(test_log_time),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
