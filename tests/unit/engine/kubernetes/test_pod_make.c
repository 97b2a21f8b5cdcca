#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/engine.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_make.h"
#include "engine/kubernetes/pod_template.h"
#include "scratch.h"

static const struct pod_settings settings = {
    .instance = "skep",
    .space = "jobs",
    .init_image = "registry.lab/skep:1",
    .runtime_class = "",
    .priority_class = "",
    .service_account = "",
    .infiniband_resource = "",
    .nodes = {.gpu_resource = "nvidia.com/gpu", .taint = "skep.internal/dedicated"},
};
static const uint16_t gpus[] = {2, 3};
static const struct engine_file files[] = {{"job", {"j", 1}, 0444},
                                           {"task", {"to", 2}, 0400},
                                           {"three", {"abc", 3}, 0400},
                                           {"none", {"", 0}, 0400}};

static struct container container_plain(void)
{
    return (struct container){
        .attempt = {42},
        .job = "ann~train",
        .role = "worker",
        .index = 3,
        .node = "gpu-7",
        .image = "registry.lab:5000/team/torch:2",
        .registry_user = "",
        .registry_password = "",
        .cpu = 8,
        .memory_mib = 4096,
        .files = files,
        .file_count = 2,
    };
}

static const struct doc *parsed(const struct buf *json)
{
    return json_of(buf_as_text(json));
}

static const struct doc *pod_of(const struct container *container, const struct pod_settings *by)
{
    cleanup_buf struct buf json = BUF_INIT;
    pod_write(container, by, NULL, &json);
    return parsed(&json);
}

static const struct doc *first(const struct doc *pod, const char *list)
{
    const struct doc *containers = object_at(pod, list);
    assert_int_equal(doc_count(containers), 1);
    return containers->as.list.items[0];
}

static void a_pod_has_its_place_and_its_name(void **state)
{
    (void)state;
    struct container container = container_plain();
    const struct doc *pod = pod_of(&container, &settings);
    assert_string_equal(object_string(pod, "metadata.name"), "skep-42");
    assert_string_equal(object_string(pod, "metadata.namespace"), "jobs");
    assert_int_equal(object_attempt(pod, "skep").v, 42);
    assert_string_equal(
        doc_get(object_at(pod, "metadata.annotations"), "skep.internal/job")->as.string.at,
        "ann~train");
    assert_string_equal(
        doc_get(object_at(pod, "metadata.annotations"), "skep.internal/task")->as.string.at,
        "worker/3");
    assert_string_equal(object_string(pod, "spec.nodeName"), "gpu-7");
    assert_string_equal(object_string(pod, "spec.restartPolicy"), "Never");
    assert_true(object_at(pod, "spec.hostNetwork")->as.boolean);
    assert_false(object_at(pod, "spec.automountServiceAccountToken")->as.boolean);
    assert_null(object_at(pod, "metadata.finalizers"));
    assert_null(object_at(pod, "spec.runtimeClassName"));
    assert_null(object_at(pod, "spec.imagePullSecrets"));
    const struct doc *toleration = first(pod, "spec.tolerations");
    assert_string_equal(object_string(toleration, "key"), "skep.internal/dedicated");
}

static const struct doc *variable_of(const struct doc *container, const char *name)
{
    const struct doc *list = object_at(container, "env");
    for (size_t i = 0; i < doc_count(list); i++)
        if (strcmp(object_string(list->as.list.items[i], "name"), name) == 0)
            return list->as.list.items[i];
    return NULL;
}

static const char *bring_of(const struct doc *pod)
{
    const struct doc *words = object_at(first(pod, "spec.initContainers"), "command");
    assert_int_equal(doc_count(words), 3);
    return words->as.list.items[2]->as.string.at;
}

/* In the cluster's network a pod brings its own address along. */
static void a_pod_is_in_one_network(void **state)
{
    static const char *const lab[] = {"lab"};
    struct container container = container_plain();
    struct pod_settings other = settings;
    (void)state;
    const struct doc *pod = pod_of(&container, &settings);
    assert_string_equal(object_string(pod, "spec.dnsPolicy"), "ClusterFirstWithHostNet");
    assert_null(object_at(pod, "spec.hostUsers"));
    assert_null(strstr(bring_of(pod), "/skep/network"));
    assert_null(variable_of(first(pod, "spec.initContainers"), "SKEP_POD_ADDRESS"));

    other.network = (struct pod_network){
        .mode = KUBE_NETWORK_POD, .host_clusters = lab, .host_cluster_count = 1};
    pod = pod_of(&container, &other);
    assert_null(object_at(pod, "spec.hostNetwork"));
    assert_null(object_at(pod, "spec.dnsPolicy"));
    assert_non_null(strstr(bring_of(pod), "\"$SKEP_POD_ADDRESS\" >/skep/network; : >/skep/peers"));
    const struct doc *address = variable_of(first(pod, "spec.initContainers"), "SKEP_POD_ADDRESS");
    assert_string_equal(object_string(address, "valueFrom.fieldRef.fieldPath"), "status.podIP");
    other.has_own_users = true;
    assert_false(object_at(pod_of(&container, &other), "spec.hostUsers")->as.boolean);

    /* a right of its virtual cluster: its address is told in the same way */
    other.has_own_users = false;
    container.virtual_cluster = "lab";
    pod = pod_of(&container, &other);
    assert_true(object_at(pod, "spec.hostNetwork")->as.boolean);
    assert_non_null(strstr(bring_of(pod), "/skep/peers"));
}

static void a_container_has_its_limits(void **state)
{
    (void)state;
    struct container container = container_plain();
    const struct doc *pod = pod_of(&container, &settings), *task = first(pod, "spec.containers");
    assert_string_equal(object_string(task, "name"), "task");
    assert_string_equal(object_string(task, "image"), "registry.lab:5000/team/torch:2");
    assert_string_equal(object_string(task, "resources.limits.cpu"), "8");
    assert_string_equal(object_string(task, "resources.limits.memory"), "4096Mi");
    assert_null(doc_get(object_at(task, "resources.limits"), "nvidia.com/gpu"));
    assert_string_equal(object_at(task, "command")->as.list.items[0]->as.string.at, "/skep/init");
    assert_string_equal(object_string(first(pod, "spec.initContainers"), "image"),
                        "registry.lab/skep:1");
    assert_int_equal(doc_count(object_at(pod, "spec.volumes")), 5);
    container.shm_mib = 512;
    pod = pod_of(&container, &settings);
    assert_int_equal(doc_count(object_at(pod, "spec.volumes")), 6);
    const struct doc *shm = object_at(pod, "spec.volumes")->as.list.items[5];
    assert_string_equal(object_string(shm, "emptyDir.sizeLimit"), "512Mi");
}

static const char *visible_devices(const struct doc *pod)
{
    const struct doc *env = object_at(first(pod, "spec.containers"), "env");
    return env ? object_string(env->as.list.items[0], "value") : NULL;
}

static void a_claim_is_named_by_its_pod(void **state)
{
    (void)state;
    static const uint16_t many[33] = {0};
    cleanup_buf struct buf json = BUF_INIT;
    struct container container = container_plain();
    struct pod_settings dra = settings;
    struct err err;
    dra.nodes.gpus = KUBE_GPUS_DRA;
    container.gpus = gpus;
    container.gpu_count = 2;
    assert_int_equal(pod_check(&container, &dra, &err), 0);
    pod_write(&container, &dra, "gpu.test 2=n/gpu-2 3=n/gpu-3", &json);
    const struct doc *pod = parsed(&json);
    assert_string_equal(object_note(pod, OBJECT_NOTE_DEVICES), "gpu.test 2=n/gpu-2 3=n/gpu-3");
    assert_string_equal(object_string(first(pod, "spec.resourceClaims"), "name"), "gpus");
    assert_string_equal(object_string(first(pod, "spec.resourceClaims"), "resourceClaimName"),
                        "skep-42");
    const struct doc *task = first(pod, "spec.containers");
    assert_string_equal(object_string(first(task, "resources.claims"), "name"), "gpus");
    assert_null(doc_get(object_at(task, "resources.limits"), "nvidia.com/gpu"));
    assert_null(object_at(first(pod, "spec.initContainers"), "resources.claims"));
    assert_string_equal(visible_devices(pod), "void");
    container.gpus = many;
    container.gpu_count = COUNT_OF(many);
    assert_int_equal(pod_check(&container, &dra, &err), ERR_TOO_BIG);
    assert_string_equal(err.text, "33 GPUs, a resource claim takes 32");
    container.is_gpu_simulated = true;
    assert_int_equal(pod_check(&container, &dra, &err), 0);
    /* without GPUs there is none */
    container.gpu_count = 0;
    pod = pod_of(&container, &dra);
    assert_null(object_at(pod, "spec.resourceClaims"));
    assert_string_equal(visible_devices(pod), "none");
}

static void gpus_are_asked_for_as_configured(void **state)
{
    (void)state;
    struct container container = container_plain();
    struct pod_settings env = settings;
    env.nodes.gpus = KUBE_GPUS_ENV;
    /* none: CUDA images would see all of them otherwise */
    assert_string_equal(visible_devices(pod_of(&container, &settings)), "none");
    container.gpus = gpus;
    container.gpu_count = 2;
    const struct doc *pod = pod_of(&container, &settings);
    assert_null(visible_devices(pod));
    const struct doc *limits = object_at(first(pod, "spec.containers"), "resources.limits");
    assert_string_equal(doc_get(limits, "nvidia.com/gpu")->as.string.at, "2");
    pod = pod_of(&container, &env);
    assert_string_equal(visible_devices(pod), "2,3");
    assert_null(
        doc_get(object_at(first(pod, "spec.containers"), "resources.limits"), "nvidia.com/gpu"));
    container.is_gpu_simulated = true;
    pod = pod_of(&container, &settings);
    assert_string_equal(visible_devices(pod), "none");
    assert_null(
        doc_get(object_at(first(pod, "spec.containers"), "resources.limits"), "nvidia.com/gpu"));
}

static void classes_are_the_operators(void **state)
{
    (void)state;
    struct container container = container_plain();
    struct pod_settings by = settings;
    by.runtime_class = "nvidia";
    by.priority_class = "jobs";
    by.service_account = "tasks";
    by.nodes.taint = "";
    const struct doc *pod = pod_of(&container, &by);
    assert_string_equal(object_string(pod, "spec.runtimeClassName"), "nvidia");
    assert_string_equal(object_string(pod, "spec.priorityClassName"), "jobs");
    assert_string_equal(object_string(pod, "spec.serviceAccountName"), "tasks");
    assert_null(object_at(pod, "spec.tolerations"));
}

static const struct doc *secret_of(const struct container *container)
{
    cleanup_buf struct buf json = BUF_INIT;
    pod_secret_write(container, &settings, &json);
    return parsed(&json);
}

static void infiniband_is_what_a_plugin_offers(void **state)
{
    (void)state;
    struct container container = container_plain();
    struct pod_settings with = settings;
    struct err err;
    with.infiniband_resource = "rdma/hca";
    container.wants_infiniband = true;
    assert_int_equal(pod_check(&container, &with, &err), 0);
    const struct doc *pod = pod_of(&container, &with), *task = first(pod, "spec.containers");
    assert_string_equal(doc_get_text(object_at(task, "resources.limits"), "rdma/hca", "").at, "1");
    const struct doc *added = object_at(task, "securityContext.capabilities.add");
    assert_int_equal(doc_count(added), 1);
    assert_true(text_is(added->as.list.items[0]->as.string, "IPC_LOCK"));
    container.wants_infiniband = false;
    task = first(pod_of(&container, &with), "spec.containers");
    assert_null(doc_get(object_at(task, "resources.limits"), "rdma/hca"));
    assert_null(object_at(task, "securityContext.capabilities.add"));
}

static void files_travel_in_a_secret(void **state)
{
    (void)state;
    struct container container = container_plain();
    container.file_count = 4;
    const struct doc *secret = secret_of(&container);
    assert_string_equal(object_string(secret, "metadata.name"), "skep-42");
    assert_string_equal(object_string(secret, "type"), "Opaque");
    assert_string_equal(object_string(secret, "data.job"), "ag==");
    assert_string_equal(object_string(secret, "data.task"), "dG8=");
    assert_string_equal(object_string(secret, "data.three"), "YWJj");
    assert_string_equal(object_string(secret, "data.none"), "");
    const struct doc *pod = pod_of(&container, &settings);
    const struct doc *volume = object_at(pod, "spec.volumes")->as.list.items[1];
    assert_string_equal(object_string(volume, "secret.secretName"), "skep-42");
    assert_int_equal(doc_count(object_at(volume, "secret.items")), 4);
}

static void a_login_is_for_the_images_registry(void **state)
{
    (void)state;
    static const struct {
        const char *image, *login;
    } cases[] = {
        /* {"auths":{"registry.lab:5000":{"auth":"YTpi"}}} */
        {"registry.lab:5000/team/torch:2",
         "eyJhdXRocyI6eyJyZWdpc3RyeS5sYWI6NTAwMCI6eyJhdXRoIjoiWVRwaSJ9fX0="},
        {"localhost/torch", "eyJhdXRocyI6eyJsb2NhbGhvc3QiOnsiYXV0aCI6IllUcGkifX19"},
        {"team/torch",
         "eyJhdXRocyI6eyJodHRwczovL2luZGV4LmRvY2tlci5pby92MS8iOnsiYXV0aCI6IllUcGkifX19"},
        {"torch:2.1",
         "eyJhdXRocyI6eyJodHRwczovL2luZGV4LmRvY2tlci5pby92MS8iOnsiYXV0aCI6IllUcGkifX19"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct container container = container_plain();
        container.image = cases[i].image;
        container.registry_user = "a";
        container.registry_password = "b";
        const struct doc *secret = secret_of(&container);
        assert_string_equal(object_string(secret, "type"), "kubernetes.io/dockerconfigjson");
        assert_string_equal(doc_get(object_at(secret, "data"), ".dockerconfigjson")->as.string.at,
                            cases[i].login);
        const struct doc *pod = pod_of(&container, &settings);
        assert_string_equal(object_string(first(pod, "spec.imagePullSecrets"), "name"), "skep-42");
        /* the login is for kubelet, not for the task */
        const struct doc *volume = object_at(pod, "spec.volumes")->as.list.items[1];
        assert_int_equal(doc_count(object_at(volume, "secret.items")), 2);
    }
    struct container anonymous = container_plain();
    anonymous.registry_user = NULL;
    assert_string_equal(object_string(secret_of(&anonymous), "type"), "Opaque");
}

static void what_is_not_offered_is_refused(void **state)
{
    (void)state;
    static const struct engine_mount mount = {
        .source = "/data", .target = "/mnt/data", .is_root_squashed = true};
    static const char *const images[] = {"docker-archive:/x.tar", "oci:/x", "dir:/x", "/x"};
    struct err err;
    struct container container = container_plain();
    assert_int_equal(pod_check(&container, &settings, &err), 0);
    for (size_t i = 0; i < COUNT_OF(images); i++) {
        container.image = images[i];
        assert_int_equal(pod_check(&container, &settings, &err), ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, images[i]));
    }
    container = container_plain();
    container.mounts = &mount;
    container.mount_count = 1;
    assert_int_equal(pod_check(&container, &settings, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "/mnt/data"));
    container = container_plain();
    container.wants_infiniband = true;
    assert_int_equal(pod_check(&container, &settings, &err), ERR_UNSUPPORTED);
    container = container_plain();
    const struct engine_file big = {"big", {"", POD_SECRET_MAX + 1}, 0400};
    container.files = &big;
    container.file_count = 1;
    assert_int_equal(pod_check(&container, &settings, &err), ERR_TOO_BIG);
}

/* Merged, the two would be one mount: the operator's volume with the storage's folder. */
static void a_storage_is_not_where_the_operator_mounts_something(void **state)
{
    (void)state;
    static const struct engine_mount mount = {
        .source = "", .target = "/data", .claim = "lab", .claim_folder = "ann"};
    struct container container = container_plain();
    struct pod_settings own = settings;
    struct err err;
    container.mounts = &mount;
    container.mount_count = 1;
    assert_int_equal(
        pod_template_read(TEXT("spec: {containers: [{name: task, volumeMounts: [{name: a, "
                               "mountPath: /database}, {name: b, mountPath: /data/}]}]}"),
                          &arena, &own.template_, &err),
        0);
    assert_int_equal(pod_check(&container, &settings, &err), 0);
    assert_int_equal(pod_check(&container, &own, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "/data,"));
    container.mount_count = 0;
    assert_int_equal(pod_check(&container, &own, &err), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_storage_is_not_where_the_operator_mounts_something),
    cmocka_unit_test(a_pod_has_its_place_and_its_name),
    cmocka_unit_test(a_pod_is_in_one_network),
    cmocka_unit_test(a_container_has_its_limits),
    cmocka_unit_test(gpus_are_asked_for_as_configured),
    cmocka_unit_test(a_claim_is_named_by_its_pod),
    cmocka_unit_test(classes_are_the_operators),
    cmocka_unit_test(infiniband_is_what_a_plugin_offers),
    cmocka_unit_test(files_travel_in_a_secret),
    cmocka_unit_test(a_login_is_for_the_images_registry),
    cmocka_unit_test(what_is_not_offered_is_refused),
};

UNIT_FILE(tests, setup, teardown);
