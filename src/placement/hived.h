/* hived.h — HiveD behind the core's seam: virtual clusters, cells, guarantees.
 *
 * Pure. A task's CPUs, MiB and GPUs become leaves of a SKU: max(⌈gpu/g⌉, ⌈cpu/c⌉, ⌈memory/m⌉), as
 * in OpenPAI. Members that may use the same leaf types share a gang of HiveD; a gang that needs
 * several leaf types (workers on GPUs, a parameter server on CPUs) is several gangs there, all
 * placed or none. A task without `sku_type` takes CPU leaves when it asks for no GPU and there are
 * any, else the first GPU type that has room.
 *
 * Without a configuration the cells follow the nodes (hived/auto.h): when one appears or changes
 * shape, the configuration is derived anew at the next question, and what runs keeps running. With
 * one, nodes that it does not name are refused, and a node that lacks configured devices is bad.
 *
 * Limits: 64 GPUs a task (PLACEMENT_GPUS_MAX), HIVED_GANG_PODS_MAX tasks a gang.
 */
#ifndef PLACEMENT_HIVED_H
#define PLACEMENT_HIVED_H
#include "placement/placement.h"

#include <stdbool.h>
#include <stdint.h>

struct doc;
struct hived;

/* `config`: HiveD's configuration as a document tree, or NULL: automatic. NULL with the first
 * problem in `err` when the configuration is wrong. */
struct placer *placer_hived_new(const struct doc *config, struct err *err);

/* What stands behind it, for the inspect API and quotas (hived/hived.h); NULL when the placer is of
 * another policy. Valid until the next call to the placer. */
struct hived *placer_hived_state(struct placer *placer);

/* A copy of it, of the caller's, with the cells that the next question would find. The placer stays
 * as it is: a question that no event has asked must change nothing for those that one does. */
struct hived *placer_hived_copy(const struct placer *placer);

/* The same in pieces of so many cells, at the price of what has changed: *copy is NULL at first, or
 * what was made before and nobody reads any more. True: it is whole, and the caller's; until then
 * the next call goes on with it. What could not be brought up to date comes to *old, for the caller
 * to free: that takes long. */
bool placer_hived_mirror(const struct placer *placer, struct hived **copy, struct hived **old,
                         uint32_t cells);

/* Leaves of a leaf type that a demand takes; 0: this type cannot serve it. */
uint32_t placer_hived_leaves(struct placer *placer, const char *leaf_type, uint32_t gpu,
                             uint32_t cpu, uint64_t memory_mib);

#endif
