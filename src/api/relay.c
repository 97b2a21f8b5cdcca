#include "api/relay.h"
#include "api/http_door.h"
#include "api/http_watch.h"
#include "api/relay_head.h"
#include "api/relay_state.h"
#include "api/relay_stream.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/byte_flow.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, TURNS_MAX = 16, ROUND_MS = 1000, LINGER_MS = 10000 };
static const uint64_t KEY_WAKE = UINT64_MAX;

/* ---- the answer ---- */

/* The head that counts, behind those on the way to it (1xx but 101). */
static void reply_take(struct relay_connection *connection)
{
    cleanup_buf struct buf head = connection->head;
    struct text rest = buf_as_text(&head);
    struct relay_reply reply = {.status = 100};
    struct err err;
    int code = 0;
    connection->head = (struct buf)BUF_INIT;
    while (!code && reply.status < 200 && reply.status != 101) {
        size_t length = relay_head_length(rest);
        if (!length && rest.length < RELAY_HEAD_MAX) {
            buf_text(&connection->head, rest);
            return;
        }
        code =
            length ? relay_reply_parse((struct text){rest.at, length}, &reply, &err) : ERR_TOO_BIG;
        rest = (struct text){rest.at + length, rest.length - length};
    }
    if (code || (reply.status == 101 && !connection->is_websocket)) {
        relay_answer(connection, 502, "Bad Gateway",
                     "What answers at this port of the task does not speak HTTP/1.1.", "");
        return;
    }
    if (reply.status != 101)
        connection->is_websocket = false;
    relay_reply_write(&reply, &connection->down.bytes);
    buf_text(&connection->down.bytes, rest);
    connection->stage = STAGE_PIPE;
}

/* ---- bytes ---- */

static void moved(struct relay_connection *connection)
{
    if (connection->stage == STAGE_ANSWER || connection->stage == STAGE_PIPE)
        connection->due_ms = clock_monotonic_ms() + RELAY_IDLE_S * 1000;
}

/* How much may be read from the client now. */
static size_t client_room(const struct relay_connection *connection)
{
    size_t room = RELAY_BLOCK > byte_flow_left(&connection->up)
                      ? RELAY_BLOCK - byte_flow_left(&connection->up)
                      : 0;
    switch (connection->stage) {
    case STAGE_HEAD:
        return RELAY_HEAD_MAX - connection->head.length;
    case STAGE_ANSWER: /* a WebSocket's client waits for the 101 before it sends */
    case STAGE_PIPE:
        if (connection->is_websocket)
            return connection->stage == STAGE_PIPE ? room : 0;
        return (int64_t)room < connection->body_left ? room : (size_t)connection->body_left;
    case STAGE_LINGER:
        return RELAY_BLOCK;
    case STAGE_CONNECTING:
    case STAGE_FAREWELL:
    case STAGE_OVER:
        break;
    }
    return 0;
}

static bool client_read(struct relay *relay, struct relay_connection *connection)
{
    char bytes[16 << 10];
    size_t room = client_room(connection);
    if (!room)
        return false;
    ssize_t length =
        relay_stream_read(connection->client, bytes, room < sizeof bytes ? room : sizeof bytes);
    if (length == RELAY_LATER)
        return false;
    if (length <= 0) {
        connection->stage = STAGE_OVER;
        return false;
    }
    moved(connection);
    if (connection->stage == STAGE_HEAD) {
        buf_add(&connection->head, bytes, (size_t)length);
        relay_head_take(relay, connection);
    } else if (connection->stage != STAGE_LINGER) {
        buf_add(&connection->up.bytes, bytes, (size_t)length);
        connection->body_left -= connection->is_websocket ? 0 : length;
    }
    return true;
}

static bool client_write(struct relay_connection *connection)
{
    struct byte_flow *down = &connection->down;
    if (!byte_flow_left(down))
        return false;
    ssize_t length =
        relay_stream_write(connection->client, byte_flow_front(down).at, byte_flow_left(down));
    if (length == RELAY_BROKEN)
        connection->stage = STAGE_OVER;
    if (length <= 0)
        return false;
    moved(connection);
    byte_flow_advance(down, (size_t)length);
    return true;
}

static bool has_task(const struct relay_connection *connection)
{
    return connection->stage == STAGE_ANSWER || connection->stage == STAGE_PIPE;
}

static bool task_write(struct relay_connection *connection)
{
    struct byte_flow *up = &connection->up;
    if (!has_task(connection) || !byte_flow_left(up))
        return false;
    ssize_t length =
        send(connection->task, byte_flow_front(up).at, byte_flow_left(up), MSG_NOSIGNAL);
    if (length < 0 && errno != EAGAIN && errno != EINTR) {
        connection->body_left = 0; /* it wants no more; what it has answered is read still */
        byte_flow_advance(up, byte_flow_left(up));
    }
    if (length <= 0)
        return false;
    moved(connection);
    byte_flow_advance(up, (size_t)length);
    return true;
}

static void task_ended(struct relay_connection *connection)
{
    if (connection->stage == STAGE_ANSWER) {
        relay_answer_gone(connection);
        return;
    }
    connection->stage = STAGE_FAREWELL; /* the client may read slowly */
    connection->due_ms = clock_monotonic_ms() + RELAY_IDLE_S * 1000;
}

static bool task_read(struct relay_connection *connection)
{
    char bytes[16 << 10];
    if (!has_task(connection) || byte_flow_left(&connection->down) >= RELAY_BLOCK)
        return false;
    ssize_t length = recv(connection->task, bytes, sizeof bytes, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length <= 0) {
        task_ended(connection);
        return true;
    }
    moved(connection);
    if (connection->stage == STAGE_ANSWER) {
        buf_add(&connection->head, bytes, (size_t)length);
        reply_take(connection);
    } else {
        buf_add(&connection->down.bytes, bytes, (size_t)length);
    }
    return true;
}

/* ---- one connection ---- */

static void connected(struct relay_connection *connection, uint32_t events)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (connection->stage != STAGE_CONNECTING || !events)
        return;
    if (getsockopt(connection->task, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error) {
        relay_answer_gone(connection);
        return;
    }
    connection->stage = STAGE_ANSWER;
    moved(connection);
}

static void connection_close(struct relay *relay, struct relay_connection *connection)
{
    if (connection->task >= 0)
        close(connection->task);
    relay_stream_free(connection->client); /* epoll forgets both with their last descriptor */
    byte_flow_release(&connection->up);
    byte_flow_release(&connection->down);
    buf_release(&connection->head);
    *connection = (struct relay_connection){.round = connection->round + 1, .task = -1};
    pthread_mutex_lock(&relay->lock);
    assert(relay->taken > 0);
    relay->taken--;
    pthread_mutex_unlock(&relay->lock);
}

static uint32_t client_events(const struct relay_connection *connection)
{
    bool writes = byte_flow_left(&connection->down) || relay_stream_is_behind(connection->client);
    return (uint32_t)EPOLLRDHUP | (client_room(connection) ? (uint32_t)EPOLLIN : 0) |
           (writes ? (uint32_t)EPOLLOUT : 0);
}

static uint32_t task_events(const struct relay_connection *connection)
{
    if (connection->stage == STAGE_CONNECTING)
        return EPOLLOUT;
    if (!has_task(connection))
        return 0;
    bool reads = byte_flow_left(&connection->down) < RELAY_BLOCK;
    return (reads ? (uint32_t)EPOLLIN : 0) |
           (byte_flow_left(&connection->up) ? (uint32_t)EPOLLOUT : 0);
}

/* A side of which nothing is wanted is not watched: that it has gone would be told for ever. */
static void side_watch(struct relay *relay, struct relay_connection *connection, int side, int fd,
                       uint32_t events)
{
    uint64_t slot = (uint64_t)(connection - relay->connections);
    struct epoll_event event = {.events = events,
                                .data.u64 =
                                    (uint64_t)connection->round << 32 | slot << 1 | (uint64_t)side};
    uint32_t *watched = &connection->watched[side];
    if (fd < 0 || *watched == events)
        return;
    int how = !events ? EPOLL_CTL_DEL : *watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(relay->epoll_fd, how, fd, &event) < 0)
        connection->stage = STAGE_OVER; /* no memory for one more */
    *watched = events;
}

/* What can be done now, but for more than TURNS_MAX: others have their turn before epoll tells of
 * it again. It does not tell of what TLS has read already. A task that has ended is closed at once:
 * it would be told of for ever. */
static void connection_work(struct relay *relay, struct relay_connection *connection)
{
    bool is_moving = true;
    for (int turn = 0; is_moving && connection->stage != STAGE_OVER &&
                       (turn < TURNS_MAX || relay_stream_has_more(connection->client));
         turn++) {
        is_moving = client_read(relay, connection);
        is_moving = task_write(connection) || is_moving;
        is_moving = task_read(connection) || is_moving;
        is_moving = client_write(connection) || is_moving;
    }
    if (connection->stage == STAGE_FAREWELL && connection->task >= 0) {
        close(connection->task);
        connection->task = -1;
        connection->watched[RELAY_SIDE_TASK] = 0;
    }
    if (connection->stage == STAGE_FAREWELL && !byte_flow_left(&connection->down)) {
        relay_stream_finish(connection->client);
        connection->stage = STAGE_LINGER;
        connection->due_ms = clock_monotonic_ms() + LINGER_MS;
    }
    if (connection->stage != STAGE_OVER) {
        side_watch(relay, connection, RELAY_SIDE_CLIENT, relay_stream_fd(connection->client),
                   client_events(connection));
        side_watch(relay, connection, RELAY_SIDE_TASK, connection->task, task_events(connection));
    }
    if (connection->stage == STAGE_OVER)
        connection_close(relay, connection);
}

static void event_take(struct relay *relay, const struct epoll_event *event)
{
    uint64_t slot = (event->data.u64 & UINT32_MAX) >> 1;
    int side = (int)(event->data.u64 & 1);
    assert(slot < RELAY_CONNECTIONS_MAX);
    struct relay_connection *connection = &relay->connections[slot];
    if (!connection->client || connection->round != (uint32_t)(event->data.u64 >> 32))
        return;
    if (side == RELAY_SIDE_TASK)
        connected(connection, event->events);
    else if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) &&
             connection->stage != STAGE_HEAD && !(event->events & EPOLLIN))
        connection->stage = STAGE_OVER; /* who has gone wants no answer */
    connection_work(relay, connection);
}

/* ---- the thread ---- */

/* Of one address, that have shown no session: somebody could take all places by them, and send
 * nothing. */
static size_t strangers_of(const struct relay *relay, const struct in6_addr *from)
{
    size_t count = 0;
    for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++) {
        const struct relay_connection *connection = &relay->connections[i];
        count += connection->client && !connection->grant.opener.user[0] &&
                 memcmp(&connection->from, from, sizeof *from) == 0;
    }
    return count;
}

static void arrival_take(struct relay *relay, const struct relay_arrival *arrival)
{
    const bool is_welcome = strangers_of(relay, &arrival->from) < RELAY_STRANGERS_MAX;
    if (!is_welcome)
        close(arrival->fd);
    for (size_t i = 0; is_welcome && i < RELAY_CONNECTIONS_MAX; i++) {
        struct relay_connection *connection = &relay->connections[i];
        if (connection->client)
            continue;
        connection->client = relay_stream_new(arrival->fd, relay->tls);
        if (!connection->client)
            break;
        connection->stage = STAGE_HEAD;
        connection->task = -1;
        connection->from = arrival->from;
        connection->due_ms = clock_monotonic_ms() + RELAY_HEAD_S * 1000;
        connection_work(relay, connection);
        return;
    }
    pthread_mutex_lock(&relay->lock);
    relay->taken--;
    pthread_mutex_unlock(&relay->lock);
}

static void arrivals_take(struct relay *relay)
{
    uint64_t count;
    while (read(relay->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&relay->lock);
    cleanup_array struct relay_arrivals arrivals = relay->arrivals;
    relay->arrivals = (struct relay_arrivals){0};
    pthread_mutex_unlock(&relay->lock);
    for (size_t i = 0; i < arrivals.count; i++)
        arrival_take(relay, &arrivals.items[i]);
}

static void connection_overdue(struct relay *relay, struct relay_connection *connection)
{
    if (connection->stage == STAGE_CONNECTING) {
        relay_answer_gone(connection);
        connection_work(relay, connection);
        return;
    }
    connection->stage = STAGE_OVER;
    connection_close(relay, connection);
}

/* What is due by time, and who may no more. */
static void round_take(struct relay *relay, int64_t now_ms)
{
    for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++) {
        struct relay_connection *connection = &relay->connections[i];
        const struct web_port_grant *grant = &connection->grant;
        if (!connection->client)
            continue;
        if (now_ms >= connection->due_ms) {
            connection_overdue(relay, connection);
        } else if (grant->opener.user[0] && now_ms >= connection->look_ms) {
            struct text host = text_of(grant->host), session = text_of(connection->session);
            struct web_port_grant now;
            connection->look_ms = now_ms + OPENER_LOOK_S * 1000;
            if (web_ports_find(relay->config.ports, host, session, clock_unix_ms(), &now) &&
                opener_check(relay->config.service, &grant->opener) != ERR_FORBIDDEN)
                continue;
            web_ports_end(relay->config.ports, host, session);
            connection_close(relay, connection);
        }
    }
}

static void *relay_run(void *context)
{
    struct relay *relay = context;
    int64_t round_ms = clock_monotonic_ms() + ROUND_MS;
    while (!atomic_load(&relay->is_stopping)) {
        struct epoll_event events[EVENTS_MAX];
        int64_t left_ms = round_ms - clock_monotonic_ms();
        int count = epoll_wait(relay->epoll_fd, events, EVENTS_MAX, left_ms > 0 ? (int)left_ms : 0);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == KEY_WAKE)
                arrivals_take(relay);
            else
                event_take(relay, &events[i]);
        }
        int64_t now_ms = clock_monotonic_ms();
        if (now_ms < round_ms)
            continue;
        round_ms = now_ms + ROUND_MS;
        round_take(relay, now_ms);
    }
    return NULL;
}

/* ---- the door's thread ---- */

static bool has_room(void *context)
{
    struct relay *relay = context;
    pthread_mutex_lock(&relay->lock);
    bool has_room = relay->taken < RELAY_CONNECTIONS_MAX;
    pthread_mutex_unlock(&relay->lock);
    return has_room;
}

static void relay_wake(struct relay *relay)
{
    const uint64_t one = 1;
    ssize_t written = write(relay->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN); /* EAGAIN: it is awake 2^64 times over */
    (void)written;
}

struct in6_addr relay_origin(const struct sockaddr *from, socklen_t length)
{
    static const struct in6_addr none;
    struct in6_addr origin = none;
    if (from->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
        memcpy(&origin, (const char *)from + offsetof(struct sockaddr_in6, sin6_addr),
               sizeof origin);
        if (memcmp(&origin, &none, 8) != 0) /* not this machine's, nor one of IPv4 */
            memset(&origin.s6_addr[8], 0, 8);
    } else if (from->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        origin.s6_addr[10] = origin.s6_addr[11] = 0xff;
        memcpy(&origin.s6_addr[12], (const char *)from + offsetof(struct sockaddr_in, sin_addr), 4);
    }
    return origin;
}

static void take(void *context, int fd, const struct sockaddr *from, socklen_t length)
{
    struct relay *relay = context;
    const struct relay_arrival arrival = {.fd = fd, .from = relay_origin(from, length)};
    pthread_mutex_lock(&relay->lock);
    relay->taken++;
    *ARRAY_ADD(&relay->arrivals) = arrival;
    pthread_mutex_unlock(&relay->lock);
    relay_wake(relay);
}

/* ---- start and stop ---- */

static int thread_start(struct relay *relay, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = KEY_WAKE};
    relay->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    relay->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (relay->epoll_fd < 0 || relay->wake_fd < 0 ||
        epoll_ctl(relay->epoll_fd, EPOLL_CTL_ADD, relay->wake_fd, &event) < 0)
        return err_errno(err, errno, "watch connections to ports of tasks");
    int number = pthread_create(&relay->thread, NULL, relay_run, relay);
    relay->is_running = number == 0;
    return number ? err_errno(err, number, "start the relay's thread") : 0;
}

int relay_start(const struct relay_config *config, struct relay **out, struct err *err)
{
    struct relay *relay = mem_zero(1, sizeof *relay);
    relay->config = *config;
    relay->epoll_fd = relay->wake_fd = -1;
    pthread_mutex_init(&relay->lock, NULL);
    for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++)
        relay->connections[i].task = -1;
    const struct http_door_ops ops = {relay, has_room, take};
    int code = config->has_tls ? relay_tls_new(&relay->tls, err) : 0;
    if (!code)
        code = thread_start(relay, err);
    if (!code)
        code = http_door_listen(config->listen, &ops, &relay->door, &relay->port, err);
    if (code) {
        relay_stop(relay);
        return code;
    }
    *out = relay;
    return 0;
}

uint16_t relay_port(const struct relay *relay)
{
    return relay->port;
}

void relay_stop(struct relay *relay)
{
    if (!relay)
        return;
    http_door_close(relay->door);
    if (relay->is_running) {
        atomic_store(&relay->is_stopping, true);
        relay_wake(relay);
        pthread_join(relay->thread, NULL);
    }
    for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++)
        if (relay->connections[i].client)
            connection_close(relay, &relay->connections[i]);
    for (size_t i = 0; i < relay->arrivals.count; i++)
        close(relay->arrivals.items[i].fd);
    mem_free(relay->arrivals.items);
    relay_tls_free(relay->tls);
    if (relay->epoll_fd >= 0)
        close(relay->epoll_fd);
    if (relay->wake_fd >= 0)
        close(relay->wake_fd);
    pthread_mutex_destroy(&relay->lock);
    mem_free(relay);
}
