/* pod_make.h — an attempt as a pod, and as the secret that holds its files.
 *
 * Pure. The pod's node is named in it (docs/rfc/0017-kubernetes-engine.md says why), and it is
 * never started again by the cluster: trying again is Skep's business.
 */
#ifndef ENGINE_KUBERNETES_POD_MAKE_H
#define ENGINE_KUBERNETES_POD_MAKE_H
#include "engine/kubernetes/node_object.h"
#include "engine/kubernetes/pod_network.h"

struct buf;
struct container;
struct doc;
struct err;

struct pod_settings {
    const char *instance, *space; /* whose pods they are, and in which namespace */
    const char *init_image;       /* has skep-init at /usr/lib/skep/skep-init, and /bin/sh */
    const char *runtime_class, *priority_class; /* "" none */
    const char *service_account;                /* "" the namespace's own */
    const char *infiniband_resource;            /* "" no InfiniBand is offered */
    const struct doc *template_;                /* pod_template.h; NULL: none */
    uint64_t
        log_mib; /* of the volume with its logs' segments: a pod with more is evicted; 0: any */
    const char *device_class; /* of the claims, with KUBE_GPUS_DRA */
    struct node_rules nodes;
    struct pod_network network;
    bool has_own_users; /* of this one pod: its user ids are nobody's on the node */
};

enum { POD_GRACE_S = 30, POD_SECRET_MAX = 1 << 20 };

/* What no pod can be made for yet. ERR_UNSUPPORTED: it needs what this engine does not offer;
 * ERR_TOO_BIG: its files are more than a secret takes. Nothing is written before. */
int pod_check(const struct container *container, const struct pod_settings *settings,
              struct err *err);

/* Append the object as JSON. The container has passed pod_check. `devices`: it names its claim, and
 * notes them (devices.h); NULL: it has none. */
void pod_write(const struct container *container, const struct pod_settings *settings,
               const char *devices, struct buf *out);
/* Holds secrets: the buffer must be wiped. */
void pod_secret_write(const struct container *container, const struct pod_settings *settings,
                      struct buf *out);

#endif
