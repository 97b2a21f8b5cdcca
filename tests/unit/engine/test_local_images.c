/* What comes from registries, before it is believed: manifests, digests, challenges; the notes of
 * who has delivered what; what an image may unpack to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/blobs.h"
#include "engine/local/manifest.h"
#include "engine/local/pull_work.h"
#include "engine/local/registry.h"
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define CONFIG                                                                                     \
    "{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:" HEX         \
    "\",\"size\":7}"
#define LAYER(type, rest)                                                                          \
    "{\"mediaType\":\"application/vnd." type "\",\"digest\":\"sha256:" HEX "\",\"size\":10" rest "}"
#define IMAGE(layers) "{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":[" layers "]}"

static int read_of(const char *text, struct manifest *manifest, struct err *err)
{
    return manifest_read(text_of(text), manifest, err);
}

static void test_manifest(void **state)
{
    (void)state;
    struct manifest manifest;
    struct err err = {0};
    assert_int_equal(read_of(IMAGE(LAYER("oci.image.layer.v1.tar+gzip", "") "," LAYER(
                                 "docker.image.rootfs.diff.tar.gzip", ",\"urls\":[]")),
                             &manifest, &err),
                     0);
    assert_false(manifest.is_list);
    assert_false(manifest.has_zstd);
    assert_int_equal(manifest.blob_count, 3);
    assert_int_equal(manifest.bytes, 27);
    assert_string_equal(manifest.blobs[0].digest, "sha256:" HEX);
    assert_int_equal(read_of(IMAGE(LAYER("oci.image.layer.v1.tar+zstd", "")), &manifest, &err), 0);
    assert_true(manifest.has_zstd);
    assert_int_equal(read_of(IMAGE(""), &manifest, &err), 0);
}

static void test_manifest_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "no configuration"},
        {"{", "not JSON"},
        {"7", "no configuration"},
        {"{}", "no configuration"},
        {"{\"config\":{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\"}}", "helm"},
        {"{\"schemaVersion\":1,\"fsLayers\":[]}", "no configuration"},
        {IMAGE(LAYER("docker.image.rootfs.foreign.diff.tar.gzip", "")), "foreign"},
        {IMAGE(LAYER("oci.image.layer.v1.tar", ",\"urls\":[\"http://127.0.0.1/x\"]")), "elsewhere"},
        {IMAGE("{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"size\":1,"
               "\"digest\":\"sha256:../../../../etc/passwd\"}"),
         "etc/passwd"},
        {IMAGE("{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"size\":-1,"
               "\"digest\":\"sha256:" HEX "\"}"),
         "-1 bytes"},
        {IMAGE("{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"sha256:" HEX
               "\",\"size\":9223372036854775807}"),
         "9223372036854775807 bytes"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct manifest manifest;
        struct err err = {0};
        assert_int_equal(read_of(cases[i].text, &manifest, &err), ERR_CORRUPT);
        if (!strstr(err.text, cases[i].words))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    struct manifest manifest;
    struct err err = {0};
    char *large = mem_zero(MANIFEST_BYTES_MAX + 1, 1);
    memset(large, ' ', MANIFEST_BYTES_MAX);
    assert_int_equal(read_of(large, &manifest, &err), ERR_TOO_BIG);
    size_t at = (size_t)snprintf(large, MANIFEST_BYTES_MAX, "{\"config\":%s,\"layers\":[", CONFIG);
    for (int i = 0; i <= MANIFEST_LAYERS_MAX; i++)
        at += (size_t)snprintf(large + at, MANIFEST_BYTES_MAX - at, "%s%s", i ? "," : "",
                               LAYER("oci.image.layer.v1.tar", ""));
    snprintf(large + at, MANIFEST_BYTES_MAX - at, "]}");
    assert_int_equal(read_of(large, &manifest, &err), ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "513 layers"));
    mem_free(large);
}

static void test_list(void **state)
{
    (void)state;
    char text[1024];
    struct manifest manifest;
    struct err err = {0};
    snprintf(text, sizeof text,
             "{\"manifests\":[7,{\"digest\":\"sha256:" OTHER "\",\"platform\":{\"os\":\"windows\","
             "\"architecture\":\"%s\"}},{\"digest\":\"sha256:" OTHER "\",\"platform\":{\"os\":"
             "\"linux\",\"architecture\":\"vax\"}},{\"digest\":\"sha256:" HEX "\",\"platform\":"
             "{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
             manifest_machine, manifest_machine);
    assert_int_equal(read_of(text, &manifest, &err), 0);
    assert_true(manifest.is_list);
    assert_string_equal(manifest.chosen, "sha256:" HEX);
    assert_int_equal(read_of("{\"manifests\":[7, null, {}]}", &manifest, &err), 0);
    assert_true(manifest.is_list);
    assert_string_equal(manifest.chosen, "");
}

static void test_digests(void **state)
{
    (void)state;
    static const char of_abc[] =
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    struct err err = {0};
    char path[] = "/tmp/skep-digest-XXXXXX";
    assert_int_equal(digest_check(TEXT("abc"), of_abc, &err), 0);
    assert_int_equal(digest_check(TEXT("abd"), of_abc, &err), ERR_CORRUPT);
    assert_null(digest_hex("sha256:"));
    assert_null(digest_hex("sha512:" HEX));
    assert_null(digest_hex("sha256:" HEX "0"));
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "abc", 3), 3);
    close(fd);
    assert_int_equal(digest_check_file(path, of_abc, &err), 0);
    assert_int_equal(digest_check_file(path, "sha256:" HEX, &err), ERR_CORRUPT);
    unlink(path);
    assert_true(digest_check_file(path, of_abc, &err) < 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
    assert_int_equal(digest_check_file(path, of_abc, &err), ERR_CORRUPT);
    unlink(path);
}

static void test_challenge(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(
        registry_token_url(TEXT("Bearer realm=\"https://auth.x/token\",service=\"reg x\","
                                "scope=\"repository:a/b:pull\""),
                           &arena),
        "https://auth.x/token?service=reg%20x&scope=repository:a/b:pull");
    assert_string_equal(
        registry_token_url(TEXT("Bearer realm=\"https://auth.x/token?a=1\",scope=\"s\""), &arena),
        "https://auth.x/token?a=1&scope=s");
    assert_string_equal(registry_token_url(TEXT("Basic realm=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT("Bearer service=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT(""), &arena), "");
    arena_release(&arena);
}

static void test_auth_file(void **state)
{
    (void)state;
    struct arena arena;
    const char *user, *password;
    arena_init(&arena);
    struct text file = TEXT("{\"auths\":{\"r:5000\":{\"auth\":\"Ym9iOnM6ZWNyZXQ=\"},\"bad\":"
                            "{\"auth\":\"***\"},\"half\":{\"auth\":\"Ym9i\"},"
                            "\"https://index.docker.io/v1/\":{\"auth\":\"YTpi\"}}}");
    assert_true(registry_auth_find(file, "r:5000", &arena, &user, &password));
    assert_string_equal(user, "bob");
    assert_string_equal(password, "s:ecret");
    assert_true(registry_auth_find(file, "docker.io", &arena, &user, &password));
    assert_string_equal(user, "a");
    assert_false(registry_auth_find(file, "bad", &arena, &user, &password));
    assert_false(registry_auth_find(file, "half", &arena, &user, &password));
    assert_false(registry_auth_find(file, "r", &arena, &user, &password));
    assert_false(registry_auth_find(TEXT("{"), "r", &arena, &user, &password));
    arena_release(&arena);
}

static void test_status(void **state)
{
    (void)state;
    bool is_final;
    assert_string_equal(pull_reason_of_status(404, &is_final), "ImageNotFound");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(401, &is_final), "ImagePullUnauthorized");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(403, &is_final), "ImagePullUnauthorized");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(429, &is_final), "RegistryUnavailable");
    assert_false(is_final);
    assert_string_equal(pull_reason_of_status(503, &is_final), "RegistryUnavailable");
    assert_null(pull_reason_of_status(200, &is_final));
    assert_false(is_final);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest),     cmocka_unit_test(test_manifest_refused),
        cmocka_unit_test(test_list),         cmocka_unit_test(test_digests),
        cmocka_unit_test(test_challenge),    cmocka_unit_test(test_auth_file),
        cmocka_unit_test(test_status),       cmocka_unit_test(test_sources),
        cmocka_unit_test(test_unpack_limit), cmocka_unit_test(test_tree_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
