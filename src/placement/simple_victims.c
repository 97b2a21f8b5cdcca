/* simple_victims.c — see simple_victims.h.
 *
 * A choice in pieces stops between two groups or nodes. What ends meanwhile is free at once: the
 * nodes of it are counted anew when the choice goes on. */
#include "placement/simple_victims.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/simple_trial.h"

static void stage_begin(struct simple_trial *trial, enum choice_stage stage)
{
    trial->choice->stage = stage;
    trial->choice->next = trial->choice->trials = trial->choice->tried_at = 0;
}

/* Is it asked with one more victim? With each at first; a gang that many trials have failed, with
 * each eighth more. */
static bool is_asked(const struct simple_trial *trial, size_t end)
{
    const struct simple_choice *choice = trial->choice;
    return simple_trial_counts(trial) || choice->is_tried || choice->trials < choice->trials_max ||
           choice->next + 1 >= end || choice->next >= choice->tried_at + choice->tried_at / 8;
}

/* Does it fit without him? */
static enum simple_outcome spared_fits(struct simple_trial *trial, const struct simple_group *group)
{
    const struct simple_choice *choice = trial->choice;
    if (!simple_trial_counts(trial) && !choice->is_tried) {
        if (simple_trial_is_kept(trial, group))
            return SIMPLE_PLACED;
        if (choice->trials >= choice->trials_max)
            return SIMPLE_FAILS;
    }
    return simple_trial_fits(trial);
}

/* Nobody is a victim. */
static void all_spare(const struct simple_trial *trial)
{
    simple_choice_clear(trial->simple, trial->choice);
    memset(trial->is_victim, 0, trial->simple->groups.count * sizeof *trial->is_victim);
}

static void all_go_on(struct simple_trial *trial)
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
                simple_choice_add(trial, &group->slots[j]);
    }
    if (choice->next == choice->candidates.count)
        stage_begin(trial, CHOICE_COUNT_ALL);
}

/* Where the groups after the next ones lie, and what they hold: each is somewhere else. */
static void candidates_prefetch(const struct simple_trial *trial, size_t end)
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
static bool victims_add(struct simple_trial *trial, size_t end)
{
    struct simple_choice *choice = trial->choice;
    while (choice->next < end && *trial->left && (choice->is_given || !choice->touched.count)) {
        const uint32_t at = choice->candidates.items[choice->next];
        const struct simple_group *group = &trial->simple->groups.items[at];
        if (!choice->is_given) {
            candidates_prefetch(trial, end);
            trial->is_victim[at] = group->name != NULL;
            if (group->name)
                simple_choice_give(trial, group, true);
        }
        const enum simple_outcome outcome =
            is_asked(trial, end) ? simple_trial_fits(trial) : SIMPLE_FAILS;
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
static bool quarter_does(const struct simple_need *need, uint64_t before, size_t tried,
                         size_t count)
{
    assert(tried > 0 && need->room >= before && need->count > need->room);
    const uint64_t gain = need->room - before, left = need->count - need->room;
    return gain * (count / 4) / tried >= left;
}

/* Mostly a few will do: then nobody has to know whether all would. */
static void few_go_on(struct simple_trial *trial)
{
    /* the first ones may have been told to end already, for others or for other parts of its gang
     */
    enum { FEW = 1024, FEW_FOR_MANY = 3072 };
    struct simple_choice *choice = trial->choice;
    const size_t few = choice->needs.items[0].count > 1 ? FEW_FOR_MANY : FEW;
    const size_t count = choice->candidates.count, end = count < few ? count : few;
    if (victims_add(trial, end)) {
        stage_begin(trial, CHOICE_SPARE);
        return;
    }
    if (choice->next < end || choice->touched.count)
        return;
    if (count <= few) {
        choice->stage = CHOICE_FAILED;
    } else if (quarter_does(&choice->needs.items[0], choice->before, few, count)) {
        choice->stage = CHOICE_ADD; /* from those few on */
    } else {
        all_spare(trial);
        stage_begin(trial, CHOICE_ALL);
    }
}

static void add_go_on(struct simple_trial *trial)
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
static void spare_end(struct simple_trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (choice->touched.count && !choice->is_tried)
        return;
    if (!simple_trial_counts(trial)) {
        if (simple_trial_place(trial) == SIMPLE_CUT)
            return;
        memcpy(trial->search->slots, choice->places, choice->place_count * sizeof *choice->places);
    }
    choice->stage = CHOICE_DONE;
}

/* Each without which it fits as well. Who is tried is no victim meanwhile: if he ends by himself
 * between two pieces, what he held is free. */
static void spare_go_on(struct simple_trial *trial)
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
            simple_choice_give(trial, group, false);
        *is_victim = false;
        const enum simple_outcome outcome = spared_fits(trial, group);
        choice->is_given = outcome == SIMPLE_CUT;
        if (outcome == SIMPLE_CUT)
            return;
        *is_victim = outcome == SIMPLE_FAILS && group->name;
        if (*is_victim)
            simple_choice_give(trial, group, true);
    }
    if (choice->next == simple->groups.count)
        spare_end(trial);
}

/* All nodes are counted. */
static void counted(struct simple_trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (choice->stage == CHOICE_COUNT) {
        choice->before = choice->needs.items[0].room;
        stage_begin(trial, CHOICE_FEW);
        return;
    }
    if (choice->stage == CHOICE_COUNT_AGAIN) {
        stage_begin(trial, CHOICE_ADD);
        return;
    }
    const enum simple_outcome outcome = simple_trial_fits(trial);
    if (outcome == SIMPLE_PLACED) {
        all_spare(trial);
        stage_begin(trial, CHOICE_COUNT_AGAIN);
    } else if (outcome == SIMPLE_FAILS) {
        choice->stage = CHOICE_FAILED;
    }
}

static struct simple_choice *choice_begin(struct simple_trial *trial)
{
    struct simple_choice *choice = trial->choice = mem_zero(1, sizeof *choice);
    simple_candidates_begin(trial->search, &choice->candidates);
    if (!choice->candidates.room || !simple_needs_list(trial->search->request, &choice->needs))
        choice->stage = CHOICE_FAILED;
    choice->trials_max = simple_trials_count(trial);
    return choice;
}

static void list_go_on(struct simple_trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (!simple_candidates_go_on(trial->search, &choice->needs.least, &choice->candidates,
                                 &choice->next, trial->left))
        return;
    if (!choice->candidates.count)
        choice->stage = CHOICE_FAILED;
    else
        stage_begin(trial, simple_trial_counts(trial) ? CHOICE_COUNT : CHOICE_ALL);
}

/* What has ended between two pieces may be enough. A trial goes on without it. */
static void choice_settle(struct simple_trial *trial)
{
    struct simple_choice *choice = trial->choice;
    if (choice->touched.count && !choice->is_tried) {
        simple_choice_recount(trial);
        choice->is_asking =
            choice->stage == CHOICE_FEW ||
            (choice->stage == CHOICE_ADD && is_asked(trial, choice->candidates.count));
    }
    if (!choice->is_asking || !*trial->left)
        return;
    assert(!choice->is_given);
    const enum simple_outcome outcome = simple_trial_fits(trial);
    choice->is_asking = outcome == SIMPLE_CUT;
    if (outcome == SIMPLE_PLACED)
        stage_begin(trial, CHOICE_SPARE);
}

static void stage_go_on(struct simple_trial *trial)
{
    switch (trial->choice->stage) {
    case CHOICE_LIST:
        list_go_on(trial);
        break;
    case CHOICE_COUNT:
    case CHOICE_COUNT_ALL:
    case CHOICE_COUNT_AGAIN:
        simple_choice_count(trial);
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

static void choice_go_on(struct simple_trial *trial)
{
    simple_needs_settle(&trial->choice->needs, trial->search->request);
    while (*trial->left && !choice_is_over(trial->choice)) {
        choice_settle(trial);
        if (*trial->left && !trial->choice->is_asking)
            stage_go_on(trial);
    }
}

enum simple_outcome simple_victims_go_on(const struct simple_search *search,
                                         struct simple_choice **choice, bool *is_victim,
                                         bool *is_placed, uint64_t *left)
{
    struct simple_trial trial = {.search = search,
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
