/* write.c — the core's records into the transaction, and then into the job index. */
#include "base/err.h"
#include "core/event.h"
#include "core/output.h"
#include "store/store_internal.h"
#include <assert.h>

/* Where the last record of each job and task stands: the ones before it need not be written. */
struct latest {
    struct id_map jobs, tasks;
};

static uint64_t task_key(const struct task_record *task)
{
    return (uint64_t)task->job.v << 32 | (uint64_t)task->task.role << 16 | task->task.index;
}

static void latest_find(struct latest *latest, const struct output *output)
{
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB)
            id_map_set(&latest->jobs, record->job.id.v, (uint32_t)i);
        else if (record->kind == RECORD_TASK)
            id_map_set(&latest->tasks, task_key(&record->task), (uint32_t)i);
    }
}

static int write_job_new(struct store *store, const struct job_record *first,
                         const struct job_record *last, struct err *err)
{
    const struct submission *submission = first->submission;
    struct sql sql = store_sql(store, WRITE_JOB_NEW);
    int code;

    row_put_job_fixed(&sql, first, submission->has_priority);
    row_put_job_state(&sql, last);
    code = sql_run(&sql, NULL, err);
    if (code < 0)
        return code;
    sql = store_sql(store, WRITE_JOB_PLAN);
    sql_put_int(&sql, first->id.v);
    sql_put_blob(&sql, submission->plan_bytes);
    code = sql_run(&sql, NULL, err);
    if (code < 0)
        return code;
    sql = store_sql(store, WRITE_JOB_SOURCE);
    sql_put_int(&sql, first->id.v);
    sql_put_int(&sql, submission->format);
    sql_put_blob(&sql, submission->spec_bytes);
    sql_put_text(&sql, submission->source);
    sql_put_blob(&sql, submission->sealed);
    return sql_run(&sql, NULL, err);
}

static int write_job_state(struct store *store, const struct job_record *job, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_JOB);
    int changed = 0, code;

    row_put_job_state(&sql, job);
    sql_put_int(&sql, job->id.v);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed != 1)
        return err_fail(err, ERR_INTERNAL, "", "job %u is changed but was never stored", job->id.v);
    return code;
}

static int write_job(struct store *store, const struct output *output, size_t index,
                     const struct latest *latest, struct err *err)
{
    const struct job_record *job = &output->records.items[index].job;
    uint32_t last = id_map_get(&latest->jobs, job->id.v);
    int code = 0;

    assert(last != MAP_NONE && last >= index);
    if (job->id.v > store->last_job)
        store->last_job = job->id.v;
    if (job->submission)
        code = write_job_new(store, job, &output->records.items[last].job, err);
    else if (last == index)
        code = write_job_state(store, job, err);
    if (code == 0 && job->state >= LIFE_ATTEMPT_COMPLETED) {
        struct sql sql = store_sql(store, WRITE_JOB_ATTEMPT);
        row_put_job_attempt(&sql, job);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

static int write_task(struct store *store, const struct task_record *task, bool is_last,
                      struct err *err)
{
    int code = 0;

    if (task->attempt.v > store->last_attempt)
        store->last_attempt = task->attempt.v;
    if (is_last && task->is_removed) {
        struct sql sql = store_sql(store, WRITE_TASK_REMOVE);
        sql_put_int(&sql, task->job.v);
        sql_put_int(&sql, task->task.role);
        sql_put_int(&sql, task->task.index);
        code = sql_run(&sql, NULL, err);
    } else if (is_last) {
        struct sql sql = store_sql(store, WRITE_TASK);
        row_put_task(&sql, task, &store->scratch);
        code = sql_run(&sql, NULL, err);
    }
    if (code == 0 && task->attempt.v != 0 && task->state >= LIFE_ATTEMPT_COMPLETED) {
        struct sql sql = store_sql(store, WRITE_TASK_ATTEMPT);
        row_put_task(&sql, task, &store->scratch);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

static int store_purge(struct store *store, struct job_id job, struct err *err)
{
    int code = 0;

    for (unsigned i = PURGE_FIRST; code == 0 && i <= PURGE_LAST; i++) {
        struct sql sql = store_sql(store, (enum write_statement)i);
        sql_put_int(&sql, job.v);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

static int write_record(struct store *store, const struct output *output, size_t index,
                        const struct latest *latest, struct err *err)
{
    const struct record *record = &output->records.items[index];
    struct sql sql;

    switch (record->kind) {
    case RECORD_JOB:
        return write_job(store, output, index, latest, err);
    case RECORD_TASK:
        return write_task(store, &record->task,
                          id_map_get(&latest->tasks, task_key(&record->task)) == index, err);
    case RECORD_STORY:
        sql = store_sql(store, WRITE_STORY);
        row_put_story(&sql, &record->story);
        return sql_run(&sql, NULL, err);
    case RECORD_NODE:
        sql = store_sql(store, WRITE_NODE);
        row_put_node(&sql, &record->node, &store->scratch);
        return sql_run(&sql, NULL, err);
    case RECORD_JOB_DELETED:
        return store_purge(store, record->deleted, err);
    }
    assert(false && "a kind of record");
    return ERR_INTERNAL;
}

static int write_counter(struct store *store, const char *name, uint64_t value, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_COUNTER);

    sql_put_string(&sql, name);
    sql_put_int(&sql, (int64_t)value);
    return sql_run(&sql, NULL, err);
}

int store_write_counters(struct store *store, uint32_t last_job, uint64_t last_attempt,
                         struct err *err)
{
    int code = write_counter(store, "job", last_job, err);

    return code < 0 ? code : write_counter(store, "attempt", last_attempt, err);
}

int store_write_progress(struct store *store, size_t event_count, struct err *err)
{
    int code = write_counter(store, "commit", store->stored_commits + 1, err);

    if (code < 0 || event_count == 0)
        return code;
    return write_counter(store, "event", store->stored_events + event_count, err);
}

int store_write_records(struct store *store, const struct output *output, struct err *err)
{
    uint32_t last_job = store->last_job;
    uint64_t last_attempt = store->last_attempt;
    struct latest latest = {0};
    int code = 0;

    latest_find(&latest, output);
    for (size_t i = 0; code == 0 && i < output->records.count; i++)
        code = write_record(store, output, i, &latest, err);
    if (code == 0 && (store->last_job != last_job || store->last_attempt != last_attempt))
        code = store_write_counters(store, store->last_job, store->last_attempt, err);
    id_map_release(&latest.jobs);
    id_map_release(&latest.tasks);
    return code;
}

void store_show_records(struct store *store, const struct output *output)
{
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB)
            job_index_put(store->job_index, &record->job,
                          record->job.submission && record->job.submission->has_priority);
        else if (record->kind == RECORD_JOB_DELETED)
            job_index_remove(store->job_index, record->deleted);
    }
}
