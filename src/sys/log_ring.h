/* log_ring.h — the newest lines of the server's log, in memory, for those who may read them without
 * a shell.
 *
 * Edge. One for the process, as the log is. Lines are numbered; the numbers of a later start are
 * higher, so that who reads on from a number misses nothing of a new server.
 */
#ifndef SYS_LOG_RING_H
#define SYS_LOG_RING_H
#include "sys/log.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* The oldest lines go first; longer ones are cut. Together at most about 2 MiB. */
enum { LOG_RING_LINES = 2000, LOG_RING_TEXT_MAX = 1000, LOG_RING_PART_MAX = 32 };

/* Lines are kept from now on; before, and in programs that never call it, none are. */
void log_ring_start(int64_t now_ms);
/* None are kept any more, and those that were are gone. */
void log_ring_stop(void);

/* By log.c alone. */
void log_ring_add(enum log_level level, int64_t time_ms, const char *part, const char *text);

struct log_ring_line { /* in the arena */
    uint64_t number;
    int64_t time_ms;
    enum log_level level;
    const char *part, *text;
};
struct log_ring_lines {
    struct log_ring_line *items; /* the oldest first */
    size_t count;
    uint64_t next;    /* read on behind this number */
    bool has_missed;  /* lines behind `after` had gone before they were read */
    bool is_complete; /* there are no others, of this importance, up to now */
};

/* At most `limit` lines that are as important as `level` or more: the newest of all (`after` 0), or
 * those that follow the line `after`. */
void log_ring_read(enum log_level level, uint64_t after, size_t limit, struct arena *arena,
                   struct log_ring_lines *lines);

#endif
