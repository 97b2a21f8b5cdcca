#include "api/http.h"
#include "base/err.h"
#include <assert.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* `%xx` and, in forms, '+'. The result is in the arena. ERR_INVALID: bad code or NUL byte. */
static int http_decode(struct text text, bool is_form, struct arena *arena, struct text *out,
                       struct err *err)
{
    char *bytes = arena_alloc(arena, text.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        const size_t at = i + 1; /* of the byte, or of its code */
        char c = text.at[i];
        if (c == '+' && is_form) {
            c = ' ';
        } else if (c == '%') {
            int high = i + 2 < text.length ? hex_value(text.at[i + 1]) : -1;
            int low = i + 2 < text.length ? hex_value(text.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return err_fail(err, ERR_INVALID, "", "bad percent code at byte %zu", at);
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            return err_fail(err, ERR_INVALID, "", "a NUL byte at byte %zu", at);
        bytes[length++] = c;
    }
    *out = (struct text){bytes, length};
    return 0;
}

int http_form_parse(struct text text, struct arena *arena, struct http_pair *pairs, size_t room,
                    size_t *count, struct err *err)
{
    *count = 0;
    while (text.at && text.length) {
        struct text item = text_cut(&text, '&');
        if (!item.length)
            continue;
        if (*count == room)
            return err_fail(err, ERR_TOO_BIG, "", "more than %zu parameters", room);
        struct text name = text_cut(&item, '=');
        struct http_pair *pair = &pairs[*count];
        int code = http_decode(name, true, arena, &pair->name, err);
        if (code)
            return code;
        code = http_decode(item, true, arena, &pair->value, err);
        if (code)
            return code;
        (*count)++;
    }
    return 0;
}

/* "http://host/path" (a proxy's form) → "/path" */
static int target_origin(struct text *target, struct err *err)
{
    if (target->length && target->at[0] == '/')
        return 0;
    if (text_is(*target, "*"))
        return 0;
    struct text prefix = TEXT("http://");
    if (!text_starts(*target, prefix))
        return err_fail(err, ERR_INVALID, "", "the request's target must begin with /");
    struct text rest = {target->at + prefix.length, target->length - prefix.length};
    const char *slash = memchr(rest.at, '/', rest.length);
    *target = slash ? (struct text){slash, (size_t)(rest.at + rest.length - slash)} : TEXT("/");
    return 0;
}

static int path_cut(struct exchange *exchange, struct text path, struct err *err)
{
    exchange->segment_count = 0;
    if (path.length && path.at[0] == '/')
        path = (struct text){path.at + 1, path.length - 1};
    while (path.at && path.length) {
        struct text segment = text_cut(&path, '/');
        if (exchange->segment_count == HTTP_SEGMENTS_MAX)
            return err_fail(err, ERR_TOO_BIG, "", "the path has more than %d parts",
                            HTTP_SEGMENTS_MAX);
        struct text *out = &exchange->segments[exchange->segment_count++];
        int code = http_decode(segment, false, &exchange->arena, out, err);
        if (code)
            return code;
    }
    return 0;
}

int exchange_target(struct exchange *exchange, struct text target, struct err *err)
{
    exchange->target = target;
    if (target.length > HTTP_TARGET_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "the request's target has more than %d bytes",
                        HTTP_TARGET_MAX);
    int code = target_origin(&target, err);
    if (code)
        return code;
    struct text query = target;
    struct text path = text_cut(&query, '?');
    code = path_cut(exchange, path, err);
    if (code)
        return code;
    return http_form_parse(query, &exchange->arena, exchange->query, HTTP_QUERY_MAX,
                           &exchange->query_count, err);
}

struct text exchange_query(const struct exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->query_count; i++)
        if (text_is(exchange->query[i].name, name))
            return exchange->query[i].value;
    return (struct text){NULL, 0};
}

struct text exchange_cookie(const struct exchange *exchange, const char *name)
{
    struct text rest = exchange->cookie;
    while (rest.length) {
        struct text value = text_trim(text_cut(&rest, ';'));
        struct text key = text_cut(&value, '=');
        if (value.at && text_is(key, name))
            return value;
    }
    return (struct text){NULL, 0};
}

void exchange_init(struct exchange *exchange)
{
    memset(exchange, 0, sizeof *exchange);
    arena_init(&exchange->arena);
    exchange->peer_uid = -1;
    exchange->body_max = HTTP_BODY_MAX;
}

void exchange_forget(struct exchange *exchange)
{
    exchange->reply.header_count = 0;
    exchange->app_state = NULL;
    buf_release(&exchange->body);
    if (exchange->body_hold.free)
        exchange->body_hold.free(exchange->body_hold.state);
    exchange->body_hold.free = NULL;
    arena_release(&exchange->arena);
}

void exchange_release(struct exchange *exchange)
{
    struct http_stream *stream = &exchange->reply.stream;
    if (stream->free)
        stream->free(stream->state);
    stream->free = NULL;
    if (exchange->reply.upgrade.take)
        exchange->reply.upgrade.drop(exchange->reply.upgrade.state);
    exchange->reply.upgrade.take = NULL;
    if (exchange->reply.hold.free)
        exchange->reply.hold.free(exchange->reply.hold.state);
    exchange->reply.hold.free = NULL;
    buf_release(&exchange->reply.body);
    exchange_forget(exchange);
}

void exchange_header(struct exchange *exchange, const char *name, const char *value)
{
    struct http_reply *reply = &exchange->reply;
    assert(reply->header_count < HTTP_REPLY_HEADERS_MAX);
    reply->headers[reply->header_count].name = name;
    reply->headers[reply->header_count].value = value;
    reply->header_count++;
}

void exchange_suspend(struct exchange *exchange)
{
    assert(exchange->reply.status == 0);
    exchange->port->suspend(exchange);
}

void exchange_resume(struct exchange *exchange)
{
    exchange->port->resume(exchange);
}

const char *http_method_name(enum http_method method)
{
    switch (method) {
    case HTTP_GET:
        return "GET";
    case HTTP_HEAD:
        return "HEAD";
    case HTTP_POST:
        return "POST";
    case HTTP_PUT:
        return "PUT";
    case HTTP_DELETE:
        return "DELETE";
    case HTTP_OPTIONS:
        return "OPTIONS";
    case HTTP_OTHER:
        break;
    }
    return "OTHER";
}
