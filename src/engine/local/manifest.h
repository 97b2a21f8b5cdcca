/* manifest.h — what a registry says that an image consists of.
 *
 * Pure but for the hash. A manifest comes from whoever answers at an address: nothing in it is used
 * before it was checked here. Source: OCI image specification, manifest.md and image-index.md;
 * Docker's image manifest version 2, schema 2.
 */
#ifndef ENGINE_LOCAL_MANIFEST_H
#define ENGINE_LOCAL_MANIFEST_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

enum {
    MANIFEST_BYTES_MAX = 1 << 20,
    MANIFEST_LAYERS_MAX = 512,
    DIGEST_SIZE = 72, /* "sha256:", 64 digits and the end */
};

struct manifest_blob {
    char digest[DIGEST_SIZE];
    uint64_t bytes;
};

struct manifest {
    bool is_list; /* of one manifest for each kind of machine; then only `chosen` counts */
    char chosen[DIGEST_SIZE];                            /* for this machine; "": there is none */
    struct manifest_blob blobs[MANIFEST_LAYERS_MAX + 1]; /* the configuration, then the layers */
    size_t blob_count;
    uint64_t bytes; /* of all blobs */
    bool has_zstd;  /* a layer is compressed by it */
};

/* ERR_CORRUPT: it is no manifest of a Linux image; the text says why. ERR_TOO_BIG. */
int manifest_read(struct text bytes, struct manifest *manifest, struct err *err);

/* "sha256:…" of these bytes. */
void digest_of(struct text bytes, char out[DIGEST_SIZE]);

/* The digits behind "sha256:"; NULL when it is not such a digest. A digest names a file: nothing
 * else may become part of a path. */
const char *digest_hex(const char *digest);

/* Have these bytes this digest? ERR_CORRUPT says what came instead. */
int digest_check(struct text bytes, const char *digest, struct err *err);

/* The same of a file. */
int digest_check_file(const char *path, const char *digest, struct err *err);

/* The name of this kind of machine in manifests: "amd64". */
extern const char manifest_machine[];

#endif
