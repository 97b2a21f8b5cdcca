/* sql.h — statements of a connection: bind in order, step, read in order.
 *
 * Private to store. A noun's file keeps its statements as static texts; a session prepares each
 * when it is first used, and keeps it. Errors as in db.h.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "store/db.h"
#include <stdbool.h>

struct arena;

/* A connection and the statements that it has prepared. */
struct session {
    struct db *db; /* borrowed */
    struct {
        struct db_statement **items;
        size_t count, room;
    } prepared;
    struct id_map at; /* address of a text → its place in `prepared` */
    struct err failure;
    int failure_code; /* of the last statement that could not be prepared */
};

void session_release(struct session *session); /* before the connection is closed */

/* Both binding and reading go through the columns in order. Texts are borrowed until sql_run. When
 * the statement could not be prepared, binding does nothing, and sql_run and sql_next say why. */
struct sql {
    struct session *session;
    struct db_statement *statement; /* NULL: it could not be prepared */
    int at;
};

/* `text` lives as long as the program. */
struct sql sql_of(struct session *session, const char *text);

/* Bind the next parameter. */
void sql_put_int(struct sql *sql, int64_t value);
void sql_put_real(struct sql *sql, double value);
void sql_put_string(struct sql *sql, const char *value); /* NULL is "" */
void sql_put_text(struct sql *sql, struct text value);
void sql_put_blob(struct sql *sql, struct text value);
void sql_put_null(struct sql *sql);

/* For what gives no rows. `changed` may be NULL: then it may be put off until the commit. */
int sql_run(struct sql *sql, int *changed, struct err *err);
/* Must change exactly one row, else ERR_INTERNAL; may be put off, too. */
int sql_run_one(struct sql *sql, struct err *err);

/* 1: a row, read it; 0: no more (and reset); ERR_*. Rewinds `at`. */
int sql_next(struct sql *sql, struct err *err);
void sql_done(struct sql *sql); /* before the last row */

/* Read the next column of the row; strings and texts are copied into the arena, NUL-terminated. */
int64_t sql_int(struct sql *sql);
double sql_real(struct sql *sql);
bool sql_bool(struct sql *sql);
const char *sql_string(struct sql *sql, struct arena *arena);
struct text sql_text(struct sql *sql, struct arena *arena); /* at == NULL when the column is NULL */
void sql_copy(struct sql *sql, char *to, size_t size);      /* cut to fit */

/* The first column of the first row, 0 when there is none, and reset: the parameters are bound. */
int sql_number(struct sql *sql, int64_t *value, struct err *err);

#endif
