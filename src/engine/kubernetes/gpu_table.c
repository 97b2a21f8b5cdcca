#include "engine/kubernetes/gpu_table.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "engine/engine.h"

static bool has(const struct gpu_reading *reading, enum gpu_field field)
{
    return reading->known & 1u << field;
}

/* 0: it is not known. */
static uint64_t value_of(const struct gpu_reading *reading, enum gpu_field field)
{
    return has(reading, field) ? reading->values[field] : 0;
}

static void texts_release(struct gpu_figure *figure)
{
    mem_free(figure->uuid);
    mem_free(figure->space);
    mem_free(figure->pod);
    figure->uuid = figure->space = figure->pod = NULL;
}

void gpu_table_release(struct gpu_table *table)
{
    for (size_t i = 0; i < table->all.count; i++)
        texts_release(&table->all.items[i]);
    ARRAY_FREE(&table->all);
}

/* What the last reading says of the time since. */
static uint64_t busy_since(const struct gpu_figure *figure, int64_t now_ms)
{
    int64_t passed_ms = now_ms - figure->read_ms;
    assert(passed_ms >= 0);
    if (passed_ms > GPU_FIGURE_OLD_MS)
        passed_ms = GPU_FIGURE_OLD_MS;
    return (uint64_t)passed_ms * value_of(&figure->reading, GPU_FIELD_BUSY) / 100;
}

static void figure_take(struct gpu_figure *figure, const struct gpu_reading *reading,
                        int64_t now_ms)
{
    figure->busy_ms += busy_since(figure, now_ms);
    figure->read_ms = now_ms;
    texts_release(figure);
    figure->reading = *reading;
    figure->reading.uuid = figure->uuid = mem_copy(reading->uuid);
    figure->reading.space = figure->space = mem_copy(reading->space);
    figure->reading.pod = figure->pod = mem_copy(reading->pod);
}

static struct gpu_figure *figure_find(const struct gpu_table *table, uint16_t index)
{
    for (size_t i = 0; i < table->all.count; i++)
        if (table->all.items[i].reading.index == index)
            return &table->all.items[i];
    return NULL;
}

void gpu_table_take(struct gpu_table *table, const struct gpu_reading *readings, size_t count,
                    int64_t now_ms)
{
    for (size_t i = 0; i < count; i++) {
        struct gpu_figure *figure = figure_find(table, readings[i].index);
        if (!figure) {
            figure = ARRAY_ADD(&table->all);
            *figure = (struct gpu_figure){.read_ms = now_ms};
        } else if (strcmp(figure->reading.uuid, readings[i].uuid) != 0) {
            figure->busy_ms = 0;
            figure->read_ms = now_ms;
        }
        figure_take(figure, &readings[i], now_ms);
    }
}

bool gpu_figure_is_fresh(const struct gpu_figure *figure, int64_t now_ms)
{
    return now_ms - figure->read_ms < GPU_FIGURE_OLD_MS;
}

static bool has_use(const struct gpu_figure *figure, int64_t now_ms)
{
    return gpu_figure_is_fresh(figure, now_ms) && has(&figure->reading, GPU_FIELD_BUSY) &&
           has(&figure->reading, GPU_FIELD_USED);
}

void gpu_figure_add(const struct gpu_figure *figure, int64_t now_ms, struct engine_stats *stats)
{
    const struct gpu_reading *reading = &figure->reading;
    stats->gpu_busy_ms += figure->busy_ms + busy_since(figure, now_ms);
    if (!has_use(figure, now_ms))
        return;
    stats->gpu_count++;
    stats->gpu_percent += (uint32_t)value_of(reading, GPU_FIELD_BUSY);
    stats->gpu_memory_bytes += value_of(reading, GPU_FIELD_USED) << 20;
    stats->gpu_power_mw += value_of(reading, GPU_FIELD_POWER);
}

void gpu_stats_end(struct engine_stats *stats)
{
    if (stats->gpu_count > 0)
        stats->gpu_percent /= stats->gpu_count;
}

void gpu_figure_show(const struct gpu_figure *figure, int64_t now_ms, struct engine_gpu *gpu)
{
    const struct gpu_reading *reading = &figure->reading;
    gpu->uuid = reading->uuid;
    gpu->index = reading->index;
    if (has(reading, GPU_FIELD_USED) && has(reading, GPU_FIELD_FREE))
        gpu->memory_bytes = (value_of(reading, GPU_FIELD_USED) + value_of(reading, GPU_FIELD_FREE) +
                             value_of(reading, GPU_FIELD_RESERVED))
                            << 20;
    if (!gpu_figure_is_fresh(figure, now_ms))
        return;
    gpu->is_lost = value_of(reading, GPU_FIELD_XID) == GPU_XID_LOST;
    gpu->has_use = has_use(figure, now_ms) && !gpu->is_lost;
    if (gpu->has_use) {
        gpu->busy_percent = (uint32_t)value_of(reading, GPU_FIELD_BUSY);
        gpu->memory_used_bytes = value_of(reading, GPU_FIELD_USED) << 20;
    }
    gpu->has_errors = has(reading, GPU_FIELD_ECC) && !gpu->is_lost;
    if (gpu->has_errors) {
        gpu->ecc_errors = value_of(reading, GPU_FIELD_ECC);
        gpu->retired_pages =
            value_of(reading, GPU_FIELD_RETIRED) + value_of(reading, GPU_FIELD_REMAPPED);
    }
}
