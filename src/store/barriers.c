/* barriers.c — which attempt of a job has passed what its tasks wait for together. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

static const char replace[] = "INSERT INTO barriers (job, kind, attempt) VALUES (?,?,?) "
                              "ON CONFLICT (job, kind) DO UPDATE SET attempt = excluded.attempt";
static const char delete_job[] = "DELETE FROM barriers WHERE job = ?";
static const char select_one[] =
    "SELECT attempt FROM barriers WHERE job = ? AND kind = ? AND" IS_NOT_DELETED("job");

int barrier_pass(struct store *store, const struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, replace);
    assert(change->kind == CHANGE_BARRIER);
    sql_put_int(&sql, change->barrier.job.v);
    sql_put_int(&sql, change->barrier.kind);
    sql_put_int(&sql, change->barrier.attempt);
    return sql_run(&sql, NULL, err);
}

int barriers_purge(struct store *store, struct job_id job, struct err *err)
{
    return purge(store, delete_job, job, err);
}

int store_barrier_passed(struct store_reader *reader, struct job_id job, enum barrier_kind kind,
                         int64_t *attempt, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    assert(reader->session.db);
    *attempt = -1;
    sql_put_int(&sql, job.v);
    sql_put_int(&sql, kind);
    int code = sql_next(&sql, err);
    if (code > 0) {
        *attempt = sql_int(&sql);
        sql_done(&sql);
    }
    return code < 0 ? code : 0;
}
