/* file.c — see file.h. */
#include "sys/file.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int file_read(const char *path, size_t limit, struct buf *out, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t total = 0;
    if (fd < 0 && errno == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "%s does not exist", path);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    char bytes[16384];
    for (;;) {
        ssize_t count = read(fd, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return err_errno(err, errno, "read %s", path);
        if (count == 0)
            return 0;
        total += (size_t)count;
        if (total > limit)
            return err_fail(err, ERR_TOO_BIG, "", "%s is larger than %zu bytes", path, limit);
        buf_add(out, bytes, (size_t)count);
    }
}

static int file_fill(int fd, const char *path, struct text content, struct err *err)
{
    while (content.length > 0) {
        ssize_t count = write(fd, content.at, content.length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return err_errno(err, errno, "write %s", path);
        content.at += count;
        content.length -= (size_t)count;
    }
    return fsync(fd) == 0 ? 0 : err_errno(err, errno, "fsync %s", path);
}

int dir_sync(const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    return fsync(fd) == 0 ? 0 : err_errno(err, errno, "fsync %s", path);
}

static int parent_sync(const char *path, struct err *err)
{
    cleanup_free char *copy = mem_copy(path);
    return dir_sync(dirname(copy), err);
}

/* Write beside `path`; `beside` gets the name. */
static int file_beside(const char *path, struct text content, mode_t mode, char *beside,
                       struct err *err)
{
    cleanup_close int fd = -1;
    if (snprintf(beside, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%s: the path is too long", path);
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "create %s", beside);
    int code = fchmod(fd, mode) == 0 ? 0 : err_errno(err, errno, "chmod %s", beside);
    if (code == 0)
        code = file_fill(fd, beside, content, err);
    if (code < 0)
        unlink(beside);
    return code;
}

int file_write(const char *path, struct text content, mode_t mode, struct err *err)
{
    char beside[PATH_MAX];
    int code = file_beside(path, content, mode, beside, err);
    if (code < 0)
        return code;
    if (rename(beside, path) < 0) {
        code = err_errno(err, errno, "rename %s to %s", beside, path);
        unlink(beside);
        return code;
    }
    return parent_sync(path, err);
}

int file_create(const char *path, struct text content, mode_t mode, struct err *err)
{
    char beside[PATH_MAX];
    int code = file_beside(path, content, mode, beside, err);
    if (code < 0)
        return code;
    if (link(beside, path) < 0)
        code = errno == EEXIST ? err_fail(err, ERR_CONFLICT, "", "%s exists", path)
                               : err_errno(err, errno, "link %s to %s", beside, path);
    unlink(beside);
    return code < 0 ? code : parent_sync(path, err);
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
    cleanup_free char *copy = mem_copy(path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return err_errno(err, errno, "mkdir %s", copy);
        *slash = '/';
    }
    if (mkdir(copy, mode) < 0 && errno != EEXIST)
        return err_errno(err, errno, "mkdir %s", copy);
    return 0;
}
