/* result.c — what a search answers: who is in the way of a placement, whose pods would have to end,
 * and where its pods go. Each is made in pieces: docs/rfc/0016-gangs-in-steps.md, "One large part".
 */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>

/* --- who is in the way --- */

static void group_list(struct hived *h, uint32_t group, uint32_t listing, uint32_t *list,
                       uint32_t *count)
{
    assert(group < h->group_count);
    if (h->groups[group]->listing == listing)
        return;
    h->groups[group]->listing = listing;
    list[(*count)++] = group;
}

/* A group that preempts uses no leaf: nobody is in both lists. */
static void leaf_conflict(struct hived *h, struct conflict *conflict, uint32_t leaf, uint32_t own)
{
    const uint32_t using = h->cells[leaf].using, before = conflict->victim_count;
    if (using != NONE) {
        group_list(h, using, conflict->listing, conflict->victims, &conflict->victim_count);
        if (conflict->victim_count > before)
            conflict->pods += h->groups[using]->bound_count;
    }
    if (h->cells[leaf].state < HIVED_CELL_RESERVING)
        return;
    const uint32_t other = h->rests[leaf].reserving;
    if (other != own)
        group_list(h, other, conflict->listing, conflict->preemptors, &conflict->preemptor_count);
}

uint32_t conflict_some(struct hived *h, struct conflict *conflict, const struct conflict_of *of,
                       uint32_t leaves)
{
    uint32_t done = 0;
    assert(conflict->at <= of->count);
    while (done < leaves && conflict->at < of->count) {
        const uint32_t leaf = of->physical[conflict->at++], before = conflict->victim_count;
        done++;
        if (leaf == NONE || h->cells[leaf].state == HIVED_CELL_FREE)
            continue;
        if (!conflict->victims) { /* each list has room for all of them */
            const size_t room = of->count < h->group_count ? of->count : h->group_count;
            conflict->victims = arena_take(of->arena, mem_size(2 * room, sizeof(uint32_t)));
            conflict->preemptors = conflict->victims + room;
            conflict->listing = ++h->listing;
        }
        leaf_conflict(h, conflict, leaf, of->own);
        if (conflict->victim_count > before)
            done += LEAVES_OF_VICTIM;
    }
    return done;
}

/* --- their pods --- */

static struct hived_victim victim_of(const struct hived *h, const struct group *group,
                                     uint32_t slot)
{
    uint32_t leaf = group->slot_leaf[slot];
    while (leaf + 1 < group->slot_leaf[slot + 1] && group->physical[leaf] == NONE)
        leaf++;
    const uint32_t cell = group->physical[leaf];
    return (struct hived_victim){.group = group->name,
                                 .pod = group->pods[slot].name ? group->pods[slot].name : "",
                                 .node = cell != NONE ? h->nodes[h->rests[cell].node].name : ""};
}

uint32_t victims_some(const struct hived *h, struct victims *victims,
                      const struct conflict *conflict, struct arena *arena, uint32_t leaves)
{
    uint32_t done = 0;
    if (!victims->items)
        victims->items = arena_take(arena, mem_size(conflict->pods + 1u, sizeof *victims->items));
    while (done < leaves && victims->group < conflict->victim_count) {
        const struct group *group = h->groups[conflict->victims[victims->group]];
        for (; done < leaves && victims->slot < group->slot_count; victims->slot++) {
            if (group->pods[victims->slot].is_bound)
                victims->items[victims->count++] = victim_of(h, group, victims->slot);
            done++;
        }
        if (victims->slot < group->slot_count)
            break;
        victims->group++;
        victims->slot = 0;
        done += LEAVES_OF_VICTIM;
    }
    return done;
}

bool victims_are_whole(const struct victims *victims, const struct conflict *conflict)
{
    return victims->group == conflict->victim_count;
}

/* --- where its pods go --- */

/* The preassigned cells' types of a virtual placement; "" where there is none. */
static void preassigned_write(const struct hived *h, const uint32_t *virtual, uint32_t count,
                              const char **types)
{
    uint32_t root = NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t own = virtual && virtual[i] != NONE ? h->cells[virtual[i]].root : NONE;
        if (i > 0 && own == root)
            types[i] = types[i - 1];
        else
            types[i] = own == NONE ? "" : cell_type_name(h, &h->cells[own]);
        root = own;
    }
}

static void slot_write(const struct hived *h, struct hived_slot *slot, const uint32_t *physical,
                       uint16_t *indices)
{
    slot->node = "";
    slot->indices = indices;
    for (uint32_t i = 0; i < slot->leaf_count; i++) {
        indices[i] = 0;
        if (physical[i] == NONE)
            continue;
        const struct cell *leaf = &h->cells[physical[i]];
        slot->node = h->nodes[rest_of(h, leaf)->node].name;
        indices[i] = (uint16_t)rest_of(h, leaf)->index;
    }
}

uint32_t writing_some(const struct hived *h, struct writing *writing, const struct writing_of *of,
                      uint32_t leaves)
{
    const uint32_t all = of->starts[of->slots], before = of->starts[writing->slots];
    if (!writing->items) {
        writing->items = arena_take(of->arena, mem_size(of->slots, sizeof *writing->items));
        writing->indices = arena_take(of->arena, mem_size(all, sizeof *writing->indices));
        writing->types = arena_take(of->arena, mem_size(all, sizeof *writing->types));
    }
    for (; writing->slots < of->slots && of->starts[writing->slots] - before < leaves;
         writing->slots++) {
        const uint32_t first = of->starts[writing->slots],
                       count = of->starts[writing->slots + 1] - first;
        struct hived_slot *slot = &writing->items[writing->slots];
        *slot = (struct hived_slot){.leaf_count = count,
                                    .hints = of->has_hints ? &of->physical[first] : NULL,
                                    .preassigned = &writing->types[first]};
        preassigned_write(h, of->virtual ? &of->virtual[first] : NULL, count,
                          &writing->types[first]);
        slot_write(h, slot, &of->physical[first], &writing->indices[first]);
    }
    return of->starts[writing->slots] - before;
}
