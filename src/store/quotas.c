/* quotas.c — how much users may have and do: their own quotas, and those of their groups. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

static const char put[] =
    "INSERT INTO quotas (is_group, holder, kind, value) VALUES (?,?,?,?) "
    "ON CONFLICT (is_group, holder, kind) DO UPDATE SET value = excluded.value";
static const char delete[] = "DELETE FROM quotas WHERE is_group = ? AND holder = ? AND kind = ?";
static const char delete_holder[] = "DELETE FROM quotas WHERE is_group = ? AND holder = ?";
static const char select_holder[] =
    "SELECT kind, value FROM quotas WHERE is_group = ? AND holder = ?";
/* the largest of each kind last */
static const char select_groups[] =
    "SELECT q.kind, q.value, q.holder FROM members m JOIN quotas q ON q.is_group = 1 AND "
    "q.holder = m.group_name WHERE m.user_name = ? ORDER BY q.value, q.holder DESC";

static const char select_shares[] =
    "SELECT holder, value FROM quotas WHERE is_group = 0 AND kind = ?1 UNION ALL "
    "SELECT m.user_name, max(q.value) FROM members m JOIN quotas q ON q.is_group = 1 AND "
    "q.holder = m.group_name WHERE q.kind = ?1 AND NOT EXISTS (SELECT 1 FROM quotas o WHERE "
    "o.is_group = 0 AND o.holder = m.user_name AND o.kind = ?1) GROUP BY m.user_name";

static int value_write(struct store *store, const struct store_change *change, int kind,
                       struct err *err)
{
    assert(kind >= 0 && kind < QUOTA_KIND_COUNT);
    const int64_t value = change->quotas.values.values[kind];
    struct sql sql = sql_of(&store->session, value == QUOTA_NONE ? delete : put);
    sql_put_int(&sql, change->quotas.is_group);
    sql_put_string(&sql, change->quotas.holder);
    sql_put_int(&sql, kind);
    if (value != QUOTA_NONE)
        sql_put_int(&sql, value);
    return sql_run(&sql, NULL, err);
}

int quotas_set(struct store *store, struct store_change *change, struct err *err)
{
    const char *holder = change->quotas.holder;
    bool exists = false;
    int code = change->quotas.is_group ? user_group_exists(store, holder, &exists, err)
                                       : user_exists(store, holder, &exists, err);
    assert(change->kind == CHANGE_QUOTAS);
    if (code == 0 && !exists)
        return REFUSE(change, ERR_NOT_FOUND, "no %s %.100s",
                      change->quotas.is_group ? "group" : "user", holder);
    for (int kind = 0; code == 0 && kind < QUOTA_KIND_COUNT; kind++) {
        const int64_t value = change->quotas.values.values[kind];
        if (!(change->quotas.kinds & 1u << kind))
            continue;
        if (value < QUOTA_NONE || value > QUOTA_MAX)
            return REFUSE(change, ERR_INVALID, "%s must be in 0..%d",
                          quota_name((enum quota_kind)kind), QUOTA_MAX);
    }
    for (int kind = 0; code == 0 && kind < QUOTA_KIND_COUNT; kind++)
        if (change->quotas.kinds & 1u << kind)
            code = value_write(store, change, kind, err);
    return code;
}

int quotas_remove(struct store *store, bool is_group, const char *holder, struct err *err)
{
    assert(holder);
    struct sql sql = sql_of(&store->session, delete_holder);
    sql_put_int(&sql, is_group);
    sql_put_string(&sql, holder);
    return sql_run(&sql, NULL, err);
}

int quotas_read(struct session *session, bool is_group, struct text holder, struct quotas *quotas,
                struct err *err)
{
    assert(session->db);
    struct sql sql = sql_of(session, select_holder);
    quotas_init(quotas);
    sql_put_int(&sql, is_group);
    sql_put_text(&sql, holder);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        const int64_t kind = sql_int(&sql);
        if (kind >= 0 && kind < QUOTA_KIND_COUNT)
            quotas->values[kind] = sql_int(&sql);
    }
    return code;
}

int store_quotas(struct store_reader *reader, bool is_group, struct text holder,
                 struct quotas *quotas, struct err *err)
{
    return quotas_read(&reader->session, is_group, holder, quotas, err);
}

static int read_user(struct store_reader *reader, struct text user, struct arena *arena,
                     struct store_user_quotas *quotas, struct err *err)
{
    assert(reader->session.db);
    struct sql sql = sql_of(&reader->session, select_groups);
    *quotas = (struct store_user_quotas){0};
    quotas_init(&quotas->values);
    sql_put_text(&sql, user);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        const int64_t kind = sql_int(&sql);
        if (kind < 0 || kind >= QUOTA_KIND_COUNT)
            continue;
        quotas->values.values[kind] = sql_int(&sql);
        quotas->groups[kind] = sql_string(&sql, arena);
    }
    struct quotas own;
    if (code == 0)
        code = quotas_read(&reader->session, false, user, &own, err);
    for (int kind = 0; code == 0 && kind < QUOTA_KIND_COUNT; kind++) {
        if (own.values[kind] == QUOTA_NONE)
            continue;
        quotas->values.values[kind] = own.values[kind];
        quotas->groups[kind] = NULL;
    }
    return code;
}

int store_user_quotas(struct store_reader *reader, struct text user, struct arena *arena,
                      struct store_user_quotas *quotas, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_user(reader, user, arena, quotas, err);
    reader_end(reader);
    return code;
}

int store_quota_shares(struct store_reader *reader, enum quota_kind kind, struct arena *arena,
                       struct store_shares *shares, struct err *err)
{
    assert((unsigned)kind < QUOTA_KIND_COUNT);
    struct {
        struct store_share *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_shares);
    sql_put_int(&sql, (int64_t)kind);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_share *share = ARRAY_ADD(&list);
        share->user = sql_string(&sql, arena);
        share->value = sql_int(&sql);
    }
    LIST_HAND_OVER(&list, arena, shares);
    return code;
}
