/* preempt.c — what a preempting job holds, and how others are ended for it:
 * docs/rfc/0011-waiting-jobs.md. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/reserve.h"
#include "core/shadow.h"
#include "core/start.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"
#include "model/reason.h"

enum { /* in units of core->pass.work */
       WORK_OF_RELEASE = 8,
       TASKS_RELEASED_PER_WORK = 2,
       WORK_OF_TELLING = 24, /* a victim that it ends, and … */
       WORK_OF_KILL = 8,     /* … each of its tasks */
};

/* --- what a preempting job holds --- */

struct hold *hold_find(struct core_job *job, const char *group)
{
    assert(group && (job->holds || !job->hold_count));
    for (uint32_t i = 0; i < job->hold_count; i++)
        if (strcmp(job->holds[i].group, group) == 0)
            return &job->holds[i];
    return NULL;
}

void hold_add(struct core *core, struct core_job *job, const char *group,
              const struct placement_slot *slots, size_t slot_count)
{
    struct hold *hold = NULL;
    if (text_map_get(&core->hold_names, text_of(group)) != MAP_NONE)
        hold = hold_find(job, group);
    if (!hold) {
        job->holds = mem_realloc(job->holds, mem_size(job->hold_count + 1u, sizeof *job->holds));
        hold = &job->holds[job->hold_count++];
        *hold = (struct hold){.group = mem_copy(group)};
        text_map_set(&core->hold_names, text_of(hold->group), core_job_slot(core, job));
    }
    hold->slot_count = (uint32_t)slot_count;
    if (!slots)
        return;
    assert(!hold->slots);
    hold->slots = placement_slots_copy(slots, slot_count);
}

/* `to` has been copied byte by byte. */
void holds_copy(struct core *core, struct core_job *to, const struct core_job *from)
{
    assert(to != from && to->id.v == from->id.v);
    to->holds = NULL;
    to->hold_count = 0;
    for (uint32_t i = 0; i < from->hold_count; i++) {
        const struct hold *hold = &from->holds[i];
        hold_add(core, to, hold->group, hold->slots, hold->slot_count);
        to->holds[i].task = hold->task;
        to->holds[i].started = hold->started;
        to->holds[i].ported = hold->ported;
        to->holds[i].ports_next = hold->ports_next;
        ARRAY_COPY(&to->holds[i].ports, &hold->ports);
    }
    to->victims = mem_copy_array(from->victims, from->victim_count, sizeof *from->victims);
    to->victim_room = from->victim_count;
}

struct core_job *hold_holder(const struct core *core, const char *group)
{
    uint32_t slot = text_map_get(&core->hold_names, text_of(group));
    return slot == MAP_NONE ? NULL : core_job_at(core, slot);
}

static void ports_give_back(struct core *core, const struct held_port *ports, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ports_give(&core_node_at(core, ports[i].node)->ports, ports[i].first, ports[i].count);
}

static void hold_ports_free(struct core *core, struct hold *hold)
{
    assert(hold->ports_next <= hold->ports.count);
    if (hold->ports.count)
        ports_give_back(core, hold->ports.items + hold->ports_next,
                        hold->ports.count - hold->ports_next);
    ARRAY_FREE(&hold->ports);
    hold->ports_next = hold->ported = 0;
}

void hold_ports_give(struct core *core, struct core_job *job)
{
    for (uint32_t i = 0; i < job->hold_count; i++)
        hold_ports_free(core, &job->holds[i]);
}

static uint32_t ports_count(const struct held_port *ports, size_t count, uint32_t node)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ports[i].node == node ? ports[i].count : 0;
    return sum;
}

uint32_t held_ports_of(const struct core *core, uint32_t node)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < core_job_slots(core); i++)
        for (uint32_t k = 0; k < core_job_at(core, i)->hold_count; k++) {
            const struct hold *hold = &core_job_at(core, i)->holds[k];
            if (hold->ports.count)
                sum += ports_count(hold->ports.items + hold->ports_next,
                                   hold->ports.count - hold->ports_next, node);
        }
    for (size_t i = core->holdover_next; i < core->holdovers.count; i++)
        sum += ports_count(core->holdovers.items[i].ports.items,
                           core->holdovers.items[i].ports.count, node);
    return sum;
}

static void hold_free(struct core *core, struct hold *hold)
{
    hold_ports_free(core, hold);
    text_map_remove(&core->hold_names, text_of(hold->group));
    mem_free(hold->group);
    mem_free(hold->slots);
}

void holds_forget(struct core *core, struct core_job *job)
{
    assert(job->holds || !job->hold_count);
    for (uint32_t i = 0; i < job->hold_count; i++)
        hold_free(core, &job->holds[i]);
    mem_free(job->holds);
    mem_free(job->victims);
    job->holds = NULL;
    job->victims = NULL;
    job->hold_count = job->victim_count = job->victim_room = 0;
}

void hold_forget(struct core *core, struct core_job *job, const char *group)
{
    assert(group && (job->holds || !job->hold_count));
    struct hold *hold = hold_find(job, group);
    if (!hold)
        return;
    hold_free(core, hold);
    *hold = job->holds[--job->hold_count];
    if (!job->hold_count)
        holds_forget(core, job);
}

static void group_give_back(struct core *core, const char *group, bool is_bound)
{
    if (is_bound) {
        placer_release_group(core, group);
        reserve_release_group(core, group);
    } else {
        placer_cancel(core, group);
        reserve_cancel(core, group);
    }
}

static void hold_release(struct core *core, struct hold *hold)
{
    text_map_remove(&core->hold_names, text_of(hold->group));
    mem_free(hold->slots);
    if (hold->started) { /* the placer knows its tasks, too */
        if (hold->started < hold->slot_count)
            core_group_give_up(core, hold->group, hold->started);
        hold_ports_free(core, hold);
        mem_free(hold->group);
        return;
    }
    struct holdover *holdover = ARRAY_ADD(&core->holdovers);
    holdover->group = hold->group;
    holdover->task_count = hold->slot_count;
    holdover->is_bound = hold->slots != NULL;
    holdover->ports.items = hold->ports.items;
    holdover->ports.count = hold->ports.count;
    holdover->ports.room = hold->ports.room;
}

void holds_leave(struct core *core, struct core_job *job)
{
    assert(job->holds || !job->hold_count);
    for (uint32_t i = 0; i < job->hold_count; i++)
        hold_release(core, &job->holds[i]);
    job->hold_count = 0; /* what was theirs is nobody's now */
    holds_forget(core, job);
}

void holds_release(struct core *core, struct core_job *job)
{
    if (!job->hold_count)
        return;
    holds_leave(core, job);
    holdovers_release(core, core->slice);
    core->is_unblocked = true;
}

void holds_settle(struct core *core, struct core_job *job)
{
    bool is_wanted = true;
    for (uint32_t i = 0; i < job->hold_count && is_wanted; i++)
        is_wanted = job->plan->is_gang ||
                    job_task_is_waiting(&job->life, policy_of(core, job), job->holds[i].task);
    if (is_wanted)
        return;
    holds_release(core, job);
    core_job_queue(core, job);
    waiting_changed(core, job, WAITING_BY_TAKEN);
}

void hold_reopen(struct core *core, struct hold *hold)
{
    assert(hold->slots && !hold->started && !hold->ports.count);
    group_give_back(core, hold->group, true);
    mem_free(hold->slots);
    hold->slots = NULL;
}

/* --- what nobody holds any more --- */

bool holdovers_are_left(const struct core *core)
{
    return core->holdover_next < core->holdovers.count;
}

static void holdover_free(struct core *core, struct holdover *holdover)
{
    ports_give_back(core, holdover->ports.items, holdover->ports.count);
    ARRAY_FREE(&holdover->ports);
    mem_free(holdover->group);
}

bool holdovers_release(struct core *core, uint32_t end)
{
    while (holdovers_are_left(core) && core->pass.work < end) {
        struct holdover *holdover = &core->holdovers.items[core->holdover_next++];
        core->pass.work += WORK_OF_RELEASE + holdover->task_count / TASKS_RELEASED_PER_WORK;
        if (!holdover->is_forgotten)
            group_give_back(core, holdover->group, holdover->is_bound);
        holdover_free(core, holdover);
    }
    if (holdovers_are_left(core))
        return false;
    core->holdovers.count = core->holdover_next = 0;
    return true;
}

const char *holdovers_at(const struct core *core, size_t nth)
{
    assert(core->holdover_next <= core->holdovers.count);
    const size_t at = core->holdover_next + nth;
    return at < core->holdovers.count ? core->holdovers.items[at].group : NULL;
}

bool holdovers_has(const struct core *core, const char *group)
{
    for (size_t i = core->holdover_next; i < core->holdovers.count; i++)
        if (strcmp(core->holdovers.items[i].group, group) == 0)
            return true;
    return false;
}

void holdovers_forget(struct core *core)
{
    for (size_t i = core->holdover_next; i < core->holdovers.count; i++)
        core->holdovers.items[i].is_forgotten = true;
}

void holdovers_copy(struct core *to, const struct core *from)
{
    assert(to != from && !to->holdovers.count);
    for (size_t i = from->holdover_next; i < from->holdovers.count; i++) {
        struct holdover *holdover = ARRAY_ADD(&to->holdovers);
        *holdover = from->holdovers.items[i];
        holdover->group = mem_copy(holdover->group);
        ARRAY_COPY(&holdover->ports, &from->holdovers.items[i].ports);
    }
}

void preempt_release(struct core *core)
{
    for (size_t i = core->holdover_next; i < core->holdovers.count; i++)
        holdover_free(core, &core->holdovers.items[i]);
    ARRAY_FREE(&core->holdovers);
    ARRAY_FREE(&core->naming.victims);
    text_map_release(&core->hold_names);
}

/* --- a gang that is placed in several steps --- */

struct placing *placing_of(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    return core->placing.job == job->id.v ? &core->placing : NULL;
}

void placing_forget(struct core *core, const struct core_job *job)
{
    if (placing_of(core, job))
        core->placing = (struct placing){0};
}

void pause_watch(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    if (job->life.preempt_after_ms > core->now_ms)
        timers_set(&core->timers, timer_key(TIMER_PREEMPT, job->id.v), job->life.preempt_after_ms);
}

void preemption_failed(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    enum { AGAIN_MS = 30000, DOUBLINGS_MAX = 7 };
    if (!job->hold_count)
        return;
    const uint32_t failures = job->life.preempt_failures;
    const uint32_t doublings = failures < DOUBLINGS_MAX ? failures : DOUBLINGS_MAX;
    job_preemption_failed(&job->life, core->now_ms + ((int64_t)AGAIN_MS << doublings));
    record_job_changed(core, job);
    pause_watch(core, job);
    holds_release(core, job);
}

void gang_undo(struct core *core, struct core_job *job)
{
    const struct placing *placing = placing_of(core, job);
    const bool was_unblocked = core->is_unblocked;
    if (placing && placing->is_fresh) { /* nor has anybody else been tried since it began */
        holds_release(core, job);
        core->is_unblocked = was_unblocked;
    } else {
        preemption_failed(core, job);
    }
    if (!job->hold_count)
        victims_clear(core, job);
    placing_forget(core, job);
}

void holds_close(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    holds_release(core, job);
    victims_clear(core, job);
    placing_forget(core, job);
}

/* --- whoever must go --- */

/* Announced first: its tasks are told "preempted" and have their time for a checkpoint. */
static void group_preempt(struct core *core, struct core_group *group, const struct core_job *by)
{
    assert(group->name && core_job_at(core, group->job) != by);
    if (group->is_preempted)
        return;
    group->is_preempted = true;
    struct core_job *victim = core_job_at(core, group->job);
    core_trace(core, "job %s: preempts %s", by->full_name, group->name);
    struct completion completion = completion_of(CODE_PREEMPTED, "preempted by %s (priority %d)",
                                                 by->full_name, by->plan->priority);
    struct job_event event = {.kind = JOB_EVENT_PREEMPT, .completion = &completion};
    if (group->is_task) {
        event.kind = JOB_EVENT_TASK_KILL;
        event.task = core_task_at(core, group->tasks[0])->ref;
    }
    core_job_step(core, victim, &event);
}

static bool victim_is_left(const struct core *core, const struct victim *victim)
{
    return victim->group != NONE && core_group_at(core, victim->group)->number == victim->number;
}

bool victim_is_known(struct core *core, const char *name)
{
    return core_group_find(core, name) || hold_holder(core, name);
}

/* What another job holds is named by its id and the place among its holds. */
static struct victim victim_of(struct core *core, const struct core_job *by, const char *name)
{
    const struct core_group *group = core_group_find(core, name);
    if (group)
        return (struct victim){core_group_index(core, group), group->number};
    struct core_job *holder = hold_holder(core, name);
    if (!holder || holder == by)
        return (struct victim){NONE, 0};
    const uint64_t place = (uint64_t)(hold_find(holder, name) - holder->holds);
    return (struct victim){NONE, (uint64_t)holder->id.v << 32 | place};
}

/* Something that runs, or what another job holds while it preempts. */
static void victim_end(struct core *core, const struct victim *victim, const struct core_job *by)
{
    assert(by->id.v && by->hold_count);
    if (victim_is_left(core, victim)) {
        struct core_group *group = core_group_at(core, victim->group);
        core->pass.work += WORK_OF_TELLING + WORK_OF_KILL * group->taken_count;
        group_preempt(core, group, by);
        return;
    }
    core->pass.work++;
    const uint32_t place = (uint32_t)victim->number;
    struct core_job *holder =
        victim->group == NONE
            ? core_job_find(core, (struct job_id){(uint32_t)(victim->number >> 32)})
            : NULL;
    if (!holder || place >= holder->hold_count)
        return;
    core_trace(core, "job %s: takes what %s holds", by->full_name, holder->holds[place].group);
    holds_release(core, holder);
    core_job_queue(core, holder);
    waiting_changed(core, holder, WAITING_BY_TAKEN);
}

/* `text` up to here is what the reason is about; who holds what comes behind it. Takes the text. */
static struct start_outcome outcome_of(struct core *core, struct buf *text, const char *before,
                                       const char *const *holders, size_t count)
{
    assert(before && (count == 0 || holders));
    enum { NAMES_MAX = 3 };
    struct start_outcome outcome = {.kind = PLACEMENT_PREEMPT,
                                    .topic = text_words_hash(buf_as_text(text), 0)};
    if (count)
        buf_string(text, before);
    for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
        buf_string(text, i ? REASON_NEXT : "");
        buf_format(text, REASON_HOLDER, holders[i]);
    }
    if (count > NAMES_MAX)
        buf_format(text, REASON_MORE, count - NAMES_MAX);
    outcome.reason = arena_copy(&core->scratch, buf_as_text(text));
    buf_release(text);
    return outcome;
}

struct start_outcome preempt_outcome(struct core *core, const struct placement_result *result,
                                     const char *why_not)
{
    assert(result->kind == PLACEMENT_PREEMPT && why_not);
    struct buf text = BUF_INIT;
    buf_string(&text, REASON_WOULD_PREEMPT);
    buf_string(&text, why_not);
    return outcome_of(core, &text, REASON_HELD_BY, result->victims, result->victim_count);
}

struct start_outcome victims_wait_for(struct core *core, const char *const *victims, size_t count)
{
    assert(count == 0 || victims);
    struct buf text = BUF_INIT;
    buf_string(&text, REASON_PREEMPTS);
    return outcome_of(core, &text, REASON_NOT_ENDED, victims, count);
}

void victims_clear(struct core *core, struct core_job *job)
{
    job->victim_count = 0;
    job->victims_ms = core->now_ms;
}

void victims_name(struct core *core, const struct core_job *job,
                  const struct placement_result *result)
{
    struct naming *naming = &core->naming;
    if (!result->victim_first) {
        naming->victims.count = 0;
        naming->has_own = false;
    }
    for (size_t i = result->victim_first; i < result->victim_count; i++) {
        const struct victim victim = victim_of(core, job, result->victims[i]);
        *ARRAY_ADD(&naming->victims) = victim;
        naming->has_own |= victim.group != NONE &&
                           core_job_at(core, core_group_at(core, victim.group)->job) == job;
    }
}

void victims_add(struct core *core, struct core_job *job)
{
    const size_t count = core->naming.victims.count;
    assert(count <= UINT32_MAX / 2 && job->id.v);
    if (job->victim_count + count > job->victim_room) {
        job->victim_room = (job->victim_count + (uint32_t)count) * 2;
        job->victims = mem_realloc(job->victims, mem_size(job->victim_room, sizeof *job->victims));
    }
    if (count)
        memcpy(job->victims + job->victim_count, core->naming.victims.items,
               count * sizeof *job->victims);
    job->victim_count += (uint32_t)count;
}

void naming_copy(struct core *to, const struct core *from)
{
    ARRAY_COPY(&to->naming.victims, &from->naming.victims);
    to->naming.has_own = from->naming.has_own;
}

bool victims_are_new(const struct core *core, const struct core_job *job)
{
    for (uint32_t i = 0; i < job->victim_count; i++)
        if (victim_is_left(core, &job->victims[i]) &&
            !core_group_at(core, job->victims[i].group)->is_preempted)
            return true;
    return false;
}

bool victims_tell(struct core *core, struct core_job *job, uint32_t *told, uint32_t end)
{
    assert(*told <= job->victim_count);
    if (*told < job->victim_count)
        do
            victim_end(core, &job->victims[(*told)++], job);
        while (*told < job->victim_count && core->pass.work < end);
    return *told == job->victim_count;
}

bool victims_are_left(const struct core *core, struct core_job *job)
{
    while (job->victim_count && !victim_is_left(core, &job->victims[job->victim_count - 1]))
        job->victim_count--;
    return job->victim_count && core->nodes_ms < job->victims_ms;
}

struct start_outcome victims_outcome(struct core *core, struct core_job *job)
{
    const char **names = ARENA_ARRAY(&core->scratch, const char *, job->victim_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->victim_count; i++) {
        if (!victim_is_left(core, &job->victims[i]))
            continue;
        names[count] = core_group_at(core, job->victims[i].group)->name;
        job->victims[count++] = job->victims[i];
    }
    job->victim_count = count;
    return victims_wait_for(core, names, count);
}
