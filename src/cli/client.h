/* client.h — the command line's side of HTTP, over libcurl.
 *
 * A failure is told to the user in one sentence that says what to do, by the function that met it;
 * what comes back is an exit code.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H
#include "base/buf.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;

/* `server`: "http://HOST:PORT", "https://HOST:PORT" or "unix:/PATH". `token` may be NULL: not
 * logged in. `fingerprint` of the server's public key, "sha256//BASE64" (NULL: who vouches for its
 * certificate must be known to this machine). */
struct client *client_new(const char *server, const char *token, const char *fingerprint);
/* Show this certificate (PEM files; `key` NULL: it is in the same file) to servers that ask for
 * one; `certificate` NULL: none. */
void client_identify(struct client *client, const char *certificate, const char *key);
/* Another one for the same server and token, for another thread. */
struct client *client_copy(const struct client *client);
void client_free(struct client *client);
const char *client_server(const struct client *client);

/* Does the server show a certificate for which nobody vouches that this machine knows? Then its
 * fingerprint (free it), else NULL: all is well, or there is no server. */
char *client_stranger(struct client *client);

struct client_request {
    const char *method;       /* "GET" */
    const char *path;         /* "/api/v2/jobs" */
    const char *content_type; /* NULL: no body */
    struct text body;
    const char *idempotency_key; /* NULL: none */
};

struct client_reply {
    long status; /* 0: no server */
    struct buf body;
    char problem[512]; /* status 0: why */
    bool is_cut;       /* status 0: there was a server, which may have taken the request */
    int retry_s;       /* what Retry-After said, 0: nothing; RETRY_MAX_S at most */
};
enum { RETRY_MAX_S = 86400 };

/* One request, without a word to the user. */
void client_ask(struct client *client, const struct client_request *request,
                struct client_reply *reply);
void client_reply_release(struct client_reply *reply);
#define cleanup_client_reply __attribute__((cleanup(client_reply_release)))

/* A failure (no server, 4xx, 5xx) is told to the user and becomes an exit code. The JSON of the
 * body is given when `json` is not NULL (free with json_decref). */
int client_result(struct client *client, struct client_reply *reply, json_t **json);
/* client_ask, and this. */
int client_call(struct client *client, const struct client_request *request, json_t **json);
int client_get(struct client *client, const char *path, json_t **json);

/* Tell the user what a reply that is not 2xx means. `file` names a job file in its problems. */
int client_explain(struct client *client, const struct client_reply *reply, const char *file);

/* Tell the user that there is no server. */
int client_unreachable(const struct client *client, const char *problem);

/* A body as it comes. `take` returns false to stop. When `is_broken` is set the stream ended before
 * its time (the server restarts): the caller may go on from where it was. */
struct client_stream {
    bool (*take)(void *context, const char *bytes, size_t length);
    void *context;
    bool is_broken;
    /* what the reply's X-Skep-After, X-Skep-Offset, X-Skep-Removed, X-Skep-Length and X-Skep-Log
     * said, or "" */
    char after[24], offset[24], removed[24], length[24], log[24];
    /* The code of a 404 that is no failure ("NoTaskLogError"), or NULL: nothing is told then,
     * is_absent is set, and `reason` is the server's. */
    const char *absent_code;
    bool is_absent;
    char reason[256];
    /* A 429 for want of a place (BusyError) is no failure for who `bears_busy`: nothing is told
     * then, and is_busy is set. */
    bool bears_busy, is_busy;
};
/* Streams are cut (is_broken) at this Unix time in ms; 0: never. */
void client_deadline(struct client *client, int64_t at_ms);
int client_follow(struct client *client, const char *path, struct client_stream *stream);

/* A connection that has become a WebSocket; its bytes go as struct websocket_ops wants them. */
struct client_socket;
/* EXIT_UNREACHABLE: it cannot be had now (nothing is told); another code after a message. */
int client_socket_open(struct client *client, const char *path, const char *protocol,
                       struct client_socket **socket);
void client_socket_close(struct client_socket *socket);   /* NULL is fine */
int client_socket_fd(const struct client_socket *socket); /* to be waited for */
ssize_t client_socket_read(struct client_socket *socket, void *bytes, size_t size);
ssize_t client_socket_write(struct client_socket *socket, const void *bytes, size_t size);

/* Append `text` with everything percent-coded that is not a letter, digit or one of -._~ */
void client_encode(struct buf *out, const char *text);

#endif
