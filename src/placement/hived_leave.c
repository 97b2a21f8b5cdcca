/* hived_leave.c — the cells of large groups that have ended are given back in pieces, after what is
 * owed: see hived_parts.h, and "Giving back" in docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/hived_parts.h"

enum { LEAVES_PER_TASK = 3 }; /* a leaf costs less than a task's whole placement */

static uint32_t piece_of(const struct placer_hived *p)
{
    return p->leaving_leaves ? p->leaving_leaves : UINT32_MAX;
}

static uint32_t slice_leaves(uint32_t tasks)
{
    return tasks < UINT32_MAX / LEAVES_PER_TASK ? tasks * LEAVES_PER_TASK : UINT32_MAX;
}

static struct leaving *leaving_find(const struct placer_hived *p, const char *gang)
{
    for (size_t i = 0; i < p->leaving.count; i++)
        if (strcmp(p->leaving.items[i].gang, gang) == 0)
            return &p->leaving.items[i];
    return NULL;
}

static void leaving_add(struct placer_hived *p, const char *gang, bool is_reserved)
{
    assert(!leaving_find(p, gang));
    *ARRAY_ADD(&p->leaving) = (struct leaving){mem_copy(gang), is_reserved};
}

static void leaving_remove(struct placer_hived *p, struct leaving *leaving)
{
    const size_t at = (size_t)(leaving - p->leaving.items);
    assert(at < p->leaving.count);
    mem_free(leaving->gang);
    p->leaving.count--;
    memmove(leaving, leaving + 1, (p->leaving.count - at) * sizeof *leaving);
}

void placer_gang_end(struct placer_hived *p, const char *gang)
{
    assert(!leaving_find(p, gang));
    if (!hived_group_end_some(p->hived, gang, piece_of(p)))
        leaving_add(p, gang, false);
}

void placer_gang_cancel(struct placer_hived *p, const char *gang, const char *group)
{
    struct leaving *leaving = leaving_find(p, gang);
    if (leaving && !leaving->is_reserved)
        return;
    const bool is_gone = hived_pod_cancel(p->hived, gang, group, piece_of(p));
    if (leaving && is_gone)
        leaving_remove(p, leaving);
    else if (leaving)
        leaving->is_reserved = false;
    else if (!is_gone)
        leaving_add(p, gang, false);
}

void placer_gang_reserve(struct placer_hived *p, const char *gang, const char *group)
{
    if (!hived_commit_undo(p->hived, gang, group, piece_of(p)))
        leaving_add(p, gang, true);
}

/* Of the first one. */
static void first_go_on(struct placer_hived *p, uint32_t leaves)
{
    assert(p->leaving.count > 0 && p->hived);
    struct leaving *first = &p->leaving.items[0];
    const bool is_done = first->is_reserved ? hived_commit_undo(p->hived, first->gang, NULL, leaves)
                                            : hived_group_end_some(p->hived, first->gang, leaves);
    if (is_done)
        leaving_remove(p, first);
}

/* A commit in pieces was given up when another group had lost some of its virtual cells to it. */
static bool is_demoting(const struct placer_hived *p)
{
    return p->hived && !p->search.group && hived_is_demoting(p->hived);
}

/* So was a search: those who had been displaced for it get back what they lost. */
bool placer_is_returning(const struct placer_hived *p)
{
    return p->hived && !p->search.group && !p->decided && hived_is_displacing(p->hived);
}

void placer_leaving_finish(struct placer_hived *p)
{
    if (placer_is_returning(p))
        hived_return_some(p->hived, UINT32_MAX);
    placer_owed_finish(p);
    while (p->leaving.count > 0)
        first_go_on(p, UINT32_MAX);
    if (is_demoting(p))
        hived_demote_some(p->hived, UINT32_MAX);
}

bool placer_is_tidy(const struct placer_hived *p)
{
    return !p->leaving.count && !placer_owes(p) && !is_demoting(p) && !placer_is_returning(p);
}

/* A group that ends by what is owed waits for its turn among those that leave. */
static void piece_go_on(struct placer_hived *p, uint32_t tasks)
{
    if (placer_is_returning(p))
        hived_return_some(p->hived, slice_leaves(tasks));
    else if (placer_owes(p))
        placer_owed_go_on(p, tasks);
    else if (p->leaving.count > 0)
        first_go_on(p, slice_leaves(tasks));
    else if (is_demoting(p))
        hived_demote_some(p->hived, slice_leaves(tasks));
}

bool placer_leaving_go_on(struct placer_hived *p, uint32_t slice)
{
    if (slice)
        piece_go_on(p, slice);
    else
        placer_leaving_finish(p);
    return placer_is_tidy(p);
}

bool placer_is_leaving(const struct placer_hived *p, const char *gang)
{
    const struct leaving *leaving = leaving_find(p, gang);
    return leaving && !leaving->is_reserved;
}

void placer_leaving_copy(struct placer_hived *p, const struct placer_hived *from)
{
    assert(p != from && !p->leaving.count);
    p->leaving_leaves = from->leaving_leaves;
    told_copy(&p->owed, &from->owed, from->owed_next);
    for (size_t i = 0; i < from->leaving.count; i++)
        leaving_add(p, from->leaving.items[i].gang, from->leaving.items[i].is_reserved);
}

void placer_leaving_free(struct placer_hived *p)
{
    for (size_t i = 0; i < p->leaving.count; i++)
        mem_free(p->leaving.items[i].gang);
    ARRAY_FREE(&p->leaving);
    told_release(&p->owed, p->owed_next);
}

bool placer_hived_tidy(struct placer *placer, uint32_t tasks)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    if (tasks > 0) {
        p->leaving_leaves = slice_leaves(tasks);
        piece_go_on(p, tasks);
        making_tidy(p, tasks);
    }
    return placer_is_tidy(p) && !making_is_due(p);
}
