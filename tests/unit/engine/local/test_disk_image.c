/* The file in which a task has its disk. Mounting it takes root: tests/system/engine/test_disk.c.
 */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/local/disk_image.h"
#include "sys/file.h"

enum { SUPERBLOCK = 1024, MAGIC_AT = 56 };

static void path_of(char path[300], const char *name)
{
    snprintf(path, 300, "%s", in_folder(name));
}

static void test_copy(void **state)
{
    (void)state;
    char from[300], to[300];
    struct err err = {0};
    path_of(from, "from");
    path_of(to, "to");
    folder_put("from", "begin");
    folder_put("to", "what stood there before");
    FILE *file = fopen(from, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 40 << 20, SEEK_SET), 0);
    assert_int_equal(fputs("end", file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(from, 64 << 20), 0);
    assert_int_equal(disk_image_copy(from, to, &err), 0);
    struct stat stat_of_copy;
    assert_int_equal(stat(to, &stat_of_copy), 0);
    assert_int_equal(stat_of_copy.st_size, 64 << 20);
    assert_true(stat_of_copy.st_blocks * 512 < 4 << 20); /* holes stay holes */
    cleanup_buf struct buf left = BUF_INIT, right = BUF_INIT;
    assert_int_equal(file_read(from, 65 << 20, &left, NULL), 0);
    assert_int_equal(file_read(to, 65 << 20, &right, NULL), 0);
    assert_int_equal(left.length, right.length);
    assert_memory_equal(left.at, right.at, left.length);
    assert_int_equal(disk_image_copy("/no/such/file", to, &err) < 0, 1);
    assert_non_null(strstr(err.text, "/no/such/file"));
    assert_int_equal(disk_image_copy(from, "/no/such/folder/x", &err) < 0, 1);
    assert_non_null(strstr(err.text, "/no/such/folder"));
}

static void test_format(void **state)
{
    (void)state;
    char path[300];
    struct err err = {0};
    path_of(path, "disk");
    int result = disk_image_format(path, 64 << 20, &err);
    if (result == ERR_NOT_FOUND)
        skip(); /* without e2fsprogs */
    assert_int_equal(result, 0);
    cleanup_buf struct buf text = BUF_INIT;
    assert_int_equal(file_read(path, 65 << 20, &text, NULL), 0);
    assert_int_equal(text.length, 64 << 20);
    assert_int_equal((unsigned char)text.at[SUPERBLOCK + MAGIC_AT], 0x53);
    assert_int_equal((unsigned char)text.at[SUPERBLOCK + MAGIC_AT + 1], 0xef);
    assert_int_equal(disk_image_format(path, 1024, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "mke2fs"));
    assert_int_equal(disk_image_format("/no/such/folder/x", 64 << 20, &err) < 0, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_copy),
    cmocka_unit_test(test_format),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
