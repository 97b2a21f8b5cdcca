/* simple_choice.c — see simple_choice.h. */
#include "placement/simple_choice.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

static void view_update(const struct simple_trial *trial, uint32_t at)
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
static bool node_may(const struct simple_trial *trial, const struct simple_need *need, uint32_t at)
{
    const struct placement_request *request = trial->search->request;
    if (need->member)
        return simple_node_may(trial->search, at, need->member);
    for (size_t i = 0; i < request->member_count; i++)
        if (!simple_node_may(trial->search, at, &request->members[i]))
            return false;
    return true;
}

static uint64_t room_of_node(const struct simple_trial *trial, const struct simple_need *need,
                             uint32_t at)
{
    assert(at < trial->simple->nodes.count);
    uint64_t room = simple_view_room(&trial->simple->views[at], &need->demand, need->tasks);
    if (need->is_together)
        room = room >= need->tasks;
    return room > 0 && node_may(trial, need, at) ? room : 0;
}

static void node_count(struct simple_trial *trial, uint32_t at, bool is_added)
{
    simple_work_take(trial->left, WORK_OF_COUNTING);
    if (!simple_view_has(&trial->simple->views[at], &trial->choice->needs.least))
        return;
    simple_work_take(trial->left, (trial->choice->needs.count - 1) * WORK_OF_COUNTING);
    simple_sums_count(&trial->choice->needs.sums, &trial->simple->views[at], is_added);
    for (size_t i = 0; i < trial->choice->needs.count; i++) {
        struct simple_need *need = &trial->choice->needs.items[i];
        const uint64_t room = room_of_node(trial, need, at);
        assert(is_added || need->room >= room);
        need->room = is_added ? need->room + room : need->room - room;
    }
}

/* The nodes from `next` on. */
void simple_choice_count(struct simple_trial *trial)
{
    struct simple *simple = trial->simple;
    struct simple_choice *choice = trial->choice;
    if (!choice->next)
        simple_sums_clear(&choice->needs.sums);
    for (size_t i = 0; i < choice->needs.count && !choice->next; i++)
        choice->needs.items[i].room = 0;
    const uint64_t most = *trial->left / WORK_OF_COUNTING + 1;
    uint64_t passed = 0; /* they have no room for any task: most of them, mostly */
    for (; choice->next < simple->nodes.count && passed < most && *trial->left; choice->next++) {
        const uint32_t at = (uint32_t)choice->next;
        if (choice->stage != CHOICE_COUNT_ALL || simple_share_is_none(&simple->extra[at]))
            simple->views[at] = simple->offered[at];
        else
            view_update(trial, at);
        if (simple_view_has(&simple->views[at], &choice->needs.least))
            node_count(trial, at, true);
        else
            passed++;
    }
    simple_work_take(trial->left, passed * WORK_OF_COUNTING);
}

static void node_recount(struct simple_trial *trial, uint32_t at)
{
    node_count(trial, at, false);
    view_update(trial, at);
    node_count(trial, at, true);
}

/* Which nodes are counted: those before this one. */
static size_t nodes_counted(const struct simple_trial *trial)
{
    const struct simple_choice *choice = trial->choice;
    switch (choice->stage) {
    case CHOICE_COUNT:
    case CHOICE_COUNT_ALL:
    case CHOICE_COUNT_AGAIN:
        return choice->next;
    case CHOICE_FEW:
    case CHOICE_ADD:
    case CHOICE_SPARE:
        return trial->simple->nodes.count;
    case CHOICE_LIST:
    case CHOICE_ALL:
    case CHOICE_DONE:
    case CHOICE_FAILED:
        break;
    }
    return 0;
}

/* What has ended since the piece before. */
void simple_choice_recount(struct simple_trial *trial)
{
    struct simple_choice *choice = trial->choice;
    while (choice->touched.count && *trial->left) {
        const uint32_t at = choice->touched.items[--choice->touched.count];
        if (at < nodes_counted(trial))
            node_recount(trial, at);
    }
}

static void slot_give(const struct simple *simple, const struct simple_slot *slot, bool is_given)
{
    assert(slot->node < simple->nodes.count);
    struct simple_share *extra = &simple->extra[slot->node];
    const uint64_t cpu = slot->cpu;
    extra->cpu = is_given ? extra->cpu + cpu : extra->cpu - cpu;
    extra->memory_mib =
        is_given ? extra->memory_mib + slot->memory_mib : extra->memory_mib - slot->memory_mib;
    extra->gpus = is_given ? extra->gpus | slot->gpus : extra->gpus & ~slot->gpus;
}

static bool is_given_widely(const struct simple *simple, const struct simple_choice *choice)
{
    return choice->given.count > simple->nodes.count / 2;
}

/* A victim's place: it is cleared at the end. */
void simple_choice_add(const struct simple_trial *trial, const struct simple_slot *slot)
{
    slot_give(trial->simple, slot, true);
    if (!is_given_widely(trial->simple, trial->choice))
        *ARRAY_ADD(&trial->choice->given) = slot->node;
}

/* The group becomes a victim of the try, or is spared again. */
void simple_choice_give(struct simple_trial *trial, const struct simple_group *group, bool is_given)
{
    assert(group->name);
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct simple_slot *slot = &group->slots[i];
        if (slot->node == UINT32_MAX)
            continue;
        simple_work_take(trial->left, WORK_OF_GIVING);
        node_count(trial, slot->node, false);
        if (is_given)
            simple_choice_add(trial, slot);
        else
            slot_give(trial->simple, slot, false);
        view_update(trial, slot->node);
        node_count(trial, slot->node, true);
    }
}

void simple_choice_clear(const struct simple *simple, struct simple_choice *choice)
{
    if (is_given_widely(simple, choice))
        memset(simple->extra, 0, simple->nodes.count * sizeof *simple->extra);
    else
        for (size_t i = 0; i < choice->given.count; i++)
            simple->extra[choice->given.items[i]] = (struct simple_share){0};
    choice->given.count = 0;
}

void simple_choice_free(struct simple *simple, struct simple_choice *choice)
{
    if (!choice)
        return;
    simple_choice_clear(simple, choice);
    ARRAY_FREE(&choice->given);
    mem_free(choice->needs.items);
    simple_candidates_free(&choice->candidates);
    mem_free(choice->saved);
    mem_free(choice->places);
    mem_free(choice->taken);
    ARRAY_FREE(&choice->touched);
    mem_free(choice);
}

struct simple_choice *simple_choice_copy(struct simple *to, const struct simple *from)
{
    const struct simple_choice *old = from->course.choice;
    if (!old)
        return NULL;
    struct simple_choice *choice = mem_copy_array(old, 1, sizeof *old);
    choice->needs.items =
        mem_copy_array(old->needs.items, old->needs.count, sizeof *old->needs.items);
    simple_candidates_copy(&choice->candidates, &old->candidates, from);
    if (old->saved)
        choice->saved = mem_copy_array(old->saved, from->nodes.count, sizeof *old->saved);
    choice->places = mem_copy_array(old->places, old->place_count, sizeof *old->places);
    choice->taken = mem_copy_array(old->taken, from->nodes.count, sizeof *old->taken);
    ARRAY_COPY(&choice->touched, &old->touched);
    ARRAY_COPY(&choice->given, &old->given);
    memcpy(to->extra, from->extra, from->nodes.count * sizeof *to->extra);
    return choice;
}

void simple_choice_ends(struct simple *simple, size_t group, const struct simple_slot *slot)
{
    assert(group < simple->groups.count);
    if (simple->course.choice && simple->course.is_victim[group])
        slot_give(simple, slot, false); /* it is free without being a victim's */
}

void simple_choice_touch(struct simple *simple, uint32_t node)
{
    assert(node < simple->nodes.count);
    if (simple->course.choice)
        *ARRAY_ADD(&simple->course.choice->touched) = node;
}
