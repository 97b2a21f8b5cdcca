#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "played_node.h"
#include "sys/websocket.h"

static ssize_t on_read(void *context, void *bytes, size_t size)
{
    const ssize_t got = recv(((struct node *)context)->fd, bytes, size, MSG_DONTWAIT);
    return got > 0 ? got : got < 0 && errno == EAGAIN ? WEBSOCKET_LATER : WEBSOCKET_BROKEN;
}

static ssize_t on_write(void *context, const void *bytes, size_t size)
{
    const ssize_t sent =
        send(((struct node *)context)->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? sent : sent < 0 && errno == EAGAIN ? WEBSOCKET_LATER : WEBSOCKET_BROKEN;
}

static void on_message(void *context, bool is_text, struct text message)
{
    assert_true(!is_text && message.length > 1);
    if (message.at[0] == 0)
        buf_add(&((struct node *)context)->bytes, message.at + 1, message.length - 1);
}

void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

void node_answer(const struct played *server, const char *line, const char *protocol,
                 struct node *node)
{
    const struct websocket_ops ops = {node, on_read, on_write, on_message};
    char request[PLAYED_REQUEST_MAX], accept[WEBSOCKET_ACCEPT_SIZE], answer[256];
    *node = (struct node){.bytes = BUF_INIT};
    node->fd = played_take(server, "\r\n\r\n", request);
    if (strncmp(request, line, strlen(line)) != 0)
        fail_msg("asked: %s", request);
    assert_true(text_is(websocket_header(text_of(request), "Sec-WebSocket-Protocol"), protocol));
    websocket_accept(websocket_header(text_of(request), "Sec-WebSocket-Key"), accept);
    snprintf(answer, sizeof answer,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n",
             protocol, accept);
    say(node->fd, answer);
    node->websocket = websocket_new(&ops, false);
}

void node_close(struct node *node)
{
    websocket_free(node->websocket);
    close(node->fd);
    buf_release(&node->bytes);
}

void node_poll(const struct node *node)
{
    struct pollfd wait = {
        .fd = node->fd,
        .events = (short)(POLLIN | (websocket_is_behind(node->websocket) ? POLLOUT : 0))};
    assert_int_equal(poll(&wait, 1, PLAYED_LIMIT_S * 1000), 1);
}

void node_hear(struct node *node, size_t length)
{
    while (websocket_work(node->websocket) && node->bytes.length < length)
        node_poll(node);
    assert_int_equal(node->bytes.length, length);
}

void node_hear_all(struct node *node)
{
    while (websocket_work(node->websocket))
        node_poll(node);
}

void node_say(struct node *node, const char *bytes, size_t length)
{
    websocket_send(node->websocket, false, (struct text){bytes, length});
    bool is_open = websocket_work(node->websocket);
    while (is_open && websocket_is_behind(node->websocket)) {
        node_poll(node);
        is_open = websocket_work(node->websocket);
    }
    assert_true(is_open);
}

char flood_byte(size_t at)
{
    return (char)(at * 31 >> 8 ^ at);
}

size_t node_flood(struct node *node, char channel, size_t said, size_t all)
{
    char message[1 + FLOOD_PART] = {channel};
    if (said < all && !websocket_is_behind(node->websocket)) {
        for (size_t i = 0; i < FLOOD_PART; i++)
            message[1 + i] = flood_byte(said + i);
        said += FLOOD_PART;
        websocket_send(node->websocket, false, (struct text){message, sizeof message});
    }
    assert_true(websocket_work(node->websocket));
    return said;
}

size_t flood_take(int fd, size_t heard)
{
    char bytes[FLOOD_PART];
    const ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    assert_true(got > 0 || (got < 0 && errno == EAGAIN));
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] != flood_byte(heard + (size_t)i))
            fail_msg("another byte than was sent, at %zu", heard + (size_t)i);
    return heard + (got > 0 ? (size_t)got : 0);
}
