/* image.h — the images of this machine: fetched by skopeo into one store of blobs, unpacked once
 * by umoci, used by any number of tasks at the same time.
 *
 * Edge. On disk, below the engine's directory:
 *
 *   blobs/sha256/HEX   what registries serve, shared by all images
 *   images/HEX/        an OCI layout (blobs is a link to the store), rootfs/, image.json and
 *                      ids/ (layers.h)
 *   refs/HASH          which digest a reference had when it was last asked for; one for each set
 *                      of credentials, so that nobody uses what only another may pull
 *   pulls/N/           becomes images/HEX by a rename when it is whole
 *
 * At most one pull of a reference at a time; pulls of others go on beside it. One for which nobody
 * waits any more ends.
 */
#ifndef ENGINE_LOCAL_IMAGE_H
#define ENGINE_LOCAL_IMAGE_H
#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct images;
struct local_engine;
struct task;

enum { IMAGE_DESCRIPTION_MAX = 1 << 20 }; /* bytes of image.json */

struct image {
    char id[80]; /* names images/ID; of a plain directory "dir-HASH" */
    char rootfs[512];
    struct arena arena;
    const char *const *env; /* NAME=VALUE */
    size_t env_count;
    const char *user, *cwd; /* as the image says; cwd "/" by default */
    uint64_t bytes;         /* on the disk; 0: not ours */
    uint32_t users;         /* tasks that hold it */
    int64_t used_ms;        /* Unix time of the last use, by the wall clock of then */
    int64_t ahead_boot_ms;  /* since then (clock_boot_ms) used_ms is of the future; 0: it is not */
};

struct images *images_new(struct local_engine *local, struct err *err);
void images_stop(struct images *images); /* ends the pulls and their threads */
void images_free(struct images *images);

/* Find or fetch the image of a waiting task. When it is there, or cannot come, the task is settled
 * (task->image, or task_fail, then task_image_settled). */
void images_request(struct images *images, struct task *task);

/* Take a task out of the waiting ones; false: it does not wait (any more). With the engine's lock.
 */
bool images_cancel(struct images *images, struct task *task);

/* An adopted task uses this image; NULL when it is gone. */
struct image *images_adopt(struct images *images, const char *id);

/* It is in use once more, by who has it already. */
void images_hold(struct images *images, struct image *image);

/* Who took or held it no longer needs it. */
void images_return(struct images *images, struct image *image);

/* Remove images that nobody used for keep_s as of `now_s` (a trusted time: engine.h), then the
 * longest unused, of those that nobody used for least_s by the wall clock, until `bytes_wanted` are
 * free; then, when anything was removed or more is wanted, blobs that no image needs, and else
 * those that are older than keep_s. A last use of the future counts as one of the call that found
 * it. Returns the number of images removed. */
size_t images_collect(struct images *images, int64_t now_s, uint64_t keep_s, uint64_t least_s,
                      uint64_t bytes_wanted);

/* This folder of the engine's is gone when this returns; its files are removed in the background.
 */
void images_discard(struct images *images, const char *path);

/* Read back image.json and friends of one unpacked image. */
int image_load(const char *directory, struct image *image, struct err *err);

#endif
