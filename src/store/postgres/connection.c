/* connection.c — see connection.h: connections, transactions, the pipeline, errors. */
#include "store/postgres/connection.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_MIN = 120000 };

/* A session of ours: durable whatever the server's default is, and never ended for being idle. A
 * server that went away with its machine is noticed after some 25 s, by us and by PostgreSQL. A
 * statement waits for a lock that somebody else's session has as long as SQLite does for another
 * program: the thread that commits serves everybody. */
static const char session_setup[] =
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off';"
    "SET jit = off; SET statement_timeout = 0; SET lock_timeout = 10000;"
    "SET idle_in_transaction_session_timeout = 0; SET standard_conforming_strings = on;"
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;";
static const char session_of_reader[] = "SET default_transaction_read_only = on";
/* Commits find rows by their keys. The plan of a statement is made once, often while its table is
 * small, and would read all of the table when it has grown. */
static const char session_of_writer[] =
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;"
    "SET enable_mergejoin = off";

static struct postgres_connection *self_of(struct db *db)
{
    return (struct postgres_connection *)db;
}

/* --- errors --- */

static bool is_class(const char *state, const char *class)
{
    assert(strlen(class) == 2);
    return strncmp(state, class, 2) == 0;
}

/* The classes of errors that are a row's: what it holds, a constraint, a limit, a trigger or a
 * check of a view that refuses it. SQLite has one code for all of them. */
static bool is_of_row(const char *state)
{
    static const char *const classes[] = {"22", "23", "54", "09", "27", "38", "39", "44", "P0"};
    for (size_t i = 0; i < COUNT_OF(classes); i++)
        if (is_class(state, classes[i]))
            return true;
    return false;
}

/* The first line of what libpq says. */
static int line_length(const char *text)
{
    return (int)strcspn(text, "\n");
}

static int fail_of_state(const struct postgres_connection *connection, const char *state,
                         const char *message, const char *what, struct err *err)
{
    assert(strlen(state) == 5 && message);
    const char *name = connection->name;
    int length = line_length(message);
    if (strcmp(state, "53100") == 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "the disk of %s is full: %.*s", name, length,
                        message);
    if (strcmp(state, "25006") == 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "%s cannot be written: it is a standby", name);
    if (is_class(state, "53") || is_class(state, "57") || is_class(state, "08"))
        return err_fail(err, ERR_UNAVAILABLE, "", "%s: %.*s", name, length, message);
    if (is_class(state, "XX") && state[4] != '0') /* data or an index is corrupted */
        return err_fail(err, ERR_CORRUPT, "", "%s is damaged: %.*s", name, length, message);
    if (is_of_row(state))
        return err_fail(err, ERR_INTERNAL, "", "%s takes no such row: %.*s", name, length, message);
    if (is_class(state, "40") || is_class(state, "55"))
        return err_fail(err, ERR_BUSY, "", "%s is in use: %.*s", name, length, message);
    return err_fail(err, ERR_IO, "", "%s: %.60s: %.*s", name, what, length, message);
}

int postgres_fail(const struct postgres_connection *connection, const PGresult *result,
                  const char *what, struct err *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    if (state && strlen(state) == 5)
        return fail_of_state(connection, state, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY),
                             what, err);
    const char *message = connection->conn ? PQerrorMessage(connection->conn) : "no memory";
    return err_fail(err, ERR_UNAVAILABLE, "", "%s cannot be reached: %.*s", connection->name,
                    line_length(message), message);
}

/* --- connecting --- */

/* Notices are for people at psql, but for the one with which a session ends that nobody uses. */
static void on_notice(void *context, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        ((struct postgres_connection *)context)->is_ending = true;
}

bool postgres_is_broken(const struct postgres_connection *connection)
{
    return !connection->conn || PQstatus(connection->conn) != CONNECTION_OK;
}

static void connection_drop(struct postgres_connection *connection)
{
    PQfinish(connection->conn);
    connection->conn = NULL;
    connection->is_in_transaction = connection->is_pipelined = connection->is_ending = false;
    connection->streaming = NULL;
    connection->pending.count = 0;
}

/* What the address says goes before what stands behind it here. */
static PGconn *conn_make(const struct postgres_connection *connection)
{
    assert(connection->address);
    static const char *const words[] = {
        "connect_timeout",     "keepalives_idle",  "keepalives_count",
        "keepalives_interval", "tcp_user_timeout", "dbname",
        "application_name",    "client_encoding",  NULL};
    char host[65] = "", application[128];
    const char *values[] = {"10",        "10",   "3", "5", "20000", connection->address,
                            application, "UTF8", NULL};
    gethostname(host, sizeof host - 1);
    snprintf(application, sizeof application, "skepd %.35s process %ld%s", host, (long)getpid(),
             connection->is_writer ? "" : " reads");
    return PQconnectdbParams(words, values, 1);
}

static int session_start(struct postgres_connection *connection, struct err *err)
{
    assert(connection->conn);
    if (PQserverVersion(connection->conn) < VERSION_MIN)
        return err_fail(err, ERR_UNSUPPORTED, "", "%s is of PostgreSQL %d: 12 or newer is needed",
                        connection->name, PQserverVersion(connection->conn) / 10000);
    int code = postgres_execute(connection, session_setup, err);
    if (code == 0)
        code = postgres_execute(connection,
                                connection->is_writer ? session_of_writer : session_of_reader, err);
    if (code == 0 && connection->lease)
        code = connection->lease(connection->context, err);
    return code;
}

static int connection_make(struct postgres_connection *connection, struct err *err)
{
    int code = 0;
    connection_drop(connection);
    connection->conn = conn_make(connection);
    connection->generation++;
    if (postgres_is_broken(connection))
        code = postgres_fail(connection, NULL, "connect", err);
    if (code == 0) {
        PQsetNoticeReceiver(connection->conn, on_notice, connection);
        code = session_start(connection, err);
    }
    if (code < 0)
        connection_drop(connection);
    return code;
}

/* Between two uses: what the server says then is that the session ends. */
static void connection_check(struct postgres_connection *connection)
{
    struct pollfd polled = {.events = POLLIN};
    if (postgres_is_broken(connection) || connection->is_in_transaction || connection->streaming)
        return;
    polled.fd = PQsocket(connection->conn);
    while (!connection->is_ending && poll(&polled, 1, 0) > 0) {
        if (PQconsumeInput(connection->conn))
            PQisBusy(connection->conn); /* reads what has come: a notice, or a last word */
        else
            connection->is_ending = true;
    }
    if (connection->is_ending)
        connection_drop(connection);
}

int postgres_ready(struct postgres_connection *connection, struct err *err)
{
    connection_check(connection);
    return postgres_is_broken(connection) ? connection_make(connection, err) : 0;
}

/* --- statements outside of a pipeline --- */

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

int postgres_ask(struct postgres_connection *connection, const char *text, PGresult **out,
                 struct err *err)
{
    int code = 0;
    assert(!connection->is_pipelined && !connection->streaming);
    PGresult *result = PQexec(connection->conn, text);
    if (!is_good(result))
        code = postgres_fail(connection, result, text, err);
    if (code == 0 && out)
        *out = result;
    else
        PQclear(result);
    return code;
}

int postgres_execute(struct postgres_connection *connection, const char *text, struct err *err)
{
    return postgres_ask(connection, text, NULL, err);
}

int postgres_number(struct postgres_connection *connection, const char *text, int64_t *value,
                    struct err *err)
{
    assert(value);
    PGresult *result = NULL;
    int code = postgres_ask(connection, text, &result, err);
    *value = 0;
    if (code < 0)
        return code;
    if (PQntuples(result) > 0)
        *value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return 0;
}

/* --- the pipeline --- */

static int pending_fail(const struct postgres_connection *connection,
                        const struct postgres_pending *pending, const PGresult *result,
                        struct err *err)
{
    const char *text = pending->statement ? statement_text(pending->statement) : "transaction";
    if (!is_good(result))
        return postgres_fail(connection, result, text, err);
    if (pending->is_fence)
        return err_fail(err, ERR_CONFLICT, "", "another skepd has taken %s over", connection->name);
    return err_fail(err, ERR_INTERNAL, "", "%s: a row that should change is not there: %.100s",
                    connection->name, text);
}

/* Of one statement: its result, and the NULL that ends it. */
static PGresult *result_of_one(struct postgres_connection *connection)
{
    assert(connection->is_pipelined);
    PGresult *result = PQgetResult(connection->conn), *end;
    if (result && PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        while ((end = PQgetResult(connection->conn)) != NULL)
            PQclear(end);
    return result;
}

static bool is_as_expected(const struct postgres_pending *pending, PGresult *result)
{
    assert(!(pending->is_one && pending->is_fence));
    if (!result || !is_good(result))
        return false;
    return !(pending->is_one || pending->is_fence) || strcmp(PQcmdTuples(result), "1") == 0;
}

int postgres_flush(struct postgres_connection *connection, PGresult **last, struct err *err)
{
    size_t count = connection->pending.count;
    int code = 0;
    assert(connection->is_pipelined);
    connection->pending.count = 0;
    if (count == 0)
        return 0;
    if (!PQsendFlushRequest(connection->conn) || PQflush(connection->conn) < 0)
        return postgres_fail(connection, NULL, "send", err);
    for (size_t i = 0; i < count && code == 0; i++) {
        const struct postgres_pending pending = connection->pending.items[i];
        PGresult *result = result_of_one(connection);
        if (!is_as_expected(&pending, result))
            code = pending_fail(connection, &pending, result, err);
        if (code == 0 && last && i + 1 == count)
            *last = result;
        else
            PQclear(result);
    }
    if (code < 0) { /* what was to be prepared may not be */
        connection->generation++;
        connection->is_littered = true;
    }
    return code;
}

/* One of the connection's own. */
static int pipeline_send(struct postgres_connection *connection, const char *text, bool is_fence,
                         struct err *err)
{
    assert(connection->is_pipelined && (!is_fence || connection->fence != 0));
    const uint64_t fence = __builtin_bswap64((uint64_t)connection->fence);
    const char *const values[] = {(const char *)&fence};
    static const Oid types[] = {20}; /* bigint */
    static const int lengths[] = {8}, formats[] = {1};
    if (!PQsendQueryParams(connection->conn, text, is_fence ? 1 : 0, types, values, lengths,
                           formats, 1))
        return postgres_fail(connection, NULL, text, err);
    *ARRAY_ADD(&connection->pending) = (struct postgres_pending){.is_fence = is_fence};
    return 0;
}

/* After a failure the server skips what was sent, up to a mark. */
static void pipeline_leave(struct postgres_connection *connection)
{
    bool is_marked = false;
    if (!connection->is_pipelined)
        return;
    PGresult *result;
    if (!postgres_is_broken(connection) && PQpipelineSync(connection->conn)) {
        while (!is_marked && !postgres_is_broken(connection)) {
            result = PQgetResult(connection->conn);
            is_marked = result && PQresultStatus(result) == PGRES_PIPELINE_SYNC;
            PQclear(result);
        }
    }
    connection->pending.count = 0;
    connection->is_pipelined = false;
    if (postgres_is_broken(connection) || !PQexitPipelineMode(connection->conn))
        connection_drop(connection);
}

/* --- transactions --- */

static int begin_write(struct postgres_connection *connection, struct err *err)
{
    assert(connection->is_writer);
    if (!PQenterPipelineMode(connection->conn))
        return postgres_fail(connection, NULL, "begin", err);
    connection->is_pipelined = connection->is_in_transaction = true;
    int code = pipeline_send(connection, "BEGIN", false, err);
    /* the row stays locked: who wants to take over waits for the end of this transaction */
    if (code == 0 && connection->fence != 0)
        code =
            pipeline_send(connection, "SELECT 1 FROM skep WHERE fence = $1 FOR SHARE", true, err);
    return code;
}

static int connection_begin(struct db *db, bool writes, struct err *err)
{
    struct postgres_connection *connection = self_of(db);
    int code = postgres_ready(connection, err);
    assert(code < 0 || !connection->is_in_transaction);
    if (code < 0)
        return code;
    if (writes)
        return begin_write(connection, err);
    code = postgres_execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
    connection->is_in_transaction = code == 0;
    return code;
}

static int connection_commit(struct db *db, struct err *err)
{
    struct postgres_connection *connection = self_of(db);
    PGresult *result = NULL;
    assert(connection->is_in_transaction && connection->is_pipelined);
    int code = postgres_flush(connection, NULL, err);
    if (code == 0)
        code = pipeline_send(connection, "COMMIT", false, err);
    if (code == 0)
        code = postgres_flush(connection, &result, err);
    if (code < 0)
        return code;
    if (strcmp(PQcmdStatus(result), "COMMIT") != 0)
        code = err_fail(err, ERR_IO, "", "%s: the transaction was not committed, but: %s",
                        connection->name, PQcmdStatus(result));
    PQclear(result);
    if (code < 0)
        return code;
    connection->is_in_transaction = false;
    pipeline_leave(connection);
    return 0;
}

/* A session keeps what it has prepared, also of a transaction that failed: one that fails each
 * second for a night would fill the server's memory. */
static int statements_remove(struct postgres_connection *connection)
{
    connection->generation++;
    connection->is_littered = false;
    return postgres_execute(connection, "DEALLOCATE ALL", NULL);
}

static void connection_rollback(struct db *db)
{
    struct postgres_connection *connection = self_of(db);
    if (!connection->is_in_transaction)
        return;
    if (connection->streaming)
        statement_reset((struct db_statement *)connection->streaming);
    pipeline_leave(connection);
    connection->is_in_transaction = false;
    if (postgres_is_broken(connection) || postgres_execute(connection, "ROLLBACK", NULL) < 0 ||
        (connection->is_littered && statements_remove(connection) < 0))
        connection_drop(connection);
}

static int connection_execute(struct db *db, const char *text, struct err *err)
{
    struct postgres_connection *connection = self_of(db);
    if (connection->is_pipelined)
        return pipeline_send(connection, text, false, err);
    int code = postgres_ready(connection, err);
    return code < 0 ? code : postgres_execute(connection, text, err);
}

void postgres_disconnect(struct postgres_connection *connection)
{
    if (!connection)
        return;
    connection_drop(connection);
    ARRAY_FREE(&connection->pending);
    mem_free(connection);
}

static void connection_close(struct db *db)
{
    postgres_disconnect(self_of(db));
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

int postgres_connect(const char *address, const char *name, bool is_writer,
                     struct postgres_connection **out, struct err *err)
{
    assert(address && name && out);
    struct postgres_connection *connection = mem_zero(1, sizeof *connection);
    *connection = (struct postgres_connection){
        .base = {&ops}, .address = address, .name = name, .is_writer = is_writer};
    int code = connection_make(connection, err);
    *out = code == 0 ? connection : NULL;
    if (code < 0)
        postgres_disconnect(connection);
    return code;
}
