/* database.c — see postgres.h: opening, the lease, what a server is told beside the commits. */
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/directory.h"
#include "store/migrations.h"
#include "store/postgres/connection.h"
#include "store/postgres/postgres.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCK_CLASS = 0x536b6570 /* "Skep" */ };

struct postgres_database {
    struct database base;
    char *address, *name;
    int lock_fd; /* of the directory */
    struct postgres_connection *writer;
    int backend;              /* the server's process that serves the writer */
    struct db_progress known; /* what it has said to be durable */
    char identity[128];       /* of the database, as it is now */
    _Atomic uint64_t bytes;
};

/* All of them, the large ones first. */
static const char *const tables[] = {"jobs",           "job_plans",
                                     "job_sources",    "job_attempts",
                                     "tasks",          "task_attempts",
                                     "stories",        "event_log",
                                     "attempt_ends",   "audit",
                                     "barriers",       "nodes",
                                     "tags",           "users",
                                     "groups",         "members",
                                     "grants",         "tokens",
                                     "settings",       "counters",
                                     "epochs",         "quotas",
                                     "skep",           "submit_keys",
                                     "gpu_use",        "templates",
                                     "template_stars", "template_versions",
                                     "notices",        "cluster_closings",
                                     "requests",       "removed_users",
                                     "deleted_jobs"};
enum { LARGE_TABLES = 10, SAMPLE_ROWS = 1000, ROW_OVERHEAD = 32 };

static struct postgres_database *self_of(struct database *database)
{
    return (struct postgres_database *)database;
}

/* --- the address --- */

bool postgres_is_address(const char *address)
{
    return strncmp(address, "postgres://", 11) == 0 || strncmp(address, "postgresql://", 13) == 0;
}

/* For messages: without the password. */
static int name_of(const char *address, char **name, struct err *err)
{
    assert(address && name);
    const char *host = "", *port = "", *database = "";
    PQconninfoOption *options = PQconninfoParse(address, NULL);
    cleanup_buf struct buf text = BUF_INIT;
    if (!options) /* what libpq says might hold the password */
        return err_fail(err, ERR_INVALID, "database",
                        "this is no address of PostgreSQL, as postgres://USER@HOST/DATABASE is");
    for (const PQconninfoOption *option = options; option->keyword; option++) {
        const char *value = option->val ? option->val : "";
        if (strcmp(option->keyword, "host") == 0)
            host = value;
        else if (strcmp(option->keyword, "port") == 0)
            port = value;
        else if (strcmp(option->keyword, "dbname") == 0)
            database = value;
    }
    buf_format(&text, "database %.60s of PostgreSQL%s%.100s%s%s", database, *host ? " at " : "",
               host, *port ? ":" : "", port);
    *name = mem_copy(buf_cstr(&text));
    PQconninfoFree(options);
    return 0;
}

/* --- the lease --- */

/* Who holds the lock, as its sessions call themselves. */
static int lease_refuse(const struct postgres_database *self, struct err *err)
{
    char text[400];
    snprintf(text, sizeof text,
             "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
             "WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %d AND l.database = "
             "(SELECT oid FROM pg_database WHERE datname = current_database())",
             LOCK_CLASS);
    PGresult *result;
    int code = postgres_ask(self->writer, text, &result, err);
    if (code < 0)
        return code;
    err_fail(err, ERR_CONFLICT, "", "%s is in use by another skepd (%s)", self->name,
             PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "unknown");
    PQclear(result);
    return ERR_CONFLICT;
}

/* The lock is the session's: it goes with it, however this server ends. One that was killed just
 * now may have left a session that has not noticed: it is waited for as for any lock. */
static int lock_take(const struct postgres_database *self, struct err *err)
{
    assert(self->writer);
    char text[300];
    snprintf(text, sizeof text,
             "SELECT pg_advisory_lock(%d, (oid::bigint - 2147483648)::int) FROM pg_namespace "
             "WHERE nspname = current_schema()",
             LOCK_CLASS);
    struct err failure;
    int code = postgres_execute(self->writer, text, &failure);
    if (code == ERR_BUSY)
        code = lease_refuse(self, err);
    else if (code < 0)
        *err = failure;
    return code;
}

static int counter_ask(const struct postgres_database *self, const char *name, uint64_t *value,
                       struct err *err)
{
    char text[100];
    int64_t number = 0;
    snprintf(text, sizeof text, "SELECT value FROM counters WHERE name = '%s'", name);
    int code = postgres_number(self->writer, text, &number, err);
    *value = (uint64_t)number;
    return code;
}

/* The next start is to begin an epoch behind all numbers that were given here. */
static int loss_mark(const struct postgres_database *self, struct err *err)
{
    char text[500];
    snprintf(text, sizeof text,
             "BEGIN; UPDATE counters SET value = greatest(value, %" PRIu32 ") WHERE name = 'job'; "
             "UPDATE counters SET value = greatest(value, %" PRIu64 ") WHERE name = 'attempt'; "
             "UPDATE skep SET identity = 'its last commits were lost'; COMMIT",
             self->known.last_job.v, self->known.last_attempt.v);
    int code = postgres_execute(self->writer, text, err);
    if (code < 0)
        postgres_execute(self->writer, "ROLLBACK", NULL);
    return code;
}

/* A standby that followed asynchronously took over, or an older state was restored beneath us: what
 * is in memory, and what engines were told, goes beyond what is stored. Only a start can mend
 * that. */
static int loss_check(struct postgres_database *self, struct err *err)
{
    uint64_t commits = 0, events = 0;
    int64_t fence = 0;
    int code = counter_ask(self, "commit", &commits, err);
    if (code == 0)
        code = counter_ask(self, "event", &events, err);
    if (code == 0)
        code = postgres_number(self->writer, "SELECT fence FROM skep", &fence, err);
    if (code < 0 || (commits >= self->known.commits && fence >= self->writer->fence))
        return code;
    if (commits > self->known.commits) /* in doubt */
        commits = self->known.commits;
    code = loss_mark(self, err);
    if (code < 0)
        return code;
    atomic_store(&self->base.is_behind, true);
    return err_fail(err, ERR_CONFLICT, "",
                    "%s has lost its last %" PRIu64 " commits (%" PRId64
                    " events), which it had said to be durable: skepd must be started again",
                    self->name, self->known.commits - commits,
                    (int64_t)(self->known.events - events));
}

/* It only rises: a lower one was lost, as loss_check tells. */
static int fence_check(const struct postgres_database *self, struct err *err)
{
    assert(self->writer->fence > 0);
    int64_t fence;
    int code = postgres_number(self->writer, "SELECT fence FROM skep", &fence, err);
    if (code == 0 && fence > self->writer->fence)
        return err_fail(err, ERR_CONFLICT, "", "another skepd has taken %s over", self->name);
    return code;
}

/* A new session of this server: the one before may still hold the lock, when the network broke and
 * PostgreSQL has not noticed yet. Has another server had the database meanwhile? Nobody waits for
 * the lock in vain then; and it may come while this one waits. */
static int lease_renew(void *context, struct err *err)
{
    struct postgres_database *self = context;
    assert(self->backend != 0);
    int code = fence_check(self, err);
    char text[200];
    snprintf(text, sizeof text,
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %d AND "
             "application_name = current_setting('application_name') AND pid <> pg_backend_pid()",
             self->backend);
    if (code == 0)
        code = postgres_execute(self->writer, text, err);
    if (code == 0)
        code = lock_take(self, err);
    if (code == 0)
        code = fence_check(self, err);
    if (code == 0)
        code = loss_check(self, err);
    if (code == 0)
        self->backend = PQbackendPID(self->writer->conn);
    return code;
}

/* From here on whoever had the database before cannot write. */
static int fence_raise(struct postgres_database *self, struct err *err)
{
    int code = postgres_number(self->writer, "UPDATE skep SET fence = fence + 1 RETURNING fence",
                               &self->writer->fence, err);
    if (code < 0)
        return code;
    assert(self->writer->fence > 0);
    self->backend = PQbackendPID(self->writer->conn);
    self->writer->context = self;
    self->writer->lease = lease_renew;
    return 0;
}

/* --- opening --- */

static int table_find(struct postgres_connection *connection, bool *is_there, struct err *err)
{
    int64_t found;
    int code =
        postgres_number(connection,
                        "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND "
                        "tablename = 'skep'",
                        &found, err);
    *is_there = found > 0;
    return code;
}

/* Is it ours, and not of a newer program? */
static int program_check(const struct postgres_database *self, int64_t *version, struct err *err)
{
    assert(version);
    int64_t others = 0;
    bool is_there;
    int code = table_find(self->writer, &is_there, err);
    *version = 0;
    if (code == 0 && is_there)
        return postgres_number(self->writer, "SELECT version FROM skep", version, err);
    if (code == 0)
        code = postgres_number(self->writer,
                               "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()",
                               &others, err);
    if (code == 0 && others > 0)
        return err_fail(err, ERR_CORRUPT, "", "%s is a database of another program", self->name);
    return code;
}

static int migration_run(const struct postgres_database *self, unsigned number, struct err *err)
{
    assert(number < postgres_migration_count);
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "BEGIN; %s; UPDATE skep SET version = %u; COMMIT",
               postgres_migrations[number].sql, number + 1);
    int code = postgres_execute(self->writer, buf_cstr(&text), err);
    if (code < 0)
        postgres_execute(self->writer, "ROLLBACK", NULL);
    return code;
}

static int database_migrate(const struct postgres_database *self, struct err *err)
{
    int64_t version;
    int code = program_check(self, &version, err);
    if (code < 0)
        return code;
    if (version > postgres_migration_count)
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "%s was written by a newer skepd (version %" PRId64 ", this one knows %u)",
                        self->name, version, postgres_migration_count);
    for (unsigned i = (unsigned)version; code == 0 && i < postgres_migration_count; i++)
        code = migration_run(self, i, err);
    return code;
}

/* What differs when a dump is loaded, a database is copied, or a standby takes over: the number of
 * the cluster, its timeline, the numbers of the database and of a table, which no dump keeps. */
#define DATABASE_IDENTITY                                                                          \
    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || '/' || "                               \
    "(SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || "                  \
    "'skep'::regclass::oid, identity FROM skep"
static int identity_read(struct postgres_database *self, struct err *err)
{
    assert(self->writer && !self->identity[0]);
    static const char with_system[] =
        "SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || " DATABASE_IDENTITY;
    static const char without_system[] = "SELECT " DATABASE_IDENTITY;
    int64_t may_ask;
    PGresult *result = NULL;
    int code = postgres_number(
        self->writer, "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')::int",
        &may_ask, err);
    if (code == 0)
        code = postgres_ask(self->writer, may_ask ? with_system : without_system, &result, err);
    if (code < 0)
        return code;
    snprintf(self->identity, sizeof self->identity, "%s", PQgetvalue(result, 0, 0));
    if (PQgetvalue(result, 0, 1)[0] && strcmp(PQgetvalue(result, 0, 1), self->identity) != 0)
        self->base.opening.new_epoch =
            "the database was restored, or another server of PostgreSQL took over";
    PQclear(result);
    return 0;
}

static int writer_open(struct postgres_database *self, struct err *err)
{
    assert(!self->writer);
    int code = postgres_connect(self->address, self->name, true, &self->writer, err);
    if (code < 0)
        return code;
    self->base.writer = &self->writer->base;
    code = lock_take(self, err);
    if (code == 0)
        code = database_migrate(self, err);
    if (code == 0)
        code = fence_raise(self, err);
    return code == 0 ? identity_read(self, err) : code;
}

/* --- beside the commits --- */

static void database_close(struct database *database)
{
    struct postgres_database *self = self_of(database);
    postgres_disconnect(self->writer);
    if (self->lock_fd >= 0)
        close(self->lock_fd);
    mem_free(self->address);
    mem_free(self->name);
    mem_free(self);
}

static int database_connect(struct database *database, struct db **reader, struct err *err)
{
    struct postgres_database *self = self_of(database);
    struct postgres_connection *connection;
    int code = postgres_connect(self->address, self->name, false, &connection, err);
    *reader = code == 0 ? &connection->base : NULL;
    return code;
}

static int size_read(struct postgres_database *self, struct err *err)
{
    assert(self->writer);
    int64_t bytes;
    int code =
        postgres_number(self->writer, "SELECT pg_database_size(current_database())", &bytes, err);
    if (code == 0)
        atomic_store(&self->bytes, (uint64_t)bytes);
    return code;
}

static int database_start(struct database *database, const struct db_progress *progress,
                          struct err *err)
{
    struct postgres_database *self = self_of(database);
    assert(self->identity[0]);
    self->known = *progress;
    char text[sizeof self->identity + 40];
    /* an epoch has begun where one must: from here on it is this database */
    snprintf(text, sizeof text, "UPDATE skep SET identity = '%s'", self->identity);
    int code = postgres_execute(self->writer, text, err);
    return code == 0 ? size_read(self, err) : code;
}

/* The numbers are in the database, which loses no commits with a file; another one may take its
 * place. */
static void database_note(struct database *database, const struct db_progress *progress)
{
    self_of(database)->known = *progress;
}

/* There is no reserve: the disk is another machine's. */
static bool database_give_way(struct database *database)
{
    (void)database;
    return false;
}

static bool database_make_room(struct database *database)
{
    (void)database;
    return false;
}

static bool database_is_short(const struct database *database)
{
    (void)database;
    return false;
}

/* Rows that are there, times what some of them take. Sizes of files would not do: they stay when
 * rows go. */
static int table_measure(struct postgres_database *self, const char *table, uint64_t *bytes,
                         struct err *err)
{
    assert(table && bytes);
    char text[200];
    snprintf(text, sizeof text,
             "SELECT n_live_tup FROM pg_stat_user_tables WHERE relid = '%s'::regclass", table);
    int64_t rows;
    int code = postgres_number(self->writer, text, &rows, err);
    if (code < 0)
        return code;
    snprintf(text, sizeof text,
             "SELECT avg(pg_column_size(t.*))::bigint FROM %s t TABLESAMPLE SYSTEM (%.6f)", table,
             rows > SAMPLE_ROWS ? 100.0 * SAMPLE_ROWS / (double)rows : 100.0);
    int64_t row_bytes;
    code = postgres_number(self->writer, text, &row_bytes, err);
    *bytes = (uint64_t)(rows * (row_bytes + ROW_OVERHEAD));
    return code;
}

static int database_measure(struct database *database, uint64_t *used_bytes, struct err *err)
{
    struct postgres_database *self = self_of(database);
    int code = postgres_ready(self->writer, err);
    *used_bytes = 0;
    uint64_t bytes;
    for (size_t i = 0; code == 0 && i < LARGE_TABLES; i++) {
        code = table_measure(self, tables[i], &bytes, err);
        if (code == 0)
            *used_bytes += bytes;
    }
    return code == 0 ? size_read(self, err) : code;
}

/* Reads every row: PostgreSQL says when a page, or a value that stands apart, is damaged. */
static int database_check(struct database *database, struct err *err)
{
    struct postgres_database *self = self_of(database);
    int code = 0;
    char text[100];
    int64_t bytes;
    for (size_t i = 0; code == 0 && i < COUNT_OF(tables); i++) {
        snprintf(text, sizeof text, "SELECT sum(octet_length(t::text))::bigint FROM %s t",
                 tables[i]);
        code = postgres_number(self->writer, text, &bytes, err);
    }
    return code;
}

static void database_count(const struct database *database, struct db_counts *counts)
{
    const struct postgres_database *self = (const struct postgres_database *)database;
    *counts = (struct db_counts){.database_bytes = atomic_load(&self->bytes)};
}

static const struct database_ops ops = {
    .close = database_close,
    .connect = database_connect,
    .start = database_start,
    .note = database_note,
    .give_way = database_give_way,
    .make_room = database_make_room,
    .measure = database_measure,
    .check = database_check,
    .is_short = database_is_short,
    .count = database_count,
};

int postgres_open(const char *address, const char *directory, struct database **out,
                  struct err *err)
{
    struct postgres_database *self = mem_zero(1, sizeof *self);
    self->lock_fd = -1;
    self->address = mem_copy(address);
    self->base.ops = &ops;
    int code = name_of(address, &self->name, err);
    self->base.name = self->name;
    if (code == 0)
        code = directory_lock(directory, &self->lock_fd, err);
    if (code == 0)
        code = writer_open(self, err);
    if (code < 0) {
        database_close(&self->base);
        return code;
    }
    *out = &self->base;
    return 0;
}

int postgres_find(const char *address, bool *is_there, struct err *err)
{
    struct postgres_connection *connection = NULL;
    cleanup_free char *name = NULL;
    int code = name_of(address, &name, err);
    if (code == 0)
        code = postgres_connect(address, name, false, &connection, err);
    if (code == 0)
        code = table_find(connection, is_there, err);
    postgres_disconnect(connection);
    return code;
}
