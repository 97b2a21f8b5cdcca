#include "engine/kubernetes/slices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"

#define PCIE_ROOT "resource.kubernetes.io/pcieRoot"

struct slice {
    char *name, *pool;
    int64_t generation, pool_slices;
    uint32_t mark;
    struct arena arena; /* of the devices */
    struct {
        struct slice_device *items;
        size_t count, room;
    } devices;
};

struct slice_group {
    char *node;
    struct {
        struct slice *items;
        size_t count, room;
    } all;
};

static void slice_release(struct slice *slice)
{
    mem_free(slice->name);
    mem_free(slice->pool);
    arena_release(&slice->arena);
    ARRAY_FREE(&slice->devices);
}

static void slice_remove(struct slice_group *group, size_t at)
{
    slice_release(&group->all.items[at]);
    group->all.items[at] = group->all.items[--group->all.count];
}

void slices_release(struct slices *slices)
{
    for (size_t i = 0; i < slices->groups.count; i++) {
        struct slice_group *group = &slices->groups.items[i];
        while (group->all.count > 0)
            slice_remove(group, group->all.count - 1);
        ARRAY_FREE(&group->all);
        mem_free(group->node);
    }
    ARRAY_FREE(&slices->groups);
    text_map_release(&slices->nodes);
}

static struct slice_group *group_find(const struct slices *slices, const char *node)
{
    const uint32_t at = text_map_get(&slices->nodes, text_of(node));
    return at == MAP_NONE ? NULL : &slices->groups.items[at];
}

static struct slice_group *group_of(struct slices *slices, const char *node)
{
    struct slice_group *group = group_find(slices, node);
    if (group)
        return group;
    group = ARRAY_ADD(&slices->groups);
    group->node = mem_copy(node);
    text_map_set(&slices->nodes, text_of(group->node), (uint32_t)slices->groups.count - 1);
    return group;
}

/* --- one device --- */

/* A driver's own attributes may be named with its domain or without. */
static const char *attribute(const struct slices *slices, const struct doc *device,
                             const char *name, struct arena *arena)
{
    const struct doc *all = doc_get(device, "attributes");
    const struct doc *value = doc_get(all, name);
    if (!value)
        value = doc_get(all, arena_format(arena, "%s/%s", slices->driver, name));
    return object_string(value, "string");
}

/* What a driver or an administrator says against it. The effect None only tells. */
static const char *taint_of(const struct doc *device, struct arena *arena)
{
    const struct doc *list = doc_get_list(device, "taints");
    for (size_t i = 0; i < list->as.list.count; i++) {
        const char *effect = object_string(list->as.list.items[i], "effect");
        if (strcmp(effect, "None") != 0)
            return arena_format(arena, "%.100s:%.20s", object_string(list->as.list.items[i], "key"),
                                effect);
    }
    return NULL;
}

static const char *model_of(const struct slices *slices, const struct doc *device,
                            struct arena *arena)
{
    char *model =
        arena_copy(arena, text_of(attribute(slices, device, slices->type_attribute, arena)));
    for (char *at = model; *at; at++)
        if (*at == ' ')
            *at = '-';
    return model;
}

static void device_take(const struct slices *slices, const struct doc *device, struct slice *slice)
{
    struct arena *arena = &slice->arena;
    const char *type = attribute(slices, device, "type", arena);
    if ((type[0] && strcmp(type, "gpu") != 0) ||
        doc_get_bool(device, "allowMultipleAllocations", false) ||
        doc_count(doc_get(device, "bindingConditions")) > 0 || !object_string(device, "name")[0])
        return;
    *ARRAY_ADD(&slice->devices) = (struct slice_device){
        .pool = slice->pool,
        .name = arena_copy(arena, text_of(object_string(device, "name"))),
        .model = model_of(slices, device, arena),
        .root = arena_copy(arena, text_of(attribute(slices, device, PCIE_ROOT, arena))),
        .uuid = arena_copy(arena, text_of(attribute(slices, device, "uuid", arena))),
        .taint = taint_of(device, arena),
    };
}

/* --- slices --- */

const char *slices_seen(struct slices *slices, const struct doc *slice, bool is_removed,
                        uint32_t mark)
{
    assert(slices->driver && slices->type_attribute);
    const char *node = object_string(slice, "spec.nodeName");
    const char *name = object_string(slice, "metadata.name");
    const struct doc *pool = object_at(slice, "spec.pool");
    if (!node[0] || !name[0] || strcmp(object_string(slice, "spec.driver"), slices->driver) != 0)
        return NULL;
    struct slice_group *group = group_of(slices, node);
    for (size_t i = group->all.count; i-- > 0;)
        if (strcmp(group->all.items[i].name, name) == 0)
            slice_remove(group, i);
    if (is_removed)
        return group->node;
    struct slice *kept = ARRAY_ADD(&group->all);
    *kept = (struct slice){
        .name = mem_copy(name),
        .pool = mem_copy(object_string(pool, "name")),
        .generation = doc_get_int(pool, "generation", 0),
        .pool_slices = doc_get_int(pool, "resourceSliceCount", 0),
        .mark = mark,
    };
    arena_init(&kept->arena);
    const struct doc *devices = doc_get_list(doc_get(slice, "spec"), "devices");
    for (size_t i = 0; i < devices->as.list.count; i++)
        device_take(slices, devices->as.list.items[i], kept);
    return group->node;
}

void slices_keep(struct slices *slices, const char *name, uint32_t mark)
{
    for (size_t i = 0; i < slices->groups.count; i++) {
        struct slice_group *group = &slices->groups.items[i];
        for (size_t j = 0; j < group->all.count; j++)
            if (strcmp(group->all.items[j].name, name) == 0)
                group->all.items[j].mark = mark;
    }
}

void slices_sweep(struct slices *slices, uint32_t mark)
{
    for (size_t i = 0; i < slices->groups.count; i++) {
        struct slice_group *group = &slices->groups.items[i];
        for (size_t j = group->all.count; j-- > 0;)
            if (group->all.items[j].mark < mark)
                slice_remove(group, j);
    }
}

/* --- pools --- */

static bool is_of(const struct slice *slice, const char *pool, int64_t generation)
{
    return strcmp(slice->pool, pool) == 0 && slice->generation == generation;
}

/* Is this slice of its pool's newest generation? *is_whole: and is all of that here? */
static bool is_newest(const struct slice_group *group, const struct slice *slice, bool *is_whole)
{
    int64_t here = 0;
    for (size_t i = 0; i < group->all.count; i++) {
        const struct slice *other = &group->all.items[i];
        if (strcmp(other->pool, slice->pool) == 0 && other->generation > slice->generation)
            return false;
        here += is_of(other, slice->pool, slice->generation);
    }
    *is_whole = here == slice->pool_slices;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* gpu-2 comes before gpu-10. */
static int names_compare(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        if (is_digit(*a) && is_digit(*b)) {
            char *a_end, *b_end;
            const unsigned long long x = strtoull(a, &a_end, 10), y = strtoull(b, &b_end, 10);
            if (x != y)
                return x < y ? -1 : 1;
            if (a_end - a != b_end - b)
                return a_end - a < b_end - b ? -1 : 1;
            a = a_end - 1;
            b = b_end - 1;
        } else if (*a != *b) {
            break;
        }
    }
    return *a - *b;
}

static int device_compare(const void *a, const void *b)
{
    const struct slice_device *x = a, *y = b;
    const int by_name = names_compare(x->name, y->name);
    return by_name ? by_name : strcmp(x->pool, y->pool);
}

enum slices_state slices_of(const struct slices *slices, const char *node, struct arena *arena,
                            const struct slice_device **devices, size_t *count)
{
    const struct slice_group *group = group_find(slices, node);
    size_t room = 0;
    *devices = NULL;
    *count = 0;
    for (size_t i = 0; group && i < group->all.count; i++)
        room += group->all.items[i].devices.count;
    if (!group || group->all.count == 0)
        return SLICES_NONE;
    struct slice_device *all = ARENA_ARRAY(arena, struct slice_device, room + 1);
    for (size_t i = 0; i < group->all.count; i++) {
        const struct slice *slice = &group->all.items[i];
        bool is_whole = false;
        if (!is_newest(group, slice, &is_whole))
            continue;
        if (!is_whole)
            return SLICES_PART;
        for (size_t j = 0; j < slice->devices.count; j++)
            all[(*count)++] = slice->devices.items[j];
    }
    qsort(all, *count, sizeof *all, device_compare);
    *devices = all;
    return SLICES_WHOLE;
}
