/* What an exporter of figures of GPUs answers, twice: as it is, and taken into a table over time.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/kubernetes/gpu_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void table_check(const struct gpu_reading *readings, size_t count)
{
    struct gpu_table table = {0};
    struct engine_stats before = {0}, after = {0};
    gpu_table_take(&table, readings, count, 0);
    gpu_table_take(&table, readings, count, 10000);
    assert(table.all.count <= count);
    for (size_t i = 0; i < table.all.count; i++) {
        struct engine_gpu gpu = {0};
        gpu_figure_add(&table.all.items[i], 10000, &before);
        gpu_figure_add(&table.all.items[i], 20000, &after);
        gpu_figure_show(&table.all.items[i], 20000, &gpu);
        assert(gpu.busy_percent <= 100 && gpu.uuid);
    }
    gpu_stats_end(&after);
    assert(after.gpu_busy_ms >= before.gpu_busy_ms && after.gpu_percent <= 100);
    assert(after.gpu_busy_ms <= 20000 * table.all.count);
    gpu_table_release(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct gpu_reading *readings;
    struct arena arena;
    struct err err = {0};
    size_t count;
    arena_init(&arena);
    const int code =
        gpu_text_read((struct text){(const char *)data, size}, &arena, &readings, &count, &err);
    assert(code == 0 || (code == ERR_INVALID && err.text[0]));
    if (code == 0) {
        assert(count <= GPU_TEXT_GPUS_MAX);
        for (size_t i = 0; i < count; i++)
            assert(readings[i].index <= GPU_TEXT_INDEX_MAX &&
                   strlen(readings[i].uuid) <= GPU_TEXT_WORD_MAX);
        table_check(readings, count);
    }
    arena_release(&arena);
    return 0;
}
