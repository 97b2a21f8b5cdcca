/* http_door.h — a place where connections come in: an address of the network, or a socket file.
 *
 * Edge. A thread of its own takes the connections and gives them away. libmicrohttpd is not left to
 * listen: its threads and the one that ends the listening both take the socket out of the same
 * epoll, and when both do, it aborts the program (0.9.75).
 */
#ifndef API_HTTP_DOOR_H
#define API_HTTP_DOOR_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct err;
struct http_door;

/* Both are called by the door's thread. */
struct http_door_ops {
    void *context;
    /* False: whoever comes now waits in the kernel's queue, and is looked for again in 100 ms. */
    bool (*has_room)(void *context);
    /* A connection; the receiver's. `from`: the client's address. */
    void (*take)(void *context, int fd, const struct sockaddr *from, socklen_t length);
};

/* At "127.0.0.1:9186", "[::1]:9186" or ":9186" (all addresses); *port is the real one when 0 was
 * asked for. ERR_INVALID: the address; ERR_IO: it cannot be had. */
int http_door_listen(const char *address, const struct http_door_ops *ops, struct http_door **door,
                     uint16_t *port, struct err *err);
/* The socket `name` in `folder`, open to every process that can see it; one that was there is
 * replaced. ERR_IO. */
int http_door_open(const char *folder, const char *name, const struct http_door_ops *ops,
                   struct http_door **door, struct err *err);
/* Takes no more and waits for the thread. NULL is fine; a socket file stays. */
void http_door_close(struct http_door *door);

#endif
