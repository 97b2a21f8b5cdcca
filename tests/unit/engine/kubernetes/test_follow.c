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

static void each_list_is_taken_for_what_it_is(void **state)
{
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .synced = PTHREAD_COND_INITIALIZER,
                        .settings = small_settings,
                        .sink = {.post = nothing_posted},
                        .follow_count = FOLLOW_PODS + 1};
    struct played server;
    int fds[FOLLOW_PODS + 1];
    (void)state;
    assert_int_equal(played_open(&server, 8), 0);
    assert_int_equal(kube_client_new(&server.access, UNWATCHED, &kube.client, NULL), 0);
    feed_init(&kube.follows[FOLLOW_NODES].feed, NODES, "");
    feed_init(&kube.follows[FOLLOW_PODS].feed, PODS, "");
    follows_start(&kube);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        char request[PLAYED_REQUEST_MAX];
        fds[i] = played_take(&server, "\r\n\r\n", request);
        const bool is_pods = strncmp(request, "GET " PODS "?", strlen("GET " PODS "?")) == 0;
        assert_true(is_pods || strncmp(request, "GET " NODES "?", strlen("GET " NODES "?")) == 0);
        const char *told = is_pods ? pods : nodes;
        assert_int_equal(write(fds[i], told, strlen(told)), (ssize_t)strlen(told));
    }
    pthread_mutex_lock(&kube.lock);
    while (!kube.follows[FOLLOW_NODES].is_synced || !kube.follows[FOLLOW_PODS].is_synced)
        pthread_cond_wait(&kube.synced, &kube.lock);
    const struct kube_node *node = kube_node_find(&kube, "n1");
    assert_true(node && node->is_there);
    assert_int_equal(kube.nodes.count, 1);
    const struct kube_task *task = kube_task_find(&kube, (struct attempt_id){7});
    assert_true(task && task->state == TASK_WAITS);
    assert_int_equal(kube.tasks.count, 1);
    pthread_mutex_unlock(&kube.lock);
    kube_client_free(kube.client);
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        close(fds[i]);
    played_close(&server);
    tasks_free(&kube);
    nodes_free(&kube);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_list_is_taken_for_what_it_is),
};
UNIT_FILE(tests, NULL, NULL);
