#include "api/http_watch.h"
#include "api/http.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { SWEEP_MS = 1000, POLL_STEP_MS = 50, EVENTS_MAX = 64 };
enum { TAG_FD = 0, TAG_CLIENT = 1 };
static const uint64_t KEY_WAKEUP = UINT64_MAX;

struct waiter {
    void *waiter; /* NULL: free slot */
    int fd, client_fd;
    int64_t due_ms; /* 0: none */
    uint32_t round; /* of this slot, so that late events of an earlier waiter are told apart */
};

struct http_watch {
    struct http_watch_ops ops;
    int epoll_fd, wakeup_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    struct waiter waiters[HTTP_STREAMS_MAX];
    size_t used;    /* slots below this index have been used */
    uint64_t round; /* of waking all */
    bool is_stopping;
};

int64_t http_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t http_clock_ms(void)
{
    return http_clock_us() / 1000;
}

int64_t http_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t key_of(const struct http_watch *watch, const struct waiter *waiter, unsigned tag)
{
    uint64_t slot = (uint64_t)(waiter - watch->waiters);
    return (uint64_t)waiter->round << 32 | slot << 1 | tag;
}

static void epoll_forget(const struct http_watch *watch, int fd)
{
    if (fd >= 0)
        epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Under the lock: free the slot; the caller then wakes what is returned. */
static void *waiter_take(struct http_watch *watch, struct waiter *waiter)
{
    void *taken = waiter->waiter;
    epoll_forget(watch, waiter->fd);
    epoll_forget(watch, waiter->client_fd);
    waiter->waiter = NULL;
    waiter->round++;
    return taken;
}

static void wake_key(struct http_watch *watch, uint64_t key)
{
    size_t slot = (size_t)((key & UINT32_MAX) >> 1);
    assert(slot < HTTP_STREAMS_MAX);
    pthread_mutex_lock(&watch->lock);
    struct waiter *waiter = &watch->waiters[slot];
    void *taken = NULL;
    if (waiter->waiter && waiter->round == (uint32_t)(key >> 32))
        taken = waiter_take(watch, waiter);
    pthread_mutex_unlock(&watch->lock);
    if (taken)
        watch->ops.wake(watch->ops.context, taken, (key & 1) == TAG_CLIENT);
}

/* Wake those whose time has come (all when `is_all`), one at a time so that no lock is held. */
static void wake_due(struct http_watch *watch, int64_t now_ms, bool is_all)
{
    for (size_t i = 0; i < HTTP_STREAMS_MAX; i++) {
        pthread_mutex_lock(&watch->lock);
        struct waiter *waiter = &watch->waiters[i];
        bool is_last = i >= watch->used;
        void *taken = NULL;
        if (!is_last && waiter->waiter && (is_all || (waiter->due_ms && waiter->due_ms <= now_ms)))
            taken = waiter_take(watch, waiter);
        pthread_mutex_unlock(&watch->lock);
        if (is_last)
            return;
        if (taken)
            watch->ops.wake(watch->ops.context, taken, false);
    }
}

static void wakeup_drain(struct http_watch *watch)
{
    uint64_t value;
    while (read(watch->wakeup_fd, &value, sizeof value) < 0 && errno == EINTR)
        continue;
}

static bool watch_is_stopping(struct http_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    bool is_stopping = watch->is_stopping;
    pthread_mutex_unlock(&watch->lock);
    return is_stopping;
}

/* Until the next of them is due; several that are near each other are woken together. */
static int wait_ms(struct http_watch *watch)
{
    int64_t left_ms = SWEEP_MS, now_ms = http_clock_ms();
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < watch->used; i++) {
        const struct waiter *waiter = &watch->waiters[i];
        if (waiter->waiter && waiter->due_ms && waiter->due_ms - now_ms < left_ms)
            left_ms = waiter->due_ms - now_ms;
    }
    pthread_mutex_unlock(&watch->lock);
    return left_ms < POLL_STEP_MS ? POLL_STEP_MS : (int)left_ms;
}

static void *watch_run(void *context)
{
    struct http_watch *watch = context;
    int64_t sweep_ms = http_clock_ms() + SWEEP_MS;
    while (!watch_is_stopping(watch)) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(watch->epoll_fd, events, EVENTS_MAX, wait_ms(watch));
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == KEY_WAKEUP)
                wakeup_drain(watch);
            else
                wake_key(watch, events[i].data.u64);
        }
        int64_t now_ms = http_clock_ms();
        wake_due(watch, now_ms, false);
        if (now_ms >= sweep_ms) {
            sweep_ms = now_ms + SWEEP_MS;
            watch->ops.sweep(watch->ops.context);
        }
    }
    wake_due(watch, 0, true);
    return NULL;
}

int http_watch_start(const struct http_watch_ops *ops, struct http_watch **out, struct err *err)
{
    struct http_watch *watch = mem_zero(1, sizeof *watch);
    watch->ops = *ops;
    watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&watch->lock, NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = KEY_WAKEUP};
    int code = 0;
    if (watch->epoll_fd < 0 || watch->wakeup_fd < 0 ||
        epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, watch->wakeup_fd, &event) < 0)
        code = err_errno(err, errno, "epoll");
    if (!code) {
        int number = pthread_create(&watch->thread, NULL, watch_run, watch);
        if (number)
            code = err_errno(err, number, "start the thread of the HTTP streams");
    }
    if (code) {
        if (watch->epoll_fd >= 0)
            close(watch->epoll_fd);
        if (watch->wakeup_fd >= 0)
            close(watch->wakeup_fd);
        mem_free(watch);
        return code;
    }
    *out = watch;
    return 0;
}

static void watch_interrupt(struct http_watch *watch)
{
    uint64_t one = 1;
    while (write(watch->wakeup_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void http_watch_stop(struct http_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_stopping = true;
    pthread_mutex_unlock(&watch->lock);
    watch_interrupt(watch);
    pthread_join(watch->thread, NULL);
    close(watch->epoll_fd);
    close(watch->wakeup_fd);
    pthread_mutex_destroy(&watch->lock);
    mem_free(watch);
}

void http_watch_wake_all(struct http_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->round++;
    pthread_mutex_unlock(&watch->lock);
    wake_due(watch, 0, true);
}

uint64_t http_watch_round(struct http_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    uint64_t round = watch->round;
    pthread_mutex_unlock(&watch->lock);
    return round;
}

/* Under the lock. */
static struct waiter *waiter_free_slot(struct http_watch *watch)
{
    for (size_t i = 0; i < watch->used; i++)
        if (!watch->waiters[i].waiter)
            return &watch->waiters[i];
    return watch->used < HTTP_STREAMS_MAX ? &watch->waiters[watch->used++] : NULL;
}

bool http_watch_add(struct http_watch *watch, void *waiter, const struct http_waiting *waiting)
{
    const int fd = waiting->fd, client_fd = waiting->client_fd;
    bool has_time = waiting->due_ms != 0;
    assert(waiter && client_fd >= 0);
    pthread_mutex_lock(&watch->lock);
    struct waiter *slot = watch->is_stopping ? NULL : waiter_free_slot(watch);
    if (slot) {
        slot->waiter = waiter;
        slot->fd = fd;
        slot->client_fd = client_fd;
        slot->due_ms = waiting->due_ms;
        if (waiting->round != watch->round) { /* it would have been woken */
            slot->due_ms = http_clock_ms();
            has_time = true;
        }
        struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT,
                                    .data.u64 = key_of(watch, slot, TAG_CLIENT)};
        bool is_added = epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, client_fd, &event) == 0;
        if (is_added && fd >= 0) {
            event = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT,
                                         .data.u64 = key_of(watch, slot, TAG_FD)};
            is_added = epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
        }
        if (!is_added) {
            waiter_take(watch, slot);
            slot = NULL;
        }
    }
    pthread_mutex_unlock(&watch->lock);
    if (slot && has_time)
        watch_interrupt(watch); /* it may be in a long wait */
    return slot != NULL;
}
