#include "api/http.h"
#include "api/http_door.h"
#include "api/http_loop.h"
#include "api/http_proxy.h"
#include "api/http_tls.h"
#include "api/http_watch.h"
#include "base/address.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BODY_DISCARD_MAX = 8 << 20, /* of a body that is too big, before the connection is cut */
    STREAM_BLOCK = 64 << 10,
    CROWDED_MS = 2000,
};

/* One connection; kept in a list so that the sweep finds requests that never become whole. */
struct http_client {
    struct http_client *next, *previous;
    struct http_loop *loop; /* who serves it */
    int fd;
    int64_t idle_ms; /* since when no request is under way, or the request began */
    enum http_way way;
    int64_t peer_uid;        /* HTTP_BY_SOCKET; else -1 */
    bool is_whole;           /* the request has been read: no time limit of ours */
    struct carried *carried; /* of the request under way; only for the connection's thread */
};

/* One way in. */
struct http_entry {
    struct http_server *server;
    enum http_way way;
    struct http_door *door; /* NULL: none */
    size_t places;
    size_t taken; /* places, by connections that are served or wait for it; under the lock */
};

/* One of the threads that serve connections; libmicrohttpd's callbacks know it. */
struct seat {
    struct http_server *server;
    struct http_loop *loop; /* NULL: not started */
};

struct loops {
    struct seat *seats;
    size_t count;
    atomic_uint next; /* who gets the next connection */
};

struct http_server {
    struct http_app app;
    struct http_server_config config;
    struct loops plain, secure; /* `secure`: of the network, when that speaks TLS; else none */
    struct http_watch *watch;
    struct http_entry entries[HTTP_WAYS];
    struct address_range *proxies; /* config.proxy_count */
    char *hsts;                    /* the header's value; NULL: none */
    uint16_t port;
    uint32_t request_ms;
    atomic_bool is_draining;
    atomic_uint streams;
    pthread_mutex_t lock;       /* guards the list and what is taken */
    struct http_client clients; /* head */
};

/* An exchange on its way through libmicrohttpd. */
struct carried {
    struct exchange exchange; /* first: the port's functions cast back */
    struct http_server *server;
    struct MHD_Connection *connection;
    char *target; /* owned copy */
    bool is_begun, is_handled, is_suspended, is_client_gone, is_stream;
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

static int client_fd_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* The earlier of both times; 0: none. */
static int64_t due_of(const struct http_stream *stream)
{
    int64_t poll_ms = stream->poll_ms ? http_clock_ms() + stream->poll_ms : 0;
    return !poll_ms || (stream->until_ms && stream->until_ms < poll_ms) ? stream->until_ms
                                                                        : poll_ms;
}

static ssize_t stream_read(void *context, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    struct carried *carried = context;
    struct http_server *server = carried->server;
    struct http_stream *stream = &carried->exchange.reply.stream;
    if (carried->is_client_gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    /* cut, not ended: the client must not take this for the end of what it follows */
    if (atomic_load(&server->is_draining))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    uint64_t round = http_watch_round(server->watch); /* what wakes from here on is not missed */
    ssize_t length = stream->read(stream->state, bytes, size);
    if (length > 0)
        return length;
    if (length == HTTP_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (length == HTTP_STREAM_BROKEN)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    MHD_suspend_connection(carried->connection);
    const struct http_waiting waiting = {.fd = stream->fd,
                                         .client_fd = client_fd_of(carried->connection),
                                         .due_ms = due_of(stream),
                                         .round = round};
    if (!http_watch_add(server->watch, carried, &waiting)) {
        carried->is_client_gone = !atomic_load(&server->is_draining);
        connection_resume(carried->connection);
    }
    return 0;
}

static void stream_wake(void *context, void *waiter, bool is_client_gone)
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
        atomic_fetch_add(&carried->server->streams, 1);
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
    const struct http_server_config *config = &carried->server->config;
    struct text origin = carried->exchange.origin;
    for (size_t i = 0; origin.at && i < config->origin_count; i++)
        if (strcmp(config->origins[i], "*") == 0 || text_is(origin, config->origins[i]))
            return true;
    return false;
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
    if (carried->server->hsts && client_of(carried->connection)->way == HTTP_BY_NETWORK)
        MHD_add_response_header(response, "Strict-Transport-Security", carried->server->hsts);
    if (origin_may_read(carried)) {
        MHD_add_response_header(response, "Access-Control-Allow-Origin",
                                arena_copy(&carried->exchange.arena, carried->exchange.origin));
        MHD_add_response_header(response, "Vary", "Origin");
    }
    for (size_t i = 0; i < reply->header_count; i++)
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    header_default(response, "X-Content-Type-Options", "nosniff");
    header_default(response, "Cache-Control", "no-store");
    enum MHD_Result result =
        MHD_queue_response(carried->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
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
    const struct http_server *server = carried->server;
    cleanup_buf struct buf joined = BUF_INIT;
    MHD_get_connection_values(carried->connection, MHD_HEADER_KIND, forwarded_take, &joined);
    struct text client =
        http_proxy_client(server->proxies, server->config.proxy_count, peer, buf_as_text(&joined));
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
    if (name[0] && carried->server->config.proxy_count)
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

static enum MHD_Result request_begin(struct carried *carried, const char *method)
{
    struct exchange *exchange = &carried->exchange;
    if (is_ambiguous(carried))
        return refuse(carried, 400,
                      "{\"code\":\"InvalidParametersError\",\"message\":\"the headers say twice "
                      "where the request ends, or for whom it is\"}");
    const struct http_client *client = client_of(carried->connection);
    if (client->way == HTTP_BY_DOOR &&
        !text_starts(text_of(carried->target), text_of(carried->server->config.door_prefix)))
        return refuse(carried, 403,
                      "{\"code\":\"ForbiddenUserError\",\"message\":\"this is not for tasks\"}");
    carried->is_begun = true;
    exchange->begin_us = http_clock_us();
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
    exchange->is_body_too_big = length > HTTP_BODY_MAX;
    struct http_app *app = &carried->server->app;
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
        exchange->body.length + length > HTTP_BODY_MAX) {
        exchange->is_body_too_big = true; /* or not wanted: the reply is there */
        carried->discarded += length;
        return;
    }
    buf_add(&exchange->body, bytes, length);
}

static enum MHD_Result request_handle(struct carried *carried)
{
    struct http_app *app = &carried->server->app;
    struct exchange *exchange = &carried->exchange;
    if (carried->is_suspended) {
        carried->is_suspended = false;
        app->resume(app->context, exchange);
    } else if (!carried->is_handled) {
        struct http_client *client = client_of(carried->connection);
        pthread_mutex_lock(&carried->server->lock);
        client->is_whole = true;
        pthread_mutex_unlock(&carried->server->lock);
        carried->is_handled = true;
        app->handle(app->context, exchange);
    }
    if (carried->is_suspended)
        return MHD_YES;
    return reply_queue(carried);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
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

static void carried_free(struct carried *carried)
{
    if (!carried)
        return;
    exchange_release(&carried->exchange);
    mem_free(carried->target);
    mem_free(carried);
}

/* The target as it was sent: libmicrohttpd would decode it and lose what follows a NUL byte. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http_server *server = context;
    struct carried *carried = mem_zero(1, sizeof *carried);
    exchange_init(&carried->exchange);
    carried->exchange.port = &CARRIED_PORT;
    carried->server = server;
    carried->connection = connection;
    carried->target = mem_copy(target);
    /* a request that libmicrohttpd itself refuses is never told to have been completed */
    struct http_client *client = client_of(connection);
    if (client) {
        carried_free(client->carried);
        client->carried = carried;
    }
    return carried;
}

static size_t on_unescape(void *context, struct MHD_Connection *connection, char *string)
{
    (void)context, (void)connection;
    return strlen(string);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    struct http_server *server = context;
    struct carried *carried = *state;
    struct http_client *client = client_of(connection);
    if (client) {
        client->carried = NULL;
        pthread_mutex_lock(&server->lock);
        client->idle_ms = http_clock_ms();
        client->is_whole = false;
        pthread_mutex_unlock(&server->lock);
    }
    if (!carried)
        return;
    *state = NULL;
    if (carried->is_stream)
        atomic_fetch_sub(&server->streams, 1);
    if (carried->is_begun)
        server->app.end(server->app.context, &carried->exchange);
    carried_free(carried);
}

/* ---- connections ---- */

/* What is given to the library as the address of a client that has none. */
static struct sockaddr_un address_of_way(enum http_way way)
{
    return (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = {(char)('0' + way)}};
}

static enum http_way way_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (!info || info->client_addr->sa_family != AF_UNIX)
        return HTTP_BY_NETWORK;
    const struct sockaddr_un *address = (const struct sockaddr_un *)(const void *)info->client_addr;
    return (enum http_way)(address->sun_path[0] - '0');
}

static bool entry_has_room(void *context)
{
    struct http_entry *entry = context;
    pthread_mutex_lock(&entry->server->lock);
    bool has_room = entry->taken < entry->places;
    pthread_mutex_unlock(&entry->server->lock);
    return has_room;
}

/* A place is taken from the moment on at which a connection is given to one of the threads: they
 * may be busy, and must not find more than there are places. */
static void entry_take(void *context, int fd, const struct sockaddr *from, socklen_t length)
{
    struct http_entry *entry = context;
    struct http_server *server = entry->server;
    struct sockaddr_un local = address_of_way(entry->way);
    bool is_network = entry->way == HTTP_BY_NETWORK;
    struct loops *loops = is_network && server->secure.count ? &server->secure : &server->plain;
    struct http_loop *loop = loops->seats[atomic_fetch_add(&loops->next, 1) % loops->count].loop;
    pthread_mutex_lock(&server->lock);
    entry->taken++;
    pthread_mutex_unlock(&server->lock);
    http_loop_give(loop, fd, entry->way, is_network ? from : (const struct sockaddr *)&local,
                   is_network ? length : sizeof local);
}

/* Its own place is on_connection's now, or it could not be added. */
static void entry_added(void *context, enum http_way way)
{
    struct http_server *server = context;
    pthread_mutex_lock(&server->lock);
    assert(server->entries[way].taken > 0);
    server->entries[way].taken--;
    pthread_mutex_unlock(&server->lock);
}

static int64_t peer_uid_of(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return -1;
    return (int64_t)peer.uid;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    const struct seat *seat = context;
    struct http_server *server = seat->server;
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct http_client *client = mem_zero(1, sizeof *client);
        client->loop = seat->loop;
        client->fd = client_fd_of(connection);
        client->idle_ms = http_clock_ms();
        client->way = way_of(connection);
        client->peer_uid = client->way == HTTP_BY_SOCKET ? peer_uid_of(client->fd) : -1;
        server->entries[client->way].taken++;
        client->next = server->clients.next;
        client->previous = &server->clients;
        client->next->previous = client;
        server->clients.next = client;
        *socket_context = client;
    } else if (*socket_context) {
        struct http_client *client = *socket_context;
        client->previous->next = client->next;
        client->next->previous = client->previous;
        server->entries[client->way].taken--;
        *socket_context = NULL;
        carried_free(client->carried);
        mem_free(client);
    }
    pthread_mutex_unlock(&server->lock);
}

/* Where three of four places are taken nobody may idle for long. */
static int64_t idle_limit_ms(const struct http_server *server, enum http_way way)
{
    const struct http_entry *entry = &server->entries[way];
    bool is_crowded = entry->taken > entry->places / 4 * 3;
    return is_crowded && server->request_ms > CROWDED_MS ? CROWDED_MS : server->request_ms;
}

static void sweep(void *context)
{
    struct http_server *server = context;
    int64_t now_ms = http_clock_ms(), limit_ms[HTTP_WAYS];
    pthread_mutex_lock(&server->lock);
    for (int way = 0; way < HTTP_WAYS; way++)
        limit_ms[way] = idle_limit_ms(server, (enum http_way)way);
    for (struct http_client *at = server->clients.next; at != &server->clients; at = at->next)
        if (!at->is_whole && now_ms - at->idle_ms > limit_ms[at->way])
            shutdown(at->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
}

/* ---- start and stop ---- */

static unsigned thread_count(unsigned wanted)
{
    if (wanted)
        return wanted;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 2 ? 2 : processors > 8 ? 8 : (unsigned)processors;
}

/* More connections than places never come, so that its own limit, which it does not survive, is
 * never met (http_loop.h). */
static struct MHD_Daemon *daemon_start(struct seat *seat, bool is_secure)
{
    struct http_server *server = seat->server;
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)HTTP_TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, http_tls_retrieve()},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem *more = is_secure ? secure : &secure[COUNT_OF(secure) - 1];
    unsigned places = 1;
    for (size_t i = 0; i < HTTP_WAYS; i++)
        places += (unsigned)server->entries[i].places;
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
            (is_secure ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, server, MHD_OPTION_CONNECTION_LIMIT, places,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADERS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)HTTP_IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, server, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, seat, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

static int loops_start(struct http_server *server, struct loops *loops, bool is_secure,
                       struct err *err)
{
    const struct http_loop_ops ops = {.context = server, .added = entry_added};
    loops->count = thread_count(server->config.threads);
    loops->seats = mem_zero(loops->count, sizeof *loops->seats);
    for (size_t i = 0; i < loops->count; i++) {
        struct seat *seat = &loops->seats[i];
        seat->server = server;
        struct MHD_Daemon *daemon = daemon_start(seat, is_secure);
        if (!daemon)
            return err_errno(err, errno, "start the HTTP%s server", is_secure ? "S" : "");
        int code = http_loop_start(daemon, &ops, &seat->loop, err);
        if (code)
            return code;
    }
    return 0;
}

static void loops_stop(struct loops *loops)
{
    for (size_t i = 0; i < loops->count; i++)
        http_loop_stop(loops->seats[i].loop);
    mem_free(loops->seats);
}

static void entries_init(struct http_server *server)
{
    static const size_t usual[HTTP_WAYS] = {
        [HTTP_BY_NETWORK] = HTTP_CONNECTIONS_MAX,
        [HTTP_BY_DOOR] = HTTP_DOOR_MAX,
        [HTTP_BY_SOCKET] = HTTP_SOCKET_MAX,
    };
    for (size_t way = 0; way < HTTP_WAYS; way++)
        server->entries[way] =
            (struct http_entry){.server = server, .way = (enum http_way)way, .places = usual[way]};
    if (server->config.connections_max)
        server->entries[HTTP_BY_NETWORK].places = server->config.connections_max;
}

static int doors_open(struct http_server *server, struct err *err)
{
    const struct http_server_config *config = &server->config;
    struct http_entry *entries = server->entries;
    struct http_door_ops ops[HTTP_WAYS];
    for (int way = 0; way < HTTP_WAYS; way++)
        ops[way] = (struct http_door_ops){&entries[way], entry_has_room, entry_take};
    int code = http_door_listen(config->listen, &ops[HTTP_BY_NETWORK],
                                &entries[HTTP_BY_NETWORK].door, &server->port, err);
    if (!code && config->door)
        code = http_door_open(config->door, "api", &ops[HTTP_BY_DOOR], &entries[HTTP_BY_DOOR].door,
                              err);
    if (!code && config->socket_folder)
        code = http_door_open(config->socket_folder, config->socket_name, &ops[HTTP_BY_SOCKET],
                              &entries[HTTP_BY_SOCKET].door, err);
    return code;
}

static void doors_close(struct http_server *server)
{
    for (size_t i = 0; i < HTTP_WAYS; i++) {
        http_door_close(server->entries[i].door);
        server->entries[i].door = NULL;
    }
}

static void server_free(struct http_server *server)
{
    doors_close(server);
    http_watch_stop(server->watch);
    loops_stop(&server->secure);
    loops_stop(&server->plain);
    pthread_mutex_destroy(&server->lock);
    mem_free(server->proxies);
    mem_free(server->hsts);
    mem_free(server);
}

static int headers_prepare(struct http_server *server, struct err *err)
{
    const struct http_server_config *config = &server->config;
    struct buf hsts = BUF_INIT;
    server->proxies = mem_zero(config->proxy_count + 1, sizeof *server->proxies);
    for (size_t i = 0; i < config->proxy_count; i++) {
        int code = address_range_parse(config->proxies[i], &server->proxies[i], err);
        if (code)
            return code;
    }
    if (config->tls && config->hsts_s) {
        buf_format(&hsts, "max-age=%u", config->hsts_s);
        server->hsts = buf_steal(&hsts);
    }
    return 0;
}

int http_server_start(const struct http_server_config *config, struct http_server **out,
                      struct err *err)
{
    struct http_server *server = mem_zero(1, sizeof *server);
    server->app = config->app;
    server->config = *config;
    server->request_ms = config->request_ms ? config->request_ms : HTTP_REQUEST_MS;
    server->clients.next = server->clients.previous = &server->clients;
    pthread_mutex_init(&server->lock, NULL);
    entries_init(server);
    struct http_watch_ops ops = {.context = server, .wake = stream_wake, .sweep = sweep};
    int code = headers_prepare(server, err);
    if (!code)
        code = http_watch_start(&ops, &server->watch, err);
    if (!code)
        code = loops_start(server, &server->plain, false, err);
    if (!code && config->tls)
        code = loops_start(server, &server->secure, true, err);
    if (!code)
        code = doors_open(server, err);
    if (code) {
        server_free(server);
        return code;
    }
    *out = server;
    return 0;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_wake(struct http_server *server)
{
    http_watch_wake_all(server->watch);
}

void http_server_drain(struct http_server *server)
{
    atomic_store(&server->is_draining, true);
    doors_close(server);
    http_watch_wake_all(server->watch);
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    if (!atomic_load(&server->is_draining))
        http_server_drain(server);
    server_free(server);
}

void http_server_count(struct http_server *server, struct http_server_counts *counts)
{
    pthread_mutex_lock(&server->lock);
    counts->connections = 0;
    for (size_t i = 0; i < HTTP_WAYS; i++)
        counts->connections += server->entries[i].taken;
    pthread_mutex_unlock(&server->lock);
    counts->streams = atomic_load(&server->streams);
}
