#include "api/http_watch.h"
#include "api/http.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SWEEP_MS = 1000, POLL_STEP_MS = 50, NEWS_STEP_MS = 100, EVENTS_MAX = 64 };
enum { TAG_FD = 0, TAG_CLIENT = 1 };
static const uint64_t KEY_WAKEUP = UINT64_MAX;

static const uint32_t NOWHERE = UINT32_MAX;

struct waiter {
    void *waiter; /* NULL: free slot */
    int fd, client_fd;
    int64_t due_ms;     /* 0: none */
    uint32_t round;     /* of this slot, so that late events of an earlier waiter are told apart */
    uint32_t heap_at;   /* its place among those that are due at some time; NOWHERE: none */
    uint32_t next_free; /* of a free slot */
    bool wants_news;
};

struct http_watch {
    struct http_watch_ops ops;
    int epoll_fd, wakeup_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    struct waiter waiters[HTTP_STREAMS_MAX];
    uint32_t used;                   /* slots below this index have been used */
    uint32_t first_free;             /* of them; NOWHERE: none */
    uint32_t heap[HTTP_STREAMS_MAX]; /* slots with a time; none is due before its parent */
    uint32_t heap_count;
    uint64_t round;     /* of waking all */
    uint64_t news;      /* how often there were some */
    int64_t news_at_ms; /* when who wants news is woken; 0: there are none */
    bool is_stopping;
};

/* ---- by time: a binary heap ---- */

static int64_t heap_due(const struct http_watch *watch, uint32_t at)
{
    return watch->waiters[watch->heap[at]].due_ms;
}

static void heap_put(struct http_watch *watch, uint32_t at, uint32_t slot)
{
    watch->heap[at] = slot;
    watch->waiters[slot].heap_at = at;
}

static void heap_swap(struct http_watch *watch, uint32_t a, uint32_t b)
{
    const uint32_t slot = watch->heap[a];
    heap_put(watch, a, watch->heap[b]);
    heap_put(watch, b, slot);
}

static void heap_up(struct http_watch *watch, uint32_t at)
{
    for (; at && heap_due(watch, at) < heap_due(watch, (at - 1) / 2); at = (at - 1) / 2)
        heap_swap(watch, at, (at - 1) / 2);
}

static void heap_down(struct http_watch *watch, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < watch->heap_count && heap_due(watch, child) < heap_due(watch, least))
                least = child;
        if (least == at)
            return;
        heap_swap(watch, at, least);
        at = least;
    }
}

static void heap_add(struct http_watch *watch, uint32_t slot)
{
    assert(watch->heap_count < HTTP_STREAMS_MAX && watch->waiters[slot].due_ms);
    heap_put(watch, watch->heap_count++, slot);
    heap_up(watch, watch->heap_count - 1);
}

static void heap_remove(struct http_watch *watch, uint32_t slot)
{
    const uint32_t at = watch->waiters[slot].heap_at;
    if (at == NOWHERE)
        return;
    assert(at < watch->heap_count && watch->heap[at] == slot);
    watch->waiters[slot].heap_at = NOWHERE;
    const uint32_t last = watch->heap[--watch->heap_count];
    if (last == slot)
        return;
    heap_put(watch, at, last);
    heap_up(watch, at);
    heap_down(watch, watch->waiters[last].heap_at);
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
    heap_remove(watch, (uint32_t)(waiter - watch->waiters));
    waiter->waiter = NULL;
    waiter->round++;
    waiter->next_free = watch->first_free;
    watch->first_free = (uint32_t)(waiter - watch->waiters);
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

/* Wake those whose time has come, one at a time so that no lock is held. */
static void wake_due(struct http_watch *watch, int64_t now_ms)
{
    for (void *taken = watch; taken;) {
        taken = NULL;
        pthread_mutex_lock(&watch->lock);
        if (watch->heap_count && heap_due(watch, 0) <= now_ms)
            taken = waiter_take(watch, &watch->waiters[watch->heap[0]]);
        pthread_mutex_unlock(&watch->lock);
        if (taken)
            watch->ops.wake(watch->ops.context, taken, false);
    }
}

/* All of them, or those that want news; again one at a time. */
static void wake_all(struct http_watch *watch, bool is_news)
{
    for (uint32_t i = 0; i < HTTP_STREAMS_MAX; i++) {
        pthread_mutex_lock(&watch->lock);
        struct waiter *waiter = &watch->waiters[i];
        bool is_last = i >= watch->used;
        void *taken = NULL;
        if (!is_last && waiter->waiter && (!is_news || waiter->wants_news))
            taken = waiter_take(watch, waiter);
        pthread_mutex_unlock(&watch->lock);
        if (is_last)
            return;
        if (taken)
            watch->ops.wake(watch->ops.context, taken, false);
    }
}

static void news_tell(struct http_watch *watch, int64_t now_ms)
{
    pthread_mutex_lock(&watch->lock);
    bool is_due = watch->news_at_ms && watch->news_at_ms <= now_ms;
    if (is_due)
        watch->news_at_ms = 0; /* what is news from here on is told the next time */
    pthread_mutex_unlock(&watch->lock);
    if (is_due)
        wake_all(watch, true);
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
    int64_t left_ms = SWEEP_MS, now_ms = clock_monotonic_ms();
    pthread_mutex_lock(&watch->lock);
    if (watch->heap_count && heap_due(watch, 0) - now_ms < left_ms)
        left_ms = heap_due(watch, 0) - now_ms;
    if (watch->news_at_ms && watch->news_at_ms - now_ms < left_ms)
        left_ms = watch->news_at_ms - now_ms;
    pthread_mutex_unlock(&watch->lock);
    return left_ms < POLL_STEP_MS ? POLL_STEP_MS : (int)left_ms;
}

static void *watch_run(void *context)
{
    struct http_watch *watch = context;
    int64_t sweep_ms = clock_monotonic_ms() + SWEEP_MS;
    while (!watch_is_stopping(watch)) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(watch->epoll_fd, events, EVENTS_MAX, wait_ms(watch));
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == KEY_WAKEUP)
                wakeup_drain(watch);
            else
                wake_key(watch, events[i].data.u64);
        }
        int64_t now_ms = clock_monotonic_ms();
        wake_due(watch, now_ms);
        news_tell(watch, now_ms);
        if (now_ms >= sweep_ms) {
            sweep_ms = now_ms + SWEEP_MS;
            watch->ops.sweep(watch->ops.context);
        }
    }
    wake_all(watch, false);
    return NULL;
}

int http_watch_start(const struct http_watch_ops *ops, struct http_watch **out, struct err *err)
{
    struct http_watch *watch = mem_zero(1, sizeof *watch);
    watch->ops = *ops;
    watch->first_free = NOWHERE;
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
    wake_all(watch, false);
}

void http_watch_news(struct http_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->news++;
    bool is_first = !watch->news_at_ms;
    if (is_first)
        watch->news_at_ms = clock_monotonic_ms() + NEWS_STEP_MS;
    pthread_mutex_unlock(&watch->lock);
    if (is_first)
        watch_interrupt(watch);
}

struct http_watch_rounds http_watch_rounds(struct http_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    const struct http_watch_rounds rounds = {watch->round, watch->news};
    pthread_mutex_unlock(&watch->lock);
    return rounds;
}

/* Under the lock. */
static struct waiter *waiter_free_slot(struct http_watch *watch)
{
    if (watch->first_free == NOWHERE)
        return watch->used < HTTP_STREAMS_MAX ? &watch->waiters[watch->used++] : NULL;
    struct waiter *waiter = &watch->waiters[watch->first_free];
    assert(!waiter->waiter);
    watch->first_free = waiter->next_free;
    return waiter;
}

/* Under the lock: when it is to be woken; 0: never by time. What it would have been woken by while
 * it came to wait counts. */
static int64_t due_of(const struct http_watch *watch, const struct http_waiting *waiting)
{
    const int64_t now_ms = clock_monotonic_ms();
    if (waiting->rounds.all != watch->round)
        return now_ms;
    const bool is_news = waiting->wants_news && waiting->rounds.news != watch->news;
    const int64_t news_ms = now_ms + NEWS_STEP_MS;
    return is_news && (!waiting->due_ms || waiting->due_ms > news_ms) ? news_ms : waiting->due_ms;
}

bool http_watch_add(struct http_watch *watch, void *waiter, const struct http_waiting *waiting)
{
    const int fd = waiting->fd, client_fd = waiting->client_fd;
    bool is_next = false;
    assert(waiter && client_fd >= 0);
    pthread_mutex_lock(&watch->lock);
    struct waiter *slot = watch->is_stopping ? NULL : waiter_free_slot(watch);
    if (slot) {
        slot->waiter = waiter;
        slot->fd = fd;
        slot->client_fd = client_fd;
        slot->wants_news = waiting->wants_news;
        slot->due_ms = due_of(watch, waiting);
        slot->heap_at = NOWHERE;
        if (slot->due_ms)
            heap_add(watch, (uint32_t)(slot - watch->waiters));
        is_next = slot->heap_at == 0;
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
    if (slot && is_next)
        watch_interrupt(watch); /* it waits for one that is due later */
    return slot != NULL;
}
