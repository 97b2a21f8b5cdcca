/* image.h — a prepared image that the operator offers to who writes a job, as the configuration
 * names it.
 *
 * Pure. All strings are the configuration's; none is NULL.
 */
#ifndef MODEL_IMAGE_H
#define MODEL_IMAGE_H
#include <stddef.h>

struct offered_image {
    const char *name;  /* for people */
    const char *uri;   /* as a job file names it */
    const char *about; /* "" */
};

struct offered_images {
    const struct offered_image *items;
    size_t count;
};

#endif
