#include "api/relay_head.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <strings.h>

/* ---- names and values ---- */

/* "-" and "_" are one: programs behind CGI and WSGI cannot tell them apart. */
static char folded(char c)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] = "abcdefghijklmnopqrstuvwxyz-";
    const char *at = memchr(capitals, c, sizeof capitals - 1);
    if (at)
        return others[at - capitals];
    return c;
}

static bool name_starts(struct text name, struct text prefix)
{
    if (name.length < prefix.length)
        return false;
    for (size_t i = 0; i < prefix.length; i++)
        if (folded(name.at[i]) != prefix.at[i])
            return false;
    return true;
}

/* `other` in small letters, with "-". */
static bool name_is(struct text name, const char *other)
{
    return name.length == strlen(other) && name_starts(name, text_of(other));
}

static bool name_is_one_of(struct text name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name_is(name, names[i]))
            return true;
    return false;
}

static bool is_token(struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_word && !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return text.length > 0;
}

static bool is_value(struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_target(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f)
            return false;
    return text.length > 0 && text.at[0] == '/';
}

/* One of a list with commas. */
static bool list_has(struct text list, const char *word)
{
    while (list.at && list.length)
        if (name_is(text_trim(text_cut(&list, ',')), word))
            return true;
    return false;
}

/* ---- lines ---- */

size_t relay_head_length(struct text bytes)
{
    size_t at = text_find(bytes, TEXT("\r\n\r\n"));
    return at < bytes.length ? at + 4 : 0;
}

/* A line without its CRLF; at == NULL: what comes is none. */
static struct text line_cut(struct text *rest)
{
    size_t end = text_find(*rest, TEXT("\r\n"));
    struct text line = {rest->at, end};
    if (end >= rest->length)
        return (struct text){NULL, 0};
    rest->at += end + 2;
    rest->length -= end + 2;
    return line;
}

static struct text header_value(const struct relay_headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++)
        if (name_is(headers->items[i].name, name))
            return headers->items[i].value;
    return (struct text){NULL, 0};
}

static size_t header_times(const struct relay_headers *headers, const char *name)
{
    size_t times = 0;
    for (size_t i = 0; i < headers->count; i++)
        times += name_is(headers->items[i].name, name);
    return times;
}

/* Up to the empty line. No line may be folded, and no space stand before a colon. */
static int headers_parse(struct text rest, struct relay_headers *headers, struct err *err)
{
    headers->count = 0;
    for (struct text line = line_cut(&rest); line.length; line = line_cut(&rest)) {
        struct text value = line, name = text_cut(&value, ':');
        if (headers->count == RELAY_HEADERS_MAX)
            return err_fail(err, ERR_TOO_BIG, "", "more than %d headers", RELAY_HEADERS_MAX);
        if (!value.at || !is_token(name) || !is_value(value))
            return err_fail(err, ERR_INVALID, "", "header %zu is not NAME: VALUE",
                            headers->count + 1);
        headers->items[headers->count].name = name;
        headers->items[headers->count++].value = text_trim(value);
    }
    return 0;
}

/* ---- requests ---- */

static int refuse(struct err *err, int status, const char *text)
{
    err_fail(err, ERR_INVALID, "", "%s", text);
    return status;
}

/* What browsers may lead to many times over must be there once, or not at all. */
static bool is_ambiguous(const struct relay_headers *headers)
{
    static const char *const once[] = {"host",           "content-length", "origin",
                                       "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest",
                                       "upgrade",        "expect"};
    for (size_t i = 0; i < COUNT_OF(once); i++)
        if (header_times(headers, once[i]) > 1)
            return true;
    return header_times(headers, "host") != 1;
}

/* Digits alone: no sign, no list, no more than fits. */
static bool length_parse(struct text value, int64_t *length)
{
    *length = 0;
    if (!value.at)
        return true;
    for (size_t i = 0; i < value.length; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    return value.length > 0 && text_to_int64(value, length);
}

static int request_body(struct relay_request *request, struct err *err)
{
    const struct relay_headers *headers = &request->headers;
    struct text expected = header_value(headers, "expect");
    struct text upgrade = header_value(headers, "upgrade");
    if (header_value(headers, "transfer-encoding").at)
        return refuse(err, 411, "a body must come with its length");
    if (!length_parse(header_value(headers, "content-length"), &request->length))
        return refuse(err, 400, "Content-Length is no number");
    request->expects_continue = name_is(expected, "100-continue");
    if (expected.at && !request->expects_continue)
        return refuse(err, 417, "nothing but 100-continue can be expected");
    if (!upgrade.at || !list_has(header_value(headers, "connection"), "upgrade"))
        return 0;
    request->is_websocket = name_is(upgrade, "websocket");
    if (!request->is_websocket || !text_is(request->method, "GET") || request->length)
        return refuse(err, 501, "no protocol but WebSocket is relayed beside HTTP");
    return 0;
}

int relay_request_parse(struct text head, struct relay_request *request, struct err *err)
{
    struct text rest = head, line = line_cut(&rest), version = line;
    *request = (struct relay_request){.method = text_cut(&version, ' ')};
    request->target = version.at ? text_cut(&version, ' ') : version;
    struct text path = request->target;
    request->path = path.at ? text_cut(&path, '?') : path;
    if (!version.at || !is_token(request->method) || !is_target(request->target))
        return refuse(err, 400, "the request's first line is not METHOD /PATH HTTP/1.1");
    if (!text_is(version, "HTTP/1.1"))
        return refuse(err, 505, "the request is not of HTTP/1.1");
    int code = headers_parse(rest, &request->headers, err);
    if (code)
        return code == ERR_TOO_BIG ? 431 : 400;
    if (is_ambiguous(&request->headers))
        return refuse(err, 400, "the headers say twice, or not at all, what must be said once");
    request->host = header_value(&request->headers, "host");
    request->origin = header_value(&request->headers, "origin");
    request->fetch_site = header_value(&request->headers, "sec-fetch-site");
    request->fetch_mode = header_value(&request->headers, "sec-fetch-mode");
    request->fetch_dest = header_value(&request->headers, "sec-fetch-dest");
    return request_body(request, err);
}

struct text relay_request_cookie(const struct relay_request *request, const char *name)
{
    for (size_t i = 0; i < request->headers.count; i++) {
        struct text rest = request->headers.items[i].value;
        if (!name_is(request->headers.items[i].name, "cookie"))
            continue;
        while (rest.at && rest.length) {
            struct text value = text_cut(&rest, ';'), key = text_cut(&value, '=');
            if (value.at && text_is(text_trim(key), name))
                return text_trim(value);
        }
    }
    return (struct text){NULL, 0};
}

struct text relay_request_query(const struct relay_request *request, const char *name)
{
    struct text rest = request->target;
    text_cut(&rest, '?');
    while (rest.at && rest.length) {
        struct text value = text_cut(&rest, '&'), key = text_cut(&value, '=');
        if (value.at && text_is(key, name))
            return value;
    }
    return (struct text){NULL, 0};
}

bool relay_request_is_own(const struct relay_request *request, const char *origin)
{
    struct text site = request->fetch_site;
    if (request->origin.at && !text_is(request->origin, origin))
        return false;
    if (!site.at)
        return !request->is_websocket || request->origin.at;
    return text_is(site, "same-origin") || text_is(site, "none") ||
           (text_is(request->method, "GET") && text_is(request->fetch_mode, "navigate") &&
            text_is(request->fetch_dest, "document"));
}

/* Of one hop (RFC 9110, 7.6.1), written anew, or our own word. */
static bool is_dropped_request(struct text name)
{
    static const char *const dropped[] = {
        "connection", "keep-alive", "proxy-connection",    "proxy-authenticate", "te",
        "trailer",    "upgrade",    "proxy-authorization", "transfer-encoding",  "content-length",
        "host",       "cookie",     "authorization",       "http2-settings",     "expect",
        "forwarded",  "x-real-ip",  "x-forwarded-proto",   "x-forwarded-host",
    };
    return name_is_one_of(name, dropped, COUNT_OF(dropped)) ||
           name_starts(name, TEXT("x-forwarded-")) || name_starts(name, TEXT("x-skep-"));
}

static bool is_own_cookie(struct text name)
{
    static const struct text prefixes[] = {{"__Host-", 7}, {"__Secure-", 9}};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        if (text_starts(name, prefixes[i]))
            name = (struct text){name.at + prefixes[i].length, name.length - prefixes[i].length};
    return text_starts(name, TEXT(RELAY_COOKIE_PREFIX));
}

static void header_write(struct buf *out, const char *name, struct text value)
{
    buf_format(out, "%s: ", name);
    buf_text(out, value);
    buf_string(out, "\r\n");
}

/* All cookies but ours, in one line. */
static void cookies_write(const struct relay_headers *headers, struct buf *out)
{
    cleanup_buf struct buf kept = BUF_INIT;
    for (size_t i = 0; i < headers->count; i++) {
        struct text rest = headers->items[i].value;
        if (!name_is(headers->items[i].name, "cookie"))
            continue;
        while (rest.at && rest.length) {
            struct text cookie = text_trim(text_cut(&rest, ';')), key = cookie;
            if (!cookie.length || is_own_cookie(text_trim(text_cut(&key, '='))))
                continue;
            buf_string(&kept, kept.length ? "; " : "");
            buf_text(&kept, cookie);
        }
    }
    if (kept.length)
        header_write(out, "Cookie", buf_as_text(&kept));
}

static void others_write(const struct relay_headers *headers, bool (*is_dropped)(struct text name),
                         struct buf *out)
{
    struct text named = header_value(headers, "connection");
    for (size_t i = 0; i < headers->count; i++) {
        struct text name = headers->items[i].name, list = named;
        bool is_of_hop = is_dropped(name);
        while (!is_of_hop && list.at && list.length) {
            struct text word = text_trim(text_cut(&list, ','));
            is_of_hop =
                word.length == name.length && strncasecmp(word.at, name.at, name.length) == 0;
        }
        if (is_of_hop)
            continue;
        buf_text(out, name);
        buf_string(out, ": ");
        buf_text(out, headers->items[i].value);
        buf_string(out, "\r\n");
    }
}

void relay_request_write(const struct relay_request *request, bool is_secure, const char *user,
                         struct buf *out)
{
    assert(request->host.at && is_value(text_of(user)));
    buf_text(out, request->method);
    buf_char(out, ' ');
    buf_text(out, request->target);
    buf_string(out, " HTTP/1.1\r\n");
    header_write(out, "Host", request->host);
    if (header_value(&request->headers, "content-length").at)
        buf_format(out, "Content-Length: %lld\r\n", (long long)request->length);
    others_write(&request->headers, is_dropped_request, out);
    cookies_write(&request->headers, out);
    header_write(out, "X-Forwarded-Proto", is_secure ? TEXT("https") : TEXT("http"));
    header_write(out, "X-Forwarded-Host", request->host);
    header_write(out, "X-Skep-User", text_of(user));
    buf_string(out, request->is_websocket ? "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
                                          : "Connection: close\r\n\r\n");
}

/* ---- replies ---- */

int relay_reply_parse(struct text head, struct relay_reply *reply, struct err *err)
{
    struct text rest = head, reason = line_cut(&rest), version = text_cut(&reason, ' ');
    struct text digits = reason.at ? text_cut(&reason, ' ') : reason;
    int64_t status;
    bool is_http = text_is(version, "HTTP/1.1") || text_is(version, "HTTP/1.0");
    if (!is_http || digits.length != 3 || !text_to_int64(digits, &status) || status < 100 ||
        status > 599 || !is_value(reason))
        return err_fail(err, ERR_INVALID, "", "the first line is not HTTP/1.1 STATUS");
    reply->status = (int)status;
    reply->reason = reason.at ? reason : TEXT("");
    int code = headers_parse(rest, &reply->headers, err);
    if (!code && header_times(&reply->headers, "content-length") > 1)
        code = err_fail(err, ERR_INVALID, "", "it has two lengths");
    return code;
}

/* A cookie for a whole domain would go to the tasks of others. */
static bool is_wide(struct text cookie)
{
    text_cut(&cookie, ';');
    while (cookie.at && cookie.length) {
        struct text attribute = text_cut(&cookie, ';');
        if (name_is(text_trim(text_cut(&attribute, '=')), "domain"))
            return true;
    }
    return false;
}

/* Alt-Svc would lead browsers to another program under the same origin. */
static bool is_dropped_reply(struct text name)
{
    static const char *const dropped[] = {"connection", "keep-alive", "proxy-authenticate",
                                          "te",         "trailer",    "proxy-connection",
                                          "upgrade",    "set-cookie", "alt-svc"};
    return name_is_one_of(name, dropped, COUNT_OF(dropped));
}

static bool is_dropped_length(struct text name)
{
    return name_is(name, "content-length") || is_dropped_reply(name);
}

void relay_reply_write(const struct relay_reply *reply, struct buf *out)
{
    const struct relay_headers *headers = &reply->headers;
    bool is_coded = header_value(headers, "transfer-encoding").at != NULL;
    buf_format(out, "HTTP/1.1 %d ", reply->status);
    buf_text(out, reply->reason);
    buf_string(out, "\r\n");
    others_write(headers, is_coded ? is_dropped_length : is_dropped_reply, out);
    for (size_t i = 0; i < headers->count; i++) {
        struct text cookie = headers->items[i].value, name = cookie;
        if (name_is(headers->items[i].name, "set-cookie") && !is_wide(cookie) &&
            !is_own_cookie(text_trim(text_cut(&name, '='))))
            header_write(out, "Set-Cookie", cookie);
    }
    buf_string(out, reply->status == 101 ? "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
                                         : "Connection: close\r\n\r\n");
}
