/* Heads on their way through the relay: what is refused, what is taken out, what is put in. */
#include "unit.h"

#include "api/relay_head.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include <string.h>

#define ORIGIN "http://id.jobs.example.org"
#define HEAD   "GET /a/../b?c=.. HTTP/1.1\r\nHost: id.jobs.example.org\r\n"

static struct relay_request parsed(const char *head)
{
    struct relay_request request;
    struct err err;
    int status = relay_request_parse(text_of(head), &request, &err);
    if (status)
        fail_msg("%d (%s): %s", status, err.text, head);
    return request;
}

static void written(const char *head, struct buf *out)
{
    const struct relay_request request = parsed(head);
    buf_clear(out);
    relay_request_write(&request, true, "ann", out);
}

static void test_length(void **state)
{
    (void)state;
    assert_int_equal(relay_head_length(TEXT("GET / HTTP/1.1\r\nHost: a\r\n\r\nbody")), 27);
    assert_int_equal(relay_head_length(TEXT("GET / HTTP/1.1\r\nHost: a\r\n\r")), 0);
    assert_int_equal(relay_head_length(TEXT("GET / HTTP/1.1\n\n")), 0);
    assert_int_equal(relay_head_length(TEXT("")), 0);
}

static void test_a_request_is_written_anew(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    written(HEAD "Accept: */*\r\nCookie: skep-port=secret; a=1 ;__Host-skep-port=x\r\n"
                 "Cookie: b=2; __Secure-skep-x=3;;skep=4\r\nAuthorization: Bearer mine\r\n\r\n",
            &out);
    assert_string_equal(buf_cstr(&out),
                        "GET /a/../b?c=.. HTTP/1.1\r\nHost: id.jobs.example.org\r\nAccept: */*\r\n"
                        "Cookie: a=1; b=2; skep=4\r\nX-Forwarded-Proto: https\r\n"
                        "X-Forwarded-Host: id.jobs.example.org\r\nX-Skep-User: ann\r\n"
                        "Connection: close\r\n\r\n");
    written("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 007\r\nExpect: 100-continue\r\n\r\n",
            &out);
    assert_non_null(strstr(buf_cstr(&out), "\r\nContent-Length: 7\r\n"));
    assert_null(strstr(buf_cstr(&out), "xpect"));
}

/* What one hop says to the next, and what a task could take for our word. */
static void test_words_that_are_not_the_clients(void **state)
{
    static const char *const gone[] = {
        "Connection: keep-alive",
        "Keep-Alive: 5",
        "TE: trailers",
        "Trailer: x",
        "Proxy-Authorization: x",
        "Upgrade: h2c",
        "X-Skep-User: root",
        "x_skep_user: root",
        "X-Forwarded-For: 10.0.0.1",
        "X_Forwarded_Host: evil",
        "Forwarded: for=1",
        "X-Real-IP: 1",
        "X-Forwarded-Prefix: /x",
        "HTTP2-Settings: a",
        "authorization: Basic x",
        "Cookie: skep-port=secret",
        "Proxy-Connection: x",
    };
    cleanup_buf struct buf out = BUF_INIT, head = BUF_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gone); i++) {
        buf_clear(&head);
        buf_format(&head, HEAD "%s\r\n\r\n", gone[i]);
        written(buf_cstr(&head), &out);
        if (strcasestr(buf_cstr(&out), gone[i]))
            fail_msg("%s is in %s", gone[i], buf_cstr(&out));
    }
    written(HEAD
            "Connection: close, X-Mine, Content-Length\r\nX-Mine: 1\r\nContent-Length: 4\r\n\r\n",
            &out);
    assert_null(strstr(buf_cstr(&out), "X-Mine"));
    assert_non_null(strstr(buf_cstr(&out), "Content-Length: 4\r\n"));
}

static void test_what_is_refused(void **state)
{
    static const struct {
        int status;
        const char *head;
    } cases[] = {
        {400, "\r\n\r\n"},
        {400, "GET /\r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "GET http://other/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "GET other/ HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "CONNECT other:22 HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "GE\tT / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent_Length: 2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"},
        {411, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {411, "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: x\r\nContent-Length: 1\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n"},
        {501, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"},
        {501, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
              "Content-Length: 1\r\n\r\n"},
        {505, "GET / HTTP/1.0\r\nHost: a\r\n\r\n"},
        {505, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct relay_request request;
        struct err err = {0};
        int status = relay_request_parse(text_of(cases[i].head), &request, &err);
        if (status != cases[i].status || !err.text[0])
            fail_msg("%d (%s), not %d: %s", status, err.text, cases[i].status, cases[i].head);
    }
}

static void test_too_many_headers(void **state)
{
    cleanup_buf struct buf head = BUF_INIT;
    struct relay_request request;
    struct err err;
    (void)state;
    buf_string(&head, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 1; i < RELAY_HEADERS_MAX; i++)
        buf_string(&head, "X: y\r\n");
    buf_string(&head, "\r\n");
    assert_int_equal(relay_request_parse(buf_as_text(&head), &request, &err), 0);
    head.length -= 2;
    buf_string(&head, "X: y\r\n\r\n");
    assert_int_equal(relay_request_parse(buf_as_text(&head), &request, &err), 431);
}

static void test_cookies_and_query(void **state)
{
    const struct relay_request request =
        parsed("GET /x?ticket=abc&b&ticket=d HTTP/1.1\r\nHost: a\r\n"
               "Cookie: xskep-port=1; skep-port\r\n"
               "cookie: a=b;  skep-port = word \r\n\r\n");
    (void)state;
    assert_true(text_is(relay_request_cookie(&request, "skep-port"), "word"));
    assert_null(relay_request_cookie(&request, "skep").at);
    assert_true(text_is(relay_request_query(&request, "ticket"), "abc"));
    assert_null(relay_request_query(&request, "b").at);
    assert_null(relay_request_query(&request, "x").at);
    assert_true(text_is(request.path, "/x"));
}

static void test_websocket(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    written(HEAD "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
                 "Sec-WebSocket-Key: k\r\nOrigin: " ORIGIN "\r\n\r\n",
            &out);
    assert_non_null(strstr(buf_cstr(&out), "\r\nSec-WebSocket-Key: k\r\nOrigin: " ORIGIN "\r\n"));
    assert_non_null(
        strstr(buf_cstr(&out), "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"));
    assert_false(parsed(HEAD "Upgrade: websocket\r\n\r\n").is_websocket);
}

/* Of which pages a request may come. */
static void test_origins(void **state)
{
    static const struct {
        bool is_own;
        const char *head;
    } cases[] = {
        {true, HEAD "\r\n"},
        {true, HEAD "Origin: " ORIGIN "\r\n\r\n"},
        {false, HEAD "Origin: null\r\n\r\n"},
        {false, HEAD "Origin: http://other.jobs.example.org\r\n\r\n"},
        {false, HEAD "Origin: https://id.jobs.example.org\r\n\r\n"},
        {true, HEAD "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n\r\n"},
        {true, HEAD "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n\r\n"},
        {false, HEAD "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n\r\n"},
        {false, HEAD "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
                     "Sec-Fetch-Dest: iframe\r\n\r\n"},
        {true, HEAD "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
                    "Sec-Fetch-Dest: document\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: same-site\r\n"
                "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n"},
        {false, HEAD "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"},
        {true, HEAD "Upgrade: websocket\r\nConnection: upgrade\r\nOrigin: " ORIGIN "\r\n\r\n"},
        {false, HEAD "Upgrade: websocket\r\nConnection: upgrade\r\nOrigin: http://x\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct relay_request request = parsed(cases[i].head);
        if (relay_request_is_own(&request, ORIGIN) != cases[i].is_own)
            fail_msg("%s", cases[i].head);
    }
}

static void test_replies(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    struct relay_reply reply;
    struct err err;
    (void)state;
    assert_int_equal(
        relay_reply_parse(TEXT("HTTP/1.0 200 All is well\r\nA: b\r\nConnection: keep-alive, X\r\n"
                               "X: y\r\nAlt-Svc: h2=\":1\"\r\nSet-Cookie: a=b; Path=/\r\n"
                               "Set-Cookie: c=d; domain =.example.org\r\nSet-Cookie: "
                               "skep-port=x\r\nTransfer-Encoding: chunked\r\n"
                               "Content-Length: 3\r\n\r\n"),
                          &reply, &err),
        0);
    relay_reply_write(&reply, &out);
    assert_string_equal(buf_cstr(&out), "HTTP/1.1 200 All is well\r\nA: b\r\n"
                                        "Transfer-Encoding: chunked\r\nSet-Cookie: a=b; Path=/\r\n"
                                        "Connection: close\r\n\r\n");
    buf_clear(&out);
    assert_int_equal(
        relay_reply_parse(TEXT("HTTP/1.1 101\r\nUpgrade: websocket\r\n\r\n"), &reply, &err), 0);
    relay_reply_write(&reply, &out);
    assert_string_equal(buf_cstr(&out),
                        "HTTP/1.1 101 \r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
}

static void test_replies_that_are_none(void **state)
{
    static const char *const heads[] = {
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    };
    struct relay_reply reply;
    struct err err;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        if (relay_reply_parse(text_of(heads[i]), &reply, &err) != ERR_INVALID)
            fail_msg("%s", heads[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_length),
    cmocka_unit_test(test_a_request_is_written_anew),
    cmocka_unit_test(test_words_that_are_not_the_clients),
    cmocka_unit_test(test_what_is_refused),
    cmocka_unit_test(test_too_many_headers),
    cmocka_unit_test(test_cookies_and_query),
    cmocka_unit_test(test_websocket),
    cmocka_unit_test(test_origins),
    cmocka_unit_test(test_replies),
    cmocka_unit_test(test_replies_that_are_none),
};
UNIT_FILE(tests, NULL, NULL);
