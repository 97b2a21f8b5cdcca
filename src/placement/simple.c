#include "placement/simple.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/reason.h"
#include "placement/simple_parts.h"

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

/* What it has has changed. */
static void node_renew(struct simple *simple, uint32_t at)
{
    simple->free[at] = simple_node_free(&simple->nodes.items[at]);
    node_offer(simple, at);
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
    node_renew(simple, id.v);
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

/* --- what a group has on its nodes --- */

/* What it has on one node, of one slot or of several. False: that is not free. */
typedef bool share_apply_fn(struct simple *simple, uint32_t at, const struct simple_share *share);

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

static bool share_take(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    const bool fits = share_fits(simple, at, share);
    share_use(simple, at, share);
    node_refresh(simple, at);
    return fits;
}

static bool share_give(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    struct simple_node *node = &simple->nodes.items[at];
    node->cpu_used -= (uint32_t)share->cpu;
    node->memory_used -= share->memory_mib;
    node->gpus_taken &= ~share->gpus;
    node_refresh(simple, at);
    return true;
}

static bool share_keep(struct simple *simple, uint32_t at, const struct simple_share *share)
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

static bool share_leave(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    kept_lower(simple, at, share);
    node_offer(simple, at);
    return true;
}

/* What was kept is its own. */
static bool share_become(struct simple *simple, uint32_t at, const struct simple_share *share)
{
    const bool fits = share_fits(simple, at, share);
    kept_lower(simple, at, share);
    share_use(simple, at, share);
    node_renew(simple, at);
    return fits;
}

static struct simple_share share_of(const struct simple_slot *slot)
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

/* To what the group has on each node. A large one has several slots on a node, in any order: these
 * are summed first, so that each node is looked at once, in the order of the table. False:
 * something is not free. */
static bool group_apply(struct simple *simple, const struct simple_group *group,
                        share_apply_fn *apply)
{
    enum { NODES_PER_SLOT = 16 }; /* that are passed over while one somewhere is looked at */
    bool fits = true;
    if (group->slot_count <= simple->nodes.count / NODES_PER_SLOT || simple->course.choice) {
        for (size_t i = 0; i < group->slot_count; i++) {
            const struct simple_share share = share_of(&group->slots[i]);
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
        group_apply(simple, group, share_leave);
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
    const struct simple_share share = share_of(&group->slots[slot]);
    simple_choice_ends(simple, (size_t)(group - simple->groups.items), &group->slots[slot]);
    share_give(simple, group->slots[slot].node, &share);
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
        group_apply(simple, group, share_give);
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

/* --- results --- */

static void result_bind(const struct simple_slot *slots, size_t count, struct arena *arena,
                        struct placement_result *result)
{
    size_t gpu_count = 0;
    assert(count == 0 || slots);
    for (size_t i = 0; i < count; i++)
        gpu_count += bit_count(slots[i].gpus);
    uint16_t *next = ARENA_ARRAY(arena, uint16_t, gpu_count + 1);
    result->kind = PLACEMENT_BIND;
    result->slot_count = count;
    result->slots = ARENA_ARRAY(arena, struct placement_slot, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct placement_slot *slot = &result->slots[i];
        slot->node.v = slots[i].node;
        slot->gpus = next;
        for (uint64_t gpus = slots[i].gpus; gpus; gpus &= gpus - 1)
            *next++ = (uint16_t)__builtin_ctzll(gpus);
        slot->gpu_count = (uint16_t)(next - slot->gpus);
    }
}

static void result_preempt(const struct simple *simple, const bool *is_victim, struct arena *arena,
                           struct placement_result *result)
{
    assert(is_victim);
    result->kind = PLACEMENT_PREEMPT;
    size_t count = 0;
    for (size_t i = 0; i < simple->groups.count; i++)
        count += is_victim[i];
    result->victims = ARENA_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (is_victim[i] && simple->groups.items[i].name) /* it may have ended since */
            result->victims[result->victim_count++] =
                arena_copy(arena, text_of(simple->groups.items[i].name));
}

static void holders_write(const struct simple *simple, struct buf *out)
{
    enum { NAMED_MAX = 3 };
    size_t named = 0, holders = simple->live_groups;
    for (size_t i = 0; i < simple->groups.count && named < NAMED_MAX; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        if (!group->name || group->is_waiting)
            continue;
        buf_string(out, named++ ? REASON_NEXT : REASON_HELD_BY);
        buf_format(out, REASON_HOLDER, group->name);
    }
    if (holders > named)
        buf_format(out, REASON_MORE, holders - named);
}

/* "2 x (1 GPU, 4 CPU, 512 MiB) of V100 + 1 x (0 GPU, …)" */
static void demand_write(const struct placement_request *request, struct buf *out)
{
    const char *within = request->within_one_cell;
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        buf_string(out, i ? REASON_PLUS : "");
        buf_format(out, REASON_TASKS, member->count, member->gpu, member->cpu,
                   (unsigned long long)member->memory_mib);
        if (*member->sku_type)
            buf_format(out, REASON_TASKS_OF, member->sku_type);
        if (*member->within_one_cell)
            buf_string(out, REASON_TASKS_ON_ONE);
    }
    if (within && *within)
        buf_string(out, REASON_TASKS_ALL_ONE);
}

struct free_room {
    uint64_t cpu, mib, gpu, all_cpu, all_mib, all_gpu;
    uint32_t largest;
    size_t healthy, suitable;
};

/* What is free on the nodes of the types asked for. */
static struct free_room room_of(const struct simple *simple,
                                const struct placement_request *request, struct arena *arena)
{
    bool *suits = ARENA_ARRAY(arena, bool, simple->kinds.count + 1);
    struct free_room room = {0};
    for (size_t i = 0; i < simple->kinds.count; i++) {
        const struct simple_kind *kind = &simple->kinds.items[i];
        suits[i] = simple_kind_suits(kind, request);
        if (!suits[i])
            continue;
        room.suitable += kind->suitable;
        room.healthy += kind->healthy;
        room.all_cpu += kind->all_cpu;
        room.all_mib += kind->all_mib;
        room.all_gpu += kind->all_gpu;
    }
    for (size_t i = 0; i < simple->nodes.count; i++) {
        const struct simple_view *view = &simple->free[i];
        const bool is_healthy = simple->traits[i] & NODE_HEALTHY;
        if (!(simple->traits[i] & NODE_KNOWN) || !suits[simple->kind_of[i]])
            continue;
        if (!is_healthy)
            continue;
        room.cpu += view->cpu;
        room.mib += view->memory_mib;
        room.gpu += view->gpu_count;
        room.largest = view->gpu_count > room.largest ? view->gpu_count : room.largest;
    }
    return room;
}

/* Returns its topic. */
static uint64_t reason_write(const struct simple *simple, const struct placement_request *request,
                             bool is_never, struct arena *arena, struct buf *out)
{
    uint64_t topic;
    struct free_room room = room_of(simple, request, arena);
    buf_string(out, REASON_NEEDS);
    demand_write(request, out);
    if (room.suitable) {
        buf_format(out, REASON_ROOM_NODES, room.healthy, room.healthy == 1 ? "" : "s",
                   (unsigned long long)room.gpu, (unsigned long long)room.all_gpu, room.largest,
                   (unsigned long long)room.cpu, (unsigned long long)room.all_cpu,
                   (unsigned long long)room.mib, (unsigned long long)room.all_mib);
        topic = text_words_hash(buf_as_text(out), 0);
        holders_write(simple, out);
    } else {
        buf_string(out, REASON_NO_TYPE);
        topic = text_words_hash(buf_as_text(out), 0);
    }
    if (is_never)
        buf_string(out, room.suitable ? REASON_NEVER_ROOM : REASON_NEVER);
    return topic;
}

static void result_wait(const struct simple_search *search, bool is_never, struct arena *arena,
                        struct placement_result *result)
{
    cleanup_buf struct buf reason = BUF_INIT;
    result->kind = PLACEMENT_WAIT;
    result->is_never = is_never;
    result->topic = reason_write(search->simple, search->request, result->is_never, arena, &reason);
    result->reason = arena_copy(arena, buf_as_text(&reason));
}

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
        result_bind(group->slots, group->slot_count, arena, result);
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
            result_bind(group->slots, group->slot_count, arena, result);
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
    group_apply(simple, group, share_keep); /* not for others, until it gives up */
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
    if (free_place(&search)) {
        result_bind(search.slots, count, arena, result);
    } else if (simple_victims_find(&search, is_victim)) {
        result_preempt(simple, is_victim, arena, result);
        if (request->may_preempt)
            waiting_add(simple, &search, count, result);
    } else {
        result_wait(&search, !simple_gang_is_possible(&search), arena, result);
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
        result_bind(course->slots, course->slot_count, arena, result);
    } else if (course->stage == COURSE_PREEMPT) {
        piece_preempt(simple, request, arena, result);
    } else {
        result_wait(&search, course->is_never, arena, result);
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
    const bool fits = group_apply(simple, group, share_become);
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
    return group_apply(simple, group, share_take);
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
