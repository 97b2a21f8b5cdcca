/* template_versions.c — what templates say now, and what they said before their latest changes. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define HEAD(C)    C(number) "," C(editor) "," C(saved_ms) "," C(summary) "," C(categories) "," C(tags)
#define COLUMNS(C) HEAD(C) "," C(description) "," C(protocol) "," C(template)

static const char insert[] = INSERT_INTO("template_versions", COLUMNS);
static const char newest[] =
    "SELECT COALESCE(MAX(number), 0) FROM template_versions WHERE template = ?";
static const char delete_old[] =
    "DELETE FROM template_versions WHERE template = ?1 AND number <= ?2";
static const char delete_all[] = "DELETE FROM template_versions WHERE template = ?";
static const char delete_author[] = "DELETE FROM template_versions WHERE template IN "
                                    "(SELECT id FROM templates WHERE author = ?1)";
static const char select_all[] = "SELECT " HEAD(
    COLUMN_NAME) ",'','' FROM template_versions WHERE template = ? ORDER BY number DESC";
static const char select_one[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM template_versions WHERE template = ?1 AND number = ?2";

static int row_insert(struct store *store, const struct store_template *row, int64_t number,
                      const char *editor, struct err *err)
{
    cleanup_buf struct buf categories = BUF_INIT, tags = BUF_INIT;
    struct sql sql = sql_of(&store->session, insert);
    sql_put_int(&sql, number);
    sql_put_string(&sql, editor);
    sql_put_int(&sql, row->updated_ms);
    sql_put_string(&sql, row->summary);
    template_words_put(&sql, &row->categories, &categories);
    template_words_put(&sql, &row->tags, &tags);
    sql_put_string(&sql, row->description);
    sql_put_string(&sql, row->protocol);
    sql_put_string(&sql, row->id);
    return sql_run(&sql, NULL, err);
}

int template_version_add(struct store *store, const struct store_template *row, const char *editor,
                         struct err *err)
{
    assert(row->id && row->protocol && editor);
    int64_t number = 0;
    struct sql sql = sql_of(&store->session, newest);
    sql_put_string(&sql, row->id);
    int code = sql_number(&sql, &number, err);
    if (code == 0)
        code = row_insert(store, row, number + 1, editor, err);
    if (code < 0)
        return code;
    sql = sql_of(&store->session, delete_old);
    sql_put_string(&sql, row->id);
    sql_put_int(&sql, number + 1 - STORE_TEMPLATE_VERSIONS_MAX);
    return sql_run(&sql, NULL, err);
}

int template_versions_remove(struct store *store, const char *id, struct err *err)
{
    assert(id && *id);
    struct sql sql = sql_of(&store->session, delete_all);
    sql_put_string(&sql, id);
    return sql_run(&sql, NULL, err);
}

int template_versions_remove_author(struct store *store, const char *author, struct err *err)
{
    assert(author && *author);
    struct sql sql = sql_of(&store->session, delete_author);
    sql_put_string(&sql, author);
    return sql_run(&sql, NULL, err);
}

/* ---- reads ---- */

static void row_get(struct sql *sql, struct store_template_version *row, struct arena *arena)
{
    *row = (struct store_template_version){.number = sql_int(sql)};
    row->editor = sql_string(sql, arena);
    row->saved_ms = sql_int(sql);
    row->summary = sql_string(sql, arena);
    row->categories = template_words_get(sql, arena);
    row->tags = template_words_get(sql, arena);
    row->description = sql_string(sql, arena);
    row->protocol = sql_string(sql, arena);
}

int store_template_versions(struct store_reader *reader, const char *id, struct arena *arena,
                            struct store_template_versions *versions, struct err *err)
{
    struct {
        struct store_template_version *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_all);
    int code;
    sql_put_string(&sql, id);
    while ((code = sql_next(&sql, err)) > 0)
        row_get(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, versions);
    return code;
}

int store_template_version(struct store_reader *reader, const char *id, int64_t number,
                           struct arena *arena, struct store_template_version *version,
                           struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    sql_put_string(&sql, id);
    sql_put_int(&sql, number);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "",
                        "there is no version %lld of it: the newest %d are kept", (long long)number,
                        STORE_TEMPLATE_VERSIONS_MAX);
    if (code < 0)
        return code;
    row_get(&sql, version, arena);
    sql_done(&sql);
    return 0;
}
