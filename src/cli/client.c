#include "cli/client.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/fingerprint.h"
#include "cli/print.h"
#include "sys/clock.h"
#include "sys/websocket.h"
#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <poll.h>
#include <string.h>

enum { CONNECT_TIMEOUT_MS = 5000, CALL_TIMEOUT_MS = 120000, REPLY_MAX = 256 << 20 };

static const char REFUSED[] = "connection refused";

struct client {
    CURL *curl;
    char *server, *token, *fingerprint; /* token, fingerprint: NULL: none */
    char *certificate, *key;            /* files; NULL: none, and in the same one */
    int64_t deadline_ms;
};

struct client *client_new(const char *server, const char *token, const char *fingerprint)
{
    struct client *client = mem_zero(1, sizeof *client);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    client->curl = curl_easy_init();
    assert(client->curl);
    client->server = mem_copy(server);
    size_t length = strlen(client->server);
    while (length && client->server[length - 1] == '/')
        client->server[--length] = '\0';
    client->token = token ? mem_copy(token) : NULL;
    client->fingerprint = fingerprint ? mem_copy(fingerprint) : NULL;
    return client;
}

void client_identify(struct client *client, const char *certificate, const char *key)
{
    mem_free(client->certificate);
    mem_free(client->key);
    client->certificate = certificate ? mem_copy(certificate) : NULL;
    client->key = certificate && key ? mem_copy(key) : NULL;
}

struct client *client_copy(const struct client *client)
{
    struct client *copy = client_new(client->server, client->token, client->fingerprint);
    client_identify(copy, client->certificate, client->key);
    return copy;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    curl_global_cleanup();
    mem_free(client->server);
    mem_free(client->token);
    mem_free(client->fingerprint);
    client_identify(client, NULL, NULL);
    mem_free(client);
}

const char *client_server(const struct client *client)
{
    return client->server;
}

void client_encode(struct buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-._~", c))
            buf_char(out, (char)c);
        else
            buf_format(out, "%%%02X", c);
    }
}

/* ---- one request ---- */

static size_t take_reply(char *bytes, size_t size, size_t count, void *context)
{
    struct buf *body = context;
    if (body->length + size * count > REPLY_MAX)
        return 0;
    buf_add(body, bytes, size * count);
    return size * count;
}

/* The path of the socket, or NULL. */
static const char *socket_of(const char *server)
{
    return strncmp(server, "unix:", 5) == 0 ? server + 5 : NULL;
}

static bool is_loopback(const char *server)
{
    return socket_of(server) || strstr(server, "//127.") || strstr(server, "//localhost") ||
           strstr(server, "//[::1]");
}

/* Headers of a request; the caller frees them. */
static struct curl_slist *request_headers(const struct client *client, const char *content_type,
                                          const char *idempotency_key)
{
    cleanup_buf struct buf line = BUF_INIT;
    struct curl_slist *headers = NULL;
    if (client->token) {
        buf_format(&line, "Authorization: Bearer %s", client->token);
        headers = curl_slist_append(headers, buf_cstr(&line));
    }
    if (content_type) {
        buf_clear(&line);
        buf_format(&line, "Content-Type: %s", content_type);
        headers = curl_slist_append(headers, buf_cstr(&line));
    }
    if (idempotency_key) {
        buf_clear(&line);
        buf_format(&line, "Idempotency-Key: %s", idempotency_key);
        headers = curl_slist_append(headers, buf_cstr(&line));
    }
    headers = curl_slist_append(headers, "Expect:");
    return headers;
}

static void request_setup(struct client *client, const char *method, const char *path)
{
    CURL *curl = client->curl;
    cleanup_buf struct buf url = BUF_INIT;
    const char *socket = socket_of(client->server);
    buf_format(&url, "%s%s", socket ? "http://localhost" : client->server, path);
    curl_easy_reset(curl);
    if (socket)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket);
    if (client->fingerprint) { /* which says more than who vouches for the certificate */
        curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, client->fingerprint);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (client->certificate) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, client->certificate);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, client->key ? client->key : client->certificate);
    }
    curl_easy_setopt(curl, CURLOPT_URL, buf_cstr(&url));
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "skep/" SKEP_VERSION);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (is_loopback(client->server))
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
}

static const char *problem_of(CURLcode code)
{
    switch ((int)code) {
    case CURLE_COULDNT_CONNECT:
        return REFUSED;
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return "its certificate has another fingerprint than at your login: somebody may stand "
               "between, or the server has a new key; log in again when its operator says so";
    case CURLE_SSL_CERTPROBLEM:
        return "your client certificate or its key cannot be used: both are PEM files, and belong "
               "together";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "nobody vouches for its certificate that this machine knows; skep login shows you "
               "its fingerprint";
    default:
        return curl_easy_strerror(code);
    }
}

/* The connection was there, and broke before the whole answer had come. */
static bool is_cut(CURLcode code)
{
    return code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_PARTIAL_FILE;
}

void client_ask(struct client *client, const struct client_request *request,
                struct client_reply *reply)
{
    CURL *curl = client->curl;
    memset(reply, 0, sizeof *reply);
    request_setup(client, request->method, request->path);
    struct curl_slist *headers =
        request_headers(client, request->content_type, request->idempotency_key);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CALL_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_reply);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply->body);
    if (request->content_type) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.length);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.at ? request->body.at : "");
    }
    CURLcode code = curl_easy_perform(curl);
    curl_off_t retry_s = 0;
    if (code == CURLE_OK) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
        curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_s);
    } else {
        snprintf(reply->problem, sizeof reply->problem, "%s", problem_of(code));
    }
    reply->retry_s = retry_s > RETRY_MAX_S ? RETRY_MAX_S : (int)retry_s;
    reply->is_cut = is_cut(code);
    curl_slist_free_all(headers);
}

void client_reply_release(struct client_reply *reply)
{
    buf_release(&reply->body);
}

static size_t take_nothing(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes, (void)context;
    return size * count;
}

/* The certificate that the server shows, as PEM, or NULL. The handle owns it. */
static const char *certificate_shown(CURL *curl)
{
    static const char label[] = "Cert:";
    struct curl_certinfo *chain = NULL;
    if (curl_easy_getinfo(curl, CURLINFO_CERTINFO, &chain) != CURLE_OK || !chain ||
        chain->num_of_certs < 1)
        return NULL;
    for (struct curl_slist *at = chain->certinfo[0]; at; at = at->next)
        if (strncmp(at->data, label, strlen(label)) == 0)
            return at->data + strlen(label);
    return NULL;
}

char *client_stranger(struct client *client)
{
    CURL *curl = client->curl;
    char *fingerprint = NULL;
    request_setup(client, "GET", "/healthz");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_nothing);
    if (curl_easy_perform(curl) != CURLE_PEER_FAILED_VERIFICATION)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
    if (curl_easy_perform(curl) == CURLE_OK)
        fingerprint = fingerprint_of(certificate_shown(curl));
    return fingerprint;
}

/* ---- what it means ---- */

int client_unreachable(const struct client *client, const char *problem)
{
    bool is_down = is_loopback(client->server) && strcmp(problem, REFUSED) == 0;
    return cli_fail(EXIT_UNREACHABLE, "cannot reach %s: %s%s", client->server, problem,
                    is_down ? " — is skepd running? Start it with: skepd" : "");
}

static void explain_problems(const json_t *problems, const char *file)
{
    size_t i;
    json_t *problem;
    json_array_foreach (problems, i, problem) {
        const char *path = field_text(problem, "path"), *hint = field_text(problem, "hint");
        print_error(
            "%s:%lld:%lld: %s%s%s%s%s%s%s\n", file, (long long)field_int(problem, "line"),
            (long long)field_int(problem, "column"), path ? path : "", path && path[0] ? ": " : "",
            json_is_true(json_object_get(problem, "warning")) ? "warning: " : "",
            field_text(problem, "message"), hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
    }
}

/* HiveD's paths answer errors as bare strings: "hivedscheduler: User Error: …". */
static const char *hived_message(const char *text)
{
    const char *found = strstr(text, " Error: ");
    return strncmp(text, "hivedscheduler: ", 16) == 0 && found ? found + 8 : text;
}

int client_explain(struct client *client, const struct client_reply *reply, const char *file)
{
    if (!reply->status)
        return client_unreachable(client, reply->problem);
    json_t *json = json_loadb(buf_cstr(&reply->body), reply->body.length, JSON_DECODE_ANY, NULL);
    const char *message = field_text(json, "message");
    if (json_is_string(json))
        message = hived_message(json_string_value(json));
    const json_t *problems = json_object_get(json, "problems");
    int code = EXIT_REFUSED;
    if (reply->status == 401) {
        code = cli_fail(EXIT_NOT_ALLOWED, "%s: %s — run: skep login %s", client->server,
                        message ? message : "not logged in", client->server);
    } else if (json_array_size(problems) && file) {
        explain_problems(problems, file);
    } else if (message) {
        code = cli_fail(reply->status == 403 ? EXIT_NOT_ALLOWED : EXIT_REFUSED, "%s", message);
    } else {
        code = cli_fail(EXIT_REFUSED, "%s answered with status %ld, which skep does not understand",
                        client->server, reply->status);
    }
    json_decref(json);
    return code;
}

int client_result(struct client *client, struct client_reply *reply, json_t **json)
{
    int code = 0;
    if (json)
        *json = NULL;
    if (reply->status < 200 || reply->status > 299) {
        code = client_explain(client, reply, NULL);
    } else if (json) {
        *json = json_loadb(buf_cstr(&reply->body), reply->body.length, 0, NULL);
        if (!*json)
            code = cli_fail(EXIT_REFUSED, "%s did not answer with JSON: is it a Skep server?",
                            client->server);
    }
    return code;
}

int client_call(struct client *client, const struct client_request *request, json_t **json)
{
    cleanup_client_reply struct client_reply reply;
    client_ask(client, request, &reply);
    return client_result(client, &reply, json);
}

int client_get(struct client *client, const char *path, json_t **json)
{
    return client_call(client, &(struct client_request){.method = "GET", .path = path}, json);
}

/* ---- streams ---- */

struct following {
    struct client *client;
    struct client_stream *stream;
    struct buf error; /* body of a reply that is not 2xx */
    bool is_stopped;
};

static size_t take_stream(char *bytes, size_t size, size_t count, void *context)
{
    struct following *following = context;
    long status = 0;
    curl_easy_getinfo(following->client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299) {
        buf_add(&following->error, bytes, size * count);
        return size * count;
    }
    if (following->stream->take(following->stream->context, bytes, size * count))
        return size * count;
    following->is_stopped = true;
    return 0;
}

/* "X-Skep-After: 12\r\n" → "12" */
static void header_keep(struct text line, const char *name, char value[24])
{
    struct text rest = line;
    struct text head = text_cut(&rest, ':');
    if (!rest.at || head.length != strlen(name) || strncasecmp(head.at, name, head.length) != 0)
        return;
    rest = text_trim(rest);
    snprintf(value, 24, "%.*s", TEXT_ARG(rest));
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct following *following = context;
    struct text line = {bytes, size * count};
    header_keep(line, "X-Skep-After", following->stream->after);
    header_keep(line, "X-Skep-Offset", following->stream->offset);
    header_keep(line, "X-Skep-Removed", following->stream->removed);
    header_keep(line, "X-Skep-Length", following->stream->length);
    header_keep(line, "X-Skep-Log", following->stream->log);
    return size * count;
}

void client_deadline(struct client *client, int64_t at_ms)
{
    client->deadline_ms = at_ms;
}

/* Is this 404 the one that the caller expects? */
static bool stream_is_absent(struct client_stream *stream, const struct client_reply *reply)
{
    if (!stream->absent_code || reply->status != 404)
        return false;
    json_t *json = json_loadb(buf_cstr(&reply->body), reply->body.length, 0, NULL);
    const char *code = field_text(json, "code"), *message = field_text(json, "message");
    stream->is_absent = code && strcmp(code, stream->absent_code) == 0;
    snprintf(stream->reason, sizeof stream->reason, "%s", message ? message : "");
    json_decref(json);
    return stream->is_absent;
}

static bool stream_is_busy(struct client_stream *stream, const struct client_reply *reply)
{
    if (!stream->bears_busy || reply->status != 429)
        return false;
    json_t *json = json_loadb(buf_cstr(&reply->body), reply->body.length, 0, NULL);
    const char *code = field_text(json, "code");
    stream->is_busy = code && strcmp(code, "BusyError") == 0; /* not the user's quota */
    json_decref(json);
    return stream->is_busy;
}

int client_follow(struct client *client, const char *path, struct client_stream *stream)
{
    struct following following = {.client = client, .stream = stream};
    stream->is_broken = false;
    stream->after[0] = stream->offset[0] = stream->removed[0] = '\0';
    stream->length[0] = stream->log[0] = stream->reason[0] = '\0';
    stream->is_absent = stream->is_busy = false;
    request_setup(client, "GET", path);
    struct curl_slist *headers = request_headers(client, NULL, NULL);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(client->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    if (client->deadline_ms) {
        int64_t left_ms = client->deadline_ms - clock_monotonic_ms();
        curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, left_ms > 0 ? (long)left_ms : 1L);
    }
    curl_easy_setopt(client->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(client->curl, CURLOPT_HEADERDATA, &following);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, take_stream);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &following);
    CURLcode code = curl_easy_perform(client->curl);
    curl_slist_free_all(headers);
    struct client_reply reply = {0};
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &reply.status);
    int exit_code = 0;
    if (following.is_stopped) {
        exit_code = 0;
    } else if (code == CURLE_COULDNT_CONNECT) {
        stream->is_broken = true;
        exit_code = EXIT_UNREACHABLE;
    } else if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH || code == CURLE_PEER_FAILED_VERIFICATION) {
        exit_code = client_unreachable(client, problem_of(code));
    } else if (code != CURLE_OK) {
        stream->is_broken = true;
    } else if (reply.status < 200 || reply.status > 299) {
        reply.body = following.error;
        if (!stream_is_absent(stream, &reply) && !stream_is_busy(stream, &reply))
            exit_code = client_explain(client, &reply, NULL);
    }
    buf_release(&following.error);
    return exit_code;
}

/* ---- other protocols ---- */

enum { HEAD_MAX = 16 << 10, UPGRADE_TIMEOUT_MS = 30000 };

struct client_socket {
    CURL *curl;
    curl_socket_t fd;
    struct buf early; /* came behind the reply's head */
    size_t early_taken;
};

int client_socket_fd(const struct client_socket *socket)
{
    return socket->fd;
}

void client_socket_close(struct client_socket *socket)
{
    if (!socket)
        return;
    curl_easy_cleanup(socket->curl);
    buf_release(&socket->early);
    mem_free(socket);
}

ssize_t client_socket_read(struct client_socket *socket, void *bytes, size_t size)
{
    size_t left = socket->early.length - socket->early_taken, length = 0;
    if (left) {
        size_t part = left < size ? left : size;
        memcpy(bytes, socket->early.at + socket->early_taken, part);
        socket->early_taken += part;
        return (ssize_t)part;
    }
    CURLcode code = curl_easy_recv(socket->curl, bytes, size, &length);
    if (code == CURLE_AGAIN)
        return WEBSOCKET_LATER;
    return code == CURLE_OK && length ? (ssize_t)length : WEBSOCKET_BROKEN;
}

ssize_t client_socket_write(struct client_socket *socket, const void *bytes, size_t size)
{
    size_t length = 0;
    CURLcode code = curl_easy_send(socket->curl, bytes, size, &length);
    if (code == CURLE_AGAIN || (code == CURLE_OK && !length))
        return WEBSOCKET_LATER;
    return code == CURLE_OK ? (ssize_t)length : WEBSOCKET_BROKEN;
}

/* Part of the server's address; "" when it has none. The caller frees it with curl_free. */
static char *url_part(const char *url, CURLUPart part)
{
    CURLU *parsed = curl_url();
    char *value = NULL;
    if (parsed && curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK)
        curl_url_get(parsed, part, &value, 0);
    curl_url_cleanup(parsed);
    return value;
}

static void upgrade_write(const struct client *client, const char *path, const char *protocol,
                          const char *key, struct buf *out)
{
    const char *url = socket_of(client->server) ? "http://localhost" : client->server;
    char *host = url_part(url, CURLUPART_HOST), *port = url_part(url, CURLUPART_PORT);
    char *base = url_part(url, CURLUPART_PATH);
    buf_format(out, "GET %s%s HTTP/1.1\r\nHost: %s%s%s\r\n",
               base && strcmp(base, "/") != 0 ? base : "", path, host ? host : "localhost",
               port ? ":" : "", port ? port : "");
    websocket_ask(out, key, protocol);
    if (client->token)
        buf_format(out, "Authorization: Bearer %s\r\n", client->token);
    buf_string(out, "User-Agent: skep/" SKEP_VERSION "\r\n\r\n");
    curl_free(host);
    curl_free(port);
    curl_free(base);
}

/* All of `bytes`, or the reply's head into `early`; false: it broke, or took too long. */
static bool upgrade_carry(struct client_socket *socket, struct text bytes)
{
    const int64_t until = clock_monotonic_ms() + UPGRADE_TIMEOUT_MS;
    while (bytes.length || !strstr(buf_cstr(&socket->early), "\r\n\r\n")) {
        char part[4096];
        struct pollfd ready = {.fd = socket->fd, .events = bytes.length ? POLLOUT : POLLIN};
        size_t length = 0;
        if (clock_monotonic_ms() > until || socket->early.length > HEAD_MAX)
            return false;
        CURLcode code = bytes.length ? curl_easy_send(socket->curl, bytes.at, bytes.length, &length)
                                     : curl_easy_recv(socket->curl, part, sizeof part, &length);
        if (code == CURLE_AGAIN) {
            poll(&ready, 1, 1000);
            continue;
        }
        if (code != CURLE_OK || !length)
            return false;
        if (bytes.length)
            bytes = (struct text){bytes.at + length, bytes.length - length};
        else
            buf_add(&socket->early, part, length);
    }
    return true;
}

/* Cuts the head off. The body of a refusal is read as far as it has come: it is small. */
static int upgrade_check(struct client *client, struct client_socket *socket, const char *key)
{
    const char *end = strstr(buf_cstr(&socket->early), "\r\n\r\n");
    struct text head = {socket->early.at, (size_t)(end - socket->early.at)};
    const struct websocket_answer answer = websocket_answer(head, key);
    socket->early_taken = head.length + 4;
    if (answer.is_open)
        return 0;
    cleanup_client_reply struct client_reply reply = {
        .status = answer.status == 101 ? 0 : (long)answer.status};
    int64_t length = 0;
    text_to_int64(websocket_header(head, "Content-Length"), &length);
    while ((int64_t)(socket->early.length - socket->early_taken) < length) {
        char part[4096];
        struct pollfd ready = {.fd = socket->fd, .events = POLLIN};
        ssize_t got = client_socket_read(socket, part, sizeof part);
        if (got > 0)
            buf_add(&reply.body, part, (size_t)got);
        if (got == WEBSOCKET_BROKEN || (int64_t)reply.body.length >= length ||
            (got < 0 && poll(&ready, 1, UPGRADE_TIMEOUT_MS) != 1))
            break;
    }
    if (!reply.body.length)
        buf_add(&reply.body, socket->early.at + socket->early_taken,
                socket->early.length - socket->early_taken);
    if (!reply.status)
        snprintf(reply.problem, sizeof reply.problem, "it does not speak WebSocket");
    return client_explain(client, &reply, NULL);
}

int client_socket_open(struct client *client, const char *path, const char *protocol,
                       struct client_socket **out)
{
    cleanup_buf struct buf request = BUF_INIT;
    char key[WEBSOCKET_KEY_SIZE];
    request_setup(client, "GET", path);
    curl_easy_setopt(client->curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(client->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    struct client_socket *socket = mem_zero(1, sizeof *socket);
    socket->curl = curl_easy_duphandle(client->curl);
    CURLcode answer = socket->curl ? curl_easy_perform(socket->curl) : CURLE_OUT_OF_MEMORY;
    int exit_code = EXIT_UNREACHABLE;
    if (answer == CURLE_OK)
        answer = curl_easy_getinfo(socket->curl, CURLINFO_ACTIVESOCKET, &socket->fd);
    websocket_key(key);
    upgrade_write(client, path, protocol, key, &request);
    if (answer == CURLE_SSL_PINNEDPUBKEYNOTMATCH || answer == CURLE_PEER_FAILED_VERIFICATION)
        exit_code = client_unreachable(client, problem_of(answer));
    else if (answer == CURLE_OK && upgrade_carry(socket, buf_as_text(&request)))
        exit_code = upgrade_check(client, socket, key);
    if (exit_code)
        client_socket_close(socket);
    else
        *out = socket;
    return exit_code;
}
