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

struct share { /* tasks of a member that are on the type of a part */
    uint32_t member, tasks;
};

struct part_shares {
    const char *leaf_type;
    struct share *items; /* in the order of the members */
    uint32_t count;
};

struct share_order {
    uint32_t leaves, share;
};

static int order_compare(const void *a, const void *b)
{
    const struct share_order *x = a, *y = b;
    if (x->leaves != y->leaves)
        return x->leaves < y->leaves ? -1 : 1;
    return (x->share > y->share) - (x->share < y->share);
}

/* Strings and members in the split's arena, so that a commit can use them. False: a member's demand
 * cannot be served by this type. */
static bool part_begin(const struct split *split, const struct part_shares *shares, uint32_t number,
                       struct type_part *part)
{
    const struct placement_request *request = split->request;
    const struct hived_config *config = hived_config_of(split->p->hived);
    struct arena *arena = split->arena;
    struct hived_member *members = ARENA_ARRAY(arena, struct hived_member, shares->count + 1u);
    const uint32_t gpu_per_leaf = placer_hived_leaf_gpus(config, shares->leaf_type);
    for (uint32_t i = 0; i < shares->count; i++) {
        const struct placement_member *member = &request->members[shares->items[i].member];
        const uint32_t leaves = placer_leaf_count(config, shares->leaf_type, member->gpu,
                                                  member->cpu, member->memory_mib);
        if (!leaves || (uint64_t)leaves * gpu_per_leaf > PLACEMENT_GPUS_MAX)
            return false;
        members[i] = (struct hived_member){.pods = shares->items[i].tasks,
                                           .leaves = leaves,
                                           .within_one_cell =
                                               arena_copy(arena, text_of(member->within_one_cell))};
    }
    const char *group = number ? arena_format(arena, "%s#%s", request->group, shares->leaf_type)
                               : arena_copy(arena, text_of(request->group));
    part->leaf_type = arena_copy(arena, text_of(shares->leaf_type));
    part->gpu_per_leaf = gpu_per_leaf;
    part->request = (struct hived_request){
        .group = group,
        .virtual_cluster = arena_copy(arena, text_of(request->virtual_cluster)),
        .priority = request->priority,
        .pinned_cell = arena_copy(arena, text_of(request->pinned_cell_id)),
        .leaf_type = part->leaf_type,
        .is_lazy = request->is_lazy_preemptible,
        .members = members,
        .member_count = shares->count};
    return true;
}

/* HiveD's slots ascend by leaves, then follow the members: where those of each member begin. Room
 * for them. */
static void part_order(const struct split *split, const struct part_shares *shares,
                       struct type_part *part, uint32_t *next)
{
    struct share_order *order = ARENA_ARRAY(split->arena, struct share_order, shares->count + 1u);
    uint32_t slot = 0;
    assert(part->request.member_count == shares->count);
    for (uint32_t i = 0; i < shares->count; i++)
        order[i] = (struct share_order){part->request.members[i].leaves, i};
    qsort(order, shares->count, sizeof *order, order_compare);
    for (uint32_t i = 0; i < shares->count; i++) {
        const struct share *share = &shares->items[order[i].share];
        next[share->member] = slot;
        slot += share->tasks;
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

/* In which part of the current combination each kind is, which has members that have tasks; NONE:
 * it has none. The parts are in the order of their first members. */
static uint32_t *parts_of_kinds(const struct split *split, struct part_shares *parts,
                                uint32_t *part_count)
{
    uint32_t *part_of = ARENA_ARRAY(split->arena, uint32_t, split->kind_count + 1u);
    uint32_t known = 0;
    memset(part_of, 0xff, split->kind_count * sizeof *part_of);
    for (size_t i = 0; i < split->request->member_count; i++) {
        const uint32_t kind = split->kinds[i];
        const char *type = kind_type(split, kind);
        uint32_t part = 0;
        if (part_of[kind] != HIVED_NONE || split->request->members[i].count == 0)
            continue;
        while (part < known && parts[part].leaf_type != type) /* each type has one name */
            part++;
        parts[part].leaf_type = type;
        known += part == known;
        part_of[kind] = part;
    }
    *part_count = known;
    return part_of;
}

/* Whole members: all tasks of each are on the type of one part. */
static struct part_shares *shares_whole(const struct split *split, uint32_t *part_count)
{
    const struct placement_request *request = split->request;
    struct part_shares *parts =
        ARENA_ARRAY(split->arena, struct part_shares, split->kind_count + 1u);
    const uint32_t *part_of = parts_of_kinds(split, parts, part_count);
    for (size_t i = 0; i < request->member_count; i++)
        if (request->members[i].count)
            parts[part_of[split->kinds[i]]].count++;
    for (uint32_t i = 0; i < *part_count; i++) {
        parts[i].items = ARENA_ARRAY(split->arena, struct share, parts[i].count);
        parts[i].count = 0;
    }
    for (size_t i = 0; i < request->member_count; i++) {
        if (!request->members[i].count)
            continue;
        struct part_shares *part = &parts[part_of[split->kinds[i]]];
        part->items[part->count++] = (struct share){(uint32_t)i, request->members[i].count};
    }
    return parts;
}

void placer_decision_order(const struct split *split, struct decision *decision)
{
    uint32_t count, *next = ARENA_ARRAY(split->arena, uint32_t, split->request->member_count + 1);
    const struct part_shares *parts = shares_whole(split, &count);
    assert(count == decision->part_count);
    for (uint32_t i = 0; i < count; i++) {
        part_order(split, &parts[i], &decision->parts[i], next);
        for (uint32_t k = 0; k < parts[i].count; k++) {
            const struct share *share = &parts[i].items[k];
            for (uint32_t task = 0; task < share->tasks; task++)
                part_add(split, &decision->parts[i], share->member,
                         split->starts[share->member] + task, next);
        }
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
    uint32_t count;
    assert(split->kind_count > 0);
    const struct part_shares *parts = shares_whole(split, &count);
    *decision = (struct decision){.parts = ARENA_ARRAY(split->arena, struct type_part, count + 1u)};
    for (uint32_t i = 0; i < count; i++) {
        decision->part_count++;
        decision->parts[i].leaf_type = parts[i].leaf_type;
        if (!part_begin(split, &parts[i], i, &decision->parts[i]))
            return false;
    }
    parts_confine(split, decision);
    return decision->part_count > 0;
}

/* --- tasks that are where they are --- */

struct scatter { /* tasks of one member may be in several parts */
    const struct split *split;
    const uint16_t *types;     /* by task: which of its candidates */
    struct part_shares *parts; /* in the order of their first tasks */
    uint32_t part_count;
    uint32_t *part_of; /* by task */
    uint32_t *next;    /* by part, then by member */
};

static uint32_t scatter_part(struct scatter *scatter, const char *type)
{
    uint32_t part = 0;
    while (part < scatter->part_count && scatter->parts[part].leaf_type != type)
        part++; /* each type has one name */
    if (part == scatter->part_count)
        scatter->parts[scatter->part_count++].leaf_type = type;
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

static void scatter_share(struct scatter *scatter)
{
    const struct split *split = scatter->split;
    const size_t members = split->request->member_count;
    for (uint32_t i = 0; i < scatter->part_count; i++)
        scatter->parts[i].items = ARENA_ARRAY(split->arena, struct share, members);
    for (uint32_t m = 0; m < members; m++)
        for (uint32_t i = split->starts[m]; i < split->starts[m + 1]; i++) {
            struct part_shares *part = &scatter->parts[scatter->part_of[i]];
            if (!part->count || part->items[part->count - 1].member != m)
                part->items[part->count++] = (struct share){m, 0};
            part->items[part->count - 1].tasks++;
        }
}

static bool scatter_parts(struct scatter *scatter, struct type_part *parts)
{
    const struct split *split = scatter->split;
    const size_t members = split->request->member_count;
    for (uint32_t i = 0; i < scatter->part_count; i++) {
        if (!part_begin(split, &scatter->parts[i], i, &parts[i]))
            return false;
        part_order(split, &scatter->parts[i], &parts[i], &scatter->next[i * members]);
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
    const size_t type_count = hived_leaf_type_count(split->p->hived);
    struct arena *arena = split->arena;
    struct scatter scatter = {.split = split,
                              .types = types,
                              .parts = ARENA_ARRAY(arena, struct part_shares, type_count + 1),
                              .part_of = ARENA_ARRAY(arena, uint32_t, split->starts[members] + 1u)};
    scatter_sort(&scatter);
    scatter_share(&scatter);
    scatter.next = ARENA_ARRAY(arena, uint32_t, scatter.part_count * members + 1);
    *decision =
        (struct decision){.parts = ARENA_ARRAY(arena, struct type_part, scatter.part_count + 1u),
                          .part_count = scatter.part_count};
    return scatter_parts(&scatter, decision->parts) && decision->part_count > 0;
}
