/* log.h — log streams as rows of segments (layout.h).
 *
 * Edge. A stream that cannot be written (the disk is full) drops what comes, counts it and goes on:
 * the task must not die of it. The loss is told in the exit report.
 */
#ifndef INIT_LOG_H
#define INIT_LOG_H
#include <stddef.h>
#include <stdint.h>

struct err;

struct log_writer {
    const char *name;
    int directory; /* borrowed */
    int fd;
    uint64_t segment_bytes;
    uint64_t offset;          /* bytes of the stream so far */
    uint64_t begin, previous; /* of the current segment; of the one before, when begin > 0 */
    uint64_t lost;            /* bytes that could not be written */
    int lost_errno;
    char last; /* last byte written, '\n' at the start */
};

/* Begin the stream `name` in the directory, which is borrowed as `name` is; segment_bytes 0: the
 * layout's. ERR_IO: the first segment cannot be made. */
int log_open(struct log_writer *log, int directory, const char *name, uint64_t segment_bytes,
             struct err *err);
/* Append; begins a segment when the current one is full, and removes the one before the last. Never
 * fails: what cannot be written is counted in `lost`. */
void log_write(struct log_writer *log, const char *bytes, size_t length);

#endif
