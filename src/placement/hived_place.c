/* Placing a request: see hived_parts.h. */
#include "base/err.h"
#include "base/memory.h"
#include "placement/hived_parts.h"
#include <assert.h>
#include <string.h>

enum { COMBOS_MAX = 64 };

int placer_part_schedule(struct attempt *attempt, struct type_part *part, enum hived_phase phase,
                         const struct hived_scope *scope, struct err *err)
{
    assert(part->leaf_type);
    struct hived_result result;
    part->request.uses_suggested = scope != NULL;
    struct hived_ask ask = {.request = &part->request,
                            .pod = attempt->request->group,
                            .phase = phase,
                            .scope = scope,
                            .now_ms = attempt->request->now_ms};
    int code = hived_schedule(attempt->p->hived, &ask, &attempt->p->arena, &result, err);
    if (code)
        return code;
    part->kind = result.kind;
    part->placement = result.placement;
    part->victims = result.victims;
    part->victim_count = result.victim_count;
    part->reason = result.reason;
    part->topic = result.topic;
    part->is_never = result.is_never;
    return 0;
}

/* The worst of the parts: a wait of one is a wait of all. */
static int decision_schedule(struct attempt *attempt, struct decision *decision,
                             enum hived_phase phase, const struct hived_scope *scope,
                             enum hived_kind *kind, struct err *err)
{
    assert(decision->part_count > 0);
    *kind = HIVED_BIND;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        struct type_part *part = &decision->parts[i];
        int code = placer_part_schedule(attempt, part, phase, scope, err);
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

/* What the names in a slot stand for: most slots have those of the one before. */
struct slot_names {
    const char *node, *type;
    struct node_id id;
    uint8_t level;
};

static void slot_names_find(const struct placer_hived *p, const struct hived_slot *slot,
                            struct slot_names *names)
{
    const char *preassigned = slot->preassigned[0];
    if (names->node != slot->node) {
        const uint32_t node = text_map_get(&p->node_index, text_of(slot->node));
        assert(node != MAP_NONE);
        names->node = slot->node;
        names->id.v = p->nodes.items[node].id;
    }
    if (names->type == preassigned)
        return;
    const struct hived_config *config = hived_config_of(p->hived);
    const uint32_t type = hived_config_type(config, preassigned);
    names->type = preassigned;
    names->level = type == HIVED_NONE ? 0 : config->types[type].level;
}

static void slot_fill(const struct placer_hived *p, const struct type_part *part, uint32_t at,
                      struct slot_names *names, uint16_t *gpus, struct placement_slot *slot)
{
    const struct hived_slot *from = &part->placement.slots[at];
    slot_names_find(p, from, names);
    /* a task lies on one node, so in one preassigned cell */
    *slot = (struct placement_slot){.node = names->id, .cell_level = names->level, .gpus = gpus};
    for (uint32_t i = 0; part->wants_gpu[at] && i < from->leaf_count; i++)
        for (uint32_t k = 0; k < part->gpu_per_leaf; k++) {
            assert(slot->gpu_count < PLACEMENT_GPUS_MAX);
            gpus[slot->gpu_count++] = (uint16_t)(from->indices[i] * part->gpu_per_leaf + k);
        }
}

/* The caller's arena may be gone when they are committed. */
static void slots_keep(struct placer_hived *p, const struct placement_result *result,
                       size_t gpu_count)
{
    struct placement_slot *kept = ARENA_ARRAY(&p->arena, struct placement_slot, result->slot_count);
    uint16_t *gpus = ARENA_ARRAY(&p->arena, uint16_t, gpu_count + 1);
    for (size_t i = 0; i < result->slot_count; i++) {
        kept[i] = result->slots[i];
        kept[i].gpus = memcpy(gpus, kept[i].gpus, kept[i].gpu_count * sizeof *gpus);
        gpus += kept[i].gpu_count;
    }
    p->decided_slots = kept;
    p->decided_count = result->slot_count;
}

static size_t part_gpus(const struct type_part *part)
{
    size_t count = 0;
    for (uint32_t i = 0; i < part->placement.slot_count; i++)
        if (part->wants_gpu[i])
            count += (size_t)part->placement.slots[i].leaf_count * part->gpu_per_leaf;
    return count;
}

static void result_bind(struct attempt *attempt, const struct decision *decision,
                        struct placement_result *result)
{
    assert(decision->part_count > 0);
    struct placer_hived *p = attempt->p;
    size_t count = 0, gpu_count = 0;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        count += decision->parts[i].placement.slot_count;
        gpu_count += part_gpus(&decision->parts[i]);
    }
    uint16_t *gpus = ARENA_ARRAY(attempt->arena, uint16_t, gpu_count + 1);
    result->kind = PLACEMENT_BIND;
    result->slots = ARENA_ARRAY(attempt->arena, struct placement_slot, count);
    result->slot_count = count;
    struct slot_names names = {0};
    for (uint32_t i = 0; i < decision->part_count; i++) {
        const struct type_part *part = &decision->parts[i];
        for (uint32_t k = 0; k < part->placement.slot_count; k++) {
            struct placement_slot *slot = &result->slots[part->slots[k]];
            slot_fill(p, part, k, &names, gpus, slot);
            gpus += slot->gpu_count;
        }
    }
    slots_keep(p, result, gpu_count);
    p->decided = arena_copy(&p->arena, text_of(attempt->request->group));
    p->decision = *decision;
}

/* The core's groups, each once: a group of HiveD may be a part of one. */
static void result_preempt(struct attempt *attempt, const struct decision *decision,
                           struct placement_result *result)
{
    assert(decision->part_count > 0);
    const struct placer_hived *p = attempt->p;
    size_t room = 1;
    for (uint32_t i = 0; i < decision->part_count; i++)
        room += decision->parts[i].victim_count;
    result->kind = PLACEMENT_PREEMPT;
    result->victims = ARENA_ARRAY(attempt->arena, const char *, room);
    cleanup_text_map struct text_map known = {0};
    const char *last = NULL;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        for (uint32_t k = 0; k < decision->parts[i].victim_count; k++) {
            const char *name = decision->parts[i].victims[k].group;
            if (last && !strcmp(last, name))
                continue; /* pods of one group stand together */
            last = name;
            uint32_t held = text_map_get(&p->held_index, text_of(name));
            const char *victim = held == MAP_NONE ? name : p->helds.items[held].name;
            if (text_map_get(&known, text_of(victim)) != MAP_NONE)
                continue;
            victim = arena_copy(attempt->arena, text_of(victim));
            text_map_set(&known, text_of(victim), (uint32_t)result->victim_count);
            result->victims[result->victim_count++] = victim;
        }
    }
}

static void result_wait(struct attempt *attempt, const char *reason, uint64_t topic, bool is_never,
                        struct placement_result *result)
{
    assert(reason);
    result->kind = PLACEMENT_WAIT;
    result->reason = arena_copy(attempt->arena, text_of(reason));
    result->topic = topic;
    result->is_never = is_never;
}

static const struct type_part *waiting_part(const struct decision *decision)
{
    assert(decision->part_count > 0);
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
    assert(decision->part_count > 0);
    for (uint32_t i = 0; i < decision->part_count; i++) {
        const struct type_part *part = &decision->parts[i];
        uint32_t tasks = 0;
        for (uint32_t k = 0; k < part->request.member_count; k++)
            tasks += part->request.members[k].pods;
        if (part->kind != HIVED_WAIT && part->placement.slot_count &&
            part->placement.slot_count != tasks)
            return false;
    }
    return true;
}

enum { TOPIC_NO_NODE = 1 }; /* of the reasons that HiveD has no part in */

struct combos_outcome { /* over all combinations */
    struct decision bind, preempt;
    bool has_bind, has_preempt, has_wait, is_never;
    bool lacks_cpus; /* CPU cells are what it waits for, and GPU cells might do */
    const char *reason;
    uint64_t topic;
};

static int combos_try(struct attempt *attempt, struct split *split, const struct hived_scope *scope,
                      struct combos_outcome *outcome, struct err *err)
{
    struct err last = {0};
    bool is_any_good = false;
    struct hived_group_view view; /* a preemption under way stays with its leaf type */
    const bool is_check = attempt->request->is_check;
    bool is_known =
        !is_check && hived_group_find(attempt->p->hived, attempt->request->group, &view);
    *outcome = (struct combos_outcome){.is_never = true};
    memset(split->choice, 0, split->kind_count * sizeof *split->choice);
    uint32_t tries = 0;
    do {
        struct decision decision;
        enum hived_kind kind;
        if (!placer_decision_make(split, &decision) ||
            (is_known && strcmp(decision.parts[0].leaf_type, view.leaf_type)))
            continue;
        int code = decision_schedule(
            attempt, &decision, is_check ? HIVED_CHECKING : HIVED_FILTERING, scope, &kind, &last);
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
            const struct type_part *part = waiting_part(&decision);
            if (!outcome->has_wait || (outcome->is_never && !part->is_never)) {
                outcome->reason = part->reason;
                outcome->topic = part->topic;
                outcome->lacks_cpus =
                    !part->gpu_per_leaf && split->has_others && !split->takes_others;
            }
            outcome->is_never &= part->is_never;
            outcome->has_wait = true;
        }
    } while (placer_split_next(split) && ++tries < COMBOS_MAX);
    if (is_any_good)
        return 0;
    return last.code ? err_fail(err, last.code, last.path, "%s", last.text)
                     : err_fail(err, ERR_INVALID, "",
                                "no leaf type can serve the demand; a task has at most %d GPUs",
                                PLACEMENT_GPUS_MAX);
}

static struct hived_scope avoid_scope(struct attempt *attempt)
{
    const struct placement_request *request = attempt->request;
    const char **names = ARENA_ARRAY(attempt->arena, const char *, request->avoid_count + 1);
    struct hived_scope scope = {.nodes = names, .is_avoid = true};
    for (size_t i = 0; i < request->avoid_count; i++) {
        const struct known_node *node = placer_known_node(attempt->p, request->avoid[i]);
        if (node)
            names[scope.count++] = node->facts.name;
    }
    return scope;
}

static int outcome_conclude(struct attempt *attempt, struct combos_outcome *outcome,
                            struct placement_result *result, struct err *err)
{
    if (outcome->has_bind) {
        result_bind(attempt, &outcome->bind, result);
        return 0;
    }
    if (!outcome->has_preempt) {
        const char *reason = outcome->reason ? outcome->reason : "no cells";
        if (outcome->lacks_cpus)
            reason = arena_format(attempt->arena,
                                  "%s; it would take the CPUs of GPU cells only if its skuType "
                                  "named them",
                                  reason);
        result_wait(attempt, reason, outcome->topic, outcome->is_never, result);
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
            const struct type_part *part = waiting_part(&outcome->preempt);
            result_wait(attempt, part->reason, part->topic, part->is_never, result);
            return 0;
        }
    }
    result_preempt(attempt, &outcome->preempt, result);
    return 0;
}

/* Without the nodes to avoid, where that will do. */
static int request_try(struct attempt *attempt, struct split *split, struct combos_outcome *outcome,
                       struct err *err)
{
    const struct placement_request *request = attempt->request;
    struct hived_group_view view;
    if (request->avoid_count && !request->is_check &&
        !hived_group_find(attempt->p->hived, request->group, &view)) {
        struct hived_scope scope = avoid_scope(attempt);
        int code = combos_try(attempt, split, &scope, outcome, err);
        if (code || outcome->has_bind)
            return code;
    }
    return combos_try(attempt, split, NULL, outcome, err);
}

static bool is_cluster_known(const struct hived *hived, const char *name)
{
    for (uint32_t i = 0; i < hived_vc_count(hived); i++)
        if (strcmp(hived_vc_name(hived, i), name) == 0)
            return true;
    return false;
}

int placer_hived_place(struct placer *placer, const struct placement_request *request,
                       struct arena *arena, struct placement_result *result, struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    struct attempt attempt = {.p = p, .request = request, .arena = arena};
    *result = (struct placement_result){0};
    p->decided = NULL;
    id_map_release(&p->expected);
    arena_clear(&p->arena);
    placer_hived_refresh(p);
    assert(p->hived);
    if (!hived_leaf_type_count(p->hived)) {
        result_wait(&attempt, "no node has appeared yet", TOPIC_NO_NODE, false, result);
        return 0;
    }
    struct split split;
    struct combos_outcome outcome;
    int code = placer_split_init(&split, p, request, &p->arena, err);
    if (code)
        return code;
    struct err first = {0};
    code = request_try(&attempt, &split, &outcome, &first);
    bool is_hopeless = code == ERR_INVALID ||
                       (!code && !outcome.has_bind && !outcome.has_preempt && outcome.is_never);
    if (is_hopeless && split.has_others) {
        split.takes_others = true;
        code = request_try(&attempt, &split, &outcome, err);
    } else if (code) {
        return err_fail(err, code, first.path, "%s", first.text);
    }
    if (code == ERR_INVALID && !is_cluster_known(p->hived, request->virtual_cluster))
        return err_fail(err, ERR_NOT_FOUND, "virtualCluster", "there is no virtual cluster %.100s",
                        request->virtual_cluster);
    return code || request->is_check ? code : outcome_conclude(&attempt, &outcome, result, err);
}
