#include "engine/kubernetes/client.h"

#include <assert.h>
#include <curl/curl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/feed.h"
#include "engine/kubernetes/object.h"
#include "kube/access.h"
#include "kube/login.h"
#include "kube/route.h"
#include "sys/clock.h"
#include "sys/log.h"

enum {
    CALL_MS = 60 * 1000,
    RETRY_AFTER_MAX_S = 300,
    WAIT_MAX_MS = 60 * 1000,
    TRIM_CALLS = 500,
    REFUSAL_LOGGED = 500,         /* bytes of it */
    HOW_MS = 1000,                /* between two questions how the server does */
    VAIN_LOG_MS = 60 * 1000,      /* between two lines of the log about calls that only fail */
    LOG_BUFFER_BYTES = 4096,      /* of each log that is followed, of thousands; */
    LOG_REQUEST_BYTES = 16 << 10, /* as little as libcurl takes, which has 64 KiB else */
    STATUS_OK = 200,
    STATUS_UNAUTHORIZED = 401,
    STATUS_FORBIDDEN = 403,
    STATUS_TIMEOUT = 408,
    STATUS_CONFLICT = 409,
    STATUS_TOO_MANY = 429,
    STATUS_SERVER = 500,
};

struct transfer {
    struct transfer *next;
    struct kube_client *client;
    struct kube_call call;
    CURL *easy; /* NULL: it waits */
    struct curl_slist *headers;
    struct buf answer; /* of a stream: what is left of a line */
    int64_t due_ms;
    uint64_t number;              /* of those that are due at the same time the first comes first */
    uint32_t tries, tries_unsure; /* all; those that may have been carried out */
    uint32_t sends; /* of this try: libcurl sends again what a kept connection did not answer */
    int64_t answered_ms; /* of a stream: the head of a good answer came; 0: it did not */
    uint64_t credential; /* with which it is asked */
    bool is_cut;         /* its reader wants no more, or it was too long */
    bool is_opening;     /* a stream of bytes that has no connection yet */
    char failure[CURL_ERROR_SIZE];
};

struct transfer_queue {
    struct transfer *first, **last;
};

struct kube_client {
    const struct kube_access *access;
    struct kube_watcher watcher;
    pthread_t thread;
    CURLM *multi;
    pthread_mutex_t lock; /* of `inbox` and `sent` */
    struct transfer_queue inbox;
    uint64_t sent;
    atomic_bool is_ending;
    atomic_bool has_login; /* the plugin has ended */
    /* the thread's own */
    /* due, tens of thousands of them when a large job begins: nothing may look at all */
    struct transfer_queue timers;  /* nothing is asked */
    struct transfer_queue watches; /* streams of lines */
    struct transfer_queue ready;   /* calls */
    struct transfer_queue opens;   /* streams of bytes */
    struct {
        struct transfer **items;
        size_t count, room;
    } later; /* a heap: none is due before the one above it, (at - 1) / 2 */
    struct transfer *running;
    size_t calls, opening;
    size_t ended;                /* calls since memory was given back */
    atomic_llong quiet_until_ms; /* any thread's */
    int64_t failing_since_ms;
    bool is_asked_how;    /* CLIENT_READY is under way */
    int64_t asked_how_ms; /* it was asked for last then; 0: never */
    int64_t vain_said_ms; /* the log has told of a call that only fails then; 0: never */
    struct kube_route route;
    struct kube_login *login;
    int64_t login_ms; /* when it is worth to ask for a credential again; 0: there is one */
    uint64_t chance;
};

/* splitmix64: only to spread pauses. */
static uint64_t chance_next(struct kube_client *client)
{
    uint64_t z = client->chance += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* --- queues --- */

static void queue_init(struct transfer_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static void queue_put(struct transfer_queue *queue, struct transfer *transfer)
{
    transfer->next = NULL;
    *queue->last = transfer;
    queue->last = &transfer->next;
}

static void queue_put_first(struct transfer_queue *queue, struct transfer *transfer)
{
    transfer->next = queue->first;
    queue->first = transfer;
    if (!transfer->next)
        queue->last = &transfer->next;
}

static struct transfer *queue_take(struct transfer_queue *queue)
{
    struct transfer *transfer = queue->first;
    if (transfer)
        queue->first = transfer->next;
    if (!queue->first)
        queue->last = &queue->first;
    return transfer;
}

static bool is_before(const struct transfer *a, const struct transfer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->number < b->number;
}

/* Tens of thousands wait there when as many tasks have begun or ended at once. */
static void later_put(struct kube_client *client, struct transfer *transfer)
{
    size_t at = client->later.count;
    *ARRAY_ADD(&client->later) = transfer;
    struct transfer **items = client->later.items;
    for (; at > 0 && is_before(transfer, items[(at - 1) / 2]); at = (at - 1) / 2)
        items[at] = items[(at - 1) / 2];
    items[at] = transfer;
}

/* The first that is due at `now`; NULL: none is. */
static struct transfer *later_take(struct kube_client *client, int64_t now)
{
    struct transfer **items = client->later.items;
    if (client->later.count == 0 || items[0]->due_ms > now)
        return NULL;
    struct transfer *first = items[0], *moved = items[--client->later.count];
    size_t at = 0;
    for (size_t below = 1; below < client->later.count; below = 2 * at + 1) {
        if (below + 1 < client->later.count && is_before(items[below + 1], items[below]))
            below++;
        if (is_before(moved, items[below]))
            break;
        items[at] = items[below];
        at = below;
    }
    items[at] = moved;
    return first;
}

static void bytes_wipe(struct buf *buf)
{
    if (buf->at)
        explicit_bzero(buf->at, buf->room);
    buf_release(buf);
}

static void easy_end(struct transfer *transfer)
{
    if (transfer->easy) {
        curl_multi_remove_handle(transfer->client->multi, transfer->easy);
        curl_easy_cleanup(transfer->easy);
    }
    curl_slist_free_all(transfer->headers);
    transfer->easy = NULL;
    transfer->headers = NULL;
    buf_release(&transfer->answer);
}

static void transfer_free(struct transfer *transfer)
{
    easy_end(transfer);
    buf_release(&transfer->call.path);
    bytes_wipe(&transfer->call.body);
    mem_free(transfer);
}

/* --- one transfer --- */

static bool is_stream(const struct kube_call *call)
{
    return call->line || call->bytes;
}

static void good_tell(struct kube_client *client)
{
    client->failing_since_ms = 0;
    client->watcher.answered(client->watcher.context);
}

static bool line_tell(struct transfer *transfer)
{
    struct kube_client *client = transfer->client;
    const struct text line = buf_as_text(&transfer->answer);
    if (line.length > 0 && !transfer->call.line(transfer->call.context, transfer->call.key, line))
        return false;
    if (client->failing_since_ms > 0)
        good_tell(client);
    return true;
}

/* What is kept between two calls is the begin of a line. */
static bool lines_take(struct transfer *transfer, struct text bytes)
{
    struct buf *line = &transfer->answer;
    while (bytes.length > 0) {
        const char *newline = memchr(bytes.at, '\n', bytes.length);
        const size_t length = newline ? (size_t)(newline - bytes.at) : bytes.length;
        const size_t room = CLIENT_LINE_MAX - line->length, taken = length + (newline != NULL);
        buf_add(line, bytes.at, length < room ? length : room);
        bytes = (struct text){bytes.at + taken, bytes.length - taken};
        if (newline && !line_tell(transfer))
            return false;
        if (newline)
            buf_release(line);
    }
    return true;
}

static size_t bytes_take(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const size_t length = size * count;
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    const bool is_streamed = is_stream(&transfer->call) && status < 300;
    if (is_streamed && transfer->call.bytes) {
        transfer->is_cut = !transfer->call.bytes(transfer->call.context, transfer->call.key,
                                                 (struct text){bytes, length});
        kube_route_rest(transfer->easy);
        return transfer->is_cut ? 0 : length;
    }
    if (transfer->call.part && status < 300) {
        transfer->is_cut = !transfer->call.part(transfer->call.context, transfer->call.key,
                                                (struct text){bytes, length});
        return transfer->is_cut ? 0 : length;
    }
    if (is_streamed) {
        transfer->is_cut = !lines_take(transfer, (struct text){bytes, length});
        return transfer->is_cut ? 0 : length;
    }
    transfer->is_cut = transfer->answer.length + length > CLIENT_BODY_MAX;
    if (transfer->is_cut)
        return 0;
    buf_add(&transfer->answer, bytes, length);
    return length;
}

static void opened(struct transfer *transfer)
{
    transfer->client->opening -= transfer->is_opening;
    transfer->is_opening = false;
}

/* Its connection stands. The answer may be as late as the first line of the log. */
static int request_begins(void *context, char *to, char *from, int to_port, int from_port)
{
    struct transfer *transfer = context;
    (void)to, (void)from, (void)to_port, (void)from_port;
    transfer->sends++;
    opened(transfer);
    return CURL_PREREQFUNC_OK;
}

/* A stream ends minutes after its answer has come: that it has come is told where its headers end.
 */
static size_t header_take(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const size_t length = size * count;
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer->call.line && length > 0 && bytes[0] == '\r' && status >= 200 && status < 300) {
        transfer->answered_ms = clock_monotonic_ms();
        good_tell(transfer->client);
    }
    return length;
}

static void headers_set(struct transfer *transfer, struct kube_credential *credential)
{
    transfer->headers = curl_slist_append(NULL, "Accept: application/json");
    if (credential->header.length > 0)
        transfer->headers = curl_slist_append(transfer->headers, buf_cstr(&credential->header));
    if (transfer->call.body.length > 0)
        transfer->headers = curl_slist_append(transfer->headers, "Content-Type: application/json");
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
}

static void body_set(struct transfer *transfer)
{
    if (transfer->call.body.length == 0)
        return;
    curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, buf_cstr(&transfer->call.body));
    curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)transfer->call.body.length);
}

static void times_set(const struct transfer *transfer)
{
    if (!is_stream(&transfer->call)) {
        curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)CALL_MS);
        return;
    }
    if (transfer->call.bytes) {
        curl_easy_setopt(transfer->easy, CURLOPT_BUFFERSIZE, (long)LOG_BUFFER_BYTES);
        curl_easy_setopt(transfer->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)LOG_REQUEST_BYTES);
        curl_easy_setopt(transfer->easy, CURLOPT_SSL_SESSIONID_CACHE, 0L); /* it is its handle's */
    }
    const long silence_s = transfer->call.bytes ? CLIENT_LOG_SILENCE_S : CLIENT_SILENCE_S;
    curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_TIME, silence_s);
}

static void transfer_start(struct kube_client *client, struct transfer *transfer,
                           struct kube_credential *credential)
{
    CURL *easy = kube_route_easy(&client->route, credential, buf_cstr(&transfer->call.path));
    transfer->credential = credential->number;
    transfer->easy = easy;
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->failure);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, bytes_take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_take);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, request_begins);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    body_set(transfer);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, transfer->call.method);
    times_set(transfer);
    headers_set(transfer, credential);
    transfer->is_cut = false;
    transfer->sends = 0;
    transfer->answered_ms = 0;
    transfer->failure[0] = '\0';
    transfer->next = client->running;
    client->running = transfer;
    client->calls += !is_stream(&transfer->call);
    transfer->is_opening = transfer->call.bytes != NULL;
    client->opening += transfer->is_opening;
    curl_multi_add_handle(client->multi, easy);
}

/* --- ends --- */

static bool is_passing(int status)
{
    return status == 0 || status == STATUS_UNAUTHORIZED || status == STATUS_TIMEOUT ||
           status == STATUS_TOO_MANY || status >= STATUS_SERVER;
}

static void trouble_tell(struct kube_client *client, const char *trouble)
{
    if (client->failing_since_ms == 0)
        client->failing_since_ms = clock_monotonic_ms();
    client->watcher.failed(client->watcher.context, trouble,
                           clock_monotonic_ms() - client->failing_since_ms);
}

static void watcher_tell(struct kube_client *client, const struct kube_answer *answer)
{
    if (is_passing(answer->status))
        trouble_tell(client, answer->trouble);
    else
        good_tell(client);
}

/* How long the server wants to be left alone: up to a fifth more, by chance. */
static void quiet_set(struct kube_client *client, int64_t status, int64_t seconds, uint64_t chance)
{
    if ((status != STATUS_TOO_MANY && status < STATUS_SERVER) || seconds <= 0)
        return;
    const int64_t ms = 1000 * (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S);
    const long long until = clock_monotonic_ms() + ms + (int64_t)(chance % (uint64_t)(ms / 5));
    long long known = atomic_load(&client->quiet_until_ms);
    while (until > known && !atomic_compare_exchange_weak(&client->quiet_until_ms, &known, until))
        continue;
}

static void quiet_take(struct kube_client *client, CURL *easy, int status)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    quiet_set(client, status, seconds, chance_next(client));
}

/* It was refused before anything was done. */
static bool is_undone(int status)
{
    return status == STATUS_UNAUTHORIZED || status == STATUS_FORBIDDEN || status == STATUS_TOO_MANY;
}

/* A quota of the namespace has lost its own update to another one's, some times in a row: nothing
 * was made. What is there already is told with another reason. */
static bool is_quota_busy(const struct transfer *transfer, const struct kube_answer *answer)
{
    return answer->status == STATUS_CONFLICT && transfer->call.method &&
           strcmp(transfer->call.method, "POST") == 0 && object_is_conflict(answer->body);
}

static void again(struct kube_client *client, struct transfer *transfer, bool is_undone)
{
    easy_end(transfer);
    if (transfer->call.write) /* it is written again, if it is still wanted then */
        bytes_wipe(&transfer->call.body);
    transfer->tries++;
    transfer->tries_unsure += !is_undone;
    transfer->due_ms = clock_monotonic_ms() + feed_backoff_ms(transfer->tries, chance_next(client));
    later_put(client, transfer);
}

static void running_remove(struct kube_client *client, struct transfer *transfer)
{
    struct transfer **at = &client->running;
    while (*at != transfer)
        at = &(*at)->next;
    *at = transfer->next;
    client->calls -= !is_stream(&transfer->call);
    client->ended++;
    opened(transfer);
}

static bool is_passing_call(const struct transfer *transfer, const struct kube_answer *answer)
{
    if (is_stream(&transfer->call) || transfer->call.part || transfer->is_cut)
        return false;
    return is_passing(answer->status) || is_quota_busy(transfer, answer) ||
           (answer->is_right_missing && !transfer->call.wants_refusals &&
            (transfer->call.is_lasting || transfer->tries < CLIENT_RIGHT_TRIES));
}

static void how_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube_client *client = context;
    (void)key, (void)answer;
    client->is_asked_how = false;
}

/* Whether the server itself is in trouble; it is asked until it is not. */
static void how_ask(struct kube_client *client)
{
    struct kube_call call = {.method = "GET",
                             .context = client,
                             .is_next = true,
                             .is_of_server = true,
                             .wants_refusals = true,
                             .done = how_done};
    const int64_t now = clock_monotonic_ms();
    if (client->is_asked_how || (client->asked_how_ms > 0 && now < client->asked_how_ms + HOW_MS))
        return;
    client->is_asked_how = true;
    client->asked_how_ms = now;
    buf_string(&call.path, CLIENT_READY);
    kube_client_send(client, &call, 0);
}

/* A stream that ends after a long time has not failed. */
static bool says_nothing(const struct transfer *transfer, const struct kube_answer *answer)
{
    return transfer->call.bytes || answer->is_silent || answer->lived_ms >= FEED_LIVED_MS ||
           (transfer->is_cut && transfer->call.line);
}

/* What its answer says of the API server, and of who asks. */
static void server_judge(struct kube_client *client, struct transfer *transfer,
                         const struct kube_answer *answer)
{
    const bool is_of_server = transfer->call.is_of_server || transfer->call.line ||
                              !is_passing(answer->status) || answer->status == STATUS_UNAUTHORIZED;
    if (!says_nothing(transfer, answer) && is_of_server)
        watcher_tell(client, answer);
    else if (!is_of_server && !transfer->call.bytes)
        how_ask(client);
    quiet_take(client, transfer->easy, answer->status);
    if (answer->status == STATUS_UNAUTHORIZED)
        kube_login_refused(client->login, transfer->credential);
}

/* It is answered 5xx again and again: for those who wait for it, and for the operator. */
static void vain_tell(struct kube_client *client, struct transfer *transfer,
                      const struct kube_answer *answer)
{
    const int64_t now = clock_monotonic_ms();
    const struct kube_call *call = &transfer->call;
    if (call->vain)
        call->vain(call->context, call->key, answer);
    if (client->vain_said_ms > 0 && now < client->vain_said_ms + VAIN_LOG_MS)
        return;
    client->vain_said_ms = now;
    log_warning("engine", "kubernetes: %s %.200s is answered %d, and asked for again: %.*s",
                call->method, buf_cstr(&transfer->call.path), answer->status, REFUSAL_LOGGED,
                buf_cstr(&transfer->answer));
}

static void transfer_ended(struct kube_client *client, struct transfer *transfer, CURLcode code)
{
    long status = 0;
    char text[300] = "";
    transfer->tries_unsure += transfer->sends > 1;
    struct kube_answer answer = {.trouble = text, .tries = transfer->tries_unsure};
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    running_remove(client, transfer);
    if (code != CURLE_OK)
        snprintf(text, sizeof text, "%.100s: %.150s", client->access->server,
                 transfer->failure[0] ? transfer->failure : curl_easy_strerror(code));
    else if (is_passing((int)status))
        snprintf(text, sizeof text, "%.100s answers %ld", client->access->server, status);
    if (transfer->is_cut)
        snprintf(text, sizeof text, "%.100s: what it sends cannot be taken",
                 client->access->server);
    /* a reader that ends its stream has been answered */
    answer.status = code == CURLE_OK ? (int)status : 0;
    answer.body = buf_as_text(&transfer->answer);
    answer.is_right_missing =
        answer.status == STATUS_FORBIDDEN && object_is_right_missing(answer.body);
    /* it may be dead, or there was nothing to tell: a server sends bookmarks only of kinds of which
     * anything has changed since it was started */
    answer.is_silent =
        code == CURLE_OPERATION_TIMEDOUT && transfer->call.line && status == STATUS_OK;
    if (transfer->answered_ms > 0)
        answer.lived_ms = clock_monotonic_ms() - transfer->answered_ms;
    if (!transfer->call.part)
        server_judge(client, transfer, &answer);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        kube_login_distrusted(client->login);
    if (is_passing_call(transfer, &answer)) {
        if (answer.is_right_missing && transfer->tries == CLIENT_RIGHT_TRIES)
            log_error("engine", "kubernetes: %s %.200s is refused, and asked for again: %.*s",
                      transfer->call.method, buf_cstr(&transfer->call.path), REFUSAL_LOGGED,
                      buf_cstr(&transfer->answer));
        if (answer.status >= STATUS_SERVER && transfer->tries == CLIENT_VAIN_TRIES)
            vain_tell(client, transfer, &answer);
        again(client, transfer, is_undone(answer.status) || is_quota_busy(transfer, &answer));
        return;
    }
    transfer->call.done(transfer->call.context, transfer->call.key, &answer);
    transfer_free(transfer);
}

/* --- the thread --- */

static void due_put(struct kube_client *client, struct transfer *transfer)
{
    const struct kube_call *call = &transfer->call;
    if (call->is_next)
        queue_put_first(&client->ready, transfer);
    else
        queue_put(!call->method ? &client->timers
                  : call->line  ? &client->watches
                  : call->bytes ? &client->opens
                                : &client->ready,
                  transfer);
}

/* What is due has its place among all that is: the thread may have been away for long. */
static void inbox_take(struct kube_client *client)
{
    pthread_mutex_lock(&client->lock);
    struct transfer_queue inbox = client->inbox;
    const bool is_empty = !inbox.first;
    queue_init(&client->inbox);
    pthread_mutex_unlock(&client->lock);
    while (!is_empty && inbox.first) {
        struct transfer *transfer = inbox.first;
        inbox.first = transfer->next;
        later_put(client, transfer);
    }
}

static void due_take(struct kube_client *client)
{
    const int64_t now = clock_monotonic_ms();
    for (struct transfer *transfer; (transfer = later_take(client, now));)
        due_put(client, transfer);
}

/* Its body is written now, so that those that wait have none. */
static void wanted_start(struct kube_client *client, struct transfer *transfer,
                         struct kube_credential *credential)
{
    const struct kube_call *call = &transfer->call;
    if (!call->write || call->write(call->context, call->key, &transfer->call.body))
        transfer_start(client, transfer, credential);
    else
        transfer_free(transfer);
}

/* What is started now is asked with this. False: there is none yet, and all calls wait. */
static bool credential_take(struct kube_client *client, struct kube_credential *credential)
{
    uint32_t again_ms;
    struct err why = {0};
    if (client->login_ms > clock_monotonic_ms())
        return false;
    int code = kube_login_take(client->login, credential, &again_ms, &why);
    client->login_ms =
        code == 0 ? 0 : clock_monotonic_ms() + (code == ERR_BUSY ? WAIT_MAX_MS : again_ms);
    if (code < 0 && code != ERR_BUSY)
        trouble_tell(client, why.text);
    return code == 0;
}

static void timers_tell(struct kube_client *client)
{
    static const struct kube_answer due = {.trouble = ""};
    struct transfer *transfer;
    while ((transfer = queue_take(&client->timers))) {
        transfer->call.done(transfer->call.context, transfer->call.key, &due);
        transfer_free(transfer);
    }
}

static bool is_asking(const struct kube_client *client)
{
    return client->watches.first || client->ready.first || client->opens.first;
}

/* Start what may be started, in order. */
static void ready_start(struct kube_client *client)
{
    struct transfer *transfer;
    cleanup_credential struct kube_credential credential = {0};
    timers_tell(client);
    if (!is_asking(client) || kube_client_quiet_ms(client) > 0 ||
        !credential_take(client, &credential))
        return;
    while ((transfer = queue_take(&client->watches)))
        wanted_start(client, transfer, &credential);
    while (client->calls < CLIENT_CALLS_MAX && (transfer = queue_take(&client->ready)))
        wanted_start(client, transfer, &credential);
    while (client->opening < CLIENT_OPENING_MAX && (transfer = queue_take(&client->opens)))
        transfer_start(client, transfer, &credential);
}

static void ended_take(struct kube_client *client)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        struct transfer *transfer = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        transfer_ended(client, transfer, message->data.result);
    }
}

/* What a burst has taken goes back to the machine when it is over: what malloc keeps of it would
 * stay for as long as skepd runs. */
static void memory_give_back(struct kube_client *client)
{
    if (client->calls > 0 || client->ready.first || client->ended < TRIM_CALLS)
        return;
    client->ended = 0;
    malloc_trim(0);
}

static int wait_ms(struct kube_client *client)
{
    const int64_t now = clock_monotonic_ms();
    int64_t due = now + WAIT_MAX_MS;
    if (client->later.count > 0 && client->later.items[0]->due_ms < due)
        due = client->later.items[0]->due_ms;
    const int64_t quiet_ms = atomic_load(&client->quiet_until_ms);
    const int64_t held_ms = quiet_ms > client->login_ms ? quiet_ms : client->login_ms;
    if (is_asking(client) && held_ms > now) {
        if (held_ms < due)
            due = held_ms;
    } else if (client->watches.first || (client->ready.first && client->calls < CLIENT_CALLS_MAX) ||
               (client->opens.first && client->opening < CLIENT_OPENING_MAX)) {
        return 0; /* since it was put off calls have ended, or the pause of all is over */
    }
    return due > now ? (int)(due - now) : 0;
}

static void *client_run(void *argument)
{
    struct kube_client *client = argument;
    while (!atomic_load(&client->is_ending)) {
        int running;
        if (atomic_exchange(&client->has_login, false))
            client->login_ms = 0;
        inbox_take(client);
        due_take(client);
        ready_start(client);
        curl_multi_perform(client->multi, &running);
        ended_take(client);
        memory_give_back(client);
        curl_multi_poll(client->multi, NULL, 0, wait_ms(client), NULL);
    }
    return NULL;
}

/* --- doors --- */

/* On the thread of the login. */
static void login_changed(void *context)
{
    struct kube_client *client = context;
    atomic_store(&client->has_login, true);
    curl_multi_wakeup(client->multi);
}

int kube_client_new(const struct kube_access *access, struct kube_watcher watcher,
                    struct kube_client **out, struct err *err)
{
    struct kube_client *client = mem_zero(1, sizeof *client);
    struct timespec now;
    client->access = access;
    client->watcher = watcher;
    queue_init(&client->inbox);
    queue_init(&client->timers);
    queue_init(&client->watches);
    queue_init(&client->ready);
    queue_init(&client->opens);
    clock_gettime(CLOCK_REALTIME, &now);
    client->chance = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32;
    pthread_mutex_init(&client->lock, NULL);
    client->multi = curl_multi_init();
    if (client->multi)
        curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)CLIENT_IDLE_MAX);
    int code = client->multi ? kube_route_init(&client->route, access, err)
                             : err_fail(err, ERR_UNAVAILABLE, "", "libcurl has no memory");
    if (code == 0)
        code = kube_login_new(access, false, login_changed, client, &client->login, err);
    if (code == 0 && pthread_create(&client->thread, NULL, client_run, client) != 0)
        code = err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    if (code < 0) {
        atomic_store(&client->is_ending, true);
        kube_client_free(client);
        return code;
    }
    *out = client;
    return 0;
}

static void queue_free(struct transfer *first)
{
    while (first) {
        struct transfer *next = first->next;
        transfer_free(first);
        first = next;
    }
}

void kube_client_free(struct kube_client *client)
{
    if (!client)
        return;
    if (!atomic_exchange(&client->is_ending, true)) {
        curl_multi_wakeup(client->multi);
        pthread_join(client->thread, NULL);
    }
    queue_free(client->inbox.first);
    queue_free(client->timers.first);
    queue_free(client->watches.first);
    queue_free(client->ready.first);
    queue_free(client->opens.first);
    for (size_t i = 0; i < client->later.count; i++)
        transfer_free(client->later.items[i]);
    ARRAY_FREE(&client->later);
    queue_free(client->running);
    kube_login_free(client->login); /* it wakes what is cleaned up next */
    curl_multi_cleanup(client->multi);
    kube_route_release(&client->route);
    pthread_mutex_destroy(&client->lock);
    mem_free(client);
}

void kube_client_send(struct kube_client *client, const struct kube_call *call, uint32_t delay_ms)
{
    assert(call->done);
    struct transfer *transfer = mem_zero(1, sizeof *transfer);
    transfer->client = client;
    transfer->call = *call;
    transfer->due_ms = clock_monotonic_ms() + delay_ms;
    pthread_mutex_lock(&client->lock);
    transfer->number = client->sent++;
    queue_put(&client->inbox, transfer);
    pthread_mutex_unlock(&client->lock);
    curl_multi_wakeup(client->multi);
}

int kube_client_easy(const struct kube_client *client, const char *path, struct buf *header,
                     uint64_t *credential_number, CURL **easy, struct err *err)
{
    cleanup_credential struct kube_credential credential;
    int code = kube_login_wait(client->login, &credential, err);
    if (code < 0)
        return code;
    *easy = kube_route_easy(&client->route, &credential, path);
    *credential_number = credential.number;
    buf_text(header, buf_as_text(&credential.header));
    return 0;
}

int64_t kube_client_quiet_ms(const struct kube_client *client)
{
    const int64_t left_ms = atomic_load(&client->quiet_until_ms) - clock_monotonic_ms();
    return left_ms > 0 ? left_ms : 0;
}

void kube_client_quiet(struct kube_client *client, int64_t status, int64_t seconds)
{
    quiet_set(client, status, seconds, (uint64_t)clock_monotonic_ms());
}

void kube_client_refused(const struct kube_client *client, uint64_t credential_number)
{
    kube_login_refused(client->login, credential_number);
}
