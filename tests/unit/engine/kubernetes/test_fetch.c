/* What is fetched from a pod, from an API server and a node that the test plays: that a connection
 * which is dead gives its turn back. What comes of one is in tests/system/kubernetes. */
#include "unit.h"

#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "engine/kubernetes/state.h"
#include "folder.h"
#include "no_threads.h"
#include "played.h"
#include "played_node.h"
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

static void world_make(int silence_ms)
{
    struct kube *kube = &world.kube;
    assert_int_equal(played_open(&world.server, 8), 0);
    sem_init(&world.is_done, 0, 0);
    *kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                          .access = world.server.access,
                          .settings = {.space = "jobs", .instance = "skep"},
                          .ping_ms = KUBE_PING_MS};
    kube->logs.directory = in_folder("logs");
    kube->logs.fetch_silence_ms = silence_ms;
    clock_condition_init(&kube->synced);
    assert_int_equal(kube_fetches_open(kube, NULL), 0);
    assert_int_equal(kube_client_new(&kube->access, UNWATCHED, &kube->client, NULL), 0);
    pthread_mutex_lock(&kube->lock);
    kube_task_add(kube, ATTEMPT, "n1")->state = TASK_RUNS;
    pthread_mutex_unlock(&kube->lock);
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
    kube_fetches_end(kube);
    kube_client_free(kube->client);
    tasks_free(kube);
    pthread_cond_destroy(&kube->synced);
    sem_destroy(&world.is_done);
    played_close(&world.server);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_connection_that_brings_nothing_gives_its_turn_back,
                                    folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(a_fetch_without_a_thread_has_failed, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(a_task_whose_node_is_lost_gives_its_turn_back, folder_setup,
                                    folder_teardown),
};

UNIT_FILE(tests, NULL, NULL);
