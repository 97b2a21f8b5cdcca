/* devices.h — which device of a node is GPU number 0, 1, …; and which of them an attempt has.
 *
 * Pure. Skep names GPUs by their index, a DRA driver by pool and name. A device keeps its index for
 * as long as the table lives: one that is not offered any more, or is tainted, is lost (and its
 * index nobody's) until it is offered again. A device that is new takes the lowest index that is
 * free or whose device has gone, unless an attempt still has that. After a restart the devices of
 * attempts that are there have the indices that these were given (device_table_hold).
 *
 * What an attempt has is one line, an annotation of its pod: "DRIVER 0=POOL/NAME 3=POOL/NAME".
 */
#ifndef ENGINE_KUBERNETES_DEVICES_H
#define ENGINE_KUBERNETES_DEVICES_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;
struct node_facts;
struct slice_device;

struct device_entry;
struct device_table { /* a zeroed one is empty */
    struct {
        struct device_entry *items; /* by index */
        size_t count, room;
    } all;
};

struct device_pick_item {
    uint16_t index;
    const char *pool, *name;
};

/* What an attempt has. */
struct device_pick {
    const char *driver;
    const struct device_pick_item *items;
    size_t count;
};

enum {
    DEVICES_MAX = 4096,     /* of a node */
    DEVICES_CLAIM_MAX = 32, /* that one claim takes (AllocationResultsMaxSize of the API) */
};

/* An attempt has this. */
void device_table_hold(struct device_table *table, const struct device_pick *pick);
/* What is offered now; `is_used`: an attempt still has the device of this index. ERR_TOO_BIG: more
 * than DEVICES_MAX; the table is as before. */
int device_table_update(struct device_table *table, const struct slice_device *devices,
                        size_t count, bool (*is_used)(const void *context, uint16_t index),
                        const void *context, struct err *err);
/* GPUs, their type and their switches; arrays and names are in `arena` or the table. `otherwise`:
 * the type where the driver tells none. The reason why the node can have no tasks, or NULL. */
const char *device_table_facts(const struct device_table *table, const char *otherwise,
                               struct arena *arena, struct node_facts *facts);
/* Is the device of an index offered now? *pool and *name: which it is; NULL: none has been. */
bool device_table_is_offered(const struct device_table *table, size_t index, const char **pool,
                             const char **name);
/* By its UUID. False: no device has told that it has this one. */
bool device_table_find(const struct device_table *table, const char *uuid, uint16_t *index);
void device_table_release(struct device_table *table);

/* Append the line of these indices. ERR_UNAVAILABLE: one of them is not offered now. */
int device_pick_write(const struct device_table *table, const char *driver, const uint16_t *gpus,
                      size_t count, struct buf *out, struct err *err);
/* False: it is no such line. */
bool device_pick_read(const char *line, struct arena *arena, struct device_pick *pick);

#endif
