/* users.c — who may log in. */
#include "base/err.h"
#include "store/job_index.h"
#include "store/noun.h"
#include <assert.h>
#include <string.h>

#define COLUMNS(C)                                                                                 \
    C(name)                                                                                        \
    "," C(password_hash) "," C(email) "," C(is_admin) "," C(extension_json) "," C(                 \
        created_ms) "," C(is_inactive) "," C(identity) "," C(is_requested)

static const char insert[] = INSERT_NEW_INTO("users", COLUMNS);
/* The columns whose bit is in ?10; only when the extension is ?11, if that is given. */
/* clang-format off */
static const char update[] = "UPDATE users SET"
    COLUMN_IF("?10", password_hash, 1, "?2") ","
    COLUMN_IF("?10", email, 2, "?3") ","
    COLUMN_IF("?10", is_admin, 4, "?4") ","
    COLUMN_IF("?10", extension_json, 64, "?5") ","
    COLUMN_IF("?10", created_ms, 128, "?6") ","
    COLUMN_IF("?10", is_inactive, 8, "?7") ","
    COLUMN_IF("?10", identity, 256, "?8")
    " WHERE name = ?1 AND (?11 = '' OR extension_json = ?11)";
/* clang-format on */
static const char adopt[] = "UPDATE users SET password_hash = '', extension_json = '{}', "
                            "is_requested = 0 WHERE name = ? AND is_requested <> 0";
static const char delete[] = "DELETE FROM users WHERE name = ?";
/* The name's own row, else the one without a name: not all names are kept. */
static const char select_removed[] = "SELECT name, identity FROM removed_users "
                                     "WHERE name IN (?, '') ORDER BY name DESC LIMIT 1";
/* ?2: there is room for the name. */
static const char insert_removed[] =
    "INSERT INTO removed_users (name, identity) SELECT CASE WHEN ?2 = 1 THEN name ELSE '' END, "
    "CASE WHEN ?2 = 1 THEN identity ELSE '' END FROM users WHERE name = ?1 "
    "ON CONFLICT (name) DO UPDATE SET identity = excluded.identity";
static const char count_removed[] = "SELECT count(*) FROM removed_users";
static const char delete_removed[] = "DELETE FROM removed_users WHERE name = ?";
static const char count_all[] = "SELECT count(*) FROM users";
static const char count_name[] = "SELECT count(*) FROM users WHERE name = ?";
static const char count_identity[] =
    "SELECT count(*) FROM users WHERE identity = ?1 AND identity <> '' AND name <> ?2";
static const char select_identity[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM users WHERE identity = ? AND identity <> ''";
static const char select_one[] = "SELECT " COLUMNS(COLUMN_NAME) " FROM users WHERE name = ?";
static const char select_page[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM users WHERE name > ? ORDER BY name LIMIT ?";

static void row_put(struct sql *sql, const struct store_user *user)
{
    sql_put_string(sql, user->name);
    sql_put_string(sql, user->password_hash);
    sql_put_string(sql, user->email);
    sql_put_int(sql, user->is_admin);
    sql_put_string(sql, user->extension_json);
    sql_put_int(sql, user->created_ms);
    sql_put_int(sql, user->is_inactive);
    sql_put_string(sql, user->identity);
    sql_put_int(sql, user->is_requested);
}

static void row_get(struct sql *sql, struct store_user *user, struct arena *arena)
{
    assert(sql->statement);
    *user = (struct store_user){.name = sql_string(sql, arena)};
    user->password_hash = sql_string(sql, arena);
    user->email = sql_string(sql, arena);
    user->is_admin = sql_bool(sql);
    user->extension_json = sql_string(sql, arena);
    user->created_ms = sql_int(sql);
    user->is_inactive = sql_bool(sql);
    user->identity = sql_string(sql, arena);
    user->is_requested = sql_bool(sql);
}

/* Nobody is two users: change->code says whether another one has the identity. */
static int identity_check(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_USER_ADD || change->kind == CHANGE_USER_SET);
    const char *identity = change->user.identity;
    struct sql sql = sql_of(&store->session, count_identity);
    int64_t count = 0;
    if (!identity || !identity[0])
        return 0;
    if (strlen(identity) > STORE_IDENTITY_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an identity has at most %d bytes", STORE_IDENTITY_MAX);
    sql_put_string(&sql, identity);
    sql_put_string(&sql, change->user.name);
    int code = sql_number(&sql, &count, err);
    if (code == 0 && count > 0)
        return REFUSE(change, ERR_CONFLICT, "another user has the identity %.100s", identity);
    return code;
}

/* A storage that is not shared has a folder for each name, and keeps that of a user who was
 * removed; only whom the provider calls the same comes back. */
static int name_check(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_user *user = &change->user;
    struct sql sql = sql_of(&store->session, select_removed);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (change->reuses_name)
        return 0;
    sql_put_string(&sql, user->name);
    const int code = sql_next(&sql, err);
    if (code <= 0)
        return code;
    const bool is_known = sql_string(&sql, &arena)[0];
    const char *identity = sql_string(&sql, &arena);
    sql_done(&sql);
    if (identity[0] && user->identity && strcmp(identity, user->identity) == 0)
        return 0;
    change->code =
        err_fail(change->err, ERR_CONFLICT, STORE_REUSES_NAME,
                 "there %s a user %.64s before, whose folders in storages would become theirs: "
                 "choose another name, or look at what is left and say that the name is used again "
                 "(" STORE_REUSES_NAME ")",
                 is_known ? "was" : "may have been", user->name);
    return 0;
}

/* Before the user's row goes. A folder may outlive every name that is kept, so that none is
 * forgotten for another one. */
static int removed_put(struct store *store, const char *name, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_removed);
    int64_t count = 0;
    assert(name && *name);
    const int code = sql_number(&sql, &count, err);
    if (code < 0)
        return code;
    sql = sql_of(&store->session, insert_removed);
    sql_put_string(&sql, name);
    sql_put_int(&sql, count < STORE_REMOVED_MAX);
    return sql_run(&sql, NULL, err);
}

static int removed_drop(struct store *store, const char *name, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete_removed);
    assert(name && *name);
    sql_put_string(&sql, name);
    return sql_run(&sql, NULL, err);
}

int user_add(struct store *store, struct store_change *change, struct err *err)
{
    size_t length = strlen(change->user.name);
    struct sql sql = sql_of(&store->session, count_all);
    int changed = 0, code;
    assert(change->kind == CHANGE_USER_ADD);
    if (length == 0 || length > STORE_USER_NAME_MAX)
        return REFUSE(change, ERR_INVALID, "a user's name has 1 to %d bytes", STORE_USER_NAME_MAX);
    if (strlen(change->user.extension_json) > STORE_EXTENSION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an extension has at most %d bytes",
                      STORE_EXTENSION_MAX);
    int64_t count;
    code = sql_number(&sql, &count, err);
    if (code == 0)
        code = identity_check(store, change, err);
    if (code == 0 && change->code == 0)
        code = user_rights_check(store, change, err);
    if (code < 0 || change->code < 0)
        return code;
    if (job_index_has_user(store->job_index, text_of(change->user.name)))
        return REFUSE(change, ERR_CONFLICT,
                      "there are jobs of an earlier user %s, which would become theirs: delete "
                      "them first, or choose another name",
                      change->user.name);
    if (count >= STORE_USERS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "there are %d users already", STORE_USERS_MAX);
    code = name_check(store, change, err);
    if (code < 0 || change->code < 0)
        return code;
    sql = sql_of(&store->session, insert);
    row_put(&sql, &change->user);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "user %s exists", change->user.name);
    if (code == 0 && count > 0)
        code = accounts_mark_several(store, count == 1, err);
    if (code == 0)
        code = removed_drop(store, change->user.name, err);
    return code == 0 ? user_rights_put(store, &change->user, ~0u, err) : code;
}

/* What follows from a change of its fields. */
static int user_tokens_revoke(struct store *store, const struct store_change *change,
                              struct err *err)
{
    const struct store_user *user = &change->user;
    const unsigned fields = change->fields; /* who replaces everything says what becomes of them */
    assert(change->kind == CHANGE_USER_SET);
    if ((fields & USER_INACTIVE) && user->is_inactive)
        return tokens_remove_all(store, user->name, err);
    if (fields & USER_PASSWORD)
        return tokens_remove_browser(store, user->name, change->token_kept, err);
    return 0;
}

/* Somebody whom the provider knows gets the account. A visitor has chosen its password, and may
 * have made tokens, and given keys for ssh (which stand in the extension). */
static int user_adopt(struct store *store, const struct store_user *user, struct err *err)
{
    struct sql sql = sql_of(&store->session, adopt);
    int changed = 0;
    assert(user->identity && user->identity[0]);
    sql_put_string(&sql, user->name);
    const int code = sql_run(&sql, &changed, err);
    return code == 0 && changed > 0 ? tokens_remove_all(store, user->name, err) : code;
}

int user_set(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_user *user = &change->user;
    unsigned fields = change->fields ? change->fields : ~0u;
    bool exists = false;
    int changed = 0, code;
    assert(change->kind == CHANGE_USER_SET);
    if ((fields & USER_EXTENSION) && strlen(user->extension_json) > STORE_EXTENSION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an extension has at most %d bytes",
                      STORE_EXTENSION_MAX);
    code = user_exists(store, user->name, &exists, err);
    if (code == 0 && !exists)
        return REFUSE(change, ERR_NOT_FOUND, "no user %s", user->name);
    if (code == 0 && (fields & USER_IDENTITY))
        code = identity_check(store, change, err);
    if (code == 0 && change->code == 0)
        code = user_rights_check(store, change, err);
    if (code < 0 || change->code < 0)
        return code;
    struct sql sql = sql_of(&store->session, update);
    row_put(&sql, user);
    sql_put_int(&sql, fields & INT32_MAX);
    sql_put_string(&sql, change->extension_was);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "user %s was changed meanwhile: try again", user->name);
    if (code == 0)
        code = user_rights_put(store, user, fields, err);
    if (code == 0 && (change->fields & USER_IDENTITY) && user->identity[0])
        code = user_adopt(store, user, err);
    return code == 0 ? user_tokens_revoke(store, change, err) : code;
}

int user_remove(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete);
    int changed = 0, code;
    assert(change->kind == CHANGE_USER_REMOVE && change->user.name[0]);
    code = removed_put(store, change->user.name, err);
    if (code < 0)
        return code;
    sql_put_string(&sql, change->user.name);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no user %s", change->user.name);
    if (code == 0) /* the last admin stays: there were two */
        code = accounts_mark_several(store, false, err);
    if (code == 0)
        code = user_rights_remove(store, change->user.name, err);
    if (code == 0)
        code = submit_keys_remove(store, change->user.name, err);
    if (code == 0)
        code = templates_remove(store, change->user.name, err);
    if (code == 0)
        code = requests_remove(store, change->user.name, err);
    return code == 0 ? tokens_remove_all(store, change->user.name, err) : code;
}

int user_exists(struct store *store, const char *name, bool *exists, struct err *err)
{
    assert(name && exists);
    struct sql sql = sql_of(&store->session, count_name);
    sql_put_string(&sql, name);
    int64_t count;
    int code = sql_number(&sql, &count, err);
    *exists = count > 0;
    return code;
}

static int read_user(struct store_reader *reader, struct text name, struct arena *arena,
                     struct store_user *user, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    sql_put_text(&sql, name);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no user %.*s",
                        (int)(name.length > 64 ? 64 : name.length), name.at);
    if (code < 0)
        return code;
    row_get(&sql, user, arena);
    sql_done(&sql);
    return user_rights_read(reader, arena, user, err);
}

int store_user(struct store_reader *reader, struct text name, struct arena *arena,
               struct store_user *user, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_user(reader, name, arena, user, err);
    reader_end(reader);
    return code;
}

static int read_identity(struct store_reader *reader, struct text identity, struct arena *arena,
                         struct store_user *user, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_identity);
    sql_put_text(&sql, identity);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no user has this identity");
    if (code < 0)
        return code;
    row_get(&sql, user, arena);
    sql_done(&sql);
    return user_rights_read(reader, arena, user, err);
}

int store_user_identified(struct store_reader *reader, struct text identity, struct arena *arena,
                          struct store_user *user, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_identity(reader, identity, arena, user, err);
    reader_end(reader);
    return code;
}

static int read_users(struct store_reader *reader, struct text after, uint64_t most,
                      struct arena *arena, struct store_users *users, struct err *err)
{
    struct {
        struct store_user *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_page);
    int code;

    sql_put_text(&sql, after.at ? after : TEXT(""));
    sql_put_int(&sql, most < INT64_MAX ? (int64_t)most : INT64_MAX);
    while ((code = sql_next(&sql, err)) > 0)
        row_get(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, users);
    return code == 0 ? users_rights_read(reader, arena, users, err) : code;
}

int store_users_page(struct store_reader *reader, struct text after, uint64_t most,
                     struct arena *arena, struct store_users *users, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_users(reader, after, most, arena, users, err);
    reader_end(reader);
    return code;
}

int store_users(struct store_reader *reader, struct arena *arena, struct store_users *users,
                struct err *err)
{
    return store_users_page(reader, TEXT(""), UINT64_MAX, arena, users, err);
}
