#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/node_object.h"
#include "scratch.h"

static const struct node_rules rules = {
    .gpus = KUBE_GPUS_PLUGIN,
    .gpu_resource = "nvidia.com/gpu",
    .gpu_count_label = "nvidia.com/gpu.count",
    .gpu_type_label = "nvidia.com/gpu.product",
    .taint = "skep.internal/dedicated",
};

/* A node as kubelet 1.34 tells of it, shortened by its images and its managed fields. */
#define META                                                                                       \
    "\"metadata\":{\"name\":\"gpu-7\",\"uid\":\"2f1c\",\"labels\":{\"nvidia.com/"                  \
    "gpu.product\":\"Tesla-V100-SXM2-32GB\",\"nvidia.com/gpu.count\":\"8\"}}"
#define SPEC                                                                                       \
    "\"spec\":{\"taints\":[{\"key\":\"skep.internal/"                                              \
    "dedicated\",\"effect\":\"NoSchedule\"},{\"key\":\"other\",\"effect\":\"PreferNoSchedule\"}]}"
#define AMOUNT                                                                                     \
    "\"allocatable\":{\"cpu\":\"39850m\",\"memory\":\"263856784Ki\",\"nvidia.com/"                 \
    "gpu\":\"8\",\"pods\":110}"
#define ADDRESS                                                                                    \
    "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"gpu-7\"},{\"type\":\"InternalIP\","       \
    "\"address\":\"10.1.0.7\"}]"
#define READY                                                                                      \
    "\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"False\"},{\"type\":\"Ready\","      \
    "\"status\":\"True\",\"reason\":\"KubeletReady\"}]"
#define NODE(spec, status) "{\"kind\":\"Node\"," META "," spec ",\"status\":{" status "}}"

static int read_as(const char *text, const struct node_rules *by, struct node_facts *facts,
                   struct err *err)
{
    return node_object_read(json(text), by, &arena, facts, err);
}

static void a_node_offers_what_is_allocatable(void **state)
{
    (void)state;
    struct node_facts facts;
    assert_int_equal(read_as(NODE(SPEC, AMOUNT "," ADDRESS "," READY), &rules, &facts, NULL), 0);
    assert_string_equal(facts.name, "gpu-7");
    assert_string_equal(facts.address, "10.1.0.7");
    assert_int_equal(facts.cpu, 39);
    assert_int_equal(facts.memory_mib, 257672);
    assert_int_equal(facts.gpu_count, 8);
    assert_string_equal(facts.gpu_type, "Tesla-V100-SXM2-32GB");
    assert_true(facts.is_healthy);
    assert_string_equal(facts.reason, "");
    assert_false(facts.is_gpu_simulated);
}

/* Pods of DaemonSets tolerate every taint, and their requests count for the kubelet. */
static void a_reserve_is_left_to_others(void **state)
{
    (void)state;
    struct node_rules kept = rules;
    struct node_facts facts;
    const struct doc *node = json(NODE(SPEC, AMOUNT "," READY));
    kept.reserve = (struct node_reserve){.cpu = 2, .memory_mib = 1000, .pods = 10};
    assert_int_equal(node_object_read(node, &kept, &arena, &facts, NULL), 0);
    assert_int_equal(facts.cpu, 37);
    assert_int_equal(facts.memory_mib, 256672);
    assert_int_equal(facts.gpu_count, 8);
    assert_int_equal(node_object_pods(node, &kept.reserve), 100);
    assert_int_equal(node_object_pods(node, &rules.reserve), 110);
    kept.reserve = (struct node_reserve){.cpu = 100, .memory_mib = UINT32_MAX, .pods = 200};
    assert_int_equal(node_object_read(node, &kept, &arena, &facts, NULL), 0);
    assert_int_equal(facts.cpu, 0);
    assert_int_equal(facts.memory_mib, 0);
    assert_int_equal(node_object_pods(node, &kept.reserve), 0);
    assert_int_equal(node_object_pods(json("{\"status\":{\"allocatable\":{}}}"), &kept.reserve),
                     UINT32_MAX);
}

/* As kubelets tell it since 1.31, by the name of the handler. */
static void a_runtime_that_gives_user_ids(void **state)
{
    static const char can[] = "{\"name\":\"%s\",\"features\":{\"userNamespaces\":%s}}";
    static const struct {
        const char *name, *value; /* of its features; NULL: it tells none */
        bool is_told;
    } handlers[] = {{NULL, NULL, false},
                    {NULL, NULL, true},
                    {"", "false", true},
                    {"kata", "true", true},
                    {"", "true", true}};
    struct node_rules required = rules;
    (void)state;
    required.users_handler = "";
    for (size_t i = 0; i < COUNT_OF(handlers); i++) {
        struct node_facts facts;
        const char *one =
            handlers[i].name ? arena_format(&arena, can, handlers[i].name, handlers[i].value) : "";
        const char *list =
            handlers[i].is_told ? arena_format(&arena, "\"runtimeHandlers\":[%s],", one) : "";
        const char *text = arena_format(
            &arena, "{\"kind\":\"Node\"," META "," SPEC ",\"status\":{%s" READY "}}", list);
        assert_int_equal(node_object_has_own_users(json(text), ""), i == 4);
        assert_int_equal(node_object_has_own_users(json(text), "kata"), i == 3);
        assert_int_equal(read_as(text, &rules, &facts, NULL), 0);
        assert_true(facts.is_healthy);
        assert_int_equal(read_as(text, &required, &facts, NULL), 0);
        assert_int_equal(facts.is_healthy, i == 4);
        assert_int_equal(strstr(facts.reason, "no user ids of their own") != NULL, i != 4);
    }
}

static void a_node_without_gpus_has_no_type(void **state)
{
    (void)state;
    struct node_facts facts;
    assert_int_equal(read_as(NODE(SPEC, "\"allocatable\":{\"cpu\":4,\"memory\":1073741824}," READY),
                             &rules, &facts, NULL),
                     0);
    assert_int_equal(facts.cpu, 4);
    assert_int_equal(facts.memory_mib, 1024);
    assert_int_equal(facts.gpu_count,
                     0); /* the label alone gives none: no plugin would hand them out */
    assert_string_equal(facts.gpu_type, "");
    assert_string_equal(facts.address, "gpu-7");
}

static void with_env_the_label_counts(void **state)
{
    (void)state;
    struct node_facts facts;
    struct node_rules env = rules;
    env.gpus = KUBE_GPUS_ENV;
    assert_int_equal(read_as(NODE(SPEC, "\"allocatable\":{\"cpu\":4}," READY), &env, &facts, NULL),
                     0);
    assert_int_equal(facts.gpu_count, 8);
    assert_int_equal(facts.memory_mib, 0);
    static const char plain[] =
        "{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"nvidia.com/gpu\":2}}}";
    assert_int_equal(read_as(plain, &env, &facts, NULL), 0);
    assert_int_equal(facts.gpu_count, 2);
    assert_string_equal(facts.gpu_type, "GPU");
    static const char odd[] =
        "{\"metadata\":{\"name\":\"n\",\"labels\":{\"nvidia.com/gpu.count\":\"many\"}}}";
    assert_int_equal(read_as(odd, &env, &facts, NULL), 0);
    assert_int_equal(facts.gpu_count, 0);
}

static void with_claims_slices_count(void **state)
{
    (void)state;
    struct node_facts facts;
    struct node_rules dra = rules;
    dra.gpus = KUBE_GPUS_DRA;
    assert_int_equal(read_as(NODE(SPEC, AMOUNT "," READY), &dra, &facts, NULL), 0);
    assert_int_equal(facts.gpu_count, 0);
    assert_string_equal(facts.gpu_type, "Tesla-V100-SXM2-32GB");
    assert_int_equal(read_as("{\"metadata\":{\"name\":\"n\"}}", &dra, &facts, NULL), 0);
    assert_string_equal(facts.gpu_type, "GPU");
}

static void a_node_that_takes_no_pods_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *node, *reason;
    } cases[] = {
        {NODE(SPEC, AMOUNT), "its kubelet has not said yet that it is ready"},
        {NODE(SPEC, "\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":"
                    "\"NodeStatusUnknown\","
                    "\"message\":\"Kubelet stopped posting node status.\"}]"),
         "it is not ready: NodeStatusUnknown: Kubelet stopped posting node status."},
        {NODE("\"spec\":{\"unschedulable\":true}", READY), "it is cordoned"},
        {NODE("\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/"
              "memory-pressure\",\"effect\":\"NoSchedule\"}]}",
              READY),
         "it has the taint node.kubernetes.io/memory-pressure:NoSchedule"},
        {NODE("\"spec\":{\"taints\":[{\"key\":\"skep.internal/"
              "dedicated\",\"effect\":\"NoSchedule\"},{\"key\":\"x\",\"effect\":\"NoExecute\"}]}",
              READY),
         "it has the taint x:NoExecute"},
        {"{\"metadata\":{\"name\":\"n\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"status\":"
         "{" READY "}}",
         "it is being deleted"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct node_facts facts;
        assert_int_equal(read_as(cases[i].node, &rules, &facts, NULL), 0);
        assert_false(facts.is_healthy);
        assert_string_equal(facts.reason, cases[i].reason);
    }
}

static void without_a_taint_of_its_own_each_counts(void **state)
{
    (void)state;
    struct node_facts facts;
    struct node_rules none = rules;
    none.taint = "";
    assert_int_equal(read_as(NODE(SPEC, AMOUNT "," READY), &none, &facts, NULL), 0);
    assert_false(facts.is_healthy);
}

static void what_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *node, *says;
    } cases[] = {
        {"{\"metadata\":{}}", "has no name"},
        {"[]", "has no name"},
        {"{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"cpu\":\"many\"}}}",
         "cpu is no amount: many"},
        {"{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"memory\":true}}}",
         "memory is no amount: true"},
        {"{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"x\"}}}",
         "nvidia.com/gpu is no amount"},
        {"{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"nvidia.com/gpu\":5000}}}",
         "at most 4096"},
        {"{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"cpu\":\"9G\"}}}",
         "9000000000 processors"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct node_facts facts;
        struct err err = {0};
        assert_int_equal(read_as(cases[i].node, &rules, &facts, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

static void odd_lists_are_passed_over(void **state)
{
    (void)state;
    struct node_facts facts;
    assert_int_equal(read_as(NODE(SPEC, "\"addresses\":3,\"conditions\":{}"), &rules, &facts, NULL),
                     0);
    assert_string_equal(facts.address, "gpu-7");
    assert_false(facts.is_healthy);
}

static void one_whose_kubelet_tells_nothing_is_silent(void **state)
{
    (void)state;
    assert_false(node_object_is_silent(json(NODE(SPEC, READY))));
    assert_false(node_object_is_silent(json(NODE(SPEC, AMOUNT))));
    assert_false(node_object_is_silent(
        json(NODE(SPEC, "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]"))));
    assert_true(node_object_is_silent(
        json(NODE(SPEC, "\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]"))));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_whose_kubelet_tells_nothing_is_silent),
    cmocka_unit_test(a_reserve_is_left_to_others),
    cmocka_unit_test(a_node_offers_what_is_allocatable),
    cmocka_unit_test(a_runtime_that_gives_user_ids),
    cmocka_unit_test(a_node_without_gpus_has_no_type),
    cmocka_unit_test(with_env_the_label_counts),
    cmocka_unit_test(with_claims_slices_count),
    cmocka_unit_test(a_node_that_takes_no_pods_says_why),
    cmocka_unit_test(without_a_taint_of_its_own_each_counts),
    cmocka_unit_test(what_cannot_be_read_is_an_error),
    cmocka_unit_test(odd_lists_are_passed_over),
};

UNIT_FILE(tests, setup, teardown);
