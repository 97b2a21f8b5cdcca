/* pod_network.h — whose network the pods are in, and whose user ids they have.
 *
 * Pure. The tables are in docs/rfc/0017-kubernetes-engine.md, "Whose network a pod is in".
 */
#ifndef ENGINE_KUBERNETES_POD_NETWORK_H
#define ENGINE_KUBERNETES_POD_NETWORK_H
#include <stdbool.h>
#include <stddef.h>

struct err;

enum kube_network {
    KUBE_NETWORK_HOST, /* that of their nodes */
    KUBE_NETWORK_POD,  /* the cluster's: each has an address of its own */
};

/* With KUBE_NETWORK_POD. */
enum kube_users {
    KUBE_USERS_OFF,      /* those of their nodes */
    KUBE_USERS_AUTO,     /* their own, on nodes whose runtime can */
    KUBE_USERS_REQUIRED, /* the same, and other nodes get no tasks */
};

struct pod_network {
    enum kube_network mode;
    enum kube_users users;
    /* virtual clusters whose tasks are in the network of their nodes all the same; "*": all */
    const char *const *host_clusters;
    size_t host_cluster_count;
};

/* ERR_INVALID: what is said does not go together. */
int pod_network_check(const struct pod_network *network, struct err *err);

/* Is a task of this virtual cluster in the network of its node? "": of none. */
bool pod_network_is_host(const struct pod_network *network, const char *virtual_cluster);

/* Has its pod user ids of its own, on a node whose runtime can or cannot? */
bool pod_network_has_own_users(const struct pod_network *network, const char *virtual_cluster,
                               bool can_node);

#endif
