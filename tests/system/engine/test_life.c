/* The life of containers under the local engine: start, end, kill, logs, devices.
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
#include "life.h"
#include "sys/clock.h"
#include "waits.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct world world;

int kill_task(uint64_t attempt, uint32_t grace_ms, const char *reason)
{
    return world.engine->ops->kill(world.engine, (struct attempt_id){attempt}, grace_ms, reason,
                                   false, NULL);
}

const struct seen *end_of(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    return end;
}

void await_log(uint64_t attempt, const char *line)
{
    world_log_await(&world, attempt, line, PATIENCE_MS);
}

void assert_nothing_left(uint64_t attempt)
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
    assert_nothing_left(41);
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
                 "echo ready; sleep 1000");
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

/* A worker does it, later. */
static void forget(uint64_t attempt)
{
    const int64_t due_us = now_us() + PATIENCE_MS * 1000ll;
    struct err err = {0};
    assert_int_equal(world.engine->ops->forget(world.engine, (struct attempt_id){attempt}, &err),
                     0);
    while (world_is_listed(&world, attempt))
        assert_true(now_us() < due_us);
}

static void test_forget(void **state)
{
    (void)state;
    struct err err = {0};
    world_create(&world, 55, "echo kept; sleep 1000");
    await_log(55, "kept");
    assert_int_equal(world.engine->ops->forget(world.engine, (struct attempt_id){55}, &err),
                     ERR_CONFLICT);
    kill_task(55, 0, "stopped");
    end_of(55);
    assert_true(world_is_listed(&world, 55));
    assert_int_equal(shell("test -d %s/data/containers/55/upper", world.folder), 0);
    forget(55);
    assert_int_not_equal(shell("test -e %s/data/containers/55", world.folder), 0);
    await_log(55, "kept"); /* logs stay */
    assert_int_equal(world.engine->ops->forget(world.engine, (struct attempt_id){55}, &err), 0);
}

/* By a wall clock that is 400 days ahead everything is old; the trusted time says that nothing is.
 */
static void test_clock_ahead(void **state)
{
    (void)state;
    world_create(&world, 961, "echo kept");
    end_of(961);
    forget(961);
    world_create(&world, 962, "echo kept"); /* nobody forgets it in time */
    end_of(962);
    assert_int_equal(shell("cd %s/data && test -d containers/962/upper && find logs/961 "
                           "containers/962/ended -exec touch -hd '400 days ago' {} +",
                           world.folder),
                     0);
    atomic_store(&world.trusted_ms, clock_unix_ms() - 400 * INT64_C(86400000));
    engine_local_housekeep(world.engine);
    assert_int_equal(shell("test -d %s/data/containers/962/upper", world.folder), 0);
    assert_int_equal(shell("test -d %s/data/logs/961", world.folder), 0);
    atomic_store(&world.trusted_ms, 0);
    engine_local_housekeep(world.engine);
    assert_int_not_equal(shell("test -e %s/data/containers/962/upper", world.folder), 0);
    assert_int_not_equal(shell("test -e %s/data/logs/961", world.folder), 0);
}

/* What a clock that was ahead has left is as old as the first round that finds it. */
static void test_times_of_the_future(void **state)
{
    (void)state;
    world_create(&world, 963, "echo kept");
    end_of(963);
    forget(963);
    world_create(&world, 964, "echo kept");
    end_of(964);
    static const char times[] = "cd %s/data && find logs/963 containers/964/ended %s | wc -l";
    assert_int_equal(shell("cd %s/data && find logs/963 containers/964/ended -exec touch -hd "
                           "'400 days' {} +",
                           world.folder),
                     0);
    const char *found = shell_output(times, world.folder, "");
    assert_in_range(atoi(found), 3, 100); /* two folders or files, and what is in the first */
    engine_local_housekeep(world.engine);
    assert_string_equal(shell_output(times, world.folder, "-newermt '1 hour'"), "0");
    assert_int_equal(shell("test -d %s/data/containers/964/upper", world.folder), 0);
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

static const struct CMUnitTest tests[] = {
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
    cmocka_unit_test(test_log_offsets),
    cmocka_unit_test(test_output_of_first_process),
    cmocka_unit_test(test_secret),
    cmocka_unit_test(test_links_in_logs),
    cmocka_unit_test(test_devices_in_folders),
    cmocka_unit_test(test_forget),
    cmocka_unit_test(test_clock_ahead),
    cmocka_unit_test(test_times_of_the_future),
    cmocka_unit_test(test_spread_folders),
    cmocka_unit_test(test_cdi_devices),
    cmocka_unit_test(test_log_end),
    cmocka_unit_test(test_many),
};

/* test-engine-life [PATTERN…]: only the tests whose names match one.
 * SKEP_TEST_PIDS: how many processes a task may have, and how many the fork bomb makes. */
int main(int argc, char **argv)
{
    const struct life_tests all[] = {
        {tests, sizeof tests / sizeof *tests}, limits_tests, restart_tests};
    struct CMUnitTest group[100];
    size_t number = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(number + all[i].count <= sizeof group / sizeof *group);
        memcpy(group + number, all[i].items, all[i].count * sizeof *group);
        number += all[i].count;
    }
    return world_tests_run(&world, argc, argv, group, number, setup, teardown);
}
