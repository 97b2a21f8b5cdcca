/* unstored.h — nodes of which the store refuses the row, now and later.
 *
 * Private to server: the core thread's. What becomes due of a node by itself (its failures have
 * decayed) is written with whatever is stored next, so that everybody's requests would be refused
 * with it. So the row of such a node is left out of what is stored, and stays as it was, while the
 * core goes on with the node as it is. It is tried again every minute. After a restart the core has
 * what the row says, and finds the same again.
 */
#ifndef SERVER_UNSTORED_H
#define SERVER_UNSTORED_H
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output;
struct server;

struct unstored {
    struct node_id *items;
    size_t count, room;
    int64_t retry_ms; /* monotonic */
};

void unstored_release(struct unstored *unstored);

/* The store has refused the output of the core thread (ERR_INTERNAL), which no mail and no job is
 * to blame for. True: a node of it is left out from now on; try again, with a core made of the
 * rows. */
bool unstored_find(struct server *server);

/* The core thread's output as it is to be stored. Valid as long as that is, and until its scratch
 * is cleared. */
const struct output *unstored_pass(struct server *server);

/* Is the row of a node to be tried again now? There is a core, which is not in the midst of a
 * round. */
void unstored_retry(struct server *server);

#endif
