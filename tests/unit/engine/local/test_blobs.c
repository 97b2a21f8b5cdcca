/* The notes of who has delivered which blob. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "engine/local/blobs.h"

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
    blobs_sweep(directory); /* no image needs it */
    assert_false(blob_is_from(directory, &one, HEX));
    snprintf(path, sizeof path, "%s/sources", directory);
    rmdir(path);
    assert_int_equal(rmdir(directory), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sources),
};
UNIT_FILE(tests, NULL, NULL);
