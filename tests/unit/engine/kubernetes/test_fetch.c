/* What is fetched from a pod, from an API server and a node that the test plays: that a connection
 * which is dead gives its turn back, and that no task has all turns. What comes of one is in
 * tests/system/kubernetes. */
#include "unit.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/kubernetes/state.h"
#include "folder.h"
#include "init/log_line.h"
#include "no_threads.h"
#include "played.h"
#include "played_node.h"
#include "small_cluster.h"
#include "sys/clock.h"

#define EXEC "GET /api/v1/namespaces/jobs/pods/skep-7/exec?container=task&"

enum { SILENCE_MS = 50 };

static const struct attempt_id ATTEMPT = {7};

static struct {
    struct played server;
    struct kube kube;
    struct node node;
    sem_t is_done;
} world;

static void done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)answer;
    assert_int_equal(key, ATTEMPT.v);
    sem_post(&world.is_done);
}

static void task_add(uint64_t attempt)
{
    kube_task_add(&world.kube, (struct attempt_id){attempt}, "n1")->state = TASK_RUNS;
}

static void world_make(int silence_ms)
{
    struct kube *kube = &world.kube;
    assert_int_equal(played_open(&world.server, 8), 0);
    sem_init(&world.is_done, 0, 0);
    *kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                          .access = world.server.access,
                          .settings = {.space = "jobs", .instance = "skep"},
                          .sink = {.post = nothing_posted},
                          .is_listed = true,
                          .ping_ms = KUBE_PING_MS};
    kube->logs.directory = in_folder("");
    kube->logs.segment_bytes = 1 << 20;
    kube->logs.fetch_silence_ms = silence_ms;
    clock_condition_init(&kube->synced);
    assert_int_equal(kube_fetches_open(kube, NULL), 0);
    assert_int_equal(kube_client_new(&kube->access, UNWATCHED, &kube->client, NULL), 0);
    pthread_mutex_lock(&kube->lock);
    task_add(ATTEMPT.v);
    pthread_mutex_unlock(&kube->lock);
}

static void world_end(void)
{
    struct kube *kube = &world.kube;
    kube_fetches_end(kube);
    kube_client_free(kube->client);
    tasks_free(kube);
    pthread_cond_destroy(&kube->synced);
    sem_destroy(&world.is_done);
    played_close(&world.server);
}

static void fetch_start(void)
{
    pthread_mutex_lock(&world.kube.lock);
    assert_true(kube_fetch_start(&world.kube, ATTEMPT, done));
    pthread_mutex_unlock(&world.kube.lock);
}

/* The node has taken the connection, and says nothing. */
static void fetch_begin(int silence_ms)
{
    world_make(silence_ms);
    fetch_start();
    node_answer(&world.server, EXEC, "v5.channel.k8s.io", &world.node);
}

/* Its turn is free again, and that is why. */
static void fetch_fails(const char *why)
{
    struct kube *kube = &world.kube;
    char trouble[200];
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PLAYED_LIMIT_S / 2; /* with the limit itself this would be the silence */
    assert_int_equal(sem_timedwait(&world.is_done, &until), 0);
    pthread_mutex_lock(&kube->lock);
    assert_int_equal(kube_fetch_take(kube, ATTEMPT, trouble), FETCH_FAILED);
    assert_string_equal(trouble, why);
    for (size_t i = 0; i < KUBE_FETCHES_MAX; i++)
        assert_int_equal(kube->logs.fetches[i].attempt.v, 0);
    pthread_mutex_unlock(&kube->lock);
    world_end();
}

static void a_connection_that_brings_nothing_gives_its_turn_back(void **state)
{
    (void)state;
    fetch_begin(SILENCE_MS);
    fetch_fails("its pod does not answer");
    node_close(&world.node);
}

/* Eight tasks of one node would hold all turns until its connections are given up. */
static void a_task_whose_node_is_lost_gives_its_turn_back(void **state)
{
    (void)state;
    fetch_begin(KUBE_FETCH_SILENCE_MS);
    pthread_mutex_lock(&world.kube.lock);
    kube_task_find(&world.kube, ATTEMPT)->is_lost = true;
    pthread_mutex_unlock(&world.kube.lock);
    fetch_fails("its task is not there any more");
    node_close(&world.node);
}

/* Nobody would ask for it again where no other fetch is under way. */
static void a_fetch_without_a_thread_has_failed(void **state)
{
    (void)state;
    world_make(KUBE_FETCH_SILENCE_MS);
    atomic_store(&threads_to_refuse, 1);
    fetch_start();
    fetch_fails("no thread can be made");
}

/* --- a line that says that skep-init waits, which a task can write itself --- */

enum { BELIEVED = 5 /* fetches in vain, in a row */ };

static void log_want(uint64_t attempt)
{
    const struct attempt_id id = {attempt};
    assert_int_equal(log_store_begin(world.kube.logs.directory, id, "ann~j", NULL), 0);
    pthread_mutex_lock(&world.kube.lock);
    task_log_want(&world.kube, kube_task_find(&world.kube, id));
    pthread_mutex_unlock(&world.kube.lock);
}

/* Its log is asked for, and has this line. The connection, which the client ends. */
static int log_answer_with(uint64_t attempt, const struct buf *forged)
{
    char line[100], request[PLAYED_REQUEST_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    const int fd = played_take(&world.server, "\r\n\r\n", request);
    snprintf(line, sizeof line, "GET /api/v1/namespaces/jobs/pods/skep-%u/log?", (unsigned)attempt);
    assert_memory_equal(request, line, strlen(line));
    buf_format(&text, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%.*s", (int)forged->length,
               forged->at);
    say(fd, buf_cstr(&text));
    return fd;
}

static int log_answer(uint64_t attempt)
{
    cleanup_buf struct buf line = BUF_INIT;
    log_line_write_end(true, &line);
    return log_answer_with(attempt, &line);
}

static void fetch_awaited(uint64_t attempt, struct node *node)
{
    char line[100];
    snprintf(line, sizeof line, "GET /api/v1/namespaces/jobs/pods/skep-%u/exec?",
             (unsigned)attempt);
    node_answer(&world.server, line, "v5.channel.k8s.io", node);
}

/* What the pod has is told, and nothing more is there now. */
#define FETCH_SAY(node, pieces) NODE_SAY(node, "\1" pieces ". 0 0\n")

/* The next that this log does is a pause, the number of them all, after so many fetches in vain. It
 * may be over when it is seen. */
static void pause_follows(uint32_t number, uint32_t failures)
{
    struct kube *kube = &world.kube;
    struct pollfd asked = {.fd = world.server.listener, .events = POLLIN};
    for (bool is_paused = false; !is_paused;) {
        const bool is_asked = poll(&asked, 1, 0) != 0;
        pthread_mutex_lock(&kube->lock);
        is_paused = kube->logs.pauses == number;
        assert_true(is_paused || !is_asked);
        assert_int_equal(is_paused ? kube_task_find(kube, ATTEMPT)->log.fetch_failures : failures,
                         failures);
        pthread_mutex_unlock(&kube->lock);
    }
}

static void failures_set(uint32_t failures)
{
    pthread_mutex_lock(&world.kube.lock);
    kube_task_find(&world.kube, ATTEMPT)->log.fetch_failures = (uint8_t)failures;
    pthread_mutex_unlock(&world.kube.lock);
}

/* Each fetch is a program in the pod: a task that has them made without a pause burdens all. */
static void a_fetch_in_vain_is_followed_by_a_pause(void **state)
{
    (void)state;
    world_make(KUBE_FETCH_SILENCE_MS);
    log_want(ATTEMPT.v);
    const int fd = log_answer(ATTEMPT.v);
    fetch_awaited(ATTEMPT.v, &world.node);
    FETCH_SAY(&world.node, "");
    pause_follows(1, 1);
    node_close(&world.node);
    fetch_awaited(ATTEMPT.v, &world.node); /* what is on the kubelet is known */
    FETCH_SAY(&world.node, "o 0 2\na\n");
    pause_follows(2, 2);
    node_close(&world.node);
    close(fd);
    world_end();
}

/* The same where a line stands behind all that is there, however much that is. */
static void a_fetch_of_what_is_missing_is_followed_by_a_pause(void **state)
{
    cleanup_buf struct buf line = BUF_INIT;
    uint64_t offset = 1 << 20, all_offset = 1 << 20;
    (void)state;
    log_lines_write(LOG_LINE_STDOUT, TEXT("a\n"), &offset, &all_offset, &line);
    world_make(KUBE_FETCH_SILENCE_MS);
    log_want(ATTEMPT.v);
    const int fd = log_answer_with(ATTEMPT.v, &line);
    fetch_awaited(ATTEMPT.v, &world.node);
    FETCH_SAY(&world.node, "o 0 2\na\n");
    pause_follows(1, 0);
    node_close(&world.node);
    close(fd);
    world_end();
}

/* A line more of its log, which is taken. */
static void line_follows(int fd)
{
    cleanup_buf struct buf line = BUF_INIT;
    struct log_part part = {0};
    uint64_t offset = 0, all_offset = 0, at = 0;
    char byte;
    log_lines_write(LOG_LINE_STDOUT, TEXT("a\n"), &offset, &all_offset, &line);
    say(fd, buf_cstr(&line));
    while (kube_log_read(&world.kube.engine, ATTEMPT, LOG_STDOUT, &at, &byte, 1, &part, NULL) < 1)
        sched_yield();
    assert_int_equal(byte, 'a');
}

/* Then the log is followed as that of any task, whatever that line says. */
static void a_task_that_does_not_wait_is_not_believed_for_ever(void **state)
{
    (void)state;
    world_make(KUBE_FETCH_SILENCE_MS);
    failures_set(BELIEVED - 1);
    log_want(ATTEMPT.v);
    const int fd = log_answer(ATTEMPT.v);
    fetch_awaited(ATTEMPT.v, &world.node);
    FETCH_SAY(&world.node, "");
    pause_follows(1, BELIEVED);
    pthread_mutex_lock(&world.kube.lock); /* its pause is cut short */
    kube_task_find(&world.kube, ATTEMPT)->state = TASK_ENDED;
    assert_true(task_log_hold(&world.kube, kube_task_find(&world.kube, ATTEMPT)));
    kube_task_find(&world.kube, ATTEMPT)->state = TASK_RUNS;
    pthread_mutex_unlock(&world.kube.lock);
    const int second = log_answer(ATTEMPT.v);
    line_follows(second);
    node_close(&world.node);
    close(fd);
    close(second);
    world_end();
}

/* Whoever has waited longest, not whoever stands first among all tasks. */
static void fetches_take_turns(void **state)
{
    enum { ALL = KUBE_FETCHES_MAX + 2 };
    struct node nodes[KUBE_FETCHES_MAX], next;
    int fds[ALL];
    (void)state;
    world_make(KUBE_FETCH_SILENCE_MS);
    pthread_mutex_lock(&world.kube.lock);
    for (uint64_t i = 0; i < ALL; i++)
        task_add(100 + i);
    pthread_mutex_unlock(&world.kube.lock);
    for (uint64_t i = 0; i < KUBE_FETCHES_MAX; i++) {
        log_want(100 + i);
        fds[i] = log_answer(100 + i);
        fetch_awaited(100 + i, &nodes[i]);
    }
    for (uint64_t i = ALL; i-- > KUBE_FETCHES_MAX;) { /* the last of all is the first to wait */
        char byte;
        log_want(100 + i);
        fds[i] = log_answer(100 + i);
        assert_int_equal(read(fds[i], &byte, 1), 0); /* the client has ended it */
    }
    FETCH_SAY(&nodes[0], "");
    fetch_awaited(100 + ALL - 1, &next);
    node_close(&next);
    for (size_t i = 0; i < KUBE_FETCHES_MAX; i++)
        node_close(&nodes[i]);
    for (size_t i = 0; i < ALL; i++)
        close(fds[i]);
    world_end();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_fetch_in_vain_is_followed_by_a_pause, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(a_fetch_of_what_is_missing_is_followed_by_a_pause, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(a_task_that_does_not_wait_is_not_believed_for_ever,
                                    folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(fetches_take_turns, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(a_connection_that_brings_nothing_gives_its_turn_back,
                                    folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(a_fetch_without_a_thread_has_failed, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(a_task_whose_node_is_lost_gives_its_turn_back, folder_setup,
                                    folder_teardown),
};

UNIT_FILE(tests, NULL, NULL);
