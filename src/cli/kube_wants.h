/* kube_wants.h — which cluster is looked at, and what Skep wants of it.
 *
 * Edge: reads the options, and the server's configuration when one is named.
 */
#ifndef CLI_KUBE_WANTS_H
#define CLI_KUBE_WANTS_H
#include "kube/access.h"
#include <stdint.h>

struct arena;
struct cli;

/* engine.kubernetes.nodeReserve */
struct kube_reserve {
    int64_t cpu, memory_mib, pods;
};

enum kube_way { KUBE_WAY_DEVICE_PLUGIN, KUBE_WAY_ENV, KUBE_WAY_DRA };

struct kube_wants { /* strings live in the arena, or in the command line */
    struct kube_access access;
    const char *space;
    const char *account_space, *account; /* whose rights; NULL: of who asks */
    const char *selector;                /* "": all nodes */
    enum kube_way way;
    bool needs_gpus; /* they are named, so that it is wrong when there are none */
    const char *gpu_resource, *taint;
    struct kube_reserve reserve;
    const char *device_driver, *device_class;                     /* KUBE_WAY_DRA */
    const char *infiniband_resource;                              /* "": none is wanted */
    const char *runtime_class, *priority_class, *service_account; /* "": none */
    bool has_metrics;                                             /* nodeMetrics is not off */
    bool has_template;                                            /* the engine has a podTemplate */
    bool is_in_pod_network;                                       /* network: pod */
    const char *users;                                            /* userNamespaces; "off" */
};

/* 0, or an exit code after a message. */
int kube_wants_read(const struct cli *cli, struct arena *arena, struct kube_wants *wants);

#endif
