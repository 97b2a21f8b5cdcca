/* auto.h — a configuration made from what the nodes offer, when the operator gave none.
 *
 * Pure. One virtual cluster `default` owns everything. Each kind of node (GPU type, number,
 * topology) is a cell type of its own at node level; racks are not known. GPUs lie below NUMA nodes
 * and PCIe switches where these divide them evenly. A GPU leaf is guaranteed an even share of three
 * quarters of the node's CPUs and memory (of the poorest node with this GPU type); the rest, and
 * nodes without GPUs, become CPU leaves.
 *
 * A CPU leaf is `grain` CPUs, a power of two that is the same for the whole cluster: the smallest
 * with which all leaves stay within HIVED_LEAVES_MAX. A node that would have more than
 * HIVED_NODE_LEAVES_MAX of them has a larger one of its own. More than HIVED_AUTO_FLAT_MAX of them
 * lie in groups. The rules and why: docs/rfc/0003.
 */
#ifndef HIVED_AUTO_H
#define HIVED_AUTO_H
#include "hived/config.h"
#include "model/node.h"

struct err;

enum {
    HIVED_AUTO_KINDS_MAX = 500,
    HIVED_AUTO_GRAINS = 13,   /* 1, 2, 4 … 4,096 CPUs */
    HIVED_AUTO_FLAT_MAX = 64, /* CPU leaves below one cell; more where no group divides them */
};

struct hived_auto_cpus { /* CPU cells of a node */
    uint32_t leaves;     /* 0: its GPUs have all CPUs */
    uint32_t cpu;        /* of each leaf */
    uint64_t memory_mib; /* of each leaf */
};
struct hived_auto_cpus hived_auto_cpus(const struct node_facts *node, uint32_t grain);

/* Leaves of a cluster with each grain. All zero: none. */
struct hived_auto_sum {
    uint64_t leaves[HIVED_AUTO_GRAINS];
};
void hived_auto_count(struct hived_auto_sum *sum, const struct node_facts *node, bool is_added);
/* The largest one where none is large enough: too many GPUs. */
uint32_t hived_auto_grain(const struct hived_auto_sum *sum);

/* A configuration is made node by node: room for `count` of them, each with a name of its own. The
 * configuration lies in the maker until hived_maker_finish, which frees the maker. */
struct hived_maker;
struct hived_maker *hived_maker_new(uint32_t count, uint32_t grain);
void hived_maker_free(struct hived_maker *maker);
/* How many leaves the node's cells have, lost GPUs included. */
uint32_t hived_maker_leaves(const struct hived_maker *maker, const struct node_facts *node);
/* ERR_TOO_BIG: more kinds of nodes or leaves than the limits; the node is left out. */
int hived_maker_add(struct hived_maker *maker, const struct node_facts *node, struct err *err);
struct hived_config *hived_maker_finish(struct hived_maker *maker);

/* All at once. NULL with the first problem in `err`: more kinds of nodes or leaves than the limits,
 * or a node twice. */
struct hived_config *hived_config_auto(const struct node_facts *nodes, uint32_t count,
                                       uint32_t grain, struct err *err);

#endif
