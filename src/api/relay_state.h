/* relay_state.h — a relay and its connections, for the files of which it is made.
 *
 * Private to relay.c, which moves the bytes, and relay_entry.c, which decides who may come.
 */
#ifndef API_RELAY_STATE_H
#define API_RELAY_STATE_H
#include "api/relay.h"
#include "base/buf.h"
#include "base/byte_flow.h"
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

enum { RELAY_SIDE_CLIENT = 0, RELAY_SIDE_TASK = 1, RELAY_SIDES = 2 };
enum { RELAY_FAREWELL_MS = 5000 };

enum stage {
    STAGE_HEAD,       /* the request's head is being read */
    STAGE_CONNECTING, /* to the task */
    STAGE_ANSWER,     /* the request goes there, its answer's head has not come yet */
    STAGE_PIPE,       /* bytes go in both directions */
    STAGE_FAREWELL,   /* what is left goes to the client, and that is all */
    STAGE_LINGER,     /* it has gone: closed while more comes, it could be lost on its way */
    STAGE_OVER,
};

struct relay_connection {
    enum stage stage;
    uint32_t round;              /* of this slot: events of an earlier connection are told apart */
    struct relay_stream *client; /* NULL: the slot is free */
    int task;                    /* -1: not connected */
    uint32_t watched[RELAY_SIDES]; /* of what epoll tells */
    struct byte_flow up, down;     /* to the task, and to the client */
    struct buf head;               /* of the request, then of the answer */
    int64_t body_left;             /* of the request: so much may still be read */
    bool is_websocket;
    int64_t due_ms, look_ms;
    struct web_port_grant grant; /* opener.user "": not known yet */
    struct in6_addr from;        /* relay_origin */
    char session[WEB_PORT_WORD_SIZE];
};

struct relay_arrival {
    int fd;
    struct in6_addr from; /* relay_origin */
};

struct relay_arrivals {
    struct relay_arrival *items;
    size_t count, room;
};

struct relay {
    struct relay_config config;
    struct relay_tls *tls; /* NULL: in the clear */
    struct http_door *door;
    uint16_t port;
    int epoll_fd, wake_fd;
    pthread_t thread;
    bool is_running;
    atomic_bool is_stopping;
    pthread_mutex_t lock; /* guards the arrivals and the count */
    struct relay_arrivals arrivals;
    size_t taken;                                               /* places, waiting ones included */
    struct relay_connection connections[RELAY_CONNECTIONS_MAX]; /* the thread's */
};

/* The request's head has come, or a part of it: it is answered, or its task is being connected to.
 */
void relay_head_take(struct relay *relay, struct relay_connection *connection);
/* A page of ours, which ends the connection. `more`: headers. */
void relay_answer(struct relay_connection *connection, int status, const char *name,
                  const char *text, const char *more);
void relay_answer_gone(struct relay_connection *connection); /* nothing answers there */

#endif
