/* The HTTP edge over real sockets, with a small app behind it.
 *
 * Covers: src/api/http_loop.c, src/api/http_request.c */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "api/http.h"
#include "base/err.h"
#include "base/memory.h"
#include "folder.h"

/* ---- the app: /echo, /later, /stream, /hold, /large ---- */

static sem_t stream_freed, hold_begun, hold_go, large_made;

enum { LARGE = 32 << 20 }; /* more than the kernel keeps of a connection */

struct ticker {
    int fd, left;
};

static ssize_t ticker_read(void *state, char *bytes, size_t size)
{
    struct ticker *ticker = state;
    uint64_t value;
    if (read(ticker->fd, &value, sizeof value) != sizeof value)
        return HTTP_STREAM_WAIT;
    if (ticker->left-- == 0)
        return HTTP_STREAM_END;
    return snprintf(bytes, size, "tick\n");
}

static void ticker_free(void *state)
{
    struct ticker *ticker = state;
    close(ticker->fd);
    mem_free(ticker);
    assert_int_equal(sem_post(&stream_freed), 0);
}

static void reply(struct exchange *exchange, int status, struct text text)
{
    exchange->reply.status = status;
    exchange->reply.content_type = "text/plain";
    buf_text(&exchange->reply.body, text);
}

static bool app_begin(void *context, struct exchange *exchange)
{
    (void)context;
    struct err err;
    int failed = exchange_target(exchange, exchange->target, &err);
    if (failed) {
        reply(exchange, 400, text_of(err.text));
        return false;
    }
    if (exchange->is_body_too_big) {
        reply(exchange, 413, TEXT("too big\n"));
        return false;
    }
    return true;
}

static void *resume_thread(void *context)
{
    exchange_resume(context);
    return NULL;
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int ticker_fd = -1;

static void app_handle(void *context, struct exchange *exchange)
{
    (void)context;
    if (exchange->is_body_too_big) {
        reply(exchange, 413, TEXT("too big\n"));
    } else if (text_is(exchange->segments[0], "later")) {
        exchange_suspend(exchange);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, resume_thread, exchange), 0);
        pthread_detach(thread);
    } else if (text_is(exchange->segments[0], "address")) {
        reply(exchange, 200, exchange->address);
    } else if (text_is(exchange->segments[0], "peer")) {
        buf_format(&exchange->reply.body, "peer %lld\n", (long long)exchange->peer_uid);
        exchange->reply.status = 200;
    } else if (text_is(exchange->segments[0], "hold")) {
        assert_int_equal(sem_post(&hold_begun), 0);
        assert_int_equal(sem_wait(&hold_go), 0); /* the thread serves nobody else meanwhile */
        reply(exchange, 200, TEXT("held\n"));
    } else if (text_is(exchange->segments[0], "large")) {
        memset(buf_room(&exchange->reply.body, LARGE), 'x', LARGE);
        buf_wrote(&exchange->reply.body, LARGE);
        exchange->reply.status = 200;
    } else if (text_is(exchange->segments[0], "stream")) {
        struct ticker *ticker = mem_zero(1, sizeof *ticker);
        ticker->fd = eventfd(0, EFD_NONBLOCK);
        ticker->left = 2;
        ticker_fd = dup(ticker->fd);
        exchange->reply.status = 200;
        exchange->reply.stream = (struct http_stream){
            .read = ticker_read, .free = ticker_free, .state = ticker, .fd = ticker->fd};
    } else {
        buf_format(&exchange->reply.body, "%s %zu %zu\n", http_method_name(exchange->method),
                   exchange->segment_count, exchange->body.length);
        exchange->reply.status = 200;
    }
}

static void app_resume(void *context, struct exchange *exchange)
{
    (void)context;
    reply(exchange, 202, TEXT("resumed\n"));
}

static void app_end(void *context, struct exchange *exchange)
{
    (void)context;
    if (exchange->reply.status == 200 && text_is(exchange->segments[0], "large"))
        assert_int_equal(sem_post(&large_made), 0);
}

static struct http_server *server;

enum { THREADS = 2, CLIENT_WAIT_S = 120 };

static struct http_server *server_start_at(const char *listen, uint32_t request_ms,
                                           uint32_t connections_max, uint32_t idle_s)
{
    static const char *const proxies[] = {"127.0.0.0/8"};
    static const char *const origins[] = {"https://one.example", "https://two.example"};
    struct http_server_config config = {
        .listen = listen,
        .threads = THREADS,
        .request_ms = request_ms,
        .crowded_ms = CLIENT_WAIT_S * 1000,
        .connections_max = connections_max,
        .idle_s = idle_s,
        .door = in_folder(""),
        .door_prefix = "/inside/",
        .socket_folder = in_folder(""),
        .socket_name = "users",
        .proxies = proxies,
        .proxy_count = COUNT_OF(proxies),
        .origins = origins,
        .origin_count = COUNT_OF(origins),
        .app = {.begin = app_begin, .handle = app_handle, .resume = app_resume, .end = app_end}};
    struct http_server *started;
    struct err err;
    assert_int_equal(http_server_start(&config, &started, &err), 0);
    return started;
}

static struct http_server *server_start_idle(uint32_t request_ms, uint32_t connections_max,
                                             uint32_t idle_s)
{
    return server_start_at("127.0.0.1:0", request_ms, connections_max, idle_s);
}

/* 0: the usual ones. */
static struct http_server *server_start(uint32_t request_ms, uint32_t connections_max)
{
    return server_start_idle(request_ms, connections_max, 0);
}

static int server_setup(void **state)
{
    assert_int_equal(sem_init(&stream_freed, 0, 0), 0);
    assert_int_equal(sem_init(&hold_begun, 0, 0), 0);
    assert_int_equal(sem_init(&hold_go, 0, 0), 0);
    assert_int_equal(sem_init(&large_made, 0, 0), 0);
    assert_int_equal(folder_setup(state), 0);
    server = server_start(0, 0);
    return 0;
}

static int server_teardown(void **state)
{
    http_server_stop(server);
    server = NULL;
    return folder_teardown(state);
}

/* ---- a client ---- */

static int client_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = CLIENT_WAIT_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void client_send(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* cut off: what came back tells */
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* Everything until the server closes. */
static void client_read_all(int fd, struct buf *out)
{
    char block[4096];
    ssize_t length;
    while ((length = recv(fd, block, sizeof block, 0)) > 0)
        buf_add(out, block, (size_t)length);
}

static int status_code(const struct buf *reply_bytes)
{
    int status = 0;
    if (sscanf(buf_cstr(reply_bytes), "HTTP/1.1 %d", &status) != 1)
        return 0;
    return status;
}

/* Send, read until closed, return the status. */
static int ask(const char *bytes, size_t length, struct buf *out)
{
    int fd = client_connect();
    buf_clear(out);
    client_send(fd, bytes, length);
    client_read_all(fd, out);
    close(fd);
    return status_code(out);
}

#define HEAD "Host: x\r\nConnection: close\r\n"

static int ask_text(const char *text, struct buf *out)
{
    return ask(text, strlen(text), out);
}

/* ---- tests ---- */

static void test_plain(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(ask_text("GET /a/b HTTP/1.1\r\n" HEAD "\r\n", &out), 200);
    assert_non_null(strstr(buf_cstr(&out), "GET 2 0"));
    assert_int_equal(ask_text("POST /a HTTP/1.1\r\n" HEAD "Content-Length: 5\r\n\r\nhello", &out),
                     200);
    assert_non_null(strstr(buf_cstr(&out), "POST 1 5"));
    assert_int_equal(ask_text("POST /a HTTP/1.1\r\n" HEAD
                              "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                              &out),
                     200);
    assert_non_null(strstr(buf_cstr(&out), "POST 1 3"));
    assert_null(strstr(buf_cstr(&out), "Access-Control-Allow-Origin"));
    buf_release(&out);
}

static void test_suspended(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(
            ask_text("POST /later HTTP/1.1\r\n" HEAD "Content-Length: 1\r\n\r\nx", &out), 202);
        assert_non_null(strstr(buf_cstr(&out), "resumed"));
    }
    buf_release(&out);
}

static void tick(void)
{
    uint64_t one = 1;
    assert_int_equal(write(ticker_fd, &one, sizeof one), sizeof one);
}

static void read_until(int fd, struct buf *out, const char *needle)
{
    while (!strstr(buf_cstr(out), needle)) {
        char byte[256];
        ssize_t length = recv(fd, byte, sizeof byte, 0);
        assert_true(length > 0);
        buf_add(out, byte, (size_t)length);
    }
}

/* A connection on which a stream has begun. */
static int stream_open(struct buf *out)
{
    int fd = client_connect();
    const char *request = "GET /stream HTTP/1.1\r\n" HEAD "\r\n";
    client_send(fd, request, strlen(request));
    read_until(fd, out, "\r\n\r\n");
    return fd;
}

static void semaphore_await(sem_t *semaphore)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += CLIENT_WAIT_S;
    assert_int_equal(sem_timedwait(semaphore, &limit), 0);
}

static void stream_freed_await(void)
{
    semaphore_await(&stream_freed);
}

static void test_stream(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    int fd = stream_open(&out);
    tick();
    read_until(fd, &out, "tick\n");
    tick();
    buf_clear(&out);
    read_until(fd, &out, "tick\n");
    tick();
    client_read_all(fd, &out);
    assert_non_null(strstr(buf_cstr(&out), "0\r\n\r\n"));
    close(fd);
    close(ticker_fd);
    stream_freed_await();
    buf_release(&out);
}

static void test_stream_client_goes(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    close(stream_open(&out));
    stream_freed_await(); /* nothing is ever sent: the edge must notice by itself */
    struct http_server_counts counts;
    do {
        http_server_count(server, &counts);
    } while (counts.streams);
    close(ticker_fd);
    buf_release(&out);
}

static void test_stop_with_stream(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    int fd = stream_open(&out);
    http_server_drain(server); /* ends those who follow something at once, … */
    client_read_all(fd, &out);
    stream_freed_await();
    http_server_stop(server); /* … or this would wait for them */
    close(fd);
    close(ticker_fd);
    buf_release(&out);
    server = server_start(0, 0);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf out = BUF_INIT, request = BUF_INIT;
    buf_format(&request, "POST /a HTTP/1.1\r\n" HEAD "Content-Length: %d\r\n\r\n",
               100 << 20); /* refused at once */
    assert_int_equal(ask(request.at, request.length, &out), 413);

    buf_clear(&request);
    buf_format(&request, "POST /a HTTP/1.1\r\n" HEAD "Content-Length: %d\r\n\r\n",
               HTTP_BODY_MAX + 1); /* read to its end, so that the client gets the reply */
    for (int i = 0; i <= HTTP_BODY_MAX; i++)
        buf_char(&request, 'x');
    assert_int_equal(ask(request.at, request.length, &out), 413);

    buf_clear(&request);
    buf_format(&request, "POST /a HTTP/1.1\r\n" HEAD "Transfer-Encoding: chunked\r\n\r\n");
    char block[1024];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 1025; i++) {
        buf_string(&request, "400\r\n");
        buf_add(&request, block, sizeof block);
        buf_string(&request, "\r\n");
    }
    buf_string(&request, "0\r\n\r\n");
    assert_int_equal(ask(request.at, request.length, &out), 413);

    buf_clear(&request);
    buf_string(&request, "GET /");
    for (int i = 0; i < HTTP_TARGET_MAX; i++)
        buf_char(&request, 'a');
    buf_string(&request, " HTTP/1.1\r\n" HEAD "\r\n");
    assert_int_equal(ask(request.at, request.length, &out), 400); /* this app's answer */
    assert_non_null(strstr(buf_cstr(&out), "more than 8192 bytes"));

    buf_clear(&request);
    buf_string(&request, "GET / HTTP/1.1\r\n" HEAD "X: ");
    for (int i = 0; i < HTTP_HEADERS_MAX; i++)
        buf_char(&request, 'a');
    buf_string(&request, "\r\n\r\n");
    int status = ask(request.at, request.length, &out);
    assert_true(status == 431 || status == 413 || status == 414 || status == 0);
    buf_release(&request);
    buf_release(&out);
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "GET /%zz HTTP/1.1\r\n" HEAD "\r\n",
        "GET /a%00b HTTP/1.1\r\n" HEAD "\r\n",
        "GET /a?b=%0 HTTP/1.1\r\n" HEAD "\r\n",
        "GET /a?b=%00 HTTP/1.1\r\n" HEAD "\r\n",
        "GET a HTTP/1.1\r\n" HEAD "\r\n",
        "GET /1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17 HTTP/1.1\r\n" HEAD "\r\n",
    };
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        assert_int_equal(ask_text(BAD[i], &out), 400);
    buf_release(&out);
}

/* It gets a 4xx of the library or is cut off, at the latest as one that sends slowly; the server
 * lives on. */
static void test_no_http(void **state)
{
    (void)state;
    const struct text BAD[] = {
        TEXT("POST /a HTTP/1.1\r\n" HEAD
             "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"),
        TEXT("\0\0\0\r\n\r\n"),
    };
    struct http_server *usual = server;
    struct buf out = BUF_INIT;
    int fds[COUNT_OF(BAD)];
    server = server_start(1, 0);
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        fds[i] = client_connect();
        client_send(fds[i], BAD[i].at, BAD[i].length);
    }
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        buf_clear(&out);
        client_read_all(fds[i], &out);
        close(fds[i]);
        assert_true(status_code(&out) == 0 || status_code(&out) == 400);
    }
    http_server_stop(server);
    server = usual;
    assert_int_equal(ask_text("GET /a HTTP/1.1\r\n" HEAD "\r\n", &out), 200);
    buf_release(&out);
}

static uint64_t connection_count(void)
{
    struct http_server_counts counts;
    http_server_count(server, &counts);
    return counts.connections;
}

/* Each thread is busy with a request of one of these clients, until they are let go. */
static void threads_hold(int holders[THREADS])
{
    static const char hold[] = "GET /hold HTTP/1.1\r\n" HEAD "\r\n";
    for (int i = 0; i < THREADS; i++) {
        holders[i] = client_connect();
        client_send(holders[i], hold, sizeof hold - 1);
        assert_int_equal(sem_wait(&hold_begun), 0);
    }
}

static void threads_let_go(void)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(sem_post(&hold_go), 0);
}

/* Threads that have no time to look at the connections that they are given get no more of them than
 * there are places: libmicrohttpd would stop at the first one beyond its limit. */
static void test_places_of_busy_threads(void **state)
{
    (void)state;
    enum { PLACES = 6, CLIENTS = 40 };
    struct http_server *usual = server;
    struct buf out = BUF_INIT;
    int holders[THREADS], fds[CLIENTS];
    static const char get[] = "GET /a HTTP/1.1\r\n" HEAD "\r\n";
    server = server_start(0, PLACES);
    threads_hold(holders);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect();
        client_send(fds[i], get, sizeof get - 1);
    }
    int64_t limit_ms = clock_ms() + CLIENT_WAIT_S * 1000;
    while (connection_count() < PLACES && clock_ms() < limit_ms)
        sched_yield();
    assert_int_equal(connection_count(), PLACES);
    threads_let_go();
    for (int i = 0; i < THREADS + CLIENTS; i++) {
        int fd = i < THREADS ? holders[i] : fds[i - THREADS];
        buf_clear(&out);
        client_read_all(fd, &out);
        close(fd);
        assert_int_equal(status_code(&out), 200);
        assert_true(connection_count() <= PLACES);
    }
    http_server_stop(server);
    server = usual;
    buf_release(&out);
}

/* The last bytes of a client and its end come together, as nobody reads meanwhile. A whole request
 * is answered; one that never becomes whole holds its connection for no longer than the next
 * sweeps. */
static void test_gone_with_half_a_request(void **state)
{
    (void)state;
    enum { HALF_SENT = 8 };
    struct buf out = BUF_INIT;
    int holders[THREADS], fds[HALF_SENT];
    static const char get[] = "GET /a HTTP/1.1\r\n" HEAD "\r\n";
    struct http_server *usual = server;
    /* neither the limit of a request nor that of the idle ends a client's waiting */
    server = server_start_idle(2 * CLIENT_WAIT_S * 1000, 0, 2 * CLIENT_WAIT_S);
    threads_hold(holders);
    for (int i = 0; i < HALF_SENT; i++) {
        fds[i] = client_connect();
        client_send(fds[i], get, (sizeof get - 1) / 2);
        assert_int_equal(shutdown(fds[i], SHUT_WR), 0);
    }
    int whole = client_connect();
    client_send(whole, get, sizeof get - 1);
    assert_int_equal(shutdown(whole, SHUT_WR), 0);
    threads_let_go();
    client_read_all(whole, &out);
    assert_int_equal(status_code(&out), 200);
    for (int i = 0; i < HALF_SENT; i++) {
        ssize_t length = recv(fds[i], &(char){0}, 1, 0);
        assert_true(length == 0 || (length < 0 && errno == ECONNRESET));
        close(fds[i]);
    }
    for (int i = 0; i < THREADS; i++)
        close(holders[i]);
    close(whole);
    http_server_stop(server);
    server = usual;
    buf_release(&out);
}

/* A port at which nobody else can listen where no server of ours does; it is had until this is
 * closed. */
static int port_reserve(struct sockaddr_in *address)
{
    const int one = 1;
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
    return fd;
}

static atomic_bool is_calling;

static void *call_on_and_on(void *context)
{
    const struct sockaddr_in *address = context;
    while (atomic_load(&is_calling)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        connect(fd, (const struct sockaddr *)address, sizeof *address); /* refused at last */
        close(fd);
    }
    return NULL;
}

/* What comes while the server ends finds it closed, and harms nobody. */
static void test_stop_while_clients_come(void **state)
{
    (void)state;
    enum { ROUNDS = 20, CALLERS = 2 };
    struct http_server *usual = server;
    struct buf out = BUF_INIT;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t callers[CALLERS];
        struct sockaddr_in address;
        char listen[32];
        const int reserved = port_reserve(&address);
        snprintf(listen, sizeof listen, "127.0.0.1:%u", ntohs(address.sin_port));
        server = server_start_at(listen, 0, 0, 0);
        atomic_store(&is_calling, true);
        for (int i = 0; i < CALLERS; i++)
            assert_int_equal(pthread_create(&callers[i], NULL, call_on_and_on, &address), 0);
        assert_int_equal(ask_text("GET /a HTTP/1.1\r\n" HEAD "\r\n", &out), 200);
        http_server_stop(server);
        atomic_store(&is_calling, false);
        for (int i = 0; i < CALLERS; i++)
            pthread_join(callers[i], NULL);
        close(reserved);
    }
    server = usual;
    buf_release(&out);
}

/* A client that sends a byte now and then is cut off; one that waits for a stream is not. */
static void test_slow_request(void **state)
{
    (void)state;
    struct http_server *usual = server;
    enum { LIMIT_MS = 3000 };
    struct buf out = BUF_INIT;
    server = server_start(LIMIT_MS, 0);
    int follower = stream_open(&out);
    int64_t begin_ms = clock_ms();
    int slow = client_connect();
    struct pollfd cut_off = {.fd = slow, .events = POLLIN | POLLRDHUP};
    client_send(slow, "GET /", 5);
    while (poll(&cut_off, 1, 50) == 0) { /* the pace of a client that is not silent */
        assert_true(clock_ms() - begin_ms < HTTP_REQUEST_MS / 2);
        client_send(slow, "x", 1);
    }
    assert_true(recv(slow, &(char){0}, 1, 0) <= 0); /* an error where a byte came after the cut */
    assert_true(clock_ms() - begin_ms >= LIMIT_MS);
    tick();
    read_until(follower, &out, "tick\n");
    close(slow);
    close(follower);
    close(ticker_fd);
    http_server_stop(server);
    server = usual;
    buf_release(&out);
}

/* A connection on which a large reply is under way, of which nobody has read a byte. */
static int large_ask(void)
{
    static const char get[] = "GET /large HTTP/1.1\r\n" HEAD "\r\n";
    int fd = client_connect();
    client_send(fd, get, sizeof get - 1);
    semaphore_await(&large_made);
    return fd;
}

/* What the app keeps of a request ends when its reply is made, not when its client has read it. */
static void a_reply_on_its_way_keeps_nothing_else(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    int fd = large_ask();
    client_read_all(fd, &out); /* it was under way: all of it is still to come */
    assert_true(out.length > LARGE);
    close(fd);
    buf_release(&out);
}

/* Nor does it help to send on and on. */
static void a_client_that_reads_nothing_is_cut_off(void **state)
{
    (void)state;
    struct http_server *usual = server;
    server = server_start_idle(0, 0, 5);
    int silent = large_ask(), talking = large_ask();
    struct pollfd cut_off = {.fd = talking, .events = POLLRDHUP};
    int64_t limit_ms = clock_ms() + CLIENT_WAIT_S * 1000;
    while (connection_count() && clock_ms() < limit_ms) {
        send(talking, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        poll(&cut_off, 1, 50); /* the pace of a client that is not silent */
    }
    assert_int_equal(connection_count(), 0);
    close(silent);
    close(talking);
    http_server_stop(server);
    server = usual;
}

/* A handler knows who asks: logins are slowed down by address. */
static void test_client_address(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    ask_text("GET /address HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &out);
    assert_non_null(strstr(buf_cstr(&out), "\r\n\r\n127.0.0.1"));
    ask_text("GET /address HTTP/1.1\r\n" HEAD "X-Forwarded-For: 203.0.113.9\r\n"
             "x-forwarded-for: 198.51.100.7, 127.0.0.2\r\n\r\n",
             &out); /* two proxies; the first line is the client's own */
    assert_non_null(strstr(buf_cstr(&out), "\r\n\r\n198.51.100.7"));
    buf_release(&out);
}

/* As `ask`, by a socket in the folder. */
static int ask_socket(const char *name, const char *request, struct buf *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder(name));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    buf_clear(out);
    client_send(fd, request, strlen(request));
    client_read_all(fd, out);
    close(fd);
    return status_code(out);
}

/* Tasks reach nothing but their prefix; of the users of this machine the kernel says who they are;
 * the network says nothing of the kind. */
static void test_sockets(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    char expected[32];
    struct http_server *usual = server;
    server = server_start(0, 0); /* the sockets are those of the server that came last */
    assert_int_equal(ask_socket("users", "GET /peer HTTP/1.1\r\n" HEAD "\r\n", &out), 200);
    snprintf(expected, sizeof expected, "peer %u\n", geteuid());
    assert_non_null(strstr(buf_cstr(&out), expected));
    assert_int_equal(ask_socket("api", "GET /peer HTTP/1.1\r\n" HEAD "\r\n", &out), 403);
    assert_int_equal(ask_socket("api", "GET /inside/a HTTP/1.1\r\n" HEAD "\r\n", &out), 200);
    assert_non_null(strstr(buf_cstr(&out), "GET 2 0"));
    assert_int_equal(ask_text("GET /peer HTTP/1.1\r\n" HEAD "\r\n", &out), 200);
    assert_non_null(strstr(buf_cstr(&out), "peer -1\n"));
    http_server_stop(server);
    server = usual;
    buf_release(&out);
}

/* Pages of other origins read replies only when they are named. */
static void test_origins(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    ask_text("GET /a HTTP/1.1\r\n" HEAD "Origin: https://two.example\r\n\r\n", &out);
    assert_non_null(strstr(buf_cstr(&out), "Access-Control-Allow-Origin: https://two.example\r\n"));
    assert_non_null(strstr(buf_cstr(&out), "Vary: Origin\r\n"));
    /* a cache must not give these to a page that may read */
    ask_text("GET /a HTTP/1.1\r\n" HEAD "Origin: https://three.example\r\n\r\n", &out);
    assert_null(strstr(buf_cstr(&out), "Access-Control-Allow-Origin"));
    assert_non_null(strstr(buf_cstr(&out), "Vary: Origin\r\n"));
    ask_text("GET /a HTTP/1.1\r\n" HEAD "\r\n", &out);
    assert_null(strstr(buf_cstr(&out), "Access-Control-Allow-Origin"));
    assert_non_null(strstr(buf_cstr(&out), "Vary: Origin\r\n"));
    buf_release(&out);
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",           "127.0.0.1",    "127.0.0.1:70000",
                                      "[::1:80",    "host.name:80", "1.2.3.4.5:80",
                                      "127.0.0.1:x"};
    struct http_server *other = NULL;
    struct err err;
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct http_server_config config = {.listen = BAD[i]};
        assert_int_equal(http_server_start(&config, &other, &err), ERR_INVALID);
    }
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%u", http_server_port(server));
    struct http_server_config config = {.listen = taken};
    assert_int_equal(http_server_start(&config, &other, &err), ERR_IO);
    assert_non_null(strstr(err.text, taken));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plain),
    cmocka_unit_test(test_suspended),
    cmocka_unit_test(test_stream),
    cmocka_unit_test(test_stream_client_goes),
    cmocka_unit_test(test_stop_with_stream),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_bad_requests),
    cmocka_unit_test(test_no_http),
    cmocka_unit_test(test_places_of_busy_threads),
    cmocka_unit_test(test_gone_with_half_a_request),
    cmocka_unit_test(test_stop_while_clients_come),
    cmocka_unit_test(test_slow_request),
    cmocka_unit_test(a_reply_on_its_way_keeps_nothing_else),
    cmocka_unit_test(a_client_that_reads_nothing_is_cut_off),
    cmocka_unit_test(test_client_address),
    cmocka_unit_test(test_sockets),
    cmocka_unit_test(test_origins),
    cmocka_unit_test(test_addresses),
};
UNIT_FILE(tests, server_setup, server_teardown);
