/* nvml.h — NVIDIA's GPUs by its management library, loaded at run time when it is there.
 *
 * Edge. What lists the GPUs is exported by every release since 2013; what samples them is used when
 * it is there. Any call may block for as long as the driver does: gpu_watch.h makes them in a
 * thread of its own. One thread at a time. Source: NVML API reference.
 */
#ifndef ENGINE_LOCAL_NVML_H
#define ENGINE_LOCAL_NVML_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct nvml;

enum { NVML_GPUS_MAX = 64 };

struct nvml_gpu {
    char name[96];   /* "Tesla V100-SXM2-16GB" */
    char uuid[96];   /* "GPU-…"; "" of a GPU that was lost before it could say */
    char bus_id[32]; /* "00000000:3B:00.0" */
    uint32_t minor;  /* /dev/nvidiaMINOR */
    uint64_t memory_mib;
    bool is_lost; /* it has a number, and no more */
};

struct nvml_sample {
    bool is_lost;         /* fallen off the bus, or needs a reset: nothing below is known */
    bool has_use;         /* of what follows */
    uint8_t busy_percent; /* of the time since the driver's last sample, up to a second, in which a
                             kernel ran */
    uint64_t memory_used_bytes;
    uint32_t power_mw; /* 0: it does not say */
    bool has_errors;
    uint64_t ecc_errors;    /* uncorrectable, since the driver was loaded */
    uint64_t retired_pages; /* pages and rows given up for uncorrectable errors, ever */
};

/* ERR_NOT_FOUND: no such library; ERR_UNAVAILABLE: it does not work (the text says what it
 * answered). */
int nvml_open(const char *library, struct nvml **nvml, struct err *err);
void nvml_close(struct nvml *nvml);

/* The GPUs in the library's order. ERR_UNAVAILABLE. */
int nvml_list(struct nvml *nvml, struct nvml_gpu *gpus, size_t *count, struct err *err);

/* `has_errors`: ask for the counters of errors, too, which costs more. */
void nvml_sample(struct nvml *nvml, size_t gpu, bool has_errors, struct nvml_sample *sample);

/* Shut down and start anew, as a GPU that was lost comes back only then. The GPUs keep the numbers
 * that they have in `gpus`. ERR_UNAVAILABLE: all of them are lost until it works. */
int nvml_reopen(struct nvml *nvml, const struct nvml_gpu *gpus, size_t count, struct err *err);

#endif
