/* db.h — the seam between the store and a database: statements, transactions, the lease to write.
 *
 * A second database is a second implementation of the two structs of functions below, in a folder
 * of its own (sqlite/); no file outside of it changes. docs/rfc/0012-store-seam.md says which SQL
 * goes through here, and what each database must promise.
 *
 * Errors of all functions. The disk's, or the network's; the same call may succeed later:
 * ERR_UNAVAILABLE (full, read-only), ERR_BUSY (in use by another program), ERR_IO. ERR_CORRUPT: the
 * database is damaged. A record's: ERR_INTERNAL, because no table takes such a row (its key exists,
 * a value is missing or too large); the same call fails again.
 */
#ifndef STORE_DB_H
#define STORE_DB_H
#include "base/text.h"
#include "store/store.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

/* A connection, for one thread at a time. One that breaks is made again by the next transaction, or
 * the next statement outside of one. */
struct db {
    const struct db_ops *ops;
};

/* A statement of one connection, to be used again and again. */
struct db_statement {
    const struct db_ops *ops;
};

/* Parameters and columns are counted from 0. */
struct db_ops {
    /* The connection's statements have been freed. */
    void (*close)(struct db *db);

    /* A transaction that writes holds out all other writers, and sees what they have committed; one
     * that reads sees one state of the database from its first statement on. */
    int (*begin)(struct db *db, bool writes, struct err *err);
    /* When 0 is returned it is durable. On failure nothing of it is stored, unless the answer was
     * lost: the database's, or the network's errors leave that open. Roll back in any case. */
    int (*commit)(struct db *db, struct err *err);
    /* Nothing when no transaction is open: some failures have ended it. */
    void (*rollback)(struct db *db);

    /* Statements without parameters and rows. */
    int (*execute)(struct db *db, const char *text, struct err *err);
    int (*prepare)(struct db *db, const char *text, struct db_statement **statement,
                   struct err *err);
    void (*free)(struct db_statement *statement);

    /* Bytes are borrowed until the statement has run, or is reset. */
    void (*put_int)(struct db_statement *statement, int at, int64_t value);
    void (*put_real)(struct db_statement *statement, int at, double value);
    void (*put_text)(struct db_statement *statement, int at, struct text value);
    void (*put_blob)(struct db_statement *statement, int at, struct text value);
    void (*put_null)(struct db_statement *statement, int at);

    /* 1: a row; 0: no more. After 0 or an error it is reset. Outside of a transaction that writes,
     * a connection has rows of one statement at a time: read to the end, or reset, the one before.
     */
    int (*step)(struct db_statement *statement, struct err *err);
    void (*reset)(struct db_statement *statement);

    /* For what gives no rows. With `changed` it has run when this returns, and that is how many
     * rows it has inserted, changed or deleted. Without, in a transaction, it may be put off: then
     * it runs before whatever is asked for later, at the latest before the commit, which gives its
     * failure. Put off or not, the statement can be used again. */
    int (*run)(struct db_statement *statement, int *changed, struct err *err);
    /* The same in a transaction that writes, of a statement that must change exactly one row: else
     * ERR_INTERNAL. */
    int (*run_one)(struct db_statement *statement, struct err *err);
    int (*parameters)(const struct db_statement *statement);

    int64_t (*get_int)(struct db_statement *statement, int at);
    double (*get_real)(struct db_statement *statement, int at);
    /* A text or a blob, borrowed until the next step; `at` is NULL when the column is NULL. */
    struct text (*get_bytes)(struct db_statement *statement, int at);
};

/* How far the store has come: what a database is told after each commit, and what it must not be
 * behind of at the next start. */
struct db_progress {
    uint64_t epoch; /* store_epoch.id of the newest one */
    uint64_t commits, events;
    struct job_id last_job;
    struct attempt_id last_attempt;
};

/* What a database found when it was opened. */
struct db_opening {
    const char *new_epoch;    /* why an epoch must begin; NULL: none must */
    struct db_progress known; /* numbers that were given; 0 when it does not know */
};

struct db_counts {
    uint64_t database_bytes, log_bytes; /* 0: there is no such thing */
    int64_t log_large_since_ms;         /* Unix time; 0: it is not */
};

/* A database of ours, migrated, with the lease to write: no other server has it open until it is
 * closed, however this one ends. Made by an open function of its implementation (sqlite/sqlite.h).
 */
struct database {
    const struct database_ops *ops;
    const char *name;  /* for messages */
    struct db *writer; /* the committing thread's */
    struct db_opening opening;
    _Atomic bool is_behind; /* store_is_behind */
};

struct database_ops {
    /* Closes the writer, too, whose statements have been freed. All readers have been closed. */
    void (*close)(struct database *database);
    /* A connection that only reads; any thread. */
    int (*connect)(struct database *database, struct db **reader, struct err *err);
    /* The store has been loaded, and an epoch has begun where one must. */
    int (*start)(struct database *database, const struct db_progress *progress, struct err *err);

    /* The committing thread. After each commit: the numbers are in the database. */
    void (*note)(struct database *database, const struct db_progress *progress);
    /* A commit found the disk full. Gives up a reserve, or else makes what room it can without
     * one; false: there is none. Whoever commits tries once more. */
    bool (*give_way)(struct database *database);
    /* Take the reserve back when there is room. Returns whether the database is short of room. */
    bool (*make_room)(struct database *database);
    /* Bytes without free pages. */
    int (*measure)(struct database *database, uint64_t *used_bytes, struct err *err);
    /* ERR_CORRUPT says what was found first. */
    int (*check)(struct database *database, struct err *err);

    /* Any thread. */
    bool (*is_short)(const struct database *database);
    void (*count)(const struct database *database, struct db_counts *counts);
};

#endif
