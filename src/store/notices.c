/* notices.c — messages about changes of jobs that wait to be sent. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C)                                                                                 \
    C(target)                                                                                      \
    "," C(job) "," C(attempt) "," C(kind) "," C(at_ms) "," C(user_name) "," C(job_name) "," C(     \
        virtual_cluster) "," C(code) "," C(phrase) "," C(why)

static const char insert[] = INSERT_INTO("notices", COLUMNS);
static const char delete_one[] = "DELETE FROM notices WHERE number = ?";
static const char select_first[] =
    "SELECT number," COLUMNS(COLUMN_NAME) " FROM notices ORDER BY number LIMIT ?";

int notice_add(struct store *store, const struct store_change *change, struct err *err)
{
    const struct notice *notice = &change->notice.row;
    struct sql sql = sql_of(&store->session, insert);
    assert(change->kind == CHANGE_NOTICE_ADD &&
           (notice->job.v != 0 || notice_is_of_request(notice->kind)));
    sql_put_string(&sql, change->notice.target);
    sql_put_int(&sql, notice->job.v);
    sql_put_int(&sql, notice->attempt);
    sql_put_int(&sql, notice->kind);
    sql_put_int(&sql, notice->at_ms);
    sql_put_string(&sql, notice->user);
    sql_put_string(&sql, notice->job_name);
    sql_put_string(&sql, notice->virtual_cluster);
    sql_put_int(&sql, notice->code);
    sql_put_string(&sql, notice->phrase);
    sql_put_string(&sql, notice->why);
    return sql_run(&sql, NULL, err);
}

int notices_remove(struct store *store, const struct store_change *change, struct err *err)
{
    int code = 0;
    assert(change->kind == CHANGE_NOTICES_REMOVE);
    for (size_t i = 0; code == 0 && i < change->sent.count; i++) {
        struct sql sql = sql_of(&store->session, delete_one);
        sql_put_int(&sql, (int64_t)change->sent.numbers[i]);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

static void row_get(struct sql *sql, struct store_notice *row, struct arena *arena)
{
    assert(sql->statement);
    row->number = (uint64_t)sql_int(sql);
    row->target = sql_string(sql, arena);
    row->notice.job.v = (uint32_t)sql_int(sql);
    row->notice.attempt = (uint32_t)sql_int(sql);
    const int64_t kind = sql_int(sql);
    row->notice.kind =
        (enum notice_kind)(kind >= 0 && kind < NOTICE_KINDS_ALL ? kind : NOTICE_FAILED);
    row->notice.at_ms = sql_int(sql);
    row->notice.user = sql_string(sql, arena);
    row->notice.job_name = sql_string(sql, arena);
    row->notice.virtual_cluster = sql_string(sql, arena);
    row->notice.code = (int32_t)sql_int(sql);
    row->notice.phrase = sql_string(sql, arena);
    row->notice.why = sql_string(sql, arena);
}

int store_notices(struct store_reader *reader, uint64_t most, struct arena *arena,
                  struct store_notices *notices, struct err *err)
{
    struct {
        struct store_notice *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_first);
    int code;
    assert(most > 0 && most <= INT64_MAX);
    sql_put_int(&sql, (int64_t)most);
    while ((code = sql_next(&sql, err)) > 0)
        row_get(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, notices);
    return code;
}
