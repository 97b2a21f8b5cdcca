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
struct gpu_watch;
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

/* Look at the machine, as `config` says. Never NULL: what cannot be found is not there. */
struct inventory *inventory_new(const struct engine_local_config *config);
void inventory_free(struct inventory *inventory);

/* As ENGINE_NODE tells it. */
const struct node_facts *inventory_node(const struct inventory *inventory);

/* Post ENGINE_NODE. */
void inventory_post(struct inventory *inventory, struct local_engine *local);

enum health { HEALTH_DISK, HEALTH_RUN, HEALTH_GPUS, HEALTH_REMAINS, HEALTH_KINDS };

/* Say how one thing is that health depends on: "" = well, else why not. The node is healthy when
 * all are well; posts ENGINE_NODE when that, the reason's kind or the GPUs' reason changed.
 * Thread-safe. */
void inventory_health(struct inventory *inventory, struct local_engine *local, enum health kind,
                      const char *reason);

bool inventory_is_ill(struct inventory *inventory, enum health kind);

/* From now on the watch on the GPUs tells of changes; what it knows already is in the next
 * ENGINE_NODE. Does nothing without NVML. */
void inventory_watch(struct inventory *inventory, struct local_engine *local);
/* Stop that, before the engine's tables go. */
void inventory_unwatch(struct inventory *inventory);
/* NULL: no GPUs that NVML found. */
struct gpu_watch *inventory_gpus(const struct inventory *inventory);
/* Does NVML still answer? Posts ENGINE_NODE when that has changed. */
void inventory_gpus_check(struct inventory *inventory, struct local_engine *local);

/* The devices of a container. ERR_NOT_FOUND: a GPU index that this machine does not have. */
int inventory_devices(const struct inventory *inventory, const struct container *container,
                      struct arena *arena, struct device_edits *edits, struct err *err);

#endif
