/* The life of containers under the local engine: start, end, kill, logs, limits, restart.
 *
 * Covers: src/engine/local/adopt.c, src/engine/local/directories.c, src/engine/local/finish.c,
 * src/engine/local/local.c, src/engine/local/monitor.c, src/engine/local/runtime.c,
 * src/engine/local/spawn.c, src/engine/local/start.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/task.h"
#include "waits.h"
#include "world.h"
#include <cmocka.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static struct world world;

static int kill_task(uint64_t attempt, uint32_t grace_ms, const char *reason)
{
    return world.engine->ops->kill(world.engine, (struct attempt_id){attempt}, grace_ms, reason,
                                   false, NULL);
}

enum { PATIENCE_MS = 60000 }; /* an emulated machine beside others */

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

/* Nothing of a task is left: processes, control groups, mounts, runtime state. */
static void assert_nothing_left(uint64_t attempt)
{
    const struct local_engine *local = (struct local_engine *)world.engine;
    unsigned long long id = attempt;
    assert_string_equal(
        shell_output("find /sys/fs/cgroup -type d -path '*%s/%llu' | head -3", local->group, id),
        "");
    assert_string_equal(shell_output("grep -F '%s/data/containers/%llu/' /proc/*/mountinfo "
                                     "2>/dev/null | head -1",
                                     world.folder, id),
                        "");
    assert_string_equal(shell_output("ls -d %s/%llu 2>/dev/null", local->runtime.root, id), "");
}

static void test_hello(void **state)
{
    (void)state;
    world_create(&world, 1, "echo hello from $PAI_TASK_INDEX; exit 3");
    const struct seen *end = end_of(1);
    assert_int_equal(end->exit.exit_code, 3);
    assert_true(end->exit.is_user_command);
    assert_false(end->exit.is_oom_killed);
    assert_string_equal(end->log, "hello from 0\n");
    assert_non_null(world_wait(&world, ENGINE_PREPARING, 1, 0, 0));
    assert_non_null(world_wait(&world, ENGINE_STARTED, 1, 0, 0));
    assert_nothing_left(1);
}

static void test_environment_of_container(void **state)
{
    (void)state;
    world_create(&world, 2,
                 "id -u; cat /proc/1/comm; df -k /dev/shm | tail -1 | awk '{print $2}'; ls /skep; "
                 "touch /skep/x 2>/dev/null || echo ro; grep CapEff /proc/self/status; "
                 "grep '^Seccomp:' /proc/self/status; ls /dev | tr '\\n' ' '; echo; "
                 "(head -c 1 /proc/kcore 2>/dev/null || true) | wc -c; "
                 "mount -t tmpfs x /tmp 2>/dev/null || echo denied; "
                 "unshare -m true 2>/dev/null || echo denied; "
                 "echo 1 2>/dev/null > /proc/sys/kernel/panic || echo denied");
    const struct seen *end = end_of(2);
    if (end->exit.exit_code != 0)
        fprintf(stderr, "%s\n", end->log);
    assert_int_equal(end->exit.exit_code, 0);
    assert_non_null(strstr(end->log, "0\ninit\n16384\ninit\njob\nlog\nprivate\nrun\ntask\nro\n"));
    assert_non_null(strstr(end->log, "CapEff:\t00000000a00405fb")); /* Docker's but two */
    assert_non_null(strstr(end->log, "Seccomp:\t2"));
    assert_non_null(strstr(end->log, " full mqueue null "));
    assert_non_null(strstr(end->log, "\n0\ndenied\ndenied\n"));
    assert_nothing_left(2);
}

static void test_missing_command(void **state)
{
    (void)state;
    world_create(&world, 3, "no-such-program");
    assert_int_equal(end_of(3)->exit.exit_code, 127);
    assert_true(end_of(3)->exit.is_user_command);
}

static void test_image_without_shell(void **state)
{
    (void)state;
    struct err err = {0};
    char image[300];
    snprintf(image, sizeof image, "dir:%s/empty", world.image_root);
    assert_int_equal(shell("mkdir -p %s/empty/bin", world.image_root), 0);
    struct task_options options = {.image = image};
    assert_int_equal(world_create_with(&world, 4, "true", &options, &err), 0);
    assert_false(end_of(4)->exit.is_user_command);
    assert_int_not_equal(end_of(4)->exit.exit_code, 0);
}

static void test_bad_images(void **state)
{
    (void)state;
    struct err err = {0};
    static const struct {
        const char *image, *reason;
    } cases[] = {
        {"dir:/", "InvalidImageName"},
        {"dir:/etc", "InvalidImageName"},
        {"oci:/nowhere:x", "ImageNotFound"},
        {"Upper/case", "InvalidImageName"},
        {"docker-archive:relative", "InvalidImageName"},
    };
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task_options options = {.image = cases[i].image};
        assert_int_equal(world_create_with(&world, 10 + i, "true", &options, &err), 0);
        assert_string_equal(end_of(10 + i)->reason, cases[i].reason);
        assert_false(end_of(10 + i)->exit.is_user_command);
    }
}

static void test_refused_containers(void **state)
{
    (void)state;
    struct err err = {0};
    struct engine_mount mount = {.source = "/tmp", .target = "/skep/log"};
    struct task_options options = {.mounts = &mount, .mount_count = 1};
    assert_int_equal(world_create_with(&world, 20, "true", &options, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "/skep"));
    mount = (struct engine_mount){.source = "/no/such/folder", .target = "/mnt"};
    assert_int_equal(world_create_with(&world, 21, "true", &options, &err), 0);
    assert_string_equal(end_of(21)->reason, "CreationError");
    assert_non_null(strstr(end_of(21)->message, "/no/such/folder"));
    uint16_t gpu = 7;
    options = (struct task_options){.gpus = &gpu, .gpu_count = 1};
    assert_int_equal(world_create_with(&world, 22, "true", &options, &err), 0);
    assert_string_equal(end_of(22)->reason, "CreationError");
    assert_int_equal(
        world.engine->ops->kill(world.engine, (struct attempt_id){999}, 0, "x", false, &err),
        ERR_NOT_FOUND);
}

static void test_mounts(void **state)
{
    (void)state;
    struct err err = {0};
    char source[300];
    snprintf(source, sizeof source, "%s/shared", world.folder);
    assert_int_equal(shell("mkdir -p %s; echo given > %s/in", source, source), 0);
    struct engine_mount mounts[] = {{.source = source, .target = "/mnt/rw"},
                                    {.source = source, .target = "/mnt/ro", .is_read_only = true}};
    struct task_options options = {.mounts = mounts, .mount_count = 2};
    assert_int_equal(world_create_with(&world, 25,
                                       "cat /mnt/ro/in; echo out > /mnt/rw/out; "
                                       "touch /mnt/ro/x 2>/dev/null || echo refused",
                                       &options, &err),
                     0);
    assert_int_equal(end_of(25)->exit.exit_code, 0);
    assert_string_equal(end_of(25)->log, "given\nrefused\n");
    assert_string_equal(shell_output("cat %s/out", source), "out");
}

static void test_create_twice(void **state)
{
    (void)state;
    size_t from = world_seen_count(&world);
    world_create(&world, 30, "echo once >> /tmp/x; cat /tmp/x");
    world_create(&world, 30, "echo twice");
    assert_string_equal(end_of(30)->log, "once\n");
    world_create(&world, 30, "echo again"); /* ended, not forgotten: still the same one */
    world_create(&world, 31, "true");
    end_of(31);
    size_t ends = 0;
    for (size_t i = from; i < world_seen_count(&world); i++)
        ends += world.seen.items[i].kind == ENGINE_EXITED && world.seen.items[i].attempt == 30;
    assert_int_equal(ends, 1);
}

static void test_kill_gracefully(void **state)
{
    (void)state;
    world_create(&world, 40,
                 "trap 'cat $SKEP_STOP_REASON_FILE; exit 9' TERM; echo ready; "
                 "while :; do sleep 0.1; done");
    await_log(40, "ready");
    assert_int_equal(kill_task(40, 20000, "preempted"), 0);
    const struct seen *end = end_of(40);
    assert_int_equal(end->exit.exit_code, 9);
    assert_non_null(strstr(end->log, "reason preempted"));
    assert_nothing_left(40);
}

static void test_kill_hard(void **state)
{
    (void)state;
    world_create(&world, 41, "trap '' TERM; echo ready; while :; do sleep 1; done");
    await_log(41, "ready");
    int64_t begun = now_us();
    kill_task(41, 300, "stopped");
    const struct seen *end = end_of(41);
    assert_int_equal(end->exit.exit_code, 137);
    assert_int_equal(end->exit.signal, SIGKILL);
    assert_true(end->at_us - begun >= 140000);
    assert_true(end->at_us - begun < 5000000);
    assert_nothing_left(41);
}

/* Double fork, setsid, and a process that ignores every signal. */
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

/* Processes that fork as fast as they can and share one processor's time: the task ends soon after
 * its grace, and the task beside it goes on meanwhile. The limit of processes is the engine's. */
static void test_fork_bomb(void **state)
{
    (void)state;
    const uint64_t limit = world.config.pids_max;
    char source[300];
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
    const int64_t begin_us = now_us();
    kill_task(57, 500, "stopped");
    assert_int_equal(end_of(57)->exit.exit_code, 137);
    const double took_s = (double)(end_of(57)->at_us - begin_us) / 1e6;
    const off_t ticks = size_of("ticks/n") - before;
    print_message("%llu processes ended %.1f s after the request, 0.5 s of them grace; beside them "
                  "%.0f lines a second\n",
                  (unsigned long long)limit, took_s, (double)ticks / took_s);
    assert_true(ticks > 0);
    assert_nothing_left(57);
    kill_task(56, 0, "stopped");
    end_of(56);
}

/* The same, left behind by a command that has ended by itself. */
static void test_fork_bomb_left_behind(void **state)
{
    (void)state;
    struct task_options bomb = {.memory_mib = world.config.pids_max};
    struct err err = {0};
    assert_int_equal(
        world_create_with(&world, 153,
                          "mkfifo /skep/run/wait; bomb() { while :; do bomb & done; }; "
                          "bomb 2>/dev/null & read line < /skep/run/wait; exit 3",
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
        "i=0; while [ $i -lt %u ]; do sleep 60 & i=$((i + 1)); done; exit 5";
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
    world_create(&world, 157, "echo beside; read line < /skep/run/wait; exit 4");
    await_log(156, "begun");
    assert_string_equal(end_of(156)->reason, "TaskDiskFull");
    assert_non_null(strstr(end_of(156)->message, "its log is full"));
    assert_int_equal(end_of(156)->exit.exit_code, 137);
    kill_task(157, 0, "stopped");
    assert_string_equal(end_of(157)->reason, "");
    assert_nothing_left(156);
}

static void test_escaped_processes(void **state)
{
    (void)state;
    world_create(&world, 42,
                 "(trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep 98765' &) ; "
                 "sleep 0.1; echo gone");
    assert_int_equal(end_of(42)->exit.exit_code, 0);
    assert_string_equal(shell_output("pgrep -f '[s]leep 98765'"), "");
    assert_nothing_left(42);
}

static void test_shared_memory(void **state)
{
    (void)state;
    const char *before = shell_output("ipcs -m -q -s | grep -c '^0x'; ls /dev/shm | wc -l");
    char copy[100];
    snprintf(copy, sizeof copy, "%s", before);
    world_create(&world, 43, "echo x > /dev/shm/left; ls /dev/shm; ls /dev/mqueue");
    assert_string_equal(end_of(43)->log, "left\n");
    assert_string_equal(shell_output("ipcs -m -q -s | grep -c '^0x'; ls /dev/shm | wc -l"), copy);
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
    int64_t due = now_us() + 5000000;
    do
        world.engine->ops->stats(world.engine, (struct attempt_id){52}, &second, NULL);
    while (second.cpu_ns <= first.cpu_ns && now_us() < due);
    assert_true(second.cpu_ns > first.cpu_ns);
    kill_task(52, 0, "stopped");
    end_of(52);
    assert_int_equal(world.engine->ops->stats(world.engine, (struct attempt_id){52}, &second, NULL),
                     ERR_NOT_FOUND);
}

static void test_log_offsets(void **state)
{
    (void)state;
    struct err err = {0};
    struct log_part part;
    char text[64] = "";
    uint64_t offset = 4;
    world_create(&world, 53, "printf 'abcdefgh'; printf xyz >&2");
    end_of(53);
    struct attempt_id id = {53};
    ssize_t got =
        world.engine->ops->log_read(world.engine, id, LOG_STDOUT, &offset, text, 3, &part, &err);
    assert_int_equal(got, 3);
    assert_memory_equal(text, "efg", 3);
    assert_int_equal(part.begin, 0);
    assert_int_equal(part.end, 8);
    assert_true(part.is_ended);
    offset = 8;
    assert_int_equal(world.engine->ops->log_read(world.engine, id, LOG_STDOUT, &offset, text,
                                                 sizeof text, &part, &err),
                     0);
    offset = 0;
    assert_int_equal(world.engine->ops->log_read(world.engine, id, LOG_STDERR, &offset, text,
                                                 sizeof text, &part, &err),
                     3);
    assert_int_equal(world.engine->ops->log_read(world.engine, (struct attempt_id){987654}, LOG_ALL,
                                                 &offset, text, sizeof text, &part, &err),
                     ERR_NOT_FOUND);
}

/* What a task writes past its own output is in its log all the same, and nowhere else: not in the
 * engine's files, which all tasks share. */
static void test_output_of_first_process(void **state)
{
    (void)state;
    world_create(&world, 58,
                 "echo one > /proc/1/fd/1; echo two > /proc/1/fd/2; "
                 "dd if=/dev/zero bs=1024 count=4096 2>/dev/null | tr '\\0' x > /proc/1/fd/1; "
                 "echo; echo done; sleep 1000");
    await_log(58, "one");
    char path[300];
    snprintf(path, sizeof path, "%s/data/logs/58/stdout.000000000000000", world.folder);
    const int64_t due_us = now_us() + PATIENCE_MS * 1000ll;
    while (shell("tail -n 1 %s | grep -q done", path) != 0)
        assert_true(now_us() < due_us);
    assert_string_equal(shell_output("head -n 1 %s", path), "one");
    assert_string_equal(shell_output("cat %s/data/logs/58/stderr.*", world.folder), "two");
    assert_string_equal(shell_output("find %s/run %s/data/containers/58 -type f -size +64k",
                                     world.folder, world.folder),
                        "");
    kill_task(58, 0, "stopped");
    end_of(58);
}

/* The files below `folders`, all relative to the world's, that hold what is in the file `secret`;
 * a search must not find itself. */
static void assert_unknown_in(const char *folders, const char *but)
{
    assert_string_equal(
        shell_output("cd %s; find %s -type f -exec grep -lF -f secret {} + | grep -v '%s'",
                     world.folder, folders, but),
        "");
}

/* A secret in a command is in memory only while its task runs, and nowhere afterwards. */
static void test_secret(void **state)
{
    (void)state;
    static const char secret[] = "correct-horse-battery-staple";
    char command[300];
    snprintf(command, sizeof command, "test -n %s || exit 3; echo ready; sleep 1000", secret);
    assert_int_equal(shell("echo %s > %s/secret", secret, world.folder), 0);
    world_create(&world, 59, command);
    await_log(59, "ready");
    for (int round = 0; round < 2; round++) {
        assert_unknown_in("data", "^$");
        assert_unknown_in("run", "/skep/task$");
        assert_string_equal(shell_output("cd %s; cat /proc/[0-9]*/cmdline 2>/dev/null | "
                                         "grep -caF -f secret",
                                         world.folder),
                            "0");
        world_stop(&world); /* … and so it stays over a restart of the engine */
        world_start(&world);
    }
    kill_task(59, 0, "stopped");
    assert_int_equal(end_of(59)->exit.exit_code, 137);
    assert_unknown_in("data run", "^$");
}

/* A task cannot make us read or write a file of the machine for it. */
static void test_links_in_logs(void **state)
{
    (void)state;
    world_create(&world, 54,
                 "rm /skep/log/*; ln -s /etc/shadow /skep/log/all.000000000000000; "
                 "ln -s /etc/shadow /skep/run/exit; mkfifo /skep/log/stdout.000000000000000; "
                 "echo ready; sleep 100");
    char path[300];
    assert_non_null(world_wait(&world, ENGINE_STARTED, 54, 0, PATIENCE_MS));
    snprintf(path, sizeof path, "%s/data/containers/54/run/exit", world.folder);
    assert_true(file_await(path, PATIENCE_MS));
    kill_task(54, 0, "stopped");
    assert_string_equal(end_of(54)->log, "");
    assert_int_equal(end_of(54)->exit.exit_code, 137);
}

/* Nor open a device: a node without a driver, which would fail to open, or a FIFO. */
static void test_devices_in_folders(void **state)
{
    (void)state;
    world_create(&world, 152, "mkfifo /skep/run/.reason~; echo ready; sleep 1000");
    await_log(152, "ready");
    /* it may make none itself, but one may stand in what an operator gives it to write to */
    assert_int_equal(shell("mknod %s/data/logs/152/stdout.000000000000009 c 240 77 && "
                           "mknod %s/data/containers/152/run/exit c 240 77",
                           world.folder, world.folder),
                     0);
    kill_task(152, 10000, "stopped");
    assert_int_equal(end_of(152)->exit.exit_code, 143);
    assert_string_equal(end_of(152)->log, "ready\n");
}

static void test_forget(void **state)
{
    (void)state;
    struct err err = {0};
    world_create(&world, 55, "echo kept; sleep 100");
    await_log(55, "kept");
    assert_int_equal(world.engine->ops->forget(world.engine, (struct attempt_id){55}, &err),
                     ERR_CONFLICT);
    kill_task(55, 0, "stopped");
    end_of(55);
    assert_true(world_is_listed(&world, 55));
    assert_int_equal(shell("test -d %s/data/containers/55/upper", world.folder), 0);
    assert_int_equal(world.engine->ops->forget(world.engine, (struct attempt_id){55}, &err), 0);
    int64_t due = now_us() + 1000 * (int64_t)PATIENCE_MS;
    while (world_is_listed(&world, 55))
        assert_true(now_us() < due);
    assert_int_not_equal(shell("test -e %s/data/containers/55", world.folder), 0);
    await_log(55, "kept"); /* logs stay */
    assert_int_equal(world.engine->ops->forget(world.engine, (struct attempt_id){55}, &err), 0);
}

/* --- killed and removed from outside --- */

static void test_container_killed(void **state)
{
    (void)state;
    world_create(&world, 60, "echo ready; sleep 100");
    await_log(60, "ready");
    shell("kill -9 $(cat %s/run/tasks/60/init.pid)", world.folder);
    assert_int_equal(end_of(60)->exit.exit_code, 137);
    assert_false(end_of(60)->exit.is_oom_killed);
    assert_nothing_left(60);
}

static void test_conmon_killed(void **state)
{
    (void)state;
    world_create(&world, 61, "echo ready; while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 6");
    await_log(61, "ready");
    shell("kill -9 $(cat %s/run/tasks/61/conmon.pid)", world.folder);
    assert_non_null(world_wait(&world, ENGINE_NOTE, 61, 0, PATIENCE_MS));
    shell("touch /proc/$(cat %s/run/tasks/61/init.pid)/root/tmp/go", world.folder);
    assert_int_equal(end_of(61)->exit.exit_code, 6); /* skep-init's report survives conmon */
    assert_nothing_left(61);
}

static void test_conmon_and_container_killed(void **state)
{
    (void)state;
    world_create(&world, 62, "echo ready; sleep 100");
    await_log(62, "ready");
    shell("kill -9 $(cat %s/run/tasks/62/conmon.pid) $(cat %s/run/tasks/62/init.pid)", world.folder,
          world.folder);
    assert_int_equal(end_of(62)->exit.exit_code, 137);
    assert_nothing_left(62);
}

static void test_container_removed(void **state)
{
    (void)state;
    world_create(&world, 63, "echo ready; sleep 100");
    await_log(63, "ready");
    const struct local_engine *local = (struct local_engine *)world.engine;
    shell("%s --root %s delete --force 63 2>/dev/null", local->runtime.program,
          local->runtime.root); /* its last steps may find that we have cleaned up already */
    assert_int_equal(end_of(63)->exit.exit_code, 137);
    world_create(&world, 64, "echo ready; sleep 100");
    await_log(64, "ready");
    shell("rm -rf %s/data/containers/64", world.folder);
    kill_task(64, 0, "stopped");
    assert_int_equal(end_of(64)->exit.exit_code, 137);
    assert_nothing_left(64);
}

/* --- restart --- */

static void test_adopt(void **state)
{
    (void)state;
    world_create(&world, 70, "echo ready; while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 4");
    world_create(&world, 71, "echo ready; while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 5");
    world_create(&world, 72, "echo ready; sleep 1000");
    for (uint64_t i = 70; i < 73; i++)
        await_log(i, "ready");
    world_stop(&world);
    shell("touch /proc/$(cat %s/run/tasks/71/init.pid)/root/tmp/go", world.folder);
    shell("while [ -d /proc/$(cat %s/run/tasks/71/conmon.pid) ] && ! grep -q 'State:.Z' "
          "/proc/$(cat %s/run/tasks/71/conmon.pid)/status; do sleep 0.05; done",
          world.folder, world.folder);
    size_t from = world_seen_count(&world);
    world_start(&world);
    assert_true(world_is_listed(&world, 70) && world_is_listed(&world, 71) &&
                world_is_listed(&world, 72));
    assert_non_null(world_wait(&world, ENGINE_STARTED, 70, from, PATIENCE_MS));
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 71, from, PATIENCE_MS);
    assert_non_null(end);
    assert_int_equal(end->exit.exit_code, 5);
    shell("touch /proc/$(cat %s/run/tasks/70/init.pid)/root/tmp/go", world.folder);
    end = world_wait(&world, ENGINE_EXITED, 70, from, PATIENCE_MS);
    assert_int_equal(end->exit.exit_code, 4);
    kill_task(72, 0, "stopped");
    end = world_wait(&world, ENGINE_EXITED, 72, from, PATIENCE_MS);
    assert_int_equal(end->exit.exit_code, 137);
    /* ended, not forgotten: told once more after another restart */
    world_stop(&world);
    from = world_seen_count(&world);
    world_start(&world);
    end = world_wait(&world, ENGINE_EXITED, 70, from, PATIENCE_MS);
    assert_non_null(end);
    assert_int_equal(end->exit.exit_code, 4);
    assert_string_equal(end->log, "ready\n");
    for (uint64_t i = 70; i < 73; i++)
        assert_nothing_left(i);
}

/* Killed while no server ran, so that skep-init left no word: conmon's is enough. */
static void test_killed_meanwhile(void **state)
{
    (void)state;
    world_create(&world, 74, "echo ready; sleep 1000");
    await_log(74, "ready");
    world_stop(&world);
    shell("conmon=$(cat %s/run/tasks/74/conmon.pid); kill -9 $(cat %s/run/tasks/74/init.pid); "
          "while [ -d /proc/$conmon ] && ! grep -q 'State:.Z' /proc/$conmon/status; do "
          "sleep 0.05; done",
          world.folder, world.folder);
    size_t from = world_seen_count(&world);
    world_start(&world);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 74, from, PATIENCE_MS);
    assert_non_null(end);
    assert_false(end->exit.is_missing);
    assert_int_equal(end->exit.exit_code, 137);
    assert_nothing_left(74);
}

/* A folder removed by hand while the server was down: what runs in its name is killed. */
static void test_orphan(void **state)
{
    (void)state;
    world_create(&world, 75, "echo ready; sleep 54321");
    await_log(75, "ready");
    world_stop(&world);
    shell("rm -rf %s/data/containers/75", world.folder);
    world_start(&world);
    assert_false(world_is_listed(&world, 75));
    assert_string_equal(shell_output("pgrep -f '[s]leep 54321'"), "");
    assert_nothing_left(75);
}

/* The machine was restarted: everything in memory is gone, the disk is as it was. */
static void test_reboot(void **state)
{
    (void)state;
    world_create(&world, 76, "echo ready; sleep 1000");
    await_log(76, "ready");
    world_stop(&world);
    shell("cd %s/run; kill -9 $(cat tasks/76/conmon.pid tasks/76/init.pid); "
          "rm -rf tasks/76 runtime/76 exits/76; "
          "sed -i 's/\"boot\":\"[^\"]*\"/\"boot\":\"another\"/' ../data/containers/76/state",
          world.folder);
    size_t from = world_seen_count(&world);
    world_start(&world);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 76, from, PATIENCE_MS);
    assert_non_null(end);
    assert_string_equal(end->reason, "NodeRestarted");
    assert_string_equal(end->log, "ready\n");
    assert_int_not_equal(end->exit.exit_code, 0);
    assert_nothing_left(76);
}

static void post_ignore(void *context, const struct engine_event *event)
{
    (void)context;
    (void)event;
}

static void test_second_engine(void **state)
{
    (void)state;
    struct err err = {0};
    struct engine *second = engine_local_new(
        &world.config, (struct engine_sink){.context = &world, .post = post_ignore}, &err);
    assert_null(second);
    assert_int_equal(err.code, ERR_BUSY);
}

/* crun is executed from a sealed copy, and its own file when that cannot be. */
static void test_copy_of_runtime(void **state)
{
    (void)state;
    const struct local_engine *local = (struct local_engine *)world.engine;
    char link[RUNTIME_PATH_MAX];
    snprintf(link, sizeof link, "%s", local->runtime.sealed);
    if (local->runtime.sealed_fd >= 0) {
        assert_int_equal(shell("cmp -s %s %s", link, local->runtime.program), 0);
        world_stop(&world);
        assert_int_equal(shell("test -L %s", link), 1);
    } else {
        world_stop(&world);
    }
    const char *usual = world.config.runtime;
    char picky[300];
    snprintf(picky, sizeof picky, "%s/picky-crun", world.folder);
    FILE *file = fopen(picky, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\ncase $0 in *picky-crun) exec %s \"$@\";; esac\nexit 1\n",
            usual ? usual : "crun");
    fclose(file);
    assert_int_equal(chmod(picky, 0755), 0);
    world.config.runtime = picky;
    world_start(&world);
    local = (struct local_engine *)world.engine;
    assert_int_equal(local->runtime.sealed_fd, -1);
    world_create(&world, 85, "exit 3");
    assert_int_equal(end_of(85)->exit.exit_code, 3);
    world_stop(&world);
    world.config.runtime = usual;
    world_start(&world);
}

/* ext4 is told that what lies below has nothing in common. */
static void test_spread_folders(void **state)
{
    (void)state;
    static const char *const names[] = {"containers", "logs"};
    for (size_t i = 0; i < 2; i++) {
        char path[300];
        struct statfs disk;
        int flags = 0;
        snprintf(path, sizeof path, "%s/%s", world.config.directory, names[i]);
        assert_int_equal(statfs(path, &disk), 0);
        if (disk.f_type != EXT4_SUPER_MAGIC)
            skip();
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(ioctl(fd, FS_IOC_GETFLAGS, &flags), 0);
        assert_true(flags & FS_TOPDIR_FL);
        close(fd);
    }
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* GPUs that a CDI specification numbers: a task gets its own, and no other device. */
static void test_cdi_devices(void **state)
{
    (void)state;
    struct err err = {0};
    char path[300];
    const uint16_t gpu = 1;
    const char *directories[] = {world.folder};
    const struct engine_local_config before = world.config;
    /* a device that no container has by default, and that opens without a capability */
    const char *device = shell_output("for d in cpu_dma_latency loop-control fuse vga_arbiter; do "
                                      "[ -c /dev/$d ] && echo /dev/$d && break; done");
    if (!device[0])
        skip();
    char specification[2000], host[100];
    snprintf(host, sizeof host, "%s", device);
    snprintf(path, sizeof path, "%s/test.json", world.folder);
    snprintf(specification, sizeof specification,
             "{\"cdiVersion\":\"0.6.0\",\"kind\":\"test.com/gpu\",\"devices\":["
             "{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/gpu0\","
             "\"hostPath\":\"%s\"}]}},"
             "{\"name\":\"1\",\"containerEdits\":{\"env\":[\"MY_GPU=one\"],\"deviceNodes\":[{"
             "\"path\":\"/dev/gpu1\",\"hostPath\":\"%s\",\"permissions\":\"r\"}]}}],"
             "\"containerEdits\":{\"mounts\":[{\"hostPath\":\"/etc/passwd\",\"containerPath\":"
             "\"/driver/name\",\"options\":[\"ro\"]}]}}",
             host, host);
    put(path, specification);
    world_stop(&world);
    world.config.cdi_directories = directories;
    world.config.cdi_directory_count = 1;
    world.config.nvml_path = "libno-such-nvml.so";
    world_start(&world);
    struct task_options options = {.gpus = &gpu, .gpu_count = 1};
    const char *command = "ls /dev/gpu*; echo $MY_GPU; test -s /driver/name && echo driver; "
                          "(exec 3< /dev/gpu1) && echo open; (exec 3>> /dev/gpu1) 2>/dev/null "
                          "|| echo refused; mknod /tmp/mem c 1 1 2>/dev/null || echo refused";
    assert_int_equal(world_create_with(&world, 81, command, &options, &err), 0);
    assert_int_equal(end_of(81)->exit.exit_code, 0);
    assert_string_equal(end_of(81)->log, "/dev/gpu1\none\ndriver\nopen\nrefused\nrefused\n");
    assert_int_equal(world.node.gpu_count, 2);
    world_create(&world, 82, "(exec 3< /dev/gpu1) 2>/dev/null || echo none");
    assert_string_equal(end_of(82)->log, "none\n");
    world_stop(&world);
    world.config = before;
    world_start(&world);
}

static void test_log_end(void **state)
{
    (void)state;
    struct err err = {0};
    char text[4096];
    world_create(&world, 80, "echo ready; sleep 1000");
    await_log(80, "ready");
    int watch =
        world.engine->ops->log_watch(world.engine, (struct attempt_id){80}, LOG_STDOUT, &err);
    assert_true(watch >= 0);
    kill_task(80, 0, "stopped");
    struct log_part part = {0};
    int64_t due = now_us() + 1000 * (int64_t)PATIENCE_MS;
    while (!part.is_ended) {
        uint64_t offset = 0;
        struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
        assert_true(now_us() < due);
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        assert_true(read(watch, text, sizeof text) > 0);
        assert_true(world.engine->ops->log_read(world.engine, (struct attempt_id){80}, LOG_STDOUT,
                                                &offset, text, sizeof text, &part, &err) >= 0);
    }
    close(watch);
    end_of(80);
}

static void test_many(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 24; i++)
        world_create(&world, 200 + i, "echo $PAI_JOB_NAME; exit 1");
    for (uint64_t i = 0; i < 24; i++)
        assert_int_equal(end_of(200 + i)->exit.exit_code, 1);
}

static int setup(void **state)
{
    (void)state;
    const char *pids = getenv("SKEP_TEST_PIDS");
    if (!world_open(&world))
        exit(77);
    world.config.pids_max = pids ? (uint32_t)atoi(pids) : 1500; /* of a machine that others use */
    world.config.log_max_mib = 64;
    world_start(&world);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

/* test-engine-life [PATTERN]: only the tests whose names match.
 * SKEP_TEST_PIDS: how many processes a task may have, and how many the fork bomb makes. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_environment_of_container),
        cmocka_unit_test(test_missing_command),
        cmocka_unit_test(test_image_without_shell),
        cmocka_unit_test(test_bad_images),
        cmocka_unit_test(test_refused_containers),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_create_twice),
        cmocka_unit_test(test_kill_gracefully),
        cmocka_unit_test(test_kill_hard),
        cmocka_unit_test(test_fork_bomb),
        cmocka_unit_test(test_fork_bomb_left_behind),
        cmocka_unit_test(test_process_limit),
        cmocka_unit_test(test_memory_high),
        cmocka_unit_test(test_log_limit),
        cmocka_unit_test(test_escaped_processes),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_log_offsets),
        cmocka_unit_test(test_output_of_first_process),
        cmocka_unit_test(test_secret),
        cmocka_unit_test(test_links_in_logs),
        cmocka_unit_test(test_devices_in_folders),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_container_killed),
        cmocka_unit_test(test_conmon_killed),
        cmocka_unit_test(test_conmon_and_container_killed),
        cmocka_unit_test(test_container_removed),
        cmocka_unit_test(test_adopt),
        cmocka_unit_test(test_killed_meanwhile),
        cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_reboot),
        cmocka_unit_test(test_second_engine),
        cmocka_unit_test(test_copy_of_runtime),
        cmocka_unit_test(test_spread_folders),
        cmocka_unit_test(test_cdi_devices),
        cmocka_unit_test(test_log_end),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
