/* log_file.c — see log_file.h. */
#include "sys/log_file.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    BYTES_MIN = 16 << 10,
    BYTES_MAX = 8 << 20,
    PART = 512,         /* of the file system */
    AGAIN_BYTES = 4096, /* written between two tries to take the space of the next file */
};

#define NOW  "skepd.log"
#define OLD  "skepd.log.1"
#define NEXT "skepd.log.next"

struct log_keeper {
    pthread_mutex_t lock;
    int directory, fd;
    uint64_t bytes; /* of a file */
    uint64_t used;  /* of the one that is written to */
    uint64_t tried; /* `used` at the last try to make the next */
    bool has_next;
};

uint64_t log_file_bytes(uint64_t file_system_bytes)
{
    const uint64_t bytes = file_system_bytes / PART;
    return bytes < BYTES_MIN ? BYTES_MIN : bytes > BYTES_MAX ? BYTES_MAX : bytes;
}

/* A file with its blocks, empty to who reads it. False: there is no room. */
static bool space_take(int fd, uint64_t bytes)
{
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0;
}

static bool next_make(const struct log_keeper *file)
{
    cleanup_close int fd =
        openat(file->directory, NEXT, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && space_take(fd, file->bytes))
        return true;
    unlinkat(file->directory, NEXT, 0);
    return false;
}

static int now_open(struct log_keeper *file)
{
    struct stat status;
    file->fd =
        openat(file->directory, NOW, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->fd < 0 || fstat(file->fd, &status) < 0)
        return -errno;
    file->used = (uint64_t)status.st_size;
    file->tried = file->used;
    if (file->used < file->bytes)
        space_take(file->fd, file->bytes); /* a file of an earlier server has it already */
    return 0;
}

int log_file_open(const char *directory, struct log_keeper **out, struct err *err)
{
    struct statvfs room = {0};
    int code = dir_make(directory, 0700, err);
    if (code < 0)
        return code;
    struct log_keeper *file = mem_zero(1, sizeof *file);
    pthread_mutex_init(&file->lock, NULL);
    file->fd = -1;
    file->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->directory < 0 || fstatvfs(file->directory, &room) < 0)
        code = err_errno(err, errno, "open %s", directory);
    if (code == 0) {
        file->bytes = log_file_bytes((uint64_t)room.f_blocks * room.f_frsize);
        const int failure = now_open(file);
        if (failure < 0)
            code = err_errno(err, -failure, "open %s/" NOW, directory);
    }
    if (code < 0) {
        log_file_close(file);
        return code;
    }
    file->has_next = next_make(file);
    *out = file;
    return 0;
}

void log_file_close(struct log_keeper *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->directory >= 0)
        close(file->directory);
    pthread_mutex_destroy(&file->lock);
    mem_free(file);
}

/* With the lock. Without a next file that has its space a new one is made, which the disk may have
 * no room for: what was written before stays in any case. */
static void file_turn(struct log_keeper *file)
{
    if (renameat(file->directory, NOW, file->directory, OLD) < 0)
        return; /* it grows */
    if (file->has_next)
        renameat(file->directory, NEXT, file->directory, NOW);
    close(file->fd);
    now_open(file);                   /* else tried again with the next line */
    file->has_next = next_make(file); /* the oldest has just given its space back */
}

void log_file_write(struct log_keeper *file, struct text line)
{
    assert(line.length > 0);
    pthread_mutex_lock(&file->lock);
    if (file->fd < 0)
        now_open(file);
    if (file->used + line.length > file->bytes)
        file_turn(file);
    const ssize_t written = file->fd < 0 ? -1 : write(file->fd, line.at, line.length);
    if (written > 0)
        file->used += (uint64_t)written;
    if (!file->has_next && file->used - file->tried >= AGAIN_BYTES) {
        file->tried = file->used;
        file->has_next = next_make(file);
    }
    pthread_mutex_unlock(&file->lock);
}
