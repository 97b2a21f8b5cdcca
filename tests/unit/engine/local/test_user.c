/* The user of an image, by the files that are in it. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/user.h"
#include "sys/file.h"

static void test_users(void **state)
{
    (void)state;
    struct user user;
    struct err err = {0};
    folder_put("root/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nbroken line\n"
                                  "ann:x:1000:1001:,,,:/home/ann:/bin/sh\n");
    folder_put("root/etc/group",
               "root:x:0:\nvideo:x:44:ann,bob\nann:x:1001:\nusers:x:100:bob,ann\n");
    const char *root = in_folder("root");
    assert_int_equal(user_find(root, "", &user, &err), 0);
    assert_int_equal(user.uid, 0);
    assert_string_equal(user.home, "/root");
    assert_int_equal(user_find(root, "ann", &user, &err), 0);
    assert_int_equal(user.uid, 1000);
    assert_int_equal(user.gid, 1001);
    assert_int_equal(user.group_count, 2);
    assert_int_equal(user.groups[0], 44);
    assert_int_equal(user.groups[1], 100);
    assert_string_equal(user.home, "/home/ann");
    assert_int_equal(user_find(root, "1000", &user, &err), 0);
    assert_int_equal(user.gid, 1001);
    assert_int_equal(user_find(root, "4242", &user, &err), 0); /* a number need not be known */
    assert_int_equal(user.uid, 4242);
    assert_int_equal(user.gid, 0);
    assert_string_equal(user.home, "/");
    assert_int_equal(user_find(root, "ann:video", &user, &err), 0);
    assert_int_equal(user.gid, 44);
    assert_int_equal(user_find(root, "5:6", &user, &err), 0);
    assert_int_equal(user.gid, 6);
    assert_int_equal(user_find(root, "nobody", &user, &err), ERR_NOT_FOUND);
    assert_int_equal(user_find(root, "ann:nogroup", &user, &err), ERR_NOT_FOUND);
    assert_int_equal(user_find(in_folder("empty"), "0", &user, &err), 0);
}

/* A link in the image does not lead out of it. */
static void test_user_link(void **state)
{
    (void)state;
    struct user user;
    folder_put("link/outside/passwd", "spy:x:7:7::/:/bin/sh\n");
    folder_put("link/inside/etc/x", "");
    folder_put("link/inside/real/passwd", "eve:x:8:8::/:/bin/sh\n");
    unlink(in_folder("link/inside/etc/passwd"));
    assert_int_equal(symlink("../../outside/passwd", in_folder("link/inside/etc/passwd")), 0);
    assert_int_equal(user_find(in_folder("link/inside"), "spy", &user, NULL), ERR_NOT_FOUND);
    unlink(in_folder("link/inside/etc/passwd"));
    assert_int_equal(symlink("/real/passwd", in_folder("link/inside/etc/passwd")), 0);
    assert_int_equal(user_find(in_folder("link/inside"), "eve", &user, NULL), 0);
    unlink(in_folder("link/inside/real/passwd"));
    assert_int_equal(mkfifo(in_folder("link/inside/real/passwd"), 0644), 0);
    assert_int_equal(user_find(in_folder("link/inside"), "eve", &user, NULL), ERR_INVALID);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_users),
    cmocka_unit_test(test_user_link),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
