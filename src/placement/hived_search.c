/* hived_search.c — a search that is cut into pieces: see hived_parts.h, and "One large part" in
 * docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/hived_parts.h"

enum {
    CALLS_MAX = 64,       /* of one search, that are remembered */
    LEAVES_PER_SLICE = 3, /* to reserve a leaf costs less than a task's whole placement */
};

void search_begin(struct placer_hived *p, struct placement_request *request)
{
    struct placer_search *search = &p->search;
    assert(!request->is_check);
    const bool is_same = search->group && request->slice && !strcmp(search->group, request->group);
    if (!is_same) {
        search_close(p, false);
        p->decided = NULL;
        arena_clear(&p->arena);
        *search = (struct placer_search){0};
    } else {
        request->avoid = search->avoid;
        request->avoid_count = search->avoid_count;
    }
    search->leaves = request->slice < UINT32_MAX / LEAVES_PER_SLICE
                         ? request->slice * LEAVES_PER_SLICE
                         : UINT32_MAX;
    search->pieces++;
    search->passed = 0;
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

static void told_apply(struct placer_hived *p, const struct told_later *told)
{
    assert(!p->search.group);
    switch (told->kind) {
    case TOLD_SLOT_OVER:
        placer_hived_slot_over(&p->base, told->group, told->slot);
        break;
    case TOLD_GROUP_OVER:
        placer_hived_group_over(&p->base, told->group);
        break;
    case TOLD_CANCEL:
        placer_hived_cancel(&p->base, told->group);
        break;
    }
}

void search_close(struct placer_hived *p, bool is_answered)
{
    struct placer_search search = p->search;
    if (!search.group)
        return;
    p->search = (struct placer_search){0};
    p->decided = NULL;
    if (search.is_preempting && !is_answered)
        placer_group_cancel(p, search.group);
    for (size_t i = 0; i < search.told.count; i++) {
        told_apply(p, &search.told.items[i]);
        mem_free(search.told.items[i].group);
    }
    ARRAY_FREE(&search.told);
    mem_free(search.avoid);
    mem_free(search.group);
}

bool search_defers(struct placer_hived *p, enum told_kind kind, const char *group, size_t slot)
{
    struct placer_search *search = &p->search;
    if (!search->group)
        return false;
    if (!strcmp(search->group, group)) {
        search_close(p, false);
        return false;
    }
    *ARRAY_ADD(&search->told) = (struct told_later){kind, mem_copy(group), slot};
    return true;
}

bool search_piece_end(struct placer_hived *p)
{
    struct placer_search *search = &p->search;
    return !hived_is_pending(p->hived) && ++search->passed == search->pieces;
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

struct search_call *search_call_of(struct placer_hived *p, const struct hived_ask *ask,
                                   enum scope_kind scope)
{
    struct placer_search *search = &p->search;
    if (!search->calls)
        search->calls = ARENA_ARRAY(&p->arena, struct search_call, CALLS_MAX);
    for (uint32_t i = 0; i < search->call_count; i++) {
        struct search_call *call = &search->calls[i];
        if (call->phase == ask->phase && call->scope == scope &&
            requests_equal(&call->request, ask->request))
            return call;
    }
    if (search->call_count == CALLS_MAX)
        return NULL;
    struct search_call *call = &search->calls[search->call_count++];
    call->request = *ask->request;
    call->phase = ask->phase;
    call->scope = scope;
    return call;
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
        .pieces = search->pieces};
    for (size_t i = 0; i < search->told.count; i++) {
        const struct told_later *told = &search->told.items[i];
        *ARRAY_ADD(&p->search.told) =
            (struct told_later){told->kind, mem_copy(told->group), told->slot};
    }
}

void placer_hived_forget(struct placer *placer)
{
    search_close((struct placer_hived *)placer, false);
}
