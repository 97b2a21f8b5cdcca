/* gpu_metrics.c — what the engine samples of GPUs, for /metrics. */
#include "base/buf.h"
#include "engine/engine.h"
#include "server/metrics.h"
#include <stdbool.h>
#include <string.h>

static void gpu_labels(struct buf *out, const struct engine_gpu *gpu)
{
    metric_label_write(out, "node", gpu->node);
    buf_format(out, ",gpu=\"%u\",", gpu->index);
    metric_label_write(out, "uuid", gpu->uuid);
}

static void task_labels(struct buf *out, const struct engine_gpu *gpu)
{
    metric_label_write(out, "job", gpu->job);
    buf_char(out, ',');
    metric_label_write(out, "role", gpu->role);
    buf_format(out, ",task=\"%u\",", gpu->task_index);
    metric_label_write(out, "node", gpu->node);
    buf_format(out, ",gpu=\"%u\"", gpu->index);
}

enum gpu_metric { GPU_LOST, GPU_USE, GPU_MEMORY, GPU_MEMORY_USED, GPU_ECC, GPU_RETIRED };

static bool metric_value(const struct engine_gpu *gpu, enum gpu_metric metric, uint64_t *value)
{
    switch (metric) {
    case GPU_LOST:
        *value = gpu->is_lost;
        return true;
    case GPU_USE:
        *value = gpu->busy_percent;
        return gpu->has_use;
    case GPU_MEMORY:
        *value = gpu->memory_bytes;
        return gpu->memory_bytes > 0;
    case GPU_MEMORY_USED:
        *value = gpu->memory_used_bytes;
        return gpu->has_use;
    case GPU_ECC:
        *value = gpu->ecc_errors;
        return gpu->has_errors;
    case GPU_RETIRED:
        *value = gpu->retired_pages;
        return gpu->has_errors;
    }
    return false;
}

void gpu_metrics_write(const struct engine_gpu *gpus, size_t count, struct buf *out)
{
    static const struct {
        enum gpu_metric metric;
        bool is_of_task;
        const char *name, *help;
    } table[] = {
        {GPU_LOST, false, "skep_gpu_lost", "1 when the driver cannot reach the GPU."},
        {GPU_USE, false, "skep_gpu_utilization_percent", "Time in which a kernel ran."},
        {GPU_MEMORY, false, "skep_gpu_memory_bytes", "Memory of the GPU."},
        {GPU_MEMORY_USED, false, "skep_gpu_memory_used_bytes", "Of it, in use."},
        {GPU_ECC, false, "skep_gpu_ecc_uncorrectable",
         "Uncorrectable memory errors since the driver was loaded."},
        {GPU_RETIRED, false, "skep_gpu_retired_pages",
         "Pages and rows retired for uncorrectable errors."},
        {GPU_USE, true, "skep_task_gpu_utilization_percent", "The same, by the task that has it."},
        {GPU_MEMORY_USED, true, "skep_task_gpu_memory_used_bytes",
         "The same, by the task that has it."},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table && count > 0; i++) {
        buf_format(out, "# HELP %s %s\n# TYPE %s gauge\n", table[i].name, table[i].help,
                   table[i].name);
        for (size_t k = 0; k < count; k++) {
            uint64_t value = 0;
            if (!metric_value(&gpus[k], table[i].metric, &value) ||
                (table[i].is_of_task && !gpus[k].attempt.v))
                continue;
            buf_format(out, "%s{", table[i].name);
            (table[i].is_of_task ? task_labels : gpu_labels)(out, &gpus[k]);
            buf_format(out, "} %llu\n", (unsigned long long)value);
        }
    }
}
