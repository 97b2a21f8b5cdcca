#include "sys/watcher.h"
#include "base/err.h"
#include "sys/clock.h"
#include <assert.h>
#include <time.h>

void watcher_init(struct watcher *watcher)
{
    *watcher = (struct watcher){0};
    pthread_mutex_init(&watcher->lock, NULL);
    clock_condition_init(&watcher->wake);
}

int watcher_start(struct watcher *watcher, void *(*run)(void *context), void *context,
                  const char *what, struct err *err)
{
    assert(!watcher->is_started && !watcher->is_ending);
    int number = pthread_create(&watcher->thread, NULL, run, context);
    if (number != 0)
        return err_errno(err, number, "start %s", what);
    watcher->is_started = true;
    return 0;
}

bool watcher_await(struct watcher *watcher, int64_t due_ms)
{
    const struct timespec due = clock_moment(due_ms);
    return pthread_cond_timedwait(&watcher->wake, &watcher->lock, &due) == 0;
}

void watcher_wake(struct watcher *watcher)
{
    pthread_cond_signal(&watcher->wake);
}

bool watcher_stop(struct watcher *watcher)
{
    if (!watcher->is_started)
        return false;
    pthread_mutex_lock(&watcher->lock);
    watcher->is_ending = true;
    watcher_wake(watcher);
    pthread_mutex_unlock(&watcher->lock);
    pthread_join(watcher->thread, NULL);
    watcher->is_started = false;
    return true;
}

void watcher_release(struct watcher *watcher)
{
    assert(!watcher->is_started);
    pthread_cond_destroy(&watcher->wake);
    pthread_mutex_destroy(&watcher->lock);
}
