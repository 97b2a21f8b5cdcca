/* Ports of pods, from an API server and a node that the test plays. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/forward.h"
#include "played.h"
#include "played_node.h"
#include "sys/log.h"
#include "sys/websocket.h"

#define POD     "/api/v1/namespaces/jobs/pods/skep-7"
#define DATA    "\x00"
#define ERRORS  "\x01"
#define PORT    "\x90\x1f" /* 8080 */
#define FORWARD "GET " POD "/portforward?ports=8080 HTTP/1.1\r\n"

enum {
    OPEN_MAX = 2,
    PORT_NUMBER = 8080,
    STALL_MS = 200,       /* too short on a slow machine it only proves less */
    ALL_BYTES = 16 << 20, /* more than the kernel holds for one who reads nothing */
};

/* What the client asks by; the log goes into a pipe. */
struct world {
    struct played server;
    struct kube_client *client;
    struct kube_forwards *forwards;
    int log[2];
};

static void world_open(struct world *world)
{
    assert_int_equal(pipe(world->log), 0);
    log_to(world->log[1]);
    log_setup(LOG_INFO, LOG_TEXT);
    assert_int_equal(played_open(&world->server, 8), 0);
    assert_int_equal(kube_client_new(&world->server.access, UNWATCHED, &world->client, NULL), 0);
    assert_int_equal(
        kube_forwards_new(world->client, &world->server.access, OPEN_MAX, &world->forwards, NULL),
        0);
}

/* What it has logged. */
static void world_close(struct world *world, char log[4096])
{
    kube_forwards_free(world->forwards);
    kube_client_free(world->client);
    played_close(&world->server);
    log_to(2);
    close(world->log[1]);
    const ssize_t got = read(world->log[0], log, 4095);
    log[got > 0 ? got : 0] = '\0';
    close(world->log[0]);
}

static int port_open(const struct world *world)
{
    struct err err;
    const int fd = kube_forward_open(world->forwards, POD, PORT_NUMBER, &err);
    if (fd < 0)
        fail_msg("%s", err.text);
    return fd;
}

/* --- the node's side --- */

static void node_open(const struct world *world, struct node *node)
{
    node_answer(&world->server, FORWARD, "v4.channel.k8s.io", node);
}

static void port_say(struct node *node)
{
    NODE_SAY(node, DATA PORT);
    NODE_SAY(node, ERRORS PORT);
}

/* --- the caller's side --- */

static void caller_wait(int fd, short events)
{
    struct pollfd wait = {.fd = fd, .events = events};
    assert_int_equal(poll(&wait, 1, PLAYED_LIMIT_S * 1000), 1);
}

/* Until these have come. */
static void caller_hear(int fd, const char *wanted)
{
    char bytes[64];
    size_t length = 0;
    while (length < strlen(wanted)) {
        caller_wait(fd, POLLIN);
        const ssize_t got = recv(fd, bytes + length, sizeof bytes - length, 0);
        assert_true(got > 0);
        length += (size_t)got;
    }
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(bytes, wanted, length);
}

/* Nothing more comes. What was not read on the other side is told as a reset. */
static void caller_hears_the_end(int fd)
{
    char byte;
    caller_wait(fd, POLLIN);
    const ssize_t got = recv(fd, &byte, 1, 0);
    assert_true(got == 0 || (got < 0 && errno == ECONNRESET));
    close(fd);
}

/* --- tests --- */

static void bytes_go_both_ways_until_the_task_ends(void **state)
{
    struct world world;
    struct node node;
    char log[4096];
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    say(fd, "asked before anybody listens");
    node_open(&world, &node);
    port_say(&node);
    node_hear(&node, strlen("asked before anybody listens"));
    assert_string_equal(buf_cstr(&node.bytes), "asked before anybody listens");
    NODE_SAY(&node, DATA "answered");
    caller_hear(fd, "answered");
    NODE_SAY(&node, DATA "and the last");
    NODE_SAY(&node, ERRORS "read: connection reset by peer"); /* after bytes it says nothing */
    node_close(&node);
    caller_hear(fd, "and the last");
    caller_hears_the_end(fd);
    world_close(&world, log);
    assert_string_equal(log, "");
}

static void what_the_caller_sends_last_still_arrives(void **state)
{
    struct world world;
    struct node node;
    char log[4096];
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    node_open(&world, &node);
    port_say(&node);
    say(fd, "the last");
    close(fd);
    node_hear_all(&node);
    assert_string_equal(buf_cstr(&node.bytes), "the last");
    assert_int_equal(websocket_close_code(node.websocket), WEBSOCKET_CLOSE_NORMAL);
    node_close(&node);
    world_close(&world, log);
    assert_string_equal(log, "");
}

/* The protocol has no word for it. */
static void who_sends_no_more_is_answered_still(void **state)
{
    struct world world;
    struct node node;
    char log[4096];
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    say(fd, "question");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    node_open(&world, &node);
    port_say(&node);
    node_hear(&node, strlen("question"));
    NODE_SAY(&node, DATA "answer");
    caller_hear(fd, "answer");
    node_close(&node);
    caller_hears_the_end(fd);
    world_close(&world, log);
}

/* The user is told by the relay, and the operator need not be. */
static void a_port_at_which_nobody_listens(void **state)
{
    struct world world;
    struct node node;
    char log[4096];
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    say(fd, "question");
    node_open(&world, &node);
    port_say(&node);
    NODE_SAY(&node, ERRORS "error forwarding port 8080 to pod x, uid : failed to connect to "
                           "localhost:8080: dial tcp4 127.0.0.1:8080: connect: connection refused");
    node_close(&node);
    caller_hears_the_end(fd);
    world_close(&world, log);
    assert_string_equal(log, "");
}

static void what_is_wrong_is_logged_once_a_minute(void **state)
{
    static const char forbidden[] =
        "{\"kind\":\"Status\",\"message\":\"cannot get resource pods/portforward\"}";
    struct world world;
    struct node node;
    char log[4096], request[PLAYED_REQUEST_MAX], answer[256];
    (void)state;
    world_open(&world);
    int fd = port_open(&world);
    const int server = played_take(&world.server, "\r\n\r\n", request);
    snprintf(answer, sizeof answer,
             "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(forbidden), forbidden);
    say(server, answer);
    close(server);
    caller_hears_the_end(fd);
    fd = port_open(&world);
    node_open(&world, &node);
    port_say(&node);
    NODE_SAY(&node, ERRORS "socat is not there");
    node_close(&node);
    caller_hears_the_end(fd);
    world_close(&world, log);
    assert_non_null(strstr(log, "port 8080 of " POD " cannot be reached: cannot get resource "
                                "pods/portforward\n"));
    assert_null(strstr(log, "socat"));
}

static void another_port_is_not_taken(void **state)
{
    struct world world;
    struct node node;
    char log[4096];
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    node_open(&world, &node);
    NODE_SAY(&node, "\x05of no channel");
    NODE_SAY(&node, DATA "\x91\x1f");
    node_hear_all(&node);
    node_close(&node);
    caller_hears_the_end(fd);
    world_close(&world, log);
    assert_non_null(strstr(log, "cannot be reached: something else than this port answers"));
}

static void only_so_many_are_open(void **state)
{
    struct world world;
    struct node node;
    struct err err;
    char log[4096];
    (void)state;
    world_open(&world);
    const int first = port_open(&world), second = port_open(&world);
    assert_int_equal(kube_forward_open(world.forwards, POD, PORT_NUMBER, &err), ERR_BUSY);
    assert_string_equal(err.text, "2 connections to ports of tasks are open already");
    for (int i = 0; i < OPEN_MAX; i++) {
        node_open(&world, &node);
        node_close(&node);
    }
    caller_hears_the_end(first);
    caller_hears_the_end(second);
    int third = ERR_BUSY;
    while (third == ERR_BUSY && sched_yield() == 0) /* the end of their threads is a moment later */
        third = kube_forward_open(world.forwards, POD, PORT_NUMBER, &err);
    assert_true(third >= 0);
    node_open(&world, &node);
    port_say(&node);
    NODE_SAY(&node, DATA "word");
    caller_hear(third, "word");
    kube_forwards_free(world.forwards); /* with the engine it ends */
    world.forwards = NULL;
    caller_hears_the_end(third);
    node_close(&node);
    world_close(&world, log);
}

/* --- who is slow holds up the other side, and not memory --- */

static void a_slow_caller_holds_up_the_task(void **state)
{
    const int small = 64 << 10;
    struct world world;
    struct node node;
    char log[4096];
    size_t said = 0, heard = 0;
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    node_open(&world, &node);
    assert_int_equal(setsockopt(node.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    port_say(&node);
    for (int ready = 1; ready == 1 && said < ALL_BYTES;) {
        struct pollfd wait = {.fd = node.fd, .events = POLLOUT};
        said = node_flood(&node, 0, said, ALL_BYTES);
        ready = poll(&wait, 1, STALL_MS);
    }
    assert_true(said < ALL_BYTES);
    while (heard < ALL_BYTES) {
        const bool says = said < ALL_BYTES || websocket_is_behind(node.websocket);
        struct pollfd waits[] = {{.fd = fd, .events = POLLIN},
                                 {.fd = node.fd, .events = says ? POLLIN | POLLOUT : POLLIN}};
        assert_true(poll(waits, COUNT_OF(waits), PLAYED_LIMIT_S * 1000) > 0);
        said = node_flood(&node, 0, said, ALL_BYTES);
        heard = flood_take(fd, heard);
    }
    node_close(&node);
    caller_hears_the_end(fd);
    world_close(&world, log);
    assert_string_equal(log, "");
}

/* As much as goes until nothing has moved for a while: so much. */
static size_t caller_say_all(int fd)
{
    static char bytes[FLOOD_PART];
    size_t said = 0;
    for (int ready = 1; ready == 1 && said < ALL_BYTES;) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        ready = poll(&wait, 1, STALL_MS);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = flood_byte(said + i);
        const ssize_t sent = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        said += sent > 0 ? (size_t)sent : 0;
    }
    assert_true(said < ALL_BYTES);
    return said;
}

/* What has come by then is taken from him, also when he leaves meanwhile. */
static void a_slow_task_holds_up_the_caller(void **state)
{
    struct world world;
    struct node node;
    char log[4096];
    (void)state;
    world_open(&world);
    const int fd = port_open(&world);
    node_open(&world, &node);
    port_say(&node);
    const size_t said = caller_say_all(fd);
    close(fd);
    node_hear_all(&node);
    assert_int_equal(node.bytes.length, said);
    for (size_t i = 0; i < said; i++)
        if (node.bytes.at[i] != flood_byte(i))
            fail_msg("another byte than was sent, at %zu", i);
    assert_int_equal(websocket_close_code(node.websocket), WEBSOCKET_CLOSE_NORMAL);
    node_close(&node);
    world_close(&world, log);
    assert_string_equal(log, "");
}

static void a_task_that_reads_nothing_keeps_no_place(void **state)
{
    struct world world;
    struct node nodes[OPEN_MAX];
    char log[4096];
    int fd = ERR_BUSY;
    (void)state;
    world_open(&world);
    for (size_t i = 0; i < OPEN_MAX; i++) {
        fd = port_open(&world);
        node_open(&world, &nodes[i]);
        port_say(&nodes[i]);
        caller_say_all(fd);
        close(fd);
    }
    do /* nobody tells when a place is free */
        fd = kube_forward_open(world.forwards, POD, PORT_NUMBER, NULL);
    while (fd == ERR_BUSY && poll(NULL, 0, 10) == 0);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < OPEN_MAX; i++)
        node_close(&nodes[i]);
    struct node last;
    node_open(&world, &last);
    node_close(&last);
    world_close(&world, log);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_go_both_ways_until_the_task_ends),
    cmocka_unit_test(what_the_caller_sends_last_still_arrives),
    cmocka_unit_test(who_sends_no_more_is_answered_still),
    cmocka_unit_test(a_port_at_which_nobody_listens),
    cmocka_unit_test(what_is_wrong_is_logged_once_a_minute),
    cmocka_unit_test(another_port_is_not_taken),
    cmocka_unit_test(only_so_many_are_open),
    cmocka_unit_test(a_slow_caller_holds_up_the_task),
    cmocka_unit_test(a_slow_task_holds_up_the_caller),
    cmocka_unit_test(a_task_that_reads_nothing_keeps_no_place),
};

UNIT_FILE(tests, NULL, NULL);
