/* renew.c — see renew.h. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/config.h"
#include "core/core.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/renew.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/schedule.h"
#include "core/shadow.h"
#include "core/tasks.h"
#include "core/waiting.h"

enum { /* in units of a step's work: struct pass */
       WORK_OF_NODE = 4,
       WORK_OF_GROUP = 12,
       WORK_OF_DEVICE = 3,
       WORK_OF_WAITING = 20,
       WORK_OF_HOLD = 2,
       LISTED_PER_WORK = 2,
       FILLED_PER_WORK = 4,
};

enum {
    TASKS_LISTED = 64,  /* between two looks at the work that is done, … */
    TASKS_FILLED = 256, /* … likewise */
    DOUBLINGS_MAX = 16, /* of a piece of the next one */
};

/* --- what runs is told --- */

static void telling_release(struct renewal_telling *telling)
{
    mem_free(telling->slots);
    ARRAY_FREE(&telling->ended);
    *telling = (struct renewal_telling){0};
}

static void telling_begin(struct core *core, uint32_t at)
{
    struct renewal_telling *telling = &core->renewal.telling;
    const struct core_group *group = core_group_at(core, at);
    assert(!telling->slots && group->slot_count > 0);
    *telling = (struct renewal_telling){
        .slots = mem_zero(group->slot_count, sizeof *telling->slots), .group = at};
}

/* What the placer had of it is given back. */
static void telling_restart(struct renewal_telling *telling)
{
    assert(telling->slots);
    telling->filled = 0;
    telling->weight = 0;
    telling->has_begun = false;
    telling->ended.count = 0;
}

/* Where its tasks are, some of them. The devices stay the tasks', which live as long as the group.
 */
static uint32_t telling_fill(struct core *core, const struct core_group *group)
{
    struct renewal_telling *telling = &core->renewal.telling;
    static const uint16_t no_devices[1];
    const uint32_t first = telling->filled;
    while (telling->filled < group->slot_count && telling->filled - first < TASKS_FILLED) {
        const uint32_t i = telling->filled++;
        const struct core_task *task =
            group->tasks[i] == NONE ? NULL : core_task_at(core, group->tasks[i]);
        telling->slots[i] = (struct placement_slot){.node = NODE_NONE, .gpus = no_devices};
        telling->weight++;
        if (!task || !task->is_taken)
            continue; /* this task has ended */
        assert(core_group_at(core, task->group) == group);
        telling->slots[i] =
            (struct placement_slot){.node = {task->node},
                                    .cell_level = task->cell_level,
                                    .gpu_count = task->gpu_count,
                                    .gpus = task->gpu_count ? task->gpus : no_devices};
        telling->weight += task->gpu_count;
    }
    return (telling->filled - first) / FILLED_PER_WORK;
}

static void group_request(struct core *core, const struct core_group *group,
                          struct request *request)
{
    const struct core_job *job = core_job_at(core, group->job);
    if (group->is_task) {
        assert(group->slot_count == 1);
        const struct core_task *task = core_task_at(core, group->tasks[0]);
        request_of_task(core, job, task->ref, 0, &core->scratch, request);
    } else {
        request_of_part(core, job, group->first_role, &core->scratch, request);
    }
    request->placement.group = group->name;
    assert(request->task_count == group->slot_count);
}

/* A large one is taken in pieces; 0: at once. Each time that a node has changed the pieces are
 * twice as large, so that there is an end. */
static uint32_t telling_slice(const struct core *core)
{
    const struct renewal *renewal = &core->renewal;
    const struct renewal_telling *telling = &renewal->telling;
    const uint32_t doublings =
        telling->restarts < DOUBLINGS_MAX ? telling->restarts : DOUBLINGS_MAX;
    const uint64_t slice = (uint64_t)core->slice << doublings;
    if (renewal->is_at_once || !renewal->placer->ops->tidy || telling->weight <= slice / 2)
        return 0;
    return slice < UINT32_MAX ? (uint32_t)slice : UINT32_MAX;
}

/* In pieces as if it had just been found, if all of it is free. What no longer fits is told once
 * more: the placer does its best with it. */
static uint32_t telling_commit(struct core *core, struct core_group *group)
{
    struct renewal *renewal = &core->renewal;
    struct renewal_telling *telling = &renewal->telling;
    struct placer *placer = renewal->placer;
    struct request request;
    struct err err = {0};
    group_request(core, group, &request);
    const uint32_t slice = telling_slice(core);
    const bool is_recovery = !slice || telling->is_refused;
    request.placement.slice = slice;
    const int code = placer->ops->commit(placer, &request.placement, telling->slots,
                                         group->slot_count, is_recovery, &err);
    telling->has_begun = code == PLACEMENT_CUT;
    if (code == PLACEMENT_CUT)
        return core->slice;
    if (code && !is_recovery) {
        telling->is_refused = true;
        telling_restart(telling);
        return core->slice;
    }
    group->is_refused = code != 0;
    if (code)
        core_trace(core, "group %s: not known to the placer: %s", group->name, err.text);
    for (size_t i = 0; i < telling->ended.count; i++)
        placer->ops->release_slot(placer, group->name, telling->ended.items[i]);
    const uint64_t work = WORK_OF_GROUP + WORK_OF_DEVICE * telling->weight;
    telling_release(telling);
    return work < core->slice ? (uint32_t)work : core->slice;
}

/* Whoever is told has ended. */
static void telling_forget(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->telling.has_begun)
        renewal->placer->ops->forget(renewal->placer);
    telling_release(&renewal->telling);
}

static uint32_t telling_next(struct core *core)
{
    const struct renewal_telling *telling = &core->renewal.telling;
    struct core_group *group = core_group_at(core, telling->group);
    assert(group->name);
    return telling->filled < group->slot_count ? telling_fill(core, group)
                                               : telling_commit(core, group);
}

/* --- those that are still to be told --- */

static bool is_told_before(const struct renewal_group *a, const struct renewal_group *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence;
    return a->first_role != b->first_role ? a->first_role < b->first_role : a->group < b->group;
}

static void heap_swap(struct renewal *renewal, size_t a, size_t b)
{
    const struct renewal_group group = renewal->groups.items[a];
    renewal->groups.items[a] = renewal->groups.items[b];
    renewal->groups.items[b] = group;
}

static void heap_push(struct renewal *renewal, const struct renewal_group *group)
{
    size_t at = renewal->groups.count;
    *ARRAY_ADD(&renewal->groups) = *group;
    for (const struct renewal_group *items = renewal->groups.items;
         at > 0 && is_told_before(&items[at], &items[(at - 1) / 2]); at = (at - 1) / 2)
        heap_swap(renewal, at, (at - 1) / 2);
}

static uint32_t heap_pop(struct renewal *renewal)
{
    assert(renewal->groups.count > 0);
    const struct renewal_group *items = renewal->groups.items;
    const uint32_t first = items[0].group;
    const size_t count = --renewal->groups.count;
    heap_swap(renewal, 0, count);
    for (size_t at = 0, below; (below = 2 * at + 1) < count; at = below) {
        if (below + 1 < count && is_told_before(&items[below + 1], &items[below]))
            below++;
        if (!is_told_before(&items[below], &items[at]))
            break;
        heap_swap(renewal, at, below);
    }
    return first;
}

/* Tasks with GPUs have known devices, others take any cells of the node: they come last, so that
 * they do not take what is known to be somebody's. */
static uint8_t group_rank(const struct renewal *renewal)
{
    return !renewal->lacks_devices ? 0 : renewal->has_devices ? 1 : 2;
}

/* Its devices, before the first group is told: see placement.h. */
static void task_list(struct core *core, const struct core_task *task)
{
    struct renewal *renewal = &core->renewal;
    struct placer *placer = renewal->placer;
    renewal->has_devices |= task->gpu_count > 0;
    renewal->lacks_devices |= task->gpu_count == 0;
    if (placer->ops->expect && task->is_taken && task->gpu_count)
        placer->ops->expect(placer, (struct node_id){task->node}, task->gpus, task->gpu_count);
}

/* Some tasks of the group whose turn it is; after the last one it is listed. */
static uint32_t group_list(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    const uint32_t at = renewal->next;
    const struct core_group *group = core_group_at(core, at);
    uint32_t work = 1;
    for (uint32_t tasks = 0; group->name && renewal->task < group->slot_count; tasks++) {
        if (tasks == TASKS_LISTED)
            return work;
        const uint32_t task = group->tasks[renewal->task++];
        work++;
        if (task == NONE)
            continue;
        task_list(core, core_task_at(core, task));
        work += core_task_at(core, task)->gpu_count / LISTED_PER_WORK;
    }
    if (group->name)
        heap_push(renewal, &(struct renewal_group){.rank = group_rank(renewal),
                                                   .first_role = group->first_role,
                                                   .group = at,
                                                   .sequence = group->sequence});
    renewal->next++;
    renewal->task = 0;
    renewal->has_devices = renewal->lacks_devices = false;
    return work;
}

/* --- the pieces --- */

static void stage_begin(struct renewal *renewal, enum renewal_stage stage)
{
    assert(stage > renewal->stage);
    renewal->stage = stage;
    renewal->next = 0;
}

/* Each does the next thing of its stage, and says how much work it was. */
static uint32_t nodes_next(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->next == core_node_count(core)) {
        stage_begin(renewal, RENEWAL_CELLS);
        return 0;
    }
    node_tell_placer(core, renewal->placer, renewal->next++);
    return WORK_OF_NODE;
}

static uint32_t cells_next(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    const struct placer_ops *ops = renewal->placer->ops;
    if (ops->tidy && !ops->tidy(renewal->placer, core->slice))
        return core->slice;
    stage_begin(renewal, RENEWAL_GROUPS);
    return 0;
}

static uint32_t groups_next(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->next == core_group_slots(core)) {
        stage_begin(renewal, RENEWAL_JOBS);
        return 0;
    }
    return group_list(core);
}

/* Nobody else comes to hold anything, or to have room held back for it, before this is over. */
static uint32_t jobs_next(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->next == core_job_slots(core)) {
        stage_begin(renewal, RENEWAL_TELL);
        return 0;
    }
    const uint32_t at = renewal->next++;
    const struct core_job *job = core_job_at(core, at);
    if (job->id.v && (job->hold_count || placing_of(core, job) || reserve_has(core, at)))
        *ARRAY_ADD(&renewal->jobs) = at;
    return at % LISTED_PER_WORK == 0;
}

static uint32_t tell_next(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->telling.slots)
        return telling_next(core);
    if (!renewal->groups.count) {
        stage_begin(renewal, RENEWAL_WAITING);
        return 0;
    }
    const uint32_t at = heap_pop(renewal);
    if (core_group_at(core, at)->name) /* else it has ended */
        telling_begin(core, at);
    return 1;
}

/* A waiting job whose preemption or reservation is the old placer's business starts again. What it
 * held is nobody's until that placer goes. */
static void waiting_begin_anew(struct core *core, struct core_job *job)
{
    placing_forget(core, job);
    if (job->hold_count) {
        holds_leave(core, job);
        core_job_queue(core, job);
    }
    waiting_changed(core, job, WAITING_BY_PLACER);
}

/* Those that starve keep their reservations until all of these go. */
static uint32_t waiting_next(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    const uint32_t at = renewal->jobs.items[renewal->next++];
    struct core_job *job = core_job_at(core, at);
    const uint32_t work = WORK_OF_WAITING + WORK_OF_HOLD * job->hold_count;
    if (!job->id.v)
        return 1; /* it has ended meanwhile */
    if (reserve_has(core, at))
        renewal->jobs.items[renewal->starving++] = at;
    else
        waiting_begin_anew(core, job);
    return work;
}

static bool is_over(const struct renewal *renewal)
{
    return renewal->stage == RENEWAL_WAITING && renewal->next == renewal->jobs.count;
}

/* Up to so much work. True: the placer knows all, and can take over. */
static bool renewal_some(struct core *core, uint32_t work)
{
    struct renewal *renewal = &core->renewal;
    assert(renewal->placer);
    for (uint32_t done = 0; done < work && !is_over(renewal);) {
        switch (renewal->stage) {
        case RENEWAL_NODES:
            done += nodes_next(core);
            break;
        case RENEWAL_CELLS:
            done += cells_next(core);
            break;
        case RENEWAL_GROUPS:
            done += groups_next(core);
            break;
        case RENEWAL_JOBS:
            done += jobs_next(core);
            break;
        case RENEWAL_TELL:
            done += tell_next(core);
            break;
        case RENEWAL_WAITING:
            done += waiting_next(core);
            break;
        }
    }
    return is_over(renewal);
}

void placer_fill(struct core *core, struct placer *placer)
{
    for (uint32_t i = 0; i < core_node_count(core); i++)
        node_tell_placer(core, placer, i);
    assert(!core->renewal.placer);
    core->renewal = (struct renewal){.placer = placer, .stage = RENEWAL_GROUPS, .is_at_once = true};
    const bool is_whole = renewal_some(core, UINT32_MAX);
    assert(is_whole);
    (void)is_whole;
    ARRAY_FREE(&core->renewal.groups);
    ARRAY_FREE(&core->renewal.jobs);
    core->renewal.placer = NULL;
}

/* --- another one takes over --- */

void past_placer_add(struct core *core, struct placer *placer)
{
    assert(placer && placer != core->placer);
    *ARRAY_ADD(&core->past_placers) = placer;
}

/* A copy of the core has none, so nothing may depend on it. In a small cluster a step makes several
 * shadows: it frees as many, each by some calls, or they would heap up. */
void past_placer_drop(struct core *core)
{
    enum { CALLS = 4 };
    if (!core->past_placers.count)
        return;
    const uint32_t of_call = 1 + (core_node_count(core) + core_group_slots(core)) / CALLS;
    uint32_t left = core->slice / 2 + 1;
    for (;;) {
        struct placer *last = core->past_placers.items[core->past_placers.count - 1];
        if (placer_free_some(last, left) && --core->past_placers.count == 0)
            break;
        if (left <= of_call)
            break;
        left -= of_call;
    }
}

size_t past_placer_count(const struct core *core)
{
    return core->past_placers.count;
}

static void placer_take_over(struct core *core, struct placer *placer)
{
    assert(placer != core->placer && !core->renewal.placer);
    struct renewal *renewal = &core->renewal;
    reserve_drop_all(core);
    for (uint32_t i = 0; i < renewal->starving; i++)
        if (core_job_at(core, renewal->jobs.items[i])->id.v)
            waiting_begin_anew(core, core_job_at(core, renewal->jobs.items[i]));
    ARRAY_FREE(&renewal->groups);
    ARRAY_FREE(&renewal->jobs);
    holdovers_forget(core);
    holdovers_release(core, core->slice);
    struct placer *past = core->placer;
    core->placer = placer;
    past_placer_add(core, past);
    if (placer->ops->take_over)
        placer->ops->take_over(placer);
    schedule_forget_shapes(core);
    core->is_unblocked = true;
}

/* What one knows that was to take over is of no use any more. */
static void renewal_drop(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->placer)
        past_placer_add(core, renewal->placer);
    renewal->placer = NULL;
    telling_release(&renewal->telling);
    ARRAY_FREE(&renewal->groups);
    ARRAY_FREE(&renewal->jobs);
}

void placer_change(struct core *core, struct placer *placer)
{
    assert(core_policy_changes(core));
    renewal_drop(core);
    if (core->policy_change.placer)
        past_placer_add(core, core->policy_change.placer);
    core->policy_change.placer = placer;
    placer_renew(core);
}

static bool renewal_is_asked(const struct core *core)
{
    const struct placer_ops *ops = core->placer->ops;
    if (core->renewal.placer || placer_is_copied(core))
        return false;
    return core->policy_change.placer || (ops->is_outdated && ops->is_outdated(core->placer));
}

bool renewal_waits(const struct core *core)
{
    return core->placing.job && core->placing.stage == PLACING_START && renewal_is_asked(core);
}

void renewal_go_on(struct core *core)
{
    struct placer *placer = core->renewal.placer;
    if (!renewal_some(core, core->slice))
        return;
    core->renewal.placer = NULL;
    placer_take_over(core, placer);
    if (core_policy_changes(core)) {
        config_take_over(core);
        return;
    }
    core_trace(core, "cells: they have changed, what runs was told to a new placer");
}

void placer_renew(struct core *core)
{
    if (!renewal_is_asked(core) || renewal_waits(core))
        return;
    struct placer *placer = core->policy_change.placer;
    if (!placer)
        placer = placer_new(core->config.policy, core->config.placement_document, NULL);
    assert(placer); /* the configuration is the one in force */
    core->policy_change.placer = NULL;
    core->renewal = (struct renewal){.placer = placer};
    renewal_go_on(core);
}

/* --- what happens meanwhile --- */

void renewal_node(struct core *core, uint32_t node)
{
    struct renewal *renewal = &core->renewal;
    if (!renewal->placer || (renewal->stage == RENEWAL_NODES && node >= renewal->next))
        return;
    node_tell_placer(core, renewal->placer, node);
    if (!renewal->telling.has_begun)
        return;
    telling_restart(&renewal->telling);
    renewal->telling.restarts++;
}

void renewal_release_slot(struct core *core, const char *group, size_t slot)
{
    struct placer *placer = core->renewal.placer;
    struct renewal_telling *telling = &core->renewal.telling;
    if (!placer)
        return;
    const bool is_told =
        telling->slots && strcmp(core_group_at(core, telling->group)->name, group) == 0;
    if (is_told && telling->has_begun)
        *ARRAY_ADD(&telling->ended) = (uint32_t)slot;
    else if (is_told && slot < telling->filled)
        telling->slots[slot].node = NODE_NONE;
    else if (!is_told)
        placer->ops->release_slot(placer, group, slot);
}

void renewal_release_group(struct core *core, const char *group)
{
    const struct renewal_telling *telling = &core->renewal.telling;
    struct placer *placer = core->renewal.placer;
    if (!placer)
        return;
    if (telling->slots && strcmp(core_group_at(core, telling->group)->name, group) == 0)
        telling_forget(core);
    placer->ops->release_group(placer, group);
}

void renewal_copy(struct core *to, const struct core *from)
{
    assert(!to->renewal.placer);
    to->renewal = from->renewal;
    if (from->renewal.placer)
        to->renewal.placer = from->renewal.placer->ops->copy(from->renewal.placer);
    const struct renewal_telling *telling = &from->renewal.telling;
    if (telling->slots)
        to->renewal.telling.slots =
            placement_slots_copy(telling->slots, core_group_at(from, telling->group)->slot_count);
    ARRAY_COPY(&to->renewal.telling.ended, &telling->ended);
    ARRAY_COPY(&to->renewal.groups, &from->renewal.groups);
    ARRAY_COPY(&to->renewal.jobs, &from->renewal.jobs);
    if (from->policy_change.placer)
        to->policy_change.placer =
            from->policy_change.placer->ops->copy(from->policy_change.placer);
    if (!core_policy_changes(from))
        return;
    const int code = core_config_copy(&to->policy_change.config, &from->policy_change.config, NULL);
    assert(!code);
    (void)code;
}

void renewal_release(struct core *core)
{
    struct renewal *renewal = &core->renewal;
    if (renewal->placer)
        renewal->placer->ops->free(renewal->placer);
    renewal->placer = NULL;
    telling_release(&renewal->telling);
    ARRAY_FREE(&renewal->groups);
    ARRAY_FREE(&renewal->jobs);
    if (core->policy_change.placer)
        core->policy_change.placer->ops->free(core->policy_change.placer);
    core->policy_change.placer = NULL;
    core_config_release(&core->policy_change.config);
    for (size_t i = 0; i < core->past_placers.count; i++)
        core->past_placers.items[i]->ops->free(core->past_placers.items[i]);
    ARRAY_FREE(&core->past_placers);
}
