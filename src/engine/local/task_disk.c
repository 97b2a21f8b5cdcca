/* The disk of a task: what it writes has a limit of bytes and inodes that the kernel holds. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/disk_image.h"
#include "engine/local/logs.h"
#include "engine/local/storage.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include "sys/project.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    PROJECT_FIRST = 1 << 30, /* others, who number by hand, begin at 1 */
    FULL_PART = 1024,        /* of the disk: with less left, what fails failed for it */
    FULL_BYTES_MIN = 1 << 20,
    FULL_INODES = 16,
};

static const char image_name[] = "image", empty_name[] = "disk.empty";

/* --- the engine's --- */

static int images_prepare(struct local_engine *local, struct err *err)
{
    char path[RUNTIME_PATH_MAX], beside[RUNTIME_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/%s", local->directory, empty_name);
    snprintf(beside, sizeof beside, "%s~", path);
    int code = disk_image_format(beside, local->config.disk_mib << 20, err);
    int fd = code == 0 ? disk_image_mount(beside, err) : code; /* does the kernel take it? */
    if (fd >= 0)
        disk_image_drop(fd);
    if (fd < 0) {
        unlink(beside);
        return fd;
    }
    /* what the mount wrote into that one is not to be in all others */
    code = disk_image_format(beside, local->config.disk_mib << 20, err);
    if (code == 0 && rename(beside, path) < 0)
        code = err_errno(err, errno, "rename %s", beside);
    if (code < 0)
        unlink(beside);
    return code;
}

/* On a full disk the one that an earlier start has made is as good. */
static bool images_are_ready(const struct local_engine *local)
{
    char path[RUNTIME_PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", local->directory, empty_name);
    return storage_directory_is_tight(local->directory) && stat(path, &status) == 0 &&
           (uint64_t)status.st_size == (local->config.disk_mib << 20);
}

int task_disks_open(struct local_engine *local, struct err *err)
{
    local->disk_way = DISK_OPEN;
    if (local->config.disk_quota == DISK_QUOTA_OFF)
        return 0;
    cleanup_close int fd = open(local->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && project_is_enforced(fd)) {
        local->disk_way = DISK_PROJECT;
        return 0;
    }
    if (local->config.disk_quota == DISK_QUOTA_POSSIBLE) {
        log_info("engine", "tasks may fill the disk: %s has no project quotas", local->directory);
        return 0;
    }
    int code = images_prepare(local, err);
    if (code < 0 && !images_are_ready(local))
        return err_fail(err, ERR_UNSUPPORTED, "engine.disk.quota",
                        "%s has no project quotas, and no file system can be made for a task: %s",
                        local->directory, err ? err->text : "");
    local->disk_way = DISK_IMAGE;
    return 0;
}

/* --- where it is --- */

void task_disk_path(const struct local_engine *local, const struct task *task, const char *name,
                    char path[RUNTIME_PATH_MAX])
{
    if (task->disk_fd >= 0)
        snprintf(path, RUNTIME_PATH_MAX, "/proc/self/fd/%d/%s", task->disk_fd, name);
    else
        task_path(local, task->id, name, path);
}

/* --- its life --- */

int task_disk_make(struct local_engine *local, struct task *task, struct err *err)
{
    char empty[RUNTIME_PATH_MAX], image[RUNTIME_PATH_MAX], target[RUNTIME_PATH_MAX];
    assert(task->disk_fd < 0);
    if (local->disk_way != DISK_IMAGE)
        return 0;
    snprintf(empty, sizeof empty, "%s/%s", local->directory, empty_name);
    task_path(local, task->id, image_name, image);
    task_path(local, task->id, TASK_DISK_NAME, target);
    if (mkdir(target, 0711) < 0 && errno != EEXIST)
        return err_errno(err, errno, "make %s", target);
    int code = disk_image_copy(empty, image, err);
    int fd = code == 0 ? disk_image_mount(image, err) : code;
    if (fd < 0)
        return fd;
    pthread_mutex_lock(&local->lock);
    task->disk_fd = fd;
    pthread_mutex_unlock(&local->lock);
    return 0;
}

/* A task has two, so that the log can say that the disk is full. */
enum project_kind { PROJECT_DISK, PROJECT_LOG, PROJECT_KINDS };

/* Attempts are numbered once; engines beside each other on one file system differ by their id. */
static uint32_t project_of(const struct local_engine *local, const struct task *task,
                           enum project_kind kind)
{
    const uint64_t mixed = task->attempt.v ^ local->id;
    return PROJECT_FIRST | ((uint32_t)(mixed * PROJECT_KINDS + kind) & (PROJECT_FIRST - 1));
}

int task_disk_limit(struct local_engine *local, struct task *task, const char *const *paths,
                    size_t count, struct err *err)
{
    if (local->disk_way != DISK_PROJECT)
        return 0;
    char log[RUNTIME_PATH_MAX];
    task_log_path(local, task->id, log);
    const uint32_t project = project_of(local, task, PROJECT_DISK),
                   log_project = project_of(local, task, PROJECT_LOG);
    const uint64_t bytes = local->config.disk_mib << 20,
                   log_bytes = local->config.log_max_mib << 20;
    cleanup_close int fd = open(local->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = project_limit(fd, project, bytes, bytes / DISK_INODE_BYTES, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = project_put(paths[i], project, err);
    if (code == 0)
        code = project_limit(fd, log_project, log_bytes, log_bytes / DISK_INODE_BYTES, err);
    return code == 0 ? project_put(log, log_project, err) : code;
}

void task_disk_adopt(struct local_engine *local, struct task *task)
{
    char image[RUNTIME_PATH_MAX];
    struct err err = {0};
    task_path(local, task->id, image_name, image);
    if (access(image, F_OK) < 0)
        return;
    int fd = disk_image_mount_again(image, &err);
    if (fd >= 0)
        task->disk_fd = fd;
    else
        log_error("engine", "attempt %s: its disk: %s", task->id, err.text);
}

/* --- its end --- */

static bool use_read(const struct local_engine *local, const struct task *task,
                     enum project_kind kind, struct project_use *use)
{
    struct statvfs disk;
    if (task->disk_fd >= 0) { /* its log is in it */
        if (kind == PROJECT_LOG || fstatvfs(task->disk_fd, &disk) < 0)
            return false;
        *use = (struct project_use){.bytes_max = disk.f_blocks * disk.f_frsize,
                                    .bytes = (disk.f_blocks - disk.f_bavail) * disk.f_frsize,
                                    .inodes_max = disk.f_files,
                                    .inodes = disk.f_files - disk.f_ffree};
        return true;
    }
    cleanup_close int fd = open(local->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && project_use_read(fd, project_of(local, task, kind), use) &&
           use->bytes_max > 0;
}

static bool kind_is_full(const struct local_engine *local, const struct task *task,
                         enum project_kind kind, char reason[TASK_DISK_REASON_MAX])
{
    static const char *const names[] = {"disk", "log"};
    struct project_use use;
    if (!use_read(local, task, kind, &use))
        return false;
    const unsigned long long mib =
        kind == PROJECT_DISK ? local->config.disk_mib : local->config.log_max_mib;
    const uint64_t part = use.bytes_max / FULL_PART;
    const uint64_t least = part > FULL_BYTES_MIN ? part : FULL_BYTES_MIN;
    if (use.inodes + FULL_INODES > use.inodes_max)
        snprintf(reason, TASK_DISK_REASON_MAX, "its %s may have %llu files, and has them",
                 names[kind], (unsigned long long)use.inodes_max);
    else if (use.bytes + least > use.bytes_max && mib % 1024 == 0)
        snprintf(reason, TASK_DISK_REASON_MAX, "its %s of %llu GiB is full", names[kind],
                 mib >> 10);
    else if (use.bytes + least > use.bytes_max)
        snprintf(reason, TASK_DISK_REASON_MAX, "its %s of %llu MiB is full", names[kind], mib);
    else
        return false;
    return true;
}

bool task_disk_is_full(const struct local_engine *local, const struct task *task,
                       char reason[TASK_DISK_REASON_MAX])
{
    return kind_is_full(local, task, PROJECT_DISK, reason) ||
           kind_is_full(local, task, PROJECT_LOG, reason);
}

void task_disk_end(struct local_engine *local, struct task *task)
{
    char from[RUNTIME_PATH_MAX], to[RUNTIME_PATH_MAX];
    struct err err = {0};
    if (task->disk_fd >= 0) {
        task_disk_path(local, task, "log", from);
        task_log_path(local, task->id, to);
        if (logs_copy(from, to, local->config.log_max_mib << 20, &err) < 0)
            log_warning("engine", "attempt %s: its log: %s", task->id, err.text);
    }
    if (local->disk_way != DISK_PROJECT)
        return;
    cleanup_close int fd = open(local->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (enum project_kind kind = PROJECT_DISK; kind < PROJECT_KINDS; kind++)
        if (fd < 0 || project_limit(fd, project_of(local, task, kind), 0, 0, &err) < 0)
            log_warning("engine", "attempt %s: %s", task->id, err.text);
}

void task_disk_drop(struct local_engine *local, struct task *task)
{
    pthread_mutex_lock(&local->lock);
    const int fd = task->disk_fd;
    task->disk_fd = -1;
    pthread_mutex_unlock(&local->lock);
    if (fd >= 0)
        disk_image_drop(fd);
}
