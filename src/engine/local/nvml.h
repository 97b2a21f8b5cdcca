/* nvml.h — NVIDIA's GPUs by its management library, loaded at run time when it is there.
 *
 * Edge. Only functions that every release since 2013 exports are used. Source: NVML API reference.
 */
#ifndef ENGINE_LOCAL_NVML_H
#define ENGINE_LOCAL_NVML_H
#include <stddef.h>
#include <stdint.h>

struct err;

enum { NVML_GPUS_MAX = 64 };

struct nvml_gpu {
    char name[96];   /* "Tesla V100-SXM2-16GB" */
    char uuid[96];   /* "GPU-…" */
    char bus_id[32]; /* "00000000:3B:00.0" */
    uint32_t minor;  /* /dev/nvidiaMINOR */
    uint64_t memory_mib;
};

/* 0 and the number of GPUs; ERR_NOT_FOUND: no such library; ERR_UNAVAILABLE: it does not work (the
 * text says what it answered). */
int nvml_list(const char *library, struct nvml_gpu *gpus, size_t *count, struct err *err);

#endif
