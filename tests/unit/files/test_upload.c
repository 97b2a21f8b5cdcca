/* A file that comes in parts: nothing is there before it is whole, and nothing is left of others.
 */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "files/upload.h"
#include "model/storage.h"
#include "sys/cleanup.h"
#include "sys/file.h"

static char directory[64];
static struct storage storage;
static struct files_root root;

static const char *place(const char *name)
{
    static char paths[4][300];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static int setup(void **state)
{
    struct err err = {0};
    (void)state;
    strcpy(directory, "/tmp/skep-test-upload-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    storage = (struct storage){.name = "s", .directory = directory, .is_shared = true};
    return files_root_open(&storage, "ann", 1, &root, &err);
}

static int teardown(void **state)
{
    (void)state;
    char command[160];
    files_root_release(&root);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

static int begin(const char *name, uint64_t size, bool is_replacing, struct files_upload *upload)
{
    struct files_path path;
    struct err err = {0};
    assert_int_equal(files_path_parse(text_of(name), "path", &path, &err), 0);
    return files_upload_begin(&root, &path, size, is_replacing, 0, upload, &err);
}

static int put(const char *name, const char *text, bool is_replacing)
{
    struct files_upload upload;
    struct err err = {0};
    int code = begin(name, strlen(text), is_replacing, &upload);
    if (!code)
        code = files_upload_add(&upload, text_of(text), 0, &err);
    if (!code)
        code = files_upload_place(&root, &upload, &err);
    files_upload_release(&upload);
    return code;
}

static unsigned entries(void)
{
    unsigned count = 0;
    cleanup_dir DIR *dir = opendir(directory);
    while (readdir(dir))
        count++;
    return count - 2; /* . and .. */
}

static void assert_content(const char *name, const char *wanted)
{
    struct buf out = BUF_INIT;
    struct err err = {0};
    assert_int_equal(file_read(place(name), 100, &out, &err), 0);
    assert_string_equal(buf_cstr(&out), wanted);
    buf_release(&out);
}

static void test_parts(void **state)
{
    struct files_upload upload;
    struct err err = {0};
    struct stat stat_of;
    (void)state;
    assert_int_equal(begin("words", 7, false, &upload), 0);
    assert_int_equal(files_upload_add(&upload, TEXT("one "), 0, &err), 0);
    assert_int_equal(upload.received, 4);
    assert_int_equal(entries(), 0);
    assert_int_equal(files_upload_add(&upload, TEXT("two"), 0, &err), 0);
    assert_int_equal(files_upload_place(&root, &upload, &err), 0);
    files_upload_release(&upload);
    assert_content("words", "one two");
    assert_int_equal(stat(place("words"), &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 07777, 0644);
    assert_int_equal(unlink(place("words")), 0);
}

static void test_what_is_given_up_is_gone(void **state)
{
    struct files_upload upload;
    struct err err = {0};
    (void)state;
    assert_int_equal(begin("words", 7, false, &upload), 0);
    assert_int_equal(files_upload_add(&upload, TEXT("one "), 0, &err), 0);
    files_upload_release(&upload);
    assert_int_equal(entries(), 0);
}

static void test_replace(void **state)
{
    struct files_upload upload;
    struct err err = {0};
    char spare[FILES_SPARE_SIZE];
    (void)state;
    assert_int_equal(put("words", "old", false), 0);
    assert_int_equal(put("words", "new", false), ERR_CONFLICT);
    assert_content("words", "old");
    assert_int_equal(put("words", "new", true), 0);
    assert_content("words", "new");
    /* it comes between the begin and the end */
    assert_int_equal(begin("late", 1, false, &upload), 0);
    assert_int_equal(put("late", "other", false), 0);
    assert_int_equal(files_upload_add(&upload, TEXT("x"), 0, &err), 0);
    assert_int_equal(files_upload_place(&root, &upload, &err), ERR_CONFLICT);
    files_upload_release(&upload);
    assert_content("late", "other");
    /* what a server left that was killed between two names */
    files_spare_name("words", spare);
    assert_int_equal(rename(place("late"), place(spare)), 0);
    assert_int_equal(put("words", "newest", true), 0);
    assert_content("words", "newest");
    assert_int_equal(entries(), 1);
    /* a folder, and a link, which is replaced and not followed */
    assert_int_equal(mkdir(place("folder"), 0755), 0);
    assert_int_equal(put("folder", "x", true), ERR_CONFLICT);
    assert_int_equal(symlink("words", place("link")), 0);
    assert_int_equal(put("link", "x", true), 0);
    assert_content("words", "newest");
    assert_content("link", "x");
    assert_int_equal(rmdir(place("folder")), 0);
    assert_int_equal(unlink(place("link")), 0);
    assert_int_equal(unlink(place("words")), 0);
}

/* The rights that there were when it was begun may be gone when it is whole. */
static void test_the_folder_is_asked_again(void **state)
{
    struct files_upload upload;
    struct err err = {0};
    (void)state;
    if (geteuid() != 0)
        skip();
    root.view.is_squashed = true; /* root of a task is nobody, here: 1 */
    assert_int_equal(chmod(directory, 0755), 0);
    assert_int_equal(mkdir(place("d"), 0777), 0);
    assert_int_equal(chmod(place("d"), 0777), 0);
    assert_int_equal(begin("d/a", 0, false, &upload), 0);
    assert_int_equal(chmod(place("d"), 0755), 0);
    assert_int_equal(files_upload_place(&root, &upload, &err), ERR_FORBIDDEN);
    assert_int_equal(access(place("d/a"), F_OK), -1);
    assert_int_equal(chmod(place("d"), 0777), 0);
    root.is_read_only = true;
    assert_int_equal(files_upload_place(&root, &upload, &err), ERR_FORBIDDEN);
    root.is_read_only = false;
    assert_int_equal(files_upload_place(&root, &upload, &err), 0);
    files_upload_release(&upload);
    /* what may be written to by everybody may yet keep the files of each */
    assert_int_equal(begin("d/a", 0, true, &upload), 0);
    assert_int_equal(chmod(place("d"), 01777), 0);
    assert_int_equal(files_upload_place(&root, &upload, &err), ERR_FORBIDDEN);
    files_upload_release(&upload);
    root.view.is_squashed = false;
}

static void test_no_room(void **state)
{
    struct files_upload upload;
    struct files_path path;
    struct err err = {0};
    (void)state;
    assert_int_equal(begin("huge", UINT64_C(1) << 60, false, &upload), ERR_CONFLICT);
    assert_int_equal(files_path_parse(TEXT("words"), "path", &path, &err), 0);
    assert_int_equal(files_upload_begin(&root, &path, 1, false, UINT64_C(1) << 60, &upload, &err),
                     ERR_CONFLICT);
    assert_int_equal(begin("words", 1, false, &upload), 0);
    assert_int_equal(files_upload_add(&upload, TEXT("x"), UINT64_C(1) << 60, &err), ERR_CONFLICT);
    assert_int_equal(upload.received, 0);
    files_upload_release(&upload);
}

static void test_refused(void **state)
{
    struct files_upload upload;
    (void)state;
    assert_int_equal(begin("", 1, false, &upload), ERR_INVALID);
    assert_int_equal(begin("none/words", 1, false, &upload), ERR_NOT_FOUND);
    root.is_read_only = true;
    assert_int_equal(begin("words", 1, false, &upload), ERR_FORBIDDEN);
    root.is_read_only = false;
}

static void test_whose_it_is(void **state)
{
    struct stat stat_of;
    (void)state;
    root.is_private = true;
    assert_int_equal(put("own", "", false), 0);
    root.is_private = false;
    assert_int_equal(stat(place("own"), &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 07777, 0666);
    if (geteuid() != 0) /* nobody else can give files away */
        return;
    root.view = (struct files_view){1234, 1235, true, 1};
    assert_int_equal(put("given", "x", false), ERR_FORBIDDEN); /* the folder is root's */
    assert_int_equal(chown(directory, 1234, 1235), 0);
    assert_int_equal(put("given", "x", false), 0);
    assert_int_equal(stat(place("given"), &stat_of), 0);
    assert_int_equal(stat_of.st_uid, 1234);
    assert_int_equal(stat_of.st_gid, 1235);
    root.view = (struct files_view){0, 0, false, 1};
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parts),       cmocka_unit_test(test_what_is_given_up_is_gone),
    cmocka_unit_test(test_replace),     cmocka_unit_test(test_the_folder_is_asked_again),
    cmocka_unit_test(test_no_room),     cmocka_unit_test(test_refused),
    cmocka_unit_test(test_whose_it_is),
};
UNIT_FILE(tests, setup, teardown);
