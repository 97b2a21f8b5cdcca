#include "cli/loopback.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int loopback_open(struct loopback *loopback, const char *word, struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    assert(strlen(word) <= LOOPBACK_WORD_MAX);
    *loopback = (struct loopback){.fd = -1};
    for (int i = 0; i < LOOPBACK_CLIENTS; i++)
        loopback->clients[i].fd = -1;
    loopback->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (loopback->fd < 0 || bind(loopback->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(loopback->fd, SOMAXCONN) < 0 ||
        getsockname(loopback->fd, (struct sockaddr *)&address, &size) < 0) {
        int number = errno;
        loopback_close(loopback);
        return err_errno(err, number, "listen at a port of 127.0.0.1");
    }
    int length = snprintf(loopback->url, sizeof loopback->url, "http://127.0.0.1:%u/%s",
                          ntohs(address.sin_port), word);
    loopback->path = loopback->url + length - (int)strlen(word) - 1;
    assert(loopback->path[0] == '/');
    return 0;
}

static void client_close(struct loopback *loopback, unsigned i)
{
    if (loopback->clients[i].fd >= 0)
        close(loopback->clients[i].fd);
    loopback->clients[i].fd = -1;
    if (loopback->clients[i].request.at) /* the code stands in it */
        explicit_bzero(loopback->clients[i].request.at, loopback->clients[i].request.length);
    buf_release(&loopback->clients[i].request);
}

void loopback_close(struct loopback *loopback)
{
    for (unsigned i = 0; i < LOOPBACK_CLIENTS; i++)
        client_close(loopback, i);
    if (loopback->fd >= 0)
        close(loopback->fd);
    loopback->fd = -1;
}

/* The value of a key in "a=1&b=2"; free it. */
static char *value_of(struct text query, const char *name)
{
    while (query.at && query.length) {
        struct text value = text_cut(&query, '&');
        if (!text_is(text_cut(&value, '='), name) || !value.at)
            continue;
        if (!value.length) /* of which curl would measure the length itself */
            break;
        char *decoded = curl_easy_unescape(NULL, value.at, (int)value.length, NULL);
        char *copy = mem_copy(decoded ? decoded : "");
        curl_free(decoded);
        return copy;
    }
    return mem_copy("");
}

static void reply_send(int fd, const char *status, const char *sentence)
{
    cleanup_buf struct buf reply = BUF_INIT, page = BUF_INIT;
    buf_format(&page, "<!doctype html><title>skep</title><p>%s</p>\n", sentence);
    buf_format(&reply,
               "HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n"
               "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n"
               "\r\n%s",
               status, page.length, buf_cstr(&page));
    /* a socket's buffer holds it; a browser that has gone needs no page */
    if (send(fd, reply.at, reply.length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
    shutdown(fd, SHUT_WR);
}

/* Is it the answer that is waited for? */
static bool request_take(const struct loopback *loopback, unsigned i,
                         struct loopback_answer *answer)
{
    const int fd = loopback->clients[i].fd;
    struct text rest = buf_as_text(&loopback->clients[i].request);
    struct text method = text_cut(&rest, ' ');
    struct text query = text_cut(&rest, ' ');
    struct text path = text_cut(&query, '?');
    if (!text_is(method, "GET") || !text_is(path, loopback->path)) {
        reply_send(fd, "404 Not Found", "There is nothing here.");
        return false;
    }
    answer->code = value_of(query, "code");
    answer->problem = value_of(query, "errorMessage");
    if (!answer->code[0] && !answer->problem[0]) {
        mem_free(answer->code);
        mem_free(answer->problem);
        *answer = (struct loopback_answer){0};
        reply_send(fd, "400 Bad Request", "The login gave neither a code nor a reason.");
        return false;
    }
    reply_send(fd, "200 OK", "Go back to the terminal: skep says there how the login ended.");
    return true;
}

static void client_accept(struct loopback *loopback)
{
    int fd = accept4(loopback->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    unsigned i = 0;
    if (fd < 0)
        return;
    while (i < LOOPBACK_CLIENTS && loopback->clients[i].fd >= 0)
        i++;
    if (i == LOOPBACK_CLIENTS) {
        i = loopback->next++ % LOOPBACK_CLIENTS;
        client_close(loopback, i);
    }
    loopback->clients[i].fd = fd;
}

/* Read what has come; true: it was the answer. */
static bool client_read(struct loopback *loopback, unsigned i, struct loopback_answer *answer)
{
    char bytes[4096];
    struct buf *request = &loopback->clients[i].request;
    ssize_t count = recv(loopback->clients[i].fd, bytes, sizeof bytes, 0);
    bool is_answer = false;
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (count > 0 && request->length + (size_t)count <= LOOPBACK_REQUEST_MAX) {
        buf_add(request, bytes, (size_t)count);
        if (text_find(buf_as_text(request), TEXT("\r\n\r\n")) == SIZE_MAX)
            return false;
        is_answer = request_take(loopback, i, answer);
    }
    client_close(loopback, i);
    return is_answer;
}

int loopback_wait(struct loopback *loopback, int64_t wait_ms, struct loopback_answer *answer,
                  struct err *err)
{
    int64_t end_ms = clock_monotonic_ms() + wait_ms;
    *answer = (struct loopback_answer){0};
    assert(loopback->fd >= 0);
    for (;;) {
        struct pollfd fds[LOOPBACK_CLIENTS + 1];
        int64_t left_ms = end_ms - clock_monotonic_ms();
        for (int i = 0; i < LOOPBACK_CLIENTS; i++)
            fds[i] = (struct pollfd){.fd = loopback->clients[i].fd, .events = POLLIN};
        fds[LOOPBACK_CLIENTS] = (struct pollfd){.fd = loopback->fd, .events = POLLIN};
        if (left_ms <= 0)
            return err_fail(err, ERR_UNAVAILABLE, "", "no browser came back within %lld s",
                            (long long)(wait_ms / 1000));
        if (poll(fds, LOOPBACK_CLIENTS + 1, (int)left_ms) < 0 && errno != EINTR)
            return err_errno(err, errno, "wait for the browser");
        for (unsigned i = 0; i < LOOPBACK_CLIENTS; i++)
            if (fds[i].fd >= 0 && fds[i].revents && client_read(loopback, i, answer))
                return 0;
        if (fds[LOOPBACK_CLIENTS].revents)
            client_accept(loopback);
    }
}
