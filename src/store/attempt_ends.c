/* attempt_ends.c — what is kept of an attempt's end beside its row: the rule that matched, the last
 * lines.
 */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C)                                                                                 \
    C(attempt)                                                                                     \
    "," C(tail) "," C(rule_code) "," C(rule_phrase) "," C(rule_number) "," C(rule_pattern) "," C(  \
        rule_line) "," C(rule_file) "," C(matched_log) "," C(matched_text)

#define FROM_ROW                                                                                   \
    " FROM task_attempts WHERE attempt = ?1 AND" IS_NOT_DELETED("job") "ON CONFLICT (attempt) DO " \
                                                                       "NOTHING"
/* The rule is kept only when the attempt's row has its code. */
#define IF_CODE(mark, otherwise) "CASE WHEN code = ?3 THEN " mark " ELSE " otherwise " END"
static const char insert
    [] = "INSERT INTO attempt_ends (" COLUMNS(COLUMN_NAME) ") SELECT ?1, ?2, " IF_CODE("?3", "0") ", " IF_CODE(
        "?4",
        "''") ", " IF_CODE("?5",
                           "0") ", " IF_CODE("?6",
                                             "0") ", " IF_CODE("?7",
                                                               "0") ", " IF_CODE("?8",
                                                                                 "''") ", " IF_CODE("?9",
                                                                                                    "''") ", " IF_CODE("?10",
                                                                                                                       "''")
        FROM_ROW;
static const char delete_job[] =
    "DELETE FROM attempt_ends WHERE attempt IN (SELECT attempt FROM tasks WHERE "
    "job = ?1 UNION SELECT attempt FROM task_attempts WHERE job = ?1)";
static const char select_one[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM attempt_ends WHERE attempt = ?1 AND NOT EXISTS "
                                   "(SELECT 1 FROM task_attempts WHERE attempt = ?1 AND job IN "
                                   "(SELECT job FROM deleted_jobs))";

static void row_put(struct sql *sql, const struct store_attempt_end *end)
{
    sql_put_int(sql, (int64_t)end->attempt.v);
    sql_put_blob(sql, end->tail);
    sql_put_int(sql, end->rule.code);
    sql_put_string(sql, end->rule.phrase);
    sql_put_int(sql, end->rule.number);
    sql_put_int(sql, end->rule.pattern);
    sql_put_int(sql, end->rule.line);
    sql_put_string(sql, end->rule.file);
    sql_put_string(sql, end->rule.log);
    sql_put_text(sql, end->rule.text);
}

static void row_get(struct sql *sql, struct store_attempt_end *end, struct arena *arena)
{
    assert(sql->statement);
    end->attempt.v = (uint64_t)sql_int(sql);
    end->tail = sql_text(sql, arena);
    end->rule.code = (int32_t)sql_int(sql);
    end->rule.phrase = sql_string(sql, arena);
    end->rule.number = (uint32_t)sql_int(sql);
    end->rule.pattern = (uint32_t)sql_int(sql);
    end->rule.line = (uint32_t)sql_int(sql);
    end->rule.file = sql_string(sql, arena);
    end->rule.log = sql_string(sql, arena);
    end->rule.text = sql_text(sql, arena);
}

int attempt_end_add(struct store *store, struct store_change *change, struct err *err)
{
    struct sql sql = sql_of(&store->session, insert);
    assert(change->kind == CHANGE_ATTEMPT_END);
    if (change->attempt_end.tail.length > STORE_TAIL_MAX)
        return REFUSE(change, ERR_TOO_BIG, "last lines have at most %d bytes", STORE_TAIL_MAX);
    if (change->attempt_end.rule.text.length > STORE_MATCH_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a line that matched has at most %d bytes",
                      STORE_MATCH_MAX);
    row_put(&sql, &change->attempt_end);
    return sql_run(&sql, NULL, err);
}

int attempt_ends_purge(struct store *store, struct job_id job, struct err *err)
{
    return purge(store, delete_job, job, err);
}

int store_attempt_end(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
                      struct store_attempt_end *end, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    assert(reader->session.db);
    sql_put_int(&sql, (int64_t)attempt.v);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "of the end of attempt %llu nothing is kept",
                        (unsigned long long)attempt.v);
    if (code < 0)
        return code;
    row_get(&sql, end, arena);
    sql_done(&sql);
    return 0;
}
