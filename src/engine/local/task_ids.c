/* The user ids of one task: its job's range, and the mounts that show its image's files and its
 * storages with them. */
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/image.h"
#include "engine/local/oci.h"
#include "engine/local/spawn.h"
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
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LOWER_LAYERS = 2 };

static const char default_registry[] = "/run/skep/ids";

/* --- the engine's --- */

/* Whether it works here is tried, with the ids that no job has. */
static int ids_try(struct local_engine *local, struct err *err)
{
    char scratch[RUNTIME_PATH_MAX], group[CGROUP_PATH_MAX];
    const uint32_t first = local->config.first_id;
    const struct userns_map map = {.extents = {{0, first, ID_RANGE_IDS}}, .count = 1};
    /* runc enters the user namespace first, and then may not enter a network of the machine's */
    if (local->config.has_private_network && local->runtime.wants_mappings)
        return err_fail(err, ERR_UNSUPPORTED, "engine.userNamespaces.mode",
                        "%s cannot put a task with user ids of its own into a network of its job: "
                        "use crun, or `engine.network.mode: host`",
                        local->runtime.program);
    cleanup_close int userns_fd = userns_make(&map, &map, err);
    const struct id_place place = {first, userns_fd};
    if (userns_fd < 0)
        return userns_fd;
    snprintf(scratch, sizeof scratch, "%s/probe", local->directory);
    task_group(local, "probe", group);
    tree_remove(scratch, NULL);
    int code = dir_make(scratch, 0711, err);
    if (code == 0)
        code = runtime_try_ids(&local->runtime, &local->cgroups, &place, scratch,
                               local->run_directory, group, err);
    tree_remove(scratch, NULL);
    return code;
}

int task_ids_open(struct local_engine *local, struct err *err)
{
    const struct engine_local_config *config = &local->config;
    const struct id_ranges_config ranges = {
        .first = config->first_id,
        .count = config->id_jobs,
        .registry = config->id_registry[0] ? config->id_registry : default_registry,
        .owner = local->directory,
    };
    struct err failure = {0};
    int code = id_ranges_new(&ranges, &local->id_ranges, err);
    if (code < 0 || config->user_namespaces == USER_NAMESPACES_OFF)
        return code;
    local->gives_ids = ids_try(local, &failure) == 0;
    if (local->gives_ids)
        return 0;
    if (config->user_namespaces == USER_NAMESPACES_REQUIRED)
        return err_fail(err, ERR_UNSUPPORTED, "engine.userNamespaces.mode",
                        "tasks cannot have user ids of their own here: %s", failure.text);
    log_info("engine", "root of a task is root of the machine: %s", failure.text);
    return 0;
}

/* --- one task's --- */

static void mount_add(struct task_ids *ids, int fd, const char *target)
{
    ids->mounts[ids->mount_count++] = (struct spawn_mount){fd, target};
}

/* What containers mount upon lies below the image, and belongs to root of the task as well. */
static int lower_mount(const struct local_engine *local, const struct task *task,
                       struct arena *arena, struct task_ids *ids, struct err *err)
{
    const char *layers[LOWER_LAYERS] = {task->image->rootfs,
                                        arena_format(arena, "%s/points", local->directory)};
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

/* Ids of the disk are those of the task, 0 is root; or root of the task is who owns the folder. */
static int view_of(struct local_engine *local, const struct engine_mount *mount, const char *job,
                   const struct stat *folder, const struct task_ids *ids, struct err *err)
{
    const uint32_t nobody = local->config.first_id;
    if (!mount->is_root_squashed &&
        (folder->st_uid >= ID_RANGE_IDS || folder->st_gid >= ID_RANGE_IDS))
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "%s is of user %u and group %u, and a task has ids to %d", mount->source,
                        folder->st_uid, folder->st_gid, ID_RANGE_IDS - 1);
    if (!mount->is_root_squashed)
        return ids->place.userns_fd;
    return id_ranges_view(local->id_ranges, job, folder->st_uid ? folder->st_uid : nobody,
                          folder->st_gid ? folder->st_gid : nobody, err);
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
    ids->mounts = ARENA_ARRAY(arena, struct spawn_mount, count + LOWER_LAYERS);
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

/* What the operator set up cannot be mounted so: a storage of NFS. */
static int machine_take(struct local_engine *local, struct task *task, struct task_ids *ids,
                        const struct err *failure)
{
    if (local->config.user_namespaces == USER_NAMESPACES_REQUIRED) {
        task_fail(task, "CreationError", "%s", failure->text);
        return failure->code;
    }
    task_ids_release(ids);
    task_ids_leave(local, task);
    *ids = (struct task_ids){.place = {.first = 0}};
    event_note(local, task->attempt, "MachineUsers", "root of the task is root of the machine: %s",
               failure->text);
    return 0;
}

int task_ids_join(struct local_engine *local, struct task *task, unsigned rights,
                  const struct user *user, struct arena *arena, struct task_ids *ids)
{
    struct err err = {0};
    *ids = (struct task_ids){.place = {.first = 0}};
    if (!local->gives_ids || rights & 1u << RIGHT_HOST_USERS)
        return 0;
    int code = user_check(task, user);
    if (code < 0)
        return code;
    code =
        id_ranges_join(local->id_ranges, task->wanted->job, task->attempt, &ids->place.first, &err);
    if (code == 0)
        code = mounts_make(local, task, arena, ids, &err);
    if (code == ERR_UNSUPPORTED)
        return machine_take(local, task, ids, &err);
    if (code < 0)
        task_fail(task, "CreationError", "%s", err.text);
    snprintf(ids->user_path, sizeof ids->user_path, "/proc/%d/fd/%d", (int)getpid(),
             ids->place.userns_fd);
    return code;
}

int task_ids_places(struct task *task, const struct task_ids *ids)
{
    for (size_t i = LOWER_LAYERS; i < ids->mount_count; i++) {
        const char *path = ids->mounts[i].target;
        struct stat what;
        cleanup_close int fd = -1;
        const bool is_folder = fstat(ids->mounts[i].fd, &what) == 0 && S_ISDIR(what.st_mode);
        if (is_folder ? mkdir(path, 0711) < 0 && errno != EEXIST
                      : (fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0) {
            task_fail(task, errno == ENOSPC ? "DiskFull" : "CreationError", "%s: %s", path,
                      strerrordesc_np(errno));
            return ERR_IO;
        }
    }
    return 0;
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
