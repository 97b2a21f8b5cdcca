/* unstored.h — nodes of which the store refuses the row, now and later.
 *
 * Private to server: the core thread's. What becomes due of a node by itself (its failures have
 * decayed) is written with whatever is stored next, so that everybody's requests would be refused
 * with it; and what happens at it (a task has failed, it is away) must not be lost with its row. So
 * the row of such a node is left out of what is stored, and stays as it was, while the core goes on
 * with the node as it is. It is tried again every minute. A core that is made anew begins with what
 * the row says, and is told what the engine has said since. After a restart the same is found
 * again.
 */
#ifndef SERVER_UNSTORED_H
#define SERVER_UNSTORED_H
#include "base/map.h"
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output;
struct server;
struct server_mail;

struct unstored {
    struct node_id *items;
    size_t count, room;
    struct id_map at;   /* number of a node → its place in `items` */
    int64_t retry_ms;   /* monotonic */
    uint64_t told_core; /* core_thread.cores, of the one that was told last */
};

void unstored_release(struct unstored *unstored);

/* The store has refused the output of the core thread (ERR_INTERNAL). True: nodes of it are left
 * out from now on that were not before; try again, with a core made of the rows. One that is not
 * stored yet is none of them. */
bool unstored_find(struct server *server);

/* The core thread's output as it is to be stored. Valid as long as that is, and until its scratch
 * is cleared. */
const struct output *unstored_pass(struct server *server);

/* What engines said last of these nodes, for a core that has been made of the rows. NULL: nothing,
 * or it has been told (told_core, which the caller sets). */
struct server_mail *unstored_told(struct server *server);

/* Is the row of a node to be tried again now? There is a core, which is not in the midst of a
 * round. */
void unstored_retry(struct server *server);

#endif
