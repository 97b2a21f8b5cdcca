/* A client of an API server that the test plays: what it tells of the server, and that nothing that
 * could be asked waits. */
#include "unit.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/client.h"
#include "played.h"
#include "sys/clock.h"

#undef curl_easy_setopt /* a macro that checks types */

enum { CALLS = CLIENT_CALLS_MAX + 8 };

static struct {
    struct played server;
    struct kube_client *client;
    sem_t has_failed, has_answered, is_done, has_line;
    atomic_int dones;
} world;

static void failed(void *context, const char *trouble, int64_t for_ms)
{
    (void)context, (void)for_ms;
    assert_true(trouble[0] != '\0');
    sem_post(&world.has_failed);
}

static void answered(void *context)
{
    (void)context;
    sem_post(&world.has_answered);
}

static bool line(void *context, uint64_t key, struct text text)
{
    (void)context, (void)key, (void)text;
    sem_post(&world.has_line);
    return true;
}

static void done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)key, (void)answer;
    if (atomic_fetch_add(&world.dones, 1) + 1 == CALLS)
        sem_post(&world.is_done);
}

static void nothing_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)key, (void)answer;
}

/* The limit only ends a test that has failed. */
static void happens(sem_t *what)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PLAYED_LIMIT_S;
    assert_int_equal(sem_timedwait(what, &until), 0);
}

static int setup(void **state)
{
    (void)state;
    struct err err;
    if (played_open(&world.server, 2 * CALLS) < 0)
        return -1;
    atomic_store(&world.dones, 0);
    sem_init(&world.has_failed, 0, 0);
    sem_init(&world.has_answered, 0, 0);
    sem_init(&world.is_done, 0, 0);
    sem_init(&world.has_line, 0, 0);
    return kube_client_new(&world.server.access, (struct kube_watcher){NULL, failed, answered},
                           &world.client, &err);
}

static int teardown(void **state)
{
    (void)state;
    kube_client_free(world.client);
    sem_destroy(&world.has_failed);
    sem_destroy(&world.has_answered);
    sem_destroy(&world.is_done);
    sem_destroy(&world.has_line);
    return played_close(&world.server);
}

static int request_take(void)
{
    char request[PLAYED_REQUEST_MAX];
    return played_take(&world.server, "\r\n\r\n", request);
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static struct buf path_of(const char *path)
{
    struct buf out = BUF_INIT;
    buf_string(&out, path);
    return out;
}

/* It lasts for minutes and may bring nothing: whoever waits for its end takes a server that is back
 * for one that is still away. */
static void a_stream_is_an_answer_when_it_begins(void **state)
{
    (void)state;
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "GET", .path = path_of("/watch"), .line = line, .done = nothing_done},
        0);
    int fd = request_take();
    say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    happens(&world.has_answered);
    say(fd, "3\r\n{}\n\r\n");
    happens(&world.has_line);
    close(fd);
    happens(&world.has_failed);
}

static atomic_long silence_s; /* in the place of CLIENT_SILENCE_S; 0: that */

CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list args;
    va_start(args, option);
    void *value = va_arg(args, void *); /* all that is passed is as wide as one */
    va_end(args);
    if (option == CURLOPT_LOW_SPEED_TIME && atomic_load(&silence_s))
        return __real_curl_easy_setopt(easy, option, atomic_load(&silence_s));
    return __real_curl_easy_setopt(easy, option, value);
}

static void silent_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)key;
    assert_true(answer->is_silent);
    sem_post(&world.is_done);
}

/* Nothing may have changed: the server is not in trouble. */
static void a_stream_that_falls_silent_is_no_failure(void **state)
{
    (void)state;
    atomic_store(&silence_s, 5); /* it counts before the answer as well */
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "GET", .path = path_of("/watch"), .line = line, .done = silent_done},
        0);
    int fd = request_take();
    say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    happens(&world.has_answered);
    happens(&world.is_done);
    assert_int_equal(sem_trywait(&world.has_failed), -1);
    atomic_store(&silence_s, 0);
    close(fd);
}

static void a_body_is_sent_as_json(void **state)
{
    (void)state;
    static const char body[] = "{\"kind\":\"Pod\"}";
    char request[PLAYED_REQUEST_MAX];
    kube_client_send(world.client,
                     &(struct kube_call){.method = "POST",
                                         .path = path_of("/pods"),
                                         .body = path_of(body),
                                         .done = nothing_done},
                     0);
    int fd = played_take(&world.server, body, request);
    assert_int_equal(strncmp(request, "POST /pods HTTP", 15), 0);
    assert_non_null(strstr(request, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(request, "\r\nContent-Length: 14\r\n"));
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    happens(&world.has_answered);
    close(fd);
}

static void created(void *context, uint64_t key, const struct kube_answer *answer)
{
    sem_t *is_created = context;
    (void)key;
    assert_int_equal(answer->status, 201);
    assert_int_equal(answer->tries, 0); /* what was refused has not been carried out */
    sem_post(is_created);
}

/* A server that has just begun has not read the roles yet. */
static void a_right_that_is_missing_is_asked_for_again(void **state)
{
    (void)state;
    static const char refusal[] =
        "{\"message\":\"pods is forbidden: User \\\"skep\\\" cannot create resource\"}";
    char answer[300];
    sem_t is_created;
    sem_init(&is_created, 0, 0);
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "POST", .path = path_of("/pods"), .context = &is_created, .done = created},
        0);
    int fd = request_take();
    snprintf(answer, sizeof answer,
             "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(refusal), refusal);
    say(fd, answer);
    close(fd);
    fd = request_take();
    say(fd, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    happens(&is_created);
    close(fd);
    sem_destroy(&is_created);
}

enum { TIMERS = 61, TIMERS_FIRST_MS = 2000 };

static struct {
    uint64_t keys[TIMERS];
    int64_t from_ms[TIMERS], to_ms[TIMERS]; /* it is due between these */
    size_t count;
} due;

static void due_note(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)answer;
    due.keys[due.count++] = key;
    if (due.count == TIMERS)
        sem_post(context);
}

static void what_is_due_first_comes_first(void **state)
{
    (void)state;
    sem_t are_due;
    sem_init(&are_due, 0, 0);
    due.count = 0;
    for (uint32_t i = 0; i < TIMERS; i++) {
        const uint32_t delay_ms = TIMERS_FIRST_MS + i * 17 % TIMERS * 5;
        due.from_ms[i] = clock_monotonic_ms() + delay_ms;
        kube_client_send(world.client,
                         &(struct kube_call){.key = i, .context = &are_due, .done = due_note},
                         delay_ms);
        due.to_ms[i] = clock_monotonic_ms() + delay_ms;
    }
    happens(&are_due);
    for (size_t i = 1; i < TIMERS; i++)
        assert_true(due.from_ms[due.keys[i - 1]] <= due.to_ms[due.keys[i]]);
    /* those that are not due when it ends go with it */
    kube_client_send(world.client, &(struct kube_call){.done = nothing_done}, 60000);
    sem_destroy(&are_due);
}

/* Wanted once: what came meanwhile is known by the watch. */
static bool once_written(void *context, uint64_t key, struct buf *body)
{
    sem_t *is_dropped = context;
    (void)key;
    assert_int_equal(body->length, 0);
    if (atomic_fetch_add(&world.dones, 1) == 0) {
        buf_string(body, "{}");
        return true;
    }
    sem_post(is_dropped);
    return false;
}

/* The server may have done what it was asked for and failed to say so: a pod that has come and gone
 * meanwhile must not be made again. */
static void what_is_not_wanted_any_more_is_not_tried_again(void **state)
{
    (void)state;
    char request[PLAYED_REQUEST_MAX];
    sem_t is_dropped;
    sem_init(&is_dropped, 0, 0);
    kube_client_send(world.client,
                     &(struct kube_call){.method = "POST",
                                         .path = path_of("/pods"),
                                         .write = once_written,
                                         .context = &is_dropped,
                                         .done = done},
                     0);
    int fd = played_take(&world.server, "\r\n\r\n{}", request);
    say(fd, "HTTP/1.1 504 Gateway Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    happens(&is_dropped);
    close(fd);
    fd = played_take(&world.server, "\r\n\r\n", request); /* how the server does */
    assert_int_equal(strncmp(request, "GET /readyz ", 12), 0);
    say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    happens(&world.has_answered);
    close(fd);
    kube_client_send(
        world.client,
        &(struct kube_call){.method = "GET", .path = path_of("/next"), .done = nothing_done}, 0);
    fd = played_take(&world.server, "\r\n\r\n", request);
    assert_int_equal(strncmp(request, "GET /next ", 10), 0);
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    happens(&world.has_answered);
    close(fd);
    assert_int_equal(atomic_load(&world.dones), 2);
    sem_destroy(&is_dropped);
}

/* The next request, which begins so, is answered, and its connection closed. */
static void request_answer(const char *line, const char *answer)
{
    char request[PLAYED_REQUEST_MAX];
    int fd = played_take(&world.server, "\r\n\r\n", request);
    assert_int_equal(strncmp(request, line, strlen(line)), 0);
    say(fd, answer);
    close(fd);
}

#define BAD  "HTTP/1.1 500 Bad\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define GOOD "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

/* As with a webhook that is away: only one kind of write fails. */
static void a_write_that_fails_says_nothing_of_its_server(void **state)
{
    (void)state;
    kube_client_send(
        world.client,
        &(struct kube_call){.method = "POST", .path = path_of("/pods"), .done = nothing_done}, 0);
    request_answer("POST /pods ", BAD);
    request_answer("GET /readyz ", GOOD);
    happens(&world.has_answered);
    assert_int_equal(sem_trywait(&world.has_failed), -1);
}

/* As with an etcd that is away: the server says itself that nothing can be written. */
static void a_server_that_is_not_ready_is_in_trouble_until_it_is(void **state)
{
    (void)state;
    kube_client_send(world.client,
                     &(struct kube_call){.method = "DELETE", .path = path_of("/pod"), .done = done},
                     0);
    request_answer("DELETE /pod ", BAD);
    request_answer("GET /readyz ", BAD);
    happens(&world.has_failed);
    /* each is asked for again, in whichever order */
    for (int left = 2; left > 0; left--) {
        char request[PLAYED_REQUEST_MAX];
        int fd = played_take(&world.server, "\r\n\r\n", request);
        say(fd, GOOD);
        close(fd);
        happens(&world.has_answered);
    }
    while (atomic_load(&world.dones) < 1)
        sched_yield();
}

/* A server that cannot be asked by new calls may be well known by what it tells. */
static void a_line_of_a_watch_is_good_news(void **state)
{
    (void)state;
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "GET", .path = path_of("/watch"), .line = line, .done = nothing_done},
        0);
    int fd = request_take();
    say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    happens(&world.has_answered);
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "GET", .path = path_of("/list"), .is_of_server = true, .done = nothing_done},
        0);
    request_answer("GET /list ", BAD);
    happens(&world.has_failed);
    say(fd, "3\r\n{}\n\r\n");
    happens(&world.has_answered);
    close(fd);
}

static atomic_int created_tries;

static void refused_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)key;
    assert_int_equal(answer->status, 409);
    atomic_store(&created_tries, (int)answer->tries);
    sem_post(&world.is_done);
}

/* The server closes connections that it has kept, as when it is told to end (GOAWAY): libcurl sends
 * such a write again by itself, and the first may have been carried out. */
static void a_write_by_a_connection_that_is_closed_may_have_been_carried_out(void **state)
{
    char request[PLAYED_REQUEST_MAX];
    (void)state;
    kube_client_send(
        world.client,
        &(struct kube_call){.method = "GET", .path = path_of("/first"), .done = nothing_done}, 0);
    int fd = request_take();
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    happens(&world.has_answered);
    kube_client_send(world.client,
                     &(struct kube_call){.method = "POST",
                                         .path = path_of("/pods"),
                                         .body = path_of("{}"),
                                         .done = refused_done},
                     0);
    assert_true(read(fd, request, sizeof request) > 0); /* by the connection that was kept */
    close(fd);
    request_answer("POST /pods ",
                   "HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    happens(&world.is_done);
    assert_int_equal(atomic_load(&created_tries), 1);
}

static void created_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)key;
    assert_int_equal(answer->status, 201);
    atomic_store(&created_tries, (int)answer->tries);
    sem_post(&world.is_done);
}

/* It was not made, and is not there: it is asked for again. */
static void a_quota_that_is_busy_passes(void **state)
{
    static const char body[] =
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Conflict\","
        "\"message\":\"Operation cannot be fulfilled on resourcequotas\"}";
    char answer[400];
    (void)state;
    snprintf(answer, sizeof answer,
             "HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    kube_client_send(world.client,
                     &(struct kube_call){.method = "POST",
                                         .path = path_of("/pods"),
                                         .body = path_of("{}"),
                                         .done = created_done},
                     0);
    request_answer("POST /pods ", answer);
    request_answer("POST /pods ",
                   "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    happens(&world.is_done);
    assert_int_equal(atomic_load(&created_tries), 0);
}

static void a_stream_that_is_refused_is_none(void **state)
{
    (void)state;
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "GET", .path = path_of("/watch"), .line = line, .done = nothing_done},
        0);
    int fd = request_take();
    say(fd, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    happens(&world.has_failed);
    assert_int_equal(sem_trywait(&world.has_answered), -1);
    close(fd);
}

/* All calls that are under way end at the same moment, and nothing but them would wake the client.
 */
static void what_waits_for_room_is_asked_when_there_is_some(void **state)
{
    (void)state;
    int fds[CALLS];
    for (int i = 0; i < CALLS; i++)
        kube_client_send(
            world.client,
            &(struct kube_call){.method = "DELETE", .path = path_of("/pod"), .done = done}, 0);
    for (int i = 0; i < CLIENT_CALLS_MAX; i++)
        fds[i] = request_take();
    for (int i = 0; i < CLIENT_CALLS_MAX; i++)
        say(fds[i], "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    for (int i = CLIENT_CALLS_MAX; i < CALLS; i++)
        fds[i] = request_take();
    for (int i = CLIENT_CALLS_MAX; i < CALLS; i++)
        say(fds[i], "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    happens(&world.is_done);
    for (int i = 0; i < CALLS; i++)
        close(fds[i]);
}

enum { QUIET_S = 2 };

/* On the client's thread, which looks no earlier than when the pause of all is over. */
static void late_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    const struct timespec until = clock_moment(clock_monotonic_ms() + 2 * 1000 * QUIET_S);
    (void)context, (void)key, (void)answer;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
}

static void watch_send(const char *path)
{
    kube_client_send(
        world.client,
        &(struct kube_call){
            .method = "GET", .path = path_of(path), .line = line, .done = nothing_done},
        0);
}

/* The server wants to be left alone, and that is over while the client is at something else. */
static void a_watch_that_waited_for_a_pause_begins_after_it(void **state)
{
    (void)state;
    char request[PLAYED_REQUEST_MAX], answer[100];
    kube_client_send(
        world.client,
        &(struct kube_call){.method = "GET", .path = path_of("/late"), .done = late_done}, 0);
    int late = request_take();
    watch_send("/first");
    int fd = request_take();
    snprintf(answer, sizeof answer,
             "HTTP/1.1 429 Busy\r\nRetry-After: %d\r\nContent-Length: 0\r\n\r\n", QUIET_S);
    say(fd, answer);
    happens(&world.has_failed);
    watch_send("/second");
    say(late, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    do { /* the connection of either may be taken for it */
        struct pollfd ready[] = {{.fd = fd, .events = POLLIN},
                                 {.fd = late, .events = POLLIN},
                                 {.fd = world.server.listener, .events = POLLIN}};
        assert_in_range(poll(ready, COUNT_OF(ready), PLAYED_LIMIT_S * 1000), 1, COUNT_OF(ready));
        int from = ready[0].revents ? fd : ready[1].revents ? late : -1;
        int own = from < 0 ? accept(world.server.listener, NULL, NULL) : -1;
        ssize_t got = read(from < 0 ? own : from, request, sizeof request - 1);
        assert_true(got > 0);
        request[got] = '\0';
        if (own >= 0)
            close(own);
    } while (strncmp(request, "GET /second ", 12) != 0);
    close(fd);
    close(late);
}

static bool bytes(void *context, uint64_t key, struct text text)
{
    (void)context, (void)key, (void)text;
    return true;
}

/* A log whose task writes nothing is answered when its first line comes. */
static void streams_that_are_quiet_hold_up_no_others(void **state)
{
    (void)state;
    enum { STREAMS = 3 * CLIENT_OPENING_MAX };
    int fds[STREAMS + 1];
    for (int i = 0; i < STREAMS; i++)
        kube_client_send(
            world.client,
            &(struct kube_call){
                .method = "GET", .path = path_of("/log"), .bytes = bytes, .done = nothing_done},
            0);
    for (int i = 0; i < STREAMS; i++)
        fds[i] = request_take();
    kube_client_send(
        world.client,
        &(struct kube_call){.method = "GET", .path = path_of("/pods"), .done = nothing_done}, 0);
    fds[STREAMS] = request_take();
    say(fds[STREAMS], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    happens(&world.has_answered);
    for (int i = 0; i <= STREAMS; i++)
        close(fds[i]);
}

/* Their connections do not come about; nothing else waits for that. */
static void streams_that_do_not_open_hold_up_no_calls(void **state)
{
    (void)state;
    int fds[CLIENT_OPENING_MAX + 1];
    kube_client_free(world.client);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    assert_int_equal(getsockname(world.server.listener, (struct sockaddr *)&address, &length), 0);
    snprintf(world.server.server, sizeof world.server.server, "https://127.0.0.1:%u",
             ntohs(address.sin_port));
    world.server.access.is_unchecked = true;
    assert_int_equal(kube_client_new(&world.server.access,
                                     (struct kube_watcher){NULL, failed, answered}, &world.client,
                                     NULL),
                     0);
    for (int i = 0; i < 3 * CLIENT_OPENING_MAX; i++)
        kube_client_send(
            world.client,
            &(struct kube_call){
                .method = "GET", .path = path_of("/log"), .bytes = bytes, .done = nothing_done},
            0);
    for (int i = 0; i < CLIENT_OPENING_MAX; i++)
        fds[i] = accept(world.server.listener, NULL, NULL);
    kube_client_send(
        world.client,
        &(struct kube_call){.method = "GET", .path = path_of("/pods"), .done = nothing_done}, 0);
    fds[CLIENT_OPENING_MAX] = accept(world.server.listener, NULL, NULL);
    for (int i = 0; i <= CLIENT_OPENING_MAX; i++) {
        assert_true(fds[i] >= 0);
        close(fds[i]);
    }
}

/* --- lines --- */

enum { LINE_LONG = CLIENT_LINE_MAX + 100 };

/* A short one, one that is too long, and another. */
static bool cut_line(void *context, uint64_t key, struct text text)
{
    static const size_t lengths[] = {5, CLIENT_LINE_MAX, 6};
    size_t *count = context;
    (void)key;
    assert_true(*count < COUNT_OF(lengths));
    assert_int_equal(text.length, lengths[*count]);
    assert_memory_equal(text.at, "line", 4);
    if (++*count == COUNT_OF(lengths))
        sem_post(&world.has_line);
    return true;
}

/* Its reader sees what it is about, and the watch goes on behind it. */
static void of_a_long_line_the_begin_is_told(void **state)
{
    cleanup_buf struct buf text = BUF_INIT;
    size_t count = 0;
    (void)state;
    buf_string(&text, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nline1\nline");
    for (size_t i = 0; i < LINE_LONG; i++)
        buf_char(&text, 'x');
    buf_string(&text, "\n\nline22\n");
    kube_client_send(world.client,
                     &(struct kube_call){.method = "GET",
                                         .path = path_of("/watch"),
                                         .context = &count,
                                         .line = cut_line,
                                         .done = nothing_done},
                     0);
    int fd = request_take();
    for (struct text left = buf_as_text(&text); left.length > 0;) {
        const ssize_t written = write(fd, left.at, left.length);
        assert_true(written > 0);
        left = (struct text){left.at + written, left.length - (size_t)written};
    }
    happens(&world.has_line);
    close(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(of_a_long_line_the_begin_is_told, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stream_is_an_answer_when_it_begins, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stream_that_falls_silent_is_no_failure, setup, teardown),
    cmocka_unit_test_setup_teardown(a_body_is_sent_as_json, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stream_that_is_refused_is_none, setup, teardown),
    cmocka_unit_test_setup_teardown(a_quota_that_is_busy_passes, setup, teardown),
    cmocka_unit_test_setup_teardown(a_right_that_is_missing_is_asked_for_again, setup, teardown),
    cmocka_unit_test_setup_teardown(a_write_that_fails_says_nothing_of_its_server, setup, teardown),
    cmocka_unit_test_setup_teardown(a_server_that_is_not_ready_is_in_trouble_until_it_is, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_line_of_a_watch_is_good_news, setup, teardown),
    cmocka_unit_test_setup_teardown(
        a_write_by_a_connection_that_is_closed_may_have_been_carried_out, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_due_first_comes_first, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_not_wanted_any_more_is_not_tried_again, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(streams_that_are_quiet_hold_up_no_others, setup, teardown),
    cmocka_unit_test_setup_teardown(streams_that_do_not_open_hold_up_no_calls, setup, teardown),
    cmocka_unit_test_setup_teardown(a_watch_that_waited_for_a_pause_begins_after_it, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(what_waits_for_room_is_asked_when_there_is_some, setup,
                                    teardown),
};

UNIT_FILE(tests, NULL, NULL);
