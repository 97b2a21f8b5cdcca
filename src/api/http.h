/* http.h — the HTTP edge: requests come whole, replies go out whole, later, or as a stream.
 *
 * Edge. libmicrohttpd (epoll, a small pool of threads) reads and writes; this header hides it, so
 * that handlers can be run without a socket (tests, fuzzing). One `struct exchange` is one request
 * with its reply; it owns everything reachable from it until the reply is made. While that goes out
 * there are only its bytes, its stream or its upgrade: the arena and the request's body are gone.
 *
 * Limits, each answered with a 4xx and tested: HTTP_BODY_MAX, HTTP_BODY_STRANGER_MAX and
 * HTTP_TARGET_MAX (413), HTTP_HEADERS_MAX (431), HTTP_SEGMENTS_MAX and HTTP_QUERY_MAX (400). A
 * request that is not whole HTTP_REQUEST_MS after its connection was last idle is cut off; an idle
 * connection is closed after HTTP_IDLE_S, and so is one that takes not a byte of its reply for so
 * long. When three of four connections are taken, one that idles or sends slowly is closed after 2
 * s. A request with two lengths (or a length and a coding) or two hosts is refused with 400.
 */
#ifndef API_HTTP_H
#define API_HTTP_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum {
    HTTP_BODY_MAX = 1 << 20,
    HTTP_BODY_STRANGER_MAX = 64 << 10, /* of a request by nobody who has signed in */
    HTTP_TARGET_MAX = 8 << 10,
    HTTP_HEADERS_MAX = 64 << 10, /* memory of one connection: request line, headers, buffers */
    HTTP_SEGMENTS_MAX = 16,
    HTTP_QUERY_MAX = 64,
    HTTP_CONNECTIONS_MAX = 4096,
    HTTP_DOOR_MAX = 2048,  /* beside them, by the tasks' door */
    HTTP_SOCKET_MAX = 256, /* beside both, by the socket of this machine */
    HTTP_STREAMS_MAX = 3072,
    HTTP_IDLE_S = 30,
    HTTP_REQUEST_MS = 90000,
    HTTP_CROWDED_MS = 2000, /* likewise, where three of four places are taken */
};

/* How a client came. */
enum http_way {
    HTTP_BY_NETWORK,
    HTTP_BY_DOOR,   /* the socket that is mounted into tasks */
    HTTP_BY_SOCKET, /* the socket for the users of this machine */
};
enum { HTTP_WAYS = HTTP_BY_SOCKET + 1 };

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER,
};
const char *http_method_name(enum http_method method); /* "GET", …; HTTP_OTHER: "OTHER" */

struct http_pair {
    struct text name, value;
};

/* Body that is produced while it is sent. `read` gives the number of bytes, HTTP_STREAM_WAIT when
 * there is nothing now, HTTP_STREAM_END or HTTP_STREAM_BROKEN (the connection is then cut, so that
 * the client does not take a part for the whole). After WAIT it is called again when `fd` is
 * readable (the reader drains it) or `poll_ms` have passed. */
enum { HTTP_STREAM_WAIT = 0, HTTP_STREAM_END = -1, HTTP_STREAM_BROKEN = -2 };
struct http_stream {
    ssize_t (*read)(void *state, char *bytes, size_t size);
    void (*free)(void *state);
    void *state;
    int fd;           /* -1: none; stays the stream's */
    uint32_t poll_ms; /* 0: never by time */
    int64_t until_ms; /* monotonic: nor waits it longer than this; 0: it may */
    bool wants_news;  /* http_server_news ends a wait, too */
};

struct MHD_UpgradeResponseHandle;
struct http_loop;

/* A connection that speaks another protocol than HTTP. */
struct http_socket {
    int fd;                 /* does not block */
    struct http_loop *loop; /* the edge's */
    struct MHD_UpgradeResponseHandle *handle;
};
/* To be called once for each that was taken, by any thread, before http_server_stop. */
void http_socket_close(struct http_socket *socket);

/* What becomes of a connection whose reply is 101. Exactly one of the two is called. */
struct http_upgrade {
    /* The reply is out. `early`: what the client has sent behind its request, for the call only. */
    void (*take)(void *state, struct http_socket socket, struct text early);
    void (*drop)(void *state); /* the client had gone */
    void *state;
};

/* What is given back when the reply has gone out or its connection has ended, once. */
struct http_hold {
    void (*free)(void *state); /* NULL: nothing */
    void *state;
};

enum { HTTP_REPLY_HEADERS_MAX = 8 };
struct http_reply {
    int status;               /* 0: no reply yet */
    const char *content_type; /* static */
    struct buf body;
    struct text fixed;           /* static, instead of the body: not copied */
    struct http_stream stream;   /* used when .read is set */
    struct http_upgrade upgrade; /* used when .take is set */
    struct http_hold hold;
    struct {
        const char *name, *value; /* static, or in the exchange's arena: copied when it goes out */
    } headers[HTTP_REPLY_HEADERS_MAX];
    size_t header_count;
};

struct exchange;

/* What stands behind the edge. Called by any of the edge's threads. */
struct http_app {
    void *context;
    /* The headers are here. Returns false when a reply is given already (no such path, who are you,
     * …); then the body is not read. */
    bool (*begin)(void *context, struct exchange *exchange);
    /* The request is whole: give a reply, or call exchange_suspend. */
    void (*handle)(void *context, struct exchange *exchange);
    /* After exchange_resume: give the reply. */
    void (*resume)(void *context, struct exchange *exchange);
    /* The reply is made, or the client has gone before. What the reply still needs (the state of a
     * stream, an upgrade or a hold) must have memory of its own: exchange_forget follows. */
    void (*end)(void *context, struct exchange *exchange);
};

/* Of the edge that carries the exchange. */
struct exchange_port {
    void (*suspend)(struct exchange *exchange);
    void (*resume)(struct exchange *exchange);
};

struct tls_client; /* tls_client.h */
struct exchange {
    struct arena arena;
    int64_t begin_us; /* monotonic */
    enum http_method method;
    struct text target; /* as sent; may hold a token: never to be logged */
    struct text segments[HTTP_SEGMENTS_MAX];
    size_t segment_count; /* decoded, without empty ones at the end */
    struct http_pair query[HTTP_QUERY_MAX];
    size_t query_count;
    struct text authorization, content_type, accept, origin, last_event_id, cookie;
    struct text accept_encoding, if_none_match, idempotency_key;
    struct text range, if_range;
    struct text upgrade, websocket_key, websocket_version, websocket_protocol; /* RFC 6455 */
    struct text address; /* of the client, numeric, as trusted proxies tell; "" when it did not come
                          * by the network */
    int64_t peer_uid;    /* HTTP_BY_SOCKET: of the client's process, told by the kernel; else -1 */
    const struct tls_client *certificate; /* of the client, not a bad one; NULL: none is wanted */
    int64_t body_length;                  /* announced; 0: there is none, -1: nobody knows */
    size_t body_max;                      /* HTTP_BODY_MAX, or what app.begin sets */
    struct buf body;
    bool is_body_too_big;       /* beyond body_max: must be answered with 413 */
    struct http_hold body_hold; /* given back with the body */
    struct http_reply reply;
    const struct exchange_port *port;
    void *port_state; /* of the edge */
    void *app_state;  /* of the app; lives in the arena or is freed by app.end */
};

/* An empty exchange, and the end of one with all that it owns, its stream included. */
void exchange_init(struct exchange *exchange);
void exchange_release(struct exchange *exchange);
/* The reply is made and app.end was called: the arena and the request's body are given back, and
 * with them everything but `reply`, whose headers are gone. */
void exchange_forget(struct exchange *exchange);

/* Cut the target into segments and query. ERR_INVALID: bad percent code, a NUL byte, an absolute
 * form that is not http; ERR_TOO_BIG: a limit. `target` must live as long as the exchange. */
int exchange_target(struct exchange *exchange, struct text target, struct err *err);

/* First value of a query key; at == NULL when absent. */
struct text exchange_query(const struct exchange *exchange, const char *name);

/* What the client's browser keeps for us under the name; at == NULL: nothing. */
struct text exchange_cookie(const struct exchange *exchange, const char *name);

/* One more header of the reply, or instead of the one that every reply has (Cache-Control,
 * X-Content-Type-Options); both strings as in struct http_reply. At most
 * HTTP_REPLY_HEADERS_MAX: more is a defect of ours and asserts. */
void exchange_header(struct exchange *exchange, const char *name, const char *value);

/* Keep the connection without a thread. After this, exactly one exchange_resume by any thread
 * (also the same one) makes the edge call app.resume. */
void exchange_suspend(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);

/* "a=1&b=2" into at most `room` pairs, ERR_TOO_BIG beyond. */
int http_form_parse(struct text text, struct arena *arena, struct http_pair *pairs, size_t room,
                    size_t *count, struct err *err);

struct http_server;
struct http_tls;
struct http_server_config {
    const char *listen;       /* "127.0.0.1:9186", "[::1]:9186", ":9186" (all addresses) */
    struct http_tls *tls;     /* of the network; NULL: plain. Must outlive the server */
    unsigned threads;         /* 0: one for each processor, 2 … 8; as many again for TLS */
    uint32_t request_ms;      /* 0: HTTP_REQUEST_MS; looked at once a second */
    uint32_t crowded_ms;      /* 0: HTTP_CROWDED_MS */
    uint32_t connections_max; /* of the network; 0: HTTP_CONNECTIONS_MAX */
    uint32_t idle_s;          /* 0: HTTP_IDLE_S */
    /* A folder: requests are taken from the socket DOOR/api in it as well, for targets that begin
     * with door_prefix alone; others get 403. At most HTTP_DOOR_MAX connections. NULL: none. */
    const char *door, *door_prefix;
    /* A folder, and the name of a socket in it for the users of this machine. NULL: none. */
    const char *socket_folder, *socket_name;
    /* Reverse proxies, whose X-Forwarded-For is believed: address_range_parse's texts. */
    const char *const *proxies;
    size_t proxy_count;
    uint32_t hsts_s; /* with TLS: browsers keep to it for so long; 0: they are not told */
    /* Origins ("https://portal.example.org") whose pages may read replies; "*": any. */
    const char *const *origins;
    size_t origin_count;
    struct http_app app;
};

/* The configuration's strings must outlive the server. ERR_INVALID: an address; ERR_IO: it cannot
 * be had (in use, not ours). */
int http_server_start(const struct http_server_config *config, struct http_server **server,
                      struct err *err);
/* Read every stream again that waits. Any thread. */
void http_server_wake(struct http_server *server);
/* Streams that want news read soon; what is news within a tenth of a second is read together. */
void http_server_news(struct http_server *server);
/* The port that is listened on (when 0 was asked for). */
uint16_t http_server_port(const struct http_server *server);
/* Take no new connections and cut the streams; requests under way go on. */
void http_server_drain(struct http_server *server);
/* Every suspended exchange must have been resumed. Waits for the threads. */
void http_server_stop(struct http_server *server);

struct http_server_counts {
    uint64_t connections, streams; /* now */
};
void http_server_count(struct http_server *server, struct http_server_counts *counts);

#endif
