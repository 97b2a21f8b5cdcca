#include "init/log_times.h"

#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"

#define NEW_NAME LOG_TIMES_NAME ".new"

static off_t place_of(size_t mark)
{
    return (off_t)(mark * sizeof(struct log_mark));
}

void log_times_open(struct log_times *times, int directory)
{
    struct log_mark last;
    *times = (struct log_times){.step_ms = LOG_TIMES_STEP_MS};
    int fd = openat(directory, LOG_TIMES_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    const off_t size = lseek(fd, 0, SEEK_END);
    const size_t count = size > 0 ? (size_t)size / sizeof last : 0;
    if (count && pread(fd, &last, sizeof last, place_of(count - 1)) == (ssize_t)sizeof last) {
        times->count = count < LOG_TIMES_MAX ? count : LOG_TIMES_MAX;
        times->last_ms = last.at_ms;
        times->is_missed = true; /* by the writer before, as far as anybody knows */
    }
    close(fd);
}

/* Every second mark, in a file that takes the place of the old one. */
static void marks_thin(struct log_times *times, int directory)
{
    struct log_mark *marks = mem_alloc(LOG_TIMES_MAX * sizeof *marks);
    const int from = openat(directory, LOG_TIMES_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t got = from >= 0 ? pread(from, marks, LOG_TIMES_MAX * sizeof *marks, 0) : -1;
    size_t kept = 0;
    const size_t count = got > 0 ? (size_t)got / sizeof *marks : 0;
    for (size_t i = 0; i < count; i += 2) {
        const int64_t until_ms = marks[i + 1 < count ? i + 1 : i].until_ms;
        marks[kept] = marks[i];
        marks[kept++].until_ms = until_ms;
    }
    const int to =
        openat(directory, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    const ssize_t length = place_of(kept);
    if (to >= 0 && write(to, marks, (size_t)length) == length &&
        renameat(directory, NEW_NAME, directory, LOG_TIMES_NAME) == 0) {
        times->count = kept;
        times->step_ms *= 2;
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    mem_free(marks);
}

/* What the last mark counts for goes on until now. */
static bool mark_prolong(const struct log_times *times, int fd, int64_t now_ms)
{
    const size_t until = offsetof(struct log_mark, until_ms);
    return !times->count || pwrite(fd, &now_ms, sizeof now_ms,
                                   place_of(times->count - 1) + (off_t)until) == sizeof now_ms;
}

void log_times_note(struct log_times *times, int directory, int64_t now_ms,
                    const uint64_t ends[LOG_TIMES_STREAMS])
{
    struct log_mark mark = {.at_ms = now_ms};
    bool is_written = false;
    assert(times->step_ms > 0 && times->count <= LOG_TIMES_MAX);
    if (now_ms < times->last_ms + times->step_ms)
        return;
    times->last_ms = now_ms; /* whatever becomes of it: not once more for each line */
    if (times->count == LOG_TIMES_MAX)
        marks_thin(times, directory);
    mark.until_ms = now_ms + times->step_ms;
    for (size_t i = 0; i < LOG_TIMES_STREAMS; i++)
        mark.ends[i] = ends[i];
    const int fd =
        times->count < LOG_TIMES_MAX
            ? openat(directory, LOG_TIMES_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)
            : -1;
    if (fd >= 0) {
        is_written = (!times->is_missed || mark_prolong(times, fd, now_ms)) &&
                     pwrite(fd, &mark, sizeof mark, place_of(times->count)) == (ssize_t)sizeof mark;
        close(fd);
    }
    times->count += is_written;
    times->is_missed = !is_written;
}

uint64_t log_times_find(const struct log_mark *marks, size_t count, size_t stream, int64_t at_ms)
{
    size_t next = 0;
    assert(stream < LOG_TIMES_STREAMS);
    while (next < count && marks[next].at_ms <= at_ms)
        next++;
    if (next == 0)
        return 0;
    if (at_ms < marks[next - 1].until_ms)
        return marks[next - 1].ends[stream];
    return next < count ? marks[next].ends[stream] : UINT64_MAX;
}
