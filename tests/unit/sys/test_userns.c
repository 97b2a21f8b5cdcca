/* User namespaces, and files seen with other ids. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/userns.h"

static int made(const struct userns_map *map)
{
    struct err err = {0};
    if (geteuid() != 0)
        skip();
    const int fd = userns_make(map, map, 0, &err);
    if (fd == ERR_UNSUPPORTED)
        skip();
    assert_true(fd >= 0);
    return fd;
}

static void files_are_seen_with_the_ids_outside(void **state)
{
    (void)state;
    static const struct {
        uid_t disk, seen;
    } cases[] = {{0, 500000}, {9, 500009}, {1000, 700000}, {10, 65534}, {70000, 65534}};
    const struct userns_map map = {.extents = {{0, 500000, 10}, {1000, 700000, 1}}, .count = 2};
    cleanup_close int ids = made(&map);
    struct err err = {0};
    folder_put("deep/file", "");
    cleanup_close int tree = userns_mount(in_folder(""), ids, true, &err);
    if (tree == ERR_UNSUPPORTED) /* this file system cannot */
        skip();
    assert_true(tree >= 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stat seen;
        assert_int_equal(chown(in_folder("deep/file"), cases[i].disk, cases[i].disk), 0);
        assert_int_equal(fstatat(tree, "deep/file", &seen, 0), 0);
        assert_int_equal(seen.st_uid, cases[i].seen);
        assert_int_equal(seen.st_gid, cases[i].seen);
    }
}

static void a_file_can_be_mounted_by_itself(void **state)
{
    (void)state;
    const struct userns_map map = {.extents = {{0, 500000, 10}}, .count = 1};
    cleanup_close int ids = made(&map);
    struct err err = {0};
    struct stat seen;
    folder_put("alone", "");
    cleanup_close int tree = userns_mount(in_folder("alone"), ids, false, &err);
    if (tree == ERR_UNSUPPORTED)
        skip();
    assert_int_equal(fstat(tree, &seen), 0);
    assert_true(S_ISREG(seen.st_mode));
    assert_int_equal(seen.st_uid, 500000);
}

static void what_cannot_be_mounted_is_told(void **state)
{
    (void)state;
    const struct userns_map map = {.extents = {{0, 500000, 10}}, .count = 1};
    cleanup_close int ids = made(&map);
    struct err err = {0};
    assert_int_equal(userns_mount("/proc", ids, false, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "/proc"));
    assert_int_equal(userns_mount(in_folder("nothing"), ids, false, &err), ERR_IO);
    assert_non_null(strstr(err.text, "nothing"));
}

static void a_namespace_is_its_owners(void **state)
{
    (void)state;
    const struct userns_map map = {.extents = {{0, 500000, 10}}, .count = 1};
    static const uid_t owners[] = {500000, 0, 500009};
    close(made(&map)); /* or it cannot be tried */
    for (size_t i = 0; i < COUNT_OF(owners); i++) {
        struct err err = {0};
        uid_t owner = 1;
        cleanup_close int ids = userns_make(&map, &map, owners[i], &err);
        assert_true(ids >= 0);
        assert_int_equal(ioctl(ids, NS_GET_OWNER_UID, &owner), 0);
        assert_int_equal(owner, owners[i]);
        /* who makes it is who it was */
        assert_int_equal(geteuid(), 0);
        assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
    }
}

static void ids_that_overlap_are_refused(void **state)
{
    (void)state;
    const struct userns_map map = {.extents = {{0, 500000, 10}, {5, 600000, 10}}, .count = 2};
    struct err err = {0};
    if (geteuid() != 0)
        skip();
    const int fd = userns_make(&map, &map, 0, &err);
    if (fd == ERR_UNSUPPORTED)
        skip();
    assert_int_equal(fd, ERR_IO);
    assert_non_null(strstr(err.text, "uid_map"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_are_seen_with_the_ids_outside),
    cmocka_unit_test(a_file_can_be_mounted_by_itself),
    cmocka_unit_test(what_cannot_be_mounted_is_told),
    cmocka_unit_test(a_namespace_is_its_owners),
    cmocka_unit_test(ids_that_overlap_are_refused),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
