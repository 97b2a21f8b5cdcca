/* check_places.c — do the placer, and each reservation's shadow of it, hold what the core says,
 * what it is about to give back, and nothing else? What they hold beyond that is lost for
 * everybody. For tests. */
#include "core/jobs.h"
#include "core/preempt.h"
#include "core/renew.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/tasks.h"
#include "placement/check.h"

struct places {
    struct core *core;
    size_t held;
    const char *wrong; /* the first that should not be there */
    bool is_waiting;   /* it waits there */
};

/* Its gang has ended before it became a task: it is given back with the last task of its part. */
static bool is_given_up(struct core *core, const char *group, size_t slot)
{
    const struct core_group *known = core_group_find(core, group);
    return known && known->given_up && slot >= known->given_up && slot < known->slot_count;
}

/* Of a task that runs, or of a part of a gang that is kept while others end for the rest. */
static uint32_t place_node(struct core *core, const char *group, size_t slot)
{
    const struct core_group *known = core_group_find(core, group);
    struct core_job *holder = hold_holder(core, group);
    const struct hold *hold = holder ? hold_find(holder, group) : NULL;
    if (known && !(hold && slot >= hold->started)) {
        uint32_t task = slot < known->slot_count ? known->tasks[slot] : NONE;
        bool is_taken = task != NONE && core_task_at(core, task)->is_taken;
        return is_taken ? core_task_at(core, task)->node : NONE;
    }
    return hold && hold->slots && slot < hold->slot_count ? hold->slots[slot].node.v : NONE;
}

static void place_see(void *context, const char *group, size_t slot, struct node_id node)
{
    struct places *places = context;
    bool is_right;
    if (holdovers_has(places->core, group)) {
        is_right = true;
    } else if (slot == PLACEMENT_WAITING) {
        is_right = hold_holder(places->core, group) || shadow_defers(places->core, group);
    } else if (is_given_up(places->core, group, slot)) {
        is_right = true;
        places->held++;
    } else {
        uint32_t known = place_node(places->core, group, slot);
        is_right = (known != NONE && (known == node.v || node.v == NODE_NONE.v)) ||
                   shadow_defers(places->core, group);
        places->held++;
    }
    if (is_right || places->wrong)
        return;
    places->wrong = arena_copy(&places->core->scratch, text_of(group));
    places->is_waiting = slot == PLACEMENT_WAITING;
}

static size_t places_count(const struct core *core)
{
    size_t count = 0;
    for (uint32_t i = 0; i < core_group_slots(core); i++)
        count += core_group_at(core, i)->is_refused ? 0 : core_group_at(core, i)->taken_count;
    for (uint32_t i = 0; i < core_job_slots(core); i++) {
        const struct core_job *job = core_job_at(core, i);
        for (uint32_t j = 0; j < job->hold_count; j++)
            if (job->holds[j].slots && !job->holds[j].started) /* else its group counts */
                count += job->holds[j].slot_count;
    }
    return count;
}

static int places_compare(struct core *core, struct placer *placer, const char *what,
                          size_t at_least, struct err *err)
{
    struct places places = {.core = core};
    struct placement_visit visit = {place_see, &places};
    int code = placer->ops->check(placer, &visit, err);
    if (code)
        return code;
    CHECK(!places.wrong, what, "%s for %s, the core does not",
          places.is_waiting ? "waits for places" : "holds a place", places.wrong);
    CHECK(places.held >= at_least, what, "holds %zu places of %zu", places.held, at_least);
    return 0;
}

int core_check_places(const struct core *core, struct err *err)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    int code = places_compare(mutable, core->placer, "placer", places_count(core), err);
    if (!code && placer_is_renewing(core)) /* it may not know all of them yet */
        code = places_compare(mutable, placer_next(core), "next placer", 0, err);
    for (size_t i = 0; i < reserve_count(core) && !code; i++) {
        const struct placer *shadow = reserve_at(core, i)->shadow;
        CHECK(shadow->ops == core->placer->ops, "shadow", "is of the policy %s", shadow->ops->name);
    }
    for (size_t i = 0; i < reserve_count(core) && !code; i++)
        if (!reserve_at(core, i)->is_stale && /* else it is filled anew before it is asked */
            !room_is_in(core, reserve_at(core, i)->shadow))
            code = places_compare(mutable, reserve_at(core, i)->shadow, "shadow", 0, err);
    return code;
}
