/* sole_account.c — has there ever been more than one account, and since which job? */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>
#include <stdio.h>

#define SEVERAL "accounts.several" /* setting: the last job of before */

static const char insert[] =
    "INSERT INTO settings (key, value) VALUES (?,?) ON CONFLICT DO NOTHING";
static const char count_users[] = "SELECT count(*) FROM users";

int accounts_mark_several(struct store *store, bool was_sole, struct err *err)
{
    char number[12];
    struct sql sql = sql_of(&store->session, insert);
    snprintf(number, sizeof number, "%u", was_sole ? store->last_job : 0);
    sql_put_string(&sql, SEVERAL);
    sql_put_blob(&sql, text_of(number));
    return sql_run(&sql, NULL, err);
}

int accounts_say_several(struct store *store, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_users);
    int64_t count = 0;
    const int code = sql_number(&sql, &count, err);
    return code < 0 ? code : accounts_mark_several(store, count <= 1, err);
}

/* Of a store of before the mark: nobody knows which jobs are older than the second account. */
static int accounts_count(struct store_reader *reader, struct store_accounts *accounts,
                          struct err *err)
{
    struct sql sql = sql_of(&reader->session, count_users);
    int64_t count = 0;
    const int code = sql_number(&sql, &count, err);
    *accounts = (struct store_accounts){.are_several = count > 1};
    return code;
}

int store_accounts(struct store_reader *reader, struct arena *arena,
                   struct store_accounts *accounts, struct err *err)
{
    struct text mark;
    int64_t last_job = 0;
    const int code = store_setting(reader, SEVERAL, arena, &mark, err);
    if (code == ERR_NOT_FOUND)
        return accounts_count(reader, accounts, err);
    if (code < 0)
        return code;
    if (!text_to_int64(mark, &last_job) || last_job < 0 || last_job > UINT32_MAX)
        return err_fail(err, ERR_CORRUPT, "", "the setting " SEVERAL " is no number of a job");
    *accounts = (struct store_accounts){.are_several = true, .last_sole_job = {(uint32_t)last_job}};
    return 0;
}

bool store_account_is_sole(const struct store_accounts *accounts, struct job_id job)
{
    assert(job.v != 0);
    return !accounts->are_several || job.v <= accounts->last_sole_job.v;
}
