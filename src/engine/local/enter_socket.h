/* enter_socket.h — the engine's end of the socket by which skep-init tells how a program beside the
 * task's own gets on (init/layout.h).
 *
 * Whoever has the task's user id may get hold of the other end: so any message may come by it, any
 * number of them, and any descriptor with each.
 */
#ifndef ENGINE_LOCAL_ENTER_SOCKET_H
#define ENGINE_LOCAL_ENTER_SOCKET_H
#include <stdbool.h>
#include <sys/types.h>

enum {
    ENTER_MESSAGE_SIZE = 2,
    ENTER_MESSAGES_MAX = 8, /* skep-init sends three; more, and its end counts as closed */
};

struct enter_socket {
    int fd; /* does not block; the owner's */
    unsigned messages;
    bool has_code, is_ending;
    int code;
};

/* One message: its length, 0 at the end, -1 when there is none now. `fd` is the descriptor that
 * came with it, the caller's, or -1. When several came, or more would not fit, none is kept. */
ssize_t enter_socket_take(struct enter_socket *socket, char bytes[ENTER_MESSAGE_SIZE], int *fd);

/* Is the other end closed? Notes what it has told until then; descriptors are not wanted. */
bool enter_socket_is_over(struct enter_socket *socket);

#endif
