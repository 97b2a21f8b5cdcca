/* http_watch.h — wakes streams that wait, notices clients that went away, cuts off the slow.
 *
 * Edge. One thread with one epoll. A stream that has nothing to send is suspended and registered
 * with its descriptor and its client's socket; whichever moves first resumes it, once.
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

struct http_waiting {
    int fd, client_fd; /* fd -1: none */
    int64_t due_ms;    /* monotonic; 0: never by time */
    uint64_t round; /* http_watch_round's, from before it was found that there is nothing to do */
};

/* Returns false when there is no room (HTTP_STREAMS_MAX) or the watch is stopping; then wake is not
 * called. */
bool http_watch_add(struct http_watch *watch, void *waiter, const struct http_waiting *waiting);

/* Wake every waiter now, and who comes to wait since an earlier round. */
void http_watch_wake_all(struct http_watch *watch);
uint64_t http_watch_round(struct http_watch *watch);

int64_t http_clock_ms(void); /* monotonic */
int64_t http_clock_us(void);
int64_t http_wall_ms(void); /* since 1970 */

#endif
