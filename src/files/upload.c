#include "files/upload.h"
#include "base/err.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { PRIVATE_MODE = 0666, SHARED_MODE = 0644, SYNC_BYTES = 32 << 20 };

static int space_check(int fd, uint64_t bytes, uint64_t reserve, struct err *err)
{
    struct statvfs disk;
    if (fstatvfs(fd, &disk) < 0)
        return err_errno(err, errno, "look for space on the disk of the storage");
    const uint64_t block = disk.f_frsize, has = (uint64_t)disk.f_bavail * block;
    if (has >= reserve && has - reserve >= bytes)
        return 0;
    return err_fail(err, ERR_CONFLICT, "size",
                    "the disk of the storage has no room for %llu MiB more: remove files, or ask "
                    "the operator",
                    (unsigned long long)(bytes >> 20) + 1);
}

/* Who owns it, and who may use it, is settled before it has a name. */
static int file_own(const struct files_root *root, int fd, const char *name, struct err *err)
{
    const struct files_owner owner = files_writer(&root->view);
    if (root->view.is_squashed && fchown(fd, owner.user, owner.group) < 0)
        return files_errno(errno, "give away", name, err);
    if (fchmod(fd, root->is_private ? PRIVATE_MODE : SHARED_MODE) < 0)
        return files_errno(errno, "set the permissions of", name, err);
    return 0;
}

static int file_make(const struct files_root *root, const char *name, struct files_upload *upload,
                     struct err *err)
{
    upload->fd = openat(upload->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (upload->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "the file system of storage %s knows no files without a name (O_TMPFILE): "
                        "nothing can be uploaded there",
                        root->name);
    if (upload->fd < 0)
        return files_errno(errno, "make", name, err);
    return file_own(root, upload->fd, name, err);
}

/* Known at the begin, and not after an hour: may it be placed? Asked again then. */
static int target_check(const struct files_upload *upload, struct err *err)
{
    struct stat stat;
    if (fstatat(upload->folder, upload->name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(stat.st_mode))
        return files_errno(EISDIR, "replace", upload->name, err);
    return upload->is_replacing ? 0 : files_errno(EEXIST, "make", upload->name, err);
}

/* May names be made in the folder, and taken out of it? */
static int folder_check(const struct files_root *root, int folder, bool is_replacing,
                        struct err *err)
{
    struct stat stat;
    if (root->is_read_only)
        return err_fail(err, ERR_FORBIDDEN, "", "storage %s is read-only", root->name);
    if (fstat(folder, &stat) < 0)
        return err_errno(err, errno, "look at the folder");
    const struct files_node node = {stat.st_uid, stat.st_gid, stat.st_mode & 07777};
    if (!files_may(&root->view, &node, FILES_WRITE | FILES_EXECUTE))
        return err_fail(err, ERR_FORBIDDEN, "path",
                        "a task of yours could not make files in this folder");
    if (is_replacing && !files_may_unlink(&root->view, &node))
        return err_fail(err, ERR_FORBIDDEN, "path",
                        "a task of yours could not replace files in this folder");
    return 0;
}

static int folder_open(const struct files_root *root, const struct files_path *path,
                       bool is_replacing, struct err *err)
{
    if (!path->count)
        return err_fail(err, ERR_INVALID, "path", "name the file that is to be made");
    if (root->is_read_only)
        return err_fail(err, ERR_FORBIDDEN, "", "storage %s is read-only", root->name);
    cleanup_close int folder = files_folder(root, path, path->count - 1, FILES_WRITE, err);
    int code = folder < 0 ? folder : folder_check(root, folder, is_replacing, err);
    return code ? code : fd_steal(&folder);
}

int files_upload_begin(const struct files_root *root, const struct files_path *path, uint64_t size,
                       bool is_replacing, uint64_t reserve, struct files_upload *upload,
                       struct err *err)
{
    *upload =
        (struct files_upload){.folder = -1, .fd = -1, .size = size, .is_replacing = is_replacing};
    upload->folder = folder_open(root, path, is_replacing, err);
    int code = upload->folder < 0 ? upload->folder : 0;
    if (!code) {
        snprintf(upload->name, sizeof upload->name, "%s", files_path_name(path, path->count - 1));
        code = target_check(upload, err);
    }
    if (!code)
        code = space_check(upload->folder, size, reserve, err);
    if (!code)
        code = file_make(root, upload->name, upload, err);
    if (code)
        files_upload_release(upload);
    return code;
}

int files_upload_add(struct files_upload *upload, struct text bytes, uint64_t reserve,
                     struct err *err)
{
    uint64_t at = upload->received;
    assert(bytes.length <= upload->size - upload->received);
    int code = space_check(upload->fd, bytes.length, reserve, err);
    if (code)
        return code;
    while (bytes.length) {
        const ssize_t wrote = pwrite(upload->fd, bytes.at, bytes.length, (off_t)at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return files_errno(errno, "write", upload->name, err);
        bytes = (struct text){bytes.at + wrote, bytes.length - (size_t)wrote};
        at += (uint64_t)wrote;
    }
    /* in pieces, so that the last one does not keep others waiting */
    if (at - upload->synced >= SYNC_BYTES) {
        if (fdatasync(upload->fd) < 0)
            return files_errno(errno, "write", upload->name, err);
        upload->synced = at;
    }
    upload->received = at;
    return 0;
}

static int name_give(const struct files_upload *upload, const char *name)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", upload->fd);
    return linkat(AT_FDCWD, path, upload->folder, name, AT_SYMLINK_FOLLOW) < 0 ? errno : 0;
}

/* A file cannot get the name of another one at once: it gets a spare one first. What stands there
 * was left by a server that was killed between both. */
static int replace(const struct files_upload *upload)
{
    char spare[FILES_SPARE_SIZE];
    files_spare_name(upload->name, spare);
    int number = name_give(upload, spare);
    if (number == EEXIST && unlinkat(upload->folder, spare, 0) == 0)
        number = name_give(upload, spare);
    if (number || renameat(upload->folder, spare, upload->folder, upload->name) == 0)
        return number;
    number = errno;
    unlinkat(upload->folder, spare, 0); /* if it stays, the next one removes it */
    return number;
}

int files_upload_place(const struct files_root *root, struct files_upload *upload, struct err *err)
{
    assert(upload->received == upload->size);
    int code = folder_check(root, upload->folder, upload->is_replacing, err);
    if (code)
        return code;
    if (fsync(upload->fd) < 0)
        return files_errno(errno, "write", upload->name, err);
    int number = name_give(upload, upload->name);
    if (number == EEXIST && upload->is_replacing)
        number = replace(upload);
    if (number)
        return files_errno(number, "make", upload->name, err);
    /* O_PATH cannot be synced */
    cleanup_close int folder = openat(upload->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fsync(folder) < 0)
        return files_errno(errno, "write the folder of", upload->name, err);
    return 0;
}

void files_upload_release(struct files_upload *upload)
{
    if (upload->fd >= 0)
        close(upload->fd);
    if (upload->folder >= 0)
        close(upload->folder);
    upload->fd = upload->folder = -1;
}
