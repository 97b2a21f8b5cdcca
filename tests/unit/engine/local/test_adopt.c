/* What an engine finds at its start. */
#include "machine.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/local/task.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"

/* A group of a container that nobody knows, with a process that no signal ends: it is not really in
 * it. */
static void orphan_put(const char *name)
{
    char path[100], pid[20];

    snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    snprintf(path, sizeof path, "tree/skep/1/%s/cgroup.procs", name);
    folder_put(path, pid);
    snprintf(path, sizeof path, "tree/skep/1/%s/cgroup.kill", name);
    folder_put(path, "0");
}

static void assert_killed(const char *name)
{
    char path[100];
    struct buf text = BUF_INIT;

    snprintf(path, sizeof path, "tree/skep/1/%s/cgroup.kill", name);
    assert_int_equal(file_read(in_folder(path), 10, &text, NULL), 0);
    assert_string_equal(buf_cstr(&text), "1");
    buf_release(&text);
}

static void what_cannot_be_killed_does_not_hold_the_start(void **state)
{
    enum { ORPHANS = 4 };
    static struct local_engine local = {.group = "/skep/1", .lock = PTHREAD_MUTEX_INITIALIZER};
    char name[20];
    struct err err;

    (void)state;
    snprintf(local.directory, sizeof local.directory, "%s", in_folder("data"));
    snprintf(local.run_directory, sizeof local.run_directory, "%s", in_folder("run"));
    snprintf(local.runtime.root, sizeof local.runtime.root, "%s", in_folder("runtime"));
    snprintf(local.runtime.exit_directory, sizeof local.runtime.exit_directory, "%s",
             in_folder("exits"));
    assert_int_equal(dir_make(in_folder("data/containers"), 0755, &err), 0);
    folder_put("tree/cgroup.controllers", "cpu memory pids");
    assert_int_equal(cgroup_layout_read(mountinfo("31 22 0:27 / @/tree rw - cgroup2 cgroup rw\n"),
                                        &local.cgroups, &err),
                     0);
    for (int i = 1; i <= ORPHANS; i++) {
        snprintf(name, sizeof name, "%d", i);
        orphan_put(name);
    }
    const int64_t begin_ms = clock_monotonic_ms();
    log_to(-1);
    assert_int_equal(adopt_all(&local, &err), 0);
    log_to(2);
    assert_true(clock_monotonic_ms() - begin_ms < 10000); /* 30 s each, if they were waited for */
    for (int i = 1; i <= ORPHANS; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_killed(name);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_cannot_be_killed_does_not_hold_the_start),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
