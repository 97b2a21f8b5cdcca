/* auto.h — a configuration made from what the nodes offer, when the operator gave none.
 *
 * Pure. One virtual cluster `default` owns everything. Each kind of node (GPU type, number,
 * topology) is a cell type of its own at node level; racks are not known. GPUs lie below NUMA nodes
 * and PCIe switches where these divide them evenly. A GPU leaf is guaranteed an even share of three
 * quarters of the node's CPUs and memory (of the poorest node with this GPU type); the rest, and
 * nodes without GPUs, become CPU leaves: at most HIVED_AUTO_CPU_LEAVES a node, memory in steps of
 * 256 MiB.
 */
#ifndef HIVED_AUTO_H
#define HIVED_AUTO_H
#include "hived/config.h"

struct err;

enum {
    HIVED_AUTO_CPU_LEAVES = 64,
    HIVED_AUTO_KINDS_MAX = 500,
    HIVED_AUTO_GPU_LOST = 0xfffe, /* in gpu_switch: no cell for it, while the node has others */
};

struct hived_auto_node {
    const char *name;
    uint32_t cpu, gpu_count;
    uint64_t memory_mib;
    const char *gpu_type;
    const uint16_t *gpu_numa, *gpu_switch; /* of each GPU, or NULL */
};

/* NULL with the first problem in `err`: more kinds of nodes or leaves than the limits. */
struct hived_config *hived_config_auto(const struct hived_auto_node *nodes, uint32_t count,
                                       struct err *err);

#endif
