/* http_watch.h — wakes streams that wait, notices clients that went away, cuts off the slow.
 *
 * Edge. One thread with one epoll. A stream that has nothing to send is suspended and registered
 * with its descriptor and its client's socket; whichever moves first resumes it, once. To come to
 * wait and to be woken costs the logarithm of how many wait.
 */
#ifndef API_HTTP_WATCH_H
#define API_HTTP_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct http_watch;

struct http_watch_ops {
    void *context;
    /* Called with no lock held, exactly once for each registration. */
    void (*wake)(void *context, void *waiter, bool is_client_gone);
    /* About once a second. */
    void (*sweep)(void *context);
};

int http_watch_start(const struct http_watch_ops *ops, struct http_watch **watch, struct err *err);
/* Wakes all that wait, then ends the thread. */
void http_watch_stop(struct http_watch *watch);

struct http_watch_rounds {
    uint64_t all, news; /* how often all were to be woken, and who wants news */
};

struct http_waiting {
    int fd, client_fd; /* fd -1: none */
    int64_t due_ms;    /* monotonic; 0: never by time */
    bool wants_news;   /* http_watch_news wakes it, too */
    /* http_watch_rounds's, from before it was found that there is nothing to do */
    struct http_watch_rounds rounds;
};

/* Returns false when there is no room (HTTP_STREAMS_MAX) or the watch is stopping; then wake is not
 * called. */
bool http_watch_add(struct http_watch *watch, void *waiter, const struct http_waiting *waiting);

/* Wake every waiter now, and who comes to wait since an earlier round. */
void http_watch_wake_all(struct http_watch *watch);
/* Wake who wants news within 150 ms: what is news meanwhile is told together. It costs little to
 * call this often, by any thread. */
void http_watch_news(struct http_watch *watch);
struct http_watch_rounds http_watch_rounds(struct http_watch *watch);

#endif
