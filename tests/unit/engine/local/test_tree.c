/* Trees are removed however deep they are. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/runtime.h"
#include "sys/file.h"

/* A few levels go by hand, more by nftw; nobody follows a link. */
static void test_tree_removal(void **state)
{
    (void)state;
    struct err err = {0};
    char deep[300] = "tree";
    for (int levels = 1; levels <= 24; levels++) {
        size_t used = strlen(deep);
        snprintf(deep + used, sizeof deep - used, "/%d/file", levels);
        folder_put("kept/inside", "");
        folder_put("tree/other", "");
        folder_put(deep, "");
        *strrchr(deep, '/') = 0;
        assert_int_equal(symlink("../kept", in_folder("tree/link")), 0);
        assert_int_equal(symlink("nowhere", in_folder("tree/dangling")), 0);
        assert_int_equal(mkdir(in_folder("tree/empty"), 0), 0);
        assert_int_equal(mkfifo(in_folder("tree/fifo"), 0600), 0);
        assert_int_equal(tree_remove(in_folder("tree"), &err), 0);
        assert_int_equal(access(in_folder("tree"), F_OK), -1);
        assert_int_equal(access(in_folder("kept/inside"), F_OK), 0);
    }
    assert_int_equal(tree_remove(in_folder("tree"), &err), 0); /* it was not there */
    assert_int_equal(symlink("kept", in_folder("to-kept")), 0);
    assert_int_equal(tree_remove(in_folder("to-kept"), &err), 0);
    assert_int_equal(tree_remove(in_folder("kept/inside"), &err), 0);
    assert_int_equal(access(in_folder("kept/inside"), F_OK), -1);
    assert_int_equal(access(in_folder("kept"), F_OK), 0);
}

/* Deeper than any path is long. */
static void test_deep_tree_removal(void **state)
{
    (void)state;
    enum { LEVELS = 3000 };
    struct err err = {0};
    assert_int_equal(mkdir(in_folder("deep"), 0755), 0);
    int fd = open(in_folder("deep"), O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < LEVELS; i++) {
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        assert_int_equal(symlinkat("/etc", fd, "link"), 0);
        int below = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = below;
    }
    close(fd);
    if (tree_remove(in_folder("deep"), &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(access(in_folder("deep"), F_OK), -1);
    assert_int_equal(tree_remove(in_folder("deep"), &err), 0);
}

/* What cannot be removed is said, not tried for ever: nobody removes a folder by its dot. */
static void test_what_stays_is_said(void **state)
{
    (void)state;
    struct err err = {0};
    folder_put("stays/inside/file", "");
    assert_int_equal(tree_remove(in_folder("stays/."), &err), ERR_IO);
    assert_non_null(strstr(err.text, "stays/."));
    assert_int_equal(access(in_folder("stays/inside"), F_OK), -1);
    assert_int_equal(tree_remove(in_folder("stays"), &err), 0);
}

static int64_t time_of(const char *name)
{
    struct stat stat;
    assert_int_equal(lstat(in_folder(name), &stat), 0);
    return stat.st_mtim.tv_sec;
}

static void time_set(const char *name, int64_t at_s)
{
    const struct timespec times[2] = {{.tv_sec = at_s}, {.tv_sec = at_s}};
    assert_int_equal(utimensat(AT_FDCWD, in_folder(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Else it would have no age for as long as the clock was ahead. */
static void a_time_of_the_future_becomes_now(void **state)
{
    enum { NOW_S = 1000000, YEAR_S = 365 * 86400 };
    (void)state;
    folder_put("used", "");
    assert_int_equal(symlink("used", in_folder("link")), 0);
    time_set("used", NOW_S + 60); /* of this minute, as clocks go */
    assert_int_equal(tree_time_settle(AT_FDCWD, in_folder("used"), NOW_S + 60, NOW_S), NOW_S + 60);
    assert_int_equal(time_of("used"), NOW_S + 60);
    time_set("used", NOW_S + YEAR_S);
    time_set("link", NOW_S + YEAR_S);
    assert_int_equal(tree_time_settle(AT_FDCWD, in_folder("link"), NOW_S + YEAR_S, NOW_S), NOW_S);
    assert_int_equal(time_of("link"), NOW_S);
    assert_int_equal(time_of("used"), NOW_S + YEAR_S);
    int folder = open(in_folder("."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_time_settle(folder, "used", NOW_S + YEAR_S, NOW_S), NOW_S);
    assert_int_equal(time_of("used"), NOW_S);
    assert_int_equal(tree_time_settle(folder, NULL, NOW_S + YEAR_S, NOW_S), NOW_S);
    assert_int_equal(time_of("."), NOW_S);
    close(folder);
    assert_int_equal(tree_time_settle(AT_FDCWD, in_folder("none"), NOW_S + YEAR_S, NOW_S), NOW_S);
}

/* Either clock may be behind. */
static void the_later_clock_counts(void **state)
{
    const int64_t now_s = time(NULL);
    (void)state;
    assert_true(tree_latest_s(now_s - 86400) >= now_s);
    assert_int_equal(tree_latest_s(now_s + 86400), now_s + 86400);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_tree_removal),       cmocka_unit_test(test_deep_tree_removal),
    cmocka_unit_test(test_what_stays_is_said), cmocka_unit_test(a_time_of_the_future_becomes_now),
    cmocka_unit_test(the_later_clock_counts),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
