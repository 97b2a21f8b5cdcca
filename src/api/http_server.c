#include "api/http.h"
#include "api/http_door.h"
#include "api/http_watch.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BODY_DISCARD_MAX = 8 << 20, /* of a body that is too big, before the connection is cut */
    STREAM_BLOCK = 64 << 10,
    CROWDED_MS = 2000, /* nobody may idle longer than this where three of four places are taken */
};

/* One connection; kept in a list so that the sweep finds requests that never become whole. */
struct http_client {
    struct http_client *next, *previous;
    int fd;
    int64_t idle_ms;         /* since when no request is under way, or the request began */
    bool is_by_door;         /* of HTTP_DOOR_MAX */
    bool is_whole;           /* the request has been read: no time limit of ours */
    struct carried *carried; /* of the request under way; only for the connection's thread */
};

struct http_server {
    struct http_app app;
    struct MHD_Daemon *daemon;
    struct http_watch *watch;
    struct http_door *network, *door; /* `door`: NULL: none */
    const char *door_prefix;          /* static */
    uint16_t port;
    uint32_t request_ms;
    atomic_bool is_draining;
    atomic_uint streams;
    pthread_mutex_t lock;       /* guards the list */
    struct http_client clients; /* head */
    size_t client_count, door_count;
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

static void carried_suspend(struct exchange *exchange)
{
    struct carried *carried = (struct carried *)exchange;
    assert(!carried->is_suspended);
    carried->is_suspended = true;
    MHD_suspend_connection(carried->connection);
}

static void carried_resume(struct exchange *exchange)
{
    struct carried *carried = (struct carried *)exchange;
    MHD_resume_connection(carried->connection);
}

static const struct exchange_port CARRIED_PORT = {carried_suspend, carried_resume};

/* ---- streams ---- */

static int client_fd_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
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
    ssize_t length = stream->read(stream->state, bytes, size);
    if (length > 0)
        return length;
    if (length == HTTP_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (length == HTTP_STREAM_BROKEN)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    MHD_suspend_connection(carried->connection);
    if (!http_watch_add(server->watch, carried, stream->fd, client_fd_of(carried->connection),
                        stream->poll_ms)) {
        carried->is_client_gone = !atomic_load(&server->is_draining);
        MHD_resume_connection(carried->connection);
    }
    return 0;
}

static void stream_wake(void *context, void *waiter, bool is_client_gone)
{
    (void)context;
    struct carried *carried = waiter;
    carried->is_client_gone = is_client_gone;
    MHD_resume_connection(carried->connection);
}

/* ---- replies ---- */

static struct MHD_Response *response_of(struct carried *carried)
{
    struct http_reply *reply = &carried->exchange.reply;
    if (reply->stream.read) {
        carried->is_stream = true;
        atomic_fetch_add(&carried->server->streams, 1);
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read,
                                                 carried, NULL);
    }
    size_t length = reply->body.length;
    return MHD_create_response_from_buffer(length, length ? buf_steal(&reply->body) : NULL,
                                           length ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result reply_queue(struct carried *carried)
{
    struct http_reply *reply = &carried->exchange.reply;
    assert(reply->status >= 200 && reply->status < 600);
    struct MHD_Response *response = response_of(carried);
    if (!response)
        return MHD_NO;
    if (reply->content_type)
        MHD_add_response_header(response, "Content-Type", reply->content_type);
    MHD_add_response_header(response, "Access-Control-Allow-Origin", "*");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    for (size_t i = 0; i < reply->header_count; i++)
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
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
    carried->exchange.address = text_of(arena_copy(&carried->exchange.arena, text_of(name)));
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

static struct http_client *client_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
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
    if (client_of(carried->connection)->is_by_door &&
        !text_starts(text_of(carried->target), text_of(carried->server->door_prefix)))
        return refuse(carried, 403,
                      "{\"code\":\"ForbiddenUserError\",\"message\":\"this is not for tasks\"}");
    carried->is_begun = true;
    exchange->begin_us = http_clock_us();
    exchange->method = method_of(method);
    exchange->authorization = header_of(carried, "Authorization");
    exchange->content_type = header_of(carried, "Content-Type");
    exchange->accept = header_of(carried, "Accept");
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

static bool is_by_door(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info && info->client_addr && info->client_addr->sa_family == AF_UNIX;
}

/* Of those that came the same way; the caller has the lock. */
static size_t taken_count(const struct http_server *server, bool is_by_door)
{
    return is_by_door ? server->door_count : server->client_count - server->door_count;
}

static size_t place_count(bool is_by_door)
{
    return is_by_door ? HTTP_DOOR_MAX : HTTP_CONNECTIONS_MAX;
}

static bool has_room(struct http_server *server, bool is_by_door)
{
    pthread_mutex_lock(&server->lock);
    bool has = taken_count(server, is_by_door) < place_count(is_by_door);
    pthread_mutex_unlock(&server->lock);
    return has;
}

static bool network_has_room(void *context)
{
    return has_room(context, false);
}

static bool door_has_room(void *context)
{
    return has_room(context, true);
}

static void connection_take(void *context, int fd, const struct sockaddr *from, socklen_t length)
{
    struct http_server *server = context;
    MHD_add_connection(server->daemon, fd, from, length); /* closes it when it fails */
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct http_client *client = mem_zero(1, sizeof *client);
        client->fd = client_fd_of(connection);
        client->idle_ms = http_clock_ms();
        client->is_by_door = is_by_door(connection);
        server->door_count += client->is_by_door;
        client->next = server->clients.next;
        client->previous = &server->clients;
        client->next->previous = client;
        server->clients.next = client;
        server->client_count++;
        *socket_context = client;
    } else if (*socket_context) {
        struct http_client *client = *socket_context;
        client->previous->next = client->next;
        client->next->previous = client->previous;
        server->client_count--;
        server->door_count -= client->is_by_door;
        *socket_context = NULL;
        carried_free(client->carried);
        mem_free(client);
    }
    pthread_mutex_unlock(&server->lock);
}

static void sweep(void *context)
{
    struct http_server *server = context;
    int64_t now_ms = http_clock_ms(), limit_ms[2];
    pthread_mutex_lock(&server->lock);
    for (int is_by_door = 0; is_by_door < 2; is_by_door++) {
        bool is_crowded = taken_count(server, is_by_door) > place_count(is_by_door) / 4 * 3;
        limit_ms[is_by_door] =
            is_crowded && server->request_ms > CROWDED_MS ? CROWDED_MS : server->request_ms;
    }
    for (struct http_client *at = server->clients.next; at != &server->clients; at = at->next)
        if (!at->is_whole && now_ms - at->idle_ms > limit_ms[at->is_by_door])
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

static struct MHD_Daemon *daemon_start(struct http_server *server, unsigned threads)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
        NULL, NULL, on_request, server, MHD_OPTION_THREAD_POOL_SIZE, thread_count(threads),
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX + HTTP_DOOR_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADERS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)HTTP_IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, server, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);
}

static int doors_open(struct http_server *server, const struct http_server_config *config,
                      struct err *err)
{
    const struct http_door_ops network = {server, network_has_room, connection_take};
    const struct http_door_ops door = {server, door_has_room, connection_take};
    int failed = http_door_listen(config->listen, &network, &server->network, &server->port, err);
    if (failed || !config->door)
        return failed;
    server->door_prefix = config->door_prefix;
    return http_door_open(config->door, "api", &door, &server->door, err);
}

static void doors_close(struct http_server *server)
{
    http_door_close(server->network);
    http_door_close(server->door);
    server->network = server->door = NULL;
}

static void server_free(struct http_server *server)
{
    doors_close(server);
    http_watch_stop(server->watch);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    pthread_mutex_destroy(&server->lock);
    mem_free(server);
}

int http_server_start(const struct http_server_config *config, struct http_server **out,
                      struct err *err)
{
    struct http_server *server = mem_zero(1, sizeof *server);
    server->app = config->app;
    server->request_ms = config->request_ms ? config->request_ms : HTTP_REQUEST_MS;
    server->clients.next = server->clients.previous = &server->clients;
    pthread_mutex_init(&server->lock, NULL);
    struct http_watch_ops ops = {.context = server, .wake = stream_wake, .sweep = sweep};
    int failed = http_watch_start(&ops, &server->watch, err);
    if (!failed) {
        server->daemon = daemon_start(server, config->threads);
        if (!server->daemon)
            failed = err_errno(err, errno, "start the HTTP server");
    }
    if (!failed)
        failed = doors_open(server, config, err);
    if (failed) {
        server_free(server);
        return failed;
    }
    *out = server;
    return 0;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
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
    counts->connections = server->client_count;
    pthread_mutex_unlock(&server->lock);
    counts->streams = atomic_load(&server->streams);
}
