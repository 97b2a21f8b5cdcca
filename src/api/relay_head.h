/* relay_head.h — heads of HTTP/1.1 messages on their way between a browser and a port of a task.
 *
 * Pure. A head is parsed strictly and written anew: two programs that read the same bytes
 * differently could be made to see different requests (RFC 9112, 11.2). What one hop says to the
 * next is taken out (RFC 9110, 7.6.1), and all that a task could take for our word, or that is good
 * for more than its port. Everything parsed is borrowed from the bytes.
 */
#ifndef API_RELAY_HEAD_H
#define API_RELAY_HEAD_H
#include "base/text.h"
#include <stdint.h>

struct buf;
struct err;

enum { RELAY_HEAD_MAX = 64 << 10, RELAY_HEADERS_MAX = 128 };
/* Cookies of this beginning, and of "__Host-" before it, are ours: no task sees or sets one. */
#define RELAY_COOKIE_PREFIX "skep-"

struct relay_headers {
    struct {
        struct text name, value;
    } items[RELAY_HEADERS_MAX];
    size_t count;
};

/* Bytes of the head with its empty line; 0: it is not whole. */
size_t relay_head_length(struct text bytes);

struct relay_request {
    struct text method, target, path; /* the path: of the target, as sent, without its query */
    struct text host, origin;         /* origin.at == NULL: none */
    struct text fetch_site, fetch_mode, fetch_dest; /* Fetch Metadata; at == NULL: not told */
    int64_t length;                                 /* of the body */
    bool is_websocket;                              /* asks for one */
    bool expects_continue;
    struct relay_headers headers;
};

/* 0, or the status that refuses it: 400; 411: a body without its length; 417; 431: too many
 * headers; 501: another protocol is asked for; 505: not HTTP/1.1. */
int relay_request_parse(struct text head, struct relay_request *request, struct err *err);
/* The value of a cookie; at == NULL: there is none. */
struct text relay_request_cookie(const struct relay_request *request, const char *name);
/* The value of a key of the query, as sent; at == NULL: there is none. */
struct text relay_request_query(const struct relay_request *request, const char *name);
/* May it be answered, as coming from `origin` ("https://ID.example.org")? A page of another origin
 * may lead a browser there, and nothing else: names below one domain are one site to browsers, so
 * SameSite keeps no task's page from using another's cookies. */
bool relay_request_is_own(const struct relay_request *request, const char *origin);
/* As the task gets it, on behalf of `user` (printable). */
void relay_request_write(const struct relay_request *request, bool is_secure, const char *user,
                         struct buf *out);

struct relay_reply {
    int status;
    struct text reason;
    struct relay_headers headers;
};

/* ERR_INVALID: it is none of HTTP/1. */
int relay_reply_parse(struct text head, struct relay_reply *reply, struct err *err);
/* As the browser gets it; then follows the body as it comes. */
void relay_reply_write(const struct relay_reply *reply, struct buf *out);

#endif
