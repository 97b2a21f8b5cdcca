/* simple_share.c — see simple_share.h. */
#include "placement/simple_share.h"

#include <assert.h>

#include "placement/simple_choice.h"

static void node_refresh(struct simple *simple, uint32_t at)
{
    simple->free[at] = simple_node_free(&simple->nodes.items[at]);
    simple->offered[at] = simple_view_less(simple->free[at], &simple->kept[at]);
    simple_choice_touch(simple, at);
}

/* What is kept of it has changed. */
static void node_offer(struct simple *simple, uint32_t at)
{
    struct simple_view all = simple->whole[at];
    all.gpus &= ~simple->nodes.items[at].gpus_lost;
    simple->most[at] = simple_view_less(all, &simple->kept[at]);
    simple->offered[at] = simple_view_less(simple->free[at], &simple->kept[at]);
    simple_choice_touch(simple, at);
}

void simple_node_renew(struct simple *simple, uint32_t at)
{
    simple->free[at] = simple_node_free(&simple->nodes.items[at]);
    node_offer(simple, at);
}

static bool share_fits(const struct simple *simple, uint32_t at, const struct simple_share *share)
{
    const struct simple_node *node = &simple->nodes.items[at];
    return node->is_known && saturated(node->facts.cpu, node->cpu_used) >= share->cpu &&
           saturated(node->facts.memory_mib, node->memory_used) >= share->memory_mib &&
           (gpus_free(node) & share->gpus) == share->gpus;
}

static void share_use(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    struct simple_node *node = &simple->nodes.items[at];
    node->cpu_used += (uint32_t)share->cpu;
    node->memory_used += share->memory_mib;
    node->gpus_taken |= share->gpus;
}

bool simple_share_take(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    const bool fits = share_fits(simple, at, share);
    share_use(simple, at, share);
    node_refresh(simple, at);
    return fits;
}

bool simple_share_give(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    struct simple_node *node = &simple->nodes.items[at];
    node->cpu_used -= (uint32_t)share->cpu;
    node->memory_used -= share->memory_mib;
    node->gpus_taken &= ~share->gpus;
    node_refresh(simple, at);
    return true;
}

bool simple_share_keep(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    struct simple_share *kept = &simple->kept[at];
    assert(!(kept->gpus & share->gpus));
    kept->cpu += share->cpu;
    kept->memory_mib += share->memory_mib;
    kept->gpus |= share->gpus;
    node_offer(simple, at);
    return true;
}

static void kept_lower(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    struct simple_share *kept = &simple->kept[at];
    assert((kept->gpus & share->gpus) == share->gpus);
    kept->cpu -= share->cpu;
    kept->memory_mib -= share->memory_mib;
    kept->gpus &= ~share->gpus;
}

bool simple_share_leave(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    kept_lower(simple, at, share);
    node_offer(simple, at);
    return true;
}

bool simple_share_become(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    const bool fits = share_fits(simple, at, share);
    kept_lower(simple, at, share);
    share_use(simple, at, share);
    simple_node_renew(simple, at);
    return fits;
}

struct simple_share simple_share_of(const struct simple_slot *slot)
{
    return (struct simple_share){slot->cpu, slot->memory_mib, slot->gpus};
}

/* By node, into simple->extra. False: two slots have the same GPU. */
static bool shares_sum(struct simple *simple, const struct simple_group *group)
{
    bool fits = true;
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct simple_slot *slot = &group->slots[i];
        if (slot->node == UINT32_MAX)
            continue;
        struct simple_share *sum = &simple->extra[slot->node];
        fits = fits && !(sum->gpus & slot->gpus);
        sum->cpu += slot->cpu;
        sum->memory_mib += slot->memory_mib;
        sum->gpus |= slot->gpus;
    }
    return fits;
}

/* A large group has several slots on a node, in any order: these are summed first, so that each
 * node is looked at once, in the order of the table. */
bool simple_group_apply(struct simple *simple, const struct simple_group *group,
                        share_apply_fn *apply)
{
    enum { NODES_PER_SLOT = 16 }; /* that are passed over while one somewhere is looked at */
    bool fits = true;
    if (group->slot_count <= simple->nodes.count / NODES_PER_SLOT || simple->course.choice) {
        for (size_t i = 0; i < group->slot_count; i++) {
            const struct simple_share share = simple_share_of(&group->slots[i]);
            if (group->slots[i].node != UINT32_MAX)
                fits = apply(simple, group->slots[i].node, &share) && fits;
        }
        return fits;
    }
    fits = shares_sum(simple, group);
    for (size_t at = 0; at < simple->nodes.count; at++) {
        struct simple_share *share = &simple->extra[at];
        if (simple_share_is_none(share))
            continue;
        fits = apply(simple, (uint32_t)at, share) && fits;
        *share = (struct simple_share){0};
    }
    return fits;
}
