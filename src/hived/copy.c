/* copy.c — an independent copy of everything that changes. Cells name each other by index, so most
 * of it is plain memory. */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

static void *copy_of(const void *memory, size_t count, size_t size)
{
    if (!memory)
        return NULL;
    void *copy = mem_alloc(mem_size(count ? count : 1, size));
    memcpy(copy, memory, count * size);
    return copy;
}
#define COPY(field, count) ((field) = copy_of((field), (count), sizeof *(field)))

static char *text_copy(const char *text)
{
    return text ? mem_copy(text) : NULL;
}

static void list_copy(struct cell_list *list)
{
    COPY(list->items, list->count);
    list->room = list->items ? (list->count ? list->count : 1) : 0;
}

static void free_list_copy(struct free_list *list)
{
    COPY(list->items, list->tree_size);
    COPY(list->weights, list->tree_size);
    COPY(list->tree, list->tree_size);
}

static void chains_copy(struct hived *h)
{
    COPY(h->chains, h->chain_count + 1u);
    COPY(h->leaf_types, h->chain_count + 1u);
    for (uint32_t i = 0; i < h->chain_count; i++) {
        struct chain *chain = &h->chains[i];
        COPY(chain->levels, chain->top + 1u);
        for (uint8_t at = 1; at <= chain->top; at++) {
            free_list_copy(&chain->levels[at].free);
            list_copy(&chain->levels[at].bad_free);
        }
        list_copy(&chain->tops);
        list_copy(&chain->vcs);
    }
}

static void vcs_copy(struct hived *h)
{
    COPY(h->vcs, h->vc_count + 1u);
    COPY(h->quotas, (size_t)h->vc_count * h->chain_count + 1);
    COPY(h->pins, h->pin_count + 1u);
    h->vc_index = (struct text_map){0};
    for (uint32_t vc = 0; vc < h->vc_count; vc++) {
        text_map_set(&h->vc_index, text_of(h->vcs[vc].name), vc);
        list_copy(&h->vcs[vc].roots);
        for (uint32_t i = 0; i < h->chain_count; i++) {
            struct quota *quota = quota_of(h, vc, i);
            if (!quota->is_present)
                continue;
            COPY(quota->levels, h->chains[i].top + 1u);
            for (uint8_t at = 1; at <= h->chains[i].top; at++) {
                list_copy(&quota->levels[at].roots);
                list_copy(&quota->levels[at].doomed);
                COPY(quota->levels[at].unbound, quota->levels[at].roots.count / 64 + 1);
            }
        }
    }
}

static void views_copy(struct hived *h)
{
    COPY(h->views, h->view_count + 1u);
    COPY(h->view_nodes, h->view_node_count); /* there may be room for no more */
    h->view_node_room = h->view_node_count;
    for (uint32_t i = 0; i < h->view_count; i++) {
        struct view *view = &h->views[i];
        COPY(view->buckets, view->bucket_room);
        COPY(view->dirty, view->dirty_room);
        COPY(view->by_priority, HIVED_PRIORITY_MAX + 1);
        COPY(view->order, view->order_count);
    }
}

static void nodes_copy(struct hived *h)
{
    COPY(h->nodes, h->node_count);
    h->node_room = h->node_count;
    h->node_index = (struct text_map){0};
    arena_init(&h->names);
    for (uint32_t i = 0; i < h->node_count; i++) {
        list_copy(&h->nodes[i].leaves);
        if (i >= h->built_nodes) /* the name is not the configuration's */
            h->nodes[i].name = arena_copy(&h->names, text_of(h->nodes[i].name));
        text_map_set(&h->node_index, text_of(h->nodes[i].name), i);
    }
    for (uint32_t i = 0; i < h->chain_count; i++) {
        const struct cell_list *tops = &h->chains[i].tops;
        for (size_t k = 0; k < tops->count; k++)
            if (tops->items[k] >= h->built_cells)
                h->addresses[tops->items[k]] = h->nodes[h->rests[tops->items[k]].node].name;
    }
}

static void groups_copy(struct hived *h)
{
    COPY(h->groups, h->group_room);
    COPY(h->group_changes, h->group_room);
    memset(&h->group_chunks, 0, sizeof h->group_chunks);
    h->spare = h->fresh = h->fresh_end = NULL;
    list_copy(&h->group_gaps);
    h->group_index = (struct text_map){0};
    for (uint32_t i = 0; i < h->group_count; i++) {
        if (!h->groups[i])
            continue;
        h->groups[i] = group_copy(h, h->groups[i]);
        text_map_set(&h->group_index, text_of(h->groups[i]->name), i);
    }
}

static void pending_copy(struct hived *h)
{
    COPY(h->pending, h->pending_room);
    for (uint32_t i = 0; i < h->pending_count; i++)
        COPY(h->pending[i].virtual, h->groups[h->pending[i].group]->leaf_count);
    h->pending_group = text_copy(h->pending_group);
    h->journal = NULL;
    h->journal_count = h->journal_room = 0;
}

/* One that is being built is built again so far. */
static struct hived *building_copy(const struct hived *from)
{
    const struct build *end = &from->build;
    hived_config_share(from->config);
    struct hived *h = hived_begin(from->config);
    while (h->build.stage != end->stage || h->build.at != end->at || h->build.part != end->part ||
           h->build.number != end->number)
        hived_build_some(h, 1);
    return h;
}

struct hived *hived_copy(const struct hived *hived)
{
    assert(!hived->is_trial && !hived->origin);
    if (hived->build.stage != BUILD_WHOLE)
        return building_copy(hived);
    struct hived *h = mem_alloc(sizeof *h);
    *h = *hived;
    hived_config_share(h->config);
    cells_alloc(h, h->cell_count + 1u);
    memcpy(h->cells, hived->cells, h->cell_count * sizeof *h->cells);
    memcpy(h->rests, hived->rests, h->cell_count * sizeof *h->rests);
    COPY(h->addresses, h->cell_count + 1u);
    COPY(h->priority, h->cell_count + 1u);
    COPY(h->cell_changes, cell_chunks(h->cell_count + 1u));
    h->taken = mem_zero(h->cell_count + 1u, sizeof *h->taken);
    h->scratch = mem_zero(h->cell_count + 1u, sizeof *h->scratch);
    h->epoch = 0;
    chains_copy(h);
    vcs_copy(h);
    views_copy(h);
    nodes_copy(h);
    groups_copy(h);
    pending_copy(h);
    return h;
}
