/* gpu_text.h — what DCGM's exporter says of the GPUs of a node, in Prometheus' text format.
 *
 * Pure. The format is version 0.0.4 of "Exposition formats" of Prometheus; the names and units are
 * those of dcgm-exporter's default list (memory in MiB, power in W). Lines of other names are
 * passed over. A line of one of these names must be well-formed, and one line that is no line of
 * the format makes the whole text garbage: half of a node's GPUs would look like all of them.
 *
 * A value that cannot be (NaN, DCGM's words for "not known", more than 100 percent) is not known.
 * Instances of a GPU that is divided (MIG, label GPU_I_ID) are passed over: Skep gives whole GPUs.
 */
#ifndef ENGINE_KUBERNETES_GPU_TEXT_H
#define ENGINE_KUBERNETES_GPU_TEXT_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

enum {
    GPU_TEXT_GPUS_MAX = 256,   /* of a node */
    GPU_TEXT_INDEX_MAX = 4095, /* the greatest number of one */
    GPU_TEXT_LABELS_MAX = 128, /* of a line */
    GPU_TEXT_WORD_MAX = 512,   /* bytes of a label that is read */
};

enum gpu_field {
    GPU_FIELD_BUSY,     /* percent */
    GPU_FIELD_USED,     /* MiB of its memory, as the two that follow */
    GPU_FIELD_FREE,     /* */
    GPU_FIELD_RESERVED, /* by the driver */
    GPU_FIELD_POWER,    /* mW */
    GPU_FIELD_XID,      /* the last error that the driver reported; 0: none */
    GPU_FIELD_ECC,      /* uncorrectable errors since the driver was loaded */
    GPU_FIELD_RETIRED,  /* pages retired for uncorrectable errors, ever */
    GPU_FIELD_REMAPPED, /* rows remapped for them, ever */
    GPU_FIELDS,
};

/* Of one GPU. A text that is not told is "". */
struct gpu_reading {
    uint16_t index;          /* as NVML counts */
    const char *uuid;        /* "GPU-…" */
    const char *space, *pod; /* of the pod that has it, where the exporter knows */
    uint32_t known;          /* bits, 1 << enum gpu_field */
    uint64_t values[GPU_FIELDS];
};

/* The GPUs, in the order in which they come, in `arena`. ERR_INVALID: it is no such text, or more
 * than the limits above, and in which line. */
int gpu_text_read(struct text text, struct arena *arena, const struct gpu_reading **readings,
                  size_t *count, struct err *err);

#endif
