/* What the local engine learns of a machine: control groups, users, GPUs, logs; from fixtures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/cdi.h"
#include "engine/local/cgroup.h"
#include "engine/local/inventory.h"
#include "engine/local/local.h"
#include "engine/local/log_watch.h"
#include "engine/local/logs.h"
#include "engine/local/nvml.h"
#include "engine/local/runtime.h"
#include "engine/local/sealed.h"
#include "engine/local/topology.h"
#include "engine/local/user.h"
#include "sys/file.h"
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[200];

static const char *place(const char *name)
{
    static char paths[8][400];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    char directory[400];
    struct err err = {0};
    snprintf(directory, sizeof directory, "%s", place(name));
    *strrchr(directory, '/') = 0;
    assert_int_equal(dir_make(directory, 0755, &err), 0);
    assert_int_equal(file_write(place(name), text_of(text), 0644, &err), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/skep-test-engine-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return tree_remove(folder, NULL);
}

/* --- control groups --- */

static struct text mountinfo(const char *lines)
{
    static char text[4096];
    size_t used = 0;
    for (const char *at = lines; *at; at++) /* '@' stands for the folder */
        if (*at == '@')
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", folder);
        else
            text[used++] = *at;
    return (struct text){text, used};
}

static void test_layout_v2(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    char path[CGROUP_PATH_MAX];
    put("v2/cgroup.controllers", "cpuset cpu io memory pids\n");
    struct text info =
        mountinfo("22 1 0:20 / / rw - ext4 /dev/vda rw\n"
                  "30 22 0:26 / @/v2 rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    assert_int_equal(cgroup_layout_read(info, &layout, NULL), 0);
    assert_int_equal(layout.kind, CGROUP_V2);
    assert_true(layout.has_swap);
    assert_false(layout.has_hybrid_controllers);
    assert_true(cgroup_path(&layout, "memory", "/skep/1", path));
    assert_string_equal(path, place("v2/skep/1"));
}

static void test_layout_hybrid(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    char path[CGROUP_PATH_MAX];
    put("unified/cgroup.controllers", "\n");
    put("memory/memory.memsw.limit_in_bytes", "0\n");
    const char *lines = "30 22 0:26 / @/unified rw - cgroup2 cgroup2 rw\n"
                        "31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
                        "32 22 0:28 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                        "33 22 0:29 / @/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
    assert_int_equal(cgroup_layout_read(mountinfo(lines), &layout, NULL), 0);
    assert_int_equal(layout.kind, CGROUP_HYBRID);
    assert_false(layout.has_hybrid_controllers); /* systemd's own: crun takes it */
    assert_true(layout.has_swap);
    assert_true(cgroup_path(&layout, "cpuacct", "/g", path));
    assert_string_equal(path, place("cpu/g"));
    assert_false(cgroup_path(&layout, "pids", "/g", path));
    put("unified/cgroup.controllers", "hugetlb\n");
    assert_int_equal(cgroup_layout_read(mountinfo(lines), &layout, NULL), 0);
    assert_true(layout.has_hybrid_controllers);
    assert_string_equal(layout.hybrid_mount, place("unified"));
}

static void test_layout_v1_and_none(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    struct err err = {0};
    unlink(place("memory/memory.memsw.limit_in_bytes"));
    assert_int_equal(
        cgroup_layout_read(mountinfo("31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"),
                           &layout, NULL),
        0);
    assert_int_equal(layout.kind, CGROUP_V1);
    assert_false(layout.has_swap);
    /* as systemd mounts its own tree where there is no v2 at all */
    assert_int_equal(
        cgroup_layout_read(
            mountinfo("31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
                      "33 22 0:29 / @/systemd rw - cgroup cgroup rw,xattr,"
                      "release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd\n"),
            &layout, NULL),
        0);
    assert_int_equal(layout.tree_count, 2);
    char path[CGROUP_PATH_MAX];
    assert_true(cgroup_path(&layout, "name=systemd", "/g", path));
    assert_string_equal(path, place("systemd/g"));
    assert_int_equal(
        cgroup_layout_read(mountinfo("1 0 0:1 / / rw - ext4 /dev/x rw\n"), &layout, &err),
        ERR_UNSUPPORTED);
    assert_int_equal(cgroup_layout_read((struct text){"", 0}, &layout, &err), ERR_UNSUPPORTED);
}

static void assert_file(const char *name, const char *wanted)
{
    struct buf text = BUF_INIT;
    assert_int_equal(file_read(place(name), 100, &text, NULL), 0);
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
    put(procs, text);
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
    put("k/freezer/g/freezer.state", "THAWED");
    put("k/cpu/g/cpu.cfs_quota_us", "100000");
    put("k/cpu/g/below/cpu.cfs_quota_us", "50000");
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
    put("k2/cgroup.controllers", "cpu memory pids\n");
    put("k2/g/cgroup.freeze", "0");
    put("k2/g/cgroup.events", "populated 1\nfrozen 1\n");
    put("k2/g/cpu.max", "100 100");
    const pid_t pid = member_start("k2/g/cgroup.procs");
    assert_int_equal(cgroup_layout_read(mountinfo(lines), &layout, NULL), 0);
    cgroup_kill(&layout, "/g"); /* a kernel without cgroup.kill */
    assert_killed(pid);
    assert_file("k2/g/cgroup.freeze", "0");
    assert_file("k2/g/cpu.max", "max 100");
    put("k2/g/cgroup.kill", "0");
    put("k2/g/cgroup.freeze", "-");
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

static void test_stats_of_fixtures(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    struct engine_stats stats;
    put("v2/cgroup.controllers", "cpu memory\n");
    put("v2/g/cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
    put("v2/g/memory.current", "4096\n");
    put("v2/g/io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n");
    put("v2/g/pids.current", "3\n");
    put("v2/g/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\n");
    cgroup_layout_read(mountinfo("30 22 0:26 / @/v2 rw - cgroup2 cgroup2 rw\n"), &layout, NULL);
    assert_int_equal(cgroup_stats(&layout, "/g", &stats, NULL), 0);
    assert_int_equal(stats.cpu_ns, 1500000);
    assert_int_equal(stats.memory_bytes, 4096);
    assert_int_equal(stats.io_read_bytes, 11);
    assert_int_equal(stats.io_write_bytes, 22);
    assert_int_equal(stats.pids, 3);
    struct cgroup_oom oom;
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_int_equal(oom.kills, 1);
    assert_true(oom.is_limit);
    put("v2/g/memory.events", "low 0\nhigh 0\nmax 4\noom 0\noom_kill 2\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_int_equal(oom.kills, 2);
    assert_false(oom.is_limit);
    assert_false(cgroup_oom_read(&layout, "/none", &oom));
    assert_int_equal(oom.kills, 0);
    assert_int_equal(cgroup_stats(&layout, "/none", &stats, NULL), ERR_NOT_FOUND);
    put("memory/g/memory.usage_in_bytes", "8192\n");
    put("memory/g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    put("cpu/g/cpuacct.usage", "77\n");
    cgroup_layout_read(mountinfo("31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
                                 "32 22 0:28 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"),
                       &layout, NULL);
    assert_int_equal(cgroup_stats(&layout, "/g", &stats, NULL), 0);
    assert_int_equal(stats.cpu_ns, 77);
    assert_int_equal(stats.memory_bytes, 8192);
    put("memory/g/memory.failcnt", "0\n");
    put("memory/g/memory.memsw.failcnt", "0\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_int_equal(oom.kills, 3);
    assert_false(oom.is_limit);
    put("memory/g/memory.limit_in_bytes", "33554432\n");
    put("memory/g/memory.max_usage_in_bytes", "30000000\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_false(oom.is_limit);
    put("memory/g/memory.max_usage_in_bytes", "33554000\n"); /* Linux 6.18 */
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_true(oom.is_limit);
    put("memory/g/memory.max_usage_in_bytes", "30000000\n");
    put("memory/g/memory.failcnt", "17\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_true(oom.is_limit);
}

/* --- users --- */

static void test_users(void **state)
{
    (void)state;
    struct user user;
    struct err err = {0};
    put("root/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nbroken line\n"
                           "ann:x:1000:1001:,,,:/home/ann:/bin/sh\n");
    put("root/etc/group", "root:x:0:\nvideo:x:44:ann,bob\nann:x:1001:\nusers:x:100:bob,ann\n");
    const char *root = place("root");
    assert_int_equal(user_find(root, "", &user, &err), 0);
    assert_int_equal(user.uid, 0);
    assert_string_equal(user.home, "/root");
    assert_int_equal(user_find(root, "ann", &user, &err), 0);
    assert_int_equal(user.uid, 1000);
    assert_int_equal(user.gid, 1001);
    assert_int_equal(user.group_count, 2);
    assert_int_equal(user.groups[0], 44);
    assert_int_equal(user.groups[1], 100);
    assert_string_equal(user.home, "/home/ann");
    assert_int_equal(user_find(root, "1000", &user, &err), 0);
    assert_int_equal(user.gid, 1001);
    assert_int_equal(user_find(root, "4242", &user, &err), 0); /* a number need not be known */
    assert_int_equal(user.uid, 4242);
    assert_int_equal(user.gid, 0);
    assert_string_equal(user.home, "/");
    assert_int_equal(user_find(root, "ann:video", &user, &err), 0);
    assert_int_equal(user.gid, 44);
    assert_int_equal(user_find(root, "5:6", &user, &err), 0);
    assert_int_equal(user.gid, 6);
    assert_int_equal(user_find(root, "nobody", &user, &err), ERR_NOT_FOUND);
    assert_int_equal(user_find(root, "ann:nogroup", &user, &err), ERR_NOT_FOUND);
    assert_int_equal(user_find(place("empty"), "0", &user, &err), 0);
}

/* A link in the image does not lead out of it. */
static void test_user_link(void **state)
{
    (void)state;
    struct user user;
    put("link/outside/passwd", "spy:x:7:7::/:/bin/sh\n");
    put("link/inside/etc/x", "");
    put("link/inside/real/passwd", "eve:x:8:8::/:/bin/sh\n");
    unlink(place("link/inside/etc/passwd"));
    assert_int_equal(symlink("../../outside/passwd", place("link/inside/etc/passwd")), 0);
    assert_int_equal(user_find(place("link/inside"), "spy", &user, NULL), ERR_NOT_FOUND);
    unlink(place("link/inside/etc/passwd"));
    assert_int_equal(symlink("/real/passwd", place("link/inside/etc/passwd")), 0);
    assert_int_equal(user_find(place("link/inside"), "eve", &user, NULL), 0);
    unlink(place("link/inside/real/passwd"));
    assert_int_equal(mkfifo(place("link/inside/real/passwd"), 0644), 0);
    assert_int_equal(user_find(place("link/inside"), "eve", &user, NULL), ERR_INVALID);
}

/* --- removal --- */

/* A few levels go by hand, more by nftw; nobody follows a link. */
static void test_tree_removal(void **state)
{
    (void)state;
    struct err err = {0};
    char deep[300] = "tree";
    for (int levels = 1; levels <= 24; levels++) {
        size_t used = strlen(deep);
        snprintf(deep + used, sizeof deep - used, "/%d/file", levels);
        put("kept/inside", "");
        put("tree/other", "");
        put(deep, "");
        *strrchr(deep, '/') = 0;
        assert_int_equal(symlink("../kept", place("tree/link")), 0);
        assert_int_equal(symlink("nowhere", place("tree/dangling")), 0);
        assert_int_equal(mkdir(place("tree/empty"), 0), 0);
        assert_int_equal(mkfifo(place("tree/fifo"), 0600), 0);
        assert_int_equal(tree_remove(place("tree"), &err), 0);
        assert_int_equal(access(place("tree"), F_OK), -1);
        assert_int_equal(access(place("kept/inside"), F_OK), 0);
    }
    assert_int_equal(tree_remove(place("tree"), &err), 0); /* it was not there */
    assert_int_equal(symlink("kept", place("to-kept")), 0);
    assert_int_equal(tree_remove(place("to-kept"), &err), 0);
    assert_int_equal(tree_remove(place("kept/inside"), &err), 0);
    assert_int_equal(access(place("kept/inside"), F_OK), -1);
    assert_int_equal(access(place("kept"), F_OK), 0);
}

/* --- a program in memory --- */

/* Deeper than any path is long. */
static void test_deep_tree_removal(void **state)
{
    (void)state;
    enum { LEVELS = 3000 };
    struct err err = {0};
    assert_int_equal(mkdir(place("deep"), 0755), 0);
    int fd = open(place("deep"), O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < LEVELS; i++) {
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        assert_int_equal(symlinkat("/etc", fd, "link"), 0);
        int below = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = below;
    }
    close(fd);
    if (tree_remove(place("deep"), &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(access(place("deep"), F_OK), -1);
    assert_int_equal(tree_remove(place("deep"), &err), 0);
}

static void test_sealed(void **state)
{
    (void)state;
    struct err err = {0};
    if (access("/sys/fs/selinux/enforce", F_OK) == 0) { /* refused, as the header says */
        assert_int_equal(sealed_make("/bin/true", place("copy"), &err), ERR_UNSUPPORTED);
        return;
    }
    put("copy", "what a killed server left\n");
    put("good", "#!/bin/sh\necho \"$1\" > \"$(dirname \"$0\")/asked\"\n");
    assert_int_equal(chmod(place("good"), 0755), 0);
    int fd = sealed_make(place("good"), place("copy"), &err);
    assert_true(fd >= 0);
    struct buf asked = BUF_INIT;
    assert_int_equal(file_read(place("asked"), 100, &asked, &err), 0);
    assert_string_equal(buf_cstr(&asked), "--version\n");
    buf_release(&asked);
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    assert_int_equal(fcntl(fd, F_GET_SEALS), seals);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    int write_fd = open(place("copy"), O_RDWR | O_CLOEXEC);
    assert_true(write_fd < 0 || write(write_fd, "x", 1) < 0);
    if (write_fd >= 0)
        close(write_fd);
    close(fd);
    assert_int_equal(access(place("copy"), X_OK), -1);
}

static void test_sealed_refused(void **state)
{
    (void)state;
    struct err err = {0};
    struct stat stat;
    put("bad", "#!/bin/sh\nexit 3\n");
    assert_int_equal(chmod(place("bad"), 0755), 0);
    assert_int_equal(sealed_make(place("bad"), place("no-copy"), &err), ERR_UNSUPPORTED);
    assert_int_equal(lstat(place("no-copy"), &stat), -1);
    put("huge", "");
    assert_int_equal(truncate(place("huge"), SEALED_BYTES_MAX + 1), 0);
    assert_true(sealed_make(place("huge"), place("no-copy"), &err) < 0);
    assert_true(sealed_make(place("missing"), place("no-copy"), &err) < 0);
    assert_int_equal(lstat(place("no-copy"), &stat), -1);
}

/* --- logs --- */

static void test_log_segments(void **state)
{
    (void)state;
    struct log_part part;
    char text[32];
    uint64_t offset = 0;
    put("log/all.000000000000010", "0123456789");
    put("log/all.000000000000020", "abcdef");
    put("log/all.20", "not a segment");
    put("log/stdout.000000000000000", "x");
    const char *log = place("log");
    /* what came before 10 is gone */
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, 4, &part, NULL), 4);
    assert_int_equal(offset, 10);
    assert_int_equal(part.begin, 10);
    assert_int_equal(part.end, 26);
    assert_memory_equal(text, "0123", 4);
    offset = 18;
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, sizeof text, &part, NULL), 2);
    offset = 20;
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, sizeof text, &part, NULL), 6);
    offset = 26;
    assert_int_equal(logs_read(log, LOG_ALL, &offset, text, sizeof text, &part, NULL), 0);
    offset = 5;
    assert_int_equal(logs_read(log, LOG_STDERR, &offset, text, sizeof text, &part, NULL), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(logs_read(place("nolog"), LOG_ALL, &offset, text, 1, &part, NULL),
                     ERR_NOT_FOUND);
}

static void test_log_tail(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    put("tail/all.000000000000000", "one\ntwo\nthree\n");
    logs_tail(place("tail"), LOG_ALL, 1000, &out);
    assert_string_equal(buf_cstr(&out), "one\ntwo\nthree\n");
    buf_clear(&out);
    logs_tail(place("tail"), LOG_ALL, 8, &out); /* from the begin of a line */
    assert_string_equal(buf_cstr(&out), "three\n");
    buf_clear(&out);
    logs_tail(place("tail"), LOG_RUNTIME, 8, &out);
    assert_int_equal(out.length, 0);
    buf_release(&out);
}

static void test_log_links(void **state)
{
    (void)state;
    struct log_part part;
    char text[32];
    uint64_t offset = 0;
    put("links/stderr.000000000000000", "x");
    assert_int_equal(symlink("/etc/passwd", place("links/all.000000000000000")), 0);
    assert_int_equal(mkfifo(place("links/stdout.000000000000000"), 0600), 0);
    assert_int_equal(logs_read(place("links"), LOG_ALL, &offset, text, 9, &part, NULL), 0);
    assert_int_equal(logs_read(place("links"), LOG_STDOUT, &offset, text, 9, &part, NULL), 0);
    assert_int_equal(part.end, 0);
}

/* How many inotify instances we hold, and how many watches are in them. */
static void inotify_count(size_t *instances, size_t *watches)
{
    *instances = *watches = 0;
    for (int fd = 0; fd < 4096; fd++) {
        char path[64];
        struct buf text = BUF_INIT;
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
        struct text rest;
        if (file_read(path, 1 << 20, &text, NULL) == 0) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            char target[64] = "";
            if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "inotify"))
                ++*instances;
            for (rest = buf_as_text(&text); rest.length;)
                *watches += text_starts(text_cut(&rest, '\n'), TEXT("inotify wd:"));
        }
        buf_release(&text);
    }
}

static void assert_awake(int fd, bool is_awake)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, is_awake ? 10000 : 0), is_awake);
}

static void append(const char *name)
{
    int fd = open(place(name), O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static void test_log_watch(void **state)
{
    (void)state;
    struct err err = {0};
    char byte[8];
    put("watch/all.000000000000000", "");
    put("watch2/all.000000000000000", "");
    struct log_watch *watch = log_watch_new(&err);
    assert_non_null(watch);
    const int first = log_watch_add(watch, place("watch"), &err);
    const int second = log_watch_add(watch, place("watch"), &err);
    const int other = log_watch_add(watch, place("watch2"), &err);
    assert_true(first >= 0 && second >= 0 && other >= 0);
    assert_awake(first, false);
    append("watch/all.000000000000000");
    assert_awake(first, true);
    assert_awake(second, true);
    assert_awake(other, false);
    close(first);
    assert_int_equal(read(second, byte, sizeof byte) > 0, true);
    append("watch/all.000000000000000");
    assert_awake(second, true);
    assert_int_equal(log_watch_add(watch, place("nowhere"), &err), ERR_NOT_FOUND);
    close(second);
    close(other);
    log_watch_free(watch);
}

/* Root has 128 inotify instances for all of its programs. */
static void test_log_watch_of_many(void **state)
{
    (void)state;
    enum { FOLLOWERS = 500, FOLDERS = 50 };
    int fds[FOLLOWERS];
    char name[64];
    struct err err = {0};
    size_t instances, watches, instances_before, watches_before;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    inotify_count(&instances_before, &watches_before);
    struct log_watch *watch = log_watch_new(&err);
    assert_non_null(watch);
    for (int i = 0; i < FOLLOWERS; i++) {
        snprintf(name, sizeof name, "many/%d/all.000000000000000", i % FOLDERS);
        if (i < FOLDERS)
            put(name, "");
        snprintf(name, sizeof name, "many/%d", i % FOLDERS);
        fds[i] = log_watch_add(watch, place(name), &err);
        assert_true(fds[i] >= 0);
    }
    inotify_count(&instances, &watches);
    assert_int_equal(instances - instances_before, 1);
    assert_int_equal(watches - watches_before, FOLDERS);
    append("many/7/all.000000000000000");
    for (int i = 7; i < FOLLOWERS; i += FOLDERS)
        assert_awake(fds[i], true);
    for (int i = 0; i < FOLLOWERS; i++)
        close(fds[i]);
    while (watches > watches_before) /* with the last reader goes the watch of a folder */
        inotify_count(&instances, &watches);
    log_watch_free(watch);
}

/* --- GPUs --- */

static void test_topology(void **state)
{
    (void)state;
    struct topology_place places[] = {{.bus_id = "00000000:05:00.0"},
                                      {.bus_id = "00000000:06:00.0"},
                                      {.bus_id = "00000000:85:00.0"},
                                      {.bus_id = "00000000:95:00.0"},
                                      {.bus_id = "nonsense"}};
    assert_int_equal(topology_places(TOPOLOGY_XML, places, COUNT_OF(places), NULL), 0);
    assert_int_equal(places[0].numa, 0);
    assert_int_equal(places[1].numa, 0);
    assert_int_equal(places[2].numa, 1);
    assert_int_equal(places[3].numa, 1);
    assert_int_equal(places[0].pci_switch, places[1].pci_switch);
    assert_int_not_equal(places[0].pci_switch, places[2].pci_switch);
    assert_int_not_equal(places[2].pci_switch, places[3].pci_switch);
    assert_int_equal(places[4].numa, TOPOLOGY_UNKNOWN);
    assert_int_equal(places[4].pci_switch, TOPOLOGY_UNKNOWN);
    assert_int_equal(topology_places("/no/such.xml", places, 1, NULL), ERR_IO);
}

static const char specification[] =
    "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\n"
    "devices:\n"
    "- name: '0'\n  containerEdits: {deviceNodes: [{path: /dev/null}], env: [ONE=1]}\n"
    "- name: '1'\n  containerEdits: {deviceNodes: [{path: /dev/gpu1, hostPath: /dev/zero, "
    "permissions: rw}]}\n"
    "- name: gone\n  containerEdits: {deviceNodes: [{path: /dev/no-such-device}]}\n"
    "containerEdits:\n  env: [ALL=yes]\n"
    "  deviceNodes: [{path: /dev/nvidiactl, type: c, major: 195, minor: 255}]\n"
    "  mounts: [{hostPath: /usr/lib/libcuda.so, containerPath: /usr/lib/libcuda.so, "
    "options: [ro, nosuid]}]\n"
    "  hooks: [{hookName: createContainer, path: /bin/hook, args: [hook, ldcache]}]\n";

static void test_cdi(void **state)
{
    (void)state;
    struct cdi cdi = {0};
    struct arena arena;
    struct device_edits edits;
    struct err err = {0};
    arena_init(&arena);
    put("cdi/b.yaml", specification);
    put("cdi/a.json", "{\"cdiVersion\":\"0.5.0\",\"kind\":\"amd.com/gpu\",\"devices\":[{\"name\":"
                      "\"0\",\"containerEdits\":{}}]}");
    put("cdi/broken.json", "{");
    put("cdi/other.txt", "{}");
    const char *directories[] = {"/no/such/folder", place("cdi")};
    cdi_load(&cdi, directories, 2, &arena);
    assert_int_equal(cdi.count, 4);
    const struct cdi_device *both[] = {cdi_find(&cdi, "nvidia.com/gpu", "0"),
                                       cdi_find(&cdi, "nvidia.com/gpu", "1")};
    assert_null(cdi_find(&cdi, "nvidia.com/gpu", "7"));
    assert_int_equal(cdi_edits(both, 2, &arena, &edits, &err), 0);
    assert_int_equal(edits.device_count, 3); /* the common ones once */
    assert_string_equal(edits.devices[0].path, "/dev/nvidiactl");
    assert_int_equal(edits.devices[0].major, 195);
    assert_string_equal(edits.devices[2].path, "/dev/gpu1");
    assert_int_equal(edits.devices[2].major, 1); /* of /dev/zero */
    assert_int_equal(edits.devices[2].minor, 5);
    assert_string_equal(edits.devices[2].access, "rw");
    assert_int_equal(edits.env_count, 2);
    assert_int_equal(edits.mount_count, 1);
    assert_int_equal(edits.mounts[0].option_count, 3);
    assert_string_equal(edits.mounts[0].options[2], "rbind");
    assert_int_equal(edits.hook_count, 1);
    assert_string_equal(edits.hooks[0].args[1], "ldcache");
    const struct cdi_device *gone = cdi_find(&cdi, "nvidia.com/gpu", "gone");
    assert_int_equal(cdi_edits(&gone, 1, &arena, &edits, &err), ERR_NOT_FOUND);
    assert_int_equal(cdi_parse(&cdi, TEXT("kind: x\n"), &arena, &err), ERR_INVALID);
    cdi_release(&cdi);
    arena_release(&arena);
}

static struct engine_local_config inventory_config(void)
{
    static const char *directories[1];
    directories[0] = place("cdi-none");
    return (struct engine_local_config){.node_name = "n1",
                                        .address = "10.0.0.1",
                                        .cpu = 8,
                                        .memory_mib = 1000,
                                        .simulated_gpu_type = "",
                                        .nvml_path = "libno-such-nvml.so",
                                        .topology_path = "",
                                        .cdi_directories = directories,
                                        .cdi_directory_count = 1};
}

static void test_inventory_without_gpus(void **state)
{
    (void)state;
    struct engine_local_config config = inventory_config();
    config.cpu = 0;
    config.memory_mib = 0;
    config.node_name = config.address = "";
    struct inventory *inventory = inventory_new(&config);
    const struct node_facts *node = inventory_node(inventory);
    assert_true(node->cpu >= 1);
    assert_true(node->memory_mib > 64);
    struct sysinfo info; /* the machine keeps a share */
    assert_int_equal(sysinfo(&info), 0);
    uint64_t total_mib = (uint64_t)info.totalram * info.mem_unit >> 20;
    assert_true(node->memory_mib < total_mib);
    assert_true(node->memory_mib + 2048 >= total_mib || node->memory_mib >= total_mib / 16 * 15);
    assert_true(node->name[0] && node->address[0]);
    assert_int_equal(node->gpu_count, 0);
    assert_true(node->is_healthy);
    inventory_free(inventory);
}

static void test_inventory_simulated(void **state)
{
    (void)state;
    struct engine_local_config config = inventory_config();
    struct arena arena;
    struct device_edits edits;
    const uint16_t gpus[] = {0, 3};
    struct container container = {.gpus = gpus, .gpu_count = 2};
    config.simulated_gpus = 4;
    config.simulated_gpu_type = "K80";
    arena_init(&arena);
    struct inventory *inventory = inventory_new(&config);
    assert_int_equal(inventory_node(inventory)->gpu_count, 4);
    assert_true(inventory_node(inventory)->is_gpu_simulated);
    assert_string_equal(inventory_node(inventory)->gpu_type, "K80");
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, NULL), 0);
    assert_int_equal(edits.device_count, 0);
    const uint16_t beyond[] = {4};
    container = (struct container){.gpus = beyond, .gpu_count = 1};
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, NULL), ERR_NOT_FOUND);
    inventory_free(inventory);
    arena_release(&arena);
}

static void test_inventory_nvidia(void **state)
{
    (void)state;
    struct engine_local_config config = inventory_config();
    struct arena arena;
    struct device_edits edits;
    struct err err = {0};
    const uint16_t gpus[] = {1};
    struct container container = {.gpus = gpus, .gpu_count = 1};
    config.nvml_path = FAKE_NVML;
    config.topology_path = TOPOLOGY_XML;
    arena_init(&arena);
    struct inventory *inventory = inventory_new(&config);
    const struct node_facts *node = inventory_node(inventory);
    assert_int_equal(node->gpu_count, 4);
    assert_false(node->is_gpu_simulated);
    assert_string_equal(node->gpu_type, "Test-V100-16GB");
    assert_int_equal(node->gpu_numa[0], 0);
    assert_int_equal(node->gpu_numa[3], 1);
    assert_int_equal(node->gpu_switch[0], node->gpu_switch[1]);
    /* no specification, and no such device file on this machine */
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/dev/nvidia1"));
    inventory_free(inventory);
    put("cdi-nvidia/nvidia.yaml", specification);
    config.cdi_directories = (const char *[]){place("cdi-nvidia")};
    inventory = inventory_new(&config);
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, &err), 0);
    assert_int_equal(edits.device_count, 2);
    inventory_free(inventory);
    /* the specification alone numbers two */
    config.nvml_path = "libno-such-nvml.so";
    inventory = inventory_new(&config);
    assert_int_equal(inventory_node(inventory)->gpu_count, 2);
    inventory_free(inventory);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_v2),
        cmocka_unit_test(test_layout_hybrid),
        cmocka_unit_test(test_layout_v1_and_none),
        cmocka_unit_test(test_kill_v1),
        cmocka_unit_test(test_kill_v2),
        cmocka_unit_test(test_kill_of_strangers),
        cmocka_unit_test(test_stats_of_fixtures),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_user_link),
        cmocka_unit_test(test_tree_removal),
        cmocka_unit_test(test_deep_tree_removal),
        cmocka_unit_test(test_sealed),
        cmocka_unit_test(test_sealed_refused),
        cmocka_unit_test(test_log_segments),
        cmocka_unit_test(test_log_tail),
        cmocka_unit_test(test_log_links),
        cmocka_unit_test(test_log_watch),
        cmocka_unit_test(test_log_watch_of_many),
        cmocka_unit_test(test_topology),
        cmocka_unit_test(test_cdi),
        cmocka_unit_test(test_inventory_without_gpus),
        cmocka_unit_test(test_inventory_simulated),
        cmocka_unit_test(test_inventory_nvidia),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
