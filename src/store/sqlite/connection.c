/* connection.c — see connection.h: connections, statements, transactions, errors. */
#include "store/sqlite/connection.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WRITER_CACHE_KIB = 16384, READER_CACHE_KIB = 2048 };

static const char *const controls[CONTROL_COUNT] = {
    [CONTROL_BEGIN] = "BEGIN",
    [CONTROL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [CONTROL_COMMIT] = "COMMIT",
    [CONTROL_ROLLBACK] = "ROLLBACK",
};

struct statement {
    struct db_statement base;
    sqlite3_stmt *stmt;
};

static sqlite3 *sqlite_of(struct db *db)
{
    return ((struct sqlite_connection *)db)->db;
}

static sqlite3_stmt *stmt_of(const struct db_statement *statement)
{
    return ((const struct statement *)statement)->stmt;
}

int sqlite_fail(sqlite3 *db, struct err *err, const char *what)
{
    int code = sqlite3_errcode(db), number = sqlite3_system_errno(db);
    const char *path = sqlite3_db_filename(db, "main");
    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_fail(err, ERR_UNAVAILABLE, "", "the disk of %s is full", path);
    case SQLITE_READONLY:
        return err_fail(err, ERR_UNAVAILABLE, "", "%s cannot be written: read-only", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_fail(err, ERR_CORRUPT, "", "%s is damaged or not a database (%s)", path,
                        sqlite3_errmsg(db));
    case SQLITE_IOERR:
        if (number == ENOSPC || number == EDQUOT || number == EFBIG)
            return err_fail(err, ERR_UNAVAILABLE, "", "the disk of %s is full (%s)", path,
                            strerrordesc_np(number));
        if (number == EROFS)
            return err_fail(err, ERR_UNAVAILABLE, "", "%s cannot be written: read-only", path);
        if (number != 0)
            return err_errno(err, number, "%s: %s", path, what);
        break;
    case SQLITE_CANTOPEN:
        if (number != 0)
            return err_errno(err, number, "%s: %s", path, what);
        break;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        return err_fail(err, ERR_INTERNAL, "", "%s takes no such row: %s", path,
                        sqlite3_errmsg(db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* another recovers the log of the database, and stands still */
        return err_fail(err, ERR_BUSY, "", "%s is in use by another program", path);
    default:
        break;
    }
    return err_fail(err, ERR_IO, "", "%s: %s: %s", path, what, sqlite3_errmsg(db));
}

int sqlite_execute(sqlite3 *db, const char *text, struct err *err)
{
    assert(db && text);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return sqlite_fail(db, err, text);
}

int sqlite_number(sqlite3 *db, const char *text, int64_t *value, struct err *err)
{
    assert(db && value);
    int code = 0, step;
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK)
        return sqlite_fail(db, err, text);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        *value = sqlite3_column_int64(stmt, 0);
    else if (step != SQLITE_DONE)
        code = sqlite_fail(db, err, "read");
    sqlite3_finalize(stmt);
    return code;
}

static int connection_control(struct db *db, enum sqlite_control which, struct err *err)
{
    assert(which < CONTROL_COUNT);
    struct sqlite_connection *connection = (struct sqlite_connection *)db;
    sqlite3_stmt **stmt = &connection->controls[which];
    int code = 0;
    if (!*stmt && sqlite3_prepare_v3(connection->db, controls[which], -1, SQLITE_PREPARE_PERSISTENT,
                                     stmt, NULL) != SQLITE_OK)
        return sqlite_fail(connection->db, err, controls[which]);
    if (sqlite3_step(*stmt) != SQLITE_DONE)
        code = sqlite_fail(connection->db, err, "write");
    sqlite3_reset(*stmt);
    return code;
}

static int connection_begin(struct db *db, bool writes, struct err *err)
{
    return connection_control(db, writes ? CONTROL_BEGIN_WRITE : CONTROL_BEGIN, err);
}

static int connection_commit(struct db *db, struct err *err)
{
    return connection_control(db, CONTROL_COMMIT, err);
}

static void connection_rollback(struct db *db)
{
    if (!sqlite3_get_autocommit(sqlite_of(db)))
        connection_control(db, CONTROL_ROLLBACK, NULL);
}

static int connection_execute(struct db *db, const char *text, struct err *err)
{
    return sqlite_execute(sqlite_of(db), text, err);
}

static int statement_prepare(struct db *db, const char *text, struct db_statement **out,
                             struct err *err)
{
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v3(sqlite_of(db), text, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
        SQLITE_OK)
        return sqlite_fail(sqlite_of(db), err, text);
    struct statement *statement;
    statement = mem_zero(1, sizeof *statement);
    *statement = (struct statement){{db->ops}, stmt};
    *out = &statement->base;
    return 0;
}

static void statement_free(struct db_statement *statement)
{
    sqlite3_finalize(stmt_of(statement));
    mem_free(statement);
}

static void statement_put_int(struct db_statement *statement, int at, int64_t value)
{
    int code = sqlite3_bind_int64(stmt_of(statement), at + 1, value);
    assert(code == SQLITE_OK);
    (void)code;
}

static void statement_put_real(struct db_statement *statement, int at, double value)
{
    int code = sqlite3_bind_double(stmt_of(statement), at + 1, value);
    assert(code == SQLITE_OK);
    (void)code;
}

static void statement_put_text(struct db_statement *statement, int at, struct text value)
{
    int code = sqlite3_bind_text64(stmt_of(statement), at + 1, value.at ? value.at : "",
                                   value.length, SQLITE_STATIC, SQLITE_UTF8);
    assert(code == SQLITE_OK);
    (void)code;
}

static void statement_put_blob(struct db_statement *statement, int at, struct text value)
{
    int code = sqlite3_bind_blob64(stmt_of(statement), at + 1, value.at ? value.at : "",
                                   value.length, SQLITE_STATIC);
    assert(code == SQLITE_OK);
    (void)code;
}

static void statement_put_null(struct db_statement *statement, int at)
{
    int code = sqlite3_bind_null(stmt_of(statement), at + 1);
    assert(code == SQLITE_OK);
    (void)code;
}

static int statement_step(struct db_statement *statement, struct err *err)
{
    sqlite3_stmt *stmt = stmt_of(statement);
    int code = sqlite3_step(stmt), result = 0;
    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        result = sqlite_fail(sqlite3_db_handle(stmt), err,
                             sqlite3_stmt_readonly(stmt) ? "read" : "write");
    sqlite3_reset(stmt);
    return result;
}

static int statement_run(struct db_statement *statement, int *changed, struct err *err)
{
    int code = statement_step(statement, err);
    assert(code <= 0);
    if (code == 0 && changed)
        *changed = sqlite3_changes(sqlite3_db_handle(stmt_of(statement)));
    return code;
}

static int statement_run_one(struct db_statement *statement, struct err *err)
{
    int changed = 0, code = statement_run(statement, &changed, err);
    if (code == 0 && changed != 1)
        return err_fail(err, ERR_INTERNAL, "", "%s: a row that should change is not there: %.100s",
                        sqlite3_db_filename(sqlite3_db_handle(stmt_of(statement)), "main"),
                        sqlite3_sql(stmt_of(statement)));
    return code;
}

static void statement_reset(struct db_statement *statement)
{
    sqlite3_reset(stmt_of(statement));
}

static int statement_parameters(const struct db_statement *statement)
{
    return sqlite3_bind_parameter_count(stmt_of(statement));
}

static int64_t statement_get_int(struct db_statement *statement, int at)
{
    assert(at >= 0 && at < sqlite3_data_count(stmt_of(statement)));
    return sqlite3_column_int64(stmt_of(statement), at);
}

static double statement_get_real(struct db_statement *statement, int at)
{
    assert(at >= 0 && at < sqlite3_data_count(stmt_of(statement)));
    return sqlite3_column_double(stmt_of(statement), at);
}

static struct text statement_get_bytes(struct db_statement *statement, int at)
{
    assert(at >= 0 && at < sqlite3_data_count(stmt_of(statement)));
    sqlite3_stmt *stmt = stmt_of(statement);
    const char *bytes = sqlite3_column_blob(stmt, at);
    size_t size = (size_t)sqlite3_column_bytes(stmt, at);
    if (sqlite3_column_type(stmt, at) == SQLITE_NULL)
        return (struct text){NULL, 0};
    return (struct text){bytes ? bytes : "", size};
}

void sqlite_disconnect(struct sqlite_connection *connection)
{
    if (!connection)
        return;
    for (size_t i = 0; i < CONTROL_COUNT; i++)
        sqlite3_finalize(connection->controls[i]);
    sqlite3_close(connection->db);
    mem_free(connection);
}

static void connection_close(struct db *db)
{
    sqlite_disconnect((struct sqlite_connection *)db);
}

static const struct db_ops ops = {
    .close = connection_close,
    .begin = connection_begin,
    .commit = connection_commit,
    .rollback = connection_rollback,
    .execute = connection_execute,
    .prepare = statement_prepare,
    .free = statement_free,
    .put_int = statement_put_int,
    .put_real = statement_put_real,
    .put_text = statement_put_text,
    .put_blob = statement_put_blob,
    .put_null = statement_put_null,
    .step = statement_step,
    .run = statement_run,
    .run_one = statement_run_one,
    .reset = statement_reset,
    .parameters = statement_parameters,
    .get_int = statement_get_int,
    .get_real = statement_get_real,
    .get_bytes = statement_get_bytes,
};

static int connection_open(struct sqlite_connection *connection, const char *path, bool is_writer,
                           struct err *err)
{
    assert(!connection->db);
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    sqlite3 **db = &connection->db;
    flags |= is_writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(path, db, flags, NULL) != SQLITE_OK)
        return *db && sqlite3_errcode(*db) != SQLITE_CANTOPEN
                   ? sqlite_fail(*db, err, "open")
                   : err_errno(err, *db ? sqlite3_system_errno(*db) : ENOMEM, "open %s", path);
    sqlite3_busy_timeout(*db, SQLITE_PATIENCE_MS);
    char cache[64];
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d",
             is_writer ? WRITER_CACHE_KIB : READER_CACHE_KIB);
    return sqlite_execute(*db, cache, err);
}

int sqlite_connect(const char *path, bool is_writer, struct sqlite_connection **out,
                   struct err *err)
{
    struct sqlite_connection *connection = mem_zero(1, sizeof *connection);
    int code = connection_open(connection, path, is_writer, err);
    *connection = (struct sqlite_connection){.base = {&ops}, .db = connection->db};
    *out = NULL;
    if (code < 0) {
        sqlite_disconnect(connection);
        return code;
    }
    *out = connection;
    return 0;
}
