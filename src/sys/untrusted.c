#include "sys/untrusted.h"
#include "base/buf.h"
#include "base/err.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int folder_open(const char *directory, int flags, struct err *err)
{
    int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (folder < 0 && errno == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no %s", directory);
    return folder < 0 ? err_errno(err, errno, "open %s", directory) : folder;
}

/* The file by a descriptor that opens nothing. */
static int file_find(int folder, const char *path, enum untrusted_links links, struct err *err)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    how.resolve |=
        links == UNTRUSTED_IN_ROOT ? RESOLVE_IN_ROOT : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    int found = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (found >= 0)
        return found;
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
        return err_fail(err, ERR_NOT_FOUND, "", "there is no plain file %s", path);
    default:
        return err_errno(err, errno, "find %s", path);
    }
}

int untrusted_reopen(int found)
{
    char again[40];
    snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    return open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int untrusted_open(int folder, const char *path, enum untrusted_links links, struct stat *stat,
                   struct err *err)
{
    assert(folder >= 0 && path[0]);
    cleanup_close int found = file_find(folder, path, links, err);
    if (found < 0)
        return found;
    if (fstat(found, stat) < 0)
        return err_errno(err, errno, "look at %s", path);
    if (!S_ISREG(stat->st_mode))
        return err_fail(err, ERR_INVALID, "", "%s is not a plain file", path);
    int fd = untrusted_reopen(found);
    return fd < 0 ? err_errno(err, errno, "open %s", path) : fd;
}

static int content_read(int fd, const char *path, size_t limit, struct buf *out, struct err *err)
{
    char bytes[8192];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, errno, "read %s", path);
        if (out->length + (size_t)got > limit)
            return err_fail(err, ERR_TOO_BIG, "", "%s is longer than %zu bytes", path, limit);
        buf_add(out, bytes, (size_t)got);
    }
    return 0;
}

int untrusted_read(const char *directory, const char *path, enum untrusted_links links,
                   size_t limit, struct buf *out, struct err *err)
{
    struct stat stat;
    cleanup_close int folder =
        folder_open(directory, links == UNTRUSTED_NO_LINKS ? O_NOFOLLOW : 0, err);
    if (folder < 0)
        return folder;
    cleanup_close int fd = untrusted_open(folder, path, links, &stat, err);
    if (fd < 0)
        return fd;
    cleanup_buf struct buf content = BUF_INIT;
    int code = content_read(fd, path, limit, &content, err);
    if (code == 0)
        buf_text(out, buf_as_text(&content));
    return code;
}

static int content_write(int fd, struct text content, const char *name, struct err *err)
{
    while (content.length > 0) {
        ssize_t count = write(fd, content.at, content.length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return err_errno(err, errno, "write %s", name);
        content.at += count;
        content.length -= (size_t)count;
    }
    return 0;
}

int untrusted_put(const char *directory, const char *name, struct text content, mode_t mode,
                  struct err *err)
{
    char beside[NAME_MAX + 1];
    assert(!strchr(name, '/'));
    if (snprintf(beside, sizeof beside, ".%s~", name) >= (int)sizeof beside)
        return err_fail(err, ERR_TOO_BIG, "", "%s: the name is too long", name);
    cleanup_close int folder = folder_open(directory, O_NOFOLLOW, err);
    if (folder < 0)
        return folder;
    unlinkat(folder, beside, 0); /* of an earlier one, or put there by the task */
    cleanup_close int fd =
        openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_errno(err, errno, "create %s", beside);
    int code = content_write(fd, content, beside, err);
    if (code == 0 && fchmod(fd, mode) < 0)
        code = err_errno(err, errno, "set the mode of %s", beside);
    if (code == 0 && renameat(folder, beside, folder, name) < 0)
        code = err_errno(err, errno, "rename %s to %s", beside, name);
    if (code < 0)
        unlinkat(folder, beside, 0);
    return code;
}
