/* read.c — see read.h: statements, jobs, and the doors to the job index. */
#include "store/read.h"
#include "base/err.h"
#include "core/plan.h"
#include "store/reader.h"
#include <assert.h>

#define STORY_SELECT                                                                               \
    "SELECT sequence, s.job, s.role, s.task_index, s.attempt, s.is_warning, s.at_ms, s.reason, "   \
    "s.message, t.role_name FROM stories s LEFT JOIN tasks t "                                     \
    "ON t.job = s.job AND t.role = s.role AND t.task_index = s.task_index "
#define STORY_WHERE "sequence > ?2 AND (?3 < 0 OR is_warning = ?3) "
#define STORY_OLD   "ORDER BY sequence LIMIT ?4 OFFSET ?5"
#define STORY_NEW   "ORDER BY sequence DESC LIMIT ?4 OFFSET ?5"

/* jobs that have not ended, or of which a container is held for debugging */
#define LIVE_IDS                                                                                   \
    "SELECT id FROM jobs WHERE state <> 8 UNION SELECT job FROM tasks WHERE is_held <> 0"

static const char *const read_texts[READ_COUNT] = {
    [READ_JOB] = "SELECT " JOB_COLUMNS " FROM jobs WHERE id = ?",
    [READ_JOB_TAGS] = "SELECT name FROM tags WHERE job = ? ORDER BY name",
    [READ_SOURCE] = "SELECT format, spec, source, sealed FROM job_sources WHERE job = ?",
    [READ_PLAN] = "SELECT plan FROM job_plans WHERE job = ?",
    [READ_JOB_ATTEMPTS] =
        "SELECT " JOB_ATTEMPT_COLUMNS " FROM job_attempts WHERE job = ? ORDER BY attempt",
    [READ_TASKS] = "SELECT " TASK_COLUMNS
                   " FROM tasks WHERE job = ? AND job_attempt = ? ORDER BY role, task_index",
    [READ_TASKS_PAST] = "SELECT " TASK_COLUMNS " FROM task_attempts WHERE job = ? AND "
                        "job_attempt = ? ORDER BY role, task_index, task_attempt",
    [READ_TASK] = "SELECT " TASK_COLUMNS
                  " FROM tasks WHERE job = ? AND job_attempt = ? AND role = ? AND task_index = ?",
    [READ_TASK_ATTEMPTS] = "SELECT " TASK_COLUMNS " FROM task_attempts WHERE job = ? AND "
                           "job_attempt = ? AND role = ? AND task_index = ? ORDER BY task_attempt",
    [READ_ATTEMPT] = "SELECT " TASK_COLUMNS " FROM tasks WHERE attempt = ? AND attempt <> 0",
    [READ_ATTEMPT_PAST] = "SELECT " TASK_COLUMNS " FROM task_attempts WHERE attempt = ?",
    [READ_NODES] = "SELECT " NODE_COLUMNS " FROM nodes ORDER BY id",
    [READ_USER] = "SELECT " USER_COLUMNS " FROM users WHERE name = ?",
    [READ_USERS] = "SELECT " USER_COLUMNS " FROM users ORDER BY name",
    [READ_TOKEN] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id = ?",
    [READ_TOKENS] =
        "SELECT " TOKEN_COLUMNS " FROM tokens WHERE user = ? ORDER BY created_ms DESC, id",
    [READ_END] = "SELECT " END_COLUMNS " FROM attempt_ends WHERE attempt = ?",
    [READ_BARRIER] = "SELECT attempt FROM barriers WHERE job = ? AND kind = ?",
    [READ_SETTING] = "SELECT value FROM settings WHERE key = ?",
    [READ_STORIES] = STORY_SELECT "WHERE s.job = ?1 AND " STORY_WHERE STORY_OLD,
    [READ_STORIES_NEWEST] = STORY_SELECT "WHERE s.job = ?1 AND " STORY_WHERE STORY_NEW,
    [READ_STORIES_ALL] = STORY_SELECT "WHERE ?1 = 0 AND " STORY_WHERE STORY_OLD,
    [READ_STORIES_ALL_NEWEST] = STORY_SELECT "WHERE ?1 = 0 AND " STORY_WHERE STORY_NEW,
    [READ_STORIES_COUNT] = "SELECT count(*) FROM stories WHERE job = ?1 AND " STORY_WHERE,
    [READ_STORIES_ALL_COUNT] = "SELECT count(*) FROM stories WHERE ?1 = 0 AND " STORY_WHERE,
    [READ_EVENTS] = "SELECT sequence, at_ms, kind, body FROM event_log WHERE sequence > ? "
                    "ORDER BY sequence LIMIT ?",
    [READ_LAST_EVENT] = "SELECT at_ms FROM event_log ORDER BY sequence DESC LIMIT 1",
    [READ_COUNTER] = "SELECT value FROM counters WHERE name = ?",
    [READ_LIVE_JOBS] = "SELECT " JOB_COLUMNS ", plan FROM jobs JOIN job_plans ON job = id "
                       "WHERE id IN (" LIVE_IDS ") ORDER BY id",
    /* a retry begins without tasks: the rows of the attempt before are history */
    [READ_LIVE_TASKS] = "SELECT " TASK_COLUMNS " FROM tasks WHERE job IN (" LIVE_IDS ") AND "
                        "job_attempt = (SELECT jobs.attempt FROM jobs WHERE id = job) "
                        "ORDER BY job, role, task_index",
};

int store_reader_open(struct store *store, struct store_reader **out, struct err *err)
{
    struct store_reader *reader = mem_zero(1, sizeof *reader);
    int code = store_connect(store->path, false, &reader->db, err);

    reader->store = store;
    if (code < 0) {
        store_reader_close(reader);
        return code;
    }
    *out = reader;
    return 0;
}

void store_reader_close(struct store_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < READ_COUNT; i++)
        sqlite3_finalize(reader->reads[i]);
    sqlite3_close(reader->db);
    mem_free(reader);
}

int reader_sql(struct store_reader *reader, enum read_statement which, struct sql *sql,
               struct err *err)
{
    if (!reader->reads[which]) {
        int code = sql_prepare(reader->db, read_texts[which], &reader->reads[which], err);
        if (code < 0)
            return code;
    }
    *sql = sql_of(reader->reads[which]);
    return 0;
}

int reader_begin(struct store_reader *reader, struct err *err)
{
    return sql_exec(reader->db, "BEGIN", err);
}

void reader_end(struct store_reader *reader)
{
    sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
}

void store_job_list(struct store *store, const struct job_filter *filter, struct arena *arena,
                    struct job_page *page)
{
    job_index_list(store->job_index, filter, arena, page);
}

int store_job_find(struct store *store, struct text user, struct text name, struct job_id *job,
                   struct err *err)
{
    if (job_index_find(store->job_index, user, name, job))
        return 0;
    return err_fail(err, ERR_NOT_FOUND, "", "no job %.*s~%.*s",
                    (int)(user.length > 64 ? 64 : user.length), user.at,
                    (int)(name.length > 100 ? 100 : name.length), name.at);
}

static int no_job(struct job_id job, struct err *err)
{
    return err_fail(err, ERR_NOT_FOUND, "", "no job number %u", job.v);
}

/* Of a statement that gives one row a job: read it, then sql_done. */
static int row_of_job(struct store_reader *reader, enum read_statement which, struct job_id job,
                      struct sql *sql, struct err *err)
{
    int code = reader_sql(reader, which, sql, err);

    if (code < 0)
        return code;
    sql_put_int(sql, job.v);
    code = sql_next(sql, err);
    return code == 0 ? no_job(job, err) : code;
}

int store_job_summary(struct store *store, struct job_id job, struct arena *arena,
                      struct store_job *row, struct err *err)
{
    return job_index_summary(store->job_index, job, arena, row) ? 0 : no_job(job, err);
}

void store_job_counts(struct store *store, uint64_t counts[PUBLIC_STATE_COUNT])
{
    job_index_counts(store->job_index, counts);
}

size_t store_jobs_final(struct store *store, int64_t completed_before_ms, struct job_id *jobs,
                        size_t room)
{
    return job_index_final(store->job_index, completed_before_ms, jobs, room);
}

static int read_job_tags(struct store_reader *reader, struct job_id job, struct arena *arena,
                         struct store_job *row, struct err *err)
{
    const char **tags = arena_array(arena, STORE_TAGS_MAX, sizeof *tags);
    struct sql sql;
    int code = reader_sql(reader, READ_JOB_TAGS, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, job.v);
    row->tag_count = 0;
    while ((code = sql_next(&sql, err)) > 0)
        if (row->tag_count < STORE_TAGS_MAX)
            tags[row->tag_count++] = sql_string(&sql, arena);
    row->tags = tags;
    return code;
}

int read_job(struct store_reader *reader, struct job_id job, struct arena *arena,
             struct store_job *row, struct err *err)
{
    struct sql sql;
    int code = row_of_job(reader, READ_JOB, job, &sql, err);

    if (code < 0)
        return code;
    row_get_job(&sql, &row->record, &row->has_priority, arena);
    sql_done(&sql);
    row->shown =
        life_public(row->record.state, row->record.completion.code, row->record.retry_at_ms != 0);
    return 0;
}

int store_job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
                   struct store_job *row, struct err *err)
{
    int code = reader_begin(reader, err);

    if (code < 0)
        return code;
    code = read_job(reader, job, arena, row, err);
    if (code == 0)
        code = read_job_tags(reader, job, arena, row, err);
    reader_end(reader);
    return code;
}

int store_job_source(struct store_reader *reader, struct job_id job, struct arena *arena,
                     struct store_source *source, struct err *err)
{
    struct sql sql;
    int code = row_of_job(reader, READ_SOURCE, job, &sql, err);

    if (code < 0)
        return code;
    source->format = (uint8_t)sql_int(&sql);
    source->spec_bytes = sql_text(&sql, arena);
    source->source = sql_text(&sql, arena);
    source->sealed = sql_text(&sql, arena);
    sql_done(&sql);
    return 0;
}

static int read_job_attempts(struct store_reader *reader, const struct job_record *job,
                             struct arena *arena, struct job_attempts *attempts, struct err *err)
{
    /* all past ones, and the current if it is none of them */
    struct job_record *items = arena_array(arena, job->attempt + 2u, sizeof *items);
    size_t count = 0;
    struct sql sql;
    int code = reader_sql(reader, READ_JOB_ATTEMPTS, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, job->id.v);
    while ((code = sql_next(&sql, err)) > 0) {
        struct job_record attempt = *job;
        row_get_job_attempt(&sql, &attempt, arena);
        if (attempt.attempt < job->attempt && count <= job->attempt)
            items[count++] = attempt;
    }
    items[count++] = *job;
    *attempts = (struct job_attempts){items, count};
    return code;
}

int store_job_attempts(struct store_reader *reader, struct job_id job, struct arena *arena,
                       struct job_attempts *attempts, struct err *err)
{
    struct store_job row = {0};
    int code = reader_begin(reader, err);

    if (code < 0)
        return code;
    code = read_job(reader, job, arena, &row, err);
    if (code == 0)
        code = read_job_attempts(reader, &row.record, arena, attempts, err);
    reader_end(reader);
    return code;
}

int store_job_plan(struct store_reader *reader, struct job_id job, struct plan **plan,
                   struct err *err)
{
    struct arena arena;
    struct sql sql;
    int code = reader_sql(reader, READ_PLAN, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, job.v);
    code = sql_next(&sql, err);
    *plan = NULL;
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "job %u has no plan", job.v);
    if (code < 0)
        return code;
    arena_init(&arena);
    *plan = plan_decode(sql_text(&sql, &arena), err);
    sql_done(&sql);
    arena_release(&arena);
    return *plan ? 0 : ERR_CORRUPT;
}
