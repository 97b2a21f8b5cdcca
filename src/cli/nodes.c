#include "cli/nodes.h"
#include "cli/print.h"
#include <string.h>

/* Mean use and the sum of the memory of those that are sampled. */
static void gpu_cells(struct table *table, const json_t *node)
{
    const json_t *gpus = json_object_get(node, "gpus");
    long long percent = 0, used = 0, memory = 0;
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i);
        if (!json_is_integer(json_object_get(gpu, "utilizationPercent")))
            continue;
        count++;
        percent += field_int(gpu, "utilizationPercent");
        used += field_int(gpu, "memoryUsedMB");
        memory += field_int(gpu, "memoryMB");
    }
    if (count == 0) {
        table_cell(table, "-");
        table_cell(table, "-");
        return;
    }
    table_format(table, "%lld %%", percent / (long long)count);
    table_format(table, "%lld/%lld", used, memory);
}

/* Why it is not READY, and until when it is avoided although it is. */
static void reason_cell(struct table *table, const json_t *node)
{
    const char *reason = field_text(node, "reason");
    const long long refusals = (long long)field_int(node, "refusals");
    const char *by = field_text(node, "cordonedBy"), *why = field_text(node, "cordonReason");
    if (by) {
        cleanup_buf struct buf text = BUF_INIT;
        buf_format(&text, "cordoned by %s since ", by);
        print_time(&text, field_int(node, "cordonedTime"));
        buf_format(&text, "%s%s%s%s", why ? ": " : "", why ? why : "", reason ? "; " : "",
                   reason ? reason : "");
        table_cell(table, buf_cstr(&text));
        return;
    }
    if (!field_has(node, "avoidedUntil")) {
        table_cell(table, reason);
        return;
    }
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "%s%staken last until ", reason ? reason : "", reason ? "; " : "");
    print_time(&text, field_int(node, "avoidedUntil"));
    buf_format(&text, ": it refused %lld task%s", refusals, refusals == 1 ? "" : "s in a row");
    table_cell(table, buf_cstr(&text));
}

static bool has_several_engines(const json_t *data)
{
    const char *first = NULL;
    for (size_t i = 0; i < json_array_size(data); i++) {
        const char *engine = field_text(json_array_get(data, i), "engine");
        if (engine && first && strcmp(engine, first) != 0)
            return true;
        first = engine ? engine : first;
    }
    return false;
}

void nodes_print(struct buf *out, const json_t *data, bool is_wide, bool has_colours)
{
    const char *heads[TABLE_COLUMNS_MAX] = {"NODE",       "STATE", "CPU",
                                            "MEMORY MIB", "GPUS",  "GPU TYPE"};
    const bool has_engine = is_wide || has_several_engines(data);
    int count = 6;
    if (is_wide) {
        heads[count++] = "GPU USE";
        heads[count++] = "GPU MEMORY MIB";
    }
    if (has_engine)
        heads[count++] = "ENGINE";
    heads[count++] = "ADDRESS";
    heads[count] = "REASON";
    cleanup_table struct table table;
    table_init(&table, has_colours, heads);
    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *node = json_array_get(data, i);
        table_cell(&table, field_text(node, "name"));
        table_cell(&table, field_text(node, "state"));
        table_format(&table, "%lld", (long long)field_int(node, "cpu"));
        table_format(&table, "%lld", (long long)field_int(node, "memoryMB"));
        table_format(&table, "%lld", (long long)field_int(node, "gpu"));
        table_cell(&table, field_text(node, "gpuType"));
        if (is_wide)
            gpu_cells(&table, node);
        if (has_engine)
            table_cell(&table, field_text(node, "engine"));
        table_cell(&table, field_text(node, "address"));
        reason_cell(&table, node);
    }
    table_print(&table, out);
}
