/* imitate.c — habits of the original: its list of nodes, sorted anew at each call, with its one
 * greedy pass, and what it shows of virtual clusters. The others are flags of hived/habits.h.
 *
 * The list keeps its order between calls, so nodes that were not suggested once stay behind their
 * equals.
 */
#include "originals/imitate.h"
#include "base/memory.h"
#include "hived/state.h"
#include <stdlib.h>

struct listed { /* of a node in the list */
    uint32_t view_node, before;
    bool is_bad, is_excluded;
    int64_t same, higher;
};

static int listed_compare(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->is_bad != y->is_bad)
        return x->is_bad - y->is_bad;
    if (x->is_excluded != y->is_excluded)
        return x->is_excluded - y->is_excluded;
    if (x->same != y->same)
        return x->same > y->same ? -1 : 1;
    if (x->higher != y->higher)
        return x->higher < y->higher ? -1 : 1;
    return (x->before > y->before) - (x->before < y->before);
}

/* Nodes that joined since come last. */
static void order_fill(struct hived *h, struct view *view)
{
    uint32_t index = (uint32_t)(view - h->views);
    uint32_t from = view->order_count ? view->order_next : view->first;
    view->order = mem_realloc(view->order, mem_size(view->count, sizeof *view->order));
    for (; from < h->view_node_count; from++)
        if (h->rests[h->view_nodes[from].cell].view == index)
            view->order[view->order_count++] = from;
    view->order_next = from;
}

static struct listed listed_of(const struct pack *pack, uint32_t view_node, uint32_t before)
{
    const struct hived *h = pack->h;
    uint32_t cell = h->view_nodes[view_node].cell;
    const struct cell *c = &h->cells[cell];
    uint32_t seen = c->is_virtual ? c->bound : cell;
    struct listed listed = {.view_node = view_node, .before = before};
    if (c->is_virtual) {
        listed.same = (int64_t)c->used - rest_of(h, c)->over_released;
    } else {
        listed.same = c->used_oppo;
        listed.higher = c->used - c->used_oppo;
    }
    listed.is_bad = seen != NONE && h->cells[seen].is_bad;
    listed.is_excluded =
        seen != NONE && pack->is_excluded && pack->is_excluded[h->rests[seen].node];
    return listed;
}

static bool imitate_pack(struct pack *pack)
{
    struct hived *h = pack->h;
    struct view *view = pack->view;
    if (view->order_count < view->count)
        order_fill(h, view);
    struct listed *all = mem_alloc(mem_size(view->count + 1u, sizeof *all));
    for (uint32_t i = 0; i < view->count; i++)
        all[i] = listed_of(pack, view->order[i], i);
    qsort(all, view->count, sizeof *all, listed_compare);
    uint32_t item = 0;
    bool is_refused = false;
    for (uint32_t i = 0; i < view->count; i++) {
        view->order[i] = all[i].view_node;
        if (is_refused || item == pack->item_count)
            continue;
        uint32_t cell = h->view_nodes[all[i].view_node].cell;
        uint32_t open = pack_open_count(pack, cell);
        is_refused = open >= pack->items[item].leaves && (all[i].is_bad || all[i].is_excluded);
        if (is_refused)
            pack_shun_note(pack, cell, all[i].is_bad);
        while (!is_refused && item < pack->item_count && open >= pack->items[item].leaves) {
            open -= pack->items[item].leaves;
            pack->items[item].cell = cell;
            pack->items[item++].leaf = h->view_nodes[all[i].view_node].leaf;
        }
    }
    mem_free(all);
    return item == pack->item_count;
}

/* The original's virtual cells keep a state of their own, told only when that of the bound physical
 * cell is set. */
static void imitate_state_set(struct hived *h, uint32_t physical, enum hived_cell_state state)
{
    for (uint32_t at = physical; at != NONE && h->cells[at].state == state;
         at = h->cells[at].parent)
        if (h->cells[at].bound != NONE)
            h->cells[h->cells[at].bound].state = (uint8_t)state;
}

bool hived_vc_walk_imitating(struct hived *h, const char *name, hived_vc_visit *visit,
                             void *context)
{
    group_pending_settle(h, false);
    uint32_t vc = text_map_get(&h->vc_index, text_of(name));
    if (vc == MAP_NONE)
        return false;
    for (size_t i = 0; i < h->vcs[vc].roots.count; i++) {
        const struct cell *root = &h->cells[h->vcs[vc].roots.items[i]];
        visit(context, cell_type_name(h, root),
              root->bound == NONE || !h->cells[root->bound].is_bad,
              (enum hived_cell_state)root->state, false);
    }
    for (uint32_t i = 0; i < h->chain_count; i++) {
        const struct quota *quota = quota_of(h, vc, i);
        const char *type = h->config->types[h->chains[i].leaf_type].name;
        for (uint32_t k = 0; k < quota->oppo + quota->oppo_missed; k++)
            visit(context, type, true, HIVED_CELL_USED, true);
    }
    return true;
}

/* The end of an opportunistic pod on a bad leaf that a virtual one stands for: the original takes
 * it off the virtual cells' use, and leaves it in the list of its virtual cluster. */
static void imitate_leaf_released(struct hived *h, uint32_t virtual, uint32_t vc)
{
    if (vc != NONE)
        quota_of(h, vc, h->cells[virtual].chain)->oppo_missed++;
    for (uint32_t cell = virtual; cell != NONE; cell = h->cells[cell].parent)
        h->rests[cell].over_released++;
}

struct hived *hived_new_imitating(struct hived_config *config)
{
    static const struct habits all = {
        .displaces_by_chain = true,
        .downgrades_at_once = true,
        .minds_suggestions = true,
        .dooms_early = true,
        .trusts_own_level = true,
        .splits_all = true,
        .pack = imitate_pack,
        .state_set = imitate_state_set,
        .leaf_released = imitate_leaf_released,
    };
    return hived_new_with(config, &all);
}
