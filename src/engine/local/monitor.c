/* One thread waits for every container's end, and for the end of a grace. */
#include "base/buf.h"
#include "base/err.h"
#include "engine/local/spawn.h"
#include "engine/local/task.h"
#include "init/exit_file.h"
#include "init/layout.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include "sys/untrusted.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,
    KILLS_AT_ONCE = 32,
    KILL_PAUSE_MS = 500,
    KILL_PAUSE_DOUBLINGS = 7, /* about a minute */
};

int monitor_watch(struct local_engine *local, struct task *task, struct err *err)
{
    int fd = task->is_unsupervised ? task->init_fd : task->process.conmon_fd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = task->attempt.v};
    if (epoll_ctl(local->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_errno(err, errno, "watch the container");
    return 0;
}

void monitor_wake(struct local_engine *local)
{
    uint64_t one = 1;
    if (write(local->wake_fd, &one, sizeof one) < 0 && errno != EAGAIN)
        log_error("engine", "cannot wake the monitor: errno %d", errno);
}

/* In a folder that the container can write to: a task that prevents it ends without a reason. */
static void reason_put(struct local_engine *local, struct task *task, uint32_t grace_ms)
{
    char path[RUNTIME_PATH_MAX];
    struct err err = {0};
    struct reason_file reason = {.grace_ms = grace_ms};
    snprintf(reason.reason, sizeof reason.reason, "%s", task->kill_reason);
    cleanup_buf struct buf text = BUF_INIT;
    reason_file_write(&reason, &text);
    task_disk_path(local, task, "run", path);
    if (untrusted_put(path, LAYOUT_REASON_NAME, buf_as_text(&text), 0644, &err) < 0)
        log_info("engine", "attempt %s: it is not told why it ends: %s", task->id, err.text);
}

void monitor_kill(struct local_engine *local, struct task *task)
{
    assert(task->phase == TASK_RUNNING && task->is_kill_wanted);
    int64_t left = task->kill_due_ms - clock_monotonic_ms();
    if (!task->is_term_sent && left > 0 && task->init_fd >= 0) {
        reason_put(local, task, (uint32_t)left);
        syscall_kill(task->init_fd, SIGTERM);
    }
    task->is_term_sent = true;
    if (left <= 0 && task->init_fd >= 0)
        syscall_kill(task->init_fd, SIGKILL);
    monitor_wake(local);
}

/* Tasks whose time to end has come: their groups are seen to without the lock. */
struct due_kills {
    struct {
        char id[24];
        bool is_repeated; /* SIGKILL to the first process was not enough */
    } items[KILLS_AT_ONCE];
    size_t count;
};

/* With the last of its processes the kernel ends a container, and each of them needs processor time
 * to end: the pauses grow, for one that cannot end because of a driver. */
static int64_t kill_pause_ms(uint32_t kills_sent)
{
    return KILL_PAUSE_MS << (kills_sent < KILL_PAUSE_DOUBLINGS ? kills_sent : KILL_PAUSE_DOUBLINGS);
}

static void kill_send(struct task *task, struct due_kills *due, int64_t now)
{
    if (task->init_fd >= 0)
        syscall_kill(task->init_fd, SIGKILL);
    memcpy(due->items[due->count].id, task->id, sizeof task->id);
    due->items[due->count++].is_repeated = task->kills_sent > 0;
    task->kill_due_ms = now + kill_pause_ms(task->kills_sent);
    task->kills_sent++;
}

/* Send what is due, at most KILLS_AT_ONCE; the time of the next one, or -1. */
static int64_t kills_send(struct local_engine *local, struct due_kills *due)
{
    int64_t now = clock_monotonic_ms(), next = -1;
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < local->task_room; i++) {
        struct task *task = local->tasks[i];
        if (!task || task->phase != TASK_RUNNING || !task->kill_due_ms)
            continue;
        if (task->kill_due_ms <= now && due->count < KILLS_AT_ONCE)
            kill_send(task, due, now);
        if (next < 0 || task->kill_due_ms < next)
            next = task->kill_due_ms;
    }
    pthread_mutex_unlock(&local->lock);
    return next;
}

/* Carry out what is due; the time of the next one, or -1. */
static int64_t kills_due(struct local_engine *local)
{
    struct due_kills due = {.count = 0};
    int64_t next = kills_send(local, &due);
    for (size_t i = 0; i < due.count; i++) {
        char group[CGROUP_PATH_MAX];
        task_group(local, due.items[i].id, group);
        if (due.items[i].is_repeated)
            cgroup_kill(&local->cgroups, group);
        else
            cgroup_unlimit(&local->cgroups, group);
    }
    return next;
}

static void task_ended(struct local_engine *local, struct attempt_id attempt)
{
    pthread_mutex_lock(&local->lock);
    struct task *task = task_find(local, attempt);
    if (task && task->phase == TASK_RUNNING) {
        int fd = task->is_unsupervised ? task->init_fd : task->process.conmon_fd;
        epoll_ctl(local->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        task->phase = TASK_ENDING;
        task_enqueue(local, task);
    }
    pthread_mutex_unlock(&local->lock);
}

void *monitor_run(void *context)
{
    struct local_engine *local = context;
    for (;;) {
        int64_t due = kills_due(local);
        int64_t left = due < 0 ? -1 : due - clock_monotonic_ms();
        struct epoll_event events[EVENTS_MAX];
        int wait_ms = due < 0 ? -1 : left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
        int count = epoll_wait(local->epoll_fd, events, EVENTS_MAX, wait_ms);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 != 0) {
                task_ended(local, (struct attempt_id){events[i].data.u64});
                continue;
            }
            uint64_t drained;
            if (read(local->wake_fd, &drained, sizeof drained) < 0 && errno != EAGAIN)
                log_error("engine", "the monitor's wake descriptor: errno %d", errno);
        }
        pthread_mutex_lock(&local->lock);
        bool is_stopping = local->is_stopping;
        pthread_mutex_unlock(&local->lock);
        if (is_stopping)
            return NULL;
    }
}
