#include "engine/kubernetes/pod_gpus.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"
#include "doc/doc.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/node_object.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"
#include "kube/quantity.h"

/* Of a list of maps, the one of this name; NULL: there is none. */
static const struct doc *named(const struct doc *list, const char *name)
{
    for (size_t i = 0; i < list->as.list.count; i++)
        if (strcmp(object_string(list->as.list.items[i], "name"), name) == 0)
            return list->as.list.items[i];
    return NULL;
}

static void index_add(struct pod_gpus *gpus, uint16_t index)
{
    gpus->indices[gpus->count++] = index;
}

static void indices_of_claim(struct pod_gpus *gpus, const char *devices)
{
    cleanup_arena struct arena arena;
    struct device_pick pick;
    arena_init(&arena);
    if (!devices || !device_pick_read(devices, &arena, &pick))
        return;
    for (size_t i = 0; i < pick.count; i++)
        index_add(gpus, pick.items[i].index);
}

/* "none" and other words are no numbers. */
static void indices_of_variable(struct pod_gpus *gpus, const struct doc *container)
{
    const struct doc *variable = named(doc_get_list(container, "env"), "NVIDIA_VISIBLE_DEVICES");
    struct text rest = text_of(object_string(variable, "value"));
    while (rest.length > 0 && gpus->count < NODE_OBJECT_GPUS_MAX) {
        int64_t index;
        if (!text_to_int64(text_cut(&rest, ','), &index) || index < 0 ||
            index >= NODE_OBJECT_GPUS_MAX)
            return;
        index_add(gpus, (uint16_t)index);
    }
}

static size_t count_asked(const struct doc *container, const char *resource)
{
    int64_t milli;
    const struct doc *limits = object_at(container, "resources.limits");
    if (!quantity_read(doc_get_text(limits, resource, ""), &milli))
        return 0;
    return (size_t)(milli / 1000);
}

static void names_read(struct pod_gpus *gpus, const struct doc *pod)
{
    cleanup_arena struct arena arena;
    int64_t index = 0;
    arena_init(&arena);
    struct text number = text_of(object_note(pod, OBJECT_NOTE_TASK));
    const struct text role = text_cut(&number, '/');
    if (!text_to_int64(number, &index) || index < 0 || index > UINT32_MAX)
        index = 0;
    gpus->job = mem_copy(object_note(pod, OBJECT_NOTE_JOB));
    gpus->role = mem_copy(arena_copy(&arena, role));
    gpus->task_index = (uint32_t)index;
}

struct pod_gpus *pod_gpus_read(const struct doc *pod, const struct node_rules *rules,
                               const char *devices)
{
    const struct doc *containers = doc_get_list(doc_get(pod, "spec"), "containers");
    const struct doc *container = named(containers, POD_CONTAINER_TASK);
    uint16_t indices[NODE_OBJECT_GPUS_MAX];
    struct pod_gpus found = {.indices = indices};
    switch (rules->gpus) {
    case KUBE_GPUS_PLUGIN:
        found.count = count_asked(container, rules->gpu_resource);
        found.indices = NULL;
        break;
    case KUBE_GPUS_ENV:
        indices_of_variable(&found, container);
        break;
    case KUBE_GPUS_DRA:
        indices_of_claim(&found, devices);
        break;
    }
    if (found.count == 0)
        return NULL;
    struct pod_gpus *gpus = mem_zero(1, sizeof *gpus);
    *gpus = found;
    if (found.indices)
        gpus->indices = mem_copy_array(indices, found.count, sizeof *indices);
    names_read(gpus, pod);
    return gpus;
}

void pod_gpus_free(struct pod_gpus *gpus)
{
    if (!gpus)
        return;
    mem_free(gpus->job);
    mem_free(gpus->role);
    mem_free(gpus->indices);
    mem_free(gpus);
}

bool pod_gpus_have(const struct pod_gpus *gpus, uint16_t index)
{
    for (size_t i = 0; gpus->indices && i < gpus->count; i++)
        if (gpus->indices[i] == index)
            return true;
    return false;
}
