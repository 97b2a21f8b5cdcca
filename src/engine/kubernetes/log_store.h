/* log_store.h — the logs of a cluster's tasks on this machine's disk.
 *
 * Edge. One folder an attempt, with segments as skep-init writes them (init/layout.h), so that
 * engine/local/logs.h reads them. What comes is lines of init/log_line.h, in any order and as often
 * as the cluster repeats them: what is there already is passed over, what was missed is a hole.
 * A writer is one thread's; readers may be any.
 */
#ifndef ENGINE_KUBERNETES_LOG_STORE_H
#define ENGINE_KUBERNETES_LOG_STORE_H
#include "base/buf.h"
#include "engine/engine.h"
#include "init/log_line.h"
#include "init/log_times.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

enum { LOG_STORE_PATH_MAX = 400, LOG_STORE_STREAMS = LOG_RUNTIME + 1, LOG_STORE_HOLES_MAX = 4 };

/* How far one attempt's log is known. */
struct log_store_task {
    bool is_known;    /* `end` was read from the disk */
    bool is_whole;    /* skep-init's last line has come */
    bool is_awaited;  /* likewise, and it ends when it hears that all has been taken */
    bool takes_holes; /* what was missed is lost: what is behind it is taken */
    bool is_torn;     /* else: something was missed, and nothing is taken until log_store_again */
    struct {
        uint64_t begin, end; /* of the newest segment */
        struct buf bytes;    /* to be appended at `end` */
        unsigned holes;      /* in the bytes that are being taken */
    } streams[LOG_STORE_STREAMS];
    struct log_times times; /* of the taking: what comes late has a late time */
    struct buf rest;        /* a line whose end has not come yet */
    uint64_t use_at_ms;     /* since its begin; 0: nothing has been told yet of what it uses */
    struct log_line_use use;
};

void log_store_task_release(struct log_store_task *task);
void log_store_task_free(struct log_store_task *task); /* one on the heap; NULL is fine */

/* The folder of an attempt. */
void log_store_path(const char *directory, struct attempt_id attempt,
                    char path[LOG_STORE_PATH_MAX]);

/* Make its folder, noting whose it is. ERR_IO. Again is harmless. */
int log_store_begin(const char *directory, struct attempt_id attempt, const char *job,
                    struct err *err);

/* Some bytes of what skep-init wrote; the newest two pieces of `segment_bytes` of each stream stay.
 * Where holes are taken each costs a file: what is behind the first LOG_STORE_HOLES_MAX of them in
 * `bytes` is passed over, as skep-init leaves one where its lines were lost, and only a task that
 * forges lines more.
 * ERR_IO: something could not be written, and is lost. */
int log_store_take(struct log_store_task *task, const char *path, uint64_t segment_bytes,
                   struct text bytes, struct err *err);

/* Bytes of one stream, at their offset; a hole is taken. As log_store_take. */
int log_store_put(struct log_store_task *task, const char *path, uint64_t segment_bytes,
                  enum log_stream stream, uint64_t offset, struct text bytes, struct err *err);
/* How much of each stream is known. */
void log_store_ends(struct log_store_task *task, const char *path,
                    uint64_t ends[LOG_STORE_STREAMS]);

/* A new reading begins: half a line that came is forgotten. */
void log_store_again(struct log_store_task *task, bool takes_holes);
/* Another writer has written meanwhile. */
void log_store_changed(struct log_store_task *task);

/* Who follows it hears that it has ended. */
void log_store_wake(const char *path);

struct log_retention {
    uint64_t room_bytes; /* for all logs together */
    int64_t keep_s;
    int64_t now_s; /* a trusted time (engine/engine.h) */
};
/* Remove the logs that nobody keeps (engine/local/log_keep.h): those for which `is_live` is false,
 * as the limits want it. */
void log_store_collect(const char *directory, const struct log_retention *retention,
                       bool (*is_live)(void *context, struct attempt_id attempt), void *context);

#endif
