/* The layouts of control groups, and what is read from them; from fixtures. */
#include "machine.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/local/cgroup.h"
#include "sys/file.h"

static void test_layout_v2(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    char path[CGROUP_PATH_MAX];
    folder_put("v2/cgroup.controllers", "cpuset cpu io memory pids\n");
    struct text info =
        mountinfo("22 1 0:20 / / rw - ext4 /dev/vda rw\n"
                  "30 22 0:26 / @/v2 rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    assert_int_equal(cgroup_layout_read(info, &layout, NULL), 0);
    assert_int_equal(layout.kind, CGROUP_V2);
    assert_true(layout.has_swap);
    assert_false(layout.has_hybrid_controllers);
    assert_true(cgroup_path(&layout, "memory", "/skep/1", path));
    assert_string_equal(path, in_folder("v2/skep/1"));
}

static void test_layout_hybrid(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    char path[CGROUP_PATH_MAX];
    folder_put("unified/cgroup.controllers", "\n");
    folder_put("memory/memory.memsw.limit_in_bytes", "0\n");
    const char *lines = "30 22 0:26 / @/unified rw - cgroup2 cgroup2 rw\n"
                        "31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
                        "32 22 0:28 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                        "33 22 0:29 / @/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
    assert_int_equal(cgroup_layout_read(mountinfo(lines), &layout, NULL), 0);
    assert_int_equal(layout.kind, CGROUP_HYBRID);
    assert_false(layout.has_hybrid_controllers); /* systemd's own: crun takes it */
    assert_true(layout.has_swap);
    assert_true(cgroup_path(&layout, "cpuacct", "/g", path));
    assert_string_equal(path, in_folder("cpu/g"));
    assert_false(cgroup_path(&layout, "pids", "/g", path));
    folder_put("unified/cgroup.controllers", "hugetlb\n");
    assert_int_equal(cgroup_layout_read(mountinfo(lines), &layout, NULL), 0);
    assert_true(layout.has_hybrid_controllers);
    assert_string_equal(layout.hybrid_mount, in_folder("unified"));
}

static void test_layout_v1_and_none(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    struct err err = {0};
    unlink(in_folder("memory/memory.memsw.limit_in_bytes"));
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
    assert_string_equal(path, in_folder("systemd/g"));
    assert_int_equal(
        cgroup_layout_read(mountinfo("1 0 0:1 / / rw - ext4 /dev/x rw\n"), &layout, &err),
        ERR_UNSUPPORTED);
    assert_int_equal(cgroup_layout_read((struct text){"", 0}, &layout, &err), ERR_UNSUPPORTED);
}

static void test_stats_of_fixtures(void **state)
{
    (void)state;
    struct cgroup_layout layout;
    struct engine_stats stats;
    folder_put("v2/cgroup.controllers", "cpu memory\n");
    folder_put("v2/g/cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
    folder_put("v2/g/memory.current", "4096\n");
    folder_put("v2/g/io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n");
    folder_put("v2/g/pids.current", "3\n");
    folder_put("v2/g/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\n");
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
    folder_put("v2/g/memory.events", "low 0\nhigh 0\nmax 4\noom 0\noom_kill 2\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_int_equal(oom.kills, 2);
    assert_false(oom.is_limit);
    assert_false(cgroup_oom_read(&layout, "/none", &oom));
    assert_int_equal(oom.kills, 0);
    assert_int_equal(cgroup_stats(&layout, "/none", &stats, NULL), ERR_NOT_FOUND);
    folder_put("memory/g/memory.usage_in_bytes", "8192\n");
    folder_put("memory/g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    folder_put("cpu/g/cpuacct.usage", "77\n");
    cgroup_layout_read(mountinfo("31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
                                 "32 22 0:28 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"),
                       &layout, NULL);
    assert_int_equal(cgroup_stats(&layout, "/g", &stats, NULL), 0);
    assert_int_equal(stats.cpu_ns, 77);
    assert_int_equal(stats.memory_bytes, 8192);
    folder_put("memory/g/memory.failcnt", "0\n");
    folder_put("memory/g/memory.memsw.failcnt", "0\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_int_equal(oom.kills, 3);
    assert_false(oom.is_limit);
    folder_put("memory/g/memory.limit_in_bytes", "33554432\n");
    folder_put("memory/g/memory.max_usage_in_bytes", "30000000\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_false(oom.is_limit);
    folder_put("memory/g/memory.max_usage_in_bytes", "33554000\n"); /* Linux 6.18 */
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_true(oom.is_limit);
    folder_put("memory/g/memory.max_usage_in_bytes", "30000000\n");
    folder_put("memory/g/memory.failcnt", "17\n");
    assert_true(cgroup_oom_read(&layout, "/g", &oom));
    assert_true(oom.is_limit);
}

/* Lines of /proc/PID/cgroup name our group or one below it, and no neighbour that looks like it. */
static void test_lines_name(void **state)
{
    (void)state;
    struct cgroup_layout v1, shared;
    folder_put("memory/tasks", "");
    assert_int_equal(
        cgroup_layout_read(mountinfo("31 22 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
                                     "32 22 0:28 / @/cpu rw - cgroup cgroup rw,cpu\n"),
                           &v1, NULL),
        0);
    assert_int_equal(
        cgroup_layout_read(mountinfo("31 22 0:27 /docker/1 @/memory rw - cgroup cgroup "
                                     "rw,memory\n"),
                           &shared, NULL),
        0);
    const struct {
        const char *lines;
        bool is_in, is_in_shared;
    } cases[] = {
        {"9:cpu,cpuacct:/\n4:memory:/skep/1a/17\n", true, false},
        {"4:memory:/skep/1a/17/below\n3:cpu:/\n", true, false},
        {"0::/skep/1a/17", true, false},
        {"4:memory:/docker/1/skep/1a/17\n", false, true},
        {"4:memory:/docker/1/skep/1a/17/below\n", false, true},
        {"4:memory:/docker/12/skep/1a/17\n", false, false},
        {"4:memory:/skep/1a/177\n", false, false},
        {"4:memory:/skep/1a/1\n", false, false},
        {"4:memory:/other/skep/1a/17\n", false, false},
        {"4:memory:/docker/1/other/skep/1a/17\n", false, false},
        {"4:/skep/1a/17:/\n", false, false},
        {"4:name=/skep/1a/17\n", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text lines = text_of(cases[i].lines);
        if (cgroup_lines_name(&v1, "/skep/1a/17", lines) != cases[i].is_in ||
            cgroup_lines_name(&shared, "/skep/1a/17", lines) != cases[i].is_in_shared)
            fail_msg("%s", cases[i].lines);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layout_v2),          cmocka_unit_test(test_layout_hybrid),
    cmocka_unit_test(test_layout_v1_and_none), cmocka_unit_test(test_stats_of_fixtures),
    cmocka_unit_test(test_lines_name),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
