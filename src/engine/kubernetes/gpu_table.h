/* gpu_table.h — the GPUs of one node as its exporter has told of them, over time.
 *
 * Pure. Whoever keeps the table says what time it is. A reading counts until the next one comes, or
 * for GPU_FIGURE_OLD_MS: then nothing is known any more. So the time for which a GPU was busy grows
 * evenly between two readings, whenever somebody looks, and never falls.
 *
 * A GPU is known by its number and UUID. One that takes the number of another has taken its place.
 */
#ifndef ENGINE_KUBERNETES_GPU_TABLE_H
#define ENGINE_KUBERNETES_GPU_TABLE_H
#include "engine/kubernetes/gpu_text.h"

struct engine_gpu;
struct engine_stats;

enum {
    GPU_FIGURE_OLD_MS = 60 * 1000,
    GPU_XID_LOST = 79, /* "GPU has fallen off the bus" */
};

struct gpu_figure {
    struct gpu_reading reading; /* the newest; its texts are those that follow */
    char *uuid, *space, *pod;
    int64_t read_ms;
    uint64_t busy_ms; /* summed up until then */
};

struct gpu_table { /* a zeroed one is empty */
    struct {
        struct gpu_figure *items;
        size_t count, room;
    } all;
};

/* An answer of the exporter. GPUs that it does not name stay as they were. */
void gpu_table_take(struct gpu_table *table, const struct gpu_reading *readings, size_t count,
                    int64_t now_ms);
void gpu_table_release(struct gpu_table *table);

/* Has it been told of for long enough that it says something of now? */
bool gpu_figure_is_fresh(const struct gpu_figure *figure, int64_t now_ms);
/* Add it to those of a task or of a node; then gpu_percent is their sum, until gpu_stats_end. */
void gpu_figure_add(const struct gpu_figure *figure, int64_t now_ms, struct engine_stats *stats);
void gpu_stats_end(struct engine_stats *stats);
/* What is known of it; not whose it is. The UUID is the table's. */
void gpu_figure_show(const struct gpu_figure *figure, int64_t now_ms, struct engine_gpu *gpu);

#endif
