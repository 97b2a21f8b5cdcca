/* Trees are removed however deep they are. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_tree_removal),
    cmocka_unit_test(test_deep_tree_removal),
    cmocka_unit_test(test_what_stays_is_said),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
