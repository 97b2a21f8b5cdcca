/* simple_trial.c — see simple_trial.h. */
#include "placement/simple_trial.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* Is it known by counting alone whether the gang fits? Then it fits with more victims if it does
 * with fewer. */
bool simple_trial_counts(const struct simple_trial *trial)
{
    assert(trial->choice->needs.count > 0);
    return trial->choice->needs.count == 1;
}

/* How many trials a stage may make: as many as are cheap. Where they are not enough, more victims
 * are asked for at once, and whoever holds what the last places take is not spared. */
size_t simple_trials_count(const struct simple_trial *trial)
{
    enum { LEAST = 4, MOST = 48, WORK_OF_ALL = 4000000 };
    const struct placement_request *request = trial->search->request;
    uint64_t work = trial->simple->nodes.count + 1;
    for (size_t i = 0; i < request->member_count; i++)
        work += (uint64_t)request->members[i].count * WORK_OF_TASK;
    const uint64_t count = WORK_OF_ALL / work;
    return count < LEAST ? LEAST : count > MOST ? MOST : (size_t)count;
}

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
static void places_keep(struct simple_trial *trial)
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
    assert(trial->search->slots != choice->places);
    memcpy(choice->places, trial->search->slots, choice->place_count * sizeof *choice->places);
    places_count(choice, true);
    simple_work_take(trial->left, choice->place_count * WORK_OF_GIVING);
}

/* Are these places still free, as the group that held something there is spared? */
bool simple_trial_is_kept(const struct simple_trial *trial, const struct simple_group *group)
{
    const struct simple_choice *choice = trial->choice;
    bool are_free = choice->places != NULL;
    assert(!choice->is_tried); /* else the views are those of the trial */
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
enum simple_outcome simple_trial_place(struct simple_trial *trial)
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
enum simple_outcome simple_trial_fits(struct simple_trial *trial)
{
    const struct simple_choice *choice = trial->choice;
    simple_work_take(trial->left, 1 + choice->needs.count / NEEDS_PER_WORK);
    for (size_t i = 0; i < choice->needs.count && !choice->is_tried; i++)
        if (choice->needs.items[i].room < choice->needs.items[i].count)
            return SIMPLE_FAILS;
    if (simple_trial_counts(trial))
        return SIMPLE_PLACED;
    if (!choice->is_tried && !simple_sums_suffice(&choice->needs.sums))
        return SIMPLE_FAILS;
    return simple_trial_place(trial);
}
