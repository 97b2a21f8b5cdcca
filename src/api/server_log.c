/* GET /api/v2/log: the newest lines of the server's own log */
#include "api/handlers.h"
#include "sys/log_ring.h"

enum { LINES_DEFAULT = 200 };

static const char *const LEVELS[] = {"error", "warning", "info", "debug"};

static int level_parse(struct call *call, enum log_level *level)
{
    const struct text text = exchange_query(call->exchange, "level");
    *level = LOG_DEBUG;
    if (!text.at)
        return 0;
    for (size_t i = 0; i < COUNT_OF(LEVELS); i++)
        if (text_is(text, LEVELS[i])) {
            *level = (enum log_level)i;
            return 0;
        }
    return call_fail(call, ERR_INVALID, NULL, "level", "must be error, warning, info or debug");
}

static void line_json(struct json_writer *json, const struct log_ring_line *line)
{
    json_object(json);
    json_key_int(json, "number", (int64_t)line->number);
    json_key_int(json, "time", line->time_ms);
    json_key_string(json, "level", LEVELS[line->level]);
    json_key_string(json, "part", line->part);
    json_key_string(json, "text", line->text);
    json_object_end(json);
}

int handle_server_log(struct call *call)
{
    enum log_level level;
    int64_t limit, after;
    struct log_ring_lines lines;
    int code = level_parse(call, &level);
    if (!code)
        code = call_number(call, "limit", 1, LOG_RING_LINES, LINES_DEFAULT, &limit);
    if (!code)
        code = call_number(call, "after", 0, INT64_MAX, 0, &after);
    if (code)
        return code;
    log_ring_read(level, (uint64_t)after, (size_t)limit, call->arena, &lines);
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key(&json, "lines");
    json_array(&json);
    for (size_t i = 0; i < lines.count; i++)
        line_json(&json, &lines.items[i]);
    json_array_end(&json);
    json_key_int(&json, "next", (int64_t)lines.next);
    json_key_bool(&json, "missed", lines.has_missed);
    json_key_bool(&json, "complete", lines.is_complete);
    json_object_end(&json);
    return 0;
}
