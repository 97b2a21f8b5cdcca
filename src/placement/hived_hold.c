/* hived_hold.c — commits places to HiveD and gives them back: see hived_parts.h, and "A group at
 * the placer" in docs/rfc/0011-waiting-jobs.md. */
#include "base/err.h"
#include "base/memory.h"
#include "placement/hived_parts.h"
#include <assert.h>
#include <string.h>

void placer_held_add(struct placer_hived *p, const char *name, const struct decision *decision,
                     size_t slot_count)
{
    assert(name && decision->part_count > 0 && slot_count > 0);
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
    held->tasks_left = mem_zero(decision->part_count, sizeof *held->tasks_left);
    held->places = mem_alloc(mem_size(slot_count + 1, sizeof *held->places));
    for (size_t i = 0; i < slot_count; i++)
        held->places[i] = (struct held_slot){UINT32_MAX, 0};
    for (uint32_t i = 0; i < decision->part_count; i++) {
        const struct type_part *part = &decision->parts[i];
        held->parts[i] = mem_copy(part->request.group);
        if (strcmp(held->parts[i], held->name))
            text_map_set(&p->held_index, text_of(held->parts[i]), at);
        for (uint32_t k = 0; k < part->placement.slot_count; k++)
            held->places[part->slots[k]] = (struct held_slot){i, k};
        held->tasks_left[i] = part->placement.slot_count;
        held->taken_count += part->placement.slot_count;
    }
    text_map_set(&p->held_index, text_of(held->name), at);
}

void placer_held_drop(struct placer_hived *p, uint32_t at)
{
    assert(at < p->helds.count && p->helds.items[at].name);
    struct held *held = &p->helds.items[at];
    text_map_remove(&p->held_index, text_of(held->name));
    for (uint32_t i = 0; i < held->part_count; i++) {
        if (strcmp(held->parts[i], held->name))
            text_map_remove(&p->held_index, text_of(held->parts[i]));
        mem_free(held->parts[i]);
    }
    mem_free(held->parts);
    mem_free(held->tasks_left);
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
            (a[i].gpu_count && memcmp(a[i].gpus, b[i].gpus, a[i].gpu_count * sizeof *a[i].gpus)))
            return false;
    return true;
}

/* With several parts, asking for one has made HiveD forget the other: it is asked again. */
static int decided_commit(struct placer_hived *p, int64_t now_ms, struct err *err)
{
    assert(p->decided && p->decision.part_count > 0);
    struct decision *decision = &p->decision;
    struct attempt attempt = {
        .p = p,
        .request = &(struct placement_request){.group = p->decided, .now_ms = now_ms},
        .scope = decision->scope};
    for (uint32_t i = 0; i < decision->part_count; i++) {
        struct type_part *part = &decision->parts[i];
        struct hived_group_view view;
        bool is_reserved = hived_group_find(p->hived, part->request.group, &view);
        int code = 0;
        if (decision->part_count > 1 && !is_reserved &&
            (!part->request.uses_suggested || decision->scope))
            code = placer_part_schedule(&attempt, part, HIVED_FILTERING, err);
        if (!code)
            code = hived_commit_gang(p->hived, &part->request, &part->placement, now_ms, err);
        for (uint32_t k = 0; code && k <= i; k++)
            hived_group_end(p->hived, decision->parts[k].request.group);
        if (code)
            return code;
    }
    return 0;
}

/* --- the same in pieces: docs/rfc/0016-gangs-in-steps.md, "One large part" --- */

/* False: it is no group, or one that preempts. */
static bool is_allocated(struct placer_hived *p, const char *gang, bool *is_preempting)
{
    struct hived_group_view view;
    const bool is_known = hived_group_find(p->hived, gang, &view);
    *is_preempting = is_known && view.state == HIVED_GROUP_PREEMPTING;
    return is_known && !*is_preempting;
}

static void taking_part_set(const struct type_part *part, bool is_preempting,
                            struct taking_part *taking)
{
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < part->placement.slot_count; i++)
        leaves += part->placement.slots[i].leaf_count;
    *taking = (struct taking_part){.gang = mem_copy(part->request.group),
                                   .beside = part->overtaken,
                                   .was_preempting = is_preempting};
    taking->all = leaves + part->placement.slot_count + taking->beside;
}

/* What displaces lazy groups must be committed before anything else is asked: of one group that is
 * so from its first piece on, after which they do not get back what they lost. */
static bool taking_begin(struct placer_hived *p)
{
    const struct decision *decision = &p->decision;
    bool is_preempting;
    if (hived_is_pending(p->hived) &&
        (decision->part_count > 1 || p->search.may_be_refused || !hived_is_displacing(p->hived)))
        return false;
    for (uint32_t i = 0; i < decision->part_count; i++)
        if ((decision->part_count > 1 && decision->parts[i].is_urgent) ||
            is_allocated(p, decision->parts[i].request.group, &is_preempting))
            return false;
    p->search.taking.parts = mem_zero(decision->part_count, sizeof *p->search.taking.parts);
    p->search.taking.count = decision->part_count;
    for (uint32_t i = 0; i < decision->part_count; i++) {
        is_allocated(p, decision->parts[i].request.group, &is_preempting);
        taking_part_set(&decision->parts[i], is_preempting, &p->search.taking.parts[i]);
    }
    return true;
}

/* Of the part whose turn it is. */
static int take_leaves(struct placer_hived *p, uint32_t leaves, int64_t now_ms, struct err *err)
{
    bool *is_whole = &p->search.taking.is_whole;
    if (*is_whole)
        return 0; /* of a decision without parts, too */
    const struct type_part *part = &p->decision.parts[p->search.taking.part];
    struct taking_part *taking = &p->search.taking.parts[p->search.taking.part];
    const uint64_t before = hived_work_beside(p->hived);
    const int code = hived_commit_some(p->hived, &part->request, &part->placement, now_ms, leaves,
                                       is_whole, err);
    const uint32_t work = (uint32_t)(hived_work_beside(p->hived) - before);
    taking->beside += work;
    taking->all += work;
    assert(code || *is_whole || leaves < UINT32_MAX);
    return code;
}

static void taking_next(struct placer_search *search)
{
    assert(search->taking.is_whole && search->taking.part < search->taking.count);
    search->taking.part++;
    search->taking.has_begun = false;
    search->taking.done = 0;
    search->taking.is_whole = false;
}

int placer_take_some(struct placer_hived *p, int64_t now_ms, struct err *err)
{
    struct placer_search *search = &p->search;
    assert(search->group && p->decided);
    if (!search->taking.parts && !taking_begin(p))
        return 0;
    if (search->taking.part == search->taking.count)
        return 0;
    const struct taking_part *part = &search->taking.parts[search->taking.part];
    const uint32_t least = (part->all - part->beside) / TAKINGS_MAX + 1,
                   most = search->leaves > least ? search->leaves : least;
    if (search->taking.has_begun) /* else HiveD makes the group */
        search->taking.done += most;
    search->taking.has_begun = true;
    const int code = take_leaves(p, most, now_ms, err);
    if (code)
        return code;
    /* how much there is to be done is known when it is: a piece may have found more of it */
    if (search->taking.done >= part->all && search->taking.is_whole)
        taking_next(search);
    return PLACER_CUT;
}

int placer_take_rest(struct placer_hived *p, int64_t now_ms, struct err *err)
{
    struct placer_search *search = &p->search;
    assert(search->taking.parts);
    while (search->taking.part < search->taking.count) {
        const int code = take_leaves(p, UINT32_MAX, now_ms, err);
        if (code)
            return code;
        taking_next(search);
    }
    return 0;
}

/* Of those that have begun to take their cells, the last one first: it may not have all. */
static uint32_t taking_begun(const struct placer_search *search)
{
    return search->taking.part + search->taking.has_begun;
}

void placer_taking_reserve(struct placer_hived *p, const struct placer_search *search)
{
    for (uint32_t i = taking_begun(search); i-- > 0;)
        if (search->taking.parts[i].was_preempting)
            placer_gang_reserve(p, search->taking.parts[i].gang, search->group);
}

void placer_taking_end(struct placer_hived *p, const struct placer_search *search)
{
    for (uint32_t i = taking_begun(search); i-- > 0;)
        if (!search->taking.parts[i].was_preempting)
            placer_gang_end(p, search->taking.parts[i].gang);
}

int placer_hived_take(struct placer *placer, const struct placement_request *request,
                      const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                      struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    uint32_t at;
    const bool is_cut = request->slice > 0;
    if (is_cut && p->search.giving.is_on && !strcmp(p->search.group, request->group) &&
        p->search.giving.slot_count == slot_count && p->search.giving.is_recovery == is_recovery)
        return placer_giving_go_on(p, request, slots, slot_count, err);
    const bool is_decided = p->decided && !strcmp(p->decided, request->group) &&
                            p->decided_count == slot_count &&
                            slots_equal(p->decided_slots, slots, slot_count);
    p->decided = is_decided ? p->decided : NULL;
    if (!is_decided)
        search_close(p, false);
    if (!placer_leaving_go_on(p, is_cut ? request->slice : 0))
        return PLACER_CUT;
    placer_hived_refresh(p);
    assert(p->hived);
    if (held_find(p, request->group, &at))
        return err_fail(err, ERR_CONFLICT, "", "%s is placed already", request->group);
    if (!is_decided && is_cut) {
        search_begin_given(p, request, slot_count, is_recovery);
        return placer_giving_go_on(p, request, slots, slot_count, err);
    }
    if (!is_decided)
        return placer_given_commit(p, request, slots, slot_count, is_recovery, err);
    int code = p->search.taking.parts ? placer_take_rest(p, request->now_ms, err)
                                      : decided_commit(p, request->now_ms, err);
    if (!code)
        placer_held_add(p, request->group, &p->decision, slot_count);
    p->decided = NULL;
    search_close(p, code == 0);
    return code;
}

/* --- ends --- */

void placer_slot_end(struct placer_hived *p, const char *group, size_t slot)
{
    uint32_t at;
    struct held *held = held_find(p, group, &at);
    p->decided = NULL;
    if (!held || slot >= held->slot_count || held->places[slot].part == UINT32_MAX)
        return;
    const struct held_slot place = held->places[slot];
    held->places[slot].part = UINT32_MAX;
    assert(held->taken_count > 0 && held->tasks_left[place.part] > 0);
    if (--held->tasks_left[place.part] > 0)
        hived_pod_end(p->hived, held->parts[place.part], place.slot);
    else
        placer_gang_end(p, held->parts[place.part]);
    if (--held->taken_count == 0)
        placer_held_drop(p, at);
}

void placer_hived_slot_over(struct placer *placer, const char *group, size_t slot)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    if (!search_defers(p, TOLD_SLOT_OVER, group, slot))
        placer_slot_end(p, group, slot);
}

void placer_group_end(struct placer_hived *p, const char *group)
{
    uint32_t at;
    struct held *held = held_find(p, group, &at);
    p->decided = NULL;
    if (!held)
        return;
    for (uint32_t i = 0; i < held->part_count; i++)
        if (held->tasks_left[i])
            placer_gang_end(p, held->parts[i]);
    placer_held_drop(p, at);
}

void placer_hived_group_over(struct placer *placer, const char *group)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    if (!search_defers(p, TOLD_GROUP_OVER, group, 0))
        placer_group_end(p, group);
}

/* A preempting gang's parts are not held yet: they carry its name, or its name and a leaf type. */
void placer_hived_cancel(struct placer *placer, const char *group)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    if (!search_defers(p, TOLD_CANCEL, group, 0))
        placer_group_cancel(p, group);
}

void placer_group_cancel(struct placer_hived *p, const char *group)
{
    p->decided = NULL;
    if (!p->hived)
        return; /* nobody has asked it anything yet */
    cleanup_arena struct arena arena;
    arena_init(&arena);
    placer_gang_cancel(p, group, group);
    for (uint32_t i = 0; i < hived_leaf_type_count(p->hived); i++)
        placer_gang_cancel(
            p, arena_format(&arena, "%s#%s", group, hived_leaf_type_name(p->hived, i)), group);
}

uint32_t placer_held_copy(struct placer_hived *p, const struct placer_hived *from, uint32_t at)
{
    assert(p != from && p->helds.count == at && at < from->helds.count);
    const struct held *old = &from->helds.items[at];
    struct held *held = ARRAY_ADD(&p->helds);
    if (!old->name) {
        *ARRAY_ADD(&p->gaps) = at;
        return 0;
    }
    *held = *old;
    held->name = mem_copy(old->name);
    held->parts = mem_zero(old->part_count, sizeof *held->parts);
    held->tasks_left = mem_copy_array(old->tasks_left, old->part_count, sizeof *held->tasks_left);
    held->places = mem_alloc(mem_size(old->slot_count + 1u, sizeof *held->places));
    memcpy(held->places, old->places, old->slot_count * sizeof *held->places);
    for (uint32_t k = 0; k < old->part_count; k++) {
        held->parts[k] = mem_copy(old->parts[k]);
        if (strcmp(held->parts[k], held->name))
            text_map_set(&p->held_index, text_of(held->parts[k]), at);
    }
    text_map_set(&p->held_index, text_of(held->name), at);
    return (uint32_t)old->slot_count;
}
