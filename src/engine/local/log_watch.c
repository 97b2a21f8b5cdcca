#include "engine/local/log_watch.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 64 };

struct follower {
    int folder; /* inotify's number: the same for all who follow one folder */
    int fd;     /* our end of its socket */
};

struct log_watch {
    int inotify_fd, epoll_fd, stop_fd;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards what follows, and that a folder's number is its followers' */
    struct {
        struct follower *items;
        size_t count, room;
    } followers;
};

/* A full socket is news enough. */
static void follower_tell(const struct follower *follower)
{
    if (send(follower->fd, "", 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != EPIPE)
        log_warning("engine", "cannot wake who follows a log: errno %d", errno);
}

static void folder_tell(struct log_watch *watch, int folder)
{
    for (size_t i = 0; i < watch->followers.count; i++)
        if (watch->followers.items[i].folder == folder)
            follower_tell(&watch->followers.items[i]);
}

/* The kernel's queue was full: nobody knows of which folders the events were lost. */
static void all_tell(struct log_watch *watch)
{
    for (size_t i = 0; i < watch->followers.count; i++)
        follower_tell(&watch->followers.items[i]);
}

/* Of one folder's many events in a row that were read at once one is
 * told: whoever is woken finds what all of them wrote. A later read may have what was written after
 * the follower looked. */
static void events_tell(struct log_watch *watch)
{
    _Alignas(struct inotify_event) char bytes[16384];
    ssize_t got;
    while ((got = read(watch->inotify_fd, bytes, sizeof bytes)) > 0) {
        int told = -1;
        for (const char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const void *)at;
            if (event->mask & IN_Q_OVERFLOW)
                all_tell(watch);
            else if (event->wd != told)
                folder_tell(watch, event->wd);
            told = event->wd;
            at += sizeof *event + event->len;
        }
    }
}

static bool reader_is_gone(int fd)
{
    struct pollfd end = {.fd = fd};
    return poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP));
}

static void follower_drop(struct log_watch *watch, int fd)
{
    size_t at = 0, same = 0;
    while (at < watch->followers.count && watch->followers.items[at].fd != fd)
        at++;
    if (at == watch->followers.count ||
        !reader_is_gone(fd)) /* the number is another one's by now */
        return;
    const int folder = watch->followers.items[at].folder;
    watch->followers.items[at] = watch->followers.items[--watch->followers.count];
    close(fd);
    for (size_t i = 0; i < watch->followers.count; i++)
        same += watch->followers.items[i].folder == folder;
    if (same == 0)
        inotify_rm_watch(watch->inotify_fd, folder); /* fails for a folder that was removed */
}

static void *watch_run(void *context)
{
    struct log_watch *watch = context;
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(watch->epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;
            if (fd == watch->stop_fd)
                return NULL;
            pthread_mutex_lock(&watch->lock);
            if (fd == watch->inotify_fd)
                events_tell(watch);
            else
                follower_drop(watch, fd);
            pthread_mutex_unlock(&watch->lock);
        }
    }
}

static int descriptor_watch(struct log_watch *watch, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

struct log_watch *log_watch_new(struct err *err)
{
    struct log_watch *watch = mem_zero(1, sizeof *watch);
    pthread_mutex_init(&watch->lock, NULL);
    watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch->epoll_fd = watch->inotify_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    watch->stop_fd = watch->epoll_fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int number = 0;
    if (watch->stop_fd < 0 || descriptor_watch(watch, watch->inotify_fd, EPOLLIN) < 0 ||
        descriptor_watch(watch, watch->stop_fd, EPOLLIN) < 0)
        number = errno;
    else
        number = pthread_create(&watch->thread, NULL, watch_run, watch);
    watch->has_thread = number == 0;
    if (number == 0)
        return watch;
    err_errno(err, number, "watch logs");
    log_watch_free(watch);
    return NULL;
}

void log_watch_free(struct log_watch *watch)
{
    if (!watch)
        return;
    const uint64_t one = 1;
    if (watch->has_thread && write(watch->stop_fd, &one, sizeof one) == sizeof one)
        pthread_join(watch->thread, NULL);
    for (size_t i = 0; i < watch->followers.count; i++)
        close(watch->followers.items[i].fd);
    ARRAY_FREE(&watch->followers);
    int fds[] = {watch->inotify_fd, watch->epoll_fd, watch->stop_fd};
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_mutex_destroy(&watch->lock);
    mem_free(watch);
}

/* With the lock. */
static int follower_add(struct log_watch *watch, const char *directory, int ours, struct err *err)
{
    if (watch->followers.count == LOG_WATCH_FOLLOWERS_MAX)
        return err_fail(err, ERR_BUSY, "", "%d readers follow logs already",
                        LOG_WATCH_FOLLOWERS_MAX);
    int folder = inotify_add_watch(watch->inotify_fd, directory,
                                   IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_ATTRIB |
                                       IN_DELETE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (folder < 0 && errno == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no log of this attempt");
    if (folder < 0)
        return err_errno(err, errno, "watch %s", directory);
    *ARRAY_ADD(&watch->followers) = (struct follower){folder, ours};
    if (descriptor_watch(watch, ours, 0) < 0) {
        int number = errno;
        watch->followers.count--;
        return err_errno(err, number, "watch %s", directory);
    }
    return 0;
}

int log_watch_add(struct log_watch *watch, const char *directory, struct err *err)
{
    int ends[2];
    assert(watch);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_errno(err, errno, "make a pair of sockets");
    cleanup_close int theirs = ends[0], ours = ends[1];
    pthread_mutex_lock(&watch->lock);
    int code = follower_add(watch, directory, ours, err);
    pthread_mutex_unlock(&watch->lock);
    if (code < 0)
        return code;
    fd_steal(&ours); /* the thread closes it when theirs is closed */
    return fd_steal(&theirs);
}
