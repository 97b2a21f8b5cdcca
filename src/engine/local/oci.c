#include "engine/local/oci.h"
#include "base/buf.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/rights.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Docker's without CAP_NET_RAW, which reads and forges what others send on a shared network, and
 * CAP_MKNOD. */
static const char *const capabilities[] = {
    "CAP_AUDIT_WRITE", "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",
    "CAP_FSETID",      "CAP_KILL",    "CAP_NET_BIND_SERVICE", "CAP_SETFCAP",
    "CAP_SETGID",      "CAP_SETPCAP", "CAP_SETUID",           "CAP_SYS_CHROOT",
};

static const char *const masked_paths[] = {
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
};

static const char *const read_only_paths[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

static void user_write(struct json_writer *json, const struct oci_config *config)
{
    json_key(json, "user");
    json_object(json);
    json_key_int(json, "uid", config->uid);
    json_key_int(json, "gid", config->gid);
    if (config->group_count) {
        json_key(json, "additionalGids");
        json_array(json);
        for (size_t i = 0; i < config->group_count; i++)
            json_int(json, config->groups[i]);
        json_array_end(json);
    }
    json_object_end(json);
}

/* As Docker: a user other than root has the capabilities only in reach, through setuid programs. */
static void capabilities_write(struct json_writer *json, const struct oci_config *config)
{
    static const char *const sets[] = {"bounding", "effective", "permitted"};
    const bool is_root = config->uid == 0;
    json_key(json, "capabilities");
    json_object(json);
    for (size_t i = 0; i < (is_root ? COUNT_OF(sets) : 1); i++) {
        json_key(json, sets[i]);
        json_array(json);
        for (size_t k = 0; k < COUNT_OF(capabilities); k++)
            json_string(json, capabilities[k]);
        if (config->rights & 1u << RIGHT_SYS_ADMIN)
            json_string(json, "CAP_SYS_ADMIN");
        if (config->rights & 1u << RIGHT_LOCK_MEMORY)
            json_string(json, "CAP_IPC_LOCK");
        json_array_end(json);
    }
    json_object_end(json);
}

static void process_write(struct json_writer *json, const struct oci_config *config)
{
    json_key(json, "process");
    json_object(json);
    json_key_bool(json, "terminal", false);
    user_write(json, config);
    json_key_strings(json, "args", config->argv, config->argv_count);
    json_key_strings(json, "env", config->env, config->env_count);
    json_key_string(json, "cwd", config->cwd);
    capabilities_write(json, config);
    if (config->rlimit_count) {
        json_key(json, "rlimits");
        json_array(json);
        for (size_t i = 0; i < config->rlimit_count; i++) {
            json_object(json);
            json_key_string(json, "type", config->rlimits[i].name);
            json_key(json, "soft");
            char number[24];
            snprintf(number, sizeof number, "%llu", (unsigned long long)config->rlimits[i].soft);
            json_raw(json, text_of(number));
            json_key(json, "hard");
            snprintf(number, sizeof number, "%llu", (unsigned long long)config->rlimits[i].hard);
            json_raw(json, text_of(number));
            json_object_end(json);
        }
        json_array_end(json);
    }
    json_key_bool(json, "noNewPrivileges", !(config->rights & 1u << RIGHT_NEW_PRIVILEGES));
    if (config->has_oom_score)
        json_key_int(json, "oomScoreAdj", config->oom_score);
    json_object_end(json);
}

static void mount_write(struct json_writer *json, const char *target, const char *type,
                        const char *source, const char *const *options, size_t count)
{
    json_object(json);
    json_key_string(json, "destination", target);
    json_key_string(json, "type", type);
    json_key_string(json, "source", source);
    json_key_strings(json, "options", options, count);
    json_object_end(json);
}

#define OPTIONS(...)                                                                               \
    (const char *const[]){__VA_ARGS__}, COUNT_OF(((const char *const[]){__VA_ARGS__}))

static void mounts_write(struct json_writer *json, const struct oci_config *config)
{
    char shm_size[40];
    snprintf(shm_size, sizeof shm_size, "size=%lluk",
             (unsigned long long)(config->shm_mib ? config->shm_mib : 64) * 1024);
    json_key(json, "mounts");
    json_array(json);
    mount_write(json, "/proc", "proc", "proc", OPTIONS("nosuid", "noexec", "nodev"));
    mount_write(json, "/dev", "tmpfs", "tmpfs",
                OPTIONS("nosuid", "strictatime", "mode=755", "size=65536k"));
    mount_write(json, "/dev/pts", "devpts", "devpts",
                OPTIONS("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"));
    if (config->sys_path)
        mount_write(json, "/sys", "bind", config->sys_path,
                    OPTIONS("bind", "rprivate", "nosuid", "noexec", "nodev", "ro"));
    else
        mount_write(json, "/sys", "sysfs", "sysfs", OPTIONS("nosuid", "noexec", "nodev", "ro"));
    mount_write(json, "/sys/fs/cgroup", "cgroup", "cgroup",
                OPTIONS("nosuid", "noexec", "nodev", "ro"));
    mount_write(json, "/dev/mqueue", "mqueue", "mqueue", OPTIONS("nosuid", "noexec", "nodev"));
    mount_write(json, "/dev/shm", "tmpfs", "shm",
                OPTIONS("nosuid", "noexec", "nodev", "mode=1777", shm_size));
    for (size_t i = 0; i < config->mount_count; i++) {
        const struct oci_mount *mount = &config->mounts[i];
        if (mount->options)
            mount_write(json, mount->target, mount->type ? mount->type : "bind", mount->source,
                        mount->options, mount->option_count);
        else if (mount->is_read_only)
            mount_write(json, mount->target, "bind", mount->source,
                        OPTIONS("rbind", "rprivate", "ro"));
        else
            mount_write(json, mount->target, "bind", mount->source, OPTIONS("rbind", "rprivate"));
    }
    json_array_end(json);
}

static void devices_write(struct json_writer *json, const struct oci_config *config)
{
    if (!config->device_count || config->are_devices_bound)
        return;
    json_key(json, "devices");
    json_array(json);
    for (size_t i = 0; i < config->device_count; i++) {
        const struct oci_device *device = &config->devices[i];
        json_object(json);
        json_key_string(json, "path", device->path);
        json_key_text(json, "type", (struct text){&device->type, 1});
        json_key_int(json, "major", device->major);
        json_key_int(json, "minor", device->minor);
        json_key_int(json, "fileMode", device->mode);
        json_key_int(json, "uid", device->uid);
        json_key_int(json, "gid", device->gid);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Nothing but what is named; the runtime adds null, zero, tty and their like by itself. */
static void device_rules_write(struct json_writer *json, const struct oci_config *config)
{
    json_key(json, "devices");
    json_array(json);
    json_object(json);
    json_key_bool(json, "allow", false);
    json_key_string(json, "access", "rwm");
    json_object_end(json);
    for (size_t i = 0; i < config->device_count; i++) {
        const struct oci_device *device = &config->devices[i];
        json_object(json);
        json_key_bool(json, "allow", true);
        json_key_text(json, "type", (struct text){&device->type, 1});
        json_key_int(json, "major", device->major);
        json_key_int(json, "minor", device->minor);
        json_key_string(json, "access", device->access);
        json_object_end(json);
    }
    json_array_end(json);
}

static void resources_write(struct json_writer *json, const struct oci_config *config)
{
    json_key(json, "resources");
    json_object(json);
    device_rules_write(json, config);
    if (config->memory_mib) {
        int64_t bytes = (int64_t)(config->memory_mib << 20);
        json_key(json, "memory");
        json_object(json);
        json_key_int(json, "limit", bytes);
        if (config->has_swap)
            json_key_int(json, "swap", bytes); /* memory and swap together: no swap */
        json_object_end(json);
    }
    if (config->cpu) {
        json_key(json, "cpu");
        json_object(json);
        json_key_int(json, "shares",
                     (int64_t)config->cpu * 1024 > 262144 ? 262144 : (int64_t)config->cpu * 1024);
        json_key_int(json, "quota", (int64_t)config->cpu * 100000);
        json_key_int(json, "period", 100000);
        json_object_end(json);
    }
    json_key(json, "pids");
    json_object(json);
    json_key_int(json, "limit", (int64_t)config->pids_max);
    json_object_end(json);
    json_object_end(json);
}

static void namespace_write(struct json_writer *json, const char *type, const char *path)
{
    json_object(json);
    json_key_string(json, "type", type);
    if (path)
        json_key_string(json, "path", path);
    json_object_end(json);
}

/* Of the namespace that is named. runc refuses one without them. crun would give its standard input
 * to root of the container by them, and that is the machine's /dev/null. */
static void mappings_write(struct json_writer *json, const struct oci_config *config)
{
    static const char *const names[] = {"uidMappings", "gidMappings"};
    for (size_t i = 0; config->id_count && i < COUNT_OF(names); i++) {
        json_key(json, names[i]);
        json_array(json);
        json_object(json);
        json_key_int(json, "containerID", 0);
        json_key_int(json, "hostID", config->first_id);
        json_key_int(json, "size", config->id_count);
        json_object_end(json);
        json_array_end(json);
    }
}

static void linux_write(struct json_writer *json, const struct oci_config *config)
{
    static const char *const namespaces[] = {"mount", "pid", "ipc", "cgroup"};
    json_key(json, "linux");
    json_object(json);
    json_key_string(json, "cgroupsPath", config->cgroup_path);
    json_key(json, "namespaces");
    json_array(json);
    for (size_t i = 0; i < COUNT_OF(namespaces) - (config->is_cgroup_v2 ? 0 : 1); i++)
        namespace_write(json, namespaces[i], NULL);
    if (config->network_path)
        namespace_write(json, "network", config->network_path);
    if (config->user_path)
        namespace_write(json, "user", config->user_path);
    json_array_end(json);
    mappings_write(json, config);
    devices_write(json, config);
    resources_write(json, config);
    if (!config->seccomp_bpf)
        oci_seccomp_write(json, config->rights & 1u << RIGHT_SYS_ADMIN);
    json_key_strings(json, "maskedPaths", masked_paths, COUNT_OF(masked_paths));
    json_key_strings(json, "readonlyPaths", read_only_paths, COUNT_OF(read_only_paths));
    json_key_string(json, "rootfsPropagation", "rprivate");
    json_object_end(json);
}

static void hooks_write(struct json_writer *json, const struct oci_config *config)
{
    static const char *const kinds[] = {"prestart",       "createRuntime", "createContainer",
                                        "startContainer", "poststart",     "poststop"};
    if (!config->hook_count)
        return;
    json_key(json, "hooks");
    json_object(json);
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        bool is_open = false;
        for (size_t i = 0; i < config->hook_count; i++) {
            const struct oci_hook *hook = &config->hooks[i];
            if (strcmp(hook->kind, kinds[k]) != 0)
                continue;
            if (!is_open) {
                json_key(json, kinds[k]);
                json_array(json);
                is_open = true;
            }
            json_object(json);
            json_key_string(json, "path", hook->path);
            if (hook->arg_count)
                json_key_strings(json, "args", hook->args, hook->arg_count);
            if (hook->env_count)
                json_key_strings(json, "env", hook->env, hook->env_count);
            if (hook->timeout_s > 0)
                json_key_int(json, "timeout", hook->timeout_s);
            json_object_end(json);
        }
        if (is_open)
            json_array_end(json);
    }
    json_object_end(json);
}

static void annotations_write(struct json_writer *json, const struct oci_config *config)
{
    json_key(json, "annotations");
    json_object(json);
    for (size_t i = 0; i < config->annotation_count; i++)
        json_key_string(json, config->annotations[2 * i], config->annotations[2 * i + 1]);
    if (config->seccomp_bpf)
        json_key_string(json, "run.oci.seccomp_bpf_data", config->seccomp_bpf);
    json_object_end(json);
}

void oci_config_write(const struct oci_config *config, struct buf *out)
{
    assert(config->argv_count > 0 && config->rootfs && config->cgroup_path);
    struct json_writer json;
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "ociVersion", "1.0.2");
    process_write(&json, config);
    json_key(&json, "root");
    json_object(&json);
    json_key_string(&json, "path", config->rootfs);
    json_key_bool(&json, "readonly", false);
    json_object_end(&json);
    mounts_write(&json, config);
    hooks_write(&json, config);
    annotations_write(&json, config);
    linux_write(&json, config);
    json_object_end(&json);
}
