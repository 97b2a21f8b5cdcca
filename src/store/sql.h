/* sql.h — SQLite with our errors: bind in order, step, read in order.
 *
 * Private to store.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H
#include "base/text.h"
#include <sqlite3.h>
#include <stdbool.h>

struct arena;
struct err;

/* Fill `err` from the connection's last failure. A full or read-only disk: ERR_UNAVAILABLE; a row
 * that no table takes (its key exists, a value is missing or too large): ERR_INTERNAL. */
int sql_fail(sqlite3 *db, struct err *err, const char *what);

/* Statements without parameters; and one to be used again and again, freed by sqlite3_finalize.
 * Errors as sql_fail. */
int sql_exec(sqlite3 *db, const char *sql, struct err *err);
int sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt, struct err *err);

/* Both binding and reading go through the columns in order. Texts are borrowed until sql_run. */
struct sql {
    sqlite3_stmt *stmt;
    int at;
};

static inline struct sql sql_of(sqlite3_stmt *stmt)
{
    return (struct sql){stmt, 0};
}

/* Bind the next parameter. */
void sql_put_int(struct sql *sql, int64_t value);
void sql_put_real(struct sql *sql, double value);
void sql_put_string(struct sql *sql, const char *value); /* NULL is "" */
void sql_put_text(struct sql *sql, struct text value);
void sql_put_blob(struct sql *sql, struct text value);
void sql_put_null(struct sql *sql);

/* Step once and reset: for what gives no rows. `changed` may be NULL. */
int sql_run(struct sql *sql, int *changed, struct err *err);

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

#endif
