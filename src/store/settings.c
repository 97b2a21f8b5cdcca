/* settings.c — values under keys, for the server's own use. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

static const char replace[] = "INSERT INTO settings (key, value) VALUES (?,?) "
                              "ON CONFLICT (key) DO UPDATE SET value = excluded.value";
static const char delete[] = "DELETE FROM settings WHERE key = ?";
static const char select_one[] = "SELECT value FROM settings WHERE key = ?";

int setting_change(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_SETTING);
    if (change->setting.value.length > STORE_SETTING_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a setting has at most %d bytes", STORE_SETTING_MAX);
    struct sql sql;
    if (change->setting.value.length == 0) {
        sql = sql_of(&store->session, delete);
        sql_put_string(&sql, change->setting.key);
    } else {
        sql = sql_of(&store->session, replace);
        sql_put_string(&sql, change->setting.key);
        sql_put_blob(&sql, change->setting.value);
    }
    return sql_run(&sql, NULL, err);
}

int store_setting(struct store_reader *reader, const char *key, struct arena *arena,
                  struct text *value, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_one);
    assert(reader->session.db);
    sql_put_string(&sql, key);
    int code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no setting %s", key);
    if (code < 0)
        return code;
    *value = sql_text(&sql, arena);
    sql_done(&sql);
    return 0;
}
