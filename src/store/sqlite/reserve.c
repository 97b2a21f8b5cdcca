/* reserve.c — see reserve.h. */
#include "store/sqlite/reserve.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { RESERVE_MIN = 256 << 10, RESERVE_MAX = 8 << 20, RESERVE_PART = 16 };

static int room_read(const char *path, uint64_t *all, uint64_t *left, struct err *err)
{
    *all = *left = 0;
    struct statvfs room;
    if (statvfs(path, &room) < 0)
        return err_errno(err, errno, "statvfs %s", path);
    *all = (uint64_t)room.f_blocks * room.f_frsize;
    *left = (uint64_t)room.f_bavail * room.f_frsize;
    return 0;
}

int reserve_open(struct reserve *reserve, const char *directory, struct err *err)
{
    assert(!reserve->path);
    uint64_t all, left;
    int code = room_read(directory, &all, &left, err);
    if (code < 0)
        return code;
    reserve->bytes = all / RESERVE_PART;
    if (reserve->bytes > RESERVE_MAX)
        reserve->bytes = RESERVE_MAX;
    if (reserve->bytes < RESERVE_MIN)
        reserve->bytes = RESERVE_MIN;
    reserve->path = mem_alloc(strlen(directory) + sizeof "/reserve");
    sprintf(reserve->path, "%s/reserve", directory);
    struct stat status;
    reserve->is_held =
        stat(reserve->path, &status) == 0 && (uint64_t)status.st_size >= reserve->bytes;
    if (!reserve->is_held)
        reserve_make(reserve);
    else if (left < reserve->bytes)
        reserve_give_up(reserve);
    return 0;
}

void reserve_close(struct reserve *reserve)
{
    mem_free(reserve->path);
    *reserve = (struct reserve){0};
}

bool reserve_give_up(struct reserve *reserve)
{
    if (!reserve->is_held)
        return false;
    assert(reserve->path);
    reserve->is_held = false;
    if (unlink(reserve->path) < 0) {
        log_error("store", "the reserve %s cannot be given up: %s", reserve->path, strerror(errno));
        return false;
    }
    log_warning("store",
                "the disk is full: %s gives up its %u KiB, only what ends or removes jobs "
                "is taken",
                reserve->path, (unsigned)(reserve->bytes >> 10));
    return true;
}

bool reserve_make(struct reserve *reserve)
{
    assert(reserve->path && reserve->bytes >= RESERVE_MIN);
    cleanup_close int fd = -1;
    cleanup_free char *directory = mem_copy(reserve->path);
    if (reserve->is_held)
        return true;
    *strrchr(directory, '/') = '\0';
    unlink(reserve->path); /* what is left of one that was not finished */
    uint64_t all, left;
    if (room_read(directory, &all, &left, NULL) < 0 || left < 2 * reserve->bytes)
        return false;
    fd = open(reserve->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    if (posix_fallocate(fd, 0, (off_t)reserve->bytes) != 0) {
        unlink(reserve->path);
        return false;
    }
    reserve->is_held = true;
    return true;
}
