/* events.c — the event log: every event that the core has stepped through. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

static const char insert[] = "INSERT INTO event_log (at_ms, kind, body) VALUES (?,?,?)";
static const char delete_old[] = "DELETE FROM event_log WHERE sequence IN "
                                 "(SELECT sequence FROM event_log ORDER BY sequence LIMIT 20000) "
                                 "AND at_ms < ?";
static const char select_after[] = "SELECT sequence, at_ms, kind, body FROM event_log WHERE "
                                   "sequence > ? ORDER BY sequence LIMIT ?";
static const char select_last[] = "SELECT at_ms FROM event_log ORDER BY sequence DESC LIMIT 1";
static const char select_oldest[] = "SELECT at_ms FROM event_log ORDER BY sequence LIMIT 1";

int events_write(struct store *store, const struct store_event *events, size_t count,
                 struct err *err)
{
    int code = 0;
    assert(count == 0 || events);
    for (size_t i = 0; code == 0 && i < count; i++) {
        struct sql sql = sql_of(&store->session, insert);
        sql_put_int(&sql, events[i].at_ms);
        sql_put_int(&sql, events[i].kind);
        sql_put_blob(&sql, events[i].body);
        code = sql_run(&sql, NULL, err);
    }
    return code;
}

int events_trim(struct store *store, int64_t before_ms, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete_old);
    sql_put_int(&sql, before_ms);
    return sql_run(&sql, NULL, err);
}

int events_oldest(struct store *store, int64_t *at_ms, struct err *err)
{
    struct sql sql = sql_of(&store->session, select_oldest);
    return sql_number(&sql, at_ms, err);
}

int store_events(struct store_reader *reader, uint64_t after, uint64_t limit, struct arena *arena,
                 struct store_events *events, struct err *err)
{
    assert(reader->session.db);
    struct {
        struct store_event *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_after);
    int code;

    *events = (struct store_events){.last = after};
    sql_put_int(&sql, (int64_t)after);
    sql_put_int(&sql, (int64_t)limit);
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_event *event = ARRAY_ADD(&list);
        events->last = (uint64_t)sql_int(&sql);
        event->at_ms = sql_int(&sql);
        event->kind = (uint8_t)sql_int(&sql);
        event->body = sql_text(&sql, arena);
    }
    LIST_HAND_OVER(&list, arena, events);
    return code;
}

int store_restore_time(struct store_reader *reader, int64_t *last_ms, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_last);
    assert(reader->session.db);
    int code = sql_next(&sql, err);
    *last_ms = code > 0 ? sql_int(&sql) : 0;
    if (code > 0)
        sql_done(&sql);
    return code < 0 ? code : 0;
}
