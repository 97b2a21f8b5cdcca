/* jobs.c — jobs: their rows, their attempts, what was submitted. */
#include "base/err.h"
#include "core/event.h"
#include "core/plan.h"
#include "store/noun.h"
#include <assert.h>

/* fixed at submission */
#define FIXED_COLUMNS(C)                                                                           \
    C(id)                                                                                          \
    "," C(name) "," C(owner) "," C(virtual_cluster) "," C(submitted_ms) "," C(has_priority) "," C( \
        notices)
/* that change */
#define STATE_COLUMNS(C)                                                                                                                                                                                                                                                                                 \
    C(priority)                                                                                                                                                                                                                                                                                          \
    "," C(state) "," C(is_stop_requested) "," C(attempt) "," C(retries_user) "," C(retries_platform) "," C(retries_resource) "," C(retry_at_ms) "," C(attempt_created_ms) "," C(attempt_launched_ms) "," C(attempt_completed_ms) "," C(launched_ms) "," C(completed_ms) "," COMPLETION_COLUMNS(C) "," C( \
        trigger_role) "," C(trigger_index) "," C(trigger_text) "," C(reason) "," C(task_count) "," C(role_count) "," C(gpu_count) "," C(extra) "," C(reason_topic)
#define JOB_COLUMNS(C) FIXED_COLUMNS(C) "," STATE_COLUMNS(C)
#define ATTEMPT_COLUMNS(C)                                                                                                           \
    C(job)                                                                                                                           \
    "," C(attempt) "," C(state) "," C(retries_user) "," C(retries_platform) "," C(retries_resource) "," C(attempt_created_ms) "," C( \
        attempt_launched_ms) "," C(attempt_completed_ms) "," COMPLETION_COLUMNS(C) "," C(trigger_role) "," C(trigger_index) "," C(trigger_text)

static const char insert[] = INSERT_INTO("jobs", JOB_COLUMNS);
static const char update[] = "UPDATE jobs SET (" STATE_COLUMNS(COLUMN_NAME) ") = (" STATE_COLUMNS(
    COLUMN_MARK) ") WHERE id = ?";
static const char insert_plan[] = "INSERT INTO job_plans (job, plan) VALUES (?,?)";
static const char insert_source[] =
    "INSERT INTO job_sources (job, format, spec, source, sealed) VALUES (?,?,?,?,?)";
static const char replace_attempt[] = REPLACE_INTO("job_attempts", ATTEMPT_COLUMNS, "job, attempt");
static const char delete[] = "DELETE FROM jobs WHERE id = ?";
static const char delete_plan[] = "DELETE FROM job_plans WHERE job = ?";
static const char delete_source[] = "DELETE FROM job_sources WHERE job = ?";
static const char delete_attempts[] = "DELETE FROM job_attempts WHERE job = ?";
static const char select_one[] = "SELECT " JOB_COLUMNS(COLUMN_NAME) " FROM jobs WHERE id = ?";
static const char select_all[] = "SELECT " JOB_COLUMNS(COLUMN_NAME) " FROM jobs ORDER BY id";
static const char select_live[] =
    "SELECT " JOB_COLUMNS(COLUMN_NAME) ", plan FROM jobs JOIN job_plans ON "
                                       "job = id WHERE id IN (" LIVE_IDS ") ORDER BY id";
static const char select_tags[] =
    "SELECT name FROM tags WHERE job = ? AND" IS_NOT_DELETED("job") "ORDER BY name";
static const char select_source[] =
    "SELECT format, spec, source, sealed FROM job_sources WHERE job = ? AND" IS_NOT_DELETED("job");
static const char select_sealed[] =
    "SELECT job, sealed FROM job_sources WHERE job > ? AND length(sealed) > 0 "
    "AND" IS_NOT_DELETED("job") "ORDER BY job LIMIT ?";
static const char update_sealed[] = "UPDATE job_sources SET sealed = ? WHERE job = ?";
static const char select_plan[] =
    "SELECT plan FROM job_plans WHERE job = ? AND" IS_NOT_DELETED("job");
static const char select_attempts[] =
    "SELECT " ATTEMPT_COLUMNS(COLUMN_NAME) " FROM job_attempts WHERE job = ? ORDER BY attempt";

/* --- rows --- */

static void row_put_fixed(struct sql *sql, const struct job_record *job)
{
    assert(job->id.v != 0);
    sql_put_int(sql, job->id.v);
    sql_put_string(sql, job->name);
    sql_put_string(sql, job->user);
    sql_put_string(sql, job->virtual_cluster);
    sql_put_int(sql, job->submitted_ms);
    sql_put_int(sql, job->submission->has_priority);
    sql_put_int(sql, job->submission->notices);
}

static void row_put_state(struct sql *sql, const struct job_record *job)
{
    assert(job->id.v != 0);
    sql_put_int(sql, job->priority);
    sql_put_int(sql, (int64_t)job->state);
    sql_put_int(sql, job->is_stop_requested);
    sql_put_int(sql, job->attempt);
    sql_put_int(sql, job->retries_user);
    sql_put_int(sql, job->retries_platform);
    sql_put_int(sql, job->retries_resource);
    sql_put_int(sql, job->retry_at_ms);
    sql_put_int(sql, job->attempt_created_ms);
    sql_put_int(sql, job->attempt_launched_ms);
    sql_put_int(sql, job->attempt_completed_ms);
    sql_put_int(sql, job->launched_ms);
    sql_put_int(sql, job->completed_ms);
    completion_put(sql, &job->completion);
    sql_put_int(sql, job->trigger_role);
    sql_put_int(sql, job->trigger_index);
    sql_put_string(sql, job->trigger);
    sql_put_string(sql, job->reason);
    sql_put_int(sql, job->task_count);
    sql_put_int(sql, job->role_count);
    sql_put_int(sql, (int64_t)job->gpu_count);
    sql_put_blob(sql, job->extra);
    sql_put_int(sql, (int64_t)job->reason_topic);
}

static void row_get(struct sql *sql, struct store_job *row, struct arena *arena)
{
    struct job_record *job = &row->record;
    assert(sql->statement);
    *job = (struct job_record){.id = {(uint32_t)sql_int(sql)}};
    job->name = sql_string(sql, arena);
    job->user = sql_string(sql, arena);
    job->virtual_cluster = sql_string(sql, arena);
    job->submitted_ms = sql_int(sql);
    row->has_priority = sql_bool(sql);
    row->notices = (int16_t)sql_int(sql);
    job->priority = (int32_t)sql_int(sql);
    job->state = (enum life_state)sql_int(sql);
    job->is_stop_requested = sql_bool(sql);
    job->attempt = (uint32_t)sql_int(sql);
    job->retries_user = (uint32_t)sql_int(sql);
    job->retries_platform = (uint32_t)sql_int(sql);
    job->retries_resource = (uint32_t)sql_int(sql);
    job->retry_at_ms = sql_int(sql);
    job->attempt_created_ms = sql_int(sql);
    job->attempt_launched_ms = sql_int(sql);
    job->attempt_completed_ms = sql_int(sql);
    job->launched_ms = sql_int(sql);
    job->completed_ms = sql_int(sql);
    completion_get(sql, &job->completion);
    job->trigger_role = (int32_t)sql_int(sql);
    job->trigger_index = (int32_t)sql_int(sql);
    job->trigger = sql_string(sql, arena);
    job->reason = sql_string(sql, arena);
    job->task_count = (uint32_t)sql_int(sql);
    job->role_count = (uint32_t)sql_int(sql);
    job->gpu_count = (uint64_t)sql_int(sql);
    job->extra = sql_text(sql, arena);
    job->reason_topic = (uint64_t)sql_int(sql);
}

static void row_put_attempt(struct sql *sql, const struct job_record *job)
{
    assert(job->id.v != 0);
    sql_put_int(sql, job->id.v);
    sql_put_int(sql, job->attempt);
    sql_put_int(sql, (int64_t)job->state);
    sql_put_int(sql, job->retries_user);
    sql_put_int(sql, job->retries_platform);
    sql_put_int(sql, job->retries_resource);
    sql_put_int(sql, job->attempt_created_ms);
    sql_put_int(sql, job->attempt_launched_ms);
    sql_put_int(sql, job->attempt_completed_ms);
    completion_put(sql, &job->completion);
    sql_put_int(sql, job->trigger_role);
    sql_put_int(sql, job->trigger_index);
    sql_put_string(sql, job->trigger);
}

/* Overwrites what belongs to the attempt. */
static void row_get_attempt(struct sql *sql, struct job_record *job, struct arena *arena)
{
    assert(sql->statement);
    job->id.v = (uint32_t)sql_int(sql);
    job->attempt = (uint32_t)sql_int(sql);
    job->state = (enum life_state)sql_int(sql);
    job->retries_user = (uint32_t)sql_int(sql);
    job->retries_platform = (uint32_t)sql_int(sql);
    job->retries_resource = (uint32_t)sql_int(sql);
    job->attempt_created_ms = sql_int(sql);
    job->attempt_launched_ms = sql_int(sql);
    job->attempt_completed_ms = sql_int(sql);
    completion_get(sql, &job->completion);
    job->trigger_role = (int32_t)sql_int(sql);
    job->trigger_index = (int32_t)sql_int(sql);
    job->trigger = sql_string(sql, arena);
    job->reason = "";
}

/* --- changes --- */

static int write_job_new(struct store *store, const struct job_record *first,
                         const struct job_record *last, struct err *err)
{
    const struct submission *submission = first->submission;
    struct sql sql = sql_of(&store->session, insert);
    assert(first->id.v == last->id.v && first->submission);
    row_put_fixed(&sql, first);
    row_put_state(&sql, last);
    int code = sql_run(&sql, NULL, err);
    if (code < 0)
        return code;
    sql = sql_of(&store->session, insert_plan);
    sql_put_int(&sql, first->id.v);
    sql_put_blob(&sql, submission->plan_bytes);
    code = sql_run(&sql, NULL, err);
    if (code < 0)
        return code;
    sql = sql_of(&store->session, insert_source);
    sql_put_int(&sql, first->id.v);
    sql_put_int(&sql, submission->format);
    sql_put_blob(&sql, submission->spec_bytes);
    sql_put_text(&sql, submission->source);
    sql_put_blob(&sql, submission->sealed);
    return sql_run(&sql, NULL, err);
}

static int write_job_state(struct store *store, const struct job_record *job, struct err *err)
{
    struct sql sql = sql_of(&store->session, update);
    assert(job->id.v != 0);
    row_put_state(&sql, job);
    sql_put_int(&sql, job->id.v);
    return sql_run_one(&sql, err);
}

static int write_job_attempt(struct store *store, const struct job_record *job, struct err *err)
{
    struct sql sql = sql_of(&store->session, replace_attempt);
    assert(job->id.v != 0);
    row_put_attempt(&sql, job);
    return sql_run(&sql, NULL, err);
}

int job_write(struct store *store, const struct job_record *job, const struct job_record *last,
              struct err *err)
{
    int code = 0;
    assert(job->id.v != 0);
    if (job->id.v > store->last_job)
        store->last_job = job->id.v;
    if (job->submission)
        code = write_job_new(store, job, last, err);
    else if (last == job)
        code = write_job_state(store, job, err);
    if (code == 0 && job->state >= LIFE_ATTEMPT_COMPLETED)
        code = write_job_attempt(store, job, err);
    return code;
}

int job_purge(struct store *store, struct job_id job, struct err *err)
{
    return purge(store, delete, job, err);
}

int job_submission_purge(struct store *store, struct job_id job, struct err *err)
{
    const int code = purge(store, delete_plan, job, err);
    return code < 0 ? code : purge(store, delete_source, job, err);
}

int job_attempts_purge(struct store *store, struct job_id job, struct err *err)
{
    return purge(store, delete_attempts, job, err);
}

/* --- into memory --- */

int jobs_load(struct store *store, struct job_index *index, struct err *err)
{
    assert(index);
    struct sql sql = sql_of(&store->session, select_all);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_job row;
        row_get(&sql, &row, &arena);
        job_index_put(index, &row.record, row.has_priority);
        store->last_job = row.record.id.v;
        arena_clear(&arena);
    }
    return code;
}

int jobs_restore(struct store_reader *reader, const struct store_restore *restore,
                 struct arena *arena, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_live);
    assert(reader->session.db);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_job row;
        arena_clear(arena);
        row_get(&sql, &row, arena);
        code = restore->job(restore->context, &row.record, sql_text(&sql, arena), err);
        if (code < 0) {
            sql_done(&sql);
            break;
        }
    }
    return code;
}

/* --- reads --- */

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
static int row_of_job(struct store_reader *reader, const char *text, struct job_id job,
                      struct sql *sql, struct err *err)
{
    *sql = sql_of(&reader->session, text);
    sql_put_int(sql, job.v);
    int code = sql_next(sql, err);
    return code == 0 ? no_job(job, err) : code;
}

int store_job_summary(struct store *store, struct job_id job, struct arena *arena,
                      struct store_job *row, struct err *err)
{
    return job_index_summary(store->job_index, job, arena, row) ? 0 : no_job(job, err);
}

void store_use_of(struct store *store, struct text user, struct store_use *use)
{
    job_index_use(store->job_index, user, use);
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

size_t store_jobs_surplus(struct store *store, const struct store_shares *shares,
                          struct job_id *jobs, size_t room)
{
    return job_index_surplus(store->job_index, shares, jobs, room);
}

static int read_job_tags(struct store_reader *reader, struct job_id job, struct arena *arena,
                         struct store_job *row, struct err *err)
{
    const char **tags = arena_array(arena, STORE_TAGS_MAX, sizeof *tags);
    struct sql sql = sql_of(&reader->session, select_tags);
    sql_put_int(&sql, job.v);
    row->tag_count = 0;
    int code;
    while ((code = sql_next(&sql, err)) > 0)
        if (row->tag_count < STORE_TAGS_MAX)
            tags[row->tag_count++] = sql_string(&sql, arena);
    row->tags = tags;
    return code;
}

int job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
             struct store_job *row, struct err *err)
{
    struct sql sql;
    assert(reader->session.db);
    int code = row_of_job(reader, select_one, job, &sql, err);
    if (code < 0)
        return code;
    row_get(&sql, row, arena);
    sql_done(&sql);
    row->shown =
        life_public(row->record.state, row->record.completion.code, row->record.retry_at_ms != 0);
    return 0;
}

int store_job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
                   struct store_job *row, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = job_read(reader, job, arena, row, err);
    if (code == 0)
        code = read_job_tags(reader, job, arena, row, err);
    reader_end(reader);
    return code;
}

int store_job_source(struct store_reader *reader, struct job_id job, struct arena *arena,
                     struct store_source *source, struct err *err)
{
    struct sql sql;
    assert(reader->session.db);
    int code = row_of_job(reader, select_source, job, &sql, err);
    if (code < 0)
        return code;
    source->format = (uint8_t)sql_int(&sql);
    source->spec_bytes = sql_text(&sql, arena);
    source->source = sql_text(&sql, arena);
    source->sealed = sql_text(&sql, arena);
    sql_done(&sql);
    return 0;
}

int store_sealed_read(struct store_reader *reader, struct job_id after, struct arena *arena,
                      struct store_sealed *items, size_t most, size_t *count, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_sealed);
    int code;
    *count = 0;
    sql_put_int(&sql, after.v);
    sql_put_int(&sql, (int64_t)most);
    while ((code = sql_next(&sql, err)) == 1) {
        assert(*count < most);
        items[*count].job.v = (uint32_t)sql_int(&sql);
        items[*count].sealed = sql_text(&sql, arena);
        (*count)++;
    }
    return code;
}

int job_reseal(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, update_sealed);
    int changed;
    sql_put_blob(&sql, change->reseal.sealed);
    sql_put_int(&sql, change->reseal.job.v);
    int code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no job %u", change->reseal.job.v);
    return code;
}

static int read_job_attempts(struct store_reader *reader, const struct job_record *job,
                             struct arena *arena, struct job_attempts *attempts, struct err *err)
{
    assert(job->id.v != 0);
    /* all past ones, and the current if it is none of them */
    struct job_record *items = arena_array(arena, job->attempt + 2u, sizeof *items);
    size_t count = 0;
    struct sql sql = sql_of(&reader->session, select_attempts);
    sql_put_int(&sql, job->id.v);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct job_record attempt = *job;
        row_get_attempt(&sql, &attempt, arena);
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
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = job_read(reader, job, arena, &row, err);
    if (code == 0)
        code = read_job_attempts(reader, &row.record, arena, attempts, err);
    reader_end(reader);
    return code;
}

int store_job_plan(struct store_reader *reader, struct job_id job, struct plan **plan,
                   struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_plan);
    assert(reader->session.db);
    sql_put_int(&sql, job.v);
    int code = sql_next(&sql, err);
    *plan = NULL;
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "job %u has no plan", job.v);
    if (code < 0)
        return code;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    *plan = plan_decode(sql_text(&sql, &arena), err);
    sql_done(&sql);
    return *plan ? 0 : ERR_CORRUPT;
}
