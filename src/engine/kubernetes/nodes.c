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
    if (node->devices_trouble)
        return node->devices_trouble;
    if (node->is_held)
        return arena_format(arena, "its devices were refused %u times in a row: %.150s",
                            node->refusals, node->refusal);
    return NULL;
}

static void node_tell(const struct kube *kube, const struct kube_node *node, struct tells *tells)
{
    struct node_facts facts = node->facts;
    const char *hold = hold_of(kube, node, &tells->arena);
    if (kube->settings.nodes.gpus == KUBE_GPUS_DRA && !kube->are_devices_known)
        return; /* it is not told with fewer GPUs than it has */
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

struct kube_node *kube_node_find(struct kube *kube, const char *name)
{
    uint32_t at = text_map_get(&kube->node_names, text_of(name));
    return at == MAP_NONE ? NULL : &kube->nodes.items[at];
}

/* Of attempts whose pods count for its kubelet: those that are not over. */
static uint32_t pods_on(const struct kube *kube, const char *name)
{
    uint32_t count = 0;
    for (size_t i = 0; i < kube->tasks.count; i++) {
        const struct kube_task *task = kube->tasks.items[i];
        count += (task->state < TASK_ENDED || task->is_lost) && strcmp(task->node, name) == 0;
    }
    return count;
}

int nodes_check(struct kube *kube, const struct container *container, struct err *err)
{
    const struct kube_node *node = kube_node_find(kube, container->node);
    const struct pod_settings *settings = &kube->settings;
    const size_t gpus = settings->nodes.gpus == KUBE_GPUS_PLUGIN && !container->is_gpu_simulated
                            ? container->gpu_count
                            : 0;
    if (!node || !node->is_there)
        return err_fail(err, ERR_UNAVAILABLE, "", "the cluster has no node %.100s now",
                        container->node);
    if (container->wants_infiniband && !node->has_infiniband)
        return err_fail(err, ERR_UNAVAILABLE, "", "node %.100s offers no %.100s now",
                        container->node, settings->infiniband_resource);
    /* of a resource that a node does not offer at all its kubelet does not look whether it is
     * there: the pod would start without it */
    if (gpus > node->facts.gpu_count)
        return err_fail(err, ERR_UNAVAILABLE, "", "node %.100s offers %u of %.100s now, not %zu",
                        container->node, node->facts.gpu_count, settings->nodes.gpu_resource, gpus);
    if (kube->tasks.count >= node->pods_max && pods_on(kube, container->node) >= node->pods_max)
        return err_fail(err, ERR_UNAVAILABLE, "", "node %.100s takes no more than %u pods",
                        container->node, node->pods_max);
    return 0;
}

static bool is_free(const struct kube_node *node)
{
    return !node->facts.name;
}

/* All zero afterwards. */
static void node_release(struct kube_node *node)
{
    node_facts_release(&node->facts);
    mem_free(node->refusal);
    mem_free(node->gpu_label);
    mem_free(node->devices_trouble);
    device_table_release(&node->devices);
    gpu_table_release(&node->gpus);
    *node = (struct kube_node){0};
}

/* Nodes that are made as they are needed have ever new names: the place of one that has gone is
 * another's as soon as nothing is left of it. */
static void node_drop_gone(struct kube *kube, struct kube_node *node)
{
    if (is_free(node) || node->is_there || node->left > 0 || node->timers > 0)
        return;
    text_map_remove(&kube->node_names, text_of(node->facts.name));
    node_release(node);
    kube->nodes.free++;
}

static void node_lose(struct kube *kube, struct kube_node *node, struct tells *tells)
{
    if (!node->is_there)
        return;
    node->is_there = node->is_silent = false;
    tasks_settle(kube, node->facts.name, tells);
    node_tell(kube, node, tells);
    tasks_leave(kube, node->facts.name, tells);
    node_drop_gone(kube, node);
}

static struct kube_node *place_take(struct kube *kube)
{
    struct kube_node *node = NULL;
    assert(kube->nodes.items || kube->nodes.count == 0);
    for (size_t i = 0; i < kube->nodes.count && kube->nodes.free > 0 && !node; i++)
        if (is_free(&kube->nodes.items[i]))
            node = &kube->nodes.items[i];
    if (node) {
        kube->nodes.free--;
        return node;
    }
    node = ARRAY_ADD(&kube->nodes);
    *node = (struct kube_node){0};
    return node;
}

/* Its entry, which is made when nobody has told of it yet. */
static struct kube_node *node_of(struct kube *kube, const char *name)
{
    struct kube_node *node = kube_node_find(kube, name);
    if (node)
        return node;
    node = place_take(kube);
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
    node->timers++;
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
    node->timers--;
    if (node->is_there && node->is_silent) {
        if (left_ms <= 0 && !kube->is_unreachable && is_any_heard(kube))
            tasks_lose(kube, node->facts.name, &tells);
        silence_watch(kube, node, left_ms > 0 ? left_ms : KUBE_NODE_AGAIN_MS);
    }
    node_drop_gone(kube, node);
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
    node_drop_gone(kube, node);
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
    node->timers--;
    if (is_news)
        node_tell(kube, node, &tells);
    node_drop_gone(kube, node);
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
    node->timers++;
    kube_client_send(kube->client, &call, KUBE_NODE_HOLD_MS);
    if (node->is_there)
        node_tell(kube, node, tells);
}

void nodes_took(struct kube *kube, const char *name)
{
    struct kube_node *node = kube_node_find(kube, name);
    if (node)
        node->refusals = 0;
}

/* --- seen --- */

static void node_take(struct kube *kube, const struct node_facts *facts, uint32_t mark,
                      bool is_news, struct tells *tells)
{
    struct kube_node *node = node_of(kube, facts->name);
    is_news = is_news || !node->is_there || !facts_are_same(&node->facts, facts);
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

static void word_set(char **word, const char *value)
{
    mem_free(*word);
    *word = value ? mem_copy(value) : NULL;
}

/* The indices of GPUs that attempts on the node have. */
static void gpus_mark(const struct kube *kube, const char *node, bool used[DEVICES_MAX])
{
    cleanup_arena struct arena arena;
    struct device_pick pick;
    arena_init(&arena);
    for (size_t i = 0; i < kube->tasks.count; i++) {
        const struct kube_task *task = kube->tasks.items[i];
        const bool has_gone = task->state == TASK_FORGOTTEN && !task->is_lost;
        if (!task->devices || has_gone || strcmp(task->node, node) != 0 ||
            !device_pick_read(task->devices, &arena, &pick))
            continue;
        for (size_t j = 0; j < pick.count; j++)
            used[pick.items[j].index] = true;
    }
}

/* Attempts that were there before have these. */
static void devices_hold(struct kube *kube)
{
    cleanup_arena struct arena arena;
    struct device_pick pick;
    arena_init(&arena);
    for (size_t i = 0; i < kube->tasks.count; i++) {
        const struct kube_task *task = kube->tasks.items[i];
        if (task->devices && device_pick_read(task->devices, &arena, &pick))
            device_table_hold(&node_of(kube, task->node)->devices, &pick);
    }
}

static bool is_marked(const void *context, uint16_t index)
{
    return ((const bool *)context)[index];
}

static size_t offered_read(const struct device_table *table, bool offered[DEVICES_MAX])
{
    const char *pool, *name;
    for (size_t i = 0; i < table->all.count; i++)
        offered[i] = device_table_is_offered(table, i, &pool, &name);
    return table->all.count;
}

/* What has become of those that were there before. */
static void changes_log(const struct kube_node *node, const bool *before, size_t count)
{
    const char *pool, *name;
    for (size_t i = 0; i < count; i++)
        if (device_table_is_offered(&node->devices, i, &pool, &name) != before[i])
            log_warning("engine", "kubernetes: GPU %zu of %.100s (%s/%s) is %s", i,
                        node->facts.name, pool ? pool : "", name ? name : "",
                        before[i] ? "not offered any more" : "offered again");
}

/* What its driver offers now becomes its table. False: only a part of that is known. */
static bool devices_refresh(const struct kube *kube, struct kube_node *node, struct tells *tells)
{
    bool used[DEVICES_MAX] = {false};
    const struct slice_device *devices;
    struct err err;
    size_t count;
    const char *name = node->facts.name;
    if (slices_of(&kube->slices, name, &tells->arena, &devices, &count) == SLICES_PART)
        return false;
    bool before[DEVICES_MAX];
    const size_t known = offered_read(&node->devices, before);
    gpus_mark(kube, name, used);
    if (device_table_update(&node->devices, devices, count, is_marked, used, &err) < 0)
        log_error("engine", "kubernetes: the devices of %.100s stay as they were: %s", name,
                  err.text);
    if (kube->are_devices_known)
        changes_log(node, before, known);
    return true;
}

/* Its GPUs are those of its table. True: why it takes no tasks is something else than before. */
static bool devices_read(struct kube_node *node, struct node_facts *facts, struct tells *tells)
{
    const char *trouble = device_table_facts(
        &node->devices, node->gpu_label ? node->gpu_label : "GPU", &tells->arena, facts);
    const char *before = node->devices_trouble;
    const bool is_news =
        (trouble == NULL) != (before == NULL) || (trouble && strcmp(trouble, before) != 0);
    if (is_news)
        word_set(&node->devices_trouble, trouble);
    return is_news;
}

void nodes_passed(struct kube *kube, const struct doc *head, bool is_removed, uint32_t mark,
                  struct tells *tells)
{
    struct kube_node *node = kube_node_find(kube, object_string(head, "metadata.name"));
    if (node && is_removed)
        node_lose(kube, node, tells);
    else if (node)
        node->mark = mark;
}

void nodes_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                struct tells *tells)
{
    struct node_facts facts;
    struct err err;
    if (is_removed) {
        nodes_passed(kube, object, true, mark, tells);
        return;
    }
    if (node_object_read(object, &kube->settings.nodes, &tells->arena, &facts, &err) < 0) {
        follow_passed(kube, FOLLOW_NODES, object, err.text);
        nodes_passed(kube, object, false, mark, tells);
        return;
    }
    struct kube_node *node = node_of(kube, facts.name);
    bool is_news = false;
    if (kube->settings.nodes.gpus == KUBE_GPUS_DRA) {
        word_set(&node->gpu_label, facts.gpu_type);
        if (kube->are_devices_known && !node->is_there)
            (void)devices_refresh(kube, node, tells);
        is_news = devices_read(node, &facts, tells);
    }
    node_take(kube, &facts, mark, is_news, tells);
    node->has_infiniband = kube->settings.infiniband_resource[0] &&
                           node_object_offers(object, kube->settings.infiniband_resource);
    node->has_own_users = node_object_has_own_users(object, kube->settings.runtime_class);
    node->pods_max = node_object_pods(object, &kube->settings.nodes.reserve);
    silence_note(kube, node, node_object_is_silent(object));
}

/* --- devices --- */

static void devices_update(struct kube *kube, struct kube_node *node, struct tells *tells)
{
    if (!devices_refresh(kube, node, tells) || !node->is_there)
        return;
    struct node_facts facts = node_facts_keep(&tells->arena, &node->facts);
    const bool is_news = devices_read(node, &facts, tells);
    node_take(kube, &facts, node->mark, is_news, tells);
}

void nodes_slice_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                      struct tells *tells)
{
    const char *name = slices_seen(&kube->slices, object, is_removed, mark);
    /* of one that is not there all slices are read when it comes */
    struct kube_node *node = name ? kube_node_find(kube, name) : NULL;
    if (node && kube->are_devices_known)
        devices_update(kube, node, tells);
}

void nodes_slice_passed(struct kube *kube, const struct doc *head, bool is_removed, uint32_t mark,
                        struct tells *tells)
{
    if (is_removed)
        nodes_slice_seen(kube, head, true, mark, tells);
    else
        slices_keep(&kube->slices, object_string(head, "metadata.name"), mark);
}

static void devices_update_all(struct kube *kube, struct tells *tells)
{
    for (size_t i = 0; i < kube->nodes.count; i++)
        if (!is_free(&kube->nodes.items[i]))
            devices_update(kube, &kube->nodes.items[i], tells);
}

void nodes_slices_sweep(struct kube *kube, uint32_t mark, struct tells *tells)
{
    slices_sweep(&kube->slices, mark);
    if (kube->are_devices_known)
        devices_update_all(kube, tells);
}

void nodes_devices_known(struct kube *kube, struct tells *tells)
{
    if (kube->are_devices_known)
        return;
    devices_hold(kube);
    devices_update_all(kube, tells);
    kube->are_devices_known = true;
    nodes_tell(kube, tells);
}

int nodes_pick(struct kube *kube, const struct container *container, struct buf *out,
               struct err *err)
{
    const struct kube_node *node = kube_node_find(kube, container->node);
    if (!node || !node->is_there)
        return err_fail(err, ERR_UNAVAILABLE, "", "the cluster has no node %.100s now",
                        container->node);
    int code = device_pick_write(&node->devices, kube->slices.driver, container->gpus,
                                 container->gpu_count, out, err);
    return code;
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
        node_release(&kube->nodes.items[i]);
    slices_release(&kube->slices);
    ARRAY_FREE(&kube->nodes);
    text_map_release(&kube->node_names);
}
