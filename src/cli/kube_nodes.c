/* kube_nodes.c — see kube_check.h: nodes that fit, what GPUs they offer, and whether the API server
 * reaches their kubelets. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "cli/kube_check.h"
#include "cli/kube_daemons.h"
#include "cli/print.h"
#include "kube/quantity.h"

enum { PAGE_MAX = 500, PAGES_MAX = 200, KUBELETS_TRIED = 3, STATUS_FORBIDDEN = 403 };

struct nodes {
    size_t count, ready, cordoned, tainted, open, old;
    size_t with_plugin, with_label;
    long long gpus, labelled;
    size_t with_infiniband;
    size_t with_own_users;
    const char *taint;                 /* of one that is tainted */
    const char *tried[KUBELETS_TRIED]; /* ready ones */
    size_t tried_count;
    bool is_cut; /* there are more than were read */
    json_t *daemon_sets;
    int daemons_status;          /* of the request for these; 200: they are known */
    struct kube_daemons daemons; /* the most on one node */
    struct kube_reserve needed;  /* likewise: what must not be offered to tasks */
};

static const json_t *entry_of(const json_t *list, const char *key, const char *value)
{
    const json_t *item;
    size_t i;
    json_array_foreach (list, i, item) {
        const char *text = field_text(item, key);
        if (text && strcmp(text, value) == 0)
            return item;
    }
    return NULL;
}

static bool is_ready(const json_t *status)
{
    const char *ready =
        field_text(entry_of(json_object_get(status, "conditions"), "type", "Ready"), "status");
    return ready && strcmp(ready, "True") == 0;
}

/* Returns whether the node has Skep's own. */
static bool taints_count(struct kube_judge *judge, const json_t *spec, struct nodes *nodes)
{
    bool has_own = false, has_other = false;
    const json_t *taint;
    size_t i;
    json_array_foreach (json_object_get(spec, "taints"), i, taint) {
        const char *key = field_text(taint, "key"), *effect = field_text(taint, "effect");
        if (!key || !effect || strcmp(effect, "PreferNoSchedule") == 0)
            continue;
        const bool is_own = strcmp(key, judge->wants->taint) == 0;
        /* of a cordoned node; it is counted as such */
        const bool is_cordon = strcmp(key, "node.kubernetes.io/unschedulable") == 0;
        has_own = has_own || is_own;
        if (!is_own && !is_cordon) {
            has_other = true;
            nodes->taint = arena_format(judge->arena, "%.60s:%.20s", key, effect);
        }
    }
    nodes->tainted += has_other;
    nodes->open += !has_own;
    return has_own;
}

/* "v1.34.2" */
static bool is_old(const char *version)
{
    const char *dot = version ? strchr(version, '.') : NULL;
    return !dot || (strncmp(version, "v1.", 3) == 0 && strtol(dot + 1, NULL, 10) < KUBE_MINOR_MIN);
}

static void devices_count(struct kube_judge *judge, const json_t *node, struct nodes *nodes)
{
    const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
    const json_t *amounts = json_object_get(json_object_get(node, "status"), "allocatable");
    const char *amount = field_text(amounts, judge->wants->gpu_resource);
    const char *label = field_text(labels, "nvidia.com/gpu.count");
    const long long offered = amount ? strtoll(amount, NULL, 10) : 0;
    const long long labelled = label ? strtoll(label, NULL, 10) : 0;
    const char *adapters = field_text(amounts, judge->wants->infiniband_resource);
    nodes->with_infiniband += adapters && strtoll(adapters, NULL, 10) > 0;
    nodes->with_plugin += offered > 0;
    nodes->with_label += offered > 0 || labelled > 0;
    nodes->gpus += offered;
    nodes->labelled += offered > 0 ? offered : labelled;
}

/* Its runtime gives pods user ids of their own, as kubelets of 1.31 and newer tell. */
static bool has_own_users(const struct kube_judge *judge, const json_t *status)
{
    const json_t *handler;
    size_t i;
    json_array_foreach (json_object_get(status, "runtimeHandlers"), i, handler) {
        const char *name = field_text(handler, "name");
        const json_t *features = json_object_get(handler, "features");
        if (name && strcmp(name, judge->wants->runtime_class) == 0)
            return json_is_true(json_object_get(features, "userNamespaces"));
    }
    return false;
}

static int64_t milli_of(const json_t *amounts, const char *resource)
{
    const char *amount = field_text(amounts, resource);
    int64_t milli = 0;
    return amount && quantity_read(text_of(amount), &milli) ? milli : 0;
}

static void raise_to(int64_t *most, int64_t value)
{
    if (value > *most)
        *most = value;
}

/* What Skep would offer of the node is whole processors, so that a fraction is left anyway; and as
 * a task has one at least, so many pods are reached on large nodes alone. */
static void daemons_count(const json_t *node, bool has_taint, const struct kube_wants *wants,
                          struct nodes *nodes)
{
    const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
    const json_t *amounts = json_object_get(json_object_get(node, "status"), "allocatable");
    const struct kube_daemons daemons =
        kube_daemons_of(nodes->daemon_sets, labels, has_taint ? wants->taint : NULL);
    const int64_t cpu = milli_of(amounts, "cpu"), pods = milli_of(amounts, "pods") / 1000;
    const int64_t count = (int64_t)daemons.pods;
    raise_to(&nodes->daemons.cpu_milli, daemons.cpu_milli);
    raise_to(&nodes->daemons.memory, daemons.memory);
    if (daemons.pods > nodes->daemons.pods)
        nodes->daemons.pods = daemons.pods;
    raise_to(&nodes->needed.cpu, (daemons.cpu_milli - cpu % 1000 + 999) / 1000);
    raise_to(&nodes->needed.memory_mib, (daemons.memory + (1 << 20) - 1) >> 20);
    if (pods > 0 && cpu / 1000 + count > pods)
        raise_to(&nodes->needed.pods, count);
}

static void node_count(struct kube_judge *judge, const json_t *node, struct nodes *nodes)
{
    const json_t *spec = json_object_get(node, "spec"), *status = json_object_get(node, "status");
    const char *name = field_text(json_object_get(node, "metadata"), "name");
    const bool has_ready = is_ready(status);
    nodes->count++;
    nodes->ready += has_ready;
    nodes->cordoned += json_is_true(json_object_get(spec, "unschedulable"));
    nodes->old += is_old(field_text(json_object_get(status, "nodeInfo"), "kubeletVersion"));
    daemons_count(node, taints_count(judge, spec, nodes), judge->wants, nodes);
    devices_count(judge, node, nodes);
    nodes->with_own_users += has_own_users(judge, status);
    if (name && has_ready && nodes->tried_count < KUBELETS_TRIED)
        nodes->tried[nodes->tried_count++] = arena_copy(judge->arena, text_of(name));
}

static void encode(struct buf *out, const char *value)
{
    for (; *value; value++)
        if (strchr("-._~", *value) || (*value >= '0' && *value <= '9') ||
            (*value >= 'a' && *value <= 'z') || (*value >= 'A' && *value <= 'Z'))
            buf_char(out, *value);
        else
            buf_format(out, "%%%02X", (unsigned char)*value);
}

/* Those of all namespaces. */
static void daemon_sets_read(struct kube_judge *judge, struct nodes *nodes)
{
    cleanup_reply struct kube_reply reply = {0};
    kube_ask_send(judge->ask, "/apis/apps/v1/daemonsets", NULL, false, &reply);
    nodes->daemons_status = reply.status;
    nodes->daemon_sets = json_incref(json_object_get(reply.json, "items"));
}

/* False: they cannot be listed, and a finding says why. */
static bool nodes_read(struct kube_judge *judge, struct nodes *nodes)
{
    cleanup_buf struct buf next = BUF_INIT, path = BUF_INIT;
    cleanup_reply struct kube_reply reply = {0};
    const json_t *node;
    size_t i;
    for (int page = 0; page < PAGES_MAX; page++) {
        buf_clear(&path);
        buf_format(&path, "/api/v1/nodes?limit=%d&labelSelector=", PAGE_MAX);
        encode(&path, judge->wants->selector);
        buf_string(&path, "&continue=");
        encode(&path, buf_cstr(&next));
        kube_ask_send(judge->ask, buf_cstr(&path), NULL, false, &reply);
        if (reply.status != 200) {
            kube_find(judge, "nodes",
                      reply.status == STATUS_FORBIDDEN ? MACHINE_UNKNOWN : MACHINE_MISSING,
                      reply.status == STATUS_FORBIDDEN ? "who asks may not list nodes"
                                                       : "see that the node selector is one",
                      "%.118s", reply.trouble);
            return false;
        }
        json_array_foreach (json_object_get(reply.json, "items"), i, node)
            node_count(judge, node, nodes);
        const char *more = field_text(json_object_get(reply.json, "metadata"), "continue");
        if (!more || !more[0])
            return true;
        buf_clear(&next);
        buf_string(&next, more);
    }
    nodes->is_cut = true;
    return true;
}

static void nodes_find(struct kube_judge *judge, const struct nodes *nodes)
{
    const char *selector = judge->wants->selector;
    if (nodes->count == 0) {
        kube_find(judge, "nodes", MACHINE_MISSING,
                  "no task can run: label Skep's nodes, or name another selector",
                  "none with %.90s", selector[0] ? selector : "any labels");
        return;
    }
    kube_find(judge, "nodes", nodes->ready > nodes->cordoned ? MACHINE_GOOD : MACHINE_MISSING,
              "no task can run: look at them with kubectl describe node",
              "%s%zu, %zu ready, %zu cordoned", nodes->is_cut ? "the first " : "", nodes->count,
              nodes->ready, nodes->cordoned);
    if (nodes->old > 0)
        kube_find(judge, "kubelet version", MACHINE_LESS, "Skep needs kubelets of 1.27 or newer",
                  "%zu nodes have an older one", nodes->old);
    if (nodes->tainted > 0)
        kube_find(judge, "taints", nodes->tainted == nodes->count ? MACHINE_MISSING : MACHINE_LESS,
                  "these nodes get no tasks: take the taint off, or select other nodes",
                  "%zu nodes have another one than Skep's: %.70s", nodes->tainted, nodes->taint);
    kube_find(judge, "own nodes", nodes->open == 0 ? MACHINE_GOOD : MACHINE_LESS,
              arena_format(judge->arena,
                           "pods of others take room there that Skep does not count: kubectl taint "
                           "node NODE %s=:NoSchedule",
                           judge->wants->taint),
              nodes->open == 0 ? "all nodes have Skep's taint" : "%zu nodes lack Skep's taint",
              nodes->open);
}

static void reserve_find(struct kube_judge *judge, const struct nodes *nodes)
{
    const struct kube_reserve *own = &judge->wants->reserve, *needed = &nodes->needed;
    const bool is_enough = own->cpu >= needed->cpu && own->memory_mib >= needed->memory_mib &&
                           own->pods >= needed->pods;
    if (nodes->daemons_status != 200) {
        kube_find(judge, "node reserve", MACHINE_UNKNOWN,
                  "what pods of DaemonSets request of the nodes only who may list daemon sets of "
                  "all namespaces can see",
                  "not known");
        return;
    }
    kube_find(judge, "node reserve", is_enough ? MACHINE_GOOD : MACHINE_LESS,
              arena_format(judge->arena,
                           "a task that fills a node is refused there again and again: "
                           "nodeReserve: {cpu: %lld, memoryMB: %lld, pods: %lld}",
                           (long long)needed->cpu, (long long)needed->memory_mib,
                           (long long)needed->pods),
              "DaemonSets: at most %zu pod%s, %lldm CPU, %lld MiB on a node", nodes->daemons.pods,
              nodes->daemons.pods == 1 ? "" : "s", (long long)nodes->daemons.cpu_milli,
              (long long)(nodes->daemons.memory >> 20));
}

/* --- GPUs --- */

/* The claims name it; the API server does not look whether it is there, but quotas count by it. */
static void class_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    const char *name = judge->wants->device_class;
    kube_ask_send(judge->ask,
                  arena_format(judge->arena, "/apis/resource.k8s.io/v1/deviceclasses/%s", name),
                  NULL, false, &reply);
    if (reply.status == STATUS_FORBIDDEN)
        kube_find(judge, "device class", MACHINE_UNKNOWN,
                  "only who may get device classes can see whether it is there", "%.90s", name);
    else
        kube_find(judge, "device class", reply.status == 200 ? MACHINE_GOOD : MACHINE_MISSING,
                  "it comes with the DRA driver: install it, or name another in deviceClass",
                  reply.status == 200 ? "%.90s" : "there is no %.90s", name);
}

static void dra_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    const json_t *slice;
    size_t i, devices = 0;
    kube_ask_send(judge->ask,
                  arena_format(judge->arena,
                               "/apis/resource.k8s.io/v1/resourceslices?limit=500&fieldSelector="
                               "spec.driver%%3D%s",
                               judge->wants->device_driver),
                  NULL, false, &reply);
    json_array_foreach (json_object_get(reply.json, "items"), i, slice)
        devices += json_array_size(json_object_get(json_object_get(slice, "spec"), "devices"));
    if (reply.status == STATUS_FORBIDDEN)
        kube_find(judge, "GPUs", MACHINE_UNKNOWN, "who asks may not list resource slices", "%.118s",
                  reply.trouble);
    else if (reply.status != 200)
        kube_find(judge, "GPUs", MACHINE_MISSING,
                  "gpus: dra needs resource.k8s.io/v1, which Kubernetes 1.34 has", "%.118s",
                  reply.trouble);
    else
        kube_find(judge, "GPUs", devices > 0 ? MACHINE_GOOD : MACHINE_MISSING,
                  "no node offers devices: install the DRA driver of their GPUs, and see that its "
                  "pods run on these nodes",
                  "%zu devices of %.60s in resource slices", devices, judge->wants->device_driver);
    if (reply.status == 200)
        class_check(judge);
}

static void gpus_check(struct kube_judge *judge, const struct nodes *nodes)
{
    const struct kube_wants *wants = judge->wants;
    const bool is_by_plugin = wants->way == KUBE_WAY_DEVICE_PLUGIN;
    const size_t with = is_by_plugin ? nodes->with_plugin : nodes->with_label;
    const long long gpus = is_by_plugin ? nodes->gpus : nodes->labelled;
    if (wants->way == KUBE_WAY_DRA) {
        dra_check(judge);
        return;
    }
    kube_find(judge, "GPUs",
              with > 0            ? MACHINE_GOOD
              : wants->needs_gpus ? MACHINE_MISSING
                                  : MACHINE_LESS,
              is_by_plugin ? "tasks with GPUs wait for ever: install the device plugin, and see "
                             "that its pods run on these nodes"
                           : "tasks with GPUs wait for ever: label the nodes nvidia.com/gpu.count, "
                             "as GPU feature discovery does",
              "%lld on %zu of %zu nodes (%.60s)", gpus, with, nodes->count,
              is_by_plugin ? wants->gpu_resource : "nvidia.com/gpu.count");
}

static void infiniband_check(struct kube_judge *judge, const struct nodes *nodes)
{
    const char *resource = judge->wants->infiniband_resource;
    if (resource[0])
        kube_find(judge, "InfiniBand", nodes->with_infiniband > 0 ? MACHINE_GOOD : MACHINE_MISSING,
                  "tasks with infiniband: true are refused by every node: install the device "
                  "plugin of the adapters, and see that its pods run on these nodes",
                  "%zu of %zu nodes offer %.70s", nodes->with_infiniband, nodes->count, resource);
}

static void users_check(struct kube_judge *judge, const struct nodes *nodes)
{
    const bool are_required = strcmp(judge->wants->users, "required") == 0;
    if (strcmp(judge->wants->users, "off") == 0)
        return;
    kube_find(judge, "user namespaces",
              nodes->with_own_users == nodes->count        ? MACHINE_GOOD
              : nodes->with_own_users == 0 && are_required ? MACHINE_MISSING
                                                           : MACHINE_LESS,
              are_required ? "the other nodes get no tasks: they need Linux 6.3, containerd 2.0 or "
                             "CRI-O 1.25, and a kubelet that tells it"
                           : "on the other nodes root of a task is root of the node",
              "the runtime of %zu of %zu nodes has them", nodes->with_own_users, nodes->count);
}

/* --- kubelets --- */

/* What one of the nodes answers to the API server; the status of the first that answers well, or of
 * the last one. */
static int kubelet_ask(struct kube_judge *judge, const struct nodes *nodes, const char *path,
                       struct kube_reply *reply)
{
    for (size_t i = 0; i < nodes->tried_count; i++) {
        kube_ask_send(
            judge->ask,
            arena_format(judge->arena, "/api/v1/nodes/%s/proxy/%s", nodes->tried[i], path), NULL,
            false, reply);
        if (reply->status == 200)
            break;
    }
    return reply->status;
}

static void kubelets_check(struct kube_judge *judge, const struct nodes *nodes)
{
    cleanup_reply struct kube_reply reply = {0};
    if (nodes->tried_count == 0)
        return;
    const int status = kubelet_ask(judge, nodes, "healthz", &reply);
    if (status == STATUS_FORBIDDEN) {
        kube_find(judge, "kubelets", MACHINE_UNKNOWN,
                  "whether the API server reaches them, as logs and skep exec need it, only who "
                  "may proxy to nodes can see",
                  "not tried");
        return;
    }
    kube_find(judge, "kubelets", status == 200 ? MACHINE_GOOD : MACHINE_MISSING,
              "logs of tasks stay empty, and skep exec fails: the API server must reach port 10250 "
              "of the nodes",
              "%.118s", status == 200 ? "the API server reaches them" : reply.trouble);
    if (status != 200)
        return;
    const bool has_metrics = kubelet_ask(judge, nodes, "metrics/resource", &reply) == 200;
    kube_find(judge, "kubelet metrics", has_metrics ? MACHINE_GOOD : MACHINE_LESS,
              "dashboards lack the use of whole nodes; tasks tell their own",
              has_metrics ? "offered" : "%.118s", reply.trouble);
}

void kube_nodes_check(struct kube_judge *judge)
{
    struct nodes nodes = {0};
    daemon_sets_read(judge, &nodes);
    const bool are_read = nodes_read(judge, &nodes);
    json_decref(nodes.daemon_sets);
    if (!are_read)
        return;
    nodes_find(judge, &nodes);
    if (nodes.count == 0)
        return;
    reserve_find(judge, &nodes);
    gpus_check(judge, &nodes);
    infiniband_check(judge, &nodes);
    users_check(judge, &nodes);
    kubelets_check(judge, &nodes);
}
