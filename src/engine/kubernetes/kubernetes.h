/* kubernetes.h — the engine that runs tasks as pods of a Kubernetes cluster.
 *
 * Edge. docs/rfc/0017-kubernetes-engine.md says what a pod is to Skep. One thread asks the API
 * server and tells what has become of nodes and attempts; the doors of the port only note what is
 * wanted. What runs is in the cluster, what is wanted in the server's store; on disk are the logs.
 */
#ifndef ENGINE_KUBERNETES_KUBERNETES_H
#define ENGINE_KUBERNETES_KUBERNETES_H
#include "engine/engine.h"
#include "engine/kubernetes/node_object.h"
#include "engine/kubernetes/pod_network.h"

struct err;

struct engine_kubernetes_config {
    const char *kubeconfig, *context; /* NULL: as a pod of the cluster; its current context */
    const char *space;                /* the namespace of its pods; NULL: the context's */
    const char *instance;             /* what its pods' names begin with; NULL: "skep" */
    const char *node_selector;        /* of the labels of its nodes, "a=b,c"; NULL: all nodes */
    const char *init_image;           /* has /usr/lib/skep/skep-init and /bin/sh */
    const char *api_url;              /* the server's, as its pods reach it; NULL: not at all */
    const char *runtime_class, *priority_class, *service_account; /* NULL: none */
    const char *pod_template;        /* path of a part of a Pod that each pod gets; NULL: none */
    const char *infiniband_resource; /* an extended resource of the nodes that have it; NULL */
    struct pod_network network;
    const char *taint; /* NULL: ENGINE_KUBERNETES_TAINT */
    struct node_reserve node_reserve;
    const char *gpu_resource, *gpu_type_label; /* NULL: NVIDIA's */
    enum kube_gpus gpus;
    const char *device_driver, *device_class; /* KUBE_GPUS_DRA; NULL: KUBE_DEVICE_DRIVER */
    const char *gpu_type_attribute;           /* likewise; NULL: KUBE_TYPE_ATTRIBUTE */
    const char *directory; /* for logs and what must outlive a restart; NULL: no logs are kept */
    uint64_t log_segment_mib, log_keep_mib; /* 0: as the local engine's */
    int64_t log_keep_s;
    uint16_t gpu_metrics_port;    /* where DCGM's exporter is on each node; 0: it is not asked */
    const char *gpu_metrics_path; /* NULL: KUBE_GPU_METRICS_PATH */
    bool is_node_metrics_off;     /* the resource metrics API is not asked what nodes use */
    uint32_t node_lost_s; /* a node that is silent for so long is lost; 0: KUBE_NODE_LOST_S */
};

/* Those of dcgm-exporter. */
#define KUBE_GPU_METRICS_PATH "/metrics"
enum { KUBE_GPU_METRICS_PORT = 9400 };

#define ENGINE_KUBERNETES_TAINT "skep.internal/dedicated"

/* NVIDIA's. */
#define KUBE_DEVICE_DRIVER  "gpu.nvidia.com"
#define KUBE_TYPE_ATTRIBUTE "productName"

/* Beside the 50 s after which a cluster says that a node is silent. A kubelet that begins anew
 * takes less; the cluster itself waits five minutes before it deletes the node's pods. */
enum { KUBE_NODE_LOST_S = 120 };

/* Everything is copied. It begins to follow the cluster at once; `list` waits until that is known.
 * ERR_INVALID, ERR_NOT_FOUND, ERR_UNSUPPORTED: what is wrong in the configuration or in the
 * kubeconfig; ERR_UNAVAILABLE: no thread, or no pod and no kubeconfig. */
int engine_kubernetes_new(const struct engine_kubernetes_config *config, struct engine_sink sink,
                          struct engine **engine, struct err *err);

#endif
