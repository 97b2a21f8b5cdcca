/* client.h — asks the API server of one cluster: many requests at a time, on one thread.
 *
 * Edge. Every call ends in its `done`, on the client's thread, unless the client is stopped before.
 * What can pass is tried again, for as long as it lasts: no answer, 408, 429 and 5xx, and a quota
 * that has lost its own update (POST, 409 with the reason Conflict), after pauses that grow from
 * 0.8 s to 30 s; 401 as well, with a new credential (kube/login.h). While there is none, all calls
 * wait. A right that is missing is asked for again for CLIENT_RIGHT_TRIES times, which take about
 * 50 s: a server that has just begun has not read the roles yet. A call that is lasting is logged
 * then, and asked for again until the right is there. Retry-After holds back all calls of the
 * client, as one server asks for it. At most CLIENT_CALLS_MAX calls are under way; streams are not
 * counted. Those of bytes are opened CLIENT_OPENING_MAX at a time: thousands may be asked for at
 * once, and what else is asked must not wait for as many handshakes.
 *
 * A write may therefore have been carried out before: its caller must be able to hear that.
 *
 * What a write is answered says nothing of the server: a webhook that is away has all pods refused
 * with 500 while all else works. So a write that fails has the client ask the server how it does
 * (CLIENT_READY), until it does well; that, lists, watches and a credential that is refused are
 * what the watcher hears of. Whatever comes by a watch is good news.
 *
 * HTTP/1.1, because a stream that stalls must hold up nothing else.
 */
#ifndef ENGINE_KUBERNETES_CLIENT_H
#define ENGINE_KUBERNETES_CLIENT_H
#include "base/buf.h"
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct kube_access;
struct kube_client;
struct err;

enum {
    CLIENT_CALLS_MAX = 32,
    CLIENT_OPENING_MAX = 8,
    CLIENT_IDLE_MAX = 48, /* connections that are kept, each with about 100 KB: as many as calls,
                           * logs that are opened, watches and lists have at a time */
    CLIENT_RIGHT_TRIES = 6,
    CLIENT_VAIN_TRIES = 5, /* with the pauses between them about 30 s: then `vain` is told */
    CLIENT_BODY_MAX = 64 << 20,
    CLIENT_LINE_MAX = 4 << 20,
    CLIENT_SILENCE_S = 180,    /* a stream that brings nothing for so long is asked for anew */
    CLIENT_LOG_SILENCE_S = 25, /* the same, of bytes */
};

/* Everybody who is known may ask for it; 200: it can read and write what it keeps. */
#define CLIENT_READY "/readyz"

struct kube_answer {
    int status;            /* of HTTP; 0: none came, or the stream was broken */
    uint32_t tries;        /* before this one, that may have been carried out */
    bool is_right_missing; /* 403, of the server's authorizer */
    bool is_silent;   /* a stream of lines had been answered, and brought nothing for so long */
    int64_t lived_ms; /* a stream of lines: since it had been answered; 0: it had not */
    struct text body;
    const char *trouble; /* "" none; for people */
};

/* Its buffers become the client's. */
struct kube_call {
    const char *method;    /* NULL: nothing is asked, `done` is called when it is due */
    struct buf path, body; /* path: with its query; the body is JSON, and wiped */
    /* Not NULL, and no stream of bytes: called when the call is about to be sent, each time that it
     * is tried; it writes the body, if there is one. False: it is not wanted any more, and `done`
     * is not called. */
    bool (*write)(void *context, uint64_t key, struct buf *body);
    bool is_next;        /* it goes before the calls that wait */
    bool wants_refusals; /* a right that is missing is told at once: the caller asks again itself */
    bool is_lasting;     /* a right that is missing is asked for again for as long as it is */
    bool is_of_server;   /* what it is answered says how the server does; watches always do */
    void *context;
    uint64_t key; /* the caller's */
    /* NULL: the answer is gathered. Each line of a stream, of one that is longer the first
     * CLIENT_LINE_MAX bytes; false ends it with status 0. */
    bool (*line)(void *context, uint64_t key, struct text line);
    /* The same without regard to lines, for a log of skep-init, which says something every ten
     * seconds: the API server only hands it on, so that its failures say nothing of the API server.
     * It can be silent for ever, as a kubelet that has rotated its file twice while it was read may
     * go on looking at the old one. */
    bool (*bytes)(void *context, uint64_t key, struct text bytes);
    /* Bytes of a good answer as they come, of a server that the API server only stands before
     * (metrics.k8s.io): a call that is told at once whatever comes of it. That the other server is
     * away, knows nobody, or wants to be left alone says nothing of the API server. */
    bool (*part)(void *context, uint64_t key, struct text bytes);
    /* NULL: nobody wants to know. Once, when it has been answered 5xx for CLIENT_VAIN_TRIES times;
     * it is asked for again all the same. */
    void (*vain)(void *context, uint64_t key, const struct kube_answer *answer);
    void (*done)(void *context, uint64_t key, const struct kube_answer *answer);
};

/* How the server is doing, on the client's thread. */
struct kube_watcher {
    void *context;
    void (*failed)(void *context, const char *trouble, int64_t for_ms); /* not once for that long */
    void (*answered)(void *context);
};

/* `access` is borrowed until kube_client_free. ERR_INVALID: what it names cannot be used;
 * ERR_UNAVAILABLE: no thread. */
int kube_client_new(const struct kube_access *access, struct kube_watcher watcher,
                    struct kube_client **client, struct err *err);
/* Waits for its thread; calls that have not ended are dropped. */
void kube_client_free(struct kube_client *client);

/* Any thread. Not before `delay_ms`. */
void kube_client_send(struct kube_client *client, const struct kube_call *call, uint32_t delay_ms);

/* For what is no call: a handle that is set up to reach `path` as calls do, which the caller cleans
 * up, and the header that says who asks, to be wiped. Waits for an exec plugin. Any thread. ERR_*:
 * nobody says who asks. */
int kube_client_easy(const struct kube_client *client, const char *path, struct buf *header,
                     uint64_t *credential_number, CURL **easy, struct err *err);
/* How long the server wants to be left alone, by all that ask it. Any thread. */
int64_t kube_client_quiet_ms(const struct kube_client *client);
/* It has said so to what is no call, by this status and Retry-After; not positive: it has not. */
void kube_client_quiet(struct kube_client *client, int64_t status, int64_t seconds);
/* The server has answered 401 to it: the next handle has another credential, if there is one. */
void kube_client_refused(const struct kube_client *client, uint64_t credential_number);

#endif
