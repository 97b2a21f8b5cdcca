/* hang.h — decides whether a task has stopped making progress while its peers go on.
 *
 * Pure. The server samples the running tasks of a job; a task has progress when it used CPU beyond
 * a trickle, wrote to its log or (with GPUs) used them. It is idle when it had none for `after_s`
 * and, in a job of several running tasks, some peer had, half of that time longer than itself at
 * least: a whole job that waits for data, whose tasks never stop at the same instant, is told apart
 * as HANG_ALL, which gives an event but never a kill.
 */
#ifndef JOB_HANG_H
#define JOB_HANG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HANG_CPU_TRICKLE = 1 /* percent of one core: pollers and heartbeats */ };

struct hang_sample {
    int64_t at_ms;
    uint64_t cpu_ns;       /* since the attempt's start */
    uint64_t output_bytes; /* since the attempt's start */
    bool has_gpus;
    uint8_t gpu_percent; /* busiest of its GPUs since the sample before */
};

enum hang_verdict { HANG_NO, HANG_IDLE, HANG_ALL };

/* One running task; zeroed at its start. */
struct hang_track {
    struct hang_sample last;
    int64_t moved_ms;       /* last progress; 0: not sampled yet */
    enum hang_verdict told; /* since the last progress */
};

/* Take a sample. A clock that went back is taken as no time passed. */
void hang_track_sample(struct hang_track *track, const struct hang_sample *sample);

/* Judge `index` among the running tasks of its job; each standstill is told once (ALL, then
 * IDLE when a peer moves again).
 * `after_s` 0: never. */
enum hang_verdict hang_judge(struct hang_track *tracks, size_t count, size_t index,
                             uint64_t after_s, int64_t now_ms);

#endif
