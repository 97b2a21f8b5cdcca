/* pod_gpus.h — which GPUs a pod of Skep's has, and whose task it is, as its object says.
 *
 * Pure. The object is the one witness that is there after a restart as well. With
 * KUBE_GPUS_PLUGIN the device plugin chooses, and the object tells only how many.
 */
#ifndef ENGINE_KUBERNETES_POD_GPUS_H
#define ENGINE_KUBERNETES_POD_GPUS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doc;
struct node_rules;

struct pod_gpus {
    char *job, *role; /* "user~job" */
    uint32_t task_index;
    size_t count;
    uint16_t *indices; /* in Skep's numbers; NULL with KUBE_GPUS_PLUGIN */
};

/* `devices`: what its claim has, as devices.h writes it; NULL: it has none. NULL: the pod has no
 * GPUs, or they are written in another way than the rules say. The caller's, for pod_gpus_free. */
struct pod_gpus *pod_gpus_read(const struct doc *pod, const struct node_rules *rules,
                               const char *devices);
void pod_gpus_free(struct pod_gpus *gpus); /* NULL is fine */
/* By its number. With KUBE_GPUS_PLUGIN it has none of which that is known. */
bool pod_gpus_have(const struct pod_gpus *gpus, uint16_t index);

#endif
