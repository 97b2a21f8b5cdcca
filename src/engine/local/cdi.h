/* cdi.h — Container Device Interface specifications: what a device adds to a container.
 *
 * Edge. Files *.json and *.yaml of a few folders; a file that is not a specification is skipped
 * with a line in the log. Source: CDI specification 0.6.
 */
#ifndef ENGINE_LOCAL_CDI_H
#define ENGINE_LOCAL_CDI_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct device_edits;
struct doc;
struct err;

enum { CDI_DEVICES_MAX = 1024, CDI_FILE_MAX = 4 << 20 };

struct cdi_device {
    const char *kind;            /* "nvidia.com/gpu" */
    const char *name;            /* "0", "GPU-…", "all" */
    const struct doc *edits;     /* its own containerEdits, or NULL */
    const struct doc *edits_all; /* those of its file */
};

struct cdi {
    struct cdi_device *items;
    size_t count, room;
};

void cdi_release(struct cdi *cdi);

/* Add the devices of one specification; `text` need not stay. ERR_INVALID. */
int cdi_parse(struct cdi *cdi, struct text text, struct arena *arena, struct err *err);

/* All files of the folders, in the order of their names; of devices of the same name the last one
 * counts, as the specification says. */
void cdi_load(struct cdi *cdi, const char *const *directories, size_t count, struct arena *arena);

/* NULL: there is no such device. */
const struct cdi_device *cdi_find(const struct cdi *cdi, const char *kind, const char *name);

/* What a set of devices adds to a container; the edits of a file count once. ERR_NOT_FOUND: a
 * device file that is not on this machine. */
int cdi_edits(const struct cdi_device *const *devices, size_t count, struct arena *arena,
              struct device_edits *edits, struct err *err);

#endif
