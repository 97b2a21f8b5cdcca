#include "engine/kubernetes/pod_network.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

int pod_network_check(const struct pod_network *network, struct err *err)
{
    if (network->mode == KUBE_NETWORK_HOST && network->users != KUBE_USERS_OFF)
        return err_fail(err, ERR_INVALID, "engine.kubernetes.userNamespaces",
                        "a pod in its node's network has no user ids of its own: it needs "
                        "network: pod");
    if (network->mode == KUBE_NETWORK_HOST && network->host_cluster_count > 0)
        return err_fail(err, ERR_INVALID, "engine.kubernetes.hostNetwork",
                        "all pods are in their node's network: it is an exception from network: "
                        "pod");
    if (network->users == KUBE_USERS_REQUIRED && network->host_cluster_count > 0)
        return err_fail(err, ERR_INVALID, "engine.kubernetes.hostNetwork",
                        "a pod in its node's network has no user ids of its own, which "
                        "userNamespaces: required asks for");
    return 0;
}

bool pod_network_is_host(const struct pod_network *network, const char *virtual_cluster)
{
    assert(virtual_cluster);
    bool is_host = network->mode == KUBE_NETWORK_HOST;
    for (size_t i = 0; i < network->host_cluster_count && !is_host; i++)
        is_host = strcmp(network->host_clusters[i], "*") == 0 ||
                  strcmp(network->host_clusters[i], virtual_cluster) == 0;
    return is_host;
}

bool pod_network_has_own_users(const struct pod_network *network, const char *virtual_cluster,
                               bool can_node)
{
    return network->users != KUBE_USERS_OFF && can_node &&
           !pod_network_is_host(network, virtual_cluster);
}
