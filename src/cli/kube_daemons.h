/* kube_daemons.h — what pods of DaemonSets request of a node: no taint of Skep's keeps those away
 * that tolerate every taint, and their requests count when its kubelet admits a task.
 */
#ifndef CLI_KUBE_DAEMONS_H
#define CLI_KUBE_DAEMONS_H
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct kube_daemons {
    int64_t cpu_milli, memory; /* in thousandths of a processor; bytes */
    size_t pods;
};

/* Of the list of DaemonSets, those that come to a node with these labels and this taint; NULL: it
 * has none. Who is kept away by an affinity is counted. */
struct kube_daemons kube_daemons_of(const json_t *sets, const json_t *labels, const char *taint);

#endif
