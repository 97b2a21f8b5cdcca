/* hived_make.c — automatic cells follow the nodes, in pieces where there are many: see
 * hived_parts.h, and "Cells in pieces" in docs/rfc/0003-hived.md. */
#include <assert.h>

#include "base/memory.h"
#include "placement/hived_parts.h"

enum {
    LEAVES_PER_TASK = 4, /* to make a leaf costs less than a task's whole placement */
    PUTS_OFF_MAX = 64,
};

static bool is_making(const struct placer_hived *p)
{
    return p->making.maker || p->making.cells;
}

/* Too large for one piece. */
static bool is_large(const struct placer_hived *p)
{
    const uint32_t grain = hived_auto_grain(&p->sum);
    return p->making.leaves && p->sum.leaves[__builtin_ctz(grain)] > p->making.leaves;
}

static void described_release(struct placer_hived *p)
{
    for (size_t i = 0; i < p->nodes.count; i++)
        if (p->nodes.items[i].described.name)
            node_facts_release(&p->nodes.items[i].described);
}

void making_drop(struct placer_hived *p)
{
    described_release(p);
    hived_maker_free(p->making.maker);
    hived_free(p->making.cells);
    p->making = (struct cells_making){.leaves = p->making.leaves};
}

/* --- in one piece --- */

bool placer_hived_is_due(const struct placer_hived *p)
{
    return p->is_stale && !is_large(p);
}

void placer_hived_refresh(struct placer_hived *p)
{
    if (!placer_hived_is_due(p))
        return;
    p->is_stale = false;
    placer_leaving_finish(p);
    making_drop(p);
    p->grain = hived_auto_grain(&p->sum);
    p->has_other_cpus = false;
    struct hived_maker *maker = hived_maker_new((uint32_t)p->nodes.count, p->grain);
    for (size_t i = 0; i < p->nodes.count; i++)
        hived_maker_add(maker, &p->nodes.items[i].facts, NULL); /* or it is left out */
    if (p->hived)
        hived_reconfigure(p->hived, hived_maker_finish(maker));
    else
        p->hived = hived_new(hived_maker_finish(maker));
    for (size_t i = 0; i < p->nodes.count; i++) {
        struct known_node *node = &p->nodes.items[i];
        node->is_odd = false;
        hived_node_set(p->hived, node->facts.name, node->facts.is_healthy);
    }
}

/* --- a node more --- */

/* One of a kind that is there already joins at the price of itself. */
static bool node_join(const struct placer_hived *p, struct hived *cells, uint32_t grain,
                      const struct node_facts *node)
{
    if (hived_auto_grain(&p->sum) != grain)
        return false;
    struct hived_config *config = hived_config_auto(node, 1, grain, NULL);
    bool is_joined = config && config->cell_count > 0;
    for (uint32_t i = 0; is_joined && i < config->sku_count; i++) {
        const struct hived_sku *own = &config->skus[i];
        const struct hived_sku *all = hived_config_sku(hived_config_of(cells), own->leaf_type);
        is_joined = all && all->cpu <= own->cpu && all->memory_mib <= own->memory_mib;
    }
    for (uint32_t i = 0; is_joined && i < config->cell_count; i++)
        is_joined = hived_node_add(cells, config->cells[i].type_name, &config->cells[i], "default");
    hived_config_free(config);
    return is_joined;
}

/* Where there are many, tables are not enlarged but made anew, in pieces. */
static bool has_room(const struct placer_hived *p, const struct hived *cells, uint32_t grain,
                     const struct node_facts *node)
{
    return !is_large(p) ||
           hived_has_room(cells, node->gpu_count + hived_auto_cpus(node, grain).leaves);
}

void making_node_changes(struct placer_hived *p, uint32_t at)
{
    struct cells_making *making = &p->making;
    struct known_node *node = &p->nodes.items[at];
    const bool had_turn = at < making->next || (making->cells && at < making->count);
    if (!is_making(p) || !had_turn)
        return;
    if (making->maker && !node->described.name)
        node_facts_copy(&node->described, &node->facts);
    node->is_odd_next = true;
    making->is_missed = true;
}

void making_node_changed(struct placer_hived *p, uint32_t at, bool is_new, bool is_changed)
{
    assert(p->is_automatic && at < p->nodes.count);
    struct cells_making *making = &p->making;
    struct known_node *node = &p->nodes.items[at];
    const struct node_facts *facts = &node->facts;
    const bool is_joined = is_new && !p->is_stale && p->hived &&
                           has_room(p, p->hived, p->grain, facts) &&
                           node_join(p, p->hived, p->grain, facts);
    if (is_changed && !is_joined) {
        p->is_stale = node->is_odd = making->is_settling = true;
        making->puts_off += !is_new; /* there is an end to new ones */
    }
    if (p->hived && (!p->is_stale || is_large(p)))
        hived_node_set(p->hived, facts->name, facts->is_healthy && !node->is_odd);
    if (making->cells && at < making->next)
        hived_node_set(making->cells, facts->name, facts->is_healthy && !node->is_odd_next);
}

/* --- in pieces --- */

static void making_begin(struct placer_hived *p)
{
    assert(!is_making(p) && p->is_stale);
    const uint32_t count = (uint32_t)p->nodes.count, grain = hived_auto_grain(&p->sum);
    p->making = (struct cells_making){.maker = hived_maker_new(count, grain),
                                      .count = count,
                                      .grain = grain,
                                      .leaves = p->making.leaves};
}

static uint32_t node_leaves(const struct cells_making *making, const struct node_facts *node)
{
    return 1 + node->gpu_count + hived_auto_cpus(node, making->grain).leaves;
}

static void nodes_describe(struct placer_hived *p, uint32_t leaves)
{
    struct cells_making *making = &p->making;
    for (uint32_t done = 0; done < leaves && making->next < making->count; making->next++) {
        struct known_node *node = &p->nodes.items[making->next];
        node->is_odd_next = false;
        hived_maker_add(making->maker, &node->facts, NULL); /* or it is left out */
        done += node_leaves(making, &node->facts);
    }
}

/* Those that came later join. */
static void nodes_tell(struct placer_hived *p, uint32_t leaves)
{
    struct cells_making *making = &p->making;
    for (uint32_t done = 0; done < leaves && making->next < p->nodes.count; making->next++) {
        struct known_node *node = &p->nodes.items[making->next];
        const struct node_facts *facts = &node->facts;
        if (making->next >= making->count) {
            node->is_odd_next = !has_room(p, making->cells, making->grain, facts) ||
                                !node_join(p, making->cells, making->grain, facts);
            making->is_missed |= node->is_odd_next;
        }
        hived_node_set(making->cells, facts->name, facts->is_healthy && !node->is_odd_next);
        done += node_leaves(making, facts);
    }
}

/* From now on these are the cells. What runs was told in leaves that may mean something else now:
 * then the core makes another placer (is_outdated). */
static void making_end(struct placer_hived *p)
{
    struct cells_making *making = &p->making;
    assert(!p->search.group && placer_is_tidy(p));
    p->decided = NULL;
    if (placer_hived_is_outdated(&p->base) && placer_has_other_leaves(p)) {
        making_drop(p);
        return;
    }
    if (p->hived)
        hived_adopt(p->hived, making->cells);
    else
        p->hived = making->cells;
    for (size_t i = 0; i < p->nodes.count; i++)
        p->nodes.items[i].is_odd = p->nodes.items[i].is_odd_next;
    described_release(p);
    making->is_missed |= hived_auto_grain(&p->sum) != making->grain; /* before its turn */
    p->grain = making->grain;
    p->is_stale = making->is_missed;
    p->has_other_cpus &= making->is_missed;
    *making = (struct cells_making){.leaves = making->leaves, .is_served = making->is_missed};
}

void making_copy(struct placer_hived *p, const struct placer_hived *from)
{
    struct cells_making *making = &p->making;
    assert(p->nodes.count == from->nodes.count);
    *making = from->making;
    if (making->cells)
        making->cells = hived_copy(from->making.cells);
    if (!making->maker)
        return;
    making->maker = hived_maker_new(making->count, making->grain);
    for (uint32_t i = 0; i < making->next; i++) {
        const struct known_node *node = &from->nodes.items[i];
        const bool was_other = node->described.name != NULL;
        hived_maker_add(making->maker, was_other ? &node->described : &node->facts, NULL);
        if (was_other)
            node_facts_copy(&p->nodes.items[i].described, &node->described);
    }
}

static void making_go_on(struct placer_hived *p)
{
    struct cells_making *making = &p->making;
    if (making->maker && making->next < making->count) {
        nodes_describe(p, making->leaves);
    } else if (making->maker) {
        making->cells = hived_begin(hived_maker_finish(making->maker));
        making->maker = NULL;
        making->next = 0;
    } else if (hived_build_some(making->cells, making->leaves)) {
        nodes_tell(p, making->leaves);
        if (making->next < p->nodes.count)
            return;
        search_close(p, false);
        if (placer_is_tidy(p)) /* they are told of what runs */
            making_end(p);
    }
}

void making_tidy(struct placer_hived *p, uint32_t tasks)
{
    struct cells_making *making = &p->making;
    const bool is_settling = making->is_settling && making->puts_off <= PUTS_OFF_MAX;
    making->leaves = tasks < UINT32_MAX / LEAVES_PER_TASK ? tasks * LEAVES_PER_TASK : UINT32_MAX;
    making->is_settling = false;
    if (!making_is_due(p))
        return;
    if (is_making(p)) {
        making_go_on(p);
    } else if (!is_settling) {
        making_begin(p);
    }
}

bool making_is_put_off(const struct placer_hived *p)
{
    return p->making.is_served && is_large(p);
}

bool making_is_due(const struct placer_hived *p)
{
    return is_making(p) || (p->is_stale && is_large(p) && !making_is_put_off(p));
}

bool placer_hived_is_making(const struct placer *placer)
{
    return making_is_due((const struct placer_hived *)placer);
}

void making_asked(struct placer_hived *p)
{
    p->making.is_served = false;
}
