/* demote.c — a group that is told where it is takes virtual cells of others, as the quotas have
 * shrunk: these lose their guarantee. See "Another placer takes over" in
 * docs/rfc/0016-gangs-in-steps.md. */
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>

enum {
    WORK_OF_LEAF = 2,       /* of a group that is downgraded: no cache holds it */
    WORK_OF_GROUP = 32,     /* to downgrade one, or to end its preemption, beside its leaves */
    LOOKED_AT_PER_LEAF = 8, /* as long as it takes to take one, so many are looked at */
};

static void work_add(struct hived *h, uint32_t work, uint32_t *leaves)
{
    h->work_beside += work;
    *leaves -= work < *leaves ? work : *leaves;
}

/* --- one group --- */

static void demotion_begin(struct hived *h, uint32_t index, const char *preemptor)
{
    assert(!h->demotion.group && h->groups[index]->has_virtual);
    h->demotion = (struct demotion){.group = index + 1, .preemptor = mem_copy(preemptor)};
}

void demotion_drop(struct hived *h, uint32_t index)
{
    if (h->demotion.group != index + 1)
        return;
    mem_free(h->demotion.preemptor);
    h->demotion = (struct demotion){0};
}

/* Some of its leaves. True: it has lost all. */
static bool demotion_some(struct hived *h, uint32_t *leaves)
{
    struct demotion *demotion = &h->demotion;
    const uint32_t index = demotion->group - 1, first = demotion->next;
    struct group *group = h->groups[index];
    const uint32_t left = group->leaf_count - first, room = (*leaves - 1) / WORK_OF_LEAF + 1,
                   count = left < room ? left : room;
    assert(group->has_virtual && *leaves > 0);
    group_leaves_downgrade(h, group, first, first + count);
    group_changed(h, index);
    demotion->next += count;
    work_add(h, WORK_OF_LEAF * count, leaves);
    if (demotion->next < group->leaf_count)
        return false;
    group_downgrade_end(h, index, demotion->preemptor); /* and there is none any more */
    work_add(h, WORK_OF_GROUP, leaves);
    return true;
}

bool hived_is_demoting(const struct hived *h)
{
    return h->demotion.group > 0;
}

bool hived_demote_some(struct hived *h, uint32_t leaves)
{
    assert(leaves > 0 && !h->committing.is_on);
    if (!h->demotion.group)
        return true;
    hived_search_end(h);
    group_pending_settle(h, false);
    dooms_hold(h);
    const bool is_whole = demotion_some(h, &leaves);
    dooms_let(h);
    return is_whole;
}

/* --- all below a root --- */

void clearing_begin(struct hived *h, uint32_t virtual, struct clearing *clearing)
{
    const uint32_t top = h->cells[h->cells[virtual].root].bound;
    assert(!clearing->is_on && top != NONE);
    const uint32_t first = first_leaf(h, top), count = level_of(h, &h->cells[top])->leaf_count;
    *clearing = (struct clearing){
        .is_on = true, .virtual = virtual, .first = first, .at = first, .end = first + count};
}

/* Whoever has reserved the leaf, and all else that he has. */
static void reserver_clear(struct hived *h, struct clearing *clearing, uint32_t *leaves)
{
    const struct group *group = h->groups[clearing->weaker - 1];
    const uint32_t left = group->reserved - group->ended, count = left < *leaves ? left : *leaves;
    const bool is_gone = preemption_undo_some(h, clearing->weaker - 1, count);
    work_add(h, count, leaves);
    if (!is_gone)
        return;
    clearing->weaker = 0;
    work_add(h, WORK_OF_GROUP, leaves);
}

bool clearing_some(struct hived *h, struct clearing *clearing, const char *preemptor,
                   uint32_t *leaves)
{
    assert(clearing->is_on && clearing->at <= clearing->end);
    while (*leaves > 0 && clearing->at < clearing->end) {
        const uint32_t user = h->cells[clearing->at].using,
                       reserver = h->rests[clearing->at].reserving;
        if (!clearing->weaker && reserver != NONE)
            clearing->weaker = reserver + 1;
        if (clearing->weaker) {
            reserver_clear(h, clearing, leaves);
        } else if (h->demotion.group) {
            demotion_some(h, leaves);
        } else if (user != NONE && h->groups[user]->has_virtual) {
            demotion_begin(h, user, preemptor);
        } else {
            clearing->at++;
            if ((clearing->at - clearing->first) % LOOKED_AT_PER_LEAF == 0)
                work_add(h, 1, leaves);
        }
    }
    clearing->is_on = clearing->at < clearing->end;
    return !clearing->is_on;
}
