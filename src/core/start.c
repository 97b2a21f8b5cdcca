/* start.c — one try to start what a job waits for: docs/rfc/0011-waiting-jobs.md, "try". */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/engines.h"
#include "core/gang_ports.h"
#include "core/gang_start.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/part.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/schedule.h"
#include "core/start.h"
#include "core/state.h"
#include "core/tasks.h"
#include "model/reason.h"

enum {
    ROUNDS_MAX = 4,      /* others are ended for one job, before it has to pause */
    AGAIN_MAX = 3,       /* rounds of a search in steps because nodes have changed */
    WORK_OF_START = 32,  /* of a task, in units of core->pass.work: its rows, its command */
    SLICES_OF_TASKS = 2, /* of a job without gang: these costs are those of a job of one task */
};

const struct start_outcome outcome_bind = {.kind = PLACEMENT_BIND, .reason = ""};
const struct start_outcome outcome_cut = {.kind = PLACEMENT_WAIT, .reason = "", .is_cut = true};

struct start_outcome start_waits(struct core *core, const char *reason)
{
    return (struct start_outcome){.kind = PLACEMENT_WAIT,
                                  .reason = arena_copy(&core->scratch, text_of(reason)),
                                  .topic = text_words_hash(text_of(reason), 0)};
}

struct start_outcome start_waits_alone(struct core *core, const char *reason)
{
    struct start_outcome outcome = start_waits(core, reason);
    outcome.is_of_job = true;
    return outcome;
}

bool slots_are_usable(const struct core *core, const struct placement_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct core_node *node = core_node_at(core, slots[i].node.v);
        if (!node->facts.is_healthy || node->is_lost || node_is_cordoned(node))
            return false;
    }
    return true;
}

/* What was found so far becomes holds. */
static void parts_keep(struct core *core, struct core_job *job, struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct gang_part *part = &parts->items[i];
        const char *group = part->request.placement.group;
        if (part->is_bound)
            hold_add(core, job, group, part->result.slots, part->result.slot_count);
        else if (part->is_preempting && part->is_made)
            hold_add(core, job, group, NULL, part->request.task_count);
        if (parts->is_task && (part->is_bound || part->is_preempting))
            hold_find(job, group)->task = part->request.tasks[0];
        part->is_held |= part->is_bound;
        part->is_bound = false;
        assert(parts->is_task || !(part->is_held || part->is_preempting) ||
               part_hold(job, parts, part));
    }
}

/* All or nothing: what was taken in this attempt and what was held before is given back. */
static void parts_undo(struct core *core, struct core_job *job, struct parts *parts)
{
    assert(parts->count > 0);
    bool was_unblocked = core->is_unblocked; /* what this attempt took was free before it */
    if (!parts->is_task && job->hold_count)
        parts_keep(core, job, parts); /* so that all goes in the order of the parts */
    for (size_t i = 0; i < parts->count; i++) {
        struct gang_part *part = &parts->items[i];
        const char *group = part->request.placement.group;
        if (part->is_bound) {
            core->placer->ops->release_group(core->placer, group);
            reserve_release_group(core, group);
        } else if (part->is_preempting && !part_hold(job, parts, part)) {
            /* no shadow knows of it: reserve_holder filled them before it was placed */
            core->placer->ops->cancel(core->placer, group);
        }
    }
    core->is_unblocked = was_unblocked;
    if (!parts->is_task) {
        gang_undo(core, job);
        return;
    }
    if (part_hold(job, parts, &parts->items[0]))
        preemption_failed(core, job);
    victims_clear(core, job);
}

static struct start_outcome start_waits_for_port(struct core *core, const char *why)
{
    struct start_outcome outcome = start_waits(core, why);
    outcome.is_port_conflict = true;
    return outcome;
}

/* Others were told for the job again and again, and it could not start. */
static bool has_ended_often(struct core *core, struct core_job *job)
{
    if (!victims_are_new(core, job) || ++job->preempt_rounds <= ROUNDS_MAX)
        return false;
    job->preempt_rounds = 0;
    return true;
}

/* The rest follows in the next step. */
static struct start_outcome parts_cut(struct core *core, struct core_job *job, struct parts *parts,
                                      size_t next)
{
    assert(!parts->is_task && (!core->placing.job || placing_of(core, job)));
    struct placing *placing = &core->placing;
    if (!placing->job)
        *placing = (struct placing){
            .job = job->id.v, .is_fresh = !job->hold_count, .nodes = core->node_changes};
    placing->search = part_search_next(core, parts, next);
    placing->next = (uint32_t)next;
    placing->avoid_count = parts->avoid_count;
    memcpy(placing->avoid, parts->avoid, sizeof placing->avoid);
    parts_keep(core, job, parts);
    core_trace(core, "job %s: %zu of %zu parts searched for -> goes on", job->full_name, next,
               parts->count);
    return outcome_cut;
}

/* Told to end, until the step's work is used up; what the job is told then is in *outcome. */
static void victims_go_on(struct core *core, struct core_job *job, uint32_t told, uint32_t work_end,
                          struct start_outcome *outcome)
{
    if (victims_tell(core, job, &told, work_end))
        return;
    if (!core->placing.job)
        core->placing.job = job->id.v;
    assert(placing_of(core, job));
    core->placing.is_fresh = false;
    core->placing.stage = PLACING_TELL;
    core->placing.told = told;
    core_trace(core, "job %s: %u of %u victims are told -> goes on", job->full_name, told,
               job->victim_count);
    *outcome = outcome_cut;
}

/* Each of them is found, and some wait for others to end: the rest follows in the next step. */
static struct start_outcome parts_look(struct core *core, struct core_job *job, struct parts *parts,
                                       const struct port_look *look)
{
    assert(!parts->is_task);
    if (!core->placing.job)
        core->placing = (struct placing){
            .job = job->id.v, .is_fresh = !job->hold_count, .nodes = core->node_changes};
    parts_keep(core, job, parts);
    placing_of(core, job)->stage = PLACING_FIXED;
    placing_of(core, job)->look = *look;
    return outcome_cut;
}

/* May the fixed ports of a task be had? If that is not known yet, its search is made again in the
 * next step, as no places of others are kept for it: so a step looks at a whole slice. */
static const char *task_ports_hopeless(struct core *core, struct core_job *job, struct parts *parts)
{
    const struct gang_part *part = &parts->items[0];
    const uint16_t role = part->request.tasks[0].role;
    if (!parts->look.node && !parts->look.port)
        parts->look.role = role;
    const char *why =
        fixed_ports_hopeless(core, job, role + 1u, &parts->look, core->pass.work + core->slice);
    if (why)
        return why;
    if (!part_hold(job, parts, part))
        core->placer->ops->cancel(core->placer, part->request.placement.group);
    victims_clear(core, job);
    return NULL;
}

/* Some parts wait for others to end: what is bound is kept as a hold, and the victims are told. */
static struct start_outcome parts_hold(struct core *core, struct core_job *job, struct parts *parts)
{
    assert(parts->count > 0 && job->id.v);
    const char **names = NULL;
    size_t count = 0, room = 0;
    struct port_look look = {0};
    const char *hopeless = "";
    if (!parts->is_task && placing_of(core, job))
        return parts_look(core, job, parts, &look);
    if (victims_are_new(core, job))
        hopeless = parts->is_task ? task_ports_hopeless(core, job, parts)
                                  : fixed_ports_hopeless(core, job, job->plan->role_count, &look,
                                                         parts->work_end);
    if (!hopeless)
        return parts->is_task ? outcome_cut : parts_look(core, job, parts, &look);
    if (*hopeless) { /* nobody is to end for that */
        parts_undo(core, job, parts);
        return start_waits_for_port(core, hopeless);
    }
    if (has_ended_often(core, job)) {
        parts_keep(core, job, parts);
        parts_undo(core, job, parts);
        return start_waits_alone(core, REASON_ENDED_OFTEN);
    }
    for (size_t i = 0; i < parts->count; i++)
        room += parts->items[i].is_preempting ? parts->items[i].result.victim_count : 0;
    names = ARENA_ARRAY(&core->scratch, const char *, room + 1);
    for (size_t i = 0; i < parts->count; i++)
        for (size_t j = 0; parts->items[i].is_preempting && j < parts->items[i].result.victim_count;
             j++)
            if (!parts->is_task || victim_is_known(core, parts->items[i].result.victims[j]))
                names[count++] = parts->items[i].result.victims[j];
    parts_keep(core, job, parts);
    struct start_outcome outcome = victims_wait_for(core, names, count);
    victims_go_on(core, job, 0, parts->is_task ? UINT32_MAX : parts->work_end, &outcome);
    if (parts->is_task) /* other tasks may start before these have ended */
        victims_clear(core, job);
    return outcome;
}

/* The search is over: those who are in the way are told. */
static struct start_outcome gang_tell(struct core *core, struct core_job *job,
                                      struct placing *placing)
{
    assert(placing->stage == PLACING_TELL && job->hold_count);
    struct start_outcome outcome = outcome_bind;
    victims_go_on(core, job, placing->told, core->pass.work + core->slice, &outcome);
    if (outcome.is_cut)
        return outcome;
    placing_forget(core, job);
    return victims_outcome(core, job); /* if all have ended, the pass begins anew for that */
}

/* The same when the search took several steps, or the question about the ports does. */
static struct start_outcome gang_look(struct core *core, struct core_job *job,
                                      struct placing *placing)
{
    assert(placing->stage == PLACING_FIXED && job->hold_count);
    const char *hopeless = "";
    if (victims_are_new(core, job))
        hopeless = fixed_ports_hopeless(core, job, job->plan->role_count, &placing->look,
                                        core->pass.work + core->slice);
    if (!hopeless)
        return outcome_cut;
    if (*hopeless) {
        gang_undo(core, job);
        return start_waits_for_port(core, hopeless);
    }
    placing->is_fresh = false; /* others have ended for it before, or will */
    if (has_ended_often(core, job)) {
        gang_undo(core, job);
        return start_waits_alone(core, REASON_ENDED_OFTEN);
    }
    placing->stage = PLACING_TELL;
    placing->told = 0;
    return core->pass.work < core->slice ? gang_tell(core, job, placing) : outcome_cut;
}

/* Everything is bound: each task takes its place. */
static void parts_take(struct core *core, struct core_job *job, const struct parts *parts,
                       const struct gang_ports *ports)
{
    size_t next = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct gang_part *part = &parts->items[i];
        assert(part->is_made && (part->is_bound || part->is_held));
        const struct request *request = &part->request;
        uint32_t at = core_group_add(core, job, request->placement.group, request->tasks[0].role,
                                     parts->is_task, (uint32_t)request->task_count);
        for (uint32_t j = 0; j < request->task_count; j++) {
            struct core_task *task =
                core_task_get(core, core_job_slot(core, job), request->tasks[j]);
            core_task_set(core, task, &part->result.slots[j], ports->ranges[next++],
                          job->plan->roles[request->tasks[j].role].port_count);
            task->group = at;
            task->group_slot = j;
            core_task_take(core, task);
            core_group_at(core, at)->tasks[j] = core_task_index(core, task);
        }
        if (parts->is_task)
            hold_forget(core, job, request->placement.group);
    }
    if (!parts->is_task)
        holds_forget(core, job);
}

/* NULL, or why there are no ports. */
static const char *parts_ports(struct core *core, const struct core_job *job,
                               const struct parts *parts, struct gang_ports *ports)
{
    assert(parts->task_count > 0);
    struct task_ref *tasks = ARENA_ARRAY(&core->scratch, struct task_ref, parts->task_count + 1);
    const struct placement_slot **slots =
        ARENA_ARRAY(&core->scratch, const struct placement_slot *, parts->task_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++)
        for (size_t j = 0; j < parts->items[i].request.task_count; j++) {
            tasks[count] = parts->items[i].request.tasks[j];
            slots[count++] = &parts->items[i].result.slots[j];
        }
    return gang_ports_find(core, job, tasks, slots, count, ports);
}

/* The parts from the first one on, until the step's work is used up. */
static struct start_outcome parts_search(struct core *core, struct core_job *job,
                                         struct parts *parts)
{
    for (size_t i = parts->first; i < parts->count; i++) {
        if (!parts->is_task && i > parts->first && core->pass.work >= parts->work_end)
            return parts_cut(core, job, parts, i);
        struct gang_part *part = &parts->items[i];
        if (part->is_held || part->is_bound || part->is_preempting)
            continue;
        if (!parts->is_task && i > parts->first && placer_is_untidy(core)) /* by the part before */
            return parts_cut(core, job, parts, i);
        struct start_outcome outcome = part_place(core, job, parts, part);
        if (outcome.is_cut)
            return parts->is_task ? outcome : parts_cut(core, job, parts, i);
        if (reserve_is_joining(core)) /* shadows are asked when they know of it */
            return parts_cut(core, job, parts, i + 1);
        if (outcome.kind == PLACEMENT_WAIT ||
            (outcome.kind == PLACEMENT_PREEMPT && !part->is_preempting)) {
            parts_undo(core, job, parts);
            return outcome;
        }
    }
    return outcome_bind;
}

/* Every part has a place or waits for one. Whatever changed meanwhile has its last word here. */
static struct start_outcome search_end(struct core *core, struct core_job *job, struct parts *parts,
                                       struct placing *placing)
{
    assert(job->hold_count || parts->count);
    if (placing->nodes != core->node_changes && placing->rounds < AGAIN_MAX) {
        placing->nodes = core->node_changes;
        placing->rounds++;
        victims_clear(core, job);
        return parts_cut(core, job, parts, 0);
    }
    parts_keep(core, job, parts);
    for (size_t i = 0; i < parts->count; i++)
        parts->items[i].is_preempting = !job->holds[i].slots;
    /* those of the steps before; a node may have failed since the last round */
    parts->first = 0;
    parts->work_end = UINT32_MAX;
    return parts_search(core, job, parts);
}

static bool parts_are_preempting(const struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].is_preempting)
            return true;
    return false;
}

static struct start_outcome parts_try(struct core *core, struct core_job *job, struct parts *parts,
                                      struct gang_ports *ports)
{
    assert(parts->count > 0);
    ports->conflict = NONE;
    struct start_outcome outcome = parts_search(core, job, parts);
    struct placing *placing = parts->is_task ? NULL : placing_of(core, job);
    if (outcome.kind == PLACEMENT_BIND && placing && core->pass.work >= parts->work_end)
        outcome = parts_cut(core, job, parts, parts->count);
    else if (outcome.kind == PLACEMENT_BIND && placing)
        outcome = search_end(core, job, parts, placing);
    if (outcome.kind != PLACEMENT_BIND)
        return outcome;
    if (parts_are_preempting(parts))
        return parts_hold(core, job, parts);
    if (!parts->is_task && gang_is_large(core, parts->task_count)) {
        const bool is_fresh = !job->hold_count;
        parts_keep(core, job, parts);
        return gang_start_begin(core, job, is_fresh);
    }
    for (size_t i = 0; i < parts->count; i++)
        part_make(core, job, &parts->items[i]);
    const char *why = parts_ports(core, job, parts, ports);
    if (why) {
        parts_undo(core, job, parts);
        return start_waits_for_port(core, why);
    }
    core->pass.work += WORK_OF_START * (uint32_t)parts->task_count;
    parts_take(core, job, parts, ports);
    return outcome_bind;
}

/* It was to be avoided already, and there is no other: another search would find it again. */
static bool is_avoided(const struct parts *parts, uint32_t node)
{
    for (uint32_t i = 0; i < parts->avoid_count; i++)
        if (parts->avoid[i].v == node)
            return true;
    return false;
}

static struct start_outcome parts_start(struct core *core, struct core_job *job,
                                        struct parts *parts)
{
    assert(parts->count > 0);
    const uint32_t work_end = parts->work_end; /* also of another search: search_end lifts it */
    for (;;) {
        struct gang_ports ports;
        struct start_outcome outcome = parts_try(core, job, parts, &ports);
        if (outcome.kind != PLACEMENT_WAIT || outcome.is_cut || ports.conflict == NONE ||
            parts->avoid_count == PORT_TRIES_MAX || is_avoided(parts, ports.conflict))
            return outcome;
        parts->avoid[parts->avoid_count++].v = ports.conflict;
        for (size_t i = 0; i < parts->count; i++)
            parts->items[i].is_bound = parts->items[i].is_held = parts->items[i].is_preempting =
                false;
        parts->first = 0;
        parts->work_end = work_end;
        /* what is given back comes first, and a search of many nodes may be a step's work */
        if (holdovers_are_left(core) || core->pass.work >= work_end + core->slice)
            return parts->is_task ? outcome_cut : parts_cut(core, job, parts, 0);
    }
}

static struct parts gang_parts(struct core *core, const struct core_job *job)
{
    const struct plan *plan = job->plan;
    struct parts parts = {
        .items = ARENA_ARRAY(&core->scratch, struct gang_part, plan->role_count + 1u),
        .work_end = core->pass.work + core->slice,
        .search = part_search_new(core),
    };
    for (uint16_t i = 0; i < plan->role_count; i++) {
        if (plan->roles[i].part != i)
            continue;
        parts.items[parts.count] = (struct gang_part){.first_role = i};
        uint32_t tasks = part_task_count(core, job, i);
        parts.count += tasks > 0;
        parts.task_count += tasks;
    }
    return parts;
}

/* On one engine after the other, where the gang must lie on one. What it holds is on one already:
 * then a failure is one. */
static struct start_outcome gang_search(struct core *core, struct core_job *job,
                                        struct parts *parts)
{
    const uint32_t work_end = parts->work_end;
    for (;;) {
        const struct placing *placing = placing_of(core, job);
        const bool had_holds = placing ? !placing->is_fresh : job->hold_count > 0;
        struct start_outcome outcome = parts_start(core, job, parts);
        if (outcome.is_cut)
            return outcome;
        placing_forget(core, job);
        if (outcome.kind == PLACEMENT_BIND || job->hold_count || had_holds ||
            !engine_try_next(core, job, &outcome))
            return outcome;
        *parts = gang_parts(core, job);
        parts->work_end = work_end;
        if (holdovers_are_left(core) || core->pass.work >= work_end)
            return parts_cut(core, job, parts, 0);
    }
}

/* Where there are no ports, another engine may have some. */
static struct start_outcome gang_begin_go_on(struct core *core, struct core_job *job,
                                             bool may_search)
{
    struct start_outcome outcome = gang_start_go_on(core, job);
    if (!may_search || outcome.kind != PLACEMENT_WAIT || outcome.is_cut ||
        !outcome.is_port_conflict || !engine_try_next(core, job, &outcome))
        return outcome;
    struct parts parts = gang_parts(core, job);
    return parts_cut(core, job, &parts, 0);
}

static struct start_outcome gang_start(struct core *core, struct core_job *job)
{
    assert(job->plan->is_gang && queue_has(core->queue, core_job_slot(core, job)));
    struct placing *placing = placing_of(core, job);
    if (placing && placing->stage == PLACING_TELL)
        return gang_tell(core, job, placing);
    if (placing && placing->stage == PLACING_FIXED)
        return gang_look(core, job, placing);
    if (placing && placing->stage != PLACING_SEARCH)
        return gang_begin_go_on(core, job, placing->stage == PLACING_PORTS && placing->is_fresh);
    struct parts parts = gang_parts(core, job);
    if (placing) {
        parts.first = parts.searched = placing->next;
        parts.search = placing->search;
        parts.avoid_count = placing->avoid_count;
        memcpy(parts.avoid, placing->avoid, sizeof parts.avoid);
    } else {
        victims_clear(core, job);
        if (!job->hold_count)
            engine_try_begin(core, job);
    }
    struct start_outcome outcome = gang_search(core, job, &parts);
    if (outcome.kind != PLACEMENT_BIND || gang_is_large(core, parts.task_count))
        return outcome;
    core_trace(core, "job %s: placed %zu tasks -> bind", job->full_name, parts.task_count);
    core_job_step(core, job, &(struct job_event){.kind = JOB_EVENT_PLACED});
    return outcome;
}

/* --- a job without gang --- */

/* What one step does for its tasks, each of which is tried by itself. */
struct round {
    struct task_ref next;   /* whose turn it is */
    struct task_ref *tasks; /* that have got their places */
    uint32_t placed, waiting, work_end;
    struct task_ref searched;             /* the task that was searched for last, … */
    struct part_search search;            /* … and how far that has come, if it was cut */
    struct node_id avoid[PORT_TRIES_MAX]; /* by the next task: ports were in conflict there */
    uint32_t avoid_count;
    struct port_look look; /* … and how far its fixed ports have been looked for */
    bool is_again;         /* all have had their turn: only why some wait is still to be known */
    bool has_failed;
    struct start_outcome failure;
};

/* The first task that waits at or behind the one whose turn it is. False: none does. */
static bool round_settle(struct core *core, const struct core_job *job, struct round *round)
{
    const struct job_policy *policy = policy_of(core, job);
    struct task_ref *next = &round->next;
    for (; next->role < job->plan->role_count; *next = (struct task_ref){next->role + 1, 0}) {
        const uint32_t count = job_role_count(&job->life, policy, next->role);
        for (; next->index < count; next->index++)
            if (job_task_is_waiting(&job->life, policy, *next))
                return true;
    }
    return false;
}

/* A task whose search was cut may wait no longer: what is known is of no use for the next one. */
static void search_settle(struct core *core, struct round *round)
{
    const bool is_same =
        round->searched.role == round->next.role && round->searched.index == round->next.index;
    if (is_same)
        return;
    search_give_up(core);
    round->searched = round->next;
    round->search = part_search_new(core);
    round->avoid_count = 0;
    round->look = (struct port_look){0};
}

static struct start_outcome task_start(struct core *core, struct core_job *job, struct round *round)
{
    const struct task_ref task = round->next;
    search_settle(core, round);
    const struct job_task *known = job_task_find(&job->life, task);
    struct gang_part part = {.is_made = true};
    struct parts parts = {.items = &part,
                          .count = 1,
                          .task_count = 1,
                          .work_end = round->work_end,
                          .is_task = true,
                          .search = round->search,
                          .avoid_count = round->avoid_count,
                          .look = round->look};
    memcpy(parts.avoid, round->avoid, sizeof parts.avoid);
    request_of_task(core, job, task, known ? known->task_attempt : 0, &core->scratch,
                    &part.request);
    const struct start_outcome outcome = parts_start(core, job, &parts);
    round->search = outcome.is_cut ? part_search_next(core, &parts, 0) : part_search_new(core);
    round->avoid_count = outcome.is_cut ? parts.avoid_count : 0;
    round->look = outcome.is_cut ? parts.look : (struct port_look){0};
    memcpy(round->avoid, parts.avoid, sizeof round->avoid);
    return outcome;
}

/* One failure of a role is enough to know about its others. False: the rest follows in the next
 * step. */
static bool round_go_on(struct core *core, struct core_job *job, struct round *round)
{
    do {
        if (!round_settle(core, job, round)) {
            if (round->placed == round->waiting || round->has_failed)
                return true;
            round->next = (struct task_ref){0}; /* some have failed in a step before */
            round->is_again = true;
            return false;
        }
        const struct start_outcome outcome = task_start(core, job, round);
        assert(outcome.kind != PLACEMENT_BIND || !holdovers_are_left(core));
        if (outcome.is_cut || holdovers_are_left(core)) /* they may be room for the rest */
            return false;
        if (outcome.kind == PLACEMENT_BIND) {
            round->tasks[round->placed++] = round->next;
            round->next.index++;
            continue;
        }
        round->failure = outcome;
        round->has_failed = true;
        round->next = (struct task_ref){round->next.role + 1, 0};
        if (round->is_again)
            return true;
    } while (core->pass.work < round->work_end);
    return round->placed == round->waiting;
}

static struct start_outcome tasks_start(struct core *core, struct core_job *job)
{
    assert(!job->plan->is_gang && queue_has(core->queue, core_job_slot(core, job)));
    const struct placing *placing = placing_of(core, job);
    const uint32_t waiting = job_waiting_count(&job->life, policy_of(core, job));
    const uint32_t of_step = 1 + SLICES_OF_TASKS * core->slice / WORK_OF_START;
    const uint32_t most = waiting < of_step ? waiting : of_step;
    struct round round = {
        .tasks = ARENA_ARRAY(&core->scratch, struct task_ref, most),
        .waiting = waiting,
        .work_end = core->pass.work + SLICES_OF_TASKS * core->slice,
        .search = part_search_new(core),
        .failure = {.kind = PLACEMENT_WAIT, .reason = ""},
    };
    if (placing) {
        round.next = round.searched = placing->task;
        round.search = placing->search;
        round.is_again = placing->rounds > 0;
        round.look = placing->look;
        round.avoid_count = placing->avoid_count;
        memcpy(round.avoid, placing->avoid, sizeof round.avoid);
    }
    const bool is_over = round_go_on(core, job, &round);
    assert(round.placed <= most);
    if (round.placed) {
        core_trace(core, "job %s: placed %u of %u waiting tasks", job->full_name, round.placed,
                   round.waiting);
        core_job_step(core, job,
                      &(struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = round.tasks,
                                          .task_count = round.placed});
    }
    const bool is_whole = round.placed == round.waiting;
    if (is_whole || is_over) {
        placing_forget(core, job);
        search_give_up(core);
        return is_whole ? outcome_bind : round.failure;
    }
    core->placing = (struct placing){.job = job->id.v,
                                     .stage = PLACING_TASKS,
                                     .task = round.next,
                                     .search = round.search,
                                     .rounds = round.is_again,
                                     .look = round.look,
                                     .avoid_count = round.avoid_count};
    memcpy(core->placing.avoid, round.avoid, sizeof round.avoid);
    return outcome_cut;
}

struct start_outcome core_job_start(struct core *core, struct core_job *job)
{
    return job->plan->is_gang ? gang_start(core, job) : tasks_start(core, job);
}
