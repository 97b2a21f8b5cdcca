/* database.c — see sqlite.h: opening, what happens beside the commits, closing. */
#include "base/err.h"
#include "base/memory.h"
#include "store/directory.h"
#include "store/migrations.h"
#include "store/sqlite/backup.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/marker.h"
#include "store/sqlite/past.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/sqlite.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION_ID = 0x536b6570 /* "Skep" */ };

/* From 4 MiB on, 64 MiB (the size that is kept of the file), 200 MiB. */
static const struct checkpoint_limits checkpoint_limits = {1000, 16000, 50000};

struct sqlite_database {
    struct database base;
    char *directory, *path;
    int lock_fd;
    struct sqlite_connection *writer;
    struct marker marker;
    bool is_mark_failing;
    struct reserve reserve;
    _Atomic bool is_short; /* the reserve has been given up */
    struct checkpoint checkpoint;
    int wal_pages;     /* after the last commit */
    bool is_log_stuck; /* since then its log could not be copied into the database */
};

static struct sqlite_database *self_of(struct database *database)
{
    return (struct sqlite_database *)database;
}

/* At the end the last connection empties the log and removes it, unless told to keep it. */
int sqlite_keep_log(sqlite3 *db, bool is_kept, struct err *err)
{
    if (sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int)is_kept, NULL) == SQLITE_OK)
        return 0;
    return sqlite_fail(db, err, "keep the log");
}

/* Is it ours, and not of a newer program? */
int sqlite_check_program(sqlite3 *db, struct err *err)
{
    int64_t version = 0, application = 0, tables = 0;
    int code = sqlite_number(db, "PRAGMA user_version", &version, err);
    if (code == 0)
        code = sqlite_number(db, "PRAGMA application_id", &application, err);
    if (code == 0)
        code = sqlite_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (code < 0)
        return code;
    if (tables > 0 && application != APPLICATION_ID)
        return err_fail(err, ERR_CORRUPT, "", "%s is a database of another program",
                        sqlite3_db_filename(db, "main"));
    if (version > sqlite_migration_count)
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "%s was written by a newer skepd (version %lld, this one knows %u)",
                        sqlite3_db_filename(db, "main"), (long long)version,
                        sqlite_migration_count);
    return 0;
}

int sqlite_check_pages(sqlite3 *db, struct err *err)
{
    int code = 0, step;
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &stmt, NULL) != SQLITE_OK)
        return sqlite_fail(db, err, "check");
    step = sqlite3_step(stmt);
    const char *found =
        step == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : "nothing was read";
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        code = sqlite_fail(db, err, "read");
    else if (!found || strcmp(found, "ok") != 0)
        code = err_fail(err, ERR_CORRUPT, "", "%s is damaged: %s", sqlite3_db_filename(db, "main"),
                        found ? found : "");
    sqlite3_finalize(stmt);
    return code;
}

static int migration_run(sqlite3 *db, unsigned number, struct err *err)
{
    assert(number < sqlite_migration_count);
    int code = sqlite_execute(db, "BEGIN IMMEDIATE", err);
    if (code == 0)
        code = sqlite_execute(db, sqlite_migrations[number].sql, err);
    char text[80];
    snprintf(text, sizeof text, "PRAGMA user_version = %u", number + 1);
    if (code == 0)
        code = sqlite_execute(db, text, err);
    if (code == 0)
        code = sqlite_execute(db, "COMMIT", err);
    if (code < 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

static int database_migrate(sqlite3 *db, struct err *err)
{
    int64_t version = 0;
    int code = sqlite_number(db, "PRAGMA user_version", &version, err);
    if (code < 0)
        return code;
    char text[80];
    snprintf(text, sizeof text, "PRAGMA application_id = %d", APPLICATION_ID);
    if (version == 0)
        code = sqlite_execute(db, text, err);
    for (unsigned i = (unsigned)version; code == 0 && i < sqlite_migration_count; i++)
        code = migration_run(db, i, err);
    return code;
}

static int on_wal(void *context, sqlite3 *db, const char *name, int pages)
{
    assert(pages >= 0);
    (void)db;
    (void)name;
    ((struct sqlite_database *)context)->wal_pages = pages;
    return SQLITE_OK;
}

/* Nothing is written to the database, nor is its log emptied, before it has been judged. */
static int writer_open(struct sqlite_database *self, bool accepts_loss, struct err *err)
{
    assert(!self->writer);
    struct sqlite_place place = {NULL, self->directory, self->path};
    int code = sqlite_connect(self->path, true, &self->writer, err);
    if (code < 0)
        return code;
    place.db = self->writer->db;
    self->base.writer = &self->writer->base;
    code = sqlite_keep_log(place.db, true, err);
    if (code == 0)
        code = sqlite_check_program(place.db, err);
    if (code == 0)
        code = past_judge(&place, &self->marker, accepts_loss, &self->base.opening, err);
    if (code == 0)
        code = sqlite_execute(place.db, "PRAGMA journal_mode = WAL", err);
    if (code == 0)
        code = sqlite_execute(place.db,
                              "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                              "PRAGMA journal_size_limit = 67108864",
                              err);
    return code == 0 ? database_migrate(place.db, err) : code;
}

static void database_close(struct database *database)
{
    struct sqlite_database *self = self_of(database);
    checkpoint_stop(&self->checkpoint);
    sqlite_disconnect(self->writer);
    marker_close(&self->marker);
    reserve_close(&self->reserve);
    if (self->lock_fd >= 0)
        close(self->lock_fd);
    mem_free(self->directory);
    mem_free(self->path);
    mem_free(self);
}

static int database_connect(struct database *database, struct db **reader, struct err *err)
{
    assert(reader);
    struct sqlite_connection *connection;
    int code = sqlite_connect(self_of(database)->path, false, &connection, err);
    *reader = code == 0 ? &connection->base : NULL;
    return code;
}

/* A mark that cannot be written is logged once. */
static void mark_write(struct sqlite_database *self, const struct db_progress *progress)
{
    const struct mark mark = {progress->epoch, progress->commits, progress->events,
                              progress->last_job.v, progress->last_attempt.v};
    assert(self->writer);
    struct err err;
    if (marker_write(&self->marker, &mark, &err) == 0) {
        self->is_mark_failing = false;
    } else if (!self->is_mark_failing) {
        self->is_mark_failing = true;
        log_warning("store", "%s: a loss would not be noticed", err.text);
    }
}

static int database_start(struct database *database, const struct db_progress *progress,
                          struct err *err)
{
    struct sqlite_database *self = self_of(database);
    mark_write(self, progress);
    int code = marker_sync(&self->marker, err);
    if (code == 0)
        code = sqlite_keep_log(self->writer->db, false, err);
    if (code == 0)
        code =
            checkpoint_start(&self->checkpoint, self->path, &checkpoint_limits, &self->marker, err);
    if (code == 0)
        sqlite3_wal_hook(self->writer->db, on_wal, self);
    return code;
}

static void database_note(struct database *database, const struct db_progress *progress)
{
    assert(progress);
    struct sqlite_database *self = self_of(database);
    mark_write(self, progress);
    self->is_log_stuck = false;
    if (self->checkpoint.has_thread)
        checkpoint_note(&self->checkpoint, self->wal_pages);
}

/* What the log holds goes into the database, whose pages are there for the most part, and the next
 * commit begins the log anew: its room is used once more. Only of a log of few pages, as the thread
 * that commits does it: a larger one is the checkpoint's, and the disk stays full until it is done.
 * A reader is waited for only as long as requests take; one that keeps its snapshot hinders it. */
static bool log_use_again(struct sqlite_database *self)
{
    enum { PAGES_MAX = 4000, READER_MS = 100 };
    sqlite3 *db = self->writer->db;
    if (self->is_log_stuck)
        return false;
    if (self->wal_pages > PAGES_MAX) {
        checkpoint_ask(&self->checkpoint);
        return false;
    }
    checkpoint_await(&self->checkpoint); /* two cannot copy at a time */
    sqlite3_busy_timeout(db, READER_MS);
    const int code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    sqlite3_busy_timeout(db, SQLITE_PATIENCE_MS);
    /* the database has to grow as well: nothing is won by trying it again */
    self->is_log_stuck = code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY;
    return code == SQLITE_OK;
}

static bool database_give_way(struct database *database)
{
    struct sqlite_database *self = self_of(database);
    if (!reserve_give_up(&self->reserve))
        return log_use_again(self);
    atomic_store(&self->is_short, true);
    return true;
}

static bool database_is_short(const struct database *database)
{
    return atomic_load(&((const struct sqlite_database *)database)->is_short);
}

static bool database_make_room(struct database *database)
{
    struct sqlite_database *self = self_of(database);
    if (database_is_short(database) && reserve_make(&self->reserve)) {
        log_info("store", "the disk of %s has room again", self->path);
        atomic_store(&self->is_short, false);
    }
    return database_is_short(database);
}

static int database_measure(struct database *database, uint64_t *used_bytes, struct err *err)
{
    assert(used_bytes);
    int64_t used = 0;
    int code = sqlite_number(self_of(database)->writer->db,
                             "SELECT (page_count - freelist_count) * page_size FROM "
                             "pragma_page_count, pragma_freelist_count, pragma_page_size",
                             &used, err);
    *used_bytes = (uint64_t)used;
    return code;
}

static int database_check(struct database *database, struct err *err)
{
    return sqlite_check_pages(self_of(database)->writer->db, err);
}

static uint64_t file_size(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static void database_count(const struct database *database, struct db_counts *counts)
{
    const struct sqlite_database *self = (const struct sqlite_database *)database;
    cleanup_free char *log = mem_alloc(strlen(self->path) + sizeof "-wal");
    sprintf(log, "%s-wal", self->path);
    *counts = (struct db_counts){
        .database_bytes = file_size(self->path),
        .log_bytes = file_size(log),
        .log_large_since_ms = atomic_load(&self->checkpoint.large_since_ms),
    };
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

int sqlite_open(const char *directory, bool accepts_loss, struct database **out, struct err *err)
{
    struct sqlite_database *self = mem_zero(1, sizeof *self);
    assert(sqlite3_threadsafe());
    self->lock_fd = self->marker.fd = -1;
    self->directory = mem_copy(directory);
    self->path = mem_alloc(strlen(directory) + sizeof "/skep.db");
    sprintf(self->path, "%s/skep.db", directory);
    self->base = (struct database){.ops = &ops, .name = self->path};
    int code = directory_lock(directory, &self->lock_fd, err);
    if (code == 0)
        code = sqlite_restore_finish(directory, err);
    if (code == 0)
        code = reserve_open(&self->reserve, directory, err);
    if (code == 0)
        code = marker_open(&self->marker, directory, err);
    if (code == 0)
        code = writer_open(self, accepts_loss, err);
    if (code < 0) {
        database_close(&self->base);
        return code;
    }
    atomic_store(&self->is_short, !self->reserve.is_held);
    *out = &self->base;
    return 0;
}
