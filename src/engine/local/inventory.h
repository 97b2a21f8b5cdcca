/* inventory.h — what this machine offers: processors, memory, address, GPUs and their places.
 *
 * Edge. GPUs come from NVML, else from CDI specifications, else there are none; or as many
 * simulated ones as configured. Devices in a container come from CDI when a specification names
 * them, else (NVIDIA) from the device files themselves.
 */
#ifndef ENGINE_LOCAL_INVENTORY_H
#define ENGINE_LOCAL_INVENTORY_H
#include "engine/engine.h"
#include "engine/local/oci.h"

struct arena;
struct engine_local_config;
struct err;
struct inventory;
struct local_engine;

/* What a task's devices add to its container; in an arena. */
struct device_edits {
    const struct oci_mount *mounts;
    size_t mount_count;
    const struct oci_device *devices;
    size_t device_count;
    const struct oci_hook *hooks;
    size_t hook_count;
    const char *const *env;
    size_t env_count;
};

struct inventory *inventory_new(const struct engine_local_config *config);
void inventory_free(struct inventory *inventory);

const struct engine_node *inventory_node(const struct inventory *inventory);

/* Post ENGINE_NODE. */
void inventory_post(struct inventory *inventory, struct local_engine *local);

enum health { HEALTH_DISK, HEALTH_REMAINS, HEALTH_KINDS };

/* Say how one thing is that health depends on: "" = well, else why not. The node is healthy when
 * all are well; posts ENGINE_NODE when that or the reason's kind changed. Thread-safe. */
void inventory_health(struct inventory *inventory, struct local_engine *local, enum health kind,
                      const char *reason);

/* The devices of a container. ERR_NOT_FOUND: a GPU index that this machine does not have. */
int inventory_devices(const struct inventory *inventory, const struct container *container,
                      struct arena *arena, struct device_edits *edits, struct err *err);

#endif
