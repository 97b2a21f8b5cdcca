/* http_loop.h — a thread that serves connections.
 *
 * Edge. It runs a daemon of libmicrohttpd that has no thread of its own, and gives it the
 * connections that come. libmicrohttpd's own threads are not used: one of them that is given a
 * connection too many stops for ever, holding its own lock (0.9.75), and nobody is told what
 * becomes of a connection that it is given. Here it is added by the thread that serves it, so that
 * both are known at once.
 */
#ifndef API_HTTP_LOOP_H
#define API_HTTP_LOOP_H
#include "api/http.h"
#include <stdbool.h>
#include <sys/socket.h>

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_UpgradeResponseHandle;
struct err;
struct http_loop;

struct http_loop_ops {
    void *context;
    /* By the loop's thread, once for each connection that it is given: it has been added to the
     * daemon, which has told that it has started, or closed because it could not be. */
    void (*added)(void *context, enum http_way way, bool is_added);
};

/* The daemon: MHD_USE_EPOLL, MHD_ALLOW_SUSPEND_RESUME, MHD_ALLOW_UPGRADE and
 * MHD_USE_NO_LISTEN_SOCKET. It is the
 * loop's from here on, also when there is an error: no thread or descriptor can be had. */
int http_loop_start(struct MHD_Daemon *daemon, const struct http_loop_ops *ops,
                    struct http_loop **loop, struct err *err);
/* A connection of a client at `from`, as accept() names it. Never waits; the socket is the loop's.
 */
void http_loop_give(struct http_loop *loop, int fd, enum http_way way, const struct sockaddr *from,
                    socklen_t length);
/* MHD_resume_connection, and the thread hears of it. May be called by any thread. */
void http_loop_resume(struct http_loop *loop, struct MHD_Connection *connection);
/* The end of a connection that has been upgraded. May be called by any thread, also the loop's. */
void http_loop_hang_up(struct http_loop *loop, struct MHD_UpgradeResponseHandle *connection);
/* Closes all connections; none of them may be suspended or upgraded, and none be given any more.
 * NULL is fine.
 */
void http_loop_stop(struct http_loop *loop);

#endif
