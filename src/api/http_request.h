/* http_request.h — one request on its way through libmicrohttpd: reading it, its reply, its stream.
 *
 * Edge. Inside http_server.c, which has the connections, and http_request.c: the functions are the
 * callbacks of a daemon, whose `context` is a struct http_edge.
 */
#ifndef API_HTTP_REQUEST_H
#define API_HTTP_REQUEST_H
#include "api/http.h"
#include "api/tls_client.h"
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

struct address_range;
struct carried;
struct http_loop;
struct http_watch;

/* What all requests to one server share. */
struct http_edge {
    struct http_server_config config;
    struct http_watch *watch;
    struct address_range *proxies; /* config.proxy_count */
    char *hsts;                    /* the header's value; NULL: none */
    atomic_bool is_draining;
    atomic_uint streams;
    pthread_mutex_t lock; /* guards what http_server.c counts, and times of clients */
};

/* One connection; kept in a list so that the sweep finds requests that never become whole. */
struct http_client {
    struct http_client *next, *previous;
    struct http_loop *loop; /* who serves it */
    int fd;
    int64_t idle_ms; /* since when no request is under way, or the request began; under the lock */
    enum http_way way;
    int64_t peer_uid;        /* HTTP_BY_SOCKET; else -1 */
    bool is_whole;           /* the request has been read: no time limit of ours; under the lock */
    bool was_gone;           /* the last sweep found it closed, and all read; under the lock */
    struct carried *carried; /* of the request under way; only for the connection's thread */
    struct tls_client shown; /* its certificate; likewise, as is … */
    unsigned shown_load;     /* … by which reading of the files it was looked at */
};

/* The descriptor of the client's socket. */
int http_client_fd(struct MHD_Connection *connection);

/* The access handler of libmicrohttpd. */
enum MHD_Result http_request_take(void *edge, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **carried);
/* MHD_OPTION_URI_LOG_CALLBACK: makes what the others are given as `carried`. */
void *http_request_begin(void *edge, const char *target, struct MHD_Connection *connection);
/* MHD_OPTION_UNESCAPE_CALLBACK */
size_t http_request_unescape(void *edge, struct MHD_Connection *connection, char *string);
/* MHD_OPTION_NOTIFY_COMPLETED */
void http_request_completed(void *edge, struct MHD_Connection *connection, void **carried,
                            enum MHD_RequestTerminationCode code);
/* Of a request that libmicrohttpd refused by itself, and never told to be completed. NULL is fine.
 */
void http_request_free(struct carried *carried);
/* http_watch_ops.wake; the context is not read. */
void http_request_wake(void *context, void *waiter, bool is_client_gone);

#endif
