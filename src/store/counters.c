/* counters.c — the last numbers of jobs and attempts, also of what has been deleted; commits and
 * events, in all.
 */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

static const char replace[] = "INSERT INTO counters (name, value) VALUES (?,?) "
                              "ON CONFLICT (name) DO UPDATE SET value = excluded.value";
static const char select_one[] = "SELECT value FROM counters WHERE name = ?";

static int counter_write(struct store *store, const char *name, uint64_t value, struct err *err)
{
    struct sql sql = sql_of(&store->session, replace);
    assert(name && *name);
    sql_put_string(&sql, name);
    sql_put_int(&sql, (int64_t)value);
    return sql_run(&sql, NULL, err);
}

int counters_write_numbers(struct store *store, uint32_t last_job, uint64_t last_attempt,
                           struct err *err)
{
    int code = counter_write(store, "job", last_job, err);
    return code < 0 ? code : counter_write(store, "attempt", last_attempt, err);
}

int counters_write_progress(struct store *store, size_t event_count, struct err *err)
{
    int code = counter_write(store, "commit", store->stored_commits + 1, err);
    if (code < 0 || event_count == 0)
        return code;
    return counter_write(store, "event", store->stored_events + event_count, err);
}

/* 0 when there is no such counter. */
static int counter_read(struct session *session, const char *name, int64_t *value, struct err *err)
{
    struct sql sql = sql_of(session, select_one);
    assert(name && *name);
    sql_put_string(&sql, name);
    return sql_number(&sql, value, err);
}

int counters_load(struct store *store, struct err *err)
{
    int64_t last_job = 0, last_attempt = 0, commits = 0, events = 0;
    int code = counter_read(&store->session, "job", &last_job, err);
    if (code == 0)
        code = counter_read(&store->session, "attempt", &last_attempt, err);
    if (code == 0)
        code = counter_read(&store->session, "commit", &commits, err);
    if (code == 0)
        code = counter_read(&store->session, "event", &events, err);
    if (code < 0)
        return code;
    if (last_job < (int64_t)store->last_job)
        return err_fail(err, ERR_CORRUPT, "", "%s: job %u is younger than the counter %lld",
                        store->database->name, store->last_job, (long long)last_job);
    store->last_job = (uint32_t)last_job;
    store->last_attempt = (uint64_t)last_attempt;
    store->stored_commits = (uint64_t)commits;
    store->stored_events = (uint64_t)events;
    return 0;
}

int counters_read_commits(struct store *store, uint64_t *commits, struct err *err)
{
    int64_t count = 0;
    int code = counter_read(&store->session, "commit", &count, err);
    *commits = (uint64_t)count;
    return code;
}

int store_restore_counters(struct store_reader *reader, struct job_id *last_job,
                           struct attempt_id *last_attempt, struct err *err)
{
    int64_t job = 0, attempt = 0;
    assert(reader->session.db);
    int code = counter_read(&reader->session, "job", &job, err);
    if (code == 0)
        code = counter_read(&reader->session, "attempt", &attempt, err);
    *last_job = (struct job_id){(uint32_t)job};
    *last_attempt = (struct attempt_id){(uint64_t)attempt};
    return code;
}
