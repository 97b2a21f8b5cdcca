/* preempt.c — what a preempting job holds, and how others are ended for it:
 * docs/rfc/0011-waiting-jobs.md. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/jobs.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/reserve.h"
#include "core/start.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"

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
    struct hold *hold = hold_find(job, group);
    if (!hold) {
        job->holds = mem_realloc(job->holds, mem_size(job->hold_count + 1u, sizeof *job->holds));
        hold = &job->holds[job->hold_count++];
        *hold = (struct hold){.group = mem_copy(group)};
        text_map_set(&core->hold_names, text_of(hold->group), core_job_slot(core, job));
    }
    if (!slots)
        return;
    assert(!hold->slots);
    hold->slots = mem_alloc(mem_size(slot_count, sizeof *slots));
    memcpy(hold->slots, slots, slot_count * sizeof *slots);
    hold->slot_count = (uint32_t)slot_count;
}

/* `to` has been copied byte by byte. */
void holds_copy(struct core *core, struct core_job *to, const struct core_job *from)
{
    assert(to != from && to->id.v == from->id.v);
    to->holds = NULL;
    to->hold_count = 0;
    for (uint32_t i = 0; i < from->hold_count; i++)
        hold_add(core, to, from->holds[i].group, from->holds[i].slots, from->holds[i].slot_count);
    to->victims = mem_copy_array(from->victims, from->victim_count, sizeof *from->victims);
}

struct core_job *hold_holder(const struct core *core, const char *group)
{
    uint32_t slot = text_map_get(&core->hold_names, text_of(group));
    return slot == MAP_NONE ? NULL : core_job_at(core, slot);
}

static void hold_free(struct core *core, struct hold *hold)
{
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
    job->hold_count = job->victim_count = 0;
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

void holds_release(struct core *core, struct core_job *job)
{
    assert(job->holds || !job->hold_count);
    if (!job->hold_count)
        return;
    for (uint32_t i = 0; i < job->hold_count; i++) {
        const struct hold *hold = &job->holds[i];
        if (hold->slots) {
            core->placer->ops->release_group(core->placer, hold->group);
            reserve_release_group(core, hold->group);
        } else {
            core->placer->ops->cancel(core->placer, hold->group);
            reserve_cancel(core, hold->group);
        }
    }
    holds_forget(core, job);
    core->is_unblocked = true;
}

void preempt_release(struct core *core)
{
    text_map_release(&core->hold_names);
}

void preemption_failed(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    enum { AGAIN_MS = 30000, DOUBLINGS_MAX = 7 };
    if (!job->hold_count)
        return;
    uint32_t doublings =
        job->preempt_failures < DOUBLINGS_MAX ? job->preempt_failures : DOUBLINGS_MAX;
    job->preempt_failures++;
    job->preempt_after_ms = core->now_ms + ((int64_t)AGAIN_MS << doublings);
    timers_set(&core->timers, timer_key(TIMER_PREEMPT, job->id.v), job->preempt_after_ms);
    holds_release(core, job);
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

/* Something that runs, or what another job holds while it preempts. */
static void victim_end(struct core *core, const char *name, const struct core_job *by)
{
    assert(by->id.v && by->hold_count);
    struct core_group *group = core_group_find(core, name);
    struct core_job *holder = hold_holder(core, name);
    if (group) {
        group_preempt(core, group, by);
    } else if (holder && holder != by) {
        core_trace(core, "job %s: takes what %s holds", by->full_name, name);
        holds_release(core, holder);
        core_job_queue(core, holder);
        waiting_changed(core, holder, WAITING_BY_TAKEN);
    }
}

/* `text` up to here is what the reason is about; who holds what comes behind it. Takes the text. */
static struct start_outcome outcome_of(struct core *core, struct buf *text, const char *before,
                                       const char *const *holders, size_t count)
{
    assert(before && (count == 0 || holders));
    enum { NAMES_MAX = 3 };
    struct start_outcome outcome = {.kind = PLACEMENT_PREEMPT,
                                    .topic = text_words_hash(buf_as_text(text), 0)};
    buf_format(text, "; %s ", before);
    for (size_t i = 0; i < count && i < NAMES_MAX; i++)
        buf_format(text, "%s%s", i ? ", " : "", holders[i]);
    if (count > NAMES_MAX)
        buf_format(text, " and %zu more", count - NAMES_MAX);
    outcome.reason = arena_copy(&core->scratch, buf_as_text(text));
    buf_release(text);
    return outcome;
}

struct start_outcome preempt_outcome(struct core *core, const struct placement_result *result,
                                     const char *why_not)
{
    assert(result->kind == PLACEMENT_PREEMPT && why_not);
    struct buf text = BUF_INIT;
    buf_string(&text, "others of lower priority would have to be preempted");
    if (*why_not)
        buf_format(&text, ", but %s", why_not);
    return outcome_of(core, &text, "held by", result->victims, result->victim_count);
}

/* What another job holds is given back at once: groups that run alone are waited for. */
static void victims_remember(struct core *core, struct core_job *job, const char *const *victims,
                             size_t count)
{
    assert(job->hold_count);
    job->victims = mem_realloc(job->victims, mem_size(count, sizeof *job->victims));
    job->victim_count = 0;
    job->victims_ms = core->now_ms;
    for (size_t i = 0; i < count; i++) {
        const struct core_group *group = core_group_find(core, victims[i]);
        if (group)
            job->victims[job->victim_count++] =
                (struct victim){core_group_index(core, group), group->number};
    }
}

static struct start_outcome waits_for(struct core *core, const char *const *victims, size_t count)
{
    assert(count == 0 || victims);
    struct buf text = BUF_INIT;
    buf_string(&text, "preempts others of lower priority");
    return outcome_of(core, &text, "not ended yet:", victims, count);
}

struct start_outcome victims_end(struct core *core, struct core_job *job,
                                 const char *const *victims, size_t count)
{
    struct start_outcome outcome = waits_for(core, victims, count);
    if (job->plan->is_gang) /* other tasks may start before these have ended */
        victims_remember(core, job, victims, count);
    for (size_t i = 0; i < count; i++)
        victim_end(core, victims[i], job);
    return outcome;
}

static bool victim_is_left(const struct core *core, const struct victim *victim)
{
    return core_group_at(core, victim->group)->number == victim->number;
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
    assert(count);
    job->victim_count = count;
    return waits_for(core, names, count);
}
