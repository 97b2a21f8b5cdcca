/* Placing a request: see hived_parts.h. */
#include "base/err.h"
#include "base/memory.h"
#include "model/reason.h"
#include "placement/hived_parts.h"
#include <assert.h>
#include <string.h>

/* Combinations of leaf types that are tried in one piece, and in all on the same nodes. The work of
 * one is the number of its parts, times that of the request's members. */
enum {
    COMBOS_IN_PIECE = 32,
    COMBOS_MAX = 4096,
    COMBOS_WORK_IN_PIECE = 1 << 12,
    COMBOS_WORK_MAX = 1 << 19
};

static int call_end(struct placer_hived *p, struct search_call *call, uint32_t before, int code,
                    const struct err *err)
{
    assert(!call->is_done);
    call->is_done = true;
    call->code = code;
    if (code) {
        struct err *kept = ARENA_NEW(&p->arena, struct err);
        *kept = *err;
        call->err = kept;
    }
    bool is_cut = false;
    if (call->phase == HIVED_FILTERING)
        is_cut = !code && call->result.kind != HIVED_WAIT && search_piece_end(p) &&
                 !p->search.is_filtered;
    else if (p->search.is_preempting && !p->search.is_reserved)
        is_cut = p->search.is_reserved = true;
    call->passed = p->search.passed - before;
    return is_cut ? PLACER_CUT : code;
}

/* Ask HiveD the next question of a search in pieces, unless the answer is known. */
static int piece_schedule(const struct attempt *attempt, struct type_part *part,
                          const struct hived_ask *ask, struct hived_result *result, struct err *err)
{
    struct placer_hived *p = attempt->p;
    struct placer_search *search = &p->search;
    struct search_call *call = search_call_of(p, ask, attempt->scope_kind);
    const uint32_t before = search->passed;
    int code = 0;
    if (!call->is_done) {
        struct err why = {0};
        const bool is_again = search->is_filtered && ask->phase == HIVED_FILTERING;
        struct hived_course course = {.pieces = is_again ? UINT32_MAX : search->pieces,
                                      .passed = search->passed,
                                      .leaves = search->leaves,
                                      .found = call->found ? call->found : part->found};
        struct hived_ask piece = *ask;
        piece.course = &course;
        code = hived_schedule(p->hived, &piece, &p->arena, &call->result, &why);
        if (course.is_leaving) {
            search_restart(p);
            return PLACER_CUT;
        }
        search->passed = course.passed;
        search->pieces -= course.is_ordering;
        call->found = course.found;
        search->is_preempting |= ask->phase == HIVED_PREEMPTING && course.is_cut;
        search->is_filtered |= ask->phase == HIVED_PREEMPTING;
        code = course.is_cut ? PLACER_CUT : call_end(p, call, before, code, &why);
    } else {
        search->passed += call->combo == search->combo ? call->passed : 0;
        code = call->code;
    }
    if (ask->phase == HIVED_FILTERING && attempt->scope_kind == SCOPE_WHOLE)
        part->found = call->found;
    *result = call->result;
    return code < 0 ? err_fail(err, code, call->err->path, "%s", call->err->text) : code;
}

int placer_part_schedule(struct attempt *attempt, struct type_part *part, enum hived_phase phase,
                         struct err *err)
{
    assert(part->leaf_type);
    struct hived_result result;
    struct placer_hived *p = attempt->p;
    part->request.uses_suggested = attempt->scope != NULL;
    const struct hived_ask ask = {.request = &part->request,
                                  .pod = attempt->request->group,
                                  .phase = phase,
                                  .scope = attempt->scope,
                                  .now_ms = attempt->request->now_ms,
                                  .displaced_max = attempt->request->slice ? p->search.leaves : 0};
    int code = attempt->is_in_pieces ? piece_schedule(attempt, part, &ask, &result, err)
                                     : hived_schedule(p->hived, &ask, &p->arena, &result, err);
    if (code)
        return code;
    attempt->is_too_much = result.is_too_much;
    if (attempt->is_too_much)
        return PLACER_CUT;
    part->kind = result.kind;
    part->placement = result.placement;
    part->victims = result.victims;
    part->victim_count = result.victim_count;
    part->overtaken = result.overtaken;
    part->is_urgent = result.is_urgent;
    part->reason = result.reason;
    part->topic = result.topic;
    part->is_never = result.is_never;
    return 0;
}

/* The worst of the parts: a wait of one is a wait of all. *failed: the first that is not bound. */
static int decision_schedule(struct attempt *attempt, struct decision *decision,
                             enum hived_phase phase, enum hived_kind *kind,
                             const struct type_part **failed, struct err *err)
{
    assert(decision->part_count > 0);
    *kind = HIVED_BIND;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        struct type_part *part = &decision->parts[i];
        int code = placer_part_schedule(attempt, part, phase, err);
        if (code || part->kind == HIVED_WAIT) {
            *failed = part;
            *kind = HIVED_WAIT;
            return code;
        }
        if (part->kind == HIVED_PREEMPT && *kind == HIVED_BIND)
            *failed = part;
        if (part->kind == HIVED_PREEMPT)
            *kind = HIVED_PREEMPT;
    }
    return 0;
}

/* Slots that lie side by side are mostly on nodes that were told one after the other: to look up
 * each of 10,000 names would be a long step. */
static void slot_node_find(const struct placer_hived *p, const char *name, struct slot_names *names)
{
    const uint32_t guess = names->at + names->step;
    if (guess < p->nodes.count && !strcmp(p->nodes.items[guess].facts.name, name)) {
        names->at = guess;
        return;
    }
    const uint32_t at = text_map_get(&p->node_index, text_of(name));
    assert(at != MAP_NONE);
    names->step = at < names->at ? UINT32_MAX : 1; /* minus one, modulo 2^32 */
    names->at = at;
}

static void slot_names_find(const struct placer_hived *p, const struct hived_slot *slot,
                            struct slot_names *names)
{
    const char *preassigned = slot->preassigned[0];
    if (names->node != slot->node)
        slot_node_find(p, slot->node, names);
    names->node = slot->node;
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
    const struct node_id node = {p->nodes.items[names->at].id};
    *slot = (struct placement_slot){.node = node, .cell_level = names->level, .gpus = gpus};
    for (uint32_t i = 0; part->wants_gpu[at] && i < from->leaf_count; i++)
        for (uint32_t k = 0; k < part->gpu_per_leaf; k++) {
            assert(slot->gpu_count < PLACEMENT_GPUS_MAX);
            gpus[slot->gpu_count++] = (uint16_t)(from->indices[i] * part->gpu_per_leaf + k);
        }
}

struct placement_slot *placer_slots_copy(const struct placement_slot *from, size_t count,
                                         struct arena *arena)
{
    size_t gpu_count = 0;
    for (size_t i = 0; i < count; i++)
        gpu_count += from[i].gpu_count;
    uint16_t *gpus = ARENA_ARRAY(arena, uint16_t, gpu_count + 1);
    struct placement_slot *slots = ARENA_ARRAY(arena, struct placement_slot, count);
    for (size_t i = 0; i < count; i++) {
        slots[i] = from[i];
        slots[i].gpus = memcpy(gpus, from[i].gpus, from[i].gpu_count * sizeof *gpus);
        gpus += slots[i].gpu_count;
    }
    return slots;
}

struct placement_slot *placer_decided_slots(const struct placer_hived *p, struct arena *arena)
{
    assert(p->decided);
    return placer_slots_copy(p->decided_slots, p->decided_count, arena);
}

/* The caller's arena may be gone when they are committed: he gets slots of his own. Of a search in
 * pieces they take their cells first. */
static int decided_answer(const struct attempt *attempt, struct placement_result *result,
                          struct err *err)
{
    struct placer_hived *p = attempt->p;
    const int code = p->search.group ? placer_take_some(p, attempt->request->now_ms, err) : 0;
    if (code)
        return code;
    result->kind = PLACEMENT_BIND;
    result->slots = placer_decided_slots(p, attempt->arena);
    result->slot_count = p->decided_count;
    return 0;
}

static size_t part_gpus(const struct type_part *part)
{
    size_t count = 0;
    for (uint32_t i = 0; i < part->placement.slot_count; i++)
        if (part->wants_gpu[i])
            count += (size_t)part->placement.slots[i].leaf_count * part->gpu_per_leaf;
    return count;
}

enum { LEAVES_WRITTEN = 4 }; /* as long as it takes to reserve one, so many are written */

static void keeping_begin(struct placer_hived *p, const struct decision *decision)
{
    size_t count = 0, gpu_count = 0;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        count += decision->parts[i].placement.slot_count;
        gpu_count += part_gpus(&decision->parts[i]);
    }
    p->search.keeping.gpus = ARENA_ARRAY(&p->arena, uint16_t, gpu_count + 1);
    p->search.keeping.slots = ARENA_ARRAY(&p->arena, struct placement_slot, count);
    p->decided_count = count;
}

/* So much more of the slots. True: all are written. */
static bool keeping_go_on(struct placer_hived *p, const struct decision *decision, uint64_t leaves)
{
    struct placer_search *search = &p->search;
    for (uint64_t done = 0; search->keeping.part < decision->part_count;) {
        const struct type_part *part = &decision->parts[search->keeping.part];
        if (search->keeping.slot == part->placement.slot_count) {
            search->keeping.part++;
            search->keeping.slot = 0;
            continue;
        }
        if (done >= leaves)
            return false;
        const uint32_t at = search->keeping.slot++;
        struct placement_slot *slot = &search->keeping.slots[part->slots[at]];
        slot_fill(p, part, at, &search->keeping.names, search->keeping.gpus, slot);
        search->keeping.gpus += slot->gpu_count;
        done += part->placement.slots[at].leaf_count;
    }
    return true;
}

/* What is decided, as the core will know it; in pieces, where the search is. */
static int decision_keep(struct attempt *attempt, const struct decision *decision)
{
    assert(decision->part_count > 0);
    struct placer_hived *p = attempt->p;
    struct placer_search *search = &p->search;
    const uint64_t leaves =
        attempt->is_in_pieces ? (uint64_t)search->leaves * LEAVES_WRITTEN : UINT64_MAX;
    if (!search->keeping.slots)
        keeping_begin(p, decision);
    search->passed += search->keeping.pieces;
    while (!keeping_go_on(p, decision, leaves)) {
        search->keeping.pieces++;
        if (search_piece_end(p))
            return PLACER_CUT;
    }
    p->decided_slots = search->keeping.slots;
    p->decided = arena_copy(&p->arena, text_of(attempt->request->group));
    p->decision = *decision;
    p->decision.scope = attempt->request->engine ? attempt->scope : NULL;
    return 0;
}

static int result_bind(struct attempt *attempt, const struct decision *decision,
                       struct placement_result *result, struct err *err)
{
    const int code = decision_keep(attempt, decision);
    if (code)
        return code;
    if (attempt->is_in_pieces && search_piece_end(attempt->p))
        return PLACER_CUT;
    return decided_answer(attempt, result, err);
}

static void naming_begin(struct attempt *attempt, const struct decision *decision)
{
    struct placer_hived *p = attempt->p;
    struct arena *arena = attempt->is_in_pieces ? &p->arena : attempt->arena;
    size_t room = 1;
    for (uint32_t i = 0; i < decision->part_count; i++)
        room += decision->parts[i].victim_count;
    p->search.naming.victims = ARENA_ARRAY(arena, const char *, room);
    p->search.naming.listing = ++p->listings;
}

/* Each of the core's groups is named once: a group of HiveD may be a part of one. */
static void victim_name(struct attempt *attempt, const char *name)
{
    struct placer_hived *p = attempt->p;
    struct placer_search *search = &p->search;
    const uint32_t at = text_map_get(&p->held_index, text_of(name));
    struct held *held = at == MAP_NONE ? NULL : &p->helds.items[at];
    if (held && held->listing == search->naming.listing)
        return;
    if (held)
        held->listing = search->naming.listing;
    search->naming.victims[search->naming.count++] = arena_copy(
        attempt->is_in_pieces ? &p->arena : attempt->arena, text_of(held ? held->name : name));
}

/* So many more of them. True: all are named. */
static bool naming_go_on(struct attempt *attempt, const struct decision *decision, uint32_t victims)
{
    struct placer_search *search = &attempt->p->search;
    search->naming.first = search->naming.count;
    for (; search->naming.part < decision->part_count; search->naming.part++) {
        const struct type_part *part = &decision->parts[search->naming.part];
        const char *last = NULL; /* pods of one group stand together */
        for (; search->naming.next < part->victim_count; search->naming.next++) {
            const char *name = part->victims[search->naming.next].group;
            if (name == last)
                continue;
            if (!victims--)
                return false;
            victim_name(attempt, name);
            last = name;
        }
        search->naming.next = 0;
    }
    return true;
}

static int result_preempt(struct attempt *attempt, const struct decision *decision,
                          struct placement_result *result)
{
    assert(decision->part_count > 0);
    struct placer_search *search = &attempt->p->search;
    const uint32_t most = attempt->is_in_pieces ? attempt->request->slice : UINT32_MAX;
    uint32_t again = 0; /* pieces that the original of this copy has done */
    if (!search->naming.listing) {
        naming_begin(attempt, decision);
        again = search->naming.pieces;
    }
    bool is_whole = naming_go_on(attempt, decision, most);
    while (!is_whole && again-- > 0)
        is_whole = naming_go_on(attempt, decision, most);
    result->victims = search->naming.victims;
    result->victim_count = search->naming.count;
    result->victim_first = search->naming.first;
    if (is_whole) {
        result->kind = PLACEMENT_PREEMPT;
        return 0;
    }
    search->naming.pieces++;
    return PLACER_CUT;
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
    const struct type_part *failed;
    return decision_schedule(attempt, decision, HIVED_PREEMPTING, kind, &failed, err);
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

enum { TOPIC_NO_NODE = 1, TOPIC_NO_CELLS }; /* of the reasons that HiveD has no part in */

struct combos_outcome { /* over all combinations */
    struct decision bind, preempt;
    bool has_bind, has_preempt, has_wait, is_never;
    bool is_any_good; /* one that the virtual cluster can have */
    bool lacks_cpus;  /* CPU cells are what it waits for, and GPU cells might do */
    bool is_endless;  /* there are more than were tried, … */
    uint32_t tries;   /* … which are so many */
    const char *reason;
    uint64_t topic;
};

/* How far they have been tried, on some of the nodes. */
struct combos_course {
    struct combos_outcome outcome; /* so far */
    struct err last;
    uint32_t tries, work;             /* in all, … */
    uint32_t piece_tries, piece_work; /* … and since the last one that was the end of a piece */
    uint32_t next_work;               /* of the next one */
    uint32_t passed;                  /* pieces of the search, when that began */
    uint32_t *choice;                 /* of the split, for that one; NULL: none was tried */
    bool *blamed;
    bool is_over;
};

static void combo_waits(const struct split *split, const struct type_part *part,
                        struct combos_outcome *outcome)
{
    if (!outcome->has_wait || (outcome->is_never && !part->is_never)) {
        outcome->reason = part->reason;
        outcome->topic = part->topic;
        outcome->lacks_cpus = !part->gpu_per_leaf && split->has_others && !split->takes_others;
    }
    outcome->is_never &= part->is_never;
    outcome->has_wait = true;
}

/* The one that it is the turn of. *failed: the part that is not bound; NULL: that is not known. A
 * preemption under way stays with `own_type`, of its first part. */
static int combo_try(struct attempt *attempt, const struct split *split, const char *own_type,
                     struct combos_course *course, const struct type_part **failed)
{
    const enum hived_phase phase = attempt->request->is_check ? HIVED_CHECKING : HIVED_FILTERING;
    struct combos_outcome *outcome = &course->outcome;
    struct decision decision;
    enum hived_kind kind;
    *failed = NULL;
    const bool is_made = placer_decision_make(split, &decision);
    course->next_work = decision.part_count * (uint32_t)attempt->request->member_count;
    if (!is_made) {
        *failed = decision.part_count ? &decision.parts[decision.part_count - 1] : NULL;
        return 0;
    }
    *failed = &decision.parts[0];
    if (own_type && strcmp(decision.parts[0].leaf_type, own_type) != 0)
        return 0;
    const int code = decision_schedule(attempt, &decision, phase, &kind, failed, &course->last);
    const struct type_part *part = *failed;
    if (decision.is_confined) /* a part might do beside others */
        *failed = NULL;
    if (code) /* ERR_INVALID: this virtual cluster owns none of the type */
        return code == ERR_INVALID ? 0 : code;
    if (!decision_is_whole(&decision)) {
        *failed = NULL;
        return 0;
    }
    outcome->is_any_good = true;
    if (kind == HIVED_WAIT) {
        combo_waits(split, part, outcome);
        return 0;
    }
    if (kind == HIVED_PREEMPT && outcome->has_preempt)
        return 0;
    placer_decision_order(split, &decision);
    outcome->has_bind = kind == HIVED_BIND;
    outcome->has_preempt |= kind == HIVED_PREEMPT;
    *(kind == HIVED_BIND ? &outcome->bind : &outcome->preempt) = decision;
    return 0;
}

/* More of them are for the next piece. */
static bool combos_are_cut(struct attempt *attempt, struct combos_course *course)
{
    if (course->piece_tries < COMBOS_IN_PIECE && course->piece_work < COMBOS_WORK_IN_PIECE)
        return false;
    course->piece_tries = course->piece_work = 0;
    if (!attempt->is_in_pieces) {
        attempt->is_too_much = attempt->request->slice && !attempt->request->is_check;
        return attempt->is_too_much;
    }
    const bool is_cut = search_piece_end(attempt->p);
    course->passed = attempt->p->search.passed;
    return is_cut;
}

/* One after the other, until all parts of one are bound, or the piece ends. */
static int combos_go_on(struct attempt *attempt, struct split *split, uint32_t first,
                        struct combos_course *course)
{
    struct placer_search *search = &attempt->p->search;
    struct hived_group_view view;
    const bool is_known = !attempt->request->is_check &&
                          hived_group_find(attempt->p->hived, attempt->request->group, &view);
    const struct type_part *failed;
    do {
        if (combos_are_cut(attempt, course))
            return PLACER_CUT;
        course->outcome.is_endless = course->tries == COMBOS_MAX || course->work >= COMBOS_WORK_MAX;
        if (course->outcome.is_endless)
            break;
        search->combo = first + course->tries;
        const int code =
            combo_try(attempt, split, is_known ? view.leaf_type : NULL, course, &failed);
        if (code)
            return code;
        course->tries++;
        course->work += course->next_work;
        course->piece_tries++;
        course->piece_work += course->next_work;
        course->passed = search->passed;
    } while (!course->outcome.has_bind && placer_split_next(split, failed));
    return 0;
}

enum { COURSES = 4 }; /* on all nodes or without those to avoid, with the own types or all */

/* It goes on where the last piece was cut; or it begins. */
static struct combos_course *course_of(struct attempt *attempt, struct split *split, uint32_t at)
{
    assert(at < COURSES);
    struct arena *arena = &attempt->p->arena;
    struct placer_search *search = &attempt->p->search;
    struct combos_course *course;
    if (!attempt->is_in_pieces) {
        course = ARENA_NEW(arena, struct combos_course);
    } else {
        if (!search->courses)
            search->courses = ARENA_ARRAY(arena, struct combos_course, COURSES);
        course = &search->courses[at];
    }
    if (course->choice) {
        split->choice = course->choice;
        split->blamed = course->blamed;
        search->passed = course->passed;
        return course;
    }
    placer_split_begin(split);
    *course = (struct combos_course){.outcome = {.is_never = true},
                                     .passed = search->passed,
                                     .choice = split->choice,
                                     .blamed = split->blamed};
    return course;
}

static int combos_try(struct attempt *attempt, struct split *split, struct combos_outcome *outcome,
                      struct err *err)
{
    const uint32_t at = 2u * split->takes_others + attempt->scope_kind;
    struct combos_course *course = course_of(attempt, split, at);
    const uint32_t first = at * (COMBOS_MAX + 1);
    if (!course->is_over) {
        const int code = combos_go_on(attempt, split, first, course);
        if (code == PLACER_CUT)
            return code;
        if (code)
            return err_fail(err, code, course->last.path, "%s", course->last.text);
        course->is_over = true;
    }
    attempt->p->search.combo = first + COMBOS_MAX; /* what is asked behind them */
    *outcome = course->outcome;
    outcome->tries = course->tries;
    if (outcome->has_bind || outcome->is_any_good)
        return 0;
    const struct err *last = &course->last;
    return last->code ? err_fail(err, last->code, last->path, "%s", last->text)
                      : err_fail(err, ERR_INVALID, "", REASON_TOO_MANY_GPUS, PLACEMENT_GPUS_MAX);
}

static bool is_to_avoid(const struct placement_request *request, uint32_t id)
{
    for (size_t i = 0; i < request->avoid_count; i++)
        if (request->avoid[i].v == id)
            return true;
    return false;
}

/* The nodes of an engine: those to be used. */
static void engine_scope(struct attempt *attempt, struct hived_scope *scope, const char **names)
{
    const struct placer_hived *p = attempt->p;
    const struct placement_request *request = attempt->request;
    const bool avoids = attempt->scope_kind == SCOPE_AVOIDS;
    for (size_t i = 0; i < p->nodes.count; i++) {
        const struct known_node *node = &p->nodes.items[i];
        if (!strcmp(node->facts.engine, request->engine) &&
            !(avoids && is_to_avoid(request, node->id)))
            names[scope->count++] = node->facts.name;
    }
}

/* It lives as long as a decision that was found by it. */
static void scope_set(struct attempt *attempt, enum scope_kind kind)
{
    const struct placer_hived *p = attempt->p;
    const struct placement_request *request = attempt->request;
    attempt->scope_kind = kind;
    attempt->scope = NULL;
    if (!request->engine && kind == SCOPE_WHOLE)
        return;
    struct arena *arena = &attempt->p->arena;
    const size_t room = request->engine ? p->nodes.count : request->avoid_count;
    const char **names = ARENA_ARRAY(arena, const char *, room + 1);
    struct hived_scope *scope = ARENA_NEW(arena, struct hived_scope);
    *scope = (struct hived_scope){.nodes = names, .is_avoid = !request->engine};
    attempt->scope = scope;
    if (request->engine) {
        engine_scope(attempt, scope, names);
        return;
    }
    for (size_t i = 0; i < request->avoid_count; i++) {
        const struct known_node *node = placer_known_node(p, request->avoid[i]);
        if (node)
            names[scope->count++] = node->facts.name;
    }
}

static int outcome_conclude(struct attempt *attempt, struct combos_outcome *outcome,
                            struct placement_result *result, struct err *err)
{
    if (outcome->has_bind)
        return result_bind(attempt, &outcome->bind, result, err);
    if (!outcome->has_preempt) {
        const char *reason = outcome->reason ? outcome->reason : REASON_NO_CELLS;
        if (outcome->is_endless)
            reason = arena_format(attempt->arena, "%s" REASON_WAYS, reason, outcome->tries);
        if (outcome->lacks_cpus)
            reason = arena_format(attempt->arena, "%s" REASON_CPUS, reason);
        result_wait(attempt, reason, outcome->topic, outcome->is_never, result);
        return 0;
    }
    if (attempt->request->may_preempt) {
        enum hived_kind kind;
        int code = preempt_start(attempt, &outcome->preempt, &kind, err);
        if (code)
            return code;
        if (kind == HIVED_BIND) /* the victims had only been in the way of another preemption */
            return result_bind(attempt, &outcome->preempt, result, err);
        if (kind == HIVED_WAIT) {
            const struct type_part *part = waiting_part(&outcome->preempt);
            result_wait(attempt, part->reason, part->topic, part->is_never, result);
            return 0;
        }
    }
    return result_preempt(attempt, &outcome->preempt, result);
}

/* Without the nodes to avoid, where that will do. */
static int request_try(struct attempt *attempt, struct split *split, struct combos_outcome *outcome,
                       struct err *err)
{
    const struct placement_request *request = attempt->request;
    struct hived_group_view view;
    if (request->avoid_count && !request->is_check &&
        !hived_group_find(attempt->p->hived, request->group, &view)) {
        scope_set(attempt, SCOPE_AVOIDS);
        int code = combos_try(attempt, split, outcome, err);
        if (code || outcome->has_bind)
            return code;
    }
    scope_set(attempt, SCOPE_WHOLE);
    return combos_try(attempt, split, outcome, err);
}

static bool is_cluster_known(const struct hived *hived, const char *name)
{
    for (uint32_t i = 0; i < hived_vc_count(hived); i++)
        if (strcmp(hived_vc_name(hived, i), name) == 0)
            return true;
    return false;
}

/* To be committed before anything else is asked. */
static bool decision_is_urgent(const struct placer_hived *p, const struct decision *decision)
{
    bool is_urgent = hived_is_pending(p->hived);
    for (uint32_t i = 0; i < decision->part_count; i++)
        is_urgent |= decision->parts[i].is_urgent;
    return is_urgent;
}

/* Found at once, it makes others give back more than a piece: it is searched for again, in pieces,
 * as is one that displaces more. What displaces less is taken at once all the same. */
static bool outcome_is_too_much(const struct attempt *attempt, const struct combos_outcome *outcome)
{
    const struct placer_hived *p = attempt->p;
    const struct decision *decision = outcome->has_bind ? &outcome->bind : &outcome->preempt;
    uint64_t leaves = 0;
    if (attempt->is_in_pieces || !attempt->request->slice)
        return false;
    if (outcome->has_bind ? decision_is_urgent(p, decision)
                          : !outcome->has_preempt || !attempt->request->may_preempt)
        return false;
    for (uint32_t i = 0; i < decision->part_count; i++)
        leaves += decision->parts[i].overtaken;
    return leaves > p->search.leaves;
}

static int request_place(struct attempt *attempt, struct placement_result *result, struct err *err);

/* From its beginning, in pieces. */
static int request_again(struct attempt *attempt, struct placement_result *result, struct err *err)
{
    assert(!attempt->is_in_pieces);
    attempt->is_in_pieces = true;
    attempt->is_too_much = false;
    return request_place(attempt, result, err);
}

/* Made once for a search. A check may come in the midst of one, for something else. */
static int split_of(const struct attempt *attempt, struct split **split, struct err *err)
{
    struct placer_hived *p = attempt->p;
    struct split *kept = attempt->request->is_check ? NULL : p->search.split;
    if (kept) {
        placer_split_again(kept, attempt->request);
        *split = kept;
        return 0;
    }
    *split = ARENA_NEW(&p->arena, struct split);
    const int code = placer_split_init(*split, p, attempt->request, &p->arena, err);
    if (!code && !attempt->request->is_check)
        p->search.split = *split;
    return code;
}

static int request_place(struct attempt *attempt, struct placement_result *result, struct err *err)
{
    struct placer_hived *p = attempt->p;
    const struct placement_request *request = attempt->request;
    placer_hived_refresh(p);
    if (!p->hived) {
        result_wait(attempt, "the cells of the nodes are being made", TOPIC_NO_CELLS, false,
                    result);
        return 0;
    }
    if (!hived_leaf_type_count(p->hived)) {
        result_wait(attempt, "no node has appeared yet", TOPIC_NO_NODE, false, result);
        return 0;
    }
    struct split *split;
    struct combos_outcome outcome;
    int code = split_of(attempt, &split, err);
    if (code)
        return code;
    struct err first = {0};
    code = request_try(attempt, split, &outcome, &first);
    if (attempt->is_too_much)
        return request_again(attempt, result, err);
    bool is_hopeless = code == ERR_INVALID ||
                       (!code && !outcome.has_bind && !outcome.has_preempt && outcome.is_never);
    if (is_hopeless && split->has_others) {
        split->takes_others = true;
        code = request_try(attempt, split, &outcome, err);
        if (attempt->is_too_much)
            return request_again(attempt, result, err);
    } else if (code) {
        return err_fail(err, code, first.path, "%s", first.text);
    }
    if (code == ERR_INVALID && !is_cluster_known(p->hived, request->virtual_cluster))
        return err_fail(err, ERR_NOT_FOUND, "virtualCluster", REASON_NO_CLUSTER,
                        request->virtual_cluster);
    if (code || request->is_check)
        return code;
    if (!outcome_is_too_much(attempt, &outcome))
        return outcome_conclude(attempt, &outcome, result, err);
    return request_again(attempt, result, err);
}

/* Cells that do not say what the nodes offer now refuse nobody, unless there is no such virtual
 * cluster. */
static int request_judge(struct attempt *attempt, struct placement_result *result, struct err *err)
{
    const struct placer_hived *p = attempt->p;
    struct err why = {0};
    const int code = request_place(attempt, result, &why);
    if (!code)
        return 0;
    if (!p->is_stale || !is_cluster_known(p->hived, attempt->request->virtual_cluster))
        return err_fail(err, code, why.path, "%s", why.text);
    result_wait(attempt, REASON_CELLS_TO_MAKE, TOPIC_NO_CELLS, false, result);
    return 0;
}

/* A search may have been cut: it needs what it has in the placer's arena. */
static int request_check(struct attempt *attempt, struct placement_result *result, struct err *err)
{
    struct placer_hived *p = attempt->p;
    const struct arena kept = p->arena;
    assert(attempt->request->is_check);
    arena_init(&p->arena);
    const int code = request_judge(attempt, result, err);
    arena_release(&p->arena);
    p->arena = kept;
    return code;
}

/* From its beginning; or it has been cut before. */
static bool is_in_pieces(const struct placer_hived *p, const struct placement_request *request)
{
    uint64_t tasks = 0;
    for (size_t i = 0; i < request->member_count; i++)
        tasks += request->members[i].count;
    return request->slice && (p->search.group || tasks > request->slice);
}

int placer_hived_place(struct placer *placer, const struct placement_request *request,
                       struct arena *arena, struct placement_result *result, struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    struct placement_request asked = *request;
    struct attempt attempt = {.p = p, .request = &asked, .arena = arena};
    *result = (struct placement_result){0};
    id_map_release(&p->expected);
    if (request->is_check)
        asked.engine = NULL;
    if (request->is_check && p->search.group)
        return request_check(&attempt, result, err);
    if (request->is_check) {
        p->decided = NULL;
        arena_clear(&p->arena);
        return request_judge(&attempt, result, err);
    }
    making_asked(p);
    search_settle(p, &asked);
    attempt.is_in_pieces = is_in_pieces(p, &asked);
    int code = placer_leaving_go_on(p, attempt.is_in_pieces ? asked.slice : 0) ? 0 : PLACER_CUT;
    if (!code) {
        search_begin(p, &asked);
        code = p->search.group && p->decided ? decided_answer(&attempt, result, err)
                                             : request_place(&attempt, result, err);
        if (code == PLACER_CUT)
            search_keep(p, &asked);
    }
    if (code == PLACER_CUT) {
        result->kind = PLACEMENT_WAIT;
        result->reason = "";
        result->is_cut = true;
        return 0;
    }
    if (code || !p->decided)
        search_close(p, code == 0);
    return code;
}
