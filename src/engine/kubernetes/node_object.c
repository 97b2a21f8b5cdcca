#include "engine/kubernetes/node_object.h"

#include <assert.h>

#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "kube/quantity.h"

enum { MILLI = 1000 };

/* An amount of status.allocatable, in thousandths; 0: it has none. */
static int amount_read(const struct doc *node, const char *resource, int64_t *milli,
                       struct err *err)
{
    const struct doc *value = doc_get(object_at(node, "status.allocatable"), resource);
    *milli = 0;
    if (!value)
        return 0;
    /* an amount may be written as a number or as a string; both stand in the text alike */
    struct text text = value->kind == DOC_STRING ? value->as.string : value->source;
    if (!quantity_read(text, milli))
        return err_fail(err, ERR_INVALID, "status.allocatable", "%s is no amount: %.*s", resource,
                        (int)(text.length < 40 ? text.length : 40), text.at);
    return 0;
}

static const struct doc *entry_find(const struct doc *list, const char *key, const char *value)
{
    for (size_t i = 0; list && i < list->as.list.count; i++)
        if (strcmp(object_string(list->as.list.items[i], key), value) == 0)
            return list->as.list.items[i];
    return NULL;
}

/* What peers connect to: where nothing else is told, the name must do. */
static const char *address_of(const struct doc *node, const char *name)
{
    static const char *const kinds[] = {"InternalIP", "ExternalIP", "InternalDNS", "Hostname"};
    const struct doc *list = object_at(node, "status.addresses");
    if (list && list->kind != DOC_LIST)
        list = NULL;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *address = object_string(entry_find(list, "type", kinds[i]), "address");
        if (address[0])
            return address;
    }
    return name;
}

/* The first taint that keeps pods of Skep away. */
static const struct doc *taint_find(const struct doc *node, const struct node_rules *rules)
{
    const struct doc *list = doc_get_list(doc_get(node, "spec"), "taints");
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *taint = list->as.list.items[i];
        const char *effect = object_string(taint, "effect");
        if (strcmp(effect, "PreferNoSchedule") != 0 &&
            (!rules->taint[0] || strcmp(object_string(taint, "key"), rules->taint) != 0))
            return taint;
    }
    return NULL;
}

static const struct doc *ready_find(const struct doc *node)
{
    return entry_find(doc_get_list(doc_get(node, "status"), "conditions"), "type", "Ready");
}

bool node_object_offers(const struct doc *node, const char *resource)
{
    int64_t milli = 0;
    return amount_read(node, resource, &milli, NULL) == 0 && milli > 0;
}

/* What is left of an amount, where there may be less than the reserve. */
static uint64_t left_of(uint64_t amount, uint64_t reserve)
{
    return amount > reserve ? amount - reserve : 0;
}

uint32_t node_object_pods(const struct doc *node, const struct node_reserve *reserve)
{
    int64_t milli = 0;
    if (!object_at(node, "status.allocatable.pods") ||
        amount_read(node, "pods", &milli, NULL) < 0 || milli / MILLI > UINT32_MAX)
        return UINT32_MAX;
    return (uint32_t)left_of((uint64_t)milli / MILLI, reserve->pods);
}

bool node_object_is_silent(const struct doc *node)
{
    return strcmp(object_string(ready_find(node), "status"), "Unknown") == 0;
}

bool node_object_has_own_users(const struct doc *node, const char *handler)
{
    const struct doc *list = doc_get_list(doc_get(node, "status"), "runtimeHandlers");
    return doc_get_bool(object_at(entry_find(list, "name", handler), "features"), "userNamespaces",
                        false);
}

/* Why it takes no pods; "": it does. */
static const char *trouble_of(const struct doc *node, const struct node_rules *rules,
                              struct arena *arena)
{
    const struct doc *ready = ready_find(node);
    if (object_string(node, "metadata.deletionTimestamp")[0])
        return "it is being deleted";
    if (!ready)
        return "its kubelet has not said yet that it is ready";
    if (strcmp(object_string(ready, "status"), "True") != 0)
        return arena_format(arena, "it is not ready: %.60s: %.150s", object_string(ready, "reason"),
                            object_string(ready, "message"));
    if (doc_get_bool(doc_get(node, "spec"), "unschedulable", false))
        return "it is cordoned";
    const struct doc *taint = taint_find(node, rules);
    if (taint)
        return arena_format(arena, "it has the taint %.150s:%.40s", object_string(taint, "key"),
                            object_string(taint, "effect"));
    if (rules->users_handler && !node_object_has_own_users(node, rules->users_handler))
        return "its runtime gives pods no user ids of their own (userNamespaces: required)";
    return "";
}

static int gpus_read(const struct doc *node, const struct node_rules *rules,
                     struct node_facts *facts, struct err *err)
{
    int64_t count;
    facts->gpu_type = object_label(node, rules->gpu_type_label);
    if (!facts->gpu_type[0])
        facts->gpu_type = "GPU";
    if (rules->gpus == KUBE_GPUS_DRA)
        return 0;
    int code = amount_read(node, rules->gpu_resource, &count, err);
    if (code < 0)
        return code;
    count /= MILLI;
    if (count == 0 && rules->gpus == KUBE_GPUS_ENV &&
        !text_to_int64(text_of(object_label(node, rules->gpu_count_label)), &count))
        count = 0;
    if (count < 0 || count > NODE_OBJECT_GPUS_MAX)
        return err_fail(err, ERR_INVALID, "status.allocatable", "%lld GPUs, at most %d are managed",
                        (long long)count, NODE_OBJECT_GPUS_MAX);
    facts->gpu_count = (uint32_t)count;
    if (count == 0)
        facts->gpu_type = "";
    return 0;
}

int node_object_read(const struct doc *node, const struct node_rules *rules, struct arena *arena,
                     struct node_facts *facts, struct err *err)
{
    assert(rules->gpu_resource && rules->gpu_type_label && rules->gpu_count_label && rules->taint);
    int64_t cpu = 0, memory = 0;
    *facts = (struct node_facts){.name = object_string(node, "metadata.name"), .engine = ""};
    if (!facts->name[0])
        return err_fail(err, ERR_INVALID, "metadata.name", "the node has no name");
    int code = amount_read(node, "cpu", &cpu, err);
    if (code == 0)
        code = amount_read(node, "memory", &memory, err);
    if (code == 0)
        code = gpus_read(node, rules, facts, err);
    if (code < 0)
        return code;
    cpu /= MILLI;
    memory = memory / MILLI >> 20;
    if (cpu > UINT32_MAX)
        return err_fail(err, ERR_INVALID, "status.allocatable", "%lld processors", (long long)cpu);
    facts->cpu = (uint32_t)left_of((uint64_t)cpu, rules->reserve.cpu);
    facts->memory_mib = left_of((uint64_t)memory, rules->reserve.memory_mib);
    facts->address = address_of(node, facts->name);
    facts->reason = trouble_of(node, rules, arena);
    facts->is_healthy = !facts->reason[0];
    return 0;
}
