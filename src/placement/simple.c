#include "placement/simple.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/reason.h"
#include "placement/simple_choice.h"
#include "placement/simple_parts.h"
#include "placement/simple_result.h"
#include "placement/simple_share.h"
#include "placement/simple_victims.h"

static struct simple *simple_of(struct placer *placer)
{
    return (struct simple *)placer;
}

/* --- nodes --- */

/* The node joins its like, or leaves it. */
static void kind_count(struct simple *simple, uint32_t at, bool is_added)
{
    const struct simple_node *node = &simple->nodes.items[at];
    struct simple_kind *kind = &simple->kinds.items[simple->kind_of[at]];
    const uint64_t by = is_added ? 1 : UINT64_MAX; /* minus one, modulo 2^64 */
    assert(node->is_known);
    kind->suitable += by;
    if (!node->facts.is_healthy)
        return;
    kind->healthy += by;
    kind->all_cpu += by * node->facts.cpu;
    kind->all_mib += by * node->facts.memory_mib;
    kind->all_gpu += by * node->facts.gpu_count;
}

static uint32_t kind_find(struct simple *simple, const struct node_facts *facts)
{
    for (size_t i = 0; i < simple->kinds.count; i++)
        if (strcmp(simple->kinds.items[i].type, facts->gpu_type) == 0 &&
            strcmp(simple->kinds.items[i].engine, facts->engine) == 0)
            return (uint32_t)i;
    struct simple_kind *kind = ARRAY_ADD(&simple->kinds);
    kind->type = mem_copy(facts->gpu_type);
    kind->engine = mem_copy(facts->engine);
    return (uint32_t)simple->kinds.count - 1;
}

static uint64_t gpus_lost(const struct node_facts *facts)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (node_gpu_is_lost(facts, i))
            lost |= UINT64_C(1) << i;
    return lost;
}

static int simple_node_set(struct placer *placer, struct node_id id, const struct node_facts *facts,
                           struct err *err)
{
    (void)err;
    struct simple *simple = simple_of(placer);
    simple_course_close(simple);
    while (simple->nodes.count <= id.v) {
        ARRAY_ADD(&simple->nodes);
        simple_views_reserve(simple);
        simple->whole[simple->nodes.count - 1] = simple->free[simple->nodes.count - 1] =
            simple->offered[simple->nodes.count - 1] = simple->most[simple->nodes.count - 1] =
                (struct simple_view){0};
        simple->kept[simple->nodes.count - 1] = (struct simple_share){0};
        simple->traits[simple->nodes.count - 1] = 0;
    }
    struct simple_node *node = &simple->nodes.items[id.v];
    if (node->is_known)
        kind_count(simple, id.v, false);
    node->is_known = true;
    node_facts_copy(&node->facts, facts);
    if (node->facts.gpu_count > PLACEMENT_GPUS_MAX)
        node->facts.gpu_count = PLACEMENT_GPUS_MAX;
    node->gpus_lost = gpus_lost(&node->facts);
    simple->whole[id.v] =
        (struct simple_view){node->facts.cpu, node->facts.gpu_count, node->facts.memory_mib,
                             gpu_mask(node->facts.gpu_count)};
    simple_node_renew(simple, id.v);
    simple->traits[id.v] = (uint8_t)(NODE_KNOWN | (node->facts.is_healthy ? NODE_HEALTHY : 0));
    simple->kind_of[id.v] = kind_find(simple, &node->facts);
    kind_count(simple, id.v, true);
    return 0;
}

/* --- groups --- */

struct simple_group *simple_group_find(struct simple *simple, const char *name)
{
    uint32_t at = text_map_get(&simple->names, text_of(name));
    return at == MAP_NONE ? NULL : &simple->groups.items[at];
}

uint32_t simple_cluster(struct simple *simple, const char *name)
{
    uint32_t number = text_map_get(&simple->cluster_index, text_of(name));
    if (number != MAP_NONE)
        return number;
    number = (uint32_t)simple->clusters.count;
    *ARRAY_ADD(&simple->clusters) = mem_copy(name);
    text_map_set(&simple->cluster_index, text_of(simple->clusters.items[number]), number);
    return number;
}

/* `slots` are the group's from now on. */
static struct simple_group *group_add(struct simple *simple,
                                      const struct placement_request *request,
                                      struct simple_slot *slots, size_t slot_count, bool is_waiting)
{
    uint32_t at;
    if (simple->free_groups.count) {
        at = simple->free_groups.items[--simple->free_groups.count];
    } else {
        at = (uint32_t)simple->groups.count;
        ARRAY_ADD(&simple->groups);
        ARRAY_ADD(&simple->ranks);
    }
    assert(simple->groups.items && at < simple->groups.count);
    struct simple_group *group = &simple->groups.items[at];
    *group = (struct simple_group){
        .name = mem_copy(request->group),
        .cluster = simple_cluster(simple, request->virtual_cluster),
        .priority = request->priority,
        .slots = slots,
        .slot_count = slot_count,
        .live = slot_count,
        .is_waiting = is_waiting,
    };
    simple->ranks.items[at] =
        (struct simple_rank){group->cluster, (int16_t)group->priority, !is_waiting, UINT32_MAX};
    if (is_waiting) {
        simple->waiting_groups++;
    } else {
        simple->live_groups++;
        simple->by_priority[priority_index(group->priority)]++;
    }
    text_map_set(&simple->names, text_of(group->name), at);
    return group;
}

static void victims_free(struct simple_group *group)
{
    for (size_t i = 0; i < group->victim_count; i++)
        mem_free(group->victims[i]);
    mem_free(group->victims);
    group->victims = NULL;
    group->victim_count = 0;
}

static void group_drop(struct simple *simple, struct simple_group *group)
{
    assert(group->name);
    if (group->is_waiting) {
        simple_group_apply(simple, group, simple_share_leave);
        simple->waiting_groups--;
    } else {
        simple->live_groups--;
        simple->by_priority[priority_index(group->priority)]--;
    }
    text_map_remove(&simple->names, text_of(group->name));
    mem_free(group->name);
    mem_free(group->slots);
    victims_free(group);
    *group = (struct simple_group){0};
    const uint32_t at = (uint32_t)(group - simple->groups.items);
    simple->ranks.items[at] = (struct simple_rank){0};
    *ARRAY_ADD(&simple->free_groups) = at;
}

static void simple_release_slot(struct placer *placer, const char *name, size_t slot)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = simple_group_find(simple, name);
    if (!group || group->is_waiting || slot >= group->slot_count ||
        group->slots[slot].node == UINT32_MAX)
        return;
    const struct simple_share share = simple_share_of(&group->slots[slot]);
    simple_choice_ends(simple, (size_t)(group - simple->groups.items), &group->slots[slot]);
    simple_share_give(simple, group->slots[slot].node, &share);
    group->slots[slot].node = UINT32_MAX;
    if (--group->live == 0)
        group_drop(simple, group);
}

static void simple_release_group(struct placer *placer, const char *name)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = simple_group_find(simple, name);
    if (simple_course_is_of(simple, name))
        simple_course_close(simple);
    if (!group)
        return;
    for (size_t i = 0; !group->is_waiting && i < group->slot_count; i++)
        if (group->slots[i].node != UINT32_MAX)
            simple_choice_ends(simple, (size_t)(group - simple->groups.items), &group->slots[i]);
    if (!group->is_waiting)
        simple_group_apply(simple, group, simple_share_give);
    group_drop(simple, group);
}

static void simple_cancel(struct placer *placer, const char *name)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = simple_group_find(simple, name);
    if (simple_course_is_of(simple, name))
        simple_course_close(simple);
    if (group && group->is_waiting)
        group_drop(simple, group);
}

static void simple_forget(struct placer *placer)
{
    simple_course_close(simple_of(placer));
}

/* --- places --- */

static size_t request_size(const struct placement_request *request)
{
    size_t count = 0;
    for (size_t i = 0; i < request->member_count; i++)
        count += request->members[i].count;
    return count;
}

/* Are the places of a group that waits free by now? False: it must be searched for anew, as a node
 * of it is bad. */
static bool waiting_fits(struct simple *simple, const struct simple_group *group, bool *fits)
{
    assert(group->is_waiting);
    *fits = true;
    simple_views_fill(simple, simple->free);
    for (size_t i = 0; i < group->slot_count; i++) {
        if (!(simple->traits[group->slots[i].node] & NODE_HEALTHY))
            return false;
        *fits = simple_view_take(simple, &group->slots[i]) && *fits;
    }
    return true;
}

/* A group that preempts: are its places free by now, or will they be? False: start again. */
static bool waiting_place(struct simple *simple, const struct simple_group *group,
                          struct arena *arena, struct placement_result *result)
{
    result->victims = ARENA_ARRAY(arena, const char *, group->victim_count + 1);
    for (size_t i = 0; i < group->victim_count; i++)
        if (group->victims[i] && simple_group_find(simple, group->victims[i]))
            result->victims[result->victim_count++] = arena_copy(arena, text_of(group->victims[i]));
    bool fits;
    simple_course_close(simple);
    if (!waiting_fits(simple, group, &fits))
        return false;
    if (fits)
        simple_result_bind(group->slots, group->slot_count, arena, result);
    else
        result->kind = PLACEMENT_PREEMPT;
    return fits || result->victim_count > 0;
}

/* The same in pieces: so many of its victims in each, then its places. */
static bool waiting_go_on(struct simple *simple, struct simple_group *group, uint32_t victims,
                          struct arena *arena, struct placement_result *result)
{
    const struct simple_course *course = &simple->course;
    bool fits = false;
    if (!simple_course_is_of(simple, group->name) && !waiting_fits(simple, group, &fits))
        return false;
    const enum simple_outcome outcome = simple_course_again(simple, group, victims);
    const bool is_over = outcome != SIMPLE_CUT;
    if (is_over) { /* the last of them may have ended between two pieces */
        const bool is_healthy = waiting_fits(simple, group, &fits);
        assert(is_healthy); /* a node that changes ends the course */
        (void)is_healthy;
    }
    if (is_over && (fits || outcome == SIMPLE_FAILS)) {
        simple_course_close(simple);
        if (fits)
            simple_result_bind(group->slots, group->slot_count, arena, result);
        return fits;
    }
    result->victims = ARENA_ARRAY(arena, const char *, course->left.count + 1);
    for (size_t i = 0; i < course->left.count; i++)
        result->victims[i] = group->victims[course->left.items[i]];
    result->victim_count = course->left.count;
    result->victim_first = course->named;
    result->is_cut = outcome == SIMPLE_CUT;
    result->kind = result->is_cut ? PLACEMENT_WAIT : PLACEMENT_PREEMPT;
    result->reason = "";
    if (!result->is_cut)
        simple_course_close(simple);
    return true;
}

/* Whom it waits for is still to be said. */
static struct simple_group *waiting_new(struct simple *simple,
                                        const struct placement_request *request,
                                        struct simple_slot *slots, size_t slot_count)
{
    assert(slot_count > 0);
    struct simple_group *group = group_add(simple, request, slots, slot_count, true);
    simple_group_apply(simple, group, simple_share_keep); /* not for others, until it gives up */
    return group;
}

static void waiting_add(struct simple *simple, const struct simple_search *search,
                        size_t slot_count, const struct placement_result *result)
{
    assert(result->kind == PLACEMENT_PREEMPT);
    struct simple_slot *slots = mem_copy_array(search->slots, slot_count, sizeof *slots);
    struct simple_group *group = waiting_new(simple, search->request, slots, slot_count);
    group->victims = mem_zero(result->victim_count, sizeof *group->victims);
    for (size_t i = 0; i < result->victim_count; i++)
        group->victims[group->victim_count++] = mem_copy(result->victims[i]);
}

static bool free_place(struct simple_search *search)
{
    for (int pass = search->request->avoid_count ? 0 : 1; pass < 2; pass++) {
        search->avoids = pass == 0;
        if (!simple_gang_is_unequal(search->request) &&
            !simple_equal_fits(search, search->simple->offered))
            continue;
        simple_views_fill(search->simple, search->simple->offered);
        if (simple_gang_place(search))
            return true;
    }
    return false;
}

/* In one piece. */
static void request_place(struct simple *simple, const struct placement_request *request,
                          struct arena *arena, struct placement_result *result)
{
    const size_t count = request_size(request);
    struct simple_search search = {.simple = simple, .request = request};
    search.slots = ARENA_ARRAY(arena, struct simple_slot, count + 1);
    bool *is_victim = ARENA_ARRAY(arena, bool, simple->groups.count + 1);
    simple_course_close(simple);
    const bool is_free = free_place(&search),
               is_found = is_free || simple_victims_find(&search, is_victim);
    const size_t groups = simple->groups.count;
    /* all may be spared: other places are free than the policy has found at first */
    if (is_found && simple_victim_next(is_victim, groups, 0) == groups) {
        simple_result_bind(search.slots, count, arena, result);
    } else if (is_found) {
        simple_result_preempt(simple, is_victim, arena, result);
        if (request->may_preempt)
            waiting_add(simple, &search, count, result);
    } else {
        simple_result_wait(&search, !simple_gang_is_possible(&search), arena, result);
    }
}

static void names_show(const struct simple_course *course, const char **victims,
                       struct placement_result *result)
{
    result->victims = victims;
    result->victim_count = course->victims.count;
    result->victim_first = course->named;
}

/* Places and names become those of the group that waits; without one the names are copied. */
static void piece_preempt(struct simple *simple, const struct placement_request *request,
                          struct arena *arena, struct placement_result *result)
{
    struct simple_course *course = &simple->course;
    const size_t count = course->victims.count;
    result->kind = PLACEMENT_PREEMPT;
    if (request->may_preempt) {
        struct simple_group *group =
            waiting_new(simple, request, course->slots, course->slot_count);
        course->slots = NULL;
        group->victims = course->victims.items;
        group->victim_count = count;
        names_show(course, (const char **)group->victims, result);
        course->victims.items = NULL;
        course->victims.count = course->victims.room = 0;
        return;
    }
    const char **names = ARENA_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = arena_copy(arena, text_of(course->victims.items[i]));
    names_show(course, names, result);
}

/* The next piece; the last one has the answer. */
static void piece_place(struct simple *simple, const struct placement_request *request,
                        struct arena *arena, struct placement_result *result)
{
    const struct simple_course *course = &simple->course;
    const enum simple_outcome outcome = simple_course_go_on(simple, request, &result->work);
    if (outcome == SIMPLE_CUT) {
        result->kind = PLACEMENT_WAIT;
        result->reason = "";
        result->is_cut = true;
        names_show(course, (const char **)course->victims.items, result);
        return;
    }
    const struct simple_search search = {
        .simple = simple, .request = request, .slots = course->slots};
    if (course->stage == COURSE_BIND) {
        simple_result_bind(course->slots, course->slot_count, arena, result);
    } else if (course->stage == COURSE_PREEMPT) {
        piece_preempt(simple, request, arena, result);
    } else {
        simple_result_wait(&search, course->is_never, arena, result);
    }
    simple_course_close(simple);
}

static int simple_place(struct placer *placer, const struct placement_request *request,
                        struct arena *arena, struct placement_result *result, struct err *err)
{
    struct simple *simple = simple_of(placer);
    *result = (struct placement_result){0};
    if (*request->pinned_cell_id)
        return err_fail(err, ERR_NOT_FOUND, "pinnedCellId", REASON_NO_PIN, request->pinned_cell_id,
                        placer->ops->name);
    for (size_t i = 0; i < request->member_count; i++)
        if (request->members[i].gpu > PLACEMENT_GPUS_MAX)
            return err_fail(err, ERR_INVALID, "gpu", "must be at most %d, got %u",
                            PLACEMENT_GPUS_MAX, request->members[i].gpu);
    result->kind = PLACEMENT_BIND;
    if (request->is_check)
        return 0;
    struct simple_group *waiting = simple_group_find(simple, request->group);
    assert(!waiting || waiting->is_waiting);
    if (waiting) {
        const bool has_many = request->slice && (waiting->victim_count > request->slice ||
                                                 waiting->slot_count > request->slice);
        if (has_many ? waiting_go_on(simple, waiting, request->slice, arena, result)
                     : waiting_place(simple, waiting, arena, result))
            return 0;
        simple_course_close(simple);
        group_drop(simple, waiting);
        *result = (struct placement_result){0};
    }
    if (request->slice)
        piece_place(simple, request, arena, result);
    else
        request_place(simple, request, arena, result);
    return 0;
}

/* Whose task the next slot is. */
struct member_walk {
    const struct placement_request *request;
    size_t member;
    uint32_t task;
};

static const struct placement_member *member_next(struct member_walk *walk)
{
    while (walk->task == walk->request->members[walk->member].count) {
        walk->member++;
        walk->task = 0;
        assert(walk->member < walk->request->member_count);
    }
    walk->task++;
    return &walk->request->members[walk->member];
}

static uint64_t gpus_of(const struct placement_slot *slot)
{
    uint64_t gpus = 0;
    for (size_t i = 0; i < slot->gpu_count; i++)
        gpus |= slot->gpus[i] < 64 ? UINT64_C(1) << slot->gpus[i] : 0;
    return gpus;
}

/* Does the group wait for these slots? */
static bool is_awaited(const struct simple_group *group, const struct placement_slot *slots,
                       size_t slot_count)
{
    bool is_same = group->is_waiting && group->slot_count == slot_count;
    for (size_t i = 0; i < slot_count && is_same; i++)
        is_same =
            group->slots[i].node == slots[i].node.v && group->slots[i].gpus == gpus_of(&slots[i]);
    return is_same;
}

static void group_rank(struct simple *simple, const struct simple_group *group)
{
    struct simple_rank *rank = &simple->ranks.items[group - simple->groups.items];
    rank->runs = true;
    rank->node = group->slot_count == 1 ? group->slots[0].node : UINT32_MAX;
}

/* What it has waited for is its own. False: it is not free. */
static bool group_take(struct simple *simple, struct simple_group *group)
{
    const bool fits = simple_group_apply(simple, group, simple_share_become);
    group->is_waiting = false;
    simple->waiting_groups--;
    simple->live_groups++;
    simple->by_priority[priority_index(group->priority)]++;
    victims_free(group);
    group_rank(simple, group);
    return fits;
}

/* As they are given; one that has ended already takes nothing. False: they are not free. */
static bool slots_take(struct simple *simple, struct simple_group *group,
                       const struct placement_request *request, const struct placement_slot *slots)
{
    struct member_walk walk = {.request = request};
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct placement_member *member = member_next(&walk);
        struct simple_slot *slot = &group->slots[i];
        *slot = (struct simple_slot){slots[i].node.v, member->cpu, member->memory_mib,
                                     gpus_of(&slots[i])};
        if (slot->node >= simple->nodes.count) {
            assert(slots[i].node.v == NODE_NONE.v);
            slot->node = UINT32_MAX;
            group->live--;
        }
    }
    group_rank(simple, group);
    return simple_group_apply(simple, group, simple_share_take);
}

static int simple_commit(struct placer *placer, const struct placement_request *request,
                         const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                         struct err *err)
{
    struct simple *simple = simple_of(placer);
    struct simple_group *group = simple_group_find(simple, request->group);
    assert(slot_count == request_size(request));
    simple_course_close(simple);
    bool fits = true;
    if (group && is_awaited(group, slots, slot_count)) {
        fits = group_take(simple, group);
    } else {
        if (group)
            group_drop(simple, group);
        struct simple_slot *own = mem_zero(slot_count, sizeof *own);
        group = group_add(simple, request, own, slot_count, false);
        fits = slots_take(simple, group, request, slots);
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
    simple_course_close(simple);
    for (size_t i = 0; i < simple->nodes.count; i++)
        node_facts_release(&simple->nodes.items[i].facts);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (simple->groups.items[i].name)
            group_drop(simple, &simple->groups.items[i]);
    ARRAY_FREE(&simple->nodes);
    ARRAY_FREE(&simple->groups);
    ARRAY_FREE(&simple->ranks);
    ARRAY_FREE(&simple->free_groups);
    text_map_release(&simple->names);
    for (size_t i = 0; i < simple->kinds.count; i++) {
        mem_free(simple->kinds.items[i].type);
        mem_free(simple->kinds.items[i].engine);
    }
    ARRAY_FREE(&simple->kinds);
    for (size_t i = 0; i < simple->clusters.count; i++)
        mem_free(simple->clusters.items[i]);
    ARRAY_FREE(&simple->clusters);
    text_map_release(&simple->cluster_index);
    mem_free(simple->whole);
    mem_free(simple->traits);
    mem_free(simple->kind_of);
    mem_free(simple->free);
    mem_free(simple->offered);
    mem_free(simple->kept);
    mem_free(simple->most);
    mem_free(simple->views);
    mem_free(simple->roomy);
    mem_free(simple->choice);
    mem_free(simple->extra);
    mem_free(simple);
}

static bool simple_free_some(struct placer *placer, uint32_t tasks)
{
    struct simple *simple = simple_of(placer);
    uint32_t left = tasks;
    simple_course_close(simple);
    for (; left > 0 && simple->groups.count > 0; left--, simple->groups.count--)
        if (simple->groups.items[simple->groups.count - 1].name)
            group_drop(simple, &simple->groups.items[simple->groups.count - 1]);
    for (; left > 0 && simple->nodes.count > 0; left--)
        node_facts_release(&simple->nodes.items[--simple->nodes.count].facts);
    if (!left)
        return false;
    simple_free(placer);
    return true;
}

#define SIMPLE_OPS(policy)                                                                         \
    {                                                                                              \
        .name = (policy), .nodes_per_work = 6, .cuts_small = true, .free = simple_free,            \
        .free_some = simple_free_some, .node_set = simple_node_set, .place = simple_place,         \
        .commit = simple_commit, .release_slot = simple_release_slot,                              \
        .release_group = simple_release_group, .cancel = simple_cancel, .forget = simple_forget,   \
        .copy = simple_copy, .copy_some = simple_copy_some, .check = simple_check,                 \
    }

static const struct {
    struct placer_ops ops;
    view_compare_fn *compare;
} policies[] = {
    {SIMPLE_OPS("first-fit"), NULL},
    {SIMPLE_OPS("best-fit"), simple_compare_least},
    {SIMPLE_OPS("spread"), simple_compare_most},
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
