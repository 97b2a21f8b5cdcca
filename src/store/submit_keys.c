/* submit_keys.c — submissions that were taken with an idempotency key. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C)                                                                                 \
    C(user_name) "," C(submit_key) "," C(digest) "," C(job) "," C(job_name) "," C(at_ms)

static const char insert[] = INSERT_INTO("submit_keys", COLUMNS);
static const char select_one[] =
    "SELECT digest, job, job_name FROM submit_keys WHERE user_name = ? AND submit_key = ?";
#define DELETE_OLDEST(condition)                                                                   \
    "DELETE FROM submit_keys WHERE (user_name, submit_key) IN (SELECT user_name, submit_key "      \
    "FROM submit_keys WHERE " condition " ORDER BY at_ms LIMIT 20000)"
static const char delete_old[] = DELETE_OLDEST("at_ms < ?");
static const char delete_many[] =
    DELETE_OLDEST("at_ms <= (SELECT at_ms FROM submit_keys ORDER BY at_ms DESC LIMIT 1 OFFSET ?)");
static const char delete_user[] = "DELETE FROM submit_keys WHERE user_name = ?";

int submit_key_add(struct store *store, const struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, insert);
    assert(change->kind == CHANGE_SUBMIT_KEY && change->submit_key.job.v != 0);
    sql_put_string(&sql, change->submit_key.user);
    sql_put_string(&sql, change->submit_key.key);
    sql_put_blob(&sql, (struct text){(const char *)change->submit_key.digest,
                                     sizeof change->submit_key.digest});
    sql_put_int(&sql, change->submit_key.job.v);
    sql_put_string(&sql, change->submit_key.job_name);
    sql_put_int(&sql, change->submit_key.at_ms);
    return sql_run(&sql, NULL, err);
}

int submit_keys_trim(struct store *store, const struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_SUBMIT_KEYS_TRIM);
    return rows_trim(store, delete_old, delete_many, change, err);
}

int submit_keys_remove(struct store *store, const char *user, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete_user);
    sql_put_string(&sql, user);
    return sql_run(&sql, NULL, err);
}

int store_submit_key(struct store_reader *reader, const char *user, const char *key,
                     struct arena *arena, struct store_submit_key *row, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    sql_put_string(&sql, user);
    sql_put_string(&sql, key);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no submission of %.64s has this key", user);
    if (code < 0)
        return code;
    const struct text digest = sql_text(&sql, arena);
    *row = (struct store_submit_key){.user = user, .key = key};
    if (digest.length == sizeof row->digest)
        memcpy(row->digest, digest.at, digest.length);
    row->job.v = (uint32_t)sql_int(&sql);
    row->job_name = sql_string(&sql, arena);
    sql_done(&sql);
    return 0;
}
