/* checkpoint.c — see checkpoint.h. */
#include "store/sqlite/checkpoint.h"
#include "base/err.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/marker.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <time.h>

enum { CHECKPOINT_REST = 1000, PAGES_PER_MIB = 256 };

static void large_tell(struct checkpoint *checkpoint, int pages, int code)
{
    assert(pages >= 0);
    if (pages < checkpoint->limits.large) {
        atomic_store(&checkpoint->large_since_ms, 0);
        if (checkpoint->warned > 0)
            log_info("store", "the write-ahead log of %s has been emptied", checkpoint->path);
        checkpoint->warned = 0;
        return;
    }
    if (atomic_load(&checkpoint->large_since_ms) == 0)
        atomic_store(&checkpoint->large_since_ms, clock_unix_ms());
    if (checkpoint->warned > 0 && pages / 2 < checkpoint->warned)
        return;
    checkpoint->warned = pages;
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
        log_warning("store",
                    "the write-ahead log of %s has grown to %d MiB: it cannot be copied "
                    "into the database: %s",
                    checkpoint->path, pages / PAGES_PER_MIB, sqlite3_errstr(code));
    else
        log_warning("store",
                    "the write-ahead log of %s has grown to %d MiB: a program keeps a "
                    "snapshot of the database (a backup, an open sqlite3)",
                    checkpoint->path, pages / PAGES_PER_MIB);
}

/* `noted` pages are in the log, by the last commit. Returns whether the log should begin anew but
 * cannot while somebody commits, or reads what is old. */
static bool checkpoint_run(struct checkpoint *checkpoint, int noted)
{
    bool is_hindered = false;
    sqlite3 *db = checkpoint->connection->db;
    int pages = 0, copied = 0;
    int code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    assert(copied <= pages);
    if (code != SQLITE_OK) /* then it has not counted them */
        pages = noted;
    else if (pages >= checkpoint->limits.restart && pages - copied <= CHECKPOINT_REST) {
        is_hindered =
            sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL) != SQLITE_OK;
        if (!is_hindered)
            pages = 0;
    }
    large_tell(checkpoint, pages, code);
    return is_hindered;
}

/* Under the lock: until a checkpoint is due, or the mark has been written but not synced for
 * MARK_SYNC_MS. Returns whether the latter has come. */
static bool checkpoint_wait(struct checkpoint *checkpoint)
{
    assert(!checkpoint->is_closing);
    checkpoint->is_idle = true;
    while (!checkpoint->is_closing && !checkpoint->is_due && !marker_is_dirty(checkpoint->marker))
        pthread_cond_wait(&checkpoint->wake, &checkpoint->lock);
    checkpoint->is_idle = false;
    const struct timespec limit = clock_moment(clock_monotonic_ms() + MARK_SYNC_MS);
    while (!checkpoint->is_closing && !checkpoint->is_due)
        if (pthread_cond_timedwait(&checkpoint->wake, &checkpoint->lock, &limit) == ETIMEDOUT)
            return true;
    return false;
}

static void checkpoint_sync_mark(struct checkpoint *checkpoint)
{
    assert(checkpoint->marker);
    struct err err;
    if (marker_sync(checkpoint->marker, &err) < 0)
        log_warning("store", "%s: a loss would not be noticed", err.text);
}

/* After a round for which the writer was held, or was not. */
static void writer_release(struct checkpoint *checkpoint, bool is_held, bool is_hindered)
{
    pthread_mutex_lock(&checkpoint->lock);
    assert(!is_held || checkpoint->is_writer_held);
    /* while the writer is held it is a reader that hinders: no commit waits for one */
    checkpoint->wants_writer = is_hindered && !is_held;
    if (is_held)
        checkpoint->is_writer_held = false;
    pthread_cond_signal(&checkpoint->writer_wake);
    pthread_mutex_unlock(&checkpoint->lock);
}

static void *checkpoint_main(void *argument)
{
    struct checkpoint *checkpoint = argument;
    assert(checkpoint->connection);
    pthread_mutex_lock(&checkpoint->lock);
    while (!checkpoint->is_closing) {
        bool is_mark_due = checkpoint_wait(checkpoint);
        bool is_due = checkpoint->is_due;
        int noted = checkpoint->noted;
        bool is_held = checkpoint->is_writer_held;
        checkpoint->is_due = false;
        checkpoint->is_running = is_due;
        pthread_mutex_unlock(&checkpoint->lock);
        if (is_due)
            writer_release(checkpoint, is_held, checkpoint_run(checkpoint, noted));
        pthread_mutex_lock(&checkpoint->lock);
        checkpoint->is_running = false;
        pthread_cond_broadcast(&checkpoint->writer_wake);
        pthread_mutex_unlock(&checkpoint->lock);
        if (is_due || is_mark_due)
            checkpoint_sync_mark(checkpoint);
        pthread_mutex_lock(&checkpoint->lock);
    }
    pthread_mutex_unlock(&checkpoint->lock);
    return NULL;
}

int checkpoint_start(struct checkpoint *checkpoint, const char *path,
                     const struct checkpoint_limits *limits, struct marker *marker, struct err *err)
{
    assert(limits->due <= limits->restart && limits->restart <= limits->large);
    *checkpoint = (struct checkpoint){.limits = *limits, .path = path, .marker = marker};
    pthread_mutex_init(&checkpoint->lock, NULL);
    clock_condition_init(&checkpoint->wake);
    clock_condition_init(&checkpoint->writer_wake);
    int code = sqlite_connect(path, true, &checkpoint->connection, err);
    if (code < 0)
        return code;
    sqlite3_busy_timeout(checkpoint->connection->db, 0);
    if (pthread_create(&checkpoint->thread, NULL, checkpoint_main, checkpoint) != 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    checkpoint->has_thread = true;
    return 0;
}

void checkpoint_stop(struct checkpoint *checkpoint)
{
    if (!checkpoint->path)
        return;
    if (checkpoint->has_thread) {
        pthread_mutex_lock(&checkpoint->lock);
        checkpoint->is_closing = true;
        pthread_cond_signal(&checkpoint->wake);
        pthread_mutex_unlock(&checkpoint->lock);
        pthread_join(checkpoint->thread, NULL);
    }
    sqlite_disconnect(checkpoint->connection);
    pthread_mutex_destroy(&checkpoint->lock);
    pthread_cond_destroy(&checkpoint->wake);
    pthread_cond_destroy(&checkpoint->writer_wake);
    *checkpoint = (struct checkpoint){0};
}

void checkpoint_await(struct checkpoint *checkpoint)
{
    if (!checkpoint->has_thread)
        return;
    pthread_mutex_lock(&checkpoint->lock);
    while (checkpoint->is_due || checkpoint->is_running)
        pthread_cond_wait(&checkpoint->writer_wake, &checkpoint->lock);
    pthread_mutex_unlock(&checkpoint->lock);
}

void checkpoint_ask(struct checkpoint *checkpoint)
{
    if (!checkpoint->has_thread)
        return;
    pthread_mutex_lock(&checkpoint->lock);
    checkpoint->is_due = true;
    pthread_cond_signal(&checkpoint->wake);
    pthread_mutex_unlock(&checkpoint->lock);
}

void checkpoint_note(struct checkpoint *checkpoint, int pages)
{
    assert(pages >= 0 && checkpoint->has_thread);
    pthread_mutex_lock(&checkpoint->lock);
    checkpoint->noted = pages;
    if (pages >= checkpoint->limits.due)
        checkpoint->is_due = true;
    if (checkpoint->is_due || checkpoint->is_idle)
        pthread_cond_signal(&checkpoint->wake);
    checkpoint->is_writer_held = checkpoint->wants_writer && checkpoint->is_due;
    while (checkpoint->is_writer_held)
        pthread_cond_wait(&checkpoint->writer_wake, &checkpoint->lock);
    pthread_mutex_unlock(&checkpoint->lock);
}
