/* hived.c — see hived.h. */
#include "placement/hived.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/problem.h"
#include "placement/hived_parts.h"
#include <assert.h>
#include <string.h>

static const struct placer_ops hived_ops;

/* --- nodes --- */

const struct known_node *placer_known_node(const struct placer_hived *p, struct node_id id)
{
    if (id.v < p->nodes.count && p->nodes.items[id.v].id == id.v)
        return &p->nodes.items[id.v]; /* told in the order of their numbers, as the core does */
    for (size_t i = 0; id.v != UINT32_MAX && i < p->nodes.count; i++) /* NODE_NONE */
        if (p->nodes.items[i].id == id.v)
            return &p->nodes.items[i];
    return NULL;
}

/* A node whose GPU is lost does not have what the configuration says; HiveD knows nodes only. */
static bool node_has_lost(const struct node_facts *node)
{
    for (uint32_t i = 0; i < node->gpu_count; i++)
        if (node_gpu_is_lost(node, i))
            return true;
    return false;
}

/* Devices that the configuration names must be there. */
static bool node_lacks_devices(const struct placer_hived *p, const struct node_facts *node)
{
    assert(p->hived);
    const struct hived_config *config = hived_config_of(p->hived);
    for (uint32_t type = 0; type < config->type_count; type++) {
        const struct hived_type *leaf = &config->types[type];
        const struct hived_sku *sku = hived_config_sku(config, leaf->name);
        uint32_t per_leaf = sku ? sku->gpu : 1;
        if (leaf->level != 1 || !per_leaf)
            continue;
        uint32_t highest = hived_node_highest(p->hived, node->name, leaf->name);
        if (highest != HIVED_NONE && (uint64_t)(highest + 1) * per_leaf > node->gpu_count)
            return true;
    }
    return false;
}

/* Count what a node offers now instead of what it offered. */
static void auto_count(struct placer_hived *p, const struct node_facts *before,
                       const struct node_facts *now)
{
    assert(p->is_automatic);
    if (before) {
        uint32_t grain = p->grain ? p->grain : 1;
        struct hived_auto_cpus had = hived_auto_cpus(before, grain),
                               has = hived_auto_cpus(now, grain);
        p->has_other_cpus |=
            had.leaves != has.leaves || had.cpu != has.cpu || had.memory_mib != has.memory_mib;
        hived_auto_count(&p->sum, before, false);
    }
    hived_auto_count(&p->sum, now, true);
}

bool placer_hived_is_outdated(const struct placer *placer)
{
    const struct placer_hived *p = (const struct placer_hived *)placer;
    return p->is_stale && p->hived && p->helds.count > p->gaps.count && !making_is_put_off(p);
}

bool placer_has_other_leaves(const struct placer_hived *p)
{
    return p->has_other_cpus || hived_auto_grain(&p->sum) != p->grain;
}

static int hived_node_changed(struct placer *placer, struct node_id id,
                              const struct node_facts *node, struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    search_close(p, false);
    p->decided = NULL;
    uint32_t at = text_map_get(&p->node_index, text_of(node->name));
    bool is_new = at == MAP_NONE;
    if (is_new) {
        at = (uint32_t)p->nodes.count;
        ARRAY_ADD(&p->nodes);
    }
    struct known_node *known = &p->nodes.items[at];
    bool is_changed = is_new || !node_facts_are_alike(&known->facts, node);
    if (p->is_automatic && is_changed)
        auto_count(p, is_new ? NULL : &known->facts, node);
    if (is_changed)
        making_node_changes(p, at);
    known->id = id.v;
    node_facts_copy(&known->facts, node);
    if (is_new)
        text_map_set(&p->node_index, text_of(known->facts.name), at);
    if (p->is_automatic) {
        making_node_changed(p, at, is_new, is_changed);
        return 0;
    }
    bool is_short = node_lacks_devices(p, node);
    if (!hived_node_set(p->hived, node->name,
                        node->is_healthy && !is_short && !node_has_lost(node)))
        return err_fail(err, ERR_NOT_FOUND, "physicalCluster.physicalCells",
                        "the configuration of the cells does not name it");
    if (is_short)
        return err_fail(err, ERR_CONFLICT, "physicalCluster.physicalCells",
                        "it has %u GPUs, fewer than its cells", node->gpu_count);
    return 0;
}

/* --- the whole --- */

static void hived_placer_free(struct placer *placer)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    search_drop(p);
    making_drop(p);
    for (size_t i = 0; i < p->nodes.count; i++)
        node_facts_release(&p->nodes.items[i].facts);
    for (size_t i = 0; i < p->helds.count; i++)
        if (p->helds.items[i].name)
            placer_held_drop(p, (uint32_t)i);
    placer_leaving_free(p);
    ARRAY_FREE(&p->nodes);
    ARRAY_FREE(&p->helds);
    ARRAY_FREE(&p->gaps);
    text_map_release(&p->node_index);
    text_map_release(&p->held_index);
    id_map_release(&p->expected);
    arena_release(&p->arena);
    hived_free(p->hived);
    mem_free(p);
}

/* First what HiveD keeps, then what is kept of it here; the tables themselves come last. */
static bool hived_placer_free_some(struct placer *placer, uint32_t tasks)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    uint32_t left = tasks;
    search_drop(p);
    if (p->hived && !hived_free_some(p->hived, &left))
        return false;
    p->hived = NULL;
    for (; left > 0 && p->helds.count > 0; left--, p->helds.count--)
        if (p->helds.items[p->helds.count - 1].name)
            placer_held_drop(p, (uint32_t)p->helds.count - 1);
    for (; left > 0 && p->nodes.count > 0; left--)
        node_facts_release(&p->nodes.items[--p->nodes.count].facts);
    if (p->helds.count > 0 || p->nodes.count > 0)
        return false;
    hived_placer_free(placer);
    return true;
}

static void hived_placer_take_over(struct placer *placer)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    p->making.is_served = p->is_stale && p->hived;
}

static struct placer_hived *placer_alloc(void)
{
    struct placer_hived *p = mem_zero(1, sizeof *p);
    p->base.ops = &hived_ops;
    arena_init(&p->arena);
    return p;
}

/* --- a copy, in pieces: how far it has come is what it has --- */

enum { /* a task is as much work as to copy so many cells; the rest as so many tasks */
       CELLS_PER_TASK = 6,
       COST_OF_NODE = 6,
       COST_OF_HELD = 6,
       SLOTS_PER_TASK = 8,
};

static struct placer_hived *copy_begin(const struct placer_hived *from)
{
    struct placer_hived *p = placer_alloc();
    p->is_automatic = from->is_automatic;
    p->is_stale = from->is_stale;
    p->grain = from->grain;
    p->sum = from->sum;
    p->has_other_cpus = from->has_other_cpus;
    p->listings = from->listings;
    return p;
}

static void node_copy(struct placer_hived *p, const struct known_node *old)
{
    const uint32_t at = (uint32_t)p->nodes.count;
    struct known_node *node = ARRAY_ADD(&p->nodes);
    node->id = old->id;
    node->is_odd = old->is_odd;
    node->is_odd_next = old->is_odd_next;
    node_facts_copy(&node->facts, &old->facts);
    text_map_set(&p->node_index, text_of(node->facts.name), at);
}

/* Of so many tasks, how many are left when HiveD is copied. */
static uint32_t state_copy_some(struct placer_hived *p, const struct placer_hived *from,
                                uint32_t tasks)
{
    const bool is_all = tasks >= UINT32_MAX / CELLS_PER_TASK;
    uint32_t cells = is_all ? UINT32_MAX : tasks * CELLS_PER_TASK;
    if (from->hived && !p->is_hived_copied)
        p->is_hived_copied = hived_copy_some(from->hived, &p->hived, &cells);
    if (from->hived && !p->is_hived_copied)
        return 0;
    return is_all ? UINT32_MAX : (cells + CELLS_PER_TASK - 1) / CELLS_PER_TASK;
}

static bool hived_placer_copy_some(const struct placer *placer, struct placer **copy,
                                   uint32_t tasks)
{
    const struct placer_hived *from = (const struct placer_hived *)placer;
    struct placer_hived *p = *copy ? (struct placer_hived *)*copy : copy_begin(from);
    *copy = &p->base;
    /* the next question, be it a check, makes few cells that are due: not between two pieces */
    tasks = state_copy_some(p, from, placer_hived_is_due(from) ? UINT32_MAX : tasks);
    uint64_t done = 0;
    for (; done < tasks && p->nodes.count < from->nodes.count; done += COST_OF_NODE)
        node_copy(p, &from->nodes.items[p->nodes.count]);
    for (; done < tasks && p->helds.count < from->helds.count; done += COST_OF_HELD)
        done += placer_held_copy(p, from, (uint32_t)p->helds.count) / SLOTS_PER_TASK;
    if (p->nodes.count < from->nodes.count || p->helds.count < from->helds.count || !tasks)
        return false;
    making_copy(p, from);
    placer_leaving_copy(p, from);
    id_map_copy(&p->expected, &from->expected);
    search_copy(p, from);
    p->is_hived_copied = false;
    return true;
}

static struct placer *hived_placer_copy(const struct placer *placer)
{
    struct placer *copy = NULL;
    while (!hived_placer_copy_some(placer, &copy, UINT32_MAX))
        ;
    return copy;
}

static const struct placer_ops hived_ops = {
    .name = "hived",
    .nodes_per_work = 256,
    .free = hived_placer_free,
    .free_some = hived_placer_free_some,
    .take_over = hived_placer_take_over,
    .node_set = hived_node_changed,
    .is_outdated = placer_hived_is_outdated,
    .place = placer_hived_place,
    .commit = placer_hived_take,
    .expect = placer_hived_expect,
    .release_slot = placer_hived_slot_over,
    .release_group = placer_hived_group_over,
    .cancel = placer_hived_cancel,
    .tidy = placer_hived_tidy,
    .is_making = placer_hived_is_making,
    .forget = placer_hived_forget,
    .copy = hived_placer_copy,
    .copy_some = hived_placer_copy_some,
    .check = placer_hived_check,
};

struct placer *placer_hived_new(const struct doc *doc, struct err *err)
{
    struct placer_hived *p = placer_alloc();
    p->is_automatic = !doc;
    p->is_stale = !doc;
    if (!doc)
        return &p->base;
    cleanup_problems struct problems problems;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    problems_init(&problems, &arena);
    struct hived_config *config = hived_config_read(doc, &problems);
    size_t first = 0;
    while (!config && problems.items[first].is_warning)
        first++;
    if (config)
        p->hived = hived_new(config);
    else
        err_fail(err, ERR_INVALID, problems.items[first].path, "line %u: %s",
                 problems.items[first].place.line, problems.items[first].text);
    if (config)
        return &p->base;
    hived_placer_free(&p->base);
    return NULL;
}

struct hived *placer_hived_copy(const struct placer *placer)
{
    if (placer->ops != &hived_ops)
        return NULL;
    const struct placer_hived *p = (const struct placer_hived *)placer;
    if (!placer_hived_is_due(p))
        return p->hived ? hived_copy(p->hived) : NULL;
    struct placer *copy = hived_placer_copy(placer);
    struct hived *hived = placer_hived_state(copy);
    ((struct placer_hived *)copy)->hived = NULL;
    hived_placer_free(copy);
    return hived;
}

bool placer_hived_mirror(const struct placer *placer, struct hived **copy, struct hived **old,
                         uint32_t cells)
{
    const struct placer_hived *p = (const struct placer_hived *)placer;
    const bool is_hived = placer->ops == &hived_ops && p->hived;
    /* cells that no question has made yet are few; a decision that nobody takes is not shown */
    const bool is_whole =
        is_hived &&
        (placer_hived_is_due(p) || (hived_is_pending(p->hived) && !hived_is_displacing(p->hived)));
    if (*copy && (!is_hived || is_whole || !hived_mirror_is_of(*copy, p->hived))) {
        hived_free(*old);
        *old = *copy;
        *copy = NULL;
    }
    if (!is_hived || is_whole) {
        *copy = placer_hived_copy(placer);
        return true;
    }
    if (!*copy) {
        *copy = hived_mirror_new(p->hived); /* a piece by itself: it takes much memory */
        return false;
    }
    return hived_mirror_update(*copy, p->hived, cells);
}

struct hived *placer_hived_state(struct placer *placer)
{
    if (placer->ops != &hived_ops)
        return NULL;
    struct placer_hived *p = (struct placer_hived *)placer;
    placer_hived_refresh(p);
    return p->hived;
}
