/* What is put into the trash is gone at once, and removed by a thread; also what an earlier server
 * left there. */
#include "folder.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/local/trash.h"

enum { LIMIT_MS = 60000 };

static bool is_empty(const char *name)
{
    DIR *folder = opendir(in_folder(name));
    assert_non_null(folder);
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count == 2; /* . and .. */
}

/* `watch` tells of everything that leaves the trash. */
static void emptied_await(int watch)
{
    struct pollfd fd = {.fd = watch, .events = POLLIN};
    char events[4096];
    while (!is_empty("trash")) {
        assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
        assert_true(read(watch, events, sizeof events) > 0);
    }
}

static int watch_trash(void)
{
    int watch = inotify_init1(IN_CLOEXEC);
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, in_folder("trash"), IN_DELETE) >= 0);
    return watch;
}

static void what_is_put_there_is_gone_at_once(void **state)
{
    (void)state;
    struct err err;
    folder_put("trash/kept-for-the-watch", "");
    int watch = watch_trash();
    struct trash *trash = trash_new(in_folder(""), &err);
    assert_non_null(trash);
    for (int i = 0; i < 3; i++) { /* the same name again and again */
        folder_put("image/a/b/file", "text");
        folder_put("image/c", "text");
        trash_put(trash, in_folder("image"));
        assert_int_equal(access(in_folder("image"), F_OK), -1);
        assert_int_equal(errno, ENOENT);
    }
    emptied_await(watch);
    trash_put(trash, in_folder("image")); /* not there: nothing happens */
    assert_true(is_empty("trash"));
    trash_free(trash);
    close(watch);
}

static void an_earlier_servers_trash_goes_as_well(void **state)
{
    (void)state;
    struct err err;
    folder_put("trash/0/file", "text"); /* the name that ours would give first */
    folder_put("trash/12/below/file", "text");
    int watch = watch_trash();
    struct trash *trash = trash_new(in_folder(""), &err);
    assert_non_null(trash);
    folder_put("image/file", "text");
    trash_put(trash, in_folder("image"));
    assert_int_equal(access(in_folder("image"), F_OK), -1);
    emptied_await(watch);
    trash_free(trash);
    close(watch);
}

static void the_first_makes_the_folder(void **state)
{
    (void)state;
    struct err err;
    struct stat status;
    assert_int_equal(rmdir(in_folder("trash")), 0);
    struct trash *trash = trash_new(in_folder(""), &err);
    assert_non_null(trash);
    folder_put("image/file", "text");
    trash_put(trash, in_folder("image"));
    assert_int_equal(access(in_folder("image"), F_OK), -1);
    assert_int_equal(stat(in_folder("trash"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    trash_free(trash);
    trash_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_put_there_is_gone_at_once),
    cmocka_unit_test(an_earlier_servers_trash_goes_as_well),
    cmocka_unit_test(the_first_makes_the_folder),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
