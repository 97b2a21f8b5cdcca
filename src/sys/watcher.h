/* watcher.h — a thread that works in rounds, by the monotonic clock, until it is told to end.
 *
 * Edge. Its lock guards what its owner tells it, too.
 */
#ifndef SYS_WATCHER_H
#define SYS_WATCHER_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

struct watcher {
    pthread_t thread;
    bool is_started;      /* the owner's */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool is_ending;
};

void watcher_init(struct watcher *watcher);
/* `run` returns when watcher->is_ending. `what` names the thread in the error, "the thread that …".
 */
int watcher_start(struct watcher *watcher, void *(*run)(void *context), void *context,
                  const char *what, struct err *err);
/* With the lock: wait until `due_ms` (clock_monotonic_ms). True: woken before, which may be for
 * nothing.
 */
bool watcher_await(struct watcher *watcher, int64_t due_ms);
/* With the lock: there is news for the thread. */
void watcher_wake(struct watcher *watcher);
/* Waits for its end. False: it was not running. */
bool watcher_stop(struct watcher *watcher);
void watcher_release(struct watcher *watcher); /* it has been stopped */

#endif
