/* logs.h — reading the log segments that skep-init writes (init/layout.h), while it writes them.
 *
 * Edge. The folder can be written to by the user's processes: nothing in it is followed, and only
 * plain files are read.
 */
#ifndef ENGINE_LOCAL_LOGS_H
#define ENGINE_LOCAL_LOGS_H
#include "base/buf.h"
#include "engine/engine.h"

struct err;

/* As engine_ops.log_read; part->is_ended is the caller's. An empty or missing folder is an empty
 * log. */
ssize_t logs_read(const char *directory, enum log_stream stream, uint64_t *offset, char *bytes,
                  size_t size, struct log_part *part, struct err *err);

/* As engine_ops.log_time. Without marks of times (of an older Skep, or removed by the task) a log
 * begins at its begin. */
int logs_time(const char *directory, enum log_stream stream, int64_t at_ms, uint64_t *offset,
              struct err *err);

/* The last `limit` bytes of a stream, from the begin of a line where it was cut. */
void logs_tail(const char *directory, enum log_stream stream, size_t limit, struct buf *out);

/* Copy the newest segments of each stream from one folder into another, `limit` bytes at most, and
 * the marks of times; what else is there stays behind. A second time it does the same. ERR_IO. */
int logs_copy(const char *from, const char *to, uint64_t limit, struct err *err);

#endif
