/* hived_owed.c — what is told during a search in pieces counts after it, in pieces as well: see
 * hived_parts.h, and "What ends meanwhile" in docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>

#include "base/memory.h"
#include "placement/hived_parts.h"

void told_add(struct told_list *list, enum told_kind kind, const char *group, size_t slot)
{
    *ARRAY_ADD(list) = (struct told_later){kind, mem_copy(group), slot};
}

void told_copy(struct told_list *list, const struct told_list *from, size_t first)
{
    assert(list != from && !list->count);
    for (size_t i = first; i < from->count; i++)
        told_add(list, from->items[i].kind, from->items[i].group, from->items[i].slot);
}

void told_release(struct told_list *list, size_t first)
{
    for (size_t i = first; i < list->count; i++)
        mem_free(list->items[i].group);
    ARRAY_FREE(list);
}

bool placer_owes(const struct placer_hived *p)
{
    return p->owed_next < p->owed.count;
}

static void told_apply(struct placer_hived *p, const struct told_later *told)
{
    assert(!p->search.group);
    switch (told->kind) {
    case TOLD_SLOT_OVER:
        placer_slot_end(p, told->group, told->slot);
        break;
    case TOLD_GROUP_OVER:
        placer_group_end(p, told->group);
        break;
    case TOLD_CANCEL:
        placer_group_cancel(p, told->group);
        break;
    }
}

/* In tasks: the end of a small group costs more than its leaves. */
static uint64_t told_cost(const struct placer_hived *p, const struct told_later *told)
{
    enum { COST = 8, COST_OF_SLOT = 2 };
    const uint32_t at = told->kind == TOLD_GROUP_OVER
                            ? text_map_get(&p->held_index, text_of(told->group))
                            : MAP_NONE;
    const uint64_t slots = at == MAP_NONE ? 1 : p->helds.items[at].taken_count;
    return COST + COST_OF_SLOT * slots;
}

void placer_owed_go_on(struct placer_hived *p, uint32_t tasks)
{
    const size_t leaving = p->leaving.count;
    assert(tasks > 0);
    /* a group that is large enough to leave in pieces has done the work of one */
    for (uint64_t done = 0; placer_owes(p) && done < tasks && p->leaving.count == leaving;) {
        const struct told_later told = p->owed.items[p->owed_next++];
        done += told_cost(p, &told);
        told_apply(p, &told);
        mem_free(told.group);
    }
    if (placer_owes(p))
        return;
    ARRAY_FREE(&p->owed);
    p->owed_next = 0;
}

void placer_owed_finish(struct placer_hived *p)
{
    while (placer_owes(p))
        placer_owed_go_on(p, UINT32_MAX);
}

/* A few count at once; the rest with what is left to be given back. */
void placer_owe(struct placer_hived *p, struct told_list *told)
{
    enum { LEAVES_PER_TASK_AT_ONCE = 12 };
    assert(!p->search.group && !placer_owes(p));
    p->owed = *told;
    p->owed_next = 0;
    *told = (struct told_list){0};
    if (p->leaving_leaves && placer_is_returning(p))
        return; /* that comes first */
    if (p->leaving_leaves)
        placer_owed_go_on(p, 1 + p->leaving_leaves / LEAVES_PER_TASK_AT_ONCE);
    else /* nobody has said how much may be done in a piece */
        placer_owed_finish(p);
}
