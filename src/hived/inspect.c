/* inspect.c — the documents of HiveD's web API, written as streams. */
#include "base/buf.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct inspector {
    struct hived *h;
    struct json_writer json;
    struct buf address; /* scratch */
};

static const char *const state_names[] = {"Free", "Used", "Reserving", "Reserved"};
static const char *const group_names[] = {"Allocated", "Preempting", "BeingPreempted"};

static struct inspector inspector_of(struct hived *h, struct buf *out)
{
    struct inspector in = {.h = h};
    group_pending_settle(h, false);
    json_init(&in.json, out);
    return in;
}

static const char *address_of(struct inspector *in, uint32_t cell, const char *suffix)
{
    assert(cell < in->h->cell_count);
    buf_clear(&in->address);
    cell_address(in->h, cell, &in->address);
    buf_string(&in->address, suffix);
    return buf_cstr(&in->address);
}

/* --- cells --- */

static void cell_head(struct inspector *in, uint32_t index, bool is_flat, const char *suffix)
{
    assert(index < in->h->cell_count);
    const struct hived *h = in->h;
    const struct cell *cell = &h->cells[index];
    const struct cell *physical = cell;
    if (cell->is_virtual)
        physical = cell->bound != NONE ? &h->cells[cell->bound] : NULL;
    if (cell->parent == NONE && !is_flat)
        json_key_string(&in->json, "leafCellType",
                        h->config->types[h->chains[cell->chain].leaf_type].name);
    json_key_string(&in->json, "cellType", cell_type_name(h, cell));
    if (cell->level == h->chains[cell->chain].node_level)
        json_key_bool(&in->json, "isNodeLevel", true);
    json_key_string(&in->json, "cellAddress", address_of(in, index, suffix));
    json_key_string(&in->json, "cellState", state_names[physical ? physical->state : 0]);
    json_key_string(&in->json, "cellHealthiness", physical && physical->is_bad ? "Bad" : "Healthy");
    json_key_int(&in->json, "cellPriority", h->cells[index].priority);
}

static void flat_write(struct inspector *in, const char *key, uint32_t cell, const char *suffix)
{
    assert(cell < in->h->cell_count);
    json_key(&in->json, key);
    json_object(&in->json);
    cell_head(in, cell, true, suffix);
    json_object_end(&in->json);
}

static void cell_write(struct inspector *in, uint32_t index)
{
    assert(index < in->h->cell_count);
    const struct hived *h = in->h;
    const struct cell *cell = &h->cells[index];
    json_object(&in->json);
    cell_head(in, index, false, "");
    if (child_number(h, cell)) {
        json_key(&in->json, "cellChildren");
        json_array(&in->json);
        for (uint32_t i = 0; i < child_number(h, cell); i++)
            cell_write(in, cell->child + i);
        json_array_end(&in->json);
    }
    if (cell->is_virtual) {
        if (cell->bound != NONE)
            flat_write(in, "physicalCell", cell->bound, "");
    } else if (cell->bound != NONE && rest_of(h, cell)->oppo_vc == NONE) {
        json_key_string(&in->json, "vc", h->vcs[h->rests[cell->bound].vc].name);
        flat_write(in, "virtualCell", cell->bound, "");
    } else if (cell->level == 1 && rest_of(h, cell)->oppo_vc != NONE) {
        json_key_string(&in->json, "vc", h->vcs[rest_of(h, cell)->oppo_vc].name);
        flat_write(in, "virtualCell", index, "-opp");
    }
    json_object_end(&in->json);
}

static void physical_write(struct inspector *in)
{
    const struct hived *h = in->h;
    json_array(&in->json);
    for (uint32_t i = 0; i < h->chain_count; i++)
        for (size_t k = 0; k < h->chains[i].tops.count; k++)
            cell_write(in, h->chains[i].tops.items[k]);
    json_array_end(&in->json);
}

static void vc_write(struct inspector *in, const struct vc *vc)
{
    const struct hived *h = in->h;
    json_array(&in->json);
    for (size_t i = 0; i < vc->roots.count; i++)
        cell_write(in, vc->roots.items[i]);
    struct cell_list oppo = oppo_leaves(h, (uint32_t)(vc - h->vcs));
    for (size_t i = 0; i < oppo.count; i++) {
        uint32_t leaf = oppo.items[i];
        json_object(&in->json);
        json_key_string(&in->json, "leafCellType", cell_type_name(h, &h->cells[leaf]));
        cell_head(in, leaf, true, "-opp");
        flat_write(in, "physicalCell", leaf, "");
        json_object_end(&in->json);
    }
    cell_list_release(&oppo);
    json_array_end(&in->json);
}

static void vcs_write(struct inspector *in)
{
    json_object(&in->json);
    for (uint32_t i = 0; i < in->h->vc_count; i++) {
        json_key(&in->json, in->h->vcs[i].name);
        vc_write(in, &in->h->vcs[i]);
    }
    json_object_end(&in->json);
}

void hived_inspect_physical(struct hived *h, struct buf *out)
{
    struct inspector in = inspector_of(h, out);
    physical_write(&in);
    buf_release(&in.address);
}

void hived_inspect_vcs(struct hived *h, struct buf *out)
{
    struct inspector in = inspector_of(h, out);
    vcs_write(&in);
    buf_release(&in.address);
}

bool hived_inspect_vc(struct hived *h, const char *name, struct buf *out)
{
    uint32_t vc = text_map_get(&h->vc_index, text_of(name));
    if (vc == MAP_NONE)
        return false;
    struct inspector in = inspector_of(h, out);
    vc_write(&in, &h->vcs[vc]);
    buf_release(&in.address);
    return true;
}

void hived_inspect_cluster(struct hived *h, struct buf *out)
{
    struct inspector in = inspector_of(h, out);
    json_object(&in.json);
    json_key(&in.json, "physicalCluster");
    physical_write(&in);
    json_key(&in.json, "virtualClusters");
    vcs_write(&in);
    json_object_end(&in.json);
    buf_release(&in.address);
}

/* --- groups --- */

struct placed {
    uint64_t order; /* node or preassigned cell, then index or leaf */
    uint32_t leaf;
};

static int placed_compare(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

static uint32_t placed_list(const struct hived *h, const struct group *group, bool is_virtual,
                            struct placed *list)
{
    assert(group->bound_count <= group->slot_count);
    const uint32_t *leaves = is_virtual ? group->virtual : group->physical;
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        if (leaves[i] == NONE)
            continue;
        const struct cell *leaf = &h->cells[leaves[i]];
        uint64_t first = is_virtual ? leaf->root : rest_of(h, leaf)->node;
        list[count++] = (struct placed){
            first << 32 | (is_virtual ? leaves[i] : rest_of(h, leaf)->index), leaves[i]};
    }
    qsort(list, count, sizeof *list, placed_compare);
    return count;
}

static void placement_write(struct inspector *in, const struct group *group, bool is_virtual)
{
    assert(group->name);
    const struct hived *h = in->h;
    struct placed *list = mem_alloc(mem_size(group->leaf_count + 1u, sizeof *list));
    uint32_t count = placed_list(h, group, is_virtual, list);
    if (count) {
        json_key(&in->json, is_virtual ? "virtualPlacement" : "physicalPlacement");
        json_object(&in->json);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct cell *leaf = &h->cells[list[i].leaf];
        if (i == 0 || list[i].order >> 32 != list[i - 1].order >> 32) {
            if (i > 0)
                json_array_end(&in->json);
            json_key(&in->json, is_virtual ? address_of(in, leaf->root, "")
                                           : h->nodes[rest_of(h, leaf)->node].name);
            json_array(&in->json);
        }
        if (is_virtual)
            json_string(&in->json, address_of(in, list[i].leaf, ""));
        else
            json_int(&in->json, rest_of(h, leaf)->index);
    }
    if (count) {
        json_array_end(&in->json);
        json_object_end(&in->json);
    }
    mem_free(list);
}

/* RFC 3339, UTC; days to a date by the proleptic Gregorian calendar. */
static void time_write(struct json_writer *json, const char *key, int64_t ms)
{
    int64_t seconds = ms / 1000, days = seconds / 86400, rest = seconds % 86400;
    int64_t shifted = days + 719468, era = shifted / 146097, day_of_era = shifted % 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* from March */
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(
        &text, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)(year_of_era + era * 400 + (month >= 10)),
        (int)(month < 10 ? month + 3 : month - 9), (int)(day_of_year - (153 * month + 2) / 5 + 1),
        (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    json_key_text(json, key, buf_as_text(&text));
}

static void pods_write(struct inspector *in, const struct group *group)
{
    assert(group->pods || !group->slot_count);
    bool is_open = false;
    for (uint32_t i = 0; i < group->slot_count; i++) {
        if (!group->pods[i].is_bound)
            continue;
        if (!is_open) {
            json_key(&in->json, "allocatedPods");
            json_array(&in->json);
        }
        is_open = true;
        if (group->pods[i].name) {
            json_string(&in->json, group->pods[i].name);
        } else {
            buf_clear(&in->address);
            buf_format(&in->address, "%s/%u", group->name, i);
            json_string(&in->json, buf_cstr(&in->address));
        }
    }
    if (is_open)
        json_array_end(&in->json);
    if (!group->preempting_count)
        return;
    json_key(&in->json, "preemptingPods");
    json_array(&in->json);
    for (uint32_t i = 0; i < group->preempting_count; i++)
        json_string(&in->json, group->preempting[i]);
    json_array_end(&in->json);
}

static void group_write(struct inspector *in, const struct group *group)
{
    assert(group->name);
    struct json_writer *json = &in->json;
    json_object(json);
    json_key(json, "metadata");
    json_object(json);
    json_key_string(json, "name", group->name);
    json_object_end(json);
    json_key(json, "status");
    json_object(json);
    json_key_string(json, "vc", group->vc_name);
    json_key_int(json, "priority", group->priority);
    json_key_string(json, "state", group_names[group->state]);
    placement_write(in, group, false);
    placement_write(in, group, true);
    pods_write(in, group);
    if (group->is_downgraded) {
        json_key(json, "lazyPreemptionStatus");
        json_object(json);
        json_key_string(json, "preemptor", group->preemptor);
        time_write(json, "preemptionTime", group->preemption_ms);
        json_object_end(json);
    }
    json_object_end(json);
    json_object_end(json);
}

static int group_compare(const void *a, const void *b)
{
    const struct group *x = *(const struct group *const *)a, *y = *(const struct group *const *)b;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* In the order in which they were made. */
void hived_inspect_groups(struct hived *h, struct buf *out)
{
    struct inspector in = inspector_of(h, out);
    const struct group **list = mem_alloc(mem_size(h->group_count + 1u, sizeof *list));
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->group_count; i++)
        if (h->groups[i])
            list[count++] = h->groups[i];
    qsort(list, count, sizeof *list, group_compare);
    json_object(&in.json);
    json_key(&in.json, "items");
    json_array(&in.json);
    for (uint32_t i = 0; i < count; i++)
        group_write(&in, list[i]);
    json_array_end(&in.json);
    json_object_end(&in.json);
    mem_free(list);
    buf_release(&in.address);
}

bool hived_inspect_group(struct hived *h, const char *name, struct buf *out)
{
    struct inspector in = inspector_of(h, out);
    uint32_t index;
    const struct group *group = gang_find(h, name, &index);
    if (group)
        group_write(&in, group);
    buf_release(&in.address);
    return group != NULL;
}
