/* node_object.h — a Node of the Kubernetes API as the facts that Skep places by.
 *
 * Pure. What a node offers is its allocatable, what kubelet admits pods against, without a reserve
 * for pods that tolerate every taint. Whoever else may put pods there must be kept away by a taint
 * that Skep's pods tolerate; requests are not counted (docs/rfc/0017-kubernetes-engine.md).
 */
#ifndef ENGINE_KUBERNETES_NODE_OBJECT_H
#define ENGINE_KUBERNETES_NODE_OBJECT_H
#include "model/node.h"

struct arena;
struct doc;
struct err;

/* How a pod gets the GPUs that were chosen for it. */
enum kube_gpus {
    KUBE_GPUS_PLUGIN, /* so many of the extended resource: the device plugin chooses them */
    KUBE_GPUS_ENV,    /* NVIDIA_VISIBLE_DEVICES with their indices; nothing is requested */
    KUBE_GPUS_DRA,    /* a ResourceClaim with them: what there is, slices.h says */
};

/* Of each node, for pods that are not Skep's. */
struct node_reserve {
    uint32_t cpu, pods;
    uint64_t memory_mib;
};

struct node_rules {
    enum kube_gpus gpus;
    const char *gpu_resource;    /* "nvidia.com/gpu": how many, in allocatable */
    const char *gpu_count_label; /* the same where no plugin tells it, with KUBE_GPUS_ENV */
    const char *gpu_type_label;  /* "nvidia.com/gpu.product": the SKU */
    const char *taint;           /* by its key; pods of Skep tolerate it. "": none */
    struct node_reserve reserve;
    /* of the runtime that must give pods user ids of their own, "": the default one; NULL: it need
     * not */
    const char *users_handler;
};

enum { NODE_OBJECT_GPUS_MAX = 4096 };

/* With KUBE_GPUS_DRA it has no GPUs here, and a type for those of which no slice tells it.
 * Everything lives in `arena` or in the document. A node that takes no pods now is not healthy, and
 * `reason` says why. ERR_INVALID: it has no name, or its amounts cannot be read. */
int node_object_read(const struct doc *node, const struct node_rules *rules, struct arena *arena,
                     struct node_facts *facts, struct err *err);

/* Does its kubelet offer any of this extended resource? One that is not offered at all is passed
 * over by the kubelet: the pod would start without it. */
bool node_object_offers(const struct doc *node, const char *resource);

/* How many pods of Skep's its kubelet takes at a time; UINT32_MAX: it does not say. */
uint32_t node_object_pods(const struct doc *node, const struct node_reserve *reserve);

/* Does its runtime, by the name of the handler ("": the default one), give pods user ids of their
 * own? Kubelets tell it since Kubernetes 1.31. */
bool node_object_has_own_users(const struct doc *node, const char *handler);

/* Its kubelet has told nothing for so long that the cluster does not know whether it is ready. */
bool node_object_is_silent(const struct doc *node);

#endif
