/* network_pool.h — networks made ahead of time: making one takes the kernel some milliseconds, of
 * which a task that starts should not wait.
 *
 * Edge, internal to network.c; thread-safe. A thread of its own makes them, eight at a time once
 * half of them are taken. Nobody has been in one that the pool gives. When there are none, or the
 * pool cannot make any, its user makes one by network_make.
 */
#ifndef ENGINE_LOCAL_NETWORK_POOL_H
#define ENGINE_LOCAL_NETWORK_POOL_H
#include "sys/netlink.h"
#include <stdatomic.h>
#include <stdbool.h>

struct network_pool;

/* Where networks are made. */
struct network_space {
    const char *subnet;    /* in words */
    uint32_t first, count; /* addresses that may be given: behind the machine's own */
    _Atomic uint32_t next; /* looked at next, from 0: one that was given just now comes last */
    uint32_t group;        /* of the links */
    int host_fd;           /* the machine's network namespace */
};

/* A namespace with its link up and its routes made, and no process in it. */
struct network_made {
    uint32_t address;
    int namespace_fd, link; /* link: index of the machine's end, > 0 */
};

/* `route` is a socket of NETLINK_ROUTE in the machine's network. ERR_TOO_BIG: no address is free.
 */
int network_make(struct network_space *space, struct netlink *route, struct network_made *made,
                 struct err *err);
void network_link_name(const struct network_space *space, uint32_t address, char name[16]);

/* `space` must outlive the pool. */
int network_pool_new(struct network_space *space, struct network_pool **pool, struct err *err);
/* Removes those that nobody took. */
void network_pool_free(struct network_pool *pool);

/* False: none is ready. */
bool network_pool_take(struct network_pool *pool, struct network_made *made);

#endif
