/* simple_candidates.c — which groups may be ended for a gang: see simple_parts.h. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/simple_parts.h"

/* Each priority below the gang's has its part of the list. */
void simple_candidates_begin(const struct simple_search *search,
                             struct simple_candidates *candidates)
{
    const struct simple *simple = search->simple;
    const uint32_t end = priority_index(search->request->priority);
    candidates->next = mem_zero(PRIORITIES, sizeof *candidates->next);
    for (uint32_t i = 0; i < end; i++) {
        candidates->next[i] = (uint32_t)candidates->room;
        candidates->room += simple->by_priority[i];
    }
    candidates->items = mem_alloc(mem_size(candidates->room + 1, sizeof *candidates->items));
    memset(candidates->items, 0xff, candidates->room * sizeof *candidates->items);
    candidates->suits = mem_zero(simple->kinds.count + 1, sizeof *candidates->suits);
    for (size_t i = 0; i < simple->kinds.count; i++)
        candidates->suits[i] = simple_kind_suits(&simple->kinds.items[i], search->request);
}

static bool is_preemptible(const struct simple_rank *group, int32_t priority, uint32_t cluster)
{
    return group->runs && group->priority < priority &&
           (group->priority < 0 || group->cluster == cluster);
}

/* Would there be room for a task on the node if all that runs there had ended? */
static bool node_may_help(const struct simple *simple, const struct simple_candidates *candidates,
                          uint32_t node, const struct demand *least)
{
    const uint8_t want = NODE_KNOWN | NODE_HEALTHY;
    assert(node < simple->nodes.count);
    return simple_view_has(&simple->most[node], least) && (simple->traits[node] & want) == want &&
           candidates->suits[simple->kind_of[node]];
}

/* On one of its nodes. */
static bool group_may_help(const struct simple *simple, const struct simple_candidates *candidates,
                           size_t at, const struct demand *least, uint64_t *left)
{
    const struct simple_group *group = &simple->groups.items[at];
    if (simple->ranks.items[at].node != UINT32_MAX)
        return node_may_help(simple, candidates, simple->ranks.items[at].node, least);
    size_t i = 0;
    while (i < group->slot_count &&
           (group->slots[i].node == UINT32_MAX ||
            !node_may_help(simple, candidates, group->slots[i].node, least)))
        i++;
    simple_work_take(left, i);
    return i < group->slot_count;
}

/* Of another virtual cluster, and those that do not help, nothing has been noted. */
static void list_close(struct simple_candidates *candidates)
{
    assert(!candidates->count);
    for (size_t i = 0; i < candidates->room; i++)
        if (candidates->items[i] != UINT32_MAX)
            candidates->items[candidates->count++] = candidates->items[i];
}

bool simple_candidates_go_on(const struct simple_search *search, const struct demand *least,
                             struct simple_candidates *candidates, size_t *next, uint64_t *left)
{
    const struct simple *simple = search->simple;
    const struct placement_request *request = search->request;
    const uint32_t cluster =
        text_map_get(&simple->cluster_index, text_of(request->virtual_cluster));
    assert(!search->ignores_health && !search->avoids);
    const size_t begin = *next, count = simple->ranks.count;
    size_t at = begin;
    for (; at < count && at - begin < *left; at++) {
        const struct simple_rank *rank = &simple->ranks.items[at];
        if (is_preemptible(rank, request->priority, cluster) &&
            group_may_help(simple, candidates, at, least, left))
            candidates->items[candidates->next[priority_index(rank->priority)]++] = (uint32_t)at;
    }
    simple_work_take(left, at - begin);
    *next = at;
    if (at < count)
        return false;
    list_close(candidates);
    return true;
}

void simple_candidates_free(struct simple_candidates *candidates)
{
    mem_free(candidates->items);
    mem_free(candidates->next);
    mem_free(candidates->suits);
    *candidates = (struct simple_candidates){0};
}

void simple_candidates_copy(struct simple_candidates *to, const struct simple_candidates *from,
                            const struct simple *simple)
{
    assert(to != from);
    *to = *from;
    to->items = mem_copy_array(from->items, from->room, sizeof *from->items);
    to->next = mem_copy_array(from->next, PRIORITIES, sizeof *from->next);
    to->suits = mem_copy_array(from->suits, simple->kinds.count, sizeof *from->suits);
}
