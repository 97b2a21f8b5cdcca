/* Demands become leaves, and a request parts: see hived_parts.h. */
#include "base/err.h"
#include "base/map.h"
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
        if ((placer_hived_leaf_gpus(config, type) > 0) == wants_gpu)
            list->types[list->count++] = type;
    }
}

/* What is known while a request is split. */
struct splitting {
    struct split *split;
    struct text_map types; /* name → leaf type, once one has been looked for; empty where few are */
    uint64_t *hashes;      /* by member: of the types that it names */
};

enum { FEW_TYPES = 8 }; /* so many are looked through as fast as a map is asked */

static uint32_t leaf_type_find(struct splitting *at, struct text name)
{
    const struct hived *hived = at->split->p->hived;
    const uint32_t count = hived_leaf_type_count(hived);
    if (count > FEW_TYPES) {
        for (uint32_t i = (uint32_t)at->types.count; i < count; i++)
            text_map_set(&at->types, text_of(hived_leaf_type_name(hived, i)), i);
        return text_map_get(&at->types, name);
    }
    for (uint32_t i = 0; i < count; i++)
        if (text_is(name, hived_leaf_type_name(hived, i)))
            return i;
    return MAP_NONE;
}

/* Those that it names, in this order, each once. */
static void candidates_add_named(struct splitting *at, struct text names,
                                 struct type_candidates *list)
{
    const struct hived *hived = at->split->p->hived;
    bool *is_listed = ARENA_ARRAY(at->split->arena, bool, hived_leaf_type_count(hived));
    while (names.at) {
        const uint32_t type = leaf_type_find(at, text_trim(text_cut(&names, ',')));
        if (type == MAP_NONE || is_listed[type])
            continue;
        is_listed[type] = true;
        list->types[list->count++] = hived_leaf_type_name(hived, type);
    }
}

static int candidates_of(struct splitting *at, const struct placement_member *member,
                         struct type_candidates *list, struct err *err)
{
    const struct placer_hived *p = at->split->p;
    const uint32_t count = hived_leaf_type_count(p->hived);
    *list =
        (struct type_candidates){.types = ARENA_ARRAY(at->split->arena, const char *, count + 1u)};
    if (*member->sku_type) {
        candidates_add_named(at, text_of(member->sku_type), list);
        list->own_count = list->count;
        if (!list->count)
            return err_fail(err, ERR_NOT_FOUND, "skuType", REASON_NO_LEAF_TYPE, 100,
                            member->sku_type);
        return 0;
    }
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

/* --- splitting a request --- */

/* Then their lists are the same: not each member's is made. */
static bool asks_alike(const struct splitting *at, uint32_t one, uint32_t other)
{
    const struct placement_member *a = &at->split->request->members[one];
    const struct placement_member *b = &at->split->request->members[other];
    return at->hashes[one] == at->hashes[other] && !strcmp(a->sku_type, b->sku_type) &&
           (*a->sku_type || !a->gpu == !b->gpu);
}

/* Each type has one name, HiveD's own. */
static bool candidates_equal(const struct type_candidates *a, const struct type_candidates *b)
{
    return a->count == b->count && !memcmp(a->types, b->types, a->count * sizeof(*a->types));
}

/* The kind of a member, whose list is made unless one before it asks alike. */
static int member_kind(struct splitting *at, uint32_t member, struct err *err)
{
    struct split *split = at->split;
    const struct placement_member *asked = &split->request->members[member];
    const uint32_t known = split->kind_count;
    at->hashes[member] = text_hash(text_of(asked->sku_type), 0);
    for (uint32_t i = 0; i < member; i++)
        if (asks_alike(at, i, member)) {
            split->kinds[member] = split->kinds[i];
            return 0;
        }
    struct type_candidates *list = &split->candidates[known];
    const int code = candidates_of(at, asked, list, err);
    if (code)
        return code;
    uint32_t kind = 0;
    while (kind < known && !candidates_equal(&split->candidates[kind], list))
        kind++;
    split->has_others |= list->own_count < list->count;
    split->kinds[member] = kind;
    split->kind_count += kind == known;
    return 0;
}

static int members_sort(struct splitting *at, struct err *err)
{
    struct split *split = at->split;
    for (uint32_t i = 0; i < split->request->member_count; i++) {
        const int code = member_kind(at, i, err);
        if (code)
            return code;
        split->starts[i + 1] = split->starts[i] + split->request->members[i].count;
    }
    return 0;
}

int placer_split_init(struct split *split, struct placer_hived *p,
                      const struct placement_request *request, struct arena *arena, struct err *err)
{
    size_t members = request->member_count;
    *split = (struct split){.p = p, .request = request, .arena = arena};
    split->candidates = ARENA_ARRAY(arena, struct type_candidates, members + 1);
    split->kinds = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->choice = ARENA_ARRAY(arena, uint32_t, members + 1);
    split->starts = ARENA_ARRAY(arena, uint32_t, members + 1);
    struct splitting at = {.split = split, .hashes = ARENA_ARRAY(arena, uint64_t, members + 1)};
    const int code = members_sort(&at, err);
    text_map_release(&at.types);
    if (code)
        return code;
    split->blamed = ARENA_ARRAY(arena, bool, (size_t)split->kind_count * split->kind_count + 1);
    return 0;
}

void placer_split_again(struct split *split, const struct placement_request *request)
{
    for (size_t i = 0; i < request->member_count; i++)
        assert(split->starts[i + 1] == split->starts[i] + request->members[i].count);
    split->request = request;
    split->takes_others = false;
}

static const char *kind_type(const struct split *split, uint32_t kind)
{
    return split->candidates[kind].types[split->choice[kind]];
}

static const char *member_type(const struct split *split, uint32_t member)
{
    return kind_type(split, split->kinds[member]);
}

/* The kinds from this one on begin anew. */
static void kinds_begin(struct split *split, uint32_t kind)
{
    const size_t kinds = split->kind_count;
    memset(split->choice + kind, 0, (kinds - kind) * sizeof *split->choice);
    memset(split->blamed + kind * kinds, 0, (kinds - kind) * kinds * sizeof *split->blamed);
}

void placer_split_begin(struct split *split)
{
    kinds_begin(split, 0);
}

/* Those before `kind` that are to blame for a failure have a reason more; the last of them, or
 * NONE.
 */
static uint32_t blame_pass(struct split *split, const bool *blamed, uint32_t kind)
{
    uint32_t last = HIVED_NONE;
    for (uint32_t i = 0; i < kind; i++)
        last = blamed[i] ? i : last;
    for (uint32_t i = 0; last != HIVED_NONE && i < last; i++)
        split->blamed[(size_t)last * split->kind_count + i] |= blamed[i];
    return last;
}

/* The kinds on the type of the failed part are to blame, and the last of them gets its next type.
 * When it has had all, those that were to blame for that get theirs: others cannot help. */
bool placer_split_next(struct split *split, const struct type_part *failed)
{
    const uint32_t kinds = split->kind_count;
    assert(kinds > 0);
    bool *blamed = ARENA_ARRAY(split->arena, bool, kinds);
    for (uint32_t i = 0; i < kinds; i++)
        blamed[i] = !failed || !strcmp(kind_type(split, i), failed->leaf_type);
    for (uint32_t kind = blame_pass(split, blamed, kinds); kind != HIVED_NONE;
         kind = blame_pass(split, blamed, kind)) {
        const struct type_candidates *list = &split->candidates[kind];
        kinds_begin(split, kind + 1);
        if (++split->choice[kind] < (split->takes_others ? list->count : list->own_count))
            return true;
        memcpy(blamed, &split->blamed[(size_t)kind * kinds], kind * sizeof *blamed);
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
 * each. False: a member's demand cannot be served by this type. */
static bool part_begin(const struct split *split, const char *type, uint32_t number,
                       const uint32_t *counts, struct type_part *part)
{
    const struct placement_request *request = split->request;
    const struct hived_config *config = hived_config_of(split->p->hived);
    struct arena *arena = split->arena;
    struct hived_member *members = ARENA_ARRAY(arena, struct hived_member, request->member_count);
    uint32_t count = 0, gpu_per_leaf = placer_hived_leaf_gpus(config, type);
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
    return true;
}

/* HiveD's slots ascend by leaves, then follow the members: where those of each member begin. Room
 * for them. */
static void part_order(const struct split *split, const uint32_t *counts, struct type_part *part,
                       uint32_t *next)
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
    part->slots = ARENA_ARRAY(split->arena, uint32_t, slot + 1u);
    part->wants_gpu = ARENA_ARRAY(split->arena, bool, slot + 1u);
}

static void part_add(const struct split *split, struct type_part *part, uint32_t member,
                     uint32_t task, uint32_t *next)
{
    const uint32_t slot = next[member]++;
    part->wants_gpu[slot] = split->request->members[member].gpu > 0;
    part->slots[slot] = task;
}

/* Whole members: the tasks of those that are on this type. */
static uint32_t *type_counts(const struct split *split, const char *type)
{
    const struct placement_request *request = split->request;
    uint32_t *counts = ARENA_ARRAY(split->arena, uint32_t, request->member_count + 1);
    for (uint32_t i = 0; i < request->member_count; i++)
        if (!strcmp(member_type(split, i), type))
            counts[i] = request->members[i].count;
    return counts;
}

void placer_decision_order(const struct split *split, struct decision *decision)
{
    const struct placement_request *request = split->request;
    uint32_t *next = ARENA_ARRAY(split->arena, uint32_t, request->member_count + 1);
    for (uint32_t part = 0; part < decision->part_count; part++) {
        const uint32_t *counts = type_counts(split, decision->parts[part].leaf_type);
        part_order(split, counts, &decision->parts[part], next);
        for (uint32_t i = 0; i < request->member_count; i++)
            for (uint32_t k = 0; k < counts[i]; k++)
                part_add(split, &decision->parts[part], i, split->starts[i] + k, next);
    }
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
    decision->is_confined = !is_known;
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
        decision->parts[number].leaf_type = type;
        if (!part_begin(split, type, number, type_counts(split, type), &decision->parts[number]))
            return false;
    }
    parts_confine(split, decision);
    return decision->part_count > 0;
}

/* --- tasks that are where they are --- */

struct scatter { /* tasks of one member may be in several parts */
    const struct split *split;
    const uint16_t *types;   /* by task: which of its candidates */
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
        const struct type_candidates *list = split_candidates(split, (uint32_t)m);
        uint32_t *known = ARENA_ARRAY(split->arena, uint32_t, list->count);
        memset(known, 0xff, list->count * sizeof *known);
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
bool placer_decision_scatter(const struct split *split, const uint16_t *types,
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
