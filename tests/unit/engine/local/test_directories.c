/* Who may enter the engine's folders. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/task.h"

static unsigned mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(in_folder(name), &status), 0);
    return status.st_mode & 07777;
}

static void make(const char *name)
{
    struct err err = {0};
    char directory[300];
    snprintf(directory, sizeof directory, "%s", in_folder(name));
    struct local_engine local = {.config = {.directory = directory, .run_directory = "/run/none"}};
    assert_int_equal(local_directories_make(&local, &err), 0);
}

/* What images and tasks bring along may be set-user-id programs of root's. */
static void nobody_but_root_enters(void **state)
{
    static const char *const closed[] = {"engine",        "engine/containers", "engine/logs",
                                         "engine/images", "engine/blobs",      "engine/refs"};
    (void)state;
    const mode_t before = umask(0);
    make("engine");
    umask(before);
    for (size_t i = 0; i < COUNT_OF(closed); i++)
        assert_int_equal(mode_of(closed[i]), 0700);
}

/* Those that an earlier release has made, or somebody has opened. */
static void folders_that_are_there_are_closed(void **state)
{
    static const char *const old[] = {"old", "old/containers", "old/logs", "old/images"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(old); i++) {
        assert_int_equal(mkdir(in_folder(old[i]), 0711), 0);
        assert_int_equal(chmod(in_folder(old[i]), 0755), 0);
    }
    make("old");
    for (size_t i = 0; i < COUNT_OF(old); i++)
        assert_int_equal(mode_of(old[i]), 0700);
}

/* They are the lowest layer of every container, whose users may be anybody. */
static void what_containers_mount_upon_is_open(void **state)
{
    static const char *const open[] = {"points", "points/proc", "points/dev", "points/etc"};
    char name[64];
    (void)state;
    const mode_t before = umask(077);
    make("masked");
    umask(before);
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        snprintf(name, sizeof name, "masked/%s", open[i]);
        assert_int_equal(mode_of(name), 0755);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nobody_but_root_enters),
    cmocka_unit_test(folders_that_are_there_are_closed),
    cmocka_unit_test(what_containers_mount_upon_is_open),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
