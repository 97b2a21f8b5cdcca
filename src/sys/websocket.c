#include "sys/websocket.h"
#include "base/buf.h"
#include "base/memory.h"
#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wslay/wslay.h>

enum {
    KEY_BYTES = 16,
    SHA1_BYTES = 20,
    CLOSE_REASON_MAX = 123, /* what is left of a control frame */
    PONGS_MAX = 64,         /* that wait to be written, before no more is read */
    TURN_BYTES = 256 << 10, /* read by one websocket_work */
};

struct websocket {
    struct websocket_ops ops;
    struct wslay_event_context *event;
    bool is_broken;
    size_t pongs;        /* that wait to be written; one more may */
    size_t turn_bytes;   /* read in this turn */
    bool is_left_off;    /* the turn ended before there was nothing to read any more */
    unsigned close_code; /* 0: not closed by us */
    char close_reason[CLOSE_REASON_MAX + 1];
    bool is_close_queued;
};

static ssize_t on_read(struct wslay_event_context *event, uint8_t *bytes, size_t size, int flags,
                       void *context)
{
    struct websocket *websocket = context;
    (void)flags;
    websocket->is_left_off = websocket->pongs > PONGS_MAX || websocket->turn_bytes >= TURN_BYTES;
    ssize_t length = websocket->is_left_off
                         ? WEBSOCKET_LATER
                         : websocket->ops.read(websocket->ops.context, bytes, size);
    if (length > 0) {
        websocket->turn_bytes += (size_t)length;
        return length;
    }
    wslay_event_set_error(event, length == WEBSOCKET_LATER ? WSLAY_ERR_WOULDBLOCK
                                                           : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static ssize_t on_write(struct wslay_event_context *event, const uint8_t *bytes, size_t size,
                        int flags, void *context)
{
    struct websocket *websocket = context;
    (void)flags;
    ssize_t length = websocket->ops.write(websocket->ops.context, bytes, size);
    if (length > 0)
        return length;
    wslay_event_set_error(event, length == WEBSOCKET_LATER ? WSLAY_ERR_WOULDBLOCK
                                                           : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static int on_mask(struct wslay_event_context *event, uint8_t *bytes, size_t size, void *context)
{
    (void)event, (void)context;
    return gnutls_rnd(GNUTLS_RND_NONCE, bytes, size) == 0 ? 0 : -1;
}

static void on_message(struct wslay_event_context *event,
                       const struct wslay_event_on_msg_recv_arg *message, void *context)
{
    struct websocket *websocket = context;
    (void)event;
    if (message->opcode == WSLAY_PING)
        websocket->pongs++;
    else if (!wslay_is_ctrl_frame(message->opcode))
        websocket->ops.message(websocket->ops.context, message->opcode == WSLAY_TEXT_FRAME,
                               (struct text){(const char *)message->msg, message->msg_length});
}

struct websocket *websocket_new(const struct websocket_ops *ops, bool is_client)
{
    static const struct wslay_event_callbacks callbacks = {.recv_callback = on_read,
                                                           .send_callback = on_write,
                                                           .genmask_callback = on_mask,
                                                           .on_msg_recv_callback = on_message};
    struct websocket *websocket = mem_zero(1, sizeof *websocket);
    websocket->ops = *ops;
    int code = is_client
                   ? wslay_event_context_client_init(&websocket->event, &callbacks, websocket)
                   : wslay_event_context_server_init(&websocket->event, &callbacks, websocket);
    if (code)
        abort(); /* there is no other reason */
    wslay_event_config_set_max_recv_msg_length(websocket->event, WEBSOCKET_MESSAGE_MAX);
    return websocket;
}

void websocket_free(struct websocket *websocket)
{
    if (!websocket)
        return;
    wslay_event_context_free(websocket->event);
    mem_free(websocket);
}

/* wslay sends a close before everything that waits, and nothing behind it: so it comes last. */
static void close_queue(struct websocket *websocket)
{
    if (!websocket->close_code || websocket->is_close_queued ||
        wslay_event_get_queued_msg_count(websocket->event))
        return;
    websocket->is_close_queued = true;
    if (wslay_event_queue_close(websocket->event, (uint16_t)websocket->close_code,
                                (const uint8_t *)websocket->close_reason,
                                strlen(websocket->close_reason)) == WSLAY_ERR_NOMEM)
        abort();
}

/* wslay sends pongs before messages, so that whatever goes out while some wait is one of them; but
 * for the message that is under way, and then one more waits than is counted. */
static bool send_some(struct websocket *websocket)
{
    struct wslay_event_context *event = websocket->event;
    const size_t before = wslay_event_get_queued_msg_count(event);
    if (!wslay_event_want_write(event)) {
        websocket->pongs = 0; /* after a close none is queued */
        return true;
    }
    const bool is_fine = wslay_event_send(event) == 0;
    const size_t left = wslay_event_get_queued_msg_count(event), sent = before - left;
    websocket->pongs = websocket->pongs > sent ? websocket->pongs - sent : 0;
    if (websocket->pongs > left)
        websocket->pongs = left;
    return is_fine;
}

static bool send_all(struct websocket *websocket)
{
    if (!send_some(websocket))
        return false;
    close_queue(websocket);
    return send_some(websocket);
}

bool websocket_work(struct websocket *websocket)
{
    struct wslay_event_context *event = websocket->event;
    if (websocket->is_broken)
        return false;
    websocket->turn_bytes = 0;
    websocket->is_left_off = false;
    if (wslay_event_want_read(event) && wslay_event_recv(event) != 0)
        websocket->is_broken = true;
    if (!websocket->is_broken && !send_all(websocket))
        websocket->is_broken = true;
    return !websocket->is_broken && (wslay_event_want_read(event) || wslay_event_want_write(event));
}

bool websocket_wants_turn(const struct websocket *websocket)
{
    return websocket->is_left_off && websocket->pongs <= PONGS_MAX;
}

short websocket_events(const struct websocket *websocket, bool reads)
{
    const bool can_read = reads && websocket->pongs <= PONGS_MAX;
    return (short)((can_read ? POLLIN : 0) | (websocket_is_behind(websocket) ? POLLOUT : 0));
}

bool websocket_is_behind(const struct websocket *websocket)
{
    return wslay_event_want_write(websocket->event);
}

size_t websocket_queued(const struct websocket *websocket)
{
    return wslay_event_get_queued_msg_length(websocket->event);
}

static void queue(struct websocket *websocket, uint8_t opcode, struct text message)
{
    const struct wslay_event_msg queued = {
        .opcode = opcode, .msg = (const uint8_t *)message.at, .msg_length = message.length};
    if (websocket->close_code)
        return;
    int code = wslay_event_queue_msg(websocket->event, &queued);
    if (code == WSLAY_ERR_NOMEM)
        abort();
    assert(code == 0 || code == WSLAY_ERR_NO_MORE_MSG);
}

void websocket_send(struct websocket *websocket, bool is_text, struct text message)
{
    queue(websocket, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, message);
}

void websocket_ping(struct websocket *websocket)
{
    queue(websocket, WSLAY_PING, TEXT(""));
}

void websocket_close(struct websocket *websocket, unsigned code, const char *reason)
{
    assert(code && strlen(reason) <= CLOSE_REASON_MAX);
    if (websocket->close_code)
        return;
    websocket->close_code = code;
    snprintf(websocket->close_reason, sizeof websocket->close_reason, "%s", reason);
}

unsigned websocket_close_code(const struct websocket *websocket)
{
    if (!wslay_event_get_close_received(websocket->event))
        return WEBSOCKET_CLOSE_ABNORMAL;
    return wslay_event_get_status_code_received(websocket->event);
}

static void base64_write(const unsigned char *bytes, unsigned length, char *out, size_t size)
{
    gnutls_datum_t encoded = {0};
    if (gnutls_base64_encode2(&(gnutls_datum_t){(unsigned char *)(uintptr_t)bytes, length},
                              &encoded) < 0)
        abort();
    snprintf(out, size, "%.*s", (int)encoded.size, (const char *)encoded.data);
    gnutls_free(encoded.data);
}

void websocket_key(char key[WEBSOCKET_KEY_SIZE])
{
    unsigned char bytes[KEY_BYTES] = {0};
    gnutls_rnd(GNUTLS_RND_NONCE, bytes,
               sizeof bytes); /* no secret: it tells a cache from a server */
    base64_write(bytes, sizeof bytes, key, WEBSOCKET_KEY_SIZE);
}

void websocket_accept(struct text key, char accept[WEBSOCKET_ACCEPT_SIZE])
{
    unsigned char digest[SHA1_BYTES] = {0};
    cleanup_buf struct buf text = BUF_INIT;
    buf_text(&text, key);
    buf_string(&text, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    gnutls_hash_fast(GNUTLS_DIG_SHA1, text.at, text.length, digest);
    base64_write(digest, sizeof digest, accept, WEBSOCKET_ACCEPT_SIZE);
}

void websocket_ask(struct buf *out, const char *key, const char *protocol)
{
    buf_format(out,
               "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n",
               key, protocol);
}

struct text websocket_header(struct text head, const char *name)
{
    while (head.length) {
        struct text line = text_cut(&head, '\n');
        struct text label = text_cut(&line, ':');
        if (line.at && label.length == strlen(name) &&
            strncasecmp(label.at, name, label.length) == 0)
            return text_trim(line);
    }
    return (struct text){NULL, 0};
}

struct websocket_answer websocket_answer(struct text head, const char *key)
{
    enum { SWITCHING = 101, STATUS_AT = 9, STATUS_DIGITS = 3 }; /* "HTTP/1.1 101 …" */
    struct websocket_answer answer = {0};
    char accept[WEBSOCKET_ACCEPT_SIZE];
    websocket_accept(text_of(key), accept);
    if (head.length >= STATUS_AT + STATUS_DIGITS)
        text_to_int64((struct text){head.at + STATUS_AT, STATUS_DIGITS}, &answer.status);
    answer.is_open = answer.status == SWITCHING &&
                     text_is(websocket_header(head, "Sec-WebSocket-Accept"), accept);
    return answer;
}
