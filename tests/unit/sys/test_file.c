/* Files are replaced whole; a failure is told with its path. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/file.h"

static void files_are_replaced_whole(void **state)
{
    struct buf buf = BUF_INIT;
    struct err err;
    struct stat status;
    (void)state;

    assert_int_equal(dir_make(in_folder("a/b/c"), 0700, &err), 0);
    assert_int_equal(dir_make(in_folder("a/b/c"), 0700, &err), 0);
    assert_int_equal(file_read(in_folder("a/b/c/f"), 10, &buf, &err), ERR_NOT_FOUND);
    assert_int_equal(file_write(in_folder("a/b/c/f"), TEXT("one"), 0640, &err), 0);
    assert_int_equal(file_write(in_folder("a/b/c/f"), TEXT("two"), 0640, &err), 0);
    assert_int_equal(file_create(in_folder("a/b/c/f"), TEXT("three"), 0640, &err), ERR_CONFLICT);
    assert_int_equal(file_read(in_folder("a/b/c/f"), 3, &buf, &err), 0);
    assert_string_equal(buf_cstr(&buf), "two");
    assert_int_equal(file_read(in_folder("a/b/c/f"), 2, &buf, &err), ERR_TOO_BIG);
    assert_int_equal(stat(in_folder("a/b/c/f"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(dir_make(in_folder("a/b/c/f/d"), 0700, &err), ERR_IO);
    assert_int_equal(file_write(in_folder("none/f"), TEXT("x"), 0600, &err), ERR_IO);
    assert_non_null(strstr(err.text, "none/f"));
    buf_release(&buf);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_are_replaced_whole),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
