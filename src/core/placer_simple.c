#include "core/placer_simple.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"

struct demand {
    uint32_t cpu, gpu;
    uint64_t memory_mib;
};

struct simple_node {
    bool is_known, is_healthy;
    char *name, *gpu_type;
    uint32_t cpu, cpu_used;
    uint64_t memory_mib, memory_used;
    uint32_t gpu_count;
    uint64_t gpus_free; /* a bit for each device */
    uint16_t *gpu_numa, *gpu_switch;
};

struct simple_slot {
    uint32_t node; /* UINT32_MAX: released */
    uint32_t cpu;
    uint64_t memory_mib, gpus;
};

struct simple_group {
    char *name, *virtual_cluster; /* name NULL: free entry */
    int32_t priority;
    bool is_waiting; /* preempting: the slots are kept for it, not yet its own */
    struct simple_slot *slots;
    size_t slot_count, live;
    char **victims; /* of a waiting group: the names of those that must go first */
    size_t victim_count;
};

/* What is free of a node for one search: the truth changed by what is tried. */
struct view {
    uint32_t cpu;
    uint64_t memory_mib, gpus;
};

typedef int view_compare_fn(const struct view *a, const struct view *b);

struct simple {
    struct placer placer;
    view_compare_fn *compare; /* NULL: lowest id */
    struct {
        struct simple_node *items;
        size_t count, room;
    } nodes;
    struct {
        struct simple_group *items;
        size_t count, room;
    } groups;
    struct text_map names;
    struct view *views; /* scratch, one a node */
    size_t view_room;
};

static struct simple *simple_of(struct placer *placer)
{
    return (struct simple *)placer;
}

static uint32_t bit_count(uint64_t bits)
{
    return (uint32_t)__builtin_popcountll(bits);
}

static uint64_t gpu_mask(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* --- nodes --- */

static void node_release(struct simple_node *node)
{
    mem_free(node->name);
    mem_free(node->gpu_type);
    mem_free(node->gpu_numa);
    mem_free(node->gpu_switch);
    *node = (struct simple_node){0};
}

static uint16_t *numbers_copy(const uint16_t *numbers, uint32_t count)
{
    if (!numbers || !count)
        return NULL;
    uint16_t *copy = mem_alloc(mem_size(count, sizeof *copy));
    memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

static void node_take(struct simple_node *node, const struct simple_slot *slot)
{
    node->cpu_used += slot->cpu;
    node->memory_used += slot->memory_mib;
    node->gpus_free &= ~slot->gpus;
}

static void node_give(struct simple_node *node, const struct simple_slot *slot)
{
    node->cpu_used -= slot->cpu;
    node->memory_used -= slot->memory_mib;
    node->gpus_free |= slot->gpus & gpu_mask(node->gpu_count);
}

static int simple_node_set(struct placer *placer, const struct placement_node *from,
                           struct err *err)
{
    (void)err;
    struct simple *simple = simple_of(placer);
    while (simple->nodes.count <= from->id.v)
        ARRAY_ADD(&simple->nodes);
    struct simple_node *node = &simple->nodes.items[from->id.v];
    uint32_t cpu_used = node->cpu_used;
    uint64_t memory_used = node->memory_used;
    node_release(node);
    uint32_t gpu_count =
        from->gpu_count < PLACEMENT_GPUS_MAX ? from->gpu_count : PLACEMENT_GPUS_MAX;
    *node = (struct simple_node){
        .is_known = true,
        .is_healthy = from->is_healthy,
        .name = mem_copy(from->name),
        .gpu_type = mem_copy(from->gpu_type ? from->gpu_type : ""),
        .cpu = from->cpu,
        .cpu_used = cpu_used,
        .memory_mib = from->memory_mib,
        .memory_used = memory_used,
        .gpu_count = gpu_count,
        .gpus_free = gpu_mask(gpu_count),
        .gpu_numa = numbers_copy(from->gpu_numa, gpu_count),
        .gpu_switch = numbers_copy(from->gpu_switch, gpu_count),
    };
    for (size_t i = 0; i < simple->groups.count; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        for (size_t j = 0; group->name && !group->is_waiting && j < group->slot_count; j++)
            if (group->slots[j].node == from->id.v)
                node->gpus_free &= ~group->slots[j].gpus;
    }
    return 0;
}

static void simple_node_remove(struct placer *placer, struct node_id id)
{
    struct simple *simple = simple_of(placer);
    if (id.v < simple->nodes.count)
        node_release(&simple->nodes.items[id.v]);
}

/* --- groups --- */

static struct simple_group *group_find(struct simple *simple, const char *name)
{
    uint32_t at = text_map_get(&simple->names, text_of(name));
    return at == MAP_NONE ? NULL : &simple->groups.items[at];
}

static struct simple_group *group_add(struct simple *simple,
                                      const struct placement_request *request, size_t slot_count)
{
    size_t at = 0;
    while (at < simple->groups.count && simple->groups.items[at].name)
        at++;
    if (at == simple->groups.count)
        ARRAY_ADD(&simple->groups);
    assert(simple->groups.items);
    struct simple_group *group = &simple->groups.items[at];
    *group = (struct simple_group){
        .name = mem_copy(request->group),
        .virtual_cluster = mem_copy(request->virtual_cluster),
        .priority = request->priority,
        .slots = mem_zero(slot_count, sizeof *group->slots),
        .slot_count = slot_count,
        .live = slot_count,
    };
    text_map_set(&simple->names, text_of(group->name), (uint32_t)at);
    return group;
}

static void group_drop(struct simple *simple, struct simple_group *group)
{
    text_map_remove(&simple->names, text_of(group->name));
    mem_free(group->name);
    mem_free(group->virtual_cluster);
    mem_free(group->slots);
    for (size_t i = 0; i < group->victim_count; i++)
        mem_free(group->victims[i]);
    mem_free(group->victims);
    *group = (struct simple_group){0};
}

static void simple_release_slot(struct placer *placer, const char *name, size_t slot)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = group_find(simple, name);
    if (!group || group->is_waiting || slot >= group->slot_count ||
        group->slots[slot].node == UINT32_MAX)
        return;
    node_give(&simple->nodes.items[group->slots[slot].node], &group->slots[slot]);
    group->slots[slot].node = UINT32_MAX;
    if (--group->live == 0)
        group_drop(simple, group);
}

static void simple_release_group(struct placer *placer, const char *name)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = group_find(simple, name);
    if (!group)
        return;
    for (size_t i = 0; !group->is_waiting && i < group->slot_count; i++)
        if (group->slots[i].node != UINT32_MAX)
            node_give(&simple->nodes.items[group->slots[i].node], &group->slots[i]);
    group_drop(simple, group);
}

static void simple_cancel(struct placer *placer, const char *name)
{
    struct simple_group *group = group_find(simple_of(placer), name);
    if (group && group->is_waiting)
        group_drop(simple_of(placer), group);
}

/* --- search --- */

static int compare_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_least(const struct view *a, const struct view *b)
{
    int order = compare_number(bit_count(a->gpus), bit_count(b->gpus));
    if (!order)
        order = compare_number(a->cpu, b->cpu);
    return order ? order : compare_number(a->memory_mib, b->memory_mib);
}

static int compare_most(const struct view *a, const struct view *b)
{
    return compare_least(b, a);
}

struct search {
    struct simple *simple;
    const struct placement_request *request;
    bool avoids, ignores_health;
    struct simple_slot *slots; /* the result */
};

static uint64_t saturated(uint64_t total, uint64_t used)
{
    return total > used ? total - used : 0;
}

static void views_fill(struct simple *simple, bool is_empty)
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
                                saturated(node->memory_mib, node->memory_used), node->gpus_free};
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

static bool view_take(const struct simple *simple, const struct simple_slot *slot)
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
static void views_keep_waiting(const struct simple *simple, const char *except)
{
    for (size_t i = 0; i < simple->groups.count; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        if (!group->name || !group->is_waiting || strcmp(group->name, except) == 0)
            continue;
        for (size_t j = 0; j < group->slot_count; j++)
            view_take(simple, &group->slots[j]);
    }
}

static bool type_fits(const char *wanted, const char *type)
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
           type_fits(member->sku_type, node->gpu_type) &&
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
    bool fits = view_take(simple, slot);
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

static bool member_place(const struct search *search, const struct placement_member *member,
                         struct simple_slot *slots)
{
    struct demand demand = {member->cpu, member->gpu, member->memory_mib};
    bool is_together = member->within_one_cell && *member->within_one_cell;
    size_t node = SIZE_MAX;
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

/* Large tasks first: they have the fewest places. Slots stay in the order of the request. */
static bool gang_place(const struct search *search)
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
    for (size_t i = 0; i < request->member_count; i++)
        if (!member_place(search, &request->members[order[i]], search->slots + first[order[i]]))
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
    views_fill(simple, false);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (is_victim[i])
            group_give_view(simple, &simple->groups.items[i]);
    views_keep_waiting(simple, search->request->group);
    return gang_place(search);
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
static bool victims_find(const struct search *search, bool *is_victim)
{
    struct simple *simple = search->simple;
    bool fits = false;
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

/* --- results --- */

static void result_bind(const struct simple_slot *slots, size_t count, struct arena *arena,
                        struct placement_result *result)
{
    result->kind = PLACEMENT_BIND;
    result->slot_count = count;
    result->slots = ARENA_ARRAY(arena, struct placement_slot, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct placement_slot *slot = &result->slots[i];
        slot->node.v = slots[i].node;
        for (uint64_t gpus = slots[i].gpus; gpus; gpus &= gpus - 1)
            slot->gpus[slot->gpu_count++] = (uint16_t)__builtin_ctzll(gpus);
    }
}

static void result_preempt(const struct simple *simple, const bool *is_victim, struct arena *arena,
                           struct placement_result *result)
{
    result->kind = PLACEMENT_PREEMPT;
    result->victims = ARENA_ARRAY(arena, const char *, simple->groups.count + 1);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (is_victim[i])
            result->victims[result->victim_count++] =
                arena_copy(arena, text_of(simple->groups.items[i].name));
}

static void holders_write(const struct simple *simple, struct buf *out)
{
    enum { NAMED_MAX = 3 };
    size_t named = 0, holders = 0;
    for (size_t i = 0; i < simple->groups.count; i++)
        holders += simple->groups.items[i].name && !simple->groups.items[i].is_waiting;
    for (size_t i = 0; i < simple->groups.count && named < NAMED_MAX; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        if (!group->name || group->is_waiting)
            continue;
        buf_format(out, "%s%s", named++ ? ", " : "; held by ", group->name);
    }
    if (holders > named)
        buf_format(out, " and %zu more", holders - named);
}

static void reason_write(const struct simple *simple, const struct placement_request *request,
                         bool is_never, struct buf *out)
{
    uint64_t need_cpu = 0, need_mib = 0, need_gpu = 0, cpu = 0, mib = 0, gpu = 0;
    uint64_t all_cpu = 0, all_mib = 0, all_gpu = 0;
    size_t healthy = 0;
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        need_cpu += (uint64_t)member->count * member->cpu;
        need_mib += member->count * member->memory_mib;
        need_gpu += (uint64_t)member->count * member->gpu;
    }
    for (size_t i = 0; i < simple->nodes.count; i++) {
        const struct simple_node *node = &simple->nodes.items[i];
        if (!node->is_known || !node->is_healthy)
            continue;
        healthy++;
        cpu += saturated(node->cpu, node->cpu_used);
        mib += saturated(node->memory_mib, node->memory_used);
        gpu += bit_count(node->gpus_free);
        all_cpu += node->cpu;
        all_mib += node->memory_mib;
        all_gpu += node->gpu_count;
    }
    buf_format(out,
               "%sneeds %llu CPUs, %llu MiB, %llu GPUs; free on %zu healthy nodes: %llu of %llu "
               "CPUs, %llu of %llu MiB, %llu of %llu GPUs",
               is_never ? "more than the nodes have: " : "", (unsigned long long)need_cpu,
               (unsigned long long)need_mib, (unsigned long long)need_gpu, healthy,
               (unsigned long long)cpu, (unsigned long long)all_cpu, (unsigned long long)mib,
               (unsigned long long)all_mib, (unsigned long long)gpu, (unsigned long long)all_gpu);
    if (!is_never)
        holders_write(simple, out);
}

static void result_wait(const struct search *search, struct arena *arena,
                        struct placement_result *result)
{
    struct search empty = *search;
    empty.avoids = false;
    empty.ignores_health = true;
    views_fill(search->simple, true);
    struct buf reason = BUF_INIT;
    result->kind = PLACEMENT_WAIT;
    result->is_never = !gang_place(&empty);
    reason_write(search->simple, search->request, result->is_never, &reason);
    result->reason = arena_copy(arena, buf_as_text(&reason));
    buf_release(&reason);
}

static size_t request_size(const struct placement_request *request)
{
    size_t count = 0;
    for (size_t i = 0; i < request->member_count; i++)
        count += request->members[i].count;
    return count;
}

/* A group that preempts: are its places free by now, or will they be? False: start again. */
static bool waiting_place(struct simple *simple, const struct simple_group *group,
                          struct arena *arena, struct placement_result *result)
{
    result->victims = ARENA_ARRAY(arena, const char *, group->victim_count + 1);
    for (size_t i = 0; i < group->victim_count; i++)
        if (group_find(simple, group->victims[i]))
            result->victims[result->victim_count++] = arena_copy(arena, text_of(group->victims[i]));
    bool fits = true;
    views_fill(simple, false);
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct simple_node *node = &simple->nodes.items[group->slots[i].node];
        if (!node->is_known || !node->is_healthy)
            return false;
        fits = view_take(simple, &group->slots[i]) && fits;
    }
    if (fits)
        result_bind(group->slots, group->slot_count, arena, result);
    else
        result->kind = PLACEMENT_PREEMPT;
    return fits || result->victim_count > 0;
}

static void waiting_add(struct simple *simple, const struct search *search, size_t slot_count,
                        const struct placement_result *result)
{
    struct simple_group *group = group_add(simple, search->request, slot_count);
    memcpy(group->slots, search->slots, slot_count * sizeof *group->slots);
    group->is_waiting = true;
    group->victims = mem_zero(result->victim_count, sizeof *group->victims);
    for (size_t i = 0; i < result->victim_count; i++)
        group->victims[group->victim_count++] = mem_copy(result->victims[i]);
}

static bool free_place(struct search *search)
{
    for (int pass = search->request->avoid_count ? 0 : 1; pass < 2; pass++) {
        search->avoids = pass == 0;
        views_fill(search->simple, false);
        views_keep_waiting(search->simple, search->request->group);
        if (gang_place(search))
            return true;
    }
    return false;
}

static int simple_place(struct placer *placer, const struct placement_request *request,
                        struct arena *arena, struct placement_result *result, struct err *err)
{
    struct simple *simple = simple_of(placer);
    *result = (struct placement_result){0};
    if (request->pinned_cell_id && *request->pinned_cell_id)
        return err_fail(err, ERR_NOT_FOUND, "pinnedCellId", "there is no pinned cell %s: policy %s",
                        request->pinned_cell_id, placer->ops->name);
    for (size_t i = 0; i < request->member_count; i++)
        if (request->members[i].gpu > PLACEMENT_GPUS_MAX)
            return err_fail(err, ERR_INVALID, "gpu", "must be at most %d, got %u",
                            PLACEMENT_GPUS_MAX, request->members[i].gpu);
    struct simple_group *waiting = group_find(simple, request->group);
    assert(!waiting || waiting->is_waiting);
    if (waiting) {
        if (waiting_place(simple, waiting, arena, result))
            return 0;
        group_drop(simple, waiting);
        *result = (struct placement_result){0};
    }
    size_t count = request_size(request);
    struct search search = {.simple = simple, .request = request};
    search.slots = ARENA_ARRAY(arena, struct simple_slot, count + 1);
    bool *is_victim = ARENA_ARRAY(arena, bool, simple->groups.count + 1);
    if (free_place(&search)) {
        result_bind(search.slots, count, arena, result);
    } else if (victims_find(&search, is_victim)) {
        result_preempt(simple, is_victim, arena, result);
        if (request->may_preempt)
            waiting_add(simple, &search, count, result);
    } else {
        result_wait(&search, arena, result);
    }
    return 0;
}

static const struct placement_member *member_of(const struct placement_request *request,
                                                size_t slot)
{
    size_t i = 0;
    while (slot >= request->members[i].count) {
        slot -= request->members[i++].count;
        assert(i < request->member_count);
    }
    return &request->members[i];
}

static bool slot_fits(const struct simple *simple, const struct simple_slot *slot)
{
    const struct simple_node *node = &simple->nodes.items[slot->node];
    return node->is_known && saturated(node->cpu, node->cpu_used) >= slot->cpu &&
           saturated(node->memory_mib, node->memory_used) >= slot->memory_mib &&
           (node->gpus_free & slot->gpus) == slot->gpus;
}

static int simple_commit(struct placer *placer, const struct placement_request *request,
                         const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                         struct err *err)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = group_find(simple, request->group);
    assert(slot_count == request_size(request));
    if (group)
        group_drop(simple, group); /* the one that waited for these slots */
    group = group_add(simple, request, slot_count);
    bool fits = true;
    for (size_t i = 0; i < slot_count; i++) {
        const struct placement_member *member = member_of(request, i);
        struct simple_slot *slot = &group->slots[i];
        *slot = (struct simple_slot){slots[i].node.v, member->cpu, member->memory_mib, 0};
        for (size_t j = 0; j < slots[i].gpu_count; j++)
            slot->gpus |= slots[i].gpus[j] < 64 ? UINT64_C(1) << slots[i].gpus[j] : 0;
        if (slot->node >= simple->nodes.count) {
            assert(slots[i].node.v == NODE_NONE.v && is_recovery);
            slot->node = UINT32_MAX;
            group->live--;
            continue;
        }
        fits = slot_fits(simple, slot) && fits;
        node_take(&simple->nodes.items[slot->node], slot);
    }
    if (!fits && !is_recovery) {
        simple_release_group(placer, request->group);
        return err_fail(err, ERR_CONFLICT, request->group, "its slots are no longer free");
    }
    if (!group->live)
        group_drop(simple, group);
    return 0;
}

/* --- life --- */

static void simple_free(struct placer *placer)
{
    struct simple *simple = simple_of(placer);
    if (!simple)
        return;
    for (size_t i = 0; i < simple->nodes.count; i++)
        node_release(&simple->nodes.items[i]);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (simple->groups.items[i].name)
            group_drop(simple, &simple->groups.items[i]);
    ARRAY_FREE(&simple->nodes);
    ARRAY_FREE(&simple->groups);
    text_map_release(&simple->names);
    mem_free(simple->views);
    mem_free(simple);
}

static void node_copy(struct simple_node *to, const struct simple_node *from)
{
    *to = *from;
    if (!from->is_known)
        return;
    to->name = mem_copy(from->name);
    to->gpu_type = mem_copy(from->gpu_type);
    to->gpu_numa = numbers_copy(from->gpu_numa, from->gpu_count);
    to->gpu_switch = numbers_copy(from->gpu_switch, from->gpu_count);
}

static void group_copy(struct simple_group *to, const struct simple_group *from)
{
    *to = *from;
    if (!from->name)
        return;
    to->name = mem_copy(from->name);
    to->virtual_cluster = mem_copy(from->virtual_cluster);
    to->slots = mem_zero(from->slot_count, sizeof *to->slots);
    memcpy(to->slots, from->slots, from->slot_count * sizeof *to->slots);
    to->victims = from->victim_count ? mem_zero(from->victim_count, sizeof *to->victims) : NULL;
    for (size_t i = 0; i < from->victim_count; i++)
        to->victims[i] = mem_copy(from->victims[i]);
}

static struct placer *simple_copy(const struct placer *placer)
{
    const struct simple *from = (const struct simple *)placer;
    struct simple *to = mem_zero(1, sizeof *to);
    to->placer = from->placer;
    to->compare = from->compare;
    ARRAY_RESERVE(&to->nodes, from->nodes.count);
    for (size_t i = 0; i < from->nodes.count; i++)
        node_copy(&to->nodes.items[i], &from->nodes.items[i]);
    to->nodes.count = from->nodes.count;
    ARRAY_RESERVE(&to->groups, from->groups.count);
    for (size_t i = 0; i < from->groups.count; i++) {
        group_copy(&to->groups.items[i], &from->groups.items[i]);
        if (to->groups.items[i].name)
            text_map_set(&to->names, text_of(to->groups.items[i].name), (uint32_t)i);
    }
    to->groups.count = from->groups.count;
    return &to->placer;
}

#define SIMPLE_OPS(policy)                                                                         \
    {                                                                                              \
        .name = (policy), .free = simple_free, .node_set = simple_node_set,                        \
        .node_remove = simple_node_remove, .place = simple_place, .commit = simple_commit,         \
        .release_slot = simple_release_slot, .release_group = simple_release_group,                \
        .cancel = simple_cancel, .copy = simple_copy,                                              \
    }

static const struct {
    struct placer_ops ops;
    view_compare_fn *compare;
} policies[] = {
    {SIMPLE_OPS("first-fit"), NULL},
    {SIMPLE_OPS("best-fit"), compare_least},
    {SIMPLE_OPS("spread"), compare_most},
};

struct placer *placer_simple_new(const char *policy)
{
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        if (strcmp(policies[i].ops.name, policy) != 0)
            continue;
        struct simple *simple = mem_zero(1, sizeof *simple);
        simple->placer.ops = &policies[i].ops;
        simple->compare = policies[i].compare;
        return &simple->placer;
    }
    return NULL;
}
