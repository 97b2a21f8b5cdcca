/* connection.h — SQLite behind the store's seam (store/db.h).
 *
 * Private to store/sqlite.
 */
#ifndef STORE_SQLITE_CONNECTION_H
#define STORE_SQLITE_CONNECTION_H
#include "store/db.h"
#include <sqlite3.h>

enum { SQLITE_PATIENCE_MS = 10000 }; /* how long a connection waits for a lock of another one */

enum sqlite_control {
    CONTROL_BEGIN,
    CONTROL_BEGIN_WRITE,
    CONTROL_COMMIT,
    CONTROL_ROLLBACK,
    CONTROL_COUNT,
};

struct sqlite_connection {
    struct db base;
    sqlite3 *db;
    sqlite3_stmt *controls[CONTROL_COUNT];
};

/* Open a database, and make it when there is none and it is for a writer. On failure *connection is
 * NULL. */
int sqlite_connect(const char *path, bool is_writer, struct sqlite_connection **connection,
                   struct err *err);
/* NULL: nothing. */
void sqlite_disconnect(struct sqlite_connection *connection);

/* Fill `err` from the connection's last failure; errors of db.h. */
int sqlite_fail(sqlite3 *db, struct err *err, const char *what);
int sqlite_execute(sqlite3 *db, const char *text, struct err *err);

/* The number that a statement gives, used once; unchanged when it gives no row. */
int sqlite_number(sqlite3 *db, const char *text, int64_t *value, struct err *err);
/* At the end the last connection empties the log and removes it, unless it is kept. */
int sqlite_keep_log(sqlite3 *db, bool is_kept, struct err *err);
/* ERR_CORRUPT: a database of another program. ERR_UNSUPPORTED: of a newer one of ours. */
int sqlite_check_program(sqlite3 *db, struct err *err);
/* Look through it for damage. ERR_CORRUPT says what was found first. */
int sqlite_check_pages(sqlite3 *db, struct err *err);

#endif
