/* nodes.c — the nodes of the cluster that are Skep's; docs/rfc/0017-kubernetes-engine.md, "When a
 * node is lost".
 */
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <string.h>

/* Why it takes no tasks, beside what the cluster says; NULL: there is no such reason. */
static const char *hold_of(const struct kube *kube, const struct kube_node *node,
                           struct arena *arena)
{
    if (kube->is_unreachable)
        return "the API server of its cluster cannot be reached";
    if (node->left > 0)
        return arena_format(arena, "%u pod%s of tasks that were given up %s not gone yet",
                            node->left, node->left == 1 ? "" : "s", node->left == 1 ? "is" : "are");
    if (node->is_held)
        return arena_format(arena, "its devices were refused %u times in a row: %.150s",
                            node->refusals, node->refusal);
    return NULL;
}

static void node_tell(const struct kube *kube, const struct kube_node *node, struct tells *tells)
{
    struct node_facts facts = node->facts;
    const char *hold = hold_of(kube, node, &tells->arena);
    if (hold && node->is_there && (facts.is_healthy || kube->is_unreachable)) {
        facts.is_healthy = false;
        facts.reason = hold;
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

bool node_has_infiniband(struct kube *kube, const char *name)
{
    const struct kube_node *node = node_find(kube, name);
    return node && node->is_there && node->has_infiniband;
}

static void node_lose(struct kube *kube, struct kube_node *node, struct tells *tells)
{
    if (!node->is_there)
        return;
    node->is_there = node->is_silent = false;
    node_tell(kube, node, tells);
    tasks_leave(kube, node->facts.name, tells);
}

/* Its entry, which is made when nobody has told of it yet. */
static struct kube_node *node_of(struct kube *kube, const char *name)
{
    struct kube_node *node = node_find(kube, name);
    if (node)
        return node;
    node = ARRAY_ADD(&kube->nodes);
    *node = (struct kube_node){0};
    node_facts_copy(&node->facts, &(struct node_facts){.name = name});
    text_map_set(&kube->node_names, text_of(node->facts.name),
                 (uint32_t)(node - kube->nodes.items));
    return node;
}

/* --- silent --- */

/* Where nobody is heard, it is the control plane that has trouble, as the cluster's own controller
 * sees it: then none is lost. */
static bool is_any_heard(struct kube *kube)
{
    bool is_heard = false;
    for (size_t i = 0; i < kube->nodes.count && !is_heard; i++)
        is_heard = kube->nodes.items[i].is_there && !kube->nodes.items[i].is_silent;
    if (!is_heard && !kube->is_deaf)
        log_warning("engine", "kubernetes: all nodes are silent: none is counted as lost");
    kube->is_deaf = !is_heard;
    return is_heard;
}

static void silence_over(void *context, uint64_t key, const struct kube_answer *answer);

static void silence_watch(struct kube *kube, struct kube_node *node, int64_t for_ms)
{
    const struct kube_call call = {
        .context = kube, .key = (uint64_t)(node - kube->nodes.items), .done = silence_over};
    node->is_watched = true;
    kube_client_send(kube->client, &call, (uint32_t)for_ms);
}

static void silence_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    struct kube_node *node = &kube->nodes.items[key];
    const int64_t left_ms = node->silent_ms + kube->node_lost_ms - clock_monotonic_ms();
    node->is_watched = false;
    if (node->is_there && node->is_silent) {
        if (left_ms <= 0 && !kube->is_unreachable && is_any_heard(kube))
            tasks_lose(kube, node->facts.name, &tells);
        silence_watch(kube, node, left_ms > 0 ? left_ms : KUBE_NODE_AGAIN_MS);
    }
    kube_leave(kube, &tells);
}

void nodes_heard(struct kube *kube)
{
    for (size_t i = 0; i < kube->nodes.count; i++)
        kube->nodes.items[i].silent_ms = clock_monotonic_ms();
}

static void silence_note(struct kube *kube, struct kube_node *node, bool is_silent)
{
    if (is_silent && !node->is_silent)
        node->silent_ms = clock_monotonic_ms();
    else if (!is_silent && node->is_silent && !is_any_heard(kube))
        nodes_heard(kube); /* the first of all that are back: the others get their time */
    node->is_silent = is_silent;
    if (is_silent && !node->is_watched)
        silence_watch(kube, node, kube->node_lost_ms);
}

/* --- held back --- */

void nodes_hold(struct kube *kube, const char *name)
{
    node_of(kube, name)->left++;
}

void nodes_release(struct kube *kube, const char *name, struct tells *tells)
{
    struct kube_node *node = node_of(kube, name);
    assert(node->left > 0);
    node->left--;
    if (node->is_there && node->facts.is_healthy)
        node_tell(kube, node, tells);
}

/* One pod is tried on it then; its next refusal holds it back again. */
static void hold_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    struct kube_node *node = &kube->nodes.items[key];
    const bool is_news = node->is_held && node->is_there;
    node->is_held = false;
    if (is_news)
        node_tell(kube, node, &tells);
    kube_leave(kube, &tells);
}

void nodes_refused(struct kube *kube, const char *name, const char *why, struct tells *tells)
{
    struct kube_node *node = node_of(kube, name);
    node->refusals += node->refusals < UINT32_MAX;
    mem_free(node->refusal);
    node->refusal = mem_copy(why);
    if (node->refusals < KUBE_NODE_REFUSALS_MAX || node->is_held)
        return;
    node->is_held = true;
    log_warning("engine", "kubernetes: %s gets no tasks for %d s: it refused %u pods in a row: %s",
                name, KUBE_NODE_HOLD_MS / 1000, node->refusals, why);
    const struct kube_call call = {
        .context = kube, .key = (uint64_t)(node - kube->nodes.items), .done = hold_over};
    kube_client_send(kube->client, &call, KUBE_NODE_HOLD_MS);
    if (node->is_there)
        node_tell(kube, node, tells);
}

void nodes_took(struct kube *kube, const char *name)
{
    node_of(kube, name)->refusals = 0;
}

/* --- seen --- */

static void node_take(struct kube *kube, const struct node_facts *facts, uint32_t mark,
                      struct tells *tells)
{
    struct kube_node *node = node_of(kube, facts->name);
    const bool is_news = !node->is_there || !facts_are_same(&node->facts, facts);
    const bool is_mended = node->is_held && node->facts.gpu_count != facts->gpu_count;
    node->is_there = true;
    node->mark = mark;
    if (!is_news)
        return;
    if (is_mended) { /* its plugin has told of its devices anew */
        node->is_held = false;
        node->refusals = 0;
    }
    node_facts_copy(&node->facts, facts);
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
    struct kube_node *node = node_of(kube, facts.name);
    node->has_infiniband = kube->settings.infiniband_resource[0] &&
                           node_object_offers(object, kube->settings.infiniband_resource);
    silence_note(kube, node, node_object_is_silent(object));
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
    for (size_t i = 0; i < kube->nodes.count; i++) {
        node_facts_release(&kube->nodes.items[i].facts);
        mem_free(kube->nodes.items[i].refusal);
    }
    ARRAY_FREE(&kube->nodes);
    text_map_release(&kube->node_names);
}
