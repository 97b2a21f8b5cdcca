/* peer.h — a mail server, or a receiver of webhooks, on loopback: it takes what is sent to it, and
 * answers as a test tells it to. */
#ifndef TEST_PEER_H
#define TEST_PEER_H
#include "base/buf.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum peer_kind { PEER_SMTP, PEER_HTTP };

struct peer_tls;

struct peer_message {
    char recipient[300]; /* SMTP: as in RCPT TO */
    char login[200];     /* SMTP: what stood behind AUTH PLAIN; HTTP: the field Authorization */
    struct buf text;     /* the mail, or the body */
};

struct peer {
    enum peer_kind kind;
    struct peer_tls *tls; /* SMTP: it has STARTTLS; NULL: it has not */
    bool is_tls; /* from the start; both are set before the first connection, under the lock */
    int listener;
    unsigned port;
    char url[64]; /* smtp://127.0.0.1:PORT, or http://127.0.0.1:PORT/hook */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;
    bool is_ending;
    /* what it answers; 0: that it is fine */
    int greeting, mail, recipient, data, status;
    const char *only; /* NULL, or: those of a message are for one with this in its recipient, or in
                         its body, alone; the others are fine. Set before the first connection. */
    int connection;   /* the one that is served, -1: none */
    bool holds;       /* a message is taken, and no answer given */
    size_t holding;   /* such messages so far */
    struct peer_message *items[200]; /* that were taken, in order */
    size_t count, connections;
};

void peer_begin(struct peer *peer, enum peer_kind kind);
void peer_end(struct peer *peer);
/* Under the lock for all five answers. */
void peer_answers(struct peer *peer, int greeting, int mail, int recipient, int data, int status);
/* Wait until it has taken so many, and the last of these; NULL: not within a minute. */
const struct peer_message *peer_await(struct peer *peer, size_t count);
/* Wait until there have been so many connections. */
bool peer_await_connections(struct peer *peer, size_t count);

#endif
