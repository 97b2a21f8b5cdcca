/* simple.h — placement without cells: first fit, best fit and spread over plain nodes.
 *
 * Pure. A node is a number of CPUs, MiB and GPUs; virtual clusters are queues without quotas. The
 * policies differ in one thing, the order in which nodes are tried: lowest id first, least left
 * over first, most free first. All of them place a gang whole or not at all, prefer GPUs behind one
 * switch, then one NUMA node, and preempt strictly lower priorities of the same virtual cluster and
 * opportunistic groups of any. A preempting group keeps what it waits for: nobody slips in between.
 *
 * Limits: 64 GPUs of a node are used. `within_one_cell`, whatever its type, means one node; pinned
 * cells are refused.
 */
#ifndef PLACEMENT_SIMPLE_H
#define PLACEMENT_SIMPLE_H
#include "placement/placement.h"

/* NULL when there is no such policy: "first-fit", "best-fit", "spread". */
struct placer *placer_simple_new(const char *policy);

#endif
