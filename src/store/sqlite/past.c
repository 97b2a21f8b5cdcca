/* past.c — see past.h. */
#include "store/sqlite/past.h"
#include "base/err.h"
#include "store/sqlite/marker.h"
#include "sys/log.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* What stands in a database before anything is written to it. */
struct past {
    bool is_empty, is_backup, has_epochs;
    uint64_t commits, events;
    uint32_t last_job;
    uint64_t last_attempt;
};

static int number_read(sqlite3 *db, const char *text, int64_t *value, struct err *err)
{
    *value = 0;
    return sqlite_number(db, text, value, err);
}

static int counter_read(sqlite3 *db, const char *name, uint64_t *value, struct err *err)
{
    char text[80];
    const int length =
        snprintf(text, sizeof text, "SELECT value FROM counters WHERE name = '%s'", name);
    assert(length > 0 && (size_t)length < sizeof text);
    (void)length;
    int64_t number;
    int code = number_read(db, text, &number, err);
    *value = (uint64_t)number;
    return code;
}

static int table_find(sqlite3 *db, const char *name, bool *is_there, struct err *err)
{
    char text[96];
    const int length =
        snprintf(text, sizeof text, "SELECT count(*) FROM sqlite_schema WHERE name = '%s'", name);
    assert(length > 0 && (size_t)length < sizeof text);
    (void)length;
    int64_t count;
    int code = number_read(db, text, &count, err);
    *is_there = count > 0;
    return code;
}

static int past_read(sqlite3 *db, struct past *past, struct err *err)
{
    uint64_t last_job = 0;
    bool has_counters;
    int code = table_find(db, "counters", &has_counters, err);
    *past = (struct past){.is_empty = !has_counters};
    if (code < 0 || past->is_empty)
        return code;
    code = counter_read(db, "commit", &past->commits, err);
    if (code == 0)
        code = counter_read(db, "event", &past->events, err);
    if (code == 0)
        code = counter_read(db, "job", &last_job, err);
    if (code == 0)
        code = counter_read(db, "attempt", &past->last_attempt, err);
    if (code == 0)
        code = table_find(db, "epochs", &past->has_epochs, err);
    if (code == 0)
        code = table_find(db, "backup", &past->is_backup, err);
    past->last_job = (uint32_t)last_job;
    return code;
}

/* Whether the database descends from the one that was marked. */
static int epoch_is_known(sqlite3 *db, const struct past *past, uint64_t id, bool *is_known,
                          struct err *err)
{
    assert(!past->is_empty);
    int64_t count = 0;
    int code = 0;
    char text[96];
    snprintf(text, sizeof text, "SELECT count(*) FROM epochs WHERE id = %" PRId64, (int64_t)id);
    if (past->has_epochs)
        code = number_read(db, text, &count, err);
    *is_known = count > 0;
    return code;
}

/* What is wrong with the database beside such a mark; 0: nothing. */
static int past_check(const struct sqlite_place *place, const struct past *past,
                      const struct mark *mark, struct err *err)
{
    assert(place->directory && place->db);
    if (past->is_empty && mark->commits > 0)
        return err_fail(err, ERR_CORRUPT, "",
                        "the database is gone from %.80s, and %" PRIu64 " commits (%" PRIu64
                        " events) with it; --accept-loss begins without them",
                        place->directory, mark->commits, mark->events);
    if (past->is_empty)
        return 0;
    bool is_known;
    int code = epoch_is_known(place->db, past, mark->epoch, &is_known, err);
    if (code < 0)
        return code;
    if (!is_known)
        return err_fail(err, ERR_CORRUPT, "",
                        "the database in %.80s is not the one that was there, as its file mark "
                        "says; --accept-loss goes on with it",
                        place->directory);
    if (mark->commits > past->commits)
        return err_fail(err, ERR_CORRUPT, "",
                        "the database in %.80s lacks its last %" PRIu64 " commits (%" PRIu64
                        " events): its log is damaged, or it is an older copy; --accept-loss goes "
                        "on without them",
                        place->directory, mark->commits - past->commits,
                        mark->events > past->events ? mark->events - past->events : 0);
    return 0;
}

/* One that --restore has put here holds no key any more. */
static int backup_check_place(const struct sqlite_place *place, struct err *err)
{
    int64_t rows;
    int code = number_read(place->db, "SELECT count(*) FROM backup", &rows, err);
    if (code == 0 && rows > 0)
        return err_fail(err, ERR_CORRUPT, "",
                        "%s is a backup that was copied here; skepd --restore puts one in place",
                        place->path);
    return code;
}

int past_judge(const struct sqlite_place *place, struct marker *marker, bool accepts_loss,
               struct db_opening *opening, struct err *err)
{
    assert(place->db && place->directory && place->path);
    struct past past;
    struct mark mark = {0};
    struct err wrong = {0};
    int has_mark, code = past_read(place->db, &past, err);
    *opening = (struct db_opening){0};
    if (code < 0)
        return code;
    has_mark = marker_read(marker, &mark, &wrong);
    if (has_mark == ERR_IO)
        return err_fail(err, ERR_IO, "", "%s", wrong.text);
    opening->known = (struct db_progress){
        mark.epoch, mark.commits, mark.events, {mark.last_job}, {mark.last_attempt}};
    if (has_mark > 0)
        code = past_check(place, &past, &mark, &wrong);
    else
        code = has_mark;
    if (past.is_backup && (code = backup_check_place(place, err)) < 0)
        return code;
    if (past.is_backup) { /* somebody wants exactly this one */
        opening->new_epoch = "a backup was restored";
        return 0;
    }
    if (code < 0 && (code != ERR_CORRUPT || !accepts_loss))
        return err_fail(err, code, "", "%s", wrong.text);
    if (code < 0) {
        log_warning("store", "%s", wrong.text);
        opening->new_epoch = "a loss was accepted";
    } else if (has_mark == 0 && past.has_epochs) {
        opening->new_epoch = "the database was copied to where it had not been";
    }
    return 0;
}
