/* epoch.c — see epoch.h. */
#include "store/epoch.h"
#include "base/err.h"
#include "store/store_internal.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* An epoch's numbers begin after the next multiple. */
enum { EPOCH_JOBS = 1000000, EPOCH_ATTEMPTS = 1000000000 };

static int number_read(struct store *store, const char *text, int64_t *value, struct err *err)
{
    *value = 0;
    return store_pragma(store->db, text, value, err);
}

static int counter_read(struct store *store, const char *name, uint64_t *value, struct err *err)
{
    char text[80];
    int64_t number;
    int code;

    snprintf(text, sizeof text, "SELECT value FROM counters WHERE name = '%s'", name);
    code = number_read(store, text, &number, err);
    *value = (uint64_t)number;
    return code;
}

static int table_find(struct store *store, const char *name, bool *is_there, struct err *err)
{
    char text[96];
    int64_t count;
    int code;

    snprintf(text, sizeof text, "SELECT count(*) FROM sqlite_schema WHERE name = '%s'", name);
    code = number_read(store, text, &count, err);
    *is_there = count > 0;
    return code;
}

static int past_read(struct store *store, struct past *past, struct err *err)
{
    uint64_t last_job = 0;
    bool has_counters;
    int code = table_find(store, "counters", &has_counters, err);

    *past = (struct past){.is_empty = !has_counters};
    if (code < 0 || past->is_empty)
        return code;
    code = counter_read(store, "commit", &past->commits, err);
    if (code == 0)
        code = counter_read(store, "event", &past->events, err);
    if (code == 0)
        code = counter_read(store, "job", &last_job, err);
    if (code == 0)
        code = counter_read(store, "attempt", &past->last_attempt, err);
    if (code == 0)
        code = table_find(store, "epochs", &past->has_epochs, err);
    if (code == 0)
        code = table_find(store, "backup", &past->is_backup, err);
    past->last_job = (uint32_t)last_job;
    return code;
}

/* Whether the database descends from the one that was marked. */
static int epoch_is_known(struct store *store, const struct past *past, uint64_t id, bool *is_known,
                          struct err *err)
{
    char text[96];
    int64_t count = 0;
    int code = 0;

    snprintf(text, sizeof text, "SELECT count(*) FROM epochs WHERE id = %" PRId64, (int64_t)id);
    if (past->has_epochs)
        code = number_read(store, text, &count, err);
    *is_known = count > 0;
    return code;
}

/* What is wrong with the database beside such a mark; 0: nothing. */
static int past_check(struct store *store, const struct past *past, const struct mark *mark,
                      struct err *err)
{
    bool is_known;
    int code;

    if (past->is_empty && mark->commits > 0)
        return err_fail(err, ERR_CORRUPT, "",
                        "the database is gone from %.80s, and %" PRIu64 " commits (%" PRIu64
                        " events) with it; --accept-loss begins without them",
                        store->directory, mark->commits, mark->events);
    if (past->is_empty)
        return 0;
    code = epoch_is_known(store, past, mark->epoch, &is_known, err);
    if (code < 0)
        return code;
    if (!is_known)
        return err_fail(err, ERR_CORRUPT, "",
                        "the database in %.80s is not the one that was there, as its file mark "
                        "says; --accept-loss goes on with it",
                        store->directory);
    if (mark->commits > past->commits)
        return err_fail(err, ERR_CORRUPT, "",
                        "the database in %.80s lacks its last %" PRIu64 " commits (%" PRIu64
                        " events): its log is damaged, or it is an older copy; --accept-loss goes "
                        "on without them",
                        store->directory, mark->commits - past->commits,
                        mark->events > past->events ? mark->events - past->events : 0);
    return 0;
}

/* One that --restore has put here holds no key any more. */
static int backup_check_place(struct store *store, struct err *err)
{
    int64_t rows;
    int code = number_read(store, "SELECT count(*) FROM backup", &rows, err);

    if (code == 0 && rows > 0)
        return err_fail(err, ERR_CORRUPT, "",
                        "%s is a backup that was copied here; skepd --restore puts one in place",
                        store->path);
    return code;
}

int epoch_judge(struct store *store, bool accepts_loss, struct judgement *judgement,
                struct err *err)
{
    struct past past;
    struct err wrong = {0};
    int has_mark, code = past_read(store, &past, err);

    *judgement = (struct judgement){0};
    if (code < 0)
        return code;
    has_mark = marker_read(&store->marker, &judgement->mark, &wrong);
    if (has_mark == ERR_IO)
        return err_fail(err, ERR_IO, "", "%s", wrong.text);
    if (has_mark > 0)
        code = past_check(store, &past, &judgement->mark, &wrong);
    else
        code = has_mark;
    if (past.is_backup && (code = backup_check_place(store, err)) < 0)
        return code;
    if (past.is_backup) { /* somebody wants exactly this one */
        judgement->new_epoch = "a backup was restored";
        return 0;
    }
    if (code < 0 && (code != ERR_CORRUPT || !accepts_loss))
        return err_fail(err, code, "", "%s", wrong.text);
    if (code < 0) {
        log_warning("store", "%s", wrong.text);
        judgement->new_epoch = "a loss was accepted";
    } else if (has_mark == 0 && past.has_epochs) {
        judgement->new_epoch = "the database was copied to where it had not been";
    }
    return 0;
}

static int epochs_load(struct store *store, struct err *err)
{
    sqlite3_stmt *stmt;
    struct sql sql;
    int code = sql_prepare(store->db,
                           "SELECT number, id, first_job, first_attempt FROM epochs "
                           "ORDER BY number",
                           &stmt, err);

    if (code < 0)
        return code;
    sql = sql_of(stmt);
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_epoch *epoch = ARRAY_ADD(&store->epochs);
        epoch->number = (uint32_t)sql_int(&sql);
        epoch->id = (uint64_t)sql_int(&sql);
        epoch->first_job.v = (uint32_t)sql_int(&sql);
        epoch->first_attempt.v = (uint64_t)sql_int(&sql);
    }
    sqlite3_finalize(stmt);
    return code;
}

static int epoch_write(struct store *store, const struct store_epoch *epoch, const char *reason,
                       struct err *err)
{
    sqlite3_stmt *stmt;
    struct sql sql;
    struct timespec now;
    int code = sql_prepare(store->db, "INSERT INTO epochs VALUES (?,?,?,?,?,?)", &stmt, err);

    if (code < 0)
        return code;
    clock_gettime(CLOCK_REALTIME, &now);
    sql = sql_of(stmt);
    sql_put_int(&sql, epoch->number);
    sql_put_int(&sql, (int64_t)epoch->id);
    sql_put_int(&sql, epoch->first_job.v);
    sql_put_int(&sql, (int64_t)epoch->first_attempt.v);
    sql_put_int(&sql, (int64_t)now.tv_sec * 1000);
    sql_put_string(&sql, reason);
    code = sql_run(&sql, NULL, err);
    sqlite3_finalize(stmt);
    return code;
}

/* The row and the counters, in one transaction. A backup becomes a database like any other. */
static int epoch_transact(struct store *store, const struct store_epoch *epoch, const char *reason,
                          struct err *err)
{
    int code = store_run(store, WRITE_BEGIN, err);

    if (code < 0)
        return code;
    code = epoch_write(store, epoch, reason, err);
    if (code == 0)
        code = store_write_counters(store, epoch->first_job.v - 1, epoch->first_attempt.v - 1, err);
    if (code == 0)
        code = sql_exec(store->db, "DROP TABLE IF EXISTS backup", err);
    if (code == 0)
        code = store_run(store, WRITE_COMMIT, err);
    if (code < 0 && !sqlite3_get_autocommit(store->db))
        store_run(store, WRITE_ROLLBACK, NULL);
    return code;
}

int store_epoch_begin(struct store *store, struct attempt_id beyond, const char *reason,
                      struct err *err)
{
    struct store_epoch epoch = {.first_job = {1}, .first_attempt = {1}};
    uint64_t jobs = store->last_job, attempts = store->last_attempt;
    int code;

    if (getrandom(&epoch.id, sizeof epoch.id, 0) != sizeof epoch.id)
        return err_errno(err, errno, "getrandom");
    if (beyond.v > attempts)
        attempts = beyond.v;
    if (store->epochs.count > 0) {
        epoch.number = store->epochs.items[store->epochs.count - 1].number + 1;
        jobs = (jobs / EPOCH_JOBS + 1) * EPOCH_JOBS;
        attempts = (attempts / EPOCH_ATTEMPTS + 1) * EPOCH_ATTEMPTS;
        if (jobs >= UINT32_MAX - EPOCH_JOBS)
            return err_fail(err, ERR_TOO_BIG, "", "there are no numbers left for another epoch");
        epoch.first_job.v = (uint32_t)jobs + 1;
        epoch.first_attempt.v = attempts + 1;
        code = epoch_transact(store, &epoch, reason, err);
    } else { /* the first: numbers stay as they are, also those of a database that had no epochs */
        code = epoch_write(store, &epoch, reason, err);
    }
    if (code < 0)
        return code;
    *ARRAY_ADD(&store->epochs) = epoch;
    if (epoch.number == 0)
        return 0;
    store->last_job = (uint32_t)jobs;
    store->last_attempt = attempts;
    log_warning("store", "epoch %u begins (%s): jobs are numbered from %u, tries from %" PRIu64,
                epoch.number, reason, epoch.first_job.v, epoch.first_attempt.v);
    epoch_mark(store);
    return 0;
}

int epoch_open(struct store *store, const struct judgement *judgement, struct err *err)
{
    const struct mark *mark = &judgement->mark;
    int code = epochs_load(store, err);

    if (code == 0 && store->epochs.count == 0)
        code = store_epoch_begin(store, (struct attempt_id){0}, "the database was made", err);
    if (code == 0 && judgement->new_epoch) {
        if (mark->last_job > store->last_job)
            store->last_job = mark->last_job;
        code = store_epoch_begin(store, (struct attempt_id){mark->last_attempt},
                                 judgement->new_epoch, err);
    }
    if (code < 0)
        return code;
    epoch_mark(store);
    return marker_sync(&store->marker, err);
}

struct store_epoch store_epoch_of(const struct store *store, struct job_id job)
{
    size_t at = store->epochs.count - 1;

    while (store->epochs.items[at].first_job.v > job.v) {
        assert(at > 0);
        at--;
    }
    return store->epochs.items[at];
}

struct store_epoch store_epoch_last(const struct store *store)
{
    assert(store->epochs.count > 0);
    return store->epochs.items[store->epochs.count - 1];
}

void epoch_mark(struct store *store)
{
    struct mark mark = {.epoch = store->epochs.items[store->epochs.count - 1].id,
                        .commits = store->stored_commits,
                        .events = store->stored_events,
                        .last_job = store->last_job,
                        .last_attempt = store->last_attempt};
    struct err err;

    if (marker_write(&store->marker, &mark, &err) == 0) {
        store->is_mark_failing = false;
    } else if (!store->is_mark_failing) {
        store->is_mark_failing = true;
        log_warning("store", "%s: a loss would not be noticed", err.text);
    }
}
