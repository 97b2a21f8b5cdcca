#include "engine/kubernetes/forward.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/printable.h"
#include "engine/kubernetes/upgrade.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/websocket.h"

/* Of a WebSocket that was asked for with one port; a message's first byte. */
enum forward_channel { FORWARD_DATA, FORWARD_ERROR, FORWARD_CHANNELS };

enum {
    PORT_BYTES = 2, /* the first message of each channel names it so, the lower byte first */
    PART_BYTES = 16 << 10,
    WAITING_MAX = 64 << 10, /* towards either side: then the other one waits */
    PAIR_BYTES = 32 << 10,  /* the kernel doubles it */
    PING_MS = 30 * 1000,
    FAREWELL_MS = 5 * 1000,
    SAID_MS = 60 * 1000,
    TROUBLE_SIZE = 200,
};

struct kube_forwards {
    struct kube_client *client;
    const struct kube_access *access;
    size_t most;
    int end;              /* becomes readable when all are to end */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t over;  /* one has ended */
    size_t count;
    int64_t said_ms; /* the log has told of a trouble then; 0: never */
};

struct forward {
    struct kube_forwards *all;
    char *pod;
    uint16_t port;
    int fd; /* the caller has the other end */
    struct kube_upgrade *upgrade;
    struct websocket *websocket;
    bool has_begun[FORWARD_CHANNELS]; /* its first message has come */
    bool has_come;                    /* something of the task's */
    bool is_broken;                   /* nothing more of the WebSocket counts */
    bool is_held;                     /* it has not been read, as its bytes were not taken */
    bool is_input_over;               /* the caller sends nothing more */
    bool is_left;                     /* nor does he take anything */
    struct buf bytes;                 /* of the task's, for the caller; empty when all are taken */
    size_t taken;
    char trouble[TROUBLE_SIZE]; /* why the port cannot be reached; "" */
};

/* --- the WebSocket --- */

static size_t bytes_left(const struct forward *forward)
{
    return forward->bytes.length - forward->taken;
}

static ssize_t on_read(void *context, void *bytes, size_t size)
{
    struct forward *forward = context;
    forward->is_held = forward->bytes.length >= WAITING_MAX;
    if (forward->is_held)
        return WEBSOCKET_LATER;
    return kube_upgrade_read(forward->upgrade, bytes, size);
}

static ssize_t on_write(void *context, const void *bytes, size_t size)
{
    return kube_upgrade_write(((struct forward *)context)->upgrade, bytes, size);
}

static void trouble_add(struct forward *forward, struct text text)
{
    const size_t length = strlen(forward->trouble);
    snprintf(forward->trouble + length, sizeof forward->trouble - length, "%.*s", TEXT_ARG(text));
}

/* Whether it begins with the port. */
static bool is_port(const struct forward *forward, struct text bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at;
    return bytes.length >= PORT_BYTES && (at[0] | at[1] << 8) == forward->port;
}

static void on_message(void *context, bool is_text, struct text message)
{
    struct forward *forward = context;
    (void)is_text;
    if (message.length == 0 || (unsigned char)message.at[0] >= FORWARD_CHANNELS ||
        forward->is_broken)
        return;
    const enum forward_channel channel = (enum forward_channel)message.at[0];
    struct text bytes = {message.at + 1, message.length - 1};
    if (!forward->has_begun[channel]) {
        forward->is_broken = !is_port(forward, bytes);
        if (forward->is_broken) {
            trouble_add(forward, TEXT("something else than this port answers"));
            return;
        }
        forward->has_begun[channel] = true;
        bytes = (struct text){bytes.at + PORT_BYTES, bytes.length - PORT_BYTES};
    }
    if (channel == FORWARD_ERROR)
        trouble_add(forward, bytes);
    else if (!forward->is_left)
        buf_text(&forward->bytes, bytes);
    /* a message, and what small ones were read behind it in one go */
    assert(forward->bytes.length < WAITING_MAX + 2 * WEBSOCKET_MESSAGE_MAX);
    forward->has_come = forward->has_come || (channel == FORWARD_DATA && bytes.length > 0);
}

static bool has_begun(const struct forward *forward)
{
    return forward->has_begun[FORWARD_DATA] && forward->has_begun[FORWARD_ERROR];
}

/* --- the caller's side --- */

static void bytes_write(struct forward *forward)
{
    while (!forward->is_left && bytes_left(forward) > 0) {
        const ssize_t written = send(forward->fd, forward->bytes.at + forward->taken,
                                     bytes_left(forward), MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0)
            forward->is_left = true;
        else
            forward->taken += (size_t)written;
    }
    buf_clear(&forward->bytes);
    forward->taken = 0;
}

static void input_read(struct forward *forward)
{
    char message[1 + PART_BYTES] = {FORWARD_DATA};
    const ssize_t got = recv(forward->fd, message + 1, PART_BYTES, 0);
    if (got > 0)
        websocket_send(forward->websocket, false, (struct text){message, (size_t)got + 1});
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        forward->is_input_over = true;
    forward->is_left = forward->is_left || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* --- the thread --- */

enum { WAIT_END, WAIT_CONNECTION, WAIT_CALLER, WAITS };

/* A descriptor of which nothing is wanted is left out: that its other side has gone would be told
 * for ever. Of the caller that is wanted until he has. */
static void waits_make(const struct forward *forward, struct pollfd waits[WAITS])
{
    const bool reads =
        !forward->is_input_over && websocket_queued(forward->websocket) < WAITING_MAX;
    const bool writes = !forward->is_left && bytes_left(forward) > 0;
    const short connection = websocket_events(forward->websocket, !forward->is_held);
    waits[WAIT_END] = (struct pollfd){.fd = forward->all->end, .events = POLLIN};
    waits[WAIT_CONNECTION] = (struct pollfd){
        .fd = connection ? kube_upgrade_fd(forward->upgrade) : -1, .events = connection};
    waits[WAIT_CALLER] =
        (struct pollfd){.fd = reads || !forward->is_left ? forward->fd : -1,
                        .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))};
}

/* Until something can be done, so long at most; 0: only at what can be done now. False: the engine
 * ends. */
static bool wait_for_any(struct forward *forward, int64_t most_ms)
{
    struct pollfd waits[WAITS];
    waits_make(forward, waits);
    const int got = poll(waits, WAITS, (int)most_ms);
    if (got == 0 && most_ms > 0 && has_begun(forward) && !websocket_is_behind(forward->websocket))
        websocket_ping(forward->websocket);
    if (got <= 0)
        return true;
    if (waits[WAIT_CALLER].revents & POLLHUP)
        forward->is_left = true;
    if (waits[WAIT_CALLER].revents & ~POLLOUT && !forward->is_input_over)
        input_read(forward);
    return !waits[WAIT_END].revents;
}

/* Until one side has gone. */
static void bytes_move(struct forward *forward)
{
    const int64_t due_ms = clock_monotonic_ms() + UPGRADE_MS;
    bool goes_on = true;
    while (goes_on) {
        goes_on = websocket_work(forward->websocket) && !forward->is_broken;
        bytes_write(forward);
        /* the connection may hold more, of which poll would not tell */
        const bool can_read = websocket_wants_turn(forward->websocket) ||
                              (forward->is_held && forward->bytes.length < WAITING_MAX);
        const int64_t left_ms = has_begun(forward) ? PING_MS : due_ms - clock_monotonic_ms();
        goes_on = goes_on && !forward->is_left;
        if (goes_on && left_ms <= 0) {
            trouble_add(forward, TEXT("its node does not answer"));
            goes_on = false;
        }
        if (goes_on)
            goes_on = wait_for_any(forward, can_read ? 0 : left_ms);
    }
}

/* What the task has sent last is the caller's, however slowly he reads. */
static void bytes_hand_over(struct forward *forward)
{
    bool is_ending = false;
    while (!is_ending && !forward->is_left && bytes_left(forward) > 0) {
        struct pollfd waits[] = {{.fd = forward->all->end, .events = POLLIN},
                                 {.fd = forward->fd, .events = POLLOUT}};
        is_ending = poll(waits, COUNT_OF(waits), -1) > 0 && waits[0].revents;
        bytes_write(forward);
    }
}

/* What the caller had sent before he left is the task's, if it takes that within a while. */
static void input_hand_over(struct forward *forward)
{
    const int64_t until_ms = clock_monotonic_ms() + FAREWELL_MS;
    int64_t left_ms = FAREWELL_MS;
    bool goes_on = forward->is_left;
    bytes_write(forward); /* nobody takes them: the task must not wait for that */
    while (goes_on && left_ms > 0 && websocket_work(forward->websocket) &&
           (!forward->is_input_over || websocket_is_behind(forward->websocket))) {
        goes_on = wait_for_any(forward, websocket_wants_turn(forward->websocket) ? 0 : left_ms);
        left_ms = until_ms - clock_monotonic_ms();
    }
    websocket_close(forward->websocket, WEBSOCKET_CLOSE_NORMAL, "");
    websocket_work(forward->websocket);
}

/* That nobody listens is the user's to know, who is told so by the relay. */
static bool is_refused_by_task(const struct err *err)
{
    return err->code == ERR_NOT_FOUND || err->code == ERR_CONFLICT ||
           strcasestr(err->text, "connection refused");
}

/* Bytes that have come say that the port was reached, whatever is said behind them. */
static int trouble_take(const struct forward *forward, struct err *err)
{
    cleanup_buf struct buf words = BUF_INIT;
    if (!forward->trouble[0] || forward->has_come)
        return 0;
    printable_put(&words, text_of(forward->trouble));
    struct text rest = buf_as_text(&words);
    const struct text line = text_cut(&rest, '\n');
    return err_fail(err, ERR_UNAVAILABLE, "", "%.*s", TEXT_ARG(line));
}

static void failure_log(const struct forward *forward, const struct err *err)
{
    struct kube_forwards *all = forward->all;
    const int64_t now_ms = clock_monotonic_ms();
    bool is_said = is_refused_by_task(err);
    pthread_mutex_lock(&all->lock);
    is_said = is_said || (all->said_ms && now_ms - all->said_ms < SAID_MS);
    if (!is_said)
        all->said_ms = now_ms;
    pthread_mutex_unlock(&all->lock);
    log_line(is_said ? LOG_DEBUG : LOG_WARNING, "engine",
             "kubernetes: port %u of %s cannot be reached: %s", forward->port, forward->pod,
             err->text);
}

static void forward_free(struct forward *forward)
{
    struct kube_forwards *all = forward->all;
    websocket_free(forward->websocket);
    kube_upgrade_close(forward->upgrade);
    if (forward->fd >= 0)
        close(forward->fd);
    buf_release(&forward->bytes);
    mem_free(forward->pod);
    mem_free(forward);
    pthread_mutex_lock(&all->lock);
    assert(all->count > 0);
    all->count--;
    pthread_cond_signal(&all->over);
    pthread_mutex_unlock(&all->lock);
}

static void *forward_run(void *context)
{
    struct forward *forward = context;
    const struct kube_forwards *all = forward->all;
    const struct websocket_ops ops = {forward, on_read, on_write, on_message};
    struct err err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/portforward?ports=%u", forward->pod, forward->port);
    int code = kube_upgrade_open(all->client, all->access, path, "v4.channel.k8s.io",
                                 &forward->upgrade, &err);
    if (code == 0) {
        forward->websocket = websocket_new(&ops, true);
        bytes_move(forward);
        bytes_hand_over(forward);
        input_hand_over(forward);
        code = trouble_take(forward, &err);
    }
    if (code < 0)
        failure_log(forward, &err);
    forward_free(forward);
    return NULL;
}

/* --- its begin and the end of all --- */

int kube_forwards_new(struct kube_client *client, const struct kube_access *access, size_t most,
                      struct kube_forwards **out, struct err *err)
{
    cleanup_close int end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (end < 0)
        return err_errno(err, errno, "make a descriptor");
    struct kube_forwards *forwards = mem_zero(1, sizeof *forwards);
    forwards->client = client;
    forwards->access = access;
    forwards->most = most;
    forwards->end = fd_steal(&end);
    pthread_mutex_init(&forwards->lock, NULL);
    pthread_cond_init(&forwards->over, NULL);
    *out = forwards;
    return 0;
}

void kube_forwards_free(struct kube_forwards *forwards)
{
    const uint64_t one = 1;
    if (!forwards)
        return;
    while (write(forwards->end, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&forwards->lock);
    while (forwards->count > 0)
        pthread_cond_wait(&forwards->over, &forwards->lock);
    pthread_mutex_unlock(&forwards->lock);
    close(forwards->end);
    pthread_cond_destroy(&forwards->over);
    pthread_mutex_destroy(&forwards->lock);
    mem_free(forwards);
}

/* The caller's end; ours is forward->fd. */
static int pair_make(struct forward *forward, struct err *err)
{
    const int size = PAIR_BYTES;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_errno(err, errno, "make a pair of sockets");
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    forward->fd = ends[0];
    return ends[1];
}

static bool place_take(struct kube_forwards *forwards)
{
    pthread_mutex_lock(&forwards->lock);
    const bool has_room = forwards->count < forwards->most;
    forwards->count += has_room;
    pthread_mutex_unlock(&forwards->lock);
    return has_room;
}

int kube_forward_open(struct kube_forwards *forwards, const char *pod, uint16_t port,
                      struct err *err)
{
    pthread_t thread;
    assert(port);
    if (!place_take(forwards))
        return err_fail(err, ERR_BUSY, "", "%zu connections to ports of tasks are open already",
                        forwards->most);
    struct forward *forward = mem_zero(1, sizeof *forward);
    *forward = (struct forward){.all = forwards, .pod = mem_copy(pod), .port = port, .fd = -1};
    cleanup_close int theirs = pair_make(forward, err);
    int code = theirs < 0 ? theirs : 0;
    if (code == 0 && pthread_create(&thread, NULL, forward_run, forward) != 0)
        code = err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    if (code < 0) {
        forward_free(forward);
        return code;
    }
    pthread_detach(thread);
    return fd_steal(&theirs);
}
