/* node_metrics.h — what a node uses of its processors and its memory, as the resource metrics API
 * tells (metrics.k8s.io/v1beta1, served by metrics-server).
 *
 * Pure. A NodeMetrics object has the mean use of the processors over a window that ends at its
 * timestamp, and the working set of its memory then. Its timestamp is of the node's clock, which
 * may be another than ours: so a figure counts from when it was first seen, not from its timestamp,
 * and for NODE_METRICS_OLD_MS at most. It is a new one when its timestamp has moved on. One that is
 * a little older than what is known (another replica of the server has answered) is passed over;
 * one that is much older is of a clock that was set back. Of a node of which nothing was known a
 * figure that looks old is waited out: it may be that the node is not read any more.
 *
 * docs/rfc/0017-kubernetes-engine.md, "What nodes use".
 */
#ifndef ENGINE_KUBERNETES_NODE_METRICS_H
#define ENGINE_KUBERNETES_NODE_METRICS_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    NODE_METRICS_OLD_MS = 2 * 60 * 1000,
    NODE_METRICS_CPU_MAX = 1000 * 1000 * 1000, /* thousandths of a processor: a million of them */
};

/* One NodeMetrics object. */
struct node_metrics {
    struct text name; /* in the object's text */
    int64_t at_ms;    /* its timestamp, Unix */
    int64_t cpu_milli, memory_bytes;
};

/* False: it has no name, and nothing of it is known. *is_told: timestamp and both amounts are there
 * and can be; else only the name is. */
bool node_metrics_read(struct text object, struct node_metrics *metrics, bool *is_told);

/* Of one node, over time. Zeroed: nothing is known. */
struct node_use {
    int64_t at_ms;    /* the newest timestamp; 0: it was never told of */
    bool has_figure;  /* what follows counts, until it is old */
    int64_t taken_ms; /* by a clock that does not jump */
    int64_t cpu_milli, memory_bytes;
    uint64_t cpu_ns; /* summed up until then */
};

/* now_ms: of a clock that does not jump; unix_ms: of the machine's own. */
void node_use_take(struct node_use *use, const struct node_metrics *metrics, int64_t now_ms,
                   int64_t unix_ms);
/* Does the newest figure say something of now? */
bool node_use_is_known(const struct node_use *use, int64_t now_ms);
/* Processor time that was used until now: it grows evenly, and never falls. */
uint64_t node_use_cpu_ns(const struct node_use *use, int64_t now_ms);

#endif
