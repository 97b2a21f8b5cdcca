#include "engine/kubernetes/kubernetes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/forward.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_make.h"
#include "engine/kubernetes/pod_template.h"
#include "engine/kubernetes/secret_note.h"
#include "engine/kubernetes/state.h"
#include "init/layout.h"
#include "sys/clock.h"
#include "sys/file.h"

enum { LIST_WAIT_S = 30, LOG_KEEP_S = 30 * 86400, LOG_KEEP_MIB = 10240 };

static struct kube *kube_of(struct engine *engine)
{
    return (struct kube *)engine;
}

static int unknown(struct attempt_id attempt, struct err *err)
{
    return err_fail(err, ERR_NOT_FOUND, "", "there is no attempt %llu",
                    (unsigned long long)attempt.v);
}

/* --- the port --- */

static void kube_free(struct engine *engine)
{
    struct kube *kube = kube_of(engine);
    kube_gpus_stop(kube);
    kube_fetches_end(kube); /* they ask by the client, and tell its thread */
    kube_reasons_end(kube);
    kube_tellings_end(kube);
    kube_forwards_free(kube->forwards);
    kube_client_free(kube->client);
    kube_metrics_release(kube);
    logs_close(kube);
    tasks_free(kube);
    nodes_free(kube);
    id_map_release(&kube->noted);
    pthread_cond_destroy(&kube->synced);
    pthread_mutex_destroy(&kube->lock);
    arena_wipe(&kube->arena); /* it has the token and the key */
    arena_release(&kube->arena);
    mem_free(kube);
}

static bool is_synced(const struct kube *kube)
{
    bool are_synced = true;
    for (size_t i = 0; i < kube->follow_count; i++)
        are_synced = are_synced && kube->follows[i].is_synced;
    return are_synced;
}

/* On the client's thread, as all that is told. */
static void all_tell(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)key, (void)answer;
    kube_enter(kube, &tells);
    kube->is_listed = true;
    logs_listed(kube);
    nodes_tell(kube, &tells);
    for (size_t i = 0; i < kube->tasks.count; i++)
        kube_task_tell(kube->tasks.items[i], &tells);
    kube_leave(kube, &tells);
}

static int kube_list(struct engine *engine, struct attempt_id **attempts, size_t *count,
                     struct err *err)
{
    struct kube *kube = kube_of(engine);
    const struct timespec until = clock_moment(clock_monotonic_ms() + LIST_WAIT_S * 1000);
    int waited = 0, code = 0;
    *attempts = NULL;
    *count = 0;
    pthread_mutex_lock(&kube->lock);
    while (!is_synced(kube) && waited == 0)
        waited = pthread_cond_timedwait(&kube->synced, &kube->lock, &until);
    if (!is_synced(kube))
        code = err_fail(err, ERR_UNAVAILABLE, "", "%.200s",
                        kube->trouble[0] ? kube->trouble : "the API server does not answer");
    if (code == 0)
        *attempts = mem_alloc(mem_size(kube->tasks.count + 1, sizeof **attempts));
    for (size_t i = 0; code == 0 && i < kube->tasks.count; i++)
        if (kube->tasks.items[i]->state != TASK_FORGOTTEN)
            (*attempts)[(*count)++] = kube->tasks.items[i]->attempt;
    pthread_mutex_unlock(&kube->lock);
    if (code == 0)
        kube_client_send(kube->client, &(struct kube_call){.context = kube, .done = all_tell}, 0);
    return code;
}

/* Under the lock. */
static int users_choose(struct kube *kube, const struct container *container, bool *has_own_users,
                        struct err *err)
{
    const struct kube_node *node = kube_node_find(kube, container->node);
    const bool can = node && node->is_there && node->has_own_users;
    const char *cluster = container->virtual_cluster ? container->virtual_cluster : "";
    *has_own_users = pod_network_has_own_users(&kube->settings.network, cluster, can);
    if (kube->settings.network.users == KUBE_USERS_REQUIRED && !*has_own_users)
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "node %.100s gives pods no user ids of their own now", container->node);
    return 0;
}

static int kube_create(struct engine *engine, const struct container *container, struct err *err)
{
    struct kube *kube = kube_of(engine);
    cleanup_buf struct buf devices = BUF_INIT;
    bool has_own_users = false;
    const bool wants_claim = kube->settings.nodes.gpus == KUBE_GPUS_DRA &&
                             container->gpu_count > 0 && !container->is_gpu_simulated;
    int code = pod_check(container, &kube->settings, err);
    if (code < 0)
        return code;
    secret_note_put(kube->secret_notes,
                    container->attempt); /* not under the lock: it is the disk's */
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, container->attempt);
    if (!task && kube->is_unreachable)
        code = err_fail(err, ERR_UNAVAILABLE, "", "the cluster cannot be reached: %.180s",
                        kube->trouble);
    if (!task && code == 0)
        code = nodes_check(kube, container, err);
    if (!task && code == 0)
        code = users_choose(kube, container, &has_own_users, err);
    if (!task && code == 0 && wants_claim)
        code = nodes_pick(kube, container, &devices, err);
    if (!task && code == 0) {
        task = kube_task_add(kube, container->attempt, container->node);
        task->has_own_users = has_own_users;
        task->devices = wants_claim ? mem_copy(buf_cstr(&devices)) : NULL;
        task_log_begin(kube, container->attempt, container->job);
        kube_task_begin(kube, task, container);
    }
    pthread_mutex_unlock(&kube->lock);
    if (code < 0)
        secret_note_drop(kube->secret_notes, container->attempt);
    return code;
}

/* Whoever asks for the end of what has ended does not know. */
static void task_again(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    const struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task)
        kube_task_tell(task, &tells);
    kube_leave(kube, &tells);
}

static int kube_kill(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                     const char *reason, bool is_held, struct err *err)
{
    struct kube *kube = kube_of(engine);
    (void)is_held;
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, attempt);
    const bool is_there = task && task->state != TASK_FORGOTTEN;
    int code = is_there ? 0 : unknown(attempt, err);
    const bool is_ended = is_there && task->state == TASK_ENDED;
    if (is_there)
        kube_task_kill(kube, task, grace_ms, reason ? reason : "");
    pthread_mutex_unlock(&kube->lock);
    if (is_ended)
        kube_client_send(kube->client,
                         &(struct kube_call){.context = kube, .key = attempt.v, .done = task_again},
                         0);
    return code;
}

static int kube_forget(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    struct kube *kube = kube_of(engine);
    int code = 0;
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, attempt);
    if (!task || task->state == TASK_FORGOTTEN)
        code = unknown(attempt, err);
    else if (task->state != TASK_ENDED)
        code = err_fail(err, ERR_CONFLICT, "", "attempt %llu still runs",
                        (unsigned long long)attempt.v);
    else
        kube_task_forget(kube, task);
    pthread_mutex_unlock(&kube->lock);
    return code;
}

static int kube_connect(struct engine *engine, struct attempt_id attempt, uint16_t port,
                        struct err *err)
{
    struct kube *kube = kube_of(engine);
    char name[OBJECT_NAME_SIZE], pod[KUBE_PATH_SIZE];
    int code = kube_task_check(kube, attempt, err);
    if (code < 0)
        return code;
    object_name(name, kube->settings.instance, attempt);
    snprintf(pod, sizeof pod, "/api/v1/namespaces/%s/pods/%s", kube->settings.space, name);
    return kube_forward_open(kube->forwards, pod, port, err);
}

static const struct engine_ops kube_ops = {
    .name = "kubernetes",
    .free = kube_free,
    .list = kube_list,
    .create = kube_create,
    .kill = kube_kill,
    .forget = kube_forget,
    .log_read = kube_log_read,
    .log_time = kube_log_time,
    .log_watch = kube_log_watch,
    .stats = kube_stats,
    .node_stats = kube_node_stats,
    .exec = kube_exec,
    .connect = kube_connect,
    .gpus = kube_gpus,
    .tell_addresses = kube_tell_addresses,
};

/* --- made --- */

static const char *setting(struct kube *kube, const char *value, const char *otherwise)
{
    return arena_copy(&kube->arena, text_of(value && *value ? value : otherwise));
}

static const char *selector_encoded(struct kube *kube, const char *selector)
{
    cleanup_buf struct buf out = BUF_INIT;
    object_encode(&out, selector ? selector : "");
    return arena_copy(&kube->arena, buf_as_text(&out));
}

/* What skep-init keeps of all streams, and as much again for one that a slow disk holds up. */
static uint64_t log_mib_of(const struct engine_kubernetes_config *config)
{
    const uint64_t segment_mib =
        config->log_segment_mib ? config->log_segment_mib : LAYOUT_SEGMENT_BYTES >> 20;
    return segment_mib * LOG_STORE_STREAMS * (LAYOUT_SEGMENTS_KEPT + 1);
}

static void slices_make(struct kube *kube, const struct engine_kubernetes_config *config)
{
    kube->slices.driver = setting(kube, config->device_driver, KUBE_DEVICE_DRIVER);
    kube->slices.type_attribute = setting(kube, config->gpu_type_attribute, KUBE_TYPE_ATTRIBUTE);
    struct feed *feed = &kube->follows[FOLLOW_SLICES].feed;
    feed_init(feed, "/apis/resource.k8s.io/v1/resourceslices", "");
    feed->fields = arena_format(&kube->arena, "spec.driver%%3D%s",
                                selector_encoded(kube, kube->slices.driver));
    kube->follow_count = FOLLOWS;
}

static struct pod_network network_kept(struct kube *kube, const struct pod_network *from)
{
    struct pod_network network = *from;
    const char **clusters = ARENA_ARRAY(&kube->arena, const char *, from->host_cluster_count);
    for (size_t i = 0; i < from->host_cluster_count; i++)
        clusters[i] = arena_copy(&kube->arena, text_of(from->host_clusters[i]));
    network.host_clusters = clusters;
    return network;
}

static int settings_make(struct kube *kube, const struct engine_kubernetes_config *config,
                         struct err *err)
{
    struct pod_settings *settings = &kube->settings;
    const char *space = kube->access.space[0] ? kube->access.space : "default";
    *settings = (struct pod_settings){
        .instance = setting(kube, config->instance, "skep"),
        .space = setting(kube, config->space, space),
        .init_image = setting(kube, config->init_image, ""),
        .runtime_class = setting(kube, config->runtime_class, ""),
        .priority_class = setting(kube, config->priority_class, ""),
        .service_account = setting(kube, config->service_account, ""),
        .infiniband_resource = setting(kube, config->infiniband_resource, ""),
        .log_mib = log_mib_of(config),
        .network = network_kept(kube, &config->network),
        .device_class = setting(kube, config->device_class, KUBE_DEVICE_DRIVER),
        .nodes = {.gpus = config->gpus,
                  .gpu_resource = setting(kube, config->gpu_resource, "nvidia.com/gpu"),
                  .gpu_count_label = "nvidia.com/gpu.count",
                  .gpu_type_label = setting(kube, config->gpu_type_label, "nvidia.com/gpu.product"),
                  .taint = setting(kube, config->taint, ENGINE_KUBERNETES_TAINT),
                  .reserve = config->node_reserve},
    };
    if (settings->network.users == KUBE_USERS_REQUIRED)
        settings->nodes.users_handler = settings->runtime_class;
    if (pod_network_check(&settings->network, err) < 0)
        return ERR_INVALID;
    if (config->gpus != KUBE_GPUS_DRA &&
        (config->device_driver || config->device_class || config->gpu_type_attribute))
        return err_fail(err, ERR_INVALID, "engine.kubernetes",
                        "deviceDriver, deviceClass and gpuTypeAttribute are of gpus: dra");
    if (config->gpus == KUBE_GPUS_DRA && config->gpu_resource)
        return err_fail(err, ERR_INVALID, "engine.kubernetes.gpuResource",
                        "with gpus: dra nothing is asked of a device plugin");
    if (!object_instance_is_good(text_of(settings->instance)))
        return err_fail(err, ERR_INVALID, "engine.kubernetes.instance",
                        "\"%.60s\" is no name that pods may begin with: small letters, digits and "
                        "-, at most %d, a letter first",
                        settings->instance, OBJECT_INSTANCE_MAX);
    if (!settings->init_image[0])
        return err_fail(err, ERR_INVALID, "engine.kubernetes.initImage",
                        "an image that has skep-init must be named");
    feed_init(&kube->follows[FOLLOW_NODES].feed, "/api/v1/nodes",
              selector_encoded(kube, config->node_selector));
    feed_init(&kube->follows[FOLLOW_PODS].feed,
              arena_format(&kube->arena, "/api/v1/namespaces/%s/pods", settings->space),
              arena_format(&kube->arena, "skep.internal%%2Finstance%%3D%s", settings->instance));
    kube->gpu_metrics.port = config->gpu_metrics_port;
    kube->gpu_metrics.path = setting(kube, config->gpu_metrics_path, KUBE_GPU_METRICS_PATH);
    kube->follow_count = FOLLOW_SLICES;
    if (config->gpus == KUBE_GPUS_DRA)
        slices_make(kube, config);
    return 0;
}

/* Of a file that the operator writes. */
static int template_make(struct kube *kube, const char *path, struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    if (!path)
        return 0;
    int code = file_read(path, POD_TEMPLATE_BYTES_MAX, &bytes, err);
    if (code == 0)
        code = pod_template_read(buf_as_text(&bytes), &kube->arena, &kube->settings.template_, err);
    return code;
}

static int access_make(struct kube *kube, const struct engine_kubernetes_config *config,
                       struct err *err)
{
    if (config->kubeconfig)
        return kube_access_of_files(config->kubeconfig, config->context ? config->context : "",
                                    &kube->arena, &kube->access, err);
    return kube_access_of_pod(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
                              ACCESS_POD_FOLDER, &kube->arena, &kube->access, err);
}

int engine_kubernetes_new(const struct engine_kubernetes_config *config, struct engine_sink sink,
                          struct engine **engine, struct err *err)
{
    struct kube *kube = mem_zero(1, sizeof *kube);
    kube->engine.ops = &kube_ops;
    kube->engine.capabilities = ENGINE_CAN(ENGINE_CAN_EXEC) | ENGINE_CAN(ENGINE_CAN_CONNECT);
    if (config->gpus != KUBE_GPUS_PLUGIN)
        kube->engine.capabilities |= ENGINE_CAN(ENGINE_CAN_EXACT_DEVICES);
    if (config->network.mode == KUBE_NETWORK_POD)
        kube->engine.capabilities |= ENGINE_CAN(ENGINE_CAN_TELL_ADDRESSES);
    kube->logs.segment_bytes = config->log_segment_mib << 20;
    kube->logs.room_bytes = (config->log_keep_mib ? config->log_keep_mib : LOG_KEEP_MIB) << 20;
    kube->logs.keep_s = config->log_keep_s ? config->log_keep_s : LOG_KEEP_S;
    kube->late_ms = KUBE_LATE_MS;
    kube->ping_ms = KUBE_PING_MS;
    kube->logs.fetch_silence_ms = KUBE_FETCH_SILENCE_MS;
    kube->metrics.is_off = config->is_node_metrics_off;
    kube->metrics.again_ms = KUBE_METRICS_AGAIN_MS;
    kube->node_lost_ms = 1000 * (config->node_lost_s ? config->node_lost_s : KUBE_NODE_LOST_S);
    kube->sink = sink;
    watcher_init(&kube->logs.collector);
    watcher_init(&kube->gpu_metrics.watcher);
    arena_init(&kube->arena);
    pthread_mutex_init(&kube->lock, NULL);
    clock_condition_init(&kube->synced);
    int code = kube_fetches_open(kube, err);
    if (code == 0)
        code = access_make(kube, config, err);
    if (code == 0)
        code = settings_make(kube, config, err);
    if (code == 0)
        code = template_make(kube, config->pod_template, err);
    if (code == 0 && config->directory)
        code = logs_open(kube, config->directory, err);
    if (code == 0)
        code = kube_client_new(&kube->access,
                               (struct kube_watcher){kube, follow_failed, follow_answered},
                               &kube->client, err);
    if (code == 0)
        code =
            kube_forwards_new(kube->client, &kube->access, KUBE_FORWARDS_MAX, &kube->forwards, err);
    if (code == 0)
        code = logs_start(kube, err);
    if (code == 0)
        code = kube_gpus_start(kube, err);
    if (code < 0) {
        kube_free(&kube->engine);
        return code;
    }
    kube_metrics_start(kube);
    follows_start(kube);
    *engine = &kube->engine;
    return 0;
}
