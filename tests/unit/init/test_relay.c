/* All logs once more on skep-init's own output, where the engine wants them there. */
#include "run.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "init/log_line.h"

static void relay_run(struct world *world, const char *command, struct buf *output)
{
    world_init(world, command);
    write_whole(path_in(world, LAYOUT_RELAY_NAME), "", 0);
    snprintf(world->output, sizeof world->output, "%s/output", world->root);
    world_run(world);
    read_whole(path_in(world, "output"), output);
}

/* What the lines of a kind say, put together. */
static void kind_is(const struct buf *output, enum log_line_kind kind, const char *wanted)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    struct text left = buf_as_text(output);
    struct log_line line;
    while (left.length > 0) {
        assert_true(log_line_read(text_cut(&left, '\n'), &line));
        if (line.kind != kind)
            continue;
        assert_int_equal(line.offset, bytes.length);
        buf_text(&bytes, line.text);
        if (line.has_newline)
            buf_char(&bytes, '\n');
    }
    assert_string_equal(buf_cstr(&bytes), wanted);
}

static void both_streams(void **state)
{
    (void)state;
    struct world w;
    cleanup_buf struct buf output = BUF_INIT;
    relay_run(&w, "echo a; echo b >&2; printf c", &output);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    kind_is(&output, LOG_LINE_STDOUT, "a\nc");
    kind_is(&output, LOG_LINE_STDERR, "b\n");
    log_is(&w, "stdout", "a\nc");
    cleanup_buf struct buf end = BUF_INIT;
    log_line_write_end(false, &end);
    assert_true(output.length > end.length);
    assert_memory_equal(output.at + output.length - end.length, end.at, end.length);
    folder_remove(w.root);
}

/* Without the file nothing is written there: the engine keeps that output as its own. */
static void only_where_it_is_wanted(void **state)
{
    (void)state;
    struct world w;
    cleanup_buf struct buf output = BUF_INIT;
    world_init(&w, "echo a");
    snprintf(w.output, sizeof w.output, "%s/output", w.root);
    world_run(&w);
    read_whole(path_in(&w, "output"), &output);
    assert_int_equal(output.length, 0);
    folder_remove(w.root);
}

/* Nobody reads it: the task goes on, and its segments are whole. */
static void a_reader_that_has_gone(void **state)
{
    (void)state;
    struct world w;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    world_init(&w, "echo a; echo b");
    write_whole(path_in(&w, LAYOUT_RELAY_NAME), "", 0);
    snprintf(w.output, sizeof w.output, "/proc/self/fd/%d", ends[1]);
    close(ends[0]);
    world_run(&w);
    close(ends[1]);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "a\nb\n");
    folder_remove(w.root);
}

/* What the relay tells of offsets is not true of segments that lack bytes: nobody may fetch there.
 */
static void segments_that_lack_bytes(void **state)
{
    (void)state;
    struct world w;
    int ends[2];
    char bytes[4096];
    struct rlimit limit;
    cleanup_buf struct buf output = BUF_INIT;
    assert_int_equal(pipe(ends), 0);
    world_init(&w, "head -c 100000 /dev/zero; echo; echo ready; read line <go");
    assert_int_equal(mkfifo(path_in(&w, "go"), 0600), 0);
    write_whole(path_in(&w, LAYOUT_RELAY_NAME), "", 0);
    snprintf(w.output, sizeof w.output, "/proc/self/fd/%d", ends[1]);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = {50000, limit.rlim_max}; /* as a disk that is full behind it */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pid_t pid = world_start(&w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_DFL);
    close(ends[1]);
    while (text_find(buf_as_text(&output), TEXT("ready")) == SIZE_MAX) {
        ssize_t got = read(ends[0], bytes, sizeof bytes);
        assert_true(got > 0);
        buf_add(&output, bytes, (size_t)got);
    }
    assert_int_not_equal(access(path_in(&w, "run/" LAYOUT_TAKEN_NAME), F_OK), 0);
    write_whole(path_in(&w, "go"), "\n", 1);
    world_wait(&w, pid);
    close(ends[0]);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    folder_remove(w.root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(both_streams),
    cmocka_unit_test(only_where_it_is_wanted),
    cmocka_unit_test(a_reader_that_has_gone),
    cmocka_unit_test(segments_that_lack_bytes),
};

UNIT_FILE(tests, run_setup, NULL);
