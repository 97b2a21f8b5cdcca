#include "api/http_request.h"
#include "api/http_loop.h"
#include "api/http_proxy.h"
#include "api/http_tls.h"
#include "api/http_watch.h"
#include "base/address.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_DISCARD_MAX = 8 << 20, /* of a body that is too big, before the connection is cut */
    STREAM_BLOCK = 64 << 10,
};

/* An exchange on its way through libmicrohttpd. */
struct carried {
    struct exchange exchange; /* first: the port's functions cast back */
    struct http_edge *edge;
    struct MHD_Connection *connection;
    char *target; /* owned copy */
    bool is_begun, is_handled, is_suspended, is_client_gone, is_stream;
    bool is_ended; /* the app has been told */
    size_t discarded;
};

static const struct {
    const char *name;
    enum http_method method;
} METHODS[] = {
    {MHD_HTTP_METHOD_GET, HTTP_GET},       {MHD_HTTP_METHOD_HEAD, HTTP_HEAD},
    {MHD_HTTP_METHOD_POST, HTTP_POST},     {MHD_HTTP_METHOD_PUT, HTTP_PUT},
    {MHD_HTTP_METHOD_DELETE, HTTP_DELETE}, {MHD_HTTP_METHOD_OPTIONS, HTTP_OPTIONS},
};

static enum http_method method_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(METHODS); i++)
        if (strcmp(METHODS[i].name, name) == 0)
            return METHODS[i].method;
    return HTTP_OTHER;
}

static struct http_client *client_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void connection_resume(struct MHD_Connection *connection)
{
    http_loop_resume(client_of(connection)->loop, connection);
}

static void carried_suspend(struct exchange *exchange)
{
    struct carried *carried = (struct carried *)exchange;
    assert(!carried->is_suspended);
    carried->is_suspended = true;
    MHD_suspend_connection(carried->connection);
}

static void carried_resume(struct exchange *exchange)
{
    connection_resume(((struct carried *)exchange)->connection);
}

static const struct exchange_port CARRIED_PORT = {carried_suspend, carried_resume};

/* ---- streams ---- */

int http_client_fd(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* The earlier of both times; 0: none. */
static int64_t due_of(const struct http_stream *stream)
{
    int64_t poll_ms = stream->poll_ms ? clock_monotonic_ms() + stream->poll_ms : 0;
    return !poll_ms || (stream->until_ms && stream->until_ms < poll_ms) ? stream->until_ms
                                                                        : poll_ms;
}

static ssize_t stream_read(void *context, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    struct carried *carried = context;
    struct http_edge *edge = carried->edge;
    struct http_stream *stream = &carried->exchange.reply.stream;
    if (carried->is_client_gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    /* cut, not ended: the client must not take this for the end of what it follows */
    if (atomic_load(&edge->is_draining))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    /* what wakes from here on is not missed */
    const struct http_watch_rounds rounds = http_watch_rounds(edge->watch);
    ssize_t length = stream->read(stream->state, bytes, size);
    if (length > 0)
        return length;
    if (length == HTTP_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (length == HTTP_STREAM_BROKEN)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    MHD_suspend_connection(carried->connection);
    const struct http_waiting waiting = {.fd = stream->fd,
                                         .client_fd = http_client_fd(carried->connection),
                                         .due_ms = due_of(stream),
                                         .wants_news = stream->wants_news,
                                         .rounds = rounds};
    if (!http_watch_add(edge->watch, carried, &waiting)) {
        carried->is_client_gone = !atomic_load(&edge->is_draining);
        connection_resume(carried->connection);
    }
    return 0;
}

void http_request_wake(void *context, void *waiter, bool is_client_gone)
{
    (void)context;
    struct carried *carried = waiter;
    carried->is_client_gone = is_client_gone;
    connection_resume(carried->connection);
}

/* ---- other protocols ---- */

static void on_upgrade(void *context, struct MHD_Connection *connection, void *state,
                       const char *early, size_t early_length, MHD_socket fd,
                       struct MHD_UpgradeResponseHandle *handle)
{
    struct carried *carried = context;
    struct http_upgrade upgrade = carried->exchange.reply.upgrade;
    const struct http_socket socket = {
        .fd = fd, .loop = client_of(connection)->loop, .handle = handle};
    (void)state;
    carried->exchange.reply.upgrade.take = NULL; /* so that it is not dropped, too */
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    upgrade.take(upgrade.state, socket, (struct text){early, early_length});
}

void http_socket_close(struct http_socket *socket)
{
    http_loop_hang_up(socket->loop, socket->handle);
    *socket = (struct http_socket){.fd = -1};
}

/* ---- replies ---- */

static struct MHD_Response *response_of(struct carried *carried)
{
    struct http_reply *reply = &carried->exchange.reply;
    if (reply->upgrade.take)
        return MHD_create_response_for_upgrade(on_upgrade, carried);
    if (reply->stream.read) {
        carried->is_stream = true;
        atomic_fetch_add(&carried->edge->streams, 1);
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read,
                                                 carried, NULL);
    }
    if (reply->fixed.at)
        return MHD_create_response_from_buffer(
            reply->fixed.length, (void *)(uintptr_t)reply->fixed.at, MHD_RESPMEM_PERSISTENT);
    size_t length = reply->body.length;
    return MHD_create_response_from_buffer(length, length ? buf_steal(&reply->body) : NULL,
                                           length ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
}

/* Pages of other origins see replies only where the operator allows it. */
static bool origin_may_read(const struct carried *carried)
{
    const struct http_server_config *config = &carried->edge->config;
    struct text origin = carried->exchange.origin;
    for (size_t i = 0; origin.at && i < config->origin_count; i++)
        if (strcmp(config->origins[i], "*") == 0 || text_is(origin, config->origins[i]))
            return true;
    return false;
}

static void app_end(struct carried *carried)
{
    struct http_app *app = &carried->edge->config.app;
    if (carried->is_begun && !carried->is_ended)
        app->end(app->context, &carried->exchange);
    carried->is_ended = true;
}

/* A header that every reply has unless it says otherwise. */
static void header_default(struct MHD_Response *response, const char *name, const char *value)
{
    if (!MHD_get_response_header(response, name))
        MHD_add_response_header(response, name, value);
}

static enum MHD_Result reply_queue(struct carried *carried)
{
    struct http_reply *reply = &carried->exchange.reply;
    assert(reply->status >= (reply->upgrade.take ? 101 : 200) && reply->status < 600);
    struct MHD_Response *response = response_of(carried);
    if (!response)
        return MHD_NO;
    if (reply->content_type)
        MHD_add_response_header(response, "Content-Type", reply->content_type);
    if (carried->edge->hsts && client_of(carried->connection)->way == HTTP_BY_NETWORK)
        MHD_add_response_header(response, "Strict-Transport-Security", carried->edge->hsts);
    if (origin_may_read(carried))
        MHD_add_response_header(response, "Access-Control-Allow-Origin",
                                arena_copy(&carried->exchange.arena, carried->exchange.origin));
    /* also of a reply to who named no origin: a cache would give it to another one's page */
    if (carried->edge->config.origin_count > 0)
        MHD_add_response_header(response, "Vary", "Origin");
    for (size_t i = 0; i < reply->header_count; i++)
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    header_default(response, "X-Content-Type-Options", "nosniff");
    header_default(response, "Cache-Control", "no-store");
    enum MHD_Result result =
        MHD_queue_response(carried->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    /* the client may take its time */
    app_end(carried);
    exchange_forget(&carried->exchange);
    return result;
}

/* ---- requests ---- */

static struct text header_of(struct carried *carried, const char *name)
{
    const char *value = MHD_lookup_connection_value(carried->connection, MHD_HEADER_KIND, name);
    return value ? text_of(value) : (struct text){NULL, 0};
}

/* All lines of X-Forwarded-For, joined in their order (RFC 9110, 5.3). */
static enum MHD_Result forwarded_take(void *context, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    struct buf *joined = context;
    (void)kind;
    if (strcasecmp(key, "X-Forwarded-For") == 0)
        buf_format(joined, "%s%s", joined->length ? "," : "", value);
    return MHD_YES;
}

/* The client's address, when `peer` may speak for others. */
static struct text client_behind(struct carried *carried, struct text peer)
{
    const struct http_edge *edge = carried->edge;
    cleanup_buf struct buf joined = BUF_INIT;
    MHD_get_connection_values(carried->connection, MHD_HEADER_KIND, forwarded_take, &joined);
    struct text client =
        http_proxy_client(edge->proxies, edge->config.proxy_count, peer, buf_as_text(&joined));
    return text_of(arena_copy(&carried->exchange.arena, client));
}

static void address_fill(struct carried *carried)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(carried->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char name[INET6_ADDRSTRLEN] = "";
    if (info && info->client_addr) {
        const struct sockaddr *address = info->client_addr;
        if (address->sa_family == AF_INET)
            inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, name,
                      sizeof name);
        else if (address->sa_family == AF_INET6)
            inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                      name, sizeof name);
    }
    struct exchange *exchange = &carried->exchange;
    exchange->address = text_of(arena_copy(&exchange->arena, text_of(name)));
    if (name[0] && carried->edge->config.proxy_count)
        exchange->address = client_behind(carried, exchange->address);
}

/* Bytes of the body as announced; 0 without one, -1 when nobody knows (chunks). */
static int64_t body_length(struct carried *carried)
{
    struct text length = header_of(carried, "Content-Length");
    int64_t value = 0;
    if (header_of(carried, "Transfer-Encoding").at)
        return -1;
    return length.at && text_to_int64(length, &value) ? value : 0;
}

/* Headers that say where the request ends, or for whom it is. */
struct framing {
    unsigned lengths, codings, hosts;
};

static enum MHD_Result framing_count(void *context, enum MHD_ValueKind kind, const char *key,
                                     const char *value)
{
    struct framing *framing = context;
    (void)kind, (void)value;
    framing->lengths += strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    framing->codings += strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    framing->hosts += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
    return MHD_YES;
}

/* Two parties that read such a request differently could be made to see different requests (RFC
 * 9112, 6.3 and 3.2). */
static bool is_ambiguous(struct carried *carried)
{
    struct framing framing = {0};
    MHD_get_connection_values(carried->connection, MHD_HEADER_KIND, framing_count, &framing);
    return framing.lengths + framing.codings > 1 || framing.hosts > 1;
}

static enum MHD_Result refuse(struct carried *carried, int status, const char *body)
{
    struct http_reply *reply = &carried->exchange.reply;
    reply->status = status;
    reply->content_type = "application/json; charset=utf-8";
    buf_string(&reply->body, body);
    exchange_header(&carried->exchange, "Connection", "close");
    carried->is_handled = true;
    return reply_queue(carried);
}

static enum MHD_Result certificate_refuse(struct carried *carried, const char *why)
{
    cleanup_buf struct buf body = BUF_INIT;
    struct json_writer json;
    json_init(&json, &body);
    json_object(&json);
    json_key_string(&json, "code", "UnauthorizedUserError");
    json_key_string(&json, "message", why);
    json_object_end(&json);
    return refuse(carried, 401, buf_cstr(&body));
}

/* What the client has shown, where it was asked. NULL: it is fine. */
static const char *certificate_take(struct carried *carried, struct http_client *client)
{
    struct http_tls *tls = carried->edge->config.tls;
    if (!tls || client->way != HTTP_BY_NETWORK)
        return NULL;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(carried->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (!http_tls_client(tls, info->tls_session, &client->shown, &client->shown_load))
        return NULL;
    carried->exchange.certificate = &client->shown;
    if (client->shown.state == TLS_CLIENT_BAD)
        return client->shown.text;
    if (client->shown.state == TLS_CLIENT_NONE && http_tls_wants_client(tls))
        return "show a client certificate: this server wants one (skep --client-certificate)";
    return NULL;
}

static enum MHD_Result request_begin(struct carried *carried, const char *method)
{
    struct exchange *exchange = &carried->exchange;
    if (is_ambiguous(carried))
        return refuse(carried, 400,
                      "{\"code\":\"InvalidParametersError\",\"message\":\"the headers say twice "
                      "where the request ends, or for whom it is\"}");
    struct http_client *client = client_of(carried->connection);
    const char *certificate_problem = certificate_take(carried, client);
    if (certificate_problem)
        return certificate_refuse(carried, certificate_problem);
    if (client->way == HTTP_BY_DOOR &&
        !text_starts(text_of(carried->target), text_of(carried->edge->config.door_prefix)))
        return refuse(carried, 403,
                      "{\"code\":\"ForbiddenUserError\",\"message\":\"this is not for tasks\"}");
    carried->is_begun = true;
    exchange->begin_us = clock_monotonic_us();
    exchange->method = method_of(method);
    exchange->authorization = header_of(carried, "Authorization");
    exchange->content_type = header_of(carried, "Content-Type");
    exchange->accept = header_of(carried, "Accept");
    exchange->last_event_id = header_of(carried, "Last-Event-ID");
    exchange->origin = header_of(carried, "Origin");
    exchange->cookie = header_of(carried, "Cookie");
    exchange->peer_uid = client->peer_uid;
    exchange->accept_encoding = header_of(carried, "Accept-Encoding");
    exchange->if_none_match = header_of(carried, "If-None-Match");
    exchange->range = header_of(carried, "Range");
    exchange->if_range = header_of(carried, "If-Range");
    exchange->idempotency_key = header_of(carried, "Idempotency-Key");
    exchange->upgrade = header_of(carried, "Upgrade");
    exchange->websocket_key = header_of(carried, "Sec-WebSocket-Key");
    exchange->websocket_version = header_of(carried, "Sec-WebSocket-Version");
    exchange->websocket_protocol = header_of(carried, "Sec-WebSocket-Protocol");
    exchange->target = text_of(carried->target);
    address_fill(carried);
    int64_t length = body_length(carried);
    exchange->body_length = length;
    exchange->is_body_too_big = length > HTTP_BODY_MAX;
    struct http_app *app = &carried->edge->config.app;
    if (app->begin(app->context, exchange))
        return MHD_YES;
    carried->is_handled = true;
    /* a client that is still sending would lose a reply that comes before the end of its body */
    if (length && length <= BODY_DISCARD_MAX)
        return MHD_YES;
    return reply_queue(carried);
}

static void body_take(struct carried *carried, const char *bytes, size_t length)
{
    struct exchange *exchange = &carried->exchange;
    if (carried->is_handled || exchange->is_body_too_big ||
        exchange->body.length + length > exchange->body_max) {
        exchange->is_body_too_big = true; /* or not wanted: the reply is there */
        carried->discarded += length;
        return;
    }
    buf_add(&exchange->body, bytes, length);
}

static enum MHD_Result request_handle(struct carried *carried)
{
    struct http_app *app = &carried->edge->config.app;
    struct exchange *exchange = &carried->exchange;
    if (carried->is_suspended) {
        carried->is_suspended = false;
        app->resume(app->context, exchange);
    } else if (!carried->is_handled) {
        struct http_client *client = client_of(carried->connection);
        pthread_mutex_lock(&carried->edge->lock);
        client->is_whole = true;
        pthread_mutex_unlock(&carried->edge->lock);
        carried->is_handled = true;
        app->handle(app->context, exchange);
    }
    if (carried->is_suspended)
        return MHD_YES;
    return reply_queue(carried);
}

enum MHD_Result http_request_take(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    (void)context, (void)url, (void)version;
    struct carried *carried = *state;
    if (!carried)
        return MHD_NO;
    carried->connection = connection;
    if (!carried->is_begun)
        return request_begin(carried, method);
    if (*upload_size) {
        body_take(carried, upload, *upload_size);
        *upload_size = 0;
        return carried->discarded > BODY_DISCARD_MAX ? MHD_NO : MHD_YES;
    }
    return request_handle(carried);
}

void http_request_free(struct carried *carried)
{
    if (!carried)
        return;
    exchange_release(&carried->exchange);
    mem_free(carried->target);
    mem_free(carried);
}

/* The target as it was sent: libmicrohttpd would decode it and lose what follows a NUL byte. */
void *http_request_begin(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http_edge *edge = context;
    struct carried *carried = mem_zero(1, sizeof *carried);
    exchange_init(&carried->exchange);
    carried->exchange.port = &CARRIED_PORT;
    carried->edge = edge;
    carried->connection = connection;
    carried->target = mem_copy(target);
    /* a request that libmicrohttpd itself refuses is never told to have been completed */
    struct http_client *client = client_of(connection);
    if (client) {
        http_request_free(client->carried);
        client->carried = carried;
    }
    return carried;
}

size_t http_request_unescape(void *context, struct MHD_Connection *connection, char *string)
{
    (void)context, (void)connection;
    return strlen(string);
}

void http_request_completed(void *context, struct MHD_Connection *connection, void **state,
                            enum MHD_RequestTerminationCode code)
{
    (void)code;
    struct http_edge *edge = context;
    struct carried *carried = *state;
    struct http_client *client = client_of(connection);
    if (client) {
        client->carried = NULL;
        pthread_mutex_lock(&edge->lock);
        client->idle_ms = clock_monotonic_ms();
        client->is_whole = false;
        pthread_mutex_unlock(&edge->lock);
    }
    if (!carried)
        return;
    *state = NULL;
    if (carried->is_stream)
        atomic_fetch_sub(&edge->streams, 1);
    app_end(carried);
    http_request_free(carried);
}
