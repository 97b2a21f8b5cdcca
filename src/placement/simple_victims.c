/* Whose end would make room for a gang. Each try is "does it fit without these?", asked once for
 * each group that may be ended; so what fits is counted, node by node, instead of placed. For a
 * gang of equal tasks, or one that lies on one node, the count is the answer. For others it says
 * only when it does not fit; else the gang is placed on trial. As a trial passes over all nodes,
 * their number is bounded, and whoever leaves the places of the last one alone is spared without.
 *
 * A choice in pieces stops between two groups or nodes. What ends meanwhile is free at once: the
 * nodes of it are counted anew when the choice goes on. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/simple_parts.h"

/* Equal tasks of the gang. */
struct need {
    size_t at;                             /* its first member in the request, … */
    const struct placement_member *member; /* … which is another one in each piece; NULL: all
                                              members on one node */
    struct demand demand;
    uint64_t count;
    bool is_together; /* on one node: room is a number of nodes, count is 1 */
    uint32_t tasks;   /* a node has room when it has it for so many at once */
    uint64_t room;    /* with the victims of this try; more than count does not matter */
};

/* What all tasks of a gang need together, and what there is of it on all nodes that have room for
 * any: a gang for which that is not enough need not be placed on trial. */
struct sums {
    struct simple_share want, have;
    struct {
        uint32_t gpu;        /* of tasks of at least so many GPUs each … */
        uint64_t want, have; /* … there are so many, and nodes have GPUs for so many */
    } sizes[PLACEMENT_GPUS_MAX];
    size_t size_count;
};

/* How far the choice has come. */
struct simple_choice {
    enum choice_stage {
        CHOICE_LIST,        /* groups that may be ended are listed */
        CHOICE_COUNT,       /* the room of all nodes is counted */
        CHOICE_FEW,         /* some become victims */
        CHOICE_ALL,         /* all of them do: would that be enough? … */
        CHOICE_COUNT_ALL,   /* … their room is counted, … */
        CHOICE_COUNT_AGAIN, /* … then that without victims, … */
        CHOICE_ADD,         /* … and one becomes a victim after the other */
        CHOICE_SPARE,       /* each without which it fits as well is none */
        CHOICE_DONE,
        CHOICE_FAILED,
    } stage;
    size_t next; /* group, node or candidate */
    struct need *needs;
    size_t need_count;
    struct demand least; /* of all needs: a node without so much has no room */
    struct sums sums;    /* where counting alone does not tell whether it fits */
    bool is_given;       /* ADD, FEW, SPARE: he at `next` is a victim, or spared, and … */
    bool is_asking;      /* … whether the gang fits with that is not known yet */
    bool is_tried;       /* it is placed on trial for that, … */
    struct simple_gang gang;
    struct simple_view *saved; /* … and the views were these before; NULL: there was no trial */
    size_t trials_max;         /* of a stage */
    size_t trials;             /* that this stage has begun, … */
    size_t tried_at;           /* … the last one here */
    /* Where the last trial that it passed has put its tasks, and what that takes of each node: NULL
     * without such. What ends meanwhile takes nothing away from it. */
    struct simple_slot *places;
    size_t place_count;
    struct simple_share *taken;
    struct simple_candidates candidates;
    uint64_t before; /* FEW: the room without victims */
    struct {
        uint32_t *items; /* nodes of victims; not of use when there are very many of them */
        size_t count, room;
    } given;
    struct {
        uint32_t *items; /* nodes on which something has ended between two pieces */
        size_t count, room;
    } touched;
};

struct trial {
    const struct simple_search *search;
    struct simple *simple;
    struct simple_choice *choice;
    bool *is_victim; /* by group */
    uint64_t *left;  /* work */
};

/* --- what a node offers --- */

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

static uint64_t sum_changed(uint64_t sum, uint64_t by, bool is_added)
{
    assert(is_added || sum >= by);
    return is_added ? sum + by : sum - by;
}

static void sums_count(struct sums *sums, const struct simple_view *view, bool is_added)
{
    struct simple_share *have = &sums->have;
    have->cpu = sum_changed(have->cpu, view->cpu, is_added);
    have->memory_mib = sum_changed(have->memory_mib, view->memory_mib, is_added);
    have->gpus = sum_changed(have->gpus, view->gpu_count, is_added);
    for (size_t i = 0; i < sums->size_count && sums->sizes[i].gpu <= view->gpu_count; i++)
        sums->sizes[i].have =
            sum_changed(sums->sizes[i].have, view->gpu_count / sums->sizes[i].gpu, is_added);
}

static bool sums_suffice(const struct sums *sums)
{
    bool suffice = sums->have.cpu >= sums->want.cpu &&
                   sums->have.memory_mib >= sums->want.memory_mib &&
                   sums->have.gpus >= sums->want.gpus;
    for (size_t i = 0; i < sums->size_count && suffice; i++)
        suffice = sums->sizes[i].have >= sums->sizes[i].want;
    return suffice;
}

/* No node has anything. */
static void sums_clear(struct sums *sums)
{
    sums->have = (struct simple_share){0};
    for (size_t i = 0; i < sums->size_count; i++)
        sums->sizes[i].have = 0;
}

static void node_count(struct trial *trial, uint32_t at, bool is_added)
{
    simple_work_take(trial->left, WORK_OF_COUNTING);
    if (!simple_view_has(&trial->simple->views[at], &trial->choice->least))
        return;
    simple_work_take(trial->left, (trial->choice->need_count - 1) * WORK_OF_COUNTING);
    sums_count(&trial->choice->sums, &trial->simple->views[at], is_added);
    for (size_t i = 0; i < trial->choice->need_count; i++) {
        struct need *need = &trial->choice->needs[i];
        const uint64_t room = room_of_node(trial, need, at);
        assert(is_added || need->room >= room);
        need->room = is_added ? need->room + room : need->room - room;
    }
}

/* The nodes from `next` on. */
static void nodes_count(struct trial *trial)
{
    struct simple *simple = trial->simple;
    struct simple_choice *choice = trial->choice;
    if (!choice->next)
        sums_clear(&choice->sums);
    for (size_t i = 0; i < choice->need_count && !choice->next; i++)
        choice->needs[i].room = 0;
    const uint64_t most = *trial->left / WORK_OF_COUNTING + 1;
    uint64_t passed = 0; /* they have no room for any task: most of them, mostly */
    for (; choice->next < simple->nodes.count && passed < most && *trial->left; choice->next++) {
        const uint32_t at = (uint32_t)choice->next;
        if (choice->stage != CHOICE_COUNT_ALL || simple_share_is_none(&simple->extra[at]))
            simple->views[at] = simple->offered[at];
        else
            view_update(trial, at);
        if (simple_view_has(&simple->views[at], &choice->least))
            node_count(trial, at, true);
        else
            passed++;
    }
    simple_work_take(trial->left, passed * WORK_OF_COUNTING);
}

static void node_recount(struct trial *trial, uint32_t at)
{
    node_count(trial, at, false);
    view_update(trial, at);
    node_count(trial, at, true);
}

/* Which nodes are counted: those before this one. */
static size_t nodes_counted(const struct trial *trial)
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
static void touched_count(struct trial *trial)
{
    struct simple_choice *choice = trial->choice;
    while (choice->touched.count && *trial->left) {
        const uint32_t at = choice->touched.items[--choice->touched.count];
        if (at < nodes_counted(trial))
            node_recount(trial, at);
    }
}

/* --- groups --- */

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
static void slot_add(const struct trial *trial, const struct simple_slot *slot)
{
    slot_give(trial->simple, slot, true);
    if (!is_given_widely(trial->simple, trial->choice))
        *ARRAY_ADD(&trial->choice->given) = slot->node;
}

/* The group becomes a victim of the try, or is spared again. */
static void group_give(struct trial *trial, const struct simple_group *group, bool is_given)
{
    assert(group->name);
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct simple_slot *slot = &group->slots[i];
        if (slot->node == UINT32_MAX)
            continue;
        simple_work_take(trial->left, WORK_OF_GIVING);
        node_count(trial, slot->node, false);
        if (is_given)
            slot_add(trial, slot);
        else
            slot_give(trial->simple, slot, false);
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
    struct need *need = need_of(trial->choice->needs, trial->choice->need_count, member);
    if (!member->count)
        return;
    if (!need) {
        need = &trial->choice->needs[trial->choice->need_count++];
        *need = (struct need){
            .at = (size_t)(member - trial->search->request->members),
            .member = member,
            .demand = {member->cpu, member->gpu, member->memory_mib},
            .is_together = *member->within_one_cell,
        };
    }
    need->count = need->is_together ? 1 : need->count + member->count;
    need->tasks = member->count;
    if (!need->is_together) /* of more on one node it is not asked */
        need->tasks = need->count < UINT32_MAX ? (uint32_t)need->count : UINT32_MAX;
}

static void demand_lower(struct demand *least, const struct demand *demand)
{
    least->cpu = demand->cpu < least->cpu ? demand->cpu : least->cpu;
    least->gpu = demand->gpu < least->gpu ? demand->gpu : least->gpu;
    if (demand->memory_mib < least->memory_mib)
        least->memory_mib = demand->memory_mib;
}

/* Sizes stand in ascending order. */
static void size_add(struct sums *sums, uint32_t gpu)
{
    size_t at = 0;
    while (at < sums->size_count && sums->sizes[at].gpu < gpu)
        at++;
    if (!gpu || (at < sums->size_count && sums->sizes[at].gpu == gpu))
        return;
    assert(sums->size_count < COUNT_OF(sums->sizes));
    memmove(&sums->sizes[at + 1], &sums->sizes[at], (sums->size_count - at) * sizeof *sums->sizes);
    memset(&sums->sizes[at], 0, sizeof *sums->sizes);
    sums->sizes[at].gpu = gpu;
    sums->size_count++;
}

/* Of a gang of equal tasks the needs say as much. */
static void sums_list(struct sums *sums, const struct placement_request *request)
{
    for (size_t i = 0; i < request->member_count; i++)
        size_add(sums, request->members[i].gpu);
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        const uint64_t count = member->count;
        sums->want.cpu += count * member->cpu;
        sums->want.memory_mib =
            sum_saturated(sums->want.memory_mib, product_saturated(count, member->memory_mib));
        sums->want.gpus += count * member->gpu;
        for (size_t k = 0; k < sums->size_count && sums->sizes[k].gpu <= member->gpu; k++)
            sums->sizes[k].want += count;
    }
}

/* How many trials a stage may make: as many as are cheap. Where they are not enough, more victims
 * are asked for at once, and whoever holds what the last places take is not spared. */
static size_t trials_count(const struct trial *trial)
{
    enum { LEAST = 4, MOST = 48, WORK_OF_ALL = 4000000 };
    const struct placement_request *request = trial->search->request;
    uint64_t work = trial->simple->nodes.count + 1;
    for (size_t i = 0; i < request->member_count; i++)
        work += (uint64_t)request->members[i].count * WORK_OF_TASK;
    const uint64_t count = WORK_OF_ALL / work;
    return count < LEAST ? LEAST : count > MOST ? MOST : (size_t)count;
}

/* False: more than any node has. */
static bool needs_list(struct trial *trial)
{
    const struct placement_request *request = trial->search->request;
    struct simple_choice *choice = trial->choice;
    choice->needs = mem_zero(request->member_count + 1, sizeof *choice->needs);
    if (request->within_one_cell && *request->within_one_cell) {
        struct need *whole = &choice->needs[choice->need_count++];
        *whole = (struct need){.count = 1, .is_together = true, .tasks = 1};
        if (!simple_gang_demand(request, &whole->demand))
            return false;
    } else {
        for (size_t i = 0; i < request->member_count; i++)
            need_add(trial, &request->members[i]);
        if (choice->need_count > 1)
            sums_list(&choice->sums, request);
    }
    choice->trials_max = trials_count(trial);
    choice->least = (struct demand){UINT32_MAX, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < choice->need_count; i++)
        demand_lower(&choice->least, &choice->needs[i].demand);
    return true;
}

/* --- the search --- */

static void stage_begin(struct trial *trial, enum choice_stage stage)
{
    trial->choice->stage = stage;
    trial->choice->next = trial->choice->trials = trial->choice->tried_at = 0;
}

/* Is it known by counting alone whether the gang fits? Then it fits with more victims if it does
 * with fewer. */
static bool trial_counts(const struct trial *trial)
{
    return trial->choice->need_count == 1;
}

/* --- a gang that is placed on trial --- */

static void places_count(struct simple_choice *choice, bool is_taken)
{
    for (size_t i = 0; i < choice->place_count; i++) {
        const struct simple_slot *slot = &choice->places[i];
        struct simple_share *taken = &choice->taken[slot->node];
        const struct simple_share one = {slot->cpu, slot->memory_mib, slot->gpus};
        taken->cpu = is_taken ? taken->cpu + one.cpu : taken->cpu - one.cpu;
        taken->memory_mib =
            is_taken ? taken->memory_mib + one.memory_mib : taken->memory_mib - one.memory_mib;
        taken->gpus = is_taken ? taken->gpus | one.gpus : taken->gpus & ~one.gpus;
    }
}

/* It has passed the trial. */
static void places_keep(struct trial *trial)
{
    const struct placement_request *request = trial->search->request;
    struct simple_choice *choice = trial->choice;
    if (!choice->places) {
        for (size_t i = 0; i < request->member_count; i++)
            choice->place_count += request->members[i].count;
        choice->places = mem_alloc(mem_size(choice->place_count + 1, sizeof *choice->places));
        choice->taken = mem_zero(trial->simple->nodes.count + 1, sizeof *choice->taken);
    } else {
        places_count(choice, false);
    }
    memcpy(choice->places, trial->search->slots, choice->place_count * sizeof *choice->places);
    places_count(choice, true);
    simple_work_take(trial->left, choice->place_count * WORK_OF_GIVING);
}

/* Are these places still free, as the group that held something there is spared? */
static bool places_are_free(const struct trial *trial, const struct simple_group *group)
{
    const struct simple_choice *choice = trial->choice;
    bool are_free = choice->places != NULL;
    for (size_t i = 0; i < group->slot_count && are_free; i++) {
        const uint32_t at = group->slots[i].node;
        if (at == UINT32_MAX)
            continue;
        const struct simple_share *taken = &choice->taken[at];
        const struct simple_view *view = &trial->simple->views[at];
        are_free = view->cpu >= taken->cpu && view->memory_mib >= taken->memory_mib &&
                   !(taken->gpus & ~view->gpus);
    }
    return are_free;
}

/* The gang is placed on trial, and the views are as before when it is known whether it fits. */
static enum simple_outcome trial_place(struct trial *trial)
{
    const struct simple *simple = trial->simple;
    struct simple_choice *choice = trial->choice;
    const size_t size = simple->nodes.count * sizeof *choice->saved;
    bool fits = true;
    if (!choice->saved) {
        choice->saved = mem_alloc(size);
        simple_gang_order(trial->search->request, &choice->gang);
    }
    if (!choice->is_tried) {
        choice->trials++;
        choice->tried_at = choice->next;
        memcpy(choice->saved, simple->views, size);
        fits = simple_gang_begin(trial->search, &choice->gang, trial->left);
    }
    choice->is_tried = true;
    const enum simple_outcome outcome =
        fits ? simple_gang_go_on(trial->search, &choice->gang, trial->left) : SIMPLE_FAILS;
    if (outcome == SIMPLE_CUT)
        return SIMPLE_CUT;
    memcpy(simple->views, choice->saved, size);
    choice->is_tried = false;
    if (outcome == SIMPLE_PLACED)
        places_keep(trial);
    return outcome;
}

/* Does the gang fit? Asked again after a cut. */
static enum simple_outcome trial_fits(struct trial *trial)
{
    const struct simple_choice *choice = trial->choice;
    simple_work_take(trial->left, 1 + choice->need_count / NEEDS_PER_WORK);
    for (size_t i = 0; i < choice->need_count && !choice->is_tried; i++)
        if (choice->needs[i].room < choice->needs[i].count)
            return SIMPLE_FAILS;
    if (trial_counts(trial))
        return SIMPLE_PLACED;
    if (!choice->is_tried && !sums_suffice(&choice->sums))
        return SIMPLE_FAILS;
    return trial_place(trial);
}

/* Is it asked with one more victim? With each at first; a gang that many trials have failed, with
 * each eighth more. */
static bool is_asked(const struct trial *trial, size_t end)
{
    const struct simple_choice *choice = trial->choice;
    return trial_counts(trial) || choice->is_tried || choice->trials < choice->trials_max ||
           choice->next + 1 >= end || choice->next >= choice->tried_at + choice->tried_at / 8;
}

/* Does it fit without him? */
static enum simple_outcome spared_fits(struct trial *trial, const struct simple_group *group)
{
    const struct simple_choice *choice = trial->choice;
    if (!trial_counts(trial) && !choice->is_tried) {
        if (places_are_free(trial, group))
            return SIMPLE_PLACED;
        if (choice->trials >= choice->trials_max)
            return SIMPLE_FAILS;
    }
    return trial_fits(trial);
}

static void extra_clear(const struct simple *simple, struct simple_choice *choice)
{
    if (is_given_widely(simple, choice))
        memset(simple->extra, 0, simple->nodes.count * sizeof *simple->extra);
    else
        for (size_t i = 0; i < choice->given.count; i++)
            simple->extra[choice->given.items[i]] = (struct simple_share){0};
    choice->given.count = 0;
}

/* Nobody is a victim. */
static void all_spare(const struct trial *trial)
{
    extra_clear(trial->simple, trial->choice);
    memset(trial->is_victim, 0, trial->simple->groups.count * sizeof *trial->is_victim);
}

static void all_go_on(struct trial *trial)
{
    const struct simple *simple = trial->simple;
    struct simple_choice *choice = trial->choice;
    for (; choice->next < choice->candidates.count && *trial->left; choice->next++) {
        const uint32_t at = choice->candidates.items[choice->next];
        const struct simple_group *group = &simple->groups.items[at];
        simple_work_take(trial->left, group->slot_count * WORK_OF_COUNTING);
        trial->is_victim[at] = true;
        for (size_t j = 0; j < group->slot_count; j++)
            if (group->slots[j].node != UINT32_MAX)
                slot_add(trial, &group->slots[j]);
    }
    if (choice->next == choice->candidates.count)
        stage_begin(trial, CHOICE_COUNT_ALL);
}

/* Where the groups after the next ones lie, and what they hold: each is somewhere else. */
static void candidates_prefetch(const struct trial *trial, size_t end)
{
    enum { GROUP_AHEAD = 16, SLOTS_AHEAD = 8 };
    const struct simple *simple = trial->simple;
    const uint32_t *next = trial->choice->candidates.items + trial->choice->next;
    const size_t left = end - trial->choice->next;
    if (left > GROUP_AHEAD)
        __builtin_prefetch(&simple->groups.items[next[GROUP_AHEAD]]);
    if (left <= SLOTS_AHEAD)
        return;
    const uint32_t node = simple->ranks.items[next[SLOTS_AHEAD]].node;
    __builtin_prefetch(simple->groups.items[next[SLOTS_AHEAD]].slots);
    if (node == UINT32_MAX)
        return;
    __builtin_prefetch(&simple->nodes.items[node].cpu_used);
    __builtin_prefetch(&simple->extra[node]);
    __builtin_prefetch(&simple->views[node]);
}

/* One after the other, from `next` to `end`, until it fits. True: it does. Of those that have ended
 * by themselves what they held counts already; of some that ended during a trial, soon. */
static bool victims_add(struct trial *trial, size_t end)
{
    struct simple_choice *choice = trial->choice;
    while (choice->next < end && *trial->left && (choice->is_given || !choice->touched.count)) {
        const uint32_t at = choice->candidates.items[choice->next];
        const struct simple_group *group = &trial->simple->groups.items[at];
        if (!choice->is_given) {
            candidates_prefetch(trial, end);
            trial->is_victim[at] = group->name != NULL;
            if (group->name)
                group_give(trial, group, true);
        }
        const enum simple_outcome outcome = is_asked(trial, end) ? trial_fits(trial) : SIMPLE_FAILS;
        choice->is_given = outcome == SIMPLE_CUT;
        if (outcome == SIMPLE_CUT)
            return false;
        choice->next++;
        if (outcome == SIMPLE_PLACED)
            return true;
    }
    return false;
}

/* If the others bring as much as the first `tried` have, which had `before`: will a quarter do? */
static bool quarter_does(const struct need *need, uint64_t before, size_t tried, size_t count)
{
    assert(tried > 0 && need->room >= before && need->count > need->room);
    const uint64_t gain = need->room - before, left = need->count - need->room;
    return gain * (count / 4) / tried >= left;
}

/* Mostly a few will do: then nobody has to know whether all would. */
static void few_go_on(struct trial *trial)
{
    /* the first ones may have been told to end already, for others or for other parts of its gang
     */
    enum { FEW = 1024, FEW_FOR_MANY = 3072 };
    struct simple_choice *choice = trial->choice;
    const size_t few = choice->needs[0].count > 1 ? FEW_FOR_MANY : FEW;
    const size_t count = choice->candidates.count, end = count < few ? count : few;
    if (victims_add(trial, end)) {
        stage_begin(trial, CHOICE_SPARE);
        return;
    }
    if (choice->next < end || choice->touched.count)
        return;
    if (count <= few) {
        choice->stage = CHOICE_FAILED;
    } else if (quarter_does(&choice->needs[0], choice->before, few, count)) {
        choice->stage = CHOICE_ADD; /* from those few on */
    } else {
        all_spare(trial);
        stage_begin(trial, CHOICE_ALL);
    }
}

static void add_go_on(struct trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (victims_add(trial, choice->candidates.count))
        stage_begin(trial, CHOICE_SPARE);
    else if (choice->next == choice->candidates.count && !choice->touched.count)
        choice->stage = CHOICE_FAILED;
}

size_t simple_victim_next(const bool *is_victim, size_t count, size_t from)
{
    assert(from <= count);
    const bool *at = memchr(is_victim + from, true, (count - from) * sizeof *at);
    return at ? (size_t)(at - is_victim) : count;
}

/* All have been tried. Where it was placed on trial, its places are those that the policy gives it
 * now, or, as these may not fit in what is left, the last ones that it had. */
static void spare_end(struct trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (choice->touched.count && !choice->is_tried)
        return;
    if (!trial_counts(trial)) {
        if (trial_place(trial) == SIMPLE_CUT)
            return;
        memcpy(trial->search->slots, choice->places, choice->place_count * sizeof *choice->places);
    }
    choice->stage = CHOICE_DONE;
}

/* Each without which it fits as well. Who is tried is no victim meanwhile: if he ends by himself
 * between two pieces, what he held is free. */
static void spare_go_on(struct trial *trial)
{
    const struct simple *simple = trial->simple;
    struct simple_choice *choice = trial->choice;
    for (; choice->next < simple->groups.count && *trial->left; choice->next++) {
        if (!choice->is_given && choice->touched.count)
            return;
        if (!choice->is_given)
            choice->next = simple_victim_next(trial->is_victim, simple->groups.count, choice->next);
        if (choice->next == simple->groups.count)
            break;
        const struct simple_group *group = &simple->groups.items[choice->next];
        bool *is_victim = &trial->is_victim[choice->next];
        if (!choice->is_given && (!*is_victim || !group->name))
            continue;
        if (!choice->is_given)
            group_give(trial, group, false);
        *is_victim = false;
        const enum simple_outcome outcome = spared_fits(trial, group);
        choice->is_given = outcome == SIMPLE_CUT;
        if (outcome == SIMPLE_CUT)
            return;
        *is_victim = outcome == SIMPLE_FAILS && group->name;
        if (*is_victim)
            group_give(trial, group, true);
    }
    if (choice->next == simple->groups.count)
        spare_end(trial);
}

/* All nodes are counted. */
static void counted(struct trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (choice->stage == CHOICE_COUNT) {
        choice->before = choice->needs[0].room;
        stage_begin(trial, CHOICE_FEW);
        return;
    }
    if (choice->stage == CHOICE_COUNT_AGAIN) {
        stage_begin(trial, CHOICE_ADD);
        return;
    }
    const enum simple_outcome outcome = trial_fits(trial);
    if (outcome == SIMPLE_PLACED) {
        all_spare(trial);
        stage_begin(trial, CHOICE_COUNT_AGAIN);
    } else if (outcome == SIMPLE_FAILS) {
        choice->stage = CHOICE_FAILED;
    }
}

static struct simple_choice *choice_begin(struct trial *trial)
{
    struct simple_choice *choice = trial->choice = mem_zero(1, sizeof *choice);
    simple_candidates_begin(trial->search, &choice->candidates);
    if (!choice->candidates.room || !needs_list(trial))
        choice->stage = CHOICE_FAILED;
    return choice;
}

static void list_go_on(struct trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (!simple_candidates_go_on(trial->search, &choice->least, &choice->candidates, &choice->next,
                                 trial->left))
        return;
    if (!choice->candidates.count)
        choice->stage = CHOICE_FAILED;
    else
        stage_begin(trial, trial_counts(trial) ? CHOICE_COUNT : CHOICE_ALL);
}

/* In each piece the request is another copy of the same. */
static void needs_settle(const struct trial *trial)
{
    const struct placement_request *request = trial->search->request;
    struct simple_choice *choice = trial->choice;
    for (size_t i = 0; i < choice->need_count; i++)
        if (choice->needs[i].member)
            choice->needs[i].member = &request->members[choice->needs[i].at];
}

/* What has ended between two pieces may be enough. A trial goes on without it. */
static void choice_settle(struct trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (choice->touched.count && !choice->is_tried) {
        touched_count(trial);
        choice->is_asking =
            choice->stage == CHOICE_FEW ||
            (choice->stage == CHOICE_ADD && is_asked(trial, choice->candidates.count));
    }
    if (!choice->is_asking || !*trial->left)
        return;
    assert(!choice->is_given);
    const enum simple_outcome outcome = trial_fits(trial);
    choice->is_asking = outcome == SIMPLE_CUT;
    if (outcome == SIMPLE_PLACED)
        stage_begin(trial, CHOICE_SPARE);
}

static void stage_go_on(struct trial *trial)
{
    switch (trial->choice->stage) {
    case CHOICE_LIST:
        list_go_on(trial);
        break;
    case CHOICE_COUNT:
    case CHOICE_COUNT_ALL:
    case CHOICE_COUNT_AGAIN:
        nodes_count(trial);
        if (trial->choice->next == trial->simple->nodes.count)
            counted(trial);
        break;
    case CHOICE_FEW:
        few_go_on(trial);
        break;
    case CHOICE_ALL:
        all_go_on(trial);
        break;
    case CHOICE_ADD:
        add_go_on(trial);
        break;
    case CHOICE_SPARE:
        spare_go_on(trial);
        break;
    case CHOICE_DONE:
    case CHOICE_FAILED:
        break;
    }
}

static bool choice_is_over(const struct simple_choice *choice)
{
    return choice->stage == CHOICE_DONE || choice->stage == CHOICE_FAILED;
}

static void choice_go_on(struct trial *trial)
{
    needs_settle(trial);
    while (*trial->left && !choice_is_over(trial->choice)) {
        choice_settle(trial);
        if (*trial->left && !trial->choice->is_asking)
            stage_go_on(trial);
    }
}

void simple_choice_free(struct simple *simple, struct simple_choice *choice)
{
    if (!choice)
        return;
    extra_clear(simple, choice);
    ARRAY_FREE(&choice->given);
    mem_free(choice->needs);
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
    choice->needs = mem_copy_array(old->needs, old->need_count, sizeof *old->needs);
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

enum simple_outcome simple_victims_go_on(const struct simple_search *search,
                                         struct simple_choice **choice, bool *is_victim,
                                         bool *is_placed, uint64_t *left)
{
    struct trial trial = {.search = search,
                          .simple = search->simple,
                          .choice = *choice,
                          .is_victim = is_victim,
                          .left = left};
    assert(*left > 0);
    if (!*choice)
        *choice = choice_begin(&trial);
    choice_go_on(&trial);
    if (!choice_is_over(*choice))
        return SIMPLE_CUT;
    const bool is_found = (*choice)->stage == CHOICE_DONE;
    *is_placed = is_found && (*choice)->places;
    simple_choice_free(search->simple, *choice);
    *choice = NULL;
    return is_found ? SIMPLE_PLACED : SIMPLE_FAILS;
}

bool simple_victims_find(const struct simple_search *search, bool *is_victim)
{
    struct simple_choice *choice = NULL;
    uint64_t left = UINT64_MAX;
    bool is_placed;
    const enum simple_outcome outcome =
        simple_victims_go_on(search, &choice, is_victim, &is_placed, &left);
    assert(outcome != SIMPLE_CUT);
    if (outcome == SIMPLE_FAILS || is_placed)
        return is_placed;
    const bool fits = simple_gang_place(search);
    assert(fits);
    return fits;
}
