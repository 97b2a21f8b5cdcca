/* The table of nodes, as nodes come and go. What is told of them is in tests/system/kubernetes. */
#include "unit.h"

#include <stdio.h>

#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/state.h"

enum { NODES = 50 };

static struct kube kube;
static struct tells tells;

static void nothing_posted(void *context, const struct engine_event *event)
{
    (void)context, (void)event;
}

static int setup(void **state)
{
    (void)state;
    kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                         .settings = {.space = "default",
                                      .instance = "one",
                                      .runtime_class = "",
                                      .infiniband_resource = "",
                                      .nodes = {.gpu_resource = "g",
                                                .gpu_count_label = "c",
                                                .gpu_type_label = "t",
                                                .taint = "x"}},
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

static void node_seen(unsigned number, bool is_removed)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &tells.arena);
    const char *text = arena_format(
        &tells.arena,
        "{\"metadata\": {\"name\": \"n%u\"}, \"status\": {\"allocatable\": {\"cpu\": \"1\", "
        "\"memory\": \"1Gi\"}, \"addresses\": [{\"type\": \"InternalIP\", \"address\": "
        "\"10.0.0.1\"}], \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}",
        number);
    nodes_seen(&kube, doc_parse(text_of(text), DOC_JSON, &tells.arena, &problems), is_removed, 1,
               &tells);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_node_that_has_gone_takes_no_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(a_node_whose_pods_may_run_is_not_forgotten, setup, teardown),
};

UNIT_FILE(tests, NULL, NULL);
