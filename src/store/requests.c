/* requests.c — what users and visitors ask administrators for. */
#include "base/address.h"
#include "base/err.h"
#include "base/utc.h"
#include "store/noun.h"
#include <assert.h>
#include <string.h>

#define HEAD(C)                                                                                         \
    C(id)                                                                                               \
    "," C(kind) "," C(state) "," C(user_name) "," C(virtual_cluster) "," C(email) "," C(address) "," C( \
        why) "," C(asked_ms) "," C(decided_ms) "," C(decider) "," C(answer) "," C(group_name)
#define COLUMNS(C) HEAD(C) "," C(password_hash)
#define SELECT                                                                                     \
    "SELECT " HEAD(COLUMN_NAME) ", CASE WHEN kind = 1 AND EXISTS (SELECT 1 FROM users u WHERE "    \
                                "u.name = user_name) THEN 1 ELSE 0 END, CASE WHEN kind = 1 AND "   \
                                "EXISTS (SELECT 1 FROM removed_users r WHERE r.name IN "           \
                                "(user_name, '')) THEN 1 ELSE 0 END FROM requests "

static const char insert[] = INSERT_NEW_INTO("requests", COLUMNS);
static const char decide[] =
    "UPDATE requests SET state = ?2, decided_ms = ?3, decider = ?4, answer = ?5, group_name = ?6, "
    "password_hash = '' WHERE id = ?1 AND state = 0";
static const char count_user[] = "SELECT count(*) FROM requests WHERE kind = 0 AND user_name = ?";
static const char count_same[] = "SELECT count(*) FROM requests WHERE kind = 0 AND state = 0 AND "
                                 "user_name = ? AND virtual_cluster = ?";
static const char count_open[] = "SELECT count(*) FROM requests WHERE state = 0 AND kind = ?";
static const char select_addresses[] = "SELECT address FROM requests WHERE state = 0 AND kind = ?";
static const char select_hash[] = "SELECT password_hash FROM requests WHERE id = ?";
static const char select_one[] = SELECT "WHERE id = ?";
static const char select_all[] = SELECT "WHERE (?1 = 0 OR state = 0)";
static const char select_user[] =
    SELECT "WHERE (?1 = 0 OR state = 0) AND kind = 0 AND user_name = ?2";
static const char delete_old[] = "DELETE FROM requests WHERE (state <> 0 AND decided_ms < ?1) OR "
                                 "(state = 0 AND kind = 1 AND asked_ms < ?1)";
static const char delete_many[] =
    "DELETE FROM requests WHERE state <> 0 AND decided_ms <= (SELECT decided_ms FROM requests "
    "WHERE state <> 0 ORDER BY decided_ms DESC LIMIT 1 OFFSET ?)";
static const char delete_user[] = "DELETE FROM requests WHERE kind = 0 AND user_name = ?";

#define SITE_FULL                                                                                  \
    "%d requests for accounts from your network wait already: speak with an administrator"

/* ---- rows ---- */

static void row_get(struct sql *sql, struct store_request *row, struct arena *arena)
{
    *row = (struct store_request){.id = sql_string(sql, arena), .password_hash = ""};
    row->kind = sql_int(sql) == REQUEST_ACCOUNT ? REQUEST_ACCOUNT : REQUEST_CLUSTER;
    const int64_t state = sql_int(sql);
    row->state =
        (enum request_state)(state >= 0 && state < REQUEST_STATES ? state : REQUEST_REFUSED);
    row->user = sql_string(sql, arena);
    row->virtual_cluster = sql_string(sql, arena);
    row->email = sql_string(sql, arena);
    row->address = sql_string(sql, arena);
    row->why = sql_string(sql, arena);
    row->asked_ms = sql_int(sql);
    row->decided_ms = sql_int(sql);
    row->decider = sql_string(sql, arena);
    row->answer = sql_string(sql, arena);
    row->group = sql_string(sql, arena);
    row->is_name_taken = sql_bool(sql);
    row->is_name_used = sql_bool(sql);
}

int request_read(struct session *session, struct text id, struct arena *arena,
                 struct store_request *row, struct err *err)
{
    assert(id.at);
    struct sql sql = sql_of(session, select_one);
    sql_put_text(&sql, id);
    int code = sql_next(&sql, err);
    if (code <= 0)
        return code;
    row_get(&sql, row, arena);
    sql_done(&sql);
    return 1;
}

/* ---- asking ---- */

static int open_count(struct store *store, enum request_kind kind, int64_t *count, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_open);
    sql_put_int(&sql, kind);
    return sql_number(&sql, count, err);
}

/* How many requests of the user are kept, and (`cluster` not NULL) are open for this one. */
static int own_count(struct store *store, const char *user, const char *cluster, int64_t *count,
                     struct err *err)
{
    struct sql sql = sql_of(&store->session, cluster ? count_same : count_user);
    sql_put_string(&sql, user);
    if (cluster)
        sql_put_string(&sql, cluster);
    return sql_number(&sql, count, err);
}

/* How many visitors of the address's network wait. Addresses that are none are one network. */
static int site_count(struct session *session, const char *address, uint64_t *count,
                      struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct address_range site;
    const bool has_site = address_site(text_of(address ? address : ""), &site);
    struct sql sql = sql_of(session, select_addresses);
    int code;
    *count = 0;
    sql_put_int(&sql, REQUEST_ACCOUNT);
    while ((code = sql_next(&sql, err)) > 0) {
        const struct text other = text_of(sql_string(&sql, &arena));
        *count += has_site ? address_range_has(&site, other) : !address_is_numeric(other);
    }
    return code;
}

/* How many strangers may wait. Whether there is a user of the name is looked at later only: nobody
 * is told that. */
static int account_check(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_request *row = &change->request.row;
    int64_t open = 0;
    uint64_t of_site = 0;
    assert(row->password_hash && row->password_hash[0] && !row->virtual_cluster);
    const size_t length = strlen(row->user);
    if (length == 0 || length > STORE_USER_NAME_MAX)
        return REFUSE(change, ERR_INVALID, "a user's name has 1 to %d bytes", STORE_USER_NAME_MAX);
    int code = open_count(store, REQUEST_ACCOUNT, &open, err);
    if (code == 0)
        code = site_count(&store->session, row->address, &of_site, err);
    if (code == 0 && of_site >= REQUESTS_OF_SITE_MAX)
        return REFUSE(change, ERR_BUSY, SITE_FULL, REQUESTS_OF_SITE_MAX);
    if (code == 0 && open >= REQUESTS_ACCOUNTS_MAX)
        return REFUSE(change, ERR_BUSY,
                      "%d requests for accounts wait already: speak with an administrator",
                      REQUESTS_ACCOUNTS_MAX);
    return code;
}

static int cluster_check(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_request *row = &change->request.row;
    int64_t own = 0, open = 0, same = 0;
    bool exists = false;
    assert(row->virtual_cluster && row->virtual_cluster[0] && !row->password_hash);
    int code = own_count(store, row->user, NULL, &own, err);
    if (code == 0)
        code = own_count(store, row->user, row->virtual_cluster, &same, err);
    if (code == 0)
        code = open_count(store, REQUEST_CLUSTER, &open, err);
    if (code == 0)
        code = user_exists(store, row->user, &exists, err);
    if (code < 0)
        return code;
    if (!exists)
        return REFUSE(change, ERR_NOT_FOUND, "no user %.100s", row->user);
    if (same)
        return REFUSE(change, ERR_CONFLICT, "%.100s has asked for %.100s already", row->user,
                      row->virtual_cluster);
    if (own >= REQUESTS_OF_USER_MAX)
        return REFUSE(change, ERR_TOO_BIG,
                      "%.100s has asked %d times within the last %d days: speak with an "
                      "administrator",
                      row->user, REQUESTS_OF_USER_MAX, REQUEST_KEEP_DAYS);
    if (open >= REQUESTS_OPEN_MAX)
        return REFUSE(change, ERR_TOO_BIG,
                      "%d requests wait already: an administrator has to decide some first",
                      REQUESTS_OPEN_MAX);
    return 0;
}

int request_add(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_request *row = &change->request.row;
    int changed = 0;
    assert(change->kind == CHANGE_REQUEST_ADD && row->id && row->id[0] && row->user && row->why);
    if (strlen(row->why) > REQUEST_WHY_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a reason has at most %d bytes", REQUEST_WHY_MAX);
    int code = row->kind == REQUEST_ACCOUNT ? account_check(store, change, err)
                                            : cluster_check(store, change, err);
    if (code < 0 || change->code < 0)
        return code;
    struct sql sql = sql_of(&store->session, insert);
    sql_put_string(&sql, row->id);
    sql_put_int(&sql, row->kind);
    sql_put_int(&sql, REQUEST_OPEN);
    sql_put_string(&sql, row->user);
    sql_put_string(&sql, row->virtual_cluster);
    sql_put_string(&sql, row->email);
    sql_put_string(&sql, row->address);
    sql_put_string(&sql, row->why);
    sql_put_int(&sql, row->asked_ms);
    sql_put_int(&sql, 0);
    sql_put_string(&sql, "");
    sql_put_string(&sql, "");
    sql_put_string(&sql, "");
    sql_put_string(&sql, row->password_hash);
    code = sql_run(&sql, &changed, err);
    if (code == 0 && changed == 0)
        return REFUSE(change, ERR_CONFLICT, "there is a request of this id already");
    return code;
}

/* ---- deciding ---- */

/* Another change on behalf of this one: what it is refused with, this one is. */
static int part_do(struct store *store, struct store_change *change, struct store_change *part,
                   int (*write)(struct store *store, struct store_change *change, struct err *err),
                   struct err *err)
{
    part->err = change->err;
    int code = write(store, part, err);
    change->code = part->code;
    return code;
}

static int group_check(struct store *store, struct store_change *change, const char *cluster,
                       struct err *err)
{
    const char *group = change->request.row.group;
    bool gives = false;
    int code = user_group_gives(store, group, cluster, &gives, err);
    if (code < 0 || gives)
        return code;
    if (!cluster[0])
        return REFUSE(change, ERR_CONFLICT,
                      "there is no group %.100s, or it makes its members administrators", group);
    return REFUSE(change, ERR_CONFLICT,
                  "the group %.100s does not grant %.100s, or it makes its members administrators",
                  group, cluster);
}

static int cluster_grant(struct store *store, struct store_change *change,
                         const struct store_request *row, struct err *err)
{
    const char *group = change->request.row.group;
    bool exists = false;
    int code = user_exists(store, row->user, &exists, err);
    if (code == 0 && !exists)
        return REFUSE(change, ERR_NOT_FOUND, "no user %.100s", row->user);
    if (code < 0)
        return code;
    if (!group || !group[0])
        return user_cluster_add(store, change, row->user, row->virtual_cluster, err);
    code = group_check(store, change, row->virtual_cluster, err);
    if (code < 0 || change->code < 0)
        return code;
    struct store_change member = {.kind = CHANGE_MEMBER_ADD,
                                  .member = {row->user, group, -1 /* as it was */}};
    return part_do(store, change, &member, member_add, err);
}

static int hash_read(struct store *store, const char *id, struct arena *arena, const char **hash,
                     struct err *err)
{
    struct sql sql = sql_of(&store->session, select_hash);
    sql_put_string(&sql, id);
    int code = sql_next(&sql, err);
    assert(code != 0); /* the row has been read */
    if (code < 0)
        return code;
    *hash = sql_string(&sql, arena);
    sql_done(&sql);
    return 0;
}

/* Everybody is in the group `default`, where there is one. */
static int account_make(struct store *store, struct store_change *change,
                        const struct store_request *row, struct arena *arena, struct err *err)
{
    static const char everybody[] = "default";
    const char *group = change->request.row.group, *hash = "";
    struct store_member groups[2];
    size_t count = 0;
    bool exists = false;
    int code = group && group[0] ? group_check(store, change, "", err) : 0;
    if (code == 0 && change->code == 0)
        code = user_group_exists(store, everybody, &exists, err);
    if (code == 0 && change->code == 0)
        code = hash_read(store, row->id, arena, &hash, err);
    if (code < 0 || change->code < 0)
        return code;
    if (exists)
        groups[count++] = (struct store_member){.name = everybody};
    if (group && group[0] && strcmp(group, everybody) != 0)
        groups[count++] = (struct store_member){.name = group};
    struct store_change user = {.kind = CHANGE_USER_ADD,
                                .reuses_name = change->reuses_name,
                                .user = {.name = row->user,
                                         .password_hash = hash,
                                         .email = row->email,
                                         .groups = {groups, count},
                                         .extension_json = "{}",
                                         .is_requested = true,
                                         .created_ms = change->request.row.decided_ms}};
    return part_do(store, change, &user, user_add, err);
}

static int row_decide(struct store *store, const struct store_request *given,
                      enum request_state state, struct err *err)
{
    struct sql sql = sql_of(&store->session, decide);
    assert(given->decided_ms != 0 && state != REQUEST_OPEN);
    sql_put_string(&sql, given->id);
    sql_put_int(&sql, state);
    sql_put_int(&sql, given->decided_ms);
    sql_put_string(&sql, given->decider);
    sql_put_string(&sql, given->answer);
    sql_put_string(&sql, given->group);
    return sql_run_one(&sql, err);
}

/* In the transaction of the decision. Who has asked for an account that is refused is no user, and
 * the address is a stranger's word: nothing is sent there. */
static int decision_tell(struct store *store, const struct store_change *change,
                         const struct store_request *row, enum request_state state, struct err *err)
{
    const struct store_request *given = &change->request.row;
    const bool is_accepted = state == REQUEST_ACCEPTED;
    assert(state != REQUEST_OPEN);
    if (!change->request.is_told || state == REQUEST_WITHDRAWN ||
        (row->kind == REQUEST_ACCOUNT && !is_accepted))
        return 0;
    const struct store_change told = {
        .kind = CHANGE_NOTICE_ADD,
        .notice = {NOTICE_MAIL,
                   {.kind = is_accepted ? NOTICE_ACCEPTED : NOTICE_REFUSED,
                    .at_ms = given->decided_ms,
                    .user = row->user,
                    .job_name = row->id,
                    .virtual_cluster = row->kind == REQUEST_CLUSTER ? row->virtual_cluster : "",
                    .phrase = given->group ? given->group : "",
                    .why = given->answer ? given->answer : ""}}};
    return notice_add(store, &told, err);
}

static int row_act(struct store *store, struct store_change *change, struct arena *arena,
                   struct err *err)
{
    struct store_request row;
    enum request_state next;
    char when[UTC_SIZE];
    int code = request_read(&store->session, text_of(change->request.row.id), arena, &row, err);
    if (code < 0)
        return code;
    if (code == 0)
        return REFUSE(change, ERR_NOT_FOUND, "there is no such request");
    if (!request_step(row.state, change->request.act, &next))
        return REFUSE(change, ERR_CONFLICT, "it was %s by %.100s at %s",
                      request_state_name(row.state), row.decider, utc_text(row.decided_ms, when));
    if (next == row.state)
        return 0;
    code = 0;
    if (next == REQUEST_ACCEPTED)
        code = row.kind == REQUEST_ACCOUNT ? account_make(store, change, &row, arena, err)
                                           : cluster_grant(store, change, &row, err);
    if (code < 0 || change->code < 0)
        return code;
    code = row_decide(store, &change->request.row, next, err);
    return code < 0 ? code : decision_tell(store, change, &row, next, err);
}

int request_act(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_REQUEST_ACT && change->request.row.id);
    const char *answer = change->request.row.answer;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (answer && strlen(answer) > REQUEST_WHY_MAX)
        return REFUSE(change, ERR_TOO_BIG, "an answer has at most %d bytes", REQUEST_WHY_MAX);
    return row_act(store, change, &arena, err);
}

int requests_trim(struct store *store, const struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_REQUESTS_TRIM);
    return rows_trim(store, delete_old, delete_many, change, err);
}

int requests_remove(struct store *store, const char *user, struct err *err)
{
    assert(user && *user);
    struct sql sql = sql_of(&store->session, delete_user);
    sql_put_string(&sql, user);
    return sql_run(&sql, NULL, err);
}

/* ---- reads ---- */

int store_requests(struct store_reader *reader, const struct request_filter *filter,
                   struct arena *arena, struct store_requests *requests, struct err *err)
{
    struct {
        struct store_request *items;
        size_t count, room;
    } list = {0};
    const bool has_user = filter->user.length;
    struct sql sql = sql_of(&reader->session, has_user ? select_user : select_all);
    int code;
    sql_put_int(&sql, filter->is_open);
    if (has_user)
        sql_put_text(&sql, filter->user);
    while ((code = sql_next(&sql, err)) > 0)
        row_get(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, requests);
    return code;
}

int store_request(struct store_reader *reader, struct text id, struct arena *arena,
                  struct store_request *request, struct err *err)
{
    assert(reader->session.db);
    int code = request_read(&reader->session, id, arena, request, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no such request");
    return code < 0 ? code : 0;
}

int store_request_site(struct store_reader *reader, const char *address, struct err *err)
{
    uint64_t of_site = 0;
    assert(reader->session.db);
    const int code = site_count(&reader->session, address, &of_site, err);
    if (code == 0 && of_site >= REQUESTS_OF_SITE_MAX)
        return err_fail(err, ERR_BUSY, "", SITE_FULL, REQUESTS_OF_SITE_MAX);
    return code;
}
