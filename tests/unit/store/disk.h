/* disk.h — a disk that counts, fails and forgets: a VFS of SQLite over the real files.
 *
 * What is written reaches the disk when it is synced; when the power fails, each write since then
 * is there or not, by chance. One disk a process; all threads.
 */
#ifndef TEST_STORE_DISK_H
#define TEST_STORE_DISK_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum disk_op { DISK_WRITE, DISK_SYNC };
/* By the end of their names. */
enum disk_file { DISK_DATABASE, DISK_LOG, DISK_OTHER, DISK_FILES };

/* All databases opened from then on lie on it; forgets what an earlier test did. */
void disk_begin(void);

struct disk_counts {
    uint64_t writes, syncs;
    uint64_t unsynced; /* writes since the last sync */
};
struct disk_counts disk_count(enum disk_file file);

/* Until the file has been synced that often in all. False: not within a minute. */
bool disk_await_syncs(enum disk_file file, uint64_t syncs);

/* From now on writes (or truncations) of this thread to the file are counted. */
void disk_watch(enum disk_file file, pthread_t thread);
uint64_t disk_watched(void);

/* How often SQLite has waited since disk_begin, for a lock that another had. */
uint64_t disk_waits(void);

/* Before the next write (or truncation) of the file, `at` is called, once, on the thread that
 * writes; it uses no database of this disk, but may use the same files by the VFS "unix". */
void disk_on_write(enum disk_file file, void (*at)(void *context), void *context);

/* The operations on the file fail with an SQLITE_* code, after `after` more that succeed. */
void disk_fail(enum disk_op op, enum disk_file file, uint64_t after, int code);
/* Likewise SQLITE_FULL for writes to all files, for as long as the file `path` is there. */
void disk_fill_while(const char *path);
/* Likewise for writes to the file behind its first so many bytes; 0: none. Until disk_heal. */
void disk_bound(enum disk_file file, uint64_t bytes);
void disk_heal(void);

/* After `after` more operations of any kind the disk's content is kept as a failure of the power
 * would leave it; `at` is called then. disk_restore writes the files into the folder. */
void disk_lose_power(uint64_t after, unsigned seed, void (*at)(void *context), void *context);
bool disk_has_lost_power(void);
void disk_restore(const char *directory);

#endif
