/* log_keep.h — decides which logs of ended tasks are removed, and when.
 *
 * Edge; choosing and limits are pure. Logs older than a time go. Of the room for logs every user
 * may fill the same part; what one leaves unused the others may use. When a user's logs take more
 * than that, the oldest of that user's go, never another's. Inodes are room as well: a file costs
 * its bytes and its part of the inodes that logs may take.
 */
#ifndef ENGINE_LOCAL_LOG_KEEP_H
#define ENGINE_LOCAL_LOG_KEEP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOG_OWNER_MAX = 64,
    LOG_ENTRIES_MAX = 100000, /* of one task: one with more files counts as filling all the room */
    LOG_LEVELS_MAX = 32,
};

struct log_kept {
    char id[24];
    char owner[LOG_OWNER_MAX]; /* "" where nobody noted it: these count as one user's */
    int64_t used_s;            /* Unix time of the last write */
    uint64_t cost;             /* bytes, and inodes at the price of `inode_cost` */
    bool is_live;              /* its task is there: it counts, and stays */
    bool is_chosen;            /* to be removed */
};

struct log_limits {
    uint64_t cost;       /* of all logs together */
    uint64_t inode_cost; /* in bytes */
    int64_t keep_s;
    int64_t latest_s; /* tree_latest_s: no write was later; 0: not known */
};

/* `room` bytes, and a quarter of the file system's `inodes` (0: it has no such limit). */
struct log_limits log_limits_of(uint64_t room, uint64_t inodes, int64_t keep_s);

/* Sets is_chosen; the order of `logs` changes. */
void log_keep_choose(struct log_kept *logs, size_t count, const struct log_limits *limits,
                     int64_t now_s);

/* What is in a task's log folder, whole: nothing in it is followed. Fills used_s and cost. A time
 * that is later than the limits' latest_s becomes that, on the disk as well. */
void log_measure(const char *directory, const struct log_limits *limits, struct log_kept *log);

/* Note whose logs are in a folder, where no task can change it; and read it. Does nothing on a
 * file system without extended attributes. `job` is USER~NAME. */
void log_owner_put(const char *directory, const char *job);
void log_owner_read(const char *directory, char owner[LOG_OWNER_MAX]);

#endif
