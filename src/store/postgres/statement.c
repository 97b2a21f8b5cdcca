/* statement.c — see connection.h: statements, their parameters and rows. */
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/postgres/connection.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of types in PostgreSQL's catalog, which never change. */
enum { TYPE_INFERRED = 0, TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_TEXT = 25, TYPE_FLOAT8 = 701 };

struct parameter {
    Oid type;
    struct text value; /* at == NULL: null */
    uint64_t number;   /* in the order of the network: `value` points here */
    char *clean;       /* or here: a text that was no UTF-8 */
};

struct postgres_statement {
    struct db_statement base;
    struct postgres_connection *connection;
    char *text;
    uint64_t generation; /* of the connection on which it is prepared; 0: none */
    char name[16];
    struct parameter *parameters;
    int parameter_count;
    PGresult *result; /* whose row can be read */
    int row;          /* in it */
    bool is_open;     /* rows may follow: stepping begins anew when it is not */
};

static struct postgres_statement *self_of(struct db_statement *statement)
{
    return (struct postgres_statement *)statement;
}

const char *statement_text(const struct postgres_statement *statement)
{
    return statement->text;
}

/* --- texts --- */

/* `?` and `?2` become `$1` and `$2`. A quoted text stays as it is. Returns the highest number. */
static int text_translate(const char *text, struct buf *out)
{
    int number = 0, highest = 0;
    char quote = '\0';
    for (const char *at = text; *at; at++) {
        if (quote) {
            if (*at == quote)
                quote = '\0';
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
        } else if (*at == '?') {
            int given = 0;
            while (isdigit((unsigned char)at[1]))
                given = given * 10 + (*++at - '0');
            number = given > 0 ? given : number + 1;
            highest = number > highest ? number : highest;
            buf_format(out, "$%d", number);
            continue;
        }
        buf_put_u8(out, (uint8_t)*at);
    }
    assert(!quote); /* our statements close their texts */
    return highest;
}

int statement_prepare(struct db *db, const char *text, struct db_statement **out, struct err *err)
{
    assert(text && out);
    struct postgres_statement *statement = mem_zero(1, sizeof *statement);
    cleanup_buf struct buf translated = BUF_INIT;
    (void)err; /* the server reads it when its parameters' types are known: with its first run */
    statement->base.ops = db->ops;
    statement->connection = (struct postgres_connection *)db;
    statement->parameter_count = text_translate(text, &translated);
    statement->text = mem_copy(buf_cstr(&translated));
    statement->parameters =
        mem_zero((size_t)statement->parameter_count + 1, sizeof *statement->parameters);
    *out = &statement->base;
    return 0;
}

static void parameters_clear(struct postgres_statement *statement)
{
    for (int i = 0; i < statement->parameter_count; i++) {
        mem_free(statement->parameters[i].clean);
        statement->parameters[i].clean = NULL;
    }
}

void statement_free(struct db_statement *base)
{
    struct postgres_statement *statement = self_of(base);
    statement_reset(base);
    parameters_clear(statement);
    mem_free(statement->parameters);
    mem_free(statement->text);
    mem_free(statement);
}

int statement_parameters(const struct db_statement *statement)
{
    return ((const struct postgres_statement *)statement)->parameter_count;
}

/* --- parameters --- */

static struct parameter *parameter_of(struct db_statement *base, int at, Oid type)
{
    struct postgres_statement *statement = self_of(base);
    struct parameter *parameter = &statement->parameters[at];
    assert(at >= 0 && at < statement->parameter_count);
    /* a statement is prepared once: a parameter always has the same type */
    assert(parameter->type == type || parameter->type == TYPE_INFERRED || type == TYPE_INFERRED);
    mem_free(parameter->clean);
    parameter->clean = NULL;
    if (statement->generation == 0 || statement->generation != statement->connection->generation)
        parameter->type = type;
    return parameter;
}

static void put_number(struct parameter *parameter, uint64_t bits)
{
    parameter->number = __builtin_bswap64(bits);
    parameter->value = (struct text){(const char *)&parameter->number, sizeof parameter->number};
}

void statement_put_int(struct db_statement *statement, int at, int64_t value)
{
    put_number(parameter_of(statement, at, TYPE_INT8), (uint64_t)value);
}

void statement_put_real(struct db_statement *statement, int at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(parameter_of(statement, at, TYPE_FLOAT8), bits);
}

static bool is_clean(struct text text)
{
    size_t at = 0, length = 1;
    if (text.length > 0 && memchr(text.at, '\0', text.length))
        return false;
    while (at < text.length && (length = text_utf8_length(text, at)) > 0)
        at += length;
    return length > 0;
}

/* What is no UTF-8, and each NUL, becomes U+FFFD: PostgreSQL takes neither in a text. */
static struct text text_clean(struct parameter *parameter, struct text text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t length = 0;
    parameter->clean = mem_alloc(mem_size(text.length + 1, 3));
    for (size_t at = 0; at < text.length;) {
        size_t bytes = text.at[at] ? text_utf8_length(text, at) : 0;
        memcpy(parameter->clean + length, bytes > 0 ? text.at + at : replacement,
               bytes > 0 ? bytes : 3);
        length += bytes > 0 ? bytes : 3;
        at += bytes > 0 ? bytes : 1;
    }
    return (struct text){parameter->clean, length};
}

void statement_put_text(struct db_statement *statement, int at, struct text value)
{
    struct parameter *parameter = parameter_of(statement, at, TYPE_TEXT);
    if (value.length == 0)
        value.at = "";
    parameter->value = is_clean(value) ? value : text_clean(parameter, value);
}

void statement_put_blob(struct db_statement *statement, int at, struct text value)
{
    if (value.length == 0)
        value.at = "";
    parameter_of(statement, at, TYPE_BYTEA)->value = value;
}

void statement_put_null(struct db_statement *statement, int at)
{
    parameter_of(statement, at, TYPE_INFERRED)->value = (struct text){NULL, 0};
}

/* --- sending --- */

static int statement_prepare_there(struct postgres_statement *statement, struct err *err)
{
    struct postgres_connection *connection = statement->connection;
    if (statement->generation == connection->generation)
        return 0;
    snprintf(statement->name, sizeof statement->name, "s%u", ++connection->statements);
    cleanup_free Oid *types = mem_zero((size_t)statement->parameter_count + 1, sizeof *types);
    for (int i = 0; i < statement->parameter_count; i++)
        types[i] = statement->parameters[i].type;
    PGresult *result;
    bool is_good;
    if (connection->is_pipelined) {
        is_good = PQsendPrepare(connection->conn, statement->name, statement->text,
                                statement->parameter_count, types) == 1;
        result = NULL;
        if (is_good)
            *ARRAY_ADD(&connection->pending) = (struct postgres_pending){.statement = statement};
    } else {
        result = PQprepare(connection->conn, statement->name, statement->text,
                           statement->parameter_count, types);
        is_good = PQresultStatus(result) == PGRES_COMMAND_OK;
    }
    if (!is_good) {
        int code = postgres_fail(connection, result, statement->text, err);
        PQclear(result);
        return code;
    }
    PQclear(result);
    statement->generation = connection->generation;
    return 0;
}

/* With the parameters that were put; numbers and bytes go as they are. */
static int statement_send(struct postgres_statement *statement, struct err *err)
{
    struct postgres_connection *connection = statement->connection;
    enum { ROOM = 64 };
    const char *values[ROOM];
    int lengths[ROOM], formats[ROOM], code, is_sent;

    assert(statement->parameter_count <= ROOM);
    assert(!connection->streaming);
    code = statement_prepare_there(statement, err);
    if (code < 0)
        return code;
    for (int i = 0; i < statement->parameter_count; i++) {
        const struct parameter *parameter = &statement->parameters[i];
        values[i] = parameter->value.at;
        lengths[i] = (int)parameter->value.length;
        formats[i] = 1;
    }
    is_sent = PQsendQueryPrepared(connection->conn, statement->name, statement->parameter_count,
                                  values, lengths, formats, 1);
    return is_sent ? 0 : postgres_fail(connection, NULL, statement->text, err);
}

/* In the pipeline; waits only when too much is under way. */
static int statement_queue(struct postgres_statement *statement, bool is_one, struct err *err)
{
    assert(statement->connection->is_pipelined);
    struct postgres_connection *connection = statement->connection;
    int code = 0;
    if (connection->pending.count >= POSTGRES_PENDING_MAX)
        code = postgres_flush(connection, NULL, err);
    if (code == 0)
        code = statement_send(statement, err);
    if (code == 0)
        *ARRAY_ADD(&connection->pending) =
            (struct postgres_pending){.statement = statement, .is_one = is_one};
    return code;
}

/* --- results --- */

/* Reads up to the end of what one statement gives. */
static void results_drain(struct postgres_connection *connection)
{
    PGresult *result;
    while ((result = PQgetResult(connection->conn)) != NULL)
        PQclear(result);
    connection->streaming = NULL;
}

void statement_reset(struct db_statement *base)
{
    struct postgres_statement *statement = self_of(base);
    PQclear(statement->result);
    statement->result = NULL;
    statement->is_open = false;
    if (statement->connection->streaming == statement)
        results_drain(statement->connection);
}

/* Rows come one by one, however many there are. */
static int stream_open(struct postgres_statement *statement, struct err *err)
{
    assert(!statement->connection->is_pipelined);
    struct postgres_connection *connection = statement->connection;
    int code = connection->is_in_transaction ? 0 : postgres_ready(connection, err);
    if (code == 0)
        code = statement_send(statement, err);
    if (code < 0)
        return code;
    PQsetSingleRowMode(connection->conn);
    connection->streaming = statement;
    statement->is_open = true;
    return 0;
}

static int stream_next(struct postgres_statement *statement, struct err *err)
{
    assert(statement->connection->streaming == statement);
    PQclear(statement->result);
    statement->row = 0;
    statement->result = PQgetResult(statement->connection->conn);
    ExecStatusType status = PQresultStatus(statement->result);
    if (status == PGRES_SINGLE_TUPLE)
        return 1;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        statement_reset(&statement->base);
        return 0;
    }
    int code = postgres_fail(statement->connection, statement->result, statement->text, err);
    statement_reset(&statement->base);
    return code;
}

/* In the pipeline a result comes whole. */
static int pipeline_open(struct postgres_statement *statement, struct err *err)
{
    int code = statement_queue(statement, false, err);
    if (code == 0)
        code = postgres_flush(statement->connection, &statement->result, err);
    statement->row = -1;
    statement->is_open = code == 0;
    return code;
}

static int pipeline_next(struct postgres_statement *statement)
{
    assert(statement->result);
    if (++statement->row < PQntuples(statement->result))
        return 1;
    statement_reset(&statement->base);
    return 0;
}

int statement_step(struct db_statement *base, struct err *err)
{
    struct postgres_statement *statement = self_of(base);
    int code = 0;
    bool is_pipelined = statement->connection->is_pipelined;
    if (!statement->is_open)
        code = is_pipelined ? pipeline_open(statement, err) : stream_open(statement, err);
    if (code < 0)
        return code;
    return is_pipelined ? pipeline_next(statement) : stream_next(statement, err);
}

int statement_run(struct db_statement *base, int *changed, struct err *err)
{
    struct postgres_statement *statement = self_of(base);
    PGresult *result = NULL;
    int code;
    if (!statement->connection->is_pipelined) { /* a transaction of its own */
        code = stream_open(statement, err);
        while (code == 0 && (code = stream_next(statement, err)) > 0)
            code = 0;
        assert(code < 0 || !changed);
        return code;
    }
    code = statement_queue(statement, false, err);
    if (code < 0 || !changed)
        return code;
    code = postgres_flush(statement->connection, &result, err);
    if (code == 0)
        *changed = (int)strtol(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return code;
}

int statement_run_one(struct db_statement *base, struct err *err)
{
    assert(self_of(base)->connection->is_pipelined);
    return statement_queue(self_of(base), true, err);
}

/* --- columns --- */

int64_t statement_get_int(struct db_statement *base, int at)
{
    const struct postgres_statement *statement = self_of(base);
    assert(statement->result);
    const char *bytes = PQgetvalue(statement->result, statement->row, at);
    int length = PQgetlength(statement->result, statement->row, at);
    uint64_t value = length > 0 && (bytes[0] & 0x80) ? UINT64_MAX : 0;
    assert(length <= 8);
    for (int i = 0; i < length; i++) /* 2, 4 or 8 bytes in the order of the network; NULL: 0 */
        value = value << 8 | (uint8_t)bytes[i];
    return (int64_t)value;
}

double statement_get_real(struct db_statement *base, int at)
{
    uint64_t bits = (uint64_t)statement_get_int(base, at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct text statement_get_bytes(struct db_statement *base, int at)
{
    const struct postgres_statement *statement = self_of(base);
    assert(statement->result);
    if (PQgetisnull(statement->result, statement->row, at))
        return (struct text){NULL, 0};
    return (struct text){PQgetvalue(statement->result, statement->row, at),
                         (size_t)PQgetlength(statement->result, statement->row, at)};
}
