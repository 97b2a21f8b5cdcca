/* local.h — containers on this machine without any daemon: crun or runc under conmon, images by
 * skopeo and umoci, an overlay per task. Needs root.
 *
 * Edge. Everything is below two directories:
 *   DIRECTORY        containers/ID, images/, blobs/, pulls/, layers/   (on disk)
 *   RUN_DIRECTORY    the runtime's state and exit files       (on a tmpfs: emptied by a reboot)
 * Two engines may run on one machine when their directories differ. Conmon outlives the engine:
 * what runs goes on when the server dies and is adopted by the next engine_local_new.
 * Tables of states and files: docs/rfc/0008-local-engine.md.
 */
#ifndef ENGINE_LOCAL_LOCAL_H
#define ENGINE_LOCAL_LOCAL_H
#include "engine/engine.h"
#include "engine/local/rights.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum {
    ENGINE_LOCAL_CONTAINERS_MAX = 20000,
    ENGINE_LOCAL_WORKERS_MAX = 64,
    ENGINE_LOCAL_PULLS_MAX = 16,
    ENGINE_LOCAL_LOG_TAIL_MAX = 10 << 20,
};

/* Is a task's disk to be limited? */
enum disk_quota {
    DISK_QUOTA_POSSIBLE, /* by project quotas, where the data directory's file system has them */
    DISK_QUOTA_REQUIRED, /* … elsewhere by a file system for each task */
    DISK_QUOTA_OFF,
};

/* Is root of a task nobody on the machine? */
enum user_namespaces {
    USER_NAMESPACES_AUTO,     /* where the machine can, for all that the operator set up */
    USER_NAMESPACES_REQUIRED, /* … else the engine does not open, or the task does not start */
    USER_NAMESPACES_OFF,
};

/* How are images shown with the ids of a job? */
enum user_images {
    USER_IMAGES_AUTO,     /* by mounts where the kernel can, else by metadata layers */
    USER_IMAGES_IDMAPPED, /* by mounts alone */
    USER_IMAGES_METADATA, /* by metadata layers alone */
};

/* NULL and 0 give the default named in brackets. Strings are copied. */
struct engine_local_config {
    const char *directory;     /* DATA/engine; created when it is not there */
    const char *run_directory; /* [/run/skep/HASH, of the directory's real path] */
    const char *init_path;     /* skep-init on this machine, mounted at /skep/init */
    const char *const *argv;   /* first process of every container [/skep/init] */
    size_t argv_count;

    const char *runtime; /* path of crun or runc [the first that starts a container here] */
    uint32_t workers;    /* threads that start and end containers [8] */
    uint32_t pulls;      /* images fetched at the same time [4] */

    /* inventory [what the machine has] */
    const char *node_name, *address;
    uint32_t cpu;
    uint64_t memory_mib;     /* [all but a sixteenth, of 2 GiB at most, for the machine itself] */
    uint32_t simulated_gpus; /* > 0: that many devices that do not exist, instead of real ones */
    const char *simulated_gpu_type;     /* [simulated] */
    const char *nvml_path;              /* [libnvidia-ml.so.1] */
    uint32_t gpu_sample_ms;             /* between two samples of the GPUs [5000] */
    uint32_t nvml_list_ms;              /* how long the start waits for NVML's list [30000] */
    const char *topology_path;          /* hwloc XML of another machine, for tests [this machine] */
    const char *const *cdi_directories; /* [/etc/cdi, /var/run/cdi] */
    size_t cdi_directory_count;

    /* limits of a container */
    uint32_t pids_max;    /* [its share of half of the machine's: limits.h] */
    uint64_t log_max_mib; /* what its log folder may take [2304] */
    enum disk_quota disk_quota;
    uint64_t disk_mib; /* what it may write [20480] */

    struct right_list rights[RIGHTS]; /* [none] */

    /* user ids: a range for each job, but for those with RIGHT_HOST_USERS */
    enum user_namespaces user_namespaces;
    enum user_images user_images;
    uint32_t first_id, id_jobs; /* as id_ranges.h says [2000683008, 2237] */
    const char *id_registry;    /* [/run/skep/ids] */

    /* network: each job's own, but for those with RIGHT_HOST_NETWORK [the machine's, for all] */
    bool has_private_network;
    bool is_network_by_job; /* … and but for jobs with may_have_host_network: where this machine
                               cannot, all have the machine's */
    bool is_network_closed; /* it leads to no other machine */
    const char *subnet;     /* addresses of jobs [10.213.0.0/16] */
    /* a folder with the server's sockets, mounted at LAYOUT_DOOR [none] */
    const char *door_directory;

    /* images */
    /* local images may be used from below these folders [none]; ROOT/skep/base is found by the name
     * skep/base as well */
    const char *const *image_roots;
    size_t image_root_count;
    const char *const *insecure_registries; /* HOST[:PORT] without TLS [loopback addresses] */
    size_t insecure_registry_count;
    const char *registry_auth_file; /* for pulls without credentials of their own [none] */
    uint32_t image_fresh_s;         /* how long `latest` is taken for unchanged [10] */
    uint32_t pull_tries;            /* of one image, with growing pauses [3] */
    uint64_t image_max_mib;         /* what an image may unpack to [131072] */
    uint64_t image_max_entries;     /* … its files and folders [2000000] */
    uint32_t image_max_ratio;       /* … times its layers' bytes, but 1 GiB at least [100] */
    uint32_t pull_stall_s;          /* a pull that gets no byte for so long is tried again [120] */

    /* housekeeping */
    uint32_t disk_reserve_mib; /* less free space makes the node unhealthy [1024] */
    uint64_t image_keep_s;     /* an image unused for so long is removed [7 days] */
    uint32_t
        image_high_percent; /* of the disk used: the longest unused images go after an hour [85] */
    uint64_t container_keep_s; /* files of an ended container that nobody forgot [1 day] */
    uint64_t log_keep_s;       /* logs of ended containers [30 days] */
    uint64_t log_keep_mib;     /* … the oldest go first when they take more [10240] */
    uint32_t housekeeping_s;   /* time between two rounds [60] */
};

/* Find a runtime that works here, adopt what runs, remove what is left over, begin to post events:
 * ENGINE_NODE first. ERR_UNSUPPORTED: no runtime starts a container here (the text says why each
 * did not); ERR_BUSY: another engine uses the directory; ERR_IO. */
struct engine *engine_local_new(const struct engine_local_config *config, struct engine_sink sink,
                                struct err *err);

/* Why jobs are in the machine's network that should have their own; "" when they have, or nothing
 * is known against it. Thread-safe. */
void engine_local_network_trouble(struct engine *engine, char *text, size_t size);

/* One round of housekeeping now, for tests and an operator's command. */
void engine_local_housekeep(struct engine *engine);

#endif
