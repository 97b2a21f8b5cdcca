/* gpu_mask.h — GPUs of a node as a 64-bit mask, as the early platform's cluster manager knew them:
 * which nodes could take a request, tightest first, and with which GPUs.
 *
 * Bit i is GPU i. Source: the early platform's scheduler. No program contains it (Skep's own
 * placement is placement.h): the driver of the recorded behaviour compares it with the original.
 */
#ifndef ORIGINALS_GPU_MASK_H
#define ORIGINALS_GPU_MASK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct gpu_node {
    const char *host, *gpu_type; /* gpu_type "": unknown */
    uint64_t total, used;
    int64_t cpu, memory_mib; /* free */
};

struct gpu_request {
    uint32_t gpus;
    uint64_t mask;         /* 0: any GPUs; else exactly these, `gpus` of them */
    const char *gpu_types; /* "" any; comma list: any of */
    int64_t cpu, memory_mib;
    bool keeps_off_gpu_nodes; /* a request without GPUs does not go where GPUs are */
};

struct gpu_choice {
    size_t node;
    uint64_t mask;
};

/* At most `room` choices, by rising free GPUs, GPUs, free CPU and free memory; equal nodes in the
 * order given. Returns their number, or ERR_INVALID for a mask that does not fit its count. */
int gpu_mask_choose(const struct gpu_node *nodes, size_t count, const struct gpu_request *request,
                    struct gpu_choice *choices, size_t room, struct err *err);

#endif
