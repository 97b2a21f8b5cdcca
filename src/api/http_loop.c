#include "api/http_loop.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A connection that waits to be added. */
struct arrival {
    int fd;
    enum http_way way;
    struct sockaddr_storage from;
    socklen_t length;
};

struct arrivals {
    struct arrival *items;
    size_t count, room;
};

struct http_loop {
    struct http_loop_ops ops;
    struct MHD_Daemon *daemon;
    int wake_fd;
    bool is_running;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    struct arrivals arrivals;
    bool is_stopping;
};

static void loop_wake(struct http_loop *loop)
{
    const uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN); /* EAGAIN: it is awake 2^64 times over */
    (void)written;
}

/* Adds who has come. False: the loop shall end. */
static bool arrivals_add(struct http_loop *loop)
{
    uint64_t count;
    ssize_t got = read(loop->wake_fd, &count, sizeof count); /* first: what comes now wakes again */
    (void)got;                                               /* nothing to read is fine */
    pthread_mutex_lock(&loop->lock);
    cleanup_array struct arrivals arrivals = loop->arrivals;
    loop->arrivals = (struct arrivals){0};
    bool is_stopping = loop->is_stopping;
    pthread_mutex_unlock(&loop->lock);
    for (size_t i = 0; i < arrivals.count; i++) {
        const struct arrival *arrival = &arrivals.items[i];
        const bool is_added =
            MHD_add_connection(loop->daemon, arrival->fd,
                               (const struct sockaddr *)(const void *)&arrival->from,
                               arrival->length) == MHD_YES; /* closes it when it fails */
        loop->ops.added(loop->ops.context, arrival->way, is_added);
    }
    return !is_stopping;
}

/* How long the daemon may be left alone, for poll(). */
static int pause_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG limit_ms;
    if (MHD_get_timeout(daemon, &limit_ms) != MHD_YES)
        return -1;
    return limit_ms > INT_MAX ? INT_MAX : (int)limit_ms;
}

static void *loop_run(void *context)
{
    struct http_loop *loop = context;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd watches[] = {{.fd = loop->wake_fd, .events = POLLIN},
                               {.fd = info->epoll_fd, .events = POLLIN}};
    do {
        MHD_run(loop->daemon);
        poll(watches, COUNT_OF(watches), pause_ms(loop->daemon));
    } while (!watches[0].revents || arrivals_add(loop));
    return NULL;
}

int http_loop_start(struct MHD_Daemon *daemon, const struct http_loop_ops *ops,
                    struct http_loop **out, struct err *err)
{
    struct http_loop *loop = mem_zero(1, sizeof *loop);
    loop->ops = *ops;
    loop->daemon = daemon;
    pthread_mutex_init(&loop->lock, NULL);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int number = loop->wake_fd < 0 ? errno : pthread_create(&loop->thread, NULL, loop_run, loop);
    loop->is_running = number == 0;
    if (number) {
        http_loop_stop(loop);
        return err_errno(err, number, "start a thread that serves requests");
    }
    *out = loop;
    return 0;
}

void http_loop_give(struct http_loop *loop, int fd, enum http_way way, const struct sockaddr *from,
                    socklen_t length)
{
    struct arrival arrival = {.fd = fd, .way = way, .length = length};
    assert(length <= sizeof arrival.from);
    memcpy(&arrival.from, from, length);
    pthread_mutex_lock(&loop->lock);
    assert(!loop->is_stopping);
    *ARRAY_ADD(&loop->arrivals) = arrival;
    if (loop->arrivals.count == 1)
        loop_wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

/* Under the lock: once it is resumed the request may end, and with it the loop, before it is woken.
 */
void http_loop_resume(struct http_loop *loop, struct MHD_Connection *connection)
{
    pthread_mutex_lock(&loop->lock);
    MHD_resume_connection(connection);
    loop_wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

void http_loop_hang_up(struct http_loop *loop, struct MHD_UpgradeResponseHandle *connection)
{
    pthread_mutex_lock(&loop->lock);
    MHD_upgrade_action(connection, MHD_UPGRADE_ACTION_CLOSE);
    loop_wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

void http_loop_stop(struct http_loop *loop)
{
    if (!loop)
        return;
    if (loop->is_running) {
        pthread_mutex_lock(&loop->lock);
        loop->is_stopping = true;
        loop_wake(loop);
        pthread_mutex_unlock(&loop->lock);
        pthread_join(loop->thread, NULL);
    }
    MHD_stop_daemon(loop->daemon);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    pthread_mutex_destroy(&loop->lock);
    mem_free(loop);
}
