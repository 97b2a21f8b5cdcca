/* metrics.h — counters of the server, written in Prometheus' text format.
 *
 * Any thread adds; all are atomic.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct engine_gpu;

enum { HISTOGRAM_BUCKETS = 12 };

/* Of times in µs; the bounds are the same for all: 0.5 ms … 1 s, and above. */
struct histogram {
    _Atomic uint64_t buckets[HISTOGRAM_BUCKETS], sum_us;
};

struct metrics {
    struct histogram request; /* from the mailbox to the answer */
    struct histogram commit;
    struct histogram launch; /* one create: reading, building, handing over */
    _Atomic uint64_t requests, refused, facts, facts_dropped, facts_kept, batches, batch_mails;
    _Atomic uint64_t creates, create_failures, kills, orphans, lost, adopted;
    _Atomic int64_t clock_behind_ms; /* the core's time behind the wall clock */
    _Atomic uint64_t restores, purged_jobs, idle_tasks, set_aside, quarantined, nodes_unstored;
    _Atomic uint64_t jobs_unpurged;
};

/* One more duration; below zero counts as 0. */
void histogram_add(struct histogram *histogram, int64_t us);
/* Append in the text format with HELP and TYPE; `type` is "counter" or "gauge". */
void histogram_write(struct histogram *histogram, const char *name, const char *help,
                     struct buf *out);
void metric_head_write(struct buf *out, const char *name, const char *type, const char *help);
void metric_label_write(struct buf *out, const char *name, const char *value); /* name="value" */
void metric_write(struct buf *out, const char *name, const char *type, const char *help,
                  uint64_t value);

/* Nothing at all without sampled GPUs. */
void gpu_metrics_write(const struct engine_gpu *gpus, size_t count, struct buf *out);

#endif
