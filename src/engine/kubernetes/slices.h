/* slices.h — what the DRA driver of the GPUs offers: its ResourceSlices, by node.
 *
 * Pure. A pool is believed when all slices of its newest generation are here, as
 * resourceSliceCount says; until then nothing is known of its node's devices. Only pools of one
 * node each (spec.nodeName) and whole GPUs count: a device with an attribute `type` is one when
 * that is "gpu". Devices that several claims may share, or that wait for conditions, are passed
 * over: an allocation of theirs says more than Skep's.
 */
#ifndef ENGINE_KUBERNETES_SLICES_H
#define ENGINE_KUBERNETES_SLICES_H
#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct doc;
struct slice_group;

/* A zeroed one, with the two names set, is empty. */
struct slices {
    const char *driver;
    const char *type_attribute; /* "productName": what the model of a device is */
    struct {
        struct slice_group *items; /* of a node each */
        size_t count, room;
    } groups;
    struct text_map nodes;
};

/* A device that is offered. */
struct slice_device {
    const char *pool, *name;
    const char *model; /* "": not told; blanks are "-", as labels of nodes have them */
    const char *root;  /* the PCIe root that it is below; "": not told */
    const char *uuid;  /* as the driver of the GPU itself names it; "": not told */
    const char *taint; /* its driver's word that it must not be used; NULL: none */
};

enum slices_state {
    SLICES_NONE, /* no slice is of this node */
    SLICES_PART, /* a pool is not complete */
    SLICES_WHOLE,
};

/* A slice is there, or has gone. The node whose devices may be others now, as long as there is no
 * next call; NULL: it is of no node, or of another driver. */
const char *slices_seen(struct slices *slices, const struct doc *slice, bool is_removed,
                        uint32_t mark);
/* The one of this name is there, and stays as it was. */
void slices_keep(struct slices *slices, const char *name, uint32_t mark);
/* Those that an older list had have gone. */
void slices_sweep(struct slices *slices, uint32_t mark);

/* The devices of a node, in `arena`, by their names: numbers in names are compared as numbers. */
enum slices_state slices_of(const struct slices *slices, const char *node, struct arena *arena,
                            const struct slice_device **devices, size_t *count);

void slices_release(struct slices *slices);

#endif
