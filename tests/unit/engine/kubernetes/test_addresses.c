/* Where its peers are, told to a task on a machine that has no room for a thread. What pods hear is
 * in tests/system/kubernetes. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "base/err.h"
#include "engine/kubernetes/state.h"
#include "no_threads.h"
#include "played.h"
#include "played_node.h"
#include "sys/clock.h"

#define EXEC "GET /api/v1/namespaces/jobs/pods/skep-7/exec?container=task&"
#define LIST "main 0 10.0.0.1\n"

/* Nobody would tell it again: nothing else happens that could remind of it. */
static void a_task_is_told_when_there_is_room_for_a_thread(void **state)
{
    const struct attempt_id attempt = {7};
    struct played server;
    struct node node;
    struct kube kube = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .settings = {.space = "jobs", .instance = "skep"},
                        .ping_ms = KUBE_PING_MS};
    (void)state;
    assert_int_equal(played_open(&server, 8), 0);
    kube.access = server.access;
    clock_condition_init(&kube.synced);
    assert_int_equal(kube_fetches_open(&kube, NULL), 0);
    assert_int_equal(kube_client_new(&kube.access, UNWATCHED, &kube.client, NULL), 0);
    pthread_mutex_lock(&kube.lock);
    kube_task_add(&kube, attempt, "n1")->state = TASK_RUNS;
    pthread_mutex_unlock(&kube.lock);
    atomic_store(&threads_refused, 0);
    atomic_store(&threads_to_refuse, 1);
    kube_tell_addresses(&kube.engine, &attempt, 1, TEXT(LIST));
    assert_int_equal(atomic_load(&threads_refused), 1);
    node_answer(&server, EXEC, "v5.channel.k8s.io", &node);
    node_hear(&node, strlen(LIST));
    assert_string_equal(buf_cstr(&node.bytes), LIST);
    NODE_SAY(&node, "\x03{\"status\":\"Success\"}");
    node_close(&node);
    kube_fetches_end(&kube);
    kube_tellings_end(&kube);
    kube_client_free(kube.client);
    tasks_free(&kube);
    pthread_cond_destroy(&kube.synced);
    played_close(&server);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_task_is_told_when_there_is_room_for_a_thread),
};

UNIT_FILE(tests, NULL, NULL);
