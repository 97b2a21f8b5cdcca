/* metrics.c — see metrics.h. */
#include "server/metrics.h"
#include "base/buf.h"

static const int64_t bounds_us[HISTOGRAM_BUCKETS - 1] = {
    500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
};

void histogram_add(struct histogram *histogram, int64_t us)
{
    size_t i = 0;
    while (i < HISTOGRAM_BUCKETS - 1 && us > bounds_us[i])
        i++;
    atomic_fetch_add_explicit(&histogram->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, us > 0 ? (uint64_t)us : 0, memory_order_relaxed);
}

void metric_head_write(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_label_write(struct buf *out, const char *name, const char *value)
{
    buf_format(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\n') {
            buf_string(out, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            buf_char(out, '\\');
        buf_char(out, *value);
    }
    buf_char(out, '"');
}

void metric_write(struct buf *out, const char *name, const char *type, const char *help,
                  uint64_t value)
{
    metric_head_write(out, name, type, help);
    buf_format(out, "%s %llu\n", name, (unsigned long long)value);
}

void histogram_write(struct histogram *histogram, const char *name, const char *help,
                     struct buf *out)
{
    uint64_t count = 0;
    buf_format(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        count += atomic_load(&histogram->buckets[i]);
        if (i < HISTOGRAM_BUCKETS - 1)
            buf_format(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds_us[i] / 1e6,
                       (unsigned long long)count);
        else
            buf_format(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)count);
    }
    buf_format(out, "%s_sum %.6f\n%s_count %llu\n", name,
               (double)atomic_load(&histogram->sum_us) / 1e6, name, (unsigned long long)count);
}
