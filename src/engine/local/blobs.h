/* blobs.h — the store of blobs that all images share, and from where each of them came.
 *
 * Edge. On disk, below the engine's directory:
 *   blobs/sha256/HEX        layers, configurations and manifests, each once
 *   sources/SOURCE/HEX      empty; that source has delivered this blob, all of it
 * A digest is no secret: who knows one must not get the blob for it. So a pull takes from the store
 * only what its source has shown to have. A source is a registry's repository, or a registry.
 */
#ifndef ENGINE_LOCAL_BLOBS_H
#define ENGINE_LOCAL_BLOBS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOB_SOURCE_SIZE = 33 };

struct blob_source {
    char name[BLOB_SOURCE_SIZE];
};

/* `path` NULL: the registry as such. */
struct blob_source blob_source_of(const char *host, const char *path);

/* Has the source delivered it? `directory` is the engine's. */
bool blob_is_from(const char *directory, const struct blob_source *source, const char *hex);
/* It has. Best effort: else it is fetched once more. */
void blob_note(const char *directory, const struct blob_source *source, const char *hex);

/* Is it on this disk? */
bool blob_is_here(const char *directory, const char *hex);

/* FOLDER/blobs/sha256 gets the blob from the store; false: it is not there. */
bool blob_lend(const char *directory, const char *hex, const char *folder);

/* All of FOLDER/blobs/sha256, whose digests were checked, goes into the store, too. */
void blobs_keep(const char *directory, const char *folder);

/* Remove the blobs that no unpacked image needs, and what is known of blobs that are gone. Those
 * stay that a pull has in its folder, or had, or that came, less than young_s seconds ago by the
 * wall clock; a time of the future is such a one unless young_s is 0. No pull begins meanwhile.
 * Returns how many have stayed. */
size_t blobs_sweep(const char *directory, uint64_t young_s);

#endif
