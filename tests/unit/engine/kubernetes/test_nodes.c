/* The table of nodes, as nodes come and go, and whether a node still offers what a pod needs when
 * that is to be made. What is told of nodes is in tests/system/kubernetes. */
#include "unit.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/state.h"
#include "played.h"
#include "small_cluster.h"

enum { NODES = 50 };

static struct kube kube;
static struct tells tells;

static int setup(void **state)
{
    (void)state;
    kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                         .settings = small_settings,
                         .sink = {.post = nothing_posted},
                         .is_listed = true};
    kube_enter(&kube, &tells);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kube_leave(&kube, &tells);
    tasks_free(&kube);
    nodes_free(&kube);
    return 0;
}

static void node_is(unsigned number, const char *ready, bool is_removed)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells.arena);
    const char *text = arena_format(
        &tells.arena,
        "{\"metadata\": {\"name\": \"n%u\"}, \"status\": {\"allocatable\": {\"cpu\": \"1\", "
        "\"memory\": \"1Gi\"}, \"addresses\": [{\"type\": \"InternalIP\", \"address\": "
        "\"10.0.0.1\"}], \"conditions\": [{\"type\": \"Ready\", \"status\": \"%s\"}]}}",
        number, ready);
    nodes_seen(&kube, doc_parse(text_of(text), DOC_JSON, &tells.arena, &problems), is_removed, 1,
               &tells);
}

static void node_seen(unsigned number, bool is_removed)
{
    node_is(number, "True", is_removed);
}

/* Where nodes are made as they are needed each has a name of its own. */
static void a_node_that_has_gone_takes_no_memory(void **state)
{
    (void)state;
    node_seen(0, false);
    for (unsigned i = 1; i < NODES; i++) {
        node_seen(i, false);
        node_seen(i, true);
        assert_null(kube_node_find(&kube, arena_format(&tells.arena, "n%u", i)));
    }
    assert_int_equal(kube.nodes.count, 2);
    assert_non_null(kube_node_find(&kube, "n0"));
}

/* It comes back before the pods that may still run there have gone: nothing is placed on it. */
static void a_node_whose_pods_may_run_is_not_forgotten(void **state)
{
    (void)state;
    node_seen(1, false);
    nodes_hold(&kube, "n1");
    node_seen(1, true);
    node_seen(2, false);
    assert_int_equal(kube.nodes.count, 2);
    node_seen(1, false);
    const struct engine_event *last = &tells.events.items[tells.events.count - 1];
    assert_int_equal(last->kind, ENGINE_NODE);
    assert_false(last->node->is_healthy);
    node_seen(1, true);
    nodes_release(&kube, "n1", &tells);
    assert_null(kube_node_find(&kube, "n1"));
    node_seen(3, false);
    assert_int_equal(kube.nodes.count, 2);
    assert_string_equal(kube_node_find(&kube, "n2")->facts.name, "n2");
    assert_string_equal(kube_node_find(&kube, "n3")->facts.name, "n3");
}

/* --- silence --- */

static void loss_posted(void *context, const struct engine_event *event)
{
    if (event->kind == ENGINE_EXITED && event->attempt.v == 2)
        assert_int_equal(sem_post(context), 0);
}

/* A node that has spoken since it was to be looked at has its time anew. The other one has not. */
static void a_node_is_lost_when_it_is_silent_for_the_whole_time(void **state)
{
    enum { AN_HOUR_MS = 3600 * 1000 };
    const struct kube_access access = access_to("http://127.0.0.1:1"); /* nobody listens there */
    sem_t is_lost;
    (void)state;
    assert_int_equal(sem_init(&is_lost, 0, 0), 0);
    assert_int_equal(setup(NULL), 0);
    kube.sink = (struct engine_sink){.context = &is_lost, .post = loss_posted};
    assert_int_equal(kube_client_new(&access, UNWATCHED, &kube.client, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        node_seen(i, false);
    for (uint64_t i = 1; i <= 2; i++) {
        char node[] = {'n', (char)('0' + i), '\0'};
        kube_task_add(&kube, (struct attempt_id){i}, node)->state = TASK_RUNS;
    }
    kube.node_lost_ms = 1;
    node_is(1, "Unknown", false);
    kube.node_lost_ms = 50; /* behind it */
    node_is(2, "Unknown", false);
    kube.node_lost_ms = AN_HOUR_MS; /* both are looked at before that */
    kube_node_find(&kube, "n2")->silent_ms -= AN_HOUR_MS;
    kube_leave(&kube, &tells);
    assert_int_equal(sem_wait(&is_lost), 0);
    kube_enter(&kube, &tells);
    assert_int_equal(kube_task_find(&kube, (struct attempt_id){1})->state, TASK_RUNS);
    assert_true(kube_task_find(&kube, (struct attempt_id){2})->is_lost);
    kube_leave(&kube, &tells);
    kube_client_free(kube.client);
    tasks_free(&kube);
    nodes_free(&kube);
    sem_destroy(&is_lost);
}

/* --- what it offers when a pod is to be made --- */

static struct {
    struct kube kube;
    struct tells tells;
} world;

static int offers_setup(void **state)
{
    (void)state;
    world.kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                               .settings = {.space = "default",
                                            .instance = "one",
                                            .runtime_class = "",
                                            .infiniband_resource = "rdma/hca",
                                            .nodes = {.gpus = KUBE_GPUS_PLUGIN,
                                                      .gpu_resource = "nvidia.com/gpu",
                                                      .gpu_count_label = "nvidia.com/gpu.count",
                                                      .gpu_type_label = "nvidia.com/gpu.product",
                                                      .taint = ""}}};
    kube_enter(&world.kube, &world.tells);
    return 0;
}

static int offers_teardown(void **state)
{
    (void)state;
    world.tells.events.count = 0; /* nobody listens */
    kube_leave(&world.kube, &world.tells);
    tasks_free(&world.kube);
    nodes_free(&world.kube);
    pthread_mutex_destroy(&world.kube.lock);
    return 0;
}

/* The node n1 offers this. */
static void offer(const char *more)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &world.tells.arena);
    const char *text =
        arena_format(&world.tells.arena,
                     "{\"metadata\": {\"name\": \"n1\"}, \"status\": {\"allocatable\": {\"cpu\": "
                     "\"8\", \"memory\": \"16Gi\"%s}, \"conditions\": [{\"type\": \"Ready\", "
                     "\"status\": \"True\"}]}}",
                     more);
    nodes_seen(&world.kube, doc_parse(text_of(text), DOC_JSON, &world.tells.arena, &problems),
               false, 1, &world.tells);
}

/* Why it does not take the pod; "" if it does. */
static const char *refusal(const struct container *container)
{
    struct err err = {0};
    const int code = nodes_check(&world.kube, container, &err);
    assert_true(code == 0 || code == ERR_UNAVAILABLE);
    return code == 0 ? "" : arena_format(&world.tells.arena, "%s", err.text);
}

static void a_node_that_has_gone_takes_nothing(void **state)
{
    (void)state;
    const struct container container = {.attempt = {7}, .node = "n1"};
    assert_non_null(strstr(refusal(&container), "has no node n1"));
    offer("");
    assert_string_equal(refusal(&container), "");
    nodes_sweep(&world.kube, 2, &world.tells);
    assert_non_null(strstr(refusal(&container), "has no node n1"));
}

/* A kubelet that begins anew offers no GPUs until their plugin has come back, and would start the
 * pod without them. */
static void a_pod_with_gpus_is_made_where_they_are_offered(void **state)
{
    struct container container = {.attempt = {7}, .node = "n1", .gpu_count = 4};
    (void)state;
    offer(", \"nvidia.com/gpu\": \"8\"");
    assert_string_equal(refusal(&container), "");
    offer(", \"nvidia.com/gpu\": \"3\"");
    assert_non_null(strstr(refusal(&container), "offers 3 of nvidia.com/gpu now, not 4"));
    offer(", \"nvidia.com/gpu\": \"0\"");
    assert_non_null(strstr(refusal(&container), "offers 0 of nvidia.com/gpu now, not 4"));
    offer("");
    assert_non_null(strstr(refusal(&container), "offers 0 of nvidia.com/gpu now, not 4"));
    container.is_gpu_simulated = true;
    assert_string_equal(refusal(&container), "");
    container.is_gpu_simulated = false;
    world.kube.settings.nodes.gpus = KUBE_GPUS_ENV; /* nothing is asked of the kubelet */
    assert_string_equal(refusal(&container), "");
    container.gpu_count = 0;
    world.kube.settings.nodes.gpus = KUBE_GPUS_PLUGIN;
    assert_string_equal(refusal(&container), "");
}

static void a_pod_with_infiniband_is_made_where_it_is_offered(void **state)
{
    const struct container container = {.attempt = {7}, .node = "n1", .wants_infiniband = true};
    (void)state;
    offer(", \"rdma/hca\": 1");
    assert_string_equal(refusal(&container), "");
    offer("");
    assert_non_null(strstr(refusal(&container), "offers no rdma/hca now"));
}

static struct kube_task *task_add(uint64_t attempt, const char *node, enum task_state at)
{
    struct kube_task *task = kube_task_add(&world.kube, (struct attempt_id){attempt}, node);
    task->state = at;
    return task;
}

/* A kubelet takes so many pods at a time, however small they are. */
static void a_node_is_asked_for_no_more_pods_than_it_takes(void **state)
{
    const struct container container = {.attempt = {7}, .node = "n1"};
    (void)state;
    offer(", \"pods\": \"2\"");
    task_add(1, "n1", TASK_SECRET_ASKED);
    task_add(2, "n2", TASK_RUNS);
    struct kube_task *ended = task_add(3, "n1", TASK_ENDED);
    assert_string_equal(refusal(&container), "");
    ended->is_lost = true; /* it may still run */
    assert_non_null(strstr(refusal(&container), "takes no more than 2 pods"));
    ended->is_lost = false;
    task_add(4, "n1", TASK_RUNS);
    assert_non_null(strstr(refusal(&container), "takes no more than 2 pods"));
    offer(""); /* it does not say */
    assert_string_equal(refusal(&container), "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_node_that_has_gone_takes_no_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(a_node_whose_pods_may_run_is_not_forgotten, setup, teardown),
    cmocka_unit_test(a_node_is_lost_when_it_is_silent_for_the_whole_time),
    cmocka_unit_test_setup_teardown(a_node_that_has_gone_takes_nothing, offers_setup,
                                    offers_teardown),
    cmocka_unit_test_setup_teardown(a_pod_with_gpus_is_made_where_they_are_offered, offers_setup,
                                    offers_teardown),
    cmocka_unit_test_setup_teardown(a_pod_with_infiniband_is_made_where_it_is_offered, offers_setup,
                                    offers_teardown),
    cmocka_unit_test_setup_teardown(a_node_is_asked_for_no_more_pods_than_it_takes, offers_setup,
                                    offers_teardown),
};

UNIT_FILE(tests, NULL, NULL);
