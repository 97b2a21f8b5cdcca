/* memory.c — see memory.h. */
#include "memory.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/db.h"
#include "store/migrations.h"
#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

struct memory {
    pthread_mutex_t lock;
    unsigned char *bytes; /* as of the last commit */
    size_t size;
    uint64_t version; /* how often they were replaced */
    struct memory_commit commits[MEMORY_COMMITS_MAX];
    size_t commit_count, commit_at;
    unsigned reader_count;
    bool is_open;
};

/* A statement that was put off, with its values. */
struct pending {
    sqlite3_stmt *stmt;
    bool is_one; /* it must change exactly one row */
};

enum transaction { TRANSACTION_NONE, TRANSACTION_READS, TRANSACTION_WRITES };

struct connection {
    struct db base;
    struct memory *memory;
    sqlite3 *db;
    bool is_writer;
    uint64_t version; /* which of the memory's it has */
    enum transaction transaction;
    struct err failure; /* the transaction's; .code 0: none */
    struct {
        struct pending *items;
        size_t count, room;
    } pending;
    struct statement *open; /* whose rows are read */
    size_t statement_count;
};

struct statement {
    struct db_statement base;
    struct connection *connection;
    sqlite3_stmt *stmt;
    uint64_t put; /* which parameters have a value for the next run */
    struct {
        struct text *items; /* copies of the row's bytes */
        size_t count, room;
    } lent;
};

struct memory_database {
    struct database base;
    struct memory *memory;
};

static struct connection *connection_of(struct db *db)
{
    return (struct connection *)db;
}

static struct statement *self_of(struct db_statement *statement)
{
    return (struct statement *)statement;
}

static int sqlite_code(sqlite3 *db, struct err *err)
{
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        return err_fail(err, ERR_INTERNAL, "", "memory takes no such row: %s", sqlite3_errmsg(db));
    default:
        return err_fail(err, ERR_IO, "", "%s", sqlite3_errmsg(db));
    }
}

static int text_execute(sqlite3 *db, const char *text, struct err *err)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_code(db, err);
}

/* --- what was committed --- */

static void memory_publish(struct connection *connection)
{
    struct memory *memory = connection->memory;
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(connection->db, "main", &size, 0);

    assert(bytes && connection->is_writer);
    pthread_mutex_lock(&memory->lock);
    sqlite3_free(memory->bytes);
    memory->bytes = bytes;
    memory->size = (size_t)size;
    connection->version = ++memory->version;
    pthread_mutex_unlock(&memory->lock);
}

/* Go on with a copy of what was committed last. */
static int memory_follow(struct connection *connection, struct err *err)
{
    struct memory *memory = connection->memory;
    unsigned char *bytes = NULL;
    size_t size;

    pthread_mutex_lock(&memory->lock);
    size = memory->size;
    if (connection->version != memory->version) {
        bytes = sqlite3_malloc64(size);
        memcpy(bytes, memory->bytes, size);
        connection->version = memory->version;
    }
    pthread_mutex_unlock(&memory->lock);
    if (bytes &&
        sqlite3_deserialize(connection->db, "main", bytes, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_FREEONCLOSE |
                                (connection->is_writer ? SQLITE_DESERIALIZE_RESIZEABLE
                                                       : SQLITE_DESERIALIZE_READONLY)))
        return sqlite_code(connection->db, err);
    return 0;
}

/* --- statements --- */

static int parameter_count(const struct statement *statement)
{
    return sqlite3_bind_parameter_count(statement->stmt);
}

/* Each parameter is put before each run. */
static void values_check(struct statement *statement)
{
    assert(statement->put == (UINT64_C(1) << parameter_count(statement)) - 1);
    statement->put = 0;
}

static void lent_take_back(struct statement *statement)
{
    for (size_t i = 0; i < statement->lent.count; i++) {
        char *bytes = (char *)(uintptr_t)statement->lent.items[i].at;
        memset(bytes, 0xdd, statement->lent.items[i].length);
        mem_free(bytes);
    }
    statement->lent.count = 0;
}

static int stmt_execute(struct connection *connection, sqlite3_stmt *stmt, int *changed,
                        struct err *err)
{
    int step = sqlite3_step(stmt), code = 0;

    assert(step != SQLITE_ROW);
    if (step != SQLITE_DONE)
        code = sqlite_code(connection->db, err);
    *changed = sqlite3_changes(connection->db);
    sqlite3_reset(stmt);
    return code;
}

static void pending_drop(struct connection *connection)
{
    for (size_t i = 0; i < connection->pending.count; i++)
        sqlite3_finalize(connection->pending.items[i].stmt);
    connection->pending.count = 0;
}

/* The first that fails fails the transaction. */
static int pending_run(struct connection *connection, struct err *err)
{
    struct err *failure = &connection->failure;

    for (size_t i = 0; i < connection->pending.count && failure->code == 0; i++) {
        const struct pending *pending = &connection->pending.items[i];
        int changed = 0, code = stmt_execute(connection, pending->stmt, &changed, failure);
        if (code == 0 && pending->is_one && changed != 1)
            err_fail(failure, ERR_INTERNAL, "", "a row that should change is not there");
    }
    pending_drop(connection);
    if (failure->code < 0 && err)
        *err = *failure;
    return failure->code;
}

/* It goes with its values; the statement gets a new one. */
static void pending_add(struct statement *statement, bool is_one)
{
    sqlite3_stmt *stmt = statement->stmt;
    int code;

    values_check(statement);
    *ARRAY_ADD(&statement->connection->pending) = (struct pending){stmt, is_one};
    code = sqlite3_prepare_v2(statement->connection->db, sqlite3_sql(stmt), -1, &statement->stmt,
                              NULL);
    assert(code == SQLITE_OK);
    (void)code;
}

static int statement_prepare(struct db *db, const char *text, struct db_statement **out,
                             struct err *err)
{
    struct connection *connection = connection_of(db);
    struct statement *statement = mem_zero(1, sizeof *statement);
    int code = connection->version == 0 ? memory_follow(connection, err) : 0;

    *statement = (struct statement){.base = {db->ops}, .connection = connection};
    if (code == 0 &&
        sqlite3_prepare_v2(connection->db, text, -1, &statement->stmt, NULL) != SQLITE_OK)
        code = sqlite_code(connection->db, err);
    if (code < 0) {
        mem_free(statement);
        return code;
    }
    assert(parameter_count(statement) < 64);
    connection->statement_count++;
    *out = &statement->base;
    return 0;
}

static void statement_reset(struct db_statement *base)
{
    struct statement *statement = self_of(base);

    if (statement->connection->open == statement)
        statement->connection->open = NULL;
    lent_take_back(statement);
    statement->put = 0;
    sqlite3_reset(statement->stmt);
}

static void statement_free(struct db_statement *base)
{
    struct statement *statement = self_of(base);

    assert(statement->connection->open != statement); /* whoever read a row was done with it */
    statement_reset(base);
    statement->connection->statement_count--;
    sqlite3_finalize(statement->stmt);
    ARRAY_FREE(&statement->lent);
    mem_free(statement);
}

static int statement_parameters(const struct db_statement *statement)
{
    return parameter_count((const struct statement *)statement);
}

/* The parameter is about to be put; its number for SQLite. */
static int parameter_of(struct db_statement *base, int at)
{
    struct statement *statement = self_of(base);

    assert(at >= 0 && at < parameter_count(statement));
    statement->put |= UINT64_C(1) << at;
    return at + 1;
}

static void statement_put_int(struct db_statement *statement, int at, int64_t value)
{
    sqlite3_bind_int64(self_of(statement)->stmt, parameter_of(statement, at), value);
}

static void statement_put_real(struct db_statement *statement, int at, double value)
{
    sqlite3_bind_double(self_of(statement)->stmt, parameter_of(statement, at), value);
}

static void statement_put_text(struct db_statement *statement, int at, struct text value)
{
    sqlite3_bind_text64(self_of(statement)->stmt, parameter_of(statement, at),
                        value.at ? value.at : "", value.length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void statement_put_blob(struct db_statement *statement, int at, struct text value)
{
    sqlite3_bind_blob64(self_of(statement)->stmt, parameter_of(statement, at),
                        value.at ? value.at : "", value.length, SQLITE_TRANSIENT);
}

static void statement_put_null(struct db_statement *statement, int at)
{
    sqlite3_bind_null(self_of(statement)->stmt, parameter_of(statement, at));
}

/* The first step of a question. */
static int statement_begin(struct statement *statement, struct err *err)
{
    struct connection *connection = statement->connection;
    int code = pending_run(connection, err);

    /* a connection has rows of one statement at a time */
    assert(!connection->open || connection->transaction == TRANSACTION_WRITES);
    if (code == 0 && connection->transaction == TRANSACTION_NONE)
        code = memory_follow(connection, err);
    values_check(statement);
    connection->open = statement;
    return code;
}

static int statement_step(struct db_statement *base, struct err *err)
{
    struct statement *statement = self_of(base);
    struct connection *connection = statement->connection;
    int step, code = 0;

    if (!sqlite3_stmt_busy(statement->stmt))
        code = statement_begin(statement, err);
    lent_take_back(statement);
    step = code == 0 ? sqlite3_step(statement->stmt) : SQLITE_DONE;
    if (step == SQLITE_ROW)
        return 1;
    if (step != SQLITE_DONE)
        code = sqlite_code(connection->db, err);
    if (step != SQLITE_DONE && connection->transaction == TRANSACTION_WRITES)
        err_fail(&connection->failure, code, "", "%s", sqlite3_errmsg(connection->db));
    statement_reset(base);
    return code;
}

static int statement_run(struct db_statement *base, int *changed, struct err *err)
{
    struct statement *statement = self_of(base);
    struct connection *connection = statement->connection;
    int code, count = 0;

    assert(connection->is_writer && connection->transaction != TRANSACTION_READS);
    if (!changed && connection->transaction == TRANSACTION_WRITES) {
        pending_add(statement, false);
        return 0;
    }
    code = pending_run(connection, err);
    if (code < 0)
        return code;
    values_check(statement);
    code =
        stmt_execute(connection, statement->stmt, changed ? changed : &count, &connection->failure);
    if (code < 0 && err)
        *err = connection->failure;
    if (code == 0 && connection->transaction == TRANSACTION_NONE)
        memory_publish(connection);
    return code;
}

static int statement_run_one(struct db_statement *base, struct err *err)
{
    struct statement *statement = self_of(base);

    (void)err; /* it fails later */
    assert(statement->connection->transaction == TRANSACTION_WRITES);
    pending_add(statement, true);
    return 0;
}

static sqlite3_stmt *row_of(struct db_statement *base, int at)
{
    struct statement *statement = self_of(base);

    assert(sqlite3_stmt_busy(statement->stmt)); /* at a row */
    assert(at >= 0 && at < sqlite3_column_count(statement->stmt));
    return statement->stmt;
}

static int64_t statement_get_int(struct db_statement *statement, int at)
{
    return sqlite3_column_int64(row_of(statement, at), at);
}

static double statement_get_real(struct db_statement *statement, int at)
{
    return sqlite3_column_double(row_of(statement, at), at);
}

static struct text statement_get_bytes(struct db_statement *base, int at)
{
    struct statement *statement = self_of(base);
    sqlite3_stmt *stmt = row_of(base, at);
    const void *bytes = sqlite3_column_blob(stmt, at);
    struct text copy = {NULL, (size_t)sqlite3_column_bytes(stmt, at)};
    char *to;

    if (sqlite3_column_type(stmt, at) == SQLITE_NULL)
        return (struct text){NULL, 0};
    to = mem_alloc(copy.length + 1);
    if (copy.length)
        memcpy(to, bytes, copy.length);
    copy.at = to;
    *ARRAY_ADD(&statement->lent) = copy;
    return copy;
}

/* --- connections --- */

static int connection_begin(struct db *db, bool writes, struct err *err)
{
    struct connection *connection = connection_of(db);

    assert(connection->transaction == TRANSACTION_NONE && !connection->open);
    assert(connection->is_writer || !writes);
    connection->failure = (struct err){0};
    if (memory_follow(connection, err) < 0)
        return ERR_IO;
    connection->transaction = writes ? TRANSACTION_WRITES : TRANSACTION_READS;
    return writes ? text_execute(connection->db, "BEGIN IMMEDIATE", err) : 0;
}

static struct memory_commit commit_next(struct memory *memory)
{
    struct memory_commit next = {0, true};

    pthread_mutex_lock(&memory->lock);
    if (memory->commit_at < memory->commit_count)
        next = memory->commits[memory->commit_at++];
    pthread_mutex_unlock(&memory->lock);
    return next;
}

static int connection_commit(struct db *db, struct err *err)
{
    struct connection *connection = connection_of(db);
    struct memory_commit next;
    int code = pending_run(connection, err);

    assert(connection->transaction == TRANSACTION_WRITES && !connection->open);
    if (code < 0)
        return code;
    next = commit_next(connection->memory);
    if (next.is_stored) {
        code = text_execute(connection->db, "COMMIT", err);
        if (code < 0)
            return code;
        memory_publish(connection);
        connection->transaction = TRANSACTION_NONE;
    }
    return next.code < 0 ? err_fail(err, next.code, "", "refused by the test") : 0;
}

static void connection_rollback(struct db *db)
{
    struct connection *connection = connection_of(db);

    pending_drop(connection);
    if (connection->open)
        statement_reset(&connection->open->base);
    if (!sqlite3_get_autocommit(connection->db))
        text_execute(connection->db, "ROLLBACK", NULL);
    connection->transaction = TRANSACTION_NONE;
    connection->failure = (struct err){0};
}

static int connection_execute(struct db *db, const char *text, struct err *err)
{
    struct connection *connection = connection_of(db);
    int code = pending_run(connection, err);

    return code < 0 ? code : text_execute(connection->db, text, err);
}

static void connection_close(struct db *db)
{
    struct connection *connection = connection_of(db);

    connection_rollback(db);
    assert(connection->statement_count == 0);
    if (!connection->is_writer) {
        pthread_mutex_lock(&connection->memory->lock);
        connection->memory->reader_count--;
        pthread_mutex_unlock(&connection->memory->lock);
    }
    ARRAY_FREE(&connection->pending);
    sqlite3_close(connection->db);
    mem_free(connection);
}

static const struct db_ops connection_ops = {
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
    .reset = statement_reset,
    .run = statement_run,
    .run_one = statement_run_one,
    .parameters = statement_parameters,
    .get_int = statement_get_int,
    .get_real = statement_get_real,
    .get_bytes = statement_get_bytes,
};

static struct connection *connection_new(struct memory *memory, bool is_writer)
{
    struct connection *connection = mem_zero(1, sizeof *connection);
    int code = sqlite3_open(":memory:", &connection->db);

    assert(code == SQLITE_OK);
    (void)code;
    connection->base.ops = &connection_ops;
    connection->memory = memory;
    connection->is_writer = is_writer;
    return connection;
}

/* --- the database --- */

static struct memory *memory_of(const struct database *database)
{
    return ((const struct memory_database *)database)->memory;
}

static void database_close(struct database *database)
{
    struct memory *memory = memory_of(database);

    connection_close(database->writer);
    pthread_mutex_lock(&memory->lock);
    assert(memory->reader_count == 0);
    memory->is_open = false;
    pthread_mutex_unlock(&memory->lock);
    mem_free(database);
}

static int database_connect(struct database *database, struct db **reader, struct err *err)
{
    struct memory *memory = memory_of(database);

    (void)err;
    pthread_mutex_lock(&memory->lock);
    memory->reader_count++;
    pthread_mutex_unlock(&memory->lock);
    *reader = &connection_new(memory, false)->base;
    return 0;
}

static int database_start(struct database *database, const struct db_progress *progress,
                          struct err *err)
{
    (void)database;
    (void)err;
    assert(progress->epoch);
    return 0;
}

static void database_note(struct database *database, const struct db_progress *progress)
{
    (void)database;
    assert(progress->epoch);
}

static bool database_has_no_reserve(struct database *database)
{
    (void)database;
    return false;
}

static bool database_is_short(const struct database *database)
{
    (void)database;
    return false;
}

static void database_count(const struct database *database, struct db_counts *counts)
{
    struct memory *memory = memory_of(database);

    pthread_mutex_lock(&memory->lock);
    *counts = (struct db_counts){.database_bytes = memory->size};
    pthread_mutex_unlock(&memory->lock);
}

static int database_measure(struct database *database, uint64_t *used_bytes, struct err *err)
{
    struct db_counts counts;

    (void)err;
    database_count(database, &counts);
    *used_bytes = counts.database_bytes;
    return 0;
}

static int database_check(struct database *database, struct err *err)
{
    return text_execute(connection_of(database->writer)->db, "PRAGMA integrity_check", err);
}

static const struct database_ops database_ops = {
    .close = database_close,
    .connect = database_connect,
    .start = database_start,
    .note = database_note,
    .give_way = database_has_no_reserve,
    .make_room = database_has_no_reserve,
    .measure = database_measure,
    .check = database_check,
    .is_short = database_is_short,
    .count = database_count,
};

static int tables_make(struct connection *writer, struct err *err)
{
    int code = 0;

    for (unsigned i = 0; code == 0 && i < sqlite_migration_count; i++)
        code = text_execute(writer->db, sqlite_migrations[i].sql, err);
    if (code == 0)
        memory_publish(writer);
    return code;
}

int memory_open(struct memory *memory, struct database **out, struct err *err)
{
    struct connection *writer;
    struct memory_database *database;
    int code;

    pthread_mutex_lock(&memory->lock);
    code = memory->is_open ? err_fail(err, ERR_CONFLICT, "", "the memory is open") : 0;
    memory->is_open = true;
    pthread_mutex_unlock(&memory->lock);
    if (code < 0)
        return code;
    writer = connection_new(memory, true);
    code = memory->version ? memory_follow(writer, err) : tables_make(writer, err);
    database = mem_zero(1, sizeof *database);
    *database = (struct memory_database){
        .base = {.ops = &database_ops, .name = "memory", .writer = &writer->base},
        .memory = memory};
    if (code < 0) {
        database_close(&database->base);
        return code;
    }
    *out = &database->base;
    return 0;
}

struct memory *memory_new(void)
{
    struct memory *memory = mem_zero(1, sizeof *memory);

    pthread_mutex_init(&memory->lock, NULL);
    return memory;
}

void memory_free(struct memory *memory)
{
    if (!memory)
        return;
    assert(!memory->is_open);
    sqlite3_free(memory->bytes);
    pthread_mutex_destroy(&memory->lock);
    mem_free(memory);
}

void memory_script(struct memory *memory, const struct memory_commit *commits, size_t count)
{
    assert(count <= MEMORY_COMMITS_MAX);
    pthread_mutex_lock(&memory->lock);
    for (size_t i = 0; i < count; i++)
        memory->commits[i] = commits[i];
    memory->commit_count = count;
    memory->commit_at = 0;
    pthread_mutex_unlock(&memory->lock);
}

int memory_sql(struct memory *memory, const char *text)
{
    struct connection *connection = connection_new(memory, true);
    int code = memory_follow(connection, NULL);

    if (code == 0)
        code = text_execute(connection->db, text, NULL);
    if (code == 0)
        memory_publish(connection);
    connection_close(&connection->base);
    return code;
}
