#include "engine/kubernetes/upgrade.h"

#include <poll.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/object.h"
#include "kube/access.h"
#include "sys/clock.h"
#include "sys/websocket.h"

enum {
    HEAD_MAX = 16 << 10,
    BODY_MAX = 64 << 10,
    STATUS_UNAUTHORIZED = 401,
    STATUS_TOO_MANY = 429,
};

struct kube_upgrade {
    CURL *easy;
    curl_socket_t fd;
    struct buf early; /* came behind the answer's head */
    size_t taken;
    int64_t until_ms;
};

void kube_upgrade_close(struct kube_upgrade *upgrade)
{
    if (!upgrade)
        return;
    curl_easy_cleanup(upgrade->easy);
    buf_release(&upgrade->early);
    mem_free(upgrade);
}

int kube_upgrade_fd(const struct kube_upgrade *upgrade)
{
    return upgrade->fd;
}

ssize_t kube_upgrade_read(struct kube_upgrade *upgrade, void *bytes, size_t size)
{
    const size_t left = upgrade->early.length - upgrade->taken;
    size_t length = 0;
    if (left > 0) {
        length = left < size ? left : size;
        memcpy(bytes, upgrade->early.at + upgrade->taken, length);
        upgrade->taken += length;
        return (ssize_t)length;
    }
    CURLcode code = curl_easy_recv(upgrade->easy, bytes, size, &length);
    if (code == CURLE_AGAIN)
        return WEBSOCKET_LATER;
    return code == CURLE_OK && length > 0 ? (ssize_t)length : WEBSOCKET_BROKEN;
}

ssize_t kube_upgrade_write(struct kube_upgrade *upgrade, const void *bytes, size_t size)
{
    size_t length = 0;
    CURLcode code = curl_easy_send(upgrade->easy, bytes, size, &length);
    if (code == CURLE_AGAIN || (code == CURLE_OK && length == 0))
        return WEBSOCKET_LATER;
    return code == CURLE_OK ? (ssize_t)length : WEBSOCKET_BROKEN;
}

/* False: the time is over. */
static bool wait_for(const struct kube_upgrade *upgrade, short events)
{
    const int64_t left = upgrade->until_ms - clock_monotonic_ms();
    struct pollfd ready = {.fd = upgrade->fd, .events = events};
    return left > 0 && poll(&ready, 1, (int)left) >= 0;
}

/* --- the request --- */

static char *part_of(CURL *easy, CURLUPart part)
{
    char *url = NULL, *value = NULL;
    CURLU *parsed = curl_url();
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
    if (parsed && url && curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK)
        curl_url_get(parsed, part, &value, 0);
    curl_url_cleanup(parsed);
    return value;
}

static void request_write(CURL *easy, const char *protocol, const char *key,
                          const struct buf *header, struct buf *out)
{
    char *host = part_of(easy, CURLUPART_HOST), *port = part_of(easy, CURLUPART_PORT);
    char *path = part_of(easy, CURLUPART_PATH), *query = part_of(easy, CURLUPART_QUERY);
    buf_format(out, "GET %s?%s HTTP/1.1\r\nHost: %s%s%s\r\n", path ? path : "/", query ? query : "",
               host ? host : "", port ? ":" : "", port ? port : "");
    websocket_ask(out, key, protocol);
    if (header->length > 0)
        buf_format(out, "%.*s\r\n", (int)header->length, header->at);
    buf_string(out, "\r\n");
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(query);
}

static bool request_send(struct kube_upgrade *upgrade, struct text bytes)
{
    while (bytes.length > 0) {
        const ssize_t sent = kube_upgrade_write(upgrade, bytes.at, bytes.length);
        if (sent == WEBSOCKET_BROKEN || (sent == WEBSOCKET_LATER && !wait_for(upgrade, POLLOUT)))
            return false;
        if (sent > 0)
            bytes = (struct text){bytes.at + sent, bytes.length - (size_t)sent};
    }
    return true;
}

/* --- the answer --- */

/* One piece more behind `early`. False: there is none. */
static bool more_read(struct kube_upgrade *upgrade)
{
    char part[4096];
    for (;;) {
        size_t length = 0;
        CURLcode code = curl_easy_recv(upgrade->easy, part, sizeof part, &length);
        if (code == CURLE_OK && length > 0) {
            buf_add(&upgrade->early, part, length);
            return true;
        }
        if (code != CURLE_AGAIN || !wait_for(upgrade, POLLIN))
            return false;
    }
}

/* What it says instead. */
static int refusal(struct kube_upgrade *upgrade, struct text head, int64_t status, struct err *err)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    int64_t length = 0;
    const size_t begin = head.length + 4;
    text_to_int64(websocket_header(head, "Content-Length"), &length);
    if (length > BODY_MAX)
        length = BODY_MAX;
    while ((int64_t)(upgrade->early.length - begin) < length && more_read(upgrade))
        continue;
    const struct text body = {upgrade->early.at + begin, upgrade->early.length - begin};
    const char *message = object_string(doc_parse(body, DOC_JSON, &arena, &problems), "message");
    const int code = status == 404                    ? ERR_NOT_FOUND
                     : status == 400 || status == 409 ? ERR_CONFLICT
                                                      : ERR_UNAVAILABLE;
    if (message[0])
        return err_fail(err, code, "", "%.200s", message);
    return err_fail(err, code, "", "the API server answers %lld instead of WebSocket",
                    (long long)status);
}

/* What it says of when it may be asked again is for all that ask it. */
static void pause_take(struct kube_client *client, struct text head, int64_t status)
{
    int64_t seconds = 0;
    text_to_int64(websocket_header(head, "Retry-After"), &seconds);
    kube_client_quiet(client, status, seconds);
}

/* *status: of an answer that is none to this. */
static int answer_take(struct kube_upgrade *upgrade, struct kube_client *client, const char *key,
                       int64_t *status, struct err *err)
{
    const char *end = NULL;
    while (!(end = strstr(buf_cstr(&upgrade->early), "\r\n\r\n")))
        if (upgrade->early.length > HEAD_MAX || !more_read(upgrade))
            return err_fail(err, ERR_UNAVAILABLE, "", "the API server does not answer");
    const struct text head = {upgrade->early.at, (size_t)(end - upgrade->early.at)};
    const struct websocket_answer answer = websocket_answer(head, key);
    if (!answer.is_open) {
        *status = answer.status;
        pause_take(client, head, answer.status);
        return refusal(upgrade, head, answer.status, err);
    }
    upgrade->taken = head.length + 4;
    return 0;
}

static int connected(struct kube_upgrade *upgrade, const struct kube_access *access,
                     struct err *err)
{
    upgrade->until_ms = clock_monotonic_ms() + UPGRADE_MS; /* a plugin may have taken some */
    curl_easy_setopt(upgrade->easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(upgrade->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    CURLcode answer = curl_easy_perform(upgrade->easy);
    if (answer == CURLE_OK)
        answer = curl_easy_getinfo(upgrade->easy, CURLINFO_ACTIVESOCKET, &upgrade->fd);
    if (answer == CURLE_OK)
        return 0;
    return err_fail(err, ERR_UNAVAILABLE, "", "%.100s: %.100s", access->server,
                    curl_easy_strerror(answer));
}

/* A short pause is waited for. */
static int pause_await(const struct kube_client *client, struct err *err)
{
    const int64_t left_ms = kube_client_quiet_ms(client);
    if (left_ms > UPGRADE_PAUSE_MS)
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "the API server wants to be left alone for %lld s",
                        (long long)(left_ms + 999) / 1000);
    const struct timespec until = clock_moment(clock_monotonic_ms() + left_ms);
    while (left_ms > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
    return 0;
}

/* One try; *status: what the server has answered instead, 0 nothing. That it does not take the
 * credential its keeper has been told then. */
static int upgrade_try(struct kube_client *client, const struct kube_access *access,
                       const char *path, const char *protocol, int64_t *status,
                       struct kube_upgrade **out, struct err *err)
{
    struct buf request = BUF_INIT, header = BUF_INIT;
    char key[WEBSOCKET_KEY_SIZE];
    uint64_t credential_number = 0;
    struct kube_upgrade *upgrade = mem_zero(1, sizeof *upgrade);
    *status = 0;
    int code = pause_await(client, err);
    if (code == 0)
        code = kube_client_easy(client, path, &header, &credential_number, &upgrade->easy, err);
    if (code == 0)
        code = connected(upgrade, access, err);
    websocket_key(key);
    if (code == 0) {
        request_write(upgrade->easy, protocol, key, &header, &request);
        code = request_send(upgrade, buf_as_text(&request))
                   ? answer_take(upgrade, client, key, status, err)
                   : err_fail(err, ERR_UNAVAILABLE, "", "%.100s breaks off", access->server);
    }
    if (*status == STATUS_UNAUTHORIZED)
        kube_client_refused(client, credential_number);
    struct buf *const secrets[] = {&request, &header};
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        if (secrets[i]->at)
            explicit_bzero(secrets[i]->at, secrets[i]->room);
        buf_release(secrets[i]);
    }
    if (code < 0)
        kube_upgrade_close(upgrade);
    else
        *out = upgrade;
    return code;
}

int kube_upgrade_open(struct kube_client *client, const struct kube_access *access,
                      const char *path, const char *protocol, struct kube_upgrade **out,
                      struct err *err)
{
    int64_t status;
    int code = upgrade_try(client, access, path, protocol, &status, out, err);
    /* once more, with a new credential; after the pause */
    if (code < 0 && (status == STATUS_UNAUTHORIZED || status == STATUS_TOO_MANY))
        code = upgrade_try(client, access, path, protocol, &status, out, err);
    return code;
}
