#include "peer.h"
#include "base/memory.h"
#include "peer_tls.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 4096, PATIENCE_S = 180 };

static bool line_read(FILE *stream, char line[LINE_SIZE])
{
    if (!fgets(line, LINE_SIZE, stream))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

static bool say(FILE *stream, const char *text)
{
    return fputs(text, stream) >= 0 && fputs("\r\n", stream) >= 0 && fflush(stream) == 0;
}

enum { HANGS_UP = -1 }; /* instead of an answer */

static bool answer(FILE *stream, int refusal, const char *fine)
{
    char text[64];
    if (refusal == HANGS_UP)
        return false;
    snprintf(text, sizeof text, "%d as the test says", refusal);
    return say(stream, refusal ? text : fine);
}

/* Under the lock. */
static void keep(struct peer *peer, struct peer_message *message)
{
    if (peer->count == sizeof peer->items / sizeof *peer->items)
        abort();
    peer->items[peer->count++] = message;
    pthread_cond_broadcast(&peer->news);
}

static void message_free(struct peer_message *message)
{
    if (!message)
        return;
    buf_release(&message->text);
    mem_free(message);
}

/* Waits until the peer ends when it holds. */
static bool is_held(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    const bool was_held = peer->holds;
    if (peer->holds) {
        peer->holding++;
        pthread_cond_broadcast(&peer->news);
    }
    while (peer->holds && !peer->is_ending)
        pthread_cond_wait(&peer->news, &peer->lock);
    pthread_mutex_unlock(&peer->lock);
    return was_held;
}

static void smtp_serve(struct peer *peer, FILE *plain, int fd)
{
    FILE *secret = peer->tls && peer->is_tls ? peer_tls_accept(peer->tls, fd) : NULL;
    if (peer->tls && peer->is_tls && !secret)
        return;
    FILE *stream = secret ? secret : plain;
    struct peer_message *message = mem_zero(1, sizeof *message);
    char line[LINE_SIZE];
    pthread_mutex_lock(&peer->lock);
    const int greeting = peer->greeting, mail = peer->mail, recipient = peer->recipient,
              data = peer->data;
    pthread_mutex_unlock(&peer->lock);
    bool goes_on = answer(stream, greeting, "220 peer"), is_for_others = false;
    while (goes_on && line_read(stream, line)) {
        if (strncasecmp(line, "EHLO", 4) == 0) {
            goes_on =
                say(stream, peer->tls && !secret ? "250-peer\r\n250-STARTTLS\r\n250 AUTH PLAIN"
                                                 : "250-peer\r\n250 AUTH PLAIN");
        } else if (strcasecmp(line, "STARTTLS") == 0 && peer->tls && !secret) {
            goes_on = say(stream, "220 go on") && (secret = peer_tls_accept(peer->tls, fd)) != NULL;
            stream = secret;
        } else if (strcasecmp(line, "AUTH PLAIN") == 0) {
            goes_on = say(stream, "334 ") && line_read(stream, line) && say(stream, "235 welcome");
            snprintf(message->login, sizeof message->login, "%.190s", line);
        } else if (strncasecmp(line, "MAIL", 4) == 0) {
            goes_on = answer(stream, mail, "250 fine");
        } else if (strncasecmp(line, "RCPT TO:", 8) == 0) {
            snprintf(message->recipient, sizeof message->recipient, "%.290s", line + 8);
            is_for_others = peer->only && !strstr(line, peer->only);
            goes_on = answer(stream, is_for_others ? 0 : recipient, "250 fine");
        } else if (strcasecmp(line, "DATA") == 0) {
            goes_on = say(stream, "354 go on");
            while (goes_on && line_read(stream, line) && strcmp(line, ".") != 0) {
                buf_string(&message->text, line[0] == '.' ? line + 1 : line);
                buf_string(&message->text, "\n");
            }
            if (is_held(peer))
                break;
            if (data == 0 || is_for_others) {
                pthread_mutex_lock(&peer->lock);
                keep(peer, message);
                pthread_mutex_unlock(&peer->lock);
                message = mem_zero(1, sizeof *message);
            }
            goes_on = answer(stream, is_for_others ? 0 : data, "250 taken");
        } else if (strcasecmp(line, "QUIT") == 0) {
            say(stream, "221 bye");
            break;
        } else {
            goes_on = say(stream, "502 what?");
        }
    }
    message_free(message);
    if (secret)
        fclose(secret);
}

static void http_serve(struct peer *peer, FILE *stream)
{
    struct peer_message *message = mem_zero(1, sizeof *message);
    char line[LINE_SIZE];
    size_t length = 0;
    bool is_whole = false;
    while (!is_whole && line_read(stream, line)) {
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            length = (size_t)strtoul(line + 15, NULL, 10);
        else if (strncasecmp(line, "Authorization: ", 15) == 0)
            snprintf(message->login, sizeof message->login, "%.190s", line + 15);
        is_whole = line[0] == '\0';
    }
    char *body = buf_room(&message->text, length);
    is_whole = is_whole && fread(body, 1, length, stream) == length;
    if (is_whole && !is_held(peer)) {
        buf_wrote(&message->text, length);
        pthread_mutex_lock(&peer->lock);
        const bool is_for_others = peer->only && !strstr(buf_cstr(&message->text), peer->only);
        const int status = peer->status && !is_for_others ? peer->status : 200;
        if (status < 300) {
            keep(peer, message);
            message = NULL;
        }
        pthread_mutex_unlock(&peer->lock);
        snprintf(line, sizeof line, "HTTP/1.1 %d x\r\nContent-Length: 0\r\nConnection: close\r\n",
                 status);
        say(stream, line);
    }
    message_free(message);
}

static void *peer_run(void *context)
{
    struct peer *peer = context;
    for (;;) {
        const int fd = accept(peer->listener, NULL, NULL);
        pthread_mutex_lock(&peer->lock);
        const bool is_ending = peer->is_ending;
        peer->connections++;
        peer->connection = fd;
        pthread_cond_broadcast(&peer->news);
        pthread_mutex_unlock(&peer->lock);
        FILE *stream = fd < 0 ? NULL : fdopen(fd, "r+");
        if (!is_ending && stream && setvbuf(stream, NULL, _IOLBF, 8192) == 0) {
            if (peer->kind == PEER_SMTP)
                smtp_serve(peer, stream, fd);
            else
                http_serve(peer, stream);
        }
        pthread_mutex_lock(&peer->lock);
        peer->connection = -1;
        pthread_mutex_unlock(&peer->lock);
        if (stream)
            fclose(stream);
        if (is_ending)
            return NULL;
    }
}

void peer_begin(struct peer *peer, enum peer_kind kind)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    *peer = (struct peer){.kind = kind, .connection = -1};
    signal(SIGPIPE, SIG_IGN); /* of who hangs up before the answer */
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->news, NULL);
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->listener < 0 || bind(peer->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(peer->listener, 16) < 0 ||
        getsockname(peer->listener, (struct sockaddr *)&at, &size) < 0 ||
        pthread_create(&peer->thread, NULL, peer_run, peer) != 0)
        abort();
    peer->port = ntohs(at.sin_port);
    snprintf(peer->url, sizeof peer->url,
             kind == PEER_SMTP ? "smtp://127.0.0.1:%u" : "http://127.0.0.1:%u/hook", peer->port);
}

void peer_end(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    peer->is_ending = true;
    pthread_cond_broadcast(&peer->news);
    if (peer->connection >= 0)
        shutdown(peer->connection, SHUT_RDWR);
    pthread_mutex_unlock(&peer->lock);
    shutdown(peer->listener, SHUT_RDWR); /* ends accept */
    pthread_join(peer->thread, NULL);
    close(peer->listener);
    for (size_t i = 0; i < peer->count; i++)
        message_free(peer->items[i]);
    pthread_cond_destroy(&peer->news);
    pthread_mutex_destroy(&peer->lock);
}

void peer_answers(struct peer *peer, int greeting, int mail, int recipient, int data, int status)
{
    pthread_mutex_lock(&peer->lock);
    peer->greeting = greeting;
    peer->mail = mail;
    peer->recipient = recipient;
    peer->data = data;
    peer->status = status;
    pthread_mutex_unlock(&peer->lock);
}

/* Under the lock. */
static bool news_await(struct peer *peer, const size_t *number, size_t wanted)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    while (*number < wanted)
        if (pthread_cond_timedwait(&peer->news, &peer->lock, &end) != 0)
            return false;
    return true;
}

const struct peer_message *peer_await(struct peer *peer, size_t count)
{
    pthread_mutex_lock(&peer->lock);
    const struct peer_message *last =
        news_await(peer, &peer->count, count) ? peer->items[count - 1] : NULL;
    pthread_mutex_unlock(&peer->lock);
    return last;
}

bool peer_await_connections(struct peer *peer, size_t count)
{
    pthread_mutex_lock(&peer->lock);
    const bool is_reached = news_await(peer, &peer->connections, count);
    pthread_mutex_unlock(&peer->lock);
    return is_reached;
}
