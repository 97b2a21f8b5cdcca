#include "hived_view.h"
#include "base/buf.h"
#include "hived/state.h"
#include <string.h>

uint32_t hived_node_count(const struct hived *h)
{
    return h->node_count;
}

const char *hived_node_name(const struct hived *h, uint32_t node)
{
    return h->nodes[node].name;
}

bool hived_node_is_healthy(const struct hived *h, uint32_t node)
{
    return !h->nodes[node].is_bad;
}

/* ---- cells ---- */

static const char *cell_vc(const struct hived *h, const struct cell *cell)
{
    if (cell->bound != NONE)
        return h->vcs[h->rests[cell->bound].vc].name;
    return rest_of(h, cell)->oppo_vc != NONE ? h->vcs[rest_of(h, cell)->oppo_vc].name : "";
}

static bool address_is(const struct hived *h, uint32_t cell, const char *address, struct buf *buf)
{
    buf_clear(buf);
    cell_address(h, cell, buf);
    size_t length = buf->length;
    return !strncmp(buf_cstr(buf), address, length) && (!address[length] || address[length] == '/');
}

static uint32_t cell_at(const struct hived *h, const char *address, struct buf *buf)
{
    uint32_t at = NONE;
    for (uint32_t i = 0; i < h->chain_count && at == NONE; i++)
        for (size_t k = 0; k < h->chains[i].tops.count && at == NONE; k++)
            if (address_is(h, h->chains[i].tops.items[k], address, buf))
                at = h->chains[i].tops.items[k];
    while (at != NONE && buf->length < strlen(address)) {
        const struct cell *cell = &h->cells[at];
        at = NONE;
        for (uint32_t i = 0; i < child_number(h, cell) && at == NONE; i++)
            if (address_is(h, cell->child + i, address, buf))
                at = cell->child + i;
    }
    return at;
}

bool hived_cell_find(struct hived *h, const char *address, struct hived_cell_view *view)
{
    group_pending_settle(h, false);
    cleanup_buf struct buf buf = BUF_INIT;
    uint32_t found = cell_at(h, address, &buf);
    if (found == NONE)
        return false;
    const struct cell *cell = &h->cells[found];
    *view = (struct hived_cell_view){.type = cell_type_name(h, cell),
                                     .vc = cell_vc(h, cell),
                                     .state = (enum hived_cell_state)cell->state,
                                     .is_healthy = !cell->is_bad,
                                     .priority = cell->priority};
    return true;
}

bool hived_vc_walk(struct hived *h, const char *name, hived_vc_visit *visit, void *context)
{
    group_pending_settle(h, false);
    uint32_t vc = text_map_get(&h->vc_index, text_of(name));
    if (vc == MAP_NONE)
        return false;
    for (size_t i = 0; i < h->vcs[vc].roots.count; i++) {
        const struct cell *root = &h->cells[h->vcs[vc].roots.items[i]];
        const struct cell *bound = root->bound != NONE ? &h->cells[root->bound] : NULL;
        visit(context, cell_type_name(h, root), !bound || !bound->is_bad,
              bound ? (enum hived_cell_state)bound->state : HIVED_CELL_FREE, false);
    }
    struct cell_list oppo = oppo_leaves(h, vc);
    for (size_t i = 0; i < oppo.count; i++) {
        const struct cell *leaf = &h->cells[oppo.items[i]];
        visit(context, cell_type_name(h, leaf), !leaf->is_bad, (enum hived_cell_state)leaf->state,
              true);
    }
    cell_list_release(&oppo);
    return true;
}

/* ---- pods ---- */

static uint32_t leaf_at(const struct hived *h, const char *chain, const char *node, uint16_t device)
{
    const uint32_t index = text_map_get(&h->node_index, text_of(node));
    for (size_t i = 0; index != MAP_NONE && i < h->nodes[index].leaves.count; i++) {
        const uint32_t leaf = h->nodes[index].leaves.items[i];
        if (h->rests[leaf].index == device && !strcmp(h->chains[h->cells[leaf].chain].name, chain))
            return leaf;
    }
    return NONE;
}

/* The lowest cell above both; NONE: they have none. */
static uint32_t cell_common(const struct hived *h, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a == NONE || b == NONE)
            return NONE;
        if (h->cells[a].level < h->cells[b].level)
            a = h->cells[a].parent;
        else if (h->cells[b].level < h->cells[a].level)
            b = h->cells[b].parent;
        else
            a = h->cells[a].parent, b = h->cells[b].parent;
    }
    return a;
}

uint8_t hived_slot_level(const struct hived *h, const struct hived_placement *placement,
                         uint32_t slot)
{
    const struct hived_slot *place = &placement->slots[slot];
    uint32_t common = NONE;
    for (uint32_t i = 0; i < place->leaf_count; i++) {
        const uint32_t leaf = leaf_at(h, placement->chain, place->node, place->indices[i]);
        if (leaf == NONE)
            return 0;
        common = i ? cell_common(h, common, leaf) : leaf;
    }
    return common == NONE ? 0 : h->cells[common].level;
}

bool hived_pod_end_named(struct hived *h, const char *name, const char *pod)
{
    group_pending_settle(h, false);
    uint32_t index;
    const struct group *group = gang_find(h, name, &index);
    for (uint32_t i = 0; group && i < group->slot_count; i++)
        if (group->pods[i].is_bound && group->pods[i].name && !strcmp(group->pods[i].name, pod))
            return hived_pod_end(h, name, i);
    return false;
}

uint32_t hived_displaced_leaves(const struct hived *hived)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hived->pending_count; i++)
        count += hived->pending[i].next;
    return count;
}
