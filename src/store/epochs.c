/* epochs.c — each restore of a copy begins an epoch: numbers go on beyond all that were given. */
#include "base/err.h"
#include "store/noun.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

/* An epoch's numbers begin after the next multiple. */
enum { EPOCH_JOBS = 1000000, EPOCH_ATTEMPTS = 1000000000 };

static const char insert[] =
    "INSERT INTO epochs (number, id, first_job, first_attempt, began_ms, reason) "
    "VALUES (?,?,?,?,?,?)";
static const char select_all[] =
    "SELECT number, id, first_job, first_attempt FROM epochs ORDER BY number";

static int epochs_read(struct store *store, struct err *err)
{
    struct sql sql = sql_of(&store->session, select_all);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_epoch *epoch = ARRAY_ADD(&store->epochs);
        epoch->number = (uint32_t)sql_int(&sql);
        epoch->id = (uint64_t)sql_int(&sql);
        epoch->first_job.v = (uint32_t)sql_int(&sql);
        epoch->first_attempt.v = (uint64_t)sql_int(&sql);
    }
    return code;
}

static int epoch_write(struct store *store, const struct store_epoch *epoch, const char *reason,
                       struct err *err)
{
    struct sql sql = sql_of(&store->session, insert);
    assert(reason);
    sql_put_int(&sql, epoch->number);
    sql_put_int(&sql, (int64_t)epoch->id);
    sql_put_int(&sql, epoch->first_job.v);
    sql_put_int(&sql, (int64_t)epoch->first_attempt.v);
    sql_put_int(&sql, clock_unix_ms());
    sql_put_string(&sql, reason);
    return sql_run(&sql, NULL, err);
}

/* The row and the counters, in one transaction. A backup becomes a database like any other. */
static int epoch_transact(struct store *store, const struct store_epoch *epoch, const char *reason,
                          struct err *err)
{
    assert(epoch->first_job.v > 0 && epoch->first_attempt.v > 0);
    struct db *db = store->session.db;
    int code = db->ops->begin(db, true, err);
    if (code < 0)
        return code;
    code = epoch_write(store, epoch, reason, err);
    if (code == 0)
        code =
            counters_write_numbers(store, epoch->first_job.v - 1, epoch->first_attempt.v - 1, err);
    if (code == 0)
        code = db->ops->execute(db, "DROP TABLE IF EXISTS backup", err);
    if (code == 0)
        code = db->ops->commit(db, err);
    if (code < 0)
        db->ops->rollback(db);
    return code;
}

int store_epoch_begin(struct store *store, struct attempt_id beyond, const char *reason,
                      struct err *err)
{
    struct store_epoch epoch = {.first_job = {1}, .first_attempt = {1}};
    uint64_t jobs = store->last_job, attempts = store->last_attempt;
    if (getrandom(&epoch.id, sizeof epoch.id, 0) != sizeof epoch.id)
        return err_errno(err, errno, "getrandom");
    if (beyond.v > attempts)
        attempts = beyond.v;
    int code;
    if (store->epochs.count > 0) {
        epoch.number = store->epochs.items[store->epochs.count - 1].number + 1;
        jobs = (jobs / EPOCH_JOBS + 1) * EPOCH_JOBS;
        attempts = (attempts / EPOCH_ATTEMPTS + 1) * EPOCH_ATTEMPTS;
        if (jobs >= UINT32_MAX - EPOCH_JOBS)
            return err_fail(err, ERR_TOO_BIG, "", "there are no numbers left for another epoch");
        epoch.first_job.v = (uint32_t)jobs + 1;
        epoch.first_attempt.v = attempts + 1;
        assert(jobs > store->last_job && attempts > store->last_attempt);
        code = epoch_transact(store, &epoch, reason, err);
    } else { /* the first: numbers stay as they are, also those of a database that had no epochs */
        code = epoch_write(store, &epoch, reason, err);
    }
    if (code < 0)
        return code;
    pthread_mutex_lock(&store->epochs.lock);
    *ARRAY_ADD(&store->epochs) = epoch;
    pthread_mutex_unlock(&store->epochs.lock);
    if (epoch.number == 0)
        return 0;
    store->last_job = (uint32_t)jobs;
    store->last_attempt = attempts;
    log_warning("store", "epoch %u begins (%s): jobs are numbered from %u, tries from %" PRIu64,
                epoch.number, reason, epoch.first_job.v, epoch.first_attempt.v);
    struct db_progress progress = store_progress(store);
    store->database->ops->note(store->database, &progress);
    return 0;
}

int epochs_load(struct store *store, struct err *err)
{
    const struct db_opening *opening = &store->database->opening;
    int code = epochs_read(store, err);
    if (code == 0 && store->epochs.count == 0)
        code = store_epoch_begin(store, (struct attempt_id){0}, "the database was made", err);
    if (code == 0 && opening->new_epoch) {
        if (opening->known.last_job.v > store->last_job)
            store->last_job = opening->known.last_job.v;
        code = store_epoch_begin(store, opening->known.last_attempt, opening->new_epoch, err);
    }
    return code;
}

struct store_epoch store_epoch_of(struct store *store, struct job_id job)
{
    pthread_mutex_lock(&store->epochs.lock);
    size_t at = store->epochs.count - 1;
    while (store->epochs.items[at].first_job.v > job.v) {
        assert(at > 0);
        at--;
    }
    const struct store_epoch epoch = store->epochs.items[at];
    pthread_mutex_unlock(&store->epochs.lock);
    return epoch;
}

struct store_epoch store_epoch_last(struct store *store)
{
    pthread_mutex_lock(&store->epochs.lock);
    assert(store->epochs.count > 0);
    const struct store_epoch epoch = store->epochs.items[store->epochs.count - 1];
    pthread_mutex_unlock(&store->epochs.lock);
    return epoch;
}
