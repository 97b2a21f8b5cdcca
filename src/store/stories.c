/* stories.c — what happened to jobs, in lines for their users. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C)                                                                                 \
    C(job)                                                                                         \
    "," C(role) "," C(task_index) "," C(attempt) "," C(is_warning) "," C(at_ms) "," C(             \
        reason) "," C(message)
#define SELECT                                                                                     \
    "SELECT sequence, s.job, s.role, s.task_index, s.attempt, s.is_warning, s.at_ms, s.reason, "   \
    "s.message, t.role_name FROM stories s LEFT JOIN tasks t "                                     \
    "ON t.job = s.job AND t.role = s.role AND t.task_index = s.task_index "
#define WHERE  "sequence > ?2 AND (?3 < 0 OR is_warning = ?3) AND" IS_NOT_DELETED("s.job")
#define BEFORE "AND (?6 = 0 OR sequence < ?6) "
#define OLDEST BEFORE "ORDER BY sequence LIMIT ?4 OFFSET ?5"
#define NEWEST BEFORE "ORDER BY sequence DESC LIMIT ?4 OFFSET ?5"

static const char insert[] = INSERT_INTO("stories", COLUMNS);
static const char delete_job[] = "DELETE FROM stories WHERE job = ?";
static const char select_job[] = SELECT "WHERE s.job = ?1 AND " WHERE OLDEST;
static const char select_job_newest[] = SELECT "WHERE s.job = ?1 AND " WHERE NEWEST;
static const char select_all[] = SELECT "WHERE ?1 = 0 AND " WHERE OLDEST;
static const char select_all_newest[] = SELECT "WHERE ?1 = 0 AND " WHERE NEWEST;
static const char count_job[] = "SELECT count(*) FROM stories s WHERE s.job = ?1 AND " WHERE;
static const char count_all[] = "SELECT count(*) FROM stories s WHERE ?1 = 0 AND " WHERE;

static void row_put(struct sql *sql, const struct story_record *story)
{
    sql_put_int(sql, story->job.v);
    sql_put_int(sql, story->role);
    sql_put_int(sql, story->index);
    sql_put_int(sql, (int64_t)story->attempt.v);
    sql_put_int(sql, story->is_warning);
    sql_put_int(sql, story->at_ms);
    sql_put_string(sql, story->reason);
    sql_put_string(sql, story->message);
}

static void row_get(struct sql *sql, struct story_record *story, struct arena *arena)
{
    assert(sql->statement);
    story->job.v = (uint32_t)sql_int(sql);
    story->role = (int32_t)sql_int(sql);
    story->index = (int32_t)sql_int(sql);
    story->attempt.v = (uint64_t)sql_int(sql);
    story->is_warning = sql_bool(sql);
    story->at_ms = sql_int(sql);
    story->reason = sql_string(sql, arena);
    story->message = sql_string(sql, arena);
}

int story_write(struct store *store, const struct story_record *story, struct err *err)
{
    struct sql sql = sql_of(&store->session, insert);
    assert(story->job.v != 0 && story->reason);
    row_put(&sql, story);
    return sql_run(&sql, NULL, err);
}

int stories_purge(struct store *store, struct job_id job, struct err *err)
{
    return purge(store, delete_job, job, err);
}

static int read_stories(struct store_reader *reader, const struct story_filter *filter,
                        struct arena *arena, struct stories *stories, struct err *err)
{
    struct {
        struct store_story *items;
        size_t count, room;
    } list = {0};
    const char *which;
    struct sql sql;
    int code;

    if (filter->job.v)
        which = filter->is_newest_first ? select_job_newest : select_job;
    else
        which = filter->is_newest_first ? select_all_newest : select_all;
    sql = sql_of(&reader->session, which);
    sql_put_int(&sql, filter->job.v);
    sql_put_int(&sql, (int64_t)filter->after);
    sql_put_int(&sql, filter->is_warning);
    sql_put_int(&sql, filter->limit ? (int64_t)filter->limit : 1000);
    sql_put_int(&sql, (int64_t)filter->offset);
    sql_put_int(&sql, (int64_t)filter->before);
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_story *story = ARRAY_ADD(&list);
        story->sequence = (uint64_t)sql_int(&sql);
        row_get(&sql, &story->record, arena);
        story->role_name = sql_string(&sql, arena);
    }
    LIST_HAND_OVER(&list, arena, stories);
    return code;
}

static int count_stories(struct store_reader *reader, const struct story_filter *filter,
                         uint64_t *total, struct err *err)
{
    struct sql sql = sql_of(&reader->session, filter->job.v ? count_job : count_all);
    sql_put_int(&sql, filter->job.v);
    sql_put_int(&sql, (int64_t)filter->after);
    sql_put_int(&sql, filter->is_warning);
    int64_t count;
    int code = sql_number(&sql, &count, err);
    *total = (uint64_t)count;
    return code;
}

int store_stories(struct store_reader *reader, const struct story_filter *filter, bool wants_total,
                  struct arena *arena, struct stories *stories, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    *stories = (struct stories){0};
    if (code < 0)
        return code;
    code = read_stories(reader, filter, arena, stories, err);
    if (code == 0 && wants_total)
        code = count_stories(reader, filter, &stories->total, err);
    reader_end(reader);
    return code;
}
