/* played_node.h — a node that a test plays behind its API server, by the channels of a WebSocket.
 */
#ifndef TEST_KUBERNETES_PLAYED_NODE_H
#define TEST_KUBERNETES_PLAYED_NODE_H
#include <stddef.h>

#include "base/buf.h"
#include "played.h"

struct websocket;

struct node {
    int fd;
    struct websocket *websocket;
    struct buf bytes; /* that came by channel 0: data, input */
};

/* Takes the next request, which begins so and asks for this protocol, and answers 101. */
void node_answer(const struct played *server, const char *line, const char *protocol,
                 struct node *node);
void node_close(struct node *node);

void node_poll(const struct node *node);          /* until something can be done */
void node_hear(struct node *node, size_t length); /* until so many bytes have come */
void node_hear_all(struct node *node);            /* until the connection is closed */
/* A message, its channel first; until all of it has gone. */
void node_say(struct node *node, const char *bytes, size_t length);
#define NODE_SAY(node, bytes) node_say((node), (bytes), sizeof(bytes) - 1)

/* --- more than is taken at once --- */

enum { FLOOD_PART = 32 << 10 };

char flood_byte(size_t at);
/* One part more of `all` by this channel, when what was said before has gone; so much is said. */
size_t node_flood(struct node *node, char channel, size_t said, size_t all);
/* What has come, which must be the flood's bytes from `heard` on; so much has been heard. */
size_t flood_take(int fd, size_t heard);

void say(int fd, const char *text); /* as it is */

#endif
