/* The notes of who has delivered which blob. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "engine/local/blobs.h"
#include "engine/local/runtime.h"
#include "sys/file.h"

#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A repository is not its registry, and one registry is not another. */
static void test_sources(void **state)
{
    (void)state;
    char directory[] = "/tmp/skep-blobs-XXXXXX", path[200];
    assert_non_null(mkdtemp(directory));
    struct blob_source one = blob_source_of("r", "a"), other = blob_source_of("r", "b");
    struct blob_source host = blob_source_of("r", NULL), same = blob_source_of("r", "a");
    assert_string_equal(one.name, same.name);
    assert_string_not_equal(one.name, other.name);
    assert_string_not_equal(one.name, host.name);
    blob_note(directory, &one, HEX);
    assert_true(blob_is_from(directory, &same, HEX));
    assert_false(blob_is_from(directory, &same, OTHER));
    assert_false(blob_is_from(directory, &other, HEX));
    assert_false(blob_is_from(directory, &host, HEX));
    assert_int_equal(blobs_sweep(directory, 0), 0); /* no image needs it */
    assert_false(blob_is_from(directory, &one, HEX));
    snprintf(path, sizeof path, "%s/sources", directory);
    rmdir(path);
    assert_int_equal(rmdir(directory), 0);
}

static void blob_write(const char *directory, const char *hex)
{
    char path[400];
    snprintf(path, sizeof path, "%s/blobs/sha256/%s", directory, hex);
    assert_int_equal(file_write(path, TEXT("x"), 0600, NULL), 0);
}

/* What a pull has in its folder stays, and what is young; the notes of blobs that stay do, too. */
static void test_spared(void **state)
{
    (void)state;
    enum { HOUR_S = 3600 };
    char directory[] = "/tmp/skep-blobs-XXXXXX", folder[300];
    assert_non_null(mkdtemp(directory));
    snprintf(folder, sizeof folder, "%s/blobs/sha256", directory);
    assert_int_equal(dir_make(folder, 0700, NULL), 0);
    snprintf(folder, sizeof folder, "%s/pulls/1/blobs/sha256", directory);
    assert_int_equal(dir_make(folder, 0700, NULL), 0);
    snprintf(folder, sizeof folder, "%s/pulls/1", directory);
    struct blob_source source = blob_source_of("r", NULL);
    blob_write(directory, HEX);
    blob_write(directory, OTHER);
    blob_note(directory, &source, HEX);
    blob_note(directory, &source, OTHER);
    assert_true(blob_lend(directory, HEX, folder));
    assert_int_equal(blobs_sweep(directory, HOUR_S), 2); /* both are young */
    assert_true(blob_is_from(directory, &source, OTHER));
    assert_int_equal(blobs_sweep(directory, 0), 1);
    assert_true(blob_is_here(directory, HEX) && blob_is_from(directory, &source, HEX));
    assert_false(blob_is_here(directory, OTHER) || blob_is_from(directory, &source, OTHER));
    assert_int_equal(tree_remove(folder, NULL), 0); /* the pull is over */
    assert_int_equal(blobs_sweep(directory, HOUR_S), 1);
    assert_int_equal(blobs_sweep(directory, 0), 0);
    assert_false(blob_is_here(directory, HEX));
    assert_int_equal(tree_remove(directory, NULL), 0);
}

/* A pull has fetched what lies in the store: both are one file from then on. */
static void test_fetched_again(void **state)
{
    (void)state;
    char directory[] = "/tmp/skep-blobs-XXXXXX", folder[300], path[400];
    assert_non_null(mkdtemp(directory));
    snprintf(folder, sizeof folder, "%s/pulls/1/blobs/sha256", directory);
    assert_int_equal(dir_make(folder, 0700, NULL), 0);
    snprintf(folder, sizeof folder, "%s/blobs/sha256", directory);
    assert_int_equal(dir_make(folder, 0700, NULL), 0);
    snprintf(folder, sizeof folder, "%s/pulls/1", directory);
    snprintf(path, sizeof path, "%s/blobs/sha256/%s.new", directory, HEX);
    assert_int_equal(file_write(path, TEXT("left"), 0600, NULL), 0);
    blob_write(directory, HEX);
    blob_write(folder, HEX);
    for (int i = 0; i < 2; i++) { /* the same once more */
        blobs_keep(directory, folder);
        assert_int_equal(blobs_sweep(directory, 0), 1);
        assert_true(blob_is_here(directory, HEX));
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_int_equal(tree_remove(directory, NULL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sources),
    cmocka_unit_test(test_fetched_again),
    cmocka_unit_test(test_spared),
};
UNIT_FILE(tests, NULL, NULL);
