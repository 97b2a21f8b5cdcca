/* store_internal.h — what the files of the store share.
 *
 * Private to store.
 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H
#include "base/buf.h"
#include "base/map.h"
#include "store/checkpoint.h"
#include "store/job_index.h"
#include "store/marker.h"
#include "store/reserve.h"
#include "store/rows.h"
#include "store/store.h"
#include <stdatomic.h>

enum write_statement {
    WRITE_BEGIN,
    WRITE_COMMIT,
    WRITE_ROLLBACK,
    WRITE_EVENT,
    WRITE_COUNTER,
    WRITE_JOB_NEW,
    WRITE_JOB,
    WRITE_JOB_PLAN,
    WRITE_JOB_SOURCE,
    WRITE_JOB_ATTEMPT,
    WRITE_TASK,
    WRITE_TASK_ATTEMPT,
    WRITE_TASK_REMOVE,
    WRITE_STORY,
    WRITE_NODE,
    PURGE_FIRST, /* PURGE_FIRST … PURGE_LAST: each takes a job's id */
    PURGE_LAST = PURGE_FIRST + 9,
    WRITE_TAG,
    WRITE_UNTAG,
    WRITE_USER_ADD,
    WRITE_USER_SET,
    WRITE_USER_REMOVE,
    WRITE_USER_TOKENS,
    COUNT_USERS,
    HAS_USER,
    COUNT_TOKENS,
    COUNT_TAGS,
    READ_USED,
    READ_OLDEST,
    WRITE_TOKEN,
    WRITE_TOKEN_REMOVE,
    WRITE_TOKENS_REMOVE,
    WRITE_SETTING,
    WRITE_END,
    WRITE_BARRIER,
    WRITE_SETTING_REMOVE,
    WRITE_LOG_TRIM,
    WRITE_TOKENS_EXPIRE,
    WRITE_COUNT,
};

struct store {
    char *directory, *path;
    int lock_fd;
    sqlite3 *db; /* the writer's */
    sqlite3_stmt *writes[WRITE_COUNT];
    struct job_index *job_index;
    struct buf scratch;
    uint32_t last_job;
    uint64_t last_attempt;

    struct {
        struct store_epoch *items; /* in order, at least one once the store is open */
        size_t count, room;
    } epochs;
    uint64_t stored_commits, stored_events; /* in all, as the counters say */
    struct marker marker;
    bool is_mark_failing;
    struct reserve reserve;
    _Atomic bool is_short; /* the reserve has been given up */
    struct checkpoint checkpoint;
    int wal_pages; /* after the last commit */
    _Atomic uint64_t commits, commit_failures, records, events, commit_us;
};

static inline struct sql store_sql(struct store *store, enum write_statement which)
{
    return sql_of(store->writes[which]);
}

/* A second connection on the same file. */
int store_connect(const char *path, bool is_writer, sqlite3 **db, struct err *err);

/* Who has the directory: a lock of the process on the file `lock`, which goes with it.
 * ERR_CONFLICT: another has. */
int store_lock(const char *directory, int *fd, struct err *err);
/* At the end the last connection empties the log and removes it, unless it is kept. */
int store_keep_log(sqlite3 *db, bool is_kept, struct err *err);
/* ERR_CORRUPT: a database of another program. ERR_UNSUPPORTED: of a newer one of ours. */
int store_check_program(sqlite3 *db, struct err *err);
/* ERR_CORRUPT says what was found first. */
int store_look_through(sqlite3 *db, struct err *err);

/* The number that a statement gives; unchanged when it gives no row. */
int store_pragma(sqlite3 *db, const char *text, int64_t *value, struct err *err);
/* One of the statements without parameters. */
int store_run(struct store *store, enum write_statement which, struct err *err);

/* Within the transaction: the numbers that are used. */
int store_write_counters(struct store *store, uint32_t last_job, uint64_t last_attempt,
                         struct err *err);
/* Likewise: one more commit, and so many events. */
int store_write_progress(struct store *store, size_t event_count, struct err *err);

/* Within the transaction: the records of an output. The job index is changed by
 * store_show_records, once the transaction has become durable. */
int store_write_records(struct store *store, const struct output *output, struct err *err);
void store_show_records(struct store *store, const struct output *output);

/* Likewise for the changes; each gets its own code. Only what stops the whole transaction is
 * returned. */
int store_write_changes(struct store *store, struct store_change *changes, size_t count,
                        struct err *err);
void store_show_changes(struct store *store, const struct store_change *changes, size_t count);

#endif
