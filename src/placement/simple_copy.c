/* simple_copy.c — a copy of a plain placer, in pieces: how far it has come is what it has. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/simple_parts.h"

static void node_copy(struct simple_node *to, const struct simple_node *from)
{
    assert(to != from);
    *to = *from;
    to->facts = (struct node_facts){0};
    if (from->is_known)
        node_facts_copy(&to->facts, &from->facts);
}

static void group_copy(struct simple_group *to, const struct simple_group *from)
{
    assert(to != from);
    *to = *from;
    if (!from->name)
        return;
    to->name = mem_copy(from->name);
    to->slots = mem_zero(from->slot_count, sizeof *to->slots);
    memcpy(to->slots, from->slots, from->slot_count * sizeof *to->slots);
    to->victims = from->victim_count ? mem_zero(from->victim_count, sizeof *to->victims) : NULL;
    for (size_t i = 0; i < from->victim_count; i++)
        to->victims[i] = from->victims[i] ? mem_copy(from->victims[i]) : NULL;
}

static struct simple *copy_begin(const struct simple *from)
{
    struct simple *to = mem_zero(1, sizeof *to);
    to->placer = from->placer;
    to->compare = from->compare;
    to->live_groups = from->live_groups;
    to->waiting_groups = from->waiting_groups;
    memcpy(to->by_priority, from->by_priority, sizeof to->by_priority);
    ARRAY_COPY(&to->free_groups, &from->free_groups);
    ARRAY_RESERVE(&to->nodes, from->nodes.count);
    ARRAY_RESERVE(&to->groups, from->groups.count);
    ARRAY_RESERVE(&to->ranks, from->groups.count);
    return to;
}

/* What lies by node, when all nodes are there. */
static void views_copy(struct simple *to, const struct simple *from)
{
    simple_views_reserve(to);
    for (size_t i = 0; i < from->nodes.count; i++) {
        to->whole[i] = from->whole[i];
        to->free[i] = from->free[i];
        to->offered[i] = from->offered[i];
        to->kept[i] = from->kept[i];
        to->most[i] = from->most[i];
        to->traits[i] = from->traits[i];
        to->kind_of[i] = from->kind_of[i];
    }
    ARRAY_COPY(&to->kinds, &from->kinds);
    for (size_t i = 0; i < to->kinds.count; i++) {
        to->kinds.items[i].type = mem_copy(from->kinds.items[i].type);
        to->kinds.items[i].engine = mem_copy(from->kinds.items[i].engine);
    }
    for (size_t i = 0; i < from->clusters.count; i++)
        (void)simple_cluster(to, from->clusters.items[i]);
}

bool simple_copy_some(const struct placer *placer, struct placer **copy, uint32_t tasks)
{
    enum { COST_OF_NODE = 4, COST_OF_GROUP = 2, SLOTS_PER_TASK = 8 };
    const struct simple *from = (const struct simple *)placer;
    struct simple *to = *copy ? (struct simple *)*copy : copy_begin(from);
    uint64_t done = 0;
    *copy = &to->placer;
    for (; done < tasks && to->nodes.count < from->nodes.count; done += COST_OF_NODE) {
        node_copy(&to->nodes.items[to->nodes.count], &from->nodes.items[to->nodes.count]);
        to->nodes.count++;
    }
    for (; done < tasks && to->groups.count < from->groups.count; done += COST_OF_GROUP) {
        const size_t at = to->groups.count++;
        struct simple_group *group = &to->groups.items[at];
        group_copy(group, &from->groups.items[at]);
        *ARRAY_ADD(&to->ranks) = from->ranks.items[at];
        if (group->name)
            text_map_set(&to->names, text_of(group->name), (uint32_t)at);
        done += group->name ? group->slot_count / SLOTS_PER_TASK : 0;
    }
    if (done >= tasks)
        return false;
    views_copy(to, from);
    simple_course_copy(to, from);
    return true;
}

struct placer *simple_copy(const struct placer *placer)
{
    struct placer *copy = NULL;
    while (!simple_copy_some(placer, &copy, UINT32_MAX))
        ;
    return copy;
}
