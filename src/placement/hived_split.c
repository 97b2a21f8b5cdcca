/* Demands become leaves, and a request parts: see hived_parts.h. */
#include "base/err.h"
#include "base/memory.h"
#include "model/reason.h"
#include "placement/hived.h"
#include "placement/hived_parts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

uint32_t placer_leaf_count(const struct hived_config *config, const char *leaf_type, uint32_t gpu,
                           uint32_t cpu, uint64_t memory_mib)
{
    const struct hived_sku *sku = hived_config_sku(config, leaf_type);
    struct hived_sku one = {leaf_type, 1, 0, 0};
    if (!sku)
        sku = &one;
    if (gpu && !sku->gpu)
        return 0;
    uint64_t leaves = 1, by_gpu = gpu ? ((uint64_t)gpu + sku->gpu - 1) / sku->gpu : 0;
    uint64_t by_cpu = sku->cpu ? ((uint64_t)cpu + sku->cpu - 1) / sku->cpu : 0;
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
    return hived ? placer_leaf_count(hived_config_of(hived), leaf_type, gpu, cpu, memory_mib) : 0;
}

uint32_t placer_hived_leaf_gpus(const struct hived_config *config, const char *leaf_type)
{
    const struct hived_sku *sku = hived_config_sku(config, leaf_type);
    return sku ? sku->gpu : 1;
}

static void candidates_add_kind(const struct placer_hived *p, struct type_candidates *list,
                                bool wants_gpu)
{
    const struct hived_config *config = hived_config_of(p->hived);
    for (uint32_t i = 0; i < hived_leaf_type_count(p->hived); i++) {
        const char *type = hived_leaf_type_name(p->hived, i);
        bool has_gpu = placer_hived_leaf_gpus(config, type) > 0;
        if (has_gpu == wants_gpu && list->count < TYPES_TRIED_MAX)
            list->types[list->count++] = type;
    }
}

static int candidates_of(const struct placer_hived *p, const struct placement_member *member,
                         struct type_candidates *list, struct err *err)
{
    *list = (struct type_candidates){0};
    struct text rest = text_of(member->sku_type);
    if (!rest.length) {
        if (!member->gpu)
            candidates_add_kind(p, list, false);
        list->own_count = list->count;
        candidates_add_kind(p, list, true);
        if (!list->own_count)
            list->own_count = list->count;
        if (!list->count)
            return err_fail(err, ERR_NOT_FOUND, "gpu", REASON_NO_GPU_CELLS);
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
        return err_fail(err, ERR_NOT_FOUND, "skuType", REASON_NO_LEAF_TYPE, 100, member->sku_type);
    list->own_count = list->count;
    return 0;
}

/* --- splitting a request --- */

static bool candidates_equal(const struct type_candidates *a, const struct type_candidates *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->types[i], b->types[i]))
            return false;
    return true;
}

int placer_split_init(struct split *split, struct placer_hived *p,
                      const struct placement_request *request, struct arena *arena, struct err *err)
{
    size_t members = request->member_count;
    *split = (struct split){.p = p, .request = request, .arena = arena};
    split->candidates = ARENA_ARRAY(arena, struct type_candidates, members + 1);
    split->kinds = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->choice = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->first = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->starts = ARENA_ARRAY(arena, uint32_t, members + 1);
    for (uint32_t i = 0; i < members; i++) {
        int code = candidates_of(p, &request->members[i], &split->candidates[i], err);
        if (code)
            return code;
        split->has_others |= split->candidates[i].own_count < split->candidates[i].count;
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
bool placer_split_next(struct split *split)
{
    assert(split->kind_count > 0);
    for (uint32_t kind = split->kind_count; kind-- > 0;) {
        const struct type_candidates *list = &split->candidates[split->first[kind]];
        if (++split->choice[kind] < (split->takes_others ? list->count : list->own_count))
            return true;
        split->choice[kind] = 0;
    }
    return false;
}

struct member_order {
    uint32_t leaves, member;
};

static int order_compare(const void *a, const void *b)
{
    const struct member_order *x = a, *y = b;
    if (x->leaves != y->leaves)
        return x->leaves < y->leaves ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

/* Strings and members in the split's arena, so that a commit can use them; those of `counts` tasks
 * each, and room for the slots. False: a member's demand cannot be served by this type. */
static bool part_begin(const struct split *split, const char *type, uint32_t number,
                       const uint32_t *counts, struct type_part *part)
{
    const struct placement_request *request = split->request;
    const struct hived_config *config = hived_config_of(split->p->hived);
    struct arena *arena = split->arena;
    struct hived_member *members = ARENA_ARRAY(arena, struct hived_member, request->member_count);
    uint32_t count = 0, tasks = 0, gpu_per_leaf = placer_hived_leaf_gpus(config, type);
    for (uint32_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        if (!counts[i])
            continue;
        uint32_t leaves =
            placer_leaf_count(config, type, member->gpu, member->cpu, member->memory_mib);
        if (!leaves || (uint64_t)leaves * gpu_per_leaf > PLACEMENT_GPUS_MAX)
            return false;
        members[count++] = (struct hived_member){
            .pods = counts[i],
            .leaves = leaves,
            .within_one_cell = arena_copy(arena, text_of(member->within_one_cell))};
        tasks += counts[i];
    }
    const char *group = number ? arena_format(arena, "%s#%s", request->group, type)
                               : arena_copy(arena, text_of(request->group));
    part->leaf_type = arena_copy(arena, text_of(type));
    part->gpu_per_leaf = gpu_per_leaf;
    part->request = (struct hived_request){
        .group = group,
        .virtual_cluster = arena_copy(arena, text_of(request->virtual_cluster)),
        .priority = request->priority,
        .pinned_cell = arena_copy(arena, text_of(request->pinned_cell_id)),
        .leaf_type = part->leaf_type,
        .is_lazy = request->is_lazy_preemptible,
        .members = members,
        .member_count = count};
    part->slots = ARENA_ARRAY(arena, uint32_t, tasks + 1);
    part->wants_gpu = ARENA_ARRAY(arena, bool, tasks + 1);
    return true;
}

/* HiveD's slots ascend by leaves, then follow the members: where those of each member begin. */
static void part_order(const struct split *split, const uint32_t *counts,
                       const struct type_part *part, uint32_t *next)
{
    const uint32_t members = (uint32_t)split->request->member_count;
    struct member_order *order =
        ARENA_ARRAY(split->arena, struct member_order, part->request.member_count);
    uint32_t count = 0, slot = 0;
    for (uint32_t i = 0; i < members; i++) {
        if (!counts[i])
            continue;
        order[count] = (struct member_order){part->request.members[count].leaves, i};
        count++;
    }
    qsort(order, count, sizeof *order, order_compare);
    for (uint32_t i = 0; i < count; i++) {
        next[order[i].member] = slot;
        slot += counts[order[i].member];
    }
}

static void part_add(const struct split *split, struct type_part *part, uint32_t member,
                     uint32_t task, uint32_t *next)
{
    const uint32_t slot = next[member]++;
    part->wants_gpu[slot] = split->request->members[member].gpu > 0;
    part->slots[slot] = task;
}

/* Whole members. */
static bool part_make(const struct split *split, const char *type, uint32_t number,
                      struct type_part *part)
{
    const struct placement_request *request = split->request;
    uint32_t *counts = ARENA_ARRAY(split->arena, uint32_t, 2 * request->member_count + 1),
             *next = counts + request->member_count;
    for (uint32_t i = 0; i < request->member_count; i++)
        if (!strcmp(member_type(split, i), type))
            counts[i] = request->members[i].count;
    if (!part_begin(split, type, number, counts, part))
        return false;
    part_order(split, counts, part, next);
    for (uint32_t i = 0; i < request->member_count; i++)
        for (uint32_t k = 0; k < counts[i]; k++)
            part_add(split, part, i, split->starts[i] + k, next);
    return true;
}

static bool type_has_cell(const struct hived_config *config, const char *leaf_type,
                          const char *cell_type)
{
    uint32_t type = hived_config_type(config, cell_type);
    return type != HIVED_NONE &&
           strcmp(config->types[config->types[type].leaf_type].name, leaf_type) == 0;
}

/* A gang of GPUs and CPUs is in one rack as far as its devices lie in racks; where none does, all
 * are asked for there, so that the answer says so. */
static void parts_confine(const struct split *split, struct decision *decision)
{
    assert(decision->part_count > 0);
    const struct hived_config *config = hived_config_of(split->p->hived);
    const char *within = split->request->within_one_cell;
    bool is_known = false;
    if (!within || !*within)
        return;
    within = arena_copy(split->arena, text_of(within));
    for (uint32_t i = 0; i < decision->part_count; i++)
        is_known |= type_has_cell(config, decision->parts[i].leaf_type, within);
    for (uint32_t i = 0; i < decision->part_count; i++)
        if (!is_known || type_has_cell(config, decision->parts[i].leaf_type, within))
            decision->parts[i].request.within_one_cell = within;
}

/* One part a distinct leaf type of the current combination. */
bool placer_decision_make(const struct split *split, struct decision *decision)
{
    assert(split->kind_count > 0);
    *decision = (struct decision){
        .parts = ARENA_ARRAY(split->arena, struct type_part, split->kind_count + 1)};
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
    parts_confine(split, decision);
    return decision->part_count > 0;
}

/* --- tasks that are where they are --- */

struct scatter { /* tasks of one member may be in several parts */
    const struct split *split;
    const uint8_t *types;    /* by task: which of its candidates */
    const char **names;      /* of the parts, in the order of their first tasks */
    uint32_t *part_of;       /* by task */
    uint32_t *counts, *next; /* by part, then by member */
    uint32_t part_count;
};

static uint32_t scatter_part(struct scatter *scatter, const char *type)
{
    uint32_t part = 0;
    while (part < scatter->part_count && strcmp(scatter->names[part], type) != 0)
        part++;
    if (part == scatter->part_count)
        scatter->names[scatter->part_count++] = type;
    return part;
}

/* In which part each task is. */
static void scatter_sort(struct scatter *scatter)
{
    const struct split *split = scatter->split;
    for (size_t m = 0; m < split->request->member_count; m++) {
        const struct type_candidates *list = &split->candidates[m];
        uint32_t known[TYPES_TRIED_MAX];
        memset(known, 0xff, sizeof known);
        for (uint32_t i = split->starts[m]; i < split->starts[m + 1]; i++) {
            uint32_t *part = &known[scatter->types[i]];
            assert(scatter->types[i] < list->count);
            if (*part == UINT32_MAX)
                *part = scatter_part(scatter, list->types[scatter->types[i]]);
            scatter->part_of[i] = *part;
        }
    }
}

static bool scatter_parts(struct scatter *scatter, struct type_part *parts)
{
    const struct split *split = scatter->split;
    const size_t members = split->request->member_count;
    for (size_t m = 0; m < members; m++)
        for (uint32_t i = split->starts[m]; i < split->starts[m + 1]; i++)
            scatter->counts[scatter->part_of[i] * members + m]++;
    for (uint32_t i = 0; i < scatter->part_count; i++) {
        const uint32_t *counts = &scatter->counts[i * members];
        if (!part_begin(split, scatter->names[i], i, counts, &parts[i]))
            return false;
        part_order(split, counts, &parts[i], &scatter->next[i * members]);
    }
    for (uint32_t m = 0; m < members; m++)
        for (uint32_t i = split->starts[m]; i < split->starts[m + 1]; i++) {
            const uint32_t part = scatter->part_of[i];
            part_add(split, &parts[part], m, i, &scatter->next[part * members]);
        }
    return true;
}

/* Nobody will be asked for places: whether they are in one rack does not matter. */
bool placer_decision_scatter(const struct split *split, const uint8_t *types,
                             struct decision *decision)
{
    const size_t members = split->request->member_count;
    struct arena *arena = split->arena;
    struct scatter scatter = {
        .split = split,
        .types = types,
        .names = ARENA_ARRAY(arena, const char *, hived_leaf_type_count(split->p->hived) + 1u),
        .part_of = ARENA_ARRAY(arena, uint32_t, split->starts[members] + 1u)};
    scatter_sort(&scatter);
    scatter.counts = ARENA_ARRAY(arena, uint32_t, scatter.part_count * members + 1);
    scatter.next = ARENA_ARRAY(arena, uint32_t, scatter.part_count * members + 1);
    *decision =
        (struct decision){.parts = ARENA_ARRAY(arena, struct type_part, scatter.part_count + 1u),
                          .part_count = scatter.part_count};
    return scatter_parts(&scatter, decision->parts) && decision->part_count > 0;
}
