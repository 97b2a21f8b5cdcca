#include "engine/kubernetes/node_metrics.h"

#include <assert.h>

#include "base/utc.h"
#include "engine/kubernetes/json_cut.h"
#include "kube/quantity.h"

enum { MILLI = 1000, NS_OF_MILLI_MS = 1000 }; /* a thousandth of a processor for 1 ms: 1000 ns */

static bool amount_read(struct text usage, const char *key, int64_t *milli)
{
    struct text text;
    return json_cut_string(usage, key, &text) && quantity_read(text, milli);
}

bool node_metrics_read(struct text object, struct node_metrics *metrics, bool *is_told)
{
    struct text metadata, usage, timestamp;
    int64_t memory_milli;
    *metrics = (struct node_metrics){0};
    *is_told = false;
    if (!json_cut_get(object, "metadata", &metadata) ||
        !json_cut_string(metadata, "name", &metrics->name) || metrics->name.length == 0)
        return false;
    if (!json_cut_string(object, "timestamp", &timestamp) ||
        !utc_read(timestamp, &metrics->at_ms) || metrics->at_ms == 0 ||
        !json_cut_get(object, "usage", &usage) || !amount_read(usage, "cpu", &metrics->cpu_milli) ||
        !amount_read(usage, "memory", &memory_milli) || metrics->cpu_milli > NODE_METRICS_CPU_MAX)
        return true;
    metrics->memory_bytes = memory_milli / MILLI;
    *is_told = true;
    return true;
}

static uint64_t cpu_since(const struct node_use *use, int64_t now_ms)
{
    int64_t passed_ms = now_ms - use->taken_ms;
    assert(passed_ms >= 0);
    if (!use->has_figure)
        return 0;
    if (passed_ms > NODE_METRICS_OLD_MS)
        passed_ms = NODE_METRICS_OLD_MS;
    return (uint64_t)passed_ms * (uint64_t)use->cpu_milli * NS_OF_MILLI_MS;
}

static bool is_new(const struct node_use *use, const struct node_metrics *metrics, int64_t unix_ms)
{
    if (use->at_ms == 0)
        return metrics->at_ms >= unix_ms - NODE_METRICS_OLD_MS;
    return metrics->at_ms > use->at_ms || metrics->at_ms < use->at_ms - NODE_METRICS_OLD_MS;
}

void node_use_take(struct node_use *use, const struct node_metrics *metrics, int64_t now_ms,
                   int64_t unix_ms)
{
    assert(metrics->at_ms > 0 && metrics->cpu_milli <= NODE_METRICS_CPU_MAX);
    const bool is_first = use->at_ms == 0;
    if (!is_new(use, metrics, unix_ms)) {
        if (is_first)
            use->at_ms = metrics->at_ms;
        return;
    }
    use->cpu_ns += cpu_since(use, now_ms);
    use->at_ms = metrics->at_ms;
    use->has_figure = true;
    use->taken_ms = now_ms;
    use->cpu_milli = metrics->cpu_milli;
    use->memory_bytes = metrics->memory_bytes;
}

bool node_use_is_known(const struct node_use *use, int64_t now_ms)
{
    return use->has_figure && now_ms - use->taken_ms < NODE_METRICS_OLD_MS;
}

uint64_t node_use_cpu_ns(const struct node_use *use, int64_t now_ms)
{
    return use->cpu_ns + cpu_since(use, now_ms);
}
