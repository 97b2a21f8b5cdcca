/* reader.h — what the files that read the store share.
 *
 * Private to store.
 */
#ifndef STORE_READER_H
#define STORE_READER_H
#include "base/arena.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store_internal.h"

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
    READ_END,
    READ_BARRIER,
    READ_STORIES,
    READ_STORIES_NEWEST,
    READ_STORIES_ALL,
    READ_STORIES_ALL_NEWEST,
    READ_STORIES_COUNT,
    READ_STORIES_ALL_COUNT,
    READ_COUNTER,
    READ_EVENTS,
    READ_LAST_EVENT,
    READ_LIVE_JOBS,
    READ_LIVE_TASKS,
    READ_COUNT,
};

struct store_reader {
    sqlite3 *db;
    struct store *store;
    sqlite3_stmt *reads[READ_COUNT];
};

/* The statement, prepared when first used: most readers need few of them. */
int reader_sql(struct store_reader *reader, enum read_statement which, struct sql *sql,
               struct err *err);

/* Several statements that must see one state of the database. */
int reader_begin(struct store_reader *reader, struct err *err);
void reader_end(struct store_reader *reader);

/* A job's row without its tags. ERR_NOT_FOUND: no such job. */
int read_job(struct store_reader *reader, struct job_id job, struct arena *arena,
             struct store_job *row, struct err *err);

/* Rows are gathered in a growing array on the heap and handed over at the end, so that growth
 * leaves no holes in the arena: a copy of the array, which is freed. */
static inline void *list_take(struct arena *arena, void *items, size_t count, size_t size)
{
    void *copy = arena_array(arena, count, size);

    if (count > 0)
        memcpy(copy, items, count * size);
    mem_free(items);
    return copy;
}
#define LIST_HAND_OVER(list, arena, out)                                                           \
    ((out)->count = (list)->count,                                                                 \
     (out)->items = list_take((arena), (list)->items, (list)->count, sizeof *(list)->items),       \
     (list)->items = NULL, (list)->count = (list)->room = 0)

#endif
