/* read.c — see read.h: what is read by SQL, and the doors to the picture. */
#include "store/read.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/plan.h"
#include "store/store_internal.h"
#include <assert.h>

enum read_statement {
    READ_JOB,
    READ_JOB_TAGS,
    READ_SOURCE,
    READ_PLAN,
    READ_JOB_ATTEMPTS,
    READ_TASKS,
    READ_TASKS_PAST,
    READ_TASK,
    READ_TASK_ATTEMPTS,
    READ_ATTEMPT,
    READ_ATTEMPT_PAST,
    READ_NODES,
    READ_USER,
    READ_USERS,
    READ_TOKEN,
    READ_TOKENS,
    READ_SETTING,
    READ_TAIL,
    READ_STORIES,
    READ_STORIES_NEWEST,
    READ_STORIES_ALL,
    READ_STORIES_ALL_NEWEST,
    READ_STORIES_COUNT,
    READ_STORIES_ALL_COUNT,
    READ_COUNTER,
    READ_EVENTS,
    READ_LIVE_JOBS,
    READ_LIVE_TASKS,
    READ_COUNT,
};

struct store_reader {
    sqlite3 *db;
    struct store *store;
    sqlite3_stmt *reads[READ_COUNT];
};

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
    [READ_TAIL] = "SELECT tail FROM attempt_tails WHERE attempt = ?",
    [READ_SETTING] = "SELECT value FROM settings WHERE key = ?",
    [READ_STORIES] = STORY_SELECT "WHERE s.job = ?1 AND " STORY_WHERE STORY_OLD,
    [READ_STORIES_NEWEST] = STORY_SELECT "WHERE s.job = ?1 AND " STORY_WHERE STORY_NEW,
    [READ_STORIES_ALL] = STORY_SELECT "WHERE ?1 = 0 AND " STORY_WHERE STORY_OLD,
    [READ_STORIES_ALL_NEWEST] = STORY_SELECT "WHERE ?1 = 0 AND " STORY_WHERE STORY_NEW,
    [READ_STORIES_COUNT] = "SELECT count(*) FROM stories WHERE job = ?1 AND " STORY_WHERE,
    [READ_STORIES_ALL_COUNT] = "SELECT count(*) FROM stories WHERE ?1 = 0 AND " STORY_WHERE,
    [READ_EVENTS] = "SELECT sequence, at_ms, kind, body FROM event_log WHERE sequence > ? "
                    "ORDER BY sequence LIMIT ?",
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

/* Statements are prepared when first used: most readers need few of them. */
static int reader_sql(struct store_reader *reader, enum read_statement which, struct sql *sql,
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

/* Several statements that must see one state of the database. */
static int reader_begin(struct store_reader *reader, struct err *err)
{
    return sql_exec(reader->db, "BEGIN", err);
}

static void reader_end(struct store_reader *reader)
{
    sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
}

const char *job_shown_name(enum job_shown shown)
{
    static const char *const names[JOB_SHOWN_COUNT] = {"WAITING",   "RUNNING", "STOPPING",
                                                       "SUCCEEDED", "STOPPED", "FAILED"};
    assert((unsigned)shown < JOB_SHOWN_COUNT);
    return names[shown];
}

static bool is_stop_code(int32_t code)
{
    return code == CODE_STOP_REQUESTED || code == CODE_ATTEMPT_COMPLETION;
}

enum job_shown job_shown_of(enum life_state state, int32_t code, bool is_backing_off)
{
    switch (state) {
    case LIFE_CREATION_PENDING:
    case LIFE_CREATION_REQUESTED:
    case LIFE_PREPARING:
        return JOB_WAITING;
    case LIFE_RUNNING:
        return JOB_RUNNING;
    case LIFE_DELETION_PENDING:
    case LIFE_DELETION_REQUESTED:
    case LIFE_DELETING:
        return is_stop_code(code) ? JOB_STOPPING : JOB_RUNNING;
    case LIFE_ATTEMPT_COMPLETED:
        return is_backing_off ? JOB_WAITING : JOB_RUNNING;
    case LIFE_COMPLETED:
        if (code == CODE_SUCCEEDED)
            return JOB_SUCCEEDED;
        return is_stop_code(code) ? JOB_STOPPED : JOB_FAILED;
    }
    assert(false && "a state");
    return JOB_FAILED;
}

void store_job_list(struct store *store, const struct job_filter *filter, struct arena *arena,
                    struct job_page *page)
{
    picture_list(store->picture, filter, arena, page);
}

int store_job_find(struct store *store, struct text user, struct text name, struct job_id *job,
                   struct err *err)
{
    if (picture_find(store->picture, user, name, job))
        return 0;
    return err_fail(err, ERR_NOT_FOUND, "", "no job %.*s~%.*s",
                    (int)(user.length > 64 ? 64 : user.length), user.at,
                    (int)(name.length > 100 ? 100 : name.length), name.at);
}

static int no_job(struct job_id job, struct err *err)
{
    return err_fail(err, ERR_NOT_FOUND, "", "no job number %u", job.v);
}

int store_job_summary(struct store *store, struct job_id job, struct arena *arena,
                      struct store_job *row, struct err *err)
{
    return picture_summary(store->picture, job, arena, row) ? 0 : no_job(job, err);
}

void store_job_counts(struct store *store, uint64_t counts[JOB_SHOWN_COUNT])
{
    picture_counts(store->picture, counts);
}

size_t store_jobs_final(struct store *store, int64_t completed_before_ms, struct job_id *jobs,
                        size_t room)
{
    return picture_final(store->picture, completed_before_ms, jobs, room);
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

static int read_job(struct store_reader *reader, struct job_id job, struct arena *arena,
                    struct store_job *row, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_JOB, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, job.v);
    code = sql_next(&sql, err);
    if (code == 0)
        return no_job(job, err);
    if (code < 0)
        return code;
    row_get_job(&sql, &row->record, &row->has_priority, arena);
    sql_done(&sql);
    row->shown =
        job_shown_of(row->record.state, row->record.completion.code, row->record.retry_at_ms != 0);
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
    int code = reader_sql(reader, READ_SOURCE, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, job.v);
    code = sql_next(&sql, err);
    if (code == 0)
        return no_job(job, err);
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

/* Rows are gathered on the heap and moved to the arena at the end, so that growth leaves no holes
 * in it. */
struct task_list {
    struct task_record *items;
    size_t count, room;
};

static void tasks_hand_over(struct task_list *list, struct arena *arena, struct store_tasks *tasks)
{
    tasks->count = list->count;
    tasks->items = arena_array(arena, list->count, sizeof *list->items);
    if (list->count)
        memcpy(tasks->items, list->items, list->count * sizeof *list->items);
    ARRAY_FREE(list);
}

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

/* Add what the plan has and the rows have not. */
static int tasks_fill(struct store_reader *reader, const struct job_record *job,
                      struct arena *arena, struct task_list *rows, struct err *err)
{
    struct task_list all = {0};
    struct plan *plan = NULL;
    size_t next = 0;
    int code = store_job_plan(reader, job->id, &plan, err);

    if (code < 0)
        return code;
    assert(plan);
    for (uint16_t r = 0; r < plan->role_count; r++) {
        const char *name = arena_copy(arena, text_of(plan->roles[r].name));
        for (uint32_t i = 0; i < plan->roles[r].instances; i++) {
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
    tasks_hand_over(&list, arena, tasks);
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
    tasks_hand_over(&list, arena, attempts);
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

static int read_stories(struct store_reader *reader, const struct story_filter *filter,
                        struct arena *arena, struct stories *stories, struct err *err)
{
    struct {
        struct store_story *items;
        size_t count, room;
    } list = {0};
    enum read_statement which;
    struct sql sql;
    int code;

    if (filter->job.v)
        which = filter->is_newest_first ? READ_STORIES_NEWEST : READ_STORIES;
    else
        which = filter->is_newest_first ? READ_STORIES_ALL_NEWEST : READ_STORIES_ALL;
    code = reader_sql(reader, which, &sql, err);
    if (code < 0)
        return code;
    sql_put_int(&sql, filter->job.v);
    sql_put_int(&sql, (int64_t)filter->after);
    sql_put_int(&sql, filter->is_warning);
    sql_put_int(&sql, filter->limit ? (int64_t)filter->limit : 1000);
    sql_put_int(&sql, (int64_t)filter->offset);
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_story *story = ARRAY_ADD(&list);
        story->sequence = (uint64_t)sql_int(&sql);
        row_get_story(&sql, &story->story, arena);
        story->role_name = sql_string(&sql, arena);
    }
    stories->count = list.count;
    stories->items = arena_array(arena, list.count, sizeof *list.items);
    if (list.count)
        memcpy(stories->items, list.items, list.count * sizeof *list.items);
    ARRAY_FREE(&list);
    return code;
}

int store_stories(struct store_reader *reader, const struct story_filter *filter, bool wants_total,
                  struct arena *arena, struct stories *stories, struct err *err)
{
    struct sql sql;
    int code = reader_begin(reader, err);

    *stories = (struct stories){0};
    if (code < 0)
        return code;
    code = read_stories(reader, filter, arena, stories, err);
    if (code == 0 && wants_total) {
        code = reader_sql(reader, filter->job.v ? READ_STORIES_COUNT : READ_STORIES_ALL_COUNT, &sql,
                          err);
        if (code == 0) {
            sql_put_int(&sql, filter->job.v);
            sql_put_int(&sql, (int64_t)filter->after);
            sql_put_int(&sql, filter->is_warning);
            code = sql_next(&sql, err);
            stories->total = code > 0 ? (uint64_t)sql_int(&sql) : 0;
            sql_done(&sql);
        }
    }
    reader_end(reader);
    return code < 0 ? code : 0;
}

int store_events(struct store_reader *reader, uint64_t after, uint64_t limit, struct arena *arena,
                 struct store_events *events, struct err *err)
{
    struct {
        struct store_event *items;
        size_t count, room;
    } list = {0};
    struct sql sql;
    int code = reader_sql(reader, READ_EVENTS, &sql, err);

    *events = (struct store_events){.last = after};
    if (code < 0)
        return code;
    sql_put_int(&sql, (int64_t)after);
    sql_put_int(&sql, (int64_t)limit);
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_event *event = ARRAY_ADD(&list);
        events->last = (uint64_t)sql_int(&sql);
        event->at_ms = sql_int(&sql);
        event->kind = (uint8_t)sql_int(&sql);
        event->body = sql_text(&sql, arena);
    }
    events->count = list.count;
    events->items = arena_array(arena, list.count, sizeof *list.items);
    if (list.count)
        memcpy(events->items, list.items, list.count * sizeof *list.items);
    ARRAY_FREE(&list);
    return code;
}

int store_nodes(struct store_reader *reader, struct arena *arena, struct store_nodes *nodes,
                struct err *err)
{
    struct {
        struct node_record *items;
        size_t count, room;
    } list = {0};
    struct sql sql;
    int code = reader_sql(reader, READ_NODES, &sql, err);

    while (code >= 0 && (code = sql_next(&sql, err)) > 0) {
        code = row_get_node(&sql, ARRAY_ADD(&list), arena, err);
        if (code < 0)
            sql_done(&sql);
    }
    nodes->count = list.count;
    nodes->items = arena_array(arena, list.count, sizeof *list.items);
    if (list.count)
        memcpy(nodes->items, list.items, list.count * sizeof *list.items);
    ARRAY_FREE(&list);
    return code;
}

int store_user(struct store_reader *reader, struct text name, struct arena *arena,
               struct store_user *user, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_USER, &sql, err);

    if (code < 0)
        return code;
    sql_put_text(&sql, name);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no user %.*s",
                        (int)(name.length > 64 ? 64 : name.length), name.at);
    if (code < 0)
        return code;
    row_get_user(&sql, user, arena);
    sql_done(&sql);
    return 0;
}

int store_users(struct store_reader *reader, struct arena *arena, struct store_users *users,
                struct err *err)
{
    struct {
        struct store_user *items;
        size_t count, room;
    } list = {0};
    struct sql sql;
    int code = reader_sql(reader, READ_USERS, &sql, err);

    while (code >= 0 && (code = sql_next(&sql, err)) > 0)
        row_get_user(&sql, ARRAY_ADD(&list), arena);
    users->count = list.count;
    users->items = arena_array(arena, list.count, sizeof *list.items);
    if (list.count)
        memcpy(users->items, list.items, list.count * sizeof *list.items);
    ARRAY_FREE(&list);
    return code;
}

int store_token(struct store_reader *reader, struct text id, struct arena *arena,
                struct store_token *token, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_TOKEN, &sql, err);

    if (code < 0)
        return code;
    sql_put_text(&sql, id);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no such token");
    if (code < 0)
        return code;
    row_get_token(&sql, token, arena);
    sql_done(&sql);
    return 0;
}

int store_tokens(struct store_reader *reader, struct text user, struct arena *arena,
                 struct store_tokens *tokens, struct err *err)
{
    struct store_token *items = arena_array(arena, STORE_TOKENS_MAX, sizeof *items);
    struct sql sql;
    int code = reader_sql(reader, READ_TOKENS, &sql, err);

    *tokens = (struct store_tokens){items, 0};
    if (code < 0)
        return code;
    sql_put_text(&sql, user);
    while ((code = sql_next(&sql, err)) > 0)
        if (tokens->count < STORE_TOKENS_MAX)
            row_get_token(&sql, &items[tokens->count++], arena);
    return code;
}

int store_setting(struct store_reader *reader, const char *key, struct arena *arena,
                  struct text *value, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_SETTING, &sql, err);

    if (code < 0)
        return code;
    sql_put_string(&sql, key);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no setting %s", key);
    if (code < 0)
        return code;
    *value = sql_text(&sql, arena);
    sql_done(&sql);
    return 0;
}

int store_tail(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
               struct text *tail, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_TAIL, &sql, err);

    if (code < 0)
        return code;
    sql_put_int(&sql, (int64_t)attempt.v);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "attempt %llu left no lines",
                        (unsigned long long)attempt.v);
    if (code < 0)
        return code;
    *tail = sql_text(&sql, arena);
    sql_done(&sql);
    return 0;
}

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
