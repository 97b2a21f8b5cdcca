/* read_tasks.c — see read.h: tasks and their attempts. */
#include "base/err.h"
#include "core/plan.h"
#include "job/job.h"
#include "store/reader.h"
#include <assert.h>
#include <stdlib.h>

struct task_list {
    struct task_record *items;
    size_t count, room;
};

static int read_tasks(struct sql *sql, struct arena *arena, struct task_list *list, struct err *err)
{
    int code;

    while ((code = sql_next(sql, err)) > 0) {
        struct task_record *task = ARRAY_ADD(list);
        code = row_get_task(sql, task, arena, err);
        if (code < 0) {
            sql_done(sql);
            return code;
        }
    }
    return code;
}

static struct task_record task_unplaced(const struct job_record *job, struct task_ref task,
                                        const char *role_name)
{
    struct task_record row = {
        .job = job->id,
        .task = task,
        .role_name = role_name,
        .state = job->state == LIFE_COMPLETED ? LIFE_COMPLETED : LIFE_CREATION_PENDING,
        .job_attempt = job->attempt,
        .node = "",
        .address = "",
        .created_ms = job->attempt_created_ms ? job->attempt_created_ms : job->submitted_ms,
    };

    if (job->state == LIFE_COMPLETED) {
        row.completion = job->completion;
        row.completed_ms = job->completed_ms;
    }
    return row;
}

/* Add what the plan has (or what it was scaled to) and the rows have not. */
static int tasks_fill(struct store_reader *reader, const struct job_record *job,
                      struct arena *arena, struct task_list *rows, struct err *err)
{
    struct task_list all = {0};
    struct plan *plan = NULL;
    uint32_t *counts;
    size_t next = 0;
    int code = store_job_plan(reader, job->id, &plan, err);

    if (code < 0)
        return code;
    assert(plan);
    counts = ARENA_ARRAY(arena, uint32_t, plan->role_count);
    for (uint16_t r = 0; r < plan->role_count; r++)
        counts[r] = plan->roles[r].instances;
    job_saved_counts(job->extra, plan->role_count, counts); /* what was scaled since */
    for (uint16_t r = 0; r < plan->role_count; r++) {
        const char *name = arena_copy(arena, text_of(plan->roles[r].name));
        for (uint32_t i = 0; i < counts[r]; i++) {
            struct task_ref task = {r, (uint16_t)i};
            if (next < rows->count && rows->items[next].task.role == r &&
                rows->items[next].task.index == i)
                *ARRAY_ADD(&all) = rows->items[next++];
            else
                *ARRAY_ADD(&all) = task_unplaced(job, task, name);
        }
        while (next < rows->count && rows->items[next].task.role == r) /* scaled up */
            *ARRAY_ADD(&all) = rows->items[next++];
    }
    plan_free(plan);
    ARRAY_FREE(rows);
    *rows = all;
    return 0;
}

/* Of several attempts of one task only the latest stays. */
static void tasks_keep_latest(struct task_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        bool is_same = kept > 0 && list->items[kept - 1].task.role == list->items[i].task.role &&
                       list->items[kept - 1].task.index == list->items[i].task.index;
        list->items[is_same ? kept - 1 : kept++] = list->items[i];
    }
    list->count = kept;
}

static int tasks_order(const void *a, const void *b)
{
    const struct task_ref left = ((const struct task_record *)a)->task;
    const struct task_ref right = ((const struct task_record *)b)->task;

    if (left.role != right.role)
        return left.role < right.role ? -1 : 1;
    return (left.index > right.index) - (left.index < right.index);
}

/* Those that were scaled away in this attempt and are not wanted again. */
static int tasks_add_gone(struct store_reader *reader, const struct job_record *job,
                          struct arena *arena, struct task_list *rows, struct err *err)
{
    struct task_list past = {0};
    const size_t present = rows->count;
    struct sql sql;
    int code = reader_sql(reader, READ_TASKS_PAST, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, job->id.v);
    sql_put_int(&sql, job->attempt);
    code = read_tasks(&sql, arena, &past, err);
    tasks_keep_latest(&past);
    for (size_t i = 0; i < past.count; i++)
        if (present == 0 ||
            !bsearch(&past.items[i], rows->items, present, sizeof *rows->items, tasks_order))
            *ARRAY_ADD(rows) = past.items[i];
    if (rows->count > present)
        qsort(rows->items, rows->count, sizeof *rows->items, tasks_order);
    ARRAY_FREE(&past);
    return code;
}

static int read_tasks_of(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                         struct arena *arena, struct task_list *list, struct err *err)
{
    struct store_job row = {0};
    struct sql sql;
    bool is_past;
    int code = read_job(reader, job, arena, &row, err);

    if (code < 0)
        return code;
    if (job_attempt > row.record.attempt)
        return err_fail(err, ERR_NOT_FOUND, "", "job %u has no attempt %lld", job.v,
                        (long long)job_attempt);
    is_past = job_attempt >= 0 && job_attempt < row.record.attempt;
    code = reader_sql(reader, is_past ? READ_TASKS_PAST : READ_TASKS, &sql, err);
    if (code < 0)
        return code;
    sql_put_int(&sql, job.v);
    sql_put_int(&sql, is_past ? job_attempt : row.record.attempt);
    code = read_tasks(&sql, arena, list, err);
    if (code == 0 && is_past)
        tasks_keep_latest(list);
    else if (code == 0 && list->count < row.record.task_count)
        code = tasks_fill(reader, &row.record, arena, list, err);
    if (code == 0 && job_attempt == row.record.attempt)
        code = tasks_add_gone(reader, &row.record, arena, list, err);
    return code;
}

int store_tasks(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                struct arena *arena, struct store_tasks *tasks, struct err *err)
{
    struct task_list list = {0};
    int code = reader_begin(reader, err);

    if (code < 0)
        return code;
    code = read_tasks_of(reader, job, job_attempt, arena, &list, err);
    reader_end(reader);
    LIST_HAND_OVER(&list, arena, tasks);
    return code;
}

struct task_key {
    struct job_id job;
    uint32_t job_attempt;
    struct task_ref task;
};

static int read_task_attempts(struct store_reader *reader, enum read_statement which,
                              const struct task_key *key, struct arena *arena,
                              struct task_list *list, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, which, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, key->job.v);
    sql_put_int(&sql, key->job_attempt);
    sql_put_int(&sql, key->task.role);
    sql_put_int(&sql, key->task.index);
    return read_tasks(&sql, arena, list, err);
}

int store_task_attempts(struct store_reader *reader, struct job_id job, uint32_t job_attempt,
                        struct task_ref task, struct arena *arena, struct store_tasks *attempts,
                        struct err *err)
{
    const struct task_key key = {job, job_attempt, task};
    struct task_list list = {0};
    size_t past;
    int code = reader_begin(reader, err);

    if (code < 0)
        return code;
    code = read_task_attempts(reader, READ_TASK_ATTEMPTS, &key, arena, &list, err);
    past = list.count;
    if (code == 0)
        code = read_task_attempts(reader, READ_TASK, &key, arena, &list, err);
    reader_end(reader);
    /* the current one may have ended, and then it stands in both tables */
    if (code == 0 && list.count > past && past > 0 &&
        list.items[past - 1].attempt.v == list.items[past].attempt.v) {
        list.items[past - 1] = list.items[past];
        list.count = past;
    }
    if (code == 0 && list.count == 0)
        code = err_fail(err, ERR_NOT_FOUND, "", "task %u/%u of job %u has no attempt", task.role,
                        task.index, job.v);
    LIST_HAND_OVER(&list, arena, attempts);
    return code;
}

int store_attempt(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
                  struct task_record *row, struct err *err)
{
    struct sql sql;
    int code = 0;

    for (int i = 0; i < 2; i++) {
        code = reader_sql(reader, i == 0 ? READ_ATTEMPT : READ_ATTEMPT_PAST, &sql, err);
        if (code < 0)
            return code;
        sql_put_int(&sql, (int64_t)attempt.v);
        code = sql_next(&sql, err);
        if (code != 0)
            break;
    }
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no attempt %llu", (unsigned long long)attempt.v);
    if (code > 0) {
        code = row_get_task(&sql, row, arena, err);
        sql_done(&sql);
    }
    return code;
}

int store_attempt_end(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
                      struct store_end *end, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_END, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, (int64_t)attempt.v);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "of the end of attempt %llu nothing is kept",
                        (unsigned long long)attempt.v);
    if (code < 0)
        return code;
    row_get_end(&sql, end, arena);
    sql_done(&sql);
    return 0;
}

int store_barrier_passed(struct store_reader *reader, struct job_id job, enum store_barrier kind,
                         int64_t *attempt, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_BARRIER, &sql, err);

    *attempt = -1;
    if (code < 0)
        return code;
    sql_put_int(&sql, job.v);
    sql_put_int(&sql, kind);
    code = sql_next(&sql, err);
    if (code > 0) {
        *attempt = sql_int(&sql);
        sql_done(&sql);
    }
    return code < 0 ? code : 0;
}
