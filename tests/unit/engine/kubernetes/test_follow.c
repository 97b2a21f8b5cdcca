/* What a list and its watch tell is taken for what it is. What the cluster does besides is in
 * tests/system/kubernetes. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(each_list_is_taken_for_what_it_is, setup, teardown),
    cmocka_unit_test_setup_teardown(what_was_made_and_has_gone_before_a_list_has_gone, setup,
                                    teardown),
};
UNIT_FILE(tests, NULL, NULL);
