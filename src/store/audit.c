/* audit.c — what was asked to be changed, by whom, and what became of it. */
#include "base/err.h"
#include "base/printable.h"
#include "store/noun.h"
#include "sys/log.h"
#include <assert.h>

enum { SHORT_MAX = 320, TRIM_MAX = 20000 };

#define COLUMNS(C)                                                                                 \
    C(at_ms)                                                                                       \
    "," C(user_name) "," C(token) "," C(address) "," C(permission) "," C(route) "," C(             \
        subject_kind) "," C(subject) "," C(code) "," C(reason) "," C(before_json) "," C(after_json)

static const char insert[] = INSERT_INTO("audit", COLUMNS);
#define OLDEST "number IN (SELECT number FROM audit ORDER BY number LIMIT 20000)"
static const char delete_old[] = "DELETE FROM audit WHERE " OLDEST " AND at_ms < ?";
static const char delete_many[] =
    "DELETE FROM audit WHERE " OLDEST " AND number <= (SELECT max(number) FROM audit) - ?";
/* ?1 may be the largest number; ?6: only those that were refused */
#define SELECT(condition)                                                                          \
    "SELECT " COLUMNS(COLUMN_NAME) ", number FROM audit WHERE number < ?1 AND at_ms >= ?4 AND "    \
                                   "at_ms < ?5 AND (?6 = 0 OR code <> 0) AND " condition           \
                                   " ORDER BY number DESC LIMIT ?7"
static const char select_all[] = SELECT("?2 = '' AND ?3 = ''");
static const char select_user[] = SELECT("user_name = ?2 AND ?3 = ''");
static const char select_subject[] = SELECT("?2 = '' AND subject = ?3");
static const char select_both[] = SELECT("user_name = ?2 AND subject = ?3");
/* by the index audit_places alone, whatever else has been asked for */
static const char select_places[] =
    "SELECT user_name, address, max(at_ms) FROM audit WHERE code = 0 AND route = ? AND at_ms >= ? "
    "GROUP BY user_name, address ORDER BY max(at_ms) DESC LIMIT ?";

/* Others' words: safe to show, and not longer than they should be. */
static void words_put(struct sql *sql, const char *words, struct buf *scratch)
{
    buf_clear(scratch);
    printable_put(scratch, printable_head(text_of(words ? words : ""), SHORT_MAX));
    sql_put_text(sql, buf_as_text(scratch));
}

static void json_put(struct sql *sql, const char *json)
{
    sql_put_string(sql, json && strlen(json) > STORE_AUDIT_MAX ? "{\"tooLong\":true}" : json);
}

/* The strings that differ from those of the record. */
struct audited {
    int code;
    const char *reason, *subject_kind, *subject, *before, *after;
};

static int audit_write(struct store *store, const struct store_audit *audit,
                       const struct audited *outcome, struct err *err)
{
    struct sql sql = sql_of(&store->session, insert);
    cleanup_buf struct buf subject = BUF_INIT, reason = BUF_INIT;
    sql_put_int(&sql, audit->at_ms);
    sql_put_string(&sql, audit->user);
    sql_put_string(&sql, audit->token);
    sql_put_string(&sql, audit->address);
    sql_put_string(&sql, audit->right);
    sql_put_string(&sql, audit->route);
    sql_put_string(&sql, outcome->subject_kind);
    words_put(&sql, outcome->subject, &subject);
    sql_put_int(&sql, outcome->code);
    words_put(&sql, outcome->reason, &reason);
    json_put(&sql, outcome->before);
    json_put(&sql, outcome->after);
    return sql_run(&sql, NULL, err);
}

static struct audited audited_of(const struct store_change *change)
{
    assert(change->audit && change->code <= 0);
    const struct store_audit *audit = change->audit;
    struct audited outcome = {.code = audit->code,
                              .reason = audit->reason,
                              .subject_kind = audit->subject_kind,
                              .subject = audit->subject,
                              .before = audit->before,
                              .after = audit->after};
    if (change->kind != CHANGE_AUDIT) {
        outcome.code = change->code;
        outcome.reason = change->code < 0 && change->err ? change->err->text : "";
    }
    if (!outcome.subject || !outcome.subject[0])
        audit_subject_of(change, &outcome.subject_kind, &outcome.subject);
    return outcome;
}

/* While the disk is nearly full, only what ended or removed something takes room for its record:
 * else anybody could fill what is left, by requests that are refused or by logging in again and
 * again. */
static bool takes_room(const struct store_change *change, const struct audited *outcome)
{
    const enum store_change_kind kind = change->kind;
    const bool is_end = kind == CHANGE_AUDIT || kind == CHANGE_TAG_REMOVE ||
                        kind == CHANGE_USER_REMOVE || kind == CHANGE_MEMBER_REMOVE ||
                        kind == CHANGE_GROUP_REMOVE || kind == CHANGE_TEMPLATE_REMOVE;
    return is_end && outcome->code == 0;
}

static const char *word_or(const char *word, const char *other)
{
    return word && word[0] ? word : other;
}

static void audit_log(const struct store_audit *audit, const struct audited *outcome)
{
    cleanup_buf struct buf subject = BUF_INIT;
    printable_put(&subject, printable_head(text_of(word_or(outcome->subject, "-")), SHORT_MAX));
    log_warning("store",
                "the disk is full, so this is recorded here alone: %s, subject %s, by %s from %s: "
                "%s",
                word_or(audit->route, "-"), buf_cstr(&subject), word_or(audit->user, "nobody"),
                word_or(audit->address, "-"), outcome->code ? err_name(outcome->code) : "done");
}

int audit_around(struct store *store, struct store_change *change,
                 int (*write)(struct store *store, struct store_change *change, struct err *err),
                 struct err *err)
{
    cleanup_audit_state struct audit_state before = {0}, after = {0};
    cleanup_buf struct buf was = BUF_INIT, is = BUF_INIT;
    assert(change->audit);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    int code = audit_state_read(store, change, &arena, &before, err);
    if (code == 0)
        code = write(store, change, err);
    if (code == 0)
        code = audit_state_read(store, change, &arena, &after, err);
    if (code < 0)
        return code;
    audit_state_write(&before, &after, &was);
    audit_state_write(&after, &before, &is);
    struct audited outcome = audited_of(change);
    if (store_is_short(store) && !takes_room(change, &outcome)) {
        audit_log(change->audit, &outcome);
        return 0;
    }
    if (was.length || is.length) {
        outcome.before = buf_cstr(&was);
        outcome.after = buf_cstr(&is);
    }
    return audit_write(store, change->audit, &outcome, err);
}

int audit_trim(struct store *store, const struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_AUDIT_TRIM);
    return rows_trim(store, delete_old, delete_many, change, err);
}

static void row_get(struct sql *sql, struct store_audit *audit, struct arena *arena)
{
    audit->at_ms = sql_int(sql);
    audit->user = sql_string(sql, arena);
    audit->token = sql_string(sql, arena);
    audit->address = sql_string(sql, arena);
    audit->right = sql_string(sql, arena);
    audit->route = sql_string(sql, arena);
    audit->subject_kind = sql_string(sql, arena);
    audit->subject = sql_string(sql, arena);
    audit->code = (int)sql_int(sql);
    audit->reason = sql_string(sql, arena);
    audit->before = sql_string(sql, arena);
    audit->after = sql_string(sql, arena);
    audit->number = (uint64_t)sql_int(sql);
}

int store_audits(struct store_reader *reader, const struct audit_filter *filter,
                 struct arena *arena, struct store_audits *audits, struct err *err)
{
    static const char *const selects[] = {select_all, select_user, select_subject, select_both};
    struct {
        struct store_audit *items;
        size_t count, room;
    } list = {0};
    struct sql sql =
        sql_of(&reader->session,
               selects[(filter->user.length ? 1 : 0) + (filter->subject.length ? 2 : 0)]);
    int code;

    assert(reader->session.db);
    sql_put_int(&sql, filter->before ? (int64_t)filter->before : INT64_MAX);
    sql_put_text(&sql, filter->user);
    sql_put_text(&sql, filter->subject);
    sql_put_int(&sql, filter->since_ms);
    sql_put_int(&sql, filter->until_ms ? filter->until_ms : INT64_MAX);
    sql_put_int(&sql, filter->wants_refused);
    sql_put_int(&sql, (int64_t)filter->limit);
    while ((code = sql_next(&sql, err)) > 0)
        row_get(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, audits);
    return code;
}

int store_audit_places(struct store_reader *reader, struct text route, int64_t since_ms,
                       uint64_t limit, struct arena *arena, struct store_audit_places *places,
                       struct err *err)
{
    struct {
        struct audit_place *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_places);
    int code;

    assert(reader->session.db && limit <= INT64_MAX);
    sql_put_text(&sql, route);
    sql_put_int(&sql, since_ms);
    sql_put_int(&sql, (int64_t)limit);
    while ((code = sql_next(&sql, err)) > 0) {
        struct audit_place *place = ARRAY_ADD(&list);
        place->user = sql_string(&sql, arena);
        place->address = sql_string(&sql, arena);
        place->at_ms = sql_int(&sql);
    }
    LIST_HAND_OVER(&list, arena, places);
    return code;
}
