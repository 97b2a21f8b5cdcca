#include "api/fields.h"
#include "api/handlers.h"
#include "base/memory.h"
#include <assert.h>
#include <ctype.h>

bool fields_parse(struct text text, struct fields *fields)
{
    fields->count = 0;
    while (text.at) {
        const struct text name = text_cut(&text, ',');
        if (!name.length || fields->count == FIELDS_MAX)
            return false;
        for (size_t i = 0; i < name.length; i++)
            if (!isalnum((unsigned char)name.at[i]) && name.at[i] != '_')
                return false;
        fields->names[fields->count++] = name;
    }
    return fields->count > 0;
}

static bool is_wanted(const struct fields *fields, struct text name)
{
    for (size_t i = 0; i < fields->count; i++)
        if (text_equal(fields->names[i], name))
            return true;
    return false;
}

/* ---- a walk over JSON ---- */

/* Behind the string that begins here. */
static const char *string_end(const char *at)
{
    assert(*at == '"');
    for (at++; *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at + 1;
}

/* Behind the value that begins here; `end` is the end of all. */
static const char *value_end(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = string_end(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return at;
            depth--;
            at++;
        } else if (*at == ',' && depth == 0) {
            return at;
        } else {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return at;
}

static void separate(bool *is_first, struct buf *out)
{
    if (!*is_first)
        buf_char(out, ',');
    *is_first = false;
}

static void copy(const char *at, const char *end, struct buf *out)
{
    buf_add(out, at, (size_t)(end - at));
}

static void object_project(struct text json, const struct fields *fields, struct buf *out)
{
    const char *at = json.at + 1, *end = json.at + json.length - 1;
    bool is_first = true;
    buf_char(out, '{');
    while (at < end) {
        const char *key = at, *key_end = string_end(at);
        const char *next = value_end(key_end + 1, end);
        if (is_wanted(fields, (struct text){key + 1, (size_t)(key_end - key) - 2})) {
            separate(&is_first, out);
            copy(key, next, out);
        }
        at = next + (next < end);
    }
    buf_char(out, '}');
}

static void list_project(struct text json, const struct fields *fields, struct buf *out)
{
    const char *at = json.at + 1, *end = json.at + json.length - 1;
    bool is_first = true;
    buf_char(out, '[');
    while (at < end) {
        const char *next = value_end(at, end);
        separate(&is_first, out);
        if (*at == '{')
            object_project((struct text){at, (size_t)(next - at)}, fields, out);
        else
            copy(at, next, out);
        at = next + (next < end);
    }
    buf_char(out, ']');
}

void fields_project(struct text json, const struct fields *fields, struct buf *out)
{
    assert(json.length >= 2);
    const char *at = json.at + 1, *end = json.at + json.length - 1;
    bool is_first = true;
    if (json.at[0] == '[') {
        list_project(json, fields, out);
        return;
    }
    buf_char(out, '{');
    while (at < end) {
        const char *value = string_end(at) + 1, *next = value_end(value, end);
        separate(&is_first, out);
        if (*value == '[') {
            copy(at, value, out);
            list_project((struct text){value, (size_t)(next - value)}, fields, out);
        } else {
            copy(at, next, out);
        }
        at = next + (next < end);
    }
    buf_char(out, '}');
}

/* ---- replies ---- */

int fields_reply(struct call *call)
{
    struct http_reply *reply = &call->exchange->reply;
    const struct text wanted = exchange_query(call->exchange, "fields");
    struct fields fields;
    if (!wanted.at || !call->is_list || reply->status != 200 || reply->stream.read ||
        reply->body.length < 2)
        return 0;
    if (!fields_parse(wanted, &fields))
        return call_fail(call, ERR_INVALID, NULL, "fields",
                         "fields must be 1 to %d names with commas between them", FIELDS_MAX);
    struct buf body = BUF_INIT;
    fields_project(buf_as_text(&reply->body), &fields, &body);
    buf_release(&reply->body);
    reply->body = body;
    return 0;
}
