/* log_times.h — how long each stream of a log was at which time, in a file beside its segments.
 *
 * Edge. Who writes a log notes a mark before it writes, once in a second at most. When the file is
 * full every second mark goes, and from then on they stand twice as far apart: the file never has
 * more than LOG_TIMES_MAX marks, and they are never further apart than about a thousandth of the
 * time that the task has run. Writer and reader are on one machine: numbers are in its own order.
 */
#ifndef INIT_LOG_TIMES_H
#define INIT_LOG_TIMES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_TIMES_NAME "times"

enum { LOG_TIMES_MAX = 2048, LOG_TIMES_STEP_MS = 1000, LOG_TIMES_STREAMS = 4 };

/* What was written at `at_ms` or later begins at these offsets; what stands between them and those
 * of the next mark was written before `until_ms`. */
struct log_mark {
    int64_t at_ms, until_ms;          /* Unix time */
    uint64_t ends[LOG_TIMES_STREAMS]; /* in the order of LAYOUT_STREAMS */
};

/* Of who writes. */
struct log_times {
    size_t count; /* marks in the file */
    int64_t last_ms, step_ms;
    bool is_missed; /* the latest mark could not be written */
};

/* Go on with the file of this folder, if there is one. */
void log_times_open(struct log_times *times, int directory);

/* Streams of these lengths are about to grow. A mark that cannot be written (the disk is full) is
 * left out: what would have stood behind it counts to the one before. */
void log_times_note(struct log_times *times, int directory, int64_t now_ms,
                    const uint64_t ends[LOG_TIMES_STREAMS]);

/* Where to begin to read so that nothing is left out that was written at `at_ms` or later;
 * UINT64_MAX: nothing was. */
uint64_t log_times_find(const struct log_mark *marks, size_t count, size_t stream, int64_t at_ms);

#endif
