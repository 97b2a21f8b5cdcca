/* sql.c — see sql.h. */
#include "store/sql.h"
#include "base/arena.h"
#include "base/memory.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

void session_release(struct session *session)
{
    assert(session->prepared.count == 0 || session->db);
    for (size_t i = 0; i < session->prepared.count; i++)
        session->db->ops->free(session->prepared.items[i]);
    ARRAY_FREE(&session->prepared);
    id_map_release(&session->at);
}

struct sql sql_of(struct session *session, const char *text)
{
    uint32_t at = id_map_get(&session->at, (uintptr_t)text);
    assert(session->db && text);
    struct db_statement *statement;
    if (at == MAP_NONE) {
        session->failure_code =
            session->db->ops->prepare(session->db, text, &statement, &session->failure);
        if (session->failure_code < 0)
            return (struct sql){.session = session};
        at = (uint32_t)session->prepared.count;
        *ARRAY_ADD(&session->prepared) = statement;
        id_map_set(&session->at, (uintptr_t)text, at);
    }
    return (struct sql){session, session->prepared.items[at], 0};
}

void sql_put_int(struct sql *sql, int64_t value)
{
    if (sql->statement)
        sql->statement->ops->put_int(sql->statement, sql->at++, value);
}

void sql_put_real(struct sql *sql, double value)
{
    if (sql->statement)
        sql->statement->ops->put_real(sql->statement, sql->at++, value);
}

void sql_put_string(struct sql *sql, const char *value)
{
    sql_put_text(sql, text_of(value));
}

void sql_put_text(struct sql *sql, struct text value)
{
    if (sql->statement)
        sql->statement->ops->put_text(sql->statement, sql->at++, value);
}

void sql_put_blob(struct sql *sql, struct text value)
{
    if (sql->statement)
        sql->statement->ops->put_blob(sql->statement, sql->at++, value);
}

void sql_put_null(struct sql *sql)
{
    if (sql->statement)
        sql->statement->ops->put_null(sql->statement, sql->at++);
}

static int sql_failure(const struct sql *sql, struct err *err)
{
    assert(sql->session->failure_code < 0);
    if (err)
        *err = sql->session->failure;
    return sql->session->failure_code;
}

int sql_run(struct sql *sql, int *changed, struct err *err)
{
    struct db_statement *statement = sql->statement;
    if (!statement)
        return sql_failure(sql, err);
    assert(sql->at == statement->ops->parameters(statement));
    int code = statement->ops->run(statement, changed, err);
    sql->at = 0;
    return code;
}

int sql_run_one(struct sql *sql, struct err *err)
{
    struct db_statement *statement = sql->statement;
    if (!statement)
        return sql_failure(sql, err);
    assert(sql->at == statement->ops->parameters(statement));
    int code = statement->ops->run_one(statement, err);
    sql->at = 0;
    return code;
}

int sql_next(struct sql *sql, struct err *err)
{
    assert(sql->session);
    sql->at = 0;
    return sql->statement ? sql->statement->ops->step(sql->statement, err) : sql_failure(sql, err);
}

void sql_done(struct sql *sql)
{
    if (sql->statement)
        sql->statement->ops->reset(sql->statement);
    sql->at = 0;
}

int64_t sql_int(struct sql *sql)
{
    assert(sql->statement);
    return sql->statement->ops->get_int(sql->statement, sql->at++);
}

double sql_real(struct sql *sql)
{
    assert(sql->statement);
    return sql->statement->ops->get_real(sql->statement, sql->at++);
}

bool sql_bool(struct sql *sql)
{
    return sql_int(sql) != 0;
}

struct text sql_text(struct sql *sql, struct arena *arena)
{
    assert(sql->statement && arena);
    struct text bytes = sql->statement->ops->get_bytes(sql->statement, sql->at++);
    if (!bytes.at)
        return bytes;
    return (struct text){arena_copy(arena, bytes), bytes.length};
}

const char *sql_string(struct sql *sql, struct arena *arena)
{
    struct text text = sql_text(sql, arena);
    return text.at ? text.at : "";
}

void sql_copy(struct sql *sql, char *to, size_t size)
{
    assert(sql->statement && size > 0);
    struct text text = sql->statement->ops->get_bytes(sql->statement, sql->at++);
    snprintf(to, size, "%.*s", (int)(text.length < size ? text.length : size),
             text.at ? text.at : "");
}

int sql_number(struct sql *sql, int64_t *value, struct err *err)
{
    int code = sql_next(sql, err);
    *value = code > 0 ? sql_int(sql) : 0;
    sql_done(sql);
    return code < 0 ? code : 0;
}
