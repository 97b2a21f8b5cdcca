#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/simple.h"

static int compare_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int simple_compare_least(const struct view *a, const struct view *b)
{
    int order = compare_number(bit_count(a->gpus), bit_count(b->gpus));
    if (!order)
        order = compare_number(a->cpu, b->cpu);
    return order ? order : compare_number(a->memory_mib, b->memory_mib);
}

int simple_compare_most(const struct view *a, const struct view *b)
{
    return simple_compare_least(b, a);
}

void simple_views_fill(struct simple *simple, bool is_empty)
{
    if (simple->view_room < simple->nodes.count) {
        simple->view_room = simple->nodes.count;
        simple->views =
            mem_realloc(simple->views, mem_size(simple->view_room, sizeof *simple->views));
    }
    for (size_t i = 0; i < simple->nodes.count; i++) {
        const struct simple_node *node = &simple->nodes.items[i];
        simple->views[i] =
            is_empty
                ? (struct view){node->cpu, node->memory_mib, gpu_mask(node->gpu_count)}
                : (struct view){(uint32_t)saturated(node->cpu, node->cpu_used),
                                saturated(node->memory_mib, node->memory_used), gpus_free(node)};
    }
}

static void view_give(const struct simple *simple, const struct simple_slot *slot)
{
    const struct simple_node *node = &simple->nodes.items[slot->node];
    struct view *view = &simple->views[slot->node];
    view->cpu += slot->cpu;
    view->memory_mib += slot->memory_mib;
    view->gpus |= slot->gpus & gpu_mask(node->gpu_count);
}

bool simple_view_take(const struct simple *simple, const struct simple_slot *slot)
{
    struct view *view = &simple->views[slot->node];
    bool fits = view->cpu >= slot->cpu && view->memory_mib >= slot->memory_mib &&
                (view->gpus & slot->gpus) == slot->gpus;
    view->cpu = (uint32_t)saturated(view->cpu, slot->cpu);
    view->memory_mib = saturated(view->memory_mib, slot->memory_mib);
    view->gpus &= ~slot->gpus;
    return fits;
}

/* Preempting groups own nothing yet, but what they wait for is not for others. */
void simple_views_keep(const struct simple *simple, const char *except)
{
    for (size_t i = 0; simple->waiting_groups && i < simple->groups.count; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        if (!group->name || !group->is_waiting || strcmp(group->name, except) == 0)
            continue;
        for (size_t j = 0; j < group->slot_count; j++)
            simple_view_take(simple, &group->slots[j]);
    }
}

bool simple_type_fits(const char *wanted, const char *type)
{
    if (!*wanted)
        return true;
    struct text rest = text_of(wanted);
    while (rest.at)
        if (text_is(text_trim(text_cut(&rest, ',')), type))
            return true;
    return false;
}

static bool is_avoided(const struct placement_request *request, size_t node)
{
    for (size_t i = 0; i < request->avoid_count; i++)
        if (request->avoid[i].v == node)
            return true;
    return false;
}

static bool node_may(const struct search *search, size_t at, const struct placement_member *member)
{
    const struct simple_node *node = &search->simple->nodes.items[at];
    return node->is_known && (node->is_healthy || search->ignores_health) &&
           simple_type_fits(member->sku_type, node->gpu_type) &&
           !(search->avoids && is_avoided(search->request, at));
}

static uint32_t view_room_for(const struct view *view, const struct demand *demand, uint32_t limit)
{
    uint64_t room = limit;
    if (demand->cpu && view->cpu / demand->cpu < room)
        room = view->cpu / demand->cpu;
    if (demand->memory_mib && view->memory_mib / demand->memory_mib < room)
        room = view->memory_mib / demand->memory_mib;
    if (demand->gpu && bit_count(view->gpus) / demand->gpu < room)
        room = bit_count(view->gpus) / demand->gpu;
    return (uint32_t)room;
}

/* The devices of the smallest neighbourhood that is large enough. */
static uint64_t gpus_of_neighbourhood(const uint16_t *places, uint32_t count, uint64_t free_gpus,
                                      uint32_t need)
{
    uint64_t best = 0;
    for (uint32_t i = 0; places && i < count; i++) {
        uint64_t same = 0;
        for (uint32_t j = 0; j < count; j++)
            if (places[j] == places[i] && (free_gpus >> j & 1))
                same |= UINT64_C(1) << j;
        if (bit_count(same) >= need && (!best || bit_count(same) < bit_count(best)))
            best = same;
    }
    return best;
}

static uint64_t gpus_choose(const struct simple_node *node, uint64_t free_gpus, uint32_t need)
{
    uint64_t from = gpus_of_neighbourhood(node->gpu_switch, node->gpu_count, free_gpus, need);
    if (!from)
        from = gpus_of_neighbourhood(node->gpu_numa, node->gpu_count, free_gpus, need);
    if (!from)
        from = free_gpus;
    uint64_t chosen = 0;
    for (uint32_t taken = 0; taken < need; taken++) {
        uint64_t lowest = from & -from;
        chosen |= lowest;
        from &= ~lowest;
    }
    return chosen;
}

static void slot_take(const struct search *search, size_t at, const struct demand *demand,
                      struct simple_slot *slot)
{
    const struct simple *simple = search->simple;
    *slot = (struct simple_slot){
        .node = (uint32_t)at,
        .cpu = demand->cpu,
        .memory_mib = demand->memory_mib,
        .gpus = demand->gpu
                    ? gpus_choose(&simple->nodes.items[at], simple->views[at].gpus, demand->gpu)
                    : 0,
    };
    bool fits = simple_view_take(simple, slot);
    assert(fits);
    (void)fits;
}

/* Best node for `need` more tasks at once; SIZE_MAX: none. */
static size_t node_choose(const struct search *search, const struct placement_member *member,
                          const struct demand *demand, uint32_t need)
{
    const struct simple *simple = search->simple;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < simple->nodes.count; i++) {
        if (view_room_for(&simple->views[i], demand, need) < need || !node_may(search, i, member))
            continue;
        if (!simple->compare)
            return i;
        if (best == SIZE_MAX || simple->compare(&simple->views[i], &simple->views[best]) < 0)
            best = i;
    }
    return best;
}

/* On that node, or (SIZE_MAX) on any. */
static bool member_place(const struct search *search, const struct placement_member *member,
                         size_t node, struct simple_slot *slots)
{
    struct demand demand = {member->cpu, member->gpu, member->memory_mib};
    bool is_together = *member->within_one_cell || node != SIZE_MAX;
    for (uint32_t i = 0; i < member->count; i++) {
        /* first fit: a node that was full for this demand stays full */
        bool stays = node != SIZE_MAX && (is_together || !search->simple->compare) &&
                     view_room_for(&search->simple->views[node], &demand, 1);
        if (!stays)
            node = node_choose(search, member, &demand, is_together ? member->count - i : 1);
        if (node == SIZE_MAX)
            return false;
        slot_take(search, node, &demand, &slots[i]);
    }
    return true;
}

static int compare_members(const struct placement_member *a, const struct placement_member *b)
{
    int order = compare_number(b->gpu, a->gpu);
    if (!order)
        order = compare_number(b->cpu, a->cpu);
    return order ? order : compare_number(b->memory_mib, a->memory_mib);
}

/* What all tasks of the gang need together; false: more than any node has. */
static bool gang_demand(const struct placement_request *request, struct demand *demand)
{
    uint64_t cpu = 0, gpu = 0;
    *demand = (struct demand){0};
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        cpu += (uint64_t)member->count * member->cpu;
        gpu += (uint64_t)member->count * member->gpu;
        demand->memory_mib += member->count * member->memory_mib;
    }
    demand->cpu = (uint32_t)cpu;
    demand->gpu = (uint32_t)gpu;
    return cpu <= UINT32_MAX && gpu <= PLACEMENT_GPUS_MAX;
}

/* The best node that holds the whole gang, as a cell is a node here. */
static bool gang_confine(const struct search *search, size_t *node)
{
    const struct simple *simple = search->simple;
    struct demand demand;
    *node = SIZE_MAX;
    if (!gang_demand(search->request, &demand))
        return false;
    for (size_t i = 0; i < simple->nodes.count; i++) {
        bool may = view_room_for(&simple->views[i], &demand, 1);
        for (size_t k = 0; k < search->request->member_count && may; k++)
            may = node_may(search, i, &search->request->members[k]);
        if (may &&
            (*node == SIZE_MAX ||
             (simple->compare && simple->compare(&simple->views[i], &simple->views[*node]) < 0)))
            *node = i;
    }
    return *node != SIZE_MAX;
}

/* Large tasks first: they have the fewest places. Slots stay in the order of the request. */
bool simple_gang_place(const struct search *search)
{
    const struct placement_request *request = search->request;
    enum { MEMBERS_MAX = 256 };
    size_t order[MEMBERS_MAX], first[MEMBERS_MAX], next = 0;
    assert(request->member_count <= MEMBERS_MAX);
    for (size_t i = 0; i < request->member_count; i++) {
        first[i] = next;
        next += request->members[i].count;
        size_t at = i;
        while (at > 0 &&
               compare_members(&request->members[i], &request->members[order[at - 1]]) < 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    size_t node = SIZE_MAX;
    if (request->within_one_cell && *request->within_one_cell && !gang_confine(search, &node))
        return false;
    for (size_t i = 0; i < request->member_count; i++)
        if (!member_place(search, &request->members[order[i]], node,
                          search->slots + first[order[i]]))
            return false;
    return true;
}

static bool is_preemptible(const struct simple_group *group,
                           const struct placement_request *request)
{
    return group->name && !group->is_waiting && group->priority < request->priority &&
           (group->priority < 0 || strcmp(group->virtual_cluster, request->virtual_cluster) == 0);
}

static void group_give_view(const struct simple *simple, const struct simple_group *group)
{
    for (size_t i = 0; i < group->slot_count; i++)
        if (group->slots[i].node != UINT32_MAX)
            view_give(simple, &group->slots[i]);
}

/* Views with everything free except what `keeps` of the groups says. */
static bool try_without(const struct search *search, const bool *is_victim)
{
    struct simple *simple = search->simple;
    simple_views_fill(simple, false);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (is_victim[i])
            group_give_view(simple, &simple->groups.items[i]);
    simple_views_keep(simple, search->request->group);
    return simple_gang_place(search);
}

static size_t victim_choose(const struct simple *simple, const struct placement_request *request,
                            const bool *is_victim)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < simple->groups.count; i++)
        if (!is_victim[i] && is_preemptible(&simple->groups.items[i], request) &&
            (best == SIZE_MAX ||
             simple->groups.items[i].priority < simple->groups.items[best].priority))
            best = i;
    return best;
}

/* As few as a greedy search finds: lowest priority first until it fits, then each is spared that
 * can be. */
bool simple_victims_find(const struct search *search, bool *is_victim)
{
    struct simple *simple = search->simple;
    bool fits = false, has_lower = false;
    for (uint32_t i = 0; i < priority_index(search->request->priority) && !has_lower; i++)
        has_lower = simple->by_priority[i];
    if (!has_lower)
        return false;
    for (size_t i = 0; i < simple->groups.count; i++)
        is_victim[i] = is_preemptible(&simple->groups.items[i], search->request);
    if (!try_without(search, is_victim))
        return false;
    memset(is_victim, 0, simple->groups.count * sizeof *is_victim);
    while (!fits) {
        size_t next = victim_choose(simple, search->request, is_victim);
        assert(next != SIZE_MAX);
        is_victim[next] = true;
        fits = try_without(search, is_victim);
    }
    for (size_t i = 0; i < simple->groups.count; i++) {
        if (!is_victim[i])
            continue;
        is_victim[i] = false;
        is_victim[i] = !try_without(search, is_victim);
    }
    fits = try_without(search, is_victim);
    assert(fits);
    return true;
}
