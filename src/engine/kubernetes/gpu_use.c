/* gpu_use.c — what the exporters have told of GPUs, by task, by node and by GPU.
 *
 * docs/rfc/0017-kubernetes-engine.md, "How GPUs are used", says how a GPU of an exporter becomes
 * one of a task.
 */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"

void kube_task_gpus_note(struct kube *kube, struct kube_task *task, const struct doc *pod)
{
    if (kube->gpu_metrics.port == 0 || task->gpus)
        return;
    task->gpus = pod_gpus_read(pod, &kube->settings.nodes, task->devices);
    struct kube_node *node = task->gpus ? kube_node_find(kube, task->node) : NULL;
    if (node && node->gpu_failures == 0)
        node->gpu_due_ms = 0; /* what was told before was another's */
}

/* Skep's number of a GPU. False: it is none that Skep knows. */
static bool index_of(const struct kube *kube, const struct kube_node *node,
                     const struct gpu_reading *reading, uint16_t *index)
{
    *index = reading->index;
    switch (kube->settings.nodes.gpus) {
    case KUBE_GPUS_PLUGIN:
        return true;
    case KUBE_GPUS_ENV:
        return reading->index < node->facts.gpu_count;
    case KUBE_GPUS_DRA:
        return device_table_find(&node->devices, reading->uuid, index);
    }
    return false;
}

static bool is_of(const struct kube *kube, const struct kube_node *node,
                  const struct kube_task *task, const struct gpu_reading *reading)
{
    uint16_t index;
    if (kube->settings.nodes.gpus != KUBE_GPUS_PLUGIN)
        return index_of(kube, node, reading, &index) && pod_gpus_have(task->gpus, index);
    char name[OBJECT_NAME_SIZE];
    object_name(name, kube->settings.instance, task->attempt);
    return strcmp(reading->pod, name) == 0 && strcmp(reading->space, kube->settings.space) == 0;
}

bool kube_task_gpus_add(struct kube *kube, const struct kube_task *task, struct engine_stats *stats)
{
    const struct kube_node *node = task->gpus ? kube_node_find(kube, task->node) : NULL;
    const int64_t now_ms = clock_monotonic_ms();
    for (size_t i = 0; node && i < node->gpus.all.count; i++)
        if (is_of(kube, node, task, &node->gpus.all.items[i].reading))
            gpu_figure_add(&node->gpus.all.items[i], now_ms, stats);
    gpu_stats_end(stats);
    return stats->gpu_count > 0;
}

void kube_node_gpus_add(const struct kube *kube, const struct kube_node *node,
                        struct engine_stats *stats)
{
    const int64_t now_ms = clock_monotonic_ms();
    uint16_t index;
    for (size_t i = 0; i < node->gpus.all.count; i++)
        if (index_of(kube, node, &node->gpus.all.items[i].reading, &index))
            gpu_figure_add(&node->gpus.all.items[i], now_ms, stats);
    gpu_stats_end(stats);
}

/* --- all GPUs --- */

/* Under the lock. The GPUs of a node, from `first` on. */
struct node_gpus {
    size_t first, count;
};

static void holder_set(struct engine_gpu *gpu, const struct kube_task *task, struct arena *arena)
{
    gpu->attempt = task->attempt;
    gpu->job = arena_copy(arena, text_of(task->gpus->job));
    gpu->role = arena_copy(arena, text_of(task->gpus->role));
    gpu->task_index = task->gpus->task_index;
}

static size_t node_show(const struct kube *kube, const struct kube_node *node, int64_t now_ms,
                        struct arena *arena, struct engine_gpu *items)
{
    size_t count = 0;
    const char *name = arena_copy(arena, text_of(node->facts.name));
    for (size_t i = 0; i < node->gpus.all.count; i++) {
        struct engine_gpu gpu = {.node = name, .job = "", .role = ""};
        gpu_figure_show(&node->gpus.all.items[i], now_ms, &gpu);
        if (!index_of(kube, node, &node->gpus.all.items[i].reading, &gpu.index))
            continue;
        gpu.uuid = arena_copy(arena, text_of(gpu.uuid));
        items[count++] = gpu;
    }
    return count;
}

static void holders_set(struct kube *kube, struct engine_gpu *items, const struct node_gpus *places,
                        struct arena *arena)
{
    for (size_t i = 0; i < kube->tasks.count; i++) {
        const struct kube_task *task = kube->tasks.items[i];
        const struct kube_node *node =
            task->gpus && task->state == TASK_RUNS ? kube_node_find(kube, task->node) : NULL;
        if (!node)
            continue;
        const struct node_gpus *place = &places[node - kube->nodes.items];
        for (size_t j = 0; j < node->gpus.all.count; j++) {
            const struct gpu_reading *reading = &node->gpus.all.items[j].reading;
            uint16_t index;
            if (!index_of(kube, node, reading, &index) || !is_of(kube, node, task, reading))
                continue;
            for (size_t k = 0; k < place->count; k++)
                if (items[place->first + k].index == index)
                    holder_set(&items[place->first + k], task, arena);
        }
    }
}

void kube_gpus(struct engine *engine, struct arena *arena, const struct engine_gpu **gpus,
               size_t *count)
{
    struct kube *kube = (struct kube *)engine;
    const int64_t now_ms = clock_monotonic_ms();
    size_t room = 0;
    *count = 0;
    pthread_mutex_lock(&kube->lock);
    for (size_t i = 0; i < kube->nodes.count; i++)
        room += kube->nodes.items[i].gpus.all.count;
    struct engine_gpu *items = ARENA_ARRAY(arena, struct engine_gpu, room + 1);
    struct node_gpus *places = ARENA_ARRAY(arena, struct node_gpus, kube->nodes.count + 1);
    for (size_t i = 0; i < kube->nodes.count; i++) {
        places[i].first = *count;
        if (kube->nodes.items[i].is_there)
            places[i].count = node_show(kube, &kube->nodes.items[i], now_ms, arena, &items[*count]);
        *count += places[i].count;
    }
    if (*count > 0)
        holders_set(kube, items, places, arena);
    pthread_mutex_unlock(&kube->lock);
    *gpus = items;
}
