/* claim.h — the ResourceClaim of an attempt: the devices that Skep chose, for its pod alone.
 *
 * Pure. docs/rfc/0017-kubernetes-engine.md, "GPUs as claims". It is called as its pod, which owns
 * it; Skep writes the allocation and the reservation at once, as a scheduler would.
 */
#ifndef ENGINE_KUBERNETES_CLAIM_H
#define ENGINE_KUBERNETES_CLAIM_H
#include "engine/kubernetes/pod_make.h"
#include "model/ids.h"

struct buf;
struct device_pick;
struct doc;

/* What the pod, its container and the claim call the request. */
#define CLAIM_REQUEST "gpus"

struct claim_of {
    struct attempt_id attempt;
    const char *node, *pod_uid;
    const struct device_pick *pick;
};

enum claim_sight {
    CLAIM_BARE,    /* it is the pod's, and has no devices yet, or is not reserved */
    CLAIM_READY,   /* it is allocated, and reserved for the pod */
    CLAIM_FOREIGN, /* it is of somebody else, or reserved for another pod */
};

/* Append as JSON: what is created; and its status then, of the object that was answered. */
void claim_write(const struct claim_of *of, const struct pod_settings *settings, struct buf *out);
void claim_status_write(const struct claim_of *of, const struct pod_settings *settings,
                        const struct doc *claim, struct buf *out);

enum claim_sight claim_read(const struct doc *claim, const char *instance,
                            struct attempt_id attempt, const char *pod_uid);

#endif
