#include "engine/kubernetes/pod_make.h"

#include <assert.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/kubernetes/claim.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/pod_template.h"
#include "engine/kubernetes/pod_volumes.h"
#include "init/layout.h"

/* where the volume with the program and the files' places are, in the container that makes them; it
 * may be any user, and the task gets the volume read-only */
#define BRING_COMMAND                                                                              \
    "set -e; cp -f /usr/lib/skep/skep-init /skep/init; chmod 0755 /skep/init; "                    \
    "mkdir -p /skep/log /skep/run /skep/private; : >/skep/job; : >/skep/task; : >/skep/relay"

/* Each task has an address of its own, which its kubelet knows now; those of others come later. */
#define BRING_ADDRESS "; printf %s \"$" POD_ADDRESS_VARIABLE "\" >/skep/network; : >/skep/peers"

/* --- what can be made --- */

static bool image_is_remote(const char *image)
{
    static const char *const local[] = {"docker-archive:", "oci:", "oci-archive:", "dir:", "/"};
    for (size_t i = 0; i < COUNT_OF(local); i++)
        if (text_starts(text_of(image), text_of(local[i])))
            return false;
    return true;
}

int pod_check(const struct container *container, const struct pod_settings *settings,
              struct err *err)
{
    size_t bytes = 0;
    assert(container->attempt.v > 0 && container->node);
    if (!image_is_remote(container->image))
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "a pod's image comes from a registry, %.120s is a file of one machine",
                        container->image);
    int code = pod_mounts_check(container, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < container->mount_count; i++)
        if (pod_template_mounts_at(settings->template_, container->mounts[i].target))
            return err_fail(err, ERR_UNSUPPORTED, "",
                            "engine.kubernetes.podTemplate mounts something at %.100s, where the "
                            "job wants a storage",
                            container->mounts[i].target);
    if (container->wants_infiniband && !settings->infiniband_resource[0])
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "engine.kubernetes.infinibandResource does not say what offers InfiniBand");
    if (settings->nodes.gpus == KUBE_GPUS_DRA && !container->is_gpu_simulated &&
        container->gpu_count > DEVICES_CLAIM_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%zu GPUs, a resource claim takes %d",
                        container->gpu_count, DEVICES_CLAIM_MAX);
    for (size_t i = 0; i < container->file_count; i++)
        bytes += container->files[i].content.length;
    if (bytes > POD_SECRET_MAX)
        return err_fail(err, ERR_TOO_BIG, "",
                        "the files of the task have %zu bytes, a secret of Kubernetes takes %d",
                        bytes, POD_SECRET_MAX);
    return 0;
}

/* --- what both objects share --- */

static void metadata_write(struct json_writer *json, const struct container *container,
                           const struct pod_settings *settings, const char *devices)
{
    char name[OBJECT_NAME_SIZE], number[24], task[300];
    object_name(name, settings->instance, container->attempt);
    snprintf(number, sizeof number, "%llu", (unsigned long long)container->attempt.v);
    snprintf(task, sizeof task, "%.250s/%u", container->role, container->index);
    json_key(json, "metadata");
    json_object(json);
    json_key_string(json, "name", name);
    json_key_string(json, "namespace", settings->space);
    json_key(json, "labels");
    json_object(json);
    json_key_string(json, "app.kubernetes.io/managed-by", "skep");
    json_key_string(json, OBJECT_LABEL_INSTANCE, settings->instance);
    json_key_string(json, OBJECT_LABEL_ATTEMPT, number);
    json_object_end(json);
    json_key(json, "annotations");
    json_object(json);
    json_key_string(json, OBJECT_NOTE_JOB, container->job);
    json_key_string(json, OBJECT_NOTE_TASK, task);
    if (devices)
        json_key_string(json, OBJECT_NOTE_DEVICES, devices);
    json_object_end(json);
    json_object_end(json);
}

/* --- the secret --- */

static void base64_put(struct buf *out, struct text bytes)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    const unsigned char *at = (const unsigned char *)bytes.at;
    for (size_t i = 0; i < bytes.length; i += 3) {
        const size_t count = bytes.length - i < 3 ? bytes.length - i : 3;
        uint32_t word = (uint32_t)at[i] << 16;
        if (count > 1)
            word |= (uint32_t)at[i + 1] << 8;
        if (count > 2)
            word |= at[i + 2];
        buf_char(out, digits[word >> 18]);
        buf_char(out, digits[word >> 12 & 63]);
        buf_char(out, digits[count > 1 ? word >> 6 & 63 : 64]);
        buf_char(out, digits[count > 2 ? word & 63 : 64]);
    }
}

static void wipe(struct buf *buf)
{
    if (buf->at)
        explicit_bzero(buf->at, buf->room);
    buf_release(buf);
}

static void data_write(struct json_writer *json, const char *name, struct text bytes)
{
    struct buf encoded = BUF_INIT;
    base64_put(&encoded, bytes);
    json_key_text(json, name, buf_as_text(&encoded));
    wipe(&encoded);
}

/* The registry that an image names, as Docker's files call it. */
static struct text registry_of(const char *image)
{
    struct text rest = text_of(image), first = text_cut(&rest, '/');
    const bool is_host =
        rest.at && (memchr(first.at, '.', first.length) || memchr(first.at, ':', first.length) ||
                    text_is(first, "localhost"));
    return is_host ? first : TEXT("https://index.docker.io/v1/");
}

static void login_write(struct json_writer *json, const struct container *container)
{
    struct buf file = BUF_INIT, pair = BUF_INIT, encoded = BUF_INIT, registry = BUF_INIT;
    struct json_writer login;
    buf_format(&pair, "%s:%s", container->registry_user, container->registry_password);
    base64_put(&encoded, buf_as_text(&pair));
    buf_text(&registry, registry_of(container->image));
    json_init(&login, &file);
    json_object(&login);
    json_key(&login, "auths");
    json_object(&login);
    json_key(&login, buf_cstr(&registry));
    json_object(&login);
    json_key_text(&login, "auth", buf_as_text(&encoded));
    json_object_end(&login);
    json_object_end(&login);
    json_object_end(&login);
    data_write(json, ".dockerconfigjson", buf_as_text(&file));
    wipe(&file);
    wipe(&pair);
    wipe(&encoded);
    buf_release(&registry);
}

static bool has_login(const struct container *container)
{
    return container->registry_user && container->registry_user[0];
}

void pod_secret_write(const struct container *container, const struct pod_settings *settings,
                      struct buf *out)
{
    struct json_writer json;
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "apiVersion", "v1");
    json_key_string(&json, "kind", "Secret");
    metadata_write(&json, container, settings, NULL);
    json_key_string(&json, "type",
                    has_login(container) ? "kubernetes.io/dockerconfigjson" : "Opaque");
    json_key_bool(&json, "immutable", true);
    json_key(&json, "data");
    json_object(&json);
    for (size_t i = 0; i < container->file_count; i++)
        data_write(&json, container->files[i].name, container->files[i].content);
    if (has_login(container))
        login_write(&json, container);
    json_object_end(&json);
    json_object_end(&json);
}

/* --- the pod --- */

/* Requests are not named: they are what the limits are, and the pod is of class Guaranteed. */
static void resources_write(struct json_writer *json, const struct container *container,
                            const struct pod_settings *settings, bool has_claim)
{
    const struct node_rules *nodes = &settings->nodes;
    json_key(json, "resources");
    json_object(json);
    json_key(json, "limits");
    json_object(json);
    pod_amount_write(json, "cpu", container->cpu, "");
    pod_amount_write(json, "memory", container->memory_mib, "Mi");
    if (container->gpu_count > 0 && !container->is_gpu_simulated && nodes->gpus == KUBE_GPUS_PLUGIN)
        pod_amount_write(json, nodes->gpu_resource, container->gpu_count, "");
    if (container->wants_infiniband)
        pod_amount_write(json, settings->infiniband_resource, 1, "");
    json_object_end(json);
    if (has_claim) {
        json_key(json, "claims");
        json_raw(json, TEXT("[{\"name\":\"" CLAIM_REQUEST "\"}]"));
    }
    json_object_end(json);
}

/* A task without GPUs would see all of them where NVIDIA's runtime is the default one; to that
 * runtime "void" says that it has nothing to do: what a driver prepares comes by CDI. */
static void environment_write(struct json_writer *json, const struct container *container,
                              const struct node_rules *nodes)
{
    cleanup_buf struct buf devices = BUF_INIT;
    if (container->gpu_count == 0 || container->is_gpu_simulated)
        buf_string(&devices, "none");
    else if (nodes->gpus == KUBE_GPUS_DRA)
        buf_string(&devices, "void");
    else if (nodes->gpus == KUBE_GPUS_ENV)
        for (size_t i = 0; i < container->gpu_count; i++)
            buf_format(&devices, "%s%u", i > 0 ? "," : "", container->gpus[i]);
    if (devices.length > 0) {
        json_key(json, "env");
        json_array(json);
        json_object(json);
        json_key_string(json, "name", "NVIDIA_VISIBLE_DEVICES");
        json_key_text(json, "value", buf_as_text(&devices));
        json_object_end(json);
        json_array_end(json);
    }
}

/* What is registered with an adapter of InfiniBand is locked in memory. */
static void rights_write(struct json_writer *json, bool wants_infiniband)
{
    static const char *const added[] = {"IPC_LOCK"};
    static const char *const dropped[] = {"NET_RAW", "MKNOD", "AUDIT_WRITE"};
    json_key(json, "securityContext");
    json_object(json);
    json_key_bool(json, "allowPrivilegeEscalation", false);
    json_key(json, "capabilities");
    json_object(json);
    json_key_strings(json, "drop", dropped, COUNT_OF(dropped));
    if (wants_infiniband)
        json_key_strings(json, "add", added, COUNT_OF(added));
    json_object_end(json);
    json_object_end(json);
}

static void containers_write(struct json_writer *json, const struct container *container,
                             const struct pod_settings *settings, bool has_claim)
{
    const bool has_address = settings->network.mode == KUBE_NETWORK_POD;
    const char *const bring[] = {"/bin/sh", "-c",
                                 has_address ? BRING_COMMAND BRING_ADDRESS : BRING_COMMAND};
    static const char *const init[] = {LAYOUT_INIT};
    json_key(json, "initContainers");
    json_array(json);
    json_object(json);
    json_key_string(json, "name", POD_CONTAINER_INIT);
    json_key_string(json, "image", settings->init_image);
    json_key_strings(json, "command", bring, COUNT_OF(bring));
    if (has_address) {
        json_key(json, "env");
        json_raw(json, TEXT("[{\"name\":\"" POD_ADDRESS_VARIABLE "\",\"valueFrom\":{\"fieldRef\":"
                            "{\"fieldPath\":\"status.podIP\"}}}]"));
    }
    resources_write(json, container, settings, false); /* no more than the task: it comes after */
    pod_program_mount_write(json);
    rights_write(json, false);
    json_object_end(json);
    json_array_end(json);
    json_key(json, "containers");
    json_array(json);
    json_object(json);
    json_key_string(json, "name", POD_CONTAINER_TASK);
    json_key_string(json, "image", container->image);
    json_key_strings(json, "command", init, COUNT_OF(init));
    environment_write(json, container, &settings->nodes);
    resources_write(json, container, settings, has_claim);
    pod_mounts_write(json, container);
    rights_write(json, container->wants_infiniband);
    json_object_end(json);
    json_array_end(json);
}

static void tolerations_write(struct json_writer *json, const char *taint)
{
    if (!taint[0])
        return;
    json_key(json, "tolerations");
    json_array(json);
    json_object(json);
    json_key_string(json, "key", taint);
    json_key_string(json, "operator", "Exists");
    json_object_end(json);
    json_array_end(json);
}

static void secrets_name(struct json_writer *json, const char *secret)
{
    json_key(json, "imagePullSecrets");
    json_array(json);
    json_object(json);
    json_key_string(json, "name", secret);
    json_object_end(json);
    json_array_end(json);
}

static void claim_name(struct json_writer *json, const char *claim)
{
    json_key(json, "resourceClaims");
    json_array(json);
    json_object(json);
    json_key_string(json, "name", CLAIM_REQUEST);
    json_key_string(json, "resourceClaimName", claim);
    json_object_end(json);
    json_array_end(json);
}

static void network_write(struct json_writer *json, const struct container *container,
                          const struct pod_settings *settings)
{
    const char *cluster = container->virtual_cluster ? container->virtual_cluster : "";
    assert(!settings->has_own_users || !pod_network_is_host(&settings->network, cluster));
    if (pod_network_is_host(&settings->network, cluster)) {
        json_key_bool(json, "hostNetwork", true);
        json_key_string(json, "dnsPolicy", "ClusterFirstWithHostNet");
    }
    if (settings->has_own_users)
        json_key_bool(json, "hostUsers", false);
}

static void plain_write(const struct container *container, const struct pod_settings *settings,
                        const char *devices, struct buf *out)
{
    char name[OBJECT_NAME_SIZE];
    struct json_writer json;
    object_name(name, settings->instance, container->attempt);
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "apiVersion", "v1");
    json_key_string(&json, "kind", "Pod");
    metadata_write(&json, container, settings, devices);
    json_key(&json, "spec");
    json_object(&json);
    json_key_string(&json, "nodeName", container->node);
    json_key_string(&json, "restartPolicy", "Never");
    network_write(&json, container, settings);
    json_key_bool(&json, "automountServiceAccountToken", false);
    json_key_bool(&json, "enableServiceLinks", false);
    json_key_int(&json, "terminationGracePeriodSeconds", POD_GRACE_S);
    if (settings->service_account[0])
        json_key_string(&json, "serviceAccountName", settings->service_account);
    if (settings->runtime_class[0])
        json_key_string(&json, "runtimeClassName", settings->runtime_class);
    if (settings->priority_class[0])
        json_key_string(&json, "priorityClassName", settings->priority_class);
    json_key(&json, "securityContext");
    json_raw(&json, TEXT("{\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"));
    tolerations_write(&json, settings->nodes.taint);
    if (has_login(container))
        secrets_name(&json, name);
    containers_write(&json, container, settings, devices != NULL);
    if (devices)
        claim_name(&json, name);
    pod_volumes_write(&json, container, settings->log_mib, name);
    json_object_end(&json);
    json_object_end(&json);
}

void pod_write(const struct container *container, const struct pod_settings *settings,
               const char *devices, struct buf *out)
{
    cleanup_buf struct buf plain = BUF_INIT;
    if (!settings->template_) {
        plain_write(container, settings, devices, out);
        return;
    }
    plain_write(container, settings, devices, &plain);
    pod_template_merge(buf_as_text(&plain), settings->template_, out);
}
