/* The relay, between a client and a server that stands for a task's program. Real tasks and a real
 * browser: tests/system/cli/test_web_ports.py, web/e2e.
 * Covers: src/api/relay_entry.c */
#include "unit.h"

#include "api/http_tls.h"
#include "api/relay.h"
#include "api/relay_head.h"
#include "base/memory.h"
#include "world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char PATTERN[] = "http://*.localhost:1";

/* The world, the relay before it, and what listens in the task. */
struct scene {
    struct world *world;
    struct relay *relay;
    const char *token;
    int listener;
    uint16_t port; /* of the listener; 0: nobody listens */
    char host[80], cookie[80];
    char *noted;
};

static struct scene scene;

static int on_connect(void *context, uint8_t engine, struct attempt_id attempt, uint16_t port,
                      struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(scene.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)context, (void)engine, (void)attempt;
    assert_true(port);
    if (!scene.port)
        return err_fail(err, ERR_UNAVAILABLE, "", "nobody listens");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_true(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
                errno == EINPROGRESS);
    return fd;
}

static void on_note(void *context, struct attempt_id attempt, const char *reason, const char *text)
{
    (void)context, (void)attempt;
    assert_string_equal(reason, "WebPortEntered");
    mem_free(scene.noted);
    scene.noted = mem_copy(text);
}

static int setup(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct err err;
    (void)state;
    scene = (struct scene){.world = world_new()};
    struct world *world = scene.world;
    scene.token = world_login(world, "alice");
    world_run(world, world_submit(world, scene.token, "box", 1));
    world->service.connect = on_connect;
    world->service.note = on_note;
    scene.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(scene.listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(scene.listener, 8), 0);
    assert_int_equal(getsockname(scene.listener, (struct sockaddr *)&address, &length), 0);
    scene.port = ntohs(address.sin_port);
    world->api.web_ports = web_ports_new();
    assert_int_equal(origin_pattern_parse(PATTERN, &world->api.web_port_origin, &err), 0);
    const struct relay_config config = {.listen = "127.0.0.1:0",
                                        .origin = world->api.web_port_origin,
                                        .ports = world->api.web_ports,
                                        .service = &world->service};
    assert_int_equal(relay_start(&config, &scene.relay, &err), 0);
    return 0;
}

/* The relay again, by TLS, under names of which browsers see https. */
static struct http_tls *tls_begin(void)
{
    struct http_tls *tls;
    struct err err;
    char folder[96];
    snprintf(folder, sizeof folder, "%s/tls", scene.world->directory);
    const struct http_tls_config certificate = {.folder = folder};
    assert_int_equal(http_tls_open(&certificate, &tls, &err), 0);
    relay_stop(scene.relay);
    struct origin_pattern *origin = &scene.world->api.web_port_origin;
    assert_int_equal(origin_pattern_parse("https://*.localhost", origin, &err), 0);
    const struct relay_config config = {.listen = "127.0.0.1:0",
                                        .origin = *origin,
                                        .has_tls = true,
                                        .ports = scene.world->api.web_ports,
                                        .service = &scene.world->service};
    assert_int_equal(relay_start(&config, &scene.relay, &err), 0);
    return tls;
}

static int teardown(void **state)
{
    (void)state;
    relay_stop(scene.relay);
    web_ports_free(scene.world->api.web_ports);
    scene.world->api.web_ports = NULL;
    world_free(scene.world);
    close(scene.listener);
    mem_free(scene.noted);
    return 0;
}

/* ---- the client ---- */

static int client_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(relay_port(scene.relay)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, struct text text)
{
    while (text.length) {
        ssize_t length = send(fd, text.at, text.length, MSG_NOSIGNAL);
        assert_true(length > 0);
        text.at += length;
        text.length -= (size_t)length;
    }
}

/* Up to these words, or (NULL) to the end. */
static void hear(int fd, const char *words, struct buf *out)
{
    char byte;
    buf_clear(out);
    while (!words || !strstr(buf_cstr(out), words)) {
        ssize_t length = recv(fd, &byte, 1, 0);
        if (length <= 0 && !words)
            return;
        if (length <= 0)
            fail_msg("the end, but not '%s', comes after: %s", words, buf_cstr(out));
        buf_char(out, byte);
    }
}

/* A request with these headers behind the first line and the host; the whole answer. */
static void ask(const char *line, const char *headers, struct buf *out)
{
    cleanup_buf struct buf request = BUF_INIT;
    int fd = client_open();
    buf_format(&request, "%s\r\nHost: %s\r\n%s\r\n", line, scene.host, headers);
    say(fd, buf_as_text(&request));
    hear(fd, NULL, out);
    close(fd);
}

static void assert_said(const struct buf *out, const char *words)
{
    if (!strstr(buf_cstr(out), words))
        fail_msg("'%s' is not in: %s", words, buf_cstr(out));
}

/* A way in; its path, for the call until the next. */
static const char *way_in(const char *body)
{
    static char path[128];
    char uri[256];
    assert_int_equal(
        world_send(scene.world, HTTP_POST, "/api/v2/jobs/alice~box/webPorts", scene.token, body),
        201);
    const char *at = strstr(buf_cstr(&scene.world->body), "http://");
    assert_non_null(at);
    snprintf(uri, sizeof uri, "%.*s", (int)strcspn(at, "\""), at);
    size_t host = strcspn(uri + 7, "/");
    snprintf(scene.host, sizeof scene.host, "%.*s", (int)host, uri + 7);
    snprintf(path, sizeof path, "GET %s HTTP/1.1", uri + 7 + host);
    return path;
}

static void enter(void)
{
    cleanup_buf struct buf out = BUF_INIT;
    ask(way_in("{\"label\":\"http\"}"), "", &out);
    assert_said(&out, "HTTP/1.1 303 ");
    assert_said(&out, "\r\nLocation: /\r\n");
    const char *at = strstr(buf_cstr(&out), "skep-port=");
    assert_non_null(at);
    assert_said(&out, "; Path=/; HttpOnly; SameSite=Lax\r\n");
    snprintf(scene.cookie, sizeof scene.cookie, "Cookie: %.*s\r\n", (int)strcspn(at, ";"), at);
}

/* The task gets a request; its connection. */
static int task_hears(const char *words, struct buf *out)
{
    int fd = accept4(scene.listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    hear(fd, words, out);
    return fd;
}

/* ---- tests ---- */

static void test_a_request_and_its_answer(void **state)
{
    cleanup_buf struct buf request = BUF_INIT, heard = BUF_INIT, out = BUF_INIT;
    (void)state;
    enter();
    assert_string_not_equal(scene.noted, "");
    buf_format(&request,
               "POST /x HTTP/1.1\r\nHost: %s\r\n%sContent-Length: 5\r\n\r\nhelloGET /evil HTTP/1.1"
               "\r\nX-Skep-User: root\r\n\r\n",
               scene.host, scene.cookie);
    int client = client_open();
    say(client, buf_as_text(&request));
    int task = task_hears("\r\n\r\nhello", &heard);
    assert_said(&heard, "POST /x HTTP/1.1\r\n");
    assert_said(&heard, "X-Skep-User: alice\r\n");
    assert_null(strstr(buf_cstr(&heard), "skep-port"));
    say(task, TEXT("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"));
    hear(client, "body", &out);
    assert_said(&out, "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\nbody");
    say(task, TEXT(", and more"));
    close(task);
    hear(client, NULL, &out);
    assert_string_equal(buf_cstr(&out), ", and more");
    close(client);
}

/* The task answers; the client reads when the task could say no more without it. */
static void task_says(int task, struct text text, int client, struct buf *out)
{
    static char bytes[65536];
    while (text.length) {
        ssize_t length = send(task, text.at, text.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (length > 0) {
            text.at += length;
            text.length -= (size_t)length;
            continue;
        }
        assert_true(length < 0 && errno == EAGAIN);
        length = recv(client, bytes, sizeof bytes, 0);
        assert_true(length > 0);
        buf_add(out, bytes, (size_t)length);
    }
}

/* More than all buffers between, both ways at one time. */
static void test_bytes_are_carried_whole(void **state)
{
    enum { BYTES = 16 << 20 };
    cleanup_buf struct buf request = BUF_INIT, body = BUF_INIT, heard = BUF_INIT, out = BUF_INIT;
    static char bytes[65536];
    ssize_t length;
    (void)state;
    enter();
    for (int i = 0; body.length < BYTES; i++)
        buf_format(&body, "line %d\n", i);
    buf_format(&request, "PUT / HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\n\r\n", scene.host,
               scene.cookie, body.length);
    int client = client_open();
    say(client, buf_as_text(&request));
    int task = task_hears("\r\n\r\n", &heard);
    say(task, TEXT("HTTP/1.1 200 OK\r\n\r\n"));
    hear(client, "\r\n\r\n", &out);
    buf_clear(&out);
    for (size_t at = 0; at < body.length; at += 4096) { /* echoed piece by piece */
        size_t part = body.length - at < 4096 ? body.length - at : 4096;
        say(client, (struct text){body.at + at, part});
        for (size_t got = 0; got < part; got += (size_t)length) {
            length = recv(task, bytes + got, part - got, 0);
            assert_true(length > 0);
        }
        task_says(task, (struct text){bytes, part}, client, &out);
    }
    close(task);
    while ((length = recv(client, bytes, sizeof bytes, 0)) > 0)
        buf_add(&out, bytes, (size_t)length);
    assert_int_equal(out.length, body.length);
    assert_memory_equal(out.at, body.at, body.length);
    close(client);
}

static void *write_for_ever(void *context)
{
    char bytes[4096] = {0};
    while (send(*(const int *)context, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        continue;
    return NULL;
}

static void *read_for_ever(void *context)
{
    char bytes[65536];
    while (recv(*(const int *)context, bytes, sizeof bytes, 0) > 0)
        continue;
    return NULL;
}

/* A connection that always has bytes to carry keeps neither others nor the relay's end waiting. */
static void test_others_have_their_turn(void **state)
{
    cleanup_buf struct buf request = BUF_INIT, heard = BUF_INIT, out = BUF_INIT;
    pthread_t writer, reader;
    (void)state;
    enter();
    buf_format(&request, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n", scene.host, scene.cookie);
    int client = client_open();
    say(client, buf_as_text(&request));
    int task = task_hears("\r\n\r\n", &heard);
    say(task, TEXT("HTTP/1.1 200 OK\r\n\r\n"));
    assert_int_equal(pthread_create(&writer, NULL, write_for_ever, &task), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_for_ever, &client), 0);
    for (int i = 0; i < 4; i++) {
        ask("GET / HTTP/1.1", "", &out);
        assert_said(&out, "HTTP/1.1 401 ");
    }
    relay_stop(scene.relay);
    scene.relay = NULL;
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    close(client);
    close(task);
}

static void test_a_websocket_is_a_pipe(void **state)
{
    cleanup_buf struct buf request = BUF_INIT, heard = BUF_INIT, out = BUF_INIT;
    (void)state;
    enter();
    buf_format(&request,
               "GET /ws HTTP/1.1\r\nHost: %s\r\n%sOrigin: http://%s\r\nUpgrade: websocket\r\n"
               "Connection: Upgrade\r\nSec-WebSocket-Key: k\r\n\r\n",
               scene.host, scene.cookie, scene.host);
    int client = client_open();
    say(client, buf_as_text(&request));
    int task = task_hears("\r\n\r\n", &heard);
    say(task, TEXT("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: a\r\n\r\nfirst"));
    hear(client, "first", &out);
    assert_said(&out, "Sec-WebSocket-Accept: a\r\n");
    say(client, TEXT("ping"));
    hear(task, "ping", &heard);
    say(task, TEXT("pong"));
    hear(client, "pong", &out);
    close(client); /* and the task hears of it */
    hear(task, NULL, &heard);
    close(task);
}

/* Were they passed on, a task that opens none would read them as another request. */
static void test_bytes_before_a_websocket(void **state)
{
    cleanup_buf struct buf request = BUF_INIT, out = BUF_INIT;
    (void)state;
    enter();
    buf_format(&request,
               "GET /ws HTTP/1.1\r\nHost: %s\r\n%sOrigin: http://%s\r\nUpgrade: websocket\r\n"
               "Connection: Upgrade\r\n\r\nGET /evil HTTP/1.1\r\nX-Skep-User: root\r\n\r\n",
               scene.host, scene.cookie, scene.host);
    int client = client_open();
    say(client, buf_as_text(&request));
    hear(client, NULL, &out);
    assert_said(&out, "HTTP/1.1 400 ");
    close(client);
}

static void test_strangers(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    enter();
    char host[80], way[128], forged[120];
    snprintf(host, sizeof host, "%s", scene.host);
    ask("GET / HTTP/1.1", "", &out);
    assert_said(&out, "HTTP/1.1 401 ");
    ask("GET / HTTP/1.1", "Cookie: skep-port=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", &out);
    assert_said(&out, "HTTP/1.1 401 ");
    snprintf(forged, sizeof forged, "Authorization: Bearer %.80s\r\n", scene.token);
    ask("GET / HTTP/1.1", forged, &out); /* a token of the API is none here */
    assert_said(&out, "HTTP/1.1 401 ");
    snprintf(way, sizeof way, "%s", way_in("{\"label\":\"http\"}"));
    ask(way, "", &out);
    assert_said(&out, "HTTP/1.1 303 ");
    ask(way, "", &out); /* once */
    assert_said(&out, "HTTP/1.1 401 ");
    way_in(
        "{\"label\":\"ssh\"}"); /* another port is another host, where this cookie opens nothing */
    assert_string_not_equal(host, scene.host);
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 401 ");
    ask("GET /.skep/enter?ticket=../../x HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 401 ");
    snprintf(scene.host, sizeof scene.host, "localhost:1");
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 421 ");
    snprintf(scene.host, sizeof scene.host, "%.26s.localhost:2", host);
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 421 ");
}

static void test_what_is_never_relayed(void **state)
{
    static const struct {
        const char *line, *headers, *status;
    } cases[] = {
        {"GET /.skep/other HTTP/1.1", "", "404"},
        {"POST /.skep/enter HTTP/1.1", "Content-Length: 0\r\n", "401"},
        {"GET http://127.0.0.1:22/ HTTP/1.1", "", "400"},
        {"CONNECT 127.0.0.1:22 HTTP/1.1", "", "400"},
        {"GET / HTTP/1.1", "Host: other\r\n", "400"},
        {"GET / HTTP/1.0", "", "505"},
        {"POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n", "411"},
        {"GET / HTTP/1.1", "Origin: http://evil.localhost:1\r\n", "403"},
        {"GET / HTTP/1.1", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n", "403"},
        {"GET / HTTP/1.1", "Upgrade: websocket\r\nConnection: upgrade\r\n", "403"},
    };
    cleanup_buf struct buf out = BUF_INIT, headers = BUF_INIT, expected = BUF_INIT;
    (void)state;
    enter();
    scene.port = 0; /* were anything relayed, it would be answered 502 */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&headers);
        buf_clear(&expected);
        buf_format(&headers, "%s%s", scene.cookie, cases[i].headers);
        buf_format(&expected, "HTTP/1.1 %s ", cases[i].status);
        ask(cases[i].line, buf_cstr(&headers), &out);
        assert_said(&out, buf_cstr(&expected));
    }
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 502 ");
}

static int on_connect_in_vain(void *context, uint8_t engine, struct attempt_id attempt,
                              uint16_t port, struct err *err)
{
    (void)context, (void)engine, (void)attempt, (void)port;
    return err_fail(err, ERR_UNSUPPORTED, "", "not by this engine");
}

static int on_connect_too_often(void *context, uint8_t engine, struct attempt_id attempt,
                                uint16_t port, struct err *err)
{
    (void)context, (void)engine, (void)attempt, (void)port;
    return err_fail(err, ERR_BUSY, "", "so many are open already");
}

static void test_an_engine_that_has_too_many(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    scene.world->service.connect = on_connect_too_often;
    enter();
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 503 ");
}

static void test_an_engine_that_cannot(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    scene.world->service.connect = on_connect_in_vain;
    enter();
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 501 ");
}

static void test_a_head_without_an_end(void **state)
{
    cleanup_buf struct buf request = BUF_INIT, out = BUF_INIT;
    (void)state;
    enter();
    buf_format(&request, "GET / HTTP/1.1\r\nHost: %s\r\nX: ", scene.host);
    while (request.length < RELAY_HEAD_MAX)
        buf_char(&request, 'x');
    int client = client_open();
    say(client, buf_as_text(&request));
    hear(client, NULL, &out);
    assert_said(&out, "HTTP/1.1 431 ");
    close(client);
}

/* Who sends nothing gets only a part of the places. */
static void test_one_address_cannot_take_all_places(void **state)
{
    int fds[RELAY_STRANGERS_MAX], beyond;
    char byte;
    (void)state;
    for (size_t i = 0; i < RELAY_STRANGERS_MAX; i++)
        fds[i] = client_open();
    beyond = client_open();
    assert_true(read(beyond, &byte, 1) <= 0); /* the end, or a reset */
    close(beyond);
    for (size_t i = 0; i < RELAY_STRANGERS_MAX; i++)
        close(fds[i]);
}

static void test_who_counts_as_one(void **state)
{
    static const struct {
        const char *address, *origin;
    } CASES[] = {
        {"2001:db8::1", "2001:db8::"},
        {"2001:db8::2:3:4:5", "2001:db8::"},
        {"2001:db8:0:1::1", "2001:db8:0:1::"},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.1"},
        {"::1", "::1"},
        {"192.0.2.1", "::ffff:192.0.2.1"},
    };
    const struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct in6_addr wanted = {0}, origin;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        const bool is_v4 = inet_pton(AF_INET, CASES[i].address, &v4.sin_addr) == 1;
        assert_true(is_v4 || inet_pton(AF_INET6, CASES[i].address, &v6.sin6_addr) == 1);
        assert_int_equal(inet_pton(AF_INET6, CASES[i].origin, &wanted), 1);
        origin = is_v4 ? relay_origin((struct sockaddr *)&v4, sizeof v4)
                       : relay_origin((struct sockaddr *)&v6, sizeof v6);
        assert_memory_equal(&origin, &wanted, sizeof origin);
    }
    origin = relay_origin((const struct sockaddr *)&local, sizeof local);
    assert_memory_equal(&origin, &in6addr_any, sizeof origin);
}

static void test_a_task_that_speaks_no_http(void **state)
{
    static const char *const says[] = {"SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n", ""};
    cleanup_buf struct buf request = BUF_INIT, out = BUF_INIT, heard = BUF_INIT;
    (void)state;
    enter();
    buf_format(&request, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n", scene.host, scene.cookie);
    for (size_t i = 0; i < COUNT_OF(says); i++) {
        int client = client_open();
        say(client, buf_as_text(&request));
        int task = task_hears("\r\n\r\n", &heard);
        say(task, text_of(says[i]));
        close(task);
        hear(client, NULL, &out);
        assert_said(&out, "HTTP/1.1 502 ");
        close(client);
    }
}

/* Answers on the way to another one, as many as there may be. */
static void test_many_answers(void **state)
{
    cleanup_buf struct buf bytes = BUF_INIT, out = BUF_INIT, heard = BUF_INIT;
    (void)state;
    enter();
    buf_format(&bytes, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n", scene.host, scene.cookie);
    int client = client_open();
    say(client, buf_as_text(&bytes));
    int task = task_hears("\r\n\r\n", &heard);
    buf_clear(&bytes);
    for (int i = 0; i < 20000; i++)
        buf_string(&bytes, "HTTP/1.1 100\r\n\r\n");
    buf_string(&bytes, "HTTP/1.1 200 OK\r\n\r\nbody");
    say(task, buf_as_text(&bytes));
    close(task);
    hear(client, NULL, &out);
    assert_string_equal(buf_cstr(&out), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody");
    close(client);
}

/* A token that is revoked takes the sessions along that were opened by it. */
static void test_a_revoked_token(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    enter();
    assert_int_equal(
        world_send(scene.world, HTTP_DELETE, "/api/v2/authn/basic/logout", scene.token, ""), 200);
    ask("GET / HTTP/1.1", scene.cookie, &out);
    assert_said(&out, "HTTP/1.1 401 ");
}

/* The whole answer to a request by TLS. */
static void ask_by_tls(struct text request, struct buf *out)
{
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    char bytes[4096];
    ssize_t length;
    int fd = client_open();
    assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
    assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT), 0);
    assert_int_equal(gnutls_set_default_priority(session), 0);
    assert_int_equal(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials), 0);
    gnutls_transport_set_int(session, fd);
    assert_int_equal(gnutls_handshake(session), 0);
    while (request.length) {
        length = gnutls_record_send(session, request.at, request.length);
        assert_true(length > 0);
        request.at += length;
        request.length -= (size_t)length;
    }
    buf_clear(out);
    while ((length = gnutls_record_recv(session, bytes, sizeof bytes)) > 0)
        buf_add(out, bytes, (size_t)length);
    assert_int_equal(length, 0); /* its end was said, not only cut */
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(fd);
}

static void test_tls(void **state)
{
    enum { BYTES = 1 << 20 };
    cleanup_buf struct buf request = BUF_INIT, out = BUF_INIT;
    struct http_tls *tls = tls_begin();
    char uri[256], session[WEB_PORT_WORD_SIZE + 32];
    (void)state;
    assert_int_equal(world_send(scene.world, HTTP_POST, "/api/v2/jobs/alice~box/webPorts",
                                scene.token, "{\"label\":\"http\"}"),
                     201);
    const char *at = strstr(buf_cstr(&scene.world->body), "https://");
    assert_non_null(at);
    snprintf(uri, sizeof uri, "%.*s", (int)strcspn(at, "\""), at);
    size_t host = strcspn(uri + 8, "/");
    buf_format(&request, "GET %s HTTP/1.1\r\nHost: %.*s\r\n\r\n", uri + 8 + host, (int)host,
               uri + 8);
    ask_by_tls(buf_as_text(&request), &out);
    assert_said(&out, "HTTP/1.1 303 ");
    assert_said(&out, "; Path=/; HttpOnly; SameSite=Lax; Secure\r\n");
    at = strstr(buf_cstr(&out), "__Host-skep-port=");
    assert_non_null(at);
    snprintf(session, sizeof session, "%.*s", (int)strcspn(at, ";"), at);
    buf_clear(&request);
    buf_format(&request,
               "POST / HTTP/1.1\r\nHost: %.*s\r\nCookie: %s\r\nContent-Length: %d\r\n\r\n",
               (int)host, uri + 8, session, BYTES);
    while (request.length < BYTES)
        buf_char(&request, 'x');
    scene.port = 0; /* the answer is the relay's own, while the body still comes */
    ask_by_tls(buf_as_text(&request), &out);
    assert_said(&out, "HTTP/1.1 502 ");
    relay_stop(scene.relay);
    scene.relay = NULL;
    http_tls_close(tls);
}

static void test_who_may_ask_for_a_way_in(void **state)
{
    static const struct {
        int status;
        const char *body, *says;
    } cases[] = {
        {400, "{}", "label is missing"},
        {404, "{\"label\":\"none\"}", "NoPortError"},
        {404, "{\"label\":\"http\",\"index\":5}", "NoTaskError"},
        {400, "{\"label\":\"http\",\"offset\":1}", "offset is 0..0"},
        {400, "{\"label\":\"http\",\"offset\":-1}", "offset is 0..0"},
        {400, "{\"label\":\"http\",\"path\":\"//evil.org\"}", "path must be"},
        {400, "{\"label\":\"http\",\"path\":\"https://evil.org\"}", "path must be"},
        {400, "{\"label\":\"http\",\"path\":\"/\\\\evil.org\"}", "path must be"},
        {400, "{\"label\":\"http\",\"path\":\"/a\\r\\nSet-Cookie: x=y\"}", "path must be"},
        {400, "{\"label\":\"http\",\"path\":\"/.skep/enter\"}", "path must be"},
        {400, "{\"label\":\"http\",\"wrong\":1}", "there is no 'wrong' here"},
        {201, "{\"label\":\"http\",\"path\":\"/lab?x=1\"}", "\"ticketSeconds\":60"},
    };
    struct world *world = scene.world;
    const char *path = "/api/v2/jobs/alice~box/webPorts", *body = "{\"label\":\"http\"}";
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (world_send(world, HTTP_POST, path, scene.token, cases[i].body) != cases[i].status)
            fail_msg("%d for %s", world->status, cases[i].body);
        assert_body(world, cases[i].says);
    }
    assert_int_equal(world_send(world, HTTP_POST, path, world_login(world, "bob"), body), 403);
    assert_body(world, "\"right\":");
    assert_int_equal(world_send(world, HTTP_POST, path, NULL, body), 401);
    assert_int_equal(world_send(world, HTTP_POST, path, world_login(world, "admin"), body), 201);
    world_submit(world, scene.token, "late", 1); /* has not begun to run */
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/jobs/alice~late/webPorts", scene.token, body), 409);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(test_a_request_and_its_answer),
    TEST(test_bytes_are_carried_whole),
    TEST(test_others_have_their_turn),
    TEST(test_a_websocket_is_a_pipe),
    TEST(test_bytes_before_a_websocket),
    TEST(test_strangers),
    TEST(test_what_is_never_relayed),
    TEST(test_a_head_without_an_end),
    TEST(test_one_address_cannot_take_all_places),
    cmocka_unit_test(test_who_counts_as_one),
    TEST(test_a_task_that_speaks_no_http),
    TEST(test_many_answers),
    TEST(test_an_engine_that_cannot),
    TEST(test_an_engine_that_has_too_many),
    TEST(test_a_revoked_token),
    TEST(test_tls),
    TEST(test_who_may_ask_for_a_way_in),
};
UNIT_FILE(tests, NULL, NULL);
