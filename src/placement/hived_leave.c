/* hived_leave.c — the cells of large groups that have ended are given back in pieces: see
 * hived_parts.h, and "Giving back" in docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/hived_parts.h"

enum { LEAVES_PER_TASK = 3 }; /* a leaf costs less than a task's whole placement */

static uint32_t piece_of(const struct placer_hived *p)
{
    return p->leaving_leaves ? p->leaving_leaves : UINT32_MAX;
}

void placer_gang_end(struct placer_hived *p, const char *gang)
{
    assert(!placer_is_leaving(p, gang));
    if (!hived_group_end_some(p->hived, gang, piece_of(p)))
        *ARRAY_ADD(&p->leaving) = mem_copy(gang);
}

void placer_gang_cancel(struct placer_hived *p, const char *gang, const char *group)
{
    if (!placer_is_leaving(p, gang) && !hived_pod_cancel(p->hived, gang, group, piece_of(p)))
        *ARRAY_ADD(&p->leaving) = mem_copy(gang);
}

/* Of the first one. */
static void leaving_go_on(struct placer_hived *p, uint32_t leaves)
{
    assert(p->leaving.count > 0 && p->hived);
    if (!hived_group_end_some(p->hived, p->leaving.items[0], leaves))
        return;
    mem_free(p->leaving.items[0]);
    p->leaving.count--;
    memmove(p->leaving.items, p->leaving.items + 1, p->leaving.count * sizeof *p->leaving.items);
}

void placer_leaving_finish(struct placer_hived *p)
{
    while (p->leaving.count > 0)
        leaving_go_on(p, UINT32_MAX);
}

bool placer_is_leaving(const struct placer_hived *p, const char *gang)
{
    for (size_t i = 0; i < p->leaving.count; i++)
        if (strcmp(p->leaving.items[i], gang) == 0)
            return true;
    return false;
}

void placer_leaving_copy(struct placer_hived *p, const struct placer_hived *from)
{
    assert(p != from && !p->leaving.count);
    p->leaving_leaves = from->leaving_leaves;
    for (size_t i = 0; i < from->leaving.count; i++)
        *ARRAY_ADD(&p->leaving) = mem_copy(from->leaving.items[i]);
}

void placer_leaving_free(struct placer_hived *p)
{
    for (size_t i = 0; i < p->leaving.count; i++)
        mem_free(p->leaving.items[i]);
    ARRAY_FREE(&p->leaving);
}

bool placer_hived_tidy(struct placer *placer, uint32_t tasks)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    if (tasks > 0) {
        p->leaving_leaves =
            tasks < UINT32_MAX / LEAVES_PER_TASK ? tasks * LEAVES_PER_TASK : UINT32_MAX;
        if (p->leaving.count > 0)
            leaving_go_on(p, p->leaving_leaves);
        making_tidy(p, tasks);
    }
    return !p->leaving.count && !making_is_due(p);
}
