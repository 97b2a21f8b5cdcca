/* store.c — opening, locking, migrations, transactions, checkpoints. */
#include "store/store.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/epoch.h"
#include "store/migrations.h"
#include "store/store_internal.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum {
    APPLICATION_ID = 0x536b6570, /* "Skep" */
    WRITER_CACHE_KIB = 16384,
    READER_CACHE_KIB = 2048,
};

/* From 4 MiB on, 64 MiB (the size that is kept of the file), 200 MiB. */
static const struct checkpoint_limits checkpoint_limits = {1000, 16000, 50000};

#define INSERT_JOB_MARKS "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"

static const char *const write_texts[WRITE_COUNT] = {
    [WRITE_BEGIN] = "BEGIN IMMEDIATE",
    [WRITE_COMMIT] = "COMMIT",
    [WRITE_ROLLBACK] = "ROLLBACK",
    [WRITE_EVENT] = "INSERT INTO event_log (at_ms, kind, body) VALUES (?,?,?)",
    [WRITE_COUNTER] = "INSERT INTO counters (name, value) VALUES (?,?) "
                      "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [WRITE_JOB_NEW] = "INSERT INTO jobs (" JOB_COLUMNS ") VALUES (" INSERT_JOB_MARKS ")",
    [WRITE_JOB] = "UPDATE jobs SET (" JOB_STATE_COLUMNS ") = "
                  "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE id = ?",
    [WRITE_JOB_PLAN] = "INSERT INTO job_plans (job, plan) VALUES (?,?)",
    [WRITE_JOB_SOURCE] =
        "INSERT INTO job_sources (job, format, spec, source, sealed) VALUES (?,?,?,?,?)",
    [WRITE_JOB_ATTEMPT] = "INSERT OR REPLACE INTO job_attempts (" JOB_ATTEMPT_COLUMNS ") VALUES "
                          "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [WRITE_TASK] = "INSERT OR REPLACE INTO tasks (" TASK_COLUMNS ") VALUES "
                   "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [WRITE_TASK_ATTEMPT] = "INSERT OR REPLACE INTO task_attempts (" TASK_COLUMNS ") VALUES "
                           "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [WRITE_TASK_REMOVE] = "DELETE FROM tasks WHERE job = ? AND role = ? AND task_index = ?",
    [WRITE_STORY] = "INSERT INTO stories (" STORY_COLUMNS ") VALUES (?,?,?,?,?,?,?,?)",
    [WRITE_NODE] = "INSERT OR REPLACE INTO nodes (" NODE_COLUMNS ") VALUES "
                   "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    /* first, while the rows that name the attempts are there */
    [PURGE_FIRST] = "DELETE FROM attempt_ends WHERE attempt IN (SELECT attempt FROM tasks WHERE "
                    "job = ?1 UNION SELECT attempt FROM task_attempts WHERE job = ?1)",
    [PURGE_FIRST + 1] = "DELETE FROM jobs WHERE id = ?",
    [PURGE_FIRST + 2] = "DELETE FROM job_plans WHERE job = ?",
    [PURGE_FIRST + 3] = "DELETE FROM job_sources WHERE job = ?",
    [PURGE_FIRST + 4] = "DELETE FROM job_attempts WHERE job = ?",
    [PURGE_FIRST + 5] = "DELETE FROM tasks WHERE job = ?",
    [PURGE_FIRST + 6] = "DELETE FROM task_attempts WHERE job = ?",
    [PURGE_FIRST + 7] = "DELETE FROM stories WHERE job = ?",
    [PURGE_FIRST + 8] = "DELETE FROM barriers WHERE job = ?",
    [PURGE_LAST] = "DELETE FROM tags WHERE job = ?",
    [WRITE_TAG] = "INSERT OR IGNORE INTO tags (job, name) VALUES (?,?)",
    [WRITE_UNTAG] = "DELETE FROM tags WHERE job = ? AND name = ?",
    [WRITE_USER_ADD] = "INSERT OR IGNORE INTO users (" USER_COLUMNS ") VALUES (?,?,?,?,?,?,?,?)",
    [WRITE_USER_SET] = "UPDATE users SET (" USER_COLUMNS ") = (?1,?2,?3,?4,?5,?6,?7,?8) "
                       "WHERE name = ?1",
    [WRITE_USER_REMOVE] = "DELETE FROM users WHERE name = ?",
    [WRITE_USER_TOKENS] = "DELETE FROM tokens WHERE user = ?",
    [COUNT_USERS] = "SELECT count(*) FROM users",
    [HAS_USER] = "SELECT 1 FROM users WHERE name = ?",
    [COUNT_TOKENS] = "SELECT count(*) FROM tokens WHERE user = ?",
    [READ_USED] = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
                  "pragma_freelist_count, pragma_page_size",
    [READ_OLDEST] = "SELECT at_ms FROM event_log ORDER BY sequence LIMIT 1",
    [COUNT_TAGS] = "SELECT count(*) FROM tags WHERE job = ? AND name <> ?",
    [WRITE_TOKEN] = "INSERT OR IGNORE INTO tokens (" TOKEN_COLUMNS ") VALUES (?,?,?,?,?)",
    [WRITE_TOKEN_REMOVE] = "DELETE FROM tokens WHERE id = ? AND user = ?",
    [WRITE_TOKENS_REMOVE] = "DELETE FROM tokens WHERE user = ? AND is_application <= ? AND id <> ?",
    [WRITE_END] = "INSERT INTO attempt_ends (" END_COLUMNS ") SELECT ?1, ?2, "
                  "iif(code = ?3, ?3, 0), iif(code = ?3, ?4, ''), iif(code = ?3, ?5, 0), "
                  "iif(code = ?3, ?6, 0), iif(code = ?3, ?7, 0), iif(code = ?3, ?8, ''), "
                  "iif(code = ?3, ?9, ''), iif(code = ?3, ?10, '') "
                  "FROM task_attempts WHERE attempt = ?1 ON CONFLICT (attempt) DO NOTHING",
    [WRITE_BARRIER] = "INSERT OR REPLACE INTO barriers (job, kind, attempt) VALUES (?,?,?)",
    [WRITE_SETTING] = "INSERT OR REPLACE INTO settings (key, value) VALUES (?,?)",
    [WRITE_SETTING_REMOVE] = "DELETE FROM settings WHERE key = ?",
    [WRITE_LOG_TRIM] = "DELETE FROM event_log WHERE sequence IN "
                       "(SELECT sequence FROM event_log ORDER BY sequence LIMIT 20000) "
                       "AND at_ms < ?",
    [WRITE_TOKENS_EXPIRE] = "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens "
                            "WHERE expires_ms <> 0 AND expires_ms < ? LIMIT 1000)",
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The lock is the process's own: it goes when the process goes, however it ends. (A lock of the
 * open file would live on in a child that a killed server had just forked.) */
int store_lock(const char *directory, int *out_fd, struct err *err)
{
    cleanup_free char *path = mem_alloc(strlen(directory) + sizeof "/lock");
    cleanup_close int fd = -1;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32] = "";
    ssize_t length;

    sprintf(path, "%s/lock", directory);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    if (fcntl(fd, F_SETLK, &whole) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return err_errno(err, errno, "lock %s", path);
        length = pread(fd, text, sizeof text - 1, 0);
        if (length > 0 && strchr(text, '\n'))
            *strchr(text, '\n') = '\0';
        return err_fail(err, ERR_CONFLICT, "", "%s is in use by another skepd (process %s)",
                        directory, length > 0 ? text : "unknown");
    }
    length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* the number is only for the message above, and no reason not to start on a full disk; what is
     * written first takes the room of the number before */
    if (pwrite(fd, text, (size_t)length, 0) == length && ftruncate(fd, length) < 0)
        return err_errno(err, errno, "truncate %s", path);
    *out_fd = fd_steal(&fd);
    return 0;
}

int store_connect(const char *path, bool is_writer, sqlite3 **db, struct err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    char cache[64];

    flags |= is_writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(path, db, flags, NULL) != SQLITE_OK) {
        int code = *db && sqlite3_errcode(*db) != SQLITE_CANTOPEN
                       ? sql_fail(*db, err, "open")
                       : err_errno(err, *db ? sqlite3_system_errno(*db) : ENOMEM, "open %s", path);
        sqlite3_close(*db);
        *db = NULL;
        return code;
    }
    sqlite3_busy_timeout(*db, 10000);
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d",
             is_writer ? WRITER_CACHE_KIB : READER_CACHE_KIB);
    return sql_exec(*db, cache, err);
}

int store_pragma(sqlite3 *db, const char *text, int64_t *value, struct err *err)
{
    sqlite3_stmt *stmt;
    struct sql sql;
    int code = sql_prepare(db, text, &stmt, err);

    if (code < 0)
        return code;
    sql = sql_of(stmt);
    code = sql_next(&sql, err);
    if (code > 0)
        *value = sql_int(&sql);
    sqlite3_finalize(stmt);
    return code < 0 ? code : 0;
}

static int migration_run(sqlite3 *db, unsigned number, struct err *err)
{
    char text[80];
    int code = sql_exec(db, "BEGIN IMMEDIATE", err);

    if (code == 0)
        code = sql_exec(db, migrations[number].sql, err);
    snprintf(text, sizeof text, "PRAGMA user_version = %u", number + 1);
    if (code == 0)
        code = sql_exec(db, text, err);
    if (code == 0)
        code = sql_exec(db, "COMMIT", err);
    if (code < 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* At the end the last connection empties the log and removes it, unless told to keep it. */
int store_keep_log(sqlite3 *db, bool is_kept, struct err *err)
{
    if (sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int)is_kept, NULL) == SQLITE_OK)
        return 0;
    return sql_fail(db, err, "keep the log");
}

/* Is it ours, and not of a newer program? */
int store_check_program(sqlite3 *db, struct err *err)
{
    int64_t version = 0, application = 0, tables = 0;
    int code = store_pragma(db, "PRAGMA user_version", &version, err);

    if (code == 0)
        code = store_pragma(db, "PRAGMA application_id", &application, err);
    if (code == 0)
        code = store_pragma(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (code < 0)
        return code;
    if (tables > 0 && application != APPLICATION_ID)
        return err_fail(err, ERR_CORRUPT, "", "%s is a database of another program",
                        sqlite3_db_filename(db, "main"));
    if (version > migration_count)
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "%s was written by a newer skepd (version %lld, this one knows %u)",
                        sqlite3_db_filename(db, "main"), (long long)version, migration_count);
    return 0;
}

static int store_migrate(struct store *store, struct err *err)
{
    int64_t version = 0;
    char text[80];
    int code = store_pragma(store->db, "PRAGMA user_version", &version, err);

    if (code < 0)
        return code;
    snprintf(text, sizeof text, "PRAGMA application_id = %d", APPLICATION_ID);
    if (version == 0)
        code = sql_exec(store->db, text, err);
    for (unsigned i = (unsigned)version; code == 0 && i < migration_count; i++)
        code = migration_run(store->db, i, err);
    return code;
}

static int on_wal(void *context, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct store *)context)->wal_pages = pages;
    return SQLITE_OK;
}

/* Nothing is written to the database, nor is its log emptied, before it has been judged. */
static int store_open_writer(struct store *store, bool accepts_loss, struct judgement *judgement,
                             struct err *err)
{
    int code = store_connect(store->path, true, &store->db, err);

    if (code == 0)
        code = store_keep_log(store->db, true, err);
    if (code == 0)
        code = store_check_program(store->db, err);
    if (code == 0)
        code = epoch_judge(store, accepts_loss, judgement, err);
    if (code == 0)
        code = sql_exec(store->db, "PRAGMA journal_mode = WAL", err);
    if (code == 0)
        code = sql_exec(store->db,
                        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                        "PRAGMA journal_size_limit = 67108864",
                        err);
    if (code == 0)
        code = store_migrate(store, err);
    for (size_t i = 0; code == 0 && i < WRITE_COUNT; i++)
        code = sql_prepare(store->db, write_texts[i], &store->writes[i], err);
    return code;
}

static int store_load_tags(struct store *store, struct err *err)
{
    sqlite3_stmt *stmt;
    struct sql sql;
    struct arena arena;
    int code = sql_prepare(store->db, "SELECT job, name FROM tags", &stmt, err);

    if (code < 0)
        return code;
    arena_init(&arena);
    sql = sql_of(stmt);
    while ((code = sql_next(&sql, err)) > 0) {
        struct job_id job = {(uint32_t)sql_int(&sql)};
        job_index_tag(store->job_index, job, sql_string(&sql, &arena));
        arena_clear(&arena);
    }
    arena_release(&arena);
    sqlite3_finalize(stmt);
    return code;
}

static int store_load_jobs(struct store *store, struct err *err)
{
    sqlite3_stmt *stmt;
    struct sql sql;
    struct arena arena;
    int code = sql_prepare(store->db, "SELECT " JOB_COLUMNS " FROM jobs ORDER BY id", &stmt, err);

    if (code < 0)
        return code;
    arena_init(&arena);
    sql = sql_of(stmt);
    while ((code = sql_next(&sql, err)) > 0) {
        struct job_record job;
        bool has_priority;
        row_get_job(&sql, &job, &has_priority, &arena);
        job_index_put(store->job_index, &job, has_priority);
        store->last_job = job.id.v;
        arena_clear(&arena);
    }
    arena_release(&arena);
    sqlite3_finalize(stmt);
    return code;
}

static int store_load(struct store *store, struct err *err)
{
    int64_t last_job = 0, last_attempt = 0, commits = 0, events = 0;
    uint64_t seed = 0;
    int code;

    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return err_errno(err, errno, "getrandom");
    store->job_index = job_index_new(seed);
    code = store_load_jobs(store, err);
    if (code == 0)
        code = store_load_tags(store, err);
    if (code == 0)
        code = store_pragma(store->db, "SELECT value FROM counters WHERE name = 'job'", &last_job,
                            err);
    if (code == 0)
        code = store_pragma(store->db, "SELECT value FROM counters WHERE name = 'attempt'",
                            &last_attempt, err);
    if (code == 0)
        code = store_pragma(store->db, "SELECT value FROM counters WHERE name = 'commit'", &commits,
                            err);
    if (code == 0)
        code = store_pragma(store->db, "SELECT value FROM counters WHERE name = 'event'", &events,
                            err);
    if (code < 0)
        return code;
    if (last_job < (int64_t)store->last_job)
        return err_fail(err, ERR_CORRUPT, "", "%s: job %u is younger than the counter %lld",
                        store->path, store->last_job, (long long)last_job);
    store->last_job = (uint32_t)last_job;
    store->last_attempt = (uint64_t)last_attempt;
    store->stored_commits = (uint64_t)commits;
    store->stored_events = (uint64_t)events;
    return 0;
}

static int store_begin(struct store *store, const struct store_opening *opening, struct err *err)
{
    struct judgement judgement;
    int code = store_lock(store->directory, &store->lock_fd, err);

    if (code == 0)
        code = reserve_open(&store->reserve, store->directory, err);
    if (code == 0)
        code = marker_open(&store->marker, store->directory, err);
    if (code == 0)
        code = store_open_writer(store, opening->accepts_loss, &judgement, err);
    if (code == 0)
        code = store_load(store, err);
    if (code == 0)
        code = epoch_open(store, &judgement, err);
    if (code == 0)
        code = store_keep_log(store->db, false, err);
    if (code == 0)
        code = checkpoint_start(&store->checkpoint, store->path, &checkpoint_limits, &store->marker,
                                err);
    if (code == 0)
        sqlite3_wal_hook(store->db, on_wal, store);
    atomic_store(&store->is_short, !store->reserve.is_held);
    return code;
}

bool store_is_short(const struct store *store)
{
    return atomic_load(&store->is_short);
}

bool store_make_room(struct store *store)
{
    if (store_is_short(store) && reserve_make(&store->reserve)) {
        log_info("store", "the disk of %s has room again", store->path);
        atomic_store(&store->is_short, false);
    }
    return store_is_short(store);
}

int store_open(const char *directory, struct store **out, struct err *err)
{
    return store_open_with(directory, &(struct store_opening){0}, out, err);
}

int store_open_with(const char *directory, const struct store_opening *opening, struct store **out,
                    struct err *err)
{
    struct store *store = mem_zero(1, sizeof *store);
    int code;

    assert(sqlite3_threadsafe());
    store->lock_fd = store->marker.fd = -1;
    store->directory = mem_copy(directory);
    store->path = mem_alloc(strlen(directory) + sizeof "/skep.db");
    sprintf(store->path, "%s/skep.db", directory);
    code = store_begin(store, opening, err);
    if (code < 0) {
        store_close(store);
        return code;
    }
    *out = store;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    checkpoint_stop(&store->checkpoint);
    for (size_t i = 0; i < WRITE_COUNT; i++)
        sqlite3_finalize(store->writes[i]);
    sqlite3_close(store->db);
    marker_close(&store->marker);
    reserve_close(&store->reserve);
    ARRAY_FREE(&store->epochs);
    job_index_free(store->job_index);
    buf_release(&store->scratch);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    mem_free(store->directory);
    mem_free(store->path);
    mem_free(store);
}

static int store_write_events(struct store *store, const struct store_batch *batch, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < batch->event_count; i++) {
        struct sql sql = store_sql(store, WRITE_EVENT);
        sql_put_int(&sql, batch->events[i].at_ms);
        sql_put_int(&sql, batch->events[i].kind);
        sql_put_blob(&sql, batch->events[i].body);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

int store_run(struct store *store, enum write_statement which, struct err *err)
{
    struct sql sql = store_sql(store, which);
    return sql_run(&sql, NULL, err);
}

static int store_transact(struct store *store, const struct store_batch *batch, struct err *err)
{
    int code = store_run(store, WRITE_BEGIN, err);

    if (code < 0)
        return code;
    code = store_write_events(store, batch, err);
    if (code == 0 && batch->output)
        code = store_write_records(store, batch->output, err);
    if (code == 0)
        code = store_write_changes(store, batch->changes, batch->change_count, err);
    if (code == 0)
        code = store_write_progress(store, batch->event_count, err);
    if (code == 0)
        code = store_run(store, WRITE_COMMIT, err);
    /* some failures have rolled back already */
    if (code < 0 && !sqlite3_get_autocommit(store->db))
        store_run(store, WRITE_ROLLBACK, NULL);
    return code;
}

int store_commit(struct store *store, const struct store_batch *batch, struct err *err)
{
    int64_t begin_us = now_us();
    uint32_t last_job = store->last_job;
    uint64_t last_attempt = store->last_attempt;
    int code = store_transact(store, batch, err);

    if (code == ERR_UNAVAILABLE && reserve_give_up(&store->reserve)) {
        atomic_store(&store->is_short, true);
        store->last_job = last_job;
        store->last_attempt = last_attempt;
        code = store_transact(store, batch, err);
    }
    atomic_fetch_add(&store->commit_us, (uint64_t)(now_us() - begin_us));
    if (code < 0) {
        store->last_job = last_job;
        store->last_attempt = last_attempt;
        atomic_fetch_add(&store->commit_failures, 1);
        return code;
    }
    store->stored_commits++;
    store->stored_events += batch->event_count;
    epoch_mark(store);
    job_index_write_begin(store->job_index);
    if (batch->output)
        store_show_records(store, batch->output);
    store_show_changes(store, batch->changes, batch->change_count);
    job_index_write_end(store->job_index);
    checkpoint_note(&store->checkpoint, store->wal_pages);
    atomic_fetch_add(&store->commits, 1);
    atomic_fetch_add(&store->events, batch->event_count);
    if (batch->output)
        atomic_fetch_add(&store->records, batch->output->records.count);
    return 0;
}

void store_numbers(const struct store *store, struct job_id *job, struct attempt_id *attempt)
{
    job->v = store->last_job;
    attempt->v = store->last_attempt;
}

static int store_number(struct store *store, enum write_statement which, int64_t *value,
                        struct err *err)
{
    struct sql sql = store_sql(store, which);
    int code = sql_next(&sql, err);

    *value = code > 0 ? sql_int(&sql) : 0;
    sql_done(&sql);
    return code < 0 ? code : 0;
}

int store_measure(struct store *store, uint64_t *used_bytes, int64_t *oldest_event_ms,
                  struct err *err)
{
    int64_t used;
    int code = store_number(store, READ_USED, &used, err);

    if (code == 0)
        code = store_number(store, READ_OLDEST, oldest_event_ms, err);
    *used_bytes = (uint64_t)used;
    return code;
}

static uint64_t file_size(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

void store_count(const struct store *store, struct store_counts *counts)
{
    cleanup_free char *wal = mem_alloc(strlen(store->path) + sizeof "-wal");

    sprintf(wal, "%s-wal", store->path);
    *counts = (struct store_counts){
        .commits = atomic_load(&store->commits),
        .commit_failures = atomic_load(&store->commit_failures),
        .records = atomic_load(&store->records),
        .events = atomic_load(&store->events),
        .commit_us = atomic_load(&store->commit_us),
        .database_bytes = file_size(store->path),
        .wal_bytes = file_size(wal),
        .wal_large_since_ms = atomic_load(&store->checkpoint.large_since_ms),
    };
}

int store_look_through(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *stmt;
    struct sql sql;
    struct arena arena;
    const char *found;
    int code = sql_prepare(db, "PRAGMA integrity_check(1)", &stmt, err);

    if (code < 0)
        return code;
    arena_init(&arena);
    sql = sql_of(stmt);
    code = sql_next(&sql, err);
    found = code > 0 ? sql_string(&sql, &arena) : "nothing was read";
    if (code >= 0 && strcmp(found, "ok") != 0)
        code = err_fail(err, ERR_CORRUPT, "", "%s is damaged: %s", sqlite3_db_filename(db, "main"),
                        found);
    arena_release(&arena);
    sqlite3_finalize(stmt);
    return code < 0 ? code : 0;
}

int store_check(struct store *store, struct err *err)
{
    return store_look_through(store->db, err);
}
