#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_template.h"
#include "scratch.h"

static const struct doc *good(const char *yaml)
{
    const struct doc *doc;
    struct err err;
    assert_int_equal(pod_template_read(text_of(yaml), &arena, &doc, &err), 0);
    return doc;
}

static void assert_merged(const char *pod, const char *yaml, const char *wanted)
{
    cleanup_buf struct buf out = BUF_INIT;
    pod_template_merge(text_of(pod), good(yaml), &out);
    assert_string_equal(buf_cstr(&out), wanted);
}

static void maps_and_named_items_are_merged(void **state)
{
    (void)state;
    assert_merged("{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
                  "metadata: {labels: {team: vision}, annotations: {x: y}}",
                  "{\"metadata\":{\"labels\":{\"a\":\"1\",\"team\":\"vision\"},"
                  "\"annotations\":{\"x\":\"y\"}}}");
    assert_merged(
        "{\"spec\":{\"containers\":[{\"name\":\"task\",\"image\":\"i\",\"volumeMounts\":["
        "{\"name\":\"log\",\"mountPath\":\"/l\"}]}],\"volumes\":[{\"name\":\"log\"}]}}",
        "spec:\n"
        "  containers:\n"
        "  - name: task\n"
        "    env: [{name: HTTP_PROXY, value: 'http://p'}]\n"
        "    volumeMounts: [{name: ca, mountPath: /etc/ca}, {name: ca, mountPath: /b}]\n"
        "  volumes: [{name: ca, configMap: {name: ca}}]\n",
        "{\"spec\":{\"containers\":[{\"name\":\"task\",\"image\":\"i\",\"volumeMounts\":["
        "{\"name\":\"log\",\"mountPath\":\"/l\"},{\"name\":\"ca\",\"mountPath\":\"/etc/ca\"},"
        "{\"name\":\"ca\",\"mountPath\":\"/b\"}],"
        "\"env\":[{\"name\":\"HTTP_PROXY\",\"value\":\"http://p\"}]}],"
        "\"volumes\":[{\"name\":\"log\"},{\"name\":\"ca\",\"configMap\":{\"name\":\"ca\"}}]}}");
}

static void other_values_take_the_place_of_skeps(void **state)
{
    (void)state;
    assert_merged(
        "{\"spec\":{\"grace\":30,\"drop\":[\"A\",\"B\"],\"tolerations\":[{\"key\":\"t\"}]}}",
        "spec: {grace: 60, drop: [ALL], tolerations: [{key: t}], new: [1, true, null]}",
        "{\"spec\":{\"grace\":60,\"drop\":[\"ALL\"],\"tolerations\":[{\"key\":\"t\"},"
        "{\"key\":\"t\"}],\"new\":[1,true,null]}}");
    assert_null(good(""));
    assert_null(good("# nothing\n"));
}

static void what_makes_a_pod_a_task_is_skeps_alone(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *says;
    } cases[] = {
        {"[1]", "must be a map"},
        {"status: {}", "status is Skep's"},
        {"metadata: {name: x}", "metadata.name is Skep's"},
        {"metadata: {labels: [a]}", "metadata. must be a map"},
        {"metadata: {finalizers: [a]}", "metadata.finalizers is Skep's"},
        {"metadata: {labels: {skep.internal/instance: x}}", "skep.internal/instance is Skep's"},
        {"metadata: {annotations: {app.kubernetes.io/managed-by: x}}",
         "metadata.annotations.app.kubernetes.io/managed-by is Skep's"},
        {"metadata: "
         "{a2345678901234567890123456789012345678901234567890123456789012345678901234567890"
         "12345678901234567890more: x}",
         "12345678901234567890 is Skep's"},
        {"spec: {nodeName: x}", "spec.nodeName is Skep's"},
        {"spec: {hostNetwork: false}", "spec.hostNetwork is Skep's"},
        {"spec: {hostUsers: false}", "spec.hostUsers is Skep's"},
        {"spec: {initContainers: [{name: skep, env: [{name: SKEP_POD_ADDRESS, value: x}]}]}",
         "SKEP_POD_ADDRESS is Skep's"},
        {"spec: {containers: [{name: task, image: x}]}", "spec.containers: task: image is Skep's"},
        {"spec: {containers: [{name: side}]}", "the only one is \"task\""},
        {"spec: {initContainers: [{name: task}]}", "the only one is \"skep\""},
        {"spec: {containers: {name: task}}", "containers must be a list"},
        {"spec: {containers: [{name: task, resources: {limits: {cpu: 1}}}]}", "cpu is Skep's"},
        {"spec: {containers: [{name: task, resources: {requests: {memory: 1}}}]}",
         "memory is Skep's"},
        {"spec: {containers: [{name: task, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}",
         "NVIDIA_VISIBLE_DEVICES is Skep's"},
        {"spec: {containers: [{name: task, volumeMounts: [{name: x, mountPath: /skep/run}]}]}",
         "/skep/run is Skep's"},
        {"spec: {containers: [{name: task, volumeMounts: [{name: x, mountPath: /skep}]}]}",
         "/skep is Skep's"},
        {"spec: {containers: [{name: task, volumeMounts: [{name: x, mountPath: /dev/shm}]}]}",
         "/dev/shm is Skep's"},
        {"spec: {volumes: [{name: storage-0}]}", "storage-0 is Skep's"},
        {"spec: {resourceClaims: [{name: gpus, resourceClaimName: mine}]}", "gpus is Skep's"},
        {"spec: {volumes: [{name: private}]}", "private is Skep's"},
        {"spec: {volumes: [{hostPath: {path: /}}]}", "spec.volumes[0] has no name"},
        {"spec: {a: 1, a: 2}", "line 1"},
        {"spec: [", "line"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct doc *doc;
        struct err err;
        assert_int_equal(pod_template_read(text_of(cases[i].yaml), &arena, &doc, &err),
                         ERR_INVALID);
        assert_string_equal(err.path, "engine.kubernetes.podTemplate");
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].yaml, err.text);
        assert_null(doc);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(maps_and_named_items_are_merged),
    cmocka_unit_test(other_values_take_the_place_of_skeps),
    cmocka_unit_test(what_makes_a_pod_a_task_is_skeps_alone),
};

UNIT_FILE(tests, setup, teardown);
