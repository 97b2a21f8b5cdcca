#include "engine/kubernetes/devices.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/slices.h"
#include "model/node.h"

struct device_entry {
    char *pool, *name; /* NULL: no device has ever had this index */
    char *model, *root, *uuid;
    bool is_offered; /* and not tainted */
};

static void entry_release(struct device_entry *entry)
{
    mem_free(entry->pool);
    mem_free(entry->name);
    mem_free(entry->model);
    mem_free(entry->root);
    mem_free(entry->uuid);
    *entry = (struct device_entry){0};
}

void device_table_release(struct device_table *table)
{
    for (size_t i = 0; i < table->all.count; i++)
        entry_release(&table->all.items[i]);
    ARRAY_FREE(&table->all);
}

bool device_table_is_offered(const struct device_table *table, size_t index, const char **pool,
                             const char **name)
{
    assert(index < table->all.count);
    *pool = table->all.items[index].pool;
    *name = table->all.items[index].name;
    return table->all.items[index].is_offered;
}

bool device_table_find(const struct device_table *table, const char *uuid, uint16_t *index)
{
    for (size_t i = 0; uuid[0] && i < table->all.count; i++)
        if (table->all.items[i].uuid && strcmp(table->all.items[i].uuid, uuid) == 0) {
            *index = (uint16_t)i;
            return true;
        }
    return false;
}

static struct device_entry *entry_find(const struct device_table *table, const char *pool,
                                       const char *name)
{
    for (size_t i = 0; i < table->all.count; i++) {
        struct device_entry *entry = &table->all.items[i];
        if (entry->name && strcmp(entry->name, name) == 0 && strcmp(entry->pool, pool) == 0)
            return entry;
    }
    return NULL;
}

void device_table_hold(struct device_table *table, const struct device_pick *pick)
{
    for (size_t i = 0; i < pick->count; i++) {
        const struct device_pick_item *item = &pick->items[i];
        assert(item->index < DEVICES_MAX);
        while (table->all.count <= item->index)
            *ARRAY_ADD(&table->all) = (struct device_entry){0};
        struct device_entry *entry = &table->all.items[item->index];
        if (entry->name || entry_find(table, item->pool, item->name))
            continue; /* the first word counts */
        entry->pool = mem_copy(item->pool);
        entry->name = mem_copy(item->name);
    }
}

static void word_set(char **word, const char *value)
{
    if (*word && strcmp(*word, value) == 0)
        return;
    mem_free(*word);
    *word = mem_copy(value);
}

static void entry_set(struct device_entry *entry, const struct slice_device *device)
{
    word_set(&entry->pool, device->pool);
    word_set(&entry->name, device->name);
    word_set(&entry->model, device->model);
    word_set(&entry->root, device->root);
    word_set(&entry->uuid, device->uuid);
    entry->is_offered = !device->taint;
}

static bool is_among(const struct device_entry *entry, const struct slice_device *devices,
                     size_t count)
{
    for (size_t i = 0; entry->name && i < count; i++)
        if (strcmp(entry->name, devices[i].name) == 0 && strcmp(entry->pool, devices[i].pool) == 0)
            return true;
    return false;
}

int device_table_update(struct device_table *table, const struct slice_device *devices,
                        size_t count, bool (*is_used)(const void *context, uint16_t index),
                        const void *context, struct err *err)
{
    size_t next = 0;
    if (table->all.count + count > DEVICES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%zu devices, at most %d are managed of a node",
                        table->all.count + count, DEVICES_MAX);
    for (size_t i = 0; i < table->all.count; i++)
        table->all.items[i].is_offered = false;
    for (size_t i = 0; i < count; i++) {
        struct device_entry *known = entry_find(table, devices[i].pool, devices[i].name);
        if (known)
            entry_set(known, &devices[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (entry_find(table, devices[i].pool, devices[i].name))
            continue;
        while (next < table->all.count && (is_among(&table->all.items[next], devices, count) ||
                                           is_used(context, (uint16_t)next)))
            next++;
        if (next == table->all.count)
            *ARRAY_ADD(&table->all) = (struct device_entry){0};
        entry_set(&table->all.items[next++], &devices[i]);
    }
    return 0;
}

/* What is below one PCIe root is called after the first of it. */
static uint16_t switch_of(const struct device_table *table, size_t index)
{
    const char *root = table->all.items[index].root;
    size_t first = 0;
    while (first < index &&
           (!table->all.items[first].root || strcmp(table->all.items[first].root, root) != 0))
        first++;
    return (uint16_t)first;
}

/* Of devices that are not offered now. */
static const char *model_known(const struct device_table *table, const char *otherwise)
{
    for (size_t i = 0; i < table->all.count; i++)
        if (table->all.items[i].model && table->all.items[i].model[0])
            return table->all.items[i].model;
    return otherwise;
}

const char *device_table_facts(const struct device_table *table, const char *otherwise,
                               struct arena *arena, struct node_facts *facts)
{
    const struct device_entry *first = NULL;
    const char *trouble = NULL;
    size_t offered = 0;
    uint16_t *places = ARENA_ARRAY(arena, uint16_t, table->all.count + 1);
    for (size_t i = 0; i < table->all.count; i++) {
        const struct device_entry *entry = &table->all.items[i];
        places[i] = entry->is_offered ? switch_of(table, i) : NODE_GPU_LOST;
        offered += entry->is_offered;
        if (!first && entry->is_offered)
            first = entry;
        if (entry->is_offered && strcmp(entry->model, first->model) != 0)
            trouble = arena_format(arena, "its GPUs are of several models: %.80s and %.80s",
                                   first->model, entry->model);
    }
    facts->gpu_count = (uint32_t)table->all.count;
    facts->gpu_switch = table->all.count > 0 ? places : NULL;
    facts->gpu_type = "";
    if (table->all.count > 0)
        facts->gpu_type = first && first->model[0] ? first->model : model_known(table, otherwise);
    if (table->all.count > 0 && offered == 0)
        trouble = arena_format(arena, "its driver offers none of its %zu GPUs", table->all.count);
    return trouble;
}

/* --- what an attempt has --- */

int device_pick_write(const struct device_table *table, const char *driver, const uint16_t *gpus,
                      size_t count, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (gpus[i] >= table->all.count || !table->all.items[gpus[i]].is_offered)
            return err_fail(err, ERR_UNAVAILABLE, "", "its driver does not offer GPU %u now",
                            gpus[i]);
    buf_string(out, driver);
    for (size_t i = 0; i < count; i++)
        buf_format(out, " %u=%s/%s", gpus[i], table->all.items[gpus[i]].pool,
                   table->all.items[gpus[i]].name);
    return 0;
}

static bool item_read(struct text word, struct arena *arena, struct device_pick_item *item)
{
    int64_t index;
    const struct text number = text_cut(&word, '=');
    size_t slash = word.length; /* a pool's name may have some */
    while (slash > 0 && word.at[slash - 1] != '/')
        slash--;
    if (!text_to_int64(number, &index) || index < 0 || index >= DEVICES_MAX || slash < 2 ||
        slash == word.length)
        return false;
    *item = (struct device_pick_item){
        .index = (uint16_t)index,
        .pool = arena_copy(arena, (struct text){word.at, slash - 1}),
        .name = arena_copy(arena, (struct text){word.at + slash, word.length - slash}),
    };
    return true;
}

bool device_pick_read(const char *line, struct arena *arena, struct device_pick *pick)
{
    struct text rest = text_of(line);
    struct device_pick_item *items = ARENA_ARRAY(arena, struct device_pick_item, DEVICES_CLAIM_MAX);
    *pick = (struct device_pick){.driver = arena_copy(arena, text_cut(&rest, ' ')), .items = items};
    while (rest.length > 0 && pick->count < DEVICES_CLAIM_MAX)
        if (!item_read(text_cut(&rest, ' '), arena, &items[pick->count++]))
            return false;
    return pick->driver[0] && pick->count > 0 && rest.length == 0;
}
