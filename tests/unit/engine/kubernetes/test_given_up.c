/* Why attempts were given up, on disk.
 *
 * Covers: src/engine/kubernetes/given_up.c, src/engine/kubernetes/attempt_files.c */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "engine/kubernetes/attempt_files.h"
#include "engine/kubernetes/given_up.h"
#include "folder.h"
#include "sys/cleanup.h"

static void what_is_written_is_read(void **state)
{
    (void)state;
    cleanup_buf struct buf reason = BUF_INIT, message = BUF_INIT;
    const char *folder = in_folder("given-up");
    const struct attempt_id attempt = {7}, other = {8};
    assert_false(given_up_read(folder, attempt, &reason, &message));
    assert_int_equal(given_up_put(folder, attempt, "ErrImagePull", "two\nlines", NULL), 0);
    assert_false(given_up_read(folder, other, &reason, &message));
    assert_true(given_up_read(folder, attempt, &reason, &message));
    assert_string_equal(buf_cstr(&reason), "ErrImagePull");
    assert_string_equal(buf_cstr(&message), "two\nlines");
    given_up_drop(folder, attempt);
    given_up_drop(folder, other);
    assert_false(given_up_read(folder, attempt, &reason, &message));
}

/* What is written beside it first, and made durable, has taken its place. */
static void only_the_server_reads_it(void **state)
{
    (void)state;
    const char *folder = in_folder("given-up");
    struct stat status;
    size_t names = 0;
    assert_int_equal(given_up_put(folder, (struct attempt_id){7}, "a", "first", NULL), 0);
    assert_int_equal(given_up_put(folder, (struct attempt_id){7}, "b", "second", NULL), 0);
    assert_int_equal(stat(in_folder("given-up/7"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    cleanup_dir DIR *dir = opendir(in_folder("given-up"));
    for (struct dirent *entry; (entry = readdir(dir));)
        names += entry->d_name[0] != '.';
    assert_int_equal(names, 1);
}

static void long_words_are_cut(void **state)
{
    (void)state;
    cleanup_buf struct buf reason = BUF_INIT, message = BUF_INIT;
    static char word[100 << 10];
    const char *folder = in_folder("given-up");
    memset(word, 'x', sizeof word - 1);
    assert_int_equal(given_up_put(folder, (struct attempt_id){7}, word, word, NULL), 0);
    assert_true(given_up_read(folder, (struct attempt_id){7}, &reason, &message));
    assert_in_range(reason.length, 30 << 10, 32 << 10);
    assert_int_equal(message.length, reason.length);
}

static void count(void *context, struct attempt_id attempt)
{
    *(uint64_t *)context += attempt.v;
}

static void all_are_named(void **state)
{
    (void)state;
    uint64_t sum = 0;
    const char *folder = in_folder("given-up");
    attempt_files_each(folder, count, &sum);
    assert_int_equal(sum, 0);
    assert_int_equal(given_up_put(folder, (struct attempt_id){7}, "a", "", NULL), 0);
    assert_int_equal(given_up_put(folder, (struct attempt_id){30}, "b", "", NULL), 0);
    folder_put("given-up/7.new", "of a skepd that was killed");
    attempt_files_each(folder, count, &sum);
    assert_int_equal(sum, 37);
}

static void a_folder_that_cannot_be_made(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(given_up_put("/nowhere/at/all", (struct attempt_id){7}, "a", "", &err),
                     ERR_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_is_written_is_read, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(only_the_server_reads_it, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(long_words_are_cut, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(all_are_named, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_made, folder_setup, folder_teardown),
};

UNIT_FILE(tests, NULL, NULL);
