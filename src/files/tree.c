#include "files/tree.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/storage.h"
#include "sys/cleanup.h"
#include "sys/untrusted.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PRIVATE_MODE = 0777, SHARED_MODE = 0755 };

int files_errno(int number, const char *what, const char *name, struct err *err)
{
    switch (number) {
    case ENOENT:
        return err_fail(err, ERR_NOT_FOUND, "path", "there is no %.120s", name);
    case ENOTDIR:
    case ELOOP:
        return err_fail(err, ERR_INVALID, "path", "%.120s is not a folder; links are not followed",
                        name);
    case EXDEV:
        return err_fail(err, ERR_INVALID, "path", "%.120s is on another file system", name);
    case EEXIST:
        return err_fail(err, ERR_CONFLICT, "path", "%.120s is there already", name);
    case ENOTEMPTY:
        return err_fail(err, ERR_CONFLICT, "path", "the folder %.120s is not empty", name);
    case EISDIR:
        return err_fail(err, ERR_CONFLICT, "path", "%.120s is a folder", name);
    case ENOSPC:
    case EDQUOT:
        return err_fail(err, ERR_CONFLICT, "path", "the disk of the storage is full");
    case EACCES:
    case EPERM:
        return err_fail(err, ERR_FORBIDDEN, "path", "%s %.120s: the storage does not allow it",
                        what, name);
    case EROFS:
        return err_fail(err, ERR_FORBIDDEN, "path", "the storage is read-only on this machine");
    default:
        return err_errno(err, number, "%s %.120s", what, name);
    }
}

static int forbidden(const char *name, struct err *err)
{
    return err_fail(err, ERR_FORBIDDEN, "path", "a task of yours could not do that to %.120s",
                    name);
}

static struct files_node node_of(const struct stat *stat)
{
    return (struct files_node){stat->st_uid, stat->st_gid, stat->st_mode & 07777};
}

/* ---- the folder of the storage ---- */

/* Whatever has come into its place meanwhile: a link is not followed. */
static int folder_open_up(int directory, const char *name)
{
    cleanup_close int made =
        openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return made < 0 ? -1 : fchmod(made, PRIVATE_MODE);
}

int files_user_folder(const struct storage *storage, int directory, const char *user,
                      struct err *err)
{
    /* its image may run as whoever it likes */
    if (mkdirat(directory, user, PRIVATE_MODE) == 0 && folder_open_up(directory, user) < 0)
        return err_errno(err, errno, "storage %s: the folder of %s", storage->name, user);
    int folder = openat(directory, user, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return err_errno(err, errno, "storage %s: the folder of %s", storage->name, user);
    return folder;
}

int files_root_open(const struct storage *storage, const char *user, uint32_t nobody,
                    struct files_root *root, struct err *err)
{
    struct stat stat;
    *root = (struct files_root){.fd = -1,
                                .is_private = !storage->is_shared,
                                .is_read_only = storage->is_read_only,
                                .name = storage->name};
    if (!storage->directory[0])
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "storage %s is a claim of Kubernetes clusters: its files are not on this "
                        "machine, and can be reached by a job that mounts it",
                        storage->name);
    if (!storage->is_shared && (strcmp(user, ".") == 0 || strcmp(user, "..") == 0))
        return err_fail(err, ERR_INVALID, "", "storage %s has no folder for %s", storage->name,
                        user);
    cleanup_close int directory = open(storage->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "the folder of storage %s cannot be reached on the server: %s",
                        storage->name, strerrordesc_np(errno));
    int fd = storage->is_shared ? fd_steal(&directory)
                                : files_user_folder(storage, directory, user, err);
    if (fd < 0)
        return fd;
    root->fd = fd;
    if (fstat(fd, &stat) < 0) {
        int code = err_errno(err, errno, "look at storage %s", storage->name);
        files_root_release(root);
        return code;
    }
    root->view = (struct files_view){stat.st_uid, stat.st_gid, storage->is_root_squashed, nobody};
    return 0;
}

void files_root_release(struct files_root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    root->fd = -1;
}

/* ---- paths ---- */

/* One name, whatever stands there, by a descriptor that opens nothing. */
static int name_find(int folder, const char *name, uint64_t flags)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | flags,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                            RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

static int folder_check(const struct files_root *root, int fd, const char *name, unsigned wishes,
                        struct err *err)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0)
        return err_errno(err, errno, "look at %s", name);
    const struct files_node node = node_of(&stat);
    return files_may(&root->view, &node, wishes | FILES_EXECUTE) ? 0 : forbidden(name, err);
}

int files_folder(const struct files_root *root, const struct files_path *path, size_t count,
                 unsigned wishes, struct err *err)
{
    assert(count <= path->count);
    cleanup_close int at = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
    if (at < 0)
        return err_errno(err, errno, "open storage %s", root->name);
    int code = folder_check(root, at, root->name, count ? FILES_EXECUTE : wishes, err);
    for (size_t i = 0; code == 0 && i < count; i++) {
        cleanup_close int next = name_find(at, files_path_name(path, i), O_DIRECTORY);
        if (next < 0)
            return files_errno(errno, "open", files_path_name(path, i), err);
        code = folder_check(root, next, files_path_name(path, i),
                            i + 1 < count ? FILES_EXECUTE : wishes, err);
        const int before = at;
        at = fd_steal(&next);
        close(before);
    }
    return code ? code : fd_steal(&at);
}

int files_open(const struct files_root *root, const struct files_path *path, struct stat *stat,
               struct err *err)
{
    if (!path->count)
        return err_fail(err, ERR_INVALID, "path", "name a file of the storage");
    const char *name = files_path_name(path, path->count - 1);
    cleanup_close int folder = files_folder(root, path, path->count - 1, FILES_EXECUTE, err);
    if (folder < 0)
        return folder;
    cleanup_close int found = name_find(folder, name, 0);
    if (found < 0)
        return files_errno(errno, "open", name, err);
    if (fstat(found, stat) < 0)
        return err_errno(err, errno, "look at %s", name);
    if (!S_ISREG(stat->st_mode))
        return err_fail(err, ERR_INVALID, "path", "%.120s is not a plain file", name);
    const struct files_node node = node_of(stat);
    if (!files_may(&root->view, &node, FILES_READ))
        return forbidden(name, err);
    int fd = untrusted_reopen(found);
    return fd < 0 ? files_errno(errno, "open", name, err) : fd;
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b)
{
    const struct files_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static enum files_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? FILES_FILE : S_ISDIR(mode) ? FILES_FOLDER : FILES_OTHER;
}

static void entry_add(DIR *dir, const char *name, struct arena *arena,
                      struct files_listing *listing)
{
    struct stat stat;
    if (fstatat(dirfd(dir), name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* it has gone */
    *ARRAY_ADD(listing) = (struct files_entry){
        .name = arena_copy(arena, text_of(name)),
        .kind = kind_of(stat.st_mode),
        .size = S_ISREG(stat.st_mode) ? (uint64_t)stat.st_size : 0,
        .changed_ms = (int64_t)stat.st_mtim.tv_sec * 1000 + stat.st_mtim.tv_nsec / 1000000,
    };
}

int files_list(const struct files_root *root, const struct files_path *path, struct arena *arena,
               struct files_listing *listing, struct err *err)
{
    const char *name = path->count ? files_path_name(path, path->count - 1) : root->name;
    *listing = (struct files_listing){0};
    cleanup_close int folder = files_folder(root, path, path->count, FILES_READ, err);
    if (folder < 0)
        return folder;
    cleanup_close int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return files_errno(errno, "open", name, err);
    fd_steal(&fd);
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (listing->count == FILES_ENTRIES_MAX)
            return err_fail(err, ERR_TOO_BIG, "path",
                            "the folder %.120s has more than %d entries: look at it in a job", name,
                            FILES_ENTRIES_MAX);
        entry_add(dir, entry->d_name, arena, listing);
    }
    if (errno)
        return err_errno(err, errno, "read the folder %s", name);
    if (listing->count) /* no array else */
        qsort(listing->items, listing->count, sizeof *listing->items, by_name);
    return 0;
}

/* This thread's umask becomes its own, and 0: the modes that are given are what is made. */
static void umask_leave(void)
{
    static _Thread_local bool is_own;
    if (is_own)
        return;
    is_own = unshare(CLONE_FS) == 0;
    if (is_own)
        umask(0);
}

/* As root of a task. Made by another user than ours it belongs to that one from its first moment
 * on: there is no name to be exchanged before it is given away. That user has no rights of root
 * while it is made. */
static int folder_make(const struct files_root *root, int folder, const char *name)
{
    const mode_t mode = root->is_private ? PRIVATE_MODE : SHARED_MODE;
    const struct files_owner owner = files_writer(&root->view);
    if (!root->view.is_squashed)
        return mkdirat(folder, name, mode) < 0 ? errno : 0;
    const uid_t user = (uid_t)setfsuid(owner.user);
    const gid_t group = (gid_t)setfsgid(owner.group);
    /* the call that asks for an id that there is not changes nothing, and tells which one it is */
    const bool is_owner =
        (uint32_t)setfsuid((uid_t)-1) == owner.user && (uint32_t)setfsgid((gid_t)-1) == owner.group;
    const int number = !is_owner ? EPERM : mkdirat(folder, name, mode) < 0 ? errno : 0;
    setfsgid(group);
    setfsuid(user);
    return number;
}

/* The folder in which the path's last name stands, where names may be made. */
static int parent_open(const struct files_root *root, const struct files_path *path,
                       struct err *err)
{
    if (!path->count)
        return err_fail(err, ERR_INVALID, "path", "this is the folder of the storage itself");
    if (root->is_read_only)
        return err_fail(err, ERR_FORBIDDEN, "", "storage %s is read-only", root->name);
    return files_folder(root, path, path->count - 1, FILES_WRITE, err);
}

int files_make_folder(const struct files_root *root, const struct files_path *path, struct err *err)
{
    cleanup_close int folder = parent_open(root, path, err);
    if (folder < 0)
        return folder;
    umask_leave();
    const char *name = files_path_name(path, path->count - 1);
    const int number = folder_make(root, folder, name);
    return number ? files_errno(number, "make", name, err) : 0;
}

static int unlink_check(const struct files_root *root, int folder, const char *name,
                        struct err *err)
{
    struct stat stat;
    if (fstat(folder, &stat) < 0)
        return err_errno(err, errno, "look at the folder of %s", name);
    const struct files_node node = node_of(&stat);
    return files_may_unlink(&root->view, &node) ? 0 : forbidden(name, err);
}

int files_remove(const struct files_root *root, const struct files_path *path, struct err *err)
{
    cleanup_close int folder = parent_open(root, path, err);
    if (folder < 0)
        return folder;
    const char *name = files_path_name(path, path->count - 1);
    int code = unlink_check(root, folder, name, err);
    if (code)
        return code;
    if (unlinkat(folder, name, 0) == 0 ||
        (errno == EISDIR && !unlinkat(folder, name, AT_REMOVEDIR)))
        return 0;
    return files_errno(errno, "remove", name, err);
}

int files_rename(const struct files_root *root, const struct files_path *from,
                 const struct files_path *to, struct err *err)
{
    cleanup_close int folder = parent_open(root, from, err);
    if (folder < 0)
        return folder;
    cleanup_close int target = parent_open(root, to, err);
    if (target < 0)
        return target;
    const char *name = files_path_name(from, from->count - 1),
               *other = files_path_name(to, to->count - 1);
    int code = unlink_check(root, folder, name, err);
    if (code)
        return code;
    if (renameat2(folder, name, target, other, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EINVAL)
        return err_fail(err, ERR_INVALID, "newPath", "a folder cannot be moved into itself");
    return files_errno(errno, "rename", errno == EEXIST ? other : name, err);
}
