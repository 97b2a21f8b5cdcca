/* The disk of a task: what it may write is limited, its log and reports are whole all the same.
 *
 * Covers: src/engine/local/task_disk.c, src/engine/local/task_log.c, src/engine/local/disk_image.c,
 * src/sys/project.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/task.h"
#include "world.h"
#include <cmocka.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000, DISK_MIB = 32 }; /* a virtual machine beside others */

static struct world world;

static enum disk_way way(void)
{
    return ((const struct local_engine *)world.engine)->disk_way;
}

static const struct seen *end_of(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    return end;
}

static void await_log(uint64_t attempt, const char *line)
{
    world_log_await(&world, attempt, line, PATIENCE_MS);
}

/* Into /skep/run of a task that runs: its first process reads a FIFO there. */
static void go(uint64_t attempt)
{
    assert_int_equal(shell("echo go > /proc/$(cat %s/run/tasks/%llu/init.pid)/root/skep/run/wait",
                           world.folder, (unsigned long long)attempt),
                     0);
}

#define WAIT "mkfifo /skep/run/wait; echo begun; read line < /skep/run/wait; "

static void test_bytes(void **state)
{
    (void)state;
    world_create(&world, 1, WAIT "echo $line; echo more > /tmp/x && echo whole");
    await_log(1, "begun");
    world_create(&world, 2, "dd if=/dev/zero of=/tmp/x bs=64k || exit 7");
    assert_int_equal(end_of(2)->exit.exit_code, 7);
    assert_string_equal(end_of(2)->reason, "TaskDiskFull");
    assert_string_equal(end_of(2)->message, "its disk of 32 MiB is full");
    /* what counts is everything that a task can write to */
    static const char *const places[] = {"/skep/run/x", "/skep/log/deep/x", "/etc/x", "/bin/x"};
    for (uint64_t i = 0; i < sizeof places / sizeof *places; i++) {
        char command[200];
        snprintf(command, sizeof command,
                 "mkdir -p /skep/log/deep; dd if=/dev/zero of=%s bs=64k || exit 8", places[i]);
        world_create(&world, 3 + i, command);
        assert_string_equal(end_of(3 + i)->reason, "TaskDiskFull");
    }
    go(1); /* the one beside them noticed nothing */
    assert_int_equal(end_of(1)->exit.exit_code, 0);
    assert_string_equal(end_of(1)->log, "begun\ngo\nwhole\n");
}

static void test_inodes(void **state)
{
    (void)state;
    world_create(&world, 20, "mkdir /tmp/d; cd /tmp/d; touch $(seq 1 4000) 2>/dev/null || exit 9");
    assert_int_equal(end_of(20)->exit.exit_code, 9);
    assert_string_equal(end_of(20)->reason, "TaskDiskFull");
    assert_non_null(strstr(end_of(20)->message, "files, and has them"));
}

/* It may be full of what the program then does without. */
static void test_full_but_well(void **state)
{
    (void)state;
    world_create(&world, 30, "dd if=/dev/zero of=/tmp/x bs=64k || rm /tmp/x; exit 0");
    assert_int_equal(end_of(30)->exit.exit_code, 0);
    assert_string_equal(end_of(30)->reason, "");
    world_create(&world, 31, "dd if=/dev/zero of=/tmp/x bs=64k || rm /tmp/x; exit 4");
    assert_int_equal(end_of(31)->exit.exit_code, 4);
    assert_string_equal(end_of(31)->reason, "");
}

/* What is asked of a task that runs is answered, and of one that has ended the same. */
static void test_log_and_reason(void **state)
{
    (void)state;
    world_create(&world, 40,
                 "trap 'cat $SKEP_STOP_REASON_FILE; exit 6' TERM; echo two >&2; echo one; "
                 "while :; do sleep 0.1; done");
    await_log(40, "one");
    world.engine->ops->kill(world.engine, (struct attempt_id){40}, 20000, "preempted", false, NULL);
    assert_int_equal(end_of(40)->exit.exit_code, 6);
    assert_true(end_of(40)->exit.is_user_command);
    assert_non_null(strstr(end_of(40)->log, "reason preempted"));
    char text[100] = "", again[100] = "";
    uint64_t offset = 0;
    struct log_part part;
    const struct attempt_id id = {40};
    const struct engine_ops *ops = world.engine->ops;
    ops->log_read(world.engine, id, LOG_STDERR, &offset, text, sizeof text - 1, &part, NULL);
    assert_memory_equal(text, "two\n", 4);
    assert_true(part.is_ended);
    assert_int_equal(ops->forget(world.engine, id, NULL), 0);
    ops->log_read(world.engine, id, LOG_STDERR, &offset, again, sizeof again - 1, &part, NULL);
    assert_string_equal(text, again);
}

/* Whoever follows a log when its task ends is woken. */
static void test_log_end(void **state)
{
    (void)state;
    struct err err = {0};
    char text[4096];
    world_create(&world, 45, WAIT "echo end");
    await_log(45, "begun");
    int watch =
        world.engine->ops->log_watch(world.engine, (struct attempt_id){45}, LOG_STDOUT, &err);
    assert_true(watch >= 0);
    go(45);
    struct log_part part = {0};
    while (!part.is_ended) {
        uint64_t offset = 0;
        struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        assert_true(read(watch, text, sizeof text) > 0);
        assert_true(world.engine->ops->log_read(world.engine, (struct attempt_id){45}, LOG_STDOUT,
                                                &offset, text, sizeof text, &part, &err) >= 0);
    }
    close(watch);
    assert_string_equal(end_of(45)->log, "begun\nend\n");
}

static void test_restart(void **state)
{
    (void)state;
    world_create(&world, 50, WAIT "echo end; dd if=/dev/zero of=/tmp/x bs=64k || exit 7");
    world_create(&world, 51, WAIT "echo end; exit 8");
    await_log(50, "begun");
    await_log(51, "begun");
    const pid_t pid = atoi(shell_output("cat %s/run/tasks/51/init.pid", world.folder));
    world_stop(&world);
    go(51); /* it ends while nobody looks */
    while (kill(pid, 0) == 0)
        sched_yield();
    const size_t from = world_seen_count(&world);
    world_start(&world);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 51, from, PATIENCE_MS);
    assert_non_null(end);
    assert_int_equal(end->exit.exit_code, 8);
    assert_string_equal(end->log, "begun\nend\n");
    await_log(50, "begun");
    go(50);
    assert_int_equal(end_of(50)->exit.exit_code, 7);
    assert_string_equal(end_of(50)->reason, "TaskDiskFull");
    assert_non_null(strstr(end_of(50)->log, "begun\nend\n"));
}

/* Of tasks that are forgotten no file and no loop device is left. */
static void test_nothing_left(void **state)
{
    (void)state;
    const char *folder = world.folder;
    struct attempt_id *attempts;
    size_t count;
    assert_int_equal(world.engine->ops->list(world.engine, &attempts, &count, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        end_of(attempts[i].v);
        assert_int_equal(world.engine->ops->forget(world.engine, attempts[i], NULL), 0);
    }
    for (size_t i = 0; i < count; i++)
        while (world_is_listed(&world, attempts[i].v))
            sched_yield();
    free(attempts);
    assert_string_equal(shell_output("ls %s/data/containers", folder), "");
    assert_string_equal(shell_output("cat /sys/block/loop*/loop/backing_file 2>/dev/null | "
                                     "grep -F %s/data/containers",
                                     folder),
                        "");
    assert_string_equal(shell_output("grep -F %s/data/containers /proc/self/mountinfo", folder),
                        "");
}

/* SKEP_TEST_DISK: project, which the file system of TMPDIR must have; else a file system a task. */
static int setup(void **state)
{
    (void)state;
    const char *wanted = getenv("SKEP_TEST_DISK");
    if (!world_open(&world))
        exit(77);
    world.config.disk_quota = DISK_QUOTA_REQUIRED;
    world.config.disk_mib = DISK_MIB;
    world.config.log_max_mib = DISK_MIB / 2;
    world_start(&world);
    const bool is_project = wanted && strcmp(wanted, "project") == 0;
    print_message("disks of tasks by %s\n", way() == DISK_PROJECT ? "projects" : "images");
    assert_int_equal(is_project && way() != DISK_PROJECT, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),         cmocka_unit_test(test_inodes),
        cmocka_unit_test(test_full_but_well), cmocka_unit_test(test_log_and_reason),
        cmocka_unit_test(test_log_end),       cmocka_unit_test(test_restart),
        cmocka_unit_test(test_nothing_left),
    };
    return world_tests_run(&world, argc, argv, tests, sizeof tests / sizeof *tests, setup,
                           teardown);
}
