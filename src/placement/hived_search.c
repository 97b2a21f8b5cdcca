/* hived_search.c — a search that is cut into pieces: see hived_parts.h, and "One large part" in
 * docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/hived_parts.h"

enum {
    CALLS_FIRST = 16,     /* of one search: so many are remembered at first */
    LEAVES_PER_SLICE = 3, /* to reserve a leaf costs less than a task's whole placement */
};

/* How much is done in a piece. */
static void piece_set(struct placer_search *search, const struct placement_request *request)
{
    assert(request->slice || !search->giving.is_on);
    search->leaves = request->slice < UINT32_MAX / LEAVES_PER_SLICE
                         ? request->slice * LEAVES_PER_SLICE
                         : UINT32_MAX;
    search->may_be_refused = request->may_be_refused;
    search->now_ms = request->now_ms;
}

static bool search_is_for(const struct placer_hived *p, const struct placement_request *request)
{
    const struct placer_search *search = &p->search;
    return search->group && request->slice && !search->giving.is_on &&
           !strcmp(search->group, request->group);
}

void search_settle(struct placer_hived *p, const struct placement_request *request)
{
    if (!search_is_for(p, request))
        search_close(p, false);
}

void search_begin(struct placer_hived *p, struct placement_request *request)
{
    struct placer_search *search = &p->search;
    assert(!request->is_check && placer_is_tidy(p));
    if (!search_is_for(p, request)) {
        assert(!search->group);
        p->decided = NULL;
        arena_clear(&p->arena);
        *search = (struct placer_search){0};
    } else {
        request->avoid = search->avoid;
        request->avoid_count = search->avoid_count;
    }
    piece_set(search, request);
    search->pieces++;
    search->passed = search->call_next = 0;
}

void search_keep(struct placer_hived *p, const struct placement_request *request)
{
    struct placer_search *search = &p->search;
    assert(!search->group || !strcmp(search->group, request->group));
    if (search->group)
        return;
    search->group = mem_copy(request->group);
    search->avoid = mem_copy_array(request->avoid, request->avoid_count, sizeof *request->avoid);
    search->avoid_count = request->avoid_count;
}

void search_begin_given(struct placer_hived *p, const struct placement_request *request,
                        size_t slot_count, bool is_recovery)
{
    search_close(p, false);
    p->decided = NULL;
    arena_clear(&p->arena);
    p->search = (struct placer_search){
        .group = mem_copy(request->group),
        .giving = {.is_on = true, .is_recovery = is_recovery, .slot_count = slot_count}};
}

void search_go_on_given(struct placer_hived *p, const struct placement_request *request)
{
    assert(p->search.giving.is_on && !strcmp(p->search.group, request->group));
    piece_set(&p->search, request);
}

static void search_release(struct placer_search *search)
{
    told_release(&search->told, 0);
    for (uint32_t i = 0; i < search->taking.count; i++)
        mem_free(search->taking.parts[i].gang);
    mem_free(search->taking.parts);
    mem_free(search->avoid);
    mem_free(search->group);
}

/* What has not come to its end. */
static void search_undo(struct placer_hived *p, const struct placer_search *search)
{
    placer_taking_reserve(p, search);
    if (search->is_preempting)
        placer_group_cancel(p, search->group);
    placer_taking_end(p, search);
}

void search_close(struct placer_hived *p, bool is_answered)
{
    struct placer_search search = p->search;
    if (!search.group)
        return;
    p->search = (struct placer_search){0};
    p->decided = NULL;
    if (!is_answered && p->hived)
        hived_search_forget(p->hived);
    if (!is_answered)
        search_undo(p, &search);
    placer_owe(p, &search.told);
    search_release(&search);
}

void search_drop(struct placer_hived *p)
{
    search_release(&p->search);
    p->search = (struct placer_search){0};
}

bool search_defers(struct placer_hived *p, enum told_kind kind, const char *group, size_t slot)
{
    if (p->search.group && !strcmp(p->search.group, group))
        search_close(p, false);
    if (!p->search.group && !placer_owes(p) && !placer_is_returning(p))
        return false;
    told_add(p->search.group ? &p->search.told : &p->owed, kind, group, slot);
    return true;
}

bool search_piece_end(struct placer_hived *p)
{
    struct placer_search *search = &p->search;
    const bool is_urgent = hived_is_pending(p->hived) && !hived_is_displacing(p->hived);
    return !is_urgent && ++search->passed == search->pieces;
}

void search_restart(struct placer_hived *p)
{
    struct placer_search *search = &p->search;
    assert(!search->keeping.slots && !search->naming.listing && !search->taking.parts);
    memset(search->calls, 0, search->call_count * sizeof *search->calls);
    search->courses = NULL;
    search->call_count = search->call_next = search->pieces = search->passed = 0;
    search->is_preempting = true;
    search->is_filtered = false;
}

/* Of one group: the combinations of leaf types differ in the members that are on each. */
static bool requests_equal(const struct hived_request *a, const struct hived_request *b)
{
    assert(a->priority == b->priority);
    if (strcmp(a->group, b->group) != 0 || strcmp(a->leaf_type, b->leaf_type) != 0 ||
        a->member_count != b->member_count)
        return false;
    for (uint32_t i = 0; i < a->member_count; i++)
        if (a->members[i].pods != b->members[i].pods ||
            a->members[i].leaves != b->members[i].leaves ||
            strcmp(a->members[i].within_one_cell, b->members[i].within_one_cell) != 0)
            return false;
    return true;
}

/* Room for one more. */
static void calls_reserve(struct placer_hived *p)
{
    struct placer_search *search = &p->search;
    if (search->call_count < search->call_room)
        return;
    const uint32_t room = search->call_room ? 2 * search->call_room : CALLS_FIRST;
    struct search_call *calls = ARENA_ARRAY(&p->arena, struct search_call, room);
    if (search->call_count)
        memcpy(calls, search->calls, search->call_count * sizeof *calls);
    search->calls = calls;
    search->call_room = room;
}

struct search_call *search_call_of(struct placer_hived *p, const struct hived_ask *ask,
                                   enum scope_kind scope)
{
    struct placer_search *search = &p->search;
    for (uint32_t i = 0; i < search->call_count; i++) {
        /* mostly they come in the same order again */
        const uint32_t at = (search->call_next + i) % search->call_count;
        struct search_call *call = &search->calls[at];
        if (call->phase == ask->phase && call->scope == scope &&
            requests_equal(&call->request, ask->request)) {
            search->call_next = at + 1;
            return call;
        }
    }
    calls_reserve(p);
    struct search_call *call = &search->calls[search->call_count++];
    search->call_next = search->call_count;
    call->request = *ask->request;
    call->phase = ask->phase;
    call->scope = scope;
    call->combo = search->combo;
    return call;
}

/* --- a copy of a decision that takes its cells, so that the copy takes them where the original
 * does --- */

/* Most names are the one before. */
struct name_copies {
    struct arena *arena;
    const char *from, *copy;
};

static const char *name_copy(struct name_copies *names, const char *from)
{
    if (from != names->from) {
        names->from = from;
        names->copy = from ? arena_copy(names->arena, text_of(from)) : NULL;
    }
    return names->copy;
}

static void request_copy(struct name_copies *names, struct hived_request *request)
{
    struct hived_member *members =
        ARENA_ARRAY(names->arena, struct hived_member, request->member_count);
    for (uint32_t i = 0; i < request->member_count; i++) {
        members[i] = request->members[i];
        members[i].within_one_cell = name_copy(names, members[i].within_one_cell);
    }
    request->members = members;
    request->group = name_copy(names, request->group);
    request->virtual_cluster = name_copy(names, request->virtual_cluster);
    request->pinned_cell = name_copy(names, request->pinned_cell);
    request->leaf_type = name_copy(names, request->leaf_type);
    request->within_one_cell = name_copy(names, request->within_one_cell);
}

static const void *numbers_copy(struct arena *arena, const void *from, size_t count, size_t size)
{
    return from ? memcpy(arena_array(arena, count, size), from, count * size) : NULL;
}

static void hived_slot_copy(struct name_copies *nodes, struct name_copies *types,
                            struct hived_slot *slot)
{
    assert(slot);
    struct arena *arena = nodes->arena;
    const uint32_t count = slot->leaf_count;
    slot->node = name_copy(nodes, slot->node);
    slot->hints = numbers_copy(arena, slot->hints, count, sizeof *slot->hints);
    slot->indices = numbers_copy(arena, slot->indices, count, sizeof *slot->indices);
    const char **copies = slot->preassigned ? ARENA_ARRAY(arena, const char *, count) : NULL;
    for (uint32_t i = 0; copies && i < count; i++)
        copies[i] = name_copy(types, slot->preassigned[i]);
    slot->preassigned = copies;
}

/* What a decision needs to be taken: its slots are written already (decided_slots). */
static void decided_part_copy(struct arena *arena, const struct type_part *from,
                              struct type_part *part)
{
    struct name_copies nodes = {.arena = arena}, types = {.arena = arena};
    const uint32_t count = from->placement.slot_count;
    *part = (struct type_part){.request = from->request,
                               .placement = {.slot_count = count},
                               .kind = from->kind,
                               .gpu_per_leaf = from->gpu_per_leaf,
                               .overtaken = from->overtaken,
                               .is_urgent = from->is_urgent};
    request_copy(&types, &part->request);
    part->placement.chain = name_copy(&types, from->placement.chain);
    part->leaf_type = name_copy(&types, from->leaf_type);
    struct hived_slot *slots = ARENA_ARRAY(arena, struct hived_slot, count);
    part->placement.slots = slots;
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = from->placement.slots[i];
        hived_slot_copy(&nodes, &types, &slots[i]);
    }
    part->slots =
        memcpy(ARENA_ARRAY(arena, uint32_t, count), from->slots, count * sizeof *part->slots);
}

static void taking_copy(struct placer_hived *p, const struct placer_hived *from)
{
    const struct placer_search *search = &from->search;
    assert(from->decided && p->hived);
    p->decided = arena_copy(&p->arena, text_of(from->decided));
    p->decided_slots = placer_decided_slots(from, &p->arena);
    p->decided_count = from->decided_count;
    p->decision.part_count = from->decision.part_count;
    p->decision.parts = ARENA_ARRAY(&p->arena, struct type_part, from->decision.part_count);
    for (uint32_t i = 0; i < from->decision.part_count; i++)
        decided_part_copy(&p->arena, &from->decision.parts[i], &p->decision.parts[i]);
    p->search.taking = search->taking;
    p->search.taking.parts =
        mem_copy_array(search->taking.parts, search->taking.count, sizeof *search->taking.parts);
    for (uint32_t i = 0; i < search->taking.count; i++)
        p->search.taking.parts[i].gang = mem_copy(search->taking.parts[i].gang);
}

void search_copy(struct placer_hived *p, const struct placer_hived *from)
{
    assert(p != from && !p->search.group);
    const struct placer_search *search = &from->search;
    if (!search->group)
        return;
    p->search = (struct placer_search){
        .group = mem_copy(search->group),
        .avoid = mem_copy_array(search->avoid, search->avoid_count, sizeof *search->avoid),
        .avoid_count = search->avoid_count,
        .is_preempting = search->is_preempting,
        .is_reserved = search->is_reserved,
        .is_filtered = search->is_filtered,
        .naming = {.pieces = search->naming.pieces},
        .giving = {.is_on = search->giving.is_on,
                   .is_recovery = search->giving.is_recovery,
                   .slot_count = search->giving.slot_count,
                   .pieces = search->giving.pieces},
        .pieces = search->pieces,
        .now_ms = search->now_ms};
    told_copy(&p->search.told, &search->told, 0);
    if (search->taking.parts)
        taking_copy(p, from);
}

void placer_hived_forget(struct placer *placer)
{
    search_close((struct placer_hived *)placer, false);
}
