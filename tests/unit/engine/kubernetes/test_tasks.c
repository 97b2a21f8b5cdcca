/* What is told of an attempt again, from what is known of it. What pods do is in
 * tests/system/kubernetes. */
#include "unit.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/given_up.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/secret_note.h"
#include "engine/kubernetes/state.h"
#include "folder.h"
#include "played.h"
#include "small_cluster.h"
#include "sys/clock.h"

enum { NOTHING = -1 };

/* The one event, or NOTHING. */
static int told(const struct kube_task *task)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* without a folder of logs */
    struct tells tells;
    int kind = NOTHING;
    kube_enter(&kube, &tells);
    kube_task_tell(task, &tells);
    assert_in_range(tells.events.count, 0, 1);
    if (tells.events.count == 1) {
        const struct engine_event *event = tells.events.items;
        assert_int_equal(event->attempt.v, task->attempt.v);
        kind = (int)event->kind;
    }
    kube.sink = (struct engine_sink){.post = nothing_posted};
    kube_leave(&kube, &tells);
    return kind;
}

/* Of one that is on its way: the last step that was told, and no step that was not. */
static void a_task_on_its_way_is_told_as_far_as_it_was(void **state)
{
    static const enum task_state STATES[] = {TASK_SECRET_ASKED, TASK_POD_ASKED, TASK_WAITS,
                                             TASK_RUNS};
    char node[] = "n1";
    (void)state;
    for (size_t i = 0; i < COUNT_OF(STATES); i++) {
        struct kube_task task = {.attempt = {7}, .state = STATES[i], .node = node};
        assert_int_equal(told(&task), NOTHING);
        task.is_preparing_told = true;
        assert_int_equal(told(&task), ENGINE_PREPARING);
        task.is_started_told = true;
        assert_int_equal(told(&task), ENGINE_STARTED);
    }
}

/* An end is told when its log has come, and until then the task runs for all others. */
static void an_end_is_told_with_its_log(void **state)
{
    char node[] = "n1", nothing[] = "";
    struct kube_end end = {.reason = nothing, .text = nothing};
    struct kube_task task = {.attempt = {7},
                             .state = TASK_ENDED,
                             .node = node,
                             .is_preparing_told = true,
                             .is_started_told = true,
                             .end = &end};
    (void)state;
    task.log.is_held = true;
    assert_int_equal(told(&task), ENGINE_STARTED);
    task.log.is_held = false;
    assert_int_equal(told(&task), ENGINE_EXITED);
    end.is_refused = true;
    assert_int_equal(told(&task), ENGINE_REFUSED);
}

static void tail_posted(void *context, const struct engine_event *event)
{
    assert_int_equal(event->kind, ENGINE_EXITED);
    assert_true(text_is(event->exit->log_tail, "all is well\n"));
    ++*(size_t *)context;
}

/* It may be long, and everybody waits for the lock. */
static void the_log_of_an_end_is_not_read_under_the_lock(void **state)
{
    char nothing[] = "", node[] = "n1", path[LOG_STORE_PATH_MAX];
    size_t count = 0;
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .sink = {.context = &count, .post = tail_posted}};
    struct kube_end end = {.reason = nothing, .text = nothing};
    struct kube_task task = {.attempt = {7}, .state = TASK_ENDED, .node = node, .end = &end};
    struct log_store_task store = {0};
    struct tells tells;
    (void)state;
    kube.logs.directory = in_folder("");
    assert_int_equal(log_store_begin(kube.logs.directory, task.attempt, "ann~j", NULL), 0);
    log_store_path(kube.logs.directory, task.attempt, path);
    assert_int_equal(log_store_put(&store, path, 1 << 20, LOG_ALL, 0, TEXT("all is well\n"), NULL),
                     0);
    log_store_task_release(&store);
    kube_enter(&kube, &tells);
    kube_task_tell(&task, &tells);
    assert_int_equal(tells.events.items[0].exit->log_tail.length, 0);
    kube_leave(&kube, &tells);
    assert_int_equal(count, 1);
}

/* In the cluster's network a task is told of when its address is known, and that is one. */
static void an_address_is_taken_that_is_one(void **state)
{
    struct kube kube = {0};
    struct kube_task task = {0};
    (void)state;
    assert_true(task_address_take(&kube, &task, "10.0.0.1"));
    assert_null(task.address);
    kube.settings.network.mode = KUBE_NETWORK_POD;
    assert_false(task_address_take(&kube, &task, ""));
    assert_false(task_address_take(&kube, &task, "no address"));
    assert_true(task_address_take(&kube, &task, "10.1.0.7"));
    assert_true(task_address_take(&kube, &task, ""));
    assert_string_equal(task.address, "10.1.0.7");
    assert_true(task_address_take(&kube, &task, "fd00::7"));
    assert_string_equal(task.address, "fd00::7");
    mem_free(task.address);
}

static void nothing_is_told_of_a_forgotten_one(void **state)
{
    char node[] = "n1";
    struct kube_task task = {.attempt = {7},
                             .state = TASK_FORGOTTEN,
                             .node = node,
                             .is_preparing_told = true,
                             .is_started_told = true};
    (void)state;
    assert_int_equal(told(&task), NOTHING);
    task.log.is_held = true;
    assert_int_equal(told(&task), NOTHING);
}

/* --- a log whose kubelet cannot be reached --- */

/* Until so many requests have failed, and it is asked for again at: when. With the lock. */
static int64_t pause_await(struct kube *kube, const struct kube_task *task, uint32_t failures)
{
    while (task->log.failures < failures || task->log.again_ms == 0) {
        pthread_mutex_unlock(&kube->lock);
        sched_yield();
        pthread_mutex_lock(&kube->lock);
    }
    return task->log.again_ms;
}

/* The pause grows while the task runs; its end cuts it short, and waits for no long one. */
static void a_log_that_does_not_come_is_asked_for_ever_more_rarely(void **state)
{
    const struct kube_access access = access_to("http://127.0.0.1:1"); /* nobody listens there */
    const int64_t begin_ms = clock_monotonic_ms();
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = {.space = "default", .instance = "one"},
                        .is_listed = true};
    (void)state;
    kube.logs.directory = "/nowhere";
    assert_int_equal(kube_client_new(&access, UNWATCHED, &kube.client, NULL), 0);
    pthread_mutex_lock(&kube.lock);
    struct kube_task *task = kube_task_add(&kube, (struct attempt_id){7}, "n1");
    task->state = TASK_RUNS;
    task->log.failures = 10;
    task_log_want(&kube, task);
    assert_true(pause_await(&kube, task, 11) >= begin_ms + FEED_BACKOFF_MAX_MS);
    task->state = TASK_ENDED;
    assert_true(task_log_hold(&kube, task));
    assert_int_equal(task->log.again_ms, 0);
    assert_int_equal(kube.logs.streams, 1);
    assert_true(pause_await(&kube, task, 12) - clock_monotonic_ms() <= 5000);
    task_log_leave(&kube, task);
    assert_int_equal(kube.logs.streams, 0);
    pthread_mutex_unlock(&kube.lock);
    kube_client_free(kube.client);
    tasks_free(&kube);
    pthread_mutex_destroy(&kube.lock);
}

/* --- how long its containers have --- */

/* With 0 the object of a pod goes at once, and its devices are taken for free while it runs. */
static void a_kill_without_grace_leaves_its_pod_a_second(void **state)
{
    static const struct {
        uint32_t grace_ms;
        const char *asked;
    } ALL[] = {{0, "\"gracePeriodSeconds\":1,"},
               {1, "\"gracePeriodSeconds\":1,"},
               {1001, "\"gracePeriodSeconds\":2,"}};
    struct played server;
    (void)state;
    assert_int_equal(played_open(&server, 8), 0);
    for (size_t i = 0; i < COUNT_OF(ALL); i++) {
        struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .settings = {.space = "default", .instance = "one"},
                            .is_listed = true};
        char request[PLAYED_REQUEST_MAX];
        assert_int_equal(kube_client_new(&server.access, UNWATCHED, &kube.client, NULL), 0);
        pthread_mutex_lock(&kube.lock);
        struct kube_task *task = kube_task_add(&kube, (struct attempt_id){7}, "n1");
        task->state = TASK_RUNS;
        snprintf(task->uid, sizeof task->uid, "u");
        kube_task_kill(&kube, task, ALL[i].grace_ms, "");
        pthread_mutex_unlock(&kube.lock);
        const int fd = played_take(&server, "}}", request);
        assert_non_null(strstr(request, ALL[i].asked));
        kube_client_free(kube.client);
        close(fd);
        tasks_free(&kube);
        pthread_mutex_destroy(&kube.lock);
    }
    played_close(&server);
}

/* --- programs and connections in its pod --- */

static void only_a_task_that_runs_is_reached(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const struct attempt_id attempt = {7};
    (void)state;
    assert_int_equal(kube_task_check(&kube, attempt, NULL), ERR_NOT_FOUND);
    pthread_mutex_lock(&kube.lock);
    struct kube_task *task = kube_task_add(&kube, attempt, "n1");
    pthread_mutex_unlock(&kube.lock);
    for (enum task_state at = TASK_SECRET_ASKED; at <= TASK_FORGOTTEN; at++) {
        task->state = at;
        assert_int_equal(kube_task_check(&kube, attempt, NULL), at == TASK_RUNS ? 0
                                                                : at == TASK_FORGOTTEN
                                                                    ? ERR_NOT_FOUND
                                                                    : ERR_CONFLICT);
    }
    task->state = TASK_RUNS;
    task->is_kill_wanted = true;
    assert_int_equal(kube_task_check(&kube, attempt, NULL), ERR_CONFLICT);
    tasks_free(&kube);
    pthread_mutex_destroy(&kube.lock);
}

/* --- what a pod is made of --- */

/* The watch may tell of it before the create is answered. */
static void what_a_pod_is_made_of_goes_when_it_is_there(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = {.space = "default", .instance = "one"}};
    const struct container container = {
        .attempt = {7}, .job = "ann~j", .role = "r", .node = "n1", .image = "i"};
    struct tells tells;
    (void)state;
    kube_enter(&kube, &tells);
    struct kube_task *task = kube_task_add(&kube, container.attempt, "n1");
    task->state = TASK_POD_ASKED;
    task->order = pod_order_new(&container, &kube.shares);
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells.arena);
    const struct doc *pod = doc_parse(
        TEXT("{\"metadata\": {\"uid\": \"u\", \"labels\": {\"skep.internal/instance\": \"one\", "
             "\"skep.internal/attempt\": \"7\"}}, \"status\": {\"phase\": \"Pending\"}}"),
        DOC_JSON, &tells.arena, &problems);
    tasks_seen(&kube, pod, false, 1, &tells);
    assert_int_equal(task->state, TASK_WAITS);
    assert_null(task->order);
    kube_leave(&kube, &tells);
    tasks_free(&kube);
    pthread_mutex_destroy(&kube.lock);
}

/* --- creates that only fail --- */

#define POD_OURS                                                                                   \
    "{\"metadata\": {\"uid\": \"u\", \"labels\": {\"skep.internal/instance\": \"one\", "           \
    "\"skep.internal/attempt\": \"7\"}}, \"status\": {\"phase\": \"Pending\"}}"

/* The next request, which has this line; it is to be answered. */
static int asked(const struct played *server, const char *line)
{
    char request[PLAYED_REQUEST_MAX];
    const int fd = played_take(server, "\r\n\r\n", request);
    assert_int_equal(strncmp(request, line, strlen(line)), 0);
    return fd;
}

static void answer_by(int fd, const char *status, const char *body)
{
    char request[PLAYED_REQUEST_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", status,
               strlen(body), body);
    assert_int_equal(write(fd, text.at, text.length), (ssize_t)text.length);
    shutdown(fd, SHUT_WR);
    while (read(fd, request, sizeof request) > 0) /* closed earlier the answer may not arrive */
        continue;
    close(fd);
}

static void answer(const struct played *server, const char *line, const char *status,
                   const char *body)
{
    answer_by(asked(server, line), status, body);
}

/* Until it is what its end needs; the thread of the client makes it so. */
static void state_await(struct kube *kube, const struct kube_task *task, enum task_state state)
{
    enum task_state seen;
    do {
        sched_yield();
        pthread_mutex_lock(&kube->lock);
        seen = task->state;
        pthread_mutex_unlock(&kube->lock);
    } while (seen != state);
}

#define SECRETS "/api/v1/namespaces/default/secrets"
#define PODS    "/api/v1/namespaces/default/pods"

/* An engine of its own, which makes the pod of attempt 7. */
static struct kube_task *creation_begin(struct kube *kube, const struct played *server,
                                        enum kube_users users)
{
    static const struct container container = {.attempt = {7},
                                               .job = "ann~j",
                                               .role = "r",
                                               .node = "n1",
                                               .image = "i",
                                               .registry_user = ""};
    *kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                          .synced = PTHREAD_COND_INITIALIZER,
                          .settings = small_settings,
                          .sink = {.post = nothing_posted},
                          .is_listed = true};
    kube->settings.init_image = "i";
    kube->settings.priority_class = kube->settings.service_account = "";
    kube->settings.network.users = users;
    assert_int_equal(kube_client_new(&server->access, UNWATCHED, &kube->client, NULL), 0);
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_add(kube, container.attempt, "n1");
    kube_task_begin(kube, task, &container);
    pthread_mutex_unlock(&kube->lock);
    return task;
}

static void creation_end(struct kube *kube)
{
    kube_client_free(kube->client);
    tasks_free(kube);
}

/* A try that failed may have made the pod, for all that is known: it is looked for, and no more are
 * made. */
static void what_is_to_end_is_not_created_again(void **state)
{
    static const struct {
        bool has_secret, is_there;
    } ALL[] = {{false, false}, {true, false}, {true, true}};
    struct played server;
    (void)state;
    assert_int_equal(played_open(&server, 8), 0);
    for (size_t i = 0; i < COUNT_OF(ALL); i++) {
        struct kube kube;
        struct kube_task *task = creation_begin(&kube, &server, KUBE_USERS_OFF);
        if (ALL[i].has_secret)
            answer(&server, "POST " SECRETS " ", "201 Created", "{}");
        const int fd = asked(&server, ALL[i].has_secret ? "POST " PODS " " : "POST " SECRETS " ");
        pthread_mutex_lock(&kube.lock);
        kube_task_kill(&kube, task, 0, "");
        pthread_mutex_unlock(&kube.lock);
        answer_by(fd, "500 Bad", "");
        answer(&server, "GET /readyz ", "200 OK", "ok");
        answer(&server, "GET " PODS "/one-7 ", ALL[i].is_there ? "200 OK" : "404 Not Found",
               ALL[i].is_there ? POD_OURS : "{}");
        if (ALL[i].is_there)
            answer(&server, "DELETE " PODS "/one-7 ", "200 OK", "{}");
        else
            state_await(&kube, task, TASK_ENDED);
        pthread_mutex_lock(&kube.lock);
        assert_int_equal(task->state, ALL[i].is_there ? TASK_WAITS : TASK_ENDED);
        assert_true(ALL[i].is_there || !task->end->exit.is_missing);
        assert_int_equal(task->is_secret_unsure, !ALL[i].has_secret);
        pthread_mutex_unlock(&kube.lock);
        creation_end(&kube);
    }
    played_close(&server);
}

/* Its pod is there, whatever else stands in the answer. */
static void a_pod_that_cannot_be_read_has_been_made(void **state)
{
    struct played server;
    struct kube kube;
    (void)state;
    assert_int_equal(played_open(&server, 8), 0);
    struct kube_task *task = creation_begin(&kube, &server, KUBE_USERS_REQUIRED);
    answer(&server, "POST " SECRETS " ", "201 Created", "{}");
    answer(&server, "POST " PODS " ", "201 Created",
           "{\"metadata\": {\"name\": \"one-7\", \"uid\": \"u\", \"labels\": "
           "{\"skep.internal/instance\": \"one\", \"skep.internal/attempt\": \"7\"}}, "
           "\"status\": {\"a\": 1, \"a\": 2}}");
    state_await(&kube, task, TASK_WAITS);
    pthread_mutex_lock(&kube.lock);
    assert_string_equal(task->uid, "u");
    assert_false(task->is_kill_wanted); /* whether it has user ids of its own is not known */
    pthread_mutex_unlock(&kube.lock);
    creation_end(&kube);
    played_close(&server);
}

static void answer_lose(const struct played *server, const char *line)
{
    char request[PLAYED_REQUEST_MAX];
    const int fd = played_take(server, "\r\n\r\n", request);
    assert_memory_equal(request, line, strlen(line));
    close(fd);
}

#define FORBIDDEN                                                                                  \
    "{\"kind\": \"Status\", \"message\": \"pods \\\"one-7\\\" is forbidden: exceeded quota: q\"}"

/* The pod of the first create may be what uses the quota up: its task would be begun elsewhere. */
static void a_pod_is_looked_for_before_its_second_create_counts_as_refused(void **state)
{
    (void)state;
    for (int is_there = 0; is_there < 2; is_there++) {
        struct played server;
        struct kube kube;
        assert_int_equal(played_open(&server, 8), 0);
        struct kube_task *task = creation_begin(&kube, &server, KUBE_USERS_OFF);
        answer(&server, "POST " SECRETS " ", "201 Created", "{}");
        answer_lose(&server, "POST " PODS " ");
        answer(&server, "GET /readyz ", "200 OK", "ok");
        answer(&server, "POST " PODS " ", "403 Forbidden", FORBIDDEN);
        answer(&server, "GET " PODS "/one-7 ", is_there ? "200 OK" : "404 Not Found",
               is_there ? POD_OURS : "{}");
        state_await(&kube, task, is_there ? TASK_WAITS : TASK_ENDED);
        pthread_mutex_lock(&kube.lock);
        assert_true(is_there || task->end->is_refused);
        assert_string_equal(is_there ? KUBE_QUOTA : task->end->reason, KUBE_QUOTA);
        assert_true(is_there || strstr(task->end->text, "exceeded quota: q"));
        pthread_mutex_unlock(&kube.lock);
        creation_end(&kube);
        played_close(&server);
    }
}

/* --- pods that were there before --- */

static void adopt(struct kube *kube, uint64_t attempt, struct tells *tells)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells->arena);
    const char *text = arena_format(
        &tells->arena,
        "{\"metadata\": {\"uid\": \"u\", \"labels\": {\"skep.internal/instance\": \"one\", "
        "\"skep.internal/attempt\": \"%llu\"}}, \"spec\": {\"nodeName\": \"n1\"}, \"status\": "
        "{\"phase\": \"Pending\"}}",
        (unsigned long long)attempt);
    tasks_seen(kube, doc_parse(text_of(text), DOC_JSON, &tells->arena, &problems), false, 1, tells);
    assert_int_equal(kube_task_find(kube, (struct attempt_id){attempt})->state, TASK_WAITS);
}

static void attempt_sum(void *context, struct attempt_id attempt)
{
    *(uint64_t *)context += attempt.v;
}

/* Thousands are adopted at once: what is noted is not noted again. */
static void an_adopted_pod_has_a_note_of_its_secret(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = {.space = "default", .instance = "one"}};
    struct tells tells;
    uint64_t noted = 0;
    (void)state;
    kube.secret_notes = in_folder("secrets");
    secret_note_put(kube.secret_notes, (struct attempt_id){7});
    secrets_noted_read(&kube);
    secret_note_drop(kube.secret_notes, (struct attempt_id){7}); /* a second one would be seen */
    kube_enter(&kube, &tells);
    adopt(&kube, 7, &tells);
    adopt(&kube, 30, &tells);
    secret_note_each(kube.secret_notes, attempt_sum, &noted);
    assert_int_equal(noted, 30);
    tasks_left(&kube, &tells);
    assert_int_equal(id_map_get(&kube.noted, 7), MAP_NONE);
    kube_leave(&kube, &tells);
    tasks_free(&kube);
    pthread_mutex_destroy(&kube.lock);
}

/* --- a node that is lost --- */

static bool is_noted(const struct kube *kube, struct attempt_id attempt)
{
    cleanup_buf struct buf reason = BUF_INIT, message = BUF_INIT;
    return given_up_read(kube->given_up, attempt, &reason, &message) &&
           strcmp(buf_cstr(&reason), KUBE_NODE_LOST) == 0;
}

static void end_posted(void *context, const struct engine_event *event)
{
    const struct kube *kube = context;
    assert_int_equal(event->kind, ENGINE_EXITED);
    assert_true(is_noted(kube, event->attempt));
}

/* The disk is not waited for under the lock, and nothing is told that a restart would not know. */
static void an_end_with_its_node_is_durable_before_it_is_told(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = {.space = "default", .instance = "one"},
                        .is_listed = true};
    struct tells tells;
    (void)state;
    kube.given_up = in_folder("given-up");
    kube.sink = (struct engine_sink){.context = &kube, .post = end_posted};
    kube_enter(&kube, &tells);
    for (uint64_t i = 1; i <= 2; i++)
        kube_task_add(&kube, (struct attempt_id){i}, "n1")->state = TASK_RUNS;
    tasks_lose(&kube, "n1", &tells);
    assert_int_equal(tells.events.count, 2);
    assert_false(is_noted(&kube, (struct attempt_id){1}));
    kube_leave(&kube, &tells);
    assert_true(is_noted(&kube, (struct attempt_id){2}));
    tasks_free(&kube);
    nodes_free(&kube);
}

static const struct doc *node_read(struct tells *tells)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells->arena);
    return doc_parse(
        TEXT("{\"metadata\": {\"name\": \"n1\"}, \"status\": {\"allocatable\": {\"cpu\": \"1\", "
             "\"memory\": \"1Gi\"}, \"addresses\": [{\"type\": \"InternalIP\", \"address\": "
             "\"10.0.0.1\"}], \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}"),
        DOC_JSON, &tells->arena, &problems);
}

/* Whoever hears first that the node is lost begins a task again that has ended well. */
static void an_end_that_waits_is_told_before_its_node_is_lost(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = small_settings,
                        .sink = {.post = nothing_posted},
                        .is_listed = true};
    struct tells tells;
    (void)state;
    kube_enter(&kube, &tells);
    nodes_seen(&kube, node_read(&tells), false, 1, &tells);
    assert_int_equal(tells.events.count, 1);
    for (uint64_t i = 1; i <= 2; i++) {
        struct kube_task *task = kube_task_add(&kube, (struct attempt_id){i}, "n1");
        task->state = TASK_ENDED;
        task->end = mem_zero(1, sizeof *task->end);
        task->end->reason = mem_copy("");
        task->end->text = mem_copy("");
        task->log.is_held = i == 1;
        task->is_word_awaited = i == 2;
    }
    nodes_seen(&kube, node_read(&tells), true, 1, &tells);
    assert_int_equal(tells.events.count, 4);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(tells.events.items[i].kind, ENGINE_EXITED);
        assert_int_equal(tells.events.items[i].exit->exit_code, 0);
        /* its pod is there for a skepd that begins anew before that is durable */
        assert_int_equal(kube_task_find(&kube, (struct attempt_id){i})->state, TASK_ENDED);
    }
    assert_int_equal(tells.events.items[3].kind, ENGINE_NODE_LOST);
    kube_leave(&kube, &tells);
    tasks_free(&kube);
    nodes_free(&kube);
}

#define CLAIMS "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

/* Its pod may still use the devices of its claim: nobody else is given them before that has gone.
 */
static void the_claim_of_a_lost_task_goes_with_its_pod(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = {.space = "default", .instance = "one"},
                        .sink = {.post = nothing_posted},
                        .is_listed = true};
    struct played server;
    struct tells tells;
    (void)state;
    assert_int_equal(played_open(&server, 8), 0);
    assert_int_equal(kube_client_new(&server.access, UNWATCHED, &kube.client, NULL), 0);
    kube_enter(&kube, &tells);
    struct kube_task *task = kube_task_add(&kube, (struct attempt_id){7}, "n1");
    task->state = TASK_RUNS;
    task->claim.is_ours = true;
    snprintf(task->uid, sizeof task->uid, "u");
    tasks_lose(&kube, "n1", &tells);
    kube_task_forget(&kube, task);
    kube_leave(&kube, &tells);
    for (int i = 0; i < 2; i++) /* when it is lost, and when it is forgotten */
        answer(&server, "DELETE " PODS "/one-7 ", "200 OK", "{}");
    answer(&server, "DELETE " SECRETS "/one-7 ", "200 OK", "{}");
    kube_enter(&kube, &tells);
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells.arena);
    tasks_seen(&kube, doc_parse(TEXT(POD_OURS), DOC_JSON, &tells.arena, &problems), true, 1,
               &tells);
    kube_leave(&kube, &tells);
    answer(&server, "DELETE " CLAIMS "/one-7 ", "200 OK", "{}");
    kube_client_free(kube.client);
    played_close(&server);
    tasks_free(&kube);
    nodes_free(&kube);
}

/* --- a node whose device is broken --- */

static void pod_tell(struct kube *kube, uint64_t attempt, const char *limits, const char *status,
                     struct tells *tells)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells->arena);
    const char *text = arena_format(
        &tells->arena,
        "{\"metadata\": {\"uid\": \"u\", \"labels\": {\"skep.internal/instance\": \"one\", "
        "\"skep.internal/attempt\": \"%llu\"}}, \"spec\": {\"nodeName\": \"n1\", \"containers\": "
        "[{\"name\": \"task\", \"resources\": {%s}}]}, \"status\": {%s}}",
        (unsigned long long)attempt, limits, status);
    struct kube_task *task = kube_task_add(kube, (struct attempt_id){attempt}, "n1");
    task->state = TASK_WAITS;
    tasks_seen(kube, doc_parse(text_of(text), DOC_JSON, &tells->arena, &problems), false, 1, tells);
}

#define LIMITS_CPU   "\"limits\": {\"cpu\": \"1\", \"memory\": \"1Gi\", \"hugepages-2Mi\": \"2Mi\"}"
#define LIMITS_GPU   "\"limits\": {\"cpu\": \"1\", \"nvidia.com/gpu\": \"1\"}"
#define LIMITS_CLAIM "\"limits\": {\"cpu\": \"1\"}, \"claims\": [{\"name\": \"gpus\"}]"
#define REFUSED                                                                                    \
    "\"phase\": \"Failed\", \"reason\": \"UnexpectedAdmissionError\", \"message\": \"no device\""
#define RUNS                                                                                       \
    "\"phase\": \"Running\", \"containerStatuses\": [{\"name\": \"task\", \"state\": "             \
    "{\"running\": "                                                                               \
    "{\"startedAt\": \"2026-11-22T10:00:00Z\"}}}]"
#define ENDED                                                                                      \
    "\"phase\": \"Failed\", \"containerStatuses\": [{\"name\": \"task\", \"state\": "              \
    "{\"terminated\": {\"exitCode\": 1}}}]"

/* Refusals of devices are in a row although tasks without any start between them. */
static void only_a_task_with_a_device_ends_a_row_of_refusals(void **state)
{
    static const struct {
        const char *limits, *status;
        bool ends_row;
    } BETWEEN[] = {
        {LIMITS_CPU, RUNS, false}, {LIMITS_CPU, ENDED, false}, {LIMITS_GPU, RUNS, true},
        {LIMITS_GPU, ENDED, true}, {LIMITS_CLAIM, RUNS, true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(BETWEEN); i++) {
        struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .settings = {.space = "default", .instance = "one"},
                            .sink = {.post = nothing_posted},
                            .is_listed = true};
        struct tells tells;
        kube_enter(&kube, &tells);
        pod_tell(&kube, 1, LIMITS_GPU, REFUSED, &tells);
        pod_tell(&kube, 2, LIMITS_GPU, REFUSED, &tells);
        assert_int_equal(kube_node_find(&kube, "n1")->refusals, 2);
        pod_tell(&kube, 3, BETWEEN[i].limits, BETWEEN[i].status, &tells);
        assert_int_equal(kube_node_find(&kube, "n1")->refusals, BETWEEN[i].ends_row ? 0 : 2);
        kube_leave(&kube, &tells);
        tasks_free(&kube);
        nodes_free(&kube);
    }
}

/* --- what the operator must mend --- */

struct refusals {
    size_t count;
    const char *reason;
};

static void refusal_posted(void *context, const struct engine_event *event)
{
    struct refusals *refusals = context;
    assert_int_equal(event->kind, ENGINE_REFUSED);
    assert_string_equal(event->reason, refusals->reason);
    refusals->count++;
}

/* Its pod goes while nobody looks: before a new list, and before a new skepd. */
static void what_the_operator_must_mend_is_no_failure_whoever_sees_it(void **state)
{
    static const char *const REASONS[] = {KUBE_QUOTA, KUBE_RIGHT, KUBE_USERS, POD_INIT_FAILED};
    struct err err;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(REASONS); i++) {
        struct refusals refusals = {0, REASONS[i]};
        struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .settings = {.space = "default", .instance = "one"},
                            .sink = {.context = &refusals, .post = refusal_posted},
                            .is_listed = true};
        struct tells tells;
        kube.given_up = in_folder("given-up");
        assert_int_equal(
            given_up_put(kube.given_up, (struct attempt_id){8}, REASONS[i], "it may not", &err), 0);
        kube_enter(&kube, &tells);
        struct kube_task *task = kube_task_add(&kube, (struct attempt_id){7}, "n1");
        task->state = TASK_WAITS;
        kube_task_give_up(&kube, task, REASONS[i], "it may not", &tells);
        tasks_sweep(&kube, 1, &tells);
        tasks_given_up(&kube, &tells);
        kube_leave(&kube, &tells);
        assert_int_equal(refusals.count, 2);
        tasks_free(&kube);
    }
}

/* --- where tasks stand --- */

/* Each with the name of its node, and in blocks, which go when their tasks have gone. */
static void tasks_stand_apart(void **state)
{
    enum { TASKS = 3000 };
    char longest[NODE_NAME_MAX + 2], name[NODE_NAME_MAX + 2];
    struct kube kube = {0};
    size_t blocks = 0;
    (void)state;
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    for (uint64_t i = 0; i < TASKS; i++) {
        const size_t length = i % sizeof name;
        snprintf(name, sizeof name, "%.*s", (int)length, longest);
        struct kube_task *task = kube_task_add(&kube, (struct attempt_id){i + 1}, name);
        memset(name, 'x', sizeof name); /* the task has its own */
        assert_int_equal(strlen(task->node), length < NODE_NAME_MAX ? length : NODE_NAME_MAX);
        assert_int_equal(strspn(task->node, "n"), strlen(task->node));
    }
    for (size_t i = 0; i < TASK_POOLS; i++)
        blocks += kube.tasks.pools[i].blocks;
    assert_true(blocks < TASKS / 20);
    tasks_free(&kube);
    for (size_t i = 0; i < TASK_POOLS; i++)
        assert_int_equal(kube.tasks.pools[i].blocks, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_a_task_with_a_device_ends_a_row_of_refusals),
    cmocka_unit_test_setup_teardown(an_adopted_pod_has_a_note_of_its_secret, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(an_end_with_its_node_is_durable_before_it_is_told, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(what_the_operator_must_mend_is_no_failure_whoever_sees_it,
                                    folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(the_log_of_an_end_is_not_read_under_the_lock, folder_setup,
                                    folder_teardown),
    cmocka_unit_test(a_kill_without_grace_leaves_its_pod_a_second),
    cmocka_unit_test(a_log_that_does_not_come_is_asked_for_ever_more_rarely),
    cmocka_unit_test(a_task_on_its_way_is_told_as_far_as_it_was),
    cmocka_unit_test(an_end_is_told_with_its_log),
    cmocka_unit_test(an_end_that_waits_is_told_before_its_node_is_lost),
    cmocka_unit_test(the_claim_of_a_lost_task_goes_with_its_pod),
    cmocka_unit_test(an_address_is_taken_that_is_one),
    cmocka_unit_test(nothing_is_told_of_a_forgotten_one),
    cmocka_unit_test(only_a_task_that_runs_is_reached),
    cmocka_unit_test(what_a_pod_is_made_of_goes_when_it_is_there),
    cmocka_unit_test(what_is_to_end_is_not_created_again),
    cmocka_unit_test(a_pod_that_cannot_be_read_has_been_made),
    cmocka_unit_test(a_pod_is_looked_for_before_its_second_create_counts_as_refused),
    cmocka_unit_test(tasks_stand_apart),
};
UNIT_FILE(tests, NULL, NULL);
