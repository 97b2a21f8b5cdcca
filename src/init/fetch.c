/* fetch.c — tells what the kubelet has no more of a log: `skep-init fetch ROOT OUT ERR ALL
 * RUNTIME`.
 *
 * The four numbers say how much of each stream is known already, in the order of LAYOUT_STREAMS.
 * What the segments have behind that is written to the own output as pieces (log_line.h), until
 * nothing more is there or its turn is over. When the log has ended and all of it was told, who
 * asked answers with a byte, and the task's own skep-init is told that it may end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/init.h"
#include "init/layout.h"
#include "init/log_line.h"
#include "sys/clock.h"

enum { TURN_MS = 10 * 1000, SIGN_MS = 1000, FAILED = 126 };

struct stream_reader {
    const char *name;
    uint64_t at;    /* what is told next */
    int fd;         /* -1: none is open */
    uint64_t begin; /* of the open segment */
};

struct fetcher {
    const char *run;
    int log; /* the folder */
    struct stream_reader streams[LOG_PIECE_STREAMS];
    int64_t sign_ms; /* skep-init was told last that somebody fetches */
};

/* --- segments --- */

/* The newest segment that begins at `at` or before; without one the oldest behind it. False: there
 * is none, or none that begins behind `after`. */
static bool segment_choose(int log, const char *name, uint64_t at, const uint64_t *after,
                           uint64_t *begin)
{
    const size_t length = strlen(name);
    int copy = openat(log, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    bool is_found = false;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int64_t value;
        if (strncmp(entry->d_name, name, length) != 0 || entry->d_name[length] != '.' ||
            !text_to_int64(text_of(entry->d_name + length + 1), &value) || value < 0)
            continue;
        const uint64_t one = (uint64_t)value;
        if (after && one <= *after)
            continue;
        const bool is_better = !is_found                   ? true
                               : one <= at && *begin <= at ? one > *begin
                                                           : one < *begin;
        if (is_better)
            *begin = one;
        is_found = true;
    }
    if (dir)
        closedir(dir);
    return is_found;
}

static bool segment_open(const struct fetcher *fetcher, struct stream_reader *stream,
                         const uint64_t *after)
{
    char name[64];
    uint64_t begin = 0;
    if (!segment_choose(fetcher->log, stream->name, stream->at, after, &begin))
        return false;
    snprintf(name, sizeof name, LAYOUT_SEGMENT_FORMAT, stream->name, (unsigned long long)begin);
    int fd = openat(fetcher->log, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* rotated away this moment */
        return false;
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = fd;
    stream->begin = begin;
    if (stream->at < begin) /* what was between is no more */
        stream->at = begin;
    return true;
}

/* What comes next of a stream; 0: nothing is there now. */
static size_t stream_read(const struct fetcher *fetcher, struct stream_reader *stream,
                          char bytes[LOG_PIECE_MAX])
{
    if (stream->fd < 0 && !segment_open(fetcher, stream, NULL))
        return 0;
    for (;;) {
        const off_t from = (off_t)(stream->at - stream->begin);
        ssize_t got = pread(stream->fd, bytes, LOG_PIECE_MAX, from);
        if (got > 0)
            return (size_t)got;
        const uint64_t before = stream->begin;
        uint64_t next;
        if (!segment_choose(fetcher->log, stream->name, stream->at, &before, &next))
            return 0;
        /* there is a newer one, so this one is whole: it may have grown since it was read */
        got = pread(stream->fd, bytes, LOG_PIECE_MAX, from);
        if (got > 0)
            return (size_t)got;
        if (!segment_open(fetcher, stream, &before))
            return 0;
    }
}

/* --- who listens --- */

static bool bytes_write(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

static bool piece_send(unsigned stream, uint64_t offset, const char *bytes, size_t length)
{
    cleanup_buf struct buf piece = BUF_INIT;
    log_piece_write(stream, offset, length, &piece);
    buf_add(&piece, bytes, length);
    return bytes_write(piece.at, piece.length);
}

/* To the task's own skep-init. False: it waits for nobody's word. */
static bool sign_send(const struct fetcher *fetcher, char sign)
{
    char path[512];
    snprintf(path, sizeof path, "%.400s/%s", fetcher->run, LAYOUT_TAKEN_NAME);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool is_sent = write(fd, &sign, 1) == 1 || errno == EAGAIN;
    close(fd);
    return is_sent;
}

static bool has_ended(const struct fetcher *fetcher)
{
    char path[512];
    snprintf(path, sizeof path, "%.400s/%s", fetcher->run, LAYOUT_EXIT_NAME);
    return access(path, F_OK) == 0;
}

/* --- all of it --- */

/* How it ended; -1: nobody listens any more. */
static int pieces_send(struct fetcher *fetcher)
{
    static char bytes[LOG_PIECE_MAX];
    const int64_t until_ms = clock_monotonic_ms() + TURN_MS;
    for (;;) {
        const bool was_ended = has_ended(fetcher); /* before: every byte is in its file then */
        bool is_more = false;
        for (unsigned i = 0; i < LOG_PIECE_STREAMS; i++) {
            struct stream_reader *stream = &fetcher->streams[i];
            const size_t length = stream_read(fetcher, stream, bytes);
            if (length > 0 && !piece_send(i, stream->at, bytes, length))
                return -1;
            stream->at += length;
            is_more = is_more || length > 0;
        }
        const int64_t now_ms = clock_monotonic_ms();
        if (now_ms >= fetcher->sign_ms + SIGN_MS) {
            fetcher->sign_ms = now_ms;
            if (!sign_send(fetcher, LAYOUT_TAKEN_SOME))
                return LOG_FETCH_BROKEN;
        }
        if (!is_more)
            return was_ended ? LOG_FETCH_WHOLE : LOG_FETCH_PART;
        if (now_ms >= until_ms)
            return LOG_FETCH_PART;
    }
}

int fetch(struct init *init, int count, char **arguments)
{
    static const char *const names[] = LAYOUT_STREAMS;
    struct fetcher fetcher = {.sign_ms = -SIGN_MS};
    cleanup_buf struct buf head = BUF_INIT;
    if (count != 1 + LOG_PIECE_STREAMS) {
        dprintf(STDERR_FILENO, "skep-init: fetch needs a folder and what is known of %d streams\n",
                LOG_PIECE_STREAMS);
        return FAILED;
    }
    for (size_t i = 0; i < LOG_PIECE_STREAMS; i++) {
        int64_t at;
        if (!text_to_int64(text_of(arguments[1 + i]), &at) || at < 0) {
            dprintf(STDERR_FILENO, "skep-init: fetch: %s is no offset\n", arguments[1 + i]);
            return FAILED;
        }
        fetcher.streams[i] = (struct stream_reader){names[i], (uint64_t)at, -1, 0};
    }
    /* it ends in its turn: the task's end does not cut short what is told of it */
    signal(SIGTERM, SIG_IGN);
    fetcher.run = arena_format(&init->arena, "%s/run", arguments[0]);
    const char *log = arena_format(&init->arena, "%s/log", arguments[0]);
    fetcher.log = open(log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fetcher.log < 0) {
        dprintf(STDERR_FILENO, "skep-init: fetch: %s: %s\n", log, strerror(errno));
        return FAILED;
    }
    const int how = pieces_send(&fetcher);
    if (how < 0)
        return FAILED;
    log_piece_write_end((enum log_fetch_end)how, &head);
    char answer;
    if (!bytes_write(head.at, head.length))
        return FAILED;
    if (how == LOG_FETCH_WHOLE && read(STDIN_FILENO, &answer, 1) == 1)
        sign_send(&fetcher, LAYOUT_TAKEN_ALL);
    return 0;
}
