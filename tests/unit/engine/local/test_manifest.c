/* Manifests and digests, before they are believed. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/manifest.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_manifest),
    cmocka_unit_test(test_manifest_refused),
    cmocka_unit_test(test_list),
    cmocka_unit_test(test_digests),
};
UNIT_FILE(tests, NULL, NULL);
