#include "cli/use.h"
#include "base/memory.h"
#include "cli/print.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PICTURE_COLUMNS = 40 };

enum unit { UNIT_PLAIN, UNIT_BYTES, UNIT_RATE, UNIT_WATTS };

static const struct {
    const char *field, *name;
    const char *given; /* of the reply's `given`; NULL: it is not given out */
    enum unit unit;
} ROWS[] = {
    {"cpu", "processors", "cpu", UNIT_PLAIN},
    {"memory", "memory", "memory", UNIT_BYTES},
    {"gpu", "GPUs", "gpu", UNIT_PLAIN},
    {"gpuMemory", "GPU memory", NULL, UNIT_BYTES},
    {"gpuPower", "GPU power", NULL, UNIT_WATTS},
    {"read", "disk, read", NULL, UNIT_RATE},
    {"written", "disk, written", NULL, UNIT_RATE},
    {"received", "network, received", NULL, UNIT_RATE},
    {"sent", "network, sent", NULL, UNIT_RATE},
};

static void value_put(char text[32], double value, enum unit unit)
{
    static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    size_t prefix = 0;
    if (unit == UNIT_PLAIN || unit == UNIT_WATTS) {
        snprintf(text, 32, unit == UNIT_WATTS ? "%.0f W" : "%.2f", value);
        return;
    }
    for (; value >= 1024 && prefix + 1 < COUNT_OF(prefixes); prefix++)
        value /= 1024;
    snprintf(text, 32, prefix ? "%.1f %sB%s" : "%.0f %sB%s", value, prefixes[prefix],
             unit == UNIT_RATE ? "/s" : "");
}

/* The most within each part of the points; -1 where nothing is known. */
static void curve_levels(const json_t *points, size_t columns, double levels[])
{
    size_t count = json_array_size(points);
    for (size_t i = 0; i < columns; i++)
        levels[i] = -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *point = json_array_get(points, i);
        size_t column = i * columns / count;
        if (json_is_number(point) && json_number_value(point) > levels[column])
            levels[column] = json_number_value(point);
    }
}

static void curve_put(struct buf *out, const json_t *points, double full, bool has_blocks)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    size_t count = json_array_size(points);
    size_t columns = count < PICTURE_COLUMNS ? count : PICTURE_COLUMNS;
    double levels[PICTURE_COLUMNS] = {0};
    curve_levels(points, columns, levels);
    for (size_t i = 0; i < columns; i++) {
        double part = full > 0 ? fmin(levels[i] / full, 1) : 0;
        if (levels[i] < 0)
            buf_string(out, " ");
        else if (has_blocks)
            buf_string(out, blocks[(size_t)lround(part * 7)]);
        else
            buf_format(out, "%ld", lround(part * 9));
    }
}

static void row_put(struct table *table, const json_t *reply, size_t row, bool has_blocks)
{
    const json_t *use = json_object_get(json_object_get(reply, "use"), ROWS[row].field);
    const json_t *given =
        ROWS[row].given ? json_object_get(json_object_get(reply, "given"), ROWS[row].given) : NULL;
    double most = json_number_value(json_object_get(use, "most"));
    double full = json_number_value(given) > 0 ? json_number_value(given) : most;
    char text[32] = "";
    cleanup_buf struct buf curve = BUF_INIT;
    if (!use)
        return;
    table_cell(table, ROWS[row].name);
    if (given)
        value_put(text, json_number_value(given), ROWS[row].unit);
    table_cell(table, text);
    value_put(text, json_number_value(json_object_get(use, "mean")), ROWS[row].unit);
    table_cell(table, text);
    value_put(text, most, ROWS[row].unit);
    table_cell(table, text);
    curve_put(&curve, json_object_get(use, "points"), full, has_blocks);
    table_cell(table, buf_cstr(&curve));
}

/* Of a machine of a cluster only what the cluster tells is known. */
static void lack_put(struct buf *out, const json_t *reply)
{
    const json_t *use = json_object_get(reply, "use");
    if (field_has(reply, "taskCount") || field_has(use, "cpu") || field_has(use, "memory"))
        return;
    buf_string(out, "processors and memory are not known: a Kubernetes cluster tells them of its "
                    "nodes where it has metrics-server\n");
}

void use_print(struct buf *out, const json_t *reply, bool has_blocks, bool has_colours)
{
    static const char *const HEADS[] = {"USED", "GIVEN", "MEAN", "MOST", "OVER TIME", NULL};
    int64_t begin_ms = field_int(reply, "beginTime");
    int64_t length_ms = field_int(reply, "pointCount") * field_int(reply, "stepSeconds") * 1000;
    if (length_ms == 0) {
        buf_string(out, "nothing is known yet: what runs is looked at every ten seconds\n");
        lack_put(out, reply);
        return;
    }
    print_time(out, begin_ms);
    buf_string(out, " + ");
    print_duration(out, length_ms);
    if (field_has(reply, "taskCount"))
        buf_format(out, ", %lld of %lld tasks", (long long)field_int(reply, "sampledTaskCount"),
                   (long long)field_int(reply, "taskCount"));
    buf_string(out, "\n");
    cleanup_table struct table table;
    table_init(&table, has_colours, HEADS);
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        row_put(&table, reply, i, has_blocks);
    table_print(&table, out);
    lack_put(out, reply);
}
