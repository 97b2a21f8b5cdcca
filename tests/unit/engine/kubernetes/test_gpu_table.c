#include "unit.h"

#include "engine/engine.h"
#include "engine/kubernetes/gpu_table.h"

enum { ALL_USE = 1u << GPU_FIELD_BUSY | 1u << GPU_FIELD_USED | 1u << GPU_FIELD_POWER };

static struct gpu_reading reading(uint16_t index, const char *uuid, uint64_t busy)
{
    return (struct gpu_reading){
        .index = index,
        .uuid = uuid,
        .space = "skep",
        .pod = "skep-1",
        .known = ALL_USE,
        .values = {[GPU_FIELD_BUSY] = busy, [GPU_FIELD_USED] = 100, [GPU_FIELD_POWER] = 250000}};
}

static uint64_t busy_ms(const struct gpu_table *table, size_t at, int64_t now_ms)
{
    struct engine_stats stats = {0};
    gpu_figure_add(&table->all.items[at], now_ms, &stats);
    return stats.gpu_busy_ms;
}

static void a_reading_counts_until_the_next(void **state)
{
    (void)state;
    struct gpu_table table = {0};
    struct gpu_reading one = reading(0, "GPU-a", 50);
    gpu_table_take(&table, &one, 1, 1000);
    assert_int_equal(table.all.count, 1);
    assert_int_equal(busy_ms(&table, 0, 1000), 0);
    assert_int_equal(busy_ms(&table, 0, 3000), 1000);
    one = reading(0, "GPU-a", 100);
    gpu_table_take(&table, &one, 1, 11000);
    assert_int_equal(busy_ms(&table, 0, 11000), 5000);
    assert_int_equal(busy_ms(&table, 0, 12000), 6000);
    /* for a minute at most */
    assert_int_equal(busy_ms(&table, 0, 11000 + GPU_FIGURE_OLD_MS), 65000);
    assert_int_equal(busy_ms(&table, 0, 999999), 65000);
    one.known = 0; /* the exporter does not know any more */
    gpu_table_take(&table, &one, 1, 999999);
    assert_int_equal(busy_ms(&table, 0, 1001000), 65000);
    gpu_table_release(&table);
}

static void gpus_that_are_not_named_stay_and_get_old(void **state)
{
    (void)state;
    struct gpu_table table = {0};
    struct engine_stats stats = {0};
    const struct gpu_reading two[] = {reading(0, "GPU-a", 40), reading(1, "GPU-b", 81)};
    gpu_table_take(&table, two, 2, 0);
    gpu_figure_add(&table.all.items[0], 0, &stats);
    gpu_figure_add(&table.all.items[1], 0, &stats);
    gpu_stats_end(&stats);
    assert_int_equal(stats.gpu_count, 2);
    assert_int_equal(stats.gpu_percent, 60);
    assert_int_equal(stats.gpu_memory_bytes, 200 << 20);
    assert_int_equal(stats.gpu_power_mw, 500000);
    gpu_table_take(&table, two, 1, GPU_FIGURE_OLD_MS);
    stats = (struct engine_stats){0};
    gpu_figure_add(&table.all.items[0], GPU_FIGURE_OLD_MS, &stats);
    gpu_figure_add(&table.all.items[1], GPU_FIGURE_OLD_MS, &stats);
    gpu_stats_end(&stats);
    assert_int_equal(stats.gpu_count, 1);
    assert_int_equal(stats.gpu_percent, 40);
    assert_int_equal(stats.gpu_busy_ms, 24000 + 48600); /* never less than it was */
    gpu_stats_end(&(struct engine_stats){0});
    gpu_table_release(&table);
}

static void another_gpu_takes_the_place(void **state)
{
    (void)state;
    struct gpu_table table = {0};
    struct gpu_reading one = reading(0, "GPU-a", 100);
    gpu_table_take(&table, &one, 1, 0);
    one = reading(0, "GPU-z", 0);
    gpu_table_take(&table, &one, 1, 10000);
    assert_int_equal(table.all.count, 1);
    assert_string_equal(table.all.items[0].reading.uuid, "GPU-z");
    assert_int_equal(busy_ms(&table, 0, 20000), 0);
    gpu_table_release(&table);
}

static struct engine_gpu shown(const struct gpu_reading *reading, int64_t age_ms)
{
    static struct gpu_table table;
    struct engine_gpu gpu = {0};
    gpu_table_release(&table);
    gpu_table_take(&table, reading, 1, 0);
    gpu_figure_show(&table.all.items[0], age_ms, &gpu);
    gpu.uuid = NULL;
    gpu_table_release(&table);
    return gpu;
}

static void a_gpu_is_shown_as_far_as_it_is_known(void **state)
{
    (void)state;
    struct gpu_reading one = reading(3, "GPU-a", 70);
    struct engine_gpu gpu = shown(&one, 0);
    assert_int_equal(gpu.index, 3);
    assert_true(gpu.has_use && !gpu.has_errors && !gpu.is_lost);
    assert_int_equal(gpu.busy_percent, 70);
    assert_int_equal(gpu.memory_used_bytes, 100 << 20);
    assert_int_equal(gpu.memory_bytes, 0); /* what is free is not told */
    one.known |=
        1u << GPU_FIELD_FREE | 1u << GPU_FIELD_ECC | 1u << GPU_FIELD_XID | 1u << GPU_FIELD_REMAPPED;
    one.values[GPU_FIELD_FREE] = 60;
    one.values[GPU_FIELD_ECC] = 2;
    one.values[GPU_FIELD_REMAPPED] = 1;
    one.values[GPU_FIELD_XID] = 48;
    gpu = shown(&one, GPU_FIGURE_OLD_MS - 1);
    assert_true(gpu.has_use && gpu.has_errors && !gpu.is_lost);
    assert_int_equal(gpu.memory_bytes, 160 << 20);
    assert_int_equal(gpu.ecc_errors, 2);
    assert_int_equal(gpu.retired_pages, 1);
    one.known |= 1u << GPU_FIELD_RETIRED;
    one.values[GPU_FIELD_RETIRED] = 4;
    assert_int_equal(shown(&one, 0).retired_pages, 5);
    gpu = shown(&one, GPU_FIGURE_OLD_MS);
    assert_true(!gpu.has_use && !gpu.has_errors && !gpu.is_lost);
    assert_int_equal(gpu.memory_bytes, 160 << 20); /* it does not change */
    one.values[GPU_FIELD_XID] = GPU_XID_LOST;
    gpu = shown(&one, 0);
    assert_true(gpu.is_lost && !gpu.has_use && !gpu.has_errors);
    one.known = 1u << GPU_FIELD_BUSY;
    assert_false(shown(&one, 0).has_use);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_reading_counts_until_the_next),
    cmocka_unit_test(gpus_that_are_not_named_stay_and_get_old),
    cmocka_unit_test(another_gpu_takes_the_place),
    cmocka_unit_test(a_gpu_is_shown_as_far_as_it_is_known),
};

UNIT_FILE(tests, NULL, NULL);
