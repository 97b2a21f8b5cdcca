#include "engine/kubernetes/log_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/log_keep.h"
#include "engine/local/logs.h"
#include "engine/local/runtime.h"
#include "init/layout.h"
#include "init/log_line.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { SEGMENTS_MAX = 32 };

static const char *const stream_names[] = LAYOUT_STREAMS;

void log_store_path(const char *directory, struct attempt_id attempt, char path[LOG_STORE_PATH_MAX])
{
    snprintf(path, LOG_STORE_PATH_MAX, "%.350s/%" PRIu64, directory, attempt.v);
}

void log_store_task_release(struct log_store_task *task)
{
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++)
        buf_release(&task->streams[i].bytes);
    buf_release(&task->rest);
}

void log_store_task_free(struct log_store_task *task)
{
    if (task)
        log_store_task_release(task);
    mem_free(task);
}

int log_store_begin(const char *directory, struct attempt_id attempt, const char *job,
                    struct err *err)
{
    char path[LOG_STORE_PATH_MAX];
    log_store_path(directory, attempt, path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(err, errno, "make %s", path);
    log_owner_put(path, job);
    return 0;
}

/* --- one stream --- */

/* "all.000000000000017" → 17 */
static bool begin_read(const char *name, const char *stream, uint64_t *begin)
{
    const size_t length = strlen(stream);
    int64_t value;
    if (strncmp(name, stream, length) != 0 || name[length] != '.' ||
        !text_to_int64(text_of(name + length + 1), &value) || value < 0)
        return false;
    *begin = (uint64_t)value;
    return true;
}

/* Where the segment begins that ends at `end`: what comes is appended to it. */
static uint64_t newest_begin(const char *path, const char *stream, uint64_t end)
{
    uint64_t newest = 0, begin;
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (begin_read(entry->d_name, stream, &begin) && begin > newest)
            newest = begin;
    return newest < end ? newest : end;
}

/* What another writer wrote: an earlier skepd, or a fetch. */
static void ends_find(struct log_store_task *task, const char *path)
{
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++) {
        struct log_part part = {0};
        uint64_t offset = UINT64_MAX;
        if (logs_read(path, (enum log_stream)i, &offset, NULL, 0, &part, NULL) < 0)
            part.end = 0;
        task->streams[i].end = part.end;
        task->streams[i].begin = newest_begin(path, stream_names[i], part.end);
    }
    cleanup_close int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log_times_open(&task->times, folder);
    task->is_known = true;
}

/* Before what has come is appended. */
static void time_note(struct log_store_task *task, const char *path)
{
    uint64_t ends[LOG_TIMES_STREAMS];
    bool is_growing = false;
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++) {
        ends[i] = task->streams[i].end;
        is_growing |= task->streams[i].bytes.length > 0;
    }
    if (!is_growing)
        return;
    cleanup_close int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log_times_note(&task->times, folder, clock_unix_ms(), ends);
}

static int begin_order(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* A segment ends where the next begins: those that end before `first` are removed, and, however
 * they came about, all but the newest SEGMENTS_MAX. */
static void segments_prune(const char *path, const char *stream, uint64_t first)
{
    struct {
        uint64_t *items;
        size_t count, room;
    } begins = {0};
    char name[64];
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        uint64_t begin;
        if (begin_read(entry->d_name, stream, &begin))
            *ARRAY_ADD(&begins) = begin;
    }
    if (begins.count > 1)
        qsort(begins.items, begins.count, sizeof *begins.items, begin_order);
    for (size_t i = 0; i + 1 < begins.count; i++) {
        if (begins.items[i + 1] > first && i + SEGMENTS_MAX >= begins.count)
            continue;
        snprintf(name, sizeof name, LAYOUT_SEGMENT_FORMAT, stream,
                 (unsigned long long)begins.items[i]);
        unlinkat(dirfd(dir), name, 0);
    }
    ARRAY_FREE(&begins);
}

static int stream_append(struct log_store_task *task, size_t stream, const char *path,
                         uint64_t segment_bytes, struct err *err)
{
    struct buf *bytes = &task->streams[stream].bytes;
    uint64_t *begin = &task->streams[stream].begin, *end = &task->streams[stream].end;
    char name[LOG_STORE_PATH_MAX + 40];
    if (bytes->length == 0)
        return 0;
    if (*end - *begin >= segment_bytes)
        *begin = *end;
    const bool is_new = *begin == *end;
    const int length = snprintf(name, sizeof name, "%s/", path);
    snprintf(name + length, sizeof name - (size_t)length, LAYOUT_SEGMENT_FORMAT,
             stream_names[stream], (unsigned long long)*begin);
    cleanup_close int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "open %s", name);
    for (struct text left = buf_as_text(bytes); left.length > 0;) {
        ssize_t written = write(fd, left.at, left.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return err_errno(err, errno, "write %s", name);
        left = (struct text){left.at + written, left.length - (size_t)written};
        *end += (uint64_t)written;
    }
    buf_release(bytes); /* thousands of tasks are quiet most of the time */
    if (is_new)
        segments_prune(path, stream_names[stream],
                       *end > 2 * segment_bytes ? *end - 2 * segment_bytes : 0);
    return 0;
}

/* --- lines --- */

/* Bytes of a stream that begin at `offset`. */
static int stream_put(struct log_store_task *task, size_t stream, uint64_t offset,
                      struct text bytes, const char *path, uint64_t segment_bytes, struct err *err)
{
    int code = 0;
    const uint64_t known = task->streams[stream].end + task->streams[stream].bytes.length;
    if (offset + bytes.length <= known)
        return 0;
    if (offset > known && task->streams[stream].holes++ >= LOG_STORE_HOLES_MAX)
        return 0;
    if (offset > known) { /* a hole: what is behind it begins a segment */
        code = stream_append(task, stream, path, segment_bytes, err);
        task->streams[stream].begin = task->streams[stream].end = offset;
    } else {
        const size_t passed = (size_t)(known - offset);
        bytes = (struct text){bytes.at + passed, bytes.length - passed};
    }
    buf_text(&task->streams[stream].bytes, bytes);
    return code;
}

/* Lines come again: the figures of before are passed over. */
static void use_take(struct log_store_task *task, const struct log_line *line)
{
    struct log_line_use use;
    const uint64_t at_ms = line->offset + 1; /* the first is told at 0 */
    if (at_ms <= task->use_at_ms || !log_line_use_read(line->text, &use))
        return;
    task->use_at_ms = at_ms;
    task->use = use;
}

/* Are bytes missing before these? */
static bool is_behind(const struct log_store_task *task, size_t stream, uint64_t offset)
{
    return offset > task->streams[stream].end + task->streams[stream].bytes.length;
}

/* So long are the streams, and no more of that comes. */
static void told_take(struct log_store_task *task, const struct log_line *line)
{
    uint64_t err_offset, runtime_offset;
    if (log_line_told_read(line->text, &err_offset, &runtime_offset) && !task->takes_holes)
        task->is_torn = is_behind(task, LOG_STDOUT, line->offset) ||
                        is_behind(task, LOG_ALL, line->all_offset) ||
                        is_behind(task, LOG_STDERR, err_offset) ||
                        is_behind(task, LOG_RUNTIME, runtime_offset);
}

static int line_put(struct log_store_task *task, struct text line, const char *path,
                    uint64_t segment_bytes, struct err *err)
{
    struct log_line read;
    char bytes[LOG_LINE_TEXT_MAX + 1];
    if (!log_line_read(line, &read))
        return 0; /* what a process of the task wrote there itself */
    if (read.kind == LOG_LINE_END) {
        task->is_whole = true;
        task->is_awaited = log_line_waits(&read);
        return 0;
    }
    if (read.kind == LOG_LINE_USE) {
        use_take(task, &read);
        return 0;
    }
    if (read.kind == LOG_LINE_TOLD) {
        told_take(task, &read);
        return 0;
    }
    memcpy(bytes, read.text.at, read.text.length);
    bytes[read.text.length] = '\n';
    const struct text whole = {bytes, read.text.length + read.has_newline};
    static const enum log_stream streams[] = {LOG_STDOUT, LOG_STDERR, LOG_RUNTIME};
    task->is_torn = !task->takes_holes &&
                    (is_behind(task, streams[read.kind], read.offset) ||
                     (read.kind != LOG_LINE_RUNTIME && is_behind(task, LOG_ALL, read.all_offset)));
    if (task->is_torn)
        return 0;
    int code = stream_put(task, streams[read.kind], read.offset, whole, path, segment_bytes, err);
    if (read.kind == LOG_LINE_RUNTIME)
        return code;
    int second = stream_put(task, LOG_ALL, read.all_offset, whole, path, segment_bytes, err);
    return code < 0 ? code : second;
}

/* What has been gathered goes to the disk; what cannot be written is lost. */
static int all_append(struct log_store_task *task, const char *path, uint64_t segment_bytes,
                      struct err *err)
{
    int code = 0;
    time_note(task, path);
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++) {
        const int one = stream_append(task, i, path, segment_bytes, err);
        code = code < 0 ? code : one;
        if (one < 0)
            buf_clear(&task->streams[i].bytes);
    }
    return code;
}

int log_store_take(struct log_store_task *task, const char *path, uint64_t segment_bytes,
                   struct text bytes, struct err *err)
{
    enum { REST_MAX = LOG_LINE_TEXT_MAX + LOG_LINE_HEAD_MAX };
    int code = 0, one;
    if (!task->is_known)
        ends_find(task, path);
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++)
        task->streams[i].holes = 0;
    buf_text(&task->rest, bytes);
    struct text left = buf_as_text(&task->rest);
    while (!task->is_torn && left.length > 0 && memchr(left.at, '\n', left.length)) {
        one = line_put(task, text_cut(&left, '\n'), path, segment_bytes, err);
        code = code < 0 ? code : one;
    }
    struct buf rest = BUF_INIT;
    if (left.length <= REST_MAX) /* longer ones are not skep-init's */
        buf_text(&rest, left);
    buf_release(&task->rest);
    task->rest = rest;
    one = all_append(task, path, segment_bytes, err);
    return code < 0 ? code : one;
}

int log_store_put(struct log_store_task *task, const char *path, uint64_t segment_bytes,
                  enum log_stream stream, uint64_t offset, struct text bytes, struct err *err)
{
    if (!task->is_known)
        ends_find(task, path);
    task->streams[stream].holes = 0;
    const int code = stream_put(task, stream, offset, bytes, path, segment_bytes, err);
    const int second = all_append(task, path, segment_bytes, err);
    return code < 0 ? code : second;
}

void log_store_ends(struct log_store_task *task, const char *path, uint64_t ends[LOG_STORE_STREAMS])
{
    if (!task->is_known)
        ends_find(task, path);
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++)
        ends[i] = task->streams[i].end;
}

void log_store_again(struct log_store_task *task, bool takes_holes)
{
    buf_release(&task->rest);
    task->is_torn = task->is_whole = task->is_awaited = false;
    task->takes_holes = takes_holes;
}

void log_store_changed(struct log_store_task *task)
{
    task->is_known = false;
}

void log_store_wake(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

/* --- retention --- */

void log_store_collect(const char *directory, const struct log_retention *retention,
                       bool (*is_live)(void *context, struct attempt_id attempt), void *context)
{
    struct {
        struct log_kept *items;
        size_t count, room;
    } logs = {0};
    struct statvfs disk = {0};
    cleanup_dir DIR *dir = opendir(directory);
    if (!dir || statvfs(directory, &disk) < 0) {
        log_warning("engine", "%s: errno %d", directory, errno);
        return;
    }
    struct log_limits limits =
        log_limits_of(retention->room_bytes, disk.f_files, retention->keep_s);
    limits.latest_s = tree_latest_s(retention->now_s);
    char path[LOG_STORE_PATH_MAX];
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct log_kept log = {0};
        int64_t attempt;
        if (!text_to_int64(text_of(entry->d_name), &attempt) || attempt <= 0)
            continue;
        snprintf(log.id, sizeof log.id, "%" PRId64, attempt);
        log_store_path(directory, (struct attempt_id){(uint64_t)attempt}, path);
        log_measure(path, &limits, &log);
        log_owner_read(path, log.owner);
        log.is_live = is_live(context, (struct attempt_id){(uint64_t)attempt});
        *ARRAY_ADD(&logs) = log;
    }
    log_keep_choose(logs.items, logs.count, &limits, retention->now_s);
    for (size_t i = 0; i < logs.count; i++) {
        struct err err = {0};
        snprintf(path, sizeof path, "%.350s/%s", directory, logs.items[i].id);
        if (logs.items[i].is_chosen && tree_remove(path, &err) < 0)
            log_warning("engine", "%s", err.text);
    }
    ARRAY_FREE(&logs);
}
