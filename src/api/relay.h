/* relay.h — the relay: browsers' connections to ports of tasks, on origins of their own.
 *
 * Edge. A listener of its own, and one thread for all connections. Each connection carries one
 * request: its head is read and written anew (relay_head.h), its session looked up (web_ports.h),
 * and its bytes go to the port that the session names, over the engine's `connect`, and nowhere
 * else. What comes after a request's body is not read. A WebSocket is a pipe of bytes once the task
 * has answered 101. docs/rfc/0018-web-ports.md says why it is so.
 *
 * A browser comes in by GET /.skep/enter?ticket=…, and gets a cookie for its host alone; every
 * other path below /.skep/ is refused. Whether who has it still may (opener.h) is looked at with
 * each request, and every OPENER_LOOK_S while it lasts.
 */
#ifndef API_RELAY_H
#define API_RELAY_H
#include "api/web_ports.h"
#include "base/origin.h"
#include <netinet/in.h>
#include <sys/socket.h>

struct err;
struct relay;
struct service;

enum {
    RELAY_CONNECTIONS_MAX = 1024,
    RELAY_USER_CONNECTIONS_MAX = 64,
    RELAY_STRANGERS_MAX = 256, /* of one relay_origin, without a session yet */
    RELAY_BLOCK = 64 << 10,    /* bytes on their way in one direction */
    RELAY_HEAD_S = 30,         /* until a request's head is whole */
    RELAY_CONNECT_S = 10,
    RELAY_IDLE_S = 3600, /* without a byte in either direction */
};

struct relay_config {
    const char *listen;           /* "127.0.0.1:9187" */
    struct origin_pattern origin; /* as browsers see it */
    bool has_tls;                 /* the certificate of http_tls.h is shown; must outlive it */
    struct web_ports *ports;      /* must outlive it, and the service */
    struct service *service;
};

/* Errors of http_door_listen and relay_tls_new. */
int relay_start(const struct relay_config *config, struct relay **relay, struct err *err);
uint16_t relay_port(const struct relay *relay); /* that is listened on */
/* Every connection is closed. Before the engines. NULL is fine. */
void relay_stop(struct relay *relay);

/* Who is counted as one: the address, IPv4 as its IPv6 form; of another IPv6 address its first
 * half, as one who has a /64 has all its addresses. All zero: not of the internet. */
struct in6_addr relay_origin(const struct sockaddr *from, socklen_t length);

#endif
