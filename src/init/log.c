#include "init/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "init/layout.h"

enum { NAME_BYTES = 64 };

static void segment_name(const struct log_writer *log, uint64_t begin, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, LAYOUT_SEGMENT_FORMAT, log->name, (unsigned long long)begin);
}

static int segment_open(const struct log_writer *log, uint64_t begin)
{
    char name[NAME_BYTES];
    segment_name(log, begin, name);
    return openat(log->directory, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

int log_open(struct log_writer *log, int directory, const char *name, uint64_t segment_bytes,
             struct err *err)
{
    *log = (struct log_writer){.name = name, .directory = directory, .last = '\n'};
    log->segment_bytes = segment_bytes ? segment_bytes : LAYOUT_SEGMENT_BYTES;
    log->fd = segment_open(log, 0);
    if (log->fd < 0)
        return err_errno(err, errno, "cannot create the log segment of %s", name);
    return 0;
}

/* Open the next segment, then let the oldest go, so that a reader always finds the newest. */
static void rotate(struct log_writer *log)
{
    int fd = segment_open(log, log->offset);
    if (fd < 0) /* stay in the old one: better too long than lost */
        return;
    close(log->fd);
    log->fd = fd;
    if (log->begin > 0) { /* then there is one before it */
        char name[NAME_BYTES];
        segment_name(log, log->previous, name);
        unlinkat(log->directory, name, 0);
    }
    log->previous = log->begin;
    log->begin = log->offset;
}

static void lose(struct log_writer *log, size_t length, int number)
{
    log->lost += length;
    log->lost_errno = number;
}

void log_write(struct log_writer *log, const char *bytes, size_t length)
{
    assert(log->fd >= 0);
    if (length > 0)
        log->last = bytes[length - 1];
    while (length > 0) {
        if (log->offset - log->begin >= log->segment_bytes)
            rotate(log);
        uint64_t used = log->offset - log->begin;
        uint64_t room = used < log->segment_bytes ? log->segment_bytes - used : length;
        size_t part = length < room ? length : (size_t)room;
        ssize_t written = write(log->fd, bytes, part);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            lose(log, length, errno);
            return;
        }
        log->offset += (uint64_t)written;
        bytes += written;
        length -= (size_t)written;
    }
}
