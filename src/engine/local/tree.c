/* Removal of what tasks leave, see runtime.h. Whoever holds a descriptor of a folder in the tree
 * can still move things about in it: so every step is relative to an open folder, and no path is
 * walked twice. */
#include "base/err.h"
#include "engine/local/runtime.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    LEVELS_AT_ONCE = 8, /* descriptors held */
    AHEAD_S = 60,       /* a time that much later was not written by the clock of now */
};

struct tree_removal {
    int top;
    dev_t device;
    uint64_t lifted;
    size_t removed; /* in this pass */
    int failure;    /* errno of the last thing that stayed, or 0 */
};

static bool entry_stays(struct tree_removal *removal)
{
    removal->failure = errno;
    return false;
}

/* A tree may be deeper than any path is long: what is too deep is moved up, for the next pass. */
static bool entry_lift(struct tree_removal *removal, int folder, const char *name)
{
    char above[40];
    do
        snprintf(above, sizeof above, ".skep-removed-%llu", (unsigned long long)removal->lifted++);
    while (renameat(folder, name, removal->top, above) < 0 &&
           (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
    struct stat stat;
    if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = ENOTEMPTY;
        return entry_stays(removal);
    }
    return true;
}

static bool entry_remove(struct tree_removal *removal, int folder, const char *name,
                         unsigned levels);

/* Takes `fd`. False: something stayed. */
static bool folder_clear(struct tree_removal *removal, int fd, unsigned levels)
{
    struct stat stat;
    cleanup_dir DIR *dir = fdopendir(fd);
    if (!dir) {
        entry_stays(removal);
        close(fd);
        return false;
    }
    if (fstat(fd, &stat) < 0 || stat.st_dev != removal->device) {
        errno = EXDEV;
        return entry_stays(removal);
    }
    bool is_empty = true;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (entry->d_type == DT_REG && unlinkat(fd, name, 0) == 0)
            removal->removed++;
        else
            is_empty &= entry_remove(removal, fd, name, levels);
    }
    return is_empty;
}

/* Mostly a few levels of few entries: a call or two for each. False: something stayed. */
static bool entry_remove(struct tree_removal *removal, int folder, const char *name,
                         unsigned levels)
{
    int code = unlinkat(folder, name, AT_REMOVEDIR);
    if (code < 0 && errno == ENOTDIR)
        code = unlinkat(folder, name, 0);
    if (code == 0 || errno == ENOENT) {
        removal->removed++;
        return true;
    }
    if (errno != ENOTEMPTY && errno != EEXIST)
        return entry_stays(removal);
    if (levels == 0)
        return entry_lift(removal, folder, name);
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return entry_stays(removal);
    if (!folder_clear(removal, fd, levels - 1))
        return false;
    if (unlinkat(folder, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return entry_stays(removal);
    removal->removed++;
    return true;
}

int tree_remove(const char *path, struct err *err)
{
    struct stat stat;
    if (rmdir(path) == 0 || errno == ENOENT || (errno == ENOTDIR && unlink(path) == 0))
        return 0;
    cleanup_close int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0 || fstat(top, &stat) < 0)
        return errno == ENOENT ? 0 : err_errno(err, errno, "remove %s", path);
    struct tree_removal removal = {.top = top, .device = stat.st_dev};
    do {
        removal.removed = 0;
        removal.failure = 0;
        int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return err_errno(err, errno, "remove %s", path);
        folder_clear(&removal, fd, LEVELS_AT_ONCE);
        if (rmdir(path) == 0 || errno == ENOENT)
            return 0;
    } while (removal.removed > 0); /* what was lifted, or came meanwhile */
    return err_errno(err, removal.failure ? removal.failure : errno, "remove %s", path);
}

int64_t tree_latest_s(int64_t trusted_s)
{
    const int64_t wall_s = clock_unix_ms() / 1000;
    return wall_s > trusted_s ? wall_s : trusted_s;
}

int64_t tree_time_settle(int folder, const char *name, int64_t used_s, int64_t latest_s)
{
    if (used_s <= latest_s + AHEAD_S)
        return used_s;
    const struct timespec times[2] = {{.tv_sec = latest_s}, {.tv_sec = latest_s}};
    /* where it cannot be written it counts so all the same, and is looked at again */
    const int code =
        name ? utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) : futimens(folder, times);
    if (code < 0)
        log_debug("engine", "the time of %s cannot be set: errno %d", name ? name : "a folder",
                  errno);
    return latest_s;
}
