/* The user ids of one task: its job's range, and the mounts that show its image's files and its
 * storages with them. */
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/image.h"
#include "engine/local/layers.h"
#include "engine/local/limits.h"
#include "engine/local/oci.h"
#include "engine/local/rights.h"
#include "engine/local/spawn.h"
#include "engine/local/storage.h"
#include "engine/local/task.h"
#include "engine/local/user.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/userns.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LOWER_LAYERS = 2, DEVICE_FOLDERS = 1, BOUND_MAX = 3, DEVICE_NAME_MAX = 24, WISHES_MAX = 16 };

static const char default_registry[] = "/run/skep/ids";

#define DEVICE_FOLDER_SIZE "64k"

/* --- device files --- */

/* A file system of its own for them, as nothing that a task may write to opens devices. */
static int device_folder_make(struct err *err)
{
    cleanup_close int system = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (system < 0 || fsconfig(system, FSCONFIG_SET_STRING, "mode", "0711", 0) < 0 ||
        fsconfig(system, FSCONFIG_SET_STRING, "size", DEVICE_FOLDER_SIZE, 0) < 0 ||
        fsconfig(system, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_errno(err, errno, "make a file system for devices");
    const int fd = fsmount(system, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return fd < 0 ? err_errno(err, errno, "mount a file system for devices") : fd;
}

static void device_name(size_t number, char name[DEVICE_NAME_MAX])
{
    snprintf(name, DEVICE_NAME_MAX, "%zu", number);
}

/* Who owns it on the machine owns it in the task, under the task's ids. */
static int device_make(int folder, const struct oci_device *device, size_t number, uint32_t first,
                       struct err *err)
{
    char name[DEVICE_NAME_MAX];
    device_name(number, name);
    const mode_t kind = device->type == 'b' ? S_IFBLK : S_IFCHR;
    const uint32_t last = ID_RANGE_IDS - 1;
    if (mknodat(folder, name, kind | 0600, makedev(device->major, device->minor)) < 0 ||
        fchownat(folder, name, first + (device->uid < last ? device->uid : last),
                 first + (device->gid < last ? device->gid : last), AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(folder, name, device->mode, 0) < 0)
        return err_errno(err, errno, "make %s", device->path);
    return 0;
}

/* Can device files be made here, and opened where they are? A container that skepd runs in may be
 * refused either. */
static int devices_try(uint32_t first, struct err *err)
{
    /* 1:3, /dev/null: everywhere the same (Linux, admin-guide/devices.txt) */
    static const struct oci_device device = {
        .path = "/dev/null", .type = 'c', .major = 1, .minor = 3, .mode = 0666, .access = "rw"};
    char name[DEVICE_NAME_MAX];
    cleanup_close int folder = device_folder_make(err);
    int code = folder < 0 ? folder : device_make(folder, &device, 0, first, err);
    if (code < 0)
        return code;
    device_name(0, name);
    cleanup_close int fd = openat(folder, name, O_RDWR | O_CLOEXEC);
    return fd < 0 ? err_errno(err, errno, "open a device file that was made for tasks") : 0;
}

/* --- the engine's --- */

/* runc sets the limits of a task's first process from outside. Root may do so in a namespace of its
 * own, and in others with CAP_SYS_RESOURCE alone, which a container that skepd runs in may lack. */
static bool ids_are_roots(const struct local_engine *local)
{
    return local->runtime.is_users_first && !limit_can_raise();
}

/* Whether it works here is tried, with the ids that no job has. */
static int way_try(struct local_engine *local, bool by_layer, struct err *err)
{
    char scratch[RUNTIME_PATH_MAX], group[CGROUP_PATH_MAX];
    const uint32_t first = local->config.first_id;
    const struct userns_map map = {.extents = {{0, first, ID_RANGE_IDS}}, .count = 1};
    cleanup_close int userns_fd = userns_make(&map, &map, ids_are_roots(local) ? 0 : first, err);
    const struct id_place place = {first, userns_fd};
    if (userns_fd < 0)
        return userns_fd;
    snprintf(scratch, sizeof scratch, "%s/probe", local->directory);
    task_group(local, "probe", group);
    tree_remove(scratch, NULL);
    int code = dir_make(scratch, 0711, err);
    if (code == 0)
        code = runtime_try_ids(&local->runtime, &local->cgroups, &place, by_layer, scratch,
                               local->run_directory, group, err);
    tree_remove(scratch, NULL);
    return code;
}

/* Both complaints, where both were tried. */
static int ids_try(struct local_engine *local, bool *by_layer, struct err *err)
{
    const enum user_images images = local->config.user_images;
    struct err mounts = {0}, layers = {0};
    *by_layer = images == USER_IMAGES_METADATA;
    if (!*by_layer && way_try(local, false, &mounts) == 0)
        return 0;
    if (images == USER_IMAGES_IDMAPPED)
        return err_fail(err, ERR_UNSUPPORTED, "", "%s", mounts.text);
    *by_layer = true;
    if (way_try(local, true, &layers) == 0)
        return 0;
    return err_fail(err, ERR_UNSUPPORTED, "", "%.110s%s%.110s", mounts.text,
                    mounts.code ? "; by a metadata layer: " : "", layers.text);
}

/* What works here, as the last start that had room to try it found: a full disk must not turn it
 * off. One word, in DATA/engine/user-ids. */
static const char *const way_words[] = {"mounts\n", "layers\n"};

static void way_path(const struct local_engine *local, char path[static RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/user-ids", local->directory);
}

static void way_remember(const struct local_engine *local, bool by_layer)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf known = BUF_INIT;
    struct err err;
    way_path(local, path);
    const struct text word = text_of(way_words[by_layer]);
    if (file_read(path, 64, &known, NULL) == 0 && text_equal(buf_as_text(&known), word))
        return;
    if (file_write(path, word, 0600, &err) < 0)
        log_info("engine", "a start on a full disk would not know of user ids: %s", err.text);
}

static bool way_recall(const struct local_engine *local, bool *by_layer)
{
    const enum user_images images = local->config.user_images;
    char path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf known = BUF_INIT;
    way_path(local, path);
    if (file_read(path, 64, &known, NULL) < 0)
        return false;
    *by_layer = text_is(buf_as_text(&known), way_words[true]);
    return (*by_layer || text_is(buf_as_text(&known), way_words[false])) &&
           images != (*by_layer ? USER_IMAGES_IDMAPPED : USER_IMAGES_METADATA);
}

/* With room they were not possible: a later start on a full disk must not take them for so. */
static void way_forget(const struct local_engine *local)
{
    char path[RUNTIME_PATH_MAX];
    way_path(local, path);
    if (unlink(path) < 0 && errno != ENOENT)
        log_warning("engine", "cannot remove %s: %s", path, strerror(errno));
}

static int ids_find(struct local_engine *local, bool *by_layer, struct err *err)
{
    const int code = ids_try(local, by_layer, err);
    if (code == 0) {
        way_remember(local, *by_layer);
    } else if (!storage_directory_is_tight(local->directory)) {
        way_forget(local);
    } else if (way_recall(local, by_layer)) {
        log_info("engine", "the disk is full: user ids are taken for possible, as before");
        return 0;
    }
    return code;
}

/* Shared with one of the machine's users the ids are better than root's: jobs have them all the
 * same. */
static void holder_tell(const struct id_ranges_config *ranges)
{
    char holder[120];
    const uint64_t end = ranges->first + ((uint64_t)ranges->count + 1) * ID_RANGE_IDS;
    if (ids_holder("/etc", ranges->first, end, holder, sizeof holder))
        log_warning("engine",
                    "jobs may get ids from %u to %llu, of which some are given to %s: choose "
                    "others by engine.userNamespaces.firstId",
                    ranges->first, (unsigned long long)end - 1, holder);
}

static void range_taken(void *context, uint32_t first)
{
    layers_forget(context, first);
}

/* Images get the ids of jobs by one of two ways. */
static int way_open(struct local_engine *local, bool by_layer, struct err *err)
{
    if (by_layer && !(local->layers = layers_new(local, err)))
        return err ? err->code : ERR_IO;
    log_info("engine", "jobs have user ids of their own; images are shown with them by %s",
             by_layer ? "metadata layers" : "idmapped mounts");
    return 0;
}

int task_ids_open(struct local_engine *local, struct err *err)
{
    const struct engine_local_config *config = &local->config;
    bool by_layer = false;
    const struct id_ranges_config ranges = {
        .first = config->first_id,
        .count = config->id_jobs,
        .registry = config->id_registry[0] ? config->id_registry : default_registry,
        .owner = local->directory,
        .is_counted_for_root = ids_are_roots(local),
        .on_taken = range_taken,
        .context = local,
    };
    struct err failure = {0};
    int code = id_ranges_new(&ranges, &local->id_ranges, err);
    if (code < 0 || config->user_namespaces == USER_NAMESPACES_OFF)
        return code;
    local->gives_ids = ids_find(local, &by_layer, &failure) == 0;
    if (local->gives_ids) {
        holder_tell(&ranges);
        if (devices_try(config->first_id, &local->device_failure) < 0)
            log_warning("engine", "root of a task with devices is root of the machine: %s",
                        local->device_failure.text);
        return way_open(local, by_layer, err);
    }
    if (config->user_namespaces == USER_NAMESPACES_REQUIRED)
        return err_fail(err, ERR_UNSUPPORTED, "engine.userNamespaces.mode",
                        "tasks cannot have user ids of their own here: %s", failure.text);
    log_warning("engine", "root of a task is root of the machine: %s", failure.text);
    return 0;
}

struct remains_search {
    struct local_engine *local;
    bool is_found;
};

static void remains_visit(void *context, const char *name)
{
    struct remains_search *search = context;
    int64_t number;
    if (!text_to_int64(text_of(name), &number) || number <= 0)
        return;
    const struct task *task = task_find(search->local, (struct attempt_id){(uint64_t)number});
    search->is_found |= !task || task->phase == TASK_ENDED ||
                        (task->phase == TASK_ENDING && !task->is_started); /* as in adopt.c */
}

/* What remains of a task that ended under an earlier engine cannot be asked for its ids. */
void task_ids_settle(struct local_engine *local)
{
    struct remains_search search = {.local = local};
    if (local->are_ids_settled)
        return;
    cgroup_children(&local->cgroups, local->group, remains_visit, &search);
    if (search.is_found)
        return;
    id_ranges_settle(local->id_ranges);
    local->are_ids_settled = true;
}

/* --- one task's --- */

static void mount_add(struct task_ids *ids, int fd, const char *target)
{
    ids->mounts[ids->mount_count++] = (struct spawn_mount){fd, target};
}

/* Those below the image come first, and have their places already. */
static size_t lower_count(const struct task_ids *ids)
{
    return ids->has_layer ? 0 : LOWER_LAYERS;
}

static int layer_stack(const struct local_engine *local, const struct task *task,
                       struct arena *arena, struct task_ids *ids)
{
    char path[RUNTIME_PATH_MAX];
    layer_path(local, task->image, ids->place.first, path, sizeof path);
    ids->lower =
        arena_format(arena, "%s:%s:%s/points", path, task->image->rootfs, local->directory);
    ids->has_layer = true;
    return 0;
}

/* What containers mount upon lies below the image, and belongs to root of the task as well. */
static int lower_mount(const struct local_engine *local, const struct task *task,
                       struct arena *arena, struct task_ids *ids, struct err *err)
{
    const char *layers[LOWER_LAYERS] = {task->image->rootfs,
                                        arena_format(arena, "%s/points", local->directory)};
    if (local->layers)
        return layer_stack(local, task, arena, ids);
    const char *targets[LOWER_LAYERS] = {arena_format(arena, "%s/lower", local->run_directory),
                                         arena_format(arena, "%s/points", local->run_directory)};
    for (size_t i = 0; i < LOWER_LAYERS; i++) {
        const int fd = userns_mount(layers[i], ids->place.userns_fd, false, err);
        if (fd < 0)
            return fd;
        mount_add(ids, fd, targets[i]);
    }
    ids->lower = arena_format(arena, "%s:%s", targets[0], targets[1]);
    return 0;
}

/* Ids of the disk are those of the task, 0 is root; or root of the task is who owns the folder. An
 * owner of the folder whose id no task has is ID_OWNER in it. */
static int view_of(struct local_engine *local, const struct engine_mount *mount, const char *job,
                   const struct stat *folder, const struct task_ids *ids, struct err *err)
{
    const uint32_t nobody = local->config.first_id;
    struct id_owner owner = {folder->st_uid, folder->st_gid, mount->is_root_squashed};
    if (!owner.is_root && owner.user < ID_RANGE_IDS && owner.group < ID_RANGE_IDS)
        return ids->place.userns_fd;
    if (owner.is_root && owner.user == 0)
        owner.user = nobody;
    if (owner.is_root && owner.group == 0)
        owner.group = nobody;
    return id_ranges_view(local->id_ranges, job, &owner, err);
}

static int storage_mount(struct local_engine *local, const struct task *task, size_t number,
                         struct arena *arena, struct task_ids *ids, const char **source,
                         struct err *err)
{
    const struct engine_mount *mount = &task->wanted->mounts[number];
    char path[RUNTIME_PATH_MAX];
    struct stat folder;
    if (stat(mount->source, &folder) < 0)
        return err_errno(err, errno, "mount %s", mount->source);
    const int view = view_of(local, mount, task->wanted->job, &folder, ids, err);
    const int fd = view < 0 ? view : userns_mount(mount->source, view, true, err);
    if (fd < 0)
        return fd;
    task_run_path(local, task->id, "", path);
    *source =
        arena_format(arena, "%s/mount-%zu%s", path, number, S_ISDIR(folder.st_mode) ? "" : ".file");
    mount_add(ids, fd, *source);
    return 0;
}

static int mounts_make(struct local_engine *local, const struct task *task, struct arena *arena,
                       struct task_ids *ids, struct err *err)
{
    const size_t count = task->wanted->mount_count;
    const char **sources = ARENA_ARRAY(arena, const char *, count);
    ids->mounts =
        ARENA_ARRAY(arena, struct spawn_mount, count + LOWER_LAYERS + DEVICE_FOLDERS + BOUND_MAX);
    ids->sources = sources;
    ids->place.userns_fd = id_ranges_namespace(local->id_ranges, task->wanted->job, err);
    int code =
        ids->place.userns_fd < 0 ? ids->place.userns_fd : lower_mount(local, task, arena, ids, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = storage_mount(local, task, i, arena, ids, &sources[i], err);
    return code;
}

void task_ids_release(struct task_ids *ids)
{
    for (size_t i = 0; i < ids->mount_count; i++)
        close(ids->mounts[i].fd);
    ids->mount_count = 0;
}

/* Nothing that the job brings decides whether it has a range: its image's user may be anybody. */
static int user_check(struct task *task, const struct user *user)
{
    uint32_t highest = user->uid > user->gid ? user->uid : user->gid;
    for (size_t i = 0; i < user->group_count; i++)
        highest = user->groups[i] > highest ? user->groups[i] : highest;
    if (highest < ID_RANGE_IDS)
        return 0;
    task_fail(task, "ContainerCannotRun",
              "the image's user has the id %u, and a task may have 0 to %d", highest,
              ID_RANGE_IDS - 1);
    return ERR_INVALID;
}

/* The first storage of the task where root must not be root; NULL: it has none. */
static const struct engine_mount *mount_squashed(const struct container *wanted)
{
    for (size_t i = 0; i < wanted->mount_count; i++)
        if (wanted->mounts[i].is_root_squashed)
            return &wanted->mounts[i];
    return NULL;
}

/* What the operator set up cannot be mounted so: a storage of NFS. Jobs choose their storages, and
 * none may be root in one by naming another. */
static int machine_take(struct local_engine *local, struct task *task, struct task_ids *ids,
                        const struct err *failure)
{
    const struct engine_mount *squashed = mount_squashed(task->wanted);
    if (local->config.user_namespaces == USER_NAMESPACES_REQUIRED || squashed) {
        if (squashed)
            task_fail(task, "CreationError", "%s, and root must not be root in %s (rootSquash)",
                      failure->text, squashed->source);
        else
            task_fail(task, "CreationError", "%s", failure->text);
        return failure->code;
    }
    task_ids_release(ids);
    task_ids_leave(local, task);
    *ids = (struct task_ids){.place = {.first = 0}};
    log_warning("engine", "attempt %s: root of the task is root of the machine: %s", task->id,
                failure->text);
    event_note(local, task->attempt, "MachineUsers", "root of the task is root of the machine: %s",
               failure->text);
    return 0;
}

/* With metadata layers a job gets one of the ranges that its first task's image has one for. */
static int range_give(struct local_engine *local, const struct task *task, uint32_t *first,
                      struct err *err)
{
    uint32_t firsts[WISHES_MAX];
    struct id_wish wish = {.firsts = firsts};
    if (local->layers)
        wish.count = layers_ranges(local, task->image, firsts, WISHES_MAX);
    return id_ranges_join(local->id_ranges, task->wanted->job, task->attempt, &wish, first, err);
}

/* With what cannot be shown with other ids the task does not get any. */
static int range_join(struct local_engine *local, struct task *task, size_t device_count,
                      struct arena *arena, struct task_ids *ids, struct err *err)
{
    if (device_count > 0 && local->device_failure.code < 0)
        return err_fail(err, ERR_UNSUPPORTED, "", "its devices: %s", local->device_failure.text);
    int code = range_give(local, task, &ids->place.first, err);
    return code == 0 ? mounts_make(local, task, arena, ids, err) : code;
}

/* Can all that the operator set up for it be mounted with the ids of its job? Else it gets none. */
static bool storages_try(struct local_engine *local, const struct task *task)
{
    const struct container *wanted = task->wanted;
    const int ids =
        wanted->mount_count ? id_ranges_namespace(local->id_ranges, wanted->job, NULL) : -1;
    for (size_t i = 0; i < wanted->mount_count && ids >= 0; i++) {
        cleanup_close int fd = userns_mount(wanted->mounts[i].source, ids, true, NULL);
        if (fd < 0)
            return false;
    }
    return true;
}

bool task_ids_await(struct local_engine *local, struct task *task)
{
    uint32_t first;
    if (!local->layers ||
        rights_of(local->config.rights, task->wanted->virtual_cluster) & 1u << RIGHT_HOST_USERS)
        return false;
    /* what is not as it must be is told of when it is started */
    return range_give(local, task, &first, NULL) == 0 && storages_try(local, task) &&
           layers_await(local->layers, task, first);
}

int task_ids_join(struct local_engine *local, struct task *task, const struct task_ids_need *need,
                  struct arena *arena, struct task_ids *ids)
{
    struct err err = {0};
    *ids = (struct task_ids){.place = {.first = 0}};
    if (!local->gives_ids || need->rights & 1u << RIGHT_HOST_USERS)
        return 0;
    int code = user_check(task, need->user);
    if (code < 0)
        return code;
    code = range_join(local, task, need->device_count, arena, ids, &err);
    if (code == ERR_UNSUPPORTED)
        return machine_take(local, task, ids, &err);
    if (code < 0)
        task_fail(task, "CreationError", "%s", err.text);
    snprintf(ids->user_path, sizeof ids->user_path, "/proc/%d/fd/%d", (int)getpid(),
             ids->place.userns_fd);
    return code;
}

/* --- its devices --- */

int task_ids_devices(struct local_engine *local, struct task *task,
                     const struct oci_device *devices, size_t count, struct arena *arena,
                     struct task_ids *ids)
{
    struct err err = {0};
    char path[RUNTIME_PATH_MAX];
    if (!ids->place.first || count == 0)
        return 0;
    const int folder = device_folder_make(&err);
    int code = folder < 0 ? folder : 0;
    for (size_t i = 0; i < count && code == 0; i++)
        code = device_make(folder, &devices[i], i, ids->place.first, &err);
    if (code < 0)
        task_fail(task, "CreationError", "%s", err.text);
    if (folder < 0)
        return code;
    task_run_path(local, task->id, "devices", path);
    ids->devices = arena_copy(arena, text_of(path));
    mount_add(ids, folder, ids->devices);
    return code;
}

struct oci_mount task_ids_device(const struct task_ids *ids, const struct oci_device *device,
                                 size_t number, struct arena *arena)
{
    static const char *const options[] = {"bind", "rprivate", "nosuid", "noexec"};
    char name[DEVICE_NAME_MAX];
    device_name(number, name);
    assert(ids->devices);
    return (struct oci_mount){.source = arena_format(arena, "%s/%s", ids->devices, name),
                              .target = device->path,
                              .options = options,
                              .option_count = COUNT_OF(options)};
}

/* To mount upon. False, and errno. */
static bool place_make(const char *path, bool is_folder)
{
    if (is_folder)
        return mkdir(path, 0711) == 0 || errno == EEXIST;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

static int mount_place(struct task *task, const struct spawn_mount *mount)
{
    struct stat what;
    const bool is_folder = fstat(mount->fd, &what) == 0 && S_ISDIR(what.st_mode);
    if (place_make(mount->target, is_folder))
        return 0;
    task_fail(task, errno == ENOSPC ? "DiskFull" : "CreationError", "%s: %s", mount->target,
              strerrordesc_np(errno));
    return ERR_IO;
}

int task_ids_places(struct task *task, const struct task_ids *ids)
{
    int code = 0;
    for (size_t i = lower_count(ids); i < ids->mount_count && code == 0; i++)
        code = mount_place(task, &ids->mounts[i]);
    return code;
}

const char *task_ids_bind(struct local_engine *local, struct task *task, const char *source,
                          const char *name, struct arena *arena, struct task_ids *ids)
{
    char path[RUNTIME_PATH_MAX];
    const int fd = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0) {
        task_fail(task, "CreationError", "mount %s: %s", source, strerrordesc_np(errno));
        return NULL;
    }
    task_run_path(local, task->id, name, path);
    mount_add(ids, fd, arena_copy(arena, text_of(path)));
    const struct spawn_mount *mount = &ids->mounts[ids->mount_count - 1];
    return mount_place(task, mount) == 0 ? mount->target : NULL;
}

void task_ids_leave(struct local_engine *local, struct task *task)
{
    id_ranges_leave(local->id_ranges, task->attempt);
}

/* runc mounts anew what it binds, with the options that are named; inside a user namespace none may
 * be taken off that the machine has put on. */
void task_ids_options(struct oci_mount *mount, struct arena *arena)
{
    static const struct {
        unsigned long flag;
        const char *name;
    } known[] = {{ST_RDONLY, "ro"},     {ST_NOSUID, "nosuid"},   {ST_NODEV, "nodev"},
                 {ST_NOEXEC, "noexec"}, {ST_NOATIME, "noatime"}, {ST_NODIRATIME, "nodiratime"}};
    static const char *const plain[] = {"rbind", "rprivate", "ro"};
    struct statvfs system;
    if (mount->type || statvfs(mount->source, &system) < 0)
        return; /* a file system of its own; what is not there fails where it is bound */
    const char *const *from = mount->options ? mount->options : plain;
    const size_t count =
        mount->options ? mount->option_count : COUNT_OF(plain) - !mount->is_read_only;
    const char **options = ARENA_ARRAY(arena, const char *, count + COUNT_OF(known));
    size_t used = 0;
    for (; used < count; used++)
        options[used] = from[used];
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (system.f_flag & known[i].flag)
            options[used++] = known[i].name;
    mount->options = options;
    mount->option_count = used;
}

/* --- its state: "ids": 2000748544 --- */

void task_ids_write(const struct task_ids *ids, struct json_writer *json)
{
    if (ids->place.first)
        json_key_int(json, "ids", ids->place.first);
}

void task_ids_adopt(struct local_engine *local, struct task *task, const struct doc *state)
{
    const int64_t first = document_int(state, "ids");
    struct err err = {0};
    if (first > 0 && first <= UINT32_MAX &&
        id_ranges_adopt(local->id_ranges, document_string(state, "job"), task->attempt,
                        (uint32_t)first, &err) < 0)
        log_error("engine", "attempt %s: %s", task->id, err.text);
}
