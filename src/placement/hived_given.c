/* hived_given.c — which leaves are those of slots that were not just decided: see hived_given.h,
 * and "A group at the placer" in docs/rfc/0011-waiting-jobs.md. */
#include "placement/hived_given.h"
#include "base/err.h"
#include <assert.h>
#include <string.h>

enum {
    LISTED_PER_LEAF = 16, /* as long as it takes to look a leaf up, so many tasks are listed */
    WORK_OF_TYPE = 3,     /* to see what a node has, in leaves */
};

static uint64_t expected_key(struct node_id node, uint32_t gpu)
{
    return (uint64_t)node.v << 32 | gpu;
}

void placer_hived_expect(struct placer *placer, struct node_id node, const uint16_t *gpus,
                         size_t count)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    for (size_t i = 0; i < count; i++)
        id_map_set(&p->expected, expected_key(node, gpus[i]), 0);
}

/* The leaves of one node that tasks of a part have: by their GPUs, or as they were served before.
 */
struct claims {
    bool *leaves; /* by their index; NULL: nobody has asked */
    uint32_t count;
    uint32_t first; /* of the part's slots with GPUs there, plus one; 0: there is none */
};

static bool vc_owns(const struct hived_config *config, const char *name, uint32_t type,
                    bool is_leaf)
{
    assert(type < config->type_count);
    for (uint32_t i = 0; i < config->vc_count; i++) {
        const struct hived_vc_spec *vc = &config->vcs[i];
        if (strcmp(vc->name, name) != 0)
            continue;
        for (uint32_t k = 0; k < vc->cell_count; k++) {
            uint32_t own = vc->cells[k].type;
            if ((is_leaf ? config->types[own].leaf_type : own) == type && vc->cells[k].number > 0)
                return true;
        }
        for (uint32_t k = 0; k < vc->pin_count; k++) {
            uint32_t own = vc->pins[k].cell->type;
            if ((is_leaf ? config->types[own].leaf_type : own) == type)
                return true;
        }
    }
    return false;
}

struct settle { /* a task, and the leaf types that it may be on */
    const struct type_candidates *list;
    const struct placement_member *member;
    const struct placement_slot *slot;
    const struct known_node *node;
};

/* The free leaves of a node that no group still to be told has, in order. */
static uint32_t leaves_unclaimed(struct placer_hived *p, const struct known_node *node,
                                 const char *type, uint16_t **indices)
{
    const uint32_t per_leaf = placer_hived_leaf_gpus(hived_config_of(p->hived), type);
    const char *name = node->facts.name;
    uint32_t count = 0, free = hived_node_free(p->hived, name, type, NULL, 0);
    *indices = ARENA_ARRAY(&p->arena, uint16_t, free + 1u);
    hived_node_free(p->hived, name, type, *indices, free);
    for (uint32_t i = 0; i < free; i++) {
        bool is_claimed = false;
        for (uint32_t k = 0; p->expected.count && k < per_leaf; k++)
            is_claimed |=
                id_map_get(&p->expected, expected_key((struct node_id){node->id},
                                                      (*indices)[i] * per_leaf + k)) != MAP_NONE;
        if (!is_claimed)
            (*indices)[count++] = (*indices)[i];
    }
    return count;
}

static void given_count(struct given *given, uint64_t leaves)
{
    given->left -= leaves < given->left ? leaves : given->left;
}

/* A task with devices is where they are. One without is on the first type of which its virtual
 * cluster owns cells and the node has enough free leaves; where none has, on the first of which
 * the node has any. */
static uint32_t type_settle(struct given *given, const struct settle *settle)
{
    const struct placement_request *request = given->split.request;
    const struct hived *hived = given->p->hived;
    const struct hived_config *config = hived_config_of(hived);
    const struct placement_slot *slot = settle->slot;
    uint32_t other = HIVED_NONE;
    for (uint32_t c = 0; c < settle->list->count; c++) {
        const char *type = settle->list->types[c];
        uint32_t per_leaf = placer_hived_leaf_gpus(config, type);
        bool is_free;
        given_count(given, 1);
        if (slot->gpu_count) {
            given_count(given, slot->gpu_count);
            for (uint32_t i = 0; per_leaf && i < slot->gpu_count; i++) /* some may be lost */
                if (hived_node_chain(hived, settle->node->facts.name, type,
                                     slot->gpus[i] / per_leaf, &is_free))
                    return c;
            continue;
        }
        uint16_t *some;
        uint32_t free = leaves_unclaimed(given->p, settle->node, type, &some),
                 need = placer_leaf_count(config, type, 0, settle->member->cpu,
                                          settle->member->memory_mib);
        bool is_owner =
            request->priority < HIVED_PRIORITY_MIN ||
            vc_owns(config, request->virtual_cluster, hived_config_type(config, type), true);
        if (is_owner && free >= need)
            return c;
        if (other == HIVED_NONE && free)
            other = c;
    }
    return other;
}

/* The leaf type of each kind of task: by the first task that tells. False: cut. */
static bool kinds_settle(struct given *given)
{
    const struct split *split = &given->split;
    const struct placement_request *request = split->request;
    while (given->kind < split->kind_count) {
        const uint32_t m = given->member;
        uint32_t type = HIVED_NONE;
        if (m < request->member_count) {
            if (split->kinds[m] != given->kind || given->task == request->members[m].count) {
                given->member++;
                given->task = 0;
                continue;
            }
            if (!given->left)
                return false;
            const struct placement_slot *slot = &given->slots[split->starts[m] + given->task++];
            const struct known_node *node = placer_known_node(given->p, slot->node);
            if (node)
                type = type_settle(given, &(struct settle){split_candidates(split, m),
                                                           &request->members[m], slot, node});
            given_count(given, !node);
            if (type == HIVED_NONE)
                continue;
            split->choice[given->kind] = type;
        }
        given->kind++;
        given->member = given->task = 0;
    }
    return true;
}

/* Once for each part: whose GPUs lie on which node. */
static void claims_begin(struct given *given, const struct type_part *part)
{
    const struct placer_hived *p = given->p;
    const uint32_t count = part->placement.slot_count;
    struct arena *arena = &given->p->arena;
    given_count(given, (count + p->nodes.count) / LISTED_PER_LEAF);
    given->claims = ARENA_ARRAY(arena, struct claims, p->nodes.count + 1);
    given->claim_next = ARENA_ARRAY(arena, uint32_t, count + 1u);
    for (uint32_t i = 0; part->gpu_per_leaf && i < count; i++) {
        const struct placement_slot *slot = &given->slots[part->slots[i]];
        const struct known_node *node = slot->gpu_count ? placer_known_node(p, slot->node) : NULL;
        if (!node)
            continue;
        struct claims *claims = &given->claims[node - p->nodes.items];
        given->claim_next[i] = claims->first;
        claims->first = i + 1;
    }
}

static struct claims *claims_of(struct given *given, const struct type_part *part,
                                const struct known_node *node)
{
    if (!given->claims)
        claims_begin(given, part);
    struct claims *claims = &given->claims[node - given->p->nodes.items];
    if (claims->leaves)
        return claims;
    const uint32_t highest = hived_node_highest(given->p->hived, node->facts.name, part->leaf_type);
    claims->count = highest == HIVED_NONE ? 0 : highest + 1;
    claims->leaves = ARENA_ARRAY(&given->p->arena, bool, claims->count + 1u);
    for (uint32_t at = claims->first; at; at = given->claim_next[at - 1]) {
        const struct placement_slot *slot = &given->slots[part->slots[at - 1]];
        assert(part->gpu_per_leaf > 0); /* else no slot is listed */
        for (uint32_t k = 0; k < slot->gpu_count; k++)
            if (slot->gpus[k] / part->gpu_per_leaf < claims->count)
                claims->leaves[slot->gpus[k] / part->gpu_per_leaf] = true;
    }
    return claims;
}

/* Of a task without devices of its own: any free leaves that no other task has. */
static uint32_t leaves_free(struct given *given, const struct type_part *part,
                            const struct known_node *node, uint32_t leaves, uint16_t *indices)
{
    enum { WORK = 6, PASSED_PER_LEAF = 8 };
    assert(leaves > 0);
    uint16_t *all;
    const struct claims *claims = claims_of(given, part, node);
    given_count(given, WORK + claims->count / PASSED_PER_LEAF);
    uint32_t found = leaves_unclaimed(given->p, node, part->leaf_type, &all), count = 0;
    for (uint32_t i = 0; i < found && count < leaves; i++) {
        assert(all[i] < claims->count);
        if (claims->leaves[all[i]])
            continue;
        claims->leaves[all[i]] = true;
        indices[count++] = all[i];
    }
    return count;
}

/* The chain's type of this level, for each leaf of a slot. NULL: the virtual cluster owns none (any
 * more), HiveD looks for another. */
static const char *const *cell_types(struct placer_hived *p, const struct type_part *part,
                                     const char *chain, uint8_t level, uint32_t count)
{
    assert(count > 0 && chain);
    const struct hived_config *config = hived_config_of(p->hived);
    uint32_t type = hived_config_type(config, chain);
    while (type != HIVED_NONE && config->types[type].level != level)
        type = config->types[type].child;
    if (type == HIVED_NONE || !vc_owns(config, part->request.virtual_cluster, type, false))
        return NULL;
    const char **types = ARENA_ARRAY(&p->arena, const char *, count);
    for (uint32_t i = 0; i < count; i++)
        types[i] = config->types[type].name;
    return types;
}

/* Leaves of a task: those of its GPUs, or any free ones. */
static int slot_leaves(struct given *given, struct type_part *part, uint32_t leaves,
                       const struct placement_slot *from, struct hived_slot *slot, struct err *err)
{
    assert(leaves > 0);
    const struct known_node *node = placer_known_node(given->p, from->node);
    uint32_t per_leaf = part->gpu_per_leaf, count = 0;
    struct arena *arena = &given->p->arena;
    uint32_t room = from->gpu_count > leaves ? from->gpu_count : leaves;
    uint16_t *indices = ARENA_ARRAY(arena, uint16_t, room + 1u);
    *slot = (struct hived_slot){.node = node ? arena_copy(arena, text_of(node->facts.name)) : "",
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
    if (!count) {
        count = leaves_free(given, part, node, leaves, indices);
        given->is_homeless |= !count && given->is_recovery;
        if (count < leaves && !given->is_recovery)
            return err_fail(err, ERR_CONFLICT, "", "%s has only %u free leaves of %s",
                            node->facts.name, count, part->leaf_type);
    }
    slot->leaf_count = count ? count : 1;
    if (!count)
        indices[0] = UINT16_MAX; /* nothing is left: a device that does not exist is ignored */
    for (uint32_t i = 0; i < count; i++) {
        bool is_free;
        const char *chain = hived_node_chain(given->p->hived, node->facts.name, part->leaf_type,
                                             indices[i], &is_free);
        if (chain && !part->placement.chain)
            part->placement.chain = arena_copy(arena, text_of(chain));
        if (!given->is_recovery && (!chain || !is_free))
            return err_fail(err, ERR_CONFLICT, "", "device %u of %s is not free", indices[i],
                            node->facts.name);
        if (chain && from->cell_level)
            slot->preassigned =
                cell_types(given->p, part, chain, from->cell_level, slot->leaf_count);
    }
    return 0;
}

static void part_begin(struct given *given, struct type_part *part)
{
    assert(part->leaf_type && !given->slot);
    uint32_t tasks = 0;
    for (uint32_t i = 0; i < part->request.member_count; i++)
        tasks += part->request.members[i].pods;
    struct hived_slot *slots = ARENA_ARRAY(&given->p->arena, struct hived_slot, tasks);
    part->placement = (struct hived_placement){.slots = slots, .slot_count = tasks};
    given->claims = NULL;
}

/* Until the work of a piece is done. */
static int part_given(struct given *given, struct type_part *part, struct err *err)
{
    if (!part->placement.slots)
        part_begin(given, part);
    struct hived_slot *slots = (struct hived_slot *)(uintptr_t)part->placement.slots;
    const struct placement_request *request = given->split.request;
    const struct hived_config *config = hived_config_of(given->p->hived);
    while (given->slot < part->placement.slot_count && given->left > 0) {
        if (given->is_homeless && !given->types)
            return 0;
        uint32_t task = part->slots[given->slot], member = 0;
        while (given->split.starts[member + 1] <= task)
            member++;
        const struct placement_member *demand = &request->members[member];
        uint32_t count = placer_leaf_count(config, part->leaf_type, demand->gpu, demand->cpu,
                                           demand->memory_mib);
        int code = slot_leaves(given, part, count, &given->slots[task], &slots[given->slot++], err);
        if (code)
            return code;
        given_count(given, count);
    }
    if (!part->placement.chain)
        part->placement.chain = "";
    return 0;
}

/* The leaf type that a task is on: that of its kind, if its node has it. */
static uint32_t task_type(struct given *given, uint32_t member, const struct known_node *node,
                          const struct placement_slot *slot)
{
    const struct split *split = &given->split;
    const struct type_candidates *list = split_candidates(split, member);
    const uint32_t type = split->choice[split->kinds[member]];
    given_count(given, WORK_OF_TYPE);
    if (hived_node_highest(given->p->hived, node->facts.name, list->types[type]) != HIVED_NONE)
        return type;
    const struct placement_member *demand = &split->request->members[member];
    const uint32_t other = type_settle(given, &(struct settle){list, demand, slot, node});
    return other == HIVED_NONE ? type : other;
}

/* Where nodes offer something else than when the group was placed, tasks of one kind are on several
 * leaf types: that of each task. False: cut. */
static bool types_settle(struct given *given)
{
    const struct split *split = &given->split;
    const struct placement_request *request = split->request;
    while (given->member < request->member_count) {
        const uint32_t m = given->member;
        if (given->task == request->members[m].count) {
            given->member++;
            given->task = 0;
            continue;
        }
        if (!given->left)
            return false;
        const uint32_t at = split->starts[m] + given->task++;
        const struct placement_slot *slot = &given->slots[at];
        const struct known_node *node = placer_known_node(given->p, slot->node);
        if (node)
            given->types[at] = (uint16_t)task_type(given, m, node, slot);
        else /* it has ended */
            given->types[at] = given->task > 1 ? given->types[at - 1] : 0;
        given_count(given, !node);
    }
    return true;
}

/* The leaves of all tasks. False in *is_whole: after about so many. */
static int leaves_find(struct given *given, bool *is_whole, struct err *err)
{
    *is_whole = false;
    while (given->part < given->decision.part_count) {
        struct type_part *part = &given->decision.parts[given->part];
        const int code = part_given(given, part, err);
        if (code || given->slot < part->placement.slot_count)
            return code;
        given->part++;
        given->slot = 0;
    }
    *is_whole = true;
    return 0;
}

static void stage_begin(struct given *given, enum given_stage stage)
{
    given->stage = stage;
    given->kind = given->member = given->task = given->part = given->slot = 0;
}

static int slots_do_not_fit(struct err *err)
{
    return err_fail(err, ERR_INVALID, "", "the slots do not fit the request");
}

static int begin_go_on(struct given *given, struct err *err)
{
    struct placer_hived *p = given->p;
    const struct placement_request *request = given->bare_members ? &given->bare : given->request;
    const int code = placer_split_init(&given->split, p, request, &p->arena, err);
    if (code)
        return code;
    if (given->split.starts[request->member_count] != given->slot_count)
        return slots_do_not_fit(err);
    stage_begin(given, GIVEN_KINDS);
    return 0;
}

static int kinds_go_on(struct given *given, struct err *err)
{
    if (!kinds_settle(given))
        return 0;
    given_count(given, given->slot_count / LISTED_PER_LEAF);
    if (!placer_decision_make(&given->split, &given->decision))
        return slots_do_not_fit(err);
    placer_decision_order(&given->split, &given->decision);
    stage_begin(given, GIVEN_LEAVES);
    return 0;
}

static int leaves_go_on(struct given *given, struct err *err)
{
    bool is_whole;
    const int code = leaves_find(given, &is_whole, err);
    if (code)
        return code;
    if (given->is_homeless && !given->types) {
        given->types = ARENA_ARRAY(&given->p->arena, uint16_t, given->slot_count + 1);
        stage_begin(given, GIVEN_TYPES);
    } else if (is_whole) {
        given->stage = GIVEN_KNOWN;
    }
    return 0;
}

static int types_go_on(struct given *given, struct err *err)
{
    if (!types_settle(given))
        return 0;
    given_count(given, given->slot_count / LISTED_PER_LEAF);
    if (!placer_decision_scatter(&given->split, given->types, &given->decision))
        return slots_do_not_fit(err);
    stage_begin(given, GIVEN_LEAVES);
    return 0;
}

/* The next stage, or some of it. */
static int given_go_on(struct given *given, struct err *err)
{
    switch (given->stage) {
    case GIVEN_BEGIN:
        return begin_go_on(given, err);
    case GIVEN_KINDS:
        return kinds_go_on(given, err);
    case GIVEN_LEAVES:
        return leaves_go_on(given, err);
    case GIVEN_TYPES:
        return types_go_on(given, err);
    case GIVEN_KNOWN:
        break;
    }
    return 0;
}

static void bare_set(struct given *given)
{
    given->bare = *given->request;
    given->bare.members = given->bare_members;
    given->bare.within_one_cell = NULL;
}

bool given_ask_less(struct given *given)
{
    const struct placement_request *request = given->request;
    if (!given->is_recovery || given->bare_members)
        return false;
    given->bare_members =
        ARENA_ARRAY(&given->p->arena, struct placement_member, request->member_count + 1);
    for (size_t i = 0; i < request->member_count; i++)
        given->bare_members[i] = (struct placement_member){.count = request->members[i].count,
                                                           .gpu = request->members[i].gpu,
                                                           .sku_type = "",
                                                           .within_one_cell = ""};
    bare_set(given);
    given->types = NULL;
    given->is_homeless = false;
    stage_begin(given, GIVEN_BEGIN);
    return true;
}

int given_some(struct given *given, const struct placement_request *request,
               const struct placement_slot *slots, uint64_t leaves, struct err *err)
{
    assert(leaves > 0);
    given->left = leaves;
    given->request = request;
    given->slots = slots;
    if (given->bare_members)
        bare_set(given);
    given->split.request = given->bare_members ? &given->bare : request;
    while (given->stage != GIVEN_KNOWN && given->left > 0) {
        struct err why = {0};
        const int code = given_go_on(given, &why);
        if (code && !given_ask_less(given))
            return err_fail(err, code, why.path, "%s", why.text);
    }
    return given->stage == GIVEN_KNOWN ? 0 : PLACER_CUT;
}
