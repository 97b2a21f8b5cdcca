/* Which logs go: pure rules, and the measuring of folders. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/local/log_keep.h"

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

static void put(const char *name, size_t size)
{
    static const char zeros[1 << 16];
    int fd = open(in_folder(name), O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0 && size <= sizeof zeros);
    assert_int_equal(write(fd, zeros, size), (ssize_t)size);
    close(fd);
}

static uint64_t cost_of(const char *name, const struct log_limits *with)
{
    struct log_kept log = {0};
    log_measure(in_folder(name), with, &log);
    return log.cost;
}

static void test_folders_below_count(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("log"), 0755), 0);
    put("log/all.000000000000000", 1000);
    const uint64_t flat = cost_of("log", &limits);
    assert_int_equal(mkdir(in_folder("log/below"), 0755), 0);
    assert_int_equal(mkdir(in_folder("log/below/deeper"), 0755), 0);
    put("log/below/deeper/hidden", 1 << 16);
    assert_int_equal(symlink("/usr", in_folder("log/below/link")), 0); /* not followed */
    const uint64_t deep = cost_of("log", &limits);
    assert_true(deep >= flat + (1 << 16) && deep < flat + (1 << 20));
    const struct log_limits by_inode = log_limits_of(1 << 20, 4000, KEEP_S);
    assert_int_equal(by_inode.inode_cost, (1 << 20) / 1000);
    assert_int_equal(cost_of("log", &by_inode), deep + 6 * by_inode.inode_cost);
    assert_int_equal(log_limits_of(1 << 20, 0, KEEP_S).inode_cost, 0);
    assert_int_equal(cost_of("nowhere", &limits), 0);
}

/* Folders in folders without end hide nothing: such a log counts as filling all the room. */
/* By a clock that was ahead, or by the task itself: it would never be old. */
static void a_write_of_the_future_counts_from_now_on(void **state)
{
    const struct timespec ahead[2] = {{.tv_sec = NOW_S * 2}, {.tv_sec = NOW_S * 2}};
    const struct timespec before[2] = {{.tv_sec = NOW_S - 5}, {.tv_sec = NOW_S - 5}};
    struct log_limits with = limits;
    (void)state;
    assert_int_equal(mkdir(in_folder("ahead"), 0755), 0);
    put("ahead/log", 10);
    assert_int_equal(utimensat(AT_FDCWD, in_folder("ahead/log"), ahead, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, in_folder("ahead"), before, 0), 0);
    for (int i = 0; i < 2; i++) { /* and so it stays */
        struct log_kept log = {0};
        with.latest_s = NOW_S + i * KEEP_S;
        log_measure(in_folder("ahead"), &with, &log);
        assert_int_equal(log.used_s, NOW_S);
    }
}

static void test_too_deep(void **state)
{
    (void)state;
    const struct log_limits huge = {.cost = (uint64_t)1 << 50};
    char name[400] = "deep";
    for (int i = 0; i < LOG_LEVELS_MAX + 2; i++) {
        assert_int_equal(mkdir(in_folder(name), 0755), 0);
        strcat(name, "/d");
    }
    assert_true(cost_of("deep", &huge) == huge.cost);
}

static void test_owner(void **state)
{
    (void)state;
    char owner[LOG_OWNER_MAX];
    assert_int_equal(mkdir(in_folder("owned"), 0777), 0);
    log_owner_read(in_folder("owned"), owner);
    assert_string_equal(owner, "");
    log_owner_put(in_folder("owned"), "no-user");
    log_owner_read(in_folder("owned"), owner);
    assert_string_equal(owner, "");
    log_owner_put(in_folder("owned"), "alice~train");
    log_owner_read(in_folder("owned"), owner);
    if (!owner[0]) /* no root, or no extended attributes here */
        skip();
    assert_string_equal(owner, "alice");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_age),
    cmocka_unit_test(test_one_user_fills_all),
    cmocka_unit_test(test_no_user_evicts_another),
    cmocka_unit_test(test_running_tasks_count),
    cmocka_unit_test(test_what_is_old_gives_room),
    cmocka_unit_test(test_folders_below_count),
    cmocka_unit_test(a_write_of_the_future_counts_from_now_on),
    cmocka_unit_test(test_too_deep),
    cmocka_unit_test(test_owner),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
