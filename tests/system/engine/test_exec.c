/* Programs that are started beside a task's own: terminal, exit status, limits, and the end.
 *
 * Covers: src/engine/local/exec.c, src/init/enter.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/buf.h"
#include "engine/local/task.h"
#include "sys/clock.h"
#include "sys/mailbox.h"
#include "world.h"
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

static struct world world;

static int exec_start(uint64_t attempt, bool has_terminal, const char *command,
                      struct engine_exec **exec, struct err *err)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    const struct engine_exec_request request = {
        .argv = argv, .has_terminal = has_terminal, .rows = 24, .columns = 80, .terminal = "vt100"};
    return world.engine->ops->exec(world.engine, (struct attempt_id){attempt}, &request, exec, err);
}

static struct engine_exec *exec_must(uint64_t attempt, bool has_terminal, const char *command)
{
    struct engine_exec *exec = NULL;
    struct err err = {0};
    if (exec_start(attempt, has_terminal, command, &exec, &err) < 0)
        fail_msg("%s", err.text);
    return exec;
}

/* What comes from `fd` is added, until `words` are there; with NULL until its end. */
static void read_until(int fd, struct buf *text, const char *words)
{
    int64_t until = clock_monotonic_ms() + PATIENCE_MS;
    while (!words || !strstr(buf_cstr(text), words)) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        char bytes[4096];
        if (clock_monotonic_ms() > until)
            fail_msg("\"%s\" does not come, only: %s", words ? words : "the end", buf_cstr(text));
        poll(&ready, 1, 100);
        ssize_t length = read(fd, bytes, sizeof bytes);
        if (length > 0)
            buf_add(text, bytes, (size_t)length);
        else if (length == 0 || errno != EAGAIN)
            return;
    }
}

static struct engine_exec_end end_of(struct engine_exec *exec)
{
    struct engine_exec_end end;
    struct pollfd ready = {.fd = exec->end, .events = POLLIN};
    int64_t until = clock_monotonic_ms() + PATIENCE_MS;
    while (!exec->ops->ended(exec, &end)) {
        assert_true(clock_monotonic_ms() < until);
        poll(&ready, 1, 1000);
    }
    return end;
}

/* The whole output of a program without a terminal, which must succeed. */
static char *output_of(uint64_t attempt, const char *command)
{
    struct buf text = BUF_INIT;
    struct engine_exec *exec = exec_must(attempt, false, command);
    read_until(exec->output, &text, NULL);
    assert_int_equal(end_of(exec).code, 0);
    exec->ops->free(exec);
    return buf_steal(&text);
}

static void task_run(uint64_t attempt, const char *command)
{
    world_create(&world, attempt, command);
    assert_non_null(world_wait(&world, ENGINE_STARTED, attempt, 0, PATIENCE_MS));
    world_log_await(&world, attempt, "ready", PATIENCE_MS);
}

static void task_end(uint64_t attempt)
{
    world.engine->ops->kill(world.engine, (struct attempt_id){attempt}, 0, "test", false, NULL);
    assert_non_null(world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS));
}

static void test_status_and_streams(void **state)
{
    (void)state;
    struct buf out = BUF_INIT, complaint = BUF_INIT;
    task_run(1, "echo ready; sleep 1000");
    struct engine_exec *exec = exec_must(1, false, "cat; echo no >&2; exit 7");
    assert_int_equal(write(exec->input, "in\n", 3), 3);
    close(exec->input);
    exec->input = -1;
    read_until(exec->output, &out, NULL);
    read_until(exec->error, &complaint, NULL);
    struct engine_exec_end end = end_of(exec);
    exec->ops->free(exec);
    assert_string_equal(buf_cstr(&out), "in\n");
    assert_string_equal(buf_cstr(&complaint), "no\n");
    assert_int_equal(end.code, 7);
    assert_false(end.is_task_ended);
    buf_release(&out);
    buf_release(&complaint);
    exec = exec_must(1, false, "kill -9 $$");
    assert_int_equal(end_of(exec).code, 128 + 9);
    exec->ops->free(exec);
    task_end(1);
}

/* User, groups, rights, limits, namespaces, environment and folder are those of the task's own
 * command; and no thread of the engine has moved. */
static void test_same_as_command(void **state)
{
    (void)state;
    static const char look[] = "grep -E '^(Uid|Gid|Groups|Cap.*|NoNewPrivs|Seccomp):' "
                               "/proc/self/status; ulimit -a; pwd; grep -v ^0:: /proc/self/cgroup; "
                               "for n in ipc mnt net pid user; do readlink /proc/self/ns/$n; done; "
                               "env | grep -Ev '^(_|OLDPWD|SHLVL|TERM|PWD)=' | sort";
    char command[sizeof look + 64], network[80];
    snprintf(network, sizeof network, "%s", shell_output("readlink /proc/self/ns/net"));
    snprintf(command, sizeof command, "(%s) >/tmp/look; echo ready; sleep 1000", look);
    task_run(2, command);
    char *own = output_of(2, "cat /tmp/look");
    char *other = output_of(2, look);
    assert_non_null(strstr(own, "PAI_TASK_INDEX"));
    assert_non_null(strstr(own, "Seccomp:\t2"));
    assert_int_equal(strstr(own, network) == NULL, world.config.has_private_network);
    assert_string_equal(shell_output("readlink /proc/%d/task/*/ns/net | sort -u", (int)getpid()),
                        network);
    for (struct text a = text_of(own), b = text_of(other); a.at || b.at;) {
        struct text line = text_cut(&a, '\n'), same = text_cut(&b, '\n');
        if (!text_equal(line, same))
            fail_msg("'%.*s' is not '%.*s'", TEXT_ARG(same), TEXT_ARG(line));
    }
    free(own);
    free(other);
    task_end(2);
}

static void test_terminal(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    task_run(3, "echo ready; sleep 1000");
    struct engine_exec *exec = exec_must(3, true,
                                         "tty; stty size; echo $TERM; read line; stty size; "
                                         "trap 'echo caught; exit 3' INT; echo waiting; "
                                         "while :; do sleep 1; done");
    assert_int_equal(exec->input, exec->output);
    assert_int_equal(exec->error, -1);
    read_until(exec->output, &text, "vt100");
    assert_non_null(strstr(buf_cstr(&text), "/dev/pts/"));
    assert_non_null(strstr(buf_cstr(&text), "24 80"));
    exec->ops->resize(exec, 50, 132);
    assert_int_equal(write(exec->input, "\r", 1), 1);
    read_until(exec->output, &text, "waiting");
    assert_non_null(strstr(buf_cstr(&text), "50 132"));
    assert_int_equal(write(exec->input, "\003", 1), 1);
    read_until(exec->output, &text, "caught");
    assert_int_equal(end_of(exec).code, 3);
    exec->ops->free(exec);
    buf_release(&text);
    task_end(3);
}

/* Also what has left its session, ignores the hangup and outlives its parent. */
static void test_leaves_nothing(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    task_run(4, "echo ready; sleep 1000");
    struct engine_exec *exec = exec_must(4, true,
                                         "(trap '' HUP TERM; setsid sleep 4321 & "
                                         "setsid sh -c 'sleep 4321; :' &); echo there; sleep 4321");
    read_until(exec->output, &text, "there");
    exec->ops->free(exec); /* as when its user has gone, or the server */
    /* on a busy machine it does not wait for the end of all */
    const int64_t until = clock_monotonic_ms() + PATIENCE_MS;
    for (bool is_over = false; !is_over;) {
        char *left = output_of(4, "ps | grep -v grep | grep -c 'sleep 4321' || true");
        is_over = strcmp(left, "0\n") == 0;
        free(left);
        assert_true(is_over || clock_monotonic_ms() < until);
    }
    buf_release(&text);
    task_end(4);
}

static void test_end_of_task(void **state)
{
    (void)state;
    task_run(5, "echo ready; while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 4");
    struct engine_exec *shell_of_user = exec_must(5, true, "trap '' HUP TERM INT; cat");
    struct engine_exec *other = exec_must(5, false, "trap '' HUP TERM; sleep 1000");
    /* from outside: the task may end before a program beside it could say how it ended */
    assert_int_equal(shell("touch /proc/$(cat %s/run/tasks/5/init.pid)/root/tmp/go", world.folder),
                     0);
    assert_true(end_of(shell_of_user).is_task_ended);
    assert_true(end_of(other).is_task_ended);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 5, 0, PATIENCE_MS);
    assert_non_null(end);
    assert_int_equal(end->exit.exit_code, 4);
    shell_of_user->ops->free(shell_of_user);
    other->ops->free(other);
    struct engine_exec *none;
    struct err err = {0};
    int code = exec_start(5, true, "true", &none, &err);
    assert_true(code == ERR_CONFLICT || code == ERR_NOT_FOUND);
    assert_int_equal(exec_start(555, true, "true", &none, &err), ERR_NOT_FOUND);
}

/* Memory and processes are the task's own. */
static void test_limits(void **state)
{
    (void)state;
    static const char fill[] = "x=0123456789abcdef; while :; do x=$x$x; done";
    const struct task_options options = {.memory_mib = 64};
    struct err err = {0};
    assert_int_equal(world_create_with(&world, 6, "echo ready; sleep 1000", &options, &err), 0);
    assert_non_null(world_wait(&world, ENGINE_STARTED, 6, 0, PATIENCE_MS));
    world_log_await(&world, 6, "ready", PATIENCE_MS);
    struct engine_exec *exec = exec_must(6, false, fill);
    assert_int_not_equal(end_of(exec).code, 0);
    exec->ops->free(exec);
    char *alive = output_of(6, "echo the task goes on");
    assert_string_equal(alive, "the task goes on\n");
    free(alive);
    exec = exec_must(6, false, "for i in $(seq 5000); do sleep 1000 & done 2>&1; exit 9");
    struct buf text = BUF_INIT;
    read_until(exec->output, &text, "an't fork");
    exec->ops->free(exec);
    buf_release(&text);
    task_end(6);
}

static void test_program_not_found(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    const char *argv[] = {"no-such-program", NULL}, *none[] = {NULL};
    struct engine_exec_request request = {.argv = argv};
    struct engine_exec *exec;
    struct err err = {0};
    task_run(7, "echo ready; sleep 1000");
    assert_int_equal(
        world.engine->ops->exec(world.engine, (struct attempt_id){7}, &request, &exec, &err), 0);
    read_until(exec->error, &text, NULL);
    assert_non_null(strstr(buf_cstr(&text), "cannot run no-such-program"));
    assert_int_equal(end_of(exec).code, 127);
    exec->ops->free(exec);
    buf_clear(&text);
    request.argv = none; /* the shell of the image */
    assert_int_equal(
        world.engine->ops->exec(world.engine, (struct attempt_id){7}, &request, &exec, &err), 0);
    assert_int_equal(write(exec->input, "echo from $0\nexit 5\n", 20), 20);
    read_until(exec->output, &text, "from /bin/sh");
    assert_int_equal(end_of(exec).code, 5);
    exec->ops->free(exec);
    buf_release(&text);
    task_end(7);
}

/* Processes of the task, which have the same user, cannot take its socket to the engine; what it
 * starts is as any other process. */
static void test_nobody_takes_its_socket(void **state)
{
    (void)state;
    task_run(8, "echo ready; sleep 1000");
    char *seen = output_of(8, "readlink /proc/$PPID/fd/3 || echo hidden; "
                              "readlink /proc/$$/fd/0 >/tmp/own && echo shown");
    assert_string_equal(seen, "hidden\nshown\n");
    free(seen);
    task_end(8);
}

static int world_setup(void **state)
{
    (void)state;
    world.config.runtime = getenv("SKEP_TEST_RUNTIME");
    world.config.pids_max = 100;
    world_start(&world);
    return 0;
}

static int world_teardown(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_and_streams), cmocka_unit_test(test_same_as_command),
        cmocka_unit_test(test_terminal),           cmocka_unit_test(test_leaves_nothing),
        cmocka_unit_test(test_end_of_task),        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_program_not_found),  cmocka_unit_test(test_nobody_takes_its_socket),
    };
    if (!world_open(&world))
        return 77;
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
