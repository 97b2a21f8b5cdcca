/* directories.c — the folders of the local engine: below its data directory, and in /run. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Below it is one folder a task, and two tasks have nothing in common. ext4 puts a folder's files
 * near it and one folder near another, unless it is told so: then all tasks take their inodes from
 * one place, where searching for one that is free gets slow. Other file systems need no telling. */
static void directory_spread(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;
    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags); /* refused: as it was */
    }
}

static const char default_run[] = "/run/skep"; /* has a run directory for each engine */

/* Entered by root alone, whatever the umask, an earlier release or somebody else has made of it:
 * below it are set-user-id files of root's that images and tasks brought along. The mounts of
 * containers are made by root, who passes. */
static int directory_close(const char *path, struct err *err)
{
    int code = dir_make(path, 0700, err);
    if (code == 0 && chmod(path, 0700) < 0)
        code = err_errno(err, errno, "chmod %s", path);
    return code;
}

static int directories_closed_make(const struct local_engine *local, struct err *err)
{
    enum { SPREAD_DIRECTORIES = 2 }; /* the first of these */
    static const char *const parts[] = {"containers", "logs", "images", "blobs", "refs", "layers"};
    char path[RUNTIME_PATH_MAX];
    int code = 0;
    for (size_t i = 0; i < COUNT_OF(parts) && code == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", local->directory, parts[i]);
        code = directory_close(path, err);
        if (code == 0 && i < SPREAD_DIRECTORIES)
            directory_spread(path);
    }
    snprintf(path, sizeof path, "%s/blobs/sha256", local->directory);
    return code < 0 ? code : dir_make(path, 0700, err);
}

int local_directories_make(struct local_engine *local, struct err *err)
{
    static const char *const points[] = {"points",     "points/proc", "points/sys",
                                         "points/dev", "points/skep", "points/etc"};
    char path[RUNTIME_PATH_MAX];
    int code = directory_close(local->config.directory, err);
    if (code < 0)
        return code;
    cleanup_free char *real = realpath(local->config.directory, NULL);
    if (!real)
        return err_errno(err, errno, "find %s", local->config.directory);
    if (strlen(real) >= LOCAL_DIRECTORY_MAX || strpbrk(real, ":,\\\"\n"))
        return err_fail(err, ERR_INVALID, "",
                        "the data directory's path must be short and without : , \\ \": %.80s",
                        real);
    snprintf(local->directory, sizeof local->directory, "%s", real);
    code = directories_closed_make(local, err);
    for (size_t i = 0; i < COUNT_OF(points) && code == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", local->directory, points[i]);
        code = dir_make(path, 0755, err);
        if (code == 0 && chmod(path, 0755) < 0) /* seen in containers: whatever our umask */
            code = err_errno(err, errno, "chmod %s", path);
    }
    if (code < 0)
        return code;
    static const char *const files[] = {"hosts", "resolv.conf"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(path, sizeof path, "%s/points/etc/%s", local->directory, files[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0) /* else, on a full disk, the runtime makes it in the task's layer */
            close(fd);
    }
    unsigned hash = (unsigned)(text_hash(text_of(real), 0) & 0xffffffffu);
    local->id = hash;
    snprintf(local->group, sizeof local->group, "/skep/%08x", hash);
    if (local->config.run_directory[0])
        snprintf(local->run_directory, sizeof local->run_directory, "%s",
                 local->config.run_directory);
    else
        snprintf(local->run_directory, sizeof local->run_directory, "%s/%08x", default_run, hash);
    return 0;
}

/* Folders on which each container's own namespace has its mounts; all that leads to them may be
 * passed by anybody, because who mounts there may be nobody. */
static const char *const view_names[] = {"merged", "lower", "points", "sys"};

/* A folder through which anybody may pass, whatever the umask. */
static int passage_make(const char *path, struct err *err)
{
    int code = dir_make(path, 0711, err);
    if (code == 0 && chmod(path, 0711) < 0)
        code = err_errno(err, errno, "chmod %s", path);
    return code;
}

static int run_parts_make(struct local_engine *local, struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/tasks", local->run_directory);
    int code = passage_make(path, err);
    for (size_t i = 0; i < COUNT_OF(view_names) && code == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", local->run_directory, view_names[i]);
        code = passage_make(path, err);
    }
    snprintf(local->runtime.root, sizeof local->runtime.root, "%s/runtime", local->run_directory);
    snprintf(local->runtime.exit_directory, sizeof local->runtime.exit_directory, "%s/exits",
             local->run_directory);
    snprintf(local->runtime.sealed, sizeof local->runtime.sealed, "%s/crun", local->run_directory);
    if (code == 0)
        code = dir_make(local->runtime.root, 0700, err);
    return code < 0 ? code : dir_make(local->runtime.exit_directory, 0700, err);
}

/* The small files of running tasks: on a tmpfs, so that they cost no disk access, secrets do not
 * reach a disk, and a full disk cannot keep conmon from writing down an exit. Where /run is none we
 * mount one ourselves; it stays while containers run. */
int local_run_directory_make(struct local_engine *local, struct err *err)
{
    int code = local->config.run_directory[0] ? 0 : passage_make(default_run, err);
    struct statfs file_system;
    if (code == 0)
        code = dir_make(local->run_directory, 0711, err);
    if (code == 0 && statfs(local->run_directory, &file_system) == 0 &&
        file_system.f_type != TMPFS_MAGIC &&
        mount("skep", local->run_directory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=711,size=25%") < 0)
        log_warning("engine", "%s is on a disk, and a tmpfs cannot be mounted there: errno %d",
                    local->run_directory, errno);
    if (code == 0)
        code = passage_make(local->run_directory, err);
    return code < 0 ? code : run_parts_make(local, err);
}

void local_run_directory_drop(const struct local_engine *local)
{
    static const char *const parts[] = {"tasks", "runtime", "exits"};
    char path[RUNTIME_PATH_MAX];
    bool is_empty = local->runtime.root[0] != 0;
    for (size_t i = 0; is_empty && i < COUNT_OF(parts); i++) {
        snprintf(path, sizeof path, "%s/%s", local->run_directory, parts[i]);
        is_empty = rmdir(path) == 0; /* with tasks stay the places that their conmons write to */
    }
    for (size_t i = 0; is_empty && i < COUNT_OF(view_names); i++) {
        snprintf(path, sizeof path, "%s/%s", local->run_directory, view_names[i]);
        rmdir(path);
    }
    if (is_empty && rmdir(local->run_directory) < 0 && umount2(local->run_directory, 0) == 0)
        rmdir(local->run_directory);
}

enum { LOCK_WAIT_MS = 20000, LOCK_QUIET_MS = 1000 };

int local_directory_lock(struct local_engine *local, struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", local->directory);
    local->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (local->lock_fd < 0)
        return err_errno(err, errno, "open %s", path);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    /* a child that a killed server had just forked holds the lock until its exec, which takes its
     * time on a busy machine */
    const int64_t begin_ms = clock_monotonic_ms();
    for (bool is_told = false;; poll(NULL, 0, 10)) {
        if (fcntl(local->lock_fd, F_OFD_SETLK, &whole) == 0)
            return 0;
        if (errno != EAGAIN && errno != EACCES)
            return err_errno(err, errno, "lock %s", path);
        const int64_t waited_ms = clock_monotonic_ms() - begin_ms;
        if (waited_ms >= LOCK_WAIT_MS)
            return err_fail(err, ERR_BUSY, "", "another server uses %s", local->directory);
        if (waited_ms >= LOCK_QUIET_MS && !is_told) {
            log_info("engine",
                     "another server uses %s, or a process that one has left; waiting %d s",
                     local->directory, LOCK_WAIT_MS / 1000);
            is_told = true;
        }
    }
}
