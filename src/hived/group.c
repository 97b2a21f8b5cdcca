/* group.c — gangs: their memory, downgrades, preemptions. The table of states stands in
 * docs/rfc/0003-hived.md. */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct group *gang_find(struct hived *h, const char *name, uint32_t *index)
{
    *index = text_map_get(&h->group_index, text_of(name));
    if (*index == MAP_NONE)
        return NULL;
    struct group *group = h->groups[*index];
    __builtin_prefetch((const char *)group + 64);
    __builtin_prefetch((const char *)group + 128);
    __builtin_prefetch((const char *)group + 192);
    return group;
}

static int item_compare(const void *a, const void *b)
{
    const struct pack_item *x = a, *y = b;
    if (x->leaves != y->leaves)
        return x->leaves < y->leaves ? -1 : 1;
    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* One item a pod, ascending by leaves, then in the order of the members: the order of slots. */
struct pack_item *request_items(const struct hived_request *request, struct arena *arena,
                                uint32_t *item_count, uint32_t *leaf_count)
{
    uint32_t pods = 0;
    for (uint32_t i = 0; i < request->member_count; i++)
        pods += request->members[i].pods;
    struct pack_item *items = ARENA_ARRAY(arena, struct pack_item, pods);
    uint32_t count = 0;
    bool is_sorted = true;
    for (uint32_t i = 0; i < request->member_count; i++) {
        const struct hived_member *member = &request->members[i];
        bool has_within = member->within_one_cell && *member->within_one_cell;
        is_sorted &= i == 0 || request->members[i - 1].leaves <= member->leaves;
        for (uint32_t k = 0; k < member->pods; k++, count++)
            items[count] =
                (struct pack_item){.leaves = member->leaves,
                                   .cell = NONE,
                                   .first = count,
                                   .member = i,
                                   .within = has_within ? member->within_one_cell : NULL};
    }
    if (!is_sorted)
        qsort(items, count, sizeof *items, item_compare);
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < count; i++) {
        items[i].first = leaves;
        leaves += items[i].leaves;
    }
    *item_count = count;
    *leaf_count = leaves;
    return items;
}

void pod_name_set(struct pod *pod, const char *name)
{
    size_t size = name ? strlen(name) + 1 : 0;
    pod->name = NULL;
    if (size > sizeof pod->inside)
        pod->name = mem_copy(name);
    else if (name)
        pod->name = memcpy(pod->inside, name, size);
}

void pod_name_free(struct pod *pod)
{
    if (pod->name != pod->inside)
        mem_free(pod->name);
    pod->name = NULL;
}

static uint32_t group_place(struct hived *h)
{
    if (h->group_gaps.count > 0)
        return h->group_gaps.items[--h->group_gaps.count];
    if (h->group_count == h->group_room) {
        h->group_room = h->group_room ? 2 * h->group_room : 64;
        h->groups = mem_realloc(h->groups, mem_size(h->group_room, sizeof *h->groups));
        h->group_changes =
            mem_realloc(h->group_changes, mem_size(h->group_room, sizeof *h->group_changes));
    }
    return h->group_count++;
}

static char *text_put(char **at, const char *text)
{
    assert(*at && text);
    size_t size = strlen(text) + 1;
    char *put = memcpy(*at, text, size);
    *at += size;
    return put;
}

/* --- memory --- */

enum { NUMBERS_PER_POD = sizeof(struct pod) / sizeof(uint32_t) };
enum { PLACE_SIZE = 256, CHUNK_PLACES_MIN = 32, CHUNK_DOUBLINGS_MAX = 8 };

/* Room for a small group: most have one pod. Places are used again at once, while they are in the
 * cache, and never given back before the whole. Chunks grow up to a large page. */
union group_place {
    union group_place *next;
    struct group group;
    char bytes[PLACE_SIZE];
};

static void *place_take(struct hived *h)
{
    union group_place *place = h->spare;
    if (place) {
        h->spare = place->next;
        return place;
    }
    if (h->fresh == h->fresh_end) {
        size_t doublings = h->group_chunks.count;
        if (doublings > CHUNK_DOUBLINGS_MAX)
            doublings = CHUNK_DOUBLINGS_MAX;
        uint32_t places = (uint32_t)CHUNK_PLACES_MIN << doublings;
        h->fresh = mem_table(places, sizeof *h->fresh);
        h->fresh_end = h->fresh + places;
        *ARRAY_ADD(&h->group_chunks) = h->fresh;
    }
    return h->fresh++;
}

/* All in one block: the group, its numbers, its pods, its names. */
static struct group *group_alloc(struct hived *h, const struct group *like, uint32_t leaf_count)
{
    assert(like->slot_count > 0 && leaf_count > 0);
    size_t numbers = (like->slot_count + 2 + 3 * (size_t)leaf_count) / 2 * 2; /* pods are aligned */
    size_t names = strlen(like->name) + strlen(like->vc_name) + strlen(like->chain_name) + 3 +
                   (like->pin ? strlen(like->pin) + 1 : 0);
    size_t pods = mem_size(like->slot_count, sizeof *like->pods);
    size_t size = sizeof(struct group) + pods + mem_size(numbers, 4) + names;
    bool is_small = size <= PLACE_SIZE;
    struct group *group = is_small ? place_take(h) : mem_alloc(size);
    *group = *like;
    group->is_small = is_small;
    group->leaf_count = leaf_count;
    group->physical = (uint32_t *)(group + 1);
    group->virtual = group->physical + leaf_count;
    group->types = group->virtual + leaf_count;
    group->slot_leaf = group->types + leaf_count;
    group->pods = (struct pod *)(void *)(group->physical + numbers);
    char *at = (char *)group->pods + pods;
    group->name = text_put(&at, like->name);
    group->vc_name = text_put(&at, like->vc_name);
    group->chain_name = text_put(&at, like->chain_name);
    group->pin = like->pin ? text_put(&at, like->pin) : NULL;
    return group;
}

static void leaves_set(uint32_t *leaves, const uint32_t *from, uint32_t count)
{
    if (from)
        memcpy(leaves, from, count * sizeof *leaves);
    else
        memset(leaves, 0xff, count * sizeof *leaves);
}

/* All leaves as they are told, or NONE; slots of so many leaves each. */
uint32_t gang_add(struct hived *h, const struct group *like, const uint32_t *slot_leaves)
{
    assert(like->slot_count > 0);
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < like->slot_count; i++)
        leaves += slot_leaves[i];
    struct group *group = group_alloc(h, like, leaves);
    memset(group->pods, 0, group->slot_count * sizeof *group->pods);
    leaves_set(group->physical, like->physical, leaves);
    leaves_set(group->virtual, like->virtual, leaves);
    leaves_set(group->types, NULL, leaves);
    group->slot_leaf[0] = 0;
    for (uint32_t i = 0; i < group->slot_count; i++)
        group->slot_leaf[i + 1] = group->slot_leaf[i] + slot_leaves[i];
    group->sequence = ++h->sequence;
    uint32_t index = group_place(h);
    h->groups[index] = group;
    group_changed(h, index);
    text_map_set(&h->group_index, text_of(group->name), index);
    return index;
}

void group_copy_begin(struct hived *h, const struct group *from)
{
    assert(!h->copying.group);
    struct group *group = group_alloc(h, from, from->leaf_count);
    h->copying = (struct group_copying){.group = group};
    group->preemptor = from->preemptor ? mem_copy(from->preemptor) : NULL;
    group->lost = mem_copy_array(from->lost, from->lost_count, sizeof *group->lost);
    for (uint32_t i = 0; i < from->lost_count; i++) {
        group->lost[i].node = mem_copy(from->lost[i].node);
        group->lost[i].type = from->lost[i].type ? mem_copy(from->lost[i].type) : NULL;
    }
    group->preempting =
        mem_copy_array(from->preempting, from->preempting_count, sizeof *group->preempting);
    group->preempting_room = from->preempting_count;
    for (uint32_t i = 0; i < from->preempting_count; i++)
        group->preempting[i] = mem_copy(from->preempting[i]);
}

/* What is left, but no more than `most`. */
static uint32_t next_of(uint32_t count, uint32_t done, uint32_t most)
{
    return count - done < most ? count - done : most;
}

bool group_copy_some(struct hived *h, const struct group *from, uint32_t numbers)
{
    struct group_copying *copying = &h->copying;
    struct group *group = copying->group;
    const uint32_t all = from->slot_count + 1 + 3 * from->leaf_count;
    assert(group && group->slot_count == from->slot_count);
    uint32_t count = next_of(all, copying->numbers, numbers);
    memcpy(group->physical + copying->numbers, from->physical + copying->numbers,
           count * sizeof *group->physical);
    copying->numbers += count;
    count = next_of(from->slot_count, copying->pods, (numbers - count) / NUMBERS_PER_POD);
    memcpy(group->pods + copying->pods, from->pods + copying->pods, count * sizeof *group->pods);
    for (const uint32_t end = copying->pods + count; copying->pods < end; copying->pods++)
        pod_name_set(&group->pods[copying->pods], from->pods[copying->pods].name);
    return copying->numbers == all && copying->pods == from->slot_count;
}

void group_copy_drop(struct hived *h)
{
    struct group *group = h->copying.group;
    if (!group)
        return;
    group->slot_count = h->copying.pods; /* those behind are not there */
    h->lost_count += group->lost_count;  /* they were not counted yet */
    group_free(h, group);
    h->copying.group = NULL;
}

void group_free(struct hived *h, struct group *group)
{
    assert(group->name);
    for (uint32_t i = 0; i < group->slot_count; i++)
        pod_name_free(&group->pods[i]);
    for (uint32_t i = 0; i < group->lost_count; i++) {
        mem_free(group->lost[i].node);
        mem_free(group->lost[i].type);
    }
    for (uint32_t i = 0; i < group->preempting_count; i++)
        mem_free(group->preempting[i]);
    h->lost_count -= group->lost_count;
    mem_free(group->preempting);
    mem_free(group->lost);
    mem_free(group->preemptor);
    if (!group->is_small) {
        mem_free(group);
        return;
    }
    union group_place *place = (union group_place *)group;
    place->next = h->spare;
    h->spare = place;
}

uint32_t groups_free_some(struct hived *h, uint32_t count)
{
    uint32_t done = 0;
    for (; done < count && h->group_count > 0; done++) {
        struct group *group = h->groups[--h->group_count];
        if (group)
            group_free(h, group);
    }
    return done;
}

void groups_free(struct hived *h)
{
    groups_free_some(h, UINT32_MAX);
    for (size_t i = 0; i < h->group_chunks.count; i++)
        mem_free(h->group_chunks.items[i]);
    ARRAY_FREE(&h->group_chunks);
    mem_free(h->groups);
    mem_free(h->group_changes);
}

/* Its leaves must have been given back. */
void group_remove(struct hived *h, uint32_t index)
{
    assert(index < h->group_count && h->groups[index]);
    text_map_remove(&h->group_index, text_of(h->groups[index]->name));
    group_free(h, h->groups[index]);
    h->groups[index] = NULL;
    group_changed(h, index);
    cell_list_add(&h->group_gaps, index);
}

/* --- downgrades --- */

void group_leaves_downgrade(struct hived *h, struct group *group, uint32_t first, uint32_t end)
{
    assert(end <= group->leaf_count);
    for (uint32_t i = first; i < end; i++) {
        uint32_t physical = group->physical[i];
        if (group->virtual[i] == NONE || physical == NONE)
            continue;
        group->virtual[i] = NONE;
        if (h->rests[physical].reserving != NONE)
            continue; /* the leaf belongs to a preemptor already */
        leaf_release(h, physical, group->vc);
        leaf_allocate(h, physical, NONE, HIVED_PRIORITY_OPPO, group->vc);
    }
}

void group_downgrade_end(struct hived *h, uint32_t index, const char *preemptor)
{
    struct group *group = h->groups[index];
    group->has_virtual = false;
    group->is_downgraded = true;
    mem_free(group->preemptor);
    group->preemptor = mem_copy(preemptor);
    demotion_drop(h, index);
    group->preemption_ms = h->now_ms;
    group_changed(h, index);
}

/* It loses its virtual cells and goes on as an opportunistic one, where it is. */
void group_downgrade(struct hived *h, uint32_t index, const char *preemptor)
{
    assert(index < h->group_count && h->groups[index]);
    struct group *group = h->groups[index];
    if (group->has_virtual)
        group_leaves_downgrade(h, group, 0, group->leaf_count);
    group_downgrade_end(h, index, preemptor);
}

/* Give a leaf to the group that uses it, guaranteed if it can be. */
static void leaf_give(struct hived *h, struct group *group, uint32_t i, uint32_t wanted)
{
    assert(i < group->leaf_count);
    uint32_t physical = group->physical[i], virtual = NONE;
    if (wanted != NONE)
        virtual = leaf_virtual(h, physical, wanted, group->priority);
    group->virtual[i] = virtual;
    if (!leaf_allocate(h, physical, virtual, group->priority, group->vc))
        h->is_safety_broken = true;
}

/* So many leaves of its, the last ones first. */
static void group_downgrade_undo(struct hived *h, struct downgrade *downgrade, uint32_t leaves)
{
    struct group *group = h->groups[downgrade->group];
    const uint32_t end = leaves < downgrade->next ? downgrade->next - leaves : 0;
    while (downgrade->next > end) {
        const uint32_t i = --downgrade->next;
        if (downgrade->virtual[i] == NONE || group->physical[i] == NONE)
            continue;
        if (h->rests[group->physical[i]].reserving != NONE) {
            group->virtual[i] = downgrade->virtual[i];
            continue;
        }
        leaf_release(h, group->physical[i], group->vc);
        leaf_give(h, group, i, downgrade->virtual[i]);
    }
    group->has_virtual = true; /* it is a group that has lost some, or none any more */
    group->is_downgraded = false;
    mem_free(group->preemptor);
    group->preemptor = NULL;
    group_changed(h, downgrade->group);
}

static struct downgrade *pending_add(struct hived *h, uint32_t index)
{
    const struct group *group = h->groups[index];
    if (!h->pending_count)
        dooms_hold(h);
    if (h->pending_count == h->pending_room) {
        h->pending_room = h->pending_room ? 2 * h->pending_room : 8;
        h->pending = mem_realloc(h->pending, mem_size(h->pending_room, sizeof *h->pending));
    }
    assert(h->pending);
    struct downgrade *downgrade = &h->pending[h->pending_count++];
    *downgrade = (struct downgrade){
        .group = index,
        .virtual = mem_alloc(mem_size(group->leaf_count, sizeof *downgrade->virtual))};
    memcpy(downgrade->virtual, group->virtual, group->leaf_count * sizeof *downgrade->virtual);
    return downgrade;
}

/* Downgrade the lazy groups in the way, to be kept or taken back by group_pending_settle. */
bool group_pending_downgrade(struct hived *h, uint32_t index, const char *preemptor,
                             uint32_t *leaves)
{
    assert(index < h->group_count && h->groups[index]->has_virtual && *leaves > 0);
    struct group *group = h->groups[index];
    struct downgrade *last = h->pending_count ? &h->pending[h->pending_count - 1] : NULL;
    if (!last || last->group != index)
        last = pending_add(h, index);
    const uint32_t left = group->leaf_count - last->next, count = left < *leaves ? left : *leaves;
    group_leaves_downgrade(h, group, last->next, last->next + count);
    group_changed(h, index);
    last->next += count;
    *leaves -= count;
    if (last->next < group->leaf_count)
        return false;
    group_downgrade_end(h, index, preemptor);
    return true;
}

/* The last one has everything back, or keeps what it has. */
static void pending_drop(struct hived *h)
{
    mem_free(h->pending[--h->pending_count].virtual);
    if (!h->pending_count)
        dooms_let(h);
}

bool group_pending_return(struct hived *h, uint32_t *leaves)
{
    h->changes += !h->origin;
    while (h->pending_count > 0 && *leaves > 0) {
        struct downgrade *last = &h->pending[h->pending_count - 1];
        const uint32_t count = last->next < *leaves ? last->next : *leaves;
        group_downgrade_undo(h, last, count);
        *leaves -= count;
        if (!last->next)
            pending_drop(h);
    }
    if (h->pending_count > 0)
        return false;
    group_pending_settle(h, false);
    return true;
}

/* The beginning of whatever changes HiveD. */
void group_pending_settle(struct hived *h, bool is_kept)
{
    h->changes += !h->origin; /* a mirror's number is that of what it shows */
    mem_free(h->pending_group);
    h->pending_group = NULL;
    h->is_displacing = false;
    if (h->holds_for_commit) {
        h->holds_for_commit = false;
        dooms_let(h);
    }
    while (h->pending_count > 0) {
        if (!is_kept)
            group_downgrade_undo(h, &h->pending[h->pending_count - 1], UINT32_MAX);
        pending_drop(h);
    }
}

/* --- preemptions --- */

void preempting_add(struct group *group, const char *pod)
{
    assert(group->state == HIVED_GROUP_PREEMPTING);
    if (!pod)
        return;
    for (uint32_t i = 0; i < group->preempting_count; i++)
        if (!strcmp(group->preempting[i], pod))
            return;
    if (group->preempting_count == group->preempting_room) {
        group->preempting_room = group->preempting_room ? 2 * group->preempting_room : 4;
        group->preempting = mem_realloc(
            group->preempting, mem_size(group->preempting_room, sizeof *group->preempting));
    }
    group->preempting[group->preempting_count++] = mem_copy(pod);
}

/* Reserve the group's placement: those who use it now are being preempted. */
void preemption_go_on(struct hived *h, uint32_t index, uint32_t leaves)
{
    struct group *group = h->groups[index];
    const uint32_t left = group->leaf_count - group->reserved;
    const uint32_t end = group->reserved + (leaves < left ? leaves : left);
    assert(group->state == HIVED_GROUP_PREEMPTING);
    dooms_hold(h);
    for (uint32_t i = group->reserved; i < end; i++) {
        uint32_t physical = group->physical[i];
        struct cell *leaf = &h->cells[physical];
        assert(rest_of(h, leaf)->reserving == NONE);
        if (leaf->state == HIVED_CELL_USED) {
            struct group *victim = h->groups[leaf->using];
            leaf_release(h, physical, victim->vc);
            victim->state = HIVED_GROUP_BEING_PREEMPTED;
            group_changed(h, leaf->using);
        }
        if (group->has_virtual)
            group->types[i] = level_of(h, &h->cells[h->cells[group->virtual[i]].root])->type;
        leaf_give(h, group, i, group->virtual[i]);
        rest_of(h, leaf)->reserving = index;
        cell_state_set(h, physical,
                       leaf->state == HIVED_CELL_USED ? HIVED_CELL_RESERVING : HIVED_CELL_RESERVED);
    }
    group->reserved = end;
    group_changed(h, index);
    dooms_let(h);
}

/* A victim whose leaves nobody reserves any more goes on as if nothing had been. */
static void victim_pardon(struct hived *h, struct group *victim)
{
    if (victim->state != HIVED_GROUP_BEING_PREEMPTED)
        return;
    for (uint32_t i = 0; i < victim->leaf_count; i++)
        if (victim->physical[i] != NONE && h->rests[victim->physical[i]].reserving != NONE)
            return;
    victim->state = HIVED_GROUP_ALLOCATED;
}

/* From `hint` on first: leaves are asked for in the order in which most groups have theirs. */
static uint32_t victim_leaf(const struct group *victim, uint32_t physical, uint32_t hint)
{
    const uint32_t count = victim->leaf_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)(((uint64_t)hint + i) % count);
        if (victim->physical[at] == physical)
            return at;
    }
    assert(false && "a leaf in use belongs to its group");
    return 0;
}

/* Those who use the leaves that are reserved no longer. */
static void victims_pardon(struct hived *h, const struct group *group, uint32_t first, uint32_t end)
{
    uint32_t last = NONE;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t victim = h->cells[group->physical[i]].using;
        if (victim != NONE && victim != last) {
            victim_pardon(h, h->groups[victim]);
            group_changed(h, victim);
        }
        last = victim;
    }
}

static uint32_t ended_next(const struct group *group, uint32_t end, uint32_t leaves)
{
    assert(group->ended <= end);
    return end - group->ended < leaves ? end : group->ended + leaves;
}

/* Give back what the group reserved, and forget the group. */
bool preemption_undo_some(struct hived *h, uint32_t index, uint32_t leaves)
{
    struct group *group = h->groups[index];
    const uint32_t first = group->ended, end = ended_next(group, group->reserved, leaves);
    uint32_t own = 0;
    assert(group->state == HIVED_GROUP_PREEMPTING);
    dooms_hold(h);
    for (uint32_t i = first; i < end; i++) {
        uint32_t physical = group->physical[i];
        struct cell *leaf = &h->cells[physical];
        leaf_release(h, physical, group->vc);
        rest_of(h, leaf)->reserving = NONE;
        if (i < group->taken)
            leaf->using = NONE;
        if (leaf->state != HIVED_CELL_RESERVING) {
            cell_state_set(h, physical, HIVED_CELL_FREE);
            continue;
        }
        cell_state_set(h, physical, HIVED_CELL_USED);
        struct group *victim = h->groups[leaf->using];
        own = victim_leaf(victim, physical, own);
        leaf_give(h, victim, own, victim->has_virtual ? victim->virtual[own] : NONE);
        group_changed(h, leaf->using);
        own++;
    }
    group->ended = end;
    victims_pardon(h, group, first, end);
    dooms_let(h);
    if (end < group->reserved)
        return false;
    group_remove(h, index);
    return true;
}

void preemption_undo(struct hived *h, uint32_t index)
{
    const bool is_gone = preemption_undo_some(h, index, UINT32_MAX);
    assert(is_gone);
    (void)is_gone;
}

enum { LEAVES_OF_GROUP = 16 }; /* to forget one that preempts is as much work */

uint32_t preemption_work(const struct group *group)
{
    assert(group->state == HIVED_GROUP_PREEMPTING);
    return group->reserved - group->ended + LEAVES_OF_GROUP;
}

/* Some of what the weaker one has reserved: all of it goes back, as its preemption is cancelled. */
void preemption_overtake(struct hived *h, uint32_t *weaker, uint32_t *leaves)
{
    const struct group *group = h->groups[*weaker - 1];
    const uint32_t left = group->reserved - group->ended, part = left < *leaves ? left : *leaves,
                   work = part + LEAVES_OF_GROUP;
    if (preemption_undo_some(h, *weaker - 1, part))
        *weaker = 0;
    *leaves -= work < *leaves ? work : *leaves;
}

/* Those who preempt for leaves of this group do no more. True: nobody is left. */
bool preemption_overtake_some(struct hived *h, uint32_t index, uint32_t leaves)
{
    enum { LOOKED_AT_PER_LEAF = 8 };
    struct group *group = h->groups[index];
    uint32_t looked_at = 0;
    assert(group->state == HIVED_GROUP_PREEMPTING);
    while (group->overtaken < group->leaf_count && leaves > looked_at / LOOKED_AT_PER_LEAF) {
        const uint32_t reserver = h->rests[group->physical[group->overtaken]].reserving;
        if (!group->weaker && reserver != NONE)
            group->weaker = reserver + 1;
        if (group->weaker) {
            preemption_overtake(h, &group->weaker, &leaves);
            continue;
        }
        group->overtaken++;
        looked_at++;
    }
    return group->overtaken == group->leaf_count;
}

void hived_overtaking_end(struct hived *h)
{
    if (!h->is_overtaking)
        return;
    h->is_overtaking = false;
    dooms_let(h);
}

/* Leaves of an allocated group go back; cells reserved by a preemptor stay with it, and devices
 * that another group was found on as well are that one's. */
bool group_release(struct hived *h, uint32_t index, uint32_t leaves)
{
    struct group *group = h->groups[index];
    const bool has_heirs = h->lost_count > group->lost_count;
    const uint32_t first = group->ended,
                   end = ended_next(group, group->leaf_count, has_heirs ? UINT32_MAX : leaves);
    demotion_drop(h, index);
    if (has_heirs)
        dooms_hold(h);
    leaves_fetch(h, group->physical + first, end - first);
    if (group->has_virtual)
        leaves_fetch(h, group->virtual + first, end - first);
    for (uint32_t i = first; i < end; i++) {
        uint32_t physical = group->physical[i];
        if (physical == NONE)
            continue;
        struct cell *leaf = &h->cells[physical];
        leaf->using = NONE;
        if (leaf->state == HIVED_CELL_USED) {
            leaf_release(h, physical, group->vc);
            cell_state_set(h, physical, HIVED_CELL_FREE);
        } else {
            assert(leaf->state == HIVED_CELL_RESERVING);
            cell_state_set(h, physical, HIVED_CELL_RESERVED);
        }
    }
    group->ended = end;
    for (uint32_t i = first; has_heirs && i < end; i++)
        if (group->physical[i] != NONE)
            leaf_pass_on(h, group->physical[i]);
    if (has_heirs)
        dooms_let(h);
    if (end < group->leaf_count)
        return false;
    group_remove(h, index);
    return true;
}
