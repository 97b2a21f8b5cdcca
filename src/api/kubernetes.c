/* Nodes and tasks in the shapes of Kubernetes, whatever runs them: for OpenPAI's portal and for
 * scripts that asked the cluster through early PAI. Read only. */
#include "api/handlers.h"
#include "base/memory.h"
#include "base/utc.h"
#include "core/plan.h"
#include <stdio.h>

enum { PODS_MAX = 5000 };

#define POD_NAMESPACE "default"

static void list_begin(struct json_writer *json, const char *kind)
{
    json_object(json);
    json_key_string(json, "kind", kind);
    json_key_string(json, "apiVersion", "v1");
    json_key(json, "metadata");
    json_object(json);
    json_object_end(json);
    json_key(json, "items");
    json_array(json);
}

static void list_end(struct json_writer *json)
{
    json_array_end(json);
    json_object_end(json);
}

static void instant(struct json_writer *json, const char *key, int64_t at_ms)
{
    char text[UTC_SIZE];
    json_key_string(json, key, at_ms ? utc_instant(at_ms, text) : NULL);
}

/* Quantities are texts there. */
static void resources(struct json_writer *json, const char *key, uint64_t cpu, uint64_t memory_mib,
                      uint64_t gpu)
{
    char text[32];
    json_key(json, key);
    json_object(json);
    snprintf(text, sizeof text, "%llu", (unsigned long long)cpu);
    json_key_string(json, "cpu", text);
    snprintf(text, sizeof text, "%lluMi", (unsigned long long)memory_mib);
    json_key_string(json, "memory", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)gpu);
    json_key_string(json, "nvidia.com/gpu", text);
    json_object_end(json);
}

/* ---- nodes ---- */

static void node_address(struct json_writer *json, const char *type, const char *address)
{
    json_object(json);
    json_key_string(json, "type", type);
    json_key_string(json, "address", address);
    json_object_end(json);
}

static void node_status(struct json_writer *json, const struct node_record *node)
{
    const struct node_facts *facts = &node->facts;
    bool is_ready = facts->is_healthy && !node->is_lost;
    json_key(json, "status");
    json_object(json);
    resources(json, "capacity", facts->cpu, facts->memory_mib, facts->gpu_count);
    resources(json, "allocatable", facts->cpu, facts->memory_mib, facts->gpu_count);
    json_key(json, "addresses");
    json_array(json);
    node_address(json, "InternalIP", facts->address);
    node_address(json, "Hostname", facts->name);
    json_array_end(json);
    json_key(json, "conditions");
    json_array(json);
    json_object(json);
    json_key_string(json, "type", "Ready");
    json_key_string(json, "status", node->is_lost ? "Unknown" : is_ready ? "True" : "False");
    json_key_string(json, "reason", is_ready ? "EngineReady" : "EngineNotReady");
    json_key_string(json, "message", facts->reason ? facts->reason : "");
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

static void node_json(struct json_writer *json, const struct node_record *node)
{
    json_object(json);
    json_key(json, "metadata");
    json_object(json);
    json_key_string(json, "name", node->facts.name);
    json_key(json, "labels");
    json_object(json);
    json_key_string(json, "kubernetes.io/hostname", node->facts.name);
    json_key_string(json, "pai-worker", "true");
    if (node->facts.gpu_type && node->facts.gpu_type[0])
        json_key_string(json, "gpu-type", node->facts.gpu_type);
    json_object_end(json);
    json_object_end(json);
    json_key(json, "spec");
    json_object(json);
    json_key_bool(json, "unschedulable", node->is_cordoned);
    json_object_end(json);
    node_status(json, node);
    json_object_end(json);
}

static int nodes_read(struct call *call, struct store_nodes *nodes)
{
    if (!call_reader(call))
        return call->err.code;
    return store_nodes(call->reader, call->arena, nodes, &call->err);
}

int handle_kubernetes_nodes(struct call *call)
{
    struct store_nodes nodes = {0};
    int code = nodes_read(call, &nodes);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    list_begin(&json, "NodeList");
    for (size_t i = 0; i < nodes.count; i++)
        node_json(&json, &nodes.items[i]);
    list_end(&json);
    return 0;
}

int handle_kubernetes_node(struct call *call)
{
    struct store_nodes nodes = {0};
    int code = nodes_read(call, &nodes);
    for (size_t i = 0; !code && i < nodes.count; i++) {
        if (!text_is(call->parameters[0], nodes.items[i].facts.name))
            continue;
        struct json_writer json;
        call_json(call, 200, &json);
        node_json(&json, &nodes.items[i]);
        return 0;
    }
    if (code)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoNodeError", "", "there is no node %.*s",
                     TEXT_ARG(call->parameters[0]));
}

/* ---- pods: the tasks that have a container ---- */

static const char *phase_of(const struct task_record *task)
{
    switch (life_public_attempt(task->state, task->completion.code)) {
    case PUBLIC_WAITING:
        return "Pending";
    case PUBLIC_RUNNING:
    case PUBLIC_STOPPING:
        return "Running";
    case PUBLIC_SUCCEEDED:
        return "Succeeded";
    case PUBLIC_STOPPED:
    case PUBLIC_FAILED:
        return "Failed";
    case PUBLIC_UNKNOWN:
        break;
    }
    return "Unknown";
}

static void pod_labels(struct json_writer *json, const struct store_job *job,
                       const struct task_record *task)
{
    char text[16];
    json_key(json, "labels");
    json_object(json);
    json_key_string(json, "type", "kube-launcher-task");
    json_key_string(json, "userName", job->record.user);
    json_key_string(json, "jobName", job->record.name);
    json_key_string(json, "virtualCluster", job->record.virtual_cluster);
    json_key_string(json, "FC_TASKROLE_NAME", task->role_name);
    snprintf(text, sizeof text, "%u", task->task.index);
    json_key_string(json, "FC_TASK_INDEX", text);
    json_object_end(json);
}

static void pod_json(struct json_writer *json, const struct store_job *job, const struct plan *plan,
                     const struct task_record *task)
{
    char name[32];
    bool is_placed = task->node && task->node[0];
    snprintf(name, sizeof name, "skep-%llu", (unsigned long long)task->attempt.v);
    json_object(json);
    json_key(json, "metadata");
    json_object(json);
    json_key_string(json, "name", name);
    json_key_string(json, "namespace", POD_NAMESPACE);
    json_key_string(json, "uid", name);
    instant(json, "creationTimestamp", task->attempt_created_ms);
    pod_labels(json, job, task);
    json_object_end(json);
    json_key(json, "spec");
    json_object(json);
    json_key_string(json, "nodeName", is_placed ? task->node : NULL);
    json_key(json, "containers");
    json_array(json);
    json_object(json);
    json_key_string(json, "name", "app");
    json_key(json, "resources");
    json_object(json);
    if (task->task.role < plan->role_count) {
        const struct plan_role *role = &plan->roles[task->task.role];
        resources(json, "limits", role->cpu, role->memory_mib, role->gpu);
    }
    json_object_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
    json_key(json, "status");
    json_object(json);
    json_key_string(json, "phase", phase_of(task));
    json_key_string(json, "hostIP", is_placed ? task->address : NULL);
    json_key_string(json, "podIP", is_placed ? task->address : NULL);
    instant(json, "startTime", task->attempt_launched_ms);
    json_object_end(json);
    json_object_end(json);
}

/* Where pods go, and how many may still go there. */
struct pods {
    struct json_writer *json;
    struct text name; /* only this one; at == NULL: all */
    struct text node; /* only those on it; at == NULL: on all */
    uint64_t room;
};

static bool is_wanted(const struct pods *pods, const struct task_record *task)
{
    char name[32];
    if (!task->attempt.v || task->state == LIFE_COMPLETED)
        return false;
    if (pods->node.at && !(task->node && text_is(pods->node, task->node)))
        return false;
    snprintf(name, sizeof name, "skep-%llu", (unsigned long long)task->attempt.v);
    return !pods->name.at || text_is(pods->name, name);
}

static int pods_of_job(struct call *call, const struct store_job *job, struct pods *pods)
{
    struct store_tasks tasks = {0};
    cleanup_plan struct plan *plan = NULL;
    int code = store_tasks(call->reader, job->record.id, -1, call->arena, &tasks, &call->err);
    if (!code)
        code = store_job_plan(call->reader, job->record.id, &plan, &call->err);
    for (size_t i = 0; !code && i < tasks.count; i++) {
        if (!is_wanted(pods, &tasks.items[i]))
            continue;
        pod_json(pods->json, job, plan, &tasks.items[i]);
        pods->room -= pods->room > 0;
    }
    return code == ERR_NOT_FOUND ? 0 : code; /* deleted meanwhile */
}

/* All jobs with tasks, oldest first, after one. A page ends with a whole job. */
static int pods_list(struct call *call, struct pods *pods, uint32_t after, uint32_t *last)
{
    struct job_filter filter = {.states = 1u << PUBLIC_WAITING | 1u << PUBLIC_RUNNING |
                                          1u << PUBLIC_STOPPING,
                                .limit = UINT32_MAX,
                                .skips_total = true};
    struct job_page page;
    int code = call_reader(call) ? 0 : call->err.code;
    *last = 0;
    if (code)
        return code;
    store_job_list(call->api->service->store, &filter, call->arena, &page);
    for (size_t i = 0; !code && i < page.count; i++) {
        const struct store_job *job = &page.items[i];
        if (job->record.id.v <= after)
            continue;
        if (!pods->room)
            return 0;
        code = pods_of_job(call, job, pods);
        *last = job->record.id.v;
    }
    *last = 0; /* that was all */
    return code;
}

/* Everything of ours is in one namespace. */
static bool is_our_namespace(const struct call *call)
{
    struct text name =
        call->parameters[0].at ? call->parameters[0] : exchange_query(call->exchange, "namespace");
    return !name.at || text_is(name, POD_NAMESPACE);
}

/* Kubernetes has selectors of many fields; of pods, those of a node are asked for. */
static int pods_node(struct call *call, struct text *node)
{
    const struct text prefix = TEXT("spec.nodeName=");
    struct text selector = exchange_query(call->exchange, "fieldSelector");
    if (!selector.length)
        return 0;
    if (!text_starts(selector, prefix))
        return call_fail(call, ERR_INVALID, NULL, "fieldSelector",
                         "fieldSelector must be spec.nodeName=NODE");
    *node = (struct text){selector.at + prefix.length, selector.length - prefix.length};
    return 0;
}

int handle_kubernetes_pods(struct call *call)
{
    cleanup_buf struct buf items = BUF_INIT;
    struct json_writer inner, json;
    int64_t after, limit;
    uint32_t last = 0;
    int code = call_number(call, "continue", 0, UINT32_MAX, 0, &after);
    if (!code)
        code = call_number(call, "limit", 0, PODS_MAX, PODS_MAX, &limit);
    struct text node = {0};
    if (!code)
        code = pods_node(call, &node);
    if (code)
        return code;
    struct pods pods = {.json = &inner, .node = node, .room = limit ? (uint64_t)limit : PODS_MAX};
    json_init(&inner, &items);
    json_array(&inner);
    if (is_our_namespace(call))
        code = pods_list(call, &pods, (uint32_t)after, &last);
    json_array_end(&inner);
    if (code)
        return code;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "kind", "PodList");
    json_key_string(&json, "apiVersion", "v1");
    json_key(&json, "metadata");
    json_object(&json);
    if (last)
        json_key_string(&json, "continue", arena_format(call->arena, "%u", last));
    json_object_end(&json);
    json_key(&json, "items");
    json_raw(&json, buf_as_text(&items));
    json_object_end(&json);
    return 0;
}

int handle_kubernetes_pod(struct call *call)
{
    cleanup_buf struct buf item = BUF_INIT;
    struct json_writer inner;
    uint32_t last;
    struct pods pods = {.json = &inner, .name = call->parameters[1], .room = PODS_MAX};
    json_init(&inner, &item);
    int code = is_our_namespace(call) ? pods_list(call, &pods, 0, &last) : 0;
    if (code)
        return code;
    if (!item.length)
        return call_fail(call, ERR_NOT_FOUND, "NoTaskError", "", "there is no pod %.*s",
                         TEXT_ARG(call->parameters[1]));
    call_text(call, 200, "application/json; charset=utf-8", buf_as_text(&item));
    return 0;
}
