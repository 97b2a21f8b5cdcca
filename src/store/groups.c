/* groups.c — groups, who is in them, and what users and groups were granted. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>
#include <string.h>

#define COLUMNS(C)                                                                                 \
    C(name)                                                                                        \
    "," C(description) "," C(created_ms) "," C(external_name) "," C(is_admin) "," C(extension_json)

static const char insert[] = INSERT_NEW_INTO("groups", COLUMNS);
/* The columns whose bit is in ?7; only when the extension is ?8, if that is given. */
/* clang-format off */
static const char update[] = "UPDATE groups SET"
    COLUMN_IF("?7", description, 1, "?2") ","
    COLUMN_IF("?7", created_ms, 128, "?3") ","
    COLUMN_IF("?7", external_name, 2, "?4") ","
    COLUMN_IF("?7", is_admin, 4, "?5") ","
    COLUMN_IF("?7", extension_json, 16, "?6")
    " WHERE name = ?1 AND (?8 = '' OR extension_json = ?8)";
/* clang-format on */
static const char delete[] = "DELETE FROM groups WHERE name = ?";
static const char count_all[] = "SELECT count(*) FROM groups";
static const char count_name[] = "SELECT count(*) FROM groups WHERE name = ?";
static const char select_one[] = "SELECT " COLUMNS(COLUMN_NAME) " FROM groups WHERE name = ?";
static const char select_page[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM groups WHERE name > ? ORDER BY name LIMIT ?";
/* those that users are in whose names are from ?1 to ?2 */
#define GROUPS_OF_RANGE "(SELECT group_name FROM members WHERE user_name >= ?1 AND user_name <= ?2)"
static const char select_range[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM groups WHERE name IN " GROUPS_OF_RANGE " ORDER BY name";

static const char insert_member[] =
    "INSERT INTO members (user_name, group_name, is_admin) VALUES (?,?,?) ON CONFLICT DO NOTHING";
static const char delete_user_members[] = "DELETE FROM members WHERE user_name = ?";
static const char delete_group_members[] = "DELETE FROM members WHERE group_name = ?";
/* ?3 < 0: who is a member already stays what they are */
static const char put_member[] =
    "INSERT INTO members (user_name, group_name, is_admin) VALUES (?1, ?2, CASE WHEN ?3 > 0 THEN 1 "
    "ELSE 0 END) ON CONFLICT "
    "(user_name, group_name) DO UPDATE SET is_admin = CASE WHEN ?3 < 0 THEN members.is_admin "
    "ELSE excluded.is_admin END";
static const char delete_member[] = "DELETE FROM members WHERE user_name = ? AND group_name = ?";
static const char count_user_groups[] = "SELECT count(*) FROM members WHERE user_name = ?";
#define USER_GROUPS_ARE                                                                            \
    "SELECT m.user_name, m.group_name, m.is_admin, g.is_admin FROM members m "                     \
    "JOIN groups g ON g.name = m.group_name "
static const char select_user_groups[] =
    USER_GROUPS_ARE "WHERE m.user_name = ? ORDER BY m.group_name";
static const char select_range_groups[] =
    USER_GROUPS_ARE "WHERE m.user_name >= ? AND m.user_name <= ? ORDER BY m.user_name, "
                    "m.group_name";
static const char select_members[] = "SELECT group_name, user_name, is_admin, 0 FROM members "
                                     "WHERE group_name = ? ORDER BY user_name";
/* with whether they are admins of the platform */
static const char select_members_page[] =
    "SELECT m.user_name, m.is_admin, CASE WHEN u.is_admin <> 0 OR EXISTS (SELECT 1 FROM members o "
    "JOIN groups g ON g.name = o.group_name WHERE o.user_name = m.user_name AND g.is_admin <> 0) "
    "THEN 1 ELSE 0 END FROM members m JOIN users u ON u.name = m.user_name "
    "WHERE m.group_name = ? AND m.user_name > ? ORDER BY m.user_name LIMIT ?";
/* who may log in and is an admin, by themselves or as a member */
static const char count_admins[] =
    "SELECT count(*) FROM (SELECT name FROM users WHERE is_admin <> 0 AND is_inactive = 0 UNION "
    "SELECT m.user_name FROM groups g JOIN members m ON m.group_name = g.name JOIN users u ON "
    "u.name = m.user_name WHERE g.is_admin <> 0 AND u.is_inactive = 0) admins";
static const char begin_change[] = "SAVEPOINT account_change";
static const char undo_change[] = "ROLLBACK TO SAVEPOINT account_change";
static const char end_change[] = "RELEASE SAVEPOINT account_change";

static const char insert_grant[] = "INSERT INTO grants (is_group, holder, kind, subject) "
                                   "VALUES (?,?,?,?) ON CONFLICT DO NOTHING";
static const char delete_grants[] = "DELETE FROM grants WHERE is_group = ? AND holder = ?";
static const char count_grants[] =
    "SELECT count(*) FROM grants WHERE is_group = ? AND holder = ? AND kind = ?";
static const char count_giving[] =
    "SELECT count(*) FROM groups WHERE name = ?1 AND is_admin = 0 AND (?2 = '' OR EXISTS (SELECT 1 "
    "FROM grants WHERE is_group = 1 AND holder = ?1 AND kind = ?3 AND subject = ?2))";
static const char select_grants[] = "SELECT holder, subject FROM grants WHERE is_group = ? AND "
                                    "holder = ? AND kind = ? ORDER BY subject";
/* of users, or groups, whose names are from ?1 to ?2 */
static const char select_range_grants[] =
    "SELECT holder, subject FROM grants WHERE holder >= ?1 AND holder <= ?2 AND is_group = ?3 AND "
    "kind = ?4 ORDER BY holder, subject";
static const char select_range_group_grants[] =
    "SELECT holder, subject FROM grants WHERE holder IN " GROUPS_OF_RANGE
    " AND is_group = 1 AND kind = ?3 ORDER BY holder, subject";
/* the user's own, and those of the groups that the user is in */
static const char select_given[] =
    "SELECT subject FROM grants WHERE is_group = 0 AND holder = ?1 AND kind = ?2 UNION "
    "SELECT g.subject FROM members m JOIN grants g ON g.is_group = 1 AND g.holder = m.group_name "
    "AND g.kind = ?2 WHERE m.user_name = ?1 ORDER BY 1";

/* --- lists --- */

struct name_list {
    const char **items;
    size_t count, room;
};

struct member_list {
    struct store_member *items;
    size_t count, room;
};

static struct store_names names_hand_over(struct name_list *list, struct arena *arena)
{
    struct {
        const char **items;
        size_t count;
    } out;

    LIST_HAND_OVER(list, arena, &out);
    return (struct store_names){out.items, out.count};
}

static struct store_members members_hand_over(struct member_list *list, struct arena *arena)
{
    struct store_members out;
    LIST_HAND_OVER(list, arena, &out);
    return out;
}

static bool is_name(const char *name)
{
    assert(name);
    size_t length = strlen(name);
    return length > 0 && length <= STORE_USER_NAME_MAX;
}

/* --- changes --- */

static int grants_put(struct store *store, bool is_group, const char *holder,
                      const struct store_names *clusters, struct err *err)
{
    assert(holder && (clusters->items || clusters->count == 0));
    struct sql sql = sql_of(&store->session, delete_grants);
    sql_put_int(&sql, is_group);
    sql_put_string(&sql, holder);
    int code = sql_run(&sql, NULL, err);
    for (size_t i = 0; code == 0 && i < clusters->count; i++) {
        sql = sql_of(&store->session, insert_grant);
        sql_put_int(&sql, is_group);
        sql_put_string(&sql, holder);
        sql_put_int(&sql, GRANT_CLUSTER);
        sql_put_string(&sql, clusters->items[i]);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

static int members_remove(struct store *store, const char *text, const char *name, struct err *err)
{
    assert(name && *name);
    struct sql sql = sql_of(&store->session, text);
    sql_put_string(&sql, name);
    return sql_run(&sql, NULL, err);
}

/* Refuses names that no row takes: change->code says whether. */
static int clusters_check(struct store_change *change, const struct store_names *clusters)
{
    if (clusters->count > STORE_GRANTS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "at most %d virtual clusters can be granted",
                      STORE_GRANTS_MAX);
    for (size_t i = 0; i < clusters->count; i++)
        if (!clusters->items[i][0] || strlen(clusters->items[i]) > STORE_CLUSTER_NAME_MAX)
            return REFUSE(change, ERR_INVALID, "a virtual cluster's name has 1 to %d bytes",
                          STORE_CLUSTER_NAME_MAX);
    return 0;
}

int user_group_exists(struct store *store, const char *name, bool *exists, struct err *err)
{
    assert(name);
    struct sql sql = sql_of(&store->session, count_name);
    sql_put_string(&sql, name);
    int64_t count;
    int code = sql_number(&sql, &count, err);
    *exists = count > 0;
    return code;
}

int user_rights_check(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_USER_ADD || change->kind == CHANGE_USER_SET);
    static const struct store_members none;
    unsigned fields = change->fields ? change->fields : ~0u;
    const struct store_members *groups = fields & USER_GROUPS ? &change->user.groups : &none;
    bool exists = true;
    int code = fields & USER_CLUSTERS ? clusters_check(change, &change->user.virtual_clusters) : 0;
    if (change->code == 0 && groups->count > STORE_USER_GROUPS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a user is in at most %d groups", STORE_USER_GROUPS_MAX);
    for (size_t i = 0; code == 0 && change->code == 0 && i < groups->count; i++) {
        code = user_group_exists(store, groups->items[i].name, &exists, err);
        if (code == 0 && !exists)
            return REFUSE(change, ERR_NOT_FOUND, "no group %.100s", groups->items[i].name);
    }
    return code;
}

static int user_groups_put(struct store *store, const struct store_user *user, struct err *err)
{
    int code = members_remove(store, delete_user_members, user->name, err);
    for (size_t i = 0; code == 0 && i < user->groups.count; i++) {
        struct sql sql = sql_of(&store->session, insert_member);
        sql_put_string(&sql, user->name);
        sql_put_string(&sql, user->groups.items[i].name);
        sql_put_int(&sql, user->groups.items[i].is_admin);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

int user_rights_put(struct store *store, const struct store_user *user, unsigned fields,
                    struct err *err)
{
    assert(user->name && *user->name);
    int code = fields & USER_GROUPS ? user_groups_put(store, user, err) : 0;
    if (code == 0 && (fields & USER_CLUSTERS))
        code = grants_put(store, false, user->name, &user->virtual_clusters, err);
    return code;
}

int user_rights_remove(struct store *store, const char *user, struct err *err)
{
    assert(user);
    int code = members_remove(store, delete_user_members, user, err);
    if (code == 0)
        code = grants_put(store, false, user, &(struct store_names){0}, err);
    return code == 0 ? quotas_remove(store, false, user, err) : code;
}

int user_cluster_add(struct store *store, struct store_change *change, const char *user,
                     const char *cluster, struct err *err)
{
    assert(user && *user && cluster && *cluster);
    struct sql sql = sql_of(&store->session, count_grants);
    int64_t count = 0;
    sql_put_int(&sql, false);
    sql_put_string(&sql, user);
    sql_put_int(&sql, GRANT_CLUSTER);
    int code = sql_number(&sql, &count, err);
    if (code < 0)
        return code;
    if (count >= STORE_GRANTS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "at most %d virtual clusters can be granted",
                      STORE_GRANTS_MAX);
    sql = sql_of(&store->session, insert_grant);
    sql_put_int(&sql, false);
    sql_put_string(&sql, user);
    sql_put_int(&sql, GRANT_CLUSTER);
    sql_put_string(&sql, cluster);
    return sql_run(&sql, NULL, err);
}

int user_group_gives(struct store *store, const char *group, const char *cluster, bool *gives,
                     struct err *err)
{
    assert(group && *group && gives);
    struct sql sql = sql_of(&store->session, count_giving);
    int64_t count = 0;
    sql_put_string(&sql, group);
    sql_put_string(&sql, cluster);
    sql_put_int(&sql, GRANT_CLUSTER);
    int code = sql_number(&sql, &count, err);
    *gives = count > 0;
    return code;
}

static void row_put(struct sql *sql, const struct store_group *group)
{
    sql_put_string(sql, group->name);
    sql_put_string(sql, group->description);
    sql_put_int(sql, group->created_ms);
    sql_put_string(sql, group->external_name);
    sql_put_int(sql, group->is_admin);
    sql_put_string(sql, group->extension_json ? group->extension_json : "{}");
}

static int group_check(struct store_change *change, unsigned fields)
{
    assert(change->kind == CHANGE_GROUP_ADD || change->kind == CHANGE_GROUP_SET);
    const struct store_group *group = &change->group;
    if (!is_name(group->name))
        return REFUSE(change, ERR_INVALID, "a group's name has 1 to %d bytes", STORE_USER_NAME_MAX);
    if ((fields & GROUP_DESCRIPTION) && strlen(group->description) > STORE_DESCRIPTION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a description has at most %d bytes",
                      STORE_DESCRIPTION_MAX);
    if ((fields & GROUP_EXTERNAL_NAME) && group->external_name &&
        strlen(group->external_name) > STORE_DESCRIPTION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an external name has at most %d bytes",
                      STORE_DESCRIPTION_MAX);
    if ((fields & GROUP_EXTENSION) && group->extension_json &&
        strlen(group->extension_json) > STORE_EXTENSION_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an extension has at most %d bytes",
                      STORE_EXTENSION_MAX);
    return fields & GROUP_CLUSTERS ? clusters_check(change, &group->virtual_clusters) : 0;
}

int user_group_add(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_GROUP_ADD);
    struct sql sql = sql_of(&store->session, count_all);
    int changed = 0, code = group_check(change, ~0u);
    if (change->code < 0)
        return code;
    int64_t count;
    code = sql_number(&sql, &count, err);
    if (code < 0)
        return code;
    if (count >= STORE_GROUPS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "there are %d groups already", STORE_GROUPS_MAX);
    sql = sql_of(&store->session, insert);
    row_put(&sql, &change->group);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "group %s exists", change->group.name);
    if (code < 0)
        return code;
    return grants_put(store, true, change->group.name, &change->group.virtual_clusters, err);
}

int user_group_set(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_GROUP_SET);
    unsigned fields = change->fields ? change->fields : ~0u;
    bool exists = false;
    int changed = 0, code = group_check(change, fields);
    if (change->code < 0)
        return code;
    code = user_group_exists(store, change->group.name, &exists, err);
    if (code == 0 && !exists)
        return REFUSE(change, ERR_NOT_FOUND, "no group %s", change->group.name);
    if (code < 0)
        return code;
    struct sql sql = sql_of(&store->session, update);
    row_put(&sql, &change->group);
    sql_put_int(&sql, fields & INT32_MAX);
    sql_put_string(&sql, change->extension_was);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "group %s was changed meanwhile: try again",
                      change->group.name);
    if (code < 0 || !(fields & GROUP_CLUSTERS))
        return code;
    return grants_put(store, true, change->group.name, &change->group.virtual_clusters, err);
}

int user_group_remove(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_GROUP_REMOVE);
    struct sql sql = sql_of(&store->session, delete);
    int changed = 0, code;
    sql_put_string(&sql, change->group.name);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_NOT_FOUND, "no group %s", change->group.name);
    if (code == 0)
        code = members_remove(store, delete_group_members, change->group.name, err);
    if (code == 0)
        code = quotas_remove(store, true, change->group.name, err);
    if (code == 0)
        code = templates_unshare(store, change->group.name, err);
    if (code < 0)
        return code;
    return grants_put(store, true, change->group.name, &(struct store_names){0}, err);
}

/* Both must exist; change->code says whether. */
static int member_check(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_MEMBER_ADD || change->kind == CHANGE_MEMBER_REMOVE);
    bool has_user = false, has_group = false;
    int code = user_exists(store, change->member.user, &has_user, err);
    if (code == 0)
        code = user_group_exists(store, change->member.group, &has_group, err);
    if (code < 0)
        return code;
    if (!has_group)
        return REFUSE(change, ERR_NOT_FOUND, "no group %.100s", change->member.group);
    if (!has_user)
        return REFUSE(change, ERR_NOT_FOUND, "no user %.100s", change->member.user);
    return 0;
}

int member_add(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_MEMBER_ADD);
    struct sql sql = sql_of(&store->session, count_user_groups);
    int64_t count = 0;
    int code = member_check(store, change, err);
    if (code < 0 || change->code < 0)
        return code;
    sql_put_string(&sql, change->member.user);
    code = sql_number(&sql, &count, err);
    if (code < 0)
        return code;
    if (count >= STORE_USER_GROUPS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a user is in at most %d groups", STORE_USER_GROUPS_MAX);
    sql = sql_of(&store->session, put_member);
    sql_put_string(&sql, change->member.user);
    sql_put_string(&sql, change->member.group);
    sql_put_int(&sql, change->member.is_admin);
    return sql_run(&sql, NULL, err);
}

int member_remove(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_MEMBER_REMOVE);
    int code = member_check(store, change, err);
    if (code < 0 || change->code < 0)
        return code;
    struct sql sql = sql_of(&store->session, delete_member);
    sql_put_string(&sql, change->member.user);
    sql_put_string(&sql, change->member.group);
    return sql_run(&sql, NULL, err);
}

static int plain_run(struct store *store, const char *text, struct err *err)
{
    assert(text);
    struct sql sql = sql_of(&store->session, text);
    return sql_run(&sql, NULL, err);
}

static int admins_count(struct store *store, int64_t *count, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_admins);
    return sql_number(&sql, count, err);
}

int admins_guard(struct store *store, struct store_change *change,
                 int (*write)(struct store *store, struct store_change *change, struct err *err),
                 struct err *err)
{
    assert(write);
    int64_t before = 0, after = 0;
    int code = admins_count(store, &before, err);
    if (code == 0)
        code = plain_run(store, begin_change, err);
    if (code == 0)
        code = write(store, change, err);
    if (code == 0)
        code = admins_count(store, &after, err);
    if (code < 0)
        return code;
    if (before > 0 && after == 0) {
        code = plain_run(store, undo_change, err);
        if (code == 0)
            code = REFUSE(change, ERR_FORBIDDEN, "no admin would be left who may log in");
    }
    return code == 0 ? plain_run(store, end_change, err) : code;
}

/* --- reads --- */

/* Rows (owner, other, is_admin): the others of the owner; `sql` is bound. */
static int read_members(struct sql *sql, struct arena *arena, struct store_members *members,
                        struct err *err)
{
    struct member_list list = {0};
    int code;
    while ((code = sql_next(sql, err)) > 0) {
        struct store_member *member = ARRAY_ADD(&list);
        sql_string(sql, arena);
        member->name = sql_string(sql, arena);
        member->is_admin = sql_bool(sql);
        member->makes_admins = sql_bool(sql);
    }
    *members = members_hand_over(&list, arena);
    return code;
}

static int read_clusters(struct store_reader *reader, bool is_group, const char *holder,
                         struct arena *arena, struct store_names *clusters, struct err *err)
{
    assert(holder);
    struct sql sql = sql_of(&reader->session, select_grants);
    struct name_list list = {0};
    sql_put_int(&sql, is_group);
    sql_put_string(&sql, holder);
    sql_put_int(&sql, GRANT_CLUSTER);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        sql_string(&sql, arena);
        *ARRAY_ADD(&list) = sql_string(&sql, arena);
    }
    *clusters = names_hand_over(&list, arena);
    return code;
}

int user_rights_read(struct store_reader *reader, struct arena *arena, struct store_user *user,
                     struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_user_groups);
    assert(reader->session.db);
    sql_put_string(&sql, user->name);
    int code = read_members(&sql, arena, &user->groups, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < user->groups.count; i++)
        user->is_admin_by_group = user->is_admin_by_group || user->groups.items[i].makes_admins;
    return read_clusters(reader, false, user->name, arena, &user->virtual_clusters, err);
}

/* Rows come in the order of the users: those of a user follow each other. */
static struct store_user *user_next(struct store_users *users, size_t *at, const char *name)
{
    while (*at < users->count && strcmp(users->items[*at].name, name) < 0)
        ++*at;
    if (*at == users->count || strcmp(users->items[*at].name, name) != 0)
        return NULL;
    return &users->items[*at];
}

static int users_groups_read(struct store_reader *reader, struct arena *arena,
                             struct store_users *users, struct err *err)
{
    assert(users->count > 0);
    struct sql sql = sql_of(&reader->session, select_range_groups);
    struct store_user *user = NULL, *next;
    struct member_list list = {0};
    size_t at = 0;
    sql_put_string(&sql, users->items[0].name);
    sql_put_string(&sql, users->items[users->count - 1].name);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        next = user_next(users, &at, sql_string(&sql, arena));
        if (user && next != user)
            user->groups = members_hand_over(&list, arena);
        user = next;
        if (!user)
            continue;
        struct store_member *member = ARRAY_ADD(&list);
        member->name = sql_string(&sql, arena);
        member->is_admin = sql_bool(&sql);
        member->makes_admins = sql_bool(&sql);
        user->is_admin_by_group = user->is_admin_by_group || member->makes_admins;
    }
    if (user)
        user->groups = members_hand_over(&list, arena);
    return code;
}

/* A user or a group, and where its virtual clusters go. */
struct holder {
    const char *name;
    struct store_names *clusters;
};

/* Rows (holder, virtual cluster) in order of both, of some of these holders in order of their
 * names; `sql` is bound. */
static int holders_clusters_read(struct sql *sql, struct arena *arena, const struct holder *holders,
                                 size_t count, struct err *err)
{
    const struct holder *holder = holders, *end = holders + count;
    struct name_list list = {0};
    int code;
    while ((code = sql_next(sql, err)) > 0) {
        const char *name = sql_string(sql, arena);
        for (; holder < end && strcmp(holder->name, name) < 0; holder++)
            *holder->clusters = names_hand_over(&list, arena);
        if (holder < end && strcmp(holder->name, name) == 0)
            *ARRAY_ADD(&list) = sql_string(sql, arena);
    }
    for (; holder < end; holder++)
        *holder->clusters = names_hand_over(&list, arena);
    return code;
}

static int users_clusters_read(struct store_reader *reader, struct arena *arena,
                               struct store_users *users, struct err *err)
{
    assert(users->count > 0);
    struct holder *holders = ARENA_ARRAY(arena, struct holder, users->count);
    for (size_t i = 0; i < users->count; i++)
        holders[i] = (struct holder){users->items[i].name, &users->items[i].virtual_clusters};
    struct sql sql = sql_of(&reader->session, select_range_grants);
    sql_put_string(&sql, holders[0].name);
    sql_put_string(&sql, holders[users->count - 1].name);
    sql_put_int(&sql, false);
    sql_put_int(&sql, GRANT_CLUSTER);
    return holders_clusters_read(&sql, arena, holders, users->count, err);
}

int users_rights_read(struct store_reader *reader, struct arena *arena, struct store_users *users,
                      struct err *err)
{
    assert(reader->session.db);
    if (users->count == 0)
        return 0;
    int code = users_groups_read(reader, arena, users, err);
    return code == 0 ? users_clusters_read(reader, arena, users, err) : code;
}

static void row_get(struct sql *sql, struct store_group *group, struct arena *arena)
{
    assert(sql->statement);
    *group = (struct store_group){.name = sql_string(sql, arena)};
    group->description = sql_string(sql, arena);
    group->created_ms = sql_int(sql);
    group->external_name = sql_string(sql, arena);
    group->is_admin = sql_bool(sql);
    group->extension_json = sql_string(sql, arena);
}

static int read_group(struct store_reader *reader, struct text name, struct arena *arena,
                      struct store_group *group, struct store_members *members, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    sql_put_text(&sql, name);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no group %.*s",
                        (int)(name.length > 64 ? 64 : name.length), name.at);
    if (code < 0)
        return code;
    row_get(&sql, group, arena);
    sql_done(&sql);
    if (members) {
        sql = sql_of(&reader->session, select_members);
        sql_put_string(&sql, group->name);
        code = read_members(&sql, arena, members, err);
        if (code < 0)
            return code;
    }
    return read_clusters(reader, true, group->name, arena, &group->virtual_clusters, err);
}

int store_group(struct store_reader *reader, struct text name, struct arena *arena,
                struct store_group *group, struct store_members *members, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_group(reader, name, arena, group, members, err);
    reader_end(reader);
    return code;
}

int store_members_page(struct store_reader *reader, const char *group, struct text after,
                       uint64_t most, struct arena *arena, struct store_members *members,
                       struct err *err)
{
    assert(reader->session.db);
    struct sql sql = sql_of(&reader->session, select_members_page);
    struct member_list list = {0};
    sql_put_string(&sql, group);
    sql_put_text(&sql, after.at ? after : TEXT(""));
    sql_put_int(&sql, most < INT64_MAX ? (int64_t)most : INT64_MAX);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_member *member = ARRAY_ADD(&list);
        member->name = sql_string(&sql, arena);
        member->is_admin = sql_bool(&sql);
        member->is_cluster_admin = sql_bool(&sql);
    }
    *members = members_hand_over(&list, arena);
    return code;
}

/* `sql` is bound. */
static int read_groups(struct sql *sql, struct arena *arena, struct store_groups *groups,
                       struct err *err)
{
    struct {
        struct store_group *items;
        size_t count, room;
    } list = {0};
    int code;

    while ((code = sql_next(sql, err)) > 0)
        row_get(sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, groups);
    return code;
}

static const struct holder *groups_holders(const struct store_groups *groups, struct arena *arena)
{
    struct holder *holders = ARENA_ARRAY(arena, struct holder, groups->count + 1);
    for (size_t i = 0; i < groups->count; i++)
        holders[i] = (struct holder){groups->items[i].name, &groups->items[i].virtual_clusters};
    return holders;
}

static int read_groups_page(struct store_reader *reader, struct text after, uint64_t most,
                            struct arena *arena, struct store_groups *groups, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_page);
    sql_put_text(&sql, after.at ? after : TEXT(""));
    sql_put_int(&sql, most < INT64_MAX ? (int64_t)most : INT64_MAX);
    int code = read_groups(&sql, arena, groups, err);
    if (code < 0 || groups->count == 0)
        return code;
    sql = sql_of(&reader->session, select_range_grants);
    sql_put_string(&sql, groups->items[0].name);
    sql_put_string(&sql, groups->items[groups->count - 1].name);
    sql_put_int(&sql, true);
    sql_put_int(&sql, GRANT_CLUSTER);
    return holders_clusters_read(&sql, arena, groups_holders(groups, arena), groups->count, err);
}

static int read_groups_of(struct store_reader *reader, const struct store_users *users,
                          struct arena *arena, struct store_groups *groups, struct err *err)
{
    const char *first = users->items[0].name, *last = users->items[users->count - 1].name;
    struct sql sql = sql_of(&reader->session, select_range);
    sql_put_string(&sql, first);
    sql_put_string(&sql, last);
    int code = read_groups(&sql, arena, groups, err);
    if (code < 0)
        return code;
    sql = sql_of(&reader->session, select_range_group_grants);
    sql_put_string(&sql, first);
    sql_put_string(&sql, last);
    sql_put_int(&sql, GRANT_CLUSTER);
    return holders_clusters_read(&sql, arena, groups_holders(groups, arena), groups->count, err);
}

int store_groups_page(struct store_reader *reader, struct text after, uint64_t most,
                      struct arena *arena, struct store_groups *groups, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_groups_page(reader, after, most, arena, groups, err);
    reader_end(reader);
    return code;
}

int store_groups(struct store_reader *reader, struct arena *arena, struct store_groups *groups,
                 struct err *err)
{
    return store_groups_page(reader, TEXT(""), UINT64_MAX, arena, groups, err);
}

int store_groups_of(struct store_reader *reader, const struct store_users *users,
                    struct arena *arena, struct store_groups *groups, struct err *err)
{
    assert(reader->session.db);
    *groups = (struct store_groups){0};
    if (users->count == 0)
        return 0;
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_groups_of(reader, users, arena, groups, err);
    reader_end(reader);
    return code;
}

int store_user_clusters(struct store_reader *reader, const char *user, struct arena *arena,
                        struct store_names *clusters, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_given);
    struct name_list list = {0};
    assert(reader->session.db);
    sql_put_string(&sql, user);
    sql_put_int(&sql, GRANT_CLUSTER);
    int code;
    while ((code = sql_next(&sql, err)) > 0)
        *ARRAY_ADD(&list) = sql_string(&sql, arena);
    *clusters = names_hand_over(&list, arena);
    return code;
}
