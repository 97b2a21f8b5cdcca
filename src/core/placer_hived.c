/* placer_hived.c — see placer_hived.h. */
#include "core/placer_hived.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "doc/problem.h"
#include "hived/auto.h"
#include "hived/hived.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { COMBOS_MAX = 64, TYPES_TRIED_MAX = 32 };

struct known_node {
    char *name, *gpu_type;
    uint16_t *gpu_numa, *gpu_switch;
    uint32_t id, cpu, gpu_count;
    uint64_t memory_mib;
    bool is_healthy, is_present;
};

struct held_slot { /* of a task: gang of HiveD, slot there */
    uint32_t part, slot;
};

struct held { /* what a group of the core is to HiveD */
    char *name;
    char **parts;
    uint32_t part_count, slot_count;
    struct held_slot *places;
};

struct part { /* the members of a request on one leaf type */
    struct hived_request request;
    struct hived_placement placement;
    uint32_t *slots; /* by HiveD's slot: the task */
    const char *leaf_type;
    uint32_t gpu_per_leaf;
    enum hived_kind kind;
    const struct hived_victim *victims;
    uint32_t victim_count;
    const char *reason;
    bool is_never;
};

struct decision { /* a way to place a request */
    struct part *parts;
    uint32_t part_count;
};

struct placer_hived {
    struct placer base;
    struct hived *hived; /* NULL: automatic, and nothing known yet */
    bool is_automatic, is_stale;
    struct {
        struct known_node *items;
        size_t count, room;
    } nodes;
    struct text_map node_index;
    struct {
        struct held *items;
        size_t count, room;
    } helds;
    struct {
        uint32_t *items;
        size_t count, room;
    } gaps;
    struct text_map held_index; /* the core's names and HiveD's */
    /* the last decision to bind, for its commit */
    struct arena arena;
    const char *decided; /* group, or NULL */
    struct decision decision;
    const struct placement_slot *decided_slots;
    size_t decided_count;
};

static const struct placer_ops hived_ops;

/* --- nodes --- */

static void refresh(struct placer_hived *p)
{
    if (!p->is_stale)
        return;
    p->is_stale = false;
    struct hived_auto_node *nodes = mem_alloc(mem_size(p->nodes.count + 1, sizeof *nodes));
    uint32_t count = 0;
    for (size_t i = 0; i < p->nodes.count; i++) {
        const struct known_node *node = &p->nodes.items[i];
        if (node->is_present)
            nodes[count++] = (struct hived_auto_node){.name = node->name,
                                                      .cpu = node->cpu,
                                                      .gpu_count = node->gpu_count,
                                                      .memory_mib = node->memory_mib,
                                                      .gpu_type = node->gpu_type,
                                                      .gpu_numa = node->gpu_numa,
                                                      .gpu_switch = node->gpu_switch};
    }
    struct hived_config *config = hived_config_auto(nodes, count, NULL);
    while (!config && count > 0) /* beyond the limits: the last nodes stay out */
        config = hived_config_auto(nodes, count -= count / 8 + 1, NULL);
    mem_free(nodes);
    assert(config);
    if (p->hived)
        hived_reconfigure(p->hived, config);
    else
        p->hived = hived_new(config);
    for (size_t i = 0; i < p->nodes.count; i++)
        if (p->nodes.items[i].is_present)
            hived_node_set(p->hived, p->nodes.items[i].name, p->nodes.items[i].is_healthy);
}

/* A node of a kind that is there already joins at the price of itself. */
static bool node_join(struct placer_hived *p, const struct known_node *node)
{
    struct hived_auto_node one = {.name = node->name,
                                  .cpu = node->cpu,
                                  .gpu_count = node->gpu_count,
                                  .memory_mib = node->memory_mib,
                                  .gpu_type = node->gpu_type,
                                  .gpu_numa = node->gpu_numa,
                                  .gpu_switch = node->gpu_switch};
    struct hived_config *config = hived_config_auto(&one, 1, NULL);
    bool is_joined = config && config->cell_count > 0;
    for (uint32_t i = 0; is_joined && i < config->sku_count; i++) {
        const struct hived_sku *own = &config->skus[i];
        const struct hived_sku *all = hived_config_sku(hived_config_of(p->hived), own->leaf_type);
        is_joined = all && all->cpu <= own->cpu && all->memory_mib <= own->memory_mib;
    }
    for (uint32_t i = 0; is_joined && i < config->cell_count; i++)
        is_joined =
            hived_node_add(p->hived, config->cells[i].type_name, &config->cells[i], "default");
    hived_config_free(config);
    return is_joined;
}

static bool numbers_differ(const uint16_t *a, const uint16_t *b, uint32_t count)
{
    if (!a || !b)
        return a != b;
    return count && memcmp(a, b, count * sizeof *a);
}

static bool shape_differs(const struct known_node *known, const struct placement_node *node)
{
    return known->cpu != node->cpu || known->memory_mib != node->memory_mib ||
           known->gpu_count != node->gpu_count || strcmp(known->gpu_type, node->gpu_type) ||
           numbers_differ(known->gpu_numa, node->gpu_numa, node->gpu_count) ||
           numbers_differ(known->gpu_switch, node->gpu_switch, node->gpu_count);
}

static uint16_t *numbers_copy(const uint16_t *numbers, uint32_t count)
{
    if (!numbers || !count)
        return NULL;
    uint16_t *copy = mem_alloc(mem_size(count, sizeof *copy));
    memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

static void known_clear(struct known_node *known)
{
    mem_free(known->gpu_type);
    mem_free(known->gpu_numa);
    mem_free(known->gpu_switch);
    known->gpu_type = NULL;
    known->gpu_numa = known->gpu_switch = NULL;
}

static void known_fill(struct known_node *known, const struct placement_node *node)
{
    known_clear(known);
    known->id = node->id.v;
    known->cpu = node->cpu;
    known->memory_mib = node->memory_mib;
    known->gpu_count = node->gpu_count;
    known->gpu_type = mem_copy(node->gpu_type);
    known->gpu_numa = numbers_copy(node->gpu_numa, node->gpu_count);
    known->gpu_switch = numbers_copy(node->gpu_switch, node->gpu_count);
    known->is_healthy = node->is_healthy;
    known->is_present = true;
}

/* Devices that the configuration names must be there. */
static bool node_lacks_devices(const struct placer_hived *p, const struct placement_node *node)
{
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

static int hived_node_changed(struct placer *placer, const struct placement_node *node,
                              struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    p->decided = NULL;
    uint32_t at = text_map_get(&p->node_index, text_of(node->name));
    bool is_new = at == MAP_NONE;
    if (is_new) {
        at = (uint32_t)p->nodes.count;
        struct known_node *added = ARRAY_ADD(&p->nodes);
        added->name = mem_copy(node->name);
        added->gpu_type = mem_copy("");
        text_map_set(&p->node_index, text_of(added->name), at);
    }
    struct known_node *known = &p->nodes.items[at];
    bool is_changed = is_new || !known->is_present || shape_differs(known, node);
    known_fill(known, node);
    if (p->is_automatic) {
        bool is_joined = is_new && !p->is_stale && p->hived && node_join(p, known);
        p->is_stale |= is_changed && !is_joined;
        if (!p->is_stale)
            hived_node_set(p->hived, node->name, node->is_healthy);
        return 0;
    }
    bool is_short = node_lacks_devices(p, node);
    if (!hived_node_set(p->hived, node->name, node->is_healthy && !is_short)) {
        known->is_present = false;
        return err_fail(err, ERR_NOT_FOUND, "physicalCluster.physicalCells",
                        "the configuration has no node %s", node->name);
    }
    if (is_short)
        return err_fail(err, ERR_CONFLICT, "physicalCluster.physicalCells",
                        "node %s has %u GPUs, fewer than configured; it is not used", node->name,
                        node->gpu_count);
    return 0;
}

static void hived_node_gone(struct placer *placer, struct node_id id)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    p->decided = NULL;
    for (size_t i = 0; i < p->nodes.count; i++) {
        struct known_node *known = &p->nodes.items[i];
        if (known->id != id.v || !known->is_present)
            continue;
        known->is_present = false;
        if (p->is_automatic)
            p->is_stale = true;
        else
            hived_node_set(p->hived, known->name, false);
    }
}

/* --- demands to leaves --- */

static uint32_t leaves_of(const struct hived_config *config, const char *leaf_type, uint32_t gpu,
                          uint32_t cpu, uint64_t memory_mib)
{
    const struct hived_sku *sku = hived_config_sku(config, leaf_type);
    struct hived_sku one = {leaf_type, 1, 0, 0};
    if (!sku)
        sku = &one;
    if (gpu && !sku->gpu)
        return 0;
    uint64_t leaves = 1, by_gpu = gpu ? (gpu + sku->gpu - 1) / sku->gpu : 0;
    uint64_t by_cpu = sku->cpu ? (cpu + sku->cpu - 1) / sku->cpu : 0;
    uint64_t by_memory = sku->memory_mib ? (memory_mib + sku->memory_mib - 1) / sku->memory_mib : 0;
    leaves = by_gpu > leaves ? by_gpu : leaves;
    leaves = by_cpu > leaves ? by_cpu : leaves;
    leaves = by_memory > leaves ? by_memory : leaves;
    return leaves > HIVED_LEAVES_MAX ? HIVED_LEAVES_MAX : (uint32_t)leaves;
}

uint32_t placer_hived_leaves(struct placer *placer, const char *leaf_type, uint32_t gpu,
                             uint32_t cpu, uint64_t memory_mib)
{
    struct hived *hived = placer_hived_state(placer);
    return hived ? leaves_of(hived_config_of(hived), leaf_type, gpu, cpu, memory_mib) : 0;
}

static uint32_t gpus_per_leaf(const struct hived_config *config, const char *leaf_type)
{
    const struct hived_sku *sku = hived_config_sku(config, leaf_type);
    return sku ? sku->gpu : 1;
}

struct candidates { /* leaf types that a member may use, best first */
    const char *types[TYPES_TRIED_MAX];
    uint32_t count;
};

static void candidates_add_kind(const struct placer_hived *p, struct candidates *list,
                                bool wants_gpu)
{
    const struct hived_config *config = hived_config_of(p->hived);
    for (uint32_t i = 0; i < hived_leaf_type_count(p->hived); i++) {
        const char *type = hived_leaf_type_name(p->hived, i);
        bool has_gpu = gpus_per_leaf(config, type) > 0;
        if (has_gpu == wants_gpu && list->count < TYPES_TRIED_MAX)
            list->types[list->count++] = type;
    }
}

static int candidates_of(const struct placer_hived *p, const struct placement_member *member,
                         struct candidates *list, struct err *err)
{
    *list = (struct candidates){0};
    struct text rest = text_of(member->sku_type ? member->sku_type : "");
    if (!rest.length) {
        if (!member->gpu)
            candidates_add_kind(p, list, false);
        candidates_add_kind(p, list, true);
        return 0;
    }
    while (rest.at) {
        struct text name = text_trim(text_cut(&rest, ','));
        for (uint32_t i = 0; i < hived_leaf_type_count(p->hived); i++) {
            const char *type = hived_leaf_type_name(p->hived, i);
            if (text_is(name, type) && list->count < TYPES_TRIED_MAX)
                list->types[list->count++] = type;
        }
    }
    if (!list->count)
        return err_fail(err, ERR_NOT_FOUND, "skuType", "the cluster has no %.100s",
                        member->sku_type);
    return 0;
}

/* --- splitting a request --- */

struct split {
    struct placer_hived *p;
    const struct placement_request *request;
    struct arena *arena;
    struct candidates *candidates; /* by member */
    uint32_t *kinds;               /* by member: which distinct list of candidates */
    uint32_t kind_count;
    uint32_t *choice; /* by kind: place in its list */
    uint32_t *first;  /* by kind: a member of it */
    uint32_t *starts; /* by member: first task */
};

static bool candidates_equal(const struct candidates *a, const struct candidates *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->types[i], b->types[i]))
            return false;
    return true;
}

static int split_init(struct split *split, struct placer_hived *p,
                      const struct placement_request *request, struct arena *arena, struct err *err)
{
    size_t members = request->member_count;
    *split = (struct split){.p = p, .request = request, .arena = arena};
    split->candidates = ARENA_ARRAY(arena, struct candidates, members + 1);
    split->kinds = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->choice = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->first = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->starts = ARENA_ARRAY(arena, uint32_t, members + 1);
    for (uint32_t i = 0; i < members; i++) {
        int code = candidates_of(p, &request->members[i], &split->candidates[i], err);
        if (code)
            return code;
        split->starts[i + 1] = split->starts[i] + request->members[i].count;
        uint32_t kind = 0;
        while (kind < split->kind_count &&
               !candidates_equal(&split->candidates[split->first[kind]], &split->candidates[i]))
            kind++;
        if (kind == split->kind_count)
            split->first[split->kind_count++] = i;
        split->kinds[i] = kind;
    }
    return 0;
}

static const char *member_type(const struct split *split, uint32_t member)
{
    uint32_t kind = split->kinds[member];
    return split->candidates[member].types[split->choice[kind]];
}

/* The next combination of choices; false: that was the last one. */
static bool split_next(struct split *split)
{
    for (uint32_t kind = split->kind_count; kind-- > 0;) {
        if (++split->choice[kind] < split->candidates[split->first[kind]].count)
            return true;
        split->choice[kind] = 0;
    }
    return false;
}

struct order {
    uint32_t leaves, member;
};

static int order_compare(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->leaves != y->leaves)
        return x->leaves < y->leaves ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

/* Strings and members in the split's arena, so that a commit can use them. False: a member's demand
 * cannot be served by this type. */
static bool part_make(const struct split *split, const char *type, uint32_t number,
                      struct part *part)
{
    const struct placement_request *request = split->request;
    const struct hived_config *config = hived_config_of(split->p->hived);
    struct arena *arena = split->arena;
    struct hived_member *members = ARENA_ARRAY(arena, struct hived_member, request->member_count);
    struct order *order = ARENA_ARRAY(arena, struct order, request->member_count);
    uint32_t count = 0, tasks = 0;
    for (uint32_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        if (strcmp(member_type(split, i), type) || !member->count)
            continue;
        uint32_t leaves = leaves_of(config, type, member->gpu, member->cpu, member->memory_mib);
        if (!leaves)
            return false;
        const char *within = member->within_one_cell ? member->within_one_cell : "";
        members[count] =
            (struct hived_member){.pods = member->count,
                                  .leaves = leaves,
                                  .within_one_cell = arena_copy(arena, text_of(within))};
        order[count++] = (struct order){leaves, i};
        tasks += member->count;
    }
    const char *group = number ? arena_format(arena, "%s#%s", request->group, type)
                               : arena_copy(arena, text_of(request->group));
    const char *pin = request->pinned_cell_id ? request->pinned_cell_id : "";
    part->leaf_type = arena_copy(arena, text_of(type));
    part->gpu_per_leaf = gpus_per_leaf(config, type);
    part->request = (struct hived_request){.group = group,
                                           .virtual_cluster =
                                               arena_copy(arena, text_of(request->virtual_cluster)),
                                           .priority = request->priority,
                                           .pinned_cell = arena_copy(arena, text_of(pin)),
                                           .leaf_type = part->leaf_type,
                                           .is_lazy = request->is_lazy_preemptible,
                                           .members = members,
                                           .member_count = count};
    /* HiveD's slots ascend by leaves, then follow the members */
    qsort(order, count, sizeof *order, order_compare);
    part->slots = ARENA_ARRAY(arena, uint32_t, tasks + 1);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < request->members[order[i].member].count; k++)
            part->slots[slot++] = split->starts[order[i].member] + k;
    return true;
}

/* One part a distinct leaf type of the current combination. */
static bool decision_make(const struct split *split, struct decision *decision)
{
    *decision =
        (struct decision){.parts = ARENA_ARRAY(split->arena, struct part, split->kind_count + 1)};
    for (uint32_t i = 0; i < split->request->member_count; i++) {
        const char *type = member_type(split, i);
        bool is_known = split->request->members[i].count == 0;
        for (uint32_t k = 0; k < decision->part_count; k++)
            is_known |= !strcmp(decision->parts[k].leaf_type, type);
        if (is_known)
            continue;
        uint32_t number = decision->part_count++;
        if (!part_make(split, type, number, &decision->parts[number]))
            return false;
    }
    return decision->part_count > 0;
}

/* --- placing --- */

struct attempt {
    struct placer_hived *p;
    const struct placement_request *request;
    struct arena *arena; /* the caller's */
    struct hived_scope avoid;
};

static int part_schedule(struct attempt *attempt, struct part *part, enum hived_phase phase,
                         const struct hived_scope *scope, struct err *err)
{
    struct hived_result result;
    part->request.uses_suggested = scope != NULL;
    int code = hived_schedule(attempt->p->hived, &part->request, attempt->request->group, phase,
                              scope, 0, &attempt->p->arena, &result, err);
    if (code)
        return code;
    part->kind = result.kind;
    part->placement = result.placement;
    part->victims = result.victims;
    part->victim_count = result.victim_count;
    part->reason = result.reason;
    part->is_never = result.is_never;
    return 0;
}

/* The worst of the parts: a wait of one is a wait of all. */
static int decision_schedule(struct attempt *attempt, struct decision *decision,
                             enum hived_phase phase, const struct hived_scope *scope,
                             enum hived_kind *kind, struct err *err)
{
    *kind = HIVED_BIND;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        struct part *part = &decision->parts[i];
        int code = part_schedule(attempt, part, phase, scope, err);
        if (code)
            return code;
        if (part->kind == HIVED_WAIT) {
            *kind = HIVED_WAIT;
            return 0;
        }
        if (part->kind == HIVED_PREEMPT)
            *kind = HIVED_PREEMPT;
    }
    return 0;
}

static void slot_fill(const struct placer_hived *p, const struct part *part,
                      const struct hived_slot *from, struct placement_slot *slot)
{
    uint32_t node = text_map_get(&p->node_index, text_of(from->node));
    assert(node != MAP_NONE);
    *slot = (struct placement_slot){.node = {p->nodes.items[node].id}};
    for (uint32_t i = 0; i < from->leaf_count; i++)
        for (uint32_t k = 0; k < part->gpu_per_leaf && slot->gpu_count < PLACEMENT_GPUS_MAX; k++)
            slot->gpus[slot->gpu_count++] = (uint16_t)(from->indices[i] * part->gpu_per_leaf + k);
}

static void result_bind(struct attempt *attempt, const struct decision *decision,
                        struct placement_result *result)
{
    struct placer_hived *p = attempt->p;
    size_t count = 0;
    for (uint32_t i = 0; i < decision->part_count; i++)
        count += decision->parts[i].placement.slot_count;
    result->kind = PLACEMENT_BIND;
    result->slots = ARENA_ARRAY(attempt->arena, struct placement_slot, count);
    result->slot_count = count;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        const struct part *part = &decision->parts[i];
        for (uint32_t k = 0; k < part->placement.slot_count; k++)
            slot_fill(p, part, &part->placement.slots[k], &result->slots[part->slots[k]]);
    }
    struct placement_slot *kept = ARENA_ARRAY(&p->arena, struct placement_slot, count);
    memcpy(kept, result->slots, count * sizeof *kept);
    p->decided = arena_copy(&p->arena, text_of(attempt->request->group));
    p->decision = *decision;
    p->decided_slots = kept;
    p->decided_count = count;
}

static void result_preempt(struct attempt *attempt, const struct decision *decision,
                           struct placement_result *result)
{
    const struct placer_hived *p = attempt->p;
    size_t room = 1;
    for (uint32_t i = 0; i < decision->part_count; i++)
        room += decision->parts[i].victim_count;
    result->kind = PLACEMENT_PREEMPT;
    result->victims = ARENA_ARRAY(attempt->arena, const char *, room);
    const char *last = NULL;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        for (uint32_t k = 0; k < decision->parts[i].victim_count; k++) {
            const char *name = decision->parts[i].victims[k].group;
            if (last && !strcmp(last, name))
                continue; /* pods of one group stand together */
            last = name;
            uint32_t held = text_map_get(&p->held_index, text_of(name));
            const char *victim = held == MAP_NONE ? name : p->helds.items[held].name;
            bool is_known = false;
            for (size_t v = 0; v < result->victim_count; v++)
                is_known |= !strcmp(result->victims[v], victim);
            if (!is_known)
                result->victims[result->victim_count++] =
                    arena_copy(attempt->arena, text_of(victim));
        }
    }
}

static void result_wait(struct attempt *attempt, const char *reason, bool is_never,
                        struct placement_result *result)
{
    result->kind = PLACEMENT_WAIT;
    result->reason = arena_copy(attempt->arena, text_of(reason));
    result->is_never = is_never;
}

static const struct part *waiting_part(const struct decision *decision)
{
    for (uint32_t i = 0; i < decision->part_count; i++)
        if (decision->parts[i].kind == HIVED_WAIT)
            return &decision->parts[i];
    return &decision->parts[0];
}

/* Reserve: every part that has victims becomes a preemption; the others need none. */
static int preempt_start(struct attempt *attempt, struct decision *decision, enum hived_kind *kind,
                         struct err *err)
{
    return decision_schedule(attempt, decision, HIVED_PREEMPTING, NULL, kind, err);
}

/* A preemption under way may be of another combination of leaf types: its parts have other tasks.
 */
static bool decision_is_whole(const struct decision *decision)
{
    for (uint32_t i = 0; i < decision->part_count; i++) {
        const struct part *part = &decision->parts[i];
        uint32_t tasks = 0;
        for (uint32_t k = 0; k < part->request.member_count; k++)
            tasks += part->request.members[k].pods;
        if (part->kind != HIVED_WAIT && part->placement.slot_count &&
            part->placement.slot_count != tasks)
            return false;
    }
    return true;
}

struct outcome { /* over all combinations */
    struct decision bind, preempt;
    bool has_bind, has_preempt, has_wait, is_never;
    const char *reason;
};

static int combos_try(struct attempt *attempt, struct split *split, const struct hived_scope *scope,
                      struct outcome *outcome, struct err *err)
{
    struct err last = {0};
    bool is_any_good = false;
    struct hived_group_view view; /* a preemption under way stays with its leaf type */
    bool is_known = hived_group_find(attempt->p->hived, attempt->request->group, &view);
    *outcome = (struct outcome){.is_never = true};
    memset(split->choice, 0, split->kind_count * sizeof *split->choice);
    uint32_t tries = 0;
    do {
        struct decision decision;
        enum hived_kind kind;
        if (!decision_make(split, &decision) ||
            (is_known && strcmp(decision.parts[0].leaf_type, view.leaf_type)))
            continue;
        int code = decision_schedule(attempt, &decision, HIVED_FILTERING, scope, &kind, &last);
        if (code && code != ERR_INVALID)
            return err_fail(err, code, last.path, "%s", last.text);
        if (code || !decision_is_whole(&decision))
            continue; /* this virtual cluster owns none of the type */
        is_any_good = true;
        if (kind == HIVED_BIND) {
            outcome->bind = decision;
            outcome->has_bind = true;
            return 0;
        }
        if (kind == HIVED_PREEMPT && !outcome->has_preempt) {
            outcome->preempt = decision;
            outcome->has_preempt = true;
        }
        if (kind == HIVED_WAIT) {
            const struct part *part = waiting_part(&decision);
            if (!outcome->has_wait || (outcome->is_never && !part->is_never))
                outcome->reason = part->reason;
            outcome->is_never &= part->is_never;
            outcome->has_wait = true;
        }
    } while (split_next(split) && ++tries < COMBOS_MAX);
    if (is_any_good)
        return 0;
    return last.code ? err_fail(err, last.code, last.path, "%s", last.text)
                     : err_fail(err, ERR_INVALID, "", "no leaf type can serve the demand");
}

static struct hived_scope avoid_scope(struct attempt *attempt)
{
    const struct placement_request *request = attempt->request;
    const char **names = ARENA_ARRAY(attempt->arena, const char *, request->avoid_count + 1);
    struct hived_scope scope = {.nodes = names, .is_avoid = true};
    for (size_t i = 0; i < attempt->p->nodes.count; i++)
        for (size_t k = 0; k < request->avoid_count; k++)
            if (attempt->p->nodes.items[i].id == request->avoid[k].v &&
                scope.count < request->avoid_count)
                names[scope.count++] = attempt->p->nodes.items[i].name;
    return scope;
}

static int outcome_conclude(struct attempt *attempt, struct outcome *outcome,
                            struct placement_result *result, struct err *err)
{
    if (outcome->has_bind) {
        result_bind(attempt, &outcome->bind, result);
        return 0;
    }
    if (!outcome->has_preempt) {
        result_wait(attempt, outcome->reason ? outcome->reason : "no cells", outcome->is_never,
                    result);
        return 0;
    }
    if (attempt->request->may_preempt) {
        enum hived_kind kind;
        int code = preempt_start(attempt, &outcome->preempt, &kind, err);
        if (code)
            return code;
        if (kind == HIVED_BIND) { /* the victims had only been in the way of another preemption */
            result_bind(attempt, &outcome->preempt, result);
            return 0;
        }
        if (kind == HIVED_WAIT) {
            const struct part *part = waiting_part(&outcome->preempt);
            result_wait(attempt, part->reason, part->is_never, result);
            return 0;
        }
    }
    result_preempt(attempt, &outcome->preempt, result);
    return 0;
}

static int hived_place(struct placer *placer, const struct placement_request *request,
                       struct arena *arena, struct placement_result *result, struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    struct attempt attempt = {.p = p, .request = request, .arena = arena};
    *result = (struct placement_result){0};
    p->decided = NULL;
    arena_clear(&p->arena);
    refresh(p);
    if (!p->hived || !hived_leaf_type_count(p->hived)) {
        result_wait(&attempt, "no node has appeared yet", false, result);
        return 0;
    }
    struct split split;
    struct outcome outcome;
    int code = split_init(&split, p, request, &p->arena, err);
    if (code)
        return code;
    struct hived_group_view view;
    if (request->avoid_count && !hived_group_find(p->hived, request->group, &view)) {
        struct hived_scope scope = avoid_scope(&attempt);
        code = combos_try(&attempt, &split, &scope, &outcome, err);
        if (code)
            return code;
        if (outcome.has_bind)
            return outcome_conclude(&attempt, &outcome, result, err);
    }
    code = combos_try(&attempt, &split, NULL, &outcome, err);
    return code ? code : outcome_conclude(&attempt, &outcome, result, err);
}

/* --- what is held --- */

static void held_add(struct placer_hived *p, const char *name, const struct decision *decision,
                     size_t slot_count)
{
    uint32_t at;
    if (p->gaps.count) {
        at = p->gaps.items[--p->gaps.count];
    } else {
        at = (uint32_t)p->helds.count;
        (void)ARRAY_ADD(&p->helds);
    }
    struct held *held = &p->helds.items[at];
    *held = (struct held){.name = mem_copy(name),
                          .part_count = decision->part_count,
                          .slot_count = (uint32_t)slot_count};
    held->parts = mem_zero(decision->part_count, sizeof *held->parts);
    held->places = mem_alloc(mem_size(slot_count + 1, sizeof *held->places));
    for (size_t i = 0; i < slot_count; i++)
        held->places[i] = (struct held_slot){UINT32_MAX, 0};
    for (uint32_t i = 0; i < decision->part_count; i++) {
        const struct part *part = &decision->parts[i];
        held->parts[i] = mem_copy(part->request.group);
        if (strcmp(held->parts[i], held->name))
            text_map_set(&p->held_index, text_of(held->parts[i]), at);
        for (uint32_t k = 0; k < part->placement.slot_count; k++)
            held->places[part->slots[k]] = (struct held_slot){i, k};
    }
    text_map_set(&p->held_index, text_of(held->name), at);
}

static void held_drop(struct placer_hived *p, uint32_t at)
{
    struct held *held = &p->helds.items[at];
    text_map_remove(&p->held_index, text_of(held->name));
    for (uint32_t i = 0; i < held->part_count; i++) {
        if (strcmp(held->parts[i], held->name))
            text_map_remove(&p->held_index, text_of(held->parts[i]));
        mem_free(held->parts[i]);
    }
    mem_free(held->parts);
    mem_free(held->places);
    mem_free(held->name);
    *held = (struct held){0};
    *ARRAY_ADD(&p->gaps) = at;
}

static struct held *held_find(struct placer_hived *p, const char *group, uint32_t *at)
{
    *at = text_map_get(&p->held_index, text_of(group));
    return *at == MAP_NONE ? NULL : &p->helds.items[*at];
}

static bool slots_equal(const struct placement_slot *a, const struct placement_slot *b,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].node.v != b[i].node.v || a[i].gpu_count != b[i].gpu_count ||
            memcmp(a[i].gpus, b[i].gpus, a[i].gpu_count * sizeof *a[i].gpus))
            return false;
    return true;
}

/* With several parts the look at one has made HiveD forget the other: it is asked again. */
static int decided_commit(struct placer_hived *p, struct err *err)
{
    struct decision *decision = &p->decision;
    struct attempt attempt = {.p = p, .request = &(struct placement_request){.group = p->decided}};
    for (uint32_t i = 0; i < decision->part_count; i++) {
        struct part *part = &decision->parts[i];
        struct hived_group_view view;
        bool is_reserved = hived_group_find(p->hived, part->request.group, &view);
        int code = 0;
        if (decision->part_count > 1 && !is_reserved && !part->request.uses_suggested)
            code = part_schedule(&attempt, part, HIVED_FILTERING, NULL, err);
        if (!code)
            code = hived_commit_gang(p->hived, &part->request, &part->placement, 0, err);
        for (uint32_t k = 0; code && k <= i; k++)
            hived_group_end(p->hived, decision->parts[k].request.group);
        if (code)
            return code;
    }
    return 0;
}

/* --- committing what was not just decided --- */

struct given {
    struct placer_hived *p;
    struct split split;
    const struct placement_slot *slots;
    bool is_recovery;
};

static const struct known_node *node_of(const struct placer_hived *p, struct node_id id)
{
    if (id.v < p->nodes.count && p->nodes.items[id.v].id == id.v)
        return &p->nodes.items[id.v];
    for (size_t i = 0; i < p->nodes.count; i++)
        if (p->nodes.items[i].id == id.v)
            return &p->nodes.items[i];
    return NULL;
}

/* The leaf type on which the tasks of a kind of member run: by the first task that tells. */
static void kind_settle(struct given *given, uint32_t kind)
{
    const struct placement_request *request = given->split.request;
    const struct hived_config *config = hived_config_of(given->p->hived);
    for (uint32_t m = 0; m < request->member_count; m++) {
        const struct candidates *list = &given->split.candidates[m];
        for (uint32_t k = 0; given->split.kinds[m] == kind && k < request->members[m].count; k++) {
            const struct placement_slot *slot = &given->slots[given->split.starts[m] + k];
            const struct known_node *node = node_of(given->p, slot->node);
            for (uint32_t c = 0; node && c < list->count; c++) {
                bool is_free, has_gpu = gpus_per_leaf(config, list->types[c]) > 0;
                uint16_t some;
                bool is_there =
                    has_gpu ? hived_node_chain(given->p->hived, node->name, list->types[c],
                                               slot->gpu_count
                                                   ? slot->gpus[0] /
                                                         gpus_per_leaf(config, list->types[c])
                                                   : 0,
                                               &is_free) != NULL
                            : hived_node_free(given->p->hived, node->name, list->types[c], &some,
                                              1) > 0;
                if (has_gpu == (slot->gpu_count > 0) && is_there) {
                    given->split.choice[kind] = c;
                    return;
                }
            }
        }
    }
}

/* Leaves of a task: those of its GPUs, or any free ones. */
static int slot_leaves(struct given *given, struct part *part, uint32_t leaves,
                       const struct placement_slot *from, struct hived_slot *slot, struct err *err)
{
    const struct known_node *node = node_of(given->p, from->node);
    uint32_t per_leaf = part->gpu_per_leaf, count = 0;
    struct arena *arena = &given->p->arena;
    uint32_t room = from->gpu_count > leaves ? from->gpu_count : leaves;
    uint16_t *indices = ARENA_ARRAY(arena, uint16_t, room + 1u);
    *slot = (struct hived_slot){.node = node ? arena_copy(arena, text_of(node->name)) : "",
                                .indices = indices,
                                .leaf_count = leaves};
    if (!node)
        return given->is_recovery || from->node.v == UINT32_MAX
                   ? 0
                   : err_fail(err, ERR_NOT_FOUND, "", "node %u is not known", from->node.v);
    for (uint32_t i = 0; per_leaf && i < from->gpu_count; i++) {
        uint16_t leaf = (uint16_t)(from->gpus[i] / per_leaf);
        bool is_known = false;
        for (uint32_t k = 0; k < count; k++)
            is_known |= indices[k] == leaf;
        if (!is_known)
            indices[count++] = leaf;
    }
    if (!per_leaf) {
        count = hived_node_free(given->p->hived, node->name, part->leaf_type, indices, leaves);
        if (count < leaves && !given->is_recovery)
            return err_fail(err, ERR_CONFLICT, "", "%s has only %u free leaves of %s", node->name,
                            count, part->leaf_type);
        count = count < leaves ? count : leaves;
    }
    slot->leaf_count = count ? count : 1;
    if (!count)
        indices[0] = UINT16_MAX; /* nothing is left: a device that does not exist is ignored */
    for (uint32_t i = 0; i < count; i++) {
        bool is_free;
        const char *chain =
            hived_node_chain(given->p->hived, node->name, part->leaf_type, indices[i], &is_free);
        if (chain && !part->placement.chain)
            part->placement.chain = arena_copy(arena, text_of(chain));
        if (!given->is_recovery && (!chain || !is_free))
            return err_fail(err, ERR_CONFLICT, "", "device %u of %s is not free", indices[i],
                            node->name);
    }
    return 0;
}

static int part_given(struct given *given, struct part *part, struct err *err)
{
    uint32_t tasks = 0, slot = 0;
    for (uint32_t i = 0; i < part->request.member_count; i++)
        tasks += part->request.members[i].pods;
    struct hived_slot *slots = ARENA_ARRAY(&given->p->arena, struct hived_slot, tasks);
    part->placement = (struct hived_placement){.slots = slots, .slot_count = tasks};
    const struct placement_request *request = given->split.request;
    const struct hived_config *config = hived_config_of(given->p->hived);
    for (; slot < tasks; slot++) {
        uint32_t task = part->slots[slot], member = 0;
        while (given->split.starts[member + 1] <= task)
            member++;
        const struct placement_member *demand = &request->members[member];
        uint32_t leaves =
            leaves_of(config, part->leaf_type, demand->gpu, demand->cpu, demand->memory_mib);
        int code = slot_leaves(given, part, leaves, &given->slots[task], &slots[slot], err);
        if (code)
            return code;
    }
    if (!part->placement.chain)
        part->placement.chain = "";
    return 0;
}

/* Ended tasks hold nothing: HiveD sees their slot end at once. */
static void ended_release(struct placer_hived *p, const char *group,
                          const struct placement_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slots[i].node.v == UINT32_MAX)
            p->base.ops->release_slot(&p->base, group, i);
}

static int given_commit(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                        struct err *err)
{
    struct given given = {.p = p, .slots = slots, .is_recovery = is_recovery};
    struct decision decision;
    arena_clear(&p->arena);
    int code = split_init(&given.split, p, request, &p->arena, err);
    if (code)
        return code;
    for (uint32_t kind = 0; kind < given.split.kind_count; kind++)
        kind_settle(&given, kind);
    if (given.split.starts[request->member_count] != slot_count ||
        !decision_make(&given.split, &decision))
        return err_fail(err, ERR_INVALID, "", "the slots do not fit the request");
    for (uint32_t i = 0; i < decision.part_count && !code; i++) {
        code = part_given(&given, &decision.parts[i], err);
        if (!code)
            code = hived_commit_gang(p->hived, &decision.parts[i].request,
                                     &decision.parts[i].placement, 0, err);
        for (uint32_t k = 0; code && k <= i; k++) /* the part that failed as well */
            hived_group_end(p->hived, decision.parts[k].request.group);
    }
    if (code)
        return code;
    held_add(p, request->group, &decision, slot_count);
    ended_release(p, request->group, slots, slot_count);
    return 0;
}

static int hived_take(struct placer *placer, const struct placement_request *request,
                      const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                      struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    uint32_t at;
    refresh(p);
    if (!p->hived)
        return err_fail(err, ERR_CONFLICT, "", "no node is known");
    if (held_find(p, request->group, &at))
        return err_fail(err, ERR_CONFLICT, "", "%s is placed already", request->group);
    bool is_decided = p->decided && !strcmp(p->decided, request->group) &&
                      p->decided_count == slot_count &&
                      slots_equal(p->decided_slots, slots, slot_count);
    p->decided = is_decided ? p->decided : NULL;
    if (!is_decided)
        return given_commit(p, request, slots, slot_count, is_recovery, err);
    int code = decided_commit(p, err);
    if (!code)
        held_add(p, request->group, &p->decision, slot_count);
    p->decided = NULL;
    return code;
}

/* --- ends --- */

static void hived_slot_over(struct placer *placer, const char *group, size_t slot)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    uint32_t at;
    struct held *held = held_find(p, group, &at);
    p->decided = NULL;
    if (!held || slot >= held->slot_count || held->places[slot].part == UINT32_MAX)
        return;
    hived_pod_end(p->hived, held->parts[held->places[slot].part], held->places[slot].slot);
    held->places[slot].part = UINT32_MAX;
    for (uint32_t i = 0; i < held->slot_count; i++)
        if (held->places[i].part != UINT32_MAX)
            return;
    held_drop(p, at);
}

static void hived_group_over(struct placer *placer, const char *group)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    uint32_t at;
    struct held *held = held_find(p, group, &at);
    p->decided = NULL;
    if (!held)
        return;
    for (uint32_t i = 0; i < held->part_count; i++)
        hived_group_end(p->hived, held->parts[i]);
    held_drop(p, at);
}

/* A preempting gang's parts are not held yet: they carry its name, or its name and a leaf type. */
static void hived_cancel(struct placer *placer, const char *group)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    p->decided = NULL;
    if (!p->hived)
        return;
    struct arena arena;
    arena_init(&arena);
    hived_pod_cancel(p->hived, group, group);
    for (uint32_t i = 0; i < hived_leaf_type_count(p->hived); i++)
        hived_pod_cancel(p->hived,
                         arena_format(&arena, "%s#%s", group, hived_leaf_type_name(p->hived, i)),
                         group);
    arena_release(&arena);
}

/* --- the whole --- */

static void hived_placer_free(struct placer *placer)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    for (size_t i = 0; i < p->nodes.count; i++) {
        known_clear(&p->nodes.items[i]);
        mem_free(p->nodes.items[i].name);
    }
    for (size_t i = 0; i < p->helds.count; i++)
        if (p->helds.items[i].name)
            held_drop(p, (uint32_t)i);
    ARRAY_FREE(&p->nodes);
    ARRAY_FREE(&p->helds);
    ARRAY_FREE(&p->gaps);
    text_map_release(&p->node_index);
    text_map_release(&p->held_index);
    arena_release(&p->arena);
    hived_free(p->hived);
    mem_free(p);
}

static struct placer_hived *placer_alloc(void)
{
    struct placer_hived *p = mem_zero(1, sizeof *p);
    p->base.ops = &hived_ops;
    arena_init(&p->arena);
    return p;
}

static void helds_copy(struct placer_hived *p, const struct placer_hived *from)
{
    for (size_t i = 0; i < from->helds.count; i++) {
        const struct held *old = &from->helds.items[i];
        struct held *held = ARRAY_ADD(&p->helds);
        if (!old->name) {
            *ARRAY_ADD(&p->gaps) = (uint32_t)i;
            continue;
        }
        *held = *old;
        held->name = mem_copy(old->name);
        held->parts = mem_zero(old->part_count, sizeof *held->parts);
        held->places = mem_alloc(mem_size(old->slot_count + 1u, sizeof *held->places));
        memcpy(held->places, old->places, old->slot_count * sizeof *held->places);
        for (uint32_t k = 0; k < old->part_count; k++) {
            held->parts[k] = mem_copy(old->parts[k]);
            if (strcmp(held->parts[k], held->name))
                text_map_set(&p->held_index, text_of(held->parts[k]), (uint32_t)i);
        }
        text_map_set(&p->held_index, text_of(held->name), (uint32_t)i);
    }
}

static struct placer *hived_placer_copy(const struct placer *placer)
{
    const struct placer_hived *from = (const struct placer_hived *)placer;
    struct placer_hived *p = placer_alloc();
    p->is_automatic = from->is_automatic;
    p->is_stale = from->is_stale;
    p->hived = from->hived ? hived_copy(from->hived) : NULL;
    for (size_t i = 0; i < from->nodes.count; i++) {
        const struct known_node *old = &from->nodes.items[i];
        struct known_node *node = ARRAY_ADD(&p->nodes);
        *node = *old;
        node->name = mem_copy(old->name);
        node->gpu_type = mem_copy(old->gpu_type);
        node->gpu_numa = numbers_copy(old->gpu_numa, old->gpu_count);
        node->gpu_switch = numbers_copy(old->gpu_switch, old->gpu_count);
        text_map_set(&p->node_index, text_of(node->name), (uint32_t)i);
    }
    helds_copy(p, from);
    return &p->base;
}

static const struct placer_ops hived_ops = {
    .name = "hived",
    .free = hived_placer_free,
    .node_set = hived_node_changed,
    .node_remove = hived_node_gone,
    .place = hived_place,
    .commit = hived_take,
    .release_slot = hived_slot_over,
    .release_group = hived_group_over,
    .cancel = hived_cancel,
    .copy = hived_placer_copy,
};

struct placer *placer_hived_new(const struct doc *doc, struct err *err)
{
    struct placer_hived *p = placer_alloc();
    p->is_automatic = !doc;
    p->is_stale = !doc;
    if (!doc)
        return &p->base;
    struct problems problems;
    struct arena arena;
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
    problems_release(&problems);
    arena_release(&arena);
    if (config)
        return &p->base;
    hived_placer_free(&p->base);
    return NULL;
}

struct hived *placer_hived_state(struct placer *placer)
{
    if (placer->ops != &hived_ops)
        return NULL;
    struct placer_hived *p = (struct placer_hived *)placer;
    refresh(p);
    return p->hived;
}
