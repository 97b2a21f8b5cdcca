/* Whose end would make room for a gang. Each try is "does it fit without these?", asked once for
 * each group that may be ended; so what fits is counted, node by node, instead of placed. For a
 * gang of equal tasks, or one that lies on one node, the count is the answer. For others it is a
 * bound from both sides, and only between the two the gang is really placed. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "placement/simple_parts.h"

/* Equal tasks of the gang. */
struct need {
    const struct placement_member *member; /* NULL: all members on one node */
    struct demand demand;
    uint64_t count;
    bool is_together; /* on one node: room is a number of nodes, count is 1 */
    uint32_t tasks;   /* a node has room when it has it for so many at once */
    uint64_t lost;    /* the most that tasks placed before may take of the room */
    uint64_t room;    /* with the victims of this try; more than count and lost do not matter */
};

struct trial {
    const struct simple_search *search;
    struct simple *simple;
    struct arena *arena;
    struct need *needs;
    size_t need_count;
    struct simple_view *saved;
};

/* --- what a node offers --- */

static bool extra_is_none(const struct simple_share *extra)
{
    return !(extra->cpu | extra->memory_mib | extra->gpus);
}

static void view_update(const struct trial *trial, uint32_t at)
{
    const struct simple_node *node = &trial->simple->nodes.items[at];
    const struct simple_share *extra = &trial->simple->extra[at];
    assert(node->cpu_used >= extra->cpu && node->memory_used >= extra->memory_mib);
    const uint64_t back = extra->gpus & gpu_mask(node->facts.gpu_count) & ~node->gpus_lost;
    const struct simple_view free = {
        .cpu = (uint32_t)saturated(node->facts.cpu, node->cpu_used - extra->cpu),
        .memory_mib = saturated(node->facts.memory_mib, node->memory_used - extra->memory_mib),
        .gpus = gpus_free(node) | back,
    };
    trial->simple->views[at] = simple_view_less(free, &trial->simple->kept[at]);
}

/* May its tasks be on the node? */
static bool node_may(const struct trial *trial, const struct need *need, uint32_t at)
{
    const struct placement_request *request = trial->search->request;
    if (need->member)
        return simple_node_may(trial->search, at, need->member);
    for (size_t i = 0; i < request->member_count; i++)
        if (!simple_node_may(trial->search, at, &request->members[i]))
            return false;
    return true;
}

static uint64_t room_of_node(const struct trial *trial, const struct need *need, uint32_t at)
{
    assert(at < trial->simple->nodes.count);
    uint64_t room = simple_view_room(&trial->simple->views[at], &need->demand, need->tasks);
    if (need->is_together)
        room = room >= need->tasks;
    return room > 0 && node_may(trial, need, at) ? room : 0;
}

static void node_count(const struct trial *trial, uint32_t at, bool is_added)
{
    for (size_t i = 0; i < trial->need_count; i++) {
        struct need *need = &trial->needs[i];
        const uint64_t room = room_of_node(trial, need, at);
        assert(is_added || need->room >= room);
        need->room = is_added ? need->room + room : need->room - room;
    }
}

static void nodes_count(const struct trial *trial)
{
    const struct simple_share *extra = trial->simple->extra;
    for (size_t i = 0; i < trial->need_count; i++)
        trial->needs[i].room = 0;
    simple_views_fill(trial->simple, trial->simple->offered);
    for (uint32_t at = 0; at < trial->simple->nodes.count; at++) {
        if (!extra_is_none(&extra[at]))
            view_update(trial, at);
        node_count(trial, at, true);
    }
}

/* --- groups --- */

static void slot_give(const struct trial *trial, const struct simple_slot *slot, bool is_given)
{
    assert(slot->node == UINT32_MAX || slot->node < trial->simple->nodes.count);
    struct simple_share *extra = &trial->simple->extra[slot->node];
    const uint64_t cpu = slot->cpu;
    extra->cpu = is_given ? extra->cpu + cpu : extra->cpu - cpu;
    extra->memory_mib =
        is_given ? extra->memory_mib + slot->memory_mib : extra->memory_mib - slot->memory_mib;
    extra->gpus = is_given ? extra->gpus | slot->gpus : extra->gpus & ~slot->gpus;
}

/* The group becomes a victim of the try, or is spared again. */
static void group_give(const struct trial *trial, const struct simple_group *group, bool is_given)
{
    assert(group->name);
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct simple_slot *slot = &group->slots[i];
        if (slot->node == UINT32_MAX)
            continue;
        node_count(trial, slot->node, false);
        slot_give(trial, slot, is_given);
        view_update(trial, slot->node);
        node_count(trial, slot->node, true);
    }
}

/* --- what the gang needs --- */

static uint64_t sum_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t product_saturated(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t units(uint64_t taken, uint64_t unit)
{
    return unit ? taken / unit + (taken % unit != 0) : 0;
}

/* Of how many tasks of one demand a task of another may take the room. */
static uint64_t tasks_hindered(const struct demand *by, const struct demand *of)
{
    const uint64_t cpu = units(by->cpu, of->cpu), gpu = units(by->gpu, of->gpu),
                   memory = units(by->memory_mib, of->memory_mib);
    const uint64_t most = cpu > gpu ? cpu : gpu;
    return most > memory ? most : memory;
}

static void lost_fill(struct need *needs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct need *need = &needs[i];
        for (size_t j = 0; j < count; j++) {
            const struct need *other = &needs[j];
            if (i == j || !other->member || simple_member_compare(other->member, need->member) > 0)
                continue;
            const uint64_t tasks = other->is_together ? other->tasks : other->count;
            const uint64_t each =
                need->is_together ? 1 : tasks_hindered(&other->demand, &need->demand);
            need->lost = sum_saturated(need->lost, product_saturated(tasks, each));
        }
        /* more than that on one node says no more */
        const uint64_t enough = sum_saturated(need->count, need->lost);
        if (!need->is_together)
            need->tasks = enough < UINT32_MAX ? (uint32_t)enough : UINT32_MAX;
    }
}

static struct need *need_of(struct need *needs, size_t count, const struct placement_member *member)
{
    for (size_t i = 0; i < count; i++)
        if (!needs[i].is_together && !*member->within_one_cell &&
            simple_member_compare(needs[i].member, member) == 0 &&
            strcmp(needs[i].member->sku_type, member->sku_type) == 0)
            return &needs[i];
    return NULL;
}

static void need_add(struct trial *trial, const struct placement_member *member)
{
    assert(member->count > 0);
    struct need *need = need_of(trial->needs, trial->need_count, member);
    if (!member->count)
        return;
    if (!need) {
        need = &trial->needs[trial->need_count++];
        *need = (struct need){
            .member = member,
            .demand = {member->cpu, member->gpu, member->memory_mib},
            .is_together = *member->within_one_cell,
        };
    }
    need->count = need->is_together ? 1 : need->count + member->count;
    need->tasks = need->is_together ? member->count : 0; /* else: lost_fill */
}

/* False: more than any node has. */
static bool needs_fill(struct trial *trial)
{
    const struct placement_request *request = trial->search->request;
    trial->needs = ARENA_ARRAY(trial->arena, struct need, request->member_count + 1);
    if (request->within_one_cell && *request->within_one_cell) {
        struct need *whole = &trial->needs[trial->need_count++];
        *whole = (struct need){.count = 1, .is_together = true, .tasks = 1};
        if (!simple_gang_demand(request, &whole->demand))
            return false;
    } else {
        for (size_t i = 0; i < request->member_count; i++)
            need_add(trial, &request->members[i]);
        lost_fill(trial->needs, trial->need_count);
    }
    return true;
}

/* --- the search --- */

static bool trial_places(struct trial *trial)
{
    const size_t size = trial->simple->nodes.count * sizeof *trial->saved;
    if (!trial->saved)
        trial->saved = ARENA_ARRAY(trial->arena, struct simple_view, trial->simple->nodes.count);
    memcpy(trial->saved, trial->simple->views, size);
    const bool fits = simple_gang_place(trial->search);
    memcpy(trial->simple->views, trial->saved, size);
    return fits;
}

static bool trial_fits(struct trial *trial)
{
    bool is_certain = true;
    for (size_t i = 0; i < trial->need_count; i++) {
        const struct need *need = &trial->needs[i];
        if (need->room < need->count)
            return false;
        is_certain = is_certain && need->room >= sum_saturated(need->count, need->lost);
    }
    return is_certain || trial_places(trial);
}

static bool is_preemptible(const struct simple_group *group, int32_t priority, uint32_t cluster)
{
    return group->name && !group->is_waiting && group->priority < priority &&
           (group->priority < 0 || group->cluster == cluster);
}

/* Groups that may be ended, lowest priority first, then in the order of the table. */
static uint32_t *candidates_list(const struct trial *trial, size_t *count)
{
    const struct simple *simple = trial->simple;
    const struct placement_request *request = trial->search->request;
    uint32_t next[PRIORITIES], sum = 0;
    const uint32_t end = priority_index(request->priority);
    for (uint32_t i = 0; i < end; i++) {
        next[i] = sum;
        sum += simple->by_priority[i];
    }
    *count = 0;
    uint32_t *sorted = ARENA_ARRAY(trial->arena, uint32_t, sum + 1u);
    if (!sum)
        return sorted;
    memset(sorted, 0xff, sum * sizeof *sorted);
    const uint32_t cluster =
        text_map_get(&simple->cluster_index, text_of(request->virtual_cluster));
    for (size_t i = 0; i < simple->groups.count; i++)
        if (is_preemptible(&simple->groups.items[i], request->priority, cluster))
            sorted[next[priority_index(simple->groups.items[i].priority)]++] = (uint32_t)i;
    for (uint32_t i = 0; i < sum; i++)
        if (sorted[i] != UINT32_MAX) /* of another virtual cluster */
            sorted[(*count)++] = sorted[i];
    return sorted;
}

/* Is it known by counting alone whether the gang fits? Then it fits with more victims if it does
 * with fewer. */
static bool trial_counts(const struct trial *trial)
{
    return trial->need_count == 1 && !trial->needs[0].lost;
}

static void extra_clear(const struct trial *trial)
{
    const struct simple *simple = trial->simple;
    memset(simple->extra, 0, simple->nodes.count * sizeof *simple->extra);
}

/* Would the end of all of them do? Leaves none of them a victim. */
static bool all_fit(struct trial *trial, const uint32_t *candidates, size_t count)
{
    assert(count == 0 || candidates);
    const struct simple *simple = trial->simple;
    for (size_t i = 0; i < count; i++) {
        const struct simple_group *group = &simple->groups.items[candidates[i]];
        for (size_t j = 0; j < group->slot_count; j++)
            if (group->slots[j].node != UINT32_MAX)
                slot_give(trial, &group->slots[j], true);
    }
    nodes_count(trial);
    const bool fits = trial_fits(trial);
    extra_clear(trial);
    return fits;
}

/* One after the other, from `next` on, until it fits. */
static bool victims_add(struct trial *trial, const uint32_t *candidates, size_t next, size_t count,
                        bool *is_victim)
{
    do {
        if (next == count)
            return false;
        is_victim[candidates[next]] = true;
        group_give(trial, &trial->simple->groups.items[candidates[next++]], true);
    } while (!trial_fits(trial));
    return true;
}

/* If the others bring as much as the first `tried` have, which had `before`: will a quarter do? */
static bool quarter_does(const struct need *need, uint64_t before, size_t tried, size_t count)
{
    assert(tried > 0 && need->room >= before && need->count > need->room);
    const uint64_t gain = need->room - before, left = need->count - need->room;
    return gain * (count / 4) / tried >= left;
}

/* Each without which it fits as well. */
static void victims_spare(struct trial *trial, bool *is_victim)
{
    const struct simple *simple = trial->simple;
    for (size_t i = 0; i < simple->groups.count; i++) {
        if (!is_victim[i])
            continue;
        group_give(trial, &simple->groups.items[i], false);
        is_victim[i] = !trial_fits(trial);
        if (is_victim[i])
            group_give(trial, &simple->groups.items[i], true);
    }
}

/* Mostly a few will do: then nobody has to know whether all would. */
static bool victims_choose(struct trial *trial, const uint32_t *candidates, size_t count,
                           bool *is_victim)
{
    enum { FEW = 256 };
    if (trial_counts(trial)) {
        nodes_count(trial);
        const uint64_t before = trial->needs[0].room;
        if (victims_add(trial, candidates, 0, count < FEW ? count : FEW, is_victim))
            return true;
        if (count <= FEW)
            return false;
        if (quarter_does(&trial->needs[0], before, FEW, count))
            return victims_add(trial, candidates, FEW, count, is_victim);
        extra_clear(trial);
        memset(is_victim, 0, trial->simple->groups.count * sizeof *is_victim);
    }
    if (!all_fit(trial, candidates, count))
        return false;
    nodes_count(trial);
    return victims_add(trial, candidates, 0, count, is_victim);
}

bool simple_victims_choose(const struct simple_search *search, bool *is_victim, struct arena *arena)
{
    struct simple *simple = search->simple;
    struct trial trial = {.search = search, .simple = simple, .arena = arena};
    size_t count;
    const uint32_t *candidates = candidates_list(&trial, &count);
    if (!count || !needs_fill(&trial))
        return false;
    const bool fits = victims_choose(&trial, candidates, count, is_victim);
    if (fits)
        victims_spare(&trial, is_victim);
    memset(simple->extra, 0, simple->nodes.count * sizeof *simple->extra);
    return fits;
}

bool simple_victims_find(const struct simple_search *search, bool *is_victim, struct arena *arena)
{
    if (!simple_victims_choose(search, is_victim, arena))
        return false;
    const bool fits = simple_gang_place(search);
    assert(fits);
    return fits;
}
