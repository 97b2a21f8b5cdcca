/* The control group of a container as its files say, laid out as a runtime mounts them. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>

#include "folder.h"
#include "init/log_line.h"
#include "init/own_group.h"

static const char *root(void)
{
    return in_folder("skep");
}

static void file_put(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **state)
{
    static const char *const folders[] = {
        "skep", "sys", "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/memory", "sys/fs/cgroup/pids"};
    assert_int_equal(folder_setup(state), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(in_folder(folders[i]), 0700), 0);
    return 0;
}

static void without_a_group_nothing_is_known(void **state)
{
    (void)state;
    struct log_line_use use;
    assert_false(own_group_use(root(), &use));
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_LASTED);
}

static void files_of_version_two(void **state)
{
    (void)state;
    struct log_line_use use;
    file_put("sys/fs/cgroup/memory.current", "4096\n");
    file_put("sys/fs/cgroup/memory.events", "oom 1\noom_kill 1\n");
    file_put("sys/fs/cgroup/cpu.stat", "usage_usec 7\nuser_usec 3\n");
    assert_true(own_group_use(root(), &use));
    assert_int_equal(use.memory_bytes, 4096);
    assert_int_equal(use.cpu_ns, 7000);
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_LIMIT);
    file_put("sys/fs/cgroup/memory.events", "oom 0\noom_kill 1\n");
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_MACHINE);
    file_put("sys/fs/cgroup/memory.max", "67108864\n");
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_LIMIT);
    file_put("sys/fs/cgroup/memory.peak", "1000\n");
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_MACHINE);
    file_put("sys/fs/cgroup/memory.peak", "66000000\n");
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_LIMIT);
}

static void files_of_version_one(void **state)
{
    (void)state;
    struct log_line_use use;
    file_put("sys/fs/cgroup/memory/memory.usage_in_bytes", "8192\n");
    file_put("sys/fs/cgroup/memory/memory.oom_control", "oom_kill 2\n");
    file_put("sys/fs/cgroup/pids/pids.current", "3\n");
    assert_true(own_group_use(root(), &use));
    assert_int_equal(use.memory_bytes, 8192);
    assert_int_equal(use.pids, 3);
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_MACHINE);
    file_put("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
    file_put("sys/fs/cgroup/memory/memory.max_usage_in_bytes", "66000000\n");
    assert_int_equal(own_group_memory(root()), EXIT_MEMORY_LIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(without_a_group_nothing_is_known, setup, folder_teardown),
    cmocka_unit_test_setup_teardown(files_of_version_two, setup, folder_teardown),
    cmocka_unit_test_setup_teardown(files_of_version_one, setup, folder_teardown),
};
UNIT_FILE(tests, NULL, NULL);
