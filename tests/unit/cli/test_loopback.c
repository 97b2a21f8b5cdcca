/* What the browser brings back, and everything else that connects to the port. */
#include "unit.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "cli/loopback.h"

#define WORD "a-word_1"

struct fixture {
    struct loopback loopback;
    struct sockaddr_in address;
};

static void fixture_open(struct fixture *fixture)
{
    struct err err = {0};
    socklen_t size = sizeof fixture->address;
    assert_int_equal(loopback_open(&fixture->loopback, WORD, &err), 0);
    assert_int_equal(getsockname(fixture->loopback.fd, (struct sockaddr *)&fixture->address, &size),
                     0);
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/" WORD, ntohs(fixture->address.sin_port));
    assert_string_equal(fixture->loopback.url, url);
    assert_string_equal(fixture->loopback.path, "/" WORD);
}

/* A client that has sent this already: the kernel has taken it, behind those of all clients before,
 * and has said so. */
static int client(const struct fixture *fixture, const char *request)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(fd, (const struct sockaddr *)&fixture->address, sizeof fixture->address), 0);
    ssize_t length = (ssize_t)strlen(request);
    assert_int_equal(send(fd, request, (size_t)length, MSG_NOSIGNAL), length);
    for (int underway = (int)length; underway > 0; sched_yield())
        assert_int_equal(ioctl(fd, SIOCOUTQ, &underway), 0);
    return fd;
}

/* Read until it is closed. */
static void assert_reply(int fd, const char *beginning)
{
    char reply[2048] = "";
    size_t length = 0;
    ssize_t count;
    while ((count = recv(fd, reply + length, sizeof reply - 1 - length, 0)) > 0)
        length += (size_t)count;
    reply[length] = '\0';
    assert_memory_equal(reply, beginning, strlen(beginning));
    close(fd);
}

static void answer_free(struct loopback_answer *answer)
{
    mem_free(answer->code);
    mem_free(answer->problem);
}

static void test_a_code(void **state)
{
    (void)state;
    struct fixture fixture;
    struct loopback_answer answer;
    struct err err = {0};
    fixture_open(&fixture);
    int idle = client(&fixture, ""), other = client(&fixture, "GET /favicon.ico HTTP/1.1\r\n\r\n");
    int near = client(&fixture, "GET /" WORD "x?code=stolen HTTP/1.1\r\n\r\n");
    int post = client(&fixture, "POST /" WORD "?code=stolen HTTP/1.1\r\n\r\n");
    int empty = client(&fixture, "GET /" WORD "?from=x&code= HTTP/1.1\r\n\r\n");
    int good = client(&fixture, "GET /" WORD "?a=b&code=x%2Dy HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(loopback_wait(&fixture.loopback, 60000, &answer, &err), 0);
    assert_string_equal(answer.code, "x-y");
    assert_string_equal(answer.problem, "");
    assert_reply(other, "HTTP/1.1 404 ");
    assert_reply(near, "HTTP/1.1 404 ");
    assert_reply(post, "HTTP/1.1 404 ");
    assert_reply(empty, "HTTP/1.1 400 ");
    assert_reply(good, "HTTP/1.1 200 OK\r\n");
    answer_free(&answer);
    loopback_close(&fixture.loopback);
    assert_reply(idle, "");
}

static void test_a_problem(void **state)
{
    (void)state;
    struct fixture fixture;
    struct loopback_answer answer;
    fixture_open(&fixture);
    int fd = client(&fixture, "GET /" WORD "?errorMessage=it%20is%20so HTTP/1.1\r\n\r\n");
    assert_int_equal(loopback_wait(&fixture.loopback, 60000, &answer, NULL), 0);
    assert_string_equal(answer.problem, "it is so");
    assert_string_equal(answer.code, "");
    assert_reply(fd, "HTTP/1.1 200 ");
    answer_free(&answer);
    loopback_close(&fixture.loopback);
}

/* Connections that say nothing, or too much, keep nobody out. */
static void test_who_holds_the_port(void **state)
{
    (void)state;
    struct fixture fixture;
    struct loopback_answer answer;
    int idle[LOOPBACK_CLIENTS];
    char *much = mem_zero(1, LOOPBACK_REQUEST_MAX + 2);
    memset(much, 'x', LOOPBACK_REQUEST_MAX + 1);
    fixture_open(&fixture);
    int loud = client(&fixture, much);
    mem_free(much);
    for (int i = 0; i < LOOPBACK_CLIENTS; i++)
        idle[i] = client(&fixture, "GET /");
    int good = client(&fixture, "GET /" WORD "?code=c HTTP/1.1\r\n\r\n");
    assert_int_equal(loopback_wait(&fixture.loopback, 60000, &answer, NULL), 0);
    assert_string_equal(answer.code, "c");
    answer_free(&answer);
    assert_reply(good, "HTTP/1.1 200 ");
    loopback_close(&fixture.loopback);
    for (int i = 0; i < LOOPBACK_CLIENTS; i++)
        close(idle[i]);
    close(loud);
}

static void test_nobody_comes(void **state)
{
    (void)state;
    struct fixture fixture;
    struct loopback_answer answer;
    struct err err = {0};
    fixture_open(&fixture);
    assert_int_equal(loopback_wait(&fixture.loopback, 1, &answer, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "no browser came back"));
    loopback_close(&fixture.loopback);
    loopback_close(&fixture.loopback);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_code),
    cmocka_unit_test(test_a_problem),
    cmocka_unit_test(test_who_holds_the_port),
    cmocka_unit_test(test_nobody_comes),
};
UNIT_FILE(tests, NULL, NULL);
