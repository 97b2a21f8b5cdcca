/* cluster.h — virtual clusters that are closed: nothing of them starts until they are opened.
 *
 * Pure. What a virtual cluster has is the placer's; see hived/ and placement/.
 */
#ifndef MODEL_CLUSTER_H
#define MODEL_CLUSTER_H
#include "model/node.h"
#include <stddef.h>

struct arena;

enum {
    CLUSTERS_CLOSED_MAX = 1000,                    /* at a time */
    CLUSTER_NAME_MAX = 255,                        /* bytes */
    CLUSTER_CLOSED_WHY_MAX = NODE_CLOSING_WHY_MAX, /* bytes */
};

/* `reason_topic` of a job that waits because its virtual cluster is closed. */
#define CLUSTER_CLOSED_TOPIC UINT64_C(0x636c6f7365640001)

/* Row of `cluster_closings`; without one that is_closed the virtual cluster is open. */
struct cluster_record {
    const char *name;
    struct node_closing closing; /* who closed it, since when and why */
};

/* "virtual cluster vc1 is closed by alice since 2026-11-21 10:04:12 UTC: maintenance"; in `arena`.
 */
const char *cluster_closed_text(const struct cluster_record *cluster, struct arena *arena);

#endif
