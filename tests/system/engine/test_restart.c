/* The local engine while others kill and remove what is its own, and over its own restarts. Part of
 * the program engine-life.
 *
 * Covers: src/engine/local/adopt.c, src/engine/local/local.c, src/engine/local/runtime.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/task.h"
#include "life.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- killed and removed from outside --- */

static void test_container_killed(void **state)
{
    (void)state;
    world_create(&world, 60, "echo ready; sleep 1000");
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
    world_create(&world, 62, "echo ready; sleep 1000");
    await_log(62, "ready");
    shell("kill -9 $(cat %s/run/tasks/62/conmon.pid) $(cat %s/run/tasks/62/init.pid)", world.folder,
          world.folder);
    assert_int_equal(end_of(62)->exit.exit_code, 137);
    assert_nothing_left(62);
}

static void test_container_removed(void **state)
{
    (void)state;
    world_create(&world, 63, "echo ready; sleep 1000");
    await_log(63, "ready");
    const struct local_engine *local = (struct local_engine *)world.engine;
    shell("%s --root %s delete --force 63 2>/dev/null", local->runtime.program,
          local->runtime.root); /* its last steps may find that we have cleaned up already */
    assert_int_equal(end_of(63)->exit.exit_code, 137);
    world_create(&world, 64, "echo ready; sleep 1000");
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
    world_monitor_await(&world, 71, PATIENCE_MS);
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
    shell("kill -9 $(cat %s/run/tasks/74/init.pid)", world.folder);
    world_monitor_await(&world, 74, PATIENCE_MS);
    size_t from = world_seen_count(&world);
    world_start(&world);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 74, from, PATIENCE_MS);
    assert_non_null(end);
    assert_false(end->exit.is_missing);
    assert_int_equal(end->exit.exit_code, 137);
    assert_nothing_left(74);
}

/* --- killed while it lets a container go: what has run is not run a second time --- */

/* Writes a line into FOLDER/runs each time it runs, and ends when FOLDER/go is there. */
static void create_counted(struct engine *engine, uint64_t attempt)
{
    struct world copy = world;
    const struct engine_mount mount = {.source = world.folder, .target = "/mnt"};
    const struct task_options options = {.mounts = &mount, .mount_count = 1};
    struct err err = {0};
    const char *command = "echo x >>/mnt/runs; echo ready; "
                          "while [ ! -e /mnt/go ]; do sleep 0.05; done; exit 5";
    copy.engine = engine;
    assert_int_equal(world_create_with(&copy, attempt, command, &options, &err), 0);
}

static void assert_adopted_and_run_once(uint64_t attempt)
{
    size_t from = world_seen_count(&world);
    world_start(&world);
    assert_true(world_is_listed(&world, attempt));
    shell("touch %s/go", world.folder);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, from, PATIENCE_MS);
    assert_non_null(end);
    assert_int_equal(end->exit.exit_code, 5);
    assert_string_equal(shell_output("cd %s; wc -l <runs; rm runs go", world.folder), "1");
    assert_nothing_left(attempt);
}

/* Its first process runs, and nothing says so yet: the runtime takes it for one that waits. */
static void test_killed_after_the_start(void **state)
{
    (void)state;
    create_counted(world.engine, 77);
    await_log(77, "ready");
    world_stop(&world);
    shell("cd %s/run; rm tasks/77/started; mkfifo runtime/77/exec.fifo", world.folder);
    assert_adopted_and_run_once(77);
}

static void post_nowhere(void *context, const struct engine_event *event)
{
    (void)context;
    (void)event;
}

/* It still waits, and is let go by the engine that finds it. The runtime of the one before never
 * comes to its `start`. */
static void test_killed_before_the_start(void **state)
{
    (void)state;
    const char *usual = world.config.runtime, *program = usual ? usual : "crun";
    char slow[300];
    world_stop(&world);
    const char *name = strrchr(program, '/');
    snprintf(slow, sizeof slow, "%s/slow-%s", world.folder, name ? name + 1 : program);
    FILE *file = fopen(slow, "w");
    assert_non_null(file);
    fprintf(file,
            "#!/bin/sh\nrun=%s/run\ncase \" $* \" in\n"
            "*' create '*' 78 '*) %s \"$@\" && cd $run/runtime/78 && exec mv exec.fifo kept;;\n"
            "*' start 78 '*) echo $$ >$run/at-start; exec sleep 1000;;\n"
            "*) exec %s \"$@\";;\nesac\n",
            world.folder, program, program);
    fclose(file);
    assert_int_equal(chmod(slow, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct engine_sink sink = {
            .context = &world, .post = post_nowhere, .trusted_ms = world_trusted};
        world.config.runtime = slow;
        struct err err = {0};
        struct engine *engine = engine_local_new(&world.config, sink, &err);
        if (!engine) {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        create_counted(engine, 78);
        for (;;)
            pause();
    }
    int code = shell("cd %s/run; until [ -s at-start ]; do grep -q 'State:.Z' /proc/%d/status && "
                     "exit 1; sleep 0.05; done; kill -9 %d $(cat at-start); rm at-start; "
                     "mv runtime/78/kept runtime/78/exec.fifo",
                     world.folder, (int)pid, (int)pid);
    waitpid(pid, NULL, 0);
    assert_int_equal(code, 0);
    assert_adopted_and_run_once(78);
}

/* A folder removed by hand while the server was down: what runs in its name is killed. */
static void test_orphan(void **state)
{
    (void)state;
    const int number = getpid(); /* others may run this test, too */
    char command[80];
    /* who says that it is ready is the process that is looked for */
    snprintf(command, sizeof command, "sh -c 'echo ready; sleep 10000; true' orphan-%d", number);
    world_create(&world, 75, command);
    await_log(75, "ready");
    assert_string_not_equal(shell_output("pgrep -f '[o]rphan-%d'", number), "");
    world_stop(&world);
    shell("rm -rf %s/data/containers/75", world.folder);
    world_start(&world);
    assert_false(world_is_listed(&world, 75));
    world_remains_await(&world, 75, PATIENCE_MS);
    assert_string_equal(shell_output("pgrep -f '[o]rphan-%d'", number), "");
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

static void test_second_engine(void **state)
{
    (void)state;
    struct err err = {0};
    const struct engine_sink sink = {
        .context = &world, .post = post_nowhere, .trusted_ms = world_trusted};
    struct engine *second = engine_local_new(&world.config, sink, &err);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_container_killed),
    cmocka_unit_test(test_conmon_killed),
    cmocka_unit_test(test_conmon_and_container_killed),
    cmocka_unit_test(test_container_removed),
    cmocka_unit_test(test_adopt),
    cmocka_unit_test(test_killed_meanwhile),
    cmocka_unit_test(test_killed_after_the_start),
    cmocka_unit_test(test_killed_before_the_start),
    cmocka_unit_test(test_orphan),
    cmocka_unit_test(test_reboot),
    cmocka_unit_test(test_second_engine),
    cmocka_unit_test(test_copy_of_runtime),
};

const struct life_tests restart_tests = {tests, sizeof tests / sizeof *tests};
