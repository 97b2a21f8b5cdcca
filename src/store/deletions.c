/* deletions.c — what deleted jobs leave in the store goes in pieces, each within one transaction.
 *
 * A job is deleted when its row in `jobs` is: nobody finds it any more. The rows of its attempts,
 * its tasks and its story may be many thousand; the job's number in `deleted_jobs` says that some
 * may be left, to those who read such rows without asking for their job, and to the next start. The
 * number goes with the last of them. The states stand in docs/rfc/0016-gangs-in-steps.md.
 */
#include "base/err.h"
#include "store/noun.h"
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
static const char select_first[] = "SELECT job, " LEFT_IN("task_attempts") ", " LEFT_IN(
    "tasks") ", " LEFT_IN("job_attempts") ", " LEFT_IN("stories") " FROM deleted_jobs ORDER BY job "
                                                                  "LIMIT ?2";
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

void deletions_publish(struct store *store)
{
    atomic_store(&store->deletions, store->deletions_written);
}

int deletions_load(struct store *store, struct err *err)
{
    const int code = deletions_count(store, err);
    if (code == 0)
        deletions_publish(store);
    return code;
}

uint64_t store_deletions(const struct store *store)
{
    return atomic_load(&store->deletions);
}

static int left_read(struct store *store, struct left left[JOBS_AT_ONCE], size_t *count,
                     struct err *err)
{
    struct sql sql = sql_of(&store->session, select_first);
    int code;
    *count = 0;
    sql_put_int(&sql, PIECE_ROOM);
    sql_put_int(&sql, JOBS_AT_ONCE);
    while ((code = sql_next(&sql, err)) > 0) {
        assert(*count < JOBS_AT_ONCE);
        left[*count].job.v = (uint32_t)sql_int(&sql);
        for (size_t k = 0; k < KINDS; k++)
            left[*count].rows[k] = (uint64_t)sql_int(&sql);
        (*count)++;
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

int deletions_go_on(struct store *store, struct err *err)
{
    struct left left[JOBS_AT_ONCE];
    uint64_t room = PIECE_ROOM;
    size_t count = JOBS_AT_ONCE;
    int code = 0;
    while (code == 0 && room > 0 && count == JOBS_AT_ONCE) {
        code = left_read(store, left, &count, err);
        for (size_t i = 0; code == 0 && room > 0 && i < count; i++) {
            const uint64_t weight = weight_of(&left[i]);
            code = weight <= room ? job_delete_rest(store, left[i].job, err)
                                  : job_delete_some(store, &left[i], room, err);
            room -= weight <= room ? weight : room;
        }
    }
    return code < 0 ? code : deletions_count(store, err);
}
