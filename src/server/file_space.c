/* file_space.c — see file_space.h. */
#include "server/file_space.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/untrusted.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_beneath(const struct file_space *space, const char *below, int flags)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd = -1;
    /* a rename elsewhere on the machine may ask for another try */
    for (int tries = 0; fd < 0 && tries < 100; tries++) {
        fd = (int)syscall(SYS_openat2, space->fd, below[0] ? below : ".", &how, sizeof how);
        if (fd < 0 && errno != EAGAIN && errno != EINTR)
            break;
    }
    return fd;
}

/* Part by part, each from the folder before: no link is followed. */
static int open_walking(const struct file_space *space, const char *below, int flags)
{
    struct text rest = text_of(below);
    int fd = openat(space->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
    char name[NAME_MAX + 1];
    while (fd >= 0 && rest.length) {
        struct text part = text_cut(&rest, '/');
        int how = rest.length ? O_PATH | O_DIRECTORY : flags;
        if (part.length > NAME_MAX) {
            close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, part.at, part.length);
        name[part.length] = '\0';
        next = openat(fd, name, how | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = next;
    }
    return fd;
}

static int open_below(const struct file_space *space, const char *below, int flags)
{
    return space->has_openat2 ? open_beneath(space, below, flags)
                              : open_walking(space, below, flags);
}

/* From errno. */
static int open_failed(const char *field, const char *below, struct err *err)
{
    switch (errno) {
    case ENOENT:
        return err_fail(err, ERR_NOT_FOUND, field, "%s: there is no /%s in the file space", field,
                        below);
    case EXDEV:
    case ELOOP:
        return err_fail(err, ERR_FORBIDDEN, field,
                        "%s: /%s holds a link that leads out of the file space", field, below);
    case ENOTDIR:
        return err_fail(err, ERR_INVALID, field, "%s: /%s is not a folder", field, below);
    case ENAMETOOLONG:
        return err_fail(err, ERR_INVALID, field, "%s: the path has too long a name", field);
    case EACCES:
        return err_fail(err, ERR_FORBIDDEN, field, "%s: /%s may not be read", field, below);
    default:
        return err_errno(err, errno, "%s: cannot open /%s", field, below);
    }
}

/* Mounted at its own path it would hide what every image needs. */
static bool is_mountable(const char *directory)
{
    static const char *const whole[] = {"/proc", "/sys", "/dev", "/skep"};
    static const char *const single[] = {"/",      "/bin", "/boot", "/etc", "/home", "/lib",
                                         "/opt",   "/run", "/tmp",  "/usr", "/root", "/sbin",
                                         "/lib64", "/var", "/srv",  "/mnt", "/media"};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (strcmp(directory, single[i]) == 0)
            return false;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        size_t length = strlen(whole[i]);
        if (strncmp(directory, whole[i], length) == 0 &&
            (directory[length] == '/' || directory[length] == '\0'))
            return false;
    }
    return true;
}

int file_space_init(struct file_space *space, const char *directory, struct err *err)
{
    bool is_new = access(directory, F_OK) < 0;
    space->fd = -1;
    int code = dir_make(directory, 0755, err);
    if (code < 0)
        return code;
    if (is_new && chmod(directory, 0755) < 0) /* images with users of their own see it, too */
        return err_errno(err, errno, "the file space %s", directory);
    if (!realpath(directory, space->directory))
        return err_errno(err, errno, "the file space %s", directory);
    if (!is_mountable(space->directory))
        return err_fail(err, ERR_INVALID, "filesDirectory",
                        "%s cannot be the file space: containers have their own there",
                        space->directory);
    snprintf(space->uri, sizeof space->uri, "file://%s", space->directory);
    space->fd = open(space->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (space->fd < 0)
        return err_errno(err, errno, "the file space %s", space->directory);
    cleanup_close int fd = open_beneath(space, "", O_PATH | O_DIRECTORY);
    space->has_openat2 = fd >= 0;
    return 0;
}

void file_space_release(struct file_space *space)
{
    if (space->fd >= 0)
        close(space->fd);
    space->fd = -1;
}

int file_space_path(const struct file_space *space, const char *field, const char *path,
                    struct arena *arena, const char **below, struct err *err)
{
    size_t prefix = strlen(space->uri);
    bool is_ours =
        strncmp(path, space->uri, prefix) == 0 && (path[prefix] == '/' || path[prefix] == '\0');
    struct text rest = text_of(is_ours ? path + prefix : path);
    cleanup_buf struct buf out = BUF_INIT;
    int code = 0;
    if (!is_ours && path[0] != '/')
        return strstr(path, "://")
                   ? err_fail(err, ERR_UNSUPPORTED, field,
                              "%s: %.80s is not in the file space of this cluster, %.80s", field,
                              path, space->uri)
                   : err_fail(err, ERR_INVALID, field,
                              "%s: %.80s must begin with / or $PAI_DEFAULT_FS_URI", field,
                              path[0] ? path : "an empty path");
    if (rest.length >= PATH_MAX)
        return err_fail(err, ERR_TOO_BIG, field, "%s: the path is longer than %d bytes", field,
                        PATH_MAX - 1);
    while (rest.length && code == 0) {
        struct text part = text_cut(&rest, '/');
        if (text_is(part, ".."))
            code = err_fail(err, ERR_INVALID, field, "%s: \"..\" may not be in the path %.80s",
                            field, path);
        else if (part.length && !text_is(part, "."))
            buf_format(&out, "%s%.*s", out.length ? "/" : "", TEXT_ARG(part));
    }
    if (code == 0)
        *below = arena_copy(arena, buf_as_text(&out));
    return code;
}

int file_space_folder_check(const struct file_space *space, const char *field, const char *below,
                            struct err *err)
{
    cleanup_close int fd = open_below(space, below, O_PATH | O_DIRECTORY);
    return fd < 0 ? open_failed(field, below, err) : 0;
}

/* One folder, made in the folder `above`. It may have become something else by the time that it is
 * opened, hence no call by path after the first. */
static int folder_add(int above, const char *name)
{
    if (mkdirat(above, name, 0755) < 0)
        return errno == EEXIST ? 0 : -1;
    cleanup_close int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -1 : fchmod(fd, 0777);
}

int file_space_folder_make(const struct file_space *space, const char *field, const char *below,
                           struct err *err)
{
    size_t length = strlen(below), end = 0;
    char path[PATH_MAX];
    if (length >= sizeof path)
        return err_fail(err, ERR_TOO_BIG, field, "%s: the path is too long", field);
    memcpy(path, below, length + 1);
    while (end < length) {
        size_t begin = end ? end + 1 : 0;
        end = begin + strcspn(path + begin, "/");
        path[end] = '\0';
        cleanup_close int found = open_below(space, path, O_PATH | O_DIRECTORY);
        if (found < 0 && errno != ENOENT)
            return open_failed(field, path, err);
        if (found < 0) {
            path[begin ? begin - 1 : 0] = '\0';
            cleanup_close int above = open_below(space, path, O_PATH | O_DIRECTORY);
            if (begin)
                path[begin - 1] = '/';
            else
                path[0] = below[0];
            if (above < 0 || folder_add(above, path + begin) < 0)
                return open_failed(field, path, err);
        }
        path[end] = below[end];
    }
    return file_space_folder_check(space, field, below, err);
}

int file_space_read(const struct file_space *space, const char *field, const char *below,
                    size_t limit, struct buf *out, struct err *err)
{
    /* a job's tasks may have put a pipe or a device there: it is looked at before it is opened */
    cleanup_close int found = open_below(space, below, O_PATH);
    size_t begin = out->length;
    struct stat what;
    if (found < 0 || fstat(found, &what) < 0)
        return open_failed(field, below, err);
    if (S_ISLNK(what.st_mode)) {
        errno = ELOOP;
        return open_failed(field, below, err);
    }
    if (!S_ISREG(what.st_mode))
        return err_fail(err, ERR_INVALID, field, "%s: /%s is not a plain file", field, below);
    cleanup_close int fd = untrusted_reopen(found);
    if (fd < 0)
        return open_failed(field, below, err);
    char bytes[4096];
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, errno, "%s: cannot read /%s", field, below);
        buf_add(out, bytes, (size_t)got);
        if (out->length - begin > limit)
            return err_fail(err, ERR_TOO_BIG, field, "%s: /%s is longer than %zu bytes", field,
                            below, limit);
    }
    return 0;
}
