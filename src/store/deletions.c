/* deletions.c — what deleted jobs leave in the store goes in pieces, each within one transaction.
 *
 * A job is deleted when its row in `jobs` is: nobody finds it any more. The rows of its attempts,
 * its tasks and its story may be many thousand; the job's number in `deleted_jobs` says that some
 * may be left, to those who read such rows without asking for their job, and to the next start. The
 * number goes with the last of them. The states stand in docs/rfc/0016-gangs-in-steps.md.
 *
 * One row that cannot be deleted must not hold up what others have left: a job of which a piece is
 * refused is passed over until nothing else is left to do. Which one of several jobs it is shows
 * when each has a piece of its own.
 */
#include "base/err.h"
#include "store/noun.h"
#include "sys/log.h"
#include <assert.h>

enum {
    PIECE_ROOM = 250,   /* what the rows of a piece weigh together, at most: some 3 us each */
    JOBS_AT_ONCE = 4,   /* that are looked at by one question */
    JOB_WEIGHT = 18,    /* with the statements that are run for it */
    ATTEMPT_WEIGHT = 6, /* with up to 5 KiB of its end, in pages of their own */
    KEYS_MAX = 4
};

/* Rows of a job, by the order of their keys. */
static const struct left_kind {
    const char *select_key; /* of the row behind ?2 others of the job ?1 */
    int keys;
    const char *deletes[2]; /* of the job ?1 up to this key */
    uint64_t weight;        /* of one row */
} kinds[] = {
#define UP_TO "(job_attempt, role, task_index, attempt) <= (?2, ?3, ?4, ?5)"
    /* ends before the attempts that name them */
    {"SELECT job_attempt, role, task_index, attempt FROM task_attempts WHERE job = ?1 "
     "ORDER BY job_attempt, role, task_index, attempt LIMIT 1 OFFSET ?2",
     4,
     {"DELETE FROM attempt_ends WHERE attempt IN (SELECT attempt FROM task_attempts WHERE job = ?1 "
      "AND " UP_TO ")",
      "DELETE FROM task_attempts WHERE job = ?1 AND " UP_TO},
     ATTEMPT_WEIGHT},
#undef UP_TO
#define UP_TO "(role, task_index) <= (?2, ?3)"
    {"SELECT role, task_index FROM tasks WHERE job = ?1 "
     "ORDER BY role, task_index LIMIT 1 OFFSET ?2",
     2,
     {"DELETE FROM attempt_ends WHERE attempt IN (SELECT attempt FROM tasks WHERE job = ?1 "
      "AND " UP_TO ")",
      "DELETE FROM tasks WHERE job = ?1 AND " UP_TO},
     1},
#undef UP_TO
    {"SELECT attempt FROM job_attempts WHERE job = ?1 ORDER BY attempt LIMIT 1 OFFSET ?2",
     1,
     {"DELETE FROM job_attempts WHERE job = ?1 AND attempt <= ?2"},
     1},
    {"SELECT sequence FROM stories WHERE job = ?1 ORDER BY sequence LIMIT 1 OFFSET ?2",
     1,
     {"DELETE FROM stories WHERE job = ?1 AND sequence <= ?2"},
     1},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Counted up to ?1. */
#define LEFT_IN(table)                                                                             \
    "(SELECT count(*) FROM (SELECT 1 FROM " table                                                  \
    " WHERE job = deleted_jobs.job LIMIT ?1) AS some_rows)"
static const char select_left[] =
    "SELECT job, " LEFT_IN("task_attempts") ", " LEFT_IN("tasks") ", " LEFT_IN(
        "job_attempts") ", " LEFT_IN("stories") " FROM deleted_jobs WHERE job IN (?2, ?3, ?4, ?5) "
                                                "ORDER BY job";
static const char select_after[] =
    "SELECT job FROM deleted_jobs WHERE job > ? ORDER BY job LIMIT ?";
static const char insert[] = "INSERT INTO deleted_jobs (job) VALUES (?) ON CONFLICT DO NOTHING";
static const char delete[] = "DELETE FROM deleted_jobs WHERE job = ?";
static const char count_all[] = "SELECT count(*) FROM deleted_jobs";

struct left {
    struct job_id job;
    uint64_t rows[KINDS];
};

int deletion_add(struct store *store, struct job_id job, struct err *err)
{
    struct sql sql = sql_of(&store->session, insert);
    assert(job.v != 0);
    sql_put_int(&sql, job.v);
    return sql_run(&sql, NULL, err);
}

int deletions_count(struct store *store, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_all);
    int64_t count;
    const int code = sql_number(&sql, &count, err);
    if (code == 0)
        store->deletions_written = (uint64_t)count;
    return code;
}

/* --- jobs of which a piece was refused --- */

static bool is_refused(const struct pieces *pieces, struct job_id job)
{
    return id_map_get(&pieces->refused_at, job.v) != MAP_NONE;
}

static void refused_clear(struct store *store)
{
    id_map_release(&store->pieces.refused_at);
    store->pieces.refused.count = 0;
    atomic_store(&store->deletions_refused, 0);
}

void pieces_release(struct pieces *pieces)
{
    id_map_release(&pieces->refused_at);
    ARRAY_FREE(&pieces->refused);
}

/* Behind all others: those that were refused before are tried again first. */
static void refused_add(struct store *store, struct job_id job, const struct err *err)
{
    struct pieces *pieces = &store->pieces;
    size_t kept = 0;
    if (!is_refused(pieces, job))
        log_warning("store", "what job %u has left cannot be deleted, and stays for now: %s", job.v,
                    err->text);
    for (size_t i = 0; i < pieces->refused.count; i++)
        if (pieces->refused.items[i].v != job.v)
            pieces->refused.items[kept++] = pieces->refused.items[i];
    pieces->refused.count = kept;
    *ARRAY_ADD(&pieces->refused) = job;
    id_map_set(&pieces->refused_at, job.v, 1);
    atomic_store(&store->deletions_refused, pieces->refused.count);
}

void deletions_failed(struct store *store, int code, const struct err *err)
{
    struct pieces *pieces = &store->pieces;
    if (pieces->job_count == 0 || store_refusal_passes(code))
        return;
    if (pieces->job_count == 1)
        refused_add(store, pieces->first, err);
    pieces->is_alone = pieces->job_count > 1;
}

bool deletions_leave(struct store *store, int code)
{
    if (code >= 0 || store_refusal_passes(code) || !store->pieces.is_beside)
        return false;
    store->pieces.is_put_off = true;
    return true;
}

void deletions_publish(struct store *store)
{
    struct pieces *pieces = &store->pieces;
    atomic_store(&store->deletions, store->deletions_written);
    if (pieces->job_count > 0 && is_refused(pieces, pieces->first))
        refused_clear(store); /* what hindered one of them may have hindered all */
    if (store_deletions_waiting(store) == 0)
        pieces->is_alone = false;
}

int deletions_load(struct store *store, struct err *err)
{
    const int code = deletions_count(store, err);
    if (code < 0)
        return code;
    refused_clear(store);
    store->pieces.job_count = 0;
    deletions_publish(store);
    return 0;
}

uint64_t store_deletions(const struct store *store)
{
    return atomic_load(&store->deletions);
}

uint64_t store_deletions_refused(const struct store *store)
{
    return atomic_load(&store->deletions_refused);
}

uint64_t store_deletions_waiting(const struct store *store)
{
    const uint64_t all = store_deletions(store), refused = store_deletions_refused(store);
    return all > refused ? all - refused : 0;
}

/* --- a piece --- */

static int left_read(struct store *store, const struct job_id *jobs, size_t count,
                     struct left left[JOBS_AT_ONCE], size_t *found, struct err *err)
{
    struct sql sql = sql_of(&store->session, select_left);
    int code;
    assert(count <= JOBS_AT_ONCE);
    *found = 0;
    sql_put_int(&sql, PIECE_ROOM);
    for (size_t i = 0; i < JOBS_AT_ONCE; i++)
        sql_put_int(&sql, i < count ? jobs[i].v : 0);
    while ((code = sql_next(&sql, err)) > 0) {
        assert(*found < JOBS_AT_ONCE);
        left[*found].job.v = (uint32_t)sql_int(&sql);
        for (size_t k = 0; k < KINDS; k++)
            left[*found].rows[k] = (uint64_t)sql_int(&sql);
        (*found)++;
    }
    return code;
}

/* The first `rows` of this kind, of which there are as many. */
static int rows_delete(struct store *store, const struct left_kind *kind, struct job_id job,
                       uint64_t rows, struct err *err)
{
    struct sql sql = sql_of(&store->session, kind->select_key);
    int64_t keys[KEYS_MAX] = {0};
    assert(rows > 0 && kind->keys <= KEYS_MAX);
    sql_put_int(&sql, job.v);
    sql_put_int(&sql, (int64_t)rows - 1);
    int code = sql_next(&sql, err);
    if (code <= 0)
        return code;
    for (int i = 0; i < kind->keys; i++)
        keys[i] = sql_int(&sql);
    sql_done(&sql);
    code = 0;
    for (size_t d = 0; code == 0 && d < COUNT_OF(kind->deletes) && kind->deletes[d]; d++) {
        sql = sql_of(&store->session, kind->deletes[d]);
        sql_put_int(&sql, job.v);
        for (int i = 0; i < kind->keys; i++)
            sql_put_int(&sql, keys[i]);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

/* What there is room for. */
static int job_delete_some(struct store *store, const struct left *left, uint64_t room,
                           struct err *err)
{
    int code = 0;
    for (size_t k = 0; code == 0 && k < KINDS; k++) {
        const uint64_t fitting = room / kinds[k].weight;
        const uint64_t rows = left->rows[k] < fitting ? left->rows[k] : fitting;
        if (rows > 0)
            code = rows_delete(store, &kinds[k], left->job, rows, err);
        if (rows < left->rows[k])
            break;
        room -= rows * kinds[k].weight;
    }
    return code;
}

/* In this order: attempt_ends_purge needs the rows of the attempts. */
static int job_delete_rest(struct store *store, struct job_id job, struct err *err)
{
    static int (*const purges[])(struct store *, struct job_id, struct err *) = {
        attempt_ends_purge, tasks_purge, job_attempts_purge,  stories_purge,
        barriers_purge,     tags_purge,  job_submission_purge};
    int code = 0;
    for (size_t i = 0; code == 0 && i < COUNT_OF(purges); i++)
        code = purges[i](store, job, err);
    return code < 0 ? code : purge(store, delete, job, err);
}

static uint64_t weight_of(const struct left *left)
{
    uint64_t weight = JOB_WEIGHT;
    for (size_t k = 0; k < KINDS; k++)
        weight += left->rows[k] * kinds[k].weight;
    return weight;
}

/* Of these jobs, what there is room for. */
static int jobs_delete(struct store *store, const struct job_id *jobs, size_t count, uint64_t *room,
                       struct err *err)
{
    struct left left[JOBS_AT_ONCE];
    size_t found;
    int code = left_read(store, jobs, count, left, &found, err);
    for (size_t i = 0; code == 0 && *room > 0 && i < found; i++) {
        const uint64_t weight = weight_of(&left[i]);
        code = weight <= *room ? job_delete_rest(store, left[i].job, err)
                               : job_delete_some(store, &left[i], *room, err);
        *room -= weight <= *room ? weight : *room;
    }
    return code;
}

int deletions_of(struct store *store, const struct job_id *jobs, size_t count, struct err *err)
{
    uint64_t room = PIECE_ROOM;
    int code = 0;
    if (store->pieces.is_put_off)
        return deletions_count(store, err);
    store->pieces.is_beside = true;
    for (size_t i = 0; code == 0 && room > 0 && i < count; i += JOBS_AT_ONCE) {
        const size_t some = count - i < JOBS_AT_ONCE ? count - i : JOBS_AT_ONCE;
        code = jobs_delete(store, jobs + i, some, &room, err);
    }
    if (code == 0)
        code = deletions_count(store, err);
    store->pieces.is_beside = code < 0;
    return code;
}

/* The first ones behind `after` of which no piece was refused. */
static int waiting_read(struct store *store, struct job_id after, size_t most,
                        struct job_id jobs[JOBS_AT_ONCE], size_t *count, struct err *err)
{
    const struct pieces *pieces = &store->pieces;
    struct sql sql = sql_of(&store->session, select_after);
    int code = 0;
    *count = 0;
    sql_put_int(&sql, after.v);
    sql_put_int(&sql, (int64_t)(most + pieces->refused.count));
    while (*count < most && (code = sql_next(&sql, err)) > 0) {
        const struct job_id job = {(uint32_t)sql_int(&sql)};
        if (!is_refused(pieces, job))
            jobs[(*count)++] = job;
    }
    if (code > 0)
        sql_done(&sql);
    return code < 0 ? code : 0;
}

int deletions_go_on(struct store *store, struct err *err)
{
    struct pieces *pieces = &store->pieces;
    const size_t most = pieces->is_alone ? 1 : JOBS_AT_ONCE;
    struct job_id jobs[JOBS_AT_ONCE] = {{0}}, after = {0};
    uint64_t room = PIECE_ROOM;
    size_t count;
    int code;
    do {
        code = waiting_read(store, after, most, jobs, &count, err);
        if (code == 0 && count == 0 && pieces->job_count == 0 && pieces->refused.count > 0)
            jobs[count++] = pieces->refused.items[0];
        if (pieces->job_count == 0)
            pieces->first = jobs[0];
        pieces->job_count += count;
        if (code == 0 && count > 0) {
            after = jobs[count - 1];
            code = jobs_delete(store, jobs, count, &room, err);
        }
    } while (code == 0 && room > 0 && count == JOBS_AT_ONCE);
    return code < 0 ? code : deletions_count(store, err);
}
