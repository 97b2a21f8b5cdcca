/* tags.c — words that users put on jobs. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>
#include <string.h>

static const char insert[] = "INSERT INTO tags (job, name) VALUES (?,?) ON CONFLICT DO NOTHING";
static const char count_job[] = "SELECT count(*) FROM jobs WHERE id = ?";
static const char delete[] = "DELETE FROM tags WHERE job = ? AND name = ?";
static const char delete_job[] = "DELETE FROM tags WHERE job = ?";
static const char count_others[] = "SELECT count(*) FROM tags WHERE job = ? AND name <> ?";
static const char select_all[] = "SELECT job, name FROM tags";

/* The index still knows a job that this transaction has deleted: its tags are gone already. */
static int job_find(struct store *store, struct job_id job, int64_t *count, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_job);
    *count = 0;
    if (!job_index_has(store->job_index, job))
        return 0;
    sql_put_int(&sql, job.v);
    return sql_number(&sql, count, err);
}

int tag_add(struct store *store, struct store_change *change, struct err *err)
{
    const char *name = change->tag.name;
    size_t length = strlen(name);
    int64_t count;
    assert(change->kind == CHANGE_TAG_ADD);
    int code = job_find(store, change->tag.job, &count, err);
    if (code < 0)
        return code;
    if (count == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no such job");
    if (length == 0 || length > STORE_TAG_MAX || strchr(name, ','))
        return REFUSE(change, ERR_INVALID, "a tag has 1 to %d bytes and no comma", STORE_TAG_MAX);
    struct sql sql = sql_of(&store->session, count_others);
    sql_put_int(&sql, change->tag.job.v);
    sql_put_string(&sql, name);
    code = sql_number(&sql, &count, err);
    if (code < 0)
        return code;
    if (count >= STORE_TAGS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a job has at most %d tags", STORE_TAGS_MAX);
    sql = sql_of(&store->session, insert);
    sql_put_int(&sql, change->tag.job.v);
    sql_put_string(&sql, name);
    return sql_run(&sql, NULL, err);
}

int tag_remove(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete);
    int changed = 0, code;
    assert(change->kind == CHANGE_TAG_REMOVE);
    if (!job_index_has(store->job_index, change->tag.job))
        return REFUSE(change, ERR_NOT_FOUND, "no such job");
    sql_put_int(&sql, change->tag.job.v);
    sql_put_string(&sql, change->tag.name);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "the job has no such tag");
    return code;
}

int tags_purge(struct store *store, struct job_id job, struct err *err)
{
    return purge(store, delete_job, job, err);
}

int tags_load(struct store *store, struct job_index *index, struct err *err)
{
    struct sql sql = sql_of(&store->session, select_all);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct job_id job = {(uint32_t)sql_int(&sql)};
        job_index_tag(index, job, sql_string(&sql, &arena));
        arena_clear(&arena);
    }
    return code;
}
