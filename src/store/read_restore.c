/* read_restore.c — see read.h: what a restart needs. */
#include "base/err.h"
#include "store/reader.h"

static int read_counter(struct store_reader *reader, const char *name, int64_t *value,
                        struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_COUNTER, &sql, err);

    if (code < 0)
        return code;
    sql_put_string(&sql, name);
    code = sql_next(&sql, err);
    *value = code > 0 ? sql_int(&sql) : 0;
    if (code > 0)
        sql_done(&sql);
    return code < 0 ? code : 0;
}

int store_restore_counters(struct store_reader *reader, struct job_id *last_job,
                           struct attempt_id *last_attempt, struct err *err)
{
    int64_t job = 0, attempt = 0;
    int code = read_counter(reader, "job", &job, err);

    if (code == 0)
        code = read_counter(reader, "attempt", &attempt, err);
    *last_job = (struct job_id){(uint32_t)job};
    *last_attempt = (struct attempt_id){(uint64_t)attempt};
    return code;
}

int store_restore_time(struct store_reader *reader, int64_t *last_ms, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_LAST_EVENT, &sql, err);

    if (code < 0)
        return code;
    code = sql_next(&sql, err);
    *last_ms = code > 0 ? sql_int(&sql) : 0;
    if (code > 0)
        sql_done(&sql);
    return code < 0 ? code : 0;
}

static int restore_nodes(struct store_reader *reader, const struct store_restore *restore,
                         struct arena *arena, struct err *err)
{
    struct store_nodes nodes;
    int code = store_nodes(reader, arena, &nodes, err);

    for (size_t i = 0; code == 0 && i < nodes.count; i++)
        code = restore->node(restore->context, &nodes.items[i], err);
    return code;
}

static int restore_jobs(struct store_reader *reader, const struct store_restore *restore,
                        struct arena *arena, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_LIVE_JOBS, &sql, err);

    while (code >= 0 && (code = sql_next(&sql, err)) > 0) {
        struct job_record job;
        bool has_priority;
        arena_clear(arena);
        row_get_job(&sql, &job, &has_priority, arena);
        code = restore->job(restore->context, &job, sql_text(&sql, arena), err);
        if (code < 0)
            sql_done(&sql);
    }
    return code;
}

static int restore_tasks(struct store_reader *reader, const struct store_restore *restore,
                         struct arena *arena, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_LIVE_TASKS, &sql, err);

    while (code >= 0 && (code = sql_next(&sql, err)) > 0) {
        struct task_record task;
        arena_clear(arena);
        code = row_get_task(&sql, &task, arena, err);
        if (code == 0)
            code = restore->task(restore->context, &task, err);
        if (code < 0)
            sql_done(&sql);
    }
    return code;
}

int store_restore(struct store_reader *reader, const struct store_restore *restore, struct err *err)
{
    struct arena arena;
    int code = reader_begin(reader, err);

    if (code < 0)
        return code;
    arena_init(&arena);
    code = restore_nodes(reader, restore, &arena, err);
    if (code == 0)
        code = restore_jobs(reader, restore, &arena, err);
    if (code == 0)
        code = restore_tasks(reader, restore, &arena, err);
    arena_release(&arena);
    reader_end(reader);
    return code;
}
