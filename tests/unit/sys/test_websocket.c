/* Two ends of a WebSocket over two buffers: messages, closing, noise, and what a slow end does. */
#include "unit.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "sys/websocket.h"

struct end {
    struct websocket *websocket;
    struct buf *in, *out; /* what it reads, and writes */
    size_t room;          /* so much the connection takes now */
    struct buf texts, bytes;
    bool is_cut;
};

static ssize_t end_read(void *context, void *bytes, size_t size)
{
    struct end *end = context;
    size_t length = end->in->length < size ? end->in->length : size;
    if (!length)
        return end->is_cut ? WEBSOCKET_BROKEN : WEBSOCKET_LATER;
    memcpy(bytes, end->in->at, length);
    memmove(end->in->at, end->in->at + length, end->in->length - length);
    end->in->length -= length;
    return (ssize_t)length;
}

static ssize_t end_write(void *context, const void *bytes, size_t size)
{
    struct end *end = context;
    size_t length = size < end->room ? size : end->room;
    if (!length)
        return WEBSOCKET_LATER;
    end->room -= length;
    buf_add(end->out, bytes, length);
    return (ssize_t)length;
}

static void end_message(void *context, bool is_text, struct text message)
{
    struct end *end = context;
    buf_text(is_text ? &end->texts : &end->bytes, message);
}

static void end_open(struct end *end, bool is_client, struct buf *in, struct buf *out)
{
    const struct websocket_ops ops = {end, end_read, end_write, end_message};
    *end = (struct end){.in = in, .out = out, .room = SIZE_MAX};
    end->websocket = websocket_new(&ops, is_client);
}

static void end_close(struct end *end)
{
    websocket_free(end->websocket);
    buf_release(&end->texts);
    buf_release(&end->bytes);
}

struct pair {
    struct buf there, back;
    struct end client, server;
};

static void pair_open(struct pair *pair)
{
    *pair = (struct pair){0};
    end_open(&pair->client, true, &pair->back, &pair->there);
    end_open(&pair->server, false, &pair->there, &pair->back);
}

static void pair_close(struct pair *pair)
{
    end_close(&pair->client);
    end_close(&pair->server);
    buf_release(&pair->there);
    buf_release(&pair->back);
}

static void test_messages(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    websocket_send(pair.client.websocket, false, TEXT("\1bytes"));
    websocket_send(pair.client.websocket, true, TEXT("{}"));
    websocket_ping(pair.client.websocket);
    assert_true(websocket_is_behind(pair.client.websocket));
    assert_true(websocket_work(pair.client.websocket));
    assert_false(websocket_is_behind(pair.client.websocket));
    assert_null(memmem(pair.there.at, pair.there.length, "bytes", 5)); /* a client masks */
    assert_true(websocket_work(pair.server.websocket));
    assert_string_equal(buf_cstr(&pair.server.bytes), "\1bytes");
    assert_string_equal(buf_cstr(&pair.server.texts), "{}");
    assert_int_equal(pair.back.length, 2); /* the pong */
    websocket_send(pair.server.websocket, true, TEXT("hello"));
    assert_true(websocket_work(pair.server.websocket));
    assert_true(websocket_work(pair.client.websocket));
    assert_string_equal(buf_cstr(&pair.client.texts), "hello");
    pair_close(&pair);
}

static void test_close(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    assert_int_equal(websocket_close_code(pair.client.websocket), WEBSOCKET_CLOSE_ABNORMAL);
    websocket_send(pair.server.websocket, true, TEXT("last"));
    websocket_close(pair.server.websocket, 4001, "taken over");
    websocket_send(pair.server.websocket, true, TEXT("too late"));
    assert_true(websocket_work(pair.server.websocket)); /* waits for the other's word */
    assert_false(websocket_work(pair.client.websocket));
    assert_int_equal(websocket_close_code(pair.client.websocket), 4001);
    assert_string_equal(buf_cstr(&pair.client.texts), "last");
    assert_false(websocket_work(pair.server.websocket));
    assert_false(websocket_work(pair.server.websocket));
    pair_close(&pair);
}

static void test_slow(void **state)
{
    (void)state;
    struct pair pair;
    char *big = calloc(1, WEBSOCKET_MESSAGE_MAX);
    pair_open(&pair);
    pair.server.room = 100;
    websocket_send(pair.server.websocket, false, (struct text){big, WEBSOCKET_MESSAGE_MAX});
    assert_true(websocket_work(pair.server.websocket));
    assert_true(websocket_is_behind(pair.server.websocket));
    assert_true(websocket_queued(pair.server.websocket) > 0);
    assert_true(websocket_work(pair.client.websocket));
    assert_int_equal(pair.client.bytes.length, 0);
    pair.server.room = SIZE_MAX;
    assert_true(websocket_work(pair.server.websocket));
    assert_true(websocket_work(pair.client.websocket));
    assert_int_equal(pair.client.bytes.length, WEBSOCKET_MESSAGE_MAX);
    free(big);
    pair_close(&pair);
}

/* The answers to pings do not pile up when nobody reads them, and all are given in the end. */
static void test_pings(void **state)
{
    (void)state;
    enum { PINGS = 100000, TURNS = 100, WAITING_MAX = 2000, PONG_BYTES = 3 };
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < PINGS; i++)
        buf_add(&pair.there, "\x89\x81\0\0\0\0.", 7); /* of one byte, as bytes are counted */
    buf_add(&pair.there, "\x81\x84\0\0\0\0last", 10);
    pair.server.room = 0;
    for (int i = 0; i < TURNS; i++)
        assert_true(websocket_work(pair.server.websocket));
    assert_in_range(websocket_queued(pair.server.websocket), 1, WAITING_MAX);
    assert_false(websocket_wants_turn(pair.server.websocket));
    assert_int_equal(websocket_events(pair.server.websocket, true), POLLOUT);
    pair.server.room = PONG_BYTES + 1; /* a whole one and a part */
    assert_true(websocket_work(pair.server.websocket));
    assert_int_equal(websocket_events(pair.server.websocket, true), POLLOUT);
    pair.server.room = SIZE_MAX;
    do {
        assert_true(websocket_work(pair.server.websocket));
        assert_in_range(websocket_queued(pair.server.websocket), 0, WAITING_MAX);
    } while (websocket_wants_turn(pair.server.websocket));
    assert_int_equal(pair.there.length, 0);
    assert_int_equal(pair.back.length, PINGS * PONG_BYTES);
    assert_string_equal(buf_cstr(&pair.server.texts), "last");
    assert_int_equal(websocket_events(pair.server.websocket, true), POLLIN);
    assert_int_equal(websocket_events(pair.server.websocket, false), 0);
    pair_close(&pair);
}

/* However much comes, a turn ends; and what waits to be read by a slow client is no reason not to
 * listen to it. */
static void test_much(void **state)
{
    (void)state;
    enum { MESSAGES = 100000, MESSAGE_BYTES = 7, TURN_MAX = 300 << 10 };
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < MESSAGES; i++)
        buf_add(&pair.there, "\x82\x81\0\0\0\0.", MESSAGE_BYTES);
    pair.server.room = 0;
    for (int i = 0; i < MESSAGES / 100; i++)
        websocket_send(pair.server.websocket, false, TEXT("line"));
    do {
        const size_t before = pair.there.length;
        assert_true(websocket_work(pair.server.websocket));
        assert_in_range(before - pair.there.length, 0, TURN_MAX);
        assert_int_equal(websocket_events(pair.server.websocket, true), POLLIN | POLLOUT);
    } while (websocket_wants_turn(pair.server.websocket));
    assert_int_equal(pair.server.bytes.length, MESSAGES);
    pair_close(&pair);
}

/* Pings behind our close are not answered: they do not count as if they were. */
static void test_pings_after_close(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    websocket_close(pair.server.websocket, WEBSOCKET_CLOSE_NORMAL, "");
    assert_true(websocket_work(pair.server.websocket));
    for (int i = 0; i < 1000; i++)
        buf_add(&pair.there, "\x89\x80\0\0\0\0", 6);
    do
        assert_true(websocket_work(pair.server.websocket));
    while (websocket_wants_turn(pair.server.websocket));
    assert_int_equal(pair.there.length, 0);
    assert_false(websocket_is_behind(pair.server.websocket));
    buf_add(&pair.there, "\x88\x80\0\0\0\0", 6);
    assert_false(websocket_work(pair.server.websocket));
    pair_close(&pair);
}

static void test_noise(void **state)
{
    (void)state;
    static const struct {
        const char *what, *bytes;
        size_t length;
    } ALL[] = {
        {"reserved bits", "\xf1\x80\0\0\0\0", 6},
        {"no mask", "\x81\x02hi", 4},
        {"an unknown opcode", "\x83\x80\0\0\0\0", 6},
        {"text that is no UTF-8", "\x81\x82\0\0\0\0\xff\xfe", 8},
        {"a message beyond the limit", "\x82\xff\0\0\0\1\0\0\0\0\0\0\0\0", 14},
        {"a control frame of 126 bytes", "\x89\xfe\0\x7e\0\0\0\0", 8},
    };
    for (size_t i = 0; i < COUNT_OF(ALL); i++) {
        struct pair pair;
        pair_open(&pair);
        buf_add(&pair.there, ALL[i].bytes, ALL[i].length);
        bool goes_on = websocket_work(pair.server.websocket);
        pair.server.is_cut = true;
        if (goes_on && websocket_work(pair.server.websocket))
            fail_msg("%s is borne", ALL[i].what);
        assert_int_equal(pair.server.texts.length + pair.server.bytes.length, 0);
        pair_close(&pair);
    }
}

static void test_cut(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair.client.is_cut = true;
    assert_false(websocket_work(pair.client.websocket));
    assert_int_equal(websocket_close_code(pair.client.websocket), WEBSOCKET_CLOSE_ABNORMAL);
    assert_false(websocket_work(pair.client.websocket));
    pair_close(&pair);
}

/* The example of RFC 6455, 1.3. */
static void test_accept(void **state)
{
    (void)state;
    char accept[WEBSOCKET_ACCEPT_SIZE], key[WEBSOCKET_KEY_SIZE], other[WEBSOCKET_KEY_SIZE];
    websocket_accept(TEXT("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    websocket_key(key);
    websocket_key(other);
    assert_int_equal(strlen(key), WEBSOCKET_KEY_SIZE - 1);
    assert_string_not_equal(key, other);
}

/* The key of RFC 6455, 1.3, and its answer. */
static void test_handshake(void **state)
{
    static const char KEY[] = "dGhlIHNhbXBsZSBub25jZQ==";
    static const struct {
        const char *head;
        int64_t status;
        bool is_open;
    } CASES[] = {
        {"HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
         101, true},
        {"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: another", 101, false},
        {"HTTP/1.1 200 OK\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 200, false},
        {"HTTP/1.1 403 Forbidden", 403, false},
        {"HTTP/1.1", 0, false},
        {"", 0, false},
    };
    cleanup_buf struct buf request = BUF_INIT;
    (void)state;
    websocket_ask(&request, KEY, "skep.exec.v1");
    assert_non_null(strstr(buf_cstr(&request), "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
    assert_non_null(strstr(buf_cstr(&request), "Sec-WebSocket-Protocol: skep.exec.v1\r\n"));
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const struct websocket_answer answer = websocket_answer(text_of(CASES[i].head), KEY);
        assert_int_equal(answer.status, CASES[i].status);
        assert_int_equal(answer.is_open, CASES[i].is_open);
    }
    assert_true(text_is(websocket_header(TEXT("A\r\nb: c d \r\nb: e"), "B"), "c d"));
    assert_null(websocket_header(TEXT("A\r\nb: c"), "a").at);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_messages),  cmocka_unit_test(test_close),
    cmocka_unit_test(test_slow),      cmocka_unit_test(test_noise),
    cmocka_unit_test(test_cut),       cmocka_unit_test(test_accept),
    cmocka_unit_test(test_handshake), cmocka_unit_test(test_pings),
    cmocka_unit_test(test_much),      cmocka_unit_test(test_pings_after_close),
};
UNIT_FILE(tests, NULL, NULL);
