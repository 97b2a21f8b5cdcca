/* oci.h — the OCI runtime configuration (config.json) of a task's container.
 *
 * Text out of data. The seccomp profile, masked and read-only paths, and default mounts are
 * those of Docker's defaults, the capabilities fewer; host name and time are the host's, and the
 * network unless another one is named.
 * Source: OCI runtime specification 1.0.2.
 */
#ifndef ENGINE_LOCAL_OCI_H
#define ENGINE_LOCAL_OCI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct json_writer;
struct sock_filter;

struct oci_mount {
    const char *type; /* NULL: a bind mount */
    const char *source, *target;
    bool is_read_only;
    const char *const *options; /* instead of rbind and the like; NULL: a private bind mount */
    size_t option_count;
};

struct oci_device {
    const char *path; /* in the container */
    char type;        /* 'c' or 'b' */
    uint32_t major, minor, mode, uid, gid;
    const char *access; /* "rwm" */
};

struct oci_hook {
    const char *kind; /* "createContainer", "prestart", … */
    const char *path;
    const char *const *args;
    size_t arg_count;
    const char *const *env;
    size_t env_count;
    int64_t timeout_s; /* 0: none */
};

struct oci_rlimit {
    const char *name; /* "RLIMIT_NOFILE" */
    uint64_t soft, hard;
};

struct oci_config {
    const char *rootfs;
    unsigned rights;          /* rights.h: 1u << RIGHT_… */
    const char *network_path; /* of its network namespace; NULL: the machine's */
    const char *user_path;    /* of its user namespace; NULL: the machine's … */
    uint32_t first_id;        /* … whose 0 is this id of the machine */
    uint32_t id_count;        /* of its ids, for a runtime that must be told; 0: it need not */
    const char *sys_path;     /* a sysfs to be mounted at /sys; NULL: the runtime makes one */
    const char *const *argv;
    size_t argv_count;
    const char *const *env; /* NAME=VALUE */
    size_t env_count;
    const char *cwd;
    uint32_t uid, gid;
    const uint32_t *groups; /* additional */
    size_t group_count;
    const char *cgroup_path;
    bool is_cgroup_v2; /* then the container gets a cgroup namespace */
    bool has_swap;     /* swap is accounted: the container gets none */
    uint32_t cpu;      /* 0: no limit */
    uint64_t memory_mib, shm_mib, pids_max;
    const struct oci_mount *mounts;
    size_t mount_count;
    const struct oci_device *devices;
    size_t device_count;
    bool are_devices_bound; /* by `mounts`: the runtime makes no files for them */
    const struct oci_hook *hooks;
    size_t hook_count;
    const struct oci_rlimit *rlimits;
    size_t rlimit_count;
    bool has_oom_score;
    int oom_score;
    const char *seccomp_bpf;        /* base64: instead of the profile, see oci_seccomp_bpf */
    const char *const *annotations; /* name, value, … */
    size_t annotation_count;        /* pairs */
};

void oci_config_write(const struct oci_config *config, struct buf *out);

/* Docker's default profile for containers with the default capabilities; `is_admin`: with
 * CAP_SYS_ADMIN beside them. */
void oci_seccomp_write(struct json_writer *json, bool is_admin);

/* The same profile as the kernel's filter program, as libseccomp makes it: FILTER_MAX instructions
 * at most (filter.h). */
int oci_seccomp_compile(struct sock_filter *program, size_t *count, struct err *err);

/* The same, shortened, in base64. crun takes it by an annotation and
 * then need not compile the profile for every container, which takes longer than all else it does.
 */
int oci_seccomp_bpf(struct buf *out, struct err *err);

#endif
