/* relay_entry.c — who may reach a port of a task, and what others are told. See relay.h. */
#include "api/http_watch.h"
#include "api/relay_head.h"
#include "api/relay_state.h"
#include "api/relay_stream.h"
#include "api/service.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char ENTER[] = "/.skep/enter", OWN[] = "/.skep/";

/* ---- our own answers ---- */

/* The page is one of ours: nothing of a request stands in it. */
void relay_answer(struct relay_connection *connection, int status, const char *name,
                  const char *text, const char *more)
{
    cleanup_buf struct buf page = BUF_INIT;
    buf_format(&page,
               "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>"
               "<h1>%s</h1><p>%s</p></html>\n",
               name, name, text);
    buf_format(&connection->down.bytes,
               "HTTP/1.1 %d %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n"
               "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
               "X-Content-Type-Options: nosniff\r\n"
               "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n%s"
               "Connection: close\r\n\r\n",
               status, name, page.length, more);
    buf_text(&connection->down.bytes, buf_as_text(&page));
    connection->stage = STAGE_FAREWELL;
    connection->due_ms = clock_monotonic_ms() + RELAY_FAREWELL_MS;
}

static void answer_refusal(struct relay_connection *connection, int status, const struct err *err)
{
    static const struct {
        int status;
        const char *name;
    } names[] = {{400, "Bad Request"},        {411, "Length Required"},
                 {417, "Expectation Failed"}, {431, "Request Header Fields Too Large"},
                 {501, "Not Implemented"},    {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].status == status) {
            relay_answer(connection, status, names[i].name, err->text, "");
            return;
        }
    assert(false && "a status without a name");
}

static void answer_stranger(struct relay_connection *connection)
{
    relay_answer(
        connection, 401, "Unauthorized",
        "This port of a task is not open to you, or not any more: open it again, from the page "
        "of its job in the portal or by `skep open`.",
        "");
}

void relay_answer_gone(struct relay_connection *connection)
{
    relay_answer(
        connection, 502, "Bad Gateway",
        "Nothing answers at this port of the task: its program may not listen yet, or the task "
        "has ended. The page of its job says which.",
        "");
}

/* ---- who comes ---- */

/* "ID.jobs.example.org:9187": the ID; at == NULL: no name of ours. */
static struct text host_id(const struct relay *relay, struct text host)
{
    struct text suffix = relay->config.origin.suffix, id = host;
    if (host.length != WEB_PORT_ID_SIZE - 1 + suffix.length)
        return (struct text){NULL, 0};
    id.length -= suffix.length;
    bool is_ours = text_equal((struct text){host.at + id.length, suffix.length}, suffix);
    return is_ours ? id : (struct text){NULL, 0};
}

/* "__Host-" binds it to the host and to TLS; browsers take that by TLS alone. */
static const char *cookie_name(const struct relay *relay)
{
    return relay->config.origin.is_secure ? "__Host-" RELAY_COOKIE_PREFIX "port"
                                          : RELAY_COOKIE_PREFIX "port";
}

static void enter(struct relay *relay, struct relay_connection *connection,
                  const struct relay_request *request, struct text id)
{
    struct service *service = relay->config.service;
    struct web_port_grant grant;
    cleanup_buf struct buf headers = BUF_INIT;
    char session[WEB_PORT_WORD_SIZE];
    bool is_first;
    if (!text_is(request->method, "GET") ||
        !web_ports_enter(relay->config.ports, id, relay_request_query(request, "ticket"),
                         clock_unix_ms(), session, &grant, &is_first)) {
        answer_stranger(connection);
        return;
    }
    if (is_first) {
        char text[STORE_USER_NAME_MAX + 64];
        snprintf(text, sizeof text, "%s came to port %u", grant.opener.user, grant.port);
        service->note(service->context, grant.attempt, "WebPortEntered", text);
    }
    buf_format(&headers, "Location: %s\r\nSet-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Lax%s\r\n",
               grant.path, cookie_name(relay), session,
               relay->config.origin.is_secure ? "; Secure" : "");
    relay_answer(connection, 303, "See Other", "You are led on.", buf_cstr(&headers));
}

static size_t connections_of(const struct relay *relay, const char *user)
{
    size_t count = 0;
    for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++) {
        const struct relay_connection *connection = &relay->connections[i];
        count += connection->client && strcmp(connection->grant.opener.user, user) == 0;
    }
    return count;
}

/* The session of the request; false: it has been answered. */
static bool session_find(struct relay *relay, struct relay_connection *connection,
                         const struct relay_request *request, struct text id)
{
    struct text word = relay_request_cookie(request, cookie_name(relay));
    struct web_port_grant grant;
    if (!web_ports_find(relay->config.ports, id, word, clock_unix_ms(), &grant)) {
        answer_stranger(connection);
        return false;
    }
    int code = opener_check(relay->config.service, &grant.opener);
    if (code == ERR_FORBIDDEN) {
        web_ports_end(relay->config.ports, id, word);
        answer_stranger(connection);
    } else if (code) {
        relay_answer(connection, 503, "Service Unavailable",
                     "The server cannot look up your session now: try again.",
                     "Retry-After: 1\r\n");
    } else if (connections_of(relay, grant.opener.user) >= RELAY_USER_CONNECTIONS_MAX) {
        relay_answer(connection, 429, "Too Many Requests",
                     "You have too many connections to ports of tasks: close a page.",
                     "Retry-After: 1\r\n");
    } else {
        snprintf(connection->session, sizeof connection->session, "%.*s", TEXT_ARG(word));
        connection->grant = grant;
        return true;
    }
    return false;
}

/* ---- the request ---- */

static void task_connect(struct relay *relay, struct relay_connection *connection,
                         const struct relay_request *request)
{
    struct service *service = relay->config.service;
    const struct web_port_grant *grant = &connection->grant;
    struct err err;
    int fd = service->connect(service->context, grant->engine, grant->attempt, grant->port, &err);
    if (fd == ERR_UNSUPPORTED) {
        relay_answer(connection, 501, "Not Implemented",
                     "The engine that runs this task cannot reach ports of its tasks.", "");
        return;
    }
    if (fd == ERR_BUSY) {
        relay_answer(connection, 503, "Service Unavailable",
                     "There are too many connections to ports of tasks now: try again.",
                     "Retry-After: 1\r\n");
        return;
    }
    if (fd < 0) {
        log_debug("api", "port %u of attempt %llu: %s", grant->port,
                  (unsigned long long)grant->attempt.v, err.text);
        relay_answer_gone(connection);
        return;
    }
    connection->task = fd;
    connection->is_websocket = request->is_websocket;
    connection->body_left = request->length;
    connection->stage = STAGE_CONNECTING;
    connection->due_ms = clock_monotonic_ms() + RELAY_CONNECT_S * 1000;
    connection->look_ms = clock_monotonic_ms() + OPENER_LOOK_S * 1000;
    relay_request_write(request, relay->config.origin.is_secure, grant->opener.user,
                        &connection->up.bytes);
    if (request->expects_continue)
        buf_string(&connection->down.bytes, "HTTP/1.1 100 Continue\r\n\r\n");
}

static void request_take(struct relay *relay, struct relay_connection *connection,
                         const struct relay_request *request)
{
    const struct origin_pattern *wanted = &relay->config.origin;
    cleanup_buf struct buf origin = BUF_INIT;
    struct text id = host_id(relay, request->host);
    buf_format(&origin, "%s://%.*s", wanted->is_secure ? "https" : "http", TEXT_ARG(request->host));
    if (!id.at)
        relay_answer(connection, 421, "Misdirected Request", "No port of a task has this name.",
                     "");
    else if (text_is(request->path, ENTER))
        enter(relay, connection, request, id);
    else if (text_starts(request->path, text_of(OWN)))
        relay_answer(connection, 404, "Not Found", "There is nothing of this name.", "");
    else if (!relay_request_is_own(request, buf_cstr(&origin)))
        relay_answer(connection, 403, "Forbidden", "Pages of other origins cannot use this port.",
                     "");
    else if (session_find(relay, connection, request, id))
        task_connect(relay, connection, request);
}

/* What came behind the head is the body's begin; more than the body nobody wants. */
void relay_head_take(struct relay *relay, struct relay_connection *connection)
{
    struct text bytes = buf_as_text(&connection->head);
    size_t length = relay_head_length(bytes);
    struct relay_request request;
    struct err err;
    if (!length && bytes.length >= RELAY_HEAD_MAX) {
        err_fail(&err, ERR_TOO_BIG, "", "the request's head has more than %d bytes",
                 RELAY_HEAD_MAX);
        answer_refusal(connection, 431, &err);
    }
    if (!length)
        return;
    int status = relay_request_parse((struct text){bytes.at, length}, &request, &err);
    size_t early = bytes.length - length;
    if (!status && request.is_websocket && early) { /* could be another request, not parsed here */
        err_fail(&err, ERR_INVALID, "", "bytes came before the WebSocket was open");
        status = 400;
    }
    if (status) {
        answer_refusal(connection, status, &err);
    } else {
        request_take(relay, connection, &request);
        if (early > (size_t)request.length)
            early = (size_t)request.length;
        if (connection->stage == STAGE_CONNECTING) {
            buf_add(&connection->up.bytes, bytes.at + length, early);
            connection->body_left -= (int64_t)early;
        }
    }
    buf_clear(&connection->head);
}
