/* gpu_watch.h — one thread that asks NVML how the GPUs are, so that nobody else waits for it.
 *
 * Edge. NVML is called from that thread alone: at the start for the list, then once an interval for
 * use, memory and lost devices, once a minute (and when asked) for counters of memory errors. A
 * call that never returns costs this thread and nothing else: readers get what was known last, and
 * gpu_watch_silent_ms says how long it has been going on. A GPU that was lost is looked for again
 * every minute. Without the library the thread ends at once and there are no GPUs.
 */
#ifndef ENGINE_LOCAL_GPU_WATCH_H
#define ENGINE_LOCAL_GPU_WATCH_H
#include "engine/local/nvml.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct gpu_watch;

enum {
    GPU_WATCH_LIST_MS = 30000, /* how long the start waits for the list */
    GPU_WATCH_ERRORS_MS =
        60000, /* between two reads of the counters of errors, and searches for lost GPUs */
};

struct gpu_state {
    bool is_lost;
    bool has_use;         /* of what follows */
    uint8_t busy_percent; /* by the last sample */
    uint64_t busy_ms;     /* summed up since the start: percent of each interval */
    uint64_t memory_used_bytes;
    uint32_t power_mw; /* by the last sample; 0: not known */
    bool has_errors;
    uint64_t ecc_errors;    /* uncorrectable, since the driver was loaded */
    uint64_t retired_pages; /* for uncorrectable errors, ever */
};

/* `changed` is called from the thread after a round in which a GPU was lost or came back. */
struct gpu_watch_config {
    const char *library;
    uint32_t interval_ms; /* > 0 */
    uint32_t list_ms;     /* how long to wait for the list */
    void (*changed)(void *context);
    void *context;
};

/* Start the thread and wait for its list. ERR_NOT_FOUND: no such library; ERR_UNAVAILABLE: it does
 * not work; ERR_BUSY: it has not answered in time. The watch is made in every case but has GPUs
 * only when this gives 0. */
struct gpu_watch *gpu_watch_new(const struct gpu_watch_config *config, struct err *err, int *code);
/* A thread that does not come back from the driver is left behind, with its memory. */
void gpu_watch_free(struct gpu_watch *watch);

/* Until gpu_watch_start `changed` is not called. */
void gpu_watch_start(struct gpu_watch *watch);

size_t gpu_watch_count(const struct gpu_watch *watch);
const struct nvml_gpu *gpu_watch_gpu(const struct gpu_watch *watch, size_t gpu);

/* What was known last. False: nothing yet, or no such GPU. Thread-safe. */
bool gpu_watch_read(struct gpu_watch *watch, size_t gpu, struct gpu_state *state);

/* Let the thread look at everything now, counters of errors included; false: it has not done so
 * within timeout_ms. */
bool gpu_watch_refresh(struct gpu_watch *watch, uint32_t timeout_ms);

/* How long the call under way has taken; 0: none is. */
int64_t gpu_watch_silent_ms(struct gpu_watch *watch);

#endif
