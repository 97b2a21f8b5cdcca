/* What a task may take of its machine under the local engine: processes, memory, log, and nothing
 * that outlives it. Part of the program engine-life.
 *
 * Covers: src/engine/local/finish.c, src/engine/local/monitor.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/task.h"
#include "life.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static off_t size_of(const char *name)
{
    char path[300];
    struct stat stat = {0};
    snprintf(path, sizeof path, "%s/%s", world.folder, name);
    lstat(path, &stat);
    return stat.st_size;
}

/* Until as many processes are in a task's group. */
static void await_pids(uint64_t attempt, uint64_t count)
{
    struct engine_stats stats = {0};
    struct err err = {0};
    const int64_t due_us = now_us() + PATIENCE_MS * 1000ll;
    while (stats.pids < count) {
        assert_true(now_us() < due_us);
        assert_int_equal(
            world.engine->ops->stats(world.engine, (struct attempt_id){attempt}, &stats, &err), 0);
        sched_yield();
    }
}

/* The file in which the kernel has what a task may use of the processors. */
static void cpu_limit_path(const char *id, char path[CGROUP_PATH_MAX + 32])
{
    const struct local_engine *local = (struct local_engine *)world.engine;
    char directory[CGROUP_PATH_MAX], group[CGROUP_PATH_MAX];
    task_group(local, id, group);
    assert_true(cgroup_path(&local->cgroups, "cpu", group, directory));
    snprintf(path, CGROUP_PATH_MAX + 32, "%s/%s", directory,
             local->cgroups.kind == CGROUP_V2 ? "cpu.max" : "cpu.cfs_quota_us");
}

static const char *cpu_limit(const char *id)
{
    char path[CGROUP_PATH_MAX + 32];
    cpu_limit_path(id, path);
    return shell_output("cat %s", path);
}

/* A descriptor that tells whether this limit has been written since. */
static int cpu_limit_watch(const char *id)
{
    char path[CGROUP_PATH_MAX + 32];
    cpu_limit_path(id, path);
    const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(watch >= 0 && inotify_add_watch(watch, path, IN_MODIFY) >= 0);
    return watch;
}

/* Thousands of processes that may use one processor together take long to end: the engine lifts
 * that limit first. */
static void assert_limit_was_lifted(int watch)
{
    struct inotify_event event = {0};
    assert_int_equal(read(watch, &event, sizeof event), sizeof event);
    assert_true(event.mask & IN_MODIFY);
    close(watch);
}

/* Processes that fork as fast as they can and share one processor's time: the task ends soon, and
 * the task beside it goes on meanwhile, within its own limits. The limit of processes is the
 * engine's. There is no grace: where skep-init gets its turn, it would end the task with it. */
static void test_fork_bomb(void **state)
{
    (void)state;
    const uint64_t limit = world.config.pids_max;
    char source[300], cpu_before[100];
    snprintf(source, sizeof source, "%s/ticks", world.folder);
    assert_int_equal(mkdir(source, 0777), 0);
    struct engine_mount mount = {.source = source, .target = "/mnt"};
    struct task_options beside = {.mounts = &mount, .mount_count = 1};
    struct task_options bomb = {.memory_mib = limit};
    struct err err = {0};
    assert_int_equal(
        world_create_with(&world, 56, "echo on; while :; do echo >> /mnt/n; done", &beside, &err),
        0);
    await_log(56, "on");
    snprintf(cpu_before, sizeof cpu_before, "%s", cpu_limit("56"));
    assert_int_equal(strncmp(cpu_before, "100000", 6), 0);
    /* the first shell forks once: one that cannot fork would end by itself, before it is killed */
    assert_int_equal(
        world_create_with(&world, 57,
                          "trap '' TERM; bomb() { while :; do bomb & done; }; bomb 2>/dev/null & "
                          "while :; do :; done",
                          &bomb, &err),
        0);
    assert_non_null(world_wait(&world, ENGINE_STARTED, 57, 0, PATIENCE_MS));
    await_pids(57, limit * 9 / 10);
    const off_t before = size_of("ticks/n");
    const int watch = cpu_limit_watch("57");
    const int64_t begin_us = now_us();
    kill_task(57, 0, "stopped");
    assert_int_equal(end_of(57)->exit.exit_code, 137);
    const double took_s = (double)(end_of(57)->at_us - begin_us) / 1e6;
    const off_t ticks = size_of("ticks/n") - before;
    print_message("%llu processes ended %.1f s after the request; beside them "
                  "%.0f lines a second\n",
                  (unsigned long long)limit, took_s, (double)ticks / took_s);
    assert_true(ticks > 0);
    assert_limit_was_lifted(watch);
    assert_string_equal(cpu_limit("56"), cpu_before);
    assert_nothing_left(57);
    kill_task(56, 0, "stopped");
    end_of(56);
}

/* The same, left behind by a command that has ended by itself. Its shell opens the pipe both ways:
 * to wait for who writes is broken off in some shells when a child ends, as one does that cannot
 * fork. */
static void test_fork_bomb_left_behind(void **state)
{
    (void)state;
    struct task_options bomb = {.memory_mib = world.config.pids_max};
    struct err err = {0};
    assert_int_equal(world_create_with(&world, 153,
                                       "mkfifo /skep/run/wait; exec 3<>/skep/run/wait; "
                                       "bomb() { while :; do bomb & done; }; "
                                       "bomb 2>/dev/null & read line <&3; exit 3",
                                       &bomb, &err),
                     0);
    assert_non_null(world_wait(&world, ENGINE_STARTED, 153, 0, PATIENCE_MS));
    await_pids(153, world.config.pids_max * 9 / 10);
    const int64_t begin_us = now_us();
    shell("echo go > %s/data/containers/153/run/wait", world.folder);
    assert_int_equal(end_of(153)->exit.exit_code, 3);
    print_message("%u processes ended %.1f s after the command\n", world.config.pids_max,
                  (double)(end_of(153)->at_us - begin_us) / 1e6);
    assert_nothing_left(153);
}

/* What a task was refused stands in the report of its failure, and only there. */
static void test_process_limit(void **state)
{
    (void)state;
    static const char crowd[] =
        "i=0; while [ $i -lt %u ]; do sleep 1000 & i=$((i + 1)); done; exit 5";
    char command[200];
    struct err err = {0};
    struct task_options options = {.memory_mib = 512};
    snprintf(command, sizeof command, crowd, world.config.pids_max + 10);
    assert_int_equal(world_create_with(&world, 154, command, &options, &err), 0);
    snprintf(command, sizeof command, crowd, 10u);
    assert_int_equal(world_create_with(&world, 155, command, &options, &err), 0);
    assert_string_equal(end_of(154)->reason, "ProcessLimit");
    assert_int_not_equal(end_of(154)->exit.exit_code, 0);
    assert_string_equal(end_of(155)->reason, "");
    assert_int_equal(end_of(155)->exit.exit_code, 5);
}

/* On v2 page cache goes shortly before the limit is met. */
static void test_memory_high(void **state)
{
    (void)state;
    const struct local_engine *local = (struct local_engine *)world.engine;
    char path[CGROUP_PATH_MAX], group[CGROUP_PATH_MAX];
    struct err err = {0};
    const struct task_options options = {.memory_mib = 64};
    if (local->cgroups.kind != CGROUP_V2)
        skip();
    assert_int_equal(world_create_with(&world, 158, "echo begun; sleep 1000", &options, &err), 0);
    await_log(158, "begun");
    task_group(local, "158", group);
    assert_true(cgroup_path(&local->cgroups, "memory", group, path));
    assert_string_equal(shell_output("cat %s/memory.high", path), "66060288");
    assert_string_equal(shell_output("cat %s/memory.max", path), "67108864");
    kill_task(158, 0, "stopped");
    end_of(158);
}

/* Everything below the log folder counts; what is given to nobody yet, too. */
static void test_log_limit(void **state)
{
    (void)state;
    world_create(&world, 156,
                 "mkdir -p /skep/log/a/b; echo begun; "
                 "while :; do head -c 1000000 /dev/zero >> /skep/log/a/b/c; done");
    world_create(&world, 157,
                 "mkfifo /skep/run/wait; echo beside; read line < /skep/run/wait; exit 4");
    await_log(156, "begun");
    assert_string_equal(end_of(156)->reason, "TaskDiskFull");
    assert_non_null(strstr(end_of(156)->message, "its log is full"));
    assert_int_equal(end_of(156)->exit.exit_code, 137);
    kill_task(157, 0, "stopped");
    assert_string_equal(end_of(157)->reason, "");
    assert_nothing_left(156);
}

/* Double fork, setsid, and a process that ignores every signal. */
static void test_escaped_processes(void **state)
{
    (void)state;
    const int number = 900000000 + getpid(); /* others may run this test, too */
    char command[200];
    snprintf(command, sizeof command,
             "mkfifo /tmp/up; (trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; echo up "
             ">/tmp/up; sleep %d' &) ; read line </tmp/up; echo gone",
             number);
    world_create(&world, 42, command);
    assert_int_equal(end_of(42)->exit.exit_code, 0);
    assert_string_equal(end_of(42)->log, "gone\n");
    assert_string_equal(shell_output("pgrep -f '[s]leep %d'", number), "");
    assert_nothing_left(42);
}

static void test_shared_memory(void **state)
{
    (void)state;
    char command[200], left[40], log[60];
    snprintf(left, sizeof left, "left-by-%d",
             getpid()); /* other programs work on the machine, too */
    snprintf(log, sizeof log, "%s\n", left);
    snprintf(command, sizeof command, "echo x > /dev/shm/%s; ls /dev/shm; ls /dev/mqueue", left);
    world_create(&world, 43, command);
    assert_string_equal(end_of(43)->log, log);
    assert_string_equal(shell_output("ls /dev/shm | grep -xF %s", left), "");
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct err err = {0};
    struct task_options options = {.memory_mib = 32};
    assert_int_equal(
        world_create_with(&world, 50, "x=a; while :; do x=$x$x$x$x; done", &options, &err), 0);
    const struct seen *end = end_of(50);
    assert_int_equal(end->exit.exit_code, 137);
    assert_true(end->exit.is_oom_killed);
    assert_string_equal(end->reason, "OOMKilled");
    world_create(&world, 51, "exit 137"); /* the same code, for no such reason */
    assert_false(end_of(51)->exit.is_oom_killed);
}

static void test_stats(void **state)
{
    (void)state;
    struct engine_stats first, second;
    world_create(&world, 52, "echo ready; while :; do :; done");
    await_log(52, "ready");
    assert_int_equal(world.engine->ops->stats(world.engine, (struct attempt_id){52}, &first, NULL),
                     0);
    assert_true(first.pids >= 2);
    assert_true(first.memory_bytes > 0);
    const int64_t due = now_us() + PATIENCE_MS * 1000ll;
    do
        world.engine->ops->stats(world.engine, (struct attempt_id){52}, &second, NULL);
    while (second.cpu_ns <= first.cpu_ns && now_us() < due);
    assert_true(second.cpu_ns > first.cpu_ns);
    kill_task(52, 0, "stopped");
    end_of(52);
    assert_int_equal(world.engine->ops->stats(world.engine, (struct attempt_id){52}, &second, NULL),
                     ERR_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fork_bomb),     cmocka_unit_test(test_fork_bomb_left_behind),
    cmocka_unit_test(test_process_limit), cmocka_unit_test(test_memory_high),
    cmocka_unit_test(test_log_limit),     cmocka_unit_test(test_escaped_processes),
    cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_out_of_memory),
    cmocka_unit_test(test_stats),
};

const struct life_tests limits_tests = {tests, sizeof tests / sizeof *tests};
