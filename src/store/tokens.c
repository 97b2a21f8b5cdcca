/* tokens.c — what a login or an application holds; the token itself is never stored. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C)                                                                                 \
    C(id) "," C(owner) "," C(is_application) "," C(created_ms) "," C(expires_ms) "," C(scope)

static const char insert[] = INSERT_NEW_INTO("tokens", COLUMNS);
static const char delete[] = "DELETE FROM tokens WHERE id = ? AND owner = ?";
static const char delete_others[] =
    "DELETE FROM tokens WHERE owner = ? AND is_application <= ? AND id <> ?";
static const char delete_user[] = "DELETE FROM tokens WHERE owner = ?";
static const char delete_expired[] = "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens "
                                     "WHERE expires_ms <> 0 AND expires_ms < ? LIMIT 1000)";
static const char delete_oldest[] =
    "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens "
    "WHERE owner = ? AND is_application = 0 AND id <> ? "
    "ORDER BY expires_ms <> 0 AND expires_ms <= ? DESC, created_ms, id LIMIT ?)";
static const char count_kind[] =
    "SELECT count(*) FROM tokens WHERE owner = ? AND is_application = ?";
static const char select_one[] = "SELECT " COLUMNS(COLUMN_NAME) " FROM tokens WHERE id = ?";
static const char select_user[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM tokens WHERE owner = ? ORDER BY created_ms DESC, id";

static void row_put(struct sql *sql, const struct store_token *token)
{
    assert(token->id && *token->id && token->user);
    sql_put_string(sql, token->id);
    sql_put_string(sql, token->user);
    sql_put_int(sql, token->is_application);
    sql_put_int(sql, token->created_ms);
    sql_put_int(sql, token->expires_ms);
    sql_put_int(sql, token->scope);
}

static void row_get(struct sql *sql, struct store_token *token, struct arena *arena)
{
    assert(sql->statement);
    token->id = sql_string(sql, arena);
    token->user = sql_string(sql, arena);
    token->is_application = sql_bool(sql);
    token->created_ms = sql_int(sql);
    token->expires_ms = sql_int(sql);
    token->scope = (uint8_t)sql_int(sql);
}

static int count_of(struct store *store, const struct store_token *token, int64_t *count,
                    struct err *err)
{
    struct sql sql = sql_of(&store->session, count_kind);
    sql_put_string(&sql, token->user);
    sql_put_int(&sql, token->is_application);
    return sql_number(&sql, count, err);
}

/* Ends logins beyond the limit, `token` excepted: those that have expired, then the oldest. */
static int logins_trim(struct store *store, const struct store_token *token, int64_t count,
                       struct err *err)
{
    assert(count >= 0);
    struct sql sql = sql_of(&store->session, delete_oldest);
    if (count <= STORE_TOKENS_MAX)
        return 0;
    sql_put_string(&sql, token->user);
    sql_put_string(&sql, token->id);
    sql_put_int(&sql, token->created_ms);
    sql_put_int(&sql, count - STORE_TOKENS_MAX);
    return sql_run(&sql, NULL, err);
}

int token_add(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_token *token = &change->token;
    struct sql sql = sql_of(&store->session, insert);
    bool has_user;
    int64_t count = 0;
    int changed = 0, code = user_exists(store, token->user, &has_user, err);
    assert(change->kind == CHANGE_TOKEN_ADD);
    if (code == 0)
        code = count_of(store, token, &count, err);
    if (code < 0)
        return code;
    if (!has_user)
        return REFUSE(change, ERR_NOT_FOUND, "no user %s", token->user);
    if (token->is_application && count >= STORE_TOKENS_MAX)
        return REFUSE(change, ERR_TOO_BIG,
                      "user %s has %d tokens of applications, and may have no more: revoke those "
                      "that are not needed (DELETE /api/v2/tokens/TOKEN)",
                      token->user, STORE_TOKENS_MAX);
    row_put(&sql, token);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "this token exists");
    return code < 0 || token->is_application ? code : logins_trim(store, token, count + 1, err);
}

int token_remove(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete);
    int changed = 0, code;
    assert(change->kind == CHANGE_TOKEN_REMOVE);
    sql_put_string(&sql, change->token.id);
    sql_put_string(&sql, change->token.user);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no such token");
    return code;
}

int tokens_remove(struct store *store, const struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete_others);
    assert(change->kind == CHANGE_TOKENS_REMOVE);
    sql_put_string(&sql, change->token.user);
    sql_put_int(&sql, change->token.is_application);
    sql_put_string(&sql, change->token.id);
    return sql_run(&sql, NULL, err);
}

int tokens_remove_all(struct store *store, const char *user, struct err *err)
{
    assert(user);
    struct sql sql = sql_of(&store->session, delete_user);
    sql_put_string(&sql, user);
    return sql_run(&sql, NULL, err);
}

int tokens_remove_browser(struct store *store, const char *user, const char *kept, struct err *err)
{
    assert(user);
    struct sql sql = sql_of(&store->session, delete_others);
    sql_put_string(&sql, user);
    sql_put_int(&sql, false);
    sql_put_string(&sql, kept ? kept : "");
    return sql_run(&sql, NULL, err);
}

int tokens_expire(struct store *store, int64_t before_ms, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete_expired);
    sql_put_int(&sql, before_ms);
    return sql_run(&sql, NULL, err);
}

int store_token(struct store_reader *reader, struct text id, struct arena *arena,
                struct store_token *token, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    assert(reader->session.db);
    sql_put_text(&sql, id);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no such token");
    if (code < 0)
        return code;
    row_get(&sql, token, arena);
    sql_done(&sql);
    return 0;
}

int store_tokens(struct store_reader *reader, struct text user, struct arena *arena,
                 struct store_tokens *tokens, struct err *err)
{
    struct store_token *items = arena_array(arena, 2 * STORE_TOKENS_MAX, sizeof *items);
    struct sql sql = sql_of(&reader->session, select_user);
    assert(reader->session.db);
    *tokens = (struct store_tokens){items, 0};
    sql_put_text(&sql, user);
    int code;
    while ((code = sql_next(&sql, err)) > 0)
        if (tokens->count < 2 * STORE_TOKENS_MAX)
            row_get(&sql, &items[tokens->count++], arena);
    return code;
}
