/* process.h on real children. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/process.h"
/* cmocka wants these first */
#include "base/buf.h"

enum { LIMIT_MS = 120000 }; /* what comes at once on a quiet machine comes within this on any */

static int shell_run(const char *script, uint32_t timeout_ms, struct buf *out,
                     struct buf *complaint, int *code, struct err *err)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return process_run(&(struct process){.argv = argv, .in = -1, .out = -1, .err = -1}, timeout_ms,
                       out, complaint, code, err);
}

static void test_output_and_code(void **state)
{
    (void)state;
    struct buf out = BUF_INIT, complaint = BUF_INIT;
    struct err err = {0};
    int code = -1;
    assert_int_equal(shell_run("echo yes; echo no >&2; exit 7", 0, &out, &complaint, &code, &err),
                     0);
    assert_int_equal(code, 7);
    assert_string_equal(buf_cstr(&out), "yes\n");
    assert_string_equal(buf_cstr(&complaint), "no\n");
    buf_release(&out);
    buf_release(&complaint);
}

/* What a process has started is killed with it: both hold the pipe. */
static void test_group_stopped(void **state)
{
    (void)state;
    int ends[2], stop[2], code = -1;
    char script[80];
    struct buf out = BUF_INIT;
    struct err err = {0};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(stop), 0);
    snprintf(script, sizeof script, "sleep 1000 & echo begun >&%d; wait", stop[1]);
    const char *argv[] = {"sh", "-c", script, NULL};
    const struct process process = {
        .argv = argv, .in = -1, .is_bound = true, .is_group = true, .stop = stop[0]};
    assert_int_equal(process_run(&process, 0, &out, NULL, &code, &err), ERR_UNAVAILABLE);
    close(ends[1]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&end, 1, LIMIT_MS), 1);
    close(ends[0]);
    close(stop[0]);
    close(stop[1]);
    buf_release(&out);
}

static void test_stopped(void **state)
{
    (void)state;
    static const char *const argv[] = {"sleep", "1000", NULL};
    int stop[2], code = -1;
    struct buf out = BUF_INIT;
    struct err err = {0};
    assert_int_equal(pipe(stop), 0);
    assert_int_equal(write(stop[1], "x", 1), 1);
    assert_int_equal(process_run(&(struct process){.argv = argv, .in = -1, .stop = stop[0]}, 0,
                                 &out, NULL, &code, &err),
                     ERR_UNAVAILABLE);
    assert_string_equal(err.text, "sleep was stopped");
    close(stop[0]);
    close(stop[1]);
    buf_release(&out);
}

static void on_alarm(int number)
{
    (void)number;
}

/* Signals that come while it is waited do not hide the end of a stream. */
static void test_interrupted(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_alarm}, before;
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct buf out = BUF_INIT;
    int code = -1;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    const int result = shell_run("sleep 0.1; echo yes", LIMIT_MS, &out, NULL, &code, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(result, 0);
    assert_int_equal(code, 0);
    assert_string_equal(buf_cstr(&out), "yes\n");
    buf_release(&out);
}

static void test_killed(void **state)
{
    (void)state;
    int code = 0;
    assert_int_equal(shell_run("kill -9 $$", LIMIT_MS, NULL, NULL, &code, NULL), 0);
    assert_int_equal(code, 137);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct err err = {0};
    int code = 0;
    assert_int_equal(shell_run("head -c 3000000 /dev/zero", 0, &out, NULL, &code, &err), 0);
    assert_int_equal(code, 0);
    assert_int_equal(out.length, PROCESS_TEXT_MAX);
    assert_int_equal(shell_run("exec sleep 1000", 50, &out, NULL, &code, &err), ERR_UNAVAILABLE);
    assert_int_equal(shell_run("exec sleep 1000", 50, NULL, NULL, &code, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "50 ms"));
    buf_release(&out);
}

static void test_missing_program(void **state)
{
    (void)state;
    const char *argv[] = {"no-such-program-here", NULL};
    pid_t pid;
    struct err err = {0};
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1};
    assert_int_equal(process_spawn(&process, &pid, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "no-such-program-here"));
}

static void test_watch(void **state)
{
    (void)state;
    const char *argv[] = {"sleep", "1000", NULL};
    pid_t pid;
    struct err err = {0};
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1};
    assert_int_equal(process_spawn(&process, &pid, &err), 0);
    assert_true(process_start_time(pid) > 0);
    int watch = process_watch(pid, &err);
    assert_true(watch >= 0);
    struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    kill(pid, SIGTERM);
    assert_int_equal(poll(&poll_fd, 1, LIMIT_MS), 1);
    int status = 0;
    assert_int_equal(process_wait(pid, &status, &err), 0);
    assert_int_equal(process_exit_code(status), 128 + SIGTERM);
    close(watch);
    assert_int_equal(process_watch(pid, &err), ERR_NOT_FOUND);
    assert_int_equal(process_start_time(pid), 0);
}

static void test_oom_score(void **state)
{
    (void)state;
    struct err err = {0};
    pid_t pid;
    const char *argv[] = {"sleep", "1000", NULL};
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1};
    assert_int_equal(process_spawn(&process, &pid, &err), 0);
    assert_int_equal(process_oom_score(pid), process_oom_score(0)); /* inherited */
    assert_true(process_oom_score_put(pid, 700));
    assert_int_equal(process_oom_score(pid), 700);
    assert_true(process_oom_score(0) < 700);
    assert_false(process_oom_score_put(pid, 2000));
    kill(pid, SIGKILL);
    int status;
    process_wait(pid, &status, &err);
    assert_int_equal(process_oom_score(pid), 0);
    assert_false(process_oom_score_put(pid, 1));
}

/* A server that is killed: its child says when it runs, then tells us by the end of a pipe, which
 * both hold, that neither lives any more. */
static void test_bound(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        const char *argv[] = {"sh", "-c", "echo runs; exec sleep 1000", NULL};
        struct process process = {
            .argv = argv, .in = -1, .out = ends[1], .err = -1, .is_bound = true};
        pid_t pid;
        process_spawn(&process, &pid, NULL);
        pause();
        _exit(0);
    }
    close(ends[1]);
    char words[16] = "";
    assert_int_equal(read(ends[0], words, 5), 5);
    assert_string_equal(words, "runs\n");
    kill(server, SIGKILL);
    int status;
    assert_int_equal(process_wait(server, &status, NULL), 0);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&end, 1, LIMIT_MS), 1);
    close(ends[0]);
}

/* Streams, code and failures are as those of other children. */
static void test_bound_is_a_child(void **state)
{
    (void)state;
    struct buf out = BUF_INIT, complaint = BUF_INIT;
    struct err err = {0};
    int code = -1;
    const char *argv[] = {"sh", "-c", "cat; echo no >&2; exit 7", NULL};
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1, .is_bound = true};
    assert_int_equal(process_run(&process, 0, &out, &complaint, &code, &err), 0);
    assert_int_equal(code, 7);
    assert_int_equal(out.length, 0);
    assert_string_equal(buf_cstr(&complaint), "no\n");
    const char *missing[] = {"no-such-program", NULL}, *absent[] = {"/no/such/program", NULL};
    const char *folder[] = {"/", NULL};
    pid_t pid;
    process.argv = missing;
    assert_int_equal(process_spawn(&process, &pid, &err), ERR_NOT_FOUND);
    process.argv = absent;
    assert_int_equal(process_spawn(&process, &pid, &err), ERR_NOT_FOUND);
    process.argv = folder;
    assert_int_equal(process_spawn(&process, &pid, &err), ERR_IO);
    process.argv = argv;
    process.out = 1 << 20; /* no such stream: that is the reason, and not what came after */
    assert_int_equal(process_spawn(&process, &pid, &err), ERR_IO);
    assert_non_null(strstr(err.text, strerror(EBADF)));
    buf_release(&out);
    buf_release(&complaint);
}

/* A pid may be another process's by now: names that begin or end alike are not its argument. */
static void test_arguments(void **state)
{
    (void)state;
    const char *argv[] = {"sh", "-c", "echo runs; read line", "", "/run/skep/tasks/17", NULL};
    int in[2], out[2], status;
    char words[5];
    pid_t pid;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    struct process process = {.argv = argv, .in = in[0], .out = out[1], .err = -1};
    assert_int_equal(process_spawn(&process, &pid, NULL), 0);
    assert_int_equal(read(out[0], words, sizeof words), sizeof words);
    assert_true(process_has_argument(pid, "/run/skep/tasks/17"));
    assert_true(process_has_argument(pid, "sh"));
    assert_true(process_has_argument(pid, ""));
    const char *const others[] = {"/run/skep/tasks/1",
                                  "/run/skep/tasks/177",
                                  "/skep/tasks/17",
                                  "/run/skep/tasks/17/",
                                  "17",
                                  "-c echo"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(process_has_argument(pid, others[i]));
    close(in[1]);
    assert_int_equal(process_wait(pid, &status, NULL), 0);
    assert_false(process_has_argument(pid, "sh"));
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_output_and_code), cmocka_unit_test(test_killed),
    cmocka_unit_test(test_limits),          cmocka_unit_test(test_missing_program),
    cmocka_unit_test(test_watch),           cmocka_unit_test(test_oom_score),
    cmocka_unit_test(test_bound),           cmocka_unit_test(test_bound_is_a_child),
    cmocka_unit_test(test_arguments),       cmocka_unit_test(test_stopped),
    cmocka_unit_test(test_group_stopped),   cmocka_unit_test(test_interrupted),
};
UNIT_FILE(tests, NULL, NULL);
