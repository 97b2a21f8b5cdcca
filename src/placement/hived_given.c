/* hived_given.c — takes slots that were not just decided: see hived_parts.h, and "A group at the
 * placer" in docs/rfc/0011-waiting-jobs.md. */
#include "base/err.h"
#include "base/memory.h"
#include "placement/hived_parts.h"
#include <assert.h>
#include <string.h>

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

struct given {
    struct placer_hived *p;
    struct split split;
    struct decision decision;
    const struct placement_slot *slots;
    uint32_t part, slot;   /* of the decision, whose leaves are looked up next */
    uint64_t left;         /* of the work of a piece, in leaves */
    struct claims *claims; /* of the part, by the placer's nodes; NULL: nobody has asked */
    uint32_t *claim_next;  /* by the part's slots: the next one there, plus one */
    bool is_recovery;
    bool is_scattered; /* a task found none of the leaves that others of its kind are on */
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
        if (slot->gpu_count) {
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

/* The leaf type on which the tasks of a kind of member run: by the first task that tells. */
static void kind_settle(struct given *given, uint32_t kind)
{
    assert(kind < given->split.kind_count);
    const struct placement_request *request = given->split.request;
    for (uint32_t m = 0; m < request->member_count; m++) {
        for (uint32_t k = 0; given->split.kinds[m] == kind && k < request->members[m].count; k++) {
            const struct placement_slot *slot = &given->slots[given->split.starts[m] + k];
            const struct known_node *node = placer_known_node(given->p, slot->node);
            if (!node)
                continue;
            uint32_t type = type_settle(given, &(struct settle){&given->split.candidates[m],
                                                                &request->members[m], slot, node});
            if (type != HIVED_NONE) {
                given->split.choice[kind] = type;
                return;
            }
        }
    }
}

/* Once for each part: whose GPUs lie on which node. */
static void claims_begin(struct given *given, const struct type_part *part)
{
    const struct placer_hived *p = given->p;
    const uint32_t count = part->placement.slot_count;
    struct arena *arena = &given->p->arena;
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

static void given_count(struct given *given, uint64_t leaves)
{
    given->left -= leaves < given->left ? leaves : given->left;
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
    enum { PASSED_PER_LEAF = 16 };
    assert(leaves > 0);
    uint16_t *all;
    const struct claims *claims = claims_of(given, part, node);
    given_count(given, claims->count / PASSED_PER_LEAF);
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
        given->is_scattered |= !count && given->is_recovery;
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

/* Ended tasks hold nothing: HiveD sees their slot end at once. */
static void ended_release(struct placer_hived *p, const char *group,
                          const struct placement_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slots[i].node.v == UINT32_MAX)
            p->base.ops->release_slot(&p->base, group, i);
}

/* The leaf type that a task is on: that of its kind, if its node has it. */
static const char *task_type(struct given *given, uint32_t member, const struct known_node *node,
                             const struct placement_slot *slot)
{
    const struct type_candidates *list = &given->split.candidates[member];
    const char *type = list->types[given->split.choice[given->split.kinds[member]]];
    if (hived_node_highest(given->p->hived, node->facts.name, type) != HIVED_NONE)
        return type;
    const struct placement_member *demand = &given->split.request->members[member];
    const uint32_t other = type_settle(given, &(struct settle){list, demand, slot, node});
    return other == HIVED_NONE ? type : list->types[other];
}

/* Where nodes offer something else than when the group was placed, tasks of one kind are on several
 * leaf types: the same members, one for each run of tasks on one type. The caller's. */
static struct placement_member *members_scatter(struct given *given, size_t *count)
{
    const struct placement_request *request = given->split.request;
    const uint32_t *starts = given->split.starts;
    struct placement_member *members =
        mem_alloc(mem_size(starts[request->member_count] + 1u, sizeof *members));
    *count = 0;
    for (uint32_t m = 0; m < request->member_count; m++) {
        struct placement_member *run = NULL;
        for (uint32_t i = starts[m]; i < starts[m + 1]; i++) {
            const struct placement_slot *slot = &given->slots[i];
            const struct known_node *node = placer_known_node(given->p, slot->node);
            const char *type = node  ? task_type(given, m, node, slot)
                               : run ? run->sku_type /* it has ended */
                                     : given->split.candidates[m].types[0];
            if (!run || strcmp(run->sku_type, type) != 0) {
                run = &members[(*count)++];
                *run = request->members[m];
                run->count = 0;
                run->sku_type = type;
                run->within_one_cell = "";
            }
            run->count++;
        }
    }
    return members;
}

/* What each task is on. */
static int given_begin(struct given *given, const struct placement_request *request,
                       size_t slot_count, struct err *err)
{
    struct placer_hived *p = given->p;
    int code = placer_split_init(&given->split, p, request, &p->arena, err);
    if (code)
        return code;
    for (uint32_t kind = 0; kind < given->split.kind_count; kind++)
        kind_settle(given, kind);
    if (given->split.starts[request->member_count] != slot_count ||
        !placer_decision_make(&given->split, &given->decision))
        return err_fail(err, ERR_INVALID, "", "the slots do not fit the request");
    return 0;
}

/* The leaves of all tasks; PLACER_CUT after about so many. */
static int given_go_on(struct given *given, uint64_t leaves, struct err *err)
{
    given->left = leaves;
    while (given->part < given->decision.part_count) {
        struct type_part *part = &given->decision.parts[given->part];
        const int code = part_given(given, part, err);
        if (code)
            return code;
        if (given->slot < part->placement.slot_count)
            return PLACER_CUT;
        given->part++;
        given->slot = 0;
    }
    return 0;
}

static int given_find(struct given *given, const struct placement_request *request,
                      size_t slot_count, struct err *err)
{
    arena_clear(&given->p->arena);
    given->part = given->slot = 0;
    const int code = given_begin(given, request, slot_count, err);
    return code ? code : given_go_on(given, UINT64_MAX, err);
}

static int given_find_scattered(struct given *given, const struct placement_request *request,
                                size_t slot_count, struct err *err)
{
    struct placement_request scattered = *request;
    struct placement_member *members = members_scatter(given, &scattered.member_count);
    scattered.members = members;
    scattered.within_one_cell = NULL;
    int code = given_find(given, &scattered, slot_count, err);
    mem_free(members);
    return code;
}

static int parts_commit(struct placer_hived *p, const struct decision *decision, int64_t now_ms,
                        struct err *err)
{
    int code = 0;
    for (uint32_t i = 0; i < decision->part_count && !code; i++) {
        code = hived_commit_gang(p->hived, &decision->parts[i].request,
                                 &decision->parts[i].placement, now_ms, err);
        for (uint32_t k = 0; code && k <= i; k++) /* the part that failed as well */
            hived_group_end(p->hived, decision->parts[k].request.group);
    }
    return code;
}

static int given_try(struct placer_hived *p, const struct placement_request *request,
                     const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                     struct err *err)
{
    assert(slot_count > 0);
    struct given given = {.p = p, .slots = slots, .is_recovery = is_recovery};
    int code = given_find(&given, request, slot_count, err);
    if (!code && given.is_scattered)
        code = given_find_scattered(&given, request, slot_count, err);
    if (!code)
        code = parts_commit(p, &given.decision, request->now_ms, err);
    if (code)
        return code;
    placer_held_add(p, request->group, &given.decision, slot_count);
    ended_release(p, request->group, slots, slot_count);
    return 0;
}

/* What runs may ask for a type that the cells no longer have, or for more than a task may: then its
 * devices say enough. Were it refused, they would be given to others. */
int placer_given_commit(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                        struct err *err)
{
    struct err first = {0};
    int code = given_try(p, request, slots, slot_count, is_recovery, &first);
    if (!code)
        return 0;
    if (!is_recovery)
        return err_fail(err, code, first.path, "%s", first.text);
    struct placement_request bare = *request;
    struct placement_member *members =
        mem_alloc(mem_size(request->member_count + 1, sizeof *members));
    for (size_t i = 0; i < request->member_count; i++)
        members[i] = (struct placement_member){.count = request->members[i].count,
                                               .gpu = request->members[i].gpu,
                                               .sku_type = "",
                                               .within_one_cell = ""};
    bare.members = members;
    bare.within_one_cell = NULL;
    code = given_try(p, &bare, slots, slot_count, true, err);
    mem_free(members);
    return code;
}

/* --- the same in pieces --- */

/* The next piece of it, and in a copy those before. *again: pieces that are left to be done. */
static int giving_look_up(struct placer_hived *p, const struct placement_request *request,
                          const struct placement_slot *slots, uint32_t *again, struct err *err)
{
    struct placer_search *search = &p->search;
    const size_t count = search->giving.slot_count;
    const uint64_t most = search->leaves, least = count / TAKINGS_MAX + 1;
    struct given *given = search->giving.given;
    int code = 0;
    *again = 1;
    if (!given) {
        *again += search->giving.pieces;
        given = search->giving.given = ARENA_NEW(&p->arena, struct given);
        *given = (struct given){.p = p, .slots = slots, .is_recovery = search->giving.is_recovery};
        code = given_begin(given, request, count, err);
    }
    given->slots = slots;
    given->split.request = request;
    if (!code)
        code = PLACER_CUT;
    for (; *again > 0 && code == PLACER_CUT; --*again)
        code = given_go_on(given, most > least ? most : least, err);
    search->giving.pieces += !*again;
    return code;
}

/* From now on it is as if it had been found here. */
static void giving_decide(struct placer_hived *p, const struct placement_slot *slots)
{
    const struct placer_search *search = &p->search;
    p->decision = search->giving.given->decision;
    p->decided = arena_copy(&p->arena, text_of(search->group));
    p->decided_count = search->giving.slot_count;
    p->decided_slots = placer_slots_copy(slots, p->decided_count, &p->arena);
}

/* What runs is not as it was asked for: it is recovered at once, with what it is seen to have. */
static int giving_recover(struct placer_hived *p, const struct placement_request *request,
                          const struct placement_slot *slots, size_t slot_count, struct err *err)
{
    search_close(p, false);
    placer_leaving_finish(p);
    return placer_given_commit(p, request, slots, slot_count, true, err);
}

int placer_giving_go_on(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, struct err *err)
{
    const struct placer_search *search = &p->search;
    uint32_t again = 1;
    int code = 0;
    search_go_on_given(p, request);
    if (!p->decided) {
        struct err why = {0};
        code = giving_look_up(p, request, slots, &again, &why);
        const bool is_odd = code ? code != PLACER_CUT : search->giving.given->is_scattered;
        if (is_odd && search->giving.is_recovery)
            return giving_recover(p, request, slots, slot_count, err);
        if (is_odd && code)
            err_fail(err, code, why.path, "%s", why.text);
        if (!code)
            giving_decide(p, slots);
        if (!code && !again)
            code = PLACER_CUT;
    }
    if (!code)
        code = placer_take_some(p, request->now_ms, err);
    if (code == PLACER_CUT)
        return code;
    if (!code && !search->taking.gang) /* it cannot be cut */
        code = parts_commit(p, &p->decision, request->now_ms, err);
    if (!code && !search->taking.is_held)
        placer_held_add(p, request->group, &p->decision, slot_count);
    search_close(p, code == 0);
    if (!code)
        ended_release(p, request->group, slots, slot_count);
    return code;
}
