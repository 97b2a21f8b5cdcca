/* What an image may unpack to. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"
#include "engine/local/manifest.h"
#include "engine/local/pull_work.h"

static void test_unpack_limit(void **state)
{
    (void)state;
    const struct engine_local_config config = {.image_max_mib = 10240, .image_max_ratio = 100};
    assert_int_equal(unpack_bytes_max(&config, 0), 1ull << 30);
    assert_int_equal(unpack_bytes_max(&config, 2ull << 20), 1ull << 30);
    assert_int_equal(unpack_bytes_max(&config, 20ull << 20), 2000ull << 20);
    assert_int_equal(unpack_bytes_max(&config, 200ull << 20), 10240ull << 20);
    assert_int_equal(unpack_bytes_max(&config, UINT64_MAX), 10240ull << 20);
    const struct engine_local_config small = {.image_max_mib = 64, .image_max_ratio = 100};
    assert_int_equal(unpack_bytes_max(&small, 2ull << 20), 64ull << 20);
}

/* A manifest may claim a size that makes any ratio look small. */
static void what_a_manifest_claims_does_not_count(void **state)
{
    static const char first[] = "0123456789012345678901234567890123456789012345678901234567890123";
    static const char other[] = "abcdef6789012345678901234567890123456789012345678901234567890123";
    struct manifest *manifest = mem_zero(1, sizeof *manifest);
    char name[160];

    (void)state;
    manifest->blob_count = 2;
    manifest->bytes = 20ull << 30;
    for (int i = 0; i < 2; i++) {
        snprintf(manifest->blobs[i].digest, DIGEST_SIZE, "sha256:%s", i ? other : first);
        manifest->blobs[i].bytes = 10ull << 30;
        snprintf(name, sizeof name, "layout/blobs/sha256/%s", i ? other : first);
        folder_put(name, i ? "seven b" : "three");
    }
    assert_int_equal(layout_bytes(in_folder("layout"), manifest), 12);
    assert_int_equal(layout_bytes(in_folder("nowhere"), manifest), 0);
    mem_free(manifest);
}

/* A layer that is named many times is as large as if it were named once, for what it may unpack to:
 * else whoever names it often enough gets any limit. */
static void a_layer_counts_once_however_often_it_is_named(void **state)
{
    static const char hex[] = "0023456789012345678901234567890123456789012345678901234567890123";
    struct manifest *manifest = mem_zero(1, sizeof *manifest);
    char name[160];

    (void)state;
    manifest->blob_count = MANIFEST_LAYERS_MAX + 1;
    for (size_t i = 0; i < manifest->blob_count; i++)
        snprintf(manifest->blobs[i].digest, DIGEST_SIZE, "sha256:%zu%s", i % 2, hex + 1);
    snprintf(name, sizeof name, "often/blobs/sha256/0%s", hex + 1);
    folder_put(name, "seven b");
    snprintf(name, sizeof name, "often/blobs/sha256/1%s", hex + 1);
    folder_put(name, "three");
    assert_int_equal(layout_bytes(in_folder("often"), manifest), 12);
    mem_free(manifest);
}

static void test_tree_measure(void **state)
{
    (void)state;
    char folder[] = "/tmp/skep-tree-XXXXXX", command[300];
    struct tree_size size, linked;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command,
             "cd %s && mkdir -p a/b && head -c 1000000 /dev/urandom > a/b/c && ln -s / a/root",
             folder);
    assert_int_equal(system(command), 0);
    assert_true(tree_measure(folder, 1000, &size));
    assert_int_equal(size.entries, 4);
    assert_true(size.bytes >= 1000000);
    snprintf(command, sizeof command, "cd %s && ln a/b/c a/d && ln a/b/c a/e", folder);
    assert_int_equal(system(command), 0);
    assert_true(tree_measure(folder, 1000, &linked)); /* one file by three names */
    assert_int_equal(linked.entries, 6);
    assert_true(linked.bytes < size.bytes + 100000);
    assert_true(tree_measure(folder, 2, &size));
    assert_int_equal(size.entries, 3); /* enough is enough */
    snprintf(command, sizeof command,
             "cd %s && i=0; while [ $i -lt 300 ]; do mkdir x && cd x; i=$((i+1)); done", folder);
    assert_int_equal(system(command), 0);
    assert_false(tree_measure(folder, 1000, &size));
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    assert_false(tree_measure(folder, 1000, &size));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_unpack_limit),
    cmocka_unit_test(what_a_manifest_claims_does_not_count),
    cmocka_unit_test(a_layer_counts_once_however_often_it_is_named),
    cmocka_unit_test(test_tree_measure),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
