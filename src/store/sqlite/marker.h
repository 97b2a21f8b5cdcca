/* marker.h — notes beside the database, in the file `mark`, how far it has been written.
 *
 * Private to store/sqlite. SQLite takes a write-ahead log that ends early, or is missing, for one
 * that was never longer, and a database that was copied from elsewhere for its own. The mark says
 * what had been committed, so that a start can tell. It is written after each commit without
 * waiting for the disk, and synced at most MARK_SYNC_MS later by whoever calls marker_sync: it
 * never says more than the database holds, and after a power failure up to that much less.
 */
#ifndef STORE_SQLITE_MARKER_H
#define STORE_SQLITE_MARKER_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

enum { MARK_SYNC_MS = 1000 };

struct mark {
    uint64_t epoch; /* random, of the database's epoch (store_epoch.id) */
    uint64_t commits, events;
    uint32_t last_job;
    uint64_t last_attempt;
};

struct marker {
    int fd; /* -1: not open */
    _Atomic bool is_dirty;
};

/* Open, or make, the file. ERR_IO; ERR_UNAVAILABLE: the disk is full. */
int marker_open(struct marker *marker, const char *directory, struct err *err);
void marker_close(struct marker *marker); /* synced */

/* 1: read; 0: the file is empty, nothing was ever marked; ERR_CORRUPT; ERR_IO. */
int marker_read(struct marker *marker, struct mark *mark, struct err *err);
/* Into the file, not yet onto the disk. ERR_IO. */
int marker_write(struct marker *marker, const struct mark *mark, struct err *err);
static inline bool marker_is_dirty(const struct marker *marker)
{
    return atomic_load(&marker->is_dirty);
}

/* Any thread. ERR_IO. */
int marker_sync(struct marker *marker, struct err *err);

#endif
