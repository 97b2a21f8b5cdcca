/* connection.h — libpq behind the store's seam (store/db.h).
 *
 * Private to store/postgres. A connection that has broken is made again by the next transaction, or
 * the next statement outside of one; its statements are prepared again when they are used.
 *
 * In a transaction that writes, statements go out without waiting for their results (libpq's
 * pipeline): the commit waits for all of them, and so does a statement whose answer is needed.
 */
#ifndef STORE_POSTGRES_CONNECTION_H
#define STORE_POSTGRES_CONNECTION_H
#include "store/db.h"
#include <libpq-fe.h>

struct postgres_statement;

/* What a statement that was sent in a transaction is expected to give. */
struct postgres_pending {
    struct postgres_statement *statement; /* NULL: the connection's own */
    bool is_one;                          /* it must change exactly one row */
    bool is_fence;                        /* … and else another server has the database */
};

struct postgres_connection {
    struct db base;
    const char *address, *name; /* the database's; `name` is for messages, without the password */
    PGconn *conn;
    uint64_t generation; /* of `conn`: statements of an older one must be prepared again */
    unsigned statements; /* that have been named */
    bool is_littered;    /* it has statements of an older generation, which nobody uses */
    bool is_ending;      /* PostgreSQL has said so while nothing was asked */
    bool is_in_transaction;
    bool is_pipelined; /* a transaction that writes */
    struct {
        struct postgres_pending *items;
        size_t count, room;
    } pending;
    struct postgres_statement *streaming; /* gives rows one by one; nothing else can be sent */
    bool is_writer;
    /* The writer's: makes a new session the one that may write; NULL: not yet. */
    int (*lease)(void *context, struct err *err);
    void *context;
    int64_t fence; /* the writer's: must stand in the database; 0: not yet */
};

/* Statements under way, so that neither side fills the other's buffers. */
enum { POSTGRES_PENDING_MAX = 500 };

/* Connect at once. On failure *connection is NULL. */
int postgres_connect(const char *address, const char *name, bool is_writer,
                     struct postgres_connection **connection, struct err *err);
/* NULL: nothing. */
void postgres_disconnect(struct postgres_connection *connection);

bool postgres_is_broken(const struct postgres_connection *connection);
/* Make the connection again when it has broken. ERR_UNAVAILABLE; the lease's errors. */
int postgres_ready(struct postgres_connection *connection, struct err *err);

/* Fill `err` from a result that is not what it should be, or from the connection when it is NULL;
 * errors of db.h. */
int postgres_fail(const struct postgres_connection *connection, const PGresult *result,
                  const char *what, struct err *err);

/* A statement outside of a pipeline; `*result`, in text format, is the caller's, to be cleared. */
int postgres_ask(struct postgres_connection *connection, const char *text, PGresult **result,
                 struct err *err);
int postgres_execute(struct postgres_connection *connection, const char *text, struct err *err);
/* The number in the first column of the first row; 0 when there is none, or it is NULL. */
int postgres_number(struct postgres_connection *connection, const char *text, int64_t *value,
                    struct err *err);

/* Wait for all that was sent in the pipeline, which is not nothing when there is a `last`: it gets
 * the result of the last one, to be cleared. */
int postgres_flush(struct postgres_connection *connection, PGresult **last, struct err *err);

/* --- statements (statement.c) --- */

int statement_prepare(struct db *db, const char *text, struct db_statement **statement,
                      struct err *err);
void statement_free(struct db_statement *statement);
void statement_put_int(struct db_statement *statement, int at, int64_t value);
void statement_put_real(struct db_statement *statement, int at, double value);
void statement_put_text(struct db_statement *statement, int at, struct text value);
void statement_put_blob(struct db_statement *statement, int at, struct text value);
void statement_put_null(struct db_statement *statement, int at);
int statement_step(struct db_statement *statement, struct err *err);
int statement_run(struct db_statement *statement, int *changed, struct err *err);
int statement_run_one(struct db_statement *statement, struct err *err);
void statement_reset(struct db_statement *statement);
int statement_parameters(const struct db_statement *statement);
int64_t statement_get_int(struct db_statement *statement, int at);
double statement_get_real(struct db_statement *statement, int at);
struct text statement_get_bytes(struct db_statement *statement, int at);
/* The text as PostgreSQL reads it, for messages. */
const char *statement_text(const struct postgres_statement *statement);

#endif
