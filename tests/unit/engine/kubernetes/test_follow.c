/* What a list and its watch tell is taken for what it is. What the cluster does besides is in
 * tests/system/kubernetes. */
#include "unit.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doc/doc.h"
#include "engine/kubernetes/state.h"
#include "played.h"
#include "small_cluster.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define END(kind)                                                                                  \
    "{\"type\": \"BOOKMARK\", \"object\": {\"kind\": \"" kind "\", \"metadata\": "                 \
    "{\"resourceVersion\": \"2\", \"annotations\": {\"k8s.io/initial-events-end\": "               \
    "\"true\"}}}}\n"
#define NODES "/api/v1/nodes"
#define PODS  "/api/v1/namespaces/default/pods"

static const char nodes[] =
    HEAD "{\"type\": \"ADDED\", \"object\": {\"kind\": \"Node\", \"metadata\": {\"name\": \"n1\", "
         "\"resourceVersion\": \"1\"}, \"status\": {\"allocatable\": {\"cpu\": \"1\", \"memory\": "
         "\"1Gi\"}, \"addresses\": [{\"type\": \"InternalIP\", \"address\": \"10.0.0.1\"}], "
         "\"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}}\n" END("Node");
static const char pods[] =
    HEAD "{\"type\": \"ADDED\", \"object\": {\"kind\": \"Pod\", \"metadata\": {\"uid\": \"u\", "
         "\"resourceVersion\": \"1\", \"labels\": {\"skep.internal/instance\": \"one\", "
         "\"skep.internal/attempt\": \"7\"}}, \"spec\": {\"nodeName\": \"n1\"}, \"status\": "
         "{\"phase\": \"Pending\"}}}\n" END("Pod");

static struct {
    struct played server;
    struct kube kube;
} world;

static int setup(void **state)
{
    struct kube *kube = &world.kube;
    (void)state;
    *kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                          .synced = PTHREAD_COND_INITIALIZER,
                          .settings = small_settings,
                          .sink = {.post = nothing_posted},
                          .follow_count = FOLLOW_PODS + 1};
    feed_init(&kube->follows[FOLLOW_NODES].feed, NODES, "");
    feed_init(&kube->follows[FOLLOW_PODS].feed, PODS, "");
    if (played_open(&world.server, 8) != 0)
        return -1;
    return kube_client_new(&world.server.access, UNWATCHED, &kube->client, NULL);
}

static int teardown(void **state)
{
    (void)state;
    kube_client_free(world.kube.client);
    tasks_free(&world.kube);
    nodes_free(&world.kube);
    return played_close(&world.server);
}

/* The next request. True: it is about pods. */
static bool asked(int *fd)
{
    char request[PLAYED_REQUEST_MAX];
    *fd = played_take(&world.server, "\r\n\r\n", request);
    const bool is_pods = strncmp(request, "GET " PODS "?", strlen("GET " PODS "?")) == 0;
    assert_true(is_pods || strncmp(request, "GET " NODES "?", strlen("GET " NODES "?")) == 0);
    return is_pods;
}

static void say(int fd, const char *told)
{
    assert_int_equal(write(fd, told, strlen(told)), (ssize_t)strlen(told));
}

/* Both kinds are asked for at first; the connections. */
static void lists_answer(const char *of_nodes, const char *of_pods, int fds[2])
{
    follows_start(&world.kube);
    for (size_t i = 0; i < 2; i++) {
        int fd;
        const bool is_pods = asked(&fd);
        say(fd, is_pods ? of_pods : of_nodes);
        fds[is_pods] = fd;
    }
}

/* With the lock, which the caller gives back. */
static void lists_await(void)
{
    struct kube *kube = &world.kube;
    pthread_mutex_lock(&kube->lock);
    while (!kube->follows[FOLLOW_NODES].is_synced || !kube->follows[FOLLOW_PODS].is_synced)
        pthread_cond_wait(&kube->synced, &kube->lock);
}

static void each_list_is_taken_for_what_it_is(void **state)
{
    struct kube *kube = &world.kube;
    int fds[2];
    (void)state;
    lists_answer(nodes, pods, fds);
    lists_await();
    const struct kube_node *node = kube_node_find(kube, "n1");
    assert_true(node && node->is_there);
    assert_int_equal(kube->nodes.count, 1);
    const struct kube_task *task = kube_task_find(kube, (struct attempt_id){7});
    assert_true(task && task->state == TASK_WAITS);
    assert_int_equal(kube->tasks.count, 1);
    pthread_mutex_unlock(&kube->lock);
    close(fds[0]);
    close(fds[1]);
}

/* --- what comes before a list is asked for --- */

/* On the client's thread. As soon as the list has failed, and before it is asked for again, a pod
 * is made: as pod_created would see it. */
static void pod_made(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    const struct kube_call again = {.context = kube, .key = key, .done = pod_made};
    (void)answer;
    pthread_mutex_lock(&kube->lock);
    const struct kube_follow *pods_follow = &kube->follows[FOLLOW_PODS];
    const bool has_failed = pods_follow->feed.failures > 0;
    if (has_failed) {
        struct kube_task *task = kube_task_add(kube, (struct attempt_id){key}, "n1");
        task->state = TASK_WAITS;
        task->mark = pods_follow->mark;
    }
    pthread_mutex_unlock(&kube->lock);
    if (!has_failed)
        kube_client_send(kube->client, &again, 0);
}

/* Nothing was watched meanwhile: nobody else tells that it has gone. */
static void what_was_made_and_has_gone_before_a_list_has_gone(void **state)
{
    struct kube *kube = &world.kube;
    const struct kube_call call = {.context = kube, .key = 8, .done = pod_made};
    int fds[2], fd;
    (void)state;
    kube_client_send(kube->client, &call, 0);
    lists_answer(nodes, "HTTP/1.1 410 Gone\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", fds);
    assert_true(asked(&fd));
    say(fd, HEAD END("Pod"));
    lists_await();
    const struct kube_task *task = kube_task_find(kube, (struct attempt_id){8});
    assert_non_null(task);
    assert_int_equal(task->state, TASK_ENDED);
    assert_true(task->end->exit.is_missing);
    pthread_mutex_unlock(&kube->lock);
    close(fds[0]);
    close(fds[1]);
    close(fd);
}

/* --- objects that cannot be read --- */

/* An object with such a member is none for who reads it: it has one key twice. */
#define UNREADABLE "\"a\": 1, \"a\": 1"
#define POD(attempt, rest)                                                                         \
    "{\"kind\": \"Pod\", \"metadata\": {\"name\": \"one-" attempt "\", \"uid\": \"u" attempt       \
    "\", \"resourceVersion\": \"1\", \"labels\": {\"skep.internal/instance\": \"one\", "           \
    "\"skep.internal/attempt\": \"" attempt "\"}}, \"spec\": {\"nodeName\": \"n1\"}, \"status\": " \
    "{\"phase\": \"Pending\"" rest "}}"
#define NODE(name, rest)                                                                           \
    "{\"kind\": \"Node\", \"metadata\": {\"name\": \"" name "\", \"uid\": \"u\", "                 \
    "\"resourceVersion\": \"1\"}, \"status\": {\"addresses\": [{\"type\": \"InternalIP\", "        \
    "\"address\": \"10.0.0.1\"}], \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}], " \
    "\"allocatable\": {\"cpu\": \"1\", \"memory\": " rest "}}}"
#define EVENT(type, object) "{\"type\": \"" type "\", \"object\": " object "}\n"
#define PAGE(items)         HEAD "{\"metadata\": {\"resourceVersion\": \"2\"}, \"items\": [" items "]}"
#define GOOD                "\"1Gi\""

static struct kube_task *task_add(uint64_t attempt, enum task_state state)
{
    struct kube_task *task = kube_task_add(&world.kube, (struct attempt_id){attempt}, "n1");
    task->state = state;
    snprintf(task->uid, sizeof task->uid, "u%u", (unsigned)attempt);
    return task;
}

static const struct kube_task *task_of(uint64_t attempt)
{
    return kube_task_find(&world.kube, (struct attempt_id){attempt});
}

static bool is_node_there(const char *name)
{
    const struct kube_node *node = kube_node_find(&world.kube, name);
    return node && node->is_there;
}

static void node_add(const char *name)
{
    struct tells tells;
    kube_enter(&world.kube, &tells);
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells.arena);
    const char *text = arena_format(
        &tells.arena,
        "{\"metadata\": {\"name\": \"%s\"}, \"status\": {\"allocatable\": {\"cpu\": \"1\", "
        "\"memory\": \"1Gi\"}, \"addresses\": [{\"type\": \"InternalIP\", \"address\": "
        "\"10.0.0.1\"}], \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}",
        name);
    nodes_seen(&world.kube, doc_parse(text_of(text), DOC_JSON, &tells.arena, &problems), false, 0,
               &tells);
    kube_leave(&world.kube, &tells);
}

/* What was there before the list. */
static void before_list(void)
{
    task_add(7, TASK_RUNS);
    task_add(8, TASK_WAITS);
    node_add("n2");
    node_add("n3");
    node_add("n4");
}

/* Only what a list does not have at all has gone, and what comes behind has come. With the lock. */
static void after_list(void)
{
    assert_int_equal(task_of(7)->state, TASK_RUNS);
    assert_int_equal(task_of(8)->state, TASK_ENDED);
    assert_int_equal(task_of(9)->state, TASK_WAITS);
    assert_string_equal(task_of(9)->uid, "u9");
    /* nobody takes it for one that was never made */
    assert_int_equal(task_of(10)->state, TASK_WAITS);
    assert_string_equal(task_of(10)->uid, "u10");
    assert_string_equal(task_of(10)->node, "n1");
    assert_false(task_of(10)->is_preparing_told);
    assert_true(is_node_there("n1") && is_node_there("n2") && is_node_there("n4"));
    assert_false(is_node_there("n3"));
}

static void a_list_goes_on_behind_an_object_that_cannot_be_read(void **state)
{
    int fds[2];
    (void)state;
    before_list();
    lists_answer(HEAD EVENT("ADDED", NODE("n2", UNREADABLE)) EVENT("ADDED", NODE("n4", "\"much\""))
                     EVENT("ADDED", NODE("n1", GOOD)) END("Node"),
                 HEAD EVENT("ADDED", POD("7", ", " UNREADABLE))
                     EVENT("ADDED", POD("10", ", " UNREADABLE)) EVENT("ADDED", POD("9", ""))
                         END("Pod"),
                 fds);
    lists_await();
    after_list();
    pthread_mutex_unlock(&world.kube.lock);
    close(fds[0]);
    close(fds[1]);
}

static void a_page_goes_on_behind_an_object_that_cannot_be_read(void **state)
{
    int fds[2];
    (void)state;
    before_list();
    world.kube.follows[FOLLOW_NODES].feed.is_paged = true;
    world.kube.follows[FOLLOW_PODS].feed.is_paged = true;
    lists_answer(PAGE(NODE("n2", UNREADABLE) "," NODE("n4", "\"much\"") "," NODE("n1", GOOD)),
                 PAGE(POD("7", ", " UNREADABLE) "," POD("10", ", " UNREADABLE) "," POD("9", "")),
                 fds);
    close(fds[0]);
    close(fds[1]);
    lists_await();
    after_list();
    pthread_mutex_unlock(&world.kube.lock);
}

static void task_await(uint64_t attempt, enum task_state state)
{
    enum task_state seen = TASK_FORGOTTEN;
    do {
        sched_yield();
        pthread_mutex_lock(&world.kube.lock);
        if (task_of(attempt))
            seen = task_of(attempt)->state;
        pthread_mutex_unlock(&world.kube.lock);
    } while (seen != state);
}

/* It goes on as it was, until something can be read of it, or it has gone. */
static void a_watch_goes_on_behind_an_object_that_cannot_be_read(void **state)
{
    int fds[2];
    (void)state;
    lists_answer(nodes, HEAD EVENT("ADDED", POD("7", "")) EVENT("ADDED", POD("8", "")) END("Pod"),
                 fds);
    lists_await();
    pthread_mutex_unlock(&world.kube.lock);
    say(fds[1],
        EVENT("MODIFIED", POD("7", ", " UNREADABLE)) EVENT("DELETED", POD("8", ", " UNREADABLE)));
    task_await(8, TASK_ENDED);
    pthread_mutex_lock(&world.kube.lock);
    assert_true(task_of(8)->end->exit.is_missing && task_of(8)->is_gone);
    assert_int_equal(task_of(7)->state, TASK_WAITS);
    pthread_mutex_unlock(&world.kube.lock);
    say(fds[1], EVENT("DELETED", POD("7", "")));
    task_await(7, TASK_ENDED);
    close(fds[0]);
    close(fds[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_list_goes_on_behind_an_object_that_cannot_be_read, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_page_goes_on_behind_an_object_that_cannot_be_read, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_watch_goes_on_behind_an_object_that_cannot_be_read, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(each_list_is_taken_for_what_it_is, setup, teardown),
    cmocka_unit_test_setup_teardown(what_was_made_and_has_gone_before_a_list_has_gone, setup,
                                    teardown),
};
UNIT_FILE(tests, NULL, NULL);
