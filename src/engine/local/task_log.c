/* The log of a task: while it runs perhaps on a disk of its own, afterwards beside all others. */
#include "base/err.h"
#include "engine/local/log_watch.h"
#include "engine/local/logs.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int task_log_find(struct local_engine *local, struct attempt_id attempt, bool *is_ended,
                  char path[RUNTIME_PATH_MAX])
{
    char id[24];
    int held = -1;
    snprintf(id, sizeof id, "%" PRIu64, attempt.v);
    task_log_path(local, id, path);
    pthread_mutex_lock(&local->lock);
    const struct task *task = task_find(local, attempt);
    *is_ended = !task || task->phase == TASK_ENDED || task->is_log_final;
    if (!*is_ended && task->disk_fd >= 0)
        held = fcntl(task->disk_fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&local->lock);
    if (held >= 0)
        snprintf(path, RUNTIME_PATH_MAX, "/proc/self/fd/%d/log", held);
    return held;
}

ssize_t local_log_read(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                       uint64_t *offset, char *bytes, size_t size, struct log_part *part,
                       struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    bool is_ended;
    cleanup_close int held = task_log_find((struct local_engine *)engine, attempt, &is_ended, path);
    (void)held;
    ssize_t got = logs_read(path, stream, offset, bytes, size, part, err);
    part->is_ended = is_ended;
    return got;
}

int local_log_time(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                   int64_t at_ms, uint64_t *offset, struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    bool is_ended;
    cleanup_close int held = task_log_find((struct local_engine *)engine, attempt, &is_ended, path);
    (void)held;
    return logs_time(path, stream, at_ms, offset, err);
}

int local_log_watch(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                    struct err *err)
{
    (void)stream; /* one folder holds all streams: a reader of one may wake for another */
    struct local_engine *local = (struct local_engine *)engine;
    char path[RUNTIME_PATH_MAX];
    bool is_ended;
    cleanup_close int held = task_log_find(local, attempt, &is_ended, path);
    (void)held;
    if (!local->log_watch)
        return err_fail(err, ERR_UNAVAILABLE, "", "logs cannot be watched here");
    return log_watch_add(local->log_watch, path, err);
}

/* Readers that follow the log learn that it has ended: their watch of the folder wakes up. */
void task_log_close(struct local_engine *local, struct task *task)
{
    char live[RUNTIME_PATH_MAX], kept[RUNTIME_PATH_MAX];
    task_disk_path(local, task, "log", live);
    task_log_path(local, task->id, kept);
    pthread_mutex_lock(&local->lock);
    task->is_log_final = true;
    pthread_mutex_unlock(&local->lock);
    if (task->disk_fd >= 0)
        utimensat(AT_FDCWD, live, NULL, 0);
    utimensat(AT_FDCWD, kept, NULL, 0);
}
