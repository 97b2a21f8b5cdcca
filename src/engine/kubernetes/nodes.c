/* nodes.c — the nodes of the cluster that are Skep's. */
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/state.h"
#include "sys/log.h"
#include <string.h>

static void node_tell(const struct kube *kube, const struct kube_node *node, struct tells *tells)
{
    struct node_facts facts = node->facts;
    if (kube->is_unreachable && node->is_there) {
        facts.is_healthy = false;
        facts.reason = "the API server of its cluster cannot be reached";
    }
    if (!node->is_there)
        facts.reason = "the cluster has it no more";
    tells_add(tells, &(struct engine_event){.kind = node->is_there ? ENGINE_NODE : ENGINE_NODE_LOST,
                                            .node = &facts,
                                            .reason = facts.reason});
}

static bool facts_are_same(const struct node_facts *a, const struct node_facts *b)
{
    return node_facts_are_alike(a, b) && a->is_healthy == b->is_healthy &&
           strcmp(a->reason, b->reason) == 0 && strcmp(a->address, b->address) == 0;
}

static struct kube_node *node_find(struct kube *kube, const char *name)
{
    uint32_t at = text_map_get(&kube->node_names, text_of(name));
    return at == MAP_NONE ? NULL : &kube->nodes.items[at];
}

static void node_lose(struct kube *kube, struct kube_node *node, struct tells *tells)
{
    if (!node->is_there)
        return;
    node->is_there = false;
    node_tell(kube, node, tells);
    tasks_leave(kube, node->facts.name);
}

static void node_take(struct kube *kube, const struct node_facts *facts, uint32_t mark,
                      struct tells *tells)
{
    struct kube_node *node = node_find(kube, facts->name);
    const bool is_news = !node || !node->is_there || !facts_are_same(&node->facts, facts);
    if (!node)
        node = ARRAY_ADD(&kube->nodes);
    node->is_there = true;
    node->mark = mark;
    if (!is_news)
        return;
    node_facts_copy(&node->facts, facts);
    text_map_set(&kube->node_names, text_of(node->facts.name),
                 (uint32_t)(node - kube->nodes.items));
    node_tell(kube, node, tells);
}

void nodes_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                struct tells *tells)
{
    struct node_facts facts;
    struct err err;
    if (is_removed) {
        struct kube_node *node = node_find(kube, object_string(object, "metadata.name"));
        if (node)
            node_lose(kube, node, tells);
        return;
    }
    if (node_object_read(object, &kube->settings.nodes, &tells->arena, &facts, &err) < 0) {
        log_warning("engine", "kubernetes: the node %.100s is passed over: %s",
                    object_string(object, "metadata.name"), err.text);
        return;
    }
    node_take(kube, &facts, mark, tells);
}

void nodes_sweep(struct kube *kube, uint32_t mark, struct tells *tells)
{
    for (size_t i = 0; i < kube->nodes.count; i++)
        if (kube->nodes.items[i].mark < mark)
            node_lose(kube, &kube->nodes.items[i], tells);
}

void nodes_tell(struct kube *kube, struct tells *tells)
{
    for (size_t i = 0; i < kube->nodes.count; i++)
        if (kube->nodes.items[i].is_there)
            node_tell(kube, &kube->nodes.items[i], tells);
}

void nodes_free(struct kube *kube)
{
    for (size_t i = 0; i < kube->nodes.count; i++)
        node_facts_release(&kube->nodes.items[i].facts);
    ARRAY_FREE(&kube->nodes);
    text_map_release(&kube->node_names);
}
