/* http_door.h — the socket by which tasks of this machine ask the server: a file in a folder that
 * is mounted into their containers, so that they need no network to it.
 *
 * Edge. A thread takes the connections and gives them to the HTTP server's own.
 */
#ifndef API_HTTP_DOOR_H
#define API_HTTP_DOOR_H
#include <stdbool.h>

struct err;
struct http_door;

struct http_door_ops {
    void *context;
    /* A connection; the receiver's. */
    void (*take)(void *context, int fd);
};

/* The socket `name` in `folder`, open to every process that can see it; one that was there is
 * replaced. ERR_IO. */
int http_door_open(const char *folder, const char *name, const struct http_door_ops *ops,
                   struct http_door **door, struct err *err);
/* Takes no more and waits for the thread. NULL is fine; the file stays. */
void http_door_close(struct http_door *door);

#endif
