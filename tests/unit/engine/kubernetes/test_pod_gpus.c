#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/node_object.h"
#include "engine/kubernetes/pod_gpus.h"
#include "scratch.h"

/* A pod of Skep's, with another container beside the task's. */
static const struct doc *pod(const char *task, const char *note)
{
    return json(arena_format(
        &arena,
        "{\"metadata\":{\"annotations\":{\"skep.internal/job\":\"ann~train\",\"skep.internal/"
        "task\":\"%s\"}},\"spec\":{\"containers\":[{\"name\":\"side\",\"env\":[{\"name\":\"NVIDIA_"
        "VISIBLE_DEVICES\",\"value\":\"9\"}]},{\"name\":\"task\",%s}]}}",
        note, task));
}

static const struct doc *with_devices(const char *value)
{
    return pod(arena_format(&arena,
                            "\"env\":[{\"name\":\"A\",\"value\":\"5\"},{\"name\":\"NVIDIA_VISIBLE_"
                            "DEVICES\",\"value\":\"%s\"}]",
                            value),
               "worker/3");
}

static struct pod_gpus *read_as(enum kube_gpus way, const struct doc *object, const char *devices)
{
    const struct node_rules rules = {.gpus = way, .gpu_resource = "nvidia.com/gpu"};
    return pod_gpus_read(object, &rules, devices);
}

static void indices_stand_in_a_variable(void **state)
{
    (void)state;
    struct pod_gpus *gpus = read_as(KUBE_GPUS_ENV, with_devices("0,12"), NULL);
    assert_non_null(gpus);
    assert_int_equal(gpus->count, 2);
    assert_string_equal(gpus->job, "ann~train");
    assert_string_equal(gpus->role, "worker");
    assert_int_equal(gpus->task_index, 3);
    assert_true(pod_gpus_have(gpus, 0) && pod_gpus_have(gpus, 12));
    assert_false(pod_gpus_have(gpus, 1) || pod_gpus_have(gpus, 9));
    pod_gpus_free(gpus);
    static const char *const none[] = {"none", "void", "all", "", "-1", "4096", "GPU-a"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_null(read_as(KUBE_GPUS_ENV, with_devices(none[i]), NULL));
    assert_null(read_as(KUBE_GPUS_ENV, json("{}"), NULL));
    struct buf many = BUF_INIT;
    for (int i = 0; i < NODE_OBJECT_GPUS_MAX + 1; i++)
        buf_string(&many, i > 0 ? ",1" : "1");
    gpus = read_as(KUBE_GPUS_ENV, with_devices(buf_cstr(&many)), NULL);
    assert_int_equal(gpus->count, NODE_OBJECT_GPUS_MAX);
    pod_gpus_free(gpus);
    buf_release(&many);
}

static void a_claim_names_devices(void **state)
{
    (void)state;
    const struct doc *object = pod("\"env\":[]", "worker/0");
    struct pod_gpus *gpus = read_as(KUBE_GPUS_DRA, object, "gpu.nvidia.com 4=n1/gpu-4 6=n1/gpu-6");
    assert_non_null(gpus);
    assert_int_equal(gpus->count, 2);
    assert_true(pod_gpus_have(gpus, 4) && pod_gpus_have(gpus, 6) && !pod_gpus_have(gpus, 5));
    pod_gpus_free(gpus);
    assert_null(read_as(KUBE_GPUS_DRA, object, NULL));
    assert_null(read_as(KUBE_GPUS_DRA, object, "?"));
}

static void a_plugin_is_asked_for_so_many(void **state)
{
    (void)state;
    const char *two = "\"resources\":{\"limits\":{\"cpu\":\"4\",\"nvidia.com/gpu\":\"2\"}}";
    struct pod_gpus *gpus = read_as(KUBE_GPUS_PLUGIN, pod(two, "worker/0"), NULL);
    assert_non_null(gpus);
    assert_int_equal(gpus->count, 2);
    assert_false(pod_gpus_have(gpus, 0)); /* which they are, the plugin decides */
    pod_gpus_free(gpus);
    static const char *const none[] = {
        "\"resources\":{\"limits\":{\"cpu\":\"4\"}}",
        "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"0\"}}",
        "\"resources\":{\"limits\":{\"nvidia.com/gpu\":2}}",
        "\"resources\":{}",
    };
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_null(read_as(KUBE_GPUS_PLUGIN, pod(none[i], "worker/0"), NULL));
    assert_null(read_as(KUBE_GPUS_PLUGIN, json("{\"spec\":{\"containers\":[]}}"), NULL));
    pod_gpus_free(NULL);
}

static void a_task_that_cannot_be_read_is_number_0(void **state)
{
    static const char *const notes[] = {"worker", "worker/x", "worker/-1", "worker/4294967296"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(notes); i++) {
        struct pod_gpus *gpus =
            read_as(KUBE_GPUS_DRA, pod("\"env\":[]", notes[i]), "gpu.nvidia.com 1=n1/gpu-1");
        assert_non_null(gpus);
        assert_string_equal(gpus->role, "worker");
        assert_int_equal(gpus->task_index, 0);
        pod_gpus_free(gpus);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(indices_stand_in_a_variable),
    cmocka_unit_test(a_claim_names_devices),
    cmocka_unit_test(a_plugin_is_asked_for_so_many),
    cmocka_unit_test(a_task_that_cannot_be_read_is_number_0),
};

UNIT_FILE(tests, setup, teardown);
