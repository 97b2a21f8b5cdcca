/* rights.h — what Skep's account may and must be allowed to in a cluster, and nothing beyond it.
 *
 * Pure. The same as deploy/kubernetes/rights.yaml and rights-dra.yaml; a test compares them.
 */
#ifndef KUBE_RIGHTS_H
#define KUBE_RIGHTS_H
#include <stdbool.h>
#include <stddef.h>

struct kube_right {
    const char *resource; /* "pods", "pods/log" */
    const char *group;    /* "": the core's */
    const char *verbs;    /* apart by a space */
    bool is_of_cluster;   /* else of the namespace of the pods */
    bool is_for_claims;   /* needed with gpus: dra only, and in rights-dra.yaml */
    bool is_for_metrics;  /* needed with nodeMetrics alone */
    bool can_lack;        /* everything else works without it */
    const char *without;  /* what does not work without it: a sentence */
};

extern const struct kube_right KUBE_RIGHTS[];
extern const size_t KUBE_RIGHT_COUNT;

#endif
