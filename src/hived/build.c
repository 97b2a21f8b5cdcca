/* build.c — from the configuration to trees of cells, level by level so that the descendants of a
 * cell at any level are neighbours. */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static uint32_t chain_find(const struct hived *h, uint32_t type)
{
    for (uint32_t i = 0; i < h->chain_count; i++)
        if (h->chains[i].type == type)
            return i;
    return NONE;
}

static void chains_build(struct hived *h)
{
    const struct hived_config *config = h->config;
    h->chains = mem_zero(config->type_count + 1, sizeof *h->chains);
    uint32_t last = NONE;
    for (uint32_t i = 0; i < config->cell_count; i++) {
        uint32_t type = config->cells[i].type;
        if (type == last || chain_find(h, type) != NONE)
            continue;
        last = type;
        struct chain *chain = &h->chains[h->chain_count++];
        const struct hived_type *top = &config->types[type];
        *chain = (struct chain){.type = type,
                                .name = top->name,
                                .leaf_type = top->leaf_type,
                                .top = top->level,
                                .node_level = top->node_level};
        chain->levels = mem_zero(top->level + 1u, sizeof *chain->levels);
        for (uint32_t at = type; at != NONE; at = config->types[at].child) {
            struct level *level = &chain->levels[config->types[at].level];
            level->type = at;
            level->leaf_count = config->types[at].leaf_count;
            level->child_number =
                config->types[at].child != NONE ? config->types[at].child_number : 0;
        }
    }
}

static void leaf_types_build(struct hived *h)
{
    h->leaf_types = mem_zero(h->chain_count + 1u, sizeof *h->leaf_types);
    h->leaf_type_count = 0;
    for (uint32_t i = 0; i < h->chain_count; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < h->leaf_type_count; k++)
            is_known |= h->leaf_types[k] == h->chains[i].leaf_type;
        if (!is_known)
            h->leaf_types[h->leaf_type_count++] = h->chains[i].leaf_type;
    }
}

static uint64_t tree_size(const struct hived *h, uint32_t type)
{
    assert(type < h->config->type_count);
    uint64_t size = 0, width = 1;
    for (uint32_t at = type; at != NONE; at = h->config->types[at].child) {
        size += width;
        width *= h->config->types[at].child_number;
    }
    return size;
}

static uint64_t count_cells(const struct hived *h)
{
    const struct hived_config *config = h->config;
    uint64_t count = 0;
    for (uint32_t i = 0; i < config->cell_count; i++)
        count += tree_size(h, config->cells[i].type);
    for (uint32_t i = 0; i < config->vc_count; i++) {
        const struct hived_vc_spec *vc = &config->vcs[i];
        for (uint32_t k = 0; k < vc->cell_count; k++)
            count += tree_size(h, vc->cells[k].type) * vc->cells[k].number;
        for (uint32_t k = 0; k < vc->pin_count; k++)
            count += tree_size(h, vc->pins[k].cell->type);
    }
    return count;
}

static struct cell *cell_new(struct hived *h, uint32_t parent, uint16_t chain, uint8_t level)
{
    assert(h->cell_count < h->cell_room);
    struct cell *cell = &h->cells[h->cell_count];
    cell_changed(h, h->cell_count);
    h->addresses[h->cell_count] = NULL;
    h->taken[h->cell_count] = h->scratch[h->cell_count] = 0;
    h->priority[h->cell_count++] = HIVED_PRIORITY_FREE;
    *cell = (struct cell){.parent = parent,
                          .child = NONE,
                          .bound = NONE,
                          .chain = chain,
                          .level = level,
                          .priority = HIVED_PRIORITY_FREE};
    return cell;
}

/* The children of the cells [first, first + count), one level. Returns the first child. */
static uint32_t level_new(struct hived *h, uint32_t first, uint32_t count)
{
    assert(count > 0);
    uint32_t below = h->cell_count;
    for (uint32_t i = first; i < first + count; i++) {
        struct cell *cell = &h->cells[i];
        cell->child = h->cell_count;
        for (uint32_t k = 0; k < child_number(h, cell); k++)
            cell_new(h, i, cell->chain, (uint8_t)(cell->level - 1));
    }
    return below;
}

static uint32_t node_get(struct hived *h, const char *name)
{
    uint32_t index = text_map_get(&h->node_index, text_of(name));
    if (index != MAP_NONE)
        return index;
    if (h->node_count == h->node_room) {
        h->node_room = 2 * h->node_room + 1;
        h->nodes = mem_realloc(h->nodes, mem_size(h->node_room, sizeof *h->nodes));
    }
    index = h->node_count++;
    h->nodes[index] = (struct node){.name = name, .is_bad = true};
    text_map_set(&h->node_index, text_of(name), index);
    return index;
}

/* A pin that no virtual cluster claims is an ordinary cell. */
static void pin_new(struct hived *h, const struct hived_cell_spec *spec, uint32_t cell)
{
    assert(cell < h->cell_count);
    for (uint32_t i = 0; i < h->pin_count; i++) {
        if (!strcmp(h->pins[i].id, spec->pin)) {
            h->pins[i].cell = cell;
            h->cells[cell].is_pinned = true;
        }
    }
}

struct physical_at {
    uint32_t default_index, node;
};

/* Addresses, nodes and pins; `spec` NULL: all by default. */
static void physical_name(struct hived *h, uint32_t index, const struct hived_cell_spec *spec,
                          struct physical_at at)
{
    struct cell *cell = &h->cells[index];
    const struct hived_type *type = &h->config->types[level_of(h, cell)->type];
    const char *address = spec ? spec->address : NULL;
    h->addresses[index] = address;
    struct cell_rest *rest = &h->rests[index];
    *rest = (struct cell_rest){.index = at.default_index, .reserving = NONE, .oppo_vc = NONE};
    cell->using = NONE;
    if (cell->level > 1)
        cell->bad_children = 0;
    if (spec && spec->pin)
        pin_new(h, spec, index);
    if (type->is_node_level) {
        char number[16];
        snprintf(number, sizeof number, "%u", at.default_index);
        const char *name = address;
        if (!name)
            name = arena_copy(&h->config->arena, text_of(number));
        at.node = node_get(h, name);
        at.default_index = 0;
    }
    for (uint32_t i = 0; i < child_number(h, cell); i++)
        physical_name(h, cell->child + i, spec && spec->child_count ? &spec->children[i] : NULL,
                      (struct physical_at){at.default_index * child_number(h, cell) + i, at.node});
    rest->node = at.node != NONE ? at.node : h->rests[cell->child].node;
    if (cell->level > 1)
        return;
    if (address) {
        int64_t number = 0;
        text_to_int64(text_of(address), &number);
        rest->index = (uint32_t)number;
        h->addresses[index] = NULL;
    }
    cell_list_add(&h->nodes[at.node].leaves, index);
}

/* A physical tree, free. `number`: its default index. */
static uint32_t top_add(struct hived *h, uint32_t chain_index, const struct hived_cell_spec *spec,
                        uint32_t number)
{
    assert(chain_index < h->chain_count);
    struct chain *chain = &h->chains[chain_index];
    uint32_t top = h->cell_count, first = top, count = 1;
    cell_new(h, NONE, (uint16_t)chain_index, chain->top);
    chain->levels[chain->top].total_left++;
    for (uint8_t level = chain->top; level > 1; level--) {
        first = level_new(h, first, count);
        count *= chain->levels[level].child_number;
        chain->levels[level - 1].total_left += count;
    }
    cell_list_add(&chain->tops, top);
    span_add(h, top);
    physical_name(h, top, spec, (struct physical_at){number, NONE});
    free_list_push(h, &chain->levels[chain->top].free, top);
    return top;
}

static uint32_t virtual_tree(struct hived *h, uint32_t vc, uint32_t chain, uint8_t level)
{
    assert(vc < h->vc_count);
    assert(chain < h->chain_count);
    uint32_t root = h->cell_count, first = root, count = 1;
    cell_new(h, NONE, (uint16_t)chain, level)->is_pinned =
        true; /* unless it gets a place in a list */
    for (uint8_t at = level; at > 1; at--) {
        first = level_new(h, first, count);
        count *= h->chains[chain].levels[at].child_number;
    }
    span_add(h, root);
    /* running indices count inside the preassigned cell, whose own number counts in its vc */
    for (uint32_t i = root; i < h->cell_count; i++) {
        struct cell *cell = &h->cells[i];
        struct cell_rest *rest = &h->rests[i];
        cell->is_virtual = true;
        cell->root = root;
        *rest = (struct cell_rest){.vc = vc, .number = i == root ? 0 : rest->number, .order = NONE};
        for (uint32_t k = 0; k < child_number(h, cell); k++)
            h->rests[cell->child + k].number = rest->number * child_number(h, cell) + k;
    }
    h->rests[root].number = (uint32_t)h->vcs[vc].roots.count;
    cell_list_add(&h->vcs[vc].roots, root);
    return root;
}

static void quota_add(struct hived *h, uint32_t vc, uint32_t chain, uint8_t level, uint32_t number)
{
    assert(vc < h->vc_count);
    assert(chain < h->chain_count);
    struct quota *quota = quota_of(h, vc, chain);
    if (!quota->is_present) {
        quota->is_present = true;
        quota->levels = mem_zero(h->chains[chain].top + 1u, sizeof *quota->levels);
        cell_list_add(&h->chains[chain].vcs, vc);
    }
    if (level > quota->top)
        quota->top = level;
    struct quota_level *own = &quota->levels[level];
    for (uint32_t i = 0; i < number; i++) {
        uint32_t root = virtual_tree(h, vc, chain, level);
        h->cells[root].is_pinned = false;
        h->rests[root].order = (uint32_t)own->roots.count;
        cell_list_add(&own->roots, root);
    }
    own->free += number;
    h->chains[chain].levels[level].all_vc_free += number;
}

static void unbound_build(struct quota_level *own)
{
    size_t words = own->roots.count / 64 + 1;
    own->unbound = mem_zero(words, sizeof *own->unbound);
    for (size_t i = 0; i < own->roots.count; i++)
        own->unbound[i / 64] |= 1ull << (i % 64);
}

/* Cells of the tree at `level`, neighbours. */
static uint32_t level_first(const struct hived *h, uint32_t root, uint8_t level, uint32_t *count)
{
    assert(root < h->cell_count);
    uint32_t cell = root;
    *count = 1;
    while (h->cells[cell].level > level) {
        *count *= child_number(h, &h->cells[cell]);
        cell = h->cells[cell].child;
    }
    return cell;
}

static void view_add_tree(struct hived *h, struct view *view, uint32_t root, uint8_t level)
{
    assert(root < h->cell_count);
    uint32_t count, first = level_first(h, root, level, &count);
    for (uint32_t i = 0; i < count; i++)
        view_join(h, view, first + i);
}

static void vcs_build(struct hived *h)
{
    const struct hived_config *config = h->config;
    h->vc_count = config->vc_count;
    h->vcs = mem_zero(h->vc_count + 1u, sizeof *h->vcs);
    uint32_t pins = 0;
    for (uint32_t i = 0; i < h->vc_count; i++) {
        h->vcs[i].name = config->vcs[i].name;
        text_map_set(&h->vc_index, text_of(h->vcs[i].name), i);
        pins += config->vcs[i].pin_count;
    }
    h->pins = mem_zero(pins + 1u, sizeof *h->pins);
    for (uint32_t i = 0; i < h->vc_count; i++)
        for (uint32_t k = 0; k < config->vcs[i].pin_count; k++)
            h->pins[h->pin_count++] =
                (struct pin){.id = config->vcs[i].pins[k].id, .vc = i, .cell = NONE, .root = NONE};
}

/* Pinned cells leave the free lists for good. */
static void pins_bind(struct hived *h)
{
    for (uint32_t i = 0; i < h->pin_count; i++) {
        const struct cell *cell = &h->cells[h->pins[i].cell];
        for (uint32_t at = cell->parent; at != NONE && !h->cells[at].is_split;
             at = h->cells[at].parent)
            level_of(h, &h->cells[at])->total_left--;
        uint32_t count = 1;
        for (uint8_t level = cell->level; level >= 1; level--) {
            h->chains[cell->chain].levels[level].total_left -= count;
            count *= h->chains[cell->chain].levels[level].child_number;
        }
        free_take(h, h->pins[i].cell);
        cell_bind(h, h->pins[i].cell, h->pins[i].root);
    }
}

void cells_alloc(struct hived *h, size_t room)
{
    h->cells = mem_table(room, sizeof *h->cells);
    h->rests = mem_table(room, sizeof *h->rests);
    h->cell_room = (uint32_t)room;
}

/* Half as much again, for nodes that join later: to enlarge the tables of 10,000 nodes takes tens
 * of milliseconds, while memory that has never been touched costs nothing. */
static size_t room_of(size_t cells)
{
    return cells + cells / 2 + 1;
}

/* --- in pieces: each of these does the next item of a stage, and says how many leaves it had ---
 */

static void stage_begin(struct hived *h, enum build_stage stage)
{
    assert(stage > h->build.stage);
    h->build = (struct build){.stage = stage};
}

static uint32_t physical_next(struct hived *h)
{
    const struct hived_config *config = h->config;
    struct build *build = &h->build;
    if (build->at == config->cell_count) {
        stage_begin(h, BUILD_VIRTUAL);
        return 0;
    }
    const struct hived_cell_spec *spec = &config->cells[build->at];
    top_add(h, chain_find(h, spec->type), spec, build->at++);
    return config->types[spec->type].leaf_count;
}

/* What follows the quotas of a virtual cluster. */
static void vc_finish(struct hived *h, uint32_t vc)
{
    const struct hived_vc_spec *spec = &h->config->vcs[vc];
    for (uint32_t k = 0; k < spec->pin_count; k++) {
        uint32_t chain = chain_find(h, spec->pins[k].chain_type);
        uint8_t level = h->config->types[spec->pins[k].cell->type].level;
        h->pins[h->build.pin++].root = virtual_tree(h, vc, chain, level);
    }
    for (uint32_t chain = 0; chain < h->chain_count; chain++) {
        struct quota *quota = quota_of(h, vc, chain);
        for (uint8_t at = 1; quota->is_present && at <= h->chains[chain].top; at++)
            unbound_build(&quota->levels[at]);
    }
}

static uint32_t virtual_next(struct hived *h)
{
    const struct hived_config *config = h->config;
    struct build *build = &h->build;
    if (build->at == h->vc_count) {
        stage_begin(h, BUILD_VIEWS);
        return 0;
    }
    const struct hived_vc_spec *spec = &config->vcs[build->at];
    if (build->part == spec->cell_count) {
        vc_finish(h, build->at++);
        build->part = 0;
        return 1;
    }
    const struct hived_vc_cell *cells = &spec->cells[build->part];
    if (build->number == cells->number) {
        build->part++;
        build->number = 0;
        return 0;
    }
    const struct hived_type *type = &config->types[cells->type];
    build->number++;
    quota_add(h, build->at, chain_find(h, cells->chain_type), type->level, 1);
    return type->leaf_count;
}

static uint32_t view_begin(struct hived *h, bool is_cluster)
{
    struct view *view = &h->views[h->view_count++];
    *view = (struct view){
        .is_cluster = is_cluster, .first = h->view_node_count, .lowest = HIVED_PRIORITY_MAX + 1};
    if (!is_cluster)
        view->by_priority = mem_zero(HIVED_PRIORITY_MAX + 1, sizeof *view->by_priority);
    return h->view_count - 1;
}

/* Nodes of a chain, for who is opportunistic. False: it has no more. */
static bool chain_view_next(struct hived *h, struct chain *chain, uint32_t tree)
{
    if (tree == 0)
        chain->view = view_begin(h, true);
    if (tree == chain->tops.count)
        return false;
    view_add_tree(h, &h->views[chain->view], chain->tops.items[tree], chain->node_level);
    return true;
}

/* Nodes first, then the quota's smaller cells, larger ones before. */
static bool quota_view_next(struct hived *h, uint32_t vc, uint32_t chain_index, uint32_t tree)
{
    struct quota *quota = quota_of(h, vc, chain_index);
    const struct chain *chain = &h->chains[chain_index];
    if (!quota->is_present)
        return false;
    if (tree == 0)
        quota->view = view_begin(h, false);
    struct view *view = &h->views[quota->view];
    if (tree < h->vcs[vc].roots.count) {
        const uint32_t at = h->vcs[vc].roots.items[tree];
        const struct cell *root = &h->cells[at];
        if (!root->is_pinned && root->chain == chain_index && root->level >= chain->node_level)
            view_add_tree(h, view, at, chain->node_level);
        return true;
    }
    for (uint8_t level = (uint8_t)(chain->node_level - 1); level >= 1; level--)
        for (size_t i = 0; i < quota->levels[level].roots.count; i++)
            view_join(h, view, quota->levels[level].roots.items[i]);
    return false;
}

static void pin_view_build(struct hived *h, struct pin *pin)
{
    const struct cell *root = &h->cells[pin->root];
    const uint8_t level = h->chains[root->chain].node_level;
    pin->view = view_begin(h, false);
    view_add_tree(h, &h->views[pin->view], pin->root, root->level < level ? root->level : level);
}

/* The views of chains, then those of virtual clusters in chains, then those of pinned cells. */
static uint32_t views_next(struct hived *h)
{
    struct build *build = &h->build;
    const uint32_t quotas = h->vc_count * h->chain_count;
    const uint32_t quota = build->at - h->chain_count, pin = quota - quotas;
    if (build->at < h->chain_count && chain_view_next(h, &h->chains[build->at], build->part)) {
        build->part++;
        return 1;
    }
    if (build->at >= h->chain_count && quota < quotas &&
        quota_view_next(h, quota / h->chain_count, quota % h->chain_count, build->part)) {
        build->part++;
        return 1;
    }
    if (build->at >= h->chain_count + quotas && pin < h->pin_count)
        pin_view_build(h, &h->pins[pin]);
    build->part = 0;
    if (build->at++ < h->chain_count + quotas + h->pin_count)
        return 1;
    stage_begin(h, BUILD_NODES);
    pins_bind(h);
    return 1;
}

static uint32_t nodes_next(struct hived *h)
{
    struct build *build = &h->build;
    if (build->at == h->node_count) {
        stage_begin(h, BUILD_WHOLE);
        mem_table_full(h->cells, h->cell_room, sizeof *h->cells);
        mem_table_full(h->rests, h->cell_room, sizeof *h->rests);
        h->built_nodes = h->node_count;
        h->built_cells = h->cell_count;
        return 0;
    }
    struct node *node = &h->nodes[build->at];
    node->is_bad = false;
    node_bad_set(h, build->at++, true);
    return (uint32_t)node->leaves.count;
}

bool hived_build_some(struct hived *h, uint32_t leaves)
{
    for (uint32_t done = 0; done < leaves && h->build.stage < BUILD_WHOLE;) {
        switch (h->build.stage) {
        case BUILD_PHYSICAL:
            done += physical_next(h);
            break;
        case BUILD_VIRTUAL:
            done += virtual_next(h);
            break;
        case BUILD_VIEWS:
            done += views_next(h);
            break;
        case BUILD_NODES:
            done += nodes_next(h);
            break;
        case BUILD_WHOLE:
            break;
        }
    }
    return h->build.stage == BUILD_WHOLE;
}

/* All tables are there, but nothing is in them: memory that is not touched costs nothing. */
void hived_build_begin(struct hived *h, bool is_in_pieces)
{
    size_t cells = room_of((size_t)count_cells(h));
    if (is_in_pieces) {
        h->cells = mem_table_begin(cells, sizeof *h->cells);
        h->rests = mem_table_begin(cells, sizeof *h->rests);
        h->cell_room = (uint32_t)cells;
    } else {
        cells_alloc(h, cells);
    }
    h->addresses = mem_alloc(mem_size(cells, sizeof *h->addresses));
    h->priority = mem_alloc(mem_size(cells, sizeof *h->priority));
    h->taken = mem_alloc(mem_size(cells, sizeof *h->taken));
    h->scratch = mem_alloc(mem_size(cells, sizeof *h->scratch));
    h->changes = 1; /* 0: a mirror has nothing yet */
    h->cell_changes = mem_zero(cell_chunks(cells), sizeof *h->cell_changes);
    arena_init(&h->names);
    chains_build(h);
    leaf_types_build(h);
    vcs_build(h);
    h->quotas = mem_zero((size_t)h->vc_count * h->chain_count + 1, sizeof *h->quotas);
    size_t views = h->chain_count + h->pin_count + (size_t)h->vc_count * h->chain_count;
    h->views = mem_zero(views + 1, sizeof *h->views);
}

/* --- nodes that join later --- */

static void cells_reserve(struct hived *h, size_t more)
{
    size_t need = h->cell_count + more + 1;
    if (need <= h->cell_room)
        return;
    size_t old = h->cell_count,
           room = need < 2 * (size_t)h->cell_room ? 2 * (size_t)h->cell_room : need;
    struct cell *cells = h->cells;
    struct cell_rest *rests = h->rests;
    cells_alloc(h, room);
    memcpy(h->cells, cells, old * sizeof *cells);
    memcpy(h->rests, rests, old * sizeof *rests);
    mem_free(cells);
    mem_free(rests);
    h->priority = mem_realloc(h->priority, mem_size(room, sizeof *h->priority));
    h->taken = mem_realloc(h->taken, mem_size(room, sizeof *h->taken));
    h->scratch = mem_realloc(h->scratch, mem_size(room, sizeof *h->scratch));
    h->addresses = mem_realloc(h->addresses, mem_size(room, sizeof *h->addresses));
    h->cell_changes =
        mem_realloc(h->cell_changes, mem_size(cell_chunks(room), sizeof *h->cell_changes));
}

static bool node_has_chain(const struct hived *h, const char *name, uint32_t chain)
{
    assert(chain < h->chain_count);
    uint32_t node = text_map_get(&h->node_index, text_of(name));
    for (size_t i = 0; node != MAP_NONE && i < h->nodes[node].leaves.count; i++)
        if (h->cells[h->nodes[node].leaves.items[i]].chain == chain)
            return true;
    return false;
}

static void unbound_grow(struct quota_level *own)
{
    size_t words = own->roots.count / 64 + 1, at = own->roots.count - 1;
    own->unbound = mem_realloc(own->unbound, mem_size(words, sizeof *own->unbound));
    if (at % 64 == 0)
        own->unbound[at / 64] = 0;
    if (own->roots.count % 64 == 0)
        own->unbound[words - 1] = 0;
    own->unbound[at / 64] |= 1ull << (at % 64);
    if (at / 64 < own->unbound_hint)
        own->unbound_hint = (uint32_t)(at / 64);
}

bool hived_node_add(struct hived *h, const char *chain_name, const struct hived_cell_spec *spec,
                    const char *vc_name)
{
    uint32_t chain = 0, vc = text_map_get(&h->vc_index, text_of(vc_name));
    while (chain < h->chain_count && strcmp(h->chains[chain].name, chain_name))
        chain++;
    if (chain == h->chain_count || vc == MAP_NONE || !quota_of(h, vc, chain)->is_present ||
        h->chains[chain].node_level != h->chains[chain].top || !spec->address || spec->pin ||
        node_has_chain(h, spec->address, chain) || h->is_safety_broken)
        return false;
    hived_search_end(h);
    group_pending_settle(h, false);
    uint8_t level = h->chains[chain].top;
    size_t size = tree_size(h, h->chains[chain].type);
    if (2 * size + h->cell_count > 8 * (size_t)HIVED_LEAVES_MAX)
        return false;
    cells_reserve(h, 2 * size);
    h->joins++;
    struct hived_cell_spec own = *spec;
    own.address = arena_copy(&h->names, text_of(spec->address));
    uint32_t top = top_add(h, chain, &own, (uint32_t)h->chains[chain].tops.count);
    quota_add(h, vc, chain, level, 1);
    struct quota_level *quota = &quota_of(h, vc, chain)->levels[level];
    unbound_grow(quota);
    view_join(h, &h->views[h->chains[chain].view], top);
    view_join(h, &h->views[quota_of(h, vc, chain)->view],
              quota->roots.items[quota->roots.count - 1]);
    leaves_bad_set_new(h, h->rests[top].node, first_leaf(h, top),
                       h->chains[chain].levels[level].leaf_count);
    return true;
}

static void view_release(struct view *view)
{
    assert(view->bucket_count <= view->bucket_room);
    mem_free(view->buckets);
    mem_free(view->order);
    mem_free(view->dirty);
    mem_free(view->by_priority);
}

static void quota_release(struct quota *quota, uint8_t top)
{
    if (!quota->is_present)
        return;
    for (uint8_t at = 1; at <= top; at++) {
        cell_list_release(&quota->levels[at].roots);
        cell_list_release(&quota->levels[at].doomed);
        mem_free(quota->levels[at].unbound);
    }
    mem_free(quota->levels);
}

void hived_unbuild(struct hived *h)
{
    for (uint32_t vc = 0; vc < h->vc_count; vc++) {
        for (uint32_t i = 0; i < h->chain_count; i++)
            quota_release(quota_of(h, vc, i), h->chains[i].top);
        cell_list_release(&h->vcs[vc].roots);
    }
    for (uint32_t i = 0; i < h->chain_count; i++) {
        for (uint8_t at = 1; at <= h->chains[i].top; at++) {
            free_list_release(&h->chains[i].levels[at].free);
            cell_list_release(&h->chains[i].levels[at].bad_free);
        }
        mem_free(h->chains[i].levels);
        cell_list_release(&h->chains[i].tops);
        cell_list_release(&h->chains[i].vcs);
    }
    for (uint32_t i = 0; i < h->view_count; i++)
        view_release(&h->views[i]);
    for (uint32_t i = 0; i < h->node_count; i++)
        cell_list_release(&h->nodes[i].leaves);
    text_map_release(&h->vc_index);
    text_map_release(&h->node_index);
    mem_free(h->views);
    mem_free(h->view_nodes);
    mem_free(h->quotas);
    mem_free(h->vcs);
    mem_free(h->chains);
    mem_free(h->pins);
    mem_free(h->nodes);
    mem_free(h->cells);
    mem_free(h->rests);
    mem_free(h->addresses);
    arena_release(&h->names);
    mem_free(h->priority);
    mem_free(h->taken);
    mem_free(h->scratch);
    mem_free(h->leaf_types);
    mem_free(h->cell_changes);
}
