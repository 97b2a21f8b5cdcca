/* Everything in a control group is ended, and nothing else. */
#include "machine.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/cgroup.h"
#include "sys/file.h"

static void assert_file(const char *name, const char *wanted)
{
    struct buf text = BUF_INIT;
    assert_int_equal(file_read(in_folder(name), 100, &text, NULL), 0);
    assert_string_equal(buf_cstr(&text), wanted);
    buf_release(&text);
}

/* A process that waits for a signal, noted as a member of a group. */
static pid_t member_start(const char *procs)
{
    char text[32];
    const pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    snprintf(text, sizeof text, "0\n%d\n", (int)pid);
    folder_put(procs, text);
    return pid;
}

static void assert_killed(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_kill_v1(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    folder_put("k/freezer/g/freezer.state", "THAWED");
    folder_put("k/cpu/g/cpu.cfs_quota_us", "100000");
    folder_put("k/cpu/g/below/cpu.cfs_quota_us", "50000");
    const pid_t pid = member_start("k/memory/g/cgroup.procs");
    const pid_t below = member_start("k/memory/g/below/cgroup.procs");
    assert_int_equal(
        cgroup_layout_read(mountinfo("31 22 0:27 / @/k/memory rw - cgroup cgroup rw,memory\n"
                                     "32 22 0:28 / @/k/cpu rw - cgroup cgroup rw,cpu\n"
                                     "33 22 0:29 / @/k/freezer rw - cgroup cgroup rw,freezer\n"),
                           &layout, NULL),
        0);
    cgroup_kill(&layout, "/g");
    assert_killed(pid);
    assert_killed(below);
    assert_file("k/cpu/g/cpu.cfs_quota_us", "-10000"); /* no true file: what was longer stays */
    assert_file("k/cpu/g/below/cpu.cfs_quota_us", "-1000");
    assert_file("k/freezer/g/freezer.state", "THAWED");
}

static void test_kill_v2(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    const char *lines = "30 22 0:26 / @/k2 rw - cgroup2 cgroup2 rw\n";
    folder_put("k2/cgroup.controllers", "cpu memory pids\n");
    folder_put("k2/g/cgroup.freeze", "0");
    char events[300];
    const int known = snprintf(events, sizeof events, "populated 1\nfrozen 1\n");
    memset(events + known, 'x', sizeof events - 1 - (size_t)known); /* of later kernels */
    events[sizeof events - 1] = '\0';
    folder_put("k2/g/cgroup.events", events);
    folder_put("k2/g/cpu.max", "100 100");
    const pid_t pid = member_start("k2/g/cgroup.procs");
    assert_int_equal(cgroup_layout_read(mountinfo(lines), &layout, NULL), 0);
    cgroup_kill(&layout, "/g"); /* a kernel without cgroup.kill */
    assert_killed(pid);
    assert_file("k2/g/cgroup.freeze", "0");
    assert_file("k2/g/cpu.max", "max 100");
    folder_put("k2/g/cgroup.kill", "0");
    folder_put("k2/g/cgroup.freeze", "-");
    cgroup_kill(&layout, "/g");
    assert_file("k2/g/cgroup.kill", "1");
    assert_file("k2/g/cgroup.freeze", "-");
}

/* Not frozen, a listed pid may be somebody else's by now: it is left alone. */
static void test_kill_of_strangers(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    const pid_t pid = member_start("k3/g/cgroup.procs");
    assert_int_equal(
        cgroup_layout_read(mountinfo("31 22 0:27 / @/k3 rw - cgroup cgroup rw,memory\n"), &layout,
                           NULL),
        0);
    cgroup_kill(&layout, "/g");
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGKILL);
    assert_killed(pid);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kill_v1),
    cmocka_unit_test(test_kill_v2),
    cmocka_unit_test(test_kill_of_strangers),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
