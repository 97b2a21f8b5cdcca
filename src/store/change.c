/* change.c — what is changed besides the core's records: tags, users, tokens, settings, retention.
 */
#include "base/err.h"
#include "store/store_internal.h"
#include <assert.h>

/* What the user did wrong goes into the change; `result` < 0 stops the transaction. */
#define REFUSE(change, code_, ...)                                                                 \
    ((change)->code = err_fail((change)->err, (code_), "", __VA_ARGS__), 0)

static int count_of(struct store *store, enum write_statement which, const char *key,
                    int64_t *count, struct err *err)
{
    struct sql sql = store_sql(store, which);
    int code;

    if (key)
        sql_put_string(&sql, key);
    code = sql_next(&sql, err);
    *count = code > 0 ? sql_int(&sql) : 0;
    sql_done(&sql);
    return code < 0 ? code : 0;
}

static int change_tag_add(struct store *store, struct store_change *change, struct err *err)
{
    const char *name = change->tag.name;
    size_t length = strlen(name);
    struct sql sql = store_sql(store, COUNT_TAGS);
    int64_t count;
    int code;

    if (!job_index_has(store->job_index, change->tag.job))
        return REFUSE(change, ERR_NOT_FOUND, "no such job");
    if (length == 0 || length > STORE_TAG_MAX || strchr(name, ','))
        return REFUSE(change, ERR_INVALID, "a tag has 1 to %d bytes and no comma", STORE_TAG_MAX);
    sql_put_int(&sql, change->tag.job.v);
    sql_put_string(&sql, name);
    code = sql_next(&sql, err);
    count = code > 0 ? sql_int(&sql) : 0;
    sql_done(&sql);
    if (code < 0)
        return code;
    if (count >= STORE_TAGS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a job has at most %d tags", STORE_TAGS_MAX);
    sql = store_sql(store, WRITE_TAG);
    sql_put_int(&sql, change->tag.job.v);
    sql_put_string(&sql, name);
    return sql_run(&sql, NULL, err);
}

static int change_tag_remove(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_UNTAG);
    int changed = 0, code;

    sql_put_int(&sql, change->tag.job.v);
    sql_put_string(&sql, change->tag.name);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "the job has no such tag");
    return code;
}

static int change_user_add(struct store *store, struct store_change *change, struct err *err)
{
    size_t length = strlen(change->user.name);
    struct sql sql;
    int64_t count;
    int changed = 0, code;

    if (length == 0 || length > STORE_USER_NAME_MAX)
        return REFUSE(change, ERR_INVALID, "a user's name has 1 to %d bytes", STORE_USER_NAME_MAX);
    if (strlen(change->user.extension_json) > STORE_EXTENSION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an extension has at most %d bytes",
                      STORE_EXTENSION_MAX);
    code = count_of(store, COUNT_USERS, NULL, &count, err);
    if (code < 0)
        return code;
    if (count >= STORE_USERS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "there are %d users already", STORE_USERS_MAX);
    sql = store_sql(store, WRITE_USER_ADD);
    row_put_user(&sql, &change->user);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "user %s exists", change->user.name);
    return code;
}

static int change_user_set(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql;
    int changed = 0, code;

    if (strlen(change->user.extension_json) > STORE_EXTENSION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an extension has at most %d bytes",
                      STORE_EXTENSION_MAX);
    sql = store_sql(store, WRITE_USER_SET);
    row_put_user(&sql, &change->user);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no user %s", change->user.name);
    return code;
}

static int change_user_remove(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_USER_REMOVE);
    int changed = 0, code;

    sql_put_string(&sql, change->user.name);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no user %s", change->user.name);
    if (code < 0)
        return code;
    sql = store_sql(store, WRITE_USER_TOKENS);
    sql_put_string(&sql, change->user.name);
    return sql_run(&sql, NULL, err);
}

static int change_token_add(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql;
    int64_t has_user, count;
    int changed = 0, code = count_of(store, HAS_USER, change->token.user, &has_user, err);

    if (code == 0)
        code = count_of(store, COUNT_TOKENS, change->token.user, &count, err);
    if (code < 0)
        return code;
    if (!has_user)
        return REFUSE(change, ERR_NOT_FOUND, "no user %s", change->token.user);
    if (count >= STORE_TOKENS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "user %s has %d tokens already", change->token.user,
                      STORE_TOKENS_MAX);
    sql = store_sql(store, WRITE_TOKEN);
    row_put_token(&sql, &change->token);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "this token exists");
    return code;
}

static int change_token_remove(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_TOKEN_REMOVE);
    int changed = 0, code;

    sql_put_string(&sql, change->token.id);
    sql_put_string(&sql, change->token.user);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no such token");
    return code;
}

static int change_setting(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql;

    if (change->setting.value.length > STORE_SETTING_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a setting has at most %d bytes", STORE_SETTING_MAX);
    if (change->setting.value.length == 0) {
        sql = store_sql(store, WRITE_SETTING_REMOVE);
        sql_put_string(&sql, change->setting.key);
    } else {
        sql = store_sql(store, WRITE_SETTING);
        sql_put_string(&sql, change->setting.key);
        sql_put_blob(&sql, change->setting.value);
    }
    return sql_run(&sql, NULL, err);
}

static int change_end(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_END);

    if (change->end.tail.length > STORE_TAIL_MAX)
        return REFUSE(change, ERR_TOO_BIG, "last lines have at most %d bytes", STORE_TAIL_MAX);
    if (change->end.rule.text.length > STORE_MATCH_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a line that matched has at most %d bytes",
                      STORE_MATCH_MAX);
    row_put_end(&sql, &change->end);
    return sql_run(&sql, NULL, err);
}

static int change_barrier(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = store_sql(store, WRITE_BARRIER);

    sql_put_int(&sql, change->barrier.job.v);
    sql_put_int(&sql, change->barrier.kind);
    sql_put_int(&sql, change->barrier.attempt);
    return sql_run(&sql, NULL, err);
}

static int change_before(struct store *store, struct store_change *change,
                         enum write_statement which, struct err *err)
{
    struct sql sql = store_sql(store, which);

    sql_put_int(&sql, change->before_ms);
    return sql_run(&sql, NULL, err);
}

static int change_write(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql;

    switch (change->kind) {
    case CHANGE_TAG_ADD:
        return change_tag_add(store, change, err);
    case CHANGE_TAG_REMOVE:
        return change_tag_remove(store, change, err);
    case CHANGE_USER_ADD:
        return change_user_add(store, change, err);
    case CHANGE_USER_SET:
        return change_user_set(store, change, err);
    case CHANGE_USER_REMOVE:
        return change_user_remove(store, change, err);
    case CHANGE_TOKEN_ADD:
        return change_token_add(store, change, err);
    case CHANGE_TOKEN_REMOVE:
        return change_token_remove(store, change, err);
    case CHANGE_TOKENS_REMOVE:
        sql = store_sql(store, WRITE_TOKENS_REMOVE);
        sql_put_string(&sql, change->token.user);
        sql_put_int(&sql, change->token.is_application);
        sql_put_string(&sql, change->token.id);
        return sql_run(&sql, NULL, err);
    case CHANGE_SETTING:
        return change_setting(store, change, err);
    case CHANGE_END:
        return change_end(store, change, err);
    case CHANGE_BARRIER:
        return change_barrier(store, change, err);
    case CHANGE_LOG_TRIM:
        return change_before(store, change, WRITE_LOG_TRIM, err);
    case CHANGE_TOKENS_EXPIRE:
        return change_before(store, change, WRITE_TOKENS_EXPIRE, err);
    }
    assert(false && "a kind of change");
    return ERR_INTERNAL;
}

int store_write_changes(struct store *store, struct store_change *changes, size_t count,
                        struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < count; i++) {
        changes[i].code = 0;
        code = change_write(store, &changes[i], err);
    }
    return code;
}

void store_show_changes(struct store *store, const struct store_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct store_change *change = &changes[i];
        if (change->code < 0)
            continue;
        if (change->kind == CHANGE_TAG_ADD)
            job_index_tag(store->job_index, change->tag.job, change->tag.name);
        else if (change->kind == CHANGE_TAG_REMOVE)
            job_index_untag(store->job_index, change->tag.job, change->tag.name);
    }
}
