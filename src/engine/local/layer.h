/* layer.h — metadata layers: what the files of an image are with the ids of a job, without their
 * data (docs/rfc/0015-walls.md).
 *
 * Edge. A layer is a tree of the image's names, in which each file belongs to the range of ids and
 * says that its data are those of the layers below (the kernel's overlays, `metacopy`): an overlay
 * that stands on the layer and on the image shows the image so. Needs root.
 */
#ifndef ENGINE_LOCAL_LAYER_H
#define ENGINE_LOCAL_LAYER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { LAYER_LOWER_MAX = 2, LAYER_DEPTH_MAX = 256 /* of folders */ };

#define LAYER_UPPER "upper" /* the name of the layer in the folder where it is made */

struct layer_order {
    const char *lower[LAYER_LOWER_MAX]; /* the image, and folders that complete it; NULL: none */
    const char *folder; /* empty, of ours alone; on the disk of the tasks' overlays */
    uint32_t first;     /* ids 0 … 65535 of the image are these … */
    uint32_t nobody;    /* … and all others this one */
    bool (*is_stopping)(void *context); /* asked often; NULL: never */
    void *context;
};

/* FOLDER/upper is the layer afterwards; `entries`: how many names it holds. All else in FOLDER, and
 * FOLDER of one that failed, is the caller's to remove. ERR_TOO_BIG: folders are nested too deep;
 * ERR_BUSY: it is stopping; ERR_IO. */
int layer_make(const struct layer_order *order, uint64_t *entries, struct err *err);

/* An access list as the kernel gives it to programs (system.posix_acl_access), whose named users
 * and groups get the ids of the layer. False: it is none, and nothing was changed. */
bool layer_list_map(const struct layer_order *order, unsigned char *list, size_t size);

#endif
