/* sql.c — see sql.h. */
#include "store/sql.h"
#include "base/arena.h"
#include "base/err.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int sql_fail(sqlite3 *db, struct err *err, const char *what)
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
        return err_fail(err, ERR_BUSY, "", "%s is in use by another program", path);
    default:
        break;
    }
    return err_fail(err, ERR_IO, "", "%s: %s: %s", path, what, sqlite3_errmsg(db));
}

int sql_exec(sqlite3 *db, const char *text, struct err *err)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : sql_fail(db, err, text);
}

int sql_prepare(sqlite3 *db, const char *text, sqlite3_stmt **stmt, struct err *err)
{
    if (sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL) != SQLITE_OK)
        return sql_fail(db, err, text);
    return 0;
}

void sql_put_int(struct sql *sql, int64_t value)
{
    int code = sqlite3_bind_int64(sql->stmt, ++sql->at, value);
    assert(code == SQLITE_OK);
    (void)code;
}

void sql_put_real(struct sql *sql, double value)
{
    int code = sqlite3_bind_double(sql->stmt, ++sql->at, value);
    assert(code == SQLITE_OK);
    (void)code;
}

void sql_put_string(struct sql *sql, const char *value)
{
    sql_put_text(sql, text_of(value));
}

void sql_put_text(struct sql *sql, struct text value)
{
    int code = sqlite3_bind_text64(sql->stmt, ++sql->at, value.at ? value.at : "", value.length,
                                   SQLITE_STATIC, SQLITE_UTF8);
    assert(code == SQLITE_OK);
    (void)code;
}

void sql_put_blob(struct sql *sql, struct text value)
{
    int code = sqlite3_bind_blob64(sql->stmt, ++sql->at, value.at ? value.at : "", value.length,
                                   SQLITE_STATIC);
    assert(code == SQLITE_OK);
    (void)code;
}

void sql_put_null(struct sql *sql)
{
    int code = sqlite3_bind_null(sql->stmt, ++sql->at);
    assert(code == SQLITE_OK);
    (void)code;
}

int sql_run(struct sql *sql, int *changed, struct err *err)
{
    sqlite3 *db = sqlite3_db_handle(sql->stmt);
    int code = sqlite3_step(sql->stmt), result = 0;

    assert(code != SQLITE_ROW);
    assert(sql->at == sqlite3_bind_parameter_count(sql->stmt));
    if (code != SQLITE_DONE)
        result = sql_fail(db, err, "write");
    else if (changed)
        *changed = sqlite3_changes(db);
    sqlite3_reset(sql->stmt);
    sql->at = 0;
    return result;
}

int sql_next(struct sql *sql, struct err *err)
{
    int code = sqlite3_step(sql->stmt);

    sql->at = 0;
    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE) {
        int result = sql_fail(sqlite3_db_handle(sql->stmt), err, "read");
        sqlite3_reset(sql->stmt);
        return result;
    }
    sqlite3_reset(sql->stmt);
    return 0;
}

void sql_done(struct sql *sql)
{
    sqlite3_reset(sql->stmt);
    sql->at = 0;
}

int64_t sql_int(struct sql *sql)
{
    return sqlite3_column_int64(sql->stmt, sql->at++);
}

double sql_real(struct sql *sql)
{
    return sqlite3_column_double(sql->stmt, sql->at++);
}

bool sql_bool(struct sql *sql)
{
    return sql_int(sql) != 0;
}

struct text sql_text(struct sql *sql, struct arena *arena)
{
    const char *bytes = sqlite3_column_blob(sql->stmt, sql->at);
    size_t size = (size_t)sqlite3_column_bytes(sql->stmt, sql->at);
    bool is_null = sqlite3_column_type(sql->stmt, sql->at) == SQLITE_NULL;

    sql->at++;
    if (is_null)
        return (struct text){NULL, 0};
    return (struct text){arena_copy(arena, (struct text){bytes ? bytes : "", size}), size};
}

const char *sql_string(struct sql *sql, struct arena *arena)
{
    struct text text = sql_text(sql, arena);
    return text.at ? text.at : "";
}

void sql_copy(struct sql *sql, char *to, size_t size)
{
    const unsigned char *text = sqlite3_column_text(sql->stmt, sql->at++);
    snprintf(to, size, "%s", text ? (const char *)text : "");
}
