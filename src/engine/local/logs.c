#include "engine/local/logs.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/layout.h"
#include "init/log_times.h"
#include "sys/cleanup.h"
#include "sys/untrusted.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum {
    SEGMENTS_MAX = 64, /* skep-init keeps two; a user's own files of such names are skipped */
    SEND_MAX = 64 << 20,
};

struct segment {
    uint64_t begin, size;
};

struct segments {
    struct segment at[SEGMENTS_MAX];
    size_t count;
};

static const char *const stream_names[] = LAYOUT_STREAMS;

/* "all.000000000000017" → 17 */
static bool segment_of(const char *name, const char *stream, uint64_t *begin)
{
    size_t length = strlen(stream);
    if (strncmp(name, stream, length) != 0 || name[length] != '.')
        return false;
    char expected[64], *end;
    unsigned long long value = strtoull(name + length + 1, &end, 10);
    snprintf(expected, sizeof expected, LAYOUT_SEGMENT_FORMAT, stream, value);
    *begin = value;
    return strcmp(expected, name) == 0;
}

static int segment_order(const void *a, const void *b)
{
    const struct segment *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

static int folder_open(const char *directory)
{
    return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void segments_list(int folder, const char *stream, struct segments *segments)
{
    segments->count = 0;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct segment segment;
        struct stat stat;
        if (!segment_of(entry->d_name, stream, &segment.begin) ||
            fstatat(folder, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(stat.st_mode) || segments->count == SEGMENTS_MAX)
            continue;
        segment.size = (uint64_t)stat.st_size;
        segments->at[segments->count++] = segment;
    }
    qsort(segments->at, segments->count, sizeof *segments->at, segment_order);
}

static ssize_t segment_read(int folder, const char *stream, const struct segment *segment,
                            uint64_t offset, char *bytes, size_t size)
{
    char name[64];
    struct stat stat;
    snprintf(name, sizeof name, LAYOUT_SEGMENT_FORMAT, stream, (unsigned long long)segment->begin);
    cleanup_close int fd = untrusted_open(folder, name, UNTRUSTED_NO_LINKS, &stat, NULL);
    if (fd < 0)
        return 0; /* rotated away this moment: the next read begins later */
    uint64_t left = segment->begin + segment->size - offset;
    return pread(fd, bytes, left < size ? (size_t)left : size, (off_t)(offset - segment->begin));
}

ssize_t logs_read(const char *directory, enum log_stream stream, uint64_t *offset, char *bytes,
                  size_t size, struct log_part *part, struct err *err)
{
    const char *name = stream_names[stream];
    *part = (struct log_part){0};
    cleanup_close int folder = folder_open(directory);
    if (folder < 0) {
        if (errno == ENOENT)
            return err_fail(err, ERR_NOT_FOUND, "", "there is no log of this attempt");
        return err_errno(err, errno, "open %s", directory);
    }
    struct segments segments;
    segments_list(folder, name, &segments);
    if (segments.count == 0) {
        *offset = 0;
        return 0;
    }
    const struct segment *last = &segments.at[segments.count - 1];
    part->begin = segments.at[0].begin;
    part->end = last->begin + last->size;
    if (*offset < part->begin)
        *offset = part->begin;
    for (size_t i = 0; i < segments.count; i++) {
        const struct segment *segment = &segments.at[i];
        if (*offset < segment->begin) /* a hole: what was there is lost */
            *offset = segment->begin;
        if (*offset >= segment->begin + segment->size)
            continue;
        ssize_t got = segment_read(folder, name, segment, *offset, bytes, size);
        if (got < 0)
            return err_errno(err, errno, "read the log");
        if (got > 0)
            return got;
    }
    return 0;
}

/* The marks of times that are there; how many. */
static size_t marks_read(int folder, struct log_mark marks[LOG_TIMES_MAX])
{
    struct stat stat;
    cleanup_close int fd = untrusted_open(folder, LOG_TIMES_NAME, UNTRUSTED_NO_LINKS, &stat, NULL);
    const ssize_t got = fd >= 0 ? pread(fd, marks, LOG_TIMES_MAX * sizeof *marks, 0) : 0;
    return got > 0 ? (size_t)got / sizeof *marks : 0;
}

int logs_time(const char *directory, enum log_stream stream, int64_t at_ms, uint64_t *offset,
              struct err *err)
{
    cleanup_close int folder = folder_open(directory);
    if (folder < 0 && errno == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no log of this attempt");
    if (folder < 0)
        return err_errno(err, errno, "open %s", directory);
    struct log_mark *marks = mem_alloc(LOG_TIMES_MAX * sizeof *marks);
    const size_t count = marks_read(folder, marks);
    *offset = log_times_find(marks, count, stream, at_ms);
    mem_free(marks);
    return 0;
}

/* What stands in `to` is of an earlier try. */
static int file_copy(int from, int to, const char *name, uint64_t size, struct err *err)
{
    struct stat stat;
    cleanup_close int in = untrusted_open(from, name, UNTRUSTED_NO_LINKS, &stat, err);
    if (in < 0)
        return in;
    cleanup_close int out =
        openat(to, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (out < 0)
        return err_errno(err, errno, "make %s", name);
    for (uint64_t left = size; left > 0;) {
        ssize_t sent = sendfile(out, in, NULL, left < SEND_MAX ? (size_t)left : SEND_MAX);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return err_errno(err, errno, "copy %s", name);
        if (sent == 0) /* it was cut meanwhile */
            break;
        left -= (uint64_t)sent;
    }
    return 0;
}

static int segment_copy(int from, int to, const char *stream, const struct segment *segment,
                        struct err *err)
{
    char name[64];
    snprintf(name, sizeof name, LAYOUT_SEGMENT_FORMAT, stream, (unsigned long long)segment->begin);
    return file_copy(from, to, name, segment->size, err);
}

int logs_copy(const char *from, const char *to, uint64_t limit, struct err *err)
{
    cleanup_close int source = folder_open(from), target = folder_open(to);
    if (source < 0 || target < 0)
        return err_errno(err, errno, "open %s", source < 0 ? from : to);
    int code = 0;
    for (size_t stream = 0; stream < COUNT_OF(stream_names) && code == 0; stream++) {
        struct segments segments;
        segments_list(source, stream_names[stream], &segments);
        for (size_t i = segments.count; i > 0 && code == 0; i--) {
            if (segments.at[i - 1].size > limit)
                break;
            limit -= segments.at[i - 1].size;
            code = segment_copy(source, target, stream_names[stream], &segments.at[i - 1], err);
        }
    }
    struct stat stat;
    if (code == 0 && fstatat(source, LOG_TIMES_NAME, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(stat.st_mode))
        code =
            file_copy(source, target, LOG_TIMES_NAME, LOG_TIMES_MAX * sizeof(struct log_mark), err);
    return code;
}

void logs_tail(const char *directory, enum log_stream stream, size_t limit, struct buf *out)
{
    struct log_part part;
    char bytes[65536];
    uint64_t offset = UINT64_MAX;
    if (logs_read(directory, stream, &offset, bytes, 0, &part, NULL) < 0)
        return;
    uint64_t begin = part.end - part.begin > limit ? part.end - limit : part.begin;
    bool is_cut = begin > part.begin;
    for (offset = begin; offset < part.end;) {
        struct log_part now;
        ssize_t got = logs_read(directory, stream, &offset, bytes, sizeof bytes, &now, NULL);
        if (got <= 0)
            break;
        const char *from = bytes;
        if (is_cut) {
            const char *line = memchr(bytes, '\n', (size_t)got);
            from = line ? line + 1 : bytes;
            is_cut = false;
        }
        buf_add(out, from, (size_t)(bytes + got - from));
        offset += (uint64_t)got;
    }
}
