/* What the local engine must withstand: a full disk, and its own death at any instant.
 *
 * Covers: src/engine/local/keeper.c, src/engine/local/storage.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "base/random.h"
#include "engine/local/task.h"
#include "world.h"
#include <cmocka.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000 };

static struct world world;

static const struct seen *end_after(uint64_t attempt, size_t from)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, from, PATIENCE_MS);
    assert_non_null(end);
    return end;
}

static void disk_fill(void)
{
    shell("dd if=/dev/zero of=%s/data/ballast bs=4k 2>/dev/null; "
          "dd if=/dev/zero of=%s/data/ballast2 bs=1 count=4096 2>/dev/null",
          world.folder, world.folder);
}

static void disk_free(void)
{
    shell("rm -f %s/data/ballast %s/data/ballast2", world.folder, world.folder);
}

static void test_disk_full(void **state)
{
    (void)state;
    struct err err = {0};
    size_t from = world_seen_count(&world);
    world_create(&world, 1, "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done");
    world_log_await(&world, 1, "ready", PATIENCE_MS);
    disk_fill();
    engine_local_housekeep(world.engine);
    assert_false(world.node.is_healthy);
    assert_non_null(strstr(world.node_reason, "disk pressure"));
    world_create(&world, 2, "true"); /* refused, with a clear word */
    assert_string_equal(end_after(2, from)->reason, "DiskFull");
    assert_non_null(strstr(end_after(2, from)->message, "space"));
    struct task_options options = {.image = "oci-archive:", .cpu = 1};
    char image[300];
    snprintf(image, sizeof image, "oci-archive:%s/app.tar", world.image_root);
    options.image = image;
    assert_int_equal(world_create_with(&world, 3, "true", &options, &err), 0);
    assert_string_equal(end_after(3, from)->reason, "DiskFull");
    /* the running one is untouched, and its end is known, though nothing can be written down */
    assert_null(world_wait(&world, ENGINE_EXITED, 1, from, 0));
    world.engine->ops->kill(world.engine, (struct attempt_id){1}, 10000, "stopped", false, NULL);
    assert_int_equal(end_after(1, from)->exit.exit_code, 9);
    world_stop(&world); /* … nor is it forgotten by a restart */
    from = world_seen_count(&world);
    world_start(&world);
    assert_int_equal(end_after(1, from)->exit.exit_code, 9);
    disk_free();
    engine_local_housekeep(world.engine);
    assert_true(world.node.is_healthy);
    assert_int_equal(world_create_with(&world, 4, "exit 3", &options, &err), 0);
    assert_int_equal(end_after(4, from)->exit.exit_code, 3);
}

/* What a machine can do is tried at each start. A disk without room for that must not take anything
 * from tasks that come when there is room again. */
static void test_start_on_full_disk(void **state)
{
    (void)state;
    const struct local_engine *engine;
    const struct engine_local_config before = world.config;
    size_t from;

    world_stop(&world);
    world.config.disk_quota = DISK_QUOTA_REQUIRED;
    world.config.disk_mib = 8;
    world_start(&world);
    engine = (const struct local_engine *)world.engine;
    const bool gives_ids = engine->gives_ids, has_layers = engine->layers != NULL;
    const enum disk_way disk_way = engine->disk_way;
    assert_int_not_equal(disk_way, DISK_OPEN);
    world_stop(&world);
    disk_fill();
    world_start(&world);
    engine = (const struct local_engine *)world.engine;
    assert_int_equal(engine->gives_ids, gives_ids);
    assert_int_equal(engine->layers != NULL, has_layers);
    assert_int_equal(engine->disk_way, disk_way);
    disk_free();
    engine_local_housekeep(world.engine);
    from = world_seen_count(&world);
    world_create(&world, 9, "dd if=/dev/zero of=/tmp/x bs=64k || exit 7");
    assert_string_equal(end_after(9, from)->reason, "TaskDiskFull");
    world_stop(&world);
    world.config = before;
    world_start(&world);
}

/* May this thread set up the user ids of others? */
static void setuid_may(bool may)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(UINT32_C(1) << CAP_SETUID);
    if (may)
        data[0].effective |= data[0].permitted & UINT32_C(1) << CAP_SETUID;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* The disk is filled while nobody is there who would make room on it. */
static bool restart_gives_ids(bool on_full_disk)
{
    world_stop(&world);
    if (on_full_disk)
        disk_fill();
    world_start(&world);
    return ((const struct local_engine *)world.engine)->gives_ids;
}

/* A full disk does not turn on either what has been found to be impossible since. */
static void test_start_without_ids(void **state)
{
    (void)state;
    if (!restart_gives_ids(false))
        skip();
    setuid_may(false);
    const bool without = restart_gives_ids(false);
    setuid_may(true);
    assert_false(without);
    assert_false(restart_gives_ids(true));
    disk_free();
    assert_true(restart_gives_ids(false));
}

static void test_no_inodes(void **state)
{
    (void)state;
    size_t from = world_seen_count(&world);
    shell("cd %s/data; mkdir inodes; i=0; while : > inodes/$i; do i=$((i+1)); done 2>/dev/null",
          world.folder);
    world_create(&world, 5, "true");
    assert_string_equal(end_after(5, from)->reason, "DiskFull");
    /* known before the end was told, without a round of housekeeping */
    assert_false(world.node.is_healthy);
    assert_non_null(strstr(world.node_reason, "inodes free in the data directory"));
    size_t told = world_seen_count(&world);
    shell("rm -rf %s/data/inodes", world.folder);
    while (!world.node.is_healthy) { /* seen by itself */
        const struct seen *node = world_wait(&world, ENGINE_NODE, 0, told, PATIENCE_MS);
        assert_non_null(node);
        told = (size_t)(node - world.seen.items) + 1;
    }
    world_create(&world, 6, "exit 3");
    assert_int_equal(end_after(6, from)->exit.exit_code, 3);
}

static void test_run_directory_full(void **state)
{
    (void)state;
    size_t from = world_seen_count(&world);
    shell("dd if=/dev/zero of=%s/run/ballast bs=4k 2>/dev/null", world.folder);
    world_create(&world, 7, "true");
    assert_string_equal(end_after(7, from)->reason, "DiskFull");
    assert_false(world.node.is_healthy);
    assert_non_null(strstr(world.node_reason, "in the run directory"));
    shell("rm -f %s/run/ballast", world.folder);
    engine_local_housekeep(world.engine);
    assert_true(world.node.is_healthy);
    world_create(&world, 8, "exit 3");
    assert_int_equal(end_after(8, from)->exit.exit_code, 3);
}

/* --- death at any instant --- */

enum { ROUNDS = 25, TASKS = 4 };

static void child_post(void *context, const struct engine_event *event)
{
    (void)context;
    (void)event;
}

static int create_counted(struct engine *engine, uint64_t attempt)
{
    struct world copy = world;
    char source[300], command[200];
    struct err err = {0};
    copy.engine = engine;
    snprintf(source, sizeof source, "%s/runs", world.folder);
    struct engine_mount mount = {.source = source, .target = "/mnt"};
    struct task_options options = {.mounts = &mount, .mount_count = 1};
    snprintf(command, sizeof command, "echo x >> /mnt/%llu; sleep 0.0%llu; exit 5",
             (unsigned long long)attempt, (unsigned long long)attempt % 10);
    return world_create_with(&copy, attempt, command, &options, &err);
}

/* A server that creates tasks and is killed after `delay_us`: an instant of the test's choice. */
static void child_run(uint64_t first, uint32_t delay_us)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct engine_sink sink = {
            .context = &world, .post = child_post, .trusted_ms = world_trusted};
        struct engine *engine = engine_local_new(&world.config, sink, NULL);
        if (!engine || write(ends[1], "x", 1) != 1)
            _exit(1);
        for (uint64_t i = 0; i < TASKS; i++)
            create_counted(engine, first + i);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    usleep(delay_us);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_killed_anywhere(void **state)
{
    (void)state;
    struct random random = {20251121};
    world_stop(&world);
    shell("mkdir -p %s/runs; chmod 777 %s/runs", world.folder, world.folder);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t first = 1000 + round * 10;
        child_run(first, (uint32_t)random_below(&random, 60000));
        size_t from = world_seen_count(&world);
        world_start(&world);
        for (uint64_t i = 0; i < TASKS; i++)
            if (!world_is_listed(&world, first + i)) /* as the server does after a restart */
                assert_int_equal(create_counted(world.engine, first + i), 0);
        for (uint64_t i = 0; i < TASKS; i++) {
            const struct seen *end = end_after(first + i, from);
            if (world_ended_undone(&world, end)) { /* the server would make another attempt */
                assert_int_not_equal(
                    shell("test -e %s/runs/%llu", world.folder, (unsigned long long)(first + i)),
                    0);
                continue;
            }
            assert_int_equal(end->exit.exit_code, 5);
            assert_string_equal(
                shell_output("wc -c < %s/runs/%llu", world.folder, (unsigned long long)(first + i)),
                "2"); /* ran once */
        }
        world_stop(&world);
    }
    world_start(&world);
    /* that of a task whose end is known may not have ended itself yet */
    shell("timeout 120 pidwait -f '[c]onmon.*%s'", world.folder);
    assert_string_equal(shell_output("pgrep -f '[c]onmon.*%s'", world.folder), "");
    assert_string_equal(
        shell_output("ls %s/run/runtime %s/run/exits | grep '^[0-9]'", world.folder, world.folder),
        "");
}

static int setup(void **state)
{
    (void)state;
    if (!world_open(&world))
        exit(77);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        shell("set -e; cd %s; mkdir data run; mount -t tmpfs -o size=12m,nr_inodes=3000 "
              "small data; mount -t tmpfs -o size=8m small run",
              world.folder)) {
        fprintf(stderr, "skipped: a small file system cannot be mounted here\n");
        world_close(&world);
        exit(77);
    }
    shell("set -e; cd %s; exec 2>make.log >&2; umoci init --layout l; umoci new --image l:1; "
          "umoci unpack --image l:1 b; cp -a images/busybox/. b/rootfs/; umoci repack --image l:1 "
          "b; skopeo --insecure-policy copy oci:l:1 oci-archive:images/app.tar; rm -rf b l",
          world.folder);
    world.config.disk_reserve_mib = 2;
    world_start(&world);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_stop(&world);
    shell("umount %s/data %s/run", world.folder, world.folder);
    world_close(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disk_full),          cmocka_unit_test(test_start_on_full_disk),
        cmocka_unit_test(test_start_without_ids),  cmocka_unit_test(test_no_inodes),
        cmocka_unit_test(test_run_directory_full), cmocka_unit_test(test_killed_anywhere),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
