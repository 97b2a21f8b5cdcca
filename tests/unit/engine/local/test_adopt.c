/* What an engine finds at its start. */
#include "machine.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"

/* A group of a container that nobody knows, with a process that no signal ends: it is not really in
 * it. */
static void orphan_put(const char *name)
{
    char path[160], pid[20];

    snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    snprintf(path, sizeof path, "tree/skep/1/%s/cgroup.procs", name);
    folder_put(path, pid);
    snprintf(path, sizeof path, "tree/skep/1/%s/cgroup.kill", name);
    folder_put(path, "0");
}

static void assert_killed(const char *name)
{
    char path[160];
    struct buf text = BUF_INIT;

    snprintf(path, sizeof path, "tree/skep/1/%s/cgroup.kill", name);
    assert_int_equal(file_read(in_folder(path), 10, &text, NULL), 0);
    assert_string_equal(buf_cstr(&text), "1");
    buf_release(&text);
}

/* As many as come, each with a place that was nobody's. */
static void tasks_find_room(void **state)
{
    enum { TASKS = 300 };
    struct local_engine local = {.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    for (uint64_t i = 1; i <= TASKS; i++)
        assert_int_equal(task_add(&local, (struct attempt_id){i})->attempt.v, i);
    assert_int_equal(local.task_count, TASKS);
    for (uint64_t i = 1; i <= TASKS; i += 2)
        task_drop(&local, task_find(&local, (struct attempt_id){i}));
    const size_t room = local.task_room;
    for (uint64_t i = TASKS + 1; i <= TASKS + TASKS / 2; i++)
        task_add(&local, (struct attempt_id){i});
    assert_int_equal(local.task_room, room);
    for (uint64_t i = 1; i <= TASKS + TASKS / 2; i++) {
        struct task *task = task_find(&local, (struct attempt_id){i});
        assert_int_equal(!task, i <= TASKS && i % 2);
        if (task)
            task_drop(&local, task);
    }
    assert_int_equal(local.task_count, 0);
    id_map_release(&local.task_index);
    mem_free(local.tasks);
}

enum { STUCK = 16 };

/* An engine on a machine of files, with so many groups that cannot be emptied. */
static void engine_put(struct local_engine *local, const char *name)
{
    char path[100];
    struct err err;

    snprintf(local->group, sizeof local->group, "/skep/1");
    snprintf(path, sizeof path, "%s/data", name);
    snprintf(local->directory, sizeof local->directory, "%s", in_folder(path));
    snprintf(path, sizeof path, "%s/run", name);
    snprintf(local->run_directory, sizeof local->run_directory, "%s", in_folder(path));
    snprintf(path, sizeof path, "%s/runtime", name);
    snprintf(local->runtime.root, sizeof local->runtime.root, "%s", in_folder(path));
    snprintf(path, sizeof path, "%s/exits", name);
    snprintf(local->runtime.exit_directory, sizeof local->runtime.exit_directory, "%s",
             in_folder(path));
    snprintf(path, sizeof path, "%s/data/containers", name);
    assert_int_equal(dir_make(in_folder(path), 0755, &err), 0);
    folder_put("tree/cgroup.controllers", "cpu memory pids");
    assert_int_equal(cgroup_layout_read(mountinfo("31 22 0:27 / @/tree rw - cgroup2 cgroup rw\n"),
                                        &local->cgroups, &err),
                     0);
    for (int i = 1; i <= STUCK; i++) {
        snprintf(path, sizeof path, "%d", i);
        orphan_put(path);
    }
}

static void adopt_at_once(struct local_engine *local)
{
    struct err err;
    const int64_t begin_ms = clock_monotonic_ms();
    log_to(-1);
    assert_int_equal(adopt_all(local, &err), 0);
    log_to(2);
    /* 10 s for all of them: for each it would be twice as long as this */
    assert_true(clock_monotonic_ms() - begin_ms < STUCK * 5000);
    for (int i = 1; i <= STUCK; i++) {
        char name[20];
        snprintf(name, sizeof name, "%d", i);
        assert_killed(name);
    }
}

static void what_cannot_be_killed_does_not_hold_the_start(void **state)
{
    static struct local_engine local = {.lock = PTHREAD_MUTEX_INITIALIZER};

    (void)state;
    engine_put(&local, "orphans");
    adopt_at_once(&local);
    assert_int_equal(local.task_count, 0);
}

/* Tasks that were created and never let go. What cannot be removed of them is a worker's: the
 * attempt ends, and is not created a second time beside what is left of it. */
static void what_cannot_be_undone_does_not_hold_the_start(void **state)
{
    static struct local_engine local = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                        .has_work = PTHREAD_COND_INITIALIZER};
    char path[100];
    struct err err;

    (void)state;
    local.work.last = &local.work.first;
    for (int i = 1; i <= STUCK; i++) {
        snprintf(path, sizeof path, "undone/data/containers/%d", i);
        assert_int_equal(dir_make(in_folder(path), 0755, &err), 0);
    }
    engine_put(&local, "undone");
    adopt_at_once(&local);
    assert_int_equal(local.task_count, STUCK);
    assert_int_equal(local.work.count, STUCK);
    for (uint64_t i = 1; i <= STUCK; i++) {
        const struct task *task = task_find(&local, (struct attempt_id){i});
        assert_non_null(task);
        assert_int_equal(task->phase, TASK_ENDING);
        assert_string_equal(task->fail_reason, "ContainerCannotRun");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_find_room),
    cmocka_unit_test(what_cannot_be_killed_does_not_hold_the_start),
    cmocka_unit_test(what_cannot_be_undone_does_not_hold_the_start),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
