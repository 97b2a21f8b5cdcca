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
       WORK_OF_TASK = 6,
       WORK_OF_WAITING = 20,
       WORK_OF_HOLD = 2,
       LISTED_PER_WORK = 2,
};

/* --- what runs is told --- */

static void group_tell(struct core *core, struct placer *placer, struct core_group *group)
{
    struct core_job *job = core_job_at(core, group->job);
    struct request request;
    if (group->is_task) {
        assert(group->slot_count == 1);
        const struct core_task *task = core_task_at(core, group->tasks[0]);
        request_of_task(core, job, task->ref, 0, &core->scratch, &request);
    } else {
        request_of_part(core, job, group->first_role, &core->scratch, &request);
    }
    request.placement.group = group->name;
    assert(request.task_count == group->slot_count);
    struct placement_slot *slots =
        ARENA_ARRAY(&core->scratch, struct placement_slot, group->slot_count);
    for (uint32_t i = 0; i < group->slot_count; i++) {
        const struct core_task *task =
            group->tasks[i] == NONE ? NULL : core_task_at(core, group->tasks[i]);
        slots[i].node = NODE_NONE;
        if (!task || !task->is_taken)
            continue; /* this task has ended */
        assert(core_group_at(core, task->group) == group);
        slots[i].node.v = task->node;
        slots[i].cell_level = task->cell_level;
        slots[i].gpu_count = task->gpu_count;
        slots[i].gpus = task->gpus;
    }
    struct err err = {0};
    group->is_refused =
        placer->ops->commit(placer, &request.placement, slots, group->slot_count, true, &err) != 0;
    if (group->is_refused)
        core_trace(core, "group %s: not known to the placer: %s", group->name, err.text);
}

/* Its devices, before the first group is told: see placement.h. */
static void devices_tell(struct core *core, struct placer *placer, const struct core_group *group)
{
    for (uint32_t k = 0; placer->ops->expect && k < group->slot_count; k++) {
        const struct core_task *task =
            group->tasks[k] == NONE ? NULL : core_task_at(core, group->tasks[k]);
        if (task && task->is_taken && task->gpu_count)
            placer->ops->expect(placer, (struct node_id){task->node}, task->gpus, task->gpu_count);
    }
}

enum { GROUP_RANKS = 3 };

/* Tasks with GPUs have known devices, others take any cells of the node: they come last, so that
 * they do not take what is known to be somebody's. */
static int group_rank(const struct core *core, const struct core_group *group)
{
    assert(group->name);
    uint32_t with = 0, without = 0;
    for (uint32_t i = 0; i < group->slot_count; i++) {
        if (group->tasks[i] == NONE)
            continue;
        if (core_task_at(core, group->tasks[i])->gpu_count)
            with++;
        else
            without++;
    }
    return !without ? 0 : with ? 1 : 2;
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

static void group_list(struct core *core, uint32_t at)
{
    struct renewal *renewal = &core->renewal;
    const struct core_group *group = core_group_at(core, at);
    if (!group->name)
        return;
    devices_tell(core, renewal->placer, group);
    heap_push(renewal, &(struct renewal_group){.rank = (uint8_t)group_rank(core, group),
                                               .first_role = group->first_role,
                                               .group = at,
                                               .sequence = group->sequence});
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
    const uint32_t at = renewal->next++;
    group_list(core, at);
    return 1 + core_group_at(core, at)->slot_count;
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
    if (!renewal->groups.count) {
        stage_begin(renewal, RENEWAL_WAITING);
        return 0;
    }
    struct core_group *group = core_group_at(core, heap_pop(renewal));
    if (!group->name)
        return 1; /* it has ended */
    group_tell(core, renewal->placer, group);
    return WORK_OF_GROUP + WORK_OF_TASK * group->slot_count;
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
    core->renewal = (struct renewal){.placer = placer, .stage = RENEWAL_GROUPS};
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
    mem_settle();
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
    const struct renewal *renewal = &core->renewal;
    if (renewal->placer && (renewal->stage > RENEWAL_NODES || node < renewal->next))
        node_tell_placer(core, renewal->placer, node);
}

void renewal_release_slot(struct core *core, const char *group, size_t slot)
{
    struct placer *placer = core->renewal.placer;
    if (placer)
        placer->ops->release_slot(placer, group, slot);
}

void renewal_release_group(struct core *core, const char *group)
{
    struct placer *placer = core->renewal.placer;
    if (placer)
        placer->ops->release_group(placer, group);
}

void renewal_copy(struct core *to, const struct core *from)
{
    assert(!to->renewal.placer);
    to->renewal = from->renewal;
    if (from->renewal.placer)
        to->renewal.placer = from->renewal.placer->ops->copy(from->renewal.placer);
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
