/* websocket.h — messages over a connection that has been upgraded (RFC 6455), either side.
 *
 * Edge, over wslay. The bytes go through two functions of the caller's, so that it does not matter
 * what carries them (a socket, TLS, a test). Nothing blocks. Pings are answered by themselves; who
 * sends them and does not read the answers is not read from any more, so that they do not pile up.
 * A message has at most WEBSOCKET_MESSAGE_MAX bytes: who sends more is told so and cut off.
 */
#ifndef SYS_WEBSOCKET_H
#define SYS_WEBSOCKET_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;

enum {
    WEBSOCKET_MESSAGE_MAX = 64 << 10,
    WEBSOCKET_KEY_SIZE = 25,    /* a client's key: the base64 of 16 bytes, and its NUL */
    WEBSOCKET_ACCEPT_SIZE = 29, /* the server's answer to it */
};

/* RFC 6455, 7.4.1 */
enum {
    WEBSOCKET_CLOSE_NORMAL = 1000,
    WEBSOCKET_CLOSE_GOING_AWAY = 1001,
    WEBSOCKET_CLOSE_ABNORMAL = 1006, /* never sent: the connection ended without a word */
    WEBSOCKET_CLOSE_POLICY = 1008,
};

enum { WEBSOCKET_LATER = -1, WEBSOCKET_BROKEN = -2 };
struct websocket_ops {
    void *context;
    /* The number of bytes; WEBSOCKET_LATER: none now; WEBSOCKET_BROKEN: at its end, or failed. */
    ssize_t (*read)(void *context, void *bytes, size_t size);
    ssize_t (*write)(void *context, const void *bytes, size_t size);
    void (*message)(void *context, bool is_text, struct text message);
};

struct websocket;

struct websocket *websocket_new(const struct websocket_ops *ops, bool is_client);
void websocket_free(struct websocket *websocket); /* NULL is fine */

/* Read and write what can be now, but read no more than a part when much comes, so that the caller
 * can look at other things. False: it is over; both sides have said so, or it broke. */
bool websocket_work(struct websocket *websocket);
/* Was it only a part? Then call again without waiting: poll need not tell of the rest. */
bool websocket_wants_turn(const struct websocket *websocket);
/* What poll should wait for else: POLLIN, where the caller `reads`, and POLLOUT. */
short websocket_events(const struct websocket *websocket, bool reads);
/* Is there something to write that the connection did not take? */
bool websocket_is_behind(const struct websocket *websocket);
size_t websocket_queued(const struct websocket *websocket); /* bytes */

/* Each is sent by the next websocket_work; after a close nothing is. */
void websocket_send(struct websocket *websocket, bool is_text, struct text message);
void websocket_ping(struct websocket *websocket);
void websocket_close(struct websocket *websocket, unsigned code, const char *reason);

/* Why the other side closed it; WEBSOCKET_CLOSE_ABNORMAL when it did not say. */
unsigned websocket_close_code(const struct websocket *websocket);

/* A new key; a server's answer to one. */
void websocket_key(char key[WEBSOCKET_KEY_SIZE]);
void websocket_accept(struct text key, char accept[WEBSOCKET_ACCEPT_SIZE]);

/* Of a client: the headers by which its request asks for a WebSocket. */
void websocket_ask(struct buf *out, const char *key, const char *protocol);
/* What the head of a reply says of that: its status, 0 when it has none, and whether it is the
 * answer to this key. */
struct websocket_answer {
    int64_t status;
    bool is_open;
};
struct websocket_answer websocket_answer(struct text head, const char *key);
/* The value of a header in the head of a reply; at NULL: it is not there. */
struct text websocket_header(struct text head, const char *name);

#endif
