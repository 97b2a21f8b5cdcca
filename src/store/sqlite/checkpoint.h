/* checkpoint.h — the thread that moves the write-ahead log's pages into the database.
 *
 * Private to store/sqlite. It has a connection of its own and never waits for anybody: a reader
 * that keeps its snapshot costs room on the disk, and no commit a moment. What it can do: copy what
 * no snapshot needs (PASSIVE), and, once the log is large and nearly all of it is copied, make the
 * next commit begin the log anew (RESTART). That cannot be done while somebody commits: where
 * commits follow each other without a pause, one of them waits until what they left in the log
 * meanwhile is copied, too, so that the log does not grow for ever. While a snapshot is kept the
 * log grows by what is committed; from `large` pages on that is logged (once a doubling) and shown
 * by large_since_ms.
 */
#ifndef STORE_SQLITE_CHECKPOINT_H
#define STORE_SQLITE_CHECKPOINT_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct marker;
struct sqlite_connection;

struct checkpoint_limits {
    int due;     /* pages in the log from which a checkpoint is worth its while */
    int restart; /* from which the log is made to begin anew */
    int large;   /* from which a warning is logged */
};

struct checkpoint {
    struct checkpoint_limits limits;
    const char *path;      /* borrowed */
    struct marker *marker; /* likewise, synced by the thread soon after it was written */
    struct sqlite_connection *connection;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, writer_wake;    /* of the thread, and of the writer that it holds */
    bool is_due, is_closing, has_thread; /* under the lock */
    bool is_idle;                        /* likewise: it waits for the next commit */
    bool is_running;                     /* likewise: it copies */
    bool wants_writer, is_writer_held;   /* likewise: held for the log to begin anew */
    int noted;                           /* likewise: pages in the log */
    _Atomic int64_t large_since_ms;      /* Unix time; 0: it is not large */
    int warned; /* pages in the log at the last warning; the thread's own */
};

/* Start the thread. ERR_*: as sqlite_connect; ERR_UNAVAILABLE: no thread can be made. */
int checkpoint_start(struct checkpoint *checkpoint, const char *path,
                     const struct checkpoint_limits *limits, struct marker *marker,
                     struct err *err);
/* May be called after a failed start, or for one that is all zeros. */
void checkpoint_stop(struct checkpoint *checkpoint);

/* A commit left this many pages in the log. Returns at once, but for the commit that is held so
 * that the log can begin anew: see above. */
void checkpoint_note(struct checkpoint *checkpoint, int pages);

/* The writer's thread: waits until no checkpoint is due or under way. */
void checkpoint_await(struct checkpoint *checkpoint);
/* One is due, whatever the log has. */
void checkpoint_ask(struct checkpoint *checkpoint);

#endif
