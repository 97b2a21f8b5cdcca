/* read_lists.c — see read.h: stories, the event log, nodes, users, tokens, settings. */
#include "base/err.h"
#include "store/reader.h"

static int read_stories(struct store_reader *reader, const struct story_filter *filter,
                        struct arena *arena, struct stories *stories, struct err *err)
{
    struct {
        struct store_story *items;
        size_t count, room;
    } list = {0};
    enum read_statement which;
    struct sql sql;
    int code;

    if (filter->job.v)
        which = filter->is_newest_first ? READ_STORIES_NEWEST : READ_STORIES;
    else
        which = filter->is_newest_first ? READ_STORIES_ALL_NEWEST : READ_STORIES_ALL;
    code = reader_sql(reader, which, &sql, err);
    if (code < 0)
        return code;
    sql_put_int(&sql, filter->job.v);
    sql_put_int(&sql, (int64_t)filter->after);
    sql_put_int(&sql, filter->is_warning);
    sql_put_int(&sql, filter->limit ? (int64_t)filter->limit : 1000);
    sql_put_int(&sql, (int64_t)filter->offset);
    while ((code = sql_next(&sql, err)) > 0) {
        struct store_story *story = ARRAY_ADD(&list);
        story->sequence = (uint64_t)sql_int(&sql);
        row_get_story(&sql, &story->story, arena);
        story->role_name = sql_string(&sql, arena);
    }
    LIST_HAND_OVER(&list, arena, stories);
    return code;
}

int store_stories(struct store_reader *reader, const struct story_filter *filter, bool wants_total,
                  struct arena *arena, struct stories *stories, struct err *err)
{
    struct sql sql;
    int code = reader_begin(reader, err);

    *stories = (struct stories){0};
    if (code < 0)
        return code;
    code = read_stories(reader, filter, arena, stories, err);
    if (code == 0 && wants_total) {
        code = reader_sql(reader, filter->job.v ? READ_STORIES_COUNT : READ_STORIES_ALL_COUNT, &sql,
                          err);
        if (code == 0) {
            sql_put_int(&sql, filter->job.v);
            sql_put_int(&sql, (int64_t)filter->after);
            sql_put_int(&sql, filter->is_warning);
            code = sql_next(&sql, err);
            stories->total = code > 0 ? (uint64_t)sql_int(&sql) : 0;
            sql_done(&sql);
        }
    }
    reader_end(reader);
    return code < 0 ? code : 0;
}

int store_events(struct store_reader *reader, uint64_t after, uint64_t limit, struct arena *arena,
                 struct store_events *events, struct err *err)
{
    struct {
        struct store_event *items;
        size_t count, room;
    } list = {0};
    struct sql sql;
    int code = reader_sql(reader, READ_EVENTS, &sql, err);

    *events = (struct store_events){.last = after};
    if (code < 0)
        return code;
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

int store_nodes(struct store_reader *reader, struct arena *arena, struct store_nodes *nodes,
                struct err *err)
{
    struct {
        struct node_record *items;
        size_t count, room;
    } list = {0};
    struct sql sql;
    int code = reader_sql(reader, READ_NODES, &sql, err);

    while (code >= 0 && (code = sql_next(&sql, err)) > 0) {
        code = row_get_node(&sql, ARRAY_ADD(&list), arena, err);
        if (code < 0)
            sql_done(&sql);
    }
    LIST_HAND_OVER(&list, arena, nodes);
    return code;
}

int store_user(struct store_reader *reader, struct text name, struct arena *arena,
               struct store_user *user, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_USER, &sql, err);

    if (code < 0)
        return code;
    sql_put_text(&sql, name);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no user %.*s",
                        (int)(name.length > 64 ? 64 : name.length), name.at);
    if (code < 0)
        return code;
    row_get_user(&sql, user, arena);
    sql_done(&sql);
    return 0;
}

int store_users(struct store_reader *reader, struct arena *arena, struct store_users *users,
                struct err *err)
{
    struct {
        struct store_user *items;
        size_t count, room;
    } list = {0};
    struct sql sql;
    int code = reader_sql(reader, READ_USERS, &sql, err);

    while (code >= 0 && (code = sql_next(&sql, err)) > 0)
        row_get_user(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, users);
    return code;
}

int store_token(struct store_reader *reader, struct text id, struct arena *arena,
                struct store_token *token, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_TOKEN, &sql, err);

    if (code < 0)
        return code;
    sql_put_text(&sql, id);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no such token");
    if (code < 0)
        return code;
    row_get_token(&sql, token, arena);
    sql_done(&sql);
    return 0;
}

int store_tokens(struct store_reader *reader, struct text user, struct arena *arena,
                 struct store_tokens *tokens, struct err *err)
{
    struct store_token *items = arena_array(arena, STORE_TOKENS_MAX, sizeof *items);
    struct sql sql;
    int code = reader_sql(reader, READ_TOKENS, &sql, err);

    *tokens = (struct store_tokens){items, 0};
    if (code < 0)
        return code;
    sql_put_text(&sql, user);
    while ((code = sql_next(&sql, err)) > 0)
        if (tokens->count < STORE_TOKENS_MAX)
            row_get_token(&sql, &items[tokens->count++], arena);
    return code;
}

int store_setting(struct store_reader *reader, const char *key, struct arena *arena,
                  struct text *value, struct err *err)
{
    struct sql sql;
    int code = reader_sql(reader, READ_SETTING, &sql, err);

    if (code < 0)
        return code;
    sql_put_string(&sql, key);
    code = sql_next(&sql, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no setting %s", key);
    if (code < 0)
        return code;
    *value = sql_text(&sql, arena);
    sql_done(&sql);
    return 0;
}
