/* From a waiting task with an image to a running first process. */
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/inventory.h"
#include "engine/local/limits.h"
#include "engine/local/log_keep.h"
#include "engine/local/network.h"
#include "engine/local/oci.h"
#include "engine/local/spawn.h"
#include "engine/local/task.h"
#include "engine/local/user.h"
#include "init/layout.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/process.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MOUNTS_OF_OURS = 9, PRIVATE_OPTIONS = 8, ENV_OF_OURS = 4, RLIMITS_MAX = 4 };

/* What lies on the task's disk, and is mounted into its container. */
struct disk_place {
    char ours[RUNTIME_PATH_MAX]; /* as this process reaches it */
    char seen[RUNTIME_PATH_MAX]; /* as the runtime does */
    const char *bound;           /* … or there: NULL: it can pass to it */
};

/* Everything that the steps of one start share. */
struct start {
    struct local_engine *local;
    struct task *task;
    const struct container *wanted;
    struct arena *arena;
    struct user user;
    unsigned rights; /* rights.h */
    struct network_place place;
    struct task_ids ids;
    struct device_edits edits;
    const struct oci_device *devices;
    size_t device_count;
    char upper[RUNTIME_PATH_MAX], work[RUNTIME_PATH_MAX], merged[RUNTIME_PATH_MAX],
        folder[RUNTIME_PATH_MAX], bundle[RUNTIME_PATH_MAX], skep[RUNTIME_PATH_MAX],
        sys[RUNTIME_PATH_MAX], output[RUNTIME_PATH_MAX], kept_log[RUNTIME_PATH_MAX],
        resolver[RUNTIME_PATH_MAX], group[CGROUP_PATH_MAX];
    struct disk_place run, log, hosts;
};

/* A full disk must be told from all else: it is the machine's fault, not the job's. */
static int fail_by_errno(struct start *start, int number, const char *what)
{
    task_fail(start->task, number == ENOSPC || number == EDQUOT ? "DiskFull" : "CreationError",
              "%s: %s", what, strerrordesc_np(number) ? strerrordesc_np(number) : "unknown error");
    return ERR_IO;
}

bool words_say_full(const char *words)
{
    return strstr(words, "No space left") || strstr(words, "Disk quota");
}

enum owner { OWNER_MACHINE, OWNER_ROOT /* of the task */, OWNER_USER /* of the image */ };

/* What a task may own is of its ids, which are the machine's from `first` on, or are the same. */
static int owner_put(const struct start *start, int fd, const char *path, enum owner owner)
{
    const uint32_t first = start->ids.place.first;
    const bool is_user = owner == OWNER_USER;
    return fchownat(fd, path, first + (is_user ? start->user.uid : 0),
                    first + (is_user ? start->user.gid : 0), AT_EMPTY_PATH);
}

static int directory_put(struct start *start, const char *path, mode_t mode, enum owner owner)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return fail_by_errno(start, errno, path);
    if (chmod(path, mode) < 0) /* whatever the umask */
        return fail_by_errno(start, errno, path);
    if (owner != OWNER_MACHINE && owner_put(start, AT_FDCWD, path, owner) < 0)
        return fail_by_errno(start, errno, path);
    return 0;
}

static int file_place(struct start *start, const char *name, struct text content, mode_t mode)
{
    char path[2 * RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", start->skep, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_by_errno(start, errno, path);
    for (size_t at = 0; at < content.length;) {
        ssize_t wrote = write(fd, content.at + at, content.length - at);
        if (wrote < 0 && errno != EINTR)
            return fail_by_errno(start, errno, path);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    if (owner_put(start, fd, "", OWNER_USER) < 0 || fchmod(fd, mode) < 0)
        return fail_by_errno(start, errno, path);
    return 0;
}

static void paths_fill(struct start *start)
{
    struct local_engine *local = start->local;
    const char *id = start->task->id;
    task_path(local, id, "", start->folder);
    task_run_path(local, id, "", start->bundle);
    snprintf(start->merged, sizeof start->merged, "%s/merged", local->run_directory);
    snprintf(start->sys, sizeof start->sys, "%s/sys", local->run_directory);
    task_run_path(local, id, "skep", start->skep);
    task_path(local, id, "output", start->output);
    task_run_path(local, id, "resolv.conf", start->resolver);
    task_log_path(local, id, start->kept_log);
    task_group(local, id, start->group);
}

/* Of a task with a disk of its own: as if that were mounted, which it will be for the runtime. */
static void disk_path_seen(const struct start *start, const char *name, char path[RUNTIME_PATH_MAX])
{
    char below[64];
    snprintf(below, sizeof below, "%s/%s", TASK_DISK_NAME, name);
    task_path(start->local, start->task->id, start->task->disk_fd >= 0 ? below : name, path);
}

static void disk_paths_fill(struct start *start)
{
    const struct {
        const char *name;
        struct disk_place *place;
    } places[] = {{"run", &start->run}, {"log", &start->log}, {"hosts", &start->hosts}};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        task_disk_path(start->local, start->task, places[i].name, places[i].place->ours);
        disk_path_seen(start, places[i].name, places[i].place->seen);
    }
    if (start->task->disk_fd < 0) { /* it outlives the task there */
        memcpy(start->log.ours, start->kept_log, sizeof start->log.ours);
        memcpy(start->log.seen, start->kept_log, sizeof start->log.seen);
    }
    disk_path_seen(start, "upper", start->upper);
    disk_path_seen(start, "work", start->work);
}

/* The state is on disk before anything runs: the next engine finds every container by it. */
static int state_put(struct start *start)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key_int(&json, "version", 1);
    json_key_string(&json, "boot", start->local->boot_id);
    json_key_string(&json, "image", start->task->image->id);
    json_key_string(&json, "job", start->wanted->job);
    json_key_string(&json, "role", start->wanted->role);
    json_key_int(&json, "index", start->wanted->index);
    json_key_int(&json, "created_ms", clock_unix_ms());
    json_key_bool(&json, "poststop", start->task->has_poststop);
    task_gpus_write(start->local, start->task, &json);
    task_network_write(start->wanted, &start->place, &json);
    task_ids_write(&start->ids, &json);
    json_object_end(&json);
    char path[RUNTIME_PATH_MAX];
    task_path(start->local, start->task->id, "state", path);
    int code = file_put(path, buf_as_text(&text), 0600, NULL);
    return code < 0 ? fail_by_errno(start, errno, path) : 0;
}

static int disk_make(struct start *start)
{
    struct err err = {0};
    int code = task_disk_make(start->local, start->task, &err);
    if (code < 0)
        task_fail(start->task, words_say_full(err.text) ? "DiskFull" : "CreationError",
                  "its disk: %s", err.text);
    else
        disk_paths_fill(start);
    return code;
}

/* Before the task has written anything, all that it can write to counts. */
static int disk_limit(struct start *start)
{
    struct err err = {0};
    const char *paths[] = {start->upper, start->work, start->run.ours, start->hosts.ours};
    const size_t count = COUNT_OF(paths) - !start->place.address[0];
    int code = task_disk_limit(start->local, start->task, paths, count, &err);
    if (code < 0)
        task_fail(start->task, "CreationError", "its disk: %s", err.text);
    return code;
}

static int directories_put(struct start *start)
{
    char upper[RUNTIME_PATH_MAX], work[RUNTIME_PATH_MAX];
    int code = directory_put(start, start->folder, 0711, OWNER_MACHINE);
    if (code == 0)
        code = directory_put(start, start->bundle, 0711, OWNER_MACHINE);
    if (code == 0)
        code = disk_make(start);
    task_disk_path(start->local, start->task, "upper", upper);
    task_disk_path(start->local, start->task, "work", work);
    const struct {
        const char *path;
        mode_t mode;
        enum owner owner;
    } wanted[] = {
        {upper, 0755, OWNER_ROOT},           {work, 0700, OWNER_MACHINE},
        {start->skep, 0755, OWNER_MACHINE},  {start->run.ours, 0755, OWNER_USER},
        {start->kept_log, 0755, OWNER_USER}, {start->log.ours, 0755, OWNER_USER},
    };
    for (size_t i = 0; i < COUNT_OF(wanted) && code == 0; i++)
        code = directory_put(start, wanted[i].path, wanted[i].mode, wanted[i].owner);
    if (code == 0)
        code = task_ids_places(start->task, &start->ids);
    if (code == 0)
        log_owner_put(start->kept_log, start->wanted->job);
    return code;
}

/* Of a task with a network of its own: where it is, and what its names and resolvers are. The names
 * are skep-init's to add to, and lie where the task may write on the disk anyway. */
static int network_files_put(struct start *start)
{
    cleanup_buf struct buf hosts = BUF_INIT, resolver = BUF_INIT;
    task_hosts_text(&start->place, &hosts);
    task_resolver_text(&resolver);
    int code = file_place(start, LAYOUT_NETWORK_NAME, text_of(start->place.address), 0444);
    if (code == 0 && file_put(start->hosts.ours, buf_as_text(&hosts), 0644, NULL) < 0)
        code = fail_by_errno(start, errno, start->hosts.ours);
    if (code == 0 && owner_put(start, AT_FDCWD, start->hosts.ours, OWNER_USER) < 0)
        code = fail_by_errno(start, errno, start->hosts.ours);
    if (code == 0 && file_put(start->resolver, buf_as_text(&resolver), 0644, NULL) < 0)
        code = fail_by_errno(start, errno, start->resolver);
    /* whatever the umask: the image's user reads them */
    if (code == 0 && (chmod(start->hosts.ours, 0644) < 0 || chmod(start->resolver, 0644) < 0))
        code = fail_by_errno(start, errno, start->hosts.ours);
    return code;
}

/* What is mounted at /skep: the task's files, and the places for the mounts in it. */
static int files_put(struct start *start)
{
    static const char *const places[] = {"/log", "/run", "/private", "/door"};
    const size_t place_count = COUNT_OF(places) - !start->local->config.door_directory[0];
    char path[2 * RUNTIME_PATH_MAX];
    int code = file_place(start, "init", (struct text){"", 0}, 0755);
    if (code == 0 && start->place.address[0])
        code = network_files_put(start);
    for (size_t i = 0; i < place_count && code == 0; i++) {
        snprintf(path, sizeof path, "%s%s", start->skep, places[i]);
        code = directory_put(start, path, 0755, OWNER_MACHINE);
    }
    for (size_t i = 0; i < start->wanted->file_count && code == 0; i++) {
        const struct engine_file *file = &start->wanted->files[i];
        code = file_place(start, file->name, file->content, file->mode ? file->mode : 0400);
    }
    return code;
}

/* Without mount_setattr, which came with Linux 5.12, crun looks for what it binds as root of the
 * task, who does not pass into the data directory. */
static int places_bind(struct start *start)
{
    struct disk_place *const places[] = {&start->run, &start->log, &start->hosts};
    static const char *const names[] = {"bound-run", "bound-log", "bound-hosts"};
    const size_t count = COUNT_OF(places) - !start->place.address[0];
    for (size_t i = 0; i < count && start->ids.has_layer; i++) {
        places[i]->bound = task_ids_bind(start->local, start->task, places[i]->ours, names[i],
                                         start->arena, &start->ids);
        if (!places[i]->bound)
            return ERR_IO;
    }
    return 0;
}

/* --- the container's configuration --- */

/* The smaller of what is wanted and what is allowed here. */
static struct oci_rlimit rlimit_of(const char *name, __rlimit_resource_t resource, uint64_t wanted)
{
    struct rlimit now;
    if (getrlimit(resource, &now) < 0 || (limit_can_raise() && resource != RLIMIT_NOFILE))
        return (struct oci_rlimit){name, wanted, wanted};
    if (limit_can_raise())
        now.rlim_max = wanted > now.rlim_max ? wanted : now.rlim_max;
    uint64_t limit = wanted < now.rlim_max ? wanted : now.rlim_max;
    return (struct oci_rlimit){name, limit, limit};
}

static size_t rlimits_fill(const struct start *start, struct oci_rlimit *limits)
{
    const struct container *wanted = start->wanted;
    size_t count = 0;
    limits[count++] = rlimit_of("RLIMIT_NOFILE", RLIMIT_NOFILE, 1048576);
    struct rlimit core;
    getrlimit(RLIMIT_CORE, &core);
    limits[count++] = (struct oci_rlimit){"RLIMIT_CORE", 0, core.rlim_max};
    if (wanted->gpu_count || wanted->wants_infiniband || /* page-locked buffers of NCCL and verbs */
        start->rights & 1u << RIGHT_LOCK_MEMORY)
        limits[count++] = rlimit_of("RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, UINT64_MAX);
    assert(count <= RLIMITS_MAX);
    return count;
}

static struct oci_mount mount_read_only(const char *source, const char *target)
{
    return (struct oci_mount){.source = source, .target = target, .is_read_only = true};
}

/* What the task can write to: device nodes and set-user-id bits are of no use there. */
static struct oci_mount mount_writable(const char *source, const char *target)
{
    static const char *const options[] = {"rbind", "rprivate", "nosuid", "nodev"};
    return (struct oci_mount){
        .source = source, .target = target, .options = options, .option_count = COUNT_OF(options)};
}

/* In the container's memory, gone with its last process: what must not reach a disk. */
static struct oci_mount mount_private(struct start *start)
{
    const char **options = ARENA_ARRAY(start->arena, const char *, PRIVATE_OPTIONS);
    size_t count = 0;
    options[count++] = "nosuid";
    options[count++] = "nodev";
    options[count++] = "noexec";
    options[count++] = "mode=0700";
    options[count++] = arena_format(start->arena, "size=%dm", LAYOUT_PRIVATE_MIB);
    options[count++] = arena_format(start->arena, "uid=%u", start->user.uid);
    options[count++] = arena_format(start->arena, "gid=%u", start->user.gid);
    assert(count <= PRIVATE_OPTIONS);
    return (struct oci_mount){.type = "tmpfs",
                              .source = "skep",
                              .target = LAYOUT_PRIVATE,
                              .options = options,
                              .option_count = count};
}

static size_t resolver_mounts(const struct start *start, struct oci_mount *mounts)
{
    static const char *const host_files[] = {"/etc/resolv.conf", "/etc/hosts"};
    size_t count = 0;
    if (start->place.address[0]) {
        mounts[count++] = mount_read_only(start->resolver, host_files[0]);
        mounts[count++] = mount_writable(start->hosts.seen, host_files[1]);
        return count;
    }
    for (size_t i = 0; i < COUNT_OF(host_files); i++)
        if (access(host_files[i], R_OK) == 0)
            mounts[count++] = mount_read_only(host_files[i], host_files[i]);
    return count;
}

static size_t mounts_of_ours(struct start *start, struct oci_mount *mounts)
{
    const struct engine_local_config *config = &start->local->config;
    size_t count = 0;
    mounts[count++] = mount_read_only(start->skep, "/skep");
    mounts[count++] = mount_writable(start->log.seen, LAYOUT_LOG);
    mounts[count++] = mount_writable(start->run.seen, LAYOUT_RUN);
    mounts[count++] = mount_private(start);
    if (config->door_directory[0])
        mounts[count++] = mount_read_only(config->door_directory, LAYOUT_DOOR);
    if (config->init_path[0])
        mounts[count++] = mount_read_only(config->init_path, LAYOUT_INIT);
    return count;
}

static void sources_bound(const struct start *start, struct oci_mount *mounts, size_t count)
{
    const struct disk_place *places[] = {&start->run, &start->log, &start->hosts};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < COUNT_OF(places); k++)
            if (places[k]->bound && mounts[i].source == places[k]->seen)
                mounts[i].source = places[k]->bound;
}

/* The user's mounts before ours: nothing of theirs can cover /skep. */
static const struct oci_mount *mounts_of(struct start *start, size_t *count)
{
    const struct container *wanted = start->wanted;
    const bool has_ids = start->ids.place.first > 0;
    struct oci_mount *mounts = ARENA_ARRAY(start->arena, struct oci_mount,
                                           wanted->mount_count + start->edits.mount_count +
                                               start->device_count + MOUNTS_OF_OURS);
    *count = resolver_mounts(start, mounts);
    for (size_t i = 0; i < start->device_count && has_ids; i++)
        mounts[(*count)++] = task_ids_device(&start->ids, &start->devices[i], i, start->arena);
    for (size_t i = 0; i < start->edits.mount_count; i++)
        mounts[(*count)++] = start->edits.mounts[i];
    for (size_t i = 0; i < wanted->mount_count; i++) {
        const struct engine_mount *mount = &wanted->mounts[i];
        mounts[(*count)++] = mount->is_read_only ? mount_read_only(mount->source, mount->target)
                                                 : mount_writable(mount->source, mount->target);
    }
    struct oci_mount *users = mounts + *count - wanted->mount_count;
    *count += mounts_of_ours(start, mounts + *count);
    for (size_t i = 0; i < *count && has_ids; i++)
        task_ids_options(&mounts[i], start->arena);
    for (size_t i = 0; i < wanted->mount_count && has_ids; i++)
        users[i].source = start->ids.sources[i];
    sources_bound(start, mounts, *count);
    return mounts;
}

static bool env_has(const char *const *env, size_t count, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (strncmp(env[i], name, length) == 0 && env[i][length] == '=')
            return true;
    return false;
}

static const char *const *env_of(struct start *start, size_t *count)
{
    const struct image *image = start->task->image;
    const char **env = ARENA_ARRAY(start->arena, const char *,
                                   image->env_count + start->edits.env_count + ENV_OF_OURS);
    *count = 0;
    for (size_t i = 0; i < image->env_count; i++)
        env[(*count)++] = image->env[i];
    if (!env_has(env, *count, "PATH"))
        env[(*count)++] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    if (!env_has(env, *count, "HOME"))
        env[(*count)++] = arena_format(start->arena, "HOME=%s", start->user.home);
    for (size_t i = 0; i < start->edits.env_count; i++)
        env[(*count)++] = start->edits.env[i];
    return env;
}

/* Those of its GPUs and network cards, and what a right adds. */
static void devices_fill(struct start *start)
{
    /* everywhere 10:229 (Linux, admin-guide/devices.txt) */
    static const struct oci_device fuse = {
        .path = "/dev/fuse", .type = 'c', .major = 10, .minor = 229, .mode = 0666, .access = "rw"};
    const struct device_edits *edits = &start->edits;
    struct oci_device *devices =
        ARENA_ARRAY(start->arena, struct oci_device, edits->device_count + 1);
    for (size_t i = 0; i < edits->device_count; i++)
        devices[i] = edits->devices[i];
    start->device_count = edits->device_count;
    if (start->rights & 1u << RIGHT_FUSE)
        devices[start->device_count++] = fuse;
    start->devices = devices;
}

/* The operator's figure for all, else the task's share of the machine. */
static uint64_t task_pids_max(const struct local_engine *local, uint32_t cpu)
{
    const struct node_facts *node = inventory_node(local->inventory);
    return local->config.pids_max ? local->config.pids_max
                                  : limit_pids(limit_pids_machine(), node->cpu, cpu);
}

/* By the container, from the runtime. */
static bool network_is_inherited(const struct start *start)
{
    return start->ids.place.first && start->local->runtime.is_users_first;
}

static int config_put(struct start *start)
{
    struct local_engine *local = start->local;
    const struct container *wanted = start->wanted;
    struct oci_rlimit limits[RLIMITS_MAX];
    const char *annotations[] = {"skep.job", wanted->job, "skep.role", wanted->role};
    struct oci_config config = {
        .rootfs = start->merged,
        .argv = local->config.argv,
        .argv_count = local->config.argv_count,
        .cwd = start->task->image->cwd,
        .uid = start->user.uid,
        .gid = start->user.gid,
        .groups = start->user.groups,
        .group_count = start->user.group_count,
        .cgroup_path = start->group,
        .is_cgroup_v2 = local->cgroups.kind == CGROUP_V2,
        .has_swap = local->cgroups.has_swap,
        .cpu = wanted->cpu,
        .memory_mib = wanted->memory_mib,
        .shm_mib = wanted->shm_mib,
        .pids_max = task_pids_max(local, wanted->cpu),
        .hooks = start->edits.hooks,
        .hook_count = start->edits.hook_count,
        .rlimits = limits,
        .rlimit_count = rlimits_fill(start, limits),
        .has_oom_score = process_oom_score(0) < 0, /* our own protection is not for tasks */
        .rights = start->rights,
        .network_path =
            start->place.address[0] && !network_is_inherited(start) ? start->place.path : NULL,
        .user_path = start->ids.place.first ? start->ids.user_path : NULL,
        .first_id = start->ids.place.first,
        .id_count = start->ids.place.first && local->runtime.wants_mappings ? ID_RANGE_IDS : 0,
        .sys_path = start->ids.place.first ? start->sys : NULL,
        /* the compiled profile is for those without CAP_SYS_ADMIN */
        .seccomp_bpf = start->rights & 1u << RIGHT_SYS_ADMIN ? NULL : local->runtime.seccomp_bpf,
        .devices = start->devices,
        .device_count = start->device_count,
        .are_devices_bound = start->ids.place.first > 0,
        .annotations = annotations,
        .annotation_count = COUNT_OF(annotations) / 2,
    };
    config.mounts = mounts_of(start, &config.mount_count);
    config.env = env_of(start, &config.env_count);
    cleanup_buf struct buf text = BUF_INIT;
    oci_config_write(&config, &text);
    char path[RUNTIME_PATH_MAX];
    task_run_path(local, start->task->id, "config.json", path);
    int code = file_put(path, buf_as_text(&text), 0600, NULL);
    return code < 0 ? fail_by_errno(start, errno, path) : 0;
}

/* --- steps --- */

static int sources_check(struct start *start)
{
    for (size_t i = 0; i < start->wanted->mount_count; i++)
        if (access(start->wanted->mounts[i].source, F_OK) < 0) {
            task_fail(start->task, "CreationError", "mount %s: there is no such file or folder",
                      start->wanted->mounts[i].source);
            return ERR_NOT_FOUND;
        }
    return 0;
}

static int start_prepare(struct start *start)
{
    struct err err = {0};
    struct image *image = start->task->image;
    paths_fill(start);
    start->rights = rights_of(start->local->config.rights, start->wanted->virtual_cluster);
    if (user_find(image->rootfs, image->user, &start->user, &err) < 0) {
        task_fail(start->task, "ContainerCannotRun", "%s", err.text);
        return err.code;
    }
    if (inventory_devices(start->local->inventory, start->wanted, start->arena, &start->edits,
                          &err) < 0) {
        task_fail(start->task, "CreationError", "%s", err.text);
        return err.code;
    }
    task_gpus_note(start->local, start->task, start->wanted);
    for (size_t i = 0; i < start->edits.hook_count; i++)
        if (strcmp(start->edits.hooks[i].kind, "poststop") == 0)
            start->task->has_poststop = true;
    devices_fill(start);
    const struct task_ids_need need = {start->rights, &start->user, start->device_count};
    int code = sources_check(start);
    if (code == 0)
        code = task_ids_join(start->local, start->task, &need, start->arena, &start->ids);
    if (code == 0)
        code = task_ids_devices(start->local, start->task, start->devices, start->device_count,
                                start->arena, &start->ids);
    if (code == 0)
        code = directories_put(start);
    if (code == 0)
        code = task_network_join(start->local, start->task, start->wanted, start->rights,
                                 &start->place);
    if (code == 0)
        code = state_put(start);
    if (code == 0)
        code = files_put(start);
    if (code == 0)
        code = disk_limit(start);
    if (code == 0)
        code = places_bind(start);
    return code == 0 ? config_put(start) : code;
}

/* Below the image: what every container mounts upon, so that the runtime need not make it anew in
 * each task's layer. */
static const char *lower_of(const struct start *start)
{
    return start->ids.place.first
               ? start->ids.lower
               : arena_format(start->arena, "%s:%s/points", start->task->image->rootfs,
                              start->local->directory);
}

/* Its disk, and what is shown with its ids. */
static const struct spawn_mount *mounts_to_make(const struct start *start, size_t *count)
{
    struct spawn_mount *mounts =
        ARENA_ARRAY(start->arena, struct spawn_mount, start->ids.mount_count + 1);
    const struct task *task = start->task;
    *count = 0;
    if (task->disk_fd >= 0) {
        char disk[RUNTIME_PATH_MAX];
        task_path(start->local, task->id, TASK_DISK_NAME, disk);
        mounts[(*count)++] =
            (struct spawn_mount){task->disk_fd, arena_copy(start->arena, text_of(disk))};
    }
    for (size_t i = 0; i < start->ids.mount_count; i++)
        mounts[(*count)++] = start->ids.mounts[i];
    return mounts;
}

static int marker_put(const struct start *start, const char *name, struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    task_run_path(start->local, start->task->id, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "create %s", path);
    close(fd);
    return 0;
}

static int start_run(struct start *start)
{
    struct task *task = start->task;
    struct err err = {0};
    char *message = arena_alloc(start->arena, RUNTIME_MESSAGE_MAX);
    struct runtime_launch launch = {.id = task->id,
                                    .bundle = start->bundle,
                                    .lower = lower_of(start),
                                    .upper = start->upper,
                                    .work = start->work,
                                    .merged = start->merged,
                                    .has_layer = start->ids.has_layer,
                                    .output = start->output,
                                    .sys = start->ids.place.first ? start->sys : NULL};
    if (start->place.address[0])
        launch.network_path = start->place.path;
    launch.is_in_network = launch.network_path && network_is_inherited(start);
    launch.mounts = mounts_to_make(start, &launch.mount_count);
    int code = runtime_create(&start->local->runtime, &launch, &task->process, message, &err);
    if (code < 0) {
        bool is_full = words_say_full(message) || words_say_full(err.text);
        task_fail(task, is_full ? "DiskFull" : "ContainerCannotRun", "%s",
                  message[0] ? message : err.text);
        return code;
    }
    limits_set(&start->local->cgroups, start->group, start->wanted->memory_mib, start->wanted->cpu);
    task->is_ours = true;
    task->init_fd = process_watch(task->process.init, &err);
    if (task->init_fd < 0) /* killed from outside already: conmon tells how it ended */
        return 0;
    task->init_start = process_start_time(task->process.init);
    pthread_mutex_lock(&start->local->lock);
    bool is_kill_wanted = task->is_kill_wanted; /* a later one is carried out by the monitor */
    pthread_mutex_unlock(&start->local->lock);
    if (is_kill_wanted) {
        syscall_kill(task->init_fd, SIGKILL);
        return 0;
    }
    /* from here on something of the user's may have run: who finds this container lets it go on */
    if (marker_put(start, "starting", &err) < 0) {
        task_fail(task, words_say_full(err.text) ? "DiskFull" : "CreationError", "%s", err.text);
        syscall_kill(task->init_fd, SIGKILL);
        return 0;
    }
    if (runtime_start(&start->local->runtime, task->id, &err) < 0) {
        task_fail(task, "ContainerCannotRun", "%s", err.text);
        syscall_kill(task->init_fd, SIGKILL);
        return 0;
    }
    task->is_started = true;
    return 0;
}

void task_start(struct local_engine *local, struct task *task)
{
    struct start start = {
        .local = local, .task = task, .wanted = task->wanted, .arena = &task->arena};
    assert(task->phase == TASK_STARTING && task->image);
    pthread_mutex_lock(&local->lock);
    if (task->is_kill_wanted)
        task_fail(task, "Killed", "ended before it was started: %s", task->kill_reason);
    pthread_mutex_unlock(&local->lock);
    if (!task->fail_reason && task_ids_await(local, task))
        return; /* it comes again */
    int code = task->fail_reason ? ERR_UNAVAILABLE : start_prepare(&start);
    if (code == 0)
        code = start_run(&start);
    task_ids_release(&start.ids);
    pthread_mutex_lock(&local->lock);
    if (code == 0)
        task->phase = TASK_RUNNING; /* who is told that it runs may start programs in it */
    pthread_mutex_unlock(&local->lock);
    if (task->is_started) {
        marker_put(&start, "started", NULL); /* without it the next engine looks at the runtime's */
        event_post(local, ENGINE_STARTED, task->attempt, "", "");
    }
    pthread_mutex_lock(&local->lock);
    task->wanted = NULL;
    arena_clear(&task->arena);
    struct err err = {0};
    if (code == 0 && monitor_watch(local, task, &err) < 0) {
        task_fail(task, "CreationError", "%s", err.text);
        syscall_kill(task->process.conmon_fd, SIGKILL);
        code = err.code;
    }
    if (code < 0) {
        task->phase = TASK_ENDING;
        task_enqueue(local, task);
    } else if (task->is_kill_wanted) {
        monitor_kill(local, task);
    }
    pthread_mutex_unlock(&local->lock);
}
