#include "api/http_door.h"
#include "api/http_loop.h"
#include "api/http_request.h"
#include "api/http_tls.h"
#include "api/http_watch.h"
#include "base/address.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
    bool has_started;       /* what it is given just now; its thread's */
};

struct loops {
    struct seat *seats;
    size_t count;
    atomic_uint next; /* who gets the next connection */
};

struct http_server {
    struct http_edge edge;      /* its lock guards the list of clients and what is taken, too */
    struct loops plain, secure; /* `secure`: of the network, when that speaks TLS; else none */
    struct http_entry entries[HTTP_WAYS];
    uint16_t port;
    uint32_t request_ms, crowded_ms;
    struct http_client clients; /* head */
};

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
    pthread_mutex_lock(&entry->server->edge.lock);
    bool has_room = entry->taken < entry->places;
    pthread_mutex_unlock(&entry->server->edge.lock);
    return has_room;
}

/* A place is taken from the moment on at which a connection is given to one of the threads: they
 * may be busy, and must not find more than there are places. It is the same place to the end of the
 * connection. */
static void entry_take(void *context, int fd, const struct sockaddr *from, socklen_t length)
{
    struct http_entry *entry = context;
    struct http_server *server = entry->server;
    struct sockaddr_un local = address_of_way(entry->way);
    bool is_network = entry->way == HTTP_BY_NETWORK;
    struct loops *loops = is_network && server->secure.count ? &server->secure : &server->plain;
    struct http_loop *loop = loops->seats[atomic_fetch_add(&loops->next, 1) % loops->count].loop;
    pthread_mutex_lock(&server->edge.lock);
    entry->taken++;
    pthread_mutex_unlock(&server->edge.lock);
    http_loop_give(loop, fd, entry->way, is_network ? from : (const struct sockaddr *)&local,
                   is_network ? length : sizeof local);
}

/* What has started gives its place back at its end. */
static void entry_added(void *context, enum http_way way, bool is_added)
{
    struct seat *seat = context;
    struct http_server *server = seat->server;
    const bool has_place = is_added || seat->has_started;
    seat->has_started = false;
    if (has_place)
        return;
    pthread_mutex_lock(&server->edge.lock);
    assert(server->entries[way].taken > 0);
    server->entries[way].taken--;
    pthread_mutex_unlock(&server->edge.lock);
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
    struct seat *seat = context;
    struct http_server *server = seat->server;
    pthread_mutex_lock(&server->edge.lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        seat->has_started = true;
        struct http_client *client = mem_zero(1, sizeof *client);
        client->loop = seat->loop;
        client->fd = http_client_fd(connection);
        client->idle_ms = clock_monotonic_ms();
        client->way = way_of(connection);
        client->peer_uid = client->way == HTTP_BY_SOCKET ? peer_uid_of(client->fd) : -1;
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
        http_request_free(client->carried);
        mem_free(client);
    }
    pthread_mutex_unlock(&server->edge.lock);
}

/* Where three of four places are taken nobody may idle for long. */
static int64_t idle_limit_ms(const struct http_server *server, enum http_way way)
{
    const struct http_entry *entry = &server->entries[way];
    bool is_crowded = entry->taken > entry->places / 4 * 3;
    return is_crowded && server->request_ms > server->crowded_ms ? server->crowded_ms
                                                                 : server->request_ms;
}

/* Who has closed, and of whom everything has been read, makes no request whole any more.
 * libmicrohttpd (0.9.75) does not notice when the last bytes and the end came together: it takes
 * what it reads, less than it has room for, as all that there is, and the end is not told again. */
static bool client_has_gone(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    int unread = 0;
    return poll(&end, 1, 0) > 0 && !ioctl(fd, FIONREAD, &unread) && !unread;
}

/* Whoever is found gone twice is cut off: what was read last may be about to become a whole request
 * the first time. */
static void sweep(void *context)
{
    struct http_server *server = context;
    int64_t now_ms = clock_monotonic_ms(), limit_ms[HTTP_WAYS];
    pthread_mutex_lock(&server->edge.lock);
    for (int way = 0; way < HTTP_WAYS; way++)
        limit_ms[way] = idle_limit_ms(server, (enum http_way)way);
    for (struct http_client *at = server->clients.next; at != &server->clients; at = at->next) {
        const bool was_gone = at->was_gone;
        at->was_gone = !at->is_whole && client_has_gone(at->fd);
        const bool is_late = !at->is_whole && now_ms - at->idle_ms > limit_ms[at->way];
        if (is_late || (was_gone && at->was_gone))
            shutdown(at->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->edge.lock);
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
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, http_tls_retrieve_and_ask()},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem *more = is_secure ? secure : &secure[COUNT_OF(secure) - 1];
    const unsigned idle_s =
        server->edge.config.idle_s ? server->edge.config.idle_s : (unsigned)HTTP_IDLE_S;
    unsigned places = 1;
    for (size_t i = 0; i < HTTP_WAYS; i++)
        places += (unsigned)server->entries[i].places;
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
            (is_secure ? MHD_USE_TLS : 0),
        0, NULL, NULL, http_request_take, &server->edge, MHD_OPTION_CONNECTION_LIMIT, places,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADERS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        idle_s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, http_request_begin,
        &server->edge, MHD_OPTION_UNESCAPE_CALLBACK, http_request_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, http_request_completed, &server->edge,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, seat, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

static int loops_start(struct http_server *server, struct loops *loops, bool is_secure,
                       struct err *err)
{
    loops->count = thread_count(server->edge.config.threads);
    loops->seats = mem_zero(loops->count, sizeof *loops->seats);
    for (size_t i = 0; i < loops->count; i++) {
        struct seat *seat = &loops->seats[i];
        seat->server = server;
        struct MHD_Daemon *daemon = daemon_start(seat, is_secure);
        if (!daemon)
            return err_errno(err, errno, "start the HTTP%s server", is_secure ? "S" : "");
        const struct http_loop_ops ops = {.context = seat, .added = entry_added};
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
    if (server->edge.config.connections_max)
        server->entries[HTTP_BY_NETWORK].places = server->edge.config.connections_max;
}

static int doors_open(struct http_server *server, struct err *err)
{
    const struct http_server_config *config = &server->edge.config;
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
    http_watch_stop(server->edge.watch);
    loops_stop(&server->secure);
    loops_stop(&server->plain);
    pthread_mutex_destroy(&server->edge.lock);
    mem_free(server->edge.proxies);
    mem_free(server->edge.hsts);
    mem_free(server);
}

static int headers_prepare(struct http_server *server, struct err *err)
{
    const struct http_server_config *config = &server->edge.config;
    struct buf hsts = BUF_INIT;
    server->edge.proxies = mem_zero(config->proxy_count + 1, sizeof *server->edge.proxies);
    for (size_t i = 0; i < config->proxy_count; i++) {
        int code = address_range_parse(config->proxies[i], &server->edge.proxies[i], err);
        if (code)
            return code;
    }
    if (config->tls && config->hsts_s) {
        buf_format(&hsts, "max-age=%u", config->hsts_s);
        server->edge.hsts = buf_steal(&hsts);
    }
    return 0;
}

int http_server_start(const struct http_server_config *config, struct http_server **out,
                      struct err *err)
{
    struct http_server *server = mem_zero(1, sizeof *server);
    server->edge.config = *config;
    server->request_ms = config->request_ms ? config->request_ms : HTTP_REQUEST_MS;
    server->crowded_ms = config->crowded_ms ? config->crowded_ms : HTTP_CROWDED_MS;
    server->clients.next = server->clients.previous = &server->clients;
    pthread_mutex_init(&server->edge.lock, NULL);
    entries_init(server);
    struct http_watch_ops ops = {.context = server, .wake = http_request_wake, .sweep = sweep};
    int code = headers_prepare(server, err);
    if (!code)
        code = http_watch_start(&ops, &server->edge.watch, err);
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
    http_watch_wake_all(server->edge.watch);
}

void http_server_news(struct http_server *server)
{
    http_watch_news(server->edge.watch);
}

void http_server_drain(struct http_server *server)
{
    atomic_store(&server->edge.is_draining, true);
    doors_close(server);
    http_watch_wake_all(server->edge.watch);
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    if (!atomic_load(&server->edge.is_draining))
        http_server_drain(server);
    server_free(server);
}

void http_server_count(struct http_server *server, struct http_server_counts *counts)
{
    pthread_mutex_lock(&server->edge.lock);
    counts->connections = 0;
    for (size_t i = 0; i < HTTP_WAYS; i++)
        counts->connections += server->entries[i].taken;
    pthread_mutex_unlock(&server->edge.lock);
    counts->streams = atomic_load(&server->edge.streams);
}
