/* What a task may take of its machine, and what was refused to it. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "engine/local/cgroup.h"
#include "engine/local/limits.h"
#include "sys/file.h"

static void test_pids(void **state)
{
    (void)state;
    /* all tasks of a machine together have one half of what it has */
    assert_int_equal(limit_pids(32768, 8, 1), 2048);
    assert_int_equal(limit_pids(32768, 8, 8), 16384);
    assert_int_equal(limit_pids(32768, 8, 0), 16384);
    assert_int_equal(limit_pids(32768, 8, 9), 16384);
    assert_int_equal(limit_pids(32768, 0, 0), 16384);
    /* a small share of a machine with many processors is enough for an interpreter */
    assert_int_equal(limit_pids(32768, 128, 1), LIMIT_PIDS_MIN);
    assert_int_equal(limit_pids(4194304, 64, 1), LIMIT_PIDS_MAX);
    assert_true(limit_pids_machine() > 300);
    assert_true(limit_pids_machine() <= 4194304);
}

static void test_memory_high(void **state)
{
    (void)state;
    assert_int_equal(limit_memory_high(0), 0);
    assert_int_equal(limit_memory_high(64), 63 << 20);
    assert_int_equal(limit_memory_high(2048), 2016ull << 20);
    assert_int_equal(limit_memory_high(65536), (65536ull - 32) << 20);
}

static void test_io_weight(void **state)
{
    (void)state;
    assert_int_equal(limit_io_weight(1), LIMIT_IO_WEIGHT_MIN);
    assert_int_equal(limit_io_weight(16), 160);
    assert_int_equal(limit_io_weight(100), LIMIT_IO_WEIGHT_MAX);
    assert_int_equal(limit_io_weight(101), LIMIT_IO_WEIGHT_MAX);
    assert_int_equal(limit_io_weight(0), LIMIT_IO_WEIGHT_MAX);
}

/* --- groups: plain files in the place of the kernel's --- */

struct groups {
    char folder[64];
    struct cgroup_layout layout;
};

static void groups_make(struct groups *groups, enum cgroup_kind kind)
{
    char path[200];
    snprintf(groups->folder, sizeof groups->folder, "/tmp/skep-limits-XXXXXX");
    assert_non_null(mkdtemp(groups->folder));
    snprintf(path, sizeof path, "%s/task", groups->folder);
    assert_int_equal(mkdir(path, 0755), 0);
    groups->layout = (struct cgroup_layout){.kind = kind, .tree_count = 1};
    struct cgroup_tree *tree = &groups->layout.trees[0];
    tree->is_v2 = kind == CGROUP_V2;
    snprintf(tree->mount, sizeof tree->mount, "%s", groups->folder);
    snprintf(tree->controllers, sizeof tree->controllers, ",%s,", tree->is_v2 ? "" : "blkio,pids");
}

static void group_file(const struct groups *groups, const char *name, const char *content)
{
    char path[200];
    snprintf(path, sizeof path, "%s/task/%s", groups->folder, name);
    assert_int_equal(file_write(path, text_of(content), 0644, NULL), 0);
}

static void assert_file(const struct groups *groups, const char *name, const char *expected)
{
    char path[200];
    cleanup_buf struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "%s/task/%s", groups->folder, name);
    assert_int_equal(file_read(path, 100, &text, NULL), 0);
    buf_add(&text, "", 1);
    assert_string_equal(text.at, expected);
}

static void groups_remove(struct groups *groups)
{
    static const char *const names[] = {"io.weight", "blkio.bfq.weight", "memory.high",
                                        "pids.events"};
    char path[200];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "%s/task/%s", groups->folder, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/task", groups->folder);
    assert_int_equal(rmdir(path), 0); /* nothing was made that the kernel does not have */
    assert_int_equal(rmdir(groups->folder), 0);
}

static void test_groups_v2(void **state)
{
    (void)state;
    struct groups groups;
    groups_make(&groups, CGROUP_V2);
    limits_set(&groups.layout, "/task", 64, 2);
    assert_int_equal(limit_pids_refused(&groups.layout, "/task"), 0);
    assert_int_equal(limit_pids_refused(&groups.layout, "/other"), 0);
    group_file(&groups, "io.weight", "");
    group_file(&groups, "memory.high", "");
    group_file(&groups, "pids.events", "max 17\n");
    limits_set(&groups.layout, "/task", 64, 2);
    assert_file(&groups, "io.weight", "20");
    assert_file(&groups, "memory.high", "66060288");
    assert_int_equal(limit_pids_refused(&groups.layout, "/task"), 17);
    group_file(&groups, "pids.events", "other 3\nmax 0\n");
    assert_int_equal(limit_pids_refused(&groups.layout, "/task"), 0);
    group_file(&groups, "memory.high", "");
    limits_set(&groups.layout, "/task", 0, 2); /* no limit of memory */
    assert_file(&groups, "memory.high", "");
    groups_remove(&groups);
}

static void test_groups_v1(void **state)
{
    (void)state;
    struct groups groups;
    groups_make(&groups, CGROUP_V1);
    group_file(&groups, "blkio.bfq.weight", "");
    group_file(&groups, "memory.high", "");
    group_file(&groups, "pids.events", "max 1\n");
    limits_set(&groups.layout, "/task", 64, 300);
    assert_file(&groups, "blkio.bfq.weight", "1000");
    assert_file(&groups, "memory.high", ""); /* v2's alone */
    assert_int_equal(limit_pids_refused(&groups.layout, "/task"), 1);
    groups.layout.tree_count = 0; /* a machine without these controllers */
    limits_set(&groups.layout, "/task", 64, 1);
    assert_int_equal(limit_pids_refused(&groups.layout, "/task"), 0);
    groups_remove(&groups);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pids),      cmocka_unit_test(test_memory_high),
    cmocka_unit_test(test_io_weight), cmocka_unit_test(test_groups_v2),
    cmocka_unit_test(test_groups_v1),
};

UNIT_FILE(tests, NULL, NULL);
