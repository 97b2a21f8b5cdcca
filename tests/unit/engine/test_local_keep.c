/* Which logs go, and when a node has no space: pure rules, and the measuring of folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "engine/local/log_keep.h"
#include "engine/local/runtime.h"
#include "engine/local/storage.h"
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { NOW_S = 1000000, KEEP_S = 10000 };

static const struct log_limits limits = {.cost = 100, .keep_s = KEEP_S};

/* Which of "OWNER AGE COST" go, by their order here. */
struct given {
    const char *owner;
    int64_t age_s;
    uint64_t cost;
    bool is_live, is_expected;
};

static void assert_chosen(const struct given *given, size_t count)
{
    struct log_kept logs[16] = {0};
    assert_true(count <= COUNT_OF(logs));
    for (size_t i = 0; i < count; i++) {
        snprintf(logs[i].id, sizeof logs[i].id, "%zu", i);
        snprintf(logs[i].owner, sizeof logs[i].owner, "%s", given[i].owner);
        logs[i].used_s = NOW_S - given[i].age_s;
        logs[i].cost = given[i].cost;
        logs[i].is_live = given[i].is_live;
    }
    log_keep_choose(logs, count, &limits, NOW_S);
    for (size_t i = 0; i < count; i++) {
        const size_t at = (size_t)atoi(logs[i].id);
        if (logs[i].is_chosen != given[at].is_expected)
            fail_msg("%s, %lld s old, of %s: %s", logs[i].id, (long long)given[at].age_s,
                     given[at].owner, logs[i].is_chosen ? "goes" : "stays");
    }
}

static void test_age(void **state)
{
    (void)state;
    const struct given given[] = {
        {"alice", KEEP_S + 1, 1, false, true},
        {"alice", KEEP_S, 1, false, false},
        {"bob", KEEP_S + 1, 1, true, false},
    };
    assert_chosen(given, COUNT_OF(given));
    log_keep_choose(NULL, 0, &limits, NOW_S);
}

static void test_one_user_fills_all(void **state)
{
    (void)state;
    const struct given given[] = {
        {"alice", 30, 50, false, true},
        {"alice", 10, 40, false, false},
        {"alice", 20, 50, false, false},
    };
    assert_chosen(given, COUNT_OF(given));
}

static void test_no_user_evicts_another(void **state)
{
    (void)state;
    const struct given given[] = {
        {"alice", 900, 20, false, false}, /* the oldest of all, and within alice's share */
        {"alice", 800, 20, false, false}, {"bob", 30, 90, false, true},
        {"bob", 20, 30, false, false}, /* what alice leaves is bob's: 60 */
        {"bob", 10, 30, false, false},
    };
    assert_chosen(given, COUNT_OF(given));
}

static void test_running_tasks_count(void **state)
{
    (void)state;
    const struct given given[] = {
        {"alice", 10, 50, false, false},
        {"bob", 10, 500, true, false}, /* it stays, though it is too much … */
        {"bob", 20, 10, false, true},  /* … at the cost of bob's others, not of alice's */
        {"bob", 30, 10, true, false},
    };
    assert_chosen(given, COUNT_OF(given));
}

static void test_what_is_old_gives_room(void **state)
{
    (void)state;
    const struct given given[] = {
        {"alice", KEEP_S * 2, 500, false, true},
        {"alice", 10, 60, false, false},
        {"bob", 10, 40, false, false},
    };
    assert_chosen(given, COUNT_OF(given));
}

/* --- folders --- */

static char folder[64];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/skep-test-keep-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return tree_remove(folder, NULL);
}

static const char *place(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, size_t size)
{
    static const char zeros[1 << 16];
    int fd = open(place(name), O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0 && size <= sizeof zeros);
    assert_int_equal(write(fd, zeros, size), (ssize_t)size);
    close(fd);
}

static uint64_t cost_of(const char *name, const struct log_limits *with)
{
    struct log_kept log = {0};
    log_measure(place(name), with, &log);
    return log.cost;
}

static void test_folders_below_count(void **state)
{
    (void)state;
    assert_int_equal(mkdir(place("log"), 0755), 0);
    put("log/all.000000000000000", 1000);
    const uint64_t flat = cost_of("log", &limits);
    assert_int_equal(mkdir(place("log/below"), 0755), 0);
    assert_int_equal(mkdir(place("log/below/deeper"), 0755), 0);
    put("log/below/deeper/hidden", 1 << 16);
    assert_int_equal(symlink("/usr", place("log/below/link")), 0); /* not followed */
    const uint64_t deep = cost_of("log", &limits);
    assert_true(deep >= flat + (1 << 16) && deep < flat + (1 << 20));
    const struct log_limits by_inode = log_limits_of(1 << 20, 4000, KEEP_S);
    assert_int_equal(by_inode.inode_cost, (1 << 20) / 1000);
    assert_int_equal(cost_of("log", &by_inode), deep + 6 * by_inode.inode_cost);
    assert_int_equal(log_limits_of(1 << 20, 0, KEEP_S).inode_cost, 0);
    assert_int_equal(cost_of("nowhere", &limits), 0);
}

/* Folders in folders without end hide nothing: such a log counts as filling all the room. */
static void test_too_deep(void **state)
{
    (void)state;
    const struct log_limits huge = {.cost = (uint64_t)1 << 50};
    char name[400] = "deep";
    for (int i = 0; i < LOG_LEVELS_MAX + 2; i++) {
        assert_int_equal(mkdir(place(name), 0755), 0);
        strcat(name, "/d");
    }
    assert_true(cost_of("deep", &huge) == huge.cost);
}

static void test_owner(void **state)
{
    (void)state;
    char owner[LOG_OWNER_MAX];
    assert_int_equal(mkdir(place("owned"), 0777), 0);
    log_owner_read(place("owned"), owner);
    assert_string_equal(owner, "");
    log_owner_put(place("owned"), "no-user");
    log_owner_read(place("owned"), owner);
    assert_string_equal(owner, "");
    log_owner_put(place("owned"), "alice~train");
    log_owner_read(place("owned"), owner);
    if (!owner[0]) /* no root, or no extended attributes here */
        skip();
    assert_string_equal(owner, "alice");
}

/* --- space --- */

static struct statvfs disk_of(uint64_t mib, uint64_t free_mib, uint64_t inodes,
                              uint64_t free_inodes)
{
    return (struct statvfs){.f_frsize = 1 << 20,
                            .f_blocks = mib,
                            .f_bavail = free_mib,
                            .f_files = inodes,
                            .f_favail = free_inodes};
}

static bool is_short(struct statvfs disk, bool was_short, const char *words)
{
    char reason[STORAGE_REASON_MAX];
    const struct storage_reserve reserve = storage_reserve_data(&disk, 1000);
    const bool answer = storage_is_short(&disk, &reserve, was_short, "data", reason);
    if (answer)
        assert_non_null(strstr(reason, words));
    else
        assert_string_equal(reason, "");
    return answer;
}

static void test_space(void **state)
{
    (void)state;
    assert_false(is_short(disk_of(90000, 1000, 1000000, 10000), false, ""));
    assert_true(is_short(disk_of(90000, 999, 1000000, 10000), false, "999 MiB free in the data"));
    assert_true(is_short(disk_of(90000, 1000, 1000000, 9999), false, "9999 inodes free"));
    /* well again with a quarter more */
    assert_true(is_short(disk_of(90000, 1249, 1000000, 90000), true, "MiB"));
    assert_true(is_short(disk_of(90000, 1250, 1000000, 12499), true, "inodes"));
    assert_false(is_short(disk_of(90000, 1250, 1000000, 12500), true, ""));
    assert_false(is_short(disk_of(90000, 1000, 0, 0), false, "")); /* btrfs */
    assert_true(is_short(disk_of(90000, 1000, 500, STORAGE_INODES_MIN - 1), false, "inodes"));
    assert_int_equal(storage_reserve_data(&(struct statvfs){.f_files = 1ull << 40}, 1).inodes,
                     10000);
}

static void test_space_of_run(void **state)
{
    (void)state;
    const struct statvfs small = disk_of(40, 40, 1000, 1000), large = disk_of(4000, 0, 0, 0);
    assert_int_equal(storage_reserve_run(&small).bytes, 4 << 20);
    assert_int_equal(storage_reserve_run(&large).bytes, 16 << 20);
    assert_false(storage_is_exhausted(&small));
    assert_true(storage_is_exhausted(&large));
    const struct statvfs no_inodes = disk_of(40, 40, 1000, 1);
    assert_true(storage_is_exhausted(&no_inodes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_one_user_fills_all),
        cmocka_unit_test(test_no_user_evicts_another),
        cmocka_unit_test(test_running_tasks_count),
        cmocka_unit_test(test_what_is_old_gives_room),
        cmocka_unit_test(test_folders_below_count),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_space_of_run),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
