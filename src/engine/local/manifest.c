#include "engine/local/manifest.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "sys/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
const char manifest_machine[] = "amd64";
#elif defined(__aarch64__)
const char manifest_machine[] = "arm64";
#endif

static const int64_t BLOB_BYTES_MAX = INT64_C(1) << 48; /* so that sums of them do not overflow */

/* Layers of other kinds are somewhere else ("foreign"), or nothing that umoci unpacks. */
static const struct {
    const char *type;
    bool is_zstd;
} layer_types[] = {
    {"application/vnd.oci.image.layer.v1.tar", false},
    {"application/vnd.oci.image.layer.v1.tar+gzip", false},
    {"application/vnd.oci.image.layer.v1.tar+zstd", true},
    {"application/vnd.docker.image.rootfs.diff.tar", false},
    {"application/vnd.docker.image.rootfs.diff.tar.gzip", false},
    {"application/vnd.docker.image.rootfs.diff.tar.zstd", true},
};

static const char *const config_types[] = {
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
};

/* --- digests --- */

const char *digest_hex(const char *digest)
{
    if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 71 ||
        strspn(digest + 7, "0123456789abcdef") != 64)
        return NULL;
    return digest + 7;
}

static void digest_put(const unsigned char hash[crypto_hash_sha256_BYTES], char out[DIGEST_SIZE])
{
    memcpy(out, "sha256:", 7);
    sodium_bin2hex(out + 7, 65, hash, crypto_hash_sha256_BYTES);
}

void digest_of(struct text bytes, char out[DIGEST_SIZE])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)bytes.at, bytes.length);
    digest_put(hash, out);
}

int digest_check(struct text bytes, const char *digest, struct err *err)
{
    char found[DIGEST_SIZE];
    digest_of(bytes, found);
    if (strcmp(found, digest) == 0)
        return 0;
    return err_fail(err, ERR_CORRUPT, "", "asked for %s, got what has %s", digest, found);
}

int digest_check_file(const char *path, const char *digest, struct err *err)
{
    unsigned char bytes[65536], hash[crypto_hash_sha256_BYTES];
    char found[DIGEST_SIZE];
    crypto_hash_sha256_state state;
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    crypto_hash_sha256_init(&state);
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        crypto_hash_sha256_update(&state, bytes, (unsigned long long)got);
    if (got < 0)
        return err_errno(err, errno, "read %s", path);
    crypto_hash_sha256_final(&state, hash);
    digest_put(hash, found);
    if (strcmp(found, digest) == 0)
        return 0;
    return err_fail(err, ERR_CORRUPT, "", "%s is damaged: its digest is %s", path, found);
}

/* --- manifests --- */

static void list_read(const struct doc *items, struct manifest *manifest)
{
    manifest->is_list = true;
    for (size_t i = 0; i < document_count(items) && !manifest->chosen[0]; i++) {
        const struct doc *item = items->as.list.items[i];
        const struct doc *platform = doc_get(item, "platform");
        const char *digest = document_string(item, "digest");
        if (strcmp(document_string(platform, "os"), "linux") == 0 &&
            strcmp(document_string(platform, "architecture"), manifest_machine) == 0 &&
            digest_hex(digest))
            snprintf(manifest->chosen, sizeof manifest->chosen, "%s", digest);
    }
}

static int blob_add(const struct doc *blob, const char *what, struct manifest *manifest,
                    struct err *err)
{
    const char *digest = document_string(blob, "digest");
    int64_t size = document_int(blob, "size");
    if (!digest_hex(digest))
        return err_fail(err, ERR_CORRUPT, "", "the manifest names a %s by the digest \"%.80s\"",
                        what, digest);
    if (size < 0 || size > BLOB_BYTES_MAX)
        return err_fail(err, ERR_CORRUPT, "", "the manifest has a %s of %lld bytes", what,
                        (long long)size);
    if (document_count(doc_get(blob, "urls")) > 0)
        return err_fail(err, ERR_CORRUPT, "", "the manifest has a %s that is kept elsewhere", what);
    struct manifest_blob *to = &manifest->blobs[manifest->blob_count++];
    snprintf(to->digest, sizeof to->digest, "%s", digest);
    to->bytes = (uint64_t)size;
    manifest->bytes += to->bytes;
    return 0;
}

static int layer_add(const struct doc *layer, struct manifest *manifest, struct err *err)
{
    const char *type = document_string(layer, "mediaType");
    for (size_t i = 0; i < COUNT_OF(layer_types); i++)
        if (strcmp(layer_types[i].type, type) == 0) {
            manifest->has_zstd = manifest->has_zstd || layer_types[i].is_zstd;
            return blob_add(layer, "layer", manifest, err);
        }
    return err_fail(err, ERR_CORRUPT, "", "the manifest has a layer of the type \"%.120s\"", type);
}

static int plain_read(const struct doc *doc, struct manifest *manifest, struct err *err)
{
    const struct doc *config = doc_get(doc, "config"), *layers = doc_get(doc, "layers");
    const char *type = document_string(config, "mediaType");
    bool is_image = false;
    for (size_t i = 0; i < COUNT_OF(config_types); i++)
        is_image = is_image || strcmp(type, config_types[i]) == 0;
    if (!is_image)
        return err_fail(err, ERR_CORRUPT, "",
                        config ? "the manifest is not an image's: its configuration has the type "
                                 "\"%.120s\""
                               : "the manifest has no configuration%s",
                        type);
    if (document_count(layers) > MANIFEST_LAYERS_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "the image has %zu layers, %d are the most",
                        document_count(layers), MANIFEST_LAYERS_MAX);
    int code = blob_add(config, "configuration", manifest, err);
    for (size_t i = 0; code == 0 && i < document_count(layers); i++)
        code = layer_add(layers->as.list.items[i], manifest, err);
    return code;
}

int manifest_read(struct text bytes, struct manifest *manifest, struct err *err)
{
    memset(manifest, 0, sizeof *manifest);
    if (bytes.length >= MANIFEST_BYTES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "the manifest has %d bytes or more",
                        MANIFEST_BYTES_MAX);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct doc *doc = document_read(bytes, false, &arena);
    const struct doc *items = doc_get(doc, "manifests");
    int code = 0;
    if (!doc)
        code = err_fail(err, ERR_CORRUPT, "", "the manifest is not JSON");
    else if (items)
        list_read(items, manifest);
    else
        code = plain_read(doc, manifest, err);
    return code;
}
