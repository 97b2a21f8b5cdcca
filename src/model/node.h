/* node.h — what is known of a machine that runs tasks: what its engine reports of it.
 *
 * Pure. One struct for all who speak of nodes: engines, events, the core, placers and rows. It
 * borrows what it points to, except after node_facts_copy. Names are at most NODE_NAME_MAX bytes;
 * the core refuses longer ones.
 */
#ifndef MODEL_NODE_H
#define MODEL_NODE_H
#include <stdbool.h>
#include <stdint.h>

struct arena;

enum {
    NODE_NAME_MAX = 253,
    NODE_GPU_LOST = 0xfffe, /* in gpu_switch: the device does not work, nobody gets it */
};

struct node_facts {
    const char *name;
    const char *address;  /* what peers connect to */
    const char *gpu_type; /* "" without GPUs */
    const char *engine; /* which runs its tasks, by its name in the configuration; "": not known */
    uint32_t cpu, gpu_count;
    uint64_t memory_mib;
    const uint16_t *gpu_numa,
        *gpu_switch;       /* NUMA node and PCIe switch of each GPU; NULL: unknown */
    bool is_healthy;       /* as its engine says */
    bool is_gpu_simulated; /* indices only, no devices; not stored */
    const char *reason;    /* why not healthy, or lost; NULL or "" */
};

/* Somebody asked that no task is started on a node. */
struct node_closing {
    bool is_closed;
    const char *by, *why; /* `why` may be "" */
    int64_t at_ms;
};

enum { NODE_CLOSING_WHY_MAX = 500 }; /* bytes */

/* `to` owns a copy, for node_facts_release; what it owned before is freed, so it must be all zero
 * at first. A string that has not changed keeps its address, so that a map of names may point to
 * it. Strings that are NULL become "". */
void node_facts_copy(struct node_facts *to, const struct node_facts *from);
void node_facts_release(struct node_facts *facts); /* all zero afterwards */
/* A copy that lives as long as the arena. Strings that are NULL become "". */
struct node_facts node_facts_keep(struct arena *arena, const struct node_facts *facts);

/* As those of the facts. */
void node_closing_copy(struct node_closing *to, const struct node_closing *from);
void node_closing_release(struct node_closing *closing);

/* Do both offer the same: CPUs, memory, GPUs of one type in one topology? */
bool node_facts_are_alike(const struct node_facts *a, const struct node_facts *b);
bool node_gpu_is_lost(const struct node_facts *facts, uint32_t gpu);

#endif
