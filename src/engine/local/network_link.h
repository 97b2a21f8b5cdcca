/* network_link.h — the namespace and the link of one network: a veth pair between the machine and a
 * network namespace.
 *
 * Edge, internal to network.c. The machine routes the one address through the link; nothing is
 * bridged, so that no task shares an Ethernet with another.
 */
#ifndef ENGINE_LOCAL_NETWORK_LINK_H
#define ENGINE_LOCAL_NETWORK_LINK_H
#include "sys/netlink.h"

struct network_link {
    char name[16];             /* of the machine's end */
    uint32_t address, gateway; /* host byte order */
    uint32_t group;            /* of interfaces: what the rules know it by */
};

/* A new network namespace, and a socket in it. The calling thread is in `host_fd` afterwards, as it
 * was before. */
int network_namespace_make(int host_fd, int *namespace_fd, struct netlink *inside, struct err *err);

/* The pair between the namespaces of the two sockets (that of `host` is host_fd as well), its
 * addresses and routes. Returns the index of the machine's end (> 0); 0: the name or
 * the address is taken; ERR_*. */
int network_link_make(const struct network_link *link, struct netlink *host, struct netlink *inside,
                      int namespace_fd, struct err *err);

/* Nothing leads to the address any more. The link goes with its namespace: removing one takes the
 * kernel tens of milliseconds, many at once hardly more. 0 also when there was no route. */
int network_link_retire(struct netlink *host, int index, uint32_t address, struct err *err);

/* The other end goes with it. 0 also when it was not there. */
int network_link_drop(struct netlink *host, int index, struct err *err);

#endif
